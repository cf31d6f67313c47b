# SPDX-License-Identifier: Apache-2.0
"""The decorators of library code, and the classes that they mark."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from numba_cute.seam.ground.backend import current_or
from numba_cute.seam.ground.error import CuteError
from numba_cute.seam.ground.leaf import Leaf
from numba_cute.seam.ground.names import (
    NamedEnum,
    UnknownName,
    WrongArguments,
    member_of,
    missing,
    no_field,
    other_arguments,
    says_names,
)
from numba_cute.seam.ground.naming import shown
from numba_cute.seam.ground.places import note_operation
from numba_cute.seam.ground.records import dataclass, dataclass_transform

T = TypeVar("T")

HOW_STATIC = (
    "make it static, as a literal, a global or closure variable of the kernel, an extent of a static layout, or an "
    "argument of a parameter annotated cute.Constexpr"
)
"""Advice for a value that must be static and is not."""

_MARKED: list[type] = []
_told: list[Callable[[type], None]] = []
_judges: list[Callable[[Any], None]] = []


def judge_made(judge: Callable[[Any], None]) -> None:
    """Call `judge` with each object of a struct of this library's that a constructor has made."""
    _judges.append(judge)


def tell_marked(tell: Callable[[type], None]) -> None:
    """Call `tell` with each `frozen` and `struct` class, those that there are and those to come."""
    _told.append(tell)
    for cls in _MARKED:
        tell(cls)


def _mark(cls: type) -> None:
    _MARKED.append(cls)
    for tell in _told:
        tell(cls)


def marked_classes() -> list[type]:
    """Return all `frozen` and `struct` classes that there are."""
    return _MARKED


def traced(fn: T) -> T:
    """Mark a function as compile-time Python: kernels call it, and it runs while they are compiled."""
    fn.__cute_traced__ = True  # type: ignore[attr-defined]
    note_operation(fn)
    return fn


def for_result(fn: T) -> T:
    """Mark a function or method that does nothing but return its result: a kernel that drops an object so made is
    wrong."""
    fn.__cute_for_result__ = True  # type: ignore[attr-defined]
    return fn


def is_for_result(fn: Any) -> bool:
    return getattr(fn, "__cute_for_result__", False) is True


def known_as(part: str) -> Callable[[T], T]:
    """Mark a function, or a class and its subclasses, with the `part` of the library that they are known by:
    "cute_nvgpu.warp" of what users find in `nvgpu.warp`, wherever it is written. Errors and `cute.inspect` say it."""

    def mark(obj: T) -> T:
        obj.__cute_part__ = part  # type: ignore[attr-defined]
        return obj

    return mark


def part_of(obj: Any) -> str | None:
    """The part of the library that a function or class is marked to be known by; None if it bears no mark."""
    part = getattr(obj, "__cute_part__", None)
    return part if isinstance(part, str) else None


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    """Make an immutable value class: a frozen dataclass whose fields hold ints, leaves, tuples, and static things.

    A kernel holds such an object with its static part in the type. Methods and properties are traced. Checks
    belong in ``__post_init__``; it does not run again when a kernel takes an object apart and rebuilds it. Unless the
    class says otherwise, kernels cannot ask for an object's truth value.
    """
    cls = says_names(cls)
    if "__dataclass_fields__" not in cls.__dict__:
        cls = dataclass(frozen=True, repr="__repr__" not in cls.__dict__)(cls)
    if not hasattr(cls, "__bool__"):
        cls.__bool__ = _truth  # type: ignore[attr-defined]
    for name, sign in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
        if getattr(cls, name) is getattr(object, name):
            setattr(cls, name, _unordered(sign))
    if not any("__getstate__" in vars(base) for base in cls.__mro__[:-1]):
        setattr(cls, "__getstate__", _fields_alone)  # noqa: B010 - of Python 3.10 objects have none
    cls.__cute_frozen__ = True  # type: ignore[attr-defined]
    _mark(cls)
    return cls


