"""How many tokens a text has. tiktoken counts; this is the only module that imports it, at the first count.

The vocabularies of `cl100k_base` and `o200k_base` ship with mem, because tiktoken fetches its own over the network.
Patterns and special tokens are asked of tiktoken itself: its constructors run in a private copy of their module
whose loader reads the shipped files, so nothing that tiktoken shares with other code is changed.

Counting is what `tiktoken.Encoding.encode(text, disallowed_special=())` gives, with one rule of our own. tiktoken
gives up on about a million consecutive white-space characters, so a text of 400,000 characters or more is looked at
in blocks of 200,000 from its start, and a block that is nothing but white space is counted by itself, as is
what stands between such blocks. Every other text is counted in one piece.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from memcli.errors import NoVocabulary, Uncountable
from memcli.terms import DEFAULT_ENCODING

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODINGS: tuple[str, ...] = ("o200k_base", "cl100k_base", "o200k_harmony", "words", "chars")
"""What counts without any other file; `o200k_harmony` has the vocabulary of `o200k_base`."""

CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"
"""The folder in which tiktoken keeps what it fetched; files of other encodings are taken from there."""

BLOCK_CHARS = 200_000
"""A run of white space that is not cut is shorter than two blocks; tiktoken gives up at about five."""

_BATCH_CHARS = 100_000
_MAX_THREADS = 4

_SEPARATOR = "\ufdd0"
"""A noncharacter, which no text should hold, set between the texts of a batch as a special token of our own."""

_SEPARATOR_ID = 2**31 - 1
"""Far above every rank."""

_TOKEN_END = b"\xff"
"""A byte that no token of two or more bytes holds, since it never occurs in UTF-8."""

_DATA = Path(__file__).parent / "data"


_PACKED: Mapping[str, tuple[str, str]] = {
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": (
        "cl100k_base.zlib",
        "3d8e9b04ceb8c6ab0cb68717d201b15fc87478b50b65ba5165d4c717d4a0dfa8",
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": (
        "o200k_base.zlib",
        "44e76322c99dfb3f8e0616c58d7e1875a323b0d8c0ba19d6c1e02794d17f6464",
    ),
}
"""The shipped files, each with its SHA-256: the 256 one-byte tokens, then the others, each but the last with
`_TOKEN_END`, deflated. The key is the SHA-256 that OpenAI publishes for the `.tiktoken` text, so that a vocabulary
that tiktoken changes is never mistaken for the shipped one."""


_CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+"
)
"""What o200k_base takes for a word, a number, signs or the end of a line; white space comes behind it."""

_FASTER: Mapping[str, str] = {
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s"
    ): (
        r"(?:'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n])"
        r"|\s+(?!\S)|\s"
    ),
    rf"{_CASED}|\s+(?!\S)|\s+": rf"(?:{_CASED})|\s+(?!\S)|\s+",
}
"""How tiktoken cuts a text into words, and a way of writing the same that takes half the time.

