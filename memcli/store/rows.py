"""Rows of the file as frozen data: each row's seal is checked before it is believed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Any, TypeAlias

from memcli.errors import Damaged
from memcli.facts import (
    Actor,
    AuditEvent,
    Fact,
    Message,
    PolicyRule,
    Proposal,
    Provenance,
    Source,
    Tombstone,
    ToolCall,
    Validity,
)
from memcli.record import record
from memcli.store.seals import GENESIS, chained, seal, shown
from memcli.terms import ActorKind, Channel, How, Kind, Match, Op, Role, SourceKind, State, Visibility
from memcli.text import unpack

Row: TypeAlias = Sequence[Any]
"""Columns as SQLite gave them; STRICT tables keep their types."""

VERSION_FIELDS = (
    "fact",
    "version",
    "revision",
    "state",
    "text",
    "value",
    "confidence",
    "importance",
    "authority",
    "pinned",
    "valid_from",
    "valid_to",
    "displaced",
    "superseded_by",
    "rule",
    "text_key",
    "slot_key",
    "actor_name",
    "actor_kind",
    "actor_channel",
    "recorded_at",
)
"""What a version's digest covers, in this order; an erased version keeps the digest it had."""

FACT_FIELDS = (
    "id",
    "name",
    "scope",
    "kind",
    "subject",
    "attribute",
    "slot",
    "owner",
    "visibility",
    "recorded_at",
    "erased_at",
)
SOURCE_FIELDS = (
    "id",
    "scope",
    "kind",
    "format",
    "path",
    "session",
    "title",
    "digest",
    "imported_at",
    "erased_at",
)
MESSAGE_FIELDS = (
    "source",
    "position",
    "role",
    "content",
    "detail",
    "at",
    "evidence",
    "recorded_at",
    "erased_at",
)
PROVENANCE_FIELDS = (
    "fact",
    "version",
    "source",
    "message",
    "quote",
    "start",
    "stop",
    "verified",
    "recorded_at",
    "erased_at",
)
TOMBSTONE_FIELDS = (
    "id",
    "match",
    "pattern",
    "key",
    "normaliser",
    "fact",
    "event",
    "actor_name",
    "actor_kind",
    "actor_channel",
    "at",
)
PROPOSAL_FIELDS = (
    "id",
    "fact",
    "version",
    "scope",
    "op",
    "arguments",
    "reason",
    "actor_name",
    "actor_kind",
    "actor_channel",
    "at",
    "settled_at",
    "outcome",
)

SELECT_PROVENANCE = (
    f"select {', '.join('p.' + name for name in PROVENANCE_FIELDS)}, p.seal, m.source, m.position, m.role"
    " from provenance p left join messages m on m.id = p.message"
)
"""Selects what `provenance_of` takes; append a `where`."""

_NAMED = ", ".join("f." + name for name in FACT_FIELDS)

SELECT_TOMBSTONE = (
    f"select {', '.join('t.' + name for name in TOMBSTONE_FIELDS)}, t.scope, t.lifted_at, t.seal, f.name, r.text,"
    " (select count(*) from audit a where a.target = 't' || t.id and a.op = 'refuse'), e.reason,"
    f" {_NAMED}, f.seal from tombstones t left join facts f on f.id = t.fact"
    " left join reasons r on r.seq = t.event left join audit e on e.seq = t.event"
)
"""Selects what `Reader.tombstone` takes; append a `where`."""

SELECT_PROPOSAL = (
    f"select {', '.join('p.' + name for name in PROPOSAL_FIELDS)}, p.seal, {_NAMED}, f.seal"
    " from proposals p left join facts f on f.id = p.fact"
)
"""Selects what `Reader.proposal` takes; append a `where`."""

DERIVATION_FIELDS = ("child", "parent", "how", "recorded_at")

_VERSION = ("id", *VERSION_FIELDS, "retired_at", "erased_at", "digest", "seal")
_FACT = (*FACT_FIELDS, "seal")

SELECT_VERSION = (
    f"select {', '.join('v.' + name for name in _VERSION)}, {', '.join('f.' + name for name in _FACT)},"
    " s.name, t.tokens, t.encoding"
    " from versions v join facts f on f.id = v.fact"
    " left join facts s on s.id = v.superseded_by left join token_counts t on t.row = v.id"
)
"""Selects what `VersionRow` holds; append a `where`."""