@dataclass_transform(frozen_default=True)
def static(cls: type[T]) -> type[T]:
    """Make a class as `frozen` does, of which this was the name up to version 0.2."""
    warnings.warn("numba_cute.seam.static is called frozen now", DeprecationWarning, stacklevel=2)
    return frozen(cls)


def _fields_alone(self: Any) -> dict[str, Any]:
    """Return what goes with a copy or a pickle: nothing that is remembered of this object, in this process."""
    return {name: value for name, value in vars(self).items() if not name.startswith(("_cute_", "__cute_"))}


@traced
def _truth(self: Any) -> bool:
    """Return whether an object of a `frozen` class is true: on the host as in Python; kernels must say what they
    mean."""
    if current_or(None) is None:
        return len(self) > 0 if hasattr(self, "__len__") else True
    raise CuteError(
        f"{type(self).__name__} {self!r} has no truth value: write what you mean, such as "
        "`x is None`, `x == y` or one of its attributes"
    )


def _unordered(sign: str) -> Callable[..., Any]:
    @traced
    def compare(self: Any, other: Any) -> Any:
        raise CuteError(
            f"{self!r} {sign} {other!r}: a {type(self).__name__} has no order; compare a size or an attribute"
        )

    return compare


@frozen
class ArrayView:
    """A Numba array that jitted code passed to traced code: element type, data address, shape and strides in elements,
    a flag if it is read-only, another if it lies in shared memory (to which its address is then; it is generic
    elsewhere), and the alignment that was asked for. Core functions that take tensors take these."""

    dtype: Any
    address: Any
    shape: tuple[Any, ...]
    stride: tuple[Any, ...]
    readonly: bool = False
    shared: bool = False
    alignment: int = 0


def is_traced(fn: Any) -> bool:
    return getattr(fn, "__cute_traced__", False) is True


def is_frozen_class(cls: Any) -> bool:
    """Return whether `frozen` made a class, or it is one of the user's below such a one that is as immutable: a frozen
    dataclass, or one that adds methods alone. That becomes one here."""
    if not isinstance(cls, type) or not hasattr(cls, "__cute_frozen__"):
        return False
    own = cls.__dict__
    if "__cute_frozen__" not in own and _is_as_immutable(own):
        frozen(cls)
    return "__cute_frozen__" in own


_MUTABLE = ("__init__", "__new__", "__setattr__", "__slots__", "__annotations__")


def _is_as_immutable(own: Mapping[str, Any]) -> bool:
    """Say whether a class with these members is as immutable as its base."""
    params = own.get("__dataclass_params__")
    return params.frozen if params is not None else not any(own.get(name) for name in _MUTABLE)


def is_struct_class(cls: Any) -> bool:
    """Return whether `struct` made a class, or it is one of the user's below such a one that adds methods alone. That
    becomes one here."""
    if not isinstance(cls, type) or not hasattr(cls, "__cute_struct__"):
        return False
    own = cls.__dict__
    if "__cute_struct__" not in own and "__dataclass_params__" not in own and _is_as_immutable(own):
        struct(cls)
    return "__cute_struct__" in own


_VERDICT = "_cute_all_static"


@traced
def is_static(x: Any) -> bool:
    """Return whether nothing in `x` (a number, a tuple, a layout, any immutable object) is known only at run time.

    >>> cute.is_static(4), cute.is_static(cute.Int32(4))
    (True, False)
    """
    if type(x) is int:
        return True
    if isinstance(x, Leaf):
        return False
    if isinstance(x, (tuple, list)):
        try:
            return all([type(y) is int or is_static(y) for y in x])
        except RecursionError:
            raise CuteError("is_static: the tuple is nested too deep, or a list holds itself") from None
    held: dict[str, Any] = getattr(x, "__dict__", {})
    if _VERDICT in held:  # what is immutable is looked through once
        return bool(held[_VERDICT])
    if not is_frozen_class(type(x)):
        return not is_struct_class(type(x))
    verdict = held[_VERDICT] = is_static([held.get(name) for name in field_names(type(x))])  # type: ignore[arg-type]
    return verdict


