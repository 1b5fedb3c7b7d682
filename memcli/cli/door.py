"""The doors between a command and the rest: `store()` to the file, `emit()` to the screen; and who is asking."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from memcli.errors import MemError, NoReason, NoSpace, OutOfScope, Unreadable, UsageError
from memcli.facts import Actor, Json
from memcli.record import record
from memcli.terms import EXPLAINED, ActorKind, Channel, Op

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store


class Settings:
    """What holds for the whole process: read once from the words and the environment."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.colour = True
        self.as_json = False

    def read(self, words: Sequence[str]) -> None:
        """Take the options that may stand anywhere, and keep the other words for the commands."""
        end = words.index("--") if "--" in words else len(words)
        head, tail = list(words[:end]), list(words[end:])
        self.colour = "--no-color" not in head and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.as_json = "--json" in head or "--jsonl" in head
        self.words = [word for word in head if word != "--no-color"] + tail


settings = Settings()


@record
class Answer:
    """What a command has to say, in every form it may be asked for; each form is made only when it is wanted.

    Args:
        document: The JSON document.
        screen: What a person sees, for a width in cells; or one line that fits every width.
        rows: Cells of a tab-separated listing for a pipe; None prints the screen there too.
        lines: Documents for `--jsonl`; None takes the elements of the document.
    """

    document: Callable[[], Json]
    screen: Callable[[int], "Screen | str"] | str
    rows: Callable[[], Iterable[Sequence[str]]] | None = None
    lines: Callable[[], Iterator[Json]] | None = None
    page: bool = False


@contextmanager
def printing() -> Iterator[None]:
    """Turn what a full disk says of our output into a sentence; a reader that has gone is none.

    Raises:
        NoSpace: The output cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise NoSpace(
            f"the answer cannot be printed: {(problem.strerror or str(problem)).lower()}",
            hint="what was asked for may be done all the same; look with `mem log`",
        ) from problem


def emit(answer: Answer, *, as_json: bool = False, as_jsonl: bool = False) -> None:
    """Print an answer in the form that was asked for and that the output can show.

    Raises:
        NoSpace: The output cannot be written.
    """
    with printing():
        _print(answer, as_json=as_json, as_jsonl=as_jsonl)


def _print(answer: Answer, *, as_json: bool, as_jsonl: bool) -> None:
    if as_json or as_jsonl:
        _print_json(answer, lines=as_jsonl)
        return
    if answer.rows is not None and not sys.stdout.isatty():
        from memcli.render.rows import tsv

        sys.stdout.writelines(tsv(answer.rows()))
        return
    from memcli.render.terminal import print_line, print_screen, screen_width

    shown = answer.screen if isinstance(answer.screen, str) else answer.screen(screen_width())
    if isinstance(shown, str):
        print_line(shown)
        return
    print_screen(shown, colour=settings.colour, page=answer.page)


def _print_json(answer: Answer, *, lines: bool) -> None:
    from memcli.wire import dumps

    if not lines:
        sys.stdout.write(dumps(answer.document()) + "\n")
        return
    if answer.lines is not None:
        sys.stdout.writelines(dumps(line) + "\n" for line in answer.lines())
        return
    document = answer.document()
    sys.stdout.writelines(dumps(line) + "\n" for line in (document if isinstance(document, list) else [document]))


def complain(problem: MemError) -> None:
    """Write an error to standard error: two lines for a person, one object with `--json`."""
    if settings.as_json:
        from memcli.wire import dumps, error

        sys.stderr.write(dumps(error(problem)) + "\n")
    else:
        from memcli.render.words import error_lines

        sys.stderr.write(error_lines(problem) + "\n")
    sys.stderr.flush()


def note(text: str) -> None:
    """Write one line to standard error that is no error."""
    from memcli.text import visible

    sys.stderr.write(visible(text) + "\n")


def read_text(given: str, *, what: str) -> str:
    """Return typed text as it may be stored; `-` stands for all of standard input.

    Args:
        what: What the text is for, as a noun that begins a sentence: "the text".

    Raises:
        UsageError: It cannot be stored as it is, or there is no standard input.
        Unreadable: Standard input holds bytes that are no text.
    """
    from memcli.text import check_typed

    if given != "-":
        return check_typed(given, what=what)
    if sys.stdin is None:
        raise UsageError("there is no standard input", hint="give the text itself instead of -")
    encoding = sys.stdin.encoding or "utf-8"
    try:
        text = sys.stdin.buffer.read().decode(encoding)
    except UnicodeDecodeError as problem:
        why = f"byte {problem.start + 1} is no {encoding.upper()}"
        raise Unreadable("standard input", why, hint="convert it, as with `iconv -t UTF-8`") from problem
    except OSError as problem:
        raise Unreadable("standard input", f"it cannot be read: {problem.strerror}", hint="give the text") from problem
    return check_typed(text.removeprefix("\ufeff"), what=what)


def database(given: str | None) -> str:
    """Return the path of the memory file: `--db`, else `$MEM_DB`, else `memory.db` here.

    Raises:
        UsageError: It is empty, or `-`.
    """
    path = given if given is not None else os.environ.get("MEM_DB", "memory.db")
    if not path or path == "-" or "\0" in path:
        raise UsageError("a memory file needs a path", hint="name one with --db FILE or MEM_DB")
    return path


def bound_scope() -> str | None:
    """Return the scope this process is bound to by `MEM_SCOPE`, or None.

    Raises:
        UsageError: It is set to what is no name.
    """
    name = os.environ.get("MEM_SCOPE")
    if name is None:
        return None
    from memcli.store.basics import checked_scope

    return checked_scope(name)


def store(db: str | None, scope: str | None = None, *, all_scopes: bool = False) -> "Store":
    """Return the memory file, opened to look at.

    Raises:
        MemError: It cannot be opened, or the scope may not be used.
    """
    from memcli.store import open_store

    bound = bound_scope()
    if all_scopes and bound is not None:
        raise OutOfScope(f"this process is bound to {bound} and may not see all scopes", hint="unset MEM_SCOPE")
    if all_scopes and scope is not None:
        raise UsageError("--scope and --all-scopes exclude each other", hint="leave one of them out")
    mem = open_store(database(db), scope=scope, bound=bound)
    if all_scopes:
        try:
            with mem.write(actor(None)) as write:
                write.event(Op.READ, None, reason="all scopes")
        except BaseException:
            mem.close()
            raise
    return mem


def at_terminal() -> bool:
    """Return whether a person sits at both ends."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):  # closed or missing streams
        return False


