# SPDX-License-Identifier: Apache-2.0
"""Keep what a TMA atom was made for, and refuse to copy anything else by it."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...atoms.copy_atom import CopyAtom
from ...dtypes import DType
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import CuteError, frozen
from ...tensor.pointer import Pointer
from ...tensor.swizzled import by_address
from ...tensor.tensor import Tensor

__all__ = ["TmaForm"]


@frozen
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
    _check_pointer(atom, smem.iterator, f"copy: {name}")
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


def check_type(held: DType, dtype: DType | None, name: str, made: str, of: DType) -> None:
    """Refuse shared memory of `held` elements for a copy of `dtype` (None: a byte for each). name: the function and the
    argument; made: what the elements must be those of, `of`, which it may hold too."""
    if held not in (dtype, of) and (dtype is not None or held.width != 8):
        raise CuteError(
            f"{name} holds {held}, but {made} {of}: take one type for both, or say that the bits are meant: "
            f"cute.recast_tensor({name.rpartition(' ')[2]}, cute.{of})"
        )


def check_memory(atom: Any, smem: Tensor, name: str) -> None:
    """Refuse shared memory of another element type or swizzle than the atom was made for, as far as its pointer tells
    them. name: the function and the argument."""
    if isinstance(atom, CopyAtom) and atom.form is not None and isinstance(smem.iterator, Pointer):
        pointer, lay = by_address(smem.iterator, smem.layout)
        if isinstance(lay, Layout):
            _check_pointer(atom, pointer, name)


def _check_pointer(atom: CopyAtom, pointer: Any, name: str) -> None:
    form = atom.form
    check_type(pointer.dtype, form.dtype, name, "the TMA atom was made for", atom.value_type)
    found = _swizzle_of(pointer.swizzle)
    if found != form.swizzle:
        raise CuteError(
            f"{name} lies in shared memory with {_named(found)}, but the TMA atom was made for "
            f"{_named(form.swizzle)}: allocate it by the layout that the atom was made for, or make the atom for this "
            "one's; where another is meant, say so with cute.recast_ptr(ptr, swizzle_=…)"
        )


def check_raw(atom: Any, given: Any, pointer: Any, what: str) -> None:
    """Refuse, as far as it is known, what `check_form` does of memory that is given without its part of the tensor. A
    bare pointer may point to bytes, and says nothing by having no swizzle. given: the argument smem_ptr, a pointer or a
    tensor that begins at `pointer`. what: the function."""
    if not isinstance(atom, CopyAtom) or atom.form is None:
        return
    if isinstance(given, Tensor):
        size = layout.size(atom.form.box)
        if layout.size(given.layout) < size:
            raise CuteError(
                f"{what}: smem_ptr is {given.layout}, fewer than the {size} elements of a TMA copy: allocate it by the "
                "layout that the atom was made for"
            )
    elif pointer.swizzle is None:
        if pointer.dtype.width != 8 or pointer.dtype.is_float:
            check_type(
                pointer.dtype, atom.form.dtype, f"{what}: smem_ptr", "the TMA atom was made for", atom.value_type
            )
        return
    _check_pointer(atom, pointer, f"{what}: smem_ptr")


def _swizzle_of(swizzle: Any) -> Swizzle | None:
    return swizzle if isinstance(swizzle, Swizzle) and swizzle.bits else None


def _named(swizzle: Swizzle | None) -> str:
    return "no swizzle" if swizzle is None else f"the swizzle {swizzle}"
