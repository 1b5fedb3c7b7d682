"""A seal that is made piece by piece is the seal of the whole row."""

import pytest

from memcli.store.seals import Sealing, seal

KEY = b"k" * 32
MANY = [0, 1, 2, 3, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 2050, 5_000]


def fields_of(count):
    kinds = (b"\x00'", None, 7, "it's \ud800 a \\ text\n", 0.5, "both \" and '")
    return [kinds[number % len(kinds)] for number in range(count)]


@pytest.mark.parametrize("count", MANY)
def test_a_seal_made_field_by_field_is_the_seal_of_the_row(count):
    fields = fields_of(count)
    sealing = Sealing(KEY, "import")

    for field in fields:
        sealing.add(field)

    assert sealing.digest() == seal(KEY, "import", fields)
    assert seal(KEY, "import", fields) != seal(KEY, "message", fields)
