"""One run as a page of HTML that needs no network and no other file; without its script it is only unfiltered.

Every text passes `_text`, which escapes HTML and what cannot be seen. The policy in the head lets a browser run the one
script of the page, known by its hash, and nothing that a transcript may have smuggled in.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from memcli import __version__
from memcli.budget.outcome import BudgetFinding, Fate, Flushed, Simulation
from memcli.render.budget import POLICIES, by_weight, figure, label, percent, prompt_parts, span, split, where
from memcli.render.words import counted
from memcli.text import shorten, visible

EXCERPT = 160
"""Characters of a message that stand in the table of messages."""

POINTS = 1000
"""Writes that are drawn, besides those of the flushes."""

WIDE, HIGH, BAR = 1000, 200, 40
"""The inside of a drawing, which the page stretches to its own width; so no words stand in it."""

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --dim: #57606a; --line: #d0d7de; --soft: #f3f5f8;
  --own: #1a6fd0; --block: #8250df; --frame: #bc4c00; --bad: #b3261e; --warn: #7a5200; --good: #116329; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --ink: #e6e9ee; --dim: #a0a8b3; --line: #3a414b;
  --soft: #1f242b; --own: #6cb0ff; --block: #c9a2ff;
  --frame: #ffa657; --bad: #ff8f87; --warn: #e3b341; --good: #6fdd8b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 3rem; max-width: 80rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); font-size: 1.2rem; }
h3 { margin: 1.25rem 0 .25rem; font-size: 1rem; }
p, ul, ol { margin: .5rem 0; }
.lead, .dim { color: var(--dim); }
.numbers { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; padding: 0; }
.numbers div { flex: 1 1 9rem; padding: .6rem .9rem; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--soft); }
.numbers dt { color: var(--dim); font-size: .85rem; }
.numbers dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.tall { max-height: 38rem; overflow-y: auto; border: 1px solid var(--line); border-radius: .5rem; }
.tall thead th { position: sticky; top: 0; background: var(--soft); }
table { width: 100%; border-collapse: collapse; font-size: .95rem; }
caption { padding: 0 0 .4rem; color: var(--dim); text-align: left; }
.tall caption { padding: .5rem .6rem; }
th, td { padding: .35rem .6rem; min-width: 6.5rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { color: var(--dim); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; }
th.n, td.n { min-width: 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.said { min-width: 16rem; }
code, pre { font: .9em ui-monospace, monospace; }
pre { margin: .4rem 0; padding: .6rem; max-height: 20rem; overflow: auto; background: var(--soft);
  border-radius: .4rem; white-space: pre-wrap; }
.findings { padding: 0; list-style: none; }
.findings li { margin: .6rem 0; padding: .6rem .9rem; border: 1px solid var(--line); border-left: .35rem solid;
  border-radius: .4rem; background: var(--soft); }
.findings .error { border-left-color: var(--bad); } .error b { color: var(--bad); }
.findings .warning { border-left-color: var(--warn); } .warning b { color: var(--warn); }
.window { color: var(--good); } .block { color: var(--block); } .dropped { color: var(--bad); }
svg { display: block; width: 100%; }
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
.filters { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: end; margin: .75rem 0; }
.filters label { display: grid; gap: .2rem; color: var(--dim); font-size: .9rem; }
input, select { padding: .35rem .5rem; min-width: 11rem; font: inherit; color: var(--ink); background: var(--page);
  border: 1px solid var(--dim); border-radius: .35rem; }
:focus-visible { outline: 3px solid var(--own); outline-offset: 2px; }
[hidden] { display: none !important; }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem; }
"""

_SCRIPT = """
const rows = [...document.querySelectorAll("#fates tbody tr")];
const words = document.getElementById("words"), ended = document.getElementById("ended");
const shown = document.getElementById("shown"), filters = document.getElementById("filters");
if (filters) {
  filters.hidden = false;
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const filter = () => {
    const wanted = words.value.trim().toLowerCase();
    let count = 0;
    rows.forEach((row, at) => {
      const fits = texts[at].includes(wanted) && (!ended.value || row.dataset.ended === ended.value);
      row.hidden = !fits;
      count += fits;
    });
    shown.textContent = count + " of " + rows.length + " messages shown";
  };
  words.addEventListener("input", filter);
  ended.addEventListener("change", filter);
  filter();
}
"""


