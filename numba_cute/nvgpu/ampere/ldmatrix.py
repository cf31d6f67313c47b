# SPDX-License-Identifier: Apache-2.0
"""ldmatrix and stmatrix: matrices of 8 or 16 rows between shared memory and a warp's registers. A whole converged warp;
lane i gives the address of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import isa, seam
from ...atoms.copy_atom import CopyAtom
from ...atoms.op import CopyOp, CopyTraits
from ...dtypes import DType, Uint32
from ...isa.facts import fragment_layouts
from ...layout import Layout, coalesce, flatten_to_tuple, make_layout, recast_layout, size, transform_leaf
from ...layout.layout import outer_of
from ...layout.pure import pure
from ...seam import CuteError, frozen, known_as
from ...tensor.pointer import access_alignment, physical
from ...tensor.tensor import Tensor
from ..common.by_row import ByRow, Choice
from ..common.checks import in_shared
from ..common.register_words import gathered, into

__all__ = [
    "LdMatrix16x16x8bOp",
    "LdMatrix16x8x8bOp",
    "LdMatrix8x16x8bOp",
    "LdMatrix8x8x16bOp",
    "StMatrix16x8x8bOp",
    "StMatrix8x8x16bOp",
]

_NUM, _TRANSPOSE = Choice("num_matrices", ("num",)), Choice("transpose", ("trans",))
_UNPACK = Choice("unpack_bits", ("bits",))


@pure
def _traits(load: bool, atom: fragment_layouts.CopyLayouts, unit: int, width: int) -> CopyTraits:
    """The thread-value layouts of an atom of `unit` bits, in elements of `width` bits."""
    src, dst = (recast_layout(width, 1, _in_bits(lay, unit)) for lay in (atom.src, atom.dst))
    return CopyTraits(make_layout(32), src, dst, dst if load else src)


def _in_bits(lay: Layout, unit: int) -> Layout:
    """A thread-value layout of elements of `unit` bits as one of bits."""
    modes = [(unit, 1)]
    for s, d in zip(flatten_to_tuple(lay.shape[1]), flatten_to_tuple(lay.stride[1])):
        if d * unit == modes[0][0]:
            modes[0] = (s * unit, 1)
        elif s > 1:
            modes.append((s, d * unit))
    values = make_layout(tuple(s for s, _ in modes), stride=tuple(d for _, d in modes)) if modes[1:] else modes[0][0]
    threads = Layout(lay.shape[0], transform_leaf(lambda d: d * unit, lay.stride[0]))
    return make_layout((threads, make_layout(values) if isinstance(values, int) else values))


def _widths(atom: CopyAtom, legal: tuple[int, ...]) -> None:
    """Refuse elements that the instruction does not move whole (its layouts exist for any type)."""
    if atom.value_type.width not in legal:
        bits = " or ".join(map(str, legal))
        raise CuteError(f"copy: {atom.op!r} moves elements of {bits} bits, and the atom's are {atom.value_type}")


def _row(t: Tensor, what: str) -> Any:
    """The shared address of this lane's row of 16 bytes."""
    p = in_shared(t, f"{what}:")
    whole = size(t.layout) * p.dtype.width == 128 and coalesce(outer_of(t.layout)).stride in (1, (1,))
    if not whole or access_alignment(p) % 16:
        raise CuteError(f"{what}: {t!r} must be a row of 16 bytes, 16-byte aligned; use a layout whose rows are")
    return physical(p)


@known_as("cute_nvgpu.warp")
class _MatrixCopy(ByRow, CopyOp):
    """Base of the operations."""

    _by_lanes = True
    choices = (_NUM, _TRANSPOSE, _UNPACK)
    num_matrices: Any
    transpose: Any


