"""The settings of LlamaIndex's `Memory`: what each of its two constructors makes of what it is given.

Both change values without a word. Here every such change is kept as a `Clamp` with its reason.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from memcli.budget.fields import Fields
from memcli.budget.messages import Estimates
from memcli.budget.raised import Raised
from memcli.errors import UsageError
from memcli.record import record

DEFAULT_TOKEN_LIMIT: Final = 30_000
DEFAULT_FLUSH_SIZE: Final = 3_000
DEFAULT_RATIO: Final = 0.7
LARGEST_LIMIT: Final = 2**53
"""Above it a double no longer tells one whole number from the next."""


class InsertMethod(StrEnum):
    """Where the text of the blocks goes: before the first system message, or before the last user message."""

    SYSTEM = "system"
    USER = "user"


class Constructor(StrEnum):
    """How the memory is made: `Memory.from_defaults(...)` or `Memory(...)`; they differ in what they clamp."""

    FROM_DEFAULTS = "from_defaults"
    DIRECT = "direct"


@record
class Clamp:
    """A value that was not taken as it was given. `given` is None where nothing was."""

    setting: str
    given: object
    used: int
    why: str


@record
class Settings:
    """What a memory works with, after every clamp. `token_flush_size` may be 0."""

    token_limit: int
    token_flush_size: int
    chat_history_token_ratio: float
    insert_method: InsertMethod = InsertMethod.SYSTEM
    estimates: Estimates = Estimates()
    clamps: tuple[Clamp, ...] = ()

    @property
    def threshold(self) -> float:
        """Return how many tokens the window may hold: a double, never rounded, perhaps infinite or no number."""
        return threshold_of(self.token_limit, self.chat_history_token_ratio)


def threshold_of(token_limit: int, ratio: float) -> float:
    """Return how many tokens the window may hold under a limit, as LlamaIndex works it out: in doubles."""
    return token_limit * ratio


KNOWN: Final = (
    "token_limit",
    "token_flush_size",
    "chat_history_token_ratio",
    "insert_method",
    "image_token_size_estimate",
    "audio_token_size_estimate",
    "video_token_size_estimate",
    "document_token_size_estimate",
    "session_id",
)
"""The settings that are looked at; the others of LlamaIndex change no count."""


def settings_from(
    given: Mapping[str, Any],
    *,
    blocks: Sequence[str] = (),
    constructor: Constructor = Constructor.FROM_DEFAULTS,
) -> Settings:
    """Return the settings that a constructor makes of what it is given.

    Args:
        given: Of `KNOWN`, only what is to be passed; None is passed as None.
        blocks: The names of the memory blocks.

    Raises:
        Raised: LlamaIndex refuses them.
        UsageError: The token limit is too large to be worked with.
    """
    clamps: list[Clamp] = []
    try:
        values = _with_defaults(given, clamps) if constructor is Constructor.FROM_DEFAULTS else dict(given)
        _validate(values, blocks, clamps)
    except (TypeError, OverflowError) as problem:
        # Values are compared before anybody has looked at their type.
        raise Raised(type(problem).__name__, str(problem)) from problem
    settings = _typed(values, tuple(clamps))
    if settings.token_limit > LARGEST_LIMIT:
        raise UsageError("a token limit above 2^53 cannot be worked with", hint="give a limit that a model could have")
    return settings


def _with_defaults(given: Mapping[str, Any], clamps: list[Clamp]) -> dict[str, Any]:
    """Return what `from_defaults` passes on to the other constructor."""
    if "document_token_size_estimate" in given:
        raise TypeError("Memory.from_defaults() got an unexpected keyword argument 'document_token_size_estimate'")
    values = {"token_limit": DEFAULT_TOKEN_LIMIT, "token_flush_size": DEFAULT_FLUSH_SIZE, **given}
    if not values.get("session_id"):
        values.pop("session_id", None)  # one is made up
    limit, flush = values["token_limit"], values["token_flush_size"]
    if flush > limit:
        values["token_flush_size"] = int(limit * 0.7)
        _clamp(values, clamps, given.get("token_flush_size"), f"{flush} is more than the limit of {limit}", 70)
    return values


def _validate(values: dict[str, Any], blocks: Sequence[str], clamps: list[Clamp]) -> None:
    """Check and clamp what both constructors do, on values as they were given.

    Raises:
        Raised: The limit is not above zero, or two blocks have one name.
    """
    try:
        limit: Any = values.get("token_limit", -1)
        if limit < 1:
            raise ValueError("Token limit must be set and greater than 0.")
        missing = "token_flush_size" not in values
        flush: Any = values.get("token_flush_size", -1)
        if flush < 1 or flush > limit:
            values["token_flush_size"] = int(limit * 0.1)
            why = f"{flush} is less than 1" if flush < 1 else f"{flush} is more than the limit of {limit}"
            why = "no flush size was given" if missing else why
            _clamp(values, clamps, None if missing else flush, why, 10)
        if len(blocks) != len(set(blocks)):
            raise ValueError("All memory blocks must have unique names.")
    except ValueError as problem:
        raise Raised("ValidationError", f"Value error, {problem}") from problem


def _clamp(values: Mapping[str, Any], clamps: list[Clamp], given: object, why: str, percent: int) -> None:
    reason = f"{why}, so {percent} % of the limit is taken, rounded down"
    clamps.append(Clamp(setting="token_flush_size", given=given, used=values["token_flush_size"], why=reason))


def _typed(values: Mapping[str, Any], clamps: tuple[Clamp, ...]) -> Settings:
    """Return the settings with every value as its type.

    Raises:
        Raised: A value does not fit its type.
    """
    fields = Fields()
    settings = Settings(
        token_limit=fields.whole("token_limit", values["token_limit"]),
        token_flush_size=fields.whole("token_flush_size", values["token_flush_size"]),
        chat_history_token_ratio=fields.number(
            "chat_history_token_ratio", values.get("chat_history_token_ratio", DEFAULT_RATIO)
        ),
        insert_method=InsertMethod(
            fields.one_of("insert_method", values.get("insert_method", "system"), ("system", "user"))
        ),
        estimates=Estimates(
            image=fields.whole("image_token_size_estimate", values.get("image_token_size_estimate", 256)),
            audio=fields.whole("audio_token_size_estimate", values.get("audio_token_size_estimate", 256)),
            video=fields.whole("video_token_size_estimate", values.get("video_token_size_estimate", 256)),
            document=fields.whole("document_token_size_estimate", values.get("document_token_size_estimate", 2048)),
        ),
        clamps=clamps,
    )
    fields.text("session_id", values.get("session_id", ""))
    fields.check()
    return settings
