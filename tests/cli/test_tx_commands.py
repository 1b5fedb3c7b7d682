"""`mem tx`: staging, checking and committing, through pipes and at a terminal."""

import json
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from memcli.terms import DEFAULT_ISOLATION, Tier
from tests.cli.driver import Mem
from tests.cli.test_json_contract import ACTOR, FACT

TRANSACTION = {
    "id", "scope", "agent", "tier", "isolation", "snapshot", "status", "actor", "begun_at", "lease_until", "closed_at",
    "staged", "verdicts",
}  # fmt: skip
CASES = Path(__file__).parents[2] / "fixtures" / "transactions"
DUE = ("--subject", "order 7", "--attribute", "due", "--value", "900")
ERP = ("--reference", "erp")


@pytest.fixture
def begun(checked: Mem) -> Mem:
    """A file for transactions with tx1 open."""
    assert checked.run("tx", "begin", "--agent", "planner").code == 0
    return checked


def state(mem: Mem, name: str) -> str:
    return str(mem.ok("show", name)["state"])


def lines(*documents: Any) -> bytes:
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def believed(mem: Mem, text: str, *words: str) -> None:
    """Commit one statement in a transaction of its own."""
    name = mem.ok("tx", "begin")["id"]
    assert mem.run("tx", "stage", name, text, *ERP, *words).code == 0
    assert mem.run("tx", "commit", name).code == 0


# -------------------------------------------------------------------- the way it goes


def test_what_is_staged_is_believed_after_the_commit(begun: Mem) -> None:
    staged = begun.ok("tx", "stage", "tx1", *DUE, *ERP)
    before = state(begun, "f1")
    verdict = begun.ok("tx", "commit", "tx1")

    assert (staged["text"], staged["value"], staged["owner"]) == ("order 7 due: 900", 900, "planner")
    assert (before, state(begun, "f1")) == ("tentative", "accepted")
    assert verdict == {"tx": "tx1", "status": "committed", "verdicts": {staged["id"]: "PASS"}, "calls": 0}


def test_each_step_says_in_a_line_what_it_did(begun: Mem) -> None:
    said = [
        begun.person("tx", "begin", "--tier", "low", "--lease", "90"),
        begun.person("tx", "stage", "tx2", "Tea is hot", *ERP),
        begun.person("tx", "abort", "tx2"),
        begun.person("tx", "recover"),
    ]

    assert "".join(said) == snapshot("""\
tx2 · low, reads accepted · anna · lease ends in 1 m
staged f1 in tx2
aborted tx2 · 1 fact
nothing to recover
""")


def test_a_pipe_gets_the_id_first(begun: Mem) -> None:
    row = begun.run("tx", "begin", "--tier", "low", "--agent", "clerk").out.split("\t")

    assert row[:5] == ["tx2", "open", "low", "accepted", "clerk"]
    assert begun.run("tx", "show").out.splitlines()[1].split("\t")[:2] == ["tx2", "open"]


@pytest.mark.parametrize("tier", list(Tier)[:2])
def test_the_tier_says_what_is_read_unless_that_is_said(checked: Mem, tier: Tier) -> None:
    assert checked.ok("tx", "begin", "--tier", tier)["isolation"] == DEFAULT_ISOLATION[tier]
    assert checked.ok("tx", "begin", "--tier", tier, "--isolation", "verified")["isolation"] == "verified"


def test_the_policy_says_how_high_an_agent_may_go(checked: Mem) -> None:
    refused = checked.run("tx", "begin", "--agent", "planner", "--tier", "high")
    checked.person("policy", "set", "agent", "planner", "high")

    assert (refused.code, refused.err.splitlines()[0]) == (
        3,
        "error: planner may begin transactions up to tier medium, and this is high",
    )
    assert checked.ok("tx", "begin", "--agent", "planner", "--tier", "high")["isolation"] == "stable"


