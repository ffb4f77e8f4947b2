"""Arrays that are objects in the making."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from . import _core
from ._errors import InvalidArgumentError
from ._refs import Ref


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """What hoplite.create() gives: a numpy array in the store, writable until it is sealed.

    Slices of it, and what is computed from it, are ordinary arrays but for their class.
    """

    _session: _core.Session | None = None
    _draft: _core.Draft | None = None
    _ref: Ref | None = None

    def _whole(self) -> tuple[_core.Session, _core.Draft, Ref]:
        if self._session is None or self._draft is None or self._ref is None:
            raise InvalidArgumentError("this is a part or a copy: only the array that hoplite.create() returned can be sealed")
        return self._session, self._draft, self._ref

    @property
    def ref(self) -> Ref:
        """Of the object; it can be passed around before the seal."""
        return self._whole()[2]

    def seal(self, timeout: float | None = None) -> Ref:
        """Makes it an object that everybody can get. It can be read as before, and not be written any more."""
        session, draft, ref = self._whole()
        if draft.writable:
            self.flags.writeable = False
        draft.seal(session, timeout)
        return ref

    def abandon(self) -> None:
        """Gives it up, unless it is sealed: there will be no object, and the array is all zeros."""
        _, draft, _ = self._whole()
        if draft.writable:
            self.flags.writeable = False
            draft.abort()

    def __enter__(self) -> SharedArray:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.abandon()
        elif self._whole()[1].writable:
            self.seal()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


def new_array(session: _core.Session, draft: _core.Draft, ref: Ref, shape: tuple[int, ...], dtype: np.dtype[Any]) -> SharedArray:
    """The array of a draft."""
    memory: Any = draft
    array: SharedArray = SharedArray(shape, dtype, buffer=memory)
    array._session, array._draft, array._ref = session, draft, ref
    return array
