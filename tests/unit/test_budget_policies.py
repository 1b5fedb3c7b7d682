"""The policies that are mem's own, counted in words so that every figure can be checked by hand."""

import pytest

from memcli.budget.course import Held
from memcli.budget.honest import CHAT, NOTHING, Tally, all_real_tokens, overhead_of, real_tokens
from memcli.budget.messages import BudgetMessage, Estimates, Part, PartKind, all_tokens, message_tokens, text_part
from memcli.budget.public import blocks_from
from memcli.budget.raised import Raised
from memcli.budget.run import run
from memcli.errors import UsageError

HOUR = 3_600_000_000
HALF = {"chat_history_token_ratio": 0.5}


def words(text):
    return len(text.split())


def said(text, role="user", **kwargs):
    return BudgetMessage(role=role, parts=(text_part(text),), kwargs=kwargs)


def some(number, role="user"):
    return said(" ".join(["w"] * number), role)


def calling(name, arguments="{}"):
    call = {"id": name, "type": "function", "function": {"name": "look", "arguments": arguments}}
    return BudgetMessage(role="assistant", parts=(), kwargs={"tool_calls": [call]})


def answering(name, text):
    return said(text, "tool", tool_call_id=name)


def ran(*messages, policy="mem", blocks=(), encoding="words", ids=None, at=None, writes="message", times=None, **given):
    return run(
        messages,
        policy=policy,
        settings=given,
        count=words,
        encoding=encoding,
        blocks=blocks_from({"blocks": list(blocks)}),
        ids=ids,
        at=at,
        writes=writes,
        times=times,
    )


def ended(made):
    return [fate.ended for fate in made.fates]


def kept(made):
    return [fate.index for fate in made.fates if fate.ended == "window"]


def prompt(made):
    return [(piece.kind, piece.name, piece.real) for piece in made.prompt]


def block(made, name):
    return next(fate for fate in made.blocks if fate.name == name)


# --- what is counted ---


def real(message, overhead=NOTHING):
    return real_tokens(message, Estimates(), overhead, words)


def test_everything_that_is_sent_is_counted():
    call = calling("c1", '{"city": "Oslo"}')
    thinking = BudgetMessage(
        role="assistant", parts=(Part(kind=PartKind.THINKING, text="let me see"), text_part("yes"))
    )

    assert real(said("one two")) == 2
    assert real(call) == 4  # id, name, and two words of arguments
    assert real(answering("c1", "it rains")) == 3
    assert real(thinking) == 4
    assert real(said("hi", name="Ann")) == 2
    assert real(BudgetMessage(role="user", parts=(Part(kind=PartKind.IMAGE),))) == 256


def test_a_call_that_stands_twice_is_counted_once():
    part = Part(kind=PartKind.TOOL_CALL, text="{}", name="look", call="c1")
    both = BudgetMessage(role="assistant", parts=(part,), kwargs=calling("c1").kwargs)

    assert real(both) == real(calling("c1")) == 3
    assert real(BudgetMessage(role="assistant", parts=(part,))) == 3


def test_the_wrapping_of_a_chat_is_counted_where_it_is_known():
    assert overhead_of("o200k_base") == overhead_of("cl100k_base") == CHAT
    assert real(said("one two"), CHAT) == 2 + 3 + 1
    assert real(said("one two", name="Ann"), CHAT) == 2 + 3 + 1 + 1 + 1
    assert overhead_of("words") == overhead_of("chars") == overhead_of("p50k_base") == NOTHING

    made = ran(said("one two"), encoding="o200k_base")
    assert prompt(made) == [("message", "0", 6), ("template", "reply", 3)]
    assert (made.totals.real, made.totals.template) == (9, 3)


@pytest.mark.parametrize("others", [[], [calling("c1")], [said("")], [BudgetMessage(role="user", parts=())]])
@pytest.mark.parametrize("overhead", [CHAT, NOTHING])
def test_many_messages_cost_together_what_they_cost_one_by_one(others, overhead):
    messages = [said("one two"), said("three", "assistant"), *others, said("one two")]

    together = all_real_tokens(messages, Estimates(), overhead, Tally(words))
    assert together == tuple(real(message, overhead) for message in messages)
    counted = all_tokens(messages, Estimates(), Tally(words).all)
    assert counted == [message_tokens(message, Estimates(), words) for message in messages]


