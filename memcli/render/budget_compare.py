"""The screens that compare: a sweep as a map, two settings side by side, and the life of one message."""

import shlex
from collections.abc import Callable, Iterator, Sequence

from memcli.budget.differ import Difference, Parted, Shift
from memcli.budget.explain import Life, Range
from memcli.budget.outcome import Fate
from memcli.budget.sweep import DepthRow, Row, Table
from memcli.render.budget import figure, label, percent, span
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.words import NOTHING, counted, quoted
from memcli.text import cells, shorten, visible

HEAT = "·░▒▓█"
"""From the least to the most."""

STYLES = ("dim", "", "", "heading", "accepted")
MOST_ROWS = 24
"""Settings, messages or ranges that are written out; the other formats have them all."""

SAID = 200
CORNER = "limit \\ ratio"


# --- sweep ---


def sweep_screen(table: Table, *, name: str, messages: int, shown: str, best: Row | None, width: int = 80) -> Screen:
    """Return a map for each policy and flush size, the best setting, and every setting by itself where they are few.

    Args:
        messages: How many the transcript has.
        shown: The column that the maps show.
        best: The best setting by that column.
    """
    page = Page(width)
    page.line(
        (clip(name, 60), "heading"),
        f" · {counted(messages, 'message')} · {counted(len(table.rows), 'setting')}",
        hang=2,
    )
    if best is not None:
        page.line("  best: ", (_point(best), "mark"), f", {_words(table, shown, best)}", hang=4)
    if len(table.rows) > 1:
        for policy, size, rows in _maps(table.rows):
            _put_map(page, table, rows, shown, title=_title(policy, size, table))
        page.line(f"  {HEAT[0]} least … {HEAT[-1]} most · * the default", hang=4)
    _put_rows(page, table)
    page.blank()
    page.flow([[f"--best {column}"] for column in ("real_tokens", "window_messages")], indent=2, gap=" · ")
    return page.screen()


def _maps(rows: Sequence[Row]) -> Iterator[tuple[str, int | None, list[Row]]]:
    """Yield the rows of each policy; rows of one limit and ratio differ by flush size, and are maps of their own."""
    groups: dict[tuple[str, int], list[Row]] = {}
    seen: dict[tuple[str, int, float], int] = {}
    for row in rows:
        point = (row.policy, row.token_limit, row.ratio)
        seen[point] = seen.get(point, -1) + 1
        groups.setdefault((row.policy, seen[point]), []).append(row)
    many = max(number for _, number in groups) > 0
    for (policy, _), found in groups.items():
        sizes = {row.flush_size for row in found}
        yield policy, (sizes.pop() if many and len(sizes) == 1 else None), found


def _title(policy: str, size: int | None, table: Table) -> str:
    several = len({row.policy for row in table.rows}) > 1
    words = ([policy] if several else []) + ([f"flush size {size:,}"] if size is not None else [])
    return " · ".join(words)


def _put_map(page: Page, table: Table, rows: Sequence[Row], shown: str, *, title: str) -> None:
    page.blank()
    limits = list(dict.fromkeys(row.token_limit for row in rows))
    ratios = list(dict.fromkeys(row.ratio for row in rows))
    found = {(row.token_limit, row.ratio): row for row in rows}
    values = [_value(row, shown) for row in rows]
    level = _levels(min(values), max(values))
    if title:
        page.line(f"  {title}", hang=4)
    heads = [
        f"{ratio:g}{'*' if any(row.is_default for row in rows if row.ratio == ratio) else ' '}" for ratio in ratios
    ]
    texts = {place: _shown(table, row, shown) for place, row in found.items()}
    wide = max(cells(text) for text in (*heads, *texts.values())) + 2
    first = max(len(f"{limit:,}") for limit in (*limits, 0))
    first = max(first, len(CORNER))
    fits = 2 + first + wide * len(ratios) + 4 + len(ratios) <= page.width
    page.line(
        f"  {CORNER:>{first}}" if fits else f"  {CORNER} {heads[0]}… {heads[-1]}",
        *(f"{head:>{wide}}" for head in heads if fits),
    )
    for limit in limits:
        marks = [(HEAT[at], STYLES[at]) for at in (level(_value(found[limit, ratio], shown)) for ratio in ratios)]
        numbers = [f"{texts[limit, ratio] + ' ':>{wide}}" for ratio in ratios] if fits else []
        page.line(f"  {limit:>{first},}", *numbers, "    " if fits else "  ", *marks, hang=first + 4)


def _levels(least: float, most: float) -> Callable[[float], int]:
    def level(value: float) -> int:
        return len(HEAT) // 2 if most <= least else round((value - least) / (most - least) * (len(HEAT) - 1))

    return level


