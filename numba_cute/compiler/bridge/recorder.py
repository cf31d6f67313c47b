# SPDX-License-Identifier: Apache-2.0
"""Write down what a plain function of the user's does while Python runs it, as the steps (`seam.hooks.audits`) that one
that Numba compiles has: its calls of this library, and what it reads and sets of objects.

Objects are told by their identity. A variable is made for each that is met: a step says where it comes from, or none
does.
"""

from __future__ import annotations

import enum
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

from ... import dtypes, seam
from ...seam.hooks.audits import FOLLOWED, Body, Callee, Given, Spot, Step
from ...seam.marks import plain
from ...seam.marks.host_objects import python_of
from ..ground.memory import body_of, effects_of
from ..ground.numba_cuda import types
from . import tree
from .effects import Jitted
from .object_types import StructRef, Value
from .values import Kept, StructProxy

_SIMPLE = (int, float, complex, str, bytes, type(None), type, enum.Enum, dtypes.DType)


class Recorder:
    """A watcher of one call of a function (`seam.ground.watching`). thread: the thread whose calls it is told of.
    given: the arguments."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        self.thread = threading.get_ident()
        self._steps: list[Step] = []
        self._follows: dict[int, tuple[int, ...]] = {}
        self._block, self._blocks, self._open = 0, 1, list[tuple[int, int]]()
        self._values: dict[str, Any] = {}
        self._names: dict[int, tuple[Any, str]] = {}
        self._parts: dict[int, tuple[Any, Any, str, Any]] = {}
        self._fields: dict[str, dict[str, int]] = {}
        for i, x in enumerate(given):
            self._step("argument", self._new(x), of=i)

    # ------------------------------------------------------------------ what is told

    def called(self, fn: Any, args: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        """Note a call of this library."""
        of = None
        if args and fn.__code__.co_varnames[:1] == ("self",):
            if fn.__name__ == "__init__":
                fn, args, result = type(args[0]), args[1:], args[0]
            else:
                of, args = self.name(args[0]), args[1:]
        names = tuple(map(self.name, args))
        by_name = {n: self.name(x) for n, x in named.items()}
        kind, name = "call", fn if of is None else fn.__name__
        if name == "__getitem__":
            kind, name = "item", args[0] if type(args[0]) is int else None
        elif name == "__setitem__":
            kind, name = "other", None
        uses = {*self._whole(names), *self._whole(by_name.values()), *(() if of is None else (of,))}
        target = "" if kind == "other" else self._new(result)
        self._step(kind, target, of, name, names, by_name, uses)

    def jitted(self, key: Any, given: list[str], result: Any) -> None:
        """Note a call of a function of the user's that Numba compiles. given: variables."""
        calls = callee_of(key, lambda: given)
        self._step("other", self._new(result), args=tuple(given), uses=self._whole(given), calls=calls)

    def got(self, obj: Any, field: str, value: Any) -> None:
        """Note that a field of a kernel's object is read."""
        of = self.name(obj)
        self._step("get", self._new(value), of, field, uses={of})

    def stored(self, obj: Any, field: str, value: Any) -> None:
        """Note that one is set."""
        of, name = self.name(obj), self.name(value)
        self._step("set", "", of, field, (name,), uses={of, name})

    def enter(self) -> None:
        """Note that a part begins that may be left out."""
        part = self._next()
        self._open.append((self._block, part))
        self._block = part

    def leave(self, repeats: bool) -> None:
        """Note that it ends, or may begin anew."""
        before, part = self._open.pop()
        after = self._next()
        self._follows[before] = (part, after)
        self._follows[self._block] = (part, after) if repeats else (after,)
        self._block = after

    def keep(self, bodies: dict[Any, Body], key: Any, result: Any) -> None:
        """Keep what was done, by a call that gave this, if any of it is followed."""
        of = self.name(result)
        self._step("return", "", of, uses={of})
        self._follows[self._block] = ()
        if any(map(_leads_on, self._values.values())):
            bodies[key] = Body(self._steps, self._follows, {}, {}, self._value)

    # ------------------------------------------------------------------ objects by their names
    def name(self, x: Any) -> str:
        """Return the variable of an object, of which a step says what it holds now."""
        if isinstance(x, _SIMPLE):
            return self._variable(x)
        if id(x) in self._names:
            name = self._names[id(x)][1]
            if name in self._fields and not isinstance(x, Kept):
                self._compare(x, name)
            return name
        if id(x) in self._parts:
            _, whole, kind, part = self._parts[id(x)]
            of, name = self.name(whole), self._new(x)
            self._step(kind, name, of, part, uses={of})
            return name
        return self._describe(x)

    def _describe(self, x: Any) -> str:
        """Write a step for an object that nothing told of: one that Python made."""
        if type(x) in (tuple, list):
            parts = tuple(map(self.name, x))
            name = self._variable(x)
            self._step("tuple", name, args=parts, uses=set(parts))
            return name
        if isinstance(x, (tree.ByReference, Kept)):  # of those made here, one that lies in the frame by now
            return self._lost(x, list(self._fields))
        if seam.is_struct_class(type(x)) or plain.is_plain(x):
            name = self._new(x)
            self._fields[name] = {}
            self._step("make", name)
            self._compare(x, name)
            return name
        if _carries(x):
            return self._hold(x)
        name = self._new(x)
        held = [self.name(y) for y in _within(x)]
        return self._lost(x, held) if held else name

    def _hold(self, x: Any) -> str:
        """Write steps for an immutable object: what it holds that was met before it."""
        parts = {f: getattr(x, f, None) for f in tree.fields_of(type(x))}
        met = {f: self.name(part) for f, part in parts.items() if id(part) in self._names}
        name = self._new(x)
        self._step("make", name)
        for field, part in met.items():
            self._step("set", "", name, field, (part,), uses={name, part})
        return name

    def _lost(self, x: Any, held: list[str]) -> str:
        """Write a step after which nothing is known of what some variables hold; gives the name of `x`."""
        name = self._new(x)
        self._step("other", name, uses=set(held))
        return name

    def _compare(self, x: Any, name: str) -> None:
        """Write steps for the fields of an object of Python's that were set since it was met."""
        known = self._fields[name]
        for field, value in plain.fields_of(x).items():
            if field != "_cute_region" and known.get(field) != id(value):
                known[field] = id(value)
                held = self.name(value)
                self._step("set", "", name, field, (held,), uses={name, held})

    def _new(self, x: Any) -> str:
        """Return a new variable, which an object is named by from now on; a part of it is a part of the variable."""
        name = self._variable(x)
        if isinstance(x, _SIMPLE):
            return name
        self._names[id(x)] = x, name
        self._note_parts(x)
        return name

    def _note_parts(self, whole: Any) -> None:
        """Note of what the parts of an object are parts."""
        kind, parts = "get", dict[Any, Any]()
        if type(whole) in (tuple, list):
            kind, parts = "item", dict(enumerate(whole))
        elif isinstance(whole, tree.ByReference):  # each look at a field gives another object
            return
        elif _carries(whole):
            parts = {f: getattr(whole, f, None) for f in tree.fields_of(type(whole))}
        elif _of_followed(whole):
            parts = plain.fields_of(whole)
        for part, value in parts.items():
            if not isinstance(value, _SIMPLE) and id(value) not in self._names and id(value) not in self._parts:
                self._parts[id(value)] = value, whole, kind, part
                self._note_parts(value)

    def _variable(self, x: Any) -> str:
        name = f"{len(self._values)}"
        self._values[name] = x
        return name

    def _value(self, name: str) -> Any:
        """Return an object that is not a number by its variable, as of what Numba compiles."""
        found = self._values[name]
        return None if isinstance(found, (int, float, complex, seam.Leaf)) else found

    def _whole(self, names: Any) -> set[str]:
        return {n for n in names if not isinstance(self._values[n], _SIMPLE)}

    # ------------------------------------------------------------------ steps
    def _step(
        self, kind: str, target: str, of: Any = None, name: Any = None, args: tuple[str, ...] = (),
        named: dict[str, str] | None = None, uses: set[str] | None = None, calls: Callee | None = None,
    ) -> None:  # fmt: skip
        step = Step(kind, target, of, name, args, named or {}, uses or set(), _spot(), self._block, calls)
        self._steps.append(step)

    def _next(self) -> int:
        self._blocks += 1
        return self._blocks - 1


