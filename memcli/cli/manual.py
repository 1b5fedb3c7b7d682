"""`mem help`: exit codes, environment and JSON, each on one page; anything else is the help of that command."""

from collections.abc import Mapping
from typing import Annotated

import typer

from memcli.cli.door import Answer, emit
from memcli.cli.options import AsJson
from memcli.errors import NotFound

EXIT_CODES: Mapping[int, str] = {
    0: "done, allowed, clean, equal",
    1: (
        "the answer is no: check found something, the review queue is not empty (--check), a --fail-on finding, the"
        " gate blocked, a commit would not pass (tx check), an effect is open, a case failed, files differ or something"
        " was stopped (--exit-code), a secret was found (--fail-on-secrets)"
    ),
    2: "usage",
    3: (
        "a rule refused it: tombstoned, out of scope, stale version, conflict, echo, a loss, a transaction that was"
        " aborted or is over, not permitted, no reason given"
    ),
    4: "not found, or an id that several facts begin with",
    5: "input could not be read or recognised, or another program gave no answer",
    6: "held: a person must decide (a dispute among equals, a held commit, a change that became a proposal)",
    10: "no memory file",
    11: "busy: another process holds the file",
    12: "schema too new or too old",
    13: "damaged, not ours, changed behind its back, or the chain of the log is broken",
    14: "disk full, or read-only",
    70: "a bug in mem",
    130: "interrupted",
}

ENVIRONMENT: Mapping[str, str] = {
    "MEM_DB": "the memory file, where --db does not name one",
    "MEM_SCOPE": "binds the process to one scope: any other, and --all-scopes, is refused",
    "MEM_ACTOR": "who acts, where --actor does not say; what kind of actor is seen from the channel",
    "MEM_TIMEOUT": "seconds to wait for a busy file [10]",
    "MEM_DEBUG": "1 lets a bug print its traceback",
    "NO_COLOR": "anything but empty: no colour",
    "TERM": "dumb: no colour",
    "COLUMNS, LINES": "the size of the screen in cells, where they are set",
    "PAGER": "what long listings are shown with on a terminal; empty: nothing [less]",
    "LOGNAME, USER, USERNAME": "the login name: the first of them that is set",
    "TIKTOKEN_CACHE_DIR": "where vocabularies other than the shipped ones are looked for",
    "_MEM_COMPLETE": "set by the completion of the shell, not by you",
}

JSON: Mapping[str, str] = {
    "one document": "--json prints exactly one JSON document on standard output, and nothing else there",
    "many": "listing commands print a list, [] when empty; --jsonl prints one document a line",
    "errors": 'with --json an error is one object on standard error: {"error", "message", "hint"}',
    "ASCII": "everything beyond ASCII is escaped, so that no control character reaches a screen",
    "times": "RFC 3339 in UTC, or null; null valid_from means unknown, null valid_to means no known end",
    "tables": "piped listings are tab-separated and made for programs; before a spreadsheet opens one, take its cells "
    "for text: a text may begin like a formula, which only --format csv puts a quote before",
    "keys": "the keys are a contract; the README lists them",
}

_PAGES: Mapping[str, Mapping[str, str]] = {
    "exit-codes": {str(code): text for code, text in EXIT_CODES.items()},
    "environment": ENVIRONMENT,
    "json": JSON,
}


_COLUMN = 20
"""The cells that the second column of a page has at least."""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command("help")(manual)


def manual(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="exit-codes, environment or json.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print one page: `mem help exit-codes`, `mem help environment`, `mem help json`.

    Exit codes: 0 done, 4 no such page.
    """
    if topic is None:
        text = "pages: " + ", ".join(_PAGES) + "\ncommands: mem --help, mem COMMAND --help"
        emit(Answer(document=lambda: list(_PAGES), screen=text), as_json=as_json)
        return
    page = _PAGES.get(topic)
    if page is None:
        raise NotFound(f"there is no page {topic}", hint="one of: " + ", ".join(_PAGES) + "; for commands `--help`")
    emit(Answer(document=lambda: dict(page), screen=lambda width: _laid_out(page, width)), as_json=as_json)


def _laid_out(page: Mapping[str, str], width: int) -> str:
    from textwrap import fill

    margin = max(len(name) for name in page) + 2
    if width < margin + _COLUMN:  # too narrow for two columns: what is said of a name stands below it
        two = "  "
        return "\n".join(
            f"{name}\n{fill(text, width, initial_indent=two, subsequent_indent=two)}" for name, text in page.items()
        )
    return "\n".join(
        fill(text, width, initial_indent=name.ljust(margin), subsequent_indent=" " * margin)
        for name, text in page.items()
    )
