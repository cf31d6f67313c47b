# SPDX-License-Identifier: Apache-2.0
"""Operators on this library's objects in kernels, their casts, and objects that a kernel captures."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.marks.host_objects import mapping_of
from ...seam.source.language import no_operator
from ..emit.leaves import NumberLeaf
from ..emit.tracer import Tracer
from ..ground import llvmlite as ir
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AbstractTemplate, lowering_registry, types, typing
from ..ground.refusals import SIGNS, kind
from . import contexts, tree
from .object_types import Value
from .values import abstract, concrete, numba_type


@lowering_registry.lower_constant(Value)
def value_constant(context: Target, builder: Builder, ty: Value, obj: Any) -> Any:
    leaves: list[Any] = []
    obj = mapping_of(obj) if type(obj) is dict else obj
    tree.align(obj, ty.spec, leaves)
    for leaf in leaves:
        leaf.captured()
    return concrete(obj, ty, Tracer(context, builder))


def value_cast(context: Target, builder: Builder, fromty: Value, toty: Value, val: Any) -> Any:
    """Convert between types that differ in what is static: constants become leaves."""
    if fromty == toty:
        return val
    tracer = Tracer(context, builder)
    leaves: list[Any] = []
    tree.align(abstract(fromty, val, tracer), toty.spec, leaves)
    value = ir.Constant(context.get_value_type(toty), ir.Undefined)
    for i, (leaf, t) in enumerate(zip(leaves, toty.leaves)):
        if leaf is tree.UNSET:  # an address that there is not: who uses it ends with an error
            member = ir.Constant(context.get_value_type(t), -1)
            value = builder.insert_value(value, member, i)
            continue
        member = tracer.ir(leaf, types.unliteral(t)) if isinstance(leaf, (int, NumberLeaf)) else leaf.ir
        value = builder.insert_value(value, member, i)
    return value


lowering_registry.lower_cast(Value, Value)(value_cast)


def _getitem(obj: Any, index: Any) -> Any:
    return obj[index]


def _setitem(obj: Any, index: Any, value: Any) -> None:
    obj[index] = value


def _comparison(op: Callable[..., Any]) -> Callable[..., Any]:
    """Compare objects by `==` or `!=`; a leaf is equal to no other while compiling, whatever its value will be."""

    def compare(a: Any, b: Any) -> Any:
        result = op(a, b)
        if type(result) is bool and result is (op is operator.ne) and _may_be_equal(a, b):
            raise CuteError(
                f"{a!r} {'==' if op is operator.eq else '!='} {b!r}: what they hold is known only at run time, and "
                "objects are compared while the kernel is compiled; compare numbers, as cute.size(a) == cute.size(b)"
            )
        return result

    return compare


def _may_be_equal(a: Any, b: Any) -> bool:
    """Say whether two objects that are not the same differ in nothing but run-time values."""
    leaves: list[Any] = []
    specs = [tree.flatten(x, leaves) for x in (a, b)]
    return bool(leaves) and tree.join(*specs) is not None


_OPERATORS: dict[Any, Callable[..., Any]] = {operator.getitem: _getitem, operator.setitem: _setitem, len: len}
_OPERATORS[divmod] = divmod
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"):
    _OPERATORS[getattr(operator, _name)] = getattr(operator, _name)
    _inplace = getattr(operator, f"i{_name.rstrip('_')}")
    _OPERATORS[_inplace] = _inplace
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "matmul", "pow"):
    _OPERATORS[getattr(operator, _name)] = getattr(operator, _name)
_OPERATORS |= {op: _comparison(op) for op in (operator.eq, operator.ne)}


def _register_operator(op: Any, fn: Callable[..., Any]) -> None:
    @contexts.template(op)
    class Template(AbstractTemplate):
        prefer_literal = True
        refused: CuteError | None = None

        def generic(self, args: Any, kws: Any) -> Any:
            if not any(isinstance(a, Value) for a in args[: 1 if op in (operator.getitem, operator.setitem) else 2]):
                return None
            tracer = Tracer()
            try:
                # Numba tries literals first, then again without: what was refused must not pass as run-time values.
                if self.refused is not None:
                    raise self.refused
                with seam.running(tracer):
                    result = fn(*(abstract(a, None, tracer) for a in args))
                return typing.signature(numba_type(result), *args)
            except CuteError as e:
                self.refused = e
                raise as_typing_error(e) from e
            except TypeError as e:
                sign = SIGNS.get(getattr(op, "__name__", ""))
                if sign is None or not str(e).startswith(("unsupported operand", "bad operand")):
                    raise
                raise as_typing_error(CuteError(no_operator(sign, [kind(str(a)) for a in args]))) from e

    def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
        tracer = Tracer(context, builder)
        with seam.running(tracer):
            result = fn(*(abstract(t, a, tracer) for t, a in zip(sig.args, args)))
        return concrete(result, sig.return_type, tracer)

    if op is operator.setitem:
        contexts.lower(op, Value, types.Any, types.Any)(lower)
    elif op in (len, operator.neg, operator.invert):
        contexts.lower(op, Value)(lower)
    else:
        for sig in ((Value, Value), (Value, types.Any), (types.Any, Value)):
            contexts.lower(op, *sig)(lower)


@contexts.template(slice)
class WholeSlice(AbstractTemplate):
    """`:`, whose type says that it takes all."""

    def generic(self, args: Any, kws: Any) -> Any:
        if not all(isinstance(a, types.NoneType) for a in args):
            return None
        return typing.signature(types.SliceLiteral(slice(None, None)), *args)


for _op, _fn in _OPERATORS.items():
    _register_operator(_op, _fn)
