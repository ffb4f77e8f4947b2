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
from peers import REST_MS, gloo, mpi, raw
from report import Figure, Goal, at_most
from rows import KIB, MIB, SMALL, Row, Run, Setting, median_note

HOPLITE, MPI, TUNED, GLOO, RELAY = "Hoplite", "Open MPI", "Open MPI tuned", "Gloo", "bare relay"
LIMIT, BEST, ALLOWED = "x limit", "x the best", "x allowed"
TINY = 64 * KIB  # up to here a repetition takes about a millisecond, and one in many is disturbed

# What is allowed for tiny objects: so much of the best peer's time, and for each phase what it takes to wake the daemons of
# all hosts on few cores. Peers spin.
OF_THE_BEST = 1.5
WAKING_S = 0.5e-3
PHASES = {"bcast": 1, "reduce": 1, "allreduce": 2}

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
    """Those that the user wants, or that a figure refers to."""
    setting, units = run.setting, set(run.row.goals)
    everybody = setting.with_peers or units & {BEST, ALLOWED} or not setting.limit()
    peers = Peers({}, [])
    if everybody:
        _add_mpi_default(run, lab, operation, peers)
    if everybody or f"x {TUNED}" in units:
        _add_mpi_tuned(run, lab, operation, peers)
    if everybody:
        _add_gloo(run, lab, operation, peers, stack)
    if everybody and operation == "bcast":
        reps = batch_for(setting.size)
        peers.turns[RELAY] = lambda: raw.relay(lab, setting.peers_bin, setting.size, reps=reps)
    return peers


def _add_mpi_default(run: Run, lab: Lab, operation: str, peers: Peers) -> None:
    setting, reps = run.setting, batch_for(run.setting.size)
    peers.turns[MPI] = lambda: mpi.run(lab, setting.peers_bin, operation, setting.size, reps=reps)


def _add_mpi_tuned(run: Run, lab: Lab, operation: str, peers: Peers) -> None:
    setting, reps = run.setting, batch_for(run.setting.size)
    run.say("looking for Open MPI's best settings")
    tries = 5 if setting.size <= SMALL else 1
    words, settings = mpi.best(lab, setting.peers_bin, operation, setting.size, reps=tries)
    peers.words.append(f"{TUNED}: {words}")
    peers.turns[TUNED] = lambda: mpi.run(
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


def reference(unit: str, samples: dict[str, list[float]], bound: float | None, operation: str) -> float:
    """What a figure of this unit is a multiple of, in seconds."""
    if unit == LIMIT:
        return bound
    medians = {who: statistics.median(seconds) for who, seconds in samples.items() if who != HOPLITE}
    if unit == ALLOWED:
        return OF_THE_BEST * min(medians.values()) + WAKING_S * PHASES[operation]
    return min(medians.values()) if unit == BEST else medians[unit.removeprefix("x ")]


def beside_peers(
    operation: str,
    once: Callable[[Cluster, int], float],
    bound: Callable[[Setting], float | None],
    room: Callable[[int], int] = store_size,
) -> Callable[[Run], Iterator[Figure]]:
    """A row: `once` is one repetition by Hoplite, in seconds, `bound` the least that it can take, `room` a store's size."""

    def measure(run: Run) -> Iterator[Figure]:
        setting = run.setting
        with (
            Lab(setting.hosts, setting.rate) as lab,
            Cluster(lab, setting.bin_dir, memory=room(setting.size)) as cluster,
            contextlib.ExitStack() as stack,
        ):
            run.warm_up(lambda: once(cluster, setting.size))
            peers = peers_of(run, lab, operation, stack)
            batch = batch_for(setting.size)
            hoplite = {HOPLITE: lambda: [once(cluster, setting.size) for _ in range(batch)]}
            samples = run.in_turns(hoplite | peers.turns, keep_all=True)
        yield from figures(run, operation, samples, bound(setting), peers.words)

    return measure


def figures(
    run: Run, operation: str, samples: dict[str, list[float]], limit: float | None, words: list[str]
) -> Iterator[Figure]:
    note = "; ".join([median_note(samples, limit if LIMIT in run.row.goals else None), *words])
    for unit in run.row.goals:
        if unit == LIMIT and not limit:
            unit = BEST  # an unshaped link has no limit that is known
        value = stats.ratio(samples[HOPLITE], reference(unit, samples, limit, operation))
        yield run.figure(value, unit, samples, note=note)


def rows_by_size(
    name: str, make: Callable[[str, str, Setting, dict[str, Goal | None]], Row], *, of_the_best: float
) -> Iterator[Row]:
    """The sizes between a message and a stream, which neither latency nor the wire decides alone."""
    for kib in (1, 4, 16, 32, 64):
        setting = Setting(8, "500mbit", kib * KIB)
        yield make(f"{name}-{kib}kib", "small: 1.5 x the best peer and 0.5 ms a phase", setting, {ALLOWED: at_most(1)})
    for kib in (128, 256, 512):
        setting = Setting(8, "500mbit", kib * KIB)
        yield make(f"{name}-{kib}kib", "between small and large", setting, {BEST: at_most(of_the_best)})
    for kib in (16, 64, 256):
        yield make(f"{name}-{kib}kib-16hosts", "among more hosts", Setting(16, "500mbit", kib * KIB), {BEST: None})


