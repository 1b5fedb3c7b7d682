"""Listings for a pipe: tab-separated, no head, nothing cut. On the start-up path, so it imports next to nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from memcli.clock import format_instant
from memcli.facts import Fact
from memcli.text import visible


def tsv(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield one line for each row, tabs and newlines inside a cell escaped, so that a line is always a row."""
    for row in rows:
        yield "\t".join(visible(cell) for cell in row) + "\n"


def facts_rows(facts: Iterable[Fact], short_ids: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield id, state, subject, text, the beginning of its validity, and its pieces of evidence.

    What is unknown is empty.
    """
    for f in facts:
        yield (
            short_ids.get(f.id, f.id),
            f.state.value,
            f.subject or "",
            f.text,
            "" if f.valid.start is None else format_instant(f.valid.start),
            str(len(f.provenance)),
        )
