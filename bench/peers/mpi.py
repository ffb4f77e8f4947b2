"""Open MPI on the hosts of a lab, with its default settings and tuned."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from lab import Lab, finish
from peers import HERE, REST_MS, need

KIB = 1024
# One TCP connection between two hosts, over the shaped link, through our agent.
TRANSPORT = {
    "plm_rsh_agent": str(HERE / "lab_rsh"),
    "plm_rsh_no_tree_spawn": 1,
    "orte_leave_session_attached": 1,  # a host that fails to start is an error, not a hang
    "pml": "ob1",
    "btl": "tcp,self",
    "btl_tcp_if_include": "eth0",
    "oob_tcp_if_include": "eth0",
}
DEFAULT: dict[str, object] = {}
SEGMENTS = tuple(kib * KIB for kib in (16, 32, 64, 128, 256))


def tuned(segment: int = 128 * KIB) -> dict[str, object]:
    """Pipelines, in place of the trees that Open MPI chooses for fast networks."""
    return {
        "coll_tuned_use_dynamic_rules": 1,
        "coll_tuned_bcast_algorithm": 3,  # pipeline
        "coll_tuned_bcast_algorithm_chain_fanout": 1,
        "coll_tuned_bcast_algorithm_segmentsize": segment,
        "coll_tuned_reduce_algorithm": 3,  # pipeline
        "coll_tuned_reduce_algorithm_segmentsize": segment,
        "coll_tuned_allreduce_algorithm": 4,  # ring
    }


def run(
    lab: Lab,
    bin_dir: Path,
    operation: str,
    size: int,
    *,
    reps: int,
    warmup: int = 1,
    settings: dict[str, object] = DEFAULT,
    timeout_s: float = 300,
) -> list[float]:
    """Seconds of each repetition on all hosts of the lab; see mpi_bench.c."""
    need("mpirun")
    # Ranks that wait spin. With a core for each that is Open MPI at its best;
    # with more ranks than cores they must at least yield to those that work.
    spare_cores = (os.cpu_count() or 1) >= lab.hosts
    hosts = ",".join(f"{lab.address(i)}:1" for i in range(1, lab.hosts + 1))
    with tempfile.TemporaryDirectory(prefix="mpi-") as tmp:
        mca = TRANSPORT | settings | {"mpi_yield_when_idle": int(not spare_cores)}
        argv = ["mpirun", "--allow-run-as-root", "--bind-to", "none"]
        argv += ["-np", str(lab.hosts), "-H", hosts]
        for name, value in mca.items():
            argv += ["--mca", name, str(value)]
        # Round trips follow each other: a rest would put the cores to sleep.
        rest_ms = 0 if operation == "pingpong" else REST_MS
        bench = [bin_dir / "mpi_bench", operation, size, reps, warmup, rest_ms]
        argv += map(str, bench)
        child = lab.popen(
            1,
            argv,
            env=os.environ | {"LAB_HOST_PREFIX": lab.host_prefix, "LAB_TMP": tmp, "TMPDIR": tmp},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return json.loads(finish(child, timeout_s))["seconds"]


def best_segment(lab: Lab, bin_dir: Path, operation: str, size: int, reps: int = 5) -> int:
    """The segment size with which the tuned settings are fastest (by median)."""

    def median(segment: int) -> float:
        settings = tuned(segment)
        return statistics.median(run(lab, bin_dir, operation, size, reps=reps, settings=settings))

    return min(SEGMENTS, key=median)
