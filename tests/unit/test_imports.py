"""Who may import whom, read off the syntax trees of the product.

The rules are the two tables below. A module that is in neither has no place yet: give it one, lowest first.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WORDS = frozenset({"terms", "errors", "record", "digest", "facts", "tx"})
VALUES = WORDS | {"clock", "keys", "text", "wire"}
CORE = frozenset({"review", "recall", "extract", "condense", "evals", "transactions", "budget", "exchange"})
EVERYTHING = VALUES | CORE | {
    "schema", "store", "tokens", "render", "integrations", "command", "changes", "bring", "budget_input", "wire_budget",
    "oracle", "tour", "cli", "wire_eval", "wire_tx", "diff", "restore", "api",
}  # fmt: skip

MAY_IMPORT: dict[str, frozenset[str]] = {
    "terms": frozenset(),
    "record": frozenset(),
    "digest": frozenset(),
    "errors": frozenset({"terms"}),
    "facts": frozenset({"terms", "errors", "record"}),
    "tx": frozenset({"terms", "errors", "record", "facts"}),
    "clock": WORDS | {"text"},
    "text": WORDS,
    "keys": WORDS | {"text"},
    "wire": WORDS | {"clock", "text"},
    "tokens": WORDS,
    "schema": VALUES,
    # The checks and the gate are pure; the writer asks them inside its lock, about rows that only it can see.
    "store": VALUES | {"schema", "tokens", "transactions"},
    "command": VALUES,
    "oracle": VALUES | {"command"},
    "changes": VALUES,
    "bring": VALUES | {"exchange", "extract"},
    "diff": VALUES,
    "restore": VALUES | {"exchange"},
    "budget": VALUES - {"clock"},
    "budget_input": VALUES | {"exchange", "budget"},
    "wire_budget": VALUES | {"budget"},
    "exchange": VALUES,
    "recall": VALUES,
    "review": VALUES | {"changes"},
    "extract": VALUES | {"command"},
    "condense": VALUES | {"command"},
    "transactions": VALUES | {"command"},
    "evals": VALUES | {"recall", "command", "bring", "extract"},
    "wire_eval": VALUES | {"evals"},
    "wire_tx": VALUES | {"transactions"},
    "api": VALUES | {"store", "transactions", "wire_tx"},
    "render": VALUES | CORE | {"diff"},
    "integrations": EVERYTHING - {"cli", "render"},
    "cli": EVERYTHING,
    "__main__": frozenset({"cli"}),
    "__init__": frozenset(),
}
"""What each part may import while it runs. `__init__` is memcli itself, of which every part may ask the version."""

MAY_NAME = dict.fromkeys(
    [*(CORE - {"budget"}), "render", "changes", "bring", "oracle", "restore"], frozenset({"store"})
) | {"__init__": VALUES | {"api", "store"}}
"""What a part may import under `if TYPE_CHECKING` besides: it is given a store and never makes one."""

FOREIGN_DATABASES = tuple(f"memcli.exchange.{part}" for part in ("databases", "shapes", "memories.*", "transcripts.*"))

ONLY_IN: dict[str, tuple[str, ...]] = {
    "typer": ("memcli.cli.*",),
    "rich": ("memcli.render*", "memcli.cli"),
    "sqlite3": ("memcli.schema", "memcli.store.*", *FOREIGN_DATABASES),
    "sqlite_utils": ("memcli.schema", "memcli.store.*", *FOREIGN_DATABASES),
    "tiktoken": ("memcli.tokens",),
    "detect_secrets": ("memcli.exchange.secrets",),
    "llm": ("memcli.integrations.llm_extractor",),
    "click": (),
    "pydantic": (),
}
"""The modules that may import a library, also for types; `x.*` is x and all below it, `x*` all that begin so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One name that a module asks for, in full, and whether it does so for types only."""

    target: str
    line: int
    types_only: bool


def imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[Import]:
    """Yield every import of a module, relative ones resolved, those by `import_module("…")` included."""
    package = module if is_package else module.rpartition(".")[0]
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, types_only = waiting.pop()
        for target in targets(node, package):
            yield Import(target=target, line=getattr(node, "lineno", 0), types_only=types_only)
        if isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            waiting += [(child, True) for child in node.body]
            waiting += [(child, types_only) for child in node.orelse]
        else:
            waiting += [(child, types_only) for child in ast.iter_child_nodes(node)]


def targets(node: ast.AST, package: str) -> list[str]:
    """Return what one node imports, in full; `from a import b` asks for `a.b`, be that a module or a name in one."""
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=name, names=names, level=level):
            above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*above, *([name] if name else [])])
            return [f"{base}.{alias.name}" for alias in names]
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
            called = ast.unparse(func).split(".")[-1]
            return [name] if called in {"import_module", "__import__"} else []
    return []


def part(module: str) -> str:
    """Return the part of the product that a dotted name belongs to; all of render*.py is one part."""
    pieces = module.split(".")
    if len(pieces) == 1 or (pieces[1].startswith("__") and pieces[1] != "__main__"):
        return "__init__"
    return "render" if pieces[1].startswith("render") else pieces[1]


def matches(module: str, pattern: str) -> bool:
    """Return whether a pattern of `ONLY_IN` covers a module."""
    if pattern.endswith(".*"):
        return module == pattern[:-2] or module.startswith(pattern[:-1])
    return module.startswith(pattern[:-1]) if pattern.endswith("*") else module == pattern


def broken(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return one sentence for each rule that a module breaks."""
    own = part(module)
    if own not in MAY_IMPORT:
        return [f"{module}: has no place in MAY_IMPORT"]
    found = []
    for seen in imports(ast.parse(source), module, is_package=is_package):
        library = seen.target.split(".")[0]
        if library == "memcli":
            other = part(seen.target)
            allowed = MAY_IMPORT[own] | {own, "__init__"} | (MAY_NAME.get(own, set()) if seen.types_only else set())
            if other not in allowed:
                found.append(f"{module}:{seen.line}: {own} may not import {other}")
        elif library in ONLY_IN and not any(matches(module, pattern) for pattern in ONLY_IN[library]):
            found.append(f"{module}:{seen.line}: {library} may not be imported here")
    return list(dict.fromkeys(found))


