"""The review: one key for each decision at a terminal; a list, a file of decisions and a check for scripts."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.cli import findings as forms
from memcli.cli.asking import interruptible
from memcli.cli.door import Answer, actor, ask_reason, at_terminal, emit, note, refuse, settings, store
from memcli.cli.findings import FORMATS
from memcli.cli.options import AsJson, AsJsonl, Db, Limit, Reason, Scope, Who
from memcli.clock import parse_age
from memcli.errors import Interrupted, MemError, NoSpace, Refused, Unreadable, UsageError
from memcli.facts import ErasePlan, Fact, Finding, Json, Observed, QueueItem, QueueQuery, Scalar, TombstonePlan
from memcli.review import Answer as Said
from memcli.review import Applied, Decided, Outcome, ReviewSession, Turn, applied_document, apply, blank, go_through
from memcli.terms import Channel, Decision, Op, State
from memcli.text import check_typed, visible

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.queue import Queue
    from memcli.store.store import Store

_CHOICES = 9

States = Annotated[
    list[str] | None, typer.Option("--state", metavar="STATE", help="Only facts in this state; repeatable.")
]
FromSource = Annotated[str | None, typer.Option("--source", metavar="S", help="Only what came from this source.")]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="AGE", help="Only what has waited longer, such as 2d or 3h.")
]
NewerThan = Annotated[str | None, typer.Option("--newer-than", metavar="AGE", help="Only what came since, such as 2d.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    group = typer.Typer(invoke_without_command=True, no_args_is_help=False, rich_markup_mode=None)
    group.callback()(review)
    for name, command in (("list", listing), ("export", export), ("apply", apply_file)):
        group.command(name)(command)
    app.add_typer(group, name="review", help=review.__doc__)


def review(
    ctx: typer.Context,
    state: States = None,
    source: FromSource = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    limit: Limit = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether something waits; exit 1 if so.")] = False,
    output_format: Annotated[
        str | None, typer.Option("--output-format", metavar="FORMAT", help="Of --check: " + ", ".join(FORMATS) + ".")
    ] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="With --check: exit 0 even where something waits.")
    ] = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Go through what waits for a person, oldest first, with one key for each decision; what was decided is kept.

    Exit codes: 0 done or nothing waits, 1 something waits (--check), 2 this is no terminal, 10 to 14 the file cannot be
    used, 130 interrupted.
    """
    if ctx.invoked_subcommand is not None:
        if any(ctx.params.values()):
            refuse(f"options of review {ctx.invoked_subcommand} stand behind it", "move them to the end of the line")
        return
    form = forms.form(output_format or "text", as_json=as_json, as_jsonl=as_jsonl)
    if not check and (form != "text" or output_format or exit_zero):
        refuse("an output format and --exit-zero belong to --check", "list what waits with `mem review list --json`")
    if not check and not at_terminal():
        refuse(
            "mem review asks a person at a terminal, and this is none",
            "use `mem review list`, `mem review export`, `mem review apply FILE` or `mem review --check`",
        )
    with store(db, scope) as mem:
        queue = _queue(mem, state, source, older_than, newer_than, limit)
        if not check:
            _go(ReviewSession(queue, actor(who), ask_reason(Op.ACCEPT, reason)))
        elif _found(queue, form) and not exit_zero:
            raise typer.Exit(1)


def _queue(
    mem: "Store",
    states: Sequence[str] | None,
    source: str | None,
    older_than: str | None,
    newer_than: str | None,
    limit: int | None,
) -> "Queue":
    from memcli.store.queue import Queue

    for name in states or ():
        if name not in set(State):
            refuse(f"{name} is no state", "one of: " + ", ".join(State))
    now = mem.now()
    query = QueueQuery(
        states=frozenset(State(name) for name in states) if states else None,
        source=source,
        older_than=None if older_than is None else now - parse_age(older_than),
        newer_than=None if newer_than is None else now - parse_age(newer_than),
        limit=limit or None,
    )
    return Queue(mem, query)


# -------------------------------------------------------------------- for scripts


