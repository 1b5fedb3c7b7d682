"""The JSON form of every domain object, in both directions. The key sets are a contract, pinned by tests.

Times are RFC 3339 in UTC or null, and no number is NaN or infinite.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NoReturn, TypeVar

from memcli.clock import format_instant, format_optional, parse_instant
from memcli.errors import MemError, UsageError
from memcli.facts import (
    Actor,
    AuditEvent,
    Claim,
    Condensable,
    CondensePlan,
    ErasePlan,
    Evidence,
    Excerpt,
    Fact,
    Finding,
    Imported,
    ImportReport,
    Json,
    LogVerdict,
    Merging,
    Message,
    Micros,
    PolicyRule,
    Proposal,
    Provenance,
    QueueItem,
    Restored,
    Scalar,
    ScopeInfo,
    Similar,
    Source,
    Stats,
    Tombstone,
    TombstonePlan,
    ToolCall,
    Validity,
    Vanishing,
    Written,
)
from memcli.terms import How, Kind, Visibility

Word = TypeVar("Word", bound=StrEnum)


def dumps(value: Json) -> str:
    """Return one line of JSON in ASCII, so that no control or bidi character and no lone surrogate reaches a screen."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def loads(text: str) -> Json:
    """Return what the JSON text says.

    Raises:
        UsageError: It is no JSON, is nested too deep, or holds a number that JSON does not have.
    """
    try:
        found: Json = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"that is no JSON: line {error.lineno} column {error.colno}: {error.msg.lower()}",
            hint="check it with `python -m json.tool`",
        ) from None
    except RecursionError:
        raise UsageError("that JSON is nested too deep", hint="give flat objects") from None
    except ValueError:  # an integer of more digits than Python reads
        raise UsageError("that JSON holds a number of too many digits", hint="write it as a string") from None
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise UsageError(f"JSON has no number {name}", hint="use null where there is no number")


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def scalar(value: Scalar) -> Json:
    """Return a fact's value for JSON; a float that JSON has no word for becomes null."""
    return _number(value) if isinstance(value, float) else value


def actor(a: Actor) -> dict[str, Json]:
    """Return name, kind and channel."""
    return {"name": a.name, "kind": a.kind.value, "channel": a.channel.value}


def provenance(p: Provenance) -> dict[str, Json]:
    """Return where a version came from, as it stands inside a fact."""
    return {
        "source": p.source,
        "message": p.message,
        "index": p.index,
        "role": None if p.role is None else p.role.value,
        "quote": p.quote,
        "verified": p.verified,
    }


def fact(f: Fact) -> dict[str, Json]:
    """Return the document of one fact in one version."""
    return {
        "id": f.id,
        "scope": f.scope,
        "kind": f.kind.value,
        "subject": f.subject,
        "attribute": f.attribute,
        "value": scalar(f.value),
        "text": f.text,
        "state": f.state.value,
        "readable": f.readable,
        "version": f.version,
        "confidence": _number(f.confidence),
        "importance": _number(f.importance),
        "authority": _number(f.authority),
        "owner": f.owner,
        "visibility": f.visibility.value,
        "valid_from": format_optional(f.valid.start),
        "valid_to": format_optional(f.valid.end),
        "recorded_at": format_instant(f.recorded_at),
        "retired_at": format_optional(f.retired_at),
        "actor": actor(f.actor),
        "provenance": [provenance(p) for p in f.provenance],
        "derived_from": list(f.derived_from),
        "tokens": f.tokens,
        "encoding": f.encoding,
    }


def recalled(f: Fact, *, score: float, parts: Mapping[str, float]) -> dict[str, Json]:
    """Return a fact with the score it was ranked by and that score's parts."""
    return {**fact(f), "score": _number(score), "parts": {name: _number(part) for name, part in parts.items()}}


def event(e: AuditEvent) -> dict[str, Json]:
    """Return one row of the log."""
    return {
        "seq": e.seq,
        "id": e.id,
        "at": format_instant(e.at),
        "actor": actor(e.actor),
        "op": e.op.value,
        "target": e.target,
        "scope": e.scope,
        "from_state": None if e.from_state is None else e.from_state.value,
        "to_state": None if e.to_state is None else e.to_state.value,
        "reason": e.reason,
        "before": e.before,
        "after": e.after,
        "previous": e.previous,
        "hash": e.hash,
    }


