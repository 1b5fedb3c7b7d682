"""What changed between two memory files: as a screen, and as Markdown for a pull request."""

from collections.abc import Iterator, Mapping, Sequence

from memcli.diff import Changed, Difference
from memcli.facts import Fact, Tombstone
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.reports import cell
from memcli.render.words import counted, quoted, said_of_subject, short, spoken, state_part
from memcli.terms import Match

TEXT = 300
"""Cells that are shown of one fact's text."""

FACT_COLUMNS = (
    Column(head="ID"),
    Column(head="STATE"),
    Column(head="SUBJECT", at_most=14, spare=1),
    Column(head="FACT", flexible=True),
)


def diff_screen(
    found: Difference, *, paths: tuple[str, str], scopes: str, short_ids: Mapping[str, str], width: int = 80
) -> Screen:
    """Return what changed, kind by kind, after one line that sums it up.

    Args:
        scopes: What was compared, as words.
    """
    page = Page(width)
    page.line(f"{paths[0]} → {paths[1]} · {scopes}", hang=2)
    page.line(summary(found))
    for title, facts in (("added", found.added), ("removed", found.removed)):
        if facts:
            page.heading(title)
            page.table(FACT_COLUMNS, [_fact(fact, short_ids) for fact in facts], heads=False)
    if found.changed:
        page.heading("changed")
        for item in found.changed:
            page.line(*_changed(item, short_ids), hang=8)
    _put_stones(page, "tombstones", found.tombstones, short_ids)
    _put_stones(page, "lifted", found.lifted, short_ids)
    _put_stones(page, "tombstones that are gone", found.gone, short_ids)
    return page.screen()


def summary(found: Difference) -> str:
    """Return one line that says how much changed."""
    if not found:
        return f"no difference in {counted(found.same, 'fact')}"
    stones = (
        (len(found.tombstones), "new tombstone"),
        (len(found.lifted), "lifted tombstone"),
        (len(found.gone), "tombstone gone"),
    )
    parts = [
        f"{len(facts):,} {word}"
        for facts, word in ((found.added, "added"), (found.removed, "removed"), (found.changed, "changed"))
        if facts
    ]
    many = {"tombstone gone": "tombstones gone"}
    parts += [counted(number, word, many.get(word)) for number, word in stones if number]
    return ", ".join([*parts, f"{found.same:,} the same"])


def _fact(fact: Fact, ids: Mapping[str, str]) -> list[Part]:
    text = clip(said_of_subject(fact), TEXT)
    return [(short(ids, fact.id), "id"), state_part(fact.state), fact.subject or "", text]


def _changed(item: Changed, ids: Mapping[str, str]) -> Iterator[Part]:
    yield "  "
    yield short(ids, item.after.id), "id"
    yield "  "
    if "erased" in item.what:
        yield "erased"
        return
    if "text" in item.what:
        yield clip(quoted(item.before.text), TEXT)
        yield " → "
    yield clip(quoted(item.after.text), TEXT)
    if "state" in item.what:
        yield "  "
        yield state_part(item.before.state)
        yield " → "
        yield state_part(item.after.state)
    for name, before, after in _parts(item):
        yield f"  {name} {clip(before, TEXT)} → {clip(after, TEXT)}"
    if item.before.id != item.after.id:
        yield f"  was {short(ids, item.before.id)}, the same {item.by}", "dim"


def _parts(item: Changed) -> Iterator[tuple[str, str, str]]:
    """Yield the parts that differ besides text and state, before and after."""
    for name in item.what:
        if name not in {"text", "state", "erased"}:
            yield name.replace("_", " "), _part(item.before, name), _part(item.after, name)


def _part(fact: Fact, name: str) -> str:
    from memcli.wire import fact as document

    value = document(fact)[name]
    return "–" if value is None else spoken(value if isinstance(value, str | int | float | bool) else str(value))


def _put_stones(page: Page, title: str, stones: Sequence[Tombstone], ids: Mapping[str, str]) -> None:
    if not stones:
        return
    page.heading(title)
    for stone in stones:
        why = f"  {clip(quoted(stone.reason), TEXT)}" if stone.reason else ""
        page.line("  ", (stone.id, "id"), f"  {_stops(stone, ids)}{why}", hang=6)


def _stops(stone: Tombstone, ids: Mapping[str, str]) -> str:
    where = " everywhere" if stone.scope is None else ""
    if stone.match is not Match.VALUE:
        verb = "contains" if stone.match is Match.CONTAINS else "matches"
        return f"whatever {verb} {clip(quoted(stone.pattern or ''), TEXT)}{where}"
    return f"the value of {short(ids, stone.fact)}{where}" if stone.fact else f"a value{where}"


# -------------------------------------------------------------------- Markdown


def diff_markdown(found: Difference, *, paths: tuple[str, str], scopes: str, short_ids: Mapping[str, str]) -> str:
    """Return what changed as Markdown, in which no text of a memory is markup, a mention or a link."""
    lines = [f"### Memory: {cell(paths[0])} → {cell(paths[1])}", "", cell(f"{scopes}: {summary(found)}")]
    rows = list(_rows(found, short_ids))
    if rows:
        lines += ["", "| | fact | before | after |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(cell(part) for part in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _rows(found: Difference, ids: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    for fact in found.added:
        yield "added", short(ids, fact.id), "", _said(fact)
    for fact in found.removed:
        yield "removed", short(ids, fact.id), _said(fact), ""
    for item in found.changed:
        parts = [*_parts(item)]
        before = "; ".join([_said(item.before), *(f"{name} {was}" for name, was, _ in parts)])
        after = "; ".join([_said(item.after), *(f"{name} {now}" for name, _, now in parts)])
        yield "erased" if "erased" in item.what else "changed", short(ids, item.after.id), before, after
    for title, stones in (("tombstone", found.tombstones), ("lifted", found.lifted), ("tombstone gone", found.gone)):
        for stone in stones:
            why = f": {clip(stone.reason, TEXT)}" if stone.reason else ""
            said = f"{_stops(stone, ids)}{why}"
            yield title, stone.id, *(("", said) if title != "tombstone gone" else (said, ""))


def _said(fact: Fact) -> str:
    text = "(erased)" if fact.erased_at is not None else clip(fact.text, TEXT)
    return f"{text} ({fact.state})"
