"""One object from host 1 to all others: at once, one after another, with a death."""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import stats
from cluster import Cluster, Worker, WorkerError, ask_all
from lab import Lab, LabError
from peers import REST_MS
from report import Figure, Goal, at_most
from rows import KIB, MIB, UNDISTURBED, Row, Run, Setting, sleep_until
from rows.collective import LIMIT, TUNED, beside_peers, rows_by_size

_seeds = itertools.count(1)


@dataclass(frozen=True)
class Arrival:
    """One receiver: when it asked, and when it had everything."""

    host: int
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def together(arrivals: list[Arrival]) -> float:
    """Seconds from the first request to the last byte."""
    return (max(a.end_ns for a in arrivals) - min(a.start_ns for a in arrivals)) / 1e9


class Broadcast:
    """Broadcasts of fresh objects in one cluster, each checked and deleted again."""

    def __init__(self, cluster: Cluster, size: int):
        self._cluster = cluster
        self._size = size
        self._seed = 0

    def put(self) -> str:
        """A new object on host 1; its id."""
        self._seed = next(_seeds)
        return self._cluster.source.ask(f"put {self._size} {self._seed}")["id"]

    def start(self, object_id: str, gap_s: float = 0) -> int:
        """Lets all others get it after a rest, `gap_s` apart; when the first does."""
        at_ns = time.monotonic_ns() + REST_MS * 1_000_000
        for i, worker in enumerate(self._cluster.receivers):
            worker.send(f"get {object_id} {at_ns + round(i * gap_s * 1e9)}")
        return at_ns

    def arrivals(self, but_not: int | None = None) -> list[Arrival]:
        """Waits for all receivers and checks their bytes.

        The receiver `but_not` is expected to fail.
        """
        answers = [self._answer(worker, but_not) for worker in self._cluster.receivers]
        survivors = [w for w in self._cluster.receivers if w.host != but_not]
        ask_all(survivors, f"check {self._size} {self._seed}")
        return [answer for answer in answers if answer]

    def _answer(self, worker: Worker, but_not: int | None) -> Arrival | None:
        try:
            answer = worker.answer()
        except WorkerError:
            if worker.host == but_not:
                return None
            raise
        if worker.host == but_not:
            return None  # had everything before it was killed
        return Arrival(worker.host, answer["start_ns"], answer["end_ns"])

    def once(self, gap_s: float = 0) -> list[Arrival]:
        object_id = self.put()
        self.start(object_id, gap_s)
        arrivals = self.arrivals()
        self._cluster.remove(object_id)
        return arrivals


def store_size(size: int) -> int:
    """Room for an object and the one before it, should that be freed late."""
    return 3 * size + 64 * MIB


def at_once(cluster: Cluster, size: int) -> float:
    return together(Broadcast(cluster, size).once())


def one_after_another(run: Run, gap_s: float | None = None) -> Iterator[Figure]:
    """Every `gap_s`, or every tenth of the limit."""
    setting = run.setting
    limit = setting.limit()
    if not limit:
        raise LabError("arrivals are timed by the link's rate: give one")
    worst, last, spread = [], [], []
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        broadcast = Broadcast(cluster, setting.size)
        run.warm_up(broadcast.once)
        for rep in range(setting.reps):
            own = [arrival.seconds for arrival in broadcast.once(gap_s=gap_s or 0.1 * limit)]
            worst.append(max(own))
            last.append(own[-1])
            spread += own
            times = " ".join(f"{seconds / limit:.2f}" for seconds in own)
            run.say(f"{rep + 1} of {setting.reps}: each receiver's time / limit: {times}")
    samples = {"worst receiver": worst, "all receivers": spread}
    note = f"median receiver {stats.format_seconds(statistics.median(spread))}, the last to ask {stats.format_seconds(statistics.median(last))}"
    yield run.figure(stats.ratio(worst, limit), "x limit", samples, note=note)


# ---- a relay dies ------------------------------------------------------------------


def find_relay(probes: dict[int, Worker], object_id: str) -> int:
    """A host that is being sent the object and sends it on: the middle one, by progress."""
    for probe in probes.values():
        probe.send(f"object {object_id}")
    seen = {host: probe.answer() for host, probe in probes.items()}
    relays = [h for h, o in seen.items() if o.get("parent") and o.get("receivers") and h != 1]
    if not relays:
        raise LabError(f"no host relays the object: {seen}")
    relays.sort(key=lambda host: seen[host]["bytes"])
    return relays[len(relays) // 2]


def with_a_death(cluster: Cluster, broadcast: Broadcast, half_s: float) -> tuple[float, str]:
    """A broadcast in which a relay is killed after `half_s`; seconds of the others, and what happened."""
    probes = {host: cluster.another_worker(host) for host in cluster.workers if host != 1}
    object_id = broadcast.put()
    start_ns = broadcast.start(object_id)
    sleep_until(start_ns + round(half_s * 0.6 * 1e9))
    relay = find_relay(probes, object_id)
    sleep_until(start_ns + round(half_s * 1e9))
    cluster.kill(relay)
    seconds = together(broadcast.arrivals(but_not=relay))
    cluster.end_extra_workers()
    cluster.restart(relay)
    cluster.remove(object_id)
    return seconds, f"host {relay} killed half-way"


def relay_killed(run: Run) -> Iterator[Figure]:
    setting = run.setting
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        broadcast = Broadcast(cluster, setting.size)
        run.warm_up(broadcast.once)
        figure = run.with_deaths(
            lambda: together(broadcast.once()), lambda half_s: with_a_death(cluster, broadcast, half_s), "a relay"
        )
    yield figure


def row(name: str, about: str, setting: Setting, goals: dict[str, Goal | None]) -> Row:
    return Row(name, about, "broadcast", setting, beside_peers("bcast", at_once, Setting.limit, store_size), goals)


def row_apart(kib: int) -> Row:
    """Neither together nor one after the other: each asks while others are served."""
    setting = Setting(8, "500mbit", kib * KIB)
    measure = functools.partial(one_after_another, gap_s=1e-3)
    return Row(f"broadcast-{kib}kib-apart", "receivers ask 1 ms apart", "1 ms apart", setting, measure, {LIMIT: None})


ROWS = (
    row("broadcast", "one object to all hosts at once", Setting(8, "500mbit", 32 * MIB), {LIMIT: at_most(1.05)}),
    row("broadcast-128mib", "a larger one", Setting(8, "500mbit", 128 * MIB), {LIMIT: at_most(1.04)}),
    row("broadcast-16hosts", "more hosts", Setting(16, "200mbit", 32 * MIB), {LIMIT: at_most(1.06)}),
    row(
        "broadcast-1mib",
        "a small one",
        Setting(8, "500mbit", MIB),
        {LIMIT: at_most(1.1), f"x {TUNED}": at_most(1)},
    ),
    *rows_by_size("broadcast", row, of_the_best=1.5),
    *(row_apart(kib) for kib in (16, 64, 256)),
    Row(
        "staggered",
        "receivers arrive one after another, every 0.1 x limit",
        "staggered",
        Setting(8, "500mbit", 32 * MIB),
        one_after_another,
        {"x limit": at_most(1.1)},
    ),
    Row(
        "relay-killed",
        "kill -9 of a relay half-way",
        "relay killed",
        Setting(8, "500mbit", 32 * MIB),
        relay_killed,
        {UNDISTURBED: at_most(1.15)},
    ),
)
