# SPDX-License-Identifier: Apache-2.0
"""The classes of a kernel's values as Python has them: `isinstance`, `issubclass`, `type`, `callable`, `hasattr`, and
comparisons of classes. Types say all of it, so the answers are constants, by which branches are decided."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import seam
from ...dtypes import DType
from ...seam import CuteError
from ...seam.ground.names import member_of
from ...seam.marks.host_objects import is_snapshot
from ..emit.leaves import class_of_number, dtype_of
from ..emit.tracer import Tracer
from ..ground.builder import Builder, Target
from ..ground.errors import as_typing_error
from ..ground.numba_cuda import AbstractTemplate, cuda_target, types, typing
from . import contexts
from .list_types import is_list
from .object_types import StructRef, Value
from .values import abstract, numba_type


class _NotKnown(Exception):
    """The types do not say it: Numba's own answer holds."""


def class_of(ty: types.Type) -> type:
    """Return the class that Python's `type` gives of a value of a Numba type; _NotKnown for what is Numba's alone."""
    if isinstance(ty, StructRef):
        return ty.cls
    if isinstance(ty, types.Omitted):
        return type(ty.value)
    if isinstance(ty, types.Literal):
        return type(ty.literal_value)
    found = class_of_number(ty)
    if found is not None:
        return found
    if isinstance(ty, types.NoneType):
        return type(None)
    if isinstance(ty, (types.IntEnumMember, types.EnumMember, types.BaseNamedTuple)):
        return ty.instance_class  # type: ignore[no-any-return]
    if isinstance(ty, types.BaseTuple):
        return list if is_list(ty) else tuple
    if isinstance(ty, types.UnicodeType):
        return str
    if isinstance(ty, Value):
        found = abstract(ty, None, Tracer())
        return found.cute_of if is_snapshot(found) else type(found)
    raise _NotKnown


def _named(ty: types.Type) -> Any:
    """Return the class that a value of a Numba type is, or what `isinstance` takes in its place: a union, a tuple."""
    if isinstance(ty, types.BaseTuple):
        return tuple(map(_named, ty))
    if isinstance(ty, Value) and ty.spec[0] == "const":
        return ty.spec[2]
    key = getattr(ty, "typing_key", None)
    if isinstance(ty, types.Function) and isinstance(key, type):
        return key
    raise _NotKnown


def _isinstance(x: types.Type, classes: types.Type) -> bool:
    wanted = _named(classes)
    several = wanted if isinstance(wanted, tuple) else (wanted,)
    elements, others = (tuple(t for t in several if isinstance(t, DType) is of) for of in (True, False))
    of_number = class_of_number(x) is not None and not isinstance(x, types.Literal)
    if of_number and dtype_of(x) in elements:
        return True
    if type in others and isinstance(x, Value) and x.spec[0] == "const" and isinstance(x.spec[2], DType):
        return True  # element types are classes in the CuTe DSL
    return bool(others) and issubclass(class_of(x), others)


def _issubclass(cls: types.Type, classes: types.Type) -> bool:
    return issubclass(_named(cls), _named(classes))


def _type(x: types.Type) -> Any:
    if class_of_number(x) is not None:
        raise _NotKnown  # Numba's conversion to the number's own type
    return class_of(x)


def _callable(x: types.Type) -> bool:
    if isinstance(x, StructRef):
        return member_of(x.cls, "__call__") is not None
    if isinstance(x, Value):
        return callable(abstract(x, None, Tracer()))
    return isinstance(x, types.Callable)


def _hasattr(x: types.Type, name: types.Type) -> bool:
    if not isinstance(name, types.StringLiteral):
        raise _NotKnown
    attr = name.literal_value
    if isinstance(x, StructRef):
        return attr in x.types or member_of(x.cls, attr) is not None
    if isinstance(x, Value):
        tracer = Tracer()
        with seam.running(tracer):
            return hasattr(abstract(x, None, tracer), attr)
    return contexts.typing_context().resolve_getattr(x, attr) is not None or hasattr(class_of(x), attr)


