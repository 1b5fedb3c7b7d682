"""Drives the real llama_index.core.memory.Memory and prints what it did. Needs llama-index-core, and nothing of mem.

Run as a script it reads one `{"config": …, "transcript": …}` a line and writes one trace a line. Only hooks that
watch are added: subclasses that write down what happens and call the library's own methods.
"""

import asyncio
import hashlib
import json
import logging
import math
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import llama_index.core as library  # noqa: E402  # after the filter: it warns when it is imported

# The library carries the vocabulary; without this tiktoken would fetch its own.
os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(library.__file__).parent / "_static" / "tiktoken_cache"))

from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: E402
from llama_index.core.base.llms.types import (  # noqa: E402
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    ChatResponse,
    CitableBlock,
    DocumentBlock,
    ImageBlock,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.llms.custom import CustomLLM  # noqa: E402
from llama_index.core.memory import (  # noqa: E402
    FactExtractionMemoryBlock,
    Memory,
    StaticMemoryBlock,
    VectorMemoryBlock,
)
from llama_index.core.memory.memory import BaseMemoryBlock  # noqa: E402
from llama_index.core.storage.chat_store.sql import MessageStatus, SQLAlchemyChatStore  # noqa: E402
from llama_index.core.utils import get_tokenizer  # noqa: E402
from llama_index.core.vector_stores import SimpleVectorStore  # noqa: E402
from llama_index.core.vector_stores.types import VectorStoreQueryResult  # noqa: E402

# --- what counts ---


def tokenizer(name: str | None) -> Callable[[str], list[Any]] | None:
    """Return what the configuration names; None leaves the library to take its own."""
    if name == "words":
        return str.split
    if name == "chars":
        return list
    if name in (None, "cl100k_base"):
        return None if name is None else get_tokenizer()
    import tiktoken

    encoding = tiktoken.get_encoding(name)
    return lambda text: encoding.encode(text, allowed_special="all")


# --- messages ---

NATIVE = {
    "text": TextBlock,
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
    "document": DocumentBlock,
    "thinking": ThinkingBlock,
    "tool_call": ToolCallBlock,
    "citable": CitableBlock,
}


def native(part: dict[str, Any]) -> Any:
    kind = part["block_type"]
    fields = {key: value for key, value in part.items() if key != "block_type"}
    if kind == "cache":
        return CachePoint(cache_control=CacheControl(type=fields.get("type", "ephemeral")))
    made = NATIVE[kind]
    for key in ("image", "audio", "video", "data"):
        if isinstance(fields.get(key), str):
            fields[key] = fields[key].encode()
    return made(**fields)


def block(part: Any) -> Any:
    if "block_type" in part:
        return native(part)
    match part["type"]:
        case "text":
            return TextBlock(text=part["text"])
        case "image_url":
            return ImageBlock(url=part["image_url"]["url"])
        case "input_audio":
            sound = part["input_audio"]
            return AudioBlock(audio=sound["data"].encode(), format=sound.get("format"))
        case "file":
            return DocumentBlock(data=part["file"]["file_data"].encode())
    raise ValueError(f"Unsupported message type: {part['type']}")


def chat_message(message: dict[str, Any], mapping: str) -> ChatMessage:
    content = message.get("content")
    kwargs = {key: value for key, value in message.items() if key not in ("role", "content")}
    blocks = [TextBlock(text=content)] if isinstance(content, str) else []
    if isinstance(content, list):
        blocks = [block(part) for part in content]
    if mapping in ("tool_blocks", "both") and message.get("tool_calls"):
        for call in message["tool_calls"]:
            function = call.get("function", {})
            blocks.append(
                ToolCallBlock(
                    tool_call_id=call.get("id"),
                    tool_name=function.get("name", ""),
                    tool_kwargs=function.get("arguments", {}),
                )
            )
        if mapping == "tool_blocks":
            kwargs.pop("tool_calls")
    # A copy, so that what the library does to the keywords is seen by nobody else.
    return ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=json.loads(json.dumps(kwargs)))


# --- what is watched ---


class Watch:
    """What the library did since the last write or reading."""

    def __init__(self) -> None:
        self.active: list[int] = []
        self.batches: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []
        self.truncations: list[dict[str, Any]] = []
        self.gathered: list[str] = []
        self.contents: dict[str, Any] = {}
        self.tokens: dict[int, int] = {}
        self.estimate: Callable[[Any], int] = lambda _: 0


class Stage:
    """Holds the watch of the session that is running."""

    watch = Watch()


