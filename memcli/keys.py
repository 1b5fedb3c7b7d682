# ruff: noqa: RUF001 -- letters that look like others are what this file is about
"""What makes two texts the same value, and the keyed digests that tombstones and evidence are known by.

Digests outlive the program that made them, so nothing of version 1 may ever change: the table of look-alikes is
written out here instead of being read from a library whose data moves on. A better normaliser is a new version,
and the older ones stay.
"""

import os
import re
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from memcli.errors import Refused, UsageError, WrongSchema
from memcli.facts import Scalar
from memcli.text import EMOJI, INVISIBLE, shorten, visible

NORMALISER = 1
"""The version of the rules that `normalise` follows now."""

MAX_PATTERN_CHARS = 1_000
"""A longer regular expression takes too long to read, by people and by the engine."""

_SHOWN_WIDTH = 60
_SECRET_BYTES = 32
_LONGEST_DECIMAL = 10**1000

_SENTENCE = ".,;:!?"
_QUOTES = "\"'`"
_OPENING = _QUOTES + "¡¿"
_CLOSING = _SENTENCE + _QUOTES
_FEWEST_WORDS_BEFORE_A_LOOSE_MARK = 2

_ASCII_CONTROLS = dict.fromkeys([*range(9), *range(0x0E, 0x1C), 0x7F])

_ASCII_SPACES = dict.fromkeys(b"\t\n\v\f\r\x1c\x1d\x1e\x1f", " ")

# Before NFKC, which would take these apart into white space and marks, or two signs.
_BEFORE = str.maketrans({"´": "'", "′": "'", "″": '"', "‴": "'''", "⁗": "''''", "\u2800": " "})

# After NFKC. The apostrophe of a word and the prime of a unit are one character on most keyboards.
_AFTER = str.maketrans(
    dict.fromkeys("‐‑‒–—―−⁃˗־", "-")
    | dict.fromkeys("‘’‚‛‹›ʹʻʼʽˈ՚׳", "'")
    | dict.fromkeys("“”„‟«»「」『』〝〞〟ʺˮ״", '"')
    | dict.fromkeys("。۔।።։", ".")
    | dict.fromkeys("、،፣", ",")
    | {"؛": ";", "؟": "?", "∶": ":", "꞉": ":", "⁄": "/", "∕": "/", "∗": "*"}
)

# Signs that NFKC would melt into a number beside them: 10² is not 102, 1½ is not 11/2.
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_LOWERED = "₀₁₂₃₄₅₆₇₈₉₊₋"

_SCRIPTS = (
    ("latin", "\u0041", "\u02af"),
    ("greek", "\u0370", "\u03ff"),
    ("cyrillic", "\u0400", "\u052f"),
    ("armenian", "\u0530", "\u058f"),
    ("georgian", "\u10a0", "\u10ff"),
    ("cherokee", "\u13a0", "\u13ff"),
    ("canadian", "\u1400", "\u167f"),
    ("cyrillic", "\u1c80", "\u1c8f"),
    ("georgian", "\u1c90", "\u1cbf"),
    ("latin", "\u1d00", "\u1dbf"),
    ("latin", "\u1e00", "\u1eff"),
    ("greek", "\u1f00", "\u1fff"),
    ("latin", "\u2c60", "\u2c7f"),
    ("coptic", "\u2c80", "\u2cff"),
    ("tifinagh", "\u2d30", "\u2d7f"),
    ("lisu", "\ua4d0", "\ua4ff"),
    ("cyrillic", "\ua640", "\ua69f"),
    ("latin", "\ua720", "\ua7ff"),
    ("latin", "\uab30", "\uab6f"),
    ("cherokee", "\uab70", "\uabbf"),
    ("lycian", "\U00010280", "\U0001029f"),
    ("carian", "\U000102a0", "\U000102df"),
    ("italic", "\U00010300", "\U0001032f"),
    ("deseret", "\U00010400", "\U0001044f"),
    ("osage", "\U000104b0", "\U000104ff"),
)
"""Scripts whose letters pass for Latin ones in running text. Any other letter ends the word for this purpose."""

