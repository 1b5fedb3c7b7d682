"""What the public suite asks of a store: how ours is filled, edited past itself, opened again and asked.

It is filled through a store and asked through the command line. Ten targets differ in who asks (a reader, `mem check`,
or `mem check` beside a head that was pinned elsewhere), in what is edited (facts or the log), and in whether the
attacker also takes the key out of the file and writes seals, digests and the chain anew. Each can be run with the
command of the suite: `agmi-check --adapter tests.conformance.adapter:FactsReported`.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record

from memcli.store import open_store, roll, rows, views
from memcli.store.seals import AUDIT_COLUMNS, GENESIS, chained, seal
from memcli.terms import DEFAULT_ENCODING
from memcli.tokens import try_counter
from tests.cli.driver import Mem
from tests.conformance.edits import unguarded
from tests.files import SCRIPT, add, behind

OURS, OTHERS = "user/anna", "user/bob"
_OPEN_TABLES = ("facts", "versions", "provenance", "messages", "sources", "audit", "reasons")
_LOOKS = (
    ("show", "--all-states"),
    ("recall", "seat"),
    ("context",),
    ("log",),
)


class Target(MemoryAdapter):
    """A memory file in a folder of its own. Subclasses say what a record is, and who is asked."""

    supports_replay = supports_metadata = supports_snapshot = True
    reseals = False
    """Whether the attacker writes seals and the chain anew, with the key that lies in the file."""

    def setup(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="mem-target-"))
        self.mem = Mem(self.home)
        self.mem.ok("init", "--admission", "direct", "--scope", OURS)
        self.pin()

    def teardown(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)

    def seed(self, n: int) -> None:
        self._add(OURS, [f"anna sits on seat {number}" for number in range(n)])

    def seed_other(self, n: int) -> None:
        self._add(OTHERS, [f"bob sits on seat {number} of another row" for number in range(n)])

    def append_genuine(self) -> None:
        self._add(OURS, ["anna changed seats"])

    def _add(self, scope: str, texts: list[str]) -> None:
        with open_store(self.mem.db, scope=scope) as store:
            for text in texts:
                add(store, text, actor=SCRIPT)
        self.pin()

    def pin(self) -> None:
        """Write the head down outside the file, as a job that runs after each change would."""
        self.head = self.mem.ok("log", "head")["head"]

    def reload(self) -> None:
        """Do nothing: every command opens the file and closes it."""

    def snapshot_store(self) -> bytes:
        return self.mem.db.read_bytes()

    def restore_store(self, token: object) -> None:
        assert isinstance(token, bytes)
        self.mem.db.write_bytes(token)

    # ---------------------------------------------------------------- raw rows

    def records(self, scope: str) -> list[dict[str, Any]]:
        """Return the raw records of a scope, oldest first."""
        raise NotImplementedError

    def put(self, conn: sqlite3.Connection, here: dict[str, Any], what: dict[str, Any]) -> None:
        """Write what a record says over another one, which keeps its place."""
        raise NotImplementedError

    def plant(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        """Insert a record."""
        raise NotImplementedError

    def drop(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        """Delete a record with all that is its own."""
        raise NotImplementedError

    def read_all_raw(self) -> list[Record]:
        return [Record(seq=number, fields=fields) for number, fields in enumerate(self.records(OURS))]

    def read_other_raw(self) -> list[Record]:
        return [Record(seq=number, fields=fields) for number, fields in enumerate(self.records(OTHERS))]

    def write_raw(self, record: Record) -> None:
        held = self.records(OURS)
        with self._behind() as conn:
            if record.seq < len(held):
                self.put(conn, held[record.seq], record.fields)
            else:
                self.plant(conn, record.fields)

    def delete_raw(self, seq: int) -> None:
        held = self.records(OURS)
        with self._behind() as conn:
            self.drop(conn, held[seq])

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self.write_raw(Record(seq=victim_seq, fields=donor.fields))

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        """Write the metadata of a record; the suite's mark makes it the word of a person at a terminal."""
        record = self.read_all_raw()[seq]
        if meta.pop("agmi_meta_tampered", False):
            meta = {"actor_name": "anna", "actor_kind": "human", "actor_channel": "terminal"}
        record.fields.update(meta)
        self.write_raw(record)

    def read_meta(self, seq: int) -> dict[str, Any]:
        fields = self.read_all_raw()[seq].fields
        return {name: fields[name] for name in ("actor_name", "actor_kind", "actor_channel")}

    def owner_of(self, record: Record) -> str:
        return str(record.fields["scope_name"])

    def reseal(self, conn: sqlite3.Connection) -> None:
        """Write anew whatever tells of the edit and can be written anew."""
        raise NotImplementedError

    @contextmanager
    def _behind(self) -> Iterator[sqlite3.Connection]:
        with unguarded(self.mem.db, *_OPEN_TABLES) as conn:
            conn.row_factory = sqlite3.Row
            yield conn
            if self.reseals:
                self.reseal(conn)
            conn.row_factory = None
            # An attacker who wants to be believed leaves no view that tells on the edit.
            views.rebuild(conn, try_counter(DEFAULT_ENCODING), DEFAULT_ENCODING)

    def _query(self, sql: str, *bound: Any) -> list[dict[str, Any]]:
        with behind(self.mem.db) as conn:
            conn.row_factory = sqlite3.Row
            return [dict(row) for row in conn.execute(sql, bound)]

    # ---------------------------------------------------------------- answers

    def verify(self) -> bool:
        raise NotImplementedError

    def _told(self, *command: str, refusals: tuple[int, ...]) -> bool:
        """Return whether a command told of damage.

        Raises:
            RuntimeError: It ended in a way that is no answer, so that no verdict can be taken.
        """
        ran = self.mem.run(*command)
        if ran.code in refusals:
            self.verify_detail = f"mem {' '.join(command)}: exit {ran.code}"
            return True
        if ran.code not in {0, 4}:
            raise RuntimeError(f"mem {command[0]} ended with {ran.code}: {ran.err}")
        return False


