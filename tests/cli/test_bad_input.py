"""What a person may get wrong on the command line: one clear sentence, the right exit code, and nothing written."""

from secrets import token_bytes
from unittest.mock import patch

import pytest

from memcli.text import visible
from tests.cli.driver import Mem, Ran

NUL, ESCAPE, HALF, UNSEEN = "a\0b", "a\x1b[31mb", "a\udcffb", "\u200b\u2060"
WHY = ("--reason", "tidying up")
SLOT = ("--subject", "anna", "--attribute", "home city", "--value", "Lisbon")

Case = tuple[tuple[str, ...], int, str]
"""A command line, its exit code, and how the sentence begins."""

TEXTS: list[Case] = [
    (("add", ""), 2, "the text is empty"),
    (("add", " \n\t"), 2, "the text is empty"),
    (("add", UNSEEN), 2, r"the text shows nothing: character 1 is \u200b"),
    (("add", NUL), 2, "the text has the character NUL at character 2"),
    (("add", ESCAPE), 2, r"the text has the control character \x1b at character 2"),
    (("add", HALF), 2, r"the text has half of a surrogate pair \udcff at character 2"),
    (("add", "x" * 1_000_000), 2, "the text has 1,000,000 characters, and character 100,000 is the last that fits"),
    (("add", "ok", "--subject", ""), 2, "the subject is empty"),
    (("add", "ok", "--subject", HALF), 2, "the subject has half of a surrogate pair"),
    (("add", "ok", *SLOT[:4], "--value", HALF), 2, "the value has half of a surrogate pair"),
    (("add", "ok", *SLOT[:4]), 3, "a slot needs a value"),
    (("add", "ok", "--attribute", "home city"), 3, "an attribute needs a subject"),
    (("add", "ok", "--value", "Lisbon"), 3, "a value needs a subject and an attribute"),
    (("add", "ok", "--owner", ESCAPE), 2, "the owner has the control character"),
    (("add", "ok", "--actor", HALF), 2, "the actor's name has half of a surrogate pair"),
    (("add", "ok", "--reason", NUL), 2, "the reason has the character NUL"),
    (("add", "ok", "--quote", "hot"), 2, "--quote needs --evidence"),
    (("add", "ok", "--evidence", "s1#0", "--quote", HALF), 2, "the quote has half of a surrogate pair"),
    (("correct", "f1", "", *WHY), 2, "the text is empty"),
    (("correct", "f1", UNSEEN, *WHY), 2, "the text shows nothing"),
    (("tombstone", "--value", HALF, *WHY), 2, "--value has half of a surrogate pair"),
    (("tombstone", "--contains", " ", *WHY), 2, "--contains is empty"),
    (("tombstone", "--regex", "", *WHY), 2, "--regex is empty"),
    (("tombstone", "--regex", "(", *WHY), 2, "the regular expression “(” has a mistake at character 2"),
    (("tombstone", "--regex", ".*", *WHY), 3, "that pattern would stop every text"),
    (("erase", "--value", "", *WHY), 2, "--value is empty"),
    (("erase", "--value", UNSEEN, *WHY), 2, "--value shows nothing"),
    (("erase", "--value", "?!", *WHY), 4, "nothing in this scope holds that"),
    (("check", "--residue", ""), 2, "--residue is empty"),
    (("recall", ""), 2, "there is no word in the query"),
    (("recall", "?!"), 2, "there is no word in the query"),
    (("recall", HALF[1:2]), 2, "there is no word in the query"),
    (("context", "  "), 2, "there is no word in the query"),
]

REASONS: list[Case] = [
    (("correct", "f1", "Tea is warm"), 3, "this change needs a reason"),
    (("correct", "f1", "Tea is warm", "--reason", ""), 3, "this change needs a reason"),
    (("retract", "f1", "--reason", " \t "), 3, "this change needs a reason"),
    (("tombstone", "f1"), 3, "this change needs a reason"),
    (("tombstone", "--value", "tea"), 3, "this change needs a reason"),
    (("lift", "t1"), 3, "this change needs a reason"),
    (("erase", "f1", "--reason", "\n"), 3, "this change needs a reason"),
    (("undo", "e2"), 3, "this change needs a reason"),
    (("retract", "f1", "--reason", UNSEEN), 2, "the reason shows nothing"),
    (("erase", "f1", "--reason", "because Tea is HOT"), 3, "the reason repeats the words that are to go"),
]

