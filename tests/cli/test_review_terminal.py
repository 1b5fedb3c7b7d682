"""The review as a person sees it: at a pseudo-terminal, one key for each decision."""

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pexpect
import pyte
import pytest
from inline_snapshot import snapshot

from memcli.facts import EventQuery, Fact
from memcli.store.check import check
from memcli.terms import Decision, Op, State
from tests.cli.driver import Mem
from tests.files import ANNA, EXTRACTOR, SCRIPT, add, chat, cite, city, memory, take

COLUMNS, ROWS = 80, 120
TIMEOUT_S = 60
ERASE_LINE = "\x15"
ENTER = "\r"


class Terminal:
    """A review that runs at a terminal; `ask` waits for a question and answers it."""

    def __init__(self, child: Any) -> None:
        self.child = child
        self.raw = b""

    def wait(self, question: str) -> None:
        """Read until a question stands there."""
        self.child.expect_exact(question.encode())
        self.raw += self.child.before + self.child.after

    def ask(self, question: str, answer: str) -> None:
        """Wait for a question and type the answer."""
        self.wait(question)
        self.child.send(answer.encode())

    def end(self) -> int:
        """Read to the end and return the exit code, or the signal below zero."""
        self.child.expect(pexpect.EOF)
        self.raw += self.child.before
        self.child.close()
        return -self.child.signalstatus if self.child.exitstatus is None else self.child.exitstatus

    @property
    def screen(self) -> str:
        """What was written, without what only a terminal reads."""
        screen = pyte.Screen(COLUMNS, ROWS * 5)
        pyte.ByteStream(screen).feed(self.raw)
        return "\n".join(line.rstrip() for line in screen.display).rstrip("\n")


@contextmanager
def review(mem: Mem, *words: str, columns: int = COLUMNS) -> Iterator[Terminal]:
    """Run `mem review` at a terminal, as bob; whatever still runs at the end is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking, on newer Pythons; the child execs at once
        child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "memcli", "review", "--db", str(mem.db), "--actor", "bob", *words],
            cwd=str(mem.home),
            env={**mem.env, "TERM": "xterm", "NO_COLOR": "1"},
            dimensions=(ROWS, columns),
            timeout=TIMEOUT_S,
        )
    try:
        yield Terminal(child)
    finally:
        child.close(force=True)


def offer(mem: Mem, *texts: str) -> list[Fact]:
    """Offer statements that an extractor found, oldest first."""
    with memory(mem.db) as store:
        return [add(store, text, actor=EXTRACTOR) for text in texts]


def states(mem: Mem, *facts: Fact) -> list[State]:
    with memory(mem.db) as store:
        return [store.get(fact.id).state for fact in facts]


def findings(mem: Mem) -> list[Any]:
    with memory(mem.db) as store:
        return check(store)


def test_an_item_stands_with_its_evidence_its_neighbours_and_the_keys(bare: Mem) -> None:
    with memory(bare.db) as store:
        source = take(store, chat("hello", "Anything for breakfast?", "I prefer oat milk, cow's gives me a rash"))
        add(store, "Anna prefers oat milk in coffee")
        add(
            store,
            "Anna prefers oat milk",
            actor=EXTRACTOR,
            subject="Anna",
            evidence=cite(f"{source}#2", "I prefer oat milk"),
            rule="I prefer",
        )

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    shown = bare.steady(terminal.screen)
    assert shown[: shown.index("   offered")] + shown[shown.index("\n     chat.json") :] == snapshot("""\

(1/1)  tentative · extracted from chat.json #2 by rule “I prefer”

   Anna  prefers oat milk

     chat.json #2  time unknown
     1  assistant  Anything for breakfast?
   ▸ 2  user       [I prefer oat milk], cow's gives me a rash

   resembles       f1 “Anna prefers oat milk in coffee” 95 % alike, accepted

 [a]ccept  [v]erify  [e]dit…  [r]eject…  re[t]ract…  keep [b]oth  [m]erge
 [d]ispute  [s]kip  [u]ndo  [q]uit  [?] help
