# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block and of a cluster, fences, and registers of a warpgroup."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Uint32
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static

__all__ = [
    "barrier", "barrier_arrive", "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait", "fence_acq_rel_cluster",
    "fence_acq_rel_cta", "fence_acq_rel_gpu", "fence_acq_rel_sys", "fence_proxy", "fence_view_async_shared",
    "nanosleep", "setmaxregister_decrease", "setmaxregister_increase", "sync_threads", "warpgroup_reg_alloc",
    "warpgroup_reg_dealloc",
]  # fmt: skip


def _check_barrier(barrier_id: Any, threads: Any, what: str) -> None:
    if type(barrier_id) is int and not 0 <= barrier_id <= 15:
        raise CuteError(f"{what}: barrier_id {barrier_id} is not in [0, 15] (0 is what sync_threads uses)")
    if type(threads) is int and (threads <= 0 or threads % 32):
        raise CuteError(f"{what}: number_of_threads {threads} is not a positive multiple of 32")


def _flag(aligned: Any, what: str) -> bool:
    if aligned not in (None, True, False):
        raise CuteError(f"{what}: aligned {aligned!r} must be static: True or False{how_static(aligned)}")
    return aligned is not False


@traced
def sync_threads() -> None:
    """Wait until every thread of the block has arrived here, and order their memory accesses. All threads of the block.
    PTX barrier.cta.sync, sm_70.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     if arch.thread_idx()[0] == 0:
    ...         arch.store(place, cute.Int32(7))
    ...     arch.sync_threads()
    ...     if arch.thread_idx()[0] == 63:
    ...         print(arch.load(place, cute.Int32))
    >>> cute.simulate(kernel)[1, 64]()
    7
    """
    isa.bar_sync(Uint32(0))


@traced
def barrier(barrier_id: Int | None = None, number_of_threads: Int | None = None) -> None:
    """Wait at a named barrier of the block, ordering the memory accesses of those that meet there. Whole warps.

    barrier_id: 0 to 15; 0, the default, is that of `sync_threads`. number_of_threads: how many meet, a multiple of 32;
    by default the whole block. PTX barrier.cta.sync, sm_70.

    >>> def kernel():
    ...     place = arch.alloc_smem(cute.Int32, 1)
    ...     if arch.thread_idx()[0] == 0:
    ...         arch.store(place, cute.Int32(7))
    ...     arch.barrier(barrier_id=1, number_of_threads=64)
    ...     if arch.thread_idx()[0] == 63:
    ...         print(arch.load(place, cute.Int32))
    >>> cute.simulate(kernel)[1, 64]()
    7
    """
    _check_barrier(barrier_id, number_of_threads, "barrier")
    threads = None if number_of_threads is None else Uint32(number_of_threads)
    isa.bar_sync(Uint32(0 if barrier_id is None else barrier_id), threads)


@traced
def barrier_arrive(barrier_id: Int | None = None, number_of_threads: Int | None = None, aligned: bool = True) -> None:
    """Arrive at a named barrier of the block without waiting there.

    barrier_id: 0 to 15 (default 0). number_of_threads: those that arrive and those that wait together, a multiple of
    32; required. aligned: True for whole warps; False for any threads, which need not be converged. PTX
    barrier.cta.arrive, sm_70.

    >>> def kernel():
    ...     if arch.warp_idx() == 0:
    ...         arch.barrier_arrive(barrier_id=1, number_of_threads=64)
    ...     else:
    ...         arch.barrier(barrier_id=1, number_of_threads=64)
    >>> cute.simulate(kernel)[1, 64]()
    """
    if number_of_threads is None:
        raise CuteError("barrier_arrive: number_of_threads must be given: those that arrive and those that wait")
    _check_barrier(barrier_id, number_of_threads, "barrier_arrive")
    row = isa.bar_arrive if _flag(aligned, "barrier_arrive") else isa.barrier_cta_arrive
    row(Uint32(0 if barrier_id is None else barrier_id), Uint32(number_of_threads))


