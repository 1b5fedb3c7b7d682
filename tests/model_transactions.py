"""A model of the transaction protocol in plain Python, written from its text alone and sharing no code with `memcli`.

It keeps lists in memory, has a logical clock, and does each thing in the slowest and plainest way. `run` plays a case
file's case; `Model.rows` gives the raw rows that invariants are recomputed from. Any rule can be switched off by its
name in `RULES`, to see which cases notice, and four whole systems of another kind stand in `BASELINES`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.transaction_values import normal, shingles

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transactions"
READABLE = ("accepted", "verified")
DEAD = ("revoked", "rejected")
FINAL = (*DEAD, "superseded")
VIEWS = ("summary", "profile", "index", "shared_copy")
WIDTH = {"private": 0, "shared": 1, "public": 2}
ISOLATION = {"low": "accepted", "medium": "accepted", "high": "stable", "external": "verified"}
SCOPE = "default"
FOREVER = float("inf")


@dataclass(slots=True, kw_only=True)
class Record:
    """One fact, with the moves of its state and the first verdict that was found about it."""

    id: str
    tx: str | None
    scope: str
    subject: str
    attribute: str
    value: Any
    source: str = "agent"
    source_kind: str = "agent"
    authority: float = 0.5
    confidence: float = 0.8
    owner: str = "agent"
    visibility: str = "shared"
    valid_from: float = 0
    valid_to: float = FOREVER
    evidence: list[str] = field(default_factory=list)
    derived_from: list[str] = field(default_factory=list)
    kind: str = "belief"
    supersedes: list[str] = field(default_factory=list)
    state: str = ""
    code: str | None = None
    staged_seq: int | None = None
    settled_seq: int | None = None
    accepted_seq: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The slot, in its scope."""
        return (self.scope, self.subject, self.attribute)

    @property
    def said(self) -> str:
        """The value as it is compared."""
        return normal(self.value)


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction: what it sees, until when it may act, what it read and staged."""

    id: str
    tier: str
    agent: str
    isolation: str
    scope: str
    snapshot: int
    until: float
    status: str = "open"
    read: list[str] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Action:
    """One call of a tool: how far it came, and what it owes (`leak`, `compensation`) since a premise died."""

    id: str
    gate: int
    tx: str
    tool: str
    reversible: bool
    premises: list[str]
    effect: str
    debt: str | None = None


@dataclass(slots=True, kw_only=True)
class Gate:
    """One answer of the gate; the number is the receipt, good for one call."""

    number: int
    tx: str
    tool: str
    reversible: bool
    premises: list[str]
    allow: bool
    reasons: list[str]
    seq: int
    profile: str
    used: bool = False


def overlap(one: Record, other: Record) -> bool:
    """Say whether two records are valid at one instant."""
    return max(one.valid_from, other.valid_from) < min(one.valid_to, other.valid_to)


class Model:
    """The whole protocol. Every method is one step of a case file and returns what `expect` of that step speaks of."""

    def __init__(
        self,
        tools: Mapping[str, str],
        *,
        off: Iterable[str] = (),
        profile: str = "strict",
        direct: bool = False,
        deny: bool = False,
    ) -> None:
        self.tools = tools
        self.off = frozenset(off)
        self.profile = profile
        self.direct = direct
        self.deny = deny
        self.now: float = 0
        self.seq = 0
        self.records: dict[str, Record] = {}
        self.transactions: dict[str, Transaction] = {}
        self.actions: dict[str, Action] = {}
        self.gates: list[Gate] = []
        self.repaired: list[tuple[str, str, str]] = []
        self.stones: list[tuple[tuple[str, str, str], str]] = []
        self.audit: list[tuple[int, str, str | None, str, str]] = []
        self.planned: dict[str, str] = {}
        self.ends: dict[str, float] = {}

    def on(self, rule: str) -> bool:
        """Say whether a rule is in force."""
        return rule not in self.off

    # Small questions

    def move(self, record: Record, to: str, by: str) -> None:
        """Give a record a state and write that down; a final state stays."""
        if record.state == to or record.state in FINAL:
            return
        self.seq += 1
        self.audit.append((self.seq, record.id, record.state or None, to, by))
        record.state = to
        if to != "tentative" and record.settled_seq is None:
            record.settled_seq = self.seq
        if to in READABLE and record.accepted_seq is None:
            record.accepted_seq = self.seq

    def state_at(self, record_id: str, seq: int) -> str | None:
        """Return the state that a record had when the audit was so long; None before it came."""
        moves = [to for at, target, _, to, _ in self.audit if target == record_id and at <= seq]
        return moves[-1] if moves else None

    def ancestors(self, parents: Iterable[str]) -> list[Record]:
        """Return these records and all they were derived from, each once, nearest first."""
        found: dict[str, Record] = {}
        queue = list(parents)
        while queue:
            name = queue.pop(0)
            if name in self.records and name not in found:
                found[name] = self.records[name]
                queue += self.records[name].derived_from
        return list(found.values())

    def above(self, record: Record) -> list[Record]:
        """Return the ancestors of a record, itself not among them."""
        return self.ancestors(record.derived_from)

    def authority(self, record: Record) -> float:
        """Return the effective authority: no more than that of anything it was derived from."""
        deep = self.above(record) if self.on("EFFECTIVE_AUTHORITY") else []
        return min([record.authority, *(one.authority for one in deep)])

    def valid(self, record: Record) -> bool:
        """Say whether a record is valid now."""
        return record.valid_from <= self.now < record.valid_to

    def on_slot(self, record: Record, *states: str) -> list[Record]:
        """Return the other records of the slot that are in one of these states."""
        return [
            other
            for other in self.records.values()
            if other.id != record.id and other.key == record.key and other.state in states
        ]

    def rivals(self, record: Record) -> list[Record]:
        """Return the readable records that say something else of the slot for an instant of the same interval."""
        return [
            other
            for other in self.on_slot(record, *READABLE)
            if other.said != record.said and (overlap(other, record) or not self.on("DISJOINT"))
        ]

    def in_snapshot(self, record: Record, tx: Transaction) -> bool:
        """Say whether a record was settled when the transaction began; at isolation raw, staged is enough."""
        if record.settled_seq is not None and record.settled_seq <= tx.snapshot:
            return True
        return tx.isolation == "raw" and record.staged_seq is not None and record.staged_seq <= tx.snapshot

    def usable(self, tx: Transaction) -> bool:
        """Say whether a transaction may still do something."""
        return tx.status == "open" and self.now < tx.until

    # Steps that write

    def begin(
        self,
        tx: str,
        *,
        tier: str = "medium",
        agent: str = "agent",
        isolation: str | None = None,
        lease: float = FOREVER,
    ) -> None:
        level, until = isolation or ISOLATION[tier], self.now + lease
        self.transactions[tx] = Transaction(
            id=tx, tier=tier, agent=agent, isolation=level, scope=SCOPE, snapshot=self.seq, until=until
        )

    def fact(self, record_id: str, tx: Transaction | None, fact: Mapping[str, Any]) -> Record:
        """Return a record with the defaults of the case files, not yet kept."""
        told = {"scope": tx.scope if tx else SCOPE, "owner": tx.agent if tx else "agent", **fact}
        told = {name: value for name, value in told.items() if not (name == "valid_to" and value is None)}
        told.setdefault("evidence", ["src:" + told.get("source", "agent")])
        return Record(**{**told, "id": record_id, "tx": tx.id if tx else None})

    def seed(self, record_id: str, fact: Mapping[str, Any], state: str = "accepted") -> None:
        record = self.fact(record_id, None, fact)
        self.records[record_id] = record
        self.move(record, state, "seed")

    def stage(
        self, tx: str, record_id: str, fact: Mapping[str, Any], supersedes: str | list[str] | None = None
    ) -> dict[str, Any] | None:
        owner = self.transactions[tx]
        if not self.usable(owner):
            return {"refused": "X_CLOSED"}
        record = self.fact(record_id, owner, fact)
        if record_id in record.derived_from or record_id in self.records:
            return {"refused": "X_CYCLE"}
        if any(parent not in self.records for parent in record.derived_from):
            return {"refused": "X_UNKNOWN_PARENT"}
        if self.on("STAGE_TOMBSTONED") and self.on("C_TOMBSTONED") and (record.key, record.said) in self.stones:
            return {"refused": "C_TOMBSTONED"}
        record.supersedes = [supersedes] if isinstance(supersedes, str) else list(supersedes or [])
        self.records[record_id] = record
        owner.staged.append(record_id)
        self.move(record, "tentative", tx)
        record.staged_seq = self.seq
        if self.direct:
            self.accept(owner, record)
        return None

    def commit(self, tx: str, mode: str = "atomic") -> dict[str, Any]:
        owner = self.transactions[tx]
        if owner.status != "open":
            return {"status": owner.status, "verdicts": owner.verdicts, "refused": "X_CLOSED"}
        if not self.usable(owner):
            self.abort(tx)
            return {"status": "aborted", "verdicts": {}}
        if self.direct:
            owner.verdicts = dict.fromkeys(owner.staged, "PASS")
            owner.status = "committed"
        elif mode == "partial":
            self.commit_each(owner)
        else:
            self.commit_whole(owner)
        return {"status": owner.status, "verdicts": owner.verdicts}

    def commit_whole(self, tx: Transaction) -> None:
        """Settle all or nothing."""
        tx.verdicts = self.check(tx.id)
        marks = {mark_of(verdict) for verdict in tx.verdicts.values()}
        staged = [self.records[name] for name in tx.staged]
        for record in staged:
            verdict = tx.verdicts[record.id]
            record.code = verdict if verdict != "PASS" else None
        if "A" in marks:
            tx.status = "aborted"
            self.withdraw(tx, staged, "COMMIT_ABORT_CASCADES")
        elif "Q" in marks:
            tx.status = "held"
            for record in staged:
                self.hold(tx, record)
        else:
            tx.status = "committed"
            for record in staged:
                self.accept(tx, record)

    def hold(self, tx: Transaction, record: Record) -> None:
        """Hold a record for its own failure or with its transaction."""
        if record.code is None and not self.on("HELD_WITH_TX"):
            self.accept(tx, record)
            return
        record.code = record.code or "HELD_WITH_TX"
        self.move(record, "disputed", tx.id)

    def commit_each(self, tx: Transaction) -> None:
        """Settle each record alone, parents first; committed when anything was accepted or nothing was staged."""
        for name in tx.staged:
            record = self.records[name]
            verdict = self.verdict(tx, record)
            tx.verdicts[name] = verdict
            record.code = verdict if verdict != "PASS" else None
            if verdict == "PASS":
                self.accept(tx, record)
            elif mark_of(verdict) == "Q":
                self.move(record, "disputed", tx.id)
            else:
                self.withdraw(tx, [record], "COMMIT_ABORT_CASCADES")
        marks = [mark_of(verdict) for verdict in tx.verdicts.values()]
        tx.status = "committed" if "" in marks or not marks else "held" if "Q" in marks else "aborted"

    def accept(self, tx: Transaction, record: Record) -> None:
        """Make a record readable, and let it take the place of what said otherwise."""
        for rival in self.rivals(record):
            self.ends |= {rival.id: record.valid_from} if record.valid_from > rival.valid_from else {}
            self.move(rival, "superseded", tx.id)
        self.move(record, "accepted", tx.id)
        if tx.tier == "external" and self.on("EXTERNAL_VERIFIES"):
            self.move(record, "verified", tx.id)

    def withdraw(self, tx: Transaction, records: list[Record], rule: str) -> None:
        """Revoke staged records, then repair what stands on them."""
        for record in records:
            self.move(record, "revoked", tx.id)
        for record in records if self.on(rule) else ():
            self.cascade(record.id)

    def abort(self, tx: str) -> None:
        owner = self.transactions[tx]
        if owner.status == "open":
            owner.status = "aborted"
            self.withdraw(owner, [self.records[name] for name in owner.staged], "ABORT_CASCADES")

    def recover(self) -> list[str]:
        late = [tx for tx in self.transactions.values() if tx.status == "open" and self.now >= tx.until]
        for tx in late:
            self.abort(tx.id)
            for action in self.actions.values():
                if action.tx == tx.id and action.effect == "running" and self.on("RECOVER_UNKNOWN"):
                    action.effect = "unknown"
        return [tx.id for tx in late]

    def tick(self, by: float) -> None:
        self.now += by

    # Checks

    def verdict(self, tx: Transaction, record: Record) -> str:
        """Return the first rule that a record fails, or PASS."""
        return next(iter(self.failing(tx, record)), "PASS")

    def failing(self, tx: Transaction, record: Record) -> list[str]:
        """Return every rule that a record fails, in order; a draft that died before the commit can never pass."""
        if self.deny:
            return ["X_DENIED"]
        found = [code for code, _, fails in CHECKS if self.on(code) and fails(self, tx, record)]
        return found or (["D_REVOKED_ANCESTOR"] if record.state in DEAD and self.on("D_REVOKED_ANCESTOR") else [])

    def check(self, tx: str) -> dict[str, str]:
        """Return the verdict of each staged record, as a commit of the whole would give them."""
        owner = self.transactions[tx]
        verdicts = {}
        for name in owner.staged:
            verdicts[name] = self.verdict(owner, self.records[name])
            if self.records[name].state == "tentative":
                self.planned[name] = {"": "accepted", "Q": "disputed", "A": "revoked"}[mark_of(verdicts[name])]
        self.planned = {}
        return verdicts

    def state_above(self, record: Record, *states: str) -> bool:
        """Say whether an ancestor is in one of these states; parents of the same commit count as just decided."""
        return any(self.planned.get(one.id, one.state) in states for one in self.above(record))

    def narrower_read(self, tx: Transaction, record: Record) -> bool:
        declared = {one.id for one in self.above(record)}
        return any(
            WIDTH[self.records[name].visibility] < WIDTH[record.visibility] for name in tx.read if name not in declared
        )

    def copies_private(self, record: Record) -> bool:
        """Say whether a private record's words come to be seen by more than its owner."""
        own = shingles(record.value)
        theirs = [
            shingles(other.value)
            for other in self.records.values()
            if other.visibility == "private" and other.scope == record.scope and other.id != record.id
            if (record.visibility, record.owner) != ("private", other.owner)
        ]
        return any(own and 2 * len(own & one) >= len(own) for one in theirs)

    def differs_in_tx(self, tx: Transaction, record: Record) -> bool:
        others = [self.records[name] for name in tx.staged if name != record.id]
        return any(other.key == record.key and other.said != record.said and overlap(other, record) for other in others)

    def uncorroborated(self, tx: Transaction, record: Record) -> bool:
        same = [other for other in self.on_slot(record, *READABLE) if other.said == record.said]
        sources = set(record.evidence).union(*(other.evidence for other in same))
        return tx.tier == "external" and self.authority(record) < 0.5 and len(sources) < 2

    def returns(self, record: Record, before: Callable[[Record], bool]) -> bool:
        """Say whether a value comes back to its slot with nothing behind it but what stood behind it before."""
        same = [other for other in self.on_slot(record, *READABLE, *FINAL) if other.said == record.said]
        if any(other.state in READABLE and overlap(other, record) for other in same):
            return False
        earlier = [other for other in same if before(other)]
        known: set[str] = set().union(*(other.evidence for other in earlier))
        return bool(earlier) and not (self.on("NEW_EVIDENCE") and set(record.evidence) - known)

    def outranks(self, record: Record, rival: Record) -> bool:
        """Say whether a record may take the place of a rival."""
        named = record.source_kind == "human" and rival.id in record.supersedes
        return (
            (self.on("S_HIGHER") and self.authority(record) > self.authority(rival))
            or (self.on("S_SAME_SOURCE") and record.source == rival.source)
            or (self.on("S_HUMAN") and named)
        )

    def standing(self, record: Record) -> list[float]:
        """Return how far above the record those rivals stand that it may not supersede."""
        mine = self.authority(record)
        return [self.authority(rival) - mine for rival in self.rivals(record) if not self.outranks(record, rival)]

    # Reading

    def read(self, tx: str, subject: str, attribute: str) -> list[Any] | dict[str, Any]:
        owner = self.transactions[tx]
        if not self.usable(owner):
            return {"refused": "X_CLOSED"}
        seen: dict[str, Any] = {}
        for record in self.records.values():
            if record.key == (owner.scope, subject, attribute) and self.sees(owner, record):
                seen.setdefault(record.said, record.value)
                if record.id not in owner.read:
                    owner.read.append(record.id)
        return list(seen.values())

    def sees(self, tx: Transaction, record: Record) -> bool:
        """Say whether a transaction sees a record: as its snapshot has it, valid now and permitted."""
        if record.visibility == "private" and record.owner != tx.agent and self.on("READ_PRIVATE"):
            return False
        return self.valid(record) and self.level(tx, record)

    def level(self, tx: Transaction, record: Record) -> bool:
        """Say whether a record has the state that the isolation of a transaction asks for."""
        seq = self.seq if self.direct or not self.on("SNAPSHOT") else tx.snapshot
        state = self.state_at(record.id, seq)
        shaky = ("revoked", "rejected", "disputed") if self.on("STABLE_ANCESTORS") else ()
        return {
            "raw": state in (*READABLE, "tentative"),
            "accepted": state in READABLE,
            "stable": state in READABLE and not any(self.state_at(x.id, seq) in shaky for x in self.above(record)),
            "verified": state == "verified" or (state == "accepted" and not self.on("VERIFIED_ONLY")),
        }[tx.isolation]

    def served(self, subject: str, attribute: str, scope: str = SCOPE) -> Any:
        found = [
            record.value
            for record in self.records.values()
            if record.key == (scope, subject, attribute) and record.state in READABLE and self.valid(record)
        ]
        return found[0] if found else None

    # The gate and what it lets through

    def gate(
        self,
        tx: str,
        tool: str,
        *,
        premises: Iterable[str] = (),
        action: str | None = None,
        effect: str = "done",
        profile: str | None = None,
    ) -> dict[str, Any]:
        owner = self.transactions[tx]
        if not self.usable(owner):
            return {"allow": False, "reasons": ["X_CLOSED"]}
        told = self.tools.get(tool, "irreversible" if self.on("UNLISTED_TOOL") else "reversible")
        kind, _, sink = told.partition("@")
        chosen = profile or self.profile
        reasons = [] if kind == "reversible" else self.reasons(owner, list(premises), sink, chosen)
        if self.deny:
            reasons = ["X_DENIED"]
        answer = Gate(
            number=len(self.gates),
            tx=tx,
            tool=tool,
            reversible=kind == "reversible",
            premises=list(premises),
            allow=not reasons,
            reasons=reasons,
            seq=self.seq,
            profile=chosen,
        )
        self.gates.append(answer)
        if answer.allow and action is not None:
            self.act(answer.number, action, effect)
        return {"allow": answer.allow, "reasons": reasons, "receipt": answer.number if answer.allow else None}

    def reasons(self, tx: Transaction, premises: list[str], sink: str, profile: str) -> list[str]:
        """Return everything that speaks against an irreversible call."""
        found = {code: text for code, text in self.basic(tx).items() if text}
        if profile == "strict":
            known = [self.records[name] for name in premises if name in self.records]
            found |= {"G3_NO_PREMISE": "G3_NO_PREMISE"} if not premises or len(known) < len(premises) else {}
            found |= {"G5_WEAK_ISOLATION": "G5_WEAK_ISOLATION"} if tx.isolation == "raw" else {}
            for premise in known:
                found |= {code: code for code, against in PREMISE if against(self, tx, premise, sink)}
        return [text for code, text in found.items() if self.on(code)]

    def basic(self, tx: Transaction) -> dict[str, str]:
        """Return what speaks against a call whatever its premises are."""
        drafts = sorted(
            record.id
            for record in self.records.values()
            if record.state == "tentative"
            and (record.scope == tx.scope or (record.tx == tx.id and self.on("G1_OWN_DRAFTS")))
            and (record.tx != tx.id or self.on("G1_OWN_DRAFTS"))
            and not self.in_snapshot(record, tx)
        )
        verified = any(self.state_at(name, tx.snapshot) == "verified" for name in self.records)
        return {
            "G1_UNSETTLED": "G1_UNSETTLED:" + ",".join(drafts) if drafts else "",
            "G2_NO_VERIFIED": "G2_NO_VERIFIED" if tx.tier == "external" and not verified else "",
        }

    def contested(self, premise: Record) -> bool:
        """Say whether a rival of the same authority was held and waits."""
        return any(
            other.said != premise.said
            and overlap(other, premise)
            and other.code == "C_EQUAL_AUTHORITY"
            and self.authority(other) == self.authority(premise)
            for other in self.on_slot(premise, "disputed")
        )

    def act(self, receipt: int, action: str, effect: str = "done") -> dict[str, Any] | None:
        """Begin a call with a receipt; refused when it was used or is void."""
        answer = self.gates[receipt]
        if answer.used or not answer.allow or self.void(answer):
            return {"refused": "X_RECEIPT"}
        answer.used = True
        told = {name: getattr(answer, name) for name in ("tx", "tool", "reversible", "premises")}
        self.actions[action] = Action(id=action, gate=receipt, effect=effect, **told)
        self.owe_at_birth(self.actions[action])
        return None

    def void(self, answer: Gate) -> bool:
        """Say whether a premise moved since the gate spoke, or the transaction that asked came to nothing."""
        tx = self.transactions[answer.tx]
        moved = any(at > answer.seq and target in answer.premises for at, target, *_ in self.audit)
        return moved or tx.status in ("held", "aborted") or (tx.status == "open" and not self.usable(tx))

    def finish(self, action: str, effect: str) -> dict[str, Any] | None:
        """Say how a call ended, `done` or `failed`; a planned one begins first, and what is known already stays."""
        known = self.actions[action]
        if known.effect == "planned" and self.void(self.gates[known.gate]):
            return {"refused": "X_RECEIPT"}
        if known.effect in ("planned", "running", "unknown"):
            known.effect = effect
            self.owe_at_birth(known)
        return None

    def owe_at_birth(self, action: Action) -> None:
        dead = [one.id for one in self.ancestors(action.premises) if one.state in DEAD]
        if dead and self.on("DEBT_AT_BIRTH"):
            self.repair_action(dead[0], action)

    # Cascade

    def revoke(self, record_id: str) -> None:
        self.move(self.records[record_id], "revoked", "revoke")
        self.cascade(record_id)

    def tombstone(self, record_id: str) -> None:
        """Stop a value for good, wherever it is believed or held; a draft meets the stone when it is committed."""
        target = self.records[record_id]
        if (target.key, target.said) not in self.stones:
            self.stones.append((target.key, target.said))
        same = [one for one in self.on_slot(target, *READABLE, "disputed") if one.said == target.said]
        for record in (target, *same):
            self.move(record, "rejected", "tombstone")
            if self.on("TOMBSTONE_CASCADES"):
                self.cascade(record.id)

    def cascade(self, root: str) -> None:
        """Walk all that was built on a record, breadth first, each once, through nodes of any state."""
        queue, seen = [root], {root}
        while queue:
            name = queue.pop(0)
            children = [one for one in self.records.values() if name in one.derived_from and one.id not in seen]
            for child in children:
                seen.add(child.id)
                passable = self.on("WALK_THROUGH") or child.state not in (*FINAL, "disputed")
                self.repair(root, child)
                if passable and self.on("WALK_DEEP"):
                    queue.append(child.id)
            for action in self.actions.values():
                if name in action.premises and action.id not in seen:
                    seen.add(action.id)
                    self.repair_action(root, action)

    def repair(self, root: str, record: Record) -> None:
        """Withdraw one descendant: a belief and any draft for good, a view that was believed until it is rebuilt."""
        view = record.kind in VIEWS and record.state in (*READABLE, "disputed")
        to = "disputed" if view else "revoked"
        if record.state in (to, *FINAL) or not self.on("CASCADE_VIEW" if view else "CASCADE_BELIEF"):
            return
        self.move(record, to, root)
        self.note(root, record.id, to)

    def repair_action(self, root: str, action: Action) -> None:
        """Cancel what is only planned; note what is owed for what was done, once."""
        if action.effect == "planned" and self.on("CASCADE_CANCEL"):
            action.effect = "cancelled"
            self.note(root, action.id, "cancelled")
        elif action.effect == "done":
            debt = "compensation" if action.reversible else "leak"
            if self.on("CASCADE_COMPENSATION" if action.reversible else "CASCADE_LEAK"):
                action.debt = debt
                self.note(root, action.id, debt)

    def note(self, root: str, record: str, outcome: str) -> None:
        if not any(row[:2] == (root, record) for row in self.repaired):
            self.repaired.append((root, record, outcome))

    # What stands

    def state(self) -> dict[str, str]:
        return {record.id: record.state for record in self.records.values()}

    def effects(self) -> dict[str, str]:
        return {action.id: action.effect for action in self.actions.values()}

    def leaks(self) -> list[str]:
        return sorted(action.id for action in self.actions.values() if action.debt == "leak")

    def compensations(self) -> list[str]:
        return sorted(action.id for action in self.actions.values() if action.debt == "compensation")

    def repairs(self, root: str) -> list[str]:
        return sorted(record for above, record, _ in self.repaired if above == root)

    def rows(self) -> dict[str, Any]:
        """Return every raw row as plain data, with the clock and the length of the audit."""
        return {
            "records": [asdict(record) for record in self.records.values()],
            "transactions": [asdict(tx) for tx in self.transactions.values()],
            "actions": [asdict(action) for action in self.actions.values()],
            "gates": [asdict(gate) for gate in self.gates],
            "repairs": [dict(zip(("root", "record", "outcome"), row, strict=True)) for row in self.repaired],
            "audit": [dict(zip(("seq", "target", "from", "to", "by"), row, strict=True)) for row in self.audit],
            "tombstones": [{"slot": key, "value": said} for key, said in self.stones],
            "now": self.now,
            "seq": self.seq,
        }

    def step(self, step: Mapping[str, Any]) -> Any:
        """Take one step of a case: its `op` is the name of a method."""
        told = {name: value for name, value in step.items() if name not in ("op", "expect")}
        if step["op"] in ("seed", "stage", "revoke", "tombstone"):
            told["record_id"] = told.pop("id")
        return getattr(self, step["op"])(**told)


