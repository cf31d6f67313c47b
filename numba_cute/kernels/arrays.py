# SPDX-License-Identifier: Apache-2.0
"""Read and check the arrays that entries take, torch's and NumPy's alike: types, strides, devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numba_cute as cute
from numba_cute.seam import CuteError

__all__ = ["FLOATS", "aligned", "check", "described", "element_type", "strides", "type_name"]

FLOATS = ("bfloat16", "float16", "float32")
"""The element types that most kernels take, by the names that NumPy and torch share."""
_TYPES = {
    "bfloat16": cute.BFloat16, "float16": cute.Float16, "float32": cute.Float32, "float64": cute.Float64,
    "float8_e4m3fn": cute.Float8E4M3FN, "float8_e5m2": cute.Float8E5M2, "bool": cute.Boolean,
    "int8": cute.Int8, "int16": cute.Int16, "int32": cute.Int32, "int64": cute.Int64,
    "uint8": cute.Uint8, "uint16": cute.Uint16, "uint32": cute.Uint32, "uint64": cute.Uint64,
}  # fmt: skip


def type_name(x: Any) -> str:
    """Name the element type of `x`, an array of torch's or NumPy's, as "bfloat16"."""
    return str(x.dtype).removeprefix("torch.")


def element_type(x: Any) -> Any:
    """Give this library's element type of `x`, an array of torch's or NumPy's. CuteError for one that it has not."""
    found = _TYPES.get(type_name(x))
    if found is None:
        raise CuteError(f"kernels: elements of {x.dtype} are none of {', '.join(_TYPES)}")
    return found


def strides(x: Any) -> tuple[int, ...]:
    """Give the strides of `x`, an array of torch's or NumPy's, in elements."""
    if hasattr(x, "stride"):
        return tuple(x.stride())
    return tuple(s // x.itemsize for s in x.strides)


def aligned(x: Any) -> bool:
    """Say whether `x`, an array of torch's or NumPy's, begins at a multiple of 16 bytes."""
    at = x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
    return bool(at % 16 == 0)


def described(x: Any) -> str:
    """Describe `x` for a message: of an array its type, shape, strides and place, of anything else its class."""
    if x is None:
        return "None"
    if (
        isinstance(x, type)
        or not hasattr(x, "dtype")
        or not (hasattr(x, "strides") or callable(getattr(x, "stride", None)))
    ):
        return f"{type(x).__name__} {x!r}"
    where = f" on {x.device}" if hasattr(x, "device") else ""
    return f"{type_name(x)} of shape {tuple(x.shape)} and strides {strides(x)}{where}"


def check(
    what: str, name: str, x: Any, *, dtypes: Sequence[str] = (), rank: int | None = None, least_rank: int = 0,
    shape: Sequence[int | None] | None = None, last: bool = True, like: Any = None, optional: bool = False,
) -> None:  # fmt: skip
    """Refuse `x` if it is not what an entry takes.

    what: the entry, and name: the argument, for the message. dtypes: names of the element types that it may have.
    rank, least_rank: how many modes it has, exactly or at least. shape: its extents, None for any. last: whether its
    last mode must be contiguous. like: an array on whose device it must lie. optional: whether None will do.
    CuteError says the argument, what it is, the rule, and what to do.
    """
    if x is None and optional:
        return

    def refuse(rule: str) -> NoReturn:
        raise CuteError(f"{what}: {name} is {described(x)}{rule}")

    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        refuse(f"; give a tensor of torch's on the GPU{' or None' if optional else ''}")
    if dtypes and type_name(x) not in dtypes:
        refuse(f"; its elements must be {_either(dtypes)}: convert it with {name}.to(…)")
    if rank is not None and len(x.shape) != rank or len(x.shape) < least_rank:
        modes = f"{rank} modes" if rank is not None else f"{least_rank} modes or more"
        refuse(f"; it must have {modes}: reshape it")
    if shape is not None and not _fits(tuple(x.shape), shape):
        extents = ", ".join("any" if n is None else str(n) for n in shape)
        refuse(f"; its shape must be ({extents}{',' if len(shape) == 1 else ''}): give one of that shape")
    if last and len(x.shape) and x.shape[-1] > 1 and 0 not in x.shape and strides(x)[-1] != 1:
        refuse(f"; its last mode must be contiguous: give {name}.contiguous()")
    if like is not None and getattr(x, "device", None) != getattr(like, "device", None):
        refuse(f", and the first argument is on {like.device}: give {name}.to({str(like.device)!r})")


def _fits(shape: tuple[int, ...], want: Sequence[int | None]) -> bool:
    return len(shape) == len(want) and all(w is None or n == w for n, w in zip(shape, want))


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
