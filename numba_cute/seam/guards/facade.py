# SPDX-License-Identifier: Apache-2.0
"""Show names in a facade module: it lists none; each stands once, in the `__all__` of the module that defines it.

What it shows takes `loc=` and `ip=` as the CuTe DSL's functions do, and ignores them: there they say where in the
source and in the intermediate code an operation stands, which Numba knows by itself.

A call of what it shows ends in its result or in a CuteError: what else Python raises in the library is put into words
(`_error_for_user`), at the call that the user made: those of the argument that is wrong, or, where none is, those of an
InternalError. What the user's own functions raise passes as it is.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
from collections.abc import Iterable
from types import FrameType, FunctionType, ModuleType
from typing import Any

from ..ground import watching
from ..ground.error import CuteError
from ..ground.folding import FOLDED
from ..ground.names import of_module, refuse_arguments
from ..ground.packages import KERNELS, is_library, is_of_hook, package_of
from ..ground.places import is_users_error, users_call
from ..marks.decorators import is_frozen_class, is_struct_class, is_traced
from . import refusals

_IGNORED = ("loc", "ip")
_ROOM = "numba_cute."
_ALONE = ("numba_cute.seam", "numba_cute.sim")
"""Rooms whose functions are known by themselves, and judge what they are given."""
_EQUALITIES = ("__eq__", "__ne__")
_ENGINES = ("numba_cute.sim", "numba_cute.compiler")
"""The engines that run kernels: what they call of the library, a kernel calls."""
_PYTHONS = ("builtins", "numpy", "dataclasses")
"""The packages of exceptions that say that a call was wrong; others, as Numba's, have words of their own."""
_GUARDED = frozenset({
    "__call__", "__getitem__", "__setitem__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__truediv__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__and__", "__rand__",
    "__or__", "__ror__", "__xor__", "__rxor__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__neg__",
    "__invert__", "__lt__", "__le__", "__gt__", "__ge__", "__iter__", "__contains__", "__pow__", "__rpow__",
    "__matmul__", "__abs__", "__repr__",
})  # fmt: skip


def publish(namespace: dict[str, Any], *modules: ModuleType, on_demand: Iterable[str] = ()) -> None:
    """Set `__all__` of the facade whose globals are `namespace`: all its public names, of its modules `modules`, and
    what its `__getattr__` loads `on_demand`.

    Type checkers see no assignment to `__all__`, and so take the facade's star imports for what it exports."""
    shown = {n for n, v in namespace.items() if not n.startswith("_") and not isinstance(v, ModuleType)}
    namespace["__all__"] = sorted(shown | {m.__name__.rpartition(".")[2] for m in modules} | set(on_demand))
    for space, names in ((namespace, shown), *((vars(m), getattr(m, "__all__", ())) for m in modules)):
        of_module(space)
        for name in names:
            space[name] = _published(space[name])


def demanded(package: str, name: str, module: str) -> Any:
    """Import what a facade shows on demand: a `name` of a `module` of the `package`, or the module of that name where
    `module` is empty."""
    found = importlib.import_module(f".{module or name}", package)
    return getattr(found, name) if module else found


def takes_locations(fn: Any) -> bool:
    """Return whether a function or method takes `loc` and `ip` and ignores them."""
    return getattr(fn, "__cute_takes_locations__", False) is True


def plain(fn: Any) -> Any:
    """Return the function as its module defines it, of what a facade shows."""
    return fn.__wrapped__ if takes_locations(fn) else fn


def _published(value: Any) -> Any:
    """Give what a facade shows for a value of its modules."""
    if isinstance(value, FunctionType):
        if not value.__module__.startswith(_ROOM) or value.__module__.startswith(_ALONE):
            return value
        return _located(value) if is_traced(value) else _guarded(value)
    if isinstance(value, enum.EnumMeta) and value.__module__.startswith(_ROOM):
        _guard_enum(value)
    elif isinstance(value, type) and value.__module__.startswith(_ROOM) and not issubclass(value, BaseException):
        for cls in value.__mro__:
            if not cls.__module__.startswith(_ROOM) or cls.__module__.startswith("numba_cute.seam"):
                continue
            if is_struct_class(cls):
                _guard_struct(cls)
            elif is_frozen_class(value):
                _locate_methods(cls)
            else:
                _guard_class(cls)
    return value


@functools.cache
def _locate_methods(cls: type) -> None:
    if "__init__" in vars(cls) and not getattr(cls, "__cute_checks_arguments__", False):
        own = hasattr(cls, "__post_init__")
        made = vars(cls)["__init__"]
        setattr(cls, "__init__", _guarded(made) if own else _checked(made))  # noqa: B010 - to mypy methods are fixed
    for name, member in list(vars(cls).items()):
        if name in _GUARDED and isinstance(member, FunctionType):
            setattr(cls, name, _guarded(member) if member.__code__.co_argcount == 2 else _located(member))
        elif name in _EQUALITIES and isinstance(member, FunctionType):
            if member.__code__.co_filename != "<string>":  # not one that a dataclass is given
                setattr(cls, name, _guarded(member))
        elif name.startswith("_"):
            continue
        elif isinstance(member, FunctionType):
            setattr(cls, name, _located(member))
        elif isinstance(member, (staticmethod, classmethod)) and isinstance(member.__func__, FunctionType):
            setattr(cls, name, type(member)(_located(member.__func__)))