def test_a_read_sees_the_snapshot_and_not_what_came_after(checked: Mem) -> None:
    believed(checked, "Tea is hot", "--subject", "tea")
    checked.run("tx", "begin")
    believed(checked, "Tea is green", "--subject", "tea")
    checked.run("tx", "begin")

    early, late = checked.ok("tx", "read", "tx2", "--subject", "tea"), checked.ok("tx", "read", "tx4")

    assert [fact["text"] for fact in early] == ["Tea is hot"]
    assert [fact["text"] for fact in late] == ["Tea is hot", "Tea is green"]
    assert set(late[0]) == FACT
    assert checked.run("tx", "read", "tx4", "--jsonl").out.count("\n") == 2
    assert checked.person("tx", "read", "tx2") == snapshot("""\
  ID    STATE     SUBJECT  FACT    AUTHORITY
  f1    accepted  tea      is hot        0.5
""")


def test_a_parent_may_be_shortened(checked: Mem) -> None:
    believed(checked, "Tea is hot")
    parent = checked.ids()[0]
    checked.run("tx", "begin")

    staged = checked.ok("tx", "stage", "tx2", "Cups get hot", *ERP, "--derived-from", parent[:6])

    assert staged["derived_from"] == [parent]


def test_a_person_names_what_is_superseded_and_a_script_does_not(checked: Mem) -> None:
    believed(checked, "Order 7 is 900", *DUE)
    checked.run("tx", "begin")
    other = ("tx", "stage", "tx2", *DUE[:5], "800", *ERP, "--source", "clerk", "--supersedes", "f1")

    refused = checked.run(*other)
    checked.person(*other)

    assert (refused.code, refused.err.splitlines()[0]) == (
        3,
        "error: only a person at a terminal may say what a fact supersedes",
    )
    assert checked.run("tx", "commit", "tx2").code == 0
    assert (state(checked, "f1"), state(checked, "f2")) == ("superseded", "accepted")


def test_standard_input_is_the_text(begun: Mem) -> None:
    assert begun.run("tx", "stage", "tx1", "-", *ERP, stdin=b"Tea is hot\n").code == 0
    assert begun.ok("show", "f1")["text"] == "Tea is hot"


# -------------------------------------------------------------------- check, held, aborted


