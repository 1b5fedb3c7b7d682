"""Recall by how common a word is, in process: `python tests/benchmarks/bench_recall.py [FACTS] [ROUNDS] [FILE]`.

A file of FACTS made facts is written through the writer, or read where FILE is there already, and each query is asked
ROUNDS times of one open store. Printed are the median and the 95th percentile by the clock, in milliseconds, and how
SQLite goes about the questions behind it.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli import store as memory  # noqa: E402 - the checkout has to be on the path first
from memcli.facts import Actor, Claim  # noqa: E402
from memcli.recall import context, recall  # noqa: E402
from memcli.terms import ActorKind, Channel  # noqa: E402
from tests.benchmarks.kit import once_s  # noqa: E402

FACTS = 30_000
ROUNDS = 51
BATCH = 10_000
VOCABULARY = 20_000
SYLLABLES = [first + second for first in "bdklmnrs" for second in "aeio"]
ANNA = Actor(name="anna", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
QUERIES = {
    "rare word (10 facts)": "quokka",
    "absent word": "zyzzyva",
    "middling word (1 %)": "harbour",
    "common word (10 %)": "garden",
    "very common word (50 %)": "person",
    "rare and very common": "quokka person",
    "middling and very common": "harbour person",
    "two very common words": "person thing",
    "a question": "what is the harbour of the person in the garden?",
    "substring of three": "uok",
}


def word(number: int) -> str:
    """Return a made word that no other number has."""
    text = ""
    while number or not text:
        number, at = divmod(number, len(SYLLABLES))
        text += SYLLABLES[at]
    return text


def statement(number: int, facts: int, chance: random.Random) -> str:
    """Return a made statement; the words that are asked for are spread over the whole file."""
    said = [word(min(int(chance.paretovariate(0.6)), VOCABULARY)) for _ in range(7)]
    marks = (
        ("quokka", number % max(facts // 10, 1) == 0),
        ("harbour", chance.random() < 0.01),
        ("garden", chance.random() < 0.1),
        ("person", chance.random() < 0.5),
        ("thing", chance.random() < 0.5),
    )
    return " ".join([*said, *(name for name, there in marks if there), "number", str(number)])


def write(path: Path, facts: int) -> None:
    """Make the file, in transactions of a bounded size."""
    memory.create(path, actor=ANNA)
    chance = random.Random(7)
    with memory.open_store(path) as store:
        for start in range(0, facts, BATCH):
            with store.write(ANNA) as writer:
                for number in range(start, min(start + BATCH, facts)):
                    claim = Claim(text=statement(number, facts, chance), importance=chance.choice((None, 0.2, 0.9)))
                    writer.add(claim)


def times_ms(work: Callable[[], object], rounds: int) -> list[float]:
    """Return how long the work takes by the clock, once for each round after a first that is not counted."""
    work()
    return [1000 * once_s(work, time.perf_counter) for _ in range(rounds)]


def report(label: str, times: list[float], found: int) -> None:
    """Write one row."""
    p95 = statistics.quantiles(times, n=20)[-1]
    sys.stdout.write(f"{label:<28} {found:>6} {statistics.median(times):>9.2f} {p95:>9.2f}\n")


def plan(store: memory.Store) -> list[str]:
    """Return the query plan of every different statement that one recall makes."""
    asked: dict[str, None] = {}
    store.conn.set_trace_callback(asked.setdefault)
    recall(store, "harbour person uok")
    store.conn.set_trace_callback(None)
    found: dict[str, None] = {}
    # What full text asks of its own tables is traced as a comment.
    for sql in (sql for sql in asked if not sql.startswith("--")):
        for *_, step in store.conn.execute(f"explain query plan {sql}"):
            found.setdefault(str(step))
    return list(found)


def bench(path: Path, rounds: int) -> None:
    """Print the table of one file."""
    with memory.open_store(path) as store:
        total = sum(store.tally().values())
        size = path.stat().st_size / 1e6
        sys.stdout.write(f"{total:,} facts, {size:,.0f} MB\n{'':<28} {'facts':>6} {'p50 ms':>9} {'p95 ms':>9}\n")
        for label, query in QUERIES.items():
            report(label, times_ms(partial(recall, store, query), rounds), len(recall(store, query)))

        def whole() -> object:
            return context(store, None, budget_tokens=500, count=lambda text: len(text) // 4, encoding="quarters")

        report("context without a query", times_ms(whole, max(rounds // 5, 3)), 20)
        sys.stdout.write("\n".join(["query plan:", *(f"  {step}" for step in plan(store))]) + "\n")


def main() -> None:
    """Make or open the file, measure it, and remove it if it was made here."""
    given = sys.argv[1:]
    facts = int(given[0]) if given else FACTS
    rounds = int(given[1]) if len(given) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given[2]) if len(given) > 2 else Path(folder) / "memory.db"
        if not path.exists():
            write(path, facts)
        bench(path, rounds)


if __name__ == "__main__":
    main()
