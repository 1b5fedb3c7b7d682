"""The options that many commands share, so that each means the same everywhere."""

from collections.abc import Callable
from typing import Annotated

import typer

from memcli.clock import parse_instant
from memcli.errors import UsageError

_DIGITS = 9
_LONGEST_S = 86_400
"""Seconds of a day, the longest that another program may take."""


def whole(option: str, *, least: int) -> Callable[[object], int]:
    """Return what reads a whole number that an option takes; typer itself would take `1_0` and any length.

    Raises:
        UsageError: Called with something else, or a number below `least`.
    """

    def read(given: object) -> int:
        text = str(given).strip()
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS
        if not plain or int(text) < least:
            raise UsageError(
                f"{option} takes a whole number from {least} to {10**_DIGITS - 1:,}, and was given {_quoted(text)}",
                hint=f"try {option} 10",
            )
        return int(text)

    return read


def seconds(given: object) -> float:
    """Return how long another program may take.

    Raises:
        UsageError: It is no number above 0, or longer than a day.
    """
    try:
        found = float(str(given))
    except ValueError:
        found = 0.0
    if not 0 < found <= _LONGEST_S:
        raise UsageError(
            f"--timeout takes seconds, above 0 and up to {_LONGEST_S:,}, and was given {_quoted(str(given))}",
            hint="try --timeout 60",
        )
    return found


def _quoted(text: str) -> str:
    return f"“{text}”" if text else "nothing"


Db = Annotated[str | None, typer.Option("--db", metavar="FILE", help="The memory file [$MEM_DB, else memory.db].")]
Scope = Annotated[str | None, typer.Option("--scope", metavar="S", help="The scope [the file's default].")]
AllScopes = Annotated[bool, typer.Option("--all-scopes", help="Look into every scope; this is written to the log.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
AsJsonl = Annotated[bool, typer.Option("--jsonl", help="Print one JSON document a line.")]
Who = Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Who does it [$MEM_ACTOR, else the login].")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
FactId = Annotated[str, typer.Argument(metavar="ID", help="A fact, by its id or the first four or more of it.")]
FactIds = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Facts, by id.")]
ValidAt = Annotated[
    str | None,
    typer.Option("--valid-at", metavar="T", help="What was true then: RFC 3339 with a zone, or YYYY-MM-DD."),
]
KnownAt = Annotated[str | None, typer.Option("--known-at", metavar="T", help="As the file knew it then.")]
ValidFrom = Annotated[str | None, typer.Option("--valid-from", metavar="T", help="True since then.")]
ValidTo = Annotated[str | None, typer.Option("--valid-to", metavar="T", help="True until then, not including it.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-n", metavar="N", parser=whole("--limit", least=0), help="At most N; 0 is all of them."),
]
Timeout = typer.Option("--timeout", metavar="SECONDS", parser=seconds, help="How long the other program may take.")
K = typer.Option("-k", metavar="N", parser=whole("-k", least=1), help="At most N facts.")


def instant(text: str | None, option: str) -> int | None:
    """Return a moment that an option gave, or None.

    Raises:
        UsageError: It is no date that can be read.
    """
    return None if text is None else parse_instant(text, option=option)


def share(value: float | None, option: str) -> float | None:
    """Return a number from 0 to 1.

    Raises:
        UsageError: It is outside, or no number.
    """
    if value is not None and not 0 <= value <= 1:
        raise UsageError(f"{option} is {value:g}", hint="give a number from 0 to 1")
    return value