def test_each_text_is_counted_once_and_all_in_one_call():
    asked = []

    def many(texts):
        asked.append(list(texts))
        return [words(text) for text in texts]

    def never(text):
        raise AssertionError(text)

    made = run(
        [said("one two"), said("one two"), some(3)], policy="mem", count=never, count_many=many, encoding="words"
    )
    assert asked == [["one two", "w w w"]]
    assert made.totals.tokens == 7


def test_a_tally_remembers_what_it_counted():
    seen = []
    tally = Tally(lambda text: seen.append(text) or len(text))

    assert [tally("ab"), tally("ab"), tally("c")] == [2, 2, 1]
    assert seen == ["ab", "c"]


# --- mem: the window ---


def test_the_system_message_stays_and_the_oldest_leave():
    made = ran(said("be kind", "system"), some(4), some(4, "assistant"), some(4), token_limit=10)

    assert kept(made) == [0, 2, 3]
    assert prompt(made) == [("system", "0", 2), ("message", "2", 4), ("message", "3", 4)]
    assert made.fates[1].reason == "the conversation had 12 tokens and may have 8"
    assert (made.fates[1].last_seen, made.fates[1].ended) == (2, "dropped")


def test_a_flush_takes_no_more_than_it_must():
    made = ran(*[some(3) for _ in range(5)], token_limit=10)

    assert [(flush.write, flush.first, flush.stop, flush.before, flush.after) for flush in made.flushes] == [
        (3, 0, 1, 12, 9),
        (4, 1, 2, 12, 9),
    ]
    assert made.steps[3]["flushed"] == [{"first": 0, "stop": 1, "tokens": 3, "to_blocks": []}]


def test_a_call_and_its_results_leave_together_also_where_somebody_spoke_in_between():
    made = ran(
        some(2), calling("c1", "a"), some(2), answering("c1", "w w"), some(4), some(4, "assistant"), token_limit=12
    )

    assert kept(made) == [4, 5]
    assert [(flush.first, flush.stop) for flush in made.flushes] == [(0, 1), (1, 4)]


def test_a_call_without_a_result_holds_nothing_back():
    made = ran(calling("c1", "a"), some(4), some(4), token_limit=8)

    assert kept(made) == [1, 2]


def test_what_is_pinned_in_the_middle_stays_and_its_neighbours_leave():
    made = ran(some(3), said("a b", "system"), some(3), some(6), token_limit=9)

    assert kept(made) == [1, 3]
    assert [(flush.first, flush.stop) for flush in made.flushes] == [(0, 1), (2, 3)]


def test_the_conversation_has_its_ratio_of_what_is_not_pinned():
    blocks = [{"type": "facts", "facts": ["likes tea"]}]
    made = ran(said("be kind", "system"), some(4), some(4), token_limit=14, chat_history_token_ratio=0.5, blocks=blocks)

    assert made.effective["history_tokens"] == 6
    assert kept(made) == [0, 2]


def test_a_fixed_text_reserves_no_more_than_it_needs():
    blocks = [{"type": "static", "text": "likes tea"}]
    made = ran(*[some(4) for _ in range(4)], token_limit=20, chat_history_token_ratio=0.1, blocks=blocks)

    assert made.effective["history_tokens"] == 16  # the text and its two tags are 4
    assert kept(made) == [0, 1, 2, 3]
    assert made.totals.real == 20


def test_a_prompt_that_cannot_fit_is_refused_with_the_parts_and_the_shortfall():
    made = ran(said("a b c", "system"), some(2), some(9), token_limit=10)

    assert made.refused == (
        "the system message (message 0) has 3, the newest message (message 2) has 9: "
        "together 2 more than the limit of 10 tokens"
    )
    assert made.prompt == ()
    assert made.steps[-1]["short_by"] == 2
    assert not any(fate.reachable for fate in made.fates)
    assert [fate.last_seen for fate in made.fates] == [1, 1, None]
    assert ran(said("a b c", "system"), some(2), some(9), token_limit=12).refused is None


def test_pinned_messages_alone_may_be_what_is_too_large():
    made = ran(some(4, "system"), some(4, "developer"), encoding="o200k_base", token_limit=10)

    assert made.refused == (
        "the system messages (messages 0 to 1) have 16, the reply has 3: together 9 more than the limit of 10 tokens"
    )


