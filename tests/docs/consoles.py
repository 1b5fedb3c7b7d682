"""The console blocks of the README: found, run, and compared with what they say, word by word.

A block begins with ```console and plays at a terminal of 80 columns, or with ```console piped. A line that begins with
`$ ` is a command, one that begins with `> ` goes on with it, anything else is output. `echo $?` prints the exit code of
the command before; every other command must end with 0 unless that line follows. A line `…` stands for any output that
is left out. `<!-- typed: … -->` before a block says which keys are typed into its last command, separated by spaces;
`<!-- in a new folder -->` says that what went before in its chapter is not there.

Ids, dates, times, hashes and what is counted over them differ in every run: an id of the README stands for whatever id
stands in its place, and stays that one.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pexpect

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TRANSCRIPTS = ROOT / "memcli" / "data" / "tour"
LEFT_OUT = "…"

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_VARIES = (
    (re.compile(r"blake2b:[0-9a-f]{64}"), "HASH"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(rf"\b\d{{1,2}} (?:{_MONTHS}) \d{{4}}(?: \d\d:\d\d)?"), "DATE"),
    (re.compile(r"\bjust now\b|\b\d+ (?:s|m|h|d) ago\b"), "AGO"),
    (re.compile(r"\bends in \d+ m\b"), "LEASE"),
    (re.compile(r"\b0\.\d{2,3}\b"), "SCORE"),
    (re.compile(r"\b\d+ tokens\b"), "TOKENS"),  # of a block with ids in it
)
_PROGRESS = re.compile("\x1b\\[\\?25l.*?\x1b\\[\\?25h\\s*\x1b\\[1A\x1b\\[2K", re.DOTALL)
"""What long work shows while it lasts, and takes away again; on a slow machine more of it is long."""

_ID = re.compile(r"(?<![\w.:-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{4,16}(?![\w.:])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A command and what the README says it prints."""

    command: str
    output: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One console block, under its chapter (`##`) and section (`###`)."""

    chapter: str
    section: str
    line: int
    piped: bool
    fresh: bool
    typed: tuple[str, ...]
    exchanges: tuple[Exchange, ...]


def blocks(text: str) -> Iterator[Block]:
    """Yield the console blocks of a text."""
    chapter = section = fence = ""
    fresh = False
    typed: tuple[str, ...] = ()
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if fence:
            if line == "```":
                if fence.startswith("```console"):
                    start = number - len(held)
                    yield Block(
                        chapter=chapter,
                        section=section,
                        line=start,
                        piped=fence.endswith("piped"),
                        fresh=fresh,
                        typed=typed,
                        exchanges=tuple(_exchanges(held, start)),
                    )
                    fresh, typed = False, ()
                fence, held = "", []
            else:
                held.append(line)
        elif line.startswith("```"):
            fence = line
        elif line.startswith("## "):
            chapter, section = line[3:], ""
        elif line.startswith("### "):
            section = line[4:]
        elif line == "<!-- in a new folder -->":
            fresh = True
        elif found := re.fullmatch(r"<!-- typed: (.*) -->", line):
            typed = tuple(found[1].split(" "))


def _exchanges(lines: list[str], start: int) -> Iterator[Exchange]:
    command: list[str] = []
    output: list[str] = []
    began = start
    for number, line in enumerate(lines, start=start):
        if line.startswith("$ "):
            if command:
                yield Exchange(command="\n".join(command), output="\n".join(output), line=began)
            command, output, began = [line[2:]], [], number
        elif line.startswith("> ") and command and not output:
            command.append(line[2:])
        else:
            output.append(line)
    if command:
        yield Exchange(command="\n".join(command), output="\n".join(output), line=began)


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a person called anna, with this Python's `mem` first on the path."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(home),
        "LOGNAME": "anna",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "NO_COLOR": "1",
    }


def run(command: str, folder: Path, *, piped: bool, typed: tuple[str, ...] = ()) -> tuple[str, int]:
    """Return what a command prints, both streams, and its exit code."""
    if piped:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout.decode(), done.returncode
    child = pexpect.spawn(
        "sh", ["-c", command], cwd=str(folder), env=environment(folder), dimensions=(500, 80), echo=False, timeout=30
    )
    said = ""
    for key in (*typed, None):
        place = child.expect([PROMPT, pexpect.EOF])
        said += child.before.decode()
        if place or key is None:
            break
        said += child.after.decode()
        child.send(key)
    child.close()
    return _PROGRESS.sub("", said.replace("\r\n", "\n")), -1 if child.exitstatus is None else child.exitstatus


PROMPT = r"(?:decide \(\d+/\d+\)|reason[^:\r\n]*): "
"""What a review shows last before it reads a key or a line."""


def same(said: str, found: str, ids: dict[str, str]) -> bool:
    """Return whether an output is what the README says, and learn which id stands for which."""
    match = re.fullmatch(_pattern(said, ids), _words(found), re.DOTALL)
    if match is None:
        return False
    ids.update({name[1:]: value for name, value in match.groupdict().items()})
    return True


def filled(command: str, ids: dict[str, str]) -> str:
    """Return a command of the README with the ids of this run."""
    return _ID.sub(lambda match: ids.get(match.group(), match.group()), command)


def _words(text: str) -> str:
    """Return the words of an output, each with a space behind it; what varies is named instead."""
    words = " ".join(text.split())
    for pattern, name in _VARIES:
        words = pattern.sub(name, words)
    return f"{words} " if words else ""


def _pattern(said: str, ids: dict[str, str]) -> str:
    seen: set[str] = set()
    parts = re.split(rf"(?m)^[ ]*{LEFT_OUT}[ ]*$", said)
    return "(?:.* )?".join(_escaped(_words(part), ids, seen) for part in parts)


def _escaped(words: str, ids: dict[str, str], seen: set[str]) -> str:
    pieces, end = [], 0
    for match in _ID.finditer(words):
        pieces += [re.escape(words[end : match.start()]), _id_pattern(match.group(), ids, seen)]
        end = match.end()
    return "".join([*pieces, re.escape(words[end:])])


def _id_pattern(said: str, ids: dict[str, str], seen: set[str]) -> str:
    if said in ids:
        return re.escape(ids[said])
    if said in seen:
        return f"(?P=i{said})"
    seen.add(said)
    # The same id may stand there at another length; its beginning is known then.
    kin = next((ids[known] for known in ids if known.startswith(said) or said.startswith(known)), "")
    return f"(?P<i{said}>(?={kin[:4]})[0-9a-f]{{4,16}})"