class WatchedStore(SQLAlchemyChatStore):
    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        archived = await super().archive_oldest_messages(key, n)
        watch = Stage.watch
        left, watch.active = watch.active[:n], watch.active[n:]
        assert len(archived) == n == len(left)
        watch.batches.append({"indices": left, "tokens": sum(watch.tokens[at] for at in left), "to_blocks": []})
        return archived


class Watched:
    """Put before a block class: writes down each call of the public entry points."""

    async def aput(self, messages, from_short_term_memory=False, session_id=None):
        if Stage.watch.batches and (self.accept_short_term_memory or not from_short_term_memory):
            Stage.watch.batches[-1]["to_blocks"].append(self.name)
        return await super().aput(messages, from_short_term_memory, session_id)

    async def aget(self, messages=None, **keywords):
        content = await super().aget(messages, **keywords)
        Stage.watch.gathered.append(self.name)
        return content

    async def atruncate(self, content, tokens_to_truncate):
        returned = await super().atruncate(content, tokens_to_truncate)
        estimate = Stage.watch.estimate
        Stage.watch.truncations.append(
            {
                "block": self.name,
                "priority": self.priority,
                "asked": tokens_to_truncate,
                "before": estimate(content),
                "after": 0 if returned is None else estimate(returned),
                "returned": "None" if returned is None else type(returned).__name__,
            }
        )
        return returned


class WatchedStatic(Watched, StaticMemoryBlock):
    pass


class WatchedFact(Watched, FactExtractionMemoryBlock):
    pass


class WatchedVector(Watched, VectorMemoryBlock):
    pass


class ToldBlock(BaseMemoryBlock[Any]):
    """Does what the configuration tells it."""

    content: str = ""
    returns: str = "str"
    truncate: str = "none"
    on_put: str = "ignore"
    shared: Any = None

    def messages(self) -> list[ChatMessage]:
        pieces = [piece.partition(":") for piece in self.content.split("|")]
        return [ChatMessage(role=role, content=text) for role, _, text in pieces]

    async def _aget(self, messages=None, **keywords):
        if self.returns == "messages_shared":
            self.shared = self.messages() if self.shared is None else self.shared
            return self.shared
        makers = {
            "str": lambda: self.content,
            "blocks": lambda: [TextBlock(text=text) for text in self.content.split("|")],
            "messages": self.messages,
            "empty": lambda: "",
            "dict": lambda: {"text": self.content},
            "mixed": lambda: [ChatMessage(role="user", content=self.content), TextBlock(text="x")],
        }
        if self.returns not in makers:
            raise ValueError(self.returns)
        return makers[self.returns]()

    async def _aput(self, messages):
        if self.on_put == "raise":
            raise RuntimeError("block put failed")
        if self.on_put == "append":
            self.content = " ".join([self.content, *(message.content or "" for message in messages)]).strip()

    async def atruncate(self, content, tokens_to_truncate):
        if self.truncate in ("none", "empty", "elist"):
            return {"none": None, "empty": "", "elist": []}[self.truncate]
        if self.truncate == "noop" or not isinstance(content, str):
            return content
        words = content.split()
        match self.truncate:
            case "words":
                keep = len(words) - tokens_to_truncate
                return " ".join(words[: int(keep)]) if keep > 0 else None
            case "half":
                return " ".join(words[: len(words) // 2])
            case "grow":
                return content + " " + content
        raise ValueError(self.truncate)


class WatchedTold(Watched, ToldBlock):
    pass


# --- a model and an embedding that are worked out ---


class LineModel(CustomLLM):
    """Takes lines that begin with FACT: for facts, and condenses by a rule."""

    condense: str = "keep_last"
    extract: str = "lines"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, model_name="lines")

    # The library asks for both by name and calls neither here: fact blocks only chat.
    def complete(self, prompt: str, formatted: bool = False, **keywords: Any) -> Any:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **keywords: Any) -> Any:
        raise NotImplementedError

    async def achat(self, messages, **keywords: Any) -> ChatResponse:
        prompt = messages[-1].content or ""
        told = messages[:-1]
        kind = "condense" if "fact condensing system" in prompt else "extract"
        inner = prompt.split("<existing_facts>")[1].split("</existing_facts>")[0]
        existing = re.findall(r"<fact>(.*?)</fact>", inner, re.DOTALL)
        facts = self.condensed(existing, prompt) if kind == "condense" else self.extracted(told)
        Stage.watch.calls.append(
            {
                "kind": kind,
                "conversation_messages": len(told),
                "existing_facts": len(existing),
                "returned": list(facts),
                "session_id_leaked_into_kwargs": sum("session_id" in message.additional_kwargs for message in told),
            }
        )
        text = "<facts>\n" + "\n".join(f"  <fact>{fact}</fact>" for fact in facts) + "\n</facts>"
        if kind == "condense" and self.condense == "garbage":
            text = "Sorry, I cannot do that."
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

    def extracted(self, messages: list[ChatMessage]) -> list[str]:
        if self.extract == "raise":
            raise RuntimeError("extract failed")
        lines = [line for message in messages for line in (message.content or "").splitlines()]
        return [line[len("FACT:") :].strip() for line in lines if line.startswith("FACT:")]

    def condensed(self, existing: list[str], prompt: str) -> list[str]:
        most = int(re.search(r"fewer than (-?\d+) facts", prompt).group(1))
        match self.condense:
            case "keep_last":
                return existing[-max(1, most - 1) :]
            case "merge":
                return ["; ".join(existing[at : at + 2]) for at in range(0, len(existing), 2)]
            case "all":
                return existing
            case "dup":
                return [existing[0], existing[0]]
            case "empty" | "garbage":
                return []
            case "raise":
                raise RuntimeError("condense failed")
        raise ValueError(self.condense)


