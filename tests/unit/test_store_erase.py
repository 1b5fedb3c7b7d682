"""Erasing: the words are gone from every table, index and byte, their siblings stay, and they do not come back."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memcli.errors import Busy, NotAllowed, OutOfScope, Tombstoned
from memcli.facts import Fact, ToolCall, Turn
from memcli.store import Store, open_store
from memcli.store.check import check, residue, verify_log
from memcli.terms import Admission, How, Kind, Match, Op, Role, State
from tests.files import ANNA, API, BOB, SCRIPT, add, behind, chat, cite, city, correct, memory, newest, take, texts

SECRET = "xylophone-7731"
SENTENCE = f"the code of the safe is {SECRET}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def store(path: Path):
    with memory(path, admission=Admission.DIRECT) as opened:
        yield opened


def erase(store: Store, *facts: Fact, reason: str = "asked for") -> None:
    with store.write(ANNA, reason) as write:
        write.erase(write.plan_erase_facts(facts))


def erase_value(store: Store, text: str, reason: str = "asked for") -> None:
    with store.write(ANNA, reason) as write:
        write.erase(write.plan_erase_value(text), texts=(text,))


def erase_source(store: Store, source: str) -> None:
    with store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_source(source))


def in_bytes(folder: Path, text: str) -> bool:
    """Return whether a file of the folder holds the text in any encoding that SQLite or JSON would give it."""
    data = b"".join(item.read_bytes() for item in sorted(folder.iterdir()) if item.is_file()).lower()
    return text.lower().encode() in data


def clean(store: Store, text: str) -> bool:
    return residue(store, text) == [] and not in_bytes(store.path.parent, text)


# -------------------------------------------------------------------- facts


def test_an_erased_fact_leaves_no_word_behind_and_its_sibling_stays(store, path):
    fact, sibling = add(store, SENTENCE, subject="safe", owner=SECRET), add(store, "the key of the safe is a walnut")
    assert residue(store, SECRET) != []
    assert in_bytes(path.parent, SECRET)

    erase(store, fact)

    assert clean(store, SECRET)
    assert texts(store.facts()) == [sibling.text]
    assert residue(store, "walnut") != []
    assert check(store) == []
    with open_store(path) as again:
        assert clean(again, SECRET)


def test_what_is_left_of_an_erased_fact_is_its_place_in_the_log(store):
    fact = add(store, SENTENCE)
    head = store.head()[0]

    erase(store, fact)

    gone = store.get(fact.id)
    assert (gone.text, gone.subject, gone.state, gone.erased_at is not None) == ("", None, State.REJECTED, True)
    assert [item.quote for item in gone.provenance] == [None]
    assert store.message(str(gone.provenance[0].message)).content == ""
    event = newest(store, Op.ERASE, fact.id)
    assert (event.actor, event.reason, event.from_state, event.seq > head) == (ANNA, "asked for", State.ACCEPTED, True)
    assert verify_log(store).findings == ()


def test_every_version_of_an_erased_fact_loses_its_words(store):
    first = city(store, "Berlin")
    second = correct(store, first, "Anna lives in Lisbon")

    erase(store, second)

    assert clean(store, "Berlin")
    assert clean(store, "Lisbon")
    assert [item.text for item in store.history(first.id)] == ["", "", "", ""]


def test_what_was_erased_stays_stopped_by_its_digest_alone(store):
    fact = city(store, "Berlin")
    erase(store, fact)

    for text, told in ((fact.text, {}), ("her home", {"subject": "anna", "attribute": "home city", "value": "BERLIN"})):
        with pytest.raises(Tombstoned):
            add(store, text, actor=API, **told)
    assert city(store, "Lisbon").readable
    assert [(stone.match, stone.pattern) for stone in store.tombstones()] == [(Match.VALUE, None)]


def test_other_facts_of_the_same_value_go_too_and_those_of_another_scope_stay(path):
    with memory(path, scope="b") as store:
        add(store, SENTENCE)
    with memory(path, scope="a") as store:
        first = add(store, SENTENCE)
        with store.write(ANNA, "wrong") as write:
            write.retract(first)
        second = add(store, SENTENCE.upper())
        erase(store, second)
        assert {store.get(item.id).text for item in (first, second)} == {""}
    with memory(path, scope="b") as store:
        assert texts(store.facts()) == [SENTENCE]


def test_a_fact_of_another_scope_is_not_erased(path):
    with memory(path, scope="a") as store:
        theirs = add(store, SENTENCE)
    with memory(path, scope="b") as store:
        with pytest.raises(OutOfScope):
            erase(store, theirs)
        assert store.get(theirs.id, all_scopes=True).text == SENTENCE


def test_what_was_derived_goes_with_its_own_statement_in_every_scope(path):
    with memory(path, scope="a") as store:
        fact = add(store, SENTENCE)
        summary = add(store, f"safe: {SECRET}", kind=Kind.SUMMARY, derived_from=(fact.id,))
    with memory(path, scope="b") as store:
        copy = add(store, f"copied: {SECRET}", derived_from=(fact.id,), how=How.COPIED)
        add(store, "a sibling in b")
    with memory(path, scope="a") as store:
        erase(store, fact)
        assert clean(store, SECRET)
        assert {store.get(item.id, all_scopes=True).text for item in (fact, summary, copy)} == {""}
        assert check(store) == []
    with memory(path, scope="b") as store:
        assert texts(store.facts()) == ["a sibling in b"]


def test_messages_that_repeat_the_words_are_erased_and_their_neighbours_stay(store):
    source = take(store, chat("hello", f"I note: {SENTENCE}", "thanks"))
    fact = add(store, SENTENCE)

    erase(store, fact)

    assert [item.content for item in store.messages(source)] == ["hello", "", "thanks"]
    assert [item.erased_at is None for item in store.messages(source)] == [True, False, True]
    assert clean(store, SECRET)


def test_a_fact_that_stood_on_an_erased_message_survives_without_its_quote(store):
    source = take(store, chat(f"{SENTENCE} and tea is hot"))
    sibling = add(store, "tea is hot", evidence=cite(f"{source}#0", "tea is hot"))
    fact = add(store, SENTENCE, evidence=cite(f"{source}#0", SENTENCE))

    with store.write(ANNA, "asked for") as write:
        plan = write.plan_erase_facts([fact])
        write.erase(plan)

    assert [item.id for item in plan.reviewed] == [sibling.id]
    assert (store.get(sibling.id).text, store.get(sibling.id).provenance[0].quote) == ("tea is hot", None)
    assert clean(store, SECRET)
    assert check(store) == []


def test_an_erased_message_is_no_evidence_any_more(store):
    source = take(store, chat(SENTENCE, "tea is hot"))
    erase(store, add(store, SENTENCE, evidence=cite(f"{source}#0")))

    with pytest.raises(NotAllowed, match="erased"):
        add(store, "the safe has a code", evidence=cite(f"{source}#0"))
    assert add(store, "tea is hot", evidence=cite(f"{source}#1")).readable


# -------------------------------------------------------------------- a source


def test_erasing_a_source_takes_the_facts_that_stood_on_it_alone(store):
    gone, other = take(store, chat(SENTENCE, "tea is hot"), path=f"{SECRET}.json"), take(store, chat("tea is HOT"))
    alone = add(store, SENTENCE, evidence=cite(f"{gone}#0"))
    summary = add(store, "there is a code", kind=Kind.SUMMARY, derived_from=(alone.id,))
    both = add(store, "tea is hot", evidence=(*cite(f"{gone}#1"), *cite(f"{other}#0")))

    erase_source(store, gone)

    assert [store.get(fact.id).text for fact in (alone, summary, both)] == ["", "", "tea is hot"]
    assert [item.content for item in store.messages(gone)] == ["", ""]
    assert [item.content for item in store.messages(other)] == ["tea is HOT"]
    assert (store.source(gone).path, store.source(gone).erased_at is not None) == (None, True)
    assert clean(store, SECRET)
    assert check(store) == []


# -------------------------------------------------------------------- a value


def test_a_value_is_erased_wherever_it_stands(store):
    add(store, SENTENCE)
    add(store, "a code", subject="safe", attribute="code", value=SECRET.upper())
    take(store, chat(f"{SECRET}?", "yes"))
    add(store, "tea is hot")
    milk = add(store, "milk is cold")
    with store.write(BOB, f"because {SECRET} is old") as write:
        write.dispute(milk)

    erase_value(store, SECRET)

    assert clean(store, SECRET)
    assert "tea is hot" in texts(store.facts())
    assert check(store) == []
    with pytest.raises(Tombstoned):
        add(store, SECRET, actor=API)


@pytest.mark.parametrize("text", ["Zürich-Ölberg", "東京駅前", 'say "hush"', "back\\slash"])
def test_words_that_json_would_escape_are_found_and_erased(store, text):
    told = {"subject": "anna", "attribute": "x", "value": text}
    add(store, "one", **told)
    call = ToolCall(id="c1", name="look", arguments=f'{{"q": "{text}"}}')
    take(store, chat("hello", Turn(role=Role.ASSISTANT, content="", tool_calls=(call,), thinking=text)))
    with store.write(SCRIPT, "why not") as write:
        write.propose(Op.CORRECT, None, {"text": text})
    assert len(residue(store, text)) >= 3

    erase_value(store, text)

    assert residue(store, text) == []
    assert store.proposals() == []
    assert check(store) == []


def test_titles_and_names_of_sources_lose_the_words_and_the_source_stays(store):
    source = take(store, chat("hello", session=SECRET), path=f"chats/{SECRET}.json")
    add(store, SENTENCE)

    erase_value(store, SECRET)

    assert (store.source(source).path, store.source(source).session) == (None, None)
    assert [item.content for item in store.messages(source)] == ["hello"]
    assert clean(store, SECRET)
    assert check(store) == []


def test_a_quote_that_is_in_no_message_is_erased_too(store):
    source = take(store, chat("hello"))
    add(store, "there is a code", evidence=cite(f"{source}#0", f"it is {SECRET}"))

    erase_value(store, SECRET)

    assert clean(store, SECRET)


def test_words_that_stand_in_reasons_only_are_erased_and_the_log_says_that(store):
    fact = add(store, "tea is hot")
    with store.write(ANNA, f"{SECRET} says so") as write:
        write.verify(fact)

    erase_value(store, SECRET)

    assert clean(store, SECRET)
    assert newest(store, Op.VERIFY).reason is None
    assert newest(store, Op.ERASE).target is None
    assert texts(store.facts()) == ["tea is hot"]
    assert check(store) == []


def test_a_reason_that_somebody_else_takes_away_is_noticed(store, path):
    fact = add(store, "tea is hot")
    with store.write(ANNA, "she said so") as write:
        write.verify(fact)
    assert check(store) == []

    with behind(path, as_mem=True) as conn:
        conn.execute("update reasons set text = null, erased_at = 5")

    assert "row-differs" in {finding.code for finding in check(store)}


@pytest.mark.parametrize("reason", [SENTENCE, f"{SENTENCE.upper()} was a mistake", f"no more {SECRET}"])
def test_a_reason_that_repeats_the_words_is_refused(store, reason):
    fact = add(store, SENTENCE, subject="safe", attribute="code", value=SECRET)

    with pytest.raises(NotAllowed, match="repeats the words"):
        erase(store, fact, reason=reason)
    assert store.get(fact.id).text == SENTENCE
    erase(store, fact, reason="he asked for it")
    assert clean(store, SECRET)


# -------------------------------------------------------------------- it does not come back


def test_the_same_transcript_again_brings_no_word_back(store):
    transcript = chat("hello", "hi", SENTENCE, "noted")
    source = take(store, transcript)
    erase(store, add(store, SENTENCE, evidence=cite(f"{source}#2")))

    take(store, transcript)
    other = take(store, chat("hello", "good day", SENTENCE, format="claude-code"), path="other.jsonl")

    assert [item.content for item in store.messages(other)] == ["hello", "good day", ""]
    assert clean(store, SECRET)
    assert check(store) == []


def test_a_short_message_that_anybody_may_say_is_not_taken_for_an_erased_one(store):
    spoken = take(store, chat("My PIN is 4711", "Noted.", "ok"))
    with store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_source(spoken))

    elsewhere = take(store, chat("Hm?", "Yes.", "ok", "Go on.", "My PIN is 4711"), path="other.json")

    assert [message.content for message in store.messages(elsewhere)] == ["Hm?", "Yes.", "ok", "Go on.", ""]


def test_a_short_message_between_the_same_neighbours_stays_erased(store):
    spoken = take(store, chat("Is it Lisbon?", "ok", "So be it then."))
    with store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_source(spoken))

    again = take(store, chat("Is it Lisbon?", "ok", "So be it then.", "Anything else?"), path="longer.json")

    assert [message.content for message in store.messages(again)] == ["", "", "", "Anything else?"]


def test_what_one_scope_erased_is_anothers_to_say(path):
    told = chat("My favourite colour is green")
    with memory(path, scope="a") as store:
        mine = take(store, told)
        with store.write(ANNA, "asked for") as write:
            write.erase(write.plan_erase_source(mine))

    with memory(path, scope="b") as other:
        theirs = take(other, told)

        assert [message.content for message in other.messages(theirs)] == ["My favourite colour is green"]


def test_what_was_erased_does_not_come_back_by_undo(store):
    fact = add(store, SENTENCE)
    erase(store, fact)

    for op in (Op.ADD, Op.ERASE):
        with pytest.raises((NotAllowed, Tombstoned)), store.write(ANNA, "back") as write:
            write.undo(newest(store, op, fact.id))
    assert texts(store.facts()) == []
    assert clean(store, SECRET)


def test_a_rebuild_brings_no_word_back_and_counts_as_before(store):
    add(store, "tea is hot")
    erase(store, add(store, SENTENCE))

    with behind(store.path) as conn:
        before = conn.execute("select * from token_counts order by row").fetchall()
    store.rebuild(ANNA)
    with behind(store.path) as conn:
        after = conn.execute("select * from token_counts order by row").fetchall()

    assert before == after != []
    assert clean(store, SECRET)
    assert store.search.holding(["xylophone"], limit=5) == []
    assert len(store.search.holding(["tea", "hot"], limit=5)) == 1


# -------------------------------------------------------------------- a reader in the way


def test_an_erase_that_a_reader_holds_up_says_so_and_a_later_change_finishes_it(store, path, monkeypatch):
    monkeypatch.setenv("MEM_TIMEOUT", "0.1")
    fact = add(store, SENTENCE)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from facts").fetchone()
        with pytest.raises(Busy, match="open elsewhere"):
            erase(store, fact)

        assert store.get(fact.id).text == ""
        assert (store.stats().scrub_pending, in_bytes(path.parent, SECRET)) == (True, True)
        assert "scrub-pending" in {finding.code for finding in check(store)}
        assert add(store, "tea is hot").readable
        assert store.stats().scrub_pending
        with pytest.raises(Busy):
            store.rebuild(ANNA)
        reader.execute("commit")

    add(store, "milk is cold")

    assert not store.stats().scrub_pending
    assert clean(store, SECRET)
    assert texts(store.facts()) == ["milk is cold", "tea is hot"]
    assert check(store) == []
