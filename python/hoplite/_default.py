"""The client that the functions of the package use, and the daemon behind it."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any

from . import _client, _daemon
from ._client import Client
from ._errors import ConnectionLostError, HopliteError, InvalidArgumentError
from ._refs import Ref

_lock = threading.RLock()
_default: Client | None = None
_daemon_of_ours: _daemon.Daemon | None = None
_folder: _daemon.Folder | None = None
_exported = False  # HOPLITE_SOCKET is ours


def _start_daemon(
    join: str | None, listen: str | None, token: str | None, memory: int | str | None, timeout: float | None
) -> Client:
    global _daemon_of_ours, _folder, _exported
    _folder = _daemon.Folder()
    if listen is None:
        if join is not None and not _is_loopback(join):
            raise InvalidArgumentError(
                f"where do the others reach this machine? say listen= beside join={join!r}, e.g. listen='10.0.0.2:7411'"
            )
        listen = "127.0.0.1:0"
    arguments = ["--listen", listen]
    if join is not None:
        arguments += ["--join", join]
    if memory is not None:
        arguments += ["--memory", str(memory)]
    name = os.path.join(_folder.path, "hoplite")
    _daemon_of_ours = _daemon.Daemon(name + ".sock", name + ".log", arguments, _daemon.environment_of(token))
    client = Client(_daemon_of_ours.socket, token=token, timeout=timeout)
    # For processes that this one starts: their init() attaches to this daemon.
    os.environ["HOPLITE_SOCKET"] = _daemon_of_ours.socket
    _exported = True
    return client


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "localhost", "[::1]"))


def init(
    socket: str | os.PathLike[str] | None = None,
    *,
    join: str | None = None,
    listen: str | None = None,
    token: str | None = None,
    memory: int | str | None = None,
    timeout: float | None = 5.0,
    busy_poll: bool = False,
) -> Client:
    """Attaches to this machine's daemon, or starts one that ends with this process; returns the default client.

    The daemon is the one at `socket`, else at $HOPLITE_SOCKET, else at the default socket of ``hoplite start``. Only if
    nobody listens at the last of these, one is started, for this process and those that it starts: they find it in
    $HOPLITE_SOCKET. It ends with this process, also by kill -9.

    With `join`, the address of any member of a cluster, or with `listen`, an address of this machine, a daemon is started in
    any case: with `join` it becomes a member, with `listen` others can join it. `token` is the cluster's secret, `memory` the
    room for objects, e.g. "4GiB".

    >>> hoplite.init()
    >>> hoplite.init(join="10.0.0.1:7411", listen="10.0.0.2:7411", token=secret)
    """
    global _default
    with _lock:
        if _default is not None and not _default.closed:
            raise HopliteError("hoplite.init() was called before: hoplite.shutdown() ends that, or use hoplite.Client()")
        _forget_parent()
        starts = join is not None or listen is not None
        if starts and socket is not None:
            raise InvalidArgumentError("socket= attaches to a daemon, join= and listen= start one: say only one of them")
        try:
            if starts:
                _default = _start_daemon(join, listen, token, memory, timeout)
                return _default
            try:
                _default = Client(socket, token=token, timeout=timeout, busy_poll=busy_poll)
            except ConnectionLostError:
                if socket is not None or os.environ.get("HOPLITE_SOCKET"):
                    raise
                _default = _start_daemon(None, None, token, memory, timeout)
            return _default
        except BaseException:
            shutdown()
            raise


def _forget_parent() -> None:
    """After a fork: the daemon and its folder belong to the process that started them."""
    global _daemon_of_ours, _folder, _exported
    if _default is not None and _default._session.forked:
        _daemon_of_ours, _folder, _exported = None, None, False


def shutdown() -> None:
    """Closes the default client and ends the daemon that init() started, if it did. Arrays stay readable.

    Does nothing if init() was not called. Called at the end of the process.
    """
    global _default, _daemon_of_ours, _folder, _exported
    with _lock:
        _forget_parent()
        client, _default = _default, None
        if client is not None:
            client.close()
        daemon, _daemon_of_ours = _daemon_of_ours, None
        if daemon is not None:
            daemon.stop()
        if _exported:
            os.environ.pop("HOPLITE_SOCKET", None)
            _exported = False
        folder, _folder = _folder, None
        if folder is not None:
            folder.remove()


def default() -> Client:
    """The client of init()."""
    client = _default
    if client is None:
        raise ConnectionLostError("hoplite.init() comes first, or use a hoplite.Client")
    return client


def client_of(ref: Ref) -> Client:
    """The client that made a ref, else the default one."""
    made_by: Any = ref._client
    return made_by if made_by is not None and not made_by.closed else default()


def _at_exit() -> None:
    for daemon in list(_daemon.Daemon._running):
        daemon._close_pipe()
    shutdown()
    _client.close_all()
    for daemon in list(_daemon.Daemon._running):
        daemon.stop()
    for folder in list(_daemon.Folder._live):
        folder.remove()


atexit.register(_at_exit)


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # somebody else may have held it


os.register_at_fork(after_in_child=_after_fork)