def modules() -> list[tuple[Path, str, bool]]:
    """Return each source file of the product with its dotted name, and whether it is a package's `__init__`."""
    found = []
    for path in sorted((ROOT / "memcli").rglob("*.py")):
        pieces = path.relative_to(ROOT).with_suffix("").parts
        is_package = pieces[-1] == "__init__"
        found.append((path, ".".join(pieces[:-1] if is_package else pieces), is_package))
    return found


@pytest.mark.no_cover
def test_every_module_imports_only_what_its_place_allows():
    checked = modules()

    assert {"memcli", "memcli.terms", "memcli.facts"} <= {name for _, name, _ in checked}
    assert [
        sentence
        for path, name, is_package in checked
        for sentence in broken(path.read_text(encoding="utf-8"), name, is_package=is_package)
    ] == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("memcli.terms", "from memcli.errors import MemError"),
        ("memcli.errors", "from memcli.facts import Fact"),
        ("memcli.facts", "import memcli.wire"),
        ("memcli.wire", "from memcli import store"),
        ("memcli.schema", "from memcli.store import Store"),
        ("memcli.store.writer", "from memcli.recall import rank"),
        ("memcli.store.writer", "from ..review import Decision"),
        ("memcli.budget.simulate", "from memcli.tokens import count"),
        ("memcli.budget.simulate", "from memcli.store import Store"),
        ("memcli.budget.simulate", "from memcli.clock import now"),
        ("memcli.budget.simulate", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import memcli.store"),
        ("memcli.budget.simulate", "def late():\n    from memcli import tokens"),
        ("memcli.review", "from memcli.store import Store"),
        (
            "memcli.recall",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    x = 1\nelse:\n    import memcli.store",
        ),
        ("memcli.extract", "if not TYPE_CHECKING:\n    import memcli.store"),
        ("memcli.transactions.gate", "from memcli.store import Store"),
        ("memcli.condense", "try:\n    from memcli.store import Store\nexcept ImportError:\n    pass"),
        ("memcli.render", "from memcli.cli import app"),
        ("memcli.integrations.mcp_server", "from memcli.cli import app"),
        ("memcli.store", "from memcli.render import human"),
        ("memcli.newcomer", "import json"),
        ("memcli.review", "import typer"),
        ("memcli.render", "from typer import echo"),
        ("memcli.cli.show", "from rich.table import Table"),
        ("memcli.store.reader", "import rich"),
        ("memcli.cli.show", "import sqlite3"),
        ("memcli.recall", "from sqlite_utils import Database"),
        ("memcli.exchange.detect", "import sqlite3"),
        ("memcli.transactions.checks", "if TYPE_CHECKING:\n    import sqlite3"),
        ("memcli.budget.messages", "import tiktoken"),
        ("memcli.cli.budget", "import importlib\nimportlib.import_module('tiktoken')"),
        ("memcli.cli.show", "__import__('click')"),
        ("memcli.cli", "import click.testing"),
        ("memcli.wire", "from pydantic import BaseModel"),
    ],
)
def test_a_module_that_breaks_a_rule_is_named(module, source):
    found = broken(source, module)

    assert len(found) == 1
    assert found[0].startswith(module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("memcli.facts", "from memcli.terms import State"),
        ("memcli.store.writer", "import sqlite3\nfrom memcli.schema import create\nfrom memcli.store.rows import row"),
        ("memcli.store.writer", "from .rows import row\nfrom ..keys import key"),
        ("memcli.review", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from memcli.store import Store"),
        ("memcli.transactions.gate", "import typing\nif typing.TYPE_CHECKING:\n    from memcli.store import Store"),
        ("memcli.exchange.memories.mem0", "import sqlite3"),
        ("memcli.render_charts", "from rich.text import Text\nfrom memcli.render import visible"),
        ("memcli.cli.show", "import typer\nfrom memcli import __version__, tokens\nfrom memcli.store import Store"),
        ("memcli.tokens", "def encoding():\n    import tiktoken"),
        ("memcli.__main__", "from memcli.cli import main"),
        ("memcli.keys", "import clickhouse, richer, typers"),
    ],
)
def test_a_module_that_keeps_the_rules_is_not_named(module, source):
    assert broken(source, module) == []


def test_rich_is_open_to_the_front_of_the_command_line_and_closed_to_its_commands():
    source = "from rich.console import Console"

    assert broken(source, "memcli.cli", is_package=True) == []
    assert len(broken(source, "memcli.cli.review")) == 1


def test_a_relative_import_of_a_package_starts_at_the_package_itself():
    source = "from .rows import row\nfrom ..recall import rank"

    assert broken(source, "memcli.store", is_package=True) == ["memcli.store:2: store may not import recall"]
