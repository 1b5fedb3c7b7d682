"""Transactions for tests: agents that may begin them, facts that are staged, and actions that rest on them."""

import sqlite3
from contextlib import closing
from typing import Any

from memcli import schema
from memcli.facts import Claim, Fact, PolicyRule
from memcli.store import Store, rows
from memcli.store.seals import seal
from memcli.terms import ActorKind, Channel, SourceKind, Tier
from memcli.tx import GateAnswer, Receipt, Transaction, Verdict
from tests.files import ANNA, API, Actor

AGENT_B = Actor(name="b", kind=ActorKind.SCRIPT, channel=Channel.API)
ARGS = "blake2b:00ff"


def allow(store: Store, *, tier: Tier = Tier.EXTERNAL, **tools: str) -> None:
    """Let every agent begin transactions up to a tier, and say what tools do."""
    with store.write(ANNA, "for tests") as write:
        write.set_policy(PolicyRule(kind="agent", name="*", value=str(tier)))
        for name, value in tools.items():
            write.set_policy(PolicyRule(kind="tool", name=name, value=value))


def trust(store: Store, **sources: float) -> None:
    """Say how much the word of named sources counts."""
    with store.write(ANNA, "for tests") as write:
        for name, value in sources.items():
            write.set_policy(PolicyRule(kind="source", name=name, value=str(value)))


def begin(store: Store, *, actor: Actor = API, **told: Any) -> Transaction:
    """Begin a transaction."""
    with store.write(actor) as write:
        return write.begin(**told)


def claim(value: Any, *, subject: str = "order7", attribute: str = "refund due", **told: Any) -> Claim:
    """Return a claim that passes every check of an empty file, with the source `agentA` behind it."""
    source = told.pop("source", "agentA")
    said = {
        "source": source,
        "source_kind": SourceKind.AGENT,
        "references": (f"src:{source}",),
        "confidence": 0.8,
        **told,
    }
    return Claim(text=f"{subject} {attribute}: {value}", subject=subject, attribute=attribute, value=value, **said)


def stage(
    store: Store, tx: Transaction, value: Any, *, actor: Actor = API, supersedes: Any = None, **told: Any
) -> Fact:
    """Stage a claim."""
    with store.write(actor) as write:
        return write.stage(tx.id, claim(value, **told), supersedes)


def commit(store: Store, tx: Transaction, *, actor: Actor = API, **told: Any) -> Verdict:
    """Commit a transaction."""
    with store.write(actor) as write:
        return write.commit(tx.id, **told)


def believed(store: Store, value: Any, **told: Any) -> Fact:
    """Commit one fact by itself and return it."""
    tx = begin(store)
    fact = stage(store, tx, value, **told)
    commit(store, tx)
    return store.get(fact.id)


def gate(store: Store, tx: Transaction, tool: str, *premises: Fact, actor: Actor = API, **told: Any) -> GateAnswer:
    """Ask the gate."""
    with store.write(actor) as write:
        return write.gate(tx.id, tool, ARGS, [fact.id for fact in premises], **told)


def leave(store: Store, tool: str, *premises: Fact) -> Receipt:
    """Return the receipt of a new transaction for a call on these premises."""
    answer = gate(store, begin(store), tool, *premises)
    assert answer.receipt is not None, answer.reasons
    return answer.receipt


def done(store: Store, tool: str, *premises: Fact) -> str:
    """Return the id of an action that was done on these premises."""
    receipt = leave(store, tool, *premises)
    with store.write(API) as write:
        return write.act_done(write.act_begin(receipt.id, ARGS).id).id


def revoke(store: Store, fact: Fact, *, actor: Actor = ANNA) -> Fact:
    """Withdraw a fact and what was built on it."""
    with store.write(actor, "it was wrong") as write:
        return write.revoke(store.get(fact.id))


def fill(store: Store) -> None:
    """Give every table of transactions rows, in a file of any admission but `checked`."""
    allow(store, hold_seat="reversible")
    with store.write(ANNA, "for tests") as write:
        old = write.add(claim("red", subject="desk1", attribute="colour")).fact
    tx = begin(store, actor=ANNA)
    with store.write(ANNA) as write:
        write.read(tx.id, "desk1", "colour")
    stage(store, tx, "blue", subject="desk1", attribute="colour", actor=ANNA, supersedes=old.id, source="agentB")
    commit(store, tx, actor=ANNA)
    root = believed_by(store, ANNA, "oak", subject="desk1", attribute="wood")
    with store.write(ANNA, "for tests") as write:
        write.add(claim("brown", subject="desk1", attribute="look", derived_from=(root.id,)))
    done(store, "wire", root)
    revoke(store, root)


def believed_by(store: Store, actor: Actor, value: Any, **told: Any) -> Fact:
    """Commit one fact by itself as somebody and return it."""
    tx = begin(store, actor=actor)
    fact = stage(store, tx, value, actor=actor, **told)
    commit(store, tx, actor=actor)
    return store.get(fact.id)


TRANSACTIONS = (
    "repairs", "effects", "actions", "premises", "receipts", "reads", "verdicts", "named", "staged", "transactions",
    "origins",
)  # fmt: skip


def step_back(conn: sqlite3.Connection) -> None:
    """Turn a file into one from before transactions, inside a transaction; its rules about sources stay.

    It has no roll then, and evidence is sealed without the place of its message.
    """
    key = conn.execute("select secret from keys where purpose = 'audit'").fetchone()[0]
    columns = ", ".join(rows.PROVENANCE_FIELDS)
    for number, *fields in conn.execute(f"select id, {columns} from provenance").fetchall():
        conn.execute("update provenance set seal = ? where id = ?", (seal(key, "provenance", fields), number))
    (kept,) = conn.execute("select sql from sqlite_schema where name = 'settings_kept'").fetchone()
    conn.execute("drop trigger settings_kept")
    conn.execute("delete from settings where name = 'roll'")
    conn.execute(kept)
    for table in TRANSACTIONS:
        conn.execute(f"drop table {table}")
    rules = conn.execute("select kind, name, value, seal from policy").fetchall()
    conn.execute("drop table policy")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as older:
        schema.upgrade(older, to=2)
        for (sql,) in older.execute(
            "select sql from sqlite_schema where tbl_name = 'policy' and sql is not null order by type"
        ).fetchall():
            conn.execute(sql)
    conn.executemany("insert into policy values (?, ?, ?, ?)", rules)
    conn.execute("delete from _sqlite_migrations where name = 'm003_transactions'")
    conn.execute("pragma user_version = 2")
