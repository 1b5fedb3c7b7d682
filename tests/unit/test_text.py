import json
import sqlite3
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memcli.errors import UsageError
from memcli.text import ESCAPE, MAX_TYPED_CHARS, cells, check_typed, pack, shorten, unpack, visible

ANY = st.text(st.characters())
EVERY = st.text(st.characters(exclude_categories=()))
FAMILY = "👨\u200d👩\u200d👧"
BIDI = frozenset({"LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
RAINBOW = "🏳\ufe0f\u200d🌈"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("  tea is hot \n", "tea is hot"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\r\n", "a\nb"),
        ("\u00a0東京\u3000", "東京"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        (FAMILY, FAMILY),
        ("x" * MAX_TYPED_CHARS + " ", "x" * MAX_TYPED_CHARS),
    ],
)
def test_ordinary_typed_text_is_kept_without_the_space_around_it(typed, kept):
    assert check_typed(typed, what="the text") == kept


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "the reason is empty"),
        (" \t\n\u2003", "the reason is empty"),
        ("\u200b", r"the reason shows nothing: character 1 is \\u200b"),
        (" \u2060 \ufe0f\u3164", r"the reason shows nothing: character 1 is \\u2060"),
        ("ab\0", "the reason has the character NUL at character 3"),
        ("\x1b[31mred", r"the reason has the control character \\x1b at character 1"),
        ("a\rb", r"the control character \\x0d at character 2"),
        ("trailing\x1f", r"the control character \\x1f at character 9"),
        ("a\x85b", r"the control character \\x85 at character 2"),
        ("a\ud800b", r"the reason has half of a surrogate pair \\ud800 at character 2"),
        ("x" * (MAX_TYPED_CHARS + 1), "has 100,001 characters, and character 100,000 is the last that fits"),
    ],
)
def test_typed_text_that_cannot_be_kept_is_refused_with_the_place(typed, sentence):
    with pytest.raises(UsageError, match=sentence) as refused:
        check_typed(typed, what="the reason")
    assert refused.value.hint
    assert refused.value.message.isprintable()


@given(EVERY)
@example(ESCAPE)
@example(f"{ESCAPE}0000")
@example(f"{ESCAPE}241b0000")
@example("\ud83d\ude00")
@example("a\0\ud800\udfff")
def test_packed_text_comes_back_and_can_be_stored(text):
    packed = pack(text)

    assert unpack(packed) == text
    assert "\0" not in packed
    assert packed.encode("utf-8").decode("utf-8") == packed


@given(ANY.filter(lambda text: "\0" not in text and ESCAPE not in text and text.isprintable()))
def test_text_that_can_be_stored_is_packed_as_it_is(text):
    assert pack(text) == text
    assert unpack(text) == text


@given(EVERY, EVERY)
def test_texts_that_differ_are_packed_apart(one, other):
    assert (pack(one) == pack(other)) == (one == other)


def test_packed_text_reads_as_it_is_documented():
    assert pack("a\0b\ud83d ␛") == "a␛0000b␛d83d ␛241b"
    assert unpack("␛ffff ␛00 ␛D83D ␛") == "␛ffff ␛00 ␛D83D ␛"