def test_check_lists_every_rule_and_changes_nothing(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot", "--confidence", "0.2", "--valid-to", "2020-01-01")
    begun.run("tx", "stage", "tx1", "Milk is cold", *ERP)
    events = begun.events()

    ran = begun.run("tx", "check", "tx1", "--json")

    assert ran.code == 1
    assert set(ran.document) == {"tx", "status", "verdicts", "checks"}
    assert ran.document["status"] == "held"
    assert [item["code"] for item in ran.document["checks"]] == ["E_NO_EVIDENCE", "E_LOW_CONF", "V_EXPIRED", "PASS"]
    assert set(ran.document["checks"][0]) == {"fact", "code", "ruling", "about"}
    assert begun.run("tx", "check", "tx1", "--partial").code == 0
    assert begun.events() == events


def test_check_says_what_the_commit_then_says(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot", "--confidence", "0.2")
    foreseen = begun.run("tx", "check", "tx1", "--json").document

    came = begun.run("tx", "commit", "tx1", "--json").document

    assert came.pop("calls") == 0
    assert {key: foreseen[key] for key in came} == came


def test_a_commit_that_is_held_says_why_and_what_may_be_done(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot")
    begun.run("tx", "stage", "tx1", "Milk is cold", *ERP)

    assert begun.person("tx", "commit", "tx1") == snapshot("""\
held tx1 · 2 facts
  f1 “Tea is hot” (disputed)  E_NO_EVIDENCE
    no evidence, or it no longer says so
    settle it: stage it with --evidence or --reference
  f2 “Milk is cold” (disputed)  PASS
    passes every check, and is held with its transaction
error: transaction tx1 is held: a person decides what it brought
hint: decide it with `mem review`
--- exit 6
""")
    assert begun.ok("stats")["waiting"] == 2


def test_a_commit_that_is_refused_names_what_stands_in_its_way(checked: Mem) -> None:
    believed(checked, "Order 7 is 900", *DUE, "--source", "billing")
    checked.run("tx", "begin")
    checked.run("tx", "stage", "tx2", *DUE[:5], "800", *ERP, "--source", "gossip", "--authority", "0.1")

    seen, document = checked.term("tx", "commit", "tx2"), checked.ok("tx", "show", "tx2")

    assert seen.code == 3
    assert seen.screen == snapshot("""\
aborted tx2 · 1 fact
  f2 “order 7 due: 800” (revoked)  C_LOWER_AUTHORITY
    another value stands on more authority
    against f1 “Order 7 is 900” (accepted) by anna, pipe, just now
    settle it: bring a source of more authority
error: transaction tx2 was aborted: nothing of it is believed
hint: see why with `mem tx show tx2`, and begin another
""")
    assert document["status"] == "aborted"
    assert (state(checked, "f1"), state(checked, "f2")) == ("accepted", "revoked")


def test_a_partial_commit_settles_each_fact_by_itself(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot")
    begun.run("tx", "stage", "tx1", "Milk is cold", *ERP)

    verdict = begun.ok("tx", "commit", "tx1", "--partial")

    assert verdict["status"] == "committed"
    assert (state(begun, "f1"), state(begun, "f2")) == ("disputed", "accepted")


def test_in_a_reviewed_file_a_script_s_commit_waits_and_a_person_s_is_believed(reviewed: Mem) -> None:
    for text in ("Tea is hot", "Milk is cold"):
        name = reviewed.ok("tx", "begin")["id"]
        reviewed.run("tx", "stage", name, text, *ERP)
    foreseen = reviewed.run("tx", "check", "tx1", "--json")

    held, person = reviewed.run("tx", "commit", "tx1", "--json"), reviewed.term("tx", "commit", "tx2")

    assert (held.code, held.document["status"], list(held.document["verdicts"].values())) == (6, "held", ["PASS"])
    assert held.complaint["error"] == "held"
    assert (foreseen.code, foreseen.document["status"]) == (1, "held")
    assert person.code == 0
    assert (state(reviewed, "f1"), state(reviewed, "f2")) == ("disputed", "accepted")


def test_show_draws_what_is_staged_with_its_checks_and_what_it_stands_on(checked: Mem) -> None:
    believed(checked, "Invoice 17 is unpaid")
    checked.run("tx", "begin")
    checked.run("tx", "stage", "tx2", "The customer is in arrears", *ERP, "--derived-from", "f1")
    checked.run("tx", "stage", "tx2", "Stop\x1b[31m deliveries", "--derived-from", "f2", stdin=b"")
    checked.run("tx", "stage", "tx2", "Stop deliveries", "--derived-from", "f2")

    assert checked.person("tx", "show", "tx2") == snapshot("""\
tx2 · open · medium, reads accepted
for anna in default, snapshot #5
begun just now by anna, pipe, lease ends in 15 m

f2 “The customer is in arrears” (tentative)
└─ f1 “Invoice 17 is unpaid” (accepted)
f3 “Stop deliveries” (tentative)
├─ E_NO_EVIDENCE no evidence, or it no longer says so
└─ f2 “The customer is in arrears” (tentative)

  mem tx commit tx2 · mem tx abort tx2
""")
    document = checked.ok("tx", "show", "tx2")
    assert set(document) == TRANSACTION | {"records", "actions"}
    assert set(document["actor"]) == ACTOR
    assert [set(item) for item in document["records"]] == [{"fact", "checks", "stands_on"}] * 2
    assert [above["text"] for above in document["records"][1]["stands_on"]] == [
        "The customer is in arrears",
        "Invoice 17 is unpaid",
    ]
    assert [set(item) for item in checked.ok("tx", "show")] == [TRANSACTION] * 2
    assert [item["id"] for item in checked.ok("tx", "show", "--status", "open")] == ["tx2"]


def test_a_listing_of_no_transactions_is_an_empty_list(checked: Mem) -> None:
    assert checked.ok("tx", "show") == []
    assert checked.ok("tx", "recover") == {"transactions": [], "actions": []}
    assert checked.run("tx", "show").out == ""


def test_words_that_move_the_cursor_are_shown_and_not_obeyed(checked: Mem) -> None:
    (checked.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "Tea \x1b[31mis \u202ehot"}]))
    checked.run("import", "chat.json")
    checked.run("tx", "begin", "--agent", "plan\u202ener")
    checked.run("tx", "stage", "tx1", "Tea is \u202ehot", "--evidence", "s1#0")

    for words in (("tx", "show"), ("tx", "show", "tx1"), ("tx", "check", "tx1"), ("tx", "commit", "tx1")):
        seen = checked.term(*words, env={"NO_COLOR": "1"})

        assert "\\u202e" in seen.screen
        assert b"\x1b" not in seen.raw
        assert "\u202e".encode() not in seen.raw


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("name", ["tx9", "nine", "", "r1"])
@pytest.mark.parametrize("words", ["read", "stage", "check", "commit", "abort", "show"])
def test_an_unknown_transaction_is_not_found(begun: Mem, words: str, name: str) -> None:
    text = ("Tea is hot",) if words == "stage" else ()

    ran = begun.run("tx", words, name, *text)

    assert ran.code == 4
    assert ran.err.startswith(f"error: there is no transaction {name}\n")


@pytest.mark.parametrize("words", [("read",), ("stage",), ("check",), ("commit",)], ids=" ".join)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_that_is_over_takes_nothing(begun: Mem, words: tuple[str, ...], end: str) -> None:
    assert begun.run("tx", end, "tx1").code == 0
    text = ("Tea is hot",) if words == ("stage",) else ()

    ran = begun.run("tx", *words, "tx1", *text)

    assert ran.code == 3
    assert ran.err.startswith(f"error: transaction tx1 is {end.removesuffix('t')}")
    assert begun.ids() == []


def test_an_abort_may_be_said_twice_and_does_not_undo_a_commit(begun: Mem) -> None:
    begun.run("tx", "begin")
    begun.run("tx", "commit", "tx2")

    codes = [begun.run("tx", "abort", name).code for name in ("tx1", "tx1", "tx2")]

    assert codes == [0, 0, 3]
    assert [tx["status"] for tx in begun.ok("tx", "show")] == ["aborted", "committed"]


def test_after_the_lease_nothing_is_taken_and_recover_aborts(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot", *ERP)
    begun.now += timedelta(minutes=20)

    late = [
        begun.run("tx", "stage", "tx1", "Milk is cold"),
        begun.run("tx", "check", "tx1"),
        begun.run("tx", "read", "tx1"),
    ]
    recovered = begun.ok("tx", "recover")

    assert {(ran.code, ran.err.splitlines()[0]) for ran in late} == {(3, "error: the lease of transaction tx1 is over")}
    assert set(recovered) == {"transactions", "actions"}
    assert [tx["id"] for tx in recovered["transactions"]] == ["tx1"]
    assert state(begun, "f1") == "revoked"
    assert begun.ids() == begun.ids()[:1]


def test_a_commit_after_the_lease_aborts(begun: Mem) -> None:
    begun.run("tx", "stage", "tx1", "Tea is hot", *ERP)
    begun.now += timedelta(minutes=20)

    ran = begun.run("tx", "commit", "tx1", "--json")

    assert (ran.code, ran.document["status"]) == (3, "aborted")
    assert list(ran.document["verdicts"].values()) == ["X_LEASE_OVER"]


def test_an_unknown_parent_is_refused_at_once_and_the_refusal_recorded(begun: Mem) -> None:
    ran = begun.run("tx", "stage", "tx1", "Tea is hot", "--derived-from", "abcdef")

    assert ran.code == 3
    assert ran.err.startswith("error: no fact has the id abcdef, from which this would be derived\n")
    assert begun.ok("log")[-1]["op"] == "refuse"
    assert begun.ids() == []


def test_a_tombstoned_value_is_refused_at_once(begun: Mem) -> None:
    begun.person("tombstone", "--value", "Tea is hot", "--reason", "never true")

    ran = begun.run("tx", "stage", "tx1", "TEA is hot", *ERP, "--json")

    assert (ran.code, ran.complaint["error"]) == (3, "tombstoned")
    assert begun.ids() == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tx", "begin", "--tier", "highest"), "invalid value for '--tier'"),
        (("tx", "begin", "--lease", "0"), "--lease takes seconds, above 0"),
        (("tx", "begin", "--lease", "nan"), "--lease takes seconds, above 0"),
        (("tx", "begin", "--lease", "9999999"), "--lease takes seconds, above 0"),
        (("tx", "begin", "--agent", " "), "the name of the agent is empty"),
        (("tx", "stage", "tx1"), "there is nothing to stage"),
        (("tx", "stage", "tx1", *DUE[:4]), "there is nothing to stage"),
        (("tx", "stage", "tx1", "Tea", "--confidence", "2"), "--confidence is 2"),
        (("tx", "stage", "tx1", "Tea", "--quote", "hot"), "--quote needs --evidence"),
        (("tx", "stage", "tx1", "Tea", "--reference", " "), "a reference is empty"),
        (("tx", "stage", "tx1", "Tea", "--file", "f.jsonl"), "--file and a text exclude each other"),
        (("tx", "stage", "tx1", "--file", "f.jsonl", "--confidence", "0.5"), "--file and --confidence exclude"),
        (("tx", "stage", "tx1", "--file", "f.jsonl", "--visibility", "shared"), "--file and --visibility exclude"),
        (("tx", "stage", "tx1", "Tea", "--source-kind", "oracle"), "invalid value for '--source-kind'"),
        (("tx", "commit", "tx1", "--verifier", "'"), "the command line has an open quote"),
        (("tx", "commit", "tx1", "--verifier", "true", "--timeout", "0"), "--timeout takes seconds"),
    ],
)  # fmt: skip
def test_words_that_are_off_change_nothing(begun: Mem, words: tuple[str, ...], sentence: str) -> None:
    begun.run("tx", "stage", "tx1", "Milk is cold", *ERP)
    events = begun.events()

    ran = begun.run(*words)

    assert ran.code == 2
    assert ran.err.startswith(f"error: {sentence}")
    assert begun.events() == events


