"""Replaying cases through the real writer, each in a file of its own, and saying where one first differs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING

from memcli import wire
from memcli.digest import blake2b
from memcli.errors import MemError, NotFound, Refused
from memcli.facts import Actor, Fact, FactQuery, Json, Micros, PolicyRule
from memcli.keys import normalise
from memcli.record import record
from memcli.terms import (
    READABLE,
    ActionState,
    ActorKind,
    Channel,
    EffectKind,
    Isolation,
    Op,
    Profile,
    SourceKind,
    State,
    Tier,
)
from memcli.transactions import cases, settings
from memcli.transactions.cases import Case, Step

if TYPE_CHECKING:
    from memcli.store.scratch import Trial
    from memcli.store.store import Store

    Scratch = Callable[[Actor, Callable[[], Micros]], AbstractContextManager[Trial]]

PERSON = Actor(name="replay", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
"""Who seeds, revokes and tombstones; and who stages what a case says a human says."""

REFUSALS: Mapping[str, str] = {
    "tombstoned": "C_TOMBSTONED",
    "unknown-parent": "X_UNKNOWN_PARENT",
    "cycle": "X_CYCLE",
    "lease-over": "X_CLOSED",
    "closed": "X_CLOSED",
}
"""By the code of the error: what a case calls the refusal."""

_ENDS: Mapping[ActionState, str] = {
    ActionState.DONE: "act_done",
    ActionState.FAILED: "act_failed",
    ActionState.UNKNOWN: "act_unknown",
}
_MOMENT_S = 0.001
"""Events of one instant lie microseconds apart in the file, and a lease of ten is over when ten have ticked by."""

_SAID = "said by the case"


class Baseline(StrEnum):
    """A memory that lacks something, to see that cases tell it from a whole one."""

    DIRECT = "direct"
    NO_GATE = "no-gate"
    NO_CASCADE = "no-cascade"
    BLOCK_ALL = "block-all"


@record
class CaseResult:
    """How one case came out; where it failed, the 0-based step, and what was to come and what came."""

    id: str
    family: str
    kind: str
    title: str
    passed: bool
    step: int | None = None
    op: str | None = None
    expected: Json = None
    got: Json = None


def replay(
    lines: Iterable[str],
    *,
    scratch: "Scratch",
    tools: Mapping[str, str],
    profile: Profile = Profile.STRICT,
    baseline: Baseline | None = None,
    path: str = "cases",
) -> list[CaseResult]:
    """Return how each case of a file comes out.

    Args:
        scratch: Makes a memory file for one case (`store.scratch.scratch`).
        tools: By name: what the policy says of a tool, such as `irreversible@public`.
        path: What the file is called in errors.

    Raises:
        Unreadable: A line is no case; no case was run.
        UsageError: A tool is neither reversible nor irreversible.
    """
    for value in tools.values():
        settings.read_tool(value)
    return [_replayed(case, scratch, tools, profile, baseline) for case in list(cases.read_cases(lines, path=path))]


def _replayed(
    case: Case, scratch: "Scratch", tools: Mapping[str, str], profile: Profile, baseline: Baseline | None
) -> CaseResult:
    clock = _Clock()
    with scratch(PERSON, clock) as trial:
        run = _Run(case, trial, clock, profile=profile, baseline=baseline)
        run.prepare(tools)
        for index, step in enumerate(case.steps):
            expected, got = run.take(step)
            if expected != got:
                return _result(case, index, expected, got)
    return _result(case, None, None, None)


def _result(case: Case, index: int | None, expected: Json, got: Json) -> CaseResult:
    return CaseResult(
        id=case.id,
        family=case.family,
        kind=case.kind,
        title=case.title,
        passed=index is None,
        step=index,
        op=None if index is None else str(case.steps[index]["op"]),
        expected=expected,
        got=got,
    )


class _Clock:
    """A case's clock, which moves by `tick` and by nothing else."""

    def __init__(self) -> None:
        self.time: Micros = 0

    def __call__(self) -> Micros:
        return self.time


