"""Condensing: what counts as saying the same, what a plan accounts for, and what making it leaves behind."""

import json
import shlex
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memcli import wire
from memcli.changes import Change, accept, request
from memcli.condense import MAX_TEXT, plan_duplicates, plan_of_command
from memcli.errors import Conflict, Echo, Loss, NoReason, NotAllowed, NotPermitted, Stale, Tombstoned, Unreadable
from memcli.facts import Actor, Claim, CondensePlan, EventQuery, Evidence, Fact, FactQuery, Validity
from memcli.review import ReviewSession
from memcli.store import Store
from memcli.store.check import check
from memcli.store.queue import Queue
from memcli.terms import Admission, Decision, How, Kind, Op, State, Visibility, Waiting
from tests.files import ANNA, BOB, DAY, SCRIPT, START, add, chat, city, correct, memory, newest, reject, take, texts

EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as opened:
        yield opened


@pytest.fixture
def reviewed(tmp_path: Path) -> Iterator[Store]:
    with memory(tmp_path / "m.db") as opened:
        yield opened


def planned(store: Store, *, max_facts: int | None = None, allowed: tuple[str, ...] = ()) -> CondensePlan:
    write = store.planner(ANNA)
    return write.foresee(plan_duplicates(write.material(), max_facts=max_facts, allowed=allowed))


def condensed(store: Store, plan: CondensePlan, *, actor: Actor = ANNA) -> list[Fact]:
    change = Change(op=Op.CONDENSE, arguments=wire.condense_arguments(plan))
    return list(request(store, actor, "too many", change).facts)


def answered(tmp_path: Path, store: Store, answer: Any, **told: Any) -> CondensePlan:
    """Return the plan of a program that prints this answer, whatever it is asked."""
    path = tmp_path / "condenser.py"
    path.write_text(f"import sys; sys.stdin.read(); print({json.dumps(json.dumps(answer))})", encoding="utf-8")
    write = store.planner(ANNA)
    options = {"max_facts": None, "timeout_s": 60.0, **told}
    return write.foresee(plan_of_command(shlex.join([sys.executable, str(path)]), write.material(), **options))


def states(store: Store, *facts: Fact) -> list[State]:
    return [store.get(fact.id).state for fact in facts]


# -------------------------------------------------------------------- what says the same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tea is hot", "The tea is really hot"),
        ("Anna also prefers tea", "Anna prefers tea."),
        ("She likes travelling by train", "she likes traveling by train"),
        ("the favourite colour of the team", "the favorite colour of the team"),
        ("Indeed, the office is closed", "the office is closed"),
    ],
)
def test_texts_that_differ_in_fillers_or_a_spelling_are_near_duplicates(store, one, other):
    add(store, one)
    add(store, other)

    assert planned(store).left == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tea is hot", "Tea is not hot"),
        ("Anna never drinks tea", "Anna drinks tea"),
        ("she can't swim", "she can swim"),
        ("the fee is 20 EUR", "the fee is 30 EUR"),
        ("the fee is 5 EUR", "the fee is -5 EUR"),
        ("the talk is on 4 May", "the talk is on 4 June"),
        ("the talk is on 2026-05-04", "the talk is on 2026-05-05"),
        ("Anna lives in Lisbon", "Anna lives in Porto"),
        ("Mr Fredericksen called", "Mr Fredricksen called"),
        ("Anna loves Ben", "Ben loves Anna"),
        ("he likes cats", "he likes bats"),
        ("she takes vitamin A daily", "she takes vitamin daily"),
        ("has hypertension since spring", "has hypotension since spring"),
        ("it is possible to refund", "it is impossible to refund"),
        ("the tour is long", "the tor is long"),
        ("he owns a boat", "he owns a boat and a car"),
        ("vitamin A", "vitamin a lot"),
        ("東京に住む", "京都に住む"),
    ],
)
def test_texts_that_differ_in_what_they_tell_are_kept_apart(store, one, other):
    add(store, one)
    add(store, other)

    assert planned(store).left == 2
    add(store, f"indeed {one}")
    assert planned(store).left == 2


