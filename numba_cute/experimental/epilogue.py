# SPDX-License-Identifier: Apache-2.0
"""Move a block's results out of tensor memory.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import layout
from ..arch.index import thread_idx, warp_idx
from ..arch.warp import make_warp_uniform
from ..atoms.copy_atom import make_copy_atom, make_tiled_copy_D
from ..layout import make_layout
from ..nvgpu.common import CopyUniversalOp
from ..nvgpu.tcgen05 import make_tmem_copy
from ..pipeline import TmaStoreFence
from ..seam import CuteError, current, traced
from ..tensor.algebra import flat_divide, zipped_divide
from ..tensor.pointer import AddressSpace
from ..tensor.tensor import Tensor, slice_tensor
from ..utils.layout_enum import LayoutEnum
from ..utils.sm100 import compute_epilogue_tile_shape, get_tmem_load_op, make_smem_layout_epi
from .memory import allocate, partition_and_copy
from .tensor_memory import make_t2r_rmem_layout
from .tma import tma_store

__all__ = ["epilogue_tma_store"]


@traced
def epilogue_tma_store(
    cta_tile_shape_mnk: Any, use_2cta_instrs: bool, accumulators: Tensor, gmem_tensor: Tensor, cta_tile_coord: Any,
    tma_store_pipe: Any, tma_store_warp_id: Any, epilogue_op: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Store a block's accumulators by TMA, piece by piece: tensor memory, registers, shared memory, the tensor. Gives
    `tma_store_pipe`. The four warps 0 to 3 of the block, after the accumulators are complete.

    cta_tile_shape_mnk: the block's tile (M, N, K). use_2cta_instrs: whether pairs multiply. accumulators: of one stage,
    (M, N), in tensor memory. gmem_tensor: the argument C (M, N, …) of a kernel of `cute.experimental.kernel`, whose
    type and order the results take. cta_tile_coord: which tile of it, mode by mode. tma_store_pipe: a TMAStorePipeline
    of the four warps. tma_store_warp_id: the warp that stores. epilogue_op: a traced function of the converted values,
    a TensorSSA; None leaves them. The shared memory between is allocated here; the block does not exit while a store
    reads it, so that no `tail` need follow. Raises CuteError for types and orders
    that do not go together. PTX tcgen05.ld, cp.async.bulk.tensor, sm_100f.

    See the example of `mainloop_mma`."""
    what = "epilogue_tma_store"
    if not isinstance(gmem_tensor, Tensor) or not isinstance(accumulators, Tensor):
        raise CuteError(f"{what}: accumulators {accumulators!r} and gmem_tensor {gmem_tensor!r} must be tensors")
    order, c_type, acc_type = LayoutEnum.from_tensor(gmem_tensor), gmem_tensor.element_type, accumulators.element_type
    epi_tile = compute_epilogue_tile_shape(cta_tile_shape_mnk, use_2cta_instrs, order, c_type)
    buffers = allocate(
        c_type, AddressSpace.smem, make_smem_layout_epi(c_type, order, epi_tile, tma_store_pipe.stages), alignment=1024
    )
    m, n = cta_tile_shape_mnk[:2]
    tile = slice_tensor(zipped_divide(gmem_tensor, (m, n)), ((None, None), cta_tile_coord))
    pieces, results = flat_divide(accumulators, epi_tile), flat_divide(tile, epi_tile)
    thread, warp = thread_idx()[0], make_warp_uniform(warp_idx())
    load = get_tmem_load_op(cta_tile_shape_mnk, order, c_type, acc_type, epi_tile, use_2cta_instrs)
    t2r = make_tmem_copy(load, slice_tensor(pieces, (None, None, 0, 0)))
    r2s = make_tiled_copy_D(make_copy_atom(CopyUniversalOp(), c_type), t2r).get_slice(thread)
    registers = make_t2r_rmem_layout(t2r, results, thread)
    sums, values = allocate(acc_type, AddressSpace.rmem, registers), allocate(c_type, AddressSpace.rmem, registers)
    for at in (make_layout(layout.shape(pieces.layout)[2:]).get_hier_coord(i) for i in range(_count(pieces))):
        partition_and_copy(t2r.get_slice(thread), slice_tensor(pieces, (None, None, *at)), sums)
        converted = sums.load().to(c_type)
        values.store(converted if epilogue_op is None else epilogue_op(converted))
        tma_store_pipe.acquire_sync()
        buffer = slice_tensor(buffers, (None, None, tma_store_pipe.get_index()))
        partition_and_copy(r2s, values, buffer)
        tma_store_pipe.commit_sync()
        there = slice_tensor(results, (None, None, *at))
        current().when(current().compare("==", warp, tma_store_warp_id), partial(tma_store, buffer, there))
        tma_store_pipe.release_advance()
    if type(tma_store_warp_id) is int:
        current().at_exit(partial(_drain, tma_store_warp_id))
    else:
        tma_store_pipe.tail()
    return tma_store_pipe


def _drain(warp: int) -> None:
    """Wait until no store of a warp reads shared memory any more."""
    current().when(current().compare("==", make_warp_uniform(warp_idx()), warp), TmaStoreFence(1).tail)


def _count(pieces: Tensor) -> int:
    """Return the number of pieces of a tile."""
    return int(layout.size(layout.shape(pieces.layout)[2:]))
