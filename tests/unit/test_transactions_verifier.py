"""A verifier: what it is asked, what its answers may do, and what becomes of answers that are none."""

import json
import sys
from pathlib import Path

import pytest

from memcli.errors import Stale, UsageError
from memcli.store.check import check
from memcli.store.queue import Queue
from memcli.terms import Admission, Code, Ruling, State, TxStatus
from memcli.transactions import verifier
from tests.files import API, memory
from tests.tx_files import allow, begin, believed, commit, stage

ROOT = Path(__file__).parents[2]
STAGES_ANOTHER = """
from pathlib import Path
from memcli.facts import Claim
from memcli.store import open_store
from tests.files import API

seen = Path(__file__).with_name("seen")
if not seen.exists():
    seen.touch()
    with open_store({path!r}, now=lambda: 0) as store, store.write(API) as write:
        write.stage("tx1", Claim(text="tea is hot", references=("src:agentA",)))
"""
"""What a verifier does when it is first asked: it stages one more fact in the transaction that is being checked."""


@pytest.fixture
def store(tmp_path):
    """Return an open file of admission `direct`."""
    with memory(tmp_path / "m.db", admission=Admission.DIRECT) as store:
        allow(store)
        yield store
        assert check(store) == []


def command(tmp_path, code):
    """Return a command line that runs a program with what it is asked in `asked`."""
    path = tmp_path / "verifier.py"
    path.write_text(
        f"import json, sys, time\nsys.path.insert(0, {str(ROOT)!r})\nasked = json.load(sys.stdin)\n{code}\n",
        encoding="utf-8",
    )
    return f"{sys.executable} {path}"


def say(verdict, reason="because"):
    return f"print(json.dumps({{'verdict': {verdict!r}, 'reason': {reason!r}}}))"


def committed(store, tx, program, timeout_s=20.0):
    return verifier.commit(store, API, tx.id, program, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("pass", (TxStatus.COMMITTED, Code.PASS, State.ACCEPTED)),
        ("hold", (TxStatus.HELD, Code.X_VERIFIER, State.DISPUTED)),
        ("refuse", (TxStatus.ABORTED, Code.X_VERIFIER, State.REVOKED)),
    ],
)
def test_its_three_words_pass_hold_and_refuse(tmp_path, store, word, outcome):
    tx = begin(store)
    fact = stage(store, tx, 9)
    verdict = committed(store, tx, command(tmp_path, say(word)))

    assert (verdict.status, verdict.verdicts[fact.id], store.get(fact.id).state) == outcome
    assert verdict.calls == 1


def test_it_is_asked_about_the_candidate_its_rivals_and_its_evidence(tmp_path, store):
    rival = believed(store, "red", attribute="team")
    tx = begin(store)
    fact = stage(store, tx, "blue", attribute="team", references=("src:agentA", "src:memo"))
    (question,) = store.questions(tx.id)

    assert set(question.request) == {"candidate", "rivals", "evidence"}
    assert question.request["candidate"]["id"] == fact.id
    assert [item["id"] for item in question.request["rivals"]] == [rival.id]
    assert [item["content"] for item in question.request["evidence"]] == ["src:agentA", "src:memo"]


def test_it_makes_no_verdict_milder_and_is_not_asked_about_what_fails_anyway(tmp_path, store):
    tx = begin(store)
    bad, good = stage(store, tx, 9, confidence=0.1), stage(store, tx, 8, attribute="b")
    verdict = committed(store, tx, command(tmp_path, say("pass")))

    assert (verdict.verdicts, verdict.calls) == ({bad.id: Code.E_LOW_CONF, good.id: Code.PASS}, 1)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("time.sleep(600)", "took longer than"),
        ("print('fine by me')", "cannot be read"),
        ("pass", "printed nothing"),
        ("print('[1]')", "no object"),
        ("print(json.dumps({'verdict': 'maybe'}))", "neither pass, hold nor refuse"),
        ("print(json.dumps({'verdict': ['pass']}))", "neither pass, hold nor refuse"),
        (say("pass") + "\nsys.exit(3)", "exit code 3"),
    ],
)
def test_one_that_hangs_fails_or_talks_nonsense_holds_the_fact_and_says_why(tmp_path, store, code, why):
    tx = begin(store)
    fact = stage(store, tx, 9)
    verdict = committed(store, tx, command(tmp_path, code), timeout_s=5.0 if "sleep" in code else 20.0)

    assert verdict.verdicts == {fact.id: Code.X_VERIFIER}
    (item,) = list(Queue(store))
    assert item.detail.startswith("X_VERIFIER: ")
    assert why in item.detail


def test_one_that_is_not_there_holds_and_an_empty_command_is_a_usage_error(tmp_path, store):
    tx = begin(store)
    stage(store, tx, 9)
    (answer,) = verifier.ask(store.questions(tx.id), str(tmp_path / "nothing")).values()

    assert answer.ruling is Ruling.HOLD
    with pytest.raises(UsageError):
        verifier.ask(store.questions(tx.id), " ")


def test_an_answer_about_what_has_changed_since_is_not_taken(tmp_path, store):
    tx = begin(store)
    fact = stage(store, tx, "blue", attribute="team")
    program = command(tmp_path, say("pass"))
    answers = verifier.ask(store.questions(tx.id), program)
    late = stage(store, tx, 8, attribute="b")

    with pytest.raises(Stale, match="since the verifier was asked"):
        commit(store, tx, verdicts=answers)
    assert store.transaction(tx.id).status is TxStatus.OPEN
    assert committed(store, tx, program).verdicts == {fact.id: Code.PASS, late.id: Code.PASS}


def test_what_changed_while_it_thought_is_asked_about_again_and_every_call_counted(tmp_path, store):
    tx = begin(store)
    stage(store, tx, "blue", attribute="team")
    verdict = committed(store, tx, command(tmp_path, STAGES_ANOTHER.format(path=str(store.path)) + say("pass")))

    assert [str(code) for code in verdict.verdicts.values()] == ["PASS", "PASS"]
    assert verdict.calls == 3


def test_nothing_is_asked_about_a_transaction_that_is_over(tmp_path, store):
    tx = begin(store)
    stage(store, tx, 9)
    asked = len(store.questions(tx.id))
    commit(store, tx)

    assert (asked, store.questions(tx.id)) == (1, [])


@pytest.mark.parametrize("document", [None, 3, "pass", [], {}, {"verdict": None}, {"verdict": "PASS"}])
def test_anything_but_its_three_words_is_a_hold(document):
    assert verifier.read(json.loads(json.dumps(document)))[0] is Ruling.HOLD
    assert verifier.read({"verdict": "pass", "reason": 4}) == (Ruling.PASS, "")
