"""The screens of `mem review`: one item with the keys that decide it, the list, and what became of decisions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from memcli.clock import ago, format_instant
from memcli.errors import Unreadable
from memcli.facts import ErasePlan, Fact, Micros, Proposal, QueueItem, TombstonePlan
from memcli.render.changes import erase_plan_screen, tombstone_plan_screen
from memcli.render.condense import plan_lines
from memcli.render.excerpts import place, put_excerpt, when
from memcli.render.layout import Column, Page, Part, Screen, clip, plain
from memcli.render.words import counted, quoted, said_of_subject, short, slot_of, state_part, true_for, who
from memcli.review import OPEN_TO, Applied, Decided, Outcome
from memcli.terms import Decision, Op, State, Waiting
from memcli.text import visible

if TYPE_CHECKING:
    from memcli.store.queue import Entry

KEYS: Mapping[str, str] = {
    "a": Decision.ACCEPT.value,
    "v": Decision.VERIFY.value,
    "e": Decision.EDIT.value,
    "r": Decision.REJECT.value,
    "t": Decision.RETRACT.value,
    "b": Decision.KEEP_BOTH.value,
    "m": Decision.MERGE.value,
    "d": Decision.DISPUTE.value,
    "s": Decision.SKIP.value,
    "u": "undo",
    "q": "quit",
    "?": "help",
}
"""One key for each thing a reviewer may say."""

ASKS = frozenset({Decision.REJECT.value, Decision.RETRACT.value, Decision.EDIT.value})
"""What asks for words before it acts; shown with `…` behind it."""

TEXT = 400
"""Cells that are shown of one text."""

EVIDENCE = 3
"""Messages that are shown of one item."""

DONE: Mapping[Decision, str] = {
    Decision.ACCEPT: "accepted",
    Decision.VERIFY: "verified",
    Decision.EDIT: "corrected",
    Decision.REJECT: "rejected",
    Decision.RETRACT: "retracted",
    Decision.KEEP_BOTH: "kept",
    Decision.MERGE: "merged",
    Decision.DISPUTE: "disputed",
    Decision.SKIP: "skipped",
}
"""What a decision is called once it is made."""

NOTHING_WAITS = "nothing waits for review"


def queue_item_screen(
    item: QueueItem,
    *,
    position: int,
    total: int,
    now: Micros,
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return one item of the queue with all that a person needs to decide it, and the keys that do.

    Args:
        position: 1-based.
    """
    page = Page(width)
    detail = f" · {item.detail}" if item.detail else ""
    page.line((f"({position}/{total})", "heading"), "  ", (item.why.value, "warning"), clip(detail, TEXT), hang=4)
    page.blank()
    if item.fact is not None:
        _put_fact(page, item.fact, now)
    if item.proposal is not None:
        _put_proposal(page, item.proposal)
    for shown in item.evidence[:EVIDENCE]:
        page.blank()
        page.line("     ", (f"{place(shown)}  {when(shown.message)}", "dim"), hang=5)
        put_excerpt(page, shown)
    if len(item.evidence) > EVIDENCE and item.fact is not None:
        more = f"and {len(item.evidence) - EVIDENCE:,} more: mem why {short(short_ids, item.fact.id)}"
        page.line("     ", (more, "dim"), hang=5)
    _put_neighbours(page, item, short_ids)
    page.blank()
    page.flow([_key(key, word) for key, word in keys_of(item).items()], indent=1)
    return page.screen()


def keys_of(item: QueueItem) -> Mapping[str, str]:
    """Return the keys that say something of an item."""
    closed = {word.value for word in set(Decision) - OPEN_TO[item.why]}
    return {key: word for key, word in KEYS.items() if word not in closed}


def _put_fact(page: Page, f: Fact, now: Micros) -> None:
    subject: list[Part] = [(f.subject, "heading"), "  "] if f.subject else []
    page.line("   ", *subject, clip(said_of_subject(f), TEXT), hang=5)
    details = [slot_of(f)] if f.slot is not None else []
    details += [
        words for words in (true_for(f.valid), f"offered {ago(f.recorded_at, now=now)} by {who(f.actor)}") if words
    ]
    page.flow([[(clip(words, TEXT), "dim")] for words in details], indent=3, gap=" · ")


