# SPDX-License-Identifier: Apache-2.0
"""Indices of a thread, the shapes around it, and other special registers (PTX ISA, "Special Registers").

Any thread may call these. Indices and sizes are Int32; threads, blocks and clusters count from 0 in x, then y, then z.
Targets are sm_70 unless stated.
"""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Int32, Uint32
from ..seam import quotient, traced

__all__ = [
    "THREADS_PER_WARPGROUP", "WARPS_PER_WARPGROUP", "WARP_SIZE", "aggr_smem_size", "block_dim", "block_idx",
    "block_idx_in_cluster", "block_in_cluster_dim", "block_in_cluster_idx", "clock", "clock64", "cluster_dim",
    "cluster_idx", "cluster_size", "dynamic_smem_size", "globaltimer", "globaltimer_lo", "grid_dim", "gridid",
    "lane_idx", "lanemask_eq", "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "nsmid", "nwarpid",
    "physical_warp_id", "smid", "thread_idx", "total_smem_size", "warp_idx", "warpsize",
]  # fmt: skip

WARP_SIZE = 32
WARPS_PER_WARPGROUP = 4
THREADS_PER_WARPGROUP = 128


def _xyz(register: str) -> tuple[Int32, Int32, Int32]:
    row = isa.sreg_cluster if "cluster" in register else isa.sreg
    x, y, z = (Int32(row(register=f"{register}.{d}")) for d in "xyz")
    return x, y, z


@traced
def thread_idx() -> tuple[Int32, Int32, Int32]:
    """Return the thread's (x, y, z) in its block. PTX %tid, sm_70.

    >>> cute.simulate(lambda: print(arch.thread_idx()))[1, 1]()
    (Int32(0), Int32(0), Int32(0))
    """
    return _xyz("tid")


@traced
def block_dim() -> tuple[Int32, Int32, Int32]:
    """Return the threads of a block in (x, y, z). PTX %ntid, sm_70.

    >>> cute.simulate(lambda: print(arch.block_dim()))[2, 1]()
    (Int32(1), Int32(1), Int32(1))
    (Int32(1), Int32(1), Int32(1))
    """
    return _xyz("ntid")


@traced
def block_idx() -> tuple[Int32, Int32, Int32]:
    """Return the block's (x, y, z) in the grid. PTX %ctaid, sm_70.

    >>> cute.simulate(lambda: print(arch.block_idx()))[2, 1]()
    (Int32(0), Int32(0), Int32(0))
    (Int32(1), Int32(0), Int32(0))
    """
    return _xyz("ctaid")


@traced
def grid_dim() -> tuple[Int32, Int32, Int32]:
    """Return the blocks of the grid in (x, y, z). PTX %nctaid, sm_70.

    >>> cute.simulate(lambda: print(arch.grid_dim()))[1, 1]()
    (Int32(1), Int32(1), Int32(1))
    """
    return _xyz("nctaid")


@traced
def cluster_idx() -> tuple[Int32, Int32, Int32]:
    """Return the cluster's (x, y, z) in the grid. PTX %clusterid, sm_90.

    >>> cute.simulate(lambda: print(arch.cluster_idx()), cluster=2)[4, 1]()
    (Int32(0), Int32(0), Int32(0))
    (Int32(0), Int32(0), Int32(0))
    (Int32(1), Int32(0), Int32(0))
    (Int32(1), Int32(0), Int32(0))
    """
    return _xyz("clusterid")


@traced
def cluster_dim() -> tuple[Int32, Int32, Int32]:
    """Return the clusters of the grid in (x, y, z). PTX %nclusterid, sm_90.

    >>> cute.simulate(lambda: print(arch.cluster_dim()), cluster=2)[4, 1]()
    (Int32(2), Int32(1), Int32(1))
    (Int32(2), Int32(1), Int32(1))
    (Int32(2), Int32(1), Int32(1))
    (Int32(2), Int32(1), Int32(1))
    """
    return _xyz("nclusterid")


