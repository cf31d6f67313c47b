# SPDX-License-Identifier: Apache-2.0
"""The operations that copy boxes by a tensor map: loads, multicast loads, stores, reductions. sm_90."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

from ... import isa, seam
from ...arch.warp import elect_one
from ...atoms.copy_atom import CopyAtom
from ...atoms.instructions import Part, instructions
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Int32, Uint16, Uint32
from ...isa import Instr
from ...isa.facts.tensormap import COORDINATE_BITS
from ...layout import make_layout
from ...seam import CuteError, frozen, known_as
from ...tensor.pointer import physical, shared_address
from ...tensor.ssa import ReductionOp
from ...tensor.tensor import Tensor
from ..common.by_row import ByRow, Choice
from ..common.checks import in_shared
from ..common.choices import CtaGroup
from ..common.copies import one_thread
from .new_map import NewTensorMap
from .tma_form import check_form

__all__ = [
    "CopyBulkTensorTileG2SMulticastOp", "CopyBulkTensorTileG2SOp", "CopyBulkTensorTileS2GOp",
    "CopyReduceBulkTensorTileS2GOp", "TmaCopyOp",
]  # fmt: skip


def _coordinates(t: Tensor, what: str) -> tuple[Any, ...]:
    if not isinstance(t.iterator, tuple):
        raise CuteError(f"copy: {what} {t!r} must be a part of the tensor that make_tiled_tma_atom gave")
    return t.iterator


def _shared(t: Tensor, what: str, op: TmaCopyOp) -> Any:
    p = in_shared(t, f"copy: {what}")
    if p.alignment % 128:
        raise CuteError(f"copy: {what} {t!r} must be aligned to 128 bytes; allocate it with byte_alignment=128")
    if op.recast > 1:
        seam.current().reinterprets(seam.known(p.address), p.dtype.width, p.dtype.width * op.recast)
    plain = p.swizzle is None or p.swizzle.bits
    return p.address if plain else physical(p)  # which says that bytes are meant as they lie


def _no_predicate(pairs: Any) -> None:
    if any(p is not None for _, _, p in pairs):
        raise CuteError("copy: pred is not for TMA, which leaves out elements outside the tensor automatically")


def _barrier(bar: Any, group: CtaGroup) -> Any:
    """The barrier that a load completes its bytes on: of a pair, the first block's."""
    if bar is None:
        raise CuteError("copy: a TMA load needs tma_bar_ptr, the mbarrier that its bytes complete on")
    bar = shared_address(bar, "copy: tma_bar_ptr")
    if group is CtaGroup.ONE:
        return bar
    return isa.mapa(bar, Uint32(isa.sreg_cluster(register="cluster_ctarank")) & 0xFFFFFFFE)


@frozen
@known_as("cute_nvgpu.cpasync")
class TmaCopyOp(CopyOp):
    """Copy boxes by a tensor map: the base of all operations that do. PTX cp.async.bulk.tensor, sm_90.

    interleaved: True if the map's tensor is cut into slices of channels; recast: how many elements of the tensor one of
    the map's is; both set by what makes the atom.

    >>> isinstance(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), nvgpu.cpasync.TmaCopyOp)
    True
    >>> isinstance(nvgpu.cpasync.CopyBulkG2SOp(), nvgpu.cpasync.TmaCopyOp)
    False
    """

    interleaved: bool = field(default=False, kw_only=True, repr=False)
    recast: int = field(default=1, kw_only=True, repr=False)

    partitioned: ClassVar[str] = (
        "cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(smem_tile, 0, n), "
        "cute.group_modes(gmem_tile, 0, n))"
    )
    im2col: ClassVar[bool] = False
    mode: ClassVar[str] = "tile"
    """The mode of the instruction; im2col has others."""
    writes: ClassVar[bool] = False
    """True if it writes to the tensor."""

    @property
    def reduction(self) -> ReductionOp | None:
        """Return the reduction by which a store combines elements with those in memory; None if it does not."""
        return None

    def _to_ir(self) -> TmaCopyOp:
        """Return itself: files of the CuTe DSL hand on what its compiler has of it."""
        return self

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        what = type(self).__name__
        if num_bits == 0:
            maker = "make_im2col_tma_atom" if self.im2col else "make_tiled_tma_atom"
            raise CuteError(f"{what}: a TMA atom is made by cpasync.{maker}, on the host")
        values, blocks = num_bits // dtype.width, self.blocks
        if blocks == 1:
            return one_thread(values)
        tv = make_layout((blocks, values), stride=(values, 1))  # a thread of each block of the pair, and its own box
        return CopyTraits(make_layout(blocks), tv, tv, tv)

    def place(self, t: Tensor, what: str) -> tuple[dict[str, Any], int]:
        """Give the operands that say where in the tensor `t` begins, and its rank. what: "src" or "dst"."""
        at = _coordinates(t, what)
        if self.recast > 1:
            first = at[0] // self.recast if isinstance(at[0], int) else Int32(at[0]) >> self.recast.bit_length() - 1
            at = (first, *at[1:])
        return {"at": at}, len(at)


