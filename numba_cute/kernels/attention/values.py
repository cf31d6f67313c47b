# SPDX-License-Identifier: Apache-2.0
"""Values of 8 bits as tensor cores take them: along keys, in the order in which P lies in registers.

wgmma reads operands of 8 bits along K alone, which are V's keys. A thread's P = softmax(S) are then four keys side by
side, where S gave it two and two, eight apart: of every 16 keys, V's are put in that order, and P need not move.
"""

import functools

from numba import cuda

import numba_cute as cute
from numba_cute import arch

THREADS = 128
GROUP = 16  # keys that are put in order
KEYS = 64  # of a thread, of four columns


def turned_shape(v):
    """The shape of `v`, (batch, keys, KV heads, d), along keys: (batch, KV heads, d, keys), of whole groups of keys."""
    batch, keys, heads, dv = v.shape
    return batch, heads, dv, -(-keys // GROUP) * GROUP


@cuda.jit
def byte_of_each(words, first, second, third, fourth, byte):
    """Put a byte of each of four words side by side."""
    low = arch.prmt(words[first], words[second], byte | (4 + byte) << 4)
    high = arch.prmt(words[third], words[fourth], byte | (4 + byte) << 4)
    return arch.prmt(low, high, 0x5410)


@functools.cache
def make_turn(dv):
    """The kernel that turns V. Its grid: (`blocks` of the keys, KV heads, batch)."""
    across = dv // 4  # threads of a row: each has four columns
    teams = THREADS // across

    @cuda.jit(launch_bounds=THREADS)
    def turn(v, turned, used, keys):
        tidx, _, _ = arch.thread_idx()
        block, head, b = arch.block_idx()
        column, first = tidx % across * 4, (cute.Int32(block) * teams + tidx // across) * KEYS
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()
        if cute.const_expr(used is not None):
            keys = min(keys, used[b])  # what lies behind is 0, and no NaN
        words = cute.make_rmem_tensor(KEYS, cute.Uint32)
        for i in cute.range_constexpr(KEYS):
            words[i] = 0
            if first + i < keys:
                words[i] = arch.load(v[first + i, None, head, b].iterator + column, cute.Uint32)
        for i in cute.range_constexpr(KEYS // GROUP):
            if first + i * GROUP < turned.shape[1]:
                for c in cute.range_constexpr(4):
                    found = cute.make_rmem_tensor(4, cute.Uint32)
                    for t in cute.range_constexpr(4):
                        at = i * GROUP + 2 * t
                        found[t] = byte_of_each(words, at, at + 1, at + 8, at + 9, c)
                    row = turned[column + c, None, head, b].iterator + (first + i * GROUP)
                    arch.store(cute.recast_ptr(row, dtype=cute.Uint32), (found[0], found[1], found[2], found[3]))

    return turn


def blocks(v):
    """Return the number of CTAs that the keys of `v` take."""
    each = KEYS * (THREADS // (v.shape[-1] // 4))
    return -(-turned_shape(v)[-1] // each)
