# SPDX-License-Identifier: Apache-2.0
"""The copies of one thread between memories and registers, in the order of their elements, as passes see them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ... import seam
from ...atoms.copy_atom import CopyAtom, TiledCopy
from ...compiler.inspection import inference
from ...layout import Layout
from ...nvgpu import CopyUniversalOp
from ...tensor.pointer import Pointer
from ...tensor.tensor import Tensor
from ..library.operations import ApiOp
from ..library.types import description_of_value
from .rewriting import values_of


@dataclass(frozen=True)
class PlainCopy:
    """A copy of all elements of one tensor to another by each thread. src, dst: the tensors as values, a, b: as traced
    code sees them. bits: of one access, 0 where the operation leaves that open."""

    src: SSAValue
    dst: SSAValue
    a: Tensor
    b: Tensor
    bits: int


def plain_copy(op: Operation) -> PlainCopy | None:
    """Take an operation for such a copy, within `inference.abstractly`; None if it is none, or says more."""
    if not isinstance(op, ApiOp) or op.name not in (
        "numba_cute.copy",
        "numba_cute.autovec_copy",
        "numba_cute.basic_copy",
    ):
        return None
    args, keywords = values_of(op)
    keywords.pop("unroll_factor", None)
    bits = 0
    if op.name == "numba_cute.copy":
        atom = inference.example_of(description_of_value(args[0]))
        atom = atom.atom if isinstance(atom, TiledCopy) else atom
        if not isinstance(atom, CopyAtom) or not isinstance(atom.op, CopyUniversalOp):
            return None
        bits, args = atom.num_bits, args[1:]
    if len(args) != 2 or any(v is not None for v in keywords.values()):
        return None
    a, b = (inference.example_of(description_of_value(t)) for t in args)
    if op.name == "numba_cute.basic_copy":
        bits = int(a.element_type.width)
    for t in (a, b):
        memory = isinstance(t, Tensor) and isinstance(t.iterator, Pointer) and isinstance(t.layout, Layout)
        if not memory or not seam.is_static(t.shape):
            return None
    return PlainCopy(args[0], args[1], a, b, bits)
