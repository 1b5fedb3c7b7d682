"""The command line: `main` builds what was asked for, runs it, and turns every error into a sentence and a code.

Start-up is a feature: only the command group that was named is imported.
"""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO

import typer

from memcli import __version__
from memcli.cli.door import printing, settings
from memcli.errors import Interrupted, MemError, NoSpace, UsageError

GROUPS: Mapping[str, Mapping[str, str]] = {
    "memcli.cli.show": {"show": "List what the memory holds, or show facts in full."},
    "memcli.cli.look": {
        "why": "Show why it holds a fact: quote, versions, derivations, log.",
        "recall": "Rank the readable facts for a query.",
        "context": "Print the block that would go into a prompt.",
    },
    "memcli.cli.log": {"log": "Show, verify or pin the audit trail."},
    "memcli.cli.change": {
        "add": "Offer a fact.",
        "correct": "Give a fact another value, with a reason.",
        "retract": "End a fact with no replacement.",
        "verify": "Raise a fact to verified.",
        "dispute": "Hold a fact until a person decides.",
        "undo": "Restore what an event changed.",
    },
    "memcli.cli.remove": {
        "tombstone": "Reject a value for good.",
        "lift": "End a tombstone.",
        "erase": "Remove words everywhere in the file.",
    },
    "memcli.cli.review": {"review": "Decide what waits, with one key for each decision."},
    "memcli.cli.bring": {
        "import": "Take in transcripts as evidence, and memory stores as facts.",
        "extract": "Read facts from messages and offer them.",
    },
    "memcli.cli.export": {
        "export": "Write the memory out, whole or for another tool.",
        "filter": "Stop tombstoned values in the pipelines of other tools.",
        "diff": "Show what changed between two memory files.",
    },
    "memcli.cli.condense": {"condense": "Replace many facts by few, and say what would be lost."},
    "memcli.cli.budget": {"budget": "See what a prompt will hold, before it is sent."},
    "memcli.cli.transact": {"tx": "Stage facts, check them, and commit them together."},
    "memcli.cli.act": {
        "gate": "Ask whether a tool call may go ahead.",
        "act": "Record the tool calls that the gate allowed.",
        "revoke": "Withdraw a fact and all that was built on it.",
        "effects": "List what actions owe because a premise was withdrawn.",
    },
    "memcli.cli.evaluate": {"eval": "Ask golden cases, and judge what comes back."},
    "memcli.cli.file": {
        "init": "Make a new memory file.",
        "check": "Check that the file holds together.",
        "stats": "Show sizes and counts.",
        "migrate": "Bring an older file to this mem's schema.",
        "rebuild": "Recreate what is derived.",
        "glossary": "Print the words that mem uses.",
    },
    "memcli.cli.people": {
        "scope": "List, rename and merge the scopes of the file.",
        "policy": "Set what sources, oracles, agents and tools may do.",
    },
    "memcli.cli.tour": {"tour": "See mem at work on two shipped conversations."},
    "memcli.cli.manual": {"help": "Print a page: exit codes, environment or JSON."},
}
"""Which file holds which commands, and the line each has in the help; the order is that of the help.

`mem --help` prints these lines without importing the commands; the rest is in `mem COMMAND --help`.
"""

_ABOUT = """Look into, correct, review and prove what an agent remembers, in one SQLite file.

Start with `mem tour`. Exit codes: `mem help exit-codes`."""


def build(words: Sequence[str], *, whole: bool = False) -> typer.Typer:
    """Return the application with the commands that these words can need, or with all of them whole."""
    app = typer.Typer(
        name="mem",
        help=_ABOUT,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=True,
    )
    app.callback()(_root)
    named = next((word for word in words if not word.startswith("-")), None)
    alone = next((module for module, commands in GROUPS.items() if named in commands), None)
    if alone is None and not whole and not os.environ.get("_MEM_COMPLETE"):
        for commands in GROUPS.values():
            for name, summary in commands.items():
                app.command(name, help=summary)(_unnamed)
        return app
    for module in GROUPS if alone is None else (alone,):
        import_module(module).register(app)
    return app


