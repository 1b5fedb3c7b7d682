"""What a person sees, screen by screen, at 80 columns and fewer."""

import pytest
from inline_snapshot import snapshot

from memcli.errors import MemError, Tombstoned
from memcli.facts import (
    ErasePlan,
    Finding,
    Imported,
    ImportReport,
    LogVerdict,
    PolicyRule,
    ScopeInfo,
    Similar,
    TombstonePlan,
    Warned,
    Written,
)
from memcli.render.changes import erase_plan_screen, log_screen, tombstone_plan_screen, verdict_screen
from memcli.render.file import (
    check_screen,
    glossary_screen,
    import_screen,
    policy_screen,
    scopes_screen,
    stats_screen,
)
from memcli.render.memory import fact_screen, facts_screen, recall_screen, why_screen
from memcli.render.review import HELP, KEYS, help_screen, queue_item_screen
from memcli.render.words import DONE, between, done_line, error_lines, size, written_line
from memcli.terms import Kind, Match, Op, State
from tests import made
from tests.made import NOW, at, event, excerpt, fact, free, message, provenance
from tests.made_screens import SHORT, listed, why


def test_a_list_of_facts_gives_the_room_to_the_text():
    assert str(listed()) == snapshot("""\
memory.db · scope user/anna · 4 of 7 readable, 3 waiting for review

  ID    STATE     SUBJECT  FACT                                  SINCE     SEEN
  4f2a  accepted  anna     lives in Lisbon                       Mar 26      2×
  9c01  verified  anna     is allergic to penicillin             –           1×
  b7d3  accepted  trip     budget is 2,400 EUR, train not plane  Jun 26       –
  c5e8  accepted           prefers short answers without emoji   –       1,300×
  e1f9  disputed  acme     contract ends 30 Jun / 31 Jul         –            –

  mem why 4f2a · mem review (3) · mem show --all-states
""")


def test_a_narrow_list_gives_up_columns_and_keeps_ids_states_and_text():
    assert str(listed(40)) == snapshot("""\
memory.db · scope user/anna · 4 of 7
  readable, 3 waiting for review

  ID    STATE     FACT
  4f2a  accepted  lives in Lisbon
  9c01  verified  is allergic to penici…
  b7d3  accepted  budget is 2,400 EUR,…
  c5e8  accepted  prefers short answers…
  e1f9  disputed  contract ends 30 Jun…

  mem why 4f2a · mem review (3)
  mem show --all-states
""")


def test_a_list_over_all_scopes_names_the_scope_of_each_fact():
    assert str(listed(scope_column=True)) == snapshot("""\
memory.db · all scopes · 4 of 7 readable, 3 waiting for review

  ID    STATE     SCOPE      SUBJECT  FACT                        SINCE     SEEN
  4f2a  accepted  user/anna  anna     lives in Lisbon             Mar 26      2×
  9c01  verified  user/anna  anna     is allergic to penicillin   –           1×
  b7d3  accepted  user/anna  trip     budget is 2,400 EUR, trai…  Jun 26       –
  c5e8  accepted  user/anna           prefers short answers wit…  –       1,300×
  e1f9  disputed  user/anna  acme     contract ends 30 Jun / 31…  –            –

  mem why 4f2a · mem review (3) · mem show --all-states
""")


def test_an_empty_file_says_what_to_type_next():
    screen = facts_screen(
        [], path="memory.db", scope="default", readable=0, total=0, waiting=0, short_ids={}, sightings={}
    )

    assert str(screen) == snapshot("""\
memory.db · scope default · 0 of 0 readable

  no facts yet

  mem add TEXT · mem import FILE
""")


def test_one_fact_is_shown_in_full():
    known = fact(confidence=0.8, pinned=True, derived_from=("8a11",), rule="I live in")

    assert str(fact_screen(known, now=NOW, short_ids=SHORT)) == snapshot("""\
anna · home city = Lisbon                                    accepted, version 2
“Anna lives in Lisbon”                                          4f2a · user/anna

  id           4f2a77d0
  kind         belief, shared, pinned
  true         since 5 Mar 2026
  known        since 12 Mar 2026 09:20 (2 d ago)
  recorded by  anna, terminal
  owner        anna
  authority    0.6 · confidence 0.8
  rule         I live in
  tokens       5 (o200k_base)
  built on     8a11
  from         chat1 #212  user  “moved to Lisbon”

  mem why 4f2a · mem correct 4f2a TEXT · mem tombstone 4f2a --dry-run
""")


