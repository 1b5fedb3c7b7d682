"""What waits for a person, what may be said of it, and that a decision is about what was seen."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcli import wire
from memcli.changes import Change, correction
from memcli.errors import NoReason, NotAllowed, NotPermitted, Stale, Tombstoned
from memcli.facts import EventQuery
from memcli.review import OPEN_TO, Answer, Decided, Turn, go_through, mergeable
from memcli.store.check import check
from memcli.store.queue import Queue
from memcli.terms import Decision, Op, State, Waiting
from tests.files import ANNA, EXTRACTOR, SCRIPT, Clock, add, chat, cite, city, correct, memory, reject, retract, take
from tests.queues import CLERK, bereft, contested, decide, erase_source, first, offer, pair, propose, session, waiting

HOUR = 3600 * 1_000_000


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with memory(tmp_path / "memory.db", now=clock) as opened:
        yield opened


class Script:
    """A reviewer that says what it was told to say, then quits, and remembers what it saw and heard."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.seen = []
        self.heard = []

    def answer(self, item, *, position, total):
        self.seen.append((position, total, item))
        told = self.answers.pop(0) if self.answers else Turn.QUIT
        if callable(told):
            told = told()
        return told if isinstance(told, Answer) else Answer(say=told)

    def hear(self, told, *, undone=False):
        self.heard.append((type(told).__name__, undone))


# ---------------------------------------------------------------- what waits


def test_what_waits_is_listed_oldest_first_with_the_reason_why(store):
    contested(store)
    offer(store, "Anna skis")
    pair(store)
    bereft(store)
    propose(store, Change(op=Op.TOMBSTONE, arguments={"text": "vegan"}))

    assert waiting(store) == [
        (Waiting.DISPUTED, "Anna lives in Lisbon"),
        (Waiting.TENTATIVE, "Anna skis"),
        (Waiting.NEAR_DUPLICATE, "prefers short answers without any emoji"),
        (Waiting.EVIDENCE_ERASED, "Anna drinks tea"),
        (Waiting.PROPOSAL, "p1"),
    ]


def test_what_is_believed_and_plain_does_not_wait(store):
    add(store, "Anna lives in Porto")
    add(store, "the budget is 2,400 EUR")
    offer(store, "Anna skis")

    assert waiting(store) == [(Waiting.TENTATIVE, "Anna skis")]


def test_an_item_shows_its_quoted_message_between_its_neighbours(store):
    source = take(store, chat("hello", "Breakfast?", "I prefer oat milk", "Noted"))
    offer(store, "Anna prefers oat milk", evidence=cite(f"{source}#2", "I prefer oat milk"), rule="I prefer")

    item = first(session(store))
    assert item.detail == "extracted from chat.json #2 by rule “I prefer”"
    assert [(shown.before.content, shown.message.content, shown.after.content) for shown in item.evidence] == [
        ("Breakfast?", "I prefer oat milk", "Noted")
    ]


def test_an_item_shows_what_it_conflicts_with_and_says_why_it_is_held(store):
    held, _ = contested(store)

    item = first(session(store))
    assert item.detail == "a rival of the same authority holds the slot"
    assert [fact.id for fact in item.conflicts] == [held.id]


def test_an_item_shows_at_most_three_facts_that_it_resembles_and_none_that_it_does_not(store):
    for place in ("office", "kitchen", "garden", "cellar"):
        add(store, f"keeps oat milk in the {place}")
    add(store, "plays the violin")
    offer(store, "keeps oat milk in the garage")

    item = next(item for item in Queue(store) if item.why is Waiting.TENTATIVE)
    assert len(item.similar) == 3
    assert all(other.text.startswith("keeps oat milk") and other.score >= 80 for other in item.similar)


def test_an_item_shows_a_tombstone_that_is_near_while_its_words_are_known(store):
    gone = add(store, "Anna is a strict vegan")
    stone = reject(store, gone)
    offer(store, "Anna is a strict vegan now")

    review = session(store)

    assert [(other.id, other.state) for other in first(review).similar] == [(stone.id, State.REJECTED)]
    with store.write(ANNA, "asked to") as write:
        write.erase(write.plan_erase_facts((store.get(gone.id),)))
    assert first(review).similar == first(session(store)).similar == ()


def test_facts_of_two_subjects_or_with_other_numbers_are_no_duplicates(store):
    add(store, "likes the long red wooden table", subject="anna")
    add(store, "likes the long red wooden tables", subject="tom")
    add(store, "paid 2400 euros for the long journey")
    add(store, "paid 2500 euros for the long journey")
    assert waiting(store) == []
    pair(store)

    assert [why for why, _ in waiting(store)] == [Waiting.NEAR_DUPLICATE]


