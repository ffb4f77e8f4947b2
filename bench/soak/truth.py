"""What was put, deleted and broken, and when: what the judge (judge.py) goes by. Times are those of time.monotonic()."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

NEVER = float("inf")

# Faults that let living nodes hold each other for dead.
SEPARATING = frozenset({"stop", "partition", "cut", "one way", "reset", "loss", "slow", "given up"})


@dataclass
class Fault:
    kind: str
    hosts: tuple[int, ...]
    began: float
    settled: float = NEVER  # when all daemons counted each other again afterwards

    def during(self, begin: float, end: float) -> bool:
        return self.began <= end and begin <= self.settled


class Faults:
    """All of a run. An interval that no fault touches is calm: there only the truth counts."""

    def __init__(self):
        self.all: list[Fault] = []

    def begin(self, kind: str, hosts: Iterable[int], now: float) -> Fault:
        fault = Fault(kind, tuple(hosts), now)
        self.all.append(fault)
        return fault

    def settle(self, now: float) -> None:
        """Everything has healed."""
        for fault in self.all:
            fault.settled = min(fault.settled, now)

    def calm(self, begin: float, end: float) -> bool:
        return not any(fault.during(begin, end) for fault in self.all)

    def separated(self, begin: float, end: float) -> bool:
        """Whether some living nodes could not reach each other, or might not have known what the others did."""
        return any(fault.kind in SEPARATING and fault.during(begin, end) for fault in self.all)

    def died(self, host: int, begin: float, end: float) -> bool:
        """Whether a daemon, with all that it had, ended then."""
        return any(f.kind in ("kill", "leave") and host in f.hosts and begin <= f.began <= end for f in self.all)

    def deaths(self, begin: float, end: float) -> list[Fault]:
        return [f for f in self.all if f.kind in ("kill", "leave") and begin <= f.began <= end]

    def away(self, host: int, begin: float, end: float) -> bool:
        """Whether a daemon, or its client, was down, leaving or stopped at some time in between."""
        kinds = ("kill", "leave", "stop", "client")
        return any(f.kind in kinds and host in f.hosts and f.during(begin, end) for f in self.all)


@dataclass
class Attempt:
    """One put: it chose the bytes."""

    tag: int
    host: int
    size: int
    began: float
    ended: float = NEVER
    outcome: str = "pending"  # "ok", "abandoned", or the code of the failure

    @property
    def refused(self) -> bool:
        return self.outcome in ("exists", "deleted", "store_full", "abandoned")

    @property
    def may_exist(self) -> bool:
        return not self.refused


@dataclass
class Removal:
    began: float
    ended: float = NEVER
    outcome: str = "pending"  # "known", "unknown", or the code of the failure


@dataclass
class Object:
    id: str
    minted_on: int | None  # None: a name
    born: float
    array: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    # Of the target of a reduce: how many of which sources.
    count: int = 0
    sources: list[Object] = field(default_factory=list)
    reduce_host: int = 0
    reduce_outcome: str = "pending"
    sum: str | None = None  # what the first reader found
    lost: bool = False  # somebody was told so

    @property
    def is_target(self) -> bool:
        return self.count > 0

    def attempt(self, tag: int) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.tag == tag), None)

    def removed(self, begin: float, end: float, but: Removal | None = None) -> bool:
        """Whether a delete (another one than `but`) was under way at some time in between."""
        return any(r.began <= end and begin <= r.ended for r in self.removals if r is not but)

    def living(self, faults: Faults, now: float, but: Removal | None = None) -> Attempt | None:
        """The put that everybody must be able to read now, as far as is certain."""
        if not self.attempts or self.is_target:
            return None
        last = max((a for a in self.attempts if a.outcome == "ok"), key=lambda a: a.ended, default=None)
        if last is None or last.ended > now or self.removed(last.began, now, but):
            return None
        return None if faults.died(last.host, last.began, now) else last
