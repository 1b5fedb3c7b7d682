"""A program that looks at staged facts before they commit: it may hold or refuse them, and never lets one through."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memcli import wire
from memcli.command import converse
from memcli.digest import blake2b
from memcli.errors import MemError, Stale, UsageError
from memcli.facts import Actor, Json
from memcli.terms import Ruling
from memcli.tx import Answer, Question, Verdict

if TYPE_CHECKING:
    from memcli.store.store import Store

TIMEOUT_S = 60.0
"""How long a verifier may think about one fact, in seconds, unless told otherwise."""

MOST_ROUNDS = 3
"""How often a verifier is asked anew before a transaction that keeps changing is left open."""

_REASON = 500  # characters of its reason that are kept


def digest_of(request: Json) -> str:
    """Return what an answer remembers of its question, so that one about what has changed since is not taken."""
    return blake2b(wire.dumps(request).encode("ascii"), digest_size=16).hexdigest()


def ask(questions: Sequence[Question], command: str, *, timeout_s: float = TIMEOUT_S) -> dict[str, Answer]:
    """Return what a verifier says of each question, by fact. No lock is held while it thinks.

    A program that fails, takes too long or prints something else holds the fact.

    Args:
        timeout_s: Seconds for each fact.

    Raises:
        UsageError: The command line is empty or has an open quote.
    """
    return {item.fact: _answer(item, command, timeout_s) for item in questions}


def commit(
    store: "Store",
    actor: Actor,
    tx: str,
    command: str,
    *,
    partial: bool = False,
    reason: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Verdict:
    """Commit a transaction as its checks and a verifier say, and return what became of it and how often it was asked.

    What changed while the verifier thought is asked about again.

    Raises:
        Stale: It kept changing.
        Refused, NotFound, UsageError: As of a commit and of `ask`.
    """
    calls, left = 0, MOST_ROUNDS
    while True:
        answers = ask(store.questions(tx, partial=partial), command, timeout_s=timeout_s)
        calls, left = calls + len(answers), left - 1
        try:
            with store.write(actor, reason) as write:
                found = write.commit(tx, partial=partial, verdicts=answers)
        except Stale:
            if not left:
                raise
        else:
            return replace(found, calls=calls)


def _answer(item: Question, command: str, timeout_s: float) -> Answer:
    try:
        ruling, reason = read(converse(command, item.request, timeout_s=timeout_s))
    except UsageError:
        raise
    except MemError as problem:
        ruling, reason = Ruling.HOLD, problem.message
    return Answer(fact=item.fact, asked=digest_of(item.request), ruling=ruling, reason=reason[:_REASON])


def read(document: Json) -> tuple[Ruling, str]:
    """Return the ruling and the reason that a verifier printed; anything but its three words is a hold."""
    if not isinstance(document, Mapping):
        return Ruling.HOLD, "the verifier printed no object"
    word, reason = document.get("verdict"), document.get("reason", "")
    if not isinstance(word, str) or word not in set(Ruling):
        return Ruling.HOLD, "the verifier said neither pass, hold nor refuse"
    return Ruling(word), reason if isinstance(reason, str) else ""