@frozen
class LdMatrix8x8x16bOp(_MatrixCopy):
    """Load 8 by 8 matrices of 16-bit elements to registers. A whole converged warp. PTX ldmatrix, sm_75.

    transpose: load each matrix transposed; if not, a matrix may also be 8 rows of 16 bytes of 4-, 8- or 32-bit
    elements. num_matrices: 1, 2 or 4. Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16).layout_dst_tv
    (32,(2,4)):(2,(1,64))
    """

    transpose: bool = False
    num_matrices: int = 1

    rows = (isa.ldmatrix,)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(True, fragment_layouts.ldmatrix_b16(self.num_matrices, self.transpose), 16, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (16,) if self.transpose else (4, 8, 16, 32))
        statics = {"num": self.num_matrices, "trans": self.transpose}
        row = _row(src, "ldmatrix: src")
        into(dst, self.num_matrices, "ldmatrix: dst", lambda regs: isa.ldmatrix(dst=regs, addr=row, **statics))


@frozen
class StMatrix8x8x16bOp(_MatrixCopy):
    """Store 8 by 8 matrices of 16-bit elements from registers: `LdMatrix8x8x16bOp` the other way. A whole converged
    warp. A TMA store that reads them needs `arch.fence_proxy` in each lane first. PTX stmatrix, sm_90.

    transpose: store each matrix transposed; if not, a matrix may also be 8 rows of 16 bytes of 8- or 32-bit elements.
    num_matrices: 1, 2 or 4. Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.StMatrix8x8x16bOp(False, 4), cute.Float16).layout_src_tv
    (32,(2,4)):(2,(1,64))
    """

    transpose: bool = False
    num_matrices: int = 1

    rows = (isa.stmatrix,)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(False, fragment_layouts.stmatrix_b16(self.num_matrices, self.transpose), 16, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (16,) if self.transpose else (8, 16, 32))
        regs = gathered(src, self.num_matrices, "stmatrix: src")
        isa.stmatrix(_row(dst, "stmatrix: dst"), regs, num=self.num_matrices, trans=self.transpose)


@frozen
class LdMatrix8x16x8bOp(_MatrixCopy):
    """Load 8 by 16 matrices of bytes to registers. A whole converged warp. PTX ldmatrix, sm_75;
    ldmatrix.m8n16.b8x16 with unpack_bits, sm_100f or sm_120f.

    transpose: False, the only form there is. num_matrices: 1, 2 or 4. unpack_bits: None, or 4 or 6: shared memory has
    rows of 16 elements of that many bits, packed, then padding up to 16 bytes; each comes in the low bits of a byte (an
    e2m1 of MmaMXF8F6F4Op lies 2 bits higher). Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.LdMatrix8x16x8bOp(), cute.Int8).layout_dst_tv
    (32,4):(4,1)
    """

    transpose: bool = False
    num_matrices: int = 1
    unpack_bits: int | None = None

    rows = (isa.ldmatrix, isa.ldmatrix_m8n16_unpack)
    fixed = {"trans": False}

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(True, fragment_layouts.ldmatrix_b16(self.num_matrices, False), 16, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (8,))
        num, bits, row = self.num_matrices, self.unpack_bits, _row(src, "ldmatrix: src")

        def load(regs: seam.Regs) -> None:
            if bits is None:
                isa.ldmatrix(dst=regs, addr=row, num=num, trans=False)
            else:
                isa.ldmatrix_m8n16_unpack(dst=regs, addr=row, num=num, bits=bits)

        into(dst, num, "ldmatrix: dst", load)


@frozen
class LdMatrix16x16x8bOp(_MatrixCopy):
    """Load 16 by 16 matrices of bytes to registers, transposed. A whole converged warp.
    PTX ldmatrix.m16n16, sm_100f or sm_120f.

    transpose: True, the only form there is. num_matrices: 1 or 2. unpack_bits: as of `LdMatrix8x16x8bOp`. Raises
    CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.LdMatrix16x16x8bOp(), cute.Int8).layout_dst_tv
    ((4,8),(1,4,2)):((64,1),(1,16,8))
    """

    transpose: bool = True
    num_matrices: int = 1
    unpack_bits: int | None = None

    rows = (isa.ldmatrix_m16n16_b8, isa.ldmatrix_m16n16_unpack)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(True, fragment_layouts.ldmatrix_m16n16_b8(self.num_matrices), 8, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (8,))
        row = _row(src, "ldmatrix: src")
        load = _load_16x16(row, self.num_matrices, self.unpack_bits)
        into(dst, 2 * self.num_matrices, "ldmatrix: dst", load)


