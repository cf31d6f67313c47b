# SPDX-License-Identifier: Apache-2.0
"""Functions whose code depends on the types of their arguments: where ways through it meet, a variable that has another
type on each is cast to one that holds them all, as Numba unifies them; so too what is returned."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from .... import seam
from ....seam import CuteError
from ....seam.source.settings import set_by_methods, stores_of
from ..arithmetic.number import Number
from .effects import rules
from .flow import UNDEFINED, Block, Flow, Node, live_variables
from .infer import Inference, Surroundings, bound, returned
from .opcodes import flow_of
from .rewrite import rewritten
from .types import (
    NOTHING,
    Known,
    Spec,
    Type,
    key_of,
    loosened,
    must_cast,
    number_type,
    spec_of,
    type_of,
    type_of_argument,
)


class Cast(NamedTuple):
    """What is cast where. at: the number of the instruction before which it is, or `after` it. variable: its name, or
    None for what lies on top of the stack. to: the types, or what is called with a function that the code has made."""

    at: int
    variable: str | None
    to: Spec | InnerFunction
    after: bool = False


@functools.lru_cache(maxsize=1024)
def _joins(code: CodeType) -> list[tuple[Block, str | None, Node]]:
    """(block, variable or None for the top of the stack, phi) where several values of what is used later meet."""
    flow = flow_of(code)
    out: list[tuple[Block, str | None, Node]] = []
    live = live_variables(flow)
    for block in flow.blocks:
        if block.entry is None or block.first.name == "END_FOR":
            continue
        for name in sorted(live[id(block)]):
            node = block.entry.variables.get(name)
            if node is not None and node.same is None and flow.joins.get(id(node)) is block:
                if _is_set(node, set()):
                    out.append((block, name, node))
        top = block.entry.stack[-1] if block.entry.stack else None
        if top is not None and top.same is None and flow.joins.get(id(top)) is block:
            out.append((block, None, top))
    return out


def _is_set(node: Node, seen: set[int]) -> bool:
    """Whether a variable has a value on every way to here."""
    node = node.found()
    if node.kind != "phi" or id(node) in seen:
        return node is not UNDEFINED
    seen.add(id(node))
    return all(_is_set(a, seen) for a in node.args)


def _ends(flow: Flow) -> list[Block]:
    return [b for b in flow.blocks if b.returned is not None]


_BLIND = Surroundings(
    lambda name: None, lambda name: None, lambda f: None, {}, lambda f: False, None, None, lambda cls: frozenset()
)
_NO_FUNCTION = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@functools.lru_cache(maxsize=1024)
def may_need_casts(code: CodeType) -> bool:
    """Whether a value may have several types where ways meet, for all that is seen without the arguments' types."""
    if code.co_flags & _NO_FUNCTION:
        return False
    with inferring(code.co_name):
        return _may_need_casts(code)


def _may_need_casts(code: CodeType) -> bool:
    flow = flow_of(code)
    if any(isinstance(c, CodeType) and may_need_casts(c) for c in code.co_consts):
        return True
    joins, ends = _joins(code), _ends(flow)
    several = len(ends) > 1
    if not joins and not several:
        return False
    inference = _Blind(flow, [], _BLIND)
    inference.settle([*(node for _, _, node in joins), *(b.returned for b in ends if several and b.returned)])
    for _, _, node in joins:
        t = inference.of(node)
        if _has_unknown(t) or any(must_cast(inference.of(a), spec_of(t)) for a in inference.inputs(node)):
            return True
    kinds = [inference.of(b.returned) for b in ends if b.returned is not None] if several else []
    first = number_type(kinds[0]) if kinds else None
    return any(_has_unknown(t) or number_type(t) is not first for t in kinds)


def _has_unknown(t: Type) -> bool:
    return any(map(_has_unknown, t)) if type(t) is tuple else t is None


class _Blind(Inference):
    """Knows nothing of what the code refers to."""

    def _global(self, node: Node) -> Type:
        return None

    _free = _cell = _param = _attr = _item = _call = _global

    def _is_doubtful(self, block: Block) -> bool:
        return False


