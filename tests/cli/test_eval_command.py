"""`mem eval run`: the screens, every machine form, the exit codes, and that nothing is written."""

import json
import re
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUNNING = FIXTURES / "openai_messages" / "longmemeval_personal_best.json"

CASE_KEYS = {
    "id", "verdict", "path", "line", "db", "expected", "forbidden", "controls", "returned", "tokens", "references",
    "latency_ms", "peak_bytes", "task", "seconds",
}  # fmt: skip
MEASURE_KEYS = {"correctness", "references", "forbidden", "tokens", "latency_ms", "peak_bytes", "task"}
CASES = """\
[[case]]
id = "home"
query = "where does Anna live"
expect = ["Lisbon"]
forbid = ["Berlin"]

[[case]]
id = "pet"
query = "Anna pet"
expect = ["cat"]
forbid = ["Lisbon"]

[[case]]
id = "secret"
query = "Anna"
forbid = ["penicillin"]
"""


def write(mem: Mem, text: str, name: str = "cases.toml") -> str:
    """Write a file of cases beside the memory and return its name."""
    (mem.home / name).write_text(text, encoding="utf-8")
    return name


def steady(text: str) -> str:
    """Return a screen without what differs from run to run: times, sizes, and tokens, since ids are random."""
    text = re.sub(
        r"(?m)^(  (?:tokens of the block|(?:tokens|latency_ms|peak_bytes)\.\S+|recall|context)) .*$", r"\1 …", text
    )
    return re.sub(r"(?<=\S) {2,}", "  ", text)


@pytest.fixture
def filled(mem: Mem) -> Mem:
    """f1 says where Anna lives, and there is a file of three cases."""
    slot = ("--subject", "anna", "--attribute", "home city", "--value", "Lisbon")
    assert mem.run("add", "Anna lives in Lisbon", *slot).code == 0
    write(mem, CASES)
    return mem


# ---------------------------------------------------------------- screens


def test_each_case_is_a_line_and_the_measures_follow(filled: Mem) -> None:
    assert steady(filled.person("eval", "run", "cases.toml", "--repeat", "3")) == snapshot("""\
  ✓  home
  ✗  pet  forbidden “Lisbon” is in recall and the block · expected “cat” is
             missing in recall and the block
  –  secret  nothing that should be there was asked for, so no absence shows
             anything; give expect or control

3 cases: 1 passed, 1 failed, 1 unexercised

  MEASURE  VALUE
  correct  33 % (95 %: 6 % to 79 %)
  forbidden hits  1 of 3 texts
  tokens of the block …
  task with the memory  50 %, without 0 % (the block itself, and an empty one)

  OPERATION  PHASE  RUNS  MEDIAN  P95  PEAK
  recall …
  context …
--- exit 1
""")


def test_a_pipe_gets_the_same_lines(filled: Mem) -> None:
    lines = filled.run("eval", "run", "cases.toml").out.splitlines()

    assert lines[0] == "  ✓  home"
    assert lines[1].startswith("  ✗  pet     forbidden “Lisbon” is in recall and the block · expected “cat”")


def test_narrow_and_plain_screens_keep_every_word(filled: Mem) -> None:
    seen = filled.term("eval", "run", "cases.toml", columns=40)

    assert "forbidden “Lisbon”" in " ".join(seen.screen.split())
    assert max(map(len, seen.screen.splitlines())) <= 40


def test_a_hostile_text_reaches_no_terminal_as_it_is(mem: Mem) -> None:
    write(mem, '[[case]]\nid = "a"\nquery = "x"\nexpect = ["\\u001b[31mred\\u202e"]\n')

    seen = mem.term("eval", "run", "cases.toml")

    assert b"\x1b[31mred" not in seen.raw
    assert "\\x1b[31mred\\u202e" in seen.screen


# ---------------------------------------------------------------- machine forms


def test_the_document_has_a_fixed_set_of_keys(filled: Mem) -> None:
    ran = filled.run("eval", "run", "cases.toml", "--json")
    document = ran.document

    assert ran.code == 1
    assert set(document) == {"files", "cases", "measures", "compare"}
    assert document["files"] == ["cases.toml"]
    assert document["compare"] is None
    assert [set(case) for case in document["cases"]] == [CASE_KEYS] * 3
    assert set(document["measures"]) == MEASURE_KEYS
    pet = document["cases"][1]
    assert pet["expected"] == [{"text": "cat", "found": False, "missing": ["recall", "block"]}]
    assert pet["forbidden"] == [{"text": "Lisbon", "hit": True, "where": ["recall", "block"]}]
    assert pet["returned"] == filled.ids()
    assert (pet["path"], pet["line"], pet["db"]) == ("cases.toml", 7, "memory.db")


