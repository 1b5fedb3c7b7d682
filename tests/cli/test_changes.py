"""Changes as a person makes them at a terminal and as a script makes them through a pipe."""

import json
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

WHY = ("--reason", "tidying up")
SLOT = ("--subject", "anna", "--attribute", "home city", "--value")


def fact(mem: Mem, name: str = "f1") -> Any:
    return mem.ok("show", name)


def everything(mem: Mem) -> tuple[Any, Any, Any]:
    """Return what a change would change: facts, log and queue."""
    return mem.ok("show", "--all-states"), mem.ok("log"), mem.ok("stats")["waiting"]


# -------------------------------------------------------------------- who is trusted at once


def test_a_person_at_a_terminal_is_believed(reviewed: Mem) -> None:
    assert reviewed.person("add", "Tea is HOT") == snapshot("added f1 · accepted\n")
    assert (fact(reviewed)["state"], fact(reviewed)["actor"]) == (
        "accepted",
        {"name": "anna", "kind": "human", "channel": "terminal"},
    )


def test_a_script_waits_for_review(reviewed: Mem) -> None:
    assert reviewed("add", "Tea is HOT") == snapshot("added f1 · tentative\n")
    assert (fact(reviewed)["state"], fact(reviewed)["actor"]["kind"]) == ("tentative", "script")
    assert reviewed.ok("show") == []
    assert reviewed.ok("stats")["waiting"] == 1


def test_a_script_is_believed_where_the_file_says_so(mem: Mem) -> None:
    mem("add", "Tea is HOT")

    assert fact(mem)["state"] == "accepted"


def test_facts_enter_a_checked_file_through_transactions_only(checked: Mem) -> None:
    for out in (checked("add", "Tea is HOT"), checked.person("add", "Tea is HOT")):
        assert "--- exit 3\n" in out
    assert checked.ids() == []


def test_half_a_terminal_is_a_pipe(reviewed: Mem) -> None:
    for number, around in enumerate(('"$@" | cat', '"$@" < /dev/null', '"$@" > out.txt'), 1):
        assert reviewed.term("add", f"Tea number {number} is HOT", around=around).code == 0
        assert fact(reviewed, f"f{number}")["actor"]["channel"] == "pipe"
    assert reviewed.term("add", "Milk is cold", around='"$@" 2> err.txt').code == 0
    assert fact(reviewed, "f4")["actor"]["channel"] == "terminal"


@pytest.mark.parametrize(
    "words",
    [
        ("correct", "f1", "Tea is warm"),
        ("retract", "f1"),
        ("tombstone", "f1"),
        ("erase", "f1"),
        ("undo", "e2"),
        ("dispute", "f1"),
    ],
    ids=" ".join,
)
def test_what_a_script_may_not_decide_becomes_a_proposal(reviewed: Mem, words: tuple[str, ...]) -> None:
    reviewed.person("add", "Tea is HOT")
    before = fact(reviewed)

    ran = reviewed.run(*words, *WHY)

    assert (ran.code, ran.out) == (6, "proposed p1\n")
    assert (
        ran.err == "error: nothing changed yet: this became proposal p1\nhint: a person decides it with `mem review`\n"
    )
    assert fact(reviewed) == before
    assert reviewed.ok("log")[-1]["op"] == "propose"
    assert reviewed.ok("stats")["waiting"] == 1


def test_lifting_is_proposed_too(reviewed: Mem) -> None:
    reviewed.person("tombstone", "--value", "Tea is HOT", *WHY)

    assert reviewed.run("lift", "t1", *WHY).code == 6
    assert reviewed.run("add", "tea is hot").code == 3


def test_only_a_terminal_verifies(mem: Mem) -> None:
    mem("add", "Tea is HOT")

    assert mem.run("verify", "f1").code == 3
    assert fact(mem)["state"] == "accepted"
    assert mem.person("verify", "f1") == "verified f1\n"
    assert fact(mem)["state"] == "verified"


def test_a_payload_that_claims_to_be_a_person_is_a_script(reviewed: Mem) -> None:
    reviewed.run("add", "Tea is HOT", "--actor", "a human at the terminal", "--authority", "1")

    assert fact(reviewed)["actor"]["kind"] == "script"
    assert fact(reviewed)["authority"] < 1
    assert fact(reviewed)["state"] == "tentative"


# -------------------------------------------------------------------- at the terminal


def test_the_reason_is_asked_for_where_it_was_not_given(reviewed: Mem) -> None:
    reviewed.person("add", "Tea is HOT")

    screen = reviewed.person("correct", "f1", "Tea is warm", answers=[("reason", "it cooled\r")])

    assert screen == snapshot("""\
reason: it cooled
corrected f1
""")
    assert (fact(reviewed)["text"], reviewed.ok("log")[-1]["reason"]) == ("Tea is warm", "it cooled")


def test_an_empty_answer_is_no_reason(reviewed: Mem) -> None:
    reviewed.person("add", "Tea is HOT")
    before = everything(reviewed)

    screen = reviewed.person("retract", "f1", answers=[("reason", "\r")])

    assert screen == snapshot("""\
reason:
error: this change needs a reason, and none was given
hint: say why with --reason TEXT
--- exit 3
""")
    assert everything(reviewed) == before


