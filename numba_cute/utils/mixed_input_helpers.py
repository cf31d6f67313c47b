# SPDX-License-Identifier: Apache-2.0
"""GEMMs whose A has narrower elements than the multiplies take (Blackwell): threads load A from shared memory, convert
it, scale it, and put it where tcgen05.mma reads it, tensor memory (K-major) or shared memory (M-major).

The names and parameters are those of CuTe's kernels. They have run in the simulator and through the assembler only.
"""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..arch import cvt_i4_bf16_intrinsic, cvt_i8_bf16_intrinsic
from ..atoms.copy import autovec_copy, copy
from ..atoms.copy_atom import CopyAtom, TiledCopy, make_copy_atom, make_tiled_copy
from ..atoms.mma_atom import TiledMma
from ..dtypes import BFloat16, DType, Int4, Int8, Uint32
from ..layout import ComposedLayout, Layout, make_layout
from ..layout.ordered import each_held_once
from ..nvgpu import CopyUniversalOp, cpasync, tcgen05
from ..nvgpu.common import CtaGroup
from ..nvgpu.tcgen05 import OperandMajorMode, OperandSource
from ..seam import CuteError, Int, StaticEnum, traced
from ..seam.guards.messages import how_static
from ..tensor.algebra import filter_zeros, flat_divide, group_modes
from ..tensor.pointer import AddressSpace
from ..tensor.ssa import TensorSSA
from ..tensor.tensor import Tensor, make_rmem_tensor
from .contiguous_groups import (
    ContiguousGroupSearchState as ContiguousGroupSearchState,
    ContiguousGroupWorkTileInfo as ContiguousGroupWorkTileInfo,
    contiguous_group_search as contiguous_group_search,
    create_initial_contiguous_group_search_state as create_initial_contiguous_group_search_state,
    make_contiguous_group_work_tile_info as make_contiguous_group_work_tile_info,
)
from .fp8 import get_divisibility
from .gemm import sm100 as gemm
from .layout_enum import LayoutEnum
from .sm100 import make_smem_layout_a, make_smem_layout_b

__all__ = [
    "ContiguousGroupSearchState", "ContiguousGroupWorkTileInfo", "TransformMode", "compute_smem_layout",
    "contiguous_group_search", "create_initial_contiguous_group_search_state", "cvt_tensor_a",
    "epilog_gmem_copy_and_partition", "epilog_smem_copy_and_partition", "epilog_tmem_copy_and_partition",
    "get_copy_atom_a_transform", "get_divisibility", "get_gmem_layout_scale", "get_smem_layout_scale",
    "get_tma_atom_kind", "get_transform_a_source", "is_shuffle_a", "is_valid_mma_tiler_and_cluster_shape",
    "is_valid_scale_granularity", "is_valid_tensor_alignment", "make_contiguous_group_work_tile_info",
    "scale_partition", "scale_tma_partition", "store_transformed_a", "transform_partition",
]  # fmt: skip

_THREADS = 128
"""That transform A: a warpgroup."""


class TransformMode(StaticEnum):
    """The work on A: its elements are converted (ConvertOnly), or converted and scaled (ConvertScale).

    >>> [member.name for member in utils.TransformMode]
    ['ConvertOnly', 'ConvertScale']
    """

    ConvertOnly = 1
    ConvertScale = 2


def _need(ok: bool, what: str, message: str) -> None:
    if not ok:
        raise CuteError(f"mixed_input_helpers.{what}: {message}")


@traced
def get_transform_a_source(a_major_mode: OperandMajorMode) -> OperandSource:
    """Choose where the multiplies read the transformed A: in tensor memory if it is K-major, the only order that they
    read there, else in shared memory. a_major_mode: a member of OperandMajorMode; Raises CuteError for others.

    >>> K = nvgpu.OperandMajorMode.K
    >>> utils.get_transform_a_source(K)
    <OperandSource.TMEM: 'tmem'>
    """
    _need(
        isinstance(a_major_mode, OperandMajorMode), "get_transform_a_source", f"a_major_mode {a_major_mode!r} is none"
    )
    return OperandSource.TMEM if a_major_mode is OperandMajorMode.K else OperandSource.SMEM


