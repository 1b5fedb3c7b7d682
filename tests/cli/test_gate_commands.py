"""What leaves the memory: gate, act, revoke and effects, through pipes and at a terminal."""

import json
from datetime import timedelta

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem
from tests.cli.test_json_contract import FACT

ACTION = {"id", "receipt", "tx", "tool", "reversibility", "state", "premises", "at", "changed_at"}
EFFECT = {"id", "kind", "action", "tool", "root", "state", "at"}
WHY = ("--reason", "it was paid")
REFUND = ("gate", "tx2", "--tool", "refund", "--premise", "f1")


@pytest.fixture
def desk(checked: Mem) -> Mem:
    """f1 is believed, tx2 is open with f1 in its snapshot, and `hold` is a tool that can be taken back."""
    assert checked.person("policy", "set", "tool", "hold", "reversible") == "set tool hold to reversible\n"
    assert checked.run("tx", "begin", "--agent", "billing").code == 0
    assert checked.run("tx", "stage", "tx1", "Invoice 17 is unpaid", "--reference", "erp").code == 0
    assert checked.run("tx", "commit", "tx1").code == 0
    assert checked.run("tx", "begin", "--agent", "payer").code == 0
    return checked


def receipt(mem: Mem, *words: str, stdin: bytes = b"") -> str:
    """Return the receipt of a call that the gate allows."""
    answer = mem.ok(*(words or REFUND), stdin=stdin)
    assert answer["allow"] is True
    return str(answer["receipt"])


def acted(mem: Mem, tool: str = "refund") -> str:
    """Do what the gate allows on f1, and return the action."""
    leave = receipt(mem, "gate", "tx2", "--tool", tool, "--premise", "f1")
    action = str(mem.ok("act", "begin", "--receipt", leave)["id"])
    assert mem.run("act", "done", action).code == 0
    return action


def states(mem: Mem) -> dict[str, str]:
    return {action["id"]: action["state"] for action in mem.ok("act", "list")}


# -------------------------------------------------------------------- the gate


def test_what_may_go_ahead_gets_a_receipt_that_is_good_for_one_call(desk: Mem) -> None:
    answer = desk.ok(*REFUND)
    begun = desk.ok("act", "begin", "--receipt", answer["receipt"])
    done = desk.ok("act", "done", begun["id"])

    assert answer == {"allow": True, "reasons": [], "blockers": [], "receipt": "r1"}
    assert set(begun) == set(done) == ACTION
    assert (begun["state"], done["state"], done["premises"]) == ("running", "done", [desk.ids()[0]])


def test_a_person_reads_what_to_type_next(desk: Mem) -> None:
    said = [
        desk.person(*REFUND),
        desk.person("act", "begin", "--receipt", "r1"),
        desk.person("act", "failed", "a1"),
        desk.person("act", "list"),
    ]

    assert "".join(said) == snapshot("""\
allowed: refund, irreversible · receipt r1, good once
  mem act begin --receipt r1
a1 refund is running · mem act done a1
a1 refund failed
  ID  STATE   TOOL                  TX   SINCE
  a1  failed  refund  irreversible  tx2  just now
""")


def test_a_draft_of_anybody_shuts_the_gate_and_the_answer_names_it(desk: Mem) -> None:
    desk.run("tx", "begin", "--agent", "billing-agent", "--lease", "600")
    desk.run("tx", "stage", "tx3", "--subject", "refund", "--attribute", "due", "--value", "900")
    desk.now += timedelta(minutes=4, seconds=1)

    ran = desk.run(*REFUND, "--json")

    assert ran.code == 1
    assert ran.document == {
        "allow": False, "reasons": [f"G1_UNSETTLED:{desk.ids()[1]}"], "blockers": desk.ids()[1:], "receipt": None,
    }  # fmt: skip
    assert ran.err == ""
    assert desk.person(*REFUND) == snapshot("""\
blocked: refund is irreversible and 1 draft is unsettled
  G1  f2 “refund · due = 900” staged by billing-agent 4 m ago in tx3 (lease
      ends in 5 m)
settle it: mem tx show tx3 · mem tx abort tx3 · or wait and run mem tx recover
--- exit 1
""")
    assert desk.run("tx", "abort", "tx3").code == 0
    assert desk.run(*REFUND).code == 0


