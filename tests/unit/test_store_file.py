"""The file itself: who may write it, what is found when it was altered, and every way in which it cannot be opened."""

import os
import random
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from memcli import schema
from memcli.errors import Busy, Damaged, MemError, NoFile, NoSpace, NotFound, UsageError, WrongSchema
from memcli.facts import Claim, FactQuery, PolicyRule
from memcli.store import Store, create, migrate, open_store
from memcli.store.check import check, verify_log
from memcli.terms import Admission, How, Match, Op, State
from tests import tx_files
from tests.files import ANNA, SCRIPT, add, behind, chat, cite, city, correct, memory, newest, reject, take, texts

EVENT = (
    "actor_name, actor_kind, actor_channel, op, target, scope, from_state, to_state, reason, before, after, operation"
)
FOREIGN = "no such function: mem_writer"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a closed file with facts, evidence, tombstones, a policy and a proposal."""
    place = tmp_path / "m.db"
    with memory(place) as store:
        source = take(store, chat("I live in Berlin", "noted"))
        fact = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"))
        add(store, "Anna is in CET", derived_from=(fact.id,), how=How.INFERRED)
        correct(store, fact, "Anna lives in Lisbon")
        reject(store, add(store, "tea is cold"))
        fill_the_rest(store)
    return place


def fill_the_rest(store) -> None:
    with store.write(ANNA, "never") as write:
        write.tombstone(write.plan_pattern(Match.CONTAINS, "akia"))
        write.set_policy(PolicyRule(kind="source", name="statement", value="0.9"))
    with store.write(SCRIPT, "out of date") as write:
        write.propose(Op.RETRACT, write.fact(1), {"why": "old"})


@pytest.fixture
def full(path: Path) -> Path:
    """Return that file with rows in every guarded table."""
    with memory(path) as store:
        tx_files.fill(store)
    return path


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def readable(path: Path) -> list[str]:
    with open_store(path) as store:
        return texts(store.facts())


# -------------------------------------------------------------------- foreign writers


@pytest.mark.parametrize("table", schema.GUARDED)
def test_a_foreign_program_cannot_change_a_guarded_table(full, table):
    before = digest(full)
    with behind(full) as conn:
        names = [row[1] for row in conn.execute(f"pragma table_info({table})")]
        row = conn.execute(f"select * from {table} limit 1").fetchone()
        assert row is not None
        marks = ", ".join("?" * len(names))
        for sql, bound in (
            (f"insert into {table} values ({marks})", row),
            (f"insert or replace into {table} values ({marks})", row),
            (f"replace into {table} values ({marks})", row),
            (f"insert or ignore into {table} values ({marks})", row),
            (f"insert into {table} values ({marks}) on conflict do nothing", row),
            (f"update {table} set {names[0]} = {names[0]}", ()),
            (f"update or replace {table} set {names[-1]} = {names[-1]}", ()),
            (f"delete from {table}", ()),
        ):
            with pytest.raises(sqlite3.OperationalError, match=FOREIGN):
                conn.execute(sql, bound)
        assert conn.execute(f"select * from {table} limit 1").fetchone() == row
    assert digest(full) == before


@pytest.mark.parametrize("table", schema.KEPT)
def test_no_row_that_is_kept_can_be_deleted_even_with_the_function(full, table):
    with behind(full, as_mem=True) as conn, pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        conn.execute(f"delete from {table}")


@pytest.mark.parametrize(
    "sql",
    [
        "update audit set op = 'add'",
        "delete from audit",
        "insert or replace into audit select * from audit where seq = 1",
        f"insert into audit select seq + 100, at, {EVENT}, x'00' from audit where seq = 1",
        f"insert into audit select seq + 100, at + 1, {EVENT}, hash from audit where seq = 1",
        "update versions set state = 'accepted'",
        "update versions set recorded_at = 1",
        "update versions set retired_at = null where retired_at is not null",
        "update messages set evidence = x'00'",
    ],
)
def test_history_is_append_only_even_with_the_function(path, sql):
    with behind(path, as_mem=True) as conn:
        before = conn.execute("select * from audit").fetchall()
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute(sql)
        assert conn.execute("select * from audit").fetchall() == before != []


@pytest.mark.parametrize(
    "sql",
    [
        "drop trigger facts_guard_insert",
        "drop trigger audit_no_update",
        "drop index facts_by_slot",
        "alter table facts add column more text",
        "alter table versions rename column rule to rules",
        "create trigger extra after insert on audit begin select 1; end",
        "create trigger words_extra after insert on audit begin select 1; end",
        "create table more (x)",
        "create table words_more (x)",
        "create view more as select 1",
        "drop table grams",
    ],
)
def test_an_altered_schema_is_found_at_the_next_opening(path, sql):
    assert readable(path) == ["Anna is in CET", "Anna lives in Lisbon"]
    with behind(path) as conn:
        conn.execute(sql)

    with pytest.raises(Damaged, match="altered by another program"):
        open_store(path)
    with pytest.raises(Damaged, match="altered by another program"):
        migrate(path, actor=ANNA)


def test_statistics_and_vacuum_of_another_program_do_no_harm(path):
    before = readable(path)
    with behind(path) as conn:
        conn.execute("analyze")
        conn.execute("vacuum")

    assert readable(path) == before != []


# -------------------------------------------------------------------- tampering

TAMPERED = [
    ("settings", "value", "'direct'", "name = 'admission'"),
    ("settings", "name", "'encodings'", "name = 'encoding'"),
    ("keys", "secret", "zeroblob(32)", "purpose = 'tombstone'"),
    ("keys", "secret", "zeroblob(32)", "purpose = 'audit'"),
    ("keys", "purpose", "'audit'", "purpose = 'tombstone'"),
    ("scopes", "name", "'other'", "1"),
    ("sources", "kind", "'human'", "1"),
    ("sources", "path", "'b.json'", "path is not null"),
    ("messages", "content", "'I live in Porto'", "id = 1"),
    ("messages", "role", "'assistant'", "id = 1"),
    ("messages", "at", "5", "id = 1"),
    ("facts", "subject", "'bob'", "subject is not null"),
    ("facts", "visibility", "'public'", "id = 1"),
    ("facts", "scope", "2", "id = 1"),
    ("versions", "text", "'Anna lives in Porto'", "fact = 1"),
    ("versions", "value", "'\"Porto\"'", "fact = 1"),
    ("versions", "state", "'verified'", "fact = 1 and state = 'accepted' and retired_at is null"),
    ("versions", "valid_to", "5", "fact = 1"),
    ("versions", "authority", "1.0", "fact = 1"),
    ("versions", "retired_at", "recorded_at + 5", "fact = 1 and retired_at is null"),
    ("versions", "superseded_by", "2", "fact = 1 and superseded_by is not null"),
    ("provenance", "quote", "'Porto'", "id = 1"),
    ("provenance", "verified", "0", "id = 1"),
    ("provenance", "message", "2", "id = 1"),
    ("derivations", "how", "'copied'", "1"),
    ("tombstones", "lifted_at", "at + 5", "id = 1"),
    ("tombstones", "scope", "null", "id = 1"),
    ("tombstones", "pattern", "'akib'", "match = 'contains'"),
    ("stops", "digest", "zeroblob(32)", "1"),
    ("audit", "actor_name", "'bob'", "seq = 2"),
    ("audit", "reason", "null", "reason is not null and seq = (select max(seq) from audit)"),
    ("audit", "to_state", "'verified'", "to_state = 'accepted'"),
    ("audit", "hash", "zeroblob(33)", "seq = (select max(seq) from audit)"),
    ("reasons", "text", "'another'", "1"),
    ("proposals", "arguments", "'{}'", "1"),
    ("proposals", "outcome", "'accepted'", "1"),
    ("policy", "value", "'1'", "1"),
    ("policy", "name", "'agent'", "1"),
]


def tamper(path: Path, statement: str) -> int:
    """Run a statement with the triggers of the history out of the way, and put them back as they were."""
    with behind(path, as_mem=True) as conn:
        triggers = conn.execute("select name, sql from sqlite_schema where type = 'trigger'").fetchall()
        conn.execute("begin")
        for name, _ in triggers:
            conn.execute(f"drop trigger {name}")
        changed = conn.execute(statement).rowcount
        for _, sql in triggers:
            conn.execute(sql)
        conn.execute("commit")
    return changed


def noticed(path: Path) -> bool:
    """Return whether opening the file, reading all of it, or checking it tells that something is wrong."""
    try:
        with open_store(path) as store:
            return bool(check(store))
    except Damaged:
        return True


@pytest.mark.parametrize(("table", "column", "value", "where"), TAMPERED)
def test_a_row_that_was_changed_behind_the_files_back_is_found(path, table, column, value, where):
    assert not noticed(path)

    key = "name" if table == "settings" else "rowid" if table != "stops" else "digest"
    chosen = f"select {key} from {table} where {where} limit 1"
    assert tamper(path, f"update {table} set {column} = {value} where {key} = ({chosen})") == 1

    assert noticed(path)


@pytest.mark.parametrize(
    "table", ["settings", "reasons", "proposals", "policy", "versions", "tombstones", "messages", "audit"]
)
def test_a_row_that_was_deleted_behind_the_files_back_is_found(path, table):
    key = "name" if table in {"settings", "policy"} else "rowid"

    assert tamper(path, f"delete from {table} where {key} = (select {key} from {table} limit 1)") == 1

    assert noticed(path)


@pytest.mark.parametrize("column", ["text", "state", "value", "authority", "recorded_at"])
def test_a_tampered_fact_is_refused_by_every_read_and_never_shown(path, column):
    values = {
        "text": "'x'",
        "state": "'verified'",
        "value": "'1'",
        "authority": "1",
        "recorded_at": "recorded_at + 1",
    }
    with open_store(path) as store:
        (fact, *_) = store.facts(FactQuery(subject="anna"))
        other = next(item.id for item in store.facts() if item.id != fact.id)
    tamper(path, f"update versions set {column} = {values[column]} where fact = 1 and version = 2")

    with open_store(path) as store:
        for ask in (
            lambda: store.get(fact.id),
            lambda: store.versions(fact.id),
            lambda: store.history(fact.id),
            lambda: store.numbered([1]),
            lambda: list(store.facts(FactQuery(subject="anna"))),
            lambda: list(store.facts(FactQuery(known_at=fact.recorded_at + 5))),
        ):
            with pytest.raises(Damaged):
                ask()
        assert store.get(other).text == "Anna is in CET"


def test_a_tampered_event_message_and_tombstone_are_refused_too(path):
    tamper(path, "update audit set op = 'lift' where seq = 3")
    tamper(path, "update messages set content = 'x' where id = 1")
    tamper(path, "update tombstones set lifted_at = at + 1 where id = 1")

    with open_store(path) as store:
        for ask in (store.events, lambda: store.message("s1#0"), lambda: store.tombstones(lifted=True)):
            with pytest.raises(Damaged):
                ask()
        assert store.message("s1#1").content == "noted"


@pytest.mark.parametrize(
    "sql",
    [
        "update current set state = 'accepted' where state = 'rejected'",
        "update current set row = (select id from versions where retired_at is not null) where fact = 1",
        "update current set scope = 1 where fact = (select max(id) from facts)",
    ],
)
def test_a_view_that_was_tampered_with_shows_nothing_that_is_not_so(path, sql):
    with memory(path, scope="other") as store:
        add(store, "a secret of another scope")
    with behind(path) as conn:
        conn.execute(sql)

    with open_store(path) as store:
        with pytest.raises(Damaged, match="view"):
            list(store.facts())
        assert "view-differs" in {finding.code for finding in check(store)}
        store.rebuild(ANNA)
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon"]
        assert check(store) == []


def test_an_unknown_state_in_a_view_is_no_crash(path):
    with behind(path) as conn:
        conn.execute("update tallies set state = 'x' where state = 'accepted'")

    with open_store(path) as store:
        for ask in (store.tally, store.stats):
            with pytest.raises(Damaged):
                ask()


def test_a_cut_tail_is_caught_by_a_head_that_was_pinned(path):
    with open_store(path) as store:
        head = store.head()[1]
        assert verify_log(store, head=head).findings == ()
    tamper(path, "delete from reasons where seq = (select max(seq) from audit)")
    tamper(path, "delete from audit where seq = (select max(seq) from audit)")

    with open_store(path) as store:
        shallow = verify_log(store, head=head, deep=False).findings
        assert [finding.code for finding in shallow] == ["head-differs", "head-missing"]


def test_a_hole_in_the_log_is_named(path):
    tamper(path, "delete from audit where seq = 4")

    with open_store(path) as store:
        assert ("event-missing", "e4") in {(item.code, item.place) for item in verify_log(store).findings}


# -------------------------------------------------------------------- schema versions


def old_file(path: Path) -> None:
    """Make a file as the first release would have."""
    with memory(path) as store:
        add(store, "tea is hot")
        city(store, "Berlin")
    with behind(path, as_mem=True) as conn:
        conn.execute("begin immediate")
        conn.execute("pragma foreign_keys = off")
        tx_files.step_back(conn)
        for table in ("current", "tallies", "token_counts", "words", "grams"):
            conn.execute(f"drop table {table}")
        conn.execute("delete from _sqlite_migrations where name = 'm002_views'")
        conn.execute("pragma user_version = 1")
        conn.execute("commit")
        assert schema.digest(conn) == schema.DIGESTS[1]


def test_an_older_file_is_refused_until_it_is_migrated_and_a_backup_is_kept(tmp_path):
    path = tmp_path / "m.db"
    old_file(path)

    with pytest.raises(WrongSchema, match="older"):
        open_store(path)
    steps, backup = migrate(path, actor=ANNA)

    assert steps == ["m002_views", "m003_transactions"]
    assert readable(path) == ["Anna lives in Berlin", "tea is hot"]
    with open_store(path) as store:
        assert check(store) == []
        assert newest(store, Op.MIGRATE).reason == "applied m002_views, m003_transactions"
    assert backup is not None
    with pytest.raises(WrongSchema, match="older"):
        open_store(backup)
    assert migrate(path, actor=ANNA) == ([], None)


def test_a_file_from_before_transactions_keeps_its_facts_and_its_policy_and_gets_transactions(tmp_path):
    path = tmp_path / "m.db"
    with memory(path) as store:
        add(store, "tea is hot")
        with store.write(ANNA) as write:
            write.set_policy(PolicyRule(kind="source", name="crm", value="0.7"))
    with behind(path, as_mem=True) as conn:
        conn.execute("begin immediate")
        tx_files.step_back(conn)
        conn.execute("commit")
        assert schema.digest(conn) == schema.DIGESTS[2]

    with pytest.raises(WrongSchema, match="older"):
        open_store(path)
    steps, backup = migrate(path, actor=ANNA)

    assert steps == ["m003_transactions"]
    assert backup is not None
    with open_store(path) as store:
        assert check(store) == []
        assert texts(store.facts()) == ["tea is hot"]
        assert [(rule.kind, rule.name, rule.value) for rule in store.policy()] == [("source", "crm", "0.7")]
        tx_files.fill(store)
        assert check(store) == []
        assert [tx.status for tx in store.transactions()] == ["committed", "committed", "open"]


def test_a_schema_made_step_by_step_is_the_pinned_one():
    for version, pinned in schema.DIGESTS.items():
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
            conn.execute("begin immediate")
            schema.upgrade(conn, to=version)
            conn.execute("commit")
            assert schema.digest(conn) == pinned


def test_a_newer_file_is_refused_and_left_alone(path):
    with behind(path) as conn:
        conn.execute(f"pragma user_version = {schema.VERSION + 1}")
    before = digest(path)

    for ask in (lambda: open_store(path), lambda: migrate(path, actor=ANNA)):
        with pytest.raises(WrongSchema, match="newer"):
            ask()
    assert digest(path) == before


# -------------------------------------------------------------------- what is no file of ours


def test_what_is_missing_a_folder_empty_or_foreign_is_refused_and_never_read_as_empty(tmp_path):
    folder, empty, prose, foreign = (tmp_path / name for name in ("folder", "empty.db", "prose.db", "foreign.db"))
    folder.mkdir()
    empty.touch()
    prose.write_text("dear diary")
    with closing(sqlite3.connect(foreign)) as conn:
        conn.execute("create table facts (x)")

    with pytest.raises(NoFile):
        open_store(tmp_path / "missing.db")
    with pytest.raises(NoFile):
        open_store(tmp_path / "no" / "folder.db")
    for place, said in ((folder, "is no file"), (empty, "is empty"), (prose, "no memory"), (foreign, "no memory")):
        with pytest.raises(Damaged, match=said):
            open_store(place)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["empty.db", "folder", "foreign.db", "prose.db"]


@pytest.mark.parametrize("name", ["nul\0.db", "x" * 5000])
def test_a_path_that_no_system_takes_is_refused_in_words(tmp_path, name):
    for ask in (open_store, lambda place: create(place, actor=ANNA), lambda place: migrate(place, actor=ANNA)):
        with pytest.raises(MemError):
            ask(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_path_of_bytes_that_are_no_text_is_a_path_like_another(tmp_path):
    odd = tmp_path / os.fsdecode(b"m\xff?#%.db")
    with memory(odd) as store:
        add(store, "tea is hot")

    assert readable(odd) == ["tea is hot"]
    with pytest.raises(NoFile):
        open_store(tmp_path / os.fsdecode(b"m\xfe?#%.db"))


def test_a_file_is_never_overwritten(path):
    before = digest(path)

    with pytest.raises(UsageError, match="exists already"):
        create(path, actor=ANNA)
    assert digest(path) == before


def test_a_file_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    with pytest.raises(NoSpace):
        create(tmp_path / "missing" / "m.db", actor=ANNA)
    with pytest.raises(UsageError):
        create(tmp_path / "m.db", actor=ANNA, scope="*")
    assert list(tmp_path.iterdir()) == []
    create(tmp_path / "m.db", actor=ANNA)
    assert [item.name for item in tmp_path.iterdir()] == ["m.db"]


def test_one_file_is_left_after_every_kind_of_use(path, tmp_path):
    with open_store(path) as store:
        texts(store.facts())
        add(store, "tea is hot")
        with pytest.raises(MemError):
            add(store, "tea is cold")

    assert [item.name for item in tmp_path.iterdir()] == ["m.db"]


# -------------------------------------------------------------------- damage


def look_at_everything(path: Path) -> list[str]:
    with open_store(path) as store:
        found = [fact.text for fact in store.facts(FactQuery(states=frozenset(State), any_validity=True))]
        for fact in store.facts(FactQuery(states=frozenset(State), any_validity=True)):
            store.history(fact.id)
            store.excerpts(fact)
            store.parents(fact.id)
        for source in store.sources():
            store.messages(source.id)
        store.tombstones(lifted=True), store.policy(), store.proposals(), store.events(), store.stats(), store.scopes()
        return sorted([*found, *(f"finding {item.code}" for item in check(store))])


def in_words(path: Path) -> list[str]:
    """Return what `look_at_everything` does, or the code of the error that it met; anything else is a crash."""
    try:
        return look_at_everything(path)
    except MemError as problem:
        return [problem.code]


def test_a_cut_off_file_is_refused_in_words(path):
    whole, before = path.read_bytes(), look_at_everything(path)

    for size in (1, 15, 16, 99, 100, 4095, 4096, 5000, len(whole) // 3, len(whole) - 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert in_words(path) not in ([], before)
    path.write_bytes(whole)
    assert look_at_everything(path) == before


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(60))
def test_flipped_bits_raise_no_traceback_and_never_empty_the_file(path, seed):
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    before = look_at_everything(path)
    for _ in range(chance.choice((1, 1, 4, 64))):
        place = chance.choice((chance.randrange(len(data)), chance.randrange(100)))
        data[place] ^= 1 << chance.randrange(8)
    path.write_bytes(data)

    found = in_words(path)

    assert found == before or any(item.startswith(("finding", "damaged", "no-space", "wrong-schema")) for item in found)


def test_a_folder_full_of_noise_after_a_good_header_is_refused(path):
    path.write_bytes(path.read_bytes()[:100] + random.Random(1).randbytes(20_000))

    with pytest.raises(Damaged):
        look_at_everything(path)


# -------------------------------------------------------------------- no room, no lock, no permission


def fill(store: Store) -> None:
    for number in range(500):
        add(store, f"{number} " + "long " * 200)


def test_a_full_disk_changes_nothing_and_says_so(path):
    with open_store(path) as store:
        before = texts(store.facts())
        add(store, "tea is hot")
        conn = store._writing  # noqa: SLF001 -- a file system that is full on demand needs more than a test may ask for
        pages = conn.execute("pragma page_count").fetchone()[0]
        conn.execute(f"pragma max_page_count = {pages}")

        with pytest.raises(NoSpace, match="full"):
            fill(store)
        conn.execute("pragma max_page_count = 1000000")

        assert {*before, "tea is hot"} <= set(texts(store.facts()))
        assert add(store, "there is room again").readable
        assert check(store) == []


def test_a_file_that_another_process_holds_is_busy_after_the_timeout(path, monkeypatch):
    monkeypatch.setenv("MEM_TIMEOUT", "0.2")
    with behind(path) as other, open_store(path) as store:
        other.execute("begin immediate")

        with pytest.raises(Busy, match="another process"):
            add(store, "tea is hot")
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon"]
        other.execute("rollback")
        assert add(store, "tea is hot").readable


def test_a_lock_that_is_given_back_in_time_is_waited_for(path, monkeypatch):
    monkeypatch.setenv("MEM_TIMEOUT", "30")
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with behind(path) as other:
            other.execute("begin immediate")
            locked.set()
            release.wait(20)
            other.execute("rollback")

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(20)
    threading.Timer(0.3, release.set).start()
    with open_store(path) as store:
        assert add(store, "tea is hot").readable
    holder.join()


@pytest.mark.parametrize("given", ["", "soon", "-1", "nan", "1e9"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(path, monkeypatch, given):
    monkeypatch.setenv("MEM_TIMEOUT", given)

    with pytest.raises(UsageError, match="MEM_TIMEOUT"):
        open_store(path)


def test_a_change_inside_a_change_is_refused_and_the_outer_one_goes_on(path):
    with open_store(path) as store:
        with store.write(ANNA) as write:
            with pytest.raises(Busy, match="already"):
                add(store, "inner")
            write.add(Claim(text="outer"))
        assert "outer" in texts(store.facts())


def mounted(*words: str) -> bool:
    """Return whether a mount command worked."""
    if shutil.which(words[0]) is None:
        return False
    return subprocess.run(words, check=False, capture_output=True, timeout=20).returncode == 0


@pytest.fixture
def read_only(tmp_path: Path, path: Path):
    """Return a copy in a folder that nobody can write to; skip where this system offers no such folder to us."""
    folder = tmp_path / "locked"
    folder.mkdir()
    is_mount = os.geteuid() == 0 and mounted("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder))
    place = folder / "m.db"
    shutil.copy(path, place)
    folder.chmod(0o555)
    if is_mount:
        mounted("mount", "-o", "remount,ro", str(folder))
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("NOT TESTED: this user can write everywhere and mount nothing; run as another than root")
        yield place
    finally:
        if is_mount:
            mounted("umount", str(folder))
        else:
            folder.chmod(0o755)


def test_a_file_on_read_only_media_can_be_looked_at_and_not_changed(read_only):
    assert readable(read_only) == ["Anna is in CET", "Anna lives in Lisbon"]
    with open_store(read_only) as store:
        assert check(store) == []
        with pytest.raises(NoSpace, match="cannot be written"):
            add(store, "tea is hot")
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon"]
    with pytest.raises(NoSpace):
        create(read_only.with_name("n.db"), actor=ANNA)
    assert [item.name for item in read_only.parent.iterdir()] == ["m.db"]


# -------------------------------------------------------------------- scopes, policy


def test_a_renamed_scope_keeps_what_it_holds_and_its_tombstones(path):
    with open_store(path) as store, store.write(ANNA, "clearer") as write:
        write.rename_scope("default", "user/anna")

    with open_store(path) as store:
        assert store.scope == "user/anna"
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon"]
        with pytest.raises(MemError, match="rejected"):
            add(store, "tea is cold")
        assert newest(store, Op.SCOPE).reason == "clearer"
        assert len(store.proposals()) == 1
        assert check(store) == []


def test_the_store_that_renamed_its_scope_goes_on_under_the_new_name(path):
    with open_store(path) as store:
        with store.write(ANNA, "clearer") as write:
            write.rename_scope("default", "user/anna")
        add(store, "tea is hot")

        assert [(item.name, item.readable) for item in store.scopes()] == [("user/anna", 3)]


def test_a_merged_scope_moves_everything_and_both_sides_keep_their_tombstones(path):
    with memory(path, scope="work") as store:
        add(store, "milk is cold")
        doomed = add(store, "TEA is cold")
        reject(store, add(store, "the sky is green"))
        take(store, chat("good morning"))
    with memory(path) as store:
        add(store, "the sky is green")

    with open_store(path) as store, store.write(ANNA, "one person") as write:
        write.merge_scopes("work", "default")

    with open_store(path) as store:
        assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Lisbon", "milk is cold"]
        assert store.get(doomed.id).state is State.REJECTED
        for text in ("tea is cold", "the sky is green"):
            with pytest.raises(MemError, match="rejected"):
                add(store, text)
        assert [item.name for item in store.scopes()] == ["default"]
        said = [message.content for source in store.sources() for message in store.messages(source.id)]
        assert "good morning" in said
        assert check(store) == []


def test_a_scope_that_was_merged_away_is_named_instead_of_read_as_empty(path):
    with memory(path, scope="work") as store:
        add(store, "milk is cold")
        with store.write(ANNA, "one person") as write:
            write.merge_scopes("work", "default")
        assert store.scope == "default"
        assert "milk is cold" in texts(store.facts())
        with pytest.raises(MemError, match="already"), store.write(ANNA, "again") as write:
            write.rename_scope("default", "work")

    with pytest.raises(NotFound, match="merged into default"):
        open_store(path, scope="work")


def test_scopes_that_hold_different_values_for_a_slot_are_not_merged(path):
    with memory(path, scope="work") as store:
        city(store, "Porto")

    with open_store(path) as store:
        with pytest.raises(MemError, match="different values"), store.write(ANNA, "one person") as write:
            write.merge_scopes("work", "default")
        assert [item.name for item in store.scopes()] == ["default", "work"]
        assert check(store) == []


@pytest.mark.parametrize("admission", [Admission.DIRECT, Admission.REVIEW])
def test_policy_and_scopes_are_changed_by_people_only(tmp_path, admission):
    with memory(tmp_path / "m.db", admission=admission) as store:
        add(store, "tea is hot")
        rule = PolicyRule(kind="oracle", name="crm", value="look-up")
        attempts = (
            lambda write: write.set_policy(rule),
            lambda write: write.drop_policy("oracle", "crm"),
            lambda write: write.rename_scope("default", "other"),
            lambda write: write.merge_scopes("default", "other"),
        )
        for attempt in attempts:
            with pytest.raises(MemError, match="only a person"), store.write(SCRIPT, "because") as write:
                attempt(write)
        assert (store.policy(), [item.name for item in store.scopes()]) == ([], ["default"])
        with store.write(ANNA, "trusted") as write:
            write.set_policy(rule)
        assert store.policy() == [rule]
        with store.write(ANNA, "no more") as write:
            write.drop_policy("oracle", "crm")
        assert store.policy() == []
        assert check(store) == []


def test_a_rule_of_any_name_leaves_the_file_sound(path):
    with open_store(path) as store:
        for length in range(1, 20):
            with store.write(ANNA, "trusted") as write:
                write.set_policy(PolicyRule(kind="source", name="n" * length, value="0.5"))
        assert check(store) == []
        for rule in (PolicyRule(kind="x", name="a", value="1"), PolicyRule(kind="source", name="a", value="nan")):
            with pytest.raises(UsageError), store.write(ANNA, "trusted") as write:
                write.set_policy(rule)


def test_a_setting_that_another_process_changed_holds_for_the_next_write(path):
    with open_store(path) as first, open_store(path) as second:
        assert first.admission is second.admission is Admission.REVIEW
        with second.write(ANNA) as write:
            write.set_setting("admission", "direct")

        assert add(first, "milk is cold", actor=SCRIPT).state is State.ACCEPTED
