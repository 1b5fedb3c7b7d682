r"""mem's own format: JSON Lines, one record a line, complete, so that `mem import FILE --restore` gives the same again.

Every record has the same keys in the same order, null where nothing is known. Times are RFC 3339 in UTC with six
digits where they need them, digests are hexadecimal. Texts stand as the memory file stores them: NUL and lone
surrogates, for which JSON tools have no common ground, are escaped as `␛0000` and `␛d83d`, and `␛` itself as `␛241b`.
The order of the records is fixed, and there is no time of export, so that the same memory is the same bytes.

| `type` | what it is |
|---|---|
| `header` | first: `mem` is the version of this format, `scope` what was exported, null for all scopes |
| `key` | a secret that tombstones here were made with, the file's own first; it lets another file consult them |
| `tombstone` | what is refused: `stops` are digests under `key`; `scope` null is everywhere |
| `source` | a transcript, store or statement that evidence came from; its messages follow it |
| `message` | evidence: `detail` is what it carries beside its words, `evidence` the digest under the file's own key |
| `fact` | what stays of a fact in all its versions, which follow it; `slot` is a digest, of erased facts only |
| `version` | one revision of a version, oldest first; digests are of erased ones only; `reason` is why |
| `provenance` | what a version of the fact above came from |
| `derivation` | what the fact above was built from |
| `origin` | the source that a transaction named for the fact above |
| `end` | last: how many records stand above, and their digest (BLAKE2b-256 over every byte), so that a cut is noticed |

What was erased is a marker: `erased_at`, no words, and the digest that stops them. The log is not in it, nor are
settings, policy, proposals and transactions: they belong to the file. The key of the log never leaves it.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any, TypeAlias

from memcli.clock import format_instant
from memcli.digest import blake2b
from memcli.facts import Micros

FORMAT = 1
"""The version of the format."""

Row: TypeAlias = tuple[Any, ...]
_SECOND = 1_000_000
_HELD = 4096
"""Seconds, words and actors whose text is kept; much of a file was recorded within a few."""
LINES = 500
"""Lines that are written in one go."""


class _Words:
    """How the parts of a record are written; what comes again and again is kept."""

    def __init__(self) -> None:
        self._seconds: dict[int, str] = {}
        self._last: tuple[Micros, str] = (-1, "")
        self.word = lru_cache(_HELD)(encode_basestring_ascii)
        self.actor = lru_cache(_HELD)(_actor)

    def time(self, moment: Micros) -> str:
        """Return an instant as JSON has it."""
        if moment == self._last[0]:
            return self._last[1]
        second, micros = divmod(moment, _SECOND)
        text = self._seconds.get(second)
        if text is None:
            if len(self._seconds) >= _HELD:
                self._seconds.clear()
            text = self._seconds[second] = '"' + format_instant(second * _SECOND)[:-1]
        whole = f'{text}.{micros:06d}Z"' if micros else text + 'Z"'
        self._last = (moment, whole)
        return whole

    def at(self, moment: Micros | None) -> str:
        """Return an instant as JSON has it, or null."""
        return "null" if moment is None else self.time(moment)


def _actor(name: str, kind: str, channel: str) -> str:
    said = (encode_basestring_ascii(part) for part in (name, kind, channel))
    return '{{"name": {}, "kind": {}, "channel": {}}}'.format(*said)


def _text(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _hex(digest: bytes | None) -> str:
    return "null" if digest is None else f'"{digest.hex()}"'


def _truth(flag: int) -> str:
    return "true" if flag else "false"


def _number(number: float | None) -> str:
    return "null" if number is None else repr(number)


def records(
    *,
    scope: str | None,
    keys: Iterable[tuple[str, bytes]],
    tombstones: Iterable[Row],
    sources: Iterable[tuple[Row, Iterable[Row]]],
    facts: Iterable[tuple[Row, list[Row], list[Row], list[Row], list[Row]]],
) -> Iterator[str]:
    """Yield the records of an export, each a line, from rows as `memcli.store.copy.Copy` gives them.

    Args:
        scope: What is exported; None for all scopes.
    """
    words = _Words()
    yield f'{{"mem": {FORMAT}, "type": "header", "scope": {_text(scope)}}}\n'
    for name, secret in keys:
        yield f'{{"type": "key", "id": {_text(name)}, "secret": {_hex(secret)}}}\n'
    for row in tombstones:
        yield _tombstone(words, row)
    for row, messages in sources:
        yield _source(words, row)
        for message in messages:
            yield _message(words, message)
    for row, versions, provenance, parents, origins in facts:
        yield _fact(words, row)
        name = row[0]
        for version in versions:
            yield _version(words, name, version)
        for item in provenance:
            yield _provenance(words, name, item)
        for parent in parents:
            yield _derivation(words, name, parent)
        for item in origins:
            yield _origin(words, name, item)


def sealed(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of the lines, many at a time, and behind them the record that says how many and their digest."""
    summary, count, left = blake2b(digest_size=32), 0, iter(lines)
    while some := list(islice(left, LINES)):
        data = "".join(some).encode("ascii")
        summary.update(data)
        count += len(some)
        yield data
    yield f'{{"type": "end", "records": {count}, "digest": "blake2b:{summary.hexdigest()}"}}\n'.encode("ascii")


