"""Memory files taken out and back for tests."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memcli.digest import blake2b
from memcli.exchange.secrets import looking
from memcli.exchange.write import Export
from memcli.facts import Actor
from memcli.restore import Restored, restore_file
from memcli.store import Store, open_store
from memcli.store.copy import Copy
from memcli.terms import State
from tests.files import ANNA, Clock, fresh


def exported(
    path: Path,
    *,
    name: str = "mem",
    scope: str | None = None,
    all_scopes: bool = False,
    states: frozenset[State] | None = None,
    now: Clock | None = None,
) -> bytes:
    """Return what an export of a file holds."""
    with open_store(path, scope=scope, now=now or Clock()) as store:
        return taken_out(store, name=name, all_scopes=all_scopes, states=states)


def taken_out(
    store: Store, *, name: str = "mem", all_scopes: bool = False, states: frozenset[State] | None = None
) -> bytes:
    """Return what an export of an open file holds."""
    copy = Copy(store, all_scopes=all_scopes)
    with copy.snapshot(), looking() as secrets:
        return b"".join(Export(copy, name, states=states, secrets=secrets).chunks())


def records(data: bytes, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the records of an export, of one type or all."""
    found = [json.loads(line) for line in data.splitlines()]
    return [record for record in found if kind in {None, record["type"]}]


def restored(
    data: bytes, path: Path, *, actor: Actor = ANNA, scope: str | None = None, now: Clock | None = None
) -> Restored:
    """Restore an export into a new file."""
    source = path.with_name(f"{path.name}.jsonl")
    source.write_bytes(data)
    clock = now or Clock()
    if not path.exists():
        fresh(path, scope=scope or "default", now=clock)
    with open_store(path, scope=scope, now=clock) as store:
        return restore_file(store, actor, "a new machine", str(source))


def edited(data: bytes, change: Callable[[list[dict[str, Any]]], None]) -> bytes:
    """Return an export whose records somebody changed, with an end that fits, so that only sense can refuse it."""
    found = records(data)[:-1]
    change(found)
    return resealed(found)


def resealed(found: Sequence[dict[str, Any]]) -> bytes:
    """Return records as an export with an end that fits."""
    body = b"".join(json.dumps(record).encode() + b"\n" for record in found)
    digest = blake2b(body, digest_size=32).hexdigest()
    end = {"type": "end", "records": len(found), "digest": f"blake2b:{digest}"}
    return body + json.dumps(end).encode() + b"\n"
