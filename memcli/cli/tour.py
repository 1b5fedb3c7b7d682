"""The guided tour: real commands on shipped transcripts, in a folder of its own, with their real output."""

import io
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from memcli import wire
from memcli.cli import main
from memcli.cli.asking import interruptible
from memcli.cli.door import note, printing, refuse, settings
from memcli.errors import NoSpace, UsageError
from memcli.facts import Json, Scalar

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "tour"
FILES = ("running.json", "flights.json")
DECISIONS = "decisions.jsonl"

BUG = 70
"""How the tour ends where a step that should have been refused was not."""

QUIT = frozenset("qQ\x03\x04\x1b")
"""Keys that end a tour that waits: q, control-C, control-D and escape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of the tour.

    Args:
        say: What it is for; stands before it.
        words: The command without `mem`; `{name}` is the id of the fact that `FACTS` knows by this name.
        code: The exit code that it must end with.
        into: The file that takes its output, as with `>` in a shell.
    """

    say: str
    words: tuple[str, ...]
    code: int = 0
    into: str | None = None


FACTS: Mapping[str, Scalar] = {"home": "Princeton", "user": "aarav_garcia_1177", "rival": "25:50"}
"""The value by which the tour finds each fact that its commands name."""

STEPS = (
    Step(
        say="A memory is one file. This one trusts what is written to it; without `direct` it would wait for review.",
        words=("init", "--admission", "direct"),
    ),
    Step(
        say="Two real conversations, one about running and one about a flight, are kept as evidence.",
        words=("import", *FILES),
    ),
    Step(
        say="Built-in rules read facts in what the user said; no model is asked. One fact is held: it contradicts "
        "another one that counts as much.",
        words=("extract", "--actor", "agent"),
    ),
    Step(say="This is what an agent would be told now. What is held is not among it.", words=("show",)),
    Step(say="Every fact leads to the message it came from.", words=("why", "{home}")),
    Step(
        say="What waits for a decision can be decided in the terminal with `mem review`, or by a script: a file with "
        "one line for each item …",
        words=("review", "export"),
        into=DECISIONS,
    ),
    Step(
        say='… in which the script writes "accept" behind "decision": the newer time is the right one. It goes by '
        "another name than who offered the fact, for nobody accepts an offer of their own.",
        words=("review", "apply", DECISIONS, "--actor", "coach"),
    ),
    Step(
        say="The world changes. A correction closes the old version and keeps it for the time it was held.",
        words=("correct", "{home}", "the user lives in Hoboken", "--reason", "moved in June"),
    ),
    Step(
        say="Something must never come back. First look at what would be hit.",
        words=("tombstone", "{user}", "--dry-run"),
    ),
    Step(say="Then do it.", words=("tombstone", "{user}", "--reason", "belongs to somebody else")),
    Step(
        say="From now on that value is refused, in other spellings too.",
        words=("add", "The user  ID is AARAV_GARCIA_1177."),
        code=3,
    ),
    Step(say="The same conversation arrives again. Nothing of it is new …", words=("import", "flights.json")),
    Step(
        say="… and reading all of it again brings back neither the rejected ID nor the corrected home.",
        words=("extract", "--all", "--actor", "agent"),
    ),
    Step(
        say="A prompt gets what is believed, fenced as data, within a budget, and you are told what was left out.",
        words=("context", "what is the personal best time?", "--budget", "60"),
    ),
    Step(say="Every change and every refusal is in the log.", words=("log",)),
    Step(say="The log is a chain of hashes that shows tampering …", words=("log", "verify")),
    Step(say="… and the file as a whole can be checked.", words=("check",)),
)
"""The tour, in order."""


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command()(tour)


def tour(
    pause: Annotated[bool, typer.Option("--pause", help="Wait for a key before each command.")] = False,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="DIR", help="Work in this new folder, and leave it there.")
    ] = None,
) -> None:
    """Show what mem does on two shipped conversations: each command and its real output, in a temporary file.

    Exit codes: 0 every command ended as it should, 2 the folder is in use, 14 no folder can be made; otherwise that of
    the command that did not, or 70 where it should have been refused.
    """
    with _folder(keep) as folder, _alone(folder):
        _say(f"Each line that begins with $ is run now, in {folder if keep else 'a temporary folder'}; what follows")
        _say("it is what it prints. Nothing of yours is touched.")
        waits = pause and sys.stdin.isatty() and sys.stdout.isatty()
        facts: dict[str, str] = {}
        for number, step in enumerate(STEPS, start=1):
            _heading(number, step.say)
            if waits and not _go_on():
                return
            facts = facts or _facts(step)
            _take(step, facts)
    _farewell(keep)


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """Make a folder with the transcripts in it; without a name it goes away afterwards.

    Raises:
        UsageError: Something is in the folder already.
        NoSpace: It cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix="mem-tour-")) if keep is None else Path(keep).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            refuse(f"{keep} is not empty", "name a folder that is not there yet")
        for name in FILES:
            shutil.copyfile(TRANSCRIPTS / name, folder / name)
    except FileExistsError:
        raise UsageError(f"{keep} is no folder", hint="name a folder that is not there yet") from None
    except OSError as error:
        where = keep or "a temporary folder"
        raise NoSpace(f"{where} cannot be used: {error.strerror}", hint="name another one with --keep") from None
    try:
        yield folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Stand in the folder, without what the environment tells mem, and put everything back afterwards."""
    environment = dict(os.environ)
    words, colour, as_json = settings.words, settings.colour, settings.as_json
    for name in environment:
        if name.startswith("MEM_"):
            del os.environ[name]
    os.environ["PAGER"] = ""  # the tour is one text; a pager would cut it into many
    if not (colour and sys.stdout.isatty()):
        os.environ["NO_COLOR"] = "1"
    try:
        with chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        settings.words, settings.colour, settings.as_json = words, colour, as_json


