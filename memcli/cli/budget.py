"""`mem budget`: what a prompt will hold, before it is sent. Each command: options, one call, one answer."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from memcli.budget.outcome import Fate
from memcli.budget_input import Transcript, files, one_of_them, transcripts
from memcli.cli import budget_options as given
from memcli.cli import budget_work as work
from memcli.cli import findings as forms
from memcli.cli.door import Answer, emit, printing, refuse
from memcli.cli.findings import OutputFormat
from memcli.cli.options import AsJson, AsJsonl, Scope, whole
from memcli.cli.outfile import OutFile
from memcli.facts import Json, Observed

if TYPE_CHECKING:
    from memcli.render.layout import Screen

LIMITS = "4k,8k,16k,32k"
SWEEP_FORMATS = ("text", "csv", "json", "jsonl")


def register(app: typer.Typer) -> None:
    """Add these commands to the application."""
    group = typer.Typer(
        help="See what a prompt will hold, before it is sent: nothing is asked of a model.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for command in (simulate, sweep, diff, explain):
        group.command()(command)
    app.add_typer(group, name="budget")


Conversation = Annotated[
    int | None,
    typer.Option(
        "--conversation",
        metavar="N",
        parser=whole("--conversation", least=0),
        help="Of a file that holds several: the one with this number, from 0.",
    ),
]


def simulate(
    paths: given.Transcripts = None,
    policy: given.PolicyName = "llamaindex",
    token_limit: given.TokenLimit = None,
    ratio: given.Ratio = None,
    flush_size: given.FlushSize = None,
    insert_method: given.Insert = None,
    depth: given.Depth = None,
    encoding: given.Encoding = None,
    model: given.Model = None,
    blocks: given.Blocks = None,
    db: given.Facts = None,
    scope: Scope = None,
    at: given.At = None,
    writes: given.Writes = "message",
    constructor: given.Made = "from_defaults",
    tool_calls: given.Calls = "kwargs",
    conversation: Conversation = None,
    watch: Annotated[
        list[str] | None,
        typer.Option("--watch", metavar="ID", help="Show the fate of this message, or of all; repeatable."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="CODE", help="Exit 1 on these findings, with commas: codes, error, any."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", parser=whole("--jobs", least=1), help="Work on N files at once.")
    ] = 1,
    output_format: OutputFormat = "text",
    html: Annotated[str | None, typer.Option("--html", metavar="FILE", help="Also write one page of HTML.")] = None,
    force: given.Force = False,
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Replay a transcript under a policy: what stays in the prompt, what is flushed where, what is cut, and why.

    Several transcripts are one line each. Exit codes: 0 done, 1 a --fail-on finding, 2 usage, 4 no such message, 5 a
    transcript, a file of blocks or a vocabulary could not be read (other transcripts are shown), 10 to 14 the memory
    file, or the page, cannot be used.
    """
    form = forms.form(output_format, as_json=as_json, as_jsonl=as_jsonl)
    stopping = _stopping(fail_on)
    page = None if html is None else OutFile(html, force=force, option="--html")
    wanted = given.wanted(
        policy=policy, token_limit=token_limit, ratio=ratio, flush_size=flush_size, insert_method=insert_method,
        depth=depth, encoding=encoding, model=model, blocks=blocks, db=db, scope=scope, at=at, writes=writes,
        constructor=constructor, tool_calls=tool_calls,
    )  # fmt: skip
    ran, unread = _run(paths, wanted, conversation, jobs)
    answer = _simulated(ran, unread, _names(watch))
    if page is not None:
        _write_page(ran, page)
    forms.emit_found(answer, lambda: _observed(ran), form, title="mem budget simulate", clean="no findings")
    if unread:
        raise unread[0].error()
    if any(item.code in stopping for one in ran for item in one.simulation.findings):
        raise typer.Exit(1)


