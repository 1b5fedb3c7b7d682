"""Taking an export back: the same memory as before, or nothing at all."""

import json
import shutil

import pytest

from memcli.errors import Echo, NotAllowed, NotPermitted, OutOfScope, Tombstoned, Unreadable
from memcli.facts import EventQuery, FactQuery, PolicyRule, Stop, Validity
from memcli.restore import restore_file
from memcli.store import create, open_for_check, open_store
from memcli.store.check import check, verify_log
from memcli.terms import How, Match, Op, State
from tests.exports import edited, exported, records, resealed, restored
from tests.files import (
    ANNA,
    API,
    DAY,
    SCRIPT,
    START,
    YEAR,
    Clock,
    add,
    behind,
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
from tests.tx_files import begin, believed, stage

EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)


def fill(path, *, scope=None):
    """Make a file in which every table of an export has rows: odd words, erased ones, a lifted tombstone."""
    with memory(path, scope=scope) as store:
        source = take(store, chat("I live in Berlin", "noted \ud800 \0 ␛", session="odd"))
        berlin = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"))
        add(store, "Anna is in CET", derived_from=(berlin.id,), how=How.INFERRED)
        correct(store, berlin, "Anna lives in Lisbon", validity=Validity(start=START - DAY))
        take(store, chat("I live in Berlin", "noted \ud800 \0 ␛", "bye", session="odd"))
        lifted = reject(store, add(store, "tea is cold"))
        milk = add(store, "milk is white")
        with store.write(ANNA, "it was a joke") as write:
            write.lift(lifted.id)
            write.tombstone(write.plan_pattern(Match.CONTAINS, "akia"))
            write.tombstone(write.plan_value("Porto", everywhere=True))
            write.erase(write.plan_erase_facts([milk]))
        add(store, "waits", actor=SCRIPT)
        retract(store, add(store, "gone", importance=0.5, pinned=True))
        believed(store, 900)
        stage(store, begin(store), 300)
    return path


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("full") / "m.db")


@pytest.fixture
def data(full):
    return exported(full)


@pytest.fixture
def path(full, tmp_path):
    """A copy of the full file, which a test may change."""
    return shutil.copy(full, tmp_path / "m.db")


def held(path, scope=None):
    """Return every revision of every fact, and the tombstones with their reasons."""
    with open_store(path, scope=scope) as store:
        facts = [item for fact in store.facts(EVERYTHING) for item in store.history(fact.id)]
        return facts, store.tombstones(lifted=True), store.sources(), [store.messages(s.id) for s in store.sources()]


# -------------------------------------------------------------------- the same again


def test_an_export_of_what_was_restored_is_the_same_to_the_byte(data, tmp_path):
    restored(data, tmp_path / "back.db")

    assert exported(tmp_path / "back.db") == data


def test_facts_versions_times_actors_tombstones_and_messages_are_as_they_were(full, data, tmp_path):
    restored(data, tmp_path / "back.db")

    facts, stones, sources, messages = held(full)
    assert len(facts) > 8
    assert len(stones) == 4
    assert held(tmp_path / "back.db") == (facts, stones, sources, messages)


def test_a_restored_file_is_whole_and_so_is_its_log(data, tmp_path):
    restored(data, tmp_path / "back.db")

    with open_store(tmp_path / "back.db") as store:
        assert check(store) == []
        assert verify_log(store).findings == ()
        assert verify_log(store).events > 10


def test_what_was_restored_is_counted(data, tmp_path):
    done = restored(data, tmp_path / "back.db")

    assert done.scope == "default"
    for kind in ("tombstone", "source", "message", "fact", "version"):
        assert getattr(done, f"{kind}s") == len(records(data, kind)) > 0


def test_the_log_begins_anew_with_an_event_for_each_row_and_the_reasons_that_rows_had(data, tmp_path):
    restored(data, tmp_path / "back.db")

    with open_store(tmp_path / "back.db") as store:
        events = store.events()
        assert [event.op for event in events[:2]] == [Op.INIT, Op.RESTORE]
        assert {event.op for event in events[1:]} == {Op.RESTORE}
        assert events[1].reason == "a new machine"
        assert sum(len(event.target or "") == 16 for event in events) == len(records(data, "version"))
        assert "it was a joke" in {event.reason for event in events if event.target == "t1"}
        assert all(event.actor == ANNA for event in events)


