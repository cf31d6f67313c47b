# SPDX-License-Identifier: Apache-2.0
"""Turn a tile of shared memory into boxes of TMA: the tensor map, the atom and its coordinate tensor, on the host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ... import layout, seam
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType, Uint8
from ...isa.facts.tensormap import RefusedTensorMap, TensorMapRecord, check_reduction, reduced_as
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...layout.pure import pure
from ...seam import frozen, known_as
from ...seam.ground.backend import RUNNING
from ...seam.guards.messages import how_static
from ...seam.hooks.casting import CASTING, run
from ...tensor.address import place_of
from ...tensor.pointer import AddressSpace, Pointer, check_of_one_rank, check_writable
from ...tensor.tensor import Tensor
from ..common.checks import need
from . import slices
from .new_map import NewTensorMap
from .tma_dims import Dim, coordinate_strides, dims_of, extent_and_stride, orders
from .tma_form import form_of
from .tma_ops import TmaCopyOp

_WHAT = "make_tiled_tma_atom"

__all__ = ["TmaInfo", "make_tiled_tma_atom"]

_SWIZZLES = {
    (0, 4, 3): "none", (1, 4, 3): "32B", (2, 4, 3): "64B", (3, 4, 3): "128B",
    (2, 5, 2): "128B_ATOM_32B", (1, 6, 1): "128B_ATOM_64B",
}  # fmt: skip


@frozen
@known_as("cute_nvgpu.cpasync")
class TmaInfo:
    """A TMA atom with its tensor; it unpacks into both: `atom, tensor = make_tiled_tma_atom(…)`.

    copy_atom: the atom. tma_tensor: the tensor of its coordinates. smem_layout: the shared-memory layout that it was
    made for, of one stage or several.

    >>> from numba_cute.nvgpu import cpasync
    >>> x = cute.runtime.from_dlpack(np.zeros((64, 64), np.float16), assumed_align=16)
    >>> box = cute.make_layout((32, 32), stride=(32, 1))
    >>> info = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, box, (32, 32))
    >>> atom, coords = info
    >>> coords
    Tensor((0, 0), (64,64):(1@1,1@0))
    >>> info.smem_layout
    (32,32):(32,1)
    """

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


class InKernel(NamedTuple):
    """The same in a kernel, where what is unpacked is a tuple."""

    copy_atom: CopyAtom
    tma_tensor: Tensor


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
    not; further modes are stages. cta_tiler: the tile, mode by mode of gmem_tensor; or the layout of one, whose strides
    are basis strides: from the coordinates in shared memory to those of gmem_tensor. num_multicast: how many blocks
    share a tile, each loading one part of it for all. internal_type: the type TMA takes the elements for: of the same
    width, which shared memory may hold too; a wider one, of which each holds several (scale factors as Int16); or Int8
    of elements below a byte, which then take a byte of shared memory each (16 lie in the first ones of each 16,
    sm_100), as those of 6 bits always
    do. element_strides: for each mode of gmem_tensor the step (1 to 8) between the elements that are copied: the
    coordinate tensor then has every s-th element. oob_fill: what elements outside the tensor read as, "zero" or "nan".
    l2_promotion: "none", "64B", "128B" or "256B". interleave: "16B" or "32B" for a tensor of slices of so many bytes,
    such as NC/8HWC8, the slice a mode of its own: in shared memory it comes first, and the mode of neighbouring slices
    (W) next; the tensor may have six modes. Call it on the host and pass both results to the kernel. In a kernel the
    tensor may have run-time address, extents and strides, and the atom has no map yet: `copy_tensormap` writes one
    (without l2_promotion), which copies take by tma_desc_ptr. Raises CuteError for what TMA cannot copy: unaligned
    arrays, a swizzle or a run of elements that it does not have, more than five dimensions. PTX
    cp.async.bulk.tensor, sm_90.

    >>> x, op = cute.runtime.from_dlpack(np.zeros((128, 64), np.float32)), nvgpu.cpasync.CopyBulkTensorTileG2SOp()
    >>> tile = cute.make_layout((32, 32), stride=(32, 1))
    >>> atom, coordinates = nvgpu.cpasync.make_tiled_tma_atom(op, x, tile, (32, 32))
    >>> coordinates[5, 7]
    (7, 5)
    """
    options = (oob_fill, l2_promotion, interleave)
    cast = run if RUNNING.backends else CASTING.derived  # as `derived` does, which costs a call more
    return cast(  # type: ignore[no-any-return]
        _tiled, gmem_tensor, op, smem_layout, cta_tiler, num_multicast, internal_type, element_strides, options
    )


