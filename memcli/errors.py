"""One tree of errors, each with its exit code and the kebab-case code that JSON carries.

Every error is a sentence in the words of the person who meets it, and one thing to try.
"""


class MemError(Exception):
    """A sentence about what happened; `hint` is one thing to try.

    Args:
        message: Lower case, no final stop.
        hint: What to type next, or None.
    """

    code = "bug"
    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MemError):
    """The call's words are off; nothing was looked at."""

    code = "usage"
    exit_code = 2


class Refused(MemError):
    """A rule refused the change; nothing but the refusal was written.

    Args:
        target: The id of what stands in the way, which the log names; None where there is nothing to log.
        offered: The text that was refused; the log keeps its keyed digest only.
    """

    code = "refused"
    exit_code = 3

    def __init__(
        self, message: str, *, hint: str | None = None, target: str | None = None, offered: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.target = target
        self.offered = offered


class Tombstoned(Refused):
    """The value stands under a tombstone."""

    code = "tombstoned"


class OutOfScope(Refused):
    """The process is bound to another scope."""

    code = "out-of-scope"


class Stale(Refused):
    """The caller saw an older version than the current one."""

    code = "stale"


class Conflict(Refused):
    """A rival of higher authority holds the slot."""

    code = "conflict"


class Echo(Refused):
    """A withdrawn value was offered again on the same evidence."""

    code = "echo"


class NotPermitted(Refused):
    """This channel may not do that."""

    code = "not-permitted"


class NoReason(Refused):
    """The change needs a reason and got none, or a blank one."""

    code = "no-reason"


class Loss(Refused):
    """The plan would lose facts that nobody named, or that may never vanish."""

    code = "loss"


class NotAllowed(Refused):
    """The state, or the shape of what was offered, does not allow the change."""

    code = "not-allowed"


class UnknownParent(NotAllowed):
    """What was staged names a parent that is not there."""

    code = "unknown-parent"


class Cycle(NotAllowed):
    """A fact would be built from itself."""

    code = "cycle"


class LeaseOver(NotAllowed):
    """The transaction was open for longer than its lease."""

    code = "lease-over"


class Closed(NotAllowed):
    """The transaction was committed, held or aborted already."""

    code = "closed"


class NotFound(MemError):
    """No such id, or several that begin like it."""

    code = "not-found"
    exit_code = 4


class Ambiguous(NotFound):
    """Several ids begin with what was given."""

    code = "ambiguous"


class Unreadable(MemError):
    """A file could not be read or recognised.

    Args:
        path: The file as it was named.
        line: 1-based, or None where no line can be named.
        why: What is wrong with it.
        tried: The formats that were looked for, in order.
    """

    code = "unreadable"
    exit_code = 5

    def __init__(
        self,
        path: str,
        why: str,
        *,
        line: int | None = None,
        tried: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        place = path if line is None else f"{path} line {line}"
        super().__init__(f"{place}: {why}", hint=hint)
        self.path = path
        self.line = line
        self.why = why
        self.tried = tried


class NoVocabulary(MemError):
    """The vocabulary of an encoding is not at hand; nothing was counted with another instead."""

    code = "no-vocabulary"
    exit_code = 5


class Uncountable(MemError):
    """The tokenizer gave up on a text."""

    code = "uncountable"
    exit_code = 5


class Held(MemError):
    """A person must decide: a dispute among equals, or a change that became a proposal."""

    code = "held"
    exit_code = 6


class NoFile(MemError):
    """There is no memory file at that path."""

    code = "no-file"
    exit_code = 10


class Busy(MemError):
    """Another process holds the file, past the timeout."""

    code = "busy"
    exit_code = 11


class WrongSchema(MemError):
    """The file's schema is newer than this mem, or older and not migrated."""

    code = "wrong-schema"
    exit_code = 12


class Damaged(MemError):
    """The file is not ours, damaged, or was changed behind its back."""

    code = "damaged"
    exit_code = 13


class NoSpace(MemError):
    """The disk is full, or the file or its folder cannot be written."""

    code = "no-space"
    exit_code = 14


class Interrupted(MemError):
    """The person stopped it; what was decided before is kept."""

    code = "interrupted"
    exit_code = 130
