"""Everything that a reader can ask of a file, and whether an answer says anything that was not so."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from memcli.errors import Damaged, NotFound
from memcli.facts import EventQuery, FactQuery
from memcli.recall import context, recall
from memcli.store import Store, open_store
from memcli.terms import READABLE, State
from tests.conformance.sample import OTHER
from tests.files import START, YEAR

REFUSED, SAME, LESS, FALSE, CRASHED = "refused", "same", "less", "false", "crashed"
OPENING = ": open"
UNSAID = frozenset({"reason", "before", "after"})
"""What may be absent without saying anything else by that: of a `valid_to`, say, absence is a claim."""

DERIVED = frozenset({"tokens", "encoding", "messages", "hits"})
"""Counts, which views hold or a query makes; they are no row of a guarded table."""

_NAMELESS = re.compile(r"#\d+")

QUERIES = ("anna", "tea")
NOW = START + YEAR


def answers(path: Path, names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the answer to every question in every scope as it was given, or the kind of error that was raised.

    Args:
        names: By scope, the ids of the facts that a reader has seen there.
    """
    found: dict[str, Any] = {}
    for scope in ("default", OTHER):
        try:
            with open_store(path, scope=scope, now=lambda: NOW) as store:
                for question, ask in questions(store, names[scope]):
                    found[f"{scope}: {question}"] = _asked(ask)
        except (Damaged, NotFound) as problem:
            found[scope + OPENING] = type(problem)
    return found


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (Damaged, NotFound, LookupError, TypeError, ValueError, AttributeError) as problem:
        return type(problem)  # the error itself would hold on to the rows that were being read, and so to the file


def seen(path: Path) -> dict[str, list[str]]:
    """Return by scope the ids of the facts that a reader can see."""
    found = {}
    for scope in ("default", OTHER):
        with open_store(path, scope=scope) as store:
            query = FactQuery(states=frozenset(State), any_validity=True)
            found[scope] = sorted(fact.id for fact in store.facts(query))
    return found


def questions(store: Store, names: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what show, why, recall, context, log and the commands of transactions ask."""
    for query in (
        FactQuery(),
        FactQuery(states=frozenset(State), any_validity=True),
        FactQuery(known_at=NOW),
        FactQuery(valid_at=NOW, any_validity=True),
    ):
        yield f"show {query}", lambda query=query: list(store.facts(query))
    for name in names:
        yield f"why {name}", lambda name=name: _why(store, name)
    for words in QUERIES:
        yield f"recall {words}", lambda words=words: [item.fact for item in recall(store, words, now=NOW)]
        yield f"context {words}", lambda words=words: _block(store, words)
    yield "context", lambda: _block(store, None)
    yield "log", store.events
    yield from _more(store)


def _more(store: Store) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "sources", store.sources
    yield "messages", lambda: [store.messages(source.id) for source in store.sources()]
    yield "tombstones", lambda: store.tombstones(lifted=True)
    yield "policy", store.policy
    yield "proposals", store.proposals
    yield "transactions", store.transactions
    yield "receipts", lambda: [store.receipt(f"r{number}") for number in (1, 2, 3)]
    yield "actions", store.actions
    yield "effects", store.effects
    yield "repairs", store.repairs


def _why(store: Store, name: str) -> list[Any]:
    """Return what the command `why` shows, asked for in its order."""
    fact = store.get(name)
    return [
        fact,
        store.versions(name),
        store.history(name),
        [store.excerpts(item) for item in store.versions(name)],
        store.parents(name),
        store.children(name),
        store.events(EventQuery(fact=name, all_scopes=True)),
    ]


def _block(store: Store, words: str | None) -> list[str]:
    block = context(store, words, budget_tokens=None, count=len, encoding="characters", now=NOW)
    return block.text.splitlines()


def plain(value: Any) -> Any:
    """Return an answer as dicts, lists and scalars."""
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value) if item.name not in DERIVED}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class Judge:
    """Compares what a file answers with what it answered before it was edited."""

    def __init__(self, before: Mapping[str, Any]) -> None:
        self.before = before
        self._plain = {question: plain(answer) for question, answer in before.items()}
        self._genuine = {_revision(item): item for item in _dicts(list(self._plain.values())) if _revision(item)}

    def verdicts(self, after: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the questions by what became of their answers."""
        if any(question.endswith(OPENING) for question in after):
            return {REFUSED: list(after)}
        found: dict[str, list[str]] = {}
        for question, answer in after.items():
            found.setdefault(self._judged(question, answer), []).append(question)
        return found

    def _judged(self, question: str, after: Any) -> str:
        """Return whether an answer is refused, the same, less than it was, or says what was not so."""
        before = self.before[question]
        if after is Damaged:
            return REFUSED
        if before == after or (not isinstance(after, type) and plain(before) == plain(after)):
            return SAME
        if isinstance(after, type) and after is not NotFound:
            return CRASHED
        if after is NotFound:
            return LESS
        return LESS if before is not NotFound and self.within(self._plain[question], plain(after)) else FALSE

    def within(self, before: Any, after: Any) -> bool:
        """Return whether everything that the answer says was said before, in whatever order."""
        if isinstance(before, dict) and isinstance(after, dict):
            if _revision(after) not in {None, _revision(before)} and before.get("id") == after["id"]:
                return self._is_over(after)
            return all(name in before and self._told(name, before[name], item) for name, item in after.items())
        if isinstance(before, list) and isinstance(after, list):
            return self._among(list(before), after)
        return bool(before == after)

    def _told(self, name: str, before: Any, after: Any) -> bool:
        if after is None and name in UNSAID:
            return True
        # Where the row that has its name is gone, a scope is shown by its number.
        return self.within(before, after) or (name == "scope" and _NAMELESS.fullmatch(str(after)) is not None)

    def _among(self, left: list[Any], after: list[Any]) -> bool:
        for wanted in after:
            at = next((index for index, item in enumerate(left) if self.within(item, wanted)), None)
            if at is None:
                return False
            del left[at]
        return True

    def _is_over(self, fact: dict[str, Any]) -> bool:
        """Return whether a fact stands as it once stood, and says of itself that this is over."""
        known = self._genuine.get(_revision(fact))
        return known is not None and fact["state"] not in READABLE and self.within(known, fact)


def _revision(value: Any) -> Any:
    return (
        (value["id"], value["version"], value["revision"]) if isinstance(value, dict) and "revision" in value else None
    )


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _dicts(item)