@functools.cache
def is_followed(ty: Any) -> bool:
    """Say whether a value of a type is, or leads to, an object that is followed into functions."""
    if isinstance(ty, StructRef):
        return issubclass(ty.cls, tuple(FOLLOWED)) or any(is_followed(t) for _, t in ty.fields)
    if isinstance(ty, Value):
        return _holds(ty.spec)
    return isinstance(ty, types.BaseTuple) and any(map(is_followed, ty))


def _holds(spec: Any) -> bool:
    if spec[0] == "leaf":
        return is_followed(spec[1])
    if spec[0] == "node" and issubclass(spec[1], tuple(FOLLOWED)):
        return True
    return spec[0] != "const" and any(map(_holds, spec[-1]))


def callee_of(key: Any, given: Callable[[], Sequence[Given] | None]) -> Callee | None:
    """Return the function of the user's that a call calls, by the key of its lowering or by the function and the types
    of its arguments; None if none is called that concerns a check. given: says what each parameter is given."""
    found = effects_of(key)
    body = body_of((found.function, found.args) if isinstance(found, Jitted) else key)
    passed = None if body is None else given()
    if body is None or passed is None:
        return None
    if isinstance(found, Jitted):
        passed = [None if i in found.itself else passed[n] for i, n in enumerate(found.numbers)]
    return Callee(body, tuple(passed))


