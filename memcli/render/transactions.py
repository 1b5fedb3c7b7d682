"""The screens of transactions: what is staged, what the checks and the gate say, what falls, what is owed."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from memcli.clock import ago, moment
from memcli.facts import Fact, Micros, PolicyRule
from memcli.render.layout import Column, Page, Part, Screen, clip
from memcli.render.words import counted, quoted, said_of_subject, short, slot_of, state_part, who
from memcli.terms import (
    VIEWS,
    ActionState,
    Block,
    Code,
    EffectKind,
    EffectState,
    Kind,
    Reversibility,
    Ruling,
    State,
    TxStatus,
)
from memcli.text import cells
from memcli.transactions.replay import CaseResult
from memcli.tx import Action, Check, Effect, Fall, GateAnswer, Transaction, Verdict

TEXT = 120
"""Cells that are shown of one fact's text."""

DEEPEST = 12
"""Levels of a tree that are drawn as rails; deeper ones hang on the last of them."""

Item = TypeVar("Item")
Node: TypeAlias = "Fact | Check | str"

SAID: Mapping[Code, str] = {
    Code.PASS: "passes every check",
    Code.E_NO_EVIDENCE: "no evidence, or it no longer says so",
    Code.E_LOW_CONF: "confidence below 0.6, and nobody of authority 0.9 says so",
    Code.E_UNCORROBORATED: "an external commit on weak authority needs two sources",
    Code.V_FUTURE: "not true yet",
    Code.V_EXPIRED: "no longer true",
    Code.P_SCOPE_WIDEN: "more may see it than what it was built from",
    Code.P_UNDECLARED_READ: "the transaction read something narrower and does not say that this is built on it",
    Code.P_CONTENT_OVERLAP: "half of its words stand in a private fact",
    Code.P_NOT_WRITER: "the slot is somebody else's and private",
    Code.C_TOMBSTONED: "the value is under a tombstone",
    Code.C_INTRA_TX: "the transaction stages two values for one slot",
    Code.C_STALE_LATE_WRITE: "another value was accepted after the transaction began",
    Code.C_RETRY_NO_NEW_EVIDENCE: "aborted as stale before, and nothing new says so",
    Code.C_ECHO: "believed before and ended, and nothing new says so",
    Code.C_LOWER_AUTHORITY: "another value stands on more authority",
    Code.C_EQUAL_AUTHORITY: "another source says otherwise on the same authority",
    Code.D_REVOKED_ANCESTOR: "built on what was withdrawn",
    Code.D_DISPUTED_ANCESTOR: "built on what is disputed",
    Code.D_UNSETTLED_ANCESTOR: "built on what is not settled",
    Code.D_STALE_ANCESTOR: "built on what another value has taken the place of",
    Code.X_VERIFIER: "the verifier does not let it pass",
    Code.X_LEASE_OVER: "the lease of the transaction was over",
    Code.X_ABORTED: "the transaction was aborted",
}
"""What each verdict means, in a few words."""

SETTLE: Mapping[Code, str] = {
    Code.E_NO_EVIDENCE: "stage it with --evidence or --reference",
    Code.E_LOW_CONF: "bring another source, or let a person accept it",
    Code.E_UNCORROBORATED: "bring a second source with --reference",
    Code.P_SCOPE_WIDEN: "stage it with a narrower --visibility",
    Code.P_UNDECLARED_READ: "name what was read with --derived-from",
    Code.C_STALE_LATE_WRITE: "begin again, and read what is there now",
    Code.C_EQUAL_AUTHORITY: "let a person decide",
    Code.C_LOWER_AUTHORITY: "bring a source of more authority",
    Code.C_TOMBSTONED: "a person lifts it with `mem lift`",
    Code.D_UNSETTLED_ANCESTOR: "commit what it was built from first",
    Code.D_STALE_ANCESTOR: "build it on what took its place",
}
"""What may be done about a verdict, where something general can be said."""

