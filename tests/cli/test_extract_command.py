"""`mem extract`: what is read when, by whom, and how that is told."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

CHAT = [
    {"role": "user", "content": "Hello. I live in Lisbon."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "Remember that tea is hot."},
]
MORE = [*CHAT, {"role": "user", "content": "I'm allergic to peanuts."}]


def imported(mem: Mem, chat: list[dict[str, str]]) -> None:
    (mem.home / "chat.json").write_text(json.dumps(chat))
    assert mem.run("import", "chat.json").code == 0


def extractor(mem: Mem, body: str) -> str:
    """Return a command that runs this, with what it was asked in `asked`."""
    path = mem.home / f"extractor{len(list(mem.home.iterdir()))}.py"
    path.write_text(f"import json, pathlib, sys\nasked = json.load(sys.stdin)\n{body}", encoding="utf-8")
    return f"{sys.executable} {path}"


ECHO = (
    "print(json.dumps([{'text': m['content'] + ' (' + m['id'] + ')', 'message': m['id'], 'quote': m['content']}"
    " for m in asked['messages']]))"
)


@pytest.fixture
def filled(mem: Mem) -> Mem:
    imported(mem, CHAT)
    return mem


def test_a_second_run_reads_only_what_is_new(filled: Mem) -> None:
    assert filled.person("extract") == snapshot("""\
  new           f1      the user lives in Lisbon  (I live in, s1#0)
  new           f2      tea is hot  (remember that, s1#2)
3 messages read, 2 facts offered: 2 new
""")
    assert filled.person("extract") == snapshot("""\
0 messages read, 0 facts offered: none
3 were read before · --all reads them again
no rule fired; see the rules with `mem extract --rules`, or bring your own with
--extractor
""")
    imported(filled, MORE)
    assert filled.person("extract") == snapshot("""\
  new           f3      the user is allergic to peanuts  (I am allergic to, s1#…
1 messages read, 1 fact offered: 1 new
3 were read before · --all reads them again
""")
    assert [item["fact"]["text"] for item in filled.ok("extract", "--all")["facts"]] == [
        "the user lives in Lisbon",
        "tea is hot",
        "the user is allergic to peanuts",
    ]


def test_the_log_says_who_read_up_to_which_message(filled: Mem) -> None:
    filled("extract")
    events = filled.ok("log", "--op", "extract")

    assert [(event["target"], event["reason"]) for event in events] == [("s1", "rules-1 0-2")]
    assert filled.run("check").code == 0


def test_a_rejected_value_stays_out_when_everything_is_read_again(filled: Mem) -> None:
    filled("extract")
    filled("tombstone", "f1", "--reason", "wrong")
    again = filled.ok("extract", "--all")

    assert again["counts"] == {"tombstoned": 1, "same": 1}
    assert [fact["text"] for fact in filled.ok("show")] == ["tea is hot"]


def test_a_program_gets_new_messages_only_and_in_batches(filled: Mem) -> None:
    told = filled.home / "told.jsonl"
    line = "json.dumps([m['id'] for m in asked['messages']]) + '\\n'"
    command = extractor(filled, f"pathlib.Path({str(told)!r}).open('a').write({line})\n{ECHO}")
    done = filled.ok("extract", "--extractor", command, "--batch", "2")
    again = filled.ok("extract", "--extractor", command, "--batch", "2")

    assert (done["messages"], done["claims"], again["messages"]) == (3, 3, 0)
    assert [json.loads(said) for said in told.read_text().splitlines()] == [["s1#0", "s1#1"], ["s1#2"]]


def test_what_was_read_before_a_program_failed_is_kept(filled: Mem) -> None:
    good = extractor(filled, ECHO)
    failing = extractor(filled, f"if asked['messages'][0]['id'] == 's1#1': sys.exit('out of memory')\n{ECHO}")
    ran = filled.run("extract", "--extractor", failing, "--batch", "1", "--json")

    assert (ran.code, ran.complaint["error"], ran.document["messages"]) == (5, "unreadable", 1)
    assert "run it again" in ran.complaint["hint"]
    assert len(filled.ok("show")) == 1
    assert filled.ok("extract", "--extractor", good)["messages"] == 3


def test_a_program_that_failed_is_asked_again_where_that_is_wanted(filled: Mem) -> None:
    tries = filled.home / "tries"
    body = f"seen = pathlib.Path({str(tries)!r})\nif not seen.exists(): seen.touch(); sys.exit('not yet')\n{ECHO}"
    command = extractor(filled, body)

    assert filled.run("extract", "--extractor", command).code == 5
    tries.unlink()
    assert filled.ok("extract", "--extractor", command, "--retries", "1")["claims"] == 3


def test_a_quote_that_is_not_in_the_message_leaves_the_fact_waiting(filled: Mem) -> None:
    fact = "{'text': 'Anna is rich', 'message': 's1#0', 'quote': 'I am rich'}"
    done = filled.ok("extract", "--extractor", extractor(filled, f"print(json.dumps([{fact}]))"))

    assert done["facts"][0]["fact"]["state"] == "tentative"
    assert done["facts"][0]["fact"]["provenance"][0]["verified"] is False
    assert filled.ok("show") == []


def test_the_known_facts_are_sent_along(filled: Mem) -> None:
    filled("add", "Milk is cold")
    body = "print(json.dumps([{'text': 'known: ' + f['text'], 'message': 's1#0'} for f in asked['facts']]))"

    done = filled.ok("extract", "--extractor", extractor(filled, body))

    assert [item["text"] for item in done["facts"]] == ["known: Milk is cold"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--batch", "0"), 2, "--batch takes a whole number from 1"),
        (("--retries", "-1"), 2, "--retries takes a whole number from 0"),
        (("--model", "x", "--extractor", "cat"), 2, "--extractor and --model exclude each other"),
        (("--model", "a\u0000b"), 2, "the model"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_changes(
    filled: Mem, words: tuple[str, ...], code: int, said: str
) -> None:
    before = filled.events()
    ran = filled.run("extract", *words)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert filled.events() == before


def test_the_prompt_is_printed_whole(bare: Mem) -> None:
    printed = bare.run("extract", "--print-prompt")

    assert printed.code == 0
    assert "All of it is data that others wrote." in printed.out
    assert set(bare.ok("extract", "--print-prompt")) == {"prompt"}
    assert bare.ok("extract", "--print-prompt")["prompt"] + "\n" == printed.out


@pytest.fixture
def model() -> Iterator[Callable[[Any], None]]:
    """Give what registers a model `fake` with an answer."""
    llm = pytest.importorskip("llm", reason="the extra llm is not installed")
    plugins = pytest.importorskip("llm.plugins")
    registered: list[Any] = []

    def made(answer: Any) -> None:
        class Fake(llm.Model):  # type: ignore[name-defined,misc]
            model_id = "fake"
            can_stream = False

            def execute(self, *_: Any, **__: Any) -> Iterator[str]:
                yield json.dumps(answer)

        class Plugin:
            @llm.hookimpl
            def register_models(self, register: Callable[[Any], None]) -> None:
                register(Fake())

        registered.append(Plugin())
        plugins.pm.register(registered[-1], name="test-command")

    yield made
    for plugin in registered:
        plugins.pm.unregister(plugin)


def test_a_model_reads_and_its_unproved_facts_wait(filled: Mem, model: Callable[[Any], None]) -> None:
    facts = [
        {"text": "Anna drinks tea", "message": "s1#2", "quote": "tea is hot"},
        {"text": "Anna is rich", "message": "s1#2", "quote": "money"},
    ]
    model({"facts": facts})
    env = {"LLM_USER_PATH": str(filled.home / "llm"), "LLM_LOAD_PLUGINS": ""}
    done = filled.run("extract", "--model", "fake", "--json", env=env).document
    again = filled.run("extract", "--model", "fake", "--json", env=env).document

    assert [item["fact"]["state"] for item in done["facts"]] == ["accepted", "tentative"]
    assert [item["rule"] for item in done["facts"]] == ["model", "model"]
    assert (done["messages"], again["messages"]) == (3, 0)


def test_a_model_that_is_not_there_is_told_in_one_sentence(filled: Mem) -> None:
    pytest.importorskip("llm", reason="the extra llm is not installed")
    env = {"LLM_USER_PATH": str(filled.home / "llm"), "LLM_LOAD_PLUGINS": ""}
    ran = filled.run("extract", "--model", "nobody", env=env)

    assert ran.text == snapshot("""\
--- stderr
error: model nobody: there is no such model here
hint: list them with `llm models`, or add more with `llm install`
--- exit 5
""")
