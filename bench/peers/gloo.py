"""Gloo, by way of PyTorch, on the hosts of a lab. Optional: PyTorch is large.

`install` puts it into a virtual environment of its own. Its processes import it
once and then wait for commands, as Hoplite's workers do.
"""

from __future__ import annotations

import subprocess
import sys

import processes
from cluster import Worker, close_workers
from lab import Lab, LabError
from peers import DEFAULT_BIN, HERE, REST_MS

TORCH = "torch==2.13.0"  # only its CPU part is used; pip's own settings say where it comes from
VENV = DEFAULT_BIN.parent / "venv"
PYTHON = VENV / "bin" / "python"
DONE = VENV / "installed.txt"  # what is in there; written last
PORT = 29500
JOIN_S = 300  # all hosts import PyTorch at once


def installed() -> str:
    """What there is, in words, or nothing."""
    return DONE.read_text().strip() if DONE.exists() else ""


def install() -> None:
    """Does nothing if it is there already."""
    if installed() == TORCH:
        return
    for argv in (
        [sys.executable, "-m", "venv", "--clear", VENV],
        [PYTHON, "-m", "pip", "install", "--quiet", TORCH],
    ):
        done = subprocess.run(argv, stdout=sys.stderr, check=False)
        if done.returncode:
            raise LabError(f"Gloo cannot be installed (`tools/setup gloo` first?): {' '.join(map(str, argv))} failed")
    DONE.write_text(TORCH + "\n")


class Gloo:
    """A process on each host of a lab, all in one group."""

    def __init__(self, lab: Lab):
        self._lab = lab
        self._ranks: list[Worker] = []

    def __enter__(self) -> Gloo:
        try:
            for host in range(1, self._lab.hosts + 1):
                self._ranks.append(Worker(self._lab, host, [PYTHON, "-u", HERE / "gloo_bench.py"]))
            for number, rank in enumerate(self._ranks):
                rank.send(f"join {self._lab.address(1)} {PORT} {number} {len(self._ranks)}")
            for rank in self._ranks:
                rank.answer(JOIN_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with processes.signals_held():
            close_workers(self._ranks)
            self._ranks.clear()

    def run(self, operation: str, size: int, *, reps: int, warmup: int = 1) -> list[float]:
        """Seconds of each repetition; see gloo_bench.py."""
        for rank in self._ranks:
            rank.send(f"{operation} {size} {reps} {warmup} {REST_MS}")
        return [rank.answer()["seconds"] for rank in self._ranks][0]
