"""Very many small objects: what they cost while others are at work, when a daemon dies, and all to another node at once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import stats
from cluster import Cluster, Worker, ask_all
from lab import Lab, LabError
from report import Figure, at_most
from rows import KIB, MIB, Row, Run, Setting

FALSE_DEATHS, FALSE_LOST, FAILED = "false deaths", "false words of a loss", "gets that failed"
SLOWEST, IDLE, COMPLETE = "slowest local get", "idle, of a core", "the new state is complete after"
FAILED_AFTER, DEATHS_AFTER = "gets that failed after a death", "false deaths after a death"
DIALS, TOGETHER = "connections dialled", "all of them"
FEW = 100
SHARED = 20_000  # minted ids that other hosts are told
PAUSE_MS = 2  # between the gets of a client: the stalls are looked for, not the rate
IDLE_S = 75.0  # longer than any period: what is done once a minute counts
USED_AFTER_S = 30.0
SETTLE_S = 10.0
STATE_S = 180.0  # until a new state is complete; then the row fails
ASK_S = 3600  # for a worker to put a million objects


# ---- what is looked at -------------------------------------------------------------------


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process since its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_percent(pids: list[int], seconds: float) -> list[float]:
    """Of a core, each process; while nobody asks for anything."""
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    return [(cpu_seconds(pid) - earlier) / seconds * 100 for pid, earlier in zip(pids, before, strict=True)]


def dials(pid: int) -> int:
    """Connections that the network namespace of a process has asked for."""
    lines = [line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if line.startswith("Tcp:")]
    return int(dict(zip(*lines, strict=True))["ActiveOpens"])


class Words:
    """What daemons say wrongly: counted in their logs and by their incarnations, from one moment to another."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._lives = self._incarnations()
        self._losses = self._lost()

    def _incarnations(self) -> dict[str, int]:
        statuses = ask_all(self._cluster.workers.values(), "status")
        return {status["node"]: status["incarnation"] for status in statuses}

    def _lost(self) -> int:
        return len(re.findall(r"\bis lost\b|\bare lost\b", self._cluster.logs()))

    def false_deaths(self) -> int:
        """Nodes that came back from being given up: nobody was killed, stopped or cut off."""
        return sum(life - self._lives.get(node, life) for node, life in self._incarnations().items())

    def false_losses(self) -> int:
        return self._lost() - self._losses


def one(value: float) -> stats.Summary:
    return stats.summarize([value])


# ---- a million ---------------------------------------------------------------------------


class Crowd:
    """Objects of two kinds, put on host 1; all hosts know the names, and some of the minted ids."""

    KINDS = ("minted", "named")

    def __init__(self, run: Run, cluster: Cluster):
        self._run = run
        self._cluster = cluster
        setting = run.setting
        for kind in self.KINDS:
            seconds = cluster.source.ask(f"crowd_put {kind} {setting.objects} {setting.size} {kind}", ASK_S)["seconds"]
            run.say(f"{setting.objects:,} {kind} objects put in {seconds:.1f} s")
        cluster.source.ask(f"crowd_share minted {SHARED} crowd-ids")
        for worker in cluster.receivers:
            self.tell(worker)

    def tell(self, worker: Worker) -> None:
        worker.ask(f"crowd_learn minted {self._run.setting.size} crowd-ids")
        worker.ask(f"crowd_know named {self._run.setting.objects} {self._run.setting.size}", ASK_S)

    def start(self, workers: list[Worker], seconds: float) -> Users:
        """Two clients on each host, one for each kind, that get and put for a while."""
        users = []
        for worker in workers:
            other = self._cluster.another_worker(worker.host)
            if worker is self._cluster.source:  # only the client that put the minted ones knows all of them
                other.ask(f"crowd_know named {self._run.setting.objects} {self._run.setting.size}", ASK_S)
            else:
                self.tell(other)
            users += [(worker, "minted"), (other, "named")]
        for worker, kind in users:
            worker.send(f"crowd_use {kind} {seconds:.1f} {PAUSE_MS}")
        return Users([worker for worker, _ in users], seconds)


class Users:
    """Clients that are at work."""

    def __init__(self, workers: list[Worker], seconds: float):
        self._workers = workers
        self._seconds = seconds

    def answers(self) -> list[tuple[int, dict]]:
        """What each has seen, with its host."""
        return [(worker.host, worker.answer(self._seconds + 120)) for worker in self._workers]


def of_gets(run: Run, what: str, answers: list[tuple[int, dict]]) -> Figure:
    failed = sum(answer["failed"] for _, answer in answers)
    gets = failed + sum(answer["done"] for _, answer in answers)
    reasons = [reason["text"] for _, answer in answers for reason in answer["reasons"]]
    return run.figure(one(failed), "gets", {}, what=what, note=f"of {gets:,}" + (f"; e.g. {reasons[0]}" if reasons else ""))


def memory_for(setting: Setting) -> int:
    return 2 * len(Crowd.KINDS) * setting.objects * max(setting.size, 256) + 256 * MIB


