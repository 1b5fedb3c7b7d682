"""The questions about transactions that can be asked of a store: each looks through a writer that can only plan."""

from typing import TYPE_CHECKING, cast

from memcli.store import file
from memcli.terms import ActorKind, Channel

if TYPE_CHECKING:
    from memcli.facts import Fact
    from memcli.store.store import Store
    from memcli.store.writer import Writer
    from memcli.tx import Action, Check, Effect, Fall, Question, Receipt, Repair, Transaction


class Transacted:
    """The part of a store that knows transactions, actions and what they owe."""

    def _looker(self) -> "Writer":
        from memcli.facts import Actor

        nobody = Actor(name="", kind=ActorKind.SCRIPT, channel=Channel.API)
        return cast("Store", self).planner(nobody)

    def _path(self) -> str:
        return str(cast("Store", self).path)

    def transactions(self) -> list["Transaction"]:
        """Return the transactions of the scope, oldest first."""
        with file.sentences(self._path()):
            return self._looker().transactions()

    def transaction(self, name: str) -> "Transaction":
        """Return one transaction of the scope by its id, such as `tx3`.

        Raises:
            NotFound, OutOfScope: The scope has none of that id.
        """
        with file.sentences(self._path()):
            return self._looker().transaction(name)

    def checks(self, name: str, *, partial: bool = False) -> list["Check"]:
        """Return every rule that each staged fact of a transaction does not pass, by the very code of a commit.

        Args:
            partial: As the commit would be.

        Raises:
            NotFound, OutOfScope: The scope has no such transaction.
        """
        with file.sentences(self._path()):
            return self._looker().examine(name, partial=partial)

    def questions(self, name: str, *, partial: bool = False) -> list["Question"]:
        """Return what a verifier is to be asked about a transaction: one question for each fact that passes otherwise.

        Args:
            partial: As the commit will be.

        Raises:
            NotFound, OutOfScope: The scope has no such transaction.
        """
        with file.sentences(self._path()):
            return self._looker().questions(name, partial=partial)

    def revoke_plan(self, fact: "Fact") -> "Fall":
        """Return what would fall with a fact, as a tree.

        Raises:
            OutOfScope: It belongs to another scope.
        """
        with file.sentences(self._path()):
            return self._looker().plan_revoke(fact)

    def actions(self) -> list["Action"]:
        """Return the tool calls of the scope that were planned or made, oldest first."""
        with file.sentences(self._path()):
            return self._looker().actions()

    def action(self, name: str) -> "Action":
        """Return one action by its id, such as `a2`, or by its receipt's.

        Raises:
            NotFound: There is none.
        """
        with file.sentences(self._path()):
            return self._looker().action(name)

    def receipt(self, name: str) -> "Receipt":
        """Return one receipt by its id, such as `r3`.

        Raises:
            NotFound: There is none.
        """
        with file.sentences(self._path()):
            return self._looker().receipt(name)

    def effects(self) -> list["Effect"]:
        """Return what actions of the scope owe or owed, oldest first."""
        with file.sentences(self._path()):
            return self._looker().effects()

    def repairs(self) -> list["Repair"]:
        """Return what cascades did, oldest first, where their root is of the scope."""
        with file.sentences(self._path()):
            return self._looker().repairs()

    def stale(self, fact: "Fact") -> bool:
        """Return whether a fact was built on a value that another has taken the place of."""
        with file.sentences(self._path()):
            return self._looker().stale(fact)
