"""Many seals at once: the fast way says what the plain way says, of whatever stands in a row."""

import math

import pytest

from memcli.facts import Validity
from memcli.store import check, honest, open_store, rows, views
from memcli.store.seals import packed, seal
from memcli.terms import How
from tests.files import ANNA, DAY, SCRIPT, START, add, behind, chat, cite, city, correct, memory, reject, retract, take

KEY = b"k" * 32
ODD = (
    None, 0, 1, -1, 1 << 62, 0.0, -0.0, 1.0, 0.1, math.inf, "", "None", "1", "it's", 'a "b"', "a\\'\"b", "é ␛ 語 🎉",
    "\x00\x1f\x7f", "\ud800", "a, None, 1", b"", b"'\\\xff", bytes(32),
)  # fmt: skip


def version(**changes):
    said = dict.fromkeys(rows.VERSION_FIELDS) | {
        "fact": 1, "version": 1, "revision": 1, "state": "accepted", "text": "tea is hot", "authority": 0.5,
        "pinned": 0, "displaced": 0, "text_key": bytes(range(32)), "actor_name": "anna", "actor_kind": "human",
        "actor_channel": "terminal", "recorded_at": START,
    }  # fmt: skip
    return tuple((said | changes).values())


def fact(**changes):
    said = dict.fromkeys(rows.FACT_FIELDS) | {"id": 1, "name": "0" * 16, "scope": 1, "kind": "belief"}
    return tuple((said | {"visibility": "shared", "recorded_at": START} | changes).values())


@pytest.mark.parametrize("name", rows.VERSION_FIELDS)
def test_a_version_is_packed_as_every_row_is_whatever_a_column_holds(name):
    said = honest.version_packer()

    for odd in (*ODD, *reversed(ODD)):
        fields = version(**{name: odd})
        assert said((*fields, None, None, b"", b"")) == packed(fields)


@pytest.mark.parametrize("name", rows.FACT_FIELDS)
def test_a_fact_is_packed_as_every_row_is_whatever_a_column_holds(name):
    for odd in ODD:
        fields = fact(**{name: odd})
        assert honest.packed_fact((*fields, b"")) == packed(fields)


def test_a_version_is_honest_until_one_of_its_columns_is_another():
    fields = version()
    digest = seal(KEY, "version", fields)
    whole = (*fields, None, None, digest, rows.version_seal(KEY, fields, (digest, None, None)))
    fits = honest.versions(KEY)

    assert fits(whole)
    for at in range(len(whole)):
        assert not fits((*whole[:at], "another", *whole[at + 1 :]))


def test_an_erased_version_is_known_by_its_seal_alone():
    fields = version(text=None)
    digest = seal(KEY, "version", version())
    rest = (digest, START + 1, START + 2)
    whole = (*fields, START + 1, START + 2, digest, rows.version_seal(KEY, fields, rest))
    fits = honest.versions(KEY)

    assert fits(whole)
    for at in range(len(whole)):
        assert not fits((*whole[:at], "another", *whole[at + 1 :]))


def test_a_fact_is_honest_until_one_of_its_columns_is_another():
    whole = (*fact(), seal(KEY, "fact", fact()))
    fits = honest.facts(KEY)

    assert fits(whole)
    for at in range(len(whole)):
        assert not fits((*whole[:at], "another", *whole[at + 1 :]))


# -------------------------------------------------------------------- the log with the rows it speaks of


@pytest.fixture
def path(tmp_path):
    """A file with something in every state, and something rejected, erased and derived."""
    with memory(tmp_path / "m.db") as store:
        source = take(store, chat("I live in Berlin", "noted"))
        berlin = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"))
        add(store, "Anna is in CET", subject="anna", derived_from=(berlin.id,), how=How.INFERRED)
        correct(store, berlin, "Anna lives in Lisbon")
        reject(store, add(store, "tea is cold"))
        retract(store, add(store, "milk is black"))
        add(store, "unsure of it", actor=SCRIPT)
        add(store, "it was summer", validity=Validity(end=START - DAY))
        gone = add(store, "a secret word")
        with store.write(ANNA, "forget it") as write:
            write.erase(write.plan_erase_facts([gone]))
    return tmp_path / "m.db"


