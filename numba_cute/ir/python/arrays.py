# SPDX-License-Identifier: Apache-2.0
"""Arrays of Numba, which kernels may take beside tensors (xDSL's `memref`), as Python."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref

from .writer import Writer, writes


def _element(w: Writer, op: Any) -> str:
    if not op.indices:
        return f"{w.typed(op.memref)}[()]"
    return f"{w.typed(op.memref)}[{', '.join(map(w.use, op.indices))}]"


@writes(memref.LoadOp)
def load(w: Writer, op: memref.LoadOp) -> None:
    """An element of an array, as the type that the IR says."""
    w.set(op.res, _element(w, op))


@writes(memref.StoreOp)
def store(w: Writer, op: memref.StoreOp) -> None:
    """An element of an array that is written."""
    w.line(f"{_element(w, op)} = {w.typed(op.value)}")


@writes(memref.DimOp)
def dimension(w: Writer, op: memref.DimOp) -> None:
    """A dimension of an array."""
    w.set(op.result, f"{w.typed(op.source)}.shape[{w.use(op.index)}]")
