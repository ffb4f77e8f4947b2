"""A simulated cluster of very many nodes that die and join: what it says on its control connections."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from lab import LabError
from report import Figure, at_most
from rows import Row, Run, Setting
from rows.crowd import FALSE_DEATHS, one

PERCENT = 1  # of the nodes, per minute
MEAN, WORST, FLAT = "bytes of control per node", "of the node that sends most", "second half beside the first"
PATIENCE_S = 4 * 3600


def turnover(run: Run) -> Iterator[Figure]:
    setting = run.setting
    program = setting.bin_dir / "hoplite-sim"
    argv = [program, "--turnover", "--nodes", setting.hosts, "--objects", setting.objects, "--minutes", setting.minutes]
    run.say("simulates; this takes a while ...")
    try:
        done = subprocess.run(list(map(str, [*argv, "--percent", PERCENT])), capture_output=True, text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{program}: {error}") from None
    if done.returncode:
        raise LabError(f"{program}: {(done.stderr or done.stdout).strip()}")

    def value(name: str) -> float:
        found = re.search(rf"^  {name} +([0-9.]+)", done.stdout, re.MULTILINE)
        if not found:
            raise LabError(f"{program} does not say {name!r}:\n{done.stdout}")
        return float(found[1])

    yield run.figure(one(value("control, mean")), "KB/s", {}, what=MEAN, note=f"{value('deaths'):.0f} deaths")
    yield run.figure(one(value("control, worst node")), "KB/s", {}, what=WORST, note=f"{value('worst second'):.0f} KB in its worst second")
    first, second = value("control, first half"), value("control, second half")
    yield run.figure(one(second / first if first else 0), "x", {}, what=FLAT)
    yield run.figure(one(value("given up alive")), "nodes", {}, what=FALSE_DEATHS)


ROWS = (
    Row(
        "turnover",
        "simulated: 1 % of very many nodes die and join per minute",
        "simulated,",
        Setting(1000, "none", 100, objects=1000, minutes=4),
        turnover,
        {MEAN: at_most(50), WORST: at_most(50), FLAT: at_most(1.2), FALSE_DEATHS: at_most(0)},
    ),
)