def test_a_free_statement_stands_at_the_head_of_its_screen():
    known = free("c5e8", "prefers short answers without emoji", tokens=None, encoding=None, owner=None)

    assert str(fact_screen(known, now=NOW, short_ids=SHORT)) == snapshot("""\
“prefers short answers without emoji”                        accepted, version 1
                                                                c5e8 · user/anna

  id           c5e8
  kind         belief, shared
  true         unknown since when
  known        since 12 Mar 2026 09:20 (2 d ago)
  recorded by  anna, terminal
  authority    0.6

  mem why c5e8 · mem correct c5e8 TEXT · mem tombstone c5e8 --dry-run
""")


def bare_why(known=None, *, excerpts):
    known = known or fact()
    return why_screen(known, versions=[known], excerpts=excerpts, parents=[], children=[], events=[], short_ids=SHORT)


def test_why_shows_the_quote_in_its_context_the_versions_what_follows_and_the_log():
    assert str(why()) == snapshot("""\
anna · home city = Lisbon                                    accepted, version 2
“Anna lives in Lisbon”                                          4f2a · user/anna

Because
  chat-0612.jsonl #212  user, 12 Mar 2026 09:14
     211  assistant  How is the flat in Berlin?
   ▸ 212  user       sold it – we [moved to Lisbon] last week
     213  assistant  Congratulations! Shall I update your address?

Was
      SAID    TRUE                     KNOWN                STATE
  v1  Berlin  1 Jan 2019 … 5 Mar 2026  2 Jan … 12 Mar 2026  superseded
  v2  Lisbon  since 5 Mar 2026         since 12 Mar 2026    accepted

From this one
  8a11 “Anna’s time zone is WET” (inferred), accepted

Log
  #41  2 Jan 2026 10:00   added by extractor
  #57  12 Mar 2026 09:20  corrected by anna, terminal: “moved”
""")


def test_why_at_forty_columns_wraps_under_the_same_lead():
    assert str(why(40)) == snapshot("""\
anna · home city = Lisbon
  accepted, version 2
“Anna lives in Lisbon”  4f2a · user/anna

Because
  chat-0612.jsonl #212  user, 12 Mar
    2026 09:14
     211  assistant  How is the flat in
                    Berlin?
   ▸ 212  user       sold it – we [moved
                    to Lisbon] last week
     213  assistant  Congratulations!
                    Shall I update your
                    address?

Was
  v1  true 1 Jan 2019 … 5 Mar 2026
  known 2 Jan … 12 Mar 2026  superseded
    Berlin
  v2  true since 5 Mar 2026
  known since 12 Mar 2026  accepted
    Lisbon

From this one
  8a11 “Anna’s time zone is WET”
    (inferred), accepted

Log
  #41  2 Jan 2026 10:00   added by
    extractor
  #57  12 Mar 2026 09:20  corrected by
    anna, terminal: “moved”
""")


def test_a_quote_that_is_not_in_its_message_is_said_to_be_missing():
    odd = excerpt(provenance=provenance(quote="moved to Porto", verified=False))

    missing = str(bare_why(excerpts=[odd]))

    assert "does not stand there: “moved to Porto”" in missing
    assert "does not stand there" not in str(why())


def test_a_quote_far_into_a_long_message_is_shown_with_what_stands_around_it():
    content = f"{'before ' * 500}we moved to Lisbon last week{' after' * 500}"
    deep = excerpt(message=message(content=content))

    shown = str(bare_why(excerpts=[deep]))

    assert "[moved to Lisbon]" in " ".join(shown.split())
    assert len(shown.splitlines()) < 30


def test_erased_words_are_named_as_erased():
    gone = fact(text="", value=None, erased_at=NOW)
    blank = excerpt(message=message(content="", erased_at=NOW))

    shown = str(bare_why(gone, excerpts=[blank]))

    assert shown.count("(erased)") == 3


def test_a_fact_without_evidence_says_so():
    assert "no evidence" in str(bare_why(excerpts=[]))
    assert "no evidence" not in str(why())