def _put_proposal(page: Page, asked: Proposal) -> None:
    page.blank()
    about = f" version {asked.version}" if asked.fact else ""
    page.line(
        f"   {who(asked.actor)} proposes to ",
        (asked.op.value, "warning"),
        f"{about}: {clip(quoted(asked.reason), TEXT)}",
        hang=5,
    )
    if asked.op is Op.CONDENSE:
        for line in plan_lines(asked.arguments):
            page.line("     ", clip(line, TEXT), hang=7)
        return
    for name, value in asked.arguments.items():
        page.line("     ", (f"{name}  ", "dim"), clip(f"{value}", TEXT), hang=5)


def _put_neighbours(page: Page, item: QueueItem, ids: Mapping[str, str]) -> None:
    page.blank()
    for rival in item.conflicts:
        page.line(
            ("   conflicts with  ", "warning"),
            (short(ids, rival.id), "id"),
            f" {clip(quoted(rival.text), TEXT)} ",
            state_part(rival.state),
            hang=5,
        )
    for other in item.similar:
        rejected = other.state is State.REJECTED
        page.line(
            ("   tombstone near  ", "warning") if rejected else ("   resembles       ", "dim"),
            (short(ids, other.id), "id"),
            f" {clip(quoted(other.text), TEXT)} {other.score:.0f} % alike, ",
            state_part(other.state),
            hang=5,
        )


def _key(key: str, word: str) -> list[Part]:
    """Return the word with its key in brackets, inside the word where it stands there."""
    asks = "…" if word in ASKS else ""
    said = word.replace("-", " ")
    before, found, after = said.partition(key)
    if word == Decision.KEEP_BOTH.value:
        before, found, after = "keep ", key, "oth"
    if not found:
        return [("[", "dim"), (key, "key"), ("]", "dim"), f" {said}{asks}"]
    return [before, ("[", "dim"), (key, "key"), ("]", "dim"), f"{after}{asks}"]


def help_screen(*, width: int = 80) -> Screen:
    """Return what each key of the review does."""
    page = Page(width)
    for key, word in KEYS.items():
        page.line(" ", (key, "key"), f"  {HELP[word]}", hang=4)
    return page.screen()


HELP: Mapping[str, str] = {
    Decision.ACCEPT.value: "accept: believe it; it may reach prompts",
    Decision.VERIFY.value: "verify: believe it and confirm it yourself",
    Decision.EDIT.value: "edit: correct the text, then accept it",
    Decision.REJECT.value: "reject: refuse the value for good; asks the reason and shows what it hits",
    Decision.RETRACT.value: "retract: end it with no replacement; new evidence may bring it back",
    Decision.KEEP_BOTH.value: "keep both: leave it beside what it meets; a conflict is held on both sides",
    Decision.MERGE.value: "merge: add its evidence to the fact it resembles, and end it",
    Decision.DISPUTE.value: "dispute: hold it until somebody knows more",
    Decision.SKIP.value: "skip: leave it in the queue",
    "undo": "undo: take back the last decision",
    "quit": "quit: stop here; what was decided is kept",
    "help": "help: this list",
}
"""What each word of `KEYS` does."""


