"""Streams that are closed, full or odd, and environments that lack what others have."""

import json

import pytest

from tests.cli.driver import Mem
from tests.cli.test_bad_input import complains


@pytest.fixture
def tea(mem: Mem) -> Mem:
    mem("add", "Tea is HOT", "--subject", "tea")
    return mem


def test_text_comes_from_standard_input_without_its_mark_and_line_end(mem: Mem) -> None:
    added = mem.run("add", "-", "--json", stdin=b"\xef\xbb\xbfTea is HOT\r\n")

    assert added.document["text"] == "Tea is HOT"


@pytest.mark.parametrize("words", [("add", "-"), ("correct", "f1", "-", "--reason", "x")], ids=lambda words: words[0])
def test_standard_input_that_is_no_text_is_refused(tea: Mem, words: tuple[str, ...]) -> None:
    before = tea.events()

    complains(tea.run(*words, stdin=b"a\xff\xfe"), 5, "standard input: byte 2 is no UTF-8")
    complains(tea.run(*words, stdin=b""), 2, "the text is empty")
    complains(tea.run(*words, stdin=b"a\0b"), 2, "the text has the character NUL at character 2")
    assert tea.events() == before


def test_a_closed_standard_input_is_no_empty_text(tea: Mem) -> None:
    complains(tea.spawn("add", "-", stdin=None), 2, "there is no standard input")
    assert tea.spawn("import", "-", stdin=None).code == 5
    assert tea.spawn("add", "Milk is cold", stdin=None).code == 0
    assert tea.spawn("show", stdin=None).out.count("\n") == 2


@pytest.mark.parametrize("stdin", [b"", b"\xff\xfe\x00", b"\0" * 100, b"{", b"[]"], ids=ascii)
def test_a_transcript_that_cannot_be_read_from_standard_input_is_said(tea: Mem, stdin: bytes) -> None:
    before = tea.events()

    ran = tea.run("import", "-", "--json", stdin=stdin)

    assert (ran.code, ran.complaint["error"]) == (5, "unreadable")
    assert ran.document["files"][0]["error"]
    assert tea.events() == before


@pytest.mark.parametrize(
    "words", [("show",), ("show", "--json"), ("stats",), ("add", "Milk is cold"), ("--help",)], ids=" ".join
)
def test_output_to_a_full_disk_is_one_sentence(tea: Mem, words: tuple[str, ...]) -> None:
    ran = tea.spawn(*words, around='"$@" > /dev/full')

    assert ran.code == 14
    assert "the answer cannot be printed: " in ran.err
    assert ran.err.count("\n") == (1 if "--json" in words else 2)


def test_a_closed_standard_output_stops_before_anything_is_changed(tea: Mem) -> None:
    before = tea.events()

    complains(tea.spawn("add", "Milk is cold", around='"$@" >&-'), 14, "standard output is closed; nothing was done")
    complains(tea.spawn("show", around='"$@" >&-'), 14, "standard output is closed; nothing was done")
    assert tea.events() == before


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_without_standard_error_the_exit_code_remains(tea: Mem, where: str) -> None:
    assert tea.spawn("show", "abcd", around=f'"$@" {where}').code == 4
    assert tea.spawn("show", around=f'"$@" {where}').out.count("Tea is HOT") == 1


def test_a_reader_that_has_seen_enough_is_no_error(mem: Mem) -> None:
    talk = [{"role": "user", "content": f"remember that tea number {n} is hot"} for n in range(900)]
    mem.run("import", "-", stdin=json.dumps(talk).encode())
    mem.run("extract")

    few = mem.spawn("show", "--jsonl", around='"$@" | head -n 1')
    none = mem.spawn("show", "--json", around='"$@" | true')
    page = mem.spawn("--help", around='"$@" | true')

    assert (few.code, few.err, few.out.count("\n")) == (0, "", 1)
    assert (none.text, page.text) == ("", "")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8"])
def test_a_stream_that_lacks_a_sign_shows_another_and_never_fails(mem: Mem, encoding: str) -> None:
    told = {"PYTHONIOENCODING": encoding}
    mem("add", "東京 is “big” – ü")

    added, shown, stats, missing, as_json = (
        mem.spawn(*words, env=told)
        for words in (("add", "Tea is HOT"), ("show",), ("stats",), ("show", "東"), ("show", "--json"))
    )

    assert [added.code, shown.code, stats.code, missing.code] == [0, 0, 0, 4]
    assert "added f2 - accepted" in added.text or encoding != "ascii"
    assert shown.out.encode().isascii() or encoding != "ascii"
    assert as_json.document[1]["text"] == "東京 is “big” – ü"


def test_without_home_or_login_a_command_runs_and_names_somebody(tea: Mem) -> None:
    gone = {"HOME": None, "USER": None, "LOGNAME": None}

    added = tea.spawn("add", "Milk is cold", "--json", env=gone)

    assert added.document["actor"]["name"]
    assert added.document["actor"]["kind"] == "script"


def test_in_a_folder_that_is_gone_there_is_no_file(tea: Mem) -> None:
    ran = tea.spawn("show", around='mkdir gone && cd gone && rmdir ../gone && "$@"')

    complains(ran, 10, "there is no memory file at memory.db")


@pytest.mark.parametrize("columns", ["0", "-5", "x", "1", "40", "300", "99999999"])
def test_any_width_is_survived(tea: Mem, columns: str) -> None:
    for words in (
        ("show", "f1"),
        ("why", "f1"),
        ("stats",),
        ("check",),
        ("glossary",),
        ("tombstone", "f1", "--dry-run"),
    ):
        ran = tea.run(*words, env={"COLUMNS": columns})

        assert (ran.code, ran.err) == (0, "")
        assert ran.out.strip()


def test_no_command_leaves_anything_beside_the_file(tea: Mem) -> None:
    tea("correct", "f1", "Tea is warm", "--reason", "it cooled")
    tea("show")
    tea("check")

    assert [path.name for path in tea.home.iterdir()] == ["memory.db"]
