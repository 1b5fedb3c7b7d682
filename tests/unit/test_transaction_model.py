"""The model of the transaction protocol, the cases it is held to, and what the cases can tell apart."""

import json

import pytest

from tests.model_transactions import (
    BASELINES,
    CHECKS,
    FIXTURES,
    GATES,
    RULES,
    Model,
    cases,
    in_effect,
    run,
    tools,
)

PROFILES = {"published": "strict", "own": "strict", "hardened": "strict", "paper": "paper"}
"""The fixtures, and the profile of the gate that each is written for."""

EVERY = [(PROFILES[name], case) for name in PROFILES for case in cases(name)]
NEEDED = {
    "seed": {"id", "fact", "state"},
    "begin": {"tx"},
    "read": {"tx", "subject", "attribute", "expect"},
    "stage": {"tx", "id", "fact"},
    "commit": {"tx", "mode"},
    "abort": {"tx"},
    "revoke": {"id"},
    "tombstone": {"id"},
    "gate": {"tx", "tool", "premises", "expect"},
    "state": {"expect"},
    "effects": {"expect"},
    "served": {"subject", "attribute", "expect"},
    "leaks": {"expect"},
    "compensations": {"expect"},
    "repairs": {"root", "expect"},
    "tick": {"by"},
    "recover": set(),
}
MAY = {
    "begin": {"tier", "agent", "isolation", "lease"},
    "stage": {"expect", "supersedes"},
    "commit": {"expect"},
    "gate": {"action", "effect"},
}
FACT = {"subject", "attribute", "value", "source", "source_kind", "authority", "confidence"}
FACT_MAY = {"evidence", "valid_from", "valid_to", "kind", "derived_from", "scope", "visibility", "owner"}


def passed(name, kind, **settings):
    """Return the ids of the cases of a fixture and kind that a system gets right in effect, and how many there are."""
    asked = [case for case in cases(name) if case["kind"] == kind]
    return {case["id"] for case in asked if run(case, agree=in_effect, **settings) is None}, len(asked)


def misshapen(case):
    """Return a line for each thing that is not as the form of a case file has it."""
    found = [] if set(case) == {"id", "family", "kind", "title", "steps"} else [f"keys {sorted(case)}"]
    found += [] if case["kind"] in ("trap", "control") and case["steps"] else ["neither a trap nor a control"]
    found += [] if any("expect" in step for step in case["steps"]) else ["expects nothing"]
    for number, step in enumerate(case["steps"]):
        keys = set(step) - {"op"}
        needed = NEEDED[step["op"]]
        fits = needed <= keys <= needed | MAY.get(step["op"], set())
        fact = set(step.get("fact", FACT))
        found += [] if fits and fact >= FACT and fact <= FACT | FACT_MAY else [f"step {number} {step['op']}"]
    return found


def codes(listed):
    """Return every code that the `expect` of some step names."""
    expected = [step["expect"] for case in listed for step in case["steps"] if isinstance(step.get("expect"), dict)]
    return (
        {code for told in expected for code in told.get("verdicts", {}).values()}
        | {reason.split(":")[0] for told in expected for reason in told.get("reasons", [])}
        | {told["refused"] for told in expected if "refused" in told}
    )


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_model_passes_every_case(name):
    differences = {case["id"]: run(case, profile=PROFILES[name]) for case in cases(name)}

    assert differences
    assert {case: found for case, found in differences.items() if found} == {}


def test_there_are_as_many_cases_of_each_kind_as_promised():
    counted = {
        name: [sum(case["kind"] == kind for case in cases(name)) for kind in ("trap", "control")] for name in PROFILES
    }

    assert counted["published"] == [36, 18]
    assert counted["hardened"] == [40, 16]
    assert counted["own"] >= [24, 14]
    assert counted["own"][1] >= 14


def test_every_case_has_an_id_and_a_title_of_its_own():
    ids = [case["id"] for _, case in EVERY]
    titles = [(case["family"], case["title"]) for _, case in EVERY]

    assert len(ids) == len(set(ids)) > 150
    assert len(titles) == len(set(titles))


def test_every_case_has_the_published_form():
    assert {case["id"]: found for _, case in EVERY if (found := misshapen(case))} == {}


def test_a_case_of_another_form_is_named():
    case = cases("own")[0]
    step = case["steps"][0]

    assert misshapen(case) == []
    assert misshapen({**case, "kind": "maybe"}) == ["neither a trap nor a control"]
    assert misshapen({**case, "steps": [*case["steps"], {**step, "colour": "red"}]}) == [
        f"step {len(case['steps'])} begin"
    ]


def test_the_cases_are_written_one_object_a_line():
    for name in PROFILES:
        lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["id"] for line in lines] == [case["id"] for case in cases(name)]


def test_the_own_cases_expect_every_code_of_checks_and_gate():
    every = {code for code, _, _ in CHECKS} | set(GATES)

    assert codes(cases("own")) >= every
    assert len(every) == 30


