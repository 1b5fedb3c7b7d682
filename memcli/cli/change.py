"""Commands that change what is believed: add, correct, retract, verify, dispute, undo."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.changes import Change, Done, correction, request
from memcli.cli.door import Answer, actor, ask_reason, at_terminal, confirmed, emit, read_text, refuse, store
from memcli.cli.options import (
    AsJson,
    Db,
    FactId,
    Reason,
    Scope,
    Timeout,
    ValidFrom,
    ValidTo,
    Who,
    Yes,
    instant,
    share,
)
from memcli.errors import Held, UsageError
from memcli.facts import Claim, Evidence, Fact, Json, Scalar, Validity, Written
from memcli.terms import How, Kind, Op, Visibility
from memcli.text import check_typed

if TYPE_CHECKING:
    from memcli.store.store import Store

EvidenceOption = Annotated[
    str | None, typer.Option("--evidence", metavar="MESSAGE", help="The message it comes from, such as s3#12.")
]
QuoteOption = Annotated[str | None, typer.Option("--quote", metavar="Q", help="The words in that message that say so.")]
ImportanceOption = Annotated[float | None, typer.Option("--importance", metavar="X", help="From 0 to 1.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (add, correct, retract, verify, dispute, undo):
        app.command()(command)


def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The statement; `-` reads it from standard input.")],
    subject: Annotated[str | None, typer.Option("--subject", metavar="S", help="Whom or what it is about.")] = None,
    attribute: Annotated[str | None, typer.Option("--attribute", metavar="A", help="What of the subject.")] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="V", help="The value; true, false and numbers count as such.")
    ] = None,
    evidence: EvidenceOption = None,
    quote: QuoteOption = None,
    derived_from: Annotated[
        list[str] | None, typer.Option("--derived-from", metavar="ID", help="A fact this is built on; repeatable.")
    ] = None,
    how: Annotated[
        How | None, typer.Option("--how", help="How it was derived [copied where the text is the same].")
    ] = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    kind: Annotated[Kind, typer.Option("--kind", help="What it is.")] = Kind.BELIEF,
    importance: ImportanceOption = None,
    confidence: Annotated[float | None, typer.Option("--confidence", metavar="X", help="From 0 to 1.")] = None,
    authority: Annotated[
        float | None,
        typer.Option("--authority", metavar="X", help="From 0 to 1; counts at most what the policy gives."),
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Whose it is.")] = None,
    visibility: Annotated[Visibility, typer.Option("--visibility", help="Who may see it.")] = Visibility.SHARED,
    pin: Annotated[bool, typer.Option("--pin", help="Always among the first in a context.")] = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Offer a fact. At a terminal it is accepted, otherwise it waits for review, unless the file admits directly.

    Exit codes: 0 done, 3 refused (tombstoned, a rival of more authority), 6 held (a rival of the same authority).
    """
    said = read_text(text, what="the text")
    by = actor(who)
    why = ask_reason(Op.ADD, reason)
    with store(db, scope) as mem:
        parents = [mem.get(parent, all_scopes=_free()) for parent in derived_from or ()]
        claim = Claim(
            text=said,
            subject=_word(subject, "the subject"),
            attribute=_word(attribute, "the attribute"),
            value=json_scalar(_word(value, "the value")),
            kind=kind,
            validity=Validity(start=instant(valid_from, "--valid-from"), end=instant(valid_to, "--valid-to")),
            confidence=share(confidence, "--confidence"),
            importance=share(importance, "--importance"),
            authority=share(authority, "--authority"),
            owner=_word(owner, "the owner"),
            visibility=visibility,
            pinned=pin,
            evidence=_evidence(mem, evidence, quote),
            derived_from=tuple(parent.id for parent in parents),
            how=how or (How.COPIED if [parent.text for parent in parents] == [said] else How.INFERRED),
        )
        with mem.write(by, why) as write:
            written = write.add(claim)
        _say(mem, written, as_json=as_json)


def json_scalar(text: str | None) -> Scalar:
    """Return a value as it was typed: `true`, `false` and numbers as such, anything else as text."""
    if text is None:
        return None
    try:
        value: Json = wire.loads(text)
    except UsageError:
        return text
    if isinstance(value, float) and not isfinite(value):
        return text
    return value if isinstance(value, bool | int | float) else text


def _free() -> bool:
    from memcli.cli.door import bound_scope

    return bound_scope() is None


def _word(text: str | None, what: str) -> str | None:
    return None if text is None else check_typed(text, what=what)


def _evidence(mem: "Store", message: str | None, quote: str | None) -> tuple[Evidence, ...]:
    if message is None:
        if quote is not None:
            refuse("--quote needs --evidence", "name the message it stands in")
        return ()
    return (Evidence(message=mem.message(message).id, quote=_word(quote, "the quote")),)


def _say(mem: "Store", written: Written, *, as_json: bool) -> None:
    from memcli.render.words import written_line

    fact = mem.get(written.fact.id)
    now = Written(fact=fact, outcome=written.outcome, rival=written.rival)
    short = mem.short_ids([fact.id, *([written.rival] if written.rival else [])])
    emit(Answer(document=lambda: wire.fact(fact), screen=written_line(now, short)), as_json=as_json)
    if written.outcome == "held":
        raise Held(
            f"fact {fact.id[:8]} is held: {str(written.rival)[:8]} says otherwise, on the same authority",
            hint="a person decides it with `mem review`",
        )


