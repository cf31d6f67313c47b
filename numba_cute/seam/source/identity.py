# SPDX-License-Identifier: Apache-2.0
"""Functions of the user's that ask what Python answers by itself, whoever stands for the object: `x is y`, `type(x)`,
`isinstance(x, np.int32)`. A trace of such a function would be told of the stand-in, so Numba compiles it."""

from __future__ import annotations

import builtins
import functools
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..ground.bytecode import Operation, operations
from ..marks.plain import is_plain_function, is_users


def asks_for_identity(fn: Any) -> bool:
    """Say whether a plain function, or one that it names, asks for the identity, by `type` for the class, or whether it
    is one of NumPy's numbers, of what may be an object of a kernel."""
    return _asks(fn, set())


def _asks(fn: Any, seen: set[Any]) -> bool:
    if fn in seen:
        return False
    seen.add(fn)
    if _compares(fn.__code__) or (_names_type(fn.__code__) and _is_builtin(fn, "type")):
        return True
    named = _named(fn)
    if "isinstance" in _all_names(fn.__code__) and any(map(_is_of_numpy, named)):
        return True
    return any(_asks(f, seen) for f in named if is_plain_function(f) and is_users(f))


def _is_builtin(fn: FunctionType, name: str) -> bool:
    return fn.__globals__.get(name, getattr(builtins, name)) is getattr(builtins, name)


def _is_of_numpy(x: Any) -> bool:
    """Say whether a class is of NumPy's numbers."""
    return isinstance(x, type) and any((c.__module__, c.__name__) == ("numpy", "generic") for c in x.__mro__)


def _named(fn: FunctionType) -> list[Any]:
    """Return what a function names: globals, what its closure holds, members of modules."""
    names = _all_names(fn.__code__)
    found = [fn.__globals__[n] for n in names if n in fn.__globals__]
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not set yet
            continue
    return found + [vars(m)[n] for m in found if isinstance(m, ModuleType) for n in names if n in vars(m)]


@functools.cache
def _all_names(code: CodeType) -> frozenset[str]:
    return frozenset(code.co_names).union(*(_all_names(c) for c in code.co_consts if isinstance(c, CodeType)))


@functools.cache
def _names_type(code: CodeType) -> bool:
    own = any(i.name == "LOAD_GLOBAL" and i.value == "type" for i in operations(code))
    return own or any(_names_type(c) for c in code.co_consts if isinstance(c, CodeType))


@functools.cache
def _compares(code: CodeType) -> bool:
    """Say whether code has an `is` whose right-hand side is not None, a global, or a member of one."""
    done = operations(code)
    if any(i.name == "IS_OP" and not _is_static(done, at - 1) for at, i in enumerate(done)):
        return True
    return any(_compares(c) for c in code.co_consts if isinstance(c, CodeType))


def _is_static(done: tuple[Operation, ...], at: int) -> bool:
    while done[at].name == "LOAD_ATTR" and at > 0:
        at -= 1
    return done[at].name == "LOAD_GLOBAL" or (done[at].name == "LOAD_CONST" and done[at].value is None)
