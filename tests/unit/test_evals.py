"""Golden cases: how they are read, asked, judged and measured, on real memory files."""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memcli import wire_eval
from memcli.errors import NoFile, Unreadable, UsageError
from memcli.evals import (
    Answerer,
    Case,
    Defaults,
    Outcome,
    References,
    Spent,
    Tools,
    Verdict,
    figures,
    judge,
    mcnemar,
    measure,
    pair,
    reasons,
    run_cases,
    wilson,
)
from memcli.evals.measures import differences, latencies, macro, micro, peaks
from memcli.recall import PREFACE
from memcli.store import Store, create, open_store
from memcli.terms import Admission
from tests.files import ANNA, DAY, Clock, add, chat, cite, city, correct, memory, reject, take

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUNNING = FIXTURES / "openai_messages" / "longmemeval_personal_best.json"
SINCE = 1_767_225_600_000_000 + DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A memory that trusts what is written to it."""
    with memory(tmp_path / "memory.db", admission=Admission.DIRECT) as opened:
        yield opened


def tools(folder: Path, **changes: Any) -> Tools:
    """Return what a run needs: the memory of the folder, scratch ones beside it, characters for tokens."""

    @contextmanager
    def scratch(scope: str | None) -> Iterator[Store]:
        path = folder / f"scratch{len(list(folder.iterdir()))}.db"
        create(path, actor=ANNA, admission=Admission.DIRECT, scope=scope or "default")
        with open_store(path) as made:
            yield made

    def opened(path: str | None, scope: str | None) -> Store:
        return open_store(folder / (path or "memory.db"), scope=scope, now=Clock(SINCE))

    return Tools(**{"open": opened, "scratch": scratch, "counter": lambda _name: len, **changes})


def case(**told: Any) -> Case:
    """Return a case that asks about Anna, told otherwise where it is."""
    return Case(**{"id": "home", "path": "cases.toml", "query": "where does Anna live", **told})


def ran(store: Store, *cases: Case, **told: Any) -> list[Outcome]:
    """Return what became of cases that are asked of the memory of a test."""
    return list(run_cases(cases, tools(store.path.parent), Defaults(), **told))


def verdict(store: Store, **told: Any) -> Verdict:
    """Return the verdict on one case."""
    return ran(store, case(**told))[0].judged.verdict


# ---------------------------------------------------------------- verdicts


def test_what_is_expected_and_comes_back_is_a_pass(store):
    city(store, "Lisbon")

    assert verdict(store, expect=("Lisbon",)) is Verdict.PASS
    assert verdict(store, expect=("Lisbon",), forbid=("Berlin",)) is Verdict.PASS


def test_what_is_expected_and_missing_fails_and_says_where(store):
    city(store, "Lisbon")

    found = ran(store, case(expect=("Lisbon", "Porto")))[0].judged

    assert found.verdict is Verdict.FAIL
    assert reasons(found) == ["expected “Porto” is missing in recall and the block"]
    assert [check.wrong for check in found.expected] == [(), ("recall", "block")]


def test_a_forbidden_hit_fails_though_all_that_is_expected_is_there(store):
    city(store, "Lisbon")
    add(store, "Anna lived in Berlin")

    found = ran(store, case(expect=("Lisbon",), forbid=("berlin",)))[0].judged

    assert found.verdict is Verdict.FAIL
    assert reasons(found) == ["forbidden “berlin” is in recall and the block"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"forbid": ("Berlin",)}, Verdict.UNEXERCISED),
        ({"forbid": ("Berlin",), "control": ("Lisbon",)}, Verdict.PASS),
        ({"forbid": ("Berlin",), "control": ("Porto",)}, Verdict.UNEXERCISED),
        ({"forbid": ("Lisbon",), "control": ("Porto",)}, Verdict.FAIL),
        ({"forbid": ("Berlin",), "control": ("Porto",), "expect": ("Lisbon",)}, Verdict.UNEXERCISED),
        ({"forbid": ("Berlin",), "control": ("Lisbon",), "expect": ("Porto",)}, Verdict.FAIL),
    ],
)
def test_an_absence_counts_only_beside_a_presence(store, told, expected):
    city(store, "Lisbon")

    assert verdict(store, **told) is expected


def test_an_unexercised_case_says_what_it_lacks(store):
    city(store, "Lisbon")

    bare = ran(store, case(forbid=("Berlin",)))[0].judged
    lacking = ran(store, case(forbid=("Berlin",), control=("Porto",)))[0].judged

    assert "give expect or control" in reasons(bare)[0]
    assert reasons(lacking)[0].startswith("control “Porto” is missing in recall and the block")


def test_no_case_passes_on_a_memory_that_holds_nothing(store):
    asked = [
        case(id="expects", expect=("Lisbon",)),
        case(id="forbids", forbid=("Berlin",)),
        case(id="both", expect=("Lisbon",), forbid=("Berlin",)),
        case(id="controls", forbid=("Berlin",), control=("Lisbon",)),
        case(id="cites", evidence=("s1#0",)),
        case(id="slot", query=None, subject="anna", attribute="home city", forbid=("Berlin",)),
    ]

    empty = [outcome.judged.verdict for outcome in ran(store, *asked)]
    source = take(store, chat("I live in Lisbon"))
    city(store, "Lisbon", evidence=cite(f"{source}#0"))
    filled = [outcome.judged.verdict for outcome in ran(store, *asked)]

    fail, unexercised, passed = Verdict.FAIL, Verdict.UNEXERCISED, Verdict.PASS
    assert empty == [fail, unexercised, fail, unexercised, fail, unexercised]
    assert filled == [passed, unexercised, passed, passed, passed, unexercised]


def test_a_memory_that_gives_everything_passes_no_case_that_forbids(store):
    for name in ("Lisbon", "Berlin"):
        add(store, f"Anna lives in {name}")

    outcomes = ran(store, case(id="a", expect=("Lisbon",), forbid=("Berlin",)), case(id="b", expect=("Berlin",)))

    assert [outcome.judged.verdict for outcome in outcomes] == [Verdict.FAIL, Verdict.PASS]
    assert measure(outcomes).hits == 1


def test_spelling_and_case_make_no_difference_to_what_is_found_or_forbidden(store):
    add(store, "Anna  lives in LISBON")

    assert verdict(store, expect=("anna lives in lisbon",)) is Verdict.PASS
    assert verdict(store, forbid=("ｌｉｓｂｏｎ",)) is Verdict.FAIL


def test_a_value_is_found_where_the_text_does_not_say_it(store):
    add(store, "the trip has a budget", subject="trip", attribute="budget", value=2400.0)
    add(store, "the trip is booked", subject="trip", attribute="booked", value=True)

    assert verdict(store, query="trip budget booked", expect=("2400", "true")) is Verdict.PASS
    assert verdict(store, query="trip budget booked", expect=("2400.5",)) is Verdict.FAIL


def test_the_frame_of_the_block_is_neither_found_nor_forbidden(store):
    fact = add(store, "Anna likes tea")

    for words in ("memory", "instructions", PREFACE, fact.id[:8]):
        assert verdict(store, expect=(words,)) is Verdict.FAIL, words
        assert verdict(store, query="tea", expect=("tea",), forbid=(words,)) is Verdict.PASS, words


def test_what_recall_finds_and_the_budget_keeps_out_of_the_block_is_missing_there(store):
    add(store, "Anna lives in Lisbon")

    found = ran(store, case(expect=("Lisbon",), budget_tokens=10))[0]

    assert reasons(found.judged) == ["expected “Lisbon” is missing in the block"]
    assert (found.tokens, found.returned) == (0, ())


def test_k_is_an_upper_bound_of_what_comes_back(store):
    for number in range(5):
        add(store, f"Anna likes tea number {number}")

    one, all_of_them = ran(store, case(id="a", k=1, expect=("tea",)), case(id="b", expect=("tea",)))

    assert len(one.returned) == 1
    assert len(all_of_them.returned) == 5


def test_a_rejected_value_is_a_pass_where_its_neighbour_is_the_control(store):
    lisbon = city(store, "Lisbon")
    add(store, "Anna likes tea")
    told = {"query": "Anna", "forbid": ("Lisbon",), "control": ("tea",)}

    before = verdict(store, **told)
    reject(store, lisbon)

    assert before is Verdict.FAIL
    assert verdict(store, **told) is Verdict.PASS


# ---------------------------------------------------------------- slots and times


def test_a_slot_gives_its_value_now_and_the_one_it_had(tmp_path):
    clock = Clock()
    with memory(tmp_path / "memory.db", admission=Admission.DIRECT, now=clock) as store:
        berlin = city(store, "Berlin")
        known = clock()
        correct(store, berlin, "Anna lives in Lisbon")
        slot = {"query": None, "subject": "Anna", "attribute": "Home City"}

        assert verdict(store, **slot, expect=("Lisbon",), forbid=("Berlin",)) is Verdict.PASS
        assert verdict(store, **slot, known_at=known, expect=("Berlin",), forbid=("Lisbon",)) is Verdict.PASS


def test_another_attribute_of_the_subject_is_not_the_slot(store):
    city(store, "Lisbon")
    add(store, "Anna works in Porto", subject="anna", attribute="work city", value="Porto")

    slot = {"query": None, "subject": "anna", "attribute": "home city"}

    assert verdict(store, **slot, expect=("Lisbon",), forbid=("Porto",)) is Verdict.PASS


def test_a_case_that_asks_a_query_and_a_slot_expects_on_both(store):
    add(store, "Anna lives in Lisbon")

    found = ran(store, case(subject="anna", attribute="home city", expect=("Lisbon",)))[0].judged

    assert reasons(found) == ["expected “Lisbon” is missing in the slot"]


def test_a_case_sees_its_own_scope_and_no_other(store):
    city(store, "Lisbon")
    with memory(store.path, scope="bob") as bobs:
        add(bobs, "Anna lives in Porto")

    told = {"expect": ("Porto",), "forbid": ("Lisbon",)}

    assert verdict(store, **told, scope="bob") is Verdict.PASS
    assert verdict(store, **told) is Verdict.FAIL


# ---------------------------------------------------------------- references


def test_references_are_the_messages_behind_what_came_back(store):
    source = take(store, chat("I live in Lisbon", "noted", "I have a cat", "noted", "I live alone"))
    add(store, "Anna lives in Lisbon", evidence=cite(f"{source}#0"))
    add(store, "Anna lives with a cat", evidence=cite(f"{source}#2"))

    found = ran(store, case(expect=("Lisbon",), evidence=(f"{source}#0", f"{source}#4")))[0]

    assert found.references is not None
    assert set(found.references.cited) == {f"{source}#0", f"{source}#2"}
    assert found.judged.verdict is Verdict.PASS
    document = wire_eval.outcome(found)["references"]
    assert document == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "unreached": [f"{source}#4"]}


def test_evidence_is_judged_where_nothing_else_is_expected(store):
    source = take(store, chat("I live in Lisbon", "noted"))
    add(store, "Anna lives in Lisbon", evidence=cite(f"{source}#0"))

    assert verdict(store, evidence=(f"{source}#0",), forbid=("Berlin",)) is Verdict.PASS
    missed = ran(store, case(evidence=(f"{source}#1",)))[0].judged
    assert (missed.verdict, reasons(missed)) == (Verdict.FAIL, [f"no fact leads to {source}#1"])


def test_a_message_that_is_not_in_the_file_is_not_reached(store):
    city(store, "Lisbon")

    found = ran(store, case(expect=("Lisbon",), evidence=("s99#7",)))[0]

    assert found.references is not None
    assert found.references.unreached == ("s99#7",)


def test_micro_adds_the_counts_and_macro_means_the_cases():
    first = References(wanted=("a", "b"), cited=("a", "b"))
    second = References(wanted=("c",), cited=("d", "e", "f"))

    small, great = micro([first, second]), macro([first, second])

    assert (small.precision, small.recall, small.f1) == (2 / 5, 2 / 3, 4 / 8)
    assert (great.precision, great.recall, great.f1) == (0.5, 0.5, 0.5)


def test_precision_is_nought_where_nothing_is_cited():
    nothing = micro([References(wanted=("a",), cited=())])

    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


# ---------------------------------------------------------------- transcripts


def test_a_transcript_is_imported_and_extracted_into_a_memory_of_its_own(tmp_path):
    asked = [
        case(id="first", transcript=str(RUNNING), query="personal best", expect=("27:12",), evidence=(4,)),
        case(id="newer", transcript=str(RUNNING), query="personal best", expect=("25:50",), forbid=("27:12",)),
    ]

    first, newer = run_cases(asked, tools(tmp_path), Defaults(repeat=2))

    assert first.judged.verdict is Verdict.PASS
    assert first.db is None
    assert first.references == References(wanted=("s1#4",), cited=("s1#4",))
    assert newer.judged.verdict is Verdict.FAIL
    assert newer.adapted is first.adapted
    assert {name: len(runs) for name, runs in first.adapted.runs_ns.items()} == {"import": 2, "extract": 2}


def test_what_made_a_shared_memory_is_counted_once(tmp_path):
    asked = [case(id=name, transcript=str(RUNNING), query="best", expect=("27:12",)) for name in "abc"]

    measures = measure(run_cases(asked, tools(tmp_path), Defaults(repeat=2)))

    assert measures.latency["import"].runs == 2
    assert measures.latency["recall"].runs == 6


def test_evidence_by_number_goes_on_through_the_conversations_of_a_transcript(tmp_path):
    asked = case(transcript=str(RUNNING), query="best", expect=("27:12",), evidence=(4, 12))

    found = run_cases([asked], tools(tmp_path), Defaults())[0]

    assert found.references is not None
    assert found.references.wanted == ("s1#4", "s2#0")


def test_evidence_behind_the_end_of_a_transcript_is_a_mistake_in_the_case(tmp_path):
    asked = case(transcript=str(RUNNING), line=7, query="best", expect=("27:12",), evidence=(24,))

    with pytest.raises(Unreadable, match=r"cases.toml line 7: case home: evidence holds 24, .* has 24 messages"):
        run_cases([asked], tools(tmp_path), Defaults())


def test_a_transcript_that_is_not_there_is_unreadable(tmp_path):
    with pytest.raises(Unreadable, match=r"gone\.json"):
        run_cases([case(transcript=str(tmp_path / "gone.json"), expect=("x",))], tools(tmp_path), Defaults())


def test_a_transcript_from_which_nothing_is_read_passes_nothing(tmp_path):
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "How are you?"}]', encoding="utf-8")
    told = {"transcript": str(tmp_path / "chat.json"), "query": "user"}

    outcomes = run_cases(
        [case(id="a", forbid=("Berlin",), control=("user",), **told), case(id="b", expect=("you",), **told)],
        tools(tmp_path),
        Defaults(),
    )

    assert [item.judged.verdict for item in outcomes] == [Verdict.UNEXERCISED, Verdict.FAIL]


def test_a_memory_file_that_is_not_there_is_no_empty_memory(tmp_path):
    with pytest.raises(NoFile):
        run_cases([case(forbid=("x",), db="gone.db")], tools(tmp_path), Defaults())


def test_a_query_without_words_and_a_scope_that_is_none_are_mistakes_in_the_case(store):
    with pytest.raises(Unreadable, match="case home: there is no word in the query"):
        ran(store, case(query="?!", expect=("x",)))
    with pytest.raises(Unreadable, match="case home: a scope is one plain name"):
        ran(store, case(scope="*", expect=("x",)))


def test_nothing_is_written_to_the_memory(store):
    city(store, "Lisbon")
    before, head = store.path.read_bytes(), store.head()

    ran(store, case(expect=("Lisbon",)), case(id="b", query=None, subject="a", attribute="b", expect=("x",)))

    assert store.head() == head
    assert store.path.read_bytes() == before


# ---------------------------------------------------------------- what it takes


def test_every_operation_is_timed_as_often_as_is_wanted_and_traced_once_more(store):
    city(store, "Lisbon")
    ticks = iter(range(0, 10**9, 1_000_000))
    asked = case(expect=("Lisbon",), subject="anna", attribute="home city", repeat=3)

    found = run_cases([asked], tools(store.path.parent, clock_ns=lambda: next(ticks)), Defaults())[0]

    assert found.spent.runs_ns == dict.fromkeys(("recall", "context", "slot"), (1_000_000,) * 3)
    assert all(peak > 0 for peak in found.spent.peak_bytes.values())
    assert set(found.spent.peak_bytes) == {"recall", "context", "slot"}
    assert found.seconds == 0.019
    assert not tracemalloc.is_tracing()


def test_who_traces_memory_already_goes_on_doing_so(store):
    city(store, "Lisbon")
    tracemalloc.start()
    try:
        ran(store, case(expect=("Lisbon",)))

        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_median_and_p95_are_in_milliseconds_over_all_runs():
    even = latencies([Spent(runs_ns={"recall": (4_000_000, 1_000_000)}, peak_bytes={})])["recall"]
    many = latencies([Spent(runs_ns={"recall": tuple(range(10**6, 21 * 10**6, 10**6))}, peak_bytes={})])["recall"]
    pooled = latencies([Spent(runs_ns={"recall": (n * 10**6,)}, peak_bytes={}) for n in (3, 1, 2)])["recall"]

    assert (even.median, even.p95) == (2.5, 4.0)
    assert (many.runs, many.median, many.p95) == (20, 10.5, 19.0)
    assert (pooled.median, pooled.p95) == (2.0, 3.0)


def test_the_highest_peak_of_an_operation_is_reported():
    spent = [Spent(runs_ns={}, peak_bytes={"recall": n, "slot": 1}) for n in (5, 9, 7)]

    assert peaks(spent) == {"recall": 9, "slot": 1}


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize(
    ("passed", "cases", "low", "high"),
    [(0, 10, 0.0, 0.2775328), (10, 10, 0.7224672, 1.0), (8, 10, 0.4901625, 0.9433178), (1, 1, 0.2065493, 1.0)],
)
def test_the_interval_is_that_of_wilson(passed, cases, low, high):
    found = wilson(passed, cases)

    assert (found.rate, found.low, found.high) == pytest.approx((passed / cases, low, high), abs=1e-7)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p_value"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (1, 5, 0.21875), (3, 3, 1.0), (2, 10, 0.03857421875), (0, 10, 2 / 1024)],
)
def test_the_test_of_mcnemar_is_exact_and_two_sided(only_a, only_b, p_value):
    assert mcnemar(only_a, only_b) == p_value
    assert mcnemar(only_b, only_a) == p_value


def test_correctness_counts_an_unexercised_case_as_no_pass(store):
    city(store, "Lisbon")
    asked = [case(id="a", expect=("Lisbon",)), case(id="b", forbid=("x",)), case(id="c", expect=("Porto",))]

    found = measure(ran(store, *asked)).correctness

    assert (found.passed, found.failed, found.unexercised) == (1, 1, 1)
    assert found.share == wilson(1, 3)


def test_two_memories_are_paired_case_by_case(tmp_path):
    for name, home in (("a.db", "Berlin"), ("b.db", "Lisbon")):
        with memory(tmp_path / name, admission=Admission.DIRECT) as store:
            city(store, home)
            add(store, "Anna likes tea")
    asked = [
        case(id="home", expect=("Lisbon",)),
        case(id="was", expect=("Berlin",)),
        case(id="tea", query="tea", expect=("tea",)),
        case(id="cat", query="cat", expect=("cat",)),
    ]

    first, second = (run_cases(asked, tools(tmp_path), Defaults(), db=name) for name in ("a.db", "b.db"))
    paired = pair(first, second)

    assert (paired.both, paired.only_a, paired.only_b, paired.neither) == (("tea",), ("was",), ("home",), ("cat",))
    assert paired.p_value == 1.0
    shifts = differences(measure(first), measure(second))
    assert shifts["correctness.rate"] == (0.5, 0.5, 0.0)
    assert shifts["references.micro.f1"] == (None, None, None)
    assert set(shifts) == set(figures(measure(first)))


@pytest.mark.parametrize("own", [{"transcript": str(RUNNING)}, {"db": "other.db"}])
def test_a_case_with_a_memory_of_its_own_cannot_be_compared(tmp_path, own):
    with pytest.raises(UsageError, match="case home brings its own"):
        run_cases([case(expect=("x",), **own)], tools(tmp_path), Defaults(), db="a.db")


# ---------------------------------------------------------------- the task, with the memory and without


def answerer(folder: Path, body: str) -> Answerer:
    """Return an answerer whose program sees the request as `asked` and says `said`."""
    path = folder / "answerer.py"
    path.write_text(
        f"import json, sys\nasked = json.load(sys.stdin)\n{body}\nprint(json.dumps({{'answer': said}}))\n",
        encoding="utf-8",
    )
    return Answerer(f"{sys.executable} {path}", timeout_s=60)


TASKS = (
    case(id="expects", expect=("Lisbon",), forbid=("Berlin",)),
    case(id="controls", forbid=("Berlin",), control=("Lisbon",)),
    case(id="cites", evidence=("s9#9",)),
    case(id="forbids", forbid=("Berlin",)),
)


def scored(store: Store, body: str) -> tuple[bool, int, int, int]:
    """Return whether answers were judged, how many tasks there are, and passes with the memory and without."""
    outcomes = ran(store, *TASKS, answerer=answerer(store.path.parent, body) if body else None)
    found = measure(outcomes).ablation
    assert found is not None
    return found.by_answers, found.cases, found.given, found.bare


def test_an_answerer_that_uses_the_memory_is_better_with_it(store):
    city(store, "Lisbon")

    assert scored(store, "said = asked['context'] or 'I do not know'") == (True, 2, 2, 0)


def test_an_answerer_that_always_refuses_scores_nothing(store):
    city(store, "Lisbon")

    assert scored(store, "said = 'I cannot help with that'") == (True, 2, 0, 0)


def test_an_answerer_that_knows_it_anyway_scores_the_same_without(store):
    city(store, "Lisbon")

    assert scored(store, "said = 'Lisbon'") == (True, 2, 2, 2)


def test_an_answerer_that_says_everything_scores_nothing(store):
    city(store, "Lisbon")

    assert scored(store, "said = 'Lisbon or Berlin'") == (True, 2, 0, 0)


def test_without_an_answerer_the_block_is_judged_and_an_empty_one_passes_nothing(store):
    city(store, "Lisbon")

    assert scored(store, "") == (False, 2, 2, 0)


def test_an_answerer_is_told_the_case_the_question_and_the_block(store):
    city(store, "Lisbon")
    body = "said = json.dumps([sorted(asked), asked['version'], asked['id'], asked['query'], asked['context'][:8]])"

    task = ran(store, TASKS[0], answerer=answerer(store.path.parent, body))[0].task

    keys = '[["context", "id", "query", "version"], 1, "expects", "where does Anna live", '
    assert task is not None
    assert task.answer == keys + '"<memory>"]'
    assert task.bare_answer == keys + '""]'


def test_the_same_question_with_the_same_block_is_put_once(store):
    city(store, "Lisbon")
    asks = answerer(store.path.parent, "import uuid; said = uuid.uuid4().hex")

    first = asks.answer("home", "where", "here")

    assert asks.answer("home", "where", "here") == first
    assert asks.answer("home", "where", "there") != first


@pytest.mark.parametrize("printed", ['{"answer": 5}', '{"said": "x"}', '["x"]', "null"])
def test_what_is_no_answer_is_unreadable(tmp_path, printed):
    path = tmp_path / "odd.py"
    path.write_text(f"import sys; sys.stdin.read(); print({printed!r})", encoding="utf-8")

    with pytest.raises(Unreadable, match="it gave no answer to case home"):
        Answerer(f"{sys.executable} {path}", timeout_s=60).answer("home", "where", "")


def test_an_answer_is_not_judged_by_what_it_cites():
    asked = case(expect=("Lisbon",), evidence=("s1#0",))

    assert judge(asked, {"answer": ["Lisbon"]}, evidence=False).verdict is Verdict.PASS
    assert judge(case(evidence=("s1#0",)), {"answer": ["x"]}, evidence=False).verdict is Verdict.UNEXERCISED
