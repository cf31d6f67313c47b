# SPDX-License-Identifier: Apache-2.0
"""Atoms of either kind."""

from __future__ import annotations

from ..dtypes import DType
from ..seam import CuteError, traced
from .copy_atom import CopyAtom, make_copy_atom
from .mma_atom import MmaAtom, make_mma_atom
from .op import CopyOp, MmaOp

__all__ = ["Atom", "make_atom"]

Atom = CopyAtom | MmaAtom
"""A copy or an MMA atom, for annotations and `isinstance`."""


@traced
def make_atom(op: CopyOp | MmaOp, copy_internal_type: DType | None = None, num_bits_per_copy: int = 0) -> Atom:
    """Make the atom of an operation `op`: `make_mma_atom(op)`, or for a copy operation `make_copy_atom(op,
    copy_internal_type, num_bits_per_copy)`, the elements' type and the bits of one instruction. Raises CuteError for
    a copy operation without a type.

    >>> cute.make_atom(nvgpu.warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16))).shape_mnk
    (16, 8, 16)
    """
    if isinstance(op, MmaOp):
        return make_mma_atom(op)
    if copy_internal_type is None:
        raise CuteError(f"make_atom: {op!r} copies; give copy_internal_type, the elements' type")
    return make_copy_atom(op, copy_internal_type, num_bits_per_copy=num_bits_per_copy)
