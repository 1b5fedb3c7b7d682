"""The tables of a memory file: creation, migrations, and the check that nobody altered them.

Every row that the file must answer for carries a `seal`, a keyed digest of its own columns (`store/seals.py`).
Triggers name the function `mem_writer`, which only this program registers: any other process that tries to
change a guarded table fails while its statement is prepared. That is a tripwire and no lock.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from memcli.digest import blake2b
from memcli.errors import Damaged, WrongSchema

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = 0x6D656D31  # "mem1"

_FIRST = (
    "settings",
    "keys",
    "scopes",
    "sources",
    "messages",
    "facts",
    "versions",
    "provenance",
    "derivations",
    "tombstones",
    "stops",
    "audit",
    "reasons",
    "proposals",
    "policy",
)
"""The guarded tables of the first schema, whose triggers its migration makes; those of later ones come with theirs."""

_THIRD = (
    "origins",
    "transactions",
    "staged",
    "named",
    "verdicts",
    "reads",
    "receipts",
    "premises",
    "actions",
    "effects",
    "repairs",
)

GUARDED = (*_FIRST, *_THIRD)

KEPT = tuple(table for table in GUARDED if table not in {"audit", "policy"})
"""Tables from which no row is ever deleted."""

_MEMORY = """
create table settings (
    name text primary key not null,
    value text not null,
    seal blob not null
) strict;
create table keys (
    id text primary key not null,
    purpose text not null check (purpose in ('audit', 'tombstone')),
    secret blob not null check (length(secret) = 32),
    seal blob not null
) strict;
create table scopes (
    id integer primary key,
    name text not null unique check (length(name) > 0),
    merged_into integer references scopes (id),
    seal blob not null
) strict;
create table sources (
    id integer primary key,
    scope integer not null references scopes (id),
    kind text not null check (kind in ('human', 'system', 'tool', 'agent', 'document')),
    format text not null,
    path text,
    session text,
    title text,
    digest text,
    imported_at integer not null,
    erased_at integer,
    seal blob not null
) strict;
create index sources_by_session on sources (scope, session);
create table messages (
    id integer primary key,
    source integer not null references sources (id),
    position integer not null check (position >= 0),
    role text not null check (role in ('system', 'user', 'assistant', 'tool', 'unknown')),
    content text,
    detail text,
    at integer,
    evidence blob not null,
    recorded_at integer not null,
    erased_at integer,
    seal blob not null,
    unique (source, position),
    check ((erased_at is null) = (content is not null))
) strict;
create index messages_by_evidence on messages (evidence);
create table facts (
    id integer primary key,
    name text not null unique check (length(name) = 16),
    scope integer not null references scopes (id),
    kind text not null check (kind in ('belief', 'summary', 'profile', 'index', 'shared_copy', 'tool_action')),
    subject text,
    attribute text,
    slot blob,
    owner text,
    visibility text not null check (visibility in ('private', 'shared', 'public')),
    recorded_at integer not null,
    erased_at integer,
    seal blob not null,
    check (attribute is null or subject is not null)
) strict;
create index facts_by_slot on facts (slot, scope) where slot is not null;
create index facts_by_scope on facts (scope, id);
create table versions (
    id integer primary key,
    fact integer not null references facts (id),
    version integer not null check (version > 0),
    revision integer not null check (revision > 0),
    state text not null check (
        state in ('tentative', 'accepted', 'verified', 'disputed', 'superseded', 'revoked', 'rejected')
    ),
    text text,
    value text,
    confidence real check (confidence is null or confidence between 0 and 1),
    importance real check (importance is null or importance between 0 and 1),
    authority real not null check (authority between 0 and 1),
    pinned integer not null check (pinned in (0, 1)),
    valid_from integer,
    valid_to integer,
    displaced integer not null check (displaced in (0, 1)),
    superseded_by integer references facts (id),
    rule text,
    text_key blob not null,
    slot_key blob,
    actor_name text not null,
    actor_kind text not null,
    actor_channel text not null,
    recorded_at integer not null unique,
    retired_at integer,
    erased_at integer,
    digest blob not null,
    seal blob not null,
    unique (fact, version, revision),
    check (valid_from is null or valid_to is null or valid_from < valid_to),
    check (retired_at is null or retired_at > recorded_at),
    check ((erased_at is null) = (text is not null))
) strict;
create unique index versions_now on versions (fact, version) where retired_at is null;
create index versions_by_text on versions (text_key) where retired_at is null;
create index versions_by_slot on versions (slot_key) where retired_at is null and slot_key is not null;
create table provenance (
    id integer primary key,
    fact integer not null references facts (id),
    version integer not null,
    source integer not null references sources (id),
    message integer references messages (id),
    quote text,
    start integer,
    stop integer,
    verified integer not null check (verified in (0, 1)),
    recorded_at integer not null,
    erased_at integer,
    seal blob not null
) strict;
create index provenance_by_fact on provenance (fact, version);
create index provenance_by_source on provenance (source, message);
create table derivations (
    child integer not null references facts (id),
    parent integer not null references facts (id),
    how text not null check (how in ('inferred', 'summarised', 'condensed', 'copied')),
    recorded_at integer not null,
    seal blob not null,
    primary key (child, parent),
    check (child <> parent)
) strict;
create index derivations_by_parent on derivations (parent);
create table tombstones (
    id integer primary key,
    scope integer references scopes (id),
    match text not null check (match in ('value', 'contains', 'regex')),
    pattern text,
    key text not null references keys (id),
    normaliser integer not null,
    fact integer references facts (id),
    event integer not null,
    actor_name text not null,
    actor_kind text not null,
    actor_channel text not null,
    at integer not null,
    lifted_at integer,
    seal blob not null,
    check ((match = 'value') = (pattern is null)),
    check (lifted_at is null or lifted_at > at)
) strict;
create index tombstones_by_match on tombstones (match, lifted_at);
create table stops (
    digest blob not null,
    tombstone integer not null references tombstones (id),
    primary key (digest, tombstone)
) strict, without rowid;
create index stops_by_tombstone on stops (tombstone);
create table audit (
    seq integer primary key,
    at integer not null unique,
    actor_name text not null,
    actor_kind text not null,
    actor_channel text not null,
    op text not null,
    target text,
    scope integer references scopes (id),
    from_state text,
    to_state text,
    reason blob,
    before blob,
    after blob,
    operation integer not null,
    hash blob not null unique
) strict;
create index audit_by_target on audit (target, seq);
create index audit_by_operation on audit (operation, seq);
create table reasons (
    seq integer primary key references audit (seq),
    text text,
    erased_at integer,
    check ((erased_at is null) = (text is not null))
) strict;
create table proposals (
    id integer primary key,
    fact integer references facts (id),
    version integer,
    scope integer not null references scopes (id),
    op text not null,
    arguments text,
    reason text,
    actor_name text not null,
    actor_kind text not null,
    actor_channel text not null,
    at integer not null,
    settled_at integer,
    outcome text check (outcome is null or outcome in ('accepted', 'refused', 'erased')),
    seal blob not null
) strict;
create index proposals_open on proposals (scope) where settled_at is null;
create table policy (
    kind text not null check (kind in ('source', 'oracle')),
    name text not null,
    value text not null,
    seal blob not null,
    primary key (kind, name)
) strict;
"""

_GUARD = """
create trigger {table}_guard_insert before insert on {table}
when case when 0 then mem_writer() end begin select 1; end;
create trigger {table}_guard_update before update on {table}
when case when 0 then mem_writer() end begin select 1; end;
create trigger {table}_guard_delete before delete on {table}
when case when 0 then mem_writer() end begin select 1; end;
"""

_KEEP = """
create trigger {table}_kept before delete on {table}
begin select raise(abort, 'rows of {table} are never deleted'); end;
"""

_HISTORY = """
create trigger audit_append_only before insert on audit
when new.seq <= (select max(seq) from audit)
    or exists (select 1 from audit where at = new.at)
    or exists (select 1 from audit where hash = new.hash)
