"""What daemons need while they are soaked: memory, descriptors, their longest step; as plots for a terminal and as SVG."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

KIB, MIB = 1 << 10, 1 << 20
BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 60
STEP_KEYS = ("longest_step_us", "longest_step_ms", "longest_step")


@dataclass
class Series:
    """One quantity of one daemon; a daemon that is started again begins another one."""

    name: str
    host: int
    points: list[tuple[float, float]] = field(default_factory=list)


def memory(pid: int) -> float:
    """MiB of a process outside the arena, which is shared memory."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(status[name].split()[0]) for name in ("RssAnon", "RssFile")) / KIB


def descriptors(pid: int) -> float:
    return len(os.listdir(f"/proc/{pid}/fd"))


def longest_step(hoplite: Path, argv: list[str]) -> float | None:
    """Milliseconds, by the word of `hoplite status`; None where it does not say."""
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run([*argv, hoplite, "status", "--json"], capture_output=True, text=True, timeout=5)
        found = json.loads(done.stdout)
        for key in STEP_KEYS:
            if key in found:
                return found[key] / 1000 if key.endswith("_us") else float(found[key])
    return None


class Samples:
    def __init__(self, began: float):
        self._began = began
        self.series: list[Series] = []
        self._current: dict[tuple[str, int], tuple[int, Series]] = {}

    def add(self, name: str, host: int, pid: int, now: float, value: float | None) -> None:
        if value is None:
            return
        known, series = self._current.get((name, host), (None, None))
        if known != pid:
            series = Series(name, host)
            self.series.append(series)
            self._current[name, host] = (pid, series)
        series.points.append((now - self._began, value))

    def look(self, pids: dict[int, int], now: float) -> None:
        for host, pid in pids.items():
            with contextlib.suppress(OSError, KeyError):  # it has just ended
                self.add("memory, MiB", host, pid, now, memory(pid))
                self.add("descriptors", host, pid, now, descriptors(pid))

    def names(self) -> list[str]:
        return list(dict.fromkeys(series.name for series in self.series))

    def of(self, name: str) -> list[Series]:
        return [series for series in self.series if series.name == name]

    def largest(self, name: str) -> float:
        return max((value for series in self.of(name) for _, value in series.points), default=0)


# ---- plots ------------------------------------------------------------------------------


def over_time(series: Iterable[Series], columns: int, end: float) -> list[float | None]:
    """The largest value of all in each of so many equal spans of time; None where there is none."""
    largest: list[float | None] = [None] * columns
    for one in series:
        for at, value in one.points:
            column = min(columns - 1, int(at / end * columns)) if end > 0 else 0
            largest[column] = value if largest[column] is None else max(largest[column], value)
    return largest


def sparkline(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    top = max(known, default=0) or 1
    return "".join(" " if v is None else BARS[min(len(BARS) - 1, int(v / top * len(BARS)))] for v in values)


def table(samples: Samples, end: float) -> str:
    """A line for each quantity: its course (the largest of all daemons), first, last and largest value."""
    lines = []
    for name in samples.names():
        course = over_time(samples.of(name), COLUMNS, end)
        known = [value for value in course if value is not None]
        lines.append(f"{name:18} {sparkline(course)}  {known[0]:.1f} .. {known[-1]:.1f}, at most {max(known):.1f}")
    return "\n".join(lines)


WIDTH, HEIGHT, LEFT, GAP = 1000, 180, 70, 50
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")


def svg(samples: Samples, end: float, bands: list[tuple[float, float, str]]) -> str:
    """A diagram for each quantity, a line for each life of a daemon; `bands` are the faults: from, to, what."""
    names = samples.names()
    height = (HEIGHT + GAP) * len(names) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + 20}" height="{height}" '
        'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    for row, name in enumerate(names):
        parts += _diagram(samples.of(name), name, GAP + row * (HEIGHT + GAP), end, bands)
    return "\n".join([*parts, "</svg>", ""])


def _diagram(all_series: list[Series], name: str, top: float, end: float, bands: list[tuple[float, float, str]]) -> list[str]:
    largest = max((value for series in all_series for _, value in series.points), default=0) or 1

    def x(at: float) -> float:
        return LEFT + min(1, at / end) * WIDTH if end > 0 else LEFT

    def y(value: float) -> float:
        return top + HEIGHT * (1 - value / largest)

    parts = [f'<text x="{LEFT}" y="{top - 8}">{escape(name)}, at most {largest:.1f}, over {end / 60:.1f} minutes</text>']
    for begin, until, what in bands:
        parts.append(
            f'<rect x="{x(begin):.1f}" y="{top}" width="{max(1, x(until) - x(begin)):.1f}" height="{HEIGHT}" '
            f'fill="#eeeeee"><title>{escape(what)}</title></rect>'
        )
    for value in (0, largest / 2, largest):
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>')
        parts.append(f'<path d="M{LEFT} {y(value):.1f}h{WIDTH}" stroke="#cccccc"/>')
    for series in all_series:
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in series.points)
        colour = COLOURS[series.host % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"><title>host {series.host}</title></polyline>')
    return parts