def test_every_later_change_is_later_than_everything_that_was_restored(full, tmp_path):
    ahead = Clock(START + 3 * YEAR)
    with memory(tmp_path / "ahead.db", now=ahead) as store:
        add(store, "from a laptop whose clock was wrong")
    restored(exported(tmp_path / "ahead.db", now=ahead), tmp_path / "back.db")

    with memory(tmp_path / "back.db") as store:
        old = next(store.facts())
        new = add(store, "written today")
        assert old.recorded_at < new.recorded_at
        assert all(event.at > old.recorded_at for event in store.events() if event.op is Op.RESTORE)
        assert check(store) == []


def test_what_was_rejected_stays_rejected_whoever_offers_it(data, tmp_path):
    restored(data, tmp_path / "back.db")

    with memory(tmp_path / "back.db") as store:
        with pytest.raises(Tombstoned, match="it was a joke"):
            add(store, "an AKIA key")
        with pytest.raises(Tombstoned):
            add(store, "porto.")
        assert add(store, "tea is cold").state is State.ACCEPTED


def test_words_that_were_erased_are_not_in_the_export_and_do_not_come_back(full, data, tmp_path):
    restored(data, tmp_path / "back.db")

    assert b"milk" not in data
    assert b"Lisbon" in data
    with memory(tmp_path / "back.db") as store, pytest.raises(Tombstoned):
        add(store, "Milk is white!")


def test_a_restored_transcript_that_has_grown_adds_what_is_new(data, tmp_path):
    restored(data, tmp_path / "back.db")

    with memory(tmp_path / "back.db") as store:
        source = take(store, chat("I live in Berlin", "noted \ud800 \0 ␛", "bye", "see you", session="odd"))
        assert [message.content for message in store.messages(source)][1:] == ["noted \ud800 \0 ␛", "bye", "see you"]
        assert check(store) == []


def test_the_echo_of_what_was_withdrawn_before_is_refused_after(tmp_path):
    with memory(tmp_path / "m.db") as store:
        source = take(store, chat("tea is hot", "noted"))
        retract(store, add(store, "tea is hot", evidence=cite(f"{source}#0")))
    restored(exported(tmp_path / "m.db"), tmp_path / "back.db")

    with memory(tmp_path / "back.db") as store:
        with pytest.raises(Echo):
            add(store, "tea is hot", evidence=cite(f"{source}#0"))
        other = take(store, chat("who would have thought that tea is hot"))
        assert add(store, "tea is hot", evidence=cite(f"{other}#0")).readable


def test_changes_after_a_restore_are_like_any_other(data, tmp_path):
    restored(data, tmp_path / "back.db")

    with memory(tmp_path / "back.db") as store:
        lisbon = next(item for item in store.facts() if item.text == "Anna lives in Lisbon")
        correct(store, lisbon, "Anna lives in Faro")
        with store.write(ANNA, "no, she did not") as write:
            write.undo(newest(store, Op.CORRECT))
        with store.write(ANNA, "again") as write:
            write.lift("t2")
        assert store.get(lisbon.id).text == "Anna lives in Lisbon"
        assert check(store) == []
    again = exported(tmp_path / "back.db")
    restored(again, tmp_path / "third.db")
    assert exported(tmp_path / "third.db") == again


def test_an_export_of_all_scopes_brings_every_scope_back(full, tmp_path):
    path = shutil.copy(full, tmp_path / "two.db")
    fill(path, scope="user/bob")
    data = exported(path, all_scopes=True)
    done = restored(data, tmp_path / "back.db")

    assert done.scope is None
    assert exported(tmp_path / "back.db", all_scopes=True) == data
    assert exported(tmp_path / "back.db", scope="user/bob") == exported(path, scope="user/bob")
    with open_store(tmp_path / "back.db") as store:
        assert check(store) == []


def test_one_scope_of_several_brings_back_nothing_of_the_others(full, tmp_path):
    path = shutil.copy(full, tmp_path / "two.db")
    with memory(path, scope="user/bob") as store:
        add(store, "bob has a secret")
        reject(store, add(store, "bob is a cat"), everywhere=True)
    data = exported(path)
    restored(data, tmp_path / "back.db")

    assert b"bob has" not in data
    assert b"Lisbon" in data
    assert exported(tmp_path / "back.db") == data
    assert [record["fact"] for record in records(data, "tombstone") if record["scope"] is None][-1] is None


