"""`mem tx`: facts that are staged, checked and committed together."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from memcli import wire, wire_tx
from memcli.cli.act import TxId, around
from memcli.cli.change import EvidenceOption, QuoteOption, json_scalar
from memcli.cli.door import Answer, actor, bound_scope, emit, read_text, refuse, store
from memcli.cli.given import read_text as read_file
from memcli.cli.options import (
    AsJson,
    AsJsonl,
    Db,
    Scope,
    Timeout,
    ValidFrom,
    ValidTo,
    Who,
    instant,
    share,
)
from memcli.cli.replay import replay
from memcli.errors import (
    Ambiguous,
    Closed,
    Held,
    LeaseOver,
    MemError,
    NotFound,
    Refused,
    Unreadable,
    UsageError,
)
from memcli.facts import Actor, Claim, Evidence, Fact, Validity
from memcli.terms import (
    ActionState,
    How,
    Isolation,
    Kind,
    SourceKind,
    Tier,
    TxStatus,
    Visibility,
)
from memcli.text import check_typed

if TYPE_CHECKING:
    from memcli.render.layout import Screen
    from memcli.store.store import Store
    from memcli.store.writer import Writer
    from memcli.tx import Check, Transaction, Verdict

_LONGEST_S = 30 * 24 * 3600


def lease(given: object) -> float:
    """Return how long a transaction may stay open, in seconds.

    Raises:
        UsageError: It is no number above 0, or longer than 30 days.
    """
    try:
        seconds = float(str(given))
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise UsageError(
            f"--lease takes seconds, above 0 and up to {_LONGEST_S:,}, and was given “{given}”", hint="try --lease 900"
        )
    return seconds


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    for name, command in (
        ("begin", begin),
        ("read", read),
        ("stage", stage),
        ("check", check),
        ("commit", commit),
        ("abort", abort),
        ("recover", recover),
        ("show", show),
        ("replay", replay),
    ):
        group.command(name)(command)
    app.add_typer(group, name="tx", help="Stage facts, check them, and commit them together.")


# -------------------------------------------------------------------- begin, read


def begin(
    tier: Annotated[Tier, typer.Option("--tier", help="How much hangs on it.")] = Tier.MEDIUM,
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="NAME", help="For whom it reads and writes [the actor].")
    ] = None,
    isolation: Annotated[
        Isolation | None, typer.Option("--isolation", help="What it reads [what its tier asks for].")
    ] = None,
    lease_s: Annotated[
        float, typer.Option("--lease", metavar="SECONDS", parser=lease, help="How long it may stay open.")
    ] = 900.0,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Open a transaction on what the file knows now, and print its id.

    Exit codes: 0 done, 2 usage, 3 the policy does not let the agent go so high, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            tx = write.begin(agent, tier, isolation, lease_s)
        _say(mem, tx, as_json=as_json)


def _say(mem: "Store", tx: "Transaction", *, as_json: bool) -> None:
    from memcli.render.transactions import tx_line
    from memcli.text import visible

    emit(
        Answer(
            document=lambda: wire_tx.transaction(tx),
            rows=lambda: _rows([tx]),
            screen=visible(tx_line(tx, now=mem.now())),
        ),
        as_json=as_json,
    )


def _rows(transactions: "Iterable[Transaction]") -> "Iterable[Sequence[str]]":
    from memcli.clock import format_instant

    return (
        (tx.id, str(tx.status), str(tx.tier), str(tx.isolation), tx.agent, format_instant(tx.lease_until))
        for tx in transactions
    )


def read(
    tx: TxId,
    subject: Annotated[str | None, typer.Option("--subject", metavar="S", help="Only of this subject.")] = None,
    attribute: Annotated[str | None, typer.Option("--attribute", metavar="A", help="Only this attribute.")] = None,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List what the snapshot of a transaction holds, at its isolation and valid now; that it was read is remembered.

    Exit codes: 0 done, 3 the transaction is over or of another scope, 4 no such transaction, 10 to 14 the file cannot
    be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            facts = write.read(tx, subject, attribute)
        _emit_facts(mem, facts, tx, as_json=as_json, as_jsonl=as_jsonl)


def _emit_facts(mem: "Store", facts: Sequence[Fact], tx: str, *, as_json: bool, as_jsonl: bool = False) -> None:
    short = mem.short_ids(fact.id for fact in facts)

    def rows() -> Iterable[Sequence[str]]:
        from memcli.render.rows import facts_rows

        return facts_rows(facts, short)

    def screen(width: int) -> "Screen":
        from memcli.render.transactions import read_screen

        return read_screen(facts, tx, short_ids=short, width=width)

    emit(
        Answer(document=lambda: [wire.fact(fact) for fact in facts], rows=rows, screen=screen, page=True),
        as_json=as_json,
        as_jsonl=as_jsonl,
    )


# -------------------------------------------------------------------- stage


def stage(
    ctx: typer.Context,
    tx: TxId,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The statement [the slot]; `-` is standard input.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="FILE", help="Many facts, one JSON object a line; `-` is standard input."),
    ] = None,
    subject: Annotated[str | None, typer.Option("--subject", metavar="S", help="Whom or what it is about.")] = None,
    attribute: Annotated[str | None, typer.Option("--attribute", metavar="A", help="What of the subject.")] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="V", help="The value; true, false and numbers count as such.")
    ] = None,
    evidence: EvidenceOption = None,
    quote: QuoteOption = None,
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", metavar="NAME", help="Evidence outside the file, by name; repeatable."),
    ] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="NAME", help="Who or what says so.")] = None,
    source_kind: Annotated[
        SourceKind | None, typer.Option("--source-kind", help="What kind of source [agent].")
    ] = None,
    authority: Annotated[
        float | None,
        typer.Option("--authority", metavar="X", help="From 0 to 1; counts at most what the policy gives."),
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", metavar="X", help="From 0 to 1.")] = None,
    visibility: Annotated[Visibility, typer.Option("--visibility", help="Who may see it.")] = Visibility.SHARED,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Whose it is [the agent's].")] = None,
    valid_from: ValidFrom = None,
    valid_to: ValidTo = None,
    derived_from: Annotated[
        list[str] | None, typer.Option("--derived-from", metavar="ID", help="A fact this is built on; repeatable.")
    ] = None,
    how: Annotated[How, typer.Option("--how", help="How it was derived.")] = How.INFERRED,
    supersedes: Annotated[
        list[str] | None,
        typer.Option("--supersedes", metavar="ID", help="A fact whose place it takes; people only; repeatable."),
    ] = None,
    kind: Annotated[Kind, typer.Option("--kind", help="What it is.")] = Kind.BELIEF,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Offer a fact inside a transaction: tentative, and believed by nobody until it commits.

    Lines of a file have the keys text, subject, attribute, value, kind, valid_from, valid_to, confidence, importance,
    authority, owner, visibility, evidence, references, source, source_kind, derived_from, how, supersedes, and id, a
    name that later lines may give in derived_from; all are staged or none. Exit codes: 0 done, 2 usage, 3 refused
    (tombstoned, unknown parent, a cycle, the transaction is over), 4 no such transaction or message, 5 a line cannot be
    read, 10 to 14 the file cannot be used.
    """
    by = actor(who)
    if file is not None:
        _check_alone(ctx)
        _stage_lines(by, tx, file, store(db, scope), as_json=as_json)
        return
    claim = Claim(
        text=_statement(text, subject, attribute, value),
        subject=_word(subject, "the subject"),
        attribute=_word(attribute, "the attribute"),
        value=json_scalar(_word(value, "the value")),
        kind=kind,
        validity=Validity(start=instant(valid_from, "--valid-from"), end=instant(valid_to, "--valid-to")),
        confidence=share(confidence, "--confidence"),
        authority=share(authority, "--authority"),
        owner=_word(owner, "the owner"),
        visibility=visibility,
        how=how,
        source=_word(source, "the source"),
        source_kind=source_kind,
        references=tuple(check_typed(name, what="a reference") for name in reference or ()),
        derived_from=tuple(derived_from or ()),
    )
    with store(db, scope) as mem:
        claim = replace(claim, evidence=_cited(mem, evidence, quote))
        with mem.write(by) as write:
            fact = _stage(mem, write, tx, claim, supersedes or ())
        _staged(mem, [fact.id], tx, many=False, as_json=as_json)