def test_the_measures_of_a_run_are_in_the_document(filled: Mem) -> None:
    measures = filled.run("eval", "run", "cases.toml", "--json", "--repeat", "4").document["measures"]

    assert measures["correctness"] == {
        "cases": 3,
        "passed": 1,
        "failed": 1,
        "unexercised": 1,
        "rate": pytest.approx(1 / 3),
        "low": pytest.approx(0.0615, abs=1e-4),
        "high": pytest.approx(0.7923, abs=1e-4),
    }
    assert measures["references"] is None
    assert measures["forbidden"] == {"checked": 3, "hits": 1, "cases": 1}
    tokens = measures["tokens"]
    assert (tokens["encodings"], tokens["blocks"]) == (["o200k_base"], 3)
    assert tokens["total"] == 3 * tokens["mean"] == 3 * tokens["max"]
    assert set(measures["latency_ms"]) == set(measures["peak_bytes"]) == {"recall", "context"}
    assert set(measures["latency_ms"]["recall"]) == {"phase", "runs", "median", "p95"}
    assert (measures["latency_ms"]["recall"]["phase"], measures["latency_ms"]["recall"]["runs"]) == ("inference", 12)
    assert measures["task"] == {"judged": "blocks", "cases": 2, "with": 0.5, "without": 0.0}


def test_json_lines_are_a_case_each_and_then_the_measures(filled: Mem) -> None:
    lines = [json.loads(line) for line in filled.run("eval", "run", "cases.toml", "--jsonl").out.splitlines()]

    assert [line.get("id") for line in lines] == ["home", "pet", "secret", None]
    assert set(lines[-1]) == {"measures", "compare"}


def test_junit_tells_a_pass_a_failure_and_what_was_not_exercised_apart(filled: Mem) -> None:
    suite = ET.fromstring(filled.run("eval", "run", "cases.toml", "--output-format", "junit").out.encode())[0]  # noqa: S314

    assert {name: suite.get(name) for name in ("name", "tests", "failures", "skipped")} == {
        "name": "mem eval run",
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"], ["skipped"]]
    assert all(float(case.get("time", "")) > 0 for case in suite)


def test_the_other_reports_name_the_case_its_file_and_its_line(filled: Mem) -> None:
    def said(form: str) -> str:
        ran = filled.run("eval", "run", "cases.toml", "--output-format", form)
        assert ran.code == 1
        return ran.out

    assert "::error file=cases.toml,line=7,title=mem pet::forbidden “Lisbon”" in said("github")
    assert "::error file=cases.toml,line=13,title=mem secret::" not in said("github")
    assert "| ✗ `pet` | cases.toml:7 |" in said("markdown")
    assert "1 of 3 passed" in said("markdown")
    results = json.loads(said("sarif"))["runs"][0]["results"]
    assert [(item["ruleId"], item["level"]) for item in results] == [("pet", "error"), ("secret", "warning")]


# ---------------------------------------------------------------- exit codes


def test_the_exit_code_is_one_unless_every_case_passes(filled: Mem) -> None:
    write(filled, '[[case]]\nid = "a"\nquery = "Anna"\nexpect = ["Lisbon"]\n', "good.toml")
    write(filled, '[[case]]\nid = "b"\nquery = "Anna"\nforbid = ["Berlin"]\n', "bare.toml")

    assert filled.run("eval", "run", "good.toml").code == 0
    assert filled.run("eval", "run", "bare.toml").code == 1
    assert filled.run("eval", "run", "good.toml", "cases.toml").code == 1
    assert filled.run("eval", "run", "cases.toml", "--exit-zero").code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "eval run needs a file of cases"),
        (["cases.toml", "--repeat", "0"], 2, "--repeat takes a whole number from 1"),
        (["cases.toml", "-k", "0"], 2, "-k takes a whole number from 1"),
        (["cases.toml", "--budget", "-1"], 2, "--budget takes a whole number from 0"),
        (["cases.toml", "--timeout", "0"], 2, "--timeout takes seconds"),
        (["cases.toml", "--output-format", "yaml"], 2, "yaml is no output format"),
        (["cases.toml", "--compare", "a.db"], 2, "requires 2 arguments"),
        (["cases.toml", "--compare", "memory.db", "memory.db", "--db", "memory.db"], 2, "exclude each other"),
        (["cases.toml", "--answerer", ""], 2, "the command line is empty"),
        (["cases.toml", "--answerer", "./gone"], 5, "./gone: it cannot be started"),
        (["gone.toml"], 5, "gone.toml: no such file"),
        (["cases.toml", "--db", "gone.db"], 10, "there is no memory file at gone.db"),
        (["cases.toml", "--db", "cases.toml"], 13, "cases.toml is no memory file"),
        (["cases.toml", "--compare", "memory.db", "gone.db"], 10, "there is no memory file at gone.db"),
        (["cases.toml", "--scope", "*"], 2, "a scope is one plain name"),
    ],
)
def test_what_cannot_be_run_is_said_and_nothing_else_is_printed(
    filled: Mem, words: list[str], code: int, said: str
) -> None:
    ran = filled.run("eval", "run", *words)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    complaint = filled.run("eval", "run", *words, "--json").complaint
    assert set(complaint) == {"error", "message", "hint"}