def _stopping(fail_on: str | None) -> frozenset[str]:
    """Return the codes that make the exit code 1."""
    from memcli.budget.findings import CODES, codes

    if fail_on is None:
        return frozenset()
    return frozenset(CODES) if "any" in [name.strip() for name in fail_on.split(",")] else codes(fail_on)


def _names(watch: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in watch or () for name in text.split(",") if name.strip()]


def _run(
    paths: Sequence[str] | None, wanted: work.Wanted, conversation: int | None, jobs: int
) -> tuple[list[work.Ran], list[work.Unread]]:
    if not paths:
        refuse("this needs a transcript", "name a file or a folder, or `-` for standard input")
    found = files(paths)
    shown = len(found) > 1 and sys.stderr.isatty()

    def told(done: int) -> None:
        if shown:
            # The line is cleared when all is done, so that nothing of it stays on the screen.
            sys.stderr.write("\r\x1b[K" if done == len(found) else f"\r{done} of {len(found)} files")
            sys.stderr.flush()

    ran, unread = work.run_files(found, wanted, conversation=conversation, jobs=jobs, told=told)
    if not ran and len(unread) == 1:
        raise unread[0].error()
    return ran, unread


def _simulated(ran: Sequence[work.Ran], unread: Sequence[work.Unread], watched: Sequence[str]) -> Answer:
    fates = [_watched(one, watched) for one in ran]
    one_alone = len(ran) == 1 and not unread

    def documents() -> Iterator[Json]:
        from memcli import wire_budget as wire

        for one in ran:
            yield wire.simulation(one.simulation, transcript=one.transcript.name)

    def screen(width: int) -> "Screen":
        from memcli.render import budget as render

        if one_alone:
            only = ran[0]
            named = {"name": only.transcript.name, "path": only.transcript.path}
            return render.simulation_screen(
                only.simulation, **named, watched=fates[0], notes=only.transcript.notes, width=width
            )
        runs = [(one.transcript.name, one.simulation) for one in ran]
        return render.summaries_screen(runs, failed=[problem.message for problem in unread], width=width)

    def rows() -> Iterator[Sequence[str]]:
        from memcli.render.budget import summary_row

        return (summary_row(one.transcript.name, one.simulation) for one in ran)

    return Answer(
        document=lambda: next(documents()) if one_alone else list(documents()),
        lines=documents,
        screen=screen,
        rows=None if one_alone else rows,
        page=True,
    )


def _watched(one: work.Ran, names: Sequence[str]) -> Sequence[Fate]:
    if not names:
        return ()
    if "all" in names:
        return one.simulation.fates
    from memcli.budget.explain import message_of

    return [one.simulation.fates[message_of(one.simulation, name)] for name in names]


def _write_page(ran: Sequence[work.Ran], page: OutFile) -> None:
    from memcli.render.budget_page import simulation_page

    if len(ran) != 1:
        refuse(f"a page shows one transcript, and these are {len(ran):,}", "name one file, and one --conversation")
    only = ran[0].transcript
    texts = {at: only.words(at) for at in range(len(only.messages))}
    page.write_text(simulation_page(ran[0].simulation, name=only.name, texts=texts, notes=only.notes))


def _observed(ran: Sequence[work.Ran]) -> list[Observed]:
    return [
        Observed(
            code=item.code,
            place=one.transcript.name,
            message=f"{item.text}; {item.remedy}",
            level=str(item.severity),
            path=one.transcript.path,
        )
        for one in ran
        for item in one.simulation.findings
    ]


# --- sweep ---


