# SPDX-License-Identifier: Apache-2.0
"""`block_copy`: a whole tile by TMA, with no partitioning in the kernel."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..arch.index import block_idx_in_cluster
from ..atoms.copy import copy
from ..atoms.copy_atom import CopyAtom
from ..dtypes import Uint32
from ..nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, TmaCopyOp, tma_partition
from ..seam import CuteError, Int, traced
from ..tensor.algebra import group_modes
from ..tensor.pointer import Pointer
from ..tensor.tensor import Tensor

__all__ = ["block_copy"]


@traced
def block_copy(
    atom: CopyAtom,
    src: Tensor,
    dst: Tensor,
    *,
    tma_bar_ptr: Pointer | None = None,
    mcast_mask: Int | None = None,
    cta_coord: Int = 0,
    cta_layout: Any = 1,
    cache_policy: Int | None = None,
    tma_multicast: Any = None,
) -> None:
    """Copy the tile `src` to the tile `dst` by a TMA atom: `cpasync.tma_partition` and `cute.copy` in one. A whole
    converged warp; it expects no bytes, commits nothing and waits for nothing.

    atom: of `make_tiled_tma_atom`. src, dst: one tile in shared memory, and the same tile of the tensor that
    make_tiled_tma_atom gave, as `local_tile` cuts it; which is which decides between load and store. cta_coord,
    cta_layout: of a multicast load, which of the CTAs that share the tile this is, and their numbering. tma_bar_ptr,
    mcast_mask, cache_policy: as for `cute.copy`. tma_multicast: instead of mcast_mask, cta_coord and cta_layout, which
    CTAs share the tile: {"cluster_shape": (m, n), "multicast_dim": "M"} are those of one row of the cluster, which
    have their coordinate M in common, and "N" those of one column. PTX cp.async.bulk.tensor, sm_90.

    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
    >>> def kernel(atom, coords):
    ...     bar = arch.alloc_smem(cute.Int64, 1)
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     with arch.elect_one():
    ...         arch.mbarrier_init(bar, 1)
    ...         arch.mbarrier_init_fence()
    ...         arch.mbarrier_arrive_and_expect_tx(bar, 32)
    ...     arch.sync_warp()
    ...     utils.block_copy(atom, cute.local_tile(coords, (2, 4), (1, 1)), s, tma_bar_ptr=bar)
    ...     arch.mbarrier_wait(bar, 0)
    ...     if arch.lane_idx() == 0:
    ...         print(s[0, 0])
    >>> cute.simulate(kernel)[1, 32](atom, coords)
    20.0
    """
    if not isinstance(atom, CopyAtom) or not isinstance(atom.op, TmaCopyOp):
        raise CuteError(f"block_copy: atom {atom!r} is not a TMA atom, as make_tiled_tma_atom makes it")
    for t, name in ((src, "src"), (dst, "dst")):
        if not isinstance(t, Tensor):
            raise CuteError(f"block_copy: {name} {t!r} is not a tensor")
    if tma_multicast is not None:
        shared = _sharing(tma_multicast)
        if isinstance(atom.op, CopyBulkTensorTileG2SMulticastOp):  # others load all of it for this CTA alone
            cta_coord, cta_layout, mcast_mask = shared
    loads = isinstance(src.iterator, tuple)
    if loads == isinstance(dst.iterator, tuple):
        raise CuteError(
            f"block_copy: of src {src!r} and dst {dst!r} one must be in shared memory, and the other a part of the "
            "tensor that make_tiled_tma_atom gave"
        )
    smem, gmem = (_whole(t) for t in ((dst, src) if loads else (src, dst)))
    numbering = cta_layout if isinstance(cta_layout, layout.Layout) else layout.make_layout(cta_layout)
    in_smem, in_gmem = tma_partition(atom, cta_coord, numbering, smem, gmem)
    source, target = (in_gmem, in_smem) if loads else (in_smem, in_gmem)
    copy(atom, source, target, tma_bar_ptr=tma_bar_ptr, mcast_mask=mcast_mask, cache_policy=cache_policy)


def _sharing(multicast: Any) -> tuple[Any, int, Any]:
    """Return which of the CTAs that share a tile this is, how many they are, and their mask."""
    try:
        shape, fixed = tuple(multicast["cluster_shape"]), multicast["multicast_dim"]
    except (KeyError, TypeError):
        shape, fixed = (), None
    if fixed not in ("M", "N") or len(shape) != 2 or not all(type(n) is int and n > 0 for n in shape):
        raise CuteError(
            f'block_copy: tma_multicast {multicast!r} must be {{"cluster_shape": (m, n), "multicast_dim": "M" or "N"}}'
        )
    rank = block_idx_in_cluster()
    m, n = seam.remainder(rank, shape[0]), seam.quotient(rank, shape[0])
    if fixed == "M":
        column = sum(1 << (i * shape[0]) for i in range(shape[1]))
        return n, shape[1], Uint32(column) << Uint32(m)
    return m, shape[0], Uint32((1 << shape[0]) - 1) << Uint32(n * shape[0])


def _whole(t: Tensor) -> Any:
    return group_modes(t, 0, layout.rank(t.layout))
