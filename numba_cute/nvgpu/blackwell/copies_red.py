# SPDX-License-Identifier: Apache-2.0
"""tcgen05.ld.red: loads from tensor memory that also give the least or greatest of what each thread loads, as a
softmax wants of its rows. sm_103 and sm_110."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import isa, layout
from ...atoms.copy_atom import CopyAtom
from ...atoms.instructions import instructions
from ...atoms.op import CopyTraits
from ...dtypes import DType
from ...isa.facts import tensor_memory as tmem
from ...seam import CuteError, StaticEnum, frozen
from ...tensor.pointer import AddressSpace, Pointer
from ...tensor.tensor import Tensor
from ..common.by_row import TYPES, Choice, known_name
from ..common.register_words import words
from .copies import PACK, REPEAT, Pack, Repetition, TmemCopy, loaded

__all__ = ["LdRed16x32bx2Op", "LdRed32x32bOp", "TmemLoadRedOp"]


class TmemLoadRedOp(StaticEnum):
    """The element that a load with reduction also gives: the least (MIN) or greatest (MAX).

    >>> [member.name for member in nvgpu.tcgen05.TmemLoadRedOp]
    ['MIN', 'MAX']
    """

    MIN = "min"
    MAX = "max"


_RED = Choice("redOp", ("op",), {op.value: op for op in TmemLoadRedOp})
_TYPES = {t: name for name, t in TYPES.items()}


class _LoadRed(TmemCopy):
    """Base of the loads with reduction."""

    loads = True
    destinations: ClassVar[int] = 2
    pack: Any
    redOp: Any  # noqa: N815 - CuTe's name
    abs: Any
    nan: Any
    rows = (isa.tcgen05_ld_red,)
    choices = (REPEAT, PACK, _RED, Choice("abs", ("abs",)), Choice("nan", ("nan",)))

    @property
    def packing(self) -> Any:
        return self.pack

    def _types(self) -> list[str]:
        return [c["type"] for c in isa.tcgen05_ld_red.cases if (c["abs"], c["nan"]) == (self.abs, self.nan)]

    def traits(self, dtype: DType, num_bits: int) -> CopyTraits:
        legal = list(dict.fromkeys(self._types()))
        if _TYPES.get(dtype) not in legal:
            names = " or ".join(str(TYPES[t]) for t in legal)
            raise CuteError(f"{known_name(self)}: elements of {dtype} must be {names}")
        return super().traits(dtype, num_bits)

    def copy(
        self, atom: CopyAtom, src: Tensor, dst: Any, pred: Tensor | None, bar: Any, mask: Any, policy: Any
    ) -> None:
        self.refuse(tma_bar_ptr=bar, mcast_mask=mask, cache_policy=policy)
        if pred is not None:
            raise CuteError(f"copy: pred is not for {known_name(self)}: put the copy of the whole warp under `if`")
        to, reduced = dst
        row, statics = self.row()
        statics["type"] = _TYPES[atom.value_type]
        parts = instructions(atom, src, to, None)
        spans = _elements(reduced, len(parts), atom.value_type, known_name(self))
        for (part, here, _), red in zip(parts, spans):
            row(dst=loaded(self, atom, here), red=red, taddr=self.place(atom, part, "src"), **statics)


def _elements(t: Tensor, count: int, dtype: DType, name: str) -> list[Any]:
    """The registers of a tensor of one element for each instruction."""
    p = t.iterator
    right = isinstance(p, Pointer) and p.space is AddressSpace.rmem and p.dtype.width == dtype.width
    if not right or layout.size(t.layout) != count:
        raise CuteError(
            f"{name}: dst[1] {t!r} must be {count} registers of {dtype}, one for each instruction: of the shape (1, "
            "rest…) of the destination"
        )
    return [words(Tensor(p + int(t.layout(i)), layout.make_layout(1)), 1, name)[0] for i in range(count)]


@frozen
class LdRed32x32bOp(_LoadRed):
    """Load 32 lanes of 32 bits from tensor memory, each to a thread, and the least or greatest element of each. A whole
    converged warp; then `arch.fence_view_async_tmem_load`. `cute.copy(…, src, (dst, reduced))`: reduced has an element
    for each instruction. PTX tcgen05.ld.red, sm_103f.

    repeat: a member of Repetition from x2 on. pack: Pack.NONE. redOp: a member of TmemLoadRedOp. abs: of Float32, of
    the magnitudes. nan: of Float32, NaN if any element is. Elements are Float32, Int32 or Uint32. Raises CuteError for
    others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.LdRed32x32bOp(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    (32,4):(4,1)
    """

    repeat: Repetition = Repetition.x2
    pack: Pack = Pack.NONE
    redOp: TmemLoadRedOp = TmemLoadRedOp.MAX  # noqa: N815
    abs: bool = False
    nan: bool = False

    shape = tmem.S32X32B
    fixed = {"shape": shape.name}


@frozen
class LdRed16x32bx2Op(_LoadRed):
    """Load 16 lanes of twice 32 bits from tensor memory, the second half to the upper 16 threads, and the least or
    greatest element of each thread. A whole converged warp; then `arch.fence_view_async_tmem_load`. PTX tcgen05.ld.red,
    sm_103f.

    repeat, pack, redOp, abs, nan: as of LdRed32x32bOp; the repetitions of the first half come before those of the
    second. Raises CuteError for others.

    >>> atom = cute.make_copy_atom(nvgpu.tcgen05.LdRed16x32bx2Op(nvgpu.tcgen05.Repetition.x4), cute.Float32)
    >>> atom.layout_dst_tv
    ((16,2),4):((8,4),1)
    """

    repeat: Repetition = Repetition.x2
    pack: Pack = Pack.NONE
    redOp: TmemLoadRedOp = TmemLoadRedOp.MAX  # noqa: N815
    abs: bool = False
    nan: bool = False

    shape = tmem.S16X32BX2
    fixed = {"shape": shape.name}