WHOLE = {
    "greek": ("αβεζηικμνορτυχ", "abezhikmnoptyx"),
    "cyrillic": ("авгеікмнорстухѕјѵԁԛԝӏ", "abreikmhopctyxsjvdqwl"),
    "armenian": ("ազհոստցքօ", "wqhnusgfo"),
    "cherokee": ("ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᏀᏃᏙᏚᏞᏟᏢᏦᏴ", "drtiyajewmhgzvslcpkb"),
    "coptic": ("ⲅⲏⲓⲕⲙⲛⲟⲣⲥⲧⲩⲭⳑ", "rhikmnopctyxl"),
    "deseret": ("𐐬𐐽𐑃𐑈", "ocls"),
    "lisu": ("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaeiou"),
}
"""Letters (case-folded) that look like a Latin one in either case, and which. One to one within a script, so that two
words of a language stay two: a word made of nothing else is folded, any other word of one script is left alone."""

MIXED = {
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧΓΣ": "abezhikmnoptyxyo",
    "αεικντορυχγσςϳ": "aeikvtopuxyocj",
    "ьпѡүһҽԍꙇ": "bnwyhegi",
    "գռ": "qn",
    "ᎽᏂᏏᏒᏔᏕᏧᏳ": "yhbrwsdg",
    "ყჿ": "yo",
    "ᐯᑌᑭᑯᑲᒍᒪᕁᕼᕽᖇᖯᖴᗅᗞᗪᗰᗷ᙭": "vupdbjlxhxrbfaddmbx",
    "ⴸⴹⵏⵔⵕⵝ": "veloqx",
    "ꓒ": "d",
    "𐊂𐊆𐊇𐊊𐊐𐊒𐊕𐊖𐊗": "befixopst",
    "𐊠𐊡𐊢𐊥𐊫𐊰𐊱𐊲𐊴𐋏": "abcfomtyxh",
    "𐌁𐌂𐌉𐌑𐌕𐌗𐌢": "bcimtxx",
    "𐒴𐓂𐓎𐓪𐓶": "rouou",
}
"""What else a letter passes for in a word that has Latin letters too. Greek stands here case by case: Ν is N, ν is v,
and μ is no m."""

SMALL = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz")
"""Small capitals: an alphabet for show where most of a word is written in it, otherwise a few letters of phonetics."""

_ALWAYS = {"ɑ": "a", "ɡ": "g"}
_EXACT_GREEK = frozenset("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧιο")
_EXACT_ALONE = frozenset("ιο")
_SIGN_AND_UNIT = 2

_GIVEAWAYS = frozenset("ѕԁԛԝ")
"""Exact look-alikes that no language writes beside the letters that `WHOLE` has to leave out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TombstoneKey:
    """The key of a file's tombstones, which travels with them; the secret stays out of what is printed."""

    id: str
    secret: bytes = field(repr=False)


def new_key() -> bytes:
    """Return a fresh secret from the system's source of randomness."""
    return os.urandom(_SECRET_BYTES)


def normalise(text: str, *, version: int = NORMALISER) -> str:
    """Return what all spellings of a value have in common.

    Case, kinds of white space, unseen characters, compatibility forms (full width, mathematical letters, ligatures),
    look-alike letters of other scripts, typographic quotes and dashes, and sentence punctuation at the ends of words
    make no difference. Everything else does, diacritics included. Only text that shows nothing becomes empty.

    Raises:
        WrongSchema: No such version of the rules is known here.
    """
    _check_version(version)
    return _spell(text, fold=True)


def _check_version(version: int) -> None:
    if version != NORMALISER:
        raise WrongSchema(
            f"a tombstone was made by version {version} of the normaliser, and this mem knows version {NORMALISER}",
            hint="upgrade mem",
        )


