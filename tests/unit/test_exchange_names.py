"""Ids held in little memory are the same ids that a dictionary would hold."""

import random

from hypothesis import given
from hypothesis import strategies as st

from memcli.exchange.names import NONE, Names

# Surrogates, NUL and texts that begin like others are ids too in a damaged file.
IDS = st.text(st.sampled_from("ab-\0é\ud800東"), max_size=4)


@given(st.lists(IDS, max_size=80))
def test_each_text_has_one_number_and_comes_back_by_it(texts):
    names, plain = Names(), {}

    numbers = [names.number(text) for text in texts]

    assert numbers == [plain.setdefault(text, len(plain)) for text in texts]
    assert [names[number] for number in numbers] == texts
    assert [names.find(text) for text in texts] == numbers
    assert (len(names), names.find("not there")) == (len(plain), NONE)


def test_many_texts_stay_apart_while_the_table_widens():
    chance = random.Random(3)
    texts = [f"{chance.getrandbits(40):010x}-{number % 7}" for number in range(5_000)]
    names = Names(columns=2)

    for number, text in enumerate(texts):
        assert names.number(text) == number
        names.columns[1][number] = number % 100

    assert [names.find(text) for text in texts] == list(range(5_000))
    assert [names[number] for number in range(5_000)] == texts
    assert list(names.columns[1]) == [number % 100 for number in range(5_000)]
    assert set(names.columns[0]) == {NONE}
    assert names.find(texts[0][:-1]) == NONE


def test_a_uuid_comes_back_as_it_was_written_and_what_only_looks_like_one_is_another_text():
    plain = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
    texts = [
        plain,
        plain.upper(),
        plain.replace("-", ""),
        plain[:-1] + "g",
        plain[:-1] + "\n",
        plain[:8] + plain[9:] + "-",
    ]
    names = Names()

    assert [names.number(text) for text in texts] == list(range(len(texts)))
    assert [names[number] for number in range(len(texts))] == texts
    assert [names.find(text) for text in texts] == list(range(len(texts)))
