# SPDX-License-Identifier: Apache-2.0
"""Sums over the GPUs of a group, each of which has a part of K: every tile of a GPU's product of rows that another GPU
owns goes there as it is made; those of its own rows come between, when the others' parts of them are there, and these
are added to the sums before they are rounded and stored, in an order that is the same in every run.

Threads write to other GPUs, not TMA: its stores wait for NVLink, and the loads of the next tile would wait behind them.

Where all GPUs want all sums, either the owner stores its sums to all (two shots), or every tile goes to all GPUs, and
each adds up everything in the end (one shot: for little).
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch, pipeline
from numba_cute.seam import current, frozen, traced

from ..gemm.dense import at, tiles_of
from ..gemm.exchange import Exchange
from ..gemm.output import ROWS, of_warpgroup, partition
from .ring import SLOTS, Telling, Turns, around
from .sums import add_up, bring_sums, send_piece


@frozen
class Scatter(Exchange):
    """The sums over GPUs as the kernel has them. rank: this GPU's number in the group. parts: of the rows that are
    added up here, (rows, N, GPUs). tma_part, part: how the kernel loads pieces of these. tile_n: columns of a tile.
    everywhere: whether every tile goes to all GPUs, which all add up all rows. shared: memory of this GPU for all sums,
    (rows, N, owners), or None, where others put theirs; share: the place of this GPU's in that of each, Rows of (rows,
    N, GPUs). signals: of `Signals`. behind: as of `Turns`. The kernel's C is Rows of the place of this GPU's parts on
    each. Its `totals` are how it stores pieces of sums, (rows, N), or with `shared` (rows, N, owners); and their
    tensor, for what is added up, or brought, in the end."""

    rank: Any
    parts: Any
    tma_part: Any
    part: Any
    tile_n: int
    everywhere: bool
    shared: Any
    share: Any
    signals: Any
    behind: Any

    registers = 72, 216

    @property
    def sends(self) -> bool:
        """Say whether C's pieces go to other GPUs."""
        return True

    def schedule(self, tiles: Any, cluster: Any, swizzle: int, along_m: bool) -> Any:
        """Make the order of the tiles, in which this GPU's come between the others', a round behind."""
        if self.everywhere:
            return Exchange.schedule(self, tiles, cluster, swizzle, along_m)
        return Turns(tiles, cluster, swizzle, along_m, self.rank, self.behind)

    def begin(self, smem: Any, tidx: Any) -> Sending:
        """Find the launch's epoch. All threads, before they meet."""
        return Sending(self, self.signals.epoch())

    @property
    def others(self) -> int:
        """Count the other GPUs."""
        return int(self.signals.world) - 1

    @traced
    def owns(self, owner: Any) -> Any:
        """Say whether others' parts are added to a tile, once it is made. owner: of its rows."""
        return False if self.everywhere else current().compare("==", owner, self.rank)

    @traced
    def peer(self, hop: Any) -> Any:
        """Give the GPU that is so many behind this one."""
        return around(self.rank + hop, self.signals.world)

    @property
    def units(self) -> Any:
        """Give how many times 64 rows, and how many tiles of columns, are added up here."""
        rows, n = (cute.Int32(x) for x in self.parts.shape[:2])
        return (rows + (ROWS - 1)) // ROWS, (n + (self.tile_n - 1)) // self.tile_n

    def slot(self, row: Any, column: Any) -> Any:
        """Give the slot of signals of a unit's parts."""
        return SLOTS + row * self.units[1] + column

    def shared_slot(self, row: Any, column: Any) -> Any:
        """Give the slot of signals of a unit's sums."""
        rows, columns = self.units
        return self.slot(row, column) + rows * columns

    @traced
    def slot_of(self, state: Any, piece: int, slots: int) -> Any:
        """Give the slot of shared memory in which a piece of sums is put. state: of the warpgroup that puts it."""
        return piece % slots if self.others == 1 else state.index // 2


