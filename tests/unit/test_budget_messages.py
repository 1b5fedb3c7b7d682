"""Messages as a budget sees them: what they are made of, and what each part costs."""

import pytest

from memcli import tokens
from memcli.budget.messages import (
    ROLES,
    BudgetMessage,
    Estimates,
    Part,
    PartKind,
    ToolCalls,
    all_tokens,
    content_tokens,
    from_openai,
    from_turn,
    mapping_named,
    message_tokens,
    stored,
    text_part,
)
from memcli.budget.raised import Raised
from memcli.budget.settings import settings_from
from memcli.budget.simulate import Get, Plan, simulate
from memcli.budget.trace import as_json
from memcli.errors import UsageError
from memcli.facts import ToolCall, Turn
from memcli.terms import Role

WORDS = tokens.counter("words")
CL100K = tokens.counter("cl100k_base", special=True)
ESTIMATES = Estimates()
CALL = {
    "id": "call_abc123",
    "type": "function",
    "function": {"name": "f", "arguments": '{"city": "Oslo", "unit": "C"}'},
}


def cost(message: BudgetMessage, count=WORDS, estimates: Estimates = ESTIMATES) -> int:
    return message_tokens(message, estimates, count)


def user(content: object, **beside: object) -> BudgetMessage:
    return from_openai({"role": "user", "content": content, **beside})


@pytest.mark.parametrize(
    ("mapping", "kinds", "kwargs", "tokens"),
    [
        (ToolCalls.KWARGS, [], {"tool_calls": [CALL]}, 46),
        (ToolCalls.BLOCKS, [PartKind.TOOL_CALL], {}, 0),
        (ToolCalls.BOTH, [PartKind.TOOL_CALL], {"tool_calls": [CALL]}, 46),
    ],
)
def test_the_mapping_of_tool_calls_decides_what_they_cost(mapping, kinds, kwargs, tokens):
    message = from_openai({"role": "assistant", "content": None, "tool_calls": [CALL]}, mapping)

    assert [part.kind for part in message.parts] == kinds
    assert message.kwargs == kwargs
    assert cost(message, CL100K) == tokens


def test_keys_beside_role_and_content_are_counted_in_their_order_as_python_writes_them():
    message = from_openai({"name": None, "role": "tool", "content": "", "tool_call_id": "c1", "ok": True, "n": 1.0})
    texts: list[str] = []

    cost(message, lambda text: texts.append(text) or 0)
    assert texts == ["", "{'name': None, 'tool_call_id': 'c1', 'ok': True, 'n': 1.0}"]


def test_the_id_of_a_tool_result_is_eleven_tokens():
    assert cost(from_openai({"role": "tool", "content": "", "tool_call_id": "call_abc123"}), CL100K) == 11


def test_text_parts_are_counted_each_by_itself():
    message = user([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}])

    assert cost(message, CL100K) == CL100K("hel") + CL100K("lo")
    assert cost(message, CL100K) != CL100K("hello")


def test_a_special_token_in_a_text_is_one_token():
    assert cost(user("<|endoftext|>"), CL100K) == 1


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, 10),
        ({"block_type": "image", "image": "aGk="}, 10),
        ({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}, 20),
        ({"block_type": "video", "url": "https://example.org/a.mp4"}, -30),
        ({"type": "file", "file": {"file_data": "aGk="}}, 40),
        ({"block_type": "document", "url": "a.pdf"}, 40),
        ({"block_type": "cache"}, 0),
        ({"block_type": "thinking", "content": "a long thought"}, 0),
        ({"block_type": "tool_call", "tool_name": "f", "tool_kwargs": {"a": 1}}, 0),
        ({"block_type": "citable", "title": "t", "source": "s", "content": "a long source"}, 0),
        ({"block_type": "text", "text": "three words here"}, 3),
    ],
)
def test_a_part_costs_its_words_or_a_flat_estimate_or_nothing(part, tokens):
    estimates = Estimates(image=10, audio=20, video=-30, document=40)

    assert cost(user([part]), estimates=estimates) == tokens


