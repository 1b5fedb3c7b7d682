"""The review for scripts: a list, a file of decisions, and a check with an exit code."""

import json

import pytest
from inline_snapshot import snapshot

from memcli.terms import State
from tests.cli.driver import Mem
from tests.files import EXTRACTOR, add, chat, cite, memory, take

HOSTILE = "likes \x1b[31mred\x1b[0m and \u202ebackwards"
ITEM = ["id", "fact", "why", "evidence", "conflicts", "similar", "digest"]


@pytest.fixture
def waiting(reviewed: Mem) -> Mem:
    """A file in which two facts wait that came through a pipe."""
    for text in ("Anna skis", "Tom sails"):
        assert reviewed.run("add", text, "--actor", "nightly").code == 0
    return reviewed


def states(mem: Mem) -> list[str]:
    return [fact["state"] for fact in reversed(mem.ok("show", "--all-states"))]


def export(mem: Mem, name: str = "decisions.jsonl", **filled: str) -> str:
    """Export the queue to a file, every line filled in alike, and return its name."""
    assert mem.run("review", "export", "--output", name).code == 0
    path = mem.home / name
    lines = [json.loads(line) | filled for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name


# ---------------------------------------------------------------- list


def test_the_list_is_a_line_for_each_item_through_a_pipe(waiting: Mem) -> None:
    assert waiting("review", "list") == snapshot("""\
f1	tentative	tentative		Anna skis	T
f2	tentative	tentative		Tom sails	T
""")


def test_the_list_is_a_table_at_a_terminal(waiting: Mem) -> None:
    assert waiting.person("review", "list") == snapshot("""\
  ID    WHY        TEXT       SINCE
  f1    tentative  Anna skis  just now
  f2    tentative  Tom sails  just now

  2 items · mem review · mem review export
""")


def test_an_empty_queue_is_an_empty_list_and_a_sentence_for_a_person(reviewed: Mem) -> None:
    assert reviewed.ok("review", "list") == []
    assert reviewed("review", "list") == ""
    assert reviewed.person("review", "list") == "nothing waits for review\n"
    assert reviewed.person("review") == "nothing waits for review\n"


def test_the_keys_of_an_item_are_a_contract(waiting: Mem) -> None:
    first, second = waiting.ok("review", "list")

    assert list(first) == list(second) == ITEM
    assert list(first["why"]) == ["code", "detail", "proposal"]
    assert first["fact"]["text"] == "Anna skis"


def test_json_lines_hold_the_same_items(waiting: Mem) -> None:
    ran = waiting.run("review", "list", "--jsonl")

    assert [json.loads(line) for line in ran.out.splitlines()] == waiting.ok("review", "list")


def test_a_proposal_of_a_script_stands_in_the_list(reviewed: Mem) -> None:
    assert reviewed.run("tombstone", "--value", "vegan", "--reason", "asked").code == 6

    assert reviewed("review", "list") == snapshot("""\
p1	proposal			tombstone: vegan	T
""")
    assert reviewed.ok("review", "list")[0]["fact"] is None


def test_the_list_is_narrowed(waiting: Mem) -> None:
    assert len(waiting.ok("review", "list", "-n", "1")) == 1
    assert len(waiting.ok("review", "list", "--state", "tentative")) == 2
    assert waiting.ok("review", "list", "--state", "disputed") == []
    assert waiting.ok("review", "list", "--older-than", "2d") == []
    assert len(waiting.ok("review", "list", "--newer-than", "2d")) == 2


@pytest.mark.parametrize(
    ("words", "code", "begins"),
    [
        (("list", "--state", "certain"), 2, "error: certain is no state"),
        (("list", "--older-than", "yesterday"), 2, "error: an age is a whole number"),
        (("list", "--source", "s9"), 4, "error: no source"),
        (("--state", "tentative", "list"), 2, "error: options of review list stand behind it"),
        (("--exit-zero",), 2, "error: an output format and --exit-zero belong to --check"),
        (("--json",), 2, '{"error": "usage"'),
        (("--check", "--output-format", "xml"), 2, "error: xml is no output format"),
        (("apply", "missing.jsonl"), 5, "error: missing.jsonl: no such file"),
        (("apply", "."), 5, "error: .: is a directory"),
        (("export", "--output", "no/such/folder.jsonl"), 14, "error: no/such/folder.jsonl cannot be written"),
    ],
)
def test_a_slip_is_one_sentence(waiting: Mem, words: tuple[str, ...], code: int, begins: str) -> None:
    ran = waiting.run("review", *words)

    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(begins), ran.err


def test_without_a_terminal_the_review_names_what_scripts_use(waiting: Mem) -> None:
    assert waiting("review") == snapshot("""\
--- stderr
error: mem review asks a person at a terminal, and this is none
hint: use `mem review list`, `mem review export`, `mem review apply FILE` or `mem review --check`
--- exit 2
""")


# ---------------------------------------------------------------- check


def test_the_check_says_how_much_waits_and_exits_with_one(waiting: Mem) -> None:
    assert waiting("review", "--check") == snapshot("""\
2 items wait for review: 2 tentative
--- exit 1
""")
    assert waiting.run("review", "--check", "--exit-zero").code == 0


def test_the_check_of_an_empty_queue_exits_with_zero(reviewed: Mem) -> None:
    assert reviewed("review", "--check") == "nothing waits for review\n"
    assert reviewed.run("review", "--check", "--json").document == []


def test_the_check_is_narrowed(waiting: Mem) -> None:
    assert waiting.run("review", "--check", "--newer-than", "2d").code == 1
    assert waiting.run("review", "--check", "--older-than", "2d").code == 0


@pytest.mark.parametrize("words", [("--json",), ("--output-format", "json")])
def test_the_check_lists_what_it_found_as_json(waiting: Mem, words: tuple[str, ...]) -> None:
    ran = waiting.run("review", "--check", *words)

    assert ran.code == 1
    assert [(item["code"], item["message"]) for item in ran.document] == [
        ("tentative", "Anna skis"),
        ("tentative", "Tom sails"),
    ]


def test_the_check_speaks_to_github_on_one_line_each(reviewed: Mem) -> None:
    reviewed.run("add", "50% of\nall")

    assert reviewed("review", "--check", "--output-format", "github") == snapshot("""\
::error file=memory.db,title=mem tentative::f1: 50%25 of⏎all
--- exit 1
""")


# ---------------------------------------------------------------- export, apply


def test_an_export_never_overwrites_a_file_of_decisions(waiting: Mem) -> None:
    name = export(waiting, decision="accept")
    before = (waiting.home / name).read_text()

    assert waiting("review", "export", "--output", name) == snapshot("""\
--- stderr
error: decisions.jsonl exists already, and may hold decisions
hint: name another file with --output
--- exit 2
""")
    assert (waiting.home / name).read_text() == before


def test_an_export_goes_to_standard_output_where_no_file_is_named(waiting: Mem) -> None:
    lines = [json.loads(line) for line in waiting.run("review", "export").out.splitlines()]

    assert [(line["fact"]["text"], line["decision"]) for line in lines] == [("Anna skis", None), ("Tom sails", None)]


def test_applying_an_export_unfilled_changes_nothing(waiting: Mem) -> None:
    assert waiting("review", "apply", export(waiting)) == snapshot("""\
1	f1		undecided	\n\
2	f2		undecided	\n\
""")
    assert states(waiting) == ["tentative", "tentative"]


def test_decisions_are_applied_once_and_safely_again(waiting: Mem) -> None:
    name = export(waiting, decision="accept")

    assert waiting("review", "apply", name) == snapshot("""\
1	f1	accept	applied	\n\
2	f2	accept	applied	\n\
""")
    events = waiting.events()
    assert [line["outcome"] for line in waiting.ok("review", "apply", name)] == ["already", "already"]
    assert (states(waiting), waiting.events()) == (["accepted", "accepted"], events)


def test_decisions_are_read_from_standard_input(waiting: Mem) -> None:
    text = (waiting.home / export(waiting, decision="dispute")).read_bytes()

    assert waiting.run("review", "apply", "-", stdin=text).code == 0
    assert states(waiting) == ["disputed", "disputed"]


def test_what_became_of_each_line_is_a_table_at_a_terminal(waiting: Mem) -> None:
    name = export(waiting, decision="accept")

    assert waiting.person("review", "apply", name) == snapshot("""\
  line 1  f1 accept applied
  line 2  f2 accept applied
  2 applied
""")


def test_a_line_about_what_changed_is_refused_and_the_others_are_applied(waiting: Mem) -> None:
    name = export(waiting, decision="accept")
    assert waiting.term("dispute", "f1").code == 0

    assert waiting("review", "apply", name) == snapshot("""\
1	f1	accept	refused	f1 changed since it was exported, or waits no longer
2	f2	accept	applied	\n\
--- stderr
error: 1 of 2 lines was refused
hint: look at what waits now with `mem review list`
--- exit 3
""")
    assert states(waiting) == ["disputed", "accepted"]


def test_who_offered_a_fact_does_not_accept_it_through_a_pipe(waiting: Mem) -> None:
    name = export(waiting, decision="accept")
    ran = waiting.run("review", "apply", name, "--actor", "nightly", "--json")

    assert ran.code == 3
    assert {(line["outcome"], line["problem"]["error"]) for line in ran.document} == {("refused", "not-permitted")}
    assert ran.complaint["error"] == "refused"
    assert states(waiting) == ["tentative", "tentative"]


def test_the_actor_of_the_environment_is_the_one_who_applies(waiting: Mem) -> None:
    name = export(waiting, decision="accept")

    assert waiting.run("review", "apply", name, env={"MEM_ACTOR": "nightly"}).code == 3
    assert waiting.run("review", "apply", name, env={"MEM_ACTOR": "eve"}).code == 0
    assert {fact["actor"]["name"] for fact in waiting.ok("show")} == {"eve"}
    assert {fact["actor"]["channel"] for fact in waiting.ok("show")} == {"decisions"}


def test_a_line_that_cannot_be_read_is_named_and_nothing_else_is_lost(waiting: Mem) -> None:
    path = waiting.home / export(waiting, decision="accept")
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{{oops\n{second}\n")

    assert waiting("review", "apply", path.name) == snapshot("""\
1	f1	accept	applied	\n\
2			unreadable	that is no JSON: column 2: expecting property name enclosed in double quotes
3	f2	accept	applied	\n\
--- stderr
error: decisions.jsonl line 2: that is no JSON: column 2: expecting property name enclosed in double quotes
hint: the other lines are applied; mend this one and run it again
--- exit 5
""")
    assert states(waiting) == ["accepted", "accepted"]


def test_a_reason_for_the_whole_file_stands_in_where_a_line_has_none(waiting: Mem) -> None:
    name = export(waiting, decision="reject")

    assert waiting.run("review", "apply", name).code == 3
    assert states(waiting) == ["tentative", "tentative"]
    assert waiting.run("review", "apply", name, "--reason", "not theirs").code == 0
    assert states(waiting) == ["rejected", "rejected"]
    assert {event["reason"] for event in waiting.ok("log", "--op", "tombstone")} == {"not theirs"}


def test_an_edit_keeps_the_slot_and_takes_the_value_from_the_text(reviewed: Mem) -> None:
    slot = ("--subject", "anna", "--attribute", "home city", "--value", "Lisbn")
    assert reviewed.run("add", "Anna lives in Lisbn", *slot, "--actor", "nightly").code == 0
    name = export(reviewed, decision="edit", text="Anna lives in Lisbon", reason="typing")

    assert reviewed.run("review", "apply", name).code == 0
    assert [(fact["text"], fact["value"]) for fact in reviewed.ok("show")] == [("Anna lives in Lisbon", "Lisbon")]


def test_untrusted_text_is_escaped_in_every_form(bare: Mem) -> None:
    with memory(bare.db) as store:
        source = take(store, chat(HOSTILE))
        add(store, HOSTILE, actor=EXTRACTOR, evidence=cite(f"{source}#0"))
        assert next(iter(store.tally())) is State.TENTATIVE

    for words in (
        ("list",),
        ("list", "--json"),
        ("export",),
        ("--check", "--json"),
        ("--check", "--output-format", "github"),
    ):
        ran = bare.run("review", *words)
        assert "red" in ran.out
        assert not {"\x1b", "\u202e"} & set(ran.out), words


@pytest.mark.parametrize("words", [("review",), ("review", "list"), ("review", "export"), ("review", "apply")])
def test_the_exit_codes_stand_in_the_help(reviewed: Mem, words: tuple[str, ...]) -> None:
    assert "Exit codes:" in reviewed.run(*words, "--help").out
