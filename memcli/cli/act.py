"""Commands about what leaves the memory: gate, act, revoke, effects."""

from collections.abc import Iterable
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire, wire_tx
from memcli.changes import Change, request
from memcli.cli import findings as forms
from memcli.cli.change import report
from memcli.cli.door import Answer, actor, ask_reason, bound_scope, emit, store
from memcli.cli.findings import OutputFormat
from memcli.cli.given import read_bytes
from memcli.cli.options import AsJson, AsJsonl, Db, DryRun, FactId, Reason, Scope, Who
from memcli.errors import Ambiguous, NotFound, UsageError
from memcli.facts import Fact, FactQuery, Observed
from memcli.terms import ActionState, Block, EffectState, Op, Profile, State, TxStatus

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store
    from memcli.tx import Action, Effect, GateAnswer, Transaction

TxId = Annotated[str, typer.Argument(metavar="TX", help="A transaction, such as tx3.")]
ActionId = Annotated[str, typer.Argument(metavar="ACTION", help="An action, such as a2, or its receipt, such as r3.")]
EffectId = Annotated[str, typer.Argument(metavar="EFFECT", help="A leak or compensation, such as x1.")]
Args = Annotated[
    str | None,
    typer.Option("--args", metavar="FILE", help="The arguments of the call; `-` is standard input [no arguments]."),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(gate)
    app.command()(revoke)
    acts = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, command in (
        ("begin", begin),
        ("done", done),
        ("failed", failed),
        ("reconcile", reconcile),
        ("list", listing),
    ):
        acts.command(name)(command)
    app.add_typer(acts, name="act", help="Record the tool calls that the gate allowed.")
    owed = typer.Typer(invoke_without_command=True, no_args_is_help=False, rich_markup_mode=None)
    owed.callback()(effects)
    owed.command("ack")(acknowledge)
    owed.command("done")(settle)
    about = cleandoc(effects.__doc__ or "")
    app.add_typer(owed, name="effects", help=about, short_help=about.partition("\n")[0])


# -------------------------------------------------------------------- the gate


def gate(
    tx: TxId,
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="The tool that would be called.")],
    args: Args = None,
    premise: Annotated[
        list[str] | None, typer.Option("--premise", metavar="ID", help="A fact the call relies on; repeatable.")
    ] = None,
    profile: Annotated[
        Profile, typer.Option("--profile", help="Which rules: all, or the two published ones.")
    ] = Profile.STRICT,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether a tool call may go ahead; where it may, print a receipt that is good once, for these arguments.

    Arguments that are JSON count as what they say, others as their bytes. A tool that the policy does not name is
    irreversible; reversible ones pass. Exit codes: 0 allowed, 1 blocked, 3 the transaction is over or a premise is of
    another scope, 4 no such transaction or premise, 5 the arguments cannot be read, 10 to 14 the file cannot be used.
    """
    by, digest = actor(who), _digest(args)
    with store(db, scope) as mem:
        named = [_premise(mem, name) for name in premise or ()]
        with mem.write(by) as write:
            answer = write.gate(tx, tool, digest, named, profile)
        emit(
            Answer(
                document=lambda: wire_tx.gate(answer),
                screen=lambda width: _gate(mem, answer, tool, tx, with_args=args is not None, width=width),
            ),
            as_json=as_json,
        )
    if not answer.allow:
        raise typer.Exit(1)


def _digest(path: str | None) -> str:
    """Return the digest of the arguments that a file holds; a call without any has those of an empty object."""
    if path is None:
        return wire_tx.json_digest({})
    return wire_tx.arguments_digest(read_bytes(path, hint="name the file that holds the arguments"))


def _premise(mem: "Store", name: str) -> str:
    """Return the whole id of a premise; the writer says so where it is of another scope."""
    try:
        return mem.get(name).id
    except Ambiguous:
        raise
    except NotFound:
        if bound_scope() is not None:
            raise
        try:
            return mem.get(name, all_scopes=True).id
        except NotFound:
            pass
        raise


def _gate(mem: "Store", answer: "GateAnswer", tool: str, tx: str, *, with_args: bool, width: int) -> "Screen":
    from memcli.render.transactions import gate_screen
    from memcli.transactions.settings import tool as known_tool

    behind = _behind(mem, answer)
    return gate_screen(
        answer,
        tool=tool,
        reversibility=known_tool(mem.policy(), tool)[0],
        tx=tx.strip().lower(),
        facts=found(mem, answer.blockers),
        drafts=_drafts(mem, answer.blockers),
        behind=behind,
        now=mem.now(),
        short_ids=mem.short_ids([*answer.blockers, *(fact.id for facts in behind.values() for fact in facts)]),
        with_args=with_args,
        width=width,
    )


def _behind(mem: "Store", answer: "GateAnswer") -> dict[str, list[Fact]]:
    """Return by premise what it stands on that is withdrawn or not settled, and what waits to take its place."""
    codes = {reason.partition(":")[0] for reason in answer.reasons}
    known: dict[str, list[Fact]] = {}
    for name, premise in found(mem, answer.blockers).items():
        if Block.G3_PREMISE_UNSTABLE in codes:
            known[name] = [fact for fact in around(mem, [premise]).values() if fact.state in _UNSTABLE]
        if Block.G7_CONTESTED in codes and premise.slot is not None:
            query = FactQuery(states=frozenset({State.DISPUTED}), subject=premise.subject, any_validity=True)
            waits = (fact for fact in mem.facts(query) if fact.attribute == premise.attribute)
            known[name] = [*known.get(name, ()), *(fact for fact in waits if fact.value != premise.value)]
    return known


_UNSTABLE = frozenset({State.REVOKED, State.REJECTED, State.TENTATIVE})


def found(mem: "Store", names: Iterable[str]) -> dict[str, Fact]:
    """Return those of some facts that the scope has, by id."""
    known: dict[str, Fact] = {}
    for name in dict.fromkeys(names):
        try:
            known[name] = mem.get(name)
        except NotFound:
            continue
    return known


def around(mem: "Store", facts: Iterable[Fact], also: Iterable[str] = ()) -> dict[str, Fact]:
    """Return what facts stand on, at any depth, and some others, by id, as far as the scope has it."""
    known = found(mem, also)
    front = [name for fact in facts for name in fact.derived_from]
    while front:
        fresh = found(mem, (name for name in front if name not in known))
        known |= fresh
        front = [name for fact in fresh.values() for name in fact.derived_from]
    return known


def _drafts(mem: "Store", names: Iterable[str]) -> "dict[str, Transaction]":
    wanted = set(names)
    opened = (tx for tx in mem.transactions() if tx.status is TxStatus.OPEN)
    return {name: tx for tx in opened for name in tx.staged if name in wanted}


# -------------------------------------------------------------------- actions


def begin(
    receipt: Annotated[str, typer.Option("--receipt", metavar="R", help="The receipt of the gate, such as r3.")],
    args: Args = None,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Record that the call of a receipt is being made now; call the tool only after this exits 0.

    Exit codes: 0 done, 3 refused (the receipt was used, is for other arguments, or a premise changed), 4 no such
    receipt, 5 the arguments cannot be read, 10 to 14 the file cannot be used.
    """
    by, digest = actor(who), _digest(args)
    with store(db, scope) as mem:
        with mem.write(by) as write:
            action = write.act_begin(receipt, digest)
        _say(action, f"{action.id} {action.tool} is running · mem act done {action.id}", as_json=as_json)


