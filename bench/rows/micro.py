"""Microbenchmarks of single parts (bench/micro): what must not grow with the cluster, and arithmetic beside the memory."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator

import stats
from lab import LabError
from report import Figure, at_least, at_most
from rows import Row, Run, Setting, median_note

PLANNER = ("arrive_large", "arrive_small", "attach_again", "finish")
PROGRAMS = ("plan", "codec", "allocator")
FEWEST, MOST = 100, 100_000  # receivers
# log2(100,000) / log2(100) = 2.5; the rest is for caches, which 100 receivers fit and 100,000 do not.
GROWTH = 6

# Plain loops over the same memory as the kernels; the fastest is the bound.
TRIADS = ("plain_triad", "plain_triad_in_place")
# Sums into an accumulator that must reach a part of the bound. f16 and bf16 are held to the bound in bytes, not in elements:
# as many bytes of them are twice as many additions, and each is converted three times.
SUMS = {"f32": 0.9, "f16": 0.5, "bf16": 0.5}


def _run_program(run: Run, name: str, *options: str) -> dict[str, list[float]]:
    """Nanoseconds of each benchmark, one for each repetition."""
    program = run.setting.bin_dir / f"micro-{name}"
    if not program.exists():
        raise LabError(f"{program} is missing; `make build` makes it (Debian: libbenchmark-dev)")
    argv = [program, "--benchmark_format=json", "--benchmark_min_time=0.05"]
    argv += [f"--benchmark_repetitions={run.setting.reps}", *options]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise LabError(f"{program}: {done.stderr.strip()}")
    found: dict[str, list[float]] = {}
    for benchmark in json.loads(done.stdout)["benchmarks"]:
        if benchmark.get("error_occurred"):
            raise LabError(f"{benchmark['name']}: {benchmark['error_message']}")
        if benchmark["run_type"] == "iteration":
            found.setdefault(benchmark["run_name"], []).append(benchmark["cpu_time"])
    return found


def _print(found: dict[str, list[float]]) -> None:
    rows = []
    for name, ns in found.items():
        times = stats.summarize(ns)
        rows.append((name, f"{times.median:,.0f} ns", f"{times.spread:.0%}"))
    print(stats.table(("microbenchmark", "median", "spread"), rows), file=sys.stderr)


def micro(run: Run) -> Iterator[Figure]:
    found = {}
    for program in PROGRAMS:
        run.say(f"{program} ...")
        found |= _run_program(run, program)
    _print(found)
    for name in PLANNER:
        few, many = found[f"{name}/{FEWEST}"], found[f"{name}/{MOST}"]
        samples = {f"{who} receivers, ns": ns for who, ns in ((FEWEST, few), (MOST, many))}
        note = f"{stats.summarize(few).median:.0f} ns, {stats.summarize(many).median:.0f} ns"
        yield run.figure(stats.ratio(many, few), "x", samples, what=growth_of(name), note=note)


def growth_of(benchmark: str) -> str:
    return f"planner, {benchmark}: {MOST:,} beside {FEWEST} receivers"


def kernels(run: Run) -> Iterator[Figure]:
    run.say("kernels ...")
    found = _run_program(run, "kernels", "--benchmark_enable_random_interleaving=true")
    _print(found)
    triads = {name: found[f"{name}/large"] for name in TRIADS}
    bound_ns = min(statistics.median(ns) for ns in triads.values())
    for dtype in SUMS:
        times = {"sum": found[f"sum/{dtype}_large"], **triads}
        reached = stats.summarize(bound_ns / ns for ns in times["sum"])
        samples = {f"{who}, ns": ns for who, ns in times.items()}
        note = median_note({who: [one / 1e9 for one in ns] for who, ns in times.items()})
        yield run.figure(reached, "x bound", samples, what=sum_of(dtype), note=note)


def sum_of(dtype: str) -> str:
    return f"{dtype} sum into an accumulator, beyond the cache"


ROWS = (
    Row(
        "micro",
        "planner, codec and allocator alone",
        "cost",
        Setting(1, "none", 0),
        micro,
        {growth_of(name): at_most(GROWTH) for name in PLANNER},
    ),
    Row(
        "kernels",
        "reduction arithmetic beside the fastest plain triad, in bytes per second",
        "arithmetic",
        Setting(1, "none", 0, reps=11),  # one pass is short, and the memory belongs to others too
        kernels,
        {sum_of(dtype): at_least(part) for dtype, part in SUMS.items()},
    ),
)
