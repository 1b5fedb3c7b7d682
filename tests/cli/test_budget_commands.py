"""`mem budget` as a script and a person run it: what comes out, in every form, and how it ends."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from memcli.budget.findings import CODES
from memcli.budget.run import POLICIES
from tests.cli.driver import Mem

FIXTURES = Path(__file__).parents[2] / "fixtures"
KEYS = ["settings", "effective", "clamps", "messages", "steps", "prompt", "blocks", "findings", "totals"]
BLOCKS = """\
[[blocks]]
name = "persona"
type = "static"
text = "be kind"

[[blocks]]
name = "facts"
type = "facts"
facts = ["Anna lives in Lisbon"]
priority = 2
"""
SMALL = ("--encoding", "words", "--token-limit", "40", "--flush-size", "10")


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


CHAT = [
    said("system", "answer in one short sentence please"),
    *(said("user" if turn % 2 else "assistant", f"this is message number {turn} of the chat") for turn in range(1, 10)),
]


@pytest.fixture
def desk(bare: Mem) -> Mem:
    """A folder with a transcript in it, and no memory file."""
    (bare.home / "chat.json").write_text(json.dumps(CHAT))
    (bare.home / "blocks.toml").write_text(BLOCKS)
    return bare


# ---------------------------------------------------------------- simulate


def test_a_run_is_one_screen(desk):
    screen, _, findings = desk("budget", "simulate", "chat.json", *SMALL, "--blocks", "blocks.toml").partition(
        "FINDINGS"
    )

    assert "✗ system-evicted  turn 1 · message 0 · 6 tokens" in findings
    assert screen == snapshot("""\
chat.json · 10 messages in 5 turns · 78 tokens (words) · policy llamaindex 0.14
  as shipped

  limit 40 · flush size 10 · ratio 0.7 · flushes above 28 · insert system

  limit 40    ├─ history 70 % ── 28 ──────────────────────┤├─ blocks 30 % ───┤
  at the end  ██████████████████████████████████████░░░░░░░▓▓▓▓▓▓▓▓▓▓
  in the prompt: messages 24 · blocks 6 · template 6 · free 4
  thinks 30 · really sends 36
  47 % of each prompt began as the one before it did

FLUSHES
  #  TURN  WRITE  TOKENS   MESSAGES  TO
  1     1      3  30 → 8   0–2       nobody
  2     2      6  32 → 16  3–4       nobody
  3     3      8  32 → 16  5–6       nobody

BLOCKS
  BLOCK    KIND    PRIORITY  WANTED  GOT  FATE
  persona  static         0       2    2  whole
  facts    facts          2       4    4  whole

THE PROMPT AT THE END
  PART                PIECES  THINKS  REALLY
  block persona            1       2       2
  block facts              1       4       4
  user messages            2      16      16
  assistant messages       1       8       8
  template                 1       0       6

