"""Microbenchmarks of single parts (bench/micro): what must not grow with the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import stats
from lab import LabError
from report import Figure, at_most
from rows import Row, Run, Setting

PLANNER = ("arrive_large", "arrive_small", "attach_again", "finish")
PROGRAMS = ("plan", "codec", "allocator")
FEWEST, MOST = 100, 100_000  # receivers
# log2(100,000) / log2(100) = 2.5; the rest is for caches, which 100 receivers fit and 100,000 do not.
GROWTH = 6


def _run_program(run: Run, name: str) -> dict[str, list[float]]:
    """Nanoseconds of each benchmark, one for each repetition."""
    program = run.setting.bin_dir / f"micro-{name}"
    if not program.exists():
        raise LabError(f"{program} is missing; `make build` makes it (Debian: libbenchmark-dev)")
    argv = [program, "--benchmark_format=json", "--benchmark_min_time=0.05"]
    argv += [f"--benchmark_repetitions={run.setting.reps}"]
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


def micro(run: Run) -> Iterator[Figure]:
    found = {}
    for program in PROGRAMS:
        run.say(f"{program} ...")
        found |= _run_program(run, program)
    rows = []
    for name, ns in found.items():
        times = stats.summarize(ns)
        rows.append((name, f"{times.median:,.0f} ns", f"{times.spread:.0%}"))
    print(stats.table(("microbenchmark", "median", "spread"), rows), file=sys.stderr)
    for name in PLANNER:
        few, many = found[f"{name}/{FEWEST}"], found[f"{name}/{MOST}"]
        samples = {f"{who} receivers, ns": ns for who, ns in ((FEWEST, few), (MOST, many))}
        note = f"{stats.summarize(few).median:.0f} ns, {stats.summarize(many).median:.0f} ns"
        yield run.figure(stats.ratio(many, few), "x", samples, what=growth_of(name), note=note)


def growth_of(benchmark: str) -> str:
    return f"planner, {benchmark}: {MOST:,} beside {FEWEST} receivers"


ROWS = (
    Row(
        "micro",
        "planner, codec and allocator alone",
        "cost",
        Setting(1, "none", 0),
        micro,
        {growth_of(name): at_most(GROWTH) for name in PLANNER},
    ),
)
