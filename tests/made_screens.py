"""Screens made of made data, and the texts that try to break them."""

import unicodedata
from dataclasses import replace

from memcli.facts import (
    Actor,
    ErasePlan,
    Finding,
    Imported,
    ImportReport,
    LogVerdict,
    PolicyRule,
    ScopeInfo,
    Similar,
    TombstonePlan,
    Validity,
    Warned,
)
from memcli.render.changes import erase_plan_screen, log_screen, tombstone_plan_screen
from memcli.render.file import (
    check_screen,
    glossary_screen,
    import_screen,
    policy_screen,
    scopes_screen,
    stats_screen,
)
from memcli.render.memory import fact_screen, facts_screen, recall_screen, why_screen
from memcli.render.review import queue_item_screen
from memcli.terms import ActorKind, Channel, How, Match, Op, Role, State
from tests import made
from tests.made import NOW, at, event, excerpt, fact, free, message, provenance

SHORT = {"4f2a77d0": "4f2a"}
HOSTILE = {
    "escape": "\x1b[31mred\x1b[0m",
    "hyperlink": "\x1b]8;;https://example.com\x1b\\click\x1b]8;;\x1b\\",
    "bidi": "user \u202e evil \u2066 x \u200b \ufeff",
    "markup": "[red]not red[/red] [link=https://example.com]x[/link] :smile: \\[bold]",
    "lines": "one\ntwo\r\nthree\u2028four\x85five\x0b\x0c",
    "tabs": "a\tb\t\tc",
    "long": "word " * 2000,
    "unbroken": "x" * 10_000,
    "wide": "東京" * 200,
    "emoji": "👩‍👩‍👧❤️🇵🇹👍🏽1️⃣ " * 30,
    "surrogate": "a\ud800b",
    "combining": "e\u0301" * 300,
    "nul": "a\0b\x7f\x9b31m",
    "empty": "",
    "space": "   ",
}


def hostile_fact(text, **changes):
    return fact(text=text, subject=text, attribute=text, value=text, scope=text, owner=text, rule=text, **changes)


def by(text):
    """Return somebody whose name is the text."""
    return Actor(name=text, kind=ActorKind.SCRIPT, channel=Channel.PIPE)


def hostile_evidence(text):
    """Return a message full of the text, with a quote that stands in it and one that does not."""
    shown = excerpt(
        provenance=provenance(quote=text),
        message=message(content=f"{text}{text}", name=text, at_text=text),
        before=message(211, Role.TOOL, text),
        after=message(213, Role.ASSISTANT, text),
        path=text,
    )
    return shown, replace(shown, provenance=provenance(quote=text, verified=False, span=(900, 9000)))


def looking(text, ids):
    """Return the screens that look into a file of which every word is the text."""
    lost = (provenance(quote=text, source=text, verified=False),)
    bad, other = hostile_fact(text, actor=by(text), provenance=lost), free("8a11", text, State.REVOKED)
    counts = {"readable": 1, "total": 2, "waiting": 3, "sightings": {"4f2a77d0": 2}}
    acts = [event(1, Op.ADD, reason=text, actor=by(text), target=text), event(2, reason=None, target=None)]
    finding = Finding(code="chain-broken", place=text, message=text)
    evidence = [*hostile_evidence(text), provenance(quote=text)]
    kin = [(bad, How.COPIED), (other, How.INFERRED)]
    return [
        facts_screen([bad, other], path=text, scope=text, scope_column=True, **counts, **ids),
        fact_screen(bad, now=NOW, **ids),
        why_screen(bad, versions=[bad], excerpts=evidence, parents=kin, children=kin, events=acts, **ids),
        recall_screen([(bad, 0.9, {"recency": 0.1})], query=text, explain=True, **ids),
        recall_screen([], query=text, **ids),
        log_screen(acts, now=NOW, verified=LogVerdict(events=2, head=text, findings=(finding,)), **ids),
    ]


