"""`mem`: look into, correct, review and prove what an agent remembers, in one SQLite file.

`import memcli` loads nothing else; each name below loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memcli.api import (
        LiveTransaction,
        Recovered,
        TransactionAborted,
        TransactionHeld,
        agent,
        create,
        open_store,
        recover,
        transaction,
    )
    from memcli.errors import (
        Ambiguous,
        Busy,
        Closed,
        Conflict,
        Cycle,
        Damaged,
        Echo,
        Held,
        LeaseOver,
        MemError,
        NoFile,
        NoReason,
        NoSpace,
        NotAllowed,
        NotFound,
        NotPermitted,
        OutOfScope,
        Refused,
        Stale,
        Tombstoned,
        UnknownParent,
        UsageError,
        WrongSchema,
    )
    from memcli.facts import (
        Actor,
        AuditEvent,
        Claim,
        EventQuery,
        Evidence,
        Fact,
        FactQuery,
        Provenance,
        Validity,
        Written,
    )
    from memcli.store.store import Store
    from memcli.terms import Admission, Code, Isolation, Kind, SourceKind, State, Tier, TxStatus, Visibility
    from memcli.tx import Action, Check, Effect, GateAnswer, Receipt, Transaction, Verdict

__version__ = "0.1.0"

__all__ = [
    "Action",
    "Actor",
    "Admission",
    "Ambiguous",
    "AuditEvent",
    "Busy",
    "Check",
    "Claim",
    "Closed",
    "Code",
    "Conflict",
    "Cycle",
    "Damaged",
    "Echo",
    "Effect",
    "EventQuery",
    "Evidence",
    "Fact",
    "FactQuery",
    "GateAnswer",
    "Held",
    "Isolation",
    "Kind",
    "LeaseOver",
    "LiveTransaction",
    "MemError",
    "NoFile",
    "NoReason",
    "NoSpace",
    "NotAllowed",
    "NotFound",
    "NotPermitted",
    "OutOfScope",
    "Provenance",
    "Receipt",
    "Recovered",
    "Refused",
    "SourceKind",
    "Stale",
    "State",
    "Store",
    "Tier",
    "Tombstoned",
    "Transaction",
    "TransactionAborted",
    "TransactionHeld",
    "TxStatus",
    "UnknownParent",
    "UsageError",
    "Validity",
    "Verdict",
    "Visibility",
    "Written",
    "WrongSchema",
    "__version__",
    "agent",
    "create",
    "open_store",
    "recover",
    "transaction",
]

_PLACES = {
    "api": "LiveTransaction Recovered TransactionAborted TransactionHeld agent create open_store recover transaction",
    "errors": "Ambiguous Busy Closed Conflict Cycle Damaged Echo Held LeaseOver MemError NoFile NoReason NoSpace"
    " NotAllowed NotFound NotPermitted OutOfScope Refused Stale Tombstoned UnknownParent UsageError WrongSchema",
    "facts": "Actor AuditEvent Claim EventQuery Evidence Fact FactQuery Provenance Validity Written",
    "store.store": "Store",
    "terms": "Admission Code Isolation Kind SourceKind State Tier TxStatus Visibility",
    "tx": "Action Check Effect GateAnswer Receipt Transaction Verdict",
}
"""Where each name lives. Lists of words and no mapping by name: every start of `mem` reads this file."""


def __getattr__(name: str) -> object:
    place = next((place for place, names in _PLACES.items() if name in names.split()), None)
    if place is None:
        raise AttributeError(f"module 'memcli' has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"memcli.{place}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