def _tiled(
    gmem_tensor: Tensor, op: TmaCopyOp, smem_layout: Any, cta_tiler: Any, num_multicast: int,
    internal_type: DType | None, element_strides: tuple[int, ...] | None, options: tuple[str, str, str],
) -> TmaInfo:  # fmt: skip
    """As make_tiled_tma_atom. options: oob_fill, l2_promotion, interleave."""
    need(_WHAT, isinstance(op, TmaCopyOp), f"op {op!r} is not a TMA tensor operation such as CopyBulkTensorTileG2SOp()")
    ptr = global_pointer(gmem_tensor)
    if isinstance(cta_tiler, Layout) and cta_tiler.maps_to_coordinates:
        tile, modes = cta_tiler, layout.rank(cta_tiler)
        need(_WHAT, seam.is_static(tile), f"cta_tiler {tile} must be static{how_static(tile)}")
    else:
        tile, modes = _tile_of(gmem_tensor, cta_tiler)
    swizzle, plain = split_swizzle(smem_layout)
    plain = one_stage(plain, modes)
    need(
        _WHAT,
        layout.size(tile) == layout.size(plain),
        f"smem_layout {plain} has {layout.size(plain)} elements, but cta_tiler {cta_tiler} has {layout.size(tile)}; "
        "give the layout of one tile, or of several with the stages in a further mode",
    )
    named = {"swizzle": swizzle, **dict(zip(("oob_fill", "l2_promotion", "interleave"), options))}
    return tma_info(
        op, gmem_tensor, ptr, smem_layout, plain, tile, num_multicast, internal_type, element_strides, named
    )


