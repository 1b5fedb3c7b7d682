"""What holds of a memory file after any sequence of changes."""

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memcli import schema
from memcli.errors import Damaged, MemError
from memcli.facts import (
    Actor,
    AuditEvent,
    Claim,
    Conversation,
    EventQuery,
    Evidence,
    Fact,
    FactQuery,
    Micros,
    PolicyRule,
    Validity,
)
from memcli.store import Store, open_store
from memcli.store.check import check
from memcli.store.writer import Writer
from memcli.terms import FINAL, Admission, How, Kind, Match, Op, State
from tests import tx_files
from tests.files import ANNA, API, BOB, DAY, EXTRACTOR, SCRIPT, START, Clock, behind, chat, fresh

EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)
VALUES = ("Berlin", "berlin.", "Lisbon", "Porto", "Żywiec", "東京")
INTERVALS = (
    Validity(),
    Validity(start=START - 10 * DAY),
    Validity(end=START - 10 * DAY),
    Validity(start=START - 20 * DAY, end=START - 5 * DAY),
    Validity(start=START + 10_000 * DAY),
)
CHATS = (
    chat("I live in Berlin", "noted", "we moved to Lisbon"),
    chat("I live in Berlin", "noted", "we moved to Lisbon", "congratulations"),
    chat("Hello", "I live in  Berlin", "tea is hot"),
)
ACTORS = st.sampled_from((ANNA, ANNA, BOB, API, SCRIPT, EXTRACTOR))
NUMBERS = st.integers(0, 10_000)


class SetClock(Clock):
    """A clock that can also be held at one instant."""

    held: Micros | None = None

    def __call__(self) -> Micros:
        return super().__call__() if self.held is None else self.held


