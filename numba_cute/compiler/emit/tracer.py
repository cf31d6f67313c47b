# SPDX-License-Identifier: Apache-2.0
"""Trace code: the compiler's `seam.Backend`, one class that types (no builder) and lowers (with one)."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import dtypes
from ...isa.form.instr import THREAD, Instr
from ...isa.form.kinds import Operand, pred
from ...isa.form.targets import lacks
from ...seam import CuteError, Regs
from ...seam.ground.places import users_call
from ...seam.guards.messages import SMEM_TWICE
from ...seam.source.language import LIST_CHANGED
from ..ground import llvmlite as ir
from ..ground.builder import Builder
from ..ground.building import ROOM, Kernel, building_kernel, kernel, known_launch, want_map
from ..ground.llvmlite import add_global_variable, alloca_once, for_range, voidptr_t
from ..ground.memory import Loss, memory
from ..ground.numba_cuda import nvvmutils, types
from . import addresses, convert, ranges
from .frames import index_of
from .leaves import NumberLeaf, element_ir, held, joined, scalar_type
from .regions import Regions
from .vectors import Vectors
from .waiting import waits

_SPACES = {"generic": 0, "gmem": 1, "smem": 3}
_LLVM = {"i16": ir.IntType(16), "i32": ir.IntType(32), "i64": ir.IntType(64)}
_LLVM.update({"float": ir.FloatType(), "double": ir.DoubleType()})
_KIND_TYPES = {"u16": types.uint16, "s32": types.int32, "u64": types.uint64, "f32": types.float32}
_KIND_TYPES.update({"f64": types.float64, "pred": types.boolean, "gmem": types.uint64, "tmap": types.uint64})
_I32 = ir.IntType(32)
SMEM_SYMBOL = "numba_cute_dynamic_smem"
TIMELINE_SYMBOL = "numba_cute_timeline"
_CONSTANT = ("readnone", "nounwind")
"""Attributes of a read whose value is the same in all of a thread's life: LLVM merges and moves it, and takes other
inline assembly to read memory. A read of registers stays where it stands: what packs a fragment for a wgmma may not
sink below its fence."""
SMEM_MARK = "// numba_cute.smem_bytes"


class Lent:
    """The lists that traced code was given: each is what it was in the kernel, where it does not change by this."""

    def __init__(self) -> None:
        self._given: list[tuple[list[Any], tuple[Any, ...]]] = []

    def lend(self, items: tuple[Any, ...]) -> list[Any]:
        """Return a list of these items for traced code."""
        self._given.append((list(items), items))
        return self._given[-1][0]

    def hold(self, given: list[Any]) -> tuple[Any, ...]:
        """Return the items of a list of traced code's own that an object of the kernel holds from now on."""
        self._given.append((given, tuple(given)))
        return self._given[-1][1]

    def check(self) -> None:
        """Raise a CuteError if traced code changed a list that it was given."""
        for given, items in self._given:
            if len(given) != len(items) or any(a is not b for a, b in zip(given, items)):
                raise CuteError(LIST_CHANGED)


