# SPDX-License-Identifier: Apache-2.0
"""Tensors whose channels are cut into slices of 16 or 32 bytes (NC/8HWC8, NC/16HWC16 of 2-byte elements), as TMA's
interleaved maps take them: see isa/facts/tensormap.py. In a layout a slice is the mode of stride 1, and the mode whose
stride is its size (W) comes next in shared memory."""

from __future__ import annotations

from typing import Any

from ... import layout
from ...dtypes import DType
from ...isa.facts.tensormap import INTERLEAVES, TensorMapRecord
from ...layout import Layout, ScaledBasis
from ...tensor.address import place_of
from ...tensor.pointer import Pointer
from ..common.checks import need

Mode = ScaledBasis | None
"""A mode of the tensor, or None: a dimension that it lacks."""


def slice_of(interleave: str, dtype: DType, what: str) -> int:
    """The elements of a slice."""
    legal = [k for k in INTERLEAVES if k != "none"]
    need(what, interleave in legal, f"interleave {interleave!r} is none of 'none', {', '.join(map(repr, legal))}")
    return INTERLEAVES[interleave] // dtype.bytes


def dimensions(
    gmem: Layout, box: list[int], modes: list[ScaledBasis], dtype: DType, interleave: str
) -> tuple[list[int], list[Mode]]:
    """The box and the modes that the dimensions of an interleaved map are, from those of shared memory, of which the
    first is the slice. The dimension before the last holds one: a mode of which the box has one goes there."""
    what = "make_tiled_tma_atom"
    elements = slice_of(interleave, dtype, what)
    extent, stride = (int(layout.basis_get(modes[0], v)) for v in (gmem.shape, gmem.stride))
    need(
        what,
        (extent, stride, box[0]) == (elements, 1, elements),
        f"interleave {interleave!r} wants a mode of {elements} {dtype} with stride 1 in gmem_tensor {gmem}, "
        f"whole in the tile and first in shared memory; there it is a mode of {extent} with stride {stride}, {box[0]} "
        "in a row",
    )
    need(what, len(modes) > 1, f"gmem_tensor {gmem} has one slice; interleave is for tensors of many")
    along = int(layout.basis_get(modes[1], gmem.stride))
    need(
        what,
        along == elements,
        f"gmem_tensor {gmem} has stride {along} along the mode that comes after the slice in shared memory; it "
        f"must be {elements}: interleaved slices lie next to each other there",
    )
    held: list[int] = list(box[1:])
    found: list[Mode] = list(modes[1:])
    single = next((i for i in reversed(range(1, len(held))) if held[i] == 1), None)
    if len(held) < 3:
        held[1:1], found[1:1] = [1] * (3 - len(held)), [None] * (3 - len(held))
    elif single is None:
        held[-2:] = [1, 1]
    else:
        held.insert(len(held) - 2, held.pop(single))
        found.insert(len(found) - 2, found.pop(single))
    return held, found


def record(
    ptr: Pointer, dtype: DType, gmem: Layout, modes: list[Mode], box: list[int], steps: list[int],
    options: dict[str, Any],
) -> TensorMapRecord:  # fmt: skip
    """The tensor map; a dimension that the tensor lacks has one, as far away as the tensor is long."""
    unit = INTERLEAVES[options["interleave"]]
    dims = [1 if e is None else int(layout.basis_get(e, gmem.shape)) for e in modes]
    known = {e: int(layout.basis_get(e, gmem.stride)) * dtype.bytes for e in modes if e is not None}
    beyond = max(n * known[e] for n, e in zip(dims, modes) if e is not None)
    strides = [beyond if e is None else known[e] for e in modes[1:]]
    strides = [-(-s // unit) * unit if n == 1 else s for n, s in zip(dims[1:], strides)]
    whole = tuple(n * s for n, s in zip(box, steps))
    return TensorMapRecord(
        dtype, int(ptr.address), tuple(dims), tuple(strides), whole, tuple(steps), place=place_of(ptr.address),
        **options,
    )  # fmt: skip