@traced
def get_tma_atom_kind(mcast: bool, use_2cta_instrs: bool, is_b: bool) -> Any:
    """Choose the TMA load of an operand. mcast: whether blocks share it. use_2cta_instrs, is_b: B of a pair completes
    its bytes on the first block's barrier; A, which threads of each block transform, on the block's own. PTX
    cp.async.bulk.tensor, sm_90 (sm_100f of a pair).

    >>> type(utils.get_tma_atom_kind(True, False, False)).__name__
    'CopyBulkTensorTileG2SMulticastOp'
    """
    group = CtaGroup.TWO if use_2cta_instrs and is_b else CtaGroup.ONE
    op = cpasync.CopyBulkTensorTileG2SMulticastOp if mcast else cpasync.CopyBulkTensorTileG2SOp
    return op(cta_group=group)


@traced
def compute_smem_layout(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], a_dtype: DType, b_dtype: DType,
    load2trans_stage_count: int,
    trans2mma_stage_count: int,
) -> tuple[ComposedLayout, ComposedLayout, ComposedLayout]:  # fmt: skip
    """Make the shared memory layouts of A as it is loaded, of A transformed, and of B, each ((MN, K), rest MN, rest K,
    stages).

    tiled_mma: of b_dtype's elements. mma_tiler_mnk: the tile of all its CTAs. a_dtype, b_dtype: the elements of A as
    loaded, and of B and the transformed A. load2trans_stage_count: stages of A and B; trans2mma_stage_count: of the
    transformed A. Raises CuteError as `sm100.make_smem_layout_a` does.

    >>> K, one = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.BFloat16, K, K, cute.Float32, one, (128, 64))
    >>> for layout in utils.compute_smem_layout(tiled, (128, 64, 64), cute.Int8, cute.BFloat16, 3, 2):
    ...     print(layout)
    S<2,4,3> o 0 o ((128,16),1,4,3):((64,1),0,16,8192)
    S<3,4,3> o 0 o ((128,16),1,4,2):((64,1),0,16,8192)
    S<3,4,3> o 0 o ((64,16),1,4,3):((64,1),0,16,4096)
    """
    a = make_smem_layout_a(tiled_mma, mma_tiler_mnk, a_dtype, load2trans_stage_count)
    transformed = make_smem_layout_a(tiled_mma, mma_tiler_mnk, b_dtype, trans2mma_stage_count)
    return a, transformed, make_smem_layout_b(tiled_mma, mma_tiler_mnk, b_dtype, load2trans_stage_count)


# ---------------------------------------------------------------- scales


@traced
def get_gmem_layout_scale(
    scale_shape_mkl: Any, scale_granularity_m: int, scale_granularity_k: int, scale_major_mode: OperandMajorMode
) -> Layout:
    """Make the layout of A's scales in global memory as one for each element of A: ((granularity M, scales along M),
    (granularity K, scales along K), L), with stride 0 within a granule.

    scale_shape_mkl: the shape (M, K, L) of A. scale_granularity_m, scale_granularity_k: elements that share a scale.
    scale_major_mode: the contiguous mode, MN or K. Raises CuteError for granularities below 1.

    >>> M = nvgpu.OperandMajorMode.MN
    >>> utils.get_gmem_layout_scale((256, 4096, 1), 1, 128, M)
    ((1,256),(128,32),1):((0,1),(0,256),8192)
    """
    what = "get_gmem_layout_scale"
    ok = type(scale_granularity_m) is int and type(scale_granularity_k) is int
    ok = ok and scale_granularity_m > 0 and scale_granularity_k > 0
    _need(
        ok,
        what,
        f"granularities {scale_granularity_m!r}, {scale_granularity_k!r} must be static, at least 1"
        f"{how_static(scale_granularity_k)}",
    )
    _need(
        isinstance(scale_shape_mkl, tuple) and len(scale_shape_mkl) == 3, what,
        f"scale_shape_mkl {scale_shape_mkl!r} is not a shape (M, K, L)",
    )  # fmt: skip
    m, k, batch = scale_shape_mkl
    rows, columns = layout.ceil_div(m, scale_granularity_m), layout.ceil_div(k, scale_granularity_k)
    along_m, along_k = (1, rows) if scale_major_mode is OperandMajorMode.MN else (columns, 1)
    shape = ((scale_granularity_m, rows), (scale_granularity_k, columns), batch)
    return make_layout(shape, stride=((0, along_m), (0, along_k), rows * columns))


