"""What the tests put into a memory: random tokens, and the same talk in two foreign formats."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
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


def _turns(said: Sequence[str]) -> list[tuple[bool, str]]:
    """Return what was said, and whether the user said it."""
    return [(mine, text) for words in said for mine, text in ((True, words), (False, "Noted."))]


def chatgpt(path: Path, said: Sequence[str]) -> str:
    """Write the same as an export of ChatGPT without times; return the path."""
    nodes: dict[str, object] = {"n": {"id": "n", "message": None, "parent": None, "children": ["n0"]}}
    turns = _turns(said)
    for number, (mine, text) in enumerate(turns):
        message = {
            "id": f"n{number}",
            "author": {"role": "user" if mine else "assistant"},
            "create_time": None,
            "content": {"content_type": "text", "parts": [text]},
            "recipient": "all",
            "metadata": {},
        }
        nodes[f"n{number}"] = {
            "id": f"n{number}",
            "message": message,
            "parent": f"n{number - 1}" if number else "n",
            "children": [f"n{number + 1}"] if number + 1 < len(turns) else [],
        }
    talk = {"title": "talk", "create_time": None, "current_node": f"n{len(turns) - 1}", "mapping": nodes, "id": "c1"}
    path.write_text(json.dumps([talk]), encoding="utf-8")
    return str(path)


def langchain(path: Path, said: Sequence[str]) -> str:
    """Write the same as messages of LangChain; return the path."""
    turns = [{"type": "human" if mine else "ai", "data": {"content": text}} for mine, text in _turns(said)]
    path.write_text(json.dumps(turns), encoding="utf-8")
    return str(path)


def sharegpt(path: Path, said: Sequence[str]) -> str:
    """Write the same as ShareGPT; return the path."""
    turns = [{"from": "human" if mine else "gpt", "value": text} for mine, text in _turns(said)]
    path.write_text(json.dumps([{"conversations": turns}]), encoding="utf-8")
    return str(path)


def plain_text(path: Path, said: Sequence[str]) -> str:
    """Write the same as plain text; return the path."""
    lines = (f"{'User' if mine else 'Assistant'}: {text}\n" for mine, text in _turns(said))
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


TRANSCRIPTS: Mapping[str, Callable[[Path, Sequence[str]], str]] = {
    "openai": openai,
    "claude-code": claude_code,
    "chatgpt": chatgpt,
    "langchain": langchain,
    "sharegpt": sharegpt,
    "text": plain_text,
}
"""The same talk in formats that have nothing in common."""

EXPORTS = ("mem", "mcp", "mem0", "llamaindex", "markdown")
"""Every format that mem writes."""
