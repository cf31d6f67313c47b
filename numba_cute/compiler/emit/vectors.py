# SPDX-License-Identifier: Apache-2.0
"""Trace code on registers: files of them, and vectors that are packed as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes, seam
from ...seam import CuteError, Regs
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.llvmlite import alloca_once
from ..ground.numba_cuda import types
from . import convert, elementwise
from .frames import index_of, make_aggregate, make_registers, members
from .leaves import NumberLeaf, RegFile, VectorLeaf, element_ir, held, per_slot, scalar_type, slots
from .scalars import Scalars

_I32 = ir.IntType(32)
_MANY = 8
"""So many registers, or more, are read at once: LLVM's text has one line for each, and not two."""
_FLAG = "_numba_cute_carry"
_SLOTS = "_numba_cute_slots"
"""Of a block: the addresses of slots of registers that were made in it, by the registers and the slot."""


class Vectors(Scalars):
    """The part of a `Tracer` that is about register files and vectors."""

    def same_registers(self, a: Any, b: Any) -> bool | None:
        return True if a is b else None  # two loads of one variable give two leaves

    def registers(self, dtype: dtypes.DType, count: int) -> RegFile:
        if not isinstance(count, int) or count < 1:
            raise CuteError(f"registers: a register tensor has a static size of at least 1, got {count!r} elements")
        if self.builder is None:
            return RegFile(dtype, count)
        array = ir.ArrayType(element_ir(dtype), slots(dtype, count))
        return RegFile(dtype, count, make_registers(self.builder, array))

    def _slot(self, regs: Regs, slot: Any) -> Any:
        """Return the address of a slot of a span, which may view the registers as elements of another width."""
        file, want = regs.file, element_ir(regs.dtype)
        index = self.ir(slot, types.int32) if isinstance(slot, NumberLeaf) else index_of(slot)
        start = file.ir
        if _slot_bits(regs.dtype) != _slot_bits(file.dtype):
            start = self.builder.bitcast(start, ir.ArrayType(want, slots(regs.dtype, _elements(regs))).as_pointer())
        if isinstance(slot, NumberLeaf):
            return self.builder.gep(start, [index_of(0), index], inbounds=True)
        made = self.builder.block.__dict__.setdefault(_SLOTS, {})
        key = start, slot
        if key not in made:
            made[key] = self.builder.gep(start, [index_of(0), index], inbounds=True)
        return made[key]

    def _load(self, regs: Regs, slot: Any) -> Any:
        """Load a slot as the type that slots of the span's elements have."""
        value = self.builder.load(self._slot(regs, slot), align=_alignment(regs))
        want = element_ir(regs.dtype)
        return value if value.type == want else self.builder.bitcast(value, want)

    def _store(self, regs: Regs, slot: Any, value: Any) -> None:
        at = self._slot(regs, slot)
        value = value if value.type == at.type.pointee else self.builder.bitcast(value, at.type.pointee)
        self.builder.store(value, at, align=_alignment(regs))

    def _slots_of(self, regs: Regs) -> list[Any]:
        """Return the slot indices of a span that starts and ends on a slot boundary."""
        per = per_slot(regs.dtype)
        if not self._on_slots(regs):
            raise CuteError(
                f"registers [{regs.start}, +{regs.count}) of {regs.dtype}: a vector operand needs a start and a length "
                f"that are known to be multiples of {per}"
            )
        if not isinstance(regs.start, int):
            first = seam.quotient(regs.start, per)
            return [first + i for i in range(regs.count // per)]
        return list(range(regs.start // per, -(-(regs.start + regs.count) // per)))

    def _on_slots(self, regs: Regs) -> bool:
        """Say whether a span starts on a slot boundary and ends on one, or with the file."""
        per = per_slot(regs.dtype)
        if seam.divisor(regs.start) % per:
            return False
        whole = isinstance(regs.start, int) and regs.start + regs.count == _elements(regs)
        return regs.count % per == 0 or whole

    def _read_words(self, regs: Regs) -> list[Any]:
        found = self._slots_of(regs)
        if len(found) < _MANY or not isinstance(regs.start, int):
            return [self._load(regs, s) for s in found]
        array = ir.ArrayType(element_ir(regs.dtype), len(found))
        place = self.builder.bitcast(self._slot(regs, found[0]), array.as_pointer())
        whole = self.builder.load(place, align=_alignment(regs))
        return [self.builder.extract_value(whole, i) for i in range(len(found))]

    def _write_words(self, regs: Regs, words: Sequence[Any]) -> None:
        for s, word in zip(self._slots_of(regs), words):
            self._store(regs, s, word)

    def _whole(self, regs: Regs, ty: Any) -> Any:
        """Return the address of a span's slots as that of one value of the LLVM type `ty`, a struct; None if the span
        has other slots than the struct members."""
        if not isinstance(regs.start, int) or not self._on_slots(regs):
            return None
        element, found = element_ir(regs.file.dtype), self._slots_of(regs)
        if len(found) != len(ty.elements) or any(e != element for e in ty.elements):
            return None
        return self.builder.bitcast(self._slot(regs, found[0]), ty.as_pointer())

    def read(self, regs: Regs) -> NumberLeaf:
        return self.number(scalar_type(regs.dtype), lambda b: self._read(regs))

    def _read(self, regs: Regs) -> Any:
        b, width = self.builder, held(regs.dtype)
        want = self.context.get_value_type(scalar_type(regs.dtype))
        if width >= 32:
            value = self._load(regs, regs.start)
            return value if value.type == want else b.bitcast(value, want)
        per = 32 // width
        word = self._load(regs, seam.quotient(regs.start, per))
        shift = self.ir(seam.remainder(regs.start, per) * width, types.int32)
        bits = b.trunc(b.lshr(word, shift), ir.IntType(regs.dtype.width))
        return convert.from_memory(self, bits, regs.dtype)

    def write(self, regs: Regs, value: Any) -> None:
        if self.builder is None:
            return
        b, width = self.builder, held(regs.dtype)
        bits = convert.in_memory(self, value, regs.dtype)
        if width >= 32:
            self._store(regs, regs.start, bits)
            return
        per = 32 // width
        slot = seam.quotient(regs.start, per)
        shift = self.ir(seam.remainder(regs.start, per) * width, types.int32)
        mask = b.shl(_I32((1 << width) - 1), shift)
        kept = b.and_(self._load(regs, slot), b.not_(mask))
        self._store(regs, slot, b.or_(kept, b.shl(b.zext(bits, _I32), shift)))

    def fill(self, regs: Regs, value: Any) -> None:
        for i in range(regs.count):
            self.write(Regs(regs.file, regs.dtype, regs.start + i, 1), value)

    def flag(self) -> Regs:
        file = RegFile(dtypes.Uint32, 1)
        if self.builder is not None:
            function = self.builder.function
            if not hasattr(function, _FLAG):  # zeroed where it is made, at the function's entry
                setattr(function, _FLAG, alloca_once(self.builder, ir.ArrayType(_I32, 1), name="carry"))
            file = RegFile(dtypes.Uint32, 1, getattr(function, _FLAG))
        return Regs(file, dtypes.Uint32, 0, 1)

    # ------------------------------------------------------------------ vectors
    def vector(self, regs: Regs) -> VectorLeaf:
        if self.builder is None:
            return VectorLeaf(regs.dtype, regs.count)
        if self._on_slots(regs):
            return self._pack(regs.dtype, regs.count, self._read_words(regs))
        return self.pack(regs.dtype, [self.read(r) for r in _singles(regs)])

    def pack(self, dtype: dtypes.DType, values: Sequence[Any]) -> VectorLeaf:
        if self.builder is None:
            return VectorLeaf(dtype, len(values))
        bits = [convert.in_memory(self, v, dtype) for v in values]
        return self._pack(dtype, len(bits), convert.packed(self, bits, dtype))

    def bitcast(self, vector: VectorLeaf, dtype: dtypes.DType) -> VectorLeaf:
        count = vector.count * held(vector.dtype) // held(dtype)
        if self.builder is None:
            return VectorLeaf(dtype, count)
        words = [w if w.type == element_ir(dtype) else self.builder.bitcast(w, element_ir(dtype)) for w in
                 self._words(vector)]  # fmt: skip
        return self._pack(dtype, count, words)

    def lane(self, vector: VectorLeaf, index: int) -> NumberLeaf:
        def emit(b: Builder) -> Any:
            bits = convert.element(self, self._words(vector), vector.dtype, index)
            return convert.from_memory(self, bits, vector.dtype)

        return self.number(scalar_type(vector.dtype), emit)

    def take(self, vector: VectorLeaf, indices: Sequence[int]) -> VectorLeaf:
        if self.builder is None:
            return VectorLeaf(vector.dtype, len(indices))
        words = self._words(vector)
        elements = [convert.element(self, words, vector.dtype, i) for i in indices]
        return self._pack(vector.dtype, len(elements), convert.packed(self, elements, vector.dtype))

    def elementwise(self, op: Any, dtype: dtypes.DType, *operands: Any) -> Any:
        return elementwise.elementwise(self, op, dtype, operands)

    def _pack(self, dtype: dtypes.DType, count: int, words: Sequence[Any]) -> VectorLeaf:
        array = ir.ArrayType(element_ir(dtype), slots(dtype, count))
        return VectorLeaf(dtype, count, make_aggregate(self.builder, array, words))

    def _words(self, vector: VectorLeaf) -> list[Any]:
        return members(self.builder, vector.ir, slots(vector.dtype, vector.count))

    def unvector(self, vector: VectorLeaf, regs: Regs) -> None:
        if self.builder is None:
            return
        if self._on_slots(regs):
            self._write_words(regs, self._words(vector))
            return
        for i, r in enumerate(_singles(regs)):
            self.write(r, self.lane(vector, i))

    def convert(self, vector: VectorLeaf, src: dtypes.DType, dst: dtypes.DType, count: int) -> VectorLeaf:
        if self.builder is None:
            return VectorLeaf(dst, count)
        return self._pack(dst, count, convert.words(self, self._words(vector), src, dst, count))


def _slot_bits(dtype: dtypes.DType) -> int:
    return max(32, held(dtype))


def _elements(regs: Regs) -> int:
    """Count the elements of a span's type that its whole register file holds."""
    return regs.file.count * held(regs.file.dtype) // held(regs.dtype)  # type: ignore[no-any-return]


def _alignment(regs: Regs) -> int | None:
    """Return the alignment of a slot where it is not the type's own: of wide elements in registers of narrow ones."""
    return 4 if _slot_bits(regs.dtype) > _slot_bits(regs.file.dtype) else None


def _singles(regs: Regs) -> list[Regs]:
    """Split a span into spans of one element."""
    return [Regs(regs.file, regs.dtype, regs.start + i, 1) for i in range(regs.count)]
