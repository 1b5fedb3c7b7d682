"""What a tombstone stops, what it lets pass, and what becomes of what was there."""

from pathlib import Path

import pytest

from memcli.errors import NotAllowed, NotFound, Refused, Tombstoned, UsageError
from memcli.facts import Claim, FactQuery, PolicyRule
from memcli.store import Store
from memcli.store.check import check
from memcli.terms import Admission, How, Kind, Match, Op, State
from tests.files import (
    ANNA,
    API,
    BOB,
    IMPORTER,
    SCRIPT,
    YEAR,
    Clock,
    add,
    chat,
    cite,
    city,
    correct,
    count,
    memory,
    newest,
    reject,
    retract,
    take,
    texts,
)

EVERY_STATE = FactQuery(states=frozenset(State), any_validity=True)


@pytest.fixture
def store(tmp_path: Path):
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as opened:
        yield opened


def stop(store: Store, match: Match, pattern: str, *, everywhere: bool = False):
    with store.write(ANNA, "never") as write:
        if match is Match.VALUE:
            return write.tombstone(write.plan_value(pattern, everywhere=everywhere))
        return write.tombstone(write.plan_pattern(match, pattern, everywhere=everywhere))


def passes(store: Store, text: str, **claim) -> bool:
    try:
        add(store, text, actor=API, **claim)
    except Tombstoned:
        return False
    return True


# -------------------------------------------------------------------- what is stopped


@pytest.mark.parametrize(
    "text",
    [
        "Anna lives in Berlin",
        "anna LIVES in   berlin",
        "Anna lives in Berlin.",
        "Anna lives in “Berlin”",
        "Anna\u200b lives in Ber\u00adlin",
        "\u202eAnna lives in Berlin",
        "Ａｎｎａ lives in Ｂｅｒｌｉｎ",
        "Аnna lives in Веrlin",
    ],
)
def test_a_rejected_text_is_stopped_however_it_is_spelt(store, text):
    reject(store, add(store, "Anna lives in Berlin"))

    assert not passes(store, text)
    assert passes(store, "Anna lived in Berlin once")


@pytest.mark.parametrize(
    ("rejected", "other"),
    [("12", "12:30"), ("東京", "京都"), ("a+b", "a-b"), ("-5", "5"), ("modem", "rnodem"), ("l0", "1O")],
)
def test_short_and_foreign_values_are_not_taken_for_each_other(store, rejected, other):
    reject(store, add(store, rejected))

    assert not passes(store, rejected)
    assert passes(store, other)


def test_the_value_of_a_slot_is_stopped_in_other_words_for_the_same_slot(store):
    reject(store, city(store, "Berlin"))
    slot = {"subject": "Anna", "attribute": "Home city"}

    assert not passes(store, "her home is Berlin", **slot, value="BERLIN")
    assert passes(store, "Bob lives in Berlin", subject="bob", attribute="home city", value="Berlin")
    assert passes(store, "her home is Lisbon", **slot, value="Lisbon")


def test_a_rejected_value_is_stopped_as_a_text_and_as_the_value_of_any_slot(store):
    slotted, free = city(store, "Berlin"), add(store, "berlin")
    stop(store, Match.VALUE, "Berlin")

    assert [store.get(fact.id).state for fact in (slotted, free)] == [State.REJECTED] * 2
    assert not passes(store, "Bob is at home in Berlin", subject="bob", attribute="home", value="berlin")
    assert passes(store, "Berlin is large")


def test_a_number_is_stopped_in_every_way_to_write_it(store):
    reject(store, add(store, "Anna is 5", subject="anna", attribute="age", value=5))

    for value in (5, 5.0, "5"):
        assert not passes(store, "she is five", subject="anna", attribute="age", value=value)
    assert passes(store, "she is six", subject="anna", attribute="age", value=6)


def test_what_contains_a_text_is_stopped(store):
    hit = add(store, "the key is AKIA-123")
    stop(store, Match.CONTAINS, "akia-123")

    assert store.get(hit.id).state is State.REJECTED
    assert not passes(store, "use AKIA-123 for the upload")
    assert not passes(store, "a key", subject="anna", attribute="key", value="AKIA-123")
    assert passes(store, "use AKIA-124 for the upload")


