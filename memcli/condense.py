"""Plans that replace many facts by few: from built-in rules, which only merge, or from any program.

The rules merge two facts of one owner, visibility and valid time, about one subject, where they say the same:

- the same text, as a tombstone would recognise it (case, white space, look-alikes and sentence punctuation aside);
- the same value in the same slot, where the text that goes names nobody, no number and no denial that the other lacks;
- the same words in the same order but for articles and fillers (“the”, “also”, “really”) and for spellings of one word
  that differ in one doubled letter or in “our” and “or” (“traveling”, “colour”). Numbers, dates, names and denials are
  words like any other, so that texts that differ in one are never near duplicates.

Of facts that become one, the one that says most stays as it is: protected ones first, then those with a slot, those
with the most evidence, the oldest. The rules invent no text, and lose only what a person named.

A program reads one JSON object on standard input:

    {"version": 1, "max_facts": 10, "note": "…", "facts": [{… as `mem show --json` prints it …, "protected": true}]}

and prints one: `{"facts": [{"text": "…", "subject": …, "attribute": …, "value": …, "from": [ids], "keep": id}],
"dropped": [ids]}`. The list of facts is the complete replacement. `{"keep": id}` leaves a fact as it is; with `from`
beside it, it takes the evidence of those. An entry without `keep` is a new fact made of `from`. What neither list names
is dropped. Each id stands in one place only.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from memcli import wire
from memcli.command import converse
from memcli.errors import Loss, MemError, Unreadable, UsageError
from memcli.facts import Condensable, CondensePlan, Fact, Json, Merging, Scalar, Vanishing
from memcli.keys import normalise
from memcli.record import record
from memcli.terms import Kind
from memcli.text import check_typed

if TYPE_CHECKING:
    from memcli.store.condense import Material

PROTOCOL = 1
"""The version of the JSON that an external command reads and prints."""

MAX_TEXT = 10_000
"""Characters in one text of a command's answer; a longer one is no fact."""

NEAR_SCORE = 90.0
"""How alike, of 100, the words of two texts must be beside an equal order of words, fillers left out."""

FILLERS = frozenset({"a", "an", "the", "also", "really", "please", "actually", "indeed"})
"""Words whose absence changes nothing, where another word follows."""

DENIALS = frozenset(
    {"not", "no", "never", "none", "nobody", "nothing", "nowhere", "neither", "nor", "without", "cannot", "hardly"}
)
"""Words that deny; so does every word that ends in “n't”."""

NOTE = (
    "Your list of facts is the complete replacement: a fact that it neither keeps nor merges is lost. Keep protected"
    " facts as they are. Invent nothing."
)
"""What a command is told beside the facts."""

_LONG = 9
_BRITISH = re.compile(r"(\w{3})our")


# -------------------------------------------------------------------- the built-in rules


def plan_duplicates(material: "Material", *, max_facts: int | None, allowed: Sequence[str] = ()) -> CondensePlan:
    """Return a plan that merges what says the same; where that leaves too many, it drops what may be lost.

    Args:
        max_facts: The most that may be left; None merges and drops nothing.
        allowed: Ids of facts that may be lost, the first to go first; only as many go as must.
    """
    places = _Places()
    merged: dict[str, list[str]] = {}
    for fact in sorted(material.facts, key=lambda fact: _rank(fact, material.protected)):
        said = _Said.of(fact)
        leader = None if fact.id in material.protected else places.leader(said, material.apart)
        if leader is None:
            places.put(said)
            merged[fact.id] = []
        else:
            merged[leader.fact.id].append(fact.id)
    texts = {fact.id: fact.text for fact in material.facts}
    left = [fact.id for fact in material.facts if fact.id in merged]
    free = [name for name in allowed if not merged.get(name, [""]) and name not in material.protected]
    surplus = 0 if max_facts is None else max(0, len(left) - max_facts)
    dropped = tuple(dict.fromkeys(free))[:surplus]
    return CondensePlan(
        max_facts=max_facts,
        facts=tuple(_seen(material)),
        kept=tuple(name for name in left if name not in dropped),
        merged=tuple(
            Merging(text=texts[name], parents=tuple(merged[name]), keep=name) for name in left if merged[name]
        ),
        dropped=dropped,
        lost=tuple(Vanishing(id=name, text=texts[name], why="dropped") for name in dropped),
        allowed=tuple(allowed),
    )


