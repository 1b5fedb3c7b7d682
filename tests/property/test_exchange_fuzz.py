"""Whatever the bytes, a file is read or refused with a sentence."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcli import exchange
from memcli.errors import Unreadable

FIXTURES = Path(__file__).parents[2] / "fixtures"
OTHER = {"LICENSES", "budget", "budget_buffer", "budget_reports", "transactions", "evals"}
"""Folders that hold no files to import."""

SEEDS = sorted(
    path
    for folder in FIXTURES.iterdir()
    if folder.is_dir() and folder.name not in OTHER
    for path in folder.rglob("*")
    if path.is_file() and path.stat().st_size < 50_000 and path.name != "EXPECTED.json"
)
READERS = st.sampled_from(exchange.FORMATS)
KEYS = (
    *("role", "content", "messages", "name", "text", "type", "id", "input", "source", "url", "summary", "timestamp"),
    *("tool_calls", "tool_call_id", "tool_use_id", "function", "function_call", "arguments"),
    *("message", "uuid", "parentUuid", "leafUuid", "sessionId"),
    *("payload", "mapping", "author", "parts", "chat_messages", "sender", "conversations", "from", "value", "traj"),
    *("blocks", "block_type", "additional_kwargs", "data", "kwargs", "lc", "history", "action", "observation", "cause"),
    *("entities", "relations", "observations", "entityType", "memory", "results", "label", "fact", "facts", "status"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)
SPLICES = st.sampled_from(
    [
        b"",
        b"\0" * 9,
        b"\n",
        b"}{",
        b"\xff",
        b'"',
        b"\\ud800",
        b"[" * 3000,
        b"NaN",
        b"9" * 5000,
        b"\xed\xa0\x80",
        b"null",
    ]
)


@cache
def seed(path: Path) -> bytes:
    return path.read_bytes()


@pytest.fixture(scope="module")
def spot(tmp_path_factory):
    """One file that every example writes anew."""
    return tmp_path_factory.mktemp("fuzz") / "any"


def tell(spot: Path, data: bytes, reader: str) -> str:
    """Return how it ended, `read` or `refused`; anything but a refusal in one sentence is raised."""
    spot.write_bytes(data)
    try:
        found = exchange.open_file(str(spot), format=reader)
    except Unreadable as refusal:
        return "refused" if refusal.hint and "\n" not in refusal.why else f"not one sentence: {refusal}"
    assert all(conversation.turns for conversation in found.conversations)
    assert all(item.text.strip() for item in found.remembered)
    assert spot.read_bytes() == data
    return "read"


@given(data=st.binary(max_size=400), reader=READERS)
def test_random_bytes_are_read_or_refused(spot, data, reader):
    assert tell(spot, data, reader) in ("read", "refused")
    assert tell(spot, b'{"role": "user", "content": "a control"}', "openai") == "read"


@given(values=st.lists(JSON, min_size=1, max_size=4), reader=READERS)
def test_any_json_is_read_or_refused(spot, values, reader):
    lines = "\n".join(json.dumps(value) for value in values).encode()

    assert tell(spot, lines, reader) in ("read", "refused")


@given(
    path=st.sampled_from(SEEDS),
    place=st.tuples(st.floats(0, 1), st.integers(0, 300)),
    splice=SPLICES | st.binary(max_size=6),
    reader=READERS,
)
def test_a_damaged_file_is_read_or_refused(spot, path, place, splice, reader):
    at, gone = place
    data = seed(path)
    start = int(at * len(data))

    assert tell(spot, data[:start] + splice + data[start + gone :], reader) in ("read", "refused")


@given(path=st.sampled_from(SEEDS), at=st.floats(0, 1), value=JSON, reader=READERS)
def test_a_session_with_one_strange_value_is_read_or_refused(spot, path, at, value, reader):
    text = seed(path).decode("utf-8", "replace")
    colon = text.find(": ", int(at * len(text)))
    comma = text.find(",", colon)
    strange = text if min(colon, comma) < 0 else f"{text[:colon]}: {json.dumps(value)}{text[comma:]}"

    assert tell(spot, strange.encode("utf-8", "replace"), reader) in ("read", "refused")