class Jitted:
    """A function of the user's as a run has it. code: as the user wrote it. plain: rewritten, with no casts. plans: the
    casts that its code needs, by its arguments' types. free: the types of variables of functions around, if known."""

    def __init__(
        self, code: CodeType, plain: FunctionType, tools: Tools, plans: dict[Any, tuple[Cast, ...]],
        free: dict[str, Type] | None = None,
    ) -> None:  # fmt: skip
        self.code, self.plain, self.tools, self.plans, self.free = code, plain, tools, plans, free
        self._busy: list[Any] = []

    def infer(self, plain: Sequence[Type], named: dict[str, Type]) -> Type:
        """The type of what a call gives."""
        types = self._bound(plain, named)
        if any(types == other for other in self._busy):
            return NOTHING  # it calls itself
        self._busy.append(types)
        try:
            return returned(self._inference(types))
        finally:
            self._busy.pop()

    def _bound(self, plain: Sequence[Type], named: dict[str, Type]) -> list[Type]:
        defaults = [type_of_argument(d) for d in self.plain.__defaults__ or ()]
        return list(map(loosened, bound(self.code, plain, named, defaults)))

    def _inference(self, types: list[Type]) -> Inference:
        return Inference(flow_of(self.code), types, self.tools.around(self.plain, self.free))

    def casts(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Cast, ...]:
        """The casts that its code needs for these arguments."""
        code = self.code
        flow, joins = flow_of(code), _joins(code)
        types = self._bound([type_of_argument(a) for a in args], {k: type_of_argument(v) for k, v in kwargs.items()})
        inference = self._inference(types)
        ends = _ends(flow)
        number = {id(i): at for at, i in enumerate(flow.body.instructions)}
        with seam.running(inference.around.backend):
            roots = [*(node for _, _, node in joins), *(b.returned for b in ends if b.returned is not None)]
            inference.settle(roots)
            if inference.changed or any(may_need_casts(inner.node.data) for inner in inference.inner()):
                inference.settle_all(roots)
            found = [*_of_joins(inference, joins, number), *_of_returns(inference, ends, number)]
            return (*found, *_of_wider(inference, number), *_of_inner(inference, number))


def _of_joins(inference: Inference, joins: Any, number: dict[int, int]) -> Iterator[Cast]:
    for block, name, node in joins:
        if id(block) not in inference.reached():
            continue
        spec = spec_of(inference.of(node))
        if any(must_cast(inference.of(a), spec) for a in inference.inputs(node)):
            yield Cast(number[id(block.first)], name, spec)


def _of_returns(inference: Inference, ends: list[Block], number: dict[int, int]) -> Iterator[Cast]:
    if len(ends) < 2:
        return
    spec = spec_of(inference.result())
    for block in ends:
        if must_cast(inference.of(block.returned), spec):  # type: ignore[arg-type]
            yield Cast(number[id(block.last)], None, spec)


def _of_wider(inference: Inference, number: dict[int, int]) -> Iterator[Cast]:
    for node, t in inference.wider():
        if node.by is not None:
            yield Cast(number[id(node.by)], None, t, after=True)


class InnerFunction:
    """Makes a function, which the code around has made with its own variables, one whose code depends on the types of
    its arguments. free: the types of those variables."""

    def __init__(self, code: CodeType, free: dict[str, Type]) -> None:
        self.code, self.free = code, free
        self.plans: dict[Any, tuple[Cast, ...]] = {}

    def __call__(self, made: FunctionType) -> Any:
        return Specialised(Jitted(self.code, made, made.__globals__[TOOLS], self.plans, self.free))


def _of_inner(inference: Inference, number: dict[int, int]) -> Iterator[Cast]:
    for inner in inference.inner():
        code, by = inner.node.data, inner.node.by
        if by is not None and may_need_casts(code):
            free = {name: inner.free(name) for name in code.co_freevars}
            yield Cast(number[id(by)], None, InnerFunction(code, free), after=True)


TOOLS = "__cute_tools__"
"""Among a rewritten function's globals, the `Tools` of its run."""
_PLANS: weakref.WeakKeyDictionary[FunctionType, dict[Any, tuple[Cast, ...]]] = weakref.WeakKeyDictionary()
"""The casts of functions, by their arguments' types: what a function refers to is taken to stay as it is."""