def _of_followed(x: Any) -> bool:
    return not isinstance(x, seam.Leaf) and isinstance(x, tuple(FOLLOWED))


def _carries(x: Any) -> bool:
    """Say whether an immutable object is followed, is of a class of the user's, or holds what is followed."""
    if not seam.is_frozen_class(type(x)):
        return False
    held = (getattr(x, f, None) for f in tree.fields_of(type(x)))
    return _of_followed(x) or plain.is_users_class(type(x)) or any(map(_of_followed, held))


def _leads_on(x: Any) -> bool:
    """Say whether an object is followed, or lies in the frame and leads to one."""
    return is_followed(x._ty) if isinstance(x, StructProxy) else _of_followed(x)


def _within(x: Any) -> Iterator[Any]:
    """Yield what a function or a container of Python's holds."""
    if isinstance(x, functools.partial):
        yield from (x.func, *x.args, *x.keywords.values())
    elif isinstance(x, FunctionType):
        yield from tree.cells(x)
    elif isinstance(x, MethodType):
        yield x.__self__
    elif isinstance(x, dict):
        yield from x.values()
    elif isinstance(x, tuple):
        yield from tuple.__iter__(x)


@functools.cache
def _at(file: str, line: int) -> Spot:
    return Spot(file, line)


def _spot() -> Spot:
    """Return the line of the user's that runs now."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and not plain.is_users_frame(frame):
        frame = frame.f_back
    return _at(frame.f_code.co_filename, frame.f_lineno)


def recorder_of(fn: Any, given: tuple[Any, ...]) -> Recorder | None:
    """Return who writes down a call of a function, a bound method or a class of the user's; None of any other."""
    fn = fn.func if isinstance(fn, functools.partial) else getattr(fn, "__func__", fn)
    module = getattr(python_of(fn) or fn, "__module__", None)
    return Recorder(given) if plain.is_users_module(module) else None
