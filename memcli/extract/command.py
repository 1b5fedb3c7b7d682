"""Claims from an external command, which reads JSON and prints JSON. All of its answer is taken, or none."""

from collections.abc import Mapping, Sequence

from memcli import wire
from memcli.command import converse
from memcli.errors import MemError, Unreadable, UsageError
from memcli.facts import Claim, Fact, Json, Message
from memcli.text import check_typed

PROTOCOL = 1
"""The version of the JSON that an external command reads and prints."""

EXTRACTOR_RULE = "extractor"
"""The rule of every claim that comes from an external command."""

_READ_KEYS = (
    "text", "subject", "attribute", "value", "kind",
    "confidence", "importance", "valid_from", "valid_to", "derived_from",
)  # fmt: skip


def run_extractor(command: str, messages: Sequence[Message], known: Sequence[Fact], *, timeout_s: float) -> list[Claim]:
    """Return what an external command reads in the messages; all of its answer is taken, or none.

    The command line is split like a shell does and run without one. It reads one JSON object on standard input,
    `{"version": 1, "messages": [{"id", "index", "role", "content", "at"}…], "facts": [{"id", "text", "subject",
    "attribute", "value"}…]}`, and prints `{"facts": […]}` or the bare list. Each fact has "text" and "message" (the id
    of a message it was given), and may have "quote", "subject", "attribute", "value", "kind", "confidence",
    "importance", "valid_from", "valid_to" and "derived_from" (ids of facts it was given). Other keys change nothing:
    who acted, and what is believed, is not for the command to say. A quote that does not stand in its message is kept
    and left for the file to mark as unverified.

    Args:
        timeout_s: Seconds until the command and all it started are ended.

    Raises:
        UsageError: The command line is empty or has an open quote.
        Unreadable: The command failed, took too long, printed too much, or printed something else.
    """
    readable = [m for m in messages if m.erased_at is None]
    request: dict[str, Json] = {
        "version": PROTOCOL,
        "messages": [message_document(m) for m in readable],
        "facts": [fact_document(f) for f in known],
    }
    return claims_of(command, converse(command, request, timeout_s=timeout_s), readable, known, rule=EXTRACTOR_RULE)


def claims_of(who: str, answer: Json, messages: Sequence[Message], known: Sequence[Fact], *, rule: str) -> list[Claim]:
    """Return the claims that an answer makes about messages, all of them or none.

    Args:
        who: Who answers, for a sentence about what is wrong.
        rule: The rule that the claims carry.

    Raises:
        Unreadable: It is not of the form that was asked for, or names a message or fact that was not given.
    """
    contents = {m.id: m.content for m in messages}
    ids = frozenset(f.id for f in known)
    claims = []
    for number, item in enumerate(_answer(who, answer), start=1):
        try:
            claims.append(_offered(item, contents, ids, rule))
        except MemError as error:
            raise Unreadable(who, f"fact {number} of its answer: {error.message}", hint=error.hint) from None
    return claims


def fact_document(f: Fact) -> Json:
    """Return what an extractor is told of a fact that is known."""
    return {"id": f.id, "text": f.text, "subject": f.subject, "attribute": f.attribute, "value": wire.scalar(f.value)}


def message_document(m: Message) -> Json:
    """Return what an extractor is told of a message."""
    whole = wire.message(m)
    return {key: whole[key] for key in ("id", "index", "role", "content", "at")}


def _answer(command: str, answer: Json) -> Sequence[Json]:
    if isinstance(answer, dict):
        spoken = answer.get("version", PROTOCOL)
        if spoken != PROTOCOL or isinstance(spoken, bool):
            raise Unreadable(command, f"its answer is not in version {PROTOCOL}", hint='let it print "version": 1')
        answer = answer.get("facts")
    if not isinstance(answer, list):
        raise Unreadable(command, "its answer holds no list of facts", hint='let it print {"facts": [...]}')
    return answer


def _offered(item: Json, contents: Mapping[str, str], known: frozenset[str], rule: str) -> Claim:
    """Return the claim that one item of an answer makes.

    Raises:
        UsageError: A key is missing or holds something else than it should, or an id is of nothing it was given.
        NotAllowed: The interval ends before it begins.
    """
    if not isinstance(item, dict):
        return wire.claim_from(item)
    message, quote = item.get("message"), item.get("quote")
    if not isinstance(message, str):
        raise UsageError("it names no message", hint='put the id of a message it was given in "message"')
    if message not in contents:
        raise UsageError(f"there is no message {message}", hint="use the ids of the messages it was given")
    read: dict[str, Json] = {key: item[key] for key in _READ_KEYS if key in item}
    claim = wire.claim_from({**read, "evidence": [{"message": message, "quote": quote}], "rule": rule})
    for parent in claim.derived_from:
        if parent not in known:
            raise UsageError(f"there is no fact {parent}", hint="use the ids of the facts it was given")
    _check_texts(claim, contents[message])
    return claim


def _check_texts(claim: Claim, content: str) -> None:
    quote = claim.evidence[0].quote
    if quote is not None and not quote.strip():
        raise UsageError("quote is blank", hint="quote the words of the message, or leave quote out")
    named = {"text": claim.text, "subject": claim.subject, "attribute": claim.attribute, "value": claim.value}
    if quote is not None and quote not in content:
        named["quote"] = quote  # one that stands in the message may hold whatever the message holds
    for what, text in named.items():
        if isinstance(text, str):
            check_typed(text, what=what)
