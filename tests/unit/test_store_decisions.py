"""How facts are decided: by whom, on which version, and how a decision is taken back."""

from pathlib import Path

import pytest

from memcli.errors import Conflict, Echo, NoReason, NotAllowed, NotFound, NotPermitted, Stale, Tombstoned
from memcli.facts import Actor, PolicyRule, Turn, Validity
from memcli.store import Store
from memcli.store.check import check
from memcli.terms import ActorKind, Admission, Channel, Kind, Op, Role, State
from tests.files import (
    ANNA,
    API,
    BOB,
    EXTRACTOR,
    IMPORTER,
    ORACLE,
    SCRIPT,
    START,
    YEAR,
    add,
    chat,
    cite,
    city,
    correct,
    memory,
    newest,
    reject,
    retract,
    take,
    texts,
)

DECIDER = Actor(name="ci", kind=ActorKind.SCRIPT, channel=Channel.DECISIONS)
SERVER = Actor(name="server", kind=ActorKind.SERVER, channel=Channel.SERVER)


@pytest.fixture
def store(tmp_path: Path):
    with memory(tmp_path / "m.db") as opened:
        yield opened


@pytest.fixture
def direct(tmp_path: Path):
    with memory(tmp_path / "direct.db", admission=Admission.DIRECT) as opened:
        yield opened


def undo(store: Store, op: Op, *, actor: Actor = ANNA, fact: str | None = None):
    with store.write(actor, "a mistake") as write:
        return write.undo(newest(store, op, fact))


# -------------------------------------------------------------------- who may


@pytest.mark.parametrize("act", ["retract", "dispute", "accept", "keep_both", "verify"])
def test_who_may_not_decide_changes_nothing_and_is_told_to_propose(store, act):
    fact = city(store, "Berlin") if act in {"retract", "dispute", "verify"} else city(store, "Berlin", actor=API)

    with pytest.raises(NotPermitted), store.write(SCRIPT, "because") as write:
        getattr(write, act)(fact)
    assert store.get(fact.id) == fact
    assert newest(store, Op.REFUSE).target == fact.id
    with store.write(ANNA, "because") as write:
        assert getattr(write, act)(fact).revision == 2


def test_a_script_may_neither_correct_nor_merge_nor_undo_nor_reject_nor_lift_nor_erase(store):
    fact, other = city(store, "Berlin"), add(store, "tea is hot")
    stone = reject(store, add(store, "milk is hot"))
    state = [store.get(item.id) for item in (fact, other)]

    def tries():
        yield lambda write: write.correct(fact, "Anna lives in Lisbon")
        yield lambda write: write.merge(other, fact)
        yield lambda write: write.undo(newest(store, Op.ADD))
        yield lambda write: write.tombstone(write.plan_facts([fact]))
        yield lambda write: write.lift(stone.id)
        yield lambda write: write.erase(write.plan_erase_facts([fact]))

    for attempt in tries():
        with pytest.raises(NotPermitted), store.write(SCRIPT, "because") as write:
            attempt(write)
    assert [store.get(item.id) for item in (fact, other)] == state
    assert [stone.id for stone in store.tombstones()] == [stone.id]


def test_under_direct_admission_every_channel_acts_at_once_and_the_log_says_which(direct):
    fact = add(direct, "tea is hot", actor=SCRIPT)

    with direct.write(API, "wrong") as write:
        assert write.correct(fact, "tea is warm").state is State.ACCEPTED
    assert newest(direct, Op.CORRECT).actor == API


def test_only_a_person_makes_a_fact_verified(direct):
    fact = city(direct, "Berlin", actor=SCRIPT)

    for actor in (SCRIPT, API, IMPORTER, EXTRACTOR, SERVER, DECIDER):
        with pytest.raises(NotPermitted), direct.write(actor, "sure") as write:
            write.verify(fact)
    with direct.write(ANNA) as write:
        assert write.verify(fact).state is State.VERIFIED


def test_an_oracle_verifies_where_the_policy_names_it(store):
    fact = city(store, "Berlin")

    with pytest.raises(NotPermitted), store.write(ORACLE) as write:
        write.verify(fact, oracle="registry")
    with store.write(ANNA, "trusted") as write:
        write.set_policy(PolicyRule(kind="oracle", name="registry", value="look-up"))
    with pytest.raises(NotPermitted), store.write(ORACLE) as write:
        write.verify(fact, oracle="another")
    with pytest.raises(NotPermitted), store.write(SCRIPT) as write:
        write.verify(fact, oracle="registry")
    with store.write(ORACLE) as write:
        assert write.verify(fact, oracle="registry").state is State.VERIFIED


