"""A small memory that forgets as many do: a flag on the row, an index that is not told, no tombstone, a silent log.

It speaks the same command line as far as the thirteen steps need it, so that they can be seen to fail.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.acceptance.driver import Result


class Leaky:
    """Facts in one JSON file, with an index of words beside them."""

    def __init__(self, folder: Path, name: str = "leaky") -> None:
        self.folder = folder
        self._path = folder / f"{name}.json"
        self._rows: list[dict[str, Any]] = []
        self._log: list[dict[str, Any]] = []
        self._talks: list[list[dict[str, Any]]] = []
        if self._path.exists():
            self._rows, self._log, self._talks = json.loads(self._path.read_text(encoding="utf-8"))
        self._save()

    @property
    def files(self) -> Sequence[Path]:
        """Return the file that holds everything."""
        return [self._path]

    def beside(self, name: str) -> "Leaky":
        """Return another memory in the same folder."""
        return Leaky(self.folder, name)

    def run(self, *words: str, scope: str | None = None) -> Result:
        """Run one command and return what it said."""
        named: dict[str, str] = {}
        plain: list[str] = []
        rest = list(words[1:])
        while rest:
            word = rest.pop(0)
            if word in ("--json", "--yes", "--all", "--all-states", "--help"):
                named[word] = word
            elif word.startswith("-"):
                named[word] = rest.pop(0)
            else:
                plain.append(word)
        command = self._commands().get(words[0])
        if command is None:
            return Result(code=2, out="", err=f"no command {words[0]}")
        answer = command(plain, named, scope or "default")
        self._save()
        code = 1 if words[0] == "check" and "--residue" in named and named["--residue"] in self._path.read_text() else 0
        return Result(code=code, out=json.dumps(answer), err="")

    def _commands(self) -> Mapping[str, Callable[[list[str], dict[str, str], str], Any]]:
        return {
            "import": self._import,
            "extract": self._extract,
            "add": self._add,
            "show": self._show,
            "recall": self._recall,
            "context": self._context,
            "tombstone": self._forget,
            "retract": self._forget,
            "erase": self._forget,
            "rebuild": self._extract,
            "migrate": self._nothing,
            "condense": self._nothing,
            "export": self._export,
            "check": self._nothing,
            "log": lambda *_: self._log,
        }

    def _save(self) -> None:
        self._path.write_text(json.dumps([self._rows, self._log, self._talks]), encoding="utf-8")

    def _nothing(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        return {}

    def _export(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        # Whatever the format is called, it is every text that is not hidden, and nothing of what was deleted.
        texts = [row["text"] for row in self._show([], {}, scope)]
        Path(named["-o"]).write_text(json.dumps({"texts": texts}), encoding="utf-8")
        return {}

    def _import(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        text = Path(plain[0]).read_text(encoding="utf-8")
        if text.startswith('{"texts"'):
            for said in json.loads(text)["texts"]:
                self._add([said], {}, scope)
            return {}
        if plain[0].endswith(".jsonl"):
            turns = [json.loads(line)["message"] for line in text.splitlines()]
        else:
            turns = json.loads(text)["messages"]
        self._talks.append(turns)
        self._log.append({"op": "import", "reason": None, "actor": {"name": "script"}})
        return {}

    def _extract(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        for turn in (turn for talk in self._talks for turn in talk if turn["role"] == "user"):
            said = str(turn["content"]).removeprefix("FACT: ")
            # Only what is there and not hidden is taken for a duplicate, so what was forgotten is simply new.
            if not any(row["text"] == said and not row["deleted"] for row in self._rows):
                self._add([said], {}, scope)
        return {}

    def _add(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        row = {"id": f"{len(self._rows):016x}", "text": plain[0], "scope": scope, "deleted": False}
        self._rows.append(row)
        return row

    def _forget(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        for row in self._rows:
            if row["id"] == plain[0]:
                row["deleted"] = True
        return {}

    def _show(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        every = "--all-states" in named
        return [row for row in self._rows if row["scope"] == scope and (every or not row["deleted"])]

    def _recall(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        rows = self._show([], {}, scope)
        # What was made of other rows is not searched, so that nobody asks what became of it.
        found = [row for row in rows if any(word in row["text"] for word in plain[0].split())]
        return [row for row in found if not row["text"].startswith("summary:")]

    def _context(self, plain: list[str], named: dict[str, str], scope: str) -> Any:
        # The index was built when the rows came in, and nobody took anything out since.
        return {"text": "\n".join(row["text"] for row in self._rows if row["scope"] == scope)}
