# SPDX-License-Identifier: Apache-2.0
"""How a tile of shared memory becomes boxes of TMA: the tensor map, the atom and its coordinate tensor, on the host."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..copy_atom import CopyAtom
from ..dtypes import DType
from ..isa.tensormap import TensorMapRecord
from ..layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ..pointer import AddressSpace, Pointer
from ..seam import CuteError
from ..tensor import Tensor

_SWIZZLES = {0: "none", 1: "32B", 2: "64B", 3: "128B"}


def _need(ok: bool, message: str) -> None:
    if not ok:
        raise CuteError(f"make_tiled_tma_atom: {message}")


def make_tiled_tma_atom(
    op: Any,
    gmem_tensor: Tensor,
    smem_layout: Any,
    cta_tiler: Any,
    num_multicast: int = 1,
    *,
    internal_type: DType | None = None,
) -> tuple[CopyAtom, Tensor]:
    """The TMA atom that copies tiles of `gmem_tensor` to or from shared memory, and the tensor of its coordinates.

    smem_layout: of one tile in shared memory (one stage), swizzled or not. cta_tiler: the tile, mode by mode of
    gmem_tensor. num_multicast: how many blocks share a tile, each loading one part of it for all. internal_type: the
    type TMA takes the elements for, of the same width. Call it on the host; pass both results to the kernel.
    """
    _need(hasattr(op, "issue_tma"), f"op {op!r} is not a TMA tensor operation such as CopyBulkTensorTileG2SOp()")
    _need(seam.current_or(None) is None, "call it on the host and pass the atom and the tensor to the kernel")
    ptr = _global_pointer(gmem_tensor)
    dtype = internal_type or ptr.dtype
    _need(dtype.width == ptr.dtype.width, f"internal_type {dtype} has another width than the elements, {ptr.dtype}")
    _need(
        type(num_multicast) is int and 1 <= num_multicast <= 16,
        f"num_multicast {num_multicast!r} must be a static number in [1, 16]",
    )
    _need(num_multicast == 1 or op.multicast, f"num_multicast {num_multicast} needs CopyBulkTensorTileG2SMulticastOp()")
    swizzle, plain = _split(smem_layout)
    box, modes = _box(gmem_tensor.layout, plain, cta_tiler)
    elements = layout.product(tuple(box))
    record = _record(ptr, dtype, gmem_tensor.layout, modes, _multicast_slice(box, num_multicast), swizzle)
    atom = CopyAtom(op, ptr.dtype, elements * ptr.dtype.width, record)
    object.__setattr__(atom, "_source", gmem_tensor)  # no field: it must neither be compared nor go to the kernel
    strides = _coordinate_strides(gmem_tensor.layout, modes)
    coords = Tensor((0,) * len(modes), Layout(gmem_tensor.shape, strides))
    return atom, coords


def _global_pointer(t: Any) -> Pointer:
    ok = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and isinstance(t.layout, Layout)
    _need(ok, f"gmem_tensor {t!r} must be a tensor in global memory, as from_dlpack makes it")
    _need(t.memspace in (AddressSpace.gmem, AddressSpace.generic), f"gmem_tensor {t!r} must lie in global memory")
    _need(
        t.iterator.alignment % 16 == 0 or int(t.iterator.address) % 16 == 0,
        f"gmem_tensor's address {int(t.iterator.address):#x} is not a multiple of 16 bytes; allocate it aligned",
    )
    return t.iterator  # type: ignore[no-any-return]


def _split(smem_layout: Any) -> tuple[str, Layout]:
    """The swizzle as TMA names it, and the layout without it."""
    if isinstance(smem_layout, Layout):
        return "none", smem_layout
    _need(isinstance(smem_layout, ComposedLayout), f"smem_layout {smem_layout!r} is not a layout")
    s = smem_layout.inner
    ok = isinstance(s, Swizzle) and (s.bits == 0 or (s.base, s.shift) == (4, 3)) and s.bits in _SWIZZLES
    _need(
        ok, f"smem_layout {smem_layout}: TMA's swizzles are S<0,4,3> to S<3,4,3>, on bytes; take make_smem_layout_atom"
    )
    return _SWIZZLES[s.bits], smem_layout.outer


def _box(gmem: Layout, smem: Layout, cta_tiler: Any) -> tuple[list[int], list[ScaledBasis]]:
    """The box in each TMA dimension and the mode of `gmem` that it runs along, innermost first.

    It follows shared memory from its beginning for as long as neighbours there are neighbours along one mode of the
    tile; modes of gmem outside the box come after, with extent 1.
    """
    tiler = cta_tiler if isinstance(cta_tiler, tuple) else (cta_tiler,)
    _need(
        len(tiler) <= layout.rank(gmem) and seam.is_static(tiler),
        f"cta_tiler {cta_tiler} must be static, with at most one entry for each mode of gmem_tensor, {gmem}",
    )
    identity = layout.make_identity_layout(gmem.shape)
    tile = layout.composition(identity, tiler)
    _need(
        layout.size(tile) == layout.size(smem),
        f"smem_layout {smem} has {layout.size(smem)} elements, but cta_tiler {cta_tiler} has {layout.size(tile)}; "
        "give the layout of one tile (one stage)",
    )
    along = layout.flatten(layout.coalesce(layout.composition(tile, layout.right_inverse(smem))))
    box, modes = [], []
    for s, d in zip(layout.wrap(along.shape), layout.wrap(along.stride)):
        if not isinstance(d, ScaledBasis) or d.value != 1:
            break
        box.append(int(s))
        modes.append(d)
    _need(bool(box), f"smem_layout {smem} has no run of elements that are neighbours in gmem_tensor {gmem} too")
    for s, d, e in _leaves(gmem, identity):
        if not (_is(s, 1) or _is(d, 0) or e in modes):
            box.append(1)
            modes.append(e)
    _need(
        len(modes) <= 5, f"gmem_tensor {gmem} needs {len(modes)} dimensions of TMA, which has 5; slice or merge modes"
    )
    return box, modes


def _leaves(gmem: Layout, identity: Layout) -> list[tuple[Any, Any, Any]]:
    shape, stride = layout.flatten_to_tuple(gmem.shape), layout.flatten_to_tuple(gmem.stride)
    return list(zip(shape, stride, layout.flatten_to_tuple(identity.stride)))


def _is(x: Any, value: int) -> bool:
    return type(x) is int and x == value


def _multicast_slice(box: list[int], parts: int) -> list[int]:
    """The part of the box that each of `parts` blocks loads: the outermost dimensions are split."""
    out = list(box)
    for i in reversed(range(len(box))):
        if parts == 1:
            break
        _need(
            out[i] % parts == 0 or parts % out[i] == 0,
            f"num_multicast {parts} does not divide the box {tuple(box)} (innermost first) of one tile",
        )
        rest = -(-parts // out[i])
        out[i] = -(-out[i] // parts)
        parts = rest
    _need(parts == 1, f"num_multicast is more than the elements of the box {tuple(box)}")
    return out


def _record(
    ptr: Pointer, dtype: DType, gmem: Layout, modes: list[ScaledBasis], box: list[int], swizzle: str
) -> TensorMapRecord:
    dims = [int(layout.basis_get(e, gmem.shape)) for e in modes]
    strides = [int(layout.basis_get(e, gmem.stride)) for e in modes]
    _need(
        strides[0] == 1,
        f"gmem_tensor {gmem} has stride {strides[0]} along the mode that is contiguous in shared memory; "
        "it must be 1: both must have the same major mode",
    )
    in_bytes = [-(-d * dtype.bytes // 16) * 16 if n == 1 else d * dtype.bytes for n, d in zip(dims, strides)]
    return TensorMapRecord(dtype, int(ptr.address), tuple(dims), tuple(in_bytes[1:]), tuple(box), swizzle=swizzle)


def _coordinate_strides(gmem: Layout, modes: list[ScaledBasis]) -> Any:
    """The strides of the coordinate tensor: along each mode of gmem, the TMA dimension that it is."""

    def leaf(path: tuple[int, ...], shape: Any) -> Any:
        if isinstance(shape, tuple):
            return tuple(leaf((*path, i), s) for i, s in enumerate(shape))
        e = ScaledBasis(1, path or (0,))
        return ScaledBasis(1, (modes.index(e),)) if e in modes else 0

    return leaf((), gmem.shape)
