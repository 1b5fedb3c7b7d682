"""Blocks that a configuration names, and classes of somebody else as blocks."""

import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from textwrap import dedent

import pytest

from memcli.budget import public
from memcli.budget.messages import BudgetMessage, text_part
from memcli.budget.public import BlockFailed, GivenFact, blocks_from, class_named
from memcli.budget.run import run
from memcli.errors import Unreadable, UsageError


def words(text):
    return len(text.split())


def said(text, role="user"):
    return BudgetMessage(role=role, parts=(text_part(text),))


def ran(*messages, blocks, policy="mem", **settings):
    return run(
        messages,
        policy=policy,
        settings=settings,
        count=words,
        encoding="words",
        blocks=blocks_from({"blocks": blocks}),
    )


def texts(made):
    return [piece.text for piece in made.prompt if piece.kind == "block"]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return what writes a module that Python then finds."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(dedent(source), encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)

    yield write
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def notes(written):
    """The class that the documentation shows."""
    example = re.search(r"\n    class Notes:\n(?:(?:        .*)?\n)+", public.__doc__)
    assert example is not None
    written("notes", example.group())
    return {"type": "class", "name": "notes", "class": "notes:Notes", "options": {"title": "Heard"}}


# --- a class of your own ---


@pytest.mark.parametrize("policy", ["mem", "llamaindex"])
def test_the_class_of_the_documentation_is_a_block_under_every_policy_that_has_any(notes, policy):
    messages = [said("likes tea\nand more"), said("lives in Oslo"), said("six words are in this one")]
    made = ran(
        *messages, blocks=[notes], policy=policy, token_limit=25, chat_history_token_ratio=0.3, token_flush_size=1
    )

    assert texts(made) == ["Heard\nlives in Oslo\nlikes tea"]
    assert [fate.ended for fate in made.fates] == ["block", "block", "window"]


def test_a_class_is_made_anew_for_every_run(notes):
    blocks = blocks_from({"blocks": [notes]})
    settings = {"token_limit": 10, "chat_history_token_ratio": 0.3}
    runs = [
        run([said("a b"), said("c d")], policy="mem", settings=settings, count=words, encoding="words", blocks=blocks)
        for _ in range(2)
    ]

    assert texts(runs[0]) == texts(runs[1]) == ["Heard\na b"]


def test_a_class_is_asked_again_where_it_gives_back_too_little(written):
    written(
        "slow",
        """
        asked = []

        class Slow:
            def get(self, messages):
                return "a b c d e f g h"

            def put(self, messages):
                pass

            def truncate(self, content, tokens_to_drop):
                asked.append(tokens_to_drop)
                return content.rsplit(" ", 1)[0]
        """,
    )
    made = ran(said("w"), token_limit=8, blocks=[{"class": "slow:Slow"}])

    assert texts(made) == ["a b c d e"]
    assert sys.modules["slow"].asked == [3, 2, 1]


@pytest.mark.parametrize("returned", ["None", "content", "content + ' more'", "''", "[]"])
def test_a_class_that_gives_nothing_back_is_left_out(written, returned):
    written(
        "rigid",
        f"""
        class Rigid:
            def get(self, messages):
                return "a b c d"

            def put(self, messages):
                pass

            def truncate(self, content, tokens_to_drop):
                return {returned}
        """,
    )
    wide, tight = (ran(said("w"), token_limit=limit, blocks=[{"class": "rigid:Rigid"}]) for limit in (7, 6))

    assert wide.blocks[0].fate == "whole"
    assert (tight.blocks[0].fate, tight.blocks[0].got) == ("dropped", 0)
    assert tight.blocks[0].reason == "it needs 6 tokens with its tags, could have 5, and cannot be made that small"


BROKEN = """
    class Broken:
        def get(self, messages):
            {get}

        def put(self, messages):
            {put}

        def truncate(self, content, tokens_to_drop):
            {truncate}
"""


