"""The report: one failure fails an id, and what was not exercised is no pass."""

from tests.acceptance.report import CONTROLS, FAIL, NOT_PROVEN, PASS, UNEXERCISED, Outcome, markdown, worst

FIRST, SECOND, *_ = CONTROLS


def outcome(verdict: str, shows: str = FIRST) -> Outcome:
    return Outcome(test=f"test_{verdict}", verdict=verdict, why="because", shows=shows)


def test_the_worst_part_decides_and_no_part_is_unexercised():
    assert worst([PASS, PASS]) == PASS
    assert worst([PASS, UNEXERCISED]) == UNEXERCISED
    assert worst([PASS, UNEXERCISED, FAIL]) == FAIL
    assert worst([]) == UNEXERCISED


def test_the_report_names_every_id_with_its_verdict_and_control():
    lines = markdown([outcome(PASS), outcome(FAIL, SECOND)]).splitlines()

    assert f"| {FIRST} | 1 | 0 | 0 | pass | {CONTROLS[FIRST]} |" in lines
    assert f"| {SECOND} | 0 | 1 | 0 | fail | {CONTROLS[SECOND]} |" in lines
    assert sum("| 0 | 0 | 0 | unexercised |" in line for line in lines) == len(CONTROLS) - 2
    assert "- fail: test_fail – because" in lines


def test_a_matrix_has_a_row_and_a_column_for_each_cell():
    cells = [("A", PASS), ("B", UNEXERCISED), ("B", PASS)]
    found = [Outcome(test=column, verdict=verdict, cell=("M", "row", column)) for column, verdict in cells]

    assert "## M\n\n|  | A | B |\n|---|---|---|\n| row | pass | unexercised (1 of 2 parts pass) |\n" in markdown(found)


def test_the_sides_of_the_split_score_are_counted_apart():
    sides = [("positive obligations", PASS), ("positive obligations", FAIL), ("negative invariants", PASS)]
    said = markdown([Outcome(test="t", verdict=verdict, side=side) for side, verdict in sides])

    assert "| positive obligations | 1 | 1 | 0 |" in said
    assert "| negative invariants | 1 | 0 | 0 |" in said


def test_the_report_closes_with_what_a_pass_does_not_prove_and_begins_with_the_count_of_ids():
    lines = markdown([outcome(PASS), outcome(FAIL, SECOND)]).splitlines()

    told = f"Of {len(CONTROLS)} requirements: 1 pass, 1 fail, {len(CONTROLS) - 2} unexercised. 2 tests took part."
    assert lines[2] == told
    assert lines[-len(NOT_PROVEN) - 2 :] == ["## What a pass does not prove", "", *(f"- {item}" for item in NOT_PROVEN)]
    assert any("no model is asked" in item for item in NOT_PROVEN)


def test_every_id_has_a_control_and_only_the_one_that_needs_a_model_has_none():
    assert [name for name, control in CONTROLS.items() if control == "none"] == [
        "prompt.model_ignores_embedded_instructions"
    ]
    assert len(CONTROLS) == 20
