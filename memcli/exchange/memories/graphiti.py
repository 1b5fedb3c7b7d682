"""Edges of a Graphiti or Zep graph, as JSON: lists, `{"edges": […]}` or `{"facts": […]}`, and lines.

Each edge is a statement between two nodes. It was true from `valid_at` to `invalid_at`, and the graph put it aside at
`expired_at`. Nodes give their names to the edges; what else stands beside the edges, such as episodes and summaries,
is counted and told. Embeddings are numbers made from the words and stay behind.
"""

from collections.abc import Iterator, Mapping

from memcli.clock import lenient_instant
from memcli.errors import NotAllowed
from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import Extra, extras, first_statement, moment, words
from memcli.exchange.shapes import SURE, Warn, first_text, shown, text_or_none
from memcli.facts import Json, Micros, Remembered, Validity, Warned
from memcli.record import record
from memcli.terms import State

_NAME = "graphiti"
_ROOMS = ("edges", "facts", "entity_edges", "relationships", "results")
_NODES = ("nodes", "entities", "entity_nodes")
_TIMES = frozenset({"valid_at", "invalid_at", "expired_at"})
_ENDS = ("source", "target")
_TAKEN = frozenset(
    {"uuid", "id", "fact", "created_at", "fact_embedding", "group_id", "graph_id", "type", *_TIMES}
    | {"source_node_name", "source_name", "target_node_name", "target_name", "source", "target"}
)


@record
class Graphiti:
    """The reader of Graphiti edges."""

    name: str = _NAME
    title: str = "Graphiti edges"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a list of edges, and 3 for an edge."""
        if isinstance(value, list):
            votes = sum(1 for item in value if _edge(item) is not None)
            return SURE if votes and 2 * votes >= len(value) else 0
        if not isinstance(value, dict):
            return 0
        if _edge(value) is not None:
            return 3
        return max((self.claims(value[key]) for key in _ROOMS if isinstance(value.get(key), list)), default=0)

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield what each edge says, in the order of the file."""
        graph = _Graph(warn)
        for found in records:
            value = found.value
            if isinstance(value, dict) and _edge(value) is None:
                yield from graph.whole(value, found.line)
            else:
                for item in value if isinstance(value, list) else [value]:
                    yield from graph.edge(item, found.line)
        graph.told()


GRAPHITI = Graphiti()


def _edge(value: Json | Prose) -> Mapping[str, Json] | None:
    """Return the fields of an edge, also from within the properties of an exported relationship."""
    if not isinstance(value, dict):
        return None
    inner = value.get("properties")
    if isinstance(inner, dict) and "fact" in inner:
        ends = {
            f"{end}_node_name": _name(value[key])
            for end, key in zip(_ENDS, ("start", "end"), strict=True)
            if isinstance(value.get(key), dict)
        }
        value = {**ends, **inner}
    is_edge = "fact" in value and ("source_node_uuid" in value or not _TIMES.isdisjoint(value))
    return value if is_edge else None


def _name(node: Json) -> str | None:
    """Return the name of a node, or of the properties in one."""
    if not isinstance(node, dict):
        return text_or_none(node)
    inner = node.get("properties")
    return first_text(node, "name") or (first_text(inner, "name") if isinstance(inner, dict) else None)


class _Graph:
    """A graph while it is gone through: the names of its nodes, and what stayed behind."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._names: dict[str, str] = {}
        self._seen: set[str] = set()
        self._embeddings = 0

    def whole(self, value: Mapping[str, Json], line: int | None) -> Iterator[Remembered]:
        """Yield what the edges of a graph say, and tell what else it holds."""
        for key in _NODES:
            nodes = value.get(key)
            for node in nodes if isinstance(nodes, list) else []:
                identity = first_text(node, "uuid", "id") if isinstance(node, dict) else None
                name = _name(node)
                if identity is not None and name is not None:
                    self._names[identity] = name
        rooms = [key for key in _ROOMS if isinstance(value.get(key), list)]
        if not rooms:
            self._tell(line, f"skipped what is no edge: {shown(dict(value))}")
        for key in rooms:
            held = value[key]
            for item in held if isinstance(held, list) else []:
                yield from self.edge(item, line)
        for key, held in value.items():
            if key not in rooms and isinstance(held, list) and held:
                self._tell(line, f"left behind, since they are no edges: {len(held)} {key}")

    def edge(self, item: Json | Prose, line: int | None) -> Iterator[Remembered]:
        """Yield what an edge says, if anything."""
        source = _edge(item)
        text = first_statement(source, "fact") if source is not None and isinstance(source.get("fact"), str) else None
        if source is None or text is None:
            what = "text" if isinstance(item, Prose) else shown(item)
            self._tell(line, f"skipped what is no edge with a fact: {what}")
            return
        identity = first_text(source, "uuid", "id")
        if identity is not None and identity in self._seen:
            self._tell(line, f"the edge {shown(identity)} stands there twice; taken once")
            return
        self._seen.update(() if identity is None else (identity,))
        self._embeddings += source.get("fact_embedding") not in (None, [])
        validity, beside = self._validity(source, identity, line)
        at, at_text = moment(source, "created_at")
        expired = source.get("expired_at") not in (None, "", False)
        start, end = (self._end(source, side) for side in _ENDS)
        yield Remembered(
            format=_NAME,
            text=text,
            subject=start,
            validity=validity,
            owner=first_text(source, "group_id", "graph_id"),
            origin=identity,
            at=at,
            at_text=at_text,
            ended=State.SUPERSEDED if expired else None,
            status="expired" if expired else None,
            extra=(*(() if end is None else (("target", end),)), *beside, *extras(source, _TAKEN)),
            line=line,
        )

    def told(self) -> None:
        """Tell what was left behind of the edges."""
        if self._embeddings:
            self._tell(None, f"left behind, since they are made from the words: {self._embeddings} embeddings")

    def _end(self, source: Mapping[str, Json], side: str) -> str | None:
        named = first_text(source, f"{side}_node_name", f"{side}_name") or _name(source.get(side))
        return named or self._names.get(first_text(source, f"{side}_node_uuid") or "")

    def _validity(self, source: Mapping[str, Json], identity: str | None, line: int | None) -> tuple[Validity, Extra]:
        """Return when an edge was true, and the times that say nothing of that or cannot be read."""
        beside = [("expired_at", words(source["expired_at"]))] if source.get("expired_at") not in (None, "") else []
        ends: dict[str, Micros | None] = {}
        for key in ("valid_at", "invalid_at"):
            value = source.get(key)
            ends[key], unread = lenient_instant(words(value) if isinstance(value, (dict, list)) else value)
            if unread is not None:
                beside.append((key, unread))
                self._tell(line, f"the edge {shown(identity)}: {key} is no instant: {shown(unread)}; kept as text")
        try:
            return Validity(start=ends["valid_at"], end=ends["invalid_at"]), tuple(beside)
        except NotAllowed:
            self._tell(line, f"the edge {shown(identity)}: it ends before it begins; its times are kept as text")
            return Validity(), (*beside, *((key, words(source.get(key))) for key in ("valid_at", "invalid_at")))

    def _tell(self, line: int | None, message: str) -> None:
        self._warn(Warned(line=line, message=message))
