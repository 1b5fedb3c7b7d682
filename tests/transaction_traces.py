"""Traces of the transaction protocol: what plays them, how they are made, and what must hold after every step.

A trace is a list of steps in the form of a case file. `Watch` plays one on anything that has the methods of `Machine`
and recomputes the invariants from the raw rows that the machine gives; `parted` plays one on two machines at once and
returns where they part. The model of `tests.model_transactions` is a machine as it stands.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from tests.model_transactions import DEAD, FINAL, READABLE, VIEWS, WIDTH, normal, plain

Rows = Mapping[str, Any]
Step = dict[str, Any]
Trace = list[Step]

REPEATABLE = ("revoke", "abort", "recover", "tombstone", "finish")
"""Steps that change nothing when they are taken again at once."""


class Machine(Protocol):
    """What a trace is played on. Every method takes plain data and returns what `expect` of that step speaks of.

    A transaction that is closed or past its lease refuses: `stage`, `read` and `commit` return a table with `refused`,
    `gate` one with `allow` false. A refused `stage` returns `{"refused": code}`, a taken one None.
    """

    def seed(self, record_id: str, fact: Mapping[str, Any], state: str) -> None: ...
    def begin(self, tx: str, *, tier: str, agent: str, isolation: str | None, lease: float) -> None: ...
    def stage(
        self, tx: str, record_id: str, fact: Mapping[str, Any], supersedes: list[str] | None
    ) -> dict[str, Any] | None: ...
    def read(self, tx: str, subject: str, attribute: str) -> Any: ...
    def check(self, tx: str) -> dict[str, str]: ...
    def commit(self, tx: str, mode: str) -> dict[str, Any]: ...
    def abort(self, tx: str) -> Any: ...
    def revoke(self, record_id: str) -> Any: ...
    def tombstone(self, record_id: str) -> Any: ...
    def gate(self, tx: str, tool: str, *, premises: list[str], action: str | None, effect: str) -> dict[str, Any]: ...
    def finish(self, action: str, effect: str) -> Any: ...
    def tick(self, by: float) -> Any: ...
    def recover(self) -> Any: ...
    def rows(self) -> Rows:
        """Return the raw rows: lists of tables under these names, and the two numbers `now` and `seq`.

        records: id, tx, scope, subject, attribute, value, source, source_kind, authority, owner, visibility,
            valid_from, valid_to (infinity when open), evidence, derived_from, kind, supersedes, state, code,
            staged_seq.
        transactions: id, agent, isolation, scope, snapshot, until, status, staged.
        actions: id, reversible, premises, effect, debt (`leak`, `compensation` or None).
        gates: tx, reversible, allow, seq, in the order they were asked.
        repairs: root, record.  audit: seq, target, from, to; moves of records only.
        """


def take(machine: Machine, step: Step) -> Any:
    """Take one step, with every default of its form said out loud."""
    told = {**DEFAULTS.get(step["op"], {}), **step}
    del told["op"]
    if "id" in told:
        told["record_id"] = told.pop("id")
    return getattr(machine, step["op"])(**told)


DEFAULTS: dict[str, dict[str, Any]] = {
    "begin": {"tier": "medium", "agent": "agent", "isolation": None, "lease": float("inf")},
    "stage": {"supersedes": None},
    "gate": {"premises": [], "action": None, "effect": "done"},
}


def named(rows: Rows, table: str) -> dict[str, Any]:
    """Return the rows of a table by their ids."""
    return {row["id"]: row for row in rows[table]}


def possible(step: Step, rows: Rows) -> bool:
    """Say whether everything that a step names is there; a refused draft, say, cannot be revoked later."""
    records, actions = named(rows, "records"), named(rows, "actions")
    if step["op"] in ("revoke", "tombstone"):
        return step["id"] in records
    if step["op"] == "finish":
        return step["action"] in actions
    if step["op"] == "begin":
        return step["tx"] not in named(rows, "transactions")
    known = step["op"] in ("seed", "tick", "recover") or step["tx"] in named(rows, "transactions")
    return known and step.get("action") not in actions and set(step.get("premises", ())) <= set(records)


def ancestors(records: Mapping[str, Any], parents: Iterable[str]) -> set[str]:
    """Return these ids and all that their records were derived from."""
    found: set[str] = set()
    queue = list(parents)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += records[name]["derived_from"]
    return found


def folded(rows: Rows, seq: float = float("inf")) -> dict[str, str]:
    """Return the states that the audit gives when read up to here."""
    return {row["target"]: row["to"] for row in rows["audit"] if row["seq"] <= seq}


def slot(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return (record["scope"], record["subject"], record["attribute"])


def meet(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Say whether two records speak of one slot at one instant."""
    later, earlier = max(one["valid_from"], other["valid_from"]), min(one["valid_to"], other["valid_to"])
    return slot(one) == slot(other) and later < earlier


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return normal(one["value"]) == normal(other["value"])


