"""What the reference of the README lists is what there is: commands, options, codes, variables, rules, tables."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memcli import errors
from memcli.budget.findings import CODES
from memcli.budget.public import RECORDED, TYPES
from memcli.cli import build, main
from memcli.cli.manual import ENVIRONMENT, EXIT_CODES
from memcli.exchange import FORMATS
from memcli.extract import RULES
from memcli.terms import DEFAULT_AUTHORITY, MOVES, Admission
from tests.docs.consoles import README, ROOT

TEXT = README.read_text(encoding="utf-8")
HELP = {"-h", "--help"}


def section(title: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    match = re.search(rf"(?m)^(##+) {re.escape(title)}\n", TEXT)
    assert match, f"the README has no section {title}"
    end = re.compile(rf"(?m)^#{{2,{len(match[1])}}} ").search(TEXT, match.end())
    return TEXT[match.end() : end.start() if end else None]


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table of a text, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return rows[2:]


def in_code(text: str) -> set[str]:
    """Return what stands between backticks."""
    return set(re.findall(r"`([^`]+)`", text))


# ---------------------------------------------------------------- commands and options


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command of the application with its full name."""

    def below(command: Any, words: list[str]) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", {})
        if not inner or (len(words) > 1 and command.invoke_without_command):
            yield " ".join(words), command
        for name, one in inner.items():
            yield from below(one, [*words, name])

    return below(get_command(build([], whole=True)), ["mem"])


def described() -> dict[str, str]:
    """Return what the README says of each command, by its name."""
    parts = re.split(r"(?m)^#### `(mem [^`]+)`\n", section("Commands"))[1:]
    names = [re.match(r"[a-z ]+", signature)[0].strip() for signature in parts[::2]]  # type: ignore[index]
    return dict(zip(names, parts[1::2], strict=True))


def spelt(command: Any) -> set[str]:
    """Return the options of a command as they are typed."""
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} - HELP