@pytest.mark.parametrize(
    ("method", "body", "sentence"),
    [
        ("get", "raise KeyError('tea')", "block own raised KeyError in its get: 'tea'"),
        ("put", "raise RuntimeError('no room\\nat all')", "block own raised RuntimeError in its put: no room"),
        ("truncate", "1 / 0", "block own raised ZeroDivisionError in its truncate: division by zero"),
        ("get", "assert False", "block own raised AssertionError in its get"),
        (
            "get",
            "return 5",
            "block own raised TypeError in its get: get gives a text, a list of texts or None, not int",
        ),
        (
            "truncate",
            "return ['a', 5]",
            "block own raised TypeError in its truncate: truncate gives a text, a list of texts or None, not list",
        ),
    ],
)
def test_what_a_class_raises_is_one_sentence(written, method, body, sentence):
    bodies = {"get": "return 'a b c d e f g h'", "put": "pass", "truncate": "return None", method: body}
    written("broken", BROKEN.format(**bodies))

    with pytest.raises(BlockFailed) as raised:
        ran(said("a b"), said("c d"), said("e f"), token_limit=8, blocks=[{"name": "own", "class": "broken:Broken"}])
    assert raised.value.message == sentence
    assert raised.value.hint is not None
    assert raised.value.exit_code == 2


def test_llamaindex_goes_on_to_say_that_there_is_no_prompt(written):
    written("broken", BROKEN.format(get="raise KeyError('tea')", put="pass", truncate="return None"))
    made = ran(said("a b"), policy="llamaindex", blocks=[{"name": "own", "class": "broken:Broken"}])

    assert made.refused == "block own raised KeyError in its get: 'tea'"
    assert made.prompt == ()


@pytest.mark.parametrize(
    ("source", "place", "sentence"),
    [
        ("x = 1", "mine:Gone", "module mine has no class Gone"),
        ("raise OSError('disk')", "mine:Any", "the block class mine:Any cannot be imported: disk"),
        ("class Half:\n    def get(self, m): ...\n    def put(self, m): ...", "mine:Half", "has no method truncate"),
        ("x = 1", "nowhere_at_all:Any", "the block class nowhere_at_all:Any cannot be imported: No module named"),
        ("x = 1", ":Any", "cannot be imported"),
        ("x = 1", "no-such-entry", "no block class is called no-such-entry"),
    ],
)
def test_a_class_that_is_not_there_is_named(written, source, place, sentence):
    written("mine", source)

    with pytest.raises(UsageError, match=re.escape(sentence)):
        class_named(place)


def test_a_class_that_cannot_be_made_is_one_sentence(notes):
    with pytest.raises(UsageError, match=r"block notes cannot be made: .*colour"):
        ran(said("a"), blocks=[{**notes, "options": {"colour": "red"}}])


def test_a_class_may_be_an_entry_point(notes, monkeypatch):
    entry = EntryPoint(name="heard", value="notes:Notes", group=public.ENTRY_POINTS)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **wanted: EntryPoints([entry]).select(**wanted))

    assert class_named("heard") is class_named("notes:Notes")


# --- from a configuration ---


def test_every_type_of_block_can_be_named():
    specs = blocks_from(
        {
            "blocks": [
                {"type": "static", "text": "be kind"},
                {"type": "static", "name": "parts", "content": [{"type": "text", "text": "a"}]},
                {"type": "facts", "facts": ["likes tea"], "max_facts": 3, "learn": True},
                {"type": "retrieved", "top_k": 3, "context_messages": 2},
                {"type": "fact"},
                {"type": "vector", "priority": 2, "weight": 3},
                {"type": "custom", "content": "x", "accept_short_term_memory": False},
            ]
        }
    )

    assert [spec.name for spec in specs] == ["static", "parts", "facts", "retrieved", "fact", "vector", "custom"]
    assert [spec.kind for spec in specs][:2] == ["static", "static"]
    assert (specs[5].priority, specs[5].weight, specs[6].accepts) == (2, 3.0, False)
    assert specs[2].options == {"facts": ["likes tea"], "max_facts": 3, "learn": True}


def test_a_text_may_stand_in_a_file_that_the_caller_reads():
    files = {"persona.md": "You are kind."}
    made = run(
        [said("hi")],
        policy="mem",
        count=words,
        encoding="words",
        blocks=blocks_from({"blocks": [{"type": "static", "file": "persona.md"}]}, read=files.__getitem__),
    )

    assert texts(made) == ["You are kind."]