def changing(text, ids):
    """Return the screens that plan or decide a change."""
    bad, other = hostile_fact(text, actor=by(text)), free("8a11", text, State.REVOKED)
    near = Similar(id="b210", text=text, score=71.4, state=State.ACCEPTED)
    stops = {"scope": text, "match": Match.CONTAINS, "pattern": text, "values": (text,), "slots": ((text,) * 3,)}
    tombstone = TombstonePlan(**stops, hits=(bad,), falls=(other,), near=(near,))
    erase = ErasePlan(facts=(bad,), messages=(text,), sources=(text,), reviewed=(other,), falls=(other,))
    item = made.queue_item(
        fact=bad,
        detail=text,
        evidence=hostile_evidence(text),
        conflicts=(other,),
        similar=(near,),
        proposal=made.proposal(reason=text, arguments={"text": text, text: [text]}, actor=by(text)),
    )
    return [
        tombstone_plan_screen(tombstone, **ids),
        erase_plan_screen(erase, **ids),
        queue_item_screen(item, position=3, total=17, now=NOW, **ids),
    ]


def about(text, width):
    """Return the screens about the file itself."""
    scope = ScopeInfo(name=text, facts=1, readable=1, sources=1, tombstones=1)
    warned = (Warned(line=1, message=text),)
    report = ImportReport(path=text, format=None, tried=("openai", text), roles={text: 1}, warnings=warned)
    known = Imported(source=text, new=1, same=0, session=text, title=text)
    return [
        stats_screen(made.stats(path=text, scope=text, encoding=text), width=width),
        check_screen([Finding(code="chain-broken", place=text, message=text)], width=width),
        glossary_screen({text: text}, width=width),
        scopes_screen([scope], default=text, width=width),
        policy_screen([PolicyRule(kind="source", name=text, value=text)], width=width),
        import_screen([report, replace(report, error=text), replace(report, messages=5)], [known], width=width),
    ]


def screens(text, width):
    """Return every screen there is, with one text in all the places that somebody else can write."""
    ids = {"short_ids": SHORT, "width": width}
    return [*looking(text, ids), *changing(text, ids), *about(text, width)]


def control_characters(text):
    """Return what a terminal could take for an order: controls, format characters, lone surrogates."""
    found = set(text) - {"\n"}
    return {char for char in found if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}} | (
        found & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
    )


def listed(width=80, **changes):
    facts = [
        fact(),
        free("9c01", "is allergic to penicillin", State.VERIFIED, subject="anna"),
        free("b7d3", "budget is 2,400 EUR, train not plane", subject="trip", valid=Validity(start=at("2026-06-01"))),
        free("c5e8", "prefers short answers without emoji"),
        free("e1f9", "contract ends 30 Jun / 31 Jul", State.DISPUTED, subject="acme"),
    ]
    counts = {"readable": 4, "total": 7, "waiting": 3, "sightings": {"4f2a77d0": 2, "9c01": 1, "c5e8": 1300}}
    words = {"path": "memory.db", "scope": "user/anna", "short_ids": SHORT, "width": width}
    return facts_screen(facts, **{**words, **counts, **changes})


def versions():
    first = {"value": "Berlin", "text": "Anna lives in Berlin", "version": 1}
    moved = at("2026-03-05")
    return [
        fact(**first, state=State.TENTATIVE, valid=Validity(), recorded_at=at("2026-01-02T10:00")),
        fact(**first, revision=2, valid=Validity(), recorded_at=at("2026-01-02T10:05")),
        fact(
            **first,
            revision=3,
            state=State.SUPERSEDED,
            valid=Validity(start=at("2019-01-01"), end=moved),
            recorded_at=at("2026-03-12T09:20"),
        ),
        fact(),
    ]


def why(width=80):
    child = free("8a11", "Anna’s time zone is WET")
    acts = [
        event(41, Op.ADD, actor=made.EXTRACTOR, reason=None, at=at("2026-01-02T10:00")),
        event(57, Op.CORRECT),
    ]
    return why_screen(
        fact(),
        versions=versions(),
        excerpts=[excerpt()],
        parents=[],
        children=[(child, How.INFERRED)],
        events=acts,
        short_ids=SHORT,
        width=width,
    )