def test_verifying_what_waits_accepts_it_first(store):
    fact = city(store, "Berlin", actor=SCRIPT)

    with store.write(ANNA) as write:
        write.verify(fact)

    assert [(item.revision, item.state) for item in store.history(fact.id)] == [
        (1, State.TENTATIVE),
        (2, State.ACCEPTED),
        (3, State.VERIFIED),
    ]


def test_who_offered_a_fact_cannot_accept_it_through_a_decisions_file(store):
    offerer = Actor(name="ci", kind=ActorKind.SCRIPT, channel=Channel.PIPE)
    mine, theirs = add(store, "tea is hot", actor=offerer), add(store, "milk is cold", actor=SCRIPT)

    with pytest.raises(NotPermitted, match="cannot accept"), store.write(DECIDER) as write:
        write.accept(mine)
    with store.write(BOB, "hm") as write:
        disputed = write.dispute(mine)
    with pytest.raises(NotPermitted, match="cannot accept"), store.write(DECIDER) as write:
        write.accept(disputed)
    with store.write(DECIDER) as write:
        assert write.accept(theirs).state is State.ACCEPTED


@pytest.mark.parametrize("act", ["correct", "retract", "undo", "tombstone", "lift", "erase"])
@pytest.mark.parametrize("reason", [None, "", " \t "])
def test_a_change_that_must_be_explained_is_refused_without_a_reason(store, act, reason):
    fact = city(store, "Berlin")
    stone = reject(store, add(store, "milk is hot"))
    events = len(store.events())

    with pytest.raises(NoReason), store.write(ANNA, reason) as write:
        {
            "correct": lambda: write.correct(fact, "Anna lives in Lisbon"),
            "retract": lambda: write.retract(fact),
            "undo": lambda: write.undo(newest(store, Op.ADD)),
            "tombstone": lambda: write.tombstone(write.plan_facts([fact])),
            "lift": lambda: write.lift(stone.id),
            "erase": lambda: write.erase(write.plan_erase_facts([fact])),
        }[act]()
    assert store.get(fact.id) == fact
    assert len(store.events()) == events


# -------------------------------------------------------------------- echo


def test_a_withdrawn_value_does_not_come_back_on_the_same_evidence_under_another_name(store):
    first = take(store, chat("I live in Berlin"), path="a.json")
    retract(store, city(store, "Berlin", evidence=cite(f"{first}#0")))
    second = take(store, chat("hello", "hi", "I  live in\nBerlin", session="other"), path="b.jsonl")

    with pytest.raises(Echo):
        city(store, "Berlin", evidence=cite(f"{second}#2"))
    assert texts(store.facts()) == []
    assert newest(store, Op.REFUSE).actor == ANNA


def test_a_withdrawn_value_comes_back_as_a_new_fact_on_new_evidence(store):
    first = take(store, chat("I live in Berlin"))
    gone = retract(store, city(store, "Berlin", evidence=cite(f"{first}#0")))
    second = take(store, chat("we are back in Berlin"), path="b.json")

    fact = city(store, "Berlin", evidence=cite(f"{second}#0"))

    assert fact.id != gone.id
    assert texts(store.facts()) == ["Anna lives in Berlin"]


@pytest.mark.parametrize(
    ("then", "now", "echo"),
    [(None, None, True), (START, None, True), (None, START, True), (START, START, True), (START, START + 1, False)],
)
def test_the_same_words_at_another_known_time_are_new_evidence(store, then, now, echo):
    said = [Turn(role=Role.USER, content="I live in Berlin", at=at) for at in (then, now)]
    first = take(store, chat("old chat", "ok", said[0]))
    retract(store, city(store, "Berlin", evidence=cite(f"{first}#2")))
    second = take(store, chat("new chat", "ok", said[1]))

    if echo:
        with pytest.raises(Echo):
            city(store, "Berlin", evidence=cite(f"{second}#2"))
    else:
        assert city(store, "Berlin", evidence=cite(f"{second}#2")).state is State.ACCEPTED
    assert len(store.sources()) == 2


