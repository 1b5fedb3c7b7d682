"""The rows of the table in their order: what is measured beside what, the group it belongs to, and its target.

What a row holds today is measured by the module of its group; here is only what is asked.
"""

from dataclasses import dataclass

GROUPS = ("startup", "counting", "budget", "facts", "log", "recall", "writers", "tombstones", "transcripts")
"""What `--only` takes, in the order in which they are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The bound that a row is held to.

    Args:
        bound: What the figure may be at most, or at least.
        unit: Of the figure: `×` for a ratio.
        at_least: The figure is to be that large, not that small.
        peak_mb: The greatest memory that the process may have, in megabytes; None means that nobody asks.
    """

    bound: float
    unit: str = "×"
    at_least: bool = False
    peak_mb: float | None = None

    def __str__(self) -> str:
        sign, space = ("≥" if self.at_least else "≤"), ("" if self.unit == "×" else " ")
        memory = "" if self.peak_mb is None else f", {self.peak_mb:g} MB"
        return f"{sign} {self.bound:g}{space}{self.unit}{memory}"

    def holds(self, figure: float, peak_bytes: int | None = None) -> bool:
        """Return whether a figure keeps to the bound, and the memory to its own."""
        within = figure >= self.bound if self.at_least else figure <= self.bound
        return within and (self.peak_mb is None or peak_bytes is None or peak_bytes <= self.peak_mb * 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; `{…}` in its words is a size that the scale gives."""

    key: str
    group: str
    operation: str
    peer: str
    target: Target


ROWS: tuple[Row, ...] = (
    Row(key="show", group="startup", operation="`mem show`, piped, 20 facts", peer='`python -c "import typer"`',
        target=Target(bound=1.15)),
    Row(key="show-utils", group="startup", operation="the same", peer="`sqlite-utils rows`",
        target=Target(bound=0.55)),
    Row(key="show-terminal", group="startup", operation="`mem show` on a terminal, 20 facts",
        peer="`sqlite-utils rows`", target=Target(bound=0.85)),
    Row(key="show-many", group="startup", operation="`mem show`, {facts_shown} facts, first page",
        peer="the same on 20 facts", target=Target(bound=1.05)),
    Row(key="help", group="startup", operation="`mem --help`", peer="`sqlite-utils --version`",
        target=Target(bound=0.6)),
    Row(key="first-count", group="counting", operation="first token count, o200k_base, whole process",
        peer="stock tiktoken's load", target=Target(bound=0.7)),
    Row(key="count-many", group="counting", operation="count {counted} messages, by the clock",
        peer="a plain loop over tiktoken", target=Target(bound=0.6)),
    Row(key="simulate", group="budget", operation="`budget simulate`, {simulated} messages, times faster",
        peer="the real `Memory`", target=Target(bound=50, at_least=True)),
    Row(key="simulate-many", group="budget", operation="`budget simulate`, {simulated_many} messages, times faster",
        peer="the real `Memory`", target=Target(bound=500, at_least=True)),
    Row(key="sweep", group="budget", operation="`budget sweep`, 1,000 settings, {simulated} messages",
        peer="one setting", target=Target(bound=2)),
    Row(key="sweep-many", group="budget", operation="`budget sweep`, 1,000 settings, {simulated_many} messages",
        peer="one setting", target=Target(bound=2)),
    Row(key="import", group="facts", operation="import {facts} facts with provenance, audit chain, full text",
        peer="sqlite-utils insert, index, full text", target=Target(bound=1.4)),
    Row(key="export", group="facts", operation="export {facts} facts as JSON Lines, digests checked",
        peer="`sqlite-utils rows --nl`", target=Target(bound=0.5)),
    Row(key="verify", group="log", operation="verify {large} audit rows, the chain", peer="a bare SELECT of them",
        target=Target(bound=2.2)),
    Row(key="verify-deep", group="log", operation="the same, with the rows that they speak of",
        peer="a bare SELECT of them", target=Target(bound=5)),
    Row(key="recall-rare", group="recall", operation="recall at {large} facts, rare word, p50", peer="–",
        target=Target(bound=1, unit="ms")),
    Row(key="recall-middling", group="recall", operation="the same, middling word", peer="–",
        target=Target(bound=5, unit="ms")),
    Row(key="recall-common", group="recall", operation="the same, very common word", peer="–",
        target=Target(bound=20, unit="ms")),
    Row(key="writers", group="writers", operation="8 processes × {writes} writes, none lost, by the clock",
        peer="one writer's rate", target=Target(bound=0.6, at_least=True)),
    Row(key="tombstones", group="tombstones", operation="tombstone check at {stones} value tombstones", peer="–",
        target=Target(bound=50, unit="µs")),
    Row(key="transcript", group="transcripts", operation="import {megabytes} MB of JSON Lines, one session",
        peer="`json.loads` of each line", target=Target(bound=3, peak_mb=150)),
    Row(key="conversations", group="transcripts", operation="import {megabytes} MB of JSON Lines, conversations",
        peer="`json.loads` of each line", target=Target(bound=3, peak_mb=150)),
)  # fmt: skip
"""Every row there is."""