def test_a_process_bound_to_a_scope_sees_its_transactions_only(begun: Mem) -> None:
    begun.run("tx", "begin", "--scope", "user/anna")
    bound = {"MEM_SCOPE": "user/anna"}

    assert [tx["id"] for tx in begun.ok("tx", "show", env=bound)] == ["tx2"]
    assert begun.run("tx", "stage", "tx1", "Tea is hot", env=bound).code == 3
    assert begun.run("tx", "commit", "tx1", env=bound).code == 3
    assert begun.run("tx", "show", "--scope", "default", env=bound).code == 3
    assert begun.run("tx", "show", "tx2").code == 3


# -------------------------------------------------------------------- verifiers

VERIFIERS = {
    "passes": 'import json; print(json.dumps({"verdict": "pass"}))',
    "refuses": 'import json; print(json.dumps({"verdict": "refuse", "reason": "not so"}))',
    "garbage": 'print("yes, surely")',
    "fails": "import sys; sys.exit(3)",
    "hangs": "import time; time.sleep(60)",
    "vague": 'print("{}")',
}


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        ("passes", 0, "PASS"),
        ("refuses", 3, "X_VERIFIER"),
        ("garbage", 6, "X_VERIFIER"),
        ("fails", 6, "X_VERIFIER"),
        ("hangs", 6, "X_VERIFIER"),
        ("vague", 6, "X_VERIFIER"),
    ],
)
def test_a_verifier_may_only_be_stricter(begun: Mem, name: str, code: int, verdict: str) -> None:
    (begun.home / "check.py").write_text(VERIFIERS[name])
    begun.run("tx", "stage", "tx1", "Tea is hot", *ERP)
    timeout = "1" if name == "hangs" else "30"

    ran = begun.run("tx", "commit", "tx1", "--verifier", "python3 check.py", "--timeout", timeout, "--json")

    assert (ran.code, list(ran.document["verdicts"].values())) == (code, [verdict])


