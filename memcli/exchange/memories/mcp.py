"""The knowledge graph of the MCP memory server: lines, an array, or the object that `read_graph` gives.

Each observation is one thing remembered of its entity, and each relation another. An entity that says nothing but
its name and type is told, and its type goes along with the relations that name it. Variants spell the type `_type`,
leave it out, or write observations as objects with a time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from memcli.exchange.loose import Prose, Record, parse
from memcli.exchange.memories.fields import Extra, extras, first_statement, moment, speaking, statement, timed
from memcli.exchange.shapes import SURE, Warn, shown, text_or_none
from memcli.facts import Json, Remembered, Warned
from memcli.record import record

_NAME = "mcp"
_KIND = ("type", "_type")
_TEXT = ("text", "content", "observation", "contents", "value")
_TIME = ("timestamp", "created_at", "createdAt", "addedAt", "date", "time")
_LISTS = ("entities", "relations")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@record
class _Graph:
    """What is known of a graph while it is read: the types of entities of which nothing else is remembered."""

    warn: Warn
    bare: dict[str, str] = field(default_factory=dict)

    def tell(self, line: int | None, message: str) -> None:
        self.warn(Warned(line=line, message=message))


@record
class McpMemory:
    """The reader of MCP memory files."""

    name: str = _NAME
    title: str = "an MCP memory graph"

    def claims(self, value: Json | Prose) -> int:
        """Return 3 for an entity or a relation, and certainty for a graph or a list of them."""
        if isinstance(value, list):
            votes = sum(1 for item in value if _kind(item))
            return SURE if votes and 2 * votes >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        graph = _graph(value)
        if graph is not None:
            members = [item for key in _LISTS for item in _members(graph.get(key))]
            votes = sum(1 for item in members if _kind(item))
            return SURE if 2 * votes >= len(members) and _LISTS[0] in graph and _LISTS[1] in graph else 0
        return 3 if _kind(value) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each observation and each relation, in the order of the file."""
        graph = _Graph(warn=warn)
        for found in records:
            yield from _values(found.value, found.line, graph)


MCP = McpMemory()


