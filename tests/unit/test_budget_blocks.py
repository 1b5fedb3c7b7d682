"""Memory blocks on their own, and how the LlamaIndex policy takes what they give."""

from typing import Any

import pytest

from memcli.budget.blocks import FactBlock, LineModel, PlacedBlock, StaticBlock, VectorBlock, block_from
from memcli.budget.messages import BudgetMessage, Part, PartKind, text_part
from memcli.budget.policies.llamaindex import LlamaIndexMemory, Prompt, Weighed
from memcli.budget.raised import Raised
from memcli.budget.settings import settings_from


def said(text: str, role: str = "user", **kwargs: Any) -> BudgetMessage:
    return BudgetMessage(role=role, parts=(text_part(text),), kwargs=kwargs)


def words(text: str) -> int:
    return len(text.split())


def memory(*blocks: PlacedBlock, **given: Any) -> LlamaIndexMemory:
    return LlamaIndexMemory(settings_from(given), blocks, words)


def put(held: LlamaIndexMemory, *messages: BudgetMessage) -> list[tuple[int, int, tuple[str, ...]]]:
    outcome = held.put([Weighed(message=message, tokens=words(message.words)) for message in messages])
    return [(batch.start, batch.stop, batch.to_blocks) for batch in outcome.batches]


def texts(prompt: Prompt) -> list[list[str]]:
    return [[part.text for part in weighed.message.parts] for weighed in prompt.messages]


def made(**given: Any) -> PlacedBlock:
    return block_from(given, [])


