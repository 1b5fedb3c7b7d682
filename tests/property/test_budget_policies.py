"""What holds for every transcript and every setting of the policies that are mem's own."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memcli.budget.messages import BudgetMessage, Part, PartKind, text_part
from memcli.budget.public import blocks_from
from memcli.budget.run import POLICIES, run
from memcli.budget.share import Wish, divide, fit
from memcli.budget.shrinking import FactsBlock, GivenFact, RetrievedBlock
from memcli.budget.tools import groups_of

WORDS = ["tea", "Oslo", "fjord", "budget", "Rex", "42"]


def words(text):
    return len(text.split())


texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@st.composite
def transcripts(draw, most=14):
    messages = []
    for _ in range(draw(st.integers(0, most))):
        role = draw(st.sampled_from(["user", "user", "assistant", "assistant", "tool", "system", "developer"]))
        kwargs = {}
        parts = [text_part(draw(texts))]
        name = draw(st.sampled_from(["c1", "c2", "c3"]))
        if role == "assistant" and draw(st.booleans()):
            kwargs["tool_calls"] = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{} x"}}]
        if role == "tool" and draw(st.booleans()):
            kwargs["tool_call_id"] = name
        if role == "assistant" and draw(st.integers(0, 5)) == 0:
            parts.append(Part(kind=PartKind.THINKING, text=draw(texts)))
        messages.append(BudgetMessage(role=role, parts=tuple(parts), kwargs=kwargs))
    return messages


tables = st.lists(
    st.sampled_from(
        [
            {"type": "static", "text": "be kind to all"},
            {"type": "static", "text": " ".join(["long"] * 40)},
            {"type": "facts", "facts": ["likes tea", {"text": "lives in Oslo by the fjord", "importance": 0.9}]},
            {"type": "retrieved", "top_k": 3},
            {"type": "fact", "facts": ["has a dog"]},
            {"type": "vector"},
            {"type": "custom", "content": "one two three four five", "truncate": "words", "on_put": "append"},
            {"type": "custom", "content": "a b c d e f g h", "truncate": "grow"},
        ]
    ),
    max_size=4,
)


@st.composite
def asked(draw):
    """Return what a run is asked for, but for its policy and its limit."""
    blocks = [
        {**table, "name": f"b{at}", "weight": draw(st.sampled_from([0.5, 1, 3]))}
        for at, table in enumerate(draw(tables))
    ]
    return {
        "settings": {
            "chat_history_token_ratio": draw(st.sampled_from([0, 0.1, 0.5, 0.7, 1])),
            "insert_method": draw(st.sampled_from(["system", "user"])),
        },
        "blocks": blocks_from({"blocks": blocks}),
        "writes": draw(st.sampled_from(["message", "turn"])),
        "encoding": draw(st.sampled_from(["words", "o200k_base"])),  # the second for what it puts around messages
    }


def done(messages, policy, limit, wanted):
    more = {"token_limit": limit} | ({"depth": limit} if policy == "sliding" else {})
    return run(messages, policy=policy, count=words, **{**wanted, "settings": {**wanted["settings"], **more}})


def window(made):
    return {fate.index for fate in made.fates if fate.ended == "window"}


@given(transcripts(), st.integers(1, 120), asked())
def test_mem_stays_within_the_limit_or_says_exactly_what_is_missing(messages, limit, wanted):
    made = done(messages, "mem", limit, wanted)

    if made.refused is None:
        assert made.totals.real <= limit
        return
    assert made.prompt == ()
    short = made.steps[-1]["short_by"] if made.steps else None
    assume(short is not None)
    assert f"{short} more than the limit of {limit}" in made.refused
    assert done(messages, "mem", limit + short, wanted).refused is None
    assert short == 1 or done(messages, "mem", limit + short - 1, wanted).refused is not None


@given(transcripts(), st.integers(1, 120), asked())
def test_mem_never_parts_a_tool_call_from_its_results(messages, limit, wanted):
    kept = window(done(messages, "mem", limit, wanted))

    for group in groups_of(messages):
        if group.call is not None:
            members = {group.call, *group.results}
            assert members <= kept or not members & kept


@given(transcripts(), st.integers(1, 120), st.integers(0, 60), asked())
def test_a_larger_limit_never_loses_a_message_from_the_window_of_mem(messages, limit, more, wanted):
    assert window(done(messages, "mem", limit, wanted)) <= window(done(messages, "mem", limit + more, wanted))


@given(transcripts(), st.integers(1, 120), asked())
def test_mem_never_lets_a_system_message_or_the_newest_one_go(messages, limit, wanted):
    kept = window(done(messages, "mem", limit, wanted))

    assert {at for at, message in enumerate(messages) if message.role in ("system", "developer")} <= kept
    assert not messages or len(messages) - 1 in kept


@given(transcripts(), st.integers(1, 120), asked())
def test_a_flush_of_mem_takes_no_group_more_than_it_must(messages, limit, wanted):
    made = done(messages, "mem", limit, wanted)
    assume(made.flushes)

    last = made.flushes[-1]
    step = made.steps[last.write]
    first = min(flush.first for flush in made.flushes if flush.write == last.write)
    group = max(group for group in [first, *_starts(messages)] if group < last.stop)
    regained = sum(made.fates[at].real for at in range(group, last.stop) if made.fates[at].ended != "window")
    pinned = sum(fate.real for fate in made.fates[: step["stop"]] if fate.role in ("system", "developer"))
    budget = made.effective["history_tokens"] if last.write == len(made.steps) - 1 else None
    assert budget is None or step["after"] - pinned + regained > budget


def _starts(messages):
    """Return the places at which a group may begin, by walking over the groups one by one."""
    reach = [(group.call, max(group.results)) for group in groups_of(messages) if group.call is not None]
    return [at for at in range(len(messages)) if not any(call < at <= end for call, end in reach)]


@given(transcripts(), st.sampled_from(sorted(POLICIES)), st.integers(1, 120), asked())
@settings(max_examples=200)
def test_every_message_is_in_one_place_and_the_sums_add_up(messages, policy, limit, wanted):
    made = done(messages, policy, limit, wanted)

    assert [fate.index for fate in made.fates] == list(range(len(messages)))
    for fate in made.fates:
        assert fate.ended in ("window", "block", "dropped")
        assert (fate.reason is None) == (fate.ended == "window")
        assert bool(fate.blocks) or fate.ended != "block"
        assert fate.flush is None or fate.index in range(made.flushes[fate.flush].first, made.flushes[fate.flush].stop)
    totals = made.totals
    assert totals.window_messages == len(window(made))
    assert totals.tokens == sum(fate.real for fate in made.fates)
    assert totals.real == sum(piece.real for piece in made.prompt)
    assert totals.thought == sum(piece.thought for piece in made.prompt)
    assert totals.flushed_messages == sum(flush.stop - flush.first for flush in made.flushes)
    assert totals.over == max(0, totals.real - (totals.limit or totals.real))
    assert made.refused is not None or {p.index for p in made.prompt if p.index is not None} == window(made)
    assert totals.prefix_kept is None or 0 <= totals.prefix_kept <= 1
    assert [step["stop"] for step in made.steps] == sorted({step["stop"] for step in made.steps})


@given(transcripts(), st.sampled_from(sorted(POLICIES)), st.integers(1, 120), asked(), st.data())
def test_what_comes_after_a_message_changes_nothing_of_the_prompt_at_it(messages, policy, limit, wanted, data):
    # A call is kept for a result that is yet to come, so a transcript without results is looked at.
    messages = [message for message in messages if message.role != "tool"]
    at = data.draw(st.integers(0, len(messages)))

    cut = done(messages[:at], policy, limit, wanted)
    looked = done(messages, policy, limit, {**wanted, "at": at})
    assert looked.prompt == cut.prompt
    assert looked.refused == cut.refused


# --- sharing and shrinking ---

wants = st.lists(st.integers(0, 60), min_size=1, max_size=6)


@given(st.integers(0, 200), wants, st.data())
def test_shares_give_all_away_and_nobody_more_than_it_wants(capacity, wanted, data):
    weights = data.draw(st.lists(st.sampled_from([0.1, 0.5, 1, 2, 7]), min_size=len(wanted), max_size=len(wanted)))

    granted = divide(capacity, wanted, weights)
    assert sum(granted) == min(capacity, sum(wanted))
    for grant, want, weight in zip(granted, wanted, weights, strict=True):
        assert 0 <= grant <= want
        assert grant == want or grant >= int(capacity * weight / sum(weights))


@given(st.integers(-5, 200), wants, st.data())
def test_blocks_fit_together_and_one_is_left_out_only_where_it_cannot_be_had(capacity, wanted, data):
    rigid = data.draw(st.lists(st.booleans(), min_size=len(wanted), max_size=len(wanted)))
    wishes = [Wish(content="x", tokens=want, weight=1.0) for want in wanted]

    kept, out = fit(capacity, wishes, lambda at, room: None if rigid[at] or room < 1 else ("x", room))
    assert sum(tokens for _, tokens in kept.values()) <= max(0, capacity)
    assert sorted([*kept, *out]) == list(range(len(wanted)))
    assert sum(wanted) > max(0, capacity) or not out
    assert all(kept[at][1] == wanted[at] for at in kept if rigid[at])


@given(st.lists(texts.filter(bool), min_size=1, max_size=8, unique=True), st.integers(0, 40))
def test_facts_give_back_at_least_what_is_asked_or_nothing_at_all(facts, asked_for):
    block = FactsBlock([GivenFact(text=fact) for fact in facts], words)
    content = block.get([])

    kept = block.truncate(content, asked_for)
    if kept is None:
        assert asked_for > sum(words(part.text) for part in content[1:])
        return
    assert sum(words(part.text) for part in content) - sum(words(part.text) for part in kept) >= asked_for
    assert kept == content[: len(kept)]


@given(transcripts(), st.integers(0, 40))
def test_retrieved_passages_give_back_at_least_what_is_asked_or_nothing_at_all(messages, asked_for):
    block = RetrievedBlock(words)
    block.put(messages)
    content = block.get([BudgetMessage(role="user", parts=(text_part(" ".join(WORDS)),))])

    kept = block.truncate(content, asked_for)
    if kept is not None:
        assert sum(words(part.text) for part in content) - sum(words(part.text) for part in kept) >= asked_for
        assert kept == content[: len(kept)]
