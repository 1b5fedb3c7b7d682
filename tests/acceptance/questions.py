"""Questions to a memory, all through its command line."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from tests.acceptance.driver import Mem, Memory, Result


def facts(mem: Memory, *words: str, scope: str | None = None) -> list[dict[str, Any]]:
    """Return the facts that `show` lists."""
    found: list[dict[str, Any]] = mem.run("show", "--json", *words, scope=scope).json()
    return found


def texts(mem: Memory, *words: str, scope: str | None = None) -> list[str]:
    """Return what the facts say that `show` lists."""
    return [fact["text"] for fact in facts(mem, *words, scope=scope)]


def recalled(mem: Memory, query: str, *, scope: str | None = None) -> list[str]:
    """Return what the facts say that `recall` finds."""
    return [fact["text"] for fact in mem.run("recall", query, "--json", scope=scope).json()]


def block(mem: Memory, *words: str, scope: str | None = None) -> str:
    """Return the block that would go into a prompt."""
    return str(mem.run("context", *words, "--json", scope=scope).json()["text"])


def events(mem: Memory, *words: str, scope: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of the log."""
    found: list[dict[str, Any]] = mem.run("log", "--json", *words, scope=scope).json()
    return found


def refusals(mem: Memory, *, scope: str | None = None) -> list[str]:
    """Return what stood in the way of each refusal that the log holds."""
    return [event["target"] for event in events(mem, "--op", "refuse", scope=scope)]


def find(mem: Memory, word: str, *words: str, scope: str | None = None) -> str:
    """Return the id of the one fact whose text holds a word."""
    found = [fact["id"] for fact in facts(mem, *words, scope=scope) if word in fact["text"]]
    assert len(found) == 1, f"{len(found)} facts hold {word}"
    return str(found[0])


def readable_anywhere(mem: Memory, word: str, *, scope: str | None = None) -> list[str]:
    """Return the ways by which a word can be read in a scope: show, recall, the block with and without a question."""
    ways = {
        "show": " ".join(texts(mem, scope=scope)),
        "recall": " ".join(recalled(mem, word, scope=scope)),
        "context": block(mem, scope=scope),
        "context about it": block(mem, word, scope=scope),
    }
    return [way for way, said in ways.items() if word in said]


EVERYWHERE = ["show", "recall", "context", "context about it"]
"""What `readable_anywhere` returns for a fact that is believed."""


def extract(mem: Memory, *sources: str) -> dict[str, str]:
    """Read facts from sources, also from messages read before, and return what became of each, by its text."""
    done = mem.run("extract", "--all", *sources, "--json").json()
    return {claim["text"]: claim["outcome"] for claim in done["facts"]}


def condensing(text: str, parents: Sequence[str]) -> str:
    """Return a condenser that puts these facts into one with this text, and keeps every other."""
    program = (
        "import json, sys; told = json.load(sys.stdin)['facts'];"
        f"gone = {list(parents)!r}; rest = [{{'keep': item['id']}} for item in told if item['id'] not in gone];"
        f"print(json.dumps({{'facts': [{{'text': {text!r}, 'from': gone}}, *rest]}}))"
    )
    return shlex.join([sys.executable, "-c", program])


def offered(mem: Mem, text: str, *words: str, **how: Any) -> Result:
    """Offer a text as it stands, read from standard input so that no option can be seen in it."""
    return mem.run("add", "-", "--json", *words, input=text, **how)


def decisions(mem: Memory, word: str, decision: str, **said: str) -> str:
    """Write a file that decides every item of the queue that a word stands in, and return its path."""
    lines = [json.loads(line) for line in mem.run("review", "export").out.splitlines()]
    decided = [line | {"decision": decision, **said} for line in lines if word in json.dumps(line)]
    assert decided, f"nothing waits that holds {word}"
    path = mem.folder / f"decisions-{len(list(mem.folder.iterdir()))}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in decided), encoding="utf-8")
    return str(path)


def has(mem: Memory, command: str) -> bool:
    """Return whether this build has a command."""
    return mem.run(command, "--help").code == 0
