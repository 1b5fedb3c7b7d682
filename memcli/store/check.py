"""Whether a file holds together: SQLite's own checks, the chain, every seal, the invariants, erased words."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memcli import schema
from memcli.errors import Damaged, MemError
from memcli.facts import Finding, LogVerdict, Validity
from memcli.keys import contains
from memcli.store import basics, file, honest, roll, rows, tx_check, tx_rows, views
from memcli.store.seals import GENESIS, Sealing, audit_expression, linked, seal, shown
from memcli.store.store import Store
from memcli.terms import FINAL, MOVES, READABLE, Op, State
from memcli.text import pack

LIMIT = 1000
"""The most findings that are listed; a file with more has one last finding that says so."""

_SPEAKS = (
    "length(a.target) = 16 and a.op not in ('refuse','read','corroborate','erase','policy','scope','restore')"
    " and a.after is not null"
)
"""What an event says that speaks of a version of its own."""

_VERSION = ", ".join(f"v.{name}" for name in honest.VERSION_COLUMNS)
_FACT = ", ".join(f"f.{name}" for name in honest.FACT_COLUMNS)

_CHAIN = f"select seq, hash, {audit_expression()} from audit order by seq"

_CHAIN_WITH_VERSIONS = (
    "select a.seq, a.hash, a.text, case when f.id is null then"
    f" not ifnull({_SPEAKS}, 0) and v.id is null else v.digest is a.after and f.name is a.target"
    " and (v.actor_name, v.actor_kind, v.actor_channel, v.state)"
    " is (a.actor_name, a.actor_kind, a.actor_channel, a.to_state) end,"
    f" {_VERSION}, {_FACT}"
    f" from (select *, {audit_expression()} as text from audit) a left join versions v on v.recorded_at = a.at"
    " left join facts f on f.id = v.fact order by a.seq"
)
"""Each event with whether it and its version agree, and then the columns of the version and of its fact."""

_VERSION_AT = 4
_FACT_AT = _VERSION_AT + len(honest.VERSION_COLUMNS)

_READABLE = ",".join(f"'{state}'" for state in sorted(READABLE))
_PERMITTED = ",".join(
    f"('{was or ''}','{now}')" for was, now in sorted(MOVES, key=lambda move: (move[0] or "", move[1]))
)
_DEAD = ",".join(f"'{state}'" for state in sorted(FINAL - {State.SUPERSEDED}))


def verify_log(store: Store, *, head: str | None = None, deep: bool = True) -> LogVerdict:
    """Return whether the chain is whole, and with `deep` whether every row that it speaks of is as it says.

    Args:
        head: A hash pinned elsewhere; a log that does not hold it was cut or rewritten.

    Raises:
        Damaged: It cannot be read to the end.
    """
    with file.sentences(str(store.path)), file.moment(store.conn):
        return _verified(store, head, deep=deep)


def _verified(store: Store, head: str | None, *, deep: bool) -> LogVerdict:
    findings: list[Finding] = []
    previous, count, expected, pinned = GENESIS, 0, 1, head is None
    told = _Told(store) if deep else None
    for row in store.conn.execute(_CHAIN if told is None else _CHAIN_WITH_VERSIONS):
        seq, link, text = row[:3]
        count += 1
        fits = link == linked(previous, text)
        if seq != expected or not fits:
            findings.append(_broken(seq, expected))
            expected = seq
        expected += 1
        previous = link
        pinned = pinned or shown(link) == head
        if told is not None:
            told.take(row)
    if roll.head_differs(store.conn, store.key, (expected - 1, previous)):
        findings.append(
            Finding(code="head-differs", place="log", message="the newest event is not the one that was recorded last")
        )
    if not pinned:
        findings.append(Finding(code="head-missing", place="log", message=f"no event has the pinned hash {head}"))
    if told is not None:
        findings += _first(_log_rows(store, told=told.whole()))
    return LogVerdict(events=count, head=shown(previous) or "", findings=tuple(findings))


class _Told:
    """Whether each version is as it was sealed and as its event recorded it, beside the chain: each row is read once.

    It only tells whether all of them are; where one is not, `versions` finds what is wrong with it.
    """

    def __init__(self, store: Store) -> None:
        self._conn = store.conn
        self._version = honest.versions(store.key)
        self._fact = honest.facts(store.key)
        self._honest = True
        self._versions = 0

    def take(self, row: rows.Row) -> None:
        """Look at a row of `_CHAIN_WITH_VERSIONS`."""
        if row[_FACT_AT] is None:  # an event of something else, or one whose version is gone
            self._honest = self._honest and bool(row[3])
            return
        self._versions += 1
        self._honest = (
            self._honest and bool(row[3]) and self._version(row[_VERSION_AT:_FACT_AT]) and self._fact(row[_FACT_AT:])
        )

    def whole(self) -> bool:
        """Return whether nothing was wrong, and no version is without an event."""
        held: int = self._conn.execute("select count(*) from versions").fetchone()[0]
        return self._honest and self._versions == held


def _broken(seq: int, expected: int) -> Finding:
    if seq != expected:
        return Finding(
            code="event-missing", place=f"e{expected}", message=f"event e{expected} is missing before e{seq}"
        )
    return Finding(code="chain-broken", place=f"e{seq}", message="the event does not follow from the one before")


def _first(found: Iterator[Finding]) -> list[Finding]:
    kept: list[Finding] = []
    for item in found:
        if len(kept) == LIMIT:
            kept.append(Finding(code="more", place="file", message=f"more than {LIMIT} findings; the rest is left out"))
            break
        kept.append(item)
    return kept


def _log_rows(store: Store, *, told: bool) -> Iterator[Finding]:
    """Yield where an event and the row it speaks of differ, and rows of which no event speaks.

    Args:
        told: The versions and their events were looked at, and are as they should be.
    """
    yield from versions(store, told=told)
    yield from _reasons(store)
    yield from _tombstone_events(store)
    yield from _import_events(store)
    yield from _proposal_events(store)
    yield from _policy_events(store)
    yield from tx_check.events(store)


def versions(store: Store, *, told: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with versions and their events, one by one.

    Args:
        told: Each of them was looked at, and fits its event and its seal.
    """
    if not told:
        yield from _version_events(store)
    yield from _restored_events(store)
    yield from _endings(store)
    if not told:
        yield from _each(store.conn.execute(rows.SELECT_VERSION), store.reader.version)


