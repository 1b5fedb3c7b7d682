"""Reports to machines: every form holds what was found, and no memory text breaks out of its place."""

import json
from xml.etree import ElementTree as ET

import pytest

from memcli.facts import Observed
from memcli.render.reports import cell, report

HOSTILE = "a\nb]]><x/>::error::| `@anna` 100% \x1b[31m\u202e[x](http://y) <script>"
FOUND = [
    Observed(code="row-tampered", place="f1", message=HOSTILE, path="a,b:c.db", line=3),
    Observed(code="held", place="", message="needs a model", skipped=True, level="note"),
    Observed(code="recall", place="case 2", message="", passed=True, seconds=0.25),
]


def made(form, found=tuple(FOUND)):
    return report(form, found, title="mem check", clean="the file is whole")


def test_an_annotation_is_one_line_for_each_thing_that_is_wrong():
    lines = made("github").splitlines()

    assert len(lines) == 2
    assert lines[0].startswith("::error file=a%2Cb%3Ac.db,line=3,title=mem row-tampered::f1: a")
    assert "100%25" in lines[0]
    assert lines[1] == "::notice title=mem held::needs a model"


def test_junit_counts_what_failed_what_was_skipped_and_what_passed():
    root = ET.fromstring(made("junit"))  # noqa: S314  # our own report

    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "skipped": "1",
    }
    assert [case.get("name") for case in root.iter("testcase")] == ["row-tampered f1", "held", "recall case 2"]
    (failure,) = root.iter("failure")
    assert "b]]><x/>" in (failure.text or "")
    assert "\x1b" not in made("junit")


def test_junit_without_findings_is_one_test_that_passed():
    root = ET.fromstring(made("junit", ()))  # noqa: S314  # our own report

    assert (root.get("tests"), root.get("failures")) == ("1", "0")
    assert [case.get("name") for case in root.iter("testcase")] == ["clean"]


def test_sarif_names_rule_place_and_line():
    document = json.loads(made("sarif"))
    (run,) = document["runs"]

    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["row-tampered", "held"]
    first = run["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert (first["level"], place["artifactLocation"]["uri"]) == ("error", "a%2Cb%3Ac.db")
    assert place["region"] == {"startLine": 3}
    assert json.loads(made("sarif", ()))["runs"][0]["results"] == []


def test_markdown_is_a_table_whose_cells_hold_no_markup():
    lines = made("markdown").splitlines()

    assert lines[:4] == ["### mem check", "", "| what | where | why |", "|---|---|---|"]
    assert lines[4].count(" | ") == 2
    assert "<script>" not in lines[4]
    assert "@" not in lines[4]
    assert "1 of 3 passed" in lines
    assert made("markdown", ()).splitlines()[-1] == "✓ the file is whole"


@pytest.mark.parametrize(
    "text", ["| a |", "`code`", "[x](y)", "<b>", "https://example.org", "www.example.org", "@anna"]
)
def test_a_cell_shows_text_and_is_none(text):
    shown = cell(text)

    assert shown != text
    assert not any(sign in shown.replace("\\" + sign, "") for sign in "|`[]<>@")
