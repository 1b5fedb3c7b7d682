"""A quoted message in its neighbourhood, as `mem why` and `mem review` show it."""

from pathlib import PurePath

from memcli.clock import moment
from memcli.facts import Excerpt, Message
from memcli.render.layout import Page, Part, clip
from memcli.render.words import NOTHING, quoted

QUOTE = 400
"""Cells that are shown of one quote."""

NEIGHBOUR = 120
"""Cells that are shown of a message beside the quoted one."""

AROUND = 160
"""Characters of the message that are shown on each side of the quote."""


def place(shown: Excerpt) -> str:
    """Return the file's name, or the source's id where it has none, and the message's number."""
    name = PurePath(shown.path).name if shown.path else shown.message.source
    return f"{name} #{shown.message.index}"


def when(message: Message) -> str:
    """Return when it was said; what could not be read as a time stands as it was."""
    if message.at is not None:
        return moment(message.at)
    return message.at_text or "time unknown"


def put_excerpt(page: Page, shown: Excerpt) -> None:
    """Add the message, marked, between the one before and the one after."""
    around = [message for message in (shown.before, shown.message, shown.after) if message is not None]
    digits = max(len(str(message.index)) for message in around)
    speakers = max(len(message.role.value) for message in around)
    for message in around:
        marked = message is shown.message
        lead = f"   {'▸' if marked else ' '} {message.index:>{digits}}  {message.role.value:<{speakers}}  "
        style = "mark" if marked else "dim"
        said = _marked(shown) if marked else [(_words(message, NEIGHBOUR), "dim")]
        page.line((lead, style), *said, hang=len(lead))
    if shown.provenance.quote is not None and not shown.provenance.verified:
        page.line(("     does not stand there: ", "warning"), clip(quoted(shown.provenance.quote), QUOTE), hang=5)


def _words(message: Message, limit: int) -> str:
    if message.erased_at is not None:
        return "(erased)"
    calls = ", ".join(f"calls {call.name}" for call in message.tool_calls)
    return clip(message.content or calls or "; ".join(message.attachments) or NOTHING, limit)


def _marked(shown: Excerpt) -> list[Part]:
    """Return the message with its quote in brackets, cut to what stands around it."""
    content = shown.message.content
    found = _span(shown)
    if shown.message.erased_at is not None or not content or found is None:
        return [_words(shown.message, QUOTE)]
    start, end = found
    before, quote, after = content[:start], content[start:end], content[end:]
    if len(before) > AROUND:
        before = f"…{before[-AROUND:]}"
    if len(after) > AROUND:
        after = f"{after[:AROUND]}…"
    return [before, (f"[{clip(quote, QUOTE)}]", "quote"), after]


def _span(shown: Excerpt) -> tuple[int, int] | None:
    """Return where the quote stands; a span that lies outside the words is not believed."""
    content, quote, span = shown.message.content, shown.provenance.quote, shown.provenance.span
    if span is not None and 0 <= span[0] < span[1] <= len(content):
        return span
    if not quote or (start := content.find(quote)) < 0:
        return None
    return start, start + len(quote)