_BESIDE_FILE = frozenset({"tx", "file", "db", "scope", "who", "as_json"})


def _check_alone(ctx: typer.Context) -> None:
    """Refuse what says something about one fact beside a file that says everything about its own.

    Raises:
        UsageError: Something was given.
    """
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if name not in _BESIDE_FILE and source is not None and source.name == "COMMANDLINE":
            said = parameter.opts[0] if parameter.opts[0].startswith("-") else "a text"
            refuse(f"--file and {said} exclude each other", "put it into the lines of the file, or leave out --file")


def _word(text: str | None, what: str) -> str | None:
    return None if text is None else check_typed(text, what=what)


def _statement(text: str | None, subject: str | None, attribute: str | None, value: str | None) -> str:
    """Return what a fact says: its own words, or its slot as a sentence.

    Raises:
        UsageError: It has neither.
    """
    if text is not None:
        return read_text(text, what="the text")
    said = wire_tx.statement(subject, attribute, value)
    if said is None:
        refuse("there is nothing to stage", "give a text, or --subject, --attribute and --value")
    return check_typed(said, what="the slot")


def _cited(mem: "Store", message: str | None, quote: str | None) -> tuple[Evidence, ...]:
    if message is None:
        if quote is not None:
            refuse("--quote needs --evidence", "name the message it stands in")
        return ()
    return (Evidence(message=mem.message(message).id, quote=_word(quote, "the quote")),)


