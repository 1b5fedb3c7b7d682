"""Transcripts into the file, and facts out of transcripts: what the commands and the tour do, and what became of it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from memcli import exchange, wire
from memcli.errors import Conflict, Refused, Unreadable
from memcli.exchange.turns import Overheard
from memcli.extract import Reader, said_read, stretches, was_read
from memcli.facts import (
    Actor,
    Claim,
    Conversation,
    EventQuery,
    Imported,
    ImportReport,
    Json,
    Message,
    Remembered,
    Turn,
    Warned,
    Written,
)
from memcli.terms import Op, Role

if TYPE_CHECKING:
    from memcli.store.bulk import Became
    from memcli.store.store import Store
    from memcli.store.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What became of an import. `problem` is the first file that could not be read; the others are kept."""

    reports: tuple[ImportReport, ...]
    sources: tuple[Imported, ...]
    problem: Unreadable | None


def import_files(
    store: "Store",
    actor: Actor,
    reason: str | None,
    paths: Sequence[str],
    *,
    format_: str,
    encoding: str | None,
    dry_run: bool,
    progress: Callable[[str, int], None] = lambda _path, _count: None,
) -> Brought:
    """Keep what stands in each file, in one transaction a file, and return what was new; a folder is all its files.

    Args:
        dry_run: Do all of it and keep nothing, so that the plan is what would happen.
        progress: Is told the path and how many things were taken from it so far.

    Raises:
        UsageError: There is no such format or encoding.
        NotPermitted: A memory store, whose facts enter this file only through transactions.
    """
    reports: list[ImportReport] = []
    sources: list[Imported] = []
    problem: Unreadable | None = None
    for path in exchange.places(paths):
        if path not in paths and _is_own(store, path):
            continue
        began = store.rehearse(actor, reason) if dry_run else store.write(actor, reason)
        tally = Tally(progress=partial(progress, path))
        try:
            # The file is closed, and known to be the same as when it was opened, before anything is committed.
            with began as write, exchange.reading(path, format=format_, encoding=encoding) as place:
                tally.take(write, place)
        except Unreadable as error:
            problem = problem or error
            reports.append(ImportReport(path=path, format=None, tried=error.tried, roles={}, error=error.message))
            continue
        reports.append(tally.report(place))
        sources += [_planned(item) for item in tally.sources] if dry_run else tally.sources
    return Brought(reports=tuple(reports), sources=tuple(sources), problem=problem)


def _is_own(store: "Store", path: str) -> bool:
    """Return whether a file met in a folder is the memory file itself, or lies beside it while it is open."""
    place = Path(path)
    name = store.path.name
    mine = {name, f"{name}-wal", f"{name}-shm", f"{name}-journal"}
    return place.name in mine and place.parent.resolve() == store.path.parent.resolve()


def _planned(item: Imported) -> Imported:
    """Return what a rehearsal says of a source; one that it made has no id yet."""
    return item if item.same else replace(item, source="")


