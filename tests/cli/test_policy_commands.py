"""The policy: rules for sources, oracles, agents and tools, one by one and from a file."""

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

POLICY = """\
[sources]
erp = 0.8
"src:billing" = 1

[oracles]
register = "python3 check.py"

[agents.planner]
tiers = ["low", "medium", "high"]

[agents."*"]
tiers = ["low"]

[tools]
refund = "irreversible"
post = "irreversible@public"
"""


@pytest.fixture
def desk(mem: Mem) -> Mem:
    """A folder with a policy in it."""
    (mem.home / "policy.toml").write_text(POLICY)
    return mem


def rules(mem: Mem) -> dict[str, str]:
    return {f"{rule['kind']} {rule['name']}": rule["value"] for rule in mem.ok("policy", "show")}


WHOLE = {
    "agent *": "low",
    "agent planner": "high",
    "oracle register": "python3 check.py",
    "source erp": "0.8",
    "source src:billing": "1",
    "tool post": "irreversible@public",
    "tool refund": "irreversible",
}


def test_a_file_sets_all_its_rules_and_leaves_others(desk: Mem) -> None:
    desk.person("policy", "set", "tool", "hold", "reversible")
    desk.person("policy", "set", "source", "erp", "0.2")

    screen = desk.person("policy", "import", "policy.toml", "--reason", "from the repository")

    assert rules(desk) == {**WHOLE, "tool hold": "reversible"}
    assert screen == snapshot("""\
  KIND    NAME         VALUE                WAS
  source  erp          0.8                  0.2
  source  src:billing  1
  oracle  register     python3 check.py
  agent   planner      high
  agent   *            low
  tool    refund       irreversible
  tool    post         irreversible@public
policy.toml: set 7 rules
""")
    events = [event for event in desk.ok("log") if event["op"] == "policy"]
    assert {event["reason"] for event in events[2:]} == {"from the repository"}
    assert [event["target"] for event in events[2:4]] == ["source:erp", "source:src:billing"]


def test_a_second_time_it_changes_nothing(desk: Mem) -> None:
    desk.person("policy", "import", "policy.toml")
    events = desk.events()

    assert desk.person("policy", "import", "policy.toml") == "policy.toml: set 0 rules, 7 as they are\n"
    assert desk.events() == events


def test_a_dry_run_says_what_would_change(desk: Mem) -> None:
    events = desk.events()

    document, screen = (
        desk.ok("policy", "import", "policy.toml", "--dry-run"),
        desk("policy", "import", "-", "--dry-run"),
    )

    assert set(document) == {"path", "rules", "changed", "applied"}
    assert document["rules"][0] == {"kind": "source", "name": "erp", "value": "0.8", "was": None}
    assert (document["changed"], document["applied"]) == (7, False)
    assert screen.endswith("--- stderr\nerror: -: it sets no rule\nhint: see `mem policy import --help`\n--- exit 5\n")
    assert desk.events() == events