def tombstone(t: Tombstone) -> dict[str, Json]:
    """Return a tombstone; a null scope means everywhere, a null pattern a value kept as digests only."""
    return {
        "id": t.id,
        "scope": t.scope,
        "match": t.match.value,
        "pattern": t.pattern,
        "normaliser": t.normaliser,
        "fact": t.fact,
        "reason": t.reason,
        "actor": actor(t.actor),
        "at": format_instant(t.at),
        "lifted_at": format_optional(t.lifted_at),
        "hits": t.hits,
    }


def _tool_call(call: ToolCall) -> Json:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def message(m: Message) -> dict[str, Json]:
    """Return one message of a source."""
    return {
        "id": m.id,
        "source": m.source,
        "index": m.index,
        "role": m.role.value,
        "name": m.name,
        "content": m.content,
        "at": format_optional(m.at),
        "at_text": m.at_text,
        "origin": m.origin,
        "parent": m.parent,
        "tool_calls": [_tool_call(call) for call in m.tool_calls],
        "tool_call_id": m.tool_call_id,
        "thinking": m.thinking,
        "attachments": list(m.attachments),
        "extra": dict(m.extra),
        "erased_at": format_optional(m.erased_at),
    }


def source(s: Source) -> dict[str, Json]:
    """Return where evidence came from."""
    return {
        "id": s.id,
        "scope": s.scope,
        "kind": s.kind.value,
        "format": s.format,
        "path": s.path,
        "session": s.session,
        "title": s.title,
        "digest": s.digest,
        "imported_at": format_instant(s.imported_at),
        "messages": s.messages,
        "erased_at": format_optional(s.erased_at),
    }


def excerpt(shown: Excerpt | Provenance) -> dict[str, Json]:
    """Return the evidence with its message's words and one message before and after, null where there are none."""
    if isinstance(shown, Provenance):
        return {**provenance(shown), "path": None, "at": None, "content": None, "before": None, "after": None}
    return {
        **provenance(shown.provenance),
        "path": shown.path,
        "at": format_optional(shown.message.at),
        "content": shown.message.content,
        "before": None if shown.before is None else message(shown.before),
        "after": None if shown.after is None else message(shown.after),
    }


def similar(s: Similar) -> dict[str, Json]:
    """Return what resembles an item; `score` is 0 to 100."""
    return {"id": s.id, "text": s.text, "score": _number(s.score), "state": s.state.value}


def proposal(p: Proposal) -> dict[str, Json]:
    """Return a change that waits for somebody who may decide."""
    return {
        "id": p.id,
        "fact": p.fact,
        "version": p.version,
        "op": p.op.value,
        "arguments": dict(p.arguments),
        "reason": p.reason,
        "actor": actor(p.actor),
        "at": format_instant(p.at),
    }


def queue_item(item: QueueItem) -> dict[str, Json]:
    """Return one thing that waits; `why` is an object of the code, the detail and the proposal, if it is one."""
    return {
        "id": item.id,
        "fact": None if item.fact is None else fact(item.fact),
        "why": {
            "code": item.why.value,
            "detail": item.detail,
            "proposal": None if item.proposal is None else proposal(item.proposal),
        },
        "evidence": [excerpt(shown) for shown in item.evidence],
        "conflicts": [fact(rival) for rival in item.conflicts],
        "similar": [similar(other) for other in item.similar],
        "digest": item.digest,
    }


def _relative(found: Fact, how: How) -> Json:
    return {"id": found.id, "how": how.value, "state": found.state.value, "text": found.text}


def why_document(
    f: Fact,
    *,
    versions: Iterable[Fact],
    provenance: Iterable[Excerpt | Provenance],
    derived_from: Iterable[tuple[Fact, How]],
    derived: Iterable[tuple[Fact, How]],
    events: Iterable[AuditEvent],
) -> dict[str, Json]:
    """Return everything that is known of one fact: evidence in its context, versions, derivations, events."""
    return {
        "fact": fact(f),
        "versions": [fact(version) for version in versions],
        "provenance": [excerpt(shown) for shown in provenance],
        "derived_from": [_relative(parent, how) for parent, how in derived_from],
        "derived": [_relative(child, how) for child, how in derived],
        "events": [event(e) for e in events],
    }


