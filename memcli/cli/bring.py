"""Commands that bring things in: import and extract."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, actor, emit, note, refuse, store
from memcli.cli.options import AsJson, AsJsonl, Db, DryRun, Reason, Scope, Timeout, Who
from memcli.facts import Source
from memcli.terms import ActorKind, Channel


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command("import")(bring)
    app.command()(extract)


def bring(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Transcripts; `-` is standard input.")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="What the files are [looked at and told].")
    ] = "auto",
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="How their bytes are text [UTF-8].")
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the sources that are in the file.")] = False,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Keep transcripts as evidence. The same transcript again adds nothing; one that has grown adds what is new.

    Exit codes: 0 done, 5 a file could not be read or recognised (the others are kept), 10 to 14 the memory file cannot
    be used.
    """
    from memcli.bring import import_files
    from memcli.render.file import import_screen

    with store(db, scope) as mem:
        if listing:
            emit(_sources(mem.sources()), as_json=as_json, as_jsonl=as_jsonl)
            return
        if not files:
            refuse("import needs a file", "name a transcript, or `-` for standard input")
        by = actor(who, kind=ActorKind.IMPORTER, channel=Channel.IMPORT)
        done = import_files(mem, by, reason, files or [], format_=format_, encoding=encoding, dry_run=dry_run)
    emit(
        Answer(
            document=lambda: wire.import_document(done.reports, done.sources),
            screen=lambda width: import_screen(done.reports, done.sources, dry_run=dry_run, width=width),
        ),
        as_json=as_json,
    )
    if done.problem is not None:
        raise done.problem


def _sources(sources: Sequence[Source]) -> Answer:
    def rows() -> Iterator[tuple[str, ...]]:
        for item in sources:
            yield item.id, item.format, str(item.messages), item.path or item.title or "", item.session or ""

    def screen(width: int) -> str:
        from memcli.text import shorten, visible

        return "\n".join(shorten("  ".join(visible(cell) for cell in row), width) for row in rows())

    return Answer(document=lambda: [wire.source(item) for item in sources], rows=rows, screen=screen)


def extract(
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE...", help="Sources, by id, path or session [all].")
    ] = None,
    extractor: Annotated[
        str | None, typer.Option("--extractor", metavar="CMD", help="A program that reads JSON and prints JSON.")
    ] = None,
    timeout: Annotated[float, Timeout] = 60.0,
    rules: Annotated[bool, typer.Option("--rules", help="Print the built-in rules.")] = False,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Read facts from messages and offer them: by built-in rules, which need no model, or by any program.

    What a tombstone stops, or what was withdrawn on the same evidence, is refused and counted. Exit codes: 0 done,
    3 facts enter this file only through transactions, 4 no such source, 5 the program gave no answer.
    """
    from memcli.bring import extract_sources
    from memcli.extract import RULES

    if rules:
        emit(
            Answer(document=lambda: dict(RULES), rows=RULES.items, screen=_rules(RULES)),
            as_json=as_json,
        )
        return
    by = actor(who, kind=ActorKind.EXTRACTOR, channel=Channel.EXTRACT)
    with store(db, scope) as mem:
        done = extract_sources(mem, by, reason, sources or [], command=extractor, timeout_s=timeout, dry_run=dry_run)
        emit(
            Answer(document=done.document, screen=lambda width: done.text(mem.short_ids(done.ids()), width)),
            as_json=as_json,
        )
    if not as_json and not done.outcomes and sys.stderr.isatty():
        note("no rule fired; see the rules with `mem extract --rules`, or bring your own with --extractor")


def _rules(rules: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in rules.items())
