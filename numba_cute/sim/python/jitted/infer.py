# SPDX-License-Identifier: Apache-2.0
"""The types of values in a function's code, for arguments of given types: as far as they can be known before it runs.

What library code gives is found by calling it, as the compiler does, on numbers of the right types where nothing
happens (`typing_backend`); what a user's function gives, from its own code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .... import seam
from ....dtypes import Boolean, DType, Int64
from ....seam.marks.plain import is_plain
from ..arithmetic import cases
from ..arithmetic.compute import unary_operation
from ..arithmetic.functions import Range
from ..arithmetic.operators import BINARY, FOLDED, UNARY
from .flow import Block, Flow, Node, meetings
from .opcodes import flow_of
from .parts import attribute_of_array, field_of, item_of_array, item_of_tuple
from .types import (
    NO_VALUE,
    NOTHING,
    SOME_INT,
    Known,
    Loose,
    RecordOf,
    Type,
    is_hashable,
    join,
    loosened,
    number_type,
    same,
    type_of,
    value_of,
    widened,
)

_MOST = 20
"""How often types are looked for again because others have changed. More changes than that are given up."""


class Surroundings(NamedTuple):
    """What a function's code refers to.

    find_global, find_free: the types of a global and of a variable of a function around, by name. jitted: of a callable
    what gives the type of its result from those of its arguments, or None. effects: the same, by the callable, of those
    that may not be called. safe: whether a callable may be called to see what it gives. range: what stands for `range`.
    backend: of traced code that is called. changing: which fields of a class's objects are set after their constructor.
    """

    find_global: Callable[[str], Type]
    find_free: Callable[[str], Type]
    jitted: Callable[[Any], Any]
    effects: dict[Any, Callable[[Sequence[Type], dict[str, Type]], Type]]
    safe: Callable[[Any], bool]
    range: Any
    backend: Any
    changing: Callable[[type], frozenset[str]]


class Ways(NamedTuple):
    """The blocks to which the code can come, as far as conditions are known; those of them where ways meet of which the
    compiler may take one alone; and whether there is any such choice."""

    reached: set[int]
    doubtful: set[int]
    any_doubt: bool


class Inner:
    """A function that is made by the code itself."""

    def __init__(self, node: Node, outer: Inference) -> None:
        self.node, self.outer = node, outer

    def free(self, name: str) -> Type:
        """The type of a variable of the functions around."""
        if name in self.outer.flow.code.co_cellvars:
            return self.outer.cell(name)
        return self.outer.around.find_free(name)


class Inference:
    """The types in a flow. args: of the parameters.

    Where the compiler may know which way the code goes (a static condition, an unrolled loop) and this does not, types
    are not unified where those ways meet: such a place is doubtful, and the values stay as they are.
    """

    def __init__(self, flow: Flow, args: Sequence[Type], around: Surroundings) -> None:
        self.flow, self.args, self.around = flow, args, around
        self._known: dict[int, Type] = {}
        self._inputs: dict[int, list[Type]] = {}
        self._order: list[Node] = []
        self._ways = Ways({id(b) for b in flow.blocks}, set(), False)
        self.changed = False

    def settle(self, roots: Iterable[Node]) -> None:
        """Find the types of these values, and of all that they come from."""
        self._order = self._needed(roots)
        for _ in range(_MOST):
            self._known.clear()
            self._inputs.clear()
            settled = self._propagate()
            before, self._ways = self._ways, self._find_ways()
            if settled and before == self._ways:
                return
        self._known = dict.fromkeys(map(id, self._order))

    def settle_all(self, roots: Iterable[Node]) -> None:
        """Find the types of all values, and of these."""
        self.settle([*roots, *(n for b in self.flow.blocks for n in b.made)])

    def _needed(self, roots: Iterable[Node]) -> list[Node]:
        """What values come from, and what decides on the way that is taken, in the order of the code."""
        todo = [n.found() for n in roots]
        for block in self.flow.blocks:
            todo += [block.condition[0].found()] if block.condition is not None else []
            todo += [n.found() for n in block.made if n.kind == "next"]
        found: dict[int, Node] = {}
        while todo:
            node = todo.pop()
            if id(node) not in found:
                found[id(node)] = node
                todo += [a.found() for a in self._sources(node)]
        place = self.flow.places
        return sorted(found.values(), key=lambda n: place.get(id(n), (-1, 0)))

    def inner(self) -> Iterator[Inner]:
        """The functions that the code makes."""
        for block in self.flow.blocks:
            if id(block) in self.reached():
                yield from (Inner(n, self) for n in block.made if n.kind == "function")

    def _sources(self, node: Node) -> Sequence[Node]:
        if node.kind == "cell":
            return self.flow.cells.get(node.data, ())
        if node.kind == "function":
            return [*node.args, *(n for name in node.data.co_freevars for n in self.flow.cells.get(name, ()))]
        return node.args

    def _propagate(self) -> bool:
        """Go through the values in the order of the code until no type changes, as Numba does, whose types too are
        unified with those that they had before others were known. False if that does not end."""
        for _ in range(_MOST):
            changed = False
            for node in self._order:
                old = self._known.get(id(node), NOTHING)
                new = self._joined(node, old) if node.kind == "phi" else widened(old, self._found(node, old))
                if not same(old, new):
                    changed = True
                    self.changed = self.changed or isinstance(old, DType)
                    self._known[id(node)] = new
            if not changed:
                return True
        return False

    def _found(self, node: Node, old: Type) -> Type:
        """The type of a value from those of what it comes from; `old` if they are what they were."""
        inputs = [self.of(a) for a in self._sources(node)]
        before = self._inputs.get(id(node))
        if before is not None and all(map(same, before, inputs)):
            return old
        if NOTHING in inputs and node.kind not in ("cell", "function"):
            return NOTHING
        self._inputs[id(node)] = inputs
        return self.computed(node)

    def computed(self, node: Node) -> Type:
        """The type of a value that is no phi from those of what it comes from."""
        return getattr(self, f"_{node.kind}")(node)

    def _joined(self, phi: Node, found: Type) -> Type:
        doubtful = id(self.flow.joins[id(phi)]) in self._ways.doubtful
        for a in self.inputs(phi):
            found = join(found, self.of(a), doubtful)
        return found

    def wider(self) -> Iterator[tuple[Node, Type]]:
        """The values whose type is wider than what computes them gives, with their types."""
        for node in self._order:
            t = self.of(node)
            if node.kind in ("binary", "inplace", "unary", "call", "item", "next") and isinstance(t, DType):
                if not same(self.computed(node), t):
                    yield node, t

    def inputs(self, phi: Node) -> list[Node]:
        """The values of a phi on the ways that are taken."""
        block = self.flow.joins[id(phi)]
        sources: list[Block | None] = [*([None] if block is self.flow.blocks[0] else []), *block.sources]
        return [a.found() for a, s in zip(phi.args, sources) if s is None or self._leads(s, block)]

    # ways that are taken

    def _find_ways(self) -> Ways:
        reached: set[int] = set()
        doubtful: set[int] = set()
        any_doubt = False
        todo = [self.flow.blocks[0]]
        while todo:
            block = todo.pop()
            if id(block) not in reached:
                reached.add(id(block))
                todo += [target for target, _ in self._taken(block)]
                if self._is_doubtful(block):
                    any_doubt = True
                    doubtful |= meetings(self.flow, block)
        return Ways(reached, doubtful, any_doubt)

    def reached(self) -> set[int]:
        """The blocks to which the code can come."""
        return self._ways.reached

    def _leads(self, source: Block, block: Block) -> bool:
        return id(source) in self.reached() and any(target is block for target, _ in self._taken(source))

    def _taken(self, block: Block) -> list[Any]:
        """The ways on that a block may take."""
        holds = self._condition(block)
        if holds is None or block.condition is None:
            return block.ways
        name = block.condition[1]
        jumps = holds is (("NOT_NONE" not in name) if name.endswith("NONE") else ("TRUE" in name))
        return [block.ways[0 if jumps else 1]]

    def _condition(self, block: Block) -> bool | None:
        """Whether what a block's last instruction asks is true (or None, if it asks for that), if that is known."""
        if block.condition is None or len(block.ways) < 2:
            return None
        node, name = block.condition
        if _original(node).kind == "phi":  # what a loop changes: Numba keeps both ways
            return None
        t = self.of(node)
        if name.endswith("NONE"):
            return t.value is None if isinstance(t, Known) else False if isinstance(t, (DType, Loose)) else None
        return bool(t.value) if isinstance(t, Known) and isinstance(t.value, (int, type(None))) else None

    def _is_doubtful(self, block: Block) -> bool:
        """Whether the compiler may know which way a block goes, which is not known here."""
        if len(block.ways) < 2 or len(self._taken(block)) < 2:
            return False
        if block.condition is not None:
            t = self.of(block.condition[0])
            return t is not NOTHING and not isinstance(t, DType)
        if block.last.name != "FOR_ITER":
            return True
        return not self._is_loop(block.ways[-1][1].stack[-1])

    def _is_loop(self, following: Node) -> bool:
        """Whether what a loop goes over is a `range` or an array: such a loop is never unrolled."""
        over = made = _original(following.args[0])
        if made.kind == "iter":
            over = _original(made.args[0])
        whole = self.of(over)
        if isinstance(whole, Known) and isinstance(whole.value, np.ndarray):
            return True
        f = self.of(over.args[0]) if over.kind == "call" else None
        if over.kind == "call" and "unroll_full" in over.data:
            full = self.of(over.args[len(over.args) - len(over.data) + over.data.index("unroll_full")])
            if isinstance(full, Known) and full.value is True:
                return False
        return isinstance(f, Known) and f.value is self.around.range

    # types

    def of(self, node: Node) -> Type:
        """The type of a value, as far as it is known now."""
        return self._known.get(id(node.found()), NOTHING)

    def result(self) -> Type:
        """What the function gives: on all ways of one type. Its values are settled."""
        found: Type = NOTHING
        for b in self.flow.blocks:
            if b.returned is not None and id(b) in self.reached():
                found = join(found, self.of(b.returned), self._ways.any_doubt)
        return found

    def _all(self, nodes: Iterable[Node]) -> list[Type]:
        return [self.of(n) for n in nodes]

    def _unknown(self, node: Node) -> Type:
        return None

    _null = _unknown

    def _undefined(self, node: Node) -> Type:
        return NOTHING

    def _const(self, node: Node) -> Type:
        return type_of(node.data)

    def _param(self, node: Node) -> Type:
        return self.args[node.data] if node.data < len(self.args) else None

    def _global(self, node: Node) -> Type:
        return self.around.find_global(node.data)

    def _free(self, node: Node) -> Type:
        return self.around.find_free(node.data)

    def _cell(self, node: Node) -> Type:
        return self.cell(node.data)

    def cell(self, name: str) -> Type:
        """A variable that inner functions see: of one type, wherever it is set."""
        found: Type = NOTHING
        for value in self.flow.cells.get(name, ()):
            found = join(found, loosened(self.of(value)), doubtful=True)
        return found

    def _copy(self, node: Node) -> Type:
        return self.of(node.args[0])

    def _function(self, node: Node) -> Type:
        return Known(Inner(node, self))

    def _tuple(self, node: Node) -> Type:
        return tuple(self._all(node.args))

    def _contains(self, node: Node) -> Type:
        x, container = self._all(node.args)
        if isinstance(x, DType) and type(container) is tuple:
            return Boolean
        return None

    def _is(self, node: Node) -> Type:
        a, b = self._all(node.args)
        if isinstance(a, Known) and isinstance(b, Known) and (a.value is None or b.value is None):
            return Known((a.value is b.value) is not node.data)
        return None

    def _list(self, node: Node) -> Type:
        return None

    def _binary(self, node: Node) -> Type:
        a, b = self._all(node.args)
        if a is NOTHING or b is NOTHING:
            return NOTHING
        op, x, y = node.data, number_type(a), number_type(b)
        if x is not None and y is not None:
            if isinstance(a, Known) and isinstance(b, Known) and op in FOLDED:
                return _given(BINARY[op], [a, b])
            case = cases.binary(op, x, y)
            if case is None:
                return None
            static = op in FOLDED and not isinstance(a, DType) and not isinstance(b, DType)
            return Loose(case.result) if static else case.result  # type: ignore[arg-type]
        if type(a) is tuple and type(b) is tuple:
            return a + b if op == "add" else None
        return _given(BINARY[op], [a, b])

    _inplace = _binary

    def _unary(self, node: Node) -> Type:
        (a,) = self._all(node.args)
        if a is NOTHING:
            return NOTHING
        if isinstance(a, (DType, Loose)):
            found = unary_operation(node.data, number_type(a))
            return None if found is None else found[0] if isinstance(a, DType) else Loose(found[0])
        return _given(UNARY[node.data], [a])

    def _attr(self, node: Node) -> Type:
        (owner,) = self._all(node.args)
        if not isinstance(owner, Known):
            return owner if owner is NOTHING else None
        value, name = owner.value, node.data
        if isinstance(value, RecordOf):
            return field_of(value, name)
        if isinstance(value, np.ndarray):
            return attribute_of_array(value, name)
        own = getattr(type(value), name, None)
        if isinstance(own, property) and seam.is_struct_class(type(value)):
            getter = self.around.jitted(own.fget)
            return getter([owner], {}) if getter is not None else None
        found = _given(lambda x: getattr(x, name), [owner])
        return loosened(found) if is_plain(value) and name in self.around.changing(type(value)) else found

    def _item(self, node: Node) -> Type:
        container, index = self._all(node.args)
        if container is NOTHING or index is NOTHING:
            return NOTHING
        if type(container) is tuple:
            return item_of_tuple(container, index)
        if isinstance(container, Known):
            value: Any = container.value
            if isinstance(value, RecordOf):
                return field_of(value, index.value) if isinstance(index, Known) else None
            if isinstance(value, np.ndarray):
                return item_of_array(value, index)
            if isinstance(value, tuple) and not isinstance(index, Known):
                return item_of_tuple(type_of(value), index)
            return _given(operator.getitem, [container, index])
        return None

    def _unpack(self, node: Node) -> Type:
        (whole,) = self._all(node.args)
        if type(whole) is tuple:
            return whole[node.data] if node.data < len(whole) else None
        return whole if whole is NOTHING else None

    def _iter(self, node: Node) -> Type:
        return self.of(node.args[0])

    def _next(self, node: Node) -> Type:
        """What iterating over a value gives: no literal, for it changes."""
        (t,) = self._all(node.args)
        if t is NOTHING:
            return NOTHING
        if type(t) is tuple:
            found: Type = NOTHING
            for x in t:
                found = join(found, loosened(x), doubtful=True)
            return found
        value: Any = t.value if isinstance(t, Known) else None
        if isinstance(value, Range):
            return value.dtype
        if isinstance(value, range):
            return Int64 if self._is_loop(node) else SOME_INT
        if isinstance(value, np.ndarray):
            return item_of_array(value, Int64)
        return None

    def _call(self, node: Node) -> Type:
        f, *args = self._all(node.args)
        if f is NOTHING or any(a is NOTHING for a in args):
            return NOTHING
        if not isinstance(f, Known):
            return None
        at = len(args) - len(node.data)
        plain, named = args[:at], dict(zip(node.data, args[at:]))
        if isinstance(f.value, Inner):
            return _inner_result(f.value, plain, named)
        callee = self.around.jitted(f.value)
        if callee is not None:
            return callee(plain, named)
        if not self.around.safe(f.value):
            rule = self.around.effects.get(f.value) if is_hashable(f.value) else None
            return rule(plain, named) if rule is not None else None
        if f.value is self.around.range:
            plain = [number_type(t) or t if isinstance(t, Loose) else t for t in plain]
        return _given(f.value, plain, named)