def test_cases_may_come_through_standard_input(filled: Mem) -> None:
    toml = filled.run("eval", "run", "-", stdin=CASES.encode())
    lines = filled.run("eval", "run", "-", stdin=b'{"id": "a", "query": "Anna", "expect": ["Lisbon"]}\n')

    assert (toml.code, toml.out.splitlines()[0]) == (1, "  ✓  home")
    assert (lines.code, lines.out.splitlines()[0]) == (0, "  ✓  a")
    assert filled.spawn("eval", "run", "-", stdin=None).code == 5


# ---------------------------------------------------------------- scope and files


def test_a_bound_process_asks_no_other_scope(filled: Mem) -> None:
    assert filled.run("add", "Anna lives in Porto", "--scope", "bob").code == 0
    write(filled, '[[case]]\nid = "a"\nquery = "Anna"\nexpect = ["Porto"]\nforbid = ["Lisbon"]\n')
    write(filled, '[[case]]\nid = "a"\nquery = "Anna"\nexpect = ["Lisbon"]\nscope = "default"\n', "other.toml")
    write(filled, f'[[case]]\nid="a"\nquery="best"\nexpect=["27"]\nscope="x"\ntranscript="{RUNNING}"\n', "own.toml")
    bound = {"MEM_SCOPE": "bob"}

    assert filled.run("eval", "run", "cases.toml", env=bound).code == 0
    assert filled.run("eval", "run", "cases.toml").code == 1
    assert filled.run("eval", "run", "cases.toml", "--scope", "bob").code == 0
    assert filled.run("eval", "run", "other.toml").code == 0
    for name in ("other.toml", "own.toml"):
        ran = filled.run("eval", "run", name, env=bound)
        assert (ran.code, ran.out) == (3, "")
    assert filled.run("eval", "run", "cases.toml", "--scope", "default", env=bound).code == 3


def test_nothing_is_written_to_the_memory_nor_left_beside_it(filled: Mem) -> None:
    temporary = filled.home / "tmp"
    temporary.mkdir()
    write(filled, f'[[case]]\nid = "own"\nquery = "best"\nexpect = ["27:12"]\ntranscript = "{RUNNING}"\n', "own.toml")
    before, names = filled.db.read_bytes(), sorted(path.name for path in filled.home.iterdir())

    assert filled.spawn("eval", "run", "cases.toml", "own.toml", env={"TMPDIR": str(temporary)}).code == 1

    assert filled.db.read_bytes() == before
    assert sorted(path.name for path in filled.home.iterdir()) == names
    assert list(temporary.iterdir()) == []


def test_paths_in_a_case_are_beside_its_file(mem: Mem) -> None:
    folder = mem.home / "evals"
    folder.mkdir()
    shutil.copy(RUNNING, folder / "running.json")
    assert mem.run("add", "Anna lives in Lisbon").code == 0
    shutil.copy(mem.db, folder / "other.db")
    assert mem.run("add", "Anna has a cat").code == 0
    (folder / "cases.jsonl").write_text(
        '{"id": "own", "query": "personal best", "expect": ["27:12"], "transcript": "running.json"}\n'
        '{"id": "other", "query": "Anna", "expect": ["Lisbon"], "forbid": ["cat"], "db": "other.db"}\n'
        '{"id": "here", "query": "Anna", "expect": ["Lisbon", "cat"]}\n',
        encoding="utf-8",
    )

    ran = mem.run("eval", "run", "evals/cases.jsonl", "--json")

    assert [(case["id"], case["verdict"], case["db"]) for case in ran.document["cases"]] == [
        ("own", "pass", None),
        ("other", "pass", "evals/other.db"),
        ("here", "pass", "memory.db"),
    ]


