"""What holds of the built-in rules whatever the messages say."""

from hypothesis import given
from hypothesis import strategies as st

from memcli.extract import MAX_STATEMENT, MAX_VALUE, RULES, extract
from memcli.facts import Message
from memcli.terms import Role
from memcli.text import check_typed
from tests.made import message

PIECES = st.sampled_from(
    [
        *("I live in ", "Lisbon", "my name is ", "Dana", "my user ID is ", "mia_7", "remember that ", "FACT: ", " | "),
        *("I prefer ", "tea", " over ", "I'm allergic to ", "please always ", "if ", "not ", "?", ".", ", ", " and "),
        *("\n", "\r\n", "```\n", "> ", "<system-reminder>", "</system-reminder>", '"', "“", "”", "'", "’", "`", "    "),
        *(
            "I moved to ",
            "I work at ",
            "I was born on 4 May 1990",
            "my personal best of 25:50",
            "東京",
            "\x00",
            "\ud800",
        ),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=24).map("".join)
MESSAGES = st.lists(st.tuples(st.sampled_from(Role), TEXTS), max_size=5).map(
    lambda said: [message(index, role, content) for index, (role, content) in enumerate(said)]
)


@given(MESSAGES)
def test_every_claim_points_at_words_that_the_user_said(messages: list[Message]):
    said = {m.id: m for m in messages}

    for claim in extract(messages):
        (evidence,) = claim.evidence
        assert said[evidence.message].role is Role.USER
        assert evidence.quote
        assert evidence.quote in said[evidence.message].content


@given(MESSAGES)
def test_every_claim_can_be_stored_and_names_its_rule(messages: list[Message]):
    for claim in extract(messages):
        assert claim.rule in RULES
        assert len(claim.text) <= MAX_STATEMENT
        assert check_typed(claim.text, what="the text") == claim.text
        assert (claim.subject is None) == (claim.attribute is None) == (claim.value is None)
        assert claim.value is None or 0 < len(str(claim.value)) <= MAX_VALUE


@given(MESSAGES, st.integers(0, 5))
def test_claims_of_a_message_do_not_depend_on_the_messages_beside_it(messages: list[Message], cut: int):
    assert list(extract(messages)) == [*extract(messages[:cut]), *extract(messages[cut:])]


@given(TEXTS)
def test_nothing_is_read_inside_a_reminder(content: str):
    outside = content.replace("<", "‹")
    wrapped = message(content=f"<system-reminder>\n{outside}\n</system-reminder>\nFACT: it rains")

    assert [claim.text for claim in extract([wrapped])] == ["it rains"]
