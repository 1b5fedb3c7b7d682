import subprocess
import sys
import unicodedata

import pytest
from confusable_homoglyphs.confusables import confusables_data

from memcli.errors import Refused, UsageError, WrongSchema
from memcli.keys import (
    MAX_PATTERN_CHARS,
    MIXED,
    SMALL,
    WHOLE,
    TombstoneKey,
    check_regex,
    contains,
    evidence_digest,
    matches,
    new_key,
    normalise,
    slot_digest,
    value_digest,
)
from tests.normalisation_cases import DISTINCT, STOPPED

KEY = TombstoneKey(id="k1", secret=bytes(range(32)))
OTHER = TombstoneKey(id="k2", secret=bytes(range(1, 33)))

NEVER_ENDS = r"(a|aa)+$"
LONG = "a" * 60 + "b"


@pytest.mark.parametrize(("value", "variant"), STOPPED)
def test_a_variant_of_a_value_has_its_key(value, variant):
    assert variant != value
    assert normalise(variant) == normalise(value)
    assert normalise(variant) != ""


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_values_that_differ_in_meaning_have_keys_that_differ(one, other):
    assert normalise(one) != normalise(other)
    assert normalise(one) != ""
    assert normalise(other) != ""


def test_the_table_is_as_long_as_was_promised_and_says_nothing_twice():
    assert len(set(STOPPED)) == len(STOPPED) >= 70
    assert len(set(DISTINCT)) == len(DISTINCT) >= 70


@pytest.mark.parametrize("text", ["", " \t\n", "\u200b", "\u2800\u3164", "\0\x1b"])
def test_only_text_that_shows_nothing_becomes_empty(text):
    assert normalise(text) == ""
    assert normalise(text + ".") == "."


def test_a_normalised_text_of_version_one_stays_what_it_was_when_version_one_was_released():
    text = "“Αnna’s” \u200bcafé – Straße, ２ µg of Привет in x² ﬁelds… №5 👩\u200d💻!"

    assert normalise(text) == "anna's café - strasse 2 μg of привет in x^2 fields no5 👩\u200d💻"
    assert value_digest(KEY, text).hex() == "62703f149f7c9dc0c989d619ad3c4ab0610487938e86c972da7511be6dce99f2"
    assert (
        slot_digest(KEY, "Anna", "home city", "Lisbon").hex()
        == "96fef5d1f15efe9d92f67c08958179c1e0449a38fa70deb030df278a23068a26"
    )
    assert (
        evidence_digest(KEY.secret, "user", "I live in Lisbon").hex()
        == "f18b16f51c5a81ebeca159eeafb673bc43b4bd49811aa1605c8b2896ce18177b"
    )


def test_a_later_version_of_the_normaliser_is_not_guessed_at():
    assert normalise("Tea", version=1) == "tea"

    with pytest.raises(WrongSchema, match="version 2 of the normaliser"):
        normalise("tea", version=2)
    with pytest.raises(WrongSchema):
        slot_digest(KEY, "a", "b", 5, normaliser=2)


# Letters that are taken for Latin ones by habit, and others for which the list names another thin stroke.
BEYOND_THE_LIST = frozenset("εςп")


def listed(char):
    """The ASCII letters that Unicode's list names for a character, directly or by way of one other."""
    near = {found["c"] for form in {char, char.upper(), char.lower()} for found in confusables_data.get(form, [])}
    further = {found["c"] for form in near for found in confusables_data.get(form, [])}
    return {form.casefold() for form in near | further if len(form) == 1 and form.isascii()}


@pytest.mark.parametrize(("chars", "latin"), [*WHOLE.values(), *MIXED.items()])
def test_folded_letters_are_those_of_the_list_of_confusables(chars, latin):
    pairs = list(zip(chars, latin, strict=True))

    assert [(char, to) for char, to in pairs if to not in listed(char) and char not in BEYOND_THE_LIST] == []


@pytest.mark.parametrize("script", WHOLE)
def test_no_two_letters_of_a_script_fold_to_one_in_its_own_words(script):
    chars, latin = WHOLE[script]

    assert len(set(chars)) == len(chars) == len(set(latin))
    assert [char for char in chars if char != char.casefold() or char.isascii()] == []


def test_small_capitals_stand_for_the_letter_in_their_name():
    named = [unicodedata.name(char).rpartition(" ")[2].lower() for char in SMALL[0]]

    assert "".join(named) == SMALL[1]


def test_importing_keys_loads_neither_the_regex_engine_nor_a_table_of_confusables():
    script = "import sys, memcli.keys; memcli.keys.normalise('Аnnа é 東京'); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert "memcli.keys" in loaded
    assert {"regex", "confusable_homoglyphs", "rapidfuzz", "whenever"}.isdisjoint(loaded)


def test_a_new_key_is_thirty_two_bytes_and_never_the_same():
    keys = {new_key() for _ in range(20)}

    assert len(keys) == 20
    assert {len(key) for key in keys} == {32}


def test_a_key_keeps_its_secret_when_it_is_printed():
    shown = repr(TombstoneKey(id="k1", secret=b"very secret bytes"))

    assert "k1" in shown
    assert "secret bytes" not in shown


def test_a_value_digest_depends_on_value_and_key_only():
    assert value_digest(KEY, "Lisbon") == value_digest(KEY, "“LISBON”.")
    assert value_digest(KEY, "Lisbon") != value_digest(KEY, "Berlin")
    assert value_digest(KEY, "Lisbon") != value_digest(OTHER, "Lisbon")


def test_the_three_kinds_of_digest_never_meet():
    digests = {
        value_digest(KEY, "a"),
        slot_digest(KEY, "a", "", ""),
        slot_digest(KEY, "", "a", ""),
        slot_digest(KEY, "", "", "a"),
        evidence_digest(KEY.secret, "a", ""),
        evidence_digest(KEY.secret, "", "a"),
    }

    assert len(digests) == 6


