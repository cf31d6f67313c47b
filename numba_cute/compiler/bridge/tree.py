# SPDX-License-Identifier: Apache-2.0
"""Objects as trees: what is static (a hashable spec) apart from what is known only at run time (a list of leaves).

A spec is a nested tuple: ("leaf", numba type), of an object of the kernel too, ("tuple", specs), ("list", specs),
("node", class, specs) for an instance of a `frozen` class, ("named", class, specs) for a named tuple, ("partial",
(number of arguments, names), specs) for a `functools.partial`, or ("const", type, object) for anything else, which must
be hashable.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.marks.mappings import Mapping
from ...seam.marks.plain import fields_of as fields_of_plain, is_plain
from ..emit.tracer import Lent
from ..ground.lifted import NotLifted, lifted_function, sets_free
from ..ground.numba_cuda import types
from .exact import Part, changing, mark
from .leaf_types import Multiple, leaf_type, multiple

Spec = tuple[Any, ...]


class ByReference:
    """An object of traced code that is not a value: what its name stands for may change."""

    __slots__ = ()


_typing: list[Callable[[Any], types.Type]] = []


def types_objects(type_of: Callable[[Any], types.Type]) -> Callable[[Any], types.Type]:
    """Decorate the one function that gives the type of an object of a kernel, which stands above (bridge/values.py)."""
    _typing.append(type_of)
    return type_of


_FIELDS: dict[type, tuple[str, ...]] = {}


def fields_of(cls: type) -> tuple[str, ...]:
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(f.name for f in dataclasses.fields(cls) if f.metadata.get("kernel", True))
    return _FIELDS[cls]


@functools.cache
def _of_the_host(cls: type) -> tuple[str, ...]:
    """Return the fields that objects of a class lack in a kernel."""
    return tuple(f.name for f in dataclasses.fields(cls) if not f.metadata.get("kernel", True))


def flatten(obj: Any, leaves: list[Any]) -> Spec:
    """Return the spec of `obj`; its leaves are appended to `leaves` in order."""
    kind = type(obj)
    if kind is int or kind is bool or obj is None:  # most of what a layout holds
        return ("const", kind, obj)
    if kind is tuple:
        return ("tuple", tuple([flatten(x, leaves) for x in obj]))
    if kind is list:
        return ("list", tuple([flatten(x, leaves) for x in _lists().hold(obj)]))
    if isinstance(obj, seam.Leaf):
        leaves.append(obj)
        return ("leaf", leaf_type(obj))
    if isinstance(obj, tuple):
        parts = tuple(flatten(x, leaves) for x in obj)
        return ("named", kind, parts) if hasattr(obj, "_fields") else ("tuple", parts)
    if type(obj) is functools.partial:
        held = (obj.func, *obj.args, *obj.keywords.values())
        return ("partial", (len(obj.args), *obj.keywords), tuple(flatten(x, leaves) for x in held))
    if kind is FunctionType and _changes(obj):
        return flatten(_as_partial(obj), leaves)
    if seam.is_frozen_class(type(obj)):
        cls = type(obj)
        return ("node", cls, tuple(flatten(getattr(obj, f), leaves) for f in fields_of(cls)))
    if kind is dict:
        return flatten(Mapping(tuple(obj), tuple(obj.values())), leaves)
    if _changes(obj):
        (type_of,) = _typing
        leaves.append(obj)
        return ("leaf", type_of(obj))
    try:
        hash(obj)
    except TypeError:
        raise CuteError(f"{obj!r} ({type(obj).__name__}) cannot be held by a kernel: it is not hashable") from None
    return ("const", type(obj), obj)


def _lists() -> Lent:
    """Return what knows the lists of the traced code that runs: none of them may change."""
    lists = getattr(seam.current_or(None), "lists", None)
    return Lent() if lists is None else lists


def identity(spec: Spec) -> Spec:
    """Return what tells a spec from others: where `==` may take different objects for one, which object it is."""
    kind = spec[0]
    if kind == "leaf":
        return spec
    if kind == "const":
        told = _told_apart(spec[2])
        return spec if told is None else (*spec[:2], told)
    parts = tuple(map(identity, spec[-1]))
    return spec if all(a is b for a, b in zip(parts, spec[-1])) else (*spec[:-1], parts)


_NUMBERS = (int, bool, str, bytes, type(None))
_ITSELF = (*_NUMBERS, FunctionType, BuiltinFunctionType, MethodType, type)
"""Types whose equal objects are one."""


def _told_apart(obj: Any) -> Any:
    """Return what tells an object from others that are equal to it; None if it is itself enough."""
    cls: Any = type(obj)
    if cls in _ITSELF or cls.__eq__ is object.__eq__ or isinstance(obj, enum.Enum):
        return None
    return mark(obj)


def changes(spec: Spec) -> list[Part]:
    """Return what may be replaced in the objects that a spec holds whole, and that the compiler looks into."""
    return [p for obj in constants(spec) if type(obj) not in _NUMBERS for p in changing(obj)]


def constants(spec: Spec) -> tuple[Any, ...]:
    """Return the objects that a spec holds, whole."""
    if spec[0] == "leaf":
        return ()
    return (spec[2],) if spec[0] == "const" else tuple(x for s in spec[-1] for x in constants(s))


def cells(fn: FunctionType) -> list[Any]:
    """Return what a closure's variables hold, as far as they are set."""
    found = []
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not set yet, as the function's own name
            continue
    return found


