"""Transactions in a file: begin, read, stage, check, commit, abort, recover, and what refuses them."""

import pytest

from memcli.errors import (
    Closed,
    Cycle,
    LeaseOver,
    NotAllowed,
    NotFound,
    NotPermitted,
    OutOfScope,
    Refused,
    Tombstoned,
    UnknownParent,
    UsageError,
)
from memcli.facts import Evidence
from memcli.store import open_store
from memcli.store.check import check
from memcli.store.queue import Queue
from memcli.terms import (
    HELD_FOR_REVIEW,
    HELD_WITH_TX,
    Admission,
    Code,
    Isolation,
    Op,
    State,
    Tier,
    TxStatus,
    Visibility,
)
from tests.files import ANNA, API, SCRIPT, Clock, add, behind, chat, cite, memory, newest, reject, take, texts
from tests.tx_files import AGENT_B, allow, begin, believed, claim, commit, revoke, stage, trust


@pytest.fixture
def store(tmp_path):
    """Return an open file of admission `direct` in which every agent may do everything."""
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as store:
        allow(store)
        yield store
        assert check(store) == []


def codes(store, tx):
    return [str(item.code) for item in store.checks(tx.id)]


# -------------------------------------------------------------------- begin


def test_a_transaction_is_the_same_in_another_process(tmp_path, store):
    begun = begin(store, tier=Tier.HIGH, lease_s=60)

    with open_store(tmp_path / "m.db") as other:
        assert other.transaction(begun.id) == begun == other.transactions()[0]
    assert (begun.id, begun.agent, begun.status, begun.isolation) == ("tx1", "agent", "open", Isolation.STABLE)
    assert begun.lease_until - begun.begun_at <= 60_000_000 + 5_000_000


def test_the_tier_of_an_agent_is_for_the_policy_to_say(tmp_path):
    with memory(tmp_path / "m.db") as store:
        with pytest.raises(NotPermitted, match="up to tier medium"):
            begin(store, tier=Tier.EXTERNAL)
        allow(store, tier=Tier.EXTERNAL)

        assert begin(store, tier=Tier.EXTERNAL).isolation is Isolation.VERIFIED
        assert newest(store, Op.REFUSE).target == "agent:agent"


@pytest.mark.parametrize("told", [{"lease_s": 0}, {"lease_s": -1}, {"lease_s": float("inf")}, {"agent": "  "}])
def test_a_lease_and_an_agent_have_to_be_something(store, told):
    with pytest.raises(UsageError):
        begin(store, **told)

    assert store.transactions() == []
    assert begin(store).id == "tx1"


@pytest.mark.parametrize("name", ["tx9", "9", "r1", "tx", "tx1x"])
def test_an_unknown_transaction_is_not_found(store, name):
    tx = begin(store)

    with pytest.raises(NotFound):
        store.transaction(name)
    assert store.transaction(tx.id.upper()) == tx


def test_a_transaction_of_another_scope_is_out_of_reach(tmp_path, store):
    tx = begin(store)

    with open_store(tmp_path / "m.db", scope="other", now=store.now) as other:
        with pytest.raises(OutOfScope), other.write(API) as write:
            write.commit(tx.id)
        assert other.transactions() == []
    assert commit(store, tx).status is TxStatus.COMMITTED


# -------------------------------------------------------------------- read


def test_the_same_question_has_the_same_answer_whatever_was_committed_since(store):
    believed(store, "Hull", subject="ship3", attribute="city")
    tx = begin(store)
    with store.write(API) as write:
        first = write.read(tx.id, "ship3", "city")
    believed(store, "York", subject="ship3", attribute="city")
    with store.write(API) as write:
        again, later = write.read(tx.id, "ship3", "city"), write.read(begin_in(write), "ship3", "city")

    assert [fact.value for fact in first] == ["Hull"]
    assert again == first
    assert [fact.value for fact in later] == ["York"]


def begin_in(write):
    return write.begin().id


def test_a_private_fact_is_read_by_its_owner_alone(store):
    believed(store, 41, attribute="score", visibility=Visibility.PRIVATE)
    with store.write(AGENT_B) as write:
        theirs = write.read(write.begin().id, "order7", "score")
    with store.write(API) as write:
        mine = write.read(write.begin().id, "order7", "score")

    assert theirs == ()
    assert [fact.value for fact in mine] == [41]