""")


def test_a_run_is_one_document_with_these_keys(desk):
    document = desk.ok("budget", "simulate", "chat.json", *SMALL)

    assert list(document) == KEYS
    assert document["settings"]["transcript"] == "chat.json"
    assert [message["id"] for message in document["messages"]] == [str(at) for at in range(10)]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_answers_in_one_shape(desk, policy):
    document = desk.ok("budget", "simulate", "chat.json", *SMALL, "--policy", policy)

    assert list(document) == KEYS
    assert document["settings"]["policy"] == policy
    assert len(document["messages"]) == 10


def test_a_count_is_that_of_llamaindex_for_every_key_of_a_message(desk):
    calls = [
        {
            "id": "call_abc123",
            "type": "function",
            "function": {"name": "f", "arguments": '{"city": "Oslo", "unit": "C"}'},
        }
    ]
    (desk.home / "tools.json").write_text(json.dumps([said("user", "hi"), said("assistant", None, tool_calls=calls)]))  # type: ignore[arg-type]

    kwargs = desk.ok("budget", "simulate", "tools.json")
    blocks = desk.ok("budget", "simulate", "tools.json", "--tool-calls", "blocks")

    assert kwargs["messages"][1]["thought"] == 46
    assert blocks["messages"][1]["thought"] == 0


def test_a_transcript_of_another_format_keeps_its_own_ids(desk):
    shutil.copy(FIXTURES / "claude_code" / "cc03_small_complete.jsonl", desk.home)
    document = desk.ok("budget", "simulate", "cc03_small_complete.jsonl")

    assert len({message["id"] for message in document["messages"]}) == 4
    assert "0" not in {message["id"] for message in document["messages"]}


def test_standard_input_is_a_transcript_too(desk):
    document = json.loads(desk.run("budget", "simulate", "-", "--json", stdin=json.dumps(CHAT).encode()).out)

    assert document["totals"]["messages"] == 10


def test_the_prompt_can_be_looked_at_before_the_end(desk):
    document = desk.ok("budget", "simulate", "chat.json", *SMALL, "--at", "3")

    assert document["totals"]["messages"] == 3


def test_a_limit_may_be_written_in_thousands(desk):
    assert desk.ok("budget", "simulate", "chat.json", "--token-limit", "4k")["effective"]["token_limit"] == 4000


def test_both_constructors_clamp_in_their_own_way(desk):
    words = ("budget", "simulate", "chat.json", "--token-limit", "100", "--flush-size", "101")

    assert desk.ok(*words)["effective"]["token_flush_size"] == 70
    assert desk.ok(*words, "--constructor", "direct")["effective"]["token_flush_size"] == 10


def test_facts_of_a_memory_file_make_a_block(mem):
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    assert mem.run("add", "Anna lives in Lisbon").code == 0
    document = mem.ok("budget", "simulate", "chat.json", "--db", "memory.db")

    assert [block["name"] for block in document["blocks"]] == ["facts"]
    assert "Anna lives in Lisbon" in document["prompt"][0]["text"]


def test_the_fate_of_a_message_is_shown_on_demand(desk):
    assert "\nMESSAGES\n" in desk("budget", "simulate", "chat.json", *SMALL, "--watch", "0,9")
    assert "\nMESSAGES\n" not in desk("budget", "simulate", "chat.json", *SMALL)


def test_a_message_that_is_not_there_is_not_found(desk):
    assert desk.run("budget", "simulate", "chat.json", "--watch", "99").code == 4


@pytest.mark.parametrize(
    ("codes", "code"),
    [("any", 1), ("error", 1), ("system-evicted", 1), ("never-flushed, system-evicted", 1), ("over-limit", 0)],
)
def test_a_finding_that_must_not_be_ends_with_one(desk, codes, code):
    ran = desk.run("budget", "simulate", "chat.json", *SMALL, "--fail-on", codes)

    assert ran.code == code
    assert "system-evicted" in ran.out


def test_a_workflow_of_github_gets_annotations(desk):
    (desk.home / "100%,x.json").write_text(json.dumps(CHAT))
    lines = desk.run("budget", "simulate", "100%,x.json", *SMALL, "--output-format", "github").out.splitlines()

    assert lines[0].startswith("::error file=100%25%2Cx.json,title=mem system-evicted::100%25,x.json: ")
    assert all(line.startswith(("::error ", "::warning ")) for line in lines)


# ---------------------------------------------------------------- several transcripts


@pytest.fixture
def folder(desk: Mem) -> Mem:
    """A folder with two transcripts, a hidden file and something else in it."""
    place = desk.home / "chats"
    place.mkdir()
    (place / "b.json").write_text(json.dumps(CHAT))
    (place / "a.jsonl").write_text("\n".join(json.dumps(message) for message in CHAT[:4]))
    (place / "notes.txt").write_text("no transcript")
    (place / ".hidden.json").write_text("no transcript")
    return desk


def test_a_folder_is_one_line_for_each_transcript(folder):
    assert folder("budget", "simulate", "chats", *SMALL) == snapshot("""\
