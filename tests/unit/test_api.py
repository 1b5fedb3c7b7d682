"""mem from Python: the names that `import memcli` offers, and an agent's loop without a shell."""

import ast
import doctest
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import memcli
from memcli import api
from memcli.facts import Claim
from memcli.store import Store
from memcli.terms import ActionState, Channel, State, TxStatus
from memcli.wire_tx import arguments_digest, json_digest

ROOT = Path(__file__).parents[2]
EXAMPLES = [found for found in doctest.DocTestFinder(exclude_empty=True).find(api) if found.examples]


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Store]:
    """A file for transactions."""
    memcli.create(tmp_path / "memory.db", admission="checked")
    with memcli.open_store(tmp_path / "memory.db") as store:
        yield store


def believed(mem: Store, text: str = "Order 7 is unpaid") -> memcli.Fact:
    """Commit a statement and return it."""
    with memcli.transaction(mem, agent="planner") as tx:
        draft = tx.stage(Claim(text=text, references=("erp",)))
    return mem.get(draft.id)


# -------------------------------------------------------------------- names


def test_every_name_is_there_and_the_types_know_it():
    tree = ast.parse(Path(memcli.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memcli.")
        for alias in node.names
    }

    assert {name for name in memcli.__all__ if getattr(memcli, name, None) is None} == set()
    assert typed | {"__version__"} == set(memcli.__all__)
    assert set(memcli.__all__) <= set(dir(memcli))
    assert memcli.Store is Store


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = memcli.nothing


def test_to_import_memcli_loads_nothing_else():
    child = "import sys; import memcli; print(sorted(name for name in sys.modules if name.startswith('memcli')))"
    done = subprocess.run([sys.executable, "-c", child], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout == "['memcli']\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_examples_run_as_they_stand(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEM_SCOPE", raising=False)
    example.globs = {"memcli": memcli}

    done = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)

    assert (done.failed, done.attempted) == (0, len(example.examples))


def test_every_function_of_the_module_has_an_example():
    public = {name for name in memcli.__all__ if getattr(getattr(memcli, name), "__module__", "") == "memcli.api"}
    functions = {name for name in public if name.islower()}

    assert functions == {"agent", "create", "open_store", "recover", "transaction"}
    assert functions <= {example.name.removeprefix("memcli.api.") for example in EXAMPLES}


# -------------------------------------------------------------------- files


def test_whoever_acts_is_a_script_on_the_channel_api(mem):
    fact = believed(mem)

    assert (fact.actor.name, fact.actor.channel, fact.actor.is_person) == ("planner", Channel.API, False)


@pytest.mark.parametrize("name", ["", " ", "a\x00b"])
def test_an_agent_needs_a_name_that_can_be_shown(name):
    with pytest.raises(memcli.UsageError, match="the name of the agent"):
        memcli.agent(name)


def test_in_a_reviewed_file_what_an_agent_writes_waits(tmp_path):
    memcli.create(tmp_path / "memory.db")

    with memcli.open_store(tmp_path / "memory.db") as mem:
        with mem.write(memcli.agent("planner")) as write:
            written = write.add(memcli.Claim(text="Tea is hot"))
        with pytest.raises(memcli.NotPermitted), mem.write(memcli.agent("planner")) as write:
            write.verify(written.fact)
        assert mem.get(written.fact.id).state is State.TENTATIVE


def test_a_process_that_is_bound_opens_its_scope_and_no_other(tmp_path, monkeypatch):
    memcli.create(tmp_path / "memory.db")
    monkeypatch.setenv("MEM_SCOPE", "user/anna")

    with memcli.open_store(tmp_path / "memory.db") as mem:
        assert mem.scope == "user/anna"
    with pytest.raises(memcli.OutOfScope):
        memcli.open_store(tmp_path / "memory.db", scope="default")
    with pytest.raises(memcli.OutOfScope):
        memcli.create(tmp_path / "other.db", scope="user/bob")
    memcli.create(tmp_path / "other.db")
    with memcli.open_store(tmp_path / "other.db") as mem:
        assert mem.settings["scope"] == "user/anna"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"tier": "highest"}, "highest is no tier"),
        ({"isolation": "none"}, "none is no isolation"),
        ({"lease_s": 0}, "a lease of 0 s is none"),
        ({"agent": " "}, "the name of the agent is empty"),
    ],
)
def test_a_word_that_is_off_opens_no_transaction(mem, words, sentence):
    with pytest.raises(memcli.UsageError, match=sentence):
        memcli.transaction(mem, **{"agent": "planner", **words})
    assert mem.transactions() == []


def test_an_admission_that_is_none_makes_no_file(tmp_path):
    with pytest.raises(memcli.UsageError, match="sometimes is no admission"):
        memcli.create(tmp_path / "memory.db", admission="sometimes")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------- transactions


def test_leaving_the_block_commits(mem):
    with memcli.transaction(mem, agent="planner") as tx:
        draft = tx.stage(Claim(text="Tea is hot", references=("kettle",)))
        inside = mem.get(draft.id).state

    assert (inside, mem.get(draft.id).state) == (State.TENTATIVE, State.ACCEPTED)
    assert tx.verdict is not None
    assert tx.verdict.status is tx.info.status is TxStatus.COMMITTED


