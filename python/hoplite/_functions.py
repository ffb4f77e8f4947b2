"""The methods of the default client as functions of the package."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import numpy as np

from ._client import Client, OnLost, Priority
from ._default import default
from ._refs import Ref, ref_named

P = ParamSpec("P")
R = TypeVar("R")


def _of_default(method: Callable[Concatenate[Client, P], R]) -> Callable[P, R]:
    @functools.wraps(method)
    def function(*arguments: P.args, **options: P.kwargs) -> R:
        return method(default(), *arguments, **options)

    signature = inspect.signature(method)
    function.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    function.__qualname__ = method.__name__
    function.__module__ = "hoplite"
    return function


put = _of_default(Client.put)
create = _of_default(Client.create)
get_async = _of_default(Client.get_async)
wait = _of_default(Client.wait)
as_completed = _of_default(Client.as_completed)
prioritize = _of_default(Client.prioritize)
reduce = _of_default(Client.reduce)
allreduce = _of_default(Client.allreduce)
reduce_scatter = _of_default(Client.reduce_scatter)
add_sources = _of_default(Client.add_sources)
reduce_status = _of_default(Client.reduce_status)
gather = _of_default(Client.gather)
allgather = _of_default(Client.allgather)
new_ref = _of_default(Client.new_ref)
stats = _of_default(Client.stats)
nodes = _of_default(Client.nodes)
objects = _of_default(Client.objects)


@overload
def get(
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
    refs: Iterable[Ref | str],
    *,
    timeout: float | None = None,
    out: None = None,
    on_lost: OnLost = "fail",
    priority: Priority = "normal",
    allow_pickle: bool = True,
) -> list[Any]: ...
def get(refs: Any, **options: Any) -> Any:
    return default().get(refs, **options)


@overload
def delete(refs: Ref | str, *, timeout: float | None = None) -> bool: ...  # type: ignore[overload-overlap]  # a name is a str, which is iterable
@overload
def delete(refs: Iterable[Ref | str], *, timeout: float | None = None) -> list[bool]: ...
def delete(refs: Any, **options: Any) -> Any:
    return default().delete(refs, **options)


def _describe(function: Callable[..., Any], method: Callable[..., Any]) -> None:
    signature = inspect.signature(method)
    function.__doc__ = method.__doc__
    function.__module__ = "hoplite"
    function.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]


_describe(get, Client.get)
_describe(delete, Client.delete)


def ref(name: str) -> Ref:
    """The ref of a name: the same on every node, for ever. Needs no daemon.

    >>> hoplite.put(weights, id="weights")
    >>> hoplite.get(hoplite.ref("weights"))
    """
    return ref_named(name)