chats/a.jsonl	4	30	1	1	8	8	0	system-evicted,prefix-broken
chats/b.json	10	78	3	3	24	24	0	system-evicted,prefix-broken
""")


def test_several_processes_come_to_the_same_answer(folder):
    words = ("budget", "simulate", "chats", "chat.json", *SMALL, "--json")

    assert folder.spawn(*words, "--jobs", "2").out == folder.spawn(*words).out


def test_what_does_not_fit_is_said_once_in_every_process(folder):
    ran = folder.spawn("budget", "simulate", "chats", "--policy", "mem", "--ratio", "7", "--jobs", "2")

    assert (ran.code, ran.out) == (2, "")
    assert "ratio 7" in ran.err


def test_several_transcripts_are_a_list_or_one_document_a_line(folder):
    listed = folder.ok("budget", "simulate", "chats")
    lines = folder.run("budget", "simulate", "chats", "--jsonl").out.splitlines()

    assert [json.loads(line) for line in lines] == listed
    assert [one["settings"]["transcript"] for one in listed] == ["chats/a.jsonl", "chats/b.json"]


def test_a_file_that_cannot_be_read_does_not_hide_the_others(folder):
    (folder.home / "chats" / "c.json").write_text("{")
    ran = folder.run("budget", "simulate", "chats", *SMALL)

    assert ran.code == 5
    assert "chats/b.json" in ran.out
    assert "error: chats/c.json" in ran.err


def test_a_file_of_several_conversations_is_one_line_each_or_the_one_that_is_named(desk):
    shutil.copy(FIXTURES / "openai_messages" / "longmemeval_personal_best.json", desk.home / "two.json")

    assert len(desk.run("budget", "simulate", "two.json").out.splitlines()) == 2
    assert desk.ok("budget", "simulate", "two.json", "--conversation", "1")["totals"]["messages"] == 12
    assert desk.run("budget", "simulate", "two.json", "--conversation", "2").code == 4


def test_progress_is_shown_at_a_terminal_and_leaves_nothing_behind(folder):
    seen = folder.term("budget", "simulate", "chats", *SMALL)

    assert b"1 of 2 files" in seen.raw
    assert "of 2 files" not in seen.screen
    assert "chats/a.jsonl" in seen.screen


# ---------------------------------------------------------------- sweep


def test_a_sweep_is_a_map_and_a_table(desk):
    words = ("budget", "sweep", "chat.json", "--encoding", "words", "--token-limit", "20,40,80", "--ratio", "0.5,0.7")

    assert desk(*words) == snapshot("""\
chat.json · 10 messages · 6 settings
  best: llamaindex at 80 and 0.5, flush size 56, window messages 5

  limit \\ ratio  0.5   0.7*
             20    1     1     ··
             40    1     3     ·▒
             80    5     3     █▒
  · least … █ most · * the default

  POLICY      LIMIT  RATIO  FLUSH SIZE  FLUSHES  WINDOW  REALLY
  llamaindex     20    0.5          14        5       1       8  system evicted
  llamaindex     20   0.7*          14        5       1       8  system evicted
  llamaindex     40    0.5          28        5       1       8  system evicted
  llamaindex     40   0.7*          28        3       3      24  system evicted
  llamaindex     80    0.5          56        1       5      40  system evicted
  llamaindex     80   0.7*          56        1       3      24  system evicted

  --best real_tokens · --best window_messages
""")


def test_a_sweep_comes_in_every_form(desk):
    words = ("budget", "sweep", "chat.json", "--token-limit", "100,200", "--ratio", "0.7")
    listed = desk.ok(*words)

    assert [row["token_limit"] for row in listed] == [100, 200]
    assert [json.loads(line) for line in desk.run(*words, "--format", "jsonl").out.splitlines()] == listed
    rows = list(csv.DictReader(io.StringIO(desk.run(*words, "--format", "csv").out)))
    assert [row["token_limit"] for row in rows] == ["100", "200"]
    assert list(rows[0]) == list(listed[0])


def test_several_policies_are_swept_together(desk):
    listed = desk.ok("budget", "sweep", "chat.json", "--policy", "llamaindex,mem,token", "--token-limit", "200")

    assert {row["policy"] for row in listed} == {"llamaindex", "mem", "token"}


def test_a_sweep_agrees_with_the_simulation_of_each_setting(desk):
    for row in desk.ok("budget", "sweep", "chat.json", "--token-limit", "60:200:20", "--blocks", "blocks.toml"):
        words = ("--token-limit", str(row["token_limit"]), "--ratio", str(row["ratio"]), "--blocks", "blocks.toml")
        alone = desk.ok("budget", "simulate", "chat.json", *words)["totals"]

        assert (row["flushes"], row["window_messages"]) == (alone["flushes"], alone["window_messages"])


def test_probes_say_what_of_the_evidence_is_left(desk):
    (desk.home / "probes.jsonl").write_text(
        '{"question": "who?", "evidence": ["0"]}\n{"question": "?", "evidence": [9]}\n'
    )
    words = ("budget", "sweep", "chat.json", *SMALL[:2], "--token-limit", "20,400", "--probes", "probes.jsonl")
    listed = desk.ok(*words, "--ratio", "0.7")

    assert [row["reachable"] for row in listed] == [1, 2]
    assert [row["lost"] for row in listed] == [0.5, 0.0]
    assert "2 of 2 questions" in desk(*words)


def test_the_best_setting_is_the_only_row_where_it_is_asked_for(desk):
    listed = desk.ok("budget", "sweep", "chat.json", "--token-limit", "50,400", "--best", "real_tokens")

    assert len(listed) == 1


def test_depths_of_a_plain_memory_are_swept(desk):
    listed = desk.ok("budget", "sweep", "chat.json", "--depth", "1,5,20")

    assert [row["visible"] for row in listed] == [1, 5, 10]


# ---------------------------------------------------------------- diff and explain


@pytest.fixture
def two(desk: Mem) -> Mem:
    """A folder with two files of settings."""
    (desk.home / "a.toml").write_text('encoding = "words"\ntoken_limit = 40\nflush_size = 10\n' + BLOCKS)
    (desk.home / "b.toml").write_text('policy = "mem"\nencoding = "words"\ntoken_limit = "1k"\n')
    return desk


def test_a_difference_is_one_document_with_these_keys(two):
    document = two.ok("budget", "diff", "a.toml", "b.toml", "chat.json")

    assert list(document) == [
        "transcript", "settings", "totals", "blocks", "messages", "only_left", "only_right", "first_turn",
    ]  # fmt: skip


def test_two_settings_are_compared_message_by_message(two):
    assert two("budget", "diff", "a.toml", "b.toml", "chat.json") == snapshot("""\
