"""Hoplite on the hosts of a lab: a daemon on each, and workers that use them.

A worker is `hoplite-bench-worker` (worker/): it takes commands in
words and answers in JSON. Several are driven at once by `send` to each and then
`answer` from each. Everything is ended with the block, by process id.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path

import processes
from lab import Lab, LabError

PORT = 7411
START_S = 30  # for a daemon or a worker to come up, also on a busy machine
ANSWER_S = 180  # for one command; a worker itself gives up after 120 s
STOP_S = 10  # between SIGTERM and SIGKILL

DAEMON = "hoplited"
WORKER = "hoplite-bench-worker"


class WorkerError(LabError):
    """A worker says that it could not do what it was told."""


class Worker:
    """A client process on one host. One command is under way at a time."""

    def __init__(self, lab: Lab, host: int, argv: list[str | os.PathLike]):
        self.host = host
        self.process = lab.popen(host, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._command = "start"
        self.answer(START_S)

    def send(self, command: str) -> None:
        """Starts a command; `answer` brings its result."""
        self._command = textwrap.shorten(command, 60, placeholder=" ...")  # for complaints: ids can be many
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(f"the worker on host {self.host} is gone: {self._command}") from None

    def answer(self, timeout_s: float = ANSWER_S) -> dict:
        """What the command gave; WorkerError if it failed."""
        # Only one line is ever under way, so nothing hides in the buffer.
        readable, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        if not readable:
            raise WorkerError(f"host {self.host}: no answer after {timeout_s} s: {self._command}")
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(f"the worker on host {self.host} ended: {self._command}")
        result = json.loads(line)
        if "error" in result:
            raise WorkerError(f"host {self.host}: {self._command}: {result['error']}")
        return result

    def ask(self, command: str, timeout_s: float = ANSWER_S) -> dict:
        self.send(command)
        return self.answer(timeout_s)


def ask_all(workers: Iterable[Worker], command: str) -> list[dict]:
    """The same command to all of them at once; their answers."""
    workers = list(workers)
    for worker in workers:
        worker.send(command)
    return [worker.answer() for worker in workers]


class Cluster:
    """Daemons on hosts 1..N of a lab that know each other, and a worker on each."""

    log_level = "warn"

    def __init__(self, lab: Lab, bin_dir: Path, *, memory: int, busy_poll: bool = False, hosts: int | None = None):
        """`memory` is the size of each store in bytes; `hosts`: only so many begin with a daemon."""
        for program in (DAEMON, WORKER):
            if not (bin_dir / program).exists():
                raise LabError(f"{bin_dir / program} is missing; `make build` makes it")
        self.lab = lab
        self._bin_dir = bin_dir
        self._memory = memory
        self._hosts = lab.hosts if hosts is None else hosts
        self._flags = ["--busy-poll"] if busy_poll else []
        self._folder = tempfile.TemporaryDirectory(prefix="hoplite-bench-")
        self._daemons: dict[int, subprocess.Popen] = {}
        self._extra_workers: list[Worker] = []
        self.workers: dict[int, Worker] = {}

    def __enter__(self) -> Cluster:
        try:
            for host in range(1, self._hosts + 1):
                self._start_daemon(host)
            self._await_members()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with processes.signals_held():
            self.end_extra_workers()
            close_workers(self.workers.values())
            self.workers.clear()
            _end(self._daemons.values())
            self._daemons.clear()
            self._folder.cleanup()

    @property
    def source(self) -> Worker:
        """The one on host 1, which has what the others get."""
        return self.workers[1]

    @property
    def receivers(self) -> list[Worker]:
        return [worker for host, worker in self.workers.items() if host != 1]

    def pid(self, host: int) -> int:
        """Of the daemon."""
        return self._daemons[host].pid

    def another_worker(self, host: int) -> Worker:
        """A further one, for what must happen while the first is busy."""
        worker = self._start_worker(host)
        self._extra_workers.append(worker)
        return worker

    def end_extra_workers(self) -> None:
        close_workers(self._extra_workers)
        self._extra_workers.clear()

    def kill(self, host: int) -> None:
        """SIGKILL to a daemon."""
        self._daemons[host].kill()

    def lose(self, host: int) -> None:
        """SIGKILL to a daemon that nobody will ask any more."""
        self.kill(host)
        self._daemons[host].wait()
        close_workers([self.workers.pop(host)])

    def join(self, host: int) -> Worker:
        """A daemon on a host that has none; its worker. The others may not know it yet."""
        self._start_daemon(host)
        return self.workers[host]

    def restart(self, host: int) -> None:
        """Starts a killed daemon again, at its address, and returns when all know it."""
        self._daemons[host].wait()
        close_workers([self.workers.pop(host)])
        self._start_daemon(host)
        self._await_members()

    def remove(self, *object_ids: str) -> None:
        """Lets go of all views and deletes these objects everywhere."""
        ask_all(self.workers.values(), "release")
        self.source.ask(f"remove {' '.join(object_ids)}")

    # ---- starting ------------------------------------------------------------

    def socket(self, host: int) -> Path:
        """Of the daemon, for clients of other kinds."""
        return Path(self._folder.name) / f"{host}.sock"

    def _log(self, host: int) -> Path:
        return Path(self._folder.name) / f"{host}.log"

    def _start_worker(self, host: int) -> Worker:
        return Worker(self.lab, host, [self._bin_dir / WORKER, self.socket(host), *self._flags])

    def _seeds(self, host: int) -> list[int]:
        """The hosts that it joins through."""
        return [1] if host != 1 else [2] if 2 in self._daemons else []

    def _start_daemon(self, host: int) -> None:
        argv = [self._bin_dir / DAEMON, "--foreground", "--insecure", *self._flags]
        argv += ["--listen", f"{self.lab.address(host)}:{PORT}"]
        for other in self._seeds(host):
            argv += ["--join", f"{self.lab.address(other)}:{PORT}"]
        argv += ["--socket", self.socket(host), "--memory", str(self._memory)]
        argv += ["--log-file", self._log(host), "--log-level", self.log_level]
        reader, writer = os.pipe()
        try:
            environment = os.environ | {"HOPLITE_READY_FD": str(writer)}
            daemon = self.lab.popen(host, argv, env=environment, pass_fds=[writer])
        finally:
            os.close(writer)
        self._daemons[host] = daemon
        word = _first_line(reader)
        if not word.startswith("ready"):
            raise LabError(f"the daemon on host {host} does not start: {word or 'it ended'}")
        self.workers[host] = self._start_worker(host)

    def _await_members(self) -> None:
        """Until every daemon counts every other one as alive."""
        deadline = time.monotonic() + START_S
        while True:
            counts = [status["members"] for status in ask_all(self.workers.values(), "status")]
            if all(count == len(self.workers) for count in counts):
                return
            if time.monotonic() > deadline:
                raise LabError(f"the daemons do not find each other: they count {counts} members")
            time.sleep(0.02)

    def logs(self) -> str:
        """What the daemons complained about."""
        texts = ((host, self._log(host)) for host in self._daemons)
        return "".join(f"host {host}: {path.read_text()}" for host, path in texts if path.exists())


def _end(children: Iterable[subprocess.Popen]) -> None:
    """SIGTERM to all, SIGKILL to those that are still there after a while."""
    children = list(children)
    for child in children:
        child.terminate()
    deadline = time.monotonic() + STOP_S
    for child in children:
        try:
            child.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def close_workers(workers: Iterable[Worker]) -> None:
    """Ends them."""
    workers = list(workers)
    _end(worker.process for worker in workers)
    for worker in workers:
        worker.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # a command that it did not live to read
            worker.process.stdin.close()


def _first_line(reader: int) -> str:
    with os.fdopen(reader) as pipe:
        readable, _, _ = select.select([pipe], [], [], START_S)
        return pipe.readline().strip() if readable else f"no word after {START_S} s"