def test_a_transcript_that_cannot_be_read_ends_the_run(filled: Mem) -> None:
    write(filled, '[[case]]\nid = "a"\nquery = "x"\nexpect = ["x"]\ntranscript = "odd.json"\n')
    write(filled, "{]", "odd.json")

    ran = filled.run("eval", "run", "cases.toml")

    assert (ran.code, ran.out) == (5, "")
    assert "odd.json" in ran.err


# ---------------------------------------------------------------- answers


def answerer(mem: Mem, said: str) -> str:
    """Return a command that reads the request as `asked` and answers."""
    path = mem.home / "answerer.py"
    path.write_text(
        f"import json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps({{'answer': {said}}}))\n", encoding="utf-8"
    )
    return f"{sys.executable} {path}"


def test_answers_are_scored_with_the_memory_and_without(filled: Mem) -> None:
    def task(said: str) -> Any:
        return filled.run("eval", "run", "cases.toml", "--answerer", answerer(filled, said), "--json").document

    using, refusing = task("asked['context'] or 'unknown'"), task("'I cannot help with that'")

    assert using["measures"]["task"] == {"judged": "answers", "cases": 2, "with": 0.5, "without": 0.0}
    assert refusing["measures"]["task"] == {"judged": "answers", "cases": 2, "with": 0.0, "without": 0.0}
    home, _, secret = using["cases"]
    assert {name: home["task"][name] for name in ("with", "without", "answer_without")} == {
        "with": "pass",
        "without": "fail",
        "answer_without": "unknown",
    }
    assert "Lisbon" in home["task"]["answer_with"]
    assert secret["task"] is None


def test_an_answerer_that_answers_nothing_ends_the_run(filled: Mem) -> None:
    ran = filled.run("eval", "run", "cases.toml", "--answerer", answerer(filled, "None"))

    assert (ran.code, ran.out) == (5, "")
    assert "it gave no answer to case home" in ran.err


# ---------------------------------------------------------------- two memories


@pytest.fixture
def decided(mem: Mem) -> Mem:
    """before.db holds what was extracted from real sessions, and memory.db what a decision made of it."""
    assert mem.run("import", str(RUNNING)).code == 0
    assert mem.run("extract").code == 0
    shutil.copy(mem.db, mem.home / "before.db")
    shutil.copy(FIXTURES / "evals" / "after_review.jsonl", mem.home / "cases.jsonl")
    items = [json.loads(line) for line in mem.run("review", "export").out.splitlines()]
    lines = [json.dumps({**item, "decision": "accept"}) + "\n" for item in items]
    (mem.home / "decisions.jsonl").write_text("".join(lines), encoding="utf-8")
    assert mem.run("review", "apply", "decisions.jsonl", "--actor", "coach", "--reason", "newer").code == 0
    return mem


def test_the_newer_time_is_given_once_it_was_decided_and_not_before(decided: Mem) -> None:
    before = decided.run("eval", "run", "cases.jsonl", "--db", "before.db", "--json")
    after = decided.run("eval", "run", "cases.jsonl", "--json")

    assert (before.code, after.code) == (1, 0)
    assert [case["verdict"] for case in before.document["cases"]] == ["fail", "fail", "pass"]
    assert after.document["measures"]["references"] == {
        "cases": 1,
        "micro": {"precision": 1.0, "recall": 1.0, "f1": 1.0},
        "macro": {"precision": 1.0, "recall": 1.0, "f1": 1.0},
    }
    assert after.document["cases"][0]["references"]["unreached"] == []


def test_the_older_time_is_what_was_known_before_the_decision(decided: Mem) -> None:
    known = json.loads(decided.run("log", "--jsonl").out.splitlines()[0])["at"]
    events = [json.loads(line) for line in decided.run("log", "--jsonl").out.splitlines()]
    extracted = max(event["at"] for event in events if event["op"] == "extract")
    slot = {"subject": "user", "attribute": "personal best time"}
    lines = [
        {"id": "then", **slot, "known_at": extracted, "expect": ["27:12"], "forbid": ["25:50"]},
        {"id": "now", **slot, "expect": ["25:50"], "forbid": ["27:12"]},
        {"id": "before", **slot, "known_at": known, "expect": ["27:12"]},
    ]
    write(decided, "".join(json.dumps(line) + "\n" for line in lines), "times.jsonl")

    document = decided.run("eval", "run", "times.jsonl", "--json").document

    assert [case["verdict"] for case in document["cases"]] == ["pass", "pass", "fail"]