_DIGESTED = slice(1, 1 + len(VERSION_FIELDS))
_AFTER = 1 + len(VERSION_FIELDS)
_FACT_AT = len(_VERSION)
_REST_AT = _FACT_AT + len(_FACT)


def from_json(text: str) -> Any:
    """Return what a JSON column holds."""
    import json  # 2 ms that a list of plain statements does not need

    return json.loads(text)


def behind_our_back(what: str) -> Damaged:
    """Return the error for a row whose seal does not fit."""
    return Damaged(
        f"{what} was changed behind the file's back",
        hint="list everything that was with `mem check`, and restore the file from a backup",
    )


def message_id(source: int, position: int) -> str:
    """Return the id of a message: its source's, `#`, its 0-based index."""
    return f"s{source}#{position}"


@record
class VersionRow:
    """One revision of a version with its row numbers, digest and keys; `raw` is the row as it was selected."""

    raw: tuple[Any, ...]

    @property
    def row(self) -> int:
        """Return the row number in `versions`."""
        return int(self.raw[0])

    @property
    def fact(self) -> int:
        """Return the row number in `facts`."""
        return int(self.raw[1])

    @property
    def digest(self) -> bytes:
        """Return the digest that the audit trail knows this revision by."""
        return bytes(self.raw[_FACT_AT - 2])

    def field(self, name: str) -> Any:
        """Return a column of the version."""
        return self.raw[_VERSION.index(name)]

    def fact_field(self, name: str) -> Any:
        """Return a column of the fact."""
        return self.raw[_FACT_AT + _FACT.index(name)]