def test_a_verifier_is_asked_of_what_passes_everything_else_and_that_is_counted(begun: Mem) -> None:
    (begun.home / "check.py").write_text(
        'import json, sys; asked = json.load(sys.stdin); print(json.dumps({"verdict": "hold", "reason":'
        ' asked["candidate"]["text"] + "?"}))'
    )
    begun.run("tx", "stage", "tx1", "Tea is hot", *ERP)
    begun.run("tx", "stage", "tx1", "Milk is cold")

    screen = begun.person("tx", "commit", "tx1", "--verifier", "python3 check.py")

    assert screen.startswith("held tx1 · 2 facts · verifier asked 1 time\n")
    assert "X_VERIFIER: Tea is hot?" in [event["reason"] for event in begun.ok("log", "--fact", "f1")]


def test_a_verifier_is_asked_again_about_what_changed_while_it_thought(begun: Mem) -> None:
    (begun.home / "check.py").write_text(
        "import contextlib, io, json, pathlib, time_machine\n"
        "from memcli.cli import main\n"
        "seen = pathlib.Path('seen')\n"
        "if not seen.exists():\n"
        "    seen.touch()\n"
        f"    now = time_machine.travel({begun.now.isoformat()!r}, tick=False)\n"
        "    with now, contextlib.redirect_stdout(io.StringIO()):\n"
        "        main(['tx', 'stage', 'tx1', 'Milk is cold', '--reference', 'erp'])\n"
        "print(json.dumps({'verdict': 'pass'}))\n"
    )
    begun.run("tx", "stage", "tx1", "Tea is hot", *ERP)

    verdict = begun.ok("tx", "commit", "tx1", "--verifier", f"{sys.executable} check.py")

    assert (list(verdict["verdicts"].values()), verdict["calls"]) == (["PASS", "PASS"], 3)
    assert [state(begun, name) for name in ("f1", "f2")] == ["accepted", "accepted"]


