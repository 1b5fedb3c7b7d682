"""The audit trail: log, log verify, log head."""

from collections.abc import Iterator
from dataclasses import replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, emit, store
from memcli.cli.options import AllScopes, AsJson, AsJsonl, Db, Limit, Scope, instant
from memcli.cli.show import Force, Html, page_file
from memcli.facts import EventQuery, Json, LogVerdict

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store

MOST = 1000
"""How many events a terminal shows where no limit is given."""


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    group = typer.Typer(invoke_without_command=True, no_args_is_help=False, rich_markup_mode=None)
    group.callback()(log)
    group.command("verify")(verify)
    group.command("head")(head)
    about = cleandoc(log.__doc__ or "")
    app.add_typer(group, name="log", help=about, short_help=about.partition("\n")[0])


def log(
    ctx: typer.Context,
    fact: Annotated[str | None, typer.Option("--fact", metavar="ID", help="Only what happened to this fact.")] = None,
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="Only this kind of event.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="T", help="Only since then.")] = None,
    limit: Limit = None,
    db: Db = None,
    scope: Scope = None,
    all_scopes: AllScopes = False,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Show the audit trail: who changed what, when and why, refusals included.

    Exit codes: 0 done, 4 no such fact, 10 to 14 the file, or the page, cannot be used.
    """
    if ctx.invoked_subcommand is not None:
        return
    from memcli.store.store import op as kind

    put = None if html is None else page_file(html, force=force, as_json=as_json or as_jsonl)
    with store(db, scope, all_scopes=all_scopes) as mem:
        target = None if fact is None else _target(mem, fact, all_scopes=all_scopes)
        query = EventQuery(
            fact=target,
            op=None if op is None else kind(op),
            since=instant(since, "--since"),
            limit=limit or None,
            all_scopes=all_scopes,
        )
        if put is not None:
            put(mem, *_page(mem, query))
        else:
            emit(_events(mem, query, most=MOST if limit is None else None), as_json=as_json, as_jsonl=as_jsonl)


def _target(mem: "Store", name: str, *, all_scopes: bool) -> str:
    """Return the id of a fact from its beginning; ids of tombstones, sources and proposals stand as they are."""
    if name[:1] in "tsp" and name[1:].isdecimal():
        return name
    return mem.get(name, all_scopes=all_scopes).id


def _events(mem: "Store", query: EventQuery, *, most: int | None) -> Answer:
    """Return the events in every form; a screen has at most so many."""

    def rows() -> Iterator[tuple[str, ...]]:
        from memcli.clock import format_instant

        for item in mem.each_event(query):
            moved = f"{item.from_state or ''}>{item.to_state or ''}" if item.to_state else ""
            who = f"{item.actor.name} ({item.actor.channel})"
            yield item.id, format_instant(item.at), who, str(item.op), item.target or "", moved, item.reason or ""

    def screen(width: int) -> "Screen":
        from memcli.render.changes import log_screen
        from memcli.store.check import verify_log

        events = mem.events(query if most is None else replace(query, limit=most + 1))
        more = most is not None and len(events) > most
        events = events[1:] if more else events
        facts = {item.target for item in events if item.target and len(item.target) == 16}
        return log_screen(
            list(reversed(events)),
            now=mem.now(),
            verified=verify_log(mem, deep=False),
            short_ids=mem.short_ids(facts),
            more=more,
            width=width,
        )

    def documents() -> Iterator[Json]:
        return (wire.event(item) for item in mem.each_event(query))

    return Answer(document=lambda: list(documents()), lines=documents, rows=rows, screen=screen, page=True)


def _page(mem: "Store", query: EventQuery) -> tuple[str, str]:
    from memcli.clock import format_instant
    from memcli.render.log_page import log_page
    from memcli.render.words import counted
    from memcli.store.check import verify_log

    events = mem.events(query)
    verdict = verify_log(mem, deep=False)
    asked = [
        ("about", query.fact or ""),
        ("of kind", query.op or ""),
        ("since", "" if query.since is None else format_instant(query.since)),
        ("at most", "" if query.limit is None else f"{query.limit:,}"),
    ]
    page = log_page(
        list(reversed(events)),
        path=str(mem.path),
        scope=None if query.all_scopes else mem.scope,
        asked=[(name, words) for name, words in asked if words],
        now=mem.now(),
        verified=verdict,
        short_ids=mem.short_ids({item.target for item in events if item.target and len(item.target) == 16}),
    )
    chain = f"chain broken in {counted(len(verdict.findings), 'place')}" if verdict.findings else "chain verified"
    return page, f"{counted(len(events), 'event')}, {chain}"


def verify(
    head: Annotated[
        str | None, typer.Option("--head", metavar="H", help="A hash pinned elsewhere; the log must hold it.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the chain of the log and compare it with every row that it speaks of.

    Exit codes: 0 whole, 13 broken, cut or rewritten, 10 to 14 the file cannot be used.
    """
    from memcli.errors import Damaged, UsageError
    from memcli.store.check import verify_log

    pinned = None if head is None else head.strip()
    if pinned is not None and not pinned.startswith("blake2b:"):
        raise UsageError("--head is no hash of this log", hint="print one with `mem log head`; it begins with blake2b:")
    with store(db) as mem:
        verdict = verify_log(mem, head=pinned)
        emit(_verdict(verdict), as_json=as_json)
    if verdict.findings:
        places = len(verdict.findings)
        raise Damaged(
            f"the log does not hold together in {places} place{'' if places == 1 else 's'}",
            hint="keep this file as it is, and restore a backup whose head you know",
        )


def _verdict(verdict: LogVerdict) -> Answer:
    def screen(width: int) -> "Screen":
        from memcli.render.changes import verdict_screen

        return verdict_screen(verdict, width=width)

    return Answer(document=lambda: wire.log_verdict(verdict), screen=screen)


def head(db: Db = None, as_json: AsJson = False) -> None:
    """Print the hash of the newest event, to pin elsewhere: `mem log verify --head H` then notices a cut log.

    Exit codes: 0 done, 10 to 14 the file cannot be used.
    """
    with store(db) as mem:
        events, link = mem.head()
    emit(Answer(document=lambda: {"events": events, "head": link}, screen=link), as_json=as_json)