def plan_screen(plan: TombstonePlan | ErasePlan, *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return what a decision would stop or erase, without the advice for a dry run."""
    if isinstance(plan, TombstonePlan):
        whole = tombstone_plan_screen(plan, short_ids=short_ids, width=width)
    else:
        whole = erase_plan_screen(plan, short_ids=short_ids, width=width)
    end = next(at for at, line in enumerate(whole.lines) if plain(line).startswith("nothing changed"))
    return Screen(lines=whole.lines[:end])


def choice_screen(item: QueueItem, names: Sequence[str], *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return the facts that an item may be merged into, each with the digit that chooses it."""
    texts = {fact.id: fact.text for fact in item.conflicts} | {other.id: other.text for other in item.similar}
    page = Page(width)
    for digit, name in enumerate(names, 1):
        page.line(" ", (str(digit), "key"), "  ", (short(short_ids, name), "id"), f" {clip(quoted(texts[name]), TEXT)}")
    return page.screen()


# -------------------------------------------------------------------- listings


def queue_rows(found: Sequence[tuple["Entry", Fact | None]], short_ids: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield id, why it waits, state, subject, text, and since when it waits."""
    for entry, f in found:
        state, subject = ("", "") if f is None else (f.state.value, f.subject or "")
        yield short(short_ids, entry.id), entry.why.value, state, subject, _said(entry, f), format_instant(entry.since)


def queue_screen(
    found: Sequence[tuple["Entry", Fact | None]], *, now: Micros, short_ids: Mapping[str, str], width: int = 80
) -> Screen:
    """Return the list of what waits, oldest first."""
    page = Page(width)
    if not found:
        page.line(NOTHING_WAITS)
        return page.screen()
    page.table(
        (Column(head="ID"), Column(head="WHY"), Column(head="TEXT", flexible=True), Column(head="SINCE", spare=1)),
        [
            ((short(short_ids, entry.id), "id"), entry.why.value, _said(entry, f), ago(entry.since, now=now))
            for entry, f in found
        ],
    )
    page.blank()
    page.line(f"  {counted(len(found), 'item')} · mem review · mem review export", hang=2)
    return page.screen()


def _said(entry: "Entry", f: Fact | None) -> str:
    """Return what a listing says of an item: the fact, or what is asked for."""
    text = "" if f is None else f.text
    if entry.proposal is None:
        return text
    asked = str(entry.proposal.arguments.get("text") or entry.proposal.arguments.get("value") or "")
    return " ".join(part for part in (f"{entry.proposal.op}:", text, f"→ {asked}" if text and asked else asked) if part)


def waiting_line(counts: Mapping[Waiting, int]) -> str:
    """Return how many items wait, and why."""
    total = sum(counts.values())
    if not total:
        return NOTHING_WAITS
    parts = ", ".join(f"{counts[why]:,} {why}" for why in Waiting if counts.get(why))
    return f"{counted(total, 'item')} {'waits' if total == 1 else 'wait'} for review: {parts}"


# -------------------------------------------------------------------- what became of decisions


def decided_line(done: Decided, *, short_ids: Mapping[str, str], undone: bool = False) -> str:
    """Return one line for a decision that was made or taken back."""
    item, f = done.item, done.fact
    name = short(short_ids, item.id)
    if undone:
        return f"took back: {DONE[done.decision]} {name}"
    said = DONE[done.decision]
    if item.why is Waiting.PROPOSAL and done.decision is Decision.REJECT:
        said = "refused"
    line = f"{said} {name}"
    if done.decision is Decision.MERGE and f is not None:
        line += f" into {short(short_ids, f.id)}"
    if done.tombstone is not None:
        line += f" · {done.tombstone.id}"
    if f is not None and done.decision is Decision.KEEP_BOTH:
        line += f" · {f.state}, undecided" if f.state is State.DISPUTED else f" · {f.state}"
    return visible(line)


def summary_screen(decided: Sequence[Decided], *, total: int, width: int = 80) -> Screen:
    """Return how many items were decided, how, and how many are left."""
    made = sum(done.decision is not Decision.SKIP for done in decided)
    counts = {word: sum(done.decision is word for done in decided) for word in Decision}
    left = total - made
    end = f"{left:,} still {'waits' if left == 1 else 'wait'}" if left else "nothing is left"
    parts = [f"{count:,} {DONE[word]}" for word, count in counts.items() if count]
    page = Page(width)
    page.flow([[part] for part in (f"{made:,} of {counted(total, 'item')} decided", *parts, end)], gap=" · ")
    return page.screen()


def applied_rows(found: Sequence[Applied]) -> Iterator[tuple[str, ...]]:
    """Yield line, id, decision, outcome, and why where it is not as the line says."""
    for line in found:
        yield str(line.number), line.id or "", line.decision or "", line.outcome.value, _why(line)


def _why(line: Applied) -> str:
    """Return why a line was not applied, without the place, which stands before it."""
    if isinstance(line.problem, Unreadable):
        return line.problem.why
    return "" if line.problem is None else line.problem.message


def applied_screen(found: Sequence[Applied], *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return what became of each line of a decisions file, and how many of each there are."""
    page = Page(width)
    for line in found:
        bad = line.outcome in (Outcome.REFUSED, Outcome.UNREADABLE)
        lead: list[Part] = [f"  line {line.number}  ", (short(short_ids, line.id or ""), "id")]
        lead += [f" {line.decision}" if line.decision else "", " "]
        page.line(*lead, (line.outcome.value, "error" if bad else "accepted"), hang=4)
        if line.problem is not None:
            page.line("    ", clip(_why(line), TEXT), hang=4)
    counts = {outcome: sum(line.outcome is outcome for line in found) for outcome in Outcome}
    page.line("  ", ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "no lines", hang=2)
    return page.screen()