# -------------------------------------------------------------------- many at once


def test_lines_of_a_file_are_staged_together_and_may_name_each_other(begun: Mem) -> None:
    document = lines(
        {"id": "a", "subject": "order 7", "attribute": "due", "value": 900, "references": ["erp"], "source": "erp"},
        {"text": "Order 7 is late", "derived_from": ["a"], "references": "erp", "kind": "summary"},
    )

    staged = begun.ok("tx", "stage", "tx1", "--file", "-", stdin=document + b"\n")

    assert [fact["text"] for fact in staged] == ["order 7 due: 900", "Order 7 is late"]
    assert staged[1]["derived_from"] == [staged[0]["id"]]
    assert begun.run("tx", "commit", "tx1").code == 0


@pytest.mark.parametrize(
    ("bad", "code", "sentence"),
    [
        ("{", 5, "facts.jsonl line 2: that is no JSON"),
        ("[]", 5, "facts.jsonl line 2: a fact must be a JSON object"),
        ("{}", 5, "facts.jsonl line 2: text is missing"),
        ('{"text": "x", "confidence": 7}', 5, "facts.jsonl line 2: confidence must be a number from 0 to 1"),
        ('{"text": "x", "source": 7}', 5, "facts.jsonl line 2: source must be a string that says something"),
        ('{"text": "x", "source_kind": "oracle"}', 5, "facts.jsonl line 2: source_kind must be one of"),
        ('{"text": "x", "references": [7]}', 5, "facts.jsonl line 2: references must be a list of strings"),
        ('{"text": "x", "supersedes": 7}', 5, "facts.jsonl line 2: supersedes must be a list of strings"),
        ('{"text": "x", "derived_from": ["nobody"]}', 3, "facts.jsonl line 2: no fact has the id nobody"),
        ('{"text": "x", "supersedes": ["abcd"]}', 4, "facts.jsonl line 2: no fact of default has the id abcd"),
    ],
)
def test_one_bad_line_is_named_and_none_is_staged(begun: Mem, bad: str, code: int, sentence: str) -> None:
    (begun.home / "facts.jsonl").write_text('{"text": "Tea is hot"}\n' + bad + "\n")

    ran = begun.run("tx", "stage", "tx1", "--file", "facts.jsonl")

    assert ran.code == code
    assert ran.err.startswith(f"error: {sentence}")
    assert begun.ids() == []


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [(b"", "there is no line in it"), (b"\n\n", "there is no line in it"), (b"\xff", "byte 1 is no UTF-8")],
)
def test_a_file_without_lines_is_said_to_be_one(begun: Mem, raw: bytes, sentence: str) -> None:
    ran = begun.run("tx", "stage", "tx1", "--file", "-", stdin=raw)

    assert ran.code == 5
    assert sentence in ran.err