decide (1/1): quit
0 of 1 item decided · 1 still waits\
""")


def test_a_whole_review_one_key_for_each_decision(bare: Mem) -> None:
    with memory(bare.db) as store:
        milk = add(store, "keeps oat milk in the kitchen")
        home = city(store, "Porto", evidence=cite(f"{take(store, chat('I live in Porto', session='a'))}#0"))
        moved = cite(f"{take(store, chat('I live in Faro', session='b'))}#0")
        rival = city(store, "Faro", actor=EXTRACTOR, evidence=moved)
    tea, car, dogs, more, skis, last = offer(
        bare, "Anna likes tea", "Anna drives a red car", "Anna hates dogs", "keeps more oat milk in the kitchen",
        "Anna skis", "Tom sails",
    )  # fmt: skip

    with review(bare) as terminal:
        terminal.ask("decide (1/7): ", "b")
        terminal.ask("decide (2/7): ", "a")
        terminal.ask("decide (3/7): ", "u")
        terminal.ask("decide (2/7): ", "v")
        terminal.ask("decide (3/7): ", "e")
        terminal.ask("text: ", f"{ERASE_LINE}Anna drives a blue car{ENTER}")
        terminal.ask("reason: ", f"repainted{ENTER}")
        terminal.ask("decide (4/7): ", "r")
        terminal.ask("reason: ", f"she has three{ENTER}")
        terminal.ask("decide (5/7): ", "m")
        terminal.ask("decide (6/7): ", "s")
        terminal.ask("decide (7/7): ", "q")
        assert terminal.end() == 0

    assert states(bare, home, rival, tea, car, dogs, more, skis, last) == [
        *(State.DISPUTED, State.DISPUTED, State.VERIFIED, State.ACCEPTED, State.REJECTED, State.REVOKED),
        *(State.TENTATIVE, State.TENTATIVE),
    ]
    with memory(bare.db) as store:
        assert store.get(car.id).text == "Anna drives a blue car"
        assert len(store.get(milk.id).provenance) == 2
        assert [stone.reason for stone in store.tombstones()] == ["she has three"]
        assert check(store) == []
    assert terminal.screen[terminal.screen.rindex("5 of 7") :] == snapshot("""\
