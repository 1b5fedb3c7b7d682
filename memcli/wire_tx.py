"""The JSON form of transactions, the gate and what it lets through, in both directions. The keys are a contract."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memcli import wire
from memcli.clock import format_instant, format_optional
from memcli.digest import blake2b
from memcli.errors import UsageError
from memcli.facts import Claim, Fact, Json
from memcli.terms import SourceKind, TxStatus
from memcli.tx import Action, Check, Effect, Fall, GateAnswer, Receipt, Transaction, Verdict

if TYPE_CHECKING:
    from memcli.transactions.replay import CaseResult


def transaction(tx: Transaction) -> dict[str, Json]:
    """Return one transaction: who began it, what it reads, how it stands, and the verdicts it got."""
    return {
        "id": tx.id,
        "scope": tx.scope,
        "agent": tx.agent,
        "tier": tx.tier.value,
        "isolation": tx.isolation.value,
        "snapshot": tx.snapshot,
        "status": tx.status.value,
        "actor": wire.actor(tx.actor),
        "begun_at": format_instant(tx.begun_at),
        "lease_until": format_instant(tx.lease_until),
        "closed_at": format_optional(tx.closed_at),
        "staged": list(tx.staged),
        "verdicts": {name: code.value for name, code in tx.verdicts.items()},
    }


def shown(
    tx: Transaction,
    *,
    facts: Sequence[Fact],
    checks: Sequence[Check],
    stands_on: Mapping[str, Sequence[Fact]],
    actions: Sequence[Action],
) -> dict[str, Json]:
    """Return one transaction with what it staged, the rules each of that does not pass, and its actions.

    Args:
        stands_on: By staged fact, everything it was built from, nearest first.
    """
    return {
        **transaction(tx),
        "records": [
            {
                "fact": wire.fact(fact),
                "checks": [check(item) for item in checks if item.fact == fact.id],
                "stands_on": [
                    {"id": above.id, "state": above.state.value, "text": above.text}
                    for above in stands_on.get(fact.id, ())
                ],
            }
            for fact in facts
        ],
        "actions": [action(item) for item in actions],
    }


def check(c: Check) -> dict[str, Json]:
    """Return one rule that a staged fact does not pass, or `PASS`."""
    return {"fact": c.fact, "code": c.code.value, "ruling": c.ruling.value, "about": list(c.about)}


def checked(tx: Transaction, status: TxStatus, checks: Sequence[Check]) -> dict[str, Json]:
    """Return what a commit would say, and every rule that any staged fact does not pass."""
    verdicts: dict[str, Json] = {}
    for item in checks:
        verdicts.setdefault(item.fact, item.code.value)
    return {"tx": tx.id, "status": status.value, "verdicts": verdicts, "checks": [check(item) for item in checks]}


def verdict(v: Verdict) -> dict[str, Json]:
    """Return what became of a commit: the first code of each staged fact, and how often a verifier was asked."""
    return {
        "tx": v.tx,
        "status": v.status.value,
        "verdicts": {name: code.value for name, code in v.verdicts.items()},
        "calls": v.calls,
    }


def gate(answer: GateAnswer) -> dict[str, Json]:
    """Return whether a call may go ahead, why not, what stands in the way, and the id of the receipt."""
    return {
        "allow": answer.allow,
        "reasons": list(answer.reasons),
        "blockers": list(answer.blockers),
        "receipt": None if answer.receipt is None else answer.receipt.id,
    }


def receipt(r: Receipt) -> dict[str, Json]:
    """Return the gate's leave for one call."""
    return {
        "id": r.id,
        "tx": r.tx,
        "tool": r.tool,
        "reversibility": r.reversibility.value,
        "args_digest": r.args_digest,
        "profile": r.profile.value,
        "seq": r.seq,
        "at": format_instant(r.at),
        "premises": list(r.premises),
    }


def action(a: Action) -> dict[str, Json]:
    """Return one tool call and how far it has come."""
    return {
        "id": a.id,
        "receipt": a.receipt,
        "tx": a.tx,
        "tool": a.tool,
        "reversibility": a.reversibility.value,
        "state": a.state.value,
        "premises": list(a.premises),
        "at": format_instant(a.at),
        "changed_at": format_instant(a.changed_at),
    }


def effect(e: Effect) -> dict[str, Json]:
    """Return what an action owes because of a fact that was withdrawn."""
    return {
        "id": e.id,
        "kind": e.kind.value,
        "action": e.action,
        "tool": e.tool,
        "root": e.root,
        "state": e.state.value,
        "at": format_instant(e.at),
    }