def simulation_page(s: Simulation, *, name: str, texts: Mapping[int, str], notes: Sequence[str] = ()) -> str:
    """Return the page.

    Args:
        name: What the transcript is called.
        texts: The words of each message, by its index.
        notes: What the reader of the file had to tell.
    """
    body = [
        _head(s, name),
        _section("findings", "Findings", _findings(s.findings, notes)),
        _section("split", "The prompt at the end", _split(s) + _pieces(s)),
        _section("flushes", "What left the window, and when", _flushes(s)),
        _section("blocks", "Blocks", _blocks(s)) if s.blocks else "",
        _section("messages", "The fate of every message", _fates(s.fates, texts)),
        _section("settings", "Settings", _settings(s)),
    ]
    return (
        "<!doctype html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n{_policy()}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(name)} – mem budget</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in body if part)
        + f"\n</main>\n<footer>Made by mem {__version__}. Tokens are counted by {_text(s.encoding)}; turns, writes and"
        f" messages are numbered from 0.</footer>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _policy() -> str:
    sources = f"style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}"
    rules = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def _hash(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _text(text: str, *, newlines: bool = False) -> str:
    """Return text that a browser shows as it is, and never reads as anything else."""
    return escape(visible(text, newlines=newlines), quote=True)


def _section(name: str, title: str, inner: str) -> str:
    return f'<section aria-labelledby="{name}-title">\n<h2 id="{name}-title">{title}</h2>\n{inner}\n</section>'


def _table(
    caption: str, heads: Sequence[tuple[str, bool]], rows: Iterable[str], *, name: str = "", tall: bool = False
) -> str:
    """Return a table that scrolls by itself where it is too wide; the second of a head says whether it is a number."""
    cells = "".join(f'<th scope="col"{_numeric(right)}>{head}</th>' for head, right in heads)
    attribute = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll{" tall" if tall else ""}" role="region" tabindex="0" aria-label="{caption}">'
        f"<table{attribute}>\n<caption>{caption}</caption>\n<thead><tr>{cells}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table></div>"
    )


def _numeric(right: bool) -> str:
    return ' class="n"' if right else ""


def _row(first: str, cells: Sequence[tuple[str, str]], attributes: str = "") -> str:
    """Return a row under its own head; each cell comes with its class, `n` for a number."""
    inner = "".join(f'<td class="{kind}">{cell}</td>' if kind else f"<td>{cell}</td>" for cell, kind in cells)
    return f'<tr{attributes}><th scope="row">{first}</th>{inner}</tr>'


# --- the parts ---


def _head(s: Simulation, name: str) -> str:
    t = s.totals
    limit = "no limit" if t.limit is None else f"{t.limit:,}"
    over = f"{t.over:,}" if t.over else "0"
    numbers = (
        ("limit", limit),
        ("the policy thinks", f"{t.thought:,}"),
        ("really sent", f"{t.real:,}"),
        ("over the limit", over),
        ("flushes", f"{t.flushes:,}"),
        ("messages in the window", f"{t.window_messages:,} of {t.messages:,}"),
    )
    shown = "".join(f"<div><dt>{name_}</dt><dd>{value}</dd></div>" for name_, value in numbers)
    refused = f'<p class="dropped"><b>No prompt:</b> {_text(s.refused)}</p>' if s.refused is not None else ""
    return (
        f'<header>\n<h1>{_text(name)}</h1>\n<p class="lead">{counted(t.messages, "message")} in '
        f"{counted(t.turns, 'turn')}, {counted(t.tokens, 'token')} ({_text(s.encoding)}), policy "
        f'{_text(POLICIES.get(s.policy, s.policy))}</p>\n{refused}<dl class="numbers">{shown}</dl>\n</header>'
    )


def _findings(findings: Sequence[BudgetFinding], notes: Sequence[str]) -> str:
    items = [
        f'<li class="{"error" if item.severity == "error" else "warning"}"><b>{_text(item.severity)}: '
        f'{_text(item.code)}</b> <span class="dim">{_text(where(item))}</span><br>{_text(item.text)}'
        + (f'<br><span class="dim">What to do:</span> {_text(item.remedy)}' if item.remedy else "")
        + "</li>"
        for item in by_weight(findings)
    ]
    items += [f'<li class="warning"><b>reader:</b> {_text(text)}</li>' for text in notes]
    return f'<ul class="findings">\n{"".join(items)}\n</ul>' if items else "<p>None.</p>"


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
        _row(_text(name), [(f"{many:,}", "n"), (f"{thought:,}", "n"), (f"{real:,}", "n")])
        for name, many, thought, real in prompt_parts(s.prompt)
    ]
    heads = (("part", False), ("pieces", True), ("thinks", True), ("really", True))
    texts = "".join(
        f'<h3>{_text(_called(piece.kind, piece.name, piece.role, piece.index))} <span class="dim">'
        f"{counted(piece.real, 'token')}</span></h3><pre>{_text(piece.text, newlines=True)}</pre>"
        for piece in s.prompt
    )
    table = _table("Parts of the prompt, in tokens", heads, rows)
    return f"{table}\n<details><summary>The words of the prompt</summary>{texts}</details>"