def test_a_prompt_that_was_refused_on_the_way_is_told_and_the_run_goes_on():
    made = ran(some(2), some(9), some(2), token_limit=5)

    assert ["refused" in step for step in made.steps] == [False, True, False]
    assert made.refused is None
    assert kept(made) == [2]
    assert made.fates[1].last_seen is None
    assert made.fates[2].last_seen == 2


@pytest.mark.parametrize("limit", [0, -1, 1.5, "10", None, True, 2**53 + 1])
def test_mem_refuses_a_limit_that_is_no_whole_number_above_zero(limit):
    with pytest.raises(UsageError, match="token limit"):
        ran(some(1), token_limit=limit)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, "nan", float("nan"), "inf", None, True])
def test_mem_refuses_a_ratio_outside_of_zero_to_one(ratio):
    with pytest.raises(UsageError, match="ratio"):
        ran(some(1), chat_history_token_ratio=ratio)


@pytest.mark.parametrize("ratio", [0, 1, 0.5])
def test_mem_takes_a_ratio_from_zero_to_one(ratio):
    assert kept(ran(some(1), chat_history_token_ratio=ratio)) == [0]


# --- mem: what is given to blocks ---


def test_what_leaves_goes_to_the_blocks_that_keep_it():
    blocks = [{"type": "retrieved"}, {"type": "static", "text": "x"}]
    made = ran(said("Oslo is cold"), said("no it is not"), said("Oslo again"), token_limit=16, blocks=blocks, **HALF)

    assert made.flushes[0].blocks == ("retrieved",)
    assert ended(made)[0] == "block"
    assert made.fates[0].reachable
    assert ("block", "retrieved", 4) in prompt(made)


def test_a_short_conversation_is_captured_at_its_end_and_not_before():
    blocks = [{"type": "retrieved"}]
    made = ran(said("likes tea"), said("noted", "assistant"), blocks=blocks)
    looked = ran(said("likes tea"), said("noted", "assistant"), blocks=blocks, at=1)

    assert made.flushes == ()
    assert [(fate.ended, fate.blocks) for fate in made.fates] == [("window", ("retrieved",))] * 2
    assert made.steps[-1]["captured"] == [{"messages": [0, 1], "to_blocks": ["retrieved"], "why": "the end"}]
    assert "captured" not in looked.steps[-1]


def test_what_is_marked_important_is_captured_at_once_and_never_twice():
    blocks = [{"type": "facts", "facts": [], "learn": True, "name": "learnt"}]
    messages = [said("FACT: likes tea"), some(2), some(12)]
    made = ran(*messages, blocks=blocks, ids=["a", "b", "c"], important=["a"], token_limit=20)

    assert made.steps[0]["captured"] == [{"messages": [0], "to_blocks": ["learnt"], "why": "marked important"}]
    assert block(made, "learnt").got == 2
    assert made.fates[0].reachable


def test_an_important_message_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no message z"):
        ran(some(1), important=["z"])


# --- mem: how blocks share ---


def test_facts_go_one_by_one_the_least_important_first():
    facts = [
        {"text": "likes green tea", "importance": 0.2},
        {"text": "lives in Oslo", "importance": 0.9},
        "once was late",
    ]
    made = ran(some(4), token_limit=12, blocks=[{"type": "facts", "facts": facts}])

    assert [piece.text for piece in made.prompt if piece.kind == "block"] == ["lives in Oslo\nlikes green tea"]
    fate = block(made, "facts")
    assert (fate.fate, fate.wanted, fate.got) == ("shortened", 9, 6)
    assert fate.reason == "it wanted 11 tokens with its tags, and 8 fit"


def test_a_text_that_cannot_be_had_is_left_out_whole_with_the_reason():
    blocks = [{"type": "static", "name": "persona", "text": " ".join(["p"] * 9)}, {"type": "facts", "facts": ["a b"]}]
    made = ran(some(5), token_limit=12, blocks=blocks)

    assert (block(made, "persona").fate, block(made, "persona").got) == ("dropped", 0)
    assert block(made, "persona").reason == (
        "it needs 11 tokens with its tags, could have 3, and cannot be made that small"
    )
    assert block(made, "facts").fate == "whole"