def _version_events(store: Store) -> Iterator[Finding]:
    for seq, target in store.conn.execute(
        "select a.seq, a.target from audit a left join versions v on v.recorded_at = a.at"
        f" where {_SPEAKS} and (v.id is null or v.digest <> a.after) order by a.seq"
    ):
        yield Finding(code="row-differs", place=f"e{seq}", message=f"fact {target} is not what this event recorded")
    for seq, target in store.conn.execute(
        "select a.seq, a.target from audit a join versions v on v.recorded_at = a.at where (v.actor_name, v.actor_kind,"
        " v.actor_channel, v.state) is not (a.actor_name, a.actor_kind, a.actor_channel, a.to_state) order by a.seq"
    ):
        yield Finding(
            code="row-differs", place=f"e{seq}", message=f"fact {target} has another actor or state than this event"
        )
    for name, version in store.conn.execute(
        "select f.name, v.version from versions v join facts f on f.id = v.fact"
        " left join audit a on a.at = v.recorded_at where (a.seq is null or a.after is not v.digest"
        " or a.target is not f.name) and not exists (select 1 from audit r where r.target = f.name"
        " and r.op = 'restore' and r.after = v.digest) order by v.id"
    ):
        yield Finding(code="row-unrecorded", place=name, message=f"no event recorded version {version} as it stands")


def _restored_events(store: Store) -> Iterator[Finding]:
    for seq, target in store.conn.execute(
        "select a.seq, a.target from audit a where a.op = 'restore' and length(a.target) = 16 and not exists"
        " (select 1 from facts f join versions v on v.fact = f.id where f.name = a.target and v.digest = a.after"
        " and v.state is a.to_state)"
    ):
        yield Finding(code="row-differs", place=f"e{seq}", message=f"fact {target} is not what this event restored")