class Memory:
    """One file, and every change that may be asked of it; refusals are part of the game."""

    def __init__(self, folder: Path, admission: Admission) -> None:
        self.path = folder / "m.db"
        self.clock = SetClock()
        fresh(self.path, admission=admission, now=self.clock)
        self.store = open_store(self.path, now=self.clock)

    def facts(self) -> list[Fact]:
        return sorted(self.store.facts(EVERYTHING), key=lambda fact: fact.recorded_at)

    def pick(self, number: int) -> Fact | None:
        """Return one of the facts, erased ones included, by the order in which they came; names are chance."""
        names = [event.target for event in self.store.events(EventQuery(op=Op.ADD)) if event.target]
        return self.store.get(names[number % len(names)]) if names else None

    def change(self, actor: Actor, act: Callable[[Writer], object]) -> bool:
        """Return whether the change was made; only what has a sentence for a person may stop it."""
        try:
            with self.store.write(actor, "because") as write:
                act(write)
        except MemError as problem:
            assert problem.exit_code in {3, 4}, problem  # noqa: PT017 -- any other code is the bug that is looked for
            return False
        return True

    def claim(self, value: str, number: int, *, slot: bool, kind: Kind, how: int) -> Claim:
        parents: tuple[str, ...] = ()
        if how % 3 == 0 and (facts := self.facts()):
            parents = (facts[number % len(facts)].id,)
        sources = self.store.sources()
        evidence: tuple[Evidence, ...] = ()
        imported = [item for item in sources if item.format != "statement"]
        if how % 4 == 1 and imported:
            evidence = (Evidence(message=f"{imported[number % len(imported)].id}#{number % 3}"),)
        told: dict[str, Any] = {"subject": "anna", "attribute": "home city", "value": value} if slot else {}
        return Claim(
            text=f"Anna lives in {value}",
            kind=kind,
            validity=INTERVALS[number % len(INTERVALS)] if how % 2 else Validity(),
            derived_from=parents,
            how=How.INFERRED,
            evidence=evidence,
            **told,
        )

    def act(self, what: str, number: int, actor: Actor, value: str) -> bool:
        """Make one change of the given kind; everything else is chosen by the number."""
        if what == "add":
            kinds = (Kind.BELIEF, Kind.BELIEF, Kind.SUMMARY)
            claim = self.claim(value, number, slot=number % 2 == 0, kind=kinds[number % 3], how=number // 7)
            return self.change(actor, lambda write: write.add(claim))
        if what == "take":
            transcript = CHATS[number % len(CHATS)]
            return self.change(EXTRACTOR, lambda write: write.take(transcript, path="chat.json", digest="0" * 64))
        if what == "clock":
            self.clock.time += (number - 5_000) * DAY // 100
            return True
        if what in {"lift", "undo", "stop"}:
            return self.change(actor, lambda write: self.broad(write, what, number, value))
        seen, other = self.pick(number), self.pick(number // 11)
        if seen is None or other is None:
            return False
        return self.change(actor, lambda write: narrow(write, what, (seen, other), value, number))

    def broad(self, write: Writer, what: str, number: int, value: str) -> None:
        if what == "lift":
            write.lift(f"t{1 + number % 4}")
        elif what == "undo":
            events = self.store.events()
            write.undo(events[-1 - number % min(6, len(events))])
        else:
            plans = (lambda: write.plan_value(value), lambda: write.plan_pattern(Match.CONTAINS, value))
            write.tombstone(plans[number % 2]())


def narrow(write: Writer, what: str, facts: tuple[Fact, Fact], value: str, number: int) -> None:
    """Change one fact; the other is what it is merged into."""
    seen, other = facts
    validity = INTERVALS[number % len(INTERVALS)] if number % 2 else None
    acts: dict[str, Callable[[], object]] = {
        "correct": lambda: write.correct(seen, f"Anna lives in {value}", validity=validity),
        "retract": lambda: write.retract(seen),
        "dispute": lambda: write.dispute(seen),
        "verify": lambda: write.verify(seen),
        "accept": lambda: write.accept(seen),
        "keep": lambda: write.keep_both(seen),
        "merge": lambda: write.merge(seen, other),
        "reject": lambda: write.tombstone(write.plan_facts([seen], all_versions=number % 2 == 0)),
        "propose": lambda: write.propose(Op.RETRACT, seen, {"why": value}),
        "erase": lambda: write.erase(write.plan_erase_facts([seen])),
    }
    acts[what]()


CHANGES = (
    *("add",) * 8, *("correct",) * 4, "retract", "dispute", "verify", "accept", "accept", "keep", "merge", "reject",
    "propose", "take", "clock", "lift", *("undo",) * 3, "stop",
)  # fmt: skip
STEP = st.tuples(st.sampled_from(CHANGES), NUMBERS, ACTORS, st.sampled_from(VALUES))
STEPS = st.lists(STEP, min_size=4, max_size=25)
ADMISSIONS = st.sampled_from((Admission.DIRECT, Admission.REVIEW))

slow = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def content(fact: Fact) -> tuple[object, ...]:
    return (fact.text, fact.value, fact.valid, fact.state)


# -------------------------------------------------------------------- any sequence


class AnySequence(RuleBasedStateMachine):
    """Makes changes one after another and remembers what the file answered; at the end asks it all again."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.seen: dict[tuple[str, int, int], Fact] = {}
        self.answers: list[tuple[Micros, dict[str, tuple[str, State]]]] = []

    @initialize(admission=ADMISSIONS)
    def begin(self, admission: Admission) -> None:
        self.memory = Memory(self.folder, admission)

    @rule(step=STEP)
    def change(self, step: tuple[str, int, Actor, str]) -> None:
        self.memory.act(*step)
        self.remember()

    @rule(number=st.integers(0, 3))
    def erase(self, number: int) -> None:
        if number == 0 and self.memory.facts():
            self.memory.act("erase", number, ANNA, "x")
            self.remember()

    def remember(self) -> None:
        memory = self.memory
        for fact in memory.facts():
            for item in memory.store.history(fact.id):
                self.unchanged(item)
        newest = memory.store.events()[-1].at
        memory.clock.held = newest
        self.answers.append((newest, {fact.id: (fact.text, fact.state) for fact in memory.store.facts()}))
        memory.clock.held = None

    def unchanged(self, item: Fact) -> None:
        """The past never changes, but for when it was retired, and for words that were erased."""
        place = (item.id, item.version, item.revision)
        before = self.seen.setdefault(place, item)
        for name in ("state", "valid", "displaced", "authority", "recorded_at", "actor", "superseded_by", "kind"):
            assert getattr(before, name) == getattr(item, name)
        assert before.retired_at in {None, item.retired_at}
        assert item.erased_at is not None or (before.text, before.value) == (item.text, item.value)
        self.seen[place] = item

    @invariant()
    def one_readable_value_stands_in_a_slot_at_any_instant(self) -> None:
        readable = [fact for fact in self.memory.facts() if fact.readable and fact.slot is not None]
        for first in readable:
            for second in readable:
                if first.slot == second.slot and first.valid.overlaps(second.valid):
                    assert plain(first.value) == plain(second.value)

    @invariant()
    def nothing_readable_stands_on_what_was_withdrawn(self) -> None:
        store = self.memory.store
        for fact in self.memory.facts():
            if fact.readable:
                assert all(state not in FINAL - {State.SUPERSEDED} for state in ancestors(store, fact.id))

    @invariant()
    def the_state_is_the_fold_of_the_log(self) -> None:
        folded: dict[str, State] = {}
        for event in self.memory.store.events():
            if event.target is not None and event.to_state is not None:
                assert event.op is Op.ADD or folded.get(event.target) == event.from_state or event.op in JUMPS
                folded[event.target] = event.to_state
        assert {fact.id: fact.state for fact in self.memory.facts()}.items() <= folded.items()

    @invariant()
    def time_only_goes_forward(self) -> None:
        times = [event.at for event in self.memory.store.events()]
        assert all(first < second for first, second in pairwise(times))

    def teardown(self) -> None:
        try:
            assert check(self.memory.store) == []
            self.the_past_answers_as_it_did()
            views_before = dump_views(self.memory.path)
            self.memory.store.rebuild(ANNA)
            assert dump_views(self.memory.path) == views_before
            assert check(self.memory.store) == []
        finally:
            self.memory.store.close()
            shutil.rmtree(self.folder)

    def the_past_answers_as_it_did(self) -> None:
        store = self.memory.store
        for moment, answer in self.answers:
            then = {fact.id: fact for fact in store.facts(FactQuery(known_at=moment))}
            assert set(then) == set(answer)
            for name, (text, state) in answer.items():
                assert then[name].state == state
                assert then[name].text == text or then[name].erased_at is not None


JUMPS = frozenset({Op.CORRECT, Op.UNDO})


def plain(value: object) -> str:
    return str(value).casefold().rstrip(".")


def ancestors(store: Store, name: str) -> list[State]:
    found: list[State] = []
    for _, parent in store.parents(name):
        found += [parent.state, *ancestors(store, parent.id)]
    return found


def dump_views(path: Path) -> dict[str, list[Any]]:
    """Return everything that is derived, the terms of the full-text indexes included."""
    with behind(path) as conn:
        dumped = {
            table: conn.execute(f"select * from {table} order by 1, 2, 3").fetchall()
            for table in ("current", "tallies", "token_counts")
        }
        for table in ("words", "grams"):
            conn.execute(f"create virtual table temp.{table}_terms using fts5vocab(main, {table}, instance)")
            dumped[table] = conn.execute(f"select term, doc from temp.{table}_terms order by 1, 2").fetchall()
    return dumped


AnySequence.TestCase.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnySequence = AnySequence.TestCase


# -------------------------------------------------------------------- undo


@slow
@given(admission=ADMISSIONS, steps=STEPS)
def test_undoing_an_undo_restores_content_and_state(admission, steps):
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(Path(folder), admission)
        with memory.store as store:
            for step in steps:
                if step[0] != "clock":
                    memory.act(*step)
                last = newest_change(store)
                if last is None or last.target is None:
                    continue
                before = store.get(last.target)
                if not memory.change(ANNA, lambda write, event=last: write.undo(event)):
                    assert store.get(last.target) == before
                    continue
                undone = store.get(last.target)
                assert content(undone) != content(before)
                event = newest_change(store)
                assert event is not None
                assert event.op is Op.UNDO
                assert memory.change(ANNA, lambda write, event=event: write.undo(event))
                assert content(store.get(last.target)) == content(before)
            assert check(store) == []


def newest_change(store: Store) -> AuditEvent | None:
    changes = {Op.ADD, Op.CORRECT, Op.RETRACT, Op.VERIFY, Op.DISPUTE, Op.ACCEPT, Op.UNDO, Op.MERGE}
    return next((event for event in reversed(store.events()) if event.op in changes), None)


# -------------------------------------------------------------------- import


@slow
@given(contents=st.lists(st.text(max_size=12), min_size=1, max_size=8), cut=st.integers(1, 8))
def test_taking_a_transcript_twice_or_in_two_parts_equals_taking_it_once(contents, cut):
    whole = chat(*contents)
    with tempfile.TemporaryDirectory() as folder:
        once, twice, parts = (Memory(Path(folder, name), Admission.DIRECT) for name in made(folder))
        for memory, turns in (
            (once, (whole,)),
            (twice, (whole, whole)),
            (parts, (Conversation(format="openai", turns=whole.turns[:cut]), whole, whole)),
        ):
            for index, part in enumerate(turns):
                memory.change(
                    EXTRACTOR, lambda write, part=part, index=index: write.take(part, path=f"{index}", digest="")
                )
        dumped = [
            [(item.index, item.role, item.content) for item in memory.store.messages("s1")]
            for memory in (once, twice, parts)
        ]
        counts = [len(memory.store.sources()) for memory in (once, twice, parts)]
        events = [len(memory.store.events()) for memory in (once, twice)]
        for memory in (once, twice, parts):
            assert check(memory.store) == []
            memory.store.close()

        assert dumped[0] == dumped[1] == dumped[2]
        assert [content for _, _, content in dumped[0]] == contents
        assert counts == [1, 1, 1]
        assert events[0] == events[1] == 2


def made(folder: str) -> list[str]:
    for name in ("once", "twice", "parts"):
        Path(folder, name).mkdir()
    return ["once", "twice", "parts"]


# -------------------------------------------------------------------- tampering

UNSEALED = {("versions", "id"), ("messages", "id"), ("provenance", "id")}
"""Numbers of rows that say nothing by themselves; what refers to them is sealed."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed file in which every guarded table has rows, made by a fixed sequence of changes."""
    folder = tmp_path_factory.mktemp("full")
    memory = Memory(folder, Admission.DIRECT)
    chance = random.Random(7)
    for what in ("take", "add", "correct", "reject", "propose", *CHANGES * 2, "stop", "propose", "erase"):
        memory.act(what, chance.randrange(10_000), ANNA, chance.choice(VALUES))
    memory.change(ANNA, lambda write: write.set_policy(PolicyRule(kind="source", name="crm", value="0.7")))
    memory.change(ANNA, lambda write: write.add(Claim(text="tea is hot", confidence=0.8, rule="FACT:")))
    tx_files.fill(memory.store)
    assert check(memory.store) == []
    memory.store.close()
    with behind(memory.path) as conn:
        assert [
            table for table in schema.GUARDED if not conn.execute(f"select count(*) from {table}").fetchone()[0]
        ] == []
    return memory.path


def altered(value: object, declared: str, data: st.DataObject) -> object:
    """Return another value of the column's type, or NULL."""
    if data.draw(st.booleans(), label="null") and value is not None:
        return None
    if declared == "INTEGER":
        return data.draw(st.integers(-3, 3).filter(bool), label="by") + (value if isinstance(value, int) else 0)
    if declared == "REAL":
        return 0.123 if value != 0.123 else 0.5
    if declared == "BLOB":
        raw = bytearray(value if isinstance(value, bytes) else bytes(32))
        place = data.draw(st.integers(0, len(raw) - 1), label="byte")
        raw[place] ^= 1 << data.draw(st.integers(0, 7), label="bit")
        return bytes(raw)
    text = value if isinstance(value, str) else ""
    place = data.draw(st.integers(0, len(text)), label="place")
    return (
        text[:place] + data.draw(st.sampled_from("x1 é"), label="char") + text[place + data.draw(st.integers(0, 1)) :]
    )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_change_of_any_column_of_any_row_is_noticed(full, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.db")
        shutil.copy(full, path)
        change_one(path, data)

        try:
            with open_store(path) as store:
                assert check(store) != []
        except Damaged:
            pass


def change_one(path: Path, data: st.DataObject) -> None:
    """Change one column of one row with the triggers out of the way, and put those back as they were."""
    table = data.draw(st.sampled_from(schema.GUARDED), label="table")
    with behind(path, as_mem=True) as conn:
        columns = [(row[1], row[2].upper()) for row in conn.execute(f"pragma table_info({table})")]
        name, declared = data.draw(st.sampled_from([item for item in columns if (table, item[0]) not in UNSEALED]))
        rows = conn.execute(f"select * from {table}").fetchall()
        row = data.draw(st.sampled_from(rows), label="row")
        names = [item[0] for item in columns]
        value = row[names.index(name)]
        new = altered(value, declared, data)
        assume(new != value)
        where = " and ".join(f"{item} is ?" for item in names)
        triggers = conn.execute("select name, sql from sqlite_schema where type = 'trigger'").fetchall()
        conn.execute("pragma ignore_check_constraints = on")
        conn.execute("begin")
        for trigger, _ in triggers:
            conn.execute(f"drop trigger {trigger}")
        try:
            changed = conn.execute(f"update {table} set {name} = ? where {where}", (new, *row)).rowcount
        except sqlite3.IntegrityError:
            assume(False)
        assert changed == 1
        for _, sql in triggers:
            conn.execute(sql)
        conn.execute("commit")


def test_the_file_that_is_tampered_with_is_sound_before(full):
    with open_store(full) as store:
        assert check(store) == []
        assert "tea is hot" in [fact.text for fact in store.facts()]