def test_a_raw_read_shows_drafts_and_an_ordinary_one_does_not(store):
    stage(store, begin(store), "yes", attribute="go")
    with store.write(AGENT_B) as write:
        plain = write.read(write.begin().id, "order7")
        raw = write.read(write.begin(isolation=Isolation.RAW).id, "order7")

    assert plain == ()
    assert [fact.value for fact in raw] == ["yes"]


def test_a_read_keeps_no_words_of_the_question(store):
    with store.write(API) as write:
        write.read(write.begin().id, "wholesale-otter", "home")
    with behind(store.path) as conn:
        kept = conn.execute("select * from reads").fetchall()

    assert len(kept) == 1
    assert "wholesale-otter" not in repr(kept)


# -------------------------------------------------------------------- stage


def test_a_staged_fact_is_shown_to_nobody_and_waits_in_no_queue_until_its_transaction_is_over(store):
    tx = begin(store)
    fact = stage(store, tx, 9)
    waiting, believed_now = store.waiting(), texts(store.facts())
    listed = len(Queue(store))
    with store.write(API) as write:
        write.stage(tx.id, claim("x", attribute="other", confidence=0.1))
    commit(store, tx)

    assert fact.state is State.TENTATIVE
    assert (waiting, listed, believed_now) == (0, 0, [])
    assert {item.fact.id for item in Queue(store)} >= {fact.id}
    assert store.waiting() == 2


@pytest.mark.parametrize("op", ["accept", "dispute", "retract", "verify"])
def test_a_draft_is_decided_by_its_transaction_and_by_nobody_else(store, op):
    tx = begin(store)
    fact = stage(store, tx, 9)

    with pytest.raises(NotAllowed, match="staged in tx1"), store.write(ANNA, "why not") as write:
        getattr(write, op)(fact)
    assert commit(store, tx).verdicts == {fact.id: Code.PASS}


def test_an_offer_of_the_same_value_neither_sees_nor_believes_a_draft(store):
    fact = stage(store, begin(store), 9)
    offered = add(store, "order7 refund due: 9", subject="order7", attribute="refund due", value=9)

    assert offered.id != fact.id
    assert store.get(fact.id).state is State.TENTATIVE


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"derived_from": ("0123456789abcdef",)}, UnknownParent),
        ({"derived_from": ("no such id",)}, UnknownParent),
        ({"subject": None}, NotAllowed),
        ({"confidence": 1.5}, NotAllowed),
    ],
)
def test_what_cannot_be_staged_is_refused_at_once_and_a_neighbour_is_not(store, told, problem):
    tx = begin(store)

    with pytest.raises(problem):
        stage(store, tx, 9, **told)
    kept = stage(store, tx, 9)

    assert store.transaction(tx.id).staged == (kept.id,)


def test_an_unknown_parent_is_in_the_log_as_a_refusal(store):
    with pytest.raises(UnknownParent):
        stage(store, begin(store), 9, derived_from=("0123456789abcdef",))

    event = newest(store, Op.REFUSE)
    assert (event.target, event.reason) == ("fact:0123456789abcdef", "unknown-parent")


def test_a_tombstoned_value_is_refused_when_it_is_staged_and_again_when_the_stone_came_later(store):
    rejected = believed(store, 900)
    tx = begin(store)
    early = stage(store, tx, 901, attribute="b", references=("src:x",))
    reject(store, rejected)
    with pytest.raises(Tombstoned):
        stage(store, tx, 900, references=("src:new",))
    with store.write(ANNA, "no") as write:
        write.tombstone(write.plan_value("901"))

    assert store.get(early.id).state is State.TENTATIVE
    assert commit(store, tx).verdicts == {early.id: Code.C_TOMBSTONED}
    assert store.get(early.id).state is State.REVOKED


