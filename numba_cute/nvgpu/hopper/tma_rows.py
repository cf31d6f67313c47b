# SPDX-License-Identifier: Apache-2.0
"""TMA of four rows of a matrix at a time, each by its index: gathered to shared memory, or scattered from it. sm_100.

`make_gather4_tma_atom` makes the atom and the tensor of coordinates (rows, columns) on the host. In the kernel
`gather4_rows(coords, (r0, r1, r2, r3))` stands for those four rows; it is tiled along its columns as any other, and
`cute.copy` takes a tile of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ... import layout, seam
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType
from ...isa.facts.tensormap import TensorMapRecord
from ...layout import ComposedLayout, Layout, ScaledBasis
from ...seam import CuteError, frozen, known_as, traced
from ...seam.hooks.casting import derived
from ...tensor.tensor import Tensor
from ..common.checks import need
from ..common.choices import CtaGroup
from .tma import TmaInfo, global_pointer, split_swizzle, tma_info
from .tma_form import box_form
from .tma_ops import Load, Store, TmaCopyOp

__all__ = [
    "CopyBulkTensorGather4G2SMulticastOp", "CopyBulkTensorGather4G2SOp", "CopyBulkTensorScatter4S2GOp",
    "gather4_rows", "make_gather4_tma_atom",
]  # fmt: skip

_WHAT = "make_gather4_tma_atom"
ROWS = 4


class _Rows(TmaCopyOp):
    """Four rows; the coordinates are the first column and the rows."""

    def place(self, t: Tensor, what: str) -> tuple[dict[str, Any], int]:
        """Give the operands that say where the four rows begin, and the rank of the map. what: "src" or "dst"."""
        if not isinstance(t.iterator, tuple) or len(t.iterator) != ROWS + 1:
            raise CuteError(f"copy: {what} {t!r} must be a part of the tensor that cpasync.gather4_rows gave")
        return {"at": t.iterator}, 2


@frozen
class CopyBulkTensorGather4G2SOp(_Rows, Load):
    """Load four rows of a matrix by their indices from global to shared memory by TMA. A whole converged warp, of which
    one lane issues. PTX cp.async.bulk.tensor.tile::gather4, sm_100f.

    cta_group: as of CopyBulkTensorTileG2SOp. interleaved, recast: set by make_gather4_tma_atom.

    See the example of `gather4_rows`.
    """

    cta_group: CtaGroup = CtaGroup.ONE

    mode: ClassVar[str] = "tile::gather4"


@frozen
class CopyBulkTensorGather4G2SMulticastOp(_Rows, Load):
    """Load four rows of a matrix by their indices by TMA to the same place in several blocks of a cluster, those of
    `mcast_mask`. A whole converged warp, of which one lane issues.
    PTX cp.async.bulk.tensor.tile::gather4.multicast, sm_100f.

    cta_group: as of CopyBulkTensorTileG2SMulticastOp. interleaved, recast: set by make_gather4_tma_atom.

    >>> x = cute.runtime.from_dlpack(np.zeros((40, 64), np.float16), assumed_align=16)
    >>> four = cute.make_layout((4, 64), stride=(64, 1))
    >>> op = nvgpu.cpasync.CopyBulkTensorGather4G2SMulticastOp()
    >>> nvgpu.cpasync.make_gather4_tma_atom(op, x, four).smem_layout
    (4,64):(64,1)
    """

    cta_group: CtaGroup = CtaGroup.ONE

    mode: ClassVar[str] = "tile::gather4"
    multicast = True


@frozen
class CopyBulkTensorScatter4S2GOp(_Rows, Store):
    """Store four rows from shared memory to a matrix in global memory, by their indices, by TMA. A whole converged
    warp, of which one lane issues, after the writers' proxy fences and a barrier.
    PTX cp.async.bulk.tensor.tile::scatter4, sm_100f.

    interleaved, recast: set by make_gather4_tma_atom.

    >>> out, four = np.zeros((40, 8), np.float32), cute.make_layout((4, 8), stride=(8, 1))
    >>> op, x = nvgpu.cpasync.CopyBulkTensorScatter4S2GOp(), cute.runtime.from_dlpack(out, assumed_align=16)
    >>> atom, coords = nvgpu.cpasync.make_gather4_tma_atom(op, x, four)
    >>> def kernel(atom, coords):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 32, alignment=128), four)
    ...     if arch.lane_idx() == 0:
    ...         s.fill(1)
    ...         arch.fence_view_async_shared()
    ...     arch.sync_warp()
    ...     rows = nvgpu.cpasync.gather4_rows(coords, (3, 30, 7, 1000))
    ...     cute.copy(atom, cute.group_modes(s, 0, 2), cute.group_modes(rows, 0, 2))
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32](atom, coords)
    >>> np.flatnonzero(out[:, 0])
    array([ 3,  7, 30])
    """

    mode: ClassVar[str] = "tile::scatter4"


def make_gather4_tma_atom(
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    *,
    internal_type: DType | None = None,
    oob_fill: str = "zero",
    l2_promotion: str = "128B",
) -> TmaInfo:
    """Make the TMA atom that copies four rows of a matrix by their indices to or from shared memory, and the tensor of
    its coordinates, for `gather4_rows`.

    op: CopyBulkTensorGather4G2SOp(), its multicast form, or CopyBulkTensorScatter4S2GOp(). gmem_tensor: (rows,
    columns), contiguous along columns. smem_layout: of the four rows, (4, columns of one copy), swizzled or not.
    internal_type, oob_fill, l2_promotion: as for make_tiled_tma_atom. Call it on the host; pass both results to the
    kernel. Raises CuteError for other shapes, and as make_tiled_tma_atom does. PTX cp.async.bulk.tensor, sm_100f.

    >>> x = cute.runtime.from_dlpack(np.zeros((40, 64), np.float16), assumed_align=16)
    >>> four = cute.make_layout((4, 64), stride=(64, 1))
    >>> atom, coords = nvgpu.cpasync.make_gather4_tma_atom(nvgpu.cpasync.CopyBulkTensorGather4G2SOp(), x, four)
    >>> coords
    Tensor((0, 0), (40,64):(1@1,1@0))
    """
    given = (op, smem_layout, internal_type, oob_fill, l2_promotion)
    return derived(_gathering, gmem_tensor, *given)  # type: ignore[no-any-return]


def _gathering(
    gmem_tensor: Tensor, op: TmaCopyOp, smem_layout: Any, internal_type: DType | None, oob_fill: str, l2_promotion: str
) -> TmaInfo:
    need(_WHAT, isinstance(op, _Rows), f"op {op!r} is none that gathers or scatters four rows")
    need(_WHAT, seam.current_or(None) is None, "call it on the host and pass the atom and the tensor to the kernel")
    ptr = global_pointer(gmem_tensor)
    flat = layout.rank(gmem_tensor.layout) == 2 and not any(isinstance(s, tuple) for s in gmem_tensor.shape)
    need(_WHAT, flat, f"gmem_tensor {gmem_tensor.layout} must have two modes, (rows, columns)")
    swizzle, plain = split_swizzle(smem_layout)
    shape = layout.product_each(plain.shape)
    need(
        _WHAT,
        isinstance(shape, tuple) and len(shape) == 2 and shape[0] == ROWS,
        f"smem_layout {smem_layout} must be (4, columns of one copy)",
    )
    tile = layout.composition(layout.make_identity_layout(gmem_tensor.shape), shape)
    options = {"swizzle": swizzle, "oob_fill": oob_fill, "l2_promotion": l2_promotion}
    made = tma_info(op, gmem_tensor, ptr, smem_layout, plain, tile, 1, internal_type, None, options)
    record = made.copy_atom.tensor_map
    if not isinstance(record, TensorMapRecord):
        return made
    need(
        _WHAT,
        record.box == (shape[1], ROWS) and record.rank == 2,
        f"smem_layout {plain} must hold its rows one after the other, each of {shape[1]} columns of gmem_tensor "
        f"{gmem_tensor.layout} that are neighbours: one copy would be a box of {record.box}",
    )
    form = box_form(made.copy_atom.form.dtype, smem_layout, Layout((shape[1], ROWS), (ScaledBasis(1, (0,)), 0)))
    atom: CopyAtom = replace(made.copy_atom, tensor_map=replace(record, box=(shape[1], 1)), form=form)
    return TmaInfo(atom, made.tma_tensor, smem_layout)


@traced
@known_as("cute_nvgpu.cpasync")
def gather4_rows(coords: Tensor, rows: Any) -> Tensor:
    """Give the tensor (4, columns) of four rows, for `cute.copy` with a gathering or scattering atom.

    coords: the tensor that make_gather4_tma_atom gave. rows: four row indices; one beyond the matrix reads as zeros, or
    is not written. Raises CuteError for others. Any thread.

    >>> x = cute.runtime.from_dlpack(np.repeat(np.arange(40, dtype=np.float32), 8).reshape(40, 8), assumed_align=16)
    >>> four = cute.make_layout((4, 8), stride=(8, 1))
    >>> atom, coords = nvgpu.cpasync.make_gather4_tma_atom(nvgpu.cpasync.CopyBulkTensorGather4G2SOp(), x, four)
    >>> def kernel(atom, coords):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 32, alignment=128), four)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 128)
    ...     arch.sync_warp()
    ...     rows = nvgpu.cpasync.gather4_rows(coords, (3, 30, 7, 1000))
    ...     cute.copy(atom, cute.group_modes(rows, 0, 2), cute.group_modes(s, 0, 2), tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0, 0], s[1, 0], s[2, 0], s[3, 0])
    >>> cute.simulate(kernel, arch="sm_100a")[1, 32](atom, coords)
    3.0 30.0 7.0 0.0
    """
    at = coords.iterator if isinstance(coords, Tensor) else None
    if not isinstance(at, tuple) or len(at) != 2 or layout.rank(coords.layout) != 2:
        raise CuteError(f"gather4_rows: coords {coords!r} must be the tensor that make_gather4_tma_atom gave")
    if not isinstance(rows, tuple) or len(rows) != ROWS:
        raise CuteError(f"gather4_rows: rows {rows!r} must be four row indices")
    lay = Layout((ROWS, coords.shape[1]), (0, ScaledBasis(1, (0,))))
    return Tensor((at[0], *rows), lay)
