"""The screens of an evaluation: a line for each case, the measures, and two memories side by side."""

from collections.abc import Sequence

from memcli.evals.judge import Verdict, reasons
from memcli.evals.measures import ADAPTATION, Interval, Measures, Paired, Scores, differences, mean
from memcli.evals.outcome import Outcome
from memcli.render.layout import Column, Page, Part, Screen
from memcli.render.words import NOTHING, counted, size

_MARKS: dict[Verdict, Part] = {
    Verdict.PASS: ("✓", "accepted"),
    Verdict.FAIL: ("✗", "error"),
    Verdict.UNEXERCISED: ("–", "warning"),
}
_BOUNDS = frozenset({"correctness.low", "correctness.high"})
"""Figures whose difference says nothing."""

_LONGEST_NAME = 24
"""Cells that the ids of cases may take before the reasons stand a line below."""


def eval_screen(outcomes: Sequence[Outcome], measures: Measures, *, width: int = 80) -> Screen:
    """Return a line for each case, with what is wrong where it did not pass, and the measures of all."""
    page = Page(width)
    room = _room(outcomes)
    for item in outcomes:
        _put_case(page, item, room)
    page.blank()
    _put_sum(page, measures)
    page.blank()
    _put_measures(page, measures)
    _put_operations(page, measures)
    return page.screen()


def _room(outcomes: Sequence[Outcome]) -> int:
    return min(max((len(item.case.id) for item in outcomes), default=0), _LONGEST_NAME)


def _put_case(page: Page, item: Outcome, room: int) -> None:
    mark, why = _MARKS[item.judged.verdict], " · ".join(reasons(item.judged))
    page.line("  ", mark, "  ", (f"{item.case.id:<{room}}" if why else item.case.id, "id"), "  ", why, hang=room + 7)


def _put_sum(page: Page, measures: Measures) -> None:
    right = measures.correctness
    cases = right.passed + right.failed + right.unexercised
    page.line(
        f"{counted(cases, 'case')}: ",
        (f"{right.passed:,} passed", "accepted"),
        ", ",
        (f"{right.failed:,} failed", "error" if right.failed else ""),
        ", ",
        (f"{right.unexercised:,} unexercised", "warning" if right.unexercised else ""),
        hang=2,
    )


def _put_measures(page: Page, m: Measures) -> None:
    rows: list[list[Part]] = [["correct", _share(m.correctness.share)]]
    for name, item in (("micro", m.micro), ("macro", m.macro)):
        if item is not None:
            rows.append([f"references, {name}", _scores(item)])
    if m.forbidden:
        rows.append(["forbidden hits", f"{m.hits:,} of {counted(m.forbidden, 'text')}"])
    if m.blocks:
        average, most, total = mean(m.blocks) or 0.0, max(m.blocks), sum(m.blocks)
        unit = ", ".join(m.encodings)
        rows.append(["tokens of the block", f"{average:,.1f} on average, {most:,} at most, {total:,} in all ({unit})"])
    if m.ablation is not None:
        a = m.ablation
        what = "answers" if a.by_answers else "the block itself, and an empty one"
        task = f"{percent(a.given / a.cases)}, without {percent(a.bare / a.cases)}"
        rows.append(["task with the memory", f"{task} ({what})"])
    page.table((Column(head="MEASURE"), Column(head="VALUE", flexible=True)), rows)


def _share(share: Interval) -> str:
    return f"{percent(share.rate)} (95 %: {percent(share.low)} to {percent(share.high)})"


def _scores(s: Scores) -> str:
    return f"precision {percent(s.precision)}, recall {percent(s.recall)}, F1 {percent(s.f1)}"


def percent(share: float) -> str:
    """Return a share as a whole percentage; one that is not all is never called all."""
    whole = round(share * 100)
    return f"{99 if whole == 100 and share < 1 else whole} %"