class Facts(Target):
    """A record is a fact with its version and its evidence."""

    _KEPT = frozenset({"id", "fact", "recorded_at"})

    def records(self, scope: str) -> list[dict[str, Any]]:
        return self._query(
            "select v.*, f.name as fact_name, s.name as scope_name from versions v join facts f on f.id = v.fact"
            " join scopes s on s.id = f.scope where s.name = ? order by v.id",
            scope,
        )

    def identity_of(self, record: Record) -> str:
        return str(record.fields["fact_name"])

    def payload_of(self, record: Record) -> str:
        return str(record.fields["text"])

    def mutate_payload(self, record: Record) -> Record:
        record.fields["text"] = "anna sits in the first class"
        return record

    def forge_record(self, template: Record) -> Record:
        known = self._query("select max(id) as id, max(fact) as fact, max(recorded_at) as at from versions")[0]
        fresh = {
            "id": known["id"] + 1,
            "fact": known["fact"] + 1,
            "fact_name": "f" * 16,
            "recorded_at": known["at"] + 1,
        }
        told = {**template.fields, **fresh, "copied": template.fields["fact"]}
        return self.mutate_payload(Record(seq=template.seq + 1, fields=told))

    def put(self, conn: sqlite3.Connection, here: dict[str, Any], what: dict[str, Any]) -> None:
        names = [name for name in _columns(conn, "versions") if name not in self._KEPT]
        marks = ", ".join(f"{name} = ?" for name in names)
        conn.execute(f"update versions set {marks} where id = ?", (*(what[name] for name in names), here["id"]))

    def plant(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        _copy(conn, "facts", f"id = {what['copied']}", id=what["fact"], name=what["fact_name"])
        _insert(conn, "versions", what)
        _copy(conn, "provenance", f"fact = {what['copied']}", id=None, fact=what["fact"])

    def drop(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        cited = conn.execute("select source, message from provenance where fact = ?", (what["fact"],)).fetchall()
        for table in ("provenance", "versions"):
            conn.execute(f"delete from {table} where fact = ?", (what["fact"],))
        conn.execute("delete from facts where id = ?", (what["fact"],))
        for source, message in cited:
            conn.execute("delete from messages where id = ?", (message,))
            conn.execute(
                "delete from sources where id = ?1 and not exists (select 1 from messages where source = ?1)", (source,)
            )

    def reseal(self, conn: sqlite3.Connection) -> None:
        key = reseal_rows(conn)
        rechain(conn, fitting_events(conn))
        newest = conn.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        roll.count_anew(conn, key, tuple(newest))


class Log(Target):
    """A record is an event of a new fact, known by its time; its number and hash follow from what is before it."""

    _PLACE = frozenset({"seq", "at", "scope", "operation", "hash"})

    def records(self, scope: str) -> list[dict[str, Any]]:
        return self._query(
            f"select {', '.join('a.' + name for name in AUDIT_COLUMNS if name not in {'seq', 'operation'})},"
            " s.name as scope_name from audit a join scopes s on s.id = a.scope"
            " where s.name = ? and a.op <> 'init' order by a.seq",
            scope,
        )

    def identity_of(self, record: Record) -> str:
        return str(record.fields["at"])

    def payload_of(self, record: Record) -> str:
        return repr([record.fields[name] for name in ("op", "target", "from_state", "to_state", "before", "after")])

    def mutate_payload(self, record: Record) -> Record:
        record.fields["to_state"] = "verified"
        return record

    def forge_record(self, template: Record) -> Record:
        at = self._query("select max(at) + 1 as at from audit")[0]["at"]
        told = {"at": at, "op": "verify", "from_state": "accepted", "to_state": "verified"}
        return Record(seq=template.seq + 1, fields={**template.fields, **told})

    def put(self, conn: sqlite3.Connection, here: dict[str, Any], what: dict[str, Any]) -> None:
        names = [name for name in _columns(conn, "audit") if name not in self._PLACE]
        marks = ", ".join(f"{name} = ?" for name in names)
        conn.execute(f"update audit set {marks} where at = ?", (*(what[name] for name in names), here["at"]))

    def plant(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        newest = conn.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        told = {**what, "seq": newest["seq"] + 1, "operation": newest["seq"] + 1}
        told["hash"] = chained(newest["hash"], [told[name] for name in AUDIT_COLUMNS])
        _insert(conn, "audit", told)

    def drop(self, conn: sqlite3.Connection, what: dict[str, Any]) -> None:
        conn.execute("delete from audit where at = ?", (what["at"],))

    def reseal(self, conn: sqlite3.Connection) -> None:
        rechain(conn, [dict(row) for row in conn.execute("select * from audit order by seq")])


# -------------------------------------------------------------------- who is asked


class Refusing:
    """A reader is asked: the commands that show what is remembered, for the scope and for each fact in it."""

    detection_point = "read"

    def verify(self) -> bool:
        self.verify_detail = None
        names = self.mem.ids()
        single = [(command, name) for name in names for command in ("show", "why")]
        return not any(self._told(*command, refusals=(13,)) for command in (*_LOOKS, *single))


class Reporting:
    """`mem check` is asked, which also verifies the log."""

    detection_point = "audit"

    def verify(self) -> bool:
        self.verify_detail = None
        return not self._told("check", refusals=(1, 13))


class Pinned:
    """`mem check` is asked, and `mem log verify` about the head that was written down outside the file."""

    detection_point = "audit"

    def verify(self) -> bool:
        self.verify_detail = None
        commands = (("check",), ("log", "verify", "--head", self.head))
        return not any(self._told(*command, refusals=(1, 13)) for command in commands)


class FactsRefused(Refusing, Facts):
    name = "facts, as a reader meets them"


class FactsReported(Reporting, Facts):
    name = "facts, mem check"


class FactsPinned(Pinned, Facts):
    name = "facts, mem check and a pinned head"


class FactsResealedReported(Reporting, Facts):
    name = "facts resealed with the key of the file, mem check"
    reseals = True


class FactsResealedPinned(Pinned, Facts):
    name = "facts resealed with the key of the file, mem check and a pinned head"
    reseals = True


class LogRefused(Refusing, Log):
    name = "log, as a reader meets it"


class LogReported(Reporting, Log):
    name = "log, mem check"


class LogPinned(Pinned, Log):
    name = "log, mem check and a pinned head"


class LogRechainedReported(Reporting, Log):
    name = "log chained anew, mem check"
    reseals = True


class LogRechainedPinned(Pinned, Log):
    name = "log chained anew, mem check and a pinned head"
    reseals = True


TARGETS = (
    FactsRefused,
    FactsReported,
    FactsPinned,
    FactsResealedReported,
    FactsResealedPinned,
    LogRefused,
    LogReported,
    LogPinned,
    LogRechainedReported,
    LogRechainedPinned,
)


# -------------------------------------------------------------------- the attacker who has the key


def _columns(conn: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in conn.execute(f"pragma table_info({table})")]


def _insert(conn: sqlite3.Connection, table: str, what: dict[str, Any]) -> None:
    names = _columns(conn, table)
    marks = ", ".join("?" * len(names))
    conn.execute(f"insert into {table} values ({marks})", tuple(what[name] for name in names))


def _copy(conn: sqlite3.Connection, table: str, where: str, **changes: Any) -> None:
    for row in conn.execute(f"select * from {table} where {where}").fetchall():
        _insert(conn, table, {**dict(row), **changes})


def reseal_rows(conn: sqlite3.Connection) -> bytes:
    """Write the seals and digests of facts anew, with the key that lies in the file, and return the key."""
    key = bytes(conn.execute("select secret from keys where purpose = 'audit'").fetchone()[0])
    for row in conn.execute("select * from facts").fetchall():
        fresh = seal(key, "fact", tuple(row[name] for name in rows.FACT_FIELDS))
        conn.execute("update facts set seal = ? where id = ?", (fresh, row["id"]))
    with_number = rows.SELECT_PROVENANCE.replace(" from ", ", p.id from ", 1)
    for *fields, _, source, position, role, number in conn.execute(with_number).fetchall():
        fresh = rows.provenance_seal(key, fields, (source, position, role))
        conn.execute("update provenance set seal = ? where id = ?", (fresh, number))
    for row in conn.execute("select * from versions").fetchall():
        fields = tuple(row[name] for name in rows.VERSION_FIELDS)
        digest = seal(key, "version", fields)
        its_seal = rows.version_seal(key, fields, (digest, row["retired_at"], row["erased_at"]))
        conn.execute("update versions set digest = ?, seal = ? where id = ?", (digest, its_seal, row["id"]))
    return key


def fitting_events(conn: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the log as it would have been had the facts always been what they are now."""
    known = {
        row["recorded_at"]: dict(row)
        for row in conn.execute("select v.*, f.name from versions v join facts f on f.id = v.fact")
    }
    told = [dict(row) for row in conn.execute("select * from audit order by seq")]
    kept = [row for row in told if row["op"] == "init" or row["at"] in known]
    spoken = {row["at"] for row in kept}
    kept += [{**kept[-1], "at": at} for at in sorted(known) if at not in spoken]
    for row in kept:
        if (fact := known.get(row["at"])) is not None:
            said = {name: fact[name] for name in ("actor_name", "actor_kind", "actor_channel")}
            row |= {"target": fact["name"], "after": fact["digest"], "to_state": fact["state"], **said}
    return kept


def rechain(conn: sqlite3.Connection, events: list[dict[str, Any]]) -> None:
    """Write the log anew, numbered without a gap and chained, which takes no key."""
    conn.execute("delete from audit")
    previous = GENESIS
    for number, row in enumerate(events, 1):
        row |= {"seq": number, "operation": number}
        previous = chained(previous, [row[name] for name in AUDIT_COLUMNS])
        _insert(conn, "audit", {**row, "hash": previous})
