"""The screens about the file itself: sizes, findings, scopes, policy, what came in, and the words."""

from collections.abc import Mapping, Sequence

from memcli.facts import Finding, Imported, ImportReport, PolicyRule, Restored, ScopeInfo, Stats
from memcli.render.layout import Column, Page, Part, Screen
from memcli.render.words import counted, size
from memcli.terms import GLOSSARY, GLOSSARY_STATES, State
from memcli.text import visible

WARNED = 10
"""Warnings of one file that are written out; `--json` has them all."""

DEFINITIONS = 60
"""Cells from which a word and its meaning stand side by side."""


def stats_screen(s: Stats, *, width: int = 80) -> Screen:
    """Return sizes and counts, numbers at the right."""
    page = Page(width)
    page.line((s.path, "heading"), f" · scope {s.scope} · admission {s.admission} · schema {s.schema}", hang=2)
    groups: list[tuple[str, list[tuple[str, str]]]] = [
        ("Facts", [(state.value, f"{s.states.get(state, 0):,}") for state in State]),
        (
            "Beside them",
            [
                ("waiting for review", f"{s.waiting:,}"),
                ("scopes", f"{s.scopes:,}"),
                ("sources", f"{s.sources:,}"),
                ("messages", f"{s.messages:,}"),
                ("tombstones", f"{s.tombstones:,}"),
                ("audit events", f"{s.events:,}"),
            ],
        ),
        (
            "Sizes",
            [
                (f"tokens ({s.encoding})", f"{s.tokens:,}"),
                ("facts not counted", f"{s.tokens_unknown:,}"),
                ("file", size(s.file_bytes)),
                ("write-ahead log", size(s.wal_bytes)),
                ("free pages", size(s.free_bytes)),
            ],
        ),
    ]
    label = max(len(name) for _, rows in groups for name, _ in rows)
    for heading, rows in groups:
        page.heading(heading)
        for name, figure in rows:
            page.line(f"  {name:<{label}}  {figure:>10}")
    if s.scrub_pending:
        page.blank()
        page.line(("erased words may still be in free pages: ", "warning"), "run mem check to try again", hang=2)
    return page.screen()


def check_screen(findings: Sequence[Finding], *, clean: str = "the file is whole", width: int = 80) -> Screen:
    """Return every finding with its code and place, and how many there are; `clean` is what none of them means."""
    page = Page(width)
    for finding in findings:
        page.line(("✗ ", "error"), (finding.code, "heading"), "  ", (finding.place, "id"), hang=4)
        page.line("    ", finding.message, hang=4)
    page.blank()
    if findings:
        page.line((counted(len(findings), "finding"), "error"))
    else:
        page.line("nothing found: ", (clean, "accepted"))
    return page.screen()


def glossary_screen(words: Mapping[str, str] = GLOSSARY, *, width: int = 80) -> Screen:
    """Return each word with its meaning, and after them the states of a fact."""
    page = Page(width)
    _put_words(page, words)
    page.heading("States of a fact")
    _put_words(page, {state.value: meaning for state, meaning in GLOSSARY_STATES.items()}, states=True)
    return page.screen()


def _put_words(page: Page, words: Mapping[str, str], *, states: bool = False) -> None:
    room = max((len(word) for word in words), default=0) + 4
    for word, meaning in words.items():
        style = word if states else "heading"
        if page.width >= DEFINITIONS:
            page.line((f"  {word:<{room - 2}}", style), meaning, hang=room)
        else:
            page.line("  ", (word, style))
            page.line("    ", meaning, hang=4)


def scopes_screen(scopes: Sequence[ScopeInfo], *, default: str, width: int = 80) -> Screen:
    """Return the scopes of the file and what each holds; `default` is the one a call without a scope sees."""
    page = Page(width)
    columns = (
        Column(head="SCOPE", flexible=True),
        Column(head="FACTS", right=True),
        Column(head="READABLE", right=True),
        Column(head="SOURCES", right=True, spare=2),
        Column(head="TOMBSTONES", right=True, spare=1),
        Column(head=""),
    )
    rows: list[list[Part]] = [
        [
            s.name,
            f"{s.facts:,}",
            f"{s.readable:,}",
            f"{s.sources:,}",
            f"{s.tombstones:,}",
            ("default", "dim") if s.name == default else "",
        ]
        for s in scopes
    ]
    page.table(columns, rows)
    return page.screen()


