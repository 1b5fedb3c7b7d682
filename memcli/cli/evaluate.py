"""`mem eval`: golden cases on the paths that an agent uses. Each command: options, one call, one answer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from memcli.cli import findings as forms
from memcli.cli.door import Answer, actor, bound_scope, refuse, store
from memcli.cli.findings import OutputFormat
from memcli.cli.options import AsJson, AsJsonl, Db, K, Scope, Timeout, whole
from memcli.errors import NoSpace
from memcli.facts import Observed
from memcli.terms import DEFAULT_SCOPE, Admission

if TYPE_CHECKING:
    from memcli.evals import Outcome, Tools
    from memcli.store import Store


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    group = typer.Typer(
        help="Ask golden cases, and judge what comes back.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command()(run)
    app.add_typer(group, name="eval")


def run(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Cases, in TOML or JSON Lines; `-` is standard input."),
    ] = None,
    answerer: Annotated[
        str | None, typer.Option("--answerer", metavar="CMD", help="A program that reads JSON and prints an answer.")
    ] = None,
    timeout: Annotated[float, Timeout] = 60.0,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", parser=whole("--repeat", least=1), help="Timed runs of each case.")
    ] = 1,
    k: Annotated[int, K] = 10,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="TOKENS", parser=whole("--budget", least=0), help="Tokens of the block."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None, typer.Option("--compare", metavar="A B", help="Ask two memory files the same cases.")
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even where a case did not pass.")] = False,
    output_format: OutputFormat = "text",
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Ask golden cases of a memory and judge what recall, the block and slots give; nothing is written to it.

    What a case says itself comes before the options. Exit codes: 0 all pass, 1 one failed or was unexercised, 2 usage,
    3 the scope is another than MEM_SCOPE, 5 a case file, a transcript or an answer could not be read, 10 to 14 a memory
    file cannot be used.
    """
    from memcli.evals import Answerer, Defaults, read_cases, run_cases
    from memcli.render.progress import counting

    form = forms.form(output_format, as_json=as_json, as_jsonl=as_jsonl)
    if not files:
        refuse("eval run needs a file of cases", "name one in TOML or JSON Lines, or `-` for standard input")
    if compare is not None and db is not None:
        refuse("--compare and --db exclude each other", "name the two memory files with --compare A B")
    cases = read_cases(files or [])
    defaults = Defaults(k=k, budget_tokens=budget, repeat=repeat)
    asked = None if answerer is None else Answerer(answerer, timeout_s=timeout)
    with counting() as progress:
        runs = [
            run_cases(cases, _tools(db, scope), defaults, answerer=asked, db=memory, progress=progress)
            for memory in compare or (None,)
        ]
    answer = _answer(files or [], runs[0]) if compare is None else _compared(files or [], runs[0], runs[1], compare)
    outcomes = [outcome for one in runs for outcome in one]
    forms.emit_found(answer, lambda: _observed(outcomes), form, title="mem eval run", clean="all cases pass")
    if not exit_zero and not all(_passed(outcome) for outcome in outcomes):
        raise typer.Exit(1)


def _tools(db: str | None, scope: str | None) -> "Tools":
    from memcli import tokens
    from memcli.evals import Tools

    def opened(path: str | None, wanted: str | None) -> "Store":
        return store(path if path is not None else db, wanted if wanted is not None else scope)

    @contextmanager
    def scratch(wanted: str | None) -> "Iterator[Store]":
        with _made(wanted if wanted is not None else scope) as mem:
            yield mem

    return Tools(open=opened, scratch=scratch, counter=tokens.counter)


@contextmanager
def _made(scope: str | None) -> "Iterator[Store]":
    """Give an empty memory that trusts what is written to it; it is gone afterwards.

    Raises:
        UsageError, OutOfScope: The scope is no name, or not the one this process is bound to.
        NoSpace: There is no room for it.
    """
    from memcli.store import create

    try:
        folder = TemporaryDirectory(prefix="mem-eval-", ignore_cleanup_errors=True)
    except OSError as problem:
        raise NoSpace(
            f"no temporary folder can be made: {(problem.strerror or str(problem)).lower()}", hint="name one in TMPDIR"
        ) from None
    with folder:
        path = Path(folder.name) / "memory.db"
        bound = bound_scope()
        wanted = scope if scope is not None else bound if bound is not None else DEFAULT_SCOPE
        create(path, actor=actor(None), admission=Admission.DIRECT, scope=wanted)
        with store(str(path), scope) as mem:
            yield mem


def _answer(files: Sequence[str], outcomes: "Sequence[Outcome]") -> Answer:
    from memcli import wire_eval
    from memcli.evals import measure
    from memcli.render.evals import eval_screen

    measures = measure(outcomes)
    return Answer(
        document=lambda: wire_eval.document(files, outcomes, measures),
        lines=lambda: wire_eval.lines(outcomes, measures),
        screen=lambda width: eval_screen(outcomes, measures, width=width),
        page=True,
    )


def _compared(
    files: Sequence[str], first: "Sequence[Outcome]", second: "Sequence[Outcome]", names: tuple[str, str]
) -> Answer:
    from memcli import wire_eval
    from memcli.evals import measure, pair
    from memcli.render.evals import compare_screen

    one, other, paired = measure(first), measure(second), pair(first, second)
    compared = wire_eval.comparison(paired, one, other, a=names[0], b=names[1])
    both = [*first, *second]
    return Answer(
        document=lambda: wire_eval.document(files, both, one, compared),
        lines=lambda: wire_eval.lines(both, one, compared),
        screen=lambda width: compare_screen(first, second, paired, (one, other), a=names[0], b=names[1], width=width),
        page=True,
    )


def _passed(outcome: "Outcome") -> bool:
    from memcli.evals import Verdict

    return outcome.judged.verdict is Verdict.PASS


def _observed(outcomes: "Sequence[Outcome]") -> list[Observed]:
    from memcli.evals import Verdict, reasons

    several = len({outcome.db for outcome in outcomes}) > 1
    return [
        Observed(
            code=outcome.case.id,
            place=outcome.db or "" if several else "",
            message="; ".join(reasons(outcome.judged)),
            level="warning" if outcome.judged.verdict is Verdict.UNEXERCISED else "error",
            passed=outcome.judged.verdict is Verdict.PASS,
            skipped=outcome.judged.verdict is Verdict.UNEXERCISED,
            path=outcome.case.path,
            line=outcome.case.line,
            seconds=outcome.seconds,
        )
        for outcome in outcomes
    ]