def _tombstone(words: _Words, row: Row) -> str:
    number, scope, match, pattern, key, normaliser, stops, fact, reason, who, at, lifted_at, why = row
    return (
        f'{{"type": "tombstone", "id": "t{number}", "scope": {_text(scope)}, "match": {_text(match)}, "pattern":'
        f' {_text(pattern)}, "key": {_text(key)}, "normaliser": {normaliser}, "stops":'
        f' [{", ".join(map(_hex, stops))}], "fact": {_text(fact)}, "reason": {_text(reason)}, "actor":'
        f' {words.actor(*who)}, "at": {words.time(at)}, "lifted_at": {words.at(lifted_at)}, "lifted_reason":'
        f" {_text(why)}}}\n"
    )


def _source(words: _Words, row: Row) -> str:
    number, scope, kind, form, path, session, title, digest, imported_at, erased_at = row
    return (
        f'{{"type": "source", "id": "s{number}", "scope": {words.word(scope)}, "kind": {words.word(kind)}, "format":'
        f' {_text(form)}, "path": {_text(path)}, "session": {_text(session)}, "title": {_text(title)}, "digest":'
        f' {_text(digest)}, "imported_at": {words.time(imported_at)}, "erased_at": {words.at(erased_at)}}}\n'
    )


def _message(words: _Words, row: Row) -> str:
    source, position, role, content, detail, at, evidence, recorded_at, erased_at = row[:9]
    return (
        f'{{"type": "message", "id": "s{source}#{position}", "role": {words.word(role)}, "content": {_text(content)},'
        f' "detail": {detail or "null"}, "at": {words.at(at)}, "evidence": {_hex(evidence)}, "recorded_at":'
        f' {words.time(recorded_at)}, "erased_at": {words.at(erased_at)}}}\n'
    )


def _fact(words: _Words, row: Row) -> str:
    name, scope, kind, subject, attribute, slot, owner, visibility, recorded_at, erased_at = row
    return (
        f'{{"type": "fact", "id": "{name}", "scope": {words.word(scope)}, "kind": {words.word(kind)}, "subject":'
        f' {_text(subject)}, "attribute": {_text(attribute)}, "slot": {_hex(slot if erased_at else None)}, "owner":'
        f' {_text(owner)}, "visibility": {words.word(visibility)}, "recorded_at": {words.time(recorded_at)},'
        f' "erased_at": {words.at(erased_at)}}}\n'
    )


def _version(words: _Words, name: str, row: Row) -> str:
    (
        _, version, revision, state, text, value, confidence, importance, authority, pinned, start, end, displaced, _,
        rule, text_key, slot_key, who, kind, channel, recorded_at, retired_at, erased_at, _, _, successor, reason,
    ) = row  # fmt: skip
    gone = erased_at is not None
    return (
        f'{{"type": "version", "fact": "{name}", "version": {version}, "revision": {revision}, "state": "{state}",'
        f' "text": {_text(text)}, "value": {value or "null"}, "confidence": {_number(confidence)}, "importance":'
        f' {_number(importance)}, "authority": {authority!r}, "pinned": {_truth(pinned)}, "valid_from":'
        f' {words.at(start)}, "valid_to": {words.at(end)}, "displaced": {_truth(displaced)}, "superseded_by":'
        f' {_text(successor)}, "rule": {_text(rule)}, "text_key": {_hex(text_key if gone else None)}, "slot_key":'
        f' {_hex(slot_key if gone else None)}, "actor": {words.actor(who, kind, channel)}, "recorded_at":'
        f' {words.time(recorded_at)}, "retired_at": {words.at(retired_at)}, "erased_at": {words.at(erased_at)},'
        f' "reason": {_text(reason)}}}\n'
    )


def _provenance(words: _Words, name: str, row: Row) -> str:
    _, version, source, _, quote, start, stop, verified, recorded_at, erased_at, _, position = row
    message = "null" if position is None else f'"s{source}#{position}"'
    span = "null" if start is None else f"[{start}, {stop}]"
    return (
        f'{{"type": "provenance", "fact": "{name}", "version": {version}, "source": "s{source}", "message": {message},'
        f' "quote": {_text(quote)}, "span": {span}, "verified": {_truth(verified)}, "recorded_at":'
        f' {words.time(recorded_at)}, "erased_at": {words.at(erased_at)}}}\n'
    )


def _derivation(words: _Words, name: str, row: Row) -> str:
    _, parent, how, recorded_at = row
    return (
        f'{{"type": "derivation", "child": "{name}", "parent": "{parent}", "how": "{how}", "recorded_at":'
        f" {words.time(recorded_at)}}}\n"
    )


def _origin(words: _Words, name: str, row: Row) -> str:
    _, source, recorded_at = row
    return f'{{"type": "origin", "fact": "{name}", "source": "s{source}", "recorded_at": {words.time(recorded_at)}}}\n'
