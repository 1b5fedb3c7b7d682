"""Hostile text wherever a person or a program sees it: screens, listings, tables, pages and reports."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from memcli.facts import Claim, Conversation, EventQuery, Observed, Remembered, Turn
from memcli.render.reports import report
from memcli.terms import Role
from memcli.text import tabular
from tests.cli.driver import Mem
from tests.cli.test_hardening_terminals import ESCAPES, at_terminal
from tests.files import ANNA, IMPORTER, memory

HOSTILE = {
    "colour": "a\x1b[31mred\x1b[0m",
    "one byte escape": "a\x9b31mred",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "bidi": "user \u202e evil \u2066 isolated \u2069",
    "zero width": "pay\u200bload\u2060\ufeff",
    "rich markup": "[red]not red[/red] [link=https://evil.example]x[/link] \\[bold] :smile:",
    "lines": "one\ntwo\r\nthree\rfour\u2028five\u2029six\x0b\x0c\x85",
    "tabs": "a\tb\t\tc",
    "backspace": "good\b\b\b\bevil",
    "formula": '=HYPERLINK("https://evil.example")',
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "plus": "+1+1",
    "minus": "-1+1",
    "tab formula": "\t=1+1",
    "github": "::error file=x::owned\n::set-output name=a::b",
    "github old": "##[add-mask]x",
    "percent": "%0A::error::owned%25",
    "markdown": "| a | b |\n|---|---|\n[x](javascript:alert(1)) <img src=x onerror=alert(1)> @everyone `code` ![i](http://e)",
    "html": "</td></script><script>alert(1)</script>\"' onload='x' &amp; <!-- -->",
    "xml": "]]></failure><failure>&#0;\x00\x01\ufffe",
    "private": "\ue000\U000f0000",
    "tags": "a\U000e0041\U000e0042",
}
SAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u2028\u2029\u2060\ufeff\U000e0000-\U000e007f]"
)
STORED = {name: text for name, text in HOSTILE.items() if not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)}
"""What a fact may hold; the others come in with a message only."""

WHY = ("--reason", "tidying up")


def dangers(text: str) -> list[str]:
    """Return the characters in a text that move a cursor, reorder a line or show nothing."""
    return SAFE.findall(text)


@pytest.fixture
def hostile(mem: Mem) -> Mem:
    """A file into which a transcript and facts brought every one of these texts, in every field that takes them."""
    turns = tuple(Turn(role=Role.USER, content=text, name=text) for text in HOSTILE.values())
    with memory(mem.db) as store:
        for name, text in HOSTILE.items():
            with store.write(IMPORTER) as write:
                write.take(
                    Conversation(format="openai", turns=turns[:2], title=text, session=f"{name} {text}"),
                    path=text,
                    digest=name.encode().hex().ljust(64, "0")[:64],
                )
        with store.write(ANNA, "for tests") as write:
            for name, text in STORED.items():
                claim = Claim(text=f"{text} {name}", subject=text, attribute=name, value=text, owner=text)
                write.add(claim)
    assert len(mem.ids()) == len(STORED) > 12
    return mem


LOOKS: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("show", "--all-states"),
    *(("show", f"f{n}") for n in range(1, len(STORED) + 1)),
    ("why", "f1"),
    ("why", "f9"),
    ("recall", "red"),
    ("recall", "evil", "--explain"),
    ("log",),
    ("stats",),
    ("check",),
    ("check", "--residue", "evil"),
    ("import", "--list"),
    ("review", "list"),
    ("scope", "list"),
    ("tombstone", "--contains", "evil", "--dry-run", *WHY),
    ("erase", "f3", "--dry-run", *WHY),
    ("condense", "--dry-run"),
    ("extract", "--dry-run"),
)


def test_no_screen_shows_what_moves_a_cursor_or_reorders_a_line(hostile: Mem) -> None:
    for words in LOOKS:
        code, out, err = at_terminal(hostile, *words, env={"TERM": "xterm", "PAGER": "", "COLUMNS": "200"})

        assert code in {0, 1}, (words, err)
        assert out.strip(), words
        assert dangers(ESCAPES.sub("", out) + err) == [], words
        assert not {"\x1b]", "\x1b[3;31"} & {out[at : at + 2] for at in range(len(out))}, words


def test_a_listing_in_a_pipe_is_a_line_for_each_row_with_the_same_cells(hostile: Mem) -> None:
    for words in (("show",), ("log",), ("import", "--list"), ("review", "list"), ("scope", "list")):
        ran = hostile.run(*words)

        rows = [line.split("\t") for line in ran.out.split("\n")[:-1]]
        assert dangers(ran.out) == [], words
        assert len({len(row) for row in rows}) <= 1, words
    assert len(hostile.run("show").out.splitlines()) == len(STORED)


def test_json_is_ascii_and_gives_every_text_back(hostile: Mem) -> None:
    ran = hostile.run("show", "--json")

    assert ran.out.isascii()
    assert dangers(ran.out) == []
    assert {fact["attribute"]: fact["value"] for fact in ran.document} == STORED


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


@pytest.mark.parametrize("words", [("show",), ("show", "f9"), ("log",)], ids=" ".join)
def test_a_page_holds_no_script_handler_or_link_of_a_text(hostile: Mem, words: tuple[str, ...]) -> None:
    page = hostile.run(*words, "--html", "-").out

    found = _Tags()
    found.feed(page)
    assert len(found.tags) > 20
    assert found.tags.count("script") <= 1
    assert "img" not in found.tags
    assert found.handlers == []
    assert not [link for link in found.links if "evil" in link or link.startswith("javascript")]
    assert dangers(page) == []


def observed() -> list[Observed]:
    return [
        Observed(code="found", place=text, message=text, path=text, line=3, level="error") for text in HOSTILE.values()
    ]


def test_a_report_for_github_is_one_annotation_for_each_finding() -> None:
    text = report("github", observed(), title="mem check", clean="clean")

    lines = text.split("\n")[:-1]
    assert len(lines) == len(HOSTILE)
    for line, said in zip(lines, HOSTILE.values(), strict=True):
        command, _, data = line[2:].partition("::")
        assert line.startswith("::error ")
        assert re.fullmatch(r"error file=[^:,]*,line=3,title=mem found", command), (said, command)
        assert "%0A" not in data.replace("%250A", "")
    assert dangers(text) == []


def test_a_report_in_junit_is_well_formed_and_has_a_case_for_each_finding() -> None:
    text = report("junit", observed(), title="mem check", clean="clean")

    root = ET.fromstring(text)  # noqa: S314  # our own report
    cases = root.findall("testsuite/testcase")
    assert len(cases) == len(HOSTILE)
    assert [len(case.findall("failure")) for case in cases] == [1] * len(cases)
    assert dangers("".join(root.itertext())) == []


def test_a_report_in_sarif_is_json_without_a_control_character() -> None:
    text = report("sarif", observed(), title="mem check", clean="clean")

    results: list[Any] = json.loads(text)["runs"][0]["results"]
    assert len(results) == len(HOSTILE)
    for result in results:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert dangers(result["message"]["text"] + uri) == []
        assert re.fullmatch(r"[\w/.~!$&'()*+,;=@:%-]+", uri), uri
    assert text.isascii()


def test_a_report_in_markdown_is_a_row_for_each_finding_with_no_markup_of_a_text() -> None:
    text = report("markdown", observed(), title="mem check", clean="clean")

    rows = [line for line in text.splitlines() if line.startswith("| ✗")]
    assert len(rows) == len(HOSTILE)
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 4, row
        assert not re.search(r"<|(?<!\\)\[|(?<!\\)!|@|://", row), row
    assert dangers(text) == []


FORMULAS = ["=1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\n=1", "＝1", "＋1", "－1", "＠x", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_what_a_spreadsheet_would_take_for_a_formula_has_a_quote_before_it(text: str) -> None:
    shown = tabular(text)

    assert shown.startswith("'") or text[0] in "\r\n"
    assert not shown.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert dangers(shown) == []
    assert tabular(f"a{text}")[0] == "a"


@pytest.mark.parametrize("name", ["=1+1", "+a", "-a", "@a", "\t=a", "＝a", "a\x1b[31mred", 'a,"b"', "a\nb"], ids=ascii)
def test_a_sweep_in_csv_opens_in_a_spreadsheet_as_text(bare: Mem, name: str) -> None:
    talk = [{"role": "user" if n % 2 else "assistant", "content": f"word {n} " * 60} for n in range(30)]
    (bare.home / name).write_text(json.dumps(talk))

    ran = bare.run("budget", "sweep", "--token-limit", "500,1000", "--format", "csv", "--", f"./{name}")
    ran = ran if ran.code == 0 else bare.run("budget", "sweep", "--token-limit", "500", "--format", "csv", "--", name)

    head, *rows = csv.reader(io.StringIO(ran.out))
    assert head[0] == "transcript"
    assert rows
    for row in rows:
        assert len(row) == len(head)
        assert not [cell for cell in row if cell.lstrip().startswith(("=", "+", "@", "＝"))]
    assert dangers(ran.out) == []


def test_a_log_of_many_events_is_the_same_in_every_form_and_a_terminal_gets_the_newest(mem: Mem) -> None:
    items = [Remembered(format="mcp", text=f"tea number {n} is hot") for n in range(1100)]
    with memory(mem.db) as store, store.write(IMPORTER) as write:
        write.remember(items, path="many.jsonl", digest="0" * 64)
    with memory(mem.db) as store:
        events = store.events()
        for limit in (1, 2, 1000, len(events) - 1, len(events), len(events) + 1):
            query = EventQuery(limit=limit)
            assert [item.id for item in store.each_event(query)] == [item.id for item in events[-limit:]]
            assert store.events(query) == events[-limit:]

    piped, lines, screen = mem.run("log"), mem.run("log", "--jsonl"), at_terminal(mem, "log", env={"PAGER": ""})[1]
    everything = at_terminal(mem, "log", "-n", "0", env={"PAGER": ""})[1]

    assert len(events) > 1100
    ids = [item.id for item in events]
    assert [line.partition("\t")[0] for line in piped.out.splitlines()] == ids
    assert [json.loads(line)["id"] for line in lines.out.splitlines()] == ids
    assert "… and older ones, all of them with -n 0" in ESCAPES.sub("", screen)
    assert "older ones" not in everything
    assert len(everything.splitlines()) - len(screen.splitlines()) == len(events) - 1000 - 1