def done(action_id: ActionId, db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False) -> None:
    """Record that a running action happened; where a premise was withdrawn meanwhile, it owes its effect at once.

    Exit codes: 0 done, 3 it does not run, 4 no such action, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            action = write.act_done(action_id)
        _say(action, f"{action.id} {action.tool} is done", as_json=as_json)


def failed(action_id: ActionId, db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False) -> None:
    """Record that a running action did not happen.

    Exit codes: 0 done, 3 it does not run, 4 no such action, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            action = write.act_failed(action_id)
        _say(action, f"{action.id} {action.tool} failed", as_json=as_json)


def reconcile(
    action_id: ActionId,
    state: Annotated[str, typer.Argument(metavar="STATE", help="What became of it: `done` or `failed`.")],
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Record what somebody found out about an action whose end nobody saw.

    Exit codes: 0 done, 2 no such state, 3 its end is known, 4 no such action, 10 to 14 the file cannot be used.
    """
    wanted = _state(state, (ActionState.DONE, ActionState.FAILED))
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            action = write.act_reconcile(action_id, wanted)
        _say(action, f"{action.id} {action.tool} is {action.state}", as_json=as_json)


def listing(
    state: Annotated[list[str] | None, typer.Option("--state", metavar="STATE", help="Only these; repeatable.")] = None,
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List the tool calls of the scope, oldest first, and how far each has come.

    Exit codes: 0 done, 2 no such state, 10 to 14 the file cannot be used.
    """
    from memcli.render.transactions import actions_screen

    wanted = [_state(name, tuple(ActionState)) for name in state or ()]
    with store(db, scope) as mem:
        actions = [item for item in mem.actions() if not wanted or item.state in wanted]
        emit(
            Answer(
                document=lambda: [wire_tx.action(item) for item in actions],
                rows=lambda: (
                    (item.id, str(item.state), item.tool, str(item.reversibility), item.receipt, item.tx)
                    for item in actions
                ),
                screen=lambda width: actions_screen(actions, now=mem.now(), width=width),
                page=True,
            ),
            as_json=as_json,
            as_jsonl=as_jsonl,
        )


def _state(name: str, known: tuple[ActionState, ...]) -> ActionState:
    if name not in known:
        raise UsageError(f"{name or 'nothing'} is no state of an action here", hint="one of: " + ", ".join(known))
    return ActionState(name)


def _say(action: "Action", line: str, *, as_json: bool) -> None:
    from memcli.text import visible

    emit(Answer(document=lambda: wire_tx.action(action), screen=visible(line)), as_json=as_json)


# -------------------------------------------------------------------- revoke


def revoke(
    fact_id: FactId,
    dry_run: DryRun = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Withdraw a fact and all that was built on it: beliefs are revoked, views held, and done actions owe their effect.

    Exit codes: 0 done, 3 refused, 4 no such fact, 6 it became a proposal, 10 to 14 the file cannot be used.
    """
    by = actor(who)
    why = None if dry_run else ask_reason(Op.REVOKE, reason)
    with store(db, scope) as mem:
        fact = mem.get(fact_id)
        items = wire_tx.flat(mem.revoke_plan(fact))
        if not dry_run:
            made = request(mem, by, why, Change(op=Op.REVOKE, facts=(fact,)))
            if made.proposals:
                report(mem, made, as_json=as_json)
            fact = made.facts[0]

        def screen(width: int) -> "Screen":
            from memcli.render.transactions import fall_screen

            named = mem.short_ids(item.fact.id for item, _ in items if item.fact is not None)
            whole = [item for item, _ in items]
            return fall_screen(whole[0], items=whole, short_ids=named, dry_run=dry_run, width=width)

        emit(
            Answer(document=lambda: wire_tx.falls(items, applied=False) if dry_run else wire.fact(fact), screen=screen),
            as_json=as_json,
        )


# -------------------------------------------------------------------- effects


def effects(
    ctx: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 while any is open.")] = False,
    output_format: OutputFormat = "text",
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List what actions owe because a premise was withdrawn: leaks and compensations, oldest first.

    Exit codes: 0 done, 1 one is open (with --check), 2 usage, 10 to 14 the file cannot be used.
    """
    if ctx.invoked_subcommand is not None:
        return
    form = forms.form(output_format, as_json=as_json, as_jsonl=as_jsonl)
    with store(db, scope) as mem:
        owed = mem.effects()
        forms.emit_found(
            _effects(mem, owed),
            lambda: [_observed(item, str(mem.path)) for item in owed],
            form,
            title="mem effects",
            clean="no action owes anything",
        )
    if check and any(item.state is EffectState.OPEN for item in owed):
        raise typer.Exit(1)


def _effects(mem: "Store", owed: "list[Effect]") -> Answer:
    def screen(width: int) -> "Screen":
        from memcli.render.transactions import effects_screen

        roots = found(mem, (item.root for item in owed))
        return effects_screen(owed, facts=roots, now=mem.now(), short_ids=mem.short_ids(roots), width=width)

    return Answer(
        document=lambda: [wire_tx.effect(item) for item in owed],
        rows=lambda: ((item.id, str(item.kind), str(item.state), item.action, item.tool, item.root) for item in owed),
        screen=screen,
        page=True,
    )


def _observed(effect: "Effect", path: str) -> Observed:
    return Observed(
        code=str(effect.kind),
        place=effect.id,
        message=f"{effect.tool} ({effect.action}) was done on {effect.root[:8]}, which was withdrawn: {effect.state}",
        passed=effect.state is not EffectState.OPEN,
        path=path,
    )


def acknowledge(
    effect_id: EffectId, db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False
) -> None:
    """Record that somebody has seen a leak or a compensation.

    Exit codes: 0 done, 3 it belongs to another scope, 4 no such effect, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            effect = write.effect_ack(effect_id)
        _say_effect(effect, as_json=as_json)


def settle(effect_id: EffectId, db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False) -> None:
    """Record that a leak or a compensation is dealt with.

    Exit codes: 0 done, 3 it belongs to another scope, 4 no such effect, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            effect = write.effect_done(effect_id)
        _say_effect(effect, as_json=as_json)


def _say_effect(effect: "Effect", *, as_json: bool) -> None:
    from memcli.text import visible

    line = f"{effect.id} {effect.kind} of {effect.tool} is {effect.state}"
    emit(Answer(document=lambda: wire_tx.effect(effect), screen=visible(line)), as_json=as_json)
