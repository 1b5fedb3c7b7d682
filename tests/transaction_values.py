"""What the model of the transaction protocol makes of values: when two are the same, and how much two texts share."""

import re
import unicodedata
from typing import Any


def normal(value: Any) -> str:
    """Return what makes two values the same: compatibility forms, case and white space do not count."""
    return " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split())


def shingles(value: Any) -> set[tuple[str, ...]]:
    """Return the runs of five words of a value."""
    words = re.findall(r"\w+", normal(value))
    return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}
