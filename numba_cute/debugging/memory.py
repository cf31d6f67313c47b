# SPDX-License-Identifier: Apache-2.0
"""The memory that a launch's arguments are, with the names of the parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..compiler.host.debugged import allocation_of, contents
from ..seam import CuteError
from ..tensor.dlpack import inspect_array
from ..tensor.tensor import Tensor, extent
from .records import Range

_MOST_WORDS = 1 << 17
_LEAST_ADDRESS = 1 << 32


def names_of(kernel: Any, args: tuple[Any, ...]) -> list[str]:
    """Name the parameters of a launch's arguments."""
    function = getattr(kernel, "py_func", kernel)
    known = [p.name for p in inspect.signature(function).parameters.values()]
    return known[: len(args)] + [f"argument {i}" for i in range(len(known), len(args))]


def ranges_of(args: tuple[Any, ...], names: list[str]) -> list[Range]:
    """List the memory of arrays and tensors among arguments, and in what holds some."""
    found: dict[tuple[int, int], Range] = {}
    for name, value in zip(names, args):
        for r in _within(value, name, set()):
            found.setdefault((r.start, r.stop), r)
    return list(found.values())


def _within(value: Any, name: str, seen: set[int]) -> Iterator[Range]:
    if id(value) in seen or isinstance(value, type):
        return
    seen.add(id(value))
    if isinstance(value, Tensor):
        start, nbytes = extent(value)
        if nbytes:
            yield Range(start, start + nbytes, name, value.element_type)
        return
    if hasattr(value, "__cuda_array_interface__") or callable(getattr(value, "data_ptr", None)):
        yield from _array(value, name)
        return
    if isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from _within(item, f"{name}[{i}]", seen)
    elif dataclasses.is_dataclass(value):
        for f in dataclasses.fields(value):
            yield from _within(getattr(value, f.name, None), f"{name}.{f.name}", seen)


def _array(value: Any, name: str) -> Iterator[Range]:
    try:
        info = inspect_array(value)
        bits, dtype = info.dtype.width, info.dtype
        start, shape, strides = info.address, info.shape, info.strides
    except CuteError:  # elements that are none of this library's, as records
        interface = value.__cuda_array_interface__
        size = np.dtype(interface["typestr"]).itemsize
        bits, dtype, start, shape = 8 * size, None, int(interface["data"][0]), interface["shape"]
        given = interface.get("strides") or np.empty(shape, np.uint8).strides
        strides = tuple(s // (size if interface.get("strides") else 1) for s in given)
    if 0 in shape:
        return
    low = sum(min(0, s * (n - 1)) for n, s in zip(shape, strides)) * bits // 8
    high = (sum(max(0, s * (n - 1)) for n, s in zip(shape, strides)) + 1) * bits
    yield Range(start + low, start + -(-high // 8), name, dtype)


def reached(ranges: list[Range], parameters: bytes) -> list[Range]:
    """List the allocations that addresses lead to which are no argument's: among a launch's parameters, and in arrays
    of 64-bit integers."""
    words = list(np.frombuffer(parameters[: len(parameters) // 8 * 8], np.uint64))
    for r in ranges:
        if r.dtype is not None and r.dtype.is_integer and r.dtype.width == 64:
            held = contents(r.start, min((r.stop - r.start) // 8, _MOST_WORDS), np.uint64)
            words += list(np.unique(held[held >= _LEAST_ADDRESS]))
    more: dict[int, Range] = {}
    for word in {int(w) for w in words if w >= _LEAST_ADDRESS}:
        if not any(r.start <= word <= r.stop for r in (*ranges, *more.values())):
            found = allocation_of(word)
            if found is not None:
                more[found[0]] = Range(found[0], sum(found), f"the allocation at {found[0]:#x}")
    return list(more.values())