def test_no_block_is_left_out_for_one_token():
    facts = ["a", "b", "c", "d"]
    blocks = [{"type": "static", "name": "persona", "text": "p p p p p"}, {"type": "facts", "facts": facts}]
    made = ran(some(1), token_limit=13, chat_history_token_ratio=0, blocks=blocks)

    assert block(made, "persona").fate == "whole"  # its share is 6 of 12, and it needs 7
    assert (block(made, "facts").fate, block(made, "facts").got) == ("shortened", 3)


def test_what_one_block_does_not_use_goes_to_the_others():
    blocks = [
        {"type": "facts", "name": "few", "facts": ["a"], "weight": 3},
        {"type": "facts", "name": "many", "facts": list("bcdefgh")},
    ]
    made = ran(some(1), token_limit=11, chat_history_token_ratio=0, blocks=blocks)

    assert [(fate.name, fate.got, fate.fate) for fate in made.blocks] == [("few", 1, "whole"), ("many", 5, "shortened")]
    assert made.totals.real == 11


def test_shares_follow_the_weights():
    blocks = [
        {"type": "facts", "name": "heavy", "facts": list("abcdefgh"), "weight": 2},
        {"type": "facts", "name": "light", "facts": list("abcdefgh"), "weight": 1},
    ]
    made = ran(some(1), token_limit=13, chat_history_token_ratio=0, blocks=blocks)

    assert [fate.got for fate in made.blocks] == [6, 2]  # 8 and 4 with the two tags of each


def test_passages_go_the_least_alike_first():
    messages = [said("Oslo fjord tea"), said("tea again"), said("unlike"), said("tea in Oslo by the fjord")]
    wide = ran(*messages, token_limit=40, chat_history_token_ratio=0.2, blocks=[{"type": "retrieved"}])
    tight = ran(*messages, token_limit=13, chat_history_token_ratio=0.2, blocks=[{"type": "retrieved"}])

    assert _passages(wide) == ["user: Oslo fjord tea", "user: tea again"]
    assert _passages(tight) == ["user: Oslo fjord tea"]
    assert block(tight, "retrieved").fate == "shortened"


def _passages(made):
    return next(piece.text for piece in made.prompt if piece.kind == "block").split("\n")


def test_more_facts_than_are_allowed_are_left_out_and_told():
    made = ran(some(1), blocks=[{"type": "facts", "facts": ["a", "b", "c"], "max_facts": 2}])

    fate = block(made, "facts")
    assert (fate.fate, fate.wanted, fate.got) == ("shortened", 3, 2)
    assert fate.reason == "1 more facts than max_facts allows"


@pytest.mark.parametrize(
    ("method", "order"),
    [("system", ["0", "core", "memory", "1", "2", "3"]), ("user", ["0", "1", "2", "core", "memory", "3"])],
)
def test_memory_stands_after_the_system_message_or_before_the_last_user_message(method, order):
    messages = [said("be kind", "system"), said("hello"), said("yes", "assistant"), said("and")]
    made = ran(*messages, insert_method=method, blocks=[{"type": "static", "name": "core", "text": "a b"}])

    assert [piece.name for piece in made.prompt] == order
    assert made.totals.template == 2


def test_memory_without_a_message_to_stand_in_pays_for_its_own():
    made = ran(some(1), encoding="o200k_base", blocks=[{"type": "static", "name": "core", "text": "a b"}])

    assert prompt(made)[:2] == [("block", "core", 2), ("template", "memory", 2 + 3 + 1)]


# --- the plain ones ---


def test_unbounded_keeps_everything_and_compares_with_the_limit():
    made = ran(*[some(4)] * 5, policy="unbounded", token_limit=12)

    assert kept(made) == [0, 1, 2, 3, 4]
    assert (made.totals.real, made.totals.limit, made.totals.over) == (20, 12, 8)


def test_token_keeps_the_newest_that_fit_whole():
    made = ran(some(4), some(3), some(2), policy="token", token_limit=5)

    assert kept(made) == [1, 2]
    assert made.fates[0].reason == "the newest messages that fit in 5 tokens begin after it"
    assert (made.fates[0].last_seen, made.fates[0].flush) == (0, None)


def test_token_has_nothing_to_send_where_the_newest_message_is_too_large():
    assert kept(ran(some(1), some(6), policy="token", token_limit=5)) == []
    assert kept(ran(some(1), some(5), policy="token", token_limit=5)) == [1]