def test_the_same_value_in_the_same_slot_is_merged_where_the_text_adds_no_name_number_or_denial(store):
    stays = city(store, "Lisbon", validity=Validity(start=START - DAY))
    goes = city(store, "Porto", validity=Validity(start=START - 9 * DAY, end=START - 5 * DAY))
    with store.write(ANNA, "mistaken") as write:
        write.correct(store.get(goes.id), "in Lisbon she lives", value="Lisbon", validity=Validity(start=START - DAY))
    plan = planned(store)

    assert [(item.keep, item.parents) for item in plan.merged] == [(goes.id, (stays.id,))]
    assert plan.protected == (goes.id,)


def test_a_slot_text_that_says_more_is_not_merged_away(store):
    city(store, "Lisbon")
    longer = add(store, "Anna lives in Porto with Ben", subject="anna", attribute="flat", value="Porto")
    with store.write(ANNA, "same slot") as write:
        write.correct(store.get(longer.id), "Anna lives in Porto with Ben since 2019", value="Porto")

    assert planned(store).left == 2


@pytest.mark.parametrize(
    "told",
    [
        {"owner": "bob"},
        {"visibility": Visibility.PRIVATE},
        {"validity": Validity(start=START - DAY)},
        {"kind": Kind.SUMMARY},
        {"subject": "ben"},
    ],
    ids=lambda told: next(iter(told)),
)
def test_facts_that_differ_beside_their_text_are_kept_apart(store, told):
    add(store, "Tea is hot")
    add(store, "The tea is hot", **told)
    add(store, "Tea is really hot")

    assert sorted(len(item.parents) for item in planned(store).merged) == [1]


def test_two_facts_that_a_person_kept_beside_each_other_are_not_merged(store):
    one, other = add(store, "Anna prefers really hot tea"), add(store, "Anna prefers hot tea")
    assert planned(store).left == 1
    queue = Queue(store)
    item = next(item for item in queue if item.why is Waiting.NEAR_DUPLICATE)
    ReviewSession(queue, ANNA).decide(item, Decision.KEEP_BOTH)

    assert planned(store).kept == (one.id, other.id)


def test_the_one_that_stays_is_the_one_that_says_most(store):
    add(store, "Tea is hot")
    pinned = add(store, "the tea is hot", pinned=True)
    slotted = add(store, "the tea is really hot", subject="tea", attribute="heat", value="hot")
    plan = planned(store)

    assert plan.kept == (pinned.id, slotted.id)
    assert [item.keep for item in plan.merged] == [pinned.id]


# -------------------------------------------------------------------- accounting and loss


def test_a_plan_without_a_bound_drops_nothing(store):
    facts = [add(store, f"the bus number {number} stops here") for number in range(5)]
    plan = planned(store, allowed=(facts[0].id,))

    assert (plan.kept, plan.merged, plan.dropped, plan.changes) == (tuple(f.id for f in facts), (), (), False)


def test_the_rules_do_not_invent_a_text_to_reach_a_bound(store):
    add(store, "Tea is hot")
    add(store, "Milk is cold")
    problem = store.planner(ANNA).judge(planned(store, max_facts=1))

    assert isinstance(problem, Loss)
    assert problem.message.startswith("2 facts are left")
    assert store.planner(ANNA).judge(planned(store, max_facts=2)) is None


def test_what_a_person_named_goes_first_and_no_more_than_must(store):
    facts = [add(store, f"the bus number {number} stops here") for number in range(4)]
    plan = planned(store, max_facts=3, allowed=(facts[2].id, facts[0].id))

    assert plan.dropped == (facts[2].id,)
    assert [(item.id, item.why) for item in plan.lost] == [(facts[2].id, "dropped")]
    assert store.planner(ANNA).judge(plan) is None


