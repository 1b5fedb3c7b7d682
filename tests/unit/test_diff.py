"""What changed between two memory files, fact by fact."""

import shutil

import pytest

from memcli.diff import Side, compare, compare_sides, document
from memcli.facts import Validity
from memcli.render.diff import diff_markdown, diff_screen, summary
from memcli.store import open_store
from memcli.store.copy import Copy
from memcli.terms import Match, State
from tests.files import ANNA, DAY, SCRIPT, START, add, city, correct, memory, reject, retract
from tests.made import fact as made_fact
from tests.made import tombstone as made_stone

PATHS = ("a.db", "b.db")
HOSTILE = "| a | <img src=x> @team #12 [x](http://evil.example) `c`\n## no heading"


@pytest.fixture
def first(tmp_path):
    """A file with a few facts and a tombstone."""
    with memory(tmp_path / "a.db") as store:
        city(store, "Berlin")
        add(store, "tea is hot")
        add(store, "milk is white", subject="milk")
        reject(store, add(store, "coffee is cold"))
    return tmp_path / "a.db"


@pytest.fixture
def second(first, tmp_path):
    """The same file some time later."""
    return shutil.copy(first, tmp_path / "b.db")


def side(path, *, scope=None, all_scopes=False):
    with open_store(path, scope=scope) as store:
        copy = Copy(store, all_scopes=all_scopes)
        return list(copy.newest()), copy.stones()


def diff(one, other, *, scope=None, all_scopes=False):
    (before, old), (after, new) = (side(path, scope=scope, all_scopes=all_scopes) for path in (one, other))
    return compare(before, after, stones=(old, new), scoped=all_scopes)


def named(store, text):
    return next(fact for fact in store.facts() if fact.text == text)


# -------------------------------------------------------------------- by id


def test_a_file_and_its_copy_do_not_differ(first, second):
    found = diff(first, second)

    assert not found
    assert found.same == 4
    assert summary(found) == "no difference in 4 facts"


def test_what_was_added_corrected_and_retracted_is_told_apart(first, second):
    with memory(second) as store:
        added = add(store, "water is wet")
        correct(store, named(store, "Anna lives in Berlin"), "Anna lives in Lisbon")
        retract(store, named(store, "tea is hot"))
    found = diff(first, second)

    assert [fact.id for fact in found.added] == [added.id]
    assert found.removed == ()
    assert [(item.before.text, item.after.text, item.by, item.what) for item in found.changed] == [
        ("tea is hot", "tea is hot", "id", ("state",)),
        ("Anna lives in Berlin", "Anna lives in Lisbon", "id", ("text", "value")),
    ]
    assert found.changed[0].after.state is State.REVOKED
    assert found.same == 2


def test_the_other_way_round_what_was_added_is_removed(first, second):
    with memory(second) as store:
        add(store, "water is wet")

    assert [fact.text for fact in diff(second, first).removed] == ["water is wet"]
    assert [fact.text for fact in diff(first, second).added] == ["water is wet"]


def test_erased_words_are_told_and_not_missed(first, second):
    with memory(second) as store, store.write(ANNA, "forget it") as write:
        write.erase(write.plan_erase_facts([named(store, "tea is hot")]))
    found = diff(first, second)

    assert [(item.before.text, item.after.text, item.what) for item in found.changed] == [
        ("tea is hot", "", ("erased",)),
    ]
    assert found.removed == ()
    assert len(found.tombstones) == 1


def test_a_fact_that_was_erased_before_the_other_file_heard_of_it_is_no_difference(first, tmp_path):
    with memory(first) as store:
        gone = add(store, "gone before")
        with store.write(ANNA, "forget it") as write:
            write.erase(write.plan_erase_facts([gone]))
    with memory(tmp_path / "b.db") as store:
        city(store, "Berlin")
    found = diff(first, tmp_path / "b.db")

    assert "gone before" not in {fact.text for fact in found.removed}
    assert {fact.text for fact in found.removed} == {"tea is hot", "milk is white", "coffee is cold"}


# -------------------------------------------------------------------- by slot and by value


def test_files_that_never_met_are_compared_by_slot_and_then_by_value(tmp_path):
    with memory(tmp_path / "a.db") as store:
        city(store, "Berlin")
        add(store, "Tea is hot.")
        add(store, "only here")
    with memory(tmp_path / "b.db") as store:
        add(store, "tea is HOT", actor=SCRIPT)
        city(store, "Lisbon")
        add(store, "only there")
    found = diff(tmp_path / "a.db", tmp_path / "b.db")

    assert [(item.by, item.before.text, item.after.text) for item in found.changed] == [
        ("value", "Tea is hot.", "tea is HOT"),
        ("slot", "Anna lives in Berlin", "Anna lives in Lisbon"),
    ]
    assert {"text", "state"} <= set(found.changed[0].what)
    assert [fact.text for fact in found.added] == ["only there"]
    assert [fact.text for fact in found.removed] == ["only here"]


