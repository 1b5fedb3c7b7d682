"""What the commands of `mem budget` do between options and screens; it can run in processes of its own."""

import dataclasses
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from memcli.budget.findings import CODES, find, most_over
from memcli.budget.honest import Tally
from memcli.budget.messages import BudgetMessage, ToolCalls
from memcli.budget.outcome import BudgetFinding, Simulation
from memcli.budget.public import BlockSpec, blocks_from
from memcli.budget.run import POLICIES, run
from memcli.budget.shrinking import GivenFact
from memcli.budget_input import Transcript, one_of_them, transcripts
from memcli.errors import MemError, NotFound, Unreadable, UsageError
from memcli.facts import FactQuery, Json, Provenance
from memcli.record import record
from memcli.tokens import Counter, count_many, counter, counter_for_model

BUDGET_ENCODING = "cl100k_base"
"""What LlamaIndex counts with where nobody says otherwise."""


@record
class Wanted:
    """All that a run needs to know besides the transcript; plain data, so that it can go to another process.

    Args:
        settings: What was given, under LlamaIndex's names.
        config: The tables of the blocks.
        folder: What the files that blocks name are relative to.
        facts: The readable facts of a memory file, or None.
        at: Look after so many messages; None means all.
    """

    policy: str
    settings: Mapping[str, Json]
    encoding: str
    config: Mapping[str, Any]
    folder: str
    facts: tuple[GivenFact, ...] | None
    at: int | None
    writes: str
    tool_calls: ToolCalls


@record
class Ran:
    """One transcript and what became of it."""

    transcript: Transcript
    simulation: Simulation


def encoding_named(encoding: str | None, model: str | None) -> str:
    """Return the name of what counts, after making sure that it is at hand.

    Raises:
        UsageError: Both were given.
        NoVocabulary: It is unknown, or not at hand.
    """
    if encoding is not None and model is not None:
        raise UsageError("--encoding and --model exclude each other", hint="leave one of them out")
    return (counter_for_model(model) if model is not None else counter(encoding or BUDGET_ENCODING)).name


def known_policy(name: str) -> str:
    """Return the name of a policy.

    Raises:
        UsageError: There is none of that name.
    """
    if name not in POLICIES:
        raise UsageError(f"there is no policy called {name or 'nothing'}", hint=f"take one of {', '.join(POLICIES)}")
    return name


def with_facts(config: Mapping[str, Any], *, named: bool) -> Mapping[str, Any]:
    """Return the blocks with one for the facts of a memory file, where one was named and no block asks for them."""
    tables = config.get("blocks", [])
    if not named or not isinstance(tables, list):
        return config
    asks = any(isinstance(table, Mapping) and table.get("type") == "facts" and "facts" not in table for table in tables)
    return config if asks else {**config, "blocks": [*tables, {"type": "facts", "name": "facts", "priority": 1}]}


def readable_facts(db: str, scope: str | None) -> tuple[GivenFact, ...]:
    """Return the facts of a memory file that may reach a prompt, pinned ones as the most important.

    Raises:
        MemError: The file cannot be used.
    """
    from memcli.cli.door import store

    with store(db, scope) as mem:
        return tuple(
            GivenFact(text=fact.text, importance=1.0 if fact.pinned else fact.importance)
            for fact in mem.facts(FactQuery())
        )


def places_of(fact: str, db: str | None, scope: str | None, transcript: Transcript) -> tuple[str, list[int]]:
    """Return what a fact says, and the messages of the transcript that its evidence stands in.

    Raises:
        NotFound: There is no such fact, or none of its evidence is in this transcript.
        UsageError: No memory file was named.
        MemError: The memory file cannot be used.
    """
    from memcli.cli.door import store

    if db is None:
        raise UsageError("a fact is looked up in a memory file, and none was named", hint="name it with --db FILE")
    with store(db, scope) as mem:
        known = mem.get(fact)
    places = [place for proof in known.provenance if (place := _said_at(proof, transcript)) is not None]
    if not places:
        raise NotFound(
            f"no evidence of that fact stands in {transcript.name}",
            hint=f"see where it came from with `mem why {fact}`",
        )
    return f"fact {known.id}: {known.text}", sorted(set(places))


def _said_at(proof: Provenance, transcript: Transcript) -> int | None:
    """Return the message that holds the quote: the one of that number where it does, else the first that does."""
    if not proof.quote:
        return None
    number = proof.index
    if number is not None and number < len(transcript.messages) and proof.quote in transcript.words(number):
        return number
    return next((at for at in range(len(transcript.messages)) if proof.quote in transcript.words(at)), None)


def specs_of(wanted: Wanted) -> tuple[BlockSpec, ...]:
    """Return the blocks, made anew.

    Raises:
        MemError: One of them cannot be made, or its file cannot be read.
    """

    def read(name: str) -> str:
        path = Path(wanted.folder) / name
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) and problem.strerror else "it is no UTF-8 text"
            raise Unreadable(str(path), why.lower(), hint="a block names this file; check the path") from problem

    return blocks_from(wanted.config, read=read, facts=wanted.facts)


# --- running ---


