"""What the cases can tell apart: the writer without any one check, gate rule or branch of the cascade fails some case.

Each mutation switches off one rule, for all cases, and is noticed when a case fails that passes otherwise.
"""

from collections.abc import Callable
from functools import cache

import pytest

from memcli.facts import Validity
from memcli.store.effects import Acting
from memcli.store.ledger import Ledger
from memcli.store.remove import Removing
from memcli.store.scratch import scratch
from memcli.store.transact import Transacting
from memcli.store.tx_scene import Seeing
from memcli.terms import (
    READABLE,
    VIEWS,
    ActionState,
    Block,
    Code,
    EffectKind,
    Isolation,
    Kind,
    Profile,
    Reversibility,
    Ruling,
    State,
    Tier,
)
from memcli.transactions import cascade, checks, gate, settings
from memcli.transactions.replay import replay
from memcli.transactions.scene import Failure, Scene
from tests.model_transactions import FIXTURES, tools

PROFILES = {
    "own": Profile.STRICT,
    "published": Profile.STRICT,
    "hardened": Profile.STRICT,
    "paper": Profile.PAPER,
}
Patch = Callable[[pytest.MonkeyPatch], None]


@cache
def every() -> list[tuple[Profile, str]]:
    """Return each case as a line of text, and the profile of the gate that it is written for."""
    return [
        (profile, line)
        for name, profile in PROFILES.items()
        for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def noticed(hint: str = "") -> str | None:
    """Return the id of the first case that fails, those that name a code or an id first; None where all pass."""
    for profile, line in sorted(every(), key=lambda item: hint not in item[1]):
        (result,) = replay([line], scratch=scratch, tools=tools(), profile=profile)
        if not result.passed:
            return result.id
    return None


# What is switched off


def without_check(code: Code) -> Patch:
    left = tuple(rule for rule in checks.RULES if rule[0] is not code)
    return lambda patch: patch.setattr(checks, "RULES", left)


def without_block(block: Block) -> Patch:
    real = gate._blocks  # noqa: SLF001 -- every reason passes here, and one of them is to be left out

    def blocks(call):
        return ((found, names) for found, names in real(call) if found is not block)

    return lambda patch: patch.setattr(gate, "_blocks", blocks)


def instead(owner: object, name: str, value: object) -> Patch:
    return lambda patch: patch.setattr(owner, name, value)


def changed(owner: object, name: str, change: Callable[..., object]) -> Patch:
    """Give a function or method its old self as the first argument."""
    real = getattr(owner, name)

    def mutated(*args, **kwargs):
        return change(real, *args, **kwargs)

    return lambda patch: patch.setattr(owner, name, mutated)


def fate_without(which: Callable[[Kind, State], bool], to: State | None = None) -> Patch:
    """Let some facts fall otherwise, in the plan of a cascade and where it is carried out."""
    real = cascade.fate

    def fate(kind, state):
        return to if which(kind, state) and real(kind, state) is not None else real(kind, state)

    def patched(patch):
        patch.setattr(cascade, "fate", fate)
        patch.setattr("memcli.store.ledger.fate", fate)

    return patched


def owes_without(kind: EffectKind) -> Patch:
    return changed(cascade, "owes", lambda real, *given: None if real(*given) is kind else real(*given))


def only_children(_real, self, number):
    found = self.conn.execute("select child from derivations where parent = ?", (number,)).fetchall()
    return [child for (child,) in found]


def through_living(real, self, number):
    """Walk no further than the first fact that is over or held."""
    over = {State.REVOKED, State.REJECTED, State.SUPERSEDED, State.DISPUTED}
    found = real(self, number)
    stops = {child for child in found if State(str(self.newest(child).field("state"))) in over}
    behind = {below for child in stops for below in real(self, child)}
    return [child for child in found if child not in behind]


def settle_planned(real, self, action, root):
    return None if action.state is ActionState.PLANNED else real(self, action, root)


def end_only(_real, self, number, op, reason):
    row = self.newest(number)
    if row.field("state") == State.TENTATIVE or op == "revoke":
        self.move(row, State.REVOKED, op, reason=reason)
    if op == "revoke":
        self.cascade(number)


def end_at_commit_only(real, self, number, op, reason):
    """Repair nothing after an abort; after a refusal of a check, as ever."""
    return (
        end_only(None, self, number, op, reason) if "was aborted" in (reason or "") else real(self, number, op, reason)
    )


def end_at_abort_only(real, self, number, op, reason):
    """Repair nothing after a refusal of a check; after an abort, as ever."""
    return (
        real(self, number, op, reason) if "was aborted" in (reason or "") else end_only(None, self, number, op, reason)
    )


def reject_only(_real, self, number):
    row = self.newest(number)
    if State(str(row.field("state"))) in READABLE:
        self.move(row, State.REJECTED, "reject")


def believe_the_passed(real, self, tx, name, failures, *others):
    if failures:
        real(self, tx, name, failures, *others)
    else:
        self._note(tx, name, Code.PASS)
        self._believed(self.fact_number(name), tx.tier)


def scene_with(**change: object) -> Patch:
    """Let the checks see something else."""

    def seen(real, self, tx):
        scene = real(self, tx)
        told = {field: getattr(scene, field) for field in Scene.__dataclass_fields__}
        return Scene(**{**told, **change})

    return changed(Seeing, "scene", seen)


def others_only(real, self, tx):
    """Overlook the drafts of a transaction itself."""
    return ((name, within) for name, within in real(self, tx) if name not in tx.staged)


def at_isolation(level: Isolation, taken_for: Isolation) -> Patch:
    """Let one isolation read as another."""

    def seen(real, self, tx, row, at):
        return real(self, with_isolation(tx, taken_for) if tx.isolation is level else tx, row, at)

    return changed(Seeing, "_seen_by", seen)


def with_isolation(tx, isolation):
    told = {field: getattr(tx, field) for field in type(tx).__dataclass_fields__}
    return type(tx)(**{**told, "isolation": isolation})


def as_owner(real, self, tx, row, at):
    told = {field: getattr(tx, field) for field in type(tx).__dataclass_fields__}
    owner = row.fact_field("owner")
    return real(self, type(tx)(**{**told, "agent": tx.agent if owner is None else owner}), row, at)


def premise_as(tier: Tier) -> Patch:
    def blocks(real, call, premise):
        told = {field: getattr(call, field) for field in type(call).__dataclass_fields__}
        return real(type(call)(**{**told, "tier": tier}), premise)

    return changed(gate, "_premise", blocks)


def ranked(real, bench, item):
    """Let a higher authority take nothing's place."""
    found = bench.contested(item)
    return real(bench, item) or (tuple(rival.id for rival in found) or None)


def staged_anyhow(real, self, tx, claim, supersedes=None):
    self.check_tombstones = lambda *_: None
    try:
        return real(self, tx, claim, supersedes)
    finally:
        del self.check_tombstones


OWN_ORIGIN = changed(
    checks.Bench,
    "contested",
    lambda _, bench, item: [
        rival for rival in bench.rivals(item) if rival.id not in bench.scene.named.get(item.id, ())
    ],
)

CHECKS = {str(code): (without_check(code), str(code)) for code, _ in checks.RULES}
BLOCKS = {str(block): (without_block(block), str(block)) for block in Block}
CASCADES: dict[str, tuple[Patch, str]] = {
    "beliefs stay": (fate_without(lambda kind, state: kind not in VIEWS and state is not State.TENTATIVE), "OW70"),
    "views stay": (fate_without(lambda kind, _: kind in VIEWS), "OW70"),
    "views are revoked": (fate_without(lambda kind, _: kind in VIEWS, State.REVOKED), "OW70"),
    "drafts stay": (fate_without(lambda _, state: state is State.TENTATIVE), "OW75"),
    "views that wait are held": (
        fate_without(lambda kind, state: kind in VIEWS and state is State.TENTATIVE, State.DISPUTED),
        "OW75",
    ),
    "held beliefs stay": (fate_without(lambda kind, state: kind not in VIEWS and state is State.DISPUTED), "HD15"),
    "no compensation is due": (owes_without(EffectKind.COMPENSATION), "OW67"),
    "nothing leaks": (owes_without(EffectKind.LEAK), "OW65"),
    "reversible calls leak": (
        changed(cascade, "owes", lambda real, *given: EffectKind.LEAK if real(*given) else None),
        "OW67",
    ),
    "calls that are not done owe": (
        changed(cascade, "owes", lambda real, _, kind: real(ActionState.DONE, kind)),
        "OW66",
    ),
    "planned calls stay": (changed(Acting, "_settle_action", settle_planned), "CR05"),
    "only children fall": (changed(Ledger, "descendants", only_children), "CR01"),
    "what is over stops the fall": (changed(Ledger, "descendants", through_living), "CR06"),
    "calls are not reached": (instead(Acting, "_resting_on", lambda *_: []), "OW65"),
    "nothing is owed at birth": (instead(Acting, "_grounded", lambda _, action: action), "OW69"),
    "an abort leaves what stands on it": (changed(Transacting, "withdraw", end_at_commit_only), "OW67"),
    "a refusal leaves what stands on it": (changed(Transacting, "withdraw", end_at_abort_only), "OW68"),
    "a tombstone leaves what stands on it": (changed(Removing, "end_value", reject_only), "OW71"),
    "nobody loses sight of a running call": (instead(Acting, "lose_sight", lambda *_: None), "OW62"),
}
BRANCHES: dict[str, tuple[Patch, str]] = {
    "authority is a record's own": (changed(checks.Bench, "authority", lambda _, __, item: item.authority), "OW04"),
    "higher authority supersedes nothing": (
        instead(
            checks,
            "RULES",
            tuple(
                (
                    code,
                    (lambda bench, item, real=rule: ranked(real, bench, item))
                    if code is Code.C_EQUAL_AUTHORITY
                    else rule,
                )
                for code, rule in checks.RULES
            ),
        ),
        "OW39",
    ),
    "no source supersedes itself": (OWN_ORIGIN, "OW29"),
    "nobody may name what is superseded": (scene_with(named={}), "OW32"),
    "disjoint intervals meet": (instead(Validity, "overlaps", lambda *_: True), "OW24"),
    "new evidence counts for nothing": (instead(checks, "nothing_new", lambda *_: True), "OW29"),
    "what is believed already is an echo": (instead(checks.Bench, "agrees", lambda *_: False), "OW76"),
    "a trusted source's doubt holds": (instead(checks, "TRUSTED", 2.0), "TC01"),
    "confidence of less is enough": (instead(checks, "LOW_CONFIDENCE", 0.5), "OW02"),
    "one source corroborates": (instead(checks, "FEWEST_SOURCES", 1), "OW05"),
    "two sources do not corroborate": (instead(checks, "FEWEST_SOURCES", 9), "OW06"),
    "everybody is weak": (instead(checks, "WEAK", 2.0), "OW07"),
    "a shared sentence is no copy": (instead(checks, "MOST_SHARED", 0.95), "OW15"),
    "a shared run of words is a copy": (instead(checks, "MOST_SHARED", 0.05), "OW16"),
    "a draft that fell passes": (
        instead(checks, "_fallen", lambda item: Failure(code=Code.PASS, ruling=Ruling.PASS, about=(item.id,))),
        "OW77",
    ),
    "a fact is checked before its parents are": (
        changed(checks.Bench, "settle", lambda *_: None),
        "OW40",
    ),
    "an external commit verifies nothing": (
        changed(Transacting, "_believed", lambda real, self, number, _: real(self, number, Tier.MEDIUM)),
        "OW06",
    ),
    "what passed is believed beside what did not": (changed(Transacting, "_fail", believe_the_passed), "OW22"),
    "a tombstoned value is staged": (
        changed(Transacting, "stage", staged_anyhow),
        "OW20",
    ),
    "a claim of authority counts as it stands": (
        changed(
            Transacting,
            "source_authority",
            lambda real, self, claim, backing: real(self, claim, backing) if claim.authority is None else 1.0,
        ),
        "OW02",
    ),
    "own drafts leave the gate open": (changed(Acting, "_unsettled", others_only), "OW44"),
    "an unlisted tool is reversible": (
        changed(
            settings,
            "tool",
            lambda real, rules, name: real(rules, name) if name in tools() else (Reversibility.REVERSIBLE, None),
        ),
        "OW57",
    ),
    "a reversible tool is stopped": (
        changed(settings, "tool", lambda real, *given: (Reversibility.IRREVERSIBLE, real(*given)[1])),
        "OW67",
    ),
    "an external call takes what is accepted": (premise_as(Tier.MEDIUM), "OW45"),
    "an ordinary call needs what is verified": (premise_as(Tier.EXTERNAL), "OW31"),
    "any rival that waits contests": (instead(Acting, "_last_code", lambda *_: None), "HD40"),
    "the snapshot moves on": (changed(Seeing, "snapshot_at", lambda *_: 1 << 60), "OW61"),
    "everybody reads what is private": (changed(Seeing, "_seen_by", as_owner), "OW18"),
    "a stable read takes what is shaky": (at_isolation(Isolation.STABLE, Isolation.ACCEPTED), "OW59"),
    "a verified read takes what is accepted": (at_isolation(Isolation.VERIFIED, Isolation.ACCEPTED), "OW60"),
    "a raw read takes no drafts": (at_isolation(Isolation.RAW, Isolation.ACCEPTED), "DR05"),
    "a read takes what has ended": (instead(Validity, "covers", lambda *_: True), "OW49"),
    "a lease has no end": (changed(Seeing, "moment", lambda *_: 0), "OW62"),
}


# With each stands the code that the cases about it expect, or the id of a case that notices, so that it is soon found.
MUTATIONS = {**CHECKS, **BLOCKS, **CASCADES, **BRANCHES}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_writer_without_one_rule_fails_a_case(monkeypatch: pytest.MonkeyPatch, name: str):
    mutation, hint = MUTATIONS[name]
    mutation(monkeypatch)

    assert noticed(hint) is not None


def test_every_check_and_every_gate_rule_is_switched_off_once():
    assert len(CHECKS) == len(checks.RULES) == 20
    assert len(BLOCKS) == len(Block) == 10


@pytest.mark.no_cover
def test_the_whole_writer_fails_no_case():
    assert noticed() is None
