"""Names that are put and deleted all the time, while a node that has old copies is away for half of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from cluster import ANSWER_S, Cluster, ask_all
from lab import Lab
from report import Figure, at_least, at_most
from rows import MIB, Row, Run, Setting
from rows.crowd import ASK_S, FAILED, of_gets, one
from rows.memory import outside_arena

PER_SECOND = 5000
RATE, BACK, GROWTH = "puts, and as many deletes", "deleted objects that came back", "growth of a daemon's memory"
OLD = 20_000  # objects that the absent node has copies of when it leaves
LOOKED_AT = 20_000  # of the deleted, at each end of the time
WARM = 0.2  # the part of the time after which memory counts
RETURN_S = 60.0


def churn(run: Run) -> Iterator[Figure]:
    """A quarter of the time all are there, then one is away for half of it, then it is back for a quarter."""
    setting = run.setting
    seconds = setting.minutes * 60
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=512 * MIB) as cluster,
    ):
        absent = setting.hosts
        busy, helper = cluster.another_worker(1), cluster.source
        helper.ask(f"crowd_put old {OLD} {setting.size} named", ASK_S)
        cluster.workers[absent].ask(f"crowd_know old {OLD} {setting.size}")
        copied = cluster.workers[absent].ask("crowd_get_all old", ASK_S)
        run.say(f"host {absent} has copies of {copied['done']:,} objects")

        began = time.monotonic()
        busy.send(f"churn churned {seconds:.1f} {PER_SECOND} {setting.size}")

        def memory_at(part: float) -> list[float]:
            time.sleep(max(0.0, began + part * seconds - time.monotonic()))
            return [outside_arena(cluster.pid(host)) / MIB for host in cluster.workers]

        warm = memory_at(WARM)
        memory_at(0.25)
        lab.link_down(absent)
        deleting = cluster.another_worker(2)
        deleting.ask(f"crowd_know old {OLD} {setting.size}")
        time.sleep(min(5.0, seconds / 8))  # until the absent one is known to be away
        deleted = deleting.ask("crowd_remove old", ASK_S)
        run.say(f"{deleted['done']:,} of these deleted while it is away, {deleted['failed']} not")
        memory_at(0.75)
        lab.link_up(absent)
        done = busy.answer(seconds + ANSWER_S)
        end = memory_at(1.0)
        wait_for_members(cluster)
        back = looked_for(cluster, done)

    removals = done["removals"][0]
    yield run.figure(one(done["per_second"]), "/s", {}, what=RATE)
    yield of_gets(run, FAILED, [(1, done), (1, removals)])
    yield run.figure(one(back), "objects", {}, what=BACK, note=f"of {OLD + 2 * LOOKED_AT:,} on each host")
    growth = [later - earlier for later, earlier in zip(end, warm, strict=True)]
    note = "; ".join(f"{earlier:.0f} to {later:.0f} MiB" for later, earlier in zip(end, warm, strict=True))
    yield run.figure(one(max(growth)), "MiB", {"MiB": growth}, what=GROWTH, note=note)


def wait_for_members(cluster: Cluster) -> None:
    deadline = time.monotonic() + RETURN_S
    while time.monotonic() < deadline:
        if all(worker.ask("status")["members"] == len(cluster.workers) for worker in cluster.workers.values()):
            return
        time.sleep(0.1)


def looked_for(cluster: Cluster, done: dict) -> int:
    """How many of the deleted objects a host can still read: of the old ones, and of the first and the last churned."""
    number = round(done["per_second"] * done["seconds"])
    some = min(LOOKED_AT, number)
    looks = (("old", 0, OLD), ("churned", 0, some), ("churned", number - some, some))
    commands = [f"came_back {name} {first} {count}" for name, first, count in looks]
    return sum(answer["found"] for command in commands for answer in ask_all(cluster.workers.values(), command))


ROWS = (
    Row(
        "churn",
        f"{PER_SECOND:,} puts and deletes a second, one node away for half of the time",
        "churn",
        Setting(3, "none", 100, minutes=10),
        churn,
        {RATE: at_least(0.98 * PER_SECOND), FAILED: at_most(0), BACK: at_most(0), GROWTH: at_most(32)},
    ),
)
