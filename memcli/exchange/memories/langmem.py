"""Items of a LangGraph store, as LangMem fills it: lists, `{"items": […]}`, lines, and the SQLite store.

An item has a namespace, a key and a value. The value holds the words under `content`, alone or inside an object with
its `kind`; a triple becomes its sentence, and any other object one statement with all of its fields. The namespace
says whose it is. The score belongs to a search, not to the memory, and is carried as a word beside it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import Extra, extras, first_statement, moment, words
from memcli.exchange.shapes import SURE, Warn, shown, text_or_none
from memcli.exchange.transcripts.columns import document, has, plain, tables_with
from memcli.facts import Json, Remembered, Warned
from memcli.record import record

if TYPE_CHECKING:
    import sqlite3

_NAME = "langmem"
_ROW = ("prefix", "key", "value")
_COLUMNS = ("prefix", "key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes")
_TEXT = ("content", "memory", "text", "fact", "data")
_TRIPLE = ("subject", "predicate", "object")
_TAKEN = frozenset({"namespace", "prefix", "key", "id", "value", "created_at", "updated_at"})
_ROOMS = ("items", "results", "memories")
_UTC = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?")


@record
class LangMem:
    """The reader of LangGraph stores."""

    name: str = _NAME
    title: str = "a LangGraph store"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a list of items, and 3 for an item."""
        if isinstance(value, list):
            votes = sum(1 for item in value if _is_item(item))
            return SURE if votes and 2 * votes >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        if _is_item(value):
            return 3
        return max((self.claims(value[key]) for key in _ROOMS if isinstance(value.get(key), list)), default=0)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each item, in the order of the file."""
        store = _Store(warn)
        for found in records:
            value = found.value
            held = _list(value) if isinstance(value, dict) and not _is_item(value) else value
            for item in held if isinstance(held, list) else [value]:
                yield from store.item(item, found.line)

    def claims_tables(self, tables: Mapping[str, frozenset[str]]) -> int:
        """Return certainty for the table of a LangGraph store."""
        return SURE if "store" in tables and has({"store": tables["store"]}, *_ROW) else 0

    def read_tables(self, conn: "sqlite3.Connection", warn: Warn) -> Iterator[Remembered]:
        """Yield each item, by namespace and key."""
        store = _Store(warn)
        for table in tables_with(conn, *_ROW):
            if table.name.casefold() != "store":
                continue
            for row in table.rows(conn, *_COLUMNS, order="{prefix}, {key}"):
                item = dict(zip(_COLUMNS, map(plain, row), strict=True))
                item["value"] = document(item["value"])
                for column in ("created_at", "updated_at", "expires_at"):
                    item[column] = _zoned(item[column])
                yield from store.item(item, None)


LANGMEM = LangMem()


def _zoned(value: Json) -> Json:
    """Return a time of SQLite's `current_timestamp`, which is UTC, with its zone."""
    return f"{value}+00:00" if isinstance(value, str) and _UTC.fullmatch(value) else value


def _is_item(value: Json) -> bool:
    if not isinstance(value, dict) or "key" not in value or not isinstance(value.get("value"), (dict, str)):
        return False
    namespace = value.get("namespace")
    if isinstance(namespace, list):
        return all(isinstance(part, str) for part in namespace)
    return isinstance(namespace, str) and ("created_at" in value or "updated_at" in value)


def _list(value: Mapping[str, Json]) -> Json:
    return next((value[key] for key in _ROOMS if isinstance(value.get(key), list)), None)


class _Store:
    """The items of a store while it is gone through; searches give one item more than once."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._seen: dict[tuple[str | None, str], set[str]] = {}

    def item(self, item: Json | Prose, line: int | None) -> Iterator[Remembered]:
        """Yield what an item remembers, if anything."""
        if not isinstance(item, dict):
            what = "text" if isinstance(item, Prose) else shown(item)
            self._tell(line, f"skipped what is no item: {what}")
            return
        key = text_or_none(item.get("key")) or text_or_none(item.get("id"))
        namespace = _joined(item.get("namespace", item.get("prefix")))
        text, subject, beside = _said(document(item.get("value")))
        if text is None:
            self._tell(line, f"item {shown(key)}: skipped what says nothing: {shown(item.get('value'))}")
            return
        if key is not None and self._is_known(namespace, key, text, line):
            return
        at, at_text = moment(item, "updated_at", "created_at")
        created, _ = moment(item, "created_at")
        first = (("created_at", words(item["created_at"])),) if created is not None and created != at else ()
        yield Remembered(
            format=_NAME,
            text=text,
            subject=subject,
            owner=namespace,
            origin=key,
            at=at,
            at_text=at_text,
            extra=(*first, *beside, *extras(item, _TAKEN)),
            line=line,
        )

    def _is_known(self, namespace: str | None, key: str, text: str, line: int | None) -> bool:
        """Return whether an item was there already, telling so; in other words, it is taken as well."""
        before = self._seen.setdefault((namespace, key), set())
        if before:
            what = "taken once" if text in before else "with other words, and both are taken"
            self._tell(line, f"item {shown(key)}: it stands there twice; {what}")
        known = text in before
        before.add(text)
        return known

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))


def _joined(namespace: Json) -> str | None:
    """Return a namespace as one word, joined as the SQLite store joins it."""
    if isinstance(namespace, list):
        return ".".join(words(part) for part in namespace) or None
    return text_or_none(namespace)


def _said(value: Json) -> tuple[str | None, str | None, Extra]:
    """Return the statement of a value, whom it is about where that is said, and what stands beside it."""
    if not isinstance(value, dict):
        return _statement(value), None, ()
    inner, kind = value.get("content"), text_or_none(value.get("kind"))
    if not isinstance(inner, dict):
        text = first_statement(value, *_TEXT)
        return (text, None, extras(value, _first(value))) if text is not None else (_fields(value, kind), None, ())
    beside = extras(value, ("content",))
    triple = [first_statement(inner, name) for name in _TRIPLE]
    if None not in triple:
        return " ".join(part or "" for part in triple), triple[0], (*beside, *extras(inner, _TRIPLE))
    text = first_statement(inner, *_TEXT)
    if text is not None:
        return text, None, (*beside, *extras(inner, _first(inner)))
    return _fields(inner, kind), None, beside


def _statement(value: Json) -> str | None:
    if isinstance(value, list):
        return "; ".join(words(item) for item in value) or None
    return first_statement({"text": value}, "text")


def _first(source: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the key that held the statement."""
    return next(((key,) for key in _TEXT if first_statement(source, key) is not None), ())


def _fields(source: Mapping[str, Json], kind: str | None) -> str | None:
    """Return all fields of an object as one statement, after the name of its kind."""
    fields = "; ".join(f"{key}: {said}" for key, said in extras(source, ("kind",)) if said.strip())
    return (f"{kind}: {fields}" if kind is not None else fields) or None if fields else None