def worth(records: Mapping[str, Any], record: Mapping[str, Any]) -> float:
    """Return the least authority of a record and its ancestors."""
    return min(records[name]["authority"] for name in ancestors(records, [record["id"]]))


# What holds of the rows after any step


def audit_tells_states(rows: Rows) -> Iterator[str]:
    now: dict[str, str] = {}
    for row in rows["audit"]:
        if now.get(row["target"]) != row["from"]:
            yield f"{row['target']} moved from {row['from']} and was {now.get(row['target'])}"
        if row["from"] in FINAL:
            yield f"{row['target']} left {row['from']}"
        now[row["target"]] = row["to"]
    states = {record["id"]: record["state"] for record in rows["records"]}
    if states != now:
        yield f"states {states} are not those of the audit {now}"


def readable_stands(rows: Rows) -> Iterator[str]:
    """Nothing readable has a dead ancestor, is wider than one, or is its own."""
    records = named(rows, "records")
    for record in records.values():
        above = ancestors(records, record["derived_from"])
        if record["id"] in above:
            yield f"{record['id']} is its own ancestor"
        for name in above if record["state"] in READABLE else ():
            if records[name]["state"] in DEAD:
                yield f"readable {record['id']} stands on {records[name]['state']} {name}"
            if WIDTH[record["visibility"]] > WIDTH[records[name]["visibility"]]:
                yield f"readable {record['id']} is wider than {name}"


def one_value(rows: Rows) -> Iterator[str]:
    readable = [record for record in rows["records"] if record["state"] in READABLE]
    for number, one in enumerate(readable):
        for other in readable[number + 1 :]:
            if meet(one, other) and not agree(one, other):
                yield f"{one['id']} and {other['id']} are readable at once"


def drafts_are_open(rows: Rows) -> Iterator[str]:
    transactions = named(rows, "transactions")
    for record in rows["records"]:
        if record["state"] == "tentative" and transactions[record["tx"]]["status"] != "open":
            yield f"{record['id']} is tentative in a closed transaction"


def debts_are_noted(rows: Rows) -> Iterator[str]:
    records = named(rows, "records")
    for action in rows["actions"]:
        dead = [name for name in ancestors(records, action["premises"]) if records[name]["state"] in DEAD]
        due = "compensation" if action["reversible"] else "leak"
        if dead and action["effect"] == "done" and action["debt"] != due:
            yield f"{action['id']} was done, {dead[0]} is dead, and no {due} is noted"
        if dead and action["effect"] == "planned":
            yield f"{action['id']} is planned on dead {dead[0]}"
        if action["debt"] and (action["effect"] != "done" or action["debt"] != due):
            yield f"{action['id']} is {action['effect']} and owes a {action['debt']}"
    pairs = [(row["root"], row["record"]) for row in rows["repairs"]]
    if len(pairs) != len(set(pairs)):
        yield "something was repaired twice for one root"


def calls_were_settled(rows: Rows) -> Iterator[str]:
    """No irreversible call was allowed while a draft lay outside the snapshot of its transaction."""
    records, transactions = named(rows, "records"), named(rows, "transactions")
    for gate in rows["gates"]:
        tx = transactions[gate["tx"]]
        seen = tx["snapshot"] if tx["isolation"] == "raw" else -1
        for name, state in folded(rows, gate["seq"]).items():
            record = records[name]
            late = state == "tentative" and record["scope"] == tx["scope"] and record["staged_seq"] > seen
            if late and gate["allow"] and not gate["reversible"]:
                yield f"a call of {gate['tx']} was allowed while {name} was a draft"


