"""Memory files for tests: who acts on them, how facts and transcripts come in, and how a file is tampered with."""

import sqlite3
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memcli.facts import Actor, AuditEvent, Claim, Conversation, Evidence, Fact, Micros, Tombstone, Turn, Validity
from memcli.store import Store, create, open_store
from memcli.terms import DEFAULT_SCOPE, ActorKind, Admission, Channel, Op, Role

ANNA = Actor(name="anna", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
BOB = Actor(name="bob", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
SCRIPT = Actor(name="nightly", kind=ActorKind.SCRIPT, channel=Channel.PIPE)
API = Actor(name="agent", kind=ActorKind.SCRIPT, channel=Channel.API)
IMPORTER = Actor(name="importer", kind=ActorKind.IMPORTER, channel=Channel.IMPORT)
EXTRACTOR = Actor(name="extractor", kind=ActorKind.EXTRACTOR, channel=Channel.EXTRACT)
ORACLE = Actor(name="registry", kind=ActorKind.ORACLE, channel=Channel.ORACLE)

DAY = 24 * 3600 * 1_000_000
YEAR = 365 * DAY
START: Micros = 1_767_225_600_000_000
"""2026-01-01, when the clock of these tests begins."""


class Clock:
    """A clock that goes on by a second whenever it is read, and can be set."""

    def __init__(self, start: Micros = START) -> None:
        self.time = start

    def __call__(self) -> Micros:
        self.time += 1_000_000
        return self.time


_MADE: dict[tuple[Admission, str, Micros], deque[tuple[bytes, Micros]]] = defaultdict(deque)
APART = 4
"""How many new files of a kind are really made, so that those of one test are strangers with keys of their own."""


def fresh(path: Path, *, admission: Admission = Admission.REVIEW, scope: str = DEFAULT_SCOPE, now: Clock) -> None:
    """Make a new file by Anna, the fifth of a kind and every later one by copying; making one takes most of a test."""
    made = _MADE[admission, scope, now.time]
    if len(made) < APART:
        create(path, actor=ANNA, admission=admission, scope=scope, now=now)
        made.append((path.read_bytes(), now.time))
        return
    made.rotate(-1)
    content, now.time = made[-1]
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


@contextmanager
def memory(
    path: Path, *, admission: Admission = Admission.REVIEW, scope: str | None = None, now: Clock | None = None
) -> Iterator[Store]:
    """Make a file where none is, and give it opened."""
    clock = now or Clock()
    if not path.exists():
        fresh(path, admission=admission, now=clock)
    with open_store(path, scope=scope, now=clock) as store:
        yield store


def add(store: Store, text: str, *, actor: Actor = ANNA, **claim: Any) -> Fact:
    """Offer a statement and return the fact that it became."""
    with store.write(actor) as write:
        written = write.add(Claim(text=text, **claim))
    return store.get(written.fact.id)


def city(store: Store, name: str, *, actor: Actor = ANNA, **claim: Any) -> Fact:
    """Offer where Anna lives: a value of the slot anna · home city."""
    told = {"subject": "anna", "attribute": "home city", "value": name, **claim}
    return add(store, f"Anna lives in {name}", actor=actor, **told)


def correct(store: Store, seen: Fact, text: str, *, validity: Validity | None = None, actor: Actor = ANNA) -> Fact:
    """Correct a fact."""
    with store.write(actor, "it changed") as write:
        return write.correct(seen, text, validity=validity)


def reject(store: Store, *facts: Fact, everywhere: bool = False, all_versions: bool = False) -> Tombstone:
    """Reject the values of facts for good."""
    with store.write(ANNA, "never true") as write:
        return write.tombstone(write.plan_facts(facts, everywhere=everywhere, all_versions=all_versions))


def retract(store: Store, fact: Fact) -> Fact:
    """End a fact with no replacement."""
    with store.write(ANNA, "out of date") as write:
        return write.retract(store.get(fact.id))


def chat(*contents: str | Turn, session: str | None = None, format: str = "openai") -> Conversation:  # noqa: A002
    """Return a transcript in which user and assistant take turns."""
    roles = (Role.USER, Role.ASSISTANT)
    turns = tuple(
        item if isinstance(item, Turn) else Turn(role=roles[index % 2], content=item)
        for index, item in enumerate(contents)
    )
    return Conversation(format=format, turns=turns, session=session)


def take(store: Store, conversation: Conversation, *, path: str = "chat.json") -> str:
    """Keep a transcript and return the id of its source."""
    with store.write(IMPORTER) as write:
        return write.take(conversation, path=path, digest="0" * 64).source


def cite(message: str, quote: str | None = None) -> tuple[Evidence, ...]:
    """Return one message as evidence."""
    return (Evidence(message=message, quote=quote),)


def newest(store: Store, op: Op, fact: str | None = None) -> AuditEvent:
    """Return the newest event of a kind, of one fact or of any."""
    return [event for event in store.events() if event.op is op and fact in {None, event.target}][-1]


def texts(facts: Sequence[Fact] | Iterator[Fact]) -> list[str]:
    """Return what facts say, in alphabetical order."""
    return sorted(fact.text for fact in facts)


@contextmanager
def behind(path: Path, *, as_mem: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the file past the product; `as_mem` also registers the function that lets triggers pass."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        if as_mem:
            conn.create_function("mem_writer", 0, lambda: 1)
        yield conn


def count(path: Path, table: str) -> int:
    """Return how many rows a table has."""
    with behind(path) as conn:
        return int(conn.execute(f"select count(*) from {table}").fetchone()[0])
