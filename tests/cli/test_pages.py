"""`mem show --html` and `mem log --html`: what stands in the file that they write, and when they write none."""

import json
import os
import stat

import pytest

from tests.cli.driver import Mem
from tests.files import behind

CHAT = [
    {"role": "assistant", "content": "How is the flat in Berlin?"},
    {"role": "user", "content": "I sold it, we moved to Lisbon last week"},
    {"role": "assistant", "content": "Congratulations!"},
]
WHY = ("--reason", "moved")


@pytest.fixture
def home(mem: Mem) -> Mem:
    """f1 was corrected on evidence, f2 derived from it, and f3 is disputed."""
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    for words in (
        ("import", "chat.json"),
        ("add", "Anna lives in Berlin", "--subject", "anna"),
        ("correct", "f1", "Anna lives in Lisbon", "--evidence", "s1#1", "--quote", "moved to Lisbon", *WHY),
        ("add", "Anna's time zone is WET", "--derived-from", "f1"),
        ("add", "likes <b>bold</b> tea"),
        ("dispute", "f3", *WHY),
    ):
        assert mem.run(*words).code == 0
    return mem


def page_of(home: Mem, *words: str) -> str:
    """Return the page that a command writes."""
    ran = home.run(*words, "--html", "page.html", "--force")
    assert (ran.code, ran.err) == (0, "")
    return (home.home / "page.html").read_text(encoding="utf-8")


def names(home: Mem) -> list[str]:
    """Return what is in the folder; SQLite's own files beside the memory come and go."""
    return sorted(path.name for path in home.home.iterdir() if not path.name.startswith("memory.db-"))


# ---------------------------------------------------------------- what is in it


def test_a_list_holds_what_show_lists(home):
    ran = home.run("show", "--html", "page.html")
    page = (home.home / "page.html").read_text(encoding="utf-8")

    assert ran.text == "wrote page.html · 2 facts\n"
    assert page.startswith("<!doctype html>")
    assert "Anna lives in Lisbon" in page
    assert "bold" not in page


@pytest.mark.parametrize(
    ("words", "there", "not_there"),
    [
        (("--all-states",), "bold", "Anna lives in Berlin"),
        (("--state", "disputed"), "bold", "Lisbon"),
        (("--subject", "anna"), "Lisbon", "WET"),
        (("--source", "s1"), "Lisbon", "WET"),
        (("--limit", "1"), "WET", "Anna lives in"),
        (("--after", "f2"), "Lisbon", "WET"),
    ],
)
def test_a_list_takes_the_filters_of_show_and_names_them(home, words, there, not_there):
    page = page_of(home, "show", *words)

    assert there in page
    assert not_there not in page
    assert "readable facts that are valid now" not in page


def test_a_list_is_whole_where_a_terminal_would_show_a_page_of_it(mem):
    for number in range(120):
        assert mem.run("add", f"fact number {number}").code == 0

    seen = mem.term("show", "--html", "page.html")
    assert seen.screen == "wrote page.html · 120 facts\n"
    assert (mem.home / "page.html").read_text(encoding="utf-8").count("<tr data-row") == 120


def test_one_fact_comes_with_its_quote_versions_derivations_and_events(home):
    page = page_of(home, "show", "f1")

    assert "we <mark>moved to Lisbon</mark> last week" in page
    assert "How is the flat in Berlin?" in page
    assert "Anna lives in Berlin" in page
    assert "time zone is WET" in page
    assert "corrected" in page


def test_several_facts_are_one_page_and_each_stands_there_once(home):
    page = page_of(home, "show", "f1", "f3", "f1")

    assert page.count("<article") == 2
    assert "likes &lt;b&gt;bold&lt;/b&gt; tea" in page


def test_a_fact_as_it_was_known_has_none_of_what_came_later(home):
    before = home.ok("log", "--op", "correct")[0]["at"]
    moment = home.ok("show", "f1", "--known-at", before)["recorded_at"]
    earlier = home.ok("log", "--op", "add")[0]["at"]

    assert moment == before
    page = page_of(home, "show", "f1", "--known-at", earlier)
    assert "Anna lives in Berlin" in page
    assert "moved to Lisbon" not in page
    assert "as the file knew it at" in page


def test_the_log_holds_every_event_and_says_that_its_chain_is_verified(home):
    ran = home.run("log", "--html", "page.html")
    page = (home.home / "page.html").read_text(encoding="utf-8")
    events = home.ok("log")

    assert ran.text == f"wrote page.html · {len(events)} events, chain verified\n"
    assert page.count("<tr data-row") == len(events)
    assert all(event["hash"] in page for event in events)


