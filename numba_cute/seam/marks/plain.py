# SPDX-License-Identifier: Apache-2.0
"""Classes and functions of the user's that bear no mark of this library, as kernels use them.

A kernel may construct objects of a plain class (a dataclass, a `SimpleNamespace`, a class with an `__init__`) and call
plain functions and methods. An object is held by reference, as in Python. What a function's own Python gives while
the kernel is compiled is taken, as of a `traced` one; only where that asks for what is known at run time alone, in an
`if` or a `while`, Numba compiles it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import sys
from types import FunctionType, SimpleNamespace
from typing import Any

from ..ground.error import CuteError
from ..ground.leaf import Leaf
from ..ground.packages import is_of_hook, package_of
from .decorators import is_frozen_class, is_struct_class, is_traced

_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class of Python's own would lack it
_FOREIGN = frozenset((
    "numba_cute", "numba", "numba_cuda", "numba_cuda_mlir", "numpy", "llvmlite", "torch", "cupy", "cuda",
    "jax", "ml_dtypes",
))  # fmt: skip
_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__", "__array__")
_DESCRIBES = "__cute_members__"
"""The attribute of a class that describes memory (`cute.struct`)."""
_NOT_PLAIN = (enum.Enum, BaseException, tuple, Leaf, type)


def is_plain_class(cls: Any) -> bool:
    """Say whether a class is the user's, with no mark of this library, and made in Python alone; a namespace too."""
    return isinstance(cls, type) and _is_plain(cls)


@functools.cache
def _is_plain(cls: Any) -> bool:
    if cls is SimpleNamespace:
        return True
    if is_frozen_class(cls) or is_struct_class(cls) or issubclass(cls, _NOT_PLAIN) or _DESCRIBES in vars(cls):
        return False
    if not _is_own(cls.__module__) and not _is_made(cls):
        return False
    if any(is_frozen_class(c) or is_struct_class(c) or not c.__flags__ & _HEAP for c in cls.__mro__[:-1]):
        return False
    return not any(hasattr(cls, name) for name in _ARRAYS)


def _is_made(cls: Any) -> bool:
    """Say whether `make_dataclass` made a class: it says the module of the caller from Python 3.12 on alone."""
    return cls.__module__ == "types" and dataclasses.is_dataclass(cls)


def is_plain(obj: Any) -> bool:
    """Say whether an object is of a plain class."""
    return is_plain_class(type(obj))


def fields_of(obj: Any) -> dict[str, Any]:
    """Return the fields of an object by name, those of its slots too, in an order that is the same for objects made
    alike."""
    found = {n: x for n, x in getattr(obj, "__dict__", {}).items() if not _is_special(n)}
    for cls in type(obj).__mro__:
        slots = vars(cls).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not _is_special(slot)
            name = f"_{cls.__name__.lstrip('_')}{slot}" if private else slot
            if not _is_special(name) and hasattr(obj, name):
                found[name] = getattr(obj, name)
    return dict(sorted(found.items()))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_named_tuple(cls: Any) -> bool:
    """Say whether a class is one of the user's named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields") and _is_own(cls.__module__)


def is_plain_function(fn: Any) -> bool:
    """Say whether a function is the user's, as Python has it: no decorator made anything else of it."""
    return isinstance(fn, FunctionType) and not is_traced(fn) and fn.__module__ != "builtins"


def users_operation(fn: Any) -> Any:
    """Mark a traced function as the user's (`dsl_user_op`): of a file of the CuTe DSL's it may be jitted too."""
    fn.__cute_users_operation__ = True
    return fn


def is_jittable(fn: Any) -> bool:
    """Say whether Numba may compile a function of the user's that Python cannot follow: a plain one, and an operation
    in a file of the CuTe DSL's, whose operators are the same both ways."""
    if not isinstance(fn, FunctionType) or not _is_own(fn.__module__):
        return False
    if getattr(fn, "__cute_users_operation__", False):
        return is_of_hook(fn.__globals__, fn.__code__.co_filename)
    return is_plain_function(fn)


def is_users(obj: Any) -> bool:
    """Say whether an object is a function or a class of the user's, of no other library."""
    return (is_plain_function(obj) and _is_own(obj.__module__)) or is_users_class(obj)


def is_users_class(cls: Any) -> bool:
    """Say whether a class is plain, or one of the user's below an immutable class of this library; what describes
    memory (`cute.struct`) is made here, though it has the user's name."""
    below = is_frozen_class(cls) and _is_own(cls.__module__) and any(map(is_frozen_class, cls.__mro__[1:]))
    below = below and _DESCRIBES not in vars(cls)
    return is_plain_class(cls) or below


def is_users_module(module: Any) -> bool:
    """Say whether a module is the user's: not this library's, not Python's, of none that both build on."""
    return isinstance(module, str) and _is_own(module)


def is_users_frame(frame: Any) -> bool:
    """Say whether a frame runs Python of the user's: neither a library's nor Python's own."""
    return _is_own(frame.f_globals.get("__name__") or "")


@functools.cache
def _is_own(module: str) -> bool:
    root = package_of(module)
    return root not in _FOREIGN and (root not in sys.stdlib_module_names or root == "__main__")


def own_signature(fn: Any) -> inspect.Signature:
    """Return the signature by which Python calls a function or a method; a user's may say that it wraps another, whose
    parameters are not its own."""
    of = fn.func if isinstance(fn, functools.partial) else fn
    return inspect.signature(fn, follow_wrapped=not is_users(getattr(of, "__func__", of)))