def _seen(material: "Material") -> Iterator[Condensable]:
    for fact in material.facts:
        yield Condensable(
            id=fact.id,
            version=fact.version,
            revision=fact.revision,
            text=fact.text,
            protected=material.protected.get(fact.id),
        )


def _rank(fact: Fact, protected: Mapping[str, str]) -> tuple[bool, bool, int, int, str]:
    """Return what puts a fact that says most first."""
    return fact.id not in protected, fact.slot is None, -len(fact.provenance), fact.recorded_at, fact.id


@record
class _Said:
    """What is compared of a fact.

    Args:
        bare: Its words without fillers.
        named: Words with a capital or a digit anywhere: names, dates, numbers.
    """

    fact: Fact
    text: str
    bare: tuple[str, ...]
    named: frozenset[str]
    slot: tuple[str, str, str] | None

    @classmethod
    def of(cls, fact: Fact) -> "_Said":
        """Return what is compared of a fact."""
        text = normalise(fact.text)
        slot = None
        if fact.subject is not None and fact.attribute is not None:
            slot = (normalise(fact.subject), normalise(fact.attribute), _as_text(fact.value))
        named = [word for word in fact.text.split() if any(char.isupper() or char.isdigit() for char in word)]
        return cls(
            fact=fact,
            text=text,
            bare=_bare(fact.text, text.split()),
            named=frozenset(part for word in named for part in normalise(word).split()),
            slot=slot,
        )

    def places(self) -> Iterator[tuple[object, ...]]:
        """Yield the places where something that says the same would stand."""
        yield "text", self.text
        yield "bare", self.bare
        if self.slot is not None:
            yield "slot", self.slot
        for at, word in enumerate(self.bare):
            if len(word) >= _LONG or "or" in word or "our" in word:
                yield "but", at, self.bare[:at], self.bare[at + 1 :]


def _as_text(value: Scalar) -> str:
    return normalise(value) if isinstance(value, str) else wire.dumps(wire.scalar(value))