def _changes(obj: Any) -> bool:
    """Say whether what a closure holds is an object of the kernel, or known at run time alone."""
    kind = type(obj)
    if kind in _NUMBERS:
        return False
    if kind is FunctionType and not (obj.__closure__ or obj.__defaults__ or obj.__kwdefaults__):
        return False
    if isinstance(obj, (seam.Leaf, ByReference)) or seam.is_struct_class(type(obj)):
        return True
    if seam.is_frozen_class(type(obj)):
        return not seam.is_static(obj)
    parts: Any = obj if isinstance(obj, tuple) else obj.values() if type(obj) is dict else ()
    if isinstance(obj, functools.partial):
        parts = (obj.func, *obj.args, *obj.keywords.values())
    elif type(obj) is FunctionType:
        parts = (*cells(obj), *(obj.__defaults__ or ()), *(obj.__kwdefaults__ or {}).values())
    elif is_plain(obj):
        parts = fields_of_plain(obj).values()
    if any(obj is x for x in _looking):
        return False
    _looking.append(obj)
    try:
        return any(map(_changes, parts))
    finally:
        _looking.pop()


_looking: list[Any] = []
"""The objects that `_changes` is looking into: a function may hold itself."""


def _as_partial(fn: FunctionType) -> Any:
    """Return a closure over run-time values as a partial of a function that takes them. CuteError: there is none."""
    name = sets_free(fn.__code__)
    if name is not None:
        raise CuteError(f"{fn.__name__} sets {name}, which is not its own, and is handed on: let it return the value")
    code, defaults = fn.__code__, fn.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    named = {n: d for n, d in zip(names, defaults) if _changes(d)}
    if any(map(_changes, (fn.__kwdefaults__ or {}).values())):
        raise CuteError(f"{fn.__name__} has a keyword-only default of run time: pass it as an argument")
    try:
        known = tuple(None if n in named else d for n, d in zip(names, defaults))
        function = lifted_function(
            code, fn.__globals__, fn.__module__, known or None, fn.__kwdefaults__, seam.is_traced(fn)
        )
    except NotLifted:
        text = f"{fn.__name__} holds values of run time for a function in it: pass them as arguments"
        raise CuteError(text) from None
    return functools.partial(function, *cells(fn), **named)


def has_partial(spec: Spec) -> bool:
    """Say whether a spec holds a partial, or a closure over what is known at run time: their items may be replaced."""
    if spec[0] in ("leaf", "const"):
        return False
    return spec[0] == "partial" or any(map(has_partial, spec[-1]))


