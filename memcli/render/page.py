"""The kit of every page of HTML: one file that needs no network and no other file; without its script it is unfiltered.

A text that anybody may have written passes `text` (or `said`), which escapes HTML and what cannot be seen. Such a text
never stands in an attribute, in a link or where a browser reads code. The policy in the head lets a browser apply the
one style and run the one script of the page, each known by its hash, and nothing else.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from memcli import __version__
from memcli.clock import format_instant
from memcli.clock import moment as minute
from memcli.facts import Micros
from memcli.record import record
from memcli.text import shorten, visible

EXCERPT = 160
"""Cells of a long text that stand in a row."""

ROWS = 200
"""Rows of a list that are laid out at once where the script runs; a browser is slow with ten thousand."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --dim: #57606a; --line: #d0d7de; --soft: #f3f5f8;
  --own: #1560b8; --good: #116329; --warn: #7a5200; --bad: #b3261e; --mark: #fff0b3; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --ink: #e6e9ee; --dim: #a0a8b3; --line: #3a414b;
  --soft: #1f242b; --own: #6cb0ff; --good: #6fdd8b; --warn: #e3b341; --bad: #ff8f87; --mark: #4d3f00; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 3rem; max-width: 80rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); font-size: 1.2rem; }
h3 { margin: 1.25rem 0 .25rem; font-size: 1rem; }
p, ul, ol { margin: .5rem 0; }
a { color: var(--own); }
main:focus { outline: none; }
.lead, .dim { color: var(--dim); }
.skip { position: absolute; left: -99rem; padding: .4rem .8rem; background: var(--page); }
.skip:focus { left: 1rem; top: .5rem; z-index: 3; }
.numbers { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; padding: 0; }
.numbers div { flex: 1 1 9rem; padding: .6rem .9rem; border: 1px solid var(--line); border-radius: .5rem;
  background: var(--soft); }