def as_numba_takes(fn: Any) -> Any:
    """Return a function as Numba compiles it: its keyword-only parameters may be given by their place, and it wraps no
    other, whose parameters Numba would take for its own."""
    new: Any = with_ordinary_parameters(fn, compiled=True)
    if new is not fn or "__wrapped__" not in fn.__dict__:
        return new
    new = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    functools.update_wrapper(new, fn)
    del new.__wrapped__
    return new


def with_ordinary_parameters(fn: Any, compiled: bool = False) -> Any:
    """Return a function whose keyword-only parameters may be given by their place too: Numba knows no others. The
    function itself, if it has none, or one without a default after one with, or after *args, unless it is `compiled`
    alone."""
    code, defaults = fn.__code__, fn.__defaults__ or ()
    count, only = code.co_argcount, code.co_kwonlyargcount
    named = [n for n in code.co_varnames[count : count + only] if n in (fn.__kwdefaults__ or {})]
    mixed = len(named) < only and (defaults or named) or code.co_flags & inspect.CO_VARARGS
    if not only or (mixed and not compiled):
        return fn
    new: Any = FunctionType(
        code.replace(co_argcount=count + only, co_kwonlyargcount=0), fn.__globals__, fn.__name__,
        None if mixed else (*defaults, *(fn.__kwdefaults__[n] for n in named)), fn.__closure__,
    )  # fmt: skip
    functools.update_wrapper(new, fn)
    del new.__wrapped__  # which would say what the parameters were
    if mixed:  # what follows *args is given by name alone
        new.__signature__ = ordinary_signature(inspect.signature(fn, follow_wrapped=False))
    return new


def ordinary_signature(sig: inspect.Signature) -> inspect.Signature:
    """Return a signature with ordinary parameters for the keyword-only ones, in their order."""
    made = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) if p.kind is p.KEYWORD_ONLY else p for p in sig.parameters.values()]
    return inspect.Signature(made, __validate_parameters__=False)  # one without a default may follow one with


def refuse_own_access(cls: Any) -> None:
    """Raise a CuteError if objects of a plain class find their fields otherwise than Python's do."""
    if (
        inspect.getattr_static(cls, "__getattribute__", None) is not object.__getattribute__
        and cls.__module__ != "types"
    ):
        raise CuteError(
            f"{cls.__name__} has its own __getattribute__, and a kernel finds an object's fields itself: leave it out"
        )


_DATA = (int, float, complex, str, bytes, tuple)
_NOT_ASKED = frozenset((
    "__new__", "__init__", "__init_subclass__", "__class_getitem__", "__set_name__", "__repr__", "__str__", "__hash__",
    "__format__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__", "__getstate__", "__setstate__",
    "__copy__", "__deepcopy__", "__replace__", "__sizeof__", "__dir__", "__array_finalize__", "__call__",
    "__extract_mlir_values__", "__new_from_mlir_values__", "__get_mlir_types__", "__c_pointers__",
))  # fmt: skip
"""Special methods that make, show or copy an object, also in the CuTe DSL's compiler, or that kernels do ask."""
_CONVERSIONS = ("__int__", "__float__", "__index__", "__complex__")


def refuse_own_operators(obj: Any) -> None:
    """Raise a CuteError if a number, text, tuple or array, one in a tuple, or a class of such ones, is of a class of
    the user's that says itself what operators do: kernels compute with what it builds on."""
    cls: Any = obj if isinstance(obj, type) and issubclass(obj, (tuple, enum.Enum)) else type(obj)
    name = _own_operator(cls)
    if name is not None:
        kind = _data_of(cls).__name__
        raise CuteError(
            f"{cls.__name__} is a {kind} with its own {name}, which a kernel would not ask: give the method another "
            "name, or make the class one that holds its values, as a dataclass"
        )
    if isinstance(obj, tuple):
        for item in tuple.__iter__(obj):
            refuse_own_operators(item)


def _data_of(cls: Any) -> Any:
    """Return the class of Python's numbers, texts and tuples, or of NumPy's, that a class builds on; None if none."""
    return next((c for c in cls.__mro__ if c in _DATA or package_of(c.__module__) == "numpy"), None)


@functools.cache
def _own_operator(cls: Any) -> str | None:
    if _data_of(cls) is None:
        return None
    members = ((str(n), m) for c in cls.__mro__ if _is_own(c.__module__) for n, m in vars(c).items())
    for name, member in members:
        special = name.startswith("__") and name.endswith("__") and name not in _NOT_ASKED
        asked = special and (name in _CONVERSIONS or not issubclass(cls, enum.Enum))  # members are asked for the others
        if asked and isinstance(member, FunctionType) and is_users_module(member.__module__):
            return name
    return None


def refuse_own_setting(cls: Any, name: str) -> None:
    """Raise a CuteError if a class says itself what the assignment of an attribute does: kernels set the field."""
    own = inspect.getattr_static(cls, "__setattr__", None)
    if is_plain_class(cls) and own is not object.__setattr__ and cls is not SimpleNamespace:
        frozen = getattr(getattr(cls, "__dataclass_params__", None), "frozen", False)
        why = "is frozen" if frozen else "has its own __setattr__, which a kernel calls in the constructor alone"
        raise CuteError(f"{cls.__name__}.{name} = …: {cls.__name__} {why}: make a new object, or write a method")
