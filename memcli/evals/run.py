"""Cases asked of memories: each on the paths that an agent uses, judged once and timed as often as is wanted.

Every operation runs once under `tracemalloc`, which slows it and is not timed, and then `repeat` times against the
clock. Before the first of its kind it runs once for nothing, so that what a process loads once is in no figure.
"""

import json
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from memcli.bring import extract_sources, import_files
from memcli.errors import Ambiguous, NotFound, UsageError
from memcli.evals.answers import Answerer
from memcli.evals.cases import Case
from memcli.evals.judge import judge
from memcli.evals.outcome import Outcome, References, Spent, Task
from memcli.extract import RULES_READER
from memcli.facts import Actor, Fact, FactQuery, Scalar
from memcli.recall import CLOSING, OPENING, PREFACE, Context, context, recall
from memcli.record import record
from memcli.terms import ActorKind, Channel

if TYPE_CHECKING:
    from memcli.store import Store

Result = TypeVar("Result")

IMPORTER = Actor(name="eval", kind=ActorKind.IMPORTER, channel=Channel.IMPORT)
EXTRACTOR = Actor(name="eval", kind=ActorKind.EXTRACTOR, channel=Channel.EXTRACT)

_ID_OF_LINE = len("- [") + 8
"""How many characters of a line of the block are its mark and the fact's id, in which any number may stand."""


@record
class Defaults:
    """What holds for a case that says nothing else: facts, tokens of the block (None is no bound), timed runs."""

    k: int = 10
    budget_tokens: int | None = None
    repeat: int = 1


@record
class Tools:
    """What a run needs from outside.

    Args:
        open: Opens a memory file to look at, by path and scope; None takes that of the run.
        scratch: Makes an empty memory for a scope and opens it; it is gone afterwards.
        counter: Returns what counts tokens in an encoding.
        clock_ns: Nanoseconds that only go on.
    """

    open: "Callable[[str | None, str | None], Store]"
    scratch: "Callable[[str | None], AbstractContextManager[Store]]"
    counter: Callable[[str], Callable[[str], int]]
    clock_ns: Callable[[], int] = time.perf_counter_ns


def run_cases(
    cases: Sequence[Case],
    tools: Tools,
    defaults: Defaults,
    *,
    answerer: Answerer | None = None,
    db: str | None = None,
    progress: Callable[[str, int], None] = lambda _path, _count: None,
) -> tuple[Outcome, ...]:
    """Return what became of each case, in order.

    Args:
        answerer: Is asked each question twice; None judges the block itself.
        db: A memory file that is asked every case; None asks what the case names, else that of the run.
        progress: Is told the file of a case and how many cases are done.

    Raises:
        UsageError: A case brings a memory of its own, and `db` names another.
        Unreadable: A transcript or an answer cannot be read, or a case asks what cannot be asked.
        MemError: A memory file cannot be opened, or was changed behind its back.
    """
    if db is not None:
        _check_may_compare(cases)
    outcomes: list[Outcome] = []
    with _Desk(tools, db) as desk:
        for number, case in enumerate(cases, 1):
            began = tools.clock_ns()
            store, adapted = desk.memory(case, case.repeat or defaults.repeat)
            asked = _Asked(case=case, store=store, tools=tools, defaults=defaults, watch=desk.watch())
            outcome = asked.outcome(adapted, answerer)
            outcomes.append(replace(outcome, seconds=(tools.clock_ns() - began) / 1e9))
            progress(case.path, number)
    return tuple(outcomes)


def _check_may_compare(cases: Sequence[Case]) -> None:
    for case in cases:
        if case.transcript is not None or case.db is not None:
            named = "transcript" if case.db is None else "db"
            raise UsageError(
                f"case {case.id} brings its own {named}, and two memory files are to be compared",
                hint=f"leave {named} out of the case; make a file of a transcript with `mem import` and `mem extract`",
            )