chat.json · 10 messages
  A a.toml · B b.toml

SETTINGS
                           A                               B
  policy          llamaindex                             mem
  limit                   40                           1,000
  flush size              10                               –
  flushes above           28                               –
  history tokens           –                             994
  overhead                 –  message 0, name 0, reply 0, r…

SUMS
                         A      B
  window messages        3     10
  flushes                3      0
  flushed messages       7      0
  thought               30     78
  real                  36     78
  limit                 40  1,000
  template               6      0
  prefix kept       0.4746      1

BLOCKS
           A  B
  persona  2  –
  facts    4  –

MESSAGES
  7 fare differently, from turn 1 on · only A reaches 0 at the end, only B 7
  ID  ROLE       A                         B
  0   system     dropped, seen to write 2  window
  1   user       dropped, seen to write 2  window
  2   assistant  dropped, seen to write 2  window
  3   user       dropped, seen to write 5  window
  4   assistant  dropped, seen to write 5  window
  5   user       dropped, seen to write 7  window
  6   assistant  dropped, seen to write 7  window
""")


def test_a_life_is_told_with_every_limit_that_would_keep_the_message(desk):
    assert desk("budget", "explain", "chat.json", "--message", "1", *SMALL) == snapshot("""\
message 1 · user · turn 0                                              chat.json
  “this is message number 1 of the chat”

  written     at write 1, counted 8 tokens
  flushed     after write 3 in turn 1, with messages 0–2, to nobody; the window
              went from 30 to 8 tokens
  last seen   in the prompt after write 2
  at the end  dropped: flushed: the window had 30 tokens, more than its
              threshold of 28; its words are not in the prompt
  limits      in the window at the end with a token limit of 1, 112 and more
              a larger limit can lose it: with 2 it is not there

  mem budget simulate chat.json --watch 1