@cute.struct
class Sending(Telling):
    """A block's part in it."""

    # ------------------------------------------------------------------ the warps that store
    def store_or_talk(self, warp, scheduler, pieces, sC, copies, own_pieces):
        """Do what the second to fourth warp of a block do: two store a warpgroup's pieces each, one talks. All as of
        `store_tiles`. sC: the pieces of both groups."""
        if warp < 3:
            group = cute.Int32(warp - 1)
            self.store_tiles(group, scheduler, pieces, of_warpgroup(sC, group), copies, own_pieces)
        else:
            self.talk()

    def store_tiles(self, group, scheduler, pieces, shared, copies, own_pieces):
        """Store all tiles of this block. The warp that stores a warpgroup's pieces. group: which warpgroup. pieces: the
        pipeline of both. shared: the group's, (rows, columns, slots). copies: Rows of the parts on all GPUs; TMA's
        atom for sums, and where it stores. own_pieces: of a tile."""
        slots = cute.size(shared, mode=[2])
        lag = 1 if slots > 1 else 0  # a slot is filled again while the next one is stored
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2 * slots)
        if group == 1:
            state.advance()
        work = scheduler.get_current_work()
        self.fill(group, work.tile_idx, pieces, shared, 0, slots)
        self.await_room()
        while work.is_valid_tile:
            m, n, owner = work.tile_idx
            turns = cute.Int32(self.of.others if self.of.owns(owner) else 1)
            count = cute.Int32(own_pieces * turns)
            for turn in range(cute.Int32(0), count):
                pieces.producer_acquire(state)  # what the consumers made is there, or read
                state.advance()
                state.advance()
                if turn % turns == turns - 1:
                    place = (cute.Int32(2 * m + group), cute.Int32(own_pieces * n + turn // turns), cute.Int32(owner))
                    self.store(copies, shared, turn % slots, place, scheduler)
                arch.cp_async_bulk_commit_group()
                if turn >= lag and turn - lag + slots < count:
                    arch.cp_async_bulk_wait_group(lag, read=True)
                    self.fill(group, work.tile_idx, pieces, shared, turn - lag + slots, turn - lag + slots + 1)
            unit = (cute.Int32(2 * m + group), cute.Int32(n), cute.Int32(owner))
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
            arch.cp_async_bulk_wait_group(0, read=True)
            adds = work.is_valid_tile and self.of.owns(work.tile_idx[2])
            if work.is_valid_tile and not adds:
                self.fill(group, work.tile_idx, pieces, shared, 0, slots)
            self.sent(unit)
            if adds:  # it waits for others, who may wait for what was sent
                self.fill(group, work.tile_idx, pieces, shared, 0, slots)

    def fill(self, group, tile, pieces, shared, first, end):
        """Bring the parts that are added to what is made, to the slots of turns from `first` up to `end`, which are
        then full. A whole warp. tile: its place. Others as of `store_tiles`."""
        m, n, owner = tile
        slots = cute.size(shared, mode=[2])
        for turn in range(cute.Int32(first), cute.Int32(end)):
            slot = cute.Int32(2 * (turn % slots) + group)
            if cute.const_expr(not self.of.everywhere):
                if self.of.owns(owner):
                    self.load_part((cute.Int32(2 * m + group), cute.Int32(n)), pieces, shared, turn)
            arch.sync_warp()
            pieces.sync_object_full.arrive(slot)

    def load_part(self, unit, pieces, shared, turn):
        """Begin to load another GPU's part of a piece, once it has come. A whole warp. unit: its row and column. turn:
        which of the unit's pieces and GPUs."""
        (row, column), others = unit, self.of.others
        slots, wide = cute.size(shared, mode=[2]), cute.size(shared, mode=[1])
        of_unit = self.of.tile_n // wide
        piece, source = turn // others, self.of.peer(others - turn % others)  # the first that came is the first
        if piece == 0:
            self.await_part(row, column, source)
        slot, nbytes = turn % slots, ROWS * wide * shared.element_type.width // 8
        barrier = pieces.sync_object_full.get_barrier(2 * slot + row % 2)
        if arch.elect_one():
            arch.mbarrier_expect_tx(barrier, nbytes)
        there, parts = partition(self.of.tma_part, shared, tiles_of(self.of.part, (ROWS, wide)))
        cute.copy(
            self.of.tma_part, at(parts, row, of_unit * column + piece, source), there[None, slot], tma_bar_ptr=barrier
        )

    def await_part(self, row, column, source):
        """Wait until a GPU's part of a unit is there. A whole warp, before it loads it."""
        if row < self.of.units[0] and arch.lane_idx() == 0:
            self.of.signals.wait(source, self.of.slot(row, column), self.epoch)
        arch.sync_warp()
        arch.fence_proxy("async")

    def store(self, copies, shared, slot, place, scheduler):
        """Store a piece to where it goes. A whole warp. place: its row and column, in pieces, and its rows'
        owner. scheduler: whose tile it is of."""
        (row, column, owner), (sent, tma_total, totals) = place, copies
        wide, piece = cute.size(shared, mode=[1]), shared[None, None, slot]
        m, n = cute.Int32(ROWS * row), cute.Int32(wide * column)
        following = scheduler.current_work_linear_idx + scheduler.num_persistent_clusters
        more = following < scheduler.params.num_clusters
        if cute.const_expr(self.of.everywhere):
            for hop in cute.range(1, self.of.signals.world + 1, unroll=1):  # this GPU is the last
                send_piece(sent, piece, m, n, self.of.peer(hop), more)
        elif owner != self.of.rank:
            send_piece(sent, piece, m, n, owner, more)
        else:
            own, total = partition(tma_total, shared, tiles_of(totals, (ROWS, wide)))
            cute.copy(tma_total, own[None, slot], at(total, row, column, owner))
            if cute.const_expr(self.of.shared is not None):
                for hop in cute.range(1, self.of.signals.world, unroll=1):
                    send_piece(self.of.share, piece, m, n, self.of.peer(hop), more)

    def sent(self, unit):
        """Say that all pieces of a unit have been sent. The warp that sent them. unit: its row and column, and whose
        rows these are."""
        row, column, owner = unit
        if row < self.of.units[0] and arch.elect_one():
            if cute.const_expr(self.of.everywhere):
                for hop in cute.range(1, self.of.signals.world + 1, unroll=1):
                    self.of.signals.put(self.of.peer(hop), self.of.slot(row, column), self.epoch)
            elif owner != self.of.rank:
                self.of.signals.put(owner, self.of.slot(row, column), self.epoch)
            elif cute.const_expr(self.of.shared is not None):
                for hop in cute.range(1, self.of.signals.world, unroll=1):
                    self.of.signals.put(self.of.peer(hop), self.of.shared_slot(row, column), self.epoch)

    # ------------------------------------------------------------------ the warps that multiply
    def add_parts(self, sums, owner, pieces, state, parts):
        """Add the others' parts of a piece, if it is of this GPU's rows. A whole warpgroup, whose turn of `pieces` is
        full. sums: this thread's. parts: its elements of all slots."""
        if cute.const_expr(not self.of.everywhere):
            if self.of.owns(owner):
                self.add(sums, parts, state.index // 2)
                for _ in range(self.of.others - 1):
                    arch.sync_warp()
                    pieces.consumer_release(state)
                    state.advance()
                    state.advance()
                    pieces.consumer_wait(state)
                    self.add(sums, parts, state.index // 2)

    def add(self, sums, parts, slot):
        """Add one part of a piece."""
        part = parts[None, 0, 0, slot].load().to(cute.Float32)
        sums.store(sums.load() + part.reshape(cute.size(sums)))

    def finish(self, totals, thread):
        """Add up, or bring, what is left when this block's tiles are done. All threads that multiply. totals: the
        tensor. thread: which one of them."""
        if cute.const_expr(self.of.everywhere):
            add_up(self.of, totals, self.epoch, thread)
        elif cute.const_expr(self.of.shared is not None):
            bring_sums(self.of, totals, self.epoch, thread)
