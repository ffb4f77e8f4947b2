"""A hundred daemons on one host: how they find each other, what they need when idle, ten deaths, and one object to all."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import processes
from cluster import DAEMON, WORKER, Worker, ask_all, close_workers
from lab import Lab, LabError
from report import Figure, at_most
from rows import MIB, Row, Run, Setting
from rows.crowd import ASK_S, cpu_seconds, one

FORMED, IDLE, TRAFFIC, KNOWN, BROADCAST = (
    "all know all after", "idle, of a core each", "idle, sent by each", "ten deaths known to all after", "to all that live",
)  # fmt: skip
MEMORY = 64 * MIB
FIRST_PORT = 7500
VICTIMS = 10
PATIENCE_S = 180.0
SETTLE_S = 15.0
IDLE_S = 75.0  # longer than any period: what is done once a minute counts
KIB = 1 << 10


class Swarm:
    """Daemons on loopback, all in one network namespace, and a client of each."""

    def __init__(self, lab: Lab, setting: Setting):
        self._lab = lab
        self._bin = setting.bin_dir
        self._count = setting.objects
        self._folder = tempfile.TemporaryDirectory(prefix="hoplite-swarm-")
        self._daemons: list[subprocess.Popen] = []
        self.workers: list[Worker] = []

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, *_: object) -> None:
        with processes.signals_held():
            close_workers(self.workers)
            for daemon in self._daemons:
                daemon.kill()
            for daemon in self._daemons:
                daemon.wait()
            self._folder.cleanup()

    def start(self) -> float:
        """All at once; seconds until each counts all."""
        began = time.monotonic()
        for number in range(self._count):
            argv = [self._bin / DAEMON, "--foreground", "--listen", f"127.0.0.1:{FIRST_PORT + number}"]
            argv += ["--join", f"127.0.0.1:{FIRST_PORT}"] if number else []
            argv += ["--socket", self._socket(number), "--memory", str(MEMORY), "--log-file", f"{self._socket(number)}.log"]
            self._daemons.append(self._lab.popen(1, [*argv, "--log-level", "warn"], stdin=subprocess.DEVNULL))
        for number in range(self._count):
            self._await_socket(number)
            self.workers.append(Worker(self._lab, 1, [self._bin / WORKER, self._socket(number)]))
        self.await_members(self._count)
        return time.monotonic() - began

    def _socket(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.sock"

    def _await_socket(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._socket(number).exists():
            if self._daemons[number].poll() is not None or time.monotonic() > deadline:
                raise LabError(f"daemon {number} does not start")
            time.sleep(0.005)

    def await_members(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            counts = [status["members"] for status in ask_all(self.workers, "status")]
            if all(seen == count for seen in counts):
                return
            if time.monotonic() > deadline:
                raise LabError(f"after {PATIENCE_S:.0f} s the daemons count {min(counts)} to {max(counts)} members instead of {count}")
            time.sleep(0.01)

    def pids(self) -> list[int]:
        return [daemon.pid for daemon in self._daemons]

    def sent_bytes(self) -> int:
        """Over loopback, by all, with all headers."""
        lines = Path(f"/proc/{self.pids()[0]}/net/dev").read_text().splitlines()
        (loopback,) = (line.split(":")[1].split() for line in lines if line.strip().startswith("lo:"))
        return int(loopback[8])

    def kill_some(self, count: int) -> float:
        """SIGKILL to the last ones at once; seconds until all others know."""
        gone, self.workers = self.workers[-count:], self.workers[:-count]
        victims, self._daemons = self._daemons[-count:], self._daemons[:-count]
        began = time.monotonic()
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        self.await_members(len(self.workers))
        known_s = time.monotonic() - began
        for victim in victims:
            victim.wait()
        with contextlib.suppress(OSError):
            close_workers(gone)
        return known_s


def swarm(run: Run) -> Iterator[Figure]:
    setting = run.setting
    with Lab(1, setting.rate) as lab, Swarm(lab, setting) as daemons:
        note = f"{os.cpu_count()} cores"
        yield run.figure(one(daemons.start()), "s", {}, what=FORMED, note=note)
        time.sleep(SETTLE_S)
        before, sent, began = [cpu_seconds(pid) for pid in daemons.pids()], daemons.sent_bytes(), time.monotonic()
        time.sleep(IDLE_S)
        seconds = time.monotonic() - began
        kib = (daemons.sent_bytes() - sent) / seconds / KIB / setting.objects
        percents = [(cpu_seconds(pid) - cpu) / seconds * 100 for pid, cpu in zip(daemons.pids(), before, strict=True)]
        mean = sum(percents) / len(percents)
        yield run.figure(one(mean), "%", {"%": percents}, what=IDLE, note=f"at most {max(percents):.2f} %")
        yield run.figure(one(kib), "KiB/s", {}, what=TRAFFIC, note="with the headers of IP and TCP")
        yield run.figure(one(daemons.kill_some(VICTIMS)), "s", {}, what=KNOWN)
        yield run.figure(one(broadcast(daemons, setting)), "s", {}, what=BROADCAST)


def broadcast(daemons: Swarm, setting: Setting) -> float:
    """Seconds from the first request to the last view; every byte is compared afterwards."""
    source, *receivers = daemons.workers
    seed = 1
    object_id = source.ask(f"put {setting.size} {seed}", ASK_S)["id"]
    start_ns = time.monotonic_ns() + 500_000_000
    for receiver in receivers:
        receiver.send(f"get {object_id} {start_ns}")
    answers = [receiver.answer() for receiver in receivers]
    for receiver in receivers:
        receiver.ask(f"check {setting.size} {seed}")
        receiver.ask("release")
    return (max(answer["end_ns"] for answer in answers) - start_ns) / 1e9


ROWS = (
    Row(
        "swarm",
        "many daemons on one host: formation, idle cost, ten deaths, a broadcast",
        "daemons on loopback,",
        Setting(1, "none", 32 * MIB, objects=100),
        swarm,
        {FORMED: at_most(15), IDLE: at_most(0.1), TRAFFIC: at_most(2), KNOWN: at_most(2), BROADCAST: None},
    ),
)