All that can be matched without looking back or ahead stands in one group here, which the regular expressions of Rust
match in one go; a possessive repetition is looking back. It is not needed where a shorter run could not match either:
what follows each run is outside of the run's own class, or nothing. A pattern that is not here is taken as it is.
"""


class Counter:
    """Call it with a text for the number of its tokens.

    A surrogate without its other half counts as U+FFFD. This and `Vocabulary` are plain classes because importing
    dataclasses would take a tenth of the time to the first count.

    Args:
        count: What does the counting.
        heavy: A vocabulary is loaded at the first count, which takes about a fifth of a second.
        special: Special tokens that stand in the text count as one each, as LlamaIndex counts them; otherwise
            they are text like any other.
    """

    __slots__ = ("_count", "heavy", "name", "special")

    def __init__(self, name: str, count: Callable[[str], int], *, heavy: bool = False, special: bool = False) -> None:
        self.name = name
        self.heavy = heavy
        self.special = special
        self._count = count

    def __call__(self, text: str) -> int:
        """Return the number of tokens.

        Raises:
            NoVocabulary: The shipped vocabulary is damaged.
            Uncountable: tiktoken gives up on the text.
        """
        return self._count(text)

    def __repr__(self) -> str:
        return f"Counter({self.name!r}, heavy={self.heavy}, special={self.special})"


def counter(name: str = DEFAULT_ENCODING, *, special: bool = False) -> Counter:
    """Return what counts in that encoding: one of `ENCODINGS`, or one whose file is in `TIKTOKEN_CACHE_DIR`.

    Raises:
        NoVocabulary: The encoding is unknown, or its vocabulary is not at hand.
    """
    if name == "words":
        return Counter(name, _count_words)
    if name == "chars":
        return Counter(name, len)
    if name not in ENCODINGS:
        load_vocabulary(name)
    return Counter(name, partial(_count_tokens, name, special), heavy=True, special=special)


def counter_for_model(model: str, *, special: bool = False) -> Counter:
    """Return what counts as that model does, such as `gpt-4o`.

    Raises:
        NoVocabulary: tiktoken knows no such model, or the vocabulary of its encoding is not at hand.
    """
    from tiktoken import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
    except KeyError as problem:
        raise NoVocabulary(
            f"tiktoken knows no model called {model}", hint=f"name an encoding, such as {DEFAULT_ENCODING}"
        ) from problem
    return counter(name, special=special)


def try_counter(name: str) -> Counter | None:
    """Return what counts in that encoding, or None where its vocabulary is not at hand.

    Nothing is loaded for a shipped one: that its file is whole shows at the first count.
    """
    try:
        return counter(name)
    except NoVocabulary:
        return None


def count_many(texts: Sequence[str], counter: Counter) -> list[int]:
    """Return the tokens of each text, exactly as `counter` gives them one by one, in less time.

    Raises:
        NoVocabulary: The shipped vocabulary is damaged.
        Uncountable: tiktoken gives up on one of the texts.
    """
    if not counter.heavy:
        return [counter(text) for text in texts]
    batches = list(_batches(texts))
    threads = min(_MAX_THREADS, os.cpu_count() or 1, len(batches))
    if threads < 2:
        return [tokens for batch in batches for tokens in _count_batch(batch, counter)]
    load_vocabulary(counter.name)  # once, before several threads ask for it
    from concurrent.futures import ThreadPoolExecutor

    # tiktoken lets other threads run while it encodes.
    with ThreadPoolExecutor(threads) as pool:
        counted = pool.map(partial(_count_batch, counter=counter), batches)
        return [tokens for batch in counted for tokens in batch]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order, as many at a time as fit in a batch, each with its separator; a longer one alone."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and chars + len(text) >= _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text) + 1
    if batch:
        yield batch


def _count_batch(texts: list[str], counter: Counter) -> list[int]:
    """Return the tokens of each text, from one call where the separator parts the texts and nothing else.

    tiktoken encodes what stands between two special tokens as a text of its own. The separator is one character,
    so it cannot overlap itself, and it is in no special token.
    """
    joined = _SEPARATOR.join(texts)
    if len(texts) == 1 or joined.count(_SEPARATOR) != len(texts) - 1:
        return [counter(text) for text in texts]
    vocabulary = load_vocabulary(counter.name)
    allowed = vocabulary.special if counter.special else _NO_SPECIAL
    tokens = vocabulary.encode(joined, allowed | {_SEPARATOR})
    counts = []
    start = 0
    for _ in range(len(texts) - 1):
        end = tokens.index(_SEPARATOR_ID, start)
        counts.append(end - start)
        start = end + 1
    counts.append(len(tokens) - start)
    return counts


def _count_words(text: str) -> int:
    return len(text.split())


def _count_tokens(name: str, special: bool, text: str) -> int:
    vocabulary = load_vocabulary(name)
    allowed = vocabulary.special if special else _NO_SPECIAL
    if len(text) < 2 * BLOCK_CHARS:
        return len(vocabulary.encode(text, allowed))
    return sum(len(vocabulary.encode(piece, allowed)) for piece in pieces(text))


def pieces(text: str) -> Iterator[str]:
    """Yield the text cut around every block that is nothing but white space; together they are the text."""
    start = 0
    for block in range(0, len(text) - BLOCK_CHARS + 1, BLOCK_CHARS):
        if text[block : block + BLOCK_CHARS].isspace():
            if start < block:
                yield text[start:block]
            start = block + BLOCK_CHARS
            yield text[block:start]
    if start < len(text):
        yield text[start:]


_NO_SPECIAL: frozenset[str] = frozenset()


class Vocabulary:
    """A loaded encoding: tiktoken's own with the separator added, and its special tokens without it."""

    __slots__ = ("encoding", "special")

    def __init__(self, encoding: "Encoding", special: frozenset[str]) -> None:
        self.encoding = encoding
        self.special = special

    def encode(self, text: str, allowed: frozenset[str]) -> list[int]:
        """Return the tokens of the text.

        Raises:
            Uncountable: tiktoken gives up.
        """
        try:
            return self.encoding.encode(text, allowed_special=allowed, disallowed_special=())
        except BaseException as problem:
            # A panic in Rust arrives as a class that cannot be imported and is no Exception.
            if isinstance(problem, ValueError) or type(problem).__name__ == "PanicException":
                raise Uncountable(
                    f"the tokenizer gave up on a text of {len(text):,} characters",
                    hint="count with --encoding words or chars, or cut the text",
                ) from problem
            raise