def _whole_chunks(atom: CopyAtom, op: TmaCopyOp, args: list[Any], what: str) -> None:
    """An error if a box is known to begin where TMA cannot: the coordinates along the contiguous mode."""
    width = atom.value_type.width * op.recast
    for *_, place, _ in args:
        first = place["at"][0]
        if not op.interleaved and isinstance(first, int) and first * width % COORDINATE_BITS:
            raise CuteError(
                f"copy: {what} begins at element {first} of the tensor's contiguous mode, {first * width} bits from "
                f"its beginning; it must be a multiple of {COORDINATE_BITS // 8} bytes, else the GPU ends the kernel "
                f"with an illegal instruction; use a multiple of {max(1, COORDINATE_BITS // width)} elements"
            )


def _map_of(atom: CopyAtom) -> Any:
    """The address of an atom's tensor map; an error for one that the kernel has not written yet."""
    if isinstance(atom.tensor_map, NewTensorMap):
        raise CuteError(
            "copy: the atom was made in the kernel, and its tensor map is not in memory yet: write it to global memory "
            "with cpasync.copy_tensormap(atom, ptr), release and acquire it, and give tma_desc_ptr=ptr"
        )
    return atom.tensor_map


def _begins_inside(op: TmaCopyOp, args: list[Any]) -> None:
    """An error if a store is known to begin before the tensor: only loads may."""
    for *_, place, _ in args:
        if not op.im2col and any(isinstance(c, int) and c < 0 for c in place["at"]):
            raise CuteError(
                f"copy: dst begins at coordinates {tuple(place['at'])} (innermost first) of the tensor; a TMA store or "
                f"reduction may end outside of the tensor but not begin before it, else the GPU ends the kernel with "
                f"an illegal instruction; use coordinates of 0 or more"
            )


def _issue_loads(op: Any, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any) -> None:
    """Issue the loads by one lane of the warp."""
    name = type(op).__name__
    if not isinstance(op.cta_group, CtaGroup):
        raise CuteError(f"{name}: cta_group {op.cta_group!r} is not a member of CtaGroup")
    if mask is not None and not op.multicast:
        if isinstance(mask, int) and mask not in (0, 1):
            raise CuteError(f"copy: mcast_mask needs an atom of {name.removesuffix('Op')}MulticastOp()")
        mask = None  # 0, or 1 of a single block: nothing is multicast, and one kernel serves atoms of either kind
    if mask is None and op.multicast:
        raise CuteError("copy: a multicast load needs mcast_mask; make it with cpasync.create_tma_multicast_mask")
    _no_predicate(pairs)
    bar = _barrier(bar, op.cta_group)
    args = [(_shared(d, "dst", op), *op.place(s, "src")) for s, d, _ in pairs]
    for s, d, _ in pairs:
        check_form(atom, d, s, "dst")
    _whole_chunks(atom, op, args, "src")
    ctas = None if mask is None else Uint16(mask)
    how = {"mode": "im2col" if op.im2col else op.mode, "pair": op.cta_group is CtaGroup.TWO}

    def issue() -> None:
        for dst, place, rank in args:
            isa.cp_async_bulk_tensor_g2s(
                dst=dst, map=_map_of(atom), bar=bar, cta_mask=ctas, policy=policy, rank=rank, **place, **how
            )

    seam.current().when(elect_one(), issue)


