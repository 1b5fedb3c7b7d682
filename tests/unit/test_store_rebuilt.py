"""A view that is built anew is true when everything it stands on is, and no longer."""

import pytest

from memcli.errors import NotAllowed
from memcli.facts import Validity
from memcli.terms import Admission, Kind
from tests.files import ANNA, DAY, START, add, correct, memory

SPRING = Validity(start=START - 90 * DAY, end=START - 30 * DAY)


@pytest.fixture
def store(tmp_path):
    with memory(tmp_path / "memory.db", admission=Admission.DIRECT) as opened:
        yield opened


def rebuilt(store, view):
    with store.write(ANNA, "its parent changed") as write:
        return write.rebuild_view(store.get(view.id))


def test_a_view_takes_the_time_of_what_it_stands_on(store):
    desk = add(store, "the desk is old")
    view = add(store, "profile: the desk is old", kind=Kind.SUMMARY, derived_from=(desk.id,))
    correct(store, desk, "the desk is old", validity=SPRING)

    again = rebuilt(store, view)

    assert again.valid == SPRING
    assert "the desk is old" not in [fact.text for fact in store.facts()]


def test_a_view_of_what_holds_now_stays_readable(store):
    desk = add(store, "the desk is old")
    view = add(store, "profile: the desk is old", kind=Kind.SUMMARY, derived_from=(desk.id,))
    correct(store, desk, "the desk is new")

    assert rebuilt(store, view).text in [fact.text for fact in store.facts()]


def test_a_view_of_what_was_never_true_at_one_time_is_refused(store):
    desk, lamp = add(store, "the desk is old"), add(store, "the lamp is lit")
    view = add(store, "profile: desk and lamp", kind=Kind.SUMMARY, derived_from=(desk.id, lamp.id))
    correct(store, desk, "the desk is old", validity=SPRING)
    correct(store, lamp, "the lamp is lit", validity=Validity(start=START - 10 * DAY))

    with pytest.raises(NotAllowed, match="never true at one time"):
        rebuilt(store, view)
