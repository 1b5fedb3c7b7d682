"""The vocabulary: every word that help, README, errors and JSON use, defined once.

Imports nothing of ours. Values of the enums are what stands in the file and in JSON.
"""

from enum import StrEnum


class State(StrEnum):
    """What the file holds of a version; the moves between states are in `MOVES`."""

    TENTATIVE = "tentative"
    ACCEPTED = "accepted"
    VERIFIED = "verified"
    DISPUTED = "disputed"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    REJECTED = "rejected"


READABLE = frozenset({State.ACCEPTED, State.VERIFIED})
"""States that reach a prompt; every other state is withheld."""

FINAL = frozenset({State.SUPERSEDED, State.REVOKED, State.REJECTED})
"""States a version never leaves."""

MOVES: frozenset[tuple[State | None, State]] = frozenset(
    {
        (None, State.TENTATIVE),
        (None, State.ACCEPTED),
        (State.TENTATIVE, State.ACCEPTED),
        (State.TENTATIVE, State.DISPUTED),
        (State.TENTATIVE, State.REJECTED),
        (State.TENTATIVE, State.REVOKED),
        (State.ACCEPTED, State.VERIFIED),
        (State.ACCEPTED, State.DISPUTED),
        (State.ACCEPTED, State.SUPERSEDED),
        (State.ACCEPTED, State.REVOKED),
        (State.ACCEPTED, State.REJECTED),
        (State.VERIFIED, State.DISPUTED),
        (State.VERIFIED, State.SUPERSEDED),
        (State.VERIFIED, State.REVOKED),
        (State.VERIFIED, State.REJECTED),
        (State.DISPUTED, State.ACCEPTED),
        (State.DISPUTED, State.TENTATIVE),
        (State.DISPUTED, State.SUPERSEDED),
        (State.DISPUTED, State.REVOKED),
        (State.DISPUTED, State.REJECTED),
    }
)
"""Every move a version may make; anything else breaks an invariant."""


class Admission(StrEnum):
    """Whether a written item is trusted at once."""

    DIRECT = "direct"
    REVIEW = "review"
    CHECKED = "checked"


class Kind(StrEnum):
    """What a fact is: a belief, or a view or action built on beliefs."""

    BELIEF = "belief"
    SUMMARY = "summary"
    PROFILE = "profile"
    INDEX = "index"
    SHARED_COPY = "shared_copy"
    TOOL_ACTION = "tool_action"


VIEWS = frozenset({Kind.SUMMARY, Kind.PROFILE, Kind.INDEX, Kind.SHARED_COPY})
"""Kinds that a cascade holds for rebuilding (`disputed`) instead of revoking."""


class Visibility(StrEnum):
    """Who may see a fact: private is narrower than shared, shared narrower than public."""

    PRIVATE = "private"
    SHARED = "shared"
    PUBLIC = "public"


class ActorKind(StrEnum):
    """What acted, observed from the channel and never from what a payload claims."""

    HUMAN = "human"
    SCRIPT = "script"
    IMPORTER = "importer"
    EXTRACTOR = "extractor"
    ORACLE = "oracle"
    SERVER = "server"


class Channel(StrEnum):
    """The way an action came in."""

    TERMINAL = "terminal"
    PIPE = "pipe"
    IMPORT = "import"
    EXTRACT = "extract"
    ORACLE = "oracle"
    DECISIONS = "decisions"
    API = "api"
    SERVER = "server"


class How(StrEnum):
    """How a fact was derived from another."""

    INFERRED = "inferred"
    SUMMARISED = "summarised"
    CONDENSED = "condensed"
    COPIED = "copied"


class Match(StrEnum):
    """What a tombstone stops: a value, or texts that contain or match a pattern."""

    VALUE = "value"
    CONTAINS = "contains"
    REGEX = "regex"


class SourceKind(StrEnum):
    """Where evidence came from; decides its authority when the policy names nothing closer."""

    HUMAN = "human"
    SYSTEM = "system"
    TOOL = "tool"
    AGENT = "agent"
    DOCUMENT = "document"


