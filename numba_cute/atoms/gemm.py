# SPDX-License-Identifier: Apache-2.0
"""`gemm`: the instructions of a product of fragments, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import layout
from ..layout import Layout
from ..layout.pure import pure
from ..seam import CuteError, is_static, traced
from ..seam.guards.messages import how_static
from ..tensor.algebra import prepend_ones
from ..tensor.tensor import Tensor
from .mma_atom import MmaAtom, ThrMma, TiledMma
from .op import Field

__all__ = ["gemm", "mma_atom_call"]


@traced
def mma_atom_call(atom: MmaAtom | TiledMma, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Issue one instruction of `atom`: d = a @ b.T + c on the fragments of one atom, each of one mode (V). c: as in
    `gemm`, whose threads and errors it has too. PTX and least target: the operation's.

    >>> def kernel():
    ...     atom = cute.make_mma_atom(nvgpu.MmaUniversalOp(cute.Float32))
    ...     a, b, c = [cute.make_rmem_tensor(1, cute.Float32) for _ in range(3)]
    ...     a.fill(2)
    ...     b.fill(3)
    ...     c.fill(1)
    ...     cute.mma_atom_call(atom, c, a, b, c)
    ...     print(c[0])
    >>> cute.simulate(kernel)[1, 1]()
    7.0
    """
    atom = _atom(atom, "mma_atom_call")
    atom.op.begin(d, c, atom.accumulate)
    atom.issue(d, a, b, True)


@traced
def gemm(
    atom: MmaAtom | TiledMma, d: Tensor, a: Tensor | Sequence[Tensor], b: Tensor | Sequence[Tensor], c: Tensor
) -> None:
    """Multiply fragments by `atom`, an atom or a tiled MMA: d = a @ b.T + c. a, b: (V), (V, M) and (V, N), or (V, M, K)
    and (V, N, K), as make_fragment_A and _B make them; d is (V, M, N). Of an atom of one value (`MmaUniversalOp`) all
    may be without V: a (M) or (M, K), b (N) or (N, K), and d (M, N).

    c is d, or another accumulator like it, which is copied first (wgmma, which is asynchronous, takes d alone). Of a
    block-scaled operation a and b may be lists [a, factors of a] and [b, factors of b], with a tensor of factors as
    Field.SFA and SFB take it. Over a K mode the first step adds to d only if the atom's Field.ACCUMULATE says so, the
    others always. Executed by all threads of the atom. It does not fence, commit or wait. Raises CuteError for
    fragments of other shapes, types or memories than the operation takes. PTX and least target: the operation's.

    >>> def kernel():
    ...     tiled = cute.make_tiled_mma(nvgpu.MmaUniversalOp(cute.Float32))
    ...     a, b, c = [cute.make_rmem_tensor(s, cute.Float32) for s in ((1, 2, 4), (1, 3, 4), (1, 2, 3))]
    ...     a.fill(2)
    ...     b.fill(3)
    ...     c.fill(1)
    ...     cute.gemm(tiled, c, a, b, c)
    ...     print(c[0, 0, 0])
    >>> cute.simulate(kernel)[1, 1]()
    25.0
    """
    atom, x, y = _with_factors(_atom(atom, "gemm"), a, b)
    if layout.rank(d.layout) == 2:
        d, x, y, c = (prepend_ones(t) for t in (d, x, y, c))
    atom.op.begin(d, c, atom.accumulate)
    if atom.op.whole:
        atom.op.issue_whole(d, x, y, gemm_extents(d.layout, x.layout, y.layout), atom.accumulate)
        return
    for at_d, at_x, at_y, first in gemm_steps(d.layout, x.layout, y.layout):
        of_d, of_x, of_y = (d, x, y) if at_d is None else (d[at_d], x[at_x], y[at_y])
        atom.issue(of_d, of_x, of_y, first, at_x, at_y)


def _atom(atom: Any, what: str) -> MmaAtom:
    atom = atom.tiled_mma if isinstance(atom, ThrMma) else atom
    atom = atom.atom if isinstance(atom, TiledMma) else atom
    if not isinstance(atom, MmaAtom):
        raise CuteError(f"{what}: atom {atom!r} is neither an MmaAtom nor a TiledMma")
    return atom


def _with_factors(atom: MmaAtom, a: Any, b: Any) -> tuple[MmaAtom, Tensor, Tensor]:
    """The atom with the factors that come with a and b, and these alone."""
    found = []
    for name, operand, field in (("a", a, Field.SFA), ("b", b, Field.SFB)):
        if isinstance(operand, (list, tuple)):
            if len(operand) != 2 or not all(isinstance(t, Tensor) for t in operand):
                raise CuteError(f"gemm: {name} {operand!r} must be a tensor, or [{name}, its factors], two tensors")
            atom, operand = atom.set(field, operand[1]), operand[0]
        found.append(operand)
    return atom, found[0], found[1]


@pure
def gemm_extents(d: Layout, a: Layout, b: Layout) -> tuple[int, int, int]:
    """Count the instructions along M, N and K that make a product of fragments."""
    ra, rb = layout.rank(a), layout.rank(b)
    if ra != rb or ra > 3:
        raise CuteError(f"gemm: a has {ra} modes and b {rb}; give both (V), both (V, M/N), or both (V, M/N, K)")
    if ra == 1:
        return 1, 1, 1
    m, n = layout.size(a, (1,)), layout.size(b, (1,))
    k = layout.size(a, (2,)) if ra == 3 else 1
    if not is_static((m, n, k)):
        raise CuteError(f"gemm: extents ({m}, {n}, {k}) of the fragments must be static{how_static(k)}")
    if layout.rank(d) != 3 or (layout.size(d, (1,)), layout.size(d, (2,))) != (m, n):
        raise CuteError(f"gemm: d has shape {d.shape}, but a and b make (V, {m}, {n})")
    if ra == 3 and layout.size(b, (2,)) != k:
        raise CuteError(f"gemm: a has {k} steps of K, but b has {layout.size(b, (2,))}")
    return m, n, k


@pure
def gemm_steps(d: Layout, a: Layout, b: Layout) -> tuple[tuple[Any, Any, Any, bool], ...]:
    """List the instructions that make a product of fragments: the coordinates in d, a and b (None for the whole), and
    whether it is the first along K."""
    (m, n, k), rank = gemm_extents(d, a, b), layout.rank(a)
    if rank == 1:
        return ((None, None, None, True),)
    steps = []
    for kk in range(k):
        at = (kk,) if rank == 3 else ()
        steps += [((None, i, j), (None, i, *at), (None, j, *at), kk == 0) for i in range(m) for j in range(n)]
    return tuple(steps)
