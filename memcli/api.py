"""mem from Python, for an agent that needs no shell: the same file, the same writer, the same rules.

Whoever acts through here is a script on the channel `api`, never a person: it cannot verify, say what a fact
supersedes, or change the policy, and in a reviewed file what it writes waits for review.

A `Store` may be handed from one thread to another, and is not for two at once: open one in each thread. Opening is
cheap, and writers of all threads and processes wait for each other at the file, as long as `MEM_TIMEOUT` says.

    >>> import memcli
    >>> memcli.create("notes.db", admission="direct")
    >>> with memcli.open_store("notes.db") as mem:
    ...     with mem.write(memcli.agent("planner")) as write:
    ...         written = write.add(memcli.Claim(text="Anna lives in Lisbon"))
    ...     [fact.text for fact in mem.facts()]
    ['Anna lives in Lisbon']
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from memcli import store as files
from memcli import wire_tx
from memcli.errors import Ambiguous, Held, MemError, NotFound, NotPermitted, OutOfScope, Refused, UsageError
from memcli.facts import Actor, Claim, Fact, Json
from memcli.record import record
from memcli.store.store import Store
from memcli.store.transact import LEASE_S
from memcli.terms import (
    DEFAULT_ENCODING,
    DEFAULT_SCOPE,
    ActionState,
    ActorKind,
    Admission,
    Channel,
    Code,
    Isolation,
    Profile,
    Tier,
    TxStatus,
)
from memcli.text import check_typed
from memcli.transactions import verifier as verifiers
from memcli.tx import Action, Check, GateAnswer, Receipt, Transaction, Verdict

VERIFIER_TIMEOUT_S = verifiers.TIMEOUT_S


class TransactionHeld(Held):
    """A commit was held: a person decides what it brought. `verdict` says which rule each fact did not pass."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(
            f"transaction {verdict.tx} is held{_named(verdict)}", hint="a person decides it with `mem review`"
        )
        self.verdict = verdict