def test_an_exception_aborts_and_stays_what_it_was(mem):
    with pytest.raises(ZeroDivisionError), memcli.transaction(mem, agent="planner") as tx:  # noqa: PT012  # the agent raises
        draft = tx.stage(Claim(text="Tea is hot", references=("kettle",)))
        raise ZeroDivisionError

    assert (tx.info.status, mem.get(draft.id).state, tx.verdict) == (TxStatus.ABORTED, State.REVOKED, None)


def test_a_commit_that_is_held_is_raised_with_its_verdict(mem):
    with pytest.raises(memcli.TransactionHeld, match="E_NO_EVIDENCE") as caught:  # noqa: SIM117  # what leaving raises
        with memcli.transaction(mem, agent="planner") as tx:
            draft = tx.stage(Claim(text="Tea is hot"))

    assert caught.value.verdict.verdicts == {draft.id: memcli.Code.E_NO_EVIDENCE}
    assert (caught.value.exit_code, mem.get(draft.id).state) == (6, State.DISPUTED)


def test_a_commit_that_is_refused_is_raised_with_its_verdict(mem):
    slot = {"subject": "order 7", "attribute": "due", "references": ("erp",)}
    with memcli.transaction(mem, agent="planner") as tx:
        tx.stage(Claim(text="900", value=900, source="billing", **slot))

    with pytest.raises(memcli.TransactionAborted, match="C_LOWER_AUTHORITY") as caught:  # noqa: SIM117  # what leaving raises
        with memcli.transaction(mem, agent="planner") as tx:
            draft = tx.stage(Claim(text="800", value=800, source="gossip", authority=0.1, **slot))

    assert (caught.value.exit_code, mem.get(draft.id).state) == (3, State.REVOKED)


def test_a_caller_who_asks_for_it_looks_at_the_verdict_instead(mem):
    with memcli.transaction(mem, agent="planner", raises=False) as tx:
        tx.stage(Claim(text="Tea is hot"))

    assert tx.verdict is not None
    assert tx.verdict.status is TxStatus.HELD


def test_a_partial_commit_settles_each_fact_by_itself(mem):
    with memcli.transaction(mem, agent="planner", partial=True) as tx:
        doubt = tx.stage(Claim(text="Tea is hot"))
        known = tx.stage(Claim(text="Milk is cold", references=("fridge",)))

    assert (mem.get(doubt.id).state, mem.get(known.id).state) == (State.DISPUTED, State.ACCEPTED)


def test_a_verifier_is_asked_on_leaving(mem):
    command = f"{sys.executable} -c \"print('{{}}')\""

    with memcli.transaction(mem, agent="planner", raises=False, verifier=command) as tx:
        tx.stage(Claim(text="Tea is hot", references=("kettle",)))

    assert tx.verdict is not None
    assert (list(tx.verdict.verdicts.values()), tx.verdict.calls) == ([memcli.Code.X_VERIFIER], 1)


def test_a_transaction_past_its_lease_is_aborted_on_leaving(mem):
    start = mem.now()
    with pytest.raises(memcli.TransactionAborted, match="X_LEASE_OVER"):  # noqa: PT012, SIM117  # what leaving raises
        with memcli.transaction(mem, agent="planner", lease_s=60) as tx:
            tx.stage(Claim(text="Tea is hot", references=("kettle",)))
            mem.now = lambda: start + 120_000_000


def test_an_abort_inside_the_block_is_the_end_of_it(mem):
    with memcli.transaction(mem, agent="planner") as tx:
        tx.stage(Claim(text="Tea is hot", references=("kettle",)))
        tx.abort()

    assert (tx.verdict, tx.info.status) == (None, TxStatus.ABORTED)


def test_an_agent_does_not_say_what_is_superseded(mem):
    fact = believed(mem)

    with pytest.raises(memcli.NotPermitted), mem.write(memcli.agent("planner")) as write:
        write.stage(write.begin().id, Claim(text="Order 7 is paid"), fact.id)
    assert mem.get(fact.id).state is State.ACCEPTED


# -------------------------------------------------------------------- the gate and what it lets through


def test_a_call_that_is_made_inside_the_block_is_done(mem):
    fact = believed(mem)
    called = []

    with memcli.transaction(mem, agent="planner") as tx:
        answer = tx.gate("refund", args={"order": 7}, premises=[fact.id[:6]])
        with tx.act(answer.receipt) as action:
            called.append(mem.action(action.id).state)

    assert answer.allow is True
    assert (called, mem.action(action.id).state) == ([ActionState.RUNNING], ActionState.DONE)


def test_a_call_that_raises_is_failed(mem):
    fact = believed(mem)

    with pytest.raises(ConnectionError), memcli.transaction(mem, agent="planner") as tx:  # noqa: PT012  # the call raises
        receipt = tx.gate("refund", premises=[fact]).receipt
        with tx.act(receipt):
            raise ConnectionError

    assert [action.state for action in mem.actions()] == [ActionState.FAILED]
    assert tx.info.status is TxStatus.ABORTED


