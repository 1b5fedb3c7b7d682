"""Transcripts of coding agents for tests: written as small files, opened, and counted as the fixtures are."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from memcli import exchange
from memcli.exchange import Opened
from memcli.facts import Turn

FIXTURES = Path(__file__).parent.parent / "fixtures"
COUNTED = ("conversations", "messages", "roles", "tool_calls", "open_calls", "orphan_results")


def expected(*folders: str) -> list[dict[str, Any]]:
    """Return what a careful reader counts in each fixture of these folders or files."""
    rows = json.loads((FIXTURES / "EXPECTED_COUNTS.json").read_text(encoding="utf-8"))
    return [row for row in rows if row["file"].startswith(folders)]


def counts(found: Opened) -> dict[str, Any]:
    """Return the same numbers of a file that was opened."""
    every = turns(found)
    return {
        "conversations": len(found.conversations),
        "messages": len(every),
        "roles": Counter(str(turn.role) for turn in every),
        "tool_calls": sum(len(turn.tool_calls) for turn in every),
        "open_calls": sum("without a result" in warned.message for warned in found.warnings),
        "orphan_results": sum("without its call" in warned.message for warned in found.warnings),
    }


def turns(found: Opened) -> list[Turn]:
    """Return every message, conversation after conversation."""
    return [turn for conversation in found.conversations for turn in conversation.turns]


def said(found: Opened) -> list[tuple[str, str]]:
    """Return who said what."""
    return [(str(turn.role), turn.content) for turn in turns(found)]


def told(found: Opened) -> list[tuple[int | None, str]]:
    """Return the warnings with their lines."""
    return [(warned.line, warned.message) for warned in found.warnings]


def lines(tmp_path: Path, *records: Any, **options: str) -> Opened:
    """Open JSON Lines of these records; what is text already stands there as it is."""
    texts = (record if isinstance(record, str) else json.dumps(record) for record in records)
    return text(tmp_path, "\n".join(texts), **options)


def document(tmp_path: Path, value: Any) -> Opened:
    """Open one JSON document that is written over several lines."""
    return text(tmp_path, json.dumps(value, indent=1))


def text(tmp_path: Path, content: str, **options: str) -> Opened:
    """Open a file with this content, and a name that says nothing."""
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8", newline="")
    return exchange.open_file(str(path), **options)
