"""Out again: mem's own format, and what other tools get and do not get."""

import json
import shutil
import threading
from hashlib import md5

import pytest

from memcli.bring import import_files
from memcli.errors import Damaged, UsageError
from memcli.exchange import reading
from memcli.exchange.secrets import Secrets, looking
from memcli.exchange.write import OUT, Export
from memcli.exchange.writers import groups
from memcli.exchange.writers import mem as mem_writer
from memcli.exchange.writers.markdown import escaped
from memcli.facts import Claim, Conversation, FactQuery, Remembered, Stop, ToolCall, Turn, Validity
from memcli.keys import TombstoneKey, value_digest
from memcli.store import copy, open_store
from memcli.store.copy import Copy
from memcli.terms import How, Match, Role, State
from tests.exports import edited, exported, records, taken_out
from tests.files import (
    ANNA,
    DAY,
    IMPORTER,
    SCRIPT,
    START,
    add,
    behind,
    chat,
    cite,
    city,
    correct,
    memory,
    reject,
    retract,
    take,
)
from tests.tx_files import believed

HOSTILE = "# no heading\n- no item\r\n1. [x](y) <b>*a* _b_ `c` ![d](e) &#10; \u202eright \x1b[31m red"
EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)
FOREIGN = tuple(name for name in OUT if name != "mem")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file with something in every state, and something rejected, erased, expired and derived."""
    place = tmp_path_factory.mktemp("made") / "m.db"
    with memory(place) as store:
        source = take(store, chat("I live in Berlin", "noted", session="hello"))
        berlin = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"), importance=0.5)
        add(store, "Anna is in CET", subject="anna", derived_from=(berlin.id,), how=How.INFERRED)
        correct(store, berlin, "Anna lives in Lisbon")
        add(store, "anna: likes oat milk", subject="anna", owner="user-1")
        reject(store, add(store, "tea is cold"))
        retract(store, add(store, "milk is black"))
        add(store, "unsure of it", actor=SCRIPT)
        add(store, "it was summer", validity=Validity(end=START - DAY))
        gone = add(store, "a secret word")
        with store.write(ANNA, "forget it") as write:
            write.erase(write.plan_erase_facts([gone]))
    return place


@pytest.fixture
def path(made, tmp_path):
    """A copy of it, which a test may change."""
    return shutil.copy(made, tmp_path / "m.db")


def found_in(data, folder, *, name="auto"):
    """Return what a reader finds in an export, and what it warned of."""
    place = folder / "out"
    place.write_bytes(data)
    with reading(str(place), format=name, encoding=None) as opened:
        return list(opened.found), opened.format, [warned.message for warned in opened.warnings]


# -------------------------------------------------------------------- mem's own


def test_tombstones_stand_before_everything_that_they_could_stop(path):
    with memory(path) as store:
        believed(store, 900)
    kinds = [record["type"] for record in records(exported(path))]
    first = list(dict.fromkeys(kinds))

    assert first == [
        "header", "key", "tombstone", "source", "message", "fact", "version", "provenance", "derivation", "origin",
        "end",
    ]  # fmt: skip
    assert kinds.count("end") == 1


def test_the_keys_of_every_record_are_the_contract(path):
    with memory(path) as store:
        believed(store, 900)
    keys = {record["type"]: list(record) for record in records(exported(path))}

    assert keys == {
        "header": ["mem", "type", "scope"],
        "key": ["type", "id", "secret"],
        "tombstone": [
            "type", "id", "scope", "match", "pattern", "key", "normaliser", "stops", "fact", "reason", "actor", "at",
            "lifted_at", "lifted_reason",
        ],
        "source": [
            "type", "id", "scope", "kind", "format", "path", "session", "title", "digest", "imported_at", "erased_at",
        ],
        "message": ["type", "id", "role", "content", "detail", "at", "evidence", "recorded_at", "erased_at"],
        "fact": [
            "type", "id", "scope", "kind", "subject", "attribute", "slot", "owner", "visibility", "recorded_at",
            "erased_at",
        ],
        "version": [
            "type", "fact", "version", "revision", "state", "text", "value", "confidence", "importance", "authority",
            "pinned", "valid_from", "valid_to", "displaced", "superseded_by", "rule", "text_key", "slot_key", "actor",
            "recorded_at", "retired_at", "erased_at", "reason",
        ],
        "provenance": [
            "type", "fact", "version", "source", "message", "quote", "span", "verified", "recorded_at", "erased_at",
        ],
        "derivation": ["type", "child", "parent", "how", "recorded_at"],
        "origin": ["type", "fact", "source", "recorded_at"],
        "end": ["type", "records", "digest"],
    }  # fmt: skip


def test_every_line_is_ascii_and_has_no_time_of_export(path):
    data = exported(path)

    assert data.isascii()
    assert exported(path) == data
    with memory(path) as store:
        take(store, chat("東京 \ud800"))
    assert b"\\u6771\\u4eac \\u241bd800" in exported(path)


def test_every_revision_is_there_with_the_reason_of_its_event(path):
    found = records(exported(path), "version")
    berlin = [item for item in found if item["value"] in {"Berlin", "Lisbon"}]

    assert [(item["version"], item["revision"], item["state"], item["reason"]) for item in berlin] == [
        (1, 1, "accepted", None),
        (1, 2, "superseded", "it changed"),
        (2, 1, "accepted", "it changed"),
    ]


def test_the_key_of_the_tombstones_travels_and_the_key_of_the_log_does_not(path):
    data = exported(path)
    (key,) = records(data, "key")
    with behind(path) as conn:
        secrets = dict(conn.execute("select purpose, secret from keys"))

    assert key["secret"] == secrets["tombstone"].hex()
    assert secrets["audit"].hex().encode() not in data
    digest = value_digest(TombstoneKey(id=key["id"], secret=bytes.fromhex(key["secret"])), "Tea is COLD.")
    assert digest.hex() in records(data, "tombstone")[0]["stops"]


def test_what_was_erased_is_a_marker_with_its_digest(path):
    data = exported(path)
    fact = next(item for item in records(data, "fact") if item["erased_at"])
    versions = [item for item in records(data, "version") if item["fact"] == fact["id"]]

    assert b"secret word" not in data
    assert b"oat milk" in data
    assert {item["text"] for item in versions} == {None}
    assert all(len(item["text_key"]) == 64 for item in versions)
    assert [item["content"] for item in records(data, "message") if item["erased_at"]] == [None]


def test_another_scope_is_not_in_it(path):
    with memory(path, scope="user/bob") as store:
        add(store, "bob likes tea")
        take(store, chat("bob speaks"))

    assert b"bob" not in exported(path)
    assert b"bob speaks" in exported(path, scope="user/bob")
    assert b"Lisbon" not in exported(path, scope="user/bob")
    both = exported(path, all_scopes=True)
    assert b"bob speaks" in both
    assert b"Lisbon" in both
    assert records(both)[0] == {"mem": 1, "type": "header", "scope": None}


@pytest.mark.no_cover
def test_more_facts_than_fit_a_page_are_all_there_once(tmp_path):
    with memory(tmp_path / "m.db") as store, store.write(ANNA) as write:
        for number in range(2_500):
            write.add(Claim(text=f"fact number {number}"))
    found = records(exported(tmp_path / "m.db"))

    texts = [item["text"] for item in found if item["type"] == "version"]
    assert texts == [f"fact number {number}" for number in range(2_500)]
    assert [item["id"] for item in found if item["type"] == "source"] == [f"s{n + 1}" for n in range(2_500)]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("update versions set text = 'Anna lives in Faro' where text = 'Anna lives in Lisbon'", "fact"),
        ("update facts set subject = 'bob' where subject = 'anna'", "fact"),
        ("update messages set content = 'x' where source = 1", "message s1#0"),
        ("update sources set path = 'x' where id = 1", "source s1"),
        ("update provenance set quote = 'x' where quote is not null", "evidence"),
        ("update derivations set how = 'copied'", "derivation"),
        ("update tombstones set actor_name = 'bob'", "tombstone t1"),
        ("update reasons set text = 'x'", "reason"),
    ],
)
def test_a_row_that_was_changed_behind_the_files_back_is_not_exported(path, sql, named):
    assert exported(path)
    with behind(path, as_mem=True) as conn:
        assert conn.execute(sql).rowcount > 0

    with pytest.raises(Damaged, match=named):
        exported(path)


def test_an_export_is_of_one_moment_whoever_writes_meanwhile(path):
    with open_store(path) as store:
        copy = Copy(store)
        with copy.snapshot(), looking() as secrets:
            chunks = Export(copy, "mem", states=None, secrets=secrets).chunks()
            begun = [next(chunks)]
            writer = threading.Thread(target=lambda: _write_more(path))
            writer.start()
            writer.join()
            data = b"".join([*begun, *chunks])

    assert b"written meanwhile" not in data
    assert b"written meanwhile" in exported(path)


def _write_more(path):
    with memory(path) as store:
        add(store, "written meanwhile")


# -------------------------------------------------------------------- read like any foreign store


def test_an_export_is_read_as_stops_transcripts_and_facts(path, tmp_path):
    found, name, _ = found_in(exported(path), tmp_path)

    assert name == "mem"
    assert list(dict.fromkeys(type(item) for item in found)) == [Stop, Conversation, Remembered]
    assert [(turn.role, turn.content) for talk in found if isinstance(talk, Conversation) for turn in talk.turns] == [
        (Role.USER, "I live in Berlin"),
        (Role.ASSISTANT, "noted"),
    ]


def test_a_fact_is_read_with_what_it_said_before_its_state_and_its_id(path, tmp_path):
    found, _, _ = found_in(exported(path), tmp_path)
    facts = {item.text: item for item in found if isinstance(item, Remembered)}

    assert set(facts) == {
        "Anna lives in Lisbon", "Anna is in CET", "anna: likes oat milk", "tea is cold", "milk is black",
        "unsure of it", "it was summer",
    }  # fmt: skip
    lisbon = facts["Anna lives in Lisbon"]
    assert [(said.text, said.value) for said in lisbon.earlier] == [("Anna lives in Berlin", "Berlin")]
    assert (lisbon.subject, lisbon.attribute, lisbon.value) == ("anna", "home city", "Lisbon")
    assert lisbon.earlier[0].at < lisbon.at
    assert (facts["tea is cold"].ended, facts["tea is cold"].status) == (State.REJECTED, "rejected")
    assert facts["milk is black"].ended is State.REVOKED
    assert facts["unsure of it"].status == "tentative"
    assert facts["it was summer"].validity == Validity(end=START - DAY)
    assert facts["anna: likes oat milk"].owner == "user-1"
    assert all(len(item.origin) == 16 for item in facts.values())


def test_a_tombstone_is_read_with_its_key_and_a_lifted_one_is_told(path, tmp_path):
    with memory(path) as store, store.write(ANNA, "after all") as write:
        write.lift("t1")
        write.tombstone(write.plan_pattern(Match.CONTAINS, "akia", everywhere=True))
        own = store.tombstone_key
    found, _, warnings = found_in(exported(path), tmp_path)
    stops = [item for item in found if isinstance(item, Stop)]

    assert [(stop.match, stop.pattern, stop.everywhere) for stop in stops] == [
        (Match.VALUE, None, False),
        (Match.CONTAINS, "akia", True),
    ]
    assert stops[0].key == (own.id, own.secret)
    assert (stops[1].reason, stops[1].author) == ("after all", "anna")
    assert any("t1 was lifted" in warning for warning in warnings)


def test_an_import_decides_anew_and_refuses_what_is_rejected_there(path, tmp_path):
    (tmp_path / "out").write_bytes(exported(path))
    with memory(tmp_path / "other.db") as store:
        import_files(store, IMPORTER, None, [str(tmp_path / "out")], format_="auto", encoding=None, dry_run=False)
        states = {fact.text: fact.state for fact in store.facts(EVERYTHING)}
        assert states["Anna lives in Lisbon"] is State.TENTATIVE
        assert "tea is cold" not in states
        assert len(store.tombstones()) == 2


def test_an_export_of_all_scopes_is_not_read_into_one(path, tmp_path):
    with memory(path, scope="user/bob") as store:
        add(store, "bob likes tea")
    data = exported(path, all_scopes=True)

    with pytest.raises(Exception, match="all scopes, which must not be mixed"):
        found_in(data, tmp_path)
    assert found_in(exported(path), tmp_path)[0]


def test_a_cut_export_is_read_as_far_as_it_goes_and_told(path, tmp_path):
    lines = exported(path).splitlines(keepends=True)
    cut = b"".join(lines[:-1])[:-30]
    found, name, warnings = found_in(cut, tmp_path)

    assert name == "mem"
    assert found
    assert any("the record of the end is missing" in warning for warning in warnings)
    fewer = b"".join([*lines[:-3], lines[-1]])
    assert any("records were exported" in warning for warning in found_in(fewer, tmp_path)[2])


def test_a_record_that_makes_no_sense_costs_itself_only(path, tmp_path):
    def break_one(found):
        next(item for item in found if item["type"] == "version")["state"] = "believed"

    whole, _, _ = found_in(exported(path), tmp_path)
    found, _, warnings = found_in(edited(exported(path), break_one), tmp_path)

    assert len(found) == len(whole)
    assert any("must be one of" in warning for warning in warnings)


def test_odd_words_and_details_of_messages_survive_the_reader(tmp_path):
    turn = Turn(
        role=Role.ASSISTANT,
        content="a \ud800 \0 ␛ b",
        name="bot",
        at=START,
        origin="m1",
        tool_calls=(ToolCall(id=None, name="f", arguments='{"x": "\ud801"}'),),
        attachments=("image a.png",),
        thinking="hm",
        extra=(("mood", "good"),),
    )
    with memory(tmp_path / "m.db") as store:
        take(store, chat(turn, "bye"))
    (found,), _, _ = found_in(exported(tmp_path / "m.db"), tmp_path)

    assert isinstance(found, Conversation)
    assert found.turns[0] == turn


# -------------------------------------------------------------------- other tools


@pytest.mark.parametrize("name", FOREIGN)
def test_only_what_is_readable_and_true_now_goes_to_other_tools(path, name):
    data = exported(path, name=name)

    assert b"Anna lives in Lisbon" in data
    assert b"oat milk" in data
    for word in (b"Berlin", b"tea is cold", b"milk is black", b"unsure", b"summer", b"secret"):
        assert word not in data


@pytest.mark.parametrize("name", FOREIGN)
def test_another_scope_does_not_go_to_other_tools(path, name):
    with memory(path, scope="user/bob") as store:
        add(store, "bob likes tea")

    assert b"bob likes tea" not in exported(path, name=name)
    assert b"bob likes tea" in exported(path, name=name, scope="user/bob")


@pytest.mark.parametrize("name", FOREIGN)
def test_what_stays_behind_is_counted(path, name):
    with open_store(path) as store:
        copy = Copy(store)
        with copy.snapshot():
            out = Export(copy, name, states=None, secrets=Secrets(None))
            list(out.chunks())

    assert out.facts == 3
    assert out.withheld == {
        "accepted and not asked for, or not valid now": 1, "rejected": 1, "revoked": 1, "tentative": 1,
    }  # fmt: skip
    assert out.left["tombstone", "tombstones"] == 2
    assert out.left["earlier version", "earlier versions"] == 1
    assert ("owner" in out.lacking) == (name != "mem0")
    assert ("subject" in out.lacking) == (name == "llamaindex")


@pytest.mark.parametrize("name", FOREIGN)
def test_only_the_states_that_were_asked_for_go_out(path, name):
    with memory(path) as store, store.write(ANNA) as write:
        write.verify(next(fact for fact in store.facts() if fact.text == "Anna is in CET"))

    verified = exported(path, name=name, states=frozenset({State.VERIFIED}))
    assert b"Anna is in CET" in verified
    assert b"Lisbon" not in verified


@pytest.mark.parametrize(
    ("name", "states", "why"),
    [
        ("mem", {State.ACCEPTED}, "is complete"),
        ("mcp", {State.TENTATIVE}, "does not go to other tools"),
        ("yaml", None, "no format that can be written"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(path, name, states, why):
    with pytest.raises(UsageError, match=why):
        exported(path, name=name, states=None if states is None else frozenset(states))


@pytest.mark.parametrize("name", FOREIGN)
def test_an_empty_memory_is_an_empty_store_and_no_error(tmp_path, name):
    with memory(tmp_path / "m.db") as store:
        data = taken_out(store, name=name)

    assert (
        data
        == {
            "mcp": b"",
            "mem0": b'{"results": [\n]}\n',
            "llamaindex": data,
            "markdown": b"# Memory\n",
        }[name]
    )
    assert b"facts" in data or name != "llamaindex"


def test_mcp_has_an_entity_for_each_subject_and_one_for_the_rest(path):
    with memory(path) as store:
        add(store, "the kettle is on")
    found = [json.loads(line) for line in exported(path, name="mcp").splitlines()]

    assert found == [
        {
            "type": "entity",
            "name": "anna",
            "entityType": "unknown",
            "observations": ["Anna lives in Lisbon", "Anna is in CET", "likes oat milk"],
        },
        {"type": "entity", "name": "default", "entityType": "unknown", "observations": ["the kettle is on"]},
    ]


def test_an_mcp_graph_comes_in_and_goes_out_as_it_was(tmp_path):
    graph = [
        {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["likes tea", "is: here"]},
        {"type": "entity", "name": "Lisbon", "entityType": "city", "observations": ["is sunny"]},
        {"type": "relation", "from": "Anna", "to": "Lisbon", "relationType": "lives_in"},
    ]
    text = "".join(json.dumps(item) + "\n" for item in graph)
    (tmp_path / "memory.json").write_text(text)
    with memory(tmp_path / "m.db") as store:
        import_files(store, ANNA, None, [str(tmp_path / "memory.json")], format_="auto", encoding=None, dry_run=False)
        assert taken_out(store, name="mcp").decode() == text


def test_mem0_carries_what_it_has_a_place_for_and_the_rest_as_metadata(path):
    document = json.loads(exported(path, name="mem0"))
    found = {item["memory"]: item for item in document["results"]}

    milk = found["anna: likes oat milk"]
    assert set(milk) == {"id", "memory", "hash", "metadata", "created_at", "updated_at", "user_id"}
    assert milk["user_id"] == "user-1"
    assert milk["hash"] == md5(b"anna: likes oat milk", usedforsecurity=False).hexdigest()
    lisbon = found["Anna lives in Lisbon"]
    assert lisbon["metadata"]["attribute"] == "home city"
    assert lisbon["created_at"] < lisbon["updated_at"]


@pytest.mark.parametrize(("name", "reader"), [("mcp", "mcp"), ("mem0", "mem0"), ("llamaindex", "llamaindex-facts")])
def test_what_goes_out_is_recognised_and_says_the_same(path, tmp_path, name, reader):
    found, known, _ = found_in(exported(path, name=name), tmp_path)

    assert known == reader
    said = {item.text.removeprefix("anna: ") for item in found}
    assert said == {"Anna lives in Lisbon", "Anna is in CET", "likes oat milk"}


def test_a_fact_block_has_room_for_all_of_its_facts(tmp_path):
    with memory(tmp_path / "m.db") as store:
        for number in range(60):
            add(store, f"fact number {number}")
        document = json.loads(taken_out(store, name="llamaindex"))

    assert len(document["facts"]) == 60
    assert document["max_facts"] == 60


def test_no_text_makes_a_heading_or_an_item_of_its_own_in_markdown(tmp_path):
    with memory(tmp_path / "m.db") as store:
        with store.write(IMPORTER) as write:
            write.remember([Remembered(format="mem0", text=HOSTILE, subject=HOSTILE)], path="x", digest="0" * 64)
        with store.write(ANNA) as write:
            write.accept(next(iter(store.facts(EVERYTHING))))
        text = taken_out(store, name="markdown").decode()

    lines = [line for line in text.splitlines() if line]
    assert len(lines) == 3
    assert lines[1].startswith("## \\# no heading")
    assert lines[2].startswith(
        "- \\# no heading - no item 1. \\[x\\](y) \\<b\\>\\*a\\* \\_b\\_ \\`c\\` \\!\\[d\\](e) \\&"
    )
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain words", "plain words"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("- item", "\\- item"),
        ("+ item", "\\+ item"),
        ("=== rule", "\\=== rule"),
        ("12. item", "12\\. item"),
        ("3) item", "3\\) item"),
        ("3.14 is pi", "3.14 is pi"),
        ("> quote", "\\> quote"),
        ("§", "\\§"),
        ("a\n\n§\n\nb", "a § b"),
        ("back\\slash", "back\\\\slash"),
        ("~~gone~~", "\\~\\~gone\\~\\~"),
        ("| a | b |", "\\| a \\| b \\|"),
    ],
)
def test_markdown_shows_each_text_as_it_stands(said, shown):
    assert escaped(said) == shown


# -------------------------------------------------------------------- secrets


def test_secrets_are_named_by_place_and_kind_and_never_repeated(tmp_path):
    pytest.importorskip("detect_secrets")
    with memory(tmp_path / "m.db") as store:
        key = add(store, "the key is AKIAIOSFODNN7EXAMPLE")
        add(store, "the keyboard is a quite plain passage about password managers")
        take(store, chat("hello", "my password = 'hunter2xyz'"))
        copy = Copy(store)
        with copy.snapshot(), looking() as secrets:
            list(Export(copy, "mcp", states=None, secrets=secrets).chunks())
            foreign = dict(secrets.found)
            list(Export(copy, "mem", states=None, secrets=secrets).chunks())

    assert list(foreign) == [(key.id, "AWS Access Key")]
    assert set(secrets.found) == {(key.id, "AWS Access Key"), ("s3#1", "Secret Keyword")}
    assert "AKIA" not in repr(secrets.found)
    assert "hunter2" not in repr(secrets.found)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("AKIAIOSFODNN7EXAMPLE", "AWS Access Key"),
        ("password = 'hunter2xyz'", "Secret Keyword"),
        ("see https://user:pa55word@example.com/x", "Basic Auth Credentials"),
        ("-----BEGIN RSA PRIVATE KEY-----", "Private Key"),
        ("ok\ntoken ghp_1234567890abcdefghijklmnopqrstuvwxyzAB", "GitHub Token"),
        ("Anna lives in Lisbon with her monkey", None),
        ("be be de be bo bi be quokka garden person thing", None),
    ],
)
def test_passwords_and_keys_are_found_and_plain_words_are_not(text, kind):
    pytest.importorskip("detect_secrets")
    with looking() as secrets:
        secrets.look("f1", text)

    assert secrets.looks
    assert list(secrets.found) == ([] if kind is None else [("f1", kind)])


def test_without_the_library_nothing_is_looked_for():
    secrets = Secrets(None)
    secrets.look("f1", "AKIAIOSFODNN7EXAMPLE")

    assert not secrets.looks
    assert secrets.found == {}


def test_an_export_leaves_nothing_beside_the_file(path):
    before = sorted(path.parent.iterdir())
    exported(path)

    assert sorted(path.parent.iterdir()) == before
    assert path in before


# -------------------------------------------------------------------- of any size


@pytest.mark.parametrize("name", OUT)
def test_a_file_that_is_read_in_many_pages_gives_the_same_bytes(path, name, monkeypatch):
    with memory(path) as store:
        take(store, chat(*(f"word {number}" for number in range(7)), session="long"))
        take(store, chat("short", session="short"))
    whole = exported(path, name=name)
    for part, size in ((copy, "PAGE"), (copy, "READABLE_PAGE"), (mem_writer, "LINES"), (groups, "IN_MEMORY")):
        monkeypatch.setattr(part, size, 1)

    assert exported(path, name=name) == whole
    assert whole


def test_a_source_whose_messages_are_not_taken_is_passed_over(path):
    with memory(path) as store, Copy(store).snapshot():
        named = [source[0] for source, _ in Copy(store).sources()]
        taken = [(source[0], [message[1] for message in said]) for source, said in Copy(store).sources()]

    assert named == [number for number, _ in taken]
    assert taken[0] == (1, [0, 1])
    assert len(taken) > 1


def test_texts_are_written_name_by_name_and_each_once():
    with groups.Groups() as found:
        found.name("first")
        for name, text in (("b", "x"), ("a", "y"), ("b", "\ud800"), ("a", "y"), ("b", "x"), ("", "é"), ("a", "")):
            found.put(name, text)
        listed = [(name, list(texts)) for name, texts in found]
        every = list(found.each())

    assert listed == [("first", []), ("b", ["x", "\ud800"]), ("a", ["y", ""]), ("", ["é"])]
    assert every == ["x", "y", "\ud800", "y", "x", "é", ""]


@pytest.mark.parametrize(
    "sql",
    [
        "update current set state = 'accepted' where state = 'revoked'",
        "update current set row = (select id from versions where retired_at is not null) where fact = 1",
        "update current set row = 900 where fact = 1",
    ],
)
def test_a_view_that_was_tampered_with_is_not_believed_by_an_export(path, sql):
    before = exported(path, name="mcp")
    with behind(path) as conn:
        assert conn.execute(sql).rowcount > 0

    assert before
    with pytest.raises(Damaged, match="view"):
        exported(path, name="mcp")