def context_document(
    *,
    text: str,
    tokens: int | None,
    encoding: str | None,
    facts: Iterable[Fact],
    dropped: Iterable[tuple[str, str]],
) -> dict[str, Json]:
    """Return the block for a prompt, the facts in it, and each fact left out as its id and the reason."""
    return {
        "text": text,
        "tokens": tokens,
        "encoding": encoding,
        "facts": [fact(f) for f in facts],
        "dropped": [{"id": fact_id, "reason": reason} for fact_id, reason in dropped],
    }


def stats(s: Stats) -> dict[str, Json]:
    """Return sizes in bytes and counts, by state and in all."""
    return {
        "path": s.path,
        "schema": s.schema,
        "admission": s.admission,
        "scope": s.scope,
        "states": dict(s.states),
        "scopes": s.scopes,
        "sources": s.sources,
        "messages": s.messages,
        "tombstones": s.tombstones,
        "events": s.events,
        "waiting": s.waiting,
        "tokens": s.tokens,
        "tokens_unknown": s.tokens_unknown,
        "encoding": s.encoding,
        "file_bytes": s.file_bytes,
        "wal_bytes": s.wal_bytes,
        "free_bytes": s.free_bytes,
        "scrub_pending": s.scrub_pending,
    }


def finding(f: Finding) -> dict[str, Json]:
    """Return one thing that `check` found."""
    return {"code": f.code, "place": f.place, "message": f.message}


def log_verdict(v: LogVerdict) -> dict[str, Json]:
    """Return what verifying the chain found; no findings means whole."""
    return {"events": v.events, "head": v.head, "findings": [finding(f) for f in v.findings]}


def tombstone_plan(plan: TombstonePlan) -> dict[str, Json]:
    """Return what a tombstone would do; a null scope means everywhere."""
    return {
        "scope": plan.scope,
        "match": plan.match.value,
        "pattern": plan.pattern,
        "values": list(plan.values),
        "slots": [
            {"subject": subject, "attribute": attribute, "value": scalar(value)}
            for subject, attribute, value in plan.slots
        ],
        "hits": [fact(f) for f in plan.hits],
        "falls": [fact(f) for f in plan.falls],
        "near": [similar(other) for other in plan.near],
    }


def erase_plan(plan: ErasePlan) -> dict[str, Json]:
    """Return what an erase would remove."""
    return {
        "facts": [fact(f) for f in plan.facts],
        "messages": list(plan.messages),
        "sources": list(plan.sources),
        "reviewed": [fact(f) for f in plan.reviewed],
        "falls": [fact(f) for f in plan.falls],
    }


def condense_document(plan: CondensePlan, *, made: Sequence[str | None], applied: bool) -> dict[str, Json]:
    """Return what a plan to condense does.

    Args:
        made: The id of the one fact of each merging, None where there is none yet.
    """
    return {
        "max_facts": plan.max_facts,
        "facts_before": len(plan.facts),
        "facts_after": plan.left,
        "kept": list(plan.kept),
        "merged": [
            {"text": item.text, "from": list(item.parents), "fact": one}
            for item, one in zip(plan.merged, made, strict=True)
        ],
        "dropped": list(plan.dropped),
        "protected": list(plan.protected),
        "lost": [
            {"id": item.id, "text": item.text, "why": item.why, "allowed": item.id in plan.allowed}
            for item in plan.lost
        ],
        "applied": applied,
    }


def condense_arguments(plan: CondensePlan) -> dict[str, Json]:
    """Return a plan to condense as a change carries it; `condense_plan` reads it."""
    return {
        "max_facts": plan.max_facts,
        "facts": [
            {"id": item.id, "version": item.version, "revision": item.revision, "text": item.text}
            for item in plan.facts
        ],
        "kept": list(plan.kept),
        "merged": [
            {
                "text": item.text,
                "subject": item.subject,
                "attribute": item.attribute,
                "value": scalar(item.value),
                "from": list(item.parents),
                "keep": item.keep,
            }
            for item in plan.merged
        ],
        "dropped": list(plan.dropped),
        "lost": [{"id": item.id, "text": item.text, "why": item.why} for item in plan.lost],
        "allow_loss": list(plan.allowed),
    }


