"""Commands that take things out: export, filter and diff."""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memcli.cli.door import Answer, actor, database, emit, note, printing, refuse, store
from memcli.cli.options import AllScopes, AsJson, Db, Scope
from memcli.cli.outfile import OutFile
from memcli.facts import Fact, Json
from memcli.terms import State

if TYPE_CHECKING:
    from memcli.diff import Difference, Side, Stone
    from memcli.exchange.secrets import Secrets
    from memcli.exchange.write import Export
    from memcli.render.layout import Screen
    from memcli.store.copy import Copy
    from memcli.store.store import Store

LISTED = 20
"""How many places of secrets are written out."""

_GIT_WORDS = (7, 9)
"""How many words git gives a diff driver; two more where a file was renamed."""


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(export)
    app.command("filter")(filter_)
    app.command()(diff)


# -------------------------------------------------------------------- export


def export(
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="mem, mcp, mem0, llamaindex or markdown.")
    ] = "mem",
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file [standard output].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    state: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only this readable state; repeatable.")
    ] = None,
    fail_on_secrets: Annotated[
        bool, typer.Option("--fail-on-secrets", help="Write nothing where a password or key is found.")
    ] = False,
    db: Db = None,
    scope: Scope = None,
    all_scopes: AllScopes = False,
) -> None:
    """Write what the memory holds: complete in mem's own format, tombstones included, or for another tool.

    Other tools get what is readable and valid now; what stays behind is counted on standard error. Exit codes: 0 done,
    1 a secret was found (--fail-on-secrets), 2 usage, 10 to 14 the memory file cannot be used or FILE not be written.
    """
    from memcli.exchange.secrets import looking
    from memcli.exchange.write import Export
    from memcli.store.copy import Copy

    with store(db, scope, all_scopes=all_scopes) as mem, looking() as secrets:
        place = _place(output, mem.path, force=force)
        copy = Copy(mem, all_scopes=all_scopes)
        with copy.snapshot():
            out = Export(copy, format_, states=_states(state), secrets=secrets)
            if fail_on_secrets:
                if not secrets.looks:
                    refuse("--fail-on-secrets needs detect-secrets", "install it: pip install 'memcli[secrets]'")
                for _ in out.chunks():
                    pass
                if secrets.found:
                    _tell_secrets(secrets)
                    note("nothing was written")
                    raise typer.Exit(1)
            _write(out.chunks(), place)
    _tell(out, format_)
    _tell_secrets(secrets)


def _states(names: list[str] | None) -> frozenset[State] | None:
    if not names:
        return None
    for name in names:
        if name not in list(State):
            refuse(f"{name} is no state", "one of: " + ", ".join(State))
    return frozenset(State(name) for name in names)


def _place(output: str | None, memory: Path, *, force: bool) -> OutFile | None:
    """Return the file to write to, None for standard output."""
    if output in (None, "-"):
        return None
    # It holds the key of the tombstones, and maybe what only its owner should read.
    place = OutFile(output or "", force=force, option="-o", private=True)
    place.spare(memory)
    return place


def _write(chunks: Iterable[bytes], place: OutFile | None) -> None:
    """Write to standard output, or to a file."""
    if place is not None:
        place.write(chunks)
        return
    with printing():
        sys.stdout.flush()
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()


def _tell(out: "Export", name: str) -> None:
    from memcli.render.words import counted

    note(f"exported {counted(out.facts, 'fact')} as {name}")
    if out.withheld:
        kept = ", ".join(f"{number:,} {why}" for why, number in out.withheld.items())
        note(f"facts that stay behind: {kept}")
    left = [counted(number, one, many) for (one, many), number in out.left.items() if number]
    left += [f"{part} of {counted(number, 'fact')}" for part, number in out.lacking.items()]
    if left:
        note(f"not in the export: {', '.join(left)}")


def _tell_secrets(secrets: "Secrets") -> None:
    if not secrets.looks:
        note("secrets were not looked for: pip install 'memcli[secrets]' does")
        return
    places = list(secrets.found)
    for place, kind in places[:LISTED]:
        see = "" if "#" in place else f"; see it with `mem why {place[:8]}`"
        note(f"warning: {place} may hold a secret ({kind}){see}")
    if len(places) > LISTED:
        note(f"warning: and {len(places) - LISTED:,} more")


# -------------------------------------------------------------------- filter


def filter_(
    format_: Annotated[str, typer.Option("--format", metavar="NAME", help="auto, text, jsonl or json.")] = "auto",
    mark: Annotated[
        bool, typer.Option("--mark", help='Keep stopped JSON records, with "mem": "tombstoned" in them.')
    ] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where something was stopped.")] = False,
    db: Db = None,
    scope: Scope = None,
) -> None:
    """Read standard input, and write what no tombstone stops to standard output, byte for byte.

    For the pipelines of other tools: lines of text, JSON Lines or one JSON document. Exit codes: 0 done, 1 something
    was stopped (--exit-code), 2 usage, 10 to 14 the memory file cannot be used, and nothing passed.
    """
    from memcli.exchange.sieve import Sieve

    if sys.stdin is None:
        refuse("there is no standard input", "pipe something into it")
    with store(db, scope) as mem:
        sieve = Sieve(mem.planner(actor(None)).stopped, form=format_, mark=mark)
        with printing():
            sys.stdout.flush()
            for piece in sieve.pieces(sys.stdin.buffer):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
    unread = f", {sieve.unread:,} could not be read as JSON" if sieve.unread else ""
    note(f"{sieve.passed:,} passed, {sieve.stopped:,} {'marked' if mark else 'stopped'}{unread}")
    if exit_code and sieve.stopped:
        raise typer.Exit(1)


