"""The built-in rules: each reads one kind of plain statement, and prefers silence to a guess."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from memcli.errors import UsageError
from memcli.extract import words
from memcli.extract.passages import (
    MAX_SENTENCE,
    NOT_TYPED,
    THE,
    Sentence,
    asked,
    blank,
    clause_end,
    mask,
    name_end,
    said_end,
    sentences,
    third_person,
    tidy,
)
from memcli.facts import Claim, Evidence, Message
from memcli.terms import Role
from memcli.text import check_typed

SUBJECT = "user"
"""The subject of every slot that a built-in rule fills."""

RULES_VERSION = 1
"""Goes up with every change of what the rules read, so that messages which older ones have read are read again."""

MAX_VALUE = 200
MAX_STATEMENT = 500
"""Characters in a value, and in a statement kept as it was said; anything longer is a paste, not a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What a rule read in `[start, end)` of a sentence."""

    rule: str
    start: int
    end: int
    text: str
    subject: str | None = None
    attribute: str | None = None
    value: str | None = None


_Build = Callable[[Sentence, re.Match[str]], _Draft | None]


def _named(sentence: Sentence, match: re.Match[str], *, commas: bool = True) -> tuple[int, str, str] | None:
    """Return the end of the name after a match, the name with and without a leading "the"; None where it is none."""
    start = match.end()
    article = THE.match(sentence.plain, start)
    if article:
        start = article.end()
    end = name_end(sentence.plain, start, lower=sentence.plain[match.start()] == "i" and not article, commas=commas)
    if end is None or sentence.plain[end:].lstrip().startswith("?"):
        return None
    name = tidy(sentence.text[start:end])
    return end, f"the {name}" if article else name, name


def _about(rule: str, match: re.Match[str], end: int, says: str, *, slot: tuple[str, str]) -> _Draft:
    attribute, value = slot
    text = f"the user {says}"
    return _Draft(rule=rule, start=match.start(), end=end, text=text, subject=SUBJECT, attribute=attribute, value=value)


def _free(rule: str, match: re.Match[str], end: int, text: str) -> _Draft:
    return _Draft(rule=rule, start=match.start(), end=end, text=text)


def slot_text(subject: str, attribute: str, value: str, *, verb: str = "is") -> str:
    """Return the sentence that stands for a slot, such as "the user's home town is Lisbon"."""
    if subject.casefold() != SUBJECT:
        return f"{subject}'s {attribute} {verb} {value}"
    owner = "the" if attribute.casefold().startswith("user ") else "the user's"
    return f"{owner} {attribute} {verb} {value}"


def _of_user(rule: str, match: re.Match[str], end: int, attribute: str, value: str, *, verb: str = "is") -> _Draft:
    text = slot_text(SUBJECT, attribute, value, verb=verb)
    return _Draft(rule=rule, start=match.start(), end=end, text=text, subject=SUBJECT, attribute=attribute, value=value)


def _attribute(said: str, value: str) -> str | None:
    """Return the attribute that "my …" names, or None where it names nothing that lasts."""
    name = words.FRESH.sub("", " ".join(said.replace("’", "'").split()), count=1)
    parts = name.casefold().split()
    if words.NO_ATTRIBUTE & set(parts) or name.casefold() in words.PASSING or parts[-1] in words.PASSING_KINDS:
        return None
    if words.STALE.search(name) or words.SECRET.search(name) or parts[0] == "name":
        return None
    # "Name" is "name", while "ID" and "iPhone" stay as they are.
    name = " ".join(w.casefold() if w[1:] == w[1:].casefold() else w for w in name.split())
    return "personal best time" if name == "personal best" and re.fullmatch(r"\d+(?::\d\d)+", value) else name


def _lasts(attribute: str, value: str) -> bool:
    """Return whether "my <attribute> is <value>" tells something that is understood, and true, after the chat."""
    if not value or words.NO_VALUE.match(value) or words.POINTING.match(value) or words.POINTS.search(value):
        return False
    if attribute.casefold().endswith(("email", "e-mail", "email address")):
        return "@" in value
    if words.LASTING.search(attribute):
        return True
    first = value.split(maxsplit=1)[0]
    if first.islower() and first.endswith(("ing", "ed")):
        return False
    bare = re.sub(r"^(?:an?|the)\s+", "", value)
    return bool(re.search(r"\d", bare)) or not (bare[0].islower() or bare[0] in "*-_.")


def _my_is(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    plural = match["verb"].casefold() == "are"
    address = match["attribute"].casefold().endswith("address")
    end = clause_end(sentence.plain, match.end(), commas="list" if plural else "keep" if address else "end")
    before = sentence.plain[: match.start()].split()[-1:]
    if end is None or before[:1] in (["of"], ["all"], ["both"]):
        return None
    value = tidy(sentence.text[match.end() : end])
    attribute = _attribute(match["attribute"], value)
    if attribute is None or not _lasts(attribute, value):
        return None
    return _of_user("my X is Y", match, end, attribute, value, verb=match["verb"].casefold())


def _my_of(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    outdone = words.OUTDONE.search(sentence.plain[: match.start()])
    value = tidy(match["value"])
    attribute = _attribute(match["attribute"], value)
    if outdone or attribute is None or not words.AFTER_NUMBER.match(sentence.plain, match.end()):
        return None
    return _of_user("my X of N", match, match.end(), attribute, value)


def _personal_best(_: Sentence, match: re.Match[str]) -> _Draft | None:
    value = tidy(match["value"])
    attribute = _attribute(match["attribute"].casefold(), value)
    return None if attribute is None else _of_user("personal best", match, match.end(), attribute, value)


def _my_name(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    found = _named(sentence, match, commas=False)
    if found is None or len(found[2].split()) > 5:
        return None
    return _of_user("my name is", match, found[0], "name", found[2])


def _call_me(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    found = _named(sentence, match, commas=False)
    if found is None or len(found[2].split()) > 3 or found[2].casefold() in ("maybe", "back", "later", "crazy"):
        return None
    return _about("call me", match, found[0], f"wants to be called {found[2]}", slot=("preferred name", found[2]))


def _live_in(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    found = _named(sentence, match)
    return found and _about("I live in", match, found[0], f"lives in {found[1]}", slot=("home", found[2]))


def _moved_to(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    found = _named(sentence, match)
    if found is None:
        return None
    end, name, value = found
    first = value.split(maxsplit=1)[0].rstrip(",")
    # People move to Postgres, to TypeScript and to Ubuntu 24 too.
    camel = first[1:] != first[1:].casefold()
    if camel or first.casefold() in words.NO_PLACE or re.match(r"[-_/+]|\s*\d", sentence.plain[end:]):
        return None
    return _about("I moved to", match, end, f"moved to {name}", slot=("home", value))


def _work_at(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    found = _named(sentence, match)
    where = match["where"].casefold()
    return found and _about("I work", match, found[0], f"works {where} {found[1]}", slot=("employer", found[2]))


def _work_as(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    end = clause_end(sentence.plain, match.end())
    if end is None:
        return None
    shorter = words.CIRCUMSTANCE.search(sentence.plain, match.end(), end)
    end = shorter.start() if shorter else end
    value = tidy(sentence.text[match.end() : end])
    if not 1 <= len(value.split()) <= 6 or words.POINTS.search(value):
        return None
    article = match["article"].casefold()
    return _about("I work", match, end, f"works as {article} {value}", slot=("occupation", value))


def _prefer(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    end = clause_end(sentence.plain, match.end())
    if end is None:
        return None
    value = third_person(tidy(sentence.text[match.end() : end]))
    if not value or words.POINTING.match(value) or words.POINTS.search(value):
        return None
    says = f"prefers {value}"
    sides = re.split(r"\s(?:over|rather than)\s", value)
    if len(sides) != 2 or not all(1 <= len(side.split()) <= 6 for side in sides):
        return _free("I prefer", match, end, f"the user {says}")
    # Named from both sides in one order, so that the opposite preference meets the same slot.
    one, other = sorted(sides, key=str.casefold)
    return _about("I prefer", match, end, says, slot=(f"preference between {one} and {other}", sides[0]))


def _allergic(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    end = clause_end(sentence.plain, match.end(), commas="list")
    if end is None:
        return None
    value = third_person(tidy(sentence.text[match.end() : end]))
    if not value or words.POINTING.match(value):
        return None
    return _free("I am allergic to", match, end, f"the user is allergic to {value}")


def _born(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    on = match["where"].casefold() == "on"
    if date := words.BIRTH_DATE.match(sentence.plain, match.end()):
        value = tidy(date["date"])
        where = "on" if re.search(r"^\d|\s\d{1,2}\b(?!\d)", value) else "in"
        return _about("I was born", match, date.end(), f"was born {where} {value}", slot=("date of birth", value))
    if not on and (year := words.BIRTH_YEAR.match(sentence.plain, match.end())):
        return _about(
            "I was born", match, year.end(), f"was born in {year['date']}", slot=("year of birth", year["date"])
        )
    found = None if on else _named(sentence, match)
    if found is None or re.match(rf"{words.MONTH}\b", found[2]):
        return None
    return _about("I was born", match, found[0], f"was born in {found[1]}", slot=("place of birth", found[2]))


def _diet(_: Sentence, match: re.Match[str]) -> _Draft | None:
    value = match["diet"].casefold()
    article = "a " if match["article"] else ""
    return _about("I am vegetarian", match, match.end(), f"is {article}{value}", slot=("diet", value))


def _instruction(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    end = said_end(sentence.plain)
    said = sentence.plain[match.start("what") : end]
    if len(said.split()) < 3 or words.UNDERSTOOD_HERE.match(said):
        return None
    return _free("please always", match, end, " ".join(sentence.text[match.start("what") : end].split()))


def _remember(sentence: Sentence, match: re.Match[str]) -> _Draft | None:
    end = said_end(sentence.plain)
    text = tidy(sentence.text[match.end() : end])
    if len(text.split()) < 3 or words.POINTING.match(text):
        return None
    return _free("remember that", match, end, text)


_I_HAVE = r"\bI(?:'ve|\s+have)?\s+"
_I_AM = rf"\bI(?:'m|\s+am)\s+{words.OFTEN}"
_PATTERNS: tuple[tuple[re.Pattern[str], _Build], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), build)
    for pattern, build in (
        (r"\bmy\s+(?:full\s+)?name(?:'s|\s+is)\s+", _my_name),
        (
            (
                rf"(?:\A\s*{words.LEAD}(?:(?:you\s+can|people|friends|everyone)\s+)?|,\s+(?:but\s+)?"
                r"|\b(?:you\s+can|please|just|my\s+friends)\s+)call\s+me\s+"
            ),
            _call_me,
        ),
        (rf"(?:\bI\s+{words.OFTEN}live|{_I_AM}(?:based|living))\s+in\s+", _live_in),
        (
            (
                rf"{_I_HAVE}{words.LATELY}moved\s+(?:back\s+)?"
                r"(?:from\s+[^,.;\s]+(?:\s+[^,.;\s]+){0,3}?\s+)?to\s+"
            ),
            _moved_to,
        ),
        (rf"\bI\s+{words.OFTEN}work\s+(?P<where>at|for)\s+", _work_at),
        (rf"\bI\s+{words.OFTEN}work\s+as\s+(?P<article>an?|the)\s+", _work_as),
        (rf"\bI\s+(?:(?:strongly|definitely|always|much)\s+)?{words.OFTEN}prefer\s+", _prefer),
        (rf"{_I_AM}(?:(?:severely|very|highly|deathly|badly|mildly)\s+)?allergic\s+to\s+", _allergic),
        (r"\bI\s+was\s+born\s+(?:and\s+raised\s+)?(?P<where>on|in)\s+", _born),
        (
            (
                rf"{_I_AM}(?P<article>an?\s+)?(?:strict(?:ly)?\s+)?(?P<diet>vegetarian|vegan|pescatarian)"
                r"(?=\s*(?:[.,;!)–—]|\Z|\s(?:and|but|so|since|because)\b))"
            ),
            _diet,
        ),
        (
            (
                rf"{_I_HAVE}{words.LATELY}(?:set|ran|run|got|achieved|hit|made|clocked|reached)\s+(?:an?|my|another)\s+"
                r"(?:new\s+)?(?P<attribute>personal\s+(?:best|record)(?:\s+time)?)\b(?:[^;!?]{0,80}?)\s(?:of|with)\s+"
                rf"(?:a\s+(?:time|result|score)\s+of\s+)?{words.NUMBER}"
            ),
            _personal_best,
        ),
        (rf"\bmy\s+{words.ATTRIBUTE}\s+of\s+{words.NUMBER}", _my_of),
        (
            (
                rf"\bmy\s+{words.ATTRIBUTE}\s+(?P<verb>is|are)\s+"
                r"(?:(?:now|actually|still|currently|called|named)\s+)*(?=\S)"
            ),
            _my_is,
        ),
        (rf"\A\s*{words.LEAD}(?<=please\s)(?P<what>(?:always|never)\s+)", _instruction),
    )
)
"""Tried in this order; what one has read, the next leaves alone."""

_REMEMBER = re.compile(
    rf"\s*{words.LEAD}(?:remember|don't\s+forget)(?:\s+that\b(?!\s+(?:{words.REMEMBERED})\b)[:,]?|:)\s+", re.IGNORECASE
)
_FACT_LINE = re.compile(r"^[ \t]*(?:[-*•][ \t]+)?FACT:[ \t]*(?P<said>\S.*)$", re.MULTILINE)

RULES: Mapping[str, str] = MappingProxyType(
    {
        "FACT": 'A line "FACT: the deploy key rotates on Fridays" is kept as it stands; '
        '"FACT: anna | home city | Lisbon" fills the slot of that subject and attribute.',
        "remember that": 'A sentence that begins "remember that …" is kept in the user\'s own words, '
        "unless other rules read all of it.",
        "my name is": '"my name is Dana Fox" fills "name".',
        "call me": '"call me Dan" fills "preferred name".',
        "I live in": '"I live in Princeton" or "I\'m based in Princeton" fills "home" with a proper name.',
        "I moved to": '"I moved to Lisbon in March" fills "home" with "Lisbon"; products such as Python are no homes.',
        "I work": '"I work at Acme" fills "employer", "I work as a nurse" fills "occupation".',
        "I prefer": '"I prefer short answers" is kept as a sentence; '
        '"I prefer tea over coffee" fills "preference between coffee and tea".',
        "I am allergic to": '"I\'m allergic to peanuts" becomes "the user is allergic to peanuts".',
        "I was born": '"I was born on 4 May 1990" fills "date of birth"; a year or a place has its own attribute.',
        "I am vegetarian": '"I\'m a vegetarian" (vegan, pescatarian) fills "diet".',
        "personal best": '"I set a personal best time in a 5K with a time of 27:12" fills "personal best time".',
        "my X of N": '"my personal best time of 25:50" fills the attribute with a value that has digits.',
        "my X is Y": '"my user ID is mia_li_3668" fills the attribute, where the value is a name, a number or a '
        "lasting taste; passwords, keys and card numbers are left alone.",
        "please always": '"please always …" and "please never …" are kept as instructions.',
    }
)
"""What each built-in rule reads, by the name that a claim carries in `rule`."""


def extract(messages: Sequence[Message]) -> Iterator[Claim]:
    """Return the claims that the built-in rules read in what the user said, in the order it was said."""
    for message in messages:
        if message.role is not Role.USER or message.tool_call_id is not None or message.erased_at is not None:
            continue
        seen: set[str] = set()
        for draft in _drafts(message.content):
            claim = _claim(message, draft)
            if claim is not None and claim.text not in seen:
                seen.add(claim.text)
                yield claim


def _drafts(content: str) -> Iterator[_Draft]:
    """Return what the rules read, with places in the whole content."""
    if content.lstrip().startswith(NOT_TYPED):
        return
    plain = mask(content)
    facts = [_fact_line(line, content) for line in _FACT_LINE.finditer(plain)]
    plain = blank(plain, [(fact.start, fact.end) for fact in facts])
    handed = words.HANDED_OVER.search(plain)
    found = list(facts)
    for start, sentence in sentences(content, plain):
        if len(sentence.plain) > MAX_SENTENCE:
            continue
        drafts = (replace(d, start=d.start + start, end=d.end + start) for d in _read(sentence))
        found.extend(d for d in drafts if handed is None or d.start < handed.start())
    yield from sorted(found, key=lambda draft: draft.start)


def _fact_line(line: re.Match[str], content: str) -> _Draft:
    said = " ".join(content[line.start("said") : line.end("said")].split())
    draft = _Draft(
        rule="FACT", start=line.start("said"), end=line.start("said") + len(line["said"].rstrip()), text=said
    )
    parts = [part.strip() for part in said.split("|")]
    if len(parts) != 3 or not all(parts):
        return draft
    subject, attribute, value = parts
    return replace(draft, text=slot_text(subject, attribute, value), subject=subject, attribute=attribute, value=value)


def _read(sentence: Sentence) -> list[_Draft]:
    """Return what the rules read in one sentence; an order to remember keeps its words unless they are all read."""
    plain = sentence.plain
    order = None if asked(plain) else _REMEMBER.match(plain)
    if order is None:
        return [] if words.ASKS.match(plain) else _specific(sentence, 0)
    inner = _specific(sentence, order.end())
    rest = plain[order.end() : said_end(plain)]
    for draft in inner:
        rest = rest.replace(plain[draft.start : draft.end], " ", 1)
    if inner and not re.sub(r"\b(?:and|also|too|as well|please|now|currently)\b|[\s,;]", "", rest):
        return inner
    kept = _remember(sentence, order)
    return [kept] if kept else []


def _specific(sentence: Sentence, start: int) -> list[_Draft]:
    found: list[_Draft] = []
    doubtful = _doubts(sentence.plain, start)
    for pattern, build in _PATTERNS:
        for match in pattern.finditer(sentence.plain, start):
            draft = None if doubtful(match.start()) else build(sentence, match)
            if draft is not None and not any(d.start < draft.end and draft.start < d.end for d in found):
                found.append(draft)
    return found


def _doubts(plain: str, start: int) -> Callable[[int], bool]:
    """Return a test of whether what is said at a place is supposed, reported, denied or doubted."""
    unreal = words.UNREAL.search(plain, start)
    clauses = [start, *(stop.end() for stop in words.CLAUSE_BREAK.finditer(plain, start))]
    unsure = [doubt.end() for doubt in words.UNSURE.finditer(plain, start)]

    def doubtful(at: int) -> bool:
        if unreal is not None and unreal.end() <= at:
            return True
        clause = clauses[bisect_right(clauses, at) - 1]
        return bisect_right(unsure, at) > bisect_right(unsure, clause)

    return doubtful


def _claim(message: Message, draft: _Draft) -> Claim | None:
    """Return the claim, or None where it is too long or holds characters that no person types."""
    if len(draft.text) > MAX_STATEMENT or any(len(part or "") > MAX_VALUE for part in (draft.attribute, draft.value)):
        return None
    try:
        for part in (draft.text, draft.subject, draft.attribute, draft.value):
            if part is not None:
                check_typed(part, what="statement")
    except UsageError:
        return None
    return Claim(
        text=draft.text,
        subject=draft.subject,
        attribute=draft.attribute,
        value=draft.value,
        evidence=(Evidence(message=message.id, quote=message.content[draft.start : draft.end].strip()),),
        rule=draft.rule,
    )
