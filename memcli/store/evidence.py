"""Evidence on its way in: which messages a claim stands on, whose word counts how much, and what stops it."""

import json
import math
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from memcli import clock
from memcli.errors import Conflict, Echo, NotAllowed, NotFound, Refused, Tombstoned
from memcli.facts import Actor, Claim, Evidence, Micros, Scalar, Validity
from memcli.keys import NORMALISER, TombstoneKey, contains, evidence_digest, matches, slot_digest, value_digest
from memcli.store import rows
from memcli.store.ledger import Ledger
from memcli.store.seals import Field, Sealing, seal
from memcli.store.store import Store
from memcli.terms import DEFAULT_AUTHORITY, READABLE, Channel, Match, Role, SourceKind
from memcli.text import check_typed, pack, unpack

PATTERN_TIMEOUT_S = 1.0
"""How long one pattern of a tombstone may look at one text, in seconds."""

_KIND_OF_ROLE = {
    Role.USER: SourceKind.HUMAN,
    Role.SYSTEM: SourceKind.SYSTEM,
    Role.TOOL: SourceKind.TOOL,
    Role.ASSISTANT: SourceKind.AGENT,
    Role.UNKNOWN: SourceKind.AGENT,
}
_CONTENT, _EVIDENCE = rows.MESSAGE_FIELDS.index("content"), rows.MESSAGE_FIELDS.index("evidence")
_TOGETHER = 40
_TOGETHER_CHARACTERS = 1024 * 1024
"""How many messages, and how much text, are written with one statement: SQLite keeps a journal for each."""