_FACTS: dict[Any, Callable[..., Any]] = {
    isinstance: _isinstance, issubclass: _issubclass, type: _type, callable: _callable, hasattr: _hasattr,
}  # fmt: skip


@contexts.call_rule
def _resolve_class_fact(func: Any, args: Any) -> Any:
    key: Any = getattr(func, "typing_key", None)
    answer = _FACTS.get(key) if callable(key) else None
    if answer is None:
        return None
    try:
        value = answer(*args)
    except _NotKnown:
        return None
    except TypeError as e:
        raise as_typing_error(CuteError(f"{key.__name__}: {e}")) from e
    except CuteError as e:
        raise as_typing_error(e) from e
    context = contexts.typing_context()
    result = context.resolve_value_type(value) if isinstance(value, type) and value is tuple else numba_type(value)
    func._impl_keys[tuple(args)] = _implementation(result)
    return typing.signature(result, *args)


def _compared(a: types.Type, b: types.Type) -> bool:
    """Refuse to compare what `type` gives of a number with the class that Python has for it."""
    kinds: list[Any] = [
        class_of_number(x.instance_type) if isinstance(x, types.NumberClass) else _named(x) for x in (a, b)
    ]
    if kinds[0] is kinds[1] and isinstance(a, types.NumberClass) != isinstance(b, types.NumberClass):
        name = kinds[0].__name__
        raise CuteError(f"type(x) is {name}: a number at run time has a type with a width; ask isinstance(x, {name})")
    raise _NotKnown


_FACTS |= dict.fromkeys((operator.is_, operator.is_not, operator.eq, operator.ne), _compared)


def _getattr(args: Any) -> Any:
    """Type `getattr(x, "name")` as `x.name`; with a default where there is no such attribute, as that."""
    if len(args) < 2 or not isinstance(args[1], types.StringLiteral) or not isinstance(args[0], (StructRef, Value)):
        return None
    name = args[1].literal_value
    found = len(args) == 2 or _hasattr(*args[:2])
    result = contexts.typing_context().resolve_getattr(args[0], name) if found else args[2]
    key = ("attribute of a value", args)

    def lower(context: Target, builder: Builder, sig: Any, values: Any) -> Any:
        if not found:
            return values[2]
        return context.get_getattr(args[0], name)(context, builder, args[0], values[0], name)

    table = cuda_target.target_context._defns[key]
    if not table.versions:
        table.append(lower, (types.VarArg(types.Any),))
    return key, typing.signature(result, *args)


@contexts.call_rule
def _resolve_getattr(func: Any, args: Any) -> Any:
    if getattr(func, "typing_key", None) is not getattr:
        return None
    found = _getattr(tuple(args))
    if found is None:
        return None
    func._impl_keys[tuple(args)], sig = found
    return sig


_KNOWN: dict[types.Type, Any] = {}


def _implementation(result: types.Type) -> Any:
    """Return the key of what lowers a call whose result its type says."""
    if result not in _KNOWN:
        key = _KNOWN[result] = ("class of a value", result)

        def lower(context: Target, builder: Builder, sig: Any, args: Any) -> Any:
            if isinstance(result, types.Literal):
                return context.get_constant_generic(builder, types.unliteral(result), result.literal_value)
            return context.get_value_type(result)(None)

        cuda_target.target_context._defns[key].append(lower, (types.VarArg(types.Any),))
    return _KNOWN[result]


class _Unknown(AbstractTemplate):
    """For what Numba has no template for, and so that what is found here is no other kernel's: nothing fits."""

    def generic(self, args: Any, kws: Any) -> Any:
        return None


for _fn in (isinstance, issubclass, type, callable, hasattr, getattr):
    contexts.template(_fn)(type("_Unknown", (_Unknown,), {}))
