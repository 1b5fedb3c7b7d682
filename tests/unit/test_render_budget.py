"""What a person sees of a budget: one run, many runs, sweeps, differences and lives, at several widths."""

from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from memcli import wire_budget
from memcli.budget.differ import differ
from memcli.budget.explain import Life, Range
from memcli.budget.outcome import Simulation
from memcli.budget.sweep import Counted, DepthRow, Grid, Probe, best, sweep
from memcli.render.budget import SIGNS, figure, simulation_screen, summaries_screen
from memcli.render.budget_compare import depth_screen, difference_screen, lives_screen, sweep_screen
from memcli.render.budget_page import simulation_page
from memcli.text import cells
from tests.made_budget import block, fate, finding, flushed, gone, lost, simulation, totals
from tests.made_screens import HOSTILE, control_characters


def shown(s: Simulation | None = None, width: int = 80, **given) -> str:
    return str(simulation_screen(s or simulation(), name="support.jsonl", path="support.jsonl", width=width, **given))


def test_a_run_says_what_is_wrong_and_what_to_do_about_it():
    findings = shown().partition("FINDINGS\n")[2]

    assert findings == snapshot("""\
  ✗ system-evicted  turn 1 · message 0 · 40 tokens
      the system message left the window; the agent runs without it
      → put the system prompt outside of the memory
  ! block-dropped-whole  turn 1 · 83 tokens
      retrieved was dropped
      → put the system prompt outside of the memory

  mem budget explain support.jsonl --message 0
  mem budget simulate support.jsonl --policy mem
  mem budget sweep support.jsonl
  mem budget simulate support.jsonl --html report.html
""")


def test_a_run_says_what_the_prompt_holds():
    whole = shown().partition("FINDINGS\n")[0]

    assert whole == snapshot("""\
support.jsonl · 6 messages in 3 turns · 9,841 tokens (cl100k_base) · policy
  llamaindex 0.14 as shipped

  limit 4,000 · flush size 2,800 · ratio 0.7 · flushes above 2,800
  insert system
  ! flush size 5,000 → 2,800: 5000 is more than the limit of 4000, so 70 % of
    the limit is taken, rounded down

  limit 4,000 ├─ history 70 % ── 2,800 ───────────────────┤├─ blocks 30 % ───┤
  at the end  ████████████████████████████████████░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
  in the prompt: messages 2,260 · blocks 1,611 · template 31 · free 98
  thinks 3,341 · really sends 3,902 (530 uncounted)
  62 % of each prompt began as the one before it did

FLUSHES
  #  TURN  WRITE  TOKENS      MESSAGES  TO
  1     1      4  2,818 → 11  0–1       facts, retrieved

BLOCKS
  BLOCK      KIND       PRIORITY  WANTED    GOT  FATE
  persona    static            0     212    212  whole
  facts      facts             2   1,399  1,399  whole
  retrieved  retrieved         1     742      0  dropped
  retrieved: 83 tokens too many

THE PROMPT AT THE END
  PART                PIECES  THINKS  REALLY
  block persona            1     212     212
  block facts              1   1,399   1,399
  user messages            2   1,130   1,430
  assistant messages       1     600     830
  template                 1       0      31

""")


def test_a_narrow_screen_gives_up_the_bars_and_keeps_the_figures():
    screen = shown(width=40)

    assert "█" not in screen
    assert "█" in shown()
    assert "messages 2,260" in screen


def test_the_fate_of_a_message_is_shown_where_it_is_asked_for():
    watched = shown(watched=[lost(2), fate(3)])

    assert "dropped  no " in watched
    assert "window   yes" in watched
    assert "MESSAGES\n" in watched
    assert "MESSAGES\n" not in shown()


def test_a_run_without_a_prompt_says_why():
    screen = shown(simulation(refused="the system message alone is 300 tokens too many", prompt=()))

    assert "no prompt: the system message alone is 300 tokens too many" in screen
    assert "THE PROMPT AT THE END" not in screen


