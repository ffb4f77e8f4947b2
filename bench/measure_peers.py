#!/usr/bin/env python3
"""Measures the peers in the lab and prints a table; JSON goes to build/bench/.

Which rows are run, and with which sizes, hosts and rate, can be chosen:

    bench/measure_peers.py                                       all rows
    bench/measure_peers.py bcast --hosts 6 --rate 300mbit --size 48MiB
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import peers
import stats
from lab import Lab, LabError
from peers import iperf, mpi, raw

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass
class Row:
    """One line of the table: repetitions in seconds, and what is best possible."""

    work: str
    peer: str
    seconds: list[float]
    limit: float | None = None  # seconds; None when nothing bounds it
    size: int | None = None  # bytes, when a rate is the telling number
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        times = stats.summarize(self.seconds)
        figure = ""
        if self.limit:
            figure = f"{times.median / self.limit:.3f}x limit"
        elif self.size:
            figure = f"{self.size / times.median / 1e9:.2f} GB/s"
        return (
            self.work,
            self.peer,
            stats.format_seconds(times.median),
            stats.format_seconds(times.min),
            stats.format_seconds(times.max),
            f"{times.spread:.0%}",
            figure,
            self.note,
        )


HEADER = ("work", "peer", "median", "min", "max", "spread", "figure", "note")


@dataclass(frozen=True)
class Choice:
    """What the user asked for."""

    bin_dir: Path
    hosts: int
    rate: str
    sizes: list[int] | None
    reps: int

    def limit(self, size: int) -> float | None:
        rate = stats.parse_rate(self.rate)
        return stats.limit(size, rate) if rate else None


def bcast(choice: Choice) -> Iterator[Row]:
    """Broadcast: the plain relay, Open MPI default and tuned."""
    with Lab(choice.hosts, choice.rate) as lab:
        for size in choice.sizes or [MIB, 32 * MIB, 128 * MIB]:
            work, limit = f"bcast {stats.format_size(size)}", choice.limit(size)
            reps = choice.reps * 4 if size <= MIB else choice.reps
            yield Row(work, "relay", raw.relay(lab, choice.bin_dir, size, reps=reps), limit)
            if size <= 32 * MIB:  # the default is seven times slower: not worth a minute
                seconds = mpi.run(lab, choice.bin_dir, "bcast", size, reps=choice.reps)
                yield Row(work, "MPI default", seconds, limit)
            tries = 10 if size <= MIB else 2
            note, settings = mpi.best(lab, choice.bin_dir, "bcast", size, reps=tries)
            seconds = mpi.run(lab, choice.bin_dir, "bcast", size, reps=reps, settings=settings)
            yield Row(work, "MPI tuned", seconds, limit, note=note)


def pingpong(choice: Choice) -> Iterator[Row]:
    """There and back between two hosts of the shaped lab."""
    with Lab(choice.hosts, choice.rate) as lab:
        for size in choice.sizes or [KIB, MIB]:
            rounds = 20 if size >= MIB else 500
            rows = _interleaved(choice, f"pingpong {stats.format_size(size)}", {
                "MPI": lambda: mpi.run(lab, choice.bin_dir, "pingpong", size, reps=rounds),
                "raw TCP": lambda: raw.tcp_pingpong(lab, choice.bin_dir, size, rounds=rounds),
            })  # fmt: skip
            for row in rows:
                row.limit = choice.limit(2 * size) if size >= MIB else None
                yield row


def unshaped(choice: Choice) -> Iterator[Row]:
    """Two hosts at the machine's speed: bulk one way, small there and back."""
    with Lab(2) as lab:
        rows = _interleaved(choice, "2 hosts, 1 GiB one way", {
            "iperf3": lambda: [8 * GIB / iperf.run(lab, size=GIB)],
            "MPI": lambda: mpi.run(lab, choice.bin_dir, "oneway", GIB, reps=1),
        })  # fmt: skip
        for row in rows:
            row.size = GIB
            yield row
        yield from _interleaved(choice, "2 hosts, 1 KiB there and back", {
            "MPI (spins)":
                lambda: mpi.run(lab, choice.bin_dir, "pingpong", KIB, reps=2000, warmup=200),
            "raw chain": lambda: raw.chain(lab, choice.bin_dir, KIB, rounds=2000),
            "raw TCP": lambda: raw.tcp_pingpong(lab, choice.bin_dir, KIB, rounds=2000),
        })  # fmt: skip


