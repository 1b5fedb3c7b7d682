"""Many settings from one count, what is best, probes, depths, and numbers as a person writes them."""

import csv
import io
import random
from decimal import Decimal

import pytest

from memcli.budget.run import run as run_policy
from memcli.budget.settings import Constructor
from memcli.budget.spans import Depth, decimals, depths, whole_numbers
from memcli.budget.sweep import (
    Counted,
    Grid,
    Probe,
    Row,
    Table,
    as_csv,
    as_json,
    best,
    depth_table,
    probes_from,
    sweep,
)
from memcli.budget.window import Timeline
from memcli.errors import UsageError
from tests.budget_runs import messages_of, run, said, words

HOUR = 3_600_000_000
TURNS = messages_of(said("system:5", *["user:10", "assistant:10"] * 10))


def counted(messages, **given) -> Counted:
    counts = tuple(words(message.words) for message in messages)
    return Counted(roles=tuple(message.role for message in messages), thought=counts, real=counts, **given)


def grid(**given) -> Grid:
    base = {"token_limits": (50, 100, 400), "ratios": (Decimal("0.3"), Decimal("0.7")), "flush_sizes": (None, 10)}
    return Grid(**{**base, **given})


def others(setting):
    return run(TURNS, policy=setting.policy, token_limit=setting.token_limit)


# --- rows ---


def test_every_row_is_what_a_run_of_that_setting_gives():
    for row in sweep(counted(TURNS), grid()).rows:
        size = {} if row.flush_size is None else {"token_flush_size": row.flush_size}
        simulation = run(TURNS, token_limit=row.token_limit, chat_history_token_ratio=row.ratio, **size)

        assert row.flushes == len(simulation.flushes)
        assert row.window_messages == simulation.totals.window_messages
        assert row.real_tokens == simulation.totals.real
        assert row.over == simulation.totals.over
        assert row.system_evicted == (simulation.fates[0].ended != "window")


def test_the_grid_is_every_combination_in_order():
    rows = sweep(counted(TURNS), grid()).rows

    assert len(rows) == len(grid()) == 12
    assert [row.token_limit for row in rows] == [50] * 4 + [100] * 4 + [400] * 4
    assert [row.is_default for row in rows[:4]] == [False, False, True, False]


def test_a_small_limit_evicts_the_system_message_and_a_large_one_never_flushes():
    small, large = sweep(counted(TURNS), grid(token_limits=(50, 400), ratios=(Decimal("0.7"),), flush_sizes=(10,))).rows

    assert (small.system_evicted, small.never_flushed) == (True, False)
    assert (large.system_evicted, large.never_flushed) == (False, True)


def test_the_constructor_decides_what_becomes_of_a_flush_size_that_is_too_large():
    one = grid(token_limits=(100,), ratios=(Decimal("0.7"),), flush_sizes=(500,))

    assert [sweep(counted(TURNS), one, constructor=made).rows[0].flush_size for made in Constructor] == [70, 10]


def test_what_fixed_blocks_add_counts_towards_the_real_size():
    one = grid(token_limits=(400,), ratios=(Decimal("0.7"),), flush_sizes=(None,))
    plain, more = (sweep(counted(TURNS, fixed_tokens=tokens), one).rows[0] for tokens in (0, 300))

    assert more.real_tokens - plain.real_tokens == 300
    assert (plain.over, more.over) == (0, 105)


def test_other_policies_are_asked_and_stand_beside():
    rows = sweep(counted(TURNS), grid(policies=("llamaindex", "token")), others=others).rows

    assert {row.policy for row in rows} == {"llamaindex", "token"}
    assert {row.real_tokens for row in rows if row.policy == "token" and row.token_limit == 50} == {50}


def test_a_policy_that_nobody_simulates_is_refused():
    with pytest.raises(UsageError, match="token cannot be swept"):
        sweep(counted(TURNS), grid(policies=("token",)))


def test_a_grid_that_is_far_too_large_is_refused():
    with pytest.raises(UsageError, match="more than the 200,000"):
        sweep(counted(TURNS), grid(token_limits=tuple(range(1, 100_001))))


def test_a_transcript_without_messages_gives_rows_without_messages():
    rows = sweep(Counted(roles=(), thought=(), real=()), grid()).rows

    assert len(rows) == 12
    assert {row.window_messages for row in rows} == {0}