@functools.cache
def field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def annotations_of(cls: Any, **scope: Any) -> dict[str, Any]:
    """Return a class's annotations as objects. scope: the names that those in quotes may use, as `eval` takes them."""
    try:
        return inspect.get_annotations(cls, eval_str=True, **scope)
    except Exception as e:  # the user's Python
        raise CuteError(f"struct: an annotation of {cls.__name__} cannot be read: {type(e).__name__}: {e}") from e


def check_own_class(what: str, cls: Any) -> None:
    """Refuse what is not a class that the user wrote, for the decorator `what`."""
    if not isinstance(cls, type) or not cls.__flags__ & 1 << 9:  # of Python's own, which nobody may change
        raise CuteError(f"{what}: {shown(cls)} is not a class of yours: write one with annotated fields")


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """Make `cls` a mutable class that kernels hold by reference: annotated fields, and methods that Numba jits.

    A field annotated with a `DType` is a run-time value of that type. Any other field keeps what the constructor was
    given: static things stay static, objects are held by reference. Class attributes that are not fields are constants.
    """
    check_own_class("struct", cls)
    if not is_made(vars(cls).get("__setattr__", missing)):
        raise CuteError(
            f"struct: {cls.__name__} has its own __setattr__, which a kernel does not call: give it a method that sets"
        )
    cls = says_names(cls)
    types = {}
    for base in reversed(cls.__mro__):
        types.update(annotations_of(base))
    fields = list(types)
    defaults = {f: getattr(cls, f) for f in fields if hasattr(cls, f)}
    required = [f for f in fields if f not in defaults]
    order = required + [f for f in fields if f in defaults]
    cls.__cute_fields__ = tuple(order)  # type: ignore[attr-defined]
    cls.__cute_defaults__ = defaults  # type: ignore[attr-defined]
    cls.__cute_types__ = types  # type: ignore[attr-defined]
    if "__init__" not in cls.__dict__:
        cls.__init__ = _struct_init  # type: ignore[method-assign]
        cls.__signature__ = _fields_signature(order, defaults)  # type: ignore[attr-defined]
    else:
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    cls.__setattr__ = _struct_setattr  # type: ignore[method-assign]
    cls.__new__ = _struct_new  # type: ignore[method-assign]
    cls.__cute_struct__ = True  # type: ignore[attr-defined]
    _mark(cls)
    return cls


@traced
def const_expr(value: T) -> T:
    """Return `value`, which must be known when the kernel is compiled: `if const_expr(FLAG):` compiles one branch
    alone.

    Of a tuple, a layout or any other object, all that it holds must be known.

    >>> cute.const_expr(4 > 3)
    True
    """
    if not is_static(value):
        raise CuteError(f"const_expr({value!r}): the value is known only at run time: {HOW_STATIC}")
    return value


@traced
def range_constexpr(*args: int, unroll: Any = None, unroll_full: Any = None) -> range:
    """Unroll `range(*args)` while the kernel is compiled: each copy of the body sees its index as a literal, so that it
    can index registers and tuples. args: ints known in the source: literals, globals, closure variables, and arithmetic
    on them. unroll, unroll_full: taken, and change nothing: all rounds are unrolled.

    >>> list(cute.range_constexpr(3))
    [0, 1, 2]
    """
    try:
        return range(*args)
    except ValueError:
        raise CuteError(no_step("range_constexpr")) from None
    except TypeError:
        raise CuteError(f"range_constexpr({', '.join(map(shown, args))}): give one to three static ints") from None