def listing(
    state: States = None,
    source: FromSource = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    limit: Limit = None,
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List what waits, oldest first; with --json each item with its evidence and all that it meets.

    Exit codes: 0 done, also where nothing waits, 4 no such source, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        queue = _queue(mem, state, source, older_than, newer_than, limit)
        emit(_list(mem, queue), as_json=as_json, as_jsonl=as_jsonl)


def _list(mem: "Store", queue: "Queue") -> Answer:
    from memcli.render.review import queue_rows, queue_screen

    def screen(width: int) -> "Screen":
        found = list(queue.outlines())
        return queue_screen(found, now=mem.now(), short_ids=_short(mem, (entry.id for entry, _ in found)), width=width)

    return Answer(
        document=lambda: [wire.queue_item(item) for item in queue],
        lines=lambda: (wire.queue_item(item) for item in queue),
        rows=lambda: (
            row for entry, fact in queue.outlines() for row in queue_rows([(entry, fact)], _short(mem, [entry.id]))
        ),
        screen=screen,
        page=True,
    )


def _short(mem: "Store", names: Iterable[str]) -> dict[str, str]:
    """Return the short forms of the ids of facts; those of proposals and tombstones are short."""
    return mem.short_ids(name for name in names if name[:1] not in ("p", "t"))


def export(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="A new file [standard output].")
    ] = None,
    state: States = None,
    source: FromSource = None,
    older_than: OlderThan = None,
    newer_than: NewerThan = None,
    limit: Limit = None,
    db: Db = None,
    scope: Scope = None,
) -> None:
    """Write what waits as a file to fill in: a line of JSON for each item, with a decision that is null.

    A decision is accept, verify, edit (with text), reject, retract, keep-both, merge (with into), dispute or skip;
    edit, reject and retract need a reason. Exit codes: 0 done, 2 the file is there already, 10 to 14 a file cannot be
    used.
    """
    with store(db, scope) as mem:
        queue = _queue(mem, state, source, older_than, newer_than, limit)
        lines = (wire.dumps(blank(item)) + "\n" for item in queue)
        if output is None or output == "-":
            sys.stdout.writelines(lines)
            return
        count = _write_new(output, lines)
    note(f"{count} items · fill in their decisions, then run mem review apply {output}")


def _write_new(path: str, lines: Iterable[str]) -> int:
    """Write a file that is not there yet and return its number of lines; decisions in an older one are not lost."""
    count = 0
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as stream:  # noqa: PTH123  # as it was named
            for line in lines:
                stream.write(line)
                count += 1
    except FileExistsError:
        refuse(f"{path} exists already, and may hold decisions", "name another file with --output")
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise NoSpace(f"{path} cannot be written: {why}", hint="check its folder") from problem
    return count


