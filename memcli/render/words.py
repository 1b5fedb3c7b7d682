"""How values, ids, times and operations are said on a screen."""

import json
from collections.abc import Mapping, Sequence

from memcli.clock import day, moment
from memcli.errors import MemError
from memcli.facts import Actor, Fact, Micros, Scalar, Validity, Written
from memcli.render.layout import Part
from memcli.terms import Op, State
from memcli.text import visible

NOTHING = "–"
"""Stands where nothing is known."""

DONE: Mapping[Op, str] = {
    Op.INIT: "created",
    Op.MIGRATE: "migrated",
    Op.ADD: "added",
    Op.CORROBORATE: "corroborated",
    Op.CORRECT: "corrected",
    Op.RETRACT: "retracted",
    Op.TOMBSTONE: "tombstoned",
    Op.LIFT: "lifted",
    Op.VERIFY: "verified",
    Op.DISPUTE: "disputed",
    Op.ERASE: "erased",
    Op.UNDO: "undone",
    Op.ACCEPT: "accepted",
    Op.REJECT: "rejected",
    Op.SUPERSEDE: "superseded",
    Op.CASCADE: "cascaded to",
    Op.MERGE: "merged",
    Op.KEEP: "kept",
    Op.PROPOSE: "proposed",
    Op.SETTLE: "settled",
    Op.IMPORT: "imported",
    Op.EXTRACT: "extracted",
    Op.RESTORE: "restored",
    Op.CONDENSE: "condensed",
    Op.SCOPE: "changed scope",
    Op.POLICY: "changed policy",
    Op.REFUSE: "refused",
    Op.READ: "read",
    Op.BEGIN: "began",
    Op.STAGE: "staged",
    Op.COMMIT: "committed",
    Op.HOLD: "held",
    Op.ABORT: "aborted",
    Op.GATE: "gated",
    Op.ACT: "acted",
    Op.REVOKE: "revoked",
    Op.EFFECT: "recorded effect",
    Op.REBUILD: "rebuilt",
}
"""What an operation is called once it is done."""


def short(ids: Mapping[str, str], full: str) -> str:
    """Return the short form of an id, or the id itself where it has none."""
    return ids.get(full, full)


def spoken(value: Scalar) -> str:
    """Return a value as a person would write it: a text as it is, anything else as JSON has it."""
    return value if isinstance(value, str) else json.dumps(value)


def quoted(text: str) -> str:
    """Return the text in quotation marks."""
    return f"“{text}”"


def slot_of(f: Fact) -> str:
    """Return subject, attribute and value on one line, or as much of them as the fact has."""
    if f.slot is not None:
        return f"{f.subject} · {f.attribute} = {spoken(f.value)}"
    return f.subject or ""


def said_of_subject(f: Fact) -> str:
    """Return the text without the subject it begins with, for a line on which the subject stands already."""
    if f.erased_at is not None:
        return "(erased)"
    subject = f.subject or ""
    head, rest = f.text[: len(subject)], f.text[len(subject) :]
    if subject and head.casefold() == subject.casefold() and rest.startswith(" ") and rest.strip():
        return rest.strip()
    return f.text


def state_part(state: State) -> Part:
    """Return the state as a word, in its own style."""
    return state.value, state.value


def who(actor: Actor) -> str:
    """Return an actor's name and, where that says more, the channel it came through."""
    name = actor.name or actor.kind.value
    return name if name in (actor.kind.value, actor.channel.value) else f"{name}, {actor.channel.value}"


def between(start: Micros, end: Micros) -> str:
    """Return the time from one moment to another, as exactly as it takes to tell them apart."""
    if day(start) != day(end):
        first, last = day(start).split(" "), day(end)
        return f"{' '.join(first[:2]) if last.endswith(first[-1]) else ' '.join(first)} … {last}"
    first_moment, last_moment = moment(start), moment(end)
    return first_moment if first_moment == last_moment else f"{first_moment} … {last_moment.split(' ')[-1]}"


def held_for(start: Micros | None, end: Micros | None) -> str:
    """Return “since”, “until” or both ends of an interval; empty where neither is known."""
    if start is not None and end is not None:
        return between(start, end)
    if start is not None:
        return f"since {day(start)}"
    return "" if end is None else f"until {day(end)}"


def true_for(valid: Validity) -> str:
    """Return when something is true in the world, as words; empty where nothing is known of it."""
    held = held_for(valid.start, valid.end)
    return f"true {held}" if held else ""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def size(bytes_: int) -> str:
    """Return a size with the unit that leaves one to four digits of it."""
    amount = float(bytes_)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} GiB"


def done_line(op: Op, ids: Sequence[str], *, also: str | None = None) -> str:
    """Return one line for a change that was made, such as `tombstoned 4f2a · t3`."""
    line = f"{DONE[op]} {' '.join(ids)}"
    return visible(line if also is None else f"{line} · {also}")


def written_line(w: Written, short_ids: Mapping[str, str]) -> str:
    """Return one line for what became of an offered claim."""
    shown = short(short_ids, w.fact.id)
    rival = None if w.rival is None else short(short_ids, w.rival)
    lines = {
        "same": f"nothing new: {shown} says so already",
        "corroborated": f"corroborated {shown} · new evidence, no second fact",
        "held": f"held {shown} · disputes {rival}, decide with `mem review`",
        "superseded": f"added {shown} · {w.fact.state.value}, in the place of {rival}",
    }
    return visible(lines.get(w.outcome, f"added {shown} · {w.fact.state.value}"))


def error_lines(error: MemError) -> str:
    """Return the error and its hint, one line each, without control characters."""
    lines = [f"error: {visible(error.message)}"]
    if error.hint is not None:
        lines.append(f"hint: {visible(error.hint)}")
    return "\n".join(lines)
