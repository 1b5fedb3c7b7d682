"""A small memory file with rows in every guarded table, for what is done to it behind its back."""

from pathlib import Path

from memcli.facts import Claim, Evidence, PolicyRule
from memcli.store import Store
from memcli.terms import How, Kind, Match, Op, SourceKind, Tier
from tests.files import ANNA, BOB, SCRIPT, Clock, add, chat, cite, city, correct, memory, reject, retract, take

OTHER = "other"
"""The scope of somebody else, whose rows are as genuine as those of the default one."""

ARGUMENTS = "blake2b:0a"
ROWLESS: frozenset[str] = frozenset()
"""Guarded tables in which the sample has no row, so that nothing in them can be changed."""


def fill(path: Path) -> None:
    """Make the file: facts of every state, tombstones, proposals, an erasure, another scope, transactions."""
    clock = Clock()
    with memory(path, now=clock) as store:
        _believe(store)
        _remove(store)
    with memory(path, scope=OTHER, now=clock) as store:
        source = take(store, chat("I live in Porto", "noted", "tea, please"), path="other.json")
        fact = city(store, "Porto", evidence=cite(f"{source}#0", "live in Porto"))
        add(store, "Anna is in WET", derived_from=(fact.id,), how=How.INFERRED)
        reject(store, add(store, "coffee is cold"), everywhere=True)
    with memory(path, scope="gone", now=clock) as store:
        add(store, "this scope will go")
        with store.write(ANNA, "one is enough") as write:
            write.merge_scopes("gone", "default")
    with memory(path, now=clock) as store:
        _transact(store)


def _believe(store: Store) -> None:
    source = take(store, chat("I live in Berlin", "noted", "I moved to Lisbon", "I see", session="one"))
    fact = city(store, "Berlin", evidence=cite(f"{source}#0", "live in Berlin"), confidence=0.5, importance=0.25)
    add(store, "Anna is in CET", derived_from=(fact.id,), how=How.INFERRED, kind=Kind.SUMMARY)
    correct(store, fact, "Anna lives in Lisbon")
    add(store, "Anna likes tea", evidence=cite(f"{source}#2", "moved"), owner="anna", pinned=True)
    with store.write(BOB) as write:
        write.add(Claim(text="Anna likes tea", evidence=(Evidence(message=f"{source}#3"),)))
        write.add(Claim(text="the invoice is paid", references=("invoice 12",), rule="PAID"))
    with store.write(ANNA, "wrong tree") as write:
        write.dispute(write.add(Claim(text="the oak is a beech")).fact)


def _remove(store: Store) -> None:
    reject(store, add(store, "tea is cold"))
    retract(store, add(store, "Anna owns a bicycle"))
    with store.write(ANNA, "never") as write:
        write.tombstone(write.plan_pattern(Match.CONTAINS, "akia"))
        stone = write.tombstone(write.plan_value("tea is hot"))
        write.set_policy(PolicyRule(kind="source", name="statement", value="0.9"))
        write.set_policy(PolicyRule(kind="tool", name="send", value="irreversible"))
    with store.write(ANNA, "it was true") as write:
        write.lift(stone.id)
    with store.write(SCRIPT, "out of date") as write:
        write.propose(Op.RETRACT, write.fact(1), {"why": "old"})
        write.propose(Op.DISPUTE, write.fact(2), {})
    with store.write(SCRIPT) as write:
        write.add(Claim(text="the nightly job ran"))
    secret = add(store, "the code is 4711")
    with store.write(ANNA, "asked for") as write:
        write.erase(write.plan_erase_facts([secret]))


def _transact(store: Store) -> None:
    with store.write(ANNA, "shared work") as write:
        work = write.begin(tier=Tier.LOW)
        write.read(work.id, "anna", "home city")
        write.read(work.id, "anna", "pet")
        first = write.stage(work.id, _told("pet", "cat"))
        second = write.stage(work.id, _told("car", "blue", parents=(first.id,)))
        write.commit(work.id)
        call = write.begin(tier=Tier.LOW)
        for number, tool in enumerate(("send", "look", "look")):
            premises = (first.id, second.id) if number == 0 else (second.id,)
            receipt = write.gate(call.id, tool, ARGUMENTS, premises=premises).receipt
            assert receipt is not None
            if number < 2:
                write.act_begin(receipt.id, ARGUMENTS)
                write.act_done(receipt.id)
            else:
                write.act_plan(receipt.id, ARGUMENTS)
        write.revoke(write.fact(write.fact_number(first.id)))
        left = write.begin(tier=Tier.MEDIUM)
        write.stage(left.id, _told("shoe", "brown"), supersedes=[write.fact(number).id for number in (1, 2)])


def _told(attribute: str, value: str, *, parents: tuple[str, ...] = ()) -> Claim:
    return Claim(
        text=f"Anna's {attribute} is {value}",
        subject="anna",
        attribute=attribute,
        value=value,
        confidence=0.9,
        source="registry",
        source_kind=SourceKind.TOOL,
        references=(f"src:{attribute}",),
        derived_from=parents,
    )