PLACES = 64


def embedding(text: str) -> list[float]:
    bag = [0.0] * PLACES
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.sha1(word.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
        bag[int.from_bytes(digest[:4], "big") % PLACES] += 1.0
    length = math.sqrt(sum(often * often for often in bag))
    return [often / length for often in bag] if length else [1.0 / math.sqrt(PLACES)] * PLACES


class BagEmbedding(BaseEmbedding):
    def _get_query_embedding(self, query: str) -> list[float]:
        return embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return embedding(text)


class TextStore(SimpleVectorStore):
    """Keeps the texts too, as the vector block demands, under ids in order."""

    stores_text: bool = True

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.stores_text = True
        object.__setattr__(self, "texts", {})

    def add(self, nodes, **keywords):
        for node in nodes:
            node.id_ = f"node-{len(self.texts):06d}"
            self.texts[node.id_] = node
            super().add([node], **keywords)
        return [node.node_id for node in nodes]

    async def async_add(self, nodes, **keywords):
        return self.add(nodes, **keywords)

    async def aquery(self, query, **keywords):
        found = super().query(query, **keywords)
        nodes = [self.texts[place] for place in found.ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=found.similarities, ids=found.ids)


# --- a memory from a configuration ---


class WatchedMemory(Memory):
    async def _truncate_memory_blocks(self, content, mem_tokens, chat_tokens):
        before = {name: self._estimate_token_count(item) for name, item in content.items()}
        kept = await super()._truncate_memory_blocks(content, mem_tokens, chat_tokens)
        Stage.watch.contents = {
            "before": before,
            "after": {name: self._estimate_token_count(item) for name, item in kept.items()},
            "kept": [name for name, item in kept.items() if item],
            "blocks": mem_tokens,
            "history": chat_tokens,
        }
        return kept


PASSED = (
    "token_limit",
    "token_flush_size",
    "chat_history_token_ratio",
    "insert_method",
    "image_token_size_estimate",
    "audio_token_size_estimate",
    "video_token_size_estimate",
    "document_token_size_estimate",
)


def picked(source: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: source[name] for name in names if name in source}


def memory_block(given: dict[str, Any]) -> BaseMemoryBlock[Any]:
    common = picked(given, "name", "priority", "accept_short_term_memory")
    match given["type"]:
        case "static":
            content = given["content"]
            if isinstance(content, list):
                content = [block(part) if isinstance(part, dict) else part for part in content]
            return WatchedStatic(static_content=content, **common)
        case "fact":
            model = LineModel(condense=given.get("condense", "keep_last"), extract=given.get("extract", "lines"))
            return WatchedFact(llm=model, **picked(given, "max_facts", "facts"), **common)
        case "vector":
            more = picked(given, "similarity_top_k", "retrieval_context_window", "format_template")
            return WatchedVector(vector_store=TextStore(), embed_model=BagEmbedding(), **more, **common)
        case "custom":
            return WatchedTold(**picked(given, "content", "returns", "truncate", "on_put"), **common)
    raise ValueError(f"unknown block type {given['type']!r}")


def memory(config: dict[str, Any]) -> Memory:
    keywords = picked(config, *PASSED)
    for name, value in keywords.items():
        if value in ("nan", "inf", "-inf"):
            keywords[name] = float(value)
    keywords["session_id"] = config.get("session_id", "s1")
    keywords["memory_blocks"] = [memory_block(given) for given in config.get("blocks", [])]
    count = tokenizer(config.get("encoding"))
    if count is not None:
        keywords["tokenizer_fn"] = count
    store = WatchedStore(table_name="llama_index_memory")
    if config.get("constructor", "from_defaults") == "direct":
        return WatchedMemory(sql_store=store, **keywords)
    return WatchedMemory.from_defaults(chat_store=store, **keywords)


# --- what is told ---


def error(problem: BaseException) -> dict[str, str]:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    said = lines[0] if lines else ""
    if type(problem).__name__ == "ValidationError" and len(lines) > 1:
        # The tail with the input and the address change from version to version.
        told = [re.sub(r"\s*\[type=.*$", "", line) for line in lines[1:] if "errors.pydantic.dev" not in line]
        said = " / ".join(told)
    return {"type": type(problem).__name__, "message": said}


def part(item: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"type": item.block_type}
    if item.block_type == "text":
        told["text"] = item.text
    elif getattr(item, "url", None) is not None:
        url = str(item.url)
        told["url"] = url if len(url) <= 120 else url[:117] + "..."
    elif item.block_type == "tool_call":
        told["tool_name"] = item.tool_name
    return told


def told_message(mem: Memory, message: ChatMessage) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "tokens": mem._estimate_token_count(message),  # noqa: SLF001  # what is watched
        "blocks": [part(item) for item in message.blocks],
        **({"additional_kwargs": message.additional_kwargs} if message.additional_kwargs else {}),
    }