def test_an_item_of_another_scope_is_not_seen(tmp_path):
    with memory(tmp_path / "memory.db", scope="user/anna") as store:
        offer(store, "Anna skis")
        assert len(Queue(store)) == 1
    with memory(tmp_path / "memory.db", scope="user/tom") as store:
        assert len(Queue(store)) == 0


def test_the_queue_is_narrowed_by_state_source_and_number(store):
    source = take(store, chat("I ski"))
    offer(store, "Anna skis", evidence=cite(f"{source}#0", "I ski"))
    offer(store, "Anna sails")
    pair(store)

    assert len(waiting(store)) == 3
    assert waiting(store, source=source) == [(Waiting.TENTATIVE, "Anna skis")]
    assert [why for why, _ in waiting(store, states=frozenset({State.ACCEPTED}))] == [Waiting.NEAR_DUPLICATE]
    assert [text for _, text in waiting(store, states=frozenset({State.TENTATIVE}), limit=1)] == ["Anna skis"]


def test_the_queue_is_narrowed_by_how_long_something_waits(store, clock):
    offer(store, "Anna skis")
    clock.time += 2 * HOUR
    moment = clock.time - HOUR
    offer(store, "Anna sails")

    assert waiting(store, older_than=moment) == [(Waiting.TENTATIVE, "Anna skis")]
    assert waiting(store, newer_than=moment) == [(Waiting.TENTATIVE, "Anna sails")]


def test_a_digest_stays_while_nothing_changes_and_moves_with_the_fact(store):
    offered = offer(store, "Anna skis")
    before = first(session(store)).digest

    assert first(session(store)).digest == before
    with store.write(ANNA) as write:
        write.dispute(offered)
    assert first(session(store)).digest != before


# ---------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("decision", "state", "told"),
    [
        (Decision.ACCEPT, State.ACCEPTED, {}),
        (Decision.VERIFY, State.VERIFIED, {}),
        (Decision.EDIT, State.ACCEPTED, {"text": "Anna skis in March"}),
        (Decision.REJECT, State.REJECTED, {}),
        (Decision.RETRACT, State.REVOKED, {}),
        (Decision.KEEP_BOTH, State.ACCEPTED, {}),
        (Decision.DISPUTE, State.DISPUTED, {}),
    ],
)
def test_a_decision_moves_a_tentative_fact(store, decision, state, told):
    offered = offer(store, "Anna skis")

    assert decide(store, decision, **told).fact.state is state
    assert store.get(offered.id).state is state
    assert store.get(offered.id).text == told.get("text", "Anna skis")
    assert check(store) == []


def test_a_skipped_item_still_waits(store):
    offer(store, "Anna skis")

    assert decide(store, Decision.SKIP).operation is None
    assert waiting(store) == [(Waiting.TENTATIVE, "Anna skis")]


def test_a_rejected_value_does_not_come_back(store):
    offer(store, "Anna skis")
    stone = decide(store, Decision.REJECT).tombstone

    assert stone.reason == "reviewed"
    with pytest.raises(Tombstoned):
        offer(store, "anna SKIS")


@pytest.mark.parametrize("decision", [Decision.EDIT, Decision.REJECT, Decision.RETRACT])
def test_what_must_be_explained_is_refused_without_a_reason(store, decision):
    offered = offer(store, "Anna skis")

    with pytest.raises(NoReason):
        decide(store, decision, reason=None, text="Anna sails")
    assert store.get(offered.id).state is State.TENTATIVE


def test_a_reason_of_its_own_stands_before_the_one_of_the_session(store):
    offered = offer(store, "Anna skis")
    review = session(store, reason="usual")
    review.decide(first(review), Decision.RETRACT, reason="she never did")

    assert store.events(EventQuery(fact=offered.id, op=Op.RETRACT))[0].reason == "she never did"


def test_accepting_one_side_of_a_conflict_supersedes_the_other(store):
    held, offered = contested(store)
    decide(store, Decision.ACCEPT)

    assert (store.get(offered.id).state, store.get(held.id).state) == (State.ACCEPTED, State.SUPERSEDED)


def test_keeping_both_sides_of_a_conflict_holds_both(store):
    held, offered = contested(store)
    decide(store, Decision.KEEP_BOTH)

    assert {store.get(fact.id).state for fact in (held, offered)} == {State.DISPUTED}
    decide(store, Decision.KEEP_BOTH)
    assert {store.get(fact.id).state for fact in (held, offered)} == {State.DISPUTED}


