"""Drives the real llama_index.core.memory.ChatMemoryBuffer and prints what it gave. Needs llama-index-core.

Run as a script it reads one `{"config": …, "transcript": …}` a line and writes one trace a line: for the prompt after
each message where it begins and what it counts as, or what was raised.
"""

import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from oracle_llamaindex import chat_message, error, picked, tokenizer  # the script beside this one

warnings.filterwarnings("ignore")

from llama_index.core.memory import ChatMemoryBuffer  # noqa: E402  # after the filter: it is deprecated


def buffer(config: dict[str, Any]) -> ChatMemoryBuffer:
    keywords = picked(config, "token_limit")
    if "context_window" in config:
        # Nothing but this is asked of the model.
        keywords["llm"] = SimpleNamespace(metadata=SimpleNamespace(context_window=config["context_window"]))
    count = tokenizer(config.get("encoding"))
    if count is not None:
        keywords["tokenizer_fn"] = count
    return ChatMemoryBuffer.from_defaults(**keywords)


def prompt(memory: ChatMemoryBuffer, initial: int) -> dict[str, Any]:
    stored = memory.get_all()
    try:
        given = memory.get(initial_token_count=initial)
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
        return {"error": error(problem)}
    start = len(stored) - len(given)
    assert all(mine is theirs for mine, theirs in zip(stored[start:], given, strict=True))
    return {"start": start, "tokens": memory._token_count_for_messages(given)}  # noqa: SLF001  # what is watched


def trace(config: dict[str, Any], transcript: list[Any]) -> dict[str, Any]:
    try:
        memory = buffer(config)
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
        return {"error": error(problem)}
    initial = config.get("initial_token_count", 0)
    prompts = [prompt(memory, initial)]
    for message in transcript:
        memory.put(chat_message(message, config.get("mapping", "openai_dict")))
        prompts.append(prompt(memory, initial))
    return {"effective": {"token_limit": memory.token_limit}, "prompts": prompts}


if __name__ == "__main__":
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(trace(case["config"], case["transcript"])), flush=True)  # noqa: T201  # that is the trace
