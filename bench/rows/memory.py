"""What a daemon needs beside its arena: at rest, and for each small object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import stats
from cluster import Cluster
from lab import Lab, LabError
from report import Figure, at_most
from rows import KIB, MIB, Row, Run, Setting

OBJECTS = 100_000
EACH, AT_REST = f"each of {OBJECTS:,} objects", "at rest"


def outside_arena(pid: int) -> int:
    """Resident bytes of a process that are not shared memory, where the arena is."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(status[name].split()[0]) * KIB for name in ("RssAnon", "RssFile"))


def per_object(run: Run) -> Iterator[Figure]:
    """A fresh cluster for each repetition: what was freed does not go back to the system."""
    setting = run.setting
    at_rest, each = [], []
    for rep in range(setting.reps):
        with (
            Lab(setting.hosts, setting.rate) as lab,
            Cluster(lab, setting.bin_dir, memory=2 * OBJECTS * max(setting.size, KIB) + 64 * MIB) as cluster,
        ):
            before = outside_arena(cluster.pid(1))
            cluster.source.ask(f"keep {OBJECTS} {setting.size}")
            kept = cluster.source.ask("status")["objects"]
            if kept != OBJECTS:
                raise LabError(f"the store has {kept} objects instead of {OBJECTS}")
            at_rest.append(before / MIB)
            each.append((outside_arena(cluster.pid(1)) - before) / OBJECTS / KIB)
        run.say(f"{rep + 1} of {setting.reps}: {at_rest[-1]:.1f} MiB at rest, {each[-1]:.2f} KiB for each object")
    yield run.figure(stats.summarize(each), "KiB", {"KiB": each}, what=EACH)
    yield run.figure(stats.summarize(at_rest), "MiB", {"MiB": at_rest}, what=AT_REST)


ROWS = (
    Row(
        "memory",
        "the daemon's memory outside the arena",
        "daemon memory",
        Setting(2, "none", KIB, reps=5),
        per_object,
        {EACH: at_most(3), AT_REST: at_most(50)},
    ),
)
