# SPDX-License-Identifier: Apache-2.0
"""Python's state that a user's function can reach: what changes there while a kernel is compiled is not the kernel's.

A traced function runs twice, once to find types and once to emit code, whatever the number of threads that will run the
kernel. So a function that changes what outlives it would do that another number of times than Python does.
"""

from __future__ import annotations

import collections
import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinMethodType, CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...seam import Signal
from ...seam.marks.plain import is_plain_class, is_users_module
from ..ground.faults import Final
from ..ground.numba_cuda import CUDADispatcher
from ..ground.ownership import names_of

_MOST = 4000
"""At most so many objects are looked at."""
_LARGEST = 1 << 16
"""Bytes of an array that is looked at."""
_ITERATORS = frozenset(("builtins", "itertools"))
_MISSING = object()

Read = Callable[[], Any]
Undo = Callable[[Any], Any] | None
"""Makes of a state again what it was; None where nobody can."""


@contextmanager
def unchanged(what: str, tracer: Any, *roots: Any) -> Iterator[None]:
    """Run traced code of the user's, and tell its tracer what stands outside of it. Final: it changed something that it
    reached from `roots` and that stays when it is over, also where tracing ended early; it is as it was then. what: the
    function's name."""
    before = _Reached(roots)
    tracer.outside = before.holds
    why: BaseException | None = None
    try:
        yield
    except (Signal, Exception) as e:
        why = e
    finally:
        changed = before.undo()
    if changed is not None:
        raise Final(
            f"{what} changes {changed}, which is Python's and not the kernel's: a function runs while the kernel is "
            "compiled, and not once for each thread; give the kernel what it needs as a value, or change it outside"
        ) from why
    if why is not None:
        raise why


class _Reached:
    """The state of all that some objects lead to, as it is now."""

    def __init__(self, roots: tuple[Any, ...]) -> None:
        self._seen: dict[int, Any] = {}
        self._states: list[tuple[str, Read, Any, Undo]] = []
        self._todo: collections.deque[tuple[str, Any]] = collections.deque()
        self._attributes: set[str] = set()
        self._modules: list[tuple[str, ModuleType]] = []
        for i, root in enumerate(roots):
            self._todo.append(("an argument" if i else "", root))
            while self._todo and len(self._seen) < _MOST:
                path, obj = self._todo.popleft()
                if id(obj) not in self._seen:
                    self._seen[id(obj)] = obj
                    self._look(path, obj)
                if not self._todo:
                    self._look_at_modules()

    def holds(self, obj: Any) -> bool:
        """Say whether an object was there before."""
        return self._seen.get(id(obj)) is obj

    def undo(self) -> str | None:
        """Make again what it was of what is another; name the first, None if there was nothing."""
        first = None
        for path, read, before, undo in self._states:
            now = read()
            if now is not before and not _same(now, before):
                first = first or path
                if undo is not None:
                    undo(before)
        return first

    def _state(self, path: str, read: Read, undo: Undo = None) -> Any:
        now = read()
        self._states.append((path, read, now, undo))
        return now

    def _named(self, path: str, space: dict[str, Any], name: str) -> Any:
        return self._state(path, lambda: space.get(name, _MISSING), lambda before: _set(space, name, before))

    def _held(self, path: str, obj: Any) -> dict[str, Any]:
        held: dict[str, Any] = self._state(path, lambda: _attributes(obj), lambda before: _restore(obj, before))
        return held

    def _look(self, path: str, obj: Any) -> None:
        for kinds, look in _KINDS:
            if isinstance(obj, kinds):
                look(self, path, obj)
                return
        if isinstance(obj, type):
            if is_plain_class(obj):
                self._class(path, obj)
        elif isinstance(obj, CUDADispatcher):
            self._look(path, obj.py_func)
        elif type(obj).__module__ in _ITERATORS and hasattr(type(obj), "__next__"):
            self._state(f"the iterator `{path}`", lambda: _position(obj))
        elif is_plain_class(type(obj)):
            self._object(path, obj)

    def _function(self, path: str, fn: FunctionType) -> None:
        name = path or fn.__name__
        names, attributes = names_of(fn.__code__)
        self._attributes |= attributes
        for n in sorted(names):
            self._todo.append((n, self._named(f"the global `{n}`", fn.__globals__, n)))
        for n, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            path = f"`{n}` around {fn.__name__}"
            self._todo.append((n, self._state(path, functools.partial(_content, cell), functools.partial(_fill, cell))))
        for n, value in _defaults(fn):
            self._todo.append((n, value))
        held = self._held(f"an attribute of {fn.__name__}", fn)
        self._todo.extend((f"{name}.{n}", x) for n, x in held.items())

    def _items(self, path: str, obj: Any) -> None:
        items = self._state(f"`{path}`", lambda: list(obj), functools.partial(_refill, obj))
        self._todo.extend((f"{path}[{i}]", x) for i, x in enumerate(items[:_MOST]))

    def _dict(self, path: str, obj: Any) -> None:
        held = self._state(f"`{path}`", lambda: dict(obj), functools.partial(_refill, obj))
        self._todo.extend((f"{path}[{k!r:.30}]", x) for k, x in held.items())

    def _tuple(self, path: str, obj: Any) -> None:
        self._todo.extend((f"{path}[{i}]", x) for i, x in enumerate(obj))

    def _partial(self, path: str, obj: Any) -> None:
        self._todo.extend((path, x) for x in (obj.func, *obj.args, *obj.keywords.values()))

    def _method(self, path: str, obj: Any) -> None:
        self._todo.extend((path, x) for x in (obj.__func__, obj.__self__))

    def _generator(self, path: str, obj: Any) -> None:
        self._state(f"the generator `{path}`", lambda: (obj.gi_frame and obj.gi_frame.f_lasti, obj.gi_running))
        self._todo.extend((path, x) for x in self._state(f"the generator `{path}`", lambda: _kept_by(obj)))

    def _array(self, path: str, obj: Any) -> None:
        if obj.nbytes <= _LARGEST and obj.dtype.kind in "biufc":
            self._state(f"the array `{path}`", obj.tobytes, functools.partial(_write, obj))

    def _module(self, path: str, obj: ModuleType) -> None:
        if is_users_module(obj.__name__):
            self._modules.append((path, obj))

    def _look_at_modules(self) -> None:
        """Look at what of a module is named by some code that was reached."""
        for path, module in self._modules:
            for n in sorted(self._attributes):
                self._todo.append((f"{path}.{n}", self._named(f"`{path}.{n}`", vars(module), n)))
        self._modules = []

    def _class(self, path: str, cls: Any) -> None:
        for base in cls.__mro__[:-1]:
            held = self._held(f"a class attribute of {base.__name__}", base)
            own = {n: x for n, x in vars(base).items() if isinstance(x, FunctionType)}
            for n, x in (held | own).items():
                for part in (x, *(getattr(x, p, None) for p in ("__func__", "fget", "fset", "func"))):
                    if part is not None:
                        self._todo.append((f"{base.__name__}.{n}", part))

    def _object(self, path: str, obj: Any) -> None:
        if hasattr(obj, "__dict__"):
            held = self._held(f"an attribute of `{path}`", obj)
            self._todo.extend((f"{path}.{n}", x) for n, x in held.items())
        self._todo.append((type(obj).__name__, type(obj)))


