# SPDX-License-Identifier: Apache-2.0
"""The fragments of the MMA and copy instructions, as data: the elements that each thread holds.

A thread-value layout maps (thread, value) to an element of the tile, as the column-major index m + n * M.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...layout.layout import Layout, make_layout
from ...seam import CuteError
from ...seam.ground.records import dataclass


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


@cache
def row_major(layout: Layout, rows: int, columns: int) -> NDArray[np.int64]:
    """`elements` as indices into a C-ordered (rows, columns) array."""
    column, row = np.divmod(elements(layout), rows)
    held = np.asarray(row * columns + column)
    held.setflags(write=False)
    return held


def _check(what: str, layout: Layout, threads: int, size: int, once: bool) -> None:
    """The layout is of `threads` threads and covers `size` elements, each once or at least once."""
    held = elements(layout)
    if held.shape[0] != threads:
        raise CuteError(f"{what}: the layout {layout} has {held.shape[0]} threads, but {threads} issue it")
    if once and held.size != size:
        raise CuteError(f"{what}: {held.shape[0]} threads of {held.shape[1]} values are not its {size} elements")
    covered = np.zeros(size, bool)
    if held.min() >= 0 and held.max() < size:
        covered[held] = True
    if not covered.all():
        raise CuteError(f"{what}: the layout {layout} does not cover its {size} elements")


@dataclass(frozen=True)
class MmaLayouts:
    """One MMA instruction's tile: d[m, n] = a[m, k] @ b[n, k].T + c[m, n].

    shape_mnk: the extents. threads: how many threads issue it. a, b, c: thread-value layouts over (M, K), (N, K)
    and (M, N). An operand in shared memory has thread stride 0: each thread names the whole of it. sparsity: of how
    many elements of A along K one is stored; `a` is then a layout over (M, K / sparsity).
    """

    shape_mnk: tuple[int, int, int]
    threads: int
    a: Layout
    b: Layout
    c: Layout
    sparsity: int = 1

    def __post_init__(self) -> None:
        m, n, k = self.shape_mnk
        for name, layout, size in (("a", self.a, m * k // self.sparsity), ("b", self.b, n * k), ("c", self.c, m * n)):
            in_registers = name == "c" or layout.stride[0] != 0
            _check(f"MMA fragments {self.shape_mnk}, operand {name}", layout, self.threads, size, in_registers)


@dataclass(frozen=True)
class CopyLayouts:
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
            _check(f"copy of {self.size} elements, {name}", layout, self.threads, self.size, False)


def _fragment_64(columns: int, per: int = 2) -> Layout:
    """The m64nN accumulator (per = 2), and the m64 A operand of `per` elements to 32 bits, in a warpgroup's registers
    (PTX ISA, figures "WGMMA .m64nNk16 register fragment layout for accumulator matrix D" and "... for matrix A", and
    the same for k8, k32, k256). Thread t is at row t // 32 * 16 + t // 4 % 8, column t % 4 * per; its values go
    `per` columns, then 2 rows of 8, then on by 4 * per columns."""
    values, strides = _modes((per, 64), (2, 8), (columns // (4 * per), 256 * per))
    layout: Layout = make_layout(((4, 8, 4), values), stride=((64 * per, 1, 16), strides))
    return layout


@cache
def wgmma(n: int, k: int, width: int, a_in_registers: bool = False) -> MmaLayouts:
    """wgmma.mma_async of (64, n, k), k * width = 256 bits, n a multiple of 8 from 8 to 256, by a warpgroup. A thread's
    n / 2 values of C are its accumulator's elements in register order, also when two f16 share a register."""
    if n not in range(8, 257, 8):
        raise CuteError(f"n is {n}: it must be a multiple of 8 from 8 to 256")
    if k * width != 256:
        raise CuteError(f"k is {k}: {width}-bit operands have k = {256 // width}")
    a = _fragment_64(k, 32 // width) if a_in_registers else make_layout((128, (64, k)), stride=(0, (1, 64)))
    return MmaLayouts((64, n, k), 128, a, make_layout((128, (n, k)), stride=(0, (1, n))), _fragment_64(n))


def wgmma_m64k16(n: int, a_in_registers: bool = False) -> MmaLayouts:
    """`wgmma` of 16-bit operands."""
    return wgmma(n, 16, 16, a_in_registers)


def _modes(*modes: tuple[int, int]) -> tuple[Any, Any]:
    """(shape, stride) of value modes, those of one element left out, a single one unwrapped."""
    kept = [m for m in modes if m[0] > 1] or [(1, 0)]
    if len(kept) == 1:
        return kept[0]
    return tuple(s for s, _ in kept), tuple(d for _, d in kept)


@cache
def mma_sync(m: int, k: int, width: int) -> MmaLayouts:
    """mma.sync of (m, 8, k), m 8 or 16, operands of `width` bits, by a warp. PTX ISA, "Matrix Fragments for mma.m8n8k4
    with .f64" to "... for mma.m16n8k256": they all have one form.

    A register holds R = max(32 / width, 1) elements along k. Lane t holds of A row t / 4, columns R * (t % 4) and on,
    then 8 rows further down, then 4 R columns on; of B the same with columns for rows; of C row t / 4, columns
    2 * (t % 4) and the next, then 8 rows further down."""
    per = max(32 // width, 1)
    if m not in (8, 16) or k % (4 * per):
        raise CuteError(f"mma.sync: no fragment of m {m}, k {k} with {width}-bit elements")
    steps = k // (4 * per)
    a, a_stride = _modes((per, m), (m // 8, 8), (steps, 4 * per * m))
    b, b_stride = _modes((per, 8), (steps, 4 * per * 8))
    c, c_stride = _modes((2, m), (m // 8, 8))
    lanes = (4, 8)
    return MmaLayouts(
        (m, 8, k),
        32,
        make_layout((lanes, a), stride=((per * m, 1), a_stride)),
        make_layout((lanes, b), stride=((per * 8, 1), b_stride)),
        make_layout((lanes, c), stride=((2 * m, 1), c_stride)),
    )


@cache
def mma_sync_scales(operand: str, k: int) -> Layout:
    """From (lane, value) to the elements of an operand "A" (16, k) or "B" (8, k) of mma.sync.block_scale whose factors
    the lane holds (PTX ISA, "mma.sync" with .block_scale: lanes 4 r and 4 r + 1 of row r, where byte-id and thread-id
    are 0; the others hold copies)."""
    if operand == "A":
        return make_layout(((2, 2, 8), k), stride=((8, 0, 1), 16))
    return make_layout(((4, 8), k), stride=((0, 1), 8))


@cache
def mma_sparse(k: int, width: int) -> MmaLayouts:
    """mma.sp of (16, 8, k), by a warp: A is the stored half of a sparse (16, k), its fragment that of a dense
    (16, k / 2) (PTX ISA, "Matrix fragments for multiply-accumulate operation with sparse matrix A")."""
    a, b = mma_sync(16, k // 2, width), mma_sync(16, k, width)
    return MmaLayouts((16, 8, k), 32, a.a, b.b, b.c, 2)


@cache
def wgmma_sparse(n: int, k: int, width: int, a_in_registers: bool = False) -> MmaLayouts:
    """wgmma.mma_async.sp of (64, n, k), k * width = 512 bits: as `wgmma`, of A (64, k / 2) being stored."""
    dense = wgmma(n, k // 2, width, a_in_registers)
    b = make_layout((128, (n, k)), stride=(0, (1, n)))
    return MmaLayouts((64, n, k), 128, dense.a, b, dense.c, 2)


_ROW_OF_LANE: dict[int, tuple[Any, Any]] = {1: ((8, 4), (8, 0)), 2: ((16, 2), (8, 0)), 4: (32, 8)}
"""Lane t addresses row t; with fewer than 32 rows, the other lanes' addresses are not used."""


@cache
def ldmatrix_b16(num: int, trans: bool) -> CopyLayouts:
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
    return CopyLayouts(32, 64 * num, make_layout((shape, 8), stride=(stride, 1)), registers)


@cache
def stmatrix_b16(num: int, trans: bool) -> CopyLayouts:
    """stmatrix: the same the other way."""
    load = ldmatrix_b16(num, trans)
    return CopyLayouts(32, load.size, load.dst, load.src)


@cache
def ldmatrix_m16n16_b8(num: int) -> CopyLayouts:
    """ldmatrix of `num` (1, 2) 16 by 16 matrices of bytes, transposed: element 256 * matrix + 16 * row + byte (PTX
    ISA, ldmatrix, figure "fragment layout for one 16x16 matrix with 8-bit elements"). Lane t holds bytes t // 4, then
    t // 4 + 8, of rows 4 * (t % 4) and the next three."""
    if num not in (1, 2):
        raise CuteError(f"num is {num}: it must be 1 or 2 matrices")
    lanes = make_layout(((16, 2), 16), stride=((16, 0), 1)) if num == 1 else make_layout((32, 16), stride=(16, 1))
    values, strides = _modes((4, 16), (2, 8), (num, 256))
    return CopyLayouts(32, 256 * num, lanes, make_layout(((4, 8), values), stride=((64, 1), strides)))


@cache
def stmatrix_m16n8_b8(num: int) -> CopyLayouts:
    """stmatrix of `num` (1, 2, 4) 16 by 8 matrices of bytes, transposed: element 128 * matrix + 16 * row + byte (PTX
    ISA, stmatrix, figure "fragment layout for one 16x8 matrix with 8-bit elements"). Lane t holds bytes t // 4 of rows
    2 * (t % 4) and the next, then t // 4 + 8 of them."""
    if num not in _ROW_OF_LANE:
        raise CuteError(f"num is {num}: it must be 1, 2 or 4 matrices")
    shape, stride = _ROW_OF_LANE[num]
    wide = tuple(2 * s for s in stride) if isinstance(stride, tuple) else 2 * stride
    values, strides = _modes((2, 16), (2, 8), (num, 128))
    registers = make_layout(((4, 8), values), stride=((32, 1), strides))
    return CopyLayouts(32, 128 * num, registers, make_layout((shape, 16), stride=(wide, 1)))


@cache
def ldmatrix_m16n8_b8(num: int) -> CopyLayouts:
    """ldmatrix of `num` (2, 4) 16 by 8 matrices of bytes, transposed, two from each 16 by 16: rows 4 i and 4 i + 1 of
    that are rows 2 i and 2 i + 1 of the first, the next two those of the second. Element 128 * matrix + 16 * row +
    byte; the registers are those of `stmatrix_m16n8_b8`."""
    if num not in (2, 4):
        raise CuteError(f"num is {num}: it must be 2 or 4 matrices")
    lanes = make_layout(((2, 2, 4, 2), 16), stride=((16, 128, 32, 256 if num == 4 else 0), 1))
    return CopyLayouts(32, 128 * num, lanes, stmatrix_m16n8_b8(num).src)