def test_a_superseded_value_does_not_echo_either(store):
    source = take(store, chat("I live in Berlin"))
    old = city(store, "Berlin", evidence=cite(f"{source}#0"))
    correct(store, old, "Anna lives in Lisbon")

    with pytest.raises(Echo):
        city(store, "Berlin", evidence=cite(f"{source}#0"))
    assert texts(store.facts()) == ["Anna lives in Lisbon"]


# -------------------------------------------------------------------- dispute, merge, keep both


def test_a_disputed_fact_reaches_no_prompt_until_a_person_accepts_it(store):
    fact = city(store, "Berlin")

    with store.write(ANNA) as write:
        held = write.dispute(fact)
    before = texts(store.facts())
    with store.write(ANNA) as write:
        write.accept(held)

    assert (held.state, before) == (State.DISPUTED, [])
    assert texts(store.facts()) == ["Anna lives in Berlin"]


def test_accepting_what_was_held_supersedes_its_rival(store):
    old = city(store, "Berlin")
    held = city(store, "Lisbon", actor=BOB)

    with store.write(ANNA) as write:
        write.accept(held)

    assert texts(store.facts()) == ["Anna lives in Lisbon"]
    assert store.get(old.id).superseded_by == held.id


def test_keeping_both_holds_both(store):
    old = city(store, "Berlin")
    held = city(store, "Lisbon", actor=BOB)

    with store.write(ANNA) as write:
        write.keep_both(held)

    assert {store.get(fact.id).state for fact in (old, held)} == {State.DISPUTED}
    assert texts(store.facts()) == []
    assert check(store) == []


def test_keeping_what_has_no_rival_accepts_it(store):
    lone = add(store, "tea is hot", actor=SCRIPT)

    with store.write(ANNA) as write:
        assert write.keep_both(lone).state is State.ACCEPTED


def test_a_merge_gives_the_evidence_to_the_other_and_ends_the_one(store):
    first, second = add(store, "tea is hot"), add(store, "hot is the tea", actor=SCRIPT)

    with store.write(ANNA) as write:
        kept = write.merge(second, first)

    assert [item.quote for item in kept.provenance] == ["tea is hot", "hot is the tea"]
    assert store.get(second.id).state is State.REVOKED
    assert texts(store.facts()) == ["tea is hot"]
    assert check(store) == []


def test_a_fact_is_not_merged_into_itself_nor_into_what_ended(store):
    fact, gone = add(store, "tea is hot"), retract(store, add(store, "tea is wet"))

    for into in (fact, gone):
        with pytest.raises(NotAllowed), store.write(ANNA) as write:
            write.merge(fact, into)
    assert texts(store.facts()) == ["tea is hot"]


def test_a_view_that_loses_its_ground_is_held_to_be_rebuilt(store):
    parent = city(store, "Berlin")
    summary = add(store, "Anna: Berlin", kind=Kind.SUMMARY, derived_from=(parent.id,))
    belief = add(store, "Anna is in CET", derived_from=(summary.id,))

    retract(store, parent)

    assert store.get(summary.id).state is State.DISPUTED
    assert store.get(belief.id).state is State.REVOKED
    with pytest.raises(NotAllowed, match="derived from"), store.write(ANNA) as write:
        write.accept(store.get(summary.id))
    with pytest.raises(NotAllowed, match="derived from"):
        undo(store, Op.CASCADE, fact=belief.id)
    with pytest.raises(NotAllowed, match="derived from"):
        correct(store, store.get(belief.id), "Anna is in WET")
    assert check(store) == []


@pytest.mark.parametrize("state", [State.SUPERSEDED, State.REVOKED, State.REJECTED])
def test_what_ended_never_moves_again(store, state):
    fact = city(store, "Berlin")
    if state is State.SUPERSEDED:
        held = city(store, "Lisbon", actor=BOB)
        with store.write(ANNA) as write:
            write.accept(held)
    elif state is State.REVOKED:
        retract(store, fact)
    else:
        reject(store, fact)
    ended = store.get(fact.id)

    assert ended.state is state
    for act in ("retract", "dispute", "verify"):
        with pytest.raises(NotAllowed), store.write(ANNA, "again") as write:
            getattr(write, act)(ended)
    assert store.get(fact.id) == ended


# -------------------------------------------------------------------- stale