BLOCKED: Mapping[Block, str] = {
    Block.G1_UNSETTLED: "a draft lies outside its snapshot",
    Block.G2_NO_VERIFIED: "nothing in its snapshot is verified, and its tier is external",
    Block.G3_NO_PREMISE: "it names no premise that is there",
    Block.G3_PREMISE_STATE: "a premise is in a state that carries no such call",
    Block.G3_PREMISE_EXPIRED: "a premise is not true now",
    Block.G3_PREMISE_UNSTABLE: "a premise was built on what is withdrawn or not settled",
    Block.G5_WEAK_ISOLATION: "its transaction reads what nobody believes yet",
    Block.G6_PREMISE_NOT_IN_SNAPSHOT: "a premise is newer than its snapshot",
    Block.G7_CONTESTED: "an equal says otherwise about a premise, and waits",
    Block.G8_SINK_SCOPE: "the tool publishes wider than a premise may be seen",
}
"""What each reason of the gate means, in a few words."""

_WAY_OUT: Mapping[Block, str] = {
    Block.G2_NO_VERIFIED: "mem verify ID",
    Block.G3_NO_PREMISE: "--premise ID",
    Block.G3_PREMISE_STATE: "mem show",
    Block.G3_PREMISE_EXPIRED: "mem show",
    Block.G3_PREMISE_UNSTABLE: "mem review",
    Block.G5_WEAK_ISOLATION: "mem tx begin --isolation accepted",
    Block.G6_PREMISE_NOT_IN_SNAPSHOT: "mem tx begin",
    Block.G7_CONTESTED: "mem review",
    Block.G8_SINK_SCOPE: "mem policy show",
}
_STATUS: Mapping[TxStatus, str] = {
    TxStatus.OPEN: "tentative",
    TxStatus.COMMITTED: "accepted",
    TxStatus.HELD: "disputed",
    TxStatus.ABORTED: "rejected",
}
_RULING: Mapping[Ruling, str] = {Ruling.PASS: "accepted", Ruling.HOLD: "disputed", Ruling.REFUSE: "rejected"}
_MEANS: Mapping[Ruling, str] = {Ruling.PASS: "passes", Ruling.HOLD: "would be held", Ruling.REFUSE: "would be refused"}


def ruling_of(code: Code, status: TxStatus) -> str:
    """Return the style of a verdict that a transaction got."""
    return "accepted" if code is Code.PASS else _STATUS[status]


# -------------------------------------------------------------------- trees


def _put_tree(
    page: Page,
    roots: Sequence[Item],
    *,
    parts: Callable[[Item], Sequence[Part]],
    below: Callable[[Item], Sequence[Item]],
) -> None:
    """Add one line for each item, those below it on rails under it; no depth is too much for it."""
    waiting: list[tuple[Item, tuple[bool, ...]]] = [(item, ()) for item in reversed(roots)]
    while waiting:
        item, lasts = waiting.pop()
        stem = _stem(lasts)
        page.line(stem, *parts(item), hang=cells(stem))
        under = list(below(item))
        fresh = [(child, (*lasts, at == len(under))) for at, child in enumerate(under, 1)]
        waiting += reversed(fresh)


def _stem(lasts: Sequence[bool]) -> str:
    if not lasts:
        return ""
    deep = len(lasts) > DEEPEST
    rails = "".join("   " if last else "│  " for last in lasts[:-1][-DEEPEST:])
    return ("… " if deep else "") + rails + ("└─ " if lasts[-1] else "├─ ")


def _fact(f: Fact, ids: Mapping[str, str]) -> list[Part]:
    """Return a fact's id, kind where it is no belief, words and state."""
    kind = "" if f.kind is Kind.BELIEF else f"{f.kind.value.replace('_', ' ')} "
    return [(short(ids, f.id), "id"), f" {kind}{words_of(f)} (", state_part(f.state), ")"]


def words_of(f: Fact) -> str:
    """Return what a fact says, in quotation marks and on one line."""
    return "(erased)" if f.erased_at is not None else clip(quoted(f.text), TEXT)


def _author(f: Fact, now: Micros) -> str:
    return f"by {who(f.actor)}, {ago(f.recorded_at, now=now)}"