def _graph(value: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return the graph that an object is or is wrapped around, as the answer of a tool."""
    if any(isinstance(value.get(key), (list, dict)) for key in _LISTS):
        return value
    for key in ("structuredContent", "graph", "result"):
        inner = value.get(key)
        if isinstance(inner, dict) and _LISTS[0] in inner and _LISTS[1] in inner:
            return inner
    content = value.get("content")
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and '"entities"' in text:
            values = parse(text).values
            if len(values) == 1 and isinstance(values[0], dict):
                return values[0]
    return None


def _members(value: Json) -> list[Json]:
    """Return the entities or relations of a list, or of an object that has them by name."""
    if isinstance(value, dict):
        return [{"name": name, **item} if isinstance(item, dict) else item for name, item in value.items()]
    return value if isinstance(value, list) else []


def _kind(value: Json) -> str | None:
    """Return what a record is: `entity`, `relation`, `observation`, or None."""
    if not isinstance(value, dict) or "role" in value:
        return None
    said = next((value[key] for key in _KIND if isinstance(value.get(key), str)), None)
    if isinstance(value.get("relationType"), str) and "from" in value and "to" in value:
        return "relation"
    if said not in (None, "observation") and "observations" not in value and said != "entity":
        return None
    if _name(value) is not None and (isinstance(value.get("entityType"), str) or "observations" in value):
        return "entity"
    return "observation" if isinstance(value.get("entityName"), str) and "contents" in value else None


def _name(value: Mapping[str, Json]) -> str | None:
    return first_statement(value, "name", "entityName")


def _values(value: Json | Prose, line: int | None, graph: _Graph) -> Iterator[Remembered]:
    if isinstance(value, list):
        if not value:
            graph.tell(line, "an empty list; the store holds nothing")
        for item in value:
            yield from _one(item, line, graph)
        return
    inner = _graph(value) if isinstance(value, dict) else None
    if inner is not None:
        yield from _whole(inner, line, graph)
    elif value == {}:
        graph.tell(line, "an empty object; the store holds nothing")
    else:
        yield from _one(value, line, graph)


def _whole(value: Mapping[str, Json], line: int | None, graph: _Graph) -> Iterator[Remembered]:
    if not any(value.get(key) for key in _LISTS):
        graph.tell(line, "an empty graph; the store holds nothing")
    for key in _LISTS:
        if not isinstance(value.get(key), (list, dict, type(None))):
            graph.tell(line, f"its {key} are no list; skipped {shown(value[key])}")
        for item in _members(value.get(key)):
            yield from _one(item, line, graph)
    for key, words in extras(value, _LISTS):
        graph.tell(line, f"skipped {shown(key)}, which belongs to no entity: {shown(words)}")


def _one(value: Json | Prose, line: int | None, graph: _Graph) -> Iterator[Remembered]:
    kind = None if isinstance(value, Prose) else _kind(value)
    if not isinstance(value, dict) or kind is None:
        what = "text" if isinstance(value, Prose) else shown(value)
        graph.tell(line, f"skipped what is no entity and no relation: {what}")
    elif kind == "relation":
        yield from _relation(value, line, graph)
    else:
        yield from _entity(value, line, graph)


def _entity(value: Mapping[str, Json], line: int | None, graph: _Graph) -> Iterator[Remembered]:
    name = _name(value)
    if name is None:
        return
    key = "contents" if "contents" in value and "observations" not in value else "observations"
    there = value.get(key)
    observations = there if isinstance(there, list) else [] if there is None else [there]
    about = extras(value, (*_KIND, "name", "entityName", key))
    count = 0
    for place, item in enumerate(observations):
        remembered = _observation(item, name, about, line)
        if remembered is None:
            graph.tell(line, f"observation {place + 1} of {shown(name)} says nothing: {shown(item)}")
        else:
            count += 1
            yield remembered
    if not count:
        kind = text_or_none(value.get("entityType")) or "unknown"
        graph.bare[name] = kind
        graph.tell(line, f"nothing is remembered of {shown(name)}, an entity of type {shown(kind)}")


def _observation(item: Json, name: str, about: Extra, line: int | None) -> Remembered | None:
    source = item if isinstance(item, dict) else {"text": item}
    key = speaking(source, *_TEXT)
    if key is None:
        return None
    text = statement(source[key])
    at, at_text = moment(source, *_TIME)
    return Remembered(
        format=_NAME,
        text=f"{name}: {text}",
        subject=name,
        origin=text_or_none(source.get("id")),
        at=at,
        at_text=at_text,
        extra=(*about, *extras(source, (key, timed(source, *_TIME), "id"))),
        line=line,
        own=text,
    )


def _relation(value: Mapping[str, Json], line: int | None, graph: _Graph) -> Iterator[Remembered]:
    start, end = statement(value.get("from")), statement(value.get("to"))
    kind = statement(value.get("relationType"))
    if start is None or end is None or kind is None:
        graph.tell(line, f"skipped a relation that lacks an end or its type: {shown(dict(value))}")
        return
    at, at_text = moment(value, *_TIME)
    ends = (("fromType", graph.bare.get(start)), ("toType", graph.bare.get(end)))
    yield Remembered(
        format=_NAME,
        text=f"{start} {in_words(kind)} {end}",
        subject=start,
        at=at,
        at_text=at_text,
        extra=(
            ("relationType", kind),
            ("to", end),
            *((key, words) for key, words in ends if words is not None),
            *extras(value, (*_KIND, timed(value, *_TIME), "from", "to", "relationType")),
        ),
        line=line,
    )


def in_words(relation: str) -> str:
    """Return the type of a relation as words: `LIVES_IN`, `lives_in` and `livesIn` are all `lives in`."""
    spaced = " ".join(_HUMP.sub(" ", relation).replace("_", " ").split())
    is_one_word = spaced == relation.strip() and "_" not in relation
    return relation.strip() if is_one_word and not relation.isupper() else spaced.lower()