def test_recall_lists_the_best_first():
    results = [
        (fact(), 0.912, {"relevance": 0.7, "recency": 0.15, "importance": 0.062}),
        (free("c5e8", "prefers short answers"), 0.4, {"relevance": 0.3, "recency": 0.1, "importance": 0.0}),
    ]

    assert str(recall_screen(results, query="where", short_ids=SHORT)) == snapshot("""\
  ID    SCORE  SUBJECT  FACT
  4f2a   0.91  anna     lives in Lisbon
  c5e8   0.40           prefers short answers

  mem why 4f2a · mem context
""")
    assert str(recall_screen(results, query="where", explain=True, short_ids=SHORT)) == snapshot("""\
  ID    SCORE  SUBJECT  FACT                   RELEVANCE  RECENCY  IMPORTANCE
  4f2a   0.91  anna     lives in Lisbon             0.70     0.15        0.06
  c5e8   0.40           prefers short answers       0.30     0.10        0.00

  mem why 4f2a · mem context
""")


def test_recall_of_nothing_says_so():
    assert str(recall_screen([], query="where", short_ids={})) == snapshot("""\
nothing readable matches “where”

  mem show · mem show --all-states
""")


def log(width=80, findings=()):
    acts = [
        event(60, Op.LIFT, target="t3", reason="was about her sister", from_state=None, to_state=None, at=NOW),
        event(59, Op.REFUSE, target="t3", reason=None, from_state=None, to_state=None, actor=made.EXTRACTOR),
        event(58, Op.TOMBSTONE, to_state=State.REJECTED, reason="never lived there"),
        event(57, Op.ADD, from_state=None, to_state=State.TENTATIVE, reason=None),
    ]
    verified = LogVerdict(events=60, head="sha256:" + "9f31c0de" * 8, findings=findings)
    return log_screen(acts, now=NOW, verified=verified, short_ids=SHORT, width=width)


def test_the_log_says_who_did_what_and_why_and_that_its_chain_holds():
    assert str(log()) == snapshot("""\
   #  WHEN      WHAT                        WHY
  60  just now  lifted t3                   “was about her sister”
  59  2 d ago   refused t3
  58  2 d ago   tombstoned 4f2a → rejected  “never lived there”
  57  2 d ago   added 4f2a → tentative

chain of 60 events verified
head sha256:9f31c0de9f31c0de9f31c0de9f31c0de9f31c0de9f31c0de9f31c0de9f31c0de
pin it elsewhere: mem log verify --head HEAD
""")


def test_a_broken_chain_is_told_in_words():
    broken = Finding(code="chain-broken", place="event 12", message="its hash does not follow from event 11")

    assert str(log(findings=(broken,))).split("\n\n")[1] == snapshot("""\
chain of 60 events broken: 1 finding
  ✗ chain-broken  event 12  its hash does not follow from event 11
""")


def test_the_head_of_the_chain_is_never_cut_at_any_width():
    head = "sha256:" + "9f31c0de" * 8

    assert head in str(log(80)).replace("\n", "")
    assert head in str(log(40)).replace("\n", "")
    assert "…" not in str(verdict_screen(LogVerdict(events=1, head=head, findings=()), width=40))


def test_a_dry_run_of_a_tombstone_lists_what_it_hits_and_what_it_would_not_stop():
    plan = TombstonePlan(
        scope="user/anna",
        match=Match.VALUE,
        pattern=None,
        values=("Anna lives in Lisbon",),
        slots=(("anna", "home city", "Lisbon"),),
        hits=(fact(),),
        falls=(free("8a11", "Anna’s time zone is WET"),),
        near=(Similar(id="b210", text="Anna’s flat is in Lisbon", score=71.2, state=State.ACCEPTED),),
    )

    assert str(tombstone_plan_screen(plan, short_ids=SHORT)) == snapshot("""\
would reject, in user/anna, until somebody lifts it:
    “Anna lives in Lisbon”
    any wording of  anna · home city = Lisbon
  hits now       4f2a “Anna lives in Lisbon” (accepted) → rejected
  falls with it  8a11 “Anna’s time zone is WET” (accepted) → revoked
  would NOT stop “Anna’s flat is in Lisbon” (b210, 71 % alike): reject it too if
                 it is the same claim
nothing changed · leave out --dry-run and give --reason
""")


