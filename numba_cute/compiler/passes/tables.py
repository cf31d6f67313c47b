# SPDX-License-Identifier: Apache-2.0
"""Tables in a kernel: `{ADD: operator.add, MAX: max}[op]`, of which only the items that are looked up stay, and tuples
where it is gone over. Dicts of the module are such tables too. A kernel has no dictionaries of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterator
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.marks.mappings import Mapping
from ...seam.source.language import NO_DICT, NO_KEY, no_key, no_such_key
from ..ground.errors import located
from ..ground.numba_cuda import ir
from .constants import Constants, NotConstant
from .definitions import Place, instructions, statements
from .uses import read_in

_ITEM = "$numba_cute_item"


def write_down(func_ir: Any) -> bool:
    """Put in the place of each dict of the module, or of a closure, that a kernel names a table of its items, as they
    are now; say whether there was one."""
    changed = False
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for inst in block.body:
            value = inst.value if isinstance(inst, ir.Assign) else None
            if isinstance(value, (ir.Global, ir.FreeVar)) and type(value.value) is dict:
                body += _written(inst, value.name, value.value, block.scope)
                changed = True
            else:
                body.append(inst)
        block.body = body
    return changed


def _written(inst: Any, name: str, items: dict[Any, Any], scope: Any) -> list[Any]:
    """The statements that make a table of a dict's items."""
    made, pairs, loc = [], [], inst.loc
    for key, item in items.items():
        pair = [scope.redefine(_ITEM, loc) for _ in range(2)]
        made.append(ir.Assign(ir.Global(f"a key of {name}", key, loc), pair[0], loc))
        made.append(ir.Assign(ir.Global(f"{name}[{key!r}]", _tuples(item), loc), pair[1], loc))
        pairs.append(tuple(pair))
    return [*made, ir.Assign(ir.Expr.build_map(pairs, len(pairs), None, None, loc), inst.target, loc)]


def _tuples(item: Any) -> Any:
    """Return what a kernel has of lists of the host, to any depth: tuples."""
    return tuple(map(_tuples, item)) if type(item) in (list, tuple) else item


def look_up(func_ir: Any, known: Constants) -> bool:
    """Put in the place of each question to a table its answer, where the table's keys, and the one that is asked for,
    are known; say whether there was one. CuteError: the table has no such key."""
    if not _tables(func_ir.blocks):
        return False
    answers = [
        (place, inst, found)
        for place, inst in statements(func_ir.blocks)
        if isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr)
        if (found := _answer(inst.value, place, known)) is not None
    ]
    for place, inst, found in reversed(answers):  # so that places before stay what they are
        body = func_ir.blocks[place.label].body
        body[place.index : place.index + 1] = found(inst, func_ir.blocks[place.label].scope)
    unknown = {id(inst) for inst, error in _keys(func_ir, known) if error}  # when more is known they are judged
    return drop(func_ir.blocks, unknown) or bool(answers)


_Answer = Callable[[Any, Any], list[Any]]
"""Given a statement and its scope, what stands in its place."""


def _answer(value: Any, place: Place, known: Constants) -> _Answer | None:
    """Return what answers a question to a table; None if an expression is none, or not of a table that is known."""
    asked: list[Any] = []
    if value.op in ("getitem", "static_getitem"):
        whose, what = value.value, "getitem"
        asked = [value.index_var if value.op == "static_getitem" else value.index]
    elif value.op == "getiter":
        whose, what = value.value, "getiter"
    elif value.op == "binop" and value.fn is operator.contains:
        whose, what, asked = value.lhs, "contains", [value.rhs]
    elif value.op == "call" and not value.kws and value.vararg is None:
        method, at = known.assignment(value.func, place) or (None, place)
        if isinstance(method, ir.Expr) and method.op == "getattr":
            whose, what, asked, place = method.value, method.attr, value.args, at
        elif len(value.args) == 1 and isinstance(method, ir.Global) and method.value is len:
            whose, what = value.args[0], "len"
        else:
            return None
    else:
        return None
    made, at = known.assignment(whose, place) or (None, place)
    if not isinstance(made, ir.Expr) or made.op != "build_map":
        return None
    try:
        keys = [known.of(k, at) for k, _ in made.items]
        if any(isinstance(k, float) for k in (*keys, *(known.of(k, place) for k in asked[:1]))):
            raise located(CuteError(NO_KEY), value.loc)  # the simulator knows it at run time alone
        table = _Table(keys, made.items)
        if what in ("getitem", "contains", "get") and asked:
            static = value.op == "static_getitem"
            return table.asked(what, value.index if static else known.of(asked[0], place), asked[1:], value.loc)
    except NotConstant:
        return None
    return table.whole(what) if not asked else None