class _Desk:
    """Keeps the memory that the newest case was asked of open, for the next one that asks the same."""

    def __init__(self, tools: Tools, db: str | None) -> None:
        self._tools = tools
        self._db = db
        self._stack = ExitStack()
        self._warm: set[str] = set()
        self._key: tuple[object, ...] | None = None
        self._kept: tuple[Store, Spent | None] | None = None

    def __enter__(self) -> "_Desk":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def watch(self) -> "_Watch":
        """Return what notes the operations of one case; it knows what ran in this process before."""
        return _Watch(self._tools.clock_ns, self._warm)

    def memory(self, case: Case, repeat: int) -> "tuple[Store, Spent | None]":
        """Return the memory that a case is asked of, and what making it took where it is made from a transcript."""
        key = (case.db, case.transcript, case.scope, repeat if case.transcript is not None else None)
        if self._kept is None or key != self._key:
            self._stack.close()
            self._kept, self._key = None, None
            self._kept, self._key = self._opened(case, repeat), key
        return self._kept

    def _opened(self, case: Case, repeat: int) -> "tuple[Store, Spent | None]":
        try:
            if case.transcript is not None:
                return self._adapted(case.transcript, case.scope, repeat)
            return self._stack.enter_context(self._tools.open(self._db or case.db, case.scope)), None
        except UsageError as problem:
            if case.scope is None:
                raise
            raise case.unreadable(problem.message, hint=problem.hint) from None

    def _adapted(self, transcript: str, scope: str | None, repeat: int) -> "tuple[Store, Spent]":
        watch = self.watch()
        if "import" not in self._warm:
            self._made(transcript, scope, watch.warmed)
            self._stack.close()
        store = self._made(transcript, scope, watch.traced)
        for _ in range(repeat):
            self._stack.close()
            store = self._made(transcript, scope, watch.timed)
        return store, watch.spent()

    def _made(self, transcript: str, scope: str | None, run: Callable[[str, Callable[[], None]], None]) -> "Store":
        store = self._stack.enter_context(self._tools.scratch(scope))
        run("import", partial(_take, store, transcript))
        run("extract", partial(_read, store))
        return store


def _take(store: "Store", transcript: str) -> None:
    done = import_files(store, IMPORTER, None, [transcript], format_="auto", encoding=None, dry_run=False)
    if done.problem is not None:
        raise done.problem


def _read(store: "Store") -> None:
    extract_sources(store, EXTRACTOR, None, (), reader=RULES_READER, dry_run=False)


class _Watch:
    """Notes what operations take.

    Args:
        warm: The operations that ran before, in whatever case.
    """

    def __init__(self, clock_ns: Callable[[], int], warm: set[str]) -> None:
        self._clock_ns = clock_ns
        self._warm = warm
        self._runs: dict[str, list[int]] = defaultdict(list)
        self._peaks: dict[str, int] = {}

    def spent(self) -> Spent:
        """Return what was noted."""
        return Spent(runs_ns={name: tuple(runs) for name, runs in self._runs.items()}, peak_bytes=dict(self._peaks))

    def warmed(self, name: str, work: Callable[[], object]) -> None:
        """Run an operation for nothing, unless one like it ran before."""
        if name not in self._warm:
            self._warm.add(name)
            work()

    def timed(self, name: str, work: Callable[[], object]) -> None:
        """Run an operation against the clock."""
        began = self._clock_ns()
        work()
        self._runs[name].append(self._clock_ns() - began)

    def traced(self, name: str, work: Callable[[], Result]) -> Result:
        """Return what an operation gives, and note the most memory that Python held for it."""
        already = tracemalloc.is_tracing()
        if not already:
            tracemalloc.start()
        try:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            result = work()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            if not already:
                tracemalloc.stop()
        self._peaks[name] = max(0, peak - before)
        return result