# -------------------------------------------------------------------- transactions


def tx_line(tx: Transaction, *, now: Micros) -> str:
    """Return one line for a transaction that has just begun or ended."""
    if tx.status is not TxStatus.OPEN:
        return f"{tx.status} {tx.id} · {counted(len(tx.staged), 'fact')}"
    return f"{tx.id} · {tx.tier}, reads {tx.isolation} · {tx.agent} · {_lease(tx, now)}"


def _lease(tx: Transaction, now: Micros) -> str:
    if tx.lease_until <= now:
        return f"lease over since {moment(tx.lease_until)}"
    return f"lease ends {ago(tx.lease_until, now=now)}".replace("just now", "in a moment")


def transactions_screen(found: Sequence[Transaction], *, scope: str, now: Micros, width: int = 80) -> Screen:
    """Return the transactions of a scope, one line each."""
    page = Page(width)
    if not found:
        page.line(f"no transactions in {clip(scope, TEXT)}", hang=2)
        page.blank()
        page.flow([["mem tx begin"]], indent=2)
        return page.screen()
    columns = (
        Column(head="ID"),
        Column(head="STATUS"),
        Column(head="TIER"),
        Column(head="AGENT", flexible=True),
        Column(head="FACTS", right=True),
        Column(head="BEGUN", spare=1),
        Column(head="LEASE", spare=2),
    )
    rows: list[list[Part]] = [
        [
            (tx.id, "id"),
            (tx.status.value, _STATUS[tx.status]),
            tx.tier.value,
            tx.agent,
            f"{len(tx.staged):,}",
            (ago(tx.begun_at, now=now), "dim"),
            _lease(tx, now).removeprefix("lease ") if tx.status is TxStatus.OPEN else "",
        ]
        for tx in found
    ]
    page.table(columns, rows)
    return page.screen()