NAMES: list[Case] = [
    (("show", "abcd"), 4, "no fact of default has the id abcd"),
    (("show", "ab"), 4, "no fact of default has the id ab"),
    (("show", ""), 4, "no fact of default has the id"),
    (("show", "*"), 4, "no fact of default has the id *"),
    (("show", "9" * 300), 4, "no fact of default has the id 999"),
    (("show", HALF), 4, r"no fact of default has the id a\udcffb"),
    (("show", "--after", "abcd"), 4, "no fact of default has the id abcd"),
    (("show", "--source", "s99"), 4, "no source of default is called s99"),
    (("show", "--source", "s²"), 4, "no source of default is called s²"),
    (("show", "f1", "--known-at", "2020-01-01"), 4, "fact f1 was not known then"),
    (("why", "abcd"), 4, "no fact of default has the id abcd"),
    (("log", "--fact", "abcd"), 4, "no fact of default has the id abcd"),
    (("correct", "abcd", "x", *WHY), 4, "no fact of default has the id abcd"),
    (("retract", "abcd", *WHY), 4, "no fact of default has the id abcd"),
    (("verify", "abcd"), 4, "no fact of default has the id abcd"),
    (("dispute", "abcd"), 4, "no fact of default has the id abcd"),
    (("tombstone", "abcd", *WHY), 4, "no fact of default has the id abcd"),
    (("tombstone", "f1", "abcd", *WHY), 4, "no fact of default has the id abcd"),
    (("lift", "t9", *WHY), 4, "no tombstone of default is called t9"),
    (("lift", "t²", *WHY), 4, "no tombstone of default is called t²"),
    (("lift", HALF, *WHY), 4, "no tombstone of default is called"),
    (("erase", "abcd", *WHY), 4, "no fact of default has the id abcd"),
    (("erase", "--source", "s99", *WHY), 4, "no source of default is called s99"),
    (("erase", "--value", "nowhere said", *WHY), 4, "nothing in this scope holds that"),
    (("undo", "e99", *WHY), 4, "no event of default is called e99"),
    (("undo", "e" + "9" * 40, *WHY), 4, "no event of default is called e999"),
    (("add", "ok", "--derived-from", "abcd"), 4, "no fact of default has the id abcd"),
    (("add", "ok", "--evidence", "s1"), 4, "no message of default has the id s1"),
    (("add", "ok", "--evidence", "s1#" + "9" * 18), 4, "no message of default has the id s1#999"),
    (("add", "ok", "--evidence", "s99#0"), 4, "no source of default is called s99"),
    (("extract", "s99"), 4, "no source of default is called s99"),
    (("help", "nonsense"), 4, "there is no page nonsense"),
    (("verify", "f1", "--oracle", "nobody"), 3, "the policy of this file names no oracle nobody"),
]

DATES: list[Case] = [
    (("add", "ok", "--valid-from", "yesterday"), 2, "--valid-from takes a date or a time with its zone"),
    (("add", "ok", "--valid-from", "2026-01-01T00:00:00"), 2, "--valid-from takes a date or a time with its zone"),
    (("add", "ok", "--valid-from", "2026-02-30"), 2, "--valid-from takes a date or a time with its zone"),
    (("add", "ok", "--valid-to", "9999-12-31T23:59:59-12:00"), 2, "--valid-to takes a date or a time with its zone"),
    (("add", "ok", "--valid-to", ""), 2, "--valid-to takes a date or a time with its zone, and was given nothing"),
    (("add", "ok", "--valid-from", "1767225600"), 2, "--valid-from takes a date or a time with its zone"),
    (("add", "ok", "--valid-from", "2026-02-02", "--valid-to", "2026-02-01"), 3, "the interval ends before it begins"),
    (("add", "ok", "--valid-from", "2026-02-02", "--valid-to", "2026-02-02"), 3, "the interval ends before it begins"),
    (("show", "--valid-at", "x"), 2, "--valid-at takes a date"),
    (("show", "--known-at", "2026-13-01"), 2, "--known-at takes a date"),
    (("log", "--since", "now"), 2, "--since takes a date"),
]