def test_an_interrupt_at_a_question_changes_nothing(reviewed: Mem) -> None:
    reviewed.person("add", "Tea is HOT")
    before = everything(reviewed)

    seen = reviewed.term("tombstone", "f1", answers=[("reason", "\x03")])

    assert seen.code == 130
    assert "Traceback" not in seen.screen
    assert everything(reviewed) == before


@pytest.mark.parametrize(("answer", "code", "left"), [("n\r", 2, ["Tea is HOT"]), ("y\r", 0, [])])
def test_erasing_is_confirmed(reviewed: Mem, answer: str, code: int, left: list[str]) -> None:
    reviewed.person("add", "Tea is HOT")

    seen = reviewed.term("erase", "f1", *WHY, answers=[("for good?", answer)])

    assert seen.code == code
    assert [item["text"] for item in reviewed.ok("show")] == left
    assert reviewed.run("check", "--residue", "tea is hot").code == (0 if code == 0 else 1)


def test_undo_without_an_event_shows_what_it_would_undo_first(reviewed: Mem) -> None:
    reviewed.person("add", "Tea is HOT")
    reviewed.person("correct", "f1", "Tea is warm", *WHY)

    screen = reviewed.person("undo", answers=[("undo this?", "y\r"), ("reason", "it was hot after all\r")])

    assert screen == snapshot("""\
e4 correct f1
v1 superseded: Tea is HOT
v2 accepted: Tea is warm
undo this? [y/N]: y
reason: it was hot after all
undone f1
""")
    assert (fact(reviewed)["text"], fact(reviewed)["version"]) == ("Tea is HOT", 3)
    assert reviewed.ok("check") == []


# -------------------------------------------------------------------- what changes do


def test_a_correction_keeps_the_old_value_knowable(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin", *SLOT, "Berlin")

    assert mem("correct", "f1", "Anna lives in Lisbon", "--valid-from", "2026-03-05", *WHY) == "corrected f1\n"

    assert [item["text"] for item in mem.ok("why", "f1")["versions"]] == [
        "Anna lives in Berlin",
        "Anna lives in Lisbon",
    ]
    assert fact(mem)["value"] == "Lisbon"
    assert [item["text"] for item in mem.ok("show", "--valid-at", "2026-03-01")] == ["Anna lives in Berlin"]
    assert mem.ok("recall", "berlin") == []


def test_a_rejected_value_stays_out_by_every_path_until_it_is_lifted(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin", *SLOT, "Berlin")
    (mem.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "I live in Berlin."}]))
    mem("import", "chat.json")

    assert mem("tombstone", "f1", *WHY) == "tombstoned f1 · t1\n"
    assert mem("add", "anna  LIVES in Berlin!") == snapshot("""\
--- stderr
error: that value was rejected in default on 12 Mar 2026 by anna: “tidying up”
hint: see it with `mem why f1`, lift it with `mem lift t1 --reason …`
--- exit 3
""")
    assert mem.run("add", "Anna has her home in Berlin", *SLOT, "berlin").code == 3
    assert mem.run("add", "Anna lives in Berlin", "--evidence", "s2#0").code == 3
    assert mem.ok("show") == []
    assert mem("lift", "t1", *WHY) == "lifted t1\n"
    assert mem.run("add", "Anna lives in Berlin").code == 0
    assert [item["state"] for item in mem.ok("show", "--all-states")] == ["accepted", "rejected"]


