"""The JSON form of what an evaluation says. The key sets are a contract, as in `wire`; no number is NaN or infinite."""

from collections.abc import Iterator, Mapping, Sequence

from memcli.evals.judge import Check
from memcli.evals.measures import (
    ADAPTATION,
    Ablation,
    Latency,
    Measures,
    Paired,
    Scores,
    differences,
    latencies,
    mean,
    of_case,
    peaks,
)
from memcli.evals.outcome import Outcome, Spent, Task
from memcli.facts import Json


def document(
    files: Sequence[str], outcomes: Sequence[Outcome], measures: Measures, compared: Json = None
) -> dict[str, Json]:
    """Return a whole run.

    Args:
        outcomes: Where two memories were compared, those of the first and then those of the second.
        measures: Those of the first memory.
        compared: What `comparison` returns; None where one memory was asked.
    """
    return {
        "files": list(files),
        "cases": [outcome(item) for item in outcomes],
        "measures": measured(measures),
        "compare": compared,
    }


def lines(outcomes: Sequence[Outcome], measures: Measures, compared: Json = None) -> Iterator[Json]:
    """Yield a document for each case, and one for the measures of all."""
    yield from (outcome(item) for item in outcomes)
    yield {"measures": measured(measures), "compare": compared}


def outcome(o: Outcome) -> dict[str, Json]:
    """Return what became of one case."""
    spent = [item for item in (o.adapted, o.spent) if item is not None]
    return {
        "id": o.case.id,
        "verdict": o.judged.verdict.value,
        "path": o.case.path,
        "line": o.case.line,
        "db": o.db,
        "expected": [_present(check) for check in o.judged.expected],
        "forbidden": [
            {"text": check.text, "hit": bool(check.wrong), "where": list(check.wrong)} for check in o.judged.forbidden
        ],
        "controls": [_present(check) for check in o.judged.controls],
        "returned": list(o.returned),
        "tokens": o.tokens,
        "references": None
        if o.references is None
        else {**_scores(of_case(o.references)), "unreached": list(o.references.unreached)},
        "latency_ms": _latencies(spent),
        "peak_bytes": dict(peaks(spent)),
        "task": None if o.task is None else _task(o.task),
        "seconds": o.seconds,
    }


def _present(check: Check) -> Json:
    return {"text": check.text, "found": not check.wrong, "missing": list(check.wrong)}


def _latencies(spent: Sequence[Spent]) -> Json:
    return {name: {"median": item.median, "p95": item.p95} for name, item in latencies(spent).items()}


def _scores(s: Scores) -> dict[str, Json]:
    return {"precision": s.precision, "recall": s.recall, "f1": s.f1}


def _task(t: Task) -> Json:
    return {
        "with": t.given.verdict.value,
        "without": t.bare.verdict.value,
        "answer_with": t.answer,
        "answer_without": t.bare_answer,
    }


def measured(m: Measures) -> dict[str, Json]:
    """Return the measures of a run; what there was nothing to measure of is null."""
    right = m.correctness
    return {
        "correctness": {
            "cases": right.passed + right.failed + right.unexercised,
            "passed": right.passed,
            "failed": right.failed,
            "unexercised": right.unexercised,
            "rate": right.share.rate,
            "low": right.share.low,
            "high": right.share.high,
        },
        "references": _references(m),
        "forbidden": {"checked": m.forbidden, "hits": m.hits, "cases": m.hit_cases},
        "tokens": _tokens(m),
        "latency_ms": _timed(m.latency),
        "peak_bytes": dict(m.peak_bytes),
        "task": None if m.ablation is None else _ablation(m.ablation),
    }


def _references(m: Measures) -> Json:
    if m.micro is None or m.macro is None:
        return None
    return {"cases": m.referenced, "micro": _scores(m.micro), "macro": _scores(m.macro)}


def _tokens(m: Measures) -> Json:
    if not m.blocks:
        return None
    return {
        "encodings": list(m.encodings),
        "blocks": len(m.blocks),
        "mean": mean(m.blocks),
        "max": max(m.blocks),
        "total": sum(m.blocks),
    }


def _timed(latency: Mapping[str, Latency]) -> Json:
    return {
        name: {
            "phase": "adaptation" if name in ADAPTATION else "inference",
            "runs": item.runs,
            "median": item.median,
            "p95": item.p95,
        }
        for name, item in latency.items()
    }


def _ablation(a: Ablation) -> Json:
    return {
        "judged": "answers" if a.by_answers else "blocks",
        "cases": a.cases,
        "with": a.given / a.cases,
        "without": a.bare / a.cases,
    }


def comparison(paired: Paired, first: Measures, second: Measures, *, a: str, b: str) -> dict[str, Json]:
    """Return how two memories compare: the ids of each pairing, the test, and every figure of both.

    Args:
        a: The path of the first memory file; `b` that of the second.
    """
    return {
        "a": a,
        "b": b,
        "both": list(paired.both),
        "only_a": list(paired.only_a),
        "only_b": list(paired.only_b),
        "neither": list(paired.neither),
        "p_value": paired.p_value,
        "measures": {
            name: {"a": one, "b": other, "difference": difference}
            for name, (one, other, difference) in differences(first, second).items()
        },
    }