class Tracer(Regions, Vectors):
    """Runs traced code on leaves. Without a builder nothing is emitted: leaves have types and no values."""

    signals: list[Any]
    """Exceptions that the code raised because it cannot be traced: a user's `except` may have caught one."""
    plain = False
    """True while a plain function of the user's is traced."""
    trail: Any = None
    """The object that follows the objects of the traced call that is typed (bridge/effects.py)."""
    outside: Callable[[Any], bool] | None = None
    """Say whether an object was there before the traced call that is typed, of a user's function."""
    operate: Callable[..., Any]
    """Apply an operator as Numba does where it compiles the function (bridge/calls.py sets it)."""
    call_function: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """Call a function that Numba compiles (bridge/calls.py, which stands above, sets it)."""
    call_method: Callable[..., Any]
    """Call a method of an object of the user's as jitted code does (bridge/objects.py sets it)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lists = Lent()
        self.placed: dict[int, tuple[Any, Any]] = {}
        """The objects of Python's that have a slot in the frame, by `id`, each with its slot."""

    # ------------------------------------------------------------------ control flow
    def when(self, cond: Any, then: Callable[[], None], *, of_python: bool = False) -> None:
        if not isinstance(cond, NumberLeaf):
            if cond:
                then()
            return
        with self.guarded(cond):
            then()

    @contextlib.contextmanager
    def guarded(self, cond: Any) -> Iterator[None]:
        with self.region():
            if self.builder is None:
                yield
                return
            with self.builder.if_then(self.ir(cond, types.boolean)):
                yield

    def loop(self, start: Any, stop: Any, body: Callable[[Any], None]) -> None:
        ty = joined(start, stop) if isinstance(start, NumberLeaf) or isinstance(stop, NumberLeaf) else types.int32
        with self.region(repeats=True):
            if self.builder is None:
                body(NumberLeaf(ty))
                return
            first, count = self.ir(start, ty), self.builder.sub(self.ir(stop, ty), self.ir(start, ty))
            with for_range(self.builder, count) as loop:
                body(NumberLeaf(ty, self.builder.add(loop.index, first)))

    # ------------------------------------------------------------------ instructions
    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        lacking = instr.lacking(self.arch, statics, operands)
        if lacking is not None:
            what, target = lacking
            raise CuteError(lacks(what, target, self.arch))
        results = None if self.builder is None else self._call(instr, statics, operands)
        outs = []
        for o in instr.operands_in(statics):
            if o.writes and not isinstance(operands.get(o.name), Regs):
                values = [None] * o.size(statics) if results is None else results[o.name]
                leaves = tuple(NumberLeaf(_KIND_TYPES.get(o.kind.name, types.uint32), v) for v in values)
                outs.append(leaves if o.count is not None else leaves[0])
        return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)

    def loses(self, why: Callable[[], str | None]) -> None:
        lowers = memory().lowers
        text = why() if self.builder is not None and lowers else None
        if text is not None:
            loc = lowers[-1].loc
            file, line = users_call(sys._getframe(1), type(lowers[-1]).lower_function_body) or (loc.filename, loc.line)
            memory().losses[Loss(text, file, line)] = None

    def either(self, compiled: Callable[[], Any], simulated: Callable[[], Any]) -> Any:
        return compiled()

    def _call(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> dict[str, list[Any]]:
        bounds = ranges.of_launch(statics["register"], statics["range"]) if "range" in statics else None
        if bounds is not None and bounds[1] - bounds[0] == 1:
            return {"value": [_I32(bounds[0])]}
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
        attrs = _CONSTANT if instr.pure and not args else () if instr.issuer == THREAD else ("convergent",)
        got = self.builder.call(fn, args, attrs=attrs)
        if instr.waits:
            waits(got)
        if bounds is not None:
            ranges.mark(self.builder, got, bounds)
        if len(rets) > 1 and self._stored_whole(asm, operands, got):
            return {}
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

    def _stored_whole(self, asm: Any, operands: dict[str, Any], got: Any) -> bool:
        """Store what an instruction gives, a struct, into the registers of its one output operand at once, and not word
        by word: of a wgmma 128; say whether it was done."""
        (name, *others) = {o.name for o, _ in asm.outputs}
        regs = operands.get(name)
        place = self._whole(regs, got.type) if isinstance(regs, Regs) and not others else None
        if place is None:
            return False
        self.builder.store(got, place)
        return True

    def _operand(self, instr: Instr, o: Operand, count: int, value: Any) -> list[Any]:
        """Return the LLVM values of one input operand."""
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
        if not isinstance(x, (NumberLeaf, int, float, dtypes.Scalar)):
            raise CuteError(f"{instr.name}: operand {o.name} ({o.kind.name}) cannot be {x!r}")
        if o.kind is pred:
            return self.builder.zext(self.ir(x, types.boolean), _I32)
        ty = _KIND_TYPES.get(o.kind.name, types.uint32)
        if isinstance(x, NumberLeaf) and x.ir.type == _LLVM[o.kind.llvm]:
            return x.ir
        return self.ir(x, ty)

    # ------------------------------------------------------------------ memory
    def _pointer(self, space: str, address: Any, element: Any) -> Any:
        value = self.ir(address, types.uint32 if space == "smem" else types.uint64)
        if space == "smem":
            return addresses.shared(self.builder, value, element, _SPACES[space])
        return addresses.stepped(self.builder, value, element, _SPACES[space])

    def load(self, dtype: dtypes.DType, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        if self.builder is None:
            return tuple(NumberLeaf(scalar_type(dtype)) for _ in range(count))
        memory = self._memory_ir(dtype)
        if count == 1:
            values = [self.builder.load(self._pointer(space, address, memory), align=align)]
        else:
            vector = self.builder.load(self._pointer(space, address, ir.VectorType(memory, count)), align=align)
            values = [self.builder.extract_element(vector, index_of(i)) for i in range(count)]
        return tuple(NumberLeaf(scalar_type(dtype), convert.from_memory(self, v, dtype)) for v in values)

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
            vector = self.builder.insert_element(vector, v, index_of(i))
        self.builder.store(vector, self._pointer(space, address, vector.type), align=align)

    def _memory_ir(self, dtype: dtypes.DType) -> Any:
        return element_ir(dtype) if dtype.width >= 32 else ir.IntType(dtype.width)

    def part_by_swizzle(self, swizzle: Any, addresses: Any, width: int) -> None:
        """The simulator alone compares."""

    def reinterprets(self, address: Any, width: int, other: int) -> None:
        """The simulator alone compares."""

    def swizzled(self, swizzle: Any, address: Any, width: int) -> Any:
        if not swizzle.bits:
            return address
        if self.builder is None or not isinstance(address, NumberLeaf):
            return swizzle(address)
        period = 1 << (swizzle.bits + swizzle.base + abs(swizzle.shift))
        rest, beyond = addresses.apart(self.builder, address.ir, period)
        if not beyond:
            return swizzle(address)
        inside = addresses.kept(self.builder, self.ir(swizzle(NumberLeaf(address.type, rest)), address.type))
        return NumberLeaf(address.type, functools.reduce(self.builder.add, beyond, inside))

    def without_constant(self, leaf: Any) -> tuple[Any, int]:
        """Split an integer into a sum of another and a constant."""
        if self.builder is None or not isinstance(leaf, NumberLeaf):
            return leaf, 0
        rest, known = addresses.without_constant(self.builder, leaf.ir)
        return NumberLeaf(leaf.type, rest), known

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
        self._write_words(dst, [self.builder.extract_element(vector, index_of(i)) for i in range(words)])

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        if self.builder is None:
            return
        if src.count * src.dtype.width < 32:
            src = _in_one(src)
            values = [self.read(Regs(src.file, src.dtype, src.start + i, 1)) for i in range(src.count)]
            self.store(src.dtype, space, address, values, align)
            return
        self._store_vector(space, address, self._read_words(src), align)

    def static_smem(self, nbytes: int, align: int) -> NumberLeaf:
        def emit(b: Builder) -> Any:
            name = b.module.get_unique_name("numba_cute_smem")
            found = add_global_variable(b.module, ir.ArrayType(ir.IntType(8), nbytes), name, addrspace=3)
            found.linkage, found.align = "internal", align
            found.initializer = ir.Constant(found.type.pointee, ir.Undefined)
            return b.ptrtoint(found, _I32)

        return self.number(types.uint32, emit)

    def smem_base(self) -> NumberLeaf:
        def emit(b: Builder) -> Any:
            symbol = b.module.globals.get(SMEM_SYMBOL)
            if symbol is None:
                symbol = ir.GlobalVariable(b.module, ir.ArrayType(ir.IntType(8), 0), SMEM_SYMBOL, addrspace=3)
                symbol.linkage = "external"
                symbol.align = 1024
            return b.ptrtoint(symbol, _I32)

        return self.number(types.uint32, emit)

    def smem_needs(self, total_bytes: Any) -> None:
        """Leave the number in the PTX, where the launcher reads it (see host.facts.required_smem)."""
        if self.builder is None:
            return
        if building_kernel():
            if kernel().smem:
                raise CuteError(SMEM_TWICE)
            kernel().allocator = True
            memory().aside += 1
        self._mark_smem(total_bytes)

    def _mark_smem(self, total_bytes: Any) -> None:
        value = self.ir(total_bytes, types.uint32)
        fn = ir.InlineAsm(ir.FunctionType(ir.VoidType(), [_I32]), SMEM_MARK + " $0", "n", side_effect=True)
        self.builder.call(fn, [value])

    def allocate_smem(self, nbytes: int, align: int) -> int:
        if self.builder is None:
            return 0
        of = self._kernel("allocate")
        if of.allocator:
            raise CuteError(SMEM_TWICE)
        start = -(-of.smem // align) * align
        of.smem = start + nbytes
        self._mark_smem(of.smem)
        return start

    def allocates_smem(self) -> bool:
        of = kernel() if self.builder is not None and building_kernel() else None
        return of is not None and of.smem > 0 and of.lowered is of.function

    def _kernel(self, what: str) -> Kernel:
        """The kernel that is compiled; only it has memory of its own."""
        of = kernel()
        if of.lowered is not of.function:
            raise CuteError(
                f"{what}: called in a device function, {of.lowered.__name__}, which several kernels may share: "
                "allocate in the kernel itself, and pass the tensor"
            )
        return of

    # ------------------------------------------------------------------ the kernel
    def at_exit(self, what: Callable[[], None]) -> None:
        if self.builder is not None:
            self._kernel("allocate").exits.append((self.context, what))

    def tensor_map(self, maps: Any, form: Any, tensor: Any) -> Any:
        """Return the one of the argument's maps that has the form. While they are looked for (host/mapped.py) it is
        noted, and its place taken by none."""
        for have, record in zip(maps.forms, maps.records):
            if have == form:
                return record
        if maps.wanted is None:
            raise CuteError(
                f"the tensor has no tensor map for {form}: it must be, or be a part of, a tensor that is an argument "
                "of a kernel of cute.experimental.kernel"
            )
        want_map(maps.wanted[0], form)
        memory().aside += 1
        return self.number(types.uint64, lambda b: ir.IntType(64)(0))

    def made_tensor(self, tensor: Any) -> Any:
        takes = getattr(kernel().function, "__cute_arguments__", None) if building_kernel() else None
        if takes is None:
            return tensor
        memory().aside += 1  # in another kernel a device function has another tensor
        return takes.made(tensor)

    def map_room(self, count: int) -> tuple[Any, Any]:
        """Return the next room of the memory that the first argument brings; how much there must be is noted."""
        if self.builder is None:
            return self.number(types.uint64, lambda b: None), 0
        of = self._kernel("TMA of a tensor that the kernel makes")
        start, of.map_bytes = of.map_bytes, of.map_bytes + 128 * count
        want_map(ROOM, of.map_bytes)
        if of.room is None:  # its place is looked for
            memory().aside += 1
            return self.number(types.uint64, lambda b: ir.IntType(64)(0)), 0
        return of.room[0] + start, of.room[1]

    def known_launch(self) -> Any:
        return known_launch()

    def gave(self, fn: Any, result: Any) -> None:
        """Do nothing: who drops it is found in the kernel's steps, once all is typed (see `steps.AUDITS`)."""

    def lanes_meet(self) -> None:
        """Do nothing: the code says what it waits for."""

    def told(self, kind: int, name: str, payload: Any) -> bool:
        """Leave it to the code."""
        return False

    def timeline(self) -> NumberLeaf:
        """Give the address of a symbol of the module, which a launch that is recorded sets (host/recording.py)."""

        def emit(b: Builder) -> Any:
            symbol = b.module.globals.get(TIMELINE_SYMBOL)
            if symbol is None:
                words = ir.ArrayType(ir.IntType(64), 2)
                symbol = ir.GlobalVariable(b.module, words, TIMELINE_SYMBOL, addrspace=1)
                symbol.linkage, symbol.align = "weak", 16  # of the kernel and its device functions, linked into one
                symbol.initializer = ir.Constant(words, [0, 0])
            return b.ptrtoint(symbol, _LLVM["i64"])

        return self.number(types.uint64, emit)

    def tells(self) -> bool:
        return self.builder is not None

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        if self.builder is None:
            return
        b = self.builder
        values = [self._printed(a) for a in args]
        frame = alloca_once(b, ir.LiteralStructType([v.type for v in values] or [_I32]))
        for i, v in enumerate(values):
            b.store(v, b.gep(frame, [_I32(0), _I32(i)]))
        text = self.context.insert_string_const_addrspace(b, fmt)
        b.call(nvvmutils.declare_vprint(b.module), [text, b.bitcast(frame, voidptr_t)])

    def _printed(self, x: NumberLeaf) -> Any:
        """Return what printf is given for a number: a bool as its name."""
        if x.type != types.boolean:
            return x.ir
        yes, no = (self.context.insert_string_const_addrspace(self.builder, str(b)) for b in (True, False))
        return self.builder.select(self.ir(x, types.boolean), yes, no)


def _in_one(regs: Regs) -> Regs:
    """Regard a part of a word as one element of as many bits, if it can be one: then nothing is taken apart on its
    way."""
    width = regs.dtype.width
    bits = regs.count * width
    whole = {8: dtypes.Uint8, 16: dtypes.Uint16}.get(bits)
    if whole is None or held(regs.dtype) != width or not isinstance(regs.start, int) or regs.start * width % bits:
        return regs
    return Regs(regs.file, whole, regs.start * width // bits, 1)