@traced
def block_in_cluster_idx() -> tuple[Int32, Int32, Int32]:
    """Return the block's (x, y, z) in its cluster. PTX %cluster_ctaid, sm_90.

    >>> cute.simulate(lambda: print(arch.block_in_cluster_idx()), cluster=2)[2, 1]()
    (Int32(0), Int32(0), Int32(0))
    (Int32(1), Int32(0), Int32(0))
    """
    return _xyz("cluster_ctaid")


@traced
def block_in_cluster_dim() -> tuple[Int32, Int32, Int32]:
    """Return the blocks of a cluster in (x, y, z). PTX %cluster_nctaid, sm_90.

    >>> cute.simulate(lambda: print(arch.block_in_cluster_dim()), cluster=2)[2, 1]()
    (Int32(2), Int32(1), Int32(1))
    (Int32(2), Int32(1), Int32(1))
    """
    return _xyz("cluster_nctaid")


@traced
def block_idx_in_cluster() -> Int32:
    """Return the block's rank in its cluster, x fastest. PTX %cluster_ctarank, sm_90.

    >>> cute.simulate(lambda: print(arch.block_idx_in_cluster()), cluster=2)[2, 1]()
    0
    1
    """
    return Int32(isa.sreg_cluster(register="cluster_ctarank"))


@traced
def cluster_size() -> Int32:
    """Return the number of blocks in a cluster. PTX %cluster_nctarank, sm_90.

    >>> cute.simulate(lambda: print(arch.cluster_size()), cluster=2)[2, 1]()
    2
    2
    """
    return Int32(isa.sreg_cluster(register="cluster_nctarank"))


@traced
def lane_idx() -> Int32:
    """Return the thread's lane in its warp, 0 to 31. PTX %laneid, sm_70.

    >>> cute.simulate(lambda: cute.printf("{}", arch.lane_idx()))[1, 3]()
    0
    1
    2
    """
    return Int32(isa.sreg(register="laneid"))


@traced
def warp_idx() -> Int32:
    """Return the warp's index in its block: the thread's linear index // 32. It is the same in all lanes, but the
    compiler knows that only after `make_warp_uniform`. PTX %tid and %ntid, any target.

    >>> cute.simulate(lambda: print(arch.warp_idx()))[1, 1]()
    0
    """
    x, y, z = thread_idx()
    nx, ny, _ = block_dim()
    warp: Int32 = quotient(x + nx * (y + ny * z), WARP_SIZE)
    return warp


@traced
def dynamic_smem_size() -> Int32:
    """Return the bytes of dynamic shared memory of the launch. PTX %dynamic_smem_size, sm_70.

    >>> cute.simulate(lambda: print(arch.dynamic_smem_size()))[1, 1, 0, 1024]()
    1024
    """
    return Int32(isa.sreg(register="dynamic_smem_size"))


@traced
def total_smem_size() -> Int32:
    """Return the bytes of shared memory of the block, static and dynamic. PTX %total_smem_size, sm_70.

    >>> cute.simulate(lambda: print(arch.total_smem_size()))[1, 1, 0, 1024]()
    1024
    """
    return Int32(isa.sreg(register="total_smem_size"))


@traced
def physical_warp_id() -> Int32:
    """Return the warp's slot in its SM, which may change: for diagnosis. PTX %warpid, sm_70.

    >>> cute.simulate(lambda: print(arch.physical_warp_id() < arch.nwarpid()))[1, 1]()
    True
    """
    return Int32(isa.sreg_volatile(register="warpid"))


@traced
def nwarpid() -> Int32:
    """Return the number of warp slots of the SM: for diagnosis. PTX %nwarpid, sm_70.

    >>> cute.simulate(lambda: print(arch.physical_warp_id() < arch.nwarpid()))[1, 1]()
    True
    """
    return Int32(isa.sreg_volatile(register="nwarpid"))


@traced
def smid() -> Int32:
    """Return the SM that runs the thread now: for diagnosis. PTX %smid, sm_70.

    >>> cute.simulate(lambda: print(0 <= arch.smid() < arch.nsmid()))[1, 1]()
    True
    """
    return Int32(isa.sreg_volatile(register="smid"))


