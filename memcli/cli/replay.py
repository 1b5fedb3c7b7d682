"""`mem tx replay`: cases of transactions, each run in a scratch file."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire, wire_tx
from memcli.cli import findings as forms
from memcli.cli.door import Answer
from memcli.cli.findings import OutputFormat
from memcli.cli.given import read_text
from memcli.cli.options import AsJson, AsJsonl
from memcli.cli.outfile import OutFile
from memcli.errors import NoSpace, Unreadable, UsageError
from memcli.facts import Observed
from memcli.terms import Profile
from memcli.transactions.replay import Baseline, CaseResult

if TYPE_CHECKING:
    from memcli.render.layout import Screen


def replay(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Cases, one JSON object a line; `-` is standard input.")
    ],
    tools: Annotated[
        str | None, typer.Option("--tools", metavar="FILE", help="A JSON object: each tool and what it is.")
    ] = None,
    profile: Annotated[
        Profile, typer.Option("--profile", help="Which rules of the gate: all, or the two published ones.")
    ] = Profile.STRICT,
    baseline: Annotated[
        Baseline | None, typer.Option("--baseline", help="Run on a memory that lacks something, to see cases fail.")
    ] = None,
    junit: Annotated[
        str | None, typer.Option("--junit", metavar="FILE", help="Also write a JUnit report to this file.")
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 even where a case failed.")] = False,
    output_format: OutputFormat = "text",
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Run cases of transactions, gate and cascade, each in a scratch file, and say where each first differs.

    Exit codes: 0 all pass, 1 one failed, 2 usage, 5 a file holds no cases or no tools, 14 no room for a scratch file.
    """
    form = forms.form(output_format, as_json=as_json, as_jsonl=as_jsonl)
    known = {} if tools is None else _tools(tools)
    place = None if junit is None else OutFile(junit, force=True, option="--junit")
    results = _replayed(files, known, profile, baseline)
    observed = [_observed(path, case) for path, case in results]
    if place is not None:
        from memcli.render.reports import report

        place.write_text(report("junit", observed, title="mem tx replay", clean="all cases pass"))
    answer = _results(files, results, profile, baseline)
    forms.emit_found(answer, lambda: observed, form, title="mem tx replay", clean="all cases pass")
    if not exit_zero and not all(case.passed for _, case in results):
        raise typer.Exit(1)


def _replayed(
    files: Sequence[str], tools: Mapping[str, str], profile: Profile, baseline: Baseline | None
) -> list[tuple[str, CaseResult]]:
    from memcli.store.scratch import scratch
    from memcli.transactions.replay import replay as run

    texts = [(path, read_text(path, hint="give one case a line")) for path in files]
    results: list[tuple[str, CaseResult]] = []
    for path, text in texts:
        try:
            cases = run(text.split("\n"), scratch=scratch, tools=tools, profile=profile, baseline=baseline, path=path)
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise NoSpace(f"no scratch file can be made: {why}", hint="name another folder in TMPDIR") from problem
        if not cases:
            raise Unreadable(path, "there is no case in it", hint="give one case a line")
        results += [(path, case) for case in cases]
    return results


def _tools(path: str) -> dict[str, str]:
    from memcli.transactions.settings import read_tool

    try:
        document = wire.loads(read_text(path, hint="give a JSON object"))
        if not isinstance(document, dict):
            raise UsageError("tools are a JSON object", hint='try {"refund": "irreversible"}')
        for name, value in document.items():
            if not isinstance(value, str):
                raise UsageError(f"tool {name} is no text", hint='try {"refund": "irreversible"}')
            read_tool(value)
    except UsageError as problem:
        raise Unreadable(path, problem.message, hint=problem.hint) from None
    return {name: str(value) for name, value in document.items()}


def _results(
    files: Sequence[str], results: Sequence[tuple[str, CaseResult]], profile: Profile, baseline: Baseline | None
) -> Answer:
    documents = [wire_tx.case(path, case) for path, case in results]
    passed = sum(case.passed for _, case in results)

    def screen(width: int) -> "Screen":
        from memcli.render.transactions import replay_screen

        return replay_screen(results, width=width)

    return Answer(
        document=lambda: {
            "files": list(files),
            "profile": str(profile),
            "baseline": None if baseline is None else str(baseline),
            "passed": passed,
            "failed": len(results) - passed,
            "cases": list(documents),
        },
        lines=lambda: iter(documents),
        screen=screen,
        page=True,
    )


def _observed(path: str, case: CaseResult) -> Observed:
    differs = f"step {case.step} ({case.op}): expected {wire.dumps(case.expected)}, came {wire.dumps(case.got)}"
    return Observed(
        code=case.id, place="", message=case.title if case.passed else differs, passed=case.passed, path=path
    )
