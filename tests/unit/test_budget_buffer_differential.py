"""The buffer against the real ChatMemoryBuffer, over drawn configurations and transcripts.

Needs llama-index-core, which is the extra `oracle`, in this environment or in that of the interpreter that
MEM_ORACLE_PYTHON names. MEM_ORACLE_CASES says how many configurations are drawn, MEM_ORACLE_SEED where it starts.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.budget_traces import apart
from tests.buffer_traces import replayed

ROOT = Path(__file__).parents[2]
CASES = int(os.environ.get("MEM_ORACLE_CASES", "300"))
SEED = int(os.environ.get("MEM_ORACLE_SEED", "1"))
PIECES = [
    "tea", "Oslo", "fjord", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u200b", "42", "1234567", "don't", "'s",
    "é", "日本", "…", "...", "/", "<|endoftext|>", "🚲", "x_y", "\x1f", "\x85",
]  # fmt: skip
ROLES = ["user", "assistant", "tool", "system", "developer", "function", "model", "chatbot"]


@pytest.fixture(scope="module")
def oracle() -> Iterator[subprocess.Popen[str]]:
    python = os.environ.get("MEM_ORACLE_PYTHON")
    if python is None and importlib.util.find_spec("llama_index") is None:
        pytest.skip(
            "NOT COMPARED WITH THE REAL LIBRARY: llama-index-core is not here; install the extra `oracle`, "
            "or name an interpreter that has it in MEM_ORACLE_PYTHON"
        )
    driver = subprocess.Popen(
        [python or sys.executable, str(ROOT / "tests/oracle_buffer.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with driver:
        yield driver
        assert driver.stdin is not None
        driver.stdin.close()


def asked(oracle: subprocess.Popen[str], config: dict[str, Any], transcript: list[Any]) -> Any:
    assert oracle.stdin is not None
    assert oracle.stdout is not None
    oracle.stdin.write(json.dumps({"config": config, "transcript": transcript}) + "\n")
    oracle.stdin.flush()
    line = oracle.stdout.readline()
    assert line, f"the driver stopped at {json.dumps(config)} over {json.dumps(transcript)}"
    return json.loads(line)


def text(draw: random.Random) -> str:
    return "".join(draw.choices(PIECES, k=draw.choice([0, 0, 1, 2, 3, 5, 8, 13])))


def message(draw: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"role": draw.choices(ROLES, weights=[10, 10, 4, 1, 1, 1, 1, 1])[0], "content": text(draw)}
    if draw.random() < 0.1:
        made["content"] = [{"type": "text", "text": text(draw)} for _ in range(draw.randint(0, 3))]
    if made["role"] == "assistant" and draw.random() < 0.3:
        function = {"name": "f", "arguments": json.dumps({"n": draw.randint(0, 9)})}
        made["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        made["content"] = draw.choice([None, "", made["content"]])
    return made


def drawn(seed: int) -> tuple[dict[str, Any], list[Any]]:
    """Return a configuration and a transcript, the same for the same seed."""
    draw = random.Random(seed)
    config: dict[str, Any] = {"token_limit": draw.choice([1, 5, 10, 20, 30, 50, 80, 200])}
    if draw.random() < 0.15:
        config["token_limit"] = draw.choice([0, -1, None, 10.0, 10.5, True, "9", 2])
    if draw.random() < 0.1:
        del config["token_limit"]
    if draw.random() < 0.2:
        config["context_window"] = draw.choice([0, 1, 10, 41, 8192])
    if draw.random() < 0.3:
        config["initial_token_count"] = draw.choice([0, 1, 3, 10, 60])
    encoding = draw.choices(["cl100k_base", "words", "chars", None], weights=[6, 2, 2, 1])[0]
    if encoding:
        config["encoding"] = encoding
    config["mapping"] = draw.choice(["openai_dict", "tool_blocks", "both"])
    return config, [message(draw) for _ in range(draw.choice([0, 1, 3, 8, 16, 24]))]


@pytest.mark.timeout(0)
def test_drawn_configurations_give_the_prompts_of_the_library(oracle):
    differences = {}
    for seed in range(SEED, SEED + CASES):
        config, transcript = drawn(seed)
        found = apart(replayed(config, transcript), asked(oracle, config, transcript))
        if found:
            differences[seed] = found[:5]

    assert differences == {}


def test_what_is_drawn_reaches_every_corner():
    traces = [replayed(*drawn(seed)) for seed in range(1, 301)]
    prompts = [prompt for trace in traces for prompt in trace.get("prompts", [])]

    assert any("error" in trace for trace in traces)
    assert any("error" in prompt for prompt in prompts)
    assert sum(prompt.get("start", 0) > 0 for prompt in prompts) > 500
