"""The verdicts of a run as Markdown: every id of the protocol, the matrices, the split score."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONTROLS: Mapping[str, str] = {
    "scope.cross_tenant_absent": "the scope that holds it returns it",
    "scope.caller_cannot_widen": "the bound scope still works",
    "scope.background_respects_boundary": "each scope's own derived material is returned",
    "evidence.claim_resolves_to_source": "at least one fact is in the block",
    "evidence.source_delete_reaches_derived": "a sibling source and its facts survive",
    "evidence.rebuild_from_retained": "built in",
    "gateway.no_bypass_path": "an allowed value passes through each",
    "gateway.model_cannot_claim_human_authority": "the same typed at a terminal is human and accepted",
    "tombstone.laundering_sequence": "a neighbour is still recalled",
    "tombstone.survives_ttl_and_prune": "an unrejected contemporary survives",
    "tombstone.key_normalization_attack": "a paraphrase is stored and recalled",
    "tombstone.reextraction_stays_inactive": "its other facts are readable",
    "tombstone.no_second_memory_unit": "surroundings are recalled",
    "correction.survives_reindex": "built in",
    "correction.retraction_without_replacement": "the source's other facts are recalled",
    "deletion.absent_after_reindex_and_restart": "a sibling of the same batch is returned",
    "deletion.absent_from_shared_copies": "the second file's own material stays",
    "retrieval.k_is_an_upper_bound": "k facts, not zero",
    "prompt.recall_is_fenced_as_data": "it did reach the block",
    "prompt.model_ignores_embedded_instructions": "none",
}
"""Every id, and the presence that is asserted beside its absence."""

PASS, FAIL, UNEXERCISED = "pass", "fail", "unexercised"
ORDER = (FAIL, UNEXERCISED, PASS)
SIDES = ("positive obligations", "negative invariants")

LIMITS = (
    "A pass says that these commands behaved so on this build and this machine, for the values that were tried. What is"
    " unexercised is not a pass, and an absence counts only beside the presence that the last column names."
)

NOT_PROVEN = (
    "that no other path into the file exists: the ways in that are known were driven, one value or a few through each",
    "that a paraphrase is stopped: a tombstone stops a value however it is spelt, and other words for it pass",
    "that a retracted or corrected value stays away when somebody new says it: new evidence may bring it back",
    "that a list of another tool, which names no facts, counts as anything but new evidence",
    "that a file which imported an export knows on which message a retracted fact stood: only a restore tells it",
    "that whoever owns the file cannot change it, or edit an export and seal it again: guards are tripwires, no locks",
    "that what left the file before it was forgotten is gone from exports, pages, backups, prompts and other copies",
    "that erased bytes are gone from the disk below the file system, or that a guess cannot be confirmed with the key",
    "what a model does with the block it is given: no model is asked here",
)
"""What a reader may take a pass for, and must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one test: the id it belongs to, its cell in a matrix, its side of the split score."""

    test: str
    verdict: str
    why: str = ""
    shows: str | None = None
    cell: tuple[str, str, str] | None = None
    side: str | None = None


def worst(verdicts: Iterable[str]) -> str:
    """Return fail before unexercised before pass; nothing at all is unexercised."""
    found = set(verdicts)
    return next((verdict for verdict in ORDER if verdict in found), UNEXERCISED)


def markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the whole report."""
    parts = ["# Acceptance", "", *_closure(outcomes), "", LIMITS, "", *_ids(outcomes)]
    for name in dict.fromkeys(outcome.cell[0] for outcome in outcomes if outcome.cell is not None):
        parts += ["", *_matrix(name, [outcome for outcome in outcomes if outcome.cell and outcome.cell[0] == name])]
    return "\n".join([*parts, "", *_split(outcomes), "", *_reasons(outcomes), "", *_not_proven()]) + "\n"


def _closure(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what the whole comes to, in one sentence; no share of a hundred, since ids differ in weight."""
    verdicts = [worst(outcome.verdict for outcome in outcomes if outcome.shows == name) for name in CONTROLS]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (PASS, FAIL, UNEXERCISED))
    return [f"Of {len(CONTROLS)} requirements: {counts}. {len(outcomes)} tests took part."]


def _not_proven() -> list[str]:
    return ["## What a pass does not prove", "", *(f"- {limit}" for limit in NOT_PROVEN)]


def _ids(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["## Protocol", "", "| id | pass | fail | unexercised | verdict | control |", "|---|---|---|---|---|---|"]
    for name, control in CONTROLS.items():
        verdicts = [outcome.verdict for outcome in outcomes if outcome.shows == name]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in (PASS, FAIL, UNEXERCISED))
        lines.append(f"| {name} | {counts} | {worst(verdicts)} | {control} |")
    return [*lines, "", "An id passes only where every part of it was exercised and passed."]


def _matrix(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    cells: dict[str, dict[str, list[str]]] = {}
    for outcome in outcomes:
        if outcome.cell is not None:
            _, row, column = outcome.cell
            cells.setdefault(row, {}).setdefault(column, []).append(outcome.verdict)
    columns = sorted(
        {column for row in cells.values() for column in row}, key=lambda name: (name.isdigit() and len(name), name)
    )
    lines = [f"## {name}", "", f"|  | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row, found in cells.items():
        lines.append(f"| {row} | {' | '.join(_cell(found.get(column, [])) for column in columns)} |")
    return lines


def _cell(verdicts: list[str]) -> str:
    """Return the verdict of a cell, and how many of its parts passed where they differ."""
    found = worst(verdicts)
    return found if len(set(verdicts)) < 2 else f"{found} ({verdicts.count(PASS)} of {len(verdicts)} parts pass)"


def _split(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["## Split score", "", "Counted apart: a memory that stores nothing passes every negative one.", ""]
    lines += ["| side | pass | fail | unexercised |", "|---|---|---|---|"]
    for side in SIDES:
        verdicts = [outcome.verdict for outcome in outcomes if outcome.side == side]
        lines.append(
            f"| {side} | {' | '.join(str(verdicts.count(verdict)) for verdict in (PASS, FAIL, UNEXERCISED))} |"
        )
    return lines


def _reasons(outcomes: Sequence[Outcome]) -> list[str]:
    found = [outcome for outcome in outcomes if outcome.verdict != PASS]
    lines = [f"- {outcome.verdict}: {outcome.test}{f' – {outcome.why}' if outcome.why else ''}" for outcome in found]
    return ["## What did not pass", "", *(lines or ["Nothing."])]
