"""The sum of one array of each host, to every host."""

from __future__ import annotations

from cluster import Cluster
from report import Goal, at_most
from rows import MIB, Row, Setting
from rows.collective import BEST, LIMIT, after_a_rest, beside_peers, check_sum, ids, put_arrays, rows_by_size

EARLY_NS = 5_000_000  # the others wait for the result so long before it is asked for


def once(cluster: Cluster, size: int) -> float:
    """Seconds from host 1's call to the last host's view."""
    sources = put_arrays(cluster, size)
    target = cluster.source.ask("mint")["id"]
    at_ns = after_a_rest()
    for worker in cluster.receivers:
        worker.send(f"get {target} {at_ns - EARLY_NS}")
    cluster.source.send(f"allreduce {target} {at_ns} {ids(sources)}")
    answers = [worker.answer() for worker in (cluster.source, *cluster.receivers)]
    check_sum(cluster.workers.values(), size, sources)
    cluster.remove(target, *(source.id for source in sources))
    return (max(answer["end_ns"] for answer in answers) - answers[0]["start_ns"]) / 1e9


def bound(setting: Setting) -> float | None:
    """A host must send its part of all other parts, and then the sum of its own: 2 S (n-1)/n."""
    return setting.limit(2 * setting.size * (setting.hosts - 1) // setting.hosts)


def row(name: str, about: str, setting: Setting, goals: dict[str, Goal | None]) -> Row:
    return Row(name, about, "allreduce", setting, beside_peers("allreduce", once, bound), goals)


ROWS = (
    row("allreduce", "a sum to all hosts", Setting(8, "500mbit", 32 * MIB), {LIMIT: at_most(1.04)}),
    row("allreduce-16hosts", "more hosts", Setting(16, "200mbit", 32 * MIB), {LIMIT: at_most(1.06)}),
    row("allreduce-1mib", "smaller arrays", Setting(8, "500mbit", MIB), {BEST: at_most(1.1)}),
    *rows_by_size("allreduce", row, of_the_best=1.7),
)