def test_a_file_that_is_not_there_is_said_to_be_missing(begun: Mem) -> None:
    assert begun.run("tx", "stage", "tx1", "--file", "none.jsonl").code == 5


# -------------------------------------------------------------------- views


def test_a_view_is_rebuilt_from_what_survives(mem: Mem) -> None:
    mem.run("add", "Tea is hot")
    mem.run("add", "Milk is cold")
    mem.run("add", "Tea is hot, milk is cold", "--kind", "summary", "--derived-from", "f1", "--derived-from", "f2")
    mem.run("revoke", "f1", "--reason", "it cooled")

    line, wrong = mem("rebuild", "f3"), mem.run("rebuild", "f2")

    assert line == "rebuilt f3 as f4 · accepted\n"
    assert (state(mem, "f3"), mem.ok("show", "f4")["text"]) == ("superseded", "Milk is cold")
    assert (wrong.code, wrong.err.splitlines()[0].endswith("is a belief and no view")) == (3, True)
    assert mem.run("rebuild", "abcd").code == 4
    assert mem.run("rebuild", "--text", "x").code == 2
    assert mem.run("rebuild").code == 0


def test_a_view_may_be_given_its_words(mem: Mem) -> None:
    mem.run("add", "Tea is hot")
    mem.run("add", "About tea", "--kind", "summary", "--derived-from", "f1")

    made = mem.ok("rebuild", "f2", "--text", "Tea: hot")

    assert set(made) == FACT
    assert (made["text"], made["derived_from"], made["kind"]) == ("Tea: hot", mem.ids()[:1], "summary")


# -------------------------------------------------------------------- cases


@pytest.fixture
def cases(bare: Mem) -> Mem:
    """A folder with two cases that pass in the strict profile, and tools."""
    published = (CASES / "published.jsonl").read_text().splitlines(keepends=True)
    (bare.home / "cases.jsonl").write_text("".join(published[:2]))
    shutil.copy(CASES / "tools.json", bare.home)
    return bare


def spoil(mem: Mem) -> None:
    """Make the first case expect what does not come."""
    text = (mem.home / "cases.jsonl").read_text()
    (mem.home / "cases.jsonl").write_text(text.replace('"held"', '"committed"', 1))