@pytest.mark.parametrize(
    ("match", "words"), [(Match.CONTAINS, "whatever contains “Lis.*”"), (Match.REGEX, "whatever matches “Lis.*”")]
)
def test_a_pattern_is_shown_with_how_it_stops(match, words):
    plan = TombstonePlan(scope=None, match=match, pattern="Lis.*", values=(), slots=(), hits=(), falls=(), near=())

    shown = str(tombstone_plan_screen(plan, short_ids={}))

    assert words in shown
    assert "in every scope" in shown
    assert "nothing\n" in shown


def test_a_dry_run_of_an_erase_lists_whose_words_go():
    plan = ErasePlan(
        facts=(fact(),),
        messages=("chat1#212", "chat1#213"),
        sources=("chat1",),
        reviewed=(free("c5e8", "prefers short answers without emoji"),),
        falls=(free("8a11", "Anna’s time zone is WET"),),
    )

    assert str(erase_plan_screen(plan, short_ids=SHORT)) == snapshot("""\
would remove the words for good, everywhere in the file; digests and the log
  stay:
  facts          4f2a “Anna lives in Lisbon” (accepted)
  messages       2: chat1#212 chat1#213
  sources        1: chat1
  falls with it  8a11 “Anna’s time zone is WET” (accepted) → revoked
  to review      c5e8 “prefers short answers without emoji” (accepted)
nothing changed · leave out --dry-run and give --reason
""")


def test_an_erase_of_nothing_says_so():
    nothing = ErasePlan(facts=(), messages=(), sources=(), reviewed=(), falls=())

    assert "nothing: no words of it are in the file" in str(erase_plan_screen(nothing, short_ids={}))


def test_an_item_of_the_queue_shows_all_that_decides_it():
    assert str(queue_item_screen(made.queue_item(), position=3, total=17, now=NOW, short_ids=SHORT)) == snapshot("""\
(3/17)  tentative · extracted from chat-0612.jsonl #214 by rule “I prefer”

   anna  prefers oat milk
   offered 2 d ago by extractor

     chat-0612.jsonl #214  12 Mar 2026 09:20
     213  assistant  Anything for breakfast?
   ▸ 214  user       [I prefer oat milk], cow's gives me a rash

   resembles       c5e8 “likes oat milk in coffee” 86 % alike, accepted

 [a]ccept  [v]erify  [e]dit…  [r]eject…  re[t]ract…  keep [b]oth  [m]erge
 [d]ispute  [s]kip  [u]ndo  [q]uit  [?] help
""")


def test_an_item_of_the_queue_fits_forty_columns():
    assert str(
        queue_item_screen(made.queue_item(), position=3, total=17, now=NOW, short_ids=SHORT, width=40)
    ) == snapshot("""\
(3/17)  tentative · extracted from
    chat-0612.jsonl #214 by rule “I
    prefer”

   anna  prefers oat milk
   offered 2 d ago by extractor

     chat-0612.jsonl #214  12 Mar 2026
     09:20
     213  assistant  Anything for
                    breakfast?
   ▸ 214  user       [I prefer oat
                    milk], cow's gives
                    me a rash

   resembles       c5e8 “likes oat milk
     in coffee” 86 % alike, accepted

 [a]ccept  [v]erify  [e]dit…  [r]eject…
 re[t]ract…  keep [b]oth  [m]erge
 [d]ispute  [s]kip  [u]ndo  [q]uit
 [?] help
""")


def test_a_proposal_shows_what_was_asked_for_and_by_whom():
    item = made.queue_item(
        fact=fact(), detail="", evidence=(), similar=(), conflicts=(fact(),), proposal=made.proposal()
    )

    assert str(queue_item_screen(item, position=1, total=1, now=NOW, short_ids=SHORT)) == snapshot("""\
(1/1)  tentative

   anna  lives in Lisbon
   anna · home city = Lisbon · true since 5 Mar 2026
   offered 2 d ago by anna, terminal

   nightly, pipe proposes to correct version 2: “she said so”
     text  Anna lives in Porto

   conflicts with  4f2a “Anna lives in Lisbon” accepted

 [a]ccept  [v]erify  [e]dit…  [r]eject…  re[t]ract…  keep [b]oth  [m]erge
 [d]ispute  [s]kip  [u]ndo  [q]uit  [?] help
""")


