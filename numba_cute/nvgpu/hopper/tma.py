# SPDX-License-Identifier: Apache-2.0
"""How a tile of shared memory becomes boxes of TMA: the tensor map, the atom and its coordinate tensor, on the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ... import layout, seam
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType
from ...isa.facts.tensormap import RefusedTensorMap, TensorMapRecord, check_reduction, reduced_as
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import known_as, static
from ...tensor.pointer import AddressSpace, Pointer, check_writable
from ...tensor.tensor import Tensor
from ..common.checks import need
from . import slices
from .tma_ops import TmaCopyOp

_WHAT = "make_tiled_tma_atom"

__all__ = ["TmaInfo", "make_tiled_tma_atom"]

_SWIZZLES = {
    (0, 4, 3): "none", (1, 4, 3): "32B", (2, 4, 3): "64B", (3, 4, 3): "128B",
    (2, 5, 2): "128B_ATOM_32B", (1, 6, 1): "128B_ATOM_64B",
}  # fmt: skip


@static
@known_as("cute_nvgpu.cpasync")
class TmaInfo:
    """A TMA atom with its tensor; it unpacks into both: `atom, tensor = make_tiled_tma_atom(…)`.

    copy_atom: the atom. tma_tensor: the tensor of its coordinates. smem_layout: the shared-memory layout that it was
    made for, of one stage or several."""

    copy_atom: CopyAtom
    tma_tensor: Tensor
    smem_layout: Any = None

    @property
    def atom(self) -> CopyAtom:
        """The atom: `copy_atom`."""
        return self.copy_atom

    def __iter__(self) -> Iterator[Any]:
        return iter((self.copy_atom, self.tma_tensor))

    def __getitem__(self, index: int) -> Any:
        return (self.copy_atom, self.tma_tensor)[index]

    def __len__(self) -> int:
        return 2


def make_tiled_tma_atom(
    op: TmaCopyOp,
    gmem_tensor: Tensor,
    smem_layout: Layout | ComposedLayout,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: DType | None = None,
    element_strides: tuple[int, ...] | None = None,
    oob_fill: str = "zero",
    l2_promotion: str = "128B",
    interleave: str = "none",
) -> TmaInfo:
    """Make the TMA atom that copies tiles of `gmem_tensor` to or from shared memory, and the tensor of its coordinates.

    op: a TMA tensor operation such as CopyBulkTensorTileG2SOp(). smem_layout: of a tile in shared memory, swizzled or
    not; further modes are stages. cta_tiler: the tile, mode by mode of gmem_tensor. num_multicast: how many blocks
    share a tile, each loading one part of it for all. internal_type: the type TMA takes the elements for, of the same
    width. element_strides: for each mode of gmem_tensor the step (1 to 8) between the elements that are copied: the
    coordinate tensor then has every s-th element. oob_fill: what elements outside the tensor read as, "zero" or "nan".
    l2_promotion: "none", "64B", "128B" or "256B". interleave: "16B" or "32B" for a tensor of slices of so many bytes,
    such as NC/8HWC8, the slice a mode of its own: in shared memory it comes first, and the mode of neighbouring slices
    (W) next; the tensor may have six modes. Call it on the host; pass both results to the kernel. Raises CuteError for
    what TMA cannot copy: unaligned arrays, a swizzle or a run of elements that it does not have, more than five
    dimensions. PTX cp.async.bulk.tensor, sm_90."""
    need(_WHAT, isinstance(op, TmaCopyOp), f"op {op!r} is not a TMA tensor operation such as CopyBulkTensorTileG2SOp()")
    ptr = global_pointer(gmem_tensor)
    tiler = cta_tiler if isinstance(cta_tiler, tuple) else (cta_tiler,)
    need(
        _WHAT,
        len(tiler) <= layout.rank(gmem_tensor.layout) and seam.is_static(tiler),
        f"cta_tiler {cta_tiler} must be static, with at most one entry for each mode of gmem_tensor, "
        f"{gmem_tensor.layout}",
    )
    tile = layout.composition(layout.make_identity_layout(gmem_tensor.shape), tiler)
    swizzle, plain = split_swizzle(smem_layout)
    plain = one_stage(plain, len(tiler))
    need(
        _WHAT,
        layout.size(tile) == layout.size(plain),
        f"smem_layout {plain} has {layout.size(plain)} elements, but cta_tiler {cta_tiler} has {layout.size(tile)}; "
        "give the layout of one tile, or of several with the stages in a further mode",
    )
    options = {"swizzle": swizzle, "oob_fill": oob_fill, "l2_promotion": l2_promotion, "interleave": interleave}
    return tma_info(
        op, gmem_tensor, ptr, smem_layout, plain, tile, num_multicast, internal_type, element_strides, options
    )


def one_stage(smem: Layout, modes: int) -> Layout:
    """The first `modes` modes of a shared-memory layout: what lies after them are stages."""
    if layout.rank(smem) <= modes:
        return smem
    return layout.select(smem, tuple(range(modes)))  # type: ignore[no-any-return]


def tma_info(
    op: TmaCopyOp, gmem_tensor: Tensor, ptr: Pointer, smem_layout: Any, plain: Layout, tile: Layout, num_multicast: int,
    internal_type: DType | None, element_strides: tuple[int, ...] | None, options: dict[str, Any],
) -> TmaInfo:  # fmt: skip
    """The atom for `tile`, from the coordinates of `plain` (shared memory without swizzle and stages) to those of
    gmem_tensor."""
    need(_WHAT, seam.current_or(None) is None, "call it on the host and pass the atom and the tensor to the kernel")
    reduction = None if op.reduction is None else op.reduction.value
    dtype = internal_type or (ptr.dtype if reduction is None else reduced_as(reduction, ptr.dtype))
    need(
        _WHAT, dtype.width == ptr.dtype.width, f"internal_type {dtype} has another width than the elements, {ptr.dtype}"
    )
    need(
        _WHAT,
        type(num_multicast) is int and 1 <= num_multicast <= 16,
        f"num_multicast {num_multicast!r} must be a static number in [1, 16]",
    )
    if op.writes:
        check_writable(ptr, f"make_tiled_tma_atom: {type(op).__name__}")
    need(
        _WHAT,
        num_multicast == 1 or op.multicast,
        f"num_multicast {num_multicast} needs CopyBulkTensorTileG2SMulticastOp()",
    )
    if reduction is not None:
        check_reduction(reduction, dtype)
    gmem = gmem_tensor.layout
    sliced = options.get("interleave", "none") != "none"
    box, modes = _box(gmem, plain, tile, 6 if sliced else 5)
    within = box[0] if sliced else 1
    if sliced:
        need(_WHAT, _steps(gmem, modes, element_strides)[0] == 1, "element_strides must be 1 for the mode of the slice")
        box, modes = slices.dimensions(gmem, box, modes, dtype, options["interleave"])
        op = replace(op, interleaved=True)
    steps = _steps(gmem, modes, element_strides)
    elements = layout.product((within, *box))
    part = multicast_slice(box, num_multicast)
    if sliced:
        record, scale, order = slices.record(ptr, dtype, gmem, modes, part, steps, options), 1, None
    else:
        record, scale = _record(ptr, dtype, gmem, modes, part, steps, options)
        leaves = layout.flatten_to_tuple(layout.make_identity_layout(gmem.shape).stride)
        order = tuple(leaves.index(e) for e in modes)
    source = record if isinstance(record, RefusedTensorMap) else gmem_tensor
    atom = CopyAtom(op, ptr.dtype, elements * ptr.dtype.width, record, order, source)
    shape = gmem_tensor.shape if element_strides is None else layout.ceil_div(gmem_tensor.shape, element_strides)
    coords = Tensor((0,) * len(modes), Layout(shape, _coordinate_strides(gmem, modes, steps, scale)))
    return TmaInfo(atom, coords, smem_layout)


def global_pointer(t: Any) -> Pointer:
    ok = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and isinstance(t.layout, Layout)
    need(_WHAT, ok, f"gmem_tensor {t!r} must be a tensor in global memory, as from_dlpack makes it")
    need(_WHAT, t.memspace in (AddressSpace.gmem, AddressSpace.generic), f"gmem_tensor {t!r} must lie in global memory")
    need(
        _WHAT,
        t.iterator.alignment % 16 == 0 or int(t.iterator.address) % 16 == 0,
        f"gmem_tensor's address {int(t.iterator.address):#x} is not a multiple of 16 bytes; allocate it aligned",
    )
    return t.iterator  # type: ignore[no-any-return]


def split_swizzle(smem_layout: Any) -> tuple[str, Layout]:
    """The swizzle as TMA names it, and the layout without it."""
    if isinstance(smem_layout, Layout):
        return "none", smem_layout
    need(_WHAT, isinstance(smem_layout, ComposedLayout), f"smem_layout {smem_layout!r} is not a layout")
    s = smem_layout.inner
    found = _SWIZZLES.get((s.bits, s.base, s.shift)) if isinstance(s, Swizzle) else None
    found = "none" if isinstance(s, Swizzle) and s.bits == 0 else found
    need(
        _WHAT,
        found is not None,
        f"smem_layout {smem_layout}: TMA's swizzles are S<0,4,3> to S<3,4,3>, on bytes (sm_100 also S<2,5,2> and "
        "S<1,6,1>); take make_smem_layout_atom",
    )
    return found, smem_layout.outer  # type: ignore[return-value]


def _box(gmem: Layout, smem: Layout, tile: Layout, most: int) -> tuple[list[int], list[Any]]:
    """The extents of one box, innermost first, and the mode of gmem that each dimension of TMA is.

    The box goes on along shared memory while its elements are neighbours along modes of gmem, each mode once.
    """
    identity = layout.make_identity_layout(gmem.shape)
    along = layout.flatten(layout.coalesce(layout.composition(tile, layout.right_inverse(smem))))
    box, modes = [], []
    for s, d in zip(layout.wrap(along.shape), layout.wrap(along.stride)):
        if not isinstance(d, ScaledBasis) or d.value != 1 or d in modes:
            break
        box.append(int(s))
        modes.append(d)
    need(_WHAT, bool(box), f"smem_layout {smem} has no run of elements that are neighbours in gmem_tensor {gmem} too")
    for s, d, e in _leaves(gmem, identity):
        if not (_is(s, 1) or _is(d, 0) or e in modes):
            box.append(1)
            modes.append(e)
    need(
        _WHAT,
        len(modes) <= most,
        f"gmem_tensor {gmem} needs {len(modes)} dimensions of TMA, which has {most}; slice or merge modes",
    )
    return box, modes


def _leaves(gmem: Layout, identity: Layout) -> list[tuple[Any, Any, Any]]:
    shape, stride = layout.flatten_to_tuple(gmem.shape), layout.flatten_to_tuple(gmem.stride)
    return list(zip(shape, stride, layout.flatten_to_tuple(identity.stride)))


def _is(x: Any, value: int) -> bool:
    return type(x) is int and x == value


def multicast_slice(box: list[int], parts: int) -> list[int]:
    """The part of the box that each of `parts` blocks loads: the outermost dimensions are split."""
    out = list(box)
    for i in reversed(range(len(box))):
        if parts == 1:
            break
        need(
            _WHAT,
            out[i] % parts == 0 or parts % out[i] == 0,
            f"num_multicast {parts} does not divide the box {tuple(box)} (innermost first) of one tile",
        )
        rest = -(-parts // out[i])
        out[i] = -(-out[i] // parts)
        parts = rest
    need(_WHAT, parts == 1, f"num_multicast is more than the elements of the box {tuple(box)}")
    return out


def _steps(gmem: Layout, modes: list[Any], given: tuple[int, ...] | None) -> list[int]:
    """The element stride along each TMA dimension."""
    if given is None:
        return [1] * len(modes)
    need(
        _WHAT,
        isinstance(given, tuple) and len(given) == layout.rank(gmem) and all(type(x) is int for x in given),
        f"element_strides {given!r} must be a tuple with one number for each mode of gmem_tensor, {gmem}",
    )
    return [1 if e is None else given[e.mode[0] if isinstance(e.mode, tuple) else e.mode] for e in modes]


def _record(
    ptr: Pointer, dtype: DType, gmem: Layout, modes: list[ScaledBasis], box: list[int], steps: list[int],
    options: dict[str, Any],
) -> tuple[Any, int]:  # fmt: skip
    """The tensor map, and by what coordinates along its dimension 0 are counted."""
    dims = [int(layout.basis_get(e, gmem.shape)) for e in modes]
    strides = [int(layout.basis_get(e, gmem.stride)) for e in modes]
    if strides[0] != 1 and dims[0] != 1:
        why = (
            f"make_tiled_tma_atom: gmem_tensor {gmem} has stride {strides[0]} along the mode that is contiguous in "
            "shared memory; it must be 1: both must have the same major mode"
        )
        return RefusedTensorMap(why), strides[0]
    in_bytes = [-(-d * dtype.bytes // 16) * 16 if n == 1 else d * dtype.bytes for n, d in zip(dims, strides)]
    whole = tuple(n * s for n, s in zip(box, steps))
    record = TensorMapRecord(dtype, int(ptr.address), tuple(dims), tuple(in_bytes[1:]), whole, tuple(steps), **options)
    return record, 1


def _coordinate_strides(gmem: Layout, modes: list[Any], steps: list[int], scale: int) -> Any:
    """The strides of the coordinate tensor: along each mode of gmem, the TMA dimension that it is."""
    by = [s * (scale if d == 0 else 1) for d, s in enumerate(steps)]

    def leaf(path: tuple[int, ...], shape: Any) -> Any:
        if isinstance(shape, tuple):
            return tuple(leaf((*path, i), s) for i, s in enumerate(shape))
        e = ScaledBasis(1, path or (0,))
        return ScaledBasis(by[modes.index(e)], (modes.index(e),)) if e in modes else 0

    return leaf((), gmem.shape)