def million(run: Run) -> Iterator[Figure]:
    setting = run.setting
    with (
        Lab(setting.hosts + 1, setting.rate) as lab,  # the last for a daemon that joins later
        Cluster(lab, setting.bin_dir, memory=memory_for(setting), hosts=setting.hosts) as cluster,
    ):
        words = Words(cluster)
        crowd = Crowd(run, cluster)
        answers = crowd.start(list(cluster.workers.values()), setting.minutes * 60).answers()
        lost = words.false_losses() + sum(answer["lost"] for _, answer in answers)
        yield run.figure(one(words.false_deaths()), "nodes", {}, what=FALSE_DEATHS)
        yield run.figure(one(lost), "words", {}, what=FALSE_LOST)
        yield of_gets(run, FAILED, answers)
        local = [answer for host, answer in answers if host == 1]
        note = f"median {1e6 * max(a['median'] for a in local):.0f} us, one in 1,000 took {1e3 * max(a['of_1000'] for a in local):.1f} ms"
        yield run.figure(one(1000 * max(answer["slowest"] for answer in local)), "ms", {}, what=SLOWEST, note=note)
        cluster.end_extra_workers()
        time.sleep(SETTLE_S)
        idle = idle_percent([cluster.pid(host) for host in cluster.workers], IDLE_S)
        yield run.figure(one(max(idle)), "%", {"%": idle}, what=IDLE, note=", ".join(f"{percent:.2f} %" for percent in idle))
        yield from after_a_death(run, cluster, crowd)


def after_a_death(run: Run, cluster: Cluster, crowd: Crowd) -> Iterator[Figure]:
    """The last daemon, which has no object that only it has, is killed, and another one joins."""
    victim, spare = run.setting.hosts, run.setting.hosts + 1
    words = Words(cluster)
    users = crowd.start([worker for host, worker in cluster.workers.items() if host != victim], USED_AFTER_S)
    began = time.monotonic()
    cluster.lose(victim)
    cluster.join(spare)
    watcher = {host: cluster.another_worker(host) for host in cluster.workers}
    complete_s = time_until_complete(run, watcher, began)
    answers = users.answers()
    deaths = words.false_deaths()
    yield run.figure(one(complete_s), "s", {}, what=COMPLETE)
    yield of_gets(run, FAILED_AFTER, answers)
    yield run.figure(one(deaths), "nodes", {}, what=DEATHS_AFTER)


def time_until_complete(run: Run, workers: dict[int, Worker], began: float) -> float:
    """Until all daemons count each other and the homes together know every object."""
    expected = len(Crowd.KINDS) * run.setting.objects
    while True:
        statuses = ask_all(workers.values(), "status")
        entries = sum(status["directory_entries"] for status in statuses)
        # The users have some objects of their own there for a moment. An entry at two homes is not complete either.
        if expected <= entries <= expected + FEW and all(status["members"] == len(workers) for status in statuses):
            return time.monotonic() - began
        if time.monotonic() > began + STATE_S:
            members = [status["members"] for status in statuses]
            raise LabError(f"after {STATE_S:.0f} s the homes know {entries:,} of {expected:,} objects; {members} members")
        time.sleep(0.1)


# ---- many at once to another node ------------------------------------------------------


def rush(run: Run) -> Iterator[Figure]:
    setting = run.setting
    seconds: list[float] = []
    deaths = dialled = failed = 0
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=4 * setting.objects * setting.size + 64 * MIB) as cluster,
    ):
        getter = cluster.workers[2]
        for rep in range(-1, setting.reps):  # the first makes connections and warm memory, and is not counted
            cluster.source.ask(f"crowd_put rush {setting.objects} {setting.size} minted", ASK_S)
            cluster.source.ask(f"crowd_share rush {setting.objects} rush-{rep}")
            getter.ask(f"crowd_learn rush {setting.size} rush-{rep}")
            words = Words(cluster)
            before = sum(dials(cluster.pid(host)) for host in cluster.workers)
            answer = getter.ask("crowd_get_all rush", ASK_S)
            cluster.source.ask("crowd_remove rush", ASK_S)
            run.say(f"{rep + 1} of {setting.reps}: {answer['seconds']:.2f} s, {answer['failed']} failed")
            if rep >= 0:
                seconds.append(answer["seconds"])
                deaths += words.false_deaths()
                dialled += sum(dials(cluster.pid(host)) for host in cluster.workers) - before
                failed += answer["failed"]
    yield run.figure(stats.summarize(seconds), "s", {"Hoplite": seconds}, what=TOGETHER)
    yield run.figure(one(failed), "gets", {}, what=FAILED)
    yield run.figure(one(deaths), "nodes", {}, what=FALSE_DEATHS)
    yield run.figure(one(dialled), "connections", {}, what=DIALS)


ROWS = (
    Row(
        "million",
        "so many minted and so many named objects on one node, used by clients on all; then a death and a join",
        "3 daemons,",
        Setting(3, "none", 100, objects=1_000_000, minutes=5),
        million,
        {
            FALSE_DEATHS: at_most(0),
            FALSE_LOST: at_most(0),
            FAILED: at_most(0),
            SLOWEST: at_most(60),
            IDLE: at_most(2),
            COMPLETE: at_most(20),
            FAILED_AFTER: at_most(0),
            DEATHS_AFTER: at_most(0),
        },
    ),
    Row(
        "rush",
        "gets of many objects of another node, all at once",
        "gets",
        Setting(2, "none", 16 * KIB, reps=5, objects=40_000),
        rush,
        {TOGETHER: at_most(2), FAILED: at_most(0), FALSE_DEATHS: at_most(0), DIALS: at_most(0)},
    ),
)