@pytest.mark.parametrize("spelt", [5, 5.0, "5", " 5 ", "５"])
def test_a_number_is_the_same_value_however_it_is_typed(spelt):
    assert slot_digest(KEY, "Anna", "age", spelt) == slot_digest(KEY, "ANNA", " age ", 5)
    assert slot_digest(KEY, "Anna", "age", spelt) != slot_digest(KEY, "Anna", "age", 6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, "1"),
        (True, 1),
        (False, 0),
        (None, ""),
        (None, "null"),
        (5, -5),
        (0.1, 0.2),
        ("1.10", "1.1"),
        ("007", 7),
        (float("inf"), float("-inf")),
    ],
)
def test_scalars_that_are_not_the_same_value_keep_apart(one, other):
    assert slot_digest(KEY, "a", "b", one) != slot_digest(KEY, "a", "b", other)
    assert slot_digest(KEY, "a", "b", one) == slot_digest(KEY, "A", "B", one)


def test_numbers_too_long_for_decimal_text_keep_apart():
    assert slot_digest(KEY, "a", "b", 10**5000) != slot_digest(KEY, "a", "b", 10**5000 + 1)
    assert slot_digest(KEY, "a", "b", 10**5000) == slot_digest(KEY, "A", "b", 10**5000)


def test_subject_and_attribute_do_not_run_into_each_other():
    assert slot_digest(KEY, "ab", "c", "d") != slot_digest(KEY, "a", "bc", "d")
    assert slot_digest(KEY, "a", "bc", "d") == slot_digest(KEY, "A", "bc", "d")


def test_evidence_is_known_by_role_and_words_whatever_its_line_breaks():
    original = evidence_digest(KEY.secret, "user", "I live in a café")

    assert evidence_digest(KEY.secret, "user", "I live\r\n in a cafe\u0301 ") == original
    assert evidence_digest(KEY.secret, "assistant", "I live in a café") != original
    assert evidence_digest(KEY.secret, "user", "i live in a café") != original
    assert evidence_digest(OTHER.secret, "user", "I live in a café") != original


def test_lone_surrogates_have_digests_like_any_text():
    assert value_digest(KEY, "a\ud800") == value_digest(KEY, "A\ud800")
    assert value_digest(KEY, "a\ud800") != value_digest(KEY, "a\ud801")
    assert evidence_digest(KEY.secret, "user", "\udfff") != evidence_digest(KEY.secret, "user", "\udffe")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("lisbon", "Anna lives in LISBON."),
        ("Lisbon Portugal", "Lisbon, Portugal"),
        ("Lisbon", "in Lіsbоn\u200b!"),
        ("кот", "который час"),
        ("мама", "Мамаша"),
        ("και", "ΚΑΙΡΟΣ"),
        ("東京", "私は東京都に住む"),
    ],
)
def test_a_pattern_is_contained_however_the_text_is_spelt(pattern, text):
    assert contains(pattern, text)
    assert not contains(pattern, "something else")


@pytest.mark.parametrize("pattern", ["", " ", "\u200b"])
def test_a_pattern_that_shows_nothing_is_in_no_text(pattern):
    assert not contains(pattern, "any text")
    assert contains("any" + pattern, "any text")


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("a(b", r"“a\(b” has a mistake at character 4: missing \)"),
        ("[a", "has a mistake at character"),
        ("*a", "has a mistake at character"),
        (r"(?P<n>a)(?P=m)", "has a mistake at character"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("a" * (MAX_PATTERN_CHARS + 1), "has 1,001 characters"),
        ("\x1b[(", r"“\\x1b\[\(” has a mistake"),
    ],
)
def test_a_mistake_in_a_regular_expression_is_placed(pattern, sentence):
    with pytest.raises(UsageError, match=sentence):
        check_regex(pattern)


@pytest.mark.parametrize("pattern", [r"\b\d{4}\b", "a" * MAX_PATTERN_CHARS, r"\p{Han}+", "(" * 300 + ")" * 300])
def test_a_sound_regular_expression_is_taken(pattern):
    check_regex(pattern)
    assert matches(pattern, "only 4711 東 " + "a" * MAX_PATTERN_CHARS, timeout_s=5)


@pytest.mark.parametrize("text", ["Lisbon", "LISBON", "Lіsbоn", "Lis\u200bbon", "“lisbon”"])
def test_a_regular_expression_meets_disguised_text(text):
    assert matches(r"\bLis.on\b", text, timeout_s=5)
    assert not matches(r"\bLis.on\b", "Berlin", timeout_s=5)


def test_a_regular_expression_also_meets_text_as_it_stands():
    assert matches(r"\u200b", "a\u200bb", timeout_s=5)
    assert not matches(r"\u200b", "ab", timeout_s=5)


def test_a_regular_expression_meets_words_of_look_alikes_before_they_are_folded():
    assert matches("кот", "КОТ", timeout_s=5)
    assert not matches("кот", "КИТ", timeout_s=5)


def test_a_text_that_takes_too_long_to_check_is_refused():
    assert matches(NEVER_ENDS, "aaa", timeout_s=5)

    with pytest.raises(Refused, match=r"“\(a\|aa\)\+\$” took longer than 0\.05 s") as refused:
        matches(NEVER_ENDS, LONG, timeout_s=0.05)
    assert refused.value.hint


def test_a_stored_pattern_that_cannot_be_used_stops_everything():
    with pytest.raises(Refused, match=r"“\(” cannot be used, so nothing is let in"):
        matches("(", "harmless", timeout_s=5)
