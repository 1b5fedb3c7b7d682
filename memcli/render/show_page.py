"""The pages of `mem show --html`: a list of facts, and facts in full with evidence, versions, derivations and log."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import PurePath

from memcli.facts import AuditEvent, Derivation, Excerpt, Fact, Message, Micros, Provenance
from memcli.record import record
from memcli.render import excerpts
from memcli.render.log_page import EVENT_HEADS, chosen, event_row, lead, menus
from memcli.render.memory import Relative
from memcli.render.page import (
    Choice,
    brief,
    choice,
    document,
    filters,
    heading,
    is_long,
    listing,
    numbers,
    opened,
    particulars,
    row,
    said,
    section,
    table,
    text,
    when,
)
from memcli.render.words import NOTHING, counted, held_for, quoted, short, spoken, true_for, who
from memcli.terms import FINAL

MOST_KIN = 200
"""Relatives that are written out on each side of a fact; a summary may be built on thousands."""

DEEPEST = 12
"""Generations of relatives that are looked for."""

AROUND = 2000
"""Characters of a message that are shown on each side of the quote, or from its beginning where it has none."""

NEIGHBOUR = 600
"""Cells that are shown of a message beside the quoted one."""

_STYLE = """
article { margin: 2.5rem 0; padding-top: .5rem; border-top: 2px solid var(--line); content-visibility: auto;
  contain-intrinsic-size: auto 40rem; }