def _spell(text: str, *, fold: bool) -> str:
    if text.isascii():
        if not text.isprintable():
            text = text.translate(_ASCII_CONTROLS)
        return _trimmed(text.lower())
    text = unicodedata.normalize("NFC", _seen(text)).translate(_BEFORE)
    text = _squares_class().sub(_unsquared, _spell_numbers(text))
    text = _foreign_digit_class().sub(_as_ascii_digit, unicodedata.normalize("NFKC", text))
    # The iota below a Greek vowel is a letter once the case is folded.
    text = unicodedata.normalize("NFD", text).replace("\u0345", "ι")
    if fold:
        text = _fold(text)
    # The dot of İ is no diacritic once the letter is small, and is not seen on it.
    text = unicodedata.normalize("NFKC", text.casefold()).replace("i\u0307", "i")
    # French sets its quotation marks off by a space.
    text = text.replace("« ", "«").replace(" »", "»")
    return _trimmed(text.translate(_AFTER))


def _trimmed(text: str) -> str:
    """Return the words without sentence punctuation at their ends, one space between them."""
    words: list[str] = []
    opened = 0
    for word in text.split():
        bare = word.rstrip(_SENTENCE)
        if word[0] in _OPENING or not bare or not bare[-1].isalnum():
            bare, opened = _bare(word, opened)
        words.append(bare)
    while len(words) > _FEWEST_WORDS_BEFORE_A_LOOSE_MARK and _is_loose_mark(words[-1]):
        words.pop()
    return " ".join(words)


def _is_loose_mark(word: str) -> bool:
    """Return whether a last word is the end of a sentence that was set off by a space."""
    return word in {".", "..."} or not word.strip("!?")


def _bare(word: str, opened: int) -> tuple[str, int]:
    """Return a word without the punctuation at its ends, and how many quotations are open behind it."""
    if not any(char.isalnum() or (not char.isascii() and char not in _OPENING) for char in word):
        return word, opened
    body = word.lstrip(_OPENING)
    head = word[: len(word) - len(body)]
    opened += any(char in _QUOTES for char in head)
    end = body.rstrip(_CLOSING)
    tail = body[len(end) :]
    if tail.startswith("..") and end[-1] in "/\\":
        return body, opened
    if any(char in _QUOTES for char in tail):
        if opened:
            opened -= 1
        elif len(end) == 1 or end[-1].isdigit():
            # Not a quotation: 5' is feet, 5" is inches, f' is a derivative.
            end += tail[: len(tail) - len(tail.lstrip(_QUOTES))]
    return end, opened


def _seen(text: str) -> str:
    """Return text without what is unseen; joiners between emoji and the tags of a flag are part of a picture."""
    return _tie_class().sub(r"\1\2", _unseen_class().sub("", text))


@cache
def _unseen_class() -> re.Pattern[str]:
    return re.compile(f"(?![\u200d\U000e0020-\U000e007f])[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{INVISIBLE}]")


@cache
def _tie_class() -> re.Pattern[str]:
    flag = "(\U0001f3f4[\U000e0030-\U000e007a]{2,6}\U000e007f)"
    joiner = f"(?<=[{EMOJI}])(\u200d)\u200d*(?=[{EMOJI}])"
    return re.compile(f"{flag}|{joiner}|[\u200d\U000e0020-\U000e007f]")


def _spell_numbers(text: str) -> str:
    """Return text in which a raised, lowered, enclosed or broken number stays apart from the digits beside it."""
    text = _raised_class().sub("^", text)
    text = _lowered_class().sub("_", text)
    return _enclosed_class().sub(" ", text)


@cache
def _raised_class() -> re.Pattern[str]:
    # After one letter it is a power (x², m²), after several a way to write a digit (km², hunter²).
    return re.compile(rf"(?<![^\W\d_][^\W\d_])(?:(?<=[^\W{_RAISED}])|(?<=[)\]]))(?=[{_RAISED}])")


