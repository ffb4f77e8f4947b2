"""iperf3 between two hosts of a lab: one TCP stream."""

from __future__ import annotations

import json
import subprocess

from lab import Lab, LabError, finish
from peers import need


def run(
    lab: Lab,
    *,
    seconds: int | None = None,
    size: int | None = None,
    sender: int = 1,
    receiver: int = 2,
    timeout_s: float = 120,
) -> float:
    """Bits per second that arrived, of a stream of so many seconds or bytes."""
    if (seconds is None) == (size is None):
        raise ValueError("give seconds or size")
    need("iperf3")
    amount = ["-t", str(seconds)] if size is None else ["-n", str(size)]
    server = lab.popen(receiver, ["iperf3", "-s", "-1", "--forceflush"], stdout=subprocess.PIPE)
    while "listening" not in (line := server.stdout.readline()):
        if not line:
            raise LabError("iperf3: the server does not start")
    client = lab.popen(
        sender,
        ["iperf3", "-c", lab.address(receiver), "-J", *amount],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    report = json.loads(finish(client, timeout_s))
    finish(server)
    return report["end"]["sum_received"]["bits_per_second"]
