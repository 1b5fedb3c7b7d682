"""Every console block of the README is run, and prints what the README says; so is its Python."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import consoles
from tests.docs.consoles import Block

TEXT = consoles.README.read_text(encoding="utf-8")
BLOCKS = list(consoles.blocks(TEXT))


SAMPLES = {
    "chat_store.json": "llamaindex/li02_chat_store_0_14.json",
    "history.db": "mem0/me01_history.db",
    "longmemeval_probes.jsonl": "openai_messages/longmemeval_probes.jsonl",
    "longmemeval_sample.json": "openai_messages/longmemeval_sample.json",
    "session.jsonl": "claude_code/cc03_small_complete.jsonl",
    "tank.jsonl": "mcp_memory/mm03_think_tank_14.jsonl",
}
"""Files that the README names, and which fixture each is."""


def stories() -> dict[str, list[Block]]:
    """Return the blocks that go on from each other: the guide up to a new folder, and each recipe by itself."""
    found: dict[str, list[Block]] = {}
    guide = "Guide"
    for block in BLOCKS:
        if block.chapter == "Guide" and block.fresh:
            guide = f"Guide: {block.section}"
        name = guide if block.chapter == "Guide" else f"{block.chapter}: {block.section}"
        found.setdefault(name, []).append(block)
    return found


def furnish(folder: Path) -> None:
    """Put the files that the README names into a folder."""
    for transcript in consoles.TRANSCRIPTS.glob("*.json"):
        shutil.copyfile(transcript, folder / transcript.name)
    for name, fixture in SAMPLES.items():
        shutil.copyfile(consoles.ROOT / "fixtures" / fixture, folder / name)


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
    furnish(tmp_path)

    assert "\n".join(differences(stories()[name], tmp_path)) == ""


def test_the_guide_and_the_recipes_are_among_what_is_run():
    assert {"Guide", "Guide: Sharing a memory among agents", "Recipes: An agent that writes"} <= stories().keys()
    assert sum(len(block.exchanges) for block in BLOCKS) >= 150


def test_every_file_that_the_readme_is_given_is_named_in_it():
    assert [name for name in SAMPLES if name not in TEXT] == []


# ---------------------------------------------------------------- Python


def pythons() -> list[str]:
    """Return the blocks of Python."""
    return re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def python(interpreter: str, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Return what came of running some Python in a folder."""
    env = consoles.environment(folder)
    return subprocess.run([interpreter, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_the_python_of_the_guide_prints_what_the_readme_says(tmp_path):
    code, said = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", TEXT, re.DOTALL).groups()

    done = python(sys.executable, code, tmp_path)

    assert (done.stderr, done.stdout) == ("", said)


@pytest.mark.skipif("MEM_ORACLE_PYTHON" not in os.environ, reason="MEM_ORACLE_PYTHON names no Python with llama_index")
def test_the_python_for_llamaindex_puts_the_block_into_a_prompt(tmp_path):
    code = next(code for code in pythons() if "llama_index" in code)
    furnish(tmp_path)
    consoles.run("mem init --admission direct; mem import chat_store.json; mem extract", tmp_path, piped=True)

    done = python(os.environ["MEM_ORACLE_PYTHON"], code, tmp_path)

    assert "the user's personal best time is 27:12" in done.stdout, done.stderr


def test_all_python_of_the_readme_is_python():
    assert [type(ast.parse(code)) for code in pythons()] == [ast.Module, ast.Module]


# ---------------------------------------------------------------- how an output is compared


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
