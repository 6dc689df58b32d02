"""Making and packing arrays, for what the extension does not do itself."""

from __future__ import annotations

import ctypes
import math
import operator
import sys
from typing import Any

from lineweave._errors import BadArgument, BadType


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError(
            "this call has to make an array and numpy is not installed; give `out`, or pip install numpy"
        ) from error
    return numpy


def _is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def like(x: Any, blocks: int, ranks: int) -> Any:
    """Makes an array of the kind of `x`: as long (blocks 0), a block of it for each rank (1), or one of its blocks (-1)."""
    if isinstance(x, (bytes, bytearray)):
        return bytearray({0: len(x), 1: len(x) * ranks, -1: len(x) // ranks}[blocks])
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        x = _numpy().asarray(x)
    shape = tuple(x.shape)
    if blocks == 1:
        shape = (ranks, *shape)
    elif blocks == -1:
        if not shape or shape[0] % ranks != 0:
            raise BadArgument(
                f"x has shape {shape}; its first extent must be divisible by the {ranks} ranks, or give `out`"
            )
        # One block a rank is one row: the row itself, as it was gathered.
        shape = shape[1:] if shape[0] == ranks and len(shape) > 1 else (shape[0] // ranks, *shape[1:])
    if _is_tensor(x):
        return x.new_empty(shape)
    return _numpy().empty(shape, x.dtype)


def in_memory(memory: Any, shape: Any, dtype: Any) -> Any:
    """An array of this shape and type in memory that the extension has, which it keeps alive: a tensor for a type of torch."""
    buffer = _mapped(memory)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        if buffer is None:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(buffer, dtype=dtype).view(shape)
    return _numpy().ndarray(shape, dtype, buffer)


def _mapped(memory: Any) -> Any:
    # A class of its own, so that its object has attributes: who has the bytes has what keeps them.
    class Mapped(ctypes.c_char * memory.bytes):  # type: ignore[misc]
        pass

    if memory.bytes == 0:
        return None
    mapped = Mapped.from_address(memory.address)
    mapped.kept = memory
    return mapped


def extent(shape: Any, dtype: Any) -> tuple[tuple[int, ...], int]:
    """Returns the shape as a tuple, and the bytes of such an array."""
    try:
        extents = tuple(int(n) for n in shape) if hasattr(shape, "__iter__") else (operator.index(shape),)
    except (TypeError, ValueError) as error:
        raise BadType(f"the shape is {shape!r}; expected a number or several") from error
    if any(n < 0 for n in extents):
        raise BadArgument(f"the shape is {extents}; no extent may be negative")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        size = int(torch.empty((), dtype=dtype).element_size())
    else:
        kind = _numpy().dtype(dtype)
        if kind.hasobject:
            raise BadType(f"dtype {kind} holds Python objects, which have no place in shared memory; give it a numeric dtype")
        size = int(kind.itemsize)
    return extents, math.prod(extents) * size


def flat(x: Any, count: int) -> Any:
    """Makes an array of `count` elements of the kind of `x`."""
    if isinstance(x, (bytes, bytearray)):
        return bytearray(count)
    if _is_tensor(x):
        return x.new_empty(count)
    return _numpy().empty(count, _numpy().asarray(x).dtype)


def pack(x: Any) -> Any:
    """Returns an array with the same elements, one after the other."""
    if _is_tensor(x):
        return x.contiguous()
    return _numpy().ascontiguousarray(x)


def unpack(packed: Any, x: Any) -> None:
    """Copies packed elements back to their places."""
    if _is_tensor(x):
        x.copy_(packed)
    else:
        _numpy().asarray(x)[...] = packed