@record
class Reader:
    """Turns rows into data with one key and one map of scope names."""

    key: bytes
    scopes: Mapping[int, str] = field(default_factory=dict)

    def version(self, raw: Row) -> VersionRow:
        """Return the row, checked.

        Raises:
            Damaged: The version or its fact was changed behind the file's back.
        """
        row = tuple(raw)
        retired_at, erased_at, digest, its_seal = row[_AFTER:_FACT_AT]
        honest = erased_at is not None or seal(self.key, "version", row[_DIGESTED]) == digest
        if not honest or version_seal(self.key, row[_DIGESTED], (digest, retired_at, erased_at)) != its_seal:
            raise behind_our_back(f"fact {row[_FACT_AT + 1]}")
        if seal(self.key, "fact", row[_FACT_AT : _REST_AT - 1]) != row[_REST_AT - 1]:
            raise behind_our_back(f"fact {row[_FACT_AT + 1]}")
        return VersionRow(raw=row)

    def fact(self, row: VersionRow, provenance: tuple[Provenance, ...] = (), parents: tuple[str, ...] = ()) -> Fact:
        """Return the fact that a checked row holds."""
        (
            _, _, version, revision, state, text, value, confidence, importance, authority, pinned, start, end,
            displaced, _, rule, _, _, actor_name, actor_kind, actor_channel, recorded_at, retired_at, erased_at,
            _, _,
        ) = row.raw[:_FACT_AT]  # fmt: skip
        _, name, scope, kind, subject, attribute, _, owner, visibility, _, _, _ = row.raw[_FACT_AT:_REST_AT]
        successor, tokens, encoding = row.raw[_REST_AT:]
        return Fact(
            id=name,
            scope=self.scopes.get(scope, f"#{scope}"),
            kind=Kind(kind),
            subject=unpacked(subject),
            attribute=unpacked(attribute),
            value=None if value is None else from_json(value),
            text="" if text is None else unpack(text),
            state=State(state),
            version=version,
            revision=revision,
            confidence=confidence,
            importance=importance,
            authority=authority,
            owner=unpacked(owner),
            visibility=Visibility(visibility),
            pinned=bool(pinned),
            valid=Validity(start=start, end=end),
            recorded_at=recorded_at,
            retired_at=retired_at,
            actor=actor(actor_name, actor_kind, actor_channel),
            rule=unpacked(rule),
            displaced=bool(displaced),
            superseded_by=successor,
            provenance=provenance,
            derived_from=parents,
            tokens=tokens,
            encoding=encoding,
            erased_at=erased_at,
        )

    def source(self, raw: Row) -> Source:
        """Return a source from `SOURCE_FIELDS`, its seal, and how many messages it has."""
        *fields, its_seal, messages = raw
        if seal(self.key, "source", fields) != its_seal:
            raise behind_our_back(f"source s{fields[0]}")
        number, scope, kind, form, path, session, title, digest, imported_at, erased_at = fields
        return Source(
            id=f"s{number}",
            scope=self.scopes.get(scope, f"#{scope}"),
            kind=SourceKind(kind),
            format=form,
            path=unpacked(path),
            session=unpacked(session),
            title=unpacked(title),
            digest=digest,
            imported_at=imported_at,
            messages=messages,
            erased_at=erased_at,
        )

    def message(self, raw: Row) -> Message:
        """Return a message from `MESSAGE_FIELDS` and its seal."""
        *fields, its_seal = raw
        source, position, role, content, detail, at, _, _, erased_at = fields
        number = message_id(source, position)
        if seal(self.key, "message", fields) != its_seal:
            raise behind_our_back(f"message {number}")
        more = from_json(unpack(str(detail))) if detail is not None else {}
        calls = tuple(ToolCall(id=call[0], name=call[1], arguments=call[2]) for call in more.pop("tool_calls", ()))
        return Message(
            id=number,
            source=f"s{source}",
            index=position,
            role=Role(role),
            content="" if content is None else unpack(str(content)),
            at=at,
            tool_calls=calls,
            attachments=tuple(more.pop("attachments", ())),
            extra=tuple((name, words) for name, words in more.pop("extra", ())),
            erased_at=erased_at,
            **more,
        )

    def tombstone(self, raw: Row, stops: Iterable[bytes]) -> Tombstone:
        """Return a tombstone as `SELECT_TOMBSTONE` selects it."""
        fields = raw[: len(TOMBSTONE_FIELDS)]
        scope, lifted_at, its_seal, _, reason, hits, why, *held = raw[len(TOMBSTONE_FIELDS) :]
        digest = tombstone_digest(self.key, fields, stops, lifted_at)
        if seal(self.key, "stop", (digest, scope)) != its_seal:
            raise behind_our_back(f"tombstone t{fields[0]}")
        if reason is not None and seal(self.key, "reason", (reason,)) != why:
            raise behind_our_back(f"the reason of tombstone t{fields[0]}")
        fact = None if fields[5] is None else self.name_of(fields[5], held)
        number, match, pattern, _, normaliser, _, _, name, kind, channel, at = fields
        return Tombstone(
            id=f"t{number}",
            scope=None if scope is None else self.scopes.get(scope, f"#{scope}"),
            match=Match(match),
            pattern=unpacked(pattern),
            normaliser=normaliser,
            fact=fact,
            reason=unpacked(reason),
            actor=actor(name, kind, channel),
            at=at,
            lifted_at=lifted_at,
            hits=hits,
        )

    def proposal(self, raw: Row) -> Proposal:
        """Return a proposal as `SELECT_PROPOSAL` selects it."""
        fields, (its_seal, *held) = raw[: len(PROPOSAL_FIELDS)], raw[len(PROPOSAL_FIELDS) :]
        if seal(self.key, "proposal", fields) != its_seal:
            raise behind_our_back(f"proposal p{fields[0]}")
        number, _, version, _, op, arguments, reason, name, kind, channel, at, _, _ = fields
        return Proposal(
            id=f"p{number}",
            fact="" if fields[1] is None else self.name_of(fields[1], held),
            version=0 if version is None else version,
            op=Op(op),
            arguments={} if arguments is None else from_json(unpack(str(arguments))),
            reason="" if reason is None else unpack(str(reason)),
            actor=actor(name, kind, channel),
            at=at,
        )

    def name_of(self, number: int, raw: Row | None) -> str:
        """Return the id of a fact by its row number, from `FACT_FIELDS` and its seal.

        Raises:
            Damaged: There is no such fact, or it was changed behind the file's back.
        """
        if raw is None or raw[0] != number or seal(self.key, "fact", raw[:-1]) != raw[-1]:
            raise behind_our_back(f"fact number {number}")
        return str(raw[1])

    def policy(self, raw: Row) -> PolicyRule:
        """Return a rule of the policy from kind, name, value and seal."""
        kind, name, value, its_seal = raw
        if seal(self.key, "policy", (kind, name, value)) != its_seal:
            raise behind_our_back(f"policy {kind} {name}")
        return PolicyRule(kind=str(kind), name=unpack(str(name)), value=unpack(str(value)))


