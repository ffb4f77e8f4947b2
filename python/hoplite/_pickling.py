"""Pickles with their buffers beside them: arrays and tensors inside of any value are neither copied twice on their way in,
nor at all on their way out.

    u64 number of buffers, u64 length of the pickle, then (u64 offset, u64 length) of each buffer
    the pickle
    the buffers, each at a multiple of 64

Unpickling runs code that whoever put the object chose: it trusts the cluster.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
from typing import Any

import numpy as np

from . import _core
from ._errors import TypeMismatchError

_ALIGNMENT = 64
_HEAD = struct.Struct("<QQ")


def _aligned(at: int) -> int:
    return (at + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


def tensor_bytes(tensor: Any) -> Any:
    """The elements of a CPU tensor as a flat array of bytes; a copy only where they do not lie one behind the other."""
    torch = sys.modules["torch"]
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else np.empty(0, np.uint8)


def tensor_of(buffer: Any, name: str, shape: tuple[int, ...], requires_grad: bool) -> Any:
    """A tensor on the bytes of `buffer`. torch knows no read-only tensors: writing to one of these ends the process."""
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeMismatchError(f"this version of torch has no element type {name}")
    if 0 in shape:
        tensor = torch.empty(shape, dtype=dtype)
    else:
        tensor = torch.from_dlpack(_core.as_dlpack(buffer)).view(dtype).reshape(shape)
    return tensor.requires_grad_() if requires_grad else tensor


def _parameter_of(buffer: Any, name: str, shape: tuple[int, ...], requires_grad: bool) -> Any:
    import torch

    return torch.nn.Parameter(tensor_of(buffer, name, shape, False), requires_grad=requires_grad)


class _Pickler(pickle.Pickler):
    """torch's own pickling copies the elements of tensors into the pickle; here they stay beside it."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(value, torch.Tensor):
            return NotImplemented
        kind = type(value)
        plain = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
        if kind not in (torch.Tensor, torch.nn.Parameter) or not plain or not value.is_leaf:
            return NotImplemented
        make = tensor_of if kind is torch.Tensor else _parameter_of
        name = str(value.dtype)[len("torch.") :]
        return make, (pickle.PickleBuffer(tensor_bytes(value)), name, tuple(value.shape), value.requires_grad)


def dump(value: Any) -> tuple[int, list[tuple[int, Any]]]:
    """The object's size, and what lies where in it."""
    buffers: list[pickle.PickleBuffer] = []
    stream = io.BytesIO()
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(value)
    pickled = stream.getbuffer()
    raws = [buffer.raw() for buffer in buffers]
    at = _HEAD.size * (1 + len(raws)) + len(pickled)
    heads = [_HEAD.pack(len(raws), len(pickled))]
    parts: list[tuple[int, Any]] = []
    for raw in raws:
        at = _aligned(at)
        parts.append((at, raw))
        heads.append(_HEAD.pack(at, raw.nbytes))
        at += raw.nbytes
    head = b"".join(heads)
    return at, [(0, head), (len(head), pickled), *parts]


def load(memory: memoryview) -> Any:
    """The value, on the object's own bytes."""
    try:
        count, length = _HEAD.unpack_from(memory)
        begin = _HEAD.size * (1 + count)
        places = [_HEAD.unpack_from(memory, _HEAD.size * (1 + i)) for i in range(count)]
    except struct.error:
        raise TypeMismatchError("the object is marked as a pickle, and is too short to be one") from None
    if begin + length > memory.nbytes or any(at + size > memory.nbytes for at, size in places):
        raise TypeMismatchError("the object is marked as a pickle, and its parts do not lie inside of it")
    buffers = [memory[at : at + size] for at, size in places]
    return pickle.loads(memory[begin : begin + length], buffers=buffers)