def test_how_far_a_prompt_is_over_the_limit_stands_in_words():
    assert "✗ 300 over the limit of 4,000" in shown(simulation(totals=totals(real=4300, over=300)))
    assert "over the limit" not in shown()


def test_of_many_flushes_the_first_and_the_last_are_shown():
    screen = shown(simulation(flushes=tuple(flushed(number) for number in range(40))))

    assert "28 more flushes" in screen
    assert " 1  " in screen
    assert "78–79" in screen
    assert "40–41" not in screen


def test_a_policy_without_a_limit_has_no_bar():
    screen = shown(simulation(policy="unbounded", effective={"token_limit": None}, totals=totals(limit=None)))

    assert "█" not in screen
    assert "limit –" in screen


@pytest.mark.parametrize("width", [20, 40, 80, 300])
@pytest.mark.parametrize("over", [0, 100_000])
def test_a_bar_never_leaves_its_line(width, over):
    prompt = simulation().prompt
    s = simulation(prompt=(*prompt, replace(prompt[0], real=over, thought=over)))

    assert max(cells(line) for line in shown(s, width).splitlines()) <= width


def test_errors_stand_before_warnings_and_each_has_a_sign():
    warning = finding("never-flushed", severity="warning", text="nothing left")
    screen = shown(simulation(findings=(warning, finding())))

    assert screen.index("✗ system-evicted") < screen.index("! never-flushed")
    assert {sign for sign, _ in SIGNS.values()} == {"✗", "!"}


def test_a_path_with_odd_letters_can_be_copied_from_the_hints():
    screen = str(simulation_screen(simulation(), name="a b.json", path="a b.json"))

    assert "mem budget explain 'a b.json' --message 0" in screen


def test_many_runs_are_one_line_each_with_the_sums():
    runs = [("a.json", simulation()), ("b.jsonl #2", simulation(findings=(), totals=totals(over=7)))]

    assert str(summaries_screen(runs, failed=["x.json: no such file"])) == snapshot("""\
  TRANSCRIPT  MESSAGES  TOKENS  FLUSHES  WINDOW  THINKS  REALLY  OVER  FINDINGS
  a.json             6   9,841        1       3   3,341   3,902        ✗ 1 ! 1
  b.jsonl #2         6   9,841        1       3   3,341   3,902     7  none
  ✗ x.json: no such file

2 transcripts: 1 error, 1 warning · 1 not read
  system-evicted 1 · block-dropped-whole 1
""")


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (30_000, "30,000"), (0.7, "0.7"), (21000.0, "21,000"), ("nan", "nan"), (True, "yes"), ([], "–")],
)
def test_a_setting_reads_as_a_person_writes_it(value, words):
    assert figure(value) == words


# ---------------------------------------------------------------- comparing


COUNTED = Counted(roles=("user", "assistant") * 20, thought=(50,) * 40, real=(54,) * 40)


def swept(limits=(500, 1000, 4000), **given):
    from decimal import Decimal

    ratios = tuple(Decimal(number) / 10 for number in (3, 5, 7, 9))
    grid = Grid(token_limits=limits, ratios=ratios, flush_sizes=given.pop("sizes", (100,)))
    return sweep(COUNTED, grid, **given)


def sweep_shown(table, column="window_messages", width=80):
    return str(sweep_screen(table, name="s.json", messages=40, shown=column, best=best(table, column), width=width))


