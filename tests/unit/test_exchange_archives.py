"""Archives, databases and folders: read within bounds, never written, and never read as empty."""

import io
import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

from memcli import exchange
from memcli.errors import Unreadable

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHAT = json.dumps([{"role": "user", "content": "I live in Lisbon"}, {"role": "assistant", "content": "Noted"}])


def archive(path: Path, files: dict[str, bytes | str], *, compressed: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def refusal(path: Path, **options: str) -> Unreadable:
    before = path.read_bytes()
    with pytest.raises(Unreadable) as caught:
        exchange.open_file(str(path), **options)
    assert path.read_bytes() == before
    return caught.value


def test_every_file_of_an_archive_is_read_and_what_holds_nothing_is_told(tmp_path):
    path = archive(tmp_path / "export.zip", {"a/chat.json": CHAT, "picture.png": b"\x89PNG\r\n" + b"\0" * 40})

    found = exchange.open_file(str(path))

    assert [len(talk.turns) for talk in found.conversations] == [2]
    assert [warned.message.partition(":")[0] for warned in found.warnings] == ["picture.png"]
    assert found.format == "openai"


def test_the_shards_of_an_export_are_read_in_the_order_of_the_archive(tmp_path):
    talks = [json.dumps([{"role": "user", "content": f"part {number}"}]) for number in range(3)]
    path = archive(tmp_path / "x.zip", {f"conversations-{number}.json": talk for number, talk in enumerate(talks)})

    found = exchange.open_file(str(path))

    assert [talk.turns[0].content for talk in found.conversations] == ["part 0", "part 1", "part 2"]


def test_the_shipped_chatgpt_export_is_read_from_its_archive():
    found = exchange.open_file(str(FIXTURES / "synthetic/sy08_chatgpt_export.zip"))

    assert found.format.startswith("chatgpt")
    assert sum(len(talk.turns) for talk in found.conversations) > 0


def test_files_that_the_system_put_into_an_archive_are_left_out(tmp_path):
    path = archive(tmp_path / "x.zip", {"__MACOSX/chat.json": CHAT, ".DS_Store": b"\0", "chat.json": CHAT})

    assert len(exchange.open_file(str(path)).conversations) == 1


@pytest.mark.parametrize(
    "name", ["../outside.json", "/etc/outside.json", "a/../../b.json", "C:\\x.json", "..\\up.json"]
)
def test_an_archive_that_names_a_file_outside_of_itself_is_refused(tmp_path, name):
    path = archive(tmp_path / "x.zip", {"chat.json": CHAT, name: CHAT})

    problem = refusal(path)

    assert "outside of itself" in problem.why


def test_an_archive_that_swells_beyond_measure_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("memcli.exchange.archives.RECORD_BYTES", 1024 * 1024)
    path = archive(tmp_path / "bomb.zip", {"chat.json": b"[" + b" " * (64 * 1024 * 1024) + b"]"})

    assert "swells" in refusal(path).why


@pytest.mark.parametrize("cut", [30, 60, 100])
def test_an_archive_that_is_cut_is_refused(tmp_path, cut):
    path = archive(tmp_path / "x.zip", {"chat.json": CHAT})
    path.write_bytes(path.read_bytes()[:-cut])

    assert "cut or damaged" in refusal(path).why


def test_an_archive_with_a_flipped_bit_is_refused_or_read_but_never_fails(tmp_path):
    path = archive(tmp_path / "x.zip", {"chat.json": CHAT}, compressed=False)
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"Lisbon")] ^= 1
    path.write_bytes(bytes(whole))

    assert "cut or damaged" in refusal(path).why


def test_an_encrypted_archive_is_refused_with_that_reason(tmp_path):
    path = archive(tmp_path / "x.zip", {"chat.json": CHAT})
    whole = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.index(mark) + offset] |= 1
    path.write_bytes(bytes(whole))

    assert "encrypted" in refusal(path).why


def test_an_archive_packed_in_an_unknown_way_is_not_called_damaged(tmp_path):
    path = archive(tmp_path / "x.zip", {"chat.json": CHAT})
    whole = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        whole[whole.index(mark) + offset] = 99
    path.write_bytes(bytes(whole))

    assert "a way that is not read" in refusal(path).why


