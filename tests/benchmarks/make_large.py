"""A huge memory file, and what every command costs on it: `python tests/benchmarks/make_large.py FILE [--facts N]`.

FILE is made through the bulk import where it is not there yet. Then each looking command runs once, and one of each
changing command, on a copy: printed are the seconds by the clock and of the processors, and the greatest amount of
memory that the process had, in MB; with `--beside OTHER`, a smaller file, the same of that one, so that what grows
faster than the file shows. `--only` names the commands that are run, by how they begin.
"""

import argparse
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memcli.facts import Actor, Claim, Conversation, Remembered, Turn  # noqa: E402 - the checkout has to be on the path
from memcli.store import open_store  # noqa: E402
from memcli.terms import ActorKind, Channel, Role  # noqa: E402
from tests.benchmarks.kit import MEM, NAMES, SCRIPT, Cost, fill, spent, told  # noqa: E402

FACTS = 1_000_000
ANNA = Actor(name="anna", kind=ActorKind.HUMAN, channel=Channel.TERMINAL)
WHY = ("--reason", "measured")


LOOKS: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("show", "--json", "-n", "50"),
    ("show", "--jsonl", "-n", "0"),
    ("show", "FACT"),
    ("show", "--subject", "person 17"),
    ("show", "--state", "revoked"),
    ("why", "FACT"),
    ("recall", "needle"),
    ("recall", "about tea"),
    ("context", "tea", "--budget", "500"),
    ("context",),
    ("log",),
    ("log", "-n", "0", "--jsonl"),
    ("log", "--fact", "FACT"),
    ("log", "--op", "tombstone"),
    ("log", "verify"),
    ("log", "head"),
    ("check",),
    ("check", "--residue", "zyzzyva"),
    ("check", "--orphans"),
    ("stats",),
    ("scope", "list"),
    ("policy", "show"),
    ("import", "--list"),
    ("review", "list"),
    ("review", "--check"),
    ("review", "export"),
    ("tx", "show"),
    ("act", "list"),
    ("effects",),
    ("diff", "FILE", "SAME"),
    ("export",),
    ("export", "--format", "mcp"),
    ("export", "--format", "mem0"),
    ("export", "--format", "llamaindex"),
    ("export", "--format", "markdown"),
    ("filter",),
    ("condense", "--dry-run", "--max-facts", "900000"),
    ("tombstone", "FACT", *WHY, "--dry-run"),
    ("tombstone", "--contains", "needle", *WHY, "--dry-run"),
    ("erase", "--value", "zyzzyva is quiet", *WHY, "--dry-run"),
)
"""What only looks, or says what would happen; `FACT` is an id, `FILE` the file, `SAME` a copy of it."""

CHANGES: tuple[tuple[str, ...], ...] = (
    ("add", "Milk is cold"),
    ("correct", "FACT", "Milk is warm", *WHY),
    ("undo", *WHY),
    ("retract", "FACT", *WHY),
    ("dispute", "OTHER", *WHY),
    ("tombstone", "--value", "milk is sour", *WHY),
    ("lift", "t1", *WHY),
    ("tombstone", "--contains", "needle", *WHY),
    ("revoke", "THIRD", *WHY),
    ("import", "chat.json"),
    ("extract", "LAST"),
    ("erase", "FOURTH", *WHY),
    ("rebuild",),
)


def remembered(number: int) -> Remembered:
    """Return a made record; `needle` is in one of 10,000, and one in 100 has a slot."""
    rare = " needle" if number % 10_000 == 17 else ""
    text = f"note {number} is about {NAMES[number % 11]} and {NAMES[number // 11 % 11]}{rare}"
    if number % 100:
        return Remembered(format="mcp", text=text, subject=f"person {number % 5000}")
    return Remembered(format="mcp", text=text, subject=f"person {number}", attribute="note", value=f"note {number}")


def make(path: Path, facts: int) -> None:
    """Make the file: facts in batches, each a source, and a transcript with a fact that waits and one built on it."""
    told(f"making a file of {facts:,} facts")
    fill(path, facts, remembered)
    with open_store(path) as store:
        turns = tuple(Turn(role=Role.USER, content=f"Remember that tea {number} is hot.") for number in range(20))
        with store.write(SCRIPT) as write:
            write.take(Conversation(format="openai", turns=turns), path="chat.json", digest="0" * 64)
        with store.write(ANNA) as write:
            first = write.add(Claim(text="zyzzyva is quiet")).fact
            write.add(Claim(text="zyzzyvas are quiet", derived_from=(first.id,)))


def run(path: Path, chosen: Sequence[str]) -> Iterator[tuple[str, Cost, int]]:
    """Yield each command with what it cost and how much it printed; the file itself stays as it is."""
    folder = path.parent / f"{path.name}.measured"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / "memory.db")
    talk = [{"role": "user", "content": f"Remember that milk {number} is cold."} for number in range(20)]
    (folder / "chat.json").write_text(json.dumps(talk), encoding="utf-8")
    lines = folder / "lines"
    lines.write_text("".join(f"note {number} is about tea\n" for number in range(1000)), encoding="utf-8")
    with closing(sqlite3.connect(path)) as conn:
        picked = conn.execute("select name from facts order by id limit 1 offset ?", (7,)).fetchone()
        names = [picked[0], *(name for (name,) in conn.execute("select name from facts where id in (21, 33, 45)"))]
        last = conn.execute("select max(id) from sources where format = 'openai'").fetchone()[0]
    named = {**dict(zip(("FACT", "OTHER", "THIRD", "FOURTH"), names, strict=True)), "LAST": f"s{last}"}
    named |= {"FILE": "memory.db", "SAME": str(path.absolute())}
    try:
        for words in (*LOOKS, *CHANGES):
            if not chosen or any(" ".join(words).startswith(one) for one in chosen):
                command = [MEM, *(named.get(word, word) for word in words)]
                cost = spent(command, folder, given=lines, output=folder / "out", codes=(0, 1))
                yield " ".join(words), cost, (folder / "out").stat().st_size
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Make what is missing, and print a row for each command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("file", type=Path)
    options.add_argument("--facts", type=int, default=FACTS)
    options.add_argument("--beside", type=Path, help="a smaller file to compare with")
    options.add_argument("--only", nargs="*", default=[], help="the commands that begin so")
    options.add_argument("--make", action="store_true", help="only make the file")
    given = options.parse_args()
    if not given.file.exists():
        make(given.file, given.facts)
    if given.make:
        return
    smaller = {} if given.beside is None else {name: cost for name, cost, _ in run(given.beside, given.only)}
    print(f"{'command':<50}{'exit':>5}{'s':>8}{'cpu s':>8}{'MB':>7}{'out MB':>8}  cpu s and MB beside")  # noqa: T201
    for name, cost, printed in run(given.file, given.only):
        line = f"{name[:49]:<50}{cost.code:>5}{cost.wall_s:>8.2f}{cost.cpu_s:>8.2f}{cost.peak_bytes / 1e6:>7.0f}"
        line += f"{printed / 1e6:>8.1f}"
        if name in smaller:
            line += f"{smaller[name].cpu_s:>9.2f}{smaller[name].peak_bytes / 1e6:>7.0f}"
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