def _value(row: Row, shown: str) -> float:
    value = getattr(row, shown)
    return 0.0 if value is None else float(value)


def _shown(table: Table, row: Row, column: str) -> str:
    value = getattr(row, column)
    if column == "reachable" and value is not None and table.probes:
        return percent(value / table.probes)
    if column in ("in_window", "in_block", "lost") and value is not None:
        return percent(value)
    return figure(value)


def _words(table: Table, column: str, row: Row) -> str:
    if column == "reachable":
        return f"{row.reachable or 0:,} of {counted(table.probes, 'question')} still answered"
    return f"{column.replace('_', ' ')} {_shown(table, row, column)}"


def _point(row: Row) -> str:
    size = "" if row.flush_size is None else f", flush size {row.flush_size:,}"
    return f"{row.policy} at {row.token_limit:,} and {row.ratio:g}{size}"


def _put_rows(page: Page, table: Table) -> None:
    page.blank()
    columns = (
        Column(head="POLICY", at_most=12, spare=1),
        Column(head="LIMIT", right=True),
        Column(head="RATIO", right=True),
        Column(head="FLUSH SIZE", right=True, spare=3),
        Column(head="FLUSHES", right=True, spare=2),
        Column(head="WINDOW", right=True),
        Column(head="REALLY", right=True),
        Column(head="OVER", right=True),
        Column(head="LOST", right=True),
        Column(head="", flexible=True),
    )
    page.table(columns, [_row(row) for row in table.rows[:MOST_ROWS]])
    if len(table.rows) > MOST_ROWS:
        page.line(f"  … and {len(table.rows) - MOST_ROWS:,} more settings, all of them with --format csv", hang=4)


def _row(row: Row) -> list[Part]:
    told = [
        word for word, holds in (("system evicted", row.system_evicted), ("never flushed", row.never_flushed)) if holds
    ]
    return [
        row.policy,
        f"{row.token_limit:,}",
        f"{row.ratio:g}{'*' if row.is_default else ''}",
        figure(row.flush_size),
        f"{row.flushes:,}",
        f"{row.window_messages:,}",
        f"{row.real_tokens:,}",
        f"{row.over:,}" if row.over else "",
        "" if row.lost is None else percent(row.lost),
        (", ".join(told), "warning"),
    ]


def depth_screen(rows: Sequence[DepthRow], *, name: str, messages: int, width: int = 80) -> Screen:
    """Return what plain memories of several depths still show."""
    page = Page(width)
    page.line((clip(name, 60), "heading"), f" · {counted(messages, 'message')} · policy sliding", hang=2)
    page.blank()
    columns = (
        Column(head="DEPTH", right=True),
        Column(head="VISIBLE", right=True),
        Column(head="SHARE", right=True),
        Column(head="FIRST LOSS", right=True),
        Column(head="HALF-LIFE", right=True),
    )
    found: list[list[Part]] = [
        [
            row.depth,
            f"{row.visible:,} of {row.facts:,}",
            percent(row.visible / row.facts) if row.facts else NOTHING,
            "never" if row.first_loss is None else f"message {row.first_loss:,}",
            "more" if row.half_life is None else f"{row.half_life:g} messages",
        ]
        for row in rows
    ]
    page.table(columns, found)
    return page.screen()


# --- differences ---


def difference_screen(d: Difference, *, left: str, right: str, name: str, messages: int, width: int = 80) -> Screen:
    """Return where two runs part: settings, sums, blocks, and message by message.

    Args:
        left: What the first settings are called.
        right: What the second ones are called.
    """
    page = Page(width)
    page.line((clip(name, 60), "heading"), f" · {counted(messages, 'message')}", hang=2)
    page.line("  A ", (left, "heading"), " · B ", (right, "heading"), hang=4)
    if not (d.settings or d.totals or d.blocks or d.messages):
        page.blank()
        page.line("  no difference")
        return page.screen()
    _put_shifts(page, "SETTINGS", d.settings)
    _put_shifts(page, "SUMS", d.totals)
    _put_shifts(page, "BLOCKS", d.blocks)
    _put_parted(page, d)
    return page.screen()


def _put_shifts(page: Page, heading: str, shifts: Sequence[Shift]) -> None:
    if not shifts:
        return
    page.heading(heading)
    columns = (Column(head="", flexible=True), Column(head="A", right=True), Column(head="B", right=True))
    page.table(
        columns, [[label(shift.name), clip(_said(shift.left), 30), clip(_said(shift.right), 30)] for shift in shifts]
    )


