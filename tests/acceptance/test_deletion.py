"""Deletion: thirteen steps for each way to forget, and a leaky memory that they catch."""

from collections.abc import Callable

import pytest

from tests.acceptance.deletion import FORGETTING, NAMED_EXPORTS, STEPS, Verdict, new_case, run_steps
from tests.acceptance.driver import Mem
from tests.acceptance.leaky import Leaky
from tests.acceptance.material import EXPORTS, claude_code, openai, token
from tests.acceptance.questions import EVERYWHERE, find, readable_anywhere, recalled, refusals, texts
from tests.acceptance.report import FAIL, PASS, UNEXERCISED


@pytest.fixture(scope="module", params=FORGETTING)
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def sequence(how: str, new_mem: Callable[[], Mem]) -> dict[int, Verdict]:
    """Return the verdicts of the thirteen steps for one way to forget."""
    return run_steps(new_case(new_mem(), how))


@pytest.mark.shows("deletion.absent_after_reindex_and_restart")
@pytest.mark.matrix("Thirteen-step deletion sequence", "how", "step")
@pytest.mark.parametrize("step", STEPS)
def test_what_was_forgotten_stays_gone_through_thirteen_steps(sequence, how, step):
    if sequence[step].verdict == UNEXERCISED:
        pytest.skip(sequence[step].why)
    assert sequence[step].verdict == PASS, sequence[step].why


def test_the_thirteen_steps_catch_a_memory_that_leaks(tmp_path):
    for how in FORGETTING:
        folder = tmp_path / how
        folder.mkdir()
        verdicts = run_steps(new_case(Leaky(folder), how))

        passed = {step for step, verdict in verdicts.items() if verdict.verdict == PASS}
        failed = {step for step, verdict in verdicts.items() if verdict.verdict == FAIL}
        assert {1, 2, 3, 4, 5, 7, 11, 12} <= passed, verdicts
        assert {6, 8, 9, 10, 13} == failed, verdicts


@pytest.mark.shows("deletion.absent_after_reindex_and_restart")
@pytest.mark.parametrize("what", ["fact", "value", "source"])
def test_no_probe_finds_an_erased_word_after_rebuild_in_a_new_process(mem, what):
    word, sibling = token(), token()
    mem.ok("import", openai(mem.folder / "talk.json", [f"FACT: the pass of the depot is {word}"]))
    mem.ok("import", claude_code(mem.folder / "other.jsonl", [f"FACT: the pass of the tower is {sibling}"]))
    mem.ok("extract")
    fact = find(mem, word)
    mem.ok(
        "correct",
        fact,
        f"the pass of the depot is {word} or so",
        "--reason",
        f"heard that the pass of the depot is {word}",
    )
    before = readable_anywhere(mem, word)

    target = {"fact": [fact], "value": ["--value", word.upper()], "source": ["--source", "s1"]}[what]
    mem.ok("erase", *target, "--reason", "asked to", "--yes", process=True)
    mem.ok("rebuild", process=True)
    assert before == EVERYWHERE
    probes = [
        ("show", "--all-states", "--json"),
        ("recall", word, "--json"),
        ("context", word, "--json"),
        ("log", "--json"),
        ("why", fact, "--json"),
        ("import", "--list", "--json"),
        ("extract", "--dry-run", "--json"),
    ]
    told = "".join(mem.run(*probe, process=True).out for probe in probes)
    held = b"".join(path.read_bytes() for path in mem.files).lower()
    # Only who erased by the source leaves the correction, which has its own evidence.
    assert (word in told, word.encode() in held) == ((True, True) if what == "source" else (False, False))
    assert sibling in told
    assert sibling.encode() in held
    assert recalled(mem, sibling) == [f"the pass of the tower is {sibling}"]
    mem.ok("check")


@pytest.mark.shows("deletion.absent_after_reindex_and_restart")
def test_the_value_of_an_erased_slot_is_gone_from_the_reasons_for_what_was_done_to_it(mem):
    word, sibling = token(), token()
    slot = ("--subject", "depot", "--attribute", "pass", "--value", word)
    fact = mem.ok("add", f"the pass of the depot is {word}", *slot, "--json").json()["id"]
    other = mem.ok("add", "the tower has a pass", "--json").json()["id"]
    mem.ok("dispute", fact, "--reason", f"is it {word}")
    mem.ok("dispute", other, "--reason", f"is it {sibling}")
    mem.ok("tombstone", fact, "--reason", f"{word} never opened it")

    mem.ok("erase", fact, "--reason", "asked to", "--yes")
    held = b"".join(path.read_bytes() for path in mem.files)
    assert word not in mem.ok("log", "--json").out
    assert word.encode() not in held
    assert sibling in mem.ok("log", "--json").out
    mem.ok("check")


