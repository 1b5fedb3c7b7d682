import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from memcli.keys import TombstoneKey, contains, normalise, spaced, value_digest
from memcli.text import INVISIBLE

KEY = TombstoneKey(id="k", secret=b"s" * 32)
ANY = st.text(st.characters())
BLANK = frozenset("\u2800\u3164\uffa0\u115f\u1160")
"""Letters and signs, by category, that are drawn as nothing."""

CYRILLIC = st.text(st.characters(min_codepoint=0x0400, max_codepoint=0x045F), min_size=1, max_size=4)
KAZAKH = st.text("абвгдежзиклмнопрстуфхцчшыьэюяәіңғүұқөһ", min_size=1, max_size=4)
GREEK = st.text("αβγδεζηθικλμνξοπρστυφχψω", min_size=1, max_size=4)
SHORT = st.text("+-*/=<>~^&|#@%$€£()[]{}_\\", min_size=1, max_size=3)
UNSEEN = st.sampled_from("\u00ad\u034f\u061c\u200b\u200e\u202e\u2060\u3164\ufe0f\ufeff\U000e0101")
SPACE = st.text(" \t\n\r\u00a0\u1680\u2003\u2028\u202f\u205f\u3000", min_size=1, max_size=3)
WORDS = st.lists(st.text("abcdefxyzéüß", min_size=1, max_size=6), min_size=1, max_size=5)


def shows_something(text):
    """Whether an eye would see something of a text, by category and not by the rules under test."""
    return any(unicodedata.category(char)[0] in "LNPS" and char not in BLANK for char in text)


@given(ANY)
@example("ẞ\u0307İ")
@example("Σab γab Νab")
@example("\u00a8\u0301´")
def test_normalising_twice_changes_nothing(text):
    once = normalise(text)

    assert normalise(once) == once


@given(ANY.filter(shows_something))
@example("\u2800.")
@example("A\u3164")
@example("¿")
@example("´")
def test_what_can_be_seen_never_becomes_empty(text):
    assert normalise(text) != ""


@given(st.text(st.characters(codec="ascii")))
def test_composed_case_of_ascii_makes_no_difference(text):
    assert normalise(text.upper()) == normalise(text.lower())


@given(st.text(st.sampled_from("ab \t\n\v\f\r\x1c\x1d\x1e\x1f\x00\x7f\x85\u00a0\u2028é\u0301\ud800")) | ANY)
@example("")
@example(" ")
@example("a\n b")
@example("a \tb\x1c")
def test_the_short_way_to_even_spaces_gives_what_the_long_way_gives(text):
    assert spaced(text) == " ".join(unicodedata.normalize("NFC", text).split())


@given(st.text(st.sampled_from([chr(point) for point in range(128)])))
def test_the_spaces_of_ascii_are_those_that_python_splits_at(text):
    assert spaced(text) == " ".join(text.split())


@given(ANY)
def test_composed_and_decomposed_text_have_one_key(text):
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


@given(CYRILLIC, CYRILLIC)
def test_words_of_cyrillic_letters_keep_apart(one, other):
    assert (normalise(one) == normalise(other)) == (one.casefold() == other.casefold())


@given(KAZAKH, KAZAKH)
@example("һан", "нан")
@example("тұр", "тур")
def test_words_of_a_language_with_many_cyrillic_letters_keep_apart(one, other):
    assert (normalise(one) == normalise(other)) == (one == other)


@given(GREEK, GREEK)
@example("νο", "υο")
def test_words_of_greek_letters_keep_apart(one, other):
    assert (normalise(one) == normalise(other)) == (one == other)


@given(KAZAKH | GREEK)
def test_case_makes_no_difference_to_words_of_other_scripts(word):
    assert normalise(word.upper()) == normalise(word)
    assert normalise(word.title()) == normalise(word)


@given(st.integers(), st.integers())
def test_numbers_keep_apart(one, other):
    assert (normalise(str(one)) == normalise(str(other))) == (one == other)


@given(SHORT, SHORT)
def test_signs_keep_apart(one, other):
    assert (normalise(one) == normalise(other)) == (one == other)


@given(
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
)
def test_han_characters_keep_apart(one, other):
    assert (normalise(one) == normalise(other)) == (one == other)


@given(WORDS, SPACE, UNSEEN, st.sampled_from([".", "!", "?!", "…", "。", '"']))
def test_what_is_unseen_between_and_behind_words_makes_no_difference(words, space, unseen, mark):
    plain = " ".join(words)
    loud = space.join(word[:1] + unseen + word[1:] for word in words).upper()

    assert normalise(space + loud + space) == normalise(plain)
    if len(words[-1]) > 1:
        assert normalise(loud + mark) == normalise(plain)


@given(ANY, ANY)
def test_digests_are_equal_exactly_where_normalised_texts_are(one, other):
    assert (value_digest(KEY, one) == value_digest(KEY, other)) == (normalise(one) == normalise(other))


@given(WORDS, WORDS, WORDS)
def test_a_run_of_words_is_contained_in_text_that_holds_it(before, middle, after):
    assert contains(" ".join(middle).upper(), " ".join([*before, *middle, *after]))


def test_the_unseen_characters_of_these_properties_are_unseen():
    assert "\u00ad" in INVISIBLE
    assert "a" not in INVISIBLE
