"""What the reference of the README lists is what there is: commands, options, codes, variables, rules, tables."""

import ast
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from memcli import errors
from memcli.budget.findings import CODES
from memcli.budget.public import RECORDED, TYPES
from memcli.cli import build, main
from memcli.cli.manual import ENVIRONMENT, EXIT_CODES
from memcli.evals.cases import Case
from memcli.exchange import FORMATS
from memcli.exchange.writers import mem as mem_writer
from memcli.extract import RULES as EXTRACTION_RULES
from memcli.terms import (
    DEFAULT_AUTHORITY,
    DEFAULT_ISOLATION,
    GLOSSARY,
    HELD_FOR_REVIEW,
    HELD_WITH_TX,
    MOVES,
    RULINGS,
    ActionState,
    Admission,
    Block,
    Code,
    EffectKind,
    EffectState,
    Isolation,
)
from memcli.transactions.checks import RULES
from tests.docs.consoles import README, ROOT, TRANSCRIPTS

TEXT = README.read_text(encoding="utf-8")
HELP = {"-h", "--help"}


def section(title: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above; what commands print has none."""
    held: list[str] = []
    level, fenced = 0, False
    for line in TEXT.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        heading = None if fenced else re.match("(##+) (.*)", line)
        if heading and 0 < level >= len(heading[1]):
            break
        if level:
            held.append(line)
        elif heading and heading[2] == title:
            level = len(heading[1])
    assert level, f"the README has no section {title}"
    return "".join(held)


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

    assert {name.strip("`"): text for name, text in rows} == dict(EXTRACTION_RULES)


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


def test_every_check_of_a_transaction_is_in_the_reference_with_its_ruling_and_in_order():
    rows = [(code.strip("`"), ruling) for code, ruling, _ in table(section("Checks of a transaction"))]

    assert rows == [(str(code), str(RULINGS[code])) for code in Code]
    assert in_code(section("Checks of a transaction")) >= {HELD_WITH_TX, HELD_FOR_REVIEW}


def test_the_checks_are_made_in_the_order_of_the_reference():
    made = [str(code) for code, _ in RULES]
    listed = [code.strip("`") for code, _, _ in table(section("Checks of a transaction"))]

    assert [code for code in listed if code in made] == made


def test_every_block_of_the_gate_is_in_the_reference_and_in_order():
    assert [code.strip("`") for code, _ in table(section("Blocks of the gate"))] == [str(block) for block in Block]


def test_every_state_of_an_action_and_of_an_effect_is_in_the_reference():
    text = section("Actions and effects")

    assert [state.strip("`") for state, _ in table(text)] == [str(state) for state in ActionState]
    assert {*EffectKind, *EffectState} <= in_code(text)


def test_every_isolation_is_explained_with_the_tiers_that_have_it():
    found = re.search(r"(?ms)^\| isolation \|.*?\n\n", section("Concepts"))
    rows = {row[0].strip("`"): in_code(row[2]) for row in table(found[0])}

    assert rows == {level: {tier for tier, usual in DEFAULT_ISOLATION.items() if usual is level} for level in Isolation}


def test_every_key_of_a_case_is_in_the_reference():
    read = {field.name.removesuffix("_tokens") for field in fields(Case)} - {"path", "line"}

    assert {name for row in table(section("Case files")) for name in in_code(row[0])} == read


def test_every_record_of_an_export_is_in_the_reference():
    rows = [name.strip("`") for name, _ in table(section("The format of `mem export`"))]

    described = re.findall(r"(?m)^\| `(\w+)` \|", mem_writer.__doc__)[1:]
    assert rows == described
    assert {"header", "tombstone", "end"} <= set(rows)


def test_the_words_of_a_transaction_are_in_the_glossary():
    words = ("transaction", "gate", "premise", "receipt", "leak", "compensation", "scope", "lease", "snapshot", "tier")

    assert [word for word in words if word not in GLOSSARY or word not in section("Concepts")] == []


# ---------------------------------------------------------------- workflows and hooks


def typed(text: str) -> Iterator[list[str]]:
    """Yield the words of each call of mem in lines of a shell."""
    for line in text.splitlines():
        found = re.match(r"\s*mem (.*?)(?: > .*)?$", line)
        if found:
            yield ["mem", *shlex.split(found[1])]


def called(words: list[str]) -> tuple[str, Any]:
    """Return the command that some words call, by the longest name that they begin with."""
    known = dict(commands())
    name = next(" ".join(words[:size]) for size in (3, 2) if " ".join(words[:size]) in known)
    return name, known[name]


def unknown(words: list[str]) -> set[str]:
    """Return the options of a call that its command does not have."""
    return {word for word in words if word.startswith("--")} - spelt(called(words)[1])


def workflow() -> Any:
    """Return the workflow of the README."""
    blocks = re.findall(r"```yaml\n(.*?)```", section("Checking a memory in CI"), re.DOTALL)
    return yaml.safe_load(blocks[0])


def steps() -> list[list[str]]:
    """Return the calls of mem in the workflow."""
    return [
        words for job in workflow()["jobs"].values() for step in job["steps"] for words in typed(step.get("run", ""))
    ]


def hooks() -> list[Any]:
    """Return the hooks that this repository offers to pre-commit."""
    return list(yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")))


def test_the_workflow_calls_commands_and_options_that_there_are():
    names = [called(words)[0] for words in steps()]

    assert names == ["mem check", "mem eval run", "mem budget simulate", "mem diff"]
    assert [unknown(words) for words in steps()] == [set()] * 4


def test_the_workflow_passes_on_a_memory_that_is_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TRANSCRIPTS / "flights.json", "transcript.json")
    Path("cases.toml").write_text('[[case]]\nid = "tea"\nquery = "tea"\nexpect = ["tea"]\n', encoding="utf-8")
    main(["init", "--admission", "direct"])
    shutil.copy("memory.db", "before.db")
    main(["add", "the user prefers tea"])
    capsys.readouterr()

    ended = {called(words)[0]: main(words[1:]) for words in steps()}
    said = capsys.readouterr().out

    assert ended == {"mem check": 0, "mem eval run": 0, "mem budget simulate": 0, "mem diff": 0}
    assert "the user prefers tea" in said


def test_the_workflow_keeps_what_its_steps_write():
    whole = workflow()["jobs"]["memory"]["steps"]
    written = {name for step in whole for name in re.findall(r"> (\S+)", step.get("run", ""))}
    kept = {str(value) for step in whole for value in step.get("with", {}).values()}

    assert {"check.sarif", "eval.xml"} <= written & kept


def test_the_hooks_call_commands_and_options_that_there_are():
    found = {hook["id"]: hook["entry"].split() for hook in hooks()}

    assert set(found) == {"mem-check", "mem-eval", "mem-review"}
    assert [called(words)[0] for words in found.values()] == ["mem check", "mem eval run", "mem review"]
    assert [unknown(words) for words in found.values()] == [set()] * 3
    assert {hook["language"] for hook in hooks()} == {"python"}


def test_the_hooks_of_the_readme_are_those_of_the_repository():
    last = re.findall(r"```yaml\n(.*?)```", section("Checking a memory in CI"), re.DOTALL)[-1]
    used = yaml.safe_load(last)["repos"][0]["hooks"]

    assert [hook["id"] for hook in used] == [hook["id"] for hook in hooks()]


def test_the_lines_for_git_call_a_command_and_an_option_that_there_are():
    (line,) = re.findall(r"diff\.mem\.command '(.*?)'", section("Taking it elsewhere"))

    assert called(line.split())[0] == "mem diff"
    assert unknown(line.split()) == set()


def test_a_command_that_is_not_there_is_found():
    assert list(typed("x\n  mem check --residue 'a b' > out\n")) == [["mem", "check", "--residue", "a b"]]
    assert unknown(["mem", "check", "--residues"]) == {"--residues"}
    with pytest.raises(StopIteration):
        called(["mem", "chek"])


# ---------------------------------------------------------------- the two commands


def test_the_tests_are_run_by_the_readme_as_by_the_check_of_every_change():
    first, second = re.findall(r"```sh\n(.*?)\n```", section("Try it"), re.DOTALL)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert first == "pip install . && mem tour"
    assert second in script.splitlines()
