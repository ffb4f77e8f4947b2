"""The plain C peers. Each function returns seconds, one for each repetition."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab import Lab, finish
from peers import REST_MS

PORT = 7000  # nothing else lives on the lab's hosts


def _run_together(
    lab: Lab, *commands: tuple[int, Sequence[object]], timeout_s: float = 120
) -> dict:
    """Starts (host, argv) pairs at once, awaits all; what the last one printed."""
    children = [
        lab.popen(
            host, [str(arg) for arg in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for host, argv in commands
    ]
    # The last first: if it fails the others may wait for ever, until the lab ends.
    outputs = [finish(child, timeout_s) for child in reversed(children)]
    return json.loads(outputs[0])


def chain(lab: Lab, bin_dir: Path, size: int, *, rounds: int, warmup: int = 100) -> list[float]:
    """Round trips client - daemon - TCP - daemon - client, from host 1 to host 2."""
    program = bin_dir / "raw_chain"
    return _run_together(
        lab,
        (2, [program, "far-daemon", size, PORT]),
        (2, [program, "far-client", size]),
        (1, [program, "near-daemon", size, lab.address(2), PORT]),
        (1, [program, "near-client", size, rounds, warmup]),
    )["seconds"]


def tcp_pingpong(
    lab: Lab, bin_dir: Path, size: int, *, rounds: int, warmup: int = 10, pause_ms: int = 0
) -> list[float]:
    """Round trips over one TCP connection between hosts 1 and 2, `pause_ms` apart."""
    program = bin_dir / "raw_tcp_pingpong"
    return _run_together(
        lab,
        (2, [program, "server", size, PORT]),
        (1, [program, "client", size, lab.address(2), PORT, rounds, warmup, pause_ms]),
    )["seconds"]


def relay(
    lab: Lab, bin_dir: Path, size: int, *, reps: int, block: int = 256 * 1024
) -> list[float]:
    """Cut-through chain from host 1 over all others: the limit of a broadcast."""
    program, last = bin_dir / "relay", lab.hosts

    def command(host: int) -> tuple[int, list[object]]:
        role = {1: "head", last: "tail"}.get(host, "middle")
        argv = [program, role, size, reps, REST_MS, block, PORT]
        return host, argv if host == last else [*argv, lab.address(host + 1)]

    return _run_together(lab, *(command(host) for host in range(last, 0, -1)))["seconds"]


def unix_round_trips(
    bin_dir: Path,
    *,
    placement: str,
    request: int = 1024,
    reply: int = 64,
    rounds: int = 20_000,
    batches: int = 5,
) -> list[float]:
    """Seconds of one request and reply over a unix socket: the mean of each batch.

    `placement` of the two processes: "any", "same" core or "apart".
    """
    argv = [bin_dir / "raw_unix", placement, request, reply, rounds, batches]
    output = subprocess.check_output([str(arg) for arg in argv], timeout=120)
    return [seconds / rounds for seconds in json.loads(output)["seconds"]]


def memcpy_shm(bin_dir: Path, size: int, *, reps: int = 7) -> tuple[list[float], list[float]]:
    """Seconds of copies into warm and into fresh shared memory."""
    argv = [str(bin_dir / "memcpy_shm"), str(size), str(reps)]
    result = json.loads(subprocess.check_output(argv, timeout=120))
    return result["warm_seconds"], result["fresh_seconds"]
