"""The gate, receipts, actions, and what falls with a fact."""

import pytest

from memcli.errors import LeaseOver, NoReason, NotAllowed, NotFound, NotPermitted, OutOfScope, Stale, UsageError
from memcli.facts import Claim, PolicyRule
from memcli.store import open_store
from memcli.store.check import check
from memcli.terms import (
    ActionState,
    Admission,
    EffectKind,
    EffectState,
    Isolation,
    Kind,
    Op,
    Profile,
    State,
    Tier,
    Visibility,
)
from tests.files import ANNA, API, SCRIPT, Clock, behind, correct, memory, newest, reject
from tests.tx_files import AGENT_B, ARGS, allow, begin, believed, claim, commit, done, gate, leave, revoke, stage, trust


@pytest.fixture
def store(tmp_path):
    """Return an open file of admission `direct`, with tools, in which every agent may do everything."""
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as store:
        allow(store, hold_seat="reversible", publish="irreversible@public", wire="irreversible")
        yield store
        assert check(store) == []


# -------------------------------------------------------------------- the gate


def test_a_tool_that_no_rule_names_counts_as_irreversible(store):
    tx = begin(store)

    assert gate(store, tx, "launch").reasons == ("G3_NO_PREMISE",)
    assert gate(store, tx, "hold_seat").allow


def test_a_draft_of_anybody_shuts_the_gate_until_it_is_settled_and_names_itself(store):
    premise = believed(store, 9)
    theirs = begin(store, actor=AGENT_B)
    draft = stage(store, theirs, 8, attribute="b", actor=AGENT_B)
    shut = gate(store, begin(store), "wire", premise)
    commit(store, theirs, actor=AGENT_B)

    assert (shut.allow, shut.reasons, shut.blockers) == (False, (f"G1_UNSETTLED:{draft.id}",), (draft.id,))
    assert gate(store, begin(store), "wire", premise).allow
    assert "blocked" in (newest(store, Op.GATE, "tx3").reason or "")


def test_own_drafts_shut_the_gate_too(store):
    premise = believed(store, 9)
    tx = begin(store)
    draft = stage(store, tx, 8, attribute="b")

    assert gate(store, tx, "wire", premise).blockers == (draft.id,)


def test_an_external_call_needs_what_is_verified(store):
    accepted = believed(store, 9)
    first = gate(store, begin(store, tier=Tier.EXTERNAL), "wire", accepted)
    with store.write(ANNA) as write:
        write.verify(store.get(accepted.id))

    assert first.reasons == ("G2_NO_VERIFIED", "G3_PREMISE_STATE")
    assert gate(store, begin(store, tier=Tier.EXTERNAL), "wire", accepted).allow


def test_the_profile_of_the_paper_asks_for_less(store):
    premise = believed(store, 9)
    tx = begin(store, isolation=Isolation.RAW)

    assert gate(store, tx, "wire", premise).reasons == ("G5_WEAK_ISOLATION",)
    assert gate(store, tx, "wire", premise, profile=Profile.PAPER).allow


def test_a_tool_that_publishes_wider_than_its_premise_is_blocked(store):
    narrow, wide = believed(store, 9), believed(store, 8, attribute="b", visibility=Visibility.PUBLIC)

    assert gate(store, begin(store), "publish", narrow).reasons == ("G8_SINK_SCOPE",)
    assert gate(store, begin(store), "publish", wide).allow


def test_a_premise_whose_equal_rival_was_held_is_contested(store):
    trust(store, agentA=0.6, agentB=0.6)
    premise, other = believed(store, "red", attribute="team"), believed(store, 1, attribute="c")
    tx = begin(store)
    stage(store, tx, "blue", attribute="team", source="agentB")
    commit(store, tx)

    assert gate(store, begin(store), "wire", premise).reasons == ("G7_CONTESTED",)
    assert gate(store, begin(store), "wire", other).allow


def test_a_premise_of_another_scope_is_refused_and_an_unknown_one_is_missing(tmp_path, store):
    here = believed(store, 9)
    with open_store(tmp_path / "m.db", scope="side", now=store.now) as side:
        there = believed(side, 8)
    tx = begin(store)

    with pytest.raises(OutOfScope, match="another scope"):
        gate(store, tx, "wire", there)
    assert newest(store, Op.REFUSE).target == there.id
    with store.write(API) as write:
        missing = write.gate(tx.id, "wire", ARGS, ["0" * 16, here.id])
    assert missing.reasons == ("G3_NO_PREMISE",)
    with pytest.raises(NotFound), store.write(API) as write:
        write.gate(tx.id, "hold_seat", ARGS, ["0" * 16])


