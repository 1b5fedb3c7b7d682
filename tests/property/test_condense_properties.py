"""What holds of condensing whatever the memory holds and whatever a program answers."""

import contextlib
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memcli import condense, wire
from memcli.changes import Change, request
from memcli.errors import MemError
from memcli.facts import Claim, CondensePlan, Evidence, Fact, FactQuery, Json
from memcli.store import Store
from memcli.store.check import check
from memcli.terms import Admission, Op, State, Visibility
from tests.files import ANNA, chat, memory, take

EVERYTHING = FactQuery(states=frozenset(State), any_validity=True)
NOUNS = ("tea", "milk", "the fee", "colour of tea", "color of tea", "Anna")
SAYS = ("is hot", "is really hot", "is not hot", "is 20 EUR", "is 30 EUR", "is in Lisbon")
TEXTS = st.builds(lambda noun, says, mark: f"{noun} {says}{mark}", *map(st.sampled_from, (NOUNS, SAYS, ("", ".", " "))))
KINDS = ("plain", "plain", "plain", "pin", "verify", "correct", "derive", "private", "slot")
SPEC = st.tuples(TEXTS, st.sampled_from(KINDS))
MEMORIES = st.lists(SPEC, min_size=1, max_size=9)

slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def filled(specs: list[tuple[str, str]]) -> Iterator[Store]:
    """Give a file with what the specs say, the same also in a second scope."""
    folder = Path(tempfile.mkdtemp())
    try:
        for scope in ("other", "default"):
            with memory(folder / "m.db", admission=Admission.DIRECT, scope=scope) as store:
                source = take(store, chat(*(text for text, _ in specs)))
                for at, (text, kind) in enumerate(specs):
                    with contextlib.suppress(MemError):
                        put(store, text, kind, f"{source}#{at}")
        with memory(folder / "m.db") as store:
            yield store
    finally:
        shutil.rmtree(folder)


def put(store: Store, text: str, kind: str, message: str) -> None:
    told: dict[str, Any] = {"evidence": (Evidence(message=message),), "pinned": kind == "pin"}
    if kind == "private":
        told["visibility"] = Visibility.PRIVATE
    if kind == "slot":
        told |= {"subject": "tea", "attribute": "state", "value": text.rsplit(maxsplit=1)[-1]}
    known = list(store.facts())
    if kind == "derive" and known:
        told["derived_from"] = (known[0].id,)
    with store.write(ANNA, "because") as write:
        fact = write.add(Claim(text=text, **told)).fact
        if kind == "verify":
            write.verify(fact)
        if kind == "correct":
            write.correct(fact, f"{text} today")


def planned(store: Store, *, max_facts: int | None = None) -> CondensePlan:
    write = store.planner(ANNA)
    return write.foresee(condense.plan_duplicates(write.material(), max_facts=max_facts))


def applied(store: Store, plan: CondensePlan) -> None:
    request(store, ANNA, "too many", Change(op=Op.CONDENSE, arguments=wire.condense_arguments(plan)))


def answer(store: Store, seed: int) -> Json:
    """Return what a careless program might answer: facts put together, dropped and forgotten at random."""
    chance = random.Random(seed)
    names = [fact.id for fact in store.facts()]
    chance.shuffle(names)
    facts: list[Json] = []
    dropped: list[Json] = []
    while names:
        part: list[Json] = [names.pop() for _ in range(min(len(names), chance.randint(1, 3)))]
        what = chance.choice(("keep", "keep", "make", "make", "drop", "forget", "into"))
        if what == "keep":
            facts += [{"keep": name} for name in part]
        elif what == "into":
            facts.append({"keep": part[0], "from": part[1:]})
        elif what == "make":
            facts.append({"text": chance.choice((*SAYS, "rumour has it", "Tea is hot")), "from": part})
        elif what == "drop":
            dropped += part
    return {"facts": facts, "dropped": dropped}


def guessed(store: Store, seed: int) -> CondensePlan | None:
    """Return the plan of a careless program, with everything allowed to go that may, or None where there is none."""
    write = store.planner(ANNA)
    material = write.material()
    allowed = [fact.id for fact in material.facts]
    try:
        plan = condense.plan_of_answer("any", answer(store, seed), material, max_facts=None, allowed=allowed)
        return write.foresee(plan)
    except MemError:
        return None


