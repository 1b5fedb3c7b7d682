"""Who has read which messages: what the log is told, and what it gives back."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcli.bring import Extracted, extract_sources
from memcli.errors import Unreadable
from memcli.extract import RULES_READER, Reader, command_reader, persistent, said_read, stretches, was_read
from memcli.facts import Actor, Claim, EventQuery, Fact, Message
from memcli.store import Store
from memcli.store.check import check
from memcli.terms import Admission, Op, State
from tests.files import ANNA, EXTRACTOR, add, chat, cite, memory, take, texts
from tests.made import message


class Listener:
    """A reader that remembers what it was asked, and notes every message that it is given."""

    def __init__(self, *, fails: Sequence[int] = (), name: str = "listener", quote: str | None = None) -> None:
        self.calls: list[list[str]] = []
        self.known: list[list[str]] = []
        self.fails = fails
        self.quote = quote
        self.reader = Reader(name=name, read=self.read)

    def read(self, messages: Sequence[Message], known: Sequence[Fact]) -> list[Claim]:
        self.calls.append([item.id for item in messages])
        self.known.append(sorted(fact.text for fact in known))
        if len(self.calls) in self.fails:
            raise Unreadable("listener", "it fell asleep", hint="wake it")
        return [Claim(text=f"{item.content}!", evidence=cite(item.id, self.quote)) for item in messages]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as opened:
        yield opened


def run(store: Store, reader: Reader, *, actor: Actor = EXTRACTOR, **told: object) -> Extracted:
    return extract_sources(store, actor, None, (), reader=reader, **{"dry_run": False, **told})  # type: ignore[arg-type]


def read_until(store: Store) -> list[tuple[str | None, str | None]]:
    return [(event.target, event.reason) for event in store.events(EventQuery(op=Op.EXTRACT))]


def test_a_second_run_reads_only_what_is_new(store):
    ear = Listener()
    source = take(store, chat("one", "two"))
    run(store, ear.reader)
    again = run(store, ear.reader)
    take(store, chat("one", "two", "three"))
    grown = run(store, ear.reader)

    assert ear.calls == [[f"{source}#0", f"{source}#1"], [f"{source}#2"]]
    assert [(done.messages, done.skipped) for done in (again, grown)] == [(0, 2), (1, 2)]
    assert read_until(store) == [(source, "listener 0-1"), (source, "listener 2-2")]
    assert texts(store.facts()) == ["one!", "three!", "two!"]
    assert check(store) == []


def test_another_reader_begins_at_the_first_message(store):
    take(store, chat("one", "two"))
    run(store, Listener(name="first").reader)
    ear = Listener(name="second")
    run(store, ear.reader)

    assert [len(call) for call in ear.calls] == [2]


def test_everything_is_read_again_where_that_is_asked_for(store):
    ear = Listener()
    take(store, chat("one", "two"))
    run(store, ear.reader)
    done = run(store, ear.reader, again=True)

    assert (done.messages, done.skipped) == (2, 0)
    assert done.counts() == {"same": 2}


def test_what_was_read_without_a_claim_is_not_read_again(store):
    take(store, chat("nothing to note"))
    first, second = run(store, RULES_READER), run(store, RULES_READER)

    assert (first.messages, second.messages, second.skipped) == (1, 0, 1)
    assert read_until(store) == [("s1", f"{RULES_READER.name} 0-0")]


def test_a_dry_run_remembers_nothing(store):
    ear = Listener()
    take(store, chat("one"))
    before = len(store.events())
    done = run(store, ear.reader, dry_run=True)

    assert (done.messages, done.counts()) == (1, {"offered": 1})
    assert len(store.events()) == before
    assert run(store, ear.reader).messages == 1


def test_a_run_with_nothing_new_writes_nothing(store):
    ear = Listener()
    take(store, chat("one"))
    run(store, ear.reader)
    before = store.head()
    run(store, ear.reader)

    assert store.head() == before


def test_batches_are_of_one_source_and_never_larger_than_asked(store):
    ear = Listener()
    one, two = take(store, chat(*"abcde")), take(store, chat(*"xy"))
    run(store, ear.reader, batch=2)

    assert [[name.split("#") for name in call] for call in ear.calls] == [
        [[one, "0"], [one, "1"]],
        [[one, "2"], [one, "3"]],
        [[one, "4"]],
        [[two, "0"], [two, "1"]],
    ]
    assert ear.known[1] == ["a!", "b!"]


def test_without_a_size_a_command_gets_all_new_messages_at_once_and_the_known_facts(store):
    ear = Listener()
    add(store, "Milk is cold")
    take(store, chat(*"abc"))
    take(store, chat(*"xy"))
    run(store, ear.reader)

    assert [len(call) for call in ear.calls] == [5]
    assert ear.known == [["Milk is cold"]]


def test_what_was_read_before_a_failure_is_kept_and_the_next_run_goes_on(store):
    take(store, chat(*"abcdef"))
    failed = run(store, Listener(fails=(3,)).reader, batch=2)
    ear = Listener()
    done = run(store, ear.reader, batch=2)

    assert failed.problem is not None
    assert (failed.messages, failed.problem.why) == (4, "it fell asleep")
    assert "run it again" in (failed.problem.hint or "")
    assert [call[0] for call in ear.calls] == ["s1#4"]
    assert (done.messages, done.skipped, done.problem) == (2, 4, None)


def test_a_failure_at_the_first_call_changes_nothing(store):
    take(store, chat("one"))
    before = store.head()

    with pytest.raises(Unreadable, match="it fell asleep"):
        run(store, Listener(fails=(1,)).reader)
    assert store.head() == before


def test_a_call_that_failed_is_made_again_as_often_as_asked_and_no_more(store):
    take(store, chat("one"))
    twice, thrice = Listener(fails=(1,)), Listener(fails=(1, 2))

    with pytest.raises(Unreadable):
        run(store, persistent(thrice.reader, retries=1))
    assert len(thrice.calls) == 2
    assert run(store, persistent(twice.reader, retries=1)).messages == 1
    assert len(twice.calls) == 2


def test_a_quote_that_is_not_in_its_message_leaves_the_fact_waiting(store):
    take(store, chat("tea is hot"))
    run(store, Listener(name="honest", quote="tea is").reader)
    take(store, chat("milk is cold"))
    run(store, Listener(name="careless", quote="milk is warm").reader)

    found = {
        fact.text: fact.state for fact in map(store.get, [e.target or "" for e in store.events(EventQuery(op=Op.ADD))])
    }
    assert found["tea is hot!"] is State.ACCEPTED
    assert found["milk is cold!"] is State.TENTATIVE


def test_a_log_whose_words_were_erased_lets_the_messages_be_read_again(store):
    ear = Listener()
    take(store, chat("one"))
    run(store, ear.reader)
    assert run(store, ear.reader).messages == 0
    with store.write(ANNA, "privacy") as write:
        write.erase(write.plan_erase_value("one"), texts=("listener",))

    assert run(store, ear.reader).messages == 1


def test_the_log_does_not_hold_the_command_line():
    first, second = (command_reader(f"./read --key {key}", timeout_s=1.0).name for key in ("k-1", "k-2"))

    assert first != second
    assert "k-1" not in first
    assert " " not in first
    assert command_reader("./read --key k-1", timeout_s=9.0).name == first


@given(st.sets(st.integers(0, 60), max_size=40))
def test_what_the_log_is_told_gives_back_just_what_was_read(indexes: set[int]):
    said = [said_read("ear", *ends) for ends in stretches(message(at) for at in sorted(indexes))]
    known = was_read("ear", ["somebody's own reason", None, *said])

    assert {at for at in range(62) if known(at)} == indexes
    assert not any(was_read("eye", said)(at) for at in range(62))
