# SPDX-License-Identifier: Apache-2.0
"""Checks of the makers of atoms, and of what operations are given."""

from typing import Any

from ...layout import Layout
from ...seam import CuteError
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.swizzled import of_bytes, swizzle_of


def need(what: str, ok: bool, message: str) -> None:
    """Raise CuteError with the `message` of the function `what` unless `ok`."""
    if not ok:
        raise CuteError(f"{what}: {message}")


_ALLOCATE = "allocate it with SmemAllocator.allocate_tensor, or make it of what arch.alloc_smem gives"
_ELSEWHERE = {
    AddressSpace.generic: f"its pointer is generic, and may point anywhere: {_ALLOCATE}",
    AddressSpace.gmem: f"it lies in global memory: copy it to shared memory first, and for that {_ALLOCATE}",
    AddressSpace.rmem: "it lies in registers: store it to a tensor in shared memory first",
    AddressSpace.tmem: "it lies in tensor memory: load it to registers first, and store it to shared memory",
}


def plain_layout(tensor: Any, what: str) -> Layout:
    """Return the layout of a tensor that an instruction reads or writes as it lies. what: the function and its
    argument. Raises CuteError for one that swizzles its elements."""
    lay = tensor.layout
    if isinstance(lay, Layout):
        return lay
    swizzle = swizzle_of(lay)
    same = None if swizzle is None else of_bytes(swizzle, tensor.element_type)
    like, period = ("", "") if same is None else (f", as {same} does bytes,", f", {same.period} bytes")
    raise CuteError(
        f"{what} {tensor!r} has a layout that swizzles elements{like} and does not lie as the instruction takes it: if "
        "the swizzle is meant of bytes, as those of make_smem_layout_atom are, allocate with layout.outer and "
        f"swizzle=layout.inner; if of elements, align the memory to its period{period}, or copy fewer elements at once"
    )


def in_shared(tensor: Any, what: str, why: str = "") -> Pointer:
    """Return the pointer of a tensor in shared memory. what: the function and its argument; why: it must lie there.
    Raises CuteError for one that lies elsewhere, with what to do."""
    p = tensor.iterator
    if isinstance(p, Pointer) and p.space is AddressSpace.smem:
        plain_layout(tensor, what)
        return p
    where = _ELSEWHERE[p.space] if isinstance(p, Pointer) else "its elements are coordinates or descriptors"
    raise CuteError(f"{what} {tensor!r} must lie in shared memory{why}; {where}")