def test_merging_gives_the_evidence_to_the_other_fact_and_ends_the_item(store):
    source = take(store, chat("short, please, and no emoji"))
    kept = add(store, "prefers short answers without emoji")
    offered = offer(store, "prefers short answers without any emoji", evidence=cite(f"{source}#0", "no emoji"))
    decide(store, Decision.MERGE, into=kept.id)

    assert store.get(offered.id).state is State.REVOKED
    assert [item.message for item in store.get(kept.id).provenance][-1] == f"{source}#0"
    assert waiting(store) == []


def test_a_merge_into_what_was_not_shown_is_refused(store):
    kept, other = add(store, "prefers short answers without emoji"), add(store, "plays the violin")
    offer(store, "prefers short answers without any emoji")

    with pytest.raises(NotAllowed, match="neither resembles"):
        decide(store, Decision.MERGE, into=other.id)
    assert mergeable(first(session(store))) == (kept.id,)


def test_a_merge_into_what_changed_since_it_was_shown_is_refused(store):
    kept = add(store, "prefers short answers without emoji")
    offer(store, "prefers short answers without any emoji")
    review = session(store)
    item = first(review)
    correct(store, kept, "prefers long answers without emoji")

    with pytest.raises(Stale):
        review.decide(item, Decision.MERGE, into=kept.id)
    assert store.get(kept.id).text == "prefers long answers without emoji"


def test_near_duplicates_that_were_kept_do_not_come_back(store):
    pair(store)
    assert [why for why, _ in waiting(store)] == [Waiting.NEAR_DUPLICATE]
    decide(store, Decision.KEEP_BOTH)

    assert waiting(store) == []
    offer(store, "Anna skis")
    assert waiting(store) == [(Waiting.TENTATIVE, "Anna skis")]


def test_near_duplicates_come_back_when_one_of_them_says_something_else(store):
    older, _ = pair(store)
    decide(store, Decision.KEEP_BOTH)
    correct(store, older, "prefers short answers without some emoji")

    assert [why for why, _ in waiting(store)] == [Waiting.NEAR_DUPLICATE]


def test_keeping_a_pair_says_nothing_of_a_third(store):
    pair(store)
    decide(store, Decision.KEEP_BOTH)
    third = add(store, "prefers very short answers without any emoji")

    item = first(session(store))
    assert item.fact.id == third.id
    assert len(Queue(store)) == 1


@pytest.mark.parametrize("decision", [Decision.ACCEPT, Decision.VERIFY])
def test_a_fact_whose_evidence_was_erased_waits_until_a_person_confirms_it(store, decision):
    fact = bereft(store)
    assert first(session(store)).detail == "1 of 2 pieces of its evidence erased"
    decide(store, decision)

    assert store.get(fact.id).readable
    assert waiting(store) == []
    assert check(store) == []


def test_a_fact_waits_again_when_more_of_its_evidence_is_erased(store):
    sources = [take(store, chat(text, session=text)) for text in ("tea", "more tea", "only tea")]
    evidence = tuple(piece for source in sources for piece in cite(f"{source}#0"))
    add(store, "Anna drinks tea", evidence=evidence)
    erase_source(store, sources[0])
    decide(store, Decision.ACCEPT)
    assert waiting(store) == []
    erase_source(store, sources[1])

    assert [why for why, _ in waiting(store)] == [Waiting.EVIDENCE_ERASED]


def test_what_says_nothing_of_an_item_is_refused_and_the_rest_is_named(store):
    pair(store)

    with pytest.raises(NotAllowed) as problem:
        decide(store, Decision.ACCEPT)
    assert "keep-both" in str(problem.value.hint)
    assert Decision.ACCEPT not in OPEN_TO[Waiting.NEAR_DUPLICATE]


# ---------------------------------------------------------------- proposals


def test_an_accepted_proposal_makes_its_change(store):
    fact = add(store, "Anna skis")
    propose(store, Change(op=Op.CORRECT, facts=(fact,), arguments=correction("Anna sails")))
    decide(store, Decision.ACCEPT, reason=None)

    assert store.get(fact.id).text == "Anna sails"
    assert store.proposals() == []


def test_a_refused_proposal_changes_nothing(store):
    fact = add(store, "Anna skis")
    propose(store, Change(op=Op.RETRACT, facts=(fact,)))
    decide(store, Decision.REJECT, reason=None)

    assert store.get(fact.id).state is State.ACCEPTED
    assert waiting(store) == []


