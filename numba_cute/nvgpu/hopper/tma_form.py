# SPDX-License-Identifier: Apache-2.0
"""Keep what a TMA atom was made for, and refuse to copy anything else by it."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import CuteError, static
from ...tensor.tensor import Tensor

__all__ = ["TmaForm"]


@static
class TmaForm:
    """The two sides of what a TMA atom copies at a time.

    dtype: of the shared memory; None: any of a byte, in which narrower elements lie. swizzle: None if it has none. box:
    from the elements as they lie there, one after another, to the coordinates of the tensor map, relative to the
    first."""

    dtype: DType | None
    swizzle: Swizzle | None
    box: Layout


def form_of(dtype: DType | None, smem_layout: Any, tile: Layout, plain: Layout, elements: int, by: Any) -> TmaForm:
    """Return the form of an atom.

    dtype: as in TmaForm. smem_layout: of the shared memory, swizzled or not; plain: one stage of it without the
    swizzle. tile: its modes as coordinates of the tensor. elements: of one copy. by: the strides by which coordinates
    of the tensor are those of its map."""
    along = layout.composition(layout.composition(tile, layout.right_inverse(plain)), layout.make_layout(elements))
    return box_form(dtype, smem_layout, Layout(along.shape, in_dims(along.stride, by)))


def box_form(dtype: DType | None, smem_layout: Any, box: Layout) -> TmaForm:
    """Return the form of an atom that copies `box` to or from shared memory of `smem_layout`."""
    return TmaForm(
        dtype, _swizzle_of(smem_layout.inner if isinstance(smem_layout, ComposedLayout) else None), layout.coalesce(box)
    )


def in_dims(stride: Any, by: Any) -> Any:
    """Strides of coordinates of a tensor as strides of coordinates of its map."""
    if isinstance(stride, tuple):
        return tuple(in_dims(d, by) for d in stride)
    if not isinstance(stride, ScaledBasis):
        return stride
    unit = layout.basis_get(ScaledBasis(1, stride.mode), by)
    return unit * stride.value if isinstance(unit, ScaledBasis) else 0


def check_form(atom: CopyAtom, smem: Tensor, gmem: Tensor, name: str) -> None:
    """Refuse one copy whose shared memory or part of the tensor is not what the atom was made for. name: of the
    argument that is the shared memory. An atom of a map that only the device knows fits everything."""
    form = atom.form
    if form is None:
        return
    held = smem.element_type
    if held != form.dtype and (form.dtype is not None or held.width != 8):
        raise CuteError(
            f"copy: {name} holds {held}, but the TMA atom was made for {atom.value_type}: make it for a tensor of "
            f"{held}, or say that the bits are meant: cute.recast_tensor({name}, cute.{atom.value_type})"
        )
    found = _swizzle_of(smem.iterator.swizzle)
    if found != form.swizzle:
        raise CuteError(
            f"copy: {name} lies in shared memory with {_named(found)}, but the TMA atom was made for "
            f"{_named(form.swizzle)}: allocate it by the layout that the atom was made for, or make the atom for this "
            "one's; where another is meant, say so with cute.recast_ptr(ptr, swizzle_=…)"
        )
    in_memory = layout.right_inverse(smem.layout)
    if layout.size(in_memory) != layout.size(form.box):
        raise CuteError(
            f"copy: {name} is {smem.layout}, but the {layout.size(form.box)} elements of a TMA copy lie one after "
            "another in shared memory: partition src and dst with cpasync.tma_partition"
        )
    box = layout.coalesce(layout.composition(gmem.layout, in_memory))
    if box != form.box:
        raise CuteError(
            f"copy: {name} lies so that a TMA copy would take the coordinates {box} of the tensor, but the atom's "
            f"takes {form.box} (innermost first): allocate it by the layout that the atom was made for, or make the "
            "atom for this one's"
        )


def _swizzle_of(swizzle: Any) -> Swizzle | None:
    return swizzle if isinstance(swizzle, Swizzle) and swizzle.bits else None


def _named(swizzle: Swizzle | None) -> str:
    return "no swizzle" if swizzle is None else f"the swizzle {swizzle}"
