# SPDX-License-Identifier: Apache-2.0
"""The machine that runs a module: functions, their values, and the operations of the dialect `cute`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....seam import CuteError
from ..attributes import CuteType
from ..checked import leaves_of
from ..inference import type_of_value, value_of_type, with_leaves
from ..leaves import Dynamic, value_of, wrapped
from ..meaning import FUNCTIONS, Value
from ..notation import shown
from ..operations import CuteOperation


class Stopped(CuteError):
    """A program does what cannot be run here."""


class Left(Exception):
    """A function's end, or a region's. values: what it gives."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__()
        self.values = list(values)


Frame = dict[SSAValue, Any]
"""The values of a running function: ints, and `Value`s of the dialect."""
Runs = Callable[["Machine", Any, Frame, list[Any]], Sequence[Any]]
"""A function that runs an operation: (machine, operation, frame, operands) to results."""


class Machine:
    """Runs a module. printed: where its output goes, piece by piece. environment: of the process, as `getenv` sees it.
    place: of the thread that runs, by the operation that asks for it; empty on the host."""

    def __init__(self, module: ModuleOp, printed: Callable[[str], None], environment: Mapping[str, str]) -> None:
        self.module, self.printed, self.environment = module, printed, environment
        self.place: dict[str, tuple[int, int, int]] = {}
        self.symbols = dict(_symbols(module, ()))

    def function(self, path: tuple[str, ...], within: Operation) -> Operation:
        """Find a function by its name, in the modules around an operation."""
        at: Operation | None = within
        while at is not None:
            found = self.symbols.get((*_path_of(at), *path))
            if found is not None:
                return found
            at = at.parent_op()
        raise Stopped(f"there is no function @{'::@'.join(path)}")

    def call(self, function: Operation, arguments: Sequence[Any]) -> list[Any]:
        """Run a function; gives its results."""
        if not function.regions or not function.regions[0].blocks:
            raise Stopped(f"the function @{_name_of(function)} has no body")
        return self.region(function.regions[0], arguments, {})

    def region(self, region: Region, arguments: Sequence[Any], frame: Frame) -> list[Any]:
        """Run a region; gives what it is left with."""
        block: Block | None = region.blocks.first
        given: Sequence[Any] = arguments
        while block is not None:
            frame.update(zip(block.args, given, strict=True))
            block, given = self.block(block, frame)
        return list(given)

    def block(self, block: Block, frame: Frame) -> tuple[Block | None, Sequence[Any]]:
        """Run a block; gives the block that follows, with its arguments, or None with what the region gives."""
        for op in block.ops:
            operands = [frame[o] for o in op.operands]
            try:
                results = self.operation(op, frame, operands)
            except Left as left:
                return None, left.values
            except Branch as branch:
                return branch.block, branch.values
            frame.update(zip(op.results, results, strict=True))
        return None, []

    def operation(self, op: Operation, frame: Frame, operands: list[Any]) -> Sequence[Any]:
        """Run an operation; gives its results."""
        if isinstance(op, CuteOperation):
            return _cute(self, op, operands)
        runs = RUNS.get(op.name)
        if runs is None:
            raise Stopped(f"{op.name} cannot be run here")
        return runs(self, op, frame, operands)


class Branch(Exception):
    """A jump to a block of the region."""

    def __init__(self, block: Block, values: Sequence[Any]) -> None:
        super().__init__()
        self.block, self.values = block, list(values)


RUNS: dict[str, Runs] = {}
"""The functions that run operations of other dialects, by name: `standard.py` and `device.py` add theirs."""


def runs(*names: str) -> Callable[[Runs], Runs]:
    """Say which operations a function runs."""

    def add(function: Runs) -> Runs:
        RUNS.update(dict.fromkeys(names, function))
        return function

    return add


def _name_of(op: Operation) -> str:
    found = op.properties.get("sym_name", op.attributes.get("sym_name"))
    return found.data if isinstance(found, StringAttr) else ""


