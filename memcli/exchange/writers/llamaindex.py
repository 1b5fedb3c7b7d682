"""The dump of LlamaIndex's FactExtractionMemoryBlock: `{"name": …, "facts": […], "max_facts": …}`.

The prompts of the block are its own, and are left to it. It condenses what is beyond `max_facts`, so there is room for
everything that is written here.
"""

from collections.abc import Iterable, Iterator

from memcli.exchange.writers.groups import once
from memcli.exchange.writers.outgoing import Outgoing
from memcli.facts import Json
from memcli.wire import dumps

CARRIES: frozenset[str] = frozenset()
MAX_FACTS = 50
"""How many facts the block holds where nobody says more."""


def write(facts: Iterable[Outgoing]) -> Iterator[str]:
    """Yield the one document."""
    before: dict[str, Json] = {"name": "facts", "description": None, "priority": 0, "accept_short_term_memory": True}
    yield dumps(before)[:-1] + ', "facts": ['
    count = 0
    for text in once(item.fact.text for item in facts):
        yield (", " if count else "") + dumps(text)
        count += 1
    yield f'], "max_facts": {max(MAX_FACTS, count)}}}\n'
