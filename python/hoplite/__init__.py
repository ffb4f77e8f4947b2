"""Hoplite: a distributed in-memory object store whose transfers are collectives.

    import hoplite, numpy as np

    hoplite.init()                                   # this machine's daemon, or one that ends with this process
    ref = hoplite.put(np.ones(1_000_000))            # visible to every node of the cluster
    array = hoplite.get(ref)                         # read-only shared memory, no copy
    total = hoplite.reduce([ref, other])             # a future: the arrays may not exist yet
    hoplite.get(total, timeout=10)

Refs are futures: pass them around before, during or after the put. Every call that waits takes a timeout in seconds, and can
be ended by Ctrl-C. What goes wrong is a HopliteError that names the object, the node and the reason.
"""

from ._client import Client
from ._cluster import LocalCluster, local
from ._default import init, shutdown
from ._errors import (
    CallCancelledError,
    ConnectionLostError,
    GetTimeoutError,
    HopliteError,
    InternalError,
    InvalidArgumentError,
    NotAuthorisedError,
    ObjectDeletedError,
    ObjectExistsError,
    ObjectLostError,
    SizeMismatchError,
    StoreFullError,
    TypeMismatchError,
    VersionMismatchError,
)
from ._facts import Node, Object, ReduceStatus, Slot, Source, Stats
from ._functions import (
    add_sources,
    allgather,
    allreduce,
    as_completed,
    create,
    delete,
    gather,
    get,
    get_async,
    new_ref,
    nodes,
    objects,
    prioritize,
    put,
    reduce,
    reduce_scatter,
    reduce_status,
    ref,
    stats,
    wait,
)
from ._refs import Ref
from ._scope import Scope, scope
from ._shared_array import SharedArray

__version__ = "0.1.0"

__all__ = [
    "CallCancelledError",
    "Client",
    "ConnectionLostError",
    "GetTimeoutError",
    "HopliteError",
    "InternalError",
    "InvalidArgumentError",
    "LocalCluster",
    "Node",
    "NotAuthorisedError",
    "Object",
    "ObjectDeletedError",
    "ObjectExistsError",
    "ObjectLostError",
    "ReduceStatus",
    "Ref",
    "Scope",
    "SharedArray",
    "SizeMismatchError",
    "Slot",
    "Source",
    "Stats",
    "StoreFullError",
    "TypeMismatchError",
    "VersionMismatchError",
    "add_sources",
    "allgather",
    "allreduce",
    "as_completed",
    "create",
    "delete",
    "gather",
    "get",
    "get_async",
    "init",
    "local",
    "new_ref",
    "nodes",
    "objects",
    "prioritize",
    "put",
    "reduce",
    "reduce_scatter",
    "reduce_status",
    "ref",
    "scope",
    "shutdown",
    "stats",
    "wait",
]
