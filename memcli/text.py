"""What may be typed, how odd text is stored, and how any text is shown without harm.

Text is untrusted: it may hold what moves a cursor, reorders a line or shows nothing at all.
"""

import re
import unicodedata
from functools import cache

from memcli.errors import UsageError

MAX_TYPED_CHARS = 100_000
"""The longest text that somebody may type as one fact, reason or pattern; longer ones are imported."""

ESCAPE = "\u241b"
"""Begins an escape in stored text, see `pack`. A visible sign, so that other tools show where text was odd."""

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that show nothing, as the inside of a character class: zero-width, bidirectional, fillers, tags."""

EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
"""Characters that may be part of an emoji, as the inside of a character class."""

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_UNSAFE = (
    f"[{_CONTROLS}{INVISIBLE}\u2028\u2029\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff"
    "\U000f0000-\U000fffff\U00100000-\U0010ffff]"
)
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the wide ones count too, in some places
_VARIANT = "\ufe0f"
_JOINER = "\u200d"
_KEYCAP = "\u20e3"
_LONGEST_ESCAPED_POINT = 0xFF
_LONGEST_SHORT_POINT = 0xFFFF


def check_typed(text: str, *, what: str) -> str:
    """Return typed text without the white space around it; a line end of two characters becomes one.

    Args:
        what: What the text is for, as a noun that begins the sentence: "the reason".

    Raises:
        UsageError: It is empty, shows nothing, is too long, or has a character that cannot be stored or shown.
    """
    text = text.replace("\r\n", "\n")
    bad = _refused_class().search(text)
    if bad:
        raise UsageError(
            f"{what} has {_name(bad.group())} at character {bad.start() + 1}",
            hint="leave that character out; tab and newline are the only control characters that may stay",
        )
    text = text.strip()
    if not text:
        raise UsageError(f"{what} is empty", hint="type at least one visible character")
    if not _invisible_class().sub("", text):
        raise UsageError(
            f"{what} shows nothing: character 1 is {_escaped(text[0])} and the rest is like it",
            hint="type at least one visible character",
        )
    if len(text) > MAX_TYPED_CHARS:
        raise UsageError(
            f"{what} has {len(text):,} characters, and character {MAX_TYPED_CHARS:,} is the last that fits",
            hint="shorten it, or bring long text in with `mem import`",
        )
    return text


@cache
def _refused_class() -> re.Pattern[str]:
    return re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@cache
def _invisible_class() -> re.Pattern[str]:
    return re.compile(f"[{INVISIBLE}\\s]")


def _name(char: str) -> str:
    if char == "\0":
        return "the character NUL"
    kind = "half of a surrogate pair" if "\ud800" <= char <= "\udfff" else "the control character"
    return f"{kind} {_escaped(char)}"


def pack(text: str) -> str:
    r"""Return text as it can be stored: NUL and lone surrogates escaped, all else as it is.

    The escape is `␛` (U+241B) and four hexadecimal digits in lower case: `␛0000` is NUL, `␛d83d` the surrogate
    U+D83D, and `␛241b` the sign `␛` itself. `unpack` gives the text back, character by character.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _packed_class().sub(lambda found: f"{ESCAPE}{ord(found.group()):04x}", text)


def unpack(text: str) -> str:
    """Return the text that `pack` was given; an escape that `pack` never writes stays as it stands."""
    if ESCAPE not in text:
        return text
    return _escape_class().sub(lambda found: chr(int(found.group(1), 16)), text)


@cache
def _packed_class() -> re.Pattern[str]:
    return re.compile(f"[\x00{ESCAPE}\ud800-\udfff]")


@cache
def _escape_class() -> re.Pattern[str]:
    return re.compile(f"{ESCAPE}(0000|241b|d[89a-f][0-9a-f]{{2}})")


def visible(text: str, *, newlines: bool = False) -> str:
    r"""Return text as it may be printed: what moves the cursor, reorders the line or is unseen becomes `\x1b`.

    A tab becomes a space and a newline `⏎`. What joins and colours emoji stays where it does so.

    Args:
        newlines: Keep line ends as they are; for text that is printed as a paragraph.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    shown = _unsafe_class().sub(_shown, text)
    return shown if newlines else shown.replace("\n", "⏎")


def tabular(text: str) -> str:
    """Return text for a cell of a table that a spreadsheet may open, where none begins a formula: a quote goes before.

    Tab-separated listings are for programs and have no such quote; they hand on what `visible` gives.
    """
    shown = "\t".join(visible(part) for part in text.split("\t"))
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


@cache
def _unsafe_class() -> re.Pattern[str]:
    return re.compile(_UNSAFE)


@cache
def _emoji_class() -> re.Pattern[str]:
    return re.compile(f"[{EMOJI}]")


def _shown(found: re.Match[str]) -> str:
    char, text, at = found.group(), found.string, found.start()
    if char == "\t":
        return " "
    if char == "\n" or (char == _VARIANT and _is_styled(text, at)) or (char == _JOINER and _is_joining(text, at)):
        return char
    return _escaped(char)


def _is_emoji(char: str) -> bool:
    return _emoji_class().match(char) is not None


def _is_styled(text: str, at: int) -> bool:
    """Return whether the variation selector there belongs to an emoji or to a key such as 1️⃣."""
    before = text[at - 1 : at]
    return _is_emoji(before) or (before in tuple("0123456789#*") and text[at + 1 : at + 2] == _KEYCAP)


def _is_joining(text: str, at: int) -> bool:
    """Return whether the joiner there stands between two emoji."""
    before = at - 2 if text[at - 1 : at] == _VARIANT else at - 1
    return before >= 0 and _is_emoji(text[before]) and _is_emoji(text[at + 1 : at + 2])


def _escaped(char: str) -> str:
    point = ord(char)
    if point <= _LONGEST_ESCAPED_POINT:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= _LONGEST_SHORT_POINT else f"\\U{point:08x}"


def cells(text: str) -> int:
    """Return how many columns a terminal gives to a text that `visible` has passed."""
    if text.isascii():
        return len(text)
    return sum(_widths(text))


def _widths(text: str) -> list[int]:
    """Return the columns that each character adds to those before it."""
    widths: list[int] = []
    before = ""
    for char in text:
        if char == _VARIANT:
            # The coloured form of a narrow sign is drawn two columns wide.
            widths.append(1 if widths and widths[-1] == 1 and _is_emoji(before) else 0)
        elif "\U0001f3fb" <= char <= "\U0001f3ff" and before and _is_emoji(before):
            widths.append(0)
        else:
            widths.append(_width(char))
        before = char
    return widths


def _width(char: str) -> int:
    if char.isascii():
        return 1
    # The vowels and final consonants of a Korean syllable that was taken apart are drawn inside it.
    if unicodedata.category(char) in {"Mn", "Me", "Cf"} or "\u1160" <= char <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def shorten(text: str, width: int) -> str:
    """Return the text, or as much of its beginning as fits with a `…` behind it.

    Args:
        width: Columns; at zero or less nothing is left.
    """
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    used = kept = 0
    for at, size in enumerate(_widths(text)):
        used += size
        if used > width - 1:
            break
        kept = at + 1
    return text[:kept].rstrip(" " + _JOINER) + "…"
