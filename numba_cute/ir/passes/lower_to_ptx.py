# SPDX-License-Identifier: Apache-2.0
"""`lower-to-ptx`: instructions become the rows of the instruction table that they issue, and what prepares their
operands: arithmetic, registers, branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from ... import dtypes
from ...compiler.inspection import requests
from ...compiler.inspection.requests import Known, Later, Path, Untold
from ...dtypes import DType
from ...seam import Regs, is_traced
from ...typed.descriptions import Array, Constant, Description, Foreign, Scalar, Struct
from ..library import machine
from ..library.calls import pattern_of
from ..library.instructions import KINDS
from ..library.operations import ApiOp, CastOp, GetAttr, MakeTuple, SliceOp
from ..library.rows import PtxOp
from ..library.types import description_of, description_of_value, type_of
from .rewriting import Maker, rewrite_each, values_of

_ROOMS = ("numba_cute.arch.", "numba_cute.nvgpu.warpgroup.", "numba_cute.nvgpu.tcgen05.", "numba_cute.nvgpu.cpasync.")
"""The rooms whose functions are instructions too."""
_NAMES = {f"numba_cute.nvgpu.{kind.name}" for kind in KINDS} | {
    "numba_cute.nvgpu.mma_begin", "numba_cute.nvgpu.mbarrier_arrive", "numba_cute.nvgpu.mbarrier_init",
    "numba_cute.nvgpu.mbarrier_wait",
    "numba_cute.autovec_copy", "numba_cute.basic_copy", "numba_cute.basic_copy_if", "numba_cute.prefetch",
}  # fmt: skip


class LowerToPtx(ModulePass):
    """Make of each instruction one or more `numba_cute.nvgpu.ptx` operations, which name the rows of the instruction
    table that it issues, with their operands and static parameters.

    What its function computes besides becomes arith, scf and `numba_cute.nvgpu.machine` operations. It is found by
    running the function: nothing is written twice. A function that asks the kernel for more, as memory of its own,
    stays."""

    name = "lower-to-ptx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_each(op, _Lower())


class _Lower(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, ApiOp) or not (op.name in _NAMES or op.name.startswith(_ROOMS)):
            return
        function = op.DEFINITION.function
        if function is None or not is_traced(function):
            return
        told = _Told(rewriter, op)
        args, keywords = values_of(op)
        try:
            result = requests.run(
                function, args, keywords, told, arch=told.arch, leaf=told.leaf, describe=_operand_of
            )  # fmt: skip
            values = [] if op.result is None else [told.result(result, op.result)]
        except Untold:
            told.undo()
            return
        rewriter.replace(op, [], values)


def _operand_of(x: Any) -> Description | None:
    """Describe an operand; None of a constant. Raises Untold for what is not a tree of leaves."""
    if not isinstance(x, SSAValue):
        return None
    d = description_of_value(x)
    if isinstance(d, (Array, Struct, Foreign)):
        raise Untold(f"an operand is {d}")
    return d


class Value:
    """A number as the IR has it: of its own type, and, an integer, as the signless one that arith computes with."""

    def __init__(self, of: DType, typed: SSAValue | None = None, plain: SSAValue | None = None) -> None:
        self.of, self.typed, self.plain = of, typed, plain


_PLAIN: dict[Any, Attribute] = {8: i8, 16: i16, 32: i32, 64: i64}
_INTEGERS: dict[str, Any] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "udiv": arith.DivUIOp, "urem": arith.RemUIOp,
    "and_": arith.AndIOp, "or_": arith.OrIOp, "xor": arith.XOrIOp, "lshift": arith.ShLIOp, "sdiv": arith.DivSIOp,
}  # fmt: skip
_SIGNED: dict[str, Any] = {"floordiv": arith.FloorDivSIOp, "rshift": arith.ShRSIOp}
_UNSIGNED: dict[str, Any] = {"floordiv": arith.DivUIOp, "rshift": arith.ShRUIOp, "mod": arith.RemUIOp}
_FLOATS: dict[str, Any] = {"add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "truediv": arith.DivfOp}
_COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
_CASTS_OF_FLOATS = {(32, 64): arith.ExtFOp, (64, 32): arith.TruncFOp}


def plain_type(of: DType) -> Attribute | None:
    """Return the type in which arith computes with numbers of an element type; None if it does not."""
    if of is dtypes.Boolean:
        return i1
    if of.is_integer:
        return _PLAIN.get(of.width)
    return f32 if of is dtypes.Float32 else f64 if of is dtypes.Float64 else None


class _Told(Maker):
    """Makes the operations that an instruction's function asks for."""

    def __init__(self, rewriter: PatternRewriter, op: Operation) -> None:
        super().__init__(rewriter, op)
        self.inserted: list[Operation] = []
        self.at = InsertPoint.before(op)
        self.paths: list[dict[Any, SSAValue]] = [{}]
        self.fresh: list[list[tuple[Value, str]]] = [[]]

    def insert(self, made: Operation) -> Operation:
        made.location = self.op.location
        self.rewriter.insert(made, self.at)
        self.inserted.append(made)
        return made

    def result(self, given: Any, wanted: SSAValue) -> SSAValue:
        """Give what takes the place of an operation's result. Raises Untold for what says less than that."""
        found = self.typed_value(given)
        if isinstance(found, tuple):
            found = self.call(MakeTuple, (found,))
        if not isinstance(found, SSAValue) or description_of(found.type) != description_of(wanted.type):
            raise Untold("its result says more")
        return found

    def undo(self) -> None:
        """Take away all that was made."""
        for made in reversed(self.inserted):
            if made.parent is not None:
                self.rewriter.erase(made, safe_erase=False)

    # ---------------------------------------------------------------- values

    def leaf(self, of: SSAValue, path: Path) -> Any:
        """Read a part of an operand where it is first used."""
        value: Any = of
        for depth in range(len(path)):
            key = (of, path[: depth + 1])
            found = next((p[key] for p in self.paths if key in p), None)
            if found is None:
                name = path[depth]
                found = self.call(GetAttr if isinstance(name, str) else SliceOp, (value, name))
                self.paths[-1][key] = found
            value = found
        return self.of(value)

    def of(self, value: SSAValue) -> Any:
        """Take a result: a number as a `Value`, all else as it is."""
        d = description_of(value.type)
        return Value(d.dtype, value) if isinstance(d, Scalar) else value

    def _value(self, x: Any) -> Any:
        value = x.value if isinstance(x, Known) else x
        if value is None and isinstance(x, Known):
            raise Untold("a value is the backend's own")
        return value() if isinstance(value, Later) else value

    def plain(self, x: Any, of: DType | None = None) -> SSAValue:
        """Give a number as arith computes with it, converted to another element type."""
        value = self._value(x)
        if not isinstance(value, Value):
            return self.constant(value, of)
        if value.plain is None:
            wanted = plain_type(value.of)
            if wanted is None or value.typed is None:
                raise Untold(f"arithmetic on {value.of}")
            typed = value.typed
            value.plain = typed if typed.type == wanted else self._as(typed, wanted)
            self.fresh[-1].append((value, "plain"))
        return value.plain if of is None or of is value.of else self._converted(value, of)

    def typed_value(self, x: Any) -> Any:
        """Give a leaf, a constant or a tuple of such as an operation's argument."""
        if isinstance(x, tuple):
            return tuple(map(self.typed_value, x))
        if isinstance(x, Regs):
            return (self.typed_value(x.file), x.dtype, self.typed_value(x.start), x.count)
        value = self._value(x)
        if not isinstance(value, Value):
            return value
        if value.typed is None:
            assert value.plain is not None
            wanted = type_of(Scalar(value.of))
            value.typed = value.plain if value.plain.type == wanted else self._as(value.plain, wanted)
            self.fresh[-1].append((value, "typed"))
        return value.typed

    def _as(self, value: SSAValue, wanted: Attribute) -> SSAValue:
        operands, arguments = pattern_of((value,))
        made = CastOp.create(operands=operands, result_types=[wanted], properties={"arguments": arguments})
        return self.insert(made).results[0]

    def constant(self, value: Any, of: DType | None) -> SSAValue:
        """Make a constant number."""
        of = of or (
            dtypes.Boolean if isinstance(value, bool) else dtypes.Int32 if isinstance(value, int) else dtypes.Float32
        )
        ty: Any = plain_type(of)
        if ty is None or not isinstance(value, (bool, int, float)):
            raise Untold(f"a constant of {of}")
        if of.is_float:
            return self.insert(arith.ConstantOp(FloatAttr(float(value), ty))).results[0]
        bits = int(value) & ((1 << of.width) - 1) if of is not dtypes.Boolean else int(bool(value))
        signed = bits - (1 << of.width) if of is not dtypes.Boolean and bits >> (of.width - 1) else bits
        return self.insert(arith.ConstantOp(IntegerAttr(signed, ty))).results[0]

    def _converted(self, value: Value, of: DType) -> SSAValue:
        """Convert a number as Numba does."""
        src, plain, wanted = value.of, value.plain, plain_type(of)
        assert plain is not None
        if wanted is None:
            raise Untold(f"a conversion of {src} to {of}")
        if src.is_float or of.is_float:
            if src.is_float and of.is_float:
                kind: Any = _CASTS_OF_FLOATS[src.width, of.width]
            elif src.is_float:
                kind = arith.FPToSIOp if of.signed else arith.FPToUIOp
            else:
                kind = arith.SIToFPOp if src.signed and src is not dtypes.Boolean else arith.UIToFPOp
        elif of is dtypes.Boolean:
            zero = self.constant(0, src)
            return self.insert(arith.CmpiOp(plain, zero, "ne")).results[0]
        elif src.width == of.width:
            return plain
        elif src.width > of.width:
            kind = arith.TruncIOp
        else:
            kind = arith.ExtSIOp if src.signed and src is not dtypes.Boolean else arith.ExtUIOp
        return self.insert(kind(plain, wanted)).results[0]

    # ---------------------------------------------------------------- requests

    def asked(self, name: str, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        """Make the operation of a request."""
        numbers = getattr(self, f"_{name}", None)
        if numbers is not None:
            return numbers(args, gives)  # type: ignore[no-any-return]
        if name == "elementwise" and not isinstance(args[0], str):
            raise Untold("a row on each element")
        if name in ("elementwise",):
            args = (args[0], args[1], args[2:])
        return self._gave(self.call(getattr(machine, name), [self.typed_value(a) for a in args]), gives)

    def _gave(self, result: Any, gives: Sequence[Description]) -> Sequence[Any]:
        """The values of a result's leaves."""
        if not gives:
            return ()
        if len(gives) == 1 and description_of(result.type) == gives[0]:
            return (self.of(result),)
        return _flat(self, result)

    def _issue(self, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        row, statics, operands = args
        named = [(n, self.typed_value(x)) for n, x in operands]
        keys = [(n, v) for n, v in statics if n != "target"]
        return self._gave(self.call(PtxOp, (row.name,), (*named, *keys)), gives)

    def _arith(self, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        op, a, b = args
        of = _dtype(gives[0])
        x, y = self.plain(a, of), self.plain(b, of)
        if op == "mod" and of.signed:  # x - x // y * y
            whole = self.insert(arith.FloorDivSIOp(x, y)).results[0]
            back = self.insert(arith.MuliOp(whole, y)).results[0]
            return (Value(of, plain=self.insert(arith.SubiOp(x, back)).results[0]),)
        kinds = _FLOATS if of.is_float else _INTEGERS | (_SIGNED if of.signed else _UNSIGNED)
        return (Value(of, plain=self.insert(kinds[op](x, y)).results[0]),)

    def _cast(self, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        x, of = args
        if plain_type(of) is None or _dtype(gives[0]) is not of:  # it travels as another type
            return self._gave(self.call(machine.cast, (self.typed_value(x), of)), gives)
        value = self._value(x)
        if isinstance(value, Value) and plain_type(value.of) is None:
            return self._gave(self.call(machine.cast, (self.typed_value(x), of)), gives)
        return (Value(of, plain=self.plain(x, of)),)

    def _compare(self, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        op, a, b = args
        of = self._joined(a, b)
        x, y = self.plain(a, of), self.plain(b, of)
        if of.is_float:
            made: Any = arith.CmpfOp(x, y, "une" if op == "!=" else f"o{_COMPARISONS[op]}")
        else:
            sign = "" if op in ("==", "!=") else "s" if of.signed and of is not dtypes.Boolean else "u"
            made = arith.CmpiOp(x, y, sign + _COMPARISONS[op])
        return (Value(dtypes.Boolean, plain=self.insert(made).results[0]),)

    def _select(self, args: tuple[Any, ...], gives: Sequence[Description]) -> Sequence[Any]:
        condition, a, b = args
        of = _dtype(gives[0])
        made = arith.SelectOp(self.plain(condition, dtypes.Boolean), self.plain(a, of), self.plain(b, of))
        return (Value(of, plain=self.insert(made).results[0]),)

    def _joined(self, a: Any, b: Any) -> DType:
        """The type in which two numbers meet."""
        of: DType = requests.meeting(*(x.of if isinstance(x, Known) else Constant(x) for x in (a, b)))
        return of

    # ---------------------------------------------------------------- control flow

    def _within(self, block: Block, body: Callable[[], None]) -> None:
        outside, self.at = self.at, InsertPoint.at_end(block)
        self.paths.append({})
        self.fresh.append([])
        body()
        self.insert(scf.YieldOp())
        self.paths.pop()
        for value, name in self.fresh.pop():
            setattr(value, name, None)
        self.at = outside

    def branch(self, condition: Any, then: Callable[[], None]) -> None:
        """Make an `scf.if`."""
        block = Block()
        self.insert(scf.IfOp(self.plain(condition, dtypes.Boolean), [], Region(block)))
        self._within(block, then)

    def loop(self, start: Any, stop: Any, of: Description, body: Callable[[Any], None]) -> None:
        """Make an `scf.for`."""
        dtype = _dtype(of)
        block = Block(arg_types=[plain_type(dtype) or i32])
        bounds = (self.plain(start, dtype), self.plain(stop, dtype), self.constant(1, dtype))
        self.insert(scf.ForOp(*bounds, [], Region(block)))
        self._within(block, lambda: body(Value(dtype, plain=block.args[0])))


def _dtype(d: Description) -> DType:
    if not isinstance(d, Scalar):
        raise Untold(f"arithmetic on {d}")
    return d.dtype


def _flat(told: _Told, result: SSAValue) -> list[Any]:
    """The values of a tuple's items."""
    items: Any = description_of(result.type)
    found: list[Any] = []
    for i, item in enumerate(items.items):
        part = told.call(SliceOp, (result, i))
        found += _flat(told, part) if hasattr(item, "items") else [told.of(part)]
    return found
