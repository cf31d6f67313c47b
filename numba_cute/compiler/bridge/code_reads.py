# SPDX-License-Identifier: Apache-2.0
"""Find what code reads by name, and which functions and classes of others read their arguments alone."""

from __future__ import annotations

import abc
import datetime
import functools
import pathlib
import sys
from collections.abc import Iterator
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ...isa.form.targets import asked
from ...seam.ground.bytecode import Named, Operation, names_in, operations
from ...seam.ground.packages import package_of
from ...seam.marks.plain import is_users_module

COMPILERS = ("numba_cute", "numba", "numba_cuda", "numba_cuda_mlir")
_PURE = frozenset((
    "builtins", "typing", "enum", "abc", "functools", "operator", "math", "cmath", "numbers", "collections",
    "dataclasses", "reprlib", "itertools", "string", "copy", "types", "fractions", "decimal", "bisect", "heapq",
    "struct", "re", "contextlib", "keyword", "textwrap", "statistics", "_operator", "_functools", "_collections",
    "_abc", "_bisect", "_heapq", "_struct", "numpy", "ml_dtypes", "json", "base64", "binascii", "zlib", "hashlib",
    "_hashlib", "ast",
))  # fmt: skip
"""Packages whose functions read what they are given alone, as those of what compiles, but for those below."""
_NOT_PURE = (
    "numpy.random", "numpy.lib._npyio_impl", "numpy.lib.npyio", "numpy.lib._datasource", "numpy.lib.format",
    "numpy.lib._format_impl", "numpy.ctypeslib", "numpy.testing", "numpy.f2py",
    "numba.cuda.api", "numba.cuda.cudadrv", "numba.cuda.random", "numba_cuda_mlir.numba_cuda.api",
    "numba_cuda_mlir.numba_cuda.cudadrv", "numba_cuda_mlir.numba_cuda.random",
    "numba_cute.config", "numba_cute.utils.hardware_info",
)  # fmt: skip
_SEES_MORE = {
    "builtins": frozenset((
        "__import__", "breakpoint", "compile", "eval", "exec", "hash", "id", "input", "memoryview", "open", "print",
    )),
    "numpy": frozenset((
        "empty", "empty_like", "fromfile", "load", "memmap", "loadtxt", "genfromtxt", "frombuffer", "fromregex",
        "show_config", "geterr", "geterrcall", "getbufsize", "get_printoptions", "get_include",
    )),
    "decimal": frozenset(("getcontext", "localcontext")),
    "typing": frozenset(("get_type_hints",)),
    "abc": frozenset(("get_cache_token",)), "_abc": frozenset(("get_cache_token",)),
}  # fmt: skip
"""Functions that read or do what is not among their arguments: files, unwritten memory, what is of one process."""
_WHERE = frozenset((
    "co_firstlineno", "co_lines", "co_positions", "co_lnotab", "co_linetable", "co_filename", "f_lineno", "tb_lineno",
))  # fmt: skip
"""Attributes that tell where code stands, which does not change what it does."""
_OF_TARGET = ("numba_cute.utils.hardware_info", "HardwareInfo")
_STREAM = ("cuda.bindings.driver", "CUstream")
_OF_PROCESS = frozenset(("getPtr", "from_handle"))
_CLOCK = frozenset(("today", "now", "utcnow", "fromtimestamp", "utcfromtimestamp", "astimezone", "timestamp"))
_ON_DISK = frozenset(dir(pathlib.Path)) - frozenset(dir(pathlib.PurePath))
_PRINTS = ("print", "breakpoint")
OF_TYPING = frozenset(("__origin__", "__args__", "__metadata__", "__bound__", "__constraints__", "__supertype__"))
"""The parts of an object of the module `typing`."""
_SPECIAL = OF_TYPING | frozenset(
    {n for c in (int, float, str, list, dict, set, property) for n in dir(c) if n.startswith("__")}
    | {
        "__call__",
        "__post_init__",
        "__enter__",
        "__exit__",
        "__next__",
        "__get__",
        "__set__",
        "__set_name__",
        "__bool__",
    }
    | {"__dict__", "__name__", "__qualname__", "__module__", "__wrapped__", "__func__", "__self__", "__annotations__"}
    | {"__defaults__", "__kwdefaults__", "__closure__", "__code__", "__dataclass_fields__", "__members__", "__slots__"}
) - {"__subclasshook__", "__init_subclass__", "__reduce__", "__reduce_ex__", "__getstate__", "__dir__"}
"""Attributes with such names lead to what is the object's own, or its class's."""

Found = tuple[str, Any, tuple[str, ...]]


def reads_its_arguments(module: Any, name: str, prints: bool = False) -> bool:
    """Say whether a function of a module of others' reads, and does, no more than its arguments say."""
    seen = name in _SEES_MORE.get(package_of(module), ())
    return is_pure(module) and (not seen or prints and name in _PRINTS)


def is_pure(module: Any) -> bool:
    """Say whether a module is of a package whose functions and classes read what they are given alone."""
    return package_of(module) in (*_PURE, *COMPILERS) and not str(module).startswith(_NOT_PURE)


def sees_more(x: Any) -> frozenset[str]:
    """Return the names of what reads or does more, of an object or class that holds what it was given alone: paths have
    files, days a clock."""
    cls = x if isinstance(x, type) else type(x)
    if issubclass(cls, pathlib.Path):
        return _ON_DISK
    if is_stream(x):
        return _OF_PROCESS
    return _CLOCK if issubclass(cls, (datetime.date, np.datetime64)) else frozenset()