_RESERVED = frozenset({"statement", *DEFAULT_AUTHORITY})
_MARKS = ",".join(f"'{state}'" for state in sorted(READABLE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """One piece of evidence, found in the file: row numbers, the quote's place, whose word it is."""

    source: int
    message: int | None
    quote: str | None
    span: tuple[int, int] | None
    verified: bool
    digest: bytes
    at: Micros | None
    authority: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A claim with the columns that recognise it."""

    claim: Claim
    text_key: bytes
    slot_key: bytes | None
    slot: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A tombstone that looks into texts."""

    number: int
    match: Match
    pattern: str


def spoken(value: Scalar) -> str | None:
    """Return a slot's value as a person would type it."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value)


class Evidenced(Ledger):
    """A ledger that knows evidence, authority and tombstones."""

    def __init__(
        self, store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None, *, planning: bool = False
    ) -> None:
        super().__init__(store, conn, actor, reason, planning=planning)
        self._authorities: dict[str, float] | None = None
        self._secrets: list[TombstoneKey] | None = None
        self._patterns: list[Pattern] | None = None

    # ---------------------------------------------------------------- evidence

    def backing(self, claim: Claim, *, at: Micros | None = None) -> list[Backing]:
        """Return what a claim stands on; without evidence, the statement itself, which has no row yet.

        Raises:
            NotFound: A message is not in this scope.
            NotAllowed: A message was erased.
        """
        if claim.evidence:
            return [self._cited(item) for item in claim.evidence]
        role = Role.USER if self.actor.is_person else Role.ASSISTANT
        digest = evidence_digest(self.store.tombstone_key.secret, str(role), claim.text)
        authority = self._authority(["statement"], SourceKind.HUMAN if self.actor.is_person else SourceKind.AGENT)
        moment = self.store.now() if at is None else at
        span = (0, len(claim.text))
        return [
            Backing(
                source=0,
                message=None,
                quote=claim.text,
                span=span,
                verified=True,
                digest=digest,
                at=moment,
                authority=authority,
            )
        ]

    def _cited(self, item: Evidence) -> Backing:
        place = re.fullmatch(r"s(\d{1,18})#(\d{1,18})", item.message)
        source, position = (int(place[1]), int(place[2])) if place else (0, 0)
        raw = self.conn.execute(
            "select m.id, m.role, m.content, m.at, m.evidence, m.erased_at,"
            " s.path, s.session, s.format, s.kind, s.scope"
            " from messages m join sources s on s.id = m.source where m.source = ? and m.position = ?",
            (source, position),
        ).fetchone()
        if raw is None or raw[10] != self.scope:
            raise NotFound(
                f"no message of {self.store.scope} has the id {item.message}",
                hint="ids look like s3#12: a source, #, the index from 0",
            )
        number, role, content, at, digest, erased_at, path, session, form, kind, _ = raw
        if erased_at is not None:
            raise NotAllowed(f"message {item.message} was erased", hint="name another message with --evidence")
        text = unpack(content)
        start = text.find(item.quote) if item.quote else -1
        # What a transcript calls itself may not pass for a kind of source that the policy trusts.
        given = (session, path, None if path is None else path.rsplit("/", 1)[-1])
        names = [f"s{source}", *(name for name in given if name not in {None, *_RESERVED}), form]
        spoke = SourceKind(kind) if form == "statement" else _KIND_OF_ROLE[Role(role)]
        return Backing(
            source=source,
            message=number,
            quote=item.quote,
            span=None if start < 0 or item.quote is None else (start, start + len(item.quote)),
            verified=item.quote is None or start >= 0,
            digest=digest,
            at=at,
            authority=self._authority(names, spoke),
        )

    def _authority(self, names: Iterable[str], kind: SourceKind) -> float:
        policy = self._policy()
        typed = kind is SourceKind.HUMAN and "statement" in names
        for name in (*names, "terminal" if typed else str(kind), str(kind)):
            if name in policy:
                return policy[name]
        return DEFAULT_AUTHORITY["terminal" if typed else kind]

    def _policy(self) -> dict[str, float]:
        if self._authorities is None:
            self._authorities = {rule.name: float(rule.value) for rule in self.store.policy() if rule.kind == "source"}
        return self._authorities

    def file_statement(self, text: str, at: Micros) -> tuple[int, int]:
        """Keep what was typed or piped as a source with one message; return both row numbers."""
        person = self.actor.is_person
        kind, role = (SourceKind.HUMAN, Role.USER) if person else (SourceKind.AGENT, Role.ASSISTANT)
        source = self.insert_source(kind=kind, form="statement", at=at)
        digest = evidence_digest(self.store.tombstone_key.secret, str(role), text)
        message = self.insert_message(
            source, 0, role=role, content=pack(text), detail=self._speaker(), at=at, digest=digest, recorded_at=at
        )
        return source, message

    def _speaker(self) -> str:
        return pack(json.dumps({"name": self.actor.name}))

    def insert_source(
        self,
        *,
        kind: SourceKind,
        form: str,
        at: Micros,
        path: str | None = None,
        session: str | None = None,
        title: str | None = None,
        digest: str | None = None,
    ) -> int:
        """Write a source and return its row number."""
        number = 1 + int(self.conn.execute("select coalesce(max(id), 0) from sources").fetchone()[0])
        texts = [None if text is None else pack(text) for text in (path, session, title)]
        fields = (number, self.scope, str(kind), form, *texts, digest, at, None)
        self.conn.execute(
            f"insert into sources ({', '.join(rows.SOURCE_FIELDS)}, seal) values ({', '.join('?' * 11)})",
            (*fields, seal(self.key, "source", fields)),
        )
        return number

    def insert_message(
        self,
        source: int,
        position: int,
        *,
        role: Role,
        content: str | None,
        detail: str | None,
        at: Micros | None,
        digest: bytes,
        recorded_at: Micros,
    ) -> int:
        """Write a message and return its row number; no content means that its words were erased before."""
        erased_at = recorded_at if content is None else None
        fields = (source, position, str(role), content, detail, at, digest, recorded_at, erased_at)
        cursor = self.conn.execute(
            f"insert into messages ({', '.join(rows.MESSAGE_FIELDS)}, seal) values ({', '.join('?' * 10)})",
            (*fields, seal(self.key, "message", fields)),
        )
        return int(cursor.lastrowid or 0)

    def insert_messages(self, found: Iterable[tuple[Field, ...]], sealing: Sealing, *, apart: bool) -> None:
        """Write messages, each given as the columns of `MESSAGE_FIELDS`, and put the evidence of each under a seal.

        Args:
            apart: Write each before the next is asked for, since what that one becomes is looked up in the file.
        """
        most = 1 if apart else _TOGETHER
        waiting: list[Field] = []
        count = size = 0
        for fields in found:
            sealing.add(fields[_EVIDENCE])
            waiting += (*fields, seal(self.key, "message", fields))
            count += 1
            size += len(fields[_CONTENT] or "")  # type: ignore[arg-type]  # it is a text
            if count == most or size > _TOGETHER_CHARACTERS:
                self.conn.execute(_messages(count), waiting)
                waiting.clear()
                count = size = 0
        if count:
            self.conn.execute(_messages(count), waiting)

    def insert_provenance(self, fact: int, version: int, item: Backing, at: Micros) -> None:
        """Link a version to what it stands on."""
        start, stop = item.span or (None, None)
        quote = None if item.quote is None else pack(item.quote)
        self.insert_provenance_row(
            (fact, version, item.source, item.message, quote, start, stop, int(item.verified), at, None)
        )

    def stands_on(self, fact: int) -> list[tuple[bytes, Micros | None, int]]:
        """Return (evidence digest, known time, source row) of everything a fact came from."""
        return self.conn.execute(
            "select m.evidence, m.at, m.source from provenance p join messages m on m.id = p.message where p.fact = ?",
            (fact,),
        ).fetchall()

    def only_known(self, offered: Sequence[Backing], held: Sequence[tuple[bytes, Micros | None, int]]) -> bool:
        """Return whether nothing that is offered is new: the same words, and no two known times that differ."""
        return all(
            any(digest == item.digest and (item.at is None or at is None or item.at == at) for digest, at, _ in held)
            for item in offered
        )

    # ---------------------------------------------------------------- what stops a claim

    def keyed(self, claim: Claim) -> Keyed:
        """Return the claim with the columns that recognise it."""
        keys = self.keys_for(claim.text, claim.slot, claim.value)
        return Keyed(
            claim=claim,
            text_key=keys["text_key"] or b"",
            slot_key=keys["slot_key"],
            slot=self.slot_row(claim.slot),
        )

    def slot_row(self, slot: tuple[str, str] | None) -> bytes | None:
        """Return the column that recognises a slot, whatever its value."""
        return None if slot is None else slot_digest(self.store.tombstone_key, *slot, "")

    def check_tombstones(self, text: str, slot: tuple[str, str] | None, value: Scalar) -> None:
        """Let a value pass that no tombstone of this scope, or of all, stops.

        Raises:
            Tombstoned: One does; the message says when, by whom and why.
        """
        said = spoken(value)
        texts = [text] if said is None or said == text else [text, said]
        for key in self.tombstone_keys():
            for normaliser in range(1, NORMALISER + 1):
                digests = [value_digest(key, item, normaliser=normaliser) for item in texts]
                if slot is not None and value is not None:
                    digests.append(slot_digest(key, *slot, value, normaliser=normaliser))
                for digest in digests:
                    self._refuse_stopped(digest, text)
        for pattern in self.patterns():
            if any(self._hit(pattern, item) for item in texts):
                self._refuse(pattern.number, text)

    def stopped(self, text: str, slot: tuple[str, str] | None, value: Scalar) -> bool:
        """Return whether a tombstone of this scope, or of all, stops a value."""
        try:
            self.check_tombstones(text, slot, value)
        except Refused:
            return True
        return False

    def tombstone_keys(self) -> list[TombstoneKey]:
        """Return every key that digests of this file's tombstones were made with, its own and those that came in."""
        if self._secrets is None:
            self._secrets = [
                TombstoneKey(id=name, secret=secret)
                for name, secret in self.conn.execute("select id, secret from keys where purpose = 'tombstone'")
            ]
        return self._secrets

    def _refuse_stopped(self, digest: bytes, text: str) -> None:
        found = self.conn.execute(
            "select t.id from stops s join tombstones t on t.id = s.tombstone"
            " where s.digest = ? and t.lifted_at is null and (t.scope is null or t.scope = ?) limit 1",
            (digest, self.scope),
        ).fetchone()
        if found is not None:
            self._refuse(found[0], text)

    def patterns(self) -> list[Pattern]:
        """Return the tombstones of this scope, or of all, that look into texts."""
        if self._patterns is None:
            self._patterns = [
                Pattern(number=number, match=Match(match), pattern=unpack(pattern))
                for number, match, pattern in self.conn.execute(
                    "select id, match, pattern from tombstones where match <> 'value' and lifted_at is null"
                    " and (scope is null or scope = ?) order by id",
                    (self.scope,),
                )
            ]
        return self._patterns

    def forget_secrets(self) -> None:
        """Read the tombstone keys again at the next check: one came in."""
        self._secrets = None

    def forget_patterns(self) -> None:
        """Read the patterns again at the next check: one was made or lifted."""
        self._patterns = None

    def _hit(self, pattern: Pattern, text: str) -> bool:
        try:
            return hits(pattern.match, pattern.pattern, text)
        except Refused as problem:
            stone = f"t{pattern.number}"
            raise Refused(problem.message, hint=problem.hint, target=stone, offered=text) from problem

    def _refuse(self, number: int, text: str) -> None:
        raw = self._stone(number)
        stone = self.store.reader.tombstone(raw, self._stops(number))
        where = "everywhere" if stone.scope is None else f"in {stone.scope}"
        why = "" if stone.reason is None else f": “{stone.reason}”"
        see = f"see it with `mem why {stone.fact[:8]}`, lift" if stone.fact else "lift"
        raise Tombstoned(
            f"that value was rejected {where} on {clock.day(stone.at)} by {stone.actor.name}{why}",
            hint=f"{see} it with `mem lift {stone.id} --reason …`",
            target=stone.id,
            offered=text,
        )

    def _stone(self, number: int) -> rows.Row:
        found: rows.Row = self.conn.execute(f"{rows.SELECT_TOMBSTONE} where t.id = ?", (number,)).fetchone()
        return found

    def _stops(self, number: int) -> list[bytes]:
        return [row[0] for row in self.conn.execute("select digest from stops where tombstone = ?", (number,))]

    def check_echo(self, keyed: Keyed, backing: Sequence[Backing]) -> None:
        """Let a value pass that was not withdrawn, or that has something new behind it.

        Raises:
            Echo: It was withdrawn, and only the evidence it had then is offered.
        """
        held: list[tuple[bytes, Micros | None, int]] = []
        names: list[str] = []
        for fact, name in self._same_value(keyed, "'revoked','superseded'"):
            held += self.stands_on(fact)
            names.append(name)
        if names and self.only_known(backing, held):
            raise Echo(
                f"that value was withdrawn as fact {names[0][:8]}, and nothing new stands behind it",
                hint=f"see why with `mem why {names[0][:8]}`; new evidence may bring it back",
                target=names[0],
                offered=keyed.claim.text,
            )

    def duplicates(self, keyed: Keyed) -> list[int]:
        """Return facts of the scope that hold the same value now, believed or waiting, readable ones first."""
        found = [
            *self._same_value(keyed, _MARKS),
            *self._same_value(keyed, "'tentative','disputed'"),
        ]
        return [
            number
            for number, _ in found
            if self._validity(self.newest(number)).overlaps(keyed.claim.validity) and self._is_newest(number, keyed)
        ]

    def _is_newest(self, number: int, keyed: Keyed) -> bool:
        row = self.newest(number)
        return row.field("text_key") == keyed.text_key or (
            keyed.slot_key is not None and row.field("slot_key") == keyed.slot_key
        )

    def _same_value(self, keyed: Keyed, states: str) -> list[tuple[int, str]]:
        found: dict[int, str] = {}
        for column, key in (("text_key", keyed.text_key), ("slot_key", keyed.slot_key)):
            if key is None:
                continue
            found.update(
                self.conn.execute(
                    f"select v.fact, f.name from versions v join facts f on f.id = v.fact where v.{column} = ?"
                    f" and v.retired_at is null and v.state in ({states}) and f.scope = ? and f.erased_at is null"
                    " order by v.fact",
                    (key, self.scope),
                )
            )
        return list(found.items())

    def rivals(self, slot: bytes | None, slot_key: bytes | None, validity: Validity, *, but: int = 0) -> list[int]:
        """Return readable facts that hold another value in the slot at some same moment."""
        if slot is None:
            return []
        found = self.conn.execute(
            "select f.id from facts f join versions v on v.fact = f.id where f.slot = ? and f.scope = ? and f.id <> ?"
            f" and v.retired_at is null and v.state in ({_MARKS}) and v.slot_key is not ?",
            (slot, self.scope, but, slot_key),
        ).fetchall()
        return [number for (number,) in found if self._validity(self.newest(number)).overlaps(validity)]

    def _validity(self, row: rows.VersionRow) -> Validity:
        start: Any = row.field("valid_from")
        end: Any = row.field("valid_to")
        return Validity(start=start, end=end)

    def weigh(self, keyed: Keyed, authority: float, backing: Sequence[Backing]) -> tuple[str, list[int]]:
        """Return what happens to a claim whose slot holds other values: `free`, `supersede` or `hold`, and the rivals.

        Raises:
            Conflict: A rival has more authority.
        """
        found = self.rivals(keyed.slot, keyed.slot_key, keyed.claim.validity)
        sources = {item.source for item in backing if item.message is not None}
        outcome = "supersede" if found else "free"
        for number in found:
            row = self.newest(number)
            theirs: Any = row.field("authority")
            if sources & {source for _, _, source in self.stands_on(number)}:
                continue
            if theirs > authority:
                name = str(row.fact_field("name"))
                raise Conflict(
                    f"fact {name[:8]} holds another value there, from a source of more authority"
                    f" ({theirs:g} against {authority:g})",
                    hint=f"see it with `mem why {name[:8]}`, change it with `mem correct {name[:8]}`",
                    target=name,
                    offered=keyed.claim.text,
                )
            if theirs == authority:
                outcome = "hold"
        return outcome, found

    def check_texts(self, claim: Claim) -> None:
        """Refuse a claim that no person could read, or whose parts do not belong together.

        Raises:
            NotAllowed: A blank text, a value without a slot, an attribute without a subject.
        """
        typed = self.actor.channel in (Channel.TERMINAL, Channel.PIPE, Channel.API, Channel.DECISIONS, Channel.SERVER)
        for what, text in (
            ("the text", claim.text),
            ("the subject", claim.subject),
            ("the attribute", claim.attribute),
        ):
            if text is not None and typed:
                check_typed(text, what=what)
        if not any(unicodedata.category(char)[0] not in "CZ" for char in claim.text):
            raise NotAllowed("a fact without words says nothing", hint="give its text")
        if claim.value is not None and claim.slot is None:
            raise NotAllowed("a value needs a subject and an attribute", hint="give --subject and --attribute too")
        if claim.attribute is not None and claim.subject is None:
            raise NotAllowed("an attribute needs a subject", hint="give --subject too")
        if claim.slot is not None and claim.value is None:
            raise NotAllowed("a slot needs a value", hint="give --value too, or leave --attribute out")
        _check_numbers(claim)


@cache
def _messages(count: int) -> str:
    """Return the statement that writes so many messages."""
    row = f"({', '.join('?' * (len(rows.MESSAGE_FIELDS) + 1))})"
    return f"insert into messages ({', '.join(rows.MESSAGE_FIELDS)}, seal) values {', '.join([row] * count)}"


def _check_numbers(claim: Claim) -> None:
    for what, number in (
        ("confidence", claim.confidence),
        ("importance", claim.importance),
        ("authority", claim.authority),
    ):
        if number is not None and not 0 <= number <= 1:
            raise NotAllowed(f"the {what} {number} is no number from 0 to 1", hint="give one such as 0.8")
    if isinstance(claim.value, float) and not math.isfinite(claim.value):
        raise NotAllowed(f"the value {claim.value} is no number that JSON can hold", hint="give it as text")
    for moment in (claim.validity.start, claim.validity.end):
        clock.format_optional(moment)


def hits(match: Match, pattern: str, text: str) -> bool:
    """Return whether a pattern of a tombstone stops a text."""
    if match is Match.CONTAINS:
        return contains(pattern, text)
    return matches(pattern, text, timeout_s=PATTERN_TIMEOUT_S)
