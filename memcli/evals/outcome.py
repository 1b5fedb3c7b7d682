"""What became of a case: the verdict, what came back, and what it took."""

from collections.abc import Mapping

from memcli.evals.cases import Case
from memcli.evals.judge import Judged
from memcli.record import record


@record
class References:
    """Which messages a case wants, and which the facts that came back cite.

    Args:
        wanted: Ids of the messages of the evidence; one that is not in the file stays as it was written.
        cited: Ids of the messages that the facts that came back came from.
    """

    wanted: tuple[str, ...]
    cited: tuple[str, ...]

    @property
    def reached(self) -> int:
        """Return how many of the wanted messages are cited."""
        return len(set(self.wanted) & set(self.cited))

    @property
    def unreached(self) -> tuple[str, ...]:
        """Return the wanted messages that nothing cites."""
        return tuple(name for name in self.wanted if name not in self.cited)


@record
class Spent:
    """What operations took: nanoseconds of every timed run, and the peak of Python's memory in bytes of one more."""

    runs_ns: Mapping[str, tuple[int, ...]]
    peak_bytes: Mapping[str, int]


@record
class Task:
    """The question put with the block of the memory, and with an empty one.

    Args:
        given: How what came of the block was judged.
        bare: How what came of an empty block was judged.
        answer: What the answerer said with the block; None where the block itself was judged.
        bare_answer: What it said without.
    """

    given: Judged
    bare: Judged
    answer: str | None = None
    bare_answer: str | None = None


@record
class Outcome:
    """What became of one case.

    Args:
        db: The memory file that was asked; None where it was made from a transcript.
        returned: Ids of the facts of the block and of the slot, in their order.
        tokens: Tokens of the block; None where none was asked for.
        encoding: What they were counted in.
        references: None where the case names no evidence.
        adapted: What making the memory from a transcript took; cases on one transcript share it.
        spent: What asking took.
        task: None where there is no question, or no text to judge an answer by.
        seconds: How long the case took in all, every run included.
    """

    case: Case
    db: str | None
    judged: Judged
    returned: tuple[str, ...]
    tokens: int | None
    encoding: str | None
    references: References | None
    adapted: Spent | None
    spent: Spent
    task: Task | None
    seconds: float