.numbers dt { color: var(--dim); font-size: .85rem; }
.numbers dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
.known { display: grid; grid-template-columns: minmax(5.5rem, max-content) 1fr; gap: 0 .75rem; margin: .75rem 0; }
.known dt { color: var(--dim); }
.known dd { margin: 0; }
.scroll { overflow-x: auto; }
.tall { max-height: 38rem; overflow-y: auto; border: 1px solid var(--line); border-radius: .5rem; }
.tall thead th { position: sticky; top: 0; background: var(--soft); }
table { width: 100%; border-collapse: collapse; font-size: .95rem; }
.even table { table-layout: fixed; }
.even caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
caption { padding: 0 0 .4rem; color: var(--dim); text-align: left; }
.tall caption { padding: .5rem .6rem; }
th, td { padding: .35rem .6rem; min-width: 6.5rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
thead th { color: var(--dim); font-weight: 600; white-space: nowrap; }
tbody th { font-weight: 600; }
th.n, td.n { min-width: 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.said { min-width: 16rem; }
.w4 { min-width: 0; }
th.w4 { width: 4.5rem; } th.w6 { width: 6.5rem; } th.w9 { width: 9rem; } th.w12 { width: 12rem; }
th.w5 { width: 5.5rem; } th.w7 { width: 8rem; } th.w16 { width: 18rem; }
code, pre, kbd { font: .9em ui-monospace, monospace; }
pre { margin: .4rem 0; padding: .6rem; max-height: 20rem; overflow: auto; background: var(--soft);
  border-radius: .4rem; white-space: pre-wrap; }
kbd { padding: 0 .3em; border: 1px solid var(--line); border-radius: .25em; background: var(--soft); }
mark { background: var(--mark); color: inherit; }
summary { cursor: pointer; }
.findings { padding: 0; list-style: none; }
.findings li { margin: .6rem 0; padding: .6rem .9rem; border: 1px solid var(--line); border-left: .35rem solid;
  border-radius: .4rem; background: var(--soft); }
.findings .error { border-left-color: var(--bad); } .error b { color: var(--bad); }
.findings .warning { border-left-color: var(--warn); } .warning b { color: var(--warn); }
.good, .accepted, .verified { color: var(--good); }
.tentative, .disputed { color: var(--warn); }
.superseded, .revoked { color: var(--dim); }
.bad, .rejected { color: var(--bad); }
.verified, .disputed { font-weight: 600; }
.filters { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: end;
  margin: .75rem 0; padding: .5rem 0; background: var(--page); }
.filters label { display: grid; gap: .2rem; color: var(--dim); font-size: .9rem; }
.filters .check { display: inline-flex; flex-wrap: wrap; gap: .35rem; align-items: center; }
.filters p { flex-basis: 100%; margin: 0; }
input, select, button { padding: .35rem .5rem; font: inherit; color: var(--ink); background: var(--page);
  border: 1px solid var(--dim); border-radius: .35rem; }
input[type=search], select { height: 2.4rem; width: 12rem; max-width: 100%; }
input[type=checkbox] { width: 1rem; height: 1rem; accent-color: var(--own); }
button:disabled { color: var(--dim); border-style: dashed; }
:focus-visible { outline: 3px solid var(--own); outline-offset: 2px; }
[data-row], [data-row] summary { scroll-margin: 9rem 0 2rem; }
tr[data-row]:focus-within > * { background: var(--soft); }
[hidden] { display: none !important; }
footer { margin-top: 3rem; color: var(--dim); font-size: .85rem; }
.rest-note { display: none; }
@media screen { .later { display: none; } }
@media screen and (scripting: enabled) { .rest { display: none; } .scroll:has(.rest) + .rest-note { display: block; } }
@media screen and (max-width: 45rem) { .spare { display: none; } .said { min-width: 11rem; }
  .even .said { min-width: 0; } .filters { position: static; }
  .known { grid-template-columns: 1fr; } .known dd { margin-bottom: .4rem; }
  [data-row], [data-row] summary { scroll-margin: 2rem 0; } .filters .check { display: none; }
  .filters label { flex: 1 1 9rem; } input[type=search], select { width: 100%; }
  th, td { padding: .35rem .3rem; } th.w4 { width: 3rem; } th.w5 { width: 3.8rem; }
  th.w7 { width: 6.2rem; } th.w16 { width: 11rem; } }
@media (prefers-reduced-motion: no-preference) { tr[data-row] > * { transition: background-color .12s; } }
@media print { :root { color-scheme: light; --page: #fff; --ink: #000; --dim: #444; --line: #999; --soft: #fff;
  --own: #000; --good: #000; --warn: #000; --bad: #000; --mark: #eee; }
  body { max-width: none; padding: 0; font-size: 10pt; } .skip, .filters { display: none !important; }
  .scroll, .tall, pre { max-height: none; overflow: visible; } thead { display: table-header-group; }
  tr, li { break-inside: avoid; } h1, h2, h3 { break-after: avoid; } mark { text-decoration: underline; }
  details::details-content { content-visibility: visible; block-size: auto; } }
"""
"""What every page looks like. Colours are named, so that a page stays readable in the light and in the dark."""

SCRIPT = """
"use strict";
{
  const by = (id) => document.getElementById(id);
  const list = by("list"), filters = by("filters");
  const start = () => {
    const words = by("words"), shown = by("shown"), keys = by("keys"), pager = by("pager");
    const menus = [...filters.querySelectorAll("select")];
    const rows = [...list.querySelectorAll("[data-row]")], texts = [];
    const many = rows.length === 1 ? list.dataset.one : list.dataset.many;
    const most = Number(list.dataset.page), figure = (number) => number.toLocaleString("en");
    const said = (at) => texts[at] ??= rows[at].textContent.toLowerCase();
    let fit = rows, page = 0;

    const lay = (to) => {
      const pages = Math.max(1, Math.ceil(fit.length / most));
      page = Math.min(Math.max(to, 0), pages - 1);
      const first = page * most, stop = Math.min(first + most, fit.length);
      fit.forEach((row, at) => row.classList.toggle("later", at < first || at >= stop));
      shown.textContent = `${figure(fit.length)} of ${figure(rows.length)} ${many} ` +
        (pages > 1 ? `fit, ${figure(first + 1)} to ${figure(stop)} shown` : "shown");
      pager.hidden = pages === 1;
      by("back").disabled = page === 0;
      by("next").disabled = page === pages - 1;
    };
    const filter = () => {
      const asked = words.value.toLowerCase().match(/"[^"]*"|[^\\s"]+/g) ?? [];
      const wanted = asked.map((word) => word.replaceAll('"', ""));
      const chosen = menus.filter((menu) => menu.value);
      fit = rows.filter((row, at) => {
        const fits = chosen.every((menu) => row.dataset[menu.id] === menu.value) &&
          wanted.every((word) => said(at).includes(word));
        if (row.hidden === fits) row.hidden = !fits;
        return fits;
      });
      lay(0);
    };
    const keep = () => {
      const kept = new URLSearchParams();
      if (words.value) kept.set("q", words.value);
      for (const menu of menus) if (menu.value) kept.set(menu.id, menu.value);
      try { history.replaceState(null, "", `#${kept}`); } catch { /* a page that may not have an address of its own */ }
    };
    const ask = () => {
      const asked = location.hash.slice(1), target = asked && by(asked);
      if (target) {
        const row = target.closest("[data-row]");
        if (row && row.hidden) { words.value = ""; for (const menu of menus) menu.value = ""; filter(); }
        if (row) { lay(Math.floor(fit.indexOf(row) / most)); target.scrollIntoView(); }
        return;
      }
      const wanted = new URLSearchParams(asked);
      words.value = wanted.get("q") ?? "";
      for (const menu of menus) {
        const value = wanted.get(menu.id);
        menu.value = [...menu.options].some((option) => option.value === value) ? value : "";
      }
      filter();
    };
    const turn = (step) => { lay(page + step); list.scrollIntoView(); };

    const stand = (row) => {
      const goal = (row.matches("tr") && row.querySelector("summary")) || row;
      if (goal === row) row.tabIndex = -1;
      goal.focus();
    };
    const move = (step) => {
      const here = document.activeElement.closest("[data-row]");
      const at = here && !here.hidden && !here.matches(".later") ? fit.indexOf(here) : -1;
      const to = at < 0 ? page * most : at + step;
      if (to < 0 || to >= fit.length) return;
      if (Math.floor(to / most) !== page) lay(Math.floor(to / most));
      stand(fit[to]);
    };
    const steps = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
    const pressed = (event) => {
      const focus = document.activeElement, typing = focus.matches("input[type=search], select");
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !keys.checked) return;
      if (event.key === "/" && !typing) {
        words.focus(); words.select();
      } else if (focus === words ? ["ArrowDown", "Enter"].includes(event.key) : !typing && steps[event.key] &&
        (event.key.length === 1 || focus.closest("[data-row]"))) {
        move(focus === words ? 0 : steps[event.key]);
      } else if (event.key === "Enter" && focus.matches("[data-row]")) {
        for (const part of focus.querySelectorAll("details")) part.open = !part.open;
      } else return;
      event.preventDefault();
    };

    filters.hidden = false;
    words.addEventListener("input", filter);
    words.addEventListener("change", keep);
    for (const menu of menus) menu.addEventListener("change", () => { filter(); keep(); });
    by("back").addEventListener("click", () => turn(-1));
    by("next").addEventListener("click", () => turn(1));
    addEventListener("hashchange", ask);
    addEventListener("keydown", pressed);
    filter();
    for (const rest of list.querySelectorAll(".rest")) rest.classList.remove("rest");
    ask();
  };
  if (list && filters) start();
}
"""
"""What filters the rows, lays them out page by page and lets keys move between them. It writes text, never markup."""


Head: TypeAlias = tuple[str, str]
"""The words over a column and its classes: `n` for a number, `said` for a text, `spare` for what a phone leaves out."""

Cell: TypeAlias = tuple[str, str]
"""What stands in a cell, escaped already, and its classes."""


@record
class Choice:
    """A menu beside the filter: rows are kept that carry the word chosen.

    Args:
        name: In lower case; rows carry it as `data-NAME`.
        label: What stands over the menu.
        words: What may be chosen, each once; anybody's words.
    """

    name: str
    label: str
    words: tuple[str, ...]

    def sign(self, word: str) -> str:
        """Return what stands for a word in an attribute: the word where it is a plain one, else its number."""
        return word if re.fullmatch(r"[a-z][a-z_-]*", word) else f"{self.words.index(word)}"

    def mark(self, word: str) -> str:
        """Return the attribute of a row that has this word."""
        return f' data-{self.name}="{self.sign(word)}"'


def text(words: str, *, newlines: bool = False) -> str:
    """Return words that a browser shows as they are, and never reads as anything else."""
    return escape(visible(words, newlines=newlines), quote=True)


def said(words: str, *, newlines: bool = False) -> str:
    """Return words set apart, so that those of a script from right to left do not reorder what stands beside them."""
    shown = text(words, newlines=newlines)
    return shown if shown.isascii() else f"<bdi>{shown}</bdi>"


def when(moment: Micros) -> str:
    """Return a moment to the minute; the page knows it to the microsecond."""
    return f'<time datetime="{format_instant(moment)}">{minute(moment)}</time>'


def opened(summary: str, inner: str) -> str:
    """Return what opens on its summary, with or without a script; both are escaped already."""
    return f"<details><summary>{summary}</summary>{inner}</details>"


def brief(words: str, *, most: int = EXCERPT) -> str:
    """Return the words, or as much of their beginning as fits into that many cells with a `…` behind it."""
    return said(_brief(words, most))


def is_long(words: str, *, most: int = EXCERPT) -> bool:
    """Return whether `brief` leaves something out."""
    return len(words) > 4 * most or _brief(words, most) != visible(words)


def _brief(words: str, most: int) -> str:
    # No more of a very long text is looked at than can fit.
    shown = shorten(visible(words[: 4 * most]), most)
    return shown if len(words) <= 4 * most or shown.endswith("…") else f"{shown}…"


def document(
    *, title: str, header: str, parts: Iterable[str], footer: str, style: str = "", skip: tuple[str, str] | None = None
) -> str:
    """Return the page.

    Args:
        title: Anybody's words.
        header: What stands at the top, escaped; it holds the one heading of the first rank.
        parts: Sections, escaped; empty ones are left out.
        footer: A sentence, escaped.
        style: More rules of style, beside those of every page.
        skip: The fragment and the name of what a keyboard may jump to; None is the whole content.
    """
    rules = STYLE + style
    target, name = skip or ("main", "content")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_policy(rules)}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{rules}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#{target}">Skip to the {name}</a>\n'
        f'<header>\n{header}\n</header>\n<main id="main" tabindex="-1">\n'
        + "\n".join(part for part in parts if part)
        + f"\n</main>\n<footer>Made by mem {__version__}. {footer}</footer>\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _policy(rules: str) -> str:
    sources = f"style-src {_hash(rules)}; script-src {_hash(SCRIPT)}; require-trusted-types-for 'script'"
    policy = f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _hash(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def heading(title: str, lead: str) -> str:
    """Return the heading of the page and the line under it, both escaped already."""
    return f'<h1>{title}</h1>\n<p class="lead">{lead}</p>'


def section(name: str, title: str, inner: str, *, rank: int = 2) -> str:
    """Return a part of the page under its own heading; all of it is escaped already.

    Args:
        name: In letters, digits and hyphens, and of one section only.
        rank: Of the heading.
    """
    return (
        f'<section aria-labelledby="{name}-title">\n<h{rank} id="{name}-title">{title}</h{rank}>\n{inner}\n</section>'
    )


def numbers(pairs: Iterable[tuple[str, str]]) -> str:
    """Return figures in boxes, each under its name; names are ours, and the figures escaped already."""
    return f'<dl class="numbers">{"".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)}</dl>'


def particulars(pairs: Iterable[tuple[str, str]]) -> str:
    """Return what is known, a line each with its name before it; what is empty is left out."""
    return f'<dl class="known">{"".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs if value)}</dl>'


def findings(items: Iterable[tuple[str, str]]) -> str:
    """Return remarks, each with its weight (`error` or `warning`) and its words, escaped already."""
    lines = "".join(f'<li class="{weight}">{words}</li>' for weight, words in items)
    return f'<ul class="findings">\n{lines}\n</ul>' if lines else "<p>None.</p>"


def table(caption: str, heads: Sequence[Head], rows: Iterable[str], *, kind: str = "", listed: str = "") -> str:
    """Return a table that scrolls by itself where it is too wide.

    Args:
        caption: Ours.
        rows: Made by `row`.
        kind: Classes: `tall` for a long one among other parts, `even` for columns that do not follow what is in them.
        listed: Made by `listing`, where the rows can be filtered.
    """
    cells = "".join(f'<th scope="col"{_class(classes)}>{words}</th>' for words, classes in heads)
    lines = list(rows)
    first, rest = (lines[:ROWS], lines[ROWS:]) if listed else (lines, [])
    body = "\n".join(["<tbody>", *first, "</tbody>", *(['<tbody class="rest">', *rest, "</tbody>"] if rest else [])])
    return (
        f'<div class="{" ".join(["scroll", *kind.split()])}" role="region" tabindex="0" aria-label="{caption}">'
        f"<table{listed}>\n<caption>{caption}</caption>\n<thead><tr>{cells}</tr></thead>\n{body}\n</table></div>"
        + (
            f'<p class="rest-note">{len(rest):,} more are here once the script of this page has run.</p>'
            if rest
            else ""
        )
    )


def row(first: str, cells: Sequence[Cell], *, head: str = "", marks: str | None = None) -> str:
    """Return a row under its own head.

    Args:
        first: Its head, escaped already.
        head: Classes of the head.
        marks: What `Choice.mark` says of a row that can be filtered; None where none can be.
    """
    inner = "".join(f"<td{_class(classes)}>{words}</td>" for words, classes in cells)
    attributes = "" if marks is None else f" data-row{marks}"
    return f'<tr{attributes}><th scope="row"{_class(head)}>{first}</th>{inner}</tr>'


def _class(classes: str) -> str:
    return f' class="{classes}"' if classes else ""


def listing(one: str, many: str, *, at_once: int = ROWS) -> str:
    """Return the attributes of what holds the rows that can be filtered; a page has one such list.

    Args:
        one: What a row is.
        many: What rows are.
        at_once: How many are laid out at once.
    """
    return f' id="list" data-one="{one}" data-many="{many}" data-page="{at_once}"'


def filters(many: str, choices: Sequence[Choice] = ()) -> str:
    """Return the filter of the list, which the script brings to light.

    Args:
        many: What the rows are.
    """
    menus = "".join(
        f'<label for="{choice.name}">{choice.label}<select id="{choice.name}"><option value="">anything</option>'
        + "".join(f'<option value="{choice.sign(word)}">{text(word)}</option>' for word in choice.words)
        + "</select></label>"
        for choice in choices
        if len(choice.words) > 1
    )
    return (
        f'<div id="filters" class="filters" role="search" aria-label="Filter the {many}" hidden>'
        '<label for="words">with these words'
        f'<input id="words" type="search" autocomplete="off" spellcheck="false"></label>{menus}'
        '<label for="keys" class="check"><input id="keys" type="checkbox" checked>'
        "keys: <kbd>/</kbd> filter, <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> open</label>"
        '<p class="pages"><span id="shown" class="dim" role="status" aria-live="polite"></span> '
        '<span id="pager" hidden><button type="button" id="back">previous page</button> '
        '<button type="button" id="next">next page</button></span></p></div>'
    )


def choice(name: str, label: str, found: Iterable[str]) -> Choice:
    """Return a menu of the words that were found, in alphabetical order."""
    return Choice(name=name, label=label, words=tuple(sorted(set(found))))
