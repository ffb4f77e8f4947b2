"""A cluster on this machine, for tests and for trying things out."""

from __future__ import annotations

import os
import time
from types import TracebackType

from . import _core, _daemon
from ._client import Client
from ._errors import GetTimeoutError, InvalidArgumentError

_JOIN_WITHIN_S = 60.0


class LocalCluster:
    """Several daemons on loopback, each with its own store. Ends with the ``with`` block, or with the process.

    >>> with hoplite.local(2) as cluster:
    ...     a, b = cluster.client(0), cluster.client(1)
    ...     b.get(a.put([1, 2, 3]))
    [1, 2, 3]
    """

    def __init__(self, nodes: int = 3, *, memory: int | str = "256MiB", max_rate: str | None = None) -> None:
        if nodes < 1:
            raise InvalidArgumentError(f"a cluster has at least one node, not {nodes}")
        self._folder = _daemon.Folder()
        self._daemons: list[_daemon.Daemon] = []
        self._clients: dict[int, Client] = {}
        self._arguments = ["--listen", "127.0.0.1:0", "--memory", str(memory), "--drain", "0s"]
        if max_rate is not None:
            self._arguments += ["--max-rate", max_rate]
        try:
            for _ in range(nodes):
                self._start()
            self._wait_until_joined()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        name = os.path.join(self._folder.path, f"node{len(self._daemons)}")
        join = ["--join", self._daemons[0].address] if self._daemons else []
        environment = _daemon.environment_of(None)
        environment.pop("HOPLITE_TOKEN", None)  # of another cluster
        self._daemons.append(_daemon.Daemon(name + ".sock", name + ".log", [*self._arguments, *join], environment))

    def _wait_until_joined(self) -> None:
        deadline = time.monotonic() + _JOIN_WITHIN_S
        for index, daemon in enumerate(self._daemons):
            session = _core.Session(daemon.socket, "", 30.0, False)
            while (members := session.status()["members"]) != len(self._daemons):
                if time.monotonic() > deadline:
                    raise GetTimeoutError(f"node {index} sees only {members} of {len(self._daemons)} nodes")
                time.sleep(0.01)
            session.close()

    def __len__(self) -> int:
        return len(self._daemons)

    @property
    def sockets(self) -> list[str]:
        """Of the daemons, for clients in other processes."""
        return [daemon.socket for daemon in self._daemons]

    @property
    def pids(self) -> list[int]:
        """Of the daemons."""
        return [daemon.pid for daemon in self._daemons]

    def client(self, node: int) -> Client:
        """The client of a node: the same one every time, until it is closed."""
        known = self._clients.get(node)
        if known is None or known.closed:
            known = self._clients[node] = Client(self._daemons[node].socket)
        return known

    def kill(self, node: int) -> None:
        """kill -9: as if that machine had lost its power."""
        self._daemons[node].kill()

    def log(self, node: int) -> str:
        """What a daemon has logged."""
        with open(self._daemons[node].log_file, errors="replace") as file:
            return file.read()

    def stop(self) -> None:
        """Ends the daemons and removes their folder. Arrays from their stores stay readable."""
        for client in self._clients.values():
            client.close()
        for daemon in self._daemons:
            daemon._close_pipe()  # all of them begin to stop before the first one is waited for
        for daemon in self._daemons:
            daemon.stop()
        self._folder.remove()

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def local(nodes: int = 3, *, memory: int | str = "256MiB", max_rate: str | None = None) -> LocalCluster:
    """Starts a cluster of `nodes` daemons on this machine, each with a store of `memory`.

    `max_rate` limits what each of them sends, e.g. "200mbit".

    >>> with hoplite.local(4) as cluster:
    ...     ref = cluster.client(0).put("hello")
    ...     cluster.client(3).get(ref)
    'hello'
    """
    return LocalCluster(nodes, memory=memory, max_rate=max_rate)