def flat(fall: Fall) -> list[tuple[Fall, str | None]]:
    """Return every record of a tree before those below it, each with the id of the one it falls with."""
    found: list[tuple[Fall, str | None]] = []
    waiting: list[tuple[Fall, str | None]] = [(fall, None)]
    while waiting:
        item, above = waiting.pop()
        found.append((item, above))
        waiting += [(child, _name(item)) for child in reversed(item.below)]
    return found


def _name(item: Fall) -> str:
    return item.fact.id if item.fact is not None else "" if item.action is None else item.action.id


def falls(items: Sequence[tuple[Fall, str | None]], *, applied: bool) -> dict[str, Json]:
    """Return what falls with a fact as a list, which stays as shallow as a tree may be deep.

    `under` is the id of what a record falls with, null for the root; of `fact` and `action` one is null.
    """
    return {
        "root": _name(items[0][0]),
        "falls": [
            {
                "id": _name(item),
                "under": above,
                "fact": None if item.fact is None else wire.fact(item.fact),
                "action": None if item.action is None else action(item.action),
                "becomes": item.becomes,
            }
            for item, above in items
        ],
        "applied": applied,
    }


def case(path: str, c: "CaseResult") -> dict[str, Json]:
    """Return how one case came out; where it failed, the 0-based step, and what was to come and what came."""
    return {
        "path": path,
        "id": c.id,
        "family": c.family,
        "kind": c.kind,
        "title": c.title,
        "passed": c.passed,
        "step": c.step,
        "op": c.op,
        "expected": c.expected,
        "got": c.got,
    }


# -------------------------------------------------------------------- in


def staged_from(document: Json) -> tuple[Claim, tuple[str, ...], str | None]:
    """Return the claim that one line of a file to stage makes, what it is to supersede, and the name it has there.

    Besides the keys of `wire.CLAIM_KEYS` it reads `source`, `source_kind`, `references`, `supersedes`, and `id`: a name
    that later lines may give in `derived_from`. Without `text` the slot is the statement.

    Raises:
        UsageError: A key is missing or holds something else than it should.
        NotAllowed: The interval ends before it begins.
    """
    if not isinstance(document, dict):
        raise UsageError("a fact must be a JSON object", hint='try {"text": "Anna lives in Lisbon"}')
    told = dict(document)
    if told.get("text") is None:
        told["text"] = statement(told.get("subject"), told.get("attribute"), told.get("value"))
    claim = replace(
        wire.claim_from(told),
        source=_word(told, "source"),
        source_kind=_kind(told),
        references=_names(told, "references"),
    )
    return claim, _names(told, "supersedes"), _word(told, "id")


def statement(subject: Json, attribute: Json, value: Json) -> str | None:
    """Return a slot as a statement, or None where it is not whole."""
    if not isinstance(subject, str) or not isinstance(attribute, str) or value is None:
        return None
    return f"{subject} {attribute}: {value if isinstance(value, str) else wire.dumps(value)}"


def _word(document: Mapping[str, Json], key: str) -> str | None:
    value = document.get(key)
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise UsageError(f"{key} must be a string that says something", hint=f"put {key} in quotes, or leave it out")


def _names(document: Mapping[str, Json], key: str) -> tuple[str, ...]:
    value = document.get(key)
    found = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise UsageError(f"{key} must be a list of strings", hint=f"put {key} in square brackets, or leave it out")
    return tuple(str(item) for item in found)


def _kind(document: Mapping[str, Json]) -> SourceKind | None:
    value = document.get("source_kind")
    if value is None:
        return None
    if not isinstance(value, str) or value not in set(SourceKind):
        raise UsageError("source_kind must be one of " + ", ".join(SourceKind), hint="correct it, or leave it out")
    return SourceKind(value)


# -------------------------------------------------------------------- the arguments of a call


def arguments_digest(given: bytes) -> str:
    """Return what the gate knows the arguments of a call by: a digest of their bytes.

    JSON counts as what it says: keys may come in any order and white space may differ. An object that has a key twice
    says different things to different readers, so it counts as its bytes.
    """
    try:
        value: Json = json.loads(given, object_pairs_hook=_once, parse_constant=_no_constant)
        said = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (ValueError, RecursionError):
        return "bytes:" + blake2b(given, digest_size=16).hexdigest()
    return "json:" + blake2b(said, digest_size=16).hexdigest()


def json_digest(value: Json) -> str:
    """Return what the gate knows arguments by that are a JSON value; the same as of a file that holds them.

    Raises:
        UsageError: It is no value that JSON has.
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(
            f"the arguments are no JSON: {problem}", hint="give bytes, or objects, lists and texts"
        ) from None
    return arguments_digest(text.encode("ascii"))


def _once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(name)
