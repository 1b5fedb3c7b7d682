"""Keyed digests over rows, and the chain of the audit.

A seal is BLAKE2b-256 keyed with the file's audit key over the columns of a row as literals, so that no two different
rows have the same bytes under it. The chain links each audit row to the hash before it; it needs no
key, so that anybody who has the rows can verify it.
"""

from collections.abc import Sequence

from memcli.digest import blake2b

Field = str | int | float | bytes | None

SCHEME = b"\x01"
"""First byte of every chain hash; names BLAKE2b-256 over `audit_text`, so that the scheme can change."""

GENESIS = SCHEME + bytes(32)
"""What the first event of a file follows."""

AUDIT_COLUMNS = (
    "seq",
    "at",
    "actor_name",
    "actor_kind",
    "actor_channel",
    "op",
    "target",
    "scope",
    "from_state",
    "to_state",
    "reason",
    "before",
    "after",
    "operation",
)

_PACKED_AT_ONCE = 1024

_BLOBS = frozenset({"reason", "before", "after"})
_PLAIN = frozenset({"seq", "at", "operation"})
"""Columns that are numbers and never NULL."""


def packed(fields: Sequence[Field]) -> bytes:
    """Return the fields as bytes that no other sequence of fields has: Python literals in ASCII.

    `ascii` escapes everything beyond ASCII in one way, whatever Unicode a Python knows, and is written in C.
    """
    return ascii(tuple(fields)).encode("ascii")


def seal(key: bytes, kind: str, fields: Sequence[Field]) -> bytes:
    """Return the keyed digest (32 bytes) of one row of the given kind."""
    return blake2b(packed(fields), digest_size=32, key=key, person=kind.encode()).digest()


class Sealing:
    """The seal of a row of however many fields, of which only a few are held at a time: what `seal` says of all."""

    def __init__(self, key: bytes, kind: str) -> None:
        self._made = blake2b(b"(", digest_size=32, key=key, person=kind.encode())
        self._waiting: list[Field] = []
        self._packed = False

    def add(self, field: Field) -> None:
        """Take the next field."""
        self._waiting.append(field)
        if len(self._waiting) > _PACKED_AT_ONCE:
            # One stays, so that the end knows whether it is the only one.
            self._pack(self._waiting[:-1])
            del self._waiting[:-1]

    def _pack(self, fields: list[Field]) -> None:
        self._made.update((b", " if self._packed else b"") + ascii(fields)[1:-1].encode("ascii"))
        self._packed = True

    def digest(self) -> bytes:
        """Return the seal of the fields that were taken; none can be added any more."""
        alone = len(self._waiting) == 1 and not self._packed
        if self._waiting:
            self._pack(self._waiting)
        self._made.update(b",)" if alone else b")")
        digest: bytes = self._made.digest()
        return digest


def chained(previous: bytes, fields: Sequence[Field]) -> bytes:
    """Return the hash (33 bytes, scheme first) of an audit row that follows `previous`."""
    return linked(previous, audit_text(fields))


def linked(previous: bytes, text: str) -> bytes:
    """Return the hash of a row whose `audit_text` is known, after `previous`."""
    return SCHEME + blake2b(previous + text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def audit_text(fields: Sequence[Field]) -> str:
    """Return an audit row as text that no other row has: SQL literals, blobs in hexadecimal, joined by commas."""
    return ",".join(
        [
            str(field) if name in _PLAIN else _literal(field, blob=name in _BLOBS)
            for name, field in zip(AUDIT_COLUMNS, fields, strict=True)
        ]
    )


def _literal(field: Field, *, blob: bool) -> str:
    if blob:
        return f"'{field.hex().upper()}'" if isinstance(field, bytes) else "''"
    return "NULL" if field is None else "'" + str(field).replace("'", "''") + "'"


def shown(digest: bytes | None) -> str | None:
    """Return a digest as JSON and screens carry it: the scheme's name, a colon, hexadecimal."""
    if digest is None:
        return None
    return f"blake2b:{(digest[1:] if len(digest) == 33 else digest).hex()}"


def audit_expression() -> str:
    """Return the SQL that makes `audit_text` of a row inside SQLite, in one call: half the cost of verifying."""
    marks = ",".join("%d" if name in _PLAIN else "%Q" for name in AUDIT_COLUMNS)
    columns = ", ".join(f"hex({name})" if name in _BLOBS else name for name in AUDIT_COLUMNS)
    return f"printf('{marks}', {columns})"
