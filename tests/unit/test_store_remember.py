"""What foreign stores remember becomes facts through the writer, with versions, endings and tombstones."""

import hashlib
import hmac
import sqlite3

import pytest

from memcli.errors import NotPermitted
from memcli.facts import EventQuery, FactQuery, Remembered, Said, Stop
from memcli.keys import NORMALISER, TombstoneKey, value_digest
from memcli.store.check import check
from memcli.terms import Admission, Match, Op, State
from tests.files import IMPORTER, add, memory, reject, retract


def item(text, **more):
    return Remembered(format="mem0", text=text, **more)


def take(store, *items, actor=IMPORTER, path="memory.json"):
    with store.write(actor) as write:
        return write.remember(items, path=path, digest="0" * 64)


def facts(store, **query):
    return list(store.facts(FactQuery(states=frozenset(State), any_validity=True, **query)))


@pytest.fixture
def store(tmp_path):
    with memory(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def trusting(tmp_path):
    with memory(tmp_path / "memory.db", admission=Admission.DIRECT) as opened:
        yield opened


def test_a_record_becomes_a_fact_whose_evidence_is_the_record(store):
    taken, (made,) = take(store, item("Anna lives in Lisbon", origin="m1", at=5, extra=(("category", "home"),)))

    fact = store.get(made.fact)
    (message,) = store.messages(taken.source)
    assert (fact.text, fact.state, fact.rule) == ("Anna lives in Lisbon", State.TENTATIVE, "import:mem0")
    assert [(place.message, place.verified) for place in fact.provenance] == [(message.id, True)]
    assert (message.content, message.origin, message.at) == ("Anna lives in Lisbon", "m1", 5)
    assert message.extra == (("category", "home"),)


def test_a_store_that_is_imported_again_makes_no_second_fact(store):
    items = [item("Anna lives in Lisbon"), item("tea is hot", earlier=(Said(text="tea is warm"),))]
    take(store, *items)

    taken, outcomes = take(store, *items, path="another.json")

    assert [outcome.outcome for outcome in outcomes] == ["same", "same"]
    assert (taken.new, taken.same) == (0, 3)
    assert len(facts(store)) == 2


def test_what_a_store_said_before_becomes_older_versions(trusting):
    said = (Said(text="Anna lives in Paris", at=1), Said(text="Anna lives in Rome", at=2))

    _, (made,) = take(trusting, item("Anna lives in Lisbon", earlier=said, at=3))

    versions = trusting.versions(made.fact)
    assert [(one.text, one.state) for one in versions] == [
        ("Anna lives in Paris", State.SUPERSEDED),
        ("Anna lives in Rome", State.SUPERSEDED),
        ("Anna lives in Lisbon", State.ACCEPTED),
    ]
    assert [fact.text for fact in trusting.facts()] == ["Anna lives in Lisbon"]
    assert check(trusting) == []


def test_under_review_every_version_waits_and_none_is_believed(store):
    _, (made,) = take(store, item("Anna lives in Lisbon", earlier=(Said(text="Anna lives in Paris"),)))

    assert [one.state for one in store.versions(made.fact)] == [State.REVOKED, State.TENTATIVE]
    assert list(store.facts()) == []
    assert check(store) == []


def test_what_a_store_deleted_is_withdrawn_and_its_value_is_known(trusting):
    _, (made, _) = take(
        trusting,
        item("Anna lives in Lisbon", ended=State.REVOKED, status="DELETE", reason="moved"),
        item("tea is hot"),
    )

    assert trusting.get(made.fact).state is State.REVOKED
    assert [fact.text for fact in trusting.facts()] == ["tea is hot"]
    assert trusting.events(EventQuery(fact=made.fact, limit=1))[0].reason == "moved"


def test_a_withdrawn_value_is_not_brought_back_by_its_own_record(trusting):
    first = item("Anna lives in Lisbon", origin="m1")
    _, (made,) = take(trusting, first)
    retract(trusting, trusting.get(made.fact))

    _, (again, other) = take(trusting, first, item("tea is hot"), path="copy.json")

    assert again.outcome == "echo"
    assert trusting.get(other.fact).readable


def test_a_tombstoned_value_is_refused_and_the_refusal_is_in_the_log(store):
    fact = add(store, "Anna lives in Lisbon")
    reject(store, fact)

    _, (refused, other) = take(store, item("ANNA lives in  Lisbon"), item("Anna lives in Porto"))

    assert refused.outcome == "tombstoned"
    assert store.get(other.fact).text == "Anna lives in Porto"
    assert [event.target for event in store.events(EventQuery(op=Op.REFUSE))] == ["t1"]


def test_a_tombstoned_older_version_is_left_out_of_the_history(store):
    fact = add(store, "Anna lives in Paris")
    reject(store, fact)

    _, (made,) = take(store, item("Anna lives in Lisbon", earlier=(Said(text="Anna lives in Paris"),)))

    assert [one.text for one in store.versions(made.fact)] == ["Anna lives in Lisbon"]


def test_a_history_that_ends_in_a_tombstoned_value_makes_no_fact(store):
    fact = add(store, "Anna lives in Lisbon")
    reject(store, fact)
    before = len(facts(store))

    _, (made, other) = take(
        store, item("Anna lives in Lisbon", earlier=(Said(text="Anna lives in Paris"),)), item("tea is hot")
    )

    assert made.outcome == "tombstoned"
    assert len(facts(store)) == before + 1
    assert store.get(other.fact).text == "tea is hot"


def test_facts_enter_a_checked_file_through_transactions_only(tmp_path):
    with (
        memory(tmp_path / "memory.db", admission=Admission.CHECKED) as store,
        pytest.raises(NotPermitted),
        store.write(IMPORTER) as write,
    ):
        write.remember([item("tea is hot")], path="x", digest="0" * 64)


def test_a_rehearsal_keeps_nothing_of_what_it_did(store):
    with store.rehearse(IMPORTER) as write:
        _, (made,) = write.remember([item("tea is hot")], path="x", digest="0" * 64)

    assert made.outcome == "new"
    assert facts(store) == []
    assert store.sources() == []


# ---------------------------------------------------------------- tombstones that come in


def stop(store, given, actor=IMPORTER):
    with store.write(actor) as write:
        stone = write.take_stop(given)
        return stone, write.apply_stops()


def test_a_tombstone_that_comes_in_holds_from_then_on(store):
    stone, _ = stop(store, Stop(format="beads", texts=("Anna lives in Lisbon",), reason="asked for", author="anna"))

    _, (refused, other) = take(store, item("anna lives in lisbon"), item("tea is hot"))

    assert stone.reason == "asked for"
    assert refused.outcome == "tombstoned"
    assert other.outcome == "new"
    assert check(store) == []


def test_digests_made_with_a_foreign_key_stop_the_value_here(store):
    key = TombstoneKey(id="tforeign", secret=hashlib.sha256(b"elsewhere").digest())
    digest = value_digest(key, "Anna lives in Lisbon", normaliser=NORMALISER)

    stone, _ = stop(store, Stop(format="mem", digests=(digest,), key=(key.id, key.secret), normaliser=NORMALISER))
    _, (refused, other) = take(store, item("Anna lives in Lisbon"), item("Anna lives in Porto"))

    assert stone is not None
    assert refused.outcome == "tombstoned"
    assert other.outcome == "new"
    assert check(store) == []
    assert hmac.compare_digest(store.tombstone_key.secret, key.secret) is False


def test_the_same_tombstone_again_adds_nothing(store):
    given = Stop(format="beads", texts=("Anna lives in Lisbon",))
    first, _ = stop(store, given)

    again, _ = stop(store, given)

    assert first is not None
    assert again is None
    assert len(store.tombstones()) == 1


def test_what_stands_already_is_proposed_for_rejection_under_review(store):
    fact = add(store, "Anna lives in Lisbon")

    _, (ended, proposed) = stop(store, Stop(format="beads", texts=("Anna lives in Lisbon",)))
    _, (_, again) = stop(store, Stop(format="beads", texts=("something else",)))

    assert (ended, len(proposed), again) == ([], 1, [])
    assert store.get(fact.id).readable
    assert [item.fact for item in store.proposals()] == [fact.id]


def test_what_stands_already_is_rejected_where_the_channel_decides(trusting):
    fact = add(trusting, "Anna lives in Lisbon")
    other = add(trusting, "tea is hot")

    _, (ended, proposed) = stop(trusting, Stop(format="beads", match=Match.CONTAINS, pattern="lisbon"))

    assert (ended, proposed) == ([fact.id], [])
    assert trusting.get(fact.id).state is State.REJECTED
    assert trusting.get(other.id).readable


# ---------------------------------------------------------------- many at once


def test_many_records_are_the_same_facts_as_one_by_one(tmp_path):
    said = [f"person {number} lives in city {number % 7} of {number}" for number in range(60)]
    items = [
        item(
            text,
            subject=f"person {number}",
            attribute="city" if number % 2 else None,
            value=f"city {number}" if number % 2 else None,
            origin=str(number),
        )
        for number, text in enumerate(said)
    ]
    with memory(tmp_path / "bulk.db", admission=Admission.DIRECT) as bulk:
        take(bulk, *items)
    with memory(tmp_path / "single.db", admission=Admission.DIRECT) as single:
        for one in items:
            take(single, one)

    with memory(tmp_path / "bulk.db") as bulk, memory(tmp_path / "single.db") as single:
        assert [told(fact) for fact in facts(bulk)] == [told(fact) for fact in facts(single)]
        assert len(facts(bulk)) == 60
        assert bulk.tally() == single.tally()
        assert check(bulk) == []


def told(fact):
    return fact.text, fact.slot, fact.value, fact.state, fact.authority, fact.tokens, fact.rule, fact.readable


def test_a_batch_offers_one_by_one_what_it_shares_with_the_file_or_with_itself(trusting):
    add(trusting, "tea is hot")
    reject(trusting, add(trusting, "Anna lives in Lisbon"))
    plain = [item(f"fact number {number}") for number in range(20)]

    _, outcomes = take(
        trusting,
        *plain[:10],
        item("tea is hot"),
        item("fact number 3"),
        item("anna lives in lisbon"),
        item("Bob lives in Rome", subject="bob", attribute="city", value="Rome"),
        item("Bob lives in Oslo", subject="bob", attribute="city", value="Oslo"),
        *plain[10:],
    )

    ends = [outcome.outcome for outcome in outcomes]
    assert ends == [*["new"] * 10, "corroborated", "same", "tombstoned", "new", "superseded", *["new"] * 10]
    assert check(trusting) == []
    assert len([fact for fact in trusting.facts() if fact.text.startswith("fact number")]) == 20


def test_a_pattern_stops_a_record_of_a_batch_and_no_other(trusting):
    stop(trusting, Stop(format="beads", match=Match.CONTAINS, pattern="secret"))

    _, outcomes = take(trusting, item("one"), item("a Secret thing"), item("two"))

    assert [outcome.outcome for outcome in outcomes] == ["new", "tombstoned", "new"]


def test_what_came_in_a_batch_can_be_recalled_and_removed(trusting):
    take(trusting, *(item(f"the lamp {number} is blue") for number in range(30)))
    (found,) = [fact for fact in trusting.facts() if "17" in fact.text]
    retract(trusting, found)

    assert "17" not in " ".join(fact.text for fact in trusting.facts())
    assert len(list(trusting.facts())) == 29
    assert check(trusting) == []


# ---------------------------------------------------------------- so many that triggers and indexes wait

MANY = 5_000


def many(count=MANY):
    return [item(f"lamp {number} stands in room {number % 9}", origin=str(number)) for number in range(count)]


def shapes(path):
    """Return every table, index and trigger of the file as SQL."""
    with sqlite3.connect(path) as conn:
        return sorted(conn.execute("select type, name, sql from sqlite_schema"), key=str)


def test_after_very_many_records_every_trigger_and_index_is_there_again(trusting):
    before = shapes(trusting.path)
    assert {kind for kind, *_ in before} == {"table", "index", "trigger"}

    _, outcomes = take(trusting, *many())

    assert {outcome.outcome for outcome in outcomes} == {"new"}
    assert shapes(trusting.path) == before
    assert check(trusting) == []
    assert trusting.get(outcomes[17].fact).text == "lamp 17 stands in room 8"
    with pytest.raises(sqlite3.OperationalError, match="mem_writer"), sqlite3.connect(trusting.path) as conn:
        conn.execute("update facts set owner = 'eve'")


@pytest.mark.no_cover
def test_what_is_not_plainly_new_among_very_many_is_weighed_with_everything_in_its_place(trusting):
    before = shapes(trusting.path)
    reject(trusting, add(trusting, "Anna lives in Lisbon"))
    lamps = many(MANY + 400)

    _, outcomes = take(trusting, *lamps[:300], item("anna lives in lisbon"), item(lamps[7].text), *lamps[300:])

    ends = [outcome.outcome for outcome in outcomes]
    assert ends[300:302] == ["tombstoned", "same"]
    assert set(ends[:300] + ends[302:]) == {"new"}
    assert shapes(trusting.path) == before
    assert check(trusting) == []


def test_very_many_records_that_are_given_up_leave_nothing_and_every_trigger(trusting):
    before = shapes(trusting.path)
    with trusting.rehearse(IMPORTER) as write:
        write.remember(many(), path="x", digest="0" * 64)

    assert shapes(trusting.path) == before
    assert facts(trusting) == []
    assert check(trusting) == []


def test_another_process_that_reads_meanwhile_sees_the_file_as_it_was(trusting):
    before = shapes(trusting.path)
    with trusting.write(IMPORTER) as write:
        write.remember(many(), path="x", digest="0" * 64)
        with memory(trusting.path) as other:
            assert facts(other) == []
            assert shapes(other.path) == before
            assert check(other) == []
    assert len(facts(trusting)) == MANY