def test_each_of_many_settings_makes_what_it_makes_alone():
    chance = random.Random(5)
    for _ in range(40):
        counts = [chance.choice((0, 1, 3, 8, chance.randint(0, 40))) for _ in range(chance.randint(0, 30))]
        roles = tuple(chance.choice(("user", "assistant")) for _ in counts)
        ends = [at + 1 for at in range(len(counts)) if at + 1 == len(counts) or chance.random() < 0.7]
        writes = chance.choice((None, tuple(ends)))
        table = sweep(
            Counted(roles=roles, thought=tuple(counts), real=tuple(counts), writes=writes),
            Grid(
                token_limits=(10, 20, 40, 60), ratios=decimals("0.1:1.2:0.1", what="x"), flush_sizes=(1, 4, 7, 15, 39)
            ),
        )

        for row in table.rows:
            alone = Timeline(counts, [role == "user" for role in roles]).flushes(
                threshold=row.token_limit * row.ratio, flush_size=row.flush_size, writes=writes
            )
            assert row.flushes == len(alone.flushes)
            assert row.window_messages == alone.window[1] - alone.window[0]


# --- probes ---


def test_evidence_is_in_the_window_or_in_a_block_or_lost():
    probes = (Probe(question="first?", evidence=(1,)), Probe(question="last?", evidence=(19, 20)))
    one = grid(token_limits=(50,), ratios=(Decimal("0.7"),), flush_sizes=(10,))
    bare = sweep(counted(TURNS), one, probes=probes).rows[0]
    kept = sweep(counted(TURNS, takers=("notes",)), one, probes=probes).rows[0]

    assert (bare.in_window, bare.in_block, bare.lost) == (2 / 3, 0, 1 / 3)
    assert (kept.in_window, kept.in_block, kept.lost) == (2 / 3, 1 / 3, 0)
    assert (bare.reachable, kept.reachable) == (1, 2)


def test_a_question_is_answered_only_with_all_of_its_evidence():
    both = (Probe(question="both?", evidence=(1, 20)),)
    one = grid(token_limits=(50,), ratios=(Decimal("0.7"),), flush_sizes=(10,))

    assert sweep(counted(TURNS), one, probes=both).rows[0].reachable == 0
    assert sweep(counted(TURNS), grid(token_limits=(800,)), probes=both).rows[0].reachable == 1


def test_other_policies_are_probed_by_the_fates_of_their_messages():
    probes = (Probe(question="first?", evidence=(1,)), Probe(question="last?", evidence=(20,)))
    row = sweep(counted(TURNS), grid(policies=("token",), token_limits=(50,)), probes=probes, others=others).rows[0]

    assert (row.in_window, row.in_block, row.lost, row.reachable) == (0.5, 0, 0.5, 1)


def test_probes_name_messages_by_id_or_number():
    text = '{"question": "where?", "evidence": ["m2", 0]}\n\n{"question": "when?", "evidence": ["1"]}\n'

    found = probes_from(text, ["m0", "m1", "m2"])
    assert [(probe.question, probe.evidence) for probe in found] == [("where?", (0, 2)), ("when?", (1,))]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 1 of the probes is no JSON"),
        ("[" * 100_000, "line 1 of the probes is no JSON"),
        ("[]", "has no question"),
        ('{"question": "x", "evidence": []}', "no list of evidence"),
        ('{"question": "x", "evidence": "1"}', "no list of evidence"),
        ('{"question": "x", "evidence": [7]}', "names message 7, which is not there"),
        ('{"question": "x", "evidence": [true]}', "names message True, which is not there"),
        ('{"question": "x", "evidence": [null]}', "names message None, which is not there"),
    ],
)
def test_probes_that_cannot_be_meant_are_refused_with_their_line(line, why):
    with pytest.raises(UsageError, match=why):
        probes_from(line, ["a", "b"])


def test_a_probe_of_a_message_that_is_not_looked_at_is_refused():
    with pytest.raises(UsageError, match="message 21 is asked for, and only 21"):
        sweep(counted(TURNS), grid(), probes=[Probe(question="later?", evidence=(21,))])
    with pytest.raises(UsageError, match="message 5 is asked for, and only 5"):
        depth_table([(5,)], depths("2"), total=5)
    assert sweep(counted(TURNS), grid(), probes=[Probe(question="last?", evidence=(20,))]).probes == 1


# --- what is best ---


def test_the_best_setting_reaches_the_most_and_of_equals_sends_the_least():
    probes = tuple(Probe(question=str(at), evidence=(at,)) for at in range(21))
    table = sweep(counted(TURNS), grid(token_limits=(50, 400, 800)), probes=probes)

    found = best(table, "reachable")
    assert found is not None
    assert (found.token_limit, found.reachable) == (400, 21)


def test_where_less_is_better_the_least_is_best():
    found = best(sweep(counted(TURNS), grid()), "real_tokens")

    assert found is not None
    assert found.real_tokens == min(row.real_tokens for row in sweep(counted(TURNS), grid()).rows)


