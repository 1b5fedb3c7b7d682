"""Transcripts into the file, and facts out of transcripts: what the commands and the tour do, and what became of it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memcli import exchange, wire
from memcli.errors import Refused, Unreadable
from memcli.extract import extract, run_extractor
from memcli.facts import Actor, Claim, Imported, ImportReport, Json, Message, Written

if TYPE_CHECKING:
    from memcli.store.store import Store


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
) -> Brought:
    """Keep each file's conversations in one transaction a file, and return what was new.

    Raises:
        UsageError: There is no such format or encoding.
    """
    reports: list[ImportReport] = []
    sources: list[Imported] = []
    problem: Unreadable | None = None
    for path in paths:
        try:
            opened = exchange.open_file(path, format=format_, encoding=encoding)
        except Unreadable as error:
            problem = problem or error
            reports.append(ImportReport(path=path, format=None, tried=error.tried, roles={}, error=error.message))
            continue
        taken = _take(store, actor, reason, opened, dry_run=dry_run)
        reports.append(_report(opened, taken))
        sources += taken
    return Brought(reports=tuple(reports), sources=tuple(sources), problem=problem)


def _take(
    store: "Store", actor: Actor, reason: str | None, opened: exchange.Opened, *, dry_run: bool
) -> list[Imported]:
    if dry_run:
        planner = store.planner(actor)
        return [planner.plan_take(conversation) for conversation in opened.conversations]
    with store.write(actor, reason) as write:
        return [write.take(talk, path=opened.path, digest=opened.digest) for talk in opened.conversations]


def _report(opened: exchange.Opened, taken: Sequence[Imported]) -> ImportReport:
    turns = [turn for conversation in opened.conversations for turn in conversation.turns]
    return ImportReport(
        path=opened.path,
        format=opened.format,
        tried=opened.tried,
        conversations=len(opened.conversations),
        messages=len(turns),
        roles=Counter(str(turn.role) for turn in turns),
        tool_calls=sum(len(turn.tool_calls) for turn in turns),
        new=sum(item.new for item in taken),
        same=sum(item.same for item in taken),
        warnings=opened.warnings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What became of one claim: `written` where it was taken, `refusal` where a rule stopped it."""

    claim: Claim
    written: Written | None = None
    refusal: Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What became of an extraction, claim by claim, over so many messages."""

    messages: int
    outcomes: tuple[Offered, ...]
    dry_run: bool

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
    command: str | None,
    timeout_s: float,
    dry_run: bool,
) -> Extracted:
    """Read the messages of sources, all of the scope without names, and offer what they say as facts.

    Args:
        command: An extractor to run instead of the built-in rules; it runs before anything is locked.
        timeout_s: Seconds it may take.

    Raises:
        NotFound: There is no such source.
        NotPermitted: Facts enter this file only through transactions.
        Unreadable: The extractor gave no answer.
    """
    sources = [store.source(name) for name in names] or [item for item in store.sources() if item.format != "statement"]
    messages: list[Message] = [message for item in sources for message in store.messages(item.id)]
    if command is None:
        claims = [claim for item in sources for claim in extract([m for m in messages if m.source == item.id])]
    else:
        claims = run_extractor(command, messages, list(store.facts()), timeout_s=timeout_s)
    if dry_run or not claims:
        return Extracted(
            messages=len(messages), outcomes=tuple(Offered(claim=claim) for claim in claims), dry_run=dry_run
        )
    with store.write(actor, reason) as write:
        offered = [_offer(write.offer, claim) for claim in claims]
    outcomes = tuple(_as_kept(store, item) for item in offered)
    return Extracted(messages=len(messages), outcomes=outcomes, dry_run=False)


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
    from collections.abc import Callable

    Offer = Callable[[Claim], Written | Refused]
