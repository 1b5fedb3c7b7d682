"""The screens that look: lists of facts, one fact, why it is believed, what recall ranked."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from memcli.clock import ago, moment, month
from memcli.facts import AuditEvent, Excerpt, Fact, Micros, Provenance
from memcli.render.excerpts import place, put_excerpt, when
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.words import (
    DONE,
    NOTHING,
    held_for,
    quoted,
    said_of_subject,
    short,
    slot_of,
    spoken,
    state_part,
    true_for,
    who,
)
from memcli.terms import FINAL, How

Relative = tuple[Fact, How]
"""A parent or child of a fact, and how the child was derived."""

Ranked = tuple[Fact, float, Mapping[str, float]]
"""A recalled fact, its score and that score's parts."""

HEADED = 72
"""Cells below which a table of versions has no room for its heads, and each time says of itself what it is."""

BRIEF = 60
"""Cells that are shown of another fact's text beside its id."""


def facts_screen(
    facts: Sequence[Fact],
    *,
    path: str,
    scope: str,
    readable: int,
    total: int,
    waiting: int,
    short_ids: Mapping[str, str],
    sightings: Mapping[str, int],
    scope_column: bool = False,
    width: int = 80,
) -> Screen:
    """Return the list of facts, one line each.

    Args:
        readable: How many facts of the scope may reach a prompt.
        total: How many facts the scope has in any state.
        waiting: How many items the review queue holds.
        sightings: By id, how many pieces of evidence a fact has.
    """
    page = Page(width)
    waits = f", {waiting:,} waiting for review" if waiting else ""
    place_ = "all scopes" if scope_column else f"scope {clip(scope, BRIEF)}"
    page.line((path, "heading"), f" · {place_} · {readable:,} of {total:,} readable{waits}", hang=2)
    page.blank()
    if not facts:
        page.line("  no fact to show" if total else "  no facts yet")
    page.table(FACT_COLUMNS, [_row(f, short_ids, sightings, scope_column=scope_column) for f in facts])
    page.blank()
    page.flow([[hint] for hint in _next(facts, short_ids, waiting=waiting, total=total)], indent=2, gap=" · ")
    return page.screen()


FACT_COLUMNS = (
    Column(head="ID"),
    Column(head="STATE"),
    Column(head="SCOPE", at_most=16),
    Column(head="SUBJECT", at_most=14, spare=1),
    Column(head="FACT", flexible=True),
    Column(head="SINCE", spare=2),
    Column(head="SEEN", right=True, spare=3),
)


def _row(f: Fact, ids: Mapping[str, str], sightings: Mapping[str, int], *, scope_column: bool) -> list[Part]:
    seen = sightings.get(f.id, 0)
    return [
        (short(ids, f.id), "id"),
        state_part(f.state),
        f.scope if scope_column else "",
        f.subject or "",
        said_of_subject(f),
        (NOTHING if f.valid.start is None else month(f.valid.start), "dim"),
        (f"{seen:,}×" if seen else NOTHING, "dim"),
    ]


def _next(facts: Sequence[Fact], ids: Mapping[str, str], *, waiting: int, total: int) -> list[str]:
    hints = [f"mem why {short(ids, facts[0].id)}"] if facts else []
    if waiting:
        hints.append(f"mem review ({waiting:,})")
    if total > len(facts):
        hints.append("mem show --all-states")
    return hints or ["mem add TEXT", "mem import FILE"]


def _put_head(page: Page, f: Fact, ids: Mapping[str, str]) -> None:
    words = "(erased)" if f.erased_at is not None else quoted(f.text)
    state, style = f.state.value, f.state.value
    place_ = (f"{short(ids, f.id)} · {f.scope}", "id")
    slot = slot_of(f)
    if slot:
        page.sides([(slot, "heading")], (f"{state}, version {f.version}", style))
        page.sides([words], place_)
        return
    page.sides([(words, "heading")], (f"{state}, version {f.version}", style))
    page.sides([], place_)


