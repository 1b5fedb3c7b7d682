"""What a file looks like, in the words of the person who named it: for refusals, never for a decision to read."""

from collections.abc import Mapping, Sequence

from memcli.exchange.loose import Prose
from memcli.facts import Json

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3\0", "a SQLite database"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip inside gzip"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\x7fELF", "a program"),
)
_KEYS = 6


def foreign_bytes(head: bytes) -> str | None:
    """Return what bytes are that hold no transcript as text, or None where they may."""
    for mark, what in _MAGIC:
        if head.startswith(mark):
            return what
    if head[257:262] == b"ustar":
        return "a tar archive"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "XML" if text.startswith(b"<?xml") else "an HTML page"
    return "binary data" if _is_binary(head) else None


def looked_for(tried: Sequence[str]) -> str:
    """Return what was looked for, in words; a long list is only counted, and named by the hint."""
    return f"looked for {', '.join(tried)}" if len(tried) <= 3 else f"none of {len(tried)} known formats fits"


def described(value: Json | Prose) -> str:
    """Return what a value is, with its first keys."""
    if isinstance(value, Prose):
        return _prose(value.text)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return _array(value)
    kinds = {str: "a JSON string", bool: "a JSON true or false", int: "a JSON number", float: "a JSON number"}
    return kinds.get(type(value), "the JSON value null")


def _array(value: list[Json]) -> str:
    if not value:
        return "an empty JSON array"
    return (
        "nested JSON arrays" if isinstance(value[0], list) else f"a JSON array that begins with {described(value[0])}"
    )


def _object(value: Mapping[str, Json]) -> str:
    if not value:
        return "an empty JSON object"
    keys = ", ".join(key[:40] if key.isprintable() else ascii(key[:40]) for key in list(value)[:_KEYS])
    return f"a JSON object with {'the key' if len(value) == 1 else 'the keys'} {keys}{', …' * (len(value) > _KEYS)}"


def _prose(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    columns = first.count(",")
    if columns and rest and all(line.count(",") >= columns for line in rest.splitlines()[:5] if line):
        return "comma-separated values"
    return "Markdown or plain text"


def _is_binary(head: bytes) -> bool:
    # JSON may begin after a run of NULs that a crash left, and may hold any control character in its strings.
    text = head.lstrip(b"\0\xef\xbb\xbf \t\r\n")
    if text.startswith((b"{", b"[", b'"')) or head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    controls = sum(1 for byte in head if byte < 32 and byte not in b"\t\n\r\f\x1b")
    return controls > 0.01 * len(head) and not _is_sixteen(head)


def _is_sixteen(head: bytes) -> bool:
    return max(head[0::2].count(0), head[1::2].count(0)) > 0.45 * len(head)
