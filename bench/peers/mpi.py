"""Open MPI on the hosts of a lab, with its default settings and tuned."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

import stats
from lab import Lab, finish
from peers import HERE, REST_MS, need

KIB, MIB = 1 << 10, 1 << 20
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
SEGMENTS = tuple(kib * KIB for kib in (16, 32, 64, 128, 256, 512))
# Without segments, for what is small; the numbers are Open MPI's.
TREES = {
    "bcast": {"binary tree": 5, "binomial tree": 6, "k-nomial tree": 7, "scatter and allgather": 8},
    "reduce": {"linear": 1, "binary tree": 4, "binomial tree": 5, "Rabenseifner": 7},
    "allreduce": {"reduce and broadcast": 2, "recursive doubling": 3, "ring": 4, "Rabenseifner": 6},
}


def pipeline(operation: str, segment: int) -> dict[str, object]:
    """A chain of hosts, in place of the trees that Open MPI chooses for fast networks."""
    return {
        "coll_tuned_use_dynamic_rules": 1,
        f"coll_tuned_{operation}_algorithm": 3,  # pipeline
        f"coll_tuned_{operation}_algorithm_chain_fanout": 1,
        f"coll_tuned_{operation}_algorithm_segmentsize": segment,
    }


def forced(operation: str, algorithm: int, segment: int = 0) -> dict[str, object]:
    return {
        "coll_tuned_use_dynamic_rules": 1,
        f"coll_tuned_{operation}_algorithm": algorithm,
        f"coll_tuned_{operation}_algorithm_segmentsize": segment,
    }


def candidates(operation: str, size: int) -> dict[str, dict[str, object]]:
    """What is tried to find Open MPI's best for an object of this size, by a name for the table."""
    segments = {f"segments of {stats.format_size(segment)}": segment for segment in SEGMENTS if segment < size}
    if operation == "allreduce":
        streams = {f"ring, {words}": forced(operation, 5, segment) for words, segment in segments.items()}
    else:
        streams = {words: pipeline(operation, segment) for words, segment in segments.items()}
    if size > MIB and operation != "allreduce":
        return streams  # trees send it several times over one link
    return streams | {words: forced(operation, number) for words, number in TREES[operation].items()}


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


def best(
    lab: Lab, bin_dir: Path, operation: str, size: int, reps: int = 5
) -> tuple[str, dict[str, object]]:
    """The settings with which an operation is fastest (by median), and their name."""

    def median(choice: tuple[str, dict[str, object]]) -> float:
        return statistics.median(run(lab, bin_dir, operation, size, reps=reps, settings=choice[1]))

    return min(candidates(operation, size).items(), key=median)