class TransactionAborted(Refused):
    """A commit was refused and nothing of it is believed. `verdict` says which rule each fact did not pass."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(
            f"transaction {verdict.tx} was aborted{_named(verdict)}", hint="read again, and begin another transaction"
        )
        self.verdict = verdict


def _named(verdict: Verdict) -> str:
    failed = [f"{name[:8]} {code}" for name, code in verdict.verdicts.items() if code is not Code.PASS]
    return f": {', '.join(failed)}" if failed else ""


@record
class Recovered:
    """What `recover` ended: transactions past their lease, and actions of which nobody saw the end."""

    transactions: tuple[Transaction, ...]
    actions: tuple[Action, ...]


Word = TypeVar("Word", bound=StrEnum)


def _word(words: type[Word], given: str, what: str) -> Word:
    try:
        return words(given)
    except ValueError:
        raise UsageError(f"{given} is no {what}", hint="one of: " + ", ".join(words)) from None


# -------------------------------------------------------------------- files


def agent(name: str) -> Actor:
    """Return a program as the actor of a change: a script on the channel `api`, whatever its name says.

    >>> memcli.agent("planner").is_person
    False

    Raises:
        UsageError: The name is empty or cannot be shown.
    """
    return Actor(name=check_typed(name, what="the name of the agent"), kind=ActorKind.SCRIPT, channel=Channel.API)


def create(
    path: str | Path,
    *,
    by: str = "api",
    admission: str = Admission.REVIEW,
    scope: str = DEFAULT_SCOPE,
    encoding: str = DEFAULT_ENCODING,
) -> None:
    """Make a new memory file. It appears whole or not at all.

    >>> memcli.create("memory.db", admission="checked", scope="user/anna")
    >>> with memcli.open_store("memory.db") as mem:
    ...     print(mem.scope, mem.admission)
    user/anna checked

    Args:
        by: The name of who makes it, for the log.
        admission: `direct`, `review` or `checked`: is a written item trusted at once?
        encoding: What counts the tokens of facts.

    Raises:
        UsageError: Something is at the path already, or the scope or the admission is none.
        OutOfScope: `MEM_SCOPE` binds this process to another scope.
        NoSpace: The folder is missing, full or not yours.
    """
    bound = os.environ.get("MEM_SCOPE")
    if bound is not None and scope not in (DEFAULT_SCOPE, bound):
        raise OutOfScope(f"this process is bound to {bound} and may not make {scope}", hint="unset MEM_SCOPE")
    files.create(
        path,
        actor=agent(by),
        admission=_word(Admission, admission, "admission"),
        scope=bound or scope,
        encoding=encoding,
    )


def open_store(path: str | Path, *, scope: str | None = None) -> Store:
    """Return an existing memory file, opened to look at in one scope; `with` closes it.

    `MEM_SCOPE` binds the process here as it does at the command line.

    >>> memcli.create("memory.db")
    >>> with memcli.open_store("memory.db", scope="user/anna") as mem:
    ...     list(mem.facts())
    []

    Args:
        scope: None is the file's default.

    Raises:
        NoFile, Damaged, WrongSchema, Busy, NoSpace: It cannot be opened.
        UsageError, OutOfScope: The scope is no name, or not the one this process is bound to.
    """
    return files.open_store(path, scope=scope, bound=os.environ.get("MEM_SCOPE"))


# -------------------------------------------------------------------- transactions


class LiveTransaction:
    """A transaction under way, as `transaction` gives it; each call is one short write of its own.

    `verdict` is what became of the commit, None before it. Not for two threads at once.
    """

    def __init__(self, store: Store, actor: Actor, begun: Transaction, settings: "_Commit") -> None:
        self._store = store
        self._actor = actor
        self._commit = settings
        self.id = begun.id
        self.verdict: Verdict | None = None

    @property
    def info(self) -> Transaction:
        """Return the transaction as the file has it now.

        >>> memcli.create("memory.db")
        >>> with memcli.open_store("memory.db") as mem, memcli.transaction(mem, agent="planner") as tx:
        ...     print(tx.info.id, tx.info.tier, tx.info.status)
        tx1 medium open
        """
        return self._store.transaction(self.id)

    def read(self, subject: str | None = None, attribute: str | None = None) -> tuple[Fact, ...]:
        """Return what the snapshot holds at the transaction's isolation, valid now, and remember that it was read.

        >>> memcli.create("memory.db", admission="direct")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with mem.write(memcli.agent("planner")) as write:
        ...         written = write.add(memcli.Claim(text="Tea is hot", subject="tea"))
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         [fact.text for fact in tx.read(subject="tea")]
        ['Tea is hot']

        Raises:
            Closed, LeaseOver: The transaction is over.
        """
        with self._store.write(self._actor) as write:
            return write.read(self.id, subject, attribute)

    def stage(self, claim: Claim) -> Fact:
        """Offer a fact and return it: tentative, and believed by nobody until the commit.

        A draft shuts the gate for everybody, its own transaction included: ask before staging, or in another.

        >>> memcli.create("memory.db", admission="checked")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         draft = tx.stage(memcli.Claim(text="Tea is hot", references=("kettle",)))
        ...     print(draft.state, mem.get(draft.id).state)
        tentative accepted

        Raises:
            Tombstoned, UnknownParent, NotAllowed, Closed, LeaseOver: It is refused, and the refusal recorded.
        """
        with self._store.write(self._actor) as write:
            return write.stage(self.id, claim)

    def restage(self, fact: Fact, derived_from: Iterable[str] = ()) -> Fact:
        """Take a fact that was held into this transaction, so that its commit checks it again; return it.

        >>> memcli.create("memory.db", admission="checked")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner", raises=False) as tx:
        ...         doubt = tx.stage(memcli.Claim(text="Tea is hot"))
        ...     print(tx.verdict.status)
        ...     with memcli.transaction(mem, agent="planner", raises=False) as tx:
        ...         print(tx.restage(mem.get(doubt.id)).state)
        held
        tentative

        Args:
            derived_from: Whole ids of facts to declare as parents besides those it has.

        Raises:
            NotAllowed, UnknownParent, Cycle, Tombstoned, Stale, Closed, LeaseOver: It is refused.
        """
        with self._store.write(self._actor) as write:
            return write.restage(self.id, fact, tuple(derived_from))

    def check(self) -> list[Check]:
        """Return every rule that each staged fact does not pass, by the very code of a commit; nothing is changed.

        >>> memcli.create("memory.db")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner", raises=False) as tx:
        ...         draft = tx.stage(memcli.Claim(text="Tea is hot"))
        ...         print([check.code.value for check in tx.check()])
        ['E_NO_EVIDENCE']
        """
        return self._store.checks(self.id)

    def gate(
        self,
        tool: str,
        args: Json | bytes = None,
        premises: Iterable[Fact | str] = (),
        profile: str = Profile.STRICT,
    ) -> GateAnswer:
        """Return whether a tool call may go ahead, with all reasons why not, and where it may, a receipt for it.

        >>> memcli.create("memory.db", admission="checked")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         due = tx.stage(memcli.Claim(text="Order 7 is unpaid", references=("erp",)))
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         print(tx.gate("refund", args={"order": 7}).reasons)
        ...         print(tx.gate("refund", args={"order": 7}, premises=[due]).allow)
        ('G3_NO_PREMISE',)
        True

        Args:
            args: What the call is made with, as JSON or bytes; None is no arguments, the same as `{}`.
            premises: The facts that the call relies on, or their ids.

        Raises:
            NotFound, OutOfScope: A premise is not in the transaction's scope.
            UsageError: The arguments are no JSON, or the tool has no name.
            Closed, LeaseOver: The transaction is over.
        """
        named = [self._premise(premise) for premise in premises]
        with self._store.write(self._actor) as write:
            return write.gate(self.id, tool, _digest(args), named, _word(Profile, profile, "profile"))

    def _premise(self, premise: Fact | str) -> str:
        if isinstance(premise, Fact):
            return premise.id
        try:
            return self._store.get(premise).id
        except Ambiguous:
            raise
        except NotFound:  # the gate says what that means
            return premise

    @contextmanager
    def act(self, receipt: Receipt | str | None, args: Json | bytes = None) -> Iterator[Action]:
        """Record that the call of a receipt is made inside this block: done at its end, failed where it raises.

        Where the block is interrupted, nobody saw how the call ended, and the action is unknown; where the process
        dies, `recover` finds it.

        >>> memcli.create("memory.db", admission="checked")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         due = tx.stage(memcli.Claim(text="Order 7 is unpaid", references=("erp",)))
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         answer = tx.gate("refund", args={"order": 7}, premises=[due])
        ...         with tx.act(answer.receipt, args={"order": 7}) as action:
        ...             print("the money goes out here")
        ...     print(mem.action(action.id).state)
        the money goes out here
        done

        Args:
            receipt: What the gate gave; None, which it gives where it blocks, is refused.
            args: The arguments again, to be compared with what the gate was asked; None compares nothing.

        Raises:
            NotPermitted: There is no receipt.
            NotAllowed, Stale, LeaseOver: It was used, is for other arguments, or a premise changed since.
        """
        if receipt is None:
            raise NotPermitted("the gate gave no receipt for this call", hint="read the reasons in its answer")
        leave = receipt if isinstance(receipt, Receipt) else self._store.receipt(receipt)
        with self._store.write(self._actor) as write:
            action = write.act_begin(leave.id, leave.args_digest if args is None else _digest(args))
        try:
            yield action
        except BaseException as problem:
            self._end_action(action, problem)
            raise
        with self._store.write(self._actor) as write:
            write.act_done(action.id)

    def _end_action(self, action: Action, problem: BaseException) -> None:
        """Record how a call ended that did not end well; what went wrong stays the error that is raised."""
        try:
            with self._store.write(self._actor) as write:
                if isinstance(problem, Exception):
                    write.act_failed(action.id)
                else:
                    write.act_unknown(action.id)
        except MemError as late:
            problem.add_note(f"action {action.id} still counts as running: {late.message}")

    def commit(self) -> Verdict:
        """Check what was staged and believe it together, and return what became of it; leaving does so by itself.

        >>> memcli.create("memory.db", admission="checked")
        >>> with memcli.open_store("memory.db") as mem:
        ...     with memcli.transaction(mem, agent="planner") as tx:
        ...         draft = tx.stage(memcli.Claim(text="Tea is hot", references=("kettle",)))
        ...         print(tx.commit().status)
        committed

        Raises:
            Closed: It is over.
            Stale: Something changed while the verifier thought.
        """
        asked = self._commit
        if asked.verifier is None:
            with self._store.write(self._actor) as write:
                verdict = write.commit(self.id, asked.partial)
        else:
            verdict = verifiers.commit(
                self._store,
                self._actor,
                self.id,
                asked.verifier,
                partial=asked.partial,
                timeout_s=asked.timeout_s,
            )
        self.verdict = verdict
        return verdict

    def abort(self) -> Transaction:
        """Withdraw what was staged, close the transaction and return it; leaving then commits nothing.

        >>> memcli.create("memory.db")
        >>> with memcli.open_store("memory.db") as mem, memcli.transaction(mem, agent="planner") as tx:
        ...     print(tx.abort().status)
        aborted
        """
        with self._store.write(self._actor) as write:
            return write.abort(self.id)

    def __enter__(self) -> "LiveTransaction":
        return self

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        if problem is not None:
            self._abandon(problem)
            return
        try:
            if self.info.status is TxStatus.OPEN:
                self.commit()
        except BaseException as late:
            self._abandon(late)
            raise
        self._judge()

    def _abandon(self, problem: BaseException) -> None:
        try:
            if self.info.status is TxStatus.OPEN:
                self.abort()
        except MemError as late:
            problem.add_note(f"transaction {self.id} is open until its lease is over: {late.message}")

    def _judge(self) -> None:
        if self.verdict is None or not self._commit.raises:
            return
        if self.verdict.status is TxStatus.HELD:
            raise TransactionHeld(self.verdict)
        if self.verdict.status is TxStatus.ABORTED:
            raise TransactionAborted(self.verdict)


@record
class _Commit:
    """How a transaction ends."""

    partial: bool
    verifier: str | None
    timeout_s: float
    raises: bool


def _digest(args: Json | bytes) -> str:
    if isinstance(args, bytes):
        return wire_tx.arguments_digest(args)
    return wire_tx.json_digest({} if args is None else args)


def transaction(
    store: Store,
    *,
    agent: str,
    tier: str = Tier.MEDIUM,
    isolation: str | None = None,
    lease_s: float = LEASE_S,
    partial: bool = False,
    verifier: str | None = None,
    timeout_s: float = VERIFIER_TIMEOUT_S,
    raises: bool = True,
) -> LiveTransaction:
    """Open a transaction; a `with` block commits it at its end, and aborts it where the block raises.

    >>> memcli.create("memory.db", admission="checked")
    >>> with memcli.open_store("memory.db") as mem:
    ...     with memcli.transaction(mem, agent="planner") as tx:
    ...         known = tx.read(subject="order 7")
    ...         draft = tx.stage(
    ...             memcli.Claim(
    ...                 text="Order 7 was paid twice", subject="order 7", attribute="paid", value=2, references=("erp",)
    ...             )
    ...         )
    ...     print(tx.verdict.status, mem.get(draft.id).state)
    committed accepted

    Args:
        agent: The name of who acts; the policy of the file says up to which tier.
        tier: `low`, `medium`, `high` or `external`.
        isolation: `raw`, `accepted`, `stable` or `verified`; None is what the tier asks for.
        lease_s: Seconds until anybody may abort it.
        partial: Settle each fact by itself, not all or none.
        verifier: A program that is asked of each fact that passes everything else.
        timeout_s: Seconds that it may take for each.
        raises: Whether leaving the block raises where the commit was held or refused; else look at `verdict`.

    Raises:
        NotPermitted: The agent may not go up to this tier.
        TransactionHeld: A person decides; what was staged is disputed.
        TransactionAborted: A rule refused a fact, and nothing is believed.
    """
    actor = _actor(agent)
    level = None if isolation is None else _word(Isolation, isolation, "isolation")
    with store.write(actor) as write:
        begun = write.begin(actor.name, _word(Tier, tier, "tier"), level, lease_s)
    settings = _Commit(partial=partial, verifier=verifier, timeout_s=timeout_s, raises=raises)
    return LiveTransaction(store, actor, begun, settings)


_actor = agent  # inside `transaction` the word is its argument


def recover(store: Store, *, by: str = "recover") -> Recovered:
    """Abort the transactions of the scope whose lease is over, and return them with the actions nobody saw end.

    >>> memcli.create("memory.db")
    >>> with memcli.open_store("memory.db") as mem:
    ...     memcli.recover(mem).transactions
    ()

    Args:
        by: The name of who does it, for the log.
    """
    running = {action.id for action in store.actions() if action.state is ActionState.RUNNING}
    with store.write(agent(by)) as write:
        over = write.recover()
    lost = (action for action in store.actions() if action.id in running and action.state is ActionState.UNKNOWN)
    return Recovered(transactions=tuple(over), actions=tuple(lost))
