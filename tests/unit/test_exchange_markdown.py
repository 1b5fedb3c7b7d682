"""Memory kept as Markdown: what becomes a fact, with how much of its context, and what is only told."""

import re
from pathlib import Path

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.exchange.loose import Prose
from memcli.exchange.memories.markdown import MARKDOWN
from memcli.terms import State

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(tmp_path: Path, text: str, **options: str) -> Opened:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(text.encode())
    return exchange.open_file(str(path), **options)


def texts(found: Opened) -> list[str]:
    return [item.text for item in found.remembered]


def told(found: Opened) -> list[tuple[int | None, str]]:
    return [(warned.line, warned.message) for warned in found.warnings]


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("synthetic/sy04_claude_MEMORY.md", 3),
        ("malformed/k09_hermes_raw_markdown.md", 3),
        ("malformed/k11_memory_md_240_lines.md", 238),
        ("malformed/k13_rest_unchanged.md", 1),
        # It has no list at all; its three facts are paragraphs, two of which begin with a label on one line each.
        ("synthetic/claude_topics/user_prefs.md", 3),
    ],
)
def test_a_memory_file_gives_the_facts_that_a_careful_reader_counts(name, facts):
    found = exchange.open_file(str(FIXTURES / name))

    assert (found.format, len(found.remembered)) == ("markdown", facts)


def test_every_list_item_of_a_real_file_is_a_fact_and_short_paragraphs_are_others():
    path = FIXTURES / "markdown_memory/md01_CLAUDE.md"
    lines = path.read_text(encoding="utf-8").split("\n")

    found = exchange.open_file(str(path))

    items = [item for item in found.remembered if re.match(r"\s*(?:[-*]|\d+\.)\s", lines[(item.line or 0) - 1])]
    # The file has 148 list items. Three say nothing but what the items below them are about, and are their context.
    assert (len(items), len(found.remembered)) == (145, 181)
    assert sum("Appears in commit subject on `entire/checkpoints/v1` commits: " in item.text for item in items) == 2
    assert not any("```" in item.text or item.text.startswith("|") for item in found.remembered)


def test_an_item_that_cannot_be_read_alone_gets_its_headings(tmp_path):
    found = read(tmp_path, "# Anna\n## Food\n- sushi\n- She likes tea.\n- Anna does not eat meat on Fridays.\n")

    assert texts(found) == [
        "Anna / Food: sushi",
        "Anna / Food: She likes tea.",
        "Anna does not eat meat on Fridays.",
    ]
    assert found.remembered[2].extra == (("heading", "Anna / Food"),)


@pytest.mark.parametrize("title", ["Memory", "MEMORY.md", "CLAUDE.md", "Project memory"])
def test_a_title_that_says_nothing_is_no_context(tmp_path, title):
    assert texts(read(tmp_path, f"# {title}\n\n- uses tabs\n")) == ["uses tabs"]


def test_a_nested_item_and_one_below_a_line_that_leads_to_it_get_that_as_context(tmp_path):
    found = read(
        tmp_path,
        "# Build\n\nBefore a commit:\n- run tests\n- databases:\n  - port 5433\n- cache - on disk\n  1. cleared\n",
    )

    assert texts(found) == [
        "Build / Before a commit: run tests",
        "Build / Before a commit / databases: port 5433",
        "Build / Before a commit: cache - on disk",
        "Build / Before a commit / cache: cleared",
    ]
    assert found.warnings == ()


def test_a_soft_line_end_continues_a_statement_and_a_blank_line_ends_it(tmp_path):
    found = read(tmp_path, "# T\n- one\n  goes on\n\nTwo is here\nand goes on.\n\nThree is here too.\n")

    assert texts(found) == ["T: one goes on", "Two is here and goes on.", "Three is here too."]


def test_lines_of_keys_and_values_are_facts_of_their_own(tmp_path):
    found = read(tmp_path, "# Dana\n\nCity: Lisbon\nDiet: no meat\n\n**Role:** nurse\n**Shift:** nights\n")

    assert texts(found) == ["Dana: City: Lisbon", "Dana: Diet: no meat", "Dana: Role: nurse", "Dana: Shift: nights"]
    assert [item.line for item in found.remembered] == [3, 4, 6, 7]


