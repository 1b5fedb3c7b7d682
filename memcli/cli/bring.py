"""Commands that bring things in: import and extract."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, actor, emit, note, refuse, store
from memcli.cli.options import AsJson, AsJsonl, Db, DryRun, Reason, Scope, Timeout, Who, whole
from memcli.facts import Actor, Source
from memcli.terms import ActorKind, Channel
from memcli.text import check_typed

if TYPE_CHECKING:
    from memcli.bring import Brought
    from memcli.extract import Reader

if TYPE_CHECKING:
    from memcli.store.store import Store


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command("import")(bring)
    app.command()(extract)


def bring(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Transcripts, memory stores, archives, folders; `-` is standard input."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="What the files are [looked at and told].")
    ] = "auto",
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="How their bytes are text [UTF-8].")
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Take back an export of mem as it was, into an empty file.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the sources that are in the file.")] = False,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Keep transcripts as evidence, and what memory stores hold as facts; a folder is every file in it.

    The same file again adds nothing; one that has grown adds what is new. What a tombstone stops is refused and
    counted; an export of mem is decided anew too, unless a person takes it back whole with --restore. Exit codes: 0
    done, 3 facts enter this file only through transactions, or a restore is refused, 5 a file could not be read or
    recognised (the others are kept), 10 to 14 the memory file cannot be used.
    """
    with store(db, scope) as mem:
        if listing:
            emit(_sources(mem.sources()), as_json=as_json, as_jsonl=as_jsonl)
            return
        if not files:
            refuse("import needs a file", "name a transcript, or `-` for standard input")
        if restore:
            _restore(mem, who, reason, files or [], dry_run=dry_run, as_json=as_json)
            return
        by = actor(who, kind=ActorKind.IMPORTER, channel=Channel.IMPORT)
        done = _take(mem, by, reason, files or [], format_=format_, encoding=encoding, dry_run=dry_run)
    _report(done, dry_run=dry_run, as_json=as_json)


def _take(
    mem: "Store",
    by: Actor,
    reason: str | None,
    files: Sequence[str],
    *,
    format_: str,
    encoding: str | None,
    dry_run: bool,
) -> "Brought":
    from memcli.bring import import_files
    from memcli.render.progress import counting

    with counting() as tell:
        return import_files(mem, by, reason, files, format_=format_, encoding=encoding, dry_run=dry_run, progress=tell)


def _report(done: "Brought", *, dry_run: bool, as_json: bool) -> None:
    """Print what became of the files.

    Raises:
        Unreadable: One of them could not be read; what was taken from the others is kept.
    """
    from memcli.render.file import import_screen

    emit(
        Answer(
            document=lambda: wire.import_document(done.reports, done.sources),
            screen=lambda width: import_screen(done.reports, done.sources, dry_run=dry_run, width=width),
        ),
        as_json=as_json,
    )
    if done.problem is not None:
        raise done.problem


def _restore(
    mem: "Store", who: str | None, reason: str | None, files: Sequence[str], *, dry_run: bool, as_json: bool
) -> None:
    from memcli.render.file import restored_line
    from memcli.restore import restore_file

    if len(files) != 1 or dry_run:
        refuse("--restore takes one export, and no --dry-run", "it is checked to its last line before a row is written")
    done = restore_file(mem, actor(who), reason, files[0])
    emit(Answer(document=lambda: wire.restored(done), screen=restored_line(done)), as_json=as_json)


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
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="A language model that the llm library knows.")
    ] = None,
    timeout: Annotated[float, Timeout] = 60.0,
    retries: Annotated[
        int, typer.Option("--retries", metavar="N", parser=whole("--retries", least=0), help="Ask again so often [0].")
    ] = 0,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", parser=whole("--batch", least=1), help="At most N messages at a time."),
    ] = None,
    again: Annotated[bool, typer.Option("--all", help="Read also messages that were read before.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Print the built-in rules.")] = False,
    print_prompt: Annotated[bool, typer.Option("--print-prompt", help="Print what a language model is told.")] = False,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Read facts from new messages and offer them: by built-in rules, by any program, or by a language model.

    What was read by whom is kept in the log, so that the next run goes on from there. What a tombstone stops, or what
    was withdrawn on the same evidence, is refused and counted. Exit codes: 0 done, 3 facts enter this file only through
    transactions, 4 no such source, 5 the program or the model gave no answer; what was read before that is kept.
    """
    from memcli.bring import extract_sources

    if rules or print_prompt:
        emit(_rules() if rules else _prompt(), as_json=as_json)
        return
    by = actor(who, kind=ActorKind.EXTRACTOR, channel=Channel.EXTRACT)
    with store(db, scope) as mem:
        reader = _reader(extractor, model, timeout_s=timeout, retries=retries)
        done = extract_sources(mem, by, reason, sources or [], reader=reader, batch=batch, again=again, dry_run=dry_run)
        emit(
            Answer(document=done.document, screen=lambda width: done.text(mem.short_ids(done.ids()), width)),
            as_json=as_json,
        )
    if done.problem is not None:
        raise done.problem
    if not as_json and not done.outcomes and sys.stderr.isatty():
        note("no rule fired; see the rules with `mem extract --rules`, or bring your own with --extractor")


def _reader(command: str | None, model: str | None, *, timeout_s: float, retries: int) -> "Reader":
    from memcli.extract import RULES_READER, command_reader, persistent

    if command is not None and model is not None:
        refuse("--extractor and --model exclude each other", "leave one of them out")
    if model is not None:
        from memcli.integrations.llm_extractor import model_reader

        return persistent(model_reader(check_typed(model, what="the model"), timeout_s=timeout_s), retries=retries)
    if command is not None:
        return persistent(command_reader(command, timeout_s=timeout_s), retries=retries)
    return RULES_READER


def _rules() -> Answer:
    from memcli.extract import RULES

    screen = "\n".join(f"{name}: {text}" for name, text in RULES.items())
    return Answer(document=lambda: dict(RULES), rows=RULES.items, screen=screen)


def _prompt() -> Answer:
    from memcli.integrations.llm_extractor import PROMPT

    return Answer(document=lambda: {"prompt": PROMPT}, screen=lambda _width: PROMPT)
