"""From a process on one host to a process on another and back, by puts and gets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import stats
from cluster import Cluster, ask_all
from lab import Lab
from peers import mpi, raw
from report import Figure, at_most
from rows import KIB, MIB, Row, Run, Setting, median_note

HOPLITE, MPI, CHAIN, TCP = "Hoplite", "Open MPI", "bare chain", "bare TCP"
LARGE = 256 * KIB  # from here on it is the link that takes the time
WARMUP = 10

_sessions = itertools.count()


def rounds_for(setting: Setting) -> int:
    """Enough for a steady median, and not more than a few seconds."""
    if setting.size >= LARGE:
        return 20
    return 500 if setting.hosts > 2 else 2000


def there_and_back(cluster: Cluster, size: int, rounds: int) -> list[float]:
    """Seconds of each round between hosts 1 and 2."""
    session = f"pingpong{next(_sessions)}-"
    first, second = cluster.workers[1], cluster.workers[2]
    arguments = f"{session} {size} {rounds} {WARMUP}"
    second.send(f"pingpong second {arguments}")
    first.send(f"pingpong first {arguments}")
    seconds = first.answer()["seconds"]
    second.answer()
    ask_all((first, second), "remove_minted")
    return seconds


def store_size(setting: Setting) -> int:
    return 4 * (rounds_for(setting) + WARMUP) * max(setting.size, 4 * KIB) + 64 * MIB


def peer_turns(run: Run, lab: Lab, names: tuple[str, ...]) -> dict[str, Callable[[], list[float]]]:
    setting, rounds = run.setting, rounds_for(run.setting)
    turns = {
        MPI: lambda: mpi.run(
            lab, setting.peers_bin, "pingpong", setting.size, reps=rounds, warmup=WARMUP
        ),
        CHAIN: lambda: raw.chain(lab, setting.peers_bin, setting.size, rounds=rounds, warmup=WARMUP),
        TCP: lambda: raw.tcp_pingpong(lab, setting.peers_bin, setting.size, rounds=rounds, warmup=WARMUP),
    }
    return {name: turns[name] for name in names}


def beside(reference: str, *others: str) -> Callable[[Run], Iterator[Figure]]:
    """A row that compares with `reference`, with the cluster idle while peers run."""

    def measure(run: Run) -> Iterator[Figure]:
        setting = run.setting
        with (
            Lab(setting.hosts, setting.rate) as lab,
            Cluster(lab, setting.bin_dir, memory=store_size(setting)) as cluster,
        ):
            rounds = rounds_for(setting)
            there_and_back(cluster, setting.size, rounds)  # warms pages and connections
            turns = {HOPLITE: lambda: there_and_back(cluster, setting.size, rounds)}
            names = (reference, *others) if setting.with_peers else (reference,)
            samples = run.in_turns(turns | peer_turns(run, lab, names))
        yield compared(run, samples, reference)

    return measure


def spinning(run: Run) -> Iterator[Figure]:
    """Daemons and clients that spin; they end before Open MPI, which spins too, has its turn."""
    setting = run.setting
    with Lab(setting.hosts, setting.rate) as lab:

        def hoplite() -> list[float]:
            memory = store_size(setting)
            with Cluster(lab, setting.bin_dir, memory=memory, busy_poll=True) as cluster:
                there_and_back(cluster, setting.size, 200)
                return there_and_back(cluster, setting.size, rounds_for(setting))

        samples = run.in_turns({HOPLITE: hoplite} | peer_turns(run, lab, (MPI,)))
    yield compared(run, samples, MPI)


def compared(run: Run, samples: dict[str, list[float]], reference: str) -> Figure:
    value = stats.ratio(samples[HOPLITE], samples[reference])
    return run.figure(value, f"x {reference}", samples, note=median_note(samples))


ROWS = (
    Row(
        "pingpong",
        "a small object there and back in the shaped lab",
        "there and back",
        Setting(8, "500mbit", KIB),
        beside(MPI, TCP),
        {f"x {MPI}": at_most(1.3)},
    ),
    Row(
        "pingpong-unshaped",
        "the same between two hosts at the machine's speed",
        "there and back",
        Setting(2, "none", KIB),
        beside(CHAIN, TCP),
        {f"x {CHAIN}": at_most(1.5)},
    ),
    Row(
        "pingpong-busy-poll",
        "the same with --busy-poll on daemons and clients",
        "there and back, spinning",
        Setting(2, "none", KIB),
        spinning,
        {f"x {MPI}": at_most(3)},
    ),
    Row(
        "pingpong-1mib",
        "a larger object there and back in the shaped lab",
        "there and back",
        Setting(8, "500mbit", MIB),
        beside(MPI, TCP),
        {f"x {MPI}": at_most(1.05)},
    ),
)
