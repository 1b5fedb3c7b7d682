"""Measures over cases, each by the formula in its docstring, and the comparison of two memories."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memcli.evals.judge import Verdict
from memcli.evals.outcome import Outcome, References, Spent, Task
from memcli.record import record

ADAPTATION = ("import", "extract")
"""Operations that make a memory; the others, `recall`, `context` and `slot`, ask it."""

Z_95 = 1.959963984540054
"""The 97.5th percentile of the normal distribution: 95 % lie between this and its negative."""


@record
class Interval:
    """A share, 0 to 1, and the bounds between which the true one lies with a confidence of 95 %."""

    rate: float
    low: float
    high: float


@record
class Correctness:
    """How many cases came to each verdict, and the share of passes among all cases, unexercised ones included."""

    passed: int
    failed: int
    unexercised: int
    share: Interval


@record
class Scores:
    """Precision, recall and F1, each 0 to 1."""

    precision: float
    recall: float
    f1: float


@record
class Latency:
    """The median and the 95th percentile of timed runs, in milliseconds."""

    runs: int
    median: float
    p95: float


@record
class Ablation:
    """The task score with the memory and without it: passes by cases that have a question and a text to judge by.

    Args:
        by_answers: Whether answers were judged; otherwise the block itself was, and an empty one.
    """

    by_answers: bool
    cases: int
    given: int
    bare: int


@record
class Measures:
    """What a run came to.

    Args:
        micro: Over all references together; None where no case names evidence, as is `macro`.
        macro: The mean over the cases that name evidence.
        referenced: How many cases name evidence.
        forbidden: How many forbidden texts were looked for, and `hits` how many came back.
        blocks: Tokens of each block, in order.
        encodings: What they were counted in.
        latency: By operation.
        peak_bytes: The highest peak of each operation.
        ablation: None where no case can be scored.
    """

    correctness: Correctness
    referenced: int
    micro: Scores | None
    macro: Scores | None
    forbidden: int
    hits: int
    hit_cases: int
    blocks: tuple[int, ...]
    encodings: tuple[str, ...]
    latency: Mapping[str, Latency]
    peak_bytes: Mapping[str, int]
    ablation: Ablation | None


@record
class Paired:
    """Two memories asked the same cases.

    Args:
        both: Ids of the cases that pass on both; the others likewise.
        p_value: Of McNemar's exact test, 0 to 1.
    """

    both: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    neither: tuple[str, ...]
    p_value: float


def measure(outcomes: Sequence[Outcome]) -> Measures:
    """Return the measures of a run with one case or more."""
    references = [outcome.references for outcome in outcomes if outcome.references is not None]
    spent = list(_distinct(outcomes))
    return Measures(
        correctness=_correctness([outcome.judged.verdict for outcome in outcomes]),
        referenced=len(references),
        micro=micro(references) if references else None,
        macro=macro(references) if references else None,
        forbidden=sum(len(outcome.judged.forbidden) for outcome in outcomes),
        hits=sum(outcome.judged.hits for outcome in outcomes),
        hit_cases=sum(outcome.judged.hits > 0 for outcome in outcomes),
        blocks=tuple(outcome.tokens for outcome in outcomes if outcome.tokens is not None),
        encodings=tuple(dict.fromkeys(item.encoding for item in outcomes if item.encoding is not None)),
        latency=latencies(spent),
        peak_bytes=peaks(spent),
        ablation=_ablation([outcome.task for outcome in outcomes if outcome.task is not None]),
    )


def _distinct(outcomes: Sequence[Outcome]) -> Iterator[Spent]:
    """Yield what was spent, once where cases share a memory that was made for them."""
    seen: set[int] = set()
    for outcome in outcomes:
        if outcome.adapted is not None and id(outcome.adapted) not in seen:
            seen.add(id(outcome.adapted))
            yield outcome.adapted
        yield outcome.spent


def _correctness(verdicts: Sequence[Verdict]) -> Correctness:
    passed = verdicts.count(Verdict.PASS)
    return Correctness(
        passed=passed,
        failed=verdicts.count(Verdict.FAIL),
        unexercised=verdicts.count(Verdict.UNEXERCISED),
        share=wilson(passed, len(verdicts)),
    )


def wilson(passed: int, cases: int) -> Interval:
    """Return the share of passes with Wilson's score interval of 95 %.

    With p = passed / cases, n = cases and z = 1.96, the bounds are
    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n).

    Args:
        cases: One or more.
    """
    share, square = passed / cases, Z_95**2 / cases
    middle = (share + square / 2) / (1 + square)
    reach = math.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    # At the ends one bound is exact, which rounding would miss.
    low = 0.0 if passed == 0 else max(0.0, middle - reach)
    high = 1.0 if passed == cases else min(1.0, middle + reach)
    return Interval(rate=share, low=low, high=high)


def scores(reached: int, cited: int, wanted: int) -> Scores:
    """Return precision = reached / cited, recall = reached / wanted, and F1 = 2 · reached / (cited + wanted).

    A reference is a message. `wanted` are those of the evidence of a case, `cited` those that the facts that came back
    came from, and `reached` those in both. Where nothing is cited, precision is 0.
    """
    return Scores(
        precision=reached / cited if cited else 0.0,
        recall=reached / wanted if wanted else 0.0,
        f1=2 * reached / (cited + wanted) if cited + wanted else 0.0,
    )


def of_case(references: References) -> Scores:
    """Return the scores of one case."""
    return scores(references.reached, len(references.cited), len(references.wanted))


def micro(found: Sequence[References]) -> Scores:
    """Return the scores of all references together: the counts of `scores`, each summed over the cases."""
    return scores(
        sum(item.reached for item in found),
        sum(len(item.cited) for item in found),
        sum(len(item.wanted) for item in found),
    )


def macro(found: Sequence[References]) -> Scores:
    """Return the mean over the cases of precision, of recall and of F1, every case counting the same."""
    each = [of_case(item) for item in found]
    return Scores(
        precision=sum(item.precision for item in each) / len(each),
        recall=sum(item.recall for item in each) / len(each),
        f1=sum(item.f1 for item in each) / len(each),
    )


def latencies(spent: Sequence[Spent]) -> dict[str, Latency]:
    """Return median and p95 of each operation over all its timed runs, in milliseconds.

    The median of an even number of runs is the mean of the two in the middle; p95 is the shortest time that at least
    95 % of the runs did not exceed.
    """
    runs: dict[str, list[int]] = {}
    for item in spent:
        for name, taken in item.runs_ns.items():
            runs.setdefault(name, []).extend(taken)
    return {name: _latency(sorted(taken)) for name, taken in runs.items()}


def _latency(taken: Sequence[int]) -> Latency:
    half = len(taken) // 2
    median = taken[half] if len(taken) % 2 else (taken[half - 1] + taken[half]) / 2
    # In whole numbers: 0.95 · n is a little above or below what it should be.
    place = (95 * len(taken) + 99) // 100 - 1
    return Latency(runs=len(taken), median=median / 1e6, p95=taken[place] / 1e6)


def peaks(spent: Sequence[Spent]) -> dict[str, int]:
    """Return the highest peak of each operation, in bytes.

    A peak is the most that Python held while the operation ran beyond what it held before, as `tracemalloc` sees it in
    a run that is not timed; what SQLite holds by itself is not in it.
    """
    found: dict[str, int] = {}
    for item in spent:
        for name, peak in item.peak_bytes.items():
            found[name] = max(found.get(name, 0), peak)
    return found


def _ablation(tasks: Sequence[Task]) -> Ablation | None:
    if not tasks:
        return None
    return Ablation(
        by_answers=tasks[0].answer is not None,
        cases=len(tasks),
        given=sum(task.given.verdict is Verdict.PASS for task in tasks),
        bare=sum(task.bare.verdict is Verdict.PASS for task in tasks),
    )


# ---------------------------------------------------------------- two memories


def pair(first: Sequence[Outcome], second: Sequence[Outcome]) -> Paired:
    """Return which cases pass on both memories, on one of them, and on neither.

    Args:
        second: The same cases as `first`, in the same order.
    """
    found: dict[tuple[bool, bool], list[str]] = {}
    for one, other in zip(first, second, strict=True):
        passed = (one.judged.verdict is Verdict.PASS, other.judged.verdict is Verdict.PASS)
        found.setdefault(passed, []).append(one.case.id)
    only_a, only_b = tuple(found.get((True, False), ())), tuple(found.get((False, True), ()))
    return Paired(
        both=tuple(found.get((True, True), ())),
        only_a=only_a,
        only_b=only_b,
        neither=tuple(found.get((False, False), ())),
        p_value=mcnemar(len(only_a), len(only_b)),
    )


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the two-sided p-value of McNemar's exact test, from the cases that pass on one memory only.

    With n = only_a + only_b and m = min(only_a, only_b) it is min(1, 2 · Σ C(n, i) / 2ⁿ) for i from 0 to m: how likely
    so uneven a split is where each of the n cases falls to either side like a coin. Without such cases it is 1.
    """
    cases = only_a + only_b
    ways = term = 1
    for at in range(1, min(only_a, only_b) + 1):
        term = term * (cases - at + 1) // at
        ways += term
    return min(1.0, 2 * ways / (1 << cases))


