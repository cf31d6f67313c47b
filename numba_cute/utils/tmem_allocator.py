# SPDX-License-Identifier: Apache-2.0
"""Tensor memory: allocated by one warp, its address handed to all through shared memory, and given out in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes, isa, seam
from ..arch.index import block_idx_in_cluster, warp_idx
from ..arch.mbarrier import mbarrier_arrive
from ..arch.smem import alloc_smem
from ..arch.tmem import (
    alloc_tmem,
    dealloc_tmem,
    get_max_tmem_alloc_cols,
    get_min_tmem_alloc_cols,
    relinquish_tmem_alloc_permit,
    retrieve_tmem_ptr,
)
from ..arch.warp import elect_one, make_warp_uniform, sync_warp
from ..dtypes import DType, Float32, Uint32
from ..isa.facts.tensor_memory import column_count
from ..layout import Layout
from ..layout.basis import is_basis
from ..seam import CuteError, Int, struct, traced
from ..seam.ground.naming import described, shown
from ..seam.guards.messages import how_static
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor

__all__ = ["TmemAllocator", "TmemBufferPool", "compute_tmem_cols_from_layout", "get_num_tmem_alloc_cols"]


@traced
def compute_tmem_cols_from_layout(layout: Layout, element_type: DType) -> int:
    """Return how many 32-bit columns of tensor memory a tensor reaches.

    layout: a static layout of tensor memory, whose lanes are 65536 columns apart. element_type: its elements. Raises
    CuteError for another layout.

    >>> K, ONE = nvgpu.OperandMajorMode.K, nvgpu.CtaGroup.ONE
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, ONE, (128, 64))
    >>> utils.compute_tmem_cols_from_layout(mma.make_fragment_C(mma.partition_shape_C((128, 64))).layout, cute.Float32)
    64
    """
    what = "compute_tmem_cols_from_layout"
    if not isinstance(layout, Layout) or not seam.is_static((layout.shape, layout.stride)) or is_basis(layout.stride):
        raise CuteError(f"{what}: layout {shown(layout)} must be a static layout of offsets{how_static(layout)}")
    if not isinstance(element_type, DType):
        raise CuteError(f"{what}: element_type {element_type!r} is not an element type; use one like cute.Float32")
    return column_count(layout, element_type.width)


@traced
def get_num_tmem_alloc_cols(
    tmem_tensors: Tensor | Sequence[Tensor], rounding: bool = True, arch: str = "sm_100"
) -> int:  # fmt: skip
    """Return how many columns of tensor memory to allocate for tensors that lie side by side.

    tmem_tensors: one or several in tensor memory, such as fragments of accumulators. rounding: give the next number
    that can be allocated, a power of two of at least 32; else the columns themselves. arch: the target whose capacity
    is checked. Raises CuteError if they do not fit.

    >>> K, ONE = nvgpu.OperandMajorMode.K, nvgpu.CtaGroup.ONE
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, cute.Float16, K, K, cute.Float32, ONE, (128, 64))
    >>> utils.get_num_tmem_alloc_cols(mma.make_fragment_C(mma.partition_shape_C((128, 64))))
    64
    """
    what, total = "get_num_tmem_alloc_cols", 0
    for t in tmem_tensors if isinstance(tmem_tensors, (tuple, list)) else (tmem_tensors,):
        if not isinstance(t, Tensor) or t.memspace is not AddressSpace.tmem:
            raise CuteError(f"{what}: {described(t)} must be a tensor in tensor memory, or several")
        total += compute_tmem_cols_from_layout(t.layout, t.element_type)
    if rounding:
        total = max(1 << max(total - 1, 0).bit_length(), get_min_tmem_alloc_cols(arch))
    most = get_max_tmem_alloc_cols(arch)
    if total > most:
        raise CuteError(f"{what}: the tensors take {total} columns, but {arch} has {most}: use fewer stages or parts")
    return total


@struct
class TmemBufferPool:
    """A range of tensor memory that is given out in parts, from its beginning on. `TmemAllocator.reserve` makes one.

    Every thread makes its own and asks for the same parts in the same order. base_ptr: a Pointer to where it begins.
    total_cols: its 32-bit columns (static). current_offset: those given out.

    >>> def kernel():
    ...     tmem = utils.TmemAllocator(arch.alloc_smem(cute.Int32, 1), pipeline.NamedBarrier(1, 128))
    ...     pool = tmem.reserve(64)
    ...     pool.allocate(cute.make_layout((128, 16), stride=(65536, 1)), cute.Float32)
    ...     if arch.thread_idx()[0] == 0:
    ...         print(pool.remaining_cols)
    ...     tmem.free(tmem.retrieve_ptr())
    >>> cute.simulate(kernel, arch="sm_100a")[1, 128]()
    48
    """

    base_ptr: Pointer
    total_cols: int
    current_offset: dtypes.Int32 = 0  # type: ignore[assignment]

    @property
    @traced
    def remaining_cols(self) -> Int:
        """The columns that are left."""
        left: Int = self.total_cols - self.current_offset
        return left

    @traced
    def allocate(self, layout: Layout, element_type: DType) -> Pointer:
        """Return a Pointer to the next columns, as many as a tensor takes.

        layout: its static layout. element_type: its elements. Raises CuteError if they are more than the range has;
        of several parts together the simulator says so."""
        columns = compute_tmem_cols_from_layout(layout, element_type)
        offset, total = seam.known(self.current_offset), self.total_cols
        taken = int(offset) if seam.is_exact(offset) else 0
        if taken + columns > total:
            raise CuteError(
                f"TmemBufferPool.allocate: {columns} columns for {layout} of {element_type}, but {total - taken} of "
                f"{total} are left; reserve more"
            )
        address = Uint32(self.base_ptr.address) + Uint32(self.current_offset)
        self.current_offset = self.current_offset + columns
        return Pointer(element_type, AddressSpace.tmem, address, 0, self.base_ptr.alignment)

    @traced
    def allocate_tensor(self, layout: Layout, element_type: DType) -> Tensor:
        """Return a tensor in the next columns. layout: static. element_type: its elements. Raises CuteError as
        `allocate` does."""
        return Tensor(self.allocate(layout, element_type), layout)


@struct
class TmemAllocator:
    """An allocator of tensor memory: one warp of the block (of both, in a pair) allocates and frees, and all others
    learn the address from shared memory. Each thread makes its own, in a pair before a barrier of the cluster, such as
    that of `pipeline.pipeline_init_arrive`: the pair's mbarrier is initialised and fenced here. PTX tcgen05.alloc, of a
    pair mbarrier.init and fence.mbarrier_init too, sm_100f.

    alloc_result_dst_smem_ptr: a Pointer to an Int32 of shared memory for the address; None: one of its own.
    barrier_for_retrieve: the `pipeline.NamedBarrier` of the allocating warp and all warps that retrieve the address.
    allocator_warp_id: the warp that allocates. is_two_cta: allocate in both blocks of a pair (static).
    num_allocated_columns: those that were allocated before. two_cta_tmem_dealloc_mbar_ptr: of a pair, a Pointer to an
    Int64 of shared memory at the same place in both, for an mbarrier by which one waits for the other before it frees;
    None: one of its own. arch: the target whose capacity is checked.

    >>> def kernel():
    ...     tmem = utils.TmemAllocator(arch.alloc_smem(cute.Int32, 1), pipeline.NamedBarrier(1, 128))
    ...     tmem.allocate(64)
    ...     tmem.wait_for_alloc()
    ...     place = tmem.retrieve_ptr(cute.Float32)
    ...     if arch.thread_idx()[0] == 0:
    ...         print(place)
    ...     arch.sync_threads()
    ...     tmem.free(place)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 128]()
    ptr<Float32, tmem, align 16>
    """

    alloc_result_dst_smem_ptr: Any
    barrier_for_retrieve: Any
    allocator_warp_id: Any
    is_two_cta: bool
    num_allocated_columns: dtypes.Int32
    two_cta_tmem_dealloc_mbar_ptr: Any
    arch: str

    @traced
    def __init__(
        self, alloc_result_dst_smem_ptr: Any = None, barrier_for_retrieve: Any = None, allocator_warp_id: Int = 0,
        is_two_cta: bool = False, num_allocated_columns: Int = 0, two_cta_tmem_dealloc_mbar_ptr: Any = None,
        arch: str = "sm_100",
    ) -> None:  # fmt: skip
        what = "TmemAllocator"
        if is_two_cta not in (True, False):
            raise CuteError(f"{what}: is_two_cta {is_two_cta!r} must be True or False, known when it is compiled")
        if not hasattr(barrier_for_retrieve, "arrive_and_wait"):
            raise CuteError(
                f"{what}: barrier_for_retrieve {barrier_for_retrieve!r} must be a pipeline.NamedBarrier of the warps "
                "that retrieve the address and of the one that allocates"
            )
        get_max_tmem_alloc_cols(arch)
        two = bool(is_two_cta)
        self.alloc_result_dst_smem_ptr = _own(alloc_result_dst_smem_ptr, dtypes.Int32, f"{what}: alloc_result_dst")
        self.barrier_for_retrieve, self.allocator_warp_id = barrier_for_retrieve, allocator_warp_id
        self.is_two_cta, self.num_allocated_columns, self.arch = two, num_allocated_columns, arch
        self.two_cta_tmem_dealloc_mbar_ptr = None
        if two:
            bar = _own(two_cta_tmem_dealloc_mbar_ptr, dtypes.Int64, f"{what}: two_cta_tmem_dealloc_mbar_ptr")
            self.two_cta_tmem_dealloc_mbar_ptr = bar
            _init(bar)

    @traced
    def check_valid_num_columns(self, num_columns: Int) -> None:
        """Raise CuteError unless `num_columns`, if it is static, can be allocated: a power of two from 32 to what the
        target has."""
        least, most = get_min_tmem_alloc_cols(self.arch), get_max_tmem_alloc_cols(self.arch)
        n = num_columns
        if type(n) is int and (n & (n - 1) or not least <= n <= most):
            raise CuteError(f"TmemAllocator: num_columns {n} must be a power of two from {least} to {most}")

    @traced
    def allocate(self, num_columns: Int) -> None:
        """Allocate `num_columns`, a power of two from 32 on: the allocating warp does, all of its lanes converged; of
        others the call does nothing. Raises CuteError for another static number. PTX tcgen05.alloc, sm_100f."""
        self.check_valid_num_columns(num_columns)
        to, two, arch = self.alloc_result_dst_smem_ptr, self.is_two_cta, self.arch
        seam.current().when(_is_warp(self.allocator_warp_id), lambda: alloc_tmem(num_columns, to, two, arch))
        self.num_allocated_columns = self.num_allocated_columns + num_columns

    @traced
    def wait_for_alloc(self) -> None:
        """Wait at `barrier_for_retrieve` until the address is there. All warps that the barrier counts, converged; the
        allocating warp calls `allocate` before. PTX barrier.cta.sync, sm_70."""
        isa.tcgen05_fence_before()
        self.barrier_for_retrieve.arrive_and_wait()
        isa.tcgen05_fence_after()

    @traced
    def retrieve_ptr(self, dtype: DType = Float32) -> Pointer:
        """Return a Pointer to what was allocated, of elements of type `dtype`. Any thread, after `wait_for_alloc`."""
        return retrieve_tmem_ptr(dtype, 16, self.alloc_result_dst_smem_ptr)

    @traced
    def reserve(self, num_columns: int) -> TmemBufferPool:
        """Allocate `num_columns`, a static power of two from 32 on, wait for them, and return the TmemBufferPool that
        gives them out. All warps that `barrier_for_retrieve` counts, converged. PTX tcgen05.alloc, sm_100f."""
        if type(num_columns) is not int:
            raise CuteError(
                f"TmemAllocator.reserve: num_columns {num_columns!r} must be static{how_static(num_columns)}"
            )
        self.allocate(num_columns)
        self.wait_for_alloc()
        return TmemBufferPool(self.retrieve_ptr(), num_columns)

    @traced
    def relinquish_alloc_permit(self) -> None:
        """Give up the right to allocate, so that the next block on the multiprocessor may: the allocating warp does,
        converged; of others the call does nothing. PTX tcgen05.relinquish_alloc_permit, sm_100f."""
        two = self.is_two_cta
        seam.current().when(_is_warp(self.allocator_warp_id), lambda: relinquish_tmem_alloc_permit(two))

    @traced
    def free(self, tmem_ptr: Pointer, num_columns: Int = 0) -> None:
        """Free columns: the allocating warp does, converged, of a pair after the other block's has come here too; of
        other warps the call does nothing. It is called once all have done with them.

        tmem_ptr: a Pointer to where they begin. num_columns: how many; 0: those of the one
        allocation. PTX
        tcgen05.dealloc, sm_100f."""
        whole = type(num_columns) is int and num_columns == 0
        columns = seam.known(self.num_allocated_columns) if whole else num_columns
        self.check_valid_num_columns(columns)
        two, arch, bar = self.is_two_cta, self.arch, self.two_cta_tmem_dealloc_mbar_ptr

        def release() -> None:
            if two:
                _meet_the_other(bar)
            dealloc_tmem(tmem_ptr, columns, two, arch)

        seam.current().when(_is_warp(self.allocator_warp_id), release)
        self.num_allocated_columns = self.num_allocated_columns - columns


def _own(ptr: Any, dtype: DType, what: str) -> Pointer:
    """A word of shared memory: the user's, or one of the kernel's static ones."""
    if ptr is None:
        return alloc_smem(dtype, 1)
    if not isinstance(ptr, Pointer) or ptr.space is not AddressSpace.smem or ptr.dtype.width != dtype.width:
        raise CuteError(f"{what} {ptr!r} must be a Pointer to {dtype} in shared memory")
    return ptr


def _is_warp(warp: Any) -> Any:
    return seam.current().compare("==", make_warp_uniform(warp_idx()), warp)


def _init(bar: Pointer) -> None:
    """Make `bar` a barrier of one arrival, and known to the cluster once it has met: thread 0 does."""
    b = seam.current()
    note = getattr(b, "note", None)
    if note is not None:
        note(bar.address, 8, "tensor memory is freed")
    tid = isa.sreg(register="tid.x") | isa.sreg(register="tid.y") | isa.sreg(register="tid.z")

    def make() -> None:
        isa.mbarrier_init(bar.address, 1)
        isa.fence_mbarrier_init()

    b.when(b.compare("==", tid, 0), make)


def _meet_the_other(bar: Pointer) -> None:
    """Tell the other block of the pair that this one has done with its tensor memory, and wait for the same of it."""
    isa.tcgen05_fence_before()
    sync_warp()
    seam.current().when(elect_one(), lambda: mbarrier_arrive(bar, block_idx_in_cluster() ^ 1))
    isa.mbarrier_wait_parity(bar.address, 0, scope="cluster")
    isa.tcgen05_fence_after()
