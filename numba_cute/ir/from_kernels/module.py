# SPDX-License-Identifier: Apache-2.0
"""From a kernel to the IR: what Numba made of it, typed, as a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import arith, func, scf, ub
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region as OpRegion, SSAValue

from ...compiler.inspection.inference import is_whole
from ...compiler.inspection.reading import typed_kernel
from ...dtypes import Boolean, Int32
from ...typed import form as typed
from ...typed.descriptions import Constant, Description, Scalar
from ...typed.liveness import around, asked, live_after_each, live_in, written
from ...typed.structure import RESULT, Choose, Condition, For, Go, If, Node, Region, Repeat, While, structured
from ..library import arithmetic
from ..library.options import DEVICE, KERNEL, attributes_of
from ..library.types import type_of
from ..module import Module
from ..publish.publishing import publish
from ..text.python import TARGET
from .statements import Statements, named
from .values import Builder, Held, assembled, carried_types

PTX = "ptx"
"""The attribute that holds the instructions which an operation became."""


def from_kernel(kernel: Any, args: Any, arch: str = "sm_90a") -> Module:
    """Make a module of a kernel; arguments as for `compile`. Raises CuteError for what `compile` refuses, but for the
    assembler's part, and for statements that have no form in the IR."""
    return module_of(typed_kernel(kernel, args, arch))


def module_of(kernel: typed.TypedKernel) -> Module:
    """Make a module of a typed kernel."""
    names = _names(kernel)
    functions = [_Function(kernel, i, names).made() for i in range(len(kernel.functions))]
    made = ModuleOp(functions, {TARGET: StringAttr(kernel.arch)})
    publish(made)
    return Module(made)


def _names(kernel: typed.TypedKernel) -> list[str]:
    """Give each function a name of its own."""
    names: list[str] = []
    for function in kernel.functions:
        name, count = function.name, 1
        while name in names:
            name, count = f"{function.name}_{count}", count + 1
        names.append(name)
    return names