def test_a_sweep_is_a_map_with_its_numbers_and_the_best_setting():
    assert sweep_shown(swept()) == snapshot("""\
s.json · 40 messages · 12 settings
  best: llamaindex at 4,000 and 0.5, flush size 100, window messages 40

  limit \\ ratio  0.3   0.5   0.7   0.9
            500    2     4     6     8     ···░
          1,000    6    10    14    18     ·░░▒
          4,000   24    40    40    40     ▒███
  · least … █ most · * the default

  POLICY      LIMIT  RATIO  FLUSH SIZE  FLUSHES  WINDOW  REALLY
  llamaindex    500    0.3         100       19       2     108
  llamaindex    500    0.5         100       18       4     216
  llamaindex    500    0.7         100       17       6     324
  llamaindex    500    0.9         100       16       8     432
  llamaindex  1,000    0.3         100       17       6     324
  llamaindex  1,000    0.5         100       15      10     540
  llamaindex  1,000    0.7         100       13      14     756
  llamaindex  1,000    0.9         100       11      18     972
  llamaindex  4,000    0.3         100        8      24   1,296
  llamaindex  4,000    0.5         100        0      40   2,160  never flushed
  llamaindex  4,000    0.7         100        0      40   2,160  never flushed
  llamaindex  4,000    0.9         100        0      40   2,160  never flushed

  --best real_tokens · --best window_messages
""")


def test_a_sweep_with_probes_says_how_many_questions_are_still_answered():
    table = swept(probes=(Probe(question="q", evidence=(0,)), Probe(question="r", evidence=(39,))))
    screen = sweep_shown(table, "reachable")

    assert "2 of 2 questions still answered" in " ".join(screen.split())
    assert "50 %" in screen


def test_a_sweep_that_is_too_wide_keeps_its_map_and_drops_the_numbers():
    narrow, wide = sweep_shown(swept(), width=40), sweep_shown(swept(), width=80)

    assert "█" in narrow
    assert "0.9 " in wide
    assert max(map(len, narrow.splitlines())) <= 40


def test_flush_sizes_are_maps_of_their_own():
    screen = sweep_shown(swept(sizes=(100, 200)))

    assert "flush size 100" in screen
    assert "flush size 200" in screen


def test_depths_say_what_is_still_in_sight():
    rows = [
        DepthRow(depth="10", facts=4, visible=1, first_loss=12, half_life=9.5),
        DepthRow(depth="7d", facts=4, visible=4, first_loss=None, half_life=None),
    ]

    assert str(depth_screen(rows, name="s.json", messages=40)) == snapshot("""\
s.json · 40 messages · policy sliding

  DEPTH  VISIBLE  SHARE  FIRST LOSS     HALF-LIFE
     10   1 of 4   25 %  message 12  9.5 messages
     7d   4 of 4  100 %       never          more
""")


def compared(left, right):
    found = differ(left, right)
    return str(difference_screen(found, left="A.toml", right="B.toml", name="s.json", messages=6))


def test_two_settings_are_compared_down_to_the_message():
    other = simulation(
        policy="mem",
        fates=(fate(0), *simulation().fates[1:]),
        totals=totals(real=3000, template=0),
        blocks=(block(got=100), *simulation().blocks[1:]),
    )

    assert compared(simulation(), other) == snapshot("""\
s.json · 6 messages
  A A.toml · B B.toml

SETTINGS
                   A    B
  policy  llamaindex  mem

SUMS
                A      B
  real      3,902  3,000
  template     31      0

BLOCKS
             A    B
  persona  212  100

MESSAGES
  1 fare differently, from turn 1 on · only A reaches 0 at the end, only B 0
  ID  ROLE    A                                 B
  0   system  block retrieved, seen to write 3  window
""")


def test_equal_settings_have_no_difference():
    assert "no difference" in compared(simulation(), simulation())
    assert "no difference" not in compared(simulation(), simulation(policy="mem"))


def life(**given):
    base = Life(
        fate=gone(0),
        turn=0,
        written=0,
        left=flushed(),
        limits=(Range(first=1, last=20), Range(first=3000, last=None)),
        looked_to=9000,
    )
    return replace(base, **given)


def life_shown(one):
    return str(lives_screen([(one, "You are kind.")], name="s.json", path="s.json"))