def test_nobody_but_a_person_says_what_a_fact_supersedes(store):
    trust(store, director=0.3)
    old = believed(store, "ten", attribute="opens")
    told = {"attribute": "opens", "source": "director"}
    with pytest.raises(NotPermitted, match="what a fact supersedes"):
        stage(store, begin(store), "nine", supersedes=old.id, **told)
    tx = begin(store, actor=ANNA)
    new = stage(store, tx, "nine", actor=ANNA, supersedes=[old.id], **told)

    assert commit(store, tx, actor=ANNA).verdicts == {new.id: Code.PASS}
    assert store.get(old.id).state is State.SUPERSEDED


def test_a_claimed_authority_counts_for_no_more_than_the_policy_gives_its_source(store):
    trust(store, agentA=0.3)
    tx = begin(store)
    big, small = stage(store, tx, 1, authority=0.99), stage(store, tx, 2, attribute="b", authority=0.1)

    assert (big.authority, small.authority) == (0.3, 0.1)


def test_a_payload_that_says_it_is_human_counts_as_an_agent(store):
    from memcli.terms import SourceKind

    tx = begin(store)
    said = stage(store, tx, 1, source="boss", source_kind=SourceKind.HUMAN)
    typed = stage(store, tx, 2, attribute="b", source="chief", source_kind=SourceKind.HUMAN, actor=ANNA)

    assert (said.authority, typed.authority) == (0.5, 0.6)


# -------------------------------------------------------------------- lease and clock


