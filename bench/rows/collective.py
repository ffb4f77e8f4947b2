"""What the rows about several sources share: arrays in a cluster, and peers beside Hoplite."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import stats
from cluster import Cluster, Worker, ask_all
from lab import Lab
from peers import REST_MS, gloo, mpi
from report import Figure
from rows import KIB, MIB, SMALL, Run, Setting, median_note

HOPLITE, MPI, TUNED, GLOO = "Hoplite", "Open MPI", "Open MPI tuned", "Gloo"
LIMIT, BETTER = "x limit", "x the better"
TINY = 64 * KIB  # up to here Open MPI's own choice is its best: pipelines are for what takes time on the wire

_seeds = itertools.count(1)


@dataclass(frozen=True)
class Source:
    """An array that is, or will be, on a host."""

    host: int
    seed: int
    id: str


def put_arrays(cluster: Cluster, size: int, hosts: Iterable[int] | None = None) -> list[Source]:
    """A new one on each of these hosts, or of all."""
    return _from_each(cluster, f"put_array {size}", hosts)


def stage_arrays(cluster: Cluster, size: int) -> list[Source]:
    """One on each host, for `put_staged`."""
    return _from_each(cluster, f"stage {size}", None)


def _from_each(cluster: Cluster, command: str, hosts: Iterable[int] | None) -> list[Source]:
    workers = [cluster.workers[host] for host in hosts or sorted(cluster.workers)]
    seeds = [next(_seeds) for _ in workers]
    for worker, seed in zip(workers, seeds, strict=True):
        worker.send(f"{command} {seed}")
    return [Source(w.host, seed, w.answer()["id"]) for w, seed in zip(workers, seeds, strict=True)]


def promise_arrays(cluster: Cluster, hosts: Iterable[int]) -> list[Source]:
    """Ids that nobody puts."""
    return [Source(host, 0, cluster.workers[host].ask("mint")["id"]) for host in hosts]


def ids(sources: Iterable[Source]) -> str:
    return " ".join(source.id for source in sources)


def check_sum(workers: Iterable[Worker], size: int, sources: Iterable[Source]) -> None:
    """That what each of them got last is the sum of exactly these."""
    ask_all(workers, f"check_sum {size} {' '.join(str(source.seed) for source in sources)}")


def after_a_rest() -> int:
    """When the next repetition starts."""
    return time.monotonic_ns() + REST_MS * 1_000_000


def store_size(size: int) -> int:
    """Room for a source, an output and a result, and those of the repetition before, should they be freed late."""
    return 6 * size + 64 * MIB


# ---- beside the peers --------------------------------------------------------------


@dataclass
class Peers:
    """Those that take turns with Hoplite, and how they were set up."""

    turns: dict[str, Callable[[], list[float]]]
    words: list[str]


def batch_for(size: int) -> int:
    """How many repetitions make one turn."""
    if size <= TINY:
        return 40
    return 4 if size <= SMALL else 1


def peers_of(run: Run, lab: Lab, operation: str, stack: contextlib.ExitStack) -> Peers:
    """Those that the user wants, or that a goal refers to."""
    setting, units = run.setting, set(run.row.goals)
    peers = Peers({}, [])
    if setting.with_peers or units != {LIMIT} or not setting.limit():
        _add_mpi(run, lab, operation, peers)
    if setting.with_peers or BETTER in units:
        _add_gloo(run, lab, operation, peers, stack)
    return peers


def _add_mpi(run: Run, lab: Lab, operation: str, peers: Peers) -> None:
    setting, reps = run.setting, batch_for(run.setting.size)
    name, settings = MPI, mpi.DEFAULT
    if setting.size > TINY:
        run.say("looking for Open MPI's best settings")
        tries = 5 if setting.size <= SMALL else 1
        words, settings = mpi.best(lab, setting.peers_bin, operation, setting.size, reps=tries)
        name = TUNED
        peers.words.append(f"{TUNED}: {words}")
    peers.turns[name] = lambda: mpi.run(
        lab, setting.peers_bin, operation, setting.size, reps=reps, settings=settings
    )


def _add_gloo(
    run: Run, lab: Lab, operation: str, peers: Peers, stack: contextlib.ExitStack
) -> None:
    if not gloo.installed():
        peers.words.append(f"{GLOO}: not installed")
        return
    run.say("starting Gloo")
    group = stack.enter_context(gloo.Gloo(lab))
    reps = batch_for(run.setting.size)
    peers.turns[GLOO] = lambda: group.run(operation, run.setting.size, reps=reps)


def reference(unit: str, samples: dict[str, list[float]], bound: float | None) -> float:
    """What a figure of this unit is a multiple of, in seconds."""
    if unit == LIMIT:
        return bound
    medians = {who: statistics.median(seconds) for who, seconds in samples.items() if who != HOPLITE}
    return min(medians.values()) if unit == BETTER else medians[unit.removeprefix("x ")]


def beside_peers(
    operation: str,
    once: Callable[[Cluster, int], float],
    bound: Callable[[Setting], float | None],
) -> Callable[[Run], Iterator[Figure]]:
    """A row: `once` is one repetition by Hoplite, in seconds, `bound` the least that it can take."""

    def measure(run: Run) -> Iterator[Figure]:
        setting = run.setting
        with (
            Lab(setting.hosts, setting.rate) as lab,
            Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
            contextlib.ExitStack() as stack,
        ):
            run.warm_up(lambda: once(cluster, setting.size))
            peers = peers_of(run, lab, operation, stack)
            batch = batch_for(setting.size)
            hoplite = {HOPLITE: lambda: [once(cluster, setting.size) for _ in range(batch)]}
            samples = run.in_turns(hoplite | peers.turns, keep_all=True)
        yield from figures(run, samples, bound(setting), peers.words)

    return measure


def figures(
    run: Run, samples: dict[str, list[float]], limit: float | None, words: list[str]
) -> Iterator[Figure]:
    note = "; ".join([median_note(samples, limit if LIMIT in run.row.goals else None), *words])
    for unit in run.row.goals:
        if unit == LIMIT and not limit:
            unit = BETTER  # an unshaped link has no limit that is known
        value = stats.ratio(samples[HOPLITE], reference(unit, samples, limit))
        yield run.figure(value, unit, samples, note=note)