def is_stream(x: Any) -> bool:
    """Say whether an object is a stream as the driver's bindings have it: a number, and an address that is another in
    each process."""
    return (type(x).__module__, type(x).__name__) == _STREAM


def answers_for_target(cls: Any) -> bool:
    """Say whether a class of this library tells facts of the target that is compiled for, and asks no GPU for them."""
    return (cls.__module__, cls.__name__) == _OF_TARGET and asked() is not None


def registered(cls: Any) -> tuple[str, ...]:
    """Return the names of the classes that an abstract class was told to be the base of."""
    known = filter(None, (of() for of in abc._get_dump(cls)[0]))  # type: ignore[attr-defined]
    if not is_users_module(cls.__module__):  # whose own and other packages' are no user's change
        known = filter(lambda c: is_users_module(c.__module__), known)
    return tuple(sorted(f"{c.__module__}.{c.__qualname__}" for c in known))


def decimal_context() -> tuple[Any, ...]:
    """Return what arithmetic of decimals reads besides its numbers."""
    c = sys.modules["decimal"].getcontext()
    traps = sorted(t.__name__ for t, on in c.traps.items() if on)
    return c.prec, c.rounding, c.Emin, c.Emax, c.capitals, c.clamp, *traps


@functools.cache
def is_known_class(cls: Any) -> bool:
    """Say whether the versions of Python and of packages tell all of a class: it stands in a module of theirs."""
    if cls is SimpleNamespace or issubclass(cls, np.generic):
        return True
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls and is_pure(cls.__module__)


@functools.lru_cache(maxsize=4096)
def of(code: CodeType) -> tuple[Found, ...]:
    """Return what code reads by name, without the code of functions in it, as (kind, name, the attributes that follow):
    a global, a cell of the closure, an import in the function (module, level, member or None), an attribute; or what
    it does that cannot be followed (refused)."""
    return tuple(dict.fromkeys(_found(code, names_in(code))))


def _found(code: CodeType, names: tuple[Named, ...]) -> Iterator[Found]:
    imports = iter(()) if all(n.by != "IMPORT_NAME" for n in names) else _all_imports(operations(code))
    for at, (by, name, _) in enumerate(names):
        if by in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield "refused", f"sets the global `{name}`", ()
        elif by == "LOAD_GLOBAL" and name.isidentifier():
            yield "global", name, _attributes_behind(names, at)
        elif by == "LOAD_DEREF":
            yield "cell", name, _attributes_behind(names, at)
        elif by in ("LOAD_ATTR", "STORE_ATTR"):
            if name.startswith("__") and name.endswith("__") and name not in _SPECIAL:
                yield "refused", f"reads `{name}`", ()
            if name in _WHERE:
                yield "refused", f"reads where code stands (`{name}`)", ()
            yield "attribute", name, ()
        elif by == "IMPORT_NAME":
            yield from next(imports)


def _attributes_behind(names: tuple[Named, ...], at: int) -> tuple[str, ...]:
    """Return the attributes that are read one after another of what is loaded by a name."""
    end = at + 1
    while end < len(names) and names[end].follows and names[end].by == "LOAD_ATTR":
        end += 1
    return tuple(n.name for n in names[at + 1 : end])


def _all_imports(done: tuple[Operation, ...]) -> Iterator[list[Found]]:
    """Yield what each `import` in a function binds, in their order."""
    for at, o in enumerate(done):
        if o.name == "IMPORT_NAME":
            yield list(_imports(done, at))


def _chain(done: tuple[Operation, ...], at: int) -> tuple[str, ...]:
    """Return the attributes that are read one after another of what an operation loads."""
    found = []
    while at + 1 < len(done) and done[at + 1].name == "LOAD_ATTR":
        at += 1
        found.append(done[at].value)
    return tuple(found)


def _imports(done: tuple[Operation, ...], at: int) -> Iterator[Found]:
    """Find what an `import` in a function binds, and the attributes that are read of it."""
    module, level, members = done[at].value, done[at - 2].value, done[at - 1].value
    path: tuple[str, ...] = ()
    for i in range(at + 1, len(done)):
        o = done[i]
        if o.name == "IMPORT_FROM" and members:
            for chain in _uses(done, done[i + 1]):
                yield "import", (module, level, o.value), (o.value, *chain)
        elif o.name == "IMPORT_FROM":  # `import a.b as c`
            path = (*path, o.value)
        elif o.name.startswith("STORE") and not members:
            for chain in _uses(done, o):
                yield "import", (module, level, None), (*path, *chain)
            return
        elif o.name == "POP_TOP" and members:
            return


def _uses(done: tuple[Operation, ...], bound: Operation) -> list[tuple[str, ...]]:
    """List the chains of attributes that are read of a local variable; of one that a function within reads too, that
    it is handed on."""
    if bound.name != "STORE_FAST":
        return [()]
    return [_chain(done, i) for i, o in enumerate(done) if o.name == "LOAD_FAST" and o.value == bound.value]


def imported(name: str, level: int, member: str | None, space: dict[str, Any]) -> ModuleType | None:
    """Return the module that an `import` in a function gives; None if it gives none. space: the function's globals."""
    try:
        found: ModuleType = __import__(name, space, None, () if member is None else (member,), level)
    except Exception:  # whatever the user's module raises: the function raises it again, if it comes there
        return None
    return found
