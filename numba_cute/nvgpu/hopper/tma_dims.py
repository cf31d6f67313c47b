# SPDX-License-Identifier: Apache-2.0
"""The dimensions of a tensor map: the modes of a tensor that each is made of, and how the box goes along them."""

from __future__ import annotations

import math
from typing import Any

from ... import layout
from ...layout import Layout, ScaledBasis
from ...seam.ground.records import dataclass
from ..common.checks import need

_WHAT = "make_tiled_tma_atom"
_MOST = 256
"""The largest extent of a box along one dimension."""


@dataclass(frozen=True)
class Dim:
    """One dimension of TMA.

    box: how many of the map's elements a copy takes along it. modes: of the tensor, innermost first; more than one
    where the tile goes through memory without a gap from one to the next."""

    box: int
    modes: tuple[ScaledBasis, ...]


def dims_of(gmem: Layout, smem: Layout, tile: Layout, most: int, ratio: int, bits: int) -> list[Dim]:
    """The dimensions for one box, innermost first, of at most `most`.

    The box goes on along shared memory while its elements are neighbours along modes of gmem, each mode once. ratio:
    elements of gmem, of `bits` bits each, that one of the map's innermost is. Modes share a dimension where TMA could
    not take them one by one: rows of less than 16 bytes, or too many modes."""
    identity = layout.make_identity_layout(gmem.shape)
    along = layout.flatten(layout.coalesce(layout.composition(tile, layout.right_inverse(smem))))
    runs: list[tuple[int, ScaledBasis]] = []
    for s, d in zip(layout.wrap(along.shape), layout.wrap(along.stride)):
        if not isinstance(d, ScaledBasis) or d.value != 1 or any(d == e for _, e in runs):
            break
        runs.append((int(s), d))
    need(_WHAT, bool(runs), f"smem_layout {smem} has no run of elements that are neighbours in gmem_tensor {gmem} too")
    found = {e for _, e in runs}
    rest = [e for s, d, e in leaves(gmem, identity) if not (_is(s, 1) or _is(d, 0) or e in found)]
    alone = ratio == 1 and runs[0][0] * bits % 128 == 0 and len(runs) + len(rest) <= most
    dims = [Dim(s, (e,)) for s, e in runs] if alone else _merged(gmem, runs, ratio)
    dims += [Dim(1, (e,)) for e in rest]
    need(
        _WHAT,
        len(dims) <= most,
        f"gmem_tensor {gmem} needs {len(dims)} dimensions of TMA, which has {most}; slice or merge modes",
    )
    return dims


def _merged(gmem: Layout, runs: list[tuple[int, ScaledBasis]], ratio: int) -> list[Dim]:
    """The runs with those that follow each other in memory together, `ratio` elements as one of the innermost."""
    dims: list[Dim] = []
    end = None  # of what the last one takes of memory, where the next would go on
    for s, e in runs:
        stride, extent = layout.basis_get(e, gmem.stride), s
        if type(stride) is int and 0 < stride < ratio:
            need(
                _WHAT,
                s * stride % ratio == 0 or ratio % (s * stride) == 0,
                f"internal_type takes {ratio} elements of gmem_tensor {gmem} together, which its run of {s} with "
                f"stride {stride} does not make",
            )
            extent = max(1, s * stride // ratio)
        last = dims[-1] if dims else None
        if last is not None and type(stride) is int and stride == end and last.box * extent <= _MOST:
            dims[-1] = Dim(last.box * extent, (*last.modes, e))
        else:
            dims.append(Dim(extent, (e,)))
        end = s * stride if type(stride) is int else None
    return dims


def leaves(gmem: Layout, identity: Layout) -> list[tuple[Any, Any, Any]]:
    """(extent, stride, basis) of each flat mode."""
    shape, stride = layout.flatten_to_tuple(gmem.shape), layout.flatten_to_tuple(gmem.stride)
    return list(zip(shape, stride, layout.flatten_to_tuple(identity.stride)))


def _is(x: Any, value: int) -> bool:
    return type(x) is int and x == value


def extent_and_stride(gmem: Layout, dim: Dim) -> tuple[int, int]:
    """Return the number of elements of gmem that a dimension reaches over, and their distance from one another."""
    entries = [(int(layout.basis_get(e, gmem.shape)), int(layout.basis_get(e, gmem.stride))) for e in dim.modes]
    if len(entries) == 1:
        return entries[0]
    unit = math.gcd(*(d for _, d in entries))
    return 1 + sum((n - 1) * (d // unit) for n, d in entries), unit


def coordinate_strides(gmem: Layout, dims: list[Dim], steps: list[int], first: int) -> Any:
    """The strides of the coordinate tensor: along each mode of gmem, the TMA dimension that it is. steps: of the
    element strides; first: by what coordinates along dimension 0 are counted."""
    by: dict[Any, ScaledBasis] = {}
    for i, (dim, step) in enumerate(zip(dims, steps)):
        unit = extent_and_stride(gmem, dim)[1] if len(dim.modes) > 1 else 0
        for e in dim.modes:
            scale = int(layout.basis_get(e, gmem.stride)) // unit if unit else 1
            by[e] = ScaledBasis(step * scale * (first if i == 0 else 1), (i,))

    def leaf(path: tuple[int, ...], shape: Any) -> Any:
        if isinstance(shape, tuple):
            return tuple(leaf((*path, i), s) for i, s in enumerate(shape))
        return by.get(ScaledBasis(1, path or (0,)), 0)

    return leaf((), gmem.shape)


def orders(gmem: Layout, dims: list[Dim]) -> tuple[Any, ...]:
    """Return the flat modes of gmem that the dimensions are: a number, or a tuple of several."""
    flat = layout.flatten_to_tuple(layout.make_identity_layout(gmem.shape).stride)
    each = [tuple(flat.index(e) for e in dim.modes) for dim in dims]
    return tuple(modes[0] if len(modes) == 1 else modes for modes in each)
