# SPDX-License-Identifier: Apache-2.0
"""The statements of a typed kernel as operations."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from xdsl.dialects import arith, cf, func, gpu
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr, i32
from xdsl.ir import SSAValue

from ...compiler.host import kernels
from ...compiler.inspection.inference import is_whole
from ...dtypes import Boolean, DType
from ...seam import CuteError, is_frozen_class, is_struct_class, is_traced
from ...seam.ground.packages import is_library
from ...seam.guards import facade
from ...typed import form as typed
from ...typed.descriptions import (  # fmt: skip
    Array,
    Constant,
    Description,
    Elements,
    Foreign,
    Group,
    Object,
    Scalar,
    Struct,
)
from ..library import arithmetic
from ..library.calls import SymbolAttr, pattern_of
from ..library.constants import constant_of, is_constant
from ..library.foreign import NumbaBinary, NumbaCall, NumbaGetAttr, NumbaGetItem, NumbaMethod, NumbaSetItem, NumbaValue
from ..library.operations import (  # fmt: skip
    Binary,
    CastOp,
    GetAttr,
    Inferred,
    LoadElement,
    SetAttr,
    SliceOp,
    StoreElement,
    call,
    make,
)
from ..library.types import description_of, type_of
from ..text.names import Symbol, symbol_in, symbol_of
from .values import Builder, Held, Whole

_DIMENSIONS = {
    "threadIdx": gpu.ThreadIdOp, "blockIdx": gpu.BlockIdOp, "blockDim": gpu.BlockDimOp, "gridDim": gpu.GridDimOp,
}  # fmt: skip


class Statements:
    """Makes operations of a function's statements. names: the symbols of the kernel's functions, by number."""

    def __init__(self, kernel: typed.TypedKernel, function: typed.Function, names: Sequence[str], out: Builder) -> None:
        self.kernel, self.function, self.names, self.out = kernel, function, names, out
        self.held: dict[str, Held] = {}

    # ------------------------------------------------------------ variables

    def description(self, variable: str) -> Description:
        """Describe what a variable holds."""
        return self.function.variables[variable]

    def value(self, variable: str) -> Held:
        """Give what a variable holds."""
        d = self.description(variable)
        if is_constant(d):
            return constant_of(d)
        found = self.held.get(variable)
        if variable not in self.held or isinstance(found, Whole):
            if is_whole(d):
                return self.out.whole(d)
            raise CuteError(f"{self.function.name}: {variable} is read before it is set")
        if isinstance(found, Deferred):
            found = self.held[variable] = found.make(self)
        return self._made(found)

    def _made(self, held: Held) -> Held:
        """Make what stands whole within a tuple."""
        if isinstance(held, Whole):
            return constant_of(held.description) if is_constant(held.description) else self.out.whole(held.description)
        return tuple(map(self._made, held)) if isinstance(held, tuple) else held

    def single(self, variable: str) -> SSAValue:
        """Give what a variable holds as one SSA value."""
        return self.out.single(self.value(variable), self.description(variable))

    def truth(self, variable: str) -> SSAValue:
        """Say whether what a variable holds is true."""
        d, held = self.description(variable), self.value(variable)
        if isinstance(d, Scalar):
            return arithmetic.truth(self.single(variable), d, self.out.emit)
        if isinstance(d, Constant):
            return self.out.number(bool(held), Scalar(Boolean))
        callee = SymbolAttr(symbol_in(symbol_of(bool)))
        made: SSAValue = self._inferred(NumbaCall, [held], Scalar(Boolean), callee=callee)
        return made

    def set(self, target: str, held: Held) -> None:
        """Let a variable hold a value; a value that has no name takes the variable's."""
        self.held[target] = held
        name = named(target)
        if isinstance(held, SSAValue) and held.name_hint is None and name is not None:
            held.name_hint = name

    # ------------------------------------------------------------ statements

    def statement(self, s: Any) -> None:
        """Append the operations of a statement."""
        if isinstance(s, typed.Set):
            self._set(s)
        elif isinstance(s, typed.SetItem):
            self._set_item(s)
        elif isinstance(s, typed.SetAttribute):
            self.out.emit(make(SetAttr, *pattern_of([self.single(s.of), s.name, self.value(s.value)]), None))
        elif isinstance(s, typed.Raise):
            name = getattr(s.exception, "__name__", "AssertionError")
            text = ": ".join([name, *map(str, s.args)])
            self.out.emit(cf.AssertOp(self.out.number(False, Scalar(Boolean)), text))
        else:
            raise CuteError(f"{self.function.name}: {s} has no operation")

    def _set(self, s: typed.Set) -> None:
        d = self.description(s.target) if s.target in self.function.variables else Constant(None)
        source = s.source
        if isinstance(source, (typed.Iterate, typed.Known)) or (is_constant(d) and not _acts(source)):
            if isinstance(source, typed.Known) and not is_whole(d):
                self.held[s.target] = _known(source.value, d)
            return
        made = _SOURCES[type(source)](self, source, d)
        if not is_whole(d) or isinstance(made, SSAValue) and not is_constant(d):
            self.set(s.target, made)

    def _set_item(self, s: typed.SetItem) -> None:
        foreign = isinstance(self.description(s.of), (Array, Foreign))
        index = s.known[0] if s.index is None else self.value(s.index)
        of, value = self.single(s.of), self.value(s.value)
        self.out.emit(make(NumbaSetItem if foreign else StoreElement, *pattern_of([of, index, value]), None))

    # ------------------------------------------------------------ expressions

    def _given(self, op: Any, d: Description) -> Held:
        """Append an operation whose result's type follows from its operands, and convert it to `d`."""
        found = op.infer(self.kernel.arch)
        if found == Constant(None):
            self.out.emit(op)
            return None
        made = type(op).create(operands=op.operands, result_types=[type_of(found)], properties=op.properties)
        op.erase(safe_erase=False)
        value = self.out.emit(made)
        return self.out.converted(found.value if isinstance(found, Constant) else value, found, d)

    def _inferred(self, kind: type[Inferred], args: Sequence[Held], d: Description, **extra: Any) -> Held:
        return self._given(make(kind, *pattern_of(args), None, **extra), d)

    def copy(self, source: typed.Copy, d: Description) -> Held:
        """Convert a variable's value."""
        held = self.held.get(source.source)
        if isinstance(d, Foreign) and not isinstance(held, SSAValue):  # it may be one that no operation needs
            return held
        return self.out.converted(self.value(source.source), self.description(source.source), d)

    def argument(self, source: typed.Argument, d: Description) -> Held:
        """Give an argument of the function."""
        return self.held[self.function.parameters[source.index]]

    def _arguments(self, source: typed.Call | typed.Method) -> tuple[list[Held], list[tuple[str, Held]]]:
        args = [self.value(a) for a in source.args]
        if source.spread is not None:
            d = self.description(source.spread)
            assert isinstance(d, Group)
            args += self.out.items(self.value(source.spread), d)
        return args, [(name, self.value(v)) for name, v in source.keywords]

    def call(self, source: typed.Call, d: Description) -> Held:
        """Call a function."""
        callee = source.callee
        args, keywords = self._arguments(source)
        if callee is bool and len(args) == 1:
            truth = self.truth(source.args[0])
            return self.out.converted(truth, Scalar(Boolean), d)
        if callee is range:  # what goes over it says its bounds
            return None
        if callee is slice and all(a is None for a in args):
            return slice(None)
        if isinstance(callee, DType) and isinstance(d, Scalar) and not keywords and len(args) == 1:
            return self._number(source.args[0], d)
        if callee in arithmetic.SPELLED:
            foreign = all(isinstance(self.description(a), (Array, Foreign, Scalar, Constant)) for a in source.args)
            kind = NumbaBinary if foreign else Binary
            return self._inferred(kind, [arithmetic.SPELLED[callee], *args], d)
        if _is_ours(callee):
            return self._given(call(callee, args, keywords, None), d)
        if callee is kernels.NUMBA_CUDA.syncthreads:
            self.out.emit(gpu.BarrierOp())  # type: ignore[no-untyped-call]
            return None
        op = make(NumbaCall, *pattern_of(args, keywords), None, callee=SymbolAttr(_symbol(source, callee)))
        return self._given(op, d)

    def _number(self, variable: str, d: Scalar) -> Held:
        """Convert a number explicitly, as `cute.Int32(x)` does."""
        of, held = self.description(variable), self.value(variable)
        if isinstance(of, (Scalar, Constant)):
            return self.out.converted(held, of, d)
        return self.out.emit(make(CastOp, *pattern_of([held]), type_of(d)))

    def method(self, source: typed.Method, d: Description) -> Held:
        """Call a method."""
        args, keywords = self._arguments(source)
        of = self.description(source.of)
        held = self.value(source.of)
        if isinstance(of, (Array, Foreign)):
            attribute = StringAttr(source.name)
            op = make(NumbaMethod, *pattern_of([held, *args], keywords), None, attribute=attribute)
        else:
            cls = None if source.name.startswith("__") else _class_of(of)
            op = call(None, [held, *args], keywords, None, attribute=source.name, cls=cls)
        return self._given(op, d)

    def invoke(self, source: typed.Invoke, d: Description) -> Held:
        """Call a device function of the module."""
        callee = self.kernel.functions[source.function]
        wanted = [w for p in callee.parameters if not isinstance(w := callee.variables[p], Constant)]
        operands = []
        for name, w in zip(source.args, wanted, strict=True):
            held = self.out.converted(self.value(name), self.description(name), w)
            operands.append(self.out.single(held, w))
        results = [] if isinstance(callee.result, Constant) else [type_of(callee.result)]
        made = self.out.emit(func.CallOp(SymbolRefAttr(self.names[source.function]), operands, results))
        return self.out.converted(made, callee.result, d)

    def operator(self, source: typed.Operator, d: Description) -> Held:
        """Apply an operator to numbers."""
        wanted = [arithmetic.number_of(w) for w in source.wanted]
        operands = [
            self.out.single(self.out.converted(self.value(v), self.description(v), Scalar(w)), Scalar(w))
            for v, w in zip(source.operands, wanted, strict=True)
        ]
        given = arithmetic.number_of(source.given)
        made = arithmetic.apply(source.function, operands, wanted, given, self.out.emit)
        return self.out.converted(made, Scalar(given), d)

    def build(self, source: typed.Build, d: Description) -> Held:
        """Make a tuple."""
        items = tuple(map(self.value, source.items))
        of = Group(tuple(map(self.description, source.items)))
        return self.out.converted(items, of, d)

    def attribute(self, source: typed.Attribute, d: Description) -> Held:
        """Read an attribute."""
        of = self.description(source.of)
        held = self.held.get(source.of)
        if isinstance(of, Constant) and isinstance(module := of.value, ModuleType):
            known = getattr(module, source.name, None)
            if isinstance(d, Scalar) and isinstance(known, (bool, int, float)):
                return self.out.number(known, d)
            return Deferred(lambda: f"{module.__name__}:{source.name}", d)
        if isinstance(held, Deferred) and isinstance(d, Foreign):
            symbol = held.symbol
            return Deferred(lambda: f"{symbol()}.{source.name}", d)
        if isinstance(held, Deferred) and (made := _DIMENSIONS.get(held.symbol().rpartition(":")[2])) is not None:
            index = self.out.emit(made(gpu.DimensionAttr(gpu.DimensionEnum(source.name))))
            return self.out.converted(self.out.emit(arith.IndexCastOp(index, i32)), _INT32, d)
        if isinstance(of, Foreign) and is_whole(d):  # as of a named tuple that the source names
            return self.out.whole(d)
        kind = NumbaGetAttr if isinstance(of, (Array, Foreign)) else GetAttr
        return self._inferred(kind, [self.single(source.of), source.name], d)

    def item(self, source: typed.Item, d: Description) -> Held:
        """Read an item."""
        of, held = self.description(source.of), self.value(source.of)
        if isinstance(of, Group) and source.known and isinstance(source.known[0], (int, slice)):
            if isinstance(source.known[0], slice):
                chosen = range(len(of.items))[source.known[0]]
                taken = tuple(self.out.item(held, of, i) for i in chosen)
                return self.out.converted(taken, Group(tuple(of.items[i] for i in chosen)), d)
            index = source.known[0] % len(of.items)
            return self.out.converted(self.out.item(held, of, index), of.items[index], d)
        at = source.known[0] if source.index is None else self.value(source.index)
        if isinstance(of, (Array, Foreign)):
            kind: type[Inferred] = NumbaGetItem
        else:
            kind = LoadElement if isinstance(d, Scalar) and not isinstance(of, Group) else SliceOp
        return self._inferred(kind, [self.out.single(held, of), at], d)


