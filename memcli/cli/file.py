"""Commands about the file itself: init, check, stats, migrate, rebuild, glossary."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, actor, ask_reason, bound_scope, database, emit, read_text, refuse, store
from memcli.cli.findings import OutputFormat, emit_found, form
from memcli.cli.options import AsJson, AsJsonl, Db, Reason, Scope, Who
from memcli.errors import OutOfScope
from memcli.facts import Actor, Finding, Observed
from memcli.terms import DEFAULT_ENCODING, DEFAULT_SCOPE, GLOSSARY, GLOSSARY_STATES, Admission, Op
from memcli.text import check_typed, visible

if TYPE_CHECKING:
    from memcli.store.store import Store


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (init, check, stats, migrate, rebuild, glossary):
        app.command()(command)


def init(
    admission: Annotated[
        Admission, typer.Option("--admission", help="Is a written item trusted at once?")
    ] = Admission.REVIEW,
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="What counts the tokens of facts.")
    ] = DEFAULT_ENCODING,
    db: Db = None,
    scope: Annotated[str | None, typer.Option("--scope", metavar="S", help="The default scope of the file.")] = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make a new memory file; refuses to overwrite.

    Exit codes: 0 done, 2 something is there already, 14 it cannot be made.
    """
    from memcli import tokens
    from memcli.store import create

    path, bound = database(db), bound_scope()
    if bound is not None and scope not in (None, bound):
        raise OutOfScope(f"this process is bound to {bound} and may not make {scope}", hint="unset MEM_SCOPE")
    tokens.counter(encoding)
    wanted = scope if scope is not None else bound if bound is not None else DEFAULT_SCOPE
    create(path, actor=actor(who), admission=admission, scope=wanted, encoding=encoding)
    with store(path) as mem:
        made = {"path": str(mem.path), "admission": str(mem.admission), "scope": mem.scope, "encoding": encoding}
    line = f"made {made['path']} · scope {made['scope']} · admission {made['admission']}"
    emit(Answer(document=lambda: dict(made), screen=visible(line)), as_json=as_json)


def check(
    residue: Annotated[
        str | None, typer.Option("--residue", metavar="TEXT", help="Is this text still anywhere in the file?")
    ] = None,
    orphans: Annotated[bool, typer.Option("--orphans", help="Also list sources that no fact came from.")] = False,
    output_format: OutputFormat = "text",
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even where something was found.")] = False,
    db: Db = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Check that the file holds together: SQLite, schema, log, every row's digest, invariants, dead references.

    Exit codes: 0 clean, 1 something was found, 10 to 14 it could not be told.
    """
    from memcli.store import check as checks
    from memcli.store import open_for_check

    asked = form(output_format, as_json=as_json, as_jsonl=as_jsonl)
    if residue is not None:
        residue = check_typed(residue, what="--residue")
    with open_for_check(database(db)) as mem:
        found = checks.residue(mem, residue) if residue is not None else checks.check(mem, orphans=orphans)
    clean = "the file is whole" if residue is None else "that text is nowhere in the file"
    _emit_findings(found, asked, database(db), clean)
    if found and not exit_zero:
        raise typer.Exit(1)


def _emit_findings(found: Sequence[Finding], asked: str, path: str, clean: str) -> None:
    from memcli.render.file import check_screen

    answer = Answer(
        document=lambda: [wire.finding(item) for item in found],
        screen=lambda width: check_screen(found, clean=clean, width=width),
        page=True,
    )
    observed = [Observed(code=item.code, place=item.place, message=item.message, path=path) for item in found]
    emit_found(answer, lambda: observed, asked, title="mem check", clean=clean)


def stats(db: Db = None, scope: Scope = None, as_json: AsJson = False) -> None:
    """Show sizes and counts of the file, and the states of the scope.

    Exit codes: 0 done, 10 to 14 the file cannot be used.
    """
    from memcli.render.file import stats_screen

    with store(db, scope) as mem:
        found = mem.stats()
    emit(
        Answer(document=lambda: wire.stats(found), screen=lambda width: stats_screen(found, width=width)),
        as_json=as_json,
    )


def migrate(db: Db = None, who: Who = None, as_json: AsJson = False) -> None:
    """Bring an older file to this mem's schema; a backup is made beside it first.

    Exit codes: 0 done or nothing to do, 12 the file is newer than this mem, 10 to 14 it cannot be used.
    """
    from memcli.store import migrate as upgrade

    applied, backup = upgrade(database(db), actor=actor(who))
    line = f"applied {', '.join(applied)}; the file as it was is {backup}" if applied else "up to date; nothing changed"
    emit(
        Answer(
            document=lambda: {"applied": list(applied), "backup": None if backup is None else str(backup)},
            screen=visible(line),
        ),
        as_json=as_json,
    )


def rebuild(
    view: Annotated[
        str | None, typer.Argument(metavar="[VIEW]", help="A view that is to be built anew [the file's own tables].")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="T", help="What the view should say [its parents' texts].")
    ] = None,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Drop and recreate what is derived: current states, tallies, full text, token counts. The result is the same.

    With the id of a view (summary, profile, index, shared copy) a new one is built from the parents that survive, in
    its place. Exit codes: 0 done, 2 usage, 3 refused (no view, over, none of its parents survives, or its words are
    tombstoned), 4 no such fact, 10 to 14 the file cannot be used.
    """
    by = actor(who)
    if view is not None:
        _rebuild_view(view, text, by, ask_reason(Op.REBUILD, reason), store(db, scope), as_json=as_json)
        return
    if text is not None:
        refuse("--text needs a view", "name one by its id")
    with store(db, scope) as mem:
        made = mem.rebuild(by)
    line = "rebuilt " + ", ".join(f"{name} {number:,}" for name, number in made.items())
    emit(Answer(document=lambda: dict(made), screen=line), as_json=as_json)


def _rebuild_view(name: str, text: str | None, by: Actor, why: str | None, opened: "Store", *, as_json: bool) -> None:
    said = None if text is None else read_text(text, what="the text")
    with opened as mem:
        seen = mem.get(name)
        with mem.write(by, why) as write:
            made = write.rebuild_view(seen, said)
        fact, short = mem.get(made.id), mem.short_ids([seen.id, made.id])
    line = f"rebuilt {short[seen.id]} as {short[made.id]} · {fact.state}"
    emit(Answer(document=lambda: wire.fact(fact), screen=visible(line)), as_json=as_json)


def glossary(as_json: AsJson = False) -> None:
    """Print the words that mem uses, each once.

    Exit codes: 0 done.
    """
    from memcli.render.file import glossary_screen

    words = {**GLOSSARY, **{str(state): text for state, text in GLOSSARY_STATES.items()}}

    def rows() -> Iterator[tuple[str, str]]:
        yield from sorted(words.items())

    emit(
        Answer(
            document=lambda: dict(sorted(words.items())),
            rows=rows,
            screen=lambda width: glossary_screen(width=width),
            page=True,
        ),
        as_json=as_json,
    )
