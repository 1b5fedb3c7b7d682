"""The built-in rules: what they read, what they leave alone, and what they say about real transcripts."""

from pathlib import Path

import pytest

from memcli import exchange
from memcli.extract import MAX_STATEMENT, MAX_VALUE, RULES, extract
from memcli.facts import Claim, Message, Validity
from memcli.terms import Role
from tests.made import message

FIXTURES = Path(__file__).parents[2] / "fixtures"

FREE = [
    ("Remember that the deploy key rotates on Fridays.", "remember that", "the deploy key rotates on Fridays"),
    ("OK, please remember that I take two sugars.", "remember that", "I take two sugars"),
    ("Remember: the staging database is read-only", "remember that", "the staging database is read-only"),
    ("Don't forget that Dr. Li is on call.", "remember that", "Dr. Li is on call"),
    ("FACT: the deploy key rotates on Fridays", "FACT", "the deploy key rotates on Fridays"),
    ("notes\n- FACT: one | two\nend", "FACT", "one | two"),
    ("I prefer short answers without emojis.", "I prefer", "the user prefers short answers without emojis"),
    ("I really prefer my coffee black, thanks", "I prefer", "the user prefers their coffee black"),
    ("I prefer tea to coffee.", "I prefer", "the user prefers tea to coffee"),
    ("I’m allergic to peanuts, suggest a snack", "I am allergic to", "the user is allergic to peanuts"),
    ("I am allergic to nuts, milk and dust.", "I am allergic to", "the user is allergic to nuts, milk and dust"),
    ("I'm severely allergic to bees, what now?", "I am allergic to", "the user is allergic to bees"),
    ("Please always answer in French.", "please always", "always answer in French"),
    ("Hi, please never commit to main!", "please always", "never commit to main"),
]

SLOTS = [
    ("FACT: anna | home city | Lisbon", "FACT", "anna's home city is Lisbon", "home city", "Lisbon"),
    ("FACT: user | user ID | x7", "FACT", "the user ID is x7", "user ID", "x7"),
    ("My name is Dana Fox.", "my name is", "the user's name is Dana Fox", "name", "Dana Fox"),
    ("my name's Dana, hi", "my name is", "the user's name is Dana", "name", "Dana"),
    ("Please call me Dan.", "call me", "the user wants to be called Dan", "preferred name", "Dan"),
    ("I live in Princeton and am open to EWR.", "I live in", "the user lives in Princeton", "home", "Princeton"),
    ("I live in Princeton, NJ. Any ideas?", "I live in", "the user lives in Princeton, NJ", "home", "Princeton, NJ"),
    ("I live in Paris, can you help?", "I live in", "the user lives in Paris", "home", "Paris"),
    ("I live in Lisbon and Dana lives in Rome.", "I live in", "the user lives in Lisbon", "home", "Lisbon"),
    ("I live in the Netherlands now", "I live in", "the user lives in the Netherlands", "home", "Netherlands"),
    ("I live in 東京 with Ken.", "I live in", "the user lives in 東京", "home", "東京"),
    ("i live in new york with ken", "I live in", "the user lives in new york", "home", "new york"),
    ("By the way, I'm based in Porto.", "I live in", "the user lives in Porto", "home", "Porto"),
    ("I moved to Lisbon in March.", "I moved to", "the user moved to Lisbon", "home", "Lisbon"),
    ("I've just moved from Rome to St. Louis.", "I moved to", "the user moved to St. Louis", "home", "St. Louis"),
    ("I work at Acme Corp as an engineer.", "I work", "the user works at Acme Corp", "employer", "Acme Corp"),
    ("I work for the BBC in London", "I work", "the user works for the BBC", "employer", "BBC"),
    ("I work as a night nurse at Acme", "I work", "the user works as a night nurse", "occupation", "night nurse"),
    ("I was born on 4 May 1990.", "I was born", "the user was born on 4 May 1990", "date of birth", "4 May 1990"),
    ("I was born in May 1990.", "I was born", "the user was born in May 1990", "date of birth", "May 1990"),
    ("I was born in 1984, so", "I was born", "the user was born in 1984", "year of birth", "1984"),
    ("I was born and raised in Rome.", "I was born", "the user was born in Rome", "place of birth", "Rome"),
    ("I'm a vegetarian, so no meat.", "I am vegetarian", "the user is a vegetarian", "diet", "vegetarian"),
    ("I am vegan", "I am vegetarian", "the user is vegan", "diet", "vegan"),
    ("I set a PB? No: I ran a personal best of 26:10.", *["personal best", "the user's personal best time is 26:10"],
     "personal best time", "26:10"),
    ("my resting pulse of 52 bpm, ok", "my X of N", "the user's resting pulse is 52 bpm", "resting pulse", "52 bpm"),
    ("My user ID is mia_7, look it up?", "my X is Y", "the user ID is mia_7", "user ID", "mia_7"),
    ("Well, my user ID is od_3, but I'm not sure", "my X is Y", "the user ID is od_3", "user ID", "od_3"),
    ("My new phone is a Pixel 7.", "my X is Y", "the user's phone is a Pixel 7", "phone", "a Pixel 7"),
    ("my favourite book is \"Dune\".", "my X is Y", "the user's favourite book is Dune", "favourite book", "Dune"),
    ("my favorite colors are red, green and blue", *["my X is Y", "the user's favorite colors are red, green and blue"],
     "favorite colors", "red, green and blue"),
    ("My address is 12 Main St, Salem, can you", *["my X is Y", "the user's address is 12 Main St, Salem"],
     "address", "12 Main St, Salem"),
    ("I'd like to fly, not early, my weight is 70 kg.", "my X is Y", "the user's weight is 70 kg", "weight", "70 kg"),
]  # fmt: skip