class _Run:
    """One case under way: the names that it gives, and what they are called in the file."""

    def __init__(
        self,
        case: Case,
        trial: "Trial",
        clock: _Clock,
        *,
        profile: Profile,
        baseline: Baseline | None,
    ) -> None:
        self.case = case
        self.trial = trial
        self.clock = clock
        self.profile = profile
        self.baseline = baseline
        self.facts: dict[str, str] = {}
        self.scopes: dict[str, str | None] = {}
        self.actions: dict[str, str] = {}
        self.transactions: dict[str, dict[str | None, str]] = {}
        self.agents: dict[str, str] = {}
        self.staged: dict[str, list[str]] = {}

    def prepare(self, tools: Mapping[str, str]) -> None:
        """Give the file the policy of the case: every agent may do everything, tools and sources are as they say."""
        rules = [PolicyRule(kind="agent", name=settings.EVERYBODY, value=str(Tier.EXTERNAL))]
        rules += [PolicyRule(kind="tool", name=name, value=value) for name, value in tools.items()]
        rules += [PolicyRule(kind="source", name=name, value=str(value)) for name, value in self.case.policy.items()]
        with self.store(None).write(PERSON) as write:
            for rule in rules:
                write.set_policy(rule)

    def take(self, step: Step) -> tuple[Json, Json]:
        """Take one step, and return what was to come of it and what came."""
        expected = step.get("expect")
        try:
            got = _STEPS[str(step["op"])](self, step)
        except (Refused, NotFound) as problem:
            got = {"refused": self._refusal(step, problem)}
            if isinstance(expected, dict) and expected.get("refused") in (True, problem.code):
                return expected, expected
        if "expect" not in step:
            return (None, got) if isinstance(got, dict) and "refused" in got else (None, None)
        return _compared(expected, got)

    def _refusal(self, step: Step, problem: MemError) -> str:
        told = step.get("fact")
        if isinstance(told, dict) and step.get("id") in cases.names(told, "derived_from"):
            return REFUSALS["cycle"]
        return REFUSALS.get(problem.code, problem.code)

    # ---------------------------------------------------------------- names

    def store(self, scope: str | None) -> "Store":
        """Return the case's file in a scope."""
        return self.trial.store(scope)

    def tx(self, step: Step, scope: str | None = None) -> str:
        """Return the transaction of the file that stands for a case's in a scope; an unknown name stays."""
        name = str(step["tx"])
        return self.transactions.get(name, {}).get(scope, name)

    def actor(self, step: Step) -> Actor:
        """Return who acts in a step of a transaction."""
        name = self.agents.get(str(step["tx"]), cases.DEFAULT_AGENT)
        return Actor(name=name, kind=ActorKind.SCRIPT, channel=Channel.API)

    def named(self, name: str) -> str:
        """Return what the case calls a fact or an action of the file."""
        back = {value: key for key, value in (*self.facts.items(), *self.actions.items())}
        return back.get(name, name)

    def fact(self, name: str) -> Fact | None:
        """Return a fact of the case as it is now, or None where it was refused."""
        scope = self.scopes.get(name)
        return self.store(scope).get(self.facts[name]) if name in self.facts else None

    # ---------------------------------------------------------------- steps that change

    def tick(self, step: Step) -> Json:
        by = step["by"]
        self.clock.time += cases.micros(by) if isinstance(by, int | float) else 0
        return None

    def seed(self, step: Step) -> Json:
        name, scope = str(step["id"]), cases.scope_of(step)
        told = cases.claim(step, cases.DEFAULT_AGENT, self.facts)
        fact = self.trial.plant(told, cases.word(step, "state", State, State.ACCEPTED), scope)
        self.facts[name], self.scopes[name] = fact.id, scope
        return None

    def begin(self, step: Step) -> Json:
        name, agent = str(step["tx"]), cases.text(step, "agent", cases.DEFAULT_AGENT)
        self.agents[name] = agent
        lease = cases.lease_s(step)
        tier = cases.word(step, "tier", Tier, Tier.MEDIUM)
        told = "isolation" in step
        isolation = cases.word(step, "isolation", Isolation, Isolation.ACCEPTED) if told else None
        got: dict[str, Json] = {}
        for scope in self._scopes_of(name):
            with self.store(scope).write(self.actor(step)) as write:
                begun = write.begin(agent, tier, isolation, **({} if lease is None else {"lease_s": lease - _MOMENT_S}))
            self.transactions.setdefault(name, {})[scope] = begun.id
            got = {"tier": str(begun.tier), "isolation": str(begun.isolation)}
        return got

    def _scopes_of(self, name: str) -> list[str | None]:
        """Return the scopes that a case's transaction writes in: there it is one transaction for each of them."""
        staged = (step for step in self.case.steps if step["op"] == "stage" and step["tx"] == name)
        return list(dict.fromkeys([None, *map(cases.scope_of, staged)]))

    def stage(self, step: Step) -> Json:
        name, scope = str(step["id"]), cases.scope_of(step)
        told = cases.claim(step, self.actor(step).name, self.facts)
        human = told.source_kind is SourceKind.HUMAN
        rivals = cases.rivals(step) if human else ()
        with self.store(scope).write(PERSON if human else self.actor(step)) as write:
            tx, supersedes = self.tx(step, scope), [self.facts.get(rival, rival) for rival in rivals]
            known = self.fact(name)
            if known is not None:
                fact = write.restage(tx, known, told.derived_from)
            else:
                fact = write.stage(tx, told, supersedes)
            if self.baseline is Baseline.DIRECT:
                write.move(write.newest(write.fact_number(fact.id)), State.ACCEPTED, Op.COMMIT)
        self.facts[name], self.scopes[name] = fact.id, scope
        self.staged.setdefault(str(step["tx"]), []).append(name)
        return {}

    def commit(self, step: Step) -> Json:
        if self.baseline is Baseline.DIRECT:
            passed: dict[str, Json] = dict.fromkeys(self.staged.get(str(step["tx"]), ()), "PASS")
            return {"status": "committed", "verdicts": passed}
        if self.baseline is Baseline.BLOCK_ALL:
            self.abort(step)
            refused: dict[str, Json] = dict.fromkeys(self.staged.get(str(step["tx"]), ()), "BLOCKED")
            return {"status": "aborted", "verdicts": refused}
        return self._committed(step)

    def _committed(self, step: Step) -> Json:
        verdicts: dict[str, Json] = {}
        status = "committed"
        for scope in self.transactions.get(str(step["tx"]), {None: ""}):
            with self.store(scope).write(self.actor(step)) as write:
                found = write.commit(self.tx(step, scope), partial=step.get("mode") == "partial")
            verdicts |= {self.named(name): str(code) for name, code in found.verdicts.items()}
            status = str(found.status) if status == "committed" else status
        return {"status": status, "verdicts": verdicts}

    def abort(self, step: Step) -> Json:
        status = ""
        for scope in self.transactions.get(str(step["tx"]), {None: ""}):
            with self.store(scope).write(self.actor(step)) as write:
                status = str(write.abort(self.tx(step, scope)).status)
        return {"status": status}

    def revoke(self, step: Step) -> Json:
        fact = self.fact(str(step["id"]))
        if fact is not None:
            with self.store(self.scopes[str(step["id"])]).write(PERSON, _SAID) as write:
                if self.baseline is not Baseline.NO_CASCADE:
                    write.revoke(fact)
                elif fact.readable:
                    write.move(write.newest(write.fact_number(fact.id)), State.REVOKED, Op.REVOKE)
        return None

    def tombstone(self, step: Step) -> Json:
        fact = self.fact(str(step["id"]))
        if fact is not None:
            with self.store(self.scopes[str(step["id"])]).write(PERSON, _SAID) as write:
                write.tombstone(write.plan_facts([fact], near=False))
        return None

    def recover(self, _: Step) -> Json:
        over: set[str] = set()
        for scope in {scope for found in self.transactions.values() for scope in found}:
            with self.store(scope).write(PERSON) as write:
                over |= {tx.id for tx in write.recover()}
        names: list[Json] = [name for name, found in self.transactions.items() if over & set(found.values())]
        return names

    # ---------------------------------------------------------------- the gate

    def gate(self, step: Step) -> Json:
        if self.baseline is Baseline.BLOCK_ALL:
            return {"allow": False, "reasons": ["BLOCKED"]}
        if self.baseline is Baseline.DIRECT:
            return self._open_gate(step)
        arguments = blake2b(wire.dumps(step.get("args", {})).encode("ascii"), digest_size=16).hexdigest()
        premises = [self.facts.get(name, name) for name in cases.names(step, "premises")]
        with self.store(None).write(self.actor(step)) as write:
            answer = write.gate(self.tx(step), str(step["tool"]), arguments, premises, self.profile)
        if answer.receipt is not None and "action" in step:
            self._act(step, answer.receipt.id, arguments)
        if not answer.allow and self.baseline is Baseline.NO_GATE:
            return self._open_gate(step)
        return {"allow": answer.allow, "reasons": [self._reason(reason) for reason in answer.reasons]}

    def _open_gate(self, step: Step) -> Json:
        """Let everything through, with an action that nobody writes down."""
        if "action" in step:
            self.actions[str(step["action"])] = ""
        return {"allow": True, "reasons": []}

    def _act(self, step: Step, receipt: str, arguments: str) -> None:
        effect = cases.word(step, "effect", ActionState, ActionState.DONE)
        with self.store(None).write(self.actor(step)) as write:
            begin = write.act_plan if effect is ActionState.PLANNED else write.act_begin
            action = begin(receipt, arguments)
            if effect in _ENDS:
                getattr(write, _ENDS[effect])(action.id)
        self.actions[str(step["action"])] = action.id

    def _reason(self, reason: str) -> str:
        code, colon, blocking = reason.partition(":")
        return code + colon + ",".join(sorted(map(self.named, blocking.split(",")))) if colon else code

    # ---------------------------------------------------------------- steps that look

    def read(self, step: Step) -> Json:
        subject, attribute = step.get("subject"), step.get("attribute")
        with self.store(None).write(self.actor(step)) as write:
            found = write.read(
                self.tx(step),
                subject=subject if isinstance(subject, str) else None,
                attribute=attribute if isinstance(attribute, str) else None,
            )
        values = {normalise(str(fact.value)): fact.value for fact in reversed(found)}
        return list(values.values())

    def state(self, step: Step) -> Json:
        expected = step["expect"]
        found = {name: self.fact(name) for name in (expected if isinstance(expected, dict) else ())}
        return {name: None if fact is None else str(fact.state) for name, fact in found.items()}

    def served(self, step: Step) -> Json:
        wanted = (str(step["subject"]), str(step["attribute"]))
        query = FactQuery(states=READABLE, subject=wanted[0])
        found = [fact for fact in self.store(cases.scope_of(step)).facts(query) if fact.attribute == wanted[1]]
        values = list(dict.fromkeys(fact.value for fact in reversed(found)))
        same = {normalise(str(value)) for value in values}
        return None if not values else values[0] if len(same) == 1 else list(values)

    def effects(self, step: Step) -> Json:
        expected = step["expect"]
        known = {action.id: str(action.state) for action in self.store(None).actions()}
        asked = expected if isinstance(expected, dict) else ()
        return {name: known.get(self.actions.get(name, "")) for name in asked}

    def leaks(self, _: Step) -> Json:
        return self._owed(EffectKind.LEAK)

    def compensations(self, _: Step) -> Json:
        return self._owed(EffectKind.COMPENSATION)

    def _owed(self, kind: EffectKind) -> Json:
        return [self.named(effect.action) for effect in self.store(None).effects() if effect.kind is kind]

    def repairs(self, step: Step) -> Json:
        root = self.facts.get(str(step["root"]))
        scope = self.scopes.get(str(step["root"]))
        return [self.named(item.record) for item in self.store(scope).repairs() if item.root == root]


_STEPS: Mapping[str, Callable[[_Run, Step], Json]] = {op: getattr(_Run, op) for op in cases.NEEDS}


def _compared(expected: Json, got: Json) -> tuple[Json, Json]:
    """Return both sides with what has no order put in order, and of an object only what was asked for."""
    if isinstance(expected, dict) and isinstance(got, dict):
        if "refused" in got and "refused" not in expected:
            return expected, got
        pairs = {name: _compared(value, got.get(name)) for name, value in expected.items()}
        return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}
    if isinstance(expected, list) and isinstance(got, list):
        return _sorted(expected), _sorted(got)
    return expected, got


def _sorted(items: Sequence[Json]) -> list[Json]:
    ordered = [_blockers(item) if isinstance(item, str) and item.startswith("G1_") else item for item in items]
    return sorted(ordered, key=wire.dumps)


def _blockers(reason: str) -> str:
    code, _, blocking = reason.partition(":")
    return f"{code}:{','.join(sorted(blocking.split(',')))}"
