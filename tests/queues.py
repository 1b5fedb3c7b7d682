"""Queues for tests: what waits for each of the reasons there are, and who decides it."""

from typing import Any

from memcli.changes import Change, request
from memcli.facts import Actor, Fact, Proposal, QueueItem, QueueQuery
from memcli.review import Decided, ReviewSession
from memcli.store import Store
from memcli.store.queue import Queue
from memcli.terms import ActorKind, Channel, Decision, Waiting
from tests.files import ANNA, BOB, EXTRACTOR, SCRIPT, add, chat, cite, city, take

CLERK = Actor(name="clerk", kind=ActorKind.SCRIPT, channel=Channel.DECISIONS)


def offer(store: Store, text: str, **claim: Any) -> Fact:
    """Offer what an extractor found, which waits."""
    return add(store, text, actor=EXTRACTOR, **claim)


def waiting(store: Store, **query: Any) -> list[tuple[Waiting, str]]:
    """Return why each item waits, and its text, or its id where it is about no fact."""
    return [(item.why, item.fact.text if item.fact else item.id) for item in Queue(store, QueueQuery(**query))]


def session(store: Store, actor: Actor = BOB, reason: str | None = "reviewed") -> ReviewSession:
    """Return a session over all that waits."""
    return ReviewSession(Queue(store), actor, reason)


def first(review: ReviewSession) -> QueueItem:
    """Return the oldest item."""
    item = review.queue.item(review.queue.entries[0])
    assert item is not None
    return item


def decide(
    store: Store, decision: Decision, *, actor: Actor = BOB, reason: str | None = "reviewed", **told: Any
) -> Decided:
    """Decide the oldest item and return what came of it."""
    review = session(store, actor, reason)
    return review.decide(first(review), decision, **told)


def erase_source(store: Store, source: str) -> None:
    """Erase the words of a source."""
    with store.write(ANNA, "asked to") as write:
        write.erase(write.plan_erase_source(source))


def bereft(store: Store) -> Fact:
    """Return a believed fact that stands on two messages, one of which was then erased."""
    kept, gone = take(store, chat("tea it is", session="a")), take(store, chat("always tea", session="b"))
    fact = add(store, "Anna drinks tea", evidence=(*cite(f"{kept}#0", "tea it is"), *cite(f"{gone}#0", "always tea")))
    erase_source(store, gone)
    return fact


def pair(store: Store) -> tuple[Fact, Fact]:
    """Return two believed facts that say almost the same, the older first."""
    return add(store, "prefers short answers without emoji"), add(store, "prefers short answers without any emoji")


def contested(store: Store) -> tuple[Fact, Fact]:
    """Return a believed value of a slot and a rival of the same authority that is held."""
    one, other = take(store, chat("I live in Berlin", session="a")), take(store, chat("I live in Lisbon", session="b"))
    held = city(store, "Berlin", evidence=cite(f"{one}#0", "I live in Berlin"))
    return held, city(store, "Lisbon", actor=EXTRACTOR, evidence=cite(f"{other}#0", "I live in Lisbon"))


def propose(store: Store, change: Change) -> Proposal:
    """Ask for a change as a script, which may only propose it."""
    return request(store, SCRIPT, "a job asked", change).proposals[0]
