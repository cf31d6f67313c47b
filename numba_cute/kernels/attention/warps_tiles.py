# SPDX-License-Identifier: Apache-2.0
"""Find and move tiles by warps: where a sequence's rows are, how they come to shared memory, and sums as operands."""

from typing import Any

from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.seam import traced
from numba_cute.tilelang.cpasync import cp_async_shared_global

from .warps_form import VECTOR


@cuda.jit
def sequence(cu, used, b, rows):
    """Give the first row of sequence b, and its number of rows: `rows`, or what `cu` and `used` say."""
    first = cute.Int32(0)
    if cute.const_expr(cu is not None):
        first = cute.Int32(cu[b])
        rows = cute.Int32(cu[b + 1] - first)
    if cute.const_expr(used is not None):
        rows = cute.Int32(used[b])
    return first, cute.Int32(rows)


@traced
def bring(target: Any, source: Any, i: int, column: Any, there: Any) -> None:
    """Begin to copy this thread's vectors of its i-th row to shared memory; zeros where the row is not there. target:
    its part, (vector, rows, columns). source: the row. column: this thread's first one."""
    nbytes, parts = cute.where(there, cute.Int32(2 * VECTOR), cute.Int32(0)), cute.size(target, mode=[2])
    for j in range(parts):
        at = source.iterator + (column + cute.size(source) // parts * j)
        cp_async_shared_global(target[None, i, j], at, 2 * VECTOR, cpasync.LoadCacheMode.GLOBAL, src_size=nbytes)


@traced
def turned(tensor: Any) -> Any:
    """View (rows, columns) as (columns, rows)."""
    return cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=[1, 0]))


@traced
def sums_of(rows: int, columns: int) -> Any:
    """Make an accumulator of a warp's rows, each 16 of which are as a wgmma accumulator, one behind the other."""
    layout = cute.make_layout((4, rows // 16, columns // 8), stride=(1, columns // 2, 4))
    return cute.make_rmem_tensor(layout, cute.Float32)


@traced
def block_of(acc: Any, i: int) -> Any:
    """Give the i-th 16 rows of an accumulator."""
    each = cute.size(acc) // cute.size(acc, mode=[1])
    return cute.make_tensor(acc.iterator + each * i, cute.make_layout(each))


@traced
def as_operand(acc: Any, dtype: Any) -> Any:
    """Round an accumulator to an operand A of `dtype`, whose columns are K: a thread has the same elements of both."""
    _, blocks, eights = acc.shape
    layout = cute.make_layout(((2, 2, 2), blocks, eights // 2), stride=((1, 2, 4), 4 * eights, 8))
    made = cute.make_rmem_tensor(layout, dtype)
    made.store(cute.make_tensor(acc.iterator, layout).load().to(dtype))
    return made