def sweep(
    paths: given.Transcripts = None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="One policy, or several with commas.")
    ] = "llamaindex",
    token_limit: Annotated[
        str, typer.Option("--token-limit", metavar="N", help="Such as 4k,8k,16k or 2k:16k:2k.")
    ] = LIMITS,
    ratio: Annotated[str, typer.Option("--ratio", metavar="X", help="Such as 0.5,0.7 or 0.1:0.9:0.1.")] = "0.3:0.9:0.2",
    flush_size: Annotated[
        str | None, typer.Option("--flush-size", metavar="N", help="Such as 500,3k [what the policy does].")
    ] = None,
    depth: Annotated[
        str | None,
        typer.Option("--depth", metavar="N", help="In place of all that: depths of a plain memory, such as 1,10,7d."),
    ] = None,
    probes: Annotated[
        str | None,
        typer.Option("--probes", metavar="FILE", help="Questions with the messages that answer them, as JSON Lines."),
    ] = None,
    best: Annotated[
        str | None, typer.Option("--best", metavar="COLUMN", help="Map this column, and name the best setting by it.")
    ] = None,
    encoding: given.Encoding = None,
    model: given.Model = None,
    blocks: given.Blocks = None,
    db: given.Facts = None,
    scope: Scope = None,
    at: given.At = None,
    writes: given.Writes = "message",
    constructor: given.Made = "from_defaults",
    tool_calls: given.Calls = "kwargs",
    conversation: Conversation = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, csv, json or jsonl.")
    ] = "text",
    as_json: AsJson = False,
    as_jsonl: AsJsonl = False,
) -> None:
    """Replay a transcript under every combination of settings, counted once; as a table and a map.

    Exit codes: 0 done, 2 usage, 5 a transcript, a file of blocks or probes or a vocabulary could not be read, 10 to 14
    the memory file cannot be used.
    """
    from memcli.budget import spans
    from memcli.budget.sweep import Grid
    from memcli.cli import budget_sweep as sweeping

    form = forms.form(output_format, as_json=as_json, as_jsonl=as_jsonl, known=SWEEP_FORMATS)
    wanted = given.wanted(
        encoding=encoding, model=model, blocks=blocks, db=db, scope=scope, at=at, writes=writes,
        constructor=constructor, tool_calls=tool_calls,
    )  # fmt: skip
    grid = Grid(
        policies=tuple(dict.fromkeys(work.known_policy(name.strip()) for name in policy.split(","))),
        token_limits=spans.whole_numbers(token_limit, what="--token-limit"),
        ratios=spans.decimals(ratio, what="--ratio"),
        flush_sizes=(None,) if flush_size is None else spans.whole_numbers(flush_size, what="--flush-size", least=0),
    )
    with work.without_collecting():
        found = _transcripts(paths, wanted, conversation)
        depths = None if depth is None else spans.depths(depth)
        asked = sweeping.Asked(grid=grid, depths=depths, probes=probes, best=best)
        swept = [sweeping.swept(one, wanted, asked) for one in found]
    if form == "csv":
        with printing():
            sys.stdout.write(sweeping.as_csv(swept))
    else:
        emit(sweeping.answer(swept), as_json=form == "json", as_jsonl=form == "jsonl")


def _transcripts(paths: Sequence[str] | None, wanted: work.Wanted, conversation: int | None) -> list[Transcript]:
    if not paths:
        refuse("this needs a transcript", "name a file or a folder, or `-` for standard input")
    found = [(path, transcripts(path, tool_calls=wanted.tool_calls)) for path in files(paths)]
    if conversation is None:
        return [one for _, several in found for one in several]
    return [one_of_them(several, conversation) for _, several in found]


# --- diff and explain ---