def _path_of(op: Operation) -> tuple[str, ...]:
    """The names of the modules around an operation, and its own if it is one."""
    parent = op.parent_op()
    around = () if parent is None else _path_of(parent)
    return (*around, _name_of(op)) if op.name.endswith(".module") and _name_of(op) else around


def _symbols(module: Operation, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Operation]]:
    found = []
    for op in (o for r in module.regions for b in r.blocks for o in b.ops):
        name = _name_of(op)
        if name:
            found.append(((*path, name), op))
        if op.name.endswith(".module"):
            found += _symbols(op, (*path, name) if name else path)
    return found


# ------------------------------------------------------------------ numbers


def width(t: Attribute) -> int:
    """Return the width of an integer type, in bits."""
    if isinstance(t, IndexType):
        return 64
    if isinstance(t, IntegerType):
        return int(t.width.data)
    raise Stopped(f"numbers of the type {t} cannot be run here: integers can")


def fitted(value: int, t: Attribute) -> int:
    """Return the number of an integer type that has the low bits of `value`; of i1, 0 or 1."""
    bits = width(t)
    return value & 1 if bits == 1 else wrapped(value, bits)


# ------------------------------------------------------------------ operations of the dialect


def _given(operand: Any, t: Attribute) -> Value:
    """An operand as the dialect's functions take it: an integer with its width."""
    return operand if isinstance(operand, Value) else Value(str(t), Dynamic(width(t), 1, operand))


def _cute(machine: Machine, op: CuteOperation, operands: list[Any]) -> Sequence[Any]:
    d = op.DEFINITION
    if d.name == "static":
        return [value_of_type(op.res[0].type)]
    given = [_given(x, a.type) for x, a in zip(operands, op.args, strict=True)]
    if d.name == "print":
        machine.printed(shown(given[0].kind, given[0].value) + "\n")
        return []
    if d.name in ("make_int_tuple", "make_shape", "make_stride", "make_coord", "make_tile"):
        return [_filled(op.res[0].type, given)]
    found = FUNCTIONS[d.name](given, op.plain_attributes())
    return [_settled(v, r.type) for v, r in zip(found, op.res, strict=True)]


def _filled(t: Attribute, given: Sequence[Value]) -> Value:
    """The value of a type whose `?` are these integers, in the order in which they are written."""
    whole, left = value_of_type(t), iter(given)

    def fill(leaf: Any) -> Any:
        if not isinstance(leaf, Dynamic):
            return leaf
        value = next(left).value
        number = value if type(value) is int else value.value
        if number % leaf.divisor:
            raise Stopped(f"{number} is not a multiple of {leaf.divisor}, as its type says")
        return Dynamic(leaf.width, leaf.divisor, number)

    return Value(whole.kind, with_leaves(whole.value, fill))


def _settled(value: Value, t: Attribute) -> Any:
    """A result as the program holds it. Raises Stopped where it is not what its type says."""
    if not isinstance(t, CuteType):
        number = value_of(value.value)
        if number is None:
            raise Stopped(f"a value of '{t}' is not known")
        return fitted(int(number), t)
    said = [x.value if isinstance(x, Dynamic) else x for x in leaves_of(value.value)]
    if type_of_value(value) != t and len(leaves_of(t.data)) != len(said):
        raise Stopped(f"a value of '{type_of_value(value)}' came where the type is '{t}'")
    for x, y in zip(said, leaves_of(t.data), strict=True):
        if x != y if not isinstance(y, Dynamic) else type(x) is int and x % y.divisor != 0:
            raise Stopped(f"the value {shown(value.kind, value.value)} is none of '{t}'")
    return value


def run(
    module: ModuleOp,
    printed: Callable[[str], None],
    environment: Mapping[str, str],
    entry: str = "main",
) -> list[Any]:
    """Run a function of a module that takes no arguments; gives its results. printed: where the output goes. Raises
    Stopped for what cannot be run, and CuteError for what a program does wrong."""
    machine = Machine(module, printed, environment)
    function = machine.symbols.get((entry,))
    if function is None:
        raise Stopped(f"the module has no function @{entry}")
    try:
        return machine.call(function, [])
    except RecursionError:
        raise Stopped("a function of the program calls itself too deep") from None
