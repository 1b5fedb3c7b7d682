"""The checks of a staged fact, in their order; the first that it does not pass names its verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from memcli.keys import normalise
from memcli.terms import READABLE, RULINGS, Code, Ruling, State, Tier, TxStatus, Visibility
from memcli.transactions.scene import DEAD, WIDTH, Failure, Record, Scene, ancestors, authority, nothing_new
from memcli.tx import Answer

LOW_CONFIDENCE = 0.6
TRUSTED = 0.9
"""From this effective authority on, a source's own doubt holds nothing."""

WEAK = 0.5
FEWEST_SOURCES = 2
SHINGLE_WORDS = 5
MOST_SHARED = 0.5
"""The share of a text's shingles from which on it repeats another."""

About = tuple[str, ...] | None
"""What stands in the way, which may be nothing that has a name; None means that the rule is kept."""

ENDED: Mapping[Ruling, State] = {Ruling.HOLD: State.DISPUTED, Ruling.REFUSE: State.REVOKED}


class Bench:
    """One run of the checks over a scene. What one staged fact's verdict does is there for those after it."""

    def __init__(self, scene: Scene, *, partial: bool) -> None:
        self.scene = scene
        self.partial = partial
        self.known = scene.all()
        self.states = {name: item.state for name, item in self.known.items()}
        self._shingles = [(item, shingles(item.texts)) for item in scene.privates]

    def settle(self, item: Record, ruling: Ruling) -> None:
        """Let a verdict count for what is checked after it."""
        if self.states[item.id] is not State.TENTATIVE:
            return
        if ruling is not Ruling.PASS:
            self.states[item.id] = ENDED[ruling]
            return
        self.states[item.id] = State.VERIFIED if self.scene.tier is Tier.EXTERNAL else State.ACCEPTED
        for rival in self.rivals(item) if self.partial else ():
            self.states[rival.id] = State.SUPERSEDED

    def authority(self, item: Record) -> float:
        """Return what the word of a record counts for."""
        return authority(item, self.known)

    def rivals(self, item: Record) -> list[Record]:
        """Return readable facts that hold another value in the slot at some same moment."""
        found = (self.known[name] for name in self.scene.rivals.get(item.id, ()))
        return [rival for rival in found if self.states[rival.id] in READABLE and rival.valid.overlaps(item.valid)]

    def contested(self, item: Record) -> list[Record]:
        """Return rivals that the fact does not supersede by its source or by a person's word."""
        named = self.scene.named.get(item.id, ())
        return [rival for rival in self.rivals(item) if rival.id not in named and not rival.origins & item.origins]

    def agrees(self, item: Record) -> bool:
        """Return whether a readable fact says the same at some same moment: then nothing comes back, it is believed."""
        found = (self.known[name] for name in self.scene.equals.get(item.id, ()))
        return any(self.states[each.id] in READABLE and each.valid.overlaps(item.valid) for each in found)

    def above(self, item: Record, states: Iterable[State]) -> About:
        """Return ancestors that are in one of these states by now."""
        wanted = frozenset(states)
        return _names(each for each in ancestors(item, self.known) if self.states[each.id] in wanted)

    def repeats(self, item: Record) -> About:
        """Return private facts half or more of whose wording stands in the text of one that others may see."""
        own = [cut for cut in (shingles((text,)) for text in item.texts) if cut]
        return _names(
            private
            for private, theirs in self._shingles
            if private.id != item.id
            and not (item.visibility is Visibility.PRIVATE and item.owner == private.owner)
            and any(len(cut & theirs) >= MOST_SHARED * len(cut) for cut in own)
        )


def _names(found: Iterable[Record]) -> About:
    return tuple(item.id for item in found) or None


def _failed(failed: bool) -> About:
    return () if failed else None


def shingles(texts: Iterable[str]) -> frozenset[tuple[str, ...]]:
    """Return every run of five words in texts, as they are compared; a shorter text has none."""
    found: set[tuple[str, ...]] = set()
    for text in texts:
        words = normalise(text).split()
        found.update(tuple(words[start : start + SHINGLE_WORDS]) for start in range(len(words) - SHINGLE_WORDS + 1))
    return frozenset(found)