def test_a_call_needs_a_tool_and_a_digest(store):
    tx = begin(store)
    for tool, digest in ((" ", ARGS), ("wire", "")):
        with pytest.raises(UsageError), store.write(API) as write:
            write.gate(tx.id, tool, digest, [])

    assert gate(store, tx, "hold_seat").allow


@pytest.mark.parametrize(("kind", "value"), [("tool", "maybe"), ("tool", "irreversible@moon"), ("agent", "royal")])
def test_a_rule_that_says_nothing_is_refused(store, kind, value):
    before = store.policy()

    with pytest.raises(UsageError), store.write(ANNA) as write:
        write.set_policy(PolicyRule(kind=kind, name="x", value=value))
    assert store.policy() == before
    with store.write(ANNA) as write:
        write.set_policy(PolicyRule(kind="tool", name="x", value="reversible@shared"))
    assert len(store.policy()) == len(before) + 1


# -------------------------------------------------------------------- receipts and actions


def test_a_receipt_is_good_once(store):
    receipt = leave(store, "wire", believed(store, 9))
    with store.write(API) as write:
        action = write.act_begin(receipt.id, ARGS)

    with pytest.raises(NotAllowed, match="was used for action a1"), store.write(API) as write:
        write.act_begin(receipt.id, ARGS)
    assert store.action(receipt.id) == store.action("a1") == action
    assert action.state is ActionState.RUNNING


def test_a_receipt_is_good_for_its_arguments_and_no_others(store):
    receipt = leave(store, "wire", believed(store, 9))

    with pytest.raises(NotAllowed, match="for other arguments"), store.write(API) as write:
        write.act_begin(receipt.id, "blake2b:ffff")
    assert newest(store, Op.REFUSE).target == receipt.id
    with store.write(API) as write:
        assert write.act_begin(receipt.id, ARGS).state is ActionState.RUNNING


@pytest.mark.parametrize("name", ["r9", "9", "tx1", "a1"])
def test_an_unknown_receipt_is_not_found(store, name):
    leave(store, "wire", believed(store, 9))

    with pytest.raises(NotFound), store.write(API) as write:
        write.act_begin(name, ARGS)
    assert store.receipt("r1").tool == "wire"


def test_a_receipt_is_void_once_a_premise_changed(store):
    premise = believed(store, 9)
    receipt = leave(store, "wire", premise)
    correct(store, store.get(premise.id), "order7 refund due: 10")

    with pytest.raises(Stale, match="changed since receipt r1"), store.write(API) as write:
        write.act_begin(receipt.id, ARGS)
    assert store.actions() == []


