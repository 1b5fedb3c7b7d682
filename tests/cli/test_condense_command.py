"""`mem condense`: the plan on the screen, its JSON document, and every way in which it is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

KEYS = {
    "max_facts", "facts_before", "facts_after", "kept", "merged", "dropped", "protected", "lost", "applied",
}  # fmt: skip


def condenser(mem: Mem, answer: Any) -> str:
    """Return a command that prints this answer; `f1` in it is the id of the first fact."""
    said = json.dumps(answer)
    for at, name in reversed(list(enumerate(mem.ids(), 1))):
        said = said.replace(f'"f{at}"', json.dumps(name))
    path = mem.home / f"condenser{len(list(mem.home.iterdir()))}.py"
    path.write_text(f"import sys; sys.stdin.read(); print({said!r})", encoding="utf-8")
    return f"{sys.executable} {path}"


@pytest.fixture
def filled(mem: Mem) -> Mem:
    """f1 and f2 say the same, f3 and f4 do not, f4 is pinned."""
    for words in (("Tea is hot",), ("The tea is really hot",), ("The fee is 20 EUR",), ("The fee is 30 EUR", "--pin")):
        assert mem.run("add", *words).code == 0
    return mem


def test_a_dry_run_shows_the_plan_and_changes_nothing(filled: Mem) -> None:
    before = filled.events()

    assert filled.person("condense", "--max-facts", "3", "--dry-run") == snapshot("""\
default · 4 facts → 3 (at most 3)

          ID    FACT
  keeps   f1    Tea is hot
  keeps   f3    The fee is 20 EUR
  keeps   f4    The fee is 30 EUR      pinned
  merges  f2    The tea is really hot  → f1

nothing changed · leave out --dry-run
""")
    assert filled.events() == before


def test_what_says_the_same_is_merged_and_said_so(filled: Mem) -> None:
    assert filled.person("condense") == snapshot("""\
default · 4 facts → 3

          ID    FACT
  keeps   f1    Tea is hot
  keeps   f3    The fee is 20 EUR
  keeps   f4    The fee is 30 EUR      pinned
  merges  f2    The tea is really hot  → f1

condensed · take it back with `mem undo`
""")
    assert filled("show") == snapshot("""\
f4	accepted		The fee is 30 EUR		1
f3	accepted		The fee is 20 EUR		1
f1	accepted		Tea is hot		2
""")
    assert filled.person("condense") == snapshot("""\
default · 3 facts → 3

         ID    FACT
  keeps  f1    Tea is hot
  keeps  f3    The fee is 20 EUR
  keeps  f4    The fee is 30 EUR  pinned

nothing says the same as another
""")


def test_a_pipe_gets_a_line_for_each_fact(filled: Mem) -> None:
    assert filled("condense", "--dry-run") == snapshot("""\
keeps	f1		Tea is hot
keeps	f3		The fee is 20 EUR
keeps	f4	pinned	The fee is 30 EUR
merges	f2	→ f1	The tea is really hot
""")


def test_the_document_accounts_for_every_fact(filled: Mem) -> None:
    planned = filled.ok("condense", "--dry-run")
    done = filled.ok("condense", "--max-facts", "3")
    one, two, three, four = filled.ids()

    assert set(planned) == set(done) == KEYS
    assert done == {
        "max_facts": 3,
        "facts_before": 4,
        "facts_after": 3,
        "kept": [one, three, four],
        "merged": [{"text": "Tea is hot", "from": [two], "fact": one}],
        "dropped": [],
        "protected": [four],
        "lost": [],
        "applied": True,
    }
    assert planned == done | {"max_facts": None, "applied": False}
    assert filled.ok("condense")["applied"] is False


def test_an_empty_file_has_nothing_to_condense(mem: Mem) -> None:
    assert mem.person("condense", "--max-facts", "3") == snapshot("""\
default · 0 facts → 0 (at most 3)

