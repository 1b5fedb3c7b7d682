"""Many new facts at once: the same checks and the same rows as one by one, looked up and written in batches.

Only what is plainly new goes this way: no other fact of the file, and none of the batch, shares its text, its value or
its slot, and no tombstone knows it. Everything else is offered one by one, in its turn.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from memcli.errors import Refused
from memcli.facts import Claim
from memcli.keys import NORMALISER, slot_digest, value_digest
from memcli.record import record
from memcli.store import rows, views
from memcli.store.aside import Aside, pays
from memcli.store.evidence import Backing, Keyed, hits, spoken
from memcli.store.ledger import new_name
from memcli.store.seals import AUDIT_COLUMNS, Field, seal
from memcli.terms import READABLE, Op, Role, State
from memcli.text import pack

if TYPE_CHECKING:
    from memcli.store.keep import Keeping

_CHUNK = 400
_BATCH = 5_000


@record
class Became:
    """What became of one record of another store.

    `outcome` is one of those of `Written`, or the code of the refusal; `fact` is the id of what was made or met, and
    `state` what it is now, both None where it was refused.
    """

    outcome: str
    fact: str | None = None
    state: State | None = None


@record
class Plain:
    """A claim with what recognises it; `stops` is every digest by which a tombstone may know it."""

    keyed: Keyed
    stops: frozenset[bytes]

    def keys(self) -> set[bytes]:
        """Return what no other fact may share with it."""
        mine = (self.keyed.text_key, self.keyed.slot_key, self.keyed.slot)
        return {key for key in mine if key is not None}


class Bulk:
    """Facts on their way into the file, all from messages of one source.

    Args:
        write: The writer of the transaction.
        first: What the first claim stands on; the others differ in their message only.
        coming: How many there may be.
    """

    def __init__(self, write: "Keeping", first: Backing, coming: int) -> None:
        self._write = write
        self._source = first.source
        self._authority = first.authority
        conn = write.conn
        self._messages: dict[int, tuple[int, Role]] = {
            position: (row, Role(role))
            for row, position, role in conn.execute(
                "select id, position, role from messages where source = ?", (first.source,)
            )
        }
        self._state = State.ACCEPTED if write.decides else State.TENTATIVE
        self._next = {
            table: 1 + int(conn.execute(f"select coalesce(max(id), 0) from {table}").fetchone()[0])
            for table in ("facts", "versions")
        }
        self._counter = write.store.counter()
        self._clear()
        self._aside = Aside(conn) if pays(conn, coming, least=_BATCH) else None

    def _clear(self) -> None:
        self._facts: list[tuple[Field, ...]] = []
        self._versions: list[tuple[Field, ...]] = []
        self._provenance: list[tuple[Field, ...]] = []
        self._events: list[tuple[Field, ...]] = []
        self._current: list[tuple[Field, ...]] = []
        self._words: list[tuple[int, str]] = []
        self._grams: list[tuple[int, str]] = []
        self._tokens: list[tuple[int, int, str]] = []

    def renumber(self) -> None:
        """Read the numbers again, after others wrote through the same writer."""
        for table in self._next:
            found = self._write.conn.execute(f"select coalesce(max(id), 0) from {table}").fetchone()
            self._next[table] = 1 + int(found[0])

    def put(self, item: Plain, position: int) -> Became:
        """Take a fact that is plainly new, and return what became of it; it is in the file when `flush` has run."""
        write, claim = self._write, item.keyed.claim
        number, row = self._next["facts"], self._next["versions"]
        self._next = {"facts": number + 1, "versions": row + 1}
        name, at = new_name(), write.tick()
        subject, attribute, owner = (
            None if one is None else pack(one) for one in (claim.subject, claim.attribute, claim.owner)
        )
        fact: tuple[Field, ...] = (
            number, name, write.scope, str(claim.kind), subject, attribute, item.keyed.slot, owner,
            str(claim.visibility), at, None,
        )  # fmt: skip
        self._facts.append((*fact, seal(write.key, "fact", fact)))
        values = write.first_row(number, item.keyed, self._authority, self._state)
        values["recorded_at"] = at
        version = tuple([values[field] for field in rows.VERSION_FIELDS])
        digest = seal(write.key, "version", version)
        self._versions.append((row, *version, digest, seal(write.key, "retired", (digest, None, None))))
        message, role = self._messages[position]
        quote = (number, 1, self._source, message, values["text"], 0, len(claim.text), 1, at, None)
        place = (self._source, position, str(role))
        self._provenance.append((*quote, rows.provenance_seal(write.key, quote, place)))
        self._events.append(write.chain(Op.ADD, name, at=at, after=digest, moved=(None, self._state)))
        self._view(number, row, claim, subject)
        if len(self._facts) >= _BATCH:
            self.flush()
        return Became(outcome="new", fact=name, state=self._state)

    def _view(self, number: int, row: int, claim: Claim, subject: str | None) -> None:
        scope, state = self._write.scope, str(self._state)
        self._current.append((number, row, scope, state, subject, claim.validity.start, claim.validity.end))
        if self._state in READABLE:
            self._words.append((number, views.words_of(scope, claim.text, claim.subject, claim.attribute)))
            self._grams.append((number, views.grams_of(scope, claim.text)))
        if self._counter is not None:
            self._tokens.append((row, self._counter(claim.text), self._write.store.settings["encoding"]))

    def close(self) -> None:
        """Write what was taken, and leave the file with every trigger and index, for whoever writes next."""
        self.flush()
        if self._aside is not None:
            self._aside.put_back()
            self._aside = None

    def flush(self) -> None:
        """Write what was taken."""
        if not self._facts:
            return
        many = self._write.conn.executemany
        for table, names, found in (
            ("facts", (*rows.FACT_FIELDS, "seal"), self._facts),
            ("versions", ("id", *rows.VERSION_FIELDS, "digest", "seal"), self._versions),
            ("provenance", (*rows.PROVENANCE_FIELDS, "seal"), self._provenance),
            ("audit", (*AUDIT_COLUMNS, "hash"), self._events),
            ("current", ("fact", "row", "scope", "state", "subject", "valid_from", "valid_to"), self._current),
            ("token_counts", ("row", "tokens", "encoding"), self._tokens),
            ("words", ("rowid", "body"), self._words),
            ("grams", ("rowid", "body"), self._grams),
        ):
            many(f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})", found)
        self._write.keep_reasons([int(str(event[0])) for event in self._events])
        views.count(self._write.conn, self._write.scope, str(self._state), len(self._facts))
        self._clear()


def plain(write: "Keeping", claims: Sequence[Claim]) -> list[Plain | None]:
    """Return each claim that is plainly new, and None for those that must be looked at one by one."""
    found = [_recognised(write, claim) for claim in claims]
    known = _known(write, [item for item in found if item is not None])
    seen: set[bytes] = set()
    for index, item in enumerate(found):
        if item is None:
            continue
        mine = item.keys()
        if not known.isdisjoint(mine | item.stops) or not seen.isdisjoint(mine):
            found[index] = None
        seen |= mine
    return found


def _recognised(write: "Keeping", claim: Claim) -> Plain | None:
    """Return a claim with its keys, or None where a rule that is no lookup may stop it."""
    try:
        write.check_texts(claim)
        said = spoken(claim.value)
        texts = [claim.text] if said is None or said == claim.text else [claim.text, said]
        if any(hits(item.match, item.pattern, text) for item in write.patterns() for text in texts):
            return None
    except Refused:
        return None
    keyed = write.keyed(claim)
    stops = {keyed.text_key, *([] if keyed.slot_key is None else [keyed.slot_key])}
    for key in write.tombstone_keys():
        own = key.id == write.store.tombstone_key.id
        for normaliser in range(1, NORMALISER + 1):
            fresh = texts[1:] if own and normaliser == NORMALISER else texts
            stops |= {value_digest(key, text, normaliser=normaliser) for text in fresh}
            if claim.slot is not None and claim.value is not None and not (own and normaliser == NORMALISER):
                stops.add(slot_digest(key, *claim.slot, claim.value, normaliser=normaliser))
    return Plain(keyed=keyed, stops=frozenset(stops))


def _known(write: "Keeping", found: Sequence[Plain]) -> set[bytes]:
    """Return which keys the file knows already: of versions, of slots, of tombstones."""
    texts = {item.keyed.text_key for item in found}
    slots = {item.keyed.slot for item in found if item.keyed.slot is not None}
    values = {item.keyed.slot_key for item in found if item.keyed.slot_key is not None}
    stops: set[bytes] = set().union(*(item.stops for item in found))
    return {
        *_present(write, "versions", "text_key", texts),
        *_present(write, "versions", "slot_key", values),
        *_present(write, "facts", "slot", slots),
        *_present(write, "stops", "digest", stops),
    }


def _present(write: "Keeping", table: str, column: str, keys: Iterable[bytes]) -> Iterator[bytes]:
    iterator = iter(keys)
    while chunk := list(islice(iterator, _CHUNK)):
        marks = ",".join("?" * len(chunk))
        live = " and retired_at is null" if table == "versions" else ""
        for (key,) in write.conn.execute(f"select {column} from {table} where {column} in ({marks}){live}", chunk):
            yield key
