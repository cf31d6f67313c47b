# SPDX-License-Identifier: Apache-2.0
"""Products of tiles by any matrix instruction.

Names and parameters are those that NVIDIA documents of `cute.experimental`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import layout
from ..atoms.gemm import gemm
from ..atoms.mma_atom import MmaAtom, TiledMma
from ..seam import CuteError, traced
from ..tensor.pointer import AddressSpace, Pointer
from ..tensor.tensor import Tensor

__all__ = ["dot", "dot_block_scaled"]


def _fragment(atom: Any, operand: str, t: Any, what: str) -> Any:
    """An operand as the instruction takes it: what lies in shared memory of tcgen05 and wgmma as descriptors."""
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: {operand.lower()} {t!r} is not a tensor")
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem:
        return t
    if p.swizzle is not None:  # that is of absolute addresses, and memory that has one begins at its period
        t = Tensor(replace(p, alignment=max(p.alignment, p.swizzle.period)), t.layout)
    return atom.op.fragment(operand, t)


def _factors(t: Any, operand: Tensor, name: str, what: str) -> Tensor:
    """An operand's factors, of as many modes: those that they lack have one element."""
    if not isinstance(t, Tensor):
        raise CuteError(f"{what}: {name} {t!r} is not a tensor")
    rank = max(layout.rank(t.layout), layout.rank(operand.layout))
    return t._relaid(lambda lay: layout.append_ones(lay, rank))


def _atom(mma_atom: Any, what: str) -> Any:
    if not isinstance(mma_atom, (MmaAtom, TiledMma)):
        raise CuteError(f"{what}: mma_atom {mma_atom!r} is neither an MmaAtom nor a TiledMma")
    return mma_atom


@traced
def dot(mma_atom: MmaAtom | TiledMma, a: Tensor, b: Tensor, c: Tensor) -> None:
    """Multiply tiles and add to `c`: c = a @ b.T + c, or a @ b.T alone where Field.ACCUMULATE of `mma_atom` is False.

    mma_atom: of any matrix instruction; its fields are set by `mma_atom = mma_atom.set(field, value)`. a, b: (V, M, K)
    and (V, N, K) as the instruction takes them: of mma.sync registers, of wgmma and tcgen05.mma shared memory as it was
    allocated, of wgmma A in registers and of tcgen05.mma A in tensor memory too. c: the accumulators (V, M, N), in
    registers or tensor memory. Executed by the threads of the instruction; it does not fence, commit or wait. Raises
    CuteError as `cute.gemm` does. PTX and least target: the instruction's.

    >>> from numba_cute import experimental as ext
    >>> tiled = cute.make_tiled_mma(nvgpu.MmaUniversalOp(cute.Float32), (1, 1, 1))
    >>> def kernel():
    ...     a, b, c = [cute.make_rmem_tensor(s, cute.Float32) for s in ((1, 2, 4), (1, 3, 4), (1, 2, 3))]
    ...     a.fill(2)
    ...     b.fill(3)
    ...     c.fill(1)
    ...     ext.dot(tiled, a, b, c)
    ...     print(c[0, 0, 0])
    >>> cute.simulate(kernel)[1, 1]()
    25.0
    """
    atom = _atom(mma_atom, "dot")
    gemm(atom, c, _fragment(atom, "A", a, "dot"), _fragment(atom, "B", b, "dot"), c)


@traced
def dot_block_scaled(mma_atom: MmaAtom | TiledMma, a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, c: Tensor) -> None:
    """Multiply tiles whose blocks of K have scale factors, and add to `c`: c = (a * sfa) @ (b * sfb).T + c.

    mma_atom: of a block-scaled instruction. a, b, c: as of `dot`. sfa, sfb: the factors in tensor memory, (V, M, K) and
    (V, N, K); modes of one element at the end may be left out. Executed by the warp that issues; it does not commit or
    wait. Raises CuteError as `cute.gemm` does. examples/experimental_blockscaled_gemm.py uses it. PTX
    tcgen05.mma.block_scale, sm_100a."""
    atom = _atom(mma_atom, "dot_block_scaled")
    what = "dot_block_scaled"
    x, y = _fragment(atom, "A", a, what), _fragment(atom, "B", b, what)
    gemm(atom, c, [x, _factors(sfa, x, "sfa", what)], [y, _factors(sfb, y, "sfb", what)], c)  # pairs, as the row has it
