"""What the tests of this folder share: hosts with a daemon on each, and `hoplite` used on them.

    with hosts(5) as net:
        there = net.put(1, 8 * MIB)
        get = net.get(2, there.id)
        net.lab.link_down(2)

The hosts, their weather and the daemons are those of the benchmark (bench/lab.py, bench/cluster.py). Everything ends with the
block, whatever happens in it; after a failure the daemons' complaints are printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

import processes
from cluster import Cluster
from lab import NETNS_DIR, Lab, LabError, finish

BIN = Path(os.environ.get("HOPLITE_BIN", REPOSITORY / "build/release/bin"))
MIB = 1 << 20
STORE_BYTES = 128 * MIB
RATE = "100mbit"  # 8 MiB take 0.7 s: long enough to find the middle, short enough to wait for

GET_S = 60  # the deadline of a get
PATIENCE_S = 90  # for what takes seconds; longer than GET_S, so that a get says itself why it failed
POLL_S = 0.05


def require_namespaces() -> None:
    """For setUpModule: skips all tests, with the reason, where hosts cannot be made.

    Ctrl-C passes through unittest and unwinds every block on its way; the other deadly signals shall do the same.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if os.geteuid() != 0:
        raise unittest.SkipTest("no hosts can be made here: network namespaces need root")
    try:
        with Lab(hosts=1):
            pass
    except (LabError, OSError) as error:
        raise unittest.SkipTest(f"no hosts can be made here: {error}") from None


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience_s} s in vain: {what}")
        time.sleep(POLL_S)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Stored(NamedTuple):
    """An object as it was put."""

    id: str
    size: int
    sha256: str


class Member(NamedTuple):
    """A daemon as another one, or it itself, sees it."""

    node: str
    incarnation: int
    alive: bool