@pytest.mark.parametrize("act", ["correct", "retract", "dispute", "verify", "accept", "merge", "tombstone"])
def test_a_decision_about_an_old_version_is_refused(store, act):
    seen = city(store, "Berlin", actor=SCRIPT) if act == "accept" else city(store, "Berlin")
    other = add(store, "tea is hot")
    correct(store, seen, "Anna lives in Lisbon", actor=BOB)
    now = store.get(seen.id)

    with pytest.raises(Stale), store.write(ANNA, "late") as write:
        {
            "correct": lambda: write.correct(seen, "Anna lives in Porto"),
            "retract": lambda: write.retract(seen),
            "dispute": lambda: write.dispute(seen),
            "verify": lambda: write.verify(seen),
            "accept": lambda: write.accept(seen),
            "merge": lambda: write.merge(other, seen),
            "tombstone": lambda: write.tombstone(write.plan_facts([seen])),
        }[act]()
    assert store.get(seen.id) == now
    assert store.tombstones() == []


def test_a_change_of_state_makes_a_decision_stale_too(store):
    seen = city(store, "Berlin")
    with store.write(BOB) as write:
        write.verify(seen)

    with pytest.raises(Stale):
        correct(store, seen, "Anna lives in Lisbon")
    assert correct(store, store.get(seen.id), "Anna lives in Lisbon").version == 2


def test_a_tombstone_is_named_before_a_stale_version(store):
    seen = city(store, "Berlin")
    stone = reject(store, add(store, "Anna lives in Porto"))
    correct(store, seen, "Anna lives in Lisbon")

    with pytest.raises(Tombstoned):
        correct(store, seen, "Anna lives in Porto")
    assert store.tombstone(stone.id).hits == 1


# -------------------------------------------------------------------- undo


def test_undoing_an_add_withdraws_it_and_undoing_that_brings_it_back(store):
    fact = city(store, "Berlin")

    gone = undo(store, Op.ADD)
    back = undo(store, Op.UNDO)
    gone_again = undo(store, Op.UNDO)

    assert [item.state for item in (gone, back, gone_again)] == [State.REVOKED, State.ACCEPTED, State.REVOKED]
    assert (back.id, back.text, back.value, back.version) == (fact.id, fact.text, fact.value, 2)
    assert len(back.provenance) == 1


def test_undoing_a_correction_restores_value_and_validity_as_a_new_version(store):
    old = city(store, "Berlin", validity=Validity(start=START - 2 * YEAR))
    correct(store, old, "Anna lives in Lisbon", validity=Validity(start=START - YEAR))

    back = undo(store, Op.CORRECT)
    forth = undo(store, Op.UNDO)

    assert (back.version, back.value, back.valid, back.state) == (3, "Berlin", old.valid, State.ACCEPTED)
    assert (forth.version, forth.value, forth.valid) == (4, "Lisbon", Validity(start=START - YEAR))
    assert [event.op for event in store.events()][-2:] == [Op.SUPERSEDE, Op.UNDO]
    assert check(store) == []


@pytest.mark.parametrize(
    ("act", "op", "state"),
    [
        ("retract", Op.RETRACT, State.REVOKED),
        ("verify", Op.VERIFY, State.VERIFIED),
        ("dispute", Op.DISPUTE, State.DISPUTED),
    ],
)
def test_undoing_a_change_of_state_restores_the_state(store, act, op, state):
    fact = city(store, "Berlin")
    with store.write(ANNA, "because") as write:
        assert getattr(write, act)(fact).state is state

    assert undo(store, op).state is State.ACCEPTED
    assert undo(store, Op.UNDO).state is state
    assert check(store) == []


def test_undoing_an_accept_makes_it_wait_again(store):
    fact = city(store, "Berlin", actor=SCRIPT)
    with store.write(ANNA) as write:
        write.accept(fact)

    assert undo(store, Op.ACCEPT).state is State.TENTATIVE
    assert texts(store.facts()) == []


def test_undoing_a_merge_brings_the_merged_fact_back(store):
    first, second = add(store, "tea is hot"), add(store, "hot is the tea")
    with store.write(ANNA) as write:
        write.merge(second, first)

    assert undo(store, Op.MERGE).text == "hot is the tea"
    assert texts(store.facts()) == ["hot is the tea", "tea is hot"]


def test_undoing_what_fell_needs_its_ground_first(store):
    parent = city(store, "Berlin")
    child = add(store, "Anna is in CET", derived_from=(parent.id,))
    retract(store, parent)

    with pytest.raises(NotAllowed, match="derived from"):
        undo(store, Op.CASCADE)
    undo(store, Op.RETRACT)
    assert undo(store, Op.CASCADE).id == child.id
    assert texts(store.facts()) == ["Anna is in CET", "Anna lives in Berlin"]


