# SPDX-License-Identifier: Apache-2.0
"""What one warp does together: matrices between shared memory and registers, and mma.sync (`warp_mma`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import isa, seam
from ..copy_atom import CopyAtom, CopyTraits
from ..dtypes import DType
from ..isa import atoms
from ..layout import Layout, crd2idx, make_layout, recast_layout, size
from ..layout.pure import pure
from ..mma import Field
from ..pointer import AddressSpace, Pointer, access_alignment, physical
from ..seam import CuteError, static
from ..tensor import Tensor
from .warp_mma import (
    MmaB1Op,
    MmaF16BF16Op,
    MmaF64Op,
    MmaFP8Op,
    MmaI4Op,
    MmaI8Op,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
    MmaTF32Op,
)

__all__ = [
    "Field",
    "LdMatrix16x16x8bOp",
    "LdMatrix8x8x16bOp",
    "MmaB1Op",
    "MmaF16BF16Op",
    "MmaF64Op",
    "MmaFP8Op",
    "MmaI4Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaTF32Op",
    "StMatrix16x8x8bOp",
    "StMatrix8x8x16bOp",
]


@pure
def _traits(load: bool, transpose: bool, num: int, width: int) -> CopyTraits:
    """The thread-value layouts in elements of `width` bits."""
    return _recast(load, (atoms.ldmatrix_b16 if load else atoms.stmatrix_b16)(num, transpose), width, 16)


@pure
def _byte_traits(load: bool, num: int, width: int) -> CopyTraits:
    """The same of matrices of bytes."""
    return _recast(load, (atoms.ldmatrix_m16n16_b8 if load else atoms.stmatrix_m16n8_b8)(num), width, 8)


def _recast(load: bool, atom: atoms.CopyAtom, width: int, unit: int) -> CopyTraits:
    def recast(lay: Layout) -> Layout:
        return lay if width == unit else recast_layout(width, unit, lay)

    src, dst = recast(atom.src), recast(atom.dst)
    return CopyTraits(make_layout(32), src, dst, dst if load else src)


def _check(op: Any, what: str, counts: tuple[int, ...] = (1, 2, 4)) -> None:
    if op.num_matrices not in counts or type(op.num_matrices) is not int:
        legal = ", ".join(map(str, counts[:-1])) + f" or {counts[-1]}"
        raise CuteError(f"{what}: num_matrices {op.num_matrices!r} must be {legal}")
    if type(op.transpose) is not bool:
        raise CuteError(f"{what}: transpose {op.transpose!r} must be True or False")


def _widths(op: Any, dtype: DType, what: str) -> None:
    if dtype.width not in ((16,) if op.transpose else (8, 16, 32)):
        legal = "16-bit elements" if op.transpose else "elements of 8, 16 or 32 bits"
        raise CuteError(f"{what}(transpose={op.transpose}): {dtype} elements; it moves {legal}")


def _words(t: Tensor, num: int, what: str) -> tuple[seam.Regs, ...]:
    """The registers of `num` words that a lane holds: one span, or where they lie apart one for each word."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.rmem:
        raise CuteError(f"{what}: {t!r} must be registers")
    per = 32 // p.dtype.width
    offsets = _offsets(t.layout)
    if len(offsets) != num * per:
        raise CuteError(f"{what}: {t!r} has {len(offsets)} elements, but a lane holds {num * per}")
    if offsets == tuple(range(offsets[0], offsets[0] + num * per)):
        return (seam.Regs(p.address, p.dtype, p.offset + offsets[0], num * per),)
    for w in range(0, num * per, per):
        if offsets[w : w + per] != tuple(range(offsets[w], offsets[w] + per)):
            raise CuteError(f"{what}: {t!r} must be words of {per} consecutive elements; retile the fragment")
    return tuple(seam.Regs(p.address, p.dtype, p.offset + at, per) for at in offsets[::per])


@pure
def _offsets(lay: Layout) -> tuple[int, ...]:
    return tuple(int(crd2idx(i, lay)) for i in range(int(size(lay))))


def _into(t: Tensor, num: int, what: str, load: Callable[[seam.Regs], None]) -> None:
    """`load` into the registers of `t`."""
    spans = _words(t, num, what)
    if len(spans) == 1:
        load(spans[0])
        return
    backend, per = seam.current(), spans[0].count
    file = backend.registers(spans[0].dtype, num * per)
    load(seam.Regs(file, spans[0].dtype, 0, num * per))
    for i, to in enumerate(spans):
        backend.unvector(backend.vector(seam.Regs(file, to.dtype, i * per, per)), to)