def _endings(store: Store) -> Iterator[Finding]:
    for name, version in store.conn.execute(
        "select f.name, v.version from versions v join facts f on f.id = v.fact join versions w on w.fact = v.fact"
        " and ((w.version = v.version and w.revision = v.revision + 1 and v.retired_at is not w.recorded_at))"
    ):
        yield Finding(
            code="row-differs", place=name, message=f"version {version} ended at another time than the next began"
        )
    for name, version in store.conn.execute(
        "select f.name, v.version from versions v join facts f on f.id = v.fact where v.retired_at is not null"
        " and not exists (select 1 from versions w where w.fact = v.fact and w.recorded_at = v.retired_at)"
    ):
        yield Finding(code="row-differs", place=name, message=f"version {version} ended, and nothing followed it")


def _reasons(store: Store) -> Iterator[Finding]:
    for seq, text, digest, erased_at in store.conn.execute(
        "select a.seq, r.text, a.reason, r.erased_at from audit a left join reasons r on r.seq = a.seq"
        " where (a.reason is not null or r.seq is not null) and not exists"
        " (select 1 from audit e where e.op = 'erase' and e.at = r.erased_at)"
    ):
        kept = erased_at is None and text is not None and digest is not None
        if not kept or seal(store.key, "reason", (text,)) != digest:
            yield Finding(code="row-differs", place=f"e{seq}", message="the reason is not what this event recorded")


def _tombstone_events(store: Store) -> Iterator[Finding]:
    said: dict[str, list[bytes]] = {}
    for target, after in store.conn.execute(
        "select target, after from audit where op in ('tombstone', 'lift', 'restore') and target glob 't[0-9]*'"
        " order by seq"
    ):
        said.setdefault(target, []).append(after)
    for raw in store.tombstone_rows("1"):
        fields, lifted_at = raw[: len(rows.TOMBSTONE_FIELDS)], raw[len(rows.TOMBSTONE_FIELDS) + 1]
        stops = store.stops(raw[0])
        known = [rows.tombstone_digest(store.key, fields, stops, moment) for moment in (None, lifted_at)]
        if said.pop(f"t{raw[0]}", []) != (known[:1] if lifted_at is None else known):
            yield Finding(code="row-differs", place=f"t{raw[0]}", message="the tombstone is not what the log recorded")
    for target in said:
        yield Finding(code="row-missing", place=target, message="the log recorded a tombstone that is not there")


def _import_events(store: Store) -> Iterator[Finding]:
    recorded: set[tuple[int, int]] = set()
    for seq, target, at, after in store.conn.execute("select seq, target, at, after from audit where op = 'import'"):
        number = int(target[1:]) if target and target[1:].isdecimal() else 0
        recorded.add((number, at))
        if store.conn.execute("select 1 from sources where id = ?", (number,)).fetchone() is None:
            yield Finding(code="row-missing", place=f"e{seq}", message=f"{target}, which was imported, is not there")
        if _imported(store, number, at) != after:
            yield Finding(
                code="row-differs", place=f"e{seq}", message=f"the messages of {target} are not what was imported"
            )
    back = set(store.conn.execute("select target, after from audit where op = 'restore' and target glob 's[0-9]*'"))
    for source, at in store.conn.execute(
        "select distinct m.source, m.recorded_at from messages m join sources s on s.id = m.source"
        " where s.format not in ('statement', 'reference')"
    ).fetchall():
        if (source, at) not in recorded and not _is_back(store, source, at, back):
            yield Finding(
                code="row-unrecorded", place=f"s{source}", message="no event recorded the import of its messages"
            )
    for target, _ in sorted(back):
        yield Finding(code="row-differs", place=target, message="its messages are not what was restored")


def _imported(store: Store, source: int, at: int) -> bytes:
    """Return what the log calls the messages that a source was given at a time."""
    found = store.conn.execute(
        "select evidence from messages where source = ? and recorded_at = ? order by position", (source, at)
    )
    sealing = Sealing(store.key, "import")
    sealing.add(source)
    for (evidence,) in found:
        sealing.add(evidence)
    return sealing.digest()