ALWAYS: tuple[Callable[[Rows], Iterator[str]], ...] = (
    audit_tells_states,
    readable_stands,
    one_value,
    drafts_are_open,
    debts_are_noted,
    calls_were_settled,
)
"""What must hold of the rows after any step."""

# What holds of a single step


def whole_commit(step: Step, got: Any, _before: Rows, after: Rows) -> Iterator[str]:
    """An atomic commit makes all of its records readable or none."""
    if step["op"] == "commit" and step["mode"] == "atomic" and "refused" not in got:
        records = named(after, "records")
        staged = named(after, "transactions")[step["tx"]]["staged"]
        readable = [name for name in staged if records[name]["state"] in READABLE]
        if readable != (staged if got["status"] == "committed" else []):
            yield f"{got['status']} {step['tx']} made {readable} of {staged} readable"


def repair_is_whole(step: Step, _got: Any, before: Rows, after: Rows) -> Iterator[str]:
    """What was derived from a withdrawn record is neither readable nor under way."""
    records = named(after, "records")
    old = named(before, "records")
    roots = {name for name, record in records.items() if record["state"] in DEAD and old[name]["state"] not in DEAD}
    if step["op"] not in ("revoke", "tombstone", "abort", "recover"):
        return
    for record in records.values():
        above = roots & ancestors(records, record["derived_from"])
        if above and record["state"] in (*READABLE, "tentative"):
            yield f"{record['id']} is {record['state']} after {above} went"
        if above and record["kind"] not in VIEWS and record["state"] == "disputed":
            yield f"belief {record['id']} is only disputed after {above} went"


def new_evidence(_step: Step, _got: Any, before: Rows, after: Rows) -> Iterator[str]:
    """A value that was withdrawn from a slot, or refused as stale, comes back with something new behind it only."""
    records, old = named(after, "records"), named(before, "records")
    believed = {row["target"] for row in before["audit"] if row["to"] in READABLE}
    came = [x for x in records.values() if x["state"] in READABLE and old.get(x["id"], {}).get("state") == "tentative"]
    for record in came:
        same = [x for x in old.values() if x["id"] != record["id"] and slot(x) == slot(record) and agree(x, record)]
        earlier = [
            x for x in same if x["state"] in FINAL and (x["id"] in believed or x["code"] == "C_STALE_LATE_WRITE")
        ]
        held = any(x["state"] in READABLE and meet(x, record) for x in same)
        known = {item for x in earlier for item in x["evidence"]}
        if earlier and not held and set(record["evidence"]) <= known:
            yield f"{record['id']} came back with nothing new behind it"


def earned(step: Step, _got: Any, before: Rows, after: Rows) -> Iterator[str]:
    """What is superseded gave way to more authority, to its own source, or to a person who named it."""
    records, old = named(after, "records"), named(before, "records")
    gone = [x for x in records.values() if x["state"] == "superseded" and old[x["id"]]["state"] != "superseded"]
    for record in gone:
        heirs = [
            x for x in records.values() if x["tx"] == step.get("tx") and x["state"] in READABLE and meet(x, record)
        ]
        if not any(
            worth(records, heir) > worth(records, record)
            or heir["source"] == record["source"]
            or (heir["source_kind"] == "human" and record["id"] in heir["supersedes"])
            for heir in heirs
        ):
            yield f"{record['id']} was superseded by nobody who may"


def honest_read(step: Step, got: Any, before: Rows, _after: Rows) -> Iterator[str]:
    """A read gives what the snapshot held readable, what is valid now and what the agent may see."""
    if step["op"] != "read" or isinstance(got, dict):
        return
    tx = named(before, "transactions")[step["tx"]]
    states = folded(before, tx["snapshot"])
    good = READABLE if tx["isolation"] != "raw" else (*READABLE, "tentative")
    allowed = {
        normal(x["value"])
        for x in before["records"]
        if slot(x) == (tx["scope"], step["subject"], step["attribute"])
        and states.get(x["id"]) in good
        and x["valid_from"] <= before["now"] < x["valid_to"]
        and (x["visibility"] != "private" or x["owner"] == tx["agent"])
    }
    for value in got:
        if normal(value) not in allowed:
            yield f"{step['tx']} read {value!r}, and its snapshot has {sorted(allowed)}"


