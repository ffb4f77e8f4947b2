"""One soak: the loop that lets clients work, faults happen and answers be judged, and what is looked at in the end."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import Lab
from soak import samples
from soak.fleet import Answer, Command, Fleet, close_clients
from soak.judge import Judge
from soak.load import Load, Pace
from soak.samples import Samples
from soak.truth import Faults, Object
from soak.weather import Story, Weather

LOOK_S = 1.0  # between two looks at every daemon
STEPS_S = 10.0  # between two questions for the longest step
ASK_S = 10.0  # for an answer about the state of a daemon
PEACE_S = 120.0  # until all daemons count each other again after a fault
QUIET_S = 1.5  # so long they must do so before it counts as peace
EMPTY_S = 120.0  # until stores are empty after everything was deleted
LEFT_MIB = 96.0  # of memory that a daemon may have at the end beyond what it began with: its tables keep their size
LEFT_DESCRIPTORS = 64
READ_AT_END = 400
GONE_AT_END = 150


@dataclass
class Status:
    """What a daemon said of itself last."""

    at: float
    node: str
    incarnation: int
    members: int
    objects: int
    growing: int
    used: int
    pinned: int
    waiting: int
    clients: int


class Soak:
    def __init__(self, lab: Lab, fleet: Fleet, *, seed: int, pace: Pace, bin_dir: Path, rate: str, say: Callable[[str], None], names_again: bool):
        self._lab = lab
        self._fleet = fleet
        self._say = say
        self._bin_dir = bin_dir
        self.faults = Faults()
        self.judge = Judge(self.faults, names_again=names_again)
        self.load = Load(fleet, self.faults, self.judge, random.Random(f"{seed} load"), pace)
        self.weather = Weather(lab, fleet, self.load, self.faults, random.Random(f"{seed} weather"), say, rate)
        self._calm = random.Random(f"{seed} calm")
        self.began = time.monotonic()
        self.samples = Samples(self.began)
        self.given_up = 0  # daemons that were held for dead although nothing was done to anybody
        self._statuses: dict[int, Status] = {}
        self._look_at = 0.0
        self._steps_at = 0.0
        self._agreed_since: float | None = None
        self._reported = 0

    # ---- the loop -------------------------------------------------------------------

    def run(self, seconds: float, calm_s: tuple[float, float]) -> None:
        self._until_peace("at the start")
        end = time.monotonic() + seconds
        self._for(self._calm.uniform(*calm_s))
        while time.monotonic() < end:
            self._play(self.weather.next_episode())
            self._until_peace("after the fault")
            self._for(self._calm.uniform(*calm_s))
        self.audit()

    def _turn(self) -> None:
        """A moment: answers, commands, looks."""
        for client in self._fleet.ready_pipes(0.005):
            client.deliver()
        now = time.monotonic()
        self.load.step(now)
        self._look(now)
        self._check_clients(now)
        self.judge.decide(now)
        for violation in self.judge.violations[self._reported :]:
            self._say(f"VIOLATION: {violation}")
        self._reported = len(self.judge.violations)

    def _for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._turn()

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                return False
            self._turn()
        return True

    def _play(self, story: Story) -> None:
        for seconds in story:
            self._for(seconds)

    def _until_peace(self, when: str) -> None:
        self._agreed_since = None
        began = time.monotonic()
        if not self._until(lambda: self._agreed_since is not None and time.monotonic() > self._agreed_since + QUIET_S, PEACE_S):
            counts = {host: status.members for host, status in sorted(self._statuses.items())}
            self.judge.wrong(f"{when} the daemons do not find each other within {PEACE_S:.0f} s: they count {counts} members")
        now = time.monotonic()
        self.faults.settle(now)
        if now - began > 10:
            self._say(f"peace took {now - began:.1f} s")

    # ---- looking --------------------------------------------------------------------

    def _look(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        self.samples.look(self._fleet.pids(), now)
        for host, code in self._fleet.ended().items():
            self.judge.wrong(f"the daemon on host {host} has ended by itself: {code}")
            self.faults.begin("kill", [host], now)
            self._fleet.gone(host)
            self._fleet.start(host)
            self.load.new_client(host)
        for host in self._fleet.clients:
            self._ask(host)
        if now >= self._steps_at:
            self._steps_at = now + STEPS_S
            self._look_at_steps(now)

    def _look_at_steps(self, now: float) -> None:
        for host, pid in self._fleet.pids().items():
            if host not in self._fleet.stopped:
                argv = ["env", f"HOPLITE_SOCKET={self._fleet.socket(host)}"]
                step = samples.longest_step(self._bin_dir / "hoplite", argv)
                self.samples.add("longest step, ms", host, pid, now, step)

    def _ask(self, host: int) -> None:
        client = self._fleet.clients[host]
        if any(command.text == "status" for command in client.under_way.values()):
            return

        def then(answer: Answer) -> None:
            if answer.kind == "ok" and self._fleet.clients.get(host) is client:
                node, *numbers = answer.words.split()
                self._noticed(host, Status(began, node, *map(int, numbers)))

        began = time.monotonic()
        client.send(Command(host, "status", began, ASK_S, then))

    def _noticed(self, host: int, status: Status) -> None:
        """Somebody who was held for dead comes back in another incarnation."""
        before = self._statuses.get(host)
        self._statuses[host] = status
        if before and before.node == status.node and before.incarnation < status.incarnation:
            if self.faults.calm(before.at, status.at):
                self.given_up += 1
                self._say(f"host {host} was given up although nothing was done to anybody")
            self._unsettle(host, before.at)
        running = len(self._fleet.clients)
        fresh = [s for h, s in self._statuses.items() if h in self._fleet.clients and s.at > time.monotonic() - 5]
        agreed = len(fresh) == running == self._lab.hosts and all(s.members == running for s in fresh)
        if not agreed:
            if self._agreed_since is not None and self.faults.calm(status.at, status.at):
                self._unsettle(host, status.at - 2 * LOOK_S)
            self._agreed_since = None
        elif self._agreed_since is None:
            self._agreed_since = status.at

    def _unsettle(self, host: int, since: float) -> None:
        if not any(f.kind == "given up" and f.settled > since for f in self.faults.all):
            self.faults.begin("given up", [host], since)

    def _check_clients(self, now: float) -> None:
        for client in [*self._fleet.clients.values(), *self._fleet.leaving]:
            for command in client.overdue(now):
                self.judge.hangs(command.host, command.text, command.began, now)
        done = [client for client in self._fleet.leaving if not client.under_way]
        close_clients(done)
        self._fleet.leaving = [client for client in self._fleet.leaving if client.under_way]

    # ---- the end --------------------------------------------------------------------

    def audit(self) -> None:
        """In peace: everything that must be there is read once more, then all is deleted, and nothing must be left."""
        self.load.busy = False
        self._say("audit: reads what there is")
        self._until(self._nothing_under_way, 150)
        self._until_peace("at the end")
        for thing in self.load.living()[-READ_AT_END:]:
            if self.judge.living(thing, time.monotonic()):
                self._somewhere(lambda host, thing=thing: self.load.get(host, thing, 60))
        for thing in self.load.deleted()[-GONE_AT_END:]:
            self._somewhere(lambda host, thing=thing: self.load.get(host, thing, 0.05))
        self._until(self._nothing_under_way, 150)
        self._say("audit: deletes everything")
        for thing in self._may_be_left():
            self._somewhere(lambda host, thing=thing: self.load.remove(host, thing))
        self._until(self._nothing_under_way, 150)
        self._expect_empty()
        self._for(9)  # the last suspicions
        self._expect_small()

    def _may_be_left(self) -> list[Object]:
        def surely_gone(thing: Object) -> bool:
            ended = max((a.ended for a in thing.attempts), default=thing.born)
            return any(r.outcome == "known" and r.began > ended for r in thing.removals)

        return [thing for thing in self.load.objects.values() if not surely_gone(thing)]

    def _somewhere(self, command: Callable[[int], None]) -> None:
        """On a host that has not too much to do already."""
        while True:
            free = [host for host, client in self._fleet.clients.items() if len(client.under_way) < 20]
            if free:
                command(self._calm.choice(free))
                return
            self._turn()

    def _nothing_under_way(self) -> bool:
        clients = [*self._fleet.clients.values(), *self._fleet.leaving]
        return not any(command.text != "status" for client in clients for command in client.under_way.values())

    def _expect_empty(self) -> None:
        since = time.monotonic()

        def left(status: Status) -> tuple[int, ...]:
            return (status.objects, status.growing, status.used, status.pinned, status.waiting)

        def empty() -> bool:
            statuses = [self._statuses.get(host) for host in self._fleet.clients]
            return all(status and status.at > since and not any(left(status)) for status in statuses)

        if not self._until(empty, EMPTY_S):
            for host, status in sorted(self._statuses.items()):
                if any(left(status)):
                    self.judge.wrong(f"everything was deleted, but host {host} still has something: {status}")

    def _expect_small(self) -> None:
        for name, allowed in (("memory, MiB", LEFT_MIB), ("descriptors", LEFT_DESCRIPTORS)):
            for host in self._fleet.pids():
                last = [series for series in self.samples.of(name) if series.host == host][-1]
                first, now = last.points[0][1], last.points[-1][1]
                if now > first + allowed:
                    self.judge.wrong(f"host {host}: {name}: {now:.0f} at the end with nothing stored, {first:.0f} at its start")
