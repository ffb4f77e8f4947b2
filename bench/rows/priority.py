"""A small object that is urgent, while large ones are being broadcast on the same links."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator

import stats
from cluster import Cluster, Worker
from lab import Lab, LabError
from report import Figure, at_least, at_most
from rows import MIB, Row, Run, Setting, median_note

BROADCASTS = 8
LARGE = 256 * MIB
REST_S = 0.3  # between two urgent gets: the links' shapers and the broadcasts recover
ALONE = "x alone"
SHARE = "the least of equal streams / the most"

_seeds = itertools.count(1)


def urgent_get(cluster: Cluster, host: int, size: int) -> float:
    """Seconds in which a host gets a fresh object from host 1, at high priority."""
    seed = next(_seeds)
    object_id = cluster.source.ask(f"put {size} {seed}")["id"]
    worker = cluster.workers[host]
    answer = worker.ask(f"get {object_id} {time.monotonic_ns() + round(REST_S * 1e9)} high")
    worker.ask(f"check {size} {seed}")
    worker.ask("release")
    cluster.source.ask(f"remove {object_id}")
    return (answer["end_ns"] - answer["start_ns"]) / 1e9


def gets_by_turns(cluster: Cluster, size: int, count: int) -> list[float]:
    hosts = itertools.cycle(host for host in cluster.workers if host != 1)
    return [urgent_get(cluster, next(hosts), size) for _ in range(count)]


class Background:
    """Large objects of host 1 on their way to all others."""

    def __init__(self, cluster: Cluster):
        self._ids = [cluster.source.ask(f"put {LARGE} {next(_seeds)}")["id"] for _ in range(BROADCASTS)]
        self._probe = cluster.another_worker(2)
        self._receivers: list[Worker] = [cluster.another_worker(host) for host in cluster.workers if host != 1]
        for receiver in self._receivers:
            receiver.send(f"get_many {' '.join(self._ids)}")

    def growth(self, seconds: float) -> list[int]:
        """By how many bytes those have grown on host 2 that come by one connection: the one that most come by."""
        before = self._progress()
        time.sleep(seconds)
        after = self._progress()
        by_parent: dict[str, list[int]] = {}
        for then, now in zip(before, after):
            if then["parent"] and then["parent"] == now["parent"]:
                by_parent.setdefault(now["parent"], []).append(now["bytes"] - then["bytes"])
        if not by_parent:
            raise LabError("no broadcast has kept its parent on host 2")
        return max(by_parent.values(), key=len)

    def _progress(self) -> list[dict]:
        return self._probe.ask(f"progress {' '.join(self._ids)}")["objects"]

    def finish(self, cluster: Cluster) -> None:
        for receiver in self._receivers:
            receiver.answer()
            receiver.ask("release")
        cluster.source.ask(f"remove {' '.join(self._ids)}")
        cluster.end_extra_workers()


def beside_broadcasts(run: Run) -> Iterator[Figure]:
    setting = run.setting
    alone: list[float] = []
    beside: list[float] = []
    shares: list[float] = []
    memory = BROADCASTS * LARGE + 16 * setting.size + 64 * MIB
    with Lab(setting.hosts, setting.rate) as lab, Cluster(lab, setting.bin_dir, memory=memory) as cluster:
        run.warm_up(lambda: gets_by_turns(cluster, setting.size, setting.hosts - 1))
        for rep in range(setting.reps):
            calm = gets_by_turns(cluster, setting.size, 2 * (setting.hosts - 1))
            background = Background(cluster)
            time.sleep(4)  # they have begun, and their plans have settled
            grown = background.growth(seconds=6)
            shares.append(min(grown) / max(grown))
            busy = gets_by_turns(cluster, setting.size, 2 * (setting.hosts - 1))
            background.finish(cluster)
            alone += calm
            beside += busy
            run.say(
                f"{rep + 1} of {setting.reps}: alone {stats.format_seconds(statistics.median(calm))}, "
                f"beside {BROADCASTS} broadcasts {stats.format_seconds(statistics.median(busy))}, "
                f"{len(grown)} streams of one connection {min(grown) / MIB:.1f} to {max(grown) / MIB:.1f} MiB"
            )
    samples = {"alone": alone, "beside": beside}
    yield run.figure(
        stats.ratio(beside, statistics.median(alone)), ALONE, samples, note=median_note(samples, setting.limit())
    )
    yield run.figure(stats.ratio(shares, 1), "x", {"share": shares}, what=SHARE)


ROWS = (
    Row(
        "priority",
        f"a get at high priority beside {BROADCASTS} broadcasts of {stats.format_size(LARGE)}",
        "urgent get",
        Setting(4, "500mbit", 4 * MIB, reps=3),
        beside_broadcasts,
        {ALONE: at_most(1.5), SHARE: at_least(0.9)},
    ),
)