def correct(
    fact_id: FactId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it should say; `-` reads it from standard input.")],
    value: Annotated[
        str | None, typer.Option("--value", metavar="V", help="The slot's new value [taken from the text].")
    ] = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    evidence: EvidenceOption = None,
    quote: QuoteOption = None,
    importance: ImportanceOption = None,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Close the current version of a fact and start the next; the old value stays knowable for its time.

    With --valid-from the world changed then; without, the old value was wrong. Exit codes: 0 done, 3 refused,
    4 no such fact, 6 it became a proposal.
    """
    said = read_text(text, what="the text")
    by, why = actor(who), ask_reason(Op.CORRECT, reason)
    with store(db, scope) as mem:
        fact = mem.get(fact_id)
        start, end = instant(valid_from, "--valid-from"), instant(valid_to, "--valid-to")
        validity = None
        if start is not None or end is not None:
            validity = Validity(
                start=fact.valid.start if start is None else start, end=end if end is not None else fact.valid.end
            )
        cited = _evidence(mem, evidence, quote)
        arguments = correction(
            said,
            value=json_scalar(_word(value, "the value")),
            validity=validity,
            evidence=cited[0] if cited else None,
            importance=share(importance, "--importance"),
        )
        done = request(mem, by, why, Change(op=Op.CORRECT, facts=(fact,), arguments=arguments))
        report(mem, done, as_json=as_json)


def retract(
    fact_id: FactId, db: Db = None, scope: Scope = None, who: Who = None, reason: Reason = None, as_json: AsJson = False
) -> None:
    """End a fact with no replacement, and withdraw what was built on it; new evidence may bring the value back.

    Exit codes: 0 done, 3 refused, 4 no such fact, 6 it became a proposal.
    """
    by, why = actor(who), ask_reason(Op.RETRACT, reason)
    with store(db, scope) as mem:
        done = request(mem, by, why, Change(op=Op.RETRACT, facts=(mem.get(fact_id),)))
        report(mem, done, as_json=as_json)


def dispute(
    fact_id: FactId, db: Db = None, scope: Scope = None, who: Who = None, reason: Reason = None, as_json: AsJson = False
) -> None:
    """Hold a fact: it reaches no prompt until a person decides.

    Exit codes: 0 done, 3 refused, 4 no such fact, 6 it became a proposal.
    """
    by, why = actor(who), ask_reason(Op.DISPUTE, reason)
    with store(db, scope) as mem:
        done = request(mem, by, why, Change(op=Op.DISPUTE, facts=(mem.get(fact_id),)))
        report(mem, done, as_json=as_json)


def verify(
    fact_id: FactId,
    oracle: Annotated[
        str | None, typer.Option("--oracle", metavar="NAME", help="An oracle that the policy names.")
    ] = None,
    timeout: Annotated[float, Timeout] = 30.0,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Raise a fact to verified: at a terminal, or by an oracle that the file's policy names.

    Exit codes: 0 done, 3 refused, also by the oracle, 4 no such fact, 5 the oracle gave no answer, 6 it became a
    proposal.
    """
    by, why = actor(who), ask_reason(Op.VERIFY, reason)
    with store(db, scope) as mem:
        fact = mem.get(fact_id)
        if oracle is not None:
            from memcli.oracle import consult

            by = consult(mem, fact, oracle, timeout_s=timeout)
        change = Change(op=Op.VERIFY, facts=(fact,), arguments={} if oracle is None else {"oracle": oracle})
        report(mem, request(mem, by, why, change), as_json=as_json)


def undo(
    event: Annotated[
        str | None, typer.Argument(metavar="[EVENT]", help="An event, such as e41 [the newest change].")
    ] = None,
    yes: Yes = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Record a new change that restores what an event changed; a tombstone is lifted, never undone.

    Exit codes: 0 done, 3 refused, 4 no such event, 6 it became a proposal.
    """
    by = actor(who)
    with store(db, scope) as mem:
        wanted = mem.event(event) if event is not None else mem.last_change()
        if event is None and at_terminal() and not as_json:
            typer.echo(_preview(mem, wanted.id), err=True)
            confirmed("undo this?", yes=yes)
        why = ask_reason(Op.UNDO, reason)
        change = Change(op=Op.UNDO, arguments={"event": wanted.id})
        report(mem, request(mem, by, why, change), as_json=as_json)


def _preview(mem: "Store", name: str) -> str:
    from memcli.text import visible

    event = mem.event(name)
    fact = mem.get(event.target or "")
    said = [f"v{item.version} {item.state}: {item.text}" for item in mem.versions(fact.id)]
    return "\n".join(visible(line) for line in (f"{event.id} {event.op} {fact.id[:8]}", *said))


def report(mem: "Store", done: Done, *, as_json: bool) -> None:
    """Print what came of a change: the fact, or the tombstone, as it is now.

    Raises:
        Held: It became a proposal.
    """
    from memcli.render.words import done_line

    if done.proposals:
        waiting = [wire.proposal(item) for item in done.proposals]
        names = " ".join(item.id for item in done.proposals)
        emit(
            Answer(
                document=lambda: waiting[0] if len(waiting) == 1 else list(waiting),
                screen=f"proposed {names}",
            ),
            as_json=as_json,
        )
        done.settled()
    facts: tuple[Fact, ...] = done.facts
    short = mem.short_ids(fact.id for fact in facts)
    line = done_line(done.op, [short[fact.id] for fact in facts])
    documents = [wire.fact(fact) for fact in facts]
    emit(
        Answer(document=lambda: documents[0] if len(documents) == 1 else list(documents), screen=line),
        as_json=as_json,
    )