def test_what_matches_a_pattern_is_stopped(store):
    hit = add(store, "card 4111-1111")
    stop(store, Match.REGEX, r"\d{4}-\d{4}")

    assert store.get(hit.id).state is State.REJECTED
    assert not passes(store, "card 5500-0000")
    assert passes(store, "card 41-11")


def test_a_pattern_that_takes_too_long_on_a_text_lets_nothing_in_and_is_named(store):
    stone = stop(store, Match.REGEX, r"(x|xx)+[yz]$")

    with pytest.raises(Refused, match="longer than"):
        add(store, "x" * 60)
    assert newest(store, Op.REFUSE).target == stone.id
    assert texts(store.facts(EVERY_STATE)) == []
    assert passes(store, "short")


@pytest.mark.parametrize(
    ("match", "pattern", "error"),
    [
        (Match.CONTAINS, "", NotAllowed),
        (Match.CONTAINS, "\u200b", NotAllowed),
        (Match.REGEX, "", UsageError),
        (Match.REGEX, ".*", NotAllowed),
        (Match.REGEX, "(", UsageError),
    ],
)
def test_a_pattern_that_stops_everything_or_is_none_is_refused(store, match, pattern, error):
    with pytest.raises(error):
        stop(store, match, pattern)
    assert store.tombstones() == []
    assert passes(store, "tea is hot")


# -------------------------------------------------------------------- where it holds