@record
class _Asked:
    """One case that is asked of one memory."""

    case: Case
    store: "Store"
    tools: Tools
    defaults: Defaults
    watch: _Watch

    def outcome(self, adapted: Spent | None, answerer: Answerer | None) -> Outcome:
        """Return what became of the case; how long it took is for the caller to say."""
        case, store = self.case, self.store
        heard: dict[str, tuple[str, ...]] = {}
        facts: list[Fact] = []
        block: Context | None = None
        if case.query is not None:
            found, block = self._ask(case.query)
            heard |= {"recall": _texts(found), "block": (*_texts(block.facts), *_lines(block.text))}
            facts += block.facts
        if case.asks_a_slot:
            held = self._watched("slot", partial(_slot, store, case))
            heard["slot"] = _texts(held)
            facts += held
        references = _references(store, case, facts)
        return Outcome(
            case=case,
            db=None if case.transcript is not None else str(store.path),
            judged=judge(case, heard, unreached=() if references is None else references.unreached),
            returned=tuple(dict.fromkeys(fact.id for fact in facts)),
            tokens=None if block is None else block.tokens,
            encoding=None if block is None else block.encoding,
            references=references,
            adapted=adapted,
            spent=self.watch.spent(),
            task=None if block is None else _task(case, block.text, heard["block"], answerer),
            seconds=0.0,
        )

    def _watched(self, name: str, work: Callable[[], Result]) -> Result:
        self.watch.warmed(name, work)
        result = self.watch.traced(name, work)
        for _ in range(self.case.repeat or self.defaults.repeat):
            self.watch.timed(name, work)
        return result

    def _ask(self, query: str) -> tuple[list[Fact], Context]:
        """Return the facts that recall gives for a question, and the block."""
        case, store = self.case, self.store
        k = case.k or self.defaults.k
        budget = self.defaults.budget_tokens if case.budget_tokens is None else case.budget_tokens
        encoding = store.settings["encoding"]
        count = self.tools.counter(encoding)
        now = store.now()  # the same for every run, so that all of them do the same
        try:
            found = self._watched("recall", lambda: recall(store, query, k=k, now=now))
        except UsageError as problem:
            raise case.unreadable(problem.message, hint=problem.hint) from None
        block = self._watched(
            "context",
            lambda: context(store, query, k=k, budget_tokens=budget, count=count, encoding=encoding, now=now),
        )
        return [item.fact for item in found], block


def _slot(store: "Store", case: Case) -> list[Fact]:
    query = FactQuery(subject=case.subject, valid_at=case.valid_at, known_at=case.known_at)
    wanted = (case.attribute or "").casefold()
    return [fact for fact in store.facts(query) if (fact.attribute or "").casefold() == wanted]


def _texts(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return what facts say, in words and as a value."""
    return tuple(text for fact in facts for text in (fact.text, _spoken(fact.value)) if text)


def _spoken(value: Scalar) -> str:
    """Return a value as a person would write it; a fact without one says nothing here."""
    if value is None or isinstance(value, str):
        return value or ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else json.dumps(value)


def _lines(block: str) -> tuple[str, ...]:
    """Return the lines of a block as far as they come from the memory: its frame is the same for every question."""
    frame = {OPENING, PREFACE, CLOSING}
    return tuple(line[_ID_OF_LINE:] for line in block.splitlines() if line not in frame)


def _task(case: Case, block: str, heard: Sequence[str], answerer: Answerer | None) -> Task | None:
    """Return how the task goes with the block and without, or None where no text says how it should go."""
    if case.query is None or not (case.expect or case.control):
        return None
    if answerer is None:
        given = judge(case, {"block": heard}, evidence=False)
        return Task(given=given, bare=judge(case, {"block": ()}, evidence=False))
    answer = answerer.answer(case.id, case.query, block)
    bare = answerer.answer(case.id, case.query, "")
    return Task(
        given=judge(case, {"answer": [answer]}, evidence=False),
        bare=judge(case, {"answer": [bare]}, evidence=False),
        answer=answer,
        bare_answer=bare,
    )


def _references(store: "Store", case: Case, facts: Sequence[Fact]) -> References | None:
    if not case.evidence:
        return None
    cited = (item.message for fact in facts for item in fact.provenance if item.message is not None)
    return References(wanted=tuple(dict.fromkeys(_wanted(store, case))), cited=tuple(dict.fromkeys(cited)))


def _wanted(store: "Store", case: Case) -> Iterator[str]:
    """Yield the ids of the messages that a case wants."""
    places: list[str] = []
    if any(isinstance(item, int) for item in case.evidence):
        places = [message.id for source in store.sources() for message in store.messages(source.id)]
    for item in case.evidence:
        if isinstance(item, int):
            if item >= len(places):
                why = f"evidence holds {item}, and the transcript has {len(places):,} messages"
                raise case.unreadable(why, hint=f"give places from 0 to {max(len(places) - 1, 0)}")
            yield places[item]
        else:
            yield _message(store, case, item)


def _message(store: "Store", case: Case, name: str) -> str:
    """Return the id of a message, or what was written where the file has none: then nothing can reach it."""
    try:
        return store.message(name).id
    except Ambiguous as problem:
        raise case.unreadable(problem.message, hint=problem.hint) from None
    except NotFound:
        return name
