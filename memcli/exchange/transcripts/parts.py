"""What one message comes to while its content, calls and fields are gone through one by one."""

from collections.abc import Mapping
from dataclasses import field, replace

from memcli.exchange.memories.fields import Extra, extras
from memcli.exchange.shapes import ROLES, Draft, Warn, compact, media, shown, text_or_none
from memcli.facts import Json, ToolCall, Turn, Warned
from memcli.record import record
from memcli.terms import Role


@record
class Parts:
    """Texts, thinking, calls and notes, in the order they stand; doubts are told once the message has a place."""

    texts: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    extra: list[tuple[str, str]] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def text(self, value: Json) -> None:
        """Add a text; what is none stays as JSON text."""
        if value is not None:
            self.texts.append(value if isinstance(value, str) else compact(value))

    def thought(self, value: Json) -> None:
        """Add what was thought, where it says anything; a list of parts gives the text of each."""
        for item in value if isinstance(value, list) else [value]:
            text = item.get("text", item) if isinstance(item, dict) else item
            if text not in (None, "", [], {}):
                self.thinking.append(text if isinstance(text, str) else compact(text))

    def call(self, made: ToolCall) -> None:
        """Add a call, which is often written down a second time in other words."""
        if made.id is not None and any(made.id == known.id for known in self.calls):
            return
        self.calls.append(made)
        if not made.name:
            self.doubts.append("a tool call has no name")

    def note(self, kind: str, source: Mapping[str, Json], *keys: str) -> None:
        """Add a note of a part that is no text, with the first of the keys that names it."""
        self.attachments.append(
            media(kind, next((text for key in keys if (text := text_or_none(source.get(key)))), None))
        )

    def besides(self, source: Mapping[str, Json], taken: frozenset[str], prefix: str = "") -> None:
        """Carry along the fields that say something and were not taken."""
        self.extra.extend((f"{prefix}{key}", words) for key, words in extras(source, taken))

    def filled(self, turn: Turn) -> Turn:
        """Return the turn with all of it."""
        extra: Extra = (*turn.extra, *self.extra)
        return replace(
            turn,
            content="\n".join(self.texts),
            thinking="\n".join(self.thinking) or None,
            attachments=tuple(self.attachments),
            tool_calls=tuple(self.calls),
            extra=extra,
        )

    def place(self, turn: Turn, draft: Draft, line: int | None, warn: Warn) -> None:
        """Add the turn with all of it to a conversation, and tell the doubts about it."""
        index = draft.add(self.filled(turn), line)
        for doubt in self.doubts:
            warn(Warned(line=line, message=f"message {index + 1}: {doubt}"))

    def role(self, spelling: Json) -> tuple[Role, str | None]:
        """Return the role that a spelling means, and the spelling where it means none."""
        if spelling is None or spelling == "":
            self.doubts.append("it has no role; kept as unknown")
            return Role.UNKNOWN, None
        raw = spelling if isinstance(spelling, str) else compact(spelling)
        role = ROLES.get(raw.strip().casefold())
        if role is None:
            self.doubts.append(f"the role {shown(raw)} is not known; kept as unknown")
            return Role.UNKNOWN, raw
        return role, None
