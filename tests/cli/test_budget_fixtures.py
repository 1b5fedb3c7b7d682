"""`mem budget simulate` over every file of the collection: one document whose sums add up, or one clear refusal."""

import json
from pathlib import Path
from typing import Any

import pytest

from memcli.budget.findings import CODES
from memcli.budget.run import POLICIES
from tests.cli.driver import Mem

FIXTURES = Path(__file__).parents[2] / "fixtures"
LIMIT = 2_000
FILES = sorted(
    str(path.relative_to(FIXTURES))
    for folder in ("claude_code", "openai_messages", "malformed", "datasets")
    for path in (FIXTURES / folder).iterdir()
)
COUNTED = {
    row["file"]: row["messages"]
    for row in json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    if row["format"].startswith(("openai", "claude_code"))
}


def simulated(mem: Mem, name: str, policy: str) -> list[dict[str, Any]]:
    """Return the document of each conversation; none where the file is refused, which is said in one line."""
    ran = mem.run("budget", "simulate", str(FIXTURES / name), "--json", "--token-limit", str(LIMIT), "--policy", policy)
    if ran.code:
        assert (ran.code, ran.out) == (5, "")
        assert set(ran.complaint) >= {"error", "hint"}
        return []
    assert ran.err == ""
    return ran.document if isinstance(ran.document, list) else [ran.document]


def wrong_sums(told: dict[str, Any]) -> list[str]:
    """Return what of the totals is not what the messages, the flushes and the prompt come to."""
    totals, messages, prompt = told["totals"], told["messages"], told["prompt"]
    limit = totals["limit"]
    sums = {
        "messages": len(messages),
        "tokens": sum(message["real"] for message in messages),
        "window_messages": sum(message["ended"] == "window" for message in messages),
        "flushed_messages": sum(message["flush"] is not None for message in messages),
        "flushes": len({message["flush"] for message in messages} - {None}),
        "thought": sum(piece["thought"] for piece in prompt),
        "real": sum(piece["real"] for piece in prompt),
        "over": 0 if limit is None else max(0, totals["real"] - limit),
        "uncounted": sum(max(0, p["real"] - p["thought"]) for p in prompt if p["kind"] != "template"),
        "template": sum(piece["real"] for piece in prompt if piece["kind"] == "template"),
    }
    return [f"{name}: {totals[name]}, and it comes to {found}" for name, found in sums.items() if totals[name] != found]