def condense_plan(document: Mapping[str, Json]) -> CondensePlan:
    """Return the plan that the arguments of a change hold.

    Raises:
        UsageError: A key is missing or holds something else than it should.
    """
    return CondensePlan(
        max_facts=None if document.get("max_facts") is None else _count(document, "max_facts"),
        facts=tuple(
            Condensable(
                id=_id(item.get("id")),
                version=_count(item, "version"),
                revision=_count(item, "revision"),
                text=_text(item, "text") or "",
            )
            for item in _objects(document, "facts")
        ),
        kept=_ids(document, "kept"),
        merged=tuple(_merging(item) for item in _objects(document, "merged")),
        dropped=_ids(document, "dropped"),
        lost=tuple(
            Vanishing(id=_id(item.get("id")), text=_text(item, "text") or "", why=_text(item, "why") or "")
            for item in _objects(document, "lost")
        ),
        allowed=_ids(document, "allow_loss"),
    )


def _merging(document: Mapping[str, Json]) -> Merging:
    subject, attribute, value = _slot(document)
    return Merging(
        text=_text(document, "text") or "",
        parents=_ids(document, "from"),
        subject=subject,
        attribute=attribute,
        value=value,
        keep=_text(document, "keep"),
    )


def _ids(document: Mapping[str, Json], key: str) -> tuple[str, ...]:
    return tuple(_id(item) for item in _list(document, key))


def _objects(document: Mapping[str, Json], key: str) -> list[dict[str, Json]]:
    found = _list(document, key)
    for item in found:
        if not isinstance(item, dict):
            raise _wrong(f"each entry of {key}", "an object", item, hint=f"make {key} a list of objects")
    return [item for item in found if isinstance(item, dict)]


def _count(document: Mapping[str, Json], key: str) -> int:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(key, "a whole number", value, hint=f"give {key} as a number such as 10")
    return value


def written(w: Written) -> dict[str, Json]:
    """Return what became of one claim, for commands that offer many; one that offers one prints the fact itself."""
    return {"outcome": w.outcome, "rival": w.rival, "fact": fact(w.fact)}


def scope_info(s: ScopeInfo) -> dict[str, Json]:
    """Return one scope and what it holds."""
    return {
        "name": s.name,
        "facts": s.facts,
        "readable": s.readable,
        "sources": s.sources,
        "tombstones": s.tombstones,
    }


def policy_rule(rule: PolicyRule) -> dict[str, Json]:
    """Return one rule of the policy."""
    return {"kind": rule.kind, "name": rule.name, "value": rule.value}


def _report(r: ImportReport) -> Json:
    return {
        "path": r.path,
        "format": r.format,
        "tried": list(r.tried),
        "conversations": r.conversations,
        "messages": r.messages,
        "roles": dict(r.roles),
        "tool_calls": r.tool_calls,
        "facts": r.facts,
        "tombstones": r.tombstones,
        "undated": r.undated,
        "new": r.new,
        "same": r.same,
        "refused": r.refused,
        "conflicting": r.conflicting,
        "mapped": dict(r.mapped),
        "warnings": [{"line": warned.line, "message": warned.message} for warned in r.warnings],
        "error": r.error,
    }


def import_document(files: Iterable[ImportReport], sources: Iterable[Imported]) -> dict[str, Json]:
    """Return what became of each file, and each conversation that has a source now."""
    return {
        "files": [_report(r) for r in files],
        "sources": [
            {"source": s.source, "new": s.new, "same": s.same, "session": s.session, "title": s.title} for s in sources
        ],
    }


def restored(r: Restored) -> dict[str, Json]:
    """Return what was taken back from an export."""
    return {
        "path": r.path,
        "scope": r.scope,
        "tombstones": r.tombstones,
        "sources": r.sources,
        "messages": r.messages,
        "facts": r.facts,
        "versions": r.versions,
    }


def error(e: MemError) -> dict[str, Json]:
    """Return an error as it goes to standard error."""
    return {"error": e.code, "message": e.message, "hint": e.hint}


CLAIM_KEYS = (
    "text",
    "subject",
    "attribute",
    "value",
    "kind",
    "valid_from",
    "valid_to",
    "confidence",
    "importance",
    "authority",
    "owner",
    "visibility",
    "pinned",
    "evidence",
    "derived_from",
    "how",
    "rule",
)
"""What `claim_from` reads. Any other key changes nothing: a payload does not say who acted nor what is believed."""