Check = Callable[[Model, Transaction, Record], bool]

CHECKS: tuple[tuple[str, str, Check], ...] = (
    ("E_NO_EVIDENCE", "Q", lambda _m, _t, r: not r.evidence),
    ("E_LOW_CONF", "Q", lambda m, _t, r: r.confidence < 0.6 and m.authority(r) < 0.9),
    ("E_UNCORROBORATED", "Q", lambda m, t, r: m.uncorroborated(t, r)),
    ("V_FUTURE", "Q", lambda m, _t, r: m.now < r.valid_from),
    ("V_EXPIRED", "Q", lambda m, _t, r: m.now >= r.valid_to),
    ("P_SCOPE_WIDEN", "Q", lambda m, _t, r: any(WIDTH[r.visibility] > WIDTH[x.visibility] for x in m.above(r))),
    ("P_UNDECLARED_READ", "Q", lambda m, t, r: m.narrower_read(t, r)),
    ("P_CONTENT_OVERLAP", "Q", lambda m, _t, r: m.copies_private(r)),
    (
        "P_NOT_WRITER",
        "Q",
        lambda m, t, r: any(x.visibility == "private" and x.owner != t.agent for x in m.on_slot(r, *READABLE)),
    ),
    ("C_TOMBSTONED", "A", lambda m, _t, r: (r.key, r.said) in m.stones),
    ("C_INTRA_TX", "Q", lambda m, t, r: m.differs_in_tx(t, r)),
    ("C_STALE_LATE_WRITE", "A", lambda m, t, r: any((x.accepted_seq or 0) > t.snapshot for x in m.rivals(r))),
    ("C_RETRY_NO_NEW_EVIDENCE", "Q", lambda m, _t, r: m.returns(r, lambda x: x.code == "C_STALE_LATE_WRITE")),
    ("C_ECHO", "Q", lambda m, _t, r: m.returns(r, lambda x: x.accepted_seq is not None)),
    ("C_LOWER_AUTHORITY", "A", lambda m, _t, r: any(gap > 0 for gap in m.standing(r))),
    ("C_EQUAL_AUTHORITY", "Q", lambda m, _t, r: any(gap <= 0 for gap in m.standing(r))),
    ("D_REVOKED_ANCESTOR", "Q", lambda m, _t, r: m.state_above(r, *DEAD)),
    ("D_DISPUTED_ANCESTOR", "Q", lambda m, _t, r: m.state_above(r, "disputed")),
    ("D_UNSETTLED_ANCESTOR", "Q", lambda m, _t, r: m.state_above(r, "tentative")),
    ("D_STALE_ANCESTOR", "Q", lambda m, _t, r: m.state_above(r, "superseded")),
)
"""The rules in the order that names the verdict, what they lead to (Q holds, A aborts), and when they fail."""