@pytest.mark.parametrize("content", [None, 5, {"text": "words"}, True])
def test_content_that_is_neither_text_nor_a_list_vanishes(content):
    assert user(content).parts == ()
    assert user("words").parts == (text_part("words"),)


def test_empty_content_is_one_empty_text():
    assert user("").parts == (text_part(""),)


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ((1, {2}), [1, [2]]),
        (b"hi", "aGk="),
        (float("nan"), None),
        (float("-inf"), None),
        ({1: {None: 2, True: 3}}, {"1": {"None": 2, "true": 3}}),
        ([1.0, 10**30, "é", None, False], [1.0, 10**30, "é", None, False]),
    ],
)
def test_a_value_is_counted_as_it_reads_back_from_the_store(value, back):
    assert stored(value) == back
    assert repr(stored(value)) == repr(back)


def test_a_value_that_no_store_can_hold_is_refused():
    with pytest.raises(Raised) as raised:
        user("x", odd=object())

    assert (raised.value.kind, raised.value.said) == ("TypeError", "Object of type object is not JSON serializable")
    assert raised.value.hint is not None


@pytest.mark.parametrize(
    ("message", "kind", "said"),
    [
        ("text", "AttributeError", "'str' object has no attribute 'get'"),
        ({"content": "x"}, "KeyError", "'role'"),
        (
            {"role": "User", "content": "x"},
            "ValidationError",
            f"role / Input should be {', '.join(map(repr, ROLES[:-1]))} or 'model'",
        ),
        ({"role": "user", "content": ["x"]}, "TypeError", "string indices must be integers, not 'str'"),
        ({"role": "user", "content": [{"type": "odd"}]}, "ValueError", "Unsupported message type: odd"),
        ({"role": "user", "content": [{"block_type": "odd"}]}, "KeyError", "'odd'"),
        (
            {"role": "user", "content": [{"type": "text", "text": 5}]},
            "ValidationError",
            "text / Input should be a valid string",
        ),
        (
            {"role": "user", "content": [{"block_type": "citable"}]},
            "ValidationError",
            "title / Field required / source / Field required / content / Field required",
        ),
        (
            {"role": "user", "content": "x", "images": ["a"]},
            "AttributeError",
            "'str' object has no attribute 'resolve_image'",
        ),
    ],
)
def test_what_the_library_refuses_is_refused_in_its_words(message, kind, said):
    with pytest.raises(Raised) as raised:
        from_openai(message)

    assert (raised.value.kind, raised.value.said) == (kind, said)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://Example.COM", "https://example.com/"),
        ("HTTP://EX.com:80/a b/é.png", "http://ex.com/a%20b/%C3%A9.png"),
        ("https://ex.com:8443/%41/../b/./c", "https://ex.com:8443/b/c"),
        ("https://ex.com/a?b=c d#é", "https://ex.com/a?b=c%20d#%C3%A9"),
        ("https://münchen.de\\x", "https://xn--mnchen-3ya.de/x"),
        ('https://u:p@ex.com:443/|"<>`{}^', "https://u:p@ex.com/|%22%3C%3E%60%7B%7D^"),
        (" data:image/png;base64,iVBORw0KGgo= ", "data:image/png;base64,iVBORw0KGgo="),
        ("s3://Bucket/key", "s3://Bucket/key"),
    ],
)
def test_an_address_is_kept_as_the_library_writes_it(given, kept):
    assert user([{"type": "image_url", "image_url": {"url": given}}]).parts == (Part(kind=PartKind.IMAGE, url=kept),)


def test_a_long_address_is_shown_shortened_in_a_trace():
    message = user([{"type": "image_url", "image_url": {"url": "https://ex.com/" + "a" * 200}}])

    trace = as_json(simulate([message], settings_from({}), count=WORDS))
    assert trace["get"]["messages"][0]["blocks"] == [{"type": "image", "url": "https://ex.com/" + "a" * 102 + "..."}]


@pytest.mark.parametrize(
    ("given", "why"),
    [("", "input is empty"), ("a.png", "relative URL without a base"), ("https://", "empty host")],
)
def test_an_address_without_scheme_or_host_is_refused(given, why):
    with pytest.raises(Raised, match=why):
        user([{"block_type": "image", "url": given}])


