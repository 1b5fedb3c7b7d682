"""One run as a page of HTML: what its prompt holds, what left the window and when, and the fate of every message."""

import math
from collections.abc import Iterator, Mapping, Sequence

from memcli.budget.outcome import BudgetFinding, Fate, Flushed, Simulation
from memcli.render.budget import POLICIES, by_weight, figure, label, percent, prompt_parts, span, split, where
from memcli.render.page import (
    Choice,
    brief,
    choice,
    document,
    filters,
    findings,
    heading,
    listing,
    numbers,
    opened,
    row,
    section,
    table,
    text,
)
from memcli.render.words import counted

POINTS = 1000
"""Writes that are drawn, besides those of the flushes."""

WIDE, HIGH, BAR = 1000, 200, 40
"""The inside of a drawing, which the page stretches to its own width; so no words stand in it."""

_STYLE = """
:root { --block: #8250df; --frame: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --block: #c9a2ff; --frame: #ffa657; } }
.window { color: var(--good); } .block { color: var(--block); } .dropped { color: var(--bad); }
svg { display: block; width: 100%; overflow: visible; }
svg * { vector-effect: non-scaling-stroke; }
.bar { height: 2.75rem; } .chart { height: 11rem; }
.ends { display: flex; justify-content: space-between; margin: .2rem 0; color: var(--dim); font-size: .9rem; }
.own { fill: var(--own); } .blocks { fill: var(--block); } .frame { fill: var(--frame); } .free { fill: var(--soft); }
.edge { fill: none; stroke: var(--line); stroke-width: 2; }
.path { fill: none; stroke: var(--own); stroke-width: 3; }
.drop { stroke: var(--frame); stroke-width: 3; }
.limit { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 8 6; }
.threshold { stroke: var(--ink); stroke-width: 2; stroke-dasharray: 3 5; }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; list-style: none; font-size: .9rem; }
.key svg { display: inline-block; width: 1.1rem; height: .8rem; margin-right: .4rem; vertical-align: baseline; }
@media print { :root { --own: #1560b8; --block: #8250df; --frame: #bc4c00; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
"""What only the drawings need; on paper they keep their colours."""


def simulation_page(s: Simulation, *, name: str, texts: Mapping[int, str], notes: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        name: What the transcript is called.
        texts: The words of each message, by its index.
        notes: What the reader of the file had to tell.
    """
    parts = [
        section("findings", "Findings", _findings(s.findings, notes)),
        section("split", "The prompt at the end", _split(s) + _pieces(s)),
        section("flushes", "What left the window, and when", _flushes(s)),
        section("blocks", "Blocks", _blocks(s)) if s.blocks else "",
        section("messages", "The fate of every message", _fates(s.fates, texts)),
        section("settings", "Settings", _settings(s)),
    ]
    return document(
        title=f"{name} – mem budget",
        header=_head(s, name),
        parts=parts,
        footer=f"Tokens are counted by {text(s.encoding)}; turns, writes and messages are numbered from 0.",
        style=_STYLE,
    )


# --- the parts ---


def _head(s: Simulation, name: str) -> str:
    t = s.totals
    limit = "no limit" if t.limit is None else f"{t.limit:,}"
    over = f"{t.over:,}" if t.over else "0"
    figures = (
        ("limit", limit),
        ("the policy thinks", f"{t.thought:,}"),
        ("really sent", f"{t.real:,}"),
        ("over the limit", over),
        ("flushes", f"{t.flushes:,}"),
        ("messages in the window", f"{t.window_messages:,} of {t.messages:,}"),
    )
    refused = f'<p class="dropped"><b>No prompt:</b> {text(s.refused)}</p>' if s.refused is not None else ""
    lead = (
        f"{counted(t.messages, 'message')} in {counted(t.turns, 'turn')}, {counted(t.tokens, 'token')} "
        f"({text(s.encoding)}), policy {text(POLICIES.get(s.policy, s.policy))}"
    )
    return f"{heading(text(name), lead)}\n{refused}{numbers(figures)}"


def _findings(found: Sequence[BudgetFinding], notes: Sequence[str]) -> str:
    items = [
        (
            "error" if item.severity == "error" else "warning",
            f'<b>{text(item.severity)}: {text(item.code)}</b> <span class="dim">{text(where(item))}</span><br>'
            + text(item.text)
            + (f'<br><span class="dim">What to do:</span> {text(item.remedy)}' if item.remedy else ""),
        )
        for item in by_weight(found)
    ]
    return findings([*items, *(("warning", f"<b>reader:</b> {text(words)}") for words in notes)])


