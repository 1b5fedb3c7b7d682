"""An export in mem's own format, taken back whole: checked to the last line first, then written as it was.

Nothing is decided anew here, so it is for a person at a terminal and for a file that holds nothing yet. Every other
import of such a file goes through the writer like any foreign store.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any, NoReturn

from memcli.clock import SECOND
from memcli.digest import blake2b
from memcli.errors import MemError, OutOfScope, Unreadable
from memcli.exchange.mem_records import BELOW, Row, Wrong, header, no_twice, row
from memcli.exchange.raw import RECORD_BYTES, opened
from memcli.facts import Actor, Micros, Restored, Validity
from memcli.keys import NORMALISER, TombstoneKey, check_regex, slot_digest
from memcli.terms import FINAL, MOVES, READABLE, Match, State
from memcli.text import unpack

if TYPE_CHECKING:
    from memcli.store.store import Store

_HINT = "export it again; an export that was cut or edited is not restored"
_LATEST: Micros = 253_370_764_800 * SECOND
"""9999-01-01: a file whose newest row is later has no time left for changes."""

_ORDER = ("key", "tombstone", "source", "fact", "end")
_DEAD = FINAL - {State.SUPERSEDED}


def restore_file(store: "Store", actor: Actor, reason: str | None, path: str) -> Restored:
    """Write what an export holds into an empty memory file as it was there, and return how much that is.

    Ids, states, versions, times, actors and tombstones are as they were; each row has an event of its own in the log,
    which begins anew, and transaction time goes on behind the latest restored one.

    Args:
        path: `-` is standard input.

    Raises:
        Unreadable: It is no export of mem, or one that was cut or edited; the line is named, and nothing was written.
        NotPermitted: This is no person at a terminal.
        NotAllowed: The memory file holds something already.
        OutOfScope: The export is of another scope than the one that is open.
    """
    # The export is closed, and known to be the same as when it was opened, before anything is committed.
    with store.write(actor, reason) as write, opened(path) as raw:
        write.may_restore()
        seen = _checked(path, raw.handle)
        _check_scope(store, seen.scope)
        # It is read again and not kept, since it may be larger than memory.
        write.restore(
            keys=tuple(seen.keys.items()),
            found=_rows(path, raw.handle),
            facts={name: number for number, name in enumerate(seen.facts, start=1)},
            latest=seen.latest,
            digest=seen.digest,
        )
    return Restored(path=path, scope=seen.scope, **{f"{kind}s": seen.counts.get(kind, 0) for kind in _COUNTED})


_COUNTED = ("tombstone", "source", "message", "fact", "version")


def _check_scope(store: "Store", scope: str | None) -> None:
    if scope is None and store.bound is not None:
        raise OutOfScope(f"this process is bound to {store.bound} and may not see all scopes", hint="unset MEM_SCOPE")
    if scope is not None and unpack(scope) != store.scope:
        raise OutOfScope(
            f"the export is of {unpack(scope)}, and {store.scope} is open",
            hint=f"make the file with `mem init --scope {unpack(scope)}`, or restore with that --scope",
        )


# -------------------------------------------------------------------- lines


def _lines(path: str, handle: IO[bytes]) -> Iterator[tuple[int, bytes, Any]]:
    """Yield the number, the bytes and the JSON value of every line.

    Raises:
        Unreadable: One is no line of JSON in ASCII.
    """
    handle.seek(0)
    number = 0
    decode = json.JSONDecoder(object_pairs_hook=no_twice, parse_constant=_no_number).decode
    while data := handle.readline(RECORD_BYTES + 1):
        number += 1
        try:
            value = decode(data.decode("ascii"))
        except UnicodeDecodeError:
            _refuse(path, number, "it holds what is not ASCII, which mem never writes")
        except RecursionError:
            _refuse(path, number, "it is nested too deeply")
        except MemError as problem:
            _refuse(path, number, problem.message)
        except ValueError as problem:
            why = str(getattr(problem, "msg", problem))
            _refuse(path, number, f"it is no JSON: {why[:1].lower()}{why[1:]}")
        if not data.endswith(b"\n"):
            _refuse(path, number, "the last line is cut")
        yield number, data, value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"there is no number {name}")


def _refuse(path: str, line: int | None, why: str) -> NoReturn:
    raise Unreadable(path, why, line=line, tried=("mem",), hint=_HINT)


def _rows(path: str, handle: IO[bytes]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file that was checked."""
    for number, _, value in _lines(path, handle):
        if number > 1:
            kind, found = row(value)
            if kind not in ("key", "end"):
                yield kind, found


# -------------------------------------------------------------------- the whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """What the rest of the export must fit to: a revision of the fact above."""

    line: int
    version: int
    revision: int
    state: State
    recorded_at: Micros
    retired_at: Micros | None
    value: str | None
    valid: Validity


