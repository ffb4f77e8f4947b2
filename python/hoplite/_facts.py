"""What daemons say of themselves and of their objects."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from ._refs import Ref, make_ref

if TYPE_CHECKING:
    from ._client import Client

T = TypeVar("T")


def bytes_text(count: float) -> str:
    """For people: 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def _table(rows: list[tuple[str, object]]) -> str:
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def _known(kind: type[T], facts: dict[str, Any]) -> T:
    return kind(**{field.name: facts[field.name] for field in fields(kind)})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Node:
    """A node of the cluster as this one sees it. `rate` is bytes per second from there, `rtt` seconds; 0 = not measured."""

    node: str
    address: str
    alive: bool
    self: bool
    rate: int
    rtt: float


@dataclass(frozen=True)
class Object:
    """An object as the daemon holds it."""

    ref: Ref
    size: int
    bytes: int
    state: str
    primary: bool
    views: int
    receivers: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Stats:
    """The daemon that a client is attached to. Sizes are bytes; `bytes_in` and `bytes_out` count since its start."""

    node: str
    address: str
    software: str
    pid: int
    uptime: float
    capacity_bytes: int
    used_bytes: int
    pinned_bytes: int
    objects: int
    growing: int
    clients: int
    members: int
    waiting: int
    bytes_in: int
    bytes_out: int

    def _repr_html_(self) -> str:
        return _table(
            [
                ("node", f"{self.node} at {self.address}, one of {self.members}"),
                ("store", f"{bytes_text(self.used_bytes)} of {bytes_text(self.capacity_bytes)} used"),
                ("objects", f"{self.objects} complete, {self.growing} growing"),
                ("clients", self.clients),
                ("from others", bytes_text(self.bytes_in)),
                ("to others", bytes_text(self.bytes_out)),
            ]
        )


@dataclass(frozen=True)
class Source:
    """A source of a reduce: "awaited", "spare", "used", "lost" or "deleted"; `order` of arrival counts from 1."""

    ref: Ref
    state: str
    node: str
    order: int


@dataclass(frozen=True)
class Slot:
    """A place in a reduce's tree; `parent` is the index of the slot that takes its output, None for a root."""

    node: str
    slice: int
    parent: int | None
    sources: int
    done: bool


@dataclass(frozen=True)
class ReduceStatus:
    """How far a reduce is, or how it went. `phase` is "waiting", "running", "done" or "failed", then `error` says why."""

    ref: Ref
    op: str
    dtype: str
    phase: str
    error: Exception | None
    coordinator: str
    count: int
    awaited: int
    attempts: int
    size: int
    bytes: int
    sources: list[Source]
    slots: list[Slot]

    def tree(self) -> str:
        """The tree of the first slice, for people: a line for each node, children below their parents."""
        lines: list[str] = []

        def draw(parent: int | None, depth: int) -> None:
            for index, slot in enumerate(self.slots):
                if slot.slice == 0 and slot.parent == parent:
                    word = "done" if slot.done else "running"
                    lines.append(f"{'  ' * depth}{slot.node} ({slot.sources} of its own, {word})")
                    draw(index, depth + 1)

        draw(None, 0)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("reduce", f"{self.op} of {self.count} arrays of {self.dtype}: {self.phase}"),
            ("bytes", f"{bytes_text(self.bytes)} of {bytes_text(self.size)}"),
            ("awaited", self.awaited),
        ]
        if self.error is not None:
            rows.append(("error", self.error))
        return _table(rows) + f"<pre>{html.escape(self.tree())}</pre>"


def stats_of(facts: dict[str, Any]) -> Stats:
    """From what the extension says."""
    return _known(Stats, facts)


def node_of(facts: dict[str, Any]) -> Node:
    """From what the extension says."""
    return _known(Node, facts)


def _with_ref(kind: Callable[..., T], facts: dict[str, Any], client: Client) -> T:
    facts = dict(facts)
    facts["ref"] = make_ref(facts.pop("id"), client)
    return kind(**{name: facts[name] for name in kind.__dataclass_fields__})  # type: ignore[attr-defined]


def object_of(facts: dict[str, Any], client: Client) -> Object:
    """From what the extension says."""
    facts["shape"] = tuple(facts["shape"])
    return _with_ref(Object, facts, client)


def reduce_status_of(facts: dict[str, Any], client: Client) -> ReduceStatus:
    """From what the extension says."""
    facts["sources"] = [_with_ref(Source, source, client) for source in facts["sources"]]
    facts["slots"] = [_known(Slot, slot) for slot in facts["slots"]]
    return _with_ref(ReduceStatus, facts, client)
