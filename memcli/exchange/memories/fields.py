"""What the readers of memory stores share: the fields of a record that are carried with a fact, and its times."""

from collections.abc import Collection, Mapping

from memcli.clock import lenient_instant
from memcli.exchange.shapes import compact
from memcli.facts import Json, Micros

Extra = tuple[tuple[str, str], ...]


def words(value: Json) -> str:
    """Return a value as the words to carry: text as it stands, anything else as JSON text."""
    return value if isinstance(value, str) else compact(value)


def extras(source: Mapping[str, Json], taken: Collection[str | None] = ()) -> Extra:
    """Return every field that says something and was not taken otherwise, in the order of the record."""
    return tuple((key, words(value)) for key, value in source.items() if key not in taken and not _is_blank(value))


def statement(value: Json) -> str | None:
    """Return a text with words in it, without blanks around it; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value).strip() if isinstance(value, (str, int, float)) else ""
    return text or None


def speaking(source: Mapping[str, Json], *keys: str) -> str | None:
    """Return the first of the keys that holds words; None where none does."""
    return next((key for key in keys if statement(source.get(key)) is not None), None)


def first_statement(source: Mapping[str, Json], *keys: str) -> str | None:
    """Return what the first of the keys that holds words says."""
    return next((text for key in keys if (text := statement(source.get(key))) is not None), None)


def timed(source: Mapping[str, Json], *keys: str) -> str | None:
    """Return the first of the keys that holds a time or what stands for one; None where none does."""
    return next((key for key in keys if not _is_blank(source.get(key))), None)


def moment(source: Mapping[str, Json], *keys: str) -> tuple[Micros | None, str | None]:
    """Return the time under the first of the keys that holds something, and its text where it is no instant."""
    key = timed(source, *keys)
    value = None if key is None else source[key]
    return lenient_instant(compact(value) if isinstance(value, (dict, list)) else value)


def _is_blank(value: Json) -> bool:
    return value is None or (isinstance(value, (str, list, dict)) and not value)
