# SPDX-License-Identifier: Apache-2.0
"""Spread kernels of rows over the GPU, all in the same way.

A row is read once, in vectors of 16 bytes, and stays in registers. `threads` threads share it: a part of a warp, one
warp, several, or those of the blocks of a cluster; they are a *team*, and a block has one or more. A team takes row
after row. With `stages` = 0 its threads load from global memory to registers; else a leader keeps that many rows ahead
in flight to shared memory (cp.async.bulk), so that memory never waits for a reduction.

Thread t holds the vectors t, t + threads, t + 2 threads, … of its block's part of the row. Where these do not divide
the row, vectors beyond its end are not there: they hold what a kernel says, 0 or the least number.
"""

from __future__ import annotations

from typing import Any

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels.reduce import Meeting, over_lanes
from numba_cute.nvgpu.cpasync import CopyBulkG2SOp
from numba_cute.seam import frozen, traced

__all__ = ["CHUNK", "Spread", "Stream", "Team", "row_count", "optional", "rows_in", "total"]

CHUNK = 2
"""Vectors at a time, of a row that lies in shared or global memory."""


@frozen
class Spread:
    """The spread of a row of `length` elements: all static.

    vector: elements of one access. threads: that share a row in one block, a power of two. vectors: of each thread.
    teams: rows of a block at a time. cluster: blocks that share a row. stages: rows ahead of each team.
    again: whether a team has one row alone, which it reads from shared memory once more after the reduction, instead of
    keeping it in registers: more blocks then share an SM. share: vectors of a block in a cluster, where its
    threads could have more; 0 for as many as they could. alone: whether there are as many teams as rows. far: whether
    rows lie neither in registers nor in shared memory, but are read from global memory each time, CHUNK vectors at a
    time, in loops at run time; then vectors are whole CHUNKs.
    """

    length: int
    vector: int
    threads: int
    vectors: int
    teams: int
    cluster: int = 1
    stages: int = 0
    again: bool = False
    share: int = 0
    alone: bool = False
    far: bool = False

    @property
    def warps(self) -> int:
        """Warps of a team in one block."""
        return max(1, self.threads // 32)

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.teams

    @property
    def part(self) -> int:
        """Elements of a row that a block has, but for the last one."""
        return self.vector * (self.share or self.threads * self.vectors)

    @property
    def last(self) -> int:
        """Elements of a row that its last block has."""
        return self.length - self.part * (self.cluster - 1)

    @property
    def held(self) -> int:
        """Elements of a row that a thread has at most."""
        return self.vector * self.vectors

    @property
    def each(self) -> int:
        """Vectors that a thread takes at a time where it goes through a row in a loop: they divide its own."""
        return 2 - self.vectors % 2

    def chunk(self, first: Any) -> int:
        """Count the vectors from `first` on of which a thread goes through a row: CHUNK, or the last of those that are
        known."""
        return CHUNK if self.far else min(CHUNK, self.vectors - first)

    def holds(self, v: Any, row: Any) -> bool:
        """Say whether vector `v` of all threads is there, in all blocks and, unless `row` is None, in all rows: as far
        as it is known before the kernel runs. Vectors of 1 or 2 elements, of which a thread has many, are told of
        alone: a condition of its own for each took more registers than their elements."""
        if self.vector > 2 or self.far or not cute.is_static(v) or self.threads < 32 and row is not None:
            return False
        return bool((v + 1) * self.threads * self.vector <= min(self.part, self.last))

    @property
    def whole(self) -> bool:
        """Say whether all vectors of all threads are there."""
        full = self.vector * self.threads * self.vectors
        return full == self.part == self.last and self.threads >= 32


@cute.struct
class Team:
    """The threads that share a row, seen by one of them. Make one with `create`."""

    spread: Spread
    smem: Any
    meeting: Meeting
    rows: cute.Int32  # of the matrix
    team: cute.Int32  # in the block
    thread: cute.Int32  # in the team
    rank: Any  # of the block in its cluster
    first: cute.Int32  # row of the team
    step: cute.Int32  # from each of the team's rows to the next
    end: cute.Int32  # of its rows: that of its warp's rows, for a warp stays together

    @staticmethod
    @traced
    def create(spread: Spread, rows: Any, words: int) -> Team:
        """Find this thread's place among teams that take `rows` rows, and prepare reductions of `words` numbers at
        most. All threads; `begin` follows."""
        tidx, _, _ = arch.thread_idx()
        bidx, _, _ = arch.block_idx()
        blocks, _, _ = arch.grid_dim()
        smem = cute.utils.SmemAllocator()
        team, threads, cluster = tidx // spread.threads, spread.threads, spread.cluster
        team = arch.make_warp_uniform(team) if threads >= 32 else team  # or each shuffle stands twice in the code
        beside = team % (32 // threads) if threads < 32 else 0  # teams before this one in its warp
        meeting = Meeting.create(
            smem, 0 if spread.warps == 1 else team, teams=1 if spread.warps == 1 else spread.teams, warps=spread.warps,
            cluster=cluster, words=words,
        )  # fmt: skip
        rank = arch.block_idx_in_cluster() if cluster > 1 else 0
        first, step = bidx // cluster * spread.teams + team, blocks // cluster * spread.teams
        return Team(spread, smem, meeting, rows, team, tidx % threads, rank, first, step, rows + beside)

    def begin(self):
        """Wait until all threads of the block, or cluster, are here, and have prepared their barriers. All of them."""
        self.meeting.open(self.thread)
        if cute.const_expr(self.spread.cluster > 1):
            arch.cluster_arrive()
            arch.cluster_wait()
        elif cute.const_expr(self.spread.stages > 0):
            arch.sync_threads()

    def following(self, row):
        """Give the team's row that follows `row`: `end` or more if there is none."""
        if cute.const_expr(self.spread.alone):
            return self.end
        return cute.Int32(row + self.step)

    def reduce(self, values, op):
        """Reduce a tuple of Float32 by `op` over the row's threads; all get the result. All threads of the team."""
        return self.meeting.reduce(over_lanes(values, op, min(self.spread.threads, 32)), op, self.thread)

    @traced
    def mean(self, sum: Any) -> Any:
        """Divide `sum`, a Float32, by the elements of a row."""
        return sum * (1.0 / self.spread.length)

    def there(self, row):
        """Count the vectors of this block's part of `row`; None is a line beside the matrix, which is there."""
        s = self.spread
        if cute.const_expr(s.cluster > 1):
            return s.last // s.vector if self.rank == s.cluster - 1 else s.part // s.vector
        if cute.const_expr(s.threads < 32 and row is not None):
            return s.last // s.vector if row < self.rows else 0
        return s.last // s.vector

    def read(self, pointer, row, absent):
        """Load what this thread has of a row's part at `pointer` as a vector of Float32; what is not there is
        `absent`."""
        return self.read_some(pointer, row, absent, 0, self.spread.vectors)

    def read_some(self, pointer, row, absent, first, count):
        """Load `count` of what `read` loads, from vector `first` on: both static."""
        s = self.spread
        mine = _some(s, pointer, self.thread, first, count)
        regs = cute.make_fragment_like(mine)
        if cute.const_expr(s.whole):
            cute.autovec_copy(mine, regs)
        else:
            regs.fill(absent)
            there = self.there(row)
            for v in cute.range_constexpr(count):
                if cute.const_expr(s.holds(first + v, row)) or self.thread + (first + v) * s.threads < there:
                    cute.autovec_copy(mine[None, v], regs[None, v])
        return regs.load().to(cute.Float32)

    def read_line(self, line, row):
        """Load what this thread has of `line`, an array (N,) or None, as it stands beside `row`."""
        return None if line is None else self.read(self.at(cute.make_tensor(line), None), row, 0)

    def hold(self, line):
        """Copy what this thread has of `line`, an array (N,) or None, to shared memory, where it alone reads it again:
        the pointer for `read`. For teams that go through the matrix. All threads."""
        return None if line is None else self.copied(self.part_of(line), cute.make_tensor(line))

    @traced
    def part_of(self, line: Any) -> Any:
        """Allocate shared memory for this block's part of `line`, for each team."""
        s = self.spread
        lines = self.smem.allocate_array(cute.make_tensor(line).element_type, s.part * s.teams, 16, name="lines")
        return lines + self.team * s.part

    def copied(self, pointer, line):
        """Copy this thread's vectors of `line` to `pointer`, and give that."""
        self.put(pointer, 0, self.read(self.at(line, None), 0, 0))
        return pointer

    def write(self, tensor, row, values):
        """Store `values`, this thread's of a row, converted, to `row` of the matrix `tensor`."""
        self.put(self.at(tensor, row), row, values)

    def put(self, pointer, row, values):
        """Store `values`, this thread's of a row, converted, to a row's part at `pointer`."""
        self.put_some(pointer, row, values, 0, self.spread.vectors)

    def put_some(self, pointer, row, values, first, count):
        """Store `count` of what `put` stores, from vector `first` on: both static."""
        s = self.spread
        mine = _some(s, pointer, self.thread, first, count)
        regs = cute.make_fragment_like(mine)
        regs.store(values.to(regs.element_type))
        if cute.const_expr(s.whole):
            cute.autovec_copy(regs, mine)
        else:
            there = self.there(row)
            for v in cute.range_constexpr(count):
                if cute.const_expr(s.holds(first + v, row)) or self.thread + (first + v) * s.threads < there:
                    cute.autovec_copy(regs[None, v], mine[None, v])

    def there_only(self, values, row, first):
        """Give `values`, this thread's vectors of `row` from `first` on, with 0 where the row has none."""
        s = self.spread
        if cute.const_expr(s.whole):
            return values
        regs = cute.make_rmem_tensor(values.shape, cute.Float32)
        regs.store(values)
        there = self.there(row)
        for v in cute.range_constexpr(values.shape[1]):
            if cute.const_expr(not s.holds(first + v, row)):
                if self.thread + (first + v) * s.threads >= there:
                    regs[None, v].fill(0)
        return regs.load()

    def less(self, values, amount, column, first):
        """Give `values`, this thread's vectors of a row from `first` on, less `amount` in `column`."""
        s = self.spread
        regs = cute.make_rmem_tensor(values.shape, cute.Float32)
        regs.store(values)
        own = column - (self.rank * s.part + self.thread * s.vector)  # from this thread's first element
        for v in cute.range_constexpr(values.shape[1]):
            for e in cute.range_constexpr(s.vector):
                if own == (first + v) * s.threads * s.vector + e:
                    regs[e, v] -= amount
        return regs.load()

    def write_one(self, vector, row, value):
        """Store the row's `value` in `vector` (rows,). One thread does."""
        if self.thread == 0 and self.rank == 0 and row < self.rows:
            vector[row] = value

    def read_one(self, vector, row):
        """Load the row's number from `vector` (rows,)."""
        return cute.Float32(vector[self.real(row)])

    def leave(self, tensor, values, shared):
        """Add up `values`, of a row's length, over the block's teams, and store them to the block's, or cluster's, row
        of `tensor`. shared: what `shared_row` gave, where the block has several teams. All threads."""
        s = self.spread
        bidx, _, _ = arch.block_idx()
        own = self.at(tensor[bidx // s.cluster, None], None)
        if shared is None:
            self.put(own, None, values)
        else:
            for i in cute.range_constexpr(s.teams):
                arch.sync_threads()
                if self.team == i:
                    if cute.const_expr(i > 0):
                        values = values + self.read(shared, None, 0)
                    if cute.const_expr(i < s.teams - 1):
                        self.put(shared, None, values)
                    else:
                        self.put(own, None, values)

    @traced
    def shared_row(self) -> Any:
        """Allocate a row of Float32 in shared memory. All threads."""
        return self.smem.allocate_array(cute.Float32, self.spread.part, 16, name="sums of teams")

    @traced
    def sums(self) -> Any:
        """Make sums, one for each element that this thread has of a row, which are 0: (element, vector, 1), of which
        vectors are as `read_some` gives one."""
        made = cute.make_rmem_tensor((self.spread.vector, self.spread.vectors, 1), cute.Float32)
        made.fill(0)
        return made

    @traced
    def zeros(self) -> Any:
        """Give zeros, one for each element that this thread has of a row."""
        return cute.full((self.spread.vector, self.spread.vectors), 0.0, cute.Float32)

    @traced
    def real(self, row: Any) -> Any:
        """Give `row`, or the last row where there is none such: a team in a warp that others keep busy."""
        return cute.min(row, self.rows - 1) if self.spread.threads < 32 else row

    @traced
    def at(self, tensor: Any, row: Any) -> Any:
        """Give the pointer to this block's part of `row` of a matrix, or of a vector if `row` is None."""
        line = tensor if row is None else tensor[self.real(row), None]
        size = self.spread.vector * tensor.element_type.bytes
        pointer = cute.make_ptr(
            tensor.element_type, line.iterator.toint(), cute.AddressSpace.gmem, min(16, size)
        )  # fmt: skip
        return pointer + self.rank * self.spread.part if self.spread.cluster > 1 else pointer


@traced
def rows_in(array: Any) -> Any:
    """Make a tensor (rows, N) of `array`: (M, N), or (tokens, heads, N), of which each token's heads are rows."""
    tensor = cute.make_tensor(array)
    if len(tensor.shape) == 2:
        return tensor
    (tokens, heads, length), (far, near, one) = tensor.shape, tensor.stride
    shape, stride = ((cute.Int32(heads), cute.Int32(tokens)), length), ((near, far), one)
    return cute.make_tensor(tensor.iterator, cute.make_layout(shape, stride=stride))


@traced
def row_count(array: Any) -> Any:
    """Count the rows of such an array."""
    return array.shape[0] if len(array.shape) == 2 else array.shape[0] * array.shape[1]


@traced
def optional(array: Any) -> Any:
    """Make such a tensor of `array`, or None of None."""
    return None if array is None else rows_in(array)


@traced
def total(values: Any) -> Any:
    """Add up the elements of a vector in registers."""
    return values.reduce(cute.ReductionOp.ADD, 0.0)


@traced
def _some(spread: Spread, pointer: Any, thread: Any, first: Any, count: int) -> Any:
    """`count` of a thread's vectors, from `first` on, of what is at `pointer`: (element, vector). Rows begin where an
    access may, which a pointer does not know that comes out of a ring or a function. The thread's own place comes
    first, and all vectors lie at known distances from that: else those under a condition were found from the row's,
    and both took registers."""
    size = min(16, spread.vector * pointer.dtype.bytes)
    aligned = cute.make_ptr(pointer.dtype, pointer.toint(), pointer.space, size)
    layout = cute.make_layout((spread.vector, count), stride=(1, spread.vector * spread.threads))
    return cute.make_tensor(aligned + thread * spread.vector + first * (spread.threads * spread.vector), layout)


@cute.struct
class Stream:
    """A matrix whose rows come to their teams. Make one with `create`, before `Team.begin`; then `start`, and for each
    row `take`, a reduction or `Team.sync`, and `refill`."""

    spread: Spread
    tensor: Any
    buffers: Any
    kept: Any  # where a team's row lies, if it has one alone: the buffer, in which it stays, or global memory
    ring: Any  # the buffers, where it goes through the matrix
    barriers: Any
    stage: cute.Int32
    parity: cute.Int32

    @staticmethod
    @traced
    def create(team: Team, tensor: Any) -> Stream:
        """Make the stream of the matrix `tensor` for `team`, with its buffers in shared memory. All threads."""
        s = team.spread
        if not s.stages or tensor is None:
            there = team.at(tensor, team.first) if s.far and s.alone and tensor is not None else None
            return Stream(s, tensor, None, there, None, None, cute.Int32(0), cute.Int32(0))
        mine = team.team
        buffers = team.smem.allocate_array(tensor.element_type, s.part * s.stages * s.teams, 128, name="rows")
        barriers = team.smem.allocate_array(cute.Int64, s.stages * s.teams, 8, name="rows have come")
        own = buffers + mine * s.stages * s.part
        kept, ring = (own, None) if s.again else (None, own)
        return Stream(s, tensor, own, kept, ring, barriers + mine * s.stages, cute.Int32(0), cute.Int32(0))

    def open(self, team):
        """Initialise the barriers; `Team.begin` follows. All threads."""
        if self.buffers is not None:
            if team.thread == 0:
                for i in range(self.spread.stages):
                    arch.mbarrier_init(self.barriers + i, 1)
                arch.mbarrier_init_fence()

    def start(self, team):
        """Set off the first rows. All threads of the team."""
        if self.buffers is not None:
            if team.thread == 0:
                for i in range(self.spread.stages):
                    self.fetch(team, team.first + i * team.step, i)

    def fetch(self, team, row, stage):
        """Set `row` off to its stage, if there is such a row. One thread."""
        s = self.spread
        if row < team.rows:
            if cute.const_expr(s.cluster == 1 or s.part == s.last):
                self.copy(team, row, stage, s.last)
            else:
                if team.rank == s.cluster - 1:
                    self.copy(team, row, stage, s.last)
                else:
                    self.copy(team, row, stage, s.part)

    @traced
    def copy(self, team: Team, row: Any, stage: Any, count: int) -> None:
        """Copy the `count` elements of this block's part of `row` to shared memory. One thread."""
        dtype, barrier = self.tensor.element_type, self.barriers + stage
        arch.mbarrier_arrive_and_expect_tx(barrier, count * dtype.bytes)
        atom = cute.make_copy_atom(CopyBulkG2SOp(), dtype, num_bits_per_copy=count * dtype.width)
        layout = cute.make_layout(count)
        source = cute.make_tensor(team.at(self.tensor, row), layout)
        cute.copy(
            atom, source, cute.make_tensor(self.buffers + stage * self.spread.part, layout), tma_bar_ptr=barrier
        )  # fmt: skip

    def take(self, team, row, absent):
        """Give what this thread has of `row`, a vector of Float32; what is not there is `absent`. All threads of the
        team, row by row."""
        if self.buffers is None:
            return team.read(team.at(self.tensor, row), row, absent)
        self.wait()
        return team.read(self.buffers + self.stage * self.spread.part, row, absent)

    def place(self, team, row):
        """Give the pointer to this block's part of `row`, to be read by some vectors at a time, again and again, until
        it is filled again. All threads of the team, row by row."""
        if self.buffers is None:
            return team.at(self.tensor, row)
        self.wait()
        return self.buffers + self.stage * self.spread.part

    def element(self, column):
        """Load the element in `column` of this block's part of the row that has come to shared memory."""
        line = cute.make_tensor(self.buffers + self.stage * self.spread.part, cute.make_layout(self.spread.length))
        return cute.Float32(line[column])

    def wait(self):
        """Wait until the row of this stage has come. All threads of the team."""
        if self.barriers is not None:
            arch.mbarrier_wait(self.barriers + self.stage, self.parity)

    def refill(self, team, row):
        """Set off the row that follows `row` by as many as there are stages, in its place. All threads of the team,
        after a reduction or `Team.sync`."""
        s = self.spread
        if self.buffers is not None and self.kept is None:
            if cute.const_expr(s.warps * s.cluster == 1):  # reductions are shuffles, at which no memory is ordered
                arch.sync_warp()
            if team.thread == 0:
                self.fetch(team, row + s.stages * team.step, self.stage)
            self.stage += 1
            if self.stage == s.stages:
                self.stage = cute.Int32(0)
                self.parity ^= 1