def test_a_turn_becomes_a_message_with_everything_that_is_counted():
    turn = Turn(
        role=Role.ASSISTANT,
        content="look",
        name="Rex",
        tool_calls=(ToolCall(id="c1", name="f", arguments='{"a": 1}'),),
        tool_call_id="c0",
        thinking="hm",
        attachments=("image https://example.org/a.png", "file notes.txt", "part of type odd"),
    )

    message = from_turn(turn, ToolCalls.BOTH)
    assert [part.kind.value for part in message.parts] == ["thinking", "text", "image", "document", "tool_call"]
    assert message.parts[2].url == "https://example.org/a.png"
    assert list(message.kwargs) == ["tool_calls", "tool_call_id", "name"]
    assert from_turn(turn, ToolCalls.BLOCKS).kwargs == {"tool_call_id": "c0", "name": "Rex"}
    assert from_turn(turn).kwargs["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    ]


def test_a_role_that_nobody_knows_is_kept_as_it_stood():
    turns = (Turn(role=Role.UNKNOWN, content="x", raw_role="narrator"), Turn(role=Role.UNKNOWN, content="y"))

    assert [from_turn(turn).role for turn in turns] == ["narrator", "unknown"]


def test_a_simulation_counts_each_text_of_the_transcript_once_however_often_it_is_read():
    counted: list[str] = []
    messages = [user(f"question {at}") for at in range(50)]

    def count(text: str) -> int:
        counted.append(text)
        return WORDS(text)

    trace = simulate(messages, settings_from({"token_limit": 40}), count=count, plan=Plan(get=Get.EVERY))
    assert sorted(counted) == sorted(f"question {at}" for at in range(50))
    assert trace.steps[-1].written.flushed_total > 10


def test_counts_that_somebody_made_already_are_taken_as_they_are():
    def count(text: str) -> int:
        raise AssertionError(text)

    trace = simulate([user("one"), user("two")], settings_from({}), count=count, counts=[5, 7])
    assert [step.written.tokens for step in trace.steps] == [(5,), (7,)]
    assert trace.window_tokens == 12


def test_counting_all_messages_at_once_counts_each_text_once_and_gives_the_same():
    messages = [
        user("one two", name="x"),
        user([{"type": "text", "text": "three"}, {"block_type": "image"}]),
        user(None),
    ]
    calls: list[list[str]] = []

    def count_many(texts):
        calls.append(list(texts))
        return [WORDS(text) for text in texts]

    assert all_tokens(messages, ESTIMATES, count_many) == [cost(message) for message in messages] == [4, 257, 0]
    assert calls == [["one two", "{'name': 'x'}", "three"]]


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        ("two words", 2),
        ([], 0),
        ([text_part("two words"), Part(kind=PartKind.IMAGE), Part(kind=PartKind.CACHE)], 258),
        ([BudgetMessage(role="user", parts=(text_part("two words"),), kwargs={"k": 1})], 4),
    ],
)
def test_the_content_of_a_block_is_text_parts_or_messages(content, tokens):
    assert content_tokens(content, ESTIMATES, WORDS) == tokens


@pytest.mark.parametrize(
    "content",
    [
        ["text"],
        [text_part("x"), BudgetMessage(role="user", parts=())],
        [text_part("x"), Part(kind=PartKind.THINKING)],
    ],
)
def test_a_mixed_list_cannot_be_counted(content):
    with pytest.raises(Raised) as raised:
        content_tokens(content, ESTIMATES, WORDS)

    assert (raised.value.kind, raised.value.said) == ("ValueError", "Invalid message type: <class 'list'>")


@pytest.mark.parametrize(
    ("name", "mapping"), [("kwargs", ToolCalls.KWARGS), ("tool_blocks", ToolCalls.BLOCKS), ("both", ToolCalls.BOTH)]
)
def test_a_mapping_has_the_names_of_the_option_and_of_the_recorded_cases(name, mapping):
    assert mapping_named(name) is mapping


@pytest.mark.parametrize("name", ["neither", None, ["both"]])
def test_a_mapping_that_is_none_is_refused(name):
    with pytest.raises(UsageError, match="no mapping"):
        mapping_named(name)