@traced
def cluster_arrive(aligned: bool | None = None) -> None:
    """Arrive at the cluster's barrier, releasing this thread's memory accesses; `cluster_wait` must follow. All threads
    of the cluster.

    aligned: whether whole warps arrive together, as by default; False for threads that have diverged. PTX
    barrier.cluster.arrive.release, sm_90.

    >>> def kernel():
    ...     me, place = arch.block_idx_in_cluster(), arch.alloc_smem(cute.Int32, 1)
    ...     arch.store(place, 10 + me)
    ...     arch.cluster_arrive()
    ...     arch.cluster_wait()
    ...     print(me, arch.load(arch.map_dsmem_ptr(place, 1 - me), cute.Int32, ss="cluster"))
    ...     arch.cluster_arrive()  # nobody leaves while a peer reads
    ...     arch.cluster_wait()
    >>> cute.simulate(kernel, cluster=2)[2, 1]()
    1 10
    0 11
    """
    (isa.cluster_arrive if _flag(aligned, "cluster_arrive") else isa.cluster_arrive_unaligned)()


@traced
def cluster_arrive_relaxed(aligned: bool | None = None) -> None:
    """Arrive at the cluster's barrier without ordering memory accesses; `cluster_wait` must follow. All threads of the
    cluster.

    aligned: as for `cluster_arrive`. PTX barrier.cluster.arrive.relaxed, sm_90.

    >>> def kernel():
    ...     arch.cluster_arrive_relaxed()
    ...     arch.cluster_wait()
    >>> cute.simulate(kernel, cluster=2)[2, 32]()
    """
    what = "cluster_arrive_relaxed"
    (isa.cluster_arrive if _flag(aligned, what) else isa.cluster_arrive_unaligned)(sem="relaxed")