def test_an_empty_memory_goes_out_and_back(tmp_path):
    create(tmp_path / "m.db", actor=ANNA, now=Clock())
    data = exported(tmp_path / "m.db")
    done = restored(data, tmp_path / "back.db")

    assert [record["type"] for record in records(data)] == ["header", "key", "end"]
    assert done.facts == 0
    assert exported(tmp_path / "back.db") == data


def test_tombstones_that_came_from_another_file_go_along_with_their_key(full, tmp_path):
    with memory(tmp_path / "m.db") as store:
        foreign = store.tombstone_key
        reject(store, add(store, "tea is cold"))
    (stone,) = records(exported(tmp_path / "m.db"), "tombstone")
    with memory(tmp_path / "other.db") as store, store.write(ANNA, "from the other") as write:
        stops = tuple(bytes.fromhex(item) for item in stone["stops"])
        write.take_stop(Stop(format="mem", digests=stops, key=(foreign.id, foreign.secret), normaliser=1))
    data = exported(tmp_path / "other.db")
    restored(data, tmp_path / "back.db")

    assert len(records(data, "key")) == 2
    assert exported(tmp_path / "back.db") == data
    with memory(tmp_path / "back.db") as store, pytest.raises(Tombstoned):
        add(store, "Tea is cold")


# -------------------------------------------------------------------- who, and where to


@pytest.mark.parametrize("actor", [SCRIPT, API])
def test_only_a_person_at_a_terminal_restores(data, tmp_path, actor):
    with pytest.raises(NotPermitted, match="only a person at a terminal"):
        restored(data, tmp_path / "back.db", actor=actor)

    assert count(tmp_path / "back.db", "facts") == 0
    assert restored(data, tmp_path / "back.db").facts > 0


def test_a_file_that_holds_something_is_left_as_it_is_and_the_refusal_is_in_the_log(data, tmp_path):
    with memory(tmp_path / "back.db") as store:
        add(store, "mine")

    with pytest.raises(NotAllowed, match="this one holds facts already"):
        restored(data, tmp_path / "back.db")
    with open_store(tmp_path / "back.db") as store:
        assert texts(store.facts()) == ["mine"]
        assert [event.op for event in store.events()][-1] is Op.REFUSE


def test_a_file_of_tombstones_only_is_not_empty(data, tmp_path):
    with memory(tmp_path / "back.db") as store, store.write(ANNA, "never") as write:
        write.tombstone(write.plan_value("coffee"))

    with pytest.raises(NotAllowed, match="holds tombstones already"):
        restored(data, tmp_path / "back.db")
    with memory(tmp_path / "back.db") as store, pytest.raises(Tombstoned):
        add(store, "Coffee")


def test_an_export_of_another_scope_than_the_one_that_is_open_is_refused(data, tmp_path):
    with pytest.raises(OutOfScope, match="the export is of default, and user/anna is open"):
        restored(data, tmp_path / "back.db", scope="user/anna")

    assert restored(data, tmp_path / "fits.db").facts > 0


def test_a_process_that_is_bound_to_a_scope_restores_no_other(full, tmp_path):
    data = exported(full, all_scopes=True)
    (tmp_path / "all.jsonl").write_bytes(data)
    create(tmp_path / "back.db", actor=ANNA, now=Clock())

    with open_store(tmp_path / "back.db", bound="default") as store, pytest.raises(OutOfScope, match="bound to"):
        restore_file(store, ANNA, None, str(tmp_path / "all.jsonl"))
    with open_store(tmp_path / "back.db") as store:
        assert restore_file(store, ANNA, None, str(tmp_path / "all.jsonl")).facts > 0


def test_another_process_that_had_the_empty_file_open_writes_with_the_restored_key(data, tmp_path):
    create(tmp_path / "back.db", actor=ANNA, now=Clock())
    with open_store(tmp_path / "back.db", now=Clock(START + DAY)) as early:
        restored(data, tmp_path / "back.db")

        with pytest.raises(Tombstoned):
            add(early, "porto")
        assert add(early, "Porto is a wine").readable


# -------------------------------------------------------------------- damage


def refusal(data, tmp_path):
    """Return the refusal of an export, after making sure that nothing was written."""
    place = tmp_path / "back.db"
    with pytest.raises(Unreadable) as caught:
        restored(data, place)
    assert count(place, "audit") == 1
    assert count(place, "facts") == count(place, "tombstones") == count(place, "sources") == 0
    return caught.value


