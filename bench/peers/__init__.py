"""What Hoplite is compared with: Open MPI, iperf3 and plain C programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab import LabError

HERE = Path(__file__).resolve().parent
DEFAULT_BIN = HERE.parents[1] / "build" / "bench" / "bin"

# Before each repetition of a collective: five times what a shaper of the lab
# (256 kB burst) needs to recover at 500 Mbit/s, far below TCP's 200 ms timeout.
REST_MS = 20


def need(program: str) -> None:
    """LabError if a program is not installed."""
    if not shutil.which(program):
        raise LabError(f"{program} is not installed; `tools/setup bench` does that")


def build(bin_dir: Path = DEFAULT_BIN) -> Path:
    """Compiles what is not up to date; the folder with the programs.

    Without Open MPI only the others: rows that need it will say so.
    """
    bin_dir = Path(bin_dir).resolve()
    target = "all" if shutil.which("mpicc") else "plain"
    command = ["make", "--silent", "-C", str(HERE), f"BIN={bin_dir}", target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"the peers do not compile:\n{done.stderr.strip()}")
    return bin_dir
