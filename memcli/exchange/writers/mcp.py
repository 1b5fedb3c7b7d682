"""The knowledge graph of the MCP memory server: one entity or relation a line, as its `memory.json` holds them.

Each subject is an entity, and each fact of it an observation. What came in as a relation, and still says the same, goes
out as one. A fact without a subject stands under the name of its scope.
"""

from collections.abc import Iterable, Iterator

from memcli.exchange.memories.mcp import in_words
from memcli.exchange.writers.groups import Groups
from memcli.exchange.writers.outgoing import Outgoing
from memcli.facts import Json
from memcli.wire import dumps

CARRIES = frozenset({"subject"})
UNKNOWN = "unknown"
"""The type of an entity that no source gave one."""


def write(facts: Iterable[Outgoing]) -> Iterator[str]:
    """Yield the entities, each with what is remembered of it, and then the relations."""
    types: dict[str, str] = {}
    with Groups() as entities, Groups() as relations:
        for item in facts:
            name = item.fact.subject or item.fact.scope
            relation = _relation(item)
            if relation is None:
                entities.put(name, observation(item))
                if "entityType" in item.extra:
                    types.setdefault(name, item.extra["entityType"])
                continue
            relations.put("", dumps(relation))
            for end, key in ((name, "fromType"), (item.extra["to"], "toType")):
                if key in item.extra:
                    entities.name(end)
                    types.setdefault(end, item.extra[key])
        for name, observations in entities:
            entity: dict[str, Json] = {"type": "entity", "name": name, "entityType": types.get(name, UNKNOWN)}
            yield dumps(entity)[:-1] + ', "observations": ['
            for number, text in enumerate(observations):
                yield (", " if number else "") + dumps(text)
            yield "]}\n"
        for text in relations.each():
            yield text + "\n"


def observation(item: Outgoing) -> str:
    """Return what a fact says of its subject, without the name in front where it was put there."""
    subject, text = item.fact.subject, item.fact.text
    rest = text[len(subject) + 1 :].strip() if subject and text.startswith(f"{subject}:") else ""
    return rest or text


def _relation(item: Outgoing) -> dict[str, Json] | None:
    subject, kind, end = item.fact.subject, item.extra.get("relationType"), item.extra.get("to")
    if subject is None or kind is None or end is None or item.fact.text != f"{subject} {in_words(kind)} {end}":
        return None
    return {"type": "relation", "from": subject, "to": end, "relationType": kind}
