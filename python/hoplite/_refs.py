"""Names of objects, which are futures: an object can be waited for before anybody has put it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._client import Client


class Ref:
    """The name of an object: 128 bits, the same on every node. Small, hashable and picklable; holds no bytes.

    ``await ref`` is the object's value, from the client that made the ref, or the default client.

    >>> ref = hoplite.put([1, 2, 3])
    >>> hoplite.get(ref)
    [1, 2, 3]
    """

    # `dtype` is what the putter knows of the elements, so that a reduce need not be told.
    __slots__ = ("_client", "_id", "dtype")

    def __init__(self, id: str, dtype: str | None = None) -> None:
        """`id` is 32 hexadecimal digits, as str(ref) gives them. For names there is hoplite.ref()."""
        parsed = _core.ObjectId.parse(id)
        if parsed is None:
            raise InvalidArgumentError(f"{id!r} is no id of 32 hexadecimal digits; hoplite.ref() makes refs of names")
        self._id = parsed
        self._client: Client | None = None
        self.dtype = dtype

    @property
    def id(self) -> str:
        """The 32 hexadecimal digits that the command line takes."""
        return str(self._id)

    def __await__(self) -> Generator[Any, None, Any]:
        from ._default import client_of

        return client_of(self).get_async(self).__await__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)

    def __reduce__(self) -> tuple[type[Ref], tuple[str, str | None]]:
        return Ref, (str(self._id), self.dtype)

    def __str__(self) -> str:
        return str(self._id)

    def __repr__(self) -> str:
        return f"Ref('{self._id}')" if self.dtype is None else f"Ref('{self._id}', '{self.dtype}')"

    def _repr_html_(self) -> str:
        kind = f" of {self.dtype}" if self.dtype else ""
        return f"<code>{self._id}</code> (a Hoplite object{kind})"


def make_ref(id: _core.ObjectId, client: Client | None, dtype: str | None = None) -> Ref:
    """A Ref of an id that is known to be one."""
    ref = Ref.__new__(Ref)
    ref._id = id
    ref._client = client
    ref.dtype = dtype
    return ref


def ref_named(name: str, client: Client | None = None) -> Ref:
    """The ref of a name, or of an id's 32 hexadecimal digits, as the command line understands them."""
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"an object's name is a string that is not empty, not {name!r}")
    return make_ref(_core.ObjectId.parse(name) or _core.ObjectId.named(name), client)


def id_of(ref: Ref | str) -> _core.ObjectId:
    """Of a ref or a name."""
    if isinstance(ref, Ref):
        return ref._id
    if isinstance(ref, str):
        return ref_named(ref)._id
    raise TypeError(f"expected a hoplite.Ref or a name, not {type(ref).__name__}")
