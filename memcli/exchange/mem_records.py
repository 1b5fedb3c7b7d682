"""The records of mem's own format, read strictly: what each must hold, and the row it stands for.

The format is described in `memcli.exchange.writers.mem`. A row has the columns that `memcli.store.copy` says; here
nothing is guessed, and whatever is not as mem writes it is said in one sentence.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from memcli.clock import parse_instant
from memcli.errors import MemError, UsageError
from memcli.exchange.writers.mem import FORMAT
from memcli.facts import Json, Micros
from memcli.terms import ActorKind, Channel, How, Kind, Match, Role, SourceKind, State, Visibility

Row: TypeAlias = tuple[Any, ...]
Read: TypeAlias = Callable[[Json], Any]

DIGEST_BYTES = 32
FACT_ID = re.compile("[0-9a-f]{16}")
_UNPACKED = re.compile("[\0\ud800-\udfff]")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
_MESSAGE = re.compile(r"s([1-9]\d{0,17})#(0|[1-9]\d{0,17})")


class Wrong(Exception):
    """A record is not as mem writes it; the message says what is wrong, as the end of a sentence."""


def _text(value: Json) -> str:
    if not isinstance(value, str) or _UNPACKED.search(value):
        raise Wrong("must be a text in which NUL and lone surrogates are escaped")
    return value


def _optional(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _word(words: type[StrEnum]) -> Read:
    known = frozenset(str(word) for word in words)

    def read(value: Json) -> str:
        if not isinstance(value, str) or value not in known:
            raise Wrong(f"must be one of {', '.join(sorted(known))}")
        return value

    return read


def _whole(least: int) -> Read:
    def read(value: Json) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 62:
            raise Wrong(f"must be a whole number from {least}")
        return value

    return read


def _share(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise Wrong("must be a number from 0 to 1")
    return float(value)


def _truth(value: Json) -> int:
    if not isinstance(value, bool):
        raise Wrong("must be true or false")
    return int(value)


def _digest(value: Json) -> bytes:
    try:
        found = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        found = b""
    if len(found) != DIGEST_BYTES:
        raise Wrong(f"must be {2 * DIGEST_BYTES} hexadecimal digits")
    return found


def _digests(value: Json) -> tuple[bytes, ...]:
    if not isinstance(value, list):
        raise Wrong("must be a list of digests")
    found = tuple(_digest(item) for item in value)
    if list(found) != sorted(set(found)):
        raise Wrong("must be in rising order, each once")
    return found


_seconds: dict[str, Micros] = {}


def _time(value: Json) -> Micros:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise Wrong("must be a time like 2026-03-02T09:00:00Z or 2026-03-02T09:00:00.000001Z")
    second = _seconds.get(value[:19])
    if second is None:
        try:
            second = parse_instant(value[:19] + "Z", option="")
        except MemError:
            raise Wrong("must be a time of the calendar") from None
        if len(_seconds) > 4096:
            _seconds.clear()
        _seconds[value[:19]] = second
    return second + int(value[20:26] or 0) if len(value) > 20 else second


def _fact_id(value: Json) -> str:
    if not isinstance(value, str) or not FACT_ID.fullmatch(value):
        raise Wrong("must be the id of a fact, 16 hexadecimal digits")
    return value


def _numbered(letter: str) -> Read:
    pattern = re.compile(letter + r"([1-9]\d{0,17})")

    def read(value: Json) -> int:
        found = pattern.fullmatch(value) if isinstance(value, str) else None
        if not found:
            raise Wrong(f"must be an id like {letter}3")
        return int(found[1])

    return read


def _message_id(value: Json) -> tuple[int, int]:
    found = _MESSAGE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise Wrong("must be an id like s3#12")
    return int(found[1]), int(found[2])


def _scalar(value: Json) -> str:
    """Return a value as the file holds it."""
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise Wrong("must be a string, a number, true or false")
    return json.dumps(value)


def _actor(value: Json) -> tuple[str, str, str]:
    if not isinstance(value, dict) or set(value) != set(_ACTOR):
        raise Wrong("must be an object of name, kind and channel")
    name, kind, channel = (read(value[key]) for key, read in _ACTOR.items())
    return name, kind, channel


def _span(value: Json) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise Wrong("must be two numbers")
    start, stop = (_whole(0)(item) for item in value)
    if stop < start:
        raise Wrong("must not end before it begins")
    return start, stop


def _plain(value: Json) -> str:
    if not isinstance(value, str):
        raise Wrong("must be a text")
    return value


def _list_of(read: Read, what: str) -> Read:
    def all_of(value: Json) -> list[Any]:
        if not isinstance(value, list):
            raise Wrong(f"must be a list of {what}")
        return [read(item) for item in value]

    return all_of


def _parts(*reads: Read) -> Read:
    def read(value: Json) -> list[Any]:
        if not isinstance(value, list) or len(value) != len(reads):
            raise Wrong(f"must be a list of {len(reads)}")
        return [part(item) for part, item in zip(reads, value, strict=True)]

    return read


def _detail(value: Json) -> str:
    """Return what a message carries beside its words as the file holds it."""
    if not isinstance(value, dict):
        raise Wrong("must be an object")
    for key, item in value.items():
        if key not in _DETAIL:
            raise Wrong(f"has no place for {json.dumps(key)}")
        _DETAIL[key](item)
    return json.dumps(value)


_ACTOR: Mapping[str, Read] = {"name": _text, "kind": _word(ActorKind), "channel": _word(Channel)}
# The words of a detail stand as JSON inside the file too, where every character has an escape.
_DETAIL: Mapping[str, Read] = {
    **dict.fromkeys(("name", "at_text", "origin", "parent", "tool_call_id", "thinking"), _plain),
    "attachments": _list_of(_plain, "texts"),
    "tool_calls": _list_of(_parts(_optional(_plain), _plain, _plain), "calls"),
    "extra": _list_of(_parts(_plain, _plain), "pairs"),
}
_NOW = _optional(_time)
_SAID = _optional(_text)

FIELDS: Mapping[str, Mapping[str, Read]] = {
    "key": {"id": _text, "secret": _digest},
    "tombstone": {
        "id": _numbered("t"),
        "scope": _SAID,
        "match": _word(Match),
        "pattern": _SAID,
        "key": _text,
        "normaliser": _whole(1),
        "stops": _digests,
        "fact": _optional(_fact_id),
        "reason": _SAID,
        "actor": _actor,
        "at": _time,
        "lifted_at": _NOW,
        "lifted_reason": _SAID,
    },
    "source": {
        "id": _numbered("s"),
        "scope": _text,
        "kind": _word(SourceKind),
        "format": _text,
        "path": _SAID,
        "session": _SAID,
        "title": _SAID,
        "digest": _SAID,
        "imported_at": _time,
        "erased_at": _NOW,
    },
    "message": {
        "id": _message_id,
        "role": _word(Role),
        "content": _SAID,
        "detail": _optional(_detail),
        "at": _NOW,
        "evidence": _digest,
        "recorded_at": _time,
        "erased_at": _NOW,
    },
    "fact": {
        "id": _fact_id,
        "scope": _text,
        "kind": _word(Kind),
        "subject": _SAID,
        "attribute": _SAID,
        "slot": _optional(_digest),
        "owner": _SAID,
        "visibility": _word(Visibility),
        "recorded_at": _time,
        "erased_at": _NOW,
    },
    "version": {
        "fact": _fact_id,
        "version": _whole(1),
        "revision": _whole(1),
        "state": _word(State),
        "text": _SAID,
        "value": _optional(_scalar),
        "confidence": _optional(_share),
        "importance": _optional(_share),
        "authority": _share,
        "pinned": _truth,
        "valid_from": _NOW,
        "valid_to": _NOW,
        "displaced": _truth,
        "superseded_by": _optional(_fact_id),
        "rule": _SAID,
        "text_key": _optional(_digest),
        "slot_key": _optional(_digest),
        "actor": _actor,
        "recorded_at": _time,
        "retired_at": _NOW,
        "erased_at": _NOW,
        "reason": _SAID,
    },
    "provenance": {
        "fact": _fact_id,
        "version": _whole(1),
        "source": _numbered("s"),
        "message": _optional(_message_id),
        "quote": _SAID,
        "span": _optional(_span),
        "verified": _truth,
        "recorded_at": _time,
        "erased_at": _NOW,
    },
    "derivation": {"child": _fact_id, "parent": _fact_id, "how": _word(How), "recorded_at": _time},
    "origin": {"fact": _fact_id, "source": _numbered("s"), "recorded_at": _time},
    "end": {"records": _whole(1), "digest": _text},
}
"""What each type of record holds, in order; a row has these columns, and nothing of a record is left out."""

BELOW: Mapping[str, str] = {
    "message": "source",
    **dict.fromkeys(("version", "provenance", "derivation", "origin"), "fact"),
}
"""Which records stand below which."""


def type_of(value: Json) -> str | None:
    """Return the type of what may be a record of this format; None where it is none."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        return None
    if kind == "header":
        return kind if "mem" in value and "scope" in value else None
    return kind if kind in FIELDS and FIELDS[kind].keys() <= value.keys() else None


