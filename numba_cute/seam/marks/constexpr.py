# SPDX-License-Identifier: Apache-2.0
"""Arguments of a kernel that are known when it is compiled, and who launches kernels that a host function calls."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, get_args, get_origin

from ..ground.error import CuteError
from ..ground.naming import shown
from ..ground.packages import is_of_hook
from .host_objects import as_argument, python_of, snapshot
from .of_host import refuse_of_host

if TYPE_CHECKING:
    Known = Any  # a parameter that is marked Constexpr has what its value has, and is computed with
else:
    Known = object


class Constexpr(Known):  # type: ignore[misc]
    """A parameter or argument of a kernel that is known when the kernel is compiled: each value compiles anew.

    `n: cute.Constexpr` or `n: cute.Constexpr[int]` marks a kernel's parameter: whatever a launch gives for it is
    static. `cute.Constexpr(3)` is such an argument of a parameter without a mark. value: an int, a bool, a float, which
    a kernel holds as it does a float that is a global, or what is static anyway (a layout, an atom, an element type).
    CuteError: anything else; close over it, or make it a global.

    >>> def kernel(n: cute.Constexpr):
    ...     print(cute.make_layout((n, 4)))
    >>> cute.simulate(kernel)[1, 1](3)
    (3,4):(1,3)
    """

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, Constexpr) else value
        if isinstance(self.value, str) or hasattr(self.value, "__array_interface__"):
            raise CuteError(
                f"Constexpr({shown(self.value)}): an argument that is static is an int, a bool, a float or a CuTe "
                "object; close over it, or make it a global"
            )

    def __class_getitem__(cls, kind: Any) -> Any:
        return cls

    def __repr__(self) -> str:
        return f"Constexpr({shown(self.value)})"


def static_arguments(kernel: Any, args: Sequence[Any], named: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
    """Return all of a kernel's arguments, in order, of those that a launch gives: a method's object first, then `args`,
    those in `named`, and defaults. Plain objects of the user's, and their methods, are as kernels hold them, those of
    parameters that are marked Constexpr are Constexpr objects, and numbers have the element types that parameters of a
    `cute.kernel` are annotated with."""
    fn = python_of(kernel) or kernel
    if getattr(kernel, "__self__", None) is not None:
        args = (snapshot(kernel.__self__), *args)
    args = tuple(map(as_argument, in_order(fn, args, named or {})))
    refuse_of_host(args)
    if getattr(kernel, "__cute_kernel__", False):
        args = as_annotated(fn, args)
        shapes = _of_shapes(fn)
        args = tuple(
            _with_static_ints(a) if i in shapes and type(a) in (tuple, list) else a for i, a in enumerate(args)
        )
    marked = _marked(fn)
    if hasattr(fn, "__globals__") and is_of_hook(fn.__globals__, fn.__code__.co_filename):
        args = tuple(a if i in marked else _of_dsl(a) for i, a in enumerate(args))
    return tuple(Constexpr(a) if i in marked else _without_lists(a) for i, a in enumerate(args))


NUMBERS: dict[type, Callable[[Any], Any]] = {}
"""By the class of Python's numbers, what makes one the CuTe DSL's, as `promotion` tells it."""


def _of_dsl(value: Any) -> Any:
    """Return an argument of a kernel that is written for the CuTe DSL: Python's numbers are its own there."""
    if type(value) in _SEQUENCES:
        return type(value)(map(_of_dsl, value))
    make = NUMBERS.get(type(value))
    return value if make is None else make(value)


_SEQUENCES = (tuple, list)


def _with_static_ints(value: Any) -> Any:
    """Return a tuple whose ints, to any depth, are static arguments."""
    if type(value) in _SEQUENCES:
        return tuple(map(_with_static_ints, value))
    return Constexpr(value) if type(value) is int else value


