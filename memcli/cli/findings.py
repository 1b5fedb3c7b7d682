"""How commands that find things say so: one option, one list of forms, one way to print each."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

import typer

from memcli.cli.door import Answer, emit, printing, settings
from memcli.errors import UsageError
from memcli.facts import Observed

FORMATS = ("text", "json", "jsonl", "github", "junit", "sarif", "markdown")

OutputFormat: TypeAlias = Annotated[
    str, typer.Option("--output-format", metavar="FORMAT", help="text, json, jsonl, github, junit, sarif or markdown.")
]


def form(name: str, *, as_json: bool, as_jsonl: bool, known: Sequence[str] = FORMATS) -> str:
    """Return the form that was asked for; `--json` and `--jsonl` come before `--output-format`.

    Raises:
        UsageError: There is no such form.
    """
    if name not in known:
        raise UsageError(f"{name or 'nothing'} is no output format of this command", hint="one of: " + ", ".join(known))
    if as_json or as_jsonl:
        return "json" if as_json else "jsonl"
    settings.as_json = settings.as_json or name.startswith("json")
    return name


def emit_found(answer: Answer, found: Callable[[], Sequence[Observed]], asked: str, *, title: str, clean: str) -> None:
    """Print an answer as text or JSON, or as a report in the form that was asked for.

    Args:
        found: What a report speaks of; made only where one was asked for.
        title: What was run, such as `mem check`.
        clean: The sentence that stands where nothing is wrong.

    Raises:
        NoSpace: The output cannot be written.
    """
    if asked in ("text", "json", "jsonl"):
        emit(answer, as_json=asked == "json", as_jsonl=asked == "jsonl")
        return
    from memcli.render.reports import report

    with printing():
        sys.stdout.write(report(asked, found(), title=title, clean=clean))