def test_two_memories_are_shown_side_by_side(decided: Mem) -> None:
    shown = steady(decided.person("eval", "run", "cases.jsonl", "--compare", "before.db", "memory.db"))
    pairs, _, figures = shown.partition("  MEASURE")

    assert pairs == snapshot("""\
A  before.db
B  memory.db

              B PASSES  B DOES NOT
  A passes  1  0
  A does not  2  0

p = 0.5, McNemar’s exact test over 2 cases that part

  A ✗ B ✓  newest-time  A: forbidden “27:12” is in recall and the
           block · expected “25:50” is missing in recall and the block
  A ✗ B ✓  slot-now  A: forbidden “27:12” is in the slot · expected
           “25:50” is missing in the slot

""")
    assert figures.splitlines()[:3] == snapshot(
        ["  A  B  B − A", "  correctness.rate  33 %  100 %  +67 points", "  forbidden.hits  2  0  −2"]
    )
    assert "  task.with  50 %  100 %  +50 points\n" in figures
    assert shown.endswith("--- exit 1\n")


def test_a_comparison_is_paired_tested_and_has_every_figure_of_both(decided: Mem) -> None:
    ran = decided.run("eval", "run", "cases.jsonl", "--compare", "before.db", "memory.db", "--json")
    compared = ran.document["compare"]

    assert ran.code == 1
    assert set(compared) == {"a", "b", "both", "only_a", "only_b", "neither", "p_value", "measures"}
    assert (compared["a"], compared["b"]) == ("before.db", "memory.db")
    assert (compared["both"], compared["only_b"]) == (["other-topics-stay-out"], ["newest-time", "slot-now"])
    assert (compared["only_a"], compared["neither"], compared["p_value"]) == ([], [], 0.5)
    assert compared["measures"]["correctness.rate"] == {
        "a": pytest.approx(1 / 3),
        "b": 1.0,
        "difference": pytest.approx(2 / 3),
    }
    assert compared["measures"]["forbidden.hits"] == {"a": 2, "b": 0, "difference": -2}
    assert [case["db"] for case in ran.document["cases"]] == ["before.db"] * 3 + ["memory.db"] * 3
    assert ran.document["measures"]["correctness"]["passed"] == 1


def test_a_memory_is_no_better_than_itself(decided: Mem) -> None:
    ran = decided.run("eval", "run", "cases.jsonl", "--compare", "memory.db", "memory.db", "--json")
    compared = ran.document["compare"]

    assert ran.code == 0
    assert (len(compared["both"]), compared["p_value"]) == (3, 1.0)
    assert compared["measures"]["tokens.mean"]["difference"] == 0


def test_a_report_on_two_memories_names_the_memory(decided: Mem) -> None:
    out = decided.run(
        "eval", "run", "cases.jsonl", "--compare", "before.db", "memory.db", "--output-format", "github"
    ).out

    assert [line.split("::")[2].split(":")[0] for line in out.splitlines()] == ["before.db", "before.db"]


def test_a_case_with_a_memory_of_its_own_cannot_be_compared(decided: Mem) -> None:
    cases = str(FIXTURES / "evals" / "newer_time.toml")
    ran = decided.run("eval", "run", cases, "--compare", "before.db", "memory.db")

    assert (ran.code, ran.out) == (2, "")
    assert "case newest-time brings its own transcript" in ran.err


# ---------------------------------------------------------------- shipped cases


@pytest.mark.parametrize(("name", "code"), [("personal_best.toml", 0), ("newer_time.toml", 1)])
def test_the_shipped_cases_ask_what_the_rules_read_in_real_sessions(bare: Mem, name: str, code: int) -> None:
    ran = bare.run("eval", "run", str(FIXTURES / "evals" / name), "--json")

    assert ran.code == code
    assert set(ran.document["measures"]["latency_ms"]) >= {"import", "extract"}
    assert ran.document["measures"]["latency_ms"]["import"]["phase"] == "adaptation"
    assert not bare.db.exists()


def test_the_question_of_the_benchmark_fails_while_the_newer_time_is_held(bare: Mem) -> None:
    ran = bare.run("eval", "run", str(FIXTURES / "evals" / "newer_time.toml"), "--json")
    case = ran.document["cases"][0]

    assert case["expected"] == [{"text": "25:50", "found": False, "missing": ["recall", "block"]}]
    assert case["forbidden"][0]["hit"] is True
    assert case["references"] == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "unreached": ["s2#0"]}
