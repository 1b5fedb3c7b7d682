"""What transactions, the gate and the cascade talk about: frozen data, beside that of `facts`."""

from collections.abc import Mapping
from dataclasses import field

from memcli.facts import Actor, Fact, Json, Micros
from memcli.record import record
from memcli.terms import (
    ActionState,
    Code,
    EffectKind,
    EffectState,
    Isolation,
    Profile,
    Reversibility,
    Ruling,
    Tier,
    TxStatus,
)


@record
class Transaction:
    """One transaction, such as `tx3`. `snapshot` is the number of the newest event when it began."""

    id: str
    scope: str
    agent: str
    tier: Tier
    isolation: Isolation
    snapshot: int
    status: TxStatus
    actor: Actor
    begun_at: Micros
    lease_until: Micros
    closed_at: Micros | None
    staged: tuple[str, ...] = ()
    verdicts: Mapping[str, Code] = field(default_factory=dict)


@record
class Check:
    """One rule that a staged fact does not pass, or that it passes them all; `about` names what stands in the way."""

    fact: str
    code: Code
    ruling: Ruling
    about: tuple[str, ...] = ()


@record
class Answer:
    """What a verifier said of one staged fact, and the digest of what it was asked.

    `ruling` is a hold where it could not be asked or its answer could not be read; `reason` says why.
    """

    fact: str
    asked: str
    ruling: Ruling
    reason: str


@record
class Verdict:
    """What became of a commit: the first code of each staged fact; `calls` counts how often a verifier ran."""

    tx: str
    status: TxStatus
    verdicts: Mapping[str, Code]
    calls: int = 0


@record
class Receipt:
    """The gate's leave for one tool call: these arguments, these versions of the premises; good once."""

    id: str
    tx: str
    tool: str
    reversibility: Reversibility
    args_digest: str
    profile: Profile
    seq: int
    at: Micros
    premises: Mapping[str, tuple[int, int]]


@record
class GateAnswer:
    """Whether a tool call may go ahead. `reasons` carry the codes, that of unsettled facts their ids too."""

    allow: bool
    reasons: tuple[str, ...]
    blockers: tuple[str, ...]
    receipt: Receipt | None = None


@record
class Action:
    """One tool call that the gate allowed, such as `a2`."""

    id: str
    receipt: str
    tx: str
    tool: str
    reversibility: Reversibility
    state: ActionState
    premises: tuple[str, ...]
    at: Micros
    changed_at: Micros


@record
class Effect:
    """What an action owes because `root`, which it or its premises came from, was withdrawn."""

    id: str
    kind: EffectKind
    action: str
    tool: str
    root: str
    state: EffectState
    at: Micros


@record
class Repair:
    """What a cascade from `root` did to one record, a fact or an action."""

    root: str
    record: str
    outcome: str
    at: Micros


@record
class Fall:
    """One record that falls with a fact, what becomes of it, and what falls with it in turn; each record stands once.

    `fact` or `action` is None. `becomes` is a state, an effect, or `unchanged` where nothing is left to do.
    """

    fact: Fact | None
    action: Action | None
    becomes: str
    below: tuple["Fall", ...] = ()


@record
class Question:
    """What a verifier is asked about one staged fact: the candidate, its rivals and its evidence as JSON."""

    fact: str
    request: Json
