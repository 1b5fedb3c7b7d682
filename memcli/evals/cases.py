"""Case files: TOML with `[[case]]` and `[defaults]`, or JSON Lines with a case a line; read whole, or refused.

Nothing in a case is passed over: a key that is misspelt would otherwise be a check that is never made.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from memcli import wire
from memcli.clock import parse_instant
from memcli.errors import Unreadable, UsageError
from memcli.facts import Micros
from memcli.keys import contains
from memcli.record import record
from memcli.text import check_typed, visible

LARGEST = 10**9 - 1
"""The largest number that a case may give."""

LONGEST_ID = 100
"""How many characters the id of a case may have."""

_HEADER = re.compile(r"""[ \t]*\[\[[ \t]*(?:case|"case"|'case')[ \t]*\]\]""")
_AT_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)$")
_SUFFIXES = {".toml": False, ".jsonl": True, ".ndjson": True, ".json": True}
_EXAMPLE = 'a case looks like: [[case]], id = "home", query = "where does anna live", expect = ["Lisbon"]'


@record
class Case:
    """One thing that is asked of a memory, and what must and must not come back.

    Args:
        path: The file it stands in, as it was named.
        line: 1-based, where it begins; None where that cannot be told.
        query: Asked of recall and of the block; None asks neither.
        subject: With `attribute`, the slot that is asked; None asks none.
        expect: Texts that must come back on every path that is asked.
        forbid: Texts that must come back on none.
        control: Texts that show that something was there to be seen; they make `forbid` count.
        evidence: Messages that must be reached: ids such as `s1#3`, or 0-based places in the transcript.
        valid_at: When the slot's value was true; None means now.
        known_at: As the file knew it then; None means now.
        k: The most facts that come back; None takes that of the run, as do `budget_tokens` and `repeat`.
        transcript: A path; it is imported and extracted into a memory of its own.
        db: The memory file that is asked; None takes that of the run.
    """

    id: str
    path: str
    line: int | None = None
    query: str | None = None
    subject: str | None = None
    attribute: str | None = None
    scope: str | None = None
    expect: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    evidence: tuple[str | int, ...] = ()
    valid_at: Micros | None = None
    known_at: Micros | None = None
    k: int | None = None
    budget_tokens: int | None = None
    repeat: int | None = None
    transcript: str | None = None
    db: str | None = None

    @property
    def asks_a_slot(self) -> bool:
        """Return whether a slot is asked."""
        return self.subject is not None and self.attribute is not None

    def unreadable(self, why: str, *, hint: str | None = None) -> Unreadable:
        """Return the error that says what is wrong with this case."""
        return Unreadable(self.path, f"case {self.id}: {why}", line=self.line, hint=hint)


class _Wrong(Exception):
    """What is wrong with a value, and what is right."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.why, self.hint = why, hint


