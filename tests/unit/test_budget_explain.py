"""One message's life, the limits at which it would have stayed, and where two runs part."""

import pytest

from memcli.budget.differ import differ
from memcli.budget.explain import Range, Survival, explain, message_of
from memcli.budget.settings import Constructor
from memcli.errors import NotFound, UsageError
from tests.budget_runs import messages_of, run, said

TURNS = messages_of(said(*["user:10", "assistant:10"] * 5))
"""Five turns of twenty tokens."""


def test_a_message_that_left_tells_when_it_came_and_which_flush_took_it():
    notes = {"type": "vector", "name": "notes"}
    life = explain(run(TURNS, token_limit=100, blocks=[notes]), 2)

    assert (life.turn, life.written) == (1, 2)
    assert life.left is not None
    assert (life.left.write, life.left.first, life.left.stop) == (7, 0, 6)
    assert life.fate.blocks == ("notes",)
    assert life.fate.last_seen == 6


def test_a_message_that_stayed_was_taken_by_no_flush():
    life = explain(run(TURNS, token_limit=100), 9)

    assert life.left is None
    assert life.fate.last_seen == 9


def test_a_larger_limit_can_lose_what_a_smaller_one_kept():
    life = explain(run(TURNS, token_limit=100), 6)

    assert life.limits is not None
    assert any(one.last is not None for one in life.limits)
    for one in life.limits:
        assert explain(run(TURNS, token_limit=one.first), 6).fate.ended == "window"
        if one.last is not None:
            assert explain(run(TURNS, token_limit=one.last), 6).fate.ended == "window"
            assert explain(run(TURNS, token_limit=one.last + 1), 6).fate.ended != "window"
    assert life.limits[-1].last is None


def test_the_first_limit_that_keeps_everything_is_exact():
    limits = Survival([10] * 10, [True, False] * 5, flush_size=10).limits(0, 1000)

    # 142 * 0.7 is 99.4 and 143 * 0.7 is 100.1: a hundred tokens overflow the first of them.
    assert limits[-1] == Range(first=143, last=None)
    # A limit of 1 clamps the flush size to 0, so that nothing ever leaves.
    assert limits[:-1] == (Range(first=1, last=1),)


def test_the_newest_message_stays_at_every_limit_when_it_is_part_of_a_turn():
    assert Survival([10] * 10, [True, False] * 5).limits(9, 500) == (Range(first=1, last=None),)


def test_without_a_user_message_limits_that_empty_the_window_lose_the_newest():
    survival = Survival([10] * 4, [False] * 4)
    limits = survival.limits(3, 500)

    assert limits[-1].last is None
    # Of the limits before that some cut the window right after the newest message, and some long before it.
    assert [start for first, _, start in survival.outcomes(500) if first < limits[-1].first].count(4) >= 1


def test_the_constructors_clamp_a_flush_size_differently_and_so_keep_different_messages():
    counts, users = [10] * 10, [True, False] * 5
    sizes = {
        constructor: Survival(counts, users, flush_size=1000, constructor=constructor).limits(4, 300)
        for constructor in Constructor
    }

    assert sizes[Constructor.DIRECT] != sizes[Constructor.FROM_DEFAULTS]


def test_a_ratio_that_is_no_number_loses_nothing():
    assert Survival([10] * 4, [True] * 4, ratio=float("nan")).limits(0, 100) == (Range(first=1, last=None),)


def test_a_ratio_of_zero_loses_all_but_the_last_turn():
    survival = Survival([10] * 4, [True] * 4, ratio=0.0, flush_size=10)

    assert survival.limits(3, 100) == (Range(first=1, last=None),)
    assert survival.limits(0, 100) == (Range(first=1, last=1),)


def test_a_long_transcript_is_explained_in_a_few_thousand_steps():
    counts = [1 + 7919 * at % 600 for at in range(1000)]
    survival = Survival(counts, [at % 2 == 0 for at in range(1000)], flush_size=100)
    bound = survival.bound(30_000)

    assert bound > 400_000
    assert sum(1 for _ in survival.outcomes(bound)) < 5_000


def test_a_message_is_found_by_its_id_and_else_by_its_number():
    simulation = run(TURNS, token_limit=100)

    assert message_of(simulation, "3") == 3
    with pytest.raises(NotFound, match="no message 10"):
        message_of(simulation, "10")
    with pytest.raises(NotFound, match="no message x"):
        message_of(simulation, "x")


def test_two_settings_part_at_the_messages_that_only_one_keeps():
    left, right = run(TURNS, token_limit=100, token_flush_size=70), run(TURNS, token_limit=100, token_flush_size=10)

    found = differ(left, right)
    assert [shift.name for shift in found.settings] == ["token_flush_size"]
    assert [parted.index for parted in found.messages] == [2, 3, 4, 5]
    assert (found.only_left, found.only_right) == (0, 2)
    assert found.first_turn == 3
    assert {shift.name for shift in found.totals} >= {"window_messages", "flushes"}


def test_a_run_does_not_part_from_itself():
    simulation = run(TURNS, token_limit=100)

    found = differ(simulation, simulation)
    assert found.messages == found.settings == found.totals == found.blocks == ()
    assert found.first_turn is None


def test_runs_over_two_transcripts_are_not_compared():
    with pytest.raises(UsageError, match="different transcripts"):
        differ(run(TURNS, token_limit=100), run(TURNS[:4], token_limit=100))


def test_two_policies_part_in_settings_and_blocks_too():
    persona = {"type": "static", "name": "persona", "text": "be kind", "priority": 1}
    left = run(TURNS, token_limit=100, blocks=[persona])
    right = run(TURNS, policy="sliding", depth=2, blocks=[persona])

    found = differ(left, right)
    assert {"policy", "depth", "insert_method"} <= {shift.name for shift in found.settings}
    assert [(shift.name, shift.left, shift.right) for shift in found.blocks] == [("persona", 2, 0)]
    assert found.first_turn == 1


def test_writes_of_whole_turns_are_compared_by_messages():
    one_by_one, by_turn = run(TURNS, token_limit=1000), run(TURNS, token_limit=1000, writes="turn")

    assert len(by_turn.steps) < len(one_by_one.steps)
    assert differ(one_by_one, by_turn).messages == ()