def test_packed_text_survives_a_database(tmp_path):
    odd = "a\0b\udc00␛0000 東京"
    db = sqlite3.connect(tmp_path / "x.db")
    db.execute("create table t (text text) strict")
    db.execute("insert into t values (?)", [pack(odd)])

    ((stored, length),) = db.execute("select text, length(text) from t").fetchall()
    db.close()
    assert unpack(stored) == odd
    assert length == len(pack(odd))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("a\tb\nc", "a b⏎c"),
        ("a\r\nb\rc", r"a⏎b\x0dc"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\x1b]0;title\x9c", r"\x1b]0;title\x9c"),
        ("\x7f\x80\x9b", r"\x7f\x80\x9b"),
        ("ab\u202egnp\u202c", r"ab\u202egnp\u202c"),
        ("\u2066a\u2069\u200f\u061c", r"\u2066a\u2069\u200f\u061c"),
        ("a\u200bb\u00ad\ufeff", r"a\u200bb\xad\ufeff"),
        ("a\u200db", r"a\u200db"),
        ("a\ufe0f", r"a\ufe0f"),
        ("a\ufe0f\u200d🌈", r"a\ufe0f\u200d🌈"),
        ("🌈\u200d", r"🌈\u200d"),
        ("\u200d🌈", r"\u200d🌈"),
        ("\ufe0f", r"\ufe0f"),
        ("\ud83d", r"\ud83d"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\ue000\U000f0000\U0010fffd", r"\ue000\U000f0000\U0010fffd"),
        ("\ufffe\ufdd0", r"\ufffe\ufdd0"),
        ("a\U000e0041\U000e0100", r"a\U000e0041\U000e0100"),
        ("\u3164\u115f\u034f", r"\u3164\u115f\u034f"),
        (FAMILY, FAMILY),
        (RAINBOW, RAINBOW),
        ("❤\ufe0f 1\ufe0f\u20e3 👍🏿 🇫🇷", "❤\ufe0f 1\ufe0f\u20e3 👍🏿 🇫🇷"),
        ("1\ufe0f", r"1\ufe0f"),
        ("東京 café שלום नमस्ते ภาษาไทย «x»", "東京 café שלום नमस्ते ภาษาไทย «x»"),
        ("C:\\x1b", "C:\\x1b"),
    ],
)
def test_what_would_do_harm_is_shown_as_an_escape_and_the_rest_as_it_is(text, shown):
    assert visible(text) == shown


def test_a_paragraph_keeps_its_lines_and_nothing_else_of_the_kind():
    assert visible("a\nb\tc\rd", newlines=True) == "a\nb c\\x0dd"
    assert visible("a\nb", newlines=False) == "a⏎b"


@given(EVERY, st.booleans())
@example("🌈\ufe0f\u200d\u200d🌈", False)
def test_shown_text_never_moves_the_cursor_and_is_shown_the_same_twice(text, newlines):
    shown = visible(text, newlines=newlines)
    kept = {"\n"} if newlines else set()

    assert {char for char in shown if unicodedata.category(char) in {"Cc", "Cs", "Co", "Zl", "Zp"}} <= kept
    assert {char for char in shown if unicodedata.bidirectional(char) in BIDI} == set()
    assert visible(shown, newlines=newlines) == shown


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), max_codepoint=0x10FF)))
def test_letters_numbers_and_signs_are_shown_as_they_are(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 1),
        ("e\u0301", 1),
        ("東京", 4),
        ("ｶﾅ", 2),
        ("Ａ", 2),
        ("한", 2),
        ("\u1112\u1161\u11ab", 2),
        ("👍", 2),
        ("👍🏿", 2),
        ("❤", 1),
        ("❤\ufe0f", 2),
        ("🇫🇷", 2),
        ("…", 1),
        ("สวัสดี", 4),
    ],
)
def test_columns_are_counted_as_a_terminal_draws_them(text, columns):
    assert cells(text) == columns


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("tea is hot", 10, "tea is hot"),
        ("tea is hot", 9, "tea is h…"),
        ("tea is hot", 5, "tea…"),
        ("tea", 1, "…"),
        ("tea", 0, ""),
        ("tea", -3, ""),
        ("", 0, ""),
        ("東京都", 6, "東京都"),
        ("東京都", 5, "東京…"),
        ("東京都", 4, "東…"),
        ("cafe\u0301s are", 5, "cafe\u0301…"),
        (FAMILY, 4, "👨…"),
    ],
)
def test_a_text_is_cut_by_columns_and_says_so(text, width, short):
    assert shorten(text, width) == short


@given(st.text(st.sampled_from("ab 東é\u0301👍🏿❤\ufe0f\u200d")), st.integers(-1, 12))
def test_a_shortened_text_fits_and_is_whole_where_it_can_be(text, width):
    short = shorten(text, width)

    assert cells(short) <= max(width, 0)
    assert (short == text) == (cells(text) <= width or (text == "" and width < 0))
    assert short == text or text.startswith(short.removesuffix("…"))


def test_escapes_of_shown_text_can_be_printed_as_json():
    assert json.loads(json.dumps(visible("\ud800\x1b"))) == r"\ud800\x1b"
    assert visible("\ud800\x1b").encode() == rb"\ud800\x1b"