def content(facts: list[Fact]) -> list[tuple[object, ...]]:
    return sorted((fact.id, fact.version, fact.revision, fact.state, fact.text, fact.provenance) for fact in facts)


def protected(store: Store) -> set[str]:
    return set(store.planner(ANNA).material().protected)


@slow
@given(MEMORIES, st.integers(0, 10_000))
def test_every_fact_is_accounted_for_once_and_every_new_one_comes_from_some(specs: list[tuple[str, str]], seed: int):
    with filled(specs) as store:
        for plan in (planned(store), guessed(store, seed)):
            if plan is None:
                continue
            merged = [name for item in plan.merged for name in item.parents]
            assert Counter([*plan.kept, *merged, *plan.dropped]) == Counter(fact.id for fact in store.facts())
            assert {item.id for item in plan.lost} >= set(plan.dropped)


@slow
@given(MEMORIES, st.integers(0, 10_000))
def test_whatever_is_applied_keeps_what_is_protected_and_the_file_whole(specs: list[tuple[str, str]], seed: int):
    with filled(specs) as store:
        before, held = {fact.id: fact for fact in store.facts()}, protected(store)
        plan = guessed(store, seed)
        with contextlib.suppress(MemError):
            applied(store, plan or planned(store))

        after = {fact.id: fact for fact in store.facts()}
        assert held <= set(after)
        assert {name: after[name].text for name in held} == {name: before[name].text for name in held}
        assert [item.id for item in (plan.lost if plan else ()) if item.id in held and item.id not in after] == []
        assert check(store) == []


@slow
@given(MEMORIES, st.integers(0, 10_000))
def test_the_evidence_of_all_that_was_merged_stands_behind_what_is_left(specs: list[tuple[str, str]], seed: int):
    with filled(specs) as store:
        before = {fact.id: fact for fact in store.facts()}
        plan = guessed(store, seed) or planned(store)
        made: tuple[Fact, ...] = ()
        with contextlib.suppress(MemError):
            change = Change(op=Op.CONDENSE, arguments=wire.condense_arguments(plan))
            made = request(store, ANNA, "too many", change).facts

        for one, item in zip(made, plan.merged, strict=False):
            contents = {store.message(found.message or "").content for found in one.provenance}
            for name in item.parents:
                assert {store.message(found.message or "").content for found in before[name].provenance} <= contents


@slow
@given(MEMORIES)
def test_condensing_a_second_time_changes_nothing(specs: list[tuple[str, str]]):
    with filled(specs) as store:
        applied(store, planned(store))
        before = content(list(store.facts(EVERYTHING)))

        assert not planned(store).changes
        applied(store, planned(store))
        assert content(list(store.facts(EVERYTHING))) == before


@slow
@given(MEMORIES, st.integers(0, 10_000), st.sampled_from(SAYS))
def test_no_rejected_value_becomes_readable(specs: list[tuple[str, str]], seed: int, word: str):
    with filled([*specs, (word, "plain")]) as store:
        wrong = next(fact for fact in store.facts() if fact.text == word)
        with store.write(ANNA, "never true") as write:
            write.tombstone(write.plan_facts((wrong,)))
        for plan in (guessed(store, seed), planned(store)):
            if plan is not None:
                with contextlib.suppress(MemError):
                    applied(store, plan)

        assert [fact.id for fact in store.facts() if fact.text.casefold() == word.casefold()] == []
        assert store.get(wrong.id).state is State.REJECTED


@slow
@given(MEMORIES, st.integers(0, 10_000))
def test_no_other_scope_is_touched(specs: list[tuple[str, str]], seed: int):
    with filled(specs) as store, memory(store.path, scope="other") as other:
        before = content(list(other.facts(EVERYTHING)))
        for plan in (guessed(store, seed), planned(store)):
            if plan is not None:
                with contextlib.suppress(MemError):
                    applied(store, plan)

        assert before
        assert content(list(other.facts(EVERYTHING))) == before