def test_its_own_draft_shuts_it_too(desk: Mem) -> None:
    desk.run("tx", "stage", "tx2", "Refund 900", "--reference", "erp")

    assert desk.person(*REFUND).splitlines()[-2:] == [
        "settle it: mem tx commit tx2 · then ask in another",
        "--- exit 1",
    ]


def test_a_lease_that_is_over_is_for_recover(desk: Mem) -> None:
    desk.run("tx", "begin", "--lease", "60")
    desk.run("tx", "stage", "tx3", "Refund 900", "--reference", "erp")
    desk.now += timedelta(minutes=5)

    assert "settle it: mem tx recover\n" in desk.person(*REFUND)
    assert desk.run("tx", "recover").out == "aborted tx3\n"
    assert desk.run(*REFUND).code == 0


@pytest.mark.parametrize(
    ("profile", "code", "reasons"), [("strict", 1, ["G3_NO_PREMISE"]), ("paper", 0, [])], ids=["strict", "paper"]
)
def test_the_profile_says_which_rules_there_are(desk: Mem, profile: str, code: int, reasons: list[str]) -> None:
    ran = desk.run("gate", "tx2", "--tool", "refund", "--profile", profile, "--json")

    assert (ran.code, ran.document["reasons"]) == (code, reasons)


def test_every_reason_is_explained_with_its_premise(desk: Mem) -> None:
    desk.run("tx", "begin", "--isolation", "raw")
    desk.run("tx", "stage", "tx2", "Order 9 is late", "--reference", "erp", "--visibility", "private")
    desk.run("tx", "commit", "tx2")
    desk.person("policy", "set", "tool", "post", "irreversible@public")

    screen = desk.person("gate", "tx3", "--tool", "post", "--premise", "f2")

    assert screen == snapshot("""\
blocked: post is irreversible and 3 rules say no
  G5  its transaction reads what nobody believes yet
  G6  a premise is newer than its snapshot
  G8  the tool publishes wider than a premise may be seen
      f2 “Order 9 is late” (accepted) by anna, pipe, just now
settle it: mem tx begin --isolation accepted · mem tx begin · mem policy show
--- exit 1
""")


def test_what_a_premise_stands_on_and_what_contests_it_are_named(desk: Mem) -> None:
    due = ("--subject", "order 7", "--attribute", "due", "--value")
    for name, words in (("tx2", ("900", "--source", "billing")), ("tx3", ("800", "--source", "clerk"))):
        desk.run("tx", "stage", name, *due, *words, "--reference", "erp", "--derived-from", "f1")
        desk.run("tx", "commit", name)
        desk.run("tx", "begin")

    contested = desk.person("gate", "tx4", "--tool", "refund", "--premise", "f2")
    desk.person("revoke", "f1", *WHY)

    assert contested == snapshot("""\
blocked: refund is irreversible and 1 rule says no
  G7  an equal says otherwise about a premise, and waits
      f2 “order 7 due: 900” (accepted) by anna, pipe, just now
        against f3 “order 7 due: 800” (disputed) by anna, pipe, just now
settle it: mem review
--- exit 1
""")
    assert desk.person("gate", "tx4", "--tool", "refund", "--premise", "f2") == snapshot("""\
blocked: refund is irreversible and 2 rules say no
  G3  a premise is in a state that carries no such call
  G3  a premise was built on what is withdrawn or not settled
      f2 “order 7 due: 900” (revoked) by anna, terminal, just now
        stands on f1 “Invoice 17 is unpaid” (revoked) by anna, terminal, just
          now
settle it: mem show · mem review
--- exit 1
""")


