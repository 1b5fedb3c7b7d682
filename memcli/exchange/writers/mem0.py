"""mem0's JSON, as its `get_all` gives it: `{"results": [{"id", "memory", "hash", "metadata", …}]}`.

What mem0 has no key for stands in `metadata`, under our own words.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import md5

from memcli.clock import format_instant, format_optional
from memcli.exchange.writers.outgoing import PARTS, Outgoing
from memcli.facts import Fact, Json
from memcli.wire import dumps, scalar

CARRIES = frozenset(PARTS)


def write(facts: Iterable[Outgoing]) -> Iterator[str]:
    """Yield the one document."""
    yield '{"results": ['
    for number, item in enumerate(facts):
        yield (",\n" if number else "\n") + dumps(_memory(item))
    yield "\n]}\n"


def _memory(item: Outgoing) -> dict[str, Json]:
    fact = item.fact
    owner: dict[str, Json] = {} if fact.owner is None else {"user_id": fact.owner}
    digest = md5(fact.text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()  # as mem0 makes it
    return {
        "id": fact.id,
        "memory": fact.text,
        "hash": digest,
        "metadata": dict(_metadata(fact)),
        "created_at": format_instant(item.began),
        "updated_at": format_instant(fact.recorded_at),
        **owner,
    }


def _metadata(fact: Fact) -> Mapping[str, Json]:
    said: dict[str, Json] = {
        "scope": fact.scope,
        "state": str(fact.state),
        "kind": str(fact.kind),
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": scalar(fact.value),
        "visibility": str(fact.visibility),
        "confidence": fact.confidence,
        "importance": fact.importance,
        "pinned": fact.pinned or None,
        "valid_from": format_optional(fact.valid.start),
        "valid_to": format_optional(fact.valid.end),
    }
    return {name: value for name, value in said.items() if value is not None}
