"""Starting daemons that end with this process."""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ._errors import ConnectionLostError, GetTimeoutError, HopliteError

_READY_WITHIN_S = 60.0
_END_WITHIN_S = 15.0


def program(name: str) -> str:
    """The path of a program that came with this package."""
    path = pathlib.Path(__file__).parent / "bin" / name
    if not path.exists():
        raise HopliteError(f"the package is not whole: {path} is missing; install it again")
    return str(path)


class Daemon:
    """A hoplited whose standard input is a pipe from this process. When the process ends, however it does, the kernel closes
    the pipe, and the daemon stops. Forked children close their copy of the pipe."""

    _running: ClassVar[set[Daemon]] = set()

    def __init__(self, socket: str, log_file: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.socket = socket
        self.log_file = log_file
        ready, ready_end = os.pipe()
        try:
            # In a session of its own: Ctrl-C is for this process, which ends the daemon in order.
            with open(log_file, "ab") as log:
                self._process = subprocess.Popen(
                    [program("hoplited"), "--until-eof", "--socket", socket, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=[ready_end],
                    env={**environment, "HOPLITE_READY_FD": str(ready_end)},
                    start_new_session=True,
                )
            os.close(ready_end)
            ready_end = -1
            Daemon._running.add(self)
            self.address = self._await_ready(ready)
        except BaseException:
            self.kill()
            raise
        finally:
            os.close(ready)
            if ready_end >= 0:
                os.close(ready_end)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def _await_ready(self, ready: int) -> str:
        """Its address, when it listens: the daemon writes "ready SOCKET PID ADDRESS" or "error MESSAGE"."""
        deadline = time.monotonic() + _READY_WITHIN_S
        line = b""
        while not line.endswith(b"\n"):
            if time.monotonic() > deadline:
                raise GetTimeoutError(f"hoplited was not ready within {_READY_WITHIN_S:.0f} s; its log is {self.log_file}")
            if not select.select([ready], [], [], 0.05)[0]:
                continue
            chunk = os.read(ready, 4096)
            if not chunk:
                break
            line += chunk
        text = line.decode(errors="replace").strip()
        if text.startswith("ready "):
            return text.rpartition(" ")[2]
        why = text[len("error ") :] if text.startswith("error ") else self._last_words()
        raise ConnectionLostError(f"hoplited could not be started: {why}")

    def _last_words(self) -> str:
        lines = pathlib.Path(self.log_file).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with status {self._process.wait()}"

    def _close_pipe(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def stop(self) -> None:
        """Lets it finish running transfers, for a while, and waits until it has ended."""
        self._close_pipe()
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        Daemon._running.discard(self)

    def kill(self) -> None:
        """Ends it at once, as if the machine had lost its power."""
        process: subprocess.Popen[bytes] | None = getattr(self, "_process", None)
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._close_pipe()
        Daemon._running.discard(self)


def _after_fork() -> None:
    for daemon in Daemon._running:
        if daemon._process.stdin is not None:
            with contextlib.suppress(OSError):
                daemon._process.stdin.close()
    Daemon._running = set()
    Folder._live = set()


def environment_of(token: str | None) -> dict[str, str]:
    """Of a daemon: this process's, with the cluster token if one was given."""
    environment = dict(os.environ)
    if token is not None:
        environment["HOPLITE_TOKEN"] = token
    return environment


class Folder:
    """A temporary folder for sockets and logs, removed by the process that made it, and not by its forked children."""

    _live: ClassVar[set[Folder]] = set()

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="hoplite-")  # short, as the path of a socket has to be
        self._owner = os.getpid()
        Folder._live.add(self)

    def remove(self) -> None:
        """Again: nothing."""
        Folder._live.discard(self)
        if self._owner == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)


os.register_at_fork(after_in_child=_after_fork)