def fact_screen(f: Fact, *, now: Micros, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return one fact in full, with what to type next."""
    page = Page(width)
    _put_head(page, f, short_ids)
    page.blank()
    for label, value in _particulars(f, now, short_ids):
        if value:
            page.line((f"  {label:<13}", "dim"), value, hang=15)
    for shown in f.provenance:
        page.line(("  from         ", "dim"), *_origin(shown), hang=15)
    page.blank()
    shown_id = short(short_ids, f.id)
    hints = [f"mem why {shown_id}", f"mem correct {shown_id} TEXT", f"mem tombstone {shown_id} --dry-run"]
    page.flow([[hint] for hint in hints], indent=2, gap=" · ")
    return page.screen()


def _particulars(f: Fact, now: Micros, ids: Mapping[str, str]) -> list[tuple[str, str]]:
    known = f"since {moment(f.recorded_at)} ({ago(f.recorded_at, now=now)})"
    if f.retired_at is not None:
        known = f"{moment(f.recorded_at)} … {moment(f.retired_at)}"
    numbers = [("confidence", f.confidence), ("importance", f.importance)]
    kind = f"{f.kind.value}, {f.visibility.value}"
    return [
        ("id", f.id),
        ("kind", f"{kind}, pinned" if f.pinned else kind),
        ("true", held_for(f.valid.start, f.valid.end) or "unknown since when"),
        ("known", known),
        ("recorded by", who(f.actor)),
        ("owner", f.owner or ""),
        ("authority", " · ".join([f"{f.authority:g}", *(f"{name} {n:g}" for name, n in numbers if n is not None)])),
        ("rule", f.rule or ""),
        ("tokens", "" if f.tokens is None else f"{f.tokens:,} ({f.encoding})"),
        ("built on", " ".join(short(ids, parent) for parent in f.derived_from)),
        ("replaced by", "" if f.superseded_by in (None, f.id) else short(ids, f.superseded_by or "")),
        ("erased", "" if f.erased_at is None else moment(f.erased_at)),
    ]


def _origin(shown: Provenance) -> list[Part]:
    number = "" if shown.index is None else f" #{shown.index}"
    role = "" if shown.role is None else f"  {shown.role.value}"
    parts: list[Part] = [(f"{shown.source}{number}{role}", "dim")]
    if shown.quote is not None:
        parts += ["  ", clip(quoted(shown.quote), 400)]
        if not shown.verified:
            parts.append(("  does not stand there", "warning"))
    return parts


def why_screen(
    f: Fact,
    *,
    versions: Sequence[Fact],
    excerpts: Sequence[Excerpt | Provenance],
    parents: Sequence[Relative],
    children: Sequence[Relative],
    events: Sequence[AuditEvent],
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return why a fact is believed: evidence, what it was, what it was built on and what was built on it, its log.

    Args:
        versions: Oldest first; each may stand there once for every state it was in.
        excerpts: The evidence; a `Provenance` where it points at a source and no message.
        events: Oldest first.
    """
    page = Page(width)
    _put_head(page, f, short_ids)
    _put_evidence(page, excerpts)
    _put_versions(page, versions)
    _put_relatives(page, "Built on", parents, short_ids)
    _put_relatives(page, "From this one", children, short_ids)
    _put_log(page, events)
    return page.screen()


def _put_evidence(page: Page, excerpts: Sequence[Excerpt | Provenance]) -> None:
    page.heading("Because")
    if not excerpts:
        page.line("  nothing in this file points at it: no evidence")
    for shown in excerpts:
        if isinstance(shown, Provenance):
            page.line("  ", *_origin(shown), hang=4)
            continue
        name = "" if shown.message.name is None else f" {shown.message.name}"
        page.line("  ", (place(shown), "id"), f"  {shown.message.role.value}{name}, {when(shown.message)}", hang=4)
        put_excerpt(page, shown)


def _lives(versions: Sequence[Fact]) -> list[tuple[Fact, Micros, Micros | None]]:
    """Return each version as it was left, with when the file began and ceased to hold it."""
    lives = []
    for _, found in groupby(versions, key=lambda version: version.version):
        revisions = list(found)
        last = revisions[-1]
        ended = last.retired_at
        if last.state in FINAL:
            ended = next(version.recorded_at for version in revisions if version.state in FINAL)
        lives.append((last, revisions[0].recorded_at, ended))
    return lives


VERSION_COLUMNS = (
    Column(head=""),
    Column(head="SAID", flexible=True),
    Column(head="TRUE"),
    Column(head="KNOWN"),
    Column(head="STATE"),
)


def _put_versions(page: Page, versions: Sequence[Fact]) -> None:
    page.heading("Was")
    rows: list[list[Part]] = []
    for version, began, ended in _lives(versions):
        said = spoken(version.value) if version.slot is not None else version.text
        if version.erased_at is not None:
            said = "(erased)"
        true, known = true_for(version.valid), f"known {held_for(began, ended)}"
        if page.width >= HEADED:
            true, known = true.removeprefix("true "), known.removeprefix("known ")
        rows.append([f"v{version.version}", said, true, known, state_part(version.state)])
    page.table(VERSION_COLUMNS, rows)


def _put_relatives(page: Page, heading: str, relatives: Sequence[Relative], ids: Mapping[str, str]) -> None:
    if not relatives:
        return
    page.heading(heading)
    for other, how in relatives:
        text = "(erased)" if other.erased_at is not None else clip(quoted(other.text), BRIEF)
        page.line("  ", (short(ids, other.id), "id"), f" {text} ({how.value}), ", state_part(other.state), hang=4)


def _put_log(page: Page, events: Iterable[AuditEvent]) -> None:
    page.heading("Log")
    listed = [(f"#{event.seq}", moment(event.at), event) for event in events]
    numbers = max((len(number) for number, _, _ in listed), default=0)
    times = max((len(time) for _, time, _ in listed), default=0)
    for number, time, event in listed:
        reason = f": {clip(quoted(event.reason), BRIEF)}" if event.reason else ""
        page.line(
            (f"  {number:>{numbers}}", "id"),
            (f"  {time:<{times}}  ", "dim"),
            f"{DONE[event.op]} by {who(event.actor)}{reason}",
            hang=4,
        )


def recall_screen(
    results: Sequence[Ranked], *, query: str, short_ids: Mapping[str, str], explain: bool = False, width: int = 80
) -> Screen:
    """Return what recall ranked, best first; with `explain`, the parts of each score under its fact."""
    page = Page(width)
    if not results:
        page.line("nothing readable matches ", clip(quoted(query), BRIEF), hang=2)
        page.blank()
        page.flow([["mem show"], ["mem show --all-states"]], indent=2, gap=" · ")
        return page.screen()
    columns = [
        Column(head="ID"),
        Column(head="SCORE", right=True),
        Column(head="SUBJECT", at_most=14, spare=1),
        Column(head="FACT", flexible=True),
        *(Column(head=name.upper(), right=True, spare=2) for name in (results[0][2] if explain else ())),
    ]
    rows: list[list[Part]] = []
    for f, score, parts in results:
        figures: list[Part] = [(f"{part:.2f}", "dim") for part in parts.values()] if explain else []
        rows.append([(short(short_ids, f.id), "id"), f"{score:.2f}", f.subject or "", said_of_subject(f), *figures])
    page.table(columns, rows)
    page.blank()
    page.flow([[f"mem why {short(short_ids, results[0][0].id)}"], ["mem context"]], indent=2, gap=" · ")
    return page.screen()