def tx_screen(
    tx: Transaction,
    *,
    facts: Sequence[Fact],
    checks: Sequence[Check],
    known: Mapping[str, Fact],
    actions: Sequence[Action],
    now: Micros,
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return a transaction as a tree: what it staged, the rules each does not pass, and what it stands on.

    Args:
        known: Every ancestor and every fact that a check speaks of, by id.
    """
    page = Page(width)
    _put_head(page, tx, now)
    page.blank()
    if not facts:
        page.line("  nothing is staged")
    seen: set[str] = set()

    def below(node: Node) -> Sequence[Node]:
        if not isinstance(node, Fact) or node.id in seen:
            return ()
        seen.add(node.id)
        mine = [check for check in checks if check.fact == node.id and check.code is not Code.PASS]
        return [*mine, *(known[name] for name in node.derived_from if name in known)]

    def parts(node: Node) -> Sequence[Part]:
        if isinstance(node, Check):
            return _failed(node, known, now, short_ids)
        if not isinstance(node, Fact):
            return [node]
        code = tx.verdicts.get(node.id)
        verdict: list[Part] = [] if code is None else ["  ", (code.value, ruling_of(code, tx.status))]
        return [*_fact(node, short_ids), *verdict]

    _put_tree(page, list[Node](facts), parts=parts, below=below)
    _put_actions(page, actions)
    page.blank()
    page.flow([[hint] for hint in _next(tx, facts, short_ids, now)], indent=2, gap=" · ")
    return page.screen()


def _put_head(page: Page, tx: Transaction, now: Micros) -> None:
    page.line(
        (tx.id, "heading"), " · ", (tx.status.value, _STATUS[tx.status]), f" · {tx.tier}, reads {tx.isolation}", hang=2
    )
    page.line(f"for {clip(tx.agent, TEXT)} in {clip(tx.scope, TEXT)}, snapshot #{tx.snapshot:,}", hang=2)
    ended = _lease(tx, now) if tx.closed_at is None else f"{tx.status} {ago(tx.closed_at, now=now)}"
    page.line(f"begun {ago(tx.begun_at, now=now)} by {who(tx.actor)}, {ended}", hang=2)


def _failed(check: Check, known: Mapping[str, Fact], now: Micros, ids: Mapping[str, str]) -> list[Part]:
    parts: list[Part] = [(check.code.value, _RULING[check.ruling]), f" {SAID[check.code]}"]
    for at, name in enumerate(check.about):
        parts.append(": " if at == 0 else ", ")
        parts += _known(name, known, now, ids)
    return parts


def _known(name: str, known: Mapping[str, Fact], now: Micros, ids: Mapping[str, str]) -> list[Part]:
    found = known.get(name)
    return [(short(ids, name), "id")] if found is None else [*_fact(found, ids), f" {_author(found, now)}"]


def _put_actions(page: Page, actions: Sequence[Action]) -> None:
    if actions:
        page.heading("Actions")
    for action in actions:
        page.line(
            "  ", (action.id, "id"), f" {clip(action.tool, TEXT)}, {action.reversibility}: {action.state}", hang=4
        )


def _next(tx: Transaction, facts: Sequence[Fact], ids: Mapping[str, str], now: Micros) -> list[str]:
    if tx.status is TxStatus.HELD:
        return ["mem review", *(f"mem why {short(ids, fact.id)}" for fact in facts[:1])]
    if tx.status is not TxStatus.OPEN:
        return [f"mem why {short(ids, fact.id)}" for fact in facts[:1]]
    return ["mem tx recover"] if tx.lease_until <= now else [f"mem tx commit {tx.id}", f"mem tx abort {tx.id}"]


def read_screen(facts: Sequence[Fact], tx: str, *, short_ids: Mapping[str, str], width: int = 80) -> Screen:
    """Return what a transaction reads."""
    page = Page(width)
    if not facts:
        page.line(f"the snapshot of {tx} holds nothing of that", hang=2)
    columns = (
        Column(head="ID"),
        Column(head="STATE"),
        Column(head="SUBJECT", at_most=14, spare=1),
        Column(head="FACT", flexible=True),
        Column(head="AUTHORITY", right=True, spare=2),
    )
    rows: list[list[Part]] = [
        [(short(short_ids, f.id), "id"), state_part(f.state), f.subject or "", said_of_subject(f), f"{f.authority:g}"]
        for f in facts
    ]
    page.table(columns, rows)
    return page.screen()


def checked_screen(
    tx: Transaction,
    status: TxStatus,
    *,
    facts: Sequence[Fact],
    checks: Sequence[Check],
    known: Mapping[str, Fact],
    now: Micros,
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return what a commit would say, and every rule that each staged fact does not pass."""
    page = Page(width)
    page.line(f"{tx.id} would be ", (status.value, _STATUS[status]), f" · {counted(len(facts), 'fact')}")
    for fact in facts:
        mine = [check for check in checks if check.fact == fact.id]
        ruling = mine[0].ruling if mine else Ruling.PASS
        page.line("  ", *_fact(fact, short_ids), " ", (_MEANS[ruling], _RULING[ruling]), hang=4)
        for check in mine:
            if check.code is not Code.PASS:
                page.line("    ", *_failed(check, known, now, short_ids), hang=6)
    page.line("nothing changed · ", f"mem tx commit {tx.id}", hang=2)
    return page.screen()


def verdict_screen(
    verdict: Verdict,
    *,
    facts: Sequence[Fact],
    checks: Sequence[Check],
    known: Mapping[str, Fact],
    now: Micros,
    short_ids: Mapping[str, str],
    verifier: bool,
    width: int = 80,
) -> Screen:
    """Return what became of a commit: each fact with its verdict, what stands in its way, and what may be done.

    Args:
        checks: What the checks said just before it, for what stands in the way.
        verifier: Whether one was asked; then it is said how often.
    """
    page = Page(width)
    asked = f" · verifier asked {counted(verdict.calls, 'time')}" if verifier else ""
    page.line(
        (verdict.status.value, _STATUS[verdict.status]),
        f" {verdict.tx} · {counted(len(facts), 'fact')}{asked}",
        hang=2,
    )
    for fact in facts:
        code = verdict.verdicts.get(fact.id, Code.PASS)
        page.line("  ", *_fact(fact, short_ids), "  ", (code.value, ruling_of(code, verdict.status)), hang=4)
        if code is Code.PASS:
            if verdict.status is TxStatus.HELD:
                page.line("    ", _held_why(verdict), hang=6)
            continue
        about = next((check.about for check in checks if check.fact == fact.id and check.code is code), ())
        page.line("    ", SAID[code], hang=6)
        for name in about:
            page.line("    against ", *_known(name, known, now, short_ids), hang=6)
        if code in SETTLE:
            page.line("    settle it: ", SETTLE[code], hang=6)
    return page.screen()


def _held_why(verdict: Verdict) -> str:
    if all(code is Code.PASS for code in verdict.verdicts.values()):
        return "passes every check, and a person decides: the file is reviewed"
    return "passes every check, and is held with its transaction"


# -------------------------------------------------------------------- the gate


def gate_screen(
    answer: GateAnswer,
    *,
    tool: str,
    reversibility: Reversibility,
    tx: str,
    facts: Mapping[str, Fact],
    drafts: Mapping[str, Transaction],
    behind: Mapping[str, Sequence[Fact]],
    now: Micros,
    short_ids: Mapping[str, str],
    with_args: bool = False,
    width: int = 80,
) -> Screen:
    """Return whether a call may go ahead, and where not, each reason with what stands in the way and what to do.

    Args:
        facts: What stands in the way, by id.
        drafts: By fact, the open transaction that it is staged in.
        behind: By premise, what it stands on that is withdrawn or not settled, and what waits to take its place.
        with_args: The call has arguments, which have to be given again when it is made.
    """
    page = Page(width)
    shown = clip(tool, TEXT)
    if answer.allow:
        receipt = answer.receipt.id if answer.receipt is not None else ""
        page.line(
            ("allowed", "accepted"), f": {shown}, {reversibility} · receipt ", (receipt, "id"), ", good once", hang=2
        )
        page.flow([[f"mem act begin --receipt {receipt}{' --args …' if with_args else ''}"]], indent=2)
        return page.screen()
    codes = [Block(reason.partition(":")[0]) for reason in answer.reasons]
    page.line(("blocked", "error"), f": {shown} is {reversibility} and ", _why_blocked(answer, codes), hang=2)
    for code, reason in zip(codes, answer.reasons, strict=True):
        label = code.partition("_")[0]
        if code is not Block.G1_UNSETTLED:
            page.line(f"  {label}  {BLOCKED[code]}", hang=6)
            continue
        for name in reason.partition(":")[2].split(","):
            page.line(f"  {label}  ", *_draft(name, facts, drafts, now, short_ids), hang=6)
    for name in answer.blockers:
        if name in drafts or name not in facts:
            continue
        page.line("      ", *_fact(facts[name], short_ids), f" {_author(facts[name], now)}", hang=8)
        for other in behind.get(name, ()):
            waits = other.state is State.DISPUTED
            lead = "        against " if waits else "        stands on "
            page.line(lead, *_fact(other, short_ids), f" {_author(other, now)}", hang=10)
    page.flow([[hint] for hint in _ways_out(codes, drafts, tx, now)], indent=0, gap=" · ")
    return page.screen()


def _why_blocked(answer: GateAnswer, codes: Sequence[Block]) -> str:
    if codes == [Block.G1_UNSETTLED]:
        count = len(answer.blockers)
        return f"{counted(count, 'draft')} {'is' if count == 1 else 'are'} unsettled"
    return f"{counted(len(codes), 'rule')} {'says' if len(codes) == 1 else 'say'} no"


def _draft(
    name: str, facts: Mapping[str, Fact], drafts: Mapping[str, Transaction], now: Micros, ids: Mapping[str, str]
) -> list[Part]:
    parts: list[Part] = [(short(ids, name), "id")]
    fact, tx = facts.get(name), drafts.get(name)
    if fact is not None:
        parts.append(f" {words_of(fact) if fact.slot is None else clip(quoted(slot_of(fact)), TEXT)}")
    if fact is not None and tx is not None:
        parts.append(
            f" staged by {clip(tx.agent, TEXT)} {ago(fact.recorded_at, now=now)} in {tx.id} ({_lease(tx, now)})"
        )
    return parts


def _ways_out(codes: Sequence[Block], drafts: Mapping[str, Transaction], tx: str, now: Micros) -> list[str]:
    hints: list[str] = []
    for found in {found.id: found for found in drafts.values()}.values():
        if found.lease_until <= now:
            hints.append("mem tx recover")
        elif found.id == tx:
            hints += [f"mem tx commit {tx}", "then ask in another"]
        else:
            hints += [f"mem tx show {found.id}", f"mem tx abort {found.id}", "or wait and run mem tx recover"]
    hints += [_WAY_OUT[code] for code in codes if code in _WAY_OUT]
    hints = list(dict.fromkeys(hints))
    return [f"settle it: {hints[0]}", *hints[1:]] if hints else []


# -------------------------------------------------------------------- actions and what they owe


def actions_screen(actions: Sequence[Action], *, now: Micros, width: int = 80) -> Screen:
    """Return tool calls, one line each."""
    page = Page(width)
    if not actions:
        page.line("no actions")
        return page.screen()
    columns = (
        Column(head="ID"),
        Column(head="STATE"),
        Column(head="TOOL", flexible=True),
        Column(head=""),
        Column(head="TX", spare=1),
        Column(head="SINCE", spare=2),
    )
    rows: list[list[Part]] = [
        [
            (item.id, "id"),
            (item.state.value, "warning" if item.state is ActionState.UNKNOWN else ""),
            item.tool,
            item.reversibility.value,
            item.tx,
            (ago(item.changed_at, now=now), "dim"),
        ]
        for item in actions
    ]
    page.table(columns, rows)
    if any(item.state is ActionState.UNKNOWN for item in actions):
        page.blank()
        page.flow([["mem act reconcile A done"], ["mem act reconcile A failed"]], indent=2, gap=" · ")
    return page.screen()


def effects_screen(
    effects: Sequence[Effect],
    *,
    facts: Mapping[str, Fact],
    now: Micros,
    short_ids: Mapping[str, str],
    width: int = 80,
) -> Screen:
    """Return leaks and compensations, one line each, with the fact that each is owed for."""
    page = Page(width)
    if not effects:
        page.line("no leaks and no compensations")
        return page.screen()
    columns = (
        Column(head="ID"),
        Column(head="KIND"),
        Column(head="STATE"),
        Column(head="TOOL", at_most=20),
        Column(head="BECAUSE", flexible=True),
        Column(head="SINCE", spare=1),
    )
    rows: list[list[Part]] = []
    for item in effects:
        root = facts.get(item.root)
        ground = short(short_ids, item.root) + ("" if root is None else f" {words_of(root)} was {root.state}")
        style = "error" if item.state is EffectState.OPEN else "dim"
        rows.append(
            [(item.id, "id"), item.kind.value, (item.state.value, style), item.tool, ground, ago(item.at, now=now)]
        )
    page.table(columns, rows)
    waiting = [item for item in effects if item.state is EffectState.OPEN]
    if waiting:
        page.blank()
        page.line((f"{counted(len(waiting), 'effect')} open", "error"))
        page.flow([[_dealt(item)] for item in waiting[:1]], indent=2)
    return page.screen()


def _dealt(effect: Effect) -> str:
    """Return what to type for an effect: a leak can only be acknowledged, a compensation done."""
    return f"mem effects {'ack' if effect.kind is EffectKind.LEAK else 'done'} {effect.id}"


# -------------------------------------------------------------------- what falls


def fall_screen(
    fall: Fall, *, items: Sequence[Fall], short_ids: Mapping[str, str], dry_run: bool, width: int = 80
) -> Screen:
    """Return what falls, or fell, with a fact, as a tree with its sums.

    Args:
        items: Every record of the tree.
    """
    page = Page(width)
    _put_tree(page, [fall], parts=lambda item: _fallen(item, short_ids), below=lambda item: item.below)
    sums = ", ".join(_sums(items)) or "nothing is left to fall"
    page.line(f"nothing changed · {sums}" if dry_run else f"revoked {short(short_ids, _root(fall))} · {sums}", hang=2)
    return page.screen()


def _root(fall: Fall) -> str:
    return "" if fall.fact is None else fall.fact.id


def _fallen(item: Fall, ids: Mapping[str, str]) -> list[Part]:
    if item.fact is not None:
        views = item.fact.kind in VIEWS and item.becomes == State.DISPUTED
        becomes = f"{item.becomes}, to be rebuilt" if views else item.becomes
        return [*_fact(item.fact, ids), f" → {becomes}"]
    if item.action is None:
        return []
    what = f" {clip(item.action.tool, TEXT)}, {item.action.state} → "
    return [(item.action.id, "id"), what, _OWED.get(item.becomes, item.becomes)]


_OWED: Mapping[str, Part] = {
    EffectKind.LEAK.value: ("leak: cannot be undone, must be acknowledged", "error"),
    EffectKind.COMPENSATION.value: ("compensation due: make it good", "warning"),
    ActionState.CANCELLED.value: "cancelled",
}


def _sums(items: Sequence[Fall]) -> list[str]:
    views = [item for item in items if item.fact is not None and item.fact.kind in VIEWS]
    beliefs = [item for item in items if item.fact is not None and item.fact.kind not in VIEWS]
    named = [
        (sum(item.becomes != "unchanged" for item in beliefs), "belief"),
        (sum(item.becomes != "unchanged" for item in views), "view"),
        *((sum(item.action is not None and item.becomes == word for item in items), word) for word in _OWED),
    ]
    return [f"{count:,} cancelled" if one == "cancelled" else counted(count, one) for count, one in named if count]


# -------------------------------------------------------------------- cases and policy


def replay_screen(found: Sequence[tuple[str, CaseResult]], *, width: int = 80) -> Screen:
    """Return every case that did not come out as it says, with the first difference, and how many did.

    Args:
        found: Each case with the path of its file.
    """
    from memcli.wire import dumps

    page = Page(width)
    for path, case in found:
        if case.passed:
            continue
        page.line(("✗ ", "error"), (clip(case.id, TEXT), "heading"), f"  {clip(case.title, TEXT)}", hang=2)
        page.line("  ", (clip(path, TEXT), "dim"), f" · step {case.step} ({case.op})", hang=4)
        page.line("  expected  ", clip(dumps(case.expected), 4 * TEXT), hang=12)
        page.line("  came      ", clip(dumps(case.got), 4 * TEXT), hang=12)
    failed = sum(not case.passed for _, case in found)
    page.blank()
    if failed:
        page.line((f"{failed:,} of {counted(len(found), 'case')} failed", "error"))
    else:
        page.line((f"{counted(len(found), 'case')} passed", "accepted"))
    return page.screen()


def imported_screen(
    path: str, changes: Sequence[tuple[PolicyRule, str | None]], *, dry_run: bool, width: int = 80
) -> Screen:
    """Return which rules of the policy a file sets, and what each was before.

    Args:
        changes: Each rule with its old value; None where there was none.
    """
    page = Page(width)
    changed = [(rule, was) for rule, was in changes if rule.value != was]
    columns = (
        Column(head="KIND"),
        Column(head="NAME", flexible=True),
        Column(head="VALUE", flexible=True),
        Column(head="WAS", flexible=True),
    )
    rows: list[list[Part]] = [[rule.kind, (rule.name, "heading"), rule.value, was or ""] for rule, was in changed]
    page.table(columns, rows)
    same = len(changes) - len(changed)
    verb = "would set" if dry_run else "set"
    rest = f", {same:,} as they are" if same else ""
    page.line(f"{clip(path, TEXT)}: {verb} {counted(len(changed), 'rule')}{rest}", hang=2)
    if dry_run:
        page.line("nothing changed · leave out --dry-run", hang=2)
    return page.screen()
