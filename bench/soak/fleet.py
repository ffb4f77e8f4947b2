"""The daemons of a soak and a client process on each host, whose commands are all under way at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cluster import Cluster, close_workers
from lab import Lab, LabError

WORKER = "hoplite-soak-worker"
START_S = 60
# A stopped client library answers late; so does everything on a machine with other things to do. What is not answered
# so long after its deadline hangs.
SLACK_S = 45.0


@dataclass
class Answer:
    kind: str  # "ok", "fail" or "wrong"
    words: str  # of "fail" the code and a sentence


@dataclass
class Command:
    """One line to a worker, until its answer comes."""

    host: int
    text: str
    began: float
    patience_s: float  # its deadline, with what it does before and afterwards
    then: Callable[[Answer], None]
    due: float = field(init=False)

    def __post_init__(self):
        self.due = self.began + self.patience_s + SLACK_S


class Client:
    """A worker process: a client of the daemon on its host."""

    def __init__(self, lab: Lab, host: int, argv: list[str | os.PathLike]):
        self.host = host
        self.process = lab.popen(host, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False, bufsize=0)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.under_way: dict[int, Command] = {}
        self._number = 0
        self._rest = b""
        self._await_ready()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while not (lines := list(self.lines())):
            select.select([self.process.stdout], [], [], 0.5)
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise LabError(f"the client on host {self.host} does not start")
        if lines[0] != "0 ok ready":
            raise LabError(f"the client on host {self.host} says {lines[0]!r}")

    def send(self, command: Command) -> None:
        self._number += 1
        self.under_way[self._number] = command
        with contextlib.suppress(BrokenPipeError):  # its commands are looked after when it has ended
            self.process.stdin.write(f"{self._number} {command.text}\n".encode())

    def lines(self) -> Iterator[str]:
        """What it has said; nothing if there is nothing now."""
        with contextlib.suppress(BlockingIOError):
            while chunk := self.process.stdout.read(1 << 16):
                self._rest += chunk
        *whole, self._rest = self._rest.split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)

    def deliver(self) -> int:
        """Hands answers to those who wait for them; how many."""
        count = 0
        for line in self.lines():
            number, kind, words = (line.split(" ", 2) + ["", ""])[:3]
            command = self.under_way.pop(int(number))
            command.then(Answer(kind, words))
            count += 1
        return count

    def overdue(self, now: float) -> list[Command]:
        late = [number for number, command in self.under_way.items() if command.due < now]
        return [self.under_way.pop(number) for number in late]


class Fleet(Cluster):
    """Daemons on all hosts; any of them may be killed, stopped and started again."""

    log_level = "info"

    def __init__(self, lab: Lab, bin_dir: Path, *, memory: int, logs: Path):
        if not (bin_dir / WORKER).exists():
            raise LabError(f"{bin_dir / WORKER} is missing; `make soak` builds it")
        super().__init__(lab, bin_dir, memory=memory)
        self._logs = logs
        self.stopped: set[int] = set()
        self.down: set[int] = set()  # killed, and not started again
        self.leaving: list[Client] = []  # of daemons that are gone: their commands must end all the same

    def __exit__(self, *_: object) -> None:
        for host in list(self.stopped):
            self.resume(host)
        close_clients(self.leaving)
        super().__exit__()

    @property
    def clients(self) -> dict[int, Client]:
        """Of the hosts whose daemon runs, or is stopped."""
        return self.workers

    def pids(self) -> dict[int, int]:
        return {host: self.pid(host) for host in self._daemons if host not in self.down}

    def ended(self) -> dict[int, int]:
        """Daemons that have ended by themselves, and how."""
        polls = {host: daemon.poll() for host, daemon in self._daemons.items() if host not in self.down}
        return {host: code for host, code in polls.items() if code is not None}

    def ready_pipes(self, timeout_s: float) -> list[Client]:
        """The clients that have something to say."""
        clients = {client.process.stdout.fileno(): client for client in [*self.clients.values(), *self.leaving]}
        ready, _, _ = select.select(list(clients), [], [], timeout_s)
        return [clients[number] for number in ready]

    # ---- what happens to daemons -------------------------------------------------

    def kill(self, host: int) -> None:
        self._goes(host)
        super().kill(host)
        self._daemons[host].wait()

    def terminate(self, host: int) -> None:
        """An orderly stop; `has_ended` says when it is done."""
        self._goes(host)
        self._daemons[host].terminate()

    def has_ended(self, host: int) -> bool:
        return self._daemons[host].poll() is not None

    def gone(self, host: int) -> None:
        """Of one that has ended by itself: its place is free."""
        self._goes(host)

    def _goes(self, host: int) -> None:
        self.resume(host)
        self.down.add(host)
        self.leaving.append(self.workers.pop(host))

    def start(self, host: int) -> None:
        self._daemons[host].wait()
        self._start_daemon(host)
        self.down.discard(host)

    def kill_client(self, host: int) -> Client:
        """SIGKILL to the client; another one takes its place. The old one."""
        old = self.workers.pop(host)
        old.process.kill()
        self.workers[host] = self._start_worker(host)
        return old

    def pause(self, host: int) -> None:
        self.stopped.add(host)
        self._daemons[host].send_signal(signal.SIGSTOP)

    def resume(self, host: int) -> None:
        if host in self.stopped:
            self.stopped.discard(host)
            self._daemons[host].send_signal(signal.SIGCONT)

    # ---- one thing after another, before anything else happens ---------------------

    def ask(self, host: int, text: str, patience_s: float = 60) -> Answer:
        answers: list[Answer] = []
        self.clients[host].send(Command(host, text, time.monotonic(), patience_s, answers.append))
        while not answers:
            for client in self.ready_pipes(0.1):
                client.deliver()
            if self.clients[host].overdue(time.monotonic()):
                raise LabError(f"host {host} does not answer: {text}")
        return answers[0]

    def names_again(self) -> bool:
        """Whether a deleted name can be put again."""
        self.ask(1, "put again 1 10 b 30000 0")
        self.ask(1, "remove again 30000")
        again = self.ask(1, "put again 2 10 b 30000 0").kind == "ok"
        self.ask(1, "remove again 30000")
        return again

    # ---- as the cluster of the benchmark starts them ------------------------------

    def _seeds(self, host: int) -> list[int]:
        return [other for other in self._daemons if other != host]

    def _start_worker(self, host: int) -> Client:
        return Client(self.lab, host, [self._bin_dir / WORKER, self.socket(host)])

    def _await_members(self) -> None:
        """The driver sees by itself when they know each other."""

    def _log(self, host: int) -> Path:
        return self._logs / f"host{host}.log"


def close_clients(clients: Iterable[Client]) -> None:
    close_workers(clients)