class Tally:
    """What is taken from one file, counted while it goes by.

    Args:
        progress: Is told how many things were taken so far.
    """

    def __init__(self, *, progress: Callable[[int], None]) -> None:
        self.sources: list[Imported] = []
        self._progress = progress
        self._counts: Counter[str] = Counter()
        self._roles: Counter[Role] = Counter()
        self._mapped: Counter[str] = Counter()
        self._more: list[Warned] = []

    def take(self, write: "Writer", place: exchange.Reading) -> None:
        """Take everything that stands in a file through the writer of a transaction."""
        remembered: list[Remembered] = []
        stopped = False
        for count, item in enumerate(place.found, start=1):
            if isinstance(item, Conversation):
                self._conversation(write, place, item)
            elif isinstance(item, Remembered):
                remembered.append(item)
            else:
                stopped = True
                self._counts["tombstones"] += 1
                self._counts["new" if write.take_stop(item) is not None else "same"] += 1
            if count % 100 == 0:
                self._progress(count)
        if stopped:
            self._stops(write)
        if remembered:
            self._facts(write, place, remembered)

    def _conversation(self, write: "Writer", place: exchange.Reading, talk: Conversation) -> None:
        turns = Overheard(talk.turns, self._turn)
        heard = Conversation(format=talk.format, turns=turns, session=talk.session, title=talk.title)
        taken = write.take(heard, path=place.path, digest=place.digest)
        turns.rest()
        self.sources.append(taken)
        self._counts["conversations"] += 1
        self._counts["messages"] += len(turns)
        self._counts["new"] += taken.new
        self._counts["same"] += taken.same

    def _turn(self, turn: Turn) -> None:
        self._roles[turn.role] += 1
        if turn.tool_calls:
            self._counts["tool_calls"] += len(turn.tool_calls)
        if turn.at is None:
            self._counts["undated"] += 1

    def _facts(self, write: "Writer", place: exchange.Reading, items: list[Remembered]) -> None:
        taken, outcomes = write.remember(items, path=place.path, digest=place.digest)
        self.sources.append(taken)
        for item, outcome in zip(items, outcomes, strict=True):
            self._counts["facts"] += 1
            self._counts["undated"] += item.at is None
            self._counts[_counted(outcome)] += 1
            if item.status is not None or item.ended is not None:
                self._mapped[f"{item.status or item.ended} → {outcome.state or outcome.outcome}"] += 1

    def _stops(self, write: "Writer") -> None:
        ended, proposed = write.apply_stops()
        for what, ids in (("rejected here too", ended), ("proposed for rejection", proposed)):
            if ids:
                message = f"{len(ids):,} of what stood is {what}, because a tombstone that came in stops it"
                self._more.append(Warned(line=None, message=message))

    def report(self, place: exchange.Reading) -> ImportReport:
        """Return what became of the file."""
        counted = self._counts
        warnings = sorted((*place.warnings, *self._more), key=lambda item: (item.line is None, item.line or 0))
        return ImportReport(
            path=place.path,
            format=place.format,
            tried=place.tried,
            roles={str(role): count for role, count in self._roles.items()},
            mapped=dict(self._mapped),
            warnings=tuple(warnings),
            conversations=counted["conversations"],
            messages=counted["messages"],
            tool_calls=counted["tool_calls"],
            facts=counted["facts"],
            tombstones=counted["tombstones"],
            undated=counted["undated"],
            new=counted["new"],
            same=counted["same"],
            refused=counted["refused"],
            conflicting=counted["conflicting"],
        )