def test_past_its_lease_a_transaction_takes_nothing_and_its_commit_aborts(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        tx = begin(store, lease_s=60)
        fact = stage(store, tx, 9)
        clock.time += 120_000_000
        with pytest.raises(LeaseOver), store.write(API) as write:
            write.stage(tx.id, claim(8, attribute="b"))
        with pytest.raises(LeaseOver), store.write(API) as write:
            write.read(tx.id)
        with pytest.raises(LeaseOver), store.write(API) as write:
            write.gate(tx.id, "wire", "x", [])

        assert newest(store, Op.REFUSE).reason == "lease-over"
        verdict = commit(store, tx)
        assert (verdict.status, verdict.verdicts) == (TxStatus.ABORTED, {fact.id: Code.X_LEASE_OVER})
        assert store.get(fact.id).state is State.REVOKED
        assert check(store) == []


def test_recover_aborts_what_is_past_its_lease_once_and_leaves_the_rest(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        short, long = begin(store, lease_s=60), begin(store, lease_s=6000)
        lost, kept = stage(store, short, 9), stage(store, long, 8, attribute="b")
        clock.time += 120_000_000
        with store.write(SCRIPT) as write:
            first = write.recover()
        with store.write(SCRIPT) as write:
            second = write.recover()

        assert ([tx.id for tx in first], second) == ([short.id], [])
        assert [store.get(fact.id).state for fact in (lost, kept)] == [State.REVOKED, State.TENTATIVE]


def test_a_clock_that_goes_back_neither_lengthens_a_lease_nor_hides_what_was_committed(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        tx = begin(store, lease_s=60)
        stage(store, tx, 9)
        clock.time += 90_000_000
        add(store, "a sign that it is late")
        clock.time -= 3600_000_000
        late = begin(store)
        with pytest.raises(LeaseOver):
            stage(store, tx, 8, attribute="b")
        fact = stage(store, late, 7, attribute="c")

        assert commit(store, late).verdicts == {fact.id: Code.PASS}
        assert late.begun_at > tx.lease_until
        assert check(store) == []


# -------------------------------------------------------------------- commit


def test_a_closed_transaction_takes_nothing_more(store):
    tx = begin(store)
    commit(store, tx)

    for act in (
        lambda write: write.stage(tx.id, claim(9)),
        lambda write: write.commit(tx.id),
        lambda write: write.abort(tx.id),
        lambda write: write.read(tx.id),
        lambda write: write.gate(tx.id, "wire", "x", []),
    ):
        with pytest.raises(Closed), store.write(API) as write:
            act(write)
    assert newest(store, Op.REFUSE).target == tx.id


def test_the_check_lists_every_rule_and_the_commit_says_the_first(store):
    tx = begin(store)
    fact = stage(store, tx, 9, references=(), confidence=0.1)
    other = stage(store, tx, 8, confidence=0.1)
    listed = store.checks(tx.id)
    verdict = commit(store, tx)

    assert [item.code for item in listed if item.fact == fact.id] == [
        Code.E_NO_EVIDENCE,
        Code.E_LOW_CONF,
        Code.C_INTRA_TX,
    ]
    assert [item.about for item in listed if item.code is Code.C_INTRA_TX] == [(other.id,), (fact.id,)]
    assert verdict.verdicts == {fact.id: Code.E_NO_EVIDENCE, other.id: Code.E_LOW_CONF}


def test_a_check_changes_nothing(store):
    tx = begin(store)
    stage(store, tx, 9)
    before = store.head()

    assert codes(store, tx) == ["PASS"]
    assert store.head() == before


def test_one_hold_holds_the_whole_transaction_and_says_so_in_the_queue(store):
    tx = begin(store)
    bad, good = stage(store, tx, 9, confidence=0.1), stage(store, tx, 8, attribute="b")
    verdict = commit(store, tx)

    assert (verdict.status, verdict.verdicts) == (TxStatus.HELD, {bad.id: Code.E_LOW_CONF, good.id: Code.PASS})
    assert {item.fact.id: item.detail for item in Queue(store)} == {bad.id: "E_LOW_CONF", good.id: HELD_WITH_TX}
    assert texts(store.facts()) == []


def test_settled_each_by_itself_the_good_half_is_believed(store):
    tx = begin(store)
    bad, good = stage(store, tx, 9, confidence=0.1), stage(store, tx, 8, attribute="b")
    verdict = commit(store, tx, partial=True)

    assert verdict.status is TxStatus.COMMITTED
    assert [store.get(fact.id).state for fact in (bad, good)] == [State.DISPUTED, State.ACCEPTED]


def test_children_are_checked_after_their_parents_and_fall_or_wait_with_them(store):
    tx = begin(store)
    parent = stage(store, tx, 9, confidence=0.1)
    child = stage(store, tx, 8, attribute="b", derived_from=(parent.id,))

    assert commit(store, tx, partial=True).verdicts == {
        parent.id: Code.E_LOW_CONF,
        child.id: Code.D_DISPUTED_ANCESTOR,
    }


def test_an_external_commit_verifies_what_passed(store):
    tx = begin(store, tier=Tier.EXTERNAL)
    fact = stage(store, tx, 9)

    assert commit(store, tx).status is TxStatus.COMMITTED
    assert store.get(fact.id).state is State.VERIFIED


def test_a_superseded_parent_leaves_its_children_readable_and_stale(store):
    parent = believed(store, "Hull", subject="ship3", attribute="city")
    child = believed(store, "north", subject="ship3", attribute="region", derived_from=(parent.id,))
    fresh = store.stale(store.get(child.id))
    believed(store, "York", subject="ship3", attribute="city")

    assert fresh is False
    assert store.stale(store.get(child.id)) is True
    assert store.get(child.id).readable


def test_a_quote_that_is_not_in_its_message_is_no_evidence(store):
    source = take(store, chat("the refund is 9", "noted"))
    tx = begin(store)
    good = stage(store, tx, 9, references=(), evidence=cite(f"{source}#0", "refund is 9"))
    bad = stage(store, tx, 8, attribute="b", references=(), evidence=cite(f"{source}#0", "refund is 8"))

    assert commit(store, tx, partial=True).verdicts == {good.id: Code.PASS, bad.id: Code.E_NO_EVIDENCE}


def test_evidence_that_was_erased_since_is_no_evidence(store):
    source = take(store, chat("the refund is 9", "noted"))
    tx = begin(store)
    fact = stage(store, tx, 9, references=(), evidence=(Evidence(message=f"{source}#0"),))
    with store.write(ANNA, "asked to") as write:
        write.erase(write.plan_erase_source(source))

    assert commit(store, tx).status is not TxStatus.COMMITTED
    assert store.get(fact.id).readable is False


def test_a_held_fact_is_checked_again_in_another_transaction_with_the_parent_it_did_not_name(store):
    parent = believed(store, 41, attribute="score", visibility=Visibility.PRIVATE)
    tx = begin(store)
    with store.write(API) as write:
        write.read(tx.id, "order7", "score")
    held = stage(store, tx, "low", attribute="risk")
    first = commit(store, tx).verdicts
    with store.write(API) as write:
        again = write.begin()
        write.restage(again.id, write.fact(write.fact_number(held.id)), (parent.id,))

    assert first == {held.id: Code.P_UNDECLARED_READ}
    assert store.get(held.id).derived_from == (parent.id,)
    assert codes(store, again) == [str(Code.P_SCOPE_WIDEN)]


def test_a_fact_is_never_derived_from_itself(store):
    parent_tx = begin(store)
    parent = stage(store, parent_tx, 9, confidence=0.1)
    commit(store, parent_tx)
    tx = begin(store)
    child = stage(store, tx, 8, attribute="b", derived_from=(parent.id,))

    with pytest.raises(Cycle), store.write(API) as write:
        write.restage(tx.id, write.fact(write.fact_number(parent.id)), (child.id,))
    assert newest(store, Op.REFUSE).reason == "cycle"
    assert store.get(parent.id).derived_from == ()


def test_an_aborted_transaction_takes_with_it_what_others_built_on_its_drafts_and_twice_is_once(store):
    mine, theirs = begin(store), begin(store, actor=AGENT_B)
    parent = stage(store, mine, 9)
    child = stage(store, theirs, 8, attribute="b", actor=AGENT_B, derived_from=(parent.id,))
    for _ in range(2):
        with store.write(API) as write:
            aborted = write.abort(mine.id)

    assert aborted.status is TxStatus.ABORTED
    assert [store.get(fact.id).state for fact in (parent, child)] == [State.REVOKED, State.REVOKED]
    assert commit(store, theirs, actor=AGENT_B).verdicts == {child.id: Code.D_REVOKED_ANCESTOR}


# -------------------------------------------------------------------- admission


def test_in_a_checked_file_facts_enter_through_transactions_only(tmp_path):
    with memory(tmp_path / "m.db", admission=Admission.CHECKED) as store:
        with pytest.raises(NotPermitted):
            add(store, "order7 refund due: 9")
        fact = believed(store, 9)

        assert fact.state is State.ACCEPTED
        assert check(store) == []


def test_in_a_reviewed_file_a_pipe_commits_nothing_and_a_person_does(tmp_path):
    with memory(tmp_path / "m.db", admission=Admission.REVIEW) as store:
        tx = begin(store)
        fact = stage(store, tx, 9)
        verdict = commit(store, tx)
        waiting = {item.fact.id: item.detail for item in Queue(store)}
        with store.write(ANNA) as write:
            write.accept(store.get(fact.id))
        typed = begin(store, actor=ANNA)
        other = stage(store, typed, 8, attribute="b", actor=ANNA)

        assert (verdict.status, verdict.verdicts) == (TxStatus.HELD, {fact.id: Code.PASS})
        assert waiting == {fact.id: HELD_FOR_REVIEW}
        assert commit(store, typed, actor=ANNA).status is TxStatus.COMMITTED
        assert [store.get(each.id).state for each in (fact, other)] == [State.ACCEPTED, State.ACCEPTED]
        assert check(store) == []


def test_a_scope_with_an_open_transaction_is_merged_into_no_other(tmp_path, store):
    with open_store(tmp_path / "m.db", scope="side", now=store.now) as side:
        add(side, "tea is hot")
        tx = begin(side)
    with pytest.raises(Refused, match="tx1"), store.write(ANNA, "one is enough") as write:
        write.merge_scopes("side", "default")
    with open_store(tmp_path / "m.db", scope="side", now=store.now) as side:
        commit(side, tx)
    with store.write(ANNA, "one is enough") as write:
        write.merge_scopes("side", "default")

    assert [item.id for item in store.transactions()] == [tx.id]
    assert texts(store.facts()) == ["tea is hot"]


def test_a_revoked_value_comes_back_on_new_evidence_only(store):
    revoke(store, believed(store, 900))
    tx = begin(store)
    echo = stage(store, tx, 900)
    held = commit(store, tx)

    assert held.verdicts == {echo.id: Code.C_ECHO}
    assert believed(store, 900, references=("src:agentA", "src:invoice-12")).readable
