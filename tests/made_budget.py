"""Simulated runs made by hand, for screens, pages and documents that must not depend on a policy."""

from dataclasses import replace

from memcli.budget.outcome import BlockFate, BudgetFinding, Fate, Flushed, Piece, Simulation, Totals

ROLES = ("system", "user", "assistant", "user", "assistant", "user")


def fate(index: int = 0, **given) -> Fate:
    """A message that is still there, unless it is said otherwise."""
    base = Fate(
        index=index,
        id=str(index),
        role=ROLES[index % len(ROLES)],
        thought=40,
        real=42,
        ended="window",
        reason=None,
        flush=None,
        last_seen=5,
        reachable=True,
    )
    return replace(base, **given)


def gone(index: int, **given) -> Fate:
    """A message that was flushed to a block."""
    taken = {"ended": "block", "reason": "flush 0 took it", "flush": 0, "last_seen": 3, "blocks": ("retrieved",)}
    return fate(index, **{**taken, **given})


def lost(index: int, **given) -> Fate:
    """A message that nobody has any more."""
    return fate(
        index,
        **{"ended": "dropped", "reason": "no block took it", "flush": 0, "last_seen": 3, "reachable": False} | given,
    )


def flushed(number: int = 0, **given) -> Flushed:
    """A flush of two messages."""
    base = Flushed(
        write=4, turn=1, before=2818, after=11, first=2 * number, stop=2 * number + 2, blocks=("facts", "retrieved")
    )
    return replace(base, **given)


def block(name: str = "persona", **given) -> BlockFate:
    """A block that is whole."""
    base = BlockFate(name=name, kind="static", priority=0, weight=None, wanted=212, got=212, fate="whole", reason=None)
    return replace(base, **given)


def finding(code: str = "system-evicted", **given) -> BudgetFinding:
    """An error about message 0."""
    base = BudgetFinding(
        code=code,
        severity="error",
        turn=1,
        message=0,
        tokens=40,
        text="the system message left the window; the agent runs without it",
        remedy="put the system prompt outside of the memory",
    )
    return replace(base, **given)


def totals(**given) -> Totals:
    """Sums that fit the run below."""
    base = Totals(
        messages=6,
        turns=3,
        tokens=9841,
        window_messages=3,
        flushes=1,
        flushed_messages=3,
        thought=3341,
        real=3902,
        limit=4000,
        over=0,
        uncounted=530,
        template=31,
        prefix_kept=0.62,
    )
    return replace(base, **given)


CLAMP = {
    "setting": "token_flush_size",
    "given": 5000,
    "used": 2800,
    "why": "5000 is more than the limit of 4000, so 70 % of the limit is taken, rounded down",
}
EFFECTIVE = {
    "token_limit": 4000,
    "token_flush_size": 2800,
    "chat_history_token_ratio": 0.7,
    "flush_threshold": 2800.0,
    "insert_method": "system",
}


def piece(kind: str, name: str, **given) -> Piece:
    """A part of the prompt, from a block unless it is said otherwise."""
    base = Piece(kind=kind, name=name, role="system", index=None, thought=212, real=212, text="You are kind.")
    return replace(base, **given)


PROMPT = (
    piece("block", "persona"),
    piece("block", "facts", thought=1399, real=1399, text="likes tea"),
    piece("template", "memory", thought=0, real=31, text="<memory>"),
    piece("message", "3", role="user", index=3, thought=600, real=900, text="hello"),
    piece("message", "4", role="assistant", index=4, thought=600, real=830, text="hi"),
    piece("message", "5", role="user", index=5, thought=530, real=530, text="bye"),
)
DROPPED = {"wanted": 742, "got": 0, "fate": "dropped", "reason": "83 tokens too many"}


def simulation(**given) -> Simulation:
    """A run with a little of everything."""
    base = Simulation(
        policy="llamaindex",
        encoding="cl100k_base",
        settings={"token_limit": 4000, "token_flush_size": 5000},
        effective=EFFECTIVE,
        clamps=(CLAMP,),
        fates=(gone(0), gone(1), lost(2), fate(3), fate(4), fate(5)),
        flushes=(flushed(),),
        steps=tuple(
            {"op": "put", "first": index, "stop": index + 1, "before": 900, "after": 800} for index in range(6)
        ),
        prompt=PROMPT,
        blocks=(
            block(),
            block("facts", kind="facts", priority=2, wanted=1399, got=1399),
            block("retrieved", kind="retrieved", priority=1, **DROPPED),
        ),
        totals=totals(),
        findings=(
            finding(),
            finding("block-dropped-whole", severity="warning", message=None, tokens=83, text="retrieved was dropped"),
        ),
    )
    return replace(base, **given)