def test_a_life_is_told_from_the_first_write_to_the_end():
    assert life_shown(life()) == snapshot("""\
message 0 · system · turn 0                                               s.json
  “You are kind.”

  written     at write 0, counted 40, really 42 tokens
  flushed     after write 4 in turn 1, with messages 0–1, to retrieved; the
              window went from 2,818 to 11 tokens
  last seen   in the prompt after write 3
  at the end  block: flush 0 took it; its words are in the prompt
  limits      in the window at the end with a token limit of 1–20, 3,000 and
              more
              a larger limit can lose it: with 21 it is not there

  mem budget simulate s.json --watch 0
""")


def test_a_larger_limit_that_loses_a_message_is_pointed_out():
    assert "with 21 it is not there" in life_shown(life())
    assert "is not there" not in life_shown(life(limits=(Range(first=3000, last=None),)))


def test_a_message_that_no_limit_keeps_says_so():
    assert "at no token limit up to 9,000" in life_shown(life(limits=()))


# ---------------------------------------------------------------- untrusted text


def hostile(text: str) -> Simulation:
    prompt = simulation().prompt
    return simulation(
        encoding=text,
        policy=text,
        effective={text: text, "insert_method": text},
        clamps=({"setting": text, "given": text, "used": text, "why": text},),
        fates=(replace(gone(0), id=text, role=text, reason=text, blocks=(text,)), lost(1, ended=text)),
        flushes=(flushed(blocks=(text,)),),
        prompt=tuple(replace(piece, name=text, role=text, text=text) for piece in prompt),
        blocks=(block(text, kind=text, reason=text, fate="dropped"),),
        findings=(finding(text=text, remedy=text),),
        refused=text,
    )


def all_screens(text, width):
    s = hostile(text)
    other = replace(s, fates=tuple(replace(one, ended="window") for one in s.fates), effective={text: "x"})
    return [
        simulation_screen(s, name=text, path=text, watched=s.fates, notes=[text], width=width),
        summaries_screen([(text, s)], failed=[text], width=width),
        difference_screen(differ(s, other), left=text, right=text, name=text, messages=2, width=width),
        lives_screen([(life(fate=s.fates[0]), text)], name=text, path=text, about=text, width=width),
        sweep_screen(swept(), name=text, messages=2, shown="flushes", best=None, width=width),
        depth_screen([], name=text, messages=2, width=width),
    ]


@pytest.mark.no_cover
@pytest.mark.parametrize("width", [20, 40, 80, 300])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_moves_no_cursor_and_leaves_no_line(text, width):
    for screen in all_screens(text, width):
        assert control_characters(str(screen)) == set()
        assert max((cells(line) for line in str(screen).splitlines()), default=0) <= width


@pytest.mark.parametrize("text", [*HOSTILE.values(), "</script><script>alert(1)</script>", "'\"><img src=x onerror=y>"])
def test_hostile_text_is_no_markup_on_the_page(text):
    page = simulation_page(hostile(text), name=text, texts={0: text, 1: text}, notes=[text])
    clean = simulation_page(hostile("tame"), name="tame", texts={0: "tame", 1: "tame"}, notes=["tame"])

    assert page.count("<script>") == clean.count("<script>") == 1
    assert page.count("<img") == clean.count("<img") == 0
    assert sorted(set(page) & set(map(chr, range(32)))) == ["\n"]


def test_a_page_asks_the_network_for_nothing():
    page = simulation_page(simulation(), name="s.json", texts={})

    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page


# ---------------------------------------------------------------- the document


def test_the_document_of_a_run_has_these_keys():
    document = wire_budget.simulation(simulation(), transcript="s.json")

    assert list(document) == [
        "settings", "effective", "clamps", "messages", "steps", "prompt", "blocks", "findings", "totals",
    ]  # fmt: skip


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_named(odd):
    document = wire_budget.simulation(simulation(effective={"chat_history_token_ratio": odd}), transcript="s")

    assert document["effective"] == {"chat_history_token_ratio": str(odd)}