STEPWISE = (whole_commit, repair_is_whole, new_evidence, earned, honest_read)
"""What must hold between the rows before a step, what it returned, and the rows after it."""


class Watch:
    """Plays steps on a machine, asks the questions that need a second step, and keeps what was found broken."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.found: list[str] = []
        self.reads: dict[tuple[Any, ...], Any] = {}
        self.blocked: Step | None = None

    def play(self, trace: Trace) -> list[str]:
        """Play a trace until something is broken, and return what."""
        for step in trace:
            if possible(step, self.machine.rows()):
                self.take(step)
            if self.found:
                break
        return self.found

    def take(self, step: Step) -> Any:
        before = self.machine.rows()
        verdicts = self.machine.check(step["tx"]) if step["op"] == "commit" else {}
        if verdicts and self.machine.rows() != before:
            self.found.append("a check changed something")
        got = take(self.machine, step)
        after = self.machine.rows()
        self.found += [line for rule in ALWAYS for line in rule(after)]
        self.found += [line for rule in STEPWISE for line in rule(step, got, before, after)]
        self.ask(step, got, verdicts, after)
        return got

    def ask(self, step: Step, got: Any, verdicts: dict[str, str], after: Rows) -> None:
        """Compare with an earlier answer, or with a second one."""
        if step["op"] == "commit" and step["mode"] == "atomic" and got["verdicts"] and got["verdicts"] != verdicts:
            self.found += [] if "refused" in got else [f"the check said {verdicts}, the commit {got['verdicts']}"]
        if step["op"] in REPEATABLE:
            take(self.machine, step)
            self.found += [] if self.machine.rows() == after else [f"a second {step['op']} changed something"]
        if step["op"] == "read" and isinstance(got, list):
            place = (step["tx"], step["subject"], step["attribute"], after["now"])
            first = self.reads.setdefault(place, got)
            self.found += [] if first == got else [f"{step['tx']} read {first}, then {got}"]
        if step["op"] == "gate":
            self.blocked = None if got["allow"] else {name: step[name] for name in ("op", "tx", "tool", "premises")}
        elif step["op"] == "stage" and self.blocked:
            opened = take(self.machine, self.blocked)["allow"]
            self.found += [f"the draft {step['id']} opened the gate of {self.blocked['tx']}"] if opened else []
        else:
            self.blocked = None


def parted(trace: Trace, one: Machine, other: Machine) -> str | None:
    """Play a trace on two machines and return where answers, states, effects or debts part for the first time."""
    for number, step in enumerate(trace):
        if not possible(step, one.rows()):
            continue
        answers = [shown(step, take(machine, step)) for machine in (one, other)]
        stand = [standing(machine.rows()) for machine in (one, other)]
        if answers[0] != answers[1]:
            return f"step {number} {step['op']}: {answers[0]} and {answers[1]}"
        if stand[0] != stand[1]:
            return f"after step {number} {step['op']}: {stand[0]} and {stand[1]}"
    return None


def shown(step: Step, got: Any) -> Any:
    """Return the part of an answer that two machines must share."""
    keys = {"commit": ("status", "verdicts"), "gate": ("allow", "reasons"), "stage": ("refused",)}.get(step["op"])
    if keys and isinstance(got, dict):
        return {key: plain(got.get(key)) for key in keys}
    return plain(got) if step["op"] == "read" else None


def standing(rows: Rows) -> dict[str, Any]:
    """Return what stands after a step, as far as anybody can see it."""
    return {
        **{record["id"]: record["state"] for record in rows["records"]},
        **{tx["id"]: tx["status"] for tx in rows["transactions"]},
        **{action["id"]: (action["effect"], action["debt"]) for action in rows["actions"]},
    }


# Making traces

AGENTS = ("agent", "agent", "b", "c")
SLOTS = (("svc", "version"), ("door", "code"))
SOURCES = (
    ("sor", "system", 0.95),
    ("agentA", "agent", 0.6),
    ("agentB", "agent", 0.6),
    ("tool", "tool", 0.4),
    ("lead", "human", 0.5),
)
VALUES = ("one", "Two", " two ", "three")
LONG = "the key of the back door lies under the third stone of the path"
TOOLS = ("wire", "wire", "hold_seat", "publish", "draft", "unknown_tool")
EFFECTS = ("done", "done", "done", "planned", "running", "failed", "unknown")
STEPS_IN_A_TRACE = 30


class Maker:
    """Makes one trace. It keeps what is likely to be there, so that most steps do something; the rest is skipped."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.trace: Trace = []
        self.names: list[str] = []
        self.open: dict[str, int] = {}
        self.left = {"tx": self.chance.randint(2, 5), "fact": self.chance.randint(3, 6)}

    def rarely(self, chance: float, rare: Any, otherwise: Any) -> Any:
        return rare if self.chance.random() < chance else otherwise

    def fact(self) -> dict[str, Any]:
        """Return a fact that knows only earlier ones as parents; slots are few, so that facts meet."""
        subject, attribute = self.chance.choice(SLOTS)
        source, kind, authority = self.chance.choice(SOURCES)
        width = self.chance.choice(("shared", "shared", "shared", "public", "private"))
        interval = self.chance.choice(({"valid_from": 0, "valid_to": 20}, {"valid_from": 10}))
        return {
            "subject": subject,
            "attribute": self.rarely(0.3, self.chance.choice(("note", "plan")), attribute),
            "value": self.rarely(0.1, LONG, self.chance.choice(VALUES)),
            "source": source,
            "source_kind": kind,
            "authority": authority,
            "confidence": self.rarely(0.06, 0.3, 0.8),
            "visibility": width,
            "evidence": self.rarely(0.04, [], self.chance.choice(([f"src:{source}"], ["m1"], ["m1", "m2"]))),
            "kind": self.rarely(0.25, self.chance.choice(VIEWS), "belief"),
            "derived_from": [name for name in self.names if self.chance.random() < 0.25],
            **self.rarely(0.15, interval, {}),
        }

    def seeds(self) -> None:
        for name, (subject, attribute) in zip(("s1", "s2"), SLOTS, strict=True):
            fact = {**self.fact(), "subject": subject, "attribute": attribute, "derived_from": [], "valid_from": 0}
            state = self.rarely(0.3, "verified", "accepted")
            if self.chance.random() < 0.7:
                self.trace.append({"op": "seed", "id": name, "fact": fact, "state": state})
                self.names.append(name)

    def begin(self) -> Step:
        tx = f"t{self.left['tx']}"
        self.left["tx"] -= 1
        self.open[tx] = 0
        step: Step = {"op": "begin", "tx": tx, "agent": self.chance.choice(AGENTS)}
        how = self.chance.choice(
            ({"tier": "high"}, {"tier": "external"}, {"isolation": "raw"}, {"isolation": "stable"})
        )
        return step | self.rarely(0.35, how, {}) | self.rarely(0.3, {"lease": 25}, {})

    def stage(self, tx: str) -> Step:
        name, fact = f"f{self.left['fact']}", self.fact()
        named_too = [name for name in self.names if self.chance.random() < 0.3]
        self.left["fact"] -= 1
        self.open[tx] += 1
        self.names.append(name)
        return {"op": "stage", "tx": tx, "id": name, "fact": fact, "supersedes": named_too or None}

    def read(self, tx: str) -> Step:
        subject, attribute = self.chance.choice(SLOTS)
        return {"op": "read", "tx": tx, "subject": subject, "attribute": attribute}

    def gate(self, tx: str) -> Step:
        premises = self.chance.sample(self.names, min(len(self.names), self.chance.choice((0, 1, 1, 1, 2))))
        step = {"op": "gate", "tx": tx, "tool": self.chance.choice(TOOLS), "premises": premises}
        return step | {"action": f"a{len(self.trace)}", "effect": self.chance.choice(EFFECTS)}

    def close(self, tx: str) -> Step:
        del self.open[tx]
        mode = self.rarely(0.3, "partial", "atomic")
        return self.rarely(0.12, {"op": "abort", "tx": tx}, {"op": "commit", "tx": tx, "mode": mode})

    def elsewhere(self) -> Step:
        """Return a step that belongs to no transaction."""
        asked = [step["action"] for step in self.trace if step["op"] == "gate"]
        steps: Trace = [{"op": "tick", "by": self.chance.choice((1, 10, 30))}, {"op": "recover"}]
        steps += [{"op": self.rarely(0.3, "tombstone", "revoke"), "id": self.chance.choice(self.names or ["f1"])}]
        steps += [{"op": "finish", "action": self.chance.choice(asked or ["a1"]), "effect": "done"}]
        return self.chance.choice(steps)

    def next(self) -> Step:
        """Return one more step."""
        if self.left["tx"] and (not self.open or self.chance.random() < 0.2):
            return self.begin()
        if not self.open or self.chance.random() < 0.15:
            return self.elsewhere()
        tx = self.chance.choice(list(self.open))
        what = [self.gate, self.gate, self.read, *[self.stage] * 4 * bool(self.left["fact"])]
        return self.chance.choice([*what, *[self.close] * min(self.open[tx], 2)])(tx)