def _is_back(store: Store, source: int, at: int, back: set[tuple[str, bytes]]) -> bool:
    """Return whether an event restored the messages that a source was given at a time, and strike it off the list."""
    said = (f"s{source}", _imported(store, source, at))
    known = said in back
    back.discard(said)
    return known


def _proposal_events(store: Store) -> Iterator[Finding]:
    known = {target for (target,) in store.conn.execute("select target from audit where op = 'propose'")}
    held = {f"p{number}" for (number,) in store.conn.execute("select id from proposals")}
    for target in sorted(known ^ held):
        yield Finding(code="row-differs", place=target, message="the log and the list of proposals do not agree")


def _policy_events(store: Store) -> Iterator[Finding]:
    said: dict[str, bytes | None] = dict(
        store.conn.execute("select target, after from audit where op = 'policy' order by seq").fetchall()
    )
    held = {f"{kind}:{name}": its for kind, name, its in store.conn.execute("select kind, name, seal from policy")}
    for target in sorted({name for name, after in said.items() if after is not None} | set(held)):
        if said.get(target) != held.get(target):
            yield Finding(code="row-differs", place=target, message="the policy is not what the log recorded")


# -------------------------------------------------------------------- check


def check(store: Store, *, orphans: bool = False) -> list[Finding]:
    """Return everything that is wrong with a file, and with `orphans` what nothing refers to; empty means clean."""
    with file.sentences(str(store.path)), file.moment(store.conn):
        return _first(_as_far_as_it_goes(store, _everything(store, orphans=orphans)))


