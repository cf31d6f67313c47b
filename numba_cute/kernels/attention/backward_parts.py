# SPDX-License-Identifier: Apache-2.0
"""Steps before and after attention's backward kernel: numbers of each query, and dQ rounded from its sums.

Before: rowsum(dO * O), and the log of the row's sum of exponentials to the base of 2; the sums of dQ become 0.
After: the sums of dQ, which lie as the threads of a kernel held them, are scaled, rounded and put in their places.
"""

from __future__ import annotations

import functools
import math

from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils

THREADS = 256
LOG2_E = math.log2(math.e)
VECTOR = 8  # elements of 16 bits that a thread takes at once


def vector_at(x, dtype, row, head, batch, strides, column):
    """The elements of a row that a thread takes."""
    at = cute.Int64(row) * strides[1] + cute.Int64(head) * strides[2] + cute.Int64(batch) * strides[0] + column
    held = cute.make_rmem_tensor(VECTOR, dtype)
    cute.autovec_copy(cute.make_tensor(x.iterator + cute.assume(at, divby=VECTOR), cute.make_layout(VECTOR)), held)
    return held


@functools.cache
def make_before(dtype, d, queries, overlaps=True):
    """The kernel that comes first, for `d` columns of O. Its grid: (tiles of so many queries, heads, batches). It gets
    no sums of dQ, and no number of tiles drawn, where there are none; dlse, the gradient of the logs, or None; and cu,
    where sequences have their own lengths, the first row of each. overlaps: whether the next kernel may begin while it
    runs (sm_90 on)."""
    across = d // VECTOR  # threads of a row
    bits = across.bit_length() - 1

    @cuda.jit(launch_bounds=THREADS)
    def before(o, do, lse, logs, dot, sums, drawn, rows, o_strides, do_strides, dlse, cu):
        tidx, _, _ = arch.thread_idx()
        tile, head, batch = arch.block_idx()
        tiles, heads, _ = arch.grid_dim()
        if cute.const_expr(overlaps):
            arch.griddepcontrol_launch_dependents()
        place = (batch * heads + head) * tiles + tile
        if cute.const_expr(sums is not None):
            if cute.const_expr(drawn is not None):
                if tidx + tile + head + batch == 0:
                    drawn[0] = 0
            zeros = cute.make_rmem_tensor(4, cute.Float32)
            zeros.fill(0.0)
            for i in range(tidx, queries * d // 4, THREADS):
                at = cute.assume(cute.Int64(place) * (queries * d) + 4 * i, divby=4)
                cute.autovec_copy(zeros, cute.make_tensor(sums.iterator + at, cute.make_layout(4)))
        column = tidx % across * VECTOR
        first, of = cute.Int32(0), cute.Int32(batch)
        if cute.const_expr(cu is not None):
            first, of = cute.Int32(cu[batch]), cute.Int32(0)
            rows = cute.Int32(cu[batch + 1] - first)
        for step in cute.range_constexpr((queries * across + THREADS - 1) // THREADS):
            row = step * (THREADS // across) + tidx // across  # whole warps stay together: they add up by shuffles
            query = tile * queries + row
            total = cute.Float32(0)
            if row < queries and query < rows:
                x = vector_at(o, dtype, first + query, head, of, o_strides, column)
                y = vector_at(do, dtype, first + query, head, of, do_strides, column)
                total = (x.load().to(cute.Float32) * y.load().to(cute.Float32)).reduce(cute.ReductionOp.ADD, 0.0)
            for bit in cute.range_constexpr(bits):
                total += arch.shuffle_sync_bfly(total, 1 << bit)
            if row < queries and column == 0:
                seen = query < rows
                log = lse[of, head, first + query] if seen else -math.inf
                if cute.const_expr(dlse is not None):
                    if seen:
                        total -= dlse[of, head, first + query]
                dot[place * queries + row] = total
                # a row that sees no key has no exponentials: 2 ** (s - inf) is 0
                logs[place * queries + row] = math.inf if log == -math.inf else log * cute.Float32(LOG2_E)

    return before


@functools.cache
def make_after(dtype, d, queries, lies):
    """The kernel that comes last. Its grid: (tiles of so many queries, heads, batches). lies: where the sums of a tile
    are, a layout of (d, queries) of which four that lie together are a thread's. The kernel gets cu as that of
    `make_before` does."""
    across = d // VECTOR
    pitch = d + VECTOR  # elements from row to row in shared memory, so that threads of a warp meet different banks
    rounds = queries * d // 4 // THREADS  # in each of which a thread has four
    of_threads = cute.make_layout((4, THREADS, rounds))
    placed = cute.composition(
        cute.composition(cute.make_layout((d, queries), stride=(1, pitch)), cute.right_inverse(lies)), of_threads
    )

    @cuda.jit(launch_bounds=THREADS)
    def after(sums, dq, rows, strides, scale, cu):
        tidx, _, _ = arch.thread_idx()
        tile, head, batch = arch.block_idx()
        tiles, heads, _ = arch.grid_dim()
        smem = utils.SmemAllocator()
        rounded = smem.allocate_array(dtype, queries * pitch, name="rounded", byte_alignment=16)
        turned = cute.make_tensor(rounded, placed)  # in the order of the sums
        place = (batch * heads + head) * tiles + tile
        arch.griddepcontrol_wait()
        held = cute.make_rmem_tensor(4, cute.Float32)
        for j in cute.range_constexpr(rounds):
            at = cute.assume(cute.Int64(place) * (queries * d) + 4 * (j * THREADS + tidx), divby=4)
            cute.autovec_copy(cute.make_tensor(sums.iterator + at, cute.make_layout(4)), held)
            for e in cute.range_constexpr(4):
                turned[e, tidx, j] = dtype(held[e] * scale)
        arch.sync_threads()
        row_of, of = cute.Int32(0), cute.Int32(batch)
        if cute.const_expr(cu is not None):
            row_of, of = cute.Int32(cu[batch]), cute.Int32(0)
            rows = cute.Int32(cu[batch + 1] - row_of)
        out = cute.make_rmem_tensor(VECTOR, dtype)
        x = tidx % across * VECTOR
        for row in range(tidx // across, queries, THREADS // across):
            query = tile * queries + row
            if query < rows:
                source = cute.assume(row * pitch + x, divby=VECTOR)
                cute.autovec_copy(cute.make_tensor(rounded + source, cute.make_layout(VECTOR)), out)
                at = (
                    cute.Int64(row_of + query) * strides[1]
                    + cute.Int64(head) * strides[2]
                    + cute.Int64(of) * strides[0]
                    + x
                )
                to = cute.make_tensor(dq.iterator + cute.assume(at, divby=VECTOR), cute.make_layout(VECTOR))
                cute.autovec_copy(out, to)

    return after