def test_a_long_paragraph_is_cut_into_its_sentences_and_told(tmp_path):
    sentence = "Dana keeps a long list of things that matter to her, e.g. the tides. "

    found = read(tmp_path, "# Dana\n\n" + sentence * 10)

    assert texts(found) == [sentence.strip()] * 10
    assert told(found) == [(3, "a paragraph of 689 characters was cut into its 10 sentences")]


@pytest.mark.parametrize(
    ("block", "what"),
    [
        ("```sh\nrm -rf x\n```", "a code block"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a table"),
        ("<!-- not for you -->", "an HTML comment"),
        ("<!-- not\n- for you\n-->", "an HTML comment"),
        ("@docs/git.md", "an import"),
        ("- @~/.claude/private.md", "an import"),
        ("[docs]: https://example.org", "a link definition"),
        ("<details>", "an HTML tag"),
    ],
)
def test_what_is_no_statement_is_told_once_with_its_line(tmp_path, block, what):
    found = read(tmp_path, f"# Memory\n\n- uses tabs\n\n{block}\n\n- likes tea\n")

    assert texts(found) == ["uses tabs", "likes tea"]
    assert [(line, what in message) for line, message in told(found)] == [(5, True)]


@pytest.mark.parametrize(
    "left_out",
    [
        "[rest unchanged]",
        "[... rest of the existing content remains the same ...]",
        "(rest of file unchanged)",
        "... existing content ...",
        "- [previous sections unchanged]",
        "<!-- rest of the file unchanged -->",
        "- Name: [unknown]",
        "- to be filled out",
        "- Editor: TBD",
    ],
)
def test_a_placeholder_is_told_and_never_taken(tmp_path, left_out):
    found = read(tmp_path, f"# CLAUDE.md\n\n- Always run tests\n\n{left_out}\n")

    assert texts(found) == ["Always run tests"]
    assert [(line, "placeholder" in message) for line, message in told(found)] == [(5, True)]


def test_a_sentence_about_what_is_unchanged_is_no_placeholder(tmp_path):
    assert texts(read(tmp_path, "# Notes\n- The rest of the budget remains unchanged.\n")) == [
        "The rest of the budget remains unchanged."
    ]


def test_an_indented_block_is_code_and_below_a_list_item_it_is_more_of_that(tmp_path):
    found = read(
        tmp_path, "# Memory\n\nDana likes tea.\n\n    rm -rf x\n    rm -rf y\n\n- uses tabs\n\n    and spaces\n"
    )

    assert texts(found) == ["Dana likes tea.", "uses tabs", "uses tabs: and spaces"]
    assert told(found) == [(5, 'skipped a code block, which is no statement: "rm -rf x"')]


def test_a_heading_without_facts_and_words_that_lead_nowhere_are_told(tmp_path):
    found = read(tmp_path, "# Memory\n- a b c\n## Empty\n## Usage\nRun it so:\n```\nx\n```\n")

    assert texts(found) == ["a b c"]
    assert [message for _, message in told(found)] == [
        'nothing was taken below the heading "Empty"',
        'nothing was taken below the heading "Usage"',
        'skipped words that only lead to something else: "Run it so:"',
        'skipped a code block, which is no statement: "code"',
    ]


@pytest.mark.parametrize(("lines", "warned"), [(200, []), (201, [201])])
def test_more_lines_than_claude_code_loads_are_told(tmp_path, lines, warned):
    text = "# Memory\n" + "".join(f"- fact {number} is kept\n" for number in range(lines - 1))

    found = read(tmp_path, text)

    assert len(found.remembered) == lines - 1
    assert [line for line, message in told(found) if "does not load" in message] == warned


def test_a_topic_file_is_about_its_name_and_the_rest_of_its_front_matter_goes_along(tmp_path):
    front = (
        "---\nname: user-prefs\ndescription: how answers should be\nmetadata:\n  type: feedback\ntags: [a, b]\n---\n"
    )

    found = read(tmp_path, front + "- short answers\n")

    item = found.remembered[0]
    assert (item.text, item.subject, item.line) == ("user-prefs: short answers", "user-prefs", 8)
    assert item.extra == (("description", "how answers should be"), ("metadata.type", "feedback"), ("tags", "a, b"))


def test_a_topic_file_without_a_body_says_so(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it"):
        read(tmp_path, "---\nname: x\ndescription: nothing yet\n---\n")
    assert texts(read(tmp_path, "---\nname: x\n---\nDana likes tea.\n")) == ["Dana likes tea."]


def test_a_day_in_the_front_matter_stays_as_it_stands_and_an_instant_is_one(tmp_path):
    day = read(tmp_path, "---\nname: x\nupdated: 2025-01-01\n---\n- likes tea\n").remembered[0]
    instant = read(tmp_path, "---\nname: x\nmodified: 2025-01-01T00:00:00Z\n---\n- likes tea\n").remembered[0]

    assert (day.at, day.at_text) == (None, "2025-01-01")
    assert (instant.at, instant.at_text) == (1_735_689_600_000_000, None)


def test_tasks_have_their_state_and_what_was_struck_through_is_withdrawn(tmp_path):
    found = read(tmp_path, "# Memory\n- [ ] call Ann\n- [x] call Bob\n- ~~likes tea~~\n")

    assert [(item.text, item.status, item.ended) for item in found.remembered] == [
        ("call Ann", "open", None),
        ("call Bob", "done", None),
        ("likes tea", "struck through", State.REVOKED),
    ]


def test_an_index_points_to_its_notes_and_an_import_inside_a_sentence_is_told(tmp_path):
    found = read(
        tmp_path, "# Memory\n- [Build](build.md) — uv sync\n- for git see @docs/git.md\n- mail dana@example.org\n"
    )

    assert texts(found) == ["Build — uv sync", "for git see @docs/git.md", "mail dana@example.org"]
    assert ("link", "build.md") in found.remembered[0].extra
    assert told(found) == [(3, 'an import is not followed: "@docs/git.md"')]


@pytest.mark.parametrize(
    "text",
    [
        "plain words\nand more of them\n",
        "User: hello\nAssistant: hi\n",
        "## User\nhello\n\n## Assistant\nhi\n",
        "**Human:** hello\n\n**Claude:** hi\n",
        "# aider chat started at 2025-01-01 10:00:00\n\n#### hi\n",
        "#### fix it\n\n> Applied edit\n\nDone.\n",
        "import os\n# a comment\ndef f():\n    return 1\n",
        "history:\n  - role: user\n    content: x\n  - role: agent\n    content: y\n",
        "# settings\n[tool]\nname = 1\nother = 2\n",
        "role,content\nuser,hi\n",
    ],
)
def test_a_text_that_is_something_else_is_not_claimed(text):
    assert MARKDOWN.claims(Prose(text=text)) == 0
    assert MARKDOWN.claims(Prose(text="- likes tea\n- lives in Lisbon\n")) == 1


@pytest.mark.parametrize("name", ["malformed/n12_prose.txt", "malformed/n13_csv.csv", "aider/ai01_head.md"])
def test_files_of_other_kinds_are_left_to_others(name):
    text = (FIXTURES / name).read_text(encoding="utf-8")

    assert MARKDOWN.claims(Prose(text=text)) == 0


def test_windows_line_ends_a_mark_and_unclosed_blocks_are_no_trouble(tmp_path):
    assert texts(read(tmp_path, "\ufeff# Memory\r\n\r\n- uses tabs\r\n")) == ["uses tabs"]
    assert texts(read(tmp_path, "# Memory\n- uses tabs\n```\n- likes tea\n")) == ["uses tabs"]
    assert texts(read(tmp_path, "# Memory\n- uses tabs\n<!-- \n- likes tea\n")) == ["uses tabs"]
    assert texts(read(tmp_path, "Memory\n======\n- uses tabs\n\nFood\n----\n- likes tea\n")) == [
        "uses tabs",
        "Food: likes tea",
    ]