def header(value: Json) -> str | None:
    """Return the scope that an export is of; None for all scopes.

    Raises:
        Wrong: It is no header, or one of a newer format.
    """
    if not isinstance(value, dict) or set(value) != {"mem", "type", "scope"} or value["type"] != "header":
        raise Wrong('an export of mem begins with {"mem": 1, "type": "header", "scope": …}')
    if value["mem"] != FORMAT or isinstance(value["mem"], bool):
        raise Wrong(f"its format is {json.dumps(value['mem'])}, and this mem knows {FORMAT}")
    scope: str | None = _SAID(value["scope"])
    return scope


def row(value: Json) -> tuple[str, Row]:
    """Return the type of a record and its row.

    Raises:
        Wrong: It is no record of this format.
    """
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in FIELDS:
        raise Wrong("it is no record of mem's format")
    fields = FIELDS[kind]
    if len(value) != len(fields) + 1 or not fields.keys() <= value.keys():
        odd = sorted((fields.keys() | {"type"}) ^ value.keys())
        raise Wrong(f"a {kind} has the keys {', '.join(fields)}; see to {', '.join(odd)}")
    found: list[Any] = []
    for key, read in fields.items():
        try:
            found.append(read(value[key]))
        except Wrong as problem:
            raise Wrong(f"{key} of the {kind} {problem}") from None
    return kind, tuple(found)


def no_twice(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object of JSON, for a decoder.

    Raises:
        UsageError: A key stands in it twice, so that readers would disagree on what it says.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UsageError("a key stands there twice", hint="leave one of them out")
    return found