def actor(name: str | None, *, kind: ActorKind | None = None, channel: Channel | None = None) -> Actor:
    """Return who acts: a name that may be given, and a kind that is observed.

    Raises:
        UsageError: The name is blank or cannot be shown.
    """
    from memcli.text import check_typed

    person = at_terminal()
    return Actor(
        name=check_typed(name or os.environ.get("MEM_ACTOR") or _login(), what="the actor's name"),
        kind=kind or (ActorKind.HUMAN if person else ActorKind.SCRIPT),
        channel=channel or (Channel.TERMINAL if person else Channel.PIPE),
    )


def _login() -> str:
    for name in ("LOGNAME", "USER", "USERNAME"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return "unknown"


def ask_reason(op: Op, given: str | None) -> str | None:
    """Return the reason for a change; at a terminal it is asked for where it must be and was not given.

    Raises:
        NoReason: It must be given and is missing or blank.
        UsageError: It cannot be stored as it is.
    """
    from memcli.text import check_typed

    reason = given
    if reason is None and op in EXPLAINED and at_terminal():
        import typer

        from memcli.cli.asking import interruptible

        with interruptible():
            reason = typer.prompt("reason", default="", show_default=False, err=True)
    if reason is None or not reason.strip():
        if op in EXPLAINED:
            raise NoReason("this change needs a reason, and none was given", hint="say why with --reason TEXT")
        return None
    return check_typed(reason, what="the reason")


def confirmed(question: str, *, yes: bool) -> None:
    """Ask a person before something that cannot be taken back; anything but yes stops it.

    Raises:
        UsageError: The answer was no.
    """
    if yes or not at_terminal():
        return
    import typer

    from memcli.cli.asking import interruptible

    with interruptible():
        agreed = typer.confirm(question, err=True)
    if not agreed:
        raise UsageError("nothing changed", hint="answer y, or give --yes")


def refuse(message: str, hint: str) -> NoReturn:
    """Stop with a usage error."""
    raise UsageError(message, hint=hint)
