"""The roll of a file: what is gone, what is there twice, and a log that does not end where it was left."""

from hashlib import sha256
from pathlib import Path

import pytest

from memcli import schema
from memcli.errors import Damaged, MemError
from memcli.store import migrate, open_for_check, open_store
from memcli.store.check import check
from memcli.store.seals import AUDIT_COLUMNS, chained
from memcli.terms import How, TxStatus
from tests import tx_files
from tests.conformance.edits import unguarded
from tests.files import ANNA, add, behind, chat, cite, city, correct, memory, reject, take, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a closed file with facts, evidence, a tombstone and what transactions left."""
    place = tmp_path / "m.db"
    with memory(place) as store:
        source = take(store, chat("I live in Berlin", "noted"))
        fact = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"))
        add(store, "Anna is in CET", derived_from=(fact.id,), how=How.INFERRED)
        correct(store, fact, "Anna lives in Lisbon")
        reject(store, add(store, "tea is cold"))
    return place


@pytest.fixture
def full(path: Path) -> Path:
    """Return that file with rows in every guarded table."""
    with memory(path) as store:
        tx_files.fill(store)
    return path


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def findings(path: Path) -> set[tuple[str, str]]:
    """Return code and place of everything that a check reports."""
    with open_for_check(path) as store:
        return {(finding.code, finding.place) for finding in check(store)}


def tamper(path: Path, *statements: str) -> None:
    """Run statements with the triggers out of the way; each has to change something."""
    with unguarded(path, *schema.GUARDED) as conn:
        for statement in statements:
            assert conn.execute(statement).rowcount > 0


def forge_the_end(path: Path) -> None:
    """Chain an event to the newest, which takes no key."""
    with behind(path, as_mem=True) as conn:
        last = conn.execute(f"select {', '.join(AUDIT_COLUMNS)}, hash from audit order by seq desc limit 1").fetchone()
        event = dict(zip(AUDIT_COLUMNS, last, strict=False))
        event |= {"seq": event["seq"] + 1, "at": event["at"] + 1, "op": "verify", "operation": event["seq"] + 1}
        fields = tuple(event.values())
        marks = ", ".join("?" * (len(fields) + 1))
        conn.execute(f"insert into audit values ({marks})", (*fields, chained(last[-1], fields)))


def cut_the_end(path: Path) -> None:
    """Take the newest event away with what speaks of it."""
    newest = "where seq = (select max(seq) from audit)"
    tamper(path, f"delete from reasons {newest}", f"delete from audit {newest}")


@pytest.mark.parametrize("change", [cut_the_end, forge_the_end])
def test_a_log_that_does_not_end_where_it_was_left_is_reported_and_neither_shown_nor_written_on(path, change):
    with open_store(path) as store:
        assert store.events()
        assert check(store) == []
    change(path)
    before = digest(path)

    with open_store(path) as store:
        for ask in (store.events, store.head, lambda: add(store, "tea is hot")):
            with pytest.raises(Damaged, match="the end of the log"):
                ask()
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon"]
    assert ("head-differs", "log") in findings(path)
    assert digest(path) == before


def test_a_refusal_and_a_change_that_changes_nothing_leave_a_log_that_ends_where_it_was_left(path):
    with open_store(path) as store:
        before = store.head()
        with store.write(ANNA):
            pass
        assert store.head() == before
        with pytest.raises(MemError):
            add(store, "tea is cold")

        assert store.head()[0] == before[0] + 1
        assert check(store) == []


@pytest.mark.parametrize(
    ("table", "sql"),
    [
        ("provenance", "delete from provenance where id = (select max(id) from provenance)"),
        (
            "provenance",
            """insert into provenance select id + 100, fact, version, source, message, quote, start, stop, verified,
            recorded_at, erased_at, seal from provenance where id = 1""",
        ),
        ("derivations", "delete from derivations"),
        ("premises", "delete from premises"),
        ("repairs", "delete from repairs where id = 1"),
        ("verdicts", "delete from verdicts where tx = 1"),
    ],
)
def test_a_row_that_is_gone_or_there_twice_is_still_reported_after_genuine_changes(full, table, sql):
    assert findings(full) == set()
    tamper(full, sql)
    with open_store(full) as store:
        add(store, "the oak is a beech")
        reject(store, add(store, "the beech is an oak"))

    assert ("rows-differ", table) in findings(full)


def test_an_older_roll_put_back_with_the_rows_of_its_time_is_reported(path):
    with behind(path) as conn:
        old = conn.execute("select value, seal from settings where name = 'roll'").fetchone()
    with open_store(path) as store:
        add(store, "tea is hot")
    tamper(path, "delete from provenance where id = (select max(id) from provenance)")
    with behind(path, as_mem=True) as conn:
        conn.execute("update settings set value = ?, seal = ? where name = 'roll'", old)

    assert ("head-differs", "log") in findings(path)


@pytest.mark.parametrize("name", ["admission", "scope", "encoding", "roll"])
def test_a_setting_that_is_gone_is_reported_and_opens_no_file(path, name):
    tamper(path, f"delete from settings where name = '{name}'")

    with pytest.raises(Damaged, match="lost its settings"):
        open_store(path)
    assert ("setting-missing", name) in findings(path)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into token_counts select 1000, tokens, encoding from token_counts where row = 1",
        "update token_counts set tokens = tokens + 1 where row = 2",
        "update token_counts set encoding = 'chars' where row = 2",
    ],
)
def test_a_token_count_that_is_not_so_is_reported_and_mended_by_a_rebuild(path, sql):
    with behind(path) as conn:
        conn.execute(sql)

    with open_store(path) as store:
        assert [finding.code for finding in check(store)] == ["view-differs"]
        store.rebuild(ANNA)
    assert findings(path) == set()


# -------------------------------------------------------------------- files from before


def older(path: Path, sql: str | None = None) -> None:
    """Turn a file into one from before transactions, edited behind its back."""
    with behind(path, as_mem=True) as conn:
        conn.execute("begin immediate")
        tx_files.step_back(conn)
        if sql is not None:
            conn.execute(sql)
        conn.execute("commit")
        assert sql is not None or schema.digest(conn) == schema.DIGESTS[2]


def test_evidence_of_an_older_file_is_sealed_with_the_place_of_its_message(path):
    older(path)
    migrate(path, actor=ANNA)

    assert findings(path) == set()
    tamper(
        path,
        "update messages set id = case id when 1 then 2 else 1 end + 1000 where id in (1, 2)",
        "update messages set id = id - 1000 where id > 1000",
    )
    assert ("row-tampered", "the evidence of fact number 1") in findings(path)
    with open_store(path) as store, pytest.raises(Damaged, match="evidence"):
        list(store.facts())


@pytest.mark.parametrize(
    "sql",
    ["update provenance set quote = 'x' where id = 1", "update derivations set how = 'copied'"],
)
def test_an_older_file_with_a_row_that_was_altered_is_not_migrated(path, sql):
    older(path, sql)
    before = digest(path)

    with pytest.raises(Damaged, match="behind the file's back"):
        migrate(path, actor=ANNA)
    assert digest(path) == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_an_older_file_whose_log_is_broken_is_not_migrated(path):
    with behind(path) as conn:
        guards = conn.execute("select sql from sqlite_schema where name = 'audit_no_update'").fetchone()
    older(path, "drop trigger audit_no_update")
    with behind(path, as_mem=True) as conn:
        (guard,) = guards
        conn.execute("update audit set actor_name = 'eve' where seq = 3")
        conn.execute(guard)
    before = digest(path)

    with pytest.raises(Damaged, match="at e3 the event does not follow from the one before"):
        migrate(path, actor=ANNA)
    assert digest(path) == before


def test_a_mark_of_an_unfinished_erasure_that_is_gone_is_reported(path):
    with open_store(path) as store, store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_value("Lisbon"))

    assert findings(path) == set()
    tamper(path, "delete from settings where name = 'scrub'")
    assert findings(path) == {("setting-missing", "scrub")}


def test_a_reason_that_is_blanked_at_the_time_of_an_erasure_is_reported(path):
    with open_store(path) as store, store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_value("Lisbon"))

    assert findings(path) == set()
    tamper(
        path,
        "update reasons set text = null, erased_at = (select max(at) from audit where op = 'erase')"
        " where text = 'never true'",
    )
    assert findings(path) == {("rows-differ", "reasons")}


def test_what_is_erased_and_repeated_in_reasons_leaves_a_file_that_is_whole(path):
    with open_store(path) as store, store.write(ANNA, "the code is 4711") as write:
        write.dispute(write.fact(2))
    with open_store(path) as store, store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_value("4711"), texts=["4711"])

    assert findings(path) == set()
    with behind(path) as conn:
        assert conn.execute("select count(*) from reasons where erased_at is not null").fetchone() == (1,)


def test_a_transaction_does_not_build_on_a_derivation_that_was_altered(path):
    with memory(path) as store:
        tx_files.allow(store)
        (base,) = (fact for fact in store.facts() if fact.text == "Anna lives in Lisbon")
        first = tx_files.begin(store, actor=ANNA)
        built = tx_files.stage(store, first, "5", actor=ANNA, derived_from=(base.id,))
        assert tx_files.commit(store, first, actor=ANNA).status is TxStatus.COMMITTED
    tamper(
        path, f"update derivations set how = 'copied' where child = (select id from facts where name = '{built.id}')"
    )
    with memory(path) as store:
        second = tx_files.begin(store, actor=ANNA)
        tx_files.stage(store, second, "6", actor=ANNA, subject="order8", derived_from=(built.id,))
        with pytest.raises(Damaged, match="derivation"):
            tx_files.commit(store, second, actor=ANNA)
