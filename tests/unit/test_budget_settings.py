"""What the two constructors of LlamaIndex's Memory make of settings, and what is told of it."""

import math

import pytest

from memcli.budget.raised import Raised
from memcli.budget.settings import Constructor, Settings, settings_from
from memcli.budget.simulate import replay
from memcli.errors import UsageError

OVER = "101 is more than the limit of 100, so {} % of the limit is taken, rounded down"


def defaults(**given: object) -> Settings:
    return settings_from(given)


def direct(**given: object) -> Settings:
    return settings_from(given, constructor=Constructor.DIRECT)


def test_without_a_word_it_is_30000_tokens_of_which_the_window_may_hold_21000():
    settings = defaults()

    assert (settings.token_limit, settings.token_flush_size, settings.threshold) == (30000, 3000, 21000.0)
    assert settings.clamps == ()


@pytest.mark.parametrize(
    ("limit", "size"),
    [(1, 0), (2, 1), (9, 6), (10, 7), (90, 62), (100, 70), (2999, 2099), (3000, 3000), (3001, 3000), (30000, 3000)],
)
def test_a_limit_below_the_flush_size_takes_seventy_percent_of_the_limit(limit, size):
    assert defaults(token_limit=limit).token_flush_size == size


@pytest.mark.parametrize(("limit", "size"), [(1, 0), (9, 0), (10, 1), (100, 10), (30000, 3000)])
def test_the_constructor_itself_takes_ten_percent_where_no_size_is_given(limit, size):
    assert direct(token_limit=limit).token_flush_size == size


def test_one_size_is_clamped_in_two_ways_by_the_two_constructors():
    ours = defaults(token_limit=100, token_flush_size=101)
    theirs = direct(token_limit=100, token_flush_size=101)

    assert [(clamp.given, clamp.used, clamp.why) for clamp in ours.clamps] == [(101, 70, OVER.format(70))]
    assert [(clamp.given, clamp.used, clamp.why) for clamp in theirs.clamps] == [(101, 10, OVER.format(10))]


@pytest.mark.parametrize("make", [defaults, direct])
@pytest.mark.parametrize("size", [0, -1, -5])
def test_a_size_below_one_takes_ten_percent_of_the_limit(make, size):
    settings = make(token_limit=100, token_flush_size=size)

    why = f"{size} is less than 1, so 10 % of the limit is taken, rounded down"
    assert [(clamp.given, clamp.used, clamp.why) for clamp in settings.clamps] == [(size, 10, why)]


def test_a_size_that_was_not_given_is_told_as_none():
    (clamp,) = direct(token_limit=100).clamps

    assert (clamp.setting, clamp.given, clamp.used) == ("token_flush_size", None, 10)
    assert clamp.why == "no flush size was given, so 10 % of the limit is taken, rounded down"


def test_a_tiny_limit_is_clamped_twice_and_ends_at_zero():
    settings = defaults(token_limit=1)

    assert [(clamp.given, clamp.used) for clamp in settings.clamps] == [(None, 0), (0, 0)]
    assert settings.token_flush_size == 0


@pytest.mark.parametrize(
    ("limit", "threshold"),
    [(90, 62.99999999999999), (170, 118.99999999999999), (100, 70.0), (11000, 7699.999999999999)],
)
def test_the_threshold_is_a_double_that_is_never_rounded(limit, threshold):
    assert defaults(token_limit=limit).threshold == threshold


@pytest.mark.parametrize(
    ("given", "taken"), [(0.0, 0.0), (-0.5, -0.5), (1.5, 1.5), (1, 1.0), ("0.5", 0.5), (True, 1.0), ("inf", math.inf)]
)
def test_any_ratio_is_taken(given, taken):
    assert defaults(chat_history_token_ratio=given).chat_history_token_ratio == taken


def test_a_ratio_may_be_no_number_at_all():
    assert math.isnan(defaults(chat_history_token_ratio=math.nan).threshold)


@pytest.mark.parametrize(("given", "taken"), [(50.0, 50), (True, 1)])
def test_a_whole_number_may_come_as_a_double_or_a_truth_value(given, taken):
    assert direct(token_limit=given, token_flush_size=1).token_limit == taken