# -------------------------------------------------------------------- the rules


def _no_evidence(_: Bench, item: Record) -> About:
    return _failed(not item.grounds or not all(ground.holds for ground in item.grounds))


def _low_confidence(bench: Bench, item: Record) -> About:
    low = item.confidence is not None and item.confidence < LOW_CONFIDENCE
    return _failed(low and bench.authority(item) < TRUSTED)


def _uncorroborated(bench: Bench, item: Record) -> About:
    sources = {ground.source for ground in item.grounds}
    for name in bench.scene.equals.get(item.id, ()):
        sources |= {ground.source for ground in bench.known[name].grounds}
    weak = bench.scene.tier is Tier.EXTERNAL and bench.authority(item) < WEAK
    return _failed(weak and len(sources) < FEWEST_SOURCES)


def _future(bench: Bench, item: Record) -> About:
    return _failed(item.valid.start is not None and bench.scene.now < item.valid.start)


def _expired(bench: Bench, item: Record) -> About:
    return _failed(item.valid.end is not None and item.valid.end <= bench.scene.now)


def _widens(bench: Bench, item: Record) -> About:
    mine = WIDTH[item.visibility]
    return _names(each for each in ancestors(item, bench.known) if WIDTH[each.visibility] < mine)


def _undeclared(bench: Bench, item: Record) -> About:
    declared = {each.id for each in ancestors(item, bench.known)} | {item.id}
    narrower = (bench.known[name] for name in bench.scene.read if name in bench.known and name not in declared)
    return _names(each for each in narrower if WIDTH[each.visibility] < WIDTH[item.visibility])


def _not_writer(bench: Bench, item: Record) -> About:
    if item.slot is None:
        return None
    return _names(
        each
        for each in bench.scene.privates
        if each.slot == item.slot
        and each.owner != bench.scene.agent
        and bench.states.get(each.id, each.state) in READABLE
    )


def _tombstoned(bench: Bench, item: Record) -> About:
    return _failed(item.id in bench.scene.stopped or item.state is State.REJECTED)


def _two_values(bench: Bench, item: Record) -> About:
    if item.slot is None:
        return None
    return _names(
        other
        for other in bench.scene.staged
        if other.slot == item.slot
        and other.slot_key != item.slot_key
        and other.id != item.id
        and other.valid.overlaps(item.valid)
    )


def _late(bench: Bench, item: Record) -> About:
    since = bench.scene.snapshot_at
    return _names(
        rival for rival in bench.rivals(item) if rival.readable_since is not None and rival.readable_since > since
    )


def _retried(bench: Bench, item: Record) -> About:
    held = bench.scene.retried.get(item.id)
    return _failed(held is not None and not bench.agrees(item) and nothing_new(item.grounds, held))


def _echo(bench: Bench, item: Record) -> About:
    held = bench.scene.withdrawn.get(item.id)
    return _failed(held is not None and not bench.agrees(item) and nothing_new(item.grounds, held))


def _lower(bench: Bench, item: Record) -> About:
    mine = bench.authority(item)
    return _names(rival for rival in bench.contested(item) if bench.authority(rival) > mine)


def _equal(bench: Bench, item: Record) -> About:
    mine = bench.authority(item)
    return _names(rival for rival in bench.contested(item) if bench.authority(rival) == mine)


def _on_dead(bench: Bench, item: Record) -> About:
    return bench.above(item, DEAD)


def _on_disputed(bench: Bench, item: Record) -> About:
    return bench.above(item, {State.DISPUTED})


def _on_unsettled(bench: Bench, item: Record) -> About:
    return bench.above(item, {State.TENTATIVE})


def _on_stale(bench: Bench, item: Record) -> About:
    return bench.above(item, {State.SUPERSEDED})