class Get:
    """A `hoplite get` on one host, under way."""

    def __init__(self, lab: Lab, host: int, argv: list[str | os.PathLike], file: Path):
        self.host = host
        self._file = file
        self._process = lab.popen(host, argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def is_under_way(self) -> bool:
        return self._process.poll() is None

    def sha256(self) -> str:
        """Waits for it; the hash of the bytes that it wrote."""
        finish(self._process, PATIENCE_S)
        digest = sha256(self._file)
        self._file.unlink()
        return digest

    def failure(self) -> str:
        """Waits for it to fail; what it said."""
        _, words = self._process.communicate(timeout=PATIENCE_S)
        if self._process.returncode != 1:
            raise AssertionError(f"host {self.host}: the get ended with {self._process.returncode}, not 1: {words}")
        return words


class Net(Cluster):
    """Daemons on hosts 1..N that know each other, and what a person can do with them."""

    def __init__(self, lab: Lab):
        super().__init__(lab, BIN, memory=STORE_BYTES)
        self.hosts = range(1, lab.hosts + 1)
        self.folder = Path(self._folder.name)
        self._numbers = itertools.count()
        self._stopped: set[int] = set()

    def __exit__(self, *_: object) -> None:
        for host in list(self._stopped):
            self.resume(host)  # or SIGTERM would wait
        super().__exit__()

    def pause(self, host: int) -> None:
        """SIGSTOP to a daemon."""
        self._stopped.add(host)
        self._daemons[host].send_signal(signal.SIGSTOP)

    def resume(self, host: int) -> None:
        """SIGCONT to a daemon."""
        self._stopped.discard(host)
        self._daemons[host].send_signal(signal.SIGCONT)

    # ---- objects -------------------------------------------------------------

    def hoplite(self, host: int, *arguments: str | os.PathLike) -> str:
        """What the command line prints on a host; LabError if it fails."""
        argv = [BIN / "hoplite", *arguments, "--socket", self.socket(host)]
        return self.lab.output(host, argv, PATIENCE_S)

    def put(self, host: int, size: int, name: str | None = None) -> Stored:
        """New random bytes."""
        file = self.folder / f"{next(self._numbers)}.put"
        file.write_bytes(os.urandom(size))
        chosen = ["--id", name] if name else []
        answer = json.loads(self.hoplite(host, "put", file, *chosen, "--timeout", f"{GET_S}s", "--json"))
        stored = Stored(answer["id"], size, sha256(file))
        file.unlink()
        return stored

    def get(self, host: int, object_id: str, *options: str, timeout: str = f"{GET_S}s") -> Get:
        file = self.folder / f"{next(self._numbers)}.got"
        argv = [BIN / "hoplite", "get", object_id, "-o", file, "--timeout", timeout, *options]
        return Get(self.lab, host, [*argv, "--socket", self.socket(host)], file)

    def copy(self, host: int, object_id: str) -> dict:
        """The object as the host's daemon holds it: `phase`, `bytes`, `receivers`."""
        return self.workers[host].ask(f"object {object_id}")

    def home(self, host: int, name: str) -> int:
        """The host whose daemon is the home of a name that nobody has put, by the word of `host`."""
        words = self.get(host, name, timeout="200ms").failure()
        node = re.search(r"home ([0-9a-f]{16})", words)
        if node is None:
            raise AssertionError(f"a get of what nobody has put names no home: {words}")
        members = self.members(host)
        return next(other for other in self.hosts if members[other].node == node[1])

    # ---- members -------------------------------------------------------------

    def members(self, host: int) -> dict[int, Member]:
        """What a host's daemon says of all hosts. For daemons that are not started again: one for each address."""
        seen = {}
        for row in json.loads(self.hoplite(host, "nodes", "--json")):
            last_byte = row["address"].partition(":")[0].rpartition(".")[2]
            seen[int(last_byte)] = Member(row["node"], row["incarnation"], row["alive"])
        return seen

    def alive_at(self, host: int) -> set[int]:
        """The hosts that a host's daemon holds for alive, itself included."""
        return {other for other, member in self.members(host).items() if member.alive}

    def wait_for_views(self, observers: Iterable[int], alive: Iterable[int]) -> None:
        """Until all observers hold exactly these hosts for alive."""
        alive = set(alive)
        for host in observers:
            wait_until(lambda: self.alive_at(host) == alive, f"host {host} holds exactly {sorted(alive)} for alive")

    def wait_for_agreement(self) -> dict[int, Member]:
        """Until all daemons say the same of all, and that all are alive; what they say."""

        def agreed() -> bool:
            views = [self.members(host) for host in self.hosts]
            return all(view == views[0] for view in views) and self._all_alive(views[0])

        wait_until(agreed, "all daemons agree that all are alive")
        return self.members(1)

    def _all_alive(self, view: dict[int, Member]) -> bool:
        return len(view) == len(self.hosts) and all(member.alive for member in view.values())


class Footprint:
    """What a running Net has on this machine; taken while it runs, looked at when it has ended."""

    def __init__(self, net: Net):
        self._lab = net.lab.name
        self._folder = net.folder
        self._started = {pid: processes.start_time(pid) for pid in map(net.pid, net.hosts)}

    def left(self) -> list[str]:
        """What is still there, in words."""
        left = [str(path) for path in NETNS_DIR.glob(f"hop-{self._lab}-*")]
        left += [str(self._folder)] if self._folder.exists() else []
        return left + [f"process {pid}" for pid, start in self._started.items() if processes.start_time(pid) == start]


@contextlib.contextmanager
def hosts(count: int, rate: str = RATE) -> Iterator[Net]:
    """Hosts 1..`count`, each with a daemon. They are gone after the block, and that is checked."""
    with Lab(count, rate) as lab, Net(lab) as net:
        footprint = Footprint(net)
        try:
            yield net
        except BaseException:
            print(f"\n--- the daemons' complaints\n{net.logs()}---", file=sys.stderr, flush=True)
            raise
    if left := footprint.left():
        raise AssertionError(f"left behind: {left}")


class Broadcast:
    """One object of host 1 that all other hosts get at once."""

    def __init__(self, net: Net, size: int, *options: str):
        self._net = net
        self.stored = net.put(1, size)
        self.gets = {host: net.get(host, self.stored.id, *options) for host in net.hosts if host != 1}

    def find_relay(self) -> int | None:
        """A host that others receive from while it receives itself, and that lacks most of the bytes; None: too late."""
        while any(get.is_under_way() for get in self.gets.values()):
            for host in self.gets:
                copy = self._net.copy(host, self.stored.id)
                relays = copy["phase"] == "fetching" and copy["receivers"] > 0
                if relays and self.stored.size / 10 < copy["bytes"] < self.stored.size * 0.6:
                    return host
        return None

    def is_complete(self, host: int) -> bool:
        return self._net.copy(host, self.stored.id)["phase"] == "complete"

    def expect_arrives(self, hosts: Iterable[int]) -> None:
        for host in hosts:
            arrived = self.gets[host].sha256()
            if arrived != self.stored.sha256:
                raise AssertionError(f"host {host} got other bytes than were put: {arrived}, not {self.stored.sha256}")


class Cut(NamedTuple):
    broadcast: Broadcast
    relay: int  # the host whose link is down
    since: float  # by time.monotonic()


def cut_a_relay(net: Net, size: int, attempts: int = 5) -> Cut:
    """Starts a broadcast, and takes the link of a relay down in the middle.

    The middle is short, and a busy machine may miss it; then there is another broadcast.
    """
    for _ in range(attempts):
        # For a host that reaches nobody, everybody else is dead, and so the object is lost. That is not what it waits for.
        broadcast = Broadcast(net, size, "--wait-if-lost")
        relay = broadcast.find_relay()
        if relay is not None:
            since = time.monotonic()
            net.lab.link_down(relay)
            if not broadcast.is_complete(relay):
                return Cut(broadcast, relay, since)
            net.lab.link_up(relay)
        broadcast.expect_arrives(broadcast.gets)
        net.hoplite(1, "rm", broadcast.stored.id)
    raise AssertionError(f"the middle of the broadcast was missed {attempts} times")
