"""Values as a person gave them, taken the way LlamaIndex takes them: coerced where pydantic coerces, else refused."""

import math
import re
from typing import Any, Final

from memcli.budget.raised import Raised

MISSING: Final = object()
"""Stands for a value that was not given, where None is one that was."""

_LARGEST_FLOAT_AS_INT = 2.0**63
_INTEGER = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*(?:\.0+)?", re.ASCII)
_TRUTHS = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


class Fields:
    """Takes one field after the other and keeps what is said of those that do not fit, to be raised together.

    A field that does not fit gives an empty value of its type; `check` must come before anything uses it.
    """

    __slots__ = ("_problems",)

    def __init__(self) -> None:
        self._problems: list[str] = []

    def check(self) -> None:
        """Return where every field fitted.

        Raises:
            Raised: One did not.
        """
        if self._problems:
            raise Raised("ValidationError", " / ".join(self._problems))

    def refuse(self, name: str, words: str) -> None:
        """Keep what is said of a field."""
        self._problems += [name, words]

    def whole(self, name: str, value: Any) -> int:
        """Return an integer: also from an integral float, a truth value or text."""
        taken, words = _whole(value)
        if words:
            self.refuse(name, words)
        return taken

    def number(self, name: str, value: Any) -> float:
        """Return a double, be it out of every range, infinite or no number."""
        if isinstance(value, (int, float, str)):
            try:
                return float(value)
            except (ValueError, OverflowError):
                self.refuse(name, "Input should be a valid number, unable to parse string as a number")
        else:
            self.refuse(name, "Input should be a valid number")
        return 0.0

    def text(self, name: str, value: Any) -> str:
        """Return the text; nothing else is taken for one."""
        if isinstance(value, str):
            return value
        self.refuse(name, "Field required" if value is MISSING else "Input should be a valid string")
        return ""

    def text_or_none(self, name: str, value: Any) -> str | None:
        """Return the text, or None where that is what was given."""
        return None if value is None else self.text(name, value)

    def texts(self, name: str, value: Any) -> list[str]:
        """Return a list of texts."""
        if isinstance(value, (list, tuple)):
            return [self.text(f"{name}.{index}", item) for index, item in enumerate(value)]
        self.refuse(name, "Input should be a valid list")
        return []

    def truth(self, name: str, value: Any) -> bool:
        """Return a truth value: also from 0, 1 and the usual words for them."""
        if isinstance(value, str):
            known = _TRUTHS.get(value.strip().casefold())
        elif isinstance(value, (int, float)):
            known = bool(value) if value in (0, 1) else None
        else:
            self.refuse(name, "Input should be a valid boolean")
            return False
        if known is None:
            self.refuse(name, "Input should be a valid boolean, unable to interpret input")
        return bool(known)

    def one_of(self, name: str, value: Any, allowed: tuple[str, ...]) -> str:
        """Return the value where it is one of those allowed, in the same case."""
        if isinstance(value, str) and value in allowed:
            return value
        words = ", ".join(repr(word) for word in allowed[:-1])
        self.refuse(name, f"Input should be {words} or {allowed[-1]!r}")
        return allowed[0]


def _whole(value: Any) -> tuple[int, str]:
    """Return an integer, or 0 and why there is none."""
    if isinstance(value, float):
        why = _no_integer(value)
    elif isinstance(value, str):
        value = value.strip()
        parsed = _INTEGER.fullmatch(value) is not None
        why = "" if parsed else "Input should be a valid integer, unable to parse string as an integer"
        value = value.partition(".")[0]
    else:
        why = "" if isinstance(value, int) else "Input should be a valid integer"
    return (0 if why else int(value)), why


def _no_integer(value: float) -> str:
    """Return why a double is no integer, or nothing."""
    if not math.isfinite(value):
        return "Input should be a finite number"
    if not value.is_integer():
        return "Input should be a valid integer, got a number with a fractional part"
    return (
        ""
        if abs(value) < _LARGEST_FLOAT_AS_INT
        else "Unable to parse input string as an integer, exceeded maximum size"
    )
