"""Each finding on a small transcript that has it, and on a neighbour that has not."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memcli.budget.blocks import block_from
from memcli.budget.findings import CODES, codes, find, most_over
from memcli.budget.messages import BudgetMessage
from memcli.budget.policies.llamaindex import LlamaIndexMemory, Weighed
from memcli.budget.settings import settings_from
from memcli.errors import UsageError
from tests.budget_runs import findings, messages_of, run, said, words

REPORTS = sorted((Path(__file__).parents[2] / "fixtures/budget_reports").glob("*.json"))
NOTES = {"type": "vector", "name": "notes", "priority": 1}


def static(name: str, tokens: int, priority: int = 1) -> dict[str, Any]:
    return {"type": "static", "name": name, "content": " ".join(["b"] * tokens), "priority": priority}


def call(*names: str, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    calls = [{"id": name, "type": "function", "function": function} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(name: str, tokens: int = 1) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": " ".join(["r"] * tokens)}


def found(transcript: Sequence[Any], *, tool_calls: str = "kwargs", **given: Any) -> dict[str, Any]:
    return findings(messages_of(transcript, tool_calls), **given)


# --- public reports ---


def shown(case: dict[str, Any]) -> dict[str, Any]:
    given = {"policy": case["policy"], "blocks": case.get("blocks", []), **case["settings"]}
    return found(case["transcript"], tool_calls=case.get("tool_calls", "kwargs"), **given)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_what_somebody_reported_is_found_and_the_setting_that_avoids_it_avoids_it(path):
    case = json.loads(path.read_text(encoding="utf-8"))

    assert case["finding"] in shown(case)
    assert case["finding"] not in shown({**case, **case["avoided"]})


def test_there_are_reports_of_both_memories():
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in REPORTS]

    assert len(cases) >= 8
    assert {case["policy"] for case in cases} >= {"llamaindex", "buffer", "sliding"}
    assert all(case["report"].startswith("https://") and case["note"] for case in cases)


# --- who is in the window ---


def test_a_transcript_without_a_message_is_a_finding_and_no_crash():
    for policy in ("llamaindex", "mem", "buffer", "sliding", "token", "unbounded"):
        assert list(found([], policy=policy)) == ["empty-transcript"]
        assert "empty-transcript" not in found(said("user:1"), policy=policy)


def test_a_system_message_that_left_is_found_where_it_left():
    seen = found(said("system:5", *["user:10", "assistant:10"] * 5), token_limit=100, token_flush_size=10)

    assert (seen["system-evicted"].turn, seen["system-evicted"].message, seen["system-evicted"].tokens) == (3, 0, 5)
    assert "--token-limit 150" in seen["system-evicted"].remedy
    assert not found(said("system:5", *["user:10", "assistant:10"] * 5), token_limit=150, token_flush_size=10)


def test_mem_pins_the_system_message_that_the_others_lose():
    long = said("system:5", *["user:10", "assistant:10"] * 9)

    for policy in ("llamaindex", "buffer", "token"):
        assert "system-evicted" in found(long, policy=policy, token_limit=60)
    assert "system-evicted" in found(long, policy="sliding", depth=4)
    assert "system-evicted" not in found(long, policy="mem", token_limit=60)


def test_a_developer_message_is_a_system_message():
    assert "system-evicted" in found(said("developer:5", *["user:10"] * 9), policy="sliding", depth=2)
    assert "system-evicted" not in found(said("assistant:5", *["user:10"] * 9), policy="sliding", depth=2)


def test_a_result_whose_call_has_left_is_an_orphan():
    talk = [*said("user:1"), call("c1"), result("c1"), *said("assistant:1")]

    orphan = found(talk, policy="sliding", depth=2)["orphan-tool-result"]
    assert (orphan.turn, orphan.message) == (0, 2)
    assert "orphan-tool-result" not in found(talk, policy="sliding", depth=3)
    assert "orphan-tool-result" not in found(talk[:3], policy="sliding", depth=2)


def test_a_result_without_any_call_is_an_orphan_under_every_policy():
    talk = [*said("user:1"), result("c9"), *said("user:1")]

    for policy in ("llamaindex", "mem", "sliding"):
        assert "not in the transcript" in found(talk, policy=policy)["orphan-tool-result"].text
        assert "orphan-tool-result" not in found([talk[0], call("c9"), *talk[1:]], policy=policy)


def test_a_user_who_speaks_between_call_and_result_lets_a_flush_split_them():
    talk = [*said("user:10"), call("c1"), *said("user:5"), result("c1", 10), *said("user:20")]

    seen = found(talk, token_limit=50, token_flush_size=5)
    assert (seen["split-tool-group"].message, seen["orphan-tool-result"].message) == (1, 3)
    # Without the interruption the flush takes the turn whole.
    calm = found([talk[0], *talk[1:2], *talk[3:]], token_limit=50, token_flush_size=5)
    assert not {"split-tool-group", "orphan-tool-result"} & calm.keys()
    assert not {"split-tool-group", "orphan-tool-result"} & found(talk, policy="mem", token_limit=50).keys()


def test_a_result_that_comes_after_its_call_has_left_is_no_split():
    talk = [*said("assistant:20"), call("c1", arguments="x " * 20), result("c1")]

    seen = found(talk, token_limit=50, token_flush_size=40)
    assert "orphan-tool-result" in seen
    assert "split-tool-group" not in seen


def test_a_window_without_a_user_message_is_emptied():
    seen = found(said(*["assistant:10"] * 8), token_limit=100, token_flush_size=20)

    assert (seen["flush-emptied-window"].message, seen["flush-emptied-window"].tokens) == (7, 80)
    assert "flush-emptied-window" not in found(said(*["user:10"] * 8), token_limit=100, token_flush_size=20)


def test_one_turn_that_is_larger_than_the_window_is_found():
    seen = found(said("user:1", *["assistant:20"] * 5), token_limit=100, token_flush_size=10)

    assert (seen["single-turn-overflow"].turn, seen["single-turn-overflow"].tokens) == (0, 31)
    assert "--token-limit 145" in seen["single-turn-overflow"].remedy
    less = found(said("user:1", *["assistant:20"] * 3), token_limit=100, token_flush_size=10)
    assert "single-turn-overflow" not in less


def test_a_short_conversation_leaves_blocks_empty():
    talk = said("user:10", "assistant:10", "user:10")

    seen = found(talk, blocks=[NOTES])["never-flushed"]
    assert "of the 21,000 it may hold" in seen.text
    assert "--token-limit 42 or less" in seen.remedy
    assert "never-flushed" in found(talk, blocks=[NOTES], token_limit=43)
    assert "never-flushed" not in found(talk, blocks=[NOTES], token_limit=42)
    assert "never-flushed" not in found(talk)
    assert "never-flushed" not in found(talk, blocks=[NOTES], policy="sliding")
    assert "never-flushed" not in found(talk, blocks=[static("persona", 5)])


def test_a_single_turn_leaves_at_no_limit():
    assert "--token-limit" not in found(said("user:10", "assistant:10"), blocks=[NOTES])["never-flushed"].remedy
    assert "never-flushed" in found(said("user:10", "assistant:10"), blocks=[NOTES], token_limit=15)


def test_mem_captures_a_short_conversation():
    retrieved = {"type": "retrieved", "name": "retrieved"}

    assert "never-flushed" in found(said("user:10", "assistant:10"), blocks=[retrieved])
    assert "never-flushed" not in found(said("user:10", "assistant:10"), blocks=[retrieved], policy="mem")


# --- what is sent ---


def test_a_prompt_over_the_limit_is_found_with_how_much_and_since_when():
    talk = said("user:10", "assistant:10", "user:10", "assistant:100", "user:10")

    over = found(talk, token_limit=100, token_flush_size=10)["over-limit"]
    assert (over.turn, over.message, over.tokens) == (1, 3, 10)
    assert "fits again at the end" in over.text
    last = found(talk[:4], token_limit=100, token_flush_size=10)["over-limit"]
    assert "ends 10 tokens over" in last.text
    assert "over-limit" not in found(talk, token_limit=110, token_flush_size=10)


@pytest.mark.parametrize(
    ("policy", "settings", "blocks"),
    [
        ("llamaindex", {"token_flush_size": 10}, ()),
        ("llamaindex", {"chat_history_token_ratio": 1.0, "token_flush_size": 1}, ()),
        ("llamaindex", {"token_flush_size": 10}, (static("core", 70, 0), NOTES)),
        ("sliding", {"depth": 3}, ()),
        ("unbounded", {}, ()),
    ],
)
def test_the_limit_that_is_named_for_a_prompt_over_the_limit_holds_every_prompt(policy, settings, blocks):
    messages = messages_of(said("user:10", "assistant:10", *["user:10", "assistant:100", "user:40"] * 4))
    given = {"policy": policy, "blocks": blocks, **settings}

    def over_at(limit: int) -> int | None:
        return most_over(run(messages, token_limit=limit, **given))

    def seen(limit: int) -> dict[str, Any]:
        made = find(run(messages, token_limit=limit, **given), messages=messages, count=words, over_at=over_at)
        return {finding.code: finding.remedy for finding in made}

    named = re.match(r"give --token-limit (\d+), or ", seen(100)["over-limit"])
    assert named is not None
    assert int(named[1]) > 100
    assert "over-limit" not in seen(int(named[1]))


def test_no_limit_is_named_that_was_not_tried():
    talk = said("user:10", "assistant:100", "user:10")

    remedy = found(talk, token_limit=100, token_flush_size=10)["over-limit"].remedy
    assert remedy == "take --policy mem, which keeps to the limit"


def test_a_run_tells_how_far_its_largest_prompt_exceeds_the_limit():
    talk = messages_of(said("user:10", "assistant:100", "user:10"))

    assert most_over(run(talk, token_limit=100, token_flush_size=10)) == 10
    assert most_over(run(talk, token_limit=200, token_flush_size=10)) == 0
    assert most_over(run(talk, policy="unbounded")) is None
    assert most_over(run(talk, policy="mem", token_limit=5)) is None


def test_mem_refuses_rather_than_send_too_much_and_says_by_how_much():
    talk = said("system:50", "user:30")

    refused = found(talk, policy="mem", token_limit=60)["over-limit"]
    assert refused.tokens == 20
    assert "has 30: together 20 more" in refused.text
    assert "over-limit" not in found(talk, policy="mem", token_limit=80)


def test_the_limit_of_a_policy_without_one_is_not_passed():
    assert "over-limit" not in found(said("user:500"), policy="sliding", depth=3)
    assert "over-limit" in found(said("user:500"), policy="sliding", depth=3, token_limit=400)


def test_tool_calls_in_blocks_count_as_nothing_and_in_kwargs_they_count():
    talk = [*said("user:1"), call("c1", arguments="a b c d"), result("c1")]

    uncounted = found(talk, tool_calls="blocks")["tool-call-uncounted"]
    assert (uncounted.message, uncounted.tokens) == (1, 6)
    for mapping in ("kwargs", "both"):
        assert "tool-call-uncounted" not in found(talk, tool_calls=mapping)
    assert "tool-call-uncounted" not in found(talk, tool_calls="blocks", policy="mem")
    assert "tool-call-uncounted" in found(talk, policy="buffer")


def test_thinking_and_sources_count_as_nothing():
    thinking = {"role": "assistant", "content": [{"block_type": "thinking", "content": "a b c"}]}
    source = {"role": "user", "content": [{"block_type": "citable", "title": "t", "source": "s", "content": "d e"}]}

    assert found([*said("user:1"), thinking])["uncounted-content"].tokens == 3
    assert found([source, thinking])["uncounted-content"].tokens == 5
    assert "uncounted-content" not in found([*said("user:1"), thinking], policy="mem")
    assert "uncounted-content" not in found(said("user:1", "assistant:3"))


def test_images_and_documents_count_flat():
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    document = {"type": "file", "file": {"file_data": "aGk="}}

    seen = found([{"role": "user", "content": [image, image, document]}])["flat-estimate"]
    assert seen.tokens == 2 * 256 + 2048
    assert seen.text.startswith("1 document, 2 images")
    assert "flat-estimate" not in found(said("user:3"))


def test_tags_around_blocks_are_found_where_they_are_what_is_too_much():
    seen = found(said("user:10"), token_limit=50, blocks=[static("core", 40)])

    assert seen["template-overhead"].tokens == 4
    assert seen["over-limit"].tokens == 4
    assert "template-overhead" not in found(said("user:10"), token_limit=54, blocks=[static("core", 40)])
    assert "template-overhead" not in found(said("user:60"), token_limit=50)


def test_a_message_with_nothing_in_it_cannot_be_sent():
    seen = found([*said("user:1"), {"role": "assistant", "content": 42}])

    assert seen["unsupported-content"].message == 1
    assert "unsupported-content" not in found([*said("user:1"), {"role": "assistant", "content": ""}])


def test_a_role_that_llamaindex_does_not_know_is_found_where_it_is_asked():
    strange = [BudgetMessage(role="narrator", parts=messages_of(said("user:1"))[0].parts)]

    assert "narrator" in findings(strange)["unsupported-content"].text
    assert "unsupported-content" not in findings(strange, policy="sliding")


def test_messages_that_are_older_than_those_before_are_found():
    talk = messages_of(said(*["user:1"] * 4))

    assert findings(talk, times=[5, 9, 7, 8])["window-reordered"].message == 2
    assert "2 such messages" in findings(talk, times=[5, 9, 7, 8])["window-reordered"].text
    assert "window-reordered" not in findings(talk, times=[5, 5, None, 8])


# --- settings ---


def test_a_flush_size_of_zero_is_found():
    assert "flush-size-zero" in found(said("user:1"), token_limit=9, constructor="direct")
    assert "flush-size-zero" not in found(said("user:1"), token_limit=10, constructor="direct")


def test_a_flush_size_that_takes_the_whole_window_is_found_with_one_that_does_not():
    seen = found(said("user:1"), token_limit=4000)["flush-size-clamped"]

    assert (seen.tokens, seen.remedy) == (3000, "give --flush-size 400")
    assert "flush-size-clamped" not in found(said("user:1"), token_limit=4000, token_flush_size=400)
    assert "flush-size-clamped" not in found(said("user:1"))


def test_a_flush_size_that_was_replaced_is_found_with_the_reason():
    seen = found(said("user:1"), token_limit=100, token_flush_size=101, constructor="direct")

    assert "the flush size is 10 (101 is more than the limit of 100" in seen["flush-size-clamped"].text
    assert "flush-size-clamped" not in found(said("user:1"), token_limit=100, constructor="direct")


@pytest.mark.parametrize("ratio", [0.0, -0.5, 1.5, "nan", "inf"])
def test_a_ratio_that_is_no_share_is_found(ratio):
    assert "ratio-out-of-range" in found(said("user:1"), chat_history_token_ratio=ratio)
    assert "ratio-out-of-range" not in found(said("user:1"), chat_history_token_ratio=1.0)


# --- blocks ---


def test_a_block_that_is_one_token_too_large_is_dropped_whole():
    blocks = [static("core", 30, 2), static("passages", 25, 1)]

    seen = found(said("user:10"), token_limit=64, blocks=blocks)["block-dropped-whole"]
    assert seen.tokens == 25
    assert "passages (25 tokens) left out whole for 1 token too many" in seen.text
    assert "block-dropped-whole" not in found(said("user:10"), token_limit=65, blocks=blocks)


def test_a_policy_without_blocks_drops_none():
    assert "block-dropped-whole" not in found(said("user:10"), policy="sliding", blocks=[static("core", 30)])


def test_blocks_of_priority_zero_push_the_prompt_over_the_limit():
    seen = found(said("user:10"), token_limit=60, blocks=[static("core", 55, 0)])

    assert seen["priority-zero-overflow"].tokens == 5
    assert "priority-zero-overflow" not in found(said("user:10"), token_limit=65, blocks=[static("core", 55, 0)])
    assert "priority-zero-overflow" not in found(said("user:10"), token_limit=60, blocks=[static("core", 55, 1)])


def test_more_facts_than_max_facts_are_found():
    facts = {"type": "fact", "name": "facts", "max_facts": 1, "condense": "all"}
    talk = said("user:FACT: one\nFACT: two", "assistant:10", "user:10", "assistant:10", "user:10")

    assert "2 facts where max_facts is 1" in found(talk, token_limit=40, blocks=[facts])["facts-over-max"].text
    assert "facts-over-max" not in found(talk, token_limit=40, blocks=[{**facts, "max_facts": 2}])


# --- the prefix of a prompt ---


def test_memory_before_the_last_user_message_breaks_the_prefix_at_every_turn():
    talk = said(*["user:30", "assistant:1"] * 4)
    blocks = [static("core", 40)]

    assert "prefix-broken" in found(talk, insert_method="user", blocks=blocks)
    assert "prefix-broken" not in found(talk, insert_method="system", blocks=blocks)


@pytest.mark.parametrize("method", ["system", "user"])
@pytest.mark.parametrize("limit", [400, 3000])
def test_the_share_that_is_told_is_that_of_the_prompts_themselves(method, limit):
    roles = ["user", "assistant"] * 8
    messages = messages_of(said(*[f"{role}:{' '.join([f'm{at}'] * 30)}" for at, role in enumerate(roles)]))
    settings = {"token_limit": limit, "token_flush_size": 60, "insert_method": method}

    told = run(messages, blocks=[static("core", 40)], **settings).totals.prefix_kept
    prompts = asked(messages, settings, [static("core", 40)])
    pairs = list(pairwise(prompts))
    whole = sum(len(before) for before, _ in pairs)
    kept = sum(alike(before, after) for before, after in pairs)
    assert told == pytest.approx(kept / whole)
    assert 0 < kept < whole or (method, limit) == ("system", 3000)


def asked(messages: Sequence[BudgetMessage], settings: dict[str, Any], blocks: Sequence[Any]) -> list[list[str]]:
    """Return the words of each turn's prompt, once the user has spoken."""
    memory = LlamaIndexMemory(settings_from(settings), [block_from(block, []) for block in blocks], words)
    prompts = []
    for message in messages:
        memory.put([Weighed(message=message, tokens=words(message.words))])
        if message.role == "user":
            sent = memory.get().messages
            prompts.append([word for weighed in sent for part in weighed.message.parts for word in part.text.split()])
    return prompts


