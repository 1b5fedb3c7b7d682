"""Cases: sequences of steps with what must come back of each, one JSON object a line."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeVar

from memcli import wire
from memcli.errors import MemError, Unreadable, UsageError
from memcli.facts import Claim, Json, Validity
from memcli.record import record
from memcli.terms import ActionState, Isolation, Kind, SourceKind, State, Tier, Visibility

UNIT = 1_000_000
"""Microseconds in one unit of a case's clock."""

DEFAULT_AGENT = "agent"
DEFAULT_AUTHORITY = 0.5
DEFAULT_CONFIDENCE = 0.8

NEEDS: Mapping[str, frozenset[str]] = {
    "tick": frozenset({"by"}),
    "seed": frozenset({"id", "fact"}),
    "begin": frozenset({"tx"}),
    "read": frozenset({"tx", "expect"}),
    "stage": frozenset({"tx", "id", "fact"}),
    "commit": frozenset({"tx"}),
    "abort": frozenset({"tx"}),
    "revoke": frozenset({"id"}),
    "tombstone": frozenset({"id"}),
    "gate": frozenset({"tx", "tool"}),
    "state": frozenset({"expect"}),
    "effects": frozenset({"expect"}),
    "served": frozenset({"subject", "attribute", "expect"}),
    "leaks": frozenset({"expect"}),
    "compensations": frozenset({"expect"}),
    "repairs": frozenset({"root", "expect"}),
    "recover": frozenset(),
}
"""By step: the keys that it cannot do without."""

_KEYS = frozenset({"subject", "attribute", "value"})
_EFFECTS = frozenset(ActionState) - {ActionState.CANCELLED}
Word = TypeVar("Word", Tier, Isolation, Kind, SourceKind, State, Visibility, ActionState)
Step = Mapping[str, Json]


@record
class Case:
    """One case as it was read. `line` is 1-based; `policy` gives the authority of each source that it names."""

    id: str
    family: str
    kind: str
    title: str
    line: int
    steps: tuple[Step, ...]
    policy: Mapping[str, float] = field(default_factory=dict)


def read_cases(lines: Iterable[str], *, path: str) -> Iterator[Case]:
    """Yield the cases of a file; blank lines are passed over.

    Raises:
        Unreadable: A line holds no case; nothing after it was read.
    """
    seen: dict[str, int] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            case = _case(wire.loads(text), number)
            if case.id in seen:
                raise UsageError(f"case {case.id} stands in line {seen[case.id]} already")
        except MemError as problem:
            raise Unreadable(path, problem.message, line=number, hint="see `mem tx replay --help`") from None
        seen[case.id] = number
        yield case


def _case(document: Json, line: int) -> Case:
    if not isinstance(document, dict):
        raise UsageError("a case is a JSON object")
    words = {name: document.get(name, "") for name in ("id", "family", "kind", "title")}
    for name, word in words.items():
        if not isinstance(word, str) or (name == "id" and not word):
            raise UsageError(f"the {name} of a case is a text")
    if words["kind"] not in ("trap", "control", ""):
        raise UsageError(f"a case is a trap or a control, and {words['kind']} is neither")
    steps = document.get("steps")
    if not isinstance(steps, list) or not steps:
        raise UsageError("steps is a list with at least one step")
    found = tuple(_step(step, index) for index, step in enumerate(steps))
    _check_names(found)
    texts = {name: str(word) for name, word in words.items()}
    return Case(line=line, steps=found, policy=_policy(found), **texts)


def _step(document: Json, index: int) -> Step:
    if not isinstance(document, dict):
        raise UsageError(f"step {index} is no object")
    op = document.get("op")
    if not isinstance(op, str) or op not in NEEDS:
        raise UsageError(f"step {index} does nothing that is known: {op}")
    missing = sorted(NEEDS[op] - set(document))
    if missing:
        raise UsageError(f"step {index} ({op}) lacks {', '.join(missing)}")
    for name in ("id", "tx", "tool", "agent", "root", "subject", "attribute", "action", "scope"):
        if name in document and not isinstance(document[name], str):
            raise UsageError(f"step {index} ({op}): {name} is a text")
    try:
        _check_words(document, op)
    except MemError as problem:
        raise UsageError(f"step {index} ({op}): {problem.message}") from None
    return document


def _check_words(step: Step, op: str) -> None:
    _check_expect(step.get("expect"), op)
    if op == "tick" and not _is_number(step["by"], least=0):
        raise UsageError("by is a number from 0 up")
    if op == "begin":
        word(step, "tier", Tier, Tier.MEDIUM)
        lease_s(step)
        if "isolation" in step:
            word(step, "isolation", Isolation, Isolation.ACCEPTED)
    if op == "commit" and step.get("mode", "atomic") not in ("atomic", "partial"):
        raise UsageError("mode is atomic or partial")
    if op == "gate":
        names(step, "premises")
        if word(step, "effect", ActionState, ActionState.DONE) not in _EFFECTS:
            raise UsageError("effect is planned, running, done, failed or unknown")
    if op == "seed":
        word(step, "state", State, State.ACCEPTED)
    if op in {"seed", "stage"}:
        claim(step, DEFAULT_AGENT, {})
        rivals(step)