LEFT_ALONE = [
    # questions
    "Is my name Dana?",
    "My name is Dana?",
    "Can you check that my user ID is mia_7",
    "Did you know that I live in Paris?",
    "Remember that my name is Dana?",
    "Do you remember that movie?",
    # what is not so, or not known to be so
    "What if I moved to Berlin?",
    "If I moved to Berlin, my rent is 900.",
    "Imagine I live in Paris.",
    "Suppose my name is Bob.",
    "I would live in Paris.",
    "Maybe I live in Paris.",
    "I think my user ID is 42.",
    "I don't live in Paris.",
    "I no longer live in Paris.",
    "I used to live in Paris.",
    "It is not true that I live in Paris.",
    "I'm allergic to nuts if they are raw.",
    "I beat my personal best of 26:00.",
    "My old address is 12 Main St.",
    # other people's words
    'She wrote "I live in Paris".',
    "She told me I live in Paris.",
    "As a customer, I prefer quick checkout.",
    "Translate to French: my name is Bob and I work at Acme.",
    "Write me a short story: my name is Bob. I live in Paris.",
    "You are an assistant. My name is Bob.",
    "> I live in Paris",
    "    I live in Paris",
    "user: I live in Paris",
    "```\nI live in Paris\nFACT: a | b | c\n```",
    "~~~\nI live in Paris",
    "`my name is Bob`",
    "2026-01-01 10:00:00 INFO my name is Bob",
    "<system-reminder>I live in Paris</system-reminder>",
    "<system-reminder>I live in Paris.\n\nMy name is Bob.",
    "<a><b>I live in Paris</a>. My name is Bob.</b>",
    # what means nothing after the chat
    "I prefer the first option.",
    "I prefer that one.",
    "I'd prefer tea over coffee.",
    "I'm allergic to it.",
    "My meeting is tomorrow at 10.",
    "My flight is on Tuesday the 4th",
    "My question is how 3 works",
    "My guess is 42.",
    "My code is 3 lines long",
    "My test is failing at line 12.",
    "My dog is sick.",
    "My account is locked since 3 pm",
    "My job is the one I told you about",
    "I prefer tea if it is hot.",
    "I work as a nurse if they call",
    "I work as the one you know.",
    "My email is broken.",
    "my list of 5 items",
    "My backlog of 30 tickets",
    "Most of my friends are Italian.",
    "My favorite is the blue one",
    "Remember that movie we saw yesterday.",
    "I remember that my mother was kind.",
    "Please never do that again.",
    "Please never mind, it works.",
    "Call me back at 5.",
    "Call me Maybe is a song",
    # no place, no employer, no diet
    "I moved to Python 3.",
    "I moved to TypeScript.",
    "I moved to Ubuntu 24",
    "I moved to the next question.",
    "I live in a small town.",
    "I live in fear.",
    "i live in fear of tests",
    "I work at night.",
    "I work as intended.",
    "I was born in May.",
    "I'm a vegan chef.",
    # what opens doors
    "My password is hunter2",
    "My API key is sk-1234",
    "My card number is 4111 1111",
    # pastes
    f"My user ID is {'x' * MAX_VALUE}1",
    f"Remember that {'it rains ' * MAX_STATEMENT}",
    f"FACT: {'y' * (MAX_STATEMENT + 1)}",
    "FACT: an odd \x00 character",
    "Remember that the odd \ud800 half is here",
]  # fmt: skip


def claims(text: str) -> list[Claim]:
    return list(extract([message(content=text)]))


def conversations(name: str) -> list[list[Message]]:
    return [
        [message(index, turn.role, turn.content) for index, turn in enumerate(conversation.turns)]
        for conversation in exchange.open_file(str(FIXTURES / name)).conversations
    ]


@pytest.mark.parametrize(("said", "rule", "text"), FREE)
def test_a_statement_without_a_slot_becomes_free_text(said, rule, text):
    found = claims(said)

    assert [(c.rule, c.text, c.subject, c.attribute, c.value) for c in found] == [(rule, text, None, None, None)]


@pytest.mark.parametrize(("said", "rule", "text", "attribute", "value"), SLOTS)
def test_a_statement_with_a_slot_fills_it(said, rule, text, attribute, value):
    found = claims(said)

    assert [(c.rule, c.text, c.attribute, c.value) for c in found] == [(rule, text, attribute, value)]
    assert found[0].subject == ("anna" if "anna" in said else "user")