def _tile_of(gmem_tensor: Tensor, cta_tiler: Any) -> tuple[Layout, int]:
    """The layout of a tile of these extents, from its coordinates to those of gmem_tensor, and how many they are."""
    tiler = cta_tiler if isinstance(cta_tiler, tuple) else (cta_tiler,)
    need(
        _WHAT,
        len(tiler) <= layout.rank(gmem_tensor.layout) and seam.is_static(tiler),
        f"cta_tiler {cta_tiler} must be static, with at most one entry for each mode of gmem_tensor, "
        f"{gmem_tensor.layout}"
        f"{how_static(cta_tiler)}",
    )
    return layout.composition(layout.make_identity_layout(gmem_tensor.shape), tiler), len(tiler)


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
    in_kernel = seam.current_or(None) is not None
    need(
        _WHAT,
        layout.size(layout.right_inverse(plain)) == layout.size(plain)
        or _alone(plain, _apart(tile, gmem_tensor.layout)),
        f"smem_layout {plain} puts several elements of gmem_tensor in one place: each must have its own",
    )
    reduction = None if op.reduction is None else op.reduction.value
    dtype = internal_type or (ptr.dtype if reduction is None else reduced_as(reduction, ptr.dtype))
    unpacked, ratio = internal_of(dtype, ptr.dtype)
    need(
        _WHAT,
        type(num_multicast) is int and 1 <= num_multicast <= 16,
        f"num_multicast {num_multicast!r} must be a static number in [1, 16]{how_static(num_multicast)}",
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
    dims = dims_of(gmem, plain, tile, 6 if sliced else 5, ratio, ptr.dtype.width)
    box = [dim.box for dim in dims]
    within = box[0] if sliced else 1
    if sliced:
        need(_WHAT, _steps(gmem, dims, element_strides)[0] == 1, "element_strides must be 1 for the mode of the slice")
        box, modes = slices.dimensions(gmem, box, [dim.modes[0] for dim in dims], dtype, options["interleave"])
        dims = [Dim(n, () if e is None else (e,)) for n, e in zip(box, modes)]
        op = replace(op, interleaved=True)
    steps = _steps(gmem, dims, element_strides)
    elements = layout.product((within, *box)) * ratio
    part = multicast_slice(box, num_multicast)
    record: Any
    if sliced:
        need(_WHAT, not in_kernel, "interleaved maps are made on the host: pass the atom and the tensor to the kernel")
        record, scale, order = slices.record(ptr, dtype, gmem, modes, part, steps, options), 1, None
    else:
        make = _in_kernel if in_kernel else record_of
        record, scale = make(ptr, dtype, unpacked, gmem, dims, part, steps, options)
        order = orders(gmem, dims)
    source = None if in_kernel else record if isinstance(record, RefusedTensorMap) else gmem_tensor
    held = (internal_type or Uint8) if unpacked else ptr.dtype
    op = op if ratio == 1 else replace(op, recast=ratio)
    strides = coordinate_strides(gmem, dims, steps, scale)
    form = form_of(in_shared(ptr.dtype, internal_type, unpacked, ratio), smem_layout, tile, plain, elements, strides)
    atom = CopyAtom(op, held, elements * held.width, record, order, form, source)
    shape = gmem_tensor.shape if element_strides is None else layout.ceil_div(gmem_tensor.shape, element_strides)
    coords = Tensor((0,) * len(dims), Layout(shape, strides))
    return InKernel(atom, coords) if in_kernel else TmaInfo(atom, coords, smem_layout)  # type: ignore[return-value]


def _in_kernel(
    ptr: Pointer, dtype: DType, unpacked: bool, gmem: Layout, dims: list[Dim], box: list[int], steps: list[int],
    options: dict[str, Any],
) -> tuple[Any, int]:  # fmt: skip
    """As `record_of`, in a kernel."""
    how = options["swizzle"], options.get("oob_fill", "zero")
    return NewTensorMap(dtype, unpacked, tuple(dims), tuple(box), tuple(steps), *how, Tensor(ptr, gmem)), 1


def _apart(tile: Layout, gmem: Layout) -> Layout:
    """A tile as numbers that differ where the elements of the tensor do, as far as is static: a mode of stride 0 has
    one."""
    steps = iter(range(1, 1 + len(layout.flatten_to_tuple(gmem.stride))))
    by = layout.transform_leaf(lambda d: 0 if type(d) is int and d == 0 else 1 << 32 * next(steps), gmem.stride)

    def number(d: Any) -> int:
        return layout.basis_get(d, by) if isinstance(d, ScaledBasis) else 0

    return Layout(tile.shape, layout.transform_leaf(number, tile.stride))


@pure
def _alone(lay: Layout, numbers: Layout) -> bool:
    """Say whether no two elements of other `numbers` lie in one place of a static layout."""
    places = [(layout.crd2idx(i, lay), layout.crd2idx(i, numbers)) for i in range(layout.size(lay))]
    return len(dict(places)) == len(set(places))


def in_shared(stored: DType, internal_type: DType | None, unpacked: bool, ratio: int) -> DType | None:
    """The type of the elements in shared memory, besides `stored`; None: any of a byte."""
    return None if unpacked else internal_type if internal_type is not None and ratio == 1 else stored


def internal_of(dtype: DType, stored: DType) -> tuple[bool, int]:
    """Return whether elements smaller than a byte are unpacked into a byte each, and the number of elements of
    gmem_tensor that TMA takes as one."""
    if stored.width < 8:
        whole = dtype.width == 8 and not dtype.is_float
        need(
            _WHAT,
            dtype == stored or whole,
            f"internal_type {dtype} of {stored} elements must be Int8 or Uint8, a byte of shared memory for each, or "
            "None",
        )
        return whole or stored.width == 6, 1
    need(
        _WHAT,
        dtype.width % stored.width == 0,
        f"internal_type {dtype} has {dtype.width} bits, no multiple of the elements' {stored.width}, {stored}",
    )
    return False, dtype.width // stored.width


def global_pointer(t: Any) -> Pointer:
    ok = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and isinstance(t.layout, Layout)
    need(_WHAT, ok, f"gmem_tensor {t!r} must be a tensor in global memory, as from_dlpack makes it")
    need(_WHAT, t.memspace in (AddressSpace.gmem, AddressSpace.generic), f"gmem_tensor {t!r} must lie in global memory")
    check_of_one_rank(t.iterator)
    if t.iterator.alignment % 16 and seam.current_or(None) is None:  # a kernel's addresses are looked at as it runs
        at = int(t.iterator.address)
        need(_WHAT, at % 16 == 0, f"gmem_tensor's address {at:#x} is not a multiple of 16 bytes; allocate it aligned")
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


def _steps(gmem: Layout, dims: list[Dim], given: tuple[int, ...] | None) -> list[int]:
    """The element stride along each TMA dimension."""
    if given is None:
        return [1] * len(dims)
    need(
        _WHAT,
        isinstance(given, tuple) and len(given) == layout.rank(gmem) and all(type(x) is int for x in given),
        f"element_strides {given!r} must be a tuple with one number for each mode of gmem_tensor, {gmem}",
    )
    of_modes = [[given[e.mode[0]] for e in dim.modes] for dim in dims]
    need(
        _WHAT,
        all(len(of) < 2 or set(of) == {1} for of in of_modes),
        f"element_strides {given!r} must be 1 along modes of gmem_tensor {gmem} that share a dimension of TMA",
    )
    return [of[0] if of else 1 for of in of_modes]


def record_of(
    ptr: Pointer, dtype: DType, unpacked: bool, gmem: Layout, dims: list[Dim], box: list[int], steps: list[int],
    options: dict[str, Any],
) -> tuple[Any, int]:  # fmt: skip
    """The tensor map, and by what coordinates along its dimension 0 are counted."""
    extents, strides = (list(x) for x in zip(*(extent_and_stride(gmem, dim) for dim in dims)))
    if strides[0] != 1 and extents[0] != 1:
        why = (
            f"make_tiled_tma_atom: gmem_tensor {gmem} has stride {strides[0]} along the mode that is contiguous in "
            "shared memory; it must be 1: both must have the same major mode"
        )
        return RefusedTensorMap(why), strides[0]
    width = ptr.dtype.width
    ratio = 1 if unpacked else dtype.width // width
    need(
        _WHAT,
        extents[0] % ratio == 0 and not any(d * width % 8 for d in strides[1:]),
        f"gmem_tensor {gmem} of {ptr.dtype}: {extents[0]} elements in a row, with strides {tuple(strides[1:])}, do not "
        f"make whole {dtype if ratio > 1 else 'bytes'}",
    )
    in_bytes = [-(-d * width // 128) * 16 if int(n) == 1 else d * width // 8 for n, d in zip(extents, strides)]
    whole = tuple(n * s for n, s in zip(box, steps))
    counts = (extents[0] // ratio, *extents[1:])
    held = ptr.dtype if unpacked else dtype
    return TensorMapRecord(
        held,
        int(ptr.address),
        counts,
        tuple(in_bytes[1:]),
        whole,
        tuple(steps),
        unpacked=unpacked,
        place=place_of(ptr.address),
        **options,
    ), 1
