"""What can go wrong: a small tree under HopliteError. Each message names the object, the node and the reason."""

from __future__ import annotations


class HopliteError(Exception):
    """The root of what Hoplite raises."""


class GetTimeoutError(HopliteError, TimeoutError):
    """The time was over; the message says what was being waited for."""


class ObjectLostError(HopliteError):
    """The object existed, and every complete copy was on nodes that died."""


class ObjectDeletedError(HopliteError):
    """The object was deleted."""


class ObjectExistsError(HopliteError):
    """The id already names an object; objects never change."""


class StoreFullError(HopliteError, MemoryError):
    """No room in the store before the deadline; the message has the numbers."""


class NotAuthorisedError(HopliteError, PermissionError):
    """A wrong or missing cluster token."""


class InvalidArgumentError(HopliteError, ValueError):
    """The request makes no sense."""


class TypeMismatchError(HopliteError, TypeError):
    """An object is of another type or shape than the call needs; the message names it."""


class ConnectionLostError(HopliteError, ConnectionError):
    """The daemon is gone or cannot be reached, or the client was closed."""


class VersionMismatchError(HopliteError):
    """The daemon speaks another version of the protocol."""


class CallCancelledError(HopliteError):
    """The call was cancelled."""


class InternalError(HopliteError):
    """The store failed in a way it should not; please report it."""


_BY_CODE: dict[str, type[HopliteError]] = {
    "timed out": GetTimeoutError,
    "lost": ObjectLostError,
    "deleted": ObjectDeletedError,
    "exists": ObjectExistsError,
    "store full": StoreFullError,
    "not authorised": NotAuthorisedError,
    "invalid argument": InvalidArgumentError,
    "type mismatch": TypeMismatchError,
    "unavailable": ConnectionLostError,
    "version mismatch": VersionMismatchError,
    "cancelled": CallCancelledError,
}


def from_code(code: str, message: str) -> HopliteError:
    """Called by the extension: the exception that belongs to an error of the C++ client."""
    return _BY_CODE.get(code, InternalError)(message)