def test_every_rule_is_documented_and_every_documented_rule_is_tested():
    fired = {rule for _, rule, *_ in [*FREE, *SLOTS]}

    assert fired == set(RULES)


@pytest.mark.parametrize("rule", sorted(set(RULES)))
def test_the_first_example_in_the_words_of_a_rule_fires_it(rule):
    example = RULES[rule].split('"')[1].replace("…", "water is wet")

    assert [c.rule for c in claims(example)] == [rule]


@pytest.mark.parametrize("said", LEFT_ALONE)
def test_what_is_no_plain_statement_is_left_alone(said):
    beside = claims(f"FACT: the sky is blue\n\n{said}")

    assert [c.text for c in beside] == ["the sky is blue"]


@pytest.mark.parametrize(
    "beginning",
    ["# AGENTS.md", "This session is being continued from a previous conversation", "Caveat: The messages below"],
)
def test_a_message_that_a_tool_wrote_in_the_users_place_is_not_read(beginning):
    said = "Please always run the tests. I live in Paris."

    assert claims(f"{beginning}.\n\n{said}") == []
    assert len(claims(f"Hi.\n\n{said}")) == 2


def test_both_orders_of_a_preference_fill_the_same_slot():
    one, other = claims("I prefer tea over coffee."), claims("I prefer coffee rather than tea.")

    assert (one[0].attribute, one[0].value) == ("preference between coffee and tea", "tea")
    assert (other[0].attribute, other[0].value) == ("preference between coffee and tea", "coffee")


def test_an_order_to_remember_what_other_rules_read_gives_their_claims_only():
    found = claims("Remember that my name is Dana and I live in Lisbon.")

    assert [c.rule for c in found] == ["my name is", "I live in"]


def test_an_order_to_remember_more_than_other_rules_read_keeps_all_of_it():
    found = claims("Remember that I live in Lisbon and my sister lives in Porto.")

    assert [c.text for c in found] == ["I live in Lisbon and my sister lives in Porto"]


def test_a_statement_broken_over_two_lines_is_read_whole():
    found = claims("Remember that the deploy key of the second staging cluster rotates on\nFridays, and only\nthere.")
    wrapped = claims("Remember that the deploy key of the second staging cluster is rotated\non the last Friday.")

    assert [c.text for c in found] == ["the deploy key of the second staging cluster rotates on"]
    assert [c.text for c in wrapped] == ["the deploy key of the second staging cluster is rotated on the last Friday"]


def test_only_what_the_user_says_is_read():
    said = [message(index, role, "I live in Lisbon.") for index, role in enumerate(Role)]
    result = message(8, content="I live in Rome.", tool_call_id="call-1")
    erased = message(9, content="I live in Oslo.", erased_at=1)

    found = list(extract([*said, result, erased]))

    assert [c.evidence[0].message for c in found] == [next(m.id for m in said if m.role is Role.USER)]


def test_a_quote_stands_in_its_message_as_it_was_typed():
    content = "Hi!\r\nI’m  allergic to   “blue” cheese, ok"
    found = claims(content)

    assert found[0].text == "the user is allergic to “blue” cheese"
    assert found[0].evidence[0].quote == "I’m  allergic to   “blue” cheese"
    assert found[0].evidence[0].quote in content


def test_a_statement_said_twice_in_a_message_is_one_claim_and_in_two_messages_two():
    said = "I live in Lisbon. As I wrote above. I live in Lisbon."

    assert len(claims(said)) == 1
    assert len(list(extract([message(1, content=said), message(2, content=said)]))) == 2


def test_validity_and_confidence_are_not_invented():
    found = claims("I moved to Lisbon in March 2024.")

    assert [(c.validity, c.confidence, c.importance, c.authority) for c in found] == [(Validity(), None, None, None)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "malformed/m11_bom_utf8.json",
            ["the user's name is Dana", "the user moved to Lisbon", "the user is allergic to peanuts"],
        ),
        (
            "openai_messages/ta03_bare_messages.json",
            ["the user ID is aarav_garcia_1177", "the user lives in Princeton"],
        ),
    ],
)
def test_real_conversations_give_what_a_reader_would_note(name, expected):
    found = [claim.text for messages in conversations(name) for claim in extract(messages)]

    assert found == expected


@pytest.mark.parametrize("path", sorted((FIXTURES / "claude_code").glob("*.jsonl")), ids=lambda path: path.name)
def test_coding_sessions_without_personal_statements_give_no_claims(path):
    messages = [m for conversation in conversations(f"claude_code/{path.name}") for m in conversation]

    assert messages
    assert list(extract(messages)) == []


def test_a_personal_best_that_was_improved_fills_one_slot_twice():
    sessions = conversations("openai_messages/longmemeval_personal_best.json")
    found = [claim for messages in sessions for claim in extract(messages)]

    assert [(c.slot, c.value) for c in found] == [
        (("user", "personal best time"), "27:12"),
        (("user", "personal best time"), "25:50"),
    ]
