"""What a person sees at a terminal of 80 columns, and what no text from outside can make of it."""

import json

import pytest
from inline_snapshot import snapshot

from tests.cli.driver import Mem

CHAT = [
    {"role": "assistant", "content": "How is the flat in Berlin?"},
    {"role": "user", "content": "I sold it, we moved to Lisbon last week"},
    {"role": "assistant", "content": "Congratulations! Shall I update your address?"},
]
SLOT = ("--subject", "anna", "--attribute", "home city", "--value")


@pytest.fixture
def home(mem: Mem) -> Mem:
    """f1 was corrected on evidence and f2 derived from it; f3 and f4 have nothing to do with it."""
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    mem("import", "chat.json")
    mem("add", "Anna lives in Berlin", *SLOT, "Berlin")
    mem("correct", "f1", "Anna lives in Lisbon", "--valid-from", "2026-03-05", "--evidence", "s1#1",
        "--quote", "moved to Lisbon", "--reason", "moved")  # fmt: skip
    mem("add", "Anna's time zone is WET", "--derived-from", "f1")
    mem("add", "prefers short answers without emoji", "--pin")
    mem("add", "The budget of the trip is 2,400 EUR, and it goes by train, never by plane and never on a Friday",
        "--subject", "trip")  # fmt: skip
    return mem


def test_show_lists_one_fact_a_line(home: Mem) -> None:
    assert home.person("show") == snapshot("""\
memory.db · scope default · 4 of 4 readable

  ID    STATE     SUBJECT  FACT                                     SINCE   SEEN
  f4    accepted  trip     The budget of the trip is 2,400 EUR, a…  –         1×
  f3    accepted           prefers short answers without emoji      –         1×
  f2    accepted           Anna's time zone is WET                  –         1×
  f1    accepted  anna     lives in Lisbon                          Mar 26    1×

  mem why f4
""")


def test_show_of_one_fact(home: Mem) -> None:
    assert home.person("show", "f1") == snapshot("""\
anna · home city = Lisbon                                    accepted, version 2
“Anna lives in Lisbon”                                            f1 · default

  id           f1
  kind         belief, shared
  true         since 5 Mar 2026
  known        since 12 Mar 2026 12:00 (just now)
  recorded by  anna, pipe
  authority    0.6
  tokens       4 (o200k_base)
  from         s1 #1  user  “moved to Lisbon”

  mem why f1 · mem correct f1 TEXT · mem tombstone f1 --dry-run
""")


def test_why_shows_the_message_in_its_context(home: Mem) -> None:
    assert home.person("why", "f1") == snapshot("""\
anna · home city = Lisbon                                    accepted, version 2
“Anna lives in Lisbon”                                            f1 · default

Because
  chat.json #1  user, time unknown
     0  assistant  How is the flat in Berlin?
   ▸ 1  user       I sold it, we [moved to Lisbon] last week
     2  assistant  Congratulations! Shall I update your address?

Was
      SAID    TRUE              KNOWN              STATE
  v1  Berlin  until 5 Mar 2026  12 Mar 2026 12:00  superseded
  v2  Lisbon  since 5 Mar 2026  since 12 Mar 2026  accepted

From this one
  f2 “Anna's time zone is WET” (inferred), accepted

Log
  #3  12 Mar 2026 12:00  added by anna, pipe
  #4  12 Mar 2026 12:00  superseded by anna, pipe: “moved”
  #5  12 Mar 2026 12:00  corrected by anna, pipe: “moved”
""")


def test_recall_explains_its_score(home: Mem) -> None:
    assert home.person("recall", "lisbon", "--explain") == snapshot("""\
  ID    SCORE  SUBJECT  FACT             RELEVANCE  RECENCY  IMPORTANCE
  f1     0.92  anna     lives in Lisbon       1.00     1.00        0.50

  mem why f1 · mem context
""")


def test_log_says_who_what_and_why(home: Mem) -> None:
    assert home.person("log", "-n", "4") == snapshot("""\
  #  WHEN      WHO         WHAT                       WHY
  8  just now  anna, pipe  added f4 → accepted
  7  just now  anna, pipe  added f3 → accepted
  6  just now  anna, pipe  added f2 → accepted
  5  just now  anna, pipe  corrected f1 → accepted  “moved”

chain of 8 events verified
head H
pin it elsewhere: mem log verify --head HEAD
""")


