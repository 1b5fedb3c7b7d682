"""An external command that answers a question with what a memory gives it: JSON in, JSON out."""

from memcli import wire
from memcli.command import converse
from memcli.errors import Unreadable
from memcli.facts import Json

PROTOCOL = 1
"""The version of the JSON that an answerer reads and prints."""


class Answerer:
    """An external command that is asked each question; the same one again gets the answer it had.

    So two memories that give the same block are answered the same, and what they lead to can be compared.

    Args:
        timeout_s: Seconds until the command and all it started are ended.
    """

    def __init__(self, command: str, *, timeout_s: float) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._known: dict[str, str] = {}

    def answer(self, case: str, query: str, context: str) -> str:
        """Return the answer to a question.

        The command reads `{"version": 1, "id", "query", "context"}` on standard input and prints `{"answer": TEXT}`.

        Args:
            case: The id of the case.
            context: The block; empty where there is no memory.

        Raises:
            UsageError: The command line is empty or has an open quote.
            Unreadable: The command failed, took too long, or printed something else than an answer.
        """
        request: Json = {"version": PROTOCOL, "id": case, "query": query, "context": context}
        key = wire.dumps(request)
        if key not in self._known:
            self._known[key] = self._answer(case, converse(self._command, request, timeout_s=self._timeout_s))
        return self._known[key]

    def _answer(self, case: str, said: Json) -> str:
        answer = said.get("answer") if isinstance(said, dict) else None
        if not isinstance(answer, str):
            raise Unreadable(self._command, f"it gave no answer to case {case}", hint='let it print {"answer": "…"}')
        return answer