def test_undoing_a_supersession_waits_until_the_slot_is_free(store):
    old = city(store, "Berlin")
    held = city(store, "Lisbon", actor=BOB)
    with store.write(ANNA) as write:
        write.accept(held)

    with pytest.raises(Conflict):
        undo(store, Op.SUPERSEDE)
    undo(store, Op.ACCEPT)
    assert undo(store, Op.SUPERSEDE, fact=old.id).value == "Berlin"
    assert check(store) == []


def test_an_undo_never_lifts_a_tombstone(store):
    fact = city(store, "Berlin")
    stone = reject(store, fact)

    for op in (Op.TOMBSTONE, Op.REJECT):
        with pytest.raises(NotAllowed, match="cannot be undone"):
            undo(store, op)
    assert (store.get(fact.id).state, store.tombstones()) == (State.REJECTED, [stone])


def test_an_undo_does_not_bring_back_a_value_that_was_rejected_since(store):
    old = city(store, "Berlin")
    correct(store, old, "Anna lives in Lisbon")
    with store.write(ANNA, "never") as write:
        write.tombstone(write.plan_value("Berlin"))

    with pytest.raises(Tombstoned):
        undo(store, Op.CORRECT)
    assert texts(store.facts()) == ["Anna lives in Lisbon"]


def test_an_event_that_something_came_after_is_not_undone(store):
    fact = city(store, "Berlin")
    added = newest(store, Op.ADD)
    correct(store, fact, "Anna lives in Lisbon")

    with pytest.raises(NotAllowed, match="changed after"), store.write(ANNA, "back") as write:
        write.undo(added)
    assert store.get(fact.id).value == "Lisbon"


def test_a_script_that_undoes_a_retraction_does_not_make_the_fact_verified_again(direct):
    fact = city(direct, "Berlin")
    with direct.write(ANNA) as write:
        write.verify(fact)
    retract(direct, fact)

    assert undo(direct, Op.RETRACT, actor=SCRIPT).state is State.ACCEPTED


# -------------------------------------------------------------------- proposals


def propose(store: Store, fact, op: Op = Op.RETRACT, **arguments):
    with store.write(SCRIPT, "out of date") as write:
        return write.propose(op, fact, arguments)


def test_a_proposal_waits_while_the_fact_keeps_its_version(store):
    fact = city(store, "Berlin")

    proposal = propose(store, fact, Op.CORRECT, text="Anna lives in Lisbon")

    assert store.proposals() == [proposal]
    assert (proposal.fact, proposal.version, proposal.arguments) == (fact.id, 1, {"text": "Anna lives in Lisbon"})
    assert store.get(fact.id) == fact
    assert store.waiting() == 1


def test_a_proposal_is_settled_once(store):
    proposal = propose(store, city(store, "Berlin"))

    with store.write(ANNA) as write:
        write.settle(proposal, accepted=False)

    assert store.proposals() == []
    with pytest.raises(NotAllowed, match="settled already"), store.write(ANNA) as write:
        write.settle(proposal, accepted=True)
    assert check(store) == []


def test_who_proposed_cannot_accept_through_a_pipe_and_may_withdraw(store):
    proposal = propose(store, city(store, "Berlin"))
    same_name = Actor(name=SCRIPT.name, kind=ActorKind.SCRIPT, channel=Channel.DECISIONS)

    with pytest.raises(NotPermitted, match="cannot accept"), store.write(same_name) as write:
        write.settle(proposal, accepted=True)
    assert store.proposals() == [proposal]
    with store.write(same_name) as write:
        write.settle(proposal, accepted=False)
    assert store.proposals() == []


def test_a_proposal_about_an_older_version_is_stale(store):
    fact = city(store, "Berlin")
    proposal = propose(store, fact)
    correct(store, fact, "Anna lives in Lisbon")

    with pytest.raises(Stale), store.write(ANNA) as write:
        write.settle(proposal, accepted=True)
    with store.write(ANNA) as write:
        write.settle(proposal, accepted=False)
    assert store.proposals() == []


def test_a_proposal_of_another_scope_is_not_settled_here(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        proposal = propose(store, city(store, "Berlin"))
    with memory(path, scope="b") as store, pytest.raises(NotFound), store.write(ANNA) as write:
        write.settle(proposal, accepted=True)
    with memory(path, scope="a") as store:
        assert store.proposals() == [proposal]
