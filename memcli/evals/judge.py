"""What a case says of what came back: every text looked for on every path, and the verdict."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from memcli.evals.cases import Case
from memcli.keys import contains
from memcli.record import record


class Verdict(StrEnum):
    """What became of a case; only a pass is a pass."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    UNEXERCISED = "unexercised"


@record
class Check:
    """One text that was looked for, and the paths where it is not as it should be: missing, or forbidden and there."""

    text: str
    wrong: tuple[str, ...]


@record
class Judged:
    """The verdict on a case, and every check behind it.

    Args:
        unreached: Messages of evidence that nothing that came back leads to.
    """

    verdict: Verdict
    expected: tuple[Check, ...]
    forbidden: tuple[Check, ...]
    controls: tuple[Check, ...]
    unreached: tuple[str, ...] = ()

    @property
    def hits(self) -> int:
        """Return how many forbidden texts came back."""
        return sum(bool(check.wrong) for check in self.forbidden)


def judge(
    case: Case,
    heard: Mapping[str, Sequence[str]],
    *,
    unreached: Sequence[str] = (),
    evidence: bool = True,
) -> Judged:
    """Return the verdict on what came back on each path, such as `recall` and `block`.

    A forbidden text that came back on any path is a failure, and so is an expected one that is missing on any. Without
    expected texts the evidence must be reached. What is forbidden and absent counts only where a presence was seen:
    all that is expected, the evidence, or the controls; a control that is missing leaves the case unexercised.

    Args:
        heard: What was said on each path that was asked, text by text.
        unreached: Messages of the evidence that were not reached.
        evidence: Whether evidence is judged; an answer in words cites none.
    """
    expected = tuple(_missing(text, heard) for text in case.expect)
    controls = tuple(_missing(text, heard) for text in case.control)
    forbidden = tuple(
        Check(text=text, wrong=tuple(place for place, said in heard.items() if _said(text, said)))
        for text in case.forbid
    )
    wanted = bool(case.evidence) and evidence and not case.expect
    if any(check.wrong for check in (*expected, *forbidden)) or (wanted and unreached):
        verdict = Verdict.FAIL
    elif any(check.wrong for check in controls) or not (expected or controls or wanted):
        verdict = Verdict.UNEXERCISED
    else:
        verdict = Verdict.PASS
    return Judged(
        verdict=verdict,
        expected=expected,
        forbidden=forbidden,
        controls=controls,
        unreached=tuple(unreached) if wanted else (),
    )


def _missing(text: str, heard: Mapping[str, Sequence[str]]) -> Check:
    return Check(text=text, wrong=tuple(place for place, said in heard.items() if not _said(text, said)))


def _said(text: str, said: Sequence[str]) -> bool:
    return any(contains(text, item) for item in said)


_PLACES = {"recall": "recall", "block": "the block", "slot": "the slot", "answer": "the answer"}


def reasons(judged: Judged) -> list[str]:
    """Return why a case did not pass, a clause for each thing that is wrong; empty where it passed."""
    return list(_reasons(judged))


def _reasons(judged: Judged) -> Iterator[str]:
    for check in judged.forbidden:
        if check.wrong:
            yield f"forbidden “{check.text}” is in {_places(check.wrong)}"
    for check in judged.expected:
        if check.wrong:
            yield f"expected “{check.text}” is missing in {_places(check.wrong)}"
    if judged.unreached:
        yield f"no fact leads to {', '.join(judged.unreached)}"
    if judged.verdict is Verdict.UNEXERCISED:
        absent = [check for check in judged.controls if check.wrong]
        for check in absent:
            yield f"control “{check.text}” is missing in {_places(check.wrong)}, so no absence shows anything"
        if not absent:
            yield "nothing that should be there was asked for, so no absence shows anything; give expect or control"


def _places(places: Sequence[str]) -> str:
    named = [_PLACES.get(place, place) for place in places]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