def test_reject_correct_restate_corroborate_is_still_refused(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin", *SLOT, "Berlin")
    mem("tombstone", "f1", *WHY)
    mem("add", "Anna lives in Lisbon", *SLOT, "Lisbon")

    restated = mem.run("add", "Anna lives in Berlin", *SLOT, "Berlin")
    corroborated = mem.run("import", "-", stdin=b'[{"role": "user", "content": "Anna lives in Berlin"}]')
    again = mem.run("add", "Anna lives in Berlin", "--evidence", "s3#0", "--quote", "Anna lives in Berlin")

    assert (restated.code, corroborated.code, again.code) == (3, 0, 3)
    assert [item["value"] for item in mem.ok("show")] == ["Lisbon"]


def test_what_was_retracted_takes_what_was_built_on_it_along(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin")
    mem("add", "Anna's time zone is CET", "--derived-from", "f1")
    mem("add", "Tea is HOT")

    assert mem("retract", "f1", *WHY) == "retracted f1\n"

    assert [fact(mem, name)["state"] for name in ("f1", "f2", "f3")] == ["revoked", "revoked", "accepted"]


def test_two_scripts_that_disagree_are_held(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin", *SLOT, "Berlin")

    assert mem("add", "Anna lives in Lisbon", *SLOT, "Lisbon") == snapshot("""\
held f2 · disputes f1, decide with `mem review`
--- stderr
error: fact f2 is held: f1 says otherwise, on the same authority
hint: a person decides it with `mem review`
--- exit 6
""")
    assert [item["state"] for item in mem.ok("show", "--all-states")] == snapshot(["disputed", "accepted"])


def test_saying_it_again_adds_no_second_fact(mem: Mem) -> None:
    mem("add", "Tea is HOT")

    assert mem("add", "tea is hot") == snapshot("corroborated f1 · new evidence, no second fact\n")
    assert len(mem.ids()) == 1


def test_an_erased_fact_leaves_no_words_and_stays_out(mem: Mem) -> None:
    mem("add", "Anna's password is swordfish")
    mem("correct", "f1", "Anna's password is tunafish", "--reason", "typed wrong")

    assert mem("erase", "f1", "--reason", "a secret") == snapshot(
        "erased 1 fact and 2 messages; the log keeps digests, no words\n"
    )

    for word in ("swordfish", "tunafish"):
        assert mem.ok("check", "--residue", word) == []
        assert word.encode() not in mem.db.read_bytes()
    assert mem.run("add", "anna's PASSWORD is swordfish").code == 3
    assert mem.ok("check") == []
    assert mem.ok("log", "verify")["findings"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("tombstone", "f1"),
        ("tombstone", "--value", "x y"),
        ("tombstone", "--contains", "tea"),
        ("erase", "f1"),
        ("erase", "--value", "tea"),
        ("import", "chat.json"),
        ("extract",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("person", [True, False])
def test_a_dry_run_changes_not_one_byte(mem: Mem, words: tuple[str, ...], person: bool) -> None:
    mem("add", "Tea is HOT")
    (mem.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "remember that milk is cold"}]))
    mem("import", "-", stdin=(mem.home / "chat.json").read_bytes())
    before = mem.db.read_bytes()

    ran = mem.term(*words, "--dry-run").code if person else mem.run(*words, "--dry-run").code

    assert ran == 0
    assert mem.db.read_bytes() == before


# -------------------------------------------------------------------- scopes and policy


def test_scopes_are_kept_apart_and_moved_by_people_only(mem: Mem) -> None:
    mem("add", "Anna lives in Berlin", "--scope", "user/anna")
    mem("add", "Bob lives in Rome", "--scope", "user/bob")
    mem("tombstone", "--value", "Anna lives in Paris", *WHY, "--scope", "user/anna")

    assert mem.ok("show") == []
    assert [item["text"] for item in mem.ok("show", "--scope", "user/bob")] == ["Bob lives in Rome"]
    assert len(mem.ok("show", "--all-scopes")) == 2
    assert mem.ok("log", "--all-scopes")[-2]["op"] == "read"
    assert mem.run("scope", "rename", "user/anna", "user/ann", *WHY).code == 3
    assert mem.person("scope", "rename", "user/anna", "user/ann", *WHY) == snapshot("renamed user/anna to user/ann\n")
    assert mem.run("add", "Anna lives in Paris", "--scope", "user/ann").code == 3
    assert mem.person("scope", "merge", "user/bob", "user/ann", *WHY) == snapshot("merged user/bob into user/ann\n")
    assert len(mem.ok("show", "--scope", "user/ann")) == 2
    assert mem.person("scope", "rename", "user/nobody", "x", *WHY) == snapshot("""\
error: there is no scope user/nobody
hint: list them with `mem scope list`
--- exit 4
""")
    assert mem.ok("check") == []


def test_the_policy_decides_who_wins_a_slot(mem: Mem) -> None:
    (mem.home / "chat.json").write_text(json.dumps([{"role": "user", "content": "I live in Berlin."}]))
    mem("import", "chat.json")
    for value in ("7", "nan", "high", ""):
        assert mem.person("policy", "set", "source", "s1", value).endswith("--- exit 2\n")

    assert mem.person("policy", "set", "source", "s1", "0.9") == "set source s1 to 0.9\n"
    mem("add", "Anna lives in Lisbon", *SLOT, "Lisbon")
    assert mem.run("add", "Anna lives in Berlin", *SLOT, "Berlin", "--evidence", "s1#0").code == 0
    assert [item["value"] for item in mem.ok("show")] == ["Berlin"]
    assert mem("add", "Anna lives in Rome", *SLOT, "Rome") == snapshot("""\
--- stderr
error: fact f2 holds another value there, from a source of more authority (0.9 against 0.5)
hint: see it with `mem why f2`, change it with `mem correct f2`
--- exit 3
""")
    assert mem.person("policy", "drop", "source", "s1") == "dropped source s1\n"
    assert mem.person("policy", "drop", "source", "s1").endswith("--- exit 4\n")
    assert mem.ok("policy", "show") == []


def test_an_oracle_that_the_policy_names_may_verify(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    for name, answer in (("yes", '{"verdict": "pass"}'), ("no", '{"verdict": "refuse"}'), ("odd", "maybe")):
        mem.person("policy", "set", "oracle", name, f"echo '{answer}'")

    assert mem.run("verify", "f1", "--oracle", "no").code == 3
    assert mem.run("verify", "f1", "--oracle", "odd").code == 5
    assert fact(mem)["state"] == "accepted"
    assert mem.run("verify", "f1", "--oracle", "yes").code == 0
    assert (fact(mem)["state"], fact(mem)["actor"]["kind"]) == ("verified", "oracle")
