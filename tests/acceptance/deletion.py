"""The thirteen steps of a deletion, as functions over any memory with this command line.

The steps speak only through words and results, so the same steps run against `mem` and against a store that leaks.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.driver import Memory
from tests.acceptance.material import EXPORTS, TRANSCRIPTS, openai, token
from tests.acceptance.questions import block, decisions, events, find, has, recalled, texts
from tests.acceptance.report import FAIL, PASS, UNEXERCISED

WHY = "anna asked for it"
FORGETTING: Mapping[str, tuple[str, ...]] = {"tombstone": (), "retract": (), "erase": ("--yes",)}
"""The ways to forget, with the options that a script needs."""

NAMED_EXPORTS = ("mem", "mem0")
"""The exports that say which fact each statement was; after a retract, any other list is new evidence, by design."""

SECOND = "second"
"""The scope that took a copy before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One deletion: the words that are to go, and beside each a sibling that is to stay.

    Args:
        later: The word of steps 11 to 13, which is exported and copied before it is forgotten.
        controls: The presences that were seen; an absence that follows none of them is unexercised.
    """

    mem: Memory
    how: str
    word: str
    sibling: str
    later: str
    controls: list[str] = field(default_factory=list)

    @property
    def said(self) -> list[str]:
        """Return what the transcript says."""
        return [f"FACT: the pass of the depot is {self.word}", f"FACT: the pass of the tower is {self.sibling}"]

    @property
    def decided(self) -> Path:
        """Return the decisions file by which the fact was accepted before it was forgotten."""
        return self.mem.folder / "old-decisions.jsonl"

    @property
    def stops(self) -> bool:
        """Return whether the value itself is refused from then on, whoever says it."""
        return self.how != "retract"

    def forget(self, word: str) -> None:
        """Forget the fact that holds a word."""
        fact = find(self.mem, word)
        done = self.mem.run(self.how, fact, "--reason", WHY, "--actor", "rita", *FORGETTING[self.how])
        assert done.code == 0, done.err

    def export(self, name: str, memory: Memory | None = None) -> dict[str, str]:
        """Write every export there is, and return the path of each by its format."""
        found = {}
        for form in EXPORTS:
            found[form] = str(self.mem.folder / f"{name}.{form}")
            ok(memory or self.mem, "export", "--format", form, "-o", found[form])
        return found


def new_case(mem: Memory, how: str) -> Case:
    """Return a case over an empty memory."""
    return Case(mem=mem, how=how, word=token(), sibling=token(), later=token())


def ok(mem: Memory, *words: str, scope: str | None = None) -> str:
    """Run a command that must succeed and return what it printed."""
    done = mem.run(*words, scope=scope)
    assert done.code == 0, f"{words}: {done.code} {done.err}"
    return done.out


def gone(case: Case) -> None:
    """Assert that the word is not recalled while its sibling is."""
    assert recalled(case.mem, case.sibling) == [f"the pass of the tower is {case.sibling}"]
    assert recalled(case.mem, case.word) == []
    assert not [text for text in recalled(case.mem, "pass depot tower") if case.word in text]


def write_from_a_transcript(case: Case) -> None:
    ok(case.mem, "import", openai(case.mem.folder / "talk.json", case.said))
    ok(case.mem, "extract")
    fact = find(case.mem, case.word)
    ok(case.mem, "add", f"summary: {case.word} opens the depot", "--derived-from", fact, "--kind", "summary")
    if has(case.mem, "review"):
        ok(case.mem, "dispute", fact, "--reason", "is it so?")
        decided = Path(decisions(case.mem, "the pass of the depot", "accept")).rename(case.decided)
        ok(case.mem, "review", "apply", str(decided), "--actor", "rita")
    assert f"the pass of the depot is {case.word}" in texts(case.mem)


def it_is_recalled(case: Case) -> None:
    assert f"the pass of the depot is {case.word}" in recalled(case.mem, case.word)
    assert recalled(case.mem, case.sibling) == [f"the pass of the tower is {case.sibling}"]
    held = _derived(case, "before")
    assert {kind for kind, said in held.items() if case.word in said} == set(held)
    case.controls.extend(held)


def forget_it(case: Case) -> None:
    case.forget("the pass of the depot")


def not_recalled(case: Case) -> None:
    gone(case)


def import_the_same_again(case: Case) -> None:
    ok(case.mem, "import", TRANSCRIPTS["openai"](case.mem.folder / "under-another-name.json", case.said))
    for name in TRANSCRIPTS if has(case.mem, "review") else ("claude-code",):
        ok(case.mem, "import", TRANSCRIPTS[name](case.mem.folder / f"again-{name}.jsonl", case.said))
        ok(case.mem, "extract", "--all")


def not_recalled_after_import(case: Case) -> None:
    gone(case)


def every_maintenance(case: Case) -> None:
    for words in (("extract", "--all"), ("rebuild",), ("migrate",), ("check",), ("condense",), ("rebuild",)):
        ok(case.mem, *words)
    if has(case.mem, "review"):
        ok(case.mem, "tx", "recover")
        assert case.mem.run("review", "apply", str(case.decided), "--actor", "rita").code in (0, 3)
        ok(case.mem, "review", "list")
        views = [fact for fact in _every_state(case.mem) if fact["kind"] == "summary" and fact["state"] != "rejected"]
        for view in views:
            assert case.mem.run("rebuild", view["id"], "--reason", "a parent is gone").code in (3, 4)


def _every_state(mem: Memory) -> list[dict[str, str]]:
    found: list[dict[str, str]] = mem.run("show", "--all-states", "--json").json()
    return found


def not_recalled_after_maintenance(case: Case) -> None:
    gone(case)


def _derived(case: Case, name: str) -> dict[str, str]:
    """Return what each derived store says now: indexes, summaries, the block, exports, pages."""
    mem = case.mem
    held = {
        "index": " ".join(recalled(mem, case.word) + recalled(mem, case.sibling)),
        "fragments": " ".join(recalled(mem, case.word[1:7]) + recalled(mem, case.sibling[1:7])),
        "listing and summaries": " ".join(texts(mem)),
        "context": block(mem),
        "context about it": block(mem, case.word) + block(mem, case.sibling),
    }
    for form, path in case.export(name).items():
        if form != "mem" or name == "before" or case.how == "erase":
            held[f"export {form}"] = Path(path).read_text(encoding="utf-8")
    if has(mem, "review"):
        page = mem.folder / f"{name}.html"
        ok(mem, "show", "--html", str(page))
        held["page"] = page.read_text(encoding="utf-8")
        rows = tokens_counted(mem)
        held["token cache"] = rows
    return held


def tokens_counted(mem: Memory) -> str:
    """Return the texts of every version that a count of tokens is kept for."""
    with closing(sqlite3.connect(mem.files[0])) as conn:
        found = conn.execute("select v.text from token_counts c join versions v on v.id = c.row where v.text not null")
        return " ".join(text for (text,) in found)


def nothing_derived_holds_it(case: Case) -> None:
    held = _derived(case, "after")
    unseen = [kind for kind in held if kind not in case.controls]
    assert not unseen, f"no control for {unseen}"
    kept_by_law = set() if case.how == "erase" else {"token cache"}  # of words that the file may keep for its history
    leaks = [kind for kind, said in held.items() if case.word in said and kind not in kept_by_law]
    assert leaks == []
    assert [kind for kind, said in held.items() if case.sibling not in said] == []
    if case.how == "erase":
        raw = b"".join(path.read_bytes() for path in case.mem.files)
        assert case.word.encode() not in raw
        assert case.sibling.encode() in raw
        assert case.word not in " ".join(text or "" for text in texts(case.mem, "--all-states"))
        assert case.mem.run("check", "--residue", case.word).code == 0
        assert case.mem.run("check", "--residue", case.sibling).code == 1


def the_log_tells_it(case: Case) -> None:
    told = [event for event in events(case.mem) if event["reason"] == WHY]
    assert told
    assert {event["actor"]["name"] for event in told} == {"rita"}
    assert {"tombstone": "reject", "retract": "retract", "erase": "erase"}[case.how] in {event["op"] for event in told}
    assert any(event["op"] == "import" for event in events(case.mem))
    if case.how == "erase":
        assert case.word not in ok(case.mem, "log", "--json")
        ok(case.mem, "log", "--html", str(case.mem.folder / "log.html"))
        page = (case.mem.folder / "log.html").read_text(encoding="utf-8")
        assert WHY in page
        assert case.word not in page


def export_and_copy_before(case: Case) -> None:
    text = f"the pass of the harbour is {case.later}"
    ok(case.mem, "import", openai(case.mem.folder / "harbour.json", [f"FACT: {text}"]))
    ok(case.mem, "extract")
    ok(case.mem, "add", text, "--derived-from", find(case.mem, case.later), scope=SECOND)
    ok(case.mem, "add", f"the second scope has its own: {case.sibling}", scope=SECOND)
    assert recalled(case.mem, case.later, scope=SECOND) == [text]
    for path in case.export("older").values():
        assert case.later in Path(path).read_text(encoding="utf-8")
    second = case.mem.beside("second")
    ok(second, "import", str(case.mem.folder / "older.mem"))
    ok(second, "add", f"the second file has its own: {case.sibling}")
    assert recalled(second, case.later) == [text]


def forget_the_original(case: Case) -> None:
    case.forget(case.later)
    assert recalled(case.mem, case.later) == []


def not_in_the_second_scope_nor_from_the_export(case: Case) -> None:
    assert recalled(case.mem, case.sibling, scope=SECOND) == [f"the second scope has its own: {case.sibling}"]
    assert recalled(case.mem, case.later, scope=SECOND) == []
    assert case.later not in block(case.mem, scope=SECOND)
    assert case.sibling in block(case.mem, scope=SECOND)
    older = {form: str(case.mem.folder / f"older.{form}") for form in (EXPORTS if case.stops else NAMED_EXPORTS)}
    newer = case.export("newer")["mem"]
    # A second file takes over what was forgotten; what it believes already is its own, unless a tombstone says more.
    second = case.mem.beside("second" if case.stops else "third")
    ok(second, "import", newer)
    if not case.stops:
        ok(second, "add", f"the second file has its own: {case.sibling}")
    for memory in (case.mem, second):
        for path in older.values():
            ok(memory, "import", path)
            if case.stops or memory is case.mem:  # only a restore takes over which message a retracted fact stood on
                ok(memory, "extract", "--all")
            assert recalled(memory, case.later) == [], path
            assert case.later not in block(memory) + " ".join(texts(memory)), path
    assert case.sibling in block(case.mem)
    assert f"the second file has its own: {case.sibling}" in recalled(second, case.sibling)


STEPS: Mapping[int, Callable[[Case], None]] = dict(
    enumerate(
        (
            write_from_a_transcript,
            it_is_recalled,
            forget_it,
            not_recalled,
            import_the_same_again,
            not_recalled_after_import,
            every_maintenance,
            not_recalled_after_maintenance,
            nothing_derived_holds_it,
            the_log_tells_it,
            export_and_copy_before,
            forget_the_original,
            not_in_the_second_scope_nor_from_the_export,
        ),
        start=1,
    )
)
NEEDS: Mapping[int, frozenset[int]] = {
    **{step: frozenset({1, 2}) for step in (4, 6, 8, 9)},
    13: frozenset({11, 12}),
}
"""The steps whose presence each absence stands beside: where one of them failed, the absence says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one step, and why."""

    verdict: str
    why: str = ""


def run_steps(case: Case) -> dict[int, Verdict]:
    """Return the verdict of each step, run in their order; a step that fails does not end the sequence."""
    found: dict[int, Verdict] = {}
    for number, step in STEPS.items():
        lost = [need for need in sorted(NEEDS.get(number, ())) if found[need].verdict != PASS]
        if lost:
            found[number] = Verdict(verdict=UNEXERCISED, why=f"its control is missing: step {lost[0]} did not pass")
            continue
        try:
            step(case)
        except AssertionError as problem:
            found[number] = Verdict(verdict=FAIL, why=str(problem).partition("\n")[0])
        else:
            found[number] = Verdict(verdict=PASS)
    return found