@traced
def nsmid() -> Int32:
    """Return the number of SMs that `smid` may name: for diagnosis. PTX %nsmid, sm_70.

    >>> cute.simulate(lambda: print(arch.smid() < arch.nsmid()))[1, 1]()
    True
    """
    return Int32(isa.sreg_volatile(register="nsmid"))


@traced
def clock64() -> Any:
    """Read the SM's cycle counter (64 bits). PTX %clock64, sm_70.

    >>> cute.simulate(lambda: print(arch.clock64() <= arch.clock64()))[1, 1]()
    True
    """
    return isa.clock64()


@traced
def globaltimer() -> Any:
    """Read the GPU's timer, in nanoseconds (64 bits). PTX %globaltimer, sm_70.

    >>> cute.simulate(lambda: print(arch.globaltimer() <= arch.globaltimer()))[1, 1]()
    True
    """
    return isa.globaltimer()


@traced
def lanemask_eq() -> Uint32:
    """Return the bit of this lane alone (Uint32). PTX %lanemask_eq, sm_70.

    >>> cute.simulate(lambda: cute.printf("{}", arch.lanemask_eq()))[1, 3]()
    1
    2
    4
    """
    return Uint32(isa.lanemask(lanes="eq"))


@traced
def lanemask_le() -> Uint32:
    """Return the bits of this lane and of those below (Uint32). PTX %lanemask_le, sm_70.

    >>> cute.simulate(lambda: cute.printf("{}", arch.lanemask_le()))[1, 3]()
    1
    3
    7
    """
    return Uint32(isa.lanemask(lanes="le"))


@traced
def lanemask_lt() -> Uint32:
    """Return the bits of the lanes below this one (Uint32). PTX %lanemask_lt, sm_70.

    >>> cute.simulate(lambda: cute.printf("{}", arch.lanemask_lt()))[1, 3]()
    0
    1
    3
    """
    return Uint32(isa.lanemask(lanes="lt"))


@traced
def lanemask_ge() -> Uint32:
    """Return the bits of this lane and of those above (Uint32). PTX %lanemask_ge, sm_70.

    >>> cute.simulate(lambda: print(hex(arch.lanemask_ge())))[1, 1]()
    0xffffffff
    """
    return Uint32(isa.lanemask(lanes="ge"))


@traced
def lanemask_gt() -> Uint32:
    """Return the bits of the lanes above this one (Uint32). PTX %lanemask_gt, sm_70.

    >>> cute.simulate(lambda: print(hex(arch.lanemask_gt())))[1, 1]()
    0xfffffffe
    """
    return Uint32(isa.lanemask(lanes="gt"))


@traced
def warpsize() -> Int32:
    """Read the lanes of a warp, 32, at run time; `WARP_SIZE` is static. PTX WARP_SZ, sm_70.

    >>> cute.simulate(lambda: print(arch.warpsize()))[1, 1]()
    32
    """
    return Int32(isa.warp_size())


@traced
def aggr_smem_size() -> Int32:
    """Return the bytes of shared memory that the block occupies, with what the system reserves. PTX %aggr_smem_size,
    sm_90.

    >>> cute.simulate(lambda: print(arch.aggr_smem_size()))[1, 1, 0, 1024]()
    2048
    """
    return Int32(isa.aggr_smem_size())


@traced
def gridid() -> Int32:
    """Return a number that tells the launches of a process apart (the low word of 64 bits). PTX %gridid, sm_70.

    >>> cute.simulate(lambda: print(type(arch.gridid()).__name__))[1, 1]()
    int32
    """
    return Int32(isa.gridid())


@traced
def clock() -> Int32:
    """Read the low word of the SM's cycle counter (Int32). PTX %clock, sm_70.

    >>> cute.simulate(lambda: print(arch.clock() <= arch.clock()))[1, 1]()
    True
    """
    return Int32(isa.clock32())


@traced
def globaltimer_lo() -> Int32:
    """Read the low word of the GPU's timer, in nanoseconds (Int32). PTX %globaltimer_lo, sm_70.

    >>> cute.simulate(lambda: print(type(arch.globaltimer_lo()).__name__))[1, 1]()
    int32
    """
    return Int32(isa.globaltimer_lo())
