"""The public suite for memory integrity, run on our store: what it finds is what the page beside this says."""

import re

import pytest

from tests.conformance.result import ACCEPTED, EDITS, PACKAGE, PAGE, line, page, run

pytest.importorskip("agmi", reason=f"the public suite is not installed: pip install {PACKAGE}")

from tests.conformance import adapter  # it is built on the suite

NAMES = [target.__name__ for target in adapter.TARGETS]


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_finds_on_a_target_what_the_page_says(name):
    target = getattr(adapter, name)

    verdicts = run(target)

    assert line(target.name, verdicts) in PAGE.read_text(encoding="utf-8").splitlines()
    assert {edit for edit, verdict in verdicts.items() if verdict == "accepted"} == set(ACCEPTED.get(name, ()))
    assert set(verdicts.values()) <= {"accepted", "rejected", "reported"}
    assert list(verdicts) == list(EDITS)


def test_the_page_is_what_a_run_writes():
    text = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| (?!target ).*\|$", text, re.MULTILINE)

    assert [found.split(" | ")[0].removeprefix("| ") for found in lines] == [item.name for item in adapter.TARGETS]
    assert text == page(lines, {target.__name__: target.name for target in adapter.TARGETS})


def test_with_a_pinned_head_every_edit_is_reported_and_without_only_an_older_copy_passes():
    assert {name for name in NAMES if name not in ACCEPTED} == {"FactsPinned", "LogPinned", "LogRechainedPinned"}
    assert ACCEPTED["FactsReported"].keys() == ACCEPTED["LogReported"].keys() == {"snapshot_rollback"}


def test_the_command_of_the_suite_runs_the_same_target(capsys):
    from agmi.check import main

    code = main(["--adapter", "tests.conformance.adapter:FactsPinned"])

    assert code == 0
    assert capsys.readouterr().out.count("REPORTED") == len(EDITS)
