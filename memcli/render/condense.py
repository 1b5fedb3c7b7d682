"""The screen of `mem condense`: what a plan keeps, merges and drops, and what would vanish."""

from collections.abc import Iterator, Mapping, Sequence

from memcli.facts import CondensePlan
from memcli.render.layout import Column, Page, Part, Screen
from memcli.render.words import counted, short

KEPT = 10
"""Facts that stay as they are of which so many are listed; the rest is counted."""

COLUMNS = (Column(head="", at_most=6), Column(head="ID"), Column(head="FACT", flexible=True), Column(head="", spare=1))


def condense_rows(
    plan: CondensePlan, made: Sequence[str | None], short_ids: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    """Yield what becomes of each fact: keeps, merges or drops, its id, into what or why, and its text."""
    texts = {item.id: item.text for item in plan.facts}
    whys = {item.id: item.why for item in plan.lost}
    protected = {item.id: item.protected or "" for item in plan.facts}
    for name in plan.kept:
        yield "keeps", short(short_ids, name), protected[name], texts[name]
    for item, one in zip(plan.merged, made, strict=True):
        into = "→ a new fact" if one is None else f"→ {short(short_ids, one)}"
        for name in item.parents:
            yield "merges", short(short_ids, name), into, texts[name]
        if item.keep is None:
            yield "makes", "" if one is None else short(short_ids, one), "", item.text
    for name in plan.dropped:
        yield "drops", short(short_ids, name), whys.get(name, ""), texts[name]
    for fallen in plan.lost:
        if fallen.id not in texts:
            yield "drops", short(short_ids, fallen.id), fallen.why, fallen.text


def condense_screen(
    plan: CondensePlan,
    *,
    scope: str,
    made: Sequence[str | None],
    applied: bool,
    dry_run: bool,
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return the plan as a small table, under how many facts it leaves.

    Args:
        made: The id of the one fact of each merging; None where it is not made yet.
    """
    page = Page(width)
    bound = "" if plan.max_facts is None else f" (at most {plan.max_facts:,})"
    page.line(f"{scope} · {counted(len(plan.facts), 'fact')} → {plan.left:,}{bound}", hang=2)
    found = list(condense_rows(plan, made, short_ids))
    kept = [row for row in found if row[0] == "keeps"]
    shown = [*kept[:KEPT], *(row for row in found if row[0] != "keeps")]
    page.blank()
    page.table(COLUMNS, [_styled(row) for row in shown])
    if len(kept) > KEPT:
        page.line((f"  keeps {len(kept) - KEPT:,} more as they are", "dim"))
    page.blank()
    page.line(_end(plan, applied=applied, dry_run=dry_run), hang=2)
    return page.screen()


def _styled(row: tuple[str, ...]) -> list[Part]:
    word, name, more, text = row
    return [(word, "warning" if word == "drops" else ""), (name, "id"), text, (more, "dim")]


def _end(plan: CondensePlan, *, applied: bool, dry_run: bool) -> str:
    if applied:
        return "condensed · take it back with `mem undo`"
    if not plan.changes:
        return "nothing says the same as another"
    return "nothing changed · leave out --dry-run" if dry_run else "nothing changed"


def plan_lines(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield in words what a proposal to condense would do, from its arguments as the file holds them."""
    texts = {item["id"]: item["text"] for item in _objects(arguments.get("facts"))}
    for item in _objects(arguments.get("merged")):
        gone = " + ".join(f"“{texts.get(name, name)}”" for name in _listed(item.get("from")))
        yield f"merges {gone} into “{item.get('text')}”"
    for name in _listed(arguments.get("dropped")):
        yield f"drops “{texts.get(name, name)}”"
    yield f"keeps {counted(len(_listed(arguments.get('kept'))), 'fact')}"


def _listed(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _objects(found: object) -> list[dict[str, object]]:
    return [item for item in _listed(found) if isinstance(item, dict)]
