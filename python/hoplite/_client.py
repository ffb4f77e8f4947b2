"""A connection to this machine's daemon: every function of the package is a method here."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Awaitable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, overload

import numpy as np

from . import _codec, _core, _facts, _scope
from ._completion import AsCompleted, resolved_by
from ._errors import InvalidArgumentError, TypeMismatchError
from ._refs import Ref, id_of, make_ref, ref_named
from ._shared_array import SharedArray, new_array

Priority = Literal["low", "normal", "high"]
OnLost = Literal["fail", "wait"]
Op = Literal["sum", "product", "min", "max", "mean", "median"]

# Closed before the interpreter ends: the thread of a client must not call into it after that.
_open: weakref.WeakSet[Client] = weakref.WeakSet()


def close_all() -> None:
    """At the end of the process."""
    for client in list(_open):
        client.close()


class Client:
    """A connection to the daemon behind a unix socket, for any number of threads.

    Without `socket`: $HOPLITE_SOCKET, or the default of ``hoplite start``. The `token` is needed only if the daemon runs as
    another user. `busy_poll` spins for a while before it sleeps for an answer: lower latency, for a core.

    Of no use in a forked child, which makes its own. Arrays stay readable when the client is closed.

    >>> with hoplite.Client() as client:
    ...     client.get(client.put({"a": 1}))
    {'a': 1}
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        token: str | None = None,
        timeout: float | None = 5.0,
        busy_poll: bool = False,
    ) -> None:
        self.socket = os.fspath(socket) if socket is not None else None
        self._session = _core.Session(self.socket or "", token or "", timeout, busy_poll)
        _open.add(self)

    def __repr__(self) -> str:
        return f"<hoplite.Client of {self.socket or 'the default socket'}{', closed' if self.closed else ''}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a hoplite.Client is a connection of this process: pass refs to other processes, and connect there")

    def close(self) -> None:
        """Every call that is under way raises ConnectionLostError. Arrays stay readable."""
        self._session.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the process that forked this one."""
        return self._session.closed

    # --- refs

    def new_ref(self) -> Ref:
        """The ref of an object that somebody is going to put: a promise to pass around.

        >>> ref = client.new_ref()
        >>> client.put(3.5, id=ref)         # in another thread, task or process
        """
        return make_ref(self._session.new_id(), self)

    def ref(self, name: str) -> Ref:
        """The ref of a name: the same on every node, for ever."""
        return ref_named(name, self)

    def _made(self, id: _core.ObjectId, dtype: str | None = None) -> Ref:
        ref = make_ref(id, self, dtype)
        _scope.note_made(ref, self)
        return ref

    # --- objects

    def create(
        self,
        shape: int | Sequence[int],
        dtype: Any = np.float64,
        *,
        id: Ref | str | None = None,
        timeout: float | None = None,
        priority: Priority = "normal",
    ) -> SharedArray:
        """An array in shared memory to fill in place: the object is made without any copy.

        It is sealed, which makes it an object that others can get, by seal(), or at the end of a ``with`` block; an exception
        in the block gives it up. It is read-only then, and so must be what was sliced from it before: writing through a slice
        that was taken before the seal ends the process with a fault.

        The array holds what happened to be there before: fill all of it.

        >>> with hoplite.create((1000, 1000), "f4") as array:
        ...     array[:] = 1
        >>> hoplite.get(array.ref)
        """
        element = np.dtype(dtype)
        extents = tuple(int(extent) for extent in ((shape,) if isinstance(shape, int) else shape))
        described = _codec.array_metadata(extents, element)
        if described is None or min(extents, default=0) < 0:
            raise InvalidArgumentError(f"there are no arrays of {element} and shape {extents} in shared memory")
        metadata, name, known_shape = described
        size = math.prod(extents) * element.itemsize
        into = id_of(id) if id is not None else None
        draft = self._session.create(size, into, metadata, name, known_shape, timeout, priority)
        ref = self._made(draft.id, name if name != "bytes" else None)
        return new_array(self._session, draft, ref, extents, element)

    def put(self, value: Any, *, id: Ref | str | None = None, timeout: float | None = None, priority: Priority = "normal") -> Ref:
        """Stores a value as an immutable object that every node can get, and returns its ref.

        numpy arrays, CPU tensors of torch, bytes and other buffers are copied once, into shared memory; anything else is
        pickled, with the arrays and tensors inside of it beside the pickle: a state_dict is one object.

        `id` is a name, or a ref from new_ref(); putting it twice is an ObjectExistsError. A full store is waited for until
        `timeout` seconds are over, then it is a StoreFullError.

        >>> ref = hoplite.put(np.arange(6).reshape(2, 3))
        >>> hoplite.get(ref)
        array([[0, 1, 2],
               [3, 4, 5]])
        """
        data, metadata, dtype, shape, parts, size = _codec.encode(value)
        into = id_of(id) if id is not None else None
        if parts is not None:
            return self._made(self._session.put_parts(size, parts, into, metadata, timeout, priority))
        made = self._session.put(data, into, metadata, dtype, shape, timeout, priority)
        return self._made(made, dtype if dtype != "bytes" else None)

    @overload
    def get(
        self,
        refs: Ref | str,
        *,
        timeout: float | None = None,
        out: np.ndarray[Any, Any] | None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> Any: ...
    @overload
    def get(
        self,
        refs: Iterable[Ref | str],
        *,
        timeout: float | None = None,
        out: None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> list[Any]: ...
    def get(
        self,
        refs: Ref | str | Iterable[Ref | str],
        *,
        timeout: float | None = None,
        out: np.ndarray[Any, Any] | None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> Any:
        """Waits until the object exists, and returns its value; of several refs, a list of values, fetched at the same time.

        Arrays are read-only views of shared memory, not copies, and stay valid for as long as anything refers to them, also
        after the object was deleted and the client was closed. `out` is an array of the same type and shape that is filled
        instead. Bytes and what is not in buffers is copied.

        After `timeout` seconds it is a GetTimeoutError. An object whose last copy died is an ObjectLostError, unless
        `on_lost` is "wait": somebody may put it again. ``allow_pickle=False`` refuses what would have to be unpickled, which
        runs code of whoever put it.

        >>> hoplite.get(hoplite.put(np.ones(3)))
        array([1., 1., 1.])
        >>> hoplite.get([ref1, ref2], timeout=5.0)
        """
        wait = _waits(on_lost)
        if isinstance(refs, (Ref, str)):
            stored = self._session.get(id_of(refs), timeout, wait, priority)
            return _codec.decode(stored, allow_pickle) if out is None else _fill(stored, out)
        if out is not None:
            raise InvalidArgumentError("out= is for one object, not for a list of them")
        return [
            _codec.decode(stored, allow_pickle)
            for stored in self._session.gather([id_of(ref) for ref in refs], timeout, wait, priority)
        ]

    def get_async(
        self,
        ref: Ref | str,
        *,
        timeout: float | None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> Awaitable[Any]:
        """get() for asyncio. Cancelling it gives the get up.

        >>> value = await client.get_async(ref, timeout=5.0)
        """
        id, wait = id_of(ref), _waits(on_lost)

        async def value() -> Any:
            stored = await resolved_by(lambda done: self._session.get_then(id, done, timeout, wait, priority))
            return _codec.decode(stored, allow_pickle)

        return value()

    def wait(self, refs: Iterable[Ref], *, num_returns: int = 1, timeout: float | None = None) -> tuple[list[Ref], list[Ref]]:
        """Waits until `num_returns` of at most 4,000 refs are ready, or `timeout` seconds are over, which is no error.

        It does not wait for what cannot come: it ends when too many of them are deleted or lost.

        Returns (ready, not ready), at most `num_returns` of the former, both in the order of `refs`.

        >>> ready, rest = hoplite.wait(refs, num_returns=2, timeout=1.0)
        """
        asked = list(refs)
        ids = [id_of(ref) for ref in asked]
        if len(set(ids)) != len(ids):
            raise InvalidArgumentError("wait() takes each ref once")
        ready = set(self._session.wait(ids, num_returns, timeout))
        return [ref for ref in asked if ref._id in ready], [ref for ref in asked if ref._id not in ready]

    def as_completed(self, refs: Iterable[Ref], *, timeout: float | None = None) -> AsCompleted:
        """The refs in the order in which they become ready, for ``for`` and ``async for``. It returns no values.

        A ref whose object is deleted or lost comes, too: get() raises why.

        When `timeout` seconds are over in between, it is a GetTimeoutError.

        >>> for ref in hoplite.as_completed(refs):
        ...     use(hoplite.get(ref))
        """
        return AsCompleted(self._session, list(refs), timeout)

    @overload
    def delete(self, refs: Ref | str, *, timeout: float | None = None) -> bool: ...  # type: ignore[overload-overlap]  # a name is a str, which is iterable
    @overload
    def delete(self, refs: Iterable[Ref | str], *, timeout: float | None = None) -> list[bool]: ...
    def delete(self, refs: Ref | str | Iterable[Ref | str], *, timeout: float | None = None) -> bool | list[bool]:
        """Frees every copy everywhere; False if nobody knew the object. Arrays that were got stay readable.

        The result of a reduce that is running is deleted by cancelling the reduce.

        >>> hoplite.delete(hoplite.put(1))
        True
        """
        if isinstance(refs, (Ref, str)):
            return self._session.remove(id_of(refs), timeout)
        return [self._session.remove(id_of(ref), timeout) for ref in refs]

    def prioritize(self, ref: Ref | str, priority: Priority) -> bool:
        """The gets of an object that this client has under way have another priority from now on; False if there are none."""
        return self._session.prioritize(id_of(ref), priority)

    # --- collectives

    def reduce(
        self,
        refs: Iterable[Ref],
        op: Op = "sum",
        *,
        num_sources: int | None = None,
        dtype: Any = None,
        id: Ref | str | None = None,
        more_sources_follow: bool = False,
        on_lost: OnLost = "fail",
        timeout: float | None = None,
        priority: Priority = "normal",
    ) -> Ref:
        """Combines arrays, element by element, into a new object, and returns its ref at once: get() it on any node.

        The sources may be put before, during or long after the call, by any node. The first `num_sources` that become ready
        count (all of them, if it is not given), each once, whatever dies on the way. Sources of another type or size than the
        others fail the reduce. `dtype` is that of the elements, as numpy or torch name it; without it, it is that of the
        first ref whose maker knew it, else float32.

        >>> refs = [hoplite.put(np.full(4, i, np.float32)) for i in range(3)]
        >>> hoplite.get(hoplite.reduce(refs))
        array([3., 3., 3., 3.], dtype=float32)
        """
        sources, element = _sources(refs, dtype)
        target = id_of(id) if id is not None else None
        made = self._session.reduce(
            sources, target, op, element, num_sources, more_sources_follow, _waits(on_lost), timeout, priority
        )
        return self._made(made, element)

    def allreduce(
        self,
        refs: Iterable[Ref],
        op: Op = "sum",
        *,
        num_sources: int | None = None,
        dtype: Any = None,
        id: Ref | str | None = None,
        on_lost: OnLost = "fail",
        timeout: float | None = None,
        priority: Priority = "normal",
    ) -> Ref:
        """reduce() for a result that every node with a source is going to get.

        One process calls it; all of them get() the ref. The result is made where that is fastest for all, and reaches them
        while it grows.

        >>> total = hoplite.allreduce(refs, "mean")      # on one node; then, on all of them:
        >>> hoplite.get(total)
        """
        sources, element = _sources(refs, dtype)
        target = id_of(id) if id is not None else None
        made = self._session.allreduce(sources, target, op, element, num_sources, False, _waits(on_lost), timeout, priority)
        return self._made(made, element)

    def reduce_scatter(
        self,
        refs: Iterable[Ref],
        op: Op = "sum",
        *,
        dtype: Any = None,
        on_lost: OnLost = "fail",
        timeout: float | None = None,
        priority: Priority = "normal",
    ) -> list[Ref]:
        """One reduce for each part of the arrays, as many parts as there are sources, at most 64; the refs of the parts in order.

        The parts are about equal, begin at multiples of 64 bytes, and give the whole when they are concatenated.

        >>> parts = hoplite.reduce_scatter(refs)
        >>> whole = np.concatenate(hoplite.get(parts))
        """
        sources, element = _sources(refs, dtype)
        made = self._session.reduce_scatter(sources, None, op, element, None, False, _waits(on_lost), timeout, priority)
        return [self._made(id, element) for id in made]

    def add_sources(self, target: Ref, refs: Iterable[Ref]) -> None:
        """More sources for a reduce that was started with ``more_sources_follow=True``, until it has enough."""
        self._session.add_sources(id_of(target), [id_of(ref) for ref in refs])

    def reduce_status(self, ref: Ref | str) -> _facts.ReduceStatus:
        """How far a reduce is, or how it went: which sources count, where, and in which tree."""
        return _facts.reduce_status_of(self._session.reduce_status(id_of(ref)), self)

    def gather(
        self,
        refs: Iterable[Ref | str],
        *,
        timeout: float | None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> list[Any]:
        """All of these to this node, at the same time: get() of a list, under the name that others look for."""
        return self.get(list(refs), timeout=timeout, on_lost=on_lost, priority=priority, allow_pickle=allow_pickle)

    def allgather(
        self,
        refs: Iterable[Ref | str],
        *,
        timeout: float | None = None,
        on_lost: OnLost = "fail",
        priority: Priority = "normal",
        allow_pickle: bool = True,
    ) -> list[Any]:
        """Every node makes this call with the same refs, and the transfers form a broadcast of each object."""
        return self.gather(refs, timeout=timeout, on_lost=on_lost, priority=priority, allow_pickle=allow_pickle)

    # --- facts

    def stats(self) -> _facts.Stats:
        """The daemon's store, traffic and cluster in numbers."""
        return _facts.stats_of(self._session.status())

    def nodes(self) -> list[_facts.Node]:
        """The nodes of the cluster, as this one sees them."""
        return [_facts.node_of(facts) for facts in self._session.nodes()]

    def objects(self) -> list[_facts.Object]:
        """What the daemon of this machine has, or knows of."""
        return [_facts.object_of(facts, self) for facts in self._session.objects()]


