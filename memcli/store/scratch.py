"""Memory files that are thrown away: for trying out what would happen."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from memcli.facts import Actor, Claim, Fact, Micros
from memcli.store import create, open_store
from memcli.store.store import Store
from memcli.store.writer import Writer
from memcli.terms import READABLE, Admission, Op, State

_BELIEVED = READABLE | {State.SUPERSEDED}
"""States that a version reaches only through being believed."""


class Trial:
    """A new file of admission `direct`, in any of its scopes, until it is thrown away."""

    def __init__(self, path: Path, actor: Actor, now: Callable[[], Micros], opened: ExitStack) -> None:
        self._path = path
        self._actor = actor
        self._now = now
        self._opened = opened
        self._stores: dict[str | None, Store] = {}

    def store(self, scope: str | None = None) -> Store:
        """Return the file opened in a scope; None is its usual one."""
        if scope not in self._stores:
            self._stores[scope] = self._opened.enter_context(open_store(self._path, scope=scope, now=self._now))
        return self._stores[scope]

    def plant(self, claim: Claim, state: State, scope: str | None = None) -> Fact:
        """Put a fact there in a state, whatever the rules would say of it, and return it: a case begins somewhere."""
        with self.store(scope).write(self._actor, "planted") as write:
            number = _planted(write, claim, believed=state in _BELIEVED)
            row = write.newest(number)
            if state not in (State.TENTATIVE, State.ACCEPTED):
                write.move(row, state, Op.ADD)
            return write.fact(number)


def _planted(write: Writer, claim: Claim, *, believed: bool) -> int:
    backing = write.backing(claim) if claim.references or claim.evidence else []
    parents = [write.fact_number(name) for name in claim.derived_from]
    authority = write.source_authority(claim, backing)
    fields = (write.keyed(claim), backing, parents, authority)
    return write._insert(*fields, accepted=believed)  # noqa: SLF001 -- past the rules, in a file that is thrown away


@cache
def _template(actor: Actor) -> bytes:
    """Return a new file whose first event lies at the beginning of time; to make one takes as long as many changes."""
    with TemporaryDirectory(prefix="mem-") as folder:
        path = Path(folder) / "memory.db"
        create(path, actor=actor, admission=Admission.DIRECT, now=lambda: 0)
        return path.read_bytes()


@contextmanager
def scratch(actor: Actor, now: Callable[[], Micros]) -> Iterator[Trial]:
    """Give a new file that is gone at the end.

    Args:
        actor: Who makes it and plants in it; a person.
        now: The clock it goes by, from 0 on.
    """
    with TemporaryDirectory(prefix="mem-") as folder, ExitStack() as opened:
        path = Path(folder) / "memory.db"
        path.write_bytes(_template(actor))
        yield Trial(path, actor, now, opened)