class Role(StrEnum):
    """Who speaks in a message; a spelling that no tool is known for becomes `unknown`."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    UNKNOWN = "unknown"


class Op(StrEnum):
    """What an audit event records."""

    INIT = "init"
    MIGRATE = "migrate"
    ADD = "add"
    CORROBORATE = "corroborate"
    CORRECT = "correct"
    RETRACT = "retract"
    TOMBSTONE = "tombstone"
    LIFT = "lift"
    VERIFY = "verify"
    DISPUTE = "dispute"
    ERASE = "erase"
    UNDO = "undo"
    ACCEPT = "accept"
    REJECT = "reject"
    SUPERSEDE = "supersede"
    CASCADE = "cascade"
    MERGE = "merge"
    KEEP = "keep"
    PROPOSE = "propose"
    SETTLE = "settle"
    IMPORT = "import"
    EXTRACT = "extract"
    RESTORE = "restore"
    CONDENSE = "condense"
    SCOPE = "scope"
    POLICY = "policy"
    REFUSE = "refuse"
    READ = "read"
    BEGIN = "begin"
    STAGE = "stage"
    COMMIT = "commit"
    HOLD = "hold"
    ABORT = "abort"
    GATE = "gate"
    ACT = "act"
    REVOKE = "revoke"
    EFFECT = "effect"
    REBUILD = "rebuild"


EXPLAINED = frozenset({Op.CORRECT, Op.RETRACT, Op.TOMBSTONE, Op.LIFT, Op.REVOKE, Op.ERASE, Op.UNDO})
"""Changes that need a reason."""


class Decision(StrEnum):
    """What a reviewer says of one item of the queue."""

    ACCEPT = "accept"
    VERIFY = "verify"
    EDIT = "edit"
    REJECT = "reject"
    RETRACT = "retract"
    KEEP_BOTH = "keep-both"
    MERGE = "merge"
    DISPUTE = "dispute"
    SKIP = "skip"


class Waiting(StrEnum):
    """Why an item stands in the review queue."""

    TENTATIVE = "tentative"
    DISPUTED = "disputed"
    NEAR_DUPLICATE = "near-duplicate"
    EVIDENCE_ERASED = "evidence-erased"
    PROPOSAL = "proposal"


class Tier(StrEnum):
    """How much hangs on a transaction; the policy of the file says up to which tier an agent may go."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTERNAL = "external"


class Isolation(StrEnum):
    """What a transaction reads: everything that stands, what is believed, that on firm ground, or the verified."""

    RAW = "raw"
    ACCEPTED = "accepted"
    STABLE = "stable"
    VERIFIED = "verified"


DEFAULT_ISOLATION: dict[Tier, Isolation] = {
    Tier.LOW: Isolation.ACCEPTED,
    Tier.MEDIUM: Isolation.ACCEPTED,
    Tier.HIGH: Isolation.STABLE,
    Tier.EXTERNAL: Isolation.VERIFIED,
}

DEFAULT_TIER = Tier.MEDIUM
"""The highest tier of an agent that the policy of the file does not name."""