@pytest.mark.parametrize("rule", RULES)
def test_a_system_without_one_rule_is_noticed(rule):
    noticed = [case["id"] for profile, case in EVERY if run(case, profile=profile, off=[rule])]

    assert noticed


def test_no_rule_is_off_unless_it_is_named():
    assert [rule for rule in RULES if not Model(tools()).on(rule)] == []
    assert not Model(tools(), off=["C_ECHO"]).on("C_ECHO")


@pytest.mark.parametrize("name", ["published", "own", "hardened"])
def test_writing_at_once_passes_most_controls_and_almost_no_trap(name):
    traps, of_traps = passed(name, "trap", **BASELINES["direct write"])
    controls, of_controls = passed(name, "control", **BASELINES["direct write"])

    assert len(traps) <= of_traps // 20
    assert len(controls) >= 2 * of_controls // 3


@pytest.mark.parametrize("name", ["published", "own", "hardened"])
def test_blocking_everything_passes_many_traps_and_almost_no_control(name):
    traps, of_traps = passed(name, "trap", **BASELINES["block everything"])
    controls, of_controls = passed(name, "control", **BASELINES["block everything"])

    assert len(traps) >= of_traps // 3
    assert len(controls) <= of_controls // 9


def test_blocking_everything_lets_no_call_through_that_should_be_blocked_and_none_that_should_not():
    asked = []
    for profile, case in EVERY:
        model = Model(tools(), profile=profile, **BASELINES["block everything"])
        for step in case["steps"]:
            got = model.step(step)
            asked += [(step["expect"]["allow"], got["allow"])] if step["op"] == "gate" else []

    assert set(asked) == {(True, False), (False, False)}


@pytest.mark.parametrize("name", ["published", "own", "hardened"])
@pytest.mark.parametrize("system", ["checks without gate", "gate without cascade"])
def test_half_a_protocol_passes_nearly_all_controls_and_misses_traps(name, system):
    traps, of_traps = passed(name, "trap", **BASELINES[system])
    controls, of_controls = passed(name, "control", **BASELINES[system])

    assert 0 < len(traps) < of_traps
    assert len(controls) >= of_controls - 1


def test_a_system_that_leaves_out_gate_or_cascade_misses_traps_that_the_other_half_catches():
    gateless, _ = passed("hardened", "trap", **BASELINES["checks without gate"])
    treeless, _ = passed("hardened", "trap", **BASELINES["gate without cascade"])

    assert gateless - treeless
    assert treeless - gateless


def staged(**fact):
    """Return a model with one open transaction and what staging this fact in it gives."""
    model = Model(tools())
    model.begin("t1")
    return model, model.stage("t1", "r1", {"subject": "svc", "attribute": "size", "value": 1, **fact})


def test_an_unknown_parent_is_refused_at_once_and_nothing_is_staged():
    model, answer = staged(derived_from=["nobody"])

    assert answer == {"refused": "X_UNKNOWN_PARENT"}
    assert model.rows()["records"] == []
    assert staged()[0].rows()["records"] != []


def test_a_record_cannot_be_its_own_parent():
    assert staged(derived_from=["r1"])[1] == {"refused": "X_CYCLE"}
    assert staged()[1] is None


def test_a_receipt_is_good_for_one_call():
    model = Model(tools())
    model.begin("t1")
    receipt = model.gate("t1", "draft")["receipt"]

    assert model.act(receipt, "first") is None
    assert model.act(receipt, "second") == {"refused": "X_RECEIPT"}
    assert model.effects() == {"first": "done"}


def test_a_receipt_is_void_once_a_premise_has_moved():
    model = Model(tools())
    model.seed("s1", {"subject": "svc", "attribute": "size", "value": 1})
    model.begin("t1")
    receipt = model.gate("t1", "wire", premises=["s1"])["receipt"]
    model.revoke("s1")

    assert model.act(receipt, "pay") == {"refused": "X_RECEIPT"}
    assert model.effects() == {}


def test_a_call_that_turns_out_done_after_its_premise_died_owes_then():
    model = Model(tools())
    model.seed("s1", {"subject": "svc", "attribute": "size", "value": 1})
    model.begin("t1")
    model.gate("t1", "wire", premises=["s1"], action="pay", effect="unknown")
    model.revoke("s1")
    before = model.leaks()
    model.finish("pay", "done")
    model.finish("pay", "failed")

    assert before == []
    assert model.leaks() == ["pay"]
    assert model.effects() == {"pay": "done"}


def test_a_check_gives_the_verdicts_of_the_commit_and_changes_nothing():
    model, _ = staged(confidence=0.1)
    before = model.rows()
    verdicts = model.check("t1")

    assert model.rows() == before
    assert model.commit("t1") == {"status": "held", "verdicts": verdicts}
    assert verdicts == {"r1": "E_LOW_CONF"}


def test_every_failing_rule_is_listed_in_order():
    model, _ = staged(confidence=0.1, evidence=[], valid_from=9)

    assert model.failing(model.transactions["t1"], model.records["r1"]) == ["E_NO_EVIDENCE", "E_LOW_CONF", "V_FUTURE"]
