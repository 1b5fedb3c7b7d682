"""What is believed is seen by no more people than what it was derived from, whoever believes it."""

import pytest

from memcli.errors import NotAllowed
from memcli.facts import Claim
from memcli.terms import Op, State, Visibility
from tests.files import ANNA, SCRIPT, add, correct, memory, newest
from tests.tx_files import begin, claim


@pytest.fixture
def store(tmp_path):
    with memory(tmp_path / "m.db") as opened:
        yield opened


def waiting(store):
    """Return a public fact that waits, derived through a shared one from one that is private."""
    root = add(store, "Anna's door code is 41", visibility=Visibility.PRIVATE)
    between = draft(store, "The door of Anna has a code", Visibility.SHARED, root)
    return root, between, draft(store, "Some doors have codes", Visibility.PUBLIC, between)


def draft(store, text, visibility, parent):
    """Return a fact that waits although it is wider than its parent, as a transaction leaves one that it holds."""
    tx = begin(store, actor=SCRIPT)
    with store.write(SCRIPT) as write:
        told = claim(text, subject=text, visibility=visibility, derived_from=(parent.id,))
        fact = write.stage(tx.id, told)
        write.commit(tx.id)
    return store.get(fact.id)


@pytest.mark.parametrize("visibility", [Visibility.SHARED, Visibility.PUBLIC])
def test_a_fact_is_not_added_wider_than_its_parent(store, visibility):
    root = add(store, "Anna's door code is 41", visibility=Visibility.PRIVATE)

    with pytest.raises(NotAllowed) as problem:
        add(store, "Anna's door has a code", visibility=visibility, derived_from=(root.id,))
    assert problem.value.message == (
        f"fact {root.id[:8]}, which this would be derived from, is private, and this would be {visibility}"
    )
    assert problem.value.hint == "offer it with --visibility private"
    assert newest(store, Op.REFUSE).target == root.id
    assert add(store, "Anna's door has a code", visibility=Visibility.PRIVATE, derived_from=(root.id,)).readable


def test_a_fact_is_not_added_wider_than_what_its_parent_came_from(store):
    root, between, _ = waiting(store)

    with pytest.raises(NotAllowed, match=f"fact {root.id[:8]}"):
        add(store, "Doors have codes", visibility=Visibility.SHARED, derived_from=(between.id,))
    assert add(store, "Doors have codes", visibility=Visibility.PRIVATE, derived_from=(between.id,)).derived_from


def test_a_person_does_not_accept_what_is_wider_than_its_ancestors(store):
    root, between, _ = waiting(store)

    with pytest.raises(NotAllowed, match=f"{root.id[:8]}, which"), store.write(ANNA) as write:
        write.accept(store.get(between.id))
    assert store.get(between.id).state is State.DISPUTED


def test_a_correction_does_not_let_it_in_either(store):
    _, between, _ = waiting(store)

    with pytest.raises(NotAllowed, match="is shared"):
        correct(store, store.get(between.id), "Anna's door has a lock")
    assert store.get(between.id).state is State.DISPUTED


def test_a_narrower_fact_is_accepted(store):
    root = add(store, "Tea is hot", visibility=Visibility.PUBLIC)
    with store.write(SCRIPT) as write:
        fact = write.add(Claim(text="Cups get hot", visibility=Visibility.SHARED, derived_from=(root.id,))).fact

    with store.write(ANNA) as write:
        write.accept(store.get(fact.id))
    assert store.get(fact.id).state is State.ACCEPTED