def test_what_was_built_on_a_dropped_fact_would_vanish_too_and_must_be_named(store):
    ground, other = add(store, "Anna is in arrears"), add(store, "Milk is cold")
    built = add(store, "Anna pays late", derived_from=(ground.id,))
    plan = planned(store, max_facts=2, allowed=(ground.id,))
    named = planned(store, max_facts=2, allowed=(ground.id, built.id))

    assert [(item.id, item.why) for item in plan.lost] == [
        (ground.id, "dropped"),
        (built.id, f"falls with {ground.id[:8]}"),
    ]
    assert "1 fact would vanish" in str(store.planner(ANNA).judge(plan))
    condensed(store, named)
    assert states(store, ground, built, other) == [State.REVOKED, State.REVOKED, State.ACCEPTED]


def test_a_fact_that_another_scope_builds_on_is_not_dropped(store, tmp_path):
    ground = add(store, "Tea is hot")
    add(store, "Milk is cold")
    with memory(tmp_path / "m.db", scope="b") as other:
        copy = add(other, "Tea is hot", derived_from=(ground.id,), how=How.COPIED)

    with pytest.raises(NotAllowed, match="of another scope"):
        planned(store, max_facts=1, allowed=(ground.id,))
    assert store.get(copy.id, all_scopes=True).state is State.ACCEPTED


@pytest.mark.parametrize("what", ["verified", "corrected", "pinned", "summary", "evidence erased"])
def test_a_protected_fact_never_vanishes(store, tmp_path, what):
    source = take(store, chat("Tea is hot", "noted"))
    told: dict[str, Any] = {"pinned": True} if what == "pinned" else {}
    told |= {"kind": Kind.SUMMARY} if what == "summary" else {}
    fact = add(store, "Tea is hot", evidence=(Evidence(message=f"{source}#0"), Evidence(message=f"{source}#1")), **told)
    with store.write(ANNA, "because") as write:
        if what == "verified":
            write.verify(store.get(fact.id))
        if what == "corrected":
            write.correct(store.get(fact.id), "Tea is warm")
        if what == "evidence erased":
            write.erase(write.plan_erase_value("noted"))
    free = add(store, "Milk is cold")
    plan = answered(tmp_path, store, {"facts": [], "dropped": [fact.id, free.id]}, allowed=(fact.id, free.id))

    assert plan.protected == (fact.id,)
    with pytest.raises(Loss, match=rf"is protected \({what}\)"):
        condensed(store, plan)
    assert states(store, fact, free)[1] is State.ACCEPTED


def test_a_protected_fact_is_not_merged_away(store, tmp_path):
    fact, free = add(store, "Tea is hot", pinned=True), add(store, "Milk is cold")
    plan = answered(tmp_path, store, {"facts": [{"text": "Tea is hot, milk is cold", "from": [fact.id, free.id]}]})

    with pytest.raises(Loss, match="never vanishes"):
        condensed(store, plan)
    assert texts(store.facts()) == ["Milk is cold", "Tea is hot"]


# -------------------------------------------------------------------- what a merge leaves


def test_the_fact_that_stays_takes_the_evidence_of_the_one_that_goes(store):
    source = take(store, chat("tea is hot", "noted", "the tea is really hot"))
    stays = add(store, "Tea is hot", evidence=(Evidence(message=f"{source}#0"),))
    goes = add(store, "The tea is really hot", evidence=(Evidence(message=f"{source}#2", quote="really hot"),))
    (one,) = condensed(store, planned(store))
    gone = store.get(goes.id)

    assert one.id == stays.id
    assert [item.message for item in one.provenance] == [f"{source}#0", f"{source}#2"]
    assert (gone.state, gone.superseded_by) == (State.SUPERSEDED, stays.id)
    assert texts(store.facts()) == ["Tea is hot"]
    assert check(store) == []