# -------------------------------------------------------------------- diff


def diff(
    files: Annotated[
        list[str], typer.Argument(metavar="A B", help="Two memory files; with --git, what git gives a diff driver.")
    ],
    git: Annotated[bool, typer.Option("--git", help="Be the diff driver of git, which gives seven words.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where they differ.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, as for a pull request.")] = False,
    scope: Scope = None,
    all_scopes: AllScopes = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed between two memory files, fact by fact: by id, then by slot, then by value.

    For git: `git config diff.mem.command 'mem diff --git'`, and `*.db diff=mem` in .gitattributes. Exit codes: 0 equal,
    or different without --exit-code, 1 they differ (--exit-code), 2 usage, 10 to 14 one of them cannot be used.
    """
    if markdown and as_json:
        refuse("--markdown and --json exclude each other", "leave one of them out")
    names, places = _pair(files, git=git)
    with ExitStack() as stack:
        sides = [_Side(stack, place, scope, all_scopes=all_scopes) for place in places]
        found = _compared(sides[0], sides[1], scoped=all_scopes)
        emit(_answer(found, sides, names, markdown=markdown, all_scopes=all_scopes), as_json=as_json)
        if not all_scopes and len({side.scope for side in sides if side.scope is not None}) > 1:
            note(f"compared {_scopes(sides, all_scopes=False)}; name one with --scope")
    if exit_code and found:
        raise typer.Exit(1)


def _pair(files: list[str], *, git: bool) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what the two files are called, and where they are."""
    if git:
        if len(files) not in _GIT_WORDS:
            refuse("git gives a diff driver seven words", "set it up: git config diff.mem.command 'mem diff --git'")
        name, old, _, _, new = files[:5]
        later = files[7] if len(files) > _GIT_WORDS[0] else name
        return (f"a/{name}", f"b/{later}"), (old, new)
    if len(files) != 2:
        refuse("diff takes two memory files", "try `mem diff before.db after.db`")
    return (files[0], files[1]), (files[0], files[1])


class _Side:
    """One of the two memories; `/dev/null` is one that holds nothing, as git says that there was none."""

    def __init__(self, stack: ExitStack, place: str, scope: str | None, *, all_scopes: bool) -> None:
        from memcli.store.copy import Copy as Opened

        self.memory: Store | None = None
        self.copy: Copy | None = None
        self.scope: str | None = None
        if place != os.devnull:
            self.memory = stack.enter_context(store(database(place), scope, all_scopes=all_scopes))
            self.copy = Opened(self.memory, all_scopes=all_scopes)
            stack.enter_context(self.copy.snapshot())
            self.scope = self.memory.scope

    def facts(self) -> "Side":
        """Return each fact in its newest version."""
        from memcli.diff import Side

        nothing: dict[int, Fact] = {}
        if self.copy is None:
            return Side(seen=(), fact=nothing.__getitem__)
        return Side(seen=self.copy.seen(), fact=self.copy.fact)

    def stones(self) -> "list[Stone]":
        """Return the tombstones that hold."""
        return [] if self.copy is None else self.copy.stones()

    def whole(self, fact: Fact) -> Fact:
        """Return a fact with its evidence."""
        return fact if self.memory is None else self.memory.get(fact.id, all_scopes=True)

    def short_ids(self, facts: Iterable[Fact]) -> Mapping[str, str]:
        """Return short forms of ids."""
        return {} if self.memory is None else self.memory.short_ids(fact.id for fact in facts)


def _compared(before: _Side, after: _Side, *, scoped: bool) -> "Difference":
    from memcli.diff import compare_sides

    return compare_sides(before.facts(), after.facts(), stones=(before.stones(), after.stones()), scoped=scoped)


def _answer(
    found: "Difference",
    sides: list[_Side],
    names: tuple[str, str],
    *,
    markdown: bool,
    all_scopes: bool,
) -> Answer:
    from memcli.diff import document
    from memcli.render.diff import diff_markdown, diff_screen

    first, second = sides
    short = _short(found, first, second)
    scopes = _scopes(sides, all_scopes=all_scopes)

    def documents() -> Json:
        seen = (None, None) if all_scopes else (first.scope, second.scope)
        return document(found.whole(first.whole, second.whole), paths=names, scopes=seen)

    def screen(width: int) -> "Screen | str":
        if markdown:
            return diff_markdown(found, paths=names, scopes=scopes, short_ids=short)
        return diff_screen(found, paths=names, scopes=scopes, short_ids=short, width=width)

    return Answer(document=documents, screen=screen, page=True)


def _short(found: "Difference", first: _Side, second: _Side) -> Mapping[str, str]:
    """Return ids in the form that is unambiguous in both memories."""
    mine = first.short_ids([*found.removed, *(item.before for item in found.changed)])
    theirs = second.short_ids([*found.added, *(item.after for item in found.changed)])
    return {**mine, **{name: max(form, mine.get(name, ""), key=len) for name, form in theirs.items()}}


def _scopes(sides: list[_Side], *, all_scopes: bool) -> str:
    if all_scopes:
        return "all scopes"
    named = list(dict.fromkeys(side.scope for side in sides if side.scope is not None))
    return "scope " + " and ".join(named)