def _counted(became: "Became") -> str:
    if became.state is None:
        return "conflicting" if became.outcome == Conflict.code else "refused"
    return {"held": "conflicting", "same": "same", "corroborated": "same"}.get(became.outcome, "new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What became of one claim: `written` where it was taken, `refusal` where a rule stopped it."""

    claim: Claim
    written: Written | None = None
    refusal: Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What became of an extraction, claim by claim, over so many messages.

    Args:
        skipped: Messages that the same reader has read before.
        problem: Why it ended early; what was read until then is kept.
    """

    messages: int
    outcomes: tuple[Offered, ...]
    dry_run: bool
    skipped: int = 0
    problem: Unreadable | None = None

    def ids(self) -> list[str]:
        """Return the ids of the facts that were made or met."""
        return [item.written.fact.id for item in self.outcomes if item.written is not None]

    def counts(self) -> dict[str, int]:
        """Return how many claims came to each end."""
        ends = [_end(item) for item in self.outcomes]
        return {end: ends.count(end) for end in dict.fromkeys(ends)}

    def document(self) -> Json:
        """Return the JSON document: every claim with what became of it."""
        facts: list[Json] = [_document(item) for item in self.outcomes]
        return {"messages": self.messages, "claims": len(facts), "counts": dict(self.counts()), "facts": facts}

    def text(self, short_ids: "dict[str, str]", width: int) -> str:
        """Return one line for each claim, and the sum of all."""
        from memcli.text import shorten, visible

        lines = [shorten(visible(line), width) for line in self._lines(short_ids)]
        counts = ", ".join(f"{number} {end}" for end, number in self.counts().items()) or "none"
        offered = f"{len(self.outcomes):,} {'fact' if len(self.outcomes) == 1 else 'facts'} offered"
        lines.append(f"{self.messages:,} messages read, {offered}: {counts}")
        if self.skipped:
            lines.append(f"{self.skipped:,} were read before · --all reads them again")
        if self.dry_run:
            lines.append("nothing changed · leave out --dry-run")
        return "\n".join(lines)

    def _lines(self, short_ids: "dict[str, str]") -> Iterator[str]:
        for item in self.outcomes:
            made = "" if item.written is None else short_ids[item.written.fact.id]
            place = item.claim.evidence[0].message if item.claim.evidence else ""
            yield f"  {_end(item):<12}  {made:<6}  {item.claim.text}  ({item.claim.rule}, {place})"


def _end(item: Offered) -> str:
    if item.refusal is not None:
        return item.refusal.code
    return "offered" if item.written is None else item.written.outcome


def _document(item: Offered) -> Json:
    place = item.claim.evidence[0] if item.claim.evidence else None
    return {
        "outcome": _end(item),
        "text": item.claim.text,
        "rule": item.claim.rule,
        "message": None if place is None else place.message,
        "quote": None if place is None else place.quote,
        "fact": None if item.written is None else wire.fact(item.written.fact),
        "refused": None if item.refusal is None else item.refusal.message,
    }


def extract_sources(
    store: "Store",
    actor: Actor,
    reason: str | None,
    names: Sequence[str],
    *,
    reader: Reader,
    batch: int | None = None,
    again: bool = False,
    dry_run: bool,
) -> Extracted:
    """Read the messages of sources, all of the scope without names, and offer what they say as facts.

    Messages that this reader has read before are passed over. Each batch is written in one transaction.

    Args:
        reader: Whoever reads; it is also told the facts of the scope that a prompt may read.
        batch: The most messages of one source that are read at a time; None is all of them, of all sources.
        again: Read also what was read before.

    Raises:
        NotFound: There is no such source.
        NotPermitted: Facts enter this file only through transactions.
        Unreadable: The reader gave no answer, and nothing was read before.
    """
    whole = _messages(store, names)
    fresh = whole if again else [_unread(store, reader, messages) for messages in whole]
    outcomes: list[Offered] = []
    read, problem = 0, None
    # A reader that is asked about an empty file at least shows that it can be asked.
    batches = _batches(fresh, reader, batch) if any(whole) or not reader.whole else iter([()])
    for messages in batches:
        try:
            claims = reader.read(messages, list(store.facts()) if reader.told else [])
        except Unreadable as error:
            if not read:
                raise
            problem = Unreadable(error.path, error.why, hint="what was read before is kept; run it again to go on")
            break
        read += len(messages)
        if dry_run:
            outcomes += (Offered(claim=claim) for claim in claims)
        elif messages:
            outcomes += _offer_all(store, actor, reason, claims, read=messages, by=reader.name)
    return Extracted(
        messages=read,
        skipped=sum(map(len, whole)) - sum(map(len, fresh)),
        outcomes=tuple(outcomes),
        dry_run=dry_run,
        problem=problem,
    )


def _messages(store: "Store", names: Sequence[str]) -> list[list[Message]]:
    """Return the messages of each source that is named, or of all in the scope that are no single statements."""
    sources = [store.source(name) for name in names] or [item for item in store.sources() if item.format != "statement"]
    return [store.messages(item.id) for item in sources]


def _unread(store: "Store", reader: Reader, messages: Sequence[Message]) -> list[Message]:
    """Return the messages of one source that the log does not know as read."""
    if not messages:
        return []
    events = store.events(EventQuery(fact=messages[0].source, op=Op.EXTRACT))
    known = was_read(reader.name, (event.reason for event in events))
    return [message for message in messages if not known(message.index)]


def _batches(sources: Sequence[Sequence[Message]], reader: Reader, size: int | None) -> Iterator[Sequence[Message]]:
    """Yield what is read at a time: never more than `size` messages, and then of one source."""
    if size is None and reader.whole:
        together = [message for messages in sources for message in messages]
        if together:
            yield together
        return
    for messages in sources:
        step = size or max(1, len(messages))
        for start in range(0, len(messages), step):
            yield messages[start : start + step]


def _offer_all(
    store: "Store",
    actor: Actor,
    reason: str | None,
    claims: Sequence[Claim],
    *,
    read: Sequence[Message],
    by: str,
) -> list[Offered]:
    """Offer claims and write down which messages were read, in one transaction."""
    with store.write(actor, reason) as write:
        offered = [_offer(write.offer, claim) for claim in claims]
        for source, found in groupby(read, key=lambda message: message.source):
            for first, last in stretches(found):
                write.event(Op.EXTRACT, source, reason=said_read(by, first, last))
    return [_as_kept(store, item) for item in offered]


def _as_kept(store: "Store", item: Offered) -> Offered:
    """Return the outcome with its fact as the file holds it now: tokens are counted when all is written."""
    if item.written is None:
        return item
    kept = store.get(item.written.fact.id, all_scopes=True)
    return replace(item, written=replace(item.written, fact=kept))


def _offer(offer: "Offer", claim: Claim) -> Offered:
    answer = offer(claim)
    if isinstance(answer, Refused):
        return Offered(claim=claim, refusal=answer)
    return Offered(claim=claim, written=answer)


if TYPE_CHECKING:
    Offer = Callable[[Claim], Written | Refused]