5 of 7 items decided · 1 verified · 1 corrected · 1 rejected · 1 kept · 1 merged
1 skipped · 2 still wait\
""")


def test_the_reviewer_and_the_reason_stand_in_the_log(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis")

    with review(bare, "--reason", "weekly review") as terminal:
        terminal.ask("decide (1/1): ", "a")
        assert terminal.end() == 0
    with memory(bare.db) as store:
        event = store.events(EventQuery(fact=skis.id, op=Op.ACCEPT))[0]
    assert (event.actor.name, event.actor.is_person, event.reason) == ("bob", True, "weekly review")


def test_a_reason_that_was_given_for_all_is_taken_with_enter(bare: Mem) -> None:
    offer(bare, "Anna skis")

    with review(bare, "--reason", "weekly review") as terminal:
        terminal.ask("decide (1/1): ", "r")
        terminal.ask("reason [weekly review]: ", ENTER)
        assert terminal.end() == 0
    with memory(bare.db) as store:
        assert [stone.reason for stone in store.tombstones()] == ["weekly review"]


def test_what_a_rejection_hits_and_misses_is_shown_before_the_reason_is_asked(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis in winter")
    with memory(bare.db) as store:
        near = add(store, "Anna often skis in winter")

    with review(bare, "--state", "tentative") as terminal:
        terminal.ask("decide (1/1): ", "r")
        terminal.ask("reason: ", ENTER)
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    told = bare.steady(terminal.screen)
    assert "hits now       f1 “Anna skis in winter” (tentative) → rejected" in told
    assert "would NOT stop “Anna often skis in winter” (f2" in told
    assert "no reason, so nothing changed" in told
    assert "--dry-run" not in told
    assert states(bare, skis, near) == [State.TENTATIVE, State.ACCEPTED]


@pytest.mark.parametrize("answer", [ENTER, "\x04", f"{ERASE_LINE}Anna skis{ENTER}", f"{ERASE_LINE}{ENTER}"])
def test_an_edit_that_changes_nothing_leaves_the_item_where_it_was(bare: Mem, answer: str) -> None:
    (skis,) = offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "e")
        terminal.ask("text: ", answer if answer != "\x04" else ERASE_LINE + answer)
        terminal.ask("decide (1/1): ", "a")
        assert terminal.end() == 0
    assert states(bare, skis) == [State.ACCEPTED]
    with memory(bare.db) as store:
        assert store.get(skis.id).version == 1


def test_an_edit_of_a_slot_asks_for_its_value(bare: Mem) -> None:
    with memory(bare.db) as store:
        fact = city(store, "Lisbn", actor=EXTRACTOR)

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "e")
        terminal.ask("text: ", f"{ERASE_LINE}Anna moved to Lisbon{ENTER}")
        terminal.ask("home city: ", f"{ERASE_LINE}Lisbon{ENTER}")
        terminal.ask("reason: ", f"typing{ENTER}")
        assert terminal.end() == 0
    with memory(bare.db) as store:
        assert (store.get(fact.id).text, store.get(fact.id).value) == ("Anna moved to Lisbon", "Lisbon")


def test_a_merge_asks_into_which_of_several(bare: Mem) -> None:
    with memory(bare.db) as store:
        kept = [add(store, f"keeps oat milk in the {place}") for place in ("kitchen", "office")]
    (offered,) = offer(bare, "keeps oat milk in the garage")

    with review(bare, "--state", "tentative") as terminal:
        terminal.ask("decide (1/1): ", "m")
        terminal.ask("into: ", "9")
        terminal.ask("decide (1/1): ", "m")
        terminal.ask("into: ", "2")
        assert terminal.end() == 0
    with memory(bare.db) as store:
        assert sorted(len(store.get(fact.id).provenance) for fact in kept) == [1, 2]
    assert states(bare, offered) == [State.REVOKED]


def test_a_proposal_to_erase_is_shown_and_asked_about_twice(bare: Mem) -> None:
    with memory(bare.db) as store:
        fact = add(store, "Anna skis")
        with store.write(SCRIPT, "asked to") as write:
            write.propose(Op.ERASE, fact, {})

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "a")
        terminal.ask("accept this? y/n: ", "n")
        terminal.ask("decide (1/1): ", "a")
        terminal.wait("accept this? y/n: ")
        assert states(bare, fact) == [State.ACCEPTED]
        terminal.child.send(b"y")
        assert terminal.end() == 0
    with memory(bare.db) as store:
        assert store.get(fact.id).erased_at is not None


def test_a_near_duplicate_that_is_kept_does_not_come_back(bare: Mem) -> None:
    with memory(bare.db) as store:
        add(store, "prefers short answers without emoji")
        add(store, "prefers short answers without any emoji")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "a")
        terminal.ask("decide (1/1): ", "b")
        assert terminal.end() == 0
    assert "no such key here" in terminal.screen
    assert bare.run("review", "--check").code == 0


def test_undo_of_a_tombstone_says_how_to_lift_it(bare: Mem) -> None:
    offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "r")
        terminal.ask("reason: ", f"never{ENTER}")
        terminal.ask("decide (2/2): ", "u")
        terminal.ask("decide (2/2): ", "q")
        assert terminal.end() == 0
    assert "hint: end it with `mem lift t1 --reason …`" in terminal.screen


def test_help_says_what_each_key_does(bare: Mem) -> None:
    offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "?")
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    assert " s  skip: leave it in the queue" in terminal.screen


# ---------------------------------------------------------------- what comes between


def test_a_decision_about_what_changed_meanwhile_is_shown_again(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.wait("decide (1/1): ")
        with memory(bare.db) as store, store.write(ANNA) as write:
            write.dispute(store.get(skis.id))
        terminal.child.send(b"a")
        terminal.wait("changed since it was shown")
        terminal.ask("decide (1/1): ", "a")
        assert terminal.end() == 0
    assert "(1/1)  disputed" in terminal.screen
    assert states(bare, skis) == [State.ACCEPTED]


def test_no_lock_is_held_while_a_person_thinks(bare: Mem) -> None:
    offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.wait("decide (1/1): ")
        assert bare.run("add", "Tom sails", env={"MEM_TIMEOUT": "0"}).code == 0
        terminal.child.send(b"q")
        assert terminal.end() == 0


def test_an_interruption_keeps_what_was_decided(bare: Mem) -> None:
    facts = offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "a")
        terminal.ask("decide (2/2): ", "\x03")
        assert terminal.end() == 130
    assert states(bare, *facts) == [State.ACCEPTED, State.TENTATIVE]
    assert "1 of 2 items decided · 1 accepted · 1 still waits" in terminal.screen
    assert "hint: go on with `mem review`" in terminal.screen


def test_an_interruption_of_a_reason_decides_nothing(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "r")
        terminal.ask("reason: ", "half a reas\x03")
        assert terminal.end() == 130
    assert states(bare, skis) == [State.TENTATIVE]
    with memory(bare.db) as store:
        assert store.tombstones() == []


@pytest.mark.parametrize("decided", range(3))
def test_a_kill_between_decisions_loses_nothing(bare: Mem, decided: int) -> None:
    facts = offer(bare, "Anna skis", "Tom sails", "Eve reads")

    with review(bare) as terminal:
        for at in range(decided):
            terminal.ask(f"decide ({at + 1}/3): ", "a")
        terminal.wait(f"decide ({decided + 1}/3): ")
        os.kill(terminal.child.pid, signal.SIGKILL)
        assert terminal.end() == -signal.SIGKILL
    assert states(bare, *facts) == [State.ACCEPTED] * decided + [State.TENTATIVE] * (3 - decided)
    assert findings(bare) == []
    with review(bare) as terminal:
        terminal.ask(f"decide (1/{3 - decided}): ", "q")
        assert terminal.end() == 0


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.01, 0.05])
def test_a_kill_in_the_middle_of_a_decision_leaves_it_made_or_not(bare: Mem, delay_s: float) -> None:
    facts = offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "a")
        terminal.ask("decide (2/2): ", "a")
        time.sleep(delay_s)
        os.kill(terminal.child.pid, signal.SIGKILL)
        terminal.end()
    assert states(bare, facts[0]) == [State.ACCEPTED]
    assert states(bare, facts[1])[0] in (State.ACCEPTED, State.TENTATIVE)
    assert findings(bare) == []


def test_a_terminal_that_goes_away_loses_nothing(bare: Mem) -> None:
    facts = offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "a")
        terminal.wait("decide (2/2): ")
    assert states(bare, *facts) == [State.ACCEPTED, State.TENTATIVE]
    assert findings(bare) == []


def test_the_end_of_input_quits(bare: Mem) -> None:
    facts = offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "a")
        terminal.ask("decide (2/2): ", "\x04")
        assert terminal.end() == 0
    assert states(bare, *facts) == [State.ACCEPTED, State.TENTATIVE]


def test_several_keys_at_once_decide_nothing(bare: Mem) -> None:
    facts = offer(bare, "Anna skis", "Tom sails")

    with review(bare) as terminal:
        terminal.ask("decide (1/2): ", "aa")
        terminal.ask("decide (1/2): ", "\x1b[A")
        terminal.ask("decide (1/2): ", "a")
        terminal.ask("decide (2/2): ", "q")
        assert terminal.end() == 0
    assert states(bare, *facts) == [State.ACCEPTED, State.TENTATIVE]


def test_an_unknown_key_is_named_as_such_and_the_item_is_shown_again(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "x")
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    assert "no such key here; ? lists them" in terminal.screen
    assert states(bare, skis) == [State.TENTATIVE]


def test_a_window_that_changes_its_size_changes_nothing_but_the_layout(bare: Mem) -> None:
    (skis,) = offer(bare, f"Anna {'really ' * 12}skis")

    with review(bare) as terminal:
        terminal.wait("decide (1/1): ")
        terminal.child.setwinsize(24, 40)
        terminal.child.send(ENTER.encode())
        terminal.wait("decide (1/1): ")
        narrow = terminal.raw.decode().rpartition("tentative")[2].splitlines()
        terminal.child.send(b"a")
        assert terminal.end() == 0
    assert max(len(line) for line in narrow) <= 40
    assert states(bare, skis) == [State.ACCEPTED]


def test_untrusted_text_reaches_the_terminal_escaped(bare: Mem) -> None:
    hostile = "likes \x1b]0;owned\x07 \x1b[2J and \u202ebackwards"
    with memory(bare.db) as store:
        source = take(store, chat(hostile, hostile, hostile), path="\x1b[31m.json")
        add(store, hostile, actor=EXTRACTOR, evidence=cite(f"{source}#1", hostile), rule=hostile)

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "r")
        terminal.ask("reason: ", ENTER)
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    said = terminal.raw.decode()
    assert "owned" in said
    assert not [piece for piece in ("\x1b]0", "\x07", "\x1b[2J", "\x1b[31m", "\u202e") if piece in said]


def test_every_decision_has_its_key(bare: Mem) -> None:
    offer(bare, "Anna skis")

    with review(bare) as terminal:
        terminal.ask("decide (1/1): ", "?")
        terminal.ask("decide (1/1): ", "q")
        assert terminal.end() == 0
    assert [word for word in Decision if word.replace("-", " ") not in terminal.screen] == []


def test_input_from_a_pipe_is_no_terminal(bare: Mem) -> None:
    (skis,) = offer(bare, "Anna skis")
    done = subprocess.run(
        [sys.executable, "-m", "memcli", "review", "--db", str(bare.db)],
        input=b"a", env=bare.env, capture_output=True, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"mem review list" in done.stderr
    assert states(bare, skis) == [State.TENTATIVE]