def _split(s: Simulation) -> str:
    t = s.totals
    messages, blocks, share = split(s)
    limit = t.limit or 0
    scale = max(limit, messages + blocks + t.template, 1)
    edges = [0.0]
    for tokens in (messages, blocks, t.template):
        edges.append(edges[-1] + WIDE * max(0, tokens) / scale)
    bars = "".join(
        f'<rect class="{kind}" x="{start:.1f}" y="0" width="{end - start:.1f}" height="{BAR}"/>'
        for kind, start, end in zip(("own", "blocks", "frame"), edges, edges[1:], strict=False)
    )
    said = f"messages {messages:,}, blocks {blocks:,}, template {t.template:,} tokens"
    keys = [("own", f"messages {messages:,}"), ("blocks", f"blocks {blocks:,}"), ("frame", f"template {t.template:,}")]
    marks = ""
    if share is not None and limit:
        marks += _upright(WIDE * limit * share / scale, "threshold")
        keys.append(("threshold", f"history may take {percent(share)}"))
    if limit:
        marks += _upright(WIDE * limit / scale, "limit")
        keys.append(("limit", f"limit {limit:,}"))
    return (
        f'<svg class="bar" viewBox="0 0 {WIDE} {BAR}" preserveAspectRatio="none" role="img" '
        f'aria-label="The split of the prompt: {said}"><rect class="free" width="{WIDE}" height="{BAR}"/>{bars}{marks}'
        f'<rect class="edge" width="{WIDE}" height="{BAR}"/></svg>'
    ) + _legend(keys)


