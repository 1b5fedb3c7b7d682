"""How facts are offered, find their slot, and are corrected, in both kinds of time."""

from pathlib import Path

import pytest

from memcli.errors import Conflict, NotAllowed, NotFound, NotPermitted, OutOfScope
from memcli.facts import Actor, Claim, EventQuery, Evidence, FactQuery, PolicyRule, Validity
from memcli.store import Store
from memcli.store.check import check
from memcli.terms import READABLE, ActorKind, Admission, Channel, How, Op, Role, State
from tests.files import (
    ANNA,
    API,
    BOB,
    EXTRACTOR,
    IMPORTER,
    SCRIPT,
    START,
    YEAR,
    Clock,
    add,
    chat,
    cite,
    city,
    correct,
    memory,
    newest,
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


# -------------------------------------------------------------------- add


@pytest.mark.parametrize(
    ("admission", "actor", "state"),
    [
        (Admission.REVIEW, ANNA, State.ACCEPTED),
        (Admission.REVIEW, SCRIPT, State.TENTATIVE),
        (Admission.REVIEW, API, State.TENTATIVE),
        (Admission.REVIEW, SERVER, State.TENTATIVE),
        (Admission.REVIEW, IMPORTER, State.TENTATIVE),
        (Admission.REVIEW, EXTRACTOR, State.TENTATIVE),
        (Admission.DIRECT, ANNA, State.ACCEPTED),
        (Admission.DIRECT, SCRIPT, State.ACCEPTED),
        (Admission.DIRECT, EXTRACTOR, State.ACCEPTED),
    ],
)
def test_what_is_offered_is_believed_as_far_as_admission_and_channel_allow(tmp_path, admission, actor, state):
    with memory(tmp_path / "m.db", admission=admission) as store:
        fact = add(store, "tea is hot", actor=actor)

        assert (fact.state, fact.version, fact.actor) == (state, 1, actor)
        assert texts(store.facts()) == (["tea is hot"] if state in READABLE else [])


def test_nothing_is_added_to_a_file_that_takes_facts_by_transaction_only(tmp_path):
    with memory(tmp_path / "m.db", admission=Admission.CHECKED) as store:
        with pytest.raises(NotPermitted, match="transactions"):
            add(store, "tea is hot")
        assert texts(store.facts(FactQuery(states=frozenset(State)))) == []


def test_a_human_who_types_into_a_pipe_is_no_person(store):
    piped = Actor(name="anna", kind=ActorKind.HUMAN, channel=Channel.PIPE)

    assert add(store, "tea is hot", actor=piped).state is State.TENTATIVE
    assert add(store, "milk is cold").state is State.ACCEPTED


def test_a_statement_becomes_its_own_evidence(store):
    fact = add(store, "tea is hot")

    (evidence,) = fact.provenance
    assert (evidence.quote, evidence.verified, evidence.role) == ("tea is hot", True, Role.USER)
    assert store.message(str(evidence.message)).content == "tea is hot"


def test_a_quote_that_is_not_in_the_message_leaves_the_fact_tentative(store):
    source = take(store, chat("I drink tea"))

    false = add(store, "Anna drinks wine", evidence=cite(f"{source}#0", "I drink wine"))
    true = add(store, "Anna drinks tea", evidence=cite(f"{source}#0", "drink tea"))

    assert (false.state, false.provenance[0].verified) == (State.TENTATIVE, False)
    assert (true.state, true.provenance[0].span) == (State.ACCEPTED, (2, 11))


def test_the_same_value_with_new_evidence_corroborates_and_makes_no_second_fact(store):
    first = city(store, "Berlin")
    source = take(store, chat("I live in Berlin"))

    with store.write(ANNA) as write:
        written = write.add(
            Claim(
                text="her home is Berlin",
                subject="Anna",
                attribute="Home City",
                value="berlin",
                evidence=cite(f"{source}#0", "I live in Berlin"),
            )
        )

    assert (written.outcome, written.fact.id) == ("corroborated", first.id)
    assert len(store.get(first.id).provenance) == 2
    assert texts(store.facts()) == ["Anna lives in Berlin"]


def test_the_same_value_on_the_same_message_again_changes_nothing(store):
    source = take(store, chat("I live in Berlin"))
    city(store, "Berlin", evidence=cite(f"{source}#0"))
    events = len(store.events())

    with store.write(ANNA) as write:
        again = write.add(Claim(text="Anna lives in Berlin", evidence=cite(f"{source}#0")))

    assert again.outcome == "same"
    assert len(store.events()) == events
    assert len(store.get(again.fact.id).provenance) == 1


def test_what_waits_is_believed_once_a_person_says_it_too(store):
    waiting = city(store, "Berlin", actor=SCRIPT)

    with store.write(ANNA) as write:
        written = write.add(Claim(text="Anna lives in Berlin"))

    assert (written.fact.id, written.outcome) == (waiting.id, "corroborated")
    assert (written.fact.state, written.fact.authority) == (State.ACCEPTED, 0.9)
    assert texts(store.facts()) == ["Anna lives in Berlin"]


def test_a_script_that_repeats_what_waits_does_not_make_it_believed(store):
    city(store, "Berlin", actor=SCRIPT)

    assert city(store, "Berlin", actor=API).state is State.TENTATIVE
    assert texts(store.facts()) == []


def test_what_waits_in_a_slot_is_weighed_there_though_a_person_repeats_only_its_words(store):
    held = city(store, "Lisbon")
    with store.write(ANNA, "not sure") as write:
        write.dispute(held)
    city(store, "Berlin", actor=SCRIPT)
    with store.write(ANNA) as write:
        write.accept(store.get(held.id))

    with store.write(ANNA) as write:
        written = write.add(Claim(text="Anna lives in Berlin"))

    assert (written.outcome, written.fact.state) == ("held", State.DISPUTED)
    assert texts(store.facts()) == ["Anna lives in Lisbon"]


@pytest.mark.parametrize(
    "claim",
    [
        Claim(text=" ... "[:1]),
        Claim(text="a", value="b"),
        Claim(text="a", attribute="b"),
        Claim(text="a", subject="b", attribute="c"),
        Claim(text="a", confidence=1.5),
        Claim(text="a", importance=-0.1),
        Claim(text="a", authority=float("nan")),
        Claim(text="a", subject="b", attribute="c", value=float("inf")),
        Claim(text="a", validity=Validity(start=10**19)),
    ],
)
def test_a_claim_that_says_nothing_or_does_not_hold_together_is_refused(direct, claim):
    unchecked = IMPORTER

    with pytest.raises(NotAllowed), direct.write(unchecked) as write:
        write.add(claim)
    assert add(direct, "a", actor=unchecked).text == "a"


def test_odd_characters_of_an_import_come_back_as_they_were(direct):
    odd = "nul \0 half \ud83d sign ␛ end"
    told = {"subject": odd, "attribute": odd, "value": odd, "owner": odd, "rule": odd}

    fact = direct.get(add(direct, odd, actor=IMPORTER, **told).id)

    assert [fact.text, fact.subject, fact.attribute, fact.value, fact.owner, fact.rule] == [odd] * 6
    assert [item.id for item in direct.facts(FactQuery(subject=odd))] == [fact.id]
    assert check(direct) == []


def test_names_that_no_file_can_hold_are_not_found_rather_than_a_crash(store):
    odd = "\udcff"

    for ask in (store.get, store.source, store.message, store.tombstone, store.event):
        with pytest.raises(NotFound):
            ask(odd)
    assert list(store.facts(FactQuery(subject=odd))) == []


def test_a_subject_is_found_in_either_case_of_any_script(store):
    add(store, "Émile drinks tea", subject="Émile")

    assert texts(store.facts(FactQuery(subject="ÉMILE"))) == ["Émile drinks tea"]
    assert texts(store.facts(FactQuery(subject="emile"))) == []


# -------------------------------------------------------------------- slots


def test_a_source_of_more_authority_takes_the_slot(store):
    source = take(store, chat("I live in Berlin"))
    old = city(store, "Berlin", evidence=cite(f"{source}#0"))

    with store.write(ANNA) as write:
        claim = Claim(text="Anna lives in Lisbon", subject="anna", attribute="home city", value="Lisbon")
        written = write.add(claim)

    assert (written.outcome, written.rival) == ("superseded", old.id)
    assert (store.get(old.id).state, store.get(old.id).superseded_by) == (State.SUPERSEDED, written.fact.id)
    assert texts(store.facts()) == ["Anna lives in Lisbon"]


def test_a_source_of_less_authority_is_refused_and_the_log_says_so(direct):
    held = city(direct, "Berlin")

    with pytest.raises(Conflict):
        city(direct, "Lisbon", actor=SCRIPT)
    assert newest(direct, Op.REFUSE).target == held.id
    assert texts(direct.facts(FactQuery(states=frozenset(State)))) == ["Anna lives in Berlin"]


def test_sources_of_equal_authority_leave_the_newcomer_held(store):
    held = city(store, "Berlin")

    with store.write(BOB) as write:
        claim = Claim(text="Anna lives in Lisbon", subject="anna", attribute="home city", value="Lisbon")
        written = write.add(claim)

    assert (written.outcome, written.rival, written.fact.state) == ("held", held.id, State.DISPUTED)
    assert texts(store.facts()) == ["Anna lives in Berlin"]


def test_a_source_may_change_its_own_mind(direct):
    source = take(direct, chat("I live in Berlin", "ok", "I live in Lisbon now"))
    city(direct, "Berlin", actor=EXTRACTOR, evidence=cite(f"{source}#0"))

    assert city(direct, "Lisbon", actor=EXTRACTOR, evidence=cite(f"{source}#2")).state is State.ACCEPTED
    assert texts(direct.facts()) == ["Anna lives in Lisbon"]


def test_an_authority_that_is_claimed_counts_no_more_than_the_policy_gives(direct):
    low = city(direct, "Berlin", actor=SCRIPT, authority=0.2)
    high = add(direct, "tea is hot", actor=SCRIPT, authority=1.0)

    assert (low.authority, high.authority) == (0.2, 0.5)


def test_a_transcript_cannot_call_itself_a_kind_of_source_that_the_policy_trusts(direct):
    with direct.write(ANNA, "trusted") as write:
        write.set_policy(PolicyRule(kind="source", name="terminal", value="1"))
        write.set_policy(PolicyRule(kind="source", name="crm", value="0.8"))
    plain = take(direct, chat("a is b"))
    posing = [take(direct, chat(f"{name} is b", session=name)) for name in ("terminal", "statement", "human")]
    named = take(direct, chat("c is d", session="crm"))

    def authority(source: str) -> float:
        return add(direct, f"from {source}", actor=EXTRACTOR, evidence=cite(f"{source}#0")).authority

    assert [authority(source) for source in (plain, *posing)] == [0.6] * 4
    assert authority(named) == 0.8


def test_values_of_one_slot_that_hold_at_different_times_stand_side_by_side(store):
    city(store, "Berlin", validity=Validity(end=START - YEAR))
    city(store, "Lisbon", validity=Validity(start=START - YEAR))

    assert texts(store.facts()) == ["Anna lives in Lisbon"]
    assert texts(store.facts(FactQuery(valid_at=START - 2 * YEAR))) == ["Anna lives in Berlin"]
    assert check(store) == []


def test_a_fact_whose_validity_lies_wholly_before_its_own_row_can_be_landed(store):
    fact = add(store, "the shop was open", validity=Validity(start=START - 3 * YEAR, end=START - 2 * YEAR))

    assert fact.recorded_at > START
    assert texts(store.facts()) == []
    assert texts(store.facts(FactQuery(valid_at=START - 2 * YEAR - 1))) == ["the shop was open"]
    assert texts(store.facts(FactQuery(valid_at=START - 2 * YEAR))) == []


# -------------------------------------------------------------------- derivation


def test_what_is_derived_from_something_unsettled_waits_with_it(store):
    parent = city(store, "Berlin", actor=SCRIPT)
    sure = add(store, "tea is hot")

    assert add(store, "Anna is in CET", derived_from=(parent.id,)).state is State.TENTATIVE
    assert add(store, "tea can burn", derived_from=(sure.id,)).state is State.ACCEPTED


def test_nothing_is_derived_from_what_was_withdrawn(store):
    parent = retract(store, city(store, "Berlin"))

    with pytest.raises(NotAllowed, match="revoked"):
        add(store, "Anna is in CET", derived_from=(parent.id,))
    assert texts(store.facts()) == []


def test_only_a_copy_may_come_from_another_scope(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        parent = add(store, "tea is hot")
    with memory(path, scope="b") as store:
        with pytest.raises(OutOfScope):
            add(store, "tea can burn", derived_from=(parent.id,))
        assert add(store, "tea is hot", derived_from=(parent.id,), how=How.COPIED).derived_from == (parent.id,)


def test_a_change_of_a_fact_of_another_scope_is_refused(tmp_path):
    path = tmp_path / "m.db"
    with memory(path, scope="a") as store:
        theirs = add(store, "tea is hot")
    with memory(path, scope="b") as store:
        mine = add(store, "milk is cold")
        for act in ("retract", "dispute", "verify", "accept"):
            with pytest.raises(OutOfScope), store.write(ANNA, "mine now") as write:
                getattr(write, act)(theirs)
        with pytest.raises(OutOfScope), store.write(ANNA, "mine now") as write:
            write.correct(theirs, "tea is cold")
        with pytest.raises(OutOfScope), store.write(ANNA, "mine now") as write:
            write.undo(next(event for event in _all_events(store) if event.target == theirs.id))

        assert store.get(theirs.id, all_scopes=True) == theirs
        assert retract(store, mine).state is State.REVOKED


def _all_events(store: Store):
    return store.events(EventQuery(all_scopes=True))


# -------------------------------------------------------------------- correct

THEN = START - 2 * YEAR


def answers(store: Store, **query: int) -> list[str]:
    return texts(store.facts(FactQuery(**query)))


def test_a_replacement_from_a_day_on_leaves_the_old_value_to_its_own_time(store):
    old = city(store, "Berlin")
    new = correct(store, old, "Anna lives in Lisbon", validity=Validity(start=START - YEAR))

    assert (new.id, new.version, new.value) == (old.id, 2, "Lisbon")
    assert answers(store) == ["Anna lives in Lisbon"]
    assert answers(store, valid_at=THEN) == ["Anna lives in Berlin"]
    assert answers(store, known_at=old.recorded_at) == ["Anna lives in Berlin"]
    assert answers(store, valid_at=THEN, known_at=old.recorded_at) == ["Anna lives in Berlin"]
    assert answers(store, valid_at=START, known_at=new.recorded_at) == ["Anna lives in Lisbon"]


def test_a_replacement_of_what_was_never_true_leaves_the_old_value_to_what_was_known_only(store):
    old = city(store, "Berlin")
    new = correct(store, old, "Anna lives in Lisbon")

    assert answers(store) == answers(store, valid_at=THEN) == ["Anna lives in Lisbon"]
    assert answers(store, known_at=old.recorded_at) == ["Anna lives in Berlin"]
    assert [(item.version, item.state, item.displaced) for item in store.versions(old.id)] == [
        (1, State.SUPERSEDED, True),
        (2, State.ACCEPTED, False),
    ]
    assert new.recorded_at > old.recorded_at


def test_a_flipped_polarity_replaces_the_statement(store):
    old = add(store, "Anna likes coriander")
    new = correct(store, old, "Anna does not like coriander")

    assert answers(store) == ["Anna does not like coriander"]
    assert answers(store, known_at=old.recorded_at) == ["Anna likes coriander"]
    assert new.version == 2


def test_a_retraction_leaves_nothing_now_and_the_old_value_in_what_was_known(store):
    old = city(store, "Berlin")
    child = add(store, "Anna is in CET", derived_from=(old.id,))
    gone = retract(store, old)

    assert answers(store) == []
    assert (gone.state, store.get(child.id).state) == (State.REVOKED, State.REVOKED)
    assert answers(store, known_at=child.recorded_at) == ["Anna is in CET", "Anna lives in Berlin"]


def test_a_partial_correction_keeps_what_it_does_not_speak_of(store):
    old = add(store, "Anna has two cats and a dog", importance=0.7, pinned=True)
    new = correct(store, old, "Anna has one cat and a dog")

    assert answers(store) == ["Anna has one cat and a dog"]
    assert (new.importance, new.pinned) == (0.7, True)


def test_a_bounded_validity_ends_the_answer_at_its_end(store):
    old = city(store, "Berlin")
    correct(store, old, "Anna lives in Berlin", validity=Validity(end=START - YEAR))

    assert answers(store) == []
    assert answers(store, valid_at=START - YEAR - 1) == ["Anna lives in Berlin"]
    assert answers(store, known_at=old.recorded_at) == ["Anna lives in Berlin"]


@pytest.mark.parametrize(
    ("old_value", "old_text", "text", "value"),
    [
        ("Berlin", "Anna lives in Berlin", "Anna lives in Lisbon", "Lisbon"),
        (42, "Anna is 42 years old", "Anna is 43 years old", 43),
        (True, "smokes: true", "smokes: false", False),
        (1.5, "weighs 1.5 kg", "weighs heavy kg", "heavy"),
        ("", "nothing", "something", "something"),
        ("Berlin", "Anna lives in Berlin", "she moved away", "she moved away"),
    ],
)
def test_a_corrected_text_gives_the_slot_its_value(store, old_value, old_text, text, value):
    old = add(store, old_text, subject="anna", attribute="x", value=old_value)

    new = correct(store, old, text)

    assert (new.value, type(new.value)) == (value, type(value))


def test_a_correction_that_says_the_same_is_refused(store):
    old = city(store, "Berlin")

    with pytest.raises(NotAllowed, match="says that already"):
        correct(store, old, "Anna lives in Berlin")
    assert correct(store, old, "Anna lives in BERLIN").version == 2


def test_a_correction_into_a_slot_that_another_fact_holds_is_refused(store):
    city(store, "Berlin", validity=Validity(end=START))
    other = city(store, "Lisbon", validity=Validity(start=START))

    with pytest.raises(Conflict):
        correct(store, other, "Anna lives in Porto", validity=Validity())
    assert correct(store, other, "Anna lives in Porto").value == "Porto"


def test_a_person_may_correct_what_was_withdrawn_but_not_what_fell_with_a_parent(store):
    lone = retract(store, add(store, "tea is cold"))
    parent = city(store, "Berlin")
    child = add(store, "Anna is in CET", derived_from=(parent.id,))
    retract(store, parent)

    assert correct(store, lone, "tea is hot").state is State.ACCEPTED
    with pytest.raises(NotAllowed, match="derived from"):
        correct(store, store.get(child.id), "Anna is in WET")
    assert check(store) == []


def test_the_confidence_of_an_extractor_does_not_pass_to_what_a_person_wrote(store):
    old = add(store, "tea is hot", actor=EXTRACTOR, confidence=0.3)

    assert correct(store, old, "tea is warm").confidence is None
    assert store.history(old.id)[0].confidence == 0.3


# -------------------------------------------------------------------- time


def test_transaction_time_never_goes_back_with_the_clock(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", now=clock) as store:
        first = add(store, "tea is hot")
        clock.time -= YEAR
        second = correct(store, first, "tea is warm")

        assert second.recorded_at > first.recorded_at
        assert [item.retired_at for item in store.history(first.id)][-1] is None
        assert check(store) == []


def test_what_was_not_known_yet_is_not_found_at_that_time(store):
    before = newest(store, Op.INIT).at
    fact = add(store, "tea is hot")

    with pytest.raises(NotFound, match="not known then"):
        store.get(fact.id, known_at=before)
    assert store.get(fact.id, known_at=fact.recorded_at).text == "tea is hot"


def test_evidence_that_is_not_in_the_file_is_not_found(store):
    source = take(store, chat("hello"))

    for message in ("s9#0", f"{source}#1", "nonsense", "s1#", "#0"):
        with pytest.raises(NotFound):
            add(store, "tea is hot", evidence=(Evidence(message=message),))
    assert add(store, "tea is hot", evidence=cite(f"{source}#0")).state is State.ACCEPTED


def test_a_correction_that_begins_in_the_future_is_refused_and_the_value_stays(store):
    seen = city(store, "Berlin")

    with pytest.raises(NotAllowed, match="begins in the future"):
        correct(store, seen, "Anna lives in Lisbon", validity=Validity(start=START + 10 * YEAR))
    assert texts(store.facts()) == ["Anna lives in Berlin"]


def test_a_move_in_the_future_is_an_end_and_a_beginning(store):
    moves = START + 10 * YEAR
    seen = city(store, "Berlin")
    correct(store, seen, "Anna lives in Berlin", validity=Validity(end=moves))

    city(store, "Lisbon", validity=Validity(start=moves))

    assert texts(store.facts()) == ["Anna lives in Berlin"]
    assert texts(store.facts(FactQuery(valid_at=moves))) == ["Anna lives in Lisbon"]
