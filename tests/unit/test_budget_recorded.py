"""Traces recorded from LlamaIndex's own Memory, replayed and compared field by field."""

import json
import os
from pathlib import Path

import pytest

from memcli.budget.simulate import replay
from tests.budget_traces import apart, counting

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted(Path(os.environ.get("MEM_BUDGET_CASES") or FIXTURES / "budget").glob("*.json"))


def test_there_are_cases_of_every_kind():
    kinds = {case.stem.split("_")[0] for case in CASES}

    assert kinds >= {"clamp", "error", "fact", "flush", "insert", "ratio", "tok", "trunc", "vector"}
    assert len(CASES) >= 96


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_recorded_case_is_replayed_to_the_token(case):
    recorded = json.loads(case.read_text(encoding="utf-8"))

    replayed = replay(recorded["config"], recorded["transcript"], counting(recorded["config"]))
    assert apart(replayed, recorded["expected"]) == []