class _Table:
    """A table whose keys are known: each with the variables of it and its item, of two that are equal the later's."""

    def __init__(self, keys: list[Any], items: list[Any]) -> None:
        self._keys = keys
        self._items: list[tuple[Any, Any, Any]] = []
        for key, (var, item) in zip(keys, items):
            at = self._find(key)
            if at is None:
                self._items.append((key, var, item))
            else:
                self._items[at] = (*self._items[at][:2], item)

    def _find(self, key: Any) -> int | None:
        for at, (k, _, _) in enumerate(self._items):
            if k is key or (hash(k) == hash(key) and k == key):
                return at
        return None

    def asked(self, what: str, key: Any, default: list[Any], loc: Any) -> _Answer:
        """Answer for one key. CuteError: there is no such."""
        at = self._find(key)
        if what == "contains":
            return lambda inst, scope: [ir.Assign(ir.Const(at is not None, loc), inst.target, loc)]
        if at is None and what == "getitem":
            raise located(CuteError(no_such_key(key, self._keys)), loc)
        found = (default[0] if default else ir.Const(None, loc)) if at is None else self._items[at][2]
        return lambda inst, scope: [ir.Assign(found, inst.target, loc)]

    def whole(self, what: str) -> _Answer | None:
        """Answer for the whole table, by tuples; None to what no table is asked."""
        keys, values = [k for _, k, _ in self._items], [v for _, _, v in self._items]
        if what == "len":
            return lambda inst, scope: [ir.Assign(ir.Const(len(keys), inst.loc), inst.target, inst.loc)]
        if what in ("keys", "values"):
            items = keys if what == "keys" else values
            return lambda inst, scope: [ir.Assign(ir.Expr.build_tuple(items, inst.loc), inst.target, inst.loc)]
        if what not in ("items", "getiter"):
            return None

        def made(inst: Any, scope: Any) -> list[Any]:
            loc, new = inst.loc, []
            rows = keys
            if what == "items":
                rows = [scope.redefine("$numba_cute_row", loc) for _ in keys]
                new = [ir.Assign(ir.Expr.build_tuple([k, v], loc), r, loc) for r, k, v in zip(rows, keys, values)]
            if what == "getiter":
                whole = scope.redefine("$numba_cute_keys", loc)
                new += [ir.Assign(ir.Expr.build_tuple(rows, loc), whole, loc)]
                return [*new, ir.Assign(ir.Expr.getiter(whole, loc), inst.target, loc)]
            return [*new, ir.Assign(ir.Expr.build_tuple(rows, loc), inst.target, loc)]

        return made


@seam.traced
def _mapping(keys: Any, values: Any) -> Mapping:
    """Make what a kernel hands on of a dict."""
    return Mapping(keys, values)


def hand_on(func_ir: Any, known: Constants) -> bool:
    """Make an object of each table that is handed on, whose keys are then all known; say whether there was one."""
    whole = _handed_on(func_ir.blocks)
    found = []
    for place, inst in statements(func_ir.blocks) if whole else ():
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op == "build_map" and inst.target.name in whole:
            try:
                keys = [known.of(k, place) for k, _ in value.items]
            except NotConstant:
                continue
            if not any(isinstance(k, float) for k in keys):
                found.append((place, inst))
    for place, inst in reversed(found):
        block = func_ir.blocks[place.label]
        block.body[place.index : place.index + 1] = _made(inst, block.scope)
    return bool(found)


def _made(inst: Any, scope: Any) -> list[Any]:
    """Return the statements that make an object of a table."""
    loc, items = inst.loc, inst.value.items
    function, keys, values = (scope.redefine(f"$numba_cute_{n}", loc) for n in ("mapping", "keys", "values"))
    return [
        ir.Assign(ir.Global("mapping", _mapping, loc), function, loc),
        ir.Assign(ir.Expr.build_tuple([k for k, _ in items], loc), keys, loc),
        ir.Assign(ir.Expr.build_tuple([v for _, v in items], loc), values, loc),
        ir.Assign(ir.Expr.call(function, [keys, values], (), loc), inst.target, loc),
    ]


