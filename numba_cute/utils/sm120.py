# SPDX-License-Identifier: Apache-2.0
"""Block-scaled products by warps (mma.sync.block_scale): their tiles, where each lane's scale factors lie, and how
results leave. sm_120."""

from __future__ import annotations

from typing import Any

from .. import layout
from ..atoms.copy_atom import CopyAtom, make_copy_atom
from ..atoms.mma_atom import ThrMma, TiledMma
from ..atoms.op import OPERAND_MODES, Field
from ..dtypes import DType
from ..isa.facts.fragment_layouts import mma_sync_scales
from ..layout import Layout
from ..layout.ordered import each_held_once
from ..nvgpu import CopyUniversalOp, warp
from ..seam import CuteError, traced
from ..tensor.tensor import Tensor, make_rmem_tensor, slice_tensor
from .layout_enum import LayoutEnum

__all__ = [
    "get_layoutSFA_TV", "get_layoutSFB_TV", "get_permutation_mnk", "partition_fragment_SFA", "partition_fragment_SFB",
    "sm120_get_smem_store_op",
]  # fmt: skip


@traced
def get_permutation_mnk(tile_shape_mnk: Any, sf_vec_size: int, use_mxf8f6f4: bool) -> tuple[Any, Any, int]:
    """Choose what a tiled block-scaled MMA deals out at once: M, N and K for `make_tiled_mma(permutation_mnk=)`.

    tile_shape_mnk: the tile, of which M counts up to 128; along N the columns of two neighbouring warps' instructions
    alternate where it has 32 or more. sf_vec_size: elements that share a scale factor, 16 or 32. use_mxf8f6f4: whether
    K of an instruction is 32, as with elements of a byte each, or 64. Raises CuteError for others, and for an N below
    8.

    >>> utils.get_permutation_mnk((128, 128, 128), 32, True)
    (128, (8,2,2):(1,16,8), 32)
    """
    what = "get_permutation_mnk"
    if not isinstance(tile_shape_mnk, tuple) or len(tile_shape_mnk) != 3:
        raise CuteError(f"{what}: tile_shape_mnk {tile_shape_mnk!r} must be (M, N, K)")
    if sf_vec_size not in (16, 32) or not isinstance(use_mxf8f6f4, bool):
        raise CuteError(f"{what}: sf_vec_size {sf_vec_size!r} must be 16 or 32, use_mxf8f6f4 {use_mxf8f6f4!r} a bool")
    m, n, _ = layout.product_each(tile_shape_mnk)
    if n >= 32:
        columns = layout.make_layout((8, 2, 2), stride=(1, 16, 8))
    elif n in (8, 16):
        columns = layout.make_layout(8) if n == 8 else layout.make_layout((8, 2), stride=(1, 8))
    else:
        raise CuteError(f"{what}: tile_shape_mnk {tile_shape_mnk!r}: N must be 8, 16, or at least 32")
    return min(m, 128), columns, 32 if use_mxf8f6f4 else 64


def _tiled(what: str, tiled_mma: Any) -> TiledMma:
    if not isinstance(tiled_mma, TiledMma) or Field.SFA not in tiled_mma.op.fields or tiled_mma.op.row() is None:
        raise CuteError(f"{what}: tiled_mma {tiled_mma!r} must be tiled of a block-scaled operation of a warp")
    return tiled_mma


def _scales(operand: str, mma: TiledMma) -> Layout:
    """From (lane, value) to the elements of one instruction's operand whose factors a lane holds."""
    return mma_sync_scales(operand, mma.shape_mnk[2])


@traced
def get_layoutSFA_TV(tiled_mma: TiledMma) -> Layout:  # noqa: N802 - CuTe's name
    """Give the layout from (thread, value) to the elements (M, K) of the tile whose scale factors of A each thread
    holds, for `make_tiled_copy`: elements that share a factor are values of one thread. tiled_mma: a tiled block-scaled
    operation of a warp. Raises CuteError for others.

    >>> op = nvgpu.warp.MmaMXF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU)
    >>> utils.blackwell_helpers.get_layoutSFA_TV(cute.make_tiled_mma(op, (1, 1, 1)))
    ((2,2,8),(64,(1,1))):((8,0,1),(16,(0,0)))
    """
    mma = _tiled("get_layoutSFA_TV", tiled_mma)
    return mma.layout_tv("A", _scales("A", mma))


@traced
def get_layoutSFB_TV(tiled_mma: TiledMma) -> Layout:  # noqa: N802
    """Give the layout from (thread, value) to the elements (N, K) of the tile whose scale factors of B each thread
    holds. tiled_mma: as for `get_layoutSFA_TV`.

    >>> op = nvgpu.warp.MmaMXF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU)
    >>> utils.blackwell_helpers.get_layoutSFB_TV(cute.make_tiled_mma(op, (1, 1, 1)))
    ((4,8),(64,(1,1))):((0,1),(8,(0,0)))
    """
    mma = _tiled("get_layoutSFB_TV", tiled_mma)
    return mma.layout_tv("B", _scales("B", mma))


