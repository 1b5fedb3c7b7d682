"""Correction in five shapes: what is current, what is history, and that nothing brings the old value back."""

from collections.abc import Callable
from dataclasses import dataclass
from html import unescape

import pytest

from tests.acceptance.driver import Mem
from tests.acceptance.material import EXPORTS, TRANSCRIPTS, claude_code, openai, token
from tests.acceptance.questions import (
    EVERYWHERE,
    block,
    condensing,
    extract,
    facts,
    find,
    readable_anywhere,
    recalled,
    texts,
)

BECAUSE = ("--reason", "anna said so")
MAINTENANCE = [
    ("extract", "--all"),
    ("condense",),
    ("rebuild",),
    ("migrate",),
    ("tx", "recover"),
    ("check",),
    ("log", "verify"),
]
NAMED_EXPORTS = ("mem", "mem0")
"""The exports that say which fact each statement was; a list that only says it again is new evidence, by design."""
THEN, SINCE = "2024-06-01", "2025-01-01"
"""A day in the old value's own time, and the day from which another one holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way in which a memory is corrected; `{}` in its texts becomes a random word.

    Args:
        said: What the transcript says, as the built-in extractor reads it.
        old: The fact that is made of it.
        new: What holds now; None where nothing does.
        change: Makes the correction of a fact, given the old and the new text.
        own_time: Whether the old value was true once, and is to be answered for that time.
    """

    said: str
    old: str
    new: str | None
    change: Callable[[Mem, str, str, str], None]
    own_time: bool


def replace(mem: Mem, fact: str, _: str, new: str) -> None:
    mem.ok("correct", fact, new, "--valid-from", SINCE, *BECAUSE)


def put_right(mem: Mem, fact: str, _: str, new: str) -> None:
    mem.ok("correct", fact, new, *BECAUSE)


def retract(mem: Mem, fact: str, _: str, __: str) -> None:
    mem.ok("retract", fact, *BECAUSE)


def bound(mem: Mem, fact: str, old: str, new: str) -> None:
    value = new.rpartition(" ")[2]
    mem.ok("correct", fact, old, "--valid-from", "2024-01-01", "--valid-to", SINCE, *BECAUSE)
    mem.ok("add", new, "--subject", "anna", "--attribute", "desk", "--value", value, "--valid-from", SINCE)