def test_a_file_that_cannot_be_read_is_told_as_the_reader_tells_it():
    def read(name):
        raise Unreadable(name, "no such file")

    with pytest.raises(Unreadable, match=r"persona\.md: no such file"):
        blocks_from({"blocks": [{"type": "static", "file": "persona.md"}]}, read=read)


def test_facts_without_a_list_are_those_that_were_given():
    given = [GivenFact(text="likes tea", importance=0.1), GivenFact(text="lives in Oslo", importance=0.9)]
    blocks = blocks_from({"blocks": [{"type": "facts"}]}, facts=given)
    made = run([said("hi")], policy="mem", count=words, encoding="words", blocks=blocks)

    assert texts(made) == ["lives in Oslo\nlikes tea"]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"type": "magic"}, "no block type magic"),
        ({}, "no block type None"),
        ({"type": ["static"]}, "no block type"),
        ({"type": "static"}, "needs either a text or a file"),
        ({"type": "static", "text": "a", "file": "b"}, "needs either a text or a file"),
        ({"type": "static", "text": 5}, "its text is no text"),
        ({"type": "static", "file": "b"}, "its file cannot be read here"),
        ({"type": "static", "content": 5}, "cannot be made: static_content"),
        ({"type": "static", "text": "a", "name": "</b>"}, "cannot be called </b>"),
        ({"type": "static", "text": "a", "name": ""}, "cannot be called"),
        ({"type": "static", "text": "a", "colour": 1}, "unknown key colour"),
        ({"type": "static", "text": "a", "weight": 0}, "weight of block static cannot be 0"),
        ({"type": "static", "text": "a", "weight": float("nan")}, "weight of block static cannot be nan"),
        ({"type": "static", "text": "a", "priority": 1.5}, "priority of block static cannot be 1.5"),
        ({"type": "static", "text": "a", "accept_short_term_memory": 1}, "accept_short_term_memory"),
        ({"type": "facts"}, "has no list of facts"),
        ({"type": "facts", "facts": "tea"}, "has no list of facts"),
        ({"type": "facts", "facts": [5]}, "a fact of block facts cannot be read"),
        ({"type": "facts", "facts": [{"text": "a", "importance": "high"}]}, "a fact of block facts cannot be read"),
        ({"type": "facts", "facts": [], "max_facts": -1}, "max_facts of block facts cannot be -1"),
        ({"type": "retrieved", "top_k": 0}, "top_k of block retrieved cannot be 0"),
        ({"type": "vector", "similarity_top_k": "many"}, "block vector cannot be made: similarity_top_k"),
        ({"type": "class"}, "names no class"),
        ({"type": "class", "class": "a:B", "options": 5}, "are no table"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(table, sentence):
    with pytest.raises(UsageError, match=sentence):
        blocks_from({"blocks": [table]})


@pytest.mark.parametrize("blocks", ["static", {"type": "static"}, [5]])
def test_blocks_that_are_no_list_of_tables_are_refused(blocks):
    with pytest.raises(UsageError, match="blocks must be a list of tables"):
        blocks_from({"blocks": blocks})


def test_two_blocks_of_one_name_are_refused():
    table = {"type": "static", "text": "a"}

    with pytest.raises(UsageError, match="two blocks are called static"):
        blocks_from({"blocks": [table, table]})
    assert len(blocks_from({"blocks": [table, {**table, "name": "other"}]})) == 2
    assert blocks_from({}) == ()


# --- the ranking of passages ---


def test_passages_are_ranked_by_the_rare_words_they_share():
    block = blocks_from({"blocks": [{"type": "retrieved", "top_k": 2}]})[0].placed(words, []).block
    block.put([said("tea tea tea"), said("tea in Oslo"), said("a fjord"), said("tea")])

    # oslo is in 1 of the passages, tea in 3: a million and a third of one for the second, a third for the others.
    assert [part.text for part in block.get([said("Oslo TEA?")])] == ["user: tea in Oslo", "user: tea"]
    assert block.get([said("nothing like it")]) == []


def test_what_the_window_still_holds_does_not_come_back():
    block = blocks_from({"blocks": [{"type": "retrieved"}]})[0].placed(words, []).block
    held, gone = said("tea now"), said("tea then")
    block.put([held, gone])

    assert [part.text for part in block.get([held])] == ["user: tea then"]
