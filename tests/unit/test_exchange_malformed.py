"""Damaged, foreign and hostile files: one bad line costs one line, and nothing is ever read as empty."""

import gzip
import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from memcli import exchange
from memcli.errors import Unreadable, UsageError
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXPECTED = {
    Path(row["file"]).name: row
    for row in json.loads((FIXTURES / "malformed/EXPECTED.json").read_text(encoding="utf-8"))
}
READ = {name: row for name, row in EXPECTED.items() if "messages" in row and row["outcome"] != "error"}
READ["n12_prose.txt"] = {"messages": 4, "outcome": "ok"}  # a text transcript, which may be supported
REFUSED = sorted(name for name, row in EXPECTED.items() if row["outcome"].startswith("error") and name not in READ)
NOTED = frozenset({"m38_chatgpt_branches.json"})
"""What is read without a defect, and has more in it that is told of."""

MESSAGE = b'{"role": "user", "content": "hi"}'


def opened(name: str) -> exchange.Opened:
    return exchange.open_file(str(FIXTURES / "malformed" / name))


def contents(found: exchange.Opened) -> list[str]:
    return [turn.content for conversation in found.conversations for turn in conversation.turns]


def read(tmp_path: Path, data: bytes, **options: str) -> exchange.Opened:
    path = tmp_path / "file"
    path.write_bytes(data)
    return exchange.open_file(str(path), **options)


def refusal(tmp_path: Path, data: bytes, **options: str) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read(tmp_path, data, **options)
    return caught.value


def told(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        exchange.open_file(str(path))
    return caught.value.why


@pytest.mark.parametrize("name", sorted(READ))
def test_a_damaged_file_gives_what_is_whole_in_it(name):
    row = READ[name]

    found = opened(name)

    assert len(contents(found)) == row["messages"]
    # Two reports expect no more than that it does not fail; both have doubts worth telling.
    if row["outcome"] in ("ok", "warn"):
        assert bool(found.warnings) == (row["outcome"] == "warn" or name in NOTED)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_and_left_as_it_is(name):
    path = FIXTURES / "malformed" / name
    before = path.read_bytes()

    with pytest.raises(Unreadable) as caught:
        exchange.open_file(str(path))

    assert caught.value.exit_code == 5
    assert caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("m22_empty.json", "the file is empty"),
        ("s03_zero_byte.db", "the file is empty"),
        ("m26_html_page.json", "an HTML page"),
        ("n14_binary.json", "binary data"),
        ("n02_empty_object.json", "an empty JSON object"),
        ("n03_empty_array.json", "an empty JSON array"),
        ("n04_null.json", "the JSON value null"),
        ("n05_string.json", "a JSON string"),
        ("n01_package.json", "a JSON object with the keys name, version, dependencies"),
        ("n11_tasks.jsonl", "a JSON object with the keys id, title, status"),
        ("s02_not_a_database.db", "Markdown or plain text"),
        ("n13_csv.csv", "comma-separated values"),
        ("m21_python_repr.json", "it looks like a Python value"),
        ("m15_cp1252.json", "byte 32 is not UTF-8"),
    ],
)
def test_a_refusal_says_what_the_file_looks_like(name, why):
    with pytest.raises(Unreadable) as caught:
        opened(name)

    assert why in caught.value.why


def test_an_unrecognised_file_says_what_was_looked_for():
    with pytest.raises(Unreadable, match=r"none of \d+ known formats fits") as caught:
        opened("n01_package.json")

    assert caught.value.tried == exchange.FORMATS[1:]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"SQLite format 3\0" + b"\0" * 84, "a SQLite database"),
        (b"PK\x03\x04" + b"\0" * 30, "a ZIP archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"  \n\t\r\n", "nothing but blanks"),
        (b"\0" * 512, "nothing but blanks or NUL bytes"),
        (b"\xff\xfe", "nothing but blanks"),
        (gzip.compress(gzip.compress(MESSAGE, mtime=0), mtime=0), "gzip inside gzip"),
    ],
)
def test_other_kinds_of_file_are_named(tmp_path, data, what):
    assert what in refusal(tmp_path, data).why
    assert contents(read(tmp_path, MESSAGE)) == ["hi"]


def test_a_broken_document_is_refused_with_its_line_and_column(tmp_path):
    broken = refusal(tmp_path, b'[\n {"role": "user", "content": "a"},\n {"role": "user", "content": "b"},\n]\n')

    assert broken.line == 4
    assert "not valid JSON: expecting value at column 1" in broken.why


def test_a_document_that_was_cut_is_no_shorter_document(tmp_path):
    whole = json.dumps([json.loads(MESSAGE)] * 3, indent=1).encode()

    assert refusal(tmp_path, whole[:-20]).line == 12
    assert contents(read(tmp_path, whole)) == ["hi", "hi", "hi"]


def test_a_cut_last_line_costs_that_line():
    found = opened("m01_truncated_last_line.jsonl")

    assert [warned.line for warned in found.warnings] == [6]