def policy_screen(rules: Sequence[PolicyRule], *, width: int = 80) -> Screen:
    """Return the rules of the file's policy."""
    page = Page(width)
    if not rules:
        page.line(
            "no rules: a source has the authority of its kind, no oracle may verify, every tool is irreversible",
            hang=2,
        )
        return page.screen()
    columns = (Column(head="KIND"), Column(head="NAME", flexible=True), Column(head="VALUE", flexible=True))
    rows: list[list[Part]] = [[rule.kind, (rule.name, "heading"), rule.value] for rule in rules]
    page.table(columns, rows)
    return page.screen()


def restored_line(r: Restored) -> str:
    """Return one line for an export that was taken back."""
    held = (
        counted(r.facts, "fact"),
        counted(r.versions, "version"),
        counted(r.tombstones, "tombstone"),
        counted(r.sources, "source"),
        counted(r.messages, "message"),
    )
    return visible(f"restored {r.path}: {', '.join(held)} · scope {r.scope or 'all'}")


def import_screen(
    files: Sequence[ImportReport], sources: Sequence[Imported], *, dry_run: bool = False, width: int = 80
) -> Screen:
    """Return what became of each file, what was refused or doubtful in it, and the sum of all."""
    page = Page(width)
    for report in files:
        page.line((report.path, "heading"), f" · {report.format or 'not recognised'}", hang=2)
        _put_report(page, report)
    new, same = sum(report.new for report in files), sum(report.same for report in files)
    failed = sum(report.error is not None for report in files)
    page.blank()
    unread = f" · {failed:,} not read" if failed else ""
    page.line(f"{counted(len(files), 'file')}: {new:,} new, {same:,} there already{unread}", hang=2)
    if dry_run:
        page.line("nothing changed · leave out --dry-run")
        return page.screen()
    hints = [f"mem extract {sources[0].source}"] if sources else []
    page.flow([[hint] for hint in [*hints, "mem review", "mem show"]], indent=2, gap=" · ")
    return page.screen()


def _put_report(page: Page, report: ImportReport) -> None:
    if report.error is not None:
        page.line("  ", ("✗ ", "error"), report.error, hang=4)
        if report.tried:
            page.line(f"    tried {', '.join(report.tried)}", hang=4)
        return
    roles = ", ".join(f"{count:,} {role}" for role, count in report.roles.items())
    held = [
        counted(report.conversations, "conversation") if report.conversations else "",
        counted(report.messages, "message") + (f" ({roles})" if roles else "") if report.messages else "",
        counted(report.tool_calls, "tool call") if report.tool_calls else "",
        counted(report.facts, "fact") if report.facts else "",
        counted(report.tombstones, "tombstone") if report.tombstones else "",
    ]
    became = [f"{report.new:,} new", f"{report.same:,} there already"]
    became += [f"{report.refused:,} refused"] if report.refused else []
    became += [f"{report.conflicting:,} conflicting"] if report.conflicting else []
    became += [f"{report.undated:,} without a time"] if report.undated else []
    page.line("  ", " · ".join(words for words in held if words) or "nothing in it", hang=4)
    page.line("  ", ", ".join(became), hang=4)
    if report.mapped:
        page.line(
            "  there → here: ", " · ".join(f"{count:,} × {move}" for move, count in report.mapped.items()), hang=4
        )
    for warned in report.warnings[:WARNED]:
        line = "" if warned.line is None else f"line {warned.line:,}: "
        page.line("  ", ("! ", "warning"), f"{line}{warned.message}", hang=4)
    if len(report.warnings) > WARNED:
        page.line(f"    and {len(report.warnings) - WARNED:,} more warnings, all in --json", hang=4)