@pytest.mark.parametrize(("given", "taken"), [("10", 10), (" 1_0.00 ", 10), ("-5", -5), (0, 0), (2.0, 2)])
def test_an_estimate_is_any_whole_number_also_as_text(given, taken):
    assert defaults(image_token_size_estimate=given).estimates.image == taken


INTEGER = "Input should be a valid integer"
PARSE = f"{INTEGER}, unable to parse string as an integer"
FRACTION = f"{INTEGER}, got a number with a fractional part"
TOO_SMALL = "Value error, Token limit must be set and greater than 0."


@pytest.mark.parametrize(
    ("make", "given", "kind", "said"),
    [
        (defaults, {"token_limit": 0}, "ValidationError", TOO_SMALL),
        (direct, {}, "ValidationError", TOO_SMALL),
        (defaults, {"token_limit": "5"}, "TypeError", "'>' not supported between instances of 'int' and 'str'"),
        (direct, {"token_limit": "5"}, "TypeError", "'<' not supported between instances of 'str' and 'int'"),
        (defaults, {"token_limit": None}, "TypeError", "'>' not supported between instances of 'int' and 'NoneType'"),
        (direct, {"token_limit": math.inf}, "OverflowError", "cannot convert float infinity to integer"),
        (direct, {"token_limit": math.nan}, "ValidationError", "Value error, cannot convert float NaN to integer"),
        (defaults, {"token_limit": math.nan}, "ValidationError", "token_limit / Input should be a finite number"),
        (
            defaults,
            {"document_token_size_estimate": 10},
            "TypeError",
            "Memory.from_defaults() got an unexpected keyword argument 'document_token_size_estimate'",
        ),
        (
            defaults,
            {"insert_method": "USER"},
            "ValidationError",
            "insert_method / Input should be 'system' or 'user'",
        ),
        (
            defaults,
            {"chat_history_token_ratio": None},
            "ValidationError",
            "chat_history_token_ratio / Input should be a valid number",
        ),
        (
            direct,
            {"token_limit": 50, "session_id": None},
            "ValidationError",
            "session_id / Input should be a valid string",
        ),
        (
            direct,
            {"token_limit": 10.5, "image_token_size_estimate": "1e1", "audio_token_size_estimate": []},
            "ValidationError",
            f"token_limit / {FRACTION} / image_token_size_estimate / {PARSE} / audio_token_size_estimate / {INTEGER}",
        ),
    ],
)
def test_what_the_library_refuses_is_refused_in_its_words(make, given, kind, said):
    with pytest.raises(Raised) as raised:
        make(**given)

    assert (raised.value.kind, raised.value.said) == (kind, said)


def test_an_empty_session_is_made_up_by_one_constructor_and_kept_by_the_other():
    assert defaults(session_id=None).token_limit == 30000
    assert direct(token_limit=50, session_id="").token_limit == 50


def test_two_blocks_of_one_name_are_refused_after_the_limit():
    with pytest.raises(Raised, match="unique names"):
        settings_from({}, blocks=["core", "core"])
    with pytest.raises(Raised, match="greater than 0"):
        settings_from({"token_limit": 0}, blocks=["core", "core"])

    assert settings_from({}, blocks=["core", "facts"]).token_limit == 30000


def test_a_limit_that_a_double_cannot_tell_from_the_next_is_refused():
    with pytest.raises(UsageError, match="2\\^53"):
        direct(token_limit=2**53 + 1, token_flush_size=1)

    assert direct(token_limit=2**53, token_flush_size=1).token_limit == 2**53


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"initial_history": -1}, "fewer than no messages"),
        ({"batches": [1, -2]}, "fewer than no messages"),
        ({"batches": ["one"]}, "cannot be read"),
        ({"batches": 3}, "cannot be read"),
        ({"get": "sometimes"}, "cannot be read"),
        ({"constructor": "neither"}, "no constructor"),
        ({"mapping": "neither"}, "no mapping"),
        ({"blocks": [{"type": "vector", "format_template": "{% if text %}{{ text }}{% endif %}"}]}, "no other markup"),
    ],
)
def test_a_configuration_that_no_case_can_mean_is_refused_with_a_hint(config, words):
    with pytest.raises(UsageError, match=words) as raised:
        replay(config, [], len)

    assert raised.value.hint is not None
    assert replay({}, [], len)["final"]["stored"] == 0
