# SPDX-License-Identifier: Apache-2.0
"""Use tensor memory in attention on Blackwell: multiply into it, and take rows of sums from it and put them there as
wgmma would have left them, so that softmax, masks and results are the same functions as on Hopper.

A warp reaches 32 lanes, two blocks of 16 rows: of each a thread has two rows, its own and the eighth after, and two of
every eight columns, as of a wgmma accumulator.
"""

from typing import Any

import numba_cute as cute
from numba_cute.nvgpu import tcgen05
from numba_cute.seam import traced

LANES = 128


@traced
def multiply(tiled_mma: Any, acc: Any, a: Any, b: Any, adds: Any) -> None:
    """Issue acc (+)= a @ b.T over all of K. a, b: fragments, (V, M or N, K). adds: whether to what is in `acc`."""
    for k in range(cute.size(a, mode=[2])):
        step = tiled_mma.set(tcgen05.Field.ACCUMULATE, adds if k == 0 else True)
        cute.gemm(step, acc, a[None, None, k], b[None, None, k], acc)


@cute.struct
class Rows:
    """A thread's part of a tile of sums in tensor memory. Make one with `create`.

    `there` is (values, 2 blocks of 16 rows, 1, 1, pieces); a piece has some of the columns.
    """

    load: Any
    store: Any
    source: Any
    target: Any

    @staticmethod
    @traced
    def create(sums: Any, columns: int, thread: Any) -> Any:
        """Find this thread's part. sums: Float32, (128, all columns) in tensor memory. columns: of a piece. thread: of
        a warpgroup, each of whose warps reaches its 32 lanes."""
        pieces = cute.flat_divide(sums, (LANES, columns))
        of, repeat = pieces[None, None, 0, 0], tcgen05.Repetition(columns // 8)
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld16x256bOp(repeat), cute.Float32), of)
        store = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St16x256bOp(repeat), cute.Float32), of)
        return Rows(
            load, store, load.get_slice(thread).partition_S(pieces), store.get_slice(thread).partition_D(pieces)
        )

    @traced
    def take(self, piece: Any, block: int, values: Any) -> None:
        """Begin to load a piece of one block of rows to `values`, of half as many elements as it has columns; they are
        there after `arch.fence_view_async_tmem_load`. The whole warp."""
        cute.copy(self.load, self.source[None, block, 0, 0, piece], values)

    @traced
    def put(self, piece: Any, block: int, values: Any) -> None:
        """Begin to store what `take` gave; it is there after `arch.fence_view_async_tmem_store`. The whole warp."""
        cute.copy(self.store, values, self.target[None, block, 0, 0, piece])


@cute.struct
class Words:
    """A thread's part of an operand of 16 bits in tensor memory, two elements to a word. Make one with `create`."""

    store: Any
    target: Any

    @staticmethod
    @traced
    def create(operand: Any, thread: Any) -> Any:
        """Find this thread's part. operand: (128, columns) in tensor memory. thread: as of `Rows.create`."""
        repeat = tcgen05.Repetition(cute.size(operand, mode=[1]) // 8)
        atom = cute.make_copy_atom(tcgen05.St16x128bOp(repeat), operand.element_type)
        store = tcgen05.make_tmem_copy(atom, operand)
        return Words(store, store.get_slice(thread).partition_D(operand))

    @traced
    def put(self, block: int, values: Any) -> None:
        """Begin to store one block of rows, which lie as in `Rows`, rounded. The whole warp."""
        cute.copy(self.store, values, self.target[None, block, 0])