def test_a_new_fact_is_derived_from_the_old_ones_and_as_narrow_as_the_narrowest(store, tmp_path):
    source = take(store, chat("I drink tea", "noted", "I drink milk"))
    tea = add(
        store, "Anna drinks tea", evidence=(Evidence(message=f"{source}#0"),), authority=0.3, confidence=0.9,
        owner="anna", visibility=Visibility.PRIVATE, validity=Validity(start=START - 9 * DAY), importance=0.2,
    )  # fmt: skip
    milk = add(
        store, "Anna drinks milk", evidence=(Evidence(message=f"{source}#2"),), confidence=0.5, owner="anna",
        importance=0.7, validity=Validity(start=START - 2 * DAY),
    )  # fmt: skip
    answer = {"facts": [{"text": "Anna drinks tea and milk", "from": [tea.id, milk.id]}]}
    (one,) = condensed(store, answered(tmp_path, store, answer))

    assert (one.state, one.authority, one.confidence, one.importance) == (State.ACCEPTED, 0.3, 0.5, 0.7)
    assert (one.owner, one.visibility, one.valid) == ("anna", Visibility.PRIVATE, Validity(start=START - 2 * DAY))
    assert [item.message for item in one.provenance] == [f"{source}#0", f"{source}#2"]
    assert [(link.parent, link.how) for link, _ in store.parents(one.id)] == [
        (tea.id, How.CONDENSED),
        (milk.id, How.CONDENSED),
    ]
    assert [store.get(fact.id).superseded_by for fact in (tea, milk)] == [one.id, one.id]
    assert texts(store.facts(FactQuery(valid_at=START - 5 * DAY))) == ["Anna drinks tea"]
    assert check(store) == []


def test_a_new_fact_of_two_owners_belongs_to_nobody(store, tmp_path):
    one, other = add(store, "Tea is hot", owner="anna"), add(store, "Milk is cold", owner="ben")
    answer = {"facts": [{"text": "Tea is hot and milk is cold", "from": [one.id, other.id]}]}

    assert condensed(store, answered(tmp_path, store, answer))[0].owner is None


def test_what_was_built_on_a_merged_fact_stands_and_falls_with_the_one_that_says_it_now(store, tmp_path):
    ground, other = add(store, "Anna is in arrears"), add(store, "Anna owes 20 EUR")
    built = add(store, "Anna pays late", derived_from=(ground.id,))
    summary = add(store, "Anna is a risk", derived_from=(ground.id,), kind=Kind.SUMMARY)
    rest = [{"keep": fact.id} for fact in (built, summary)]
    new = {"text": "Anna owes 20 EUR and is in arrears", "from": [ground.id, other.id]}
    (one,) = condensed(store, answered(tmp_path, store, {"facts": [new, *rest]}))

    assert states(store, built, summary) == [State.ACCEPTED, State.ACCEPTED]
    with store.write(ANNA, "paid") as write:
        write.retract(store.get(one.id))
    assert states(store, built, summary) == [State.REVOKED, State.DISPUTED]
    assert check(store) == []


def test_one_event_names_every_fact_and_stands_beside_the_ordinary_ones(store):
    stays, goes = add(store, "Tea is hot"), add(store, "The tea is hot")
    dropped = add(store, "Milk is cold")
    condensed(store, planned(store, max_facts=1, allowed=(dropped.id,)))
    event = newest(store, Op.CONDENSE)

    assert event.target == stays.id
    assert event.reason == f"too many · {goes.id} → {stays.id}; dropped {dropped.id}"
    assert newest(store, Op.SUPERSEDE, goes.id).reason == f"condensed into {stays.id}"
    assert newest(store, Op.RETRACT, dropped.id).reason == "too many"


def test_condensing_twice_changes_nothing_the_second_time(store):
    for text in ("Tea is hot", "The tea is hot", "Milk is cold"):
        add(store, text)
    condensed(store, planned(store))

    assert planned(store).changes is False
    assert texts(store.facts()) == ["Milk is cold", "Tea is hot"]


# -------------------------------------------------------------------- what stands against it


def test_a_tombstoned_value_does_not_come_back_as_a_condensed_fact(store, tmp_path):
    reject(store, add(store, "Tea is poison"))
    one, other = add(store, "Tea is hot"), add(store, "Tea is brown")
    facts = [one.id, other.id]
    refused = answered(tmp_path, store, {"facts": [{"text": "tea is POISON", "from": facts}]})

    with pytest.raises(Tombstoned):
        condensed(store, refused)
    assert newest(store, Op.REFUSE).reason == "tombstoned"
    assert texts(store.facts()) == ["Tea is brown", "Tea is hot"]
    condensed(store, answered(tmp_path, store, {"facts": [{"text": "tea is hot and brown", "from": facts}]}))
    assert texts(store.facts()) == ["tea is hot and brown"]


