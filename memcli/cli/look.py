"""Commands that look: show, why, recall, context."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, emit, store
from memcli.cli.options import (
    AllScopes,
    AsJson,
    AsJsonl,
    Db,
    FactId,
    K,
    KnownAt,
    Scope,
    instant,
    whole,
)
from memcli.facts import EventQuery, Fact

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store

PAGE = 100
"""How many facts a terminal shows where no limit is given."""


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (why, recall, context):
        app.command()(command)


def why(
    fact_id: FactId,
    known_at: KnownAt = None,
    db: Db = None,
    scope: Scope = None,
    all_scopes: AllScopes = False,
    as_json: AsJson = False,
) -> None:
    """Show why the memory holds a fact: the quoted message in its context, its versions, derivations and log.

    Exit codes: 0 done, 4 no such fact, 10 to 14 the file cannot be used.
    """
    known = instant(known_at, "--known-at")
    with store(db, scope, all_scopes=all_scopes) as mem:
        fact = mem.get(fact_id, known_at=known, all_scopes=all_scopes)
        emit(_why(mem, fact, known), as_json=as_json)


def _why(mem: "Store", fact: Fact, known: int | None) -> Answer:
    from memcli.render.memory import why_screen

    versions = mem.versions(fact.id, known_at=known)
    excerpts = mem.excerpts(fact)
    parents = [(other, link.how) for link, other in mem.parents(fact.id)]
    children = [(other, link.how) for link, other in mem.children(fact.id)]
    events = mem.events(EventQuery(fact=fact.id, all_scopes=True))

    def screen(width: int) -> "Screen":
        others = [fact.id, *(other.id for other, _ in (*parents, *children))]
        return why_screen(
            fact,
            versions=versions,
            excerpts=excerpts,
            parents=parents,
            children=children,
            events=events,
            short_ids=mem.short_ids(others),
            width=width,
        )

    return Answer(
        document=lambda: wire.why_document(
            fact, versions=versions, provenance=excerpts, derived_from=parents, derived=children, events=events
        ),
        screen=screen,
        page=True,
    )


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words, in any order.")],
    k: Annotated[int, K] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Rank the readable facts of the scope by relevance, recency and importance.

    Exit codes: 0 done (also when nothing matches), 2 a query without words, 10 to 14 the file cannot be used.
    """
    from memcli.recall import recall as ranked
    from memcli.render.memory import recall_screen

    with store(db, scope) as mem:
        found = ranked(mem, query, k=k)

        def rows() -> Iterator[tuple[str, ...]]:
            short = mem.short_ids(item.fact.id for item in found)
            for item in found:
                yield short[item.fact.id], f"{item.score:.3f}", item.fact.subject or "", item.fact.text

        def screen(width: int) -> "Screen":
            return recall_screen(
                [(item.fact, item.score, item.parts) for item in found],
                query=query,
                short_ids=mem.short_ids(item.fact.id for item in found),
                explain=explain,
                width=width,
            )

        answer = Answer(
            document=lambda: [wire.recalled(item.fact, score=item.score, parts=item.parts) for item in found],
            rows=None if explain else rows,
            screen=screen,
            page=True,
        )
        emit(answer, as_json=as_json, as_jsonl=as_jsonl)


def context(
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="Words; without, the most important facts.")
    ] = None,
    k: Annotated[int, K] = 20,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", parser=whole("--budget", least=0), help="At most this many tokens."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="What counts tokens [the file's].")
    ] = None,
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
) -> None:
    """Print the block that would go into a prompt: fenced as data, within the budget; what was dropped goes to stderr.

    Exit codes: 0 done, 2 usage, 5 no vocabulary for the encoding, 10 to 14 the file cannot be used.
    """
    from memcli import tokens
    from memcli.cli.door import note
    from memcli.recall import context as assembled
    from memcli.render.words import counted

    with store(db, scope) as mem:
        counter = tokens.counter(encoding or mem.settings["encoding"])
        block = assembled(mem, query, k=k, budget_tokens=budget, count=counter, encoding=counter.name)
        document = wire.context_document(
            text=block.text, tokens=block.tokens, encoding=block.encoding, facts=block.facts, dropped=block.dropped
        )
        emit(Answer(document=lambda: document, screen=block.text), as_json=as_json)
        if not as_json:
            kept = f"{counted(len(block.facts), 'fact')}, {counted(block.tokens, 'token')} ({block.encoding})"
            note(f"{kept}, {len(block.dropped)} dropped" if block.dropped else kept)
            for fact_id, reason in block.dropped[:20]:
                note(f"dropped {fact_id[:8]}: {reason}")