class TxStatus(StrEnum):
    """What became of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    HELD = "held"
    ABORTED = "aborted"


class Ruling(StrEnum):
    """What a check says of a staged fact."""

    PASS = "pass"  # noqa: S105  # no password
    HOLD = "hold"
    REFUSE = "refuse"


class Code(StrEnum):
    """Which check a staged fact did not pass, in the order in which they are made."""

    PASS = "PASS"  # noqa: S105  # no password
    E_NO_EVIDENCE = "E_NO_EVIDENCE"
    E_LOW_CONF = "E_LOW_CONF"
    E_UNCORROBORATED = "E_UNCORROBORATED"
    V_FUTURE = "V_FUTURE"
    V_EXPIRED = "V_EXPIRED"
    P_SCOPE_WIDEN = "P_SCOPE_WIDEN"
    P_UNDECLARED_READ = "P_UNDECLARED_READ"
    P_CONTENT_OVERLAP = "P_CONTENT_OVERLAP"
    P_NOT_WRITER = "P_NOT_WRITER"
    C_TOMBSTONED = "C_TOMBSTONED"
    C_INTRA_TX = "C_INTRA_TX"
    C_STALE_LATE_WRITE = "C_STALE_LATE_WRITE"
    C_RETRY_NO_NEW_EVIDENCE = "C_RETRY_NO_NEW_EVIDENCE"
    C_ECHO = "C_ECHO"
    C_LOWER_AUTHORITY = "C_LOWER_AUTHORITY"
    C_EQUAL_AUTHORITY = "C_EQUAL_AUTHORITY"
    D_REVOKED_ANCESTOR = "D_REVOKED_ANCESTOR"
    D_DISPUTED_ANCESTOR = "D_DISPUTED_ANCESTOR"
    D_UNSETTLED_ANCESTOR = "D_UNSETTLED_ANCESTOR"
    D_STALE_ANCESTOR = "D_STALE_ANCESTOR"
    X_VERIFIER = "X_VERIFIER"
    X_LEASE_OVER = "X_LEASE_OVER"
    X_ABORTED = "X_ABORTED"


RULINGS: dict[Code, Ruling] = dict.fromkeys(Code, Ruling.HOLD) | {
    Code.PASS: Ruling.PASS,
    Code.C_TOMBSTONED: Ruling.REFUSE,
    Code.C_STALE_LATE_WRITE: Ruling.REFUSE,
    Code.C_LOWER_AUTHORITY: Ruling.REFUSE,
    Code.X_LEASE_OVER: Ruling.REFUSE,
    Code.X_ABORTED: Ruling.REFUSE,
}
"""What each code means for the fact; a verifier may make a hold of its own a refusal."""

HELD_WITH_TX = "HELD_WITH_TX"
"""Why a fact that passed every check is disputed: another of its transaction did not."""

HELD_FOR_REVIEW = "HELD_FOR_REVIEW"
"""Why a fact that passed every check is disputed: in a reviewed file a person decides what is believed."""


class Block(StrEnum):
    """Why the gate is shut."""

    G1_UNSETTLED = "G1_UNSETTLED"
    G2_NO_VERIFIED = "G2_NO_VERIFIED"
    G3_NO_PREMISE = "G3_NO_PREMISE"
    G3_PREMISE_STATE = "G3_PREMISE_STATE"
    G3_PREMISE_EXPIRED = "G3_PREMISE_EXPIRED"
    G3_PREMISE_UNSTABLE = "G3_PREMISE_UNSTABLE"
    G5_WEAK_ISOLATION = "G5_WEAK_ISOLATION"
    G6_PREMISE_NOT_IN_SNAPSHOT = "G6_PREMISE_NOT_IN_SNAPSHOT"
    G7_CONTESTED = "G7_CONTESTED"
    G8_SINK_SCOPE = "G8_SINK_SCOPE"


class Profile(StrEnum):
    """Which rules the gate applies: all of them, or the two of the published protocol."""

    STRICT = "strict"
    PAPER = "paper"


class Reversibility(StrEnum):
    """Whether what a tool does can be made good; a tool that no rule names counts as irreversible."""

    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


class ActionState(StrEnum):
    """How far a tool call has come."""

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class EffectKind(StrEnum):
    """What an action owes whose premise is dead."""

    LEAK = "leak"
    COMPENSATION = "compensation"


class EffectState(StrEnum):
    """Whether somebody has seen an effect, and whether it is dealt with."""

    OPEN = "open"
    ACKED = "acked"
    DONE = "done"


DEFAULT_SCOPE = "default"
DEFAULT_ENCODING = "o200k_base"

DEFAULT_AUTHORITY: dict[str, float] = {
    "terminal": 0.9,
    SourceKind.HUMAN: 0.6,
    SourceKind.SYSTEM: 0.7,
    SourceKind.TOOL: 0.6,
    SourceKind.AGENT: 0.5,
    SourceKind.DOCUMENT: 0.5,
}
"""Authority (0 to 1) of a source that the file's policy does not name."""