def _interleaved(
    choice: Choice, work: str, runs: dict[str, Callable[[], list[float]]]
) -> list[Row]:
    """Runs the peers in turns, so that noise hits all; a run counts by its median.

    The spread is then that between runs, not that of single round trips.
    """
    rows = [Row(work, peer, []) for peer in runs]
    for _ in range(choice.reps):
        for row, run in zip(rows, runs.values(), strict=True):
            row.seconds.append(statistics.median(run()))
    return rows


def loaded(choice: Choice) -> Iterator[Row]:
    """Small round trips while a bulk stream fills the same link."""
    rate = stats.parse_rate(choice.rate)
    with Lab(2, choice.rate) as lab:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = lab.popen(2, ["iperf3", "-s", "-p", "7001"], **quiet)
        bulk = ["iperf3", "-c", lab.address(2), "-p", "7001", "-t", "600"]
        # The stream outlives the round trips; the lab's end ends it.
        stream = lab.popen(1, ["sh", "-c", f"sleep 0.3; exec {' '.join(bulk)}"], **quiet)
        lab.output(1, ["sleep", "2"])  # until TCP has filled the queue
        if server.poll() is not None or stream.poll() is not None:
            raise LabError("iperf3 does not keep the link busy")
        seconds = raw.tcp_pingpong(lab, choice.bin_dir, KIB, rounds=100, warmup=5)
        note = f"beside a stream at {choice.rate}" if rate else "beside a stream"
        yield Row("1 KiB there and back, loaded", "raw TCP", seconds, note=note)


def local(choice: Choice) -> Iterator[Row]:
    """No network: unix-socket round trips and copies into shared memory."""
    for placement in ("any", "same", "apart"):
        seconds = raw.unix_round_trips(choice.bin_dir, placement=placement, batches=choice.reps)
        note = f"cores: {placement}, {1 / statistics.median(seconds):.0f}/s"
        yield Row("1 KiB request, 64 B reply", "raw unix", seconds, note=note)
    size = 64 * MIB
    warm, fresh = raw.memcpy_shm(choice.bin_dir, size, reps=choice.reps)
    yield Row("64 MiB copy", "warm shm", warm, size=size)
    yield Row("64 MiB copy", "fresh shm", fresh, size=size)


GROUPS = {group.__name__: group for group in (bcast, pingpong, unshaped, loaded, local)}


def _parse_options() -> tuple[argparse.Namespace, Choice]:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n".join(f"  {name:10}{group.__doc__}" for name, group in GROUPS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="default: all, see below")
    parser.add_argument("--hosts", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--rate", default="500mbit", help="default: %(default)s")
    parser.add_argument("--size", type=stats.parse_size, action="append", help="may be repeated")
    parser.add_argument("--reps", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--bin", type=Path, default=peers.DEFAULT_BIN, help="where programs go")
    parser.add_argument("--json", type=Path, default=peers.DEFAULT_BIN.parent / "peers.json")
    options = parser.parse_args()
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    bin_dir = peers.build(options.bin)
    return options, Choice(bin_dir, options.hosts, options.rate, options.size, options.reps)


def main() -> int:
    rows: list[Row] = []
    try:
        options, choice = _parse_options()
        for name in options.groups or GROUPS:
            for row in GROUPS[name](choice):
                rows.append(row)
                print(*row.cells(), sep=" | ", file=sys.stderr, flush=True)
    except LabError as error:
        print(f"measure_peers.py: {error}", file=sys.stderr)
        return 1
    print(stats.table(HEADER, (row.cells() for row in rows)))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
