"""What every opening reads first: the keys, settings and scopes of a file, each checked against its seal."""

import re
import sqlite3
from pathlib import Path

from memcli.errors import Damaged, UsageError
from memcli.keys import TombstoneKey
from memcli.store.rows import behind_our_back
from memcli.store.seals import seal
from memcli.terms import Admission

_WILDCARDS = re.compile(r"[*?%\x00-\x1f\ud800-\udfff]")
_SECRET_BYTES = 32

ROLL = "roll"
"""The setting that says which event is the newest, and how many rows there are of which no event speaks."""

NEEDED = ("admission", "scope", "encoding", ROLL)
"""The settings that every file has."""


def checked_scope(name: str) -> str:
    """Return the name of a scope, stripped.

    Raises:
        UsageError: It is empty, holds a wildcard or a control character, or is over 200 characters long.
    """
    stripped = name.strip()
    if not stripped:
        raise UsageError("an empty scope names nothing", hint="give a name such as user/anna, or leave --scope out")
    if _WILDCARDS.search(stripped) or len(stripped) > 200:
        raise UsageError(
            "a scope is one plain name of up to 200 characters, without * ? % or control characters",
            hint="list the scopes of the file with `mem scope list`",
        )
    return stripped


def write_key(conn: sqlite3.Connection, audit_key: bytes, key: tuple[str, str, bytes]) -> None:
    """Write a key of the file: its id, its purpose and its secret, sealed with the audit key."""
    conn.execute("insert into keys values (?, ?, ?, ?)", (*key, seal(audit_key, "key", key)))


def read_keys(conn: sqlite3.Connection, path: Path) -> tuple[bytes, TombstoneKey]:
    """Return the audit key and the file's own tombstone key.

    Raises:
        Damaged: One is gone or was changed behind the file's back.
    """
    found = conn.execute("select id, purpose, secret, seal from keys order by rowid").fetchall()
    own: dict[str, tuple[str, bytes]] = {}
    for name, purpose, secret, _ in found:
        own.setdefault(purpose, (name, secret))
    if set(own) != {"audit", "tombstone"}:
        raise Damaged(f"{path} has lost its keys", hint="restore it from a backup")
    audit = own["audit"][1]
    for name, purpose, secret, its_seal in found:
        whole = all(isinstance(key, bytes) and len(key) == _SECRET_BYTES for key in (audit, secret))
        if not whole or seal(audit, "key", (name, purpose, secret)) != its_seal:
            raise behind_our_back(f"the {purpose} key")
    return audit, TombstoneKey(id=own["tombstone"][0], secret=own["tombstone"][1])


def write_setting(conn: sqlite3.Connection, key: bytes, setting: tuple[str, str]) -> None:
    """Write a setting of the file, name and value, with its seal."""
    conn.execute(
        "insert into settings values (?, ?, ?) on conflict do update set value = excluded.value, seal = excluded.seal",
        (*setting, seal(key, "setting", setting)),
    )


def read_settings(conn: sqlite3.Connection, key: bytes) -> dict[str, str]:
    """Return the settings of the file.

    Raises:
        Damaged: One was changed behind the file's back.
    """
    settings: dict[str, str] = {}
    for name, value, its_seal in conn.execute("select name, value, seal from settings"):
        if seal(key, "setting", (name, value)) != its_seal:
            raise behind_our_back(f"the setting {name}")
        settings[name] = value
    return settings


def check_settings(settings: dict[str, str], path: Path) -> None:
    """Say nothing where the settings that every file has are there.

    Raises:
        Damaged: One is gone, or says what no file can say.
    """
    if not set(NEEDED) <= set(settings) or settings["admission"] not in set(Admission):
        raise Damaged(f"{path} has lost its settings", hint="restore it from a backup")


def read_scopes(conn: sqlite3.Connection, key: bytes) -> tuple[dict[int, str], dict[int, int]]:
    """Return the names of the scopes by row number, and which of them were merged into which.

    Raises:
        Damaged: One was changed behind the file's back.
    """
    names: dict[int, str] = {}
    merged: dict[int, int] = {}
    for number, name, into, its_seal in conn.execute("select id, name, merged_into, seal from scopes"):
        if seal(key, "scope", (number, name, into)) != its_seal:
            raise behind_our_back(f"scope {name}")
        names[number] = name
        if into is not None:
            merged[number] = into
    return names, merged