def made_trace(seed: int) -> Trace:
    """Return the trace of a number: seeds, two to five transactions, three to six drafts, and what comes between."""
    maker = Maker(seed)
    maker.seeds()
    while len(maker.trace) < STEPS_IN_A_TRACE:
        maker.trace.append(maker.next())
    return maker.trace


def shortened(trace: Trace, broken: Callable[[Trace], Any]) -> Trace:
    """Return a trace from which no step can be left out without mending what is broken."""
    place = 0
    while place < len(trace):
        shorter = trace[:place] + trace[place + 1 :]
        if broken(shorter):
            trace = shorter
        else:
            place += 1
    return trace


# Every short trace of three records and two transactions

SMALL: dict[str, dict[str, Any]] = {
    "r1": {"subject": "svc", "attribute": "version", "value": "one", "source": "x", "authority": 0.6},
    "r2": {"subject": "svc", "attribute": "plan", "value": "go", "source": "x", "derived_from": ["r1"]},
    "r3": {"subject": "svc", "attribute": "version", "value": "two", "source": "y", "authority": 0.9},
}
OPENINGS: Trace = [{"op": "begin", "tx": "t1"}, {"op": "begin", "tx": "t2", "agent": "b"}]
ALPHABET: Trace = [
    *({"op": "stage", "tx": tx, "id": name, "fact": SMALL[name]} for tx in ("t1", "t2") for name in SMALL),
    *({"op": "commit", "tx": tx, "mode": "atomic"} for tx in ("t1", "t2")),
    *({"op": "abort", "tx": tx} for tx in ("t1", "t2")),
    *({"op": "revoke", "id": name} for name in SMALL),
    *({"op": "gate", "tx": tx, "tool": "hold_seat", "premises": ["r1"], "action": f"seat {tx}"} for tx in ("t1", "t2")),
    {"op": "gate", "tx": "t2", "tool": "wire", "premises": ["r1"], "action": "pay"},
]
"""All that may happen between the openings: the second transaction may also begin later."""


