"""What the tests put into a memory: random tokens, and the same talk in two foreign formats."""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "fixtures"


def token() -> str:
    """Return a word that stands nowhere else, so that finding it proves where it came from."""
    return "q" + secrets.token_hex(5)


def openai(path: Path, said: Sequence[str]) -> str:
    """Write what a user said, each answered by an assistant, as OpenAI messages; return the path."""
    turns = [
        {"role": role, "content": text} for text in said for role, text in (("user", text), ("assistant", "Noted."))
    ]
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    return str(path)


def claude_code(path: Path, said: Sequence[str]) -> str:
    """Write the same as a Claude Code session, with its ids, parents and times; return the path."""
    records: list[dict[str, object]] = []
    for text in said:
        for role, content in (("user", text), ("assistant", [{"type": "text", "text": "Noted."}])):
            number = len(records)
            records.append(
                {
                    "parentUuid": f"u{number - 1}" if number else None,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": "/home/dev",
                    "sessionId": "b2c1",
                    "version": "2.1.7",
                    "type": role,
                    "message": {"id": f"msg_{number}", "role": role, "content": content},
                    "uuid": f"u{number}",
                    "timestamp": f"2026-01-15T23:2{number % 10}:50.000Z",
                }
            )
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)
