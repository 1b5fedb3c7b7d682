"""The real writer as a machine that traces are played on: a file of its own, a logical clock, and its raw rows."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memcli.errors import Refused
from memcli.facts import Actor, Finding, PolicyRule
from memcli.keys import normalise
from memcli.store.check import check
from memcli.store.scratch import Trial, scratch
from memcli.terms import ActionState, ActorKind, Channel, Isolation, Profile, SourceKind, State, Tier
from memcli.text import unpack
from memcli.transactions.cases import claim, micros
from memcli.transactions.replay import PERSON, REFUSALS
from tests.model_transactions import SCOPE, tools

FOREVER = float("inf")
TRUSTED = ("agent", "sor", "agentA", "agentB", "tool", "lead", "x", "y")
"""Sources whose claims of authority count as they stand."""

ARGUMENTS = "blake2b:00"
LONGEST_LEASE = 1_000_000
"""Without end in a trace is so long in the file, which knows no lease without an end."""

_ENDS = {"done": "act_done", "failed": "act_failed", "unknown": "act_unknown"}
_MOMENT_S = 0.001
"""A lease of ten is over when ten have ticked by, although events lie microseconds apart in the file."""

MOVES = (
    "select a.seq, a.target, a.from_state, a.to_state, a.op from audit a join facts f on f.name = a.target"
    " where a.to_state is not null and a.to_state is not a.from_state and a.op <> 'refuse' order by a.seq"
)
COLUMNS = (
    "id", "subject", "attribute", "value", "source", "source_kind", "authority", "owner", "visibility", "valid_from",
    "valid_to", "kind", "state",
)  # fmt: skip
RECORDS = (
    "select f.id, f.name, f.subject, f.attribute, v.value, s.session, s.kind, v.authority, f.owner, f.visibility,"
    " w.valid_from, w.valid_to, f.kind, v.state from facts f"
    " join versions v on v.fact = f.id and v.retired_at is null"
    " join versions w on w.fact = f.id and w.version = v.version and w.revision = 1"
    " join origins o on o.fact = f.id join sources s on s.id = o.source order by f.id"
)
"""Records as they were staged: what supersedes a fact later cuts its validity short, and that is no part of it."""


class Engine:
    """The transactions of a memory file, under the names that a trace gives to facts, transactions and actions."""

    def __init__(self, trial: Trial, clock: list[float]) -> None:
        self.store = trial.store()
        self.trial = trial
        self.clock = clock
        self.facts: dict[str, str] = {}
        self.called: dict[str, str] = {}
        self.transactions: dict[str, str] = {}
        self.actions: dict[str, str] = {}
        self.agents: dict[str, str] = {}

    def actor(self, tx: str) -> Actor:
        return Actor(name=self.agents.get(tx, "agent"), kind=ActorKind.SCRIPT, channel=Channel.API)

    def keep(self, name: str, fact: str) -> None:
        self.facts[name], self.called[fact] = fact, name

    # Steps

    def seed(self, record_id: str, fact: Mapping[str, Any], state: str = "accepted") -> None:
        told = claim({"fact": finite(fact)}, "agent", self.facts)
        self.keep(record_id, self.trial.plant(told, State(state)).id)

    def begin(
        self,
        tx: str,
        *,
        tier: str = "medium",
        agent: str = "agent",
        isolation: str | None = None,
        lease: float = FOREVER,
    ) -> None:
        self.agents[tx] = agent
        level = None if isolation is None else Isolation(isolation)
        with self.store.write(self.actor(tx)) as write:
            begun = write.begin(agent, Tier(tier), level, lease_s=min(lease, LONGEST_LEASE) - _MOMENT_S)
        self.transactions[tx] = begun.id

    def stage(
        self, tx: str, record_id: str, fact: Mapping[str, Any], supersedes: list[str] | None = None
    ) -> dict[str, Any] | None:
        if record_id in self.facts or record_id in fact.get("derived_from", ()):
            return self.refused_or(tx, "X_CYCLE")
        told = claim({"fact": finite(fact)}, self.agents[tx], self.facts)
        human = told.source_kind is SourceKind.HUMAN
        rivals = [self.facts[name] for name in (supersedes or ()) if name in self.facts] if human else []
        try:
            with self.store.write(PERSON if human else self.actor(tx)) as write:
                self.keep(record_id, write.stage(self.transactions[tx], told, rivals).id)
        except Refused as problem:
            return {"refused": REFUSALS[problem.code]}
        return None

    def refused_or(self, tx: str, code: str) -> dict[str, Any]:
        """Return why a step that names its own record is refused: the closed transaction comes first."""
        try:
            with self.store.write(self.actor(tx)) as write:
                write.living(self.transactions[tx])
        except Refused:
            return {"refused": "X_CLOSED"}
        return {"refused": code}

    def read(self, tx: str, subject: str, attribute: str) -> Any:
        try:
            with self.store.write(self.actor(tx)) as write:
                found = write.read(self.transactions[tx], subject, attribute)
        except Refused as problem:
            return {"refused": REFUSALS[problem.code]}
        return list({normalise(str(fact.value)): fact.value for fact in reversed(found)}.values())

    def check(self, tx: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for item in self.store.checks(self.transactions[tx]):
            found.setdefault(self.called[item.fact], str(item.code))
        return found

    def commit(self, tx: str, mode: str = "atomic") -> dict[str, Any]:
        refused: dict[str, Any] = {}
        try:
            with self.store.write(self.actor(tx)) as write:
                write.commit(self.transactions[tx], partial=mode == "partial")
        except Refused as problem:
            refused = {"refused": REFUSALS[problem.code]}
        ended = self.store.transaction(self.transactions[tx])
        return {"status": str(ended.status), "verdicts": self.verdicts(ended.verdicts), **refused}

    def verdicts(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the verdicts of checks; what an abort or a lease left behind is no verdict."""
        return {self.called[fact]: str(code) for fact, code in given.items() if not code.startswith("X_")}

    def abort(self, tx: str) -> Any:
        return self.changed(self.actor(tx), "abort", self.transactions[tx])

    def revoke(self, record_id: str) -> Any:
        return self.changed(PERSON, "revoke", self.store.get(self.facts[record_id]))

    def tombstone(self, record_id: str) -> Any:
        with self.store.write(PERSON, "said by a trace") as write:
            write.tombstone(write.plan_facts([self.store.get(self.facts[record_id])], near=False))

    def changed(self, actor: Actor, method: str, *given: Any) -> Any:
        """Call one method of a writer; a refusal is no change."""
        try:
            with self.store.write(actor, "said by a trace") as write:
                return getattr(write, method)(*given)
        except Refused as problem:
            return {"refused": problem.code}

    def gate(
        self, tx: str, tool: str, *, premises: list[str] | None = None, action: str | None = None, effect: str = "done"
    ) -> dict[str, Any]:
        ids = [self.facts[name] for name in premises or ()]
        try:
            with self.store.write(self.actor(tx)) as write:
                answer = write.gate(self.transactions[tx], tool, ARGUMENTS, ids, Profile.STRICT)
        except Refused as problem:
            return {"allow": False, "reasons": [REFUSALS[problem.code]]}
        if answer.receipt is not None and action is not None:
            with self.store.write(self.actor(tx)) as write:
                begin = write.act_plan if effect == "planned" else write.act_begin
                made = begin(answer.receipt.id, ARGUMENTS)
                if effect in _ENDS:
                    getattr(write, _ENDS[effect])(made.id)
            self.actions[action] = made.id
        return {"allow": answer.allow, "reasons": [self.reason(reason) for reason in answer.reasons]}

    def reason(self, reason: str) -> str:
        code, colon, ids = reason.partition(":")
        return code + colon + ",".join(sorted(self.called[name] for name in ids.split(","))) if colon else code

    def finish(self, action: str, effect: str) -> Any:
        """Say how a call ended; one that was only planned begins first."""
        known = self.store.action(self.actions[action])
        if known.state is ActionState.PLANNED:
            begun = self.changed(PERSON, "act_begin", known.receipt, ARGUMENTS)
            if isinstance(begun, dict):
                return begun
        if known.state is ActionState.UNKNOWN:
            return self.changed(PERSON, "act_reconcile", known.id, ActionState(effect))
        return self.changed(PERSON, _ENDS[effect], known.id)

    def tick(self, by: float) -> Any:
        self.clock[0] += by

    def recover(self) -> Any:
        with self.store.write(PERSON) as write:
            return [tx.id for tx in write.recover()]

    # Rows

    def broken(self) -> list[Finding]:
        """Return what `mem check` finds."""
        return check(self.store)

    def rows(self) -> dict[str, Any]:
        """Return the raw rows of the file, read past everything that knows what they mean."""
        return {
            "records": list(self.records()),
            "transactions": list(self.closed()),
            "actions": list(self.acted()),
            "gates": list(self.gates()),
            "repairs": [
                {"root": self.called[root], "record": self.called[fact] if fact else self.action_called(action)}
                for root, fact, action in self.ask(
                    "select f.name, g.name, r.action from repairs r join facts f on f.id = r.root"
                    " left join facts g on g.id = r.fact order by r.id"
                )
            ],
            "audit": [
                {"seq": seq, "target": self.called[name], "from": before, "to": after, "by": op}
                for seq, name, before, after, op in self.ask(MOVES)
                if name in self.called
            ],
            "now": self.clock[0],
            # A refusal and one more tombstone for the same value are written down, and change nothing else.
            "seq": self.ask("select max(seq) from audit where op not in ('refuse', 'tombstone')")[0][0],
        }

    def ask(self, sql: str, *bound: Any) -> list[Any]:
        return self.store.conn.execute(sql, bound).fetchall()

    def records(self) -> Iterator[dict[str, Any]]:
        staged = {
            name: (tx, seq)
            for tx, name, seq in self.ask(
                "select s.tx, f.name, (select min(seq) from audit where op = 'stage' and target = f.name)"
                " from staged s join facts f on f.id = s.fact"
            )
        }
        codes = dict(self.ask("select f.name, d.code from verdicts d join facts f on f.id = d.fact"))
        names = {number: tx for tx, number in self.transactions.items()}
        for number, *cells in self.ask(RECORDS):
            row = dict(zip(COLUMNS, cells, strict=True))
            tx, seq = staged.get(row["id"], (None, None))
            code = codes.get(row["id"])
            start, end = row["valid_from"], row["valid_to"]
            yield {
                **row,
                **{name: unpack(row[name]) for name in ("subject", "attribute", "source", "owner")},
                "id": self.called[row["id"]],
                "tx": names.get(f"tx{tx}"),
                "scope": SCOPE,
                "value": json.loads(row["value"]),
                "valid_from": 0 if start is None else start / micros(1),
                "valid_to": FOREVER if end is None else end / micros(1),
                "code": None if code == "PASS" else code,
                "staged_seq": seq,
                **self.around(number),
            }

    def around(self, number: int) -> dict[str, Any]:
        """Return what other tables say of a record."""
        said = "select m.content from provenance p join messages m on m.id = p.message where p.fact = ?"
        above = "select f.name from derivations d join facts f on f.id = d.parent where d.child = ?"
        rivals = "select f.name from named n join facts f on f.id = n.rival where n.fact = ?"
        return {
            "evidence": [unpack(content) for (content,) in self.ask(said, number)],
            "derived_from": [self.called[name] for (name,) in self.ask(above, number)],
            "supersedes": [self.called[name] for (name,) in self.ask(rivals, number)],
        }

    def closed(self) -> Iterator[dict[str, Any]]:
        for tx, number in self.transactions.items():
            ((agent, isolation, snapshot, until, status),) = self.ask(
                "select agent, isolation, snapshot, lease_until, status from transactions where id = ?", number[2:]
            )
            staged = self.ask("select f.name from staged s join facts f on f.id = s.fact where s.tx = ?", number[2:])
            yield {
                "id": tx,
                "agent": unpack(agent),
                "isolation": isolation,
                "scope": SCOPE,
                "snapshot": snapshot,
                "until": until / micros(1),
                "status": status,
                "staged": [self.called[name] for (name,) in staged],
            }

    def acted(self) -> Iterator[dict[str, Any]]:
        for action, number in self.actions.items():
            ((receipt, state, kind, debt),) = self.ask(
                "select r.id, a.state, r.kind, e.kind from actions a join receipts r on r.id = a.receipt"
                " left join effects e on e.action = a.id where a.id = ?",
                number[1:],
            )
            yield {
                "id": action,
                "reversible": kind == "reversible",
                "premises": [self.called[name] for (name,) in self.ask(
                    "select f.name from premises p join facts f on f.id = p.fact where p.receipt = ?", receipt
                )],
                "effect": state,
                "debt": debt,
            }  # fmt: skip

    def action_called(self, number: int) -> str:
        return next(action for action, known in self.actions.items() if known == f"a{number}")

    def gates(self) -> Iterator[dict[str, Any]]:
        names = {number: tx for tx, number in self.transactions.items()}
        left = {f"r{number}": (f"tx{tx}", kind, seq) for number, tx, kind, seq in self.ask(
            "select id, tx, kind, seq from receipts"
        )}  # fmt: skip
        for seq, target in self.ask("select seq, target from audit where op = 'gate' order by seq"):
            tx, kind, at = left.get(target, (target, "irreversible", seq - 1))
            yield {"tx": names[tx], "reversible": kind == "reversible", "allow": target in left, "seq": at}


def finite(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact without the end that is none."""
    return {name: value for name, value in fact.items() if value != FOREVER}


@cache
def prepared() -> bytes:
    """Return a file in which every agent may begin every transaction and the tools of the cases are known."""
    rules = [PolicyRule(kind="agent", name="*", value="external")]
    rules += [PolicyRule(kind="tool", name=name, value=value) for name, value in tools().items()]
    rules += [PolicyRule(kind="source", name=name, value="1") for name in TRUSTED]
    with scratch(PERSON, lambda: 0) as trial:
        with trial.store().write(PERSON) as write:
            for rule in rules:
                write.set_policy(rule)
        path = Path(trial.store().path)
        trial.store().conn.execute("pragma wal_checkpoint(truncate)")
        return path.read_bytes()


@contextmanager
def engine() -> Iterator[Engine]:
    """Give a machine on a new file, which is gone at the end."""
    clock: list[float] = [0]
    with TemporaryDirectory(prefix="mem-") as folder, ExitStack() as opened:
        path = Path(folder) / "memory.db"
        path.write_bytes(prepared())
        yield Engine(Trial(path, PERSON, lambda: micros(clock[0]), opened), clock)
