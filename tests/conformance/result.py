"""The page that says what the public suite found: made from a run, and compared with a run by a test.

`python -m tests.conformance.result` runs the suite and prints the page.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).with_name("RESULT.md")
PACKAGE = "agent-memory-integrity"
EDITS = {
    "tamper": "T1 content tamper",
    "truncate": "T2 tail truncation",
    "delete_middle": "T3 middle deletion",
    "reorder": "T4 reordering",
    "forge": "T5 forged insertion",
    "cross_replay": "T6 cross-context replay",
    "rollback_replay": "T7 rollback replay",
    "metadata_tamper": "T8 metadata tamper",
    "snapshot_rollback": "T9 snapshot rollback",
}

_UNMET = "what is gone is met by no reader; `mem check` reports it"
_OLDER = (
    "an older copy of the whole file is a genuine file; only a head that was pinned outside tells it from the newest"
)
_KEY = (
    "the key lies in the file, so whoever owns the file can write all of it anew; only a head that was pinned outside"
    " tells"
)
_AFTER = "an event after the pinned head, with seals made with the key of the file, is what a genuine change would be"

ACCEPTED: Mapping[str, Mapping[str, str]] = {
    "FactsRefused": {"truncate": _UNMET, "delete_middle": _UNMET, "snapshot_rollback": _OLDER},
    "FactsReported": {"snapshot_rollback": _OLDER},
    "FactsResealedReported": dict.fromkeys(EDITS, _KEY) | {"snapshot_rollback": _OLDER},
    "FactsResealedPinned": {"forge": _AFTER},
    "LogRefused": {"snapshot_rollback": _OLDER},
    "LogReported": {"snapshot_rollback": _OLDER},
    "LogRechainedReported": {"snapshot_rollback": _OLDER},
}
"""By target and edit: why an edit is not noticed there. A target that is not here notices every one."""

_HEAD = """\
# What the public suite for memory integrity found

`{package}` {version} edits the file behind the product's back and asks whether the product notices. *Rejected*: a
command that reads ended with exit code 13. *Reported*: `mem check`, or `mem log verify --head` with a head that was
written down outside the file, named it. *Accepted*: neither. Each line is one target of `adapter.py`; in the lines that
say so the attacker also takes the key out of the file, or chains the log anew.

| target | {edits} |
|---|{bars}
"""


def run(target: type) -> dict[str, str]:
    """Return the verdict of the suite on each edit of a target: rejected, reported or accepted, in its own words."""
    from agmi.check import run as checked

    return {row["attack"]: row["verdict"].lower() for row in checked(target())}


def line(name: str, verdicts: Mapping[str, str]) -> str:
    """Return the line of one target."""
    return f"| {name} | " + " | ".join(verdicts[edit] for edit in EDITS) + " |"


def page(lines: Sequence[str], names: Mapping[str, str]) -> str:
    """Return the page around the lines of the targets.

    Args:
        names: What each target that accepts something is called, by the name of its class.
    """
    head = _HEAD.format(
        package=PACKAGE, version=version(PACKAGE), edits=" | ".join(EDITS.values()), bars="---|" * len(EDITS)
    )
    cells: dict[str, list[str]] = {}
    for target, edits in ACCEPTED.items():
        for why in dict.fromkeys(edits.values()):
            marks = ", ".join(EDITS[edit].split()[0] for edit in EDITS if edits.get(edit) == why)
            cells.setdefault(why, []).append(f"{marks} of *{names[target]}*")
    reasons = [f"- {'; '.join(where)}: {why}." for why, where in cells.items()]
    return "\n".join([head.rstrip("\n"), *lines, "", "Why an edit is accepted where it is:", "", *reasons, ""])


def main() -> None:
    """Run the suite on every target and print the page."""
    from tests.conformance.adapter import TARGETS

    lines = [line(target.name, run(target)) for target in TARGETS]
    sys.stdout.write(page(lines, {target.__name__: target.name for target in TARGETS}))


if __name__ == "__main__":
    main()
