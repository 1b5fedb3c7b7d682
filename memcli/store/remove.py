"""Ending things: retract, tombstone, lift, and proposals of those who may not decide."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from memcli.errors import NotAllowed, NotFound, NotPermitted, Stale
from memcli.facts import Fact, Json, Proposal, Scalar, Similar, Tombstone, TombstonePlan
from memcli.keys import NORMALISER, TombstoneKey, check_regex, normalise, value_digest
from memcli.store import rows
from memcli.store.believe import Believing
from memcli.store.evidence import hits, spoken
from memcli.store.seals import Field, seal
from memcli.terms import FINAL, Match, Op, State
from memcli.text import pack, unpack

NEAR_SCORE = 60.0
"""How alike, of 100, a text must be to be shown as a near miss."""

NEAR_LIMIT = 5
_NEAR_AT_ONCE = 5_000  # texts that are compared in one go, so that no more are in memory
_FINAL = ",".join(f"'{state}'" for state in sorted(FINAL))


class Removing(Believing):
    """A ledger in which facts end and values are stopped."""

    def retract(self, seen: Fact) -> Fact:
        """End a fact with no replacement, and withdraw what was built on it; return the fact."""
        self.need_reason()
        self.need_decider("retract a fact", seen.id)
        row = self.move(self.seen(seen), State.REVOKED, Op.RETRACT)
        self.cascade(row.fact)
        return self.fact(row.fact)

    # ---------------------------------------------------------------- tombstones

    def plan_facts(
        self, targets: Sequence[Fact], *, all_versions: bool = False, everywhere: bool = False, near: bool = True
    ) -> TombstonePlan:
        """Return what rejecting the values of these facts would do; with `all_versions`, every value they had.

        Args:
            near: Look for near misses too, which reads every fact of the scope.
        """
        said: dict[tuple[str, tuple[str, str] | None, str | None], tuple[str, Fact]] = {}
        for target in targets:
            self.seen(target)
            for version in self._said_by(target) if all_versions else [target]:
                if version.erased_at is None:
                    said[version.text, version.slot, spoken(version.value)] = (version.text, version)
        texts = tuple(dict.fromkeys(text for text, _ in said.values()))
        slots = tuple(
            dict.fromkeys((*version.slot, version.value) for _, version in said.values() if version.slot is not None)
        )
        wanted = set()
        for text, version in said.values():
            keys = self.keys_for(text, version.slot, version.value)
            wanted |= {key for key in keys.values() if key is not None}
        found = self._holding(wanted, everywhere=everywhere)
        chosen = [self.fact_number(target.id) for target in targets]
        return self._plan(Match.VALUE, None, texts, slots, [*chosen, *found], everywhere=everywhere, near=near)

    def _said_by(self, target: Fact) -> list[Fact]:
        number = self.fact_number(target.id)
        return [self.store.reader.fact(self.version_row(number, version)) for version in range(1, target.version + 1)]

    def plan_value(self, text: str, *, everywhere: bool = False) -> TombstonePlan:
        """Return what rejecting a value would do, whether it is said as a whole text or as the value of a slot."""
        wanted = normalise(text)
        found = [
            number
            for number, said, value in self._current(everywhere=everywhere)
            if wanted in (normalise(said), normalise(spoken(value) or ""))
        ]
        return self._plan(Match.VALUE, None, (text,), (), found, everywhere=everywhere)

    def plan_pattern(self, match: Match, pattern: str, *, everywhere: bool = False) -> TombstonePlan:
        """Return what stopping every text that contains or matches a pattern would do.

        Raises:
            UsageError: The regular expression cannot be read.
            NotAllowed: The pattern would stop every text.
        """
        if match is Match.REGEX:
            check_regex(pattern)
        if (match is Match.CONTAINS and not normalise(pattern)) or hits(match, pattern, ""):
            raise NotAllowed("that pattern would stop every text", hint="give more of what is to be stopped")
        found = [
            number
            for number, said, value in self._current(everywhere=everywhere)
            if hits(match, pattern, said) or (value is not None and hits(match, pattern, spoken(value) or ""))
        ]
        return self._plan(match, pattern, (), (), found, everywhere=everywhere)

    def _current(self, *, everywhere: bool) -> Iterator[tuple[int, str, Scalar]]:
        """Yield each fact that stands, its text and value, one by one; whoever writes meanwhile takes a list first."""
        where, bound = ("", ()) if everywhere else (" and f.scope = ?", (self.scope,))
        for raw in self.conn.execute(
            f"{rows.SELECT_VERSION} where v.retired_at is null and v.state not in ({_FINAL}) and f.erased_at is null"
            f"{where} order by v.fact",
            bound,
        ):
            row = self.store.reader.version(raw)
            value = row.field("value")
            yield row.fact, unpack(str(row.field("text"))), None if value is None else json.loads(str(value))

    def _holding(self, keys: set[bytes], *, everywhere: bool) -> list[int]:
        found: dict[int, None] = {}
        scope, bound = ("", ()) if everywhere else (" and f.scope = ?", (self.scope,))
        for key in sorted(keys):
            for column in ("text_key", "slot_key"):
                for (number,) in self.conn.execute(
                    f"select v.fact from versions v join facts f on f.id = v.fact where v.{column} = ?"
                    f" and v.retired_at is null and v.state not in ({_FINAL}){scope} order by v.fact",
                    (key, *bound),
                ):
                    found[number] = None
        return list(found)

    def _plan(
        self,
        match: Match,
        pattern: str | None,
        values: tuple[str, ...],
        slots: tuple[tuple[str, str, Scalar], ...],
        found: Sequence[int],
        *,
        everywhere: bool,
        near: bool = True,
    ) -> TombstonePlan:
        numbers = list(dict.fromkeys(found))
        fallen: dict[int, None] = {}
        for number in numbers:
            fallen.update(dict.fromkeys(self.descendants(number)))
        falls = [self.fact(number) for number in fallen if number not in numbers]
        held = [self.fact(number) for number in numbers]
        look = near and match is Match.VALUE
        missed = self._near(values, {*numbers, *fallen}, everywhere=everywhere) if look else ()
        return TombstonePlan(
            scope=None if everywhere else self.store.scope,
            match=match,
            pattern=pattern,
            values=values,
            slots=slots,
            hits=tuple(held),
            falls=tuple(fact for fact in falls if fact.state not in FINAL),
            near=tuple(missed),
        )

    def _near(self, values: Sequence[str], but: set[int], *, everywhere: bool) -> list[Similar]:
        from rapidfuzz import fuzz, process  # 45 ms, needed only here

        best: dict[int, float] = {}
        current = self._current(everywhere=everywhere)
        while part := {number: text for number, text, _ in islice(current, _NEAR_AT_ONCE)}:
            for value in values:
                for _, score, number in process.extract(
                    value, part, scorer=fuzz.WRatio, processor=normalise, limit=None, score_cutoff=NEAR_SCORE
                ):
                    if number not in but:
                        best[number] = max(score, best.get(number, 0.0))
            best = dict(sorted(best.items(), key=lambda item: (-item[1], item[0]))[:NEAR_LIMIT])
        ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:NEAR_LIMIT]
        facts = [(self.fact(number), score) for number, score in ranked]
        return [Similar(id=fact.id, text=fact.text, score=round(score, 1), state=fact.state) for fact, score in facts]

    def tombstone(self, plan: TombstonePlan) -> Tombstone:
        """Reject what a plan names for good, with everything built on it, and return the tombstone."""
        self.need_reason()
        self.need_decider("reject a value")
        target = self.fact_number(plan.hits[0].id) if plan.hits and plan.match is Match.VALUE else None
        stops = [value_digest(self.store.tombstone_key, text) for text in plan.values]
        for subject, attribute, value in plan.slots:
            key = self.keys_for("", (subject, attribute), value)["slot_key"]
            stops += [] if key is None else [key]
        stone = self.bury(
            plan.match, plan.pattern, stops, scope=None if plan.scope is None else self.scope, fact=target
        )
        for fact in plan.hits:
            self.end_value(self.fact_number(fact.id))
        return stone

    def end_value(self, number: int) -> None:
        """Make a fact rejected, and withdraw what was built on it."""
        row = self.newest(number)
        if State(str(row.field("state"))) not in FINAL:
            self.move(row, State.REJECTED, Op.REJECT)
        self.cascade(number)

    def bury(
        self,
        match: Match,
        pattern: str | None,
        stops: Sequence[bytes],
        *,
        scope: int | None,
        fact: int | None,
        key: TombstoneKey | None = None,
        normaliser: int | None = None,
    ) -> Tombstone:
        """Write a tombstone with its audit event and return it.

        Args:
            scope: None means everywhere.
            key: What the digests were made with; None is the file's own.
            normaliser: The version the texts went through; None is the present one.
        """
        number = 1 + int(self.conn.execute("select coalesce(max(id), 0) from tombstones").fetchone()[0])
        at = self.tick()
        event = self._seq + 1
        fields: tuple[Field, ...] = (
            number, str(match), None if pattern is None else pack(pattern), (key or self.store.tombstone_key).id,
            normaliser or NORMALISER,
            fact, event, pack(self.actor.name), str(self.actor.kind), str(self.actor.channel), at,
        )  # fmt: skip
        digest = rows.tombstone_digest(self.key, fields, set(stops), None)
        self.conn.execute(
            f"insert into tombstones ({', '.join(rows.TOMBSTONE_FIELDS)}, scope, seal)"
            f" values ({', '.join('?' * (len(fields) + 2))})",
            (*fields, scope, seal(self.key, "stop", (digest, scope))),
        )
        self.conn.executemany("insert into stops values (?, ?)", [(stop, number) for stop in sorted(set(stops))])
        self.event(Op.TOMBSTONE, f"t{number}", at=at, after=digest)
        self.forget_patterns()
        return self._tombstone(number)

    def _tombstone(self, number: int) -> Tombstone:
        return self.store.reader.tombstone(self._stone(number), self._stops(number))

    def lift(self, name: str) -> Tombstone:
        """End a tombstone; the facts it rejected stay rejected, the value may be offered again. Return it."""
        self.need_reason()
        self.need_decider("lift a tombstone")
        match = re.fullmatch(r"t(\d{1,18})", name.strip().lower())
        raw = self._stone(int(match[1])) if match else None
        scope = None if raw is None else raw[len(rows.TOMBSTONE_FIELDS)]
        if raw is None or scope not in (None, self.scope):
            raise NotFound(f"no tombstone of {self.store.scope} is called {name}", hint="see `mem log --op tombstone`")
        number, lifted_at = raw[0], raw[len(rows.TOMBSTONE_FIELDS) + 1]
        self._tombstone(number)
        if lifted_at is not None:
            raise NotAllowed(f"tombstone {name} was lifted already", hint="see `mem log --op lift`")
        stops, fields, at = self._stops(number), raw[: len(rows.TOMBSTONE_FIELDS)], self.tick()
        before = rows.tombstone_digest(self.key, fields, stops, None)
        after = rows.tombstone_digest(self.key, fields, stops, at)
        self.conn.execute(
            "update tombstones set lifted_at = ?, seal = ? where id = ?",
            (at, seal(self.key, "stop", (after, scope)), number),
        )
        self.event(Op.LIFT, f"t{number}", at=at, before=before, after=after)
        self.forget_patterns()
        return self._tombstone(number)

    # ---------------------------------------------------------------- proposals

    def propose(self, op: Op, fact: Fact | None, arguments: Mapping[str, Json]) -> Proposal:
        """Keep a change that this actor may not decide, for the review queue, and return it."""
        self.need_reason()
        number = 1 + int(self.conn.execute("select coalesce(max(id), 0) from proposals").fetchone()[0])
        at = self.tick()
        fields: tuple[Field, ...] = (
            number,
            None if fact is None else self.fact_number(fact.id),
            None if fact is None else fact.version,
            self.scope,
            str(op),
            pack(json.dumps(dict(arguments))),
            pack(self.reason or ""),
            pack(self.actor.name),
            str(self.actor.kind),
            str(self.actor.channel),
            at,
            None,
            None,
        )
        its_seal = seal(self.key, "proposal", fields)
        self.conn.execute(
            f"insert into proposals ({', '.join(rows.PROPOSAL_FIELDS)}, seal) values ({', '.join('?' * 14)})",
            (*fields, its_seal),
        )
        self.event(Op.PROPOSE, f"p{number}", at=at, after=its_seal)
        return self._proposal(number)

    def _proposal(self, number: int) -> Proposal:
        raw = self.conn.execute(f"{rows.SELECT_PROPOSAL} where p.id = ?", (number,)).fetchone()
        return self.store.reader.proposal(raw)

    def settle(self, proposal: Proposal, *, accepted: bool) -> None:
        """Close a proposal; whoever accepts it makes the change itself beside this, in the same transaction.

        Raises:
            NotPermitted: Who proposed it cannot accept it through a pipe.
            NotAllowed: It was settled already.
        """
        if accepted and not self.actor.is_person and self.actor.name == proposal.actor.name:
            raise NotPermitted(
                f"{self.actor.name} proposed {proposal.id} and cannot accept it through a pipe",
                hint="let another person decide, or decide at a terminal",
                target=proposal.id,
            )
        number = int(proposal.id[1:]) if re.fullmatch(r"p\d{1,18}", proposal.id) else 0
        columns = ", ".join(rows.PROPOSAL_FIELDS)
        raw: Any = self.conn.execute(
            f"select {columns}, seal from proposals where id = ? and scope = ?", (number, self.scope)
        ).fetchone()
        if raw is None:
            raise NotFound(f"there is no proposal {proposal.id}", hint="see the queue with `mem review list`")
        if accepted and raw[1] is not None and int(self.newest(raw[1]).field("version")) != raw[2]:
            raise Stale(
                f"fact {proposal.fact} changed since {proposal.id} was made",
                hint="refuse the proposal, or look at both with `mem review`",
                target=proposal.id,
            )
        if raw[-3] is not None:
            raise NotAllowed(f"{proposal.id} was settled already", hint="see the queue with `mem review list`")
        at = self.tick()
        fields = (*raw[:-3], at, "accepted" if accepted else "refused")
        its_seal = seal(self.key, "proposal", fields)
        self.conn.execute(
            "update proposals set settled_at = ?, outcome = ?, seal = ? where id = ?",
            (at, fields[-1], its_seal, number),
        )
        self.event(Op.SETTLE, proposal.id, at=at, before=raw[-1], after=its_seal)