def _put_operations(page: Page, m: Measures) -> None:
    page.blank()
    columns = (
        Column(head="OPERATION"),
        Column(head="PHASE", spare=2),
        Column(head="RUNS", right=True, spare=1),
        Column(head="MEDIAN", right=True),
        Column(head="P95", right=True),
        Column(head="PEAK", right=True),
    )
    rows: list[list[Part]] = [
        [
            name,
            "adaptation" if name in ADAPTATION else "inference",
            f"{taken.runs:,}",
            f"{taken.median:,.2f} ms",
            f"{taken.p95:,.2f} ms",
            size(m.peak_bytes[name]),
        ]
        for name, taken in m.latency.items()
    ]
    page.table(columns, rows)


# ---------------------------------------------------------------- two memories


def compare_screen(
    first: Sequence[Outcome],
    second: Sequence[Outcome],
    paired: Paired,
    measures: tuple[Measures, Measures],
    *,
    a: str,
    b: str,
    width: int = 80,
) -> Screen:
    """Return two memories side by side: how the cases pair, which differ and why, and every figure of both.

    Args:
        second: The same cases as `first`, in the same order.
        measures: Those of `first` and of `second`.
        a: What the first memory is called; `b` the second.
    """
    page = Page(width)
    page.line("A  ", (a, "heading"), hang=3)
    page.line("B  ", (b, "heading"), hang=3)
    page.blank()
    _put_pairs(page, paired)
    _put_parted(page, first, second)
    page.blank()
    _put_differences(page, *measures)
    return page.screen()


def _put_pairs(page: Page, paired: Paired) -> None:
    rows: list[list[Part]] = [
        ["A passes", f"{len(paired.both):,}", f"{len(paired.only_a):,}"],
        ["A does not", f"{len(paired.only_b):,}", f"{len(paired.neither):,}"],
    ]
    columns = (Column(head=""), Column(head="B PASSES", right=True), Column(head="B DOES NOT", right=True))
    page.table(columns, rows)
    apart = len(paired.only_a) + len(paired.only_b)
    page.blank()
    page.line(f"p = {paired.p_value:.3g}, McNemar’s exact test over {counted(apart, 'case')} that part", hang=2)


def _put_parted(page: Page, first: Sequence[Outcome], second: Sequence[Outcome]) -> None:
    room = _room(first)
    page.blank()
    for one, other in zip(first, second, strict=True):
        verdicts = (one.judged.verdict, other.judged.verdict)
        if set(verdicts) == {Verdict.PASS}:
            continue
        parts: list[Part] = ["  A ", _MARKS[verdicts[0]], " B ", _MARKS[verdicts[1]]]
        whys = [
            f"{name}: {' · '.join(why)}"
            for name, why in (("A", reasons(one.judged)), ("B", reasons(other.judged)))
            if why
        ]
        page.line(*parts, "  ", (f"{one.case.id:<{room}}", "id"), "  ", " | ".join(whys), hang=11)


def _put_differences(page: Page, first: Measures, second: Measures) -> None:
    columns = (
        Column(head="MEASURE", flexible=True),
        Column(head="A", right=True),
        Column(head="B", right=True),
        Column(head="B − A", right=True),
    )
    rows: list[list[Part]] = [
        [name, _figure(name, one), _figure(name, other), _signed(name, difference)]
        for name, (one, other, difference) in differences(first, second).items()
        if (one is not None or other is not None) and name not in _BOUNDS
    ]
    page.table(columns, rows)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return NOTHING
    return percent(value) if _is_share(name) else _amount(name, value)


def _is_share(name: str) -> bool:
    return name.startswith(("correctness.", "references.", "task."))


def _amount(name: str, value: float) -> str:
    if name.startswith("peak_bytes."):
        return size(round(value))
    if name.startswith("latency_ms."):
        return f"{value:,.2f} ms"
    return f"{value:,.1f}" if name == "tokens.mean" else f"{value:,.0f}"


def _signed(name: str, value: float | None) -> str:
    """Return a difference with its sign; of two percentages it is in points."""
    if value is None:
        return NOTHING
    sign = "" if value == 0 else "−" if value < 0 else "+"
    amount = f"{abs(value) * 100:.0f} points" if _is_share(name) else _amount(name, abs(value))
    return f"{sign}{amount}"
