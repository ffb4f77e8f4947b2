"""The sum of one array of each host, to host 1: all there, late, too few, and with a death."""

from __future__ import annotations

from collections.abc import Iterator

import stats
from cluster import Cluster, Worker, ask_all
from lab import Lab, LabError
from report import Figure, Goal, at_most
from rows import MIB, UNDISTURBED, Row, Run, Setting, median_note, sleep_until
from rows.collective import (
    HOPLITE,
    LIMIT,
    TUNED,
    Source,
    after_a_rest,
    beside_peers,
    check_sum,
    ids,
    promise_arrays,
    put_arrays,
    rows_by_size,
    stage_arrays,
    store_size,
)

EARLY_NS = 5_000_000  # a reduce is asked for so long before the first of its late sources
ALONE = "x those alone"


class Reduce:
    """One reduce of the first `count` of some sources. It is checked, and all of it deleted again."""

    def __init__(
        self, cluster: Cluster, size: int, sources: list[Source], *, count: int, caller: Worker | None = None
    ):
        self._cluster = cluster
        self._size = size
        self._sources = sources
        self._count = count
        self._caller = caller or cluster.source
        self.target = self._caller.ask("mint")["id"]
        self.attempts = 0  # how often the tree was mended

    def start(self, at_ns: int) -> None:
        """Lets the caller ask for the sum at that time, and get it."""
        self._caller.send(f"reduce {self.target} {at_ns} {self._count} {ids(self._sources)}")

    def finish(self) -> tuple[int, int]:
        """Waits; when it was asked for, and when the sum was there."""
        answer = self._caller.answer()
        status = self._caller.ask(f"reduce_status {self.target}")
        self.attempts = status["attempts"]
        used = {source["id"] for source in status["sources"] if source["state"] == "used"}
        if len(used) != self._count:
            raise LabError(f"{len(used)} sources count, not {self._count}: {status['sources']}")
        check_sum([self._caller], self._size, [source for source in self._sources if source.id in used])
        return answer["start_ns"], answer["end_ns"]

    def remove(self, but_not: int | None = None) -> None:
        """Without the source on host `but_not`, which died with it."""
        sources = (source.id for source in self._sources if source.host != but_not)
        self._cluster.remove(self.target, *sources)

    def once(self) -> float:
        """Seconds from the call to the view."""
        self.start(after_a_rest())
        start_ns, end_ns = self.finish()
        self.remove()
        return (end_ns - start_ns) / 1e9


def of_all_hosts(cluster: Cluster, size: int) -> float:
    sources = put_arrays(cluster, size)
    return Reduce(cluster, size, sources, count=len(sources)).once()


# ---- sources that come late, or never ------------------------------------------------


def late_arrivals(cluster: Cluster, size: int, gap_s: float) -> float:
    """Seconds from the last arrival to the view; the sources arrive `gap_s` apart, host 1's first."""
    caller = cluster.another_worker(1)  # the other one there is busy with its put
    sources = stage_arrays(cluster, size)
    reduce = Reduce(cluster, size, sources, count=len(sources), caller=caller)
    first_ns = after_a_rest()
    reduce.start(first_ns - EARLY_NS)
    for i, source in enumerate(sources):
        cluster.workers[source.host].send(f"put_staged {first_ns + round(i * gap_s * 1e9)}")
    arrived_ns = max(cluster.workers[source.host].answer()["end_ns"] for source in sources)
    _, end_ns = reduce.finish()
    cluster.end_extra_workers()
    reduce.remove()
    return (end_ns - arrived_ns) / 1e9


def staggered(run: Run) -> Iterator[Figure]:
    setting = run.setting
    limit = setting.limit()
    if not limit or setting.hosts < 2:
        raise LabError("arrivals are spread over twice the limit: give a rate, and at least 2 hosts")
    gap_s = 2 * limit / (setting.hosts - 1)
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        run.warm_up(lambda: of_all_hosts(cluster, setting.size))
        samples = run.in_turns({HOPLITE: lambda: [late_arrivals(cluster, setting.size, gap_s)]})
    value = stats.ratio(samples[HOPLITE], limit)
    yield run.figure(value, LIMIT, samples, note=f"{median_note(samples)} after the last arrival")


def first_half(run: Run) -> Iterator[Figure]:
    setting = run.setting
    if setting.hosts < 2:
        raise LabError("half of one host is none: give at least 2")
    hosts = range(1, setting.hosts + 1)
    present, absent = hosts[: setting.hosts // 2], hosts[setting.hosts // 2 :]
    some, alone = f"first {len(present)} of {len(hosts)}", f"those {len(present)}"
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):

        def once(never: range) -> list[float]:
            promised = promise_arrays(cluster, never)
            sources = put_arrays(cluster, setting.size, present)
            return [Reduce(cluster, setting.size, promised + sources, count=len(sources)).once()]

        run.warm_up(lambda: once(absent))
        samples = run.in_turns({some: lambda: once(absent), alone: lambda: once(range(0))})
    value = stats.ratio(samples[some], samples[alone])
    yield run.figure(value, ALONE, samples, note=median_note(samples, setting.limit()))