def test_a_proposal_shows_the_fact_it_speaks_of(store):
    fact = add(store, "Anna skis")
    stone = reject(store, fact)
    propose(store, Change(op=Op.LIFT, arguments={"tombstone": stone.id}))
    propose(store, Change(op=Op.TOMBSTONE, arguments={"text": "vegan"}))

    lift, stop = Queue(store)
    assert lift.fact.id == fact.id
    assert stop.fact is None
    assert wire.queue_item(stop)["fact"] is None


def test_a_proposal_to_reject_says_what_it_would_hit(store):
    fact = add(store, "vegan")
    propose(store, Change(op=Op.TOMBSTONE, arguments={"text": "vegan"}))
    review = session(store)

    assert [hit.id for hit in review.plan(first(review)).hits] == [fact.id]
    assert store.get(fact.id).state is State.ACCEPTED


def test_who_proposed_a_change_cannot_accept_it_through_a_pipe(store):
    fact = add(store, "Anna skis")
    propose(store, Change(op=Op.RETRACT, facts=(fact,)))

    with pytest.raises(NotPermitted):
        decide(store, Decision.ACCEPT, actor=replace(CLERK, name=SCRIPT.name))
    assert decide(store, Decision.ACCEPT, actor=CLERK).fact.state is State.REVOKED


@pytest.mark.parametrize(
    ("decision", "told"),
    [(Decision.ACCEPT, {}), (Decision.EDIT, {"text": "Anna sails"}), (Decision.KEEP_BOTH, {})],
)
def test_who_offered_a_fact_cannot_accept_it_through_a_pipe(store, decision, told):
    offered = offer(store, "Anna skis")

    with pytest.raises(NotPermitted):
        decide(store, decision, actor=replace(CLERK, name=EXTRACTOR.name), **told)
    assert store.get(offered.id).state is State.TENTATIVE
    assert decide(store, decision, actor=CLERK, **told).fact.state is State.ACCEPTED


def test_a_decisions_file_verifies_nothing(store):
    offer(store, "Anna skis")

    with pytest.raises(NotPermitted):
        decide(store, Decision.VERIFY, actor=CLERK)
    assert decide(store, Decision.VERIFY).fact.state is State.VERIFIED


# ---------------------------------------------------------------- what was seen


def test_a_decision_about_what_changed_since_is_refused(store):
    offered = offer(store, "Anna skis")
    review = session(store)
    item = first(review)
    with store.write(ANNA) as write:
        write.dispute(offered)

    with pytest.raises(Stale):
        review.decide(item, Decision.ACCEPT)
    assert store.get(offered.id).state is State.DISPUTED


def test_a_decision_is_refused_where_a_rival_came_that_was_not_shown(store):
    source = take(store, chat("I live in Lisbon"))
    offered = city(store, "Lisbon", actor=EXTRACTOR, evidence=cite(f"{source}#0", "I live in Lisbon"))
    review = session(store)
    item = first(review)
    rival = city(store, "Porto")

    with pytest.raises(Stale):
        review.decide(item, Decision.ACCEPT)
    assert (store.get(offered.id).state, store.get(rival.id).state) == (State.TENTATIVE, State.ACCEPTED)


def test_a_decision_stands_where_a_rival_that_was_shown_is_gone(store):
    held, offered = contested(store)
    review = session(store)
    item = first(review)
    retract(store, held)

    assert review.decide(item, Decision.ACCEPT).fact.id == offered.id


def test_a_stale_item_is_shown_again_as_it_is_by_then(store):
    offered = offer(store, "Anna skis")

    def meanwhile():
        with store.write(ANNA) as write:
            write.dispute(offered)
        return Decision.ACCEPT

    script = Script(meanwhile, Decision.ACCEPT)
    go_through(session(store), script)
    assert [item.why for _, _, item in script.seen] == [Waiting.TENTATIVE, Waiting.DISPUTED]
    assert script.heard == [("Stale", False), ("Decided", False)]
    assert store.get(offered.id).state is State.ACCEPTED


# ---------------------------------------------------------------- going through, undo


def test_a_reviewer_is_asked_about_each_item_once_with_its_number(store):
    for text in ("Anna skis", "Tom sails", "Eve reads"):
        offer(store, text)
    script = Script(Decision.ACCEPT, Decision.SKIP, Decision.DISPUTE)
    review = session(store)
    go_through(review, script)

    assert [(at, total, item.fact.text) for at, total, item in script.seen] == [
        (1, 3, "Anna skis"),
        (2, 3, "Tom sails"),
        (3, 3, "Eve reads"),
    ]
    assert [done.decision for done in review.decided] == [Decision.ACCEPT, Decision.SKIP, Decision.DISPUTE]


