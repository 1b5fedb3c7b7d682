"""tau-bench results: each record a conversation, and nothing of what it was worth."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memcli import exchange
from memcli.errors import Unreadable
from memcli.exchange import Opened
from memcli.terms import Role

FIXTURES = Path(__file__).parents[2] / "fixtures"
ASK = {"role": "user", "content": "cancel my flight"}


def result(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"task_id": 3, "reward": 0.0, "info": {"SECRET": 1}, "traj": [*messages], "trial": 1, **more}


def opened(tmp_path: Path, value: Any) -> Opened:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return exchange.open_file(str(path))


def texts(found: Opened) -> list[list[str]]:
    return [[turn.content for turn in conversation.turns] for conversation in found.conversations]


def test_a_real_file_gives_the_messages_that_a_careful_reader_counts():
    rows = json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    (row,) = (row for row in rows if row["format"] == "tau_bench")

    found = exchange.open_file(str(FIXTURES / row["file"]))

    every = [turn for conversation in found.conversations for turn in conversation.turns]
    assert (found.format, len(found.conversations), len(every)) == ("tau-bench", row["conversations"], row["messages"])
    assert Counter(turn.role for turn in every) == row["roles"]
    assert sum(len(turn.tool_calls) for turn in every) == row["tool_calls"]
    assert all(turn.name for turn in every if turn.role is Role.TOOL)
    assert found.warnings == ()


def test_trials_of_one_task_are_told_apart_and_the_task_is_not_said(tmp_path):
    found = opened(tmp_path, [result(ASK), result(ASK, trial=2), result(ASK, trial=None)])

    assert [conversation.session for conversation in found.conversations] == ["3/1", "3/2", "3"]
    assert "SECRET" not in repr(found)


def test_text_beside_a_call_is_kept(tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": "{}"}}
    found = opened(tmp_path, result({"role": "assistant", "content": "a moment", "tool_calls": [call]}))

    assert texts(found) == [["a moment"]]
    assert [len(turn.tool_calls) for turn in found.conversations[0].turns] == [1]


@pytest.mark.parametrize("bad", [None, 5, {}, {"task_id": 1, "traj": "text"}, result()])
def test_one_bad_record_costs_no_other(tmp_path, bad):
    found = opened(tmp_path, [bad, result(ASK)])

    assert texts(found) == [["cancel my flight"]]
    assert len(found.warnings) == 1


@pytest.mark.parametrize("junk", [None, 5, "x", [1], {"role": 5}, {"role": "tool", "content": {}}])
def test_a_message_of_the_wrong_type_costs_no_other(tmp_path, junk):
    found = opened(tmp_path, [result(junk, ASK)])

    assert texts(found)[0][-1] == "cancel my flight"
    assert found.warnings


def test_results_without_messages_are_no_success(tmp_path):
    with pytest.raises(Unreadable, match="no message stands in it"):
        opened(tmp_path, [result()])
    assert texts(opened(tmp_path, [result(ASK)])) == [["cancel my flight"]]
