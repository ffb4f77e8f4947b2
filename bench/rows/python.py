"""The Python package on one machine, beside the C++ client and memcpy. tools/python installs it for the interpreter used."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator

import stats
from cluster import Cluster, Worker, close_workers
from lab import Lab
from peers import raw
from report import Figure, at_least, at_most
from rows import KIB, MIB, REPO, Row, Run, Setting
from rows.local import place_apart, place_on_cores

OPERATIONS = 10_000  # in one sample
PUTS_PER_SAMPLE = 5
GETS_PER_SAMPLE = 200
PYTHON = REPO / "build" / "venv" / "bin" / "python"
SCRIPT = REPO / "bench" / "python_worker.py"


@contextlib.contextmanager
def started(run: Run, memory: int) -> Iterator[tuple[Cluster, Worker]]:
    """A daemon with its C++ worker, and one in Python."""
    setting = run.setting
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=memory) as cluster,
    ):
        worker = Worker(lab, 1, [PYTHON, SCRIPT, cluster.socket(1)])
        try:
            yield cluster, worker
        finally:
            close_workers([worker])


def rates(run: Run) -> Iterator[Figure]:
    """Small puts and gets, one at a time."""
    size = run.setting.size
    with started(run, 4 * OPERATIONS * max(size, 4 * KIB) + 64 * MIB) as (cluster, worker):
        place_apart(cluster)
        place_on_cores(cluster, worker)
        commands = {verb: f"{verb}_rate {size} {OPERATIONS}" for verb in ("put", "get")}
        for command in commands.values():
            worker.ask(command)  # warms pages and caches
        found = {}
        for verb, command in commands.items():
            found[verb] = run.in_turns({
                "Python": lambda command=command: [worker.ask(command)["seconds"]],
                "C++": lambda command=command: [cluster.source.ask(command + " 1")["seconds"]],
            })  # fmt: skip
    for verb, samples in found.items():
        per_second = (f"{who} {OPERATIONS / statistics.median(seconds):,.0f}/s" for who, seconds in samples.items())
        value = stats.ratio(samples["C++"], samples["Python"])
        yield run.figure(value, "x C++", samples, what=f"{verb}s one at a time", note=", ".join(per_second))


def large(run: Run) -> Iterator[Figure]:
    """A large put copies once, a get does not."""
    setting = run.setting
    with started(run, 3 * setting.size + 64 * MIB) as (_, worker):
        command = f"timed_puts {setting.size} {PUTS_PER_SAMPLE}"
        worker.ask(command)
        samples = run.in_turns({
            "Hoplite": lambda: worker.ask(command)["seconds"],
            "memcpy": lambda: raw.memcpy_shm(setting.peers_bin, setting.size, reps=PUTS_PER_SAMPLE)[0],
        })  # fmt: skip
        gets = run.in_turns({"get": lambda: worker.ask(f"timed_gets {setting.size} {GETS_PER_SAMPLE}")["seconds"]})
    value = stats.summarize(statistics.median(samples["memcpy"]) / seconds for seconds in samples["Hoplite"])
    rates = (f"{who} {setting.size / statistics.median(s) / 1e9:.2f} GB/s" for who, s in samples.items())
    yield run.figure(value, "x memcpy", samples, what="put", note=", ".join(rates))
    yield run.figure(stats.summarize(seconds * 1e6 for seconds in gets["get"]), "us", gets, what="get, without a copy")


ROWS = (
    Row(
        "python-rate",
        "small puts and gets from Python",
        "Python",
        Setting(1, "none", KIB),
        rates,
        {"puts one at a time": at_least(0.5), "gets one at a time": at_least(0.5)},
    ),
    Row(
        "python-large",
        "a large array put and got from Python",
        "Python",
        Setting(1, "none", 64 * MIB),
        large,
        {"put": at_least(0.9), "get, without a copy": at_most(50)},
    ),
)