@traced
def get_smem_layout_scale(
    mma_tiler_mnk: tuple[int, int, int], use_2cta_instrs: bool, scale_granularity_m: int, scale_granularity_k: int,
    scale_major_mode: OperandMajorMode, a_scale_dtype: DType, num_scale_load2trans_stage: int,
) -> tuple[tuple[int, int], ComposedLayout, ComposedLayout]:  # fmt: skip
    """Make (the tile of scales (M, K) in elements of A, the layout of a stage in shared memory, that of all stages):
    (M, K) and (M, K, stages), a scale for each element with stride 0 within a granule, M-major.

    mma_tiler_mnk: the tile of all CTAs; use_2cta_instrs: of a pair each holds its half of M, and the mode of halves has
    stride 0. scale_granularity_m: 1. scale_granularity_k: a multiple or a divisor of the tile's K. scale_major_mode:
    MN. a_scale_dtype: the scales. num_scale_load2trans_stage: a static count. Raises CuteError for others.

    >>> MN = nvgpu.OperandMajorMode.MN
    >>> tile, stage, stages = utils.get_smem_layout_scale((128, 64, 64), False, 1, 64, MN, cute.BFloat16, 3)
    >>> tile
    (128, 64)
    >>> stages
    S<0,4,3> o 0 o ((128,1),(64,1),3):((1,0),(0,128),128)
    """
    what = "get_smem_layout_scale"
    m, _, k = layout.product_each(mma_tiler_mnk)
    ctas = 2 if use_2cta_instrs else 1
    _need(scale_granularity_m == 1, what, f"scale_granularity_m {scale_granularity_m!r} must be 1")
    granule = min(scale_granularity_k, k)
    _need(granule > 0 and k % granule == 0 and scale_granularity_k % granule == 0, what,
          f"scale_granularity_k {scale_granularity_k!r} must be a multiple or a divisor of K {k}")  # fmt: skip
    _need(scale_major_mode is OperandMajorMode.MN, what, f"scale_major_mode {scale_major_mode!r} must be MN")
    rows, columns = m // ctas, k // granule
    _need(rows * a_scale_dtype.width % 128 == 0, what, f"{rows} scales of {a_scale_dtype} do not make 16-byte rows")
    along_m = (rows, ctas), (1, 0)
    lay = make_layout((along_m[0], (granule, columns)), stride=(along_m[1], (0, rows)))
    # a stage begins where TMA may write: at a multiple of 128 bytes
    step = -(-rows * columns * a_scale_dtype.width // 1024) * 1024 // a_scale_dtype.width
    staged = layout.append(lay, make_layout(num_scale_load2trans_stage, stride=step))
    plain = layout.make_swizzle(0, 4, 3)
    one, all_stages = (layout.make_composed_layout(plain, 0, x) for x in (lay, staged))
    return (m, k), one, all_stages


@traced
def scale_tma_partition(
    tCsS: Tensor, tCgS: Tensor, tma_atom_s: CopyAtom, block_in_cluster_coord_vmnk: tuple[Int, Int, Int, Int],  # noqa: N803
    scale_cta_layout: Layout,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Give the parts of the scales that this CTA copies by TMA: (shared memory (box, stages), global memory (box, tiles
    M, K, L)).

    tCsS: shared memory as the leading CTA takes A apart, (MMA, MMA_M, MMA_K, stages). tCgS: the tensor of
    coordinates likewise, (MMA, MMA_M, MMA_K, tiles…). tma_atom_s: the atom. block_in_cluster_coord_vmnk: this CTA.
    scale_cta_layout: the CTAs along N, which share them.

    >>> from numba_cute.utils import mixed_input_helpers as mixed
    >>> one, MN, K = nvgpu.tcgen05.CtaGroup.ONE, nvgpu.OperandMajorMode.MN, nvgpu.OperandMajorMode.K
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.BFloat16, K, K, cute.Float32, one, (128, 64))
    >>> tile, stage, stages = mixed.get_smem_layout_scale((128, 64, 64), False, 1, 64, MN, cute.BFloat16, 2)
    >>> held = cute.runtime.from_dlpack(np.zeros(512, np.float16), assumed_align=16)
    >>> place = cute.recast_ptr(held.iterator, dtype=cute.BFloat16)
    >>> scales = cute.make_tensor(place, mixed.get_gmem_layout_scale((256, 128, 1), 1, 64, MN))
    >>> op = nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    >>> atom, coords = nvgpu.cpasync.make_tiled_tma_atom(op, scales, stage, tile)
    >>> def kernel(atom, coords):
    ...     s = utils.SmemAllocator().allocate_tensor(cute.BFloat16, stages.outer, 1024, stages.inner)
    ...     leader = mma.get_slice(0)
    ...     tiles = leader.partition_A(cute.local_tile(coords, tile, (None, None, None)))
    ...     to, source = mixed.scale_tma_partition(
    ...         leader.partition_A(s), tiles, atom, (0, 0, 0, 0), cute.make_layout(1)
    ...     )
    ...     print(source.shape[1:], to.shape[1:])  # tiles along M, K, L; stages
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1](atom, coords)
    (2, 2, 1) (2,)
    """
    to, source = cpasync.tma_partition(
        tma_atom_s, block_in_cluster_coord_vmnk[2], scale_cta_layout, group_modes(tCsS, 0, 3), group_modes(tCgS, 0, 3)
    )
    return filter_zeros(to), filter_zeros(source)


@traced
def scale_partition(
    src_copy_a: TiledCopy,
    tCsS: Tensor,
    transform_local_tidx: Any,
    mma_dtype: DType,  # noqa: N803
) -> tuple[Any, Tensor, Tensor, Tensor]:
    """Give a thread's part of the scales: (its copy, its part of shared memory (V, rest…, stages), registers for what
    one stage holds once, and these registers as one scale for each element of A).

    src_copy_a: the copy of A from shared memory, as `transform_partition` makes it. tCsS: shared memory (MMA, MMA_M,
    MMA_K, stages). transform_local_tidx: the thread's number in its warpgroup. mma_dtype: the scales' type. Copy
    `filter_zeros` of a stage to the registers by `cute.autovec_copy`.

    >>> from numba_cute.utils import mixed_input_helpers as mixed
    >>> one, SMEM = nvgpu.tcgen05.CtaGroup.ONE, nvgpu.tcgen05.OperandSource.SMEM
    >>> MN, K = nvgpu.OperandMajorMode.MN, nvgpu.OperandMajorMode.K
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.BFloat16, K, K, cute.Float32, one, (128, 64))
    >>> lay_a, lay_t, _ = mixed.compute_smem_layout(mma, (128, 64, 64), cute.Int8, cute.BFloat16, 2, 2)
    >>> _, _, lay_s = mixed.get_smem_layout_scale((128, 64, 64), False, 1, 64, MN, cute.BFloat16, 2)
    >>> load = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Int8)
    >>> shape = mma.partition_shape_A((128, 64))
    >>> store = mixed.get_copy_atom_a_transform(cute.BFloat16, False, SMEM, shape, cute.Int8)
    >>> def kernel():
    ...     smem, tidx = utils.SmemAllocator(), arch.thread_idx()[0]
    ...     a = smem.allocate_tensor(cute.Int8, lay_a.outer, 1024, lay_a.inner)
    ...     t = smem.allocate_tensor(cute.BFloat16, lay_t.outer, 1024, lay_t.inner)
    ...     s = smem.allocate_tensor(cute.BFloat16, lay_s.outer, 1024, lay_s.inner)
    ...     mode = mixed.TransformMode.ConvertScale
    ...     copy, _, _, _ = mixed.transform_partition(SMEM, mode, load, store, a, t, tidx)
    ...     _, _, once, each = mixed.scale_partition(copy, mma.get_slice(0).partition_A(s), tidx, cute.BFloat16)
    ...     if tidx == 0:
    ...         print(cute.size(once.shape), cute.size(each.shape))
    >>> cute.simulate(kernel, arch="sm_100a")[1, 128]()
    8 64
    """
    mine = src_copy_a.get_slice(transform_local_tidx)
    part = mine.partition_S(tCsS)
    one = part[(*(None,) * (layout.rank(part.layout) - 1), 0)]
    whole = each_held_once(one.layout)
    held = make_rmem_tensor(layout.filter_zeros(whole), mma_dtype)
    return mine, part, held, Tensor(held.iterator, whole)


# ---------------------------------------------------------------- the transform


@traced
def get_copy_atom_a_transform(
    mma_dtype: DType,
    use_2cta_instrs: bool,
    transform_a_source: OperandSource,
    a_smem_shape: tuple[Any, ...],
    a_dtype: DType,
) -> CopyAtom:
    """Make the atom that stores the transformed A: a tcgen05 store of all of K of one multiply, or of shared memory the
    widest that both elements' vectors allow.

    mma_dtype: the transformed elements, of 16 bits. use_2cta_instrs: whether pairs multiply. transform_a_source: where
    they are stored. a_smem_shape: `tiled_mma.partition_shape_A` of the tile. a_dtype: the elements as loaded. Raises
    CuteError for rows that are not 128, or 64 of a pair, in tensor memory. PTX tcgen05.st, sm_100f.

    >>> K, one, TMEM = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE, nvgpu.tcgen05.OperandSource.TMEM
    >>> tiled = utils.sm100.make_trivial_tiled_mma(cute.BFloat16, K, K, cute.Float32, one, (128, 64), TMEM)
    >>> shape = tiled.partition_shape_A((128, 64))
    >>> utils.get_copy_atom_a_transform(cute.BFloat16, False, TMEM, shape, cute.Int8).op
    St32x32bOp(repeat=<Repetition.x8: 8>, unpack=<Unpack.NONE: 1>)
    """
    what = "get_copy_atom_a_transform"
    if transform_a_source is OperandSource.SMEM:
        bits = min(128, 16 * 16) if a_dtype.width >= 8 else 128
        return make_copy_atom(CopyUniversalOp(), mma_dtype, num_bits_per_copy=bits)
    mode = a_smem_shape[0] if a_smem_shape else None
    _need(isinstance(mode, tuple) and len(mode) == 2, what, f"a_smem_shape {a_smem_shape} begins with no (M, K) tile")
    rows, k = layout.product_each(mode)
    _need(rows == 128, what, f"a CTA has {rows} rows of A in tensor memory; they must be 128")
    words = k * mma_dtype.width // 32
    return make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(words)), mma_dtype)


def _by_threads(atom: CopyAtom, lay: Any) -> TiledCopy:
    """128 threads over the part ((M, K), …) of one multiply in shared memory, each with rows of 16 bytes along M."""
    mode = layout.wrap(layout.shape(lay))[0]
    ok = isinstance(mode, tuple) and len(mode) == 2
    _need(ok, "transform_partition", f"A_transform's layout {lay} begins with no (M, K) tile")
    rows, k = layout.product_each(mode)
    each = 128 // atom.value_type.width
    across = min(rows // each, _THREADS)
    deep = _THREADS // across
    ok = rows % (each * across) == 0 and k % deep == 0
    _need(ok, "transform_partition", f"{rows} x {k} elements are too few for {_THREADS} threads")
    threads = make_layout((across, deep), stride=(each, rows))
    values = make_layout((each, rows // (each * across), k // deep), stride=(1, each * across, rows * deep))
    return make_tiled_copy(atom, make_layout((threads, values)), (rows * k,))


@traced
def transform_partition(
    transform_a_source: OperandSource, scale_mode: TransformMode, copy_atom_a_input: CopyAtom,
    copy_atom_a_transform: CopyAtom, sA_input: Tensor, A_transform: Tensor, transform_local_tidx: Any,  # noqa: N803
) -> tuple[TiledCopy, TiledCopy, Tensor, Tensor]:  # fmt: skip
    """Make the copies of A to registers and of the transformed A from them: (both tiled copies, this thread's part of A
    in shared memory, and of where the transformed A goes), each part (V, rest…, stages).

    transform_a_source: where A_transform lies. scale_mode: a TransformMode. copy_atom_a_input: accepted; each thread
    loads what it stores, as wide as that allows. copy_atom_a_transform: as `get_copy_atom_a_transform` makes it.
    sA_input: A in shared memory, ((M, K), rest M, rest K, stages). A_transform: the same in tensor memory
    (`make_fragment_A`) or shared memory. transform_local_tidx: the thread's number in the warpgroup that transforms.
    Raises CuteError for other memories.

    >>> from numba_cute.utils import mixed_input_helpers as mixed
    >>> K, one, SMEM = nvgpu.OperandMajorMode.K, nvgpu.tcgen05.CtaGroup.ONE, nvgpu.tcgen05.OperandSource.SMEM
    >>> mma = utils.sm100.make_trivial_tiled_mma(cute.BFloat16, K, K, cute.Float32, one, (128, 64))
    >>> lay_a, lay_t, _ = mixed.compute_smem_layout(mma, (128, 64, 64), cute.Int8, cute.BFloat16, 3, 2)
    >>> load = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Int8)
    >>> store = mixed.get_copy_atom_a_transform(
    ...     cute.BFloat16, False, SMEM, mma.partition_shape_A((128, 64)), cute.Int8
    ... )
    >>> def kernel():
    ...     smem = utils.SmemAllocator()
    ...     a = smem.allocate_tensor(cute.Int8, lay_a.outer, 1024, lay_a.inner)
    ...     t = smem.allocate_tensor(cute.BFloat16, lay_t.outer, 1024, lay_t.inner)
    ...     mode = mixed.TransformMode.ConvertOnly
    ...     _, _, mine, to = mixed.transform_partition(SMEM, mode, load, store, a, t, arch.thread_idx()[0])
    ...     if arch.thread_idx()[0] == 0:
    ...         print(mine.shape, to.shape)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 128]()
    ((8, 2), 1, 1, 4, 3) ((8, 2), 1, 1, 4, 2)
    """
    what = "transform_partition"
    _need(isinstance(scale_mode, TransformMode), what, f"scale_mode {scale_mode!r} is not a TransformMode")
    if transform_a_source is OperandSource.TMEM:
        _need(A_transform.memspace is AddressSpace.tmem, what, "A_transform must lie in tensor memory")
        tiled = tcgen05.make_tmem_copy(copy_atom_a_transform, A_transform[None, 0, 0, 0])
    else:
        _need(A_transform.memspace is AddressSpace.smem, what, "A_transform must lie in shared memory")
        tiled = _by_threads(copy_atom_a_transform, A_transform.layout)
    mine = tiled.get_slice(transform_local_tidx)
    return tiled, tiled, mine.partition_S(sA_input), mine.partition_D(A_transform)


@traced
def cvt_tensor_a(tensor: Tensor, mma_dtype: DType, shuffle: bool = False) -> Any:
    """Convert registers of A to the type of the multiplies, exactly: a vector.

    tensor: in registers, of Int8, Int4 or another type that `TensorSSA.to` converts. mma_dtype: the result's. shuffle:
    each eight Int4 lie in the order 0, 2, 1, 3, 4, 6, 5, 7 (BFloat16 alone), which takes fewer instructions. Raises
    CuteError for others."""
    dtype, count = tensor.element_type, int(layout.size(tensor.layout))
    eights = dtype == Int4 and mma_dtype == BFloat16 and count % 8 == 0
    _need(eights or not shuffle, "cvt_tensor_a",
          f"shuffle is for eights of Int4 to BFloat16, not {count} {dtype} to {mma_dtype}")  # fmt: skip
    if eights:
        words = TensorSSA(seam.current().bitcast(tensor.load().vector, Uint32), count // 8, Uint32)
        return cvt_i4_bf16_intrinsic(words, count, bool(shuffle)).reshape(tensor.shape)
    if dtype == Int8 and mma_dtype == BFloat16:
        return cvt_i8_bf16_intrinsic(tensor.load(), count)
    return tensor.load().to(mma_dtype)


@traced
def store_transformed_a(src: Tensor, dst: Tensor, dst_copy_a: TiledCopy) -> None:
    """Store the transformed A: `src`, a thread's registers, to `dst`, its part of a stage, by `dst_copy_a`. The whole
    warpgroup, converged; then it waits (`arch.fence_view_async_tmem_store`, or a proxy fence) and arrives. PTX
    tcgen05.st, sm_100f, or st.shared."""
    if dst.memspace is AddressSpace.tmem:
        copy(dst_copy_a, src, dst)
    else:
        autovec_copy(src, dst)


# ---------------------------------------------------------------- the epilogue


def _epilogue(cta_tile: Any, c_layout: LayoutEnum, c_dtype: DType, acc_dtype: DType, use_2cta: bool) -> Any:
    return gemm.EpilogueParams(acc_dtype, c_dtype, c_layout, cta_tile, use_2cta)


@traced
def epilog_tmem_copy_and_partition(
    cta_tile_shape_mnk: tuple[int, int, int], c_layout: LayoutEnum, c_dtype: DType, acc_dtype: DType, tidx: Any,
    tAcc: Tensor, gC_mnl: Tensor, epi_tile: Any, use_2cta_instrs: bool,  # noqa: N803
) -> tuple[TiledCopy, Tensor, Tensor]:  # fmt: skip
    """Make the copy of accumulators to registers: (tiled copy, this thread's part of the accumulators, registers).

    cta_tile_shape_mnk, c_layout, c_dtype, acc_dtype, use_2cta_instrs: as of `gemm.sm100.EpilogueParams`. tidx: the
    thread's number in its warpgroup. tAcc, gC_mnl: accumulators (MMA, MMA_M, MMA_N, stages) and the result (MMA,
    MMA_M, MMA_N, tiles…). epi_tile: the part (M, N) that leaves at once. PTX tcgen05.ld, sm_100f."""
    params = _epilogue(cta_tile_shape_mnk, c_layout, c_dtype, acc_dtype, use_2cta_instrs)
    acc, out = (gemm.transform_partitioned_tensor_layout(t) for t in (tAcc, gC_mnl))
    return gemm.epilogue_tmem_copy_and_partition(params, tidx, acc, out, epi_tile, use_2cta_instrs)


@traced
def epilog_smem_copy_and_partition(
    c_layout: LayoutEnum, c_dtype: DType, acc_dtype: DType, tiled_copy_t2r: TiledCopy, tTR_rC: Tensor, tidx: Any,  # noqa: N803
    sC: Tensor,  # noqa: N803
) -> tuple[TiledCopy, Tensor, Tensor]:  # fmt: skip
    """Make the copy of results to shared memory: (tiled copy, the registers as it takes them, this thread's part).
    c_layout, c_dtype, acc_dtype: as of `gemm.sm100.EpilogueParams`. tiled_copy_t2r, tTR_rC, tidx, sC: as of
    `gemm.sm100.epilogue_smem_copy_and_partition`. PTX stmatrix, sm_90, or st.shared."""
    params = _epilogue((0, 0, 0), c_layout, c_dtype, acc_dtype, False)
    return gemm.epilogue_smem_copy_and_partition(params, tiled_copy_t2r, tTR_rC, tidx, sC)


@traced
def epilog_gmem_copy_and_partition(
    c_dtype: DType, tidx: Any, tma_atom_c: CopyAtom | None, tiled_copy_t2r: TiledCopy | None, gC_tma: Any,  # noqa: N803
    gC_simt: Any, epi_tile: Any, sC: Any,  # noqa: N803
) -> tuple[Any, Any, Any, Any, Any]:  # fmt: skip
    """Partition results for their way to global memory: (the atom, its parts of shared memory and of coordinates), of
    TMA, and (an atom, this thread's part), of threads; None for the way that is not asked for. Both may be.

    c_dtype: the results. tidx: the thread's number in its warpgroup. tma_atom_c with gC_tma (MMA, MMA_M, MMA_N,
    tiles…) and sC (epi M, epi N, stages); tiled_copy_t2r with gC_simt, likewise. epi_tile: the part (M, N). Raises
    CuteError if neither atom is given."""
    given = tma_atom_c is not None or tiled_copy_t2r is not None
    _need(given, "epilog_gmem_copy_and_partition", "give tma_atom_c or tiled_copy_t2r")
    held = out = atom = mine = None
    if tma_atom_c is not None:
        parts = flat_divide(gemm.transform_partitioned_tensor_layout(gC_tma), epi_tile)
        held, out = cpasync.tma_partition(
            tma_atom_c, 0, make_layout(1), group_modes(sC, 0, 2), group_modes(parts, 0, 2)
        )
    if tiled_copy_t2r is not None:
        parts = flat_divide(gemm.transform_partitioned_tensor_layout(gC_simt), epi_tile)
        mine = tiled_copy_t2r.get_slice(tidx).partition_D(parts)
        atom = make_copy_atom(CopyUniversalOp(), c_dtype)
    return tma_atom_c, held, out, atom, mine


# ---------------------------------------------------------------- what can be done, on the host


def is_shuffle_a(a_major: str, k: int, a_dtype: DType, b_dtype: DType, scale_granularity_k: int) -> bool:
    """Tell whether A may lie with each eight elements shuffled, as `cvt_tensor_a` converts faster. a_major: "k" or "m".
    k: the problem's K. a_dtype, b_dtype: the elements. scale_granularity_k: elements that share a scale, or 0."""
    return a_major == "k" and k % 8 == 0 and a_dtype == Int4 and b_dtype == BFloat16 and scale_granularity_k % 8 == 0


def is_valid_mma_tiler_and_cluster_shape(
    mma_tiler_mnk: tuple[int, int, int], cluster_shape_mn: tuple[int, int], use_2cta_instrs: bool
) -> bool:
    """Tell whether tcgen05.mma has the tile `mma_tiler_mnk` of one CTA or, with `use_2cta_instrs`, a pair, with A in
    tensor memory too, and a GPU the cluster `cluster_shape_mn`."""
    (m, n, k), (cm, cn), ctas = mma_tiler_mnk, cluster_shape_mn, 2 if use_2cta_instrs else 1
    tile = m == 128 * ctas and n % (16 * ctas) == 0 and 16 * ctas <= n <= 256 and k % 16 == 0 and k > 0
    powers = all(x > 0 and x & (x - 1) == 0 and x <= 4 for x in (cm, cn))
    return tile and powers and cm % ctas == 0 and cm * cn <= 16


def is_valid_scale_granularity(
    scale_granularity_m: int, scale_granularity_k: int, a_dtype: DType, k: int, mma_tiler_k: int
) -> bool:
    """Tell whether A can be scaled so: not at all (both 0), or with a scale for each row (scale_granularity_m 1) and
    `scale_granularity_k` elements along K, a multiple of the tile's (`mma_tiler_k`) that divides `k`. a_dtype: the
    elements of A.

    >>> utils.is_valid_scale_granularity(1, 128, cute.Int8, 4096, 128)
    True
    """
    if (scale_granularity_m, scale_granularity_k) == (0, 0):
        return True
    ok = scale_granularity_m == 1 and scale_granularity_k > 0 and a_dtype.width <= 8
    return ok and scale_granularity_k % mma_tiler_k == 0 and k % scale_granularity_k == 0


def is_valid_tensor_alignment(
    m: int, n: int, k: int, a_dtype: DType, b_dtype: DType, c_dtype: DType, scale_dtype: DType, a_major: str,
    b_major: str, c_major: str, mma_tiler_mnk: tuple[int, int, int], use_2cta_instrs: bool,
    cluster_shape_mn: tuple[int, int], scale_granularity_m: int, scale_granularity_k: int,
) -> bool:  # fmt: skip
    """Tell whether TMA reaches all tensors: rows of whole 16 bytes along their contiguous modes, and tiles of A whose
    rows are.

    m, n, k: the problem. a_dtype, b_dtype, c_dtype, scale_dtype: the elements. a_major, b_major, c_major: the
    contiguous modes, "m", "n" or "k". mma_tiler_mnk, use_2cta_instrs, cluster_shape_mn: the tile, whether pairs
    multiply it, and the cluster, whose CTAs along N share A. scale_granularity_m, scale_granularity_k: 0 without
    scales."""

    def whole(extent: int, dtype: DType) -> bool:
        return extent * dtype.width % 128 == 0

    tile_m = mma_tiler_mnk[0] // (2 if use_2cta_instrs else 1)
    shared = cluster_shape_mn[1] == 1 or whole(tile_m // cluster_shape_mn[1] if a_major == "m" else k, a_dtype)
    scales = scale_granularity_m == 0 or (whole(m // scale_granularity_m, scale_dtype) and scale_granularity_k > 0)
    extents = {"m": m, "n": n, "k": k}
    operands = (a_major, a_dtype), (b_major, b_dtype), (c_major, c_dtype)
    tile = whole(tile_m if a_major == "m" else mma_tiler_mnk[2], a_dtype)
    return all(whole(extents[major], dtype) for major, dtype in operands) and shared and scales and tile
