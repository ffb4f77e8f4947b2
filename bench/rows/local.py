"""One client and the daemon of its own host: how many small operations, how fast a large put."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator

import stats
from cluster import Cluster, Worker
from lab import Lab
from peers import raw
from report import Figure, at_least
from rows import KIB, MIB, Row, Run, Setting

OUTSTANDING = 64
OPERATIONS = 20_000  # in one sample: about half a second
BARE = "bare unix socket"
PUTS_PER_SAMPLE = 5


def place_apart(cluster: Cluster) -> None:
    """The client on one core and the daemon on another, as the bare peer is placed.

    Where the scheduler puts two processes that wake each other decides the pace
    more than what they do, and it decides anew in each run.
    """
    place_on_cores(cluster, cluster.source)


def place_on_cores(cluster: Cluster, worker: Worker) -> None:
    """Such a client and the daemon."""
    cores = sorted(os.sched_getaffinity(0))
    for pid, core in ((worker.process.pid, cores[0]), (cluster.pid(1), cores[-1])):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), {core})


def rates(run: Run) -> Iterator[Figure]:
    """Operations per second: many at a time, and one at a time beside bare round trips."""
    setting = run.setting
    memory = 2 * OPERATIONS * max(setting.size, 4 * KIB) + 64 * MIB
    samples: dict[str, list[float]] = {}

    def sample(what: str, seconds: float) -> None:
        samples.setdefault(what, []).append(OPERATIONS / seconds)

    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=memory) as cluster,
    ):
        place_apart(cluster)
        for rep in range(-1, setting.reps):
            for outstanding in (1, OUTSTANDING):
                for verb in ("put", "get"):
                    command = f"{verb}_rate {setting.size} {OPERATIONS} {outstanding}"
                    sample(f"{verb}s, {outstanding} outstanding", cluster.source.ask(command)["seconds"])
            bare = raw.unix_round_trips(setting.peers_bin, placement="apart", rounds=OPERATIONS, batches=1)
            sample(BARE, OPERATIONS * bare[0])
            if rep < 0:
                samples.clear()  # the first round warms pages and caches
                continue
            run.say(f"{rep + 1} of {setting.reps}: " + ", ".join(f"{what} {per_s[-1]:,.0f}/s" for what, per_s in samples.items()))
    yield from rate_figures(run, samples)


def rate_figures(run: Run, samples: dict[str, list[float]]) -> Iterator[Figure]:
    """`samples` are per second."""
    for verb in ("put", "get"):
        what = f"{verb}s, {OUTSTANDING} outstanding"
        per_second = {f"{what}, per second": samples[what]}
        yield run.figure(stats.summarize(samples[what]), "/s", per_second, what=what)
    for verb in ("put", "get"):
        what = f"{verb}s, 1 outstanding"
        per_second = {f"{who}, per second": samples[who] for who in (what, BARE)}
        value = stats.ratio(samples[what], samples[BARE])
        note = f"{statistics.median(samples[what]):,.0f}/s, {BARE} {statistics.median(samples[BARE]):,.0f}/s"
        yield run.figure(value, f"x {BARE}", per_second, what=f"{verb}s one at a time", note=note)


def large_put(run: Run) -> Iterator[Figure]:
    """Copies from warm memory into the store, beside copies into warm shared memory."""
    setting = run.setting
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=2 * setting.size + 64 * MIB) as cluster,
    ):
        command = f"timed_puts {setting.size} {PUTS_PER_SAMPLE}"
        cluster.source.ask(command)  # "in steady state"
        samples = run.in_turns({
            "Hoplite": lambda: cluster.source.ask(command)["seconds"],
            "memcpy": lambda: raw.memcpy_shm(setting.peers_bin, setting.size, reps=PUTS_PER_SAMPLE)[0],
        })  # fmt: skip
    value = stats.summarize(statistics.median(samples["memcpy"]) / seconds for seconds in samples["Hoplite"])
    rates = (f"{who} {setting.size / statistics.median(s) / 1e9:.2f} GB/s" for who, s in samples.items())
    yield run.figure(value, "x memcpy", samples, note=", ".join(rates))


ROWS = (
    Row(
        "local-rate",
        "small puts and gets per second by one client",
        "local",
        Setting(1, "none", KIB),
        rates,
        {
            f"puts, {OUTSTANDING} outstanding": at_least(30_000),
            f"gets, {OUTSTANDING} outstanding": at_least(50_000),
            "puts one at a time": at_least(0.7),
            "gets one at a time": at_least(0.7),
        },
    ),
    Row(
        "local-put",
        "a large put from warm memory",
        "local put",
        Setting(1, "none", 64 * MIB),
        large_put,
        {"x memcpy": at_least(0.8)},
    ),
)