def test_tombstone_shows_what_it_would_do(home: Mem) -> None:
    home("add", "Anna lives in Lisbon near the river")

    assert home.person("tombstone", "f1", "--dry-run") == snapshot("""\
would reject, in default, until somebody lifts it:
    “Anna lives in Lisbon”
    any wording of  anna · home city = Lisbon
  hits now       f1 “Anna lives in Lisbon” (accepted) → rejected
  falls with it  f2 “Anna's time zone is WET” (accepted) → revoked
  would NOT stop “Anna lives in Lisbon near the river” (f5, 90 % alike):
                 reject it too if it is the same claim
nothing changed · leave out --dry-run and give --reason
""")


def test_erase_shows_what_it_would_do(home: Mem) -> None:
    assert home.person("erase", "--source", "s1", "--dry-run") == snapshot("""\
would remove the words for good, everywhere in the file; digests and the log
  stay:
  messages       3: s1#0 s1#1 s1#2
  sources        1: s1
  to review      f1 “Anna lives in Lisbon” (accepted)
nothing changed · leave out --dry-run and give --reason
""")


def test_stats(home: Mem) -> None:
    assert home.person("stats") == snapshot("""\
memory.db · scope default · admission direct · schema 3

Facts
  tentative                     0
  accepted                      4
  verified                      0
  disputed                      0
  superseded                    0
  revoked                       0
  rejected                      0

Beside them
  waiting for review            0
  scopes                        1
  sources                       5
  messages                      7
  tombstones                    0
  audit events                  8

Sizes
  tokens (o200k_base)          43
  facts not counted             0
  file                  368.0 KiB
  write-ahead log             0 B
  free pages                  0 B
""")


def test_import_says_what_was_new(home: Mem) -> None:
    (home.home / "more.json").write_text(json.dumps([*CHAT, {"role": "user", "content": "I live in Lisbon."}]))

    assert home.person("import", "chat.json", "more.json", "nowhere.json") == snapshot("""\
chat.json · openai
  1 conversation · 3 messages (2 assistant, 1 user)
  0 new, 3 there already, 3 without a time
more.json · openai
  1 conversation · 4 messages (2 assistant, 2 user)
  1 new, 3 there already, 4 without a time
nowhere.json · not recognised
  ✗ nowhere.json: there is no such file

3 files: 1 new, 6 there already · 1 not read
  mem extract s1 · mem review · mem show
error: nowhere.json: there is no such file
hint: check the path and who may read it
--- exit 5
""")


def test_extract_says_which_rule_fired(home: Mem) -> None:
    (home.home / "more.json").write_text(json.dumps([{"role": "user", "content": "Remember that tea is hot."}]))
    home("import", "more.json")

    assert home.person("extract", "--dry-run") == snapshot("""\
  offered               tea is hot  (remember that, s6#0)
4 messages read, 1 fact offered: 1 offered
nothing changed · leave out --dry-run
""")


def test_scopes_and_policy(home: Mem) -> None:
    home("add", "Bob likes tea", "--scope", "user/bob")
    home.person("policy", "set", "source", "s1", "0.8")

    assert home.person("scope", "list") + home.person("policy", "show") == snapshot("""\
  SCOPE     FACTS  READABLE  SOURCES  TOMBSTONES
  default       4         4        5           0  default
  user/bob      1         1        1           0
  KIND    NAME  VALUE
  source  s1    0.8
""")


def test_a_whole_file_says_so(home: Mem) -> None:
    assert home.person("check") == snapshot("nothing found: the file is whole\n")


SCREENS = (
    ("show",),
    ("show", "f1"),
    ("show", "--all-states"),
    ("why", "f1"),
    ("why", "f2"),
    ("recall", "anna", "--explain"),
    ("context",),
    ("log",),
    ("stats",),
    ("check",),
    ("tombstone", "f1", "--dry-run"),
    ("erase", "f1", "--dry-run"),
    ("extract", "--dry-run"),
    ("import", "chat.json", "--dry-run"),
    ("import", "--list"),
    ("scope", "list"),
)


@pytest.mark.parametrize("columns", [40, 300])
def test_a_narrow_and_a_wide_terminal_show_everything_that_matters(home: Mem, columns: int) -> None:
    for words in (("show",), ("why", "f1"), ("log",), ("tombstone", "f1", "--dry-run")):
        seen = home.term(*words, columns=columns)

        assert seen.code == 0
        assert "f1" in seen.screen
        assert "Lisbon" in seen.screen or words[0] == "log"


