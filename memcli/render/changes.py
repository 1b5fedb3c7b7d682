"""The screens of change: the log and its chain, and what a tombstone or an erase would do."""

from collections.abc import Mapping, Sequence

from memcli.clock import ago
from memcli.facts import AuditEvent, ErasePlan, Fact, LogVerdict, Micros, TombstonePlan
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.words import DONE, counted, quoted, short, spoken, state_part, who
from memcli.terms import VIEWS, Match

TEXT = 200
"""Cells that are shown of one fact's text."""

LISTED = 50
"""Ids of messages that are written out."""

EVENT_COLUMNS = (
    Column(head="#", right=True),
    Column(head="WHEN"),
    Column(head="WHO", at_most=20, spare=1),
    Column(head="WHAT"),
    Column(head="WHY", flexible=True),
)


def log_screen(
    events: Sequence[AuditEvent],
    *,
    now: Micros,
    verified: LogVerdict | None,
    short_ids: Mapping[str, str],
    more: bool = False,
    width: int = 80,
) -> Screen:
    """Return the audit trail in the order given, and what verifying its chain found.

    Args:
        more: Whether older events were left out.
    """
    page = Page(width)
    if not events and verified is None:
        page.line("no events")
    page.table(EVENT_COLUMNS, [_event(event, now, short_ids) for event in events])
    if more:
        page.line("… and older ones, all of them with -n 0", hang=2)
    if verified is not None:
        page.blank()
        _put_verdict(page, verified)
    return page.screen()


def _event(event: AuditEvent, now: Micros, ids: Mapping[str, str]) -> list[Part]:
    what = [DONE[event.op]]
    if event.target is not None:
        what.append(short(ids, event.target))
    if event.to_state not in (None, event.from_state, DONE[event.op]):
        what.append(f"→ {event.to_state}")
    return [
        (str(event.seq), "id"),
        (ago(event.at, now=now), "dim"),
        who(event.actor),
        " ".join(what),
        quoted(event.reason) if event.reason else "",
    ]


def _put_verdict(page: Page, verdict: LogVerdict) -> None:
    if not verdict.findings:
        page.line("chain of ", counted(verdict.events, "event"), " ", ("verified", "accepted"))
        page.line("head ", (verdict.head, "id"))
        page.line(("pin it elsewhere: mem log verify --head HEAD", "dim"))
        return
    page.line(
        "chain of ",
        counted(verdict.events, "event"),
        " ",
        ("broken", "error"),
        f": {counted(len(verdict.findings), 'finding')}",
    )
    for finding in verdict.findings:
        page.line("  ", ("✗ ", "error"), (f"{finding.code}  {finding.place}  ", "id"), finding.message, hang=4)


def verdict_screen(verdict: LogVerdict, *, width: int = 80) -> Screen:
    """Return what verifying the chain found."""
    page = Page(width)
    _put_verdict(page, verdict)
    return page.screen()


def _put_facts(page: Page, label: str, facts: Sequence[Fact], ids: Mapping[str, str], become: str) -> None:
    for at, f in enumerate(facts):
        text = "(erased)" if f.erased_at is not None else clip(quoted(f.text), TEXT)
        lead = label if at == 0 else ""
        page.line(f"  {lead:<15}", (short(ids, f.id), "id"), f" {text} (", state_part(f.state), f"){become}", hang=17)


def _put_falls(page: Page, facts: Sequence[Fact], ids: Mapping[str, str]) -> None:
    for at, f in enumerate(facts):
        become = "disputed, to be rebuilt" if f.kind in VIEWS else "revoked"
        _put_facts(page, "falls with it" if at == 0 else "", [f], ids, f" → {become}")


def tombstone_plan_screen(plan: TombstonePlan, *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return what a tombstone would reject, what falls with it, and what it would not stop."""
    page = Page(width)
    where = "in every scope" if plan.scope is None else f"in {plan.scope}"
    page.line(f"would reject, {where}, until somebody lifts it:", hang=2)
    if plan.match is not Match.VALUE and plan.pattern is not None:
        verb = "contains" if plan.match is Match.CONTAINS else "matches"
        page.line(f"    whatever {verb} ", clip(quoted(plan.pattern), TEXT), hang=6)
    for value in plan.values:
        page.line("    ", clip(quoted(value), TEXT), hang=6)
    for subject, attribute, held in plan.slots:
        page.line("    any wording of  ", clip(f"{subject} · {attribute} = {spoken(held)}", TEXT), hang=6)
    if not plan.hits:
        page.line(f"  {'hits now':<15}nothing", hang=17)
    _put_facts(page, "hits now", plan.hits, short_ids, " → rejected")
    _put_falls(page, plan.falls, short_ids)
    for other in plan.near:
        page.line(
            ("  would NOT stop ", "warning"),
            clip(quoted(other.text), TEXT),
            " (",
            (short(short_ids, other.id), "id"),
            f", {other.score:.0f} % alike): reject it too if it is the same claim",
            hang=17,
        )
    page.line("nothing changed · leave out --dry-run and give --reason", hang=2)
    return page.screen()


def erase_plan_screen(plan: ErasePlan, *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return whose words an erase would remove, what would fall with them, and what would wait for review."""
    page = Page(width)
    page.line("would remove the words for good, everywhere in the file; digests and the log stay:", hang=2)
    if not (plan.facts or plan.messages or plan.sources):
        page.line("  nothing: no words of it are in the file", hang=2)
    _put_facts(page, "facts", plan.facts, short_ids, "")
    _put_ids(page, "messages", plan.messages)
    _put_ids(page, "sources", plan.sources)
    _put_falls(page, plan.falls, short_ids)
    _put_facts(page, "to review", plan.reviewed, short_ids, "")
    page.line("nothing changed · leave out --dry-run and give --reason", hang=2)
    return page.screen()


def _put_ids(page: Page, label: str, ids: Sequence[str]) -> None:
    if not ids:
        return
    rest = f" and {len(ids) - LISTED:,} more" if len(ids) > LISTED else ""
    page.line(f"  {label:<15}{len(ids):,}: ", (" ".join(ids[:LISTED]), "id"), rest, hang=17)