def _stage(mem: "Store", write: "Writer", tx: str, claim: Claim, supersedes: Iterable[str]) -> Fact:
    parents = tuple(_parent(mem, name) for name in claim.derived_from)
    return write.stage(tx, replace(claim, derived_from=parents), [mem.get(name).id for name in supersedes])


def _parent(mem: "Store", name: str) -> str:
    """Return the whole id of a parent; an unknown one stays as it is, so that its refusal is recorded."""
    try:
        return mem.get(name, all_scopes=bound_scope() is None).id
    except Ambiguous:
        raise
    except NotFound:
        return name


def _stage_lines(by: Actor, tx: str, path: str, opened: "Store", *, as_json: bool) -> None:
    """Stage every line of a file, or none.

    Raises:
        Unreadable: A line holds no fact; it is named.
        Refused: A rule said no to a line; it is named.
    """
    names: dict[str, str] = {}
    with opened as mem:
        lines = [_read_line(path, number, line) for number, line in _lines(path)]
        made: list[str] = []
        with mem.write(by) as write:
            for number, claim, rivals, name in lines:
                known = tuple(names.get(parent, parent) for parent in claim.derived_from)
                try:
                    fact = _stage(mem, write, tx, replace(claim, derived_from=known), rivals)
                except MemError as problem:
                    problem.message = f"{path} line {number}: {problem.message}"
                    raise
                made.append(fact.id)
                if name is not None:
                    names[name] = fact.id
        _staged(mem, made, tx, many=True, as_json=as_json)


def _lines(path: str) -> list[tuple[int, str]]:
    text = read_file(path, hint="give one JSON object a line")
    found = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not found:
        raise Unreadable(path, "there is no line in it", hint="give one JSON object a line")
    return found


def _read_line(path: str, number: int, line: str) -> tuple[int, Claim, tuple[str, ...], str | None]:
    try:
        return (number, *wire_tx.staged_from(wire.loads(line)))
    except (UsageError, Refused) as problem:
        raise Unreadable(path, problem.message, line=number, hint=problem.hint) from None


def _staged(mem: "Store", names: Sequence[str], tx: str, *, many: bool, as_json: bool) -> None:
    from memcli.text import visible

    facts = [mem.get(name) for name in names]
    short = mem.short_ids(names)

    def rows() -> Iterable[Sequence[str]]:
        from memcli.render.rows import facts_rows

        return facts_rows(facts, short)

    line = f"staged {' '.join(short[name] for name in names)} in {tx.strip().lower()}"
    documents = [wire.fact(fact) for fact in facts]
    emit(
        Answer(document=lambda: list(documents) if many else documents[0], rows=rows, screen=visible(line)),
        as_json=as_json,
    )


# -------------------------------------------------------------------- check, commit


Partial = Annotated[bool, typer.Option("--partial", help="Settle each fact by itself, not all or none.")]


