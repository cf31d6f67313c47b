# SPDX-License-Identifier: Apache-2.0
"""Kernel parameters as bytes, and what the driver's `cuLaunchKernelEx` is given."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

MAP = 64
"""The alignment of a tensor map's address (CUDA driver API, CUtensorMap)."""
HEADER = 64
"""Bytes before the parameters that an object remembers."""


def as_bytes(parameter: Any) -> bytes:
    """A parameter as `_prepare_args` gives it: a tensor map, a bool, an address or count, or a number of ctypes."""
    if isinstance(parameter, bytes):
        return parameter
    if isinstance(parameter, (bool, np.bool_)):  # before NumPy 2.3 `bytes` takes the latter for a length
        return bytes((bool(parameter),))
    return parameter.to_bytes(8, "little", signed=parameter < 0) if isinstance(parameter, int) else bytes(parameter)


def block(parameters: Sequence[Any]) -> tuple[bytes, list[int]]:
    """Lay out parameters one after the other; return their bytes, and where each begins."""
    out, offsets = bytearray(), []
    for p in map(as_bytes, parameters):
        align = MAP if len(p) > MAP else 8
        out += bytes(-len(out) % align)
        offsets.append(len(out))
        out += p
    return bytes(out + bytes(-len(out) % 8)), offsets


class _Value(ctypes.Union):
    _fields_ = [("words", ctypes.c_uint32 * 16)]


class Attribute(ctypes.Structure):
    """cuda.h, CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", _Value)]


class Config(ctypes.Structure):
    """cuda.h, CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("smem", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint32),
    ]


def configuration(
    grid: Any, block: Any, smem: int, stream: int, attributes_wanted: Iterable[tuple[int, tuple[int, ...]]] = ()
) -> Config:
    """Make a launch configuration. grid: CTAs, three. block: threads, three. smem: bytes of dynamic shared memory.
    stream: its handle. attributes_wanted: the number of each and the words of its value."""
    wanted = list(attributes_wanted)
    attributes = (Attribute * max(1, len(wanted)))()
    for a, (kind, words) in zip(attributes, wanted):
        a.id = kind
        a.value.words[: len(words)] = words
    made = Config(tuple(grid), tuple(block), smem, stream, ctypes.addressof(attributes), len(wanted))
    made.kept = attributes
    return made