def _as_far_as_it_goes(store: Store, found: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings until something cannot be read at all, which is the last finding then.

    Raises:
        Busy, NoSpace: It is not the file that is wrong.
    """
    try:
        yield from found
    except sqlite3.Error as problem:
        told = file.translated(problem, str(store.path))
        if not isinstance(told, Damaged):
            raise told from problem
        yield _unreadable(str(problem))
    except (MemError, ValueError, TypeError, LookupError, AttributeError) as problem:
        yield _unreadable(str(problem))


def _unreadable(why: str) -> Finding:
    first = why.partition("\n")[0]
    return Finding(
        code="unreadable", place="file", message=f"cannot be read to the end: {first}; the rest is unchecked"
    )


def _everything(store: Store, *, orphans: bool) -> Iterator[Finding]:
    yield from _sqlite(store.conn)
    yield from verify_log(store).findings
    yield from seals(store)
    yield from _counts(store)
    yield from invariants(store)
    yield from _views(store)
    if store.settings.get("scrub") == "pending":
        yield Finding(
            code="scrub-pending", place="file", message="erased words may still be in free pages; run `mem rebuild`"
        )
    if orphans:
        yield from _orphans(store)


def _counts(store: Store) -> Iterator[Finding]:
    """Yield what is gone or there too often, of which no seal and no event tells."""
    conn = store.conn
    for place, message in roll.differences(conn, store.key):
        yield Finding(code="rows-differ", place=place, message=message)
    held = {name for (name,) in conn.execute("select name from settings")}
    erased = conn.execute("select exists (select 1 from audit where op = 'erase')").fetchone()[0]
    for name in (*basics.NEEDED, *(["scrub"] if erased else [])):
        if name not in held:
            yield Finding(code="setting-missing", place=name, message="the file has lost this setting")


def _views(store: Store) -> Iterator[Finding]:
    encoding = store.settings.get("encoding")
    counter = None if encoding is None else store.counter()
    for place, message in views.differences(store.conn, counter, encoding):
        yield Finding(code="view-differs", place=place, message=f"{message}; `mem rebuild` mends it")


def _sqlite(conn: sqlite3.Connection) -> Iterator[Finding]:
    for (message,) in conn.execute("pragma integrity_check(20)"):
        if message != "ok":
            yield Finding(code="sqlite-damaged", place="file", message=str(message))
    for table, row, parent, _ in conn.execute("pragma foreign_key_check"):
        yield Finding(
            code="dead-reference", place=f"{table} {row}", message=f"refers to a row of {parent} that is not there"
        )
    if schema.digest(conn) != schema.DIGESTS[schema.VERSION]:
        yield Finding(code="schema-altered", place="file", message="tables or triggers were altered by another program")


def seals(store: Store) -> Iterator[Finding]:
    """Yield every row whose seal does not fit, but for the versions of facts, which `log_rows` looks at."""
    reader, conn, key = store.reader, store.conn, store.key
    yield from _each(conn.execute(_MESSAGES), reader.message, honest=_plain_message(key))
    sources = f"select {', '.join(rows.SOURCE_FIELDS)}, seal, 0 from sources"
    yield from _each(conn.execute(sources), reader.source)
    yield from _provenance(store)
    yield from _each(store.tombstone_rows("1"), lambda raw: reader.tombstone(raw, store.stops(raw[0])))
    yield from _each(conn.execute(rows.SELECT_PROPOSAL), reader.proposal)
    yield from _each(conn.execute("select kind, name, value, seal from policy"), reader.policy)
    yield from _each(tx_check.sealed_rows(store), lambda raw: tx_rows.checked(key, raw[0], raw[1:]))
    edges = conn.execute(f"select {', '.join(rows.DERIVATION_FIELDS)}, seal from derivations")
    yield from _each(edges, lambda raw: rows.derivation(key, raw))


_MESSAGES = f"select {', '.join(rows.MESSAGE_FIELDS)}, seal from messages"
_DETAIL_AT = rows.MESSAGE_FIELDS.index("detail")


def _plain_message(key: bytes) -> Callable[[rows.Row], bool]:
    """Return what says that there is nothing wrong with a message; one with more than words is read whole."""
    whole = honest.sealed(key, "message")
    return lambda raw: raw[_DETAIL_AT] is None and whole(raw)


def _provenance(store: Store) -> Iterator[Finding]:
    whole, columns = honest.sealer(store.key, "provenance"), len(rows.PROVENANCE_FIELDS)

    def fits(raw: rows.Row) -> bool:
        return bool(whole((*raw[:columns], *raw[columns + 1 :])) == raw[columns])

    found = store.conn.execute(rows.SELECT_PROVENANCE)
    yield from _each(found, lambda raw: rows.provenance_of(store.key, raw), honest=fits)


def _each(
    found: Any, believe: Callable[[rows.Row], object], *, honest: Callable[[rows.Row], bool] | None = None
) -> Iterator[Finding]:
    """Yield what is wrong with rows.

    Args:
        believe: Reads a row, and raises where something is wrong with it.
        honest: Tells beforehand of most rows that there is nothing to find, which costs less.
    """
    for raw in found:
        if honest is not None and honest(raw):
            continue
        try:
            believe(raw)
        except Damaged as problem:
            yield _tampered(problem.message)
        except (ValueError, TypeError) as problem:
            yield Finding(code="row-tampered", place=f"row {raw[0]}", message=f"cannot be read: {problem}")


def _tampered(message: str) -> Finding:
    place = message.partition(" was changed")[0]
    return Finding(code="row-tampered", place=place, message=message)


def invariants(store: Store) -> Iterator[Finding]:
    """Yield what no sequence of permitted changes leads to."""
    conn = store.conn
    for seq, op, was, now in conn.execute(
        "select seq, op, from_state, to_state from audit where to_state is not null and from_state is not to_state"
        " and length(target) = 16 and op not in ('correct', 'undo', 'restore')"
        f" and (ifnull(from_state, ''), to_state) not in (values {_PERMITTED})"
    ):
        if ((None if was is None else State(was)), State(now)) not in MOVES and op not in (Op.REFUSE, Op.READ):
            yield Finding(code="move-not-allowed", place=f"e{seq}", message=f"a version moved from {was} to {now}")
    for name, was, now in conn.execute(
        "select f.name, v.state, w.state from versions v join versions w on w.fact = v.fact and w.version = v.version"
        " and w.revision = v.revision + 1 join facts f on f.id = v.fact where v.retired_at is not null"
    ):
        if (State(was), State(now)) not in MOVES:
            yield Finding(code="move-not-allowed", place=name, message=f"a version moved from {was} to {now}")
    for name, parent in conn.execute(
        "with recursive above (fact, ancestor) as (select child, parent from derivations union"
        " select above.fact, d.parent from above join derivations d on d.child = above.ancestor)"
        " select f.name, g.name from current c join facts f on f.id = c.fact join above on above.fact = c.fact"
        f" join current p on p.fact = above.ancestor join facts g on g.id = p.fact where c.state in ({_READABLE})"
        f" and p.state in ({_DEAD})"
    ):
        yield Finding(code="dead-parent", place=name, message=f"is readable, and {parent}, which it came from, is not")
    yield from _double_slots(conn)
    yield from tx_check.invariants(store)


def _double_slots(conn: sqlite3.Connection) -> Iterator[Finding]:
    for first, second, start, end, begin, stop in conn.execute(
        "select f.name, g.name, v.valid_from, v.valid_to, w.valid_from, w.valid_to from facts f"
        " join facts g on g.slot = f.slot and g.scope = f.scope and g.id > f.id"
        " join current c on c.fact = f.id join current d on d.fact = g.id"
        " join versions v on v.id = c.row join versions w on w.id = d.row"
        f" where c.state in ({_READABLE}) and d.state in ({_READABLE}) and v.slot_key is not w.slot_key"
    ):
        if Validity(start=start, end=end).overlaps(Validity(start=begin, end=stop)):
            yield Finding(code="slot-double", place=first, message=f"holds another value in the same slot as {second}")


def _orphans(store: Store) -> Iterator[Finding]:
    for (number,) in store.conn.execute(
        "select id from sources where erased_at is null and not exists"
        " (select 1 from provenance where source = sources.id) and not exists"
        " (select 1 from origins where source = sources.id) order by id"
    ):
        yield Finding(code="orphan-source", place=f"s{number}", message="no fact came from it")


# -------------------------------------------------------------------- residue


def residue(store: Store, text: str) -> list[Finding]:
    """Return where a text can still be read: tables, full-text index, and the bytes of the file and its WAL.

    Raises:
        NoSpace, Damaged: The file could not be read to the end, so that nothing can be said.
    """
    with file.sentences(str(store.path)):
        return _first(_residue(store, text))


def _residue(store: Store, text: str) -> Iterator[Finding]:
    tables = [
        name
        for (name,) in store.conn.execute(
            "select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'"
            " and name not glob 'words_*' and name not glob 'grams_*'"
        )
    ]
    for table in tables:
        for raw in store.conn.execute(f'select * from "{table}"'):
            held = (item for field in raw if isinstance(field, str) for item in rows.texts_in(field))
            if any(contains(text, item) for item in held):
                yield Finding(code="residue", place=f"{table} {raw[0]}", message="holds the text")
    yield from _indexed(store, text)
    for path in (store.path, Path(f"{store.path}-wal"), Path(f"{store.path}-journal")):
        yield from _bytes(path, text)


def _indexed(store: Store, text: str) -> Iterator[Finding]:
    words = list(dict.fromkeys(views.terms(text, query=True)))
    if not words:
        return
    query = " AND ".join(f'"{word}"' for word in words)
    for (number,) in store.conn.execute("select rowid from words where words match ?", (query,)):
        what = views.shown(store.conn, number)
        if what is None or not set(words) <= set(what.body.split()):
            yield Finding(code="residue", place="words", message=f"the index holds its words for fact number {number}")


def _bytes(path: Path, text: str) -> Iterator[Finding]:
    # JSON inside the file holds other scripts escaped.
    forms = {text, pack(text), json.dumps(text)[1:-1]}
    needles = [form.encode("utf-8", "surrogatepass").lower() for form in forms]
    longest = max(len(needle) for needle in needles)
    try:
        if not path.exists():
            return
        with path.open("rb") as stream:
            tail = b""
            while block := stream.read(1 << 20):
                if any(needle in (tail + block).lower() for needle in needles):
                    yield Finding(code="residue", place=path.name, message="holds the text among its bytes")
                    return
                tail = (tail + block)[-longest:]
    except OSError as problem:
        raise MemError(f"{path} cannot be read: {problem.strerror}") from problem