def test_every_key_of_the_review_is_explained():
    assert set(KEYS.values()) == set(HELP)
    assert str(help_screen()) == snapshot("""\
 a  accept: believe it; it may reach prompts
 v  verify: believe it and confirm it yourself
 e  edit: correct the text, then accept it
 r  reject: refuse the value for good; asks the reason and shows what it hits
 t  retract: end it with no replacement; new evidence may bring it back
 b  keep both: leave it beside what it meets; a conflict is held on both sides
 m  merge: add its evidence to the fact it resembles, and end it
 d  dispute: hold it until somebody knows more
 s  skip: leave it in the queue
 u  undo: take back the last decision
 q  quit: stop here; what was decided is kept
 ?  help: this list
""")


def test_stats_stand_in_columns():
    assert str(stats_screen(made.stats())) == snapshot("""\
memory.db · scope user/anna · admission review · schema 1

Facts
  tentative                     3
  accepted                  1,204
  verified                      0
  disputed                      0
  superseded                    0
  revoked                       0
  rejected                      0

Beside them
  waiting for review            3
  scopes                        2
  sources                       4
  messages                    812
  tombstones                    1
  audit events                 60

Sizes
  tokens (o200k_base)       9,841
  facts not counted             0
  file                  240.0 KiB
  write-ahead log             0 B
  free pages              4.0 KiB
""")


def test_stats_warn_of_words_that_are_not_scrubbed_yet():
    assert "erased words may still be in free pages" in str(stats_screen(made.stats(scrub_pending=True)))
    assert "erased words" not in str(stats_screen(made.stats()))


def test_check_names_each_finding_and_counts_them():
    findings = [
        Finding(code="dead-reference", place="fact 4f2a", message="its evidence chat1#212 is not in the file"),
        Finding(code="chain-broken", place="event 12", message="its hash does not follow from event 11"),
    ]

    assert str(check_screen(findings)) == snapshot("""\
✗ dead-reference  fact 4f2a
    its evidence chat1#212 is not in the file
✗ chain-broken  event 12
    its hash does not follow from event 11

2 findings
""")
    assert str(check_screen([])) == snapshot("nothing found: the file is whole\n")


def test_the_glossary_explains_every_word_and_state():
    shown = str(glossary_screen())

    assert "  tombstone         a stop for a value" in shown
    assert all(f"  {state.value}" in shown for state in State)


def test_a_narrow_glossary_puts_the_meaning_under_the_word():
    assert str(glossary_screen({"slot": "subject and attribute together"}, width=40)).startswith(
        "  slot\n    subject and attribute together\n"
    )


def test_scopes_are_listed_with_what_they_hold():
    scopes = [
        ScopeInfo(name="default", facts=1204, readable=1180, sources=4, tombstones=0),
        ScopeInfo(name="user/anna", facts=7, readable=4, sources=2, tombstones=1),
    ]

    assert str(scopes_screen(scopes, default="default")) == snapshot("""\
  SCOPE      FACTS  READABLE  SOURCES  TOMBSTONES
  default    1,204     1,180        4           0  default
  user/anna      7         4        2           1
""")


def test_a_policy_lists_its_rules():
    rules = [
        PolicyRule(kind="source", name="tool", value="0.7"),
        PolicyRule(kind="oracle", name="crm", value="crm-lookup --json"),
    ]

    assert str(policy_screen(rules)) == snapshot("""\
  KIND    NAME  VALUE
  source  tool  0.7
  oracle  crm   crm-lookup --json
""")
    assert "no rules" in str(policy_screen([]))


def imported(**changes):
    read = ImportReport(
        path="chats/chat-0612.jsonl",
        format="openai",
        conversations=1,
        messages=212,
        roles={"user": 100, "assistant": 112},
        tool_calls=31,
        new=210,
        same=2,
        refused=1,
        warnings=(Warned(line=14, message="no role; taken as unknown"), Warned(line=None, message="no title")),
    )
    failed = ImportReport(
        path="notes.bin", format=None, tried=("openai", "mem0"), roles={}, error="line 1 is neither text nor JSON"
    )
    known = Imported(source="chat1", new=210, same=2, session=None, title=None)
    return import_screen([read, failed], [known], **changes)