PREMISE: tuple[tuple[str, Callable[[Model, Transaction, Record, str], bool]], ...] = (
    (
        "G3_PREMISE_STATE",
        lambda _m, t, p, _s: p.state not in READABLE or (t.tier == "external" and p.state != "verified"),
    ),
    ("G3_PREMISE_EXPIRED", lambda m, _t, p, _s: not m.valid(p) or m.now >= m.ends.get(p.id, FOREVER)),
    ("G3_PREMISE_UNSTABLE", lambda m, _t, p, _s: m.state_above(p, *DEAD, "tentative")),
    ("G6_PREMISE_NOT_IN_SNAPSHOT", lambda m, t, p, _s: not m.in_snapshot(p, t)),
    ("G7_CONTESTED", lambda m, _t, p, _s: m.contested(p)),
    ("G8_SINK_SCOPE", lambda _m, _t, p, s: bool(s) and WIDTH[p.visibility] < WIDTH[s]),
)
"""What speaks against an irreversible call because of one of its premises."""

GATES = ("G1_UNSETTLED", "G2_NO_VERIFIED", "G3_NO_PREMISE", "G5_WEAK_ISOLATION", *(code for code, _ in PREMISE))
CASCADES = ("CASCADE_BELIEF", "CASCADE_VIEW", "CASCADE_CANCEL", "CASCADE_COMPENSATION", "CASCADE_LEAK")
WALKS = ("WALK_THROUGH", "WALK_DEEP", "DEBT_AT_BIRTH", "ABORT_CASCADES", "COMMIT_ABORT_CASCADES", "TOMBSTONE_CASCADES")
CONFLICTS = ("EFFECTIVE_AUTHORITY", "S_HIGHER", "S_SAME_SOURCE", "S_HUMAN", "DISJOINT", "NEW_EVIDENCE", "HELD_WITH_TX")
READS = ("SNAPSHOT", "VERIFIED_ONLY", "STABLE_ANCESTORS", "READ_PRIVATE")
OTHERS = ("STAGE_TOMBSTONED", "EXTERNAL_VERIFIES", "G1_OWN_DRAFTS", "UNLISTED_TOOL", "RECOVER_UNKNOWN")
RULES = (*(code for code, _, _ in CHECKS), *GATES, *CASCADES, *WALKS, *CONFLICTS, *READS, *OTHERS)
"""Every rule that can be switched off alone."""