article h2 { margin-top: .5rem; padding-top: 0; border-top: 0; }
.turns { margin: .5rem 0; padding: 0; list-style: none; border: 1px solid var(--line); border-radius: .5rem; }
.turns li { padding: .5rem .9rem; color: var(--dim); }
.turns li + li { border-top: 1px solid var(--line); }
.turns .cited { color: var(--ink); border-left: .35rem solid var(--own); }
.turns p { margin: 0; white-space: pre-wrap; }
.kin, .kin ul { margin: .25rem 0; padding-left: 1.25rem; list-style: none; border-left: 1px solid var(--line); }
.kin { padding-left: .5rem; }
@media print { article { content-visibility: visible; } }
"""


@record
class Kin:
    """The relatives of a fact on one side, and theirs.

    Args:
        of: By id, the relatives of each fact that was looked at.
        cut: Some are left out.
    """

    of: Mapping[str, Sequence[Relative]]
    cut: bool = False


@record
class Whole:
    """One fact and all that the file knows of it.

    Args:
        history: Every revision of every version.
        excerpts: Its evidence that are messages.
        events: Oldest first.
    """

    fact: Fact
    history: Sequence[Fact]
    excerpts: Sequence[Excerpt]
    parents: Kin
    children: Kin
    events: Sequence[AuditEvent]


def kin(fact: str, ask: Callable[[str], Sequence[tuple[Derivation, Fact]]]) -> Kin:
    """Return the relatives of a fact, nearest first, up to `MOST_KIN` of them and `DEEPEST` generations.

    Args:
        fact: Its id.
        ask: Returns what a fact was built on, or what was built on it.
    """
    found: dict[str, Sequence[Relative]] = {}
    front, left, cut = [fact], MOST_KIN, False
    for _ in range(DEEPEST):
        near: list[str] = []
        for name in front:
            relatives = ask(name)
            found[name] = [(other, link.how) for link, other in relatives[:left]]
            cut = cut or len(relatives) > left
            left -= len(found[name])
            near += [other.id for other, _ in found[name]]
        front = [name for name in dict.fromkeys(near) if name not in found]
    return Kin(of=found, cut=cut or bool(front))


def as_known(history: Sequence[Fact], known_at: Micros | None) -> list[Fact]:
    """Return the revisions that the file had at a moment, by version and revision; None is now."""
    ordered = sorted(history, key=lambda revision: (revision.version, revision.revision))
    if known_at is None:
        return ordered
    return [
        replace(item, retired_at=None) if item.retired_at is not None and item.retired_at > known_at else item
        for item in ordered
        if item.recorded_at <= known_at
    ]


# --- a list ---


def facts_page(
    facts: Sequence[Fact],
    *,
    path: str,
    scope: str | None,
    asked: Sequence[tuple[str, str]],
    now: Micros,
    readable: int,
    total: int,
    waiting: int,
    short_ids: Mapping[str, str],
) -> str:
    """Return the list of facts, each of which opens on where it came from.

    Args:
        path: Of the memory file.
        scope: None where the page is about every scope.
        asked: What the facts were chosen by, with its name.
        readable: How many facts of the scope may reach a prompt.
        total: How many facts the scope has in any state.
        waiting: How many items the review queue holds.
    """
    name = PurePath(path).name
    place = "all scopes" if scope is None else f"scope {said(scope)}"
    what = chosen(asked) or "readable facts that are valid now"
    figures = [
        ("facts here", f"{len(facts):,}"),
        ("readable", f"{readable:,} of {total:,}"),
        ("waiting for review", f"{waiting:,}"),
    ]
    about = lead([said(path) if path != name else "", place, what, f"as of {when(now)}"])
    return document(
        title=f"{name} – mem show",
        header=heading(f"The facts of {said(name)}", about) + numbers(figures if scope is not None else figures[:1]),
        parts=[section("facts", "Facts, newest first", _list(facts, short_ids, scopes=scope is None))],
        footer="Times are UTC.",
        style=_STYLE,
        skip=("list", "facts") if facts else None,
    )


def _list(facts: Sequence[Fact], ids: Mapping[str, str], *, scopes: bool) -> str:
    if not facts:
        return "<p>No fact fits. <code>mem show --all-states</code> also lists what is withheld.</p>"
    states = choice("state", "in this state", (f.state.value for f in facts))
    places = choice("scope", "of this scope", (f.scope for f in facts))
    heads = [
        ("id", "w5"),
        ("state", "w7"),
        *([("scope", "w9 spare")] if scopes else []),
        ("subject", "w9 spare"),
        ("fact", ""),
        ("true", "w12 spare"),
        ("evidence", "n w6 spare"),
    ]
    rows = (_fact_row(f, ids, states, places if scopes else None) for f in facts)
    chooser = filters("facts", (states, places) if scopes else (states,))
    return chooser + table("Facts", heads, rows, kind="even", listed=listing("fact", "facts"))


def _fact_row(f: Fact, ids: Mapping[str, str], states: Choice, scopes: Choice | None) -> str:
    words = _words(f)
    inner = (f"<p>{said(words)}</p>" if is_long(words) else "") + _particulars(f, ids) + _origins(f)
    cells = [
        (f"{f.state.value}{f' v{f.version:,}' if f.version > 1 else ''}", f.state.value),
        *([] if scopes is None else [(brief(f.scope), "spare")]),
        (brief(f.subject or ""), "spare"),
        (opened(brief(words), inner), ""),
        (held_for(f.valid.start, f.valid.end) or NOTHING, "spare"),
        (f"{len(f.provenance):,}", "n spare"),
    ]
    marks = states.mark(f.state) + ("" if scopes is None else scopes.mark(f.scope))
    return row(f"<code>{text(short(ids, f.id))}</code>", cells, marks=marks)


def _words(f: Fact) -> str:
    return "(erased)" if f.erased_at is not None else f.text


def _particulars(f: Fact, ids: Mapping[str, str]) -> str:
    known = f"since {when(f.recorded_at)}"
    if f.retired_at is not None:
        known = f"{when(f.recorded_at)} … {when(f.retired_at)}"
    kind = f"{f.kind.value}, {f.visibility.value}"
    figures = [("confidence", f.confidence), ("importance", f.importance)]
    slot = ""
    if f.slot is not None and f.erased_at is None:
        slot = f"{said(f.subject or '')} · {said(f.attribute or '')} = {said(spoken(f.value))}"
    replaced = "" if f.superseded_by in (None, f.id) else short(ids, f.superseded_by or "")
    return particulars(
        [
            ("id", f"<code>{text(f.id)}</code>"),
            ("slot", slot),
            ("scope", said(f.scope)),
            ("kind", f"{kind}, pinned" if f.pinned else kind),
            ("true", held_for(f.valid.start, f.valid.end) or "unknown since when"),
            ("known", known),
            ("recorded by", said(who(f.actor))),
            ("owner", said(f.owner) if f.owner else ""),
            ("authority", " · ".join([f"{f.authority:g}", *(f"{name} {n:g}" for name, n in figures if n is not None)])),
            ("rule", said(f.rule) if f.rule else ""),
            ("tokens", "" if f.tokens is None else f"{f.tokens:,} ({text(f.encoding or '')})"),
            ("built on", " ".join(f"<code>{text(short(ids, parent))}</code>" for parent in f.derived_from)),
            ("replaced by", f"<code>{text(replaced)}</code>" if replaced else ""),
            ("erased", "" if f.erased_at is None else when(f.erased_at)),
        ]
    )


def _origins(f: Fact) -> str:
    return "".join(f"<p>{_origin(item)}</p>" for item in f.provenance)


def _origin(item: Provenance) -> str:
    number = "" if item.index is None else f" #{item.index}"
    role = "" if item.role is None else f" {item.role.value}"
    doubt = "" if item.verified or item.quote is None else ' <span class="bad">does not stand there</span>'
    quote = "" if item.quote is None else f" {brief(quoted(item.quote), most=NEIGHBOUR)}{doubt}"
    return f'<span class="dim">from {said(item.source)}{number}{role}</span>{quote}'


# --- facts in full ---


def facts_in_full(
    facts: Sequence[Whole],
    *,
    path: str,
    known_at: Micros | None,
    now: Micros,
    short_ids: Mapping[str, str],
) -> str:
    """Return facts with their evidence, versions, derivations and log.

    Args:
        path: Of the memory file.
        known_at: As the file knew them then; derivations are always those of now.
        short_ids: Of the facts and of their relatives.
    """
    name = PurePath(path).name
    then = "" if known_at is None else f"as the file knew it at {when(known_at)}; derivations are those of now"
    about = lead([said(path), f"as of {when(now)}", then])
    alone = len(facts) == 1
    places = {whole.fact.id: f"fact-{at}" for at, whole in enumerate(facts, 1)}
    title = quoted(_words(facts[0].fact)) if alone else counted(len(facts), "fact")
    parts = [_whole(whole, short_ids, places, alone=alone) for whole in facts]
    if not alone:
        parts = [
            filters("facts", [choice("state", "in this state", (whole.fact.state.value for whole in facts))]),
            f"<div{listing('fact', 'facts', at_once=len(facts))}>\n" + "\n".join(parts) + "\n</div>",
        ]
    return document(
        title=f"{title} – mem show" if alone else f"{title} of {name} – mem show",
        header=heading(brief(title, most=400) if alone else title, about),
        parts=parts,
        footer="Times are UTC.",
        style=_STYLE,
    )


def _whole(whole: Whole, ids: Mapping[str, str], places: Mapping[str, str], *, alone: bool) -> str:
    f = whole.fact
    place, rank = places[f.id], 2 if alone else 3
    state = f'<p><b class="{f.state.value}">{f.state.value}</b>, version {f.version:,}</p>'
    full = f"<p>{said(f.text, newlines=True)}</p>" if is_long(f.text, most=400) and f.erased_at is None else ""
    sections = [
        ("because", "Because", _evidence(whole)),
        ("was", "Was", _versions(whole.history)),
        ("parents", "Built on", _kin(whole.parents, f.id, ids, places, none="Nothing: it was not derived.")),
        ("children", "From this one", _kin(whole.children, f.id, ids, places, none="Nothing was derived from it.")),
        ("log", "Log", _log(whole.events, ids, alone=alone)),
    ]
    body = f"{state}{full}{_particulars(f, ids)}\n" + "\n".join(
        section(f"{place}-{name}", title, inner, rank=rank) for name, title, inner in sections
    )
    if alone:
        return f'<div id="{place}">\n{body}\n</div>'
    mark = f' data-row data-state="{f.state.value}"'
    return (
        f'<article id="{place}"{mark} tabindex="-1">\n<h2>{brief(quoted(_words(f)), most=400)}</h2>\n{body}\n</article>'
    )


def _evidence(whole: Whole) -> str:
    shown = "".join(_excerpt(item) for item in whole.excerpts)
    loose = "".join(f"<p>{_origin(item)}</p>" for item in whole.fact.provenance if item.message is None)
    return shown + loose or "<p>Nothing in this file points at it: no evidence.</p>"


def _excerpt(shown: Excerpt) -> str:
    message = shown.message
    around = [item for item in (shown.before, message, shown.after) if item is not None]
    turns = "".join(_turn(item, shown if item is message else None) for item in around)
    quote = shown.provenance.quote
    doubt = ""
    if quote is not None and not shown.provenance.verified:
        doubt = f'<p><b class="bad">does not stand there:</b> {brief(quoted(quote), most=NEIGHBOUR)}</p>'
    name = "" if message.name is None else f" {said(message.name)}"
    where = f"<code>{said(excerpts.place(shown))}</code> {message.role.value}{name}, {said(excerpts.when(message))}"
    return f'<p>{where}</p><ol class="turns">{turns}</ol>{doubt}'


def _turn(message: Message, shown: Excerpt | None) -> str:
    head = f"{message.index:,} {message.role.value}"
    if shown is None:
        return f"<li><span>{head}</span><p>{brief(_content(message), most=NEIGHBOUR)}</p></li>"
    return f'<li class="cited"><span>▸ {head}</span><p>{_marked(shown)}</p></li>'


def _content(message: Message) -> str:
    if message.erased_at is not None:
        return "(erased)"
    calls = ", ".join(f"calls {call.name}" for call in message.tool_calls)
    return message.content or calls or "; ".join(message.attachments) or NOTHING


def _marked(shown: Excerpt) -> str:
    """Return the message with its quote marked, cut to what stands around it."""
    content = shown.message.content
    found = _span(shown)
    if shown.message.erased_at is not None or not content or found is None:
        words = _content(shown.message)
        return said(words[:AROUND], newlines=True) + _left_out(len(words), min(len(words), AROUND))
    start, end = found
    first, last = max(0, start - AROUND), min(len(content), end + AROUND)
    before = ("…" if first else "") + content[first:start]
    after = content[end:last] + ("…" if last < len(content) else "")
    parts = text(before, newlines=True), text(content[start:end], newlines=True), text(after, newlines=True)
    return f"<bdi>{parts[0]}<mark>{parts[1]}</mark>{parts[2]}</bdi>" + _left_out(len(content), last - first)


def _left_out(there: int, shown: int) -> str:
    if shown == there:
        return ""
    return f' <span class="dim">(… {shown:,} of {there:,} characters)</span>'


def _span(shown: Excerpt) -> tuple[int, int] | None:
    """Return where the quote stands; a span that lies outside the words is not believed."""
    content, quote, span = shown.message.content, shown.provenance.quote, shown.provenance.span
    if span is not None and 0 <= span[0] < span[1] <= len(content):
        return span
    at = content.find(quote) if quote else -1
    return None if at < 0 or quote is None else (at, at + len(quote))


def _versions(history: Sequence[Fact]) -> str:
    heads = (("version", "w4"), ("said", "said"), ("true", ""), ("known", ""), ("states", ""), ("recorded by", "spare"))
    rows = []
    for number, found in groupby(history, key=lambda revision: revision.version):
        revisions = list(found)
        last = revisions[-1]
        began, ended = revisions[0].recorded_at, last.retired_at
        if last.state in FINAL:
            ended = next(item.recorded_at for item in revisions if item.state in FINAL)
        states = [state for state, _ in groupby(item.state for item in revisions)]
        words = _words(last)
        cells = [
            (opened(brief(words), said(words)) if is_long(words) else said(words), "said"),
            (true_for(last.valid).removeprefix("true ") or NOTHING, ""),
            (f"since {when(began)}" if ended is None else f"{when(began)} … {when(ended)}", ""),
            (" → ".join(f'<span class="{state.value}">{state.value}</span>' for state in states), ""),
            (said(who(revisions[0].actor)), "spare"),
        ]
        rows.append(row(f"v{number:,}", cells, head="w4"))
    return table("Versions, oldest first", heads, rows)


def _kin(side: Kin, fact: str, ids: Mapping[str, str], places: Mapping[str, str], *, none: str) -> str:
    if not side.of.get(fact):
        return f"<p>{none}</p>"
    rest = ""
    if side.cut:
        rest = f"<p>More are left out: up to {MOST_KIN:,} relatives in {DEEPEST} generations are shown.</p>"
    return f'<ul class="kin">{_branches(side, fact, ids, places, {fact})}</ul>{rest}'


def _branches(side: Kin, fact: str, ids: Mapping[str, str], places: Mapping[str, str], written: set[str]) -> str:
    """Return a fact's relatives with theirs under them; one that was written before is not written out again."""
    lines = []
    for other, how in side.of.get(fact, ()):
        again = other.id in written
        written.add(other.id)
        name = f"<code>{text(short(ids, other.id))}</code>"
        linked = f'<a href="#{places[other.id]}">{name}</a>' if other.id in places else name
        state = f'<span class="{other.state.value}">{other.state.value}</span>'
        below = "" if again else _branches(side, other.id, ids, places, written)
        below = f"<ul>{below}</ul>" if below else " (see above)" if again and side.of.get(other.id) else ""
        words = brief(quoted(_words(other)))
        lines.append(f'<li>{linked} {words} <span class="dim">({how.value}),</span> {state}{below}</li>')
    return "".join(lines)


def _log(events: Sequence[AuditEvent], ids: Mapping[str, str], *, alone: bool) -> str:
    if not alone:
        rows = [event_row(event, ids, marks=None) for event in events]
        return opened(counted(len(rows), "event"), table("Events, oldest first", EVENT_HEADS, rows, kind="even"))
    done, channels = menus(events)
    rows = [event_row(event, ids, marks=done.mark(event.op) + channels.mark(event.actor.channel)) for event in events]
    listed = listing("event", "events")
    return filters("events", (done, channels)) + table(
        "Events, oldest first", EVENT_HEADS, rows, kind="even", listed=listed
    )
