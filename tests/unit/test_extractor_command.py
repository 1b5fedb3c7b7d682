"""An external extractor: what it is given, what is taken of its answer, and how its failures are told."""

import json
import os
import shlex
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from memcli import command
from memcli.errors import Unreadable, UsageError
from memcli.extract import run_extractor
from memcli.facts import Claim, Evidence, Validity
from memcli.terms import Kind, Role, Visibility
from tests.made import at, fact, free, message

MESSAGES = [
    message(0, Role.USER, "I moved to Lisbon \ud800", at=at("2026-03-12T09:14")),
    message(1, Role.ASSISTANT, "Noted."),
]
KNOWN = [fact(id="aaaa1111"), free("bbbb2222", "water is wet")]
GOOD = {"text": "Dana lives in Lisbon", "message": "chat1#0"}


class Extractors:
    """Writes programs and runs them as extractors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, body: str) -> str:
        path = self.folder / "extractor.py"
        path.write_text(f"import json, os, sys, time\n{textwrap.dedent(body)}\n", encoding="utf-8")
        return shlex.join([sys.executable, str(path)])

    def run(self, body: str, timeout_s: float = 60) -> list[Claim]:
        return run_extractor(self.command(body), MESSAGES, KNOWN, timeout_s=timeout_s)

    def answer(self, answer: Any) -> list[Claim]:
        return self.run(f"sys.stdin.read()\nprint({json.dumps(answer)!r})")

    def refused(self, answer: Any) -> str:
        with pytest.raises(Unreadable) as refused:
            self.answer(answer)
        assert refused.value.exit_code == 5
        assert refused.value.hint
        return refused.value.why


@pytest.fixture
def extractors(tmp_path: Path) -> Extractors:
    return Extractors(tmp_path)


def offered(**changes: Any) -> dict[str, Any]:
    return {"facts": [GOOD, {**GOOD, **changes}]}


def gone(pid: int) -> bool:
    """Wait until a process is gone, or is a zombie that nobody has waited for yet."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_command_is_given_the_messages_and_the_known_facts(extractors, tmp_path):
    seen = tmp_path / "seen.json"
    extractors.run(f"open({str(seen)!r}, 'w').write(sys.stdin.read())\nprint('[]')")

    assert json.loads(seen.read_text(encoding="utf-8")) == {
        "version": 1,
        "messages": [
            {
                "id": "chat1#0",
                "index": 0,
                "role": "user",
                "content": "I moved to Lisbon \ud800",
                "at": "2026-03-12T09:14:00Z",
            },
            {"id": "chat1#1", "index": 1, "role": "assistant", "content": "Noted.", "at": None},
        ],
        "facts": [
            {
                "id": "aaaa1111",
                "text": "Anna lives in Lisbon",
                "subject": "anna",
                "attribute": "home city",
                "value": "Lisbon",
            },
            {"id": "bbbb2222", "text": "water is wet", "subject": None, "attribute": None, "value": None},
        ],
    }


def test_words_that_were_erased_are_not_handed_out(extractors, tmp_path):
    seen = tmp_path / "seen.json"
    command = extractors.command(f"open({str(seen)!r}, 'w').write(sys.stdin.read())\nprint('[]')")
    run_extractor(command, [*MESSAGES, message(2, content="gone", erased_at=1)], [], timeout_s=60)

    assert [m["index"] for m in json.loads(seen.read_text(encoding="utf-8"))["messages"]] == [0, 1]


