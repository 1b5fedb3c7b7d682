"""A pipe that stops tombstoned values for other tools: what is stopped, and that nothing else is touched."""

import io
import json

import pytest

from memcli.errors import UsageError
from memcli.exchange.sieve import Sieve
from memcli.terms import Match
from tests.files import ANNA, SCRIPT, add, city, memory, reject


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A file that rejects a statement, a value of a slot, an observation and a pattern."""
    with memory(tmp_path_factory.mktemp("filter") / "m.db") as opened:
        reject(opened, add(opened, "tea is cold"))
        reject(opened, city(opened, "Berlin"))
        reject(opened, add(opened, "anna: likes milk", subject="anna"))
        with opened.write(ANNA, "no keys") as write:
            write.tombstone(write.plan_pattern(Match.CONTAINS, "AKIA"))
        yield opened


def sieve(store, **options):
    return Sieve(store.planner(SCRIPT).stopped, **options)


def run(store, data, **options):
    """Return what passes, and the counts of what passed, was stopped and was no JSON."""
    one = sieve(store, **options)
    out = b"".join(one.pieces(io.BytesIO(data)))
    return out, (one.passed, one.stopped, one.unread)


# -------------------------------------------------------------------- text


def test_a_line_that_is_rejected_is_dropped_and_the_others_pass(store):
    out, counts = run(store, b"coffee is hot\ntea is cold\nmilk is white\n")

    assert out == b"coffee is hot\nmilk is white\n"
    assert counts == (2, 1, 0)


@pytest.mark.parametrize(
    "line",
    [
        "Tea is COLD.",
        "  tea  is cold ",
        "\ufefftea is cold",
        "t\u200bea is cold",
        "t\u0435a is cold",
        "- tea is cold",
        "* [ ] tea is cold",
        "12. tea is cold",
        "## tea is cold",
        "my key is AKIA123",
    ],
)
def test_other_spellings_of_a_rejected_value_are_dropped(store, line):
    assert run(store, line.encode() + b"\n")[0] == b""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"no line end",
        b"windows\r\nlines\r\n",
        b"\xff\xfe not UTF-8 \x80\n",
        b"NUL \0 and ESC \x1b\n",
        b"12\ntrue\nnull\n",
        b'{"text": "tea is hot", "n": 1.50, "u": "\\u00e4"}\n',
        b'{ "text" :"tea is hot" }\r\n',
        b"{broken json}\n",
        b"[INFO] a line of a log\n",
        '"東京"\n'.encode(),
        b'{"a": [1, [2, {"b": null}]]}',
    ],
)
@pytest.mark.parametrize("form", ["auto", "text", "jsonl", "json"])
def test_what_is_not_stopped_passes_byte_for_byte(store, data, form):
    out, counts = run(store, data, form=form)

    assert out == data
    assert counts[1] == 0


def test_lines_pass_as_soon_as_they_are_there(store):
    class Source(io.BytesIO):
        read_lines = 0

        def __next__(self):
            self.read_lines += 1
            return super().__next__()

    source = Source(b"one\ntwo\nthree\n")
    pieces = sieve(store).pieces(source)

    assert next(pieces) == b"one\n"
    assert source.read_lines == 1
    assert list(pieces) == [b"two\n", b"three\n"]


# -------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "record",
    [
        {"text": "tea is cold"},
        {"id": 1, "memory": "Tea is cold", "hash": "x"},
        {"role": "user", "content": "tea is cold"},
        {"fact": "tea is cold"},
        {"fact": {"text": "tea is cold"}},
        {"payload": {"data": "tea is cold"}},
        {"subject": "anna", "attribute": "home city", "value": "berlin", "text": "she is a Berliner"},
        {"subject": "Anna", "attribute": "Home city", "value": "BERLIN"},
        {"text": "x AKIA y"},
        {"from": "tea", "relationType": "is", "to": "cold", "type": "relation"},
    ],
    ids=json.dumps,
)
def test_a_record_that_says_something_rejected_is_dropped(store, record):
    line = json.dumps(record).encode() + b"\n"
    out, counts = run(store, b'{"text": "ok"}\n' + line)

    assert out == b'{"text": "ok"}\n'
    assert counts == (1, 1, 0)


def test_a_string_of_json_is_looked_at(store):
    assert run(store, b'"tea is cold"\n"tea is hot"\n')[0] == b'"tea is hot"\n'


def test_only_the_rejected_observations_leave_an_entity(store):
    entity = {"type": "entity", "name": "anna", "entityType": "p", "observations": ["likes milk", "likes tea", "AKIA"]}
    out, counts = run(store, json.dumps(entity).encode() + b"\r\n")

    assert json.loads(out) == entity | {"observations": ["likes tea"]}
    assert out.endswith(b"\r\n")
    assert counts == (1, 2, 0)


def test_an_observation_is_stopped_for_its_own_entity_only(store):
    other = b'{"name": "bob", "observations": ["likes milk"]}\n'

    assert run(store, other)[0] == other
    assert json.loads(run(store, other.replace(b"bob", b"anna"))[0])["observations"] == []


def test_dated_observations_and_parts_of_a_message_leave_their_lists(store):
    record = {
        "observations": [{"text": "tea is cold", "at": 1}, {"text": "ok"}],
        "content": [{"text": "AKIA"}, {"text": "b"}],
    }
    out, _ = run(store, json.dumps(record).encode() + b"\n")

    assert json.loads(out) == {"observations": [{"text": "ok"}], "content": [{"text": "b"}]}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_document_loses_what_is_rejected_and_keeps_the_rest(store, indent):
    document = {
        "results": [{"id": "1", "memory": "tea is cold"}, {"id": "2", "memory": "tea is hot"}],
        "relations": [],
    }
    out, counts = run(store, json.dumps(document, indent=indent).encode())

    assert json.loads(out) == {"results": [{"id": "2", "memory": "tea is hot"}], "relations": []}
    assert counts == (1, 1, 0)


def test_a_document_over_many_lines_that_holds_nothing_rejected_passes_byte_for_byte(store):
    data = json.dumps([{"text": "tea is hot"}, {"text": "ok"}], indent=4).encode() + b"\n"

    assert run(store, data) == (data, (1, 0, 0))


def test_a_fact_block_and_a_list_of_strings_are_looked_at(store):
    assert json.loads(run(store, b'{"facts": ["tea is cold", "b"]}\n')[0]) == {"facts": ["b"]}
    assert json.loads(run(store, b'["tea is cold", "b"]\n')[0]) == ["b"]


def test_a_key_that_stands_twice_hides_nothing(store):
    assert run(store, b'{"text": "tea is cold", "text": "fine"}\n')[0] == b""
    assert run(store, b'{"observations": ["tea is cold"], "observations": []}\n')[0] == b""
    kept = b'{"text": "tea is hot", "text": "fine"}\n'
    assert run(store, kept)[0] == kept


def test_what_cannot_be_looked_at_is_not_let_through(store):
    deep = b"[" * 100_000 + b"]" * 100_000 + b"\n"
    out, counts = run(store, b"first\n" + deep + b"last\n")

    assert out == b"first\nlast\n"
    assert counts == (2, 1, 1)


def test_lines_that_are_no_json_are_counted_where_json_is_expected(store):
    out, counts = run(store, b'{"text": "ok"}\nnot json\ntea is cold\n', form="jsonl")

    assert out == b'{"text": "ok"}\nnot json\n'
    assert counts == (2, 1, 2)


def test_a_line_of_json_is_only_text_where_text_is_asked_for(store):
    line = b'{"text": "tea is cold"}\n'

    assert run(store, line, form="text")[0] == line
    assert run(store, line)[0] == b""


# -------------------------------------------------------------------- marks


def test_a_marked_record_stays_with_the_mark_in_it(store):
    out, counts = run(store, b'{"text": "tea is cold", "n": 1}\n{"text": "b"}\n', mark=True)

    first, second = out.splitlines()
    assert json.loads(first) == {"text": "tea is cold", "n": 1, "mem": "tombstoned"}
    assert second == b'{"text": "b"}'
    assert counts == (1, 1, 0)


def test_a_marked_element_of_a_list_stays_and_what_is_no_object_is_dropped(store):
    out, counts = run(store, b'{"results": [{"memory": "tea is cold"}], "facts": ["tea is cold"]}\n', mark=True)

    assert json.loads(out) == {"results": [{"memory": "tea is cold", "mem": "tombstoned"}], "facts": []}
    assert counts == (1, 2, 0)
    assert run(store, b"tea is cold\nb\n", mark=True)[0] == b"b\n"


# -------------------------------------------------------------------- limits


def test_a_scope_stops_what_it_rejected_itself_and_nothing_else(tmp_path):
    with memory(tmp_path / "m.db") as store:
        reject(store, add(store, "tea is cold"))
    with memory(tmp_path / "m.db", scope="user/bob") as store:
        assert run(store, b"tea is cold\n")[0] == b"tea is cold\n"
    with memory(tmp_path / "m.db") as store:
        reject(store, add(store, "milk is black"), everywhere=True)
        assert run(store, b"tea is cold\n")[0] == b""
    with memory(tmp_path / "m.db", scope="user/bob") as store:
        assert run(store, b"milk is black\n")[0] == b""


def test_what_was_lifted_passes(tmp_path):
    with memory(tmp_path / "m.db") as store:
        stone = reject(store, add(store, "tea is cold"))
        assert run(store, b"tea is cold\n")[0] == b""
        with store.write(ANNA, "it is") as write:
            write.lift(stone.id)
        assert run(store, b"tea is cold\n")[0] == b"tea is cold\n"


def test_a_pattern_that_takes_too_long_lets_nothing_through(tmp_path, monkeypatch):
    monkeypatch.setattr("memcli.store.evidence.PATTERN_TIMEOUT_S", 0.01)
    with memory(tmp_path / "m.db") as store:
        with store.write(ANNA, "slow") as write:
            write.tombstone(write.plan_pattern(Match.REGEX, "(a|aa)+$b"))
        assert run(store, b"a" * 200 + b"\nfine\n")[0] == b"fine\n"


def test_looking_writes_nothing(tmp_path):
    with memory(tmp_path / "m.db") as store:
        reject(store, add(store, "tea is cold"))
        before = store.head()
        assert run(store, b"tea is cold\nb\n")[0] == b"b\n"
        assert store.head() == before


def test_an_unknown_form_is_refused(store):
    with pytest.raises(UsageError, match="yaml is no format of this command"):
        sieve(store, form="yaml")