BASELINES: dict[str, dict[str, Any]] = {
    "direct write": {"direct": True, "off": RULES},
    "checks without gate": {"off": GATES},
    "gate without cascade": {"off": (*CASCADES, *WALKS)},
    "block everything": {"deny": True},
}
"""Whole systems of another kind, as settings of the model."""


def mark_of(verdict: str) -> str:
    """Return what a verdict leads to: Q, A, or nothing for PASS."""
    return {code: mark for code, mark, _ in CHECKS}.get(verdict, "" if verdict == "PASS" else "Q")


def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of one fixture."""
    lines = (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def tools() -> dict[str, str]:
    """Return the tools that the cases call."""
    listed: dict[str, str] = json.loads((FIXTURES / "tools.json").read_text(encoding="utf-8"))
    return listed


def plain(value: Any) -> Any:
    """Return an answer in which the order of a list does not count."""
    return sorted((plain(one) for one in value), key=str) if isinstance(value, list) else value


def exactly(_op: str, got: Any, expected: Any) -> bool:
    """Say whether an answer is what was expected; of a table, only the named entries are compared."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(plain(got.get(name)) == plain(expected[name]) for name in expected)
    return bool(plain(got) == plain(expected))


def in_effect(op: str, got: Any, expected: Any) -> bool:
    """Say whether an answer does what was expected, whatever it is called.

    For systems that have no codes: a call is let through or not, a commit goes through or not, a record can be read
    or not.
    """
    if op == "gate":
        return bool(got["allow"] == expected["allow"])
    if op == "commit":
        return (got["status"] == "committed") == (expected["status"] == "committed")
    if op == "state":
        return all((got.get(name) in READABLE) == (state in READABLE) for name, state in expected.items())
    return exactly(op, got, expected)


def run(
    case: Mapping[str, Any], *, agree: Callable[[str, Any, Any], bool] = exactly, **settings: Any
) -> tuple[int, Any, Any] | None:
    """Play a case and return its first difference: number of the step, what came and what was expected."""
    model = Model(tools(), **settings)
    for number, step in enumerate(case["steps"]):
        got = model.step(step)
        if "expect" in step and not agree(step["op"], got, step["expect"]):
            return number, got, step["expect"]
        if "expect" not in step and step["op"] == "stage" and got is not None:
            return number, got, None
    return None