_INT32 = description_of(i32)


class Deferred:
    """A value of Numba's that is read where it is used: `cuda.threadIdx`, `numba.float32`. symbol: gives its symbol."""

    def __init__(self, symbol: Callable[[], str], description: Description) -> None:
        self.symbol, self.description = symbol, description

    def make(self, statements: Statements) -> SSAValue:
        """Read it."""
        op = NumbaValue.create(
            result_types=[type_of(self.description)],
            properties={"symbol": SymbolAttr(symbol_in(self.symbol())), "arguments": pattern_of([])[1]},
        )
        made: SSAValue = statements.out.emit(op)
        return made


def _symbol(source: typed.Call, callee: Any) -> Symbol:
    """Return the symbol of what is called: where the source finds it, or its own."""
    return symbol_in(source.symbol) if source.symbol else Symbol(symbol_of(callee), callee)


def named(variable: str) -> str | None:
    """Return what a value that a variable holds may be called: names with numbers at their end are the printer's."""
    name = re.sub(r"(_\d+)+$", "", variable.partition(".")[0])
    return name if name.isidentifier() and not name.startswith("closure__locals__") else None


def _known(value: Any, d: Description) -> Held:
    """Give what stands in the source, which its description does not say whole."""
    if isinstance(d, Scalar) and isinstance(value, (bool, int, float)):
        return value
    if isinstance(d, Foreign) and type(value).__module__.startswith("numba"):
        return Deferred(lambda: f"numba:{value}", d)
    return Deferred(lambda: symbol_of(value), d)