def figures(measures: Measures) -> dict[str, float | None]:
    """Return every measure under a name of its own, None where there is nothing to measure, for two to be compared."""
    share, tokens, ablation = measures.correctness.share, measures.blocks, measures.ablation
    found: dict[str, float | None] = {
        "correctness.rate": share.rate,
        "correctness.low": share.low,
        "correctness.high": share.high,
        "forbidden.hits": measures.hits,
        "tokens.mean": mean(tokens),
        "tokens.max": max(tokens, default=None),
        "task.with": None if ablation is None else ablation.given / ablation.cases,
        "task.without": None if ablation is None else ablation.bare / ablation.cases,
    }
    for name, item in (("micro", measures.micro), ("macro", measures.macro)):
        for part in ("precision", "recall", "f1"):
            found[f"references.{name}.{part}"] = None if item is None else getattr(item, part)
    for name, latency in measures.latency.items():
        found[f"latency_ms.{name}.median"] = latency.median
        found[f"latency_ms.{name}.p95"] = latency.p95
    for name, peak in measures.peak_bytes.items():
        found[f"peak_bytes.{name}"] = peak
    return found


def mean(numbers: Iterable[float]) -> float | None:
    """Return the mean, or None of nothing."""
    found = list(numbers)
    return sum(found) / len(found) if found else None


def differences(first: Measures, second: Measures) -> dict[str, tuple[float | None, float | None, float | None]]:
    """Return each figure of both runs, and the second minus the first where both have it."""
    one, other = figures(first), figures(second)
    return {name: (one.get(name), other.get(name), _minus(other.get(name), one.get(name))) for name in one | other}


def _minus(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left - right
