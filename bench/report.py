"""What the benchmark found: figures with their goals, as a table and as JSON."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import stats
from stats import Summary


@dataclass(frozen=True)
class Goal:
    """What a figure must reach."""

    bound: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


def at_most(bound: float) -> Goal:
    return Goal(bound)


def at_least(bound: float) -> Goal:
    return Goal(bound, at_least=True)


@dataclass
class Figure:
    """One number of a row, with the repetitions that it comes from."""

    row: str
    work: str  # "broadcast 32 MiB, 8 hosts, 500mbit"
    value: Summary  # of what is compared with the goal
    unit: str  # "x limit", "/s"
    goal: Goal | None = None  # None: nothing was promised for these settings
    samples: dict[str, list[float]] = field(default_factory=dict)  # by who, in seconds unless named
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return "-"
        return "ok" if self.goal.met_by(self.value.median) else "missed"

    def cells(self) -> tuple[str, ...]:
        return (
            self.row,
            self.work,
            format_value(self.value.median, self.unit),
            f"{self.value.spread:.0%}",
            str(self.goal or "-"),
            self.verdict,
            self.note,
        )


@dataclass(frozen=True)
class Failure:
    """A row that could not be measured, and why."""

    row: str
    work: str
    reason: str

    def cells(self) -> tuple[str, ...]:
        return (self.row, self.work, "-", "-", "-", "failed", self.reason.splitlines()[0])


HEADER = ("row", "work", "figure", "spread", "must reach", "verdict", "beside it")


def format_value(value: float, unit: str) -> str:
    """Three significant digits where they say something, thousands apart."""
    number = f"{value:,.0f}" if value >= 1000 else f"{value:.3f}" if value < 10 else f"{value:.1f}"
    return f"{number}{'' if unit.startswith(('x', '/')) else ' '}{unit}"


def table(found: Iterable[Figure | Failure]) -> str:
    return stats.table(HEADER, (entry.cells() for entry in found), left=(0, 1, 6))


def as_json(found: Iterable[Figure | Failure], began: dict) -> dict:
    """Everything that is needed to judge the figures later."""
    entries = []
    for entry in found:
        if isinstance(entry, Failure):
            entries.append({"row": entry.row, "work": entry.work, "failed": entry.reason})
            continue
        described = asdict(entry)
        described["value"]["spread"] = entry.value.spread
        described["verdict"] = entry.verdict
        entries.append(described)
    return {"began": began, "ended": {"time": _time(), "load": os.getloadavg()}, "figures": entries}


def environment() -> dict:
    """Where and on what the figures were taken."""
    return {
        "time": _time(),
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "kernel": platform.release(),
        "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "commit": _output(["git", "describe", "--always", "--dirty"]),
        "open_mpi": _output(["mpirun", "--version"]).partition("\n")[0],
        "iperf3": _output(["iperf3", "--version"]).partition("\n")[0],
    }


def _time() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "unknown"


def _processor() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _output(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, cwd=Path(__file__).parent)
    except OSError:
        return "missing"
    return done.stdout.strip()