class Specialised:
    """A function that is called with code for its arguments' types."""

    def __init__(self, jitted: Jitted) -> None:
        self.jitted = jitted
        self._variants: dict[Any, FunctionType] = {}
        self._of_classes: dict[Any, FunctionType] = {}  # by classes, where those tell all of the types
        self.__name__, self.__doc__ = jitted.plain.__name__, jitted.plain.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return self._found(args, kwargs)(*args, **kwargs)
        found = self._of_classes.get(tuple(map(type, args)))
        return (self._found(args, kwargs) if found is None else found)(*args)

    def _found(self, args: Sequence[Any], kwargs: dict[str, Any]) -> FunctionType:
        changing = self.jitted.tools.changing
        key = (*(key_of(a, changing) for a in args), *((k, key_of(v, changing)) for k, v in sorted(kwargs.items())))
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = self._variant(key, args, kwargs)
            if not kwargs and all(type(a) in (int, bool, float) or isinstance(a, Number) for a in args):
                self._of_classes[tuple(map(type, args))] = found
        return found

    def _variant(self, key: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> FunctionType:
        jitted, plain, plans = self.jitted, self.jitted.plain, self.jitted.plans
        if key not in plans:
            with inferring(plain.__name__):
                plans[key] = jitted.casts(args, kwargs)
        if not plans[key]:
            return plain
        code = rewritten(jitted.code, plans[key])
        new = FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)
        new.__kwdefaults__ = plain.__kwdefaults__
        return new

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jitted.plain, name)


class Tools:
    """What inference asks of a run. cuda: what stands for numba.cuda. safe, range: see `Surroundings`. backend: makes
    what traced code runs on meanwhile."""

    def __init__(self, cuda: Any, safe: Callable[[Any], bool], range: Any, backend: Callable[[], Any]) -> None:
        self._cuda, self._safe, self._range, self._make_backend = cuda, safe, range, backend
        self._backend: Any = None
        self._effects: dict[Any, Any] = {}
        self._stored: set[str] = set()
        self._changing: dict[type, frozenset[str]] = {}

    def note(self, fn: FunctionType, is_method: bool) -> None:
        """Note what a function of the run sets in objects that it is given."""
        found = stores_of(fn.__code__)
        new = (found.others if is_method else found.own | found.others) - self._stored
        if new:
            self._stored |= new
            self._changing = {}

    def changing(self, cls: type) -> frozenset[str]:
        """Return the fields of a class's objects that functions of the run set after the constructor."""
        if cls not in self._changing:
            self._changing[cls] = set_by_methods(cls) | self._stored
        return self._changing[cls]

    def around(self, plain: FunctionType, free: dict[str, Type] | None) -> Surroundings:
        """What a rewritten function refers to. free: see `Jitted`."""
        if self._backend is None:
            self._backend, self._effects = self._make_backend(), rules(self._cuda)
        space, names = plain.__globals__, plain.__code__.co_freevars
        cells = dict(zip(names, plain.__closure__ or ()))

        def find_global(name: str) -> Type:
            found = space if name in space else space["__builtins__"]
            return type_of(found[name]) if name in found else None

        def find_free(name: str) -> Type:
            return _type_in(cells[name]) if free is None else free[name]

        return Surroundings(
            find_global, find_free, self._jitted, self._effects, self._safe, self._range, self._backend, self.changing
        )

    def _jitted(self, f: Any) -> Any:
        if isinstance(f, MethodType):
            found, this = self._jitted(f.__func__), Known(f.__self__)
            return found and (lambda plain, named: found([this, *plain], named))
        jitted = f.jitted if isinstance(f, Specialised) else getattr(f, "__cute_jitted__", None)
        return jitted.infer if isinstance(jitted, Jitted) else None


def _type_in(cell: Any) -> Type:
    """Return the type of a variable of a function around; None if it is not set yet."""
    try:
        return type_of(cell.cell_contents)
    except ValueError:  # it is empty
        return None


@contextlib.contextmanager
def inferring(name: str) -> Iterator[None]:
    """Infer types in a function of this name: a fault of that is an error in words, at the line that runs."""
    try:
        yield
    except CuteError:
        raise
    except Exception as e:
        raise CuteError(
            f"{name}: internal error while the types of its variables are inferred, {type(e).__name__}: {e}; please "
            "report it with the function"
        ) from e


def specialised(fn: FunctionType, plain: FunctionType, tools: Tools) -> Any:
    """The function as a run calls it: `plain`, or what finds the code for each call."""
    plain.__globals__[TOOLS] = tools
    jitted = Jitted(fn.__code__, plain, tools, _PLANS.setdefault(fn, {}))
    plain.__cute_jitted__ = jitted  # type: ignore[attr-defined]
    return Specialised(jitted) if may_need_casts(fn.__code__) else plain
