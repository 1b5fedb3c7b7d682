"""What tombstones stop, taken out of a stream of text or JSON; everything else passes byte for byte.

Each JSON record is looked at wherever it may say something: in the keys of `TEXTS`, in observations of an entity, in a
slot of subject, attribute and value, and in plain strings of a list. What is stopped inside a list leaves the list;
what is stopped anywhere else takes the record along. What cannot be looked at is not let through.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TypeAlias

from memcli.errors import UsageError
from memcli.facts import Json, Scalar

Stopped: TypeAlias = Callable[[str, tuple[str, str] | None, Scalar], bool]
"""Whether a tombstone stops a text, with the slot and the value where it has them."""

FORMS: tuple[str, ...] = ("auto", "text", "jsonl", "json")
TEXTS = frozenset({"text", "memory", "content", "fact", "data", "statement", "observation", "quote"})
"""Keys under which a record says something."""

MARK = {"mem": "tombstoned"}
"""What `--mark` puts into a record instead of dropping it."""

_LISTS = frozenset({"observations", "facts", "contents", "memories"})
_MARKER = re.compile(r"(?:[-*+>]|#{1,6}|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = " \t\r\n\ufeff"


class _Twice(dict[str, Json]):
    """An object in which a key stood twice: readers disagree on which counts, so both are looked at."""

    others: list[Json]


class Sieve:
    """Lets through what no tombstone stops, and counts.

    Args:
        stopped: Asks the memory file.
        form: One of `FORMS`; `auto` takes lines that are JSON objects, arrays or strings as JSON, others as text.
        mark: Keep stopped JSON records, with `MARK` in them; what is no object cannot be marked, and is dropped.

    Raises:
        UsageError: There is no such form.
    """

    def __init__(self, stopped: Stopped, *, form: str = "auto", mark: bool = False) -> None:
        if form not in FORMS:
            raise UsageError(f"{form} is no format of this command", hint=f"use one of {', '.join(FORMS)}")
        self._stopped = stopped
        self._form = form
        self._mark = mark
        self.passed = 0
        self.stopped = 0
        self.unread = 0

    def pieces(self, source: IO[bytes]) -> Iterator[bytes]:
        """Yield what passes, as soon as it is known: line by line, or one whole document."""
        if self._form == "json":
            yield from self._document(source.read())
            return
        first = True
        for line in source:
            if first and self._form == "auto" and line.strip():
                first = False
                if _begins_document(line):
                    yield from self._document(line + source.read())
                    return
            kept = self._line(line)
            if kept:
                yield kept

    # ---------------------------------------------------------------- one piece

    def _line(self, line: bytes) -> bytes:
        text = line.decode("utf-8", "surrogateescape").strip(_SPACE)
        if not text:
            return line
        if self._form != "text":
            try:
                value = _parsed(text)
            except ValueError:
                self.unread += self._form == "jsonl"
            except RecursionError:
                self.unread += 1
                self.stopped += 1
                return b""
            else:
                if isinstance(value, str | list | dict):
                    return self._value(value, line, text)
        if any(self._stopped(said, None, None) for said in _said(text)):
            self.stopped += 1
            return b""
        self.passed += 1
        return line

    def _document(self, data: bytes) -> Iterator[bytes]:
        text = data.decode("utf-8", "surrogateescape").strip(_SPACE)
        try:
            value = _parsed(text)
        except ValueError:
            self.unread += self._form == "json"
            yield from filter(None, (self._line(line) for line in data.splitlines(keepends=True)))
            return
        except RecursionError:
            self.unread += 1
            self.stopped += 1
            return
        yield self._value(value, data, text)

    def _value(self, value: Json, data: bytes, text: str) -> bytes:
        """Return what is left of a value: the very bytes where nothing was taken out of it."""
        before = self.stopped
        if self._stops(value) or (isinstance(value, str) and self._stopped(text, None, None)):
            self.stopped += 1
            if not (self._mark and isinstance(value, dict)):
                return b""
            return _again({**value, **MARK}, data)
        self.passed += 1
        left = self._without(value)
        return data if self.stopped == before else _again(left, data)

    # ---------------------------------------------------------------- inside a record

    def _stops(self, value: Json) -> bool:
        """Return whether something that cannot be taken out of a value is stopped."""
        if isinstance(value, str):
            return self._stopped(value, None, None)
        if not isinstance(value, dict):
            return False
        if self._slot(value):
            return True
        if isinstance(value, _Twice) and any(self._anywhere(item) for item in value.others):
            return True
        return any(
            (isinstance(item, str) and key in TEXTS and self._stopped(item, None, None))
            or (isinstance(item, dict) and self._stops(item))
            for key, item in value.items()
        )

    def _anywhere(self, value: Json) -> bool:
        """Return whether any text inside a value is stopped."""
        if isinstance(value, str):
            return self._stopped(value, None, None)
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(self._anywhere(item) for item in inside)

    def _slot(self, value: Mapping[str, Json]) -> bool:
        subject, attribute, held = (value.get(key) for key in ("subject", "attribute", "value"))
        if isinstance(subject, str) and isinstance(attribute, str) and isinstance(held, str | int | float):
            return self._stopped(f"{subject} {attribute} {held}", (subject, attribute), held)
        ends = (value.get("from"), value.get("relationType"), value.get("to"))
        return all(isinstance(end, str) for end in ends) and self._stopped(" ".join(map(str, ends)), None, None)

    def _without(self, value: Json, name: str | None = None) -> Json:
        """Return a value whose lists hold nothing that is stopped.

        Args:
            name: The entity whose observations these are.
        """
        if isinstance(value, list):
            return [self._without(item) for item in value if not self._taken(item, name)]
        if not isinstance(value, dict):
            return value
        entity = value.get("name")
        mine = entity if isinstance(entity, str) else None
        return {key: self._without(item, mine if key in _LISTS else None) for key, item in value.items()}

    def _taken(self, item: Json, name: str | None) -> bool:
        """Return whether an element of a list is stopped, and count it; a marked one stays."""
        texts = [item] if isinstance(item, str) else []
        if isinstance(item, dict):
            texts = [text for key, text in item.items() if key in TEXTS and isinstance(text, str)]
        said = [f"{name}{sign} {text}" for text in texts for sign in ("", ":")] if name is not None else []
        if not (self._stops(item) or any(self._stopped(text, None, None) for text in said)):
            return False
        self.stopped += 1
        if self._mark and isinstance(item, dict):
            item.update(MARK)
            return False
        return True


def _said(text: str) -> tuple[str, ...]:
    """Return what a line says: as it stands, and without the signs of a list or heading that it may be of."""
    bare = _ESCAPED.sub(r"\1", _MARKER.sub("", text, count=1))
    return (text,) if bare == text or not bare else (text, bare)


def _begins_document(line: bytes) -> bool:
    """Return whether a first line is the beginning of a JSON document that goes on behind it."""
    text = line.decode("utf-8", "surrogateescape").strip(_SPACE)
    if not text.startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        return problem.pos >= len(text) or problem.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


def _parsed(text: str) -> Json:
    value: Json = json.loads(text, object_pairs_hook=_pairs, strict=False)
    return value


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    doubled = _Twice(found)
    doubled.others = [item for key, item in pairs if found[key] is not item]
    return doubled


def _again(value: Json, data: bytes) -> bytes:
    """Return a value as JSON text, with the line end that its bytes had."""
    end = data[len(data.rstrip(b"\r\n")) :]
    return json.dumps(value, ensure_ascii=True).encode("ascii") + end
