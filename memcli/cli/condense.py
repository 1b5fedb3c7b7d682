"""The command that replaces many facts by few."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire
from memcli.changes import Change, request
from memcli.cli.door import Answer, actor, ask_reason, emit, refuse, store
from memcli.cli.options import AsJson, Db, DryRun, Reason, Scope, Timeout, Who, whole
from memcli.errors import Loss
from memcli.terms import Op

if TYPE_CHECKING:
    from memcli.facts import CondensePlan
    from memcli.store.condense import Material
    from memcli.store.store import Store


def register(app: typer.Typer) -> None:
    """Add this command to the application."""
    app.command()(condense)


def condense(
    max_facts: Annotated[
        int | None,
        typer.Option(
            "--max-facts", metavar="N", parser=whole("--max-facts", least=1), help="At most N facts are left."
        ),
    ] = None,
    condenser: Annotated[
        str | None, typer.Option("--condenser", metavar="CMD", help="A program that reads JSON and prints JSON.")
    ] = None,
    allow_loss: Annotated[
        list[str] | None, typer.Option("--allow-loss", metavar="ID", help="A fact that may be lost; repeatable.")
    ] = None,
    timeout: Annotated[float, Timeout] = 60.0,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Replace many facts by few: the facts of the scope that a prompt may read now, each accounted for.

    Built-in rules merge what says the same and invent nothing. A program given with --condenser reads
    {"version", "max_facts", "note", "facts": [a fact with "protected"]} and prints {"facts": [{"keep": ID} or {"text",
    "subject", "attribute", "value", "from": [ID], "keep"}], "dropped": [ID]}: its list is the complete replacement.
    What would vanish is listed, and the plan is refused unless each is named with --allow-loss; corrected, verified and
    pinned facts never vanish. Exit codes: 0 done or nothing to do, 2 usage, 3 refused (a loss, a tombstone, a file for
    transactions), 4 no such fact, 5 the program gave no answer, 6 it became a proposal.
    """
    by, why = actor(who), ask_reason(Op.CONDENSE, reason)
    with store(db, scope) as mem:
        write = mem.planner(by)
        material = write.material()
        plan = write.foresee(_plan(material, condenser, max_facts, _named(mem, material, allow_loss), timeout))
        problem = write.judge(plan)
        if problem is not None or dry_run or not plan.changes:
            if problem is None and dry_run:
                plan = write.check_condense(plan)
            _say(mem, plan, [item.keep for item in plan.merged], applied=False, dry_run=dry_run, as_json=as_json)
            if problem is not None:
                raise problem
            return
        done = request(mem, by, why, Change(op=Op.CONDENSE, arguments=wire.condense_arguments(plan)))
        made: list[str | None] = [fact.id for fact in done.facts] or [item.keep for item in plan.merged]
        _say(mem, plan, made, applied=not done.proposals, dry_run=False, as_json=as_json)
        done.settled()


def _named(mem: "Store", material: "Material", names: Sequence[str] | None) -> list[str]:
    """Return the whole ids of facts that may be lost."""
    known = {fact.id for fact in material.facts}
    found = [mem.get(name).id for name in names or ()]
    for name in found:
        if name not in known:
            refuse(f"fact {name[:8]} is none of those that would be condensed", "list them with `mem show`")
        if name in material.protected:
            raise Loss(
                f"fact {name[:8]} is protected ({material.protected[name]}), and such a fact never vanishes",
                hint=f"end it by itself with `mem retract {name[:8]}`",
                target=name,
            )
    return found


def _plan(
    material: "Material", command: str | None, max_facts: int | None, allowed: Sequence[str], timeout_s: float
) -> "CondensePlan":
    from memcli.condense import check_room, plan_duplicates, plan_of_command

    if command is not None and material.facts:
        return plan_of_command(command, material, max_facts=max_facts, allowed=allowed, timeout_s=timeout_s)
    check_room(material, max_facts)
    return plan_duplicates(material, max_facts=max_facts, allowed=allowed)


def _say(
    mem: "Store", plan: "CondensePlan", made: Sequence[str | None], *, applied: bool, dry_run: bool, as_json: bool
) -> None:
    from memcli.render.condense import condense_rows, condense_screen

    names = [item.id for item in plan.facts] + [item.id for item in plan.lost] + [name for name in made if name]
    short = mem.short_ids(dict.fromkeys(names))
    emit(
        Answer(
            document=lambda: wire.condense_document(plan, made=made, applied=applied),
            rows=lambda: condense_rows(plan, made, short),
            screen=lambda width: condense_screen(
                plan, scope=mem.scope, made=made, applied=applied, dry_run=dry_run, short_ids=short, width=width
            ),
        ),
        as_json=as_json,
    )