# ---- a source's node dies ------------------------------------------------------------


def middle_of_tree(slots: list[dict], but_not: str) -> str:
    """The node half-way from the root to the leaves, of those that have both above and below them, if any.

    Not `but_not`, where the result goes.
    """

    def depth(slot: dict) -> int:
        return 1 + depth(slots[slot["parent"]]) if "parent" in slot else 0

    parents = {slot["parent"] for slot in slots if "parent" in slot}
    others = [i for i, slot in enumerate(slots) if slot["slice"] == 0 and slot["node"] != but_not]
    inner = [i for i in others if i in parents and "parent" in slots[i]]
    by_depth = sorted(inner or others, key=lambda i: depth(slots[i]))
    if not by_depth:
        raise LabError(f"no other node has a part in the reduce: {slots}")
    return slots[by_depth[len(by_depth) // 2]]["node"]


def with_a_spare(cluster: Cluster, size: int) -> Reduce:
    sources = put_arrays(cluster, size)
    return Reduce(cluster, size, sources, count=len(sources) - 1)


def with_a_death(cluster: Cluster, size: int, half_s: float) -> tuple[float, str]:
    """A reduce with a spare in which a node is killed after `half_s`: its seconds, and what happened."""
    nodes = [status["node"] for status in ask_all(cluster.workers.values(), "status")]
    hosts = dict(zip(nodes, cluster.workers, strict=True))
    probe = cluster.another_worker(1)
    reduce = with_a_spare(cluster, size)
    begin_ns = after_a_rest()
    reduce.start(begin_ns)
    sleep_until(begin_ns + round(half_s * 0.6 * 1e9))
    slots = probe.ask(f"reduce_status {reduce.target}")["slots"]
    victim = hosts[middle_of_tree(slots, but_not=nodes[0])]
    sleep_until(begin_ns + round(half_s * 1e9))
    cluster.kill(victim)
    start_ns, end_ns = reduce.finish()
    if not reduce.attempts:
        raise LabError(f"host {victim} was killed, and the reduce did not need it any more")
    cluster.end_extra_workers()
    cluster.restart(victim)
    reduce.remove(but_not=victim)
    return (end_ns - start_ns) / 1e9, f"host {victim} killed half-way, mended {reduce.attempts}x"


def source_killed(run: Run) -> Iterator[Figure]:
    setting = run.setting
    if setting.hosts < 4:
        raise LabError("one that calls, one that dies and one that takes its place: give at least 4 hosts")
    with (
        Lab(setting.hosts, setting.rate) as lab,
        Cluster(lab, setting.bin_dir, memory=store_size(setting.size)) as cluster,
    ):
        run.warm_up(lambda: with_a_spare(cluster, setting.size).once())
        figure = run.with_deaths(
            lambda: with_a_spare(cluster, setting.size).once(),
            lambda half_s: with_a_death(cluster, setting.size, half_s),
            "a source's node",
        )
    yield figure


def row(name: str, about: str, setting: Setting, goals: dict[str, Goal | None]) -> Row:
    return Row(name, about, "reduce", setting, beside_peers("reduce", of_all_hosts, Setting.limit), goals)


ROWS = (
    row("reduce", "the sum of an array of each host", Setting(8, "500mbit", 32 * MIB), {LIMIT: at_most(1.06)}),
    row("reduce-16hosts", "more hosts", Setting(16, "200mbit", 32 * MIB), {LIMIT: at_most(1.08)}),
    row("reduce-1mib", "smaller arrays", Setting(8, "500mbit", MIB), {f"x {TUNED}": at_most(1.1)}),
    *rows_by_size("reduce", row, of_the_best=1.7),
    Row(
        "reduce-staggered",
        "sources arrive one after another, over 2 x limit: from the last one on",
        "staggered reduce",
        Setting(8, "500mbit", 32 * MIB),
        staggered,
        {LIMIT: at_most(1.15)},
    ),
    Row(
        "reduce-first4",
        "the first half of the sources, where the others never come",
        "first half reduced",
        Setting(8, "500mbit", 32 * MIB),
        first_half,
        {ALONE: at_most(1.05)},
    ),
    Row(
        "reduce-killed",
        "kill -9 of a source's node half-way, with one spare",
        "reduce of all but one, one killed",
        Setting(9, "500mbit", 32 * MIB),
        source_killed,
        {UNDISTURBED: at_most(1.6)},
    ),
)
