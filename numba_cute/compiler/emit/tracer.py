# SPDX-License-Identifier: Apache-2.0
"""The compiler's `seam.Backend`: one class that types (no builder) and lowers (with one) traced code."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, nvvmutils, types

from ... import dtypes
from ...isa.form.instr import THREAD, Instr
from ...isa.form.kinds import Operand, pred
from ...seam import CuteError, Regs, divisor
from ..host.cluster import known_launch
from ..host.target import current_arch
from . import addresses, casts, convert, elementwise
from .leaves import Number, RegFile, VectorLeaf, dtype_of, element_ir, held, joined, per_slot, scalar_type, slots

_SPACES = {"generic": 0, "gmem": 1, "smem": 3}
_LLVM = {"i16": ir.IntType(16), "i32": ir.IntType(32), "i64": ir.IntType(64)}
_LLVM.update({"float": ir.FloatType(), "double": ir.DoubleType()})
_KIND_TYPES = {"u16": types.uint16, "s32": types.int32, "u64": types.uint64, "f32": types.float32}
_KIND_TYPES.update({"f64": types.float64, "pred": types.boolean, "gmem": types.uint64, "tmap": types.uint64})
_I32 = ir.IntType(32)
SMEM_SYMBOL = "numba_cute_dynamic_smem"
_FLAG = "_numba_cute_carry"
SMEM_MARK = "// numba_cute.smem_bytes"


class Tracer:
    """Runs traced code on leaves. Without a builder nothing is emitted: leaves have types and no values."""

    def __init__(self, context: Any = None, builder: Any = None) -> None:
        self.context = context
        self.builder = builder
        self.arch = current_arch()

    # ------------------------------------------------------------------ numbers
    def number(self, ty: types.Type, emit: Callable[[Any], Any]) -> Number:
        return Number(ty, None if self.builder is None else emit(self.builder))

    def arith(self, op: str, a: Any, b: Any) -> Number:
        ty = joined(a, b)
        if isinstance(ty, types.Float):
            op = {"add": "fadd", "sub": "fsub", "mul": "fmul", "fdiv": "fdiv"}.get(op, op)
            if op not in ("fadd", "fsub", "fmul", "fdiv"):
                raise CuteError(f"operator {op} is not for floating-point values ({ty})")
        flags = ("nsw",) if op in ("add", "sub", "mul") and ty.signed else ()
        return self.number(ty, lambda bld: getattr(bld, op)(self.ir(a, ty), self.ir(b, ty), flags=flags))

    def ir(self, x: Any, ty: types.Type) -> Any:
        """An int, float, bool or Number as an LLVM value of this Numba type (bools as i1)."""
        llvm = ir.IntType(1) if ty == types.boolean else self.context.get_value_type(ty)
        if isinstance(x, dtypes.Scalar):
            x = x.value
        if isinstance(x, Number):
            if x.type == ty:
                return x.ir
            return casts.cast(self, x, ty, llvm)
        if ty in casts.HALVES:
            return llvm(int(dtypes.converted(x, dtype_of(ty)).view("uint16")))
        if isinstance(x, float) and isinstance(ty, types.Integer):
            x = dtypes.number(x, dtype_of(ty))
        return llvm(float(x)) if isinstance(ty, types.Float) else llvm(int(x))

    def cast(self, value: Any, dtype: dtypes.DType) -> Any:
        if not isinstance(value, (int, float, Number, dtypes.Scalar)):
            raise CuteError(f"{dtype}({value!r}): only numbers convert to an element type")
        number = self.number(scalar_type(dtype), lambda b: self.ir(value, scalar_type(dtype)))
        if dtype.is_integer and not isinstance(value, float):  # what wraps around keeps only powers of two
            known = divisor(value)
            wraps = isinstance(value, Number) and dtype.width < getattr(value.type, "bitwidth", 64)
            number.divisor = (known & -known if wraps else known) or 1
        if dtype.width < 8 or dtype.width == 8 and dtype.is_float:  # it travels as another type, rounded
            return self.number(
                number.type, lambda b: convert.from_memory(self, convert.in_memory(self, value, dtype), dtype)
            )
        return number

    def type_of(self, scalar: Any) -> dtypes.DType:
        if isinstance(scalar, Number):
            return dtype_of(scalar.type)
        kinds = {bool: dtypes.Boolean, int: dtypes.Int32, float: dtypes.Float32}
        return scalar.dtype if isinstance(scalar, dtypes.Scalar) else kinds[type(scalar)]

    def compare(self, op: str, a: Any, b: Any) -> Any:
        if not isinstance(a, Number) and not isinstance(b, Number):
            return {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, ">=": a >= b}[op]
        ty = joined(a, b)

        def emit(bld: Any) -> Any:
            x, y = self.ir(a, ty), self.ir(b, ty)
            if isinstance(ty, types.Float):
                return bld.fcmp_unordered(op, x, y) if op == "!=" else bld.fcmp_ordered(op, x, y)
            signed = isinstance(ty, types.Integer) and ty.signed
            return (bld.icmp_signed if signed else bld.icmp_unsigned)(op, x, y)

        return self.number(types.boolean, emit)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        if not isinstance(cond, Number):
            return a if cond else b
        if not isinstance(a, Number) and not isinstance(b, Number):
            if a == b:
                return a
            a = self.cast(a, dtypes.Int32 if isinstance(a, int) else dtypes.Float32)
        ty = joined(a, b)
        out = self.number(ty, lambda bld: bld.select(self.ir(cond, types.boolean), self.ir(a, ty), self.ir(b, ty)))
        out.divisor = math.gcd(divisor(a), divisor(b)) or 1
        return out

    # ------------------------------------------------------------------ control flow
    def when(self, cond: Any, then: Callable[[], None]) -> None:
        if not isinstance(cond, Number):
            if cond:
                then()
        elif self.builder is None:
            then()
        else:
            with self.builder.if_then(self.ir(cond, types.boolean)):
                then()

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        ty = joined(start, stop) if isinstance(start, Number) or isinstance(stop, Number) else types.int32
        if self.builder is None:
            body(Number(ty))
            return
        first, count = self.ir(start, ty), self.builder.sub(self.ir(stop, ty), self.ir(start, ty))
        with cgutils.for_range(self.builder, count) as loop:
            body(Number(ty, self.builder.add(loop.index, first)))

    # ------------------------------------------------------------------ instructions
    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        lacking = instr.lacking(self.arch, statics, operands)
        if lacking is not None:
            what, target = lacking
            raise CuteError(
                f"{what} needs {target}, and the target is {self.arch}: "
                f"compile for {target}, or use an operation that {self.arch} has"
            )
        results = None if self.builder is None else self._call(instr, statics, operands)
        outs = []
        for o in instr.operands_in(statics):
            if o.writes and not isinstance(operands.get(o.name), Regs):
                values = [None] * o.size(statics) if results is None else results[o.name]
                leaves = tuple(Number(_KIND_TYPES.get(o.kind.name, types.uint32), v) for v in values)
                outs.append(leaves if o.count is not None else leaves[0])
        return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)

    def _call(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> dict[str, list[Any]]:
        asm = instr.assembly(statics, operands)
        inputs: dict[str, list[Any]] = {}
        for o in instr.operands_in(statics):
            if o.reads and o.name in operands:
                inputs[o.name] = self._operand(instr, o, o.size(statics), operands[o.name])
        args = [inputs[o.name][i] for o, i in asm.inputs]
        rets = [_LLVM[o.kind.llvm] for o, _ in asm.outputs]
        result = rets[0] if len(rets) == 1 else ir.LiteralStructType(rets) if rets else ir.VoidType()
        constraints = asm.constraints
        if not instr.pure:
            constraints += ("," if constraints else "") + "~{memory}"
        fn = ir.InlineAsm(
            ir.FunctionType(result, [a.type for a in args]), asm.text, constraints, side_effect=not instr.pure
        )
        attrs = () if instr.issuer == THREAD else ("convergent",)
        got = self.builder.call(fn, args, attrs=attrs)
        values = [got] if len(rets) == 1 else [self.builder.extract_value(got, i) for i in range(len(rets))]
        by_name: dict[str, list[Any]] = {}
        for (o, _), v in zip(asm.outputs, values):
            if o.kind is pred:
                v = self.builder.icmp_unsigned("!=", v, v.type(0))
            by_name.setdefault(o.name, []).append(v)
        for o in instr.operands:
            if o.writes and isinstance(operands.get(o.name), Regs):
                self._write_words(operands[o.name], by_name[o.name])
        return by_name

    def _operand(self, instr: Instr, o: Operand, count: int, value: Any) -> list[Any]:
        """The LLVM values of one input operand."""
        if isinstance(value, Regs):
            words = self._read_words(value)
            values: list[Any] = words
        else:
            leaves = [value] if o.count is None else list(value)
            values = [self._scalar_operand(instr, o, x) for x in leaves]
        if len(values) != count:
            raise CuteError(f"{instr.name}: operand {o.name} takes {count} registers, got {len(values)}")
        want = _LLVM[o.kind.llvm]
        return [v if v.type == want else self.builder.bitcast(v, want) for v in values]

    def _scalar_operand(self, instr: Instr, o: Operand, x: Any) -> Any:
        if not isinstance(x, (int, float, Number, dtypes.Scalar)):
            raise CuteError(f"{instr.name}: operand {o.name} ({o.kind.name}) cannot be {x!r}")
        if o.kind is pred:
            return self.builder.zext(self.ir(x, types.boolean), _I32)
        ty = _KIND_TYPES.get(o.kind.name, types.uint32)
        if isinstance(x, Number) and x.ir.type == _LLVM[o.kind.llvm]:
            return x.ir
        return self.ir(x, ty)

    # ------------------------------------------------------------------ registers
    def same_registers(self, a: Any, b: Any) -> bool | None:
        return True if a is b else None  # two loads of one variable give two leaves

    def registers(self, dtype: dtypes.DType, count: int) -> RegFile:
        if not isinstance(count, int) or count < 1:
            raise CuteError(f"registers: a register tensor has a static size of at least 1, got {count!r} elements")
        if self.builder is None:
            return RegFile(dtype, count)
        array = ir.ArrayType(element_ir(dtype), slots(dtype, count))
        return RegFile(dtype, count, cgutils.alloca_once(self.builder, array, name="registers"))

    def _slot(self, file: RegFile, slot: Any) -> Any:
        index = slot.ir if isinstance(slot, Number) else _I32(slot)
        if isinstance(slot, Number):
            index = self.ir(slot, types.int32)
        return self.builder.gep(file.ir, [_I32(0), index], inbounds=True)

    def _slots_of(self, regs: Regs) -> list[Any]:
        """The slot indices of a span that starts and ends on a slot boundary."""
        per = per_slot(regs.dtype)
        if not self._on_slots(regs):
            raise CuteError(
                f"registers [{regs.start}, +{regs.count}) of {regs.dtype}: a vector operand needs a static start "
                f"and a length that are multiples of {per}"
            )
        return list(range(regs.start // per, -(-(regs.start + regs.count) // per)))

    def _on_slots(self, regs: Regs) -> bool:
        """Whether a span starts on a slot boundary and ends on one, or with the file."""
        per = per_slot(regs.dtype)
        if not isinstance(regs.start, int) or regs.start % per:
            return False
        return regs.count % per == 0 or regs.start + regs.count == regs.file.count

    def _read_words(self, regs: Regs) -> list[Any]:
        return [self.builder.load(self._slot(regs.file, s)) for s in self._slots_of(regs)]

    def _write_words(self, regs: Regs, words: Sequence[Any]) -> None:
        element = element_ir(regs.file.dtype)
        for s, word in zip(self._slots_of(regs), words):
            value = word if word.type == element else self.builder.bitcast(word, element)
            self.builder.store(value, self._slot(regs.file, s))

    def read(self, regs: Regs) -> Number:
        return self.number(scalar_type(regs.dtype), lambda b: self._read(regs))

    def _read(self, regs: Regs) -> Any:
        b, width = self.builder, held(regs.dtype)
        want = self.context.get_value_type(scalar_type(regs.dtype))
        if width >= 32:
            value = b.load(self._slot(regs.file, regs.start))
            return value if value.type == want else b.bitcast(value, want)
        per = 32 // width
        word = b.load(self._slot(regs.file, regs.start // per))
        shift = self.ir((regs.start % per) * width, types.int32)
        bits = b.trunc(b.lshr(word, shift), ir.IntType(regs.dtype.width))
        return convert.from_memory(self, bits, regs.dtype)

    def write(self, regs: Regs, value: Any) -> None:
        if self.builder is None:
            return
        b, width = self.builder, held(regs.dtype)
        bits = convert.in_memory(self, value, regs.dtype)
        if width >= 32:
            b.store(bits, self._slot(regs.file, regs.start))
            return
        per = 32 // width
        slot = self._slot(regs.file, regs.start // per)
        shift = self.ir((regs.start % per) * width, types.int32)
        mask = b.shl(_I32((1 << width) - 1), shift)
        kept = b.and_(b.load(slot), b.not_(mask))
        b.store(b.or_(kept, b.shl(b.zext(bits, _I32), shift)), slot)

    def fill(self, regs: Regs, value: Any) -> None:
        for i in range(regs.count):
            self.write(Regs(regs.file, regs.dtype, regs.start + i, 1), value)

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

    def lane(self, vector: VectorLeaf, index: int) -> Number:
        def emit(b: Any) -> Any:
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
        value = ir.Constant(ir.ArrayType(element_ir(dtype), slots(dtype, count)), ir.Undefined)
        for i, w in enumerate(words):
            value = self.builder.insert_value(value, w, i)
        return VectorLeaf(dtype, count, value)

    def _words(self, vector: VectorLeaf) -> list[Any]:
        return [self.builder.extract_value(vector.ir, i) for i in range(slots(vector.dtype, vector.count))]

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

    # ------------------------------------------------------------------ memory
    def _pointer(self, space: str, address: Any, element: Any) -> Any:
        value = self.ir(address, types.uint32 if space == "smem" else types.uint64)
        if space == "smem":
            return self.builder.inttoptr(value, element.as_pointer(_SPACES[space]))
        return addresses.stepped(self.builder, value, element, _SPACES[space])

    def load(self, dtype: dtypes.DType, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        if self.builder is None:
            return tuple(Number(scalar_type(dtype)) for _ in range(count))
        memory = self._memory_ir(dtype)
        if count == 1:
            values = [self.builder.load(self._pointer(space, address, memory), align=align)]
        else:
            vector = self.builder.load(self._pointer(space, address, ir.VectorType(memory, count)), align=align)
            values = [self.builder.extract_element(vector, _I32(i)) for i in range(count)]
        return tuple(Number(scalar_type(dtype), convert.from_memory(self, v, dtype)) for v in values)

    def store(self, dtype: dtypes.DType, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        if self.builder is None:
            return
        bits = [convert.in_memory(self, v, dtype) for v in values]
        self._store_vector(space, address, bits, align)

    def _store_vector(self, space: str, address: Any, bits: Sequence[Any], align: int) -> None:
        if len(bits) == 1:
            self.builder.store(bits[0], self._pointer(space, address, bits[0].type), align=align)
            return
        vector = ir.Constant(ir.VectorType(bits[0].type, len(bits)), ir.Undefined)
        for i, v in enumerate(bits):
            vector = self.builder.insert_element(vector, v, _I32(i))
        self.builder.store(vector, self._pointer(space, address, vector.type), align=align)

    def _memory_ir(self, dtype: dtypes.DType) -> Any:
        return element_ir(dtype) if dtype.width >= 32 else ir.IntType(dtype.width)

    def swizzled(self, swizzle: Any, address: Any) -> Any:
        if self.builder is None or not isinstance(address, Number):
            return swizzle(address)
        period = 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
        rest, beyond = addresses.apart(self.builder, address.ir, period)
        if not beyond:
            return swizzle(address)
        inside = self.ir(swizzle(Number(address.type, rest)), address.type)
        return Number(address.type, functools.reduce(self.builder.add, beyond, inside))

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        if self.builder is None:
            return
        if dst.count * dst.dtype.width < 32:
            dst = _in_one(dst)
            values = self.load(dst.dtype, space, address, dst.count, align)
            for i, v in enumerate(values):
                self.write(Regs(dst.file, dst.dtype, dst.start + i, 1), v)
            return
        words = len(self._slots_of(dst))
        element = element_ir(dst.dtype)
        if words == 1:
            self._write_words(dst, [self.builder.load(self._pointer(space, address, element), align=align)])
            return
        vector = self.builder.load(self._pointer(space, address, ir.VectorType(element, words)), align=align)
        self._write_words(dst, [self.builder.extract_element(vector, _I32(i)) for i in range(words)])

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        if self.builder is None:
            return
        if src.count * src.dtype.width < 32:
            src = _in_one(src)
            values = [self.read(Regs(src.file, src.dtype, src.start + i, 1)) for i in range(src.count)]
            self.store(src.dtype, space, address, values, align)
            return
        self._store_vector(space, address, self._read_words(src), align)

    def flag(self) -> Regs:
        file = RegFile(dtypes.Uint32, 1)
        if self.builder is not None:
            function = self.builder.function
            if not hasattr(function, _FLAG):  # zeroed where it is made, at the function's entry
                setattr(function, _FLAG, cgutils.alloca_once(self.builder, ir.ArrayType(_I32, 1), name="carry"))
            file = RegFile(dtypes.Uint32, 1, getattr(function, _FLAG))
        return Regs(file, dtypes.Uint32, 0, 1)

    def static_smem(self, nbytes: int, align: int) -> Number:
        def emit(b: Any) -> Any:
            name = b.module.get_unique_name("numba_cute_smem")
            found = cgutils.add_global_variable(b.module, ir.ArrayType(ir.IntType(8), nbytes), name, addrspace=3)
            found.linkage, found.align = "internal", align
            found.initializer = ir.Constant(found.type.pointee, ir.Undefined)
            return b.ptrtoint(found, _I32)

        return self.number(types.uint32, emit)

    def known_launch(self) -> Any:
        return known_launch()

    def smem_base(self) -> Number:
        def emit(b: Any) -> Any:
            symbol = b.module.globals.get(SMEM_SYMBOL)
            if symbol is None:
                symbol = ir.GlobalVariable(b.module, ir.ArrayType(ir.IntType(8), 0), SMEM_SYMBOL, addrspace=3)
                symbol.linkage = "external"
                symbol.align = 1024
            return b.ptrtoint(symbol, _I32)

        return self.number(types.uint32, emit)

    def smem_needs(self, total_bytes: Any) -> None:
        """Leave the number in the PTX, where the launcher reads it (see launch.required_smem)."""
        if self.builder is None:
            return
        value = self.ir(total_bytes, types.uint32)
        fn = ir.InlineAsm(ir.FunctionType(ir.VoidType(), [_I32]), SMEM_MARK + " $0", "n", side_effect=True)
        self.builder.call(fn, [value])

    def gave(self, fn: Any, result: Any) -> None:
        """Who drops it is found in the kernel's steps, once all is typed (see `steps.AUDITS`)."""

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        if self.builder is None:
            return
        b = self.builder
        values = [self._printed(a) for a in args]
        frame = cgutils.alloca_once(b, ir.LiteralStructType([v.type for v in values] or [_I32]))
        for i, v in enumerate(values):
            b.store(v, b.gep(frame, [_I32(0), _I32(i)]))
        text = self.context.insert_string_const_addrspace(b, fmt)
        b.call(nvvmutils.declare_vprint(b.module), [text, b.bitcast(frame, cgutils.voidptr_t)])

    def _printed(self, x: Number) -> Any:
        """What printf is given for a number: a bool as its name."""
        if x.type != types.boolean:
            return x.ir
        yes, no = (self.context.insert_string_const_addrspace(self.builder, str(b)) for b in (True, False))
        return self.builder.select(self.ir(x, types.boolean), yes, no)


def _singles(regs: Regs) -> list[Regs]:
    """A span as spans of one element."""
    return [Regs(regs.file, regs.dtype, regs.start + i, 1) for i in range(regs.count)]


def _in_one(regs: Regs) -> Regs:
    """A part of a word as one element of as many bits, if it can be one: then nothing is taken apart on its way."""
    width = regs.dtype.width
    bits = regs.count * width
    whole = {8: dtypes.Uint8, 16: dtypes.Uint16}.get(bits)
    if whole is None or held(regs.dtype) != width or not isinstance(regs.start, int) or regs.start * width % bits:
        return regs
    return Regs(regs.file, whole, regs.start * width // bits, 1)
