"""What is derived from the memory and can be dropped: current states, tallies, full text, token counts.

Everything here can be recreated from the rest (`rebuild`), and the result is the same.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from memcli.terms import READABLE
from memcli.text import pack, unpack

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_JOINED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
"""Code points of scripts that put no space between words (Thai to Khmer, Han, kana) or glue endings on (Hangul)."""

_MARK = "\ue000"
_READABLE = tuple(sorted(READABLE))

RECOUNTED = 1000
"""About how many token counts are counted again to see whether they are right; of a small file, all."""


def terms(text: str, *, query: bool = False) -> Iterator[str]:
    """Yield the words of a text as the index holds them.

    Scripts without spaces give every character and every pair of neighbours, so that a word of two characters is
    found; a query of two or more such characters asks for the pairs alone.
    """
    folded = text.casefold()
    if folded.isascii():
        yield from _ASCII_WORD.findall(folded)
        return
    for joined, run in _runs(unicodedata.normalize("NFKC", folded)):
        if not joined:
            yield run
            continue
        if not query or len(run) == 1:
            yield from run
        yield from (first + second for first, second in pairwise(run))


def _runs(text: str) -> Iterator[tuple[bool, str]]:
    run, joined = "", False
    for char in text:
        if unicodedata.category(char)[0] not in "LNM":
            if run:
                yield joined, run
            run = ""
            continue
        code = ord(char)
        now = code >= 0x0E00 and any(low <= code <= high for low, high in _JOINED)
        if run and now != joined:
            yield joined, run
            run = ""
        run, joined = run + char, now
    if run:
        yield joined, run


def scope_term(scope: int) -> str:
    """Return the word that stands in the index for a scope, so that a search never leaves it."""
    return f"xscope{scope}x"


def words_of(scope: int, text: str, subject: str | None, attribute: str | None) -> str:
    """Return what the index of words holds for a fact."""
    full = " ".join(part for part in (text, subject, attribute) if part)
    return " ".join((scope_term(scope), *terms(full)))


def grams_of(scope: int, text: str) -> str:
    """Return what the index of substrings holds for a fact: a mark that every row has, the scope, the text."""
    return f"{_MARK * 3}{scope}{_MARK} {pack(text)}"


def grams(text: str) -> list[str]:
    """Return the runs of three characters by which the index of substrings finds a text."""
    return sorted({text[start : start + 3] for start in range(len(text) - 2)})


def gram_query(scope: int, text: str) -> str:
    """Return the full-text expression for rows of a scope that may hold a text of three characters or more."""
    wanted = [*grams(f"{_MARK}{scope}{_MARK}"), *grams(pack(text))]
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in wanted)


def index(conn: sqlite3.Connection, fact: int, what: "Shown") -> None:
    """Put a readable fact into the full-text indexes."""
    conn.execute("insert into words (rowid, body) values (?, ?)", (fact, what.body))
    conn.execute("insert into grams (rowid, body) values (?, ?)", (fact, grams_of(what.scope, what.text)))


def unindex(conn: sqlite3.Connection, fact: int, what: "Shown") -> None:
    """Take a fact out of the full-text indexes, which needs the very texts that were put in."""
    conn.execute("insert into words (words, rowid, body) values ('delete', ?, ?)", (fact, what.body))
    conn.execute(
        "insert into grams (grams, rowid, body) values ('delete', ?, ?)", (fact, grams_of(what.scope, what.text))
    )


def count(conn: sqlite3.Connection, scope: int, state: str, by: int) -> None:
    """Move a tally."""
    conn.execute(
        "insert into tallies values (?, ?, ?) on conflict do update set facts = facts + excluded.facts",
        (scope, state, by),
    )


class Shown:
    """What the views hold of one fact: enough to take it out again."""

    __slots__ = ("body", "scope", "state", "text")

    def __init__(self, *, scope: int, state: str, text: str, subject: str | None, attribute: str | None) -> None:
        self.scope = scope
        self.state = state
        self.text = text
        self.body = words_of(scope, text, subject, attribute) if state in READABLE else ""


def shown(conn: sqlite3.Connection, fact: int) -> Shown | None:
    """Return what the views hold of a fact, or None where it is not in them."""
    row = conn.execute(
        "select c.scope, c.state, v.text, f.subject, f.attribute from current c"
        " join versions v on v.id = c.row join facts f on f.id = c.fact where c.fact = ?",
        (fact,),
    ).fetchone()
    if row is None:
        return None
    scope, state, text, subject, attribute = row
    return Shown(scope=scope, state=state, text=unpack(text or ""), subject=subject, attribute=attribute)


def hide(conn: sqlite3.Connection, fact: int, was: Shown) -> None:
    """Take a fact out of every view."""
    if was.state in READABLE:
        unindex(conn, fact, was)
    conn.execute("delete from current where fact = ?", (fact,))
    count(conn, was.scope, was.state, -1)
    # A rebuild counts what is there and writes no zeros, and its result has to be the same.
    conn.execute("delete from tallies where scope = ? and state = ? and facts = 0", (was.scope, was.state))


def show(conn: sqlite3.Connection, fact: int, *, skip_text: bool = False) -> Shown | None:
    """Put the newest version of a fact into every view; an erased fact stays out."""
    row = conn.execute(
        "select v.id, v.state, v.text, v.valid_from, v.valid_to, f.scope, f.subject, f.attribute"
        " from versions v join facts f on f.id = v.fact"
        " where v.fact = ? and v.retired_at is null and f.erased_at is null order by v.version desc limit 1",
        (fact,),
    ).fetchone()
    if row is None:
        return None
    number, state, text, start, end, scope, subject, attribute = row
    conn.execute("insert into current values (?, ?, ?, ?, ?, ?, ?)", (fact, number, scope, state, subject, start, end))
    count(conn, scope, state, 1)
    what = Shown(scope=scope, state=state, text=unpack(text or ""), subject=subject, attribute=attribute)
    if state in READABLE and not skip_text:
        index(conn, fact, what)
    return what


def rebuild(conn: sqlite3.Connection, counter: Callable[[str], int] | None, encoding: str) -> dict[str, int]:
    """Drop and recreate every view inside the caller's transaction; return how many rows each holds.

    Args:
        counter: Counts tokens; None leaves the counts of versions that have none unknown.
    """
    clear(conn)
    held, after = 0, 0
    while page := conn.execute(f"{_NEWEST} and f.id > ? order by f.id limit ?", (after, PAGE)).fetchall():
        _show_all(conn, page)
        held += len(page)
        after = page[-1][0]
    conn.execute("insert into tallies select scope, state, count(*) from current group by scope, state")
    tokens = 0
    if counter is not None:
        tokens = _recount(conn, counter, encoding)
    readable = conn.execute("select count(*) from current where state in (?, ?)", _READABLE).fetchone()[0]
    return {"current": held, "words": readable, "grams": readable, "token_counts": tokens}


PAGE = 2_000
"""Facts, or versions, that are read in one go."""

_NEWEST = (
    "select f.id, v.id, f.scope, v.state, f.subject, v.valid_from, v.valid_to, v.text, f.attribute"
    " from facts f cross join versions v where v.fact = f.id and v.retired_at is null and f.erased_at is null"
    " and v.version = (select max(w.version) from versions w where w.fact = f.id and w.retired_at is null)"
)
"""What `show` puts into the views, fact by fact, as they lie there."""


def _show_all(conn: sqlite3.Connection, page: Sequence[tuple[Any, ...]]) -> None:
    """Put facts that no view holds into all of them but the tallies."""
    conn.executemany("insert into current values (?, ?, ?, ?, ?, ?, ?)", [row[:7] for row in page])
    words: list[tuple[int, str]] = []
    grams: list[tuple[int, str]] = []
    for fact, _, scope, state, subject, _, _, text, attribute in page:
        if state in READABLE:
            said = unpack(text or "")
            words.append((fact, words_of(scope, said, subject, attribute)))
            grams.append((fact, grams_of(scope, said)))
    conn.executemany("insert into words (rowid, body) values (?, ?)", words)
    conn.executemany("insert into grams (rowid, body) values (?, ?)", grams)


def clear(conn: sqlite3.Connection) -> None:
    """Empty every view but the token counts; deleted words leave the index for good."""
    conn.execute("delete from current")
    conn.execute("delete from tallies")
    for table in ("words", "grams"):
        conn.execute(f"insert into {table} ({table}) values ('delete-all')")


def _recount(conn: sqlite3.Connection, counter: Callable[[str], int], encoding: str) -> int:
    conn.execute("delete from token_counts")
    count, after = 0, 0
    select = "select id, text from versions where text is not null and id > ? order by id limit ?"
    while page := conn.execute(select, (after, PAGE)).fetchall():
        conn.executemany(
            "insert into token_counts values (?, ?, ?)",
            [(number, counter(unpack(text)), encoding) for number, text in page],
        )
        count += len(page)
        after = page[-1][0]
    return count


def differences(
    conn: sqlite3.Connection, counter: Callable[[str], int] | None, encoding: str | None
) -> Iterator[tuple[str, str]]:
    """Yield (place, what is wrong) where a view differs from what it is derived from.

    Args:
        counter: Counts tokens, of some versions; None where that cannot be done.
        encoding: What the file counts in; None where it does not say.
    """
    truth = (
        "select v.fact, v.id, f.scope, v.state, f.subject, v.valid_from, v.valid_to from versions v"
        " join facts f on f.id = v.fact where v.retired_at is null and f.erased_at is null"
        " and v.version = (select max(version) from versions where fact = v.fact)"
    )
    for first, second, what in (
        (truth, "select * from current", "is missing or out of date"),
        ("select * from current", truth, "shows what is no longer so"),
    ):
        for row in conn.execute(f"select * from ({first} except {second}) order by 1 limit 20"):
            yield f"current, fact number {row[0]}", f"the view of current states {what}"
    yield from _tally_differences(conn)
    yield from _index_differences(conn)
    yield from _count_differences(conn, counter, encoding)


def _tally_differences(conn: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    real = "select scope, state, count(*) from current group by scope, state"
    kept = "select scope, state, facts from tallies where facts <> 0"
    for first, second in ((real, kept), (kept, real)):
        for row in conn.execute(f"select * from ({first} except {second}) limit 20"):
            yield f"tallies, {row[1]}", "the tally of a state differs from the facts it counts"
            return


def _count_differences(
    conn: sqlite3.Connection, counter: Callable[[str], int] | None, encoding: str | None
) -> Iterator[tuple[str, str]]:
    for (number,) in conn.execute(
        "select t.row from token_counts t left join versions v on v.id = t.row where v.text is null limit 20"
    ):
        yield f"token_counts, row {number}", "counts the tokens of words that are not there"
    if encoding is None:
        return
    for (number,) in conn.execute("select row from token_counts where encoding <> ? limit 20", (encoding,)):
        yield f"token_counts, row {number}", f"is no count in {encoding}"
    if counter is None:
        return
    whole = conn.execute("select count(*) from token_counts").fetchone()[0]
    for number, tokens, text in conn.execute(
        "select t.row, t.tokens, v.text from token_counts t join versions v on v.id = t.row"
        " where v.text is not null and t.encoding = ? and t.row % ? = 0 order by t.row",
        (encoding, 1 + whole // RECOUNTED),
    ):
        if counter(unpack(text)) != tokens:
            yield f"token_counts, row {number}", "is no count of the words it belongs to"
            return


def _index_differences(conn: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    expected = conn.execute("select count(*) from current where state in (?, ?)", _READABLE).fetchone()[0]
    scopes = [number for (number,) in conn.execute("select id from scopes")]
    for table, queries in (("words", [f'"{scope_term(number)}"' for number in scopes]), ("grams", [f'"{_MARK * 3}"'])):
        held = sum(
            conn.execute(f"select count(*) from {table} where {table} match ?", (query,)).fetchone()[0]
            for query in queries
        )
        if held != expected:
            yield table, f"the full-text index holds {held} facts instead of {expected}"
