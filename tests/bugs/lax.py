# SPDX-License-Identifier: Apache-2.0
"""Bugs by the PTX ISA that other kernels are written with: each by a check of its own, which a port may leave out."""

from numba import cuda
from numpy import zeros

import numba_cute as cute
from numba_cute import CuteError, arch
from numba_cute.isa.rows import copy_async, fence, mbarrier, registers
from numba_cute.sim import SimError, SimWarning
from numba_cute.sim.checks.cancelled_shapes import CancelledShapes
from numba_cute.sim.checks.coordinates import Coordinates
from numba_cute.sim.checks.same_values import SameValues
from numba_cute.sim.checks.warpgroups import Warpgroups

from .zoo import BAR, BUF, bug, put


@bug(SimWarning, "put, in store", "the same values", "nothing orders the two", check=SameValues)
def two_warps_clear_the_same_memory(mended):
    def kernel():
        if cuda.threadIdx.x < 32 or not mended:
            put(BUF + 4 * (cuda.threadIdx.x % 32), 0)

    return kernel


@bug(SimWarning, "is written by cp_async", "has still to write it", check=SameValues, arguments=lambda: (zeros(4),))
def two_lanes_copy_the_same_by_cp_async(mended):
    def kernel(x):
        if cuda.threadIdx.x < 2 - mended:
            copy_async.cp_async(BUF, x.ctypes.data, nbytes=16, cache="ca")
            copy_async.cp_async_commit_group()
            copy_async.cp_async_wait_group(n=0)

    return kernel


@bug(CuteError, "coordinate 95 is out of (64,1):(1,0): it takes 0 to 63", check=Coordinates, threads=128)
def threads_beyond_a_tile_index_it(mended):
    def kernel():
        start = cute.make_ptr(cute.Int32, BUF, cute.AddressSpace.smem)
        tile = cute.make_tensor(start, cute.make_layout((64, 1), stride=(1, 0)))
        if cuda.threadIdx.x == (63 if mended else 95):
            tile[cuda.threadIdx.x] = 0

    return kernel


@bug(SimError, "setmaxnreg is issued by a warpgroup", "the block has 160 threads", check=Warpgroups, threads=160)
def registers_are_shared_out_by_a_warp_beyond_the_warpgroups(mended):
    def kernel():
        if cuda.threadIdx.x >= 128 and not mended:
            registers.setmaxnreg(count=40, action="dec")

    return kernel


@bug(SimError, "divergent warpgroup", "issues setmaxnreg", check=Warpgroups, threads=256)
def a_warp_of_a_warpgroup_keeps_fewer_registers(mended):
    def kernel():
        if cuda.threadIdx.x >= 128:
            if cuda.threadIdx.x >= 224 and not mended:
                registers.setmaxnreg(count=24, action="dec")
            else:
                registers.setmaxnreg(count=40, action="dec")

    return kernel


@bug(SimError, "clusterlaunchcontrol in a launch with fallback_cluster", check=CancelledShapes, arch="sm_100a",
     cluster=2, fallback=1, blocks=2, threads=1)  # fmt: skip
def a_cluster_of_two_shapes_is_cancelled(mended):
    def kernel():
        mbarrier.mbarrier_init(BAR, 1)
        fence.fence_mbarrier_init()
        if not mended:
            mbarrier.mbarrier_arrive_expect_tx(BAR, 16)
            arch.issue_clc_query(BAR, BUF, multicast=False)
            mbarrier.mbarrier_wait_parity(BAR, 0)

    return kernel