class Diary:
    """A block as a person would write one: three methods and nothing else."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.asked: list[int] = []

    def get(self, messages):
        return "\n".join(text for batch in self.batches for text in batch)

    def put(self, messages):
        self.batches.append([message.words for message in messages])

    def truncate(self, content, tokens_to_drop):
        self.asked.append(tokens_to_drop)
        return " ".join(content.split()[tokens_to_drop:])


# --- the three methods ---


def test_a_class_with_three_methods_is_a_block():
    diary = Diary()
    held = memory(PlacedBlock(name="diary", block=diary, priority=1), token_limit=10, token_flush_size=1)
    put(held, said("one two three four"))
    put(held, said("five six seven eight"))

    prompt = held.get()
    assert diary.batches == [["one two three four"]]
    assert texts(prompt) == [
        ["<memory>\n<diary>\none two three four\n</diary>\n</memory>"],
        ["five six seven eight"],
    ]
    assert prompt.counted_tokens == 8


def test_a_block_is_asked_for_what_is_too_much_and_keeps_the_rest():
    diary = Diary()
    diary.put([said("one two three four five six")])
    held = memory(PlacedBlock(name="diary", block=diary, priority=1), token_limit=10, chat_history_token_ratio=1)
    put(held, said("a b c d e f"))

    prompt = held.get()
    assert diary.asked == [2]
    assert prompt.fate == {"diary": "truncated"}
    assert prompt.counted_tokens == 10
    assert "three four five six" in texts(prompt)[0][0]


def test_a_batch_reaches_the_other_blocks_when_one_fails_and_is_gone_all_the_same():
    diary, late = Diary(), Diary()
    broken = made(type="custom", name="broken", on_put="raise")
    deaf = PlacedBlock(name="deaf", block=Diary(), accepts=False)
    blocks = (PlacedBlock(name="diary", block=diary), broken, deaf, PlacedBlock(name="late", block=late))
    held = memory(*blocks, token_limit=10, token_flush_size=1)
    put(held, said("one two three four"))

    outcome = held.put([Weighed(message=said("five six seven eight"), tokens=4)])
    assert outcome.error is not None
    assert outcome.error.said == "block put failed"
    assert outcome.batches[0].to_blocks == ("diary", "broken", "late")
    assert diary.batches == late.batches == [["one two three four"]]
    assert held.window == (1, 2)


def test_of_several_blocks_that_fail_the_first_is_told():
    facts = made(type="fact", name="facts", extract="raise")
    held = memory(facts, made(type="custom", name="broken", on_put="raise"), token_limit=10, token_flush_size=1)
    put(held, said("one two three four"))

    outcome = held.put([Weighed(message=said("five six seven eight"), tokens=4)])
    assert outcome.error is not None
    assert outcome.error.said == "extract failed"


def test_what_one_block_grows_by_is_asked_of_the_next():
    diary = Diary()
    diary.put([said("one two three four")])
    grows = made(type="custom", name="grows", priority=1, content="a b c", truncate="grow")
    held = memory(grows, PlacedBlock(name="diary", block=diary, priority=2), token_limit=6)

    prompt = held.get()
    assert [(call.block, call.asked) for call in prompt.truncate_calls] == [("grows", 1), ("diary", 4)]
    assert prompt.fate == {"grows": "grown", "diary": "dropped"}


def test_writing_nothing_fails_and_changes_nothing():
    held = memory(token_limit=10)
    put(held, said("one"))

    outcome = held.put([])
    assert outcome.error is not None
    assert outcome.error.kind == "IntegrityError"
    assert held.window == (0, 1)


def test_content_that_is_neither_text_nor_a_list_fails_the_prompt():
    class Odd(Diary):
        def get(self, messages):
            return 7

    with pytest.raises(Raised, match="memory block odd: <class 'int'>"):
        memory(PlacedBlock(name="odd", block=Odd())).get()


def test_a_list_that_a_block_gives_twice_has_the_memory_in_it_the_second_time():
    kept = [said("hello")]

    class Shared(Diary):
        def get(self, messages):
            return kept

    held = memory(
        PlacedBlock(name="shared", block=Shared()),
        PlacedBlock(name="core", block=StaticBlock([text_part("x")])),
        insert_method="user",
    )

    core = "<memory>\n<core>\nx\n</core>\n</memory>"
    assert texts(held.get()) == [[core, "hello"]]
    assert texts(held.get()) == [[core, core, "hello"]]


def test_names_and_texts_are_not_escaped_and_what_has_no_address_is_left_out():
    video = Part(kind=PartKind.VIDEO, url="https://e.org/v")
    parts = [text_part("</core>"), Part(kind=PartKind.IMAGE), video, text_part(" "), video, text_part(" end")]
    held = memory(PlacedBlock(name="<b>", block=StaticBlock(parts)))

    (message,) = held.get().messages
    assert [part.text or part.url for part in message.message.parts] == [
        "<memory>\n<<b>>\n</core>",
        "https://e.org/v",
        "https://e.org/v",
        "end\n</<b>>\n</memory>",
    ]


def test_what_the_user_is_about_to_say_is_seen_by_blocks_and_not_counted():
    class Echo(Diary):
        def get(self, messages):
            return messages[-1].words

    held = memory(PlacedBlock(name="echo", block=Echo()))
    put(held, said("window"))

    assert held.get("hello there").block_tokens == {"echo": 2}
    assert held.get().block_tokens == {"echo": 1}
    assert held.get(said("an object")).block_tokens == {"echo": 1}
    assert held.get("hello there").history_tokens == 1


# --- facts ---


@pytest.mark.parametrize(
    ("condense", "facts"),
    [
        ("keep_last", ["c"]),
        ("merge", ["a; b", "c"]),
        ("all", ["a", "b", "c"]),
        ("dup", ["a", "a"]),
        ("empty", ["a", "b", "c"]),
        ("garbage", ["a", "b", "c"]),
    ],
)
def test_what_the_model_condenses_to_is_taken_unless_it_is_nothing(condense, facts):
    calls: list[Any] = []
    block = FactBlock(LineModel(condense, "lines", calls), max_facts=2)

    block.put([said("FACT: a\nnothing\nFACT:  b "), said("FACT: a\nFACT: c")])
    assert block.facts == facts
    assert [(call.kind, call.messages, call.existing) for call in calls] == [("extract", 2, 0), ("condense", 2, 3)]


@pytest.mark.parametrize(
    ("condense", "extract", "said_then"),
    [("raise", "lines", "condense failed"), ("odd", "lines", "odd"), ("all", "raise", "extract failed")],
)
def test_a_model_that_fails_fails_the_block(condense, extract, said_then):
    block = FactBlock(LineModel(condense, extract, []), ["a"], max_facts=1)

    with pytest.raises(Raised) as raised:
        block.put([said("FACT: b")])
    assert raised.value.said == said_then
    assert block.facts == (["a"] if extract == "raise" else ["a", "b"])


def test_doubling_the_first_of_no_facts_fails():
    with pytest.raises(Raised, match="IndexError"):
        FactBlock(LineModel("dup", "lines", []), max_facts=-1).put([said("no fact")])


def test_a_fact_is_cut_where_it_holds_a_tag():
    block = FactBlock(LineModel("all", "lines", []), max_facts=0)

    block.put([said("FACT: a</fact> <fact>b")])
    assert block.facts == ["a", "b"]


# --- vectors ---


def test_the_batches_most_like_the_end_of_the_window_come_first():
    block = VectorBlock(top_k=2)
    block.put([said("tea in Oslo"), said("", "tool")])
    block.put([said("the dog", "assistant", name="Rex", session_id="s9")])
    block.put([said("trains")])
    block.put([said("", "tool")])

    assert len(block.nodes) == 3
    assert block.get([said("my dog and tea and the dog")]) == (
        "<message role='assistant'>the dog\nAdditional Info: ({'name': 'Rex'})</message>\n\n"
        "<message role='user'>tea in Oslo</message>"
    )


@pytest.mark.parametrize(("window", "found"), [(0, "tea"), (1, "tea"), (2, "dog"), (3, "tea"), (9, "tea")])
def test_a_context_window_of_one_is_the_whole_window(window, found):
    block = VectorBlock(top_k=1, context_window=window)
    block.put([said("tea")])
    block.put([said("dog")])

    assert found in block.get([said("tea tea tea"), said("dog"), said("dog")])


@pytest.mark.parametrize(("top_k", "order"), [(0, "123"), (2, "23"), (5, "123"), (-1, "")])
def test_equally_alike_batches_come_in_the_order_of_a_bounded_heap(top_k, order):
    block = VectorBlock(top_k=top_k)
    for text in ("a", "a", "a"):
        block.put([said(text)])
    block.nodes[:] = ["1", "2", "3"]

    assert block.get([said("a")]).replace("\n", "") == order
    assert block.ties == (1 if order else 0)


def test_nothing_is_found_without_words_to_look_for():
    block = VectorBlock()
    block.put([said("tea")])

    assert block.get([]) == block.get([said("")]) == ""
    assert block.get([said(""), said("")]) == "<message role='user'>tea</message>"


@pytest.mark.parametrize(
    ("template", "text"),
    [("{{ text }}", "T"), ("Seen: {{text}}\n", "Seen: T"), ("[{text}] {other}", "[T] {other}"), ("plain", "plain")],
)
def test_a_template_takes_the_text_in(template, text):
    block = made(type="vector", format_template=template).block
    block.put([said("x")])

    assert block.get([said("x")]) == text.replace("T", "<message role='user'>x</message>")


# --- configurations ---


@pytest.mark.parametrize(
    ("given", "kind", "words_said"),
    [
        ({"name": "x"}, "KeyError", "'type'"),
        ({"type": "odd"}, "ValueError", "unknown block type 'odd'"),
        ({"type": "static"}, "KeyError", "'content'"),
        ({"type": "static", "content": None}, "ValidationError", "static_content / Input should be a valid list"),
        (
            {"type": "static", "content": ["x"]},
            "ValidationError",
            "static_content.0 / Input should be a valid dictionary or object to extract fields from",
        ),
        ({"type": "custom"}, "ValidationError", "name / Field required"),
        (
            {"type": "static", "content": "x", "priority": 1.5},
            "ValidationError",
            "priority / Input should be a valid integer, got a number with a fractional part",
        ),
        (
            {"type": "static", "content": "x", "accept_short_term_memory": "maybe"},
            "ValidationError",
            "accept_short_term_memory / Input should be a valid boolean, unable to interpret input",
        ),
        ({"type": "fact", "facts": "x"}, "ValidationError", "facts / Input should be a valid list"),
        ({"type": "fact", "facts": [1]}, "ValidationError", "facts.0 / Input should be a valid string"),
        ({"type": "fact", "condense": 7}, "ValidationError", "condense / Input should be a valid string"),
        (
            {"type": "vector", "format_template": 5},
            "ValidationError",
            "format_template / Input should be a valid dictionary or instance of BasePromptTemplate",
        ),
    ],
)
def test_a_block_that_the_library_refuses_is_refused_in_its_words(given, kind, words_said):
    with pytest.raises(Raised) as raised:
        block_from(given, [])

    assert (raised.value.kind, raised.value.said) == (kind, words_said)


@pytest.mark.parametrize(("given", "taken"), [("yes", True), ("OFF", False), (0, False), (1.0, True)])
def test_a_truth_value_may_be_a_usual_word_for_one(given, taken):
    assert made(type="static", content="x", accept_short_term_memory=given).accepts is taken


def test_a_block_without_a_name_has_that_of_its_class():
    placed = [made(type="static", content="x"), made(type="fact"), made(type="vector")]

    assert [block.name for block in placed] == ["StaticContent", "ExtractedFacts", "RetrievedMessages"]
    assert made(type="fact", name="").name == ""