def _acts(source: Any) -> bool:
    """Say whether an expression may do more than to give its result."""
    if isinstance(source, typed.Call):
        return _is_ours(source.callee) or not hasattr(builtins, getattr(source.callee, "__name__", ""))
    return isinstance(source, (typed.Method, typed.Invoke))


def _is_ours(callee: Any) -> bool:
    """Say whether a function or class is one of this library's, or one of the user's that it traces."""
    if isinstance(callee, DType):
        return True
    plain = facade.plain(callee)
    if is_frozen_class(plain) or is_struct_class(plain) or is_traced(plain):
        return True
    return is_library(getattr(callee, "__module__", ""))


def _class_of(d: Description) -> type | None:
    if isinstance(d, (Object, Struct)):
        return d.cls
    if isinstance(d, Constant):
        return type(d.value)
    return Elements if isinstance(d, Elements) else None


_SOURCES: dict[type, Callable[[Statements, Any, Description], Held]] = {
    typed.Argument: Statements.argument,
    typed.Copy: Statements.copy,
    typed.Call: Statements.call,
    typed.Method: Statements.method,
    typed.Invoke: Statements.invoke,
    typed.Operator: Statements.operator,
    typed.Build: Statements.build,
    typed.Attribute: Statements.attribute,
    typed.Item: Statements.item,
}