def no_step(name: str) -> str:
    """Write the message for a range whose step is 0. name: of the function that is to make it, as the user wrote it."""
    return f"{name}: its step is 0; a loop needs one that is not"


@traced
def after_set(x: Any, made: Any) -> Any:
    """Return what `x` is after `x.set(…)` in a statement of its own, which gave `made`: that, where `x` is immutable.

    So what the CuTe DSL writes for a change in place, `tiled_mma.set(Field.ACCUMULATE, False)`, sets the variable."""
    return made if is_frozen_class(type(x)) else x


class _Members(NamedEnum):
    def __call__(cls, value: Any, *args: Any, **named: Any) -> Any:
        """Find a member by its value, whatever that is: an array has no single answer to `==`."""
        try:
            return super().__call__(value, *args, **named)
        except (ValueError, RecursionError, TypeError):
            if args or named:
                raise TypeError(f"{cls.__name__} takes one value, a member's") from None
            return cls._missing_(value)


class StaticEnum(enum.Enum, metaclass=_Members):
    """An enumeration whose members are compile-time values in kernels (Numba would keep only an integer)."""

    __getattr__ = missing

    @classmethod
    def _missing_(cls, value: object) -> Any:
        names = ", ".join(m.name for m in cls)
        raise CuteError(
            f"{cls.__name__}({shown(value)}): there is no such member; write {cls.__name__}.<name>: {names}"
        )


def _fields_signature(fields: Sequence[str], defaults: dict[str, Any]) -> inspect.Signature:
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(f, kind, default=defaults.get(f, empty)) for f in fields])


@functools.lru_cache(maxsize=1024)
def _binding(fields: tuple[str, ...], optional: frozenset[str]) -> inspect.Signature:
    """Return what binds a constructor's arguments: a signature without the defaults' values."""
    return _fields_signature(fields, dict.fromkeys(optional))


def _struct_new(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an object without fields. The simulator has classes of its own, whose methods compute as a kernel does; a
    compiler is told where traced code makes it: its fields are values of that place."""
    backend = current_or(None)
    own = getattr(backend, "struct_class", None)
    made = object.__new__(cls if own is None else own(cls))
    makes = getattr(backend, "makes", None)
    if makes is not None:
        made.__dict__["_cute_region"] = makes(made)
    return made


def _struct_init(self: Any, *args: Any, **kwargs: Any) -> None:
    values = bind_fields(type(self), args, kwargs)
    for name, value in values.items():
        setattr(self, name, value)
    if type(self).__module__.startswith("numba_cute."):
        for judge in _judges:
            judge(self)


def _struct_setattr(self: Any, name: str, value: Any) -> None:
    if name not in type(self).__cute_fields__ and member_of(type(self), name) is None:
        raise UnknownName(no_field(type(self).__name__, name, type(self).__cute_fields__))
    backend = current_or(None)
    made_in = self.__dict__.get("_cute_region")
    if made_in is not None and not made_in.here():
        raise CuteError(
            f"{type(self).__name__}.{name} is set inside of a `when` or `loop` of traced code, but its object was "
            "begun outside and not whole yet: set all of its fields before"
        )
    hold = getattr(backend, "hold", None)
    object.__setattr__(self, name, value if hold is None else hold(type(self).__cute_types__.get(name), value))


def is_made(method: Any) -> bool:
    """Return whether `struct` made this method of a class."""
    return method in (_struct_new, _struct_init, _struct_setattr, missing)


def bind_fields(cls: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a struct's field values from a constructor call, in field order."""
    fields, defaults = cls.__cute_fields__, cls.__cute_defaults__
    if len(args) == len(fields) and not kwargs:
        return dict(zip(fields, args))
    try:
        values = _binding(tuple(fields), frozenset(defaults)).bind(*args, **kwargs).arguments
    except TypeError as e:
        raise WrongArguments(other_arguments(cls, str(e), kwargs)) from None
    return {name: values[name] if name in values else defaults[name] for name in fields}
