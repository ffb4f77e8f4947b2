"""Calls that end while something else is going on: asyncio, and refs in the order in which they become ready."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from . import _core
from ._errors import GetTimeoutError
from ._refs import Ref, id_of

_Done = Callable[[Any, BaseException | None], object]


async def resolved_by(start: Callable[[_Done], _core.RunningCall]) -> Any:
    """The result of a call that tells a callback, on a thread of the client's, how it ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def resolve(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def done(value: Any, error: BaseException | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(resolve, value, error)

    running = start(done)
    try:
        return await future
    except asyncio.CancelledError:
        running.cancel()
        raise


class AsCompleted:
    """An iterator of refs, each of which is ready; also an asynchronous one. See hoplite.as_completed()."""

    def __init__(self, session: _core.Session, refs: list[Ref], timeout: float | None) -> None:
        self._session = session
        self._refs = refs
        self._timeout = timeout

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(deadline - time.monotonic(), 0.0)

    def _start(self, ended: Callable[[tuple[Ref, bool, BaseException | None]], object]) -> list[_core.RunningCall]:
        """A call for each ref, which ends when it is ready or the time is over."""

        def tell(ref: Ref) -> _Done:
            return lambda ready, error: ended((ref, bool(ready), error))

        return [self._session.wait_then([id_of(ref)], 1, tell(ref), self._timeout) for ref in self._refs]

    def _ready(self, ended: tuple[Ref, bool, BaseException | None], left: int) -> Ref:
        ref, ready, error = ended
        if error is not None:
            raise error
        if not ready:
            raise GetTimeoutError(f"timed out: {left} of {len(self._refs)} objects are not ready, {ref} among them")
        return ref

    def __len__(self) -> int:
        return len(self._refs)

    def __iter__(self) -> Iterator[Ref]:
        ended: queue.SimpleQueue[tuple[Ref, bool, BaseException | None]] = queue.SimpleQueue()
        running = self._start(ended.put)
        try:
            for left in range(len(self._refs), 0, -1):
                yield self._ready(ended.get(), left)
        finally:
            for call in running:
                call.cancel()

    async def __aiter__(self) -> AsyncIterator[Ref]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Queue[tuple[Ref, bool, BaseException | None]] = asyncio.Queue()

        def tell(result: tuple[Ref, bool, BaseException | None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.put_nowait, result)

        running = self._start(tell)
        try:
            for left in range(len(self._refs), 0, -1):
                yield self._ready(await ended.get(), left)
        finally:
            for call in running:
                call.cancel()
