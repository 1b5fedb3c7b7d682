"""Commands for people only: scopes and the policy of the file."""

from collections.abc import Sequence
from typing import Annotated

import typer

from memcli import wire
from memcli.cli.door import Answer, actor, ask_reason, at_terminal, emit, store
from memcli.cli.options import AsJson, AsJsonl, Db, DryRun, Reason, Who
from memcli.errors import UsageError
from memcli.facts import PolicyRule
from memcli.terms import Op


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    scope = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, command in (("list", scopes), ("rename", rename), ("merge", merge)):
        scope.command(name)(command)
    app.add_typer(scope, name="scope", help="List, rename and merge the scopes of the file.")
    policy = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, rule in (("show", show), ("set", put), ("drop", drop), ("import", take)):
        policy.command(name)(rule)
    app.add_typer(policy, name="policy", help="What sources, oracles, agents and tools may do.")


def scopes(db: Db = None, as_json: AsJson = False, as_jsonl: AsJsonl = False) -> None:
    """List the scopes of the file and what each holds.

    Exit codes: 0 done, 3 this process is bound to one scope, 10 to 14 the file cannot be used.
    """
    from memcli.render.file import scopes_screen

    with store(db) as mem:
        found = [item for item in mem.scopes() if mem.bound in (None, item.name)]
        default = mem.settings["scope"]
    emit(
        Answer(
            document=lambda: [wire.scope_info(item) for item in found],
            rows=lambda: ((item.name, str(item.facts), str(item.readable), str(item.sources)) for item in found),
            screen=lambda width: scopes_screen(found, default=default, width=width),
        ),
        as_json=as_json,
        as_jsonl=as_jsonl,
    )


def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The scope as it is called now.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What it should be called.")],
    db: Db = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Give a scope another name; its tombstones go with it. People only.

    Exit codes: 0 done, 3 not at a terminal, taken, or no reason, 4 no such scope.
    """
    with store(db) as mem:
        with mem.write(actor(who), _why(reason)) as write:
            write.rename_scope(old, new)
        _say_scope(new, f"renamed {old} to {new}", as_json=as_json)


def merge(
    old: Annotated[str, typer.Argument(metavar="FROM", help="The scope that ends.")],
    into: Annotated[str, typer.Argument(metavar="INTO", help="The scope that takes everything.")],
    db: Db = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Move everything of one scope into another, tombstones included. People only.

    Exit codes: 0 done, 3 not at a terminal, a slot holds two values, or no reason, 4 no such scope.
    """
    with store(db) as mem:
        with mem.write(actor(who), _why(reason)) as write:
            write.merge_scopes(old, into)
        _say_scope(into, f"merged {old} into {into}", as_json=as_json)


def _why(reason: str | None) -> str | None:
    return ask_reason(Op.CORRECT, reason) if at_terminal() or reason is not None else None


def _say_scope(name: str, line: str, *, as_json: bool) -> None:
    from memcli.text import visible

    emit(Answer(document=lambda: {"scope": name}, screen=visible(line)), as_json=as_json)


def show(db: Db = None, as_json: AsJson = False, as_jsonl: AsJsonl = False) -> None:
    """List the rules of the policy: authority of sources, commands of oracles, tiers of agents, classes of tools.

    Exit codes: 0 done, 10 to 14 the file cannot be used.
    """
    from memcli.render.file import policy_screen

    with store(db) as mem:
        rules = mem.policy()
    emit(
        Answer(
            document=lambda: [wire.policy_rule(rule) for rule in rules],
            rows=lambda: ((rule.kind, rule.name, rule.value) for rule in rules),
            screen=lambda width: policy_screen(rules, width=width),
        ),
        as_json=as_json,
        as_jsonl=as_jsonl,
    )


KINDS = ("source", "oracle", "agent", "tool")

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="`source`, `oracle`, `agent` or `tool`.")]
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A source's id, path, session, format or kind; an agent, or `*` for all others; or what it is called.",
    ),
]


def put(
    kind: KindArgument,
    name: NameArgument,
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            help="An authority from 0 to 1, an oracle's command, an agent's highest tier, or what a tool is, such as "
            "`irreversible@public`.",
        ),
    ],
    db: Db = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Set a rule: how much a source counts, what an oracle runs, how high an agent goes, what a tool is. People only.

    Exit codes: 0 done, 2 no such kind or value, 3 not at a terminal.
    """
    rule = PolicyRule(kind=_kind(kind), name=name, value=value)
    with store(db) as mem, mem.write(actor(who), ask_reason(Op.POLICY, reason)) as write:
        write.set_policy(rule)
    _say_rule(rule, f"set {kind} {name} to {value}", as_json=as_json)


def drop(
    kind: KindArgument,
    name: NameArgument,
    db: Db = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Take a rule out of the policy. People only.

    Exit codes: 0 done, 3 not at a terminal, 4 no such rule.
    """
    with store(db) as mem:
        gone = next((rule for rule in mem.policy() if (rule.kind, rule.name) == (kind, name)), None)
        with mem.write(actor(who), ask_reason(Op.POLICY, reason)) as write:
            write.drop_policy(_kind(kind), name)
    _say_rule(gone or PolicyRule(kind=kind, name=name, value=""), f"dropped {kind} {name}", as_json=as_json)


def _kind(name: str) -> str:
    if name not in KINDS:
        raise UsageError(f"{name} is no kind of rule", hint="one of: " + ", ".join(KINDS))
    return name


def _say_rule(rule: PolicyRule, line: str, *, as_json: bool) -> None:
    from memcli.text import visible

    emit(Answer(document=lambda: wire.policy_rule(rule), screen=visible(line)), as_json=as_json)


def take(
    path: Annotated[str, typer.Argument(metavar="FILE", help="Rules in TOML; `-` is standard input.")],
    dry_run: DryRun = False,
    db: Db = None,
    who: Who = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Set the rules that a file in TOML holds, all or none; rules that it does not name stay. People only.

    Tables: [sources] NAME = authority, [oracles] NAME = "command", [agents.NAME] tiers = ["low", …],
    [tools] NAME = "irreversible@public". Exit codes: 0 done, 3 not at a terminal, 5 the file cannot be read or holds
    something else, 10 to 14 the memory file cannot be used.
    """
    from memcli.cli.given import read_bytes
    from memcli.cli.policy_file import HINT, read

    rules = read(path, read_bytes(path, hint=HINT))
    with store(db) as mem:
        held = {(rule.kind, rule.name): rule.value for rule in mem.policy()}
        changes = [(rule, held.get((rule.kind, rule.name))) for rule in rules]
        if not dry_run:
            with mem.write(actor(who), ask_reason(Op.POLICY, reason)) as write:
                write.need_person("change the policy")
                for rule in (rule for rule, was in changes if rule.value != was):
                    write.set_policy(rule)
    _say_taken(path, changes, dry_run=dry_run, as_json=as_json)


def _say_taken(path: str, changes: Sequence[tuple[PolicyRule, str | None]], *, dry_run: bool, as_json: bool) -> None:
    from memcli.render.transactions import imported_screen

    emit(
        Answer(
            document=lambda: {
                "path": path,
                "rules": [{**wire.policy_rule(rule), "was": was} for rule, was in changes],
                "changed": sum(rule.value != was for rule, was in changes),
                "applied": not dry_run,
            },
            screen=lambda width: imported_screen(path, changes, dry_run=dry_run, width=width),
        ),
        as_json=as_json,
    )