def _of_shapes(fn: Any) -> frozenset[int]:
    """The positions of a function's parameters that are annotated as a shape, a coordinate or a tile: a tuple of these
    is static, as far as it holds ints."""
    found: frozenset[int] | None = getattr(fn, "_cute_shapes", None)
    if found is None:
        notes, code = _notes(fn), getattr(fn, "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        kinds = {n for n, t in notes.items() if any(get_origin(p) is tuple for p in get_args(t))}
        found = frozenset(i for i, n in enumerate(names) if n in kinds)
        if hasattr(fn, "__dict__"):
            fn._cute_shapes = found
    return found


def _notes(fn: Any) -> dict[str, Any]:
    """A function's annotations, as far as their names are known."""
    try:
        return inspect.get_annotations(fn, eval_str=True)
    except Exception:  # names that only type checkers know
        return getattr(fn, "__annotations__", None) or {}


def _without_lists(value: Any) -> Any:
    """Return an argument with tuples for the lists in it: to a kernel they are the same."""
    if type(value) not in (list, tuple) or not any(type(x) is list for x in (value, *value)):
        return value
    return tuple(map(_without_lists, value))


def as_annotated(fn: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return a call's values in the order of a function's parameters, numbers of Python's as the element types that the
    parameters are annotated with: 0.5 for a `cute.Float32` is one."""
    types = _annotated(fn)
    if not types:
        return tuple(args)
    return tuple(types[i](a) if i in types and type(a) in (bool, int, float) else a for i, a in enumerate(args))


def call_as_annotated(fn: Any, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call's arguments, by their place and by name, as `as_annotated`: those that are named, and defaults,
    too."""
    whole, types = dict(named), _annotated(fn)
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    defaults = dict(zip(reversed(names), reversed(fn.__defaults__ or ())))
    for i in types:
        value = whole.get(names[i], defaults.get(names[i]))
        if i >= len(args) and type(value) in (bool, int, float):
            whole[names[i]] = types[i](value)
    return as_annotated(fn, args), whole


def _annotated(fn: Any) -> dict[int, Any]:
    """The element types that a function's parameters are annotated with, by position."""
    found: dict[int, Any] | None = getattr(fn, "_cute_annotated", None)
    if found is None:
        notes = _notes(fn)
        code = getattr(fn, "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        elements = {n: t for n, t in notes.items() if getattr(t, "__cute_element__", False) and not isinstance(t, type)}
        found = {i: elements[n] for i, n in enumerate(names) if n in elements}
        if hasattr(fn, "__dict__"):
            fn._cute_annotated = found
    return found


def _left_out(fn: Any, names: Sequence[str]) -> str:
    """Return the words for parameters that a launch gives nothing."""
    own = fn.__code__.co_varnames
    static = " (a Constexpr takes its value at each launch)" if any(own.index(n) in _marked(fn) for n in names) else ""
    return f": there is no value for {', '.join(names)}{static}" if names else ""


def in_order(fn: Any, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a call's values in the order of a function's parameters. CuteError: none of them has such a name, or a
    parameter gets two values, or none."""
    code = getattr(fn, "__code__", None)
    if code is None or (not named and len(args) == code.co_argcount):
        return tuple(args)
    names = code.co_varnames[: code.co_argcount]
    given = dict(zip(names, args))
    defaults = dict(zip(reversed(names), reversed(fn.__defaults__ or ())))
    least, most = len(names) - len(defaults), len(names)
    if code.co_flags & inspect.CO_VARARGS and not named and len(args) >= least:
        return tuple(args)
    if not least <= len(args) + len(named) <= most:
        raise CuteError(
            f"kernel {fn.__name__}({', '.join(names)}) takes {len(names)} arguments, but the launch gives "
            f"{len(args) + len(named)}{_left_out(fn, [n for n in names[:least] if n not in given and n not in named])}"
        )
    if set(named) - set(names) or set(named) & set(given):
        raise CuteError(
            f"kernel {fn.__name__}({', '.join(names)}) was called with {len(args)} values and {list(named)}"
        )
    given |= named
    missing = [n for n in names if n not in given and n not in defaults]
    if missing:
        raise CuteError(f"kernel {fn.__name__}({', '.join(names)}): there is no value for {', '.join(missing)}")
    return tuple(given.get(n, defaults.get(n)) for n in names)


class LeftOut:
    """Mark an argument of a host function's compilation that calls of what was compiled leave out."""


def with_static(
    host: Any, first: Sequence[Any], args: Sequence[Any], named: Mapping[str, Any], held: Collection[str] = ()
) -> dict[str, Any]:
    """Return the arguments of a host function's call by name. Those that are static, are left out of calls (`LeftOut`),
    or that a partial function `held`, are as in its `first` call: `args` has none of them."""
    fn, names = _of_host(host)
    marked = {fn.__code__.co_varnames[i] for i in _marked(fn)}
    marked.update(held)
    known = {n: v for n, v in zip(names, first) if (n in marked or isinstance(v, LeftOut)) and n not in named}
    return {**known, **dict(zip((n for n in names if n not in known), args)), **named}


def parameters_of(host: Any) -> tuple[str, ...]:
    """Return the names of a host function's parameters, without its object."""
    return _of_host(host)[1]


def _of_host(host: Any) -> tuple[Any, tuple[str, ...]]:
    bound = getattr(host, "__self__", None) is not None or not getattr(host, "__cute_host__", False)
    fn = python_of(host if getattr(host, "__cute_host__", False) else type(host).__call__)
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return fn, names[1:] if bound else names


def _marked(fn: Any) -> frozenset[int]:
    """The positions of a function's parameters whose annotation is Constexpr, or names it."""
    found = getattr(fn, "_cute_constexpr", None)
    if found is None:
        notes = getattr(fn, "__annotations__", None) or {}
        names = {n for n, note in notes.items() if note is Constexpr or names_constexpr(note)}
        at = [i for i, n in enumerate(inspect.signature(fn).parameters) if n in names] if names else []
        found = frozenset(at)
        if hasattr(fn, "__dict__"):
            with contextlib.suppress(AttributeError):  # it is immutable, and no function
                fn._cute_constexpr = found
    return found


@functools.cache
def constexpr_names(cls: type) -> frozenset[str]:
    """Return the names that a class annotates as Constexpr."""
    notes = [vars(c).get("__annotations__") or {} for c in cls.__mro__]
    return frozenset(n for own in notes for n, note in own.items() if note is Constexpr or names_constexpr(note))


def forget_notes(fn: Any) -> None:
    """Forget what a function's annotations said."""
    for name in ("_cute_constexpr", "_cute_annotated", "_cute_shapes"):
        getattr(fn, "__dict__", {}).pop(name, None)


def names_constexpr(note: Any) -> bool:
    """Return whether a text of an annotation names Constexpr, which a NamedTuple has as a `ForwardRef`."""
    note = getattr(note, "__forward_arg__", note)
    return isinstance(note, str) and note.partition("[")[0].rpartition(".")[2].strip() == "Constexpr"


def is_host(fn: Any) -> bool:
    """Say whether `cute.jit` made a function, a method, or the `__call__` of an object."""
    own = getattr(fn, "__cute_host__", False) or getattr(type(fn).__call__, "__cute_host__", False)
    return bool(own)


Launcher = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
LAUNCHER: ContextVar[Launcher | None] = ContextVar("LAUNCHER", default=None)
"""The function that runs the kernels that a host function launches, given kernel, arguments and launch configuration:
None on a GPU; the simulator sets it while it runs such a function."""