NUMBERS: list[Case] = [
    (("recall", "tea", "-k", "0"), 2, "-k takes a whole number from 1 to 999,999,999, and was given “0”"),
    (("recall", "tea", "-k", "1_0"), 2, "-k takes a whole number from 1 to 999,999,999, and was given “1_0”"),
    (("context", "-k", "-1"), 2, "-k takes a whole number from 1"),
    (("context", "--budget", "-1"), 2, "--budget takes a whole number from 0 to 999,999,999, and was given “-1”"),
    (("context", "--budget", "9" * 40), 2, "--budget takes a whole number from 0"),
    (("show", "-n", "-1"), 2, "--limit takes a whole number from 0"),
    (("show", "-n", "9" * 40), 2, "--limit takes a whole number from 0"),
    (("show", "--limit", "²"), 2, "--limit takes a whole number from 0"),
    (("log", "-n", "-1"), 2, "--limit takes a whole number from 0"),
    (("log", "-n", ""), 2, "--limit takes a whole number from 0 to 999,999,999, and was given nothing"),
    (("add", "ok", "--importance", "7"), 2, "--importance is 7"),
    (("add", "ok", "--importance", "nan"), 2, "--importance is nan"),
    (("add", "ok", "--importance", "-inf"), 2, "--importance is -inf"),
    (("add", "ok", "--confidence", "1.01"), 2, "--confidence is 1.01"),
    (("add", "ok", "--authority", "-0.1"), 2, "--authority is -0.1"),
    (("extract", "--extractor", "cat", "--timeout", "nan"), 2, "--timeout takes seconds"),
    (("extract", "--extractor", "cat", "--timeout", "-1"), 2, "--timeout takes seconds"),
    (("verify", "f1", "--timeout", "soon"), 2, "--timeout takes seconds"),
]

USAGE: list[Case] = [
    (("nonsense",), 2, "no such command 'nonsense'"),
    ((HALF,), 2, r"no such command 'a\udcffb'"),
    (("--nonsense",), 2, "no such option: --nonsense"),
    (("show", "--nonsense"), 2, "no such option: --nonsense"),
    (("log", "nonsense"), 2, "no such command 'nonsense'"),
    (("glossary", "tea"), 2, "got unexpected extra argument(s) (tea)"),
    (("add",), 2, "missing argument 'TEXT'"),
    (("show", "--state", "happy"), 2, "happy is no state"),
    (("log", "--op", "happy"), 2, "happy is no kind of event"),
    (("import", "x.json", "--format", "happy"), 2, "happy is no format that can be read"),
    (("check", "--output-format", "happy"), 2, "happy is no output format of this command"),
    (("add", "ok", "--kind", "happy"), 2, "invalid value for '--kind': 'happy' is not one of 'belief'"),
    (("init", "--admission", "happy"), 2, "invalid value for '--admission': 'happy' is not one of 'direct'"),
    (("policy", "set", "happy", "s1", "0.5"), 2, "happy is no kind of rule"),
    (("tombstone", "f1", "--value", "tea", *WHY), 2, "name facts, or exactly one of --value, --contains and --regex"),
    (("tombstone", *WHY), 2, "name facts, or exactly one of --value, --contains and --regex"),
    (("erase", *WHY), 2, "name facts, or one of --source and --value"),
    (("import",), 2, "import needs a file"),
    (("extract", "--extractor", ""), 2, "the command line is empty"),
    (("extract", "--extractor", "a 'b"), 2, "the command line has an open quote"),
    (("extract", "--extractor", "./nowhere"), 5, "./nowhere: it cannot be started"),
    (("extract", "--extractor", "false"), 5, "false: it ended with exit code 1"),
    (("log", "verify", "--head", ""), 2, "--head is no hash of this log"),
    (("context", "--encoding", "none"), 5, "no encoding is called none"),
    (("init",), 2, "memory.db exists already; nothing was changed"),
    (("init", "--db", "new.db", "--encoding", "none"), 5, "no encoding is called none"),
    (("init", "--db", "new.db", "--scope", "*"), 2, "a scope is one plain name"),
    (("init", "--db", "nowhere/new.db"), 14, "nowhere/new.db cannot be made"),
]