@dataclass(slots=True, kw_only=True)
class Draft:
    """What has been seen of an export, as far as later lines, or the whole, must fit to it."""

    path: str
    scope: str | None = None
    keys: dict[str, bytes] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    tombstone: int = 0
    source: int = 0
    sources: dict[int, int] = field(default_factory=dict)
    facts: dict[str, State] = field(default_factory=dict)
    fact: Row = ()
    fact_line: int = 0
    versions: list[_Version] = field(default_factory=list)
    origins: set[str] = field(default_factory=set)
    times: set[Micros] = field(default_factory=set)
    named: dict[str, int] = field(default_factory=dict)
    parents: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    slots: dict[tuple[str, bytes], list[tuple[bytes, Validity, int]]] = field(default_factory=dict)
    latest: Micros = 0
    digest: bytes = b""


def _checked(path: str, handle: IO[bytes]) -> Draft:
    """Return what an export holds, once all of it is known to be whole.

    Raises:
        Unreadable: Something in it does not hold together; the line is named.
    """
    seen = Draft(path=path)
    summary, phase, above, records = blake2b(digest_size=32), 0, "", 0
    for line, data, value in _lines(path, handle):
        with _at(path, line):
            if phase == len(_ORDER):
                raise Wrong("something stands behind the end")
            if line == 1:
                seen.scope = header(value)
            else:
                kind, found = row(value)
                phase, above = _place(kind, phase, above)
                if kind == "end":
                    _check_end(seen, found, records, summary.digest())
                    phase = len(_ORDER)
                else:
                    _CHECKS[kind](seen, line, found)
                    seen.counts[kind] = seen.counts.get(kind, 0) + 1
        summary.update(data)
        records += 1
    if phase < len(_ORDER):
        _refuse(path, records or None, "it is cut: the record of the end is missing")
    _check_whole(seen)
    return seen


@contextmanager
def _at(path: str, line: int) -> Iterator[None]:
    try:
        yield
    except Wrong as problem:
        _refuse(path, line, str(problem))


def _place(kind: str, phase: int, above: str) -> tuple[int, str]:
    """Return how far the order of the records has come, and which record the next may belong to."""
    if kind in BELOW:
        if above != BELOW[kind]:
            raise Wrong(f"a {kind} must stand below its {BELOW[kind]}")
        return phase, above
    place = _ORDER.index(kind)
    if not above and kind != "key":
        raise Wrong("the file's own key must stand before everything else")
    if place < phase:
        raise Wrong(f"a {kind} must stand before every {_ORDER[phase]}")
    return place, kind


def _check_end(seen: Draft, found: Row, records: int, digest: bytes) -> None:
    _close_fact(seen)
    told, said = found
    if told != records:
        raise Wrong(f"{told:,} records were exported, and {records:,} stand here")
    if said != f"blake2b:{digest.hex()}":
        raise Wrong("the lines above are not those that were exported")
    seen.digest = digest


def _recorded(seen: Draft, *moments: Micros | None) -> None:
    """Remember the latest of the times at which the file recorded something."""
    latest = max((moment for moment in moments if moment is not None), default=0)
    if latest >= _LATEST:
        raise Wrong("it was recorded in a year that leaves no time for changes")
    seen.latest = max(seen.latest, latest)


def _check_here(seen: Draft, scope: str | None) -> None:
    if seen.scope is not None and scope != seen.scope:
        raise Wrong(f"it is of scope {scope}, and the export is of {seen.scope}")


def _check_key(seen: Draft, _: int, found: Row) -> None:
    name, secret = found
    if name in seen.keys:
        raise Wrong(f"key {name} stands there twice")
    seen.keys[name] = secret


def _check_tombstone(seen: Draft, line: int, found: Row) -> None:
    number, scope, match, pattern, key, normaliser, stops, fact, _, _, at, lifted_at, why = found
    if number <= seen.tombstone:
        raise Wrong(f"tombstone t{number} must stand before t{seen.tombstone}")
    if scope is not None:
        _check_here(seen, scope)
    if (match == Match.VALUE) != (pattern is None) or (match == Match.VALUE) != bool(stops):
        raise Wrong("a value is stopped by its digests, and anything else by a pattern")
    if match == Match.REGEX:
        try:
            check_regex(unpack(pattern))
        except MemError as problem:
            raise Wrong(problem.message) from None
    if key not in seen.keys:
        raise Wrong(f"its key {key} does not stand above")
    if normaliser > NORMALISER:
        raise Wrong(f"it was made by version {normaliser} of the normaliser, and this mem knows {NORMALISER}")
    if (lifted_at is not None and lifted_at <= at) or (why is not None and lifted_at is None):
        raise Wrong("it was lifted before it was made, or for a reason without a time")
    if fact is not None:
        seen.named.setdefault(fact, line)
    _recorded(seen, at, lifted_at)
    seen.tombstone = number