def test_a_call_that_is_interrupted_is_unknown(mem):
    fact = believed(mem)

    with pytest.raises(KeyboardInterrupt), memcli.transaction(mem, agent="planner") as tx:  # noqa: PT012  # the call raises
        receipt = tx.gate("refund", premises=[fact]).receipt
        with tx.act(receipt):
            raise KeyboardInterrupt

    assert [action.state for action in mem.actions()] == [ActionState.UNKNOWN]


def test_a_call_whose_process_dies_is_found_by_recover(mem):
    fact = believed(mem)
    child = (
        "import memcli, os, sys\n"
        "with memcli.open_store(sys.argv[1]) as mem, memcli.transaction(mem, agent='payer', lease_s=60) as tx:\n"
        "    with tx.act(tx.gate('refund', premises=[sys.argv[2]]).receipt):\n"
        "        os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", child, str(mem.path), fact.id], cwd=ROOT, check=False)
    early, start = memcli.recover(mem), mem.now()
    mem.now = lambda: start + 120_000_000

    found = memcli.recover(mem)

    assert (done.returncode, early.transactions, early.actions) == (9, (), ())
    assert [tx.agent for tx in found.transactions] == ["payer"]
    assert [(action.tool, action.state) for action in found.actions] == [("refund", ActionState.UNKNOWN)]
    assert memcli.recover(mem).actions == ()


def test_a_call_that_the_gate_blocks_is_not_made(mem):
    called = []

    with pytest.raises(memcli.NotPermitted, match="no receipt"), memcli.transaction(mem, agent="planner") as tx:  # noqa: PT012
        answer = tx.gate("refund")
        with tx.act(answer.receipt):
            called.append("refund")

    assert (answer.allow, answer.reasons, called) == (False, ("G3_NO_PREMISE",), [])


def test_a_draft_shuts_the_gate_for_its_own_transaction_too(mem):
    fact = believed(mem)

    with memcli.transaction(mem, agent="planner") as tx:
        before = tx.gate("refund", premises=[fact])
        draft = tx.stage(Claim(text="Refund 900", references=("erp",)))
        after = tx.gate("refund", premises=[fact])

    assert (before.allow, after.reasons) == (True, (f"G1_UNSETTLED:{draft.id}",))


def test_a_receipt_is_good_once_and_for_its_arguments(mem):
    fact = believed(mem)
    with memcli.transaction(mem, agent="planner") as tx:
        receipt = tx.gate("refund", args={"order": 7, "sum": 900}, premises=[fact]).receipt
        with pytest.raises(memcli.NotAllowed), tx.act(receipt, args={"order": 8}):
            pass
        with tx.act(receipt, args={"sum": 900, "order": 7}):
            pass

        with pytest.raises(memcli.NotAllowed, match="was used"), tx.act(receipt):
            pass
    assert [action.state for action in mem.actions()] == [ActionState.DONE]


def test_a_premise_that_is_not_there_blocks(mem):
    with memcli.transaction(mem, agent="planner") as tx:
        answer = tx.gate("refund", premises=["abcdef"])

    assert answer.reasons == ("G3_NO_PREMISE",)


def test_a_premise_of_another_scope_is_refused(mem):
    fact = believed(mem)

    with (
        memcli.open_store(mem.path, scope="user/anna") as other,
        memcli.transaction(other, agent="planner") as tx,
        pytest.raises(memcli.OutOfScope),
    ):
        tx.gate("refund", premises=[fact])


def test_arguments_that_are_no_json_are_refused(mem):
    with memcli.transaction(mem, agent="planner") as tx, pytest.raises(memcli.UsageError, match="are no JSON"):
        tx.gate("refund", args={"order": object()})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": [2]}', b'{"b":[2],"a":1}', True),
        (b'{"a": 1}', b'{"a": 1.0}', False),
        (b'{"a": 1}', b'{"a": 1, "a": 1}', False),
        (b'"\\u00e9"', '"é"'.encode(), True),
        (b"NaN", b"NaN ", False),
        (b"\xff", b"\xfe", False),
        (b"[" * 100_000, b"[" * 100_001, False),
    ],
    ids=["order", "number", "twice", "escape", "no number", "no text", "deep"],
)
def test_arguments_count_as_what_they_say(one, other, same):
    assert (arguments_digest(one) == arguments_digest(other)) is same


def test_arguments_from_python_count_as_those_of_a_file():
    assert json_digest({"b": [2], "a": 1}) == arguments_digest(b'{"a": 1, "b": [2]}')
    assert json_digest({}) == arguments_digest(b"{}")


# -------------------------------------------------------------------- threads


def test_threads_that_open_their_own_store_lose_nothing(mem):
    problems = []

    def work(number: int) -> None:
        try:
            with memcli.open_store(mem.path) as own:
                for turn in range(5):
                    with memcli.transaction(own, agent=f"agent {number}") as tx:
                        tx.stage(Claim(text=f"Thread {number} was here {turn}", references=(f"r{number}.{turn}",)))
        except Exception as problem:  # noqa: BLE001  # of whatever kind, it is what the test asks for
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    assert len(list(mem.facts())) == 20