@record
class Counting:
    """What counts, one text at a time and many; texts that were counted once are remembered."""

    one: Tally

    @classmethod
    def of(cls, wanted: Wanted) -> "Counting":
        """Return what counts for these options."""
        return cls.for_policy(wanted.encoding, wanted.policy)

    @classmethod
    def for_policy(cls, encoding: str, policy: str) -> "Counting":
        """Return what counts: LlamaIndex takes special tokens in a text for what they name, others for text."""
        chosen = counter(encoding, special=policy in ("llamaindex", "buffer"))
        return cls(one=Tally(chosen, partial(_many, counting=chosen)))

    def many(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text."""
        return self.one.all(texts)


def _many(texts: Sequence[str], *, counting: Counter) -> list[int]:
    return count_many(texts, counting)


def simulated(transcript: Transcript, wanted: Wanted, counting: Counting | None = None) -> Simulation:
    """Return the run over a transcript with its findings.

    Raises:
        MemError: A setting, a block or the encoding does not fit; or a class of a block raised.
    """
    counting = counting or Counting.of(wanted)
    specs = specs_of(wanted)
    under = partial(
        run,
        transcript.messages,
        policy=wanted.policy,
        count=counting.one,
        count_many=counting.many,
        encoding=wanted.encoding,
        blocks=specs,
        ids=transcript.ids,
        at=wanted.at,
        writes=wanted.writes,
        times=transcript.times,
    )
    made = under(settings=wanted.settings)
    # Somebody's own class may ask a model, which is not for us to ask again.
    own = any(spec.kind == "class" for spec in specs)
    seen = transcript.messages[: wanted.at]
    findings = find(
        made,
        messages=seen,
        count=counting.one,
        times=transcript.times[: wanted.at],
        max_facts={spec.name: most for spec in specs if isinstance(most := spec.options.get("max_facts", 50), int)},
        facts=_facts_held(made, specs),
        over_at=None if own else lambda limit: most_over(under(settings={**wanted.settings, "token_limit": limit})),
    )
    return dataclasses.replace(made, findings=_with_refusals(findings, transcript, made))


def ends(messages: Sequence[BudgetMessage], writes: str) -> tuple[int, ...]:
    """Return how many messages had been written after each write."""
    places = range(1, len(messages) + 1)
    if writes == "message":
        return tuple(places)
    users = [at for at, message in enumerate(messages) if message.role == "user"]
    return (*users[1:], len(messages)) if messages else ()


def _facts_held(made: Simulation, specs: Sequence[BlockSpec]) -> dict[str, int]:
    """Return how many facts stand in the prompt from each block whose model writes them between tags."""
    tagged = {spec.name for spec in specs if spec.kind == "fact"}
    return {piece.name: piece.text.count("<fact>") for piece in made.prompt if piece.name in tagged}


def _with_refusals(
    findings: tuple[BudgetFinding, ...], transcript: Transcript, made: Simulation
) -> tuple[BudgetFinding, ...]:
    """Return the findings with one for the messages that LlamaIndex would not take, where there is none yet."""
    code = "unsupported-content"
    raised = sorted(at for at in transcript.raised if at < len(made.fates))
    asks = made.policy in ("llamaindex", "buffer")
    if not raised or not asks or any(item.code == code for item in findings):
        return findings
    often = f", the first of {len(raised):,} such messages" if len(raised) > 1 else ""
    refused = BudgetFinding(
        code=code,
        severity=CODES[code].severity,
        turn=max(0, sum(fate.role == "user" for fate in made.fates[: raised[0] + 1]) - 1),
        message=raised[0],
        tokens=None,
        text=f"LlamaIndex refuses message {raised[0]}{often}: {transcript.raised[raised[0]]}",
        remedy="write it as OpenAI's messages are; here it counts as it was read",
    )
    return (*findings, refused)


@record
class Unread:
    """A file that could not be read. Plain data, since an error with a path of its own cannot come back from a process.

    Args:
        fatal: The options do not fit, whatever the file, and this class of error says so.
    """

    message: str
    hint: str | None
    fatal: type[MemError] | None = None

    def error(self) -> MemError:
        """Return the error."""
        kind = self.fatal or Unreadable
        made = kind.__new__(kind)
        MemError.__init__(made, self.message, hint=self.hint)
        return made


def run_file(path: str, wanted: Wanted, conversation: int | None = None) -> tuple[list[Ran], Unread | None]:
    """Return what became of each transcript of a file, or why there is nothing."""
    with without_collecting():
        return _run_file(path, wanted, conversation)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Put off the search for circles of garbage: a run makes none, and all its messages would be searched for them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _run_file(path: str, wanted: Wanted, conversation: int | None) -> tuple[list[Ran], Unread | None]:
    try:
        found = transcripts(path, tool_calls=wanted.tool_calls)
    except Unreadable as problem:
        return [], Unread(message=problem.message, hint=problem.hint)
    try:
        found = found if conversation is None else (one_of_them(found, conversation),)
        counting = Counting.of(wanted)
        return [Ran(transcript=one, simulation=simulated(one, wanted, counting)) for one in found], None
    except MemError as problem:
        return [], Unread(message=problem.message, hint=problem.hint, fatal=type(problem))


def run_files(
    paths: Sequence[str], wanted: Wanted, *, conversation: int | None, jobs: int, told: Callable[[int], None]
) -> tuple[list[Ran], list[Unread]]:
    """Return what became of all transcripts in their order, and what is wrong with each file that was not read.

    Args:
        conversation: Of a file with several: which one.
        jobs: How many processes work at once.
        told: Is told after each file how many are done.

    Raises:
        MemError: The options do not fit.
    """
    ran: list[Ran] = []
    unread: list[Unread] = []
    for done, (found, problem) in enumerate(_each(paths, wanted, conversation, jobs), start=1):
        if problem is not None and problem.fatal is not None:
            raise problem.error()
        ran += found
        unread += [] if problem is None else [problem]
        told(done)
    return ran, unread


def _each(
    paths: Sequence[str], wanted: Wanted, conversation: int | None, jobs: int
) -> Iterator[tuple[list[Ran], Unread | None]]:
    if jobs < 2 or len(paths) < 2 or "-" in paths:
        for path in paths:
            yield run_file(path, wanted, conversation)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fresh process: a forked one would inherit threads that count.
    with ProcessPoolExecutor(min(jobs, len(paths)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(run_file, wanted=wanted, conversation=conversation), paths)