def test_a_withdrawn_value_does_not_come_back_as_a_condensed_fact(store, tmp_path):
    gone = add(store, "Tea is cold")
    with store.write(ANNA, "wrong") as write:
        write.retract(gone)
    one, other = add(store, "Tea is hot"), add(store, "Tea is brown")
    plan = answered(tmp_path, store, {"facts": [{"text": "Tea is cold", "from": [one.id, other.id]}]})

    with pytest.raises(Echo, match="brings nothing back"):
        condensed(store, plan)
    assert texts(store.facts()) == ["Tea is brown", "Tea is hot"]


def test_a_new_fact_does_not_contradict_one_that_stays(store, tmp_path):
    home = city(store, "Lisbon")
    one, other = add(store, "Anna moved"), add(store, "Anna is in Porto")
    new = {"text": "Anna moved to Porto", "subject": "anna", "attribute": "home city", "value": "Porto"}
    plan = answered(tmp_path, store, {"facts": [{"keep": home.id}, {**new, "from": [one.id, other.id]}]})

    with pytest.raises(Conflict):
        condensed(store, plan)
    assert len(texts(store.facts())) == 3


def test_facts_that_end_at_different_times_are_not_made_one(store, tmp_path):
    one = add(store, "The shop is open", validity=Validity(end=START + 900 * DAY))
    other = add(store, "The bar is open")
    plan = answered(tmp_path, store, {"facts": [{"text": "Shop and bar are open", "from": [one.id, other.id]}]})

    with pytest.raises(NotAllowed, match="end at different times"):
        condensed(store, plan)
    assert len(texts(store.facts())) == 2


def test_a_private_fact_is_not_merged_into_one_that_more_may_see(store, tmp_path):
    private, shared = add(store, "Tea is hot", visibility=Visibility.PRIVATE), add(store, "Tea is brown")
    plan = answered(tmp_path, store, {"facts": [{"keep": shared.id, "from": [private.id]}]})
    narrow = answered(tmp_path, store, {"facts": [{"keep": private.id, "from": [shared.id]}]})

    with pytest.raises(NotAllowed, match="wider"):
        condensed(store, plan)
    assert condensed(store, narrow)[0].id == private.id


def test_what_was_built_on_a_shared_fact_never_comes_to_stand_on_a_private_one(store, tmp_path):
    private, shared = add(store, "Tea is hot", visibility=Visibility.PRIVATE), add(store, "Tea is brown")
    child = add(store, "Tea stains", derived_from=(shared.id,))
    plan = answered(
        tmp_path, store, {"facts": [{"keep": private.id, "from": [shared.id]}, {"keep": child.id, "from": []}]}
    )

    with pytest.raises(NotAllowed, match="was built on what would be merged"):
        condensed(store, plan)
    assert texts(store.facts()) == ["Tea is brown", "Tea is hot", "Tea stains"]


def test_a_plan_about_a_fact_that_changed_since_is_stale(store):
    add(store, "Tea is hot")
    goes = add(store, "The tea is hot")
    plan = planned(store)
    correct(store, goes, "The tea is cold")

    with pytest.raises(Stale, match="changed since the plan was made"):
        condensed(store, plan)
    assert texts(store.facts()) == ["Tea is hot", "The tea is cold"]


def test_a_plan_that_accounts_for_a_fact_twice_or_not_at_all_is_refused(store):
    add(store, "Tea is hot")
    add(store, "The tea is hot")
    whole = wire.condense_arguments(planned(store))
    kept = list(whole["kept"])

    for broken in (whole | {"kept": []}, whole | {"dropped": kept}, whole | {"merged": []}):
        with pytest.raises(NotAllowed):
            request(store, ANNA, "why", Change(op=Op.CONDENSE, arguments=broken))
    request(store, ANNA, "why", Change(op=Op.CONDENSE, arguments=whole))
    assert texts(store.facts()) == ["Tea is hot"]


