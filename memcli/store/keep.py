"""Keeping the file: transcripts in, scopes, policy, settings."""

import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, overload

from memcli.errors import NotAllowed, NotFound, OutOfScope, UsageError
from memcli.facts import Actor, Conversation, Imported, Micros, PolicyRule, Turn
from memcli.keys import evidence_digest
from memcli.store import rows, tx_rows
from memcli.store.basics import checked_scope, write_setting
from memcli.store.remove import Removing
from memcli.store.seals import Field, Sealing, seal
from memcli.store.store import Store
from memcli.terms import Op, SourceKind
from memcli.text import pack
from memcli.transactions import settings

OWN_WORDS = 12
"""From so many characters on, an erased message is recognised by its words alone."""


Mark: TypeAlias = tuple[bytes, Micros | None]
"""What a message is recognised by: the digest of its words, and when it was said."""

_NO_TEXTS = (None,) * 6
_DIGEST_BYTES = 32
_UNKNOWN = -(2**63)


class _Marks(Sequence[Mark]):
    """The marks of all messages of a transcript, 40 bytes each: one session may have a million."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._digests = bytearray()
        self._times = array("q")
        for digest, at in marks:
            self._digests += digest
            self._times.append(_UNKNOWN if at is None else at)

    def __len__(self) -> int:
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> Mark: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mark]: ...
    def __getitem__(self, index: int | slice) -> Mark | Sequence[Mark]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        at = self._times[index]
        start = index % len(self) * _DIGEST_BYTES
        return bytes(self._digests[start : start + _DIGEST_BYTES]), None if at == _UNKNOWN else at


class Keeping(Removing):
    """A ledger that takes transcripts in and keeps the file's own settings."""

    def __init__(
        self, store: Store, conn: sqlite3.Connection, actor: Actor, reason: str | None, *, planning: bool = False
    ) -> None:
        super().__init__(store, conn, actor, reason, planning=planning)
        self._erased: bool | None = None

    # ---------------------------------------------------------------- transcripts

    def take(self, conversation: Conversation, *, path: str, digest: str) -> Imported:
        """Keep a transcript as a source with its messages, and return what was new.

        The same transcript again, under whatever name, adds nothing; one that has grown adds its new messages to the
        source that was there. Messages whose words were erased come back as markers.
        """
        turns = conversation.turns
        first = self._identity(turns[0]) if turns else b""
        maybe = self._beginning_with(first)
        # Most transcripts are new, and then each message is looked at once.
        marks = _Marks((self._identity(turn), turn.at) for turn in turns) if maybe or self._erased_something() else None
        source, held = (None, 0) if marks is None else self._same_source(maybe, marks)
        if source is not None and held >= len(turns):
            return self._imported(source, 0, len(turns), conversation)
        at = self.tick()
        if source is None:
            source = self.insert_source(
                kind=SourceKind.DOCUMENT,
                form=conversation.format,
                at=at,
                path=path,
                session=conversation.session,
                title=conversation.title,
                digest=digest,
            )
        # The audit knows an import by the evidence of every message that it added.
        sealing = Sealing(self.key, "import")
        sealing.add(source)
        kept = (
            self._fresh_rows(source, turns, first, at)
            if marks is None
            else (self._kept(source, index, turns, marks, at) for index in range(held, len(turns)))
        )
        self.insert_messages(kept, sealing, apart=self._erased_something())
        self.event(Op.IMPORT, f"s{source}", at=at, after=sealing.digest())
        return self._imported(source, len(turns) - held, held, conversation)

    def _imported(self, source: int, new: int, same: int, conversation: Conversation) -> Imported:
        return Imported(source=f"s{source}", new=new, same=same, session=conversation.session, title=conversation.title)

    def _identity(self, turn: Turn) -> bytes:
        said = turn.content
        if turn.tool_calls:
            said += "".join(f"\n{call.name} {call.arguments}" for call in turn.tool_calls)
        return evidence_digest(self.store.tombstone_key.secret, str(turn.role), said)

    def _beginning_with(self, first: bytes) -> list[int]:
        """Return the transcripts of this scope whose first message has a digest, newest first."""
        found = self.conn.execute(
            "select m.source from messages m join sources s on s.id = m.source where m.evidence = ?"
            " and m.position = 0 and s.scope = ? and s.format <> 'statement' order by m.source desc",
            (first, self.scope),
        )
        return [number for (number,) in found]

    def _same_source(self, candidates: Sequence[int], marks: Sequence[Mark]) -> tuple[int | None, int]:
        """Return the source that holds the beginning of a transcript, or all of it, and how many messages it holds."""
        for number in candidates:
            held = self.conn.execute("select evidence, at from messages where source = ? order by position", (number,))
            if all(
                mine == theirs and (at is None or known is None or at == known)
                for (mine, at), (theirs, known) in zip(marks, held, strict=False)
            ):
                (count,) = self.conn.execute("select count(*) from messages where source = ?", (number,)).fetchone()
                return number, int(count)
        return None, 0

    def _fresh_rows(self, source: int, turns: Sequence[Turn], first: bytes, at: Micros) -> Iterator[tuple[Field, ...]]:
        """Yield the rows of messages none of which was in the file before."""
        for index, turn in enumerate(turns):
            digest = self._identity(turn) if index else first
            yield source, index, str(turn.role), pack(turn.content), _detail(turn), turn.at, digest, at, None

    def _was_erased(self, turns: Sequence[Turn], marks: Sequence[Mark], index: int) -> bool:
        """Return whether the words of a message were erased in this scope before.

        What is too short to be anybody's own (`ok`) counts only where the message before or after it is the same too.
        """
        if not self._erased_something():
            return False
        found = self.conn.execute(
            "select (select evidence from messages where source = m.source and position = m.position - 1),"
            " (select evidence from messages where source = m.source and position = m.position + 1)"
            " from messages m join sources s on s.id = m.source"
            " where m.evidence = ? and m.erased_at is not null and s.scope = ?",
            (marks[index][0], self.scope),
        ).fetchall()
        if not found or len(" ".join(turns[index].content.split())) >= OWN_WORDS:
            return bool(found)
        before = marks[index - 1][0] if index else None
        after = marks[index + 1][0] if index + 1 < len(marks) else None
        return any(before == earlier or after == later for earlier, later in found)

    def _erased_something(self) -> bool:
        """Return whether any message of the file was erased, which is looked up once a transaction."""
        if self._erased is None:
            found = self.conn.execute("select exists (select 1 from messages where erased_at is not null)").fetchone()
            self._erased = bool(found[0])
        return self._erased

    def _kept(
        self,
        source: int,
        index: int,
        turns: Sequence[Turn],
        marks: Sequence[Mark],
        at: Micros,
    ) -> tuple[Field, ...]:
        """Return the row of a message; one whose words were erased before comes back as a marker."""
        turn = turns[index]
        erased = self._erased_something() and self._was_erased(turns, marks, index)
        content, detail = (None, None) if erased else (pack(turn.content), _detail(turn))
        gone = at if erased else None
        return source, index, str(turn.role), content, detail, turn.at, marks[index][0], at, gone

    # ---------------------------------------------------------------- scopes

    def rename_scope(self, old: str, new: str) -> None:
        """Give a scope another name; what it holds, tombstones included, stays in it."""
        self.need_person("rename a scope")
        self._need_free()
        self.need_reason()
        number = self._scope_number(old)
        wanted = checked_scope(new)
        if self.conn.execute("select 1 from scopes where name = ?", (wanted,)).fetchone():
            raise NotAllowed(f"there is a scope {wanted} already", hint="merge them with `mem scope merge`")
        row = (number, wanted, None)
        before = seal(self.key, "scope", (number, old, None))
        after = seal(self.key, "scope", row)
        self.conn.execute("update scopes set name = ?, seal = ? where id = ?", (wanted, after, number))
        del self._scopes[old]
        self._scopes[wanted] = number
        if self.scope_name == old:
            self.scope_name = wanted
        if self.store.settings["scope"] == old:
            self.set_setting("scope", wanted)
        self.event(Op.SCOPE, f"scope:{number}", scope=number, before=before, after=after)

    def merge_scopes(self, old: str, into: str) -> None:
        """Move everything of one scope into another, tombstones first, and end the one.

        A value that the target rejected is rejected in what arrives; one that the arriving scope rejected is
        rejected in the target.

        Raises:
            NotAllowed: Both hold values for one slot; nothing was changed.
        """
        self.need_person("merge scopes")
        self._need_free()
        self.need_reason()
        source, target = self._scope_number(old), self._scope_number(into)
        if source == target:
            raise NotAllowed("a scope cannot be merged into itself", hint="name two scopes")
        self._check_slots(source, target)
        self._check_open(source)
        moved = self.conn.execute("select id from facts where scope = ? order by id", (source,)).fetchall()
        for (number,) in moved:
            self.touch(number)
        for table, fields in (
            ("facts", rows.FACT_FIELDS),
            ("sources", rows.SOURCE_FIELDS),
            ("proposals", rows.PROPOSAL_FIELDS),
            ("transactions", tx_rows.TRANSACTION_FIELDS),
        ):
            self._rescope(table, fields, source, target)
        self._rescope_tombstones(source, target)
        before, after = (seal(self.key, "scope", (source, old, where)) for where in (None, target))
        self.conn.execute("update scopes set merged_into = ?, seal = ? where id = ?", (target, after, source))
        self.event(Op.SCOPE, f"scope:{source}", scope=target, before=before, after=after)
        del self._scopes[old]
        if self.scope_name == old:
            self.scope_name = into
        if self.store.settings["scope"] == old:
            self.set_setting("scope", into)
        self._apply_tombstones(target)

    def _need_free(self) -> None:
        """Refuse a change of scopes by a process that is bound to one.

        Raises:
            OutOfScope: It is.
        """
        if self.store.bound is not None:
            raise OutOfScope(
                f"this process is bound to {self.store.bound} and may not change scopes", hint="unset MEM_SCOPE"
            )

    def _scope_number(self, name: str) -> int:
        if name not in self._scopes:
            raise NotFound(f"there is no scope {name}", hint="list them with `mem scope list`")
        return self._scopes[name]

    def _check_open(self, source: int) -> None:
        found = self.conn.execute(
            "select id from transactions where scope = ? and status = 'open' order by id", (source,)
        ).fetchone()
        if found is not None:
            raise NotAllowed(
                f"transaction tx{found[0]} of that scope is open",
                hint="commit or abort it, or wait for its lease and run `mem tx recover`",
            )

    def _check_slots(self, source: int, target: int) -> None:
        clash = self.conn.execute(
            "select a.name, b.name from facts a join facts b on a.slot = b.slot"
            " join current c on c.fact = a.id join current d on d.fact = b.id"
            " join versions v on v.id = c.row join versions w on w.id = d.row"
            " where a.scope = ? and b.scope = ? and c.state in ('accepted', 'verified')"
            " and d.state in ('accepted', 'verified') and v.slot_key is not w.slot_key limit 1",
            (source, target),
        ).fetchone()
        if clash is not None:
            raise NotAllowed(
                f"facts {clash[0][:8]} and {clash[1][:8]} hold different values for one slot",
                hint="correct or retract one of them first",
            )

    def _rescope(self, table: str, fields: Sequence[str], source: int, target: int) -> None:
        kind = table[:-1]
        found = self.conn.execute(f"select {', '.join(fields)} from {table} where scope = ?", (source,)).fetchall()
        at = fields.index("scope")
        for raw in found:
            fresh = (*raw[:at], target, *raw[at + 1 :])
            self.conn.execute(
                f"update {table} set scope = ?, seal = ? where id = ?", (target, seal(self.key, kind, fresh), raw[0])
            )

    def _rescope_tombstones(self, source: int, target: int) -> None:
        for (number,) in self.conn.execute("select id from tombstones where scope = ?", (source,)).fetchall():
            raw = self._stone(number)
            lifted_at = raw[len(rows.TOMBSTONE_FIELDS) + 1]
            digest = rows.tombstone_digest(self.key, raw[: len(rows.TOMBSTONE_FIELDS)], self._stops(number), lifted_at)
            self.conn.execute(
                "update tombstones set scope = ?, seal = ? where id = ?",
                (target, seal(self.key, "stop", (digest, target)), number),
            )

    def _apply_tombstones(self, target: int) -> None:
        self.forget_patterns()
        name = next(name for name, number in self._scopes.items() if number == target)
        asked, self.scope_name = self.scope_name, name
        try:
            for number, text, value in list(self._current(everywhere=False)):
                slot = self.fact(number).slot
                if self.stopped(text, slot, value):
                    self.end_value(number)
        finally:
            self.scope_name = asked
            self.forget_patterns()

    # ---------------------------------------------------------------- policy, settings

    def set_policy(self, rule: PolicyRule) -> None:
        """Set one rule of the policy; people only.

        Raises:
            NotPermitted: This is no terminal.
            UsageError: The authority is no number from 0 to 1, or the oracle has no command.
        """
        self.need_person("change the policy")
        if rule.kind not in {"source", "oracle", "agent", "tool"}:
            raise UsageError(f"{rule.kind} is no kind of rule", hint="one of: source, oracle, agent, tool")
        settings.check_rule(rule)
        if rule.kind == "source":
            try:
                value = float(rule.value)
            except ValueError:
                value = -1.0
            if not 0 <= value <= 1:
                raise UsageError(f"{rule.value} is no authority", hint="give a number from 0 to 1")
        if not rule.name.strip() or not rule.value.strip():
            raise UsageError("a rule of the policy needs a name and a value", hint="see `mem policy set --help`")
        fields = (rule.kind, pack(rule.name), pack(rule.value))
        before = self.conn.execute("select seal from policy where kind = ? and name = ?", fields[:2]).fetchone()
        after = seal(self.key, "policy", fields)
        self.conn.execute(
            "insert into policy values (?, ?, ?, ?) on conflict do update set value = excluded.value,"
            " seal = excluded.seal",
            (*fields, after),
        )
        self.event(
            Op.POLICY, f"{rule.kind}:{pack(rule.name)}", before=None if before is None else before[0], after=after
        )

    def drop_policy(self, kind: str, name: str) -> None:
        """Take one rule out of the policy; people only.

        Raises:
            NotFound: There is no such rule.
        """
        self.need_person("change the policy")
        before = self.conn.execute("select seal from policy where kind = ? and name = ?", (kind, pack(name))).fetchone()
        if before is None:
            raise NotFound(f"the policy has no {kind} {name}", hint="see `mem policy show`")
        self.conn.execute("delete from policy where kind = ? and name = ?", (kind, pack(name)))
        self.event(Op.POLICY, f"{kind}:{pack(name)}", before=before[0])

    def set_setting(self, name: str, value: str) -> None:
        """Write one setting of the file with its seal."""
        write_setting(self.conn, self.key, (name, value))


def _detail(turn: Turn) -> str | None:
    """Return what a message carries beside its words, as the file holds it; None where it carries nothing."""
    texts = (turn.name, turn.at_text, turn.origin, turn.parent, turn.tool_call_id, turn.thinking)
    if texts == _NO_TEXTS and not (turn.extra or turn.attachments or turn.tool_calls):
        return None
    more: Mapping[str, object] = {
        "name": turn.name,
        "at_text": turn.at_text,
        "origin": turn.origin,
        "parent": turn.parent,
        "tool_call_id": turn.tool_call_id,
        "thinking": turn.thinking,
        "extra": [list(pair) for pair in turn.extra] or None,
        "attachments": list(turn.attachments) or None,
        "tool_calls": [[call.id, call.name, call.arguments] for call in turn.tool_calls] or None,
    }
    kept = {name: value for name, value in more.items() if value is not None}
    return pack(json.dumps(kept)) if kept else None