def _check_source(seen: Draft, _: int, found: Row) -> None:
    number, scope, *_rest, imported_at, erased_at = found
    if number <= seen.source:
        raise Wrong(f"source s{number} must stand before s{seen.source}")
    _check_here(seen, scope)
    _recorded(seen, imported_at, erased_at)
    seen.source = number
    seen.sources[number] = 0


def _check_message(seen: Draft, _: int, found: Row) -> None:
    (source, position), _role, content, detail, _at, _evidence, recorded_at, erased_at = found
    if source != seen.source or position != seen.sources[source]:
        raise Wrong(f"message s{seen.source}#{seen.sources[seen.source]} is expected here")
    _check_erased(erased_at, {"content": content}, detail is not None)
    _recorded(seen, recorded_at, erased_at)
    seen.sources[source] += 1


def _check_erased(erased_at: Micros | None, words: Mapping[str, str | None], more: bool) -> None:
    """Refuse what was erased and has words, or was not and has none."""
    for name, text in words.items():
        if (erased_at is None) != (text is not None):
            raise Wrong(f"{name} must be null where it was erased, and nowhere else")
    if erased_at is not None and more:
        raise Wrong("it was erased, and words of it stand there")


def _check_fact(seen: Draft, line: int, found: Row) -> None:
    _close_fact(seen)
    name, scope, _kind, subject, attribute, slot, owner, _seen, recorded_at, erased_at = found
    if name in seen.facts:
        raise Wrong(f"fact {name} stands there twice")
    _check_here(seen, scope)
    if attribute is not None and subject is None:
        raise Wrong("an attribute needs a subject")
    _check_erased(erased_at, {}, any(part is not None for part in (subject, attribute, owner)))
    if slot is not None and erased_at is None:
        raise Wrong("slot is a digest of what was erased, and this was not")
    _recorded(seen, recorded_at, erased_at)
    seen.fact, seen.fact_line, seen.versions = found, line, []
    seen.facts[name] = State.REVOKED


def _check_version(seen: Draft, line: int, found: Row) -> None:
    name, version, revision, state, text, value, *_numbers, start, end, _displaced, successor = found[:14]
    *_rest, text_key, slot_key, _who, recorded_at, retired_at, erased_at, _reason = found[15:]
    _check_named(seen, name)
    if (erased_at is None) != (seen.fact[9] is None):
        raise Wrong("a fact and its versions are erased together")
    _check_erased(erased_at, {"text": text}, value is not None)
    if (text_key is None) != (erased_at is None) or (slot_key is not None and erased_at is None):
        raise Wrong("text_key and slot_key are digests of what was erased")
    if value is not None and seen.fact[4] is None:
        raise Wrong("a value needs a subject and an attribute")
    if start is not None and end is not None and end <= start:
        raise Wrong("it ends before it begins")
    if successor is not None:
        if state != State.SUPERSEDED:
            raise Wrong("only what is superseded has a successor")
        seen.named.setdefault(successor, line)
    if recorded_at in seen.times:
        raise Wrong("another version was recorded at the same time")
    seen.times.add(recorded_at)
    now = _Version(
        line=line,
        version=version,
        revision=revision,
        state=State(state),
        recorded_at=recorded_at,
        retired_at=retired_at,
        value=value,
        valid=Validity(start=start, end=end),
    )
    _check_move(seen, now)
    _recorded(seen, recorded_at, retired_at, erased_at)
    seen.versions.append(now)
    seen.facts[name] = now.state


def _check_named(seen: Draft, name: str) -> None:
    if name != seen.fact[0]:
        raise Wrong(f"it speaks of {name}, and stands below fact {seen.fact[0]}")


def _check_move(seen: Draft, now: _Version) -> None:
    """Refuse a revision that does not follow from the one above, or that no rule allows."""
    above = seen.versions[-1] if seen.versions else None
    place = (now.version, now.revision)
    if above is None:
        if place != (1, 1) or (None, now.state) not in MOVES:
            raise Wrong("a fact begins as version 1, revision 1, tentative or accepted")
        if now.recorded_at < seen.fact[8]:
            raise Wrong("it was recorded before its fact")
        return
    if now.recorded_at <= above.recorded_at:
        raise Wrong("it was recorded before the revision above")
    if place == (above.version, above.revision + 1):
        if (above.state, now.state) not in MOVES:
            raise Wrong(f"a {above.state} version does not become {now.state}")
        if above.retired_at != now.recorded_at:
            raise Wrong("the revision above ended at another time than this one began")
    elif place == (above.version + 1, 1):
        if above.state not in FINAL or now.state in FINAL or above.retired_at is not None:
            raise Wrong("a version begins where the one before it ended for good")
    else:
        raise Wrong(f"version {above.version}, revision {above.revision + 1} is expected here, or the next version")


