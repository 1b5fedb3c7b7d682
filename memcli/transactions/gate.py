"""The gate: whether a tool call that cannot be taken back may go ahead."""

from collections.abc import Iterator

from memcli.terms import READABLE, Block, Isolation, Profile, Reversibility, State, Tier
from memcli.transactions.scene import DEAD, WIDTH, Call, Record, ancestors, authority
from memcli.tx import GateAnswer

_UNSTABLE = DEAD | {State.TENTATIVE}


def pass_gate(call: Call) -> GateAnswer:
    """Return whether a call may go ahead, with every reason why not; the receipt is for the store to write."""
    if call.reversibility is Reversibility.REVERSIBLE:
        return GateAnswer(allow=True, reasons=(), blockers=())
    found = list(_blocks(call))
    reasons: dict[str, None] = {}
    for block, blockers in found:
        reasons[f"{block}:{','.join(blockers)}" if block is Block.G1_UNSETTLED else str(block)] = None
    blocking = dict.fromkeys(name for _, names in found for name in names)
    return GateAnswer(allow=not reasons, reasons=tuple(reasons), blockers=tuple(blocking))


def _blocks(call: Call) -> Iterator[tuple[Block, tuple[str, ...]]]:
    outside = tuple(name for name, within in call.unsettled if not within)
    if outside:
        yield Block.G1_UNSETTLED, outside
    if call.tier is Tier.EXTERNAL and not call.verified:
        yield Block.G2_NO_VERIFIED, ()
    if call.profile is Profile.PAPER:
        return
    if call.isolation is Isolation.RAW:
        yield Block.G5_WEAK_ISOLATION, ()
    if call.lost or not call.premises:
        yield Block.G3_NO_PREMISE, ()
    for premise in call.premises:
        for block in _premise(call, premise):
            yield block, (premise.id,)


def _premise(call: Call, premise: Record) -> Iterator[Block]:
    wanted = {State.VERIFIED} if call.tier is Tier.EXTERNAL else READABLE
    if premise.state not in wanted:
        yield Block.G3_PREMISE_STATE
    if not premise.valid.covers(call.now):
        yield Block.G3_PREMISE_EXPIRED
    if any(above.state in _UNSTABLE for above in ancestors(premise, call.known)):
        yield Block.G3_PREMISE_UNSTABLE
    if premise.id not in call.within:
        yield Block.G6_PREMISE_NOT_IN_SNAPSHOT
    mine = authority(premise, call.known)
    if any(authority(rival, call.known) == mine for rival in call.waiting.get(premise.id, ())):
        yield Block.G7_CONTESTED
    if call.sink is not None and WIDTH[premise.visibility] < WIDTH[call.sink]:
        yield Block.G8_SINK_SCOPE
