"""The dump of LlamaIndex's FactExtractionMemoryBlock: `{"name": …, "facts": […], "max_facts": …}`.

The prompts of the block are its own, and are left to it. It condenses what is beyond `max_facts`, so there is room for
everything that is written here.
"""

from collections.abc import Iterator, Sequence

from memcli.exchange.writers.outgoing import Outgoing
from memcli.facts import Json
from memcli.wire import dumps

CARRIES: frozenset[str] = frozenset()
MAX_FACTS = 50
"""How many facts the block holds where nobody says more."""


def write(facts: Sequence[Outgoing]) -> Iterator[str]:
    """Yield the one document."""
    said: list[Json] = [*dict.fromkeys(item.fact.text for item in facts)]
    yield (
        dumps(
            {
                "name": "facts",
                "description": None,
                "priority": 0,
                "accept_short_term_memory": True,
                "facts": said,
                "max_facts": max(MAX_FACTS, len(said)),
            }
        )
        + "\n"
    )