@cache
def load_vocabulary(name: str) -> Vocabulary:
    """Return the loaded encoding; a second call costs nothing.

    Raises:
        NoVocabulary: The encoding is unknown, or its vocabulary is not at hand.
    """
    import tiktoken

    load = private_copy("tiktoken.load", read_file_cached=partial(_read_cached, name))

    def ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        packed = _PACKED.get(expected_hash or "")
        if packed is not None:
            return _unpack(*packed)
        found: dict[bytes, int] = load.load_tiktoken_bpe(url, expected_hash)
        return found

    public = private_copy(
        "tiktoken_ext.openai_public",
        load_tiktoken_bpe=ranks,
        data_gym_to_mergeable_bpe_ranks=load.data_gym_to_mergeable_bpe_ranks,
    )
    constructor = public.ENCODING_CONSTRUCTORS.get(name)
    if constructor is None:
        others = sorted(set(public.ENCODING_CONSTRUCTORS) - set(ENCODINGS))
        raise NoVocabulary(
            f"no encoding is called {name}",
            hint=f"choose {', '.join(ENCODINGS)}, or with {CACHE_VARIABLE} set {', '.join(others)}",
        )
    arguments = constructor()
    special: dict[str, int] = arguments["special_tokens"]
    arguments["special_tokens"] = {**special, _SEPARATOR: _SEPARATOR_ID}
    arguments["pat_str"] = faster(arguments["pat_str"])
    arguments.pop("explicit_n_vocab", None)  # counts the special tokens, and there is one more now
    return Vocabulary(tiktoken.Encoding(**arguments), frozenset(special))


def faster(pattern: str) -> str:
    """Return what cuts every text exactly as this pattern of tiktoken's does, in less time where that is known."""
    return _FASTER.get(pattern, pattern)


def private_copy(name: str, **replaced: object) -> ModuleType:
    """Return a module run afresh with some of its names replaced; the one that others import stays as it is.

    Raises:
        NoVocabulary: The module no longer has one of the names, so that replacing it would change nothing.
    """
    from importlib.util import find_spec, module_from_spec

    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise NoVocabulary(f"the installed tiktoken has no module {name}", hint="install tiktoken 0.14")
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    missing = sorted(replaced.keys() - vars(copy).keys())
    if missing:
        raise NoVocabulary(f"the installed tiktoken has no {missing[0]} in {name}", hint="install tiktoken 0.14")
    vars(copy).update(replaced)
    return copy


def _unpack(file: str, sha256: str) -> dict[bytes, int]:
    """Return the rank of each token of a shipped vocabulary.

    Raises:
        NoVocabulary: The file is missing, or not the one that was shipped.
    """
    import hashlib
    import zlib

    try:
        data = (_DATA / file).read_bytes()
    except OSError as problem:
        _refuse_shipped(f"the vocabulary file {file} cannot be read", problem)
    if hashlib.sha256(data).hexdigest() != sha256:
        _refuse_shipped(f"the vocabulary file {file} is not the one that was shipped with mem")
    unpacked = zlib.decompress(data)
    tokens = [unpacked[byte : byte + 1] for byte in range(256)]
    tokens += unpacked[256:].split(_TOKEN_END)
    return dict(zip(tokens, range(len(tokens)), strict=True))


def _refuse_shipped(message: str, cause: OSError | None = None) -> NoReturn:
    raise NoVocabulary(message, hint="install mem again") from cause


def _read_cached(name: str, url: str, expected_hash: str | None = None) -> bytes:
    """Return a file that tiktoken once fetched, without ever fetching or removing one.

    Raises:
        NoVocabulary: There is no such file, or it is another one than was published.
    """
    import hashlib

    # tiktoken names the file so.
    key = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    folder = os.environ.get(CACHE_VARIABLE, "")
    hint = f"choose {', '.join(ENCODINGS)}, or set {CACHE_VARIABLE} to a folder that holds {url} under the name {key}"
    if not folder:
        raise NoVocabulary(
            f"the vocabulary of {name} does not ship with mem, and {CACHE_VARIABLE} is not set", hint=hint
        )
    path = Path(folder) / key
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as problem:
        raise NoVocabulary(
            f"the vocabulary of {name} does not ship with mem, and {path} cannot be read", hint=hint
        ) from problem
    if hashlib.sha256(data).hexdigest() != expected_hash:
        raise NoVocabulary(f"{path} is not the vocabulary of {name} that was published", hint=hint)
    return data