nothing says the same as another
""")
    assert mem.ok("condense", "--condenser", "false")["facts_before"] == 0


def test_what_the_rules_cannot_reach_is_refused_and_nothing_changes(filled: Mem) -> None:
    before = filled.events()
    ran = filled.run("condense", "--max-facts", "2", "--json")

    assert (ran.code, ran.complaint["error"]) == (3, "loss")
    assert (ran.document["facts_after"], ran.document["applied"]) == (3, False)
    assert filled.person("condense", "--max-facts", "2") == snapshot("""\
default · 4 facts → 3 (at most 2)

          ID    FACT
  keeps   f1    Tea is hot
  keeps   f3    The fee is 20 EUR
  keeps   f4    The fee is 30 EUR      pinned
  merges  f2    The tea is really hot  → f1

nothing changed
error: 3 facts are left when what says the same is merged, and at most 2 were as
ked for
hint: name what may go with --allow-loss ID, or let a program put it in fewer wo
rds with --condenser
--- exit 3
""")
    assert filled.events() == before


def test_a_fact_that_a_person_named_is_dropped_where_it_must(filled: Mem) -> None:
    done = filled.ok("condense", "--max-facts", "2", "--allow-loss", "f3", "--reason", "too many")

    assert done["dropped"] == [filled.ids()[2]]
    assert done["lost"] == [{"id": filled.ids()[2], "text": "The fee is 20 EUR", "why": "dropped", "allowed": True}]
    assert [fact["state"] for fact in filled.ok("show", "f1", "f2", "f3", "f4")] == [
        "accepted",
        "superseded",
        "revoked",
        "accepted",
    ]


def test_every_fact_that_a_program_would_lose_is_listed(filled: Mem) -> None:
    command = condenser(
        filled, {"facts": [{"text": "Tea is hot, the fee is 20 EUR", "from": ["f1", "f3"]}, {"keep": "f4"}]}
    )

    assert filled.person("condense", "--condenser", command) == snapshot("""\
default · 4 facts → 2

          ID    FACT
  keeps   f4    The fee is 30 EUR              pinned
  merges  f1    Tea is hot                     → a new fact
  merges  f3    The fee is 20 EUR              → a new fact
  makes         Tea is hot, the fee is 20 EUR
  drops   f2    The tea is really hot          left out

nothing changed
error: 1 fact would vanish that nobody named: f2
hint: name each with --allow-loss ID, or let it be kept or merged
--- exit 3
""")
    refused = filled.run("condense", "--condenser", command, "--json")
    assert refused.code == 3
    assert [(item["id"], item["why"], item["allowed"]) for item in refused.document["lost"]] == [
        (filled.ids()[1], "left out", False)
    ]
    done = filled.ok("condense", "--condenser", command, "--allow-loss", "f2")
    assert done["merged"] == [
        {"text": "Tea is hot, the fee is 20 EUR", "from": [filled.ids()[0], filled.ids()[2]], "fact": filled.ids()[4]}
    ]
    assert filled.person("show") == snapshot("""\
memory.db · scope default · 2 of 5 readable

  ID    STATE     FACT                           SINCE  SEEN
  f5    accepted  Tea is hot, the fee is 20 EUR  –        2×
  f4    accepted  The fee is 30 EUR              –        1×

  mem why f5 · mem show --all-states