def test_a_line_cut_inside_a_character_costs_that_line_and_is_no_other_encoding(tmp_path):
    found = read(tmp_path, MESSAGE + b"\n" + '{"role": "user", "content": "é'.encode()[:-1])

    assert contents(found) == ["hi"]
    assert [warned.line for warned in found.warnings] == [2]


def test_a_whole_record_behind_a_cut_one_on_the_same_line_is_kept(tmp_path):
    found = read(
        tmp_path, MESSAGE + b'\n{"role": "user", "content": "lost {"role": "user", "content": "kept"}\n' + MESSAGE
    )

    assert contents(found) == ["hi", "kept", "hi"]
    assert [warned.line for warned in found.warnings] == [2]


def test_a_record_that_a_bare_line_feed_broke_is_put_together_again(tmp_path):
    found = read(tmp_path, MESSAGE + b'\n{"role": "user", "content": "one\ntwo\nthree"}\n' + MESSAGE)

    assert contents(found) == ["hi", "one\ntwo\nthree", "hi"]
    assert found.warnings == ()


def test_a_line_separator_of_unicode_is_no_line_end(tmp_path):
    found = read(tmp_path, '{"role": "user", "content": "a\u2028b\u0085c"}\n'.encode() + MESSAGE)

    assert contents(found) == ["a\u2028b\u0085c", "hi"]


def test_a_bad_first_line_does_not_hide_the_others(tmp_path):
    found = read(tmp_path, b"garbage\n" + MESSAGE + b"\n" + MESSAGE)

    assert contents(found) == ["hi", "hi"]
    assert [warned.line for warned in found.warnings] == [1]


def test_a_nul_run_costs_its_line_and_names_it():
    found = opened("m04_nul_run_line.jsonl")

    assert [(warned.line, "NUL" in warned.message) for warned in found.warnings] == [(4, True)]


def test_carriage_returns_end_lines_and_are_no_content():
    found = opened("m10_crlf.jsonl")

    assert not any(text.endswith("\r") for text in contents(found))
    assert contents(found)[0] == "rename the module"


def test_surrogates_controls_and_nuls_stay_as_they_are():
    assert contents(opened("m17_lone_surrogate.json")) == ["emoji cut \ud83d here", "ok \udc00"]
    assert "\x1b]0;pwned\x07" in contents(opened("m41_terminal_escapes.json"))[0]
    assert contents(opened("m41_terminal_escapes.json"))[1].endswith("\0nul")


def test_no_time_is_invented():
    turns = opened("m29_timestamps.json").conversations[0].turns

    assert [turn.content for turn in turns] == [f"ts case {index}" for index in range(15)]
    assert turns[4].at == 1_770_078_314_150_000
    assert {index: turn.at_text for index, turn in enumerate(turns) if turn.at_text is not None} == {
        5: "2025-01-27T22:45:13.764487",
        6: "2023/05/25 (Thu) 20:21",
        7: "1:56 pm on 8 May, 2023",
        8: "29.12.2023, 22:42:04",
        10: "0",
        11: "-1",
        14: "not a date",
    }
    assert all(turns[index].at is None for index in (5, 6, 7, 8, 10, 11, 12, 13, 14))


def test_numbers_that_json_does_not_have_become_null():
    found = opened("m18_nan_infinity.json")

    assert [(turn.at, turn.at_text) for turn in found.conversations[0].turns] == [(None, None), (None, None)]
    assert contents(found) == ["hi", "hello"]


def test_every_spelling_of_a_role_is_kept():
    turns = opened("m31_roles.json").conversations[0].turns

    assert [turn.role for turn in turns] == (
        [Role.SYSTEM] * 2
        + [Role.USER] * 2
        + [Role.ASSISTANT, Role.USER]
        + [Role.ASSISTANT] * 5
        + [Role.TOOL] * 5
        + [Role.ASSISTANT]
        + [Role.UNKNOWN] * 3
    )
    assert [turn.raw_role for turn in turns[-3:]] == ["narrator", None, None]


def test_every_shape_of_content_is_kept():
    found = opened("m30_content_shapes.json")

    assert contents(found) == ["", "", "", "", "42", "dict content", "plain string part\nblock", "", "", "done"]
    assert found.conversations[0].turns[7].attachments == ("image image/png",)
    assert "AAAA" not in repr(found)


def test_calls_and_results_without_the_other_are_told():
    messages = [warned.message for warned in opened("m32_tool_orphans.json").warnings]

    assert sum("result without its call" in message for message in messages) == 3
    assert sum("call of" in message and "without a result" in message for message in messages) == 1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_an_encoding_that_shows_itself_is_understood(tmp_path, encoding):
    assert contents(read(tmp_path, MESSAGE.decode().encode(encoding))) == ["hi"]


