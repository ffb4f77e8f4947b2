"""One object of each other host to host 1, all at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import stats
from cluster import Cluster
from lab import Lab, LabError
from peers import mpi
from report import Figure, at_most
from rows import MIB, Row, Run, Setting, median_note
from rows.collective import HOPLITE, LIMIT, MPI, after_a_rest

_seeds = itertools.count(1)


def once(cluster: Cluster, size: int) -> float:
    seeds = [next(_seeds) for _ in cluster.receivers]
    for worker, seed in zip(cluster.receivers, seeds, strict=True):
        worker.send(f"put {size} {seed}")
    ids = [worker.answer()["id"] for worker in cluster.receivers]
    answer = cluster.source.ask(f"gather {after_a_rest()} {' '.join(ids)}")
    cluster.source.ask(f"check {size} {' '.join(map(str, seeds))}")
    cluster.remove(*ids)
    return (answer["end_ns"] - answer["start_ns"]) / 1e9


def measure(run: Run) -> Iterator[Figure]:
    setting = run.setting
    objects = setting.hosts - 1
    limit = setting.limit(objects * setting.size)
    if not limit or not objects:
        raise LabError("the receiver's link is the measure: give a rate, and at least 2 hosts")
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=2 * objects * setting.size + 64 * MIB) as cluster,
    ):
        once(cluster, setting.size)  # warms pages and connections
        turns = {HOPLITE: lambda: [once(cluster, setting.size)]}
        if setting.with_peers:
            turns[MPI] = lambda: mpi.run(lab, setting.peers_bin, "gather", setting.size, reps=1)
        samples = run.in_turns(turns)
    note = f"{objects} objects in {median_note(samples)}"
    yield run.figure(stats.ratio(samples[HOPLITE], limit), LIMIT, samples, note=note)


ROWS = (
    Row(
        "gather",
        "an object of each other host to one",
        "gather",
        Setting(9, "500mbit", 8 * MIB),
        measure,
        {LIMIT: at_most(1.05)},
    ),
)