def test_a_column_that_ranks_nothing_is_refused():
    with pytest.raises(UsageError, match="by policy"):
        best(sweep(counted(TURNS), grid()), "policy")
    with pytest.raises(UsageError, match="filled by probes"):
        best(sweep(counted(TURNS), grid()), "reachable")


def test_nothing_is_best_among_no_rows():
    assert best(Table(rows=()), "over") is None


# --- as text ---


def test_csv_and_json_hold_the_same_rows():
    rows = sweep(counted(TURNS), grid()).rows

    table = list(csv.DictReader(io.StringIO(as_csv(rows))))
    lines = [as_json(row) for row in rows]
    assert [int(row["window_messages"]) for row in table] == [line["window_messages"] for line in lines]
    assert table[0]["system_evicted"] == "true"
    assert table[0]["reachable"] == ""
    assert lines[0]["reachable"] is None


@pytest.mark.parametrize("policy", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_text_that_a_spreadsheet_would_run_is_quoted(policy):
    (row,) = sweep(counted(TURNS), grid(token_limits=(50,), ratios=(Decimal(1),), flush_sizes=(10,))).rows
    named = Row(**{name: getattr(row, name) for name in Row.__dataclass_fields__} | {"policy": policy, "over": -1})

    (read,) = csv.DictReader(io.StringIO(as_csv([named])))
    assert read["policy"] == f"'{policy}"
    assert read["over"] == "-1"


# --- depths ---


def test_a_deeper_memory_shows_more_facts_and_loses_the_first_later():
    facts = [(0,), (3,), (9,)]

    shallow, deep = depth_table(facts, depths("2,8"), total=10)
    assert (shallow.visible, shallow.first_loss, shallow.half_life) == (1, 2, 2)
    assert (deep.visible, deep.first_loss, deep.half_life) == (2, 8, None)


def test_a_fact_that_was_said_again_stays_in_sight():
    (once,) = depth_table([(0,)], depths("4"), total=10)
    (again,) = depth_table([(0, 3, 6)], depths("4"), total=10)

    assert (once.visible, once.first_loss) == (0, 4)
    assert (again.visible, again.first_loss) == (1, None)


def test_a_fact_that_was_said_again_too_late_was_lost_in_between():
    (row,) = depth_table([(0, 8)], depths("4"), total=10)

    assert (row.visible, row.first_loss) == (1, 4)


def test_a_depth_in_time_shows_what_sliding_keeps():
    times = [0, 20 * HOUR, 30 * HOUR, 31 * HOUR]
    messages = messages_of(said(*["user:1"] * 4))
    (row,) = depth_table([(0,), (1,), (2,), (3,)], depths("11h"), total=4, times=times)

    simulation = run_policy(
        messages, policy="sliding", settings={"hours": 11}, count=words, encoding="words", times=times
    )
    assert row.visible == simulation.totals.window_messages == 2
    assert row.first_loss == 1


def test_a_depth_in_time_needs_times():
    with pytest.raises(UsageError, match="needs messages with times"):
        depth_table([(0,)], depths("7d"), total=1, times=[None])


# --- numbers ---


def test_lists_and_ranges_are_read_exactly_and_to_their_ends():
    assert whole_numbers("4k, 8k,16_000", what="--token-limit") == (4000, 8000, 16000)
    assert whole_numbers("1k:3k:500,1.5k", what="--token-limit") == (1000, 1500, 2000, 2500, 3000)
    assert decimals("0.1:0.9:0.1", what="--ratio") == tuple(Decimal(f"0.{digit}") for digit in range(1, 10))
    assert [float(ratio) for ratio in decimals("0.1:0.9:0.2", what="--ratio")] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert depths("1,30,7D") == (Depth(text="1", messages=1), Depth(text="30", messages=30),
                                 Depth(text="7d", micros=7 * 24 * HOUR))  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "x",
        "4kk",
        "0",
        "-1",
        "1.5",
        "nan",
        "inf",
        "1e3",
        "1:2",
        "1:2:0",
        "2:1:1",
        "1:2:3:4",
        "1:2:-1",
        "١",
        "9" * 99,
    ],
)
def test_numbers_that_cannot_be_meant_are_refused(text):
    with pytest.raises(UsageError):
        whole_numbers(text, what="--token-limit")
    assert whole_numbers("7", what="--token-limit") == (7,)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "7y", "d", "1,,2", "9" * 40])
def test_depths_that_cannot_be_meant_are_refused(text):
    with pytest.raises(UsageError):
        depths(text)
    assert depths("7d")[0].messages is None


def test_a_range_of_far_too_many_values_is_refused():
    with pytest.raises(UsageError, match="more than 10,000"):
        decimals("0:1:0.000001", what="--ratio")
