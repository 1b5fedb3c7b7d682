"""What holds of judging and measuring whatever came back."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcli.evals import Case, References, Spent, Verdict, judge, mcnemar, reasons, wilson
from memcli.evals.measures import latencies, macro, micro, of_case

WORDS = st.sampled_from(("lisbon", "berlin", "porto", "tea", "27:12"))
TEXTS = st.lists(WORDS, max_size=3, unique=True).map(tuple)
SAID = st.lists(st.lists(WORDS, min_size=1, max_size=3).map(" and ".join), max_size=4)
HEARD = st.fixed_dictionaries({"recall": SAID, "block": SAID})
CASES = st.builds(
    Case,
    id=st.just("a"),
    path=st.just("cases.toml"),
    query=st.just("x"),
    expect=TEXTS,
    forbid=TEXTS,
    control=TEXTS,
    evidence=st.sampled_from(((), ("s1#0",))),
)
UNREACHED = st.sampled_from(((), ("s1#0",)))
COUNTS = st.integers(0, 400)
MESSAGES = st.lists(st.sampled_from("abcdefg"), max_size=6, unique=True).map(tuple)
REFERENCES = st.builds(References, wanted=MESSAGES.filter(bool), cited=MESSAGES)


@given(CASES)
def test_nothing_passes_where_nothing_came_back(case):
    nothing = judge(case, {"recall": (), "block": ()}, unreached=case.evidence)

    assert nothing.verdict is not Verdict.PASS
    assert nothing.hits == 0


@given(CASES, HEARD, UNREACHED)
def test_a_pass_has_seen_a_presence_and_has_no_fault(case, heard, unreached):
    judged = judge(case, heard, unreached=unreached if case.evidence else ())

    assert bool(reasons(judged)) is (judged.verdict is not Verdict.PASS)
    if judged.verdict is Verdict.PASS:
        assert case.expect or case.control or case.evidence
        assert all(any(text in said for said in heard[place]) for text in case.expect for place in heard)
        assert not any(text in said for text in case.forbid for place in heard for said in heard[place])


@given(CASES, HEARD, WORDS)
def test_a_forbidden_text_that_comes_back_besides_never_mends_a_case(case, heard, text):
    forbidding = Case(id="a", path="p", expect=case.expect, forbid=(*case.forbid, text), control=case.control)

    judged = judge(forbidding, {**heard, "block": [*heard["block"], text]})

    assert judged.verdict is Verdict.FAIL


@given(CASES, HEARD)
def test_one_more_control_never_makes_a_pass(case, heard):
    fewer = judge(case, heard)
    more = judge(
        Case(id="a", path="p", expect=case.expect, forbid=case.forbid, control=(*case.control, "nowhere")), heard
    )

    assert more.verdict is not Verdict.PASS
    assert (more.verdict is Verdict.FAIL) >= (fewer.verdict is Verdict.FAIL and not case.evidence)


@given(COUNTS, st.integers(1, 400))
def test_the_interval_holds_the_share_and_is_narrower_for_more_cases(passed, cases):
    passed = min(passed, cases)
    found, more = wilson(passed, cases), wilson(passed * 4, cases * 4)

    assert 0 <= found.low <= found.rate <= found.high <= 1
    assert found.high - found.low > more.high - more.low
    mirrored = wilson(cases - passed, cases)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-12)


@given(COUNTS, COUNTS)
def test_the_test_of_mcnemar_is_the_sum_of_both_tails(only_a, only_b):
    cases, least = only_a + only_b, min(only_a, only_b)
    tails = 2 * Fraction(sum(math.comb(cases, at) for at in range(least + 1)), 2**cases)

    assert mcnemar(only_a, only_b) == float(min(Fraction(1), tails))
    assert mcnemar(only_a, only_b) == mcnemar(only_b, only_a)
    assert mcnemar(only_a, only_a) == 1.0


@given(REFERENCES)
def test_the_scores_of_one_case_are_the_same_summed_and_meant(references):
    one = of_case(references)

    assert one == micro([references])
    assert (one.precision, one.recall, one.f1) == (
        macro([references]).precision,
        macro([references]).recall,
        macro([references]).f1,
    )
    both = one.precision + one.recall
    assert one.f1 == pytest.approx(2 * one.precision * one.recall / both if both else 0.0)
    assert len(references.unreached) == len(references.wanted) - references.reached


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60))
def test_p95_is_the_least_time_that_so_many_runs_did_not_exceed(taken):
    found = latencies([Spent(runs_ns={"recall": tuple(taken)}, peak_bytes={})])["recall"]

    within = [item for item in taken if item / 1e6 <= found.p95]
    below = [item for item in taken if item / 1e6 < found.p95]
    assert 100 * len(within) >= 95 * len(taken) > 100 * len(below)
    assert 2 * sum(item / 1e6 <= found.median for item in taken) >= len(taken)
    assert 2 * sum(item / 1e6 >= found.median for item in taken) >= len(taken)
