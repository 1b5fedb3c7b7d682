"""What readers of files with many conversations share: going over them, and saying in which one something is odd."""

from collections.abc import Iterator, Mapping

from memcli.exchange.loose import Prose, Record
from memcli.exchange.shapes import Warn, first_text, shown
from memcli.facts import Json, Warned
from memcli.record import record

_NAMES = ("title", "name", "conversation_id", "sample_id", "question_id", "task_id", "id", "uuid")


@record
class Item:
    """One dictionary of a file.

    Args:
        line: 1-based; None in a document.
        number: Its 1-based place among the others.
        listed: It stands in a list, so that its line does not tell which it is.
    """

    value: Mapping[str, Json]
    line: int | None
    number: int
    listed: bool

    def told(self, warn: Warn) -> Warn:
        """Return a `warn` that says which conversation it is about where the line does not say it."""
        if not self.listed:
            return warn
        name = first_text(self.value, *_NAMES)
        label = f"conversation {self.number}" if name is None else f"conversation {self.number}, {shown(name)}"
        return lambda warned: warn(Warned(line=warned.line, message=f"{label}: {warned.message}"))

    def placed(self, warn: Warn) -> Warn:
        """Return a `warn` for what has no line of its own: it is told with this one's."""
        told = self.told(warn)
        return lambda warned: told(Warned(line=self.line, message=warned.message))

    def skip(self, warn: Warn, why: str) -> None:
        """Tell that the conversation is not taken."""
        self.told(warn)(Warned(line=self.line, message=f"skipped {why}"))


def items(records: Iterator[Record], warn: Warn, *, around: tuple[str, ...] = ()) -> Iterator[Item]:
    """Yield every dictionary of the file, those in lists too; anything else is told.

    Args:
        around: Keys under which a dictionary may hold the list of those that are meant.
    """
    number = 0
    for found in records:
        values = listed(found.value, around)
        alone = len(values) == 1 and values[0] is found.value
        for value in values:
            number += 1
            if isinstance(value, dict):
                yield Item(value=value, line=found.line, number=number, listed=not alone)
            else:
                what = "text" if isinstance(value, Prose) else shown(value)
                warn(Warned(line=found.line, message=f"skipped what is no conversation, number {number}: {what}"))


def listed(value: Json | Prose, around: tuple[str, ...] = ()) -> list[Json | Prose]:
    """Return the values of a list, also of one that a dictionary holds under one of the keys; else the value alone."""
    if isinstance(value, dict):
        value = next((value[key] for key in around if _holds_objects(value.get(key))), value)
    return [*value] if isinstance(value, list) else [value]


def dictionary(value: Json) -> Mapping[str, Json]:
    """Return the value where it is a dictionary, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _holds_objects(value: Json) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)
