"""The memory file: `open_store` to look, `Store.write` to change, `create` to begin.

All SQL of the product is in this package and in `schema`.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memcli import clock, schema
from memcli.errors import NoSpace, UsageError
from memcli.facts import Actor, Micros
from memcli.keys import new_key
from memcli.store import file
from memcli.store.basics import checked_scope, write_key
from memcli.store.store import Store
from memcli.terms import DEFAULT_ENCODING, DEFAULT_SCOPE, Admission, Op

__all__ = ["Store", "create", "migrate", "open_for_check", "open_store"]


def open_store(
    path: str | Path,
    *,
    scope: str | None = None,
    bound: str | None = None,
    now: Callable[[], Micros] = clock.now,
) -> Store:
    """Return an existing memory file, opened to look at.

    Args:
        scope: The scope asked for; None is the file's default.
        bound: The scope that this process is bound to, or None.

    Raises:
        NoFile, Damaged, WrongSchema, Busy, NoSpace: It cannot be opened.
        UsageError, OutOfScope: The scope is no name, or not the one this process is bound to.
    """
    place = Path(path)
    file.inspect(place)
    with file.sentences(str(place)):
        conn = file.connect(place, writing=False)
        try:
            return Store(place, conn, scope=scope, bound=bound, now=now)
        except BaseException:
            conn.close()
            raise


def open_for_check(path: str | Path) -> Store:
    """Return a memory file to be checked, also where its tables or triggers were altered.

    Raises:
        NoFile, Damaged, WrongSchema, Busy: It cannot be opened at all.
    """
    place = Path(path)
    file.inspect(place)
    with file.sentences(str(place)):
        conn = file.connect(place, writing=False)
        try:
            schema.check(conn, str(place), altered=True)
            return Store.unborn(place, conn, now=clock.now)
        except BaseException:
            conn.close()
            raise


def create(
    path: str | Path,
    *,
    actor: Actor,
    admission: Admission = Admission.REVIEW,
    scope: str = DEFAULT_SCOPE,
    encoding: str = DEFAULT_ENCODING,
    now: Callable[[], Micros] = clock.now,
) -> None:
    """Make a new memory file. It appears whole or not at all.

    Raises:
        UsageError: Something is at the path already, or the scope is no name.
        NoSpace: The folder is missing, full or not yours.
    """
    place = Path(path)
    wanted = checked_scope(scope)
    if os.path.lexists(place):
        raise UsageError(f"{place} exists already; nothing was changed", hint="name another file with --db")
    draft = place.with_name(f".{place.name}.{os.getpid()}.new")
    try:
        with file.sentences(str(place)):
            _draft(draft, place, actor=actor, settings=(str(admission), wanted, encoding), now=now)
        _publish(draft, place)
    finally:
        for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm"), Path(f"{draft}-journal")):
            with suppress(OSError, ValueError):  # a path that no system takes was never made
                leftover.unlink(missing_ok=True)


def _draft(
    draft: Path, place: Path, *, actor: Actor, settings: tuple[str, str, str], now: Callable[[], Micros]
) -> None:
    from memcli.store.writer import Writer

    conn = file.create(draft, shown=place)
    try:
        audit_key = new_key()
        for purpose, secret in (("audit", audit_key), ("tombstone", new_key())):
            write_key(conn, audit_key, (f"{purpose[0]}{os.urandom(6).hex()}", purpose, secret))
        store = Store.unborn(draft, conn, now=now)
        writer = Writer(store, conn, actor, None)
        for name, value in zip(("admission", "scope", "encoding"), settings, strict=True):
            writer.set_setting(name, value)
        writer.scope_name = settings[1]
        writer.event(Op.INIT, None)
        writer.finish()
        conn.execute("commit")
        file.close(conn, wrote=True)
    except BaseException:
        conn.close()
        raise


def _publish(draft: Path, place: Path) -> None:
    try:
        os.link(draft, place)
    except FileExistsError:
        raise UsageError(f"{place} exists already; nothing was changed", hint="name another file with --db") from None
    except OSError:
        # No hard links on this file system: a rename is the next best thing.
        if os.path.lexists(place):
            raise UsageError(f"{place} exists already; nothing was changed", hint="name another with --db") from None
        try:
            draft.rename(place)
        except OSError as problem:
            raise NoSpace(f"{place} cannot be made: {problem.strerror}", hint="check its folder") from problem


def migrate(path: str | Path, *, actor: Actor, now: Callable[[], Micros] = clock.now) -> tuple[list[str], Path | None]:
    """Bring a file to this mem's schema and return what was applied and where the backup is.

    Raises:
        WrongSchema: The file is newer than this mem.
        Damaged, NoFile, Busy, NoSpace: Nothing was changed.
    """
    from memcli.store.upgrade import upgrade

    place = Path(path)
    file.inspect(place)
    with file.sentences(str(place)):
        return upgrade(place, actor=actor, now=now)
