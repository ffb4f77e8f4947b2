"""One rank of Gloo that gloo.py commands: a line in, a line of JSON out.

    join ADDRESS PORT RANK RANKS
    bcast|reduce|allreduce SIZE REPS WARMUP REST_MS

An operation is timed as in mpi_bench.c: after a rest and a barrier, the longest
of all ranks. The sums are looked at as well.
"""

import json
import os
import sys
import time
import warnings


def join(address: str, port: str, rank: str, ranks: str) -> dict:
    global torch, dist  # it takes seconds: not before all ranks have been started
    os.environ |= {"GLOO_SOCKET_IFNAME": "eth0", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    warnings.simplefilter("ignore")  # that there is no NumPy, and no name server in the lab
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{address}:{port}", rank=int(rank), world_size=int(ranks)
    )
    return {"rank": int(rank)}


OPERATIONS = {
    "bcast": lambda array: dist.broadcast(array, 0),
    "reduce": lambda array: dist.reduce(array, 0),
    "allreduce": lambda array: dist.all_reduce(array),
}


def time_once(operation: str, size: int, rest_ms: int) -> float:
    array = torch.ones(size // 4)
    time.sleep(rest_ms / 1000)
    dist.barrier()
    start = time.monotonic()
    OPERATIONS[operation](array)
    own = torch.tensor([time.monotonic() - start], dtype=torch.float64)
    dist.all_reduce(own, op=dist.ReduceOp.MAX)
    complete = operation == "allreduce" or (operation == "reduce" and dist.get_rank() == 0)
    if complete and not bool((array == dist.get_world_size()).all()):
        raise ValueError("wrong sum")
    return own.item()


def timed(operation: str, size: str, reps: str, warmup: str, rest_ms: str) -> dict:
    seconds = [time_once(operation, int(size), int(rest_ms)) for _ in range(int(warmup) + int(reps))]
    return {"seconds": seconds[int(warmup) :]}


def main() -> None:
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            answer = join(*arguments) if name == "join" else timed(name, *arguments)
        except Exception as error:  # whatever it is, the one who asked must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
