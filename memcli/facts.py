"""What the product talks about: frozen data with no behaviour but its invariants.

Instants are whole microseconds since 1970-01-01T00:00:00Z (`Micros`); `None` means "unknown" for a beginning
and "no known end" for an end. Intervals are half-open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from memcli.errors import NotAllowed
from memcli.record import record
from memcli.terms import (
    READABLE,
    ActorKind,
    Channel,
    How,
    Kind,
    Match,
    Op,
    Role,
    SourceKind,
    State,
    Visibility,
    Waiting,
)

Scalar: TypeAlias = str | int | float | bool | None
Micros: TypeAlias = int
Json: TypeAlias = str | int | float | bool | list["Json"] | dict[str, "Json"] | None


@record
class Actor:
    """Who acts: a name, what kind of actor, and the channel it was seen on."""

    name: str
    kind: ActorKind
    channel: Channel

    @property
    def is_person(self) -> bool:
        """True only for somebody at a terminal."""
        return self.kind is ActorKind.HUMAN and self.channel is Channel.TERMINAL


@record
class Validity:
    """When something is true in the world, half-open.

    Raises:
        NotAllowed: It ends before it begins, or when it begins.
    """

    start: Micros | None = None
    end: Micros | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise NotAllowed(
                "the interval ends before it begins",
                hint="give a --valid-to that is later than --valid-from",
            )

    def covers(self, moment: Micros) -> bool:
        """Return whether the moment lies inside; an unknown beginning and an open end hold everything."""
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)

    def overlaps(self, other: "Validity") -> bool:
        """Return whether some moment lies in both."""
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )


@record
class ToolCall:
    """A call that an assistant message makes: `arguments` as JSON text or as the text that was there."""

    id: str | None
    name: str
    arguments: str


@record
class Turn:
    """One message as a reader found it, before it has a place in the file.

    Args:
        content: The text that was said; empty where there was none.
        at: None where the transcript says nothing that can be read as a time with a zone.
        at_text: The time as it stood, where it could not be read; nothing is invented from it.
        origin: The id the transcript gave it.
        parent: The `origin` of the message it answers.
        attachments: One short note each for an image, document or other part that is no text.
        extra: Names and words of what the record says besides: carried with it, never interpreted.
    """

    role: Role
    content: str
    name: str | None = None
    at: Micros | None = None
    at_text: str | None = None
    origin: str | None = None
    parent: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: str | None = None
    attachments: tuple[str, ...] = ()
    raw_role: str | None = None
    extra: tuple[tuple[str, str], ...] = ()


@record
class Warned:
    """One thing a reader did not take, or took with a doubt, with its 1-based line where it has one."""

    line: int | None
    message: str


@record
class Conversation:
    """A transcript as a reader found it, oldest message first, in file or parent order.

    Args:
        format: The name of the reader, such as `openai`.
        turns: A tuple, or what reads a very long one from a file of our own.
        session: The transcript's own id for it; None where it has none.
    """

    format: str
    turns: Sequence[Turn]
    session: str | None = None
    title: str | None = None


@record
class Said:
    """What a foreign store said of one thing before: an older version of it."""

    text: str
    value: Scalar = None
    at: Micros | None = None
    at_text: str | None = None


@record
class Remembered:
    """One thing that a foreign store remembers, as its reader found it; the writer decides anew what it is here.

    Args:
        format: The name of the reader, such as `mem0`.
        text: One statement that can be read without its context.
        own: `text` without what the reader put in front, where it did; a tombstone of these words stops it too.
        subject: Whom or what it is about, where the store says so.
        attribute: With `value`, only where the store itself holds one value at a time there.
        origin: The store's own id of it.
        at: When the store recorded `text`; None where it does not say.
        at_text: That time as it stood, where it could not be read as an instant.
        owner: Whose it is in the store, such as a user id.
        earlier: What it said before, oldest first.
        ended: `revoked` where the store deleted it, `superseded` where it was replaced by something else,
            `rejected` where the store refuses it for good; None where it stands.
        status: The store's own word for its state, as it stood.
        extra: What else the store says of it, as (name, words): carried with the evidence, never interpreted.
        line: 1-based, where it has one.
    """

    format: str
    text: str
    subject: str | None = None
    attribute: str | None = None
    value: Scalar = None
    kind: Kind = Kind.BELIEF
    validity: Validity = Validity()
    confidence: float | None = None
    importance: float | None = None
    owner: str | None = None
    visibility: Visibility = Visibility.SHARED
    pinned: bool = False
    origin: str | None = None
    at: Micros | None = None
    at_text: str | None = None
    earlier: tuple[Said, ...] = ()
    ended: State | None = None
    status: str | None = None
    reason: str | None = None
    author: str | None = None
    extra: tuple[tuple[str, str], ...] = ()
    line: int | None = None
    own: str | None = None


@record
class Stop:
    """A tombstone that a foreign store carries.

    Args:
        texts: What it stops, where the store still has the words.
        digests: What it stops, where it has only digests; they were made with `key`.
        key: The id and the secret (32 bytes) of the tombstone key, beside digests.
        pattern: What texts must contain or match, for `contains` and `regex`.
        everywhere: In every scope.
    """

    format: str
    match: Match = Match.VALUE
    texts: tuple[str, ...] = ()
    digests: tuple[bytes, ...] = ()
    key: tuple[str, bytes] | None = None
    pattern: str | None = None
    normaliser: int | None = None
    everywhere: bool = False
    reason: str | None = None
    author: str | None = None
    at: Micros | None = None
    origin: str | None = None
    line: int | None = None


Found: TypeAlias = "Conversation | Remembered | Stop"
"""What a reader may yield."""


@record
class Source:
    """Where evidence came from. `path` is as it was given; `digest` is SHA-256 of the bytes that were read."""

    id: str
    scope: str
    kind: SourceKind
    format: str
    path: str | None
    session: str | None
    title: str | None
    digest: str | None
    imported_at: Micros
    messages: int
    erased_at: Micros | None = None


@record
class Message:
    """One message of a source, kept as evidence; its id is the source's id, `#`, and its 0-based index."""

    id: str
    source: str
    index: int
    role: Role
    content: str
    name: str | None = None
    at: Micros | None = None
    at_text: str | None = None
    origin: str | None = None
    parent: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thinking: str | None = None
    attachments: tuple[str, ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    erased_at: Micros | None = None


@record
class Evidence:
    """What a caller points at: a message of the file and the words in it that say so.

    `message` is a message id; `quote` is None where the whole message is meant.
    """

    message: str
    quote: str | None = None


@record
class Provenance:
    """What a version came from. `verified` is true where the quote stands in the message."""

    source: str
    message: str | None
    index: int | None
    role: Role | None
    quote: str | None
    verified: bool
    span: tuple[int, int] | None = None


@record
class Derivation:
    """That `child` was built from `parent`."""

    child: str
    parent: str
    how: How


@record
class Claim:
    """What somebody offers as a fact, before the file has looked at it.

    Args:
        text: The statement, one sentence as a person would write it.
        value: A JSON scalar; needs `subject` and `attribute` beside it, or all three None.
        confidence: 0 to 1, the extractor's own, or None.
        authority: 0 to 1; counts as the smaller of this and what the policy gives the source.
        derived_from: Ids of parent facts.
        source: The name of who or what says so, such as a tool; None where nobody is named.
        source_kind: What kind of source that is; None means an agent.
        references: Evidence outside the file by name, such as `src:invoice-12`; the same name is the same evidence.
    """

    text: str
    subject: str | None = None
    attribute: str | None = None
    value: Scalar = None
    kind: Kind = Kind.BELIEF
    validity: Validity = Validity()
    confidence: float | None = None
    importance: float | None = None
    authority: float | None = None
    owner: str | None = None
    visibility: Visibility = Visibility.SHARED
    pinned: bool = False
    evidence: tuple[Evidence, ...] = ()
    derived_from: tuple[str, ...] = ()
    how: How = How.INFERRED
    rule: str | None = None
    source: str | None = None
    source_kind: SourceKind | None = None
    references: tuple[str, ...] = ()

    @property
    def slot(self) -> tuple[str, str] | None:
        """Return subject and attribute, or None for a free-text statement."""
        return None if self.subject is None or self.attribute is None else (self.subject, self.attribute)


@record
class Fact:
    """One fact in one of its versions, as the file held it between `recorded_at` and `retired_at`.

    `version` counts what it said, from 1; `revision` counts what was recorded of that version (its states).
    `superseded_by` is the id of the fact that took its place, its own id for a correction, or None.
    `tokens` is None where no vocabulary was at hand when the version was written.
    """

    id: str
    scope: str
    kind: Kind
    subject: str | None
    attribute: str | None
    value: Scalar
    text: str
    state: State
    version: int
    revision: int
    confidence: float | None
    importance: float | None
    authority: float
    owner: str | None
    visibility: Visibility
    pinned: bool
    valid: Validity
    recorded_at: Micros
    retired_at: Micros | None
    actor: Actor
    rule: str | None = None
    displaced: bool = False
    superseded_by: str | None = None
    provenance: tuple[Provenance, ...] = ()
    derived_from: tuple[str, ...] = ()
    tokens: int | None = None
    encoding: str | None = None
    erased_at: Micros | None = None

    @property
    def readable(self) -> bool:
        """Return whether its state may reach a prompt."""
        return self.state in READABLE

    @property
    def slot(self) -> tuple[str, str] | None:
        """Return subject and attribute, or None for a free-text statement."""
        return None if self.subject is None or self.attribute is None else (self.subject, self.attribute)


@record
class Tombstone:
    """A stop. `scope` is None for everywhere; `pattern` is None for a value, which is kept as digests only."""

    id: str
    scope: str | None
    match: Match
    pattern: str | None
    normaliser: int
    fact: str | None
    reason: str | None
    actor: Actor
    at: Micros
    lifted_at: Micros | None
    hits: int


@record
class AuditEvent:
    """One row of the chain. `before` and `after` are keyed digests, never words."""

    seq: int
    id: str
    at: Micros
    actor: Actor
    op: Op
    target: str | None
    scope: str | None
    from_state: State | None
    to_state: State | None
    reason: str | None
    before: str | None
    after: str | None
    previous: str
    hash: str


@record
class Proposal:
    """A change asked for by somebody who may not decide; `version` is the one it was made about."""

    id: str
    fact: str
    version: int
    op: Op
    arguments: Mapping[str, Json]
    reason: str
    actor: Actor
    at: Micros


@record
class Similar:
    """A fact or tombstone that resembles an item; `score` is 0 to 100."""

    id: str
    text: str
    score: float
    state: State


@record
class Excerpt:
    """A message with the marked quote, in its neighbourhood: one message before and one after."""

    provenance: Provenance
    message: Message
    before: Message | None
    after: Message | None
    path: str | None


@record
class QueueItem:
    """One thing that waits for a person. `digest` names the version it shows; a stale one no longer fits.

    `fact` is None only for a proposal that speaks of none, such as the tombstone of a value that nobody holds.
    """

    id: str
    fact: Fact | None
    why: Waiting
    detail: str
    evidence: tuple[Excerpt, ...]
    conflicts: tuple[Fact, ...]
    similar: tuple[Similar, ...]
    digest: str
    proposal: Proposal | None = None


@record
class FactQuery:
    """What `show` asks for.

    Args:
        states: None means the readable ones.
        subject: Compared case-folded.
        source: A source id.
        valid_at: None means now.
        known_at: None means as the file knows it now.
        all_scopes: Every scope, not only the store's own; the caller has been allowed to.
        after: The id of the last fact of the page before; None starts.
        limit: None means all.
    """

    states: frozenset[State] | None = None
    subject: str | None = None
    source: str | None = None
    valid_at: Micros | None = None
    known_at: Micros | None = None
    any_validity: bool = False
    all_scopes: bool = False
    after: str | None = None
    limit: int | None = None


@record
class EventQuery:
    """What `log` asks for: newest first where `limit` is given, otherwise oldest first."""

    fact: str | None = None
    op: Op | None = None
    since: Micros | None = None
    limit: int | None = None
    all_scopes: bool = False


@record
class QueueQuery:
    """What `review` asks for. `older_than` and `newer_than` are instants that `recorded_at` is compared with."""

    states: frozenset[State] | None = None
    source: str | None = None
    older_than: Micros | None = None
    newer_than: Micros | None = None
    limit: int | None = None


@record
class Finding:
    """One thing `check` found: a stable kebab-case code, the place, and what is wrong there."""

    code: str
    place: str
    message: str


@record
class LogVerdict:
    """What `log verify` found: how many events, the head, and each break. Empty `findings` means whole."""

    events: int
    head: str
    findings: tuple[Finding, ...]


@record
class Written:
    """What became of an offered claim.

    `outcome` is `new`, `same` (nothing to add), `corroborated` (evidence added to `fact`), `held` (disputed
    with an equal), or `superseded` (new, and it took the place of `rival`).
    """

    fact: Fact
    outcome: str
    rival: str | None = None


@record
class TombstonePlan:
    """What a tombstone would do: the facts it hits, those that fall with them, and near misses it would not stop."""

    scope: str | None
    match: Match
    pattern: str | None
    values: tuple[str, ...]
    slots: tuple[tuple[str, str, Scalar], ...]
    hits: tuple[Fact, ...]
    falls: tuple[Fact, ...]
    near: tuple[Similar, ...]


@record
class ErasePlan:
    """What an erase would remove: facts whose words go, messages replaced by markers, facts left for review."""

    facts: tuple[Fact, ...]
    messages: tuple[str, ...]
    sources: tuple[str, ...]
    reviewed: tuple[Fact, ...]
    falls: tuple[Fact, ...]


@record
class Condensable:
    """One fact that a plan to condense is about, as it was seen.

    `protected` says why it may never vanish (`verified`, `corrected`, `pinned` …); None where it may.
    """

    id: str
    version: int
    revision: int
    text: str
    protected: str | None = None


@record
class Merging:
    """Facts that become one.

    Args:
        text: What the one says; `subject`, `attribute` and `value` are as in a claim.
        parents: Ids of the facts that go.
        keep: The id of the fact that stays as it is and takes their evidence; None where a new one is made.
    """

    text: str
    parents: tuple[str, ...]
    subject: str | None = None
    attribute: str | None = None
    value: Scalar = None
    keep: str | None = None


@record
class Vanishing:
    """A fact that a plan would lose, and why: `dropped`, `left out`, or `falls with` the one it was built on."""

    id: str
    text: str
    why: str


@record
class CondensePlan:
    """Which facts stay, which become one, which go. Every id of `facts` is in just one of the three.

    Args:
        max_facts: The most that may be left; None where only what says the same is merged.
        kept: Ids of facts that stay as they are, those that take the evidence of others included.
        lost: What nothing would say any more.
        allowed: Ids of what may be lost, as a person named them.
    """

    max_facts: int | None
    facts: tuple[Condensable, ...]
    kept: tuple[str, ...]
    merged: tuple[Merging, ...] = ()
    dropped: tuple[str, ...] = ()
    lost: tuple[Vanishing, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """Return how many facts there are afterwards."""
        return len(self.kept) + sum(item.keep is None for item in self.merged)

    @property
    def changes(self) -> bool:
        """Return whether anything would be done."""
        return bool(self.merged or self.dropped)

    @property
    def protected(self) -> tuple[str, ...]:
        """Return the ids of facts that may never vanish."""
        return tuple(item.id for item in self.facts if item.protected is not None)


@record
class ScopeInfo:
    """One scope of the file and what it holds."""

    name: str
    facts: int
    readable: int
    sources: int
    tombstones: int


@record
class Stats:
    """Sizes and counts. `states` counts facts by the state of their current version; sizes are bytes."""

    path: str
    schema: int
    admission: str
    scope: str
    states: Mapping[str, int]
    scopes: int
    sources: int
    messages: int
    tombstones: int
    events: int
    waiting: int
    tokens: int
    tokens_unknown: int
    encoding: str
    file_bytes: int
    wal_bytes: int
    free_bytes: int
    scrub_pending: bool


@record
class Imported:
    """What became of one conversation: its source and how many of its messages were new or there already."""

    source: str
    new: int
    same: int
    session: str | None
    title: str | None


@record
class ImportReport:
    """What became of one file that was imported.

    Args:
        format: The reader that took it; None where none did.
        tried: The formats that were looked for, in order.
        roles: Messages by role.
        new: Messages and facts that are in the file now and were not before.
        same: Those that were there already.
        refused: Facts that a tombstone or another rule stopped.
        conflicting: Facts that wait, or were refused, because another value holds their slot.
        tombstones: Stops that the file carries.
        undated: Messages and facts whose time is not known; nothing is invented.
        mapped: How often a state of the foreign store became which state or refusal here.
        error: Why nothing of it was taken; None where it was read.
    """

    path: str
    format: str | None
    tried: tuple[str, ...] = ()
    conversations: int = 0
    messages: int = 0
    roles: Mapping[str, int]
    tool_calls: int = 0
    facts: int = 0
    new: int = 0
    same: int = 0
    refused: int = 0
    conflicting: int = 0
    tombstones: int = 0
    undated: int = 0
    mapped: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[Warned, ...] = ()
    error: str | None = None


@record
class Restored:
    """What was taken back. `scope` is None where the export held all scopes."""

    path: str
    scope: str | None
    tombstones: int
    sources: int
    messages: int
    facts: int
    versions: int


@record
class PolicyRule:
    """One rule of the file's policy.

    `kind` is `source` (name: a source id, format, path, session or source kind; value: authority 0 to 1),
    `oracle` (name: what `verify --oracle` is given; value: the command line it runs), `agent` (name: of an agent, or
    `*` for those without a rule; value: the highest tier it may begin) or `tool` (name: of a tool; value: `reversible`
    or `irreversible`, and after `@` how widely it publishes, such as `irreversible@public`).
    """

    kind: str
    name: str
    value: str


@record
class Observed:
    """One thing that was looked at, for a report to a machine.

    Args:
        code: A stable kebab-case code, or the id of a case.
        place: What it is about, such as a fact's id; empty where that is all of it.
        level: `error`, `warning` or `note`.
        passed: Nothing is wrong.
        skipped: It could not be told; neither a pass nor a failure.
        path: The file it is about, as it was given.
        line: 1-based.
        seconds: How long it took.
    """

    code: str
    place: str
    message: str
    level: str = "error"
    passed: bool = False
    skipped: bool = False
    path: str | None = None
    line: int | None = None
    seconds: float | None = None
