"""The page of `mem log --html`: who changed what, when and why, and whether the chain of it holds."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from memcli.clock import format_instant
from memcli.facts import Actor, AuditEvent, LogVerdict, Micros
from memcli.render.page import (
    Choice,
    Head,
    brief,
    choice,
    document,
    filters,
    findings,
    heading,
    is_long,
    listing,
    numbers,
    opened,
    particulars,
    row,
    said,
    section,
    table,
    text,
    when,
)
from memcli.render.words import DONE, counted, quoted, short, who

EVENT_HEADS: Sequence[Head] = (
    ("#", "n w4"),
    ("when", "w12 spare"),
    ("who", "w9 spare"),
    ("what", "w16"),
    ("why", ""),
)

HEAD = 24
"""Characters of the head that stand in its box; all of it stands below."""


def log_page(
    events: Sequence[AuditEvent],
    *,
    path: str,
    scope: str | None,
    asked: Sequence[tuple[str, str]],
    now: Micros,
    verified: LogVerdict | None,
    short_ids: Mapping[str, str],
) -> str:
    """Return the audit trail in the order given.

    Args:
        path: Of the memory file.
        scope: None where the page is about every scope.
        asked: What the events were chosen by, with its name.
        verified: What verifying the chain found; None where that was not tried, which the page says.
    """
    name = PurePath(path).name
    place = "all scopes" if scope is None else f"scope {said(scope)}"
    body = _list(events, short_ids)
    return document(
        title=f"{name} – mem log",
        header=heading(
            f"The log of {said(name)}",
            lead([said(path) if path != name else "", place, chosen(asked) or "every event", f"as of {when(now)}"]),
        )
        + _figures(events, verified),
        parts=[section("chain", "The chain", _chain(verified)), section("events", "Events, newest first", body)],
        footer="Digests are keyed: they confirm a guess and reveal no words. Times are UTC.",
        skip=("list", "events") if events else None,
    )


def lead(parts: Sequence[str]) -> str:
    """Return the line under the heading of a page; empty parts are left out."""
    return " · ".join(part for part in parts if part)


def chosen(asked: Sequence[tuple[str, str]]) -> str:
    """Return what something was chosen by, as a sentence."""
    return ", ".join(f"{name} {said(words)}" for name, words in asked)


def _figures(events: Sequence[AuditEvent], verified: LogVerdict | None) -> str:
    if verified is None:
        return numbers([("events", f"{len(events):,}"), ("chain", '<span class="disputed">not verified</span>')])
    state = '<span class="bad">broken</span>' if verified.findings else '<span class="good">verified</span>'
    return numbers(
        [
            ("events here", f"{len(events):,} of {verified.events:,}"),
            ("chain", state),
            ("head", f"<code>{text(verified.head[:HEAD])}…</code>"),
        ]
    )


def _chain(verified: LogVerdict | None) -> str:
    if verified is None:
        return "<p>Nobody has recomputed it for this page. <code>mem log verify</code> does.</p>"
    chain = f"the chain of {counted(verified.events, 'event')}"
    pin = (
        f"<p>Its head is <code>{text(verified.head)}</code>. Pin it elsewhere: <code>mem log verify --head HEAD</code> "
        "then notices a log that was cut or written anew.</p>"
    )
    if not verified.findings:
        whole = (
            "Each event follows from the one before. What they say of other rows <code>mem log verify</code> compares."
        )
        return f'<p>{chain.capitalize()} is <b class="good">verified</b>. {whole}</p>{pin}'
    places = [
        ("error", f"<b>{text(item.code)}</b> <code>{text(item.place)}</code><br>{text(item.message)}")
        for item in verified.findings
    ]
    broken = f'is <b class="bad">broken</b> in {counted(len(places), "place")}'
    return f"<p>{chain.capitalize()} {broken}: keep this file as it is.</p>{findings(places)}{pin}"


def _list(events: Sequence[AuditEvent], ids: Mapping[str, str]) -> str:
    if not events:
        return "<p>No event fits.</p>"
    done, channels = menus(events)
    rows = (event_row(event, ids, marks=done.mark(event.op) + channels.mark(event.actor.channel)) for event in events)
    listed = listing("event", "events")
    return filters("events", (done, channels)) + table("Events", EVENT_HEADS, rows, kind="even", listed=listed)


def menus(events: Sequence[AuditEvent]) -> tuple[Choice, Choice]:
    """Return the menus of what was done and of the channel it came through."""
    return (
        choice("op", "of this kind", (event.op.value for event in events)),
        choice("channel", "that came by", (event.actor.channel.value for event in events)),
    )


def event_row(event: AuditEvent, ids: Mapping[str, str], *, marks: str | None) -> str:
    """Return an event as a row that opens on all that the log holds of it.

    Args:
        marks: As `page.row` takes them.
    """
    target = "" if event.target is None else f" <code>{said(short(ids, event.target))}</code>"
    done = DONE.get(event.op, event.op.value)
    moved = "" if event.to_state in (None, event.from_state, done) else f" → {event.to_state}"
    reason = quoted(event.reason) if event.reason else ""
    cells = [
        (when(event.at), "spare"),
        (said(who(event.actor)), "spare"),
        (opened(f"{done}{target}{moved}", _all(event)), ""),
        (opened(brief(reason), said(reason)) if is_long(reason) else said(reason), ""),
    ]
    return row(f"{event.seq:,}", cells, head="n", marks=marks)


def _all(event: AuditEvent) -> str:
    return particulars(
        [
            ("event", text(event.id)),
            ("at", format_instant(event.at)),
            ("by", _actor(event.actor)),
            ("scope", "" if event.scope is None else said(event.scope)),
            ("about", "" if event.target is None else f"<code>{said(event.target)}</code>"),
            ("state", _move(event)),
            ("before", _digest(event.before)),
            ("after", _digest(event.after)),
            ("previous", _digest(event.previous)),
            ("hash", _digest(event.hash)),
        ]
    )


def _move(event: AuditEvent) -> str:
    if event.to_state is None or event.from_state is event.to_state:
        return event.to_state or ""
    return f"{event.from_state or 'none'} → {event.to_state}"


def _actor(actor: Actor) -> str:
    return f"{said(actor.name)}, {actor.kind.value}, by {actor.channel.value}"


def _digest(digest: str | None) -> str:
    return "" if digest is None else f"<code>{text(digest)}</code>"
