"""Out and back again: whatever a memory holds, and whatever somebody does to the file in between."""

import io
import json
import tempfile
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcli.diff import compare
from memcli.errors import Unreadable
from memcli.exchange import reading
from memcli.exchange.sieve import FORMS, Sieve
from memcli.exchange.writers.markdown import escaped
from memcli.facts import Conversation, FactQuery, Remembered, Turn
from memcli.store import open_store
from memcli.store.check import check
from memcli.store.copy import Copy
from memcli.terms import Role, State
from tests.exports import exported, restored, taken_out
from tests.files import ANNA, IMPORTER, add, city, correct, count, memory, reject, take
from tests.property.test_store_properties import ADMISSIONS, NUMBERS, STEPS, Memory

EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)
ODD = st.text(st.characters(exclude_categories=()), max_size=30)
WORDS = ODD.filter(lambda text: any(char.isalnum() for char in text))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "facts", "observations", "name", "memory", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)

slow = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def histories(path):
    with open_store(path) as store:
        facts = [item for fact in store.facts(EVERYTHING) for item in store.history(fact.id)]
        return facts, store.tombstones(lifted=True)


@slow
@given(admission=ADMISSIONS, steps=STEPS, erased=st.none() | NUMBERS)
def test_any_memory_restored_is_the_same_memory_and_whole(admission, steps, erased):
    with tempfile.TemporaryDirectory() as folder:
        made = Memory(Path(folder), admission)
        with made.store:
            for step in steps:
                made.act(*step)
            if erased is not None:
                made.act("erase", erased, ANNA, "x")
        data = exported(made.path)
        restored(data, Path(folder) / "back.db")

        assert exported(Path(folder) / "back.db") == data
        before, stones = histories(made.path)
        after, same = histories(Path(folder) / "back.db")
        assert after == before
        assert [stone.id for stone in same] == [stone.id for stone in stones]
        with open_store(Path(folder) / "back.db") as store:
            assert check(store) == []


@slow
@given(texts=st.lists(ODD, min_size=1, max_size=4), names=st.lists(ODD, max_size=2))
def test_any_words_of_messages_survive(texts, names):
    turns = [Turn(role=Role.USER, content=text, extra=tuple((name, text) for name in names)) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        with memory(Path(folder) / "m.db") as store:
            source = take(store, Conversation(format="openai", turns=tuple(turns)))
            said = store.messages(source)
        data = exported(Path(folder) / "m.db")
        restored(data, Path(folder) / "back.db")

        assert data.isascii()
        with open_store(Path(folder) / "back.db") as store:
            assert store.messages(source) == said
        assert exported(Path(folder) / "back.db") == data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m.db"
    with memory(path) as store:
        berlin = city(store, "Berlin")
        add(store, "Anna is in CET", derived_from=(berlin.id,))
        correct(store, berlin, "Anna lives in Lisbon")
        reject(store, add(store, "tea is cold"))
    return exported(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_export_with_another_byte_in_it_is_restored(data, draw):
    at = draw.draw(st.integers(0, len(data) - 1))
    byte = draw.draw(st.binary(min_size=0, max_size=2).filter(lambda new: new != data[at : at + 1]))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "back.db"

        with pytest.raises(Unreadable):
            restored(data[:at] + byte + data[at + 1 :], place)
        assert count(place, "facts") == count(place, "tombstones") == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_makes_the_reader_fail(data, draw):
    lines = data.splitlines(keepends=True)
    at = draw.draw(st.integers(0, len(data)))
    number = draw.draw(st.integers(0, len(lines) - 1))
    harmed = draw.draw(
        st.sampled_from(
            (data[:at], data[at:], data[:at] + b"\xff" + data[at:], b"".join([*lines[:number], *lines[number + 1 :]]))
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "out"
        place.write_bytes(harmed)

        with suppress(Unreadable), reading(str(place), format="mem", encoding=None) as opened:
            assert all(item.format == "mem" for item in opened.found)


@slow
@given(texts=st.lists(WORDS, min_size=1, max_size=5), name=st.sampled_from(["mcp", "mem0", "llamaindex"]))
def test_any_statement_goes_out_in_json_as_it_stands(texts, name):
    with tempfile.TemporaryDirectory() as folder, memory(Path(folder) / "m.db") as store:
        with store.write(IMPORTER) as write:
            write.remember([Remembered(format="x", text=text) for text in texts], path="x", digest="0" * 64)
        for fact in list(store.facts(EVERYTHING)):
            with store.write(ANNA) as write:
                write.accept(fact)
        kept = {fact.text for fact in store.facts()}
        out = taken_out(store, name=name).decode()

    documents = [json.loads(line) for line in out.splitlines()] if name == "mcp" else [json.loads(out)]
    lists = {"mcp": "observations", "mem0": "results", "llamaindex": "facts"}
    said = [item["memory"] if name == "mem0" else item for found in documents for item in found[lists[name]]]
    assert kept
    assert set(said) == kept


@given(ODD)
def test_markdown_is_one_line_without_signs_that_begin_something(text):
    line = escaped(text)

    assert all(unicodedata.category(char) != "Cc" for char in line)
    assert not line.startswith(("#", "-", "+", "*", ">", "=", "|", "<", "`", "~", "§"))
    assert "\n" not in line


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()), st.sampled_from(FORMS))
def test_where_nothing_is_stopped_every_byte_passes(data, form):
    sieve = Sieve(lambda *_: False, form=form)

    assert b"".join(sieve.pieces(io.BytesIO(data))) == data
    assert sieve.stopped == 0


@given(st.lists(JSON.map(json.dumps) | st.text(max_size=20), max_size=6), st.booleans())
def test_where_everything_is_stopped_no_word_passes_unmarked(lines, mark):
    sieve = Sieve(lambda *_: True, mark=mark)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    out = b"".join(sieve.pieces(io.BytesIO(data)))

    for line in out.splitlines():
        assert not line.strip() or not texts_in(json.loads(line))


def texts_in(value):
    """Return what a record still says under a key that speaks, outside of marked objects."""
    if isinstance(value, dict):
        if value.get("mem") == "tombstoned":
            return []
        own = [item for key, item in value.items() if key in {"text", "memory"} and isinstance(item, str)]
        return [*own, *(text for item in value.values() for text in texts_in(item))]
    return [text for item in value for text in texts_in(item)] if isinstance(value, list) else []


@slow
@given(admission=ADMISSIONS, steps=STEPS, more=STEPS)
def test_a_difference_is_what_happened_in_between_and_turns_round(admission, steps, more):
    with tempfile.TemporaryDirectory() as folder:
        made = Memory(Path(folder), admission)
        with made.store:
            for step in steps:
                made.act(*step)
            before = list(Copy(made.store).newest()), Copy(made.store).stones()
            for step in more:
                made.act(*step)
            after = list(Copy(made.store).newest()), Copy(made.store).stones()

    there = compare(before[0], after[0], stones=(before[1], after[1]))
    back = compare(after[0], before[0], stones=(after[1], before[1]))
    old, new = ({fact.id for fact in facts if fact.erased_at is None} for facts in (before[0], after[0]))
    assert not compare(after[0], after[0], stones=(after[1], after[1]))
    assert [fact.id for fact in there.added] == [fact.id for fact in back.removed]
    assert {fact.id for fact in there.added} <= new - old
    assert len(there.changed) == len(back.changed)
    assert len(there.changed) + there.same + len(there.removed) >= len(old)