def _said(value: object) -> str:
    """Return a figure of either run."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value)) or NOTHING
    return figure(value) if value is None or isinstance(value, bool | int | float | str | dict) else str(value)


def _put_parted(page: Page, d: Difference) -> None:
    page.heading("MESSAGES")
    start = "" if d.first_turn is None else f", from turn {d.first_turn:,} on"
    page.line(
        f"  {len(d.messages):,} fare differently{start} · only A reaches {d.only_left:,} at the end, only B "
        f"{d.only_right:,}",
        hang=4,
    )
    columns = (
        Column(head="ID", at_most=40),
        Column(head="ROLE", at_most=10, spare=1),
        Column(head="A", flexible=True),
        Column(head="B", flexible=True),
    )
    page.table(columns, [_parted_row(parted) for parted in d.messages[:MOST_ROWS]])
    if len(d.messages) > MOST_ROWS:
        page.line(f"  … and {len(d.messages) - MOST_ROWS:,} more, all of them with --json", hang=4)


def _parted_row(parted: Parted) -> list[Part]:
    return [(parted.id, "id"), parted.role, _ended(parted.left), _ended(parted.right)]


def _ended(f: Fate) -> str:
    held = f" {', '.join(f.blocks)}" if f.blocks else ""
    seen = "never seen" if f.last_seen is None else f"seen to write {f.last_seen:,}"
    return f"{f.ended}{held}, {seen}" if f.ended != "window" else f"{f.ended}{held}"


# --- one life ---


def lives_screen(
    lives: Sequence[tuple[Life, str]], *, name: str, path: str, about: str | None = None, width: int = 80
) -> Screen:
    """Return the life of each message, with its words.

    Args:
        about: What all of them are explained for, such as a fact; None where a message was asked for.
    """
    page = Page(width)
    if about is not None:
        page.line((about, "heading"), hang=2)
    for life, words in lives:
        page.blank()
        _put_life(page, life, words, name)
    page.blank()
    shown = shlex.quote(clip(path, 60))
    hints = [f"mem budget simulate {shown} --watch {clip(life.fate.id, 40)}" for life, _ in lives[:1]]
    page.flow([[hint] for hint in hints], indent=2, gap=" · ")
    return page.screen()


def _put_life(page: Page, life: Life, words: str, name: str) -> None:
    f = life.fate
    page.sides([(f"message {clip(f.id, 40)}", "heading"), f" · {f.role} · turn {life.turn:,}"], (clip(name, 40), "dim"))
    page.line("  ", quoted(shorten(visible(words[: 2 * SAID]), SAID)) if words else "(no text)", hang=3)
    page.blank()
    counts = f"counted {f.thought:,}" + ("" if f.real == f.thought else f", really {f.real:,}")
    _put_event(page, "written", f"at write {life.written:,}, {counts} tokens")
    if life.left is not None:
        to = ", ".join(clip(block, 40) for block in f.blocks) or "nobody"
        _put_event(
            page,
            "flushed",
            f"after write {life.left.write:,} in turn {life.left.turn:,}, with messages {span(life.left)}, to {to}; "
            f"the window went from {life.left.before:,} to {life.left.after:,} tokens",
        )
    seen = "in no prompt ever" if f.last_seen is None else f"in the prompt after write {f.last_seen:,}"
    _put_event(page, "last seen", seen)
    reason = "" if f.reason is None else f": {f.reason}"
    reach = "its words are in the prompt" if f.reachable else "its words are not in the prompt"
    _put_event(page, "at the end", f"{f.ended}{reason}; {reach}")
    if life.limits is not None:
        _put_limits(page, life.limits, life.looked_to)


def _put_event(page: Page, when: str, what: str) -> None:
    page.line(f"  {when:<12}", what, hang=14)


def _put_limits(page: Page, limits: Sequence[Range], looked_to: int | None) -> None:
    if not limits:
        far = "" if looked_to is None else f" up to {looked_to:,}"
        _put_event(page, "limits", f"at no token limit{far} would it be in the window at the end")
        return
    texts = [f"{one.first:,} and more" if one.last is None else _between(one) for one in limits]
    more = f" and {len(texts) - MOST_ROWS:,} more ranges" if len(texts) > MOST_ROWS else ""
    _put_event(page, "limits", f"in the window at the end with a token limit of {', '.join(texts[:MOST_ROWS])}{more}")
    gaps = [one.last + 1 for one in limits if one.last is not None and one.last != looked_to]
    if gaps:
        _put_event(page, "", f"a larger limit can lose it: with {gaps[0]:,} it is not there")


def _between(one: Range) -> str:
    return f"{one.first:,}" if one.first == one.last else f"{one.first:,}–{one.last:,}"