def test_a_tool_that_can_be_taken_back_passes(desk: Mem) -> None:
    assert desk.ok("gate", "tx2", "--tool", "hold")["allow"] is True
    assert desk.run("gate", "tx2", "--tool", "hold2").code == 1


def test_a_premise_of_another_scope_is_refused(desk: Mem) -> None:
    desk.run("tx", "begin", "--scope", "user/anna")
    other = ("gate", "tx3", "--tool", "refund", "--premise", "f1", "--scope", "user/anna")

    free, bound = desk.run(*other), desk.run(*other, env={"MEM_SCOPE": "user/anna"})

    assert (free.code, free.err.splitlines()[0]) == (
        3,
        f"error: premise {desk.ids()[0]} belongs to another scope than user/anna",
    )
    assert (bound.code, bound.err.splitlines()[0]) == (4, f"error: no fact of user/anna has the id {desk.ids()[0]}")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("gate", "tx9", "--tool", "refund"), 4, "there is no transaction tx9"),
        (("gate", "tx1", "--tool", "refund"), 3, "transaction tx1 is committed"),
        (("gate", "tx2"), 2, "missing option '--tool'"),
        (("gate", "tx2", "--tool", ""), 2, "the tool is empty"),
        (("gate", "tx2", "--tool", "refund", "--premise", "abcd"), 4, "no fact of default has the id abcd"),
        (("gate", "tx2", "--tool", "refund", "--args", "none.json"), 5, "none.json: no such file or directory"),
        (("gate", "tx2", "--tool", "refund", "--profile", "loose"), 2, "invalid value for '--profile'"),
        (("act", "begin", "--receipt", "r9"), 4, "there is no receipt r9"),
        (("act", "begin", "--receipt", "paper"), 4, "there is no receipt paper"),
        (("act", "begin"), 2, "missing option '--receipt'"),
        (("act", "done", "a9"), 4, "there is no action a9"),
        (("act", "failed", ""), 4, "there is no action"),
        (("act", "reconcile", "a9", "done"), 4, "there is no action a9"),
        (("act", "reconcile", "a9", "lost"), 2, "lost is no state of an action here"),
        (("act", "list", "--state", "lost"), 2, "lost is no state of an action here"),
        (("effects", "ack", "x9"), 4, "there is no effect x9"),
        (("effects", "done", "nine"), 4, "there is no effect nine"),
        (("effects", "--output-format", "toml"), 2, "toml is no output format of this command"),
        (("revoke", "abcd", *WHY), 4, "no fact of default has the id abcd"),
        (("revoke", "f1"), 3, "this change needs a reason, and none was given"),
        (("revoke", "f1", "--reason", " "), 3, "this change needs a reason, and none was given"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_said_in_a_sentence(desk: Mem, words: tuple[str, ...], code: int, sentence: str) -> None:
    ran = desk.run(*words)

    assert ran.code == code
    assert ran.err.startswith(f"error: {sentence}")
    assert ran.out == ""


# -------------------------------------------------------------------- receipts and arguments


def test_a_receipt_is_good_once(desk: Mem) -> None:
    leave = receipt(desk)
    desk.run("act", "begin", "--receipt", leave)

    again = desk.run("act", "begin", "--receipt", leave)

    assert (again.code, again.err.splitlines()[0]) == (3, "error: receipt r1 was used for action a1, which is running")
    assert states(desk) == {"a1": "running"}


@pytest.mark.parametrize(
    ("asked", "called", "code"),
    [
        (b'{"order": 7, "sum": 900}', b'{ "sum": 900,\n "order": 7 }', 0),
        (b'{"order": 7, "sum": 900}', b'{"order": 7, "sum": 9000}', 3),
        (b'{"order": 7, "sum": 900}', b'{"order": 7, "sum": 900, "sum": 900}', 3),
        (b'{"order": 7}', b'{"order": "7"}', 3),
        (b"--order 7", b"--order 7", 0),
        (b"--order 7", b"--order 8", 3),
        (b"\xff\xfe", b"\xff\xfe", 0),
        (b"{}", None, 0),
        (b"", None, 3),
    ],
)
def test_a_receipt_is_good_for_the_arguments_it_was_given_for(
    desk: Mem, asked: bytes, called: bytes | None, code: int
) -> None:
    leave = receipt(desk, *REFUND, "--args", "-", stdin=asked)
    words = ("act", "begin", "--receipt", leave)

    ran = desk.run(*words) if called is None else desk.run(*words, "--args", "-", stdin=called)

    assert ran.code == code
    assert states(desk) == ({"a1": "running"} if code == 0 else {})


def test_arguments_may_stand_in_a_file(desk: Mem) -> None:
    (desk.home / "args.json").write_text(json.dumps({"order": 7}))
    leave = receipt(desk, *REFUND, "--args", "args.json")

    assert desk.run("act", "begin", "--receipt", leave, "--args", "args.json").code == 0


def test_a_receipt_ends_with_its_premise(desk: Mem) -> None:
    leave = receipt(desk)
    desk.person("revoke", "f1", *WHY)

    ran = desk.run("act", "begin", "--receipt", leave, "--json")

    assert (ran.code, ran.complaint["error"]) == (3, "stale")


def test_an_action_ends_once(desk: Mem) -> None:
    acted(desk)

    again = [
        desk.run("act", "done", "a1").code,
        desk.run("act", "failed", "a1").code,
        desk.run("act", "done", "r1").code,
    ]

    assert again == [0, 3, 0]
    assert desk.run("act", "list").out == "a1\tdone\trefund\tirreversible\tr1\ttx2\n"


def test_an_action_whose_end_nobody_saw_is_found_and_reconciled(desk: Mem) -> None:
    leave = receipt(desk)
    desk.run("act", "begin", "--receipt", leave)
    early = desk.run("act", "reconcile", "a1", "done")
    desk.now += timedelta(hours=1)

    line, found = desk("tx", "recover"), desk.ok("act", "list", "--state", "unknown")

    assert early.code == 3
    assert line == "aborted tx2 · 1 action unknown: a1 · mem act reconcile A STATE\n"
    assert [set(action) for action in found] == [ACTION]
    assert desk.person("act", "list").endswith("  mem act reconcile A done · mem act reconcile A failed\n")
    assert desk("act", "reconcile", "a1", "failed") == "a1 refund is failed\n"
    assert desk.run("act", "reconcile", "a1", "done").code == 3


# -------------------------------------------------------------------- revoke


@pytest.fixture
def built(desk: Mem) -> Mem:
    """On f1 stand f2, on that the summary f3, a refund that was made and a hold that was placed."""
    desk.run("tx", "commit", "tx2")
    for number, (text, *words) in enumerate(
        [
            ("The customer is in arrears", "--derived-from", "f1"),
            ("Account status: arrears", "--derived-from", "f2", "--kind", "summary"),
        ],
        start=3,
    ):
        desk.run("tx", "begin")
        desk.run("tx", "stage", f"tx{number}", text, "--reference", "erp", *words)
        assert desk.run("tx", "commit", f"tx{number}").code == 0
    desk.run("tx", "begin")
    for tool, premise in (("refund", "f2"), ("hold", "f1")):
        leave = receipt(desk, "gate", "tx5", "--tool", tool, "--premise", premise)
        assert desk.run("act", "done", desk.ok("act", "begin", "--receipt", leave)["id"]).code == 0
    return desk


def test_a_dry_run_draws_what_would_fall(built: Mem) -> None:
    events = built.events()

    screen, document = built.person("revoke", "f1", "--dry-run"), built.ok("revoke", "f1", "--dry-run")

    assert screen == snapshot("""\
f1 “Invoice 17 is unpaid” (accepted) → revoked
├─ f2 “The customer is in arrears” (accepted) → revoked
│  ├─ f3 summary “Account status: arrears” (accepted) → disputed, to be
      rebuilt
│  └─ a1 refund, done → leak: cannot be undone, must be acknowledged
└─ a2 hold, done → compensation due: make it good
nothing changed · 2 beliefs, 1 view, 1 leak, 1 compensation
""")
    assert set(document) == {"root", "falls", "applied"}
    assert [set(item) for item in document["falls"]] == [{"id", "under", "fact", "action", "becomes"}] * 5
    f1, f2, f3 = built.ids()
    assert [(item["id"], item["under"], item["becomes"]) for item in document["falls"]] == [
        (f1, None, "revoked"),
        (f2, f1, "revoked"),
        (f3, f2, "disputed"),
        ("a1", f2, "leak"),
        ("a2", f1, "compensation"),
    ]
    assert set(document["falls"][0]["fact"]) == FACT
    assert set(document["falls"][3]["action"]) == ACTION
    assert built.events() == events


def test_what_falls_is_owed_until_somebody_deals_with_it(built: Mem) -> None:
    assert built.run("effects", "--check").code == 0
    assert built.ok("effects") == []

    fact = built.person("revoke", "f1", *WHY)
    open_, listed = built.run("effects", "--check"), built.ok("effects")

    assert fact.endswith("\nrevoked f1 · 2 beliefs, 1 view, 1 leak, 1 compensation\n")
    assert open_.code == 1
    assert [set(item) for item in listed] == [EFFECT] * 2
    assert {(item["kind"], item["state"]) for item in listed} == {("leak", "open"), ("compensation", "open")}
    leak = next(item["id"] for item in listed if item["kind"] == "leak")
    other = next(item["id"] for item in listed if item["kind"] == "compensation")
    assert built.ok("effects", "ack", leak)["state"] == "acked"
    assert built.run("effects", "--check").code == 1
    assert built.ok("effects", "done", other)["state"] == "done"
    assert built.run("effects", "--check").code == 0
    assert built.ok("effects", "ack", other)["state"] == "done"


def test_effects_say_for_which_fact_they_are_owed(built: Mem) -> None:
    built.person("revoke", "f2", *WHY)

    assert built.person("effects") == snapshot("""\
  ID  KIND  STATE  TOOL    BECAUSE                                      SINCE
  x1  leak  open   refund  f2 “The customer is in arrears” was revo…  just now

1 effect open
  mem effects ack x1
""")
    ran = built.run("effects", "--check", "--output-format", "github")
    assert ran.code == 1
    assert ran.out.startswith("::error file=memory.db,title=mem leak::x1: refund (a1) was done on")


def test_a_second_revoke_adds_nothing(built: Mem) -> None:
    built.person("revoke", "f1", *WHY)
    before = built.ok("effects")

    again = built.person("revoke", "f1", *WHY)

    assert again.endswith("\nrevoked f1 · 1 leak, 1 compensation\n")
    assert built.ok("effects") == before


def test_a_script_s_revoke_is_a_proposal_in_a_reviewed_file(reviewed: Mem) -> None:
    reviewed.person("add", "Tea is hot")

    ran = reviewed.run("revoke", "f1", *WHY, "--json")

    assert (ran.code, ran.complaint["error"], ran.document["op"]) == (6, "held", "revoke")
    assert reviewed.ok("show", "f1")["state"] == "accepted"
    assert reviewed.run("revoke", "f1", "--dry-run").code == 0


def test_a_chain_of_any_depth_is_drawn(mem: Mem) -> None:
    mem.run("add", "Step 0")
    for number in range(1, 20):
        mem.run("add", f"Step {number}", "--derived-from", f"f{number}")

    screen = mem.run("revoke", "f1", "--dry-run").out

    assert screen.count("→ revoked") == 20
    assert screen.endswith("nothing changed · 20 beliefs\n")
    assert len(mem.ok("revoke", "f1", "--dry-run")["falls"]) == 20