SCOPES: list[Case] = [
    (("show", "--scope", ""), 2, "an empty scope names nothing"),
    (("show", "--scope", "  "), 2, "an empty scope names nothing"),
    (("show", "--scope", "*"), 2, "a scope is one plain name of up to 200 characters, without * ? %"),
    (("recall", "tea", "--scope", "user/*"), 2, "a scope is one plain name"),
    (("context", "--scope", "a%b"), 2, "a scope is one plain name"),
    (("log", "--scope", "a?"), 2, "a scope is one plain name"),
    (("add", "ok", "--scope", "a\nb"), 2, "a scope is one plain name"),
    (("add", "ok", "--scope", HALF), 2, "a scope is one plain name"),
    (("stats", "--scope", "x" * 201), 2, "a scope is one plain name"),
    (("show", "--scope", "default", "--all-scopes"), 2, "--scope and --all-scopes exclude each other"),
]

PATHS: list[Case] = [
    (("show", "--db", ""), 2, "a memory file needs a path"),
    (("show", "--db", "-"), 2, "a memory file needs a path"),
    (("show", "--db", NUL), 2, "a memory file needs a path"),
    (("show", "--db", "."), 13, ". is no file"),
    (("show", "--db", "nowhere.db"), 10, "there is no memory file at nowhere.db"),
    (("show", "--db", "memory.db/x"), 10, "there is no memory file at memory.db/x"),
    (("show", "--db", HALF), 10, r"there is no memory file at a\udcffb"),
    (("add", "ok", "--db", "a\nb"), 10, "there is no memory file at a⏎b"),
    (("show", "--db", "x" * 300), 14, "xxx"),
]


def named(case: Case) -> str:
    """Return what a test of this command line is called."""
    return " ".join(word[:20].encode("unicode_escape").decode() for word in case[0])


def every(*tables: list[Case]) -> pytest.MarkDecorator:
    """Return the mark that runs a test with each row."""
    rows = [row for table in tables for row in table]
    return pytest.mark.parametrize(("words", "code", "sentence"), rows, ids=[named(row) for row in rows])


def complains(ran: Ran, code: int, sentence: str) -> None:
    """Check that a command said one sentence, one hint and nothing else, and that the sentence begins so."""
    assert (ran.code, ran.out) == (code, ""), ran.text
    assert ran.err.startswith(f"error: {sentence}") or f"error: {sentence}" in ran.text
    error, hint = ran.err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    for line in (error, hint):
        said = line.partition(": ")[2]
        assert not said.endswith(".")
        assert not said[:2].istitle()  # lower case, but for a name such as MEM_TIMEOUT


@every(TEXTS, REASONS, NAMES, DATES, NUMBERS, USAGE, SCOPES, PATHS)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_written(
    mem: Mem, words: tuple[str, ...], code: int, sentence: str
) -> None:
    mem("add", "Tea is HOT", "--subject", "tea")
    before = mem.events(), mem.ids(), sorted(path.name for path in mem.home.iterdir())

    plain, as_json = mem.run(*words), mem.run(*words, "--json")

    complains(plain, code, sentence)
    assert (as_json.code, as_json.out) == (code, "")
    assert set(as_json.complaint) == {"error", "message", "hint"}
    assert mem.steady(visible(as_json.complaint["message"])).startswith(sentence)
    assert (mem.events(), mem.ids(), sorted(path.name for path in mem.home.iterdir())) == before


