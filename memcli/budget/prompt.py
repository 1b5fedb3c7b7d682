"""The text that LlamaIndex makes of the blocks, and where it goes among the messages."""

from collections.abc import Mapping, Sequence

from memcli.budget.messages import BudgetMessage, Part, PartKind, text_part
from memcli.budget.settings import InsertMethod

_SHOWN = frozenset({PartKind.IMAGE, PartKind.AUDIO, PartKind.VIDEO, PartKind.DOCUMENT})


def rendered(blocks: Mapping[str, Sequence[Part]]) -> tuple[Part, ...]:
    """Return the parts that stand for the blocks in the prompt: one text, unless something with an address splits it.

    Names and texts stand there as they are, nothing in them is escaped. What has no address is left out.
    """
    parts: list[Part] = []
    lines = ["<memory>"]
    for name, content in blocks.items():
        lines.append(f"<{name}>")
        for part in content:
            if part.kind is PartKind.TEXT:
                lines.append(part.text)
            elif part.kind in _SHOWN and part.url:
                parts += [*_stripped(lines), Part(kind=part.kind, url=part.url)]
                lines = []
        lines.append(f"</{name}>")
    return (*parts, *_stripped([*lines, "</memory>"]))


def _stripped(lines: Sequence[str]) -> list[Part]:
    text = "\n".join(lines).strip()
    return [text_part(text)] if text else []


def place_for(roles: Sequence[str], method: InsertMethod) -> int | None:
    """Return which message takes the memory in, or None where a new one is needed."""
    if method is InsertMethod.SYSTEM:
        return next((index for index, role in enumerate(roles) if role == "system"), None)
    return next((index for index in reversed(range(len(roles))) if roles[index] == "user"), None)


def with_memory(message: BudgetMessage, memory: Sequence[Part]) -> BudgetMessage:
    """Return the message with the memory before its own parts."""
    return BudgetMessage(role=message.role, parts=(*memory, *message.parts), kwargs=message.kwargs)