def test_another_encoding_is_read_when_it_is_named(tmp_path):
    data = (FIXTURES / "malformed/m15_cp1252.json").read_bytes()

    assert contents(read(tmp_path, data, encoding="cp1252")) == ["It’s my café", "Noted – café"]
    assert "--encoding" in (refusal(tmp_path, data).hint or "")
    assert "byte 32 is not ascii" in refusal(tmp_path, data, encoding="ascii").why


@pytest.mark.parametrize("encoding", ["latin-nine-and-a-half", "base64", "a\0b"])
def test_an_encoding_that_is_none_is_a_usage_error_or_a_refusal(tmp_path, encoding):
    with pytest.raises((UsageError, Unreadable), match=r"is no encoding|it is not"):
        read(tmp_path, MESSAGE, encoding=encoding)
    assert contents(read(tmp_path, MESSAGE, encoding="latin-1")) == ["hi"]


def test_a_named_format_is_taken_at_its_word(tmp_path):
    data = b'{"role": "user", "text": "hi"}'

    assert "unrecognised" in refusal(tmp_path, data).why
    assert len(contents(read(tmp_path, data, format="openai"))) == 1
    assert "no message stands in it" in refusal(tmp_path, data, format="claude-code").why


def test_an_unknown_format_is_a_usage_error_that_lists_the_known(tmp_path):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, MESSAGE, format="telegram")

    assert all(name in (caught.value.hint or "") for name in exchange.FORMATS)


@pytest.mark.parametrize("opening", [b"[", b'{"messages":', b'[{"a":'])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path, opening):
    assert "nested too deeply" in refusal(tmp_path, opening * 100_000).why
    assert contents(read(tmp_path, MESSAGE + b"\n" + opening * 100_000 + b"\n" + MESSAGE)) == ["hi", "hi"]


def test_a_number_of_many_digits_costs_its_line(tmp_path):
    found = read(tmp_path, MESSAGE + b'\n{"role": "user", "content": ' + b"9" * 5000 + b"}\n" + MESSAGE)

    assert contents(found) == ["hi", "hi"]
    assert [warned.line for warned in found.warnings] == [2]


def test_gzip_that_is_cut_or_swells_is_refused(tmp_path):
    packed = gzip.compress(MESSAGE * 50)

    assert "cut or damaged" in refusal(tmp_path, packed[:-9]).why
    assert "swells" in refusal(tmp_path, gzip.compress(bytes(300 * 1024 * 1024), compresslevel=1)).why


def test_standard_input_is_read_by_a_dash(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSAGE)))

    found = exchange.open_file("-")

    assert (found.path, contents(found)) == ("-", ["hi"])
    assert found.digest == hashlib.sha256(MESSAGE).hexdigest()


def test_paths_that_are_no_file_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plain").write_bytes(MESSAGE)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    why = {name: told(tmp_path / name) for name in ("pipe", "absent", "", "plain/below", "loop", "a\0b")}

    assert why == {
        "pipe": "it is a pipe, not a file",
        "absent": "there is no such file",
        "": "it is a folder",
        "plain/below": "not a directory",
        "loop": "too many levels of symbolic links",
        "a\0b": "no path can hold a NUL",
    }
    assert contents(exchange.open_file(str(tmp_path / "plain"))) == ["hi"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(MESSAGE)
    (tmp_path / "secret").chmod(0)

    with pytest.raises(Unreadable, match="it may not be read"):
        exchange.open_file(str(tmp_path / "secret"))


def test_a_large_file_is_read_from_the_disk_in_passes(tmp_path):
    filler = json.dumps({"role": "user", "content": "x" * 1_000_000}).encode() + b"\n"
    path = tmp_path / "large.jsonl"
    path.write_bytes(filler * 70)

    found = exchange.open_file(str(path))

    assert len(contents(found)) == 70
    assert found.digest == hashlib.sha256(filler * 70).hexdigest()


@pytest.mark.parametrize(
    ("text", "form", "count"),
    [
        ("1. Prefers tea\n2. Lives in Lisbon\n", "markdown", 2),
        ("[10:00] User: hello\n[10:01] Assistant: hi\n", "text", 2),
    ],
)
def test_a_text_that_begins_like_json_is_read_as_the_text_it_is(tmp_path, text, form, count):
    found = read(tmp_path, text.encode())

    assert found.format == form
    assert len(contents(found)) + len(found.remembered) == count


def test_numbers_alone_are_no_text_that_anybody_reads(tmp_path):
    assert "a JSON number" in refusal(tmp_path, b"1\n2\n3\n").why


def test_a_large_file_is_told_by_a_sample_and_read_whole(tmp_path):
    line = json.dumps({"messages": [{"role": "user", "content": "I live in Lisbon " * 20}]}).encode() + b"\n"
    cut = line[: len(line) // 2] + b"\n"

    found = read(tmp_path, line * 15_000 + cut + line)

    assert len(found.conversations) == 15_001
    assert [warned.line for warned in found.warnings if warned.line] == [15_001]