@pytest.mark.parametrize("columns", ["40", "80", "300"])
def test_no_line_is_wider_than_the_screen(home: Mem, columns: str) -> None:
    for words in SCREENS:
        ran = home.run(*words, env={"COLUMNS": columns})

        piped = "\t" in ran.out or words in {("context",), ("import", "--list")}
        assert ran.code == 0
        assert piped or max(map(len, ran.out.splitlines())) <= int(columns), ran.out


HOSTILE = {
    "escape": "\x1b[2J\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://example.com\x1b\\here\x1b]8;;\x1b\\",
    "8-bit": "\x9b31m and \x9d0;owned\x9c",
    "bidi": "user\u202etxt.exe\u2066 and \u200bnothing",
    "markup": "[bold red]loud[/bold red] [link=http://example.com]x[/link] :smile:",
    "return": "safe\rHACK \x08\x08\x08 \x0b\x0c",
}


def hostile(mem: Mem) -> None:
    """Bring in messages that hold it all, and facts as far as it may be typed."""
    chat = [{"role": "user", "content": f"remember that {text} is here"} for text in HOSTILE.values()]
    (mem.home / "evil.json").write_text(json.dumps(chat))
    assert mem.run("import", "evil.json").code == 0
    for number, text in enumerate(HOSTILE.values()):
        mem("add", f"Number {number} says something", "--evidence", f"s1#{number}")
        mem("add", text, "--subject", HOSTILE["bidi"], "--reason", HOSTILE["markup"])


def test_text_from_outside_never_reaches_the_terminal_raw(mem: Mem) -> None:
    hostile(mem)
    seen = [
        mem.term(*words, env={"NO_COLOR": "1"}).raw
        for words in (
            ("show", "--all-states"),
            ("why", "f1"),
            ("why", "f2"),
            ("why", "f4"),
            ("why", "f6"),
            ("log",),
            ("recall", "number"),
            ("context",),
            ("extract",),
            ("tombstone", "--contains", "is", "--dry-run"),
            ("erase", "--source", "s1", "--dry-run"),
            ("import", "evil.json"),
            ("import", "--list"),
        )
    ]

    for raw in seen:
        text = raw.decode()
        assert not {sign for sign in text if ord(sign) < 32} - {"\r", "\n"}, text
        assert not {sign for sign in text if sign in "\x7f\x9b\x9c\x9d\u202e\u2066\u200b"}, text
        assert "\r" not in text.replace("\r\n", "")
    assert any("\\x1b" in raw.decode() for raw in seen)
    assert any("[bold red]" in raw.decode() for raw in seen)


def test_text_from_outside_never_reaches_a_pipe_raw(mem: Mem) -> None:
    hostile(mem)

    for words in (("show", "--all-states"), ("log",), ("why", "f1"), ("extract", "--dry-run"), ("context",)):
        out = mem.run(*words).out

        assert out
        assert not {sign for sign in out if sign in "\x1b\x07\x08\x7f\x9b\r\u202e"}, out


def test_colours_are_for_terminals_that_want_them(home: Mem) -> None:
    def coloured(**env: str) -> bool:
        return b"\x1b[" in home.term("show", env=env).raw

    assert coloured()
    assert not coloured(NO_COLOR="1")
    assert not coloured(TERM="dumb")
    assert b"\x1b" not in home.term("--no-color", "show").raw
    assert b"\x1b" not in home.term("show", "--no-color").raw
    assert b"\x1b" not in home.term("show", "--json").raw
    assert "\x1b" not in home.run("show", env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}).out


def test_errors_carry_no_colour_and_stay_two_lines(home: Mem) -> None:
    assert home.person("show", "abcd") == snapshot("""\
error: no fact of default has the id abcd
hint: list the facts with `mem show --all-states`
--- exit 4
""")
    assert b"\x1b" not in home.term("show", "abcd").raw


def test_a_long_listing_goes_through_the_pager_and_a_short_one_does_not(home: Mem) -> None:
    pager = {"PAGER": "sed s/^/paged:/"}

    long, short = home.term("show", env=pager, rows=5), home.term("show", env=pager, rows=60)
    document = home.term("show", "--json", env=pager, rows=5)

    assert "paged:" in long.screen
    assert "paged:" not in short.screen
    assert "paged:" not in document.screen


COMMANDS = """
show why recall context log add correct retract verify dispute undo tombstone lift erase review import extract init
check stats migrate rebuild glossary scope policy tour help
"""


def test_help_names_every_command(bare: Mem) -> None:
    seen = bare.term("--help").screen

    for command in COMMANDS.split():
        assert f"\n  {command} " in seen
