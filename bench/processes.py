"""Processes of a lab: whose they are, and how all of them are ended by id."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

TERM_GRACE_S = 1.0  # between SIGTERM and SIGKILL when a lab ends
DEADLY_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc = ctypes.CDLL(None)  # here, because nothing may be loaded between fork and exec
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def start_time(pid: int) -> int | None:
    """When a process began, in ticks after boot: tells a reused id from the old."""
    try:
        # The command's name, field 2, may contain spaces; field 22 is the start.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Delivers deadly signals only after the block, here and in commands it runs."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEADLY_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_parent() -> None:
    """Runs in a child before exec: the kernel kills it when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_inside(namespaces: Iterable[Path]) -> None:
    """SIGTERM, then SIGKILL, to exactly the processes inside the namespaces."""
    inodes = {os.stat(ns).st_ino for ns in namespaces}
    deadline = time.monotonic() + TERM_GRACE_S
    number = signal.SIGTERM
    while _signal_inside(inodes, number):
        time.sleep(0.02)
        # Signal 0 only looks whether they are still there.
        number = 0 if time.monotonic() < deadline else signal.SIGKILL


def _signal_inside(inodes: set[int], number: int) -> int:
    """Signals each process whose network namespace is one of `inodes`; how many."""
    found = 0
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile
            # The descriptor first: what is looked at is then what is signalled,
            # even if the id is reused in between.
            process = os.pidfd_open(int(entry))
            try:
                if os.stat(f"/proc/{entry}/ns/net").st_ino in inodes:
                    signal.pidfd_send_signal(process, number)
                    found += 1
            finally:
                os.close(process)
    return found