def apply_file(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A file of decisions; `-` is standard input.")],
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Make the decisions of a file, each by itself; safe to run again: what is done is not done twice.

    A line about what changed since it was exported is refused, and so is accepting what the same actor offered.
    --reason stands in where a line gives none. Exit codes: 0 every line is applied or was already, 3 a line was
    refused, 5 a line could not be read (the others are applied), 10 to 14 the memory file cannot be used.
    """
    from memcli.render.review import applied_rows, applied_screen
    from memcli.store.queue import Queue

    by, why = actor(who, channel=Channel.DECISIONS), ask_reason(Op.ACCEPT, reason)
    lines = _lines(path)
    with store(db, scope) as mem:
        found = list(apply(ReviewSession(Queue(mem), by, why), lines, path))
        names = [line.id for line in found if line.id is not None]
        short = _short(mem, names)
    emit(
        Answer(
            document=lambda: [applied_document(line) for line in found],
            rows=lambda: applied_rows(found),
            screen=lambda width: applied_screen(found, short_ids=short, width=width),
            page=True,
        ),
        as_json=as_json,
        as_jsonl=as_jsonl,
    )
    sys.stdout.flush()
    _complain(found)


def _lines(path: str) -> list[bytes]:
    """Return the lines of a decisions file.

    Raises:
        Unreadable: It cannot be opened, or there is no standard input.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise Unreadable("standard input", "there is none", hint="name a file")
            return sys.stdin.buffer.read().splitlines()
        with open(path, "rb") as stream:  # noqa: PTH123  # as it was named
            return stream.read().splitlines()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise Unreadable(path, why.lower(), hint="make one with `mem review export --output FILE`") from problem


def _complain(found: Sequence[Applied]) -> None:
    """Raise what the exit code says of a file of which not every line was applied."""
    unread = [line for line in found if line.outcome is Outcome.UNREADABLE]
    if unread and isinstance(unread[0].problem, Unreadable):
        first = unread[0].problem
        raise Unreadable(
            first.path, first.why, line=first.line, hint="the other lines are applied; mend this one and run it again"
        )
    refused = sum(line.outcome is Outcome.REFUSED for line in found)
    if refused:
        raise Refused(
            f"{refused} of {len(found)} lines {'was' if refused == 1 else 'were'} refused",
            hint="look at what waits now with `mem review list`",
        )


def _found(queue: "Queue", form: str) -> bool:
    """Print what waits in the form of findings, and return whether something does."""
    from memcli.render.review import NOTHING_WAITS, waiting_line

    if form == "text":
        emit(Answer(document=list, screen=waiting_line(Counter(entry.why for entry in queue.entries))))
        return len(queue) > 0
    findings = [
        Finding(code=entry.why.value, place=entry.id, message=_message(fact)) for entry, fact in queue.outlines()
    ]
    path = str(queue.store.path)
    observed = [Observed(code=item.code, place=item.place, message=item.message, path=path) for item in findings]
    answer = Answer(document=lambda: [wire.finding(item) for item in findings], screen="")
    forms.emit_found(answer, lambda: observed, form, title="mem review --check", clean=NOTHING_WAITS)
    return bool(findings)


def _message(fact: Fact | None) -> str:
    return "a proposal about no fact" if fact is None else fact.text


# -------------------------------------------------------------------- at a terminal


def _go(session: ReviewSession) -> None:
    """Lead a person through the queue, and say at the end what was done, however it ends."""
    from memcli.render.review import NOTHING_WAITS

    total = len(session.queue)
    if not total:
        emit(Answer(document=list, screen=NOTHING_WAITS))
        return
    person = _Person(session)
    try:
        go_through(session, person)
    except KeyboardInterrupt:
        typer.echo()
        person.sum_up(total)
        raise Interrupted("stopped; what was decided is kept", hint="go on with `mem review`") from None
    person.sum_up(total)


class _Person:
    """Asks a person at a terminal. Nothing typed before a question stood there answers it."""

    def __init__(self, session: ReviewSession) -> None:
        self._session = session
        self._mem = session.queue.store

    def answer(self, item: QueueItem, *, position: int, total: int) -> Said:
        """Show an item until a key decides it, leaves it or ends the review."""
        while True:
            self._show_item(item, position, total)
            answer = self._ask(item, f"decide ({position}/{total}): ")
            if answer is not None:
                return answer

    def hear(self, told: Decided | MemError, *, undone: bool = False) -> None:
        """Say in one line what came of an answer."""
        from memcli.render.review import decided_line
        from memcli.render.words import error_lines

        if isinstance(told, MemError):
            typer.echo(error_lines(told))
            return
        ids = [told.item.id, *([told.fact.id] if told.fact is not None else [])]
        typer.echo(decided_line(told, short_ids=_short(self._mem, ids), undone=undone))

    def sum_up(self, total: int) -> None:
        """Say how much was decided, and how much is left."""
        from memcli.render.review import summary_screen
        from memcli.render.terminal import screen_width

        self._print(summary_screen(self._session.decided, total=total, width=screen_width()))

    def _show_item(self, item: QueueItem, position: int, total: int) -> None:
        from memcli.render.review import queue_item_screen
        from memcli.render.terminal import screen_width

        facts = [] if item.fact is None else [item.fact]
        ids = [fact.id for fact in (*facts, *item.conflicts)] + [other.id for other in item.similar]
        screen = queue_item_screen(
            item,
            position=position,
            total=total,
            now=self._mem.now(),
            short_ids=_short(self._mem, ids),
            width=screen_width(),
        )
        typer.echo()
        self._print(screen)

    def _print(self, screen: "Screen") -> None:
        from memcli.render.terminal import print_screen

        print_screen(screen, colour=settings.colour, page=False)

    def _ask(self, item: QueueItem, question: str) -> Said | None:
        """Return what a key says, or None where the item should be shown again."""
        from memcli.render.review import help_screen, keys_of
        from memcli.render.terminal import screen_width

        try:
            key = _read_key(question)
        except EOFError:
            return Said(say=Turn.QUIT)
        word = keys_of(item).get(key)
        typer.echo("" if word is None else word.replace("-", " "))
        if word in set(Turn):
            return Said(say=Turn(word or ""))
        if word in set(Decision):
            return self._completed_or_left(item, Decision(word or ""))
        if word is not None:
            self._print(help_screen(width=screen_width()))
        elif key.strip():
            typer.echo("no such key here; ? lists them")
        return None

    def _completed_or_left(self, item: QueueItem, decision: Decision) -> Said | None:
        try:
            return self._completed(item, decision)
        except EOFError:
            typer.echo()
        except MemError as problem:
            self.hear(problem)
        return None

    def _completed(self, item: QueueItem, decision: Decision) -> Said | None:
        """Return a decision with all that it needs, asked for where it has to be."""
        if decision is Decision.MERGE:
            into = self._choose(item)
            return None if into is None else Said(say=decision, into=into)
        if decision is Decision.EDIT and item.fact is not None:
            return self._edited(item.fact)
        if item.proposal is not None and decision is Decision.ACCEPT:
            return Said(say=decision) if self._sure(item) else None
        if decision is Decision.REJECT:
            self._show_plan(item)
        if decision in (Decision.REJECT, Decision.RETRACT):
            reason = self._reason(needed=item.proposal is None)
            return None if reason is None else Said(say=decision, reason=reason)
        return Said(say=decision)

    def _edited(self, fact: Fact) -> Said | None:
        from memcli.store.believe import slot_value

        text = _read_line("text: ", fact.text).strip()
        if not text or text == fact.text:
            typer.echo("nothing changed")
            return None
        text = check_typed(text, what="the text")
        value: Scalar = None
        if fact.slot is not None:
            value = _value(
                _read_line(f"{visible(fact.attribute or '')}: ", _spoken(slot_value(fact, text))), fact.value
            )
        reason = self._reason(needed=True)
        return None if reason is None else Said(say=Decision.EDIT, text=text, value=value, reason=reason)

    def _reason(self, *, needed: bool) -> str | None:
        """Return why, or None where a reason is needed and none was typed; Enter takes the one that --reason gave."""
        given = self._session.reason
        hint = f" [{visible(given)}]" if given else "" if needed else " [none]"
        typed = _read_line(f"reason{hint}: ").strip()
        if typed:
            return check_typed(typed, what="the reason")
        if given or not needed:
            return given or ""
        typer.echo("no reason, so nothing changed")
        return None

    def _choose(self, item: QueueItem) -> str | None:
        from memcli.render.review import choice_screen
        from memcli.render.terminal import screen_width
        from memcli.review import mergeable

        names = mergeable(item)[:_CHOICES]
        if not names:
            typer.echo("nothing is shown that it could be merged into")
            return None
        if len(names) == 1:
            return names[0]
        self._print(choice_screen(item, names, short_ids=_short(self._mem, names), width=screen_width()))
        key = _read_key("into: ")
        typer.echo(visible(key))
        return names[int(key) - 1] if key in {str(digit) for digit in range(1, len(names) + 1)} else None

    def _sure(self, item: QueueItem) -> bool:
        """Show what a proposal would stop or erase, and return whether a person wants that."""
        if not self._show_plan(item):
            return True
        key = _read_key("accept this? y/n: ")
        typer.echo(visible(key))
        return key == "y"

    def _show_plan(self, item: QueueItem) -> bool:
        from memcli.render.review import plan_screen
        from memcli.render.terminal import screen_width

        plan = (
            self._session.plan(item) if item.proposal is None or item.proposal.op in (Op.TOMBSTONE, Op.ERASE) else None
        )
        if plan is None:
            return False
        self._print(plan_screen(plan, short_ids=_short(self._mem, _named(plan)), width=screen_width()))
        return True


def _named(plan: TombstonePlan | ErasePlan) -> list[str]:
    if isinstance(plan, TombstonePlan):
        return [fact.id for fact in (*plan.hits, *plan.falls)] + [near.id for near in plan.near]
    return [fact.id for fact in (*plan.facts, *plan.falls, *plan.reviewed)]


def _spoken(value: Scalar) -> str:
    from memcli.render.words import spoken

    return spoken(value)


def _value(typed: str, old: Scalar) -> Scalar:
    """Return what was typed for a slot: text where it held text, otherwise what the words read as."""
    said = check_typed(typed, what="the value")
    if isinstance(old, str):
        return said
    try:
        read: Json = wire.loads(said)
    except UsageError:
        return said
    return read if isinstance(read, bool | int | float) else said


def _read_key(question: str) -> str:
    """Return the one key that is pressed after the question stands there; empty where it was no single key.

    Raises:
        EOFError: The terminal is gone, or Ctrl-D was pressed.
    """
    try:
        import termios
        import tty
    except ImportError:  # no POSIX terminal
        typer.echo(question, nl=False)
        with interruptible():
            return _single(typer.getchar())
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)  # flushes what was typed ahead: it answers no question that had not been asked
        typer.echo(question, nl=False)
        sys.stdout.flush()
        with interruptible():
            typed = os.read(terminal, 32)
    except OSError:
        raise EOFError from None
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
    return _single(typed.decode("utf-8", "replace"))


def _single(typed: str) -> str:
    if typed in ("", "\x04"):
        raise EOFError
    return typed if len(typed) == 1 else ""


def _read_line(question: str, given: str = "") -> str:
    """Return a line that a person types, or edits where one is given and the terminal can.

    Raises:
        EOFError: Ctrl-D was pressed.
    """
    try:
        import readline
    except ImportError:
        with interruptible():
            return input(question)
    if visible(given) == given:
        readline.set_startup_hook(lambda: readline.insert_text(given))
    try:
        with interruptible():
            return input(question)
    finally:
        readline.set_startup_hook(None)