def fate(name: str, contents: dict[str, Any]) -> str:
    before, after = contents["before"].get(name), contents["after"].get(name)
    if before is None:
        return "no_content"
    if name not in contents["kept"]:
        return "dropped"
    return "whole" if after == before else "truncated" if after < before else "grown"


async def prompt(mem: Memory, asked: Any) -> dict[str, Any]:
    watch = Stage.watch
    watch.truncations, watch.gathered, watch.contents = [], [], {}
    try:
        messages = await (mem.aget() if asked is None else mem.aget(input=asked))
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
        return {"error": error(problem)}
    contents = watch.contents
    before, after = contents["before"], contents["after"]
    kept = [item.name for item in mem.memory_blocks if item.name in contents["kept"]]
    told = [told_message(mem, message) for message in messages]
    total = sum(message["tokens"] for message in told)
    return {
        "gather_order": watch.gathered,
        "history_tokens": contents["history"],
        "block_tokens": before,
        "blocks_tokens_total": contents["blocks"],
        "excess": max(0, contents["blocks"] + contents["history"] - mem.token_limit),
        "truncate_calls": watch.truncations,
        "block_tokens_after": {name: after[name] for name in before if name in after},
        "fate": {item.name: fate(item.name, contents) for item in mem.memory_blocks},
        "rendered_order": kept,
        "messages": told,
        "total_tokens": total,
        "counted_tokens": contents["history"] + sum(after[name] for name in kept),
        "over_limit_by": max(0, total - mem.token_limit),
    }


def number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# --- a session ---


def writes(config: dict[str, Any], total: int) -> list[dict[str, Any]]:
    made = []
    at = int(config.get("initial_history", 0))
    if at:
        made.append({"op": "set", "indices": list(range(at))})
    sizes = list(config.get("batches", []))
    while at < total:
        size = (sizes.pop(0) if sizes else 1) if "batches" in config else 1
        op = "put_messages" if "batches" in config else "put"
        made.append({"op": op, "indices": list(range(at, min(at + size, total)))})
        at += size
    return made