def _issue_prefetches(op: Any, atom: CopyAtom, tensors: list[Tensor], policy: Any = None) -> None:
    args = [op.place(t, "src") for t in tensors]
    _whole_chunks(atom, op, args, "src")
    mode = "im2col" if op.im2col else op.mode

    def issue() -> None:
        for place, rank in args:
            isa.cp_async_bulk_prefetch_tensor(map=_map_of(atom), policy=policy, rank=rank, mode=mode, **place)

    seam.current().when(elect_one(), issue)


def _issue_stores(
    operation: Any, row: Instr, atom: CopyAtom, pairs: Any, bar: Any, mask: Any, policy: Any, **how: Any
) -> None:
    """Issue the stores by one lane of the warp."""
    if bar is not None or mask is not None:
        raise CuteError("copy: tma_bar_ptr and mcast_mask are for TMA loads; wait for a store by its bulk group")
    _no_predicate(pairs)
    args = [(_shared(s, "src", operation), *operation.place(d, "dst")) for s, d, _ in pairs]
    for s, d, _ in pairs:
        check_form(atom, s, d, "src")
    _whole_chunks(atom, operation, args, "dst")
    _begins_inside(operation, args)
    mode = "im2col_no_offs" if operation.im2col else operation.mode

    def issue() -> None:
        for src, place, rank in args:
            row(map=_map_of(atom), src=src, policy=policy, rank=rank, mode=mode, at=place["at"], **how)

    seam.current().when(elect_one(), issue)


class Load(TmaCopyOp):
    """Base of the loads. cta_group: whose barrier the bytes complete on."""

    rows = (isa.cp_async_bulk_tensor_g2s,)
    cta_group: Any

    @property
    def blocks(self) -> int:
        return int(self.cta_group.value)

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        _issue_loads(self, atom, parts, bar, mask, policy)

    def issue_prefetch(self, atom: CopyAtom, src: Tensor) -> None:
        _issue_prefetches(self, atom, [s for s, _, _ in instructions(atom, src, src, None)])