def test_a_file_for_transactions_is_not_condensed(tmp_path):
    with memory(tmp_path / "c.db", admission=Admission.CHECKED) as checked:
        with pytest.raises(NotPermitted, match="only through transactions"):
            checked.planner(ANNA).material()
        assert checked.planner(SCRIPT).store is checked


# -------------------------------------------------------------------- proposals and undo


def test_under_review_a_plan_becomes_one_proposal_that_a_person_accepts(reviewed):
    stays, goes = add(reviewed, "Tea is hot"), add(reviewed, "The tea is hot")
    plan = planned(reviewed)
    done = request(reviewed, SCRIPT, "too many", Change(op=Op.CONDENSE, arguments=wire.condense_arguments(plan)))
    (item,) = [item for item in Queue(reviewed) if item.why is Waiting.PROPOSAL]

    assert states(reviewed, stays, goes) == [State.ACCEPTED, State.ACCEPTED]
    assert [proposal.op for proposal in done.proposals] == [Op.CONDENSE]
    decided = ReviewSession(Queue(reviewed), BOB).decide(item, Decision.ACCEPT)
    assert decided.fact is not None
    assert decided.fact.id == stays.id
    assert states(reviewed, stays, goes) == [State.ACCEPTED, State.SUPERSEDED]


def test_a_proposal_about_what_changed_since_is_stale(reviewed):
    add(reviewed, "Tea is hot")
    goes = add(reviewed, "The tea is hot")
    arguments = wire.condense_arguments(planned(reviewed))
    (asked,) = request(reviewed, SCRIPT, "too many", Change(op=Op.CONDENSE, arguments=arguments)).proposals
    correct(reviewed, goes, "The tea is cold")

    with pytest.raises(Stale), reviewed.write(BOB, "fine") as write:
        accept(write, reviewed, asked)
    assert [proposal.id for proposal in reviewed.proposals()] == [asked.id]


def test_a_proposal_needs_a_reason(reviewed):
    add(reviewed, "Tea is hot")
    add(reviewed, "The tea is hot")
    arguments = wire.condense_arguments(planned(reviewed))

    with pytest.raises(NoReason):
        request(reviewed, SCRIPT, None, Change(op=Op.CONDENSE, arguments=arguments))
    assert reviewed.proposals() == []


def test_a_proposal_of_a_tombstoned_text_is_refused_at_once(reviewed, tmp_path):
    reject(reviewed, add(reviewed, "Tea is poison"))
    one, other = add(reviewed, "Tea is hot"), add(reviewed, "Tea is brown")
    answer = {"facts": [{"text": "Tea is poison", "from": [one.id, other.id]}]}
    arguments = wire.condense_arguments(answered(tmp_path, reviewed, answer))

    with pytest.raises(Tombstoned):
        request(reviewed, SCRIPT, "why", Change(op=Op.CONDENSE, arguments=arguments))
    assert reviewed.proposals() == []


def test_a_condense_is_undone_as_a_whole(store, tmp_path):
    ground, other = add(store, "Anna is in arrears"), add(store, "Anna owes 20 EUR")
    dropped, stays, goes = add(store, "Milk is cold"), add(store, "Tea is hot"), add(store, "The tea is hot")
    built = add(store, "Anna pays late", derived_from=(ground.id,))
    answer = {
        "facts": [
            {"text": "Anna owes 20 EUR and is in arrears", "from": [ground.id, other.id]},
            {"keep": stays.id, "from": [goes.id]},
            {"keep": built.id},
        ],
        "dropped": [dropped.id],
    }
    before = texts(store.facts())
    one, _ = condensed(store, answered(tmp_path, store, answer, allowed=(dropped.id,)))
    with store.write(ANNA, "too much") as write:
        write.undo(store.last_change())

    assert texts(store.facts()) == before
    assert store.get(one.id).state is State.SUPERSEDED
    assert check(store) == []
    with pytest.raises(NotAllowed), store.write(ANNA, "again") as write:
        write.undo(newest(store, Op.CONDENSE))


