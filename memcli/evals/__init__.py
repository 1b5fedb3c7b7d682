"""Golden cases: what a memory must give, and must not, asked on the paths that an agent uses.

A case passes only where something was there to be seen: a memory that holds nothing passes none.
"""

from memcli.evals.answers import PROTOCOL, Answerer
from memcli.evals.cases import Case, read_cases
from memcli.evals.judge import Check, Judged, Verdict, judge, reasons
from memcli.evals.measures import (
    ADAPTATION,
    Correctness,
    Interval,
    Latency,
    Measures,
    Paired,
    Scores,
    figures,
    mcnemar,
    measure,
    pair,
    wilson,
)
from memcli.evals.outcome import Outcome, References, Spent, Task
from memcli.evals.run import Defaults, Tools, run_cases

__all__ = [
    "ADAPTATION",
    "PROTOCOL",
    "Answerer",
    "Case",
    "Check",
    "Correctness",
    "Defaults",
    "Interval",
    "Judged",
    "Latency",
    "Measures",
    "Outcome",
    "Paired",
    "References",
    "Scores",
    "Spent",
    "Task",
    "Tools",
    "Verdict",
    "figures",
    "judge",
    "mcnemar",
    "measure",
    "pair",
    "read_cases",
    "reasons",
    "run_cases",
    "wilson",
]