def test_an_import_says_what_became_of_each_file():
    assert str(imported()) == snapshot("""\
chats/chat-0612.jsonl · openai
  1 conversation · 212 messages (100 user, 112 assistant) · 31 tool calls
  210 new, 2 there already, 1 refused
  ! line 14: no role; taken as unknown
  ! no title
notes.bin · not recognised
  ✗ line 1 is neither text nor JSON
    tried openai, mem0

2 files: 210 new, 2 there already · 1 not read
  mem extract chat1 · mem review · mem show
""")


def test_a_dry_run_of_an_import_says_that_nothing_changed():
    assert str(imported(dry_run=True)).endswith("nothing changed · leave out --dry-run\n")
    assert "nothing changed" not in str(imported())


def test_many_warnings_of_one_file_are_counted_and_not_all_written_out():
    report = ImportReport(
        path="a", format="openai", roles={}, warnings=tuple(Warned(line=n, message="odd") for n in range(1, 31))
    )

    shown = str(import_screen([report], []))

    assert shown.count("odd") == 10
    assert "and 20 more warnings" in shown


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        ("new", "added 4f2a · accepted"),
        ("same", "nothing new: 4f2a says so already"),
        ("corroborated", "corroborated 4f2a · new evidence, no second fact"),
        ("held", "held 4f2a · disputes 9c01, decide with `mem review`"),
        ("superseded", "added 4f2a · accepted, in the place of 9c01"),
    ],
)
def test_a_write_says_in_one_line_what_became_of_it(outcome, line):
    assert written_line(Written(fact=fact(), outcome=outcome, rival="9c01"), SHORT) == line


def test_a_change_that_was_made_is_one_line():
    assert done_line(Op.TOMBSTONE, ["4f2a"], also="t3") == "tombstoned 4f2a · t3"
    assert done_line(Op.ERASE, ["4f2a", "9c01"]) == "erased 4f2a 9c01"
    assert set(DONE) == set(Op)


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (Tombstoned("that value was rejected", hint="lift it"), "error: that value was rejected\nhint: lift it"),
        (MemError("it broke"), "error: it broke"),
    ],
)
def test_an_error_is_two_lines_or_one(error, lines):
    assert error_lines(error) == lines


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (245_760, "240.0 KiB"),
        (3 * 2**30, "3.0 GiB"),
        (2**50, "1,048,576.0 GiB"),
    ],
)
def test_a_size_has_a_unit(bytes_, text):
    assert size(bytes_) == text


def test_an_empty_log_says_so():
    assert str(log_screen([], now=NOW, verified=None, short_ids={})) == "no events\n"


def test_a_version_of_the_past_is_shown_with_the_time_it_was_known():
    past = fact(retired_at=at("2026-03-12T11:00"))

    assert "known        12 Mar 2026 09:20 … 12 Mar 2026 11:00" in str(fact_screen(past, now=NOW, short_ids=SHORT))


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2025-12-30", "2026-03-12", "30 Dec 2025 … 12 Mar 2026"),
        ("2026-01-02", "2026-03-12", "2 Jan … 12 Mar 2026"),
        ("2026-03-12T09:14", "2026-03-12T09:20", "12 Mar 2026 09:14 … 09:20"),
        ("2026-03-12T09:14", "2026-03-12T09:14", "12 Mar 2026 09:14"),
    ],
)
def test_a_time_between_two_moments_is_as_exact_as_it_takes_to_tell_them_apart(start, end, words):
    assert between(at(start), at(end)) == words


def test_a_view_that_falls_is_held_for_rebuilding_and_a_belief_is_revoked():
    plan = TombstonePlan(
        scope="s",
        match=Match.VALUE,
        pattern=None,
        values=("x",),
        slots=(),
        hits=(fact(),),
        falls=(free("8a11", "a belief"), free("9b22", "a summary", kind=Kind.SUMMARY)),
        near=(),
    )

    shown = str(tombstone_plan_screen(plan, short_ids=SHORT))

    assert "8a11 “a belief” (accepted) → revoked" in shown
    assert "9b22 “a summary” (accepted) → disputed, to be rebuilt" in shown