@frozen
class CopyBulkTensorTileG2SOp(Load):
    """Load a box of a tensor from global to shared memory by TMA. A whole converged warp, of which one lane issues.
    PTX cp.async.bulk.tensor, sm_90.

    cta_group: CtaGroup.ONE, or TWO: the bytes complete on the barrier of the first block of a pair (sm_100a).
    interleaved, recast: set by make_tiled_tma_atom.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (2, 4))
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

    cta_group: CtaGroup = CtaGroup.ONE


@frozen
class CopyBulkTensorTileG2SMulticastOp(Load):
    """Load a box of a tensor by TMA to the same place in several blocks of a cluster, those of `mcast_mask`. A whole
    converged warp, of which one lane issues. PTX cp.async.bulk.tensor.multicast, sm_90.

    cta_group: CtaGroup.ONE, or TWO: the bytes complete on the barriers of the first blocks of the receivers' pairs
    (sm_100a). interleaved, recast: set by make_tiled_tma_atom.

    >>> op = nvgpu.cpasync.CopyBulkTensorTileG2SMulticastOp()
    >>> x = cute.runtime.from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16)
    >>> box = cute.make_layout((32, 64), stride=(64, 1))
    >>> info = nvgpu.cpasync.make_tiled_tma_atom(op, x, box, (32, 64), num_multicast=2)  # each block loads a half
    >>> info.tma_tensor
    Tensor((0, 0), (64,64):(1@1,1@0))
    """

    cta_group: CtaGroup = CtaGroup.ONE

    multicast = True


class Store(TmaCopyOp):
    """Base of the stores."""

    rows = (isa.cp_async_bulk_tensor_s2g,)
    writes = True

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        _issue_stores(self, isa.cp_async_bulk_tensor_s2g, atom, parts, bar, mask, policy)


@frozen
class CopyBulkTensorTileS2GOp(Store):
    """Store a box from shared memory to a tensor in global memory by TMA. A whole converged warp, of which one lane
    issues, after the writers' proxy fences and a barrier. PTX cp.async.bulk.tensor, sm_90.

    interleaved, recast: set by make_tiled_tma_atom.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.arange(64, dtype=np.float32).reshape(8, 8), assumed_align=16)
    >>> box = cute.make_layout((2, 4), stride=(4, 1))
    >>> atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), x, box, (2, 4))
    >>> def kernel(atom, coords, x):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 8, alignment=128), box)
    ...     if arch.lane_idx() == 0:
    ...         s.fill(-1)
    ...         arch.fence_view_async_shared()
    ...     arch.sync_warp()
    ...     utils.block_copy(atom, s, cute.local_tile(coords, (2, 4), (1, 1)))
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    ...     if arch.lane_idx() == 0:
    ...         print(x[2, 3], x[2, 4])
    >>> cute.simulate(kernel)[1, 32](atom, coords, x)
    19.0 -1.0
    """


@frozen
class CopyReduceBulkTensorTileS2GOp(ByRow, TmaCopyOp):
    """Combine a box in shared memory with a tensor in global memory by TMA, each element atomically and in no order. A
    whole converged warp, of which one lane issues, after the writers' proxy fences and a barrier.
    PTX cp.reduce.async.bulk.tensor, sm_90.

    reduction_kind: ADD takes integers of 32 and 64 bits, f32, f16 and bf16; MIN and MAX the same integers, f16 and
    bf16; INC and DEC Uint32; AND, OR and XOR integers of 32 and 64 bits; there is no MUL. Raises CuteError for other
    kinds, and for other types when the atom is made. interleaved, recast: set by make_tiled_tma_atom.

    >>> out = np.ones((1, 4), np.float32)
    >>> t = cute.runtime.from_dlpack(out, assumed_align=16)
    >>> row = cute.make_layout((1, 4), stride=(4, 1))
    >>> add = nvgpu.cpasync.CopyReduceBulkTensorTileS2GOp(nvgpu.cpasync.ReductionOp.ADD)
    >>> atom, coords = nvgpu.cpasync.make_tiled_tma_atom(add, t, row, (1, 4))
    >>> def kernel(atom, coords):
    ...     s = cute.make_tensor(arch.alloc_smem(cute.Float32, 4, alignment=128), row)
    ...     if arch.lane_idx() < 4:
    ...         s[0, arch.lane_idx()] = arch.lane_idx()
    ...     arch.fence_view_async_shared()
    ...     arch.sync_warp()
    ...     utils.block_copy(atom, s, coords)
    ...     arch.cp_async_bulk_commit_group()
    ...     arch.cp_async_bulk_wait_group(0)
    >>> cute.simulate(kernel)[1, 32](atom, coords)
    >>> out
    array([[1., 2., 3., 4.]], dtype=float32)
    """

    reduction_kind: ReductionOp = ReductionOp.ADD

    writes = True

    rows = (isa.cp_reduce_async_bulk_tensor_s2g,)
    choices = (Choice("reduction_kind", ("op",), {kind.value: kind for kind in ReductionOp}),)

    @property
    def reduction(self) -> ReductionOp:
        return self.reduction_kind

    def issue_all(self, atom: CopyAtom, parts: Sequence[Part], bar: Any, mask: Any, policy: Any) -> None:
        row, kind = isa.cp_reduce_async_bulk_tensor_s2g, self.reduction_kind.value
        _issue_stores(self, row, atom, parts, bar, mask, policy, op=kind)