def test_cases_that_come_out_pass(cases: Mem) -> None:
    assert cases("tx", "replay", "cases.jsonl", "--tools", "tools.json") == "2 cases passed\n"
    document = cases.ok("tx", "replay", "cases.jsonl", "--tools", "tools.json")
    assert set(document) == {"files", "profile", "baseline", "passed", "failed", "cases"}
    assert set(document["cases"][0]) == {
        "path", "id", "family", "kind", "title", "passed", "step", "op", "expected", "got",
    }  # fmt: skip
    assert (document["passed"], document["failed"], document["profile"]) == (2, 0, "strict")


def test_a_case_that_differs_fails_with_its_first_difference(cases: Mem) -> None:
    spoil(cases)

    assert cases("tx", "replay", "cases.jsonl") == snapshot("""\
✗ TP01  low-confidence tool result is held and cannot drive a refund
  cases.jsonl · step 2 (commit)
  expected  {"status": "committed", "verdicts": {"r1": "E_LOW_CONF"}}
  came      {"status": "held", "verdicts": {"r1": "E_LOW_CONF"}}

1 of 2 cases failed
--- exit 1
""")
    assert cases.run("tx", "replay", "cases.jsonl", "--exit-zero").code == 0
    assert len(cases.run("tx", "replay", "cases.jsonl", "--jsonl").out.splitlines()) == 2


def test_cases_come_as_a_report_too(cases: Mem) -> None:
    spoil(cases)

    ran = cases.run("tx", "replay", "cases.jsonl", "--junit", "report.xml", "--output-format", "github")

    assert ran.code == 1
    assert ran.out.startswith("::error file=cases.jsonl,title=mem TP01::")
    assert (
        '<testsuite name="mem tx replay" errors="0" tests="2" failures="1"' in (cases.home / "report.xml").read_text()
    )
    assert cases.run("tx", "replay", "cases.jsonl", "--junit", "none/report.xml").code == 14


def test_a_memory_that_lacks_something_fails_cases(cases: Mem) -> None:
    shutil.copy(CASES / "published.jsonl", cases.home / "cases.jsonl")

    whole = cases.run("tx", "replay", "cases.jsonl", "--tools", "tools.json", "--json").document
    lacking = cases.run("tx", "replay", "cases.jsonl", "--tools", "tools.json", "--baseline", "no-gate", "--json")

    assert whole["failed"] == 0
    assert lacking.code == 1
    assert 0 < lacking.document["failed"] < len(lacking.document["cases"])


@pytest.mark.parametrize(
    ("words", "stdin", "code", "sentence"),
    [
        (("none.jsonl",), b"", 5, "none.jsonl: no such file or directory"),
        (("-",), b"", 5, "-: there is no case in it"),
        (("-",), b"{", 5, "- line 1: that is no JSON"),
        (("-",), b'{"id": "x", "steps": [{"op": "dance"}]}', 5, "- line 1: step 0 does nothing that is known: dance"),
        (("cases.jsonl", "--tools", "cases.jsonl"), b"", 5, "cases.jsonl: that is no JSON"),
        (("cases.jsonl", "--tools", "-"), b"[]", 5, "-: tools are a JSON object"),
        (("cases.jsonl", "--tools", "-"), b'{"refund": 7}', 5, "-: tool refund is no text"),
        (("cases.jsonl", "--tools", "-"), b'{"refund": "bad"}', 5, "-: bad says nothing about a tool"),
        (("cases.jsonl", "--baseline", "none"), b"", 2, "invalid value for '--baseline'"),
        (("cases.jsonl", "--output-format", "toml"), b"", 2, "toml is no output format of this command"),
    ],
)
def test_a_file_that_holds_no_cases_is_named(
    cases: Mem, words: tuple[str, ...], stdin: bytes, code: int, sentence: str
) -> None:
    ran = cases.run("tx", "replay", *words, stdin=stdin)

    assert ran.code == code
    assert ran.err.startswith(f"error: {sentence}")