def version_seal(key: bytes, fields: Row, rest: Row) -> bytes:
    """Return the seal of a version: over its digest, and when it was retired and erased.

    An erased version keeps the digest of the words it had, which says nothing of the columns that are left; so these
    are sealed too.

    Args:
        fields: As in `VERSION_FIELDS`.
        rest: Its digest, when it was retired, when it was erased.
    """
    return seal(key, "retired", rest) if rest[2] is None else seal(key, "erased", (*rest, *fields))


def tombstone_digest(key: bytes, fields: Row, stops: Iterable[bytes], lifted_at: Any) -> bytes:
    """Return what the audit trail knows a tombstone by: its columns, what it stops, and when it was lifted."""
    return seal(key, "tombstone", (*fields, *sorted(stops), lifted_at))


def actor(name: Any, kind: Any, channel: Any) -> Actor:
    """Return the actor that three columns hold."""
    return Actor(name=unpack(str(name)), kind=ActorKind(kind), channel=Channel(channel))


def unpacked(text: Any) -> str | None:
    """Return a nullable text as it was offered."""
    return None if text is None else unpack(str(text))


def texts_in(text: str | None) -> Iterator[str]:
    """Yield a stored text as it was offered and, where it is JSON, every text inside, which stands escaped there."""
    if text is None:
        return
    yield unpack(text)
    if text[:1] not in {"{", "[", '"'}:
        return
    try:
        pending: list[Any] = [from_json(unpack(text))]
    except (ValueError, RecursionError):
        return
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list | dict):
            pending += item.values() if isinstance(item, dict) else item


def event(raw: Row, previous: Any, scopes: Mapping[int, str], reason: Any) -> AuditEvent:
    """Return an event from `AUDIT_COLUMNS` and its hash, checked against the event before it.

    Raises:
        Damaged: It does not follow from the one before.
    """
    seq, at, name, kind, channel, op, target, scope, before_state, after_state, _, before, after, _, link = raw
    if chained(GENESIS if previous is None else previous, raw[:-1]) != link:
        raise behind_our_back(f"event e{seq}")
    return AuditEvent(
        seq=seq,
        id=f"e{seq}",
        at=at,
        actor=actor(name, kind, channel),
        op=Op(op),
        target=target,
        scope=None if scope is None else scopes.get(scope, f"#{scope}"),
        from_state=None if before_state is None else State(before_state),
        to_state=None if after_state is None else State(after_state),
        reason=unpacked(reason),
        before=shown(before),
        after=shown(after),
        previous=shown(previous if previous is not None else GENESIS) or "",
        hash=shown(link) or "",
    )


def grouped(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return rows by their first column, in the order they came; the rows must be sorted by it."""
    return {int(number): list(group) for number, group in groupby(rows, key=lambda row: row[0])}


def provenance_of(key: bytes, raw: Row) -> Provenance:
    """Return where a version came from, as `SELECT_PROVENANCE` selects it."""
    *fields, its_seal, spoke_in, position, role = raw
    fact, _, source, message, quote, start, stop, verified, _, _ = fields
    if provenance_seal(key, fields, (spoke_in, position, role)) != its_seal:
        raise behind_our_back(f"the evidence of fact number {fact}")
    return Provenance(
        source=f"s{source}",
        message=None if message is None else message_id(source, position),
        index=position,
        role=None if role is None else Role(role),
        quote=unpacked(quote),
        verified=bool(verified),
        span=None if start is None or stop is None else (int(start), int(stop)),
    )


def provenance_seal(key: bytes, fields: Row, message: Row) -> bytes:
    """Return the seal of a piece of evidence.

    What is shown of it beside its own columns is the place of the message, which the row names by a mere number.

    Args:
        fields: As in `PROVENANCE_FIELDS`.
        message: Source, position and role of the message; three times None where there is none.
    """
    return seal(key, "provenance", (*fields, *message))


def derivation(key: bytes, raw: Row) -> tuple[int, int, str, int]:
    """Return the columns of a derivation from `DERIVATION_FIELDS` and its seal.

    Raises:
        Damaged: It was changed behind the file's back.
    """
    child, parent, how_, recorded_at, its_seal = raw
    if seal(key, "derivation", (child, parent, how_, recorded_at)) != its_seal:
        raise behind_our_back(f"the derivation of fact number {child}")
    return child, parent, how_, recorded_at


def how(text: Any) -> How:
    """Return how a derivation was made."""
    return How(text)