def test_one_piece_of_a_condense_is_undone_by_its_own_event(store):
    stays, goes = add(store, "Tea is hot"), add(store, "The tea is hot")
    condensed(store, planned(store))
    with store.write(ANNA, "they differ") as write:
        write.undo(newest(store, Op.SUPERSEDE, goes.id))

    assert states(store, stays, goes) == [State.ACCEPTED, State.ACCEPTED]
    assert check(store) == []


def test_an_undo_after_a_later_change_changes_nothing(store, tmp_path):
    one, other = add(store, "Tea is hot"), add(store, "Tea is brown")
    new = {"text": "Tea is hot and brown", "from": [one.id, other.id]}
    (made,) = condensed(store, answered(tmp_path, store, {"facts": [new]}))
    later = correct(store, made, "Tea is hot and dark")

    with pytest.raises(NotAllowed, match="changed after event"), store.write(ANNA, "back") as write:
        write.undo(newest(store, Op.CONDENSE))
    assert texts(store.facts()) == [later.text]


def test_accepting_a_proposal_can_be_taken_back_in_the_review(reviewed):
    add(reviewed, "Tea is hot")
    add(reviewed, "The tea is hot")
    arguments = wire.condense_arguments(planned(reviewed))
    request(reviewed, SCRIPT, "too many", Change(op=Op.CONDENSE, arguments=arguments))
    session = ReviewSession(Queue(reviewed), BOB)
    item = next(item for item in session.queue if item.proposal is not None)
    session.decide(item, Decision.ACCEPT)
    assert texts(reviewed.facts()) == ["Tea is hot"]

    session.undo()

    assert texts(reviewed.facts()) == ["Tea is hot", "The tea is hot"]


# -------------------------------------------------------------------- any program


def test_a_command_is_given_every_fact_whole_and_what_is_protected(store, tmp_path):
    pinned, free = add(store, "Tea is hot", pinned=True), add(store, "Milk is cold")
    path, seen = tmp_path / "condenser.py", tmp_path / "seen.json"
    path.write_text(
        textwrap.dedent(f"""
            import json, sys
            asked = json.load(sys.stdin)
            json.dump(asked, open({str(seen)!r}, "w"))
            print(json.dumps({{"facts": [{{"keep": fact["id"]}} for fact in asked["facts"]]}}))
        """),
        encoding="utf-8",
    )
    write = store.planner(ANNA)
    plan = plan_of_command(shlex.join([sys.executable, str(path)]), write.material(), max_facts=2, timeout_s=60)
    asked = json.loads(seen.read_text(encoding="utf-8"))

    assert plan.kept == (pinned.id, free.id)
    assert set(asked) == {"version", "max_facts", "note", "facts"}
    assert (asked["version"], asked["max_facts"]) == (1, 2)
    assert asked["facts"] == [
        {**wire.fact(store.get(pinned.id)), "protected": True},
        {**wire.fact(store.get(free.id)), "protected": False},
    ]


def test_what_an_answer_leaves_out_would_vanish(store, tmp_path):
    one, other = add(store, "Tea is hot"), add(store, "Milk is cold")
    plan = answered(tmp_path, store, {"facts": [{"keep": one.id}]})

    assert [(item.id, item.text, item.why) for item in plan.lost] == [(other.id, "Milk is cold", "left out")]
    with pytest.raises(Loss, match="1 fact would vanish"):
        condensed(store, plan)
    condensed(store, answered(tmp_path, store, {"facts": [{"keep": one.id}]}, allowed=(other.id,)))
    assert texts(store.facts()) == ["Tea is hot"]


def test_a_new_fact_with_the_words_of_a_parent_is_that_parent(store, tmp_path):
    one, other = add(store, "Tea is hot"), add(store, "Tea is rather hot")
    plan = answered(tmp_path, store, {"facts": [{"text": "tea is HOT.", "from": [other.id, one.id]}]})

    assert [(item.keep, item.parents) for item in plan.merged] == [(one.id, (other.id,))]