@pytest.mark.shows("deletion.absent_after_reindex_and_restart")
def test_the_reason_for_an_erase_may_not_repeat_the_words(mem):
    word = token()
    fact = mem.ok("add", f"the pass is {word}", "--json").json()["id"]

    assert mem.run("erase", fact, "--reason", f"the pass is {word}, and wrong", "--yes").code == 3
    assert readable_anywhere(mem, word) == EVERYWHERE
    mem.ok("erase", fact, "--reason", "it was wrong", "--yes")
    assert readable_anywhere(mem, word) == []


@pytest.mark.shows("deletion.absent_after_reindex_and_restart")
def test_an_erased_value_is_still_refused_though_no_word_of_it_is_kept(mem):
    word = token()
    fact = mem.ok("add", f"the pass is {word}", "--json").json()["id"]
    mem.ok("erase", fact, "--reason", "asked to", "--yes")

    refused = mem.run("add", f"The PASS is {word}!", "--json")
    assert (refused.code, refused.error) == (3, "tombstoned")
    assert word not in refused.err
    assert word.encode() not in b"".join(path.read_bytes() for path in mem.files)
    assert mem.run("add", "the pass is another", "--json").code == 0


@pytest.mark.shows("deletion.absent_from_shared_copies")
@pytest.mark.parametrize("how", FORGETTING)
def test_a_copy_in_another_scope_goes_with_the_original_also_where_it_was_copied_on(mem, how):
    word, own = token(), token()
    text = f"the pass is {word}"
    first = mem.ok("add", text, "--json").json()["id"]
    second = mem.ok("add", text, "--derived-from", first, "--json", scope="b").json()["id"]
    mem.ok("add", text, "--derived-from", second, scope="c")
    for scope in ("b", "c"):
        mem.ok("add", f"the gate is {own}", scope=scope)
    before = [readable_anywhere(mem, word, scope=scope) for scope in ("b", "c")]

    mem.ok(how, first, "--reason", "asked to", *FORGETTING[how])
    assert before == [EVERYWHERE, EVERYWHERE]
    for scope in ("b", "c"):
        assert readable_anywhere(mem, word, scope=scope) == []
        assert readable_anywhere(mem, own, scope=scope) == EVERYWHERE


@pytest.mark.shows("deletion.absent_from_shared_copies")
@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize("slot", [False, True], ids=["free text", "slot"])
@pytest.mark.parametrize("how", ["tombstone", "erase"])
def test_an_older_export_brings_nothing_back_here_nor_where_the_tombstones_went(mem, how, slot, form):
    word, sibling, own = token(), token(), token()
    said = [f"FACT: {'depot | pass |' if slot else 'the pass of the depot is'} {word}", f"FACT: the gate is {sibling}"]
    mem.ok("import", openai(mem.folder / "talk.json", said))
    mem.ok("extract")
    mem.ok("export", "--format", form, "-o", "older")
    mem.ok(how, find(mem, word), "--reason", "asked to", *FORGETTING[how])
    mem.ok("export", "-o", "newer")
    second = mem.beside("second")
    second.ok("import", "newer")
    second.ok("add", f"the second file has its own: {own}")

    for memory in (mem, second):
        memory.ok("import", "older")
        memory.ok("extract", "--all")
        assert readable_anywhere(memory, word) == []
        assert refusals(memory)[-1].startswith("t")
        assert readable_anywhere(memory, sibling) == EVERYWHERE
    assert readable_anywhere(second, own) == EVERYWHERE
    assert (mem.run("check", "--residue", word).code, how) in ((0, "erase"), (1, "tombstone"))
    assert word in (mem.folder / "older").read_text(encoding="utf-8")


@pytest.mark.shows("deletion.absent_from_shared_copies")
@pytest.mark.parametrize("form", NAMED_EXPORTS)
def test_an_older_export_that_names_its_facts_does_not_undo_a_retraction(mem, form):
    gone, changed, now, kept = (token() for _ in range(4))
    facts = [mem.ok("add", f"the pass is {word}", "--json").json()["id"] for word in (gone, changed, kept)]
    mem.ok("export", "--format", form, "-o", "older")
    mem.ok("retract", facts[0], "--reason", "asked to")
    mem.ok("correct", facts[1], f"the pass is {now}", "--reason", "asked to")

    mem.ok("import", "older")
    assert sorted(texts(mem)) == sorted(f"the pass is {word}" for word in (now, kept))
    assert sorted(refusals(mem)) == sorted(facts[:2])


@pytest.mark.shows("deletion.absent_from_shared_copies")
def test_a_person_restores_no_older_export_over_a_file_that_took_the_tombstones(mem):
    word, own = token(), token()
    mem.ok("add", f"the pass is {word}")
    mem.ok("export", "-o", "older")
    mem.ok("erase", find(mem, word), "--reason", "asked to", "--yes")
    mem.ok("export", "-o", "newer")
    second = mem.beside("second")
    second.ok("import", "newer")
    second.ok("add", f"the gate is {own}")

    assert second.run("import", "--restore", "older", "--reason", "it is older", at_terminal=True).code == 3
    assert readable_anywhere(second, word) == []
    assert readable_anywhere(second, own) == EVERYWHERE
