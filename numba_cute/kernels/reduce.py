# SPDX-License-Identifier: Apache-2.0
"""Reductions over the lanes of a warp, the warps of a team, and the blocks of a cluster, of several numbers at once.

What is reduced is a tuple of Float32, and how is a traced function of two such tuples: `added`, `greatest`, or
`joined`, which joins the greatest value and the sum of exponentials of two parts of a row, as softmax needs.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import traced

__all__ = ["LEAST", "LOG2_E", "Meeting", "added", "exp", "greatest", "joined", "over_lanes"]

LOG2_E = 1.4426950408889634
LEAST = -3.4028234663852886e38
"""The least Float32."""


@traced
def added(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add the tuples `a` and `b` number by number."""
    return tuple(x + y for x, y in zip(a, b))


@traced
def greatest(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Take the greater of each two numbers of the tuples `a` and `b`."""
    return tuple(arch.fmax(x, y) for x, y in zip(a, b))


@traced
def exp(x: Any) -> Any:
    """Compute e ** `x`, of a Float32 or a vector of them, to some 2 ulp, and 0 of minus infinity."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


@traced
def joined(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Join two parts of a row: `a` and `b` are each its greatest value m, finite however small (at least LEAST), and
    the sum of exp(x - m)."""
    most = arch.fmax(a[0], b[0])
    return most, a[1] * exp(a[0] - most) + b[1] * exp(b[0] - most)


@traced
def over_lanes(values: tuple[Any, ...], op: Any, lanes: int = 32) -> tuple[Any, ...]:
    """Reduce `values`, a tuple of Float32, by `op` over each group of `lanes` neighbouring lanes (a static power of two
    up to 32); every lane gets its group's. All 32 lanes of the warp."""
    offset = lanes // 2
    while offset:
        values = op(values, tuple(arch.shuffle_sync_bfly(v, offset) for v in values))
        offset //= 2
    return values


TURNS = 8
"""Reductions of a cluster between two barriers of all its threads."""


@cute.struct
class Meeting:
    """The meeting place of the threads that share a row: `warps` warps of each of the `cluster` blocks of a cluster.

    A block has several teams of such warps, if it is not a cluster's. Warps leave their parts in this block's slots,
    and blocks send theirs to those of all peers (st.async), who wait for them at an mbarrier. Slots are used in turn,
    so that none is written to while anybody may read it: two halves within a block, whose warps meet at each reduction;
    TURNS in a cluster, whose blocks meet after so many.
    """

    warps: int
    cluster: int
    words: int  # of a reduction, at most
    team: cute.Int32
    own: cute.Pointer
    peers: Any
    barriers: Any
    turn: cute.Int32

    @staticmethod
    @traced
    def create(smem: Any, team: Any, *, teams: int, warps: int, cluster: int, words: int) -> Meeting:
        """Allocate the slots of teams that meet here. All threads; in a cluster `open` follows.

        smem: the block's SmemAllocator. team: this thread's, of the `teams` of its block (1 in a cluster). warps: of a
        team. cluster: blocks that share a row. words: how many numbers a reduction has at most, 1, 2 or 4.
        """
        places = 2 * words * warps
        own = smem.allocate_array(cute.Float32, places * teams, 16, name="results of warps") + team * places
        peers = barriers = None
        if cluster > 1:
            peers = smem.allocate_array(cute.Float32, TURNS * words * cluster, 16, name="results of blocks")
            barriers = smem.allocate_array(cute.Int64, TURNS, 8, name="blocks' results have come")
        return Meeting(warps, cluster, words, team, own, peers, barriers, cute.Int32(0))

    def open(self, thread):
        """Initialise the barriers of a cluster; `arch.cluster_arrive` and `cluster_wait` must follow. All threads.

        thread: the thread's index in its block."""
        if self.barriers is not None:
            if thread == 0:
                for i in range(TURNS):
                    arch.mbarrier_init(self.barriers + i, 1)
                arch.mbarrier_init_fence()

    def sync(self):
        """Wait for the team's other threads in this block, ordering their accesses to memory. All threads of it."""
        if cute.const_expr(self.warps == 1):
            arch.sync_warp()
        else:
            arch.barrier(1 + self.team, 32 * self.warps)

    def reduce(self, values, op, thread):
        """Reduce `values`, a tuple of 1, 2 or 4 Float32 that the lanes of a warp share already, by `op` over all warps
        of the team and of its peers in the cluster; all get the result, and have met.

        thread: the thread's index in its team. All threads of the team and its peers."""
        lane = thread % 32
        if cute.const_expr(self.warps > 1):
            half = _slots(self.own, self.turn & 1, self.words * self.warps)
            if lane == 0:
                _put(half, thread // 32, values)
            self.sync()
            values = _gathered(half, values, op, lane, self.warps)
        elif cute.const_expr(self.cluster > 1):
            self.sync()
        if self.peers is not None:
            values = self.among_blocks(values, op, thread)
        self.turn += 1
        return values

    def among_blocks(self, values, op, thread):
        """Reduce `values`, which the block's threads share, by `op` over the cluster's blocks. All threads of it."""
        at, lane = self.turn % TURNS, thread % 32
        if at == 0 and self.turn > 0:
            arch.cluster_arrive()
            arch.cluster_wait()
        slots, barrier = _slots(self.peers, at, self.words * self.cluster), self.barriers + at
        if thread == 0:
            arch.mbarrier_arrive_and_expect_tx(barrier, _bytes(values) * self.cluster)
        if thread < self.cluster:
            _send(slots, arch.block_idx_in_cluster(), values, barrier, thread)
        arch.mbarrier_wait(barrier, self.turn // TURNS & 1)
        return _gathered(slots, values, op, lane, self.cluster)


@traced
def _slots(pointer: Any, turn: Any, count: int) -> Any:
    """The `count` words of a turn."""
    return pointer + turn * count


@traced
def _bytes(values: Any) -> int:
    return 4 * len(values)


@traced
def _put(slots: Any, place: Any, values: Any) -> None:
    (slots + place * len(values)).store_vector(values)


@traced
def _send(slots: Any, place: Any, values: Any, barrier: Any, peer: Any) -> None:
    """Store values at their place in the shared memory of `peer`."""
    arch.store_async_dsmem(slots + place * len(values), values, barrier, peer)


@traced
def _gathered(slots: Any, values: Any, op: Any, lane: Any, places: int) -> Any:
    """The reduction of what lies at all places, 32 at most; of all lanes."""
    count = len(values)
    return over_lanes((slots + lane % places * count).load_vector(count), op, places)
