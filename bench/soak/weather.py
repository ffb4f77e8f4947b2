"""Faults, one episode after another, drawn from a seed. Each begins, lasts, heals, and must be followed by peace: all daemons
count each other as alive again. What happens next to whom, and for how long, follows from the seed alone; what the clients are
doing at that moment does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from lab import Lab
from soak.fleet import Answer, Fleet
from soak.load import MIB, Load
from soak.truth import Faults

BALLAST = 8 * MIB
BALLAST_S = 3.0  # deadline of a put that is to find the store full
ENDING_S = 60.0  # for the commands of a client whose daemon is gone

Story = Iterator[float]  # what happens, with seconds to wait in between


class Weather:
    def __init__(self, lab: Lab, fleet: Fleet, load: Load, faults: Faults, rng: random.Random, say: Callable[[str], None], rate: str):
        self._lab = lab
        self._fleet = fleet
        self._load = load
        self._faults = faults
        self._rng = rng
        self._say = say
        self._rate = rate
        self._hosts = range(1, lab.hosts + 1)
        self._coming: list[Callable[[], Story]] = []
        self.happened: dict[str, int] = {}

    def next_episode(self) -> Story:
        """Each kind once, in another order each time."""
        if not self._coming:
            self._coming = [
                self._kill, self._kill_two, self._kill_for_a_moment, self._stop_briefly, self._stop, self._partition, self._cut,
                self._one_way, self._reset, self._slow, self._loss, self._full, self._client, self._leave, self._kill_while_cut,
            ]  # fmt: skip
            self._rng.shuffle(self._coming)
        return self._coming.pop()()

    # ---- daemons ---------------------------------------------------------------------

    def _kill(self) -> Story:
        yield from self._kill_hosts(self._some(1), self._rng.uniform(1, 6))

    def _kill_two(self) -> Story:
        yield from self._kill_hosts(self._some(2), self._rng.uniform(1, 6))

    def _kill_for_a_moment(self) -> Story:
        yield from self._kill_hosts(self._some(1), 0)

    def _kill_hosts(self, hosts: list[int], for_s: float) -> Story:
        self._begin("kill", hosts, f"for {for_s:.1f} s")
        for host in hosts:
            self._fleet.kill(host)
            self._hurry(host)
        yield for_s
        self._start(hosts)

    def _leave(self) -> Story:
        (host,) = self._some(1)
        self._begin("leave", [host])
        self._fleet.terminate(host)
        self._hurry(host)
        for _ in range(300):
            yield 0.2
            if self._fleet.has_ended(host):
                break
        else:
            raise AssertionError(f"the daemon on host {host} has not ended 60 s after SIGTERM")
        yield self._rng.uniform(0, 3)
        self._start([host])

    def _start(self, hosts: list[int]) -> None:
        for host in hosts:
            self._fleet.start(host)
            self._load.new_client(host)

    def _hurry(self, host: int) -> None:
        """What its client has under way must fail soon."""
        for client in self._fleet.leaving:
            if client.host == host:
                for command in client.under_way.values():
                    command.due = min(command.due, time.monotonic() + ENDING_S)

    def _stop_briefly(self) -> Story:
        yield from self._stop_hosts(self._some(1), self._rng.uniform(0.1, 0.6))

    def _stop(self) -> Story:
        yield from self._stop_hosts(self._some(self._rng.choice([1, 1, 2])), self._rng.uniform(1, 7))

    def _stop_hosts(self, hosts: list[int], for_s: float) -> Story:
        self._begin("stop", hosts, f"for {for_s:.1f} s")
        for host in hosts:
            self._fleet.pause(host)
        yield for_s
        for host in hosts:
            self._fleet.resume(host)

    def _client(self) -> Story:
        """A process ends in the middle of everything."""
        (host,) = self._some(1)
        self._begin("client", [host])
        old = self._fleet.kill_client(host)
        self._load.new_client(host)
        old.process.wait()
        old.deliver()
        for command in old.under_way.values():
            command.then(Answer("fail", "unavailable the soak has killed this client"))
        yield 0.5

    # ---- links ------------------------------------------------------------------------

    def _partition(self) -> Story:
        side = self._some(self._rng.randint(1, len(self._hosts) // 2))
        self._begin("partition", side)
        self._lab.partition(side)
        yield self._rng.uniform(0.5, 8)
        self._lab.heal()

    def _cut(self) -> Story:
        pairs = self._pairs(self._rng.randint(1, 3))
        self._begin("cut", sum(pairs, ()))
        self._lab.cut(*pairs, *((b, a) for a, b in pairs))
        yield self._rng.uniform(1, 10)
        self._lab.heal()

    def _one_way(self) -> Story:
        pairs = self._pairs(self._rng.randint(1, 2))
        self._begin("one way", sum(pairs, ()))
        self._lab.cut(*pairs)
        yield self._rng.uniform(1, 8)
        self._lab.heal()

    def _reset(self) -> Story:
        pairs = self._pairs(self._rng.randint(1, 3))
        self._begin("reset", sum(pairs, ()))
        self._lab.reset(*pairs)
        yield self._rng.uniform(0.5, 10)
        self._lab.heal()

    def _slow(self) -> Story:
        (host,) = self._some(1)
        rate = f"{self._rng.choice([5, 20, 50])}mbit"
        self._begin("slow", [host], rate)
        self._lab.set_rate(host, rate)
        yield self._rng.uniform(2, 8)
        self._lab.set_rate(host, self._rate)

    def _loss(self) -> Story:
        (host,) = self._some(1)
        percent = self._rng.choice([1, 3, 8])
        self._begin("loss", [host], f"{percent} %")
        self._lab.set_loss(host, percent)
        yield self._rng.uniform(2, 8)
        self._lab.heal()

    def _kill_while_cut(self) -> Story:
        """One dies while two others do not see each other."""
        a, b, victim = self._some(3)
        self._begin("cut", [a, b])
        self._lab.cut((a, b), (b, a))
        yield self._rng.uniform(0.5, 3)
        yield from self._kill_hosts([victim], self._rng.uniform(0.5, 3))
        yield self._rng.uniform(0.5, 3)
        self._lab.heal()

    # ---- room -------------------------------------------------------------------------

    def _full(self) -> Story:
        (host,) = self._some(1)
        self._begin("full", [host])
        ballast = []
        for _ in range(60):
            yield 0.1
            client = self._fleet.clients.get(host)
            if client is None or len(client.under_way) > 16 or not self._load.can_mint(host):
                continue
            if any(thing.attempts[0].outcome in ("timed_out", "store_full") for thing in ballast):
                break
            ballast.append(self._load.fresh(host))
            self._load.put(ballast[-1], host, BALLAST, timeout_s=BALLAST_S)
        yield self._rng.uniform(1, 4)
        for thing in ballast:
            self._load.remove(host, thing)
            yield 0
        while any(thing.removals[-1].outcome == "pending" for thing in ballast):
            yield 0.2

    # ---- drawing ------------------------------------------------------------------------

    def _some(self, count: int) -> list[int]:
        return self._rng.sample(self._hosts, count)

    def _pairs(self, count: int) -> list[tuple[int, int]]:
        return list({tuple(self._some(2)) for _ in range(count)})

    def _begin(self, kind: str, hosts: tuple[int, ...] | list[int], more: str = "") -> None:
        self.happened[kind] = self.happened.get(kind, 0) + 1
        self._faults.begin(kind, hosts, time.monotonic())
        self._say(f"{kind}: host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))} {more}".rstrip())
