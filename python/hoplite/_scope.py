"""Objects that are deleted at the end of a block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING

from ._errors import ConnectionLostError
from ._refs import Ref

if TYPE_CHECKING:
    from ._client import Client

_current: ContextVar[Scope | None] = ContextVar("hoplite_scope", default=None)


class Scope:
    """What `hoplite.scope()` gives: deletes what this thread or task put inside of it, but for what is kept."""

    def __init__(self) -> None:
        self._made: dict[Ref, Client] = {}
        self._token: Token[Scope | None] | None = None

    def keep(self, ref: Ref) -> Ref:
        """Lets this object outlive the scope; the ref, for convenience."""
        self._made.pop(ref, None)
        return ref

    def __enter__(self) -> Scope:
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._token is not None:
            _current.reset(self._token)
        made, self._made = self._made, {}
        for ref, client in made.items():
            try:
                client.delete(ref)
            except ConnectionLostError:
                if error is None and not client.closed:
                    raise


def note_made(ref: Ref, client: Client) -> None:
    """Called for each object that a client makes."""
    scope = _current.get()
    if scope is not None:
        scope._made[ref] = client


def scope() -> Scope:
    """Deletes what this thread or task puts in the block, also the results of reduces; arrays that were got stay readable.

    >>> with hoplite.scope():
    ...     total = hoplite.get(hoplite.reduce([hoplite.put(x) for x in arrays]))
    """
    return Scope()