GLOSSARY: dict[str, str] = {
    "action": "a tool call that the gate allowed, and how far it has come",
    "actor": "who did something: a name, a kind and the channel it came through",
    "admission": "a setting of the file: direct, review or checked; is a written item trusted at once?",
    "attribute": "what of the subject a fact speaks of, such as “home city”",
    "audit event": "one row of the log, for one change or refusal; each carries the hash of the one before",
    "authority": "how much a source counts, 0 to 1, set by the policy of the file",
    "block": "a piece of long-term memory that is put into a prompt",
    "budget": "how many tokens a prompt may hold",
    "compensation": "what must be done to make good an action whose premise was withdrawn",
    "corroboration": "new evidence for a value that is believed already; it makes no second fact",
    "derivation": "that a fact was built from another; withdrawing the parent reaches the child",
    "digest": "a keyed hash; it confirms a guess and reveals no words",
    "echo": "a withdrawn value offered again on the same evidence; refused",
    "erase": "to remove the words themselves everywhere in the file",
    "evidence": "the messages a fact came from, with the quote",
    "fact": "a statement the memory holds, with its versions, evidence and state",
    "flush": "moving the oldest messages from the window into blocks",
    "gate": "what an irreversible tool call must pass",
    "leak": "an irreversible action that was taken on a premise withdrawn later",
    "lease": "how long a transaction may stay open; past it, it is aborted",
    "lift": "to end a tombstone, with a reason",
    "message": "one turn of a transcript, kept as evidence",
    "premise": "a fact that an action relies on",
    "proposal": "a change asked for through a channel that may not decide; it waits in the review queue",
    "provenance": "the messages or source a version of a fact came from",
    "readable": "in a state that may reach a prompt: accepted or verified",
    "receipt": "the gate's leave for one tool call with these arguments on these premises; good once",
    "repair": "what a cascade did to one fact or action because a fact it came from was withdrawn",
    "residue": "words that should be gone and are still in the file",
    "retract": "to end a fact with no replacement; its value may come back on new evidence",
    "review": "going through what waits and deciding it",
    "revoke": "to withdraw a fact and all that was built on it, actions included",
    "scope": "whose memory it is; a read or write sees one scope and no other",
    "slot": "subject and attribute together: the place that holds one value at a time",
    "snapshot": "the newest event when a transaction began; it reads what stood then",
    "source": "a transcript, document, store or statement that evidence came from",
    "stage": "to offer a fact inside a transaction; it is believed when that commits",
    "stale": "built on a value that another has taken the place of",
    "state": "tentative, accepted, verified, disputed, superseded, revoked or rejected",
    "subject": "whom or what a fact is about",
    "tier": "how much hangs on a transaction: low, medium, high or external",
    "tombstone": "a stop for a value, whoever offers it, until a person lifts it",
    "transaction": "staged facts that are checked and committed together",
    "transaction time": "when the file knew something; set by the file, never by a caller",
    "truncation": "cutting blocks so that a prompt fits its budget",
    "valid time": "when something was true in the world",
    "value": "what a slot holds; any JSON scalar",
    "verdict": "what the checks said of a staged fact: pass, or the first rule it did not pass",
    "version": "what a fact said at one time; a correction starts the next",
}
"""Each word once, in the plain sentence that `mem glossary` prints."""

GLOSSARY_STATES: dict[State, str] = {
    State.TENTATIVE: "offered, not believed",
    State.ACCEPTED: "believed, reaches prompts",
    State.VERIFIED: "accepted, and confirmed by a person at a terminal, a named oracle or an external commit",
    State.DISPUTED: "held: two sources of equal authority disagree, or a check held it",
    State.SUPERSEDED: "a better value took its place",
    State.REVOKED: "withdrawn, or fell with what it was derived from",
    State.REJECTED: "a person refused the value; a tombstone stands",
}