def short_traces(make: Callable[[], Machine], depth: int) -> Iterator[tuple[Trace, list[str]]]:
    """Return every trace of so many steps that leads somewhere new, and what it broke.

    Two traces that lead to the same rows are one from there on.
    """
    seen: set[str] = set()
    edge: list[Trace] = [[OPENINGS[0]]]
    for _ in range(depth):
        reached: list[Trace] = []
        for trace in edge:
            for step in (*ALPHABET, OPENINGS[1]):
                longer = [*trace, step]
                rows, found = end_of(make(), longer)
                if rows is None or (mark := signature(rows)) in seen:
                    continue
                seen.add(mark)
                reached.append(longer)
                yield longer, found
        edge = reached


def end_of(machine: Machine, trace: Trace) -> tuple[Rows | None, list[str]]:
    """Play all but the last step, watch the last, and return the rows; None when it was not possible."""
    for step in trace[:-1]:
        take(machine, step)
    if not possible(trace[-1], machine.rows()):
        return None, []
    take_last = Watch(machine)
    take_last.take(trace[-1])
    return machine.rows(), take_last.found


def signature(rows: Rows) -> str:
    """Return what tells two ends apart; how often the gate was asked does not."""
    return repr({name: rows[name] for name in ("records", "transactions", "actions", "repairs", "audit")})
