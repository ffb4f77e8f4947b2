"""What the clients do: draws puts, gets and the rest from a seed, and hands every answer to the judge."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from soak.fleet import Answer, Command, Fleet
from soak.judge import Call, Judge
from soak.truth import Attempt, Faults, Object, Removal

KIB, MIB = 1 << 10, 1 << 20
NAMES = 48
LONG_S = 32.0  # of calls that should succeed; the judge holds them to it when there is no fault
SHORT_S = (0.05, 3.0)  # of calls that may well be in vain
FORGET = 4000  # deleted objects that are remembered, to be asked for again


@dataclass(frozen=True)
class Pace:
    commands: int = 5  # under way at once on each host
    per_second: float = 25.0  # begun on each host
    primaries: int = 40 * MIB  # of living objects on each host; its store has room for copies beside them
    objects: int = 60  # living, on each host


class Load:
    """Clients on all hosts of a fleet. `step` is called often; answers arrive through the fleet's pipes."""

    def __init__(self, fleet: Fleet, faults: Faults, judge: Judge, rng: random.Random, pace: Pace):
        self._fleet = fleet
        self._faults = faults
        self._judge = judge
        self._rng = rng
        self._pace = pace
        self._tags = 0
        self._minted: dict[int, list[str]] = {}
        self._next: dict[int, float] = {}
        self.objects: dict[str, Object] = {}
        self._living: list[Object] = []  # put, or about to be, and not deleted
        self._deleted: list[Object] = []
        self._names = [f"name-{number}" for number in range(NAMES)]
        self.counts: dict[str, dict[str, int]] = {}  # by command, by outcome
        self.checked_bytes = 0
        self.busy = True
        self.history: Callable[[str], None] = lambda line: None
        self._actions = (
            (20, self._put_new), (12, self._put_name), (44, self._get), (5, self._follow), (3, self._put_slowly), (1, self._abandon),
            (8, self._remove_something), (3, self._wait), (4, self._reduce), (2, self._burst), (2, self._put_again),
        )  # fmt: skip

    # ---- commands -----------------------------------------------------------------

    def send(
        self, host: int, text: str, timeout_s: float, judged: Callable[[Call], None], *, extra_s: float = 0, began: float | None = None
    ) -> None:
        """`judged` gets what came of it; `extra_s` is what it does beside waiting."""
        began = time.monotonic() if began is None else began

        def then(answer: Answer) -> None:
            call = Call(host, text, began, time.monotonic(), timeout_s, answer.kind == "ok", answer.words)
            verb = text.partition(" ")[0]
            outcome = call.code if answer.kind != "wrong" else "wrong"
            self.counts.setdefault(verb, {}).setdefault(outcome, 0)
            self.counts[verb][outcome] += 1
            self.history(str(call))
            if answer.kind == "wrong":
                self._judge.wrong("wrong bytes, or a broken promise", call)
            else:
                judged(call)

        self._fleet.clients[host].send(Command(host, text, began, timeout_s + extra_s, then))

    def step(self, now: float) -> None:
        """Begins what is due."""
        for host, client in self._fleet.clients.items():
            if now < self._next.get(host, 0) or len(client.under_way) >= self._pace.commands:
                continue
            self._next[host] = now + self._rng.expovariate(self._pace.per_second)
            if len(self._minted.get(host, ())) < 20:
                self._mint(host)
            elif self.busy:
                self._act(host)

    def new_client(self, host: int) -> None:
        """The daemon, or the client, of a host is another one: what it minted is not used any more."""
        self._minted.pop(host, None)

    def _mint(self, host: int) -> None:
        client = self._fleet.clients[host]
        if any(command.text.startswith("mint") for command in client.under_way.values()):
            return

        def minted(call: Call) -> None:
            if self._fleet.clients.get(host) is client and call.ok:
                self._minted.setdefault(host, []).extend(call.words.split())

        self.send(host, "mint 200", 10, minted)

    def _act(self, host: int) -> None:
        too_many = len(self._living) > self._pace.objects * len(self._fleet.clients)
        if too_many and self._rng.random() < 0.5:
            self._remove_something(host)
            return
        actions, weights = [action for _, action in self._actions], [weight for weight, _ in self._actions]
        self._rng.choices(actions, weights)[0](host)

    # ---- puts ---------------------------------------------------------------------

    def _size(self) -> int:
        kind = self._rng.random()
        if kind < 0.05:
            return 0
        if kind < 0.60:
            return self._rng.randint(1, 4 * KIB)
        if kind < 0.85:
            return self._rng.randint(4 * KIB, 200 * KIB)
        if kind < 0.985:
            return self._rng.randint(200 * KIB, 3 * MIB)
        return self._rng.randint(3 * MIB, 24 * MIB)

    def primaries(self, host: int) -> int:
        """Bytes that the store of a host must keep, as far as is known."""
        return sum(a.size for thing in self._living for a in thing.attempts[-1:] if a.host == host and a.may_exist)

    def can_mint(self, host: int) -> bool:
        return bool(self._minted.get(host))

    def fresh(self, host: int) -> Object:
        thing = Object(self._minted[host].pop(), host, time.monotonic())
        self.objects[thing.id] = thing
        return thing

    def put(self, thing: Object, host: int, size: int, timeout_s: float = LONG_S, pause_ms: int = 0, verb: str = "put") -> None:
        self._tags += 1
        attempt = Attempt(self._tags, host, size, time.monotonic())
        thing.attempts.append(attempt)
        if thing not in self._living:
            self._living.append(thing)
        label = f"{thing.id} {attempt.tag} {size} {'a' if thing.array else 'b'} {timeout_s * 1000:.0f}"
        if verb == "abandon":
            self.send(host, f"abandon {label}", timeout_s, lambda call: self._abandoned(thing, attempt, call), extra_s=1)
        else:
            judged = lambda call: self._put_ended(thing, attempt, call)
            self.send(host, f"put {label} {pause_ms}", timeout_s, judged, extra_s=pause_ms / 100, began=attempt.began)

    def _put_ended(self, thing: Object, attempt: Attempt, call: Call) -> None:
        self._judge.put(thing, attempt, call)
        if attempt.may_exist and thing not in self._living:
            self._living.append(thing)  # a delete was under way at the same time, and came first

    def _abandoned(self, thing: Object, attempt: Attempt, call: Call) -> None:
        if call.ok:
            attempt.ended, attempt.outcome = call.ended, "abandoned"
        else:
            self._judge.put(thing, attempt, call)

    def _fits(self, host: int, size: int) -> int:
        return size if self.primaries(host) + size <= self._pace.primaries else min(size, 1 * KIB)

    def _put_new(self, host: int) -> None:
        self.put(self.fresh(host), host, self._fits(host, self._size()))

    def _put_name(self, host: int) -> None:
        """A name: again, too, which fails unless it was deleted or lost."""
        name = self._rng.choice(self._names)
        thing = self.objects.setdefault(name, Object(name, None, time.monotonic()))
        self.put(thing, host, self._fits(host, self._size()))

    def _put_slowly(self, host: int) -> None:
        self.put(self.fresh(host), host, self._fits(host, self._rng.randint(1, 4 * MIB)), pause_ms=self._rng.randint(10, 300))

    def _abandon(self, host: int) -> None:
        self.put(self.fresh(host), host, self._fits(host, self._rng.randint(1, 2 * MIB)), verb="abandon")

    def _put_again(self, host: int) -> None:
        """What was lost may be put again; what was deleted, or is there, may not."""
        lost = [thing for thing in self._living if thing.lost and not thing.is_target and not thing.array]
        if lost and self._rng.random() < 0.7:
            thing = self._rng.choice(lost)
            thing.lost = False
        elif self._deleted:
            thing = self._rng.choice(self._deleted)
            if thing.is_target or thing.array:
                return
        else:
            return
        self.put(thing, host, self._fits(host, self._rng.randint(0, 100 * KIB)))

    # ---- gets ---------------------------------------------------------------------

    def _some(self, count: int = 1) -> list[Object]:
        """Things to read; new ones more often."""
        if not self._living:
            return []
        last = len(self._living) - 1
        return [self._living[last - min(last, int(self._rng.expovariate(1 / (1 + last / 3))))] for _ in range(count)]

    def _patience(self, thing: Object) -> float:
        hopeful = any(a.outcome in ("ok", "pending") for a in thing.attempts) or (thing.is_target and not thing.sum)
        return LONG_S if hopeful and not thing.removals else self._rng.uniform(*SHORT_S)

    def expected(self, thing: Object) -> str:
        if not thing.is_target:
            return ""
        return f" sum {thing.count} " + " ".join(str(source.attempts[0].tag) for source in thing.sources)

    def get(self, host: int, thing: Object, timeout_s: float, hold_ms: int = 0, on_lost: str = "fail") -> None:
        text = f"get {thing.id} {timeout_s * 1000:.0f} {on_lost} {hold_ms}{self.expected(thing)}"
        self.send(host, text, timeout_s, lambda call: self._got(thing, call, on_lost == "wait"), extra_s=hold_ms / 1000)

    def _got(self, thing: Object, call: Call, waits_if_lost: bool = False) -> None:
        if call.ok:
            kind, _, tag = call.words.partition(" ")
            attempt = thing.attempt(int(tag)) if kind == "tag" else thing.sources[0].attempts[0]
            self.checked_bytes += attempt.size if attempt else 0
        self._judge.get(thing, call, waits_if_lost=waits_if_lost)

    def _get(self, host: int) -> None:
        if self._deleted and self._rng.random() < 0.08:
            self.get(host, self._rng.choice(self._deleted), self._rng.uniform(*SHORT_S))
            return
        for thing in self._some():
            waits = self._rng.random() < 0.1
            timeout_s = self._rng.uniform(*SHORT_S) if waits else self._patience(thing)
            hold_ms = self._rng.randint(100, 6000) if self._rng.random() < 0.1 else 0
            self.get(host, thing, timeout_s, hold_ms, "wait" if waits else "fail")

    def _follow(self, host: int) -> None:
        for thing in self._some():
            timeout_s = self._patience(thing)
            text = f"follow {thing.id} {timeout_s * 1000:.0f}{self.expected(thing)}"
            self.send(host, text, timeout_s, lambda call, thing=thing: self._got(thing, call))

    def _outlive(self, host: int) -> None:
        for thing in self._some():
            if not thing.is_target:
                timeout_s, hold_ms = self._patience(thing), self._rng.randint(100, 4000)
                text = f"outlive {thing.id} {timeout_s * 1000:.0f} {hold_ms}"
                self.send(host, text, timeout_s, lambda call, thing=thing: self._got(thing, call), extra_s=hold_ms / 1000)

    def _wait(self, host: int) -> None:
        things = list({thing.id: thing for thing in self._some(6)}.values())
        if things:
            timeout_s = self._rng.uniform(*SHORT_S)
            text = f"wait {self._rng.randint(1, len(things))} {timeout_s * 1000:.0f} " + " ".join(thing.id for thing in things)
            self.send(host, text, timeout_s, lambda call: self._judge.wait(things, call))

    # ---- deletes --------------------------------------------------------------------

    def remove(self, host: int, thing: Object, timeout_s: float = LONG_S) -> None:
        removal = Removal(time.monotonic())
        thing.removals.append(removal)
        if thing in self._living:
            self._living.remove(thing)
        if thing not in self._deleted:
            self._deleted.append(thing)
            del self._deleted[:-FORGET]
        text = f"remove {thing.id} {timeout_s * 1000:.0f}"

        def judged(call: Call) -> None:
            self._judge.remove(thing, removal, call)
            if not call.ok and thing not in self._living:
                self._living.append(thing)  # to be deleted again

        self.send(host, text, timeout_s, judged, began=removal.began)

    def _remove_something(self, host: int) -> None:
        if self._living:
            self.remove(host, self._rng.choice(self._living))

    # ---- collectives -------------------------------------------------------------------

    def _reduce(self, host: int) -> None:
        """Arrays on several hosts, their sum, and some who want it, in any order."""
        ready = [other for other in self._fleet.clients if len(self._minted.get(other, ())) >= 10]
        if host not in ready or len(ready) < 2:
            return
        sources = self._rng.sample(ready, self._rng.randint(2, len(ready)))
        size = 4 * self._rng.choice([self._rng.randint(1, 2 * KIB), self._rng.randint(2 * KIB, 500 * KIB)])
        target = self.fresh(host)
        for other in sources:
            source = self.fresh(other)
            source.array = True
            target.sources.append(source)
        everybody = self._rng.random() < 0.4
        target.count = len(sources) if everybody or self._rng.random() < 0.5 else self._rng.randint(1, len(sources))
        target.reduce_host = host
        text = f"reduce {target.id} {'allreduce' if everybody else 'reduce'} {target.count} {LONG_S * 1000:.0f} "
        text += " ".join(source.id for source in target.sources)
        # The sources first, so that every reader knows their tags.
        for other, source in zip(sources, target.sources, strict=True):
            self.put(source, other, size, pause_ms=self._rng.choice([0, 0, 0, 50]))
        self._living.append(target)
        self.send(host, text, LONG_S, lambda call: self._judge.reduce(target, call))
        for reader in sources if everybody else self._rng.sample(ready, min(2, len(ready))):
            self.get(reader, target, LONG_S)

    def _burst(self, host: int) -> None:
        count = self._rng.randint(20, 400)
        text = f"burst {count} {self._tags + 1} {LONG_S * 1000:.0f}"
        self._tags += count
        self.send(host, text, LONG_S, self._judge.burst)

    # ---- at the end ---------------------------------------------------------------------

    def living(self) -> list[Object]:
        return list(self._living)

    def deleted(self) -> list[Object]:
        return list(self._deleted)