def test_fewer_facts_than_are_protected_cannot_be_asked_for(store, tmp_path):
    add(store, "Tea is hot", pinned=True)
    add(store, "Milk is cold", pinned=True)

    with pytest.raises(Loss, match="2 facts are protected"):
        answered(tmp_path, store, {"facts": []}, max_facts=1)
    assert planned(store, max_facts=2).left == 2


BAD = [
    ([], "its answer holds no list of facts"),
    ({"facts": {}}, "its answer holds no list of facts"),
    ({"facts": [], "version": 2}, "its answer is not in version 1"),
    ({"facts": ["x"]}, "fact 1 of its answer: it is no object"),
    ({"facts": [{"text": "all of it"}]}, "fact 1 of its answer: it comes from no fact"),
    ({"facts": [{"from": ["ONE"]}]}, "fact 1 of its answer: text is missing"),
    ({"facts": [{"text": 7, "from": ["ONE"]}]}, "fact 1 of its answer: text must be a string"),
    ({"facts": [{"text": "a\u0000b", "from": ["ONE"]}]}, "fact 1 of its answer: text"),
    ({"facts": [{"text": "x" * (MAX_TEXT + 1), "from": ["ONE"]}]}, "fact 1 of its answer: text has more than"),
    ({"facts": [{"text": "tea", "from": "ONE"}]}, "fact 1 of its answer: from is no list"),
    ({"facts": [{"text": "tea", "from": ["ffff"]}]}, "fact 1 of its answer: there is no fact ffff"),
    ({"facts": [{"text": "tea", "from": [1]}]}, "fact 1 of its answer: there is no fact 1"),
    ({"facts": [{"text": "tea", "from": ["ONE", "ONE"]}]}, "fact 1 of its answer: fact ONE has a place already"),
    ({"facts": [{"keep": "ONE"}, {"keep": "ONE"}]}, "fact 2 of its answer: fact ONE has a place already"),
    ({"facts": [{"keep": "ONE", "text": "tea is cold"}]}, "fact 1 of its answer: it keeps ONE with another text"),
    ({"facts": [{"text": "t", "value": 1, "from": ["ONE"]}]}, "fact 1 of its answer: value needs subject"),
    ({"facts": [], "dropped": "ONE"}, "dropped in its answer: dropped is no list"),
    ({"facts": [{"keep": "ONE"}], "dropped": ["ONE"]}, "dropped in its answer: fact ONE has a place already"),
    ({"facts": [{"keep": "ONE"}, {"keep": "TWO"}]}, "its answer leaves 2 facts, and at most 1 were asked for"),
]


@pytest.mark.parametrize(("answer", "why"), BAD, ids=[why[:50] for _, why in BAD])
def test_an_answer_that_is_none_is_told_in_one_sentence_and_changes_nothing(store, tmp_path, answer, why):
    ids = {"ONE": add(store, "Tea is hot").id, "TWO": add(store, "Milk is cold").id}
    said, wanted = json.dumps(answer), why
    for name, whole in ids.items():
        said, wanted = said.replace(name, whole), wanted.replace(name, whole)
    with pytest.raises(Unreadable) as refused:
        answered(tmp_path, store, json.loads(said), max_facts=1)

    assert refused.value.why.startswith(wanted)
    assert "\n" not in refused.value.message
    assert len(list(store.facts())) == 2
    assert store.events(EventQuery(op=Op.CONDENSE)) == []


def test_the_arguments_of_a_change_give_the_plan_they_came_from(store):
    add(store, "Tea is hot")
    add(store, "The tea is hot")
    dropped = add(store, "Milk is cold")
    plan = planned(store, max_facts=1, allowed=(dropped.id,))

    assert wire.condense_plan(json.loads(json.dumps(wire.condense_arguments(plan)))) == plan


def test_a_proposal_of_hundreds_of_facts_comes_back_whole(store):
    with store.write(ANNA) as write:
        for number in range(300):
            write.add(Claim(text=f"the bus number {number} stops here"))
            write.add(Claim(text=f"the bus number {number} really stops here"))
    condensed(store, planned(store, max_facts=300))

    assert len(list(store.facts())) == 300
    assert len(list(store.facts(EVERYTHING))) == 600