def test_a_receipt_of_an_aborted_transaction_or_of_one_past_its_lease_is_void(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        premise = believed(store, 9)
        aborted, late = leave(store, "wire", premise), leave(store, "wire", premise)
        with store.write(API) as write:
            write.abort(aborted.tx)
        with pytest.raises(NotAllowed, match="is aborted"), store.write(API) as write:
            write.act_begin(aborted.id, ARGS)
        clock.time += 3600_000_000
        with pytest.raises(LeaseOver), store.write(API) as write:
            write.act_begin(late.id, ARGS)

        assert store.actions() == []


def test_an_action_ends_once_and_saying_so_again_changes_nothing(store):
    name = done(store, "wire", believed(store, 9))
    before = store.head()
    with store.write(API) as write:
        again = write.act_done(name)

    assert (again.state, store.head()) == (ActionState.DONE, before)
    with pytest.raises(NotAllowed), store.write(API) as write:
        write.act_failed(name)


def test_a_crash_in_between_leaves_an_action_unknown_until_somebody_found_out(tmp_path):
    clock = Clock()
    with memory(tmp_path / "m.db", admission=Admission.DIRECT, now=clock) as store:
        premise = believed(store, 9)
        receipt = leave(store, "wire", premise)
        with store.write(API) as write:
            action = write.act_begin(receipt.id, ARGS)
        clock.time += 3600_000_000
        with store.write(SCRIPT) as write:
            write.recover()
        unknown = store.action(action.id).state
        with pytest.raises(NotAllowed, match="is unknown"), store.write(API) as write:
            write.act_done(action.id)
        revoke(store, premise)
        owed = store.effects()
        with store.write(API) as write:
            write.act_reconcile(action.id, ActionState.DONE)

        assert (unknown, owed) == (ActionState.UNKNOWN, [])
        assert [effect.kind for effect in store.effects()] == [EffectKind.LEAK]
        with pytest.raises(UsageError), store.write(API) as write:
            write.act_reconcile(action.id, ActionState.PLANNED)
        assert check(store) == []


def test_an_action_that_ends_after_its_premise_fell_owes_at_birth(store):
    premise = believed(store, 9)
    receipt = leave(store, "hold_seat", premise)
    with store.write(API) as write:
        action = write.act_begin(receipt.id, ARGS)
    revoke(store, premise)
    before = store.effects()
    with store.write(API) as write:
        write.act_done(action.id)

    assert before == []
    assert [(item.kind, item.action, item.root) for item in store.effects()] == [
        (EffectKind.COMPENSATION, action.id, premise.id)
    ]


# -------------------------------------------------------------------- cascade


def family(store):
    """Return a belief, a summary of it, and a belief on that summary."""
    root = believed(store, 9)
    view = believed(store, "nine", attribute="summary", kind=Kind.SUMMARY, derived_from=(root.id,))
    leaf = believed(store, "pay", attribute="plan", derived_from=(view.id,))
    return root, view, leaf


def test_a_revoked_fact_takes_beliefs_views_and_actions_with_it_and_twice_is_once(store):
    root, view, leaf = family(store)
    names = [done(store, tool, leaf) for tool in ("wire", "hold_seat")]
    planned = leave(store, "wire", leaf)
    with store.write(API) as write:
        names.append(write.act_plan(planned.id, ARGS).id)
    revoke(store, root)
    states = [store.get(fact.id).state for fact in (root, view, leaf)]
    repairs, effects, head = store.repairs(), store.effects(), store.head()
    revoke(store, root)

    assert states == [State.REVOKED, State.DISPUTED, State.REVOKED]
    assert [(item.kind, item.action) for item in effects] == [
        (EffectKind.LEAK, names[0]),
        (EffectKind.COMPENSATION, names[1]),
    ]
    assert store.action(names[2]).state is ActionState.CANCELLED
    assert {(item.record, item.outcome) for item in repairs} == {
        (view.id, "disputed"),
        (leaf.id, "revoked"),
        (names[0], "leak"),
        (names[1], "compensation"),
        (names[2], "cancelled"),
    }
    assert (store.repairs(), store.effects(), store.head()) == (repairs, effects, head)


@pytest.mark.parametrize("end", ["retract", "tombstone", "erase"])
def test_every_way_to_end_a_fact_reaches_the_actions_that_rest_on_it(store, end):
    root, _, leaf = family(store)
    other = believed(store, "no", attribute="else")
    names = [done(store, "wire", fact) for fact in (leaf, other)]
    fact = store.get(root.id)
    with store.write(ANNA, "it was wrong") as write:
        if end == "retract":
            write.retract(fact)
        elif end == "erase":
            write.erase(write.plan_erase_facts([fact]))
    if end == "tombstone":
        reject(store, fact)

    assert [effect.action for effect in store.effects()] == names[:1]


def test_the_plan_of_a_revocation_is_a_tree_with_each_record_once_and_changes_nothing(store):
    root, view, leaf = family(store)
    both = believed(store, "x", attribute="both", derived_from=(root.id, leaf.id))
    action = done(store, "wire", leaf)
    before = store.head()
    plan = store.revoke_plan(store.get(root.id))

    assert (plan.fact.id, plan.becomes) == (root.id, "revoked")
    assert [(item.fact.id, item.becomes) for item in plan.below] == [(view.id, "disputed"), (both.id, "revoked")]
    assert [(item.fact.id, item.becomes) for item in plan.below[0].below] == [(leaf.id, "revoked")]
    assert [(item.action.id, item.becomes) for item in plan.below[0].below[0].below] == [(action, "leak")]
    assert store.head() == before


def test_revoke_needs_a_reason_and_somebody_who_may_decide(tmp_path):
    with memory(tmp_path / "m.db", admission=Admission.REVIEW) as store:
        with store.write(ANNA) as write:
            fact = write.add(Claim(text="tea is hot")).fact
        with pytest.raises(NoReason), store.write(ANNA) as write:
            write.revoke(fact)
        with pytest.raises(NotPermitted), store.write(SCRIPT, "no") as write:
            write.revoke(fact)

        assert store.get(fact.id).state is State.ACCEPTED
        assert revoke(store, fact).state is State.REVOKED


def test_an_effect_is_seen_and_then_dealt_with_and_never_goes_back(store):
    premise = believed(store, 9)
    done(store, "wire", premise)
    revoke(store, premise)
    with store.write(API) as write:
        seen = write.effect_ack("x1").state
        dealt = write.effect_done("x1").state
        still = write.effect_ack("x1").state

    assert (seen, dealt, still) == (EffectState.ACKED, EffectState.DONE, EffectState.DONE)
    with pytest.raises(NotFound), store.write(API) as write:
        write.effect_done("x2")


# -------------------------------------------------------------------- views


def test_a_view_is_built_anew_from_the_parents_that_survive(store):
    first, second = believed(store, 9), believed(store, 8, attribute="b")
    view = believed(store, "both", attribute="summary", kind=Kind.SUMMARY, derived_from=(first.id, second.id))
    revoke(store, first)
    with store.write(ANNA) as write:
        built = write.rebuild_view(store.get(view.id))

    assert (built.text, built.kind, built.derived_from) == (second.text, Kind.SUMMARY, (second.id,))
    assert store.get(built.id).readable
    assert (store.get(view.id).state, store.get(view.id).superseded_by) == (State.SUPERSEDED, built.id)


def test_what_took_the_place_of_a_parent_stands_for_it_and_a_given_text_is_taken(store):
    parent = believed(store, "Hull", subject="ship3", attribute="city")
    view = believed(store, "goes to Hull", attribute="summary", kind=Kind.SUMMARY, derived_from=(parent.id,))
    heir = believed(store, "York", subject="ship3", attribute="city")
    with store.write(ANNA) as write:
        built = write.rebuild_view(store.get(view.id), "goes to York")

    assert (built.text, built.value, built.derived_from) == ("goes to York", "goes to York", (heir.id,))
    assert store.stale(store.get(built.id)) is False


def test_a_view_without_ground_and_what_is_no_view_are_not_rebuilt(store):
    parent = believed(store, 9)
    view = believed(store, "nine", attribute="summary", kind=Kind.SUMMARY, derived_from=(parent.id,))
    with pytest.raises(NotAllowed, match="no view"), store.write(ANNA) as write:
        write.rebuild_view(store.get(parent.id))
    revoke(store, parent)
    with pytest.raises(NotAllowed, match="survives"), store.write(ANNA) as write:
        write.rebuild_view(store.get(view.id))

    assert store.get(view.id).state is State.DISPUTED


# -------------------------------------------------------------------- what check finds


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("update transactions set status = 'open', closed_at = null where id = 1", "row-tampered"),
        ("update receipts set arguments = 'x'", "row-tampered"),
        ("update actions set state = 'failed'", "row-tampered"),
        ("update premises set version = 7", "row-tampered"),
        ("update verdicts set code = 'PASS!'", "row-tampered"),
        ("update effects set state = 'done'", "row-differs"),
    ],
)
def test_a_row_that_was_changed_behind_the_file_is_found(tmp_path, sql, code):
    path = tmp_path / "m.db"
    with memory(path, admission=Admission.DIRECT) as store:
        premise = believed(store, 9)
        done(store, "wire", premise)
        revoke(store, premise)
        assert check(store) == []
    with behind(path, as_mem=True) as conn:
        conn.execute(sql)

    with open_store(path) as store:
        assert code in {finding.code for finding in check(store)}


def test_the_same_claim_with_its_source_may_be_added_without_a_transaction(store):
    trust(store, crm=0.3)
    with store.write(SCRIPT) as write:
        fact = write.add(claim(9, source="crm")).fact

    assert (fact.authority, fact.state) == (0.3, State.ACCEPTED)
    assert len(fact.provenance) == 1