def alike(before: Sequence[str], after: Sequence[str]) -> int:
    return next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before))


# --- all of them ---


def test_a_thousand_occurrences_are_one_finding_that_says_how_many():
    talk = [message for _ in range(1000) for message in (*said("user:1"), result("c"))]

    orphans = found(talk, policy="unbounded")["orphan-tool-result"]
    assert orphans.message == 1
    assert "the first of 1,000 such results" in orphans.text


def test_every_finding_says_something_and_what_to_do():
    talk = [*said("system:5"), call("c1"), *said(*["user:40"] * 5), result("c1")]
    seen = found(talk, tool_calls="blocks", token_limit=60, blocks=[static("core", 70, 0), static("more", 5), NOTES])

    assert len(seen) >= 6
    for code, finding in seen.items():
        assert finding.severity == CODES[code].severity
        assert finding.text
        assert finding.remedy
        assert not finding.text.endswith(".")
    assert list(seen) == [code for code in CODES if code in seen]


def test_codes_are_named_one_by_one_or_by_their_weight():
    assert codes("over-limit, system-evicted") == {"over-limit", "system-evicted"}
    assert codes("error") | codes("warning") == set(CODES)
    assert codes("") == frozenset()
    with pytest.raises(UsageError, match="no finding called over-limits"):
        codes("over-limits")
