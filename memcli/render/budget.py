"""The screen of one simulated run, and the table of many: what the prompt holds, what left it, and what is wrong."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from memcli.budget.outcome import BlockFate, BudgetFinding, Fate, Flushed, Piece, Simulation
from memcli.facts import Json
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.words import NOTHING, counted
from memcli.text import cells

SIGNS: Mapping[str, tuple[str, str]] = {"error": ("✗", "error"), "warning": ("!", "warning")}
"""The sign of a severity, and its style."""

FLUSHES = 12
"""Flushes that are written out; of more the first and last ones are, and `--json` has them all."""

NAMED = 5
"""Names before a reason that holds for many."""

BARRED = 44
"""Cells below which a bar says nothing that the numbers do not."""

MARGIN = 14
BRIEF = 40

POLICIES: Mapping[str, str] = {"llamaindex": "llamaindex 0.14 as shipped", "buffer": "buffer (ChatMemoryBuffer)"}
"""What a policy is called on a screen, where its own name does not say it all."""

LABELS: Mapping[str, str] = {
    "token_limit": "limit",
    "token_flush_size": "flush size",
    "chat_history_token_ratio": "ratio",
    "flush_threshold": "flushes above",
    "insert_method": "insert",
}
"""Settings whose full names would crowd out the figures."""

_KINDS = ("system", "block", "message", "template")


def simulation_screen(
    s: Simulation, *, name: str, path: str, watched: Sequence[Fate] = (), notes: Sequence[str] = (), width: int = 80
) -> Screen:
    """Return all that a run says: its settings, the split, flushes, blocks, findings, and what to type next.

    Args:
        name: What the transcript is called.
        path: How it was named in the command.
        watched: Messages whose fate was asked for.
        notes: What the reader of the file had to tell.
    """
    page = Page(width)
    _put_head(page, s, name)
    _put_settings(page, s)
    _put_split(page, s)
    if s.refused is not None:
        page.blank()
        page.line(("✗ ", "error"), ("no prompt: ", "heading"), s.refused, hang=2)
    _put_flushes(page, s.flushes)
    _put_blocks(page, s.blocks)
    _put_prompt(page, s.prompt)
    put_fates(page, watched)
    put_findings(page, s.findings)
    for text in notes:
        page.line(("! ", "warning"), text, hang=2)
    page.blank()
    page.flow([[hint] for hint in _next(s, path)], indent=2, gap=" · ")
    return page.screen()


def _put_head(page: Page, s: Simulation, name: str) -> None:
    t = s.totals
    page.line(
        (clip(name, 60), "heading"),
        f" · {counted(t.messages, 'message')} in {counted(t.turns, 'turn')} · {counted(t.tokens, 'token')}"
        f" ({s.encoding}) · policy {POLICIES.get(s.policy, s.policy)}",
        hang=2,
    )


def _put_settings(page: Page, s: Simulation) -> None:
    page.blank()
    page.flow(
        [[f"{label(name)} ", (figure(value), "mark")] for name, value in s.effective.items()],
        indent=2,
        gap=" · ",
    )
    for clamp in s.clamps:
        given = clamp.get("given")
        was = "" if given is None else f"{figure(given)} → "
        page.line(
            ("  ! ", "warning"),
            f"{label(str(clamp.get('setting', '')))} {was}{figure(clamp.get('used'))}: {clamp.get('why', '')}",
            hang=4,
        )


def label(setting: str) -> str:
    """Return what a setting is called on a screen."""
    return LABELS.get(setting, setting.replace("_", " "))


def percent(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.0f} %"


def figure(value: Json) -> str:
    """Return a setting as a person reads it: whole numbers in groups of three, nothing where there is none."""
    if value is None or value in ([], {}):
        return NOTHING
    if isinstance(value, list):
        return ", ".join(map(figure, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {figure(item)}" for key, item in value.items())
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    return f"{value:,.4f}".rstrip("0").rstrip(".")


# --- the split ---


def split(s: Simulation) -> tuple[int, int, float | None]:
    """Return the tokens of messages and of blocks in the prompt at the end, and the history's share of the limit.

    The share is None where the policy divides nothing, or where it is no share.
    """
    blocks = sum(piece.real for piece in s.prompt if piece.kind == "block")
    messages = sum(piece.real for piece in s.prompt if piece.kind in ("system", "message"))
    ratio = s.effective.get("chat_history_token_ratio")
    share = ratio if isinstance(ratio, float | int) and 0 < ratio < 1 else None
    return messages, blocks, share


def _put_split(page: Page, s: Simulation) -> None:
    t = s.totals
    messages, blocks, share = split(s)
    page.blank()
    if t.limit is not None and page.width >= BARRED:
        _put_bars(page, t.limit, messages, blocks, share)
    free = "" if t.limit is None else f" · free {max(0, t.limit - t.real):,}"
    page.line(f"  in the prompt: messages {messages:,} · blocks {blocks:,} · template {t.template:,}{free}", hang=4)
    unseen = f" ({t.uncounted:,} uncounted)" if t.uncounted else ""
    page.line("  thinks ", (f"{t.thought:,}", "mark"), " · really sends ", (f"{t.real:,}", "mark"), unseen, hang=4)
    if t.over and t.limit is not None:
        page.line(("  ✗ ", "error"), f"{t.over:,} over the limit of {t.limit:,}", hang=4)
    if t.prefix_kept is not None:
        page.line(f"  {percent(t.prefix_kept)} of each prompt began as the one before it did", hang=4)


def _put_bars(page: Page, limit: int, messages: int, blocks: int, share: float | None) -> None:
    head = f"  limit {limit:,} "
    margin = max(MARGIN, len(head))
    room = page.width - margin - 2
    scale = max(limit, messages + blocks, 1)
    whole = round(room * limit / scale)
    left = whole if share is None else min(max(round(whole * share), 2), max(whole - 2, 2))
    if share is None:
        page.line(f"{head:<{margin}}", _segment(whole, "messages and blocks"))
    else:
        history = f"history {percent(share)} ── {math.floor(limit * share):,}"
        rest = f"blocks {percent(1 - share)} ── {limit - math.floor(limit * share):,}"
        page.line(f"{head:<{margin}}", _segment(left, history), _segment(whole - left, rest))
    own, other = _cells(messages, scale, room), _cells(blocks, scale, room)
    other = min(other, room - own)
    gap = max(0, min((left if share is not None else 0) - own, room - own - other))
    page.line(f"{'  at the end':<{margin}}", ("█" * own, "accepted"), ("░" * gap, "dim"), ("▓" * other, "id"))


def _segment(width: int, words: str) -> str:
    inner = max(0, width - 2)
    for text in (f" {words} ", f" {words.split(' ──', maxsplit=1)[0]} ", ""):
        if cells(text) <= inner - 2 or not text:
            return f"├─{text}{'─' * max(0, inner - 1 - cells(text))}┤" if inner else "┤"
    return ""


def _cells(tokens: int, scale: int, room: int) -> int:
    """Return how many cells stand for tokens; something is never shown as nothing."""
    return max(1, round(room * tokens / scale)) if tokens > 0 else 0


# --- tables ---


def _put_flushes(page: Page, flushes: Sequence[Flushed]) -> None:
    if not flushes:
        return
    page.heading("FLUSHES")
    shown = [*enumerate(flushes, start=1)]
    left_out = len(shown) - FLUSHES
    columns = (
        Column(head="#", right=True),
        Column(head="TURN", right=True),
        Column(head="WRITE", right=True, spare=1),
        Column(head="TOKENS"),
        Column(head="MESSAGES"),
        Column(head="TO", flexible=True),
    )
    if left_out > 1:
        half = FLUSHES // 2
        rows = [_flush_row(*item) for item in shown[:half]]
        rows.append(["…", "", "", f"{left_out:,} more flushes", "", ""])
        rows += [_flush_row(*item) for item in shown[-half:]]
    else:
        rows = [_flush_row(*item) for item in shown]
    page.table(columns, rows)


def _flush_row(number: int, flushed: Flushed) -> list[Part]:
    emptied = " (the window is empty)" if flushed.after == 0 else ""
    return [
        f"{number:,}",
        f"{flushed.turn:,}",
        f"{flushed.write:,}",
        f"{flushed.before:,} → {flushed.after:,}",
        span(flushed),
        (", ".join(clip(name, BRIEF) for name in flushed.blocks) or "nobody") + emptied,
    ]


def span(flushed: Flushed) -> str:
    """Return the messages that a flush took, the last one included."""
    last = flushed.stop - 1
    return f"{flushed.first:,}" if last <= flushed.first else f"{flushed.first:,}–{last:,}"


def _put_blocks(page: Page, blocks: Sequence[BlockFate]) -> None:
    if not blocks:
        return
    page.heading("BLOCKS")
    columns = (
        Column(head="BLOCK", at_most=20),
        Column(head="KIND", spare=2, at_most=12),
        Column(head="PRIORITY", right=True, spare=1),
        Column(head="WEIGHT", right=True, spare=1),
        Column(head="WANTED", right=True),
        Column(head="GOT", right=True),
        Column(head="FATE", at_most=12),
    )
    rows: list[list[Part]] = [
        [
            (b.name or "(no name)", "heading"),
            b.kind,
            "" if b.priority is None else f"{b.priority:,}",
            "" if b.weight is None else f"{b.weight:g}",
            f"{b.wanted:,}",
            f"{b.got:,}",
            (b.fate, "warning" if b.fate == "dropped" else ""),
        ]
        for b in blocks
    ]
    page.table(columns, rows)
    _put_reasons(page, [(b.name, b.reason) for b in blocks if b.reason is not None])


def _put_reasons(page: Page, found: Sequence[tuple[str, str]]) -> None:
    """Add each reason once, whole, behind the names it holds for; in a table it would be cut."""
    for reason in dict.fromkeys(reason for _, reason in found):
        names = [clip(name, BRIEF) for name, other in found if other == reason]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        page.line("  ", (", ".join(names[:NAMED]) + more, "id"), f": {reason}", hang=4)


def prompt_parts(prompt: Sequence[Piece]) -> Iterator[tuple[str, int, int, int]]:
    """Yield the parts of a prompt with how many pieces each has, and what they are thought to be and are."""
    for kind in _KINDS:
        pieces = [piece for piece in prompt if piece.kind == kind]
        names = [{"message": piece.role, "block": piece.name}.get(kind, kind) for piece in pieces]
        for name in dict.fromkeys(names):
            own = [piece for piece, other in zip(pieces, names, strict=True) if other == name]
            called = {"message": f"{name} messages", "block": f"block {name}"}.get(kind, kind)
            yield called, len(own), sum(piece.thought for piece in own), sum(piece.real for piece in own)


def _put_prompt(page: Page, prompt: Sequence[Piece]) -> None:
    if not prompt:
        return
    page.heading("THE PROMPT AT THE END")
    columns = (
        Column(head="PART", flexible=True),
        Column(head="PIECES", right=True, spare=1),
        Column(head="THINKS", right=True),
        Column(head="REALLY", right=True),
    )
    page.table(
        columns,
        [[name, f"{many:,}", f"{thought:,}", f"{real:,}"] for name, many, thought, real in prompt_parts(prompt)],
    )


def put_fates(page: Page, fates: Sequence[Fate]) -> None:
    """Add what became of each message; one is held where the prompt still has its words."""
    if not fates:
        return
    page.heading("MESSAGES")
    columns = (
        Column(head="ID", at_most=40),
        Column(head="ROLE", at_most=10, spare=3),
        Column(head="THINKS", right=True, spare=2),
        Column(head="REALLY", right=True),
        Column(head="ENDED"),
        Column(head="HELD"),
        Column(head="SEEN TO", right=True, spare=1),
        Column(head="BLOCKS", flexible=True),
    )
    page.table(columns, [_fate_row(fate) for fate in fates])
    _put_reasons(page, [(fate.id, fate.reason) for fate in fates if fate.reason is not None])


def _fate_row(f: Fate) -> list[Part]:
    return [
        (f.id, "id"),
        f.role,
        f"{f.thought:,}",
        f"{f.real:,}",
        (f.ended, "accepted" if f.ended == "window" else "warning"),
        "yes" if f.reachable else ("no", "error"),
        "never" if f.last_seen is None else f"{f.last_seen:,}",
        ", ".join(clip(name, BRIEF) for name in f.blocks),
    ]


# --- findings ---


def put_findings(page: Page, findings: Sequence[BudgetFinding]) -> None:
    """Add the findings, errors first."""
    page.heading("FINDINGS")
    if not findings:
        page.line("  none")
        return
    for item in by_weight(findings):
        sign, style = SIGNS.get(item.severity, ("!", "warning"))
        page.line("  ", (sign, style), " ", (item.code, "heading"), f"  {where(item)}", hang=6)
        page.line("      ", item.text, hang=6)
        if item.remedy:
            page.line("      → ", item.remedy, hang=8)


def by_weight(findings: Sequence[BudgetFinding]) -> list[BudgetFinding]:
    """Return the findings with errors first."""
    return sorted(findings, key=lambda item: item.severity != "error")


def where(finding: BudgetFinding) -> str:
    """Return the place of a finding, and how many tokens it is about."""
    parts = [
        "whole run" if finding.turn is None and finding.message is None else "",
        "" if finding.turn is None else f"turn {finding.turn:,}",
        "" if finding.message is None else f"message {finding.message:,}",
        "" if finding.tokens is None else counted(finding.tokens, "token"),
    ]
    return " · ".join(part for part in parts if part)


def _next(s: Simulation, path: str) -> list[str]:
    shown = shlex.quote(clip(path, 60))
    place = next((item.message for item in s.findings if item.message is not None), None)
    gone = next((fate.index for fate in s.fates if fate.ended != "window"), None)
    asked = place if place is not None else gone
    hints = [f"mem budget explain {shown} --message {s.fates[asked].id}"] if asked is not None and s.fates else []
    if s.policy != "mem":
        hints.append(f"mem budget simulate {shown} --policy mem")
    return [*hints, f"mem budget sweep {shown}", f"mem budget simulate {shown} --html report.html"]


# --- many transcripts ---

ROW_HEADS = ("transcript", "messages", "tokens", "flushes", "window", "thinks", "really", "over", "findings")


def summary_row(name: str, s: Simulation) -> tuple[str, ...]:
    """Return one line about a run, plain numbers in the order of `ROW_HEADS`."""
    t = s.totals
    numbers = (t.messages, t.tokens, t.flushes, t.window_messages, t.thought, t.real, t.over)
    codes = ",".join(dict.fromkeys(item.code for item in s.findings))
    return (name, *(str(number) for number in numbers), codes)


def summaries_screen(runs: Sequence[tuple[str, Simulation]], *, failed: Sequence[str] = (), width: int = 80) -> Screen:
    """Return one line for each transcript, and the sums.

    Args:
        failed: What is wrong with each file that could not be read.
    """
    page = Page(width)
    columns = (
        Column(head="TRANSCRIPT", flexible=True),
        Column(head="MESSAGES", right=True, spare=3),
        Column(head="TOKENS", right=True),
        Column(head="FLUSHES", right=True, spare=2),
        Column(head="WINDOW", right=True, spare=4),
        Column(head="THINKS", right=True, spare=5),
        Column(head="REALLY", right=True),
        Column(head="OVER", right=True, spare=1),
        Column(head="FINDINGS"),
    )
    page.table(columns, [_summary(name, s) for name, s in runs])
    for text in failed:
        page.line(("  ✗ ", "error"), text, hang=4)
    errors = sum(item.severity == "error" for _, s in runs for item in s.findings)
    warnings = sum(len(s.findings) for _, s in runs) - errors
    page.blank()
    unread = f" · {len(failed):,} not read" if failed else ""
    found = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    page.line(f"{counted(len(runs), 'transcript')}: {found}{unread}", hang=2)
    codes = dict.fromkeys(item.code for _, s in runs for item in s.findings)
    if codes:
        page.line("  ", " · ".join(f"{code} {_many(runs, code):,}" for code in codes), hang=2)
    return page.screen()


def _many(runs: Sequence[tuple[str, Simulation]], code: str) -> int:
    return sum(any(item.code == code for item in s.findings) for _, s in runs)


def _summary(name: str, s: Simulation) -> list[Part]:
    t = s.totals
    errors = sum(item.severity == "error" for item in s.findings)
    warnings = len(s.findings) - errors
    found = " ".join(text for text, many in ((f"✗ {errors:,}", errors), (f"! {warnings:,}", warnings)) if many)
    return [
        name,
        f"{t.messages:,}",
        f"{t.tokens:,}",
        f"{t.flushes:,}",
        f"{t.window_messages:,}",
        f"{t.thought:,}",
        f"{t.real:,}",
        f"{t.over:,}" if t.over else "",
        (found or "none", "error" if errors else ""),
    ]
