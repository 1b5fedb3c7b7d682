"""Settings of the policies that are mem's own: taken as they are meant, or refused with what would be taken."""

import math
from collections.abc import Mapping, Sequence

from memcli.budget.messages import Estimates
from memcli.budget.settings import LARGEST_LIMIT
from memcli.errors import UsageError
from memcli.facts import Json


def whole(settings: Mapping[str, Json], name: str, default: int, *, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        UsageError: It is none, or out of range.
    """
    value = settings.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_LIMIT:
        raise UsageError(f"{_words(name)} {value} is out of range", hint=f"give a whole number from {least} up to 2^53")
    return value


def number(settings: Mapping[str, Json], name: str, default: float, *, most: float = math.inf) -> float:
    """Return a number of zero or more.

    Raises:
        UsageError: It is none, or out of range.
    """
    value = settings.get(name, default)
    # JSON has no spelling for what is no number, so it comes as a text.
    if isinstance(value, str) and value.strip().lower() in ("nan", "inf", "-inf"):
        value = float(value)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    if not fits or not isinstance(value, int | float) or not math.isfinite(value):
        reach = "of zero or more" if most == math.inf else f"from 0 to {most:g}"
        raise UsageError(f"{_words(name)} {value} is out of range", hint=f"give a number {reach}")
    return float(value)


def choice(settings: Mapping[str, Json], name: str, allowed: Sequence[str]) -> str:
    """Return one of the words allowed; the first where nothing is given.

    Raises:
        UsageError: It is another one.
    """
    value = settings.get(name, allowed[0])
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{_words(name)} cannot be {value}", hint=f"take {' or '.join(allowed)}")
    return value


def texts(settings: Mapping[str, Json], name: str) -> tuple[str, ...]:
    """Return a list of texts; none where nothing is given.

    Raises:
        UsageError: It is no list of texts.
    """
    value = settings.get(name, [])
    found = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(found) != len(value):
        raise UsageError(f"{_words(name)} must be a list of texts", hint=f'write {name} = ["…", "…"]')
    return tuple(found)


def estimates(settings: Mapping[str, Json]) -> Estimates:
    """Return what images, sounds, videos and documents count as.

    Raises:
        UsageError: One is no whole number of zero or more.
    """
    plain = Estimates()
    return Estimates(
        image=whole(settings, "image_token_size_estimate", plain.image),
        audio=whole(settings, "audio_token_size_estimate", plain.audio),
        video=whole(settings, "video_token_size_estimate", plain.video),
        document=whole(settings, "document_token_size_estimate", plain.document),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
