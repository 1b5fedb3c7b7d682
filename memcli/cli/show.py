"""`mem show`: what the memory holds. The command that scripts call most, so it imports next to nothing."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli.cli.door import Answer, emit, refuse, store
from memcli.cli.options import AllScopes, AsJson, AsJsonl, Db, FactIds, KnownAt, Limit, Scope, ValidAt, instant
from memcli.facts import Fact, FactQuery, Json
from memcli.terms import READABLE, State

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store

PAGE = 100
"""How many facts a terminal shows where no limit is given."""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command()(show)


def show(
    ids: FactIds = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only this state; repeatable.")
    ] = None,
    all_states: Annotated[bool, typer.Option("--all-states", help="Also what is withheld.")] = False,
    subject: Annotated[str | None, typer.Option("--subject", metavar="S", help="Only about this subject.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="S", help="Only what came from this source.")
    ] = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Go on behind this fact.")] = None,
    limit: Limit = None,
    db: Db = None,
    scope: Scope = None,
    all_scopes: AllScopes = False,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List what the memory holds, newest first, or show one fact in full.

    Without --all-states or --state only readable facts that are valid now are listed. Exit codes: 0 done, 4 no such
    fact, 10 to 14 the file cannot be used.
    """
    known = instant(known_at, "--known-at")
    query = FactQuery(
        states=frozenset(State) if all_states else _states(state),
        subject=subject,
        source=source,
        valid_at=instant(valid_at, "--valid-at"),
        known_at=known,
        any_validity=all_states and valid_at is None,
        all_scopes=all_scopes,
        after=after,
        limit=_limit(limit, whole=as_json or as_jsonl or not sys.stdout.isatty()),
    )
    with store(db, scope, all_scopes=all_scopes) as mem:
        if ids:
            found = [mem.get(fact, known_at=known, all_scopes=all_scopes) for fact in ids]
            emit(_some(mem, found), as_json=as_json, as_jsonl=as_jsonl)
        else:
            emit(_listing(mem, query), as_json=as_json, as_jsonl=as_jsonl)


def _limit(given: int | None, *, whole: bool) -> int | None:
    if given is None:
        return None if whole else PAGE
    return given or None


def _states(names: Sequence[str] | None) -> frozenset[State] | None:
    if not names:
        return None
    for name in names:
        if name not in list(State):
            refuse(f"{name} is no state", "one of: " + ", ".join(State))
    return frozenset(State(name) for name in names)


def _listing(mem: "Store", query: FactQuery) -> Answer:
    def rows() -> Iterator[tuple[str, ...]]:
        from memcli.render.rows import facts_rows

        for fact in mem.facts(query):
            yield from facts_rows([fact], mem.short_ids([fact.id]))

    return Answer(
        document=lambda: list(_documents(mem.facts(query))),
        lines=lambda: _documents(mem.facts(query)),
        rows=rows,
        screen=lambda width: _facts_screen(mem, query, width),
        page=True,
    )


def _facts_screen(mem: "Store", query: FactQuery, width: int) -> "Screen":
    from memcli.render.memory import facts_screen

    facts = list(mem.facts(query))
    tally = mem.tally()
    return facts_screen(
        facts,
        path=str(mem.path),
        scope=mem.scope,
        readable=sum(number for state, number in tally.items() if state in READABLE),
        total=sum(tally.values()),
        waiting=mem.waiting(),
        short_ids=mem.short_ids(fact.id for fact in facts),
        sightings={fact.id: len(fact.provenance) for fact in facts},
        scope_column=query.all_scopes,
        width=width,
    )


def _some(mem: "Store", facts: Sequence[Fact]) -> Answer:
    from memcli.render.layout import Screen
    from memcli.render.memory import fact_screen

    def screen(width: int) -> "Screen":
        short, now = mem.short_ids(fact.id for fact in facts), mem.now()
        screens = [fact_screen(fact, now=now, short_ids=short, width=width) for fact in facts]
        return Screen(lines=tuple(line for shown in screens for line in shown.lines))

    def document() -> Json:
        documents = list(_documents(facts))
        return documents[0] if len(documents) == 1 else documents

    return Answer(document=document, screen=screen, lines=lambda: _documents(facts))


def _documents(facts: Iterable[Fact]) -> Iterator[Json]:
    from memcli import wire  # with JSON behind it, 3 ms that a listing does not need

    for fact in facts:
        yield wire.fact(fact)
