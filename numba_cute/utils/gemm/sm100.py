# SPDX-License-Identifier: Apache-2.0
"""The epilogue of a Blackwell GEMM: accumulators from tensor memory to registers, part by part, and from there to
global memory, by TMA through shared memory or directly.

Four warps call these together, converged: a warpgroup, whose first warp's number is a multiple of 4. They have run in
the simulator and through the assembler only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import isa, layout, seam
from ...arch.sync import barrier, fence_proxy
from ...arch.tmem import fence_view_async_tmem_load
from ...arch.warp import elect_one, make_warp_uniform, sync_warp
from ...atoms.copy import basic_copy_if, copy
from ...atoms.copy_atom import CopyAtom, TiledCopy, make_copy_atom, make_tiled_copy_D
from ...dtypes import Boolean, DType
from ...layout import Layout
from ...nvgpu import cpasync, tcgen05
from ...nvgpu.common import CopyUniversalOp
from ...seam import CuteError, Int, frozen, traced
from ...tensor.algebra import flat_divide, group_modes
from ...tensor.tensor import Tensor, make_rmem_tensor, slice_tensor
from ..layout_enum import LayoutEnum
from ..sm100 import get_smem_store_op, get_tmem_load_op

__all__ = [
    "EpilogueParams", "epilogue", "epilogue_smem_copy_and_partition", "epilogue_tma_store",
    "epilogue_tmem_copy_and_partition", "transform_partitioned_tensor_layout",
]  # fmt: skip


@frozen
class EpilogueParams:
    """A GEMM kernel's choices that its epilogue depends on: what `gemm_kernel` is to the functions here, which take any
    object with these attributes.

    acc_dtype, c_dtype: the accumulators' type and that of what leaves. c_layout: its order, a LayoutEnum.
    cta_tile_shape_mnk: the CTA's tile. use_2cta_instrs: whether pairs multiply. epilogue_warp_id: the four warps, the
    first of which issues TMA's stores. epilog_sync_bar_id: a named barrier of theirs. num_c_stage: the buffers of
    shared memory. iter_acc_early_release_in_epilogue: the part after which overlapping accumulators are given back.

    >>> from numba_cute.utils.gemm import sm100
    >>> params = sm100.EpilogueParams(cute.Float32, cute.Float16, utils.LayoutEnum.ROW_MAJOR, (128, 64, 64))
    >>> params.epilogue_warp_id
    (0, 1, 2, 3)
    """

    acc_dtype: DType
    c_dtype: DType
    c_layout: LayoutEnum
    cta_tile_shape_mnk: tuple[int, int, int]
    use_2cta_instrs: bool = False
    epilogue_warp_id: tuple[int, ...] = (0, 1, 2, 3)
    epilog_sync_bar_id: int = 1
    num_c_stage: int = 2
    iter_acc_early_release_in_epilogue: int = 0


@traced
def transform_partitioned_tensor_layout(tensor: Tensor) -> Tensor:
    """View what a product is made of, ((M, N), rest M, rest N, rest…), as a tile: ((M, rest M), (N, rest N), rest…).

    tensor: an accumulator, or a partition_C, in any memory. Raises CuteError for other modes.

    >>> from numba_cute.utils.gemm import sm100
    >>> part = cute.make_identity_tensor(((128, 64), 2, 3, 4))
    >>> sm100.transform_partitioned_tensor_layout(part).shape
    ((128, 2), (64, 3), 4)
    """
    lay = tensor.layout if isinstance(tensor, Tensor) else None
    if not isinstance(lay, Layout) or layout.rank(lay) < 3 or layout.rank(lay[0]) != 2:
        raise CuteError(
            f"transform_partitioned_tensor_layout: {tensor!r} must have modes ((M, N), rest M, rest N, rest…), as "
            "partition_C and make_fragment_C give them"
        )
    (s, *shapes), (d, *strides) = lay.shape, lay.stride
    shape = (s[0], shapes[0]), (s[1], shapes[1]), *shapes[2:]
    return Tensor(tensor.iterator, Layout(shape, ((d[0], strides[0]), (d[1], strides[1]), *strides[2:])))


@traced
def epilogue_tmem_copy_and_partition(
    gemm_kernel: Any,
    tidx: Int,
    tAcc: Tensor,
    tCgC: Tensor,
    epi_tile: Any,
    use_2cta_instrs: bool,  # noqa: N803
) -> tuple[TiledCopy, Tensor, Tensor]:
    """Make the copy of accumulators to registers: (tiled copy, this thread's part of the accumulators, registers).

    gemm_kernel: as for `EpilogueParams`. tidx: the thread's number in its warpgroup. tAcc, tCgC: accumulators ((M, …),
    (N, …), stages) and the result ((M, …), (N, …), rest…), as `transform_partitioned_tensor_layout` gives them.
    epi_tile: the part (M, N) that leaves at once. use_2cta_instrs: whether pairs multiply. The parts are (T2R, T2R_M,
    T2R_N, parts M, parts N, stages) and (T2R, T2R_M, T2R_N). PTX tcgen05.ld, sm_100f.

    >>> from numba_cute.utils.gemm import sm100
    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> params = sm100.EpilogueParams(cute.Float32, cute.Float16, row, (128, 64, 64))
    >>> def kernel():
    ...     place = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16)
    ...     acc = cute.make_tensor(place, cute.make_layout((128, 64, 2), stride=(65536, 1, 64)))
    ...     c = cute.make_identity_tensor((128, 64, 1, 1, 1))
    ...     _, parts, r = sm100.epilogue_tmem_copy_and_partition(params, 0, acc, c, (128, 32), False)
    ...     print(parts.shape, r.shape)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1]()
    (((32, 32), 1), 1, 1, 1, 2, 2) ((32, 1), 1, 1)
    """
    k = gemm_kernel
    atom = get_tmem_load_op(k.cta_tile_shape_mnk, k.c_layout, k.c_dtype, k.acc_dtype, epi_tile, use_2cta_instrs)
    parts = flat_divide(tAcc, epi_tile)
    tiled = tcgen05.make_tmem_copy(atom, _first(parts, 2))
    mine = tiled.get_slice(tidx)
    here = mine.partition_D(flat_divide(tCgC, epi_tile))
    return tiled, mine.partition_S(parts), make_rmem_tensor(_first(here, 3).shape, k.acc_dtype)


def _first(t: Tensor, modes: int) -> Tensor:
    """The first `modes` modes of a tensor, at 0 of the others."""
    return slice_tensor(t, (*(None,) * modes, *(0,) * (layout.rank(t.layout) - modes)))


@traced
def epilogue_smem_copy_and_partition(
    gemm_kernel: Any,
    tiled_copy_t2r: TiledCopy,
    tTR_rC: Tensor,
    tidx: Int,
    sC: Tensor,  # noqa: N803
) -> tuple[TiledCopy, Tensor, Tensor]:
    """Make the copy of results to shared memory: (tiled copy, the registers as it takes them, this thread's part).

    gemm_kernel: as for `EpilogueParams`. tiled_copy_t2r, tTR_rC: the copy of accumulators to registers, and registers
    of the results of the same shape. tidx: the thread's number in its warpgroup. sC: shared memory (epi M, epi N,
    stages). PTX stmatrix, sm_90, or st.shared.

    >>> from numba_cute.utils.gemm import sm100
    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> params = sm100.EpilogueParams(cute.Float32, cute.Float16, row, (128, 64, 64))
    >>> def kernel():
    ...     place = cute.make_ptr(cute.Float32, 0, cute.AddressSpace.tmem, assumed_align=16)
    ...     acc = cute.make_tensor(place, cute.make_layout((128, 64, 2), stride=(65536, 1, 64)))
    ...     c = cute.make_identity_tensor((128, 64, 1, 1, 1))
    ...     t2r, _, r = sm100.epilogue_tmem_copy_and_partition(params, 0, acc, c, (128, 32), False)
    ...     half = cute.make_rmem_tensor(r.shape, cute.Float16)
    ...     rows = cute.make_layout((128, 32, 2), stride=(32, 1, 4096))
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float16, 8192, alignment=128), rows)
    ...     _, _, to = sm100.epilogue_smem_copy_and_partition(params, t2r, half, 0, s)
    ...     print(to.shape)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1]()
    ((1, 32), 1, 1, 2)
    """
    k = gemm_kernel
    atom = get_smem_store_op(k.c_layout, k.c_dtype, k.acc_dtype, tiled_copy_t2r)
    tiled = make_tiled_copy_D(atom, tiled_copy_t2r)
    return tiled, tiled.retile(tTR_rC), tiled.get_slice(tidx).partition_D(sC)


def _converted(op: Any, accumulators: Tensor, dtype: DType, to: Tensor) -> None:
    values = accumulators.load().to(dtype)
    to.store(values if op is None else op(values))


def _release(k: Any, acc_pipeline: Any, state: Any) -> None:
    """Give the accumulators back: each thread if the pipeline counts them all, else one lane of each warp."""
    group = acc_pipeline.sync_object_empty.cg
    threads = 32 * len(k.epilogue_warp_id) * (2 if k.use_2cta_instrs else 1)
    if isinstance(group.size, int) and group.size * (1 if group.agent.name == "Thread" else 32) == threads:
        acc_pipeline.consumer_release(state)
        return
    isa.tcgen05_fence_before()
    sync_warp()
    seam.current().when(elect_one(), lambda: acc_pipeline.consumer_release(state))


@traced
def epilogue_tma_store(
    gemm_kernel: Any,
    epi_tidx: Int,
    warp_idx: Int,
    tma_atom_c: CopyAtom,
    tCtAcc_base: Tensor,  # noqa: N803 - CuTe's names
    sC: Tensor,  # noqa: N803
    tCgC: Tensor,  # noqa: N803
    epi_tile: Any,
    num_tiles_executed: Int,
    epilogue_op: Any,
    mma_tile_coord_mnl: tuple[Int, ...],
    acc_consumer_state: Any,
    acc_pipeline: Any,
    c_pipeline: Any,
) -> Any:
    """Store one tile of results by TMA: wait for its accumulators, and take them through shared memory part by part.
    Returns the advanced `acc_consumer_state`.

    gemm_kernel: as for `EpilogueParams`. epi_tidx: the thread's number in its warpgroup. warp_idx: the warp's in the
    CTA. tma_atom_c: the TMA store. tCtAcc_base: the accumulators, of all stages, as `make_fragment_C` lays them out.
    sC: shared memory (epi M, epi N, num_c_stage). tCgC: `partition_C` of the TMA tensor's tiles, ((M, N), rest M, rest
    N, tiles…). epi_tile: the part (M, N) that leaves at once. num_tiles_executed: the tiles before this one, so that
    buffers go round. epilogue_op: a traced function of the converted values, a TensorSSA; None leaves them.
    mma_tile_coord_mnl: which tile. acc_consumer_state, acc_pipeline: a consumer's state and the PipelineUmmaAsync.
    c_pipeline: the PipelineTmaStore, of num_c_stage stages; at the end the first warp calls its `producer_tail`. PTX
    tcgen05.ld, cp.async.bulk.tensor, sm_100f.

    See the example of `epilogue`."""
    k = gemm_kernel
    acc, whole = (transform_partitioned_tensor_layout(t) for t in (tCtAcc_base, tCgC))
    t2r, mine, registers = epilogue_tmem_copy_and_partition(k, epi_tidx, acc, whole, epi_tile, k.use_2cta_instrs)
    results = make_rmem_tensor(registers.shape, k.c_dtype)
    r2s, to_store, to_smem = epilogue_smem_copy_and_partition(k, t2r, results, epi_tidx, sC)
    store = _store_by_tma(k, warp_idx, tma_atom_c, sC, flat_divide(whole, epi_tile), mma_tile_coord_mnl, c_pipeline)
    acc_pipeline.consumer_wait(acc_consumer_state)
    accumulators = _grouped(_staged(mine, acc_consumer_state.index), 3)
    count = int(layout.size(accumulators.shape, (3,)))
    for part in range(count):
        copy(t2r, accumulators[None, None, None, part], registers)
        fence_view_async_tmem_load()
        if part == count - 1:
            _release(k, acc_pipeline, acc_consumer_state)
        _converted(epilogue_op, r2s.retile(registers), k.c_dtype, to_store)
        buffer = (num_tiles_executed * count + part) % k.num_c_stage
        copy(r2s, to_store, to_smem[None, None, None, buffer])
        store(part, buffer)
    acc_consumer_state.advance()
    return acc_consumer_state


def _store_by_tma(
    k: Any, warp_idx: Any, atom: CopyAtom, buffers: Tensor, parts: Tensor, coord: Any, c_pipeline: Any
) -> Callable[[int, Any], None]:
    """Make the function that stores a part from a buffer, once all have written it, and waits until the next buffer is
    free."""
    part_of, there = cpasync.tma_partition(
        atom, 0, layout.make_layout(1), group_modes(buffers, 0, 2), group_modes(parts, 0, 2)
    )
    there = _grouped(there[(None, None, None, *coord)], 1)
    first = seam.current().compare("==", make_warp_uniform(warp_idx), k.epilogue_warp_id[0])

    def meet() -> None:
        barrier(barrier_id=k.epilog_sync_bar_id, number_of_threads=32 * len(k.epilogue_warp_id))

    def issue(part: int, buffer: Any) -> None:
        copy(atom, part_of[None, buffer], there[None, part])
        c_pipeline.producer_commit()
        c_pipeline.producer_acquire()

    def store(part: int, buffer: Any) -> None:
        fence_proxy("async.shared", space="cta")
        meet()
        seam.current().when(first, lambda: issue(part, buffer))
        meet()

    return store


def _staged(mine: Tensor, stage: Any) -> Tensor:
    """The accumulators of one stage, (T2R, T2R_M, T2R_N, parts M, parts N); without stages all."""
    return mine[(*(None,) * 5, stage)] if layout.rank(mine.layout) > 5 else mine


def _grouped(t: Tensor, begin: int) -> Tensor:
    return group_modes(t, begin, layout.rank(t.layout))  # type: ignore[no-any-return]


@traced
def epilogue(
    gemm_kernel: Any,
    epi_tidx: Int,
    tCtAcc_base: Tensor,  # noqa: N803
    tCgC: Tensor,  # noqa: N803
    epi_tile: Any,
    epilogue_op: Any,
    mma_tile_coord_mnl: tuple[Int, ...],
    acc_consumer_state: Any,
    acc_pipeline: Any,
    *,
    tCcC_base: Tensor | None = None,  # noqa: N803
    mC_mnl: Tensor | None = None,  # noqa: N803
    overlapping_accum: bool = False,
) -> Any:
    """Store one tile of results from registers: wait for its accumulators, and write them part by part. Returns the
    advanced `acc_consumer_state`.

    tCgC: `partition_C` of the result's tiles in global memory. tCcC_base: `partition_C` of the same tiles of the
    coordinates of mC_mnl, the result: what lies outside of it is not written, else all is. overlapping_accum: whether
    the one stage of accumulators is at two places in turn, by its phase, that share columns: the first's parts come in
    reverse, and they are given back after part `gemm_kernel.iter_acc_early_release_in_epilogue`. gemm_kernel, epi_tidx,
    tCtAcc_base, epi_tile, epilogue_op, mma_tile_coord_mnl, acc_consumer_state, acc_pipeline: as for
    `epilogue_tma_store`. Raises CuteError for tCcC_base or mC_mnl alone. PTX tcgen05.ld, sm_100f.

    >>> from numba_cute.nvgpu import tcgen05
    >>> single, row, tile = cute.Float32, utils.LayoutEnum.ROW_MAJOR, (128, 32)
    >>> k, group = nvgpu.OperandMajorMode.K, lambda n: pipeline.CooperativeGroup(pipeline.Agent.Thread, n)
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.Float16, k, k, single, tcgen05.CtaGroup.ONE, tile)
    >>> params = utils.gemm.sm100.EpilogueParams(single, single, row, (128, 32, 64))
    >>> buffers = utils.sm100.make_smem_layout_epi(single, row, tile, 2)
    >>> fragment = mma.make_fragment_C((*mma.partition_shape_C(tile), 2))
    >>> atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), single)
    >>> def kernel(tma, coords, c):
    ...     tid, warp = arch.thread_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    ...     smem = utils.SmemAllocator()
    ...     sC = smem.allocate_tensor(single, buffers.outer, 1024, buffers.inner)
    ...     done = pipeline.PipelineUmmaAsync.create(num_stages=2, producer_group=group(1), consumer_group=group(4))
    ...     stores = pipeline.PipelineTmaStore.create(num_stages=2, producer_group=group(128))
    ...     tmem = utils.TmemAllocator(None, pipeline.NamedBarrier(2, 160), 0)
    ...     tmem.allocate(64)
    ...     tmem.wait_for_alloc()
    ...     acc = cute.make_tensor(tmem.retrieve_ptr(single), fragment.layout)
    ...     if warp < 4:  # leave in tensor memory what two tiles' multiplies would have
    ...         for t in range(2):
    ...             there = acc[(None, None), 0, 0, t]
    ...             put = tcgen05.make_tmem_copy(atom, there)
    ...             mine = put.get_slice(tid)
    ...             r = cute.make_rmem_tensor(mine.partition_S(cute.make_identity_tensor(tile)).shape, single)
    ...             r.fill(tid)
    ...             cute.copy(put, r, mine.partition_D(there))
    ...         arch.fence_view_async_tmem_store()
    ...     arch.sync_threads()
    ...     if warp == 4:
    ...         state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
    ...         for t in range(2):
    ...             done.producer_acquire(state)
    ...             done.producer_commit(state)
    ...             state.advance()
    ...     else:
    ...         state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
    ...         parts = lambda x: mma.get_slice(0).partition_C(cute.local_tile(x, tile, (None, None)))
    ...         state = utils.epilogue_tma_store(
    ...             params, tid, warp, tma, acc, sC, parts(coords), tile, 0, None, (0, 0), state, done, stores)
    ...         state = utils.epilogue(params, tid, acc, parts(c), tile, None, (0, 1), state, done)
    ...         if warp == 0:
    ...             stores.producer_tail()
    ...     tmem.wait_for_alloc()
    ...     tmem.free(acc.iterator)
    >>> c = np.zeros((128, 64), np.float32)
    >>> tC, store = cute.runtime.from_dlpack(c, assumed_align=16), nvgpu.cpasync.CopyBulkTensorTileS2GOp()
    >>> tma, coords = nvgpu.cpasync.make_tiled_tma_atom(store, tC, cute.slice_(buffers, (None, None, 0)), tile)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 160](tma, coords, tC)
    >>> bool((c == np.arange(128)[:, None]).all())
    True
    """
    if (tCcC_base is None) != (mC_mnl is None):
        raise CuteError("epilogue: tCcC_base and mC_mnl, which say what lies outside of the result, are given together")
    k, b = gemm_kernel, seam.current()
    acc, whole = (transform_partitioned_tensor_layout(t) for t in (tCtAcc_base, tCgC))
    t2r, mine, registers = epilogue_tmem_copy_and_partition(k, epi_tidx, acc, whole, epi_tile, k.use_2cta_instrs)
    results = make_rmem_tensor(registers.shape, k.c_dtype)

    def parts_of(tiles: Tensor) -> Tensor:
        mine = t2r.get_slice(epi_tidx).partition_D(flat_divide(tiles, epi_tile))
        return _grouped(mine[(None,) * 5 + tuple(mma_tile_coord_mnl)], 3)

    there = parts_of(whole)
    at = None if tCcC_base is None else parts_of(transform_partitioned_tensor_layout(tCcC_base))
    phase = acc_consumer_state.phase
    stage = phase if overlapping_accum else acc_consumer_state.index
    acc_pipeline.consumer_wait(acc_consumer_state)
    accumulators = _grouped(_staged(mine, stage), 3)
    count = int(layout.size(accumulators.shape, (3,)))
    last = k.iter_acc_early_release_in_epilogue if overlapping_accum else count - 1
    for nth in range(count):
        part = b.select(b.compare("==", phase, 0), count - 1 - nth, nth) if overlapping_accum else nth
        copy(t2r, accumulators[None, None, None, part], registers)
        fence_view_async_tmem_load()
        if nth == last:
            _release(k, acc_pipeline, acc_consumer_state)
        _converted(epilogue_op, registers, k.c_dtype, results)
        _store(results, there[None, None, None, part], None if at is None else at[None, None, None, part], mC_mnl)
    acc_consumer_state.advance()
    return acc_consumer_state


def _store(results: Tensor, there: Tensor, at: Tensor | None, whole: Tensor | None) -> None:
    """Write registers to global memory. at: the coordinates in `whole`, outside of which nothing is written."""
    if at is None or whole is None:
        copy(make_copy_atom(CopyUniversalOp(), results.element_type), results, there)
        return
    inside = make_rmem_tensor(results.shape, Boolean)
    for i in range(int(layout.size(results.shape))):
        inside[i] = layout.elem_less(at[i], whole.shape)
    basic_copy_if(inside, results, there)