def test_the_log_of_a_whole_file_is_found_whole(path):
    with open_store(path) as store:
        verdict = check.verify_log(store)

        assert verdict.findings == ()
        assert verdict.events == store.head()[0] > 10
        assert list(check.versions(store)) == []


_DOUBLED = (
    "insert into versions select 900, fact, version + 7, 1, state, text, value, confidence, importance, authority,"
    " pinned, valid_from, valid_to, displaced, superseded_by, rule, text_key, slot_key, actor_name, actor_kind,"
    " actor_channel, recorded_at + 900000, null, erased_at, digest, seal from versions where id = 1"
)


@pytest.mark.parametrize(
    "damage",
    [
        "update versions set text = 'tea is warm' where text = 'tea is cold'",
        "update versions set seal = zeroblob(32) where id = 1",
        "update versions set retired_at = retired_at + 1 where retired_at is not null",
        "update versions set retired_at = recorded_at + 1 where id = (select max(id) from versions)",
        "update versions set erased_at = 1, text = null where id = 2",
        "update facts set subject = 'bob' where id = 1",
        "update facts set name = '0123456789abcdef' where id = 2",
        "update facts set scope = 2 where id = 1",
        "delete from versions where id = 1",
        "delete from versions where id = (select max(id) from versions)",
        _DOUBLED,
        "update versions set state = 'verified' where id = 1",
        "update versions set actor_name = 'eve' where id = 1",
        "update versions set recorded_at = recorded_at - 1000000 where id = 1",
        "update audit set target = '0123456789abcdef' where target = (select name from facts where id = 1)",
        "update audit set after = zeroblob(32) where op = 'add'",
        "update audit set after = null where op = 'add'",
        "update audit set to_state = 'verified' where op = 'add'",
        "delete from audit where op = 'add'",
    ],
)
def test_what_is_wrong_with_a_version_is_found_in_one_pass_as_one_by_one(path, damage):
    with behind(path, as_mem=True) as conn:
        guards = conn.execute("select name, sql from sqlite_schema where type = 'trigger'").fetchall()
        for name, _ in guards:
            conn.execute(f"drop trigger {name}")
        assert conn.execute(damage).rowcount > 0
        for _, sql in guards:
            conn.execute(sql)

    with open_store(path) as store:
        found, plain = check.verify_log(store).findings, list(check.versions(store))

    assert plain
    assert set(plain) <= set(found)


def test_evidence_and_words_that_were_altered_are_found_among_many_that_were_not(path):
    with behind(path, as_mem=True) as conn:
        conn.execute("update provenance set quote = 'live in Rome' where quote = 'live in Berlin'")
        conn.execute("update messages set content = 'noted!' where content = 'noted'")
    with open_store(path) as store:
        found = list(check.seals(store))

    assert [item.code for item in found] == ["row-tampered", "row-tampered"]
    assert {item.place for item in found} == {"message s1#1", "the evidence of fact number 1"}


def test_views_that_are_built_page_by_page_hold_what_was_kept_up_to_date(path, monkeypatch):
    asked = (
        "select * from current order by fact",
        "select * from tallies order by scope, state",
        "select * from token_counts order by row",
        "select rowid from words where words match 'berlin OR lisbon OR cet' order by rowid",
        "select rowid from grams where grams match 'ann' order by rowid",
    )
    with open_store(path) as store:
        kept = [store.conn.execute(sql).fetchall() for sql in asked]
        monkeypatch.setattr(views, "PAGE", 1)
        made = store.rebuild(ANNA)
        built = [store.conn.execute(sql).fetchall() for sql in asked]
        found = check.check(store)

    assert built == kept
    assert all(kept)
    assert made["current"] == len(kept[0])
    assert found == []