@cache
def _lowered_class() -> re.Pattern[str]:
    return re.compile(rf"(?<=\d)(?=[{_LOWERED}])")


@cache
def _enclosed_class() -> re.Pattern[str]:
    signs = "¼-¾⅐-⅞Ⅰ-ↈ↉①-⒛⓪㈠-㈩㉑-㉟㊀-㊉㊱-㊿㋀-㋋㍘-㍰㏠-㏾"
    return re.compile(rf"(?<=\d)(?=[{signs}])|(?<=[{signs}{_RAISED}{_LOWERED}])(?=\d)")


@cache
def _squares_class() -> re.Pattern[str]:
    # One alone is a sign of its own (parking, a blood group); a row of them is writing.
    return re.compile("[\U0001f150-\U0001f169\U0001f170-\U0001f189]{2,}")


def _unsquared(found: re.Match[str]) -> str:
    return "".join(chr(ord("a") + (ord(char) - 0x1F150) % 0x20) for char in found.group())


@cache
def _foreign_digit_class() -> re.Pattern[str]:
    return re.compile(r"(?![0-9])\d")


def _as_ascii_digit(found: re.Match[str]) -> str:
    return str(unicodedata.decimal(found.group()))


def _fold(text: str) -> str:
    """Return decomposed text with look-alike letters folded, word by word."""
    if not _foldable_class().search(text):
        return text
    pieces = list(_pieces(text))
    suspect = any(scripts == {"latin"} for _, scripts in pieces) or not _GIVEAWAYS.isdisjoint(text.casefold())
    loose = suspect and not any(_is_genuine(*piece) for piece in pieces)
    return "".join(_fold_word(piece, scripts, loose=loose) if scripts else piece for piece, scripts in pieces)


def _is_genuine(word: str, scripts: frozenset[str]) -> bool:
    """Return whether a word has a letter of another script that no Latin one looks like."""
    return bool(scripts - {"latin"}) and any(
        _script(char) not in {"latin", "mark", ""} and not _is_lookalike(char) for char in word
    )


def _is_lookalike(char: str) -> bool:
    small = char.casefold()
    return char in _mixed() or small in _mixed() or small in _whole("greek")


