"""The facts that LlamaIndex's FactExtractionMemoryBlock holds: `{"name": …, "facts": […], "max_facts": …}`.

Facts are statements as a model wrote them; the block keeps no times and no ids. Its settings, such as how many facts
it may hold and the prompts it extracts with, are no memory and stay behind.
"""

from collections.abc import Iterator, Mapping

from memcli.exchange.loose import Prose, Record
from memcli.exchange.memories.fields import statement
from memcli.exchange.shapes import SURE, Warn, shown, text_or_none
from memcli.facts import Json, Remembered, Warned
from memcli.record import record

_NAME = "llamaindex-facts"
_BESIDE = frozenset({"name", "description", "facts", "priority", "accept_short_term_memory"})
_OURS = frozenset({"max_facts", "fact_extraction_prompt_template", "fact_condense_prompt_template"})


@record
class LlamaIndexFacts:
    """The reader of fact blocks."""

    name: str = _NAME
    title: str = "a LlamaIndex fact block"

    def claims(self, value: Json | Prose) -> int:
        """Return certainty for a block with its settings, and one vote for an object that holds nothing but facts."""
        if isinstance(value, list):
            return SURE if value and all(_certain(item) for item in value) else 0
        if not isinstance(value, dict) or not isinstance(value.get("facts"), list):
            return 0
        if _certain(value):
            return SURE
        facts = value["facts"]
        said = bool(facts) and isinstance(facts, list) and all(isinstance(fact, str) for fact in facts)
        return 1 if said and _BESIDE.issuperset(value) else 0

    def read(self, records: Iterator[Record], warn: Warn) -> Iterator[Remembered]:
        """Yield each fact, block by block."""
        for found in records:
            for value in found.value if isinstance(found.value, list) else [found.value]:
                if isinstance(value, dict) and isinstance(value.get("facts"), list):
                    yield from facts_of(value, found.line, warn)
                else:
                    what = "text" if isinstance(value, Prose) else shown(value)
                    warn(Warned(line=found.line, message=f"skipped what is no block of facts: {what}"))


LLAMAINDEX_FACTS = LlamaIndexFacts()


def facts_of(block: Mapping[str, Json], line: int | None, warn: Warn) -> Iterator[Remembered]:
    """Yield each fact of a block; what is no statement, and what stands there twice, is told."""
    seen: set[str] = set()
    facts = block.get("facts")
    name = text_or_none(block.get("name"))
    for place, fact in enumerate(facts if isinstance(facts, list) else [], start=1):
        text = statement(fact) if isinstance(fact, str) else None
        if text is None:
            warn(Warned(line=line, message=f"fact {place}: skipped what is no statement: {shown(fact)}"))
        elif text in seen:
            warn(Warned(line=line, message=f"fact {place}: it stands there twice: {shown(text)}"))
        else:
            seen.add(text)
            yield Remembered(format=_NAME, text=text, extra=() if name is None else (("block", name),), line=line)
    if not seen:
        warn(Warned(line=line, message=f"the block {shown(name)} holds no facts"))


def _certain(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("facts"), list) and not _OURS.isdisjoint(value)