def test_sliding_keeps_the_last_messages_by_number():
    made = ran(*[some(1)] * 5, policy="sliding", depth=2)

    assert kept(made) == [3, 4]
    assert made.fates[2].reason == "older than the last 2 messages"
    assert made.fates[2].last_seen == 3
    assert len(kept(ran(*[some(1)] * 30, policy="sliding"))) == 20


def test_sliding_keeps_the_last_hours_and_what_is_exactly_that_old_is_gone():
    times = [0, HOUR, None, 2 * HOUR, HOUR]

    assert kept(ran(*[some(1)] * 5, policy="sliding", hours=1, times=times)) == [3, 4]
    assert kept(ran(*[some(1)] * 5, policy="sliding", hours=1.5, times=times)) == [1, 2, 3, 4]
    assert kept(ran(*[some(1)] * 5, policy="sliding", days=1, times=times)) == [0, 1, 2, 3, 4]


def test_sliding_by_time_needs_a_time():
    with pytest.raises(UsageError, match="has a time"):
        ran(some(1), policy="sliding", days=1)
    assert kept(ran(some(1), policy="sliding", days=1, times=[5])) == [0]


def test_sliding_by_number_and_time_is_refused():
    with pytest.raises(UsageError, match="either depth or days"):
        ran(some(1), policy="sliding", days=1, depth=3)


def test_a_policy_without_blocks_says_so():
    made = ran(some(1), policy="token", blocks=[{"type": "static", "text": "x"}])

    assert (block(made, "static").fate, block(made, "static").reason) == ("dropped", "policy token has no blocks")


# --- llamaindex ---


def test_llamaindex_is_told_in_the_same_shape():
    blocks = [{"type": "static", "name": "core", "text": "a b"}, {"type": "fact", "name": "facts"}]
    made = ran(
        said("FACT: likes tea"), some(3, "assistant"), some(3), policy="llamaindex", token_limit=10, blocks=blocks
    )

    assert ended(made) == ["block", "block", "window"]
    assert made.flushes[0].blocks == ("facts",)
    assert made.steps[-1]["flushed"][0]["to_blocks"] == ["core", "facts"]
    assert prompt(made) == [("block", "core", 2), ("block", "facts", 2), ("template", "memory", 6), ("message", "2", 3)]
    assert (made.totals.thought, made.totals.real, made.totals.over) == (7, 13, 3)
    assert [fate.reachable for fate in made.fates] == [True, False, True]
    assert made.clamps[0]["setting"] == "token_flush_size"


def test_llamaindex_does_not_see_what_a_call_costs():
    part = Part(kind=PartKind.TOOL_CALL, text="a b c", name="look", call="c1")
    made = ran(some(2), BudgetMessage(role="assistant", parts=(part,)), policy="llamaindex")

    assert [(fate.thought, fate.real) for fate in made.fates] == [(2, 2), (0, 5)]
    assert made.totals.uncounted == 5


def test_llamaindex_writes_a_turn_at_once():
    messages = [some(4), some(4, "assistant"), some(4), some(4, "assistant")]
    made = ran(*messages, policy="llamaindex", token_limit=12, writes="turn")

    assert [(step["op"], step["first"], step["stop"]) for step in made.steps] == [
        ("put_messages", 0, 2),
        ("put_messages", 2, 4),
    ]
    assert [(flush.write, flush.turn, flush.first, flush.stop) for flush in made.flushes] == [(1, 1, 0, 2)]


def test_llamaindex_gives_no_prompt_where_a_block_fails():
    blocks = [{"type": "custom", "name": "own", "on_put": "raise"}]
    made = ran(some(4), some(4), some(4), policy="llamaindex", token_limit=8, token_flush_size=1, blocks=blocks)

    assert made.refused == "LlamaIndex raises RuntimeError here: block put failed"
    assert ended(made) == ["block", "window", "dropped"]
    assert made.fates[2].reason == "never written, because a block failed before"
    assert made.blocks[0].reason == "there is no prompt"


def test_a_block_that_llamaindex_drops_has_a_reason():
    blocks = [{"type": "static", "name": "core", "text": "a b c", "priority": 1}]
    made = ran(some(8), policy="llamaindex", token_limit=10, blocks=blocks)

    fate = block(made, "core")
    assert (fate.fate, fate.wanted, fate.got) == ("dropped", 3, 0)
    assert fate.reason == (
        "window and blocks were 1 tokens over the limit of 10; it was asked to drop 1 and cannot be shortened"
    )