""")


def test_the_limits_of_a_life_are_what_simulations_find(desk):
    life = desk.ok("budget", "explain", "chat.json", "--message", "4", *SMALL)["lives"][0]
    kept = []
    for limit in range(1, 121):
        ended = desk.ok("budget", "simulate", "chat.json", *SMALL[:2], "--token-limit", str(limit), *SMALL[4:])
        kept += [limit] if ended["messages"][4]["ended"] == "window" else []

    told = [limit for limit in range(1, 121) if any(low <= limit <= (high or limit) for low, high in life["limits"])]
    assert told == kept
    assert kept


def test_a_fact_is_explained_by_the_messages_it_came_from(mem):
    chat = [said("user", "hello"), said("assistant", "hi"), said("user", "I live in Lisbon now.")]
    (mem.home / "talk.json").write_text(json.dumps(chat))
    assert mem.run("import", "talk.json").code == 0
    assert mem.run("extract").code == 0
    document = mem.ok("budget", "explain", "talk.json", "--fact", "f1", "--db", "memory.db")

    assert "Lisbon" in document["about"]
    assert [life["message"]["index"] for life in document["lives"]] == [2]


def test_a_fact_whose_evidence_is_elsewhere_is_not_found(mem):
    (mem.home / "chat.json").write_text(json.dumps(CHAT))
    assert mem.run("add", "Anna lives in Lisbon").code == 0

    assert mem.run("budget", "explain", "chat.json", "--fact", "f1", "--db", "memory.db").code == 4


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("simulate",), 2, "this needs a transcript"),
        (("simulate", "none.json"), 5, "none.json: there is no such file"),
        (("simulate", "cut.json"), 5, "cut.json line 2: it is not valid JSON"),
        (("simulate", "notes.txt"), 5, "notes.txt: unrecognised format"),
        (("simulate", "chat.json", "--token-limit", "0"), 2, "0 cannot be a value of --token-limit"),
        (("simulate", "chat.json", "--token-limit", "1,2"), 2, "--token-limit takes one number"),
        (("simulate", "chat.json", "--token-limit", "many"), 2, "many is no number that --token-limit could take"),
        (("simulate", "chat.json", "--ratio", "half"), 2, "--ratio takes a number, and was given half"),
        (("simulate", "chat.json", "--policy", "mem", "--ratio", "nan"), 2, "ratio nan is out of range"),
        (("simulate", "chat.json", "--policy", "mem", "--ratio", "1.5"), 2, "ratio 1.5 is out of range"),
        (("simulate", "chat.json", "--policy", "best"), 2, "there is no policy called best"),
        (("simulate", "chat.json", "--depth", "0"), 2, "0 is no depth of a memory"),
        (("simulate", "chat.json", "--insert-method", "top"), 2, "--insert-method cannot be top"),
        (("simulate", "chat.json", "--encoding", "runes"), 5, "no encoding is called runes"),
        (("simulate", "chat.json", "--encoding", "p50k_base"), 5, "the vocabulary of p50k_base does not ship with mem"),
        (("simulate", "chat.json", "--model", "gpt-0"), 5, "tiktoken knows no model called gpt-0"),
        (("simulate", "chat.json", "--model", "gpt-4o", "--encoding", "words"), 2, "exclude each other"),
        (("simulate", "chat.json", "--fail-on", "bad-luck"), 2, "there is no finding called bad-luck"),
        (("simulate", "chat.json", "--at", "11"), 2, "there is no prompt after 11 messages"),
        (("simulate", "chat.json", "--output-format", "xml"), 2, "xml is no output format"),
        (("simulate", "chat.json", "--blocks", "none.toml"), 5, "none.toml: no such file"),
        (("simulate", "chat.json", "--blocks", "chat.json"), 5, "chat.json: no TOML"),
        (("simulate", "chat.json", "--blocks", "twice.toml"), 2, "two blocks are called a"),
        (("simulate", "chat.json", "--blocks", "odd.toml"), 2, "there is no block type magic"),
        (("simulate", "chat.json", "--blocks", "file.toml"), 5, "gone.txt: no such file"),
        (
            ("simulate", "chat.json", "--blocks", "own.toml", "--policy", "mem"),
            2,
            "raised RuntimeError in its get: boom",
        ),
        (("simulate", "chat.json", "--db", "none.db"), 10, "none.db"),
        (("sweep", "chat.json", "--best", "luck"), 2, "no setting is better than another by luck"),
        (("sweep", "chat.json", "--ratio", "0.9:0.1:0.1"), 2, "is no range that --ratio could take"),
        (("sweep", "chat.json", "--probes", "cut.json"), 2, "line 1 of the probes"),
        (("sweep", "chat.json", "--probes", "none.jsonl"), 5, "none.jsonl: no such file"),
        (("sweep", "chat.json", "--depth", "7d"), 2, "7d"),
        (("diff", "none.toml", "blocks.toml", "chat.json"), 5, "none.toml: no such file"),
        (("diff", "blocks.toml", "key.toml", "chat.json"), 2, "there is no setting called tokens"),
        (("explain", "chat.json"), 2, "explain needs either a message or a fact"),
        (("explain", "chat.json", "--message", "99"), 4, "no message 99 is in the transcript"),
        (("explain", "chat.json", "--fact", "abcd"), 2, "none was named"),
        (("explain", "two.jsonl", "--message", "0"), 2, "two.jsonl holds 2 conversations"),
    ],
)
def test_what_cannot_be_is_one_clear_sentence(desk, words, code, sentence):
    pages = {
        "cut.json": '[{"role": "user",\n "content": }]',
        "twice.toml": '[[blocks]]\nname = "a"\ntype = "static"\ntext = "x"\n' * 2,
        "odd.toml": '[[blocks]]\nname = "a"\ntype = "magic"\n',
        "file.toml": '[[blocks]]\nname = "a"\ntype = "static"\nfile = "gone.txt"\n',
        "own.toml": '[[blocks]]\nname = "a"\nclass = "budget_boom:Boom"\n',
        "budget_boom.py": "class Boom:\n def get(self, m):\n  raise RuntimeError('boom')\n put = truncate = get\n",
        "notes.txt": "no transcript",
        "key.toml": "tokens = 5\n",
        "two.jsonl": '{"messages": [{"role": "user", "content": "a"}]}\n' * 2,
    }
    for name, text in pages.items():
        (desk.home / name).write_text(text)
    path = f"{desk.home}:{desk.env['PYTHONPATH']}"
    ran = desk.spawn("budget", *words, env={"PYTHONPATH": path})

    assert (ran.code, ran.out) == (code, "")
    first, _, rest = ran.err.partition("\n")
    assert sentence in first
    assert first.startswith("error: ")
    assert not first.endswith(".")
    assert rest.startswith("hint: ")
    assert rest.count("\n") == 1


@pytest.mark.parametrize("text", ["", "\n \n", "[]", '{"messages": []}'])
def test_an_empty_transcript_is_a_finding_and_no_error(desk, text):
    (desk.home / "empty.json").write_text(text)
    document = desk.ok("budget", "simulate", "empty.json")

    assert [item["code"] for item in document["findings"]] == ["empty-transcript"]
    assert desk.run("budget", "simulate", "empty.json", "--fail-on", "empty-transcript").code == 1


def test_a_message_larger_than_the_limit_and_without_a_space_is_counted(desk):
    (desk.home / "big.json").write_text(json.dumps([said("user", "x" * 1_000_000)]))
    document = desk.ok("budget", "simulate", "big.json")

    assert document["totals"]["over"] > 0
    assert {"over-limit", "single-turn-overflow"} <= {item["code"] for item in document["findings"]}


def test_the_limit_that_a_remedy_names_is_larger_and_avoids_the_finding(desk):
    (desk.home / "turn.json").write_text(json.dumps([*CHAT, said("user", "why? " * 90), said("assistant", "so " * 90)]))
    remedies = [
        item["remedy"]
        for item in desk.ok("budget", "simulate", "turn.json", *SMALL)["findings"]
        if item["code"] == "over-limit"
    ]

    limit = remedies[0].split()[2].rstrip(",")
    assert remedies[0] == f"give --token-limit {limit}, or take --policy mem, which keeps to the limit"
    assert int(limit) > int(SMALL[SMALL.index("--token-limit") + 1])
    again = desk.ok("budget", "simulate", "turn.json", *SMALL, "--token-limit", limit)
    assert "over-limit" not in {item["code"] for item in again["findings"]}


def test_a_ratio_that_llamaindex_takes_and_nobody_wants_is_a_finding(desk):
    document = desk.ok("budget", "simulate", "chat.json", "--ratio", "nan")

    assert document["effective"]["chat_history_token_ratio"] == "nan"
    assert "ratio-out-of-range" in {item["code"] for item in document["findings"]}


def test_a_message_that_llamaindex_refuses_is_a_finding(desk):
    (desk.home / "odd.json").write_text(json.dumps([*CHAT, said("user", [{"type": "video", "video": "x"}])]))  # type: ignore[arg-type]
    document = desk.ok("budget", "simulate", "odd.json")

    assert ["unsupported-content", 10] in [[item["code"], item["message"]] for item in document["findings"]]


@pytest.mark.parametrize("folder", ["openai_messages", "claude_code", "malformed"])
def test_every_transcript_there_is_gets_an_answer(desk, folder):
    ran = desk.spawn("budget", "simulate", str(FIXTURES / folder), "--token-limit", "1k", "--jsonl")

    documents = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code in (0, 5)
    assert len(documents) > 10
    assert {item["code"] for one in documents for item in one["findings"]} <= set(CODES)
