"""`mem show`: what the memory holds. The command that scripts call most, so it imports next to nothing."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli.cli.door import Answer, emit, printing, refuse, store
from memcli.cli.options import AllScopes, AsJson, AsJsonl, Db, FactIds, KnownAt, Limit, Scope, ValidAt, instant
from memcli.facts import Fact, FactQuery, Json
from memcli.terms import READABLE, State

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.render.show_page import Whole
    from memcli.store.store import Store

PAGE = 100
"""How many facts a terminal shows where no limit is given."""


Html = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write one page of HTML in its place; `-` is standard output."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file that --html names.")]


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
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List what the memory holds, newest first, or show one fact in full.

    Without --all-states or --state only readable facts that are valid now are listed. With --html facts that are named
    come with their evidence, versions, derivations and log. Exit codes: 0 done, 4 no such fact, 10 to 14 the file, or
    the page, cannot be used.
    """
    put = None if html is None else page_file(html, force=force, as_json=as_json or as_jsonl)
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
        limit=_limit(limit, whole=as_json or as_jsonl or html is not None or not sys.stdout.isatty()),
    )
    with store(db, scope, all_scopes=all_scopes) as mem:
        found = [mem.get(fact, known_at=known, all_scopes=all_scopes) for fact in ids or ()]
        if put is not None:
            put(mem, *(_page_of(mem, found, known) if ids else _page(mem, query)))
        elif ids:
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


# --- a page ---


def page_file(path: str, *, force: bool, as_json: bool) -> "Callable[[Store, str, str], None]":
    """Return what puts a page where it was asked to go, and says what is in it.

    Raises:
        UsageError: A document was asked for too; or the file is there and may not be overwritten.
        NoSpace: Called, and it cannot be written.
    """
    if as_json:
        refuse("--html and --json exclude each other", "run it once for each")
    if path == "-":
        return _print_page
    from memcli.cli.outfile import OutFile

    # The memory file is for its owner alone, and so is what was read from it.
    place = OutFile(path, force=force, option="--html", private=True)

    def put(mem: "Store", page: str, holds: str) -> None:
        from memcli.text import visible

        place.spare(mem.path)
        place.write_text(page)
        emit(Answer(document=lambda: {"path": path}, screen=visible(f"wrote {path} · {holds}")))

    return put


def _print_page(_: "Store", page: str, _holds: str) -> None:
    """Print a page and nothing else, in the encoding that it names, whatever that of the output is."""
    with printing():
        sys.stdout.flush()
        sys.stdout.buffer.write(page.encode("utf-8", "backslashreplace"))


def _page(mem: "Store", query: FactQuery) -> tuple[str, str]:
    from memcli.clock import format_instant
    from memcli.render.show_page import facts_page
    from memcli.render.words import counted

    facts = list(mem.facts(query))
    tally = mem.tally()
    states = sorted(query.states or ())
    asked = [
        ("in", "every state" if query.states == frozenset(State) else ", ".join(states)),
        ("subject", query.subject or ""),
        ("source", query.source or ""),
        ("valid at", "" if query.valid_at is None else format_instant(query.valid_at)),
        ("known at", "" if query.known_at is None else format_instant(query.known_at)),
        ("behind", query.after or ""),
        ("at most", "" if query.limit is None else f"{query.limit:,}"),
    ]
    page = facts_page(
        facts,
        path=str(mem.path),
        scope=None if query.all_scopes else mem.scope,
        asked=[(name, words) for name, words in asked if words],
        now=mem.now(),
        readable=sum(number for state, number in tally.items() if state in READABLE),
        total=sum(tally.values()),
        waiting=mem.waiting(),
        short_ids=mem.short_ids(
            {name for fact in facts for name in (fact.id, *fact.derived_from, fact.superseded_by) if name}
        ),
    )
    return page, counted(len(facts), "fact")


def _page_of(mem: "Store", facts: Sequence[Fact], known_at: int | None) -> tuple[str, str]:
    from memcli.render.show_page import facts_in_full
    from memcli.render.words import counted

    wholes = [_whole(mem, fact, known_at) for fact in {fact.id: fact for fact in facts}.values()]
    named = {whole.fact.id for whole in wholes}
    for whole in wholes:
        named |= {
            other.id for side in (whole.parents, whole.children) for near in side.of.values() for other, _ in near
        }
        named |= {name for name in (whole.fact.superseded_by,) if name}
    page = facts_in_full(wholes, path=str(mem.path), known_at=known_at, now=mem.now(), short_ids=mem.short_ids(named))
    return page, counted(len(wholes), "fact")


def _whole(mem: "Store", fact: Fact, known_at: int | None) -> "Whole":
    from memcli.facts import EventQuery
    from memcli.render.show_page import Whole, as_known, kin

    events = mem.events(EventQuery(fact=fact.id, all_scopes=True))
    return Whole(
        fact=fact,
        history=as_known(mem.history(fact.id), known_at),
        excerpts=mem.excerpts(fact),
        parents=kin(fact.id, mem.parents),
        children=kin(fact.id, mem.children),
        events=[event for event in events if known_at is None or event.at <= known_at],
    )