def test_an_item_that_somebody_else_decided_is_passed(store):
    offer(store, "Anna skis")
    other = offer(store, "Tom sails")

    def meanwhile():
        retract(store, other)
        return Decision.ACCEPT

    script = Script(meanwhile)
    go_through(session(store), script)
    assert [item.fact.text for _, _, item in script.seen] == ["Anna skis"]


def test_quitting_keeps_what_was_decided_and_a_later_review_goes_on(store):
    for text in ("Anna skis", "Tom sails"):
        offer(store, text)
    go_through(session(store), Script(Decision.ACCEPT, Turn.QUIT))

    assert waiting(store) == [(Waiting.TENTATIVE, "Tom sails")]


def test_an_interruption_keeps_what_was_decided(store):
    for text in ("Anna skis", "Tom sails"):
        offer(store, text)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_through(session(store), Script(Decision.ACCEPT, interrupted))
    assert waiting(store) == [(Waiting.TENTATIVE, "Tom sails")]
    assert check(store) == []


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Decision.ACCEPT, {}),
        (Decision.VERIFY, {}),
        (Decision.EDIT, {"text": "Anna sails"}),
        (Decision.RETRACT, {}),
        (Decision.KEEP_BOTH, {}),
        (Decision.DISPUTE, {}),
    ],
)
def test_undo_takes_the_last_decision_back_by_a_new_change(store, decision, told):
    offered = offer(store, "Anna skis")
    review = session(store)
    review.decide(first(review), decision, **told)
    undone = review.undo()

    assert (undone.decision, review.decided) == (decision, ())
    assert (store.get(offered.id).state, store.get(offered.id).text) == (State.TENTATIVE, "Anna skis")
    assert store.events(EventQuery(fact=offered.id))[-1].op in (Op.UNDO, Op.KEEP)
    assert check(store) == []


@pytest.mark.parametrize("decision", [Decision.ACCEPT, Decision.KEEP_BOTH, Decision.VERIFY])
def test_undo_restores_both_sides_of_a_conflict(store, decision):
    held, offered = contested(store)
    review = session(store)
    review.decide(first(review), decision)
    assert store.get(held.id).state is not State.ACCEPTED
    review.undo()

    assert (store.get(held.id).state, store.get(offered.id).state) == (State.ACCEPTED, State.DISPUTED)
    assert check(store) == []


def test_undo_brings_a_kept_pair_back_and_keeping_it_again_settles_it(store):
    pair(store)
    review = session(store)
    review.decide(first(review), Decision.KEEP_BOTH)
    review.undo()
    assert [why for why, _ in waiting(store)] == [Waiting.NEAR_DUPLICATE]
    decide(store, Decision.KEEP_BOTH)

    assert waiting(store) == []


def test_undo_of_a_confirmation_lets_the_fact_wait_again(store):
    bereft(store)
    review = session(store)
    review.decide(first(review), Decision.ACCEPT)
    assert waiting(store) == []
    review.undo()

    assert [why for why, _ in waiting(store)] == [Waiting.EVIDENCE_ERASED]


def test_undo_shows_the_item_again_under_its_number(store):
    for text in ("Anna skis", "Tom sails"):
        offer(store, text)
    script = Script(Decision.ACCEPT, Turn.UNDO, Decision.RETRACT)
    go_through(session(store), script)

    assert [(at, item.fact.text) for at, _, item in script.seen] == [
        (1, "Anna skis"),
        (2, "Tom sails"),
        (1, "Anna skis"),
        (2, "Tom sails"),
    ]
    assert script.heard[1] == ("Decided", True)


def test_undo_of_a_tombstone_says_to_lift_it_and_changes_nothing(store):
    offered = offer(store, "Anna skis")
    review = session(store)
    stone = review.decide(first(review), Decision.REJECT).tombstone

    with pytest.raises(NotAllowed) as problem:
        review.undo()
    assert f"mem lift {stone.id}" in str(problem.value.hint)
    assert store.get(offered.id).state is State.REJECTED


def test_undo_of_nothing_says_so(store):
    with pytest.raises(NotAllowed, match="nothing was decided"):
        session(store).undo()


DECISIONS = st.lists(st.sampled_from([*Decision, Turn.UNDO]), max_size=12)


@given(DECISIONS)
@settings(max_examples=25)
def test_any_sequence_of_decisions_leaves_a_file_that_holds_together(tmp_path_factory, said):
    with memory(tmp_path_factory.mktemp("any") / "memory.db") as store:
        contested(store)
        pair(store)
        bereft(store)
        offer(store, "Anna skis")
        review = session(store)
        script = Script(*(Answer(say=word, text="Anna swims") for word in said))
        go_through(review, script)

        assert check(store) == []
        assert all(isinstance(done, Decided) for done in review.decided)
