"""Rules of the house that no linter knows: how long things may be, how data is declared, what files may mention."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FUNCTION = 40
LONGEST_FILE = 800
DECLARED = frozenset({"frozen", "slots", "kw_only"})
BUILDERS = frozenset({"Draft"})
"""Dataclasses that grow while something is read, and are handed on as frozen data."""

FOLDERS_OF_ONE_MACHINE = re.compile(r"(?<![\w.:/~-])/(?:root|work)(?![\w-])")
"""Folders that stand at the top of the machine that somebody happened to work on."""


def long_parts(source: str) -> list[str]:
    """Return a sentence for each function that is too long, docstring counted, and for the file.

    A signature does not count: that of a command is the list of its options.
    """
    lines = len(source.splitlines())
    found = [f"{lines} lines"] if lines > LONGEST_FILE else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            if length > LONGEST_FUNCTION:
                found.append(f"line {node.lineno}: {node.name} has {length} lines")
    return found


def loose_dataclasses(source: str) -> list[str]:
    """Return the names of dataclasses that are not frozen, slotted and keyword-only."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for mark in node.decorator_list if isinstance(node, ast.ClassDef) else []:
            call = mark.func if isinstance(mark, ast.Call) else mark
            said = {word.arg for word in mark.keywords if ast.unparse(word.value) == "True"} if call is not mark else ()
            needed = DECLARED - {"frozen"} if node.name in BUILDERS else DECLARED
            # `record` makes nothing but frozen, slotted, keyword-only ones.
            if ast.unparse(call).split(".")[-1] == "dataclass" and not needed.issubset(said):
                found.append(node.name)
    return found


def machine_paths(text: str, own: tuple[str, ...] = ()) -> list[str]:
    """Return what in a text names a folder of one machine; `own` are those of the machine that runs this."""
    return [match.group() for match in FOLDERS_OF_ONE_MACHINE.finditer(text)] + [path for path in own if path in text]


def own_paths() -> tuple[str, ...]:
    """Return the checkout and, where one is active, the virtual environment; short ones could be anybody's."""
    paths = [ROOT, *([Path(sys.prefix)] if sys.prefix != sys.base_prefix else [])]
    return tuple(str(path) for path in paths if len(path.parts) > 2)


def files() -> list[Path]:
    """Return what the checkout tracks or would track; from an unpacked archive, all that is in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def sources() -> list[Path]:
    """Return every Python file of the product and its tests."""
    return [path for folder in ("memcli", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.no_cover
def test_no_function_and_no_file_is_too_long():
    checked = sources()

    assert {ROOT / "memcli/facts.py", Path(__file__)} <= set(checked)
    assert [f"{path}: {found}" for path in checked for found in long_parts(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("opening", ["def long():\n", "async def long():\n", "class C:\n  def long(self):\n"])
def test_a_function_of_forty_lines_passes_and_one_more_is_named(opening):
    fits = opening + "    x = 1\n" * LONGEST_FUNCTION

    assert long_parts(fits) == []
    assert len(long_parts(fits + "    x = 1\n")) == 1


def test_a_file_of_eight_hundred_lines_passes_and_one_more_is_named():
    fits = "x = 1\n" * LONGEST_FILE

    assert long_parts(fits) == []
    assert long_parts(fits + "x = 1\n") == [f"{LONGEST_FILE + 1} lines"]


@pytest.mark.no_cover
def test_every_dataclass_of_the_product_is_frozen_slotted_and_keyword_only():
    product = [path for path in sources() if (ROOT / "memcli") in path.parents]

    assert "@record" in (ROOT / "memcli/facts.py").read_text(encoding="utf-8")
    assert {path: found for path in product if (found := loose_dataclasses(path.read_text(encoding="utf-8")))} == {}


def test_a_dataclass_that_lacks_one_of_the_three_is_named():
    whole = "@dataclass(frozen=True, slots=True, kw_only=True)\nclass Whole: ...\n"
    bare = "@dataclasses.dataclass\nclass Bare: ...\n"
    partly = "@dataclass(frozen=True, slots=True)\nclass Partly: ...\n"
    denied = "@dataclass(frozen=True, slots=True, kw_only=False)\nclass Denied: ...\n"

    assert loose_dataclasses(whole + bare + partly + denied) == ["Bare", "Partly", "Denied"]


def test_a_builder_may_grow_and_must_still_be_slotted():
    grows = "@dataclass(slots=True, kw_only=True)\nclass Draft: ...\n"

    assert loose_dataclasses(grows) == []
    assert loose_dataclasses(grows.replace("slots=True, ", "")) == ["Draft"]


def test_no_file_mentions_a_folder_of_one_machine():
    checked = files()

    assert {ROOT / "pyproject.toml", ROOT / "memcli/facts.py", ROOT / ".ci/run"} <= set(checked)
    assert {
        path: found
        for path in checked
        if (found := machine_paths(path.read_bytes().decode("utf-8", errors="replace"), own_paths()))
    } == {}


def test_a_folder_of_one_machine_is_found_and_a_folder_of_the_product_is_not():
    top = "/"  # apart from what follows, or this very file would be found

    assert machine_paths(f"see `{top}root/notes.md` and {top}work/main") == [f"{top}root", f"{top}work"]
    assert machine_paths("see /srv/checkout/x", own=("/srv/checkout",)) == ["/srv/checkout"]
    assert machine_paths("home/work/x https://example.com/work/ memcli/root /workshop ./root ~/work") == []