def _bare(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words without fillers; an “A” that stands for itself, as in “vitamin A”, is none."""
    letter = re.search(r"\s[A]\b", unicodedata.normalize("NFKC", text)) is not None
    fillers = FILLERS - {"a"} if letter else FILLERS
    return tuple(word for at, word in enumerate(words) if word not in fillers or at + 1 == len(words))


class _Places:
    """Facts that stay, found by what they say."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], list[_Said]] = {}

    def put(self, said: _Said) -> None:
        """Remember a fact that stays."""
        for key in said.places():
            self._found.setdefault(key, []).append(said)

    def leader(self, said: _Said, apart: frozenset[frozenset[str]]) -> _Said | None:
        """Return the first fact that stays and says what this one says, or None."""
        for key in said.places():
            for other in self._found.get(key, ()):
                if frozenset((said.fact.id, other.fact.id)) not in apart and _same(other, said):
                    return other
        return None


def _same(stays: _Said, goes: _Said) -> bool:
    """Return whether a fact that stays says all that another says."""
    one, other = stays.fact, goes.fact
    if other.kind is not Kind.BELIEF or one.kind is not Kind.BELIEF:
        return False
    if (one.owner, one.visibility, one.valid) != (other.owner, other.visibility, other.valid):
        return False
    if goes.slot is not None and goes.slot != stays.slot:
        return False
    if other.subject is not None and (one.subject is None or normalise(other.subject) != normalise(one.subject)):
        return False
    return stays.text == goes.text or (goes.slot is not None and _covers(stays, goes)) or _near(stays, goes)


def _covers(stays: _Said, goes: _Said) -> bool:
    """Return whether the text that goes names nothing, and denies nothing, that the other one lacks."""
    words = {*stays.text.split(), *(word for part in stays.slot or () for word in part.split())}
    return goes.named - FILLERS <= words and _denials(stays) == _denials(goes)


def _denials(said: _Said) -> Counter[str]:
    return Counter(word for word in said.bare if word in DENIALS or word.endswith("n't"))


def _near(one: _Said, other: _Said) -> bool:
    """Return whether two texts are the same words in the same order, but for fillers and one spelling."""
    from rapidfuzz import fuzz  # 45 ms, needed only here

    if one.bare == other.bare:
        return True
    apart = [at for at, pair in enumerate(zip(one.bare, other.bare, strict=False)) if pair[0] != pair[1]]
    if len(one.bare) != len(other.bare) or len(apart) != 1:
        return False
    first, second = one.bare[apart[0]], other.bare[apart[0]]
    if {first, second} & (one.named | other.named) or not _spelt(first, second):
        return False
    return fuzz.ratio(" ".join(one.bare), " ".join(other.bare)) >= NEAR_SCORE


def _spelt(one: str, other: str) -> bool:
    """Return whether two words are spellings of one: a letter doubled or not, or “our” and “or”."""
    from rapidfuzz.distance import Indel

    if not (one.isalpha() and other.isalpha()):
        return False
    if _BRITISH.sub(r"\1or", one) == _BRITISH.sub(r"\1or", other):
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < _LONG or Indel.distance(short, long) != 1:
        return False
    # Of a doubled letter, either may be the one too many.
    return any(long[at] == long[at - 1] and long[:at] + long[at + 1 :] == short for at in range(1, len(long)))


# -------------------------------------------------------------------- any program


def plan_of_command(
    command: str, material: "Material", *, max_facts: int | None, allowed: Sequence[str] = (), timeout_s: float
) -> CondensePlan:
    """Return the plan that an external command makes; all of its answer is taken, or none.

    The command line is split like a shell does and run without one. What it reads and prints is written above.

    Args:
        max_facts: The most that it may leave; None leaves that to it.
        allowed: Ids of facts that may be lost.
        timeout_s: Seconds until the command and all it started are ended.

    Raises:
        UsageError: The command line is empty or has an open quote.
        Unreadable: The command failed, took too long, printed too much, or printed something else.
        Loss: Facts that may never vanish are more than may be left.
    """
    check_room(material, max_facts)
    request: dict[str, Json] = {
        "version": PROTOCOL,
        "max_facts": max_facts,
        "note": NOTE,
        "facts": [{**wire.fact(fact), "protected": fact.id in material.protected} for fact in material.facts],
    }
    answer = converse(command, request, timeout_s=timeout_s)
    return plan_of_answer(command, answer, material, max_facts=max_facts, allowed=allowed)


def plan_of_answer(
    who: str, answer: Json, material: "Material", *, max_facts: int | None, allowed: Sequence[str] = ()
) -> CondensePlan:
    """Return the plan that an answer makes of facts that were given; all of it is taken, or none.

    Args:
        who: Who answers, for a sentence about what is wrong.

    Raises:
        Unreadable: It is not of the form that was asked for, or leaves more facts than that.
    """
    read = _Answer(who, material)
    read.take(answer)
    plan = read.plan(max_facts, allowed)
    if max_facts is not None and plan.left > max_facts:
        raise Unreadable(
            who,
            f"its answer leaves {plan.left:,} facts, and at most {max_facts:,} were asked for",
            hint="let it heed max_facts",
        )
    return plan


def check_room(material: "Material", max_facts: int | None) -> None:
    """Refuse to leave fewer facts than may never vanish.

    Raises:
        Loss: They are more than may be left.
    """
    held = len(material.protected)
    if max_facts is not None and held > max_facts:
        raise Loss(
            f"{held:,} facts are protected and never vanish, and at most {max_facts:,} were asked for",
            hint=f"ask for --max-facts {held} or more",
        )


class _Answer:
    """What is said of each fact that was given, read entry by entry."""

    def __init__(self, who: str, material: "Material") -> None:
        self._who = who
        self._material = material
        self._facts = {fact.id: fact for fact in material.facts}
        self._placed: set[str] = set()
        self._kept: set[str] = set()
        self._merged: list[Merging] = []
        self._dropped: list[str] = []

    def take(self, answer: Json) -> None:
        """Take the whole answer.

        Raises:
            Unreadable: It is not of the form that was asked for, or speaks of a fact twice or of one it was not given.
        """
        if not isinstance(answer, dict) or not isinstance(answer.get("facts"), list):
            self._fail("its answer holds no list of facts", 'let it print {"facts": [...], "dropped": [...]}')
        if answer.get("version", PROTOCOL) != PROTOCOL:
            self._fail(f"its answer is not in version {PROTOCOL}", f'let it print "version": {PROTOCOL}')
        for number, item in enumerate(_listed(answer, "facts"), start=1):
            try:
                self._take_entry(item)
            except MemError as error:
                self._fail(f"fact {number} of its answer: {error.message}", error.hint)
        try:
            self._dropped += self._place(_listed(answer, "dropped"))
        except UsageError as error:
            self._fail(f"dropped in its answer: {error.message}", error.hint)

    def plan(self, max_facts: int | None, allowed: Sequence[str]) -> CondensePlan:
        """Return the plan; what the answer does not speak of is dropped."""
        rest = [name for name in self._facts if name not in self._placed]
        lost = [(name, "dropped") for name in self._dropped] + [(name, "left out") for name in rest]
        return CondensePlan(
            max_facts=max_facts,
            facts=tuple(_seen(self._material)),
            kept=tuple(name for name in self._facts if name in self._kept),
            merged=tuple(self._merged),
            dropped=(*self._dropped, *rest),
            lost=tuple(Vanishing(id=name, text=self._facts[name].text, why=why) for name, why in lost),
            allowed=tuple(allowed),
        )

    def _fail(self, why: str, hint: str | None) -> NoReturn:
        raise Unreadable(self._who, why, hint=hint)

    def _place(self, names: Iterable[Json]) -> list[str]:
        """Return ids that the answer gives a place, each of which has none yet."""
        found: list[str] = []
        for name in names:
            if not isinstance(name, str) or name not in self._facts:
                raise UsageError(f"there is no fact {name}", hint="use the whole ids of the facts it was given")
            if name in self._placed:
                raise UsageError(f"fact {name} has a place already", hint="name each fact once")
            self._placed.add(name)
            found.append(name)
        return found

    def _take_entry(self, item: Json) -> None:
        if not isinstance(item, dict):
            raise UsageError("it is no object", hint='try {"keep": ID} or {"text": "…", "from": [ID, …]}')
        keep, parents = item.get("keep"), self._place(_listed(item, "from"))
        if keep is None:
            self._make(item, parents)
            return
        (kept,) = self._place([keep])
        self._check_words(item, self._facts[kept])
        self._keep(kept, parents)

    def _keep(self, kept: str, parents: Sequence[str]) -> None:
        self._kept.add(kept)
        if parents:
            self._merged.append(Merging(text=self._facts[kept].text, parents=tuple(parents), keep=kept))

    def _check_words(self, item: Mapping[str, Json], fact: Fact) -> None:
        said = {"text": fact.text, "subject": fact.subject, "attribute": fact.attribute, "value": fact.value}
        for name, held in said.items():
            if item.get(name) is not None and item[name] != held:
                raise UsageError(
                    f"it keeps {fact.id} with another {name}",
                    hint="leave out keep to make a new fact, or everything beside keep and from",
                )

    def _make(self, item: Mapping[str, Json], parents: Sequence[str]) -> None:
        claim = wire.claim_from({name: item.get(name) for name in ("text", "subject", "attribute", "value")})
        if not parents:
            raise UsageError("it comes from no fact", hint='name the facts it is made of in "from"')
        said = {"text": claim.text, "subject": claim.subject, "attribute": claim.attribute, "value": claim.value}
        for what, text in said.items():
            if isinstance(text, str):
                check_typed(text, what=what)
                if len(text) > MAX_TEXT:
                    raise UsageError(f"{what} has more than {MAX_TEXT:,} characters", hint="let it be one statement")
        wanted, slot = normalise(claim.text), (claim.subject, claim.attribute, claim.value)
        same = [name for name in parents if normalise(self._facts[name].text) == wanted]
        same = [name for name in same if slot in {(None, None, None), _slot(self._facts[name])}]
        if same:
            # A fact with the words of one it is made of is that fact.
            kept = next((name for name in same if name in self._material.protected), same[0])
            self._keep(kept, [name for name in parents if name != kept])
            return
        self._merged.append(
            Merging(
                text=claim.text,
                parents=tuple(parents),
                subject=claim.subject,
                attribute=claim.attribute,
                value=claim.value,
            )
        )


def _slot(fact: Fact) -> tuple[str | None, str | None, Scalar]:
    return fact.subject, fact.attribute, fact.value


def _listed(document: Mapping[str, Json], key: str) -> list[Json]:
    found = document.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise UsageError(f"{key} is no list", hint=f"put {key} in square brackets, or leave it out")
    return found