def test_an_archive_without_anything_to_read_is_no_empty_transcript(tmp_path):
    empty = archive(tmp_path / "empty.zip", {})
    foreign = archive(tmp_path / "foreign.zip", {"a.bin": bytes(range(256)) * 8})

    assert "without files" in refusal(empty).why
    assert "no file in it could be read" in refusal(foreign).why


def test_an_archive_inside_an_archive_is_read_too(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as packed:
        packed.writestr("chat.json", CHAT)
    path = archive(tmp_path / "outer.zip", {"inner.zip": inner.getvalue()})

    assert len(exchange.open_file(str(path)).conversations) == 1


# ---------------------------------------------------------------- databases


def database(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as conn:
        for statement in statements:
            conn.execute(statement)
    conn.close()
    return path


def chat_table(path: Path) -> Path:
    return database(
        path,
        "create table message_store (id integer primary key, session_id text, message text)",
        """insert into message_store values (1, 's', '{"type": "human", "data": {"content": "I live in Lisbon"}}')""",
    )


def test_a_database_is_read_without_leaving_a_file_beside_it(tmp_path):
    path = chat_table(tmp_path / "history.db")
    before = path.read_bytes()

    found = exchange.open_file(str(path))

    assert [turn.content for talk in found.conversations for turn in talk.turns] == ["I live in Lisbon"]
    assert [item.name for item in tmp_path.iterdir()] == ["history.db"]
    assert path.read_bytes() == before


def test_a_database_whose_newest_rows_are_in_its_log_is_read_with_them(tmp_path):
    path = tmp_path / "history.db"
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode = wal")
    writer.execute("create table message_store (id integer primary key, session_id text, message text)")
    writer.execute(
        """insert into message_store values (1, 's', '{"type": "human", "data": {"content": "only in the log"}}')"""
    )
    writer.commit()
    names = sorted(item.name for item in tmp_path.iterdir())

    found = exchange.open_file(str(path))

    assert [turn.content for talk in found.conversations for turn in talk.turns] == ["only in the log"]
    assert sorted(item.name for item in tmp_path.iterdir()) == names
    writer.close()


def test_a_database_of_no_known_format_is_named_with_its_tables(tmp_path):
    path = database(tmp_path / "x.db", "create table customers (id integer)", "create table orders (id integer)")

    problem = refusal(path)

    assert "customers, orders" in problem.why
    assert "langchain" in problem.tried


def test_a_memory_file_of_mem_is_no_foreign_database(tmp_path):
    from tests.files import memory

    with memory(tmp_path / "memory.db"):
        pass

    assert "memory file of mem itself" in refusal(tmp_path / "memory.db").why


def test_a_damaged_database_is_refused(tmp_path):
    path = chat_table(tmp_path / "history.db")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))

    assert refusal(path).exit_code == 5


def test_a_view_that_never_ends_is_not_even_looked_at(tmp_path):
    path = database(
        tmp_path / "x.db",
        "create view message_store as with recursive n(id) as (select 1 union all select id + 1 from n)"
        " select id, 's' as session_id, 'x' as message from n",
    )

    assert "with the tables none" in refusal(path).why


def test_a_database_in_an_archive_and_on_standard_input_is_read(tmp_path, monkeypatch):
    path = chat_table(tmp_path / "history.db")
    packed = archive(tmp_path / "x.zip", {"history.db": path.read_bytes()})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

    assert len(exchange.open_file(str(packed)).conversations) == 1
    assert len(exchange.open_file("-").conversations) == 1


# ---------------------------------------------------------------- folders


def test_a_folder_is_every_file_in_it_in_the_order_of_names(tmp_path):
    for name in ("b.json", "a/deep/c.json", ".hidden/d.json", "a/.e.json"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(CHAT)

    found = [str(Path(path).relative_to(tmp_path)) for path in exchange.places([str(tmp_path)])]

    assert found == ["b.json", "a/deep/c.json"]


def test_a_folder_that_links_to_itself_has_an_end(tmp_path):
    (tmp_path / "chat.json").write_text(CHAT)
    (tmp_path / "loop").symlink_to(tmp_path)

    assert len(list(exchange.places([str(tmp_path)]))) == 1


def test_a_path_that_is_named_twice_is_one(tmp_path):
    place = tmp_path / "chat.json"
    place.write_text(CHAT)

    assert list(exchange.places([str(place), "-", str(place)])) == [str(place), "-"]