def test_an_event_that_was_altered_is_never_shown_and_breaks_the_chain_of_the_others(home):
    with behind(home.db, as_mem=True) as conn:
        guard = conn.execute("select sql from sqlite_master where name = 'audit_no_update'").fetchone()[0]
        conn.execute("drop trigger audit_no_update")
        conn.execute("update audit set op = 'verify' where seq = 3")
        conn.execute(guard)
    whole = home.run("log", "--html", "page.html")
    assert (whole.code, names(home)) == (13, ["chat.json", "memory.db"])

    ran = home.run("log", "--limit", "1", "--html", "page.html")
    page = (home.home / "page.html").read_text(encoding="utf-8")
    assert ran.text == "wrote page.html · 1 event, chain broken in 1 place\n"
    assert '<b class="bad">broken</b> in 1 place' in page
    assert "chain-broken" in page
    assert "verified</b>" not in page


@pytest.mark.parametrize("words", [("--op", "dispute"), ("--fact", "f3"), ("--limit", "1"), ("--since", "2026-03-12")])
def test_the_log_takes_the_filters_of_the_command_and_names_them(home, words):
    page = page_of(home, "log", *words)

    assert page.count("<tr data-row") == len(home.ok("log", *words))
    assert "disputed" in page
    assert "every event" not in page


def test_a_look_into_every_scope_is_on_the_page_and_in_the_log(home):
    assert home.run("add", "of the team", "--scope", "team").code == 0
    page = page_of(home, "show", "--all-scopes")

    assert "of the team" in page
    assert "all scopes" in page
    assert "of the team" not in page_of(home, "show")
    assert home.ok("log", "--op", "read") != []


# ---------------------------------------------------------------- where it goes


@pytest.mark.parametrize("command", ["show", "log"])
def test_a_page_overwrites_nothing_unless_it_is_forced_to(home, command):
    (home.home / "page.html").write_text("mine")
    ran = home.run(command, "--html", "page.html")

    assert (ran.code, ran.out) == (2, "")
    assert "exists already" in ran.err
    assert (home.home / "page.html").read_text() == "mine"
    assert home.run(command, "--html", "page.html", "--force").code == 0
    assert (home.home / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("command", ["show", "log"])
@pytest.mark.parametrize("name", ["none/page.html", "chat.json/page.html"])
def test_a_page_that_cannot_be_written_leaves_nothing(home, command, name):
    before = names(home)

    assert home.run(command, "--html", name).code == 14
    assert names(home) == before


@pytest.mark.parametrize("command", ["show", "log"])
@pytest.mark.parametrize("name", ["", "."])
def test_a_page_needs_a_path_of_its_own(home, command, name):
    assert home.run(command, "--html", name, "--force").code == 2


@pytest.mark.parametrize("command", ["show", "log"])
@pytest.mark.parametrize("name", ["memory.db", "./memory.db", "memory.db-wal", "memory.db-journal", "other.db"])
def test_a_page_never_takes_the_place_of_the_memory_file(home, command, name):
    os.link(home.db, home.home / "other.db")
    before = home.db.read_bytes()
    ran = home.run(command, "--html", name, "--force")

    assert ran.code == 2
    assert "is the memory file" in ran.err
    assert home.db.read_bytes() == before
    assert home.run(command, "--html", "page.html").code == 0


@pytest.mark.parametrize("command", ["show", "log"])
@pytest.mark.parametrize("form", ["--json", "--jsonl"])
def test_a_page_and_a_document_exclude_each_other(home, command, form):
    ran = home.run(command, "--html", "page.html", form)

    assert (ran.code, ran.out) == (2, "")
    assert "page.html" not in names(home)
    assert home.run(command, form).code == 0


@pytest.mark.parametrize("words", [("show",), ("show", "f1"), ("log",)])
def test_a_dash_prints_the_page_and_nothing_else(home, words):
    ran = home.run(*words, "--html", "-")
    written = page_of(home, *words)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == written
    assert written.endswith("</html>\n")


def test_a_page_is_utf_8_whatever_the_output_is(home):
    assert home.run("add", "drinks café – in 東京").code == 0
    ran = home.spawn("show", "--html", "-", env={"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"})

    assert "drinks café – in 東京" in ran.out
    assert ran.code == 0


@pytest.mark.parametrize("words", [("show", "abcd"), ("log", "--fact", "abcd")])
def test_an_unknown_fact_makes_no_page(home, words):
    assert home.run(*words, "--html", "page.html").code == 4
    assert "page.html" not in names(home)


def test_a_missing_memory_file_makes_no_page(bare):
    assert bare.run("show", "--html", "page.html").code == 10
    assert list(bare.home.iterdir()) == []


def test_a_page_is_for_its_owner_alone_as_the_memory_file_is(home):
    page_of(home, "show")

    assert stat.S_IMODE((home.home / "page.html").stat().st_mode) == stat.S_IMODE(home.db.stat().st_mode) == 0o600


def test_a_full_disk_is_a_sentence(home):
    ran = home.spawn("show", "--html", "-", around='"$@" >/dev/full')

    assert ran.code == 14
    assert "cannot be printed" in ran.err