def options(text: str) -> set[str]:
    """Return the options that a text sets in code."""
    return {word for code in in_code(text) for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", code)}


def test_every_command_is_in_the_reference_and_no_other():
    assert set(described()) == {name for name, _ in commands()}
    assert "mem log verify" in described()


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_the_reference_lists_every_option_of_a_command_and_no_other(name):
    text = described()[name]
    listed = {word for row in table(text) for word in options(row[0])}
    shared = re.search(r"(?m)^Also (.*)$", text)
    command = dict(commands())[name]

    both = {word for word in spelt(command) if word.startswith("-")}
    found = listed | (options(shared[1]) if shared else set())

    assert found == {*both} - {"-n", "-y"}
    named = {parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"}
    assert named <= {word for row in table(text) for word in in_code(row[0])}


def test_the_shared_options_are_explained_once():
    explained = {word for row in table(section("Shared options")) for word in options(row[0])}
    lines = [line for text in described().values() for line in re.findall(r"(?m)^Also .*$", text)]
    used = {word for line in lines for word in options(line)}

    assert used <= explained
    assert {"--db", "--scope", "--json", "--reason"} <= explained


@pytest.mark.parametrize("name", [name for name, command in commands() if not getattr(command, "commands", None)])
def test_the_help_of_a_command_names_the_exit_codes_that_the_reference_names(name, capsys):
    code = main([*name.split()[1:], "--help"])

    said = re.search(r"Exit codes:(.*?)\n\n", " ".join(capsys.readouterr().out.split("\n  ")) + "\n\n", re.DOTALL)
    assert code == 0
    assert said, f"the help of {name} names no exit codes"
    listed = re.search(r"(?m)^Exit codes:(.*)$", described()[name])
    assert listed
    assert set(re.findall(r"\b\d+\b", said[1])) == set(re.findall(r"\b\d+\b", listed[1]))


# ---------------------------------------------------------------- exit codes


def tree(error: type[errors.MemError]) -> Iterator[type[errors.MemError]]:
    yield error
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child)


def test_every_exit_code_and_error_code_is_in_the_reference_and_no_other():
    rows = table(section("Exit codes"))
    listed = {int(code): in_code(codes) for code, codes, _ in rows}
    known: dict[int, set[str]] = {0: set(), 1: set()}
    for error in tree(errors.MemError):
        known.setdefault(error.exit_code, set()).add(error.code)

    assert listed == known
    assert set(EXIT_CODES) == set(listed)


# ---------------------------------------------------------------- environment


def variables(source: str) -> set[str]:
    """Return the environment variables that a module reads; a name in their place is looked up in it."""
    parsed = ast.parse(source)
    found: set[str] = set()
    for node in ast.walk(parsed):
        asked: ast.expr | None = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv") and node.args:
            asked = node.args[0]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            asked = node.slice if isinstance(node.ctx, ast.Load) else None
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "shutil.get_terminal_size":
            found |= {"COLUMNS", "LINES"}
        if asked is not None:
            found |= _strings(asked, parsed)
    return found


def _strings(asked: ast.expr, parsed: ast.Module) -> set[str]:
    if isinstance(asked, ast.Constant):
        return {str(asked.value)}
    name = ast.unparse(asked)
    found: set[str] = set()
    for node in ast.walk(parsed):
        given: ast.expr | None = None
        if isinstance(node, ast.For | ast.comprehension) and ast.unparse(node.target) == name:
            given = node.iter
        elif isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            given = node.value
        if given is not None:
            found |= {str(one.value) for one in ast.walk(given) if isinstance(one, ast.Constant)}
    assert found, f"which variable is {name}?"
    return found


def test_every_environment_variable_is_in_the_reference_and_no_other():
    read = {name for path in (ROOT / "memcli").rglob("*.py") for name in variables(path.read_text(encoding="utf-8"))}
    listed = {name for row in table(section("Environment")) for name in in_code(row[0])}

    assert "MEM_DB" in read
    assert listed == read


def test_the_page_of_the_command_line_has_the_same_variables():
    listed = {name for row in table(section("Environment")) for name in in_code(row[0])}

    assert {name.strip() for names in ENVIRONMENT for name in names.split(",")} == listed


def test_a_variable_is_found_in_every_way_it_can_be_asked_for():
    asked = 'A = "ONE"\nos.environ.get(A)\nos.environ["TWO"]\nos.getenv("THREE", "")\nos.environ["SET"] = ""\n'
    looped = 'for name in ("FOUR", "FIVE"):\n    os.environ[name]\n'

    assert variables(asked + looped) == {"ONE", "TWO", "THREE", "FOUR", "FIVE"}


# ---------------------------------------------------------------- the other tables


def test_every_rule_of_the_extractor_is_in_the_reference_and_no_other():
    rows = table(section("Extraction rules"))

    assert {name.strip("`"): text for name, text in rows} == dict(RULES)


def test_every_move_between_states_is_in_the_reference_and_no_other():
    rows = {(before, after) for before, after, _ in table(section("Moves between states"))}

    assert rows == {(str(before or "–"), str(after)) for before, after in MOVES}


def test_every_authority_is_in_the_reference_with_its_number():
    rows = {
        name: float(number) for row in table(section("Authority")) for name, number in [(row[0].strip("`"), row[1])]
    }

    assert rows == {str(name): number for name, number in DEFAULT_AUTHORITY.items()}


def test_every_budget_finding_is_in_the_reference_and_no_other():
    rows = table(section("Budget findings"))

    assert {code.strip("`"): (severity, text) for code, severity, text in rows} == {
        code: (what.severity, what.text) for code, what in CODES.items()
    }


def test_every_type_of_block_is_in_the_reference():
    listed = {name.strip("`") for name, _, _ in table(section("Blocks"))}

    assert listed == set(TYPES) - set(RECORDED)


def test_every_format_is_in_the_reference_and_no_other():
    assert {name for row in table(section("Formats that can be read")) for name in in_code(row[0])} == set(FORMATS)


def test_every_admission_is_explained():
    assert {name for row in table(section("Concepts")) for name in in_code(row[0])} >= set(Admission)


def test_every_table_of_the_file_is_in_the_reference_and_no_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["init"])
    file = sqlite3.connect(Path("memory.db"))
    made = {name for (name,) in file.execute("select name from sqlite_schema where type = 'table'")}
    file.close()

    shadows = {name for name in made if re.match(r"(words|grams)_|sqlite_", name)}
    assert {name for row in table(section("The file")) for name in in_code(row[0])} == made - shadows
    assert "audit" in made


# ---------------------------------------------------------------- the two commands


def test_the_tests_are_run_by_the_readme_as_by_the_check_of_every_change():
    first, second = re.findall(r"```sh\n(.*?)\n```", section("Try it"), re.DOTALL)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert first == "pip install . && mem tour"
    assert second in script.splitlines()