REFUSALS: list[Case] = [
    (("add", "tea is hot!"), 3, "that value was rejected in default on 12 Mar 2026 by anna"),
    (("verify", "f2"), 3, "only a person at a terminal, or an oracle that the policy names"),
    (("policy", "set", "source", "s1", "0.5"), 3, "only a person at a terminal may change the policy"),
    (("policy", "drop", "source", "s1"), 3, "only a person at a terminal may change the policy"),
    (("scope", "rename", "default", "new", *WHY), 3, "only a person at a terminal may rename a scope"),
    (("scope", "merge", "default", "new", *WHY), 3, "only a person at a terminal may merge scopes"),
]


@every(REFUSALS)
def test_a_refusal_writes_its_own_record_and_nothing_else(
    mem: Mem, words: tuple[str, ...], code: int, sentence: str
) -> None:
    mem("add", "Tea is HOT")
    mem("add", "Milk is cold")
    mem("tombstone", "f1", *WHY)
    before = mem.ok("show", "--all-states"), mem.ok("log")

    ran = mem.run(*words)

    complains(ran, code, sentence)
    facts, log = mem.ok("show", "--all-states"), mem.ok("log")
    assert facts == before[0]
    assert log[:-1] == before[1]
    assert log[-1]["op"] == "refuse"


def test_an_id_that_several_facts_begin_with_names_them(mem: Mem) -> None:
    mem("add", "Tea is HOT")
    mem("add", "Milk is cold")
    alike = alike_ids(mem)

    ran = mem.run("show", alike[:4])

    complains(ran, 4, f"{alike[:4]} begins the ids of several facts")
    assert ran.err.count(alike[:4]) == 3


def alike_ids(mem: Mem) -> str:
    """Add facts until two ids begin alike, and return one of the two."""
    with patch("os.urandom", lambda size: b"\xab\xcd" + token_bytes(size - 2)):
        mem("add", "Ice is cold")
        mem("add", "Fire is warm")
    return mem.ids()[-1]


def test_a_process_bound_to_a_scope_cannot_leave_it(mem: Mem) -> None:
    bound = {"MEM_SCOPE": "user/anna"}
    mem("add", "Tea is HOT", "--scope", "user/bob")
    before = mem.events()
    for words in (
        ("show", "--scope", "user/bob"),
        ("show", "--all-scopes"),
        ("log", "--all-scopes"),
        ("add", "Milk is cold", "--scope", "default"),
        ("tombstone", "--value", "tea", "--everywhere", *WHY),
        ("init", "--db", "new.db", "--scope", "user/bob"),
    ):
        ran = mem.run(*words, env=bound)

        complains(ran, 3, "this process is bound to user/anna and may not ")
    assert mem.events() == before
    assert mem.run("show", "f1", env=bound).code == 4
    assert mem.run("erase", "--value", "tea", *WHY, env=bound).code == 4
    assert mem.run("add", "Milk is cold", "--scope", "user/anna", env=bound).code == 0
    assert mem.ok("scope", "list", "--json") != []
    assert [item["name"] for item in mem.run("scope", "list", "--json", env=bound).document] == ["user/anna"]


@pytest.mark.parametrize("name", ["", " ", "*", "a\nb"])
def test_a_binding_that_is_no_scope_stops_every_command_that_has_one(mem: Mem, name: str) -> None:
    for words in (("show",), ("show", "--all-scopes"), ("add", "ok"), ("scope", "list"), ("init", "--db", "new.db")):
        assert mem.run(*words, env={"MEM_SCOPE": name}).code == 2

    assert mem.run("check", env={"MEM_SCOPE": name}).code == 0


@pytest.mark.parametrize("said", ["soon", "-1", "nan", "", "1e9"])
def test_a_timeout_that_is_no_number_of_seconds_is_said(mem: Mem, said: str) -> None:
    ran = mem.run("show", env={"MEM_TIMEOUT": said})

    complains(ran, 2, "MEM_TIMEOUT is no number of seconds from 0 to 3600")
