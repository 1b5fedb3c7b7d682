"""Sizes and counts of a file: what `stats` and `scope list` show."""

from pathlib import Path
from typing import TYPE_CHECKING

from memcli.facts import ScopeInfo, Stats
from memcli.store import file
from memcli.terms import READABLE

if TYPE_CHECKING:
    from memcli.store.store import Store

_COUNTED = (
    "from current c left join token_counts t on t.row = c.row where c.scope = ? and c.state in ('accepted', 'verified')"
)


def scopes(store: "Store") -> list[ScopeInfo]:
    """Return the scopes of the file by name; a scope that was merged away is left out."""
    marks = ", ".join(f"'{state}'" for state in sorted(READABLE))
    with file.sentences(str(store.path)):
        return [
            ScopeInfo(name=name, facts=facts, readable=readable, sources=sources, tombstones=stops)
            for name, facts, readable, sources, stops in store.conn.execute(
                "select name, (select coalesce(sum(facts), 0) from tallies where scope = scopes.id),"
                f" (select coalesce(sum(facts), 0) from tallies where scope = scopes.id and state in ({marks})),"
                " (select count(*) from sources where scope = scopes.id),"
                " (select count(*) from tombstones where scope = scopes.id and lifted_at is null)"
                " from scopes where merged_into is null order by name"
            )
        ]


def stats(store: "Store") -> Stats:
    """Return sizes and counts of the file; `states` are those of the scope."""
    with file.sentences(str(store.path)):
        one = store.one
        page = one("pragma page_size")
        encoding = store.settings["encoding"]
        return Stats(
            path=str(store.path),
            schema=one("pragma user_version"),
            admission=store.settings["admission"],
            scope=store.scope,
            states={str(state): number for state, number in sorted(store.tally().items())},
            scopes=one("select count(*) from scopes where merged_into is null"),
            sources=one("select count(*) from sources"),
            messages=one("select count(*) from messages"),
            tombstones=one("select count(*) from tombstones where lifted_at is null"),
            events=one("select coalesce(max(seq), 0) from audit"),
            waiting=store.waiting(),
            tokens=one(
                f"select coalesce(sum(t.tokens), 0) {_COUNTED} and t.encoding = ?", store.scope_number, encoding
            ),
            tokens_unknown=one(f"select count(*) {_COUNTED} and t.tokens is null", store.scope_number),
            encoding=encoding,
            file_bytes=store.path.stat().st_size,
            wal_bytes=_size(Path(f"{store.path}-wal")),
            free_bytes=one("pragma freelist_count") * page,
            scrub_pending=store.settings.get("scrub") == "pending",
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