""")


def test_a_protected_fact_is_never_lost(filled: Mem) -> None:
    ran = filled.run("condense", "--max-facts", "1", "--allow-loss", "f4")

    assert (ran.code, ran.out) == (3, "")
    assert "is protected (pinned)" in ran.err
    command = condenser(filled, {"facts": [{"text": "everything", "from": ["f1", "f2", "f3", "f4"]}]})
    ran = filled.run("condense", "--condenser", command, "--json")
    assert (ran.code, ran.complaint["error"]) == (3, "loss")
    assert len(filled.ok("show")) == 4


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--max-facts", "0"), 2, "--max-facts takes a whole number from 1"),
        (("--max-facts", "ten"), 2, "--max-facts takes a whole number from 1"),
        (("--allow-loss", "0123456789abcdef"), 4, "no fact of default has the id 0123456789abcdef"),
        (("--condenser", "false"), 5, "false: it ended with exit code 1"),
        (("--condenser", "./nowhere"), 5, "./nowhere: it cannot be started"),
        (("--condenser", "sleep 30", "--timeout", "0.2"), 5, "sleep 30: it took longer than 0.2 s"),
        (("--condenser", "echo hello"), 5, "echo hello: its output cannot be read"),
        (("--condenser", ""), 2, "the command line is empty"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_changes(
    filled: Mem, words: tuple[str, ...], code: int, said: str
) -> None:
    before = filled.events()
    ran = filled.run("condense", *words)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert filled.events() == before


def test_a_fact_that_is_not_readable_cannot_be_named_as_a_loss(filled: Mem) -> None:
    filled("retract", "f3", "--reason", "wrong")
    ran = filled.run("condense", "--allow-loss", "f3")

    assert (ran.code, ran.out) == (2, "")
    assert "is none of those that would be condensed" in ran.err


def test_a_tombstoned_text_is_refused_and_the_refusal_is_in_the_log(filled: Mem) -> None:
    filled("tombstone", "--value", "tea is free", "--reason", "never")
    command = condenser(
        filled, {"facts": [{"text": "Tea is FREE", "from": ["f1", "f2"]}, {"keep": "f3"}, {"keep": "f4"}]}
    )
    refused = filled.run("condense", "--condenser", command)

    assert refused.code == 3
    assert "that value was rejected" in refused.err
    assert [event["reason"] for event in filled.ok("log", "--op", "refuse")] == ["tombstoned"]
    assert len(filled.ok("show")) == 4
    assert filled.run("condense", "--condenser", command, "--dry-run").code == 3


def test_a_script_proposes_and_a_person_decides(reviewed: Mem) -> None:
    for text in ("Tea is hot", "The tea is really hot"):
        assert reviewed.term("add", text).code == 0
    unexplained = reviewed.run("condense")
    asked = reviewed.run("condense", "--reason", "too many", "--json")

    assert unexplained.code == 3
    assert (asked.code, asked.complaint["error"], asked.document["applied"]) == (6, "held", False)
    assert len(reviewed.ok("show")) == 2
    assert reviewed.person("review", answers=[("decide (1/1): ", "a")]) == snapshot("""\

(1/1)  proposal · condense asked by anna through pipe

   anna, pipe proposes to condense: “too many”
     merges “The tea is really hot” into “Tea is hot”
     keeps 1 fact

 [a]ccept  [r]eject…  [s]kip  [u]ndo  [q]uit  [?] help
decide (1/1): accept
accepted p1
1 of 1 item decided · 1 accepted · nothing is left
""")
    assert [fact["text"] for fact in reviewed.ok("show")] == ["Tea is hot"]


def test_a_file_for_transactions_refuses(checked: Mem) -> None:
    ran = checked.run("condense", "--json")

    assert (ran.code, ran.out, ran.complaint["error"]) == (3, "", "not-permitted")


def test_another_scope_is_not_looked_at(filled: Mem) -> None:
    filled("add", "Tea is hot", "--scope", "other")
    filled("add", "Tea is really hot", "--scope", "other")
    before = filled.ok("show", "--scope", "other")
    done = filled.ok("condense")

    assert done["facts_before"] == 4
    assert filled.ok("show", "--scope", "other") == before
    assert filled.ok("condense", "--scope", "other")["merged"] != []


def test_it_is_undone_without_naming_an_event(filled: Mem) -> None:
    filled("condense")
    assert len(filled.ok("show")) == 3
    filled("undo", "--reason", "they differ")

    assert len(filled.ok("show")) == 4
    assert filled.run("check").code == 0


def test_a_condenser_is_told_what_the_help_says(filled: Mem, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    script = tmp_path / "cat.py"
    script.write_text(
        "import json, sys; asked = json.load(sys.stdin); json.dump(asked, open(sys.argv[1], 'w'));"
        "print(json.dumps({'facts': [{'keep': fact['id']} for fact in asked['facts']]}))",
        encoding="utf-8",
    )
    assert filled.run("condense", "--condenser", f"{sys.executable} {script} {told}").code == 0
    words = " ".join(filled.run("condense", "--help").out.split())

    assert all(f'"{key}"' in words for key in json.loads(told.read_text(encoding="utf-8")))
