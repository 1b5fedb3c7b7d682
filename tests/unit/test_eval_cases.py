"""Case files: what is read from them, and every way in which one is refused with its place and what is right."""

from pathlib import Path
from typing import Any

import pytest

from memcli.errors import Unreadable
from memcli.evals import Case, read_cases

CASES = Path(__file__).parents[2] / "fixtures" / "evals"


def written(folder: Path, text: str, name: str = "cases.toml") -> str:
    """Write a file of cases and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


WHOLE = """
[defaults]
scope = "user/anna"
k = 3
db = "memory.db"

[[case]]
id = "home"
query = "where"
expect = ["Lisbon", "Lisbon"]
forbid = ["Berlin"]
control = ["tea"]
evidence = ["s1#3"]
budget = 0
repeat = 2

[[case]]
id = "was"
subject = "anna"
attribute = "home city"
valid_at = 2026-01-01
known_at = 2026-01-02T12:00:00+02:00
expect = ["Berlin"]
k = 4
transcript = "chats/a.json"
"""


def test_a_case_file_in_toml_is_read_whole(tmp_path):
    path = written(tmp_path, WHOLE)

    home, was = read_cases([path])

    assert home == Case(
        id="home",
        path=path,
        line=7,
        query="where",
        scope="user/anna",
        expect=("Lisbon",),
        forbid=("Berlin",),
        control=("tea",),
        evidence=("s1#3",),
        k=3,
        budget_tokens=0,
        repeat=2,
        db=str(tmp_path / "memory.db"),
    )
    assert (was.line, was.k, was.db, was.transcript) == (17, 4, None, str(tmp_path / "chats/a.json"))
    assert (was.valid_at, was.known_at) == (1_767_225_600_000_000, 1_767_348_000_000_000)


def test_a_case_file_in_json_lines_says_the_same_as_one_in_toml(tmp_path):
    lines = (
        '\n{"id": "home", "query": "where", "expect": ["Lisbon"], "k": 3}\n\n{"id": "b", "query": "x", "forbid": ["y"]}'
    )
    toml = (
        '[[case]]\nid = "home"\nquery = "where"\nexpect = ["Lisbon"]\nk = 3\n[[case]]\nid="b"\nquery="x"\nforbid=["y"]'
    )

    def told(path: str) -> list[dict[str, Any]]:
        found = read_cases([path])
        return [{name: getattr(one, name) for name in ("id", "query", "expect", "forbid", "k")} for one in found]

    path = written(tmp_path, lines, "cases.jsonl")
    assert told(path) == told(written(tmp_path, toml))
    assert [one.line for one in read_cases([path])] == [2, 4]
    assert told(written(tmp_path, lines, "cases.txt")) == told(path)


def test_a_header_inside_a_text_leaves_the_lines_untold(tmp_path):
    text = '[[case]]\nid = "a"\nquery = """\n[[case]]\n"""\nexpect = ["x"]\n'

    assert read_cases([written(tmp_path, text)])[0].line is None


@pytest.mark.parametrize(
    ("line", "said", "right"),
    [
        ("expects = ['x']", "case home: expects is no key of a case", "the keys are id, query"),
        ("forbid = 'x'", "case home: forbid is a text", "a list of texts"),
        ("forbid = [5]", "case home: forbid holds a number", "a list of texts"),
        ('forbid = ["\\u200b"]', "case home: forbid holds a text that shows nothing", "write words"),
        ("forbid = ['']", "case home: forbid holds a text that shows nothing", "write words"),
        ("control = [[]]", "case home: control holds a list", "a list of texts"),
        ("evidence = [3]", "case home: evidence by number needs a transcript", "s1#3"),
        ("evidence = ['3']", "case home: evidence holds 3, which is no message", "s1#3"),
        ("evidence = [-1]", "case home: evidence holds -1, which is no message", "from 0"),
        ("evidence = [true]", "case home: evidence holds true or false", "message ids"),
        ("evidence = 's1#3'", "case home: evidence is a text", "message ids"),
        ("k = 0", "case home: k is 0", "from 1"),
        ("k = '5'", "case home: k is a text", "a whole number"),
        ("k = true", "case home: k is true", "a whole number"),
        ("budget = -1", "case home: budget is -1", "from 0"),
        ("repeat = 0", "case home: repeat is 0", "from 1"),
        ("repeat = 1.5", "case home: repeat is a number", "a whole number"),
        ("scope = ''", "case home: scope is empty", "at least one"),
        ("scope = 5", "case home: scope is a number", "write a text"),
        ("subject = 'anna'", "case home: a slot is a subject and an attribute", "give both"),
        ("valid_at = 'yesterday'", "case home: valid_at takes a date or a time", "2026-03-02"),
        ("valid_at = 2026-01-01T00:00:00", "case home: valid_at takes a date or a time with its zone", "2026-03-02"),
        ("valid_at = 12:00:00", "case home: valid_at is a time", "with its zone"),
        ("valid_at = 2026-01-01", "case home: a time is asked of a slot", "subject and an attribute"),
        ("transcript = 'a'\ndb = 'b'", "case home: it names a transcript and a memory file", "leave"),
    ],
)
def test_what_is_wrong_in_a_case_is_said_with_its_place_and_what_is_right(tmp_path, line, said, right):
    path = written(tmp_path, f"\n[[case]]\nid = 'home'\nquery = 'where'\nexpect = ['x']\n{line}\n")

    with pytest.raises(Unreadable) as raised:
        read_cases([path])

    assert raised.value.message.startswith(f"{path} line 2: {said}")
    assert right in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no case is in it"),
        ("[defaults]\nk = 1\n", "no case is in it"),
        ("[[case]]\nquery = 'x'\nexpect = ['x']", " line 1: case 1: it has no id"),
        ("[[case]]\nid = ''\nquery = 'x'\nexpect = ['x']", " line 1: case 1: id is empty"),
        ("[[case]]\nid = 'a`b'\nquery = 'x'\nexpect = ['x']", " line 1: case a`b: id cannot stand in a report"),
        ("[[case]]\nid = \"a\\nb\"\nquery = 'x'\nexpect = ['x']", "id cannot stand in a report"),
        ("[[case]]\nid = 'a'\nexpect = ['x']", " line 1: case a: it asks nothing"),
        ("[[case]]\nid = 'a'\nquery = 'x'", " line 1: case a: it judges nothing"),
        ("[[case]]\nid = 'a'\nquery = 'x'\ncontrol = ['x']", " line 1: case a: it judges nothing"),
        ("[[case]\nid = 1", " line 1: no TOML: "),
        ("[[cases]]\nid = 'a'", ": cases is no key of a case file"),
        ("case = 5", ": case is no list of tables"),
        ("defaults = 5", ": defaults is no table"),
        ("[defaults]\nid = 'a'", ": defaults: id holds for one case only"),
        ("[defaults]\nqueries = 'a'", ": defaults: queries is no key of a case"),
        ("x = " + "[" * 5000, ": "),
    ],
)
def test_a_file_in_toml_that_is_not_right_is_refused(tmp_path, text, said):
    path = written(tmp_path, text)

    with pytest.raises(Unreadable) as raised:
        read_cases([path])

    assert said in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n\n", "no case is in it"),
        ('\n{"id": }', " line 2: no JSON"),
        ("[]", " line 1: it is no JSON object"),
        ('{"id": "a", "query": "x", "expect": null}', " line 1: case a: expect is null"),
        ('{"id": "a", "query": "x", "expect": {}}', " line 1: case a: expect is a table"),
        ('{"id": "a", "query": "\\ud800", "expect": ["x"]}', " line 1: case a: query has half of a surrogate pair"),
        ('{"id": "a", "k": NaN}', " line 1: "),
        ('{"id": 5}', " line 1: case 1: id is a number"),
    ],
)
def test_a_file_in_json_lines_that_is_not_right_is_refused(tmp_path, text, said):
    path = written(tmp_path, text, "cases.jsonl")

    with pytest.raises(Unreadable) as raised:
        read_cases([path])

    assert said in raised.value.message


def test_a_time_is_not_asked_of_recall(tmp_path):
    text = "[[case]]\nid = 'a'\nquery = 'x'\nsubject = 's'\nattribute = 'a'\nknown_at = 2026-01-01\nexpect = ['x']"

    with pytest.raises(Unreadable, match="recall answers as of now"):
        read_cases([written(tmp_path, text)])


def test_an_id_that_was_given_already_is_named_with_its_first_place(tmp_path):
    text = "[[case]]\nid = 'a'\nquery = 'x'\nexpect = ['x']\n"
    first, second = written(tmp_path, text), written(tmp_path, text, "more.toml")

    with pytest.raises(Unreadable) as raised:
        read_cases([first, second])

    assert raised.value.message == f"{second} line 1: case a: its id was given already, in {first} line 1"


def test_bytes_that_are_no_text_and_paths_that_are_no_file_are_unreadable(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"# one\n# caf\xe9\n")

    for path, said in ((tmp_path / "latin.toml", "line 2: byte 12 is no UTF-8"), (tmp_path, "is a directory")):
        with pytest.raises(Unreadable, match=said):
            read_cases([str(path)])
    for name in ("gone.toml", "a\0b"):
        with pytest.raises(Unreadable):
            read_cases([str(tmp_path / name)])


@pytest.mark.parametrize("path", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_the_shipped_cases_are_read(path):
    assert read_cases([str(path)])