def _called(kind: str, name: str, role: str, index: int | None) -> str:
    if kind == "block":
        return f"block {name}"
    return kind if index is None else f"{role}, message {index}"


def _flushes(s: Simulation) -> str:
    if not s.flushes:
        return "<p>Nothing was flushed.</p>"
    heads = (
        ("flush", False),
        ("turn", True),
        ("after write", True),
        ("tokens before", True),
        ("tokens after", True),
        ("messages", False),
        ("to", False),
    )
    rows = [_flush_row(number, flush) for number, flush in enumerate(s.flushes)]
    return _timeline(s) + _table("Every flush", heads, rows, tall=len(rows) > 30)


def _flush_row(number: int, f: Flushed) -> str:
    cells = [(f"{value:,}", "n") for value in (f.turn, f.write, f.before, f.after)]
    return _row(f"{number:,}", [*cells, (span(f), ""), (_text(", ".join(f.blocks) or "nobody"), "")])


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
        ("block", False),
        ("kind", False),
        ("priority", True),
        ("weight", True),
        ("wanted", True),
        ("got", True),
        ("fate", False),
    )
    rows = [
        _row(
            _text(b.name or "(no name)"),
            [
                (_text(b.kind), ""),
                ("" if b.priority is None else f"{b.priority:,}", "n"),
                ("" if b.weight is None else f"{b.weight:g}", "n"),
                (f"{b.wanted:,}", "n"),
                (f"{b.got:,}", "n"),
                (_text(b.fate if b.reason is None else f"{b.fate}: {b.reason}"), "said"),
            ],
        )
        for b in s.blocks
    ]
    return _table("What each block wanted and got, in tokens", heads, rows)


def _fates(fates: Sequence[Fate], texts: Mapping[int, str]) -> str:
    if not fates:
        return "<p>There is no message.</p>"
    kinds = "".join(
        f'<option value="{_text(kind)}">{_text(kind)}</option>' for kind in sorted({f.ended for f in fates})
    )
    filters = (
        '<div id="filters" class="filters" role="search" aria-label="Filter the messages" hidden>'
        '<label for="words">with these words<input id="words" type="search" autocomplete="off"></label>'
        f'<label for="ended">that ended in<select id="ended"><option value="">anything</option>{kinds}</select></label>'
        '<p id="shown" class="dim" role="status" aria-live="polite"></p></div>'
    )
    heads = (
        ("id", False),
        ("role", False),
        ("thinks", True),
        ("really", True),
        ("ended in", False),
        ("flush", True),
        ("last seen", True),
        ("why", False),
        ("words", False),
    )
    rows = (_fate_row(f, texts.get(f.index, "")) for f in fates)
    return filters + _table("Every message, oldest first", heads, rows, name="fates", tall=True)


def _fate_row(f: Fate, text: str) -> str:
    held = f" in {', '.join(f.blocks)}" if f.blocks else ""
    lost = "" if f.reachable else "; its words are not in the prompt"
    ended = _text(f.ended)
    kind = f.ended if f.ended in ("window", "block", "dropped") else ""
    cells = [
        (_text(f.role), ""),
        (f"{f.thought:,}", "n"),
        (f"{f.real:,}", "n"),
        (ended, kind),
        ("" if f.flush is None else f"{f.flush:,}", "n"),
        ("never" if f.last_seen is None else f"{f.last_seen:,}", "n"),
        (_text(f"{f.reason or 'whole'}{held}{lost}"), "said"),
        (_text(shorten(text[: 4 * EXCERPT], EXCERPT)), "said"),
    ]
    return _row(_text(f.id), cells, f' data-ended="{ended}"')


def _settings(s: Simulation) -> str:
    rows = [
        _row(_text(label(name)), [(_text(figure(s.settings.get(name))), "n"), (_text(figure(value)), "n")])
        for name, value in s.effective.items()
    ]
    heads = (("setting", False), ("asked for", True), ("used", True))
    clamps = "".join(
        f"<li>{_text(label(str(clamp.get('setting', ''))))} became {_text(figure(clamp.get('used')))}: "
        f"{_text(str(clamp.get('why', '')))}</li>"
        for clamp in s.clamps
    )
    changed = f"<h3>Changed without a word</h3><ul>{clamps}</ul>" if clamps else ""
    return _table("Settings as they were asked for and used", heads, rows) + changed
