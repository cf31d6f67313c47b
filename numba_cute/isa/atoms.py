# SPDX-License-Identifier: Apache-2.0
"""Which thread holds which element: the fragments of the MMA and copy instructions, as data.

A thread-value layout maps (thread, value) to an element of the tile, as the column-major index m + n * M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.layout import Layout, make_layout
from ..seam import CuteError


@cache
def elements(layout: Layout) -> NDArray[np.int64]:
    """The element of each thread and value of a thread-value layout: shape (threads, values)."""
    threads, values = (_offsets(s, d) for s, d in zip(layout.shape, layout.stride))
    held: NDArray[np.int64] = threads[:, None] + values[None, :]
    held.setflags(write=False)
    return held


def _offsets(shape: Any, stride: Any) -> NDArray[np.int64]:
    """A nested mode's offsets in its own order: the leftmost leaf fastest."""
    if isinstance(shape, int):
        return np.asarray(np.arange(shape, dtype=np.int64) * stride)
    total = np.zeros(1, np.int64)
    for s, d in zip(shape, stride):
        total = (total[None, :] + _offsets(s, d)[:, None]).ravel()
    return total


def _check(what: str, layout: Layout, threads: int, size: int, once: bool) -> None:
    """The layout is of `threads` threads and covers `size` elements, each once or at least once."""
    held = elements(layout)
    if held.shape[0] != threads:
        raise CuteError(f"{what}: the layout {layout} has {held.shape[0]} threads, but {threads} issue it")
    if once and held.size != size:
        raise CuteError(f"{what}: {held.shape[0]} threads of {held.shape[1]} values are not its {size} elements")
    if not np.array_equal(np.unique(held), np.arange(size)):
        raise CuteError(f"{what}: the layout {layout} does not cover its {size} elements")


@dataclass(frozen=True)
class MmaAtom:
    """One MMA instruction's tile: d[m, n] = a[m, k] @ b[n, k].T + c[m, n].

    shape_mnk: the extents. threads: how many threads issue it. a, b, c: thread-value layouts over (M, K), (N, K)
    and (M, N). An operand in shared memory has thread stride 0: each thread names the whole of it.
    """

    shape_mnk: tuple[int, int, int]
    threads: int
    a: Layout
    b: Layout
    c: Layout

    def __post_init__(self) -> None:
        m, n, k = self.shape_mnk
        for name, layout, size in (("a", self.a, m * k), ("b", self.b, n * k), ("c", self.c, m * n)):
            in_registers = name == "c" or layout.stride[0] != 0
            _check(f"MMA atom {self.shape_mnk}, operand {name}", layout, self.threads, size, in_registers)


@dataclass(frozen=True)
class CopyAtom:
    """One copy instruction's tile of `size` elements, issued by `threads` threads.

    src and dst: thread-value layouts onto the same elements. On the side that is in shared memory a thread's values
    are the row that it addresses, and several threads may address the same one.
    """

    threads: int
    size: int
    src: Layout
    dst: Layout

    def __post_init__(self) -> None:
        for name, layout in (("src", self.src), ("dst", self.dst)):
            _check(f"copy atom of {self.size} elements, {name}", layout, self.threads, self.size, False)


def _fragment_64(columns: int) -> Layout:
    """The m64nN accumulator, and the m64k16 A operand, in a warpgroup's registers (PTX ISA, figures "WGMMA .m64nNk16
    register fragment layout for accumulator matrix D" and "... for matrix A"). Thread t is at row t // 32 * 16 +
    t // 4 % 8, column t % 4 * 2; its values go 2 columns, then 2 rows of 8, then on by 8 columns."""
    values, strides = (2, 2, columns // 8), (64, 8, 512)
    modes = 3 if columns > 8 else 2
    layout: Layout = make_layout(((4, 8, 4), values[:modes]), stride=((128, 1, 16), strides[:modes]))
    return layout


@cache
def wgmma_m64k16(n: int, a_in_registers: bool = False) -> MmaAtom:
    """wgmma.mma_async of 16-bit operands: (64, n, 16), n a multiple of 8 from 8 to 256, by a warpgroup. A thread's
    n / 2 values of C are its accumulator's elements in register order, also when two f16 share a register."""
    if n not in range(8, 257, 8):
        raise CuteError(f"n is {n}: it must be a multiple of 8 from 8 to 256")
    a = _fragment_64(16) if a_in_registers else make_layout((128, (64, 16)), stride=(0, (1, 64)))
    return MmaAtom((64, n, 16), 128, a, make_layout((128, (n, 16)), stride=(0, (1, n))), _fragment_64(n))


_ROW_OF_LANE: dict[int, tuple[Any, Any]] = {1: ((8, 4), (8, 0)), 2: ((16, 2), (8, 0)), 4: (32, 8)}
"""Lane t addresses row t; with fewer than 32 rows, the other lanes' addresses are not used."""


@cache
def ldmatrix_b16(num: int, trans: bool) -> CopyAtom:
    """ldmatrix of `num` (1, 2, 4) matrices of 8 by 8 16-bit elements, from shared memory to registers; element
    64 * matrix + 8 * row + column (PTX ISA, ldmatrix, figure "fragment layout for one 8x8 Matrix with 16-bit
    elements")."""
    if num not in _ROW_OF_LANE:
        raise CuteError(f"num is {num}: it must be 1, 2 or 4 matrices")
    shape, stride = _ROW_OF_LANE[num]
    if trans:  # lane t holds rows t % 4 * 2 and the next, of column t // 4
        registers = make_layout(((4, 8), (2, num)), stride=((16, 1), (8, 64)))
    else:  # lane t holds columns t % 4 * 2 and the next, of row t // 4
        registers = make_layout((32, (2, num)), stride=(2, (1, 64)))
    return CopyAtom(32, 64 * num, make_layout((shape, 8), stride=(stride, 1)), registers)


@cache
def stmatrix_b16(num: int, trans: bool) -> CopyAtom:
    """stmatrix: the same the other way."""
    load = ldmatrix_b16(num, trans)
    return CopyAtom(32, load.size, load.dst, load.src)