def wrong_fates(told: dict[str, Any]) -> list[Any]:
    """Return the messages whose fate contradicts itself or the prompt; without blocks nobody takes what leaves."""
    sent = {piece["index"] for piece in told["prompt"] if piece["index"] is not None}
    nothing_sent = told["totals"]["refused"] is not None
    return [
        message
        for message in told["messages"]
        if message["ended"] not in ("window", "dropped")
        or (message["ended"] == "window") != (message["reason"] is None)
        or (message["ended"] == "window" and message["flush"] is not None)
        or (message["index"] in sent) != (message["ended"] == "window" and not nothing_sent)
        or message["reachable"] != (message["index"] in sent)
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_policy_gives_documents_that_add_up_or_refuses_the_file(bare, name):
    by_policy = {policy: simulated(bare, name, policy) for policy in POLICIES}

    readable = {policy: len(documents) for policy, documents in by_policy.items()}
    assert len(set(readable.values())) == 1, readable
    for policy, documents in by_policy.items():
        for told in documents:
            assert (told["settings"]["policy"], wrong_sums(told), wrong_fates(told)) == (policy, [], [])
            assert {finding["code"] for finding in told["findings"]} <= CODES.keys()
    if name in COUNTED:
        messages = [sum(told["totals"]["messages"] for told in documents) for documents in by_policy.values()]
        assert messages == [COUNTED[name]] * len(POLICIES)


@pytest.mark.parametrize("name", COUNTED)
def test_mem_never_exceeds_the_limit_and_never_advises_itself(bare, name):
    documents = simulated(bare, name, "mem")

    assert documents
    for told in documents:
        totals = told["totals"]
        assert totals["real"] == totals["thought"] <= LIMIT
        assert totals["refused"] is None or totals["real"] == 0
        assert not [finding for finding in told["findings"] if "--policy mem" in finding["remedy"]]


def test_most_files_of_the_collection_are_simulated_and_at_this_limit_much_of_them_leaves(bare):
    documents = [told for name in FILES for told in simulated(bare, name, "llamaindex")]

    assert len(documents) > 60
    assert sum(told["totals"]["flushes"] > 0 for told in documents) >= 5
    assert any(told["totals"]["over"] for told in documents)
    assert wrong_sums({**documents[0], "messages": documents[0]["messages"][1:]})


# --- evidence of a public data set ---

SAMPLE, PROBES = (FIXTURES / "openai_messages" / f"longmemeval_{name}" for name in ("sample.json", "probes.jsonl"))


def test_the_sample_is_the_sessions_of_the_data_set_and_the_probes_are_its_own_marks():
    records = json.loads((FIXTURES / "datasets/ds01_longmemeval_2.json").read_text(encoding="utf-8"))
    messages = json.loads(SAMPLE.read_text(encoding="utf-8"))["messages"]
    probes = [json.loads(line) for line in PROBES.read_text(encoding="utf-8").splitlines()]

    said = [message for record in records for session in record["haystack_sessions"] for message in session]
    assert [(m["role"], m["content"]) for m in messages] == [(m["role"], m["content"]) for m in said]
    marked = [at for at, message in enumerate(said) if message["has_answer"]]
    assert [int(at) for probe in probes for at in probe["evidence"]] == marked
    assert [probe["question"] for probe in probes] == [record["question"] for record in records]


def test_a_sweep_says_how_much_evidence_each_setting_leaves_in_the_window(bare):
    rows = bare.ok(
        "budget", "sweep", str(SAMPLE), "--probes", str(PROBES), "--token-limit", "8k,16k,32k", "--policy",
        "llamaindex,mem", "--ratio", "0.5,0.7",
    )  # fmt: skip

    shares = {(row["policy"], row["token_limit"], row["ratio"]): round(3 * row["in_window"]) for row in rows}
    assert shares == {
        ("llamaindex", 8_000, 0.5): 0,
        ("llamaindex", 8_000, 0.7): 0,
        ("llamaindex", 16_000, 0.5): 0,
        ("llamaindex", 16_000, 0.7): 1,
        ("llamaindex", 32_000, 0.5): 3,
        ("llamaindex", 32_000, 0.7): 3,
        ("mem", 8_000, 0.5): 1,
        ("mem", 8_000, 0.7): 1,
        ("mem", 16_000, 0.5): 3,
        ("mem", 16_000, 0.7): 3,
        ("mem", 32_000, 0.5): 3,
        ("mem", 32_000, 0.7): 3,
    }


@pytest.mark.parametrize("policy", ["llamaindex", "mem"])
def test_the_evidence_of_a_sweep_is_where_the_simulation_of_each_setting_has_it(bare, policy):
    places = [
        int(at) for line in PROBES.read_text(encoding="utf-8").splitlines() for at in json.loads(line)["evidence"]
    ]
    rows = bare.ok(
        "budget", "sweep", str(SAMPLE), "--probes", str(PROBES), "--policy", policy, "--token-limit", "8k,12k,16k"
    )

    assert len({row["in_window"] for row in rows}) > 1
    for row in rows:
        told = bare.ok(
            "budget", "simulate", str(SAMPLE), "--policy", policy, "--token-limit", str(row["token_limit"]), "--ratio",
            str(row["ratio"]),
        )  # fmt: skip
        there = [told["messages"][at]["ended"] == "window" for at in places]
        assert row["in_window"] == sum(there) / len(there)
        assert row["window_messages"] == told["totals"]["window_messages"]
        assert row["real_tokens"] == told["totals"]["real"]
