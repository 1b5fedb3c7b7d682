"""The thirteen steps of a deletion, as functions over any memory with this command line.

The steps speak only through words and results, so the same steps run against `mem` and against a store that leaks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.driver import Memory
from tests.acceptance.material import claude_code, openai, token
from tests.acceptance.questions import block, decisions, events, find, has, recalled, texts
from tests.acceptance.report import FAIL, PASS

WHY = "anna asked for it"
FORGETTING: Mapping[str, tuple[str, ...]] = {"tombstone": (), "retract": (), "erase": ("--yes",)}
"""The ways to forget, with the options that a script needs."""

SECOND = "second"
"""The scope that took a copy before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One deletion: the words that are to go, and beside each a sibling that is to stay.

    Args:
        later: The word of steps 11 to 13, which is copied before it is forgotten.
    """

    mem: Memory
    how: str
    word: str
    sibling: str
    later: str

    @property
    def said(self) -> list[str]:
        """Return what the transcript says."""
        return [f"FACT: the pass of the depot is {self.word}", f"FACT: the pass of the tower is {self.sibling}"]

    @property
    def decided(self) -> Path:
        """Return the decisions file by which the fact was accepted before it was forgotten."""
        return self.mem.folder / "old-decisions.jsonl"

    def forget(self, word: str) -> None:
        """Forget the fact that holds a word."""
        fact = find(self.mem, word)
        done = self.mem.run(self.how, fact, "--reason", WHY, "--actor", "rita", *FORGETTING[self.how])
        assert done.code == 0, done.err


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


def forget_it(case: Case) -> None:
    case.forget("the pass of the depot")


def not_recalled(case: Case) -> None:
    gone(case)


def import_the_same_again(case: Case) -> None:
    ok(case.mem, "import", claude_code(case.mem.folder / "under-another-name.jsonl", case.said))
    ok(case.mem, "extract")


def not_recalled_after_import(case: Case) -> None:
    gone(case)


def every_maintenance(case: Case) -> None:
    for command in ("extract", "rebuild", "migrate", "check"):
        ok(case.mem, command)
    if has(case.mem, "review"):
        assert case.mem.run("review", "apply", str(case.decided), "--actor", "rita").code in (0, 3)
        ok(case.mem, "review", "list")


def not_recalled_after_maintenance(case: Case) -> None:
    gone(case)


def nothing_derived_holds_it(case: Case) -> None:
    mem = case.mem
    for told in (block(mem), block(mem, case.word), " ".join(texts(mem)), " ".join(recalled(mem, "opens depot"))):
        assert case.word not in told
    assert case.sibling in block(mem)
    if case.how == "erase":
        held = b"".join(path.read_bytes() for path in mem.files)
        assert case.word.encode() not in held
        assert case.sibling.encode() in held
        assert case.word not in " ".join(text or "" for text in texts(mem, "--all-states"))
        assert mem.run("check", "--residue", case.word).code == 0
        assert mem.run("check", "--residue", case.sibling).code == 1


def the_log_tells_it(case: Case) -> None:
    told = [event for event in events(case.mem) if event["reason"] == WHY]
    assert told
    assert {event["actor"]["name"] for event in told} == {"rita"}
    assert {"tombstone": "reject", "retract": "retract", "erase": "erase"}[case.how] in {event["op"] for event in told}
    assert any(event["op"] == "import" for event in events(case.mem))
    if case.how == "erase":
        assert case.word not in ok(case.mem, "log", "--json")


def copy_to_a_second_scope(case: Case) -> None:
    text = f"the pass of the harbour is {case.later}"
    ok(case.mem, "import", openai(case.mem.folder / "harbour.json", [f"FACT: {text}"]))
    ok(case.mem, "extract")
    ok(case.mem, "add", text, "--derived-from", find(case.mem, case.later), scope=SECOND)
    ok(case.mem, "add", f"the second scope has its own: {case.sibling}", scope=SECOND)
    assert recalled(case.mem, case.later, scope=SECOND) == [text]


def forget_the_original(case: Case) -> None:
    case.forget(case.later)
    assert recalled(case.mem, case.later) == []


def not_in_the_second_scope_either(case: Case) -> None:
    assert recalled(case.mem, case.sibling, scope=SECOND) == [f"the second scope has its own: {case.sibling}"]
    assert recalled(case.mem, case.later, scope=SECOND) == []
    assert case.later not in block(case.mem, scope=SECOND)
    assert case.sibling in block(case.mem, scope=SECOND)


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
            copy_to_a_second_scope,
            forget_the_original,
            not_in_the_second_scope_either,
        ),
        start=1,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one step, and why."""

    verdict: str
    why: str = ""


def run_steps(case: Case) -> dict[int, Verdict]:
    """Return the verdict of each step, run in their order; a step that fails does not end the sequence."""
    found: dict[int, Verdict] = {}
    for number, step in STEPS.items():
        try:
            step(case)
        except AssertionError as problem:
            found[number] = Verdict(verdict=FAIL, why=str(problem).partition("\n")[0])
        else:
            found[number] = Verdict(verdict=PASS)
    return found
