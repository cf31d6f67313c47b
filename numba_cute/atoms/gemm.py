# SPDX-License-Identifier: Apache-2.0
"""`gemm`: the instructions of a product of fragments, one after the other."""

from __future__ import annotations

from typing import Any

from .. import layout, seam
from ..layout import Layout
from ..layout.pure import pure
from ..seam import CuteError, is_static, traced
from ..tensor.pointer import AddressSpace
from ..tensor.tensor import Tensor
from .mma_atom import MmaAtom, TiledMma

__all__ = ["gemm", "mma_atom_call"]


@traced
def mma_atom_call(atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Issue one instruction: d = a @ b.T + c on the fragments of one atom, each of one mode (V). c as in `gemm`."""
    atom = atom.atom if isinstance(atom, TiledMma) else atom
    _begin_with(atom, d, c)
    atom.issue(d, a, b, True)


def _begin_with(atom: MmaAtom, d: Tensor, c: Tensor) -> None:
    """Put c where the instructions, which add in place, add to it."""
    if {d.memspace, c.memspace} != {AddressSpace.rmem} or d.shape != c.shape or d.element_type != c.element_type:
        raise CuteError(f"gemm: d {d!r} and c {c!r} must be accumulators of one shape and type in registers")
    if atom.accumulate is False:
        return  # what c holds is not used
    at, start = d.iterator, c.iterator
    same = seam.current().same_registers(at.address, start.address)
    if same and at.offset == start.offset and d.layout == c.layout:
        return
    if getattr(atom.op, "asynchronous", False):
        if same is None and d.layout == c.layout:
            return
        raise CuteError(
            f"gemm: c {c!r} is not d: {type(atom.op).__name__} adds in place, to registers that it still uses after "
            "the call; copy c to d before warpgroup.fence(), and pass d twice"
        )
    d.store(c.load())


@traced
def gemm(atom: Any, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """d = a @ b.T + c over fragments: (V), (V, M) and (V, N), or (V, M, K) and (V, N, K); d is (V, M, N).

    c is d, or another accumulator like it, which is copied first (wgmma, which is asynchronous, takes d alone).
    Over a K mode the first step adds to d only if the atom's Field.ACCUMULATE says so, the others always. Executed
    by all threads of the atom. It does not fence, commit or wait.
    """
    atom = atom.atom if isinstance(atom, TiledMma) else atom
    _begin_with(atom, d, c)
    for at_d, at_a, at_b, first in gemm_steps(d.layout, a.layout, b.layout):
        part = (d, a, b) if at_d is None else (d[at_d], a[at_a], b[at_b])
        atom.issue(*part, first, at_a, at_b)


@pure
def gemm_steps(d: Layout, a: Layout, b: Layout) -> tuple[tuple[Any, Any, Any, bool], ...]:
    """Which instructions make a product of fragments: the coordinates in d, a and b (None for the whole), and whether
    it is the first along K."""
    ra, rb = layout.rank(a), layout.rank(b)
    if ra != rb or ra > 3:
        raise CuteError(f"gemm: a has {ra} modes and b {rb}; give both (V), both (V, M/N), or both (V, M/N, K)")
    if ra == 1:
        return ((None, None, None, True),)
    m, n = layout.size(a, (1,)), layout.size(b, (1,))
    k = layout.size(a, (2,)) if ra == 3 else 1
    if not is_static((m, n, k)):
        raise CuteError(f"gemm: extents ({m}, {n}, {k}) of the fragments must be static")
    if layout.rank(d) != 3 or (layout.size(d, (1,)), layout.size(d, (2,))) != (m, n):
        raise CuteError(f"gemm: d has shape {d.shape}, but a and b make (V, {m}, {n})")
    if ra == 3 and layout.size(b, (2,)) != k:
        raise CuteError(f"gemm: a has {k} steps of K, but b has {layout.size(b, (2,))}")
    steps = []
    for kk in range(k):
        at = (kk,) if ra == 3 else ()
        steps += [((None, i, j), (None, i, *at), (None, j, *at), kk == 0) for i in range(m) for j in range(n)]
    return tuple(steps)