class _Function:
    """Makes one function of a module."""

    def __init__(self, kernel: typed.TypedKernel, number: int, names: Sequence[str]) -> None:
        self._kernel, self._number = kernel, number
        self._name, self._function = names[number], kernel.functions[number]
        self._ptx = dict(kernel.ptx) if number == 0 else {}
        parameters = self._function.parameters
        if number:  # constants of a device function stand in its code
            parameters = tuple(p for p in parameters if not isinstance(self._variables[p], Constant))
        self._block = Block(arg_types=[type_of(self._variables[p]) for p in parameters])
        out = Builder(self._block, self._function.file)
        self._at = Statements(kernel, self._function, names, out)
        for parameter, value in zip(parameters, self._block.args, strict=True):
            self._at.set(parameter, value)
            value.name_hint = named(parameter.removeprefix("arg."))

    @property
    def _variables(self) -> dict[str, Description]:
        return self._function.variables

    def made(self) -> func.FuncOp:
        """Give the function."""
        function = self._function
        result = function.result
        self._variables[RESULT] = result
        body = structured(function)
        self._selectors = body.selectors
        for name, labels in body.selectors.items():
            self._variables[name] = Scalar(Boolean if len(labels) == 2 else Int32)
        self._region(body.body, {RESULT})
        returned = []
        if not isinstance(result, Constant):
            returned = [self._at.single(RESULT)]
        self._at.out.emit(func.ReturnOp(*returned))
        types = [a.type for a in self._block.args], [v.type for v in returned]
        made = func.FuncOp(self._name, types, OpRegion(self._block), "private" if self._number else None)
        made.location = _location(function.file, function.line)
        if self._number == 0:
            made.attributes["numba_cute.kernel"] = UnitAttr()
        usual = DEVICE_USUAL if self._number else KERNEL_USUAL
        options = {name: v for name, v in function.options.items() if name in usual and v != usual[name]}
        made.attributes.update(attributes_of(options, None if self._number else self._kernel.cluster))
        left = [text for texts in self._ptx.values() for text in texts]
        _attach(made, left)
        return made

    # ------------------------------------------------------------ regions

    def _region(self, region: Region, after: set[str]) -> None:
        """Append a region's operations. after: the variables that are read after it."""
        marks: tuple[int, ...] = ()  # those of statements that made no operation are of the next one's
        for node, live in zip(region, live_after_each(region, after), strict=True):
            line, marks = getattr(node, "line", 0), (*marks, *getattr(node, "marks", ()))
            out = self._at.out
            out.line = line or out.line
            out.made.clear()
            main = self._node(node, live)
            if main is None and out.made:
                main = out.made[-1]
            if main is not None:
                _attach(main, [t for m in marks for t in self._ptx.pop(m, ())])
                marks = ()

    def _node(self, node: Node, live: set[str]) -> Operation | None:
        """Append a node's operations; gives the one that stands for it, where the last one does not."""
        if isinstance(node, Go):
            labels = self._selectors[node.selector]
            value: Any = node.label == labels[0] if len(labels) == 2 else labels.index(node.label)
            d = self._variables[node.selector]
            assert isinstance(d, Scalar)
            self._at.held[node.selector] = self._at.out.number(value, d)
        elif isinstance(node, Choose):
            first = self._selectors[node.selector][0]
            value = self._condition(node.condition)
            turned = value if node.then == first else arithmetic.negated(value, self._at.out.emit)
            self._at.held[node.selector] = turned
        elif isinstance(node, If):
            return self._if(node, live)
        elif isinstance(node, For):
            return self._for(node, live)
        elif isinstance(node, While):
            return self._while(node, live)
        elif isinstance(node, Repeat):
            return self._repeat(node, live)
        else:
            self._at.statement(node)
        return None

    def _condition(self, condition: Condition | None) -> SSAValue:
        out = self._at.out
        if condition is None:
            return out.number(True, Scalar(Boolean))
        if condition.label is None:
            value = self._at.truth(condition.variable)
        else:
            value = self._at.single(condition.variable)
            labels = self._selectors[condition.variable]
            if len(labels) > 2:
                index = out.number(labels.index(condition.label), Scalar(Int32))
                value = out.emit(arith.CmpiOp(value, index, "eq"))
            elif condition.label != labels[0]:
                value = arithmetic.negated(value, out.emit)
        return arithmetic.negated(value, out.emit) if condition.negated else value

    # ------------------------------------------------------------ what regions carry

    def _carried(self, names: Iterable[str]) -> list[str]:
        """Leave out what is known whole: of these variables those that have SSA values."""
        return [n for n in names if n in self._variables and not is_whole(self._variables[n])]

    def _types(self, names: Iterable[str]) -> list[Attribute]:
        return [t for n in names for t in carried_types(self._variables[n])]

    def _values(self, names: Iterable[str]) -> list[SSAValue]:
        """List the SSA values of variables; of those that nothing has set yet `ub.poison`."""
        found: list[SSAValue] = []
        for n in names:
            d = self._variables[n]
            if n in self._at.held:
                found += self._at.out.leaves(self._at.value(n), d)
            else:
                found += [self._at.out.emit(ub.PoisonOp(t)) for t in carried_types(d)]
        return found

    def _bind(self, names: Iterable[str], values: Iterable[SSAValue]) -> None:
        """Let variables hold SSA values."""
        rest = iter(values)
        for n in names:
            self._at.set(n, assembled(self._variables[n], rest))

    def _within(self, block: Block) -> tuple[Builder, dict[str, Held]]:
        """Go on in a block of a region within; gives what to come back to."""
        before = self._at.out, self._at.held
        self._at.out, self._at.held = self._at.out.within(block), dict(self._at.held)
        return before

    def _back(self, before: tuple[Builder, dict[str, Held]], changed: Iterable[str]) -> None:
        """Come back from a region, in which these variables changed."""
        self._at.out, self._at.held = before
        for n in changed:
            self._at.held.pop(n, None)

    # ------------------------------------------------------------ nodes with regions

    def _if(self, node: If, live: set[str]) -> Operation:
        changed = written(node.then) | written(node.otherwise)
        results = self._carried(n for n in changed if n in live)
        condition = self._condition(node.condition)
        blocks = []
        for region in (node.then, node.otherwise):
            block = Block()
            before = self._within(block)
            self._region(region, live)
            self._at.out.emit(scf.YieldOp(*self._values(results)))
            self._back(before, ())
            blocks.append(block)
        others = [blocks[1]] if results or blocks[1].first_op is not blocks[1].last_op else None
        made = scf.IfOp(condition, self._types(results), [blocks[0]], others)
        return self._finish(made, changed, results)

    def _finish(self, made: Operation, changed: Iterable[str], results: list[str]) -> Operation:
        """Append an operation whose results are what variables hold after it."""
        self._at.out.emit(made)
        for n in changed:
            self._at.held.pop(n, None)
        self._bind(results, made.results)
        return made

    def _for(self, node: For, live: set[str]) -> Operation:
        d = self._variables[node.index]
        assert isinstance(d, Scalar)
        counter = d if d.dtype.kind == "int" else Scalar(Int32 if d.dtype.width == 32 else _INT64)
        bounds = [self._bound(v, default, counter) for v, default in ((node.start, 0), (node.stop, 0), (node.step, 1))]
        changed = {node.index: None} | written(node.body)
        needed = around(node, live) | live
        carried = self._carried(n for n in changed if n in needed)
        initial = self._values(carried)
        block = Block(arg_types=[type_of(counter), *(v.type for v in initial)])
        before = self._within(block)
        self._bind(carried, block.args[1:])
        self._at.set(node.index, self._at.out.converted(block.args[0], counter, d))
        self._region(node.body, needed)
        self._at.out.emit(scf.YieldOp(*self._values(carried)))
        self._back(before, changed)
        start, stop, step = bounds
        return self._finish(scf.ForOp(start, stop, step, initial, block), changed, carried)

    def _bound(self, variable: str | None, default: int, counter: Scalar) -> SSAValue:
        if variable is None:
            return self._at.out.number(default, counter)
        held = self._at.out.converted(self._at.value(variable), self._variables[variable], counter)
        return self._at.out.single(held, counter)

    def _while(self, node: While, live: set[str]) -> Operation:
        changed = written(node.test) | written(node.body)
        header = around(node, live)
        inside = live_in(node.body, header)
        carried = self._carried(n for n in changed if n in header)
        made_by_test = written(node.test)
        passed = self._carried(
            n for n in changed if (n in made_by_test or n in carried) and (n in inside or n in live)
        )  # fmt: skip
        initial = self._values(carried)
        before_block = Block(arg_types=[v.type for v in initial])
        before = self._within(before_block)
        self._bind(carried, before_block.args)
        self._region(node.test, inside | live | asked(node.condition))
        self._at.out.emit(scf.ConditionOp(self._condition(node.condition), *self._values(passed)))
        self._back(before, changed)
        after_block = Block(arg_types=self._types(passed))
        before = self._within(after_block)
        self._bind(passed, after_block.args)
        self._region(node.body, header)
        self._at.out.emit(scf.YieldOp(*self._values(carried)))
        self._back(before, changed)
        made = scf.WhileOp(initial, self._types(passed), [before_block], [after_block])
        return self._finish(made, changed, passed)

    def _repeat(self, node: Repeat, live: set[str]) -> Operation:
        changed = written(node.body)
        header = around(node, live)
        carried = self._carried(n for n in changed if n in header)
        passed = self._carried(n for n in changed if n in header or n in live)
        initial = self._values(carried)
        block = Block(arg_types=[v.type for v in initial])
        before = self._within(block)
        self._bind(carried, block.args)
        self._region(node.body, header | live | asked(node.again))
        self._at.out.emit(scf.ConditionOp(self._condition(node.again), *self._values(passed)))
        self._back(before, changed)
        after = Block(arg_types=self._types(passed))
        before = self._within(after)
        self._bind(passed, after.args)
        self._at.out.emit(scf.YieldOp(*self._values(carried)))
        self._back(before, changed)
        return self._finish(scf.WhileOp(initial, self._types(passed), [block], [after]), changed, passed)


KERNEL_USUAL = {name: None for name in KERNEL} | {
    "debug": False, "lineinfo": False, "opt": True, "fastmath": False, "lto": True,
}  # fmt: skip
"""A kernel's options where `cuda.jit` was told nothing."""
DEVICE_USUAL = {name: None for name in DEVICE} | {
    "inline": "never", "forceinline": False, "fastmath": False, "debug": False, "lineinfo": False, "opt": True,
}  # fmt: skip
"""Those of a device function."""
_INT64 = arithmetic.number_of(Constant(0))


def _location(file: str, line: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1))


def _attach(op: Operation, texts: Sequence[str]) -> None:
    """Tell of an operation what it became."""
    if texts:
        known = op.attributes.get(PTX)
        before = list(known) if isinstance(known, ArrayAttr) else []
        op.attributes[PTX] = ArrayAttr([*before, *map(StringAttr, texts)])