SHAPES = {
    "replacement": Shape(
        said="FACT: anna | home city | old{}",
        old="anna's home city is old{}",
        new="anna's home city is new{}",
        change=replace,
        own_time=True,
    ),
    "polarity flip": Shape(
        said="FACT: anna eats fish at {}",
        old="anna eats fish at {}",
        new="anna does not eat fish at {}",
        change=put_right,
        own_time=False,
    ),
    "retraction": Shape(
        said="FACT: anna owns the boat {}", old="anna owns the boat {}", new=None, change=retract, own_time=False
    ),
    "partial supersession": Shape(
        said="FACT: the shop {} opens on Monday and on Friday",
        old="the shop {} opens on Monday and on Friday",
        new="the shop {} opens on Monday",
        change=put_right,
        own_time=False,
    ),
    "bounded validity": Shape(
        said="FACT: anna | desk | old{}",
        old="anna's desk is old{}",
        new="anna's desk is new{}",
        change=bound,
        own_time=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a memory answers at one moment: what it shows and recalls, and the lines of its block."""

    shown: list[str]
    found: list[str]
    lines: list[str]

    def holds(self, text: str) -> bool:
        """Return whether every way of asking gives this text."""
        return all(text in told for told in (self.shown, self.found, self.lines))

    def lacks(self, text: str) -> bool:
        """Return whether no way of asking gives this text, alone or inside another."""
        return not any(text in said for said in (*self.shown, *self.found, *self.lines))


class Corrected:
    """A memory that was corrected in one shape, and what it answered after each stage."""

    def __init__(self, mem: Mem, shape: Shape) -> None:
        self.mem, self.shape = mem, shape
        self.word, self.near = token(), token()
        self.old = shape.old.format(self.word)
        self.new = shape.new and shape.new.format(self.word)
        self.said = [shape.said.format(self.word), f"FACT: the near thing is {self.near}"]
        mem.ok("import", openai(mem.folder / "talk.json", self.said))
        mem.ok("extract")
        self.fact = find(mem, self.old)
        mem.ok("add", f"profile: {self.old}", "--derived-from", self.fact, "--kind", "summary")
        self.view = find(mem, "profile: ")
        self.first = self.look()
        self.taken_out = self.exports("before")
        self.known = mem.ok("log", "--json").json()[-1]["at"]
        shape.change(mem, self.fact, self.old, self.new or "")
        self.after = self.look()
        self.maintain()
        self.tended = self.look()
        self.by_path = {name: self.again(name) for name in (*TRANSCRIPTS, *NAMED_EXPORTS)}
        self.reimported = self.look()

    def look(self) -> Look:
        """Return what the memory answers now."""
        lines = block(self.mem).splitlines() + block(self.mem, self.word).splitlines()
        return Look(
            shown=texts(self.mem),
            found=recalled(self.mem, f"{self.word} old{self.word} new{self.word} {self.near}"),
            lines=[line.partition("] ")[2] for line in lines],
        )

    def maintain(self) -> None:
        """Run every maintenance there is, each as a new process."""
        for words in MAINTENANCE:
            self.mem.ok(*words, process=True)

    def exports(self, name: str) -> dict[str, str]:
        """Take everything out in every format, and return what each file holds."""
        found = {}
        for form in EXPORTS:
            path = self.mem.folder / f"{name}.{form}"
            self.mem.ok("export", "--format", form, "-o", str(path))
            found[form] = path.read_text(encoding="utf-8")
        return found

    def again(self, name: str) -> str | None:
        """Bring the old material in by another path, and return what became of the old value where it was offered."""
        if name in EXPORTS:
            self.mem.ok("import", str(self.mem.folder / f"before.{name}"))
            return None
        self.mem.ok("import", TRANSCRIPTS[name](self.mem.folder / f"again-{name}", self.said))
        return extract(self.mem)[self.old]


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def done(shape: str, new_mem: Callable[[], Mem]) -> Corrected:
    """Return the memory of this shape, which all questions about it share."""
    return Corrected(new_mem(), SHAPES[shape])


def current(done: Corrected, look: Look) -> None:
    """Assert that the new value is the answer and the old one is none; the neighbour shows that there are answers."""
    assert done.first.holds(done.old)
    assert done.new is None or look.holds(done.new)
    assert look.lacks(done.old)
    assert look.holds(f"the near thing is {done.near}")


def a_current_answer(done: Corrected) -> None:
    assert done.new is None or done.after.holds(done.new)
    assert done.old not in done.after.shown + done.after.found
    assert f"the near thing is {done.near}" in done.after.found


def b_no_stale_value(done: Corrected) -> None:
    assert done.old in done.first.lines
    assert not [line for line in done.after.lines if done.old in line]
    assert f"the near thing is {done.near}" in done.after.lines


def c_after_maintenance(done: Corrected) -> None:
    current(done, done.tended)
    assert done.tended == done.after


def c_after_import(done: Corrected) -> None:
    current(done, done.reimported)
    assert {outcome for outcome in done.by_path.values() if outcome is not None} <= {"echo", "same"}
    assert len(done.by_path) == len(TRANSCRIPTS) + len(NAMED_EXPORTS)
    assert [fact["id"] for fact in facts(done.mem, "--all-states") if fact["text"] == done.old] in ([], [done.fact])


def d_own_time(done: Corrected) -> None:
    mem = done.mem
    assert done.old in texts(mem, "--known-at", done.known)
    assert done.old not in texts(mem)
    then = texts(mem, "--valid-at", THEN)
    assert (done.old in then) is done.shape.own_time
    assert done.old not in texts(mem, "--valid-at", "2026-01-01")
    assert [done.old, done.new][: 1 if done.new is None else 2] == history(done)


def history(done: Corrected) -> list[str]:
    """Return the different texts that the versions hold, and that of a successor in the slot."""
    versions = [version["text"] for version in done.mem.ok("why", done.fact, "--json").json()["versions"]]
    later = [text for text in texts(done.mem) if text == done.new]
    return list(dict.fromkeys([*sorted(versions, key=lambda text: text != done.old), *later]))


def e_derived_agrees(done: Corrected) -> None:
    mem, told = done.mem, f"profile: {done.old}"
    assert done.first.holds(told)
    for look in (done.after, done.tended, done.reimported):
        assert told not in look.shown + look.found + look.lines
    assert mem.ok("show", done.view, "--json").json()["state"] in ("disputed", "revoked", "superseded")
    exports_agree(done)
    pages_agree(done)
    mem.ok("condense")
    current(done, done.look())
    summaries_agree(done)
    assert mem.run("check").code == 0


def exports_agree(done: Corrected) -> None:
    """Assert that what is taken out now says what holds now, and what was taken out before said the old."""
    for form, said in done.exports("now").items():
        assert done.old in done.taken_out[form], form
        assert done.near in said, form
        if form != "mem":  # which is complete, and holds the history too
            assert done.old not in said, form
            assert done.new is None or done.new in said, form
    fresh = Mem(done.mem.folder, "fresh.db")
    fresh.ok("import", str(done.mem.folder / "now.mem"))
    assert done.old not in texts(fresh)
    assert f"the near thing is {done.near}" in texts(fresh)
    assert done.new is None or done.new in texts(fresh)


def pages_agree(done: Corrected) -> None:
    """Assert that the page of what is believed says what holds now."""
    done.mem.ok("show", "--html", "now.html", "--force")
    page = unescape((done.mem.folder / "now.html").read_text(encoding="utf-8"))
    assert done.old not in page
    assert done.near in page
    assert done.new is None or done.new in page


def summaries_agree(done: Corrected) -> None:
    """Assert that a summary which is built anew says what holds now, and that none is where no parent survives."""
    mem = done.mem
    rebuilt = mem.run("rebuild", done.view, "--reason", "its parent changed", "--json")
    if done.new is None:
        assert rebuilt.code == 3, rebuilt.out
        return
    assert rebuilt.code == 0, rebuilt.err
    view = rebuilt.json()
    if view["valid_to"] is None:
        assert view["text"] in texts(mem)
        return
    # Its parent is true for a time that is over; so is what is built on it, and it answers for that time alone.
    assert view["text"] not in texts(mem)
    assert view["text"] in texts(mem, "--valid-at", view["valid_from"])
    current(done, done.look())


QUESTIONS = {
    "A": a_current_answer,
    "B": b_no_stale_value,
    "C": c_after_maintenance,
    "C′": c_after_import,
    "D": d_own_time,
    "E": e_derived_agrees,
}


@pytest.mark.shows("correction.survives_reindex")
@pytest.mark.matrix("Contradiction matrix", "shape", "question")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_correction_is_the_answer_and_stays_it(done, shape, question):
    QUESTIONS[question](done)


@pytest.mark.shows("correction.survives_reindex")
def test_a_better_record_in_a_slot_supersedes_and_the_old_one_is_history(mem):
    old, new = token(), token()
    slot = ("--subject", "anna", "--attribute", "home city", "--value")
    fact = mem.ok("add", f"anna lives in {old}", *slot, old, "--json").json()["id"]
    mem.ok("add", f"profile: anna lives in {old}", "--derived-from", fact, "--kind", "summary")
    mem.ok("add", f"anna lives in {new}", *slot, new, at_terminal=True)

    mem.ok("rebuild", process=True)
    assert recalled(mem, "anna lives") == [f"anna lives in {new}"]
    assert old not in block(mem)
    assert mem.ok("show", fact, "--json").json()["state"] == "superseded"
    assert mem.run("add", f"anna lives in {old}", *slot, old).code == 3
    mem.ok("log", "verify")


@pytest.mark.shows("correction.retraction_without_replacement")
@pytest.mark.parametrize("again", [openai, claude_code], ids=["same format", "another format"])
def test_a_retracted_fact_does_not_come_back_from_its_own_source(mem, again):
    gone, kept = token(), token()
    said = [f"FACT: the pass of the depot is {gone}", f"FACT: the pass of the tower is {kept}"]
    mem.ok("import", openai(mem.folder / "talk.json", said))
    mem.ok("extract")
    mem.ok("retract", find(mem, gone), *BECAUSE)

    mem.ok("import", again(mem.folder / "again.json", said))
    assert extract(mem)[f"the pass of the depot is {gone}"] == "echo"
    mem.ok("rebuild", process=True)
    assert readable_anywhere(mem, gone) == []
    assert readable_anywhere(mem, kept) == EVERYWHERE
    assert recalled(mem, "pass") == [f"the pass of the tower is {kept}"]


@pytest.mark.shows("correction.retraction_without_replacement")
def test_new_evidence_may_bring_a_retracted_value_back_as_a_new_fact(mem):
    word = token()
    mem.ok("import", openai(mem.folder / "talk.json", [f"FACT: the pass is {word}"]))
    mem.ok("extract")
    first = find(mem, word)
    mem.ok("retract", first, *BECAUSE)
    assert readable_anywhere(mem, word) == []

    mem.ok("import", openai(mem.folder / "later.json", ["I looked again.", f"It is so.\nFACT: the pass is {word}"]))
    mem.ok("extract")
    assert readable_anywhere(mem, word) == EVERYWHERE
    assert find(mem, word) != first


@pytest.mark.shows("correction.retraction_without_replacement")
def test_a_retracted_fact_takes_along_what_was_built_on_it_in_every_scope(mem):
    word, kept = token(), token()
    fact = mem.ok("add", f"the pass is {word}", "--json").json()["id"]
    mem.ok("add", f"profile: {word}", "--derived-from", fact, "--kind", "summary")
    mem.ok("add", f"who enters says {word}", "--derived-from", fact)
    mem.ok("add", f"the pass is {word}", "--derived-from", fact, scope="b")
    mem.ok("add", f"the gate is {kept}", scope="b")
    before = [readable_anywhere(mem, word, scope=scope) for scope in ("default", "b")]

    mem.ok("retract", fact, *BECAUSE)
    assert before == [EVERYWHERE, EVERYWHERE]
    assert readable_anywhere(mem, word) == []
    assert readable_anywhere(mem, word, scope="b") == []
    assert readable_anywhere(mem, kept, scope="b") == EVERYWHERE


@pytest.mark.shows("correction.retraction_without_replacement")
def test_condensing_brings_no_retracted_fact_back(mem):
    gone, one, other = token(), token(), token()
    text = f"the pass of the depot is {gone}"
    mem.ok("retract", mem.ok("add", text, "--json").json()["id"], *BECAUSE)
    ids = [mem.ok("add", f"the gate of {word} is open", "--json").json()["id"] for word in (one, other)]

    refused = mem.run("condense", "--condenser", condensing(text, ids), "--json")
    assert (refused.code, refused.error) == (3, "echo")
    mem.ok("condense")
    assert readable_anywhere(mem, gone) == []
    assert readable_anywhere(mem, one) == readable_anywhere(mem, other) == EVERYWHERE