def claim_from(document: Json) -> Claim:
    """Return the claim that a JSON object makes. Keys outside `CLAIM_KEYS` change nothing.

    Raises:
        UsageError: A key is missing or holds something else than it should, named one at a time.
        NotAllowed: The interval ends before it begins.
    """
    if not isinstance(document, dict):
        raise UsageError(
            f"a fact must be a JSON object, not {_type_name(document)}", hint='try {"text": "Anna lives in Lisbon"}'
        )
    text = _text(document, "text")
    if text is None or not text.strip():
        raise UsageError("text is missing", hint='try {"text": "Anna lives in Lisbon"}')
    subject, attribute, value = _slot(document)
    return Claim(
        text=text,
        subject=subject,
        attribute=attribute,
        value=value,
        kind=_word(document, "kind", Kind, Kind.BELIEF),
        validity=Validity(start=_instant(document, "valid_from"), end=_instant(document, "valid_to")),
        confidence=_share(document, "confidence"),
        importance=_share(document, "importance"),
        authority=_share(document, "authority"),
        owner=_text(document, "owner"),
        visibility=_word(document, "visibility", Visibility, Visibility.SHARED),
        pinned=_flag(document, "pinned"),
        evidence=tuple(_evidence(item) for item in _list(document, "evidence")),
        derived_from=tuple(_id(item) for item in _list(document, "derived_from")),
        how=_word(document, "how", How, How.INFERRED),
        rule=_text(document, "rule"),
    )


def _type_name(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"


def _wrong(key: str, wanted: str, value: Json, *, hint: str) -> UsageError:
    return UsageError(f"{key} must be {wanted}, not {_type_name(value)}", hint=hint)


def _text(document: Mapping[str, Json], key: str) -> str | None:
    value = document.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _wrong(key, "a string", value, hint=f"put {key} in quotes, or leave it out")


def _flag(document: Mapping[str, Json], key: str) -> bool:
    value = document.get(key)
    if value is None or isinstance(value, bool):
        return value is True
    raise _wrong(key, "true or false", value, hint=f"write true or false without quotes, or leave {key} out")


def _share(document: Mapping[str, Json], key: str) -> float | None:
    value = document.get(key)
    hint = f"give {key} as a number such as 0.8, or leave it out"
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(key, "a number from 0 to 1", value, hint=hint)
    if not 0 <= value <= 1:  # NaN lands here too
        raise UsageError(f"{key} must be a number from 0 to 1", hint=hint)
    return float(value)


def _list(document: Mapping[str, Json], key: str) -> Sequence[Json]:
    value = document.get(key)
    if value is None:
        return ()
    if isinstance(value, list):
        return value
    raise _wrong(key, "a list", value, hint=f"put {key} in square brackets, or leave it out")


def _word(document: Mapping[str, Json], key: str, words: type[Word], otherwise: Word) -> Word:
    value = document.get(key)
    if value is None:
        return otherwise
    known = ", ".join(word.value for word in words)
    if not isinstance(value, str):
        raise _wrong(key, "a string", value, hint=f"write one of {known}")
    try:
        return words(value)
    except ValueError:
        raise UsageError(f"{key} must be one of {known}", hint=f"correct {key}, or leave it out") from None


def _instant(document: Mapping[str, Json], key: str) -> Micros | None:
    value = _text(document, key)
    return None if value is None else parse_instant(value, option=key)


def _slot(document: Mapping[str, Json]) -> tuple[str | None, str | None, Scalar]:
    subject, attribute, value = _text(document, "subject"), _text(document, "attribute"), document.get("value")
    if isinstance(value, list | dict):
        raise _wrong(
            "value", "a string, a number, true, false or null", value, hint="make one fact of each value, or use text"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError("value must be a finite number", hint="write it as a string, or leave value out")
    if value is not None and (subject is None or attribute is None):
        raise UsageError("value needs subject and attribute beside it", hint="add both, or leave value out")
    if attribute is not None and subject is None:
        raise UsageError("attribute needs subject beside it", hint="add subject, or leave attribute out")
    return subject, attribute, value


def _evidence(item: Json) -> Evidence:
    hint = 'try "evidence": [{"message": ID, "quote": WORDS}]'
    if not isinstance(item, dict):
        raise _wrong("each entry of evidence", "an object", item, hint=hint)
    found, quote = item.get("message"), item.get("quote")
    if not isinstance(found, str):
        raise _wrong("message in evidence", "a string", found, hint=hint)
    if quote is not None and not isinstance(quote, str):
        raise _wrong("quote in evidence", "a string", quote, hint=hint)
    return Evidence(message=found, quote=quote)


def _id(item: Json) -> str:
    if isinstance(item, str):
        return item
    raise _wrong("each entry of derived_from", "a string", item, hint="give the ids of the facts it was built from")