def test_the_same_value_under_another_id_is_no_difference(tmp_path):
    for name in ("a.db", "b.db"):
        with memory(tmp_path / name) as store:
            city(store, "Berlin")
            add(store, "tea is hot")

    found = diff(tmp_path / "a.db", tmp_path / "b.db")
    assert not found
    assert found.same == 2


def test_two_values_of_one_slot_at_different_times_are_each_compared(tmp_path):
    with memory(tmp_path / "a.db") as store:
        city(store, "Berlin", validity=Validity(end=START - DAY))
        city(store, "Lisbon", validity=Validity(start=START - DAY))
    with memory(tmp_path / "b.db") as store:
        city(store, "Berlin", validity=Validity(end=START - DAY))
        city(store, "Porto", validity=Validity(start=START - DAY))

    found = diff(tmp_path / "a.db", tmp_path / "b.db")
    assert [(item.before.value, item.after.value) for item in found.changed] == [("Lisbon", "Porto")]
    assert found.same == 1


# -------------------------------------------------------------------- scopes


def test_only_the_scope_that_was_asked_for_is_compared(first, second):
    with memory(second, scope="user/bob") as store:
        add(store, "bob likes tea")

    assert not diff(first, second)
    assert [fact.text for fact in diff(first, second, all_scopes=True).added] == ["bob likes tea"]


def test_the_default_scopes_of_two_files_are_compared_whatever_they_are_called(tmp_path):
    for name, scope in (("a.db", "user/anna"), ("b.db", "user/bob")):
        with memory(tmp_path / name, scope=scope) as store:
            add(store, "tea is hot")
    (before, _), (after, _) = (side(tmp_path / "a.db", scope="user/anna"), side(tmp_path / "b.db", scope="user/bob"))

    assert not compare(before, after)
    assert len(compare(before, after, scoped=True).added) == 1


# -------------------------------------------------------------------- tombstones


def test_new_lifted_and_missing_tombstones_are_told_apart(first, second):
    with memory(second) as store, store.write(ANNA, "it was") as write:
        write.lift("t1")
        write.tombstone(write.plan_pattern(Match.CONTAINS, "akia", everywhere=True))
    found = diff(first, second)

    assert [stone.pattern for stone in found.tombstones] == ["akia"]
    assert [stone.id for stone in found.lifted] == ["t1"]
    assert found.gone == ()
    back = diff(second, first)
    assert [stone.pattern for stone in back.gone] == ["akia"]
    assert [stone.id for stone in back.tombstones] == ["t1"]


def test_a_value_that_was_rejected_again_after_a_lift_stands(first, second):
    with memory(second) as store, store.write(ANNA, "to and fro") as write:
        write.lift("t1")
        write.tombstone(write.plan_value("coffee is cold"))

    assert not diff(first, second).tombstones
    assert not diff(first, second).lifted


def test_a_pattern_under_another_key_is_the_same_pattern(tmp_path):
    for name in ("a.db", "b.db"):
        with memory(tmp_path / name) as store, store.write(ANNA, "no keys") as write:
            write.tombstone(write.plan_pattern(Match.REGEX, "AKIA[A-Z]+"))

    assert not diff(tmp_path / "a.db", tmp_path / "b.db")


# -------------------------------------------------------------------- as it is shown


@pytest.fixture
def changed(first, second):
    """Something of every kind of difference."""
    with memory(second) as store:
        correct(store, named(store, "Anna lives in Berlin"), "Anna lives in Lisbon")
        retract(store, named(store, "tea is hot"))
        add(store, HOSTILE.replace("\n", " "))
        milk = named(store, "milk is white")
        with store.write(ANNA, "@team look") as write:
            write.lift("t1")
            write.tombstone(write.plan_pattern(Match.CONTAINS, "a|b"))
            write.erase(write.plan_erase_facts([milk]))
    return diff(first, second)


def test_a_screen_says_every_change_on_a_line_of_its_own(changed):
    text = str(diff_screen(changed, paths=PATHS, scopes="scope default", short_ids={}, width=200))

    assert text.startswith(
        "a.db → b.db · scope default\n1 added, 3 changed, 2 new tombstones, 1 lifted tombstone, 1 the same"
    )
    assert "“Anna lives in Berlin” → “Anna lives in Lisbon”" in text
    assert "“tea is hot”  accepted → revoked" in text
    assert "erased" in text
    assert "whatever contains “a|b”  “@team look”" in text
    assert "\nlifted\n  t1" in text