def unflatten(spec: Spec, leaves: Any) -> Any:
    """Return the object of a spec; `leaves` is an iterator."""
    kind = spec[0]
    if kind == "leaf":
        return next(leaves)
    if kind == "const":
        return spec[2]
    if kind == "tuple":
        return tuple([s[2] if s[0] == "const" else unflatten(s, leaves) for s in spec[1]])
    if kind == "list":
        return _lists().lend(tuple([unflatten(s, leaves) for s in spec[1]]))
    if kind == "partial":
        (count, *names), (fn, *held) = spec[1], (unflatten(s, leaves) for s in spec[2])
        return functools.partial(fn, *held[:count], **dict(zip(names, held[count:])))
    if kind == "named":
        return spec[1]._make(unflatten(s, leaves) for s in spec[2])
    obj, put = object.__new__(spec[1]), object.__setattr__
    for name, s in zip(fields_of(spec[1]), spec[2]):
        put(obj, name, s[2] if s[0] == "const" else unflatten(s, leaves))
    for name in _of_the_host(spec[1]):
        put(obj, name, None)
    return obj


def leaf_types(spec: Spec) -> list[types.Type]:
    kind = spec[0]
    if kind == "leaf":
        return [spec[1]]
    if kind == "const":
        return []
    return [t for s in spec[-1] for t in leaf_types(s)]


def join(a: Spec, b: Spec) -> Spec | None:
    """Return the least spec that both convert to: where static ints or bools differ, a run-time one. None if there is
    none."""
    if a == b and identity(a) == identity(b):
        return a
    if _is_bool(a) and _is_bool(b):
        return ("leaf", types.boolean)
    ints = [_int_type(s) for s in (a, b)]
    if all(ints):
        known = 1 if a[0] == b[0] == "const" else math.gcd(*(_divisor(s) for s in (a, b)))
        return ("leaf", multiple(max(ints, key=lambda t: t.bitwidth), known))  # type: ignore[union-attr]
    if a[0] in ("leaf", "const") or a[:-1] != b[:-1] or len(a[-1]) != len(b[-1]):
        return None
    if a[0] == "node":
        unset = getattr(a[1], "__cute_unset__", ())
        parts = [_join_field(n in unset, x, y) for n, x, y in zip(fields_of(a[1]), a[-1], b[-1])]
    else:
        parts = [join(x, y) for x, y in zip(a[-1], b[-1])]
    return None if None in parts else (*a[:-1], tuple(parts))


def _join_field(may_be_unset: bool, a: Spec, b: Spec) -> Spec | None:
    """Join what a field has. One that may be unset, as None, is what it is where it is set."""
    if may_be_unset and _is_none(a) != _is_none(b):
        return b if _is_none(a) else a
    return join(a, b)


def _is_none(spec: Spec) -> bool:
    return spec[0] == "const" and spec[2] is None


UNSET = object()
"""Stands for a leaf of a field that is not set."""


def _is_bool(spec: Spec) -> bool:
    return spec[1] is bool if spec[0] == "const" else spec == ("leaf", types.boolean)


def _int_type(spec: Spec) -> types.Type | None:
    if spec[0] == "const" and spec[1] is int:
        return types.int32 if -(2**31) <= spec[2] < 2**31 else types.int64
    if spec[0] == "leaf" and isinstance(spec[1], types.Integer):
        return types.unliteral(spec[1])
    return None


def _divisor(spec: Spec) -> int:
    return abs(spec[2]) if spec[0] == "const" else getattr(spec[1], "divisor", 1)


def align(obj: Any, spec: Spec, leaves: list[Any]) -> None:
    """Append what `obj` has in the places of the leaves of `spec`, which it converts to."""
    if obj is None and spec[0] != "const":
        leaves.extend(UNSET for _ in leaf_types(spec))
    elif spec[0] == "leaf":
        leaves.append(obj)
    elif spec[0] in ("tuple", "list", "named"):
        for x, s in zip(obj, spec[-1]):
            align(x, s, leaves)
    elif spec[0] == "partial":
        obj = _as_partial(obj) if type(obj) is FunctionType else obj
        for x, s in zip((obj.func, *obj.args, *obj.keywords.values()), spec[2]):
            align(x, s, leaves)
    elif spec[0] == "node":
        for name, s in zip(fields_of(spec[1]), spec[2]):
            align(getattr(obj, name), s, leaves)


def plain(spec: Spec) -> Spec:
    """Return the spec without what is known to divide its leaves: for what changes at run time."""
    if spec[0] == "leaf":
        return ("leaf", types.unliteral(spec[1])) if isinstance(spec[1], Multiple) else spec
    return spec if spec[0] == "const" else (*spec[:-1], tuple(map(plain, spec[-1])))