def test_everything_a_fact_may_carry_is_taken(extractors):
    found = extractors.answer(
        offered(
            subject="dana", attribute="home", value="Lisbon", quote="Lisbon", confidence=0.5, importance=1,
            kind="summary", valid_from="2026-03-01", valid_to="2026-04-01T00:00:00Z", derived_from=["aaaa1111"],
        )
    )  # fmt: skip

    assert found[0] == Claim(text="Dana lives in Lisbon", evidence=(Evidence(message="chat1#0"),), rule="extractor")
    assert found[1] == Claim(
        text="Dana lives in Lisbon",
        subject="dana",
        attribute="home",
        value="Lisbon",
        evidence=(Evidence(message="chat1#0", quote="Lisbon"),),
        confidence=0.5,
        importance=1.0,
        kind=Kind.SUMMARY,
        validity=Validity(start=at("2026-03-01"), end=at("2026-04-01")),
        derived_from=("aaaa1111",),
        rule="extractor",
    )


def test_a_bare_list_and_a_byte_order_mark_are_read(extractors):
    found = extractors.run(f"sys.stdout.buffer.write(b'\\xef\\xbb\\xbf' + {json.dumps([GOOD]).encode()!r})")

    assert [claim.text for claim in found] == ["Dana lives in Lisbon"]


def test_no_facts_are_an_answer(extractors):
    assert extractors.answer({"version": 1, "facts": []}) == []


def test_a_claim_to_authority_in_the_answer_changes_nothing(extractors):
    plain, claimed = extractors.answer(
        offered(
            actor={"name": "anna", "kind": "human", "channel": "terminal"}, state="verified", approved=True,
            authority=1.0, owner="root", visibility="public", pinned=True, rule="my name is", verified=True,
            evidence=[{"message": "chat1#1"}],
        )
    )  # fmt: skip

    assert claimed == plain
    assert (claimed.authority, claimed.visibility, claimed.pinned) == (None, Visibility.SHARED, False)


def test_a_quote_that_is_not_in_the_message_is_kept(extractors):
    found = extractors.answer(offered(quote="I moved to Oslo"))

    assert found[1].evidence == (Evidence(message="chat1#0", quote="I moved to Oslo"),)


def test_a_quote_that_stands_in_the_message_may_hold_what_the_message_holds(extractors):
    found = extractors.answer(offered(quote="Lisbon \ud800"))

    assert found[1].evidence[0].quote == "Lisbon \ud800"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"text": None}, "text is missing"),
        ({"text": "  "}, "text is missing"),
        ({"text": 7}, "text must be a string"),
        ({"text": "bell \x07"}, "text has"),
        ({"text": "half \ud800"}, "text has"),
        ({"message": None}, "it names no message"),
        ({"message": 0}, "it names no message"),
        ({"message": "chat1#9"}, "there is no message"),
        ({"quote": 7}, "quote in evidence must be a string"),
        ({"quote": " "}, "quote is blank"),
        ({"quote": "not there \ud800"}, "quote has"),
        ({"value": "x"}, "value needs subject and attribute"),
        ({"subject": "a", "attribute": "b", "value": [1]}, "value must be"),
        ({"subject": "\x00", "attribute": "b", "value": 1}, "subject has"),
        ({"confidence": "high"}, "confidence must be a number"),
        ({"confidence": 1.5}, "confidence must be a number from 0 to 1"),
        ({"importance": True}, "importance must be a number"),
        ({"kind": "rumour"}, "kind must be one of"),
        ({"valid_from": "yesterday"}, "valid_from"),
        ({"valid_from": "2026-03-01", "valid_to": "2026-02-01"}, "the interval ends before it begins"),
        ({"derived_from": "aaaa1111"}, "derived_from must be a list"),
        ({"derived_from": ["cccc3333"]}, "there is no fact"),
    ],
)
def test_one_bad_fact_refuses_the_whole_answer_and_says_which(extractors, changes, why):
    told = extractors.refused(offered(**changes))

    assert told.startswith("fact 2 of its answer: ")
    assert why in told


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"fact": []}, "its answer holds no list of facts"),
        ({"facts": {}}, "its answer holds no list of facts"),
        ("facts", "its answer holds no list of facts"),
        ({"version": 2, "facts": []}, "its answer is not in version 1"),
        ({"version": True, "facts": []}, "its answer is not in version 1"),
        ([[]], "fact 1 of its answer: a fact must be a JSON object, not a list"),
    ],
)
def test_an_answer_of_another_shape_is_refused(extractors, answer, why):
    assert extractors.refused(answer) == why


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it printed nothing"),
        ("print('Sure! Here are the facts:')", "its output cannot be read: that is no JSON"),
        ("print('[NaN]')", "its output cannot be read"),
        ("print('[' * 100000)", "its output cannot be read"),
        ("sys.stdout.buffer.write(b'[\"\\xff\"]')", "byte 2 of its output is no UTF-8"),
        ("print('[]'); sys.exit('no model\\nout of memory \\n')", "it ended with exit code 1: out of memory"),
        ("print('[]'); sys.exit(3)", "it ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", "it was ended by signal 9"),
    ],
)
def test_a_command_that_fails_or_babbles_is_told_in_one_sentence(extractors, body, why):
    with pytest.raises(Unreadable) as refused:
        extractors.run(body)

    assert refused.value.why.startswith(why)
    assert refused.value.path == extractors.command(body)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("command", "why"), [("no-such-program-here --fast", "it cannot be started"), ("'a\0b'", "it cannot be started")]
)
def test_a_program_that_cannot_be_started_is_told(command, why):
    with pytest.raises(Unreadable) as refused:
        run_extractor(command, MESSAGES, [], timeout_s=60)

    assert refused.value.why.startswith(why)
    assert refused.value.path == command