class Session:
    """One memory and one transcript."""

    def __init__(self, config: dict[str, Any], transcript: list[Any]) -> None:
        Stage.watch = Watch()
        self.config = config
        self.transcript = transcript
        self.mem = memory(config)
        self.threshold = self.mem.token_limit * self.mem.chat_history_token_ratio
        self.originals: dict[int, ChatMessage] = {}
        self.flushed = 0
        Stage.watch.estimate = self.mem._estimate_token_count  # noqa: SLF001  # what is watched

    async def trace(self) -> dict[str, Any]:
        mem = self.mem
        steps = []
        for write in writes(self.config, len(self.transcript)):
            steps.append(write)
            if not await self.step(write):
                break
        told: dict[str, Any] = {
            "effective": {
                "token_limit": mem.token_limit,
                "token_flush_size": mem.token_flush_size,
                "chat_history_token_ratio": number(mem.chat_history_token_ratio),
                "flush_threshold": number(self.threshold),
                "insert_method": mem.insert_method.value,
            },
            "steps": steps,
        }
        if self.config.get("get", "end") in ("end", "every"):
            asked = self.config.get("get_input")
            told["get"] = await prompt(mem, asked)
            again = [await prompt(mem, asked) for _ in range(int(self.config.get("repeat_get", 0)))]
            if again:
                told["get_again"] = again
        told["final"] = await self.final()
        return told

    async def final(self) -> dict[str, Any]:
        store, watch = self.mem.sql_store, Stage.watch
        stored = await store.get_messages(self.mem.session_id, status=None)
        archived = await store.get_messages(self.mem.session_id, status=MessageStatus.ARCHIVED)
        if store._async_engine is not None:  # noqa: SLF001  # there is no public way to close it
            await store._async_engine.dispose()  # noqa: SLF001  # the same
        return {
            "stored": len(stored),
            "archived": len(archived),
            "active": list(watch.active),
            "queue_tokens": sum(watch.tokens[at] for at in watch.active),
        }

    async def step(self, step: dict[str, Any]) -> bool:
        """Do one write, add to the step what it did, and return whether to go on."""
        watch = Stage.watch
        watch.batches, watch.calls = [], []
        places = step["indices"]
        try:
            messages = [chat_message(self.transcript[at], self.config.get("mapping", "openai_dict")) for at in places]
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
            step["error"] = {"stage": "message", **error(problem)}
            return False
        for at, message in zip(places, messages, strict=True):
            stored = ChatMessage.model_validate(json.loads(json.dumps(message.model_dump(mode="json"))))
            watch.tokens[at] = watch.estimate(stored)
            self.originals[at] = stored
        step["tokens"] = [watch.tokens[at] for at in places]
        managed = step["op"] != "set"
        before = sum(step["tokens"]) + (sum(watch.tokens[at] for at in watch.active) if managed else 0)
        step["queue_tokens_before"] = before
        step["flush_triggered"] = managed and before > self.threshold
        failed = await self.write(step["op"], places, messages)
        await self.look(step)
        if failed is not None:
            step["error"] = {"stage": "put", **failed}
            if not self.config.get("continue_on_error"):
                return False
        if self.config.get("get") == "every":
            step["get"] = await prompt(self.mem, self.config.get("get_input"))
        return True

    async def write(self, op: str, places: list[int], messages: list[ChatMessage]) -> dict[str, str] | None:
        watch = Stage.watch
        watch.active = places[:] if op == "set" else watch.active + places
        try:
            if op == "set":
                await self.mem.aset(messages)
            elif op == "put":
                await self.mem.aput(messages[0])
            else:
                await self.mem.aput_messages(messages)
        except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
            return error(problem)
        return None

    async def look(self, step: dict[str, Any]) -> None:
        """Add to the step what the store and the blocks hold."""
        watch = Stage.watch
        active = await self.mem.sql_store.get_messages(self.mem.session_id, status=MessageStatus.ACTIVE)
        expected = [self.originals[at].model_dump() for at in watch.active]
        assert [message.model_dump() for message in active] == expected, "the watch lost the window"
        self.flushed += sum(len(batch["indices"]) for batch in watch.batches)
        tokens = sum(watch.estimate(message) for message in active)
        step["flushed"] = watch.batches
        step["active"] = list(watch.active)
        step["active_count"] = len(active)
        step["queue_tokens"] = tokens
        step["flushed_total"] = self.flushed
        step["over_threshold"] = tokens > self.threshold
        step["first_active_role"] = active[0].role.value if active else None
        if watch.calls:
            step["llm_calls"] = watch.calls
        facts = {item.name: {"facts": list(item.facts)} for item in self.mem.memory_blocks if hasattr(item, "facts")}
        nodes = {
            item.name: {"nodes": [node.text for node in item.vector_store.texts.values()]}
            for item in self.mem.memory_blocks
            if isinstance(item, WatchedVector)
        }
        if watch.batches and (facts or nodes):
            step["block_state"] = {**facts, **nodes}


async def run(config: dict[str, Any], transcript: list[Any]) -> dict[str, Any]:
    """Return the trace of one configuration and transcript."""
    try:
        session = Session(config, transcript)
    except Exception as problem:  # noqa: BLE001  # whatever it is, it is told
        return {"error": {"stage": "construct", **error(problem)}}
    return await session.trace()


def main() -> None:
    # A surrogate without its other half is a character to Python and JSON, and none to UTF-8.
    for line in sys.stdin:
        case = json.loads(line)
        sys.stdout.write(json.dumps(asyncio.run(run(case["config"], case["transcript"]))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
