"""Rows of transactions, receipts, actions and what they owe, as frozen data: each row's seal is checked first."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memcli.errors import NotFound
from memcli.store.rows import Reader, Row, actor, behind_our_back
from memcli.store.seals import Field, seal
from memcli.terms import (
    ActionState,
    Code,
    EffectKind,
    EffectState,
    Isolation,
    Profile,
    Reversibility,
    Tier,
    TxStatus,
)
from memcli.text import unpack
from memcli.tx import Action, Effect, Receipt, Repair, Transaction

TRANSACTION_FIELDS = (
    "id",
    "scope",
    "agent",
    "tier",
    "isolation",
    "snapshot",
    "status",
    "actor_name",
    "actor_kind",
    "actor_channel",
    "begun_at",
    "lease_until",
    "closed_at",
)
STAGED_FIELDS = ("tx", "fact", "at")
NAMED_FIELDS = ("tx", "fact", "rival")
VERDICT_FIELDS = ("tx", "fact", "code", "at")
READ_FIELDS = ("id", "tx", "asked", "found", "at")
RECEIPT_FIELDS = ("id", "tx", "tool", "kind", "arguments", "profile", "seq", "at")
PREMISE_FIELDS = ("receipt", "fact", "version", "revision")
ACTION_FIELDS = ("id", "receipt", "state", "at", "changed_at")
EFFECT_FIELDS = ("id", "action", "kind", "root", "state", "at")
REPAIR_FIELDS = ("id", "root", "fact", "action", "outcome", "at")
ORIGIN_FIELDS = ("fact", "source", "recorded_at")

SEALED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "transactions": ("transaction", TRANSACTION_FIELDS),
    "staged": ("staged", STAGED_FIELDS),
    "named": ("named", NAMED_FIELDS),
    "verdicts": ("verdict", VERDICT_FIELDS),
    "reads": ("read", READ_FIELDS),
    "receipts": ("receipt", RECEIPT_FIELDS),
    "premises": ("premise", PREMISE_FIELDS),
    "actions": ("action", ACTION_FIELDS),
    "effects": ("effect", EFFECT_FIELDS),
    "repairs": ("repair", REPAIR_FIELDS),
    "origins": ("origin", ORIGIN_FIELDS),
}
"""By table: what its rows are sealed as, and the columns that the seal covers."""

PREFIXES = {"transactions": "tx", "receipts": "r", "actions": "a", "effects": "x"}
"""By table: what the ids of its rows begin with."""

_CALLED = {"transactions": "transaction", "receipts": "receipt", "actions": "action", "effects": "effect"}
_LISTED = {
    "transactions": "`mem tx show`",
    "receipts": "`mem log --op gate`",
    "actions": "`mem act list`",
    "effects": "`mem effects`",
}


def recorded(key: bytes, table: str, fields: Sequence[Field]) -> bytes:
    """Return what the log knows a row by: its columns but for the scope, which a merge of scopes may change."""
    kept = fields if table != "transactions" else (fields[0], *fields[2:])
    return seal(key, "recorded", (table, *kept))


def number_of(table: str, name: str) -> int:
    """Return the row number that an id such as `tx3` stands for.

    Raises:
        NotFound: It is no id of that kind.
    """
    match = re.fullmatch(PREFIXES[table] + r"(\d{1,18})", name.strip().lower())
    if match is None:
        raise missing(table, name)
    return int(match[1])


def missing(table: str, name: str) -> NotFound:
    """Return the error for an id that nothing has."""
    return NotFound(f"there is no {_CALLED[table]} {name}", hint=f"list them with {_LISTED[table]}")


def checked(key: bytes, table: str, raw: Row) -> tuple[Any, ...]:
    """Return the columns of a row that ends with its seal.

    Raises:
        Damaged: It was changed behind the file's back.
    """
    kind, _ = SEALED[table]
    if seal(key, kind, raw[:-1]) != raw[-1]:
        name = PREFIXES.get(table, f"{kind} ") + str(raw[0])
        raise behind_our_back(name if table in PREFIXES else f"the {name}")
    return tuple(raw[:-1])


def transaction(reader: Reader, fields: Row, staged: Sequence[str], verdicts: Mapping[str, Code]) -> Transaction:
    """Return a transaction from its checked columns."""
    number, scope, agent, tier, isolation, snapshot, status, name, kind, channel, begun_at, lease_until, closed = fields
    return Transaction(
        id=f"tx{number}",
        scope=reader.scopes.get(scope, f"#{scope}"),
        agent=unpack(agent),
        tier=Tier(tier),
        isolation=Isolation(isolation),
        snapshot=snapshot,
        status=TxStatus(status),
        actor=actor(name, kind, channel),
        begun_at=begun_at,
        lease_until=lease_until,
        closed_at=closed,
        staged=tuple(staged),
        verdicts=verdicts,
    )


def receipt(fields: Row, premises: Mapping[str, tuple[int, int]]) -> Receipt:
    """Return a receipt from its checked columns."""
    number, tx, tool, kind, arguments, profile, seq, at = fields
    return Receipt(
        id=f"r{number}",
        tx=f"tx{tx}",
        tool=unpack(tool),
        reversibility=Reversibility(kind),
        args_digest=unpack(arguments),
        profile=Profile(profile),
        seq=seq,
        at=at,
        premises=premises,
    )


def action(fields: Row, leave: Receipt) -> Action:
    """Return an action from its checked columns and its receipt."""
    number, _, state, at, changed_at = fields
    return Action(
        id=f"a{number}",
        receipt=leave.id,
        tx=leave.tx,
        tool=leave.tool,
        reversibility=leave.reversibility,
        state=ActionState(state),
        premises=tuple(leave.premises),
        at=at,
        changed_at=changed_at,
    )


def effect(fields: Row, tool: str, root: str) -> Effect:
    """Return an effect from its checked columns, its tool and the name of its root."""
    number, acted, kind, _, state, at = fields
    return Effect(
        id=f"x{number}",
        kind=EffectKind(kind),
        action=f"a{acted}",
        tool=tool,
        root=root,
        state=EffectState(state),
        at=at,
    )


def repair(fields: Row, root: str, fact: str | None) -> Repair:
    """Return a repair from its checked columns and the names of its facts."""
    _, _, _, acted, outcome, at = fields
    return Repair(root=root, record=f"a{acted}" if fact is None else fact, outcome=outcome, at=at)
