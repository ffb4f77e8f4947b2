"""The rows of the benchmark. Each says what it measures, with which settings and
what must be reached; `bench/run --list` shows them.

A row is a generator of figures. It runs Hoplite and its peers in turns on the
same hosts, so that whatever else the machine does hits all of them.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import peers
import stats
from report import Figure, Goal

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SMALL = 4 * MIB  # up to here a repetition is so short that several make one sample
JUDGED_WITH = ("hosts", "rate", "size", "objects", "minutes")  # a goal is for these of the table, and for no others
UNDISTURBED = "x undisturbed"
REPO = Path(__file__).resolve().parents[2]
DEFAULT_BIN = REPO / "build" / "release" / "bin"


@dataclass(frozen=True)
class Setting:
    """What a row is run with. The first six can be chosen for each row."""

    hosts: int
    rate: str  # of each link, as tc writes it, or "none"
    size: int  # bytes of the object
    reps: int = 5
    objects: int = 0  # of rows about very many; 0: not about that
    minutes: float = 0  # of rows that last as long as one likes
    bin_dir: Path = DEFAULT_BIN  # Hoplite's programs
    peers_bin: Path = peers.DEFAULT_BIN
    with_peers: bool = True  # also those that no goal refers to

    def limit(self, size: int | None = None) -> float | None:
        """Seconds that the object needs on one link; None if it is not shaped."""
        rate = stats.parse_rate(self.rate)
        return stats.limit(self.size if size is None else size, rate) if rate else None

    def __str__(self) -> str:
        hosts = f"{self.hosts} host{'s' if self.hosts > 1 else ''}"
        rate = "unshaped" if stats.parse_rate(self.rate) is None else self.rate
        many = f"{self.objects:,} x " if self.objects else ""
        lasting = [f"{self.minutes:g} min"] if self.minutes else []
        parts = [f"{many}{stats.format_size(self.size)}", hosts, *lasting]
        return ", ".join(parts if self.hosts == 1 else [*parts, rate])


class Run:
    """One row being measured: its settings, its goals, and words about progress."""

    def __init__(self, row: Row, setting: Setting):
        self.row = row
        self.setting = setting
        self.work = f"{row.work} {setting}" if row.work else str(setting)
        # Goals are for the settings of the table; others are measured, not judged.
        usual = row.setting
        self._judged = all(getattr(setting, name) == getattr(usual, name) for name in JUDGED_WITH)

    def say(self, text: str) -> None:
        now = time.strftime("%H:%M:%S")
        print(f"[{now}] {self.row.name}: {text}", file=sys.stderr, flush=True)

    def figure(
        self,
        value: stats.Summary,
        unit: str,
        samples: dict[str, list[float]],
        *,
        what: str = "",
        note: str = "",
    ) -> Figure:
        """`what` tells figures of one row apart; its goal goes by that, or else by the unit."""
        work = f"{self.work}: {what}" if what else self.work
        goal = self.row.goals.get(what or unit) if self._judged else None
        return Figure(self.row.name, work, value, unit, goal, samples, note)

    def warm_up(self, once: Callable[[], object]) -> None:
        """Pages, connections and measured rates: the second of a kind is planned by the first.

        Receivers come in another order each time, and whoever meets for the first time makes a connection, which counts
        beside a small object: most pairs meet before anything is measured. A peer's partners are always the same, and
        have met after its one warm-up.
        """
        for _ in range(2 * self.setting.hosts if self.setting.size <= SMALL else 2):
            once()

    def in_turns(
        self, runs: dict[str, Callable[[], list[float]]], *, keep_all: bool = False
    ) -> dict[str, list[float]]:
        """Runs each `reps` times, in turns; the samples of each.

        A run counts by its median, or with `keep_all` by all it measured.
        """
        samples: dict[str, list[float]] = {who: [] for who in runs}
        for rep in range(self.setting.reps):
            words = []
            for who, run in runs.items():
                measured = run()
                median = statistics.median(measured)
                samples[who] += measured if keep_all else [median]
                words.append(f"{who} {stats.format_seconds(median)}")
            self.say(f"{rep + 1} of {self.setting.reps}: {', '.join(words)}")
        return samples

    def with_deaths(
        self, undisturbed: Callable[[], float], killing: Callable[[float], tuple[float, str]], whose: str
    ) -> Figure:
        """How much longer it takes when a node dies half-way.

        `killing` is told when that is, and answers with its seconds and with what happened.
        """
        calm: list[float] = []
        disturbed: list[float] = []
        for rep in range(self.setting.reps):
            calm.append(undisturbed())
            seconds, words = killing(statistics.median(calm) / 2)
            disturbed.append(seconds)
            self.say(
                f"{rep + 1} of {self.setting.reps}: undisturbed {stats.format_seconds(calm[-1])}, "
                f"{words} {stats.format_seconds(seconds)}"
            )
        samples = {"undisturbed": calm, f"{whose} killed": disturbed}
        note = median_note(samples, self.setting.limit())
        return self.figure(stats.ratio(disturbed, calm), UNDISTURBED, samples, note=note)


def sleep_until(at_ns: int) -> None:
    """On the clock of time.monotonic_ns()."""
    time.sleep(max(0, (at_ns - time.monotonic_ns()) / 1e9))


@dataclass(frozen=True)
class Row:
    """A row of the table: `measure` yields its figures."""

    name: str
    about: str  # one line for --list
    work: str  # begins the line of the table; the settings follow
    setting: Setting
    measure: Callable[[Run], Iterator[Figure]]
    goals: dict[str, Goal | None]  # by unit, or by what the figure is about; None: it is reported, not judged


def median_note(samples: dict[str, list[float]], limit: float | None = None) -> str:
    """The medians in words: "relay 1.01x, Open MPI 1.10x", or in seconds."""

    def word(seconds: list[float]) -> str:
        median = statistics.median(seconds)
        return f"{median / limit:.3f}x" if limit else stats.format_seconds(median)

    return ", ".join(f"{who} {word(seconds)}" for who, seconds in samples.items())


def all_rows() -> dict[str, Row]:
    """By name, in the order of the table."""
    from rows import (
        allreduce, broadcast, bulk, churn, crowd, gather, local, memory, micro, pingpong, priority, python, reduce, swarm, turnover,
    )  # fmt: skip

    local_ones = (local, python, memory, micro)
    modules = (broadcast, reduce, allreduce, gather, priority, pingpong, bulk, *local_ones, crowd, churn, swarm, turnover)
    return {row.name: row for module in modules for row in module.ROWS}