def test_a_cut_export_is_refused_wherever_it_was_cut(data, tmp_path):
    lines = data.splitlines(keepends=True)

    for number in (1, 4, len(lines) // 2, len(lines) - 1):
        found = refusal(b"".join(lines[:number]), tmp_path)
        assert found.line == number
        assert "cut" in found.why
    assert "the last line is cut" in refusal(data[:-1], tmp_path).why
    assert restored(data, tmp_path / "whole.db").facts > 0


def test_a_word_that_was_changed_by_hand_is_noticed_at_the_end(data, tmp_path):
    found = refusal(data.replace(b"Anna lives in Lisbon", b"Anna lives in Lisbom"), tmp_path)

    assert found.line == len(data.splitlines())
    assert found.why == "the lines above are not those that were exported"


def test_a_line_that_was_left_out_is_noticed(data, tmp_path):
    lines = data.splitlines(keepends=True)
    del lines[2]

    assert "records were exported" in refusal(b"".join(lines), tmp_path).why


def test_something_behind_the_end_is_refused(data, tmp_path):
    found = refusal(data + b'{"type": "key", "id": "t1", "secret": "00"}\n', tmp_path)

    assert found.line == len(data.splitlines()) + 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not JSON\n", "no JSON"),
        (b'{"type": "unheard"}\n', "no record of mem's format"),
        (b"[1]\n", "no record of mem's format"),
        (b'{"type": "key", "id": "\xc3\xa4", "secret": ""}\n', "not ASCII"),
        (b'{"type": "key", "id": "a", "id": "b", "secret": ""}\n', "a key stands there twice"),
        (b'{"type": "key", "id": "a", "secret": "00"}\n', "64 hexadecimal digits"),
        (b'{"type": "key", "id": "a"}\n', "see to secret"),
        (b'{"type": "key", "id": "a", "secret": "", "more": 1}\n', "see to more"),
        (b'{"type": "end", "records": NaN, "digest": ""}\n', "no number NaN"),
        (b"[" * 100_000 + b"\n", "nested too deeply"),
        (b'{"mem": 1, "type": "header", "scope": null}\n', "no record of mem's format"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_a_line_that_is_no_record_is_named(data, tmp_path, line, why):
    lines = data.splitlines(keepends=True)
    found = refusal(b"".join([*lines[:2], line, *lines[2:]]), tmp_path)

    assert found.line == 3
    assert why in found.why


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"mem": 2, "type": "header", "scope": "default"}, "its format is 2, and this mem knows 1"),
        ({"mem": True, "type": "header", "scope": "default"}, "its format is true"),
        ({"type": "header", "scope": "default"}, "begins with"),
        ({"mem": 1, "type": "header", "scope": 3}, "must be a text"),
    ],
)
def test_a_first_line_that_is_no_header_of_ours_is_refused(data, tmp_path, header, why):
    found = refusal(json.dumps(header).encode() + b"\n" + data.split(b"\n", 1)[1], tmp_path)

    assert found.line == 1
    assert why in found.why


def test_an_empty_file_is_no_export(tmp_path):
    assert "the record of the end is missing" in refusal(b"", tmp_path).why


def put(kind, number=0, /, **changes):
    """Return an edit of the numbered record of a type."""

    def change(found):
        [record for record in found if record["type"] == kind][number].update(changes)

    return change


def drop(kind, number=0):
    def change(found):
        found.remove([record for record in found if record["type"] == kind][number])

    return change


def swap(kind, other):
    """Return an edit that puts the first record of a type before the first of another."""

    def change(found):
        one = next(record for record in found if record["type"] == kind)
        found.remove(one)
        found.insert(next(at for at, record in enumerate(found) if record["type"] == other), one)

    return change


NOBODY = "0123456789abcdef"