def _guard_class(cls: type) -> None:
    """Guard the methods of a class of the host; the calls of an element type are judged where it converts."""
    for name, member in list(vars(cls).items()):
        if not isinstance(member, FunctionType) or name == "__call__" and hasattr(cls, "__cute_element__"):
            continue
        if name == "__init__" and dataclasses.is_dataclass(cls) and not hasattr(cls, "__post_init__"):
            setattr(cls, name, _checked(member))
        elif name in _GUARDED or name in ("__init__", "__new__") or not name.startswith("_"):
            setattr(cls, name, _guarded(member))


def _guard_enum(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if isinstance(member, staticmethod) and isinstance(member.__func__, FunctionType):
            type.__setattr__(cls, name, staticmethod(_guarded(member.__func__)))


def _guard_struct(cls: type) -> None:
    """Guard the traced methods of a struct: its other methods Numba compiles."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, property):
            if is_traced(member.fget):
                setattr(cls, name, property(_guarded(member.fget), member.fset, member.fdel, member.__doc__))
        elif is_traced(member) and isinstance(member, FunctionType):
            setattr(cls, name, _guarded(member) if name.startswith("_") else _located(member))
        elif isinstance(member, (staticmethod, classmethod)) and is_traced(member.__func__):
            setattr(cls, name, type(member)(_located(member.__func__)))


def caller(frame: FrameType) -> FrameType:
    """Give the frame itself, or where it is a facade's own the one that called it."""
    while _is_guard(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_guard(frame: FrameType) -> bool:
    return frame.f_globals is globals()


@functools.cache
def _located(fn: Any) -> Any:
    """The guarded function, taking `loc` and `ip` besides; itself where it takes them already, or any name."""
    code = fn.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if takes_locations(fn) or any(n in parameters for n in _IGNORED):
        return fn

    def call(*args: Any, loc: Any = None, ip: Any = None, **named: Any) -> Any:
        try:
            return fn(*args, **named) if watching.now is None else watching.watched(fn, args, named)
        except Exception as e:
            with FOLDED:
                raise _error_for_user(fn, args, named, e)  # noqa: B904 - it has its cause, or is `e`

    made = _wrapper(call, fn)
    made.__cute_takes_locations__ = True
    return made


@functools.cache
def _guarded(fn: Any) -> Any:
    """The function, whose exceptions are put into words."""
    if hasattr(fn, "__cute_guard__") or takes_locations(fn):
        return fn

    def operator(self: Any, other: Any, /, *, loc: Any = None, ip: Any = None) -> Any:  # costs half of what `call` does
        try:
            return fn(self, other) if watching.now is None else watching.watched(fn, (self, other), {})
        except Exception as e:
            with FOLDED:
                raise _error_for_user(fn, (self, other), {}, e)  # noqa: B904

    def call(*args: Any, **named: Any) -> Any:
        try:
            return fn(*args, **named) if watching.now is None else watching.watched(fn, args, named)
        except Exception as e:
            with FOLDED:
                raise _error_for_user(fn, args, named, e)  # noqa: B904

    is_operator = fn.__name__ in _GUARDED and fn.__name__ != "__call__" and fn.__code__.co_argcount == 2
    return _wrapper(operator if is_operator else call, fn)


def entry(fn: Any) -> Any:
    """Return a function of `KERNELS` that takes tensors of another library, whose exceptions of Python are put into
    words: its file goes by a user's rules, and its callers are users. Anything else is itself."""
    if not isinstance(fn, FunctionType):
        return fn

    def call(*args: Any, **named: Any) -> Any:
        try:
            return fn(*args, **named)
        except Exception as e:
            with FOLDED:
                raise _error_for_user(fn, args, named, e, own=(KERNELS, "torch"))  # noqa: B904

    return _wrapper(call, fn)


def _error_for_user(
    fn: Any, args: tuple[Any, ...], named: dict[str, Any], e: Exception, own: tuple[str, ...] = ()
) -> Exception:
    """Return what a guarded call that ended in an exception raises: the CuteError that says what is wrong; the
    exception itself where it says so, where the library made the call, or where something of the user's raised it.
    own: packages that are not the user's either."""
    if isinstance(e, CuteError):
        return e
    refuse_arguments(fn, args, named, e)
    trace = e.__traceback__
    assert trace is not None and trace.tb_frame.f_back is not None
    caller = trace.tb_frame.f_back
    if package_of(type(e).__module__) not in _PYTHONS or is_users_error(e, own) or _is_inner(caller):
        return e
    error = refusals.refusal(fn, args, named, e, users_call(caller))
    if error is not e:
        error.__cause__ = e
    return error


def _is_inner(frame: FrameType | None) -> bool:
    """Return whether a function that a facade shows called, from `frame` outwards to the user's code or an engine."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not is_library(name) or name.startswith(_ENGINES):
            return False
        if _is_guard(frame):
            return True
        frame = frame.f_back
    return False


@functools.cache
def _checked(init: Any) -> Any:
    """A constructor, which refuses fields of other kinds than the class says."""
    if hasattr(init, "__cute_guard__"):
        return init

    def call(self: Any, /, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        refusals.check_fields(self)

    return _wrapper(call, init)


def called_by_hook(frame: Any) -> bool:
    """Say whether what runs in a frame, behind this module's own, is of a file that imports `cutlass` by the hook."""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame is not None and is_of_hook(frame.f_globals, frame.f_code.co_filename)


def _wrapper(call: Any, fn: Any) -> Any:
    call.__code__ = call.__code__.replace(co_name=fn.__name__)  # reports name the function that the user called
    call.__cute_guard__ = True
    return functools.update_wrapper(call, fn)
