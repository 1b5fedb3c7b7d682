"""The JSON form of what a budget says. The key sets are a contract, as in `wire`; no number is NaN or infinite."""

import math
from collections.abc import Mapping

from memcli.budget.differ import Difference, Shift
from memcli.budget.explain import Life
from memcli.budget.outcome import BlockFate, BudgetFinding, Fate, Flushed, Piece, Simulation
from memcli.facts import Json


def simulation(s: Simulation, *, transcript: str) -> dict[str, Json]:
    """Return a whole run; `settings` also says of what and by what, `totals` also why there is no prompt."""
    return {
        "settings": {
            "transcript": transcript,
            "policy": s.policy,
            "encoding": s.encoding,
            **{name: plain(value) for name, value in s.settings.items()},
        },
        "effective": {name: plain(value) for name, value in s.effective.items()},
        "clamps": [{name: plain(value) for name, value in clamp.items()} for clamp in s.clamps],
        "messages": [fate(item) for item in s.fates],
        "steps": [{name: plain(value) for name, value in step.items()} for step in s.steps],
        "prompt": [piece(item) for item in s.prompt],
        "blocks": [block(item) for item in s.blocks],
        "findings": [finding(item) for item in s.findings],
        "totals": totals(s),
    }


def plain(value: object) -> Json:
    """Return a value as JSON has it; a number that JSON lacks becomes its name, as LlamaIndex's traces spell it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return str(value)


def fate(f: Fate) -> dict[str, Json]:
    """Return what became of one message."""
    return {
        "index": f.index,
        "id": f.id,
        "role": f.role,
        "thought": f.thought,
        "real": f.real,
        "ended": f.ended,
        "reason": f.reason,
        "flush": f.flush,
        "blocks": list(f.blocks),
        "last_seen": f.last_seen,
        "reachable": f.reachable,
    }


def piece(p: Piece) -> dict[str, Json]:
    """Return one part of a prompt."""
    return {
        "kind": p.kind,
        "name": p.name,
        "role": p.role,
        "index": p.index,
        "thought": p.thought,
        "real": p.real,
        "text": p.text,
    }


def block(b: BlockFate) -> dict[str, Json]:
    """Return what a block wanted and got."""
    return {
        "name": b.name,
        "kind": b.kind,
        "priority": b.priority,
        "weight": plain(b.weight),
        "wanted": b.wanted,
        "got": b.got,
        "fate": b.fate,
        "reason": b.reason,
    }


def finding(f: BudgetFinding) -> dict[str, Json]:
    """Return one finding."""
    return {
        "code": f.code,
        "severity": f.severity,
        "turn": f.turn,
        "message": f.message,
        "tokens": f.tokens,
        "text": f.text,
        "remedy": f.remedy,
    }


def totals(s: Simulation) -> dict[str, Json]:
    """Return the sums of a run, and `refused` where it gave no prompt."""
    t = s.totals
    return {
        "messages": t.messages,
        "turns": t.turns,
        "tokens": t.tokens,
        "window_messages": t.window_messages,
        "flushes": t.flushes,
        "flushed_messages": t.flushed_messages,
        "thought": t.thought,
        "real": t.real,
        "limit": t.limit,
        "over": t.over,
        "uncounted": t.uncounted,
        "template": t.template,
        "prefix_kept": plain(t.prefix_kept),
        "refused": s.refused,
    }


def life(told: Life) -> dict[str, Json]:
    """Return the life of one message; `limits` are pairs of which the second is null where there is no end."""
    return {
        "message": fate(told.fate),
        "turn": told.turn,
        "written": told.written,
        "flush": None if told.left is None else flushed(told.left),
        "limits": None if told.limits is None else [[one.first, one.last] for one in told.limits],
        "looked_to": told.looked_to,
    }


def flushed(f: Flushed) -> dict[str, Json]:
    """Return one flush; `stop` is the message after the last that left."""
    return {
        "write": f.write,
        "turn": f.turn,
        "before": f.before,
        "after": f.after,
        "first": f.first,
        "stop": f.stop,
        "blocks": list(f.blocks),
    }


def difference(d: Difference, *, transcript: str) -> dict[str, Json]:
    """Return where two runs part."""
    return {
        "transcript": transcript,
        "settings": [_shift(one) for one in d.settings],
        "totals": [_shift(one) for one in d.totals],
        "blocks": [_shift(one) for one in d.blocks],
        "messages": [
            {
                "index": one.index,
                "id": one.id,
                "role": one.role,
                "left": fate(one.left),
                "right": fate(one.right),
                "what": list(one.what),
            }
            for one in d.messages
        ],
        "only_left": d.only_left,
        "only_right": d.only_right,
        "first_turn": d.first_turn,
    }


def _shift(one: Shift) -> Json:
    return {"name": one.name, "left": plain(one.left), "right": plain(one.right)}
