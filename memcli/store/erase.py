"""Erasing: the words go from every table, the index, the log's reasons and the free pages; digests stay."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memcli.errors import Busy, NoSpace, NotAllowed, UsageError
from memcli.facts import ErasePlan, Fact
from memcli.keys import contains, value_digest
from memcli.store import rows
from memcli.store.condense import Condensing
from memcli.store.evidence import spoken
from memcli.store.seals import seal
from memcli.terms import FINAL, Match, Op, State
from memcli.text import unpack

_NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


class Erasing(Condensing):
    """A ledger that can remove words for good."""

    # ---------------------------------------------------------------- plans

    def plan_erase_facts(self, targets: Sequence[Fact]) -> ErasePlan:
        """Return what erasing these facts removes: every wording of them in the scope and the messages behind them."""
        chosen = {self.fact_number(target.id) for target in targets}
        for number in chosen:
            self.check_here(self.newest(number))
        keys: set[bytes] = set()
        for number in sorted(chosen):
            found = self.conn.execute("select text_key, slot_key from versions where fact = ?", (number,))
            keys |= {key for pair in found for key in pair if key is not None}
        chosen |= set(self._holding_ever(keys))
        messages = self._evidence_of(chosen)
        texts = [text for number in sorted(chosen) for text in self._texts(number)]
        messages |= self._repeating(texts)
        return self._erase_plan(chosen, messages, ())

    def plan_erase_source(self, source: str) -> ErasePlan:
        """Return what erasing a source removes: its messages, and the facts that stand on nothing else."""
        number = self.store.source_number(source)
        messages = {row[0] for row in self.conn.execute("select id from messages where source = ?", (number,))}
        users = [
            row[0]
            for row in self.conn.execute(
                "select distinct fact from provenance where source = ? order by fact", (number,)
            )
        ]
        alone = {fact for fact in users if not self._stands_elsewhere(fact, messages)}
        return self._erase_plan(alone, messages, (number,))

    def plan_erase_value(self, text: str) -> ErasePlan:
        """Return what erasing a text removes: facts and messages of the scope that hold it, however it is written.

        Raises:
            UsageError: Nothing of it can be seen.
        """
        if not contains(text, text):
            # Every text holds the empty one, and an unset variable of a script must not erase them all.
            raise UsageError("the text to erase shows nothing", hint="give at least one letter or digit of it")
        chosen: set[int] = set()
        for number, *fields in self.conn.execute(
            "select v.fact, v.text, v.value, f.subject, f.attribute, f.owner from versions v"
            " join facts f on f.id = v.fact where f.scope = ?1 and v.text is not null"
            " union select p.fact, p.quote, null, null, null, null from provenance p"
            " join facts f on f.id = p.fact where f.scope = ?1 and p.quote is not null",
            (self.scope,),
        ):
            if any(contains(text, item) for field in fields for item in rows.texts_in(field)):
                chosen.add(number)
        messages = self._evidence_of(chosen) | self._repeating([text], loosely=True)
        return self._erase_plan(chosen, messages, ())

    def _holding_ever(self, keys: Iterable[bytes]) -> Iterator[int]:
        for key in sorted(keys):
            for column in ("text_key", "slot_key"):
                for (number,) in self.conn.execute(
                    f"select v.fact from versions v join facts f on f.id = v.fact where v.{column} = ?"
                    " and v.retired_at is null and f.scope = ?",
                    (key, self.scope),
                ):
                    yield number

    def _texts(self, number: int) -> list[str]:
        found = self.conn.execute(
            "select text from versions where fact = ?1 and text is not null union"
            " select quote from provenance where fact = ?1 and quote is not null",
            (number,),
        )
        return [unpack(text) for (text,) in found]

    def _evidence_of(self, facts: Iterable[int]) -> set[int]:
        return {
            row[0]
            for number in facts
            for row in self.conn.execute(
                "select message from provenance where fact = ? and message is not null", (number,)
            )
        }

    def _repeating(self, texts: Sequence[str], *, loosely: bool = False) -> set[int]:
        """Return messages of the scope that hold one of the texts as it stands, or loosely: however it is written."""
        found: set[int] = set()
        for number, content, detail in self.conn.execute(
            "select m.id, m.content, m.detail from messages m join sources s on s.id = m.source"
            " where s.scope = ? and m.content is not null",
            (self.scope,),
        ):
            whole = "\n".join((unpack(content), *rows.texts_in(detail)))
            if any(text in whole or (loosely and contains(text, whole)) for text in texts):
                found.add(number)
        return found

    def _stands_elsewhere(self, fact: int, messages: set[int]) -> bool:
        found = self.conn.execute("select message from provenance where fact = ? and erased_at is null", (fact,))
        return any(row[0] not in messages for row in found)

    def _erase_plan(self, chosen: set[int], messages: set[int], sources: tuple[int, ...]) -> ErasePlan:
        fallen = {child for number in chosen for child in self.descendants(number)} - chosen
        messages = messages | self._own_words(fallen)
        touched = {
            row[0]
            for message in messages
            for row in self.conn.execute("select fact from provenance where message = ?", (message,))
        }
        reviewed = touched - chosen - fallen
        marks = [self._message_name(number) for number in sorted(messages) if not self._wiped(number)]
        return ErasePlan(
            facts=tuple(self.fact(number) for number in sorted(chosen) if not self._gone(number)),
            messages=tuple(marks),
            sources=tuple(f"s{number}" for number in sources),
            reviewed=tuple(self.fact(number) for number in sorted(reviewed) if not self._gone(number)),
            falls=tuple(self.fact(number) for number in sorted(fallen) if not self._gone(number)),
        )

    def _own_words(self, facts: Iterable[int]) -> set[int]:
        """Return the statements that facts came from: a summary is its own evidence, and holds its words."""
        return {
            row[0]
            for number in facts
            for row in self.conn.execute(
                "select p.message from provenance p join sources s on s.id = p.source"
                " where p.fact = ? and p.message is not null and s.format = 'statement'",
                (number,),
            )
        }

    def _wiped(self, message: int) -> bool:
        row = self.conn.execute("select erased_at from messages where id = ?", (message,)).fetchone()
        return row[0] is not None

    def _gone(self, number: int) -> bool:
        return self.newest(number).fact_field("erased_at") is not None

    def _message_name(self, number: int) -> str:
        source, position = self.conn.execute("select source, position from messages where id = ?", (number,)).fetchone()
        return rows.message_id(source, position)

    # ---------------------------------------------------------------- doing it

    def erase(self, plan: ErasePlan, *, texts: Sequence[str] = ()) -> None:
        """Remove the words a plan names; what was erased stays stopped by its digest.

        Args:
            texts: What was asked to be erased by itself; reasons and proposals that contain it lose their words too.

        Raises:
            NotAllowed: The reason repeats the words that are to go.
        """
        self.need_reason()
        self.need_decider("erase words")
        numbers = [self.fact_number(fact.id) for fact in (*plan.facts, *plan.falls)]
        words = [*texts, *(text for number in numbers for text in self._texts(number) if len(text) > 2)]
        values = [spoken(fact.value) or "" for fact in plan.facts]
        if any(contains(text, self.reason or "") for text in (*words, *(text for text in values if len(text) > 2))):
            raise NotAllowed("the reason repeats the words that are to go", hint="say why in other words")
        if texts:
            stops = [value_digest(self.store.tombstone_key, text) for text in texts]
            self.bury(Match.VALUE, None, stops, scope=self.scope, fact=None)
        held = {number: self._values_of(number) for number in numbers}
        for number in numbers:
            self._end_for_good(number)
        for number in numbers:
            self.cascade(number)  # nothing is left to fall, and actions may owe something
        for number in numbers:
            self._wipe_fact(number)
        places: dict[int, list[int]] = {}
        for name in plan.messages:
            source, _, position = name[1:].partition("#")
            places.setdefault(int(source), []).append(int(position))
        for number, positions in places.items():
            self._wipe_messages(number, positions)
        if not (numbers or places):
            self.event(Op.ERASE, None)  # what is wiped below carries the time of an event that says so
        for name in plan.sources:
            self._wipe_source(int(name[1:]))
        self._wipe_words(words, held)
        self.set_setting("scrub", "pending")
        self.scrubs = True

    def _end_for_good(self, number: int) -> None:
        row = self.newest(number)
        scope: Any = row.fact_field("scope")
        found = self.conn.execute("select text_key, slot_key from versions where fact = ?", (number,)).fetchall()
        stops = sorted({key for pair in found for key in pair if key is not None})
        self.bury(Match.VALUE, None, stops, scope=scope, fact=number)
        if State(str(row.field("state"))) not in FINAL:
            self.move(row, State.REJECTED, Op.ERASE)
            return
        self.event(Op.ERASE, str(row.fact_field("name")), before=row.digest, after=row.digest, scope=scope)

    def _wipe_fact(self, number: int) -> None:
        self.touch(number)
        at = self._at
        raw = self.conn.execute(f"select {', '.join(rows.FACT_FIELDS)} from facts where id = ?", (number,)).fetchone()
        fields = dict(zip(rows.FACT_FIELDS, raw, strict=True)) | {
            "subject": None, "attribute": None, "owner": None, "erased_at": at,
        }  # fmt: skip
        self.conn.execute(
            "update facts set subject = null, attribute = null, owner = null, erased_at = ?, seal = ? where id = ?",
            (at, seal(self.key, "fact", tuple(fields.values())), number),
        )
        columns = ", ".join(rows.VERSION_FIELDS)
        for row, digest, retired_at, *left in self.conn.execute(
            f"select id, digest, retired_at, {columns} from versions where fact = ? and erased_at is null", (number,)
        ).fetchall():
            said = dict(zip(rows.VERSION_FIELDS, left, strict=True)) | {"text": None, "value": None}
            its_seal = rows.version_seal(self.key, tuple(said.values()), (digest, retired_at, at))
            self.conn.execute(
                "update versions set text = null, value = null, erased_at = ?, seal = ? where id = ?",
                (at, its_seal, row),
            )
            self.conn.execute("delete from token_counts where row = ?", (row,))
            self._fresh = [item for item in self._fresh if item[0] != row]
        self._wipe_quotes("fact = ?", number)

    def _wipe_quotes(self, where: str, number: int) -> None:
        columns = ", ".join(rows.PROVENANCE_FIELDS)
        for row, was, *raw in self.conn.execute(
            f"select id, seal, {columns} from provenance where {where} and erased_at is null", (number,)
        ).fetchall():
            fields = dict(zip(rows.PROVENANCE_FIELDS, raw, strict=True)) | {
                "quote": None, "start": None, "stop": None, "erased_at": self._at,
            }  # fmt: skip
            its_seal = rows.provenance_seal(self.key, tuple(fields.values()), self.place_of(fields["message"]))
            self.conn.execute(
                "update provenance set quote = null, start = null, stop = null, erased_at = ?, seal = ? where id = ?",
                (self._at, its_seal, row),
            )
            self.roll.resealed("provenance", row, was, its_seal)

    def _wipe_messages(self, source: int, positions: Sequence[int]) -> None:
        at = self.tick()
        for position in positions:
            row, *raw = self.conn.execute(
                f"select id, {', '.join(rows.MESSAGE_FIELDS)} from messages where source = ? and position = ?",
                (source, position),
            ).fetchone()
            fields = dict(zip(rows.MESSAGE_FIELDS, raw, strict=True))
            if fields["erased_at"] is not None:
                continue
            fields |= {"content": None, "detail": None, "erased_at": at}
            self.conn.execute(
                "update messages set content = null, detail = null, erased_at = ?, seal = ? where id = ?",
                (at, seal(self.key, "message", tuple(fields.values())), row),
            )
            self._wipe_quotes("message = ?", row)
        self.event(Op.ERASE, f"s{source}", at=at)

    def _wipe_source(self, number: int) -> None:
        raw = self.conn.execute(
            f"select {', '.join(rows.SOURCE_FIELDS)} from sources where id = ?", (number,)
        ).fetchone()
        fields = dict(zip(rows.SOURCE_FIELDS, raw, strict=True)) | {
            "path": None, "session": None, "title": None, "erased_at": self._at,
        }  # fmt: skip
        self.conn.execute(
            "update sources set path = null, session = null, title = null, erased_at = ?, seal = ? where id = ?",
            (self._at, seal(self.key, "source", tuple(fields.values())), number),
        )

    def _values_of(self, number: int) -> list[str]:
        """Return the values that a fact had in its slot, as a person would type them; very short ones are no trace."""
        found = self.conn.execute("select distinct value from versions where fact = ? and value is not null", (number,))
        values = [spoken(json.loads(value)) or "" for (value,) in found]
        return [value for value in values if len(value) > 2]

    def _wipe_words(self, words: Sequence[str], values: Mapping[int, Sequence[str]]) -> None:
        """Take the words out of reasons and proposals that repeat them, in the scope and outside every scope.

        Args:
            values: By fact: what is a trace of it only where something was done to it, such as the name of a city.
        """
        for number, held in values.items():
            for seq, text in self.conn.execute(
                "select r.seq, r.text from reasons r join audit a on a.seq = r.seq where r.text is not null and"
                " a.operation in (select b.operation from audit b join facts f on f.name = b.target where f.id = ?)",
                (number,),
            ).fetchall():
                if any(contains(value, unpack(text)) for value in held):
                    self._wipe_reason(seq)
        for seq, text in self.conn.execute("select seq, text from reasons where text is not null").fetchall():
            if any(contains(word, unpack(text)) for word in words):
                self._wipe_reason(seq)
        self._wipe_labels(words)
        columns = ", ".join(rows.PROPOSAL_FIELDS)
        for raw in self.conn.execute(f"select {columns} from proposals where scope = ?", (self.scope,)).fetchall():
            fields: dict[str, Any] = dict(zip(rows.PROPOSAL_FIELDS, raw, strict=True))
            said = "\n".join((*rows.texts_in(fields["arguments"]), *rows.texts_in(fields["reason"])))
            if any(contains(word, said) for word in (*words, *values.get(fields["fact"] or 0, ()))):
                fields |= {"arguments": None, "reason": None}
                if fields["settled_at"] is None:
                    fields |= {"settled_at": self.tick(), "outcome": "erased"}
                self._rewrite_proposal(fields)

    def _wipe_reason(self, event: int) -> None:
        self.conn.execute("update reasons set text = null, erased_at = ? where seq = ?", (self._at, event))
        self.roll.erased_reason(event, self._at)

    def _wipe_labels(self, words: Sequence[str]) -> None:
        """Take the words out of the names by which sources of the scope are called."""
        columns, labels = ", ".join(rows.SOURCE_FIELDS), ("path", "session", "title")
        for raw in self.conn.execute(f"select {columns} from sources where scope = ?", (self.scope,)).fetchall():
            fields: dict[str, Any] = dict(zip(rows.SOURCE_FIELDS, raw, strict=True))
            said = {name: unpack(fields[name]) for name in labels if fields[name] is not None}
            gone = [name for name, label in said.items() if any(contains(word, label) for word in words)]
            if gone:
                fields |= dict.fromkeys(gone)
                bound = (*(fields[name] for name in labels), seal(self.key, "source", tuple(fields.values())))
                self.conn.execute(
                    "update sources set path = ?, session = ?, title = ?, seal = ? where id = ?",
                    (*bound, fields["id"]),
                )

    def _rewrite_proposal(self, fields: dict[str, Any]) -> None:
        its_seal = seal(self.key, "proposal", tuple(fields.values()))
        self.conn.execute(
            "update proposals set arguments = null, reason = null, settled_at = ?, outcome = ?, seal = ? where id = ?",
            (fields["settled_at"], fields["outcome"], its_seal, fields["id"]),
        )


def scrub(conn: sqlite3.Connection, path: str, done: Callable[[], None], *, timeout_s: float) -> None:
    """Drive erased words out of the index, the free pages and the WAL.

    It cannot be part of the transaction that erased them; until it has run, the file carries a mark and every later
    change tries again.

    Args:
        done: Called where it worked, to take the mark away.
        timeout_s: How long to wait for readers and writers, in seconds; the connection's own wait is kept.

    Raises:
        Busy: A reader or writer holds the file; the words are out of reach of every command, and still on disk.
        NoSpace: The same, where there is no room to write the file anew.
    """
    waits = int(conn.execute("pragma busy_timeout").fetchone()[0])
    conn.execute(f"pragma busy_timeout = {int(timeout_s * 1000)}")
    try:
        conn.execute("insert into words (words) values ('optimize')")
        conn.execute("insert into grams (grams) values ('optimize')")
        conn.execute("vacuum")
        blocked, _, _ = conn.execute("pragma wal_checkpoint(truncate)").fetchone()
        if not blocked:
            done()
    except sqlite3.OperationalError as problem:
        primary = problem.sqlite_errorcode & 0xFF
        if primary in _NO_ROOM:
            raise NoSpace(
                f"erased, but {path} cannot be written anew ({problem}), so the words may still be in its free pages",
                hint="make room and run any command that changes the file, or `mem rebuild`",
            ) from problem
        if primary not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        blocked = 1
    finally:
        conn.execute(f"pragma busy_timeout = {waits}")
    if blocked:
        raise Busy(
            f"erased, but {path} is open elsewhere, so the words may still be in its free pages",
            hint="close other programs and run any command that changes the file, or `mem rebuild`",
        )