def read_cases(paths: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases of all files, in order.

    Args:
        paths: `-` is standard input.

    Raises:
        Unreadable: A file cannot be read, holds no case, or one that is not right; or two cases have one id.
    """
    cases: list[Case] = []
    places: dict[str, str] = {}
    for path in paths:
        found = list(_file(path))
        if not found:
            raise Unreadable(path, "no case is in it", hint=_EXAMPLE)
        for case in found:
            place = case.path if case.line is None else f"{case.path} line {case.line}"
            if case.id in places:
                why = f"its id was given already, in {places[case.id]}"
                raise case.unreadable(why, hint="give every case of a run an id of its own")
            places[case.id] = place
        cases += found
    return tuple(cases)


def _file(path: str) -> Iterator[Case]:
    text = _text(path)
    as_lines = _SUFFIXES.get(Path(path).suffix.lower(), text.lstrip().startswith("{"))
    for number, (line, raw, defaults) in enumerate(_of_lines(path, text) if as_lines else _of_toml(path, text), 1):
        name = raw.get("id")
        shown = name if isinstance(name, str) and name.strip() else str(number)
        try:
            yield _case(path, line, {**_without_rivals(defaults, raw), **raw})
        except _Wrong as wrong:
            raise Unreadable(path, f"case {shown}: {wrong.why}", line=line, hint=wrong.hint) from None


def _text(path: str) -> str:
    try:
        if path == "-":
            if sys.stdin is None:
                raise Unreadable("standard input", "it is closed", hint="name a file of cases")
            data = sys.stdin.buffer.read()
        else:
            data = Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        why = (problem.strerror or str(problem)) if isinstance(problem, OSError) else "the path holds a NUL"
        raise Unreadable(path, why.lower(), hint="name a file of cases, in TOML or JSON Lines") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        why = f"byte {problem.start + 1} is no UTF-8"
        raise Unreadable(path, why, line=line, hint="convert it, as with `iconv -t UTF-8`") from None


_Raw = tuple[int | None, Mapping[str, Any], Mapping[str, Any]]
"""The line of a case, what stands in it, and what the file says for all cases."""


def _of_lines(path: str, text: str) -> Iterator[_Raw]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = wire.loads(line)
        except UsageError as problem:
            why = problem.message.removeprefix("that is ").removeprefix("that ")
            raise Unreadable(path, why, line=number, hint="write one JSON object a line") from None
        if not isinstance(found, dict):
            raise Unreadable(path, "it is no JSON object", line=number, hint="write one JSON object a line")
        yield number, found, {}


def _of_toml(path: str, text: str) -> Iterator[_Raw]:
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        place = _AT_LINE.search(str(problem))
        why = f"no TOML: {_AT_LINE.sub('', str(problem))}"
        line = None if place is None else int(place[1])
        raise Unreadable(path, why, line=line, hint="write [[case]] tables, or name JSON Lines .jsonl") from None
    except RecursionError:
        raise Unreadable(path, "it is nested too deeply", hint="write plain tables") from None
    unknown = next((name for name in found if name not in {"case", "defaults"}), None)
    if unknown is not None:
        hint = "a file holds [[case]] tables, and one [defaults] table if it likes"
        raise Unreadable(path, f"{unknown} is no key of a case file", hint=hint)
    cases, defaults = found.get("case", []), found.get("defaults", {})
    if not isinstance(cases, list) or not all(isinstance(item, dict) for item in cases):
        raise Unreadable(path, "case is no list of tables", hint="begin each case with [[case]]")
    if not isinstance(defaults, dict):
        raise Unreadable(path, "defaults is no table", hint="write [defaults] above what holds for all cases")
    _check_defaults(path, defaults)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if _HEADER.match(line)]
    # A header inside a text of several lines looks like one; then no line can be told.
    known: Sequence[int | None] = lines if len(lines) == len(cases) else [None] * len(cases)
    for line, raw in zip(known, cases, strict=True):
        yield line, raw, defaults


def _check_defaults(path: str, defaults: Mapping[str, Any]) -> None:
    try:
        if "id" in defaults:
            raise _Wrong("id holds for one case only", "give each case its own id")
        _read(defaults)
    except _Wrong as wrong:
        raise Unreadable(path, f"defaults: {wrong.why}", hint=wrong.hint) from None


def _without_rivals(defaults: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults without what a case replaces by naming the other of two."""
    rivals = {"transcript": "db", "db": "transcript"}
    return {name: value for name, value in defaults.items() if rivals.get(name) not in raw}


def _case(path: str, line: int | None, raw: Mapping[str, Any]) -> Case:
    if "id" not in raw:
        raise _Wrong("it has no id", 'give it one, such as id = "home"')
    read = _read(raw)
    folder = Path(path).parent
    for name in ("transcript", "db"):
        if name in read:
            read[name] = str(folder / read[name])
    if "budget" in read:
        read["budget_tokens"] = read.pop("budget")
    case = Case(path=path, line=line, **read)
    _check_asks(case)
    _check_judges(case)
    return case


def _check_asks(case: Case) -> None:
    if (case.subject is None) != (case.attribute is None):
        raise _Wrong("a slot is a subject and an attribute", "give both, or neither")
    if case.query is None and not case.asks_a_slot:
        raise _Wrong("it asks nothing", "give it a query, or a subject and an attribute")
    if case.valid_at is not None or case.known_at is not None:
        if not case.asks_a_slot:
            raise _Wrong("a time is asked of a slot, and it names none", "give it a subject and an attribute")
        if case.query is not None:
            hint = "leave query out, and ask it in a case without a time"
            raise _Wrong("recall answers as of now, and it asks for another time", hint)


def _check_judges(case: Case) -> None:
    if not (case.expect or case.forbid or case.evidence):
        raise _Wrong("it judges nothing", "give it expect, forbid or evidence")
    if case.transcript is not None and case.db is not None:
        raise _Wrong("it names a transcript and a memory file", "leave transcript or db out")
    if case.transcript is None and any(isinstance(item, int) for item in case.evidence):
        raise _Wrong("evidence by number needs a transcript", 'name messages, such as evidence = ["s1#3"]')


def _read(raw: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in raw.items():
        reader = _KEYS.get(name)
        if reader is None:
            raise _Wrong(f"{name} is no key of a case", "the keys are " + ", ".join(_KEYS))
        read[name] = reader(name, value)
    return read


def _a_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"{name} is {_kind(value)}", f'write a text, such as {name} = "…"')
    try:
        return check_typed(value, what=name)
    except UsageError as problem:
        raise _Wrong(problem.message, problem.hint or f'write a text, such as {name} = "…"') from None


def _an_id(name: str, value: object) -> str:
    """Return the id of a case, which stands in reports and must fit on a line of any of them."""
    text = _a_text(name, value)
    if len(text) > LONGEST_ID or visible(text) != text or any(sign in text for sign in "\n\t`|"):
        hint = f"write a plain name of up to {LONGEST_ID} characters, on one line and without ` or |"
        raise _Wrong(f"{name} cannot stand in a report", hint)
    return text


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Wrong(f"{name} is {_kind(value)}", f'write a list of texts, such as {name} = ["Lisbon"]')
    for item in value:
        if not isinstance(item, str):
            raise _Wrong(f"{name} holds {_kind(item)}", f'write a list of texts, such as {name} = ["Lisbon"]')
        if not contains(item, item):
            # It would be found in no text, so as a forbidden one it would never be hit.
            raise _Wrong(f"{name} holds a text that shows nothing", "write words, a name or a number")
    return tuple(dict.fromkeys(value))


def _messages(name: str, value: object) -> tuple[str | int, ...]:
    hint = 'write message ids such as ["s1#3"], or places in the transcript, from 0, such as [3]'
    if not isinstance(value, list):
        raise _Wrong(f"{name} is {_kind(value)}", hint)
    for item in value:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise _Wrong(f"{name} holds {_kind(item)}", hint)
        if (isinstance(item, int) and not 0 <= item <= LARGEST) or (isinstance(item, str) and "#" not in item):
            raise _Wrong(f"{name} holds {item}, which is no message", hint)
    return tuple(dict.fromkeys(value))


def _moment(name: str, value: object) -> Micros:
    """Return an instant; TOML has dates and times of its own."""
    text = value.isoformat() if isinstance(value, date | datetime) else value
    if not isinstance(text, str):
        raise _Wrong(f"{name} is {_kind(value)}", 'write a time with its zone, such as "2026-03-02T09:00:00Z"')
    try:
        return parse_instant(text, option=name)
    except UsageError as problem:
        raise _Wrong(problem.message, problem.hint or "write a time with its zone") from None


def _whole(least: int) -> Callable[[str, object], int]:
    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            shown = str(value) if isinstance(value, int) and abs(value) <= LARGEST else _kind(value)
            raise _Wrong(f"{name} is {shown.lower()}", f"write a whole number from {least} to {LARGEST:,}")
        return value

    return read


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), "a time")


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}
"""What values are called; TOML has several kinds of time besides."""

_KEYS: Mapping[str, Callable[[str, object], Any]] = {
    "id": _an_id,
    "query": _a_text,
    "subject": _a_text,
    "attribute": _a_text,
    "scope": _a_text,
    "expect": _texts,
    "forbid": _texts,
    "control": _texts,
    "evidence": _messages,
    "valid_at": _moment,
    "known_at": _moment,
    "k": _whole(1),
    "budget": _whole(0),
    "repeat": _whole(1),
    "transcript": _a_text,
    "db": _a_text,
}
"""Every key of a case, and what reads its value."""