def _from(t: Tensor, num: int, what: str) -> seam.Regs:
    """The registers of `t` as one span, gathered where they lie apart."""
    spans = _words(t, num, what)
    if len(spans) == 1:
        return spans[0]
    backend, per = seam.current(), spans[0].count
    file = backend.registers(spans[0].dtype, num * per)
    for i, at in enumerate(spans):
        backend.unvector(backend.vector(at), seam.Regs(file, at.dtype, i * per, per))
    return seam.Regs(file, spans[0].dtype, 0, num * per)


def _row(t: Tensor, what: str) -> Any:
    """The shared address of this lane's row of 16 bytes."""
    p = t.iterator
    if not isinstance(p, Pointer) or p.space is not AddressSpace.smem:
        raise CuteError(f"{what}: {t!r} must lie in shared memory")
    if access_alignment(p) % 16 or size(t.layout) * p.dtype.width != 128:
        raise CuteError(f"{what}: {t!r} must be a row of 16 bytes, 16-byte aligned; use a layout whose rows are")
    return physical(p)


@static
class LdMatrix8x8x16bOp:
    """Load `num_matrices` (1, 2, 4) 8 by 8 matrices of 16-bit elements, transposed if asked. A whole converged warp.
    PTX ldmatrix, sm_75."""

    transpose: bool = False
    num_matrices: int = 1

    def __post_init__(self) -> None:
        _check(self, "LdMatrix8x8x16bOp")

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        _widths(self, dtype, "LdMatrix8x8x16bOp")
        return _traits(True, self.transpose, self.num_matrices, dtype.width)  # type: ignore[no-any-return]

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        statics = {"num": self.num_matrices, "trans": self.transpose}
        row = _row(src, "ldmatrix: src")
        _into(dst, self.num_matrices, "ldmatrix: dst", lambda regs: isa.ldmatrix(dst=regs, addr=row, **statics))


@static
class StMatrix8x8x16bOp:
    """Store `num_matrices` (1, 2, 4) 8 by 8 matrices of 16-bit elements, transposed if asked. A whole converged warp.
    A TMA store that reads them needs `arch.fence_proxy` in each lane first. PTX stmatrix, sm_90."""

    transpose: bool = False
    num_matrices: int = 1

    def __post_init__(self) -> None:
        _check(self, "StMatrix8x8x16bOp")

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        _widths(self, dtype, "StMatrix8x8x16bOp")
        return _traits(False, self.transpose, self.num_matrices, dtype.width)  # type: ignore[no-any-return]

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        regs = _from(src, self.num_matrices, "stmatrix: src")
        isa.stmatrix(_row(dst, "stmatrix: dst"), regs, num=self.num_matrices, trans=self.transpose)


def _check_bytes(op: Any, dtype: DType, what: str) -> None:
    if dtype.width != 8:
        raise CuteError(f"{what}: {dtype} elements; it moves elements of 8 bits")


@static
class LdMatrix16x16x8bOp:
    """Load `num_matrices` (1, 2) 16 by 16 matrices of 8-bit elements, transposed (the only form there is). A whole
    converged warp. PTX ldmatrix.m16n16.b8, sm_100f."""

    num_matrices: int
    transpose: bool = True

    def __post_init__(self) -> None:
        _check(self, "LdMatrix16x16x8bOp", (1, 2))
        if not self.transpose:
            raise CuteError("LdMatrix16x16x8bOp: transpose False: the instruction always transposes")

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        _check_bytes(self, dtype, "LdMatrix16x16x8bOp")
        return _byte_traits(True, self.num_matrices, dtype.width)  # type: ignore[no-any-return]

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        num, row = self.num_matrices, _row(src, "ldmatrix: src")
        _into(dst, 2 * num, "ldmatrix: dst", lambda regs: isa.ldmatrix_m16n16_b8(dst=regs, addr=row, num=num))


@static
class StMatrix16x8x8bOp:
    """Store `num_matrices` (1, 2, 4) 16 by 8 matrices of 8-bit elements, transposed (the only form there is). A whole
    converged warp. A TMA store that reads them needs `arch.fence_proxy` in each lane first.
    PTX stmatrix.m16n8.b8, sm_100f."""

    num_matrices: int
    transpose: bool = True

    def __post_init__(self) -> None:
        _check(self, "StMatrix16x8x8bOp")
        if not self.transpose:
            raise CuteError("StMatrix16x8x8bOp: transpose False: the instruction always transposes")

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        _check_bytes(self, dtype, "StMatrix16x8x8bOp")
        return _byte_traits(False, self.num_matrices, dtype.width)  # type: ignore[no-any-return]

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        regs = _from(src, self.num_matrices, "stmatrix: src")
        isa.stmatrix_m16n8_b8(_row(dst, "stmatrix: dst"), regs, num=self.num_matrices)