def check(
    tx: TxId,
    partial: Partial = False,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Say what a commit would say, with every rule that a staged fact does not pass; nothing is changed.

    Exit codes: 0 it would be committed, 1 it would be held or aborted, 3 it is over or of another scope, 4 no such
    transaction, 10 to 14 the file cannot be used.
    """
    by = actor(who)
    with store(db, scope) as mem:
        found_tx = _open(mem, tx)
        checks = mem.checks(tx)
        status = _outcome(mem, by, checks, partial=partial)
        facts = [mem.get(name) for name in found_tx.staged]
        emit(
            Answer(
                document=lambda: wire_tx.checked(found_tx, status, checks),
                screen=lambda width: _checked(mem, found_tx, status, facts, checks, width),
            ),
            as_json=as_json,
        )
    if status is not TxStatus.COMMITTED:
        raise typer.Exit(1)


def _open(mem: "Store", name: str) -> "Transaction":
    """Return a transaction that a commit would check.

    Raises:
        Closed, LeaseOver: It is over.
    """
    tx = mem.transaction(name)
    if tx.status is not TxStatus.OPEN:
        raise Closed(f"transaction {tx.id} is {tx.status}", hint=f"see it with `mem tx show {tx.id}`")
    if tx.lease_until <= mem.now():
        raise LeaseOver(f"the lease of transaction {tx.id} is over", hint="abort it with `mem tx recover`")
    return tx


def _outcome(mem: "Store", by: Actor, checks: "Sequence[Check]", *, partial: bool) -> TxStatus:
    from memcli.transactions.checks import outcome

    first = {item.fact: item.ruling for item in reversed(checks)}
    status = outcome(first.values(), partial=partial)
    waits = bool(first) and status is TxStatus.COMMITTED and not mem.planner(by).believes
    return TxStatus.HELD if waits else status


def _checked(
    mem: "Store", tx: "Transaction", status: TxStatus, facts: Sequence[Fact], checks: "Sequence[Check]", width: int
) -> "Screen":
    from memcli.render.transactions import checked_screen

    known = _around(mem, facts, checks)
    return checked_screen(
        tx,
        status,
        facts=facts,
        checks=checks,
        known=known,
        now=mem.now(),
        short_ids=mem.short_ids([*known, *tx.staged]),
        width=width,
    )


def _around(mem: "Store", facts: Sequence[Fact], checks: "Sequence[Check]") -> dict[str, Fact]:
    return around(mem, facts, (name for item in checks for name in item.about))


def commit(
    tx: TxId,
    partial: Partial = False,
    verifier: Annotated[
        str | None, typer.Option("--verifier", metavar="CMD", help="A program that reads JSON and prints a verdict.")
    ] = None,
    timeout: Annotated[float, Timeout] = 60.0,
    db: Db = None,
    scope: Scope = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Check what was staged, parents first, and believe it together: one refusal aborts it, one hold holds all of it.

    A verifier is asked of each fact that passes everything else; it gets {"candidate", "rivals", "evidence"} and prints
    {"verdict": "pass", "hold" or "refuse", "reason"}; anything else holds. What changed while it thought is asked about
    again, and it is said how often it was asked. Exit codes: 0 committed, 2 usage, 3 aborted, it is over already, or it
    kept changing, 4 no such transaction, 6 held, 10 to 14 the file cannot be used.
    """
    by = actor(who)
    with store(db, scope) as mem:
        _open_to_commit(mem, tx)
        checks = mem.checks(tx, partial=partial)
        verdict = _commit(mem, by, tx, verifier, timeout, partial=partial)
        facts = [mem.get(name) for name in mem.transaction(tx).staged]
        emit(
            Answer(
                document=lambda: wire_tx.verdict(verdict),
                screen=lambda width: _committed(mem, verdict, facts, checks, verifier is not None, width),
            ),
            as_json=as_json,
        )
    _judge(verdict)


def _open_to_commit(mem: "Store", name: str) -> None:
    """Refuse what is closed before a verifier is asked; a lease that is over is for the writer to see.

    Raises:
        Closed: It was committed, held or aborted.
    """
    if mem.transaction(name).status is not TxStatus.OPEN:
        _open(mem, name)


def _commit(mem: "Store", by: Actor, tx: str, verifier: str | None, timeout_s: float, *, partial: bool) -> "Verdict":
    """Return what became of a commit; a verifier is asked anew about what changed while it thought."""
    if verifier is None:
        with mem.write(by) as write:
            return write.commit(tx, partial)
    from memcli.transactions.verifier import commit as commit_verified

    return commit_verified(mem, by, tx, verifier, partial=partial, timeout_s=timeout_s)


def _committed(
    mem: "Store", verdict: "Verdict", facts: Sequence[Fact], checks: "Sequence[Check]", asked: bool, width: int
) -> "Screen":
    from memcli.render.transactions import verdict_screen

    known = _around(mem, (), checks)
    return verdict_screen(
        verdict,
        facts=facts,
        checks=checks,
        known=known,
        now=mem.now(),
        short_ids=mem.short_ids([*known, *(fact.id for fact in facts)]),
        verifier=asked,
        width=width,
    )


def _judge(verdict: "Verdict") -> None:
    """Raise what the exit code says of a commit that did not go through."""
    if verdict.status is TxStatus.HELD:
        raise Held(
            f"transaction {verdict.tx} is held: a person decides what it brought", hint="decide it with `mem review`"
        )
    if verdict.status is TxStatus.ABORTED:
        raise Refused(
            f"transaction {verdict.tx} was aborted: nothing of it is believed",
            hint=f"see why with `mem tx show {verdict.tx}`, and begin another",
        )


# -------------------------------------------------------------------- abort, recover, show


def abort(tx: TxId, db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False) -> None:
    """Withdraw what a transaction staged and close it; a second time it changes nothing.

    Exit codes: 0 done, 3 it was committed or held, 4 no such transaction, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        with mem.write(actor(who)) as write:
            ended = write.abort(tx)
        _say(mem, ended, as_json=as_json)


def recover(db: Db = None, scope: Scope = None, who: Who = None, as_json: AsJson = False) -> None:
    """Abort the transactions of the scope whose lease is over; their actions that were running become unknown.

    Exit codes: 0 done or nothing to do, 10 to 14 the file cannot be used.
    """
    from memcli.render.words import counted

    with store(db, scope) as mem:
        running = {item.id for item in mem.actions() if item.state is ActionState.RUNNING}
        with mem.write(actor(who)) as write:
            over = write.recover()
        lost = [item for item in mem.actions() if item.id in running and item.state is ActionState.UNKNOWN]
    parts = [f"aborted {' '.join(tx.id for tx in over)}"] if over else []
    parts += [f"{counted(len(lost), 'action')} unknown: {' '.join(item.id for item in lost)}"] if lost else []
    hint = " · mem act reconcile A STATE" if lost else ""
    emit(
        Answer(
            document=lambda: {
                "transactions": [wire_tx.transaction(tx) for tx in over],
                "actions": [wire_tx.action(item) for item in lost],
            },
            screen=(" · ".join(parts) + hint) or "nothing to recover",
        ),
        as_json=as_json,
    )


def show(
    tx: Annotated[str | None, typer.Argument(metavar="[TX]", help="A transaction, such as tx3 [all].")] = None,
    status: Annotated[TxStatus | None, typer.Option("--status", help="Only these, where none is named.")] = None,
    db: Db = None,
    scope: Scope = None,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """List the transactions of the scope, or show one as a tree: what it staged, its checks, what it stands on.

    Exit codes: 0 done, 3 it is of another scope, 4 no such transaction, 10 to 14 the file cannot be used.
    """
    with store(db, scope) as mem:
        answer = _list(mem, status) if tx is None else _one(mem, tx)
        emit(answer, as_json=as_json, as_jsonl=as_jsonl)


def _list(mem: "Store", status: TxStatus | None) -> Answer:
    listed = [tx for tx in mem.transactions() if status in (None, tx.status)]

    def screen(width: int) -> "Screen":
        from memcli.render.transactions import transactions_screen

        return transactions_screen(listed, scope=mem.scope, now=mem.now(), width=width)

    return Answer(
        document=lambda: [wire_tx.transaction(tx) for tx in listed],
        rows=lambda: _rows(listed),
        screen=screen,
        page=True,
    )


def _one(mem: "Store", name: str) -> Answer:
    tx = mem.transaction(name)
    facts = [mem.get(fact) for fact in tx.staged]
    checks = mem.checks(name) if tx.status is TxStatus.OPEN else []
    known = _around(mem, facts, checks)
    actions = [item for item in mem.actions() if item.tx == tx.id]
    above = {fact.id: list(_around(mem, [fact], ()).values()) for fact in facts}

    def screen(width: int) -> "Screen":
        from memcli.render.transactions import tx_screen

        return tx_screen(
            tx,
            facts=facts,
            checks=checks,
            known=known,
            actions=actions,
            now=mem.now(),
            short_ids=mem.short_ids([*known, *tx.staged]),
            width=width,
        )

    return Answer(
        document=lambda: wire_tx.shown(tx, facts=facts, checks=checks, stands_on=above, actions=actions),
        screen=screen,
        page=True,
    )