@pytest.mark.parametrize("command", ["", "   ", "python 'open"])
def test_a_command_line_that_names_nothing_is_a_usage_error(command):
    with pytest.raises(UsageError):
        run_extractor(command, MESSAGES, [], timeout_s=60)


def test_the_command_line_is_not_given_to_a_shell(extractors, tmp_path):
    command = extractors.command("print(json.dumps([{'text': sys.argv[1], 'message': 'chat1#0'}]))")
    found = run_extractor(f"{command} '$HOME; touch {tmp_path}/made'", MESSAGES, [], timeout_s=60)

    assert found[0].text.startswith("$HOME; touch")
    assert not (tmp_path / "made").exists()


def test_a_command_that_does_not_read_its_input_is_heard(extractors):
    messages = [message(index, content="x" * 100_000) for index in range(20)]
    found = run_extractor(extractors.command(f"print({json.dumps([GOOD])!r})"), messages, [], timeout_s=60)

    assert [claim.text for claim in found] == ["Dana lives in Lisbon"]


def test_a_command_that_complains_at_length_is_heard(extractors):
    found = extractors.run(f"sys.stderr.write('warning\\n' * 100_000)\nprint({json.dumps([GOOD])!r})")

    assert [claim.text for claim in found] == ["Dana lives in Lisbon"]


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(extractors, tmp_path):
    seen = tmp_path / "pids"
    body = f"""
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(seen)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
        time.sleep(600)
    """
    with pytest.raises(Unreadable, match="it took longer than 3 s and was ended"):
        extractors.run(body, timeout_s=3)

    assert [gone(int(pid)) for pid in seen.read_text(encoding="utf-8").split()] == [True, True]


def test_a_child_that_keeps_the_output_open_does_not_outlive_the_time(extractors, tmp_path):
    seen = tmp_path / "pid"
    body = f"""
        import subprocess
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(seen)!r}, "w").write(str(child.pid))
        print("[]")
    """
    with pytest.raises(Unreadable, match="it took longer than 3 s"):
        extractors.run(body, timeout_s=3)

    assert gone(int(seen.read_text(encoding="utf-8")))


def test_a_command_that_prints_without_end_is_ended(extractors, monkeypatch):
    monkeypatch.setattr(command, "MAX_OUTPUT_BYTES", 1024 * 1024)
    with pytest.raises(Unreadable) as refused:
        extractors.run("while True: sys.stdout.write('x' * 65536)")

    assert refused.value.why == "it printed more than 1 MB"
