"""Whether rows are as they were sealed, for many rows of one kind: the same seals as one by one, at half the cost.

What is sealed are the columns as `seals.packed` writes them. Most columns of most rows are NULL, or what they were in
the row before, and need not be written anew; the bytes are the very same.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from memcli.digest import blake2b
from memcli.store import rows
from memcli.store.seals import packed

Row: TypeAlias = Sequence[Any]

VERSION_COLUMNS = (*rows.VERSION_FIELDS, "retired_at", "erased_at", "digest", "seal")
"""What `versions` takes, in this order."""

FACT_COLUMNS = (*rows.FACT_FIELDS, "seal")
"""What `facts` takes, in this order."""

_FIELDS = len(rows.VERSION_FIELDS)
_HELD = 4096
"""Words that are kept as they are written; a file has few actors, and few degrees of authority."""


def digester(key: bytes, kind: str) -> Callable[[bytes], bytes]:
    """Return what makes the seal of a row of one kind from its packed columns, without beginning anew for each."""
    fresh = blake2b(digest_size=32, key=key, person=kind.encode()).copy

    def digested(data: bytes) -> bytes:
        summary = fresh()
        summary.update(data)
        digest: bytes = summary.digest()
        return digest

    return digested


def sealer(key: bytes, kind: str) -> Callable[[Row], bytes]:
    """Return what makes the seal of a row of one kind."""
    digested = digester(key, kind)
    return lambda fields: digested(packed(fields))


def sealed(key: bytes, kind: str) -> Callable[[Row], bool]:
    """Return what says whether a row of one kind, whose last column is its seal, is as it was sealed."""
    digested = digester(key, kind)
    return lambda row: bool(digested(packed(row[:-1])) == row[-1])


def versions(key: bytes) -> Callable[[Row], bool]:
    """Return what says whether a version, from `VERSION_COLUMNS`, is as it was sealed.

    Of an erased one only the seal can be told, since its digest is that of words that are gone.
    """
    made, retired = digester(key, "version"), digester(key, "retired")
    said = version_packer()

    def honest(row: Row) -> bool:
        retired_at, erased_at, digest, its_seal = row[_FIELDS:]
        if erased_at is not None:
            return bool(rows.version_seal(key, row[:_FIELDS], (digest, retired_at, erased_at)) == its_seal)
        if made(said(row)) != digest:
            return False
        end = "None" if retired_at is None else ascii(retired_at)
        return bool(retired(f"({digest!a}, {end}, None)".encode("ascii")) == its_seal)

    return honest


def facts(key: bytes) -> Callable[[Row], bool]:
    """Return what says whether a fact, from `FACT_COLUMNS`, is as it was sealed."""
    digested = digester(key, "fact")

    def honest(row: Row) -> bool:
        return bool(digested(packed_fact(row)) == row[-1])

    return honest


def version_packer() -> Callable[[Row], bytes]:
    """Return what gives `packed` of a version's fields, from `VERSION_COLUMNS`."""
    # Typed, since 1 and 1.0 are written differently; of zero there are two that are equal, and neither is kept.
    share = lru_cache(_HELD, typed=True)(ascii)
    who = lru_cache(_HELD, typed=True)(lambda name, kind, channel: f"{name!a}, {kind!a}, {channel!a}")

    def said(row: Row) -> bytes:
        (
            fact, version, revision, state, text, value, confidence, importance, authority, pinned, start, end,
            displaced, successor, rule, text_key, slot_key, name, kind, channel, at, _, _, _, _,
        ) = row  # fmt: skip
        plain = value is None and confidence is None and importance is None
        worth = "None, None, None" if plain else f"{value!a}, {confidence!a}, {importance!a}"
        actor = who(name, kind, channel) if name and kind and channel else f"{name!a}, {kind!a}, {channel!a}"
        valid = "None, None" if start is None and end is None else f"{start!a}, {end!a}"
        return (
            f"({fact!a}, {version!a}, {revision!a}, {state!a}, {text!a}, {worth},"
            f" {share(authority) if authority else ascii(authority)}, {pinned!a}, {valid}, {displaced!a},"
            f" {'None' if successor is None else ascii(successor)}, {rule!a}, {text_key!a},"
            f" {'None' if slot_key is None else ascii(slot_key)}, {actor}, {at!a})"
        ).encode("ascii")

    return said


def packed_fact(row: Row) -> bytes:
    """Return `packed` of a fact's fields, from `FACT_COLUMNS`."""
    number, name, scope, kind, subject, attribute, slot, owner, visibility, recorded_at, erased_at, _ = row
    plain = attribute is None and slot is None and owner is None
    rest = "None, None, None" if plain else f"{attribute!a}, {slot!a}, {owner!a}"
    return (
        f"({number!a}, {name!a}, {scope!a}, {kind!a}, {subject!a}, {rest}, {visibility!a}, {recorded_at!a},"
        f" {'None' if erased_at is None else ascii(erased_at)})"
    ).encode("ascii")