@traced
def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived, acquiring what they released. All threads of the cluster. PTX
    barrier.cluster.wait.acquire, sm_90.

    See the example of `cluster_arrive`.
    """
    isa.cluster_wait()


@traced
def fence_proxy(kind: str, space: str | None = None) -> None:
    """Order this thread's ordinary memory accesses before later ones of TMA and wgmma. Each thread that wrote, before
    the barrier that precedes the copy.

    kind: "async" (all memory), "async.global", "async.shared", or "alias" (two addresses of the same memory, sm_70).
    space: "cta" or "cluster" with kind "async.shared"; None with all others. For tensor maps there is
    `cpasync.fence_tma_desc_acquire`. PTX fence.proxy, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(4, dtype=np.float32), assumed_align=16)
    >>> def kernel(x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=16), cute.make_layout(4))
    ...     s.fill(7)
    ...     arch.fence_proxy("async.shared", space="cta")
    ...     cute.copy(cute.make_copy_atom(nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32), s, x)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    ...     print(x[3])
    >>> cute.simulate(kernel)[1, 1](x)
    7.0
    """
    spaces: dict[tuple[str, str | None], str | None] = {
        ("async", None): None, ("async.global", None): "global", ("async.shared", "cta"): "shared::cta",
        ("async.shared", "cluster"): "shared::cluster",
    }  # fmt: skip
    if (kind, space) == ("alias", None):
        isa.fence_proxy_alias()
        return
    if (kind, space) not in spaces:
        legal = '"async", "async.global", "alias", or "async.shared" with space="cta" or "cluster"'
        raise CuteError(f"fence_proxy: kind {kind!r} with space {space!r} is not a proxy fence; use {legal}")
    isa.fence_proxy_async(space=spaces[kind, space])


@traced
def fence_view_async_shared() -> None:
    """Order this thread's accesses to the block's shared memory before later ones of TMA and wgmma. Each thread that
    wrote. PTX fence.proxy.async.shared::cta, sm_90.

    See the example of `cp_async_bulk_commit_group`.
    """
    isa.fence_proxy_async(space="shared::cta")


@traced
def fence_acq_rel_cta() -> None:
    """Order this thread's memory accesses as seen by the block's threads. Any thread. PTX fence.acq_rel.cta, sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     x[0] = 1
    ...     arch.fence_acq_rel_cta()
    >>> cute.simulate(kernel)[1, 1](seen)
    >>> seen
    array([1], dtype=int32)
    """
    isa.fence_acq_rel(scope="cta")


@traced
def fence_acq_rel_cluster() -> None:
    """Order this thread's memory accesses as seen by the cluster's threads. Any thread. PTX fence.acq_rel.cluster,
    sm_90.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     x[0] = 1
    ...     arch.fence_acq_rel_cluster()
    >>> cute.simulate(kernel)[1, 1](seen)
    >>> seen
    array([1], dtype=int32)
    """
    isa.fence_acq_rel(scope="cluster")


@traced
def fence_acq_rel_gpu() -> None:
    """Order this thread's memory accesses as seen by all threads of the GPU. Any thread. PTX fence.acq_rel.gpu,
    sm_70.

    >>> def kernel(data, ready):
    ...     if arch.block_idx()[0] == 0:
    ...         arch.store(data.iterator, cute.Int32(7))
    ...         arch.fence_acq_rel_gpu()
    ...         arch.atomic_exch(ready.iterator, 1)
    ...     else:
    ...         while arch.atomic_or(ready.iterator, 0) == 0:
    ...             pass
    ...         arch.fence_acq_rel_gpu()
    ...         print(arch.load(data.iterator, cute.Int32))
    >>> cute.simulate(kernel)[2, 1](*[cute.runtime.from_dlpack(np.zeros(1, np.int32)) for _ in range(2)])
    7
    """
    isa.fence_acq_rel(scope="gpu")


@traced
def fence_acq_rel_sys() -> None:
    """Order this thread's memory accesses as seen by all GPUs and the host. Any thread. PTX fence.acq_rel.sys,
    sm_70.

    >>> seen = np.zeros(1, np.int32)
    >>> def kernel(x):
    ...     x[0] = 1
    ...     arch.fence_acq_rel_sys()
    >>> cute.simulate(kernel)[1, 1](seen)
    >>> seen
    array([1], dtype=int32)
    """
    isa.fence_acq_rel(scope="sys")


def _check_registers(count: Any, what: str) -> None:
    if type(count) is not int or not 24 <= count <= 256 or count % 8:
        raise CuteError(f"{what}: reg_count {count!r} must be a static multiple of 8 in [24, 256]{how_static(count)}")


@traced
def setmaxregister_increase(reg_count: int) -> None:
    """Raise the registers of each thread to `reg_count`, waiting until the block's pool has them. The whole warpgroup.

    reg_count: a static multiple of 8 from 24 to 256. PTX setmaxnreg.inc, sm_90a, sm_100f.

    >>> def kernel():
    ...     if arch.warp_idx() < 4:
    ...         arch.setmaxregister_decrease(40)
    ...     else:
    ...         arch.setmaxregister_increase(232)
    >>> cute.simulate(kernel)[1, 256]()
    """
    _check_registers(reg_count, "setmaxregister_increase")
    isa.setmaxnreg(action="inc", count=reg_count)


@traced
def setmaxregister_decrease(reg_count: int) -> None:
    """Lower the registers of each thread to `reg_count`, returning the rest to the block's pool. The whole warpgroup.

    reg_count: a static multiple of 8 from 24 to 256. PTX setmaxnreg.dec, sm_90a, sm_100f.

    >>> cute.simulate(lambda: arch.setmaxregister_decrease(40))[1, 128]()
    """
    _check_registers(reg_count, "setmaxregister_decrease")
    isa.setmaxnreg(action="dec", count=reg_count)


@traced
def warpgroup_reg_alloc(reg_count: int) -> None:
    """Call `setmaxregister_increase(reg_count)`: its older name. PTX setmaxnreg.inc, sm_90a,
    sm_100f.

    >>> cute.simulate(lambda: arch.warpgroup_reg_alloc(160))[1, 128]()
    """
    setmaxregister_increase(reg_count)


@traced
def warpgroup_reg_dealloc(reg_count: int) -> None:
    """Call `setmaxregister_decrease(reg_count)`: its older name. PTX setmaxnreg.dec, sm_90a,
    sm_100f.

    >>> cute.simulate(lambda: arch.warpgroup_reg_dealloc(40))[1, 128]()
    """
    setmaxregister_decrease(reg_count)


@traced
def nanosleep(sleep_time: Int) -> None:
    """Suspend the thread for about `sleep_time` nanoseconds, up to twice as long and at most a millisecond: in a loop
    that polls. Any thread. PTX nanosleep, sm_70.

    >>> cute.simulate(lambda: arch.nanosleep(100))[1, 1]()
    """
    isa.nanosleep(Uint32(sleep_time))
