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
    SCOPE = "scope"
    POLICY = "policy"
    REFUSE = "refuse"
    READ = "read"


EXPLAINED = frozenset({Op.CORRECT, Op.RETRACT, Op.TOMBSTONE, Op.LIFT, Op.ERASE, Op.UNDO})
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
    "lift": "to end a tombstone, with a reason",
    "message": "one turn of a transcript, kept as evidence",
    "premise": "a fact that an action relies on",
    "proposal": "a change asked for through a channel that may not decide; it waits in the review queue",
    "provenance": "the messages or source a version of a fact came from",
    "readable": "in a state that may reach a prompt: accepted or verified",
    "residue": "words that should be gone and are still in the file",
    "retract": "to end a fact with no replacement; its value may come back on new evidence",
    "review": "going through what waits and deciding it",
    "scope": "whose memory it is; a read or write sees one scope and no other",
    "slot": "subject and attribute together: the place that holds one value at a time",
    "source": "a transcript, document, store or statement that evidence came from",
    "state": "tentative, accepted, verified, disputed, superseded, revoked or rejected",
    "subject": "whom or what a fact is about",
    "tombstone": "a stop for a value, whoever offers it, until a person lifts it",
    "transaction": "staged facts that are checked and committed together",
    "transaction time": "when the file knew something; set by the file, never by a caller",
    "truncation": "cutting blocks so that a prompt fits its budget",
    "valid time": "when something was true in the world",
    "value": "what a slot holds; any JSON scalar",
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