def diff(
    left: Annotated[str, typer.Argument(metavar="A.toml", help="Settings: options as keys, and [[blocks]].")],
    right: Annotated[str, typer.Argument(metavar="B.toml", help="Settings to compare them with.")],
    path: given.OneTranscript,
    conversation: Conversation = None,
    as_json: AsJson = False,
) -> None:
    """Replay a transcript under two settings, and show message by message where they part.

    Exit codes: 0 done, 2 usage, 5 the transcript, a settings file or a vocabulary could not be read, 10 to 14 a memory
    file cannot be used.
    """
    from memcli import wire_budget as wire
    from memcli.budget.differ import differ

    one, other = given.wanted_from(left), given.wanted_from(right)
    transcript = _only(path, one, conversation)
    if one.tool_calls is other.tool_calls:
        again = transcript
    elif path == "-":
        refuse("standard input can be read once, and the settings take it in two ways", "name a file")
    else:
        again = _only(path, other, conversation)
    found = differ(work.simulated(transcript, one), work.simulated(again, other))

    def screen(width: int) -> "Screen":
        from memcli.render.budget_compare import difference_screen

        return difference_screen(
            found, left=left, right=right, name=transcript.name, messages=len(transcript.messages), width=width
        )

    emit(
        Answer(document=lambda: wire.difference(found, transcript=transcript.name), screen=screen, page=True),
        as_json=as_json,
    )


def _only(path: str, wanted: work.Wanted, conversation: int | None) -> Transcript:
    return one_of_them(transcripts(path, tool_calls=wanted.tool_calls), conversation)


def explain(
    path: given.OneTranscript,
    message: Annotated[
        str | None, typer.Option("--message", metavar="ID", help="A message, by its id or its number from 0.")
    ] = None,
    fact: Annotated[
        str | None, typer.Option("--fact", metavar="ID", help="A fact of the memory file that --db names.")
    ] = None,
    policy: given.PolicyName = "llamaindex",
    token_limit: given.TokenLimit = None,
    ratio: given.Ratio = None,
    flush_size: given.FlushSize = None,
    insert_method: given.Insert = None,
    depth: given.Depth = None,
    encoding: given.Encoding = None,
    model: given.Model = None,
    blocks: given.Blocks = None,
    db: given.Facts = None,
    scope: Scope = None,
    at: given.At = None,
    writes: given.Writes = "message",
    constructor: given.Made = "from_defaults",
    tool_calls: given.Calls = "kwargs",
    conversation: Conversation = None,
    as_json: AsJson = False,
) -> None:
    """Tell the whole life of one message: counted, flushed, last seen, and every token limit that would keep it.

    With --fact, of each message that the fact came from. Exit codes: 0 done, 2 usage, 4 no such message or fact, 5 the
    transcript, a file of blocks or a vocabulary could not be read, 10 to 14 the memory file cannot be used.
    """
    if (message is None) == (fact is None):
        refuse("explain needs either a message or a fact", "give --message ID, or --fact ID with --db FILE")
    wanted = given.wanted(
        policy=policy, token_limit=token_limit, ratio=ratio, flush_size=flush_size, insert_method=insert_method,
        depth=depth, encoding=encoding, model=model, blocks=blocks, db=db, scope=scope, at=at, writes=writes,
        constructor=constructor, tool_calls=tool_calls,
    )  # fmt: skip
    transcript = _only(path, wanted, conversation)
    emit(_explained(transcript, wanted, message, fact, db, scope), as_json=as_json)


def _explained(
    transcript: Transcript,
    wanted: work.Wanted,
    message: str | None,
    fact: str | None,
    db: str | None,
    scope: str | None,
) -> Answer:
    from memcli import wire_budget as wire
    from memcli.budget.explain import explain as told
    from memcli.budget.explain import message_of

    run = work.simulated(transcript, wanted)
    if fact is not None:
        about, places = work.places_of(fact, db, scope, transcript)
    else:
        about, places = None, [message_of(run, message or "")]
    lives = [told(run, place) for place in places]

    def screen(width: int) -> "Screen":
        from memcli.render.budget_compare import lives_screen

        pairs = [(life, transcript.words(life.fate.index)) for life in lives]
        return lives_screen(pairs, name=transcript.name, path=transcript.path, about=about, width=width)

    document = {"transcript": transcript.name, "policy": run.policy, "encoding": run.encoding, "about": about}
    return Answer(document=lambda: {**document, "lives": [wire.life(life) for life in lives]}, screen=screen)
