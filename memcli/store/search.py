"""What recall asks of a file: which facts of a scope hold which words, and just enough of each to rank it."""

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from memcli.facts import Fact, Micros
from memcli.store import file
from memcli.store.views import gram_query, grams, scope_term, terms
from memcli.terms import READABLE
from memcli.text import unpack

if TYPE_CHECKING:
    from memcli.store.store import Store

_CHUNK = 500
_FEW = 100
_STATES = ", ".join(f"'{state}'" for state in sorted(READABLE))
_FROM = (
    " from current c join versions v on v.id = c.row"
    f" where c.scope = ? and c.state in ({_STATES})"
    " and (v.valid_from is null or v.valid_from <= ?) and (v.valid_to is null or v.valid_to > ?)"
)
_ACCENTS = "".join(chr(0x300 + bit) for bit in range(50) if (0x0802_9FDF | 0x0003_61F8 << 32) >> bit & 1)
"""The marks that SQLite's tokeniser reads as accents of a letter; at every other mark it ends the word."""


Standing: TypeAlias = tuple[int, Micros, float | None, int]
"""What a fact is ranked by besides its words: row number, when its current version was recorded, importance, pinned."""


class Search:
    """Questions about the words of one scope. Row numbers are candidates; `facts` gives what may be shown."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._scope = store.scope_number or 0
        # Asked of the file: another process may have begun a scope since the store was opened.
        self._alone = len(self._rows("select 1 from scopes limit 2", ())) < 2

    def words(self, text: str) -> list[str]:
        """Return the different words of a query as the index holds them, in their order."""
        return [word for word in dict.fromkeys(terms(text, query=True)) if _pieces(word)]

    def holding(self, every: Sequence[str], some: Sequence[str] = (), *, limit: int) -> list[int]:
        """Return row numbers of readable facts that hold every one of these words and one of `some`, newest first.

        A row is no more than a candidate until `standings` has looked at it: the mark of a scope is a word like any
        other, which a statement may spell out.
        """
        asked = [_phrase(word) for word in every]
        if some:
            asked.append(f"({' OR '.join(map(_phrase, some))})")
        return self._matching("words", " AND ".join(asked), f'"{scope_term(self._scope)}"', limit)

    def maybe(self, text: str, *, limit: int) -> list[int]:
        """Return row numbers of readable facts that may hold a text of three characters or more, newest first."""
        asked = " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams(text))
        return self._matching("grams", asked, gram_query(self._scope, ""), limit)

    def _matching(self, table: str, asked: str, scoped: str, limit: int) -> list[int]:
        select = f"select rowid from {table} where {table} match ? order by rowid desc limit ?"
        if self._alone:
            return [number for (number,) in self._rows(select, (asked, limit))]
        # Stepping through the rows of a whole scope costs more than looking at the few of a rare word.
        few = [number for (number,) in self._rows(select, (asked, min(limit, _FEW)))]
        if len(few) < min(limit, _FEW):
            return self._of_scope(few)
        return [number for (number,) in self._rows(select, (f"{scoped} AND {asked}", limit))]

    def _of_scope(self, numbers: Sequence[int]) -> list[int]:
        select = f"select fact from current where fact in ({_marks(numbers)}) and +scope = ? order by fact desc"
        return [number for (number,) in self._rows(select, (*numbers, self._store.scope_number))]

    def standings(self, numbers: Sequence[int], moment: Micros) -> list[Standing]:
        """Return what facts are ranked by, in no order; only readable ones of the scope, valid at the moment."""
        select = f"select c.fact, v.recorded_at, v.importance, v.pinned{_FROM}"
        bound = (self._store.scope_number, moment, moment)
        return [
            standing
            for part in _chunks(sorted(numbers))
            for standing in self._rows(f"{select} and c.fact in ({_marks(part)})", (*bound, *part))
        ]

    def foremost(self, limit: int, moment: Micros, *, unknown_importance: float) -> list[int]:
        """Return row numbers of readable, valid facts: pinned ones first, then by importance, then the newest."""
        order = " order by v.pinned desc, coalesce(v.importance, ?) desc, v.recorded_at desc, c.fact desc limit ?"
        bound = (self._store.scope_number, moment, moment, unknown_importance, limit)
        return [number for (number,) in self._rows(f"select c.fact{_FROM}{order}", bound)]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return what facts of the scope say now, unchecked: to look for words in, not to show."""
        select = "select c.fact, v.text from current c join versions v on v.id = c.row where +c.scope = ?"
        return {
            number: unpack(text or "")
            for part in _chunks(sorted(numbers))
            for number, text in self._rows(
                f"{select} and c.fact in ({_marks(part)})", (self._store.scope_number, *part)
            )
        }

    def facts(self, numbers: Sequence[int]) -> dict[int, Fact]:
        """Return facts by row number, each checked against its digest; unknown ones are left out.

        Raises:
            Damaged: One of them was changed behind the file's back.
        """
        names: dict[str, int] = {
            name: number
            for part in _chunks(numbers)
            for name, number in self._rows(f"select name, id from facts where id in ({_marks(part)})", part)
        }
        return {names[fact.id]: fact for fact in self._store.numbered(numbers)}

    def _rows(self, sql: str, bound: Iterable[Any]) -> list[Any]:
        with file.sentences(str(self._store.path)):
            return self._store.conn.execute(sql, tuple(bound)).fetchall()


def _pieces(word: str) -> list[str]:
    """Return the parts under which SQLite's tokeniser keeps a word: it splits Hindi at every vowel sign."""
    if word.isascii():
        return [word]
    split = groupby(word, key=lambda char: unicodedata.category(char)[0] == "M" and char not in _ACCENTS)
    pieces = ("".join(part).lstrip(_ACCENTS) for is_mark, part in split if not is_mark)
    return [piece for piece in pieces if piece]


def _phrase(word: str) -> str:
    return "(" + " AND ".join(f'"{piece}"' for piece in dict.fromkeys(_pieces(word))) + ")"


def _chunks(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]


def _marks(part: Sequence[int]) -> str:
    return ",".join("?" * len(part))