def test_only_a_person_changes_the_policy(desk: Mem) -> None:
    for words in (("import", "policy.toml"), ("set", "tool", "x", "reversible"), ("drop", "tool", "x")):
        ran = desk.run("policy", *words)

        assert (ran.code, ran.err.splitlines()[0]) == (
            3,
            "error: only a person at a terminal may change the policy",
        )
    assert rules(desk) == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool]\nx = 1", "tool is no table of a policy"),
        ("tools = 1", "tools must be a table"),
        ("erp = 0.8", "erp is no table of a policy"),
        ("[sources]\nerp = 2", "sources.erp: an authority is a number from 0 to 1"),
        ("[sources]\nerp = nan", "sources.erp: an authority is a number from 0 to 1"),
        ("[sources]\nerp = true", "sources.erp: an authority is a number from 0 to 1"),
        ('[sources]\nerp = "0.8"', "sources.erp: an authority is a number from 0 to 1"),
        ("[oracles]\nerp = 1", "oracles.erp: an oracle is the command line that it runs"),
        ('[oracles]\nerp = " "', "oracles.erp: the command line is empty"),
        ('[oracles]\n" " = "x"', "oracles. : the name of a rule is empty"),
        ("[agents]\nx = 1", "agents.x: an agent is a table with tiers"),
        ('[agents.x]\ntier = "low"', "agents.x: tier is no key of an agent"),
        ("[agents.x]\n", "agents.x: tiers is a list of the tiers that it may begin"),
        ("[agents.x]\ntiers = []", "agents.x: tiers is a list of the tiers that it may begin"),
        ('[agents.x]\ntiers = "low"', "agents.x: tiers is a list of the tiers that it may begin"),
        ('[agents.x]\ntiers = ["lowest"]', "agents.x: lowest is no tier"),
        ("[agents.x]\ntiers = [7]", "agents.x: 7 is no tier"),
        ('[agents.x]\ntiers = ["low", "low"]', "agents.x: tiers names one twice"),
        ('[agents.x]\ntiers = ["low", "high"]', "agents.x: tiers has high and not medium"),
        ("[tools]\nx = 1", "tools.x: a tool is reversible or irreversible"),
        ('[tools]\nx = "dangerous"', "tools.x: dangerous says nothing about a tool"),
        ('[tools]\nx = "irreversible@moon"', "tools.x: irreversible@moon says nothing about a tool"),
        ('[tools]\nx = "reversible"\nx = "irreversible"', "it is no TOML: cannot overwrite a value"),
        ("[tools]\n[tools]", "it is no TOML: cannot declare"),
        ("[tools", "it is no TOML: "),
        ("", "it sets no rule"),
        ("[tools]", "it sets no rule"),
    ],
)
def test_one_mistake_is_named_and_nothing_changes(desk: Mem, text: str, sentence: str) -> None:
    (desk.home / "bad.toml").write_text(text)

    ran = desk.run("policy", "import", "bad.toml", "--json")

    assert (ran.code, ran.complaint["error"]) == (5, "unreadable")
    assert ran.complaint["message"].startswith(f"bad.toml: {sentence}")
    assert rules(desk) == {}


def test_a_good_rule_before_a_bad_one_is_not_set(desk: Mem) -> None:
    (desk.home / "bad.toml").write_text('[oracles]\ngood = "true"\n[tools]\nx = "dangerous"\n')

    assert desk.term("policy", "import", "bad.toml").code == 5
    assert rules(desk) == {}


def test_a_file_that_is_not_there_or_no_text_is_said_to_be_so(desk: Mem) -> None:
    (desk.home / "bytes.toml").write_bytes(b"\xff")

    assert desk.run("policy", "import", "none.toml").err.startswith("error: none.toml: no such file or directory\n")
    assert desk.run("policy", "import", "bytes.toml").err.startswith("error: bytes.toml: byte 1 is no UTF-8\n")
    assert desk.run("policy", "import", "bytes.toml").code == 5


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("source", "erp", "0.8"),
        ("oracle", "register", "true"),
        ("agent", "planner", "external"),
        ("tool", "post", "irreversible@public"),
    ],
)
def test_a_rule_of_each_kind_is_set_and_dropped(mem: Mem, kind: str, name: str, value: str) -> None:
    assert mem.person("policy", "set", kind, name, value) == f"set {kind} {name} to {value}\n"
    assert rules(mem) == {f"{kind} {name}": value}
    assert mem.person("policy", "drop", kind, name) == f"dropped {kind} {name}\n"
    assert rules(mem) == {}


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        ("agent", "highest", "highest is no tier"),
        ("tool", "harmless", "harmless says nothing about a tool"),
        ("mood", "good", "mood is no kind of rule"),
    ],
)
def test_a_value_that_says_nothing_is_refused(mem: Mem, kind: str, value: str, sentence: str) -> None:
    seen = mem.term("policy", "set", kind, "x", value)

    assert seen.code == 2
    assert seen.screen.startswith(f"error: {sentence}\n")
    assert rules(mem) == {}
