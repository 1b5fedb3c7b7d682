"""The one error of this folder that carries an error of somebody else: what LlamaIndex would raise."""

from memcli.errors import UsageError


class Raised(UsageError):
    """LlamaIndex raises at this place; kept as data where a simulation goes on after it.

    Args:
        kind: The name of its exception, such as `ValidationError`.
        said: What it says, in one line; for several fields `field / words / field / words`.
    """

    code = "budget-raises"

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(f"LlamaIndex raises {kind} here: {said}", hint="change the setting or message it names")
        self.kind = kind
        self.said = said


def first_line(problem: BaseException) -> str:
    """Return the first line with words in what an exception says, or nothing."""
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), "")
