# SPDX-License-Identifier: Apache-2.0
"""Bugs by the PTX ISA that other kernels are written with: each by a check of its own, which a port may leave out."""

from numba import cuda

from numba_cute.isa.rows import registers
from numba_cute.sim import RaceError, SimError
from numba_cute.sim.checks.same_values import SameValues
from numba_cute.sim.checks.warpgroups import Warpgroups

from .zoo import BUF, bug, put


@bug(RaceError, "put, in store", "nothing orders the two", check=SameValues)
def two_warps_clear_the_same_memory(mended):
    def kernel():
        if cuda.threadIdx.x < 32 or not mended:
            put(BUF + 4 * (cuda.threadIdx.x % 32), 0)

    return kernel


@bug(SimError, "setmaxnreg is issued by a warpgroup", "the block has 160 threads", check=Warpgroups, threads=160)
def registers_are_shared_out_by_a_warp_beyond_the_warpgroups(mended):
    def kernel():
        if cuda.threadIdx.x >= 128 and not mended:
            registers.setmaxnreg(count=40, action="dec")

    return kernel