def _upright(x: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{BAR}"/>'


def _legend(items: Sequence[tuple[str, str]]) -> str:
    return f'<ul class="key">{"".join(f"<li>{_sample(kind)}{words}</li>" for kind, words in items)}</ul>'


def _sample(kind: str) -> str:
    """Return a small picture of how something is drawn: an area, or a line."""
    is_area = kind in ("own", "blocks", "frame")
    drawn = f'<rect class="{kind}" width="11" height="8"/>' if is_area else f'<path class="{kind}" d="M0 4H11"/>'
    return f'<svg viewBox="0 0 11 8" aria-hidden="true">{drawn}</svg>'


def _pieces(s: Simulation) -> str:
    if not s.prompt:
        return "<p>There is nothing in it.</p>"
    rows = [
        row(text(name), [(f"{many:,}", "n"), (f"{thought:,}", "n"), (f"{real:,}", "n")])
        for name, many, thought, real in prompt_parts(s.prompt)
    ]
    heads = (("part", ""), ("pieces", "n"), ("thinks", "n"), ("really", "n"))
    texts = "".join(
        f'<h3>{text(_called(piece.kind, piece.name, piece.role, piece.index))} <span class="dim">'
        f"{counted(piece.real, 'token')}</span></h3><pre>{text(piece.text, newlines=True)}</pre>"
        for piece in s.prompt
    )
    parts = table("Parts of the prompt, in tokens", heads, rows)
    return f"{parts}\n{opened('The words of the prompt', texts)}"


def _called(kind: str, name: str, role: str, index: int | None) -> str:
    if kind == "block":
        return f"block {name}"
    return kind if index is None else f"{role}, message {index}"


def _flushes(s: Simulation) -> str:
    if not s.flushes:
        return "<p>Nothing was flushed.</p>"
    heads = (
        ("flush", ""),
        ("turn", "n"),
        ("after write", "n"),
        ("tokens before", "n"),
        ("tokens after", "n"),
        ("messages", ""),
        ("to", ""),
    )
    rows = [_flush_row(number, flush) for number, flush in enumerate(s.flushes)]
    return _timeline(s) + table("Every flush", heads, rows, kind="tall" if len(rows) > 30 else "")


def _flush_row(number: int, f: Flushed) -> str:
    cells = [(f"{value:,}", "n") for value in (f.turn, f.write, f.before, f.after)]
    return row(f"{number:,}", [*cells, (span(f), ""), (text(", ".join(f.blocks) or "nobody"), "")])


def _timeline(s: Simulation) -> str:
    """Return a drawing of the window's tokens over the writes: up with what was written, and down by each flush."""
    last = max(len(s.steps) - 1, 1)
    threshold = s.effective.get("flush_threshold")
    line = float(threshold) if isinstance(threshold, int | float) and 0 < threshold < math.inf else None
    highest = max([flush.before for flush in s.flushes] + [line or 0, 1])

    def point(write: float, tokens: float) -> str:
        return f"{WIDE * write / last:.1f} {HIGH * (1 - min(max(0, tokens) / highest, 1)):.1f}"

    falls = [f"M{point(f.write, f.before)}L{point(f.write, f.after)}" for f in s.flushes]
    drops = "".join(f'<path class="drop" d="{fall}"/>' for fall in falls)
    points = [point(write, tokens) for write, tokens in _window(s)]
    keys = [("path", "tokens in the window"), ("drop", "a flush")]
    bound = ""
    if line is not None:
        bound = f'<path class="threshold" d="M{point(0, line)}L{point(last, line)}"/>'
        keys.append(("threshold", f"flushes above {figure(line)}"))
    return (
        f'<svg class="chart" viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" aria-label="Tokens in '
        f'the window over {last + 1:,} writes; the table below has the figures">{bound}'
        f'<polyline class="path" points="{" ".join(points)}"/>{drops}'
        f'<path class="edge" d="M0 {HIGH}H{WIDE}"/></svg>'
        f'<p class="ends"><span>write 0</span><span>write {last:,}</span></p>' + _legend(keys)
    )


def _window(s: Simulation) -> Iterator[tuple[int, float]]:
    """Yield writes with the tokens in the window before and after a flush; of very many, one in every so many."""
    stride = max(1, len(s.steps) // POINTS)
    flushed = {flush.write for flush in s.flushes}
    for write, step in enumerate(s.steps):
        if write % stride and write not in flushed and write + 1 not in flushed:
            continue
        for when in ("before", "after"):
            tokens = step.get(when)
            if isinstance(tokens, int | float):
                yield write, tokens


def _blocks(s: Simulation) -> str:
    heads = (
        ("block", ""),
        ("kind", ""),
        ("priority", "n"),
        ("weight", "n"),
        ("wanted", "n"),
        ("got", "n"),
        ("fate", ""),
    )
    rows = [
        row(
            text(b.name or "(no name)"),
            [
                (text(b.kind), ""),
                ("" if b.priority is None else f"{b.priority:,}", "n"),
                ("" if b.weight is None else f"{b.weight:g}", "n"),
                (f"{b.wanted:,}", "n"),
                (f"{b.got:,}", "n"),
                (text(b.fate if b.reason is None else f"{b.fate}: {b.reason}"), "said"),
            ],
        )
        for b in s.blocks
    ]
    return table("What each block wanted and got, in tokens", heads, rows)


def _fates(fates: Sequence[Fate], texts: Mapping[int, str]) -> str:
    if not fates:
        return "<p>There is no message.</p>"
    ended = choice("ended", "that ended in", (fate.ended for fate in fates))
    heads = (
        ("id", ""),
        ("role", ""),
        ("thinks", "n"),
        ("really", "n"),
        ("ended in", ""),
        ("flush", "n"),
        ("last seen", "n"),
        ("why", ""),
        ("words", ""),
    )
    rows = (_fate_row(fate, texts.get(fate.index, ""), ended) for fate in fates)
    listed = listing("message", "messages")
    return filters("messages", [ended]) + table("Every message, oldest first", heads, rows, kind="tall", listed=listed)


def _fate_row(f: Fate, words: str, ended: Choice) -> str:
    held = f" in {', '.join(f.blocks)}" if f.blocks else ""
    lost = "" if f.reachable else "; its words are not in the prompt"
    kind = f.ended if f.ended in ("window", "block", "dropped") else ""
    cells = [
        (text(f.role), ""),
        (f"{f.thought:,}", "n"),
        (f"{f.real:,}", "n"),
        (text(f.ended), kind),
        ("" if f.flush is None else f"{f.flush:,}", "n"),
        ("never" if f.last_seen is None else f"{f.last_seen:,}", "n"),
        (text(f"{f.reason or 'whole'}{held}{lost}"), "said"),
        (brief(words), "said"),
    ]
    return row(text(f.id), cells, marks=ended.mark(f.ended))


def _settings(s: Simulation) -> str:
    rows = [
        row(text(label(name)), [(text(figure(s.settings.get(name))), "n"), (text(figure(value)), "n")])
        for name, value in s.effective.items()
    ]
    heads = (("setting", ""), ("asked for", "n"), ("used", "n"))
    clamps = "".join(
        f"<li>{text(label(str(clamp.get('setting', ''))))} became {text(figure(clamp.get('used')))}: "
        f"{text(str(clamp.get('why', '')))}</li>"
        for clamp in s.clamps
    )
    changed = f"<h3>Changed without a word</h3><ul>{clamps}</ul>" if clamps else ""
    return table("Settings as they were asked for and used", heads, rows) + changed