def _handed_on(blocks: dict[int, Any]) -> set[str]:
    """Return the names of tables that something reads that asks them nothing, and that nothing changes."""
    tables = _tables(blocks)
    if not tables:
        return set()
    groups = {name: {name} for name in tables}
    for inst in instructions(blocks):
        if _is_dict(inst, tables) and isinstance(inst.value, ir.Var):
            joined = groups[inst.target.name] | groups[inst.value.name]
            groups |= dict.fromkeys(joined, joined)
    whole: set[str] = set()
    changed: set[str] = set()
    for inst in instructions(blocks):
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        if _is_dict(inst, tables) or isinstance(inst, ir.Del) or _may_ask(value, tables):
            continue
        of = changed if isinstance(inst, (ir.SetItem, ir.StaticSetItem, ir.DelItem)) else whole
        of |= {other for name in tables & read_in(inst) for other in groups[name]}
    return whole - changed


def refuse_others(func_ir: Any, items: bool = False) -> None:
    """Raise a CuteError, with its line, for a table that is asked what none is asked; for what is not answered too, if
    all that are known were found."""
    tables = _tables(func_ir.blocks)
    for inst in instructions(func_ir.blocks) if tables else ():
        if _is_dict(inst, tables):
            continue
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        if tables & read_in(inst) and (items or not _may_ask(value, tables)):
            raise located(CuteError(NO_DICT), inst.loc)


def refuse_keys(func_ir: Any, known: Constants) -> None:
    """Raise a CuteError, with its line, for a table that nobody asks and whose keys are not all static."""
    for inst, error in _keys(func_ir, known):
        if error:
            raise located(CuteError(error), inst.loc)


def _keys(func_ir: Any, known: Constants) -> Iterator[tuple[Any, str]]:
    """Yield the statements that make tables, each with what is wrong with its keys."""
    for place, inst in statements(func_ir.blocks):
        value: Any = inst.value if isinstance(inst, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op == "build_map":
            yield inst, next(filter(None, (_wrong_key(key, place, known) for key, _ in value.items)), "")


def _wrong_key(key: Any, place: Place, known: Constants) -> str:
    made, _ = known.assignment(key, place) or (None, place)
    if isinstance(made, ir.Expr) and "cute_list" in made._kws:
        return no_key("list")
    try:
        known.of(key, place)
    except NotConstant:
        return NO_KEY
    return ""


def _may_ask(value: Any, tables: set[str]) -> bool:
    """Say whether an expression may be a question that a table answers when more is known."""
    if not isinstance(value, ir.Expr):
        return False
    if value.op in ("getitem", "static_getitem", "getiter"):
        return value.value.name in tables
    if value.op == "getattr":
        return value.attr in ("keys", "values", "items", "get")
    if value.op == "call":  # of `len`, it may be
        return len(value.args) == 1 and not value.kws and value.args[0].name in tables
    return value.op == "binop" and value.fn is operator.contains and value.lhs.name in tables


def _tables(blocks: dict[int, Any]) -> set[str]:
    """Return the names of the tables that a function makes."""
    tables: set[str] = set()
    assigned = [i for i in instructions(blocks) if type(i) is ir.Assign]
    while new := {i.target.name for i in assigned if _is_dict(i, tables)} - tables:
        tables |= new
    return tables


def _is_dict(inst: Any, tables: set[str]) -> bool:
    value: Any = inst.value if type(inst) is ir.Assign else None
    if type(value) is ir.Var:
        return value.name in tables
    return type(value) is ir.Expr and value.op == "build_map"


def drop(blocks: dict[int, Any], kept: Container[int] = ()) -> bool:
    """Take away the tables, and their methods, that nothing reads any more, but for statements that are `kept`; say
    whether there were any."""
    tables = _tables(blocks)
    if not tables:
        return False
    dropped = False
    while True:
        read = set().union(*map(read_in, instructions(blocks)))
        dead = {
            id(i) for i in instructions(blocks) if _is_of(i, tables) and i.target.name not in read and id(i) not in kept
        }
        if not dead:
            return dropped
        dropped = True
        for block in blocks.values():
            block.body = [i for i in block.body if id(i) not in dead]


def _is_of(inst: Any, tables: set[str]) -> bool:
    """Say whether a statement makes a table, or a part of one of the module's, gives one another name, or takes a
    method of one."""
    value = inst.value if isinstance(inst, ir.Assign) else None
    if isinstance(value, ir.Global) and inst.target.name.startswith(_ITEM):
        return True
    method = isinstance(value, ir.Expr) and value.op == "getattr" and value.value.name in tables
    return method or _is_dict(inst, tables)
