"""One large object to one other host: at full speed, and with small ones beside it."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator

import stats
from cluster import Cluster, Worker
from lab import Lab, LabError
from peers import iperf, mpi, raw
from report import Figure, at_least, at_most
from rows import GIB, KIB, MIB, Row, Run, Setting, median_note
from rows.broadcast import Broadcast, together

HOPLITE, IPERF, MPI, TCP = "Hoplite", "iperf3", "Open MPI", "bare TCP"

SMALL_GETS = 100
SMALL_SIZE = KIB
PAUSE_MS = 20  # between gets: 2 s of the transfer with all its ups and downs, instead of a moment
SETTLE_S = 1.0  # until TCP has filled the queue of the link

_names = itertools.count()


def store_size(size: int) -> int:
    return size + size // 4 + 64 * MIB


def full_speed(run: Run) -> Iterator[Figure]:
    setting = run.setting
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        transfer = Broadcast(cluster, setting.size)
        transfer.once()  # the arena is warm from here on
        samples = run.in_turns({
            HOPLITE: lambda: [together(transfer.once())],
            IPERF: lambda: [8 * setting.size / iperf.run(lab, size=setting.size)],
            MPI: lambda: mpi.run(lab, setting.peers_bin, "oneway", setting.size, reps=1),
        })  # fmt: skip
    better = min(statistics.median(samples[peer]) for peer in (IPERF, MPI))
    value = stats.summarize(better / seconds for seconds in samples[HOPLITE])
    rates = (f"{who} {setting.size / statistics.median(s) / 1e9:.2f} GB/s" for who, s in samples.items())
    yield run.figure(value, "x the better", samples, note=", ".join(rates))


# ---- small gets beside it ------------------------------------------------------------


class LoadedLink:
    """A link on which a large object is being transferred, again and again."""

    def __init__(self, cluster: Cluster, size: int):
        self._cluster = cluster
        self._transfer = Broadcast(cluster, size)
        self._object_id = ""

    def __enter__(self) -> LoadedLink:
        self._object_id = self._transfer.put()
        start_ns = self._transfer.start(self._object_id)
        time.sleep(max(0, (start_ns - time.monotonic_ns()) / 1e9) + SETTLE_S)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._ended_ns = min(a.end_ns for a in self._transfer.arrivals())
            self._cluster.remove(self._object_id)

    def check_busy_until(self, at_ns: int) -> None:
        if self._ended_ns < at_ns:
            raise LabError("the large object arrived before the small ones: make it larger")


def small_round_trips(setting: Setting, lab: Lab, getter: Worker, putter: Worker) -> dict[str, list[float]]:
    """Hoplite's gets and bare round trips, both at once: they meet the same queues."""
    name = f"small{next(_names)}"
    putter.ask(f"put_small {name} {SMALL_GETS} {SMALL_SIZE}")
    getter.send(f"get_small {name} {SMALL_SIZE} {PAUSE_MS}")
    bare = raw.tcp_pingpong(lab, setting.peers_bin, SMALL_SIZE, rounds=SMALL_GETS, pause_ms=PAUSE_MS)
    return {HOPLITE: getter.answer()["seconds"], TCP: bare}


def beside_a_transfer(run: Run) -> Iterator[Figure]:
    setting = run.setting
    samples: dict[str, list[float]] = {HOPLITE: [], TCP: []}
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        getter, putter = cluster.another_worker(2), cluster.another_worker(1)
        quiet = small_round_trips(setting, lab, getter, putter)
        for rep in range(setting.reps):
            with LoadedLink(cluster, setting.size) as link:
                seconds = small_round_trips(setting, lab, getter, putter)
                last_ns = time.monotonic_ns()
            link.check_busy_until(last_ns)
            for who in samples:
                samples[who].append(statistics.median(seconds[who]))
            run.say(f"{rep + 1} of {setting.reps}: {median_note(seconds)}")
    value = stats.ratio(samples[HOPLITE], samples[TCP])
    note = f"{median_note(samples)}; without the transfer {median_note(quiet)}"
    yield run.figure(value, "x bare TCP", samples, note=note)


ROWS = (
    Row(
        "bulk",
        "a large object to one other host at the machine's speed",
        "one way",
        Setting(2, "none", GIB),
        full_speed,
        {"x the better": at_least(0.95)},
    ),
    Row(
        "loaded",
        "small gets while a large transfer shares the link",
        "100 gets of 1 KiB beside",
        Setting(2, "500mbit", GIB),
        beside_a_transfer,
        {"x bare TCP": at_most(2)},
    ),
)