def _check_expect(expect: Json, op: str) -> None:
    if op in {"state", "effects"} and not isinstance(expect, dict):
        raise UsageError("expect is an object of names and states")
    if op in {"commit", "gate", "stage", "abort", "begin"} and not isinstance(expect, dict | None):
        raise UsageError("expect is an object")
    if op in {"read", "leaks", "compensations", "repairs"} and not isinstance(expect, list | dict):
        raise UsageError("expect is a list")


def _check_names(steps: Iterable[Step]) -> None:
    facts = {str(step["id"]) for step in steps if step["op"] in ("seed", "stage")}
    for index, step in enumerate(steps):
        used = [*names(step, "premises"), *(str(step[key]) for key in ("root",) if key in step)]
        if step["op"] in ("revoke", "tombstone"):
            used.append(str(step["id"]))
        expect = step.get("expect")
        if step["op"] == "state" and isinstance(expect, dict):
            used += expect
        for name in used:
            if name not in facts:
                raise UsageError(f"step {index} ({step['op']}) names {name}, which no step seeds or stages")


def _policy(steps: Iterable[Step]) -> dict[str, float]:
    """Return for each source the most that it claims: so much is what the case's policy gives it."""
    found: dict[str, float] = {}
    for step in steps:
        if step["op"] in ("seed", "stage"):
            told = claim(step, DEFAULT_AGENT, {})
            name = told.source or ""
            found[name] = max(found.get(name, 0.0), told.authority or 0.0)
    return found


def claim(step: Step, agent: str, known: Mapping[str, str]) -> Claim:
    """Return what a step seeds or stages.

    Args:
        agent: Whose fact it is where the step does not say.
        known: Ids in the file of the facts that the case names; an unknown one stays as it stands.

    Raises:
        UsageError: It is no fact.
    """
    told = step["fact"]
    if not isinstance(told, dict) or not set(told) >= _KEYS:
        raise UsageError("a fact is an object with subject, attribute and value")
    subject, attribute, value = (told[name] for name in ("subject", "attribute", "value"))
    if not isinstance(subject, str) or not isinstance(attribute, str) or isinstance(value, list | dict):
        raise UsageError("subject and attribute are texts, and value is one text, number or truth value")
    source = text(told, "source", DEFAULT_AGENT)
    start, end = _instant(told, "valid_from", 0), _instant(told, "valid_to", None)
    return Claim(
        text=f"{subject} {attribute}: {value if isinstance(value, str) else wire.dumps(value)}",
        subject=subject,
        attribute=attribute,
        value=value,
        kind=word(told, "kind", Kind, Kind.BELIEF),
        validity=Validity(start=start, end=end),
        confidence=_number(told, "confidence", DEFAULT_CONFIDENCE),
        authority=_number(told, "authority", DEFAULT_AUTHORITY),
        owner=text(told, "owner", agent),
        visibility=word(told, "visibility", Visibility, Visibility.SHARED),
        derived_from=tuple(known.get(name, name) for name in names(told, "derived_from")),
        source=source,
        source_kind=word(told, "source_kind", SourceKind, SourceKind.AGENT),
        references=names(told, "evidence") if "evidence" in told else (f"src:{source}",),
    )


def scope_of(step: Step) -> str | None:
    """Return the scope that a step's fact names, or that the step itself names; None is the usual one."""
    told = step.get("fact")
    inner = told.get("scope") if isinstance(told, dict) else step.get("scope")
    return inner if isinstance(inner, str) else None


def text(told: Step, name: str, otherwise: str) -> str:
    """Return a text of a step.

    Raises:
        UsageError: It is none.
    """
    value = told.get(name, otherwise)
    if not isinstance(value, str):
        raise UsageError(f"{name} is a text")
    return value


def names(told: Step, name: str) -> tuple[str, ...]:
    """Return a list of names of a step, empty where there is none.

    Raises:
        UsageError: It is no list of texts.
    """
    value = told.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{name} is a list of texts")
    return tuple(str(item) for item in value)


def rivals(step: Step) -> tuple[str, ...]:
    """Return what a staged fact is to take the place of, by the case's names.

    Raises:
        UsageError: It is neither a text nor a list of texts.
    """
    value = step.get("supersedes")
    return (value,) if isinstance(value, str) else () if value is None else names(step, "supersedes")


def word(told: Step, name: str, words: type[Word], otherwise: Word) -> Word:
    """Return one of a fixed set of words of a step.

    Raises:
        UsageError: It is another one.
    """
    value = told.get(name, otherwise)
    if not isinstance(value, str) or value not in set(words):
        raise UsageError(f"{name} is one of: {', '.join(words)}")
    return words(value)


def lease_s(step: Step) -> float | None:
    """Return the lease that a step asks for, in seconds; None is the usual one.

    Raises:
        UsageError: It is no number above zero.
    """
    value = step.get("lease", step.get("lease_s"))
    if value is None:
        return None
    if not _is_number(value, least=0.01):
        raise UsageError("lease is a number, 0.01 or more")
    return float(value)  # type: ignore[arg-type]  # the line above looked


def micros(units: float) -> int:
    """Return a duration of a case's clock in microseconds."""
    return round(units * UNIT)


def _is_number(value: Json, *, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def _number(told: Step, name: str, otherwise: float) -> float:
    value = told.get(name, otherwise)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise UsageError(f"{name} is a number from 0 to 1")
    return float(value)


def _instant(told: Step, name: str, otherwise: int | None) -> int | None:
    value = told.get(name, otherwise)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UsageError(f"{name} is a number of the case's clock")
    return micros(value)