def test_no_line_of_a_screen_is_wider_than_it(changed):
    lines = str(diff_screen(changed, paths=PATHS, scopes="scope default", short_ids={}, width=40)).splitlines()

    assert len(lines) > 10
    assert max(map(len, lines)) <= 40


def test_markdown_lets_no_text_be_markup_a_mention_or_a_link(changed):
    text = diff_markdown(changed, paths=("a|b.db", "<b>.db"), scopes="scope default", short_ids={})

    assert text.startswith("### Memory: a\\|b.db → &lt;b&gt;.db\n\nscope default: 1 added")
    assert "\\| a \\| &lt;img src=x&gt; &#64;team \\#12 \\[x\\]\\(http&#58;//evil.example\\) \\`c\\`" in text
    assert "@team" not in text
    assert "http://" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.count("|") - line.count("\\|") == 5 for line in rows)
    assert len(rows) == 2 + 1 + 3 + 2 + 1


def test_markdown_of_no_difference_is_one_sentence(first, second):
    text = diff_markdown(diff(first, second), paths=PATHS, scopes="scope default", short_ids={})

    assert text == "### Memory: a.db → b.db\n\nscope default: no difference in 4 facts\n"


def test_the_document_holds_each_change_with_both_facts(changed):
    found = document(changed, paths=PATHS, scopes=("default", None))

    assert set(found) == {"before", "after", "differs", "same", "added", "removed", "changed", "tombstones"}
    assert found["before"] == {"path": "a.db", "scope": "default"}
    assert found["differs"] is True
    assert [set(item) for item in found["changed"]] == [{"by", "what", "before", "after"}] * 3
    assert {key: len(stones) for key, stones in found["tombstones"].items()} == {"added": 2, "lifted": 1, "gone": 0}


def test_facts_come_in_the_order_of_scope_subject_and_text():
    facts = [made_fact(id=f"{n}" * 16, text=text, subject=subject, scope=scope) for n, text, subject, scope in (
        (1, "b", "anna", "b"), (2, "b", "anna", "a"), (3, "a", "anna", "a"), (4, "z", "aaron", "a"),
    )]  # fmt: skip

    assert [fact.id[0] for fact in compare([], facts, scoped=True).added] == ["4", "3", "2", "1"]
    assert [fact.id[0] for fact in compare(facts, [], scoped=True).removed] == ["4", "3", "2", "1"]


def test_a_tombstone_that_was_lifted_before_the_other_file_heard_of_it_is_no_difference():
    stone = (made_stone(lifted_at=START), ("t0", (b"x",)))

    assert not compare([], [], stones=([], [stone]))
    assert compare([], [], stones=([], [(made_stone(), ("t0", (b"x",)))])).tombstones


# -------------------------------------------------------------------- in step


def in_step(one, other, *, all_scopes=False):
    """Return what the two differ in, without holding either whole."""
    with open_store(one) as before, open_store(other) as after:
        old, new = Copy(before, all_scopes=all_scopes), Copy(after, all_scopes=all_scopes)
        sides = [Side(seen=item.seen(), fact=item.fact) for item in (old, new)]
        return compare_sides(*sides, stones=(old.stones(), new.stones()), scoped=all_scopes)


def test_what_is_read_in_step_differs_as_what_is_held_whole(first, second):
    with memory(second) as store:
        added = add(store, "water is wet")
        correct(store, named(store, "Anna lives in Berlin"), "Anna lives in Lisbon")
        retract(store, named(store, "tea is hot"))
        with store.write(ANNA, "forget it") as write:
            write.erase(write.plan_erase_facts([added]))
    with memory(first) as store:
        add(store, "Anna sings", subject="anna")

    for one, other in ((first, second), (second, first), (first, first)):
        assert in_step(one, other) == diff(one, other)
    assert in_step(first, second).changed
    assert in_step(first, second).removed


def test_the_order_in_which_two_memories_lie_changes_nothing():
    facts = {name: made_fact(id=name, text=f"text {name}") for name in "abcdefgh"}
    others = {**facts, "c": made_fact(id="c", text="another"), "i": made_fact(id="i", text="text b")}
    del others["b"]

    def side(held, order):
        return Side(seen=((name, (held[name].text,), name) for name in order), fact=held.__getitem__)

    plain = compare(facts.values(), others.values())

    assert [(item.before.id, item.after.id, item.by) for item in plain.changed] == [("c", "c", "id")]
    assert plain.same == 7
    for order in ("acdefghi", "ihgfedca", "defghiac"):
        assert compare_sides(side(facts, "abcdefgh"), side(others, order)) == plain