def test_a_tombstone_holds_in_its_scope_only(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        reject(store, add(store, "tea is cold"))
    with memory(path, scope="b") as store:
        assert passes(store, "tea is cold")
        assert store.tombstones() == []
    with memory(path, scope="a") as store:
        assert not passes(store, "tea is cold")


def test_a_tombstone_that_holds_everywhere_hits_and_stops_in_every_scope(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="b") as store:
        theirs = add(store, "tea is cold")
    with memory(path, scope="a") as store:
        reject(store, add(store, "tea is cold"), everywhere=True)
    with memory(path, scope="b") as store:
        assert store.get(theirs.id).state is State.REJECTED
        assert not passes(store, "TEA is cold")
        assert len(store.tombstones()) == 1
        assert check(store) == []
    with memory(path, scope="c") as store:
        assert not passes(store, "tea is cold")


def test_what_was_derived_from_a_rejected_fact_falls_in_every_scope(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        fact = city(store, "Berlin")
        child = add(store, "Anna is in CET", derived_from=(fact.id,))
        view = add(store, "Anna: Berlin, CET", kind=Kind.SUMMARY, derived_from=(child.id,))
    with memory(path, scope="b") as store:
        copy = add(store, "Anna is in Central Europe", derived_from=(fact.id,), how=How.COPIED)
    with memory(path, scope="a") as store:
        with store.write(ANNA, "never") as write:
            plan = write.plan_facts([fact])
            write.tombstone(plan)

        assert {item.id for item in plan.falls} == {child.id, view.id, copy.id}
        assert [store.get(item.id, all_scopes=True).state for item in (fact, child, view, copy)] == [
            State.REJECTED,
            State.REVOKED,
            State.DISPUTED,
            State.REVOKED,
        ]


def test_a_plan_shows_near_misses_and_does_not_stop_them(store):
    fact = add(store, "Anna lives in Berlin")
    near = add(store, "Anna is living in Berlin")
    add(store, "the weather is fine")

    with store.write(ANNA, "never") as write:
        plan = write.plan_facts([fact])
        write.tombstone(plan)

    assert [item.id for item in plan.near] == [near.id]
    assert store.get(near.id).readable


def test_a_plan_changes_nothing(store):
    fact = add(store, "tea is cold")
    events = len(store.events())

    plan = store.planner(ANNA).plan_facts([fact])

    assert [item.id for item in plan.hits] == [fact.id]
    assert (store.get(fact.id).readable, store.tombstones(), len(store.events())) == (True, [], events)


def test_only_the_value_of_the_current_version_is_stopped_unless_all_are_asked_for(store):
    first = correct(store, city(store, "Berlin"), "Anna lives in Lisbon")
    reject(store, first)
    slot = {"subject": "anna", "attribute": "home city"}

    assert not passes(store, "Anna lives in Lisbon", **slot, value="Lisbon")
    assert passes(store, "Anna lives in Berlin", **slot, value="Berlin")


def test_every_value_that_a_fact_ever_had_is_stopped_where_that_is_asked_for(store):
    latest = correct(store, city(store, "Berlin"), "Anna lives in Lisbon")
    reject(store, latest, all_versions=True)

    assert not passes(store, "Anna lives in Berlin")
    assert not passes(store, "Anna lives in Lisbon")
    assert passes(store, "Anna lives in Porto")


def test_all_versions_count_those_of_the_same_transaction(store):
    seen = add(store, "tea is cold")
    with store.write(ANNA, "never") as write:
        latest = write.correct(seen, "tea is lukewarm")
        write.tombstone(write.plan_facts([latest], all_versions=True))

    assert not passes(store, "tea is cold")
    assert not passes(store, "tea is lukewarm")
    assert passes(store, "tea is hot")


# -------------------------------------------------------------------- no way around


def test_reject_correct_restate_corroborate_does_not_launder_a_value(store):
    first = take(store, chat("I live in Berlin"))
    fact = city(store, "Berlin", actor=API, evidence=cite(f"{first}#0"))
    reject(store, store.get(fact.id))
    correct(store, store.get(fact.id), "Anna lives in Lisbon")
    second = take(store, chat("her home is Berlin", "noted"), path="other.json")

    for actor, claim in (
        (ANNA, {}),
        (API, {}),
        (IMPORTER, {"evidence": cite(f"{second}#0")}),
        (API, {"evidence": cite(f"{first}#0")}),
    ):
        with pytest.raises(Tombstoned):
            city(store, "Berlin", actor=actor, **claim)
    with pytest.raises(Tombstoned):
        correct(store, store.get(fact.id), "Anna lives in Berlin")
    assert texts(store.facts()) == ["Anna lives in Lisbon"]
    assert check(store) == []


def test_a_value_that_was_rejected_since_cannot_be_accepted_verified_or_kept(tmp_path):
    with memory(tmp_path / "m.db") as store:
        waiting, fine = add(store, "tea is cold", actor=SCRIPT), add(store, "tea is hot", actor=SCRIPT)
        stop(store, Match.VALUE, "TEA IS COLD.")

        for act in ("accept", "verify", "keep_both"):
            with pytest.raises(Tombstoned), store.write(ANNA) as write:
                getattr(write, act)(waiting)
        with store.write(ANNA) as write:
            write.verify(fine)
        assert store.get(waiting.id).state is State.REJECTED
        assert store.get(fine.id).state is State.VERIFIED


def test_a_refused_write_makes_no_fact_of_any_state_and_is_in_the_log(store, tmp_path):
    stone = reject(store, add(store, "tea is cold"))
    add(store, "tea is hot")
    tables = ("facts", "versions", "sources", "messages", "provenance")
    before = {table: count(tmp_path / "m.db", table) for table in tables}

    with pytest.raises(Tombstoned, match="never true"):
        add(store, "Tea is cold!", actor=API)

    assert {table: count(tmp_path / "m.db", table) for table in tables} == before
    refusal = newest(store, Op.REFUSE)
    assert (refusal.target, refusal.actor, refusal.reason) == (stone.id, API, "tombstoned")
    assert refusal.after is not None
    assert texts(store.facts()) == ["tea is hot"]


def test_every_refusal_counts_a_hit(store):
    stone = reject(store, add(store, "tea is cold"))

    for number in range(3):
        assert store.tombstone(stone.id).hits == number
        assert not passes(store, "tea is cold")
    assert [item.hits for item in store.tombstones()] == [3]


def test_one_refusal_among_many_offers_stops_nothing_else(store):
    stone = reject(store, add(store, "tea is cold"))

    with store.write(IMPORTER) as write:
        outcomes = [write.offer(Claim(text=text)) for text in ("a is b", "tea is cold", "c is d")]

    assert [isinstance(item, Refused) for item in outcomes] == [False, True, False]
    assert texts(store.facts()) == ["a is b", "c is d"]
    assert store.tombstone(stone.id).hits == 1
    assert check(store) == []


def test_a_tombstone_does_not_expire(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        reject(store, add(store, "tea is cold"))
        add(store, "tea is hot")
        clock.time += 50 * YEAR
        store.rebuild(ANNA)

        assert not passes(store, "tea is cold")
        assert texts(store.facts()) == ["tea is hot"]


def test_a_message_may_say_what_no_fact_may(store):
    reject(store, add(store, "tea is cold"))

    source = take(store, chat("tea is cold", "no"))

    assert store.message(f"{source}#0").content == "tea is cold"
    with pytest.raises(Tombstoned):
        add(store, "tea is cold", evidence=cite(f"{source}#0"))


# -------------------------------------------------------------------- lift


def test_a_lifted_tombstone_lets_the_value_be_offered_again_and_revives_nothing(store):
    fact = add(store, "tea is cold")
    stone = reject(store, fact)

    with store.write(BOB, "iced tea exists") as write:
        lifted = write.lift(stone.id)

    assert (lifted.lifted_at is not None, store.tombstones(), [item.id for item in store.tombstones(lifted=True)]) == (
        True,
        [],
        [stone.id],
    )
    assert store.get(fact.id).state is State.REJECTED
    assert add(store, "tea is cold").id != fact.id
    assert newest(store, Op.LIFT).reason == "iced tea exists"
    assert check(store) == []


def test_a_tombstone_is_lifted_once_and_only_where_it_holds(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        stone = reject(store, add(store, "tea is cold"))
    with memory(path, scope="b") as store:
        for name in (stone.id, "t99", "nonsense"):
            with pytest.raises(NotFound), store.write(ANNA, "again") as write:
                write.lift(name)
    with memory(path, scope="a") as store:
        with store.write(ANNA, "again") as write:
            write.lift(stone.id)
        with pytest.raises(NotAllowed, match="lifted already"), store.write(ANNA, "again") as write:
            write.lift(stone.id)


def test_a_pattern_that_was_lifted_stops_nothing_in_the_same_transaction(store):
    with store.write(ANNA, "never") as write:
        stone = write.tombstone(write.plan_pattern(Match.CONTAINS, "cold"))
        with pytest.raises(Tombstoned):
            write.add(Claim(text="tea is cold"))
        write.lift(stone.id)
        assert write.add(Claim(text="tea is cold")).outcome == "new"

    assert texts(store.facts()) == ["tea is cold"]


def test_a_value_may_be_rejected_before_anybody_offers_it(store):
    stone = stop(store, Match.VALUE, "tea is cold")

    assert (stone.fact, stone.match, stone.pattern) == (None, Match.VALUE, None)
    assert not passes(store, "tea is cold")
    assert passes(store, "tea is hot")


def test_a_tombstone_keeps_no_words_of_a_value(store, tmp_path):
    stop(store, Match.VALUE, "zanzibar")
    stop(store, Match.CONTAINS, "quetzal")

    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"zanzibar" not in data
    assert b"quetzal" in data


def test_a_rejection_of_what_ended_already_stops_the_value_all_the_same(store):
    gone = retract(store, add(store, "tea is cold"))
    reject(store, gone)

    assert store.get(gone.id).state is State.REVOKED
    assert not passes(store, "tea is cold")
    assert passes(store, "tea is hot")


def test_a_policy_does_not_override_a_tombstone(store):
    reject(store, add(store, "tea is cold"))
    with store.write(ANNA, "trusted") as write:
        write.set_policy(PolicyRule(kind="source", name="agent", value="1"))

    assert not passes(store, "tea is cold")
    assert add(store, "tea is hot", actor=API).authority == 1.0
