"""How Python's values become bytes of an object, and come back.

An object's metadata says what its bytes are; without any, the element type and shape that every client knows say it all:

    (none)               numbers of the object's type and shape: a numpy array; without a type: plain bytes, a memoryview
    py:scalar            numbers without dimensions: a numpy array of shape ()
    py:array;<c8;2,3     a numpy array of a type that is Hoplite's business only as bytes
    py:torch             a torch tensor of the object's type and shape
    py:torch;bool;2,3    a torch tensor of another type, or without dimensions
    py:bytes             `bytes`
    py:pickle            a pickle with its buffers, see _pickling.py
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core, _pickling
from ._errors import TypeMismatchError
from ._shared_array import SharedArray

_MAX_DIMENSIONS = 32  # of an array type, as the C++ client has it

# Hoplite's element types, and numpy's in this machine's byte order.
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
}
_FROM_NUMPY = {dtype: name for name, dtype in NUMPY_TYPES.items()}
_TORCH_NAMES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
_FROM_TORCH = {name: ours for ours, name in _TORCH_NAMES.items()}

# Types whose elements are plain bytes that dtype.str describes in full; others (objects, records) are pickled.
_PLAIN_KINDS = "biufcSUmM"


class Encoded(NamedTuple):
    """What one call of the extension puts: `parts` is set for pickles, else `data`."""

    data: Any
    metadata: str
    dtype: str
    shape: Sequence[int]
    parts: list[tuple[int, Any]] | None = None
    size: int = 0


def _joined(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape))


def _split(text: str) -> tuple[int, ...]:
    return tuple(int(extent) for extent in text.split(",")) if text else ()


def reducible_type(dtype: Any) -> str:
    """Hoplite's name of an element type: "f32" for "f32", np.float32, np.dtype("<f4"), torch.float32.

    TypeMismatchError if there is none.
    """
    if isinstance(dtype, str) and (dtype in NUMPY_TYPES or dtype == "bf16"):
        return dtype
    text = str(dtype)
    if text.startswith("torch.") and text[6:] in _FROM_TORCH:
        return _FROM_TORCH[text[6:]]
    if text == "bfloat16" or getattr(dtype, "__name__", "") == "bfloat16":
        return "bf16"
    try:
        return _FROM_NUMPY[np.dtype(dtype)]
    except (TypeError, KeyError):
        raise TypeMismatchError(f"{dtype!r} is no element type that Hoplite can combine") from None


def known_type(dtype: np.dtype[Any]) -> str | None:
    """Hoplite's name of a numpy type, if it has one."""
    return _FROM_NUMPY.get(dtype) or ("bf16" if dtype.name == "bfloat16" else None)


def array_metadata(shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[str, str, Sequence[int]] | None:
    """(metadata, element type, shape) of an array; None if it has to be pickled."""
    known = known_type(dtype)
    if known is not None and len(shape) <= _MAX_DIMENSIONS:
        return ("" if shape else "py:scalar"), known, shape
    if dtype.kind in _PLAIN_KINDS and not dtype.hasobject:
        return f"py:array;{dtype.str};{_joined(shape)}", "bytes", ()
    return None


def _encode_array(array: np.ndarray[Any, Any]) -> Encoded | None:
    described = array_metadata(array.shape, array.dtype)
    if described is None:
        return None
    metadata, dtype, shape = described
    # As bytes, because some types, dates among them, cannot be exported as what they are.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else b""
    return Encoded(data, metadata, dtype, shape)


def _encode_tensor(tensor: Any) -> Encoded | None:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.is_quantized:
        return None
    if tensor.device.type != "cpu":
        raise TypeMismatchError(f"the tensor is on {tensor.device}; Hoplite keeps objects in main memory: put tensor.cpu()")
    data = _pickling.tensor_bytes(tensor)
    name = str(tensor.dtype)[len("torch.") :]
    shape = tuple(tensor.shape)
    known = _FROM_TORCH.get(name)
    if known is not None and shape and len(shape) <= _MAX_DIMENSIONS:
        return Encoded(data, "py:torch", known, shape)
    # Without dimensions it is still numbers that a reduce can combine.
    dtype = known if known is not None and not shape else "bytes"
    return Encoded(data, f"py:torch;{name};{_joined(shape)}", dtype, ())


def encode(value: Any) -> Encoded:
    """Any picklable value."""
    kind = type(value)
    if kind is bytes:
        return Encoded(value, "py:bytes", "bytes", ())
    encoded = None
    if kind is np.ndarray or kind is SharedArray:
        encoded = _encode_array(value)
    elif kind is bytearray or kind is memoryview:
        contiguous = kind is bytearray or value.c_contiguous
        encoded = Encoded(value if contiguous else value.tobytes(), "", "bytes", ())
    elif "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        encoded = _encode_tensor(value)
    if encoded is not None:
        return encoded
    size, parts = _pickling.dump(value)
    return Encoded(None, "py:pickle", "bytes", (), parts, size)


def _array(stored: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """A read-only array (a tensor, where numpy has no such type) of the object's own bytes."""
    if dtype == "bf16":
        if "ml_dtypes" in sys.modules:
            return np.ndarray(shape, sys.modules["ml_dtypes"].bfloat16, buffer=stored)
        if "torch" in sys.modules:
            return _tensor(stored, "bfloat16", shape)
        raise TypeMismatchError(
            f"the elements of {stored.id} are bf16, which numpy does not know: import torch or ml_dtypes before the get"
        )
    return np.ndarray(shape, NUMPY_TYPES[dtype], buffer=stored)


def _tensor(stored: Any, name: str, shape: Sequence[int]) -> Any:
    return _pickling.tensor_of(stored, name, tuple(shape), False)


def _shape(stored: _core.Stored) -> tuple[int, ...]:
    """Of numbers; what was put without a shape has one dimension."""
    shape = stored.shape
    if shape:
        return shape
    size = 2 if stored.dtype == "bf16" else NUMPY_TYPES[stored.dtype].itemsize
    return (len(stored) // size,)


def _decode_torch(stored: _core.Stored, fields: list[str]) -> Any:
    if len(fields) == 3:
        if "torch" not in sys.modules:
            raise TypeMismatchError(f"{stored.id} is a torch tensor of type {fields[1]}: import torch before the get")
        return _tensor(stored, fields[1], _split(fields[2]))
    if "torch" in sys.modules:
        return _tensor(stored, _TORCH_NAMES[stored.dtype], _shape(stored))
    return _array(stored, stored.dtype, _shape(stored))


def decode(stored: Any, allow_pickle: bool = True) -> Any:
    """The value that was put, on the object's own bytes as far as its type can be."""
    metadata = stored.metadata
    if metadata == "py:bytes":
        return bytes(stored)
    if metadata == "py:pickle":
        if not allow_pickle:
            raise TypeMismatchError(
                f"{stored.id} is a pickle, and unpickling runs code of whoever put it: say allow_pickle=True if you trust them"
            )
        return _pickling.load(memoryview(stored))
    if metadata == "py:scalar":
        return _array(stored, stored.dtype, ())
    fields = metadata.split(";")
    if fields[0] == "py:array" and len(fields) == 3:
        dtype = np.dtype(fields[1])
        if dtype.hasobject:
            raise TypeMismatchError(f"{stored.id} says that its bytes are Python objects, which they cannot be")
        return np.ndarray(_split(fields[2]), dtype, buffer=stored)
    if fields[0] == "py:torch":
        return _decode_torch(stored, fields)
    if stored.dtype == "bytes":
        return memoryview(stored)
    return _array(stored, stored.dtype, _shape(stored))