def _waits(on_lost: str) -> bool:
    if on_lost not in ("fail", "wait"):
        raise InvalidArgumentError(f'on_lost is "fail" or "wait", not {on_lost!r}')
    return on_lost == "wait"


def _fill(stored: _core.Stored, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copies into an array of the caller's."""
    value = _codec.decode(stored, allow_pickle=False)
    if isinstance(value, (bytes, memoryview)):
        value = np.frombuffer(value, np.uint8)
    if not isinstance(out, np.ndarray) or not isinstance(value, np.ndarray):
        raise TypeMismatchError(f"out= takes numpy arrays; {stored.id} is a {type(value).__name__}")
    if value.dtype != out.dtype or value.shape != out.shape:
        raise TypeMismatchError(
            f"{stored.id} is an array of {value.dtype} and shape {value.shape}, out= one of {out.dtype} and shape {out.shape}"
        )
    if not out.flags.writeable:
        raise InvalidArgumentError("out= cannot be written to")
    if out.flags.c_contiguous and out.size:
        _core.Session.copy(stored, out.reshape(-1).view(np.uint8))
    else:
        np.copyto(out, value)
    return out


def _sources(refs: Iterable[Ref], dtype: Any) -> tuple[list[_core.ObjectId], str]:
    sources = list(refs)
    if dtype is None:
        known = (ref.dtype for ref in sources if isinstance(ref, Ref) and ref.dtype is not None)
        element = next(known, "f32")
    else:
        element = _codec.reducible_type(dtype)
    return [id_of(ref) for ref in sources], element