def _pieces(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield words of letters that may pass for Latin, with their scripts, and what is between, with none."""
    piece: list[str] = []
    scripts: set[str] = set()
    for char in text:
        script = _script(char)
        if script == "mark" or (piece and bool(script) == bool(scripts)):
            piece.append(char)
        else:
            if piece:
                yield "".join(piece), frozenset(scripts)
            piece, scripts = [char], set()
        if script not in {"mark", ""}:
            scripts.add(script)
    yield "".join(piece), frozenset(scripts)


@cache
def _script(char: str) -> str:
    if unicodedata.category(char).startswith("M"):
        return "mark"
    if not char.isalpha():
        return ""
    return next((name for name, first, last in _SCRIPTS if first <= char <= last), "")


def _fold_word(word: str, scripts: frozenset[str], *, loose: bool) -> str:
    others = scripts - {"latin"}
    if not others:
        return _fold_latin(word)
    letters = [char for char in word if _script(char) != "mark"]
    if len(others) == 1:
        (script,) = others
        if "latin" not in scripts:
            return _fold_whole(word, letters, script, loose=loose)
        if not loose and _belongs_to(script, letters):
            return "".join(_towards(script).get(char.casefold(), char) for char in word)
    # A sign and a unit or a variable, such as μm and kΩ, are no disguise.
    allowed = None if len(letters) > _SIGN_AND_UNIT else _EXACT_GREEK
    folded = "".join(_fold_mixed(char, allowed) for char in word)
    return folded if "latin" in scripts or {_script(char) for char in folded} <= {"latin", "mark"} else word


def _fold_latin(word: str) -> str:
    small = _small()
    if 2 * sum(char.casefold() in small for char in word) >= sum(char.isalpha() for char in word):
        word = "".join(small.get(char.casefold(), char) for char in word)
    return "".join(_ALWAYS.get(char.casefold(), char) for char in word)


def _fold_whole(word: str, letters: list[str], script: str, *, loose: bool) -> str:
    """Return a word of one script in Latin letters if it has look-alikes only.

    Args:
        loose: The text has Latin letters or rare look-alikes, and no word that is plainly of another script: then
            two letters may fold to one (Cyrillic en in capitals and shha both pass for h).
    """
    if loose and script != "greek":
        return "".join(_fold_mixed(char, None) for char in word)
    table = _whole(script)
    folded = [char.casefold() for char in letters]
    if not all(char in table for char in folded):
        return word
    if script == "greek" and len(folded) == 1 and folded[0] not in _EXACT_ALONE:
        return word
    return "".join(table.get(char.casefold(), char) for char in word)


def _belongs_to(script: str, letters: list[str]) -> bool:
    """Return whether a mixed word is one of that script in which Latin letters stand for look-alikes of its own."""
    table, towards = _whole(script), _towards(script)
    own = [char.casefold() for char in letters if _script(char) == script]
    latin = [char.casefold() for char in letters if _script(char) == "latin"]
    return any(char not in table for char in own) and all(char in towards for char in latin)


def _fold_mixed(char: str, allowed_greek: frozenset[str] | None) -> str:
    if allowed_greek is not None and _script(char) == "greek" and char not in allowed_greek:
        return char
    return _mixed().get(char) or _mixed().get(char.casefold(), char)


@cache
def _whole(script: str) -> dict[str, str]:
    return dict(zip(*WHOLE.get(script, ("", "")), strict=True))


@cache
def _towards(script: str) -> dict[str, str]:
    """Return which letter of the script a Latin one passes for. M is no μ: megohm is not microhm."""
    return {latin: char for char, latin in _whole(script).items() if char != "μ" and char not in _GIVEAWAYS}


@cache
def _small() -> dict[str, str]:
    return dict(zip(*SMALL, strict=True))


@cache
def _mixed() -> dict[str, str]:
    table = {char: latin for script in WHOLE if script != "greek" for char, latin in _whole(script).items()}
    for chars, latin in MIXED.items():
        table |= dict(zip(chars, latin, strict=True))
    return table | _small() | _ALWAYS


@cache
def _foldable_class() -> re.Pattern[str]:
    """Return what text must have for folding to be worth a look; most has none and is done at once."""
    ranges = "".join(f"{first}-{last}" for name, first, last in _SCRIPTS if name != "latin")
    return re.compile(f"[{ranges}{''.join([*_small(), *_ALWAYS])}]", re.IGNORECASE)


def value_digest(key: TombstoneKey, text: str, *, normaliser: int = NORMALISER) -> bytes:
    """Return the digest that stands for a value, however it is spelt.

    Raises:
        WrongSchema: No such version of the normaliser is known here.
    """
    return _digest(key.secret, "mem value", str(normaliser), normalise(text, version=normaliser))


def slot_digest(
    key: TombstoneKey, subject: str, attribute: str, value: Scalar, *, normaliser: int = NORMALISER
) -> bytes:
    """Return the digest that stands for a value of a slot. 5, 5.0 and the text "5" are one value.

    Raises:
        WrongSchema: No such version of the normaliser is known here.
    """
    slot = (normalise(subject, version=normaliser), normalise(attribute, version=normaliser))
    kind = "null" if value is None else "said"
    return _digest(key.secret, "mem slot", str(normaliser), *slot, kind, _value(value, normaliser))


def _value(value: Scalar, normaliser: int) -> str:
    """Return the text of a value as a person would type it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return normalise(value, version=normaliser)
    if isinstance(value, float):
        if not value.is_integer():
            return repr(value)
        value = int(value)
    # Python refuses to write integers of thousands of digits in decimal.
    return str(value) if abs(value) < _LONGEST_DECIMAL else hex(value)


def evidence_digest(secret: bytes, role: str, content: str) -> bytes:
    """Return the digest that a message is known by, in whatever file or format it arrives."""
    return _digest(secret, "mem evidence", role, spaced(content))


def spaced(text: str) -> str:
    """Return text in NFC with one space between its words: most text is so already, and taking it apart is slow."""
    if text.isascii() and not ("  " in text or "\n\n" in text or "\n " in text):
        even = text.translate(_ASCII_SPACES)
        if "  " not in even:
            return even.strip(" ")
    return " ".join(unicodedata.normalize("NFC", text).split())


def _digest(secret: bytes, domain: str, *parts: str) -> bytes:
    # Each part has its length in front: ("ab", "c") is not ("a", "bc").
    framed = bytearray()
    for part in (domain, *parts):
        data = part.encode("utf-8", "surrogatepass")
        framed += len(data).to_bytes(8, "big") + data
    import hmac  # loads OpenSSL, which nobody who only looks has to wait for

    return hmac.digest(secret, framed, "sha256")


def contains(pattern: str, text: str) -> bool:
    """Return whether the text holds the pattern, both normalised. A pattern that shows nothing is in no text."""
    # A Cyrillic or Greek word made of look-alikes only is folded, and a longer one that begins with it is not.
    forms = (True,) if pattern.isascii() and text.isascii() else (True, False)
    return any(bool(needle := _spell(pattern, fold=fold)) and needle in _spell(text, fold=fold) for fold in forms)


def check_regex(pattern: str) -> None:
    """Return if the pattern is a regular expression that can be used.

    Raises:
        UsageError: It is empty, too long or has a mistake, which the sentence places.
    """
    import regex  # start-up: only regex tombstones need it

    if not pattern.strip():
        raise UsageError("the regular expression is empty", hint="type what the text to stop looks like")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise UsageError(
            f"the regular expression has {len(pattern):,} characters, and at most {MAX_PATTERN_CHARS:,} are taken",
            hint="split it into several tombstones",
        )
    try:
        regex.compile(pattern)
    except regex.error as error:
        at = getattr(error, "pos", None)
        place = "" if at is None else f" at character {at + 1}"
        raise UsageError(
            f"the regular expression {_quoted(pattern)} has a mistake{place}: {getattr(error, 'msg', error)}",
            hint="put a backslash before a character that is meant as itself, or use --contains",
        ) from None
    except (RecursionError, OverflowError, ValueError, MemoryError):
        raise UsageError(
            f"the regular expression {_quoted(pattern)} is too involved", hint="use a simpler one, or --contains"
        ) from None


def matches(pattern: str, text: str, *, timeout_s: float) -> bool:
    """Return whether the pattern is found in the text as it stands or, in either case, in its normalised forms.

    Args:
        timeout_s: For all forms together, in seconds.

    Raises:
        Refused: Time is over or the pattern cannot be used; what cannot be checked is not let in.
    """
    import regex  # start-up: only regex tombstones need it

    try:
        check_regex(pattern)
    except UsageError as error:
        raise Refused(
            f"the tombstone's pattern {_quoted(pattern)} cannot be used, so nothing is let in: {error.message}",
            hint="lift that tombstone and make it again with a pattern that works",
        ) from None
    deadline = time.monotonic() + timeout_s
    try:
        if regex.search(pattern, text, timeout=timeout_s):
            return True
        return any(
            regex.search(pattern, form, flags=regex.IGNORECASE, timeout=max(deadline - time.monotonic(), 1e-6))
            for form in dict.fromkeys((_spell(text, fold=False), _spell(text, fold=True)))
        )
    except TimeoutError:
        raise Refused(
            f"the tombstone's pattern {_quoted(pattern)} took longer than {timeout_s:g} s on this text, "
            "so the text is not let in",
            hint="replace that tombstone by one with a simpler pattern",
        ) from None


def _quoted(pattern: str) -> str:
    return f"“{shorten(visible(pattern), _SHOWN_WIDTH)}”"
