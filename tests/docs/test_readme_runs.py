"""Every console block of the README is run, and prints what the README says."""

import shutil

import pytest

from tests.docs import consoles
from tests.docs.consoles import Block

TEXT = consoles.README.read_text(encoding="utf-8")
BLOCKS = list(consoles.blocks(TEXT))


def stories() -> dict[str, list[Block]]:
    """Return the blocks that go on from each other: all of the guide, and each recipe by itself."""
    found: dict[str, list[Block]] = {}
    for block in BLOCKS:
        name = block.chapter if block.chapter == "Guide" else f"{block.chapter}: {block.section}"
        found.setdefault(name, []).append(block)
    return found


def differences(story: list[Block], folder) -> list[str]:
    """Return what is not as the README says, each with its line, when the blocks are run in the folder."""
    ids: dict[str, str] = {}
    found: list[str] = []
    for block in story:
        status = 0
        for number, exchange in enumerate(block.exchanges):
            following = block.exchanges[number + 1 :]
            if exchange.command == "echo $?":
                said = f"{status}\n"
            else:
                typed = () if following else block.typed
                command = consoles.filled(exchange.command, ids)
                said, status = consoles.run(command, folder, piped=block.piped, typed=typed)
                if status and not (following and following[0].command == "echo $?"):
                    found.append(f"line {exchange.line}: `{exchange.command}` ended with {status}:\n{said}")
            if not consoles.same(exchange.output, said, ids):
                found.append(f"line {exchange.line}: `{exchange.command}` printed\n{said}")
    return found


@pytest.mark.parametrize("name", stories())
def test_the_readme_prints_what_really_comes_out(name, tmp_path):
    samples = consoles.ROOT / "fixtures/openai_messages"
    for transcript in (*consoles.TRANSCRIPTS.glob("*.json"), *samples.glob("longmemeval_*.json*")):
        shutil.copy(transcript, tmp_path)

    assert "\n".join(differences(stories()[name], tmp_path)) == ""


def test_the_guide_and_the_recipes_are_among_what_is_run():
    assert {"Guide", "Recipes: An agent that writes"} <= stories().keys()
    assert sum(len(block.exchanges) for block in BLOCKS) >= 40


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("added 4f2a · accepted", "added 4f2a · rejected"),
        ("one\ntwo", "one"),
        ("", "something"),
        ("a\n…\nb", "a\nc"),
    ],
)
def test_an_output_that_says_something_else_is_found(said, found):
    assert consoles.same(said, said, {})
    assert not consoles.same(said, found, {})


def test_an_id_stands_for_the_same_id_from_then_on():
    ids: dict[str, str] = {}

    assert consoles.same("added 4f2a\nheld 9c01, not 4f2a", "added 77ab\nheld 1234, not 77ab", ids)
    assert ids == {"4f2a": "77ab", "9c01": "1234"}
    assert consoles.filled("mem why 4f2a", ids) == "mem why 77ab"
    assert consoles.same("why 4f2a", "why 77ab", ids)
    assert not consoles.same("why 4f2a", "why 1234", ids)
    assert not consoles.same("see 4f2a9c017d00ab01", "see 88ab9c017d00ab01", ids)


def test_dates_and_hashes_may_differ_and_the_words_around_them_may_not():
    assert consoles.same("known since 30 Nov 2026", "known since\n  1 Dec 2026", {})
    assert not consoles.same("known since 30 Nov 2026", "true since 1 Dec 2026", {})