RULES: Sequence[tuple[Code, Callable[[Bench, Record], About]]] = (
    (Code.E_NO_EVIDENCE, _no_evidence),
    (Code.E_LOW_CONF, _low_confidence),
    (Code.E_UNCORROBORATED, _uncorroborated),
    (Code.V_FUTURE, _future),
    (Code.V_EXPIRED, _expired),
    (Code.P_SCOPE_WIDEN, _widens),
    (Code.P_UNDECLARED_READ, _undeclared),
    (Code.P_CONTENT_OVERLAP, Bench.repeats),
    (Code.P_NOT_WRITER, _not_writer),
    (Code.C_TOMBSTONED, _tombstoned),
    (Code.C_INTRA_TX, _two_values),
    (Code.C_STALE_LATE_WRITE, _late),
    (Code.C_RETRY_NO_NEW_EVIDENCE, _retried),
    (Code.C_ECHO, _echo),
    (Code.C_LOWER_AUTHORITY, _lower),
    (Code.C_EQUAL_AUTHORITY, _equal),
    (Code.D_REVOKED_ANCESTOR, _on_dead),
    (Code.D_DISPUTED_ANCESTOR, _on_disputed),
    (Code.D_UNSETTLED_ANCESTOR, _on_unsettled),
    (Code.D_STALE_ANCESTOR, _on_stale),
)
"""Every rule in its order, with what keeps a fact from passing it."""


# -------------------------------------------------------------------- the verdicts


def parents_first(staged: Sequence[Record]) -> list[Record]:
    """Return staged facts so that each comes after those it was built from, otherwise in the order given."""
    left, placed = list(staged), set[str]()
    names = {item.id for item in staged}
    ordered: list[Record] = []
    while left:
        ready = next((item for item in left if not (set(item.parents) & names) - placed), left[0])
        left.remove(ready)
        placed.add(ready.id)
        ordered.append(ready)
    return ordered


def judge(
    scene: Scene, answers: Mapping[str, Answer] | None = None, *, partial: bool = False
) -> dict[str, tuple[Failure, ...]]:
    """Return the rules that each staged fact does not pass, parents first; none means that it passes.

    Args:
        partial: Each fact is settled by itself, so that what one takes the place of is over for those after it. An
            atomic commit takes place at one moment, and only what becomes of parents counts for their children.
        answers: What a verifier said, by fact; it is heard of facts that pass everything else, so that it can make a
            verdict stricter and never milder.
    """
    bench = Bench(scene, partial=partial)
    found: dict[str, tuple[Failure, ...]] = {}
    for item in parents_first(scene.staged):
        failures = [
            Failure(code=code, ruling=RULINGS[code], about=about)
            for code, rule in RULES
            if (about := rule(bench, item)) is not None
        ]
        if not failures and item.state in DEAD:
            # It fell before the commit, whatever it fell with: a final state never changes.
            failures.append(_fallen(item))
        said = None if answers is None or failures else answers.get(item.id)
        if said is not None and said.ruling is not Ruling.PASS:
            failures.append(Failure(code=Code.X_VERIFIER, ruling=said.ruling))
        bench.settle(item, ruling_of(failures))
        found[item.id] = tuple(failures)
    return found


def _fallen(item: Record) -> Failure:
    code = Code.D_REVOKED_ANCESTOR
    return Failure(code=code, ruling=RULINGS[code], about=(item.id,))


def ruling_of(failures: Sequence[Failure]) -> Ruling:
    """Return what becomes of a fact with these failures: the first one says."""
    return failures[0].ruling if failures else Ruling.PASS


def code_of(failures: Sequence[Failure]) -> Code:
    """Return the name of the verdict."""
    return failures[0].code if failures else Code.PASS


def outcome(rulings: Iterable[Ruling], *, partial: bool) -> TxStatus:
    """Return what becomes of a transaction with these rulings.

    Atomic: one refusal aborts it, otherwise one hold holds it. Partial: it is committed where anything passed or
    nothing was staged, held where nothing passed and something waits, and aborted where everything was refused.
    """
    seen = set(rulings)
    if not partial:
        worst = Ruling.REFUSE if Ruling.REFUSE in seen else Ruling.HOLD if Ruling.HOLD in seen else Ruling.PASS
        return {Ruling.REFUSE: TxStatus.ABORTED, Ruling.HOLD: TxStatus.HELD, Ruling.PASS: TxStatus.COMMITTED}[worst]
    if not seen or Ruling.PASS in seen:
        return TxStatus.COMMITTED
    return TxStatus.HELD if Ruling.HOLD in seen else TxStatus.ABORTED
