"""The memory stores of other tools, each with the same statements in it, and the statement that each becomes."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.driver import Mem

AT = "2026-01-15T23:20:00Z"
COLUMNS = ("id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One format of memory store.

    Args:
        format: What `--format` calls it.
        says: The statement that the file holds, with `{}` where the word stands, as it reads once it is imported.
        write: Writes a file of such a store that holds this statement for each of the words.
    """

    format: str
    says: str
    write: Callable[[Path, Sequence[str]], object]

    def text(self, word: str) -> str:
        """Return the statement about one word."""
        return self.says.format(word)

    def path(self, folder: Path, *words: str, name: str | None = None) -> str:
        """Write a file with a statement for each word, and return its path."""
        path = folder / (name or f"store-{len(list(folder.iterdir()))}")
        self.write(path, words)
        return str(path)


def _document(value: Callable[[Sequence[str]], Any], says: str = "the pass of the depot is {}") -> Any:
    """Return what writes one JSON document of the statements."""

    def write(path: Path, words: Sequence[str]) -> None:
        path.write_text(json.dumps(value([says.format(word) for word in words])), encoding="utf-8")

    return write


def _lines(*records: Callable[[int, str], Mapping[str, Any]]) -> Any:
    """Return what writes JSON Lines: each of these records for each word."""

    def write(path: Path, words: Sequence[str]) -> None:
        rows = (json.dumps(record(number, word)) for number, word in enumerate(words) for record in records)
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    return write


def _prose(begins: str, item: str, between: str = "\n", ends: str = "\n") -> Any:
    """Return what writes text: something, an item for each word, something."""

    def write(path: Path, words: Sequence[str]) -> None:
        path.write_text(begins + between.join(item.format(word) for word in words) + ends, encoding="utf-8")

    return write


def _history(path: Path, words: Sequence[str]) -> None:
    """Write the database of mem0's history: each memory was added, and then said otherwise."""
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute(f"create table history ({', '.join(COLUMNS)})")
        for number, word in enumerate(words):
            text = f"the pass of the depot is {word}"
            first = (f"r{number}a", f"m{number}", None, "the depot has a pass", "ADD", AT, None, 0)
            later = (f"r{number}b", f"m{number}", "the depot has a pass", text, "UPDATE", AT, "2026-02-01T00:00:00Z", 0)
            conn.executemany(f"insert into history values ({', '.join('?' * len(COLUMNS))})", [first, later])


def _langgraph(path: Path, words: Sequence[str]) -> None:
    """Write the database of a LangGraph store."""
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("create table store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)")
        for number, word in enumerate(words):
            value = json.dumps({"kind": "Memory", "content": {"content": f"the pass of the depot is {word}"}})
            row = ("memories", f"k{number}", value, "2026-01-15 23:20:00", "2026-01-15 23:20:00", None, None)
            conn.execute("insert into store values (?, ?, ?, ?, ?, ?, ?)", row)


def _export(path: Path, words: Sequence[str]) -> None:
    """Write an export of another memory file that believes the statements."""
    other = Mem(path.parent, f"other-{path.name}.db")
    for word in words:
        other.ok("add", f"the pass of the depot is {word}")
    other.ok("export", "-o", str(path))


EDGE = {"name": "OPENS", "source_node_uuid": "n1", "target_node_uuid": "n2", "created_at": AT}
ISSUE = {"status": "open", "priority": 2, "issue_type": "task", "created_at": AT, "updated_at": AT}

STORES: Mapping[str, Store] = {
    "mcp": Store(
        format="mcp",
        says="depot: its pass is {}",
        write=_lines(
            lambda _, word: {
                "type": "entity",
                "name": "depot",
                "entityType": "place",
                "observations": [f"its pass is {word}"],
            }
        ),
    ),
    "mcp relation": Store(
        format="mcp",
        says="the depot has the pass {}",
        write=_lines(
            lambda _, word: {"type": "relation", "from": "the depot", "to": word, "relationType": "has_the_pass"}
        ),
    ),
    "mem0": Store(
        format="mem0",
        says="the pass of the depot is {}",
        write=_document(
            lambda texts: {
                "results": [
                    {"id": f"m{number}", "memory": text, "hash": "d4", "created_at": AT, "user_id": "ann"}
                    for number, text in enumerate(texts)
                ]
            }
        ),
    ),
    "mem0 history": Store(format="mem0", says="the pass of the depot is {}", write=_history),
    "hermes": Store(
        format="hermes",
        says="the pass of the depot is {}",
        write=_prose("likes tea\n§\n", "the pass of the depot is {}", between="\n§\n"),
    ),
    "markdown": Store(
        format="markdown",
        says="the pass of the depot is {}",
        write=_prose("# Memory\n\n", "- the pass of the depot is {}"),
    ),
    "basic-memory": Store(
        format="basic-memory",
        says="Depot: the pass is {}",
        write=_prose(
            "---\ntitle: Depot\ntype: note\npermalink: notes/depot\n---\n\n# Depot\n\n", "- [fact] the pass is {}"
        ),
    ),
    "beads": Store(
        format="beads",
        says="the pass of the depot is {}",
        write=_lines(lambda number, word: {"id": f"bd-{number}", "title": f"the pass of the depot is {word}", **ISSUE}),
    ),
    "langmem": Store(
        format="langmem",
        says="the pass of the depot is {}",
        write=_document(
            lambda texts: [
                {
                    "namespace": ["memories", "ann"],
                    "key": f"k{number}",
                    "value": {"kind": "Memory", "content": {"content": text}},
                    "created_at": AT,
                }
                for number, text in enumerate(texts)
            ]
        ),
    ),
    "langmem database": Store(format="langmem", says="the pass of the depot is {}", write=_langgraph),
    "letta": Store(
        format="letta",
        says="human: the pass of the depot is {}",
        write=_document(
            lambda texts: {
                "agents": [{"id": "agent-0", "name": "sam", "messages": []}],
                "blocks": [{"label": "human", "value": "\n".join(texts), "id": "block-0"}],
            }
        ),
    ),
    "graphiti": Store(
        format="graphiti",
        says="the pass of the depot is {}",
        write=_document(
            lambda texts: {
                "nodes": [{"uuid": "n1", "name": "depot"}, {"uuid": "n2", "name": "pass"}],
                "edges": [{"uuid": f"e{number}", "fact": text, **EDGE} for number, text in enumerate(texts)],
            }
        ),
    ),
    "llamaindex-facts": Store(
        format="llamaindex-facts",
        says="the pass of the depot is {}",
        write=_document(lambda texts: {"name": "facts", "priority": 0, "facts": texts, "max_facts": 50}),
    ),
    "chat-memories": Store(
        format="chat-memories",
        says="the pass of the depot is {}",
        write=_document(
            lambda texts: {
                "memories": [
                    {"id": f"c{number}", "content": text, "created_at": AT} for number, text in enumerate(texts)
                ],
                "memory_max_tokens": 5000,
            }
        ),
    ),
    "mem": Store(format="mem", says="the pass of the depot is {}", write=_export),
}
"""Every format whose records become facts, and both layouts of those that have two."""
