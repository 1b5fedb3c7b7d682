"""Programs that confirm a fact: named in the file's policy, given JSON, and believed only as far as they answer."""

from typing import TYPE_CHECKING

from memcli import wire
from memcli.command import converse
from memcli.errors import NotPermitted, Unreadable
from memcli.facts import Actor, Fact, Json
from memcli.terms import ActorKind, Channel

if TYPE_CHECKING:
    from memcli.store.store import Store


def consult(store: "Store", fact: Fact, name: str, *, timeout_s: float) -> Actor:
    """Return the oracle as the actor that may verify, after it confirmed the fact.

    It gets `{"fact": …, "evidence": […]}` on standard input and answers `{"verdict": "pass"}`; any other verdict, with
    its `reason`, refuses. It runs outside every lock.

    Raises:
        NotPermitted: The policy names no such oracle, or it did not pass the fact.
        Unreadable: It could not be run, took too long, or its answer is no verdict.
    """
    command = next(
        (rule.value for rule in store.policy() if rule.kind == "oracle" and name in (rule.name, rule.value)), None
    )
    if command is None:
        raise NotPermitted(
            f"the policy of this file names no oracle {name}",
            hint="see `mem policy show`; a person adds one with `mem policy set oracle NAME CMD`",
            target=fact.id,
        )
    request: Json = {
        "version": 1,
        "fact": wire.fact(fact),
        "evidence": [wire.excerpt(shown) for shown in store.excerpts(fact)],
    }
    verdict, reason = _verdict(command, converse(command, request, timeout_s=timeout_s))
    if verdict != "pass":
        raise NotPermitted(
            f"the oracle {name} answers {verdict}: {reason}", hint="look at it with `mem why`", target=fact.id
        )
    return Actor(name=name, kind=ActorKind.ORACLE, channel=Channel.ORACLE)


def _verdict(command: str, answer: Json) -> tuple[str, str]:
    verdict = answer.get("verdict") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or verdict not in ("pass", "hold", "refuse"):
        raise Unreadable(
            command, "its answer holds no verdict", hint='an oracle prints {"verdict": "pass"}, hold or refuse'
        )
    reason = answer.get("reason")
    return str(verdict), str(reason) if reason is not None else "no reason given"
