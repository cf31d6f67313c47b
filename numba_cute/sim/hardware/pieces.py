# SPDX-License-Identifier: Apache-2.0
"""Reads and writes of threads that run together, each at its own address."""

from __future__ import annotations

from typing import Any

from ...isa.form.machine import Bytes
from ..ground.access import Pieces, Region
from .together import InTurn


def read_pieces(m: Any, memory: Any, region: Pieces, *, swizzles: bool) -> Bytes:
    """Return what each thread of `m` reads, a row for each. swizzles: whether one may have made its address."""
    _tell(m, memory, region, False, swizzles)
    return region.rows(memory.data).copy()  # type: ignore[no-any-return]


def write_pieces(m: Any, memory: Any, region: Pieces, data: Bytes, *, swizzles: bool) -> None:
    """Let each thread write a row of `data`."""
    try:
        _tell(m, memory, region, True, swizzles)
    except InTurn:
        for i in range(m.lanes):
            _tell(m.alone(i), memory, region.one(i), True, swizzles)
            region.one(i).set(memory.data, data[i])
        return
    region.put(memory.data, data)


def _tell(m: Any, memory: Any, region: Region, write: bool, swizzles: bool) -> None:
    m.told(memory, region, write)
    if swizzles and memory is m.cta.smem:
        m.lies(m.cta, region, write)