def _unnamed() -> None:
    """Stand for a command where only its name and summary are wanted: in the help, and beside one that is unknown."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mem {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    no_color: bool = typer.Option(False, "--no-color", help="Never colour, here or anywhere in the command."),
) -> None:
    """Options that stand before the command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    settings.read(words)
    stream = sys.stdout
    try:
        _take_streams()
        result = build(words)(args=settings.words, prog_name="mem", standalone_mode=False)
        if result == Interrupted.exit_code:
            raise KeyboardInterrupt  # typer has caught it and says nothing
        with printing():
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        return _silence()
    except SystemExit as end:
        # typer leaves so when our reader has gone, which it marks at the stream, and when it has completed a word.
        return _silence() if sys.stdout is not stream else int(end.code or 0)
    except typer.Exit as end:
        return end.exit_code
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001  # a bug is a sentence and a code, never a traceback
        return _ended(problem)


def _ended(problem: BaseException) -> int:
    """Return the exit code for what went wrong, after saying it."""
    if isinstance(problem, MemError):
        return _fail(problem)
    if isinstance(problem, KeyboardInterrupt | typer.Abort):
        with suppress(OSError):
            sys.stderr.write("\n" if sys.stderr.isatty() else "")  # behind the question, or the ^C
        return _fail(Interrupted("stopped; what was done before is kept"))
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        return _fail(NoSpace("the answer cannot be printed: the disk is full", hint="make room and try again"))
    if isinstance(problem, _usage_errors()):
        return _misused(problem)
    return _bug(problem)


def _usage_errors() -> type[BaseException]:
    # typer brings its own click; the base of its parameter errors is the class of every usage error.
    return typer.BadParameter.__mro__[2]


def _take_streams() -> None:
    """Let a stream that cannot encode a character show an escape instead of failing, and do without a closed one.

    Raises:
        NoSpace: There is no standard output.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # or the memory file would be given the number of standard input
    if sys.stdout is None:
        sys.stdout = _nowhere()
        raise NoSpace("standard output is closed; nothing was done", hint="let it go to a file, a pipe or /dev/null")
    if sys.stderr is None:
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _fail(problem: MemError) -> int:
    from memcli.cli.door import complain

    try:
        sys.stdout.flush()
    except OSError:
        _silence()
    try:
        complain(problem)
    except OSError:  # without standard error, the exit code is all that can be said
        sys.stderr = _nowhere()
    return problem.exit_code


def _misused(problem: BaseException) -> int:
    code = getattr(problem, "exit_code", 2)
    if type(problem).__name__ == "NoArgsIsHelpError":
        typer.echo(getattr(problem, "message", str(problem)))
        return int(code)
    message = getattr(problem, "format_message", lambda: str(problem))()
    # From 0.29 on typer has choices checked by pydantic, which puts its own word before what is wrong.
    message = message.replace(": Value error, ", ": ", 1)
    context = getattr(problem, "ctx", None)
    path = getattr(context, "command_path", "mem")
    return _fail(UsageError(message[:1].lower() + message[1:].rstrip("."), hint=f"see `{path} --help`"))


def _bug(problem: BaseException) -> int:
    if os.environ.get("MEM_DEBUG"):
        from traceback import format_exception

        from memcli.text import visible

        with suppress(OSError):
            sys.stderr.write(visible("".join(format_exception(problem)), newlines=True))
    return _fail(
        MemError(
            f"mem met a case it does not know ({type(problem).__name__}: {problem})",
            hint="this is a bug; report it with what MEM_DEBUG=1 prints",
        )
    )


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives until the process ends


def _silence() -> int:
    """Leave quietly: whoever read our output has seen enough."""
    sys.stdout = _nowhere()
    return 0