_KINDS: tuple[tuple[Any, Callable[[_Reached, str, Any], None]], ...] = (
    (FunctionType, lambda r, p, x: r._function(p, x) if is_users_module(x.__globals__.get("__name__")) else None),
    ((list, set, collections.deque), _Reached._items),
    (dict, _Reached._dict),
    (tuple, _Reached._tuple),
    (functools.partial, _Reached._partial),
    (MethodType, _Reached._method),
    (BuiltinMethodType, lambda r, p, x: r._todo.append((p, x.__self__))),
    (GeneratorType, _Reached._generator),
    (np.ndarray, _Reached._array),
    (ModuleType, _Reached._module),
)


def _attributes(obj: Any) -> dict[str, Any]:
    """Return what an object or class holds, but for what Python and this library keep there."""
    held = {n: x for n, x in vars(obj).items() if not n.startswith(("__", "_cute_"))}
    cached = {n for n in held for c in type(obj).__mro__ if isinstance(vars(c).get(n), functools.cached_property)}
    return {n: x for n, x in held.items() if n not in cached}


def _set(space: dict[str, Any], name: str, before: Any) -> None:
    if before is _MISSING:
        space.pop(name, None)
    else:
        space[name] = before


def _restore(obj: Any, before: dict[str, Any]) -> None:
    """Give an object, a function or a class the attributes that it had, whatever its class does where one is set."""
    put: Callable[[str, Any], Any]
    drop: Callable[[str], Any]
    if isinstance(obj, type):
        put, drop = functools.partial(type.__setattr__, obj), functools.partial(type.__delattr__, obj)
    else:
        put, drop = vars(obj).__setitem__, vars(obj).pop
    for name in _attributes(obj).keys() - before.keys():
        drop(name)
    for name, value in before.items():
        put(name, value)


def _fill(cell: CellType, before: Any) -> None:
    if before is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = before


def _refill(obj: Any, before: Any) -> None:
    """Give a list, a deque, a set or a dict the items that it had."""
    kinds = (list, set, collections.deque, collections.OrderedDict, dict)
    kind: Any = next(k for k in kinds if isinstance(obj, k))
    kind.clear(obj)
    (kind.extend if kind in (list, collections.deque) else kind.update)(obj, before)


def _write(array: Any, before: bytes) -> None:
    array[...] = np.frombuffer(before, array.dtype).reshape(array.shape)


def _defaults(fn: FunctionType) -> Iterator[tuple[str, Any]]:
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount]
    yield from zip(reversed(names), reversed(fn.__defaults__ or ()))
    yield from (fn.__kwdefaults__ or {}).items()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _kept_by(generator: GeneratorType[Any, Any, Any]) -> list[Any]:
    """Return what a generator keeps where it waits: its variables, and on its stack the iterators of its loops. By
    these it is told from where it waits at the same `yield` again."""
    frame = generator.gi_frame
    if frame is None:
        return []
    others = {id(x) for x in (frame, frame.f_globals, frame.f_builtins, frame.f_code, frame.f_back)}
    return [x for x in gc.get_referents(generator, frame) if id(x) not in others]


def _position(iterator: Any) -> Any:
    """Return what says how far an iterator of Python's has come."""
    try:
        return repr(iterator.__reduce__()[1:])
    except (AttributeError, TypeError):
        return None


def _same(a: Any, b: Any) -> bool:
    """Say whether two states hold the same objects."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(x is y for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(a[k] is b[k] for k in a)
    if isinstance(a, (str, bytes, tuple)):
        return bool(a == b)
    return False
