"""Commands that end things for good: tombstone, lift, erase."""

from typing import Annotated

import typer

from memcli import wire
from memcli.changes import Change, Done, plan, plan_erase, request
from memcli.cli.change import report
from memcli.cli.door import Answer, actor, ask_reason, confirmed, emit, refuse, store
from memcli.cli.options import AsJson, Db, DryRun, FactIds, Reason, Scope, Who, Yes
from memcli.facts import ErasePlan, Json, TombstonePlan
from memcli.store.store import Store
from memcli.terms import Match, Op
from memcli.text import check_typed


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    for command in (tombstone, lift, erase):
        app.command()(command)


def tombstone(
    ids: FactIds = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="TEXT", help="This value, however it is spelt.")
    ] = None,
    contains: Annotated[
        str | None, typer.Option("--contains", metavar="TEXT", help="Every text that contains this.")
    ] = None,
    regex: Annotated[str | None, typer.Option("--regex", metavar="RE", help="Every text that matches this.")] = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="In every scope.")] = False,
    all_versions: Annotated[bool, typer.Option("--all-versions", help="Every value the facts ever had.")] = False,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Reject a value for good: whoever offers it again is refused, until a person lifts the tombstone.

    Exit codes: 0 done, 3 refused, 4 no such fact, 6 it became a proposal.
    """
    by = actor(who)
    why = None if dry_run else ask_reason(Op.TOMBSTONE, reason)
    with store(db, scope) as mem:
        change = _wanted(mem, ids, {"value": value, "contains": contains, "regex": regex}, everywhere, all_versions)
        if everywhere:
            _check_free()
        if dry_run:
            _show_plan(mem, plan(mem.planner(by), change), as_json=as_json)
            return
        _report_stone(mem, request(mem, by, why, change), as_json=as_json)


def _check_free() -> None:
    from memcli.cli.door import bound_scope
    from memcli.errors import OutOfScope

    bound = bound_scope()
    if bound is not None:
        raise OutOfScope(f"this process is bound to {bound} and may not act everywhere", hint="leave out --everywhere")


def _wanted(
    mem: Store, ids: list[str] | None, texts: dict[str, str | None], everywhere: bool, all_versions: bool
) -> Change:
    given = {name: text for name, text in texts.items() if text is not None}
    if len(given) + bool(ids) != 1:
        refuse("name facts, or exactly one of --value, --contains and --regex", "see `mem tombstone --help`")
    arguments: dict[str, Json] = {"everywhere": everywhere, "all_versions": all_versions}
    for name, text in given.items():
        arguments |= {"match": str(Match(name)), "text": check_typed(text, what=f"--{name}")}
    return Change(op=Op.TOMBSTONE, facts=tuple(mem.get(fact) for fact in ids or ()), arguments=arguments)


def _show_plan(mem: Store, found: TombstonePlan, *, as_json: bool) -> None:
    from memcli.render.changes import tombstone_plan_screen

    ids = [fact.id for fact in (*found.hits, *found.falls)] + [near.id for near in found.near]
    emit(
        Answer(
            document=lambda: wire.tombstone_plan(found),
            screen=lambda width: tombstone_plan_screen(found, short_ids=mem.short_ids(ids), width=width),
        ),
        as_json=as_json,
    )


def _report_stone(mem: Store, done: Done, *, as_json: bool) -> None:
    from memcli.render.words import done_line

    stone = done.tombstone
    if stone is None or done.proposals:
        report(mem, done, as_json=as_json)
        return
    short = mem.short_ids(fact.id for fact in done.facts)
    named = [short[fact.id] for fact in done.facts]
    line = done_line(done.op, named or ["nothing that is here now"], also=stone.id)
    one = len(done.facts) == 1 and done.op is Op.TOMBSTONE

    def document() -> Json:
        return wire.fact(done.facts[0]) if one else wire.tombstone(stone)

    emit(Answer(document=document, screen=line), as_json=as_json)


def lift(
    name: Annotated[str, typer.Argument(metavar="TOMBSTONE", help="A tombstone, such as t3.")],
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """End a tombstone: its value may be offered again. What it rejected stays rejected.

    Exit codes: 0 done, 3 refused, 4 no such tombstone, 6 it became a proposal.
    """
    from memcli.render.words import done_line

    by, why = actor(who), ask_reason(Op.LIFT, reason)
    with store(db, scope) as mem:
        stone = mem.tombstone(name)
        done = request(mem, by, why, Change(op=Op.LIFT, arguments={"tombstone": stone.id}))
        if done.tombstone is None:
            report(mem, done, as_json=as_json)
            return
        now = mem.tombstone(stone.id)
        line = done_line(Op.LIFT, [now.id])
        emit(Answer(document=lambda: wire.tombstone(now), screen=line), as_json=as_json)


def erase(
    ids: FactIds = None,
    source: Annotated[str | None, typer.Option("--source", metavar="S", help="A source with all its messages.")] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="TEXT", help="Everything that contains this text.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Remove the words themselves everywhere in the file; digests and the log stay, and the value stays refused.

    Exit codes: 0 done, 3 refused, 4 nothing holds that, 6 it became a proposal, 11 erased, but free pages could not
    be cleaned yet.
    """
    by = actor(who)
    if bool(ids) + (source is not None) + (value is not None) != 1:
        refuse("name facts, or one of --source and --value", "see `mem erase --help`")
    said = None if value is None else check_typed(value, what="--value")
    why = None if dry_run else ask_reason(Op.ERASE, reason)
    with store(db, scope) as mem:
        named = {"source": None if source is None else mem.source(source).id, "value": said}
        arguments: dict[str, Json] = {name: text for name, text in named.items() if text is not None}
        change = Change(op=Op.ERASE, facts=tuple(mem.get(fact) for fact in ids or ()), arguments=arguments)
        found = plan_erase(mem.planner(by), change)
        if dry_run:
            _show_erase(mem, found, as_json=as_json)
            return
        confirmed(f"erase {_sizes(len(found.facts) + len(found.falls), len(found.messages))} for good?", yes=yes)
        done = request(mem, by, why, change)
        if done.erased is None:
            report(mem, done, as_json=as_json)
            return
        _show_erased(done.erased, as_json=as_json)


def _show_erase(mem: Store, found: ErasePlan, *, as_json: bool) -> None:
    from memcli.render.changes import erase_plan_screen

    ids = [fact.id for fact in (*found.facts, *found.falls, *found.reviewed)]
    emit(
        Answer(
            document=lambda: wire.erase_plan(found),
            screen=lambda width: erase_plan_screen(found, short_ids=mem.short_ids(ids), width=width),
        ),
        as_json=as_json,
    )


def _show_erased(found: ErasePlan, *, as_json: bool) -> None:
    gone = [*found.facts, *found.falls]
    line = f"erased {_sizes(len(gone), len(found.messages))}; the log keeps digests, no words"
    document: Json = {
        "facts": [fact.id for fact in gone],
        "messages": list(found.messages),
        "sources": list(found.sources),
        "reviewed": [fact.id for fact in found.reviewed],
    }
    emit(Answer(document=lambda: document, screen=line), as_json=as_json)


def _sizes(facts: int, messages: int) -> str:
    from memcli.render.words import counted

    return f"{counted(facts, 'fact')} and {counted(messages, 'message')}"