@pytest.mark.parametrize(
    ("change", "kind", "why"),
    [
        (put("version", 0, state="verified"), "version", "begins as version 1, revision 1, tentative or accepted"),
        (put("version", 1, state="tentative", superseded_by=None), "version", "does not become tentative"),
        (put("version", 1, state="believed"), "version", "must be one of"),
        (put("version", 1, revision=3), "version", "revision 2 is expected"),
        (put("version", 1, recorded_at="2026-01-01T00:00:01Z"), "version", "recorded before the revision above"),
        (put("version", 0, retired_at="2026-06-01T00:00:00Z"), "version", "ended at another time"),
        (put("version", 0, fact=NOBODY), "version", "stands below fact"),
        (put("version", 0, text=None), "version", "text must be null where it was erased"),
        (put("version", 0, authority=2), "version", "must be a number from 0 to 1"),
        (put("version", 0, superseded_by=NOBODY), "version", "only what is superseded has a successor"),
        (put("version", 1, superseded_by=NOBODY), "version", "which is not in the export"),
        (
            put("version", 0, valid_from="2026-01-02T00:00:00Z", valid_to="2026-01-01T00:00:00Z"),
            "version",
            "ends before",
        ),
        (put("version", 0, text_key="00" * 32), "version", "digests of what was erased"),
        (put("version", 0, recorded_at="2026-13-01T00:00:00Z"), "version", "a time of the calendar"),
        (put("version", 0, recorded_at="yesterday"), "version", "a time like"),
        (put("version", 0, erased_at="2026-01-09T00:00:00Z"), "version", "erased together"),
        (put("version", 0, value=[1]), "version", "must be a string, a number, true or false"),
        (put("fact", 1, value=None), "fact", "see to value"),
        (put("fact", 1, id="4f2a"), "fact", "16 hexadecimal digits"),
        (put("fact", 0, scope="user/bob"), "fact", "it is of scope user/bob"),
        (put("fact", 0, subject=None), "fact", "an attribute needs a subject"),
        (put("fact", 0, recorded_at="9999-06-01T00:00:00Z"), "fact", "no time for changes"),
        (put("message", 1, id="s1#5"), "message", "s1#1 is expected"),
        (put("message", 0, content="a \ud800"), "message", "lone surrogates are escaped"),
        (put("message", 0, detail={"colour": "red"}), "message", "no place for"),
        (put("message", 0, detail={"tool_calls": [["a"]]}), "message", "must be a list of 3"),
        (put("source", 1, id="s1"), "source", "must stand before"),
        (put("source", 0, kind="robot"), "source", "must be one of"),
        (put("tombstone", 1, id="t1"), "tombstone", "must stand before"),
        (put("tombstone", 0, key="t0"), "tombstone", "does not stand above"),
        (put("tombstone", 0, stops=[]), "tombstone", "stopped by its digests"),
        (put("tombstone", 0, normaliser=9), "tombstone", "version 9 of the normaliser"),
        (put("tombstone", 0, lifted_at="2026-01-01T00:00:00Z"), "tombstone", "lifted before it was made"),
        (put("tombstone", 1, match="regex", pattern="("), "tombstone", "has a mistake"),
        (put("tombstone", 0, fact=NOBODY), "tombstone", "which is not in the export"),
        (put("provenance", 0, message="s1#9"), "provenance", "is not in the export"),
        (put("provenance", 0, source="s99"), "provenance", "is not in the export"),
        (put("provenance", 0, version=7), "provenance", "has no version 7"),
        (put("provenance", 0, span=[5, 2]), "provenance", "must not end before it begins"),
        (put("derivation", 0, parent=NOBODY), "derivation", "which is not in the export"),
        (put("origin", 0, source="s99"), "origin", "is not in the export"),
        (lambda found: found.append(found[-1]), "origin", "a fact has one origin"),
        (swap("fact", "source"), "source", "must stand before every fact"),
        (swap("message", "source"), "message", "must stand below its source"),
        (swap("version", "fact"), "version", "must stand below its fact"),
        (swap("tombstone", "key"), "tombstone", "own key must stand before"),
        (drop("key"), "tombstone", "own key must stand before"),
        (lambda found: found.insert(2, found[1]), "key", "stands there twice"),
    ],
    ids=lambda item: item.replace(" ", "-") if isinstance(item, str) else "",
)
def test_an_export_that_makes_no_sense_is_refused_at_its_line(data, tmp_path, change, kind, why):
    bad = edited(data, change)
    found = refusal(bad, tmp_path)

    assert why in found.why
    assert found.line is not None
    assert json.loads(bad.splitlines()[found.line - 1])["type"] == kind


