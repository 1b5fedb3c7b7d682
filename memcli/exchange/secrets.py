"""Passwords and keys in what is exported: found by detect-secrets where it is installed, and never repeated."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_RUN = re.compile(r"[!-~]{16}")
_LONG = 16
_WORDS = ("pass", "pwd", "secret", "token", "key", "auth", "cred", "login", "://", "begin")
# In running text every word would be one of these: they are made for quoted strings in programs.
_FOR_PROGRAMS = frozenset({"Base64HighEntropyString", "HexHighEntropyString"})


class Secrets:
    """What was found, as places and kinds.

    Args:
        scan: Finds secrets in a line; None where detect-secrets is not installed, and nothing is looked for.
    """

    def __init__(self, scan: Any) -> None:
        self._scan = scan
        self.found: dict[tuple[str, str], None] = {}

    @property
    def looks(self) -> bool:
        """Return whether anything is looked for."""
        return self._scan is not None

    def look(self, place: str, text: str | None) -> None:
        """Look at a text, and remember the place and the kind of what may be a secret in it."""
        if self._scan is None or text is None or not _likely(text):
            return
        for line in text.splitlines():
            for item in self._scan(line) if _likely(line) else ():
                self.found[place, item.type] = None


def _likely(text: str) -> bool:
    """Return whether a text is worth half a millisecond; a plain statement is told apart in one thousandth of it."""
    folded = text.lower()
    if any(word in folded for word in _WORDS):
        return True
    return max(map(len, text.split()), default=0) >= _LONG and _RUN.search(text) is not None


@contextmanager
def looking() -> Iterator[Secrets]:
    """Give what looks for secrets, set up to ask no network."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class as kinds
        from detect_secrets.core.scan import scan_line
        from detect_secrets.settings import transient_settings
    except ImportError:  # the extra `secrets` is not installed
        yield Secrets(None)
        return
    found: dict[str, type] = kinds()
    plugins = sorted({kind.__name__ for kind in found.values()} - _FOR_PROGRAMS)
    # Without filters nothing is verified, which would send what was found to whoever might know it.
    with transient_settings({"plugins_used": [{"name": name} for name in plugins], "filters_used": []}):
        yield Secrets(scan_line)
