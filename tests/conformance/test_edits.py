"""Edits of rows behind the file's back: `mem check` reports each, and no reader is told what is not so.

What is edited is read off the schema, so a new table is covered as soon as the sample has a row in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from memcli import schema
from memcli.errors import Damaged, NotFound
from memcli.store import open_for_check
from memcli.store.check import check
from tests.conformance.edits import Edit, changes, columns, deletions, insertions, make, swaps
from tests.conformance.readings import CRASHED, FALSE, LESS, REFUSED, SAME, Judge, answers, seen
from tests.conformance.sample import ROWLESS, fill
from tests.files import count

Edits = Callable[[Path, str], Iterator[Edit]]


MEANINGLESS: Mapping[str, Mapping[str, str]] = {
    "number": {
        "messages": "a message that nothing cites is known by its source and position, and its number by nobody",
        "provenance": "nothing refers to a piece of evidence by its number",
        "versions": "a version is known by its fact, and a version that is over by nothing else",
    },
    "swap": {
        "messages": "as above: both numbers are cited by nothing",
        "provenance": "pieces of evidence of different facts trade numbers, which nothing refers to",
        "versions": "versions that are over trade numbers, which nothing refers to",
    },
}
"""By kind of edit and table: why an edit need not be reported where every answer stays the same."""


class Sample:
    """The sample file, what it answers, and a copy that is edited."""

    def __init__(self, path: Path) -> None:
        self.path = path
        fill(path)
        self.names = seen(path)
        self.judge = Judge(answers(path, self.names))

    def edited(self, edit: Edit) -> Path | None:
        """Return a copy with the edit in it, or None where the constraints of the table forbid it."""
        copy = self.path.with_name("edited.db")
        copy.write_bytes(self.path.read_bytes())
        return copy if make(copy, edit) else None

    def faults(self, edits: Iterable[Edit]) -> list[str]:
        """Return what went unnoticed: edits that nothing reports, and answers that say what was never so."""
        found = []
        for edit in edits:
            copy = self.edited(edit)
            if copy is None:
                continue
            verdicts = self.judge.verdicts(answers(copy, self.names))
            # What changes no answer and is listed below means nothing, so nothing has to be reported.
            if not reported(copy) and not (edit.table in MEANINGLESS.get(edit.kind, ()) and set(verdicts) == {SAME}):
                found.append(f"{edit.table}: {edit.kind} {edit.what} is not reported")
            found += [
                f"{edit.table}: {edit.kind} {edit.what}: {question} is {verdict}"
                for verdict in (FALSE, CRASHED)
                for question in verdicts.get(verdict, ())
            ]
        return found


def reported(path: Path) -> bool:
    """Return whether `mem check` finds something or is refused the file."""
    try:
        with open_for_check(path) as store:
            return bool(check(store))
    except Damaged:
        return True


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample(tmp_path_factory.mktemp("sample") / "memory.db")


def test_the_sample_is_clean_and_has_rows_in_every_guarded_table_but_those_listed(sample):
    assert not reported(sample.path)
    assert {table for table in schema.GUARDED if count(sample.path, table) == 0} == ROWLESS


@pytest.mark.parametrize(("table", "column"), columns(), ids=[".".join(names) for names in columns()])
def test_a_column_that_is_changed_is_reported_and_never_shown_as_true(sample, table, column):
    assert sample.faults(changes(sample.path, table, column)) == []


@pytest.mark.parametrize("table", schema.GUARDED)
def test_a_row_that_is_deleted_is_reported(sample, table):
    assert sample.faults(deletions(sample.path, table)) == []


@pytest.mark.parametrize("table", schema.GUARDED)
def test_a_row_that_is_there_twice_is_reported_and_never_shown_as_true(sample, table):
    assert sample.faults(insertions(sample.path, table)) == []


@pytest.mark.parametrize("table", schema.GUARDED)
def test_rows_that_change_places_are_reported_and_never_shown_as_true(sample, table):
    assert sample.faults(swaps(sample.path, table)) == []


def test_what_is_listed_as_meaningless_is_a_table_of_the_schema():
    assert {name for listed in MEANINGLESS.values() for name in listed} <= set(schema.GUARDED)


def test_the_sweep_edits_every_column_of_every_guarded_table(sample):
    assert {table for table, _ in columns()} == set(schema.GUARDED)
    assert [name for name in columns() if not list(changes(sample.path, *name))] == []


def test_a_reason_that_is_blanked_as_if_it_had_been_erased_is_reported(sample):
    erased = "(select at from audit where op = 'erase')"
    blank = f"update reasons set text = null, erased_at = {erased} where text = 'never true'"
    edit = Edit(table="reasons", kind="change", what="to nothing", steps=((blank, ()),))

    copy = sample.edited(edit)

    assert copy is not None
    assert reported(copy)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        ([{"text": "tea", "reason": "a"}, {"text": "oak", "reason": "b"}], SAME),
        ([{"text": "oak", "reason": "b"}], LESS),
        ([{"text": "tea", "reason": None}], LESS),
        ([{"text": None, "reason": "a"}], FALSE),
        ([{"text": "tea", "reason": "b"}], FALSE),
        ([{"text": "oak", "reason": "b"}, {"text": "oak", "reason": "b"}], FALSE),
        (Damaged, REFUSED),
        (NotFound, LESS),
        (KeyError, CRASHED),
    ],
)
def test_an_answer_that_says_something_new_is_told_from_one_that_says_less(after, verdict):
    judge = Judge({"show": [{"text": "tea", "reason": "a"}, {"text": "oak", "reason": "b"}]})

    assert judge.verdicts({"show": after}) == {verdict: ["show"]}