def _given(f: Any, types: Sequence[Type], named: dict[str, Type] | None = None) -> Type:
    """Return the type of what a call gives that stands in the user's code, of values of these types. None where one of
    those is not known; and where the call raises, as the code does itself when it comes there."""
    values, by_name = [value_of(t) for t in types], {k: value_of(t) for k, t in (named or {}).items()}
    if any(v is NO_VALUE for v in (*values, *by_name.values())):
        return None
    try:
        found = f(*values, **by_name)
    except Exception:  # the user's own code, on numbers that are made up
        return None
    return type_of(found)


def _original(node: Node) -> Node:
    """The node that a variable holds."""
    node = node.found()
    while node.kind == "copy":
        node = node.args[0].found()
    return node


def bound(code: Any, plain: Sequence[Any], named: dict[str, Any], defaults: Sequence[Any]) -> list[Any]:
    """The arguments of a call by the function's parameters. defaults: of the last of them."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values: list[Any] = [*plain, *[None] * (len(names) - len(plain))]
    given = [*[True] * len(plain), *[False] * (len(names) - len(plain))]
    for name, value in named.items():
        if name in names:  # others are in a dict of their own
            at = names.index(name)
            values[at], given[at] = value, True
    for at, default in zip(range(code.co_argcount - len(defaults), code.co_argcount), defaults):
        if not given[at]:
            values[at] = default
    return values


def _inner_result(inner: Inner, plain: list[Type], named: dict[str, Type]) -> Type:
    """What a function gives that the code has made. Its free variables are the outer one's."""
    outer, code = inner.outer, inner.node.data
    flow = flow_of(code)
    values = bound(code, plain, named, outer._all(inner.node.args))
    around = outer.around._replace(find_free=inner.free)
    return returned(Inference(flow, list(map(loosened, values)), around))


def returned(inference: Inference) -> Type:
    """What a call of a function gives."""
    with seam.running(inference.around.backend):
        inference.settle([b.returned for b in inference.flow.blocks if b.returned is not None])
        return loosened(inference.result())