begin select raise(abort, 'the audit trail is append-only'); end;
create trigger audit_no_update before update on audit
begin select raise(abort, 'the audit trail is append-only'); end;
create trigger audit_no_delete before delete on audit
begin select raise(abort, 'the audit trail is append-only'); end;
create trigger versions_past before update of
    fact, version, revision, state, confidence, importance, authority, pinned, valid_from, valid_to, displaced,
    superseded_by, text_key, slot_key, actor_name, actor_kind, actor_channel, recorded_at, digest
on versions
begin select raise(abort, 'the past of a fact never changes'); end;
create trigger versions_retire_once before update of retired_at on versions
when old.retired_at is not null and old.retired_at is not new.retired_at
begin select raise(abort, 'the past of a fact never changes'); end;
create trigger messages_past before update of source, position, role, evidence, recorded_at on messages
begin select raise(abort, 'evidence never changes'); end;
"""

_VIEWS = """
create table current (
    fact integer primary key,
    row integer not null,
    scope integer not null,
    state text not null,
    subject text,
    valid_from integer,
    valid_to integer
) strict;
create index current_by_state on current (scope, state, fact);
create index current_readable on current (scope, fact) where state in ('accepted', 'verified');
create index current_by_scope on current (scope, fact);
create table tallies (
    scope integer not null,
    state text not null,
    facts integer not null,
    primary key (scope, state)
) strict, without rowid;
create table token_counts (
    row integer primary key,
    tokens integer not null,
    encoding text not null
) strict;
create virtual table words using fts5 (
    body, content='', detail='none', columnsize=0, tokenize="unicode61 remove_diacritics 2"
);
create virtual table grams using fts5 (
    body, content='', detail='none', columnsize=0, tokenize="trigram"
);
"""


_TRANSACTIONS = """
create temp table policy_before as select kind, name, value, seal from policy;
drop table policy;
create table policy (
    kind text not null check (kind in ('source', 'oracle', 'agent', 'tool')),
    name text not null,
    value text not null,
    seal blob not null,
    primary key (kind, name)
) strict;
insert into policy select kind, name, value, seal from policy_before;
drop table policy_before;
create table origins (
    fact integer primary key references facts (id),
    source integer not null references sources (id),
    recorded_at integer not null,
    seal blob not null
) strict;
create index origins_by_source on origins (source);
create table transactions (
    id integer primary key,
    scope integer not null references scopes (id),
    agent text not null check (length(agent) > 0),
    tier text not null check (tier in ('low', 'medium', 'high', 'external')),
    isolation text not null check (isolation in ('raw', 'accepted', 'stable', 'verified')),
    snapshot integer not null references audit (seq),
    status text not null check (status in ('open', 'committed', 'held', 'aborted')),
    actor_name text not null,
    actor_kind text not null,
    actor_channel text not null,
    begun_at integer not null,
    lease_until integer not null check (lease_until >= begun_at),
    closed_at integer,
    seal blob not null,
    check ((status = 'open') = (closed_at is null))
) strict;
create index transactions_open on transactions (scope) where status = 'open';
create table staged (
    tx integer not null references transactions (id),
    fact integer not null references facts (id),
    at integer not null,
    seal blob not null,
    primary key (tx, fact)
) strict;
create index staged_by_fact on staged (fact);
create table named (
    tx integer not null,
    fact integer not null,
    rival integer not null references facts (id),
    seal blob not null,
    primary key (tx, fact, rival),
    foreign key (tx, fact) references staged (tx, fact)
) strict;
create table verdicts (
    tx integer not null,
    fact integer not null,
    code text not null,
    at integer not null,
    seal blob not null,
    primary key (tx, fact),
    foreign key (tx, fact) references staged (tx, fact)
) strict;
create index verdicts_by_code on verdicts (code);
create table reads (
    id integer primary key,
    tx integer not null references transactions (id),
    asked blob not null,
    found text not null,
    at integer not null,
    seal blob not null,
    unique (tx, asked)
) strict;
create table receipts (
    id integer primary key,
    tx integer not null references transactions (id),
    tool text not null,
    kind text not null check (kind in ('reversible', 'irreversible')),
    arguments text not null,
    profile text not null check (profile in ('strict', 'paper')),
    seq integer not null,
    at integer not null,
    seal blob not null
) strict;
create index receipts_by_tx on receipts (tx);
create table premises (
    receipt integer not null references receipts (id),
    fact integer not null references facts (id),
    version integer not null,
    revision integer not null,
    seal blob not null,
    primary key (receipt, fact)
) strict;
create index premises_by_fact on premises (fact);
create table actions (
    id integer primary key,
    receipt integer not null unique references receipts (id),
    state text not null check (state in ('planned', 'running', 'done', 'failed', 'unknown', 'cancelled')),
    at integer not null,
    changed_at integer not null,
    seal blob not null
) strict;
create table effects (
    id integer primary key,
    action integer not null unique references actions (id),
    kind text not null check (kind in ('leak', 'compensation')),
    root integer not null references facts (id),
    state text not null check (state in ('open', 'acked', 'done')),
    at integer not null,
    seal blob not null
) strict;
create table repairs (
    id integer primary key,
    root integer not null references facts (id),
    fact integer references facts (id),
    action integer references actions (id),
    outcome text not null check (outcome in ('revoked', 'disputed', 'cancelled', 'compensation', 'leak')),
    at integer not null,
    seal blob not null,
    check ((fact is null) <> (action is null))
) strict;
create unique index repairs_of_facts on repairs (root, fact) where fact is not null;
create unique index repairs_of_actions on repairs (root, action) where action is not null;
"""


def m001_memory(db: "Database") -> None:
    """The memory itself: facts, versions, evidence, tombstones, audit, and the triggers that guard them."""
    guards = "".join(_GUARD.format(table=table) for table in _FIRST)
    kept = "".join(_KEEP.format(table=table) for table in _FIRST if table not in {"audit", "policy"})
    for statement in statements(_MEMORY + guards + kept + _HISTORY):
        db.execute(statement)


def m002_views(db: "Database") -> None:
    """What is derived from the memory and can be dropped: current states, counts, full text. Older files get them."""
    for statement in statements(_VIEWS):
        db.execute(statement)


def m003_transactions(db: "Database") -> None:
    """Transactions, what they staged and read, receipts, actions and what they owe. Older files have none of them.

    The policy may speak of agents and tools; its rules of before are kept.
    """
    guards = "".join(_GUARD.format(table=table) for table in ("policy", *_THIRD))
    kept = "".join(_KEEP.format(table=table) for table in _THIRD)
    for statement in statements(_TRANSACTIONS + guards + kept):
        db.execute(statement)


MIGRATIONS: tuple[Callable[["Database"], None], ...] = (m001_memory, m002_views, m003_transactions)
VERSION = len(MIGRATIONS)

DIGESTS: Mapping[int, str] = {
    1: "f7ce7437b34b340db216479c3e0d9929",
    2: "418156f3545e649c9b1c490ea301e2ef",
    3: "7425627a905fc60934628392437e480f",
}
"""The digest of each released schema, so that an altered table or a dropped trigger is found at every opening."""


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one: `executescript` would commit the caller's transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""


def upgrade(conn: sqlite3.Connection, *, to: int = VERSION) -> list[str]:
    """Apply what is missing inside the caller's transaction, and return the names of what was applied.

    Args:
        to: The schema version to stop at; an older one only where a file of that age is wanted.
    """
    from sqlite_utils import Database, Migrations  # 83 ms, needed only by init and migrate

    migrations = Migrations("mem")
    for migration in MIGRATIONS[:to]:
        migrations()(migration)
    db = Database(conn, execute_plugins=False)
    pending = [migration.name for migration in migrations.pending(db)]
    migrations.apply(db)
    conn.execute(f"pragma application_id = {APPLICATION_ID}")
    conn.execute(f"pragma user_version = {to}")
    return pending


_SHADOWS = ", ".join(
    f"'{table}_{part}'" for table in ("words", "grams") for part in ("data", "idx", "content", "docsize", "config")
)
"""Tables that SQLite makes for its full-text indexes, and whose shape is its own affair."""


def digest(conn: sqlite3.Connection) -> str:
    """Return the digest of every table, index, view and trigger in the file, but for full-text internals.

    SQLite's own statistics are left out, so that `ANALYZE` does no harm.
    """
    rows = conn.execute(
        "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite\\_%' escape '\\'"
        f" and not (type = 'table' and name in ({_SHADOWS})) order by type, name"
    )
    summary = blake2b(digest_size=16)
    for row in rows:
        summary.update(repr(tuple(row)).encode())
    return summary.hexdigest()


def check(conn: sqlite3.Connection, path: str, *, altered: bool = False) -> None:
    """Say nothing where the file is ours, of this schema and unaltered.

    Args:
        altered: Let altered tables and triggers pass, to look at what is wrong with them.

    Raises:
        Damaged: It is no memory file, or its tables or triggers were altered.
        WrongSchema: It was written by a newer mem, or an older one and not migrated.
    """
    if conn.execute("pragma application_id").fetchone()[0] != APPLICATION_ID:
        raise Damaged(f"{path} is no memory file", hint="name another with --db, or make one with `mem init`")
    version = conn.execute("pragma user_version").fetchone()[0]
    if version > VERSION:
        raise WrongSchema(f"{path} has schema {version}, newer than the {VERSION} this mem knows", hint="upgrade mem")
    if version < VERSION:
        raise WrongSchema(
            f"{path} has schema {version}, older than {VERSION}", hint="run `mem migrate`; it keeps a backup"
        )
    if not altered and digest(conn) != DIGESTS[version]:
        raise Damaged(
            f"the tables or triggers of {path} were altered by another program",
            hint="restore it from a backup, or see what differs with `mem check`",
        )
