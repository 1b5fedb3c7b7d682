"""Anthropic's content blocks, as requests, answers and exports hold them."""

from collections.abc import Mapping
from dataclasses import field

from memcli.exchange.shapes import call, compact, first_text, media, shown, text_or_none
from memcli.exchange.transcripts.parts import Parts
from memcli.facts import Json, Turn
from memcli.record import record
from memcli.terms import Role

FOREIGN = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
)
"""Types of blocks that no other provider's messages have."""

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_MEDIA = frozenset({"image", "document", "container_upload", "file"})
_BESIDE = frozenset({"token_budget", "flag"})
"""What an export notes between the blocks, of which nothing was said."""


@record
class Blocks:
    """The content of one message, taken apart: what it says, and the results of tools that stand in it."""

    parts: Parts = field(default_factory=Parts)
    results: list[Turn] = field(default_factory=list)

    @property
    def speaks(self) -> bool:
        """Return whether there is anything beside tool results."""
        return bool(self.parts.texts or self.parts.thinking or self.parts.calls or self.parts.attachments)


def kind_of(block: Json | Mapping[str, Json]) -> str:
    """Return the type of a block, empty where it has none."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    return kind if isinstance(kind, str) else ""


def blocks(content: Json) -> Blocks:
    """Return what the content of a message holds: a text, or a list of blocks."""
    found = Blocks()
    for block in content if isinstance(content, list) else [] if content is None else [content]:
        if isinstance(block, dict):
            _block(block, found)
        elif isinstance(block, str):
            found.parts.texts.append(block)
        else:
            found.parts.doubts.append(f"skipped what is no block: {shown(block)}")
    if not found.speaks and not found.results:
        found.parts.doubts.append("a message without content; kept empty")
    return found


def _block(block: Mapping[str, Json], found: Blocks) -> None:
    kind, parts = kind_of(block), found.parts
    if kind in ("text", "voice_note"):
        parts.text(block.get("text"))
    elif kind == "thinking":
        parts.thought(block.get("thinking"))
    elif kind == "redacted_thinking":
        parts.attachments.append("thinking that was redacted")
    elif kind in _CALLS:
        parts.call(call(block.get("id"), block.get("name"), block.get("input")))
    elif kind == "tool_result" or kind.endswith("_tool_result"):
        found.results.append(_result(block))
    elif kind in _MEDIA:
        parts.attachments.append(_note(kind, block))
    elif kind not in _BESIDE:
        parts.attachments.append(f"block of type {kind[:40]}" if kind else "block without a type")
        parts.doubts.append(f"a block of type {shown(block.get('type'))} is not known; noted, not read")


def _result(block: Mapping[str, Json]) -> Turn:
    """Return a result as the message that it is; what is neither text nor an image stays as JSON text."""
    texts: list[str] = []
    attachments: list[str] = []
    content = block.get("content")
    for part in content if isinstance(content, list) else [content]:
        kind = kind_of(part)
        if isinstance(part, dict) and kind in _MEDIA:
            attachments.append(_note(kind, part))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(_text(part["text"]))
        elif part is not None:
            texts.append(_text(part))
    return Turn(
        role=Role.TOOL,
        content="\n".join(texts),
        name=text_or_none(block.get("name")),
        tool_call_id=text_or_none(block.get("tool_use_id")),
        attachments=tuple(attachments),
    )


def _note(kind: str, block: Mapping[str, Json]) -> str:
    source = block.get("source")
    inner = source if isinstance(source, dict) else block
    return media(kind, first_text(inner, "media_type", "url", "file_id", "file_name", "title"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(value)