def _fragment(operand: str, what: str, factors: Any, thr_mma: Any, tidx: Any) -> Tensor:
    if not isinstance(factors, Tensor) or not isinstance(thr_mma, ThrMma):
        raise CuteError(f"{what}: {factors!r} must be a tensor of scale factors, and thr_mma {thr_mma!r} a ThrMma")
    mma = _tiled(what, thr_mma.tiled_mma)
    x, y = OPERAND_MODES[operand]
    parts = Tensor(factors.iterator, mma.thrfrg(operand, factors.layout, _scales(operand, mma)))
    coord = mma.thr_layout_vmnk.get_flat_coord(tidx)
    rest = (None,) * layout.rank(layout.shape(parts.layout)[1][1])
    mine = slice_tensor(parts, ((coord[0], (coord[x + 1], coord[y + 1])), (None, rest)))
    return make_rmem_tensor(each_held_once(mine.layout), mma.op.sf_type)  # type: ignore[attr-defined]


@traced
def partition_fragment_SFA(sfa_tensor: Tensor, thr_mma: ThrMma, tidx: Any) -> Tensor:  # noqa: N802
    """Make the registers for this thread's scale factors of A, (V, MMA_M, MMA_K…), with stride 0 along elements that
    share one; `cute.gemm` takes them beside the fragment of A, as (A, SFA).

    sfa_tensor: the factors (M, K) in shared memory, with stride 0 in K (`sm120_make_smem_layout_sfa`). thr_mma:
    `tiled_mma.get_slice(tidx)`. tidx: the thread. Raises CuteError for what is no such operation.

    >>> from numba_cute.utils import blackwell_helpers as helpers
    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaMXF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU))
    >>> def kernel():
    ...     rows = cute.make_layout((16, (32, 2)), stride=(2, (0, 1)))  # a factor for each 32 of K
    ...     sfa = cute.make_tensor(arch.alloc_smem(cute.Float8E8M0FNU, 32), rows)
    ...     r = helpers.partition_fragment_SFA(sfa, mma.get_slice(0), 0)
    ...     print(r.shape, cute.size(cute.filter_zeros(r).shape))
    >>> cute.simulate(kernel, arch="sm_120a")[1, 1]()
    ((32, 2), 1, 1) 2
    """
    return _fragment("A", "partition_fragment_SFA", sfa_tensor, thr_mma, tidx)


@traced
def partition_fragment_SFB(sfb_tensor: Tensor, thr_mma: ThrMma, tidx: Any) -> Tensor:  # noqa: N802
    """Make the registers for this thread's scale factors of B, (V, MMA_N, MMA_K…). sfb_tensor: the factors (N, K) in
    shared memory. thr_mma, tidx: as for `partition_fragment_SFA`.

    >>> from numba_cute.utils import blackwell_helpers as helpers
    >>> mma = cute.make_tiled_mma(nvgpu.warp.MmaMXF4Op(cute.Float4E2M1FN, cute.Float32, cute.Float8E8M0FNU))
    >>> def kernel():
    ...     rows = cute.make_layout((8, (32, 2)), stride=(2, (0, 1)))  # a factor for each 32 of K
    ...     sfb = cute.make_tensor(arch.alloc_smem(cute.Float8E8M0FNU, 16), rows)
    ...     r = helpers.partition_fragment_SFB(sfb, mma.get_slice(0), 0)
    ...     print(r.shape, cute.size(cute.filter_zeros(r).shape))
    >>> cute.simulate(kernel, arch="sm_120a")[1, 1]()
    ((32, 2), 1, 1) 2
    """
    return _fragment("B", "partition_fragment_SFB", sfb_tensor, thr_mma, tidx)


@traced
def sm120_get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """Make the atom that stores accumulators to shared memory: stmatrix of 2 matrices for 16-bit elements, transposed
    where D is M-major; else one element at a time.

    layout_d: the order of D, a LayoutEnum. elem_ty_d: the type that is stored. elem_ty_acc: the accumulators' type.
    Raises CuteError for others. PTX stmatrix, sm_90.

    >>> row = utils.LayoutEnum.ROW_MAJOR
    >>> utils.blackwell_helpers.sm120_get_smem_store_op(row, cute.Float16, cute.Float32).op
    StMatrix8x8x16bOp(transpose=False, num_matrices=2)
    """
    what = "sm120_get_smem_store_op"
    for name, value, kind in (("layout_d", layout_d, LayoutEnum), ("elem_ty_d", elem_ty_d, DType),
                              ("elem_ty_acc", elem_ty_acc, DType)):  # fmt: skip
        if not isinstance(value, kind):
            raise CuteError(f"{what}: {name} {value!r} is not a {kind.__name__}")
    if elem_ty_d.width == 16 and elem_ty_acc.width <= 32:
        return make_copy_atom(warp.StMatrix8x8x16bOp(layout_d.is_m_major_c(), 2), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)