def test_a_fact_without_versions_is_named(data, tmp_path):
    def bare(found):
        name = next(record["id"] for record in found if record["type"] == "fact")
        found[:] = [record for record in found if record["type"] == "tombstone" or record.get("fact") != name]

    assert "has no version" in refusal(edited(data, bare), tmp_path).why


def test_a_version_that_ended_without_another_is_named(tmp_path):
    with memory(tmp_path / "m.db") as store:
        retract(store, add(store, "tea is hot"))

    found = refusal(edited(exported(tmp_path / "m.db"), drop("version", 1)), tmp_path)
    assert "ended, and nothing followed it" in found.why


def test_two_readable_values_of_one_slot_are_refused(tmp_path):
    with memory(tmp_path / "m.db") as store:
        city(store, "Lisbon", validity=Validity(start=START - YEAR))
        city(store, "Porto", validity=Validity(end=START - YEAR))
    data = edited(exported(tmp_path / "m.db"), put("version", -1, valid_to=None))

    found = refusal(data, tmp_path)
    assert "another value of its slot" in found.why


def test_what_is_built_on_something_dead_is_refused(tmp_path):
    with memory(tmp_path / "m.db") as store:
        parent = add(store, "the shop is open")
        add(store, "there is bread", derived_from=(parent.id,))
        other = add(store, "the shop is closed")
        retract(store, other)
    dead = other.id

    data = edited(exported(tmp_path / "m.db"), put("derivation", 0, parent=dead))
    assert "what it was built from is not" in refusal(data, tmp_path).why


def test_derivations_in_a_circle_are_refused(tmp_path):
    with memory(tmp_path / "m.db") as store:
        first = add(store, "one")
        second = add(store, "two", derived_from=(first.id,))
    data = exported(tmp_path / "m.db")
    found = records(data)[:-1]
    place = next(at for at, record in enumerate(found) if record["type"] == "fact" and record["id"] == second.id)
    edge = {"type": "derivation", "child": first.id, "parent": second.id, "how": "inferred"}
    found.insert(place, {**edge, "recorded_at": "2026-01-01T00:00:09Z"})

    assert "round in a circle" in refusal(resealed(found), tmp_path).why


def test_a_missing_file_is_named(tmp_path):
    create(tmp_path / "back.db", actor=ANNA, now=Clock())

    with open_store(tmp_path / "back.db") as store, pytest.raises(Unreadable, match="there is no such file"):
        restore_file(store, ANNA, None, str(tmp_path / "nothing.jsonl"))
    assert count(tmp_path / "back.db", "audit") == 1


# -------------------------------------------------------------------- tampering with a restored file


@pytest.mark.parametrize(
    "sql",
    [
        "update versions set text = 'Anna lives in Faro' where text = 'Anna lives in Lisbon'",
        "update messages set content = 'x' where position = 0 and source = 1",
        "update tombstones set pattern = 'x' where pattern = 'akia'",
    ],
)
def test_a_restored_row_that_is_changed_behind_the_files_back_is_found(data, tmp_path, sql):
    restored(data, tmp_path / "back.db")
    with open_store(tmp_path / "back.db") as store:
        assert check(store) == []

    with behind(tmp_path / "back.db", as_mem=True) as conn:
        assert conn.execute(sql).rowcount == 1
    with open_store(tmp_path / "back.db") as store:
        assert {finding.code for finding in check(store)} >= {"row-tampered"}


def test_a_restored_message_that_was_swapped_for_another_of_the_same_file_is_found(path, tmp_path):
    restored(exported(path), tmp_path / "back.db")

    with behind(tmp_path / "back.db", as_mem=True) as conn:
        conn.execute("drop trigger messages_past")
        conn.execute("update messages set recorded_at = recorded_at + 1 where source = 1 and position = 1")

    with open_for_check(tmp_path / "back.db") as store:
        codes = {finding.code for finding in check(store)}
    assert {"row-unrecorded", "row-differs"} <= codes


def test_the_policy_of_the_file_does_not_travel(path, tmp_path):
    with memory(path) as store, store.write(ANNA, "trusted") as write:
        write.set_policy(PolicyRule(kind="source", name="statement", value="0.9"))
    restored(exported(path), tmp_path / "back.db")

    with open_store(path) as one, open_store(tmp_path / "back.db") as other:
        assert [len(one.policy()), len(other.policy())] == [1, 0]
        assert other.events(EventQuery(op=Op.POLICY)) == []