def _load_16x16(row: Any, num: int, bits: int | None) -> Callable[[seam.Regs], None]:
    def load(regs: seam.Regs) -> None:
        if bits is None:
            isa.ldmatrix_m16n16_b8(dst=regs, addr=row, num=num)
        else:
            isa.ldmatrix_m16n16_unpack(dst=regs, addr=row, num=num, bits=bits)

    return load


@frozen
class LdMatrix16x8x8bOp(_MatrixCopy):
    """Load 16 by 8 matrices of bytes to registers, transposed: what `StMatrix16x8x8bOp` stores. Two of them are a 16
    by 16 matrix, whose registers two byte permutations part. A whole converged warp.
    PTX ldmatrix.m16n16 and prmt, sm_100f or sm_120f.

    transpose: True, the only form there is. num_matrices: 2 or 4. unpack_bits: as of `LdMatrix8x16x8bOp`. Raises
    CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.LdMatrix16x8x8bOp(), cute.Int8).layout_dst_tv
    ((4,8),(1,2,2,2)):((32,1),(1,16,8,128))
    """

    transpose: bool = True
    num_matrices: int = 2
    unpack_bits: int | None = None

    rows = (isa.ldmatrix_m16n16_b8, isa.ldmatrix_m16n16_unpack)
    choices = (Choice("num_matrices", ("num",), {1: 2, 2: 4}), _TRANSPOSE, _UNPACK)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(True, fragment_layouts.ldmatrix_m16n8_b8(self.num_matrices), 8, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (8,))
        num, row, backend = self.num_matrices, _row(src, "ldmatrix: src"), seam.current()
        raw = seam.Regs(backend.registers(Uint32, num), Uint32, 0, num)
        _load_16x16(row, num // 2, self.unpack_bits)(raw)

        def part(regs: seam.Regs) -> None:
            words = backend.registers(Uint32, num)
            for i in range(0, num, 2):
                low, high = (backend.read(seam.Regs(raw.file, Uint32, i + j, 1)) for j in (0, 1))
                for j, take in enumerate((0x5410, 0x7632)):
                    backend.write(seam.Regs(words, Uint32, i + j, 1), isa.prmt(low, high, take))
            whole = backend.vector(seam.Regs(words, Uint32, 0, num))
            backend.unvector(backend.bitcast(whole, regs.dtype), regs)

        into(dst, num, "ldmatrix: dst", part)


@frozen
class StMatrix16x8x8bOp(_MatrixCopy):
    """Store 16 by 8 matrices of bytes from registers, transposed. A whole converged warp. A TMA store that reads them
    needs `arch.fence_proxy` in each lane first. PTX stmatrix.m16n8.b8, sm_100f or sm_120f.

    transpose: True, the only form there is. num_matrices: 1, 2 or 4. Raises CuteError for others.

    >>> cute.make_copy_atom(nvgpu.warp.StMatrix16x8x8bOp(), cute.Int8).layout_src_tv
    ((4,8),(1,2,2)):((32,1),(1,16,8))
    """

    transpose: bool = True
    num_matrices: int = 1

    rows = (isa.stmatrix_m16n8_b8,)

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        return _traits(False, fragment_layouts.stmatrix_m16n8_b8(self.num_matrices), 8, dtype.width)

    def issue(self, atom: CopyAtom, src: Tensor, dst: Tensor) -> None:
        _widths(atom, (8,))
        regs = gathered(src, self.num_matrices, "stmatrix: src")
        isa.stmatrix_m16n8_b8(_row(dst, "stmatrix: dst"), regs, num=self.num_matrices)
