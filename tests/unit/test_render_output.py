"""The way out: no text harms a terminal, no line is too wide, a pipe gets plain text."""

import io
import os
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memcli.errors import Unreadable
from memcli.facts import (
    Validity,
)
from memcli.render.file import (
    glossary_screen,
)
from memcli.render.layout import Column, Page
from memcli.render.memory import facts_screen
from memcli.render.rows import facts_rows, tsv
from memcli.render.terminal import print_screen, screen_width
from memcli.render.words import error_lines
from memcli.text import cells
from tests.made import fact
from tests.made_screens import HOSTILE, SHORT, control_characters, listed, screens, why


@pytest.mark.no_cover
@pytest.mark.parametrize("width", [40, 80, 300])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_reaches_no_screen_raw_and_no_line_is_wider_than_the_terminal(name, width):
    shown = [str(screen) for screen in screens(HOSTILE[name], width)]

    assert len(shown) > 10
    for text in shown:
        assert control_characters(text) == set()
        assert max(cells(line) for line in text.split("\n")) <= width


@given(st.text(st.characters(), max_size=60), st.integers(1, 120))
@example("東 京👩‍👩‍👧 ", 21)
def test_no_text_at_any_width_sends_a_control_character_to_the_terminal(text, width):
    for screen in screens(text, width):
        assert control_characters(str(screen)) == set()
        assert all(cells(line) <= max(width, 20) for line in str(screen).split("\n"))


def test_the_search_for_control_characters_finds_them():
    assert control_characters("a\x1b\u202eb\n") == {"\x1b", "\u202e"}


def test_an_error_about_hostile_text_sends_no_control_character():
    lines = error_lines(Unreadable("\x1b[31m.json", "odd\nname", hint="\u202etry"))

    assert control_characters(lines) == set()
    assert len(lines.split("\n")) == 2
    assert ".json" in lines


def test_an_id_and_a_number_are_never_cut_however_narrow_the_terminal():
    long_id = "0198c3a7-4f2a-7d00-8000-123456789abc"
    screen = facts_screen(
        [fact(id=long_id)],
        path="m.db",
        scope="s",
        readable=1,
        total=1,
        waiting=0,
        short_ids={},
        sightings={},
        width=24,
    )

    assert long_id in "".join(str(screen).split())
    assert "Lisbon" in str(screen)


def test_a_column_that_is_empty_everywhere_is_left_out():
    page = Page(40)
    page.table([Column(head="A"), Column(head="B"), Column(head="C", flexible=True)], [["a", "", "c"], ["a", "", "d"]])

    assert str(page.screen()) == "  A  C\n  a  c\n  a  d\n"


def test_columns_align_under_wide_letters():
    page = Page(40)
    page.table([Column(head="A", at_most=6), Column(head="B", flexible=True)], [["東京", "x"], ["ab", "y"]])

    assert str(page.screen()) == "  A     B\n  東京  x\n  ab    y\n"


def test_a_piped_listing_is_one_line_a_fact_whatever_its_text():
    hostile = fact(text="a\tb\nc\x1b[31m", valid=Validity())

    lines = list(tsv(facts_rows([fact(), hostile], SHORT)))

    assert lines[0] == "4f2a\taccepted\tanna\tAnna lives in Lisbon\t2026-03-05T00:00:00Z\t1\n"
    assert [line.count("\t") for line in lines] == [5, 5]
    assert [line.count("\n") for line in lines] == [1, 1]
    assert control_characters(lines[1].replace("\t", "")) == set()


def test_a_piped_listing_loads_no_rich():
    child = (
        "import sys, memcli.render.rows as rows\n"
        "assert list(rows.tsv([['a', 'b']])) == ['a\\tb\\n']\n"
        "assert 'rich' not in sys.modules and 'json' not in sys.modules, sorted(sys.modules)\n"
        "import memcli.render.memory, memcli.render.review, memcli.render.changes, memcli.render.file\n"
        "import memcli.render.terminal\n"
        "assert 'rich' not in sys.modules\n"
    )

    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False)

    assert done.stderr == ""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "PAGER", "LESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    return Terminal()


def test_a_pipe_gets_the_plain_text_whatever_was_asked():
    pipe = io.StringIO()

    print_screen(listed(), colour=True, page=True, file=pipe)

    assert pipe.getvalue() == str(listed())


def test_a_terminal_gets_colour_that_carries_nothing(terminal):
    print_screen(listed(), colour=True, page=False, file=terminal)

    painted = terminal.getvalue()
    assert "\x1b[32maccepted\x1b[0m" in painted
    assert without_colour(painted) == str(listed())


def without_colour(text):
    """Return the text without the orders that change colour; any other order stays and is seen."""
    pieces = text.split("\x1b[")
    return pieces[0] + "".join(piece.partition("m")[2] for piece in pieces[1:])


def test_a_terminal_without_colour_gets_the_plain_text(terminal):
    print_screen(listed(), colour=False, page=False, file=terminal)

    assert terminal.getvalue() == str(listed())


@pytest.mark.no_cover
@pytest.mark.parametrize("name", HOSTILE)
def test_colour_reads_no_markup_out_of_memory_text(name, terminal):
    shown = screens(HOSTILE[name], 80)
    for screen in shown:
        print_screen(screen, colour=True, page=False, file=terminal)

    assert without_colour(terminal.getvalue()) == "".join(map(str, shown))


def test_a_long_screen_goes_through_the_pager(terminal, monkeypatch, tmp_path):
    kept = tmp_path / "paged.txt"
    monkeypatch.setenv(
        "PAGER",
        f"{sys.executable} -c \"import sys, pathlib, os; pathlib.Path(r'{kept}').write_text("
        "os.environ['LESS'] + sys.stdin.read(), encoding='utf-8')\"",
    )

    print_screen(glossary_screen(), colour=False, page=True, file=terminal)

    assert kept.read_text(encoding="utf-8") == f"FRX{glossary_screen()}"
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("pager", ["", "no-such-pager-anywhere", "less 'unclosed"])
def test_where_no_pager_can_be_started_the_screen_is_printed(pager, terminal, monkeypatch):
    monkeypatch.setenv("PAGER", pager)

    print_screen(glossary_screen(), colour=False, page=True, file=terminal)

    assert terminal.getvalue() == str(glossary_screen())


def test_a_short_screen_and_one_that_is_not_to_be_paged_go_straight_out(terminal, monkeypatch):
    monkeypatch.setenv("PAGER", f"{sys.executable} -c 'raise SystemExit'")

    print_screen(listed(), colour=False, page=True, file=terminal)
    print_screen(glossary_screen(), colour=False, page=False, file=terminal)

    assert terminal.getvalue() == f"{listed()}{glossary_screen()}"


def test_a_code_page_without_our_signs_gets_plainer_ones():
    raw = io.BytesIO()
    old = io.TextIOWrapper(raw, encoding="ascii", newline="\n")

    print_screen(why(), colour=False, page=False, file=old)

    lines = raw.getvalue().decode("ascii")
    assert "> 212  user" in lines
    assert '"Anna lives in Lisbon"' in lines
    assert len(lines) == len(str(why()))


@pytest.mark.parametrize(("columns", "width"), [("", 80), ("odd", 80), ("60", 60), ("1", 20), ("1000000", 300)])
def test_the_width_is_that_of_the_terminal_within_reason(columns, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((80, 24)))

    assert screen_width() == width