def _check_provenance(seen: Draft, _: int, found: Row) -> None:
    name, version, source, message, quote, span, _verified, recorded_at, erased_at = found
    _check_named(seen, name)
    if not 1 <= version <= (seen.versions[-1].version if seen.versions else 0):
        raise Wrong(f"fact {name} has no version {version}")
    if source not in seen.sources:
        raise Wrong(f"source s{source} is not in the export")
    if message is not None and (message[0] != source or message[1] >= seen.sources[source]):
        raise Wrong(f"message s{message[0]}#{message[1]} is not in the export, or of another source")
    _check_erased(erased_at, {}, quote is not None or span is not None)
    _recorded(seen, recorded_at, erased_at)


def _check_derivation(seen: Draft, line: int, found: Row) -> None:
    child, parent, _, recorded_at = found
    _check_named(seen, child)
    held = seen.parents.setdefault(child, [])
    if parent == child or any(parent == other for other, _ in held):
        raise Wrong(f"that it was built from {parent} stands there twice, or makes it its own parent")
    held.append((parent, line))
    seen.named.setdefault(parent, line)
    _recorded(seen, recorded_at)


def _check_origin(seen: Draft, _: int, found: Row) -> None:
    name, source, recorded_at = found
    _check_named(seen, name)
    if source not in seen.sources:
        raise Wrong(f"source s{source} is not in the export")
    if name in seen.origins:
        raise Wrong("a fact has one origin")
    seen.origins.add(name)
    _recorded(seen, recorded_at)


def _close_fact(seen: Draft) -> None:
    """Look at a fact whose last revision was read, and remember what the others must fit to."""
    if not seen.fact:
        return
    if not seen.versions:
        _refuse(seen.path, seen.fact_line, f"fact {seen.fact[0]} has no version")
    last = seen.versions[-1]
    if last.retired_at is not None:
        _refuse(seen.path, last.line, f"the last revision of fact {seen.fact[0]} ended, and nothing followed it")
    _, scope, _, subject, attribute, *_rest = seen.fact
    if last.state in READABLE and subject is not None and attribute is not None:
        name, secret = next(iter(seen.keys.items()))
        place = (TombstoneKey(id=name, secret=secret), unpack(subject), unpack(attribute))
        slot = (scope, slot_digest(*place, ""))
        value = slot_digest(*place, json.loads(last.value or "null"))
        seen.slots.setdefault(slot, []).append((value, last.valid, last.line))


_CHECKS: Mapping[str, Callable[[Draft, int, Row], None]] = {
    "key": _check_key,
    "tombstone": _check_tombstone,
    "source": _check_source,
    "message": _check_message,
    "fact": _check_fact,
    "version": _check_version,
    "provenance": _check_provenance,
    "derivation": _check_derivation,
    "origin": _check_origin,
}


def _check_whole(seen: Draft) -> None:
    """Refuse what only the whole shows: facts that are named and not there, circles, double slots, dead parents."""
    refuse = partial(_refuse, seen.path)
    for name, line in seen.named.items():
        if name not in seen.facts:
            refuse(line, f"it speaks of fact {name}, which is not in the export")
    for held in seen.slots.values():
        for number, (value, valid, line) in enumerate(held):
            if any(value != other and valid.overlaps(time) for other, time, _ in held[:number]):
                refuse(line, "it is readable, and so is another value of its slot at the same time")
    _check_parents(seen)


def _check_parents(seen: Draft) -> None:
    done: set[str] = set()
    for child in seen.parents:
        path: dict[str, int] = {}
        waiting = [(child, 0, False)]
        while waiting:
            name, line, left = waiting.pop()
            if left:
                del path[name]
                done.add(name)
                continue
            if name in path:
                _refuse(seen.path, line, "the derivations go round in a circle")
            if name in done:
                continue
            path[name] = line
            waiting.append((name, line, True))
            waiting += [(parent, at, False) for parent, at in seen.parents.get(name, ())]
    _check_dead(seen)


def _check_dead(seen: Draft) -> None:
    """Refuse a readable fact that was built on what is dead, over however many steps."""
    dead: dict[str, bool] = {}
    for child in seen.parents:
        waiting = [child]
        while waiting:
            name = waiting[-1]
            above = [parent for parent, _ in seen.parents.get(name, ())]
            missing = [parent for parent in above if parent not in dead]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            dead[name] = seen.facts[name] in _DEAD or any(dead[parent] for parent in above)
            if dead[name] and seen.facts[name] in READABLE:
                line = seen.parents[name][0][1]
                _refuse(seen.path, line, f"fact {name} is readable, and what it was built from is not")