def test_what_llamaindex_refuses_is_said_in_its_words():
    with pytest.raises(Raised, match="Token limit must be set"):
        ran(some(1), policy="llamaindex", token_limit=0)


# --- every policy ---


@pytest.mark.parametrize("policy", ["llamaindex", "mem", "buffer", "sliding", "token", "unbounded"])
def test_an_empty_transcript_is_a_run_like_any_other(policy):
    made = ran(policy=policy)

    assert (made.totals.messages, made.totals.turns, made.totals.real, made.fates) == (0, 0, 0, ())
    assert made.totals.prefix_kept is None


@pytest.mark.parametrize("policy", ["llamaindex", "mem", "buffer", "sliding", "token", "unbounded"])
def test_only_the_messages_up_to_the_place_asked_for_are_looked_at(policy):
    made = ran(some(2), some(3), some(4), policy=policy, at=2)

    assert [piece.index for piece in made.prompt] == [0, 1]
    assert len(made.fates) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"policy": "best"}, "no policy called best"),
        ({"limit": 3}, "no setting called limit"),
        ({"writes": "day"}, "no writes by day"),
        ({"at": 2}, "no prompt after 2 messages"),
        ({"at": -1}, "no prompt after -1 messages"),
        ({"insert_method": "tool"}, "insert method cannot be tool"),
        ({"image_token_size_estimate": -1}, "image token size estimate -1"),
        ({"important": "a"}, "important must be a list"),
        ({"policy": "llamaindex", "constructor": "fast"}, "no constructor called fast"),
    ],
)
def test_what_nobody_can_mean_is_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        ran(some(1), **wrong)


def test_the_part_of_a_prompt_that_the_next_one_begins_with_is_told():
    grows = ran(*[some(4)] * 3, policy="unbounded")
    slides = ran(*[some(4)] * 3, policy="sliding", depth=1)
    half = ran(some(2, "system"), *[some(2)] * 3, token_limit=6)

    assert (grows.totals.prefix_kept, slides.totals.prefix_kept) == (1.0, 0.0)
    # 4 of 4 tokens, then 2 of 6: the system message stays, and what came after it moved up.
    assert half.totals.prefix_kept == 6 / 10


def test_memory_that_moves_with_the_last_user_message_breaks_the_prefix_there():
    blocks = [{"type": "static", "name": "core", "text": "a b"}]
    at_head = ran(*[some(4)] * 3, policy="llamaindex", blocks=blocks)
    moving = ran(*[some(4)] * 3, policy="llamaindex", blocks=blocks, insert_method="user")

    assert at_head.totals.prefix_kept == 1.0
    assert moving.totals.prefix_kept == 4 / 24  # of 10 nothing, and of 14 the first message


def test_a_message_is_reachable_where_all_its_words_stand_in_a_row():
    held = Held("user: Oslo is cold\nlikes tea")

    assert held.holds(said("Oslo is cold"))
    assert not held.holds(said("cold is Oslo"))
    assert not held.holds(said("Oslo is colder"))
    assert held.holds(said("noted:\nFACT: likes tea"))
    assert not held.holds(said("FACT: likes tea\nFACT: likes trains"))
    assert not held.holds(said(""))


def test_a_system_message_that_comes_later_stands_where_it_was_said():
    made = ran(some(2, "system"), some(2), some(2, "system"), some(2), some(2), token_limit=30)

    assert [piece.index for piece in made.prompt] == [0, 1, 2, 3, 4]
    assert made.totals.prefix_kept == 1.0


def test_the_message_that_memory_needs_for_itself_comes_out_of_its_share():
    own = {"type": "custom", "name": "own", "content": " ".join("abcdefghi"), "truncate": "words"}
    made = ran(some(1), encoding="o200k_base", token_limit=20, blocks=[own])

    assert prompt(made) == [
        ("block", "own", 6),
        ("template", "memory", 6),
        ("message", "0", 5),
        ("template", "reply", 3),
    ]
    assert made.totals.real == 20


def test_a_fixed_text_reserves_the_message_it_may_need():
    made = ran(
        some(1),
        encoding="o200k_base",
        token_limit=23,
        chat_history_token_ratio=0.1,
        blocks=[{"type": "static", "text": "likes tea"}],
    )

    assert made.effective["history_tokens"] == 23 - 3 - 4 - 4  # the reply, the text with its tags, its message