class _Terminal(io.TextIOWrapper):
    """Takes what a command prints, and passes for a terminal, so that it gets the screens of one."""

    def __init__(self) -> None:
        self._taken = io.BytesIO()
        super().__init__(self._taken, encoding=sys.stdout.encoding or "utf-8", errors="backslashreplace", newline="\n")

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        """Return what was printed."""
        self.flush()
        return self._taken.getvalue().decode(self.encoding)


def _take(step: Step, facts: Mapping[str, str]) -> None:
    """Run one command in front of the reader.

    Raises:
        typer.Exit: It ended with another exit code than it should.
    """
    words = [word.format_map(facts) for word in step.words]
    command = f"mem {shlex.join(words)}" + ("" if step.into is None else f" > {step.into}")
    _say(f"$ {command}", style="heading")
    code, shown = _run(words, into=step.into)
    with printing():
        sys.stdout.write(shown)
    if code:
        _say(f"exit {code}", style="dim")
    if code != step.code:
        note(f"the tour stops here: `{command}` ended with exit code {code}, not {step.code}")
        raise typer.Exit(code or BUG)
    if step.into == DECISIONS:
        _decide(Path(DECISIONS))


def _run(words: Sequence[str], *, into: str | None = None) -> tuple[int, str]:
    """Return the exit code of a command and what it printed, both streams as they came."""
    terminal, typed = _Terminal(), sys.stdin
    # With nobody at the other end every run acts as a script and ends alike, wherever the tour is taken.
    sys.stdin = io.StringIO()
    try:
        with redirect_stdout(terminal), redirect_stderr(terminal):
            if into is None:
                code = main(words)
            else:
                with Path(into).open("w", encoding="utf-8") as file, redirect_stdout(file):
                    code = main(words)
        return code, terminal.text()
    finally:
        sys.stdin = typed


def _facts(step: Step) -> dict[str, str]:
    """Return the short ids of the facts that the tour names, once a command names one."""
    if not any("{" in word for word in step.words):
        return {}
    from memcli.cli.door import store
    from memcli.facts import FactQuery
    from memcli.terms import State

    with store(None) as mem:
        found = {fact.value: fact.id for fact in mem.facts(FactQuery(states=frozenset(State)))}
        short = mem.short_ids(found.values())
    return {name: short[found[value]] for name, value in FACTS.items()}


def _decide(file: Path) -> None:
    """Write a decision behind each item of a decisions file, as a script would."""
    items: list[Json] = [wire.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    decided = [{**item, "decision": "accept"} for item in items if isinstance(item, dict)]
    file.write_text("".join(wire.dumps(item) + "\n" for item in decided), encoding="utf-8")


def _heading(number: int, text: str) -> None:
    _say("")
    place = f"{number}/{len(STEPS)}  "
    _say(place + text, hang=len(place))


def _say(text: str, *, style: str = "", hang: int = 0) -> None:
    from memcli.render.layout import Page, Screen
    from memcli.render.terminal import print_screen, screen_width
    from memcli.text import visible

    if style == "heading":  # a command stays on one line, so that it can be copied
        screen = Screen(lines=(((visible(text), style),),))
    else:
        page = Page(min(screen_width(), 80))
        page.line((text, style), hang=hang)
        screen = page.screen()
    with printing():
        print_screen(screen, colour=settings.colour and not os.environ.get("NO_COLOR"), page=False)


def _go_on() -> bool:
    """Wait for a key; return False where it asks to end."""
    typer.echo("-- any key goes on, q ends --", nl=False, err=True)
    with interruptible():
        key = typer.getchar()
    typer.echo("\r\x1b[K", nl=False, err=True)
    return key not in QUIT


def _farewell(keep: str | None) -> None:
    _say("")
    if keep is None:
        _say("The folder is gone again; `mem tour --keep DIR` would leave it for you to look at.")
    else:
        _say("The file is still there. Go on in it:")
        _say(f"$ cd {shlex.quote(keep)} && mem show --all-states", style="heading")
    _say("Your own: `mem init`, `mem import chat.json`, `mem extract`, `mem review`. All commands: `mem --help`.")
