# SPDX-License-Identifier: Apache-2.0
"""Store a tile of C from its warpgroups: from registers to shared memory, piece by piece, and from there by TMA.

A piece has the 64 rows of a warpgroup, and as many columns as shared memory swizzles together. It lies in one of a few
slots of shared memory, from which it is read while the next ones are made.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.nvgpu import cpasync
from numba_cute.seam import traced

ROWS, WARP_ROWS = 64, 16  # of a piece, and those of them that a warp has made


@traced
def partition(tma: Any, shared: Any, there: Any, cta: Any = 0, ctas: int = 1) -> Any:
    """Give what TMA copies of tiles: in shared memory, and of the coordinates `there`.

    tma: the atom. shared, there: tensors whose first two modes are a tile. cta: this one among the `ctas` that share
    each tile: a copy of its moves a part, to or from all of them."""
    tile, whole = cute.group_modes(shared, 0, 2), cute.group_modes(there, 0, 2)
    return cpasync.tma_partition(tma, cta, cute.make_layout(ctas), tile, whole)


@traced
def of_warpgroup(sC: Any, group: Any) -> Any:
    """Give a warpgroup's pieces in shared memory, (rows, columns, slots). sC: of all. group: which warpgroup."""
    return cute.local_tile(sC, (ROWS, cute.size(sC, mode=[1])), (group, 0))


@cute.struct
class Pieces:
    """A thread's part of pieces, and of the slots that they are put in. Make one with `create`."""

    copy: Any
    shared: Any
    held: Any

    @staticmethod
    @traced
    def create(store: Any, tiled_mma: Any, sC: Any, thread: Any) -> Pieces:
        """Find this thread's part. store: the copy atom that takes what `tiled_mma` leaves in registers to `sC`, (rows,
        columns, slots), swizzled. thread: the thread's number among those of `tiled_mma`."""
        # Of single values the smallest tile would take rows before columns, and not as the multiply leaves them.
        single = cute.size(store.layout_src_tv, mode=[1]) == 1
        tiles = cute.make_tiled_copy_C if single else cute.make_tiled_copy_C_atom
        copy = cute.make_tiled_copy_S(store, tiles(store, tiled_mma))
        own = copy.get_slice(thread)
        held = cute.make_rmem_tensor(cute.shape(own.partition_S(sC)[None, None, None, 0]), sC.element_type)
        return Pieces(copy, own.partition_D(sC), held)

    @traced
    def hold(self, values: Any) -> None:
        """Round this thread's values of a piece to C's type. values: a vector, in the order of the multiply's sums."""
        self.held.store(values.to(self.held.element_type))

    @traced
    def put(self, slot: Any, by_tma: bool = True) -> None:
        """Write what is held to a slot, where TMA sees it, or with `by_tma=False` threads do, once the threads have
        met."""
        cute.copy(self.copy, self.held, self.shared[None, None, None, slot])
        if by_tma:
            arch.fence_proxy("async.shared", space="cta")


@cute.struct
class Stores:
    """The pieces of a warpgroup whose own first warp stores them. Make one with `create`."""

    pieces: Pieces
    ring: Any
    together: Any
    issues: Any  # whether this warp stores

    @staticmethod
    @traced
    def create(store: Any, tiled_mma: Any, sC: Any, thread: Any, group: Any, issues: Any) -> Stores:
        """Find this thread's part. store, tiled_mma, sC, thread: as of `Pieces.create`. group: the warpgroup. issues:
        whether this warp stores, one of the four."""
        slots = pipeline.PipelineTmaStore.create(
            num_stages=cute.size(sC, mode=[2]), producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        )
        pieces = Pieces.create(store, tiled_mma, sC, thread)
        return Stores(pieces, slots, pipeline.NamedBarrier(1 + group, 128), issues)

    def put(self, values, slot, tma, shared, there):
        """Store a piece. The whole warpgroup.

        values: this thread's, as of `Pieces.hold`. slot: the next, in turn. tma, shared, there: TMA's atom, and what it
        copies from and to, as of `partition`, of this piece."""
        self.pieces.hold(values)
        if self.issues:
            self.ring.producer_acquire()  # the slot has been read by the store before the last
        self.together.arrive_and_wait()
        self.pieces.put(slot)
        self.together.arrive_and_wait()
        if self.issues:
            cute.copy(tma, shared, there)
            self.ring.producer_commit()

    def put_rows(self, values, slot, rows, shared, row, column):
        """Store a piece by threads, each warp the 16 rows that it has made. The whole warpgroup.

        values, slot: as of `put`. rows: a Rows of what there is. shared: this warp's rows of the slot. row, column:
        where these begin in C."""
        self.pieces.hold(values)
        self.together.arrive_and_wait()  # all have read what the epilogue takes, and stored what lay in the slot
        self.pieces.put(slot, False)
        arch.sync_warp()
        rows.store(shared, row, column, 0, arch.lane_idx())

    def tail(self):
        """Wait until all pieces have been read. The whole warpgroup, at the end."""
        self.ring.producer_tail()
