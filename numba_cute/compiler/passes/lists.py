# SPDX-License-Identifier: Apache-2.0
"""Lists in Numba IR, before SSA. A kernel has none of its own: a list that a function makes is a tuple under one name,
and a change of it gives that name the next one, once the loop that it stands in is copied.

What else gets the list, a function, an object or a tuple, gets it as it is there (`bridge/list_types.py`): a list that
is handed on and changed afterwards is refused, as two would be seen where Python has one.
"""

from __future__ import annotations

import operator
from functools import cached_property
from types import ModuleType
from typing import Any

from ... import seam
from ...seam import CuteError
from ...seam.ground.packages import is_library
from ..ground.errors import located
from ..ground.memory import memory
from ..ground.numba_cuda import build_definitions, compute_cfg_from_blocks, ir
from .definitions import Place, instructions, statements
from .list_loops import follow
from .list_methods import delete_item, is_empty, method_of, repeated, set_item
from .list_names import CHANGING, GROWING, METHODS, assigned, one_name_each, put_in_place

_OF_LISTS = (list, sorted)
"""Functions that make a list."""
_READS = (
    len, tuple, list, sorted, sum, min, max, any, all, enumerate, zip, reversed, range, bool, print, map,
    seam.const_expr, operator.not_,
)  # fmt: skip
"""Functions that keep nothing of a list that they are given."""


@seam.traced
def as_list(items: Any) -> Any:
    """Return a list as it is handed on."""
    return list(items)


def growth(blocks: list[Any]) -> Any:
    """Return a statement by which a list grows in the blocks of a loop, other than one that each round makes anew;
    None if none does."""
    made = {i.target.name for b in blocks for i in b.body if isinstance(i, ir.Assign) and _makes(i.value)}
    return next((i for b in blocks for i in b.body if _grows(i) and i.value.value.name not in made), None)


def _makes(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "build_list"


def _grows(inst: Any) -> bool:
    value = inst.value if isinstance(inst, ir.Assign) else None
    return isinstance(value, ir.Expr) and value.op == "getattr" and value.attr in GROWING


def tuples_for_lists(func_ir: Any) -> tuple[bool, bool]:
    """Make tuples of lists, as in `mode=[1]`, the CuTe DSL's idiom, and of those that change outside of loops. Say
    whether something changed, and whether more may when branches are decided and loops are unrolled."""
    named, changed = one_name_each(func_ir)
    made = _Lists(func_ir, named)
    if not made.any:
        return changed, made.may_begin
    made.refuse_second_holders()
    follow(func_ir.blocks, made)
    waiting = made.waiting()
    for block in func_ir.blocks.values():
        body: list[Any] = []
        for inst in block.body:
            new = made.rewritten(inst, block.scope, waiting)
            changed |= new is not None
            body += [inst] if new is None else new
        block.body = body
    if changed:
        func_ir._definitions = build_definitions(func_ir.blocks)
    return changed, bool(waiting) or made.mixes or made.may_begin


def refuse_growing(func_ir: Any) -> None:
    """Raise a CuteError, with its line, for a list that grows in a loop of run time when all others are copied."""
    growing = [inst for block in func_ir.blocks.values() for inst in block.body if _grows(inst)]
    made = _Lists(func_ir, assigned(func_ir.blocks)) if growing else None
    for inst in growing:
        if made is not None and made.changed(inst) is not None:
            raise located(CuteError(GROWS), inst.loc)


GROWS = (
    "a list grows in a loop, or on a way, that only run time decides: a kernel's lists have static lengths; use a "
    "register tensor for what is counted at run time"
)


class _Lists:
    """The lists of a function as its IR is now. any: whether it makes one. may_begin: whether a call makes one on some
    ways. names: the variables that are nothing but lists that it makes itself; mixes: whether others are such a list on
    some ways; _methods: the variables that are such a list's methods."""

    def __init__(self, func_ir: Any, made: dict[str, list[Any]]) -> None:
        self._ir, self.made, self.may_begin = func_ir, made, False
        self._begun = {id(v) for vs in made.values() for v in vs if type(v) is ir.Expr and self._begins_list(v)}
        self.any = bool(self._begun)
        self._find_names()
        self._methods = {
            n for n, vs in (made.items() if self.names else ()) for v in vs
            if type(v) is ir.Expr and v.op == "getattr" and v.value.name in self.names
        }  # fmt: skip

    def _made_of(self) -> dict[str, list[str]]:
        """Return by name what is made of it, if it is a list: copies, slices, sums."""
        of: dict[str, list[str]] = {}
        for name, values in self.made.items() if self.any else ():
            for value in values:
                if type(value) is ir.Expr and value.op in _OPERATORS:
                    reads = value.list_vars()
                else:
                    read = self._copied(value) if type(value) is ir.Expr else value
                    reads = [read] if type(read) is ir.Var else []
                for read in reads:
                    of.setdefault(read.name, []).append(name)
        return of

    def _find_names(self) -> None:
        """Find the lists that begin here and what is made of them, but for what is something else too, and what is made
        of that."""
        of = self._made_of()
        found: set[str] = set()
        todo = [n for n, vs in (self.made.items() if self.any else ()) for v in vs if id(v) in self._begun]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += of.get(name, ())
        self.names: set[str] = {n for n in found if all(map(self._may_be_list, self.made[n]))}
        todo = list(self.names)
        self.mixes = self.names != found
        while todo:
            name = todo.pop()
            if name in self.names and not all(map(self._is_list, self.made[name])):
                self.names.discard(name)
                self.mixes = True
                todo += of.get(name, ())

    def _begins_list(self, value: Any) -> bool:
        if value.op != "call":
            return value.op == "build_list" or "cute_list" in value._kws
        found = self._values(value.func.name)
        of_lists = [any(v is f for f in _OF_LISTS) for v in found]
        self.may_begin |= any(of_lists) and not all(of_lists)
        return "cute_list" in value._kws or (all(of_lists) and self.function(value) is not _UNKNOWN)

    def _may_be_list(self, value: Any) -> bool:
        """Say whether a value is a list, or may be one if those that it is made of are."""
        if type(value) is ir.Var or id(value) in self._begun:
            return True
        return type(value) is ir.Expr and (value.op in _OPERATORS or self._copied(value) is not None)

    def _copied(self, value: Any) -> Any:
        """Return the variable of which a value is `x.copy()`; None if it is something else."""
        made = self.made.get(value.func.name, ()) if value.op == "call" else ()
        method = made[0] if len(made) == 1 and type(made[0]) is ir.Expr and made[0].op == "getattr" else None
        return None if method is None or method.attr != "copy" else method.value

    def _is_list(self, value: Any) -> bool:
        if id(value) in self._begun:
            return True
        if isinstance(value, ir.Var):
            return value.name in self.names
        if value.op == "static_getitem":
            return isinstance(value.index, slice) and value.value.name in self.names
        if value.op == "inplace_binop":
            return value.lhs.name in self.names
        if value.op == "call":
            return self._copied(value).name in self.names
        sides = [v.name in self.names for v in (value.lhs, value.rhs)]
        return (value.fn is operator.add and all(sides)) or (value.fn is operator.mul and any(sides))

    @cached_property
    def _read(self) -> set[str]:
        """The variables that a statement reads, other than one that sets them."""
        found: set[str] = set()
        for inst in instructions(self._ir.blocks):
            own = inst.target.name if isinstance(inst, ir.Assign) else ""
            found |= {v.name for v in inst.list_vars() if v.name != own}
        return found

    def function(self, call: Any) -> Any:
        """Return what a call calls, if it is one global, or a member of one."""
        return self._value(call.func.name)

    def _value(self, name: str) -> Any:
        found = self._values(name)
        return found[0] if found and all(f is found[0] for f in found) else _UNKNOWN

    def _values(self, name: str) -> list[Any]:
        return [v.value if type(v) in _WRITTEN else self._member(v) for v in self.made.get(name, ())]

    def _member(self, value: Any) -> Any:
        if not isinstance(value, ir.Expr) or value.op != "getattr":
            return _UNKNOWN
        base = self._value(value.value.name)
        return getattr(base, value.attr, _UNKNOWN) if isinstance(base, (ModuleType, type)) else _UNKNOWN

    def changed(self, inst: Any) -> Any:
        """Return the list's variable that a statement changes; None if it changes none."""
        if not self.names:
            return None
        if isinstance(inst, (ir.SetItem, ir.StaticSetItem, ir.DelItem)):
            return inst.target if inst.target.name in self.names else None
        value: Any = inst.value if type(inst) is ir.Assign else None
        if type(value) is not ir.Expr:
            return None
        if value.op == "getattr" and value.attr in CHANGING and value.value.name in self.names:
            return value.value
        if value.op == "inplace_binop" and value.lhs.name in self.names:
            return value.lhs
        return None

    def waiting(self) -> set[str]:
        """Return the lists that grow in a loop, which is to be copied first, and that its rounds do not make anew."""
        found: set[str] = set()
        methods = (v for name in self._methods for v in self.made[name] if type(v) is ir.Expr and v.op == "getattr")
        if all(v.attr not in GROWING for v in methods):
            return found
        for loop in compute_cfg_from_blocks(self._ir.blocks).loops().values():
            body = [inst for label in loop.body for inst in self._ir.blocks[label].body]
            own = {i.target.name for i in body if isinstance(i, ir.Assign) and id(i.value) in self._begun}
            grown = {var.name for i in body if _grows(i) and (var := self.changed(i)) is not None}
            found |= grown - own
        return found

    # ------------------------------------------------------------ holders

    def holds(self, inst: Any) -> list[Any]:
        """Return the variables of lists that a statement hands on to what may keep them."""
        value: Any = inst.value if type(inst) is ir.Assign else None
        op = value.op if type(value) is ir.Expr else ""
        if isinstance(inst, ir.SetAttr) or self._mixes(inst):
            given = [inst.value]
        elif op == "cast":  # what a function returns
            given = [value.value]
        elif op in ("build_tuple", "build_list", "build_set"):
            given = value.items
        elif op == "build_map":
            given = [v for pair in value.items for v in pair]
        elif op == "call":
            given = [*value.args, *(v for _, v in value.kws), *([value.vararg] if value.vararg is not None else [])]
        else:
            return []
        lists = [v for v in given if v.name in self.names]
        if lists and op == "call" and self._keeps_nothing(value):
            return []
        if lists and op not in ("", "call") and inst.target.name not in self._read:  # as what an inlined closure held
            return []
        return lists

    def _mixes(self, inst: Any) -> bool:
        """Say whether a statement gives a list to a name that is something else too."""
        return type(inst) is ir.Assign and type(inst.value) is ir.Var and inst.target.name not in self.names

    def _keeps_nothing(self, call: Any) -> bool:
        function = self.function(call)
        if any(function is f for f in _READS):
            return True
        if call.func.name in self._methods:
            return True
        return function is not _UNKNOWN and is_library(getattr(function, "__module__", ""))

    def _only_asks(self, inst: Any) -> bool:
        call = inst.value if isinstance(inst.value, ir.Expr) and inst.value.op == "call" else None
        return call is not None and any(self.function(call) is f for f in (isinstance, type))

    def _aliases(self, changing: set[str]) -> None:
        """Raise a CuteError, with its line, for a list of two names of the source that changes under one of them."""
        groups: dict[str, set[str]] = {n: {n} for n in self.names}
        for inst in instructions(self._ir.blocks):
            value = inst.value if isinstance(inst, ir.Assign) else None
            if not isinstance(value, ir.Var) or not {value.name, inst.target.name} <= self.names:
                continue
            group = groups[value.name] | groups[inst.target.name]
            groups.update(dict.fromkeys(group, group))
            own = sorted(n for n in group if not memory().inlined.get(n.split(".")[0], n).startswith("$"))
            if len(own) > 1 and group & changing:
                raise located(CuteError(_second(own[0], inst)), inst.loc)

    def refuse_second_holders(self) -> None:
        """Raise a CuteError, with its line, for a list that is handed on and then changed."""
        todo = list(statements(self._ir.blocks)) if self.names else []
        changing = {v.name for _, i in todo if (v := self.changed(i)) is not None}
        if not changing:
            return
        self._aliases(changing)
        cfg = None
        for place, inst in todo:
            for var in self.holds(inst):
                if var.name in changing:
                    cfg = cfg or compute_cfg_from_blocks(self._ir.blocks)
                    later = None if self._only_asks(inst) else self._changed_after(place, var.name, cfg)
                    if later is not None:
                        raise located(CuteError(_second(var.name, inst)), later.loc)

    def _changed_after(self, place: Place, name: str, cfg: Any) -> Any:
        """Return a statement that changes a list after a place, before another list has its name."""
        seen: set[int] = set()
        todo = [(place.label, place.index + 1)]
        while todo:
            label, start = todo.pop()
            for inst in self._ir.blocks[label].body[start:]:
                var = self.changed(inst)
                if var is not None and var.name == name:
                    return inst
                if isinstance(inst, ir.Assign) and inst.target.name == name:
                    break
            else:
                new = [to for to, _ in cfg.successors(label) if to not in seen]
                seen |= set(new)
                todo += [(to, 0) for to in new]
        return None

    # ------------------------------------------------------------ rewriting

    def rewritten(self, inst: Any, scope: Any, waiting: set[str]) -> list[Any] | None:
        """Return the statements for one that makes, changes or hands on a list; None if it stays."""
        value: Any = getattr(inst, "value", None)
        op = value.op if type(inst) is ir.Assign and type(value) is ir.Expr else ""
        if type(inst) is ir.Assign and not op and not self._mixes(inst):
            return None
        if op == "getattr":  # of a method that changes a list or that a tuple lacks: its call finds it
            taken = value.attr in METHODS and value.value.name in self.names and value.value.name not in waiting
            return [] if taken else None
        if op == "call":
            return self._called(inst, scope, waiting)
        changed = self.changed(inst)
        if changed is not None:
            return None if changed.name in waiting else self._change(inst, changed, scope)
        before = self._handed_on(inst, scope, waiting)
        if op and inst.target.name not in waiting:
            if op == "unary" and value.fn is operator.not_ and value.value.name in self.names - waiting:
                made, new = self._call_of(is_empty, [value.value], scope, inst.loc)
                return [*made, ir.Assign(new, inst.target, inst.loc)]
            if op == "build_list":
                inst.value = value = _marked(ir.Expr.build_tuple(value.items, inst.loc))
                return [*before, *self._named(inst, scope)]
            operates = op in ("binop", "inplace_binop") and "cute_list" not in value._kws
            if operates and any(v.name in self.names - waiting for v in (value.lhs, value.rhs)):
                return [*before, *self._operate(inst, scope)]
        return [*before, inst] if before else None

    def _named(self, inst: Any, scope: Any) -> list[Any]:
        """Hand a list on to a name that is something else too: where the two meet, their types tell them apart."""
        if inst.target.name in self.names:
            return [inst]
        target, inst.target = inst.target, scope.redefine("$numba_cute_tuple", inst.loc)
        made, new = self._call_of(as_list, [inst.target], scope, inst.loc)
        return [inst, *made, ir.Assign(new, target, inst.loc)]

    def _called(self, inst: Any, scope: Any, waiting: set[str]) -> list[Any] | None:
        """Rewrite `list(x)`, and calls of a list's methods and of what is handed a list."""
        call = inst.value
        if id(call) in self._begun and self.function(call) is list and inst.target.name not in waiting:
            function = scope.redefine("$numba_cute_tuple", inst.loc)
            made = ir.Assign(ir.Global("tuple", tuple, inst.loc), function, inst.loc)
            items = ir.Expr.call(function, call.args, (), inst.loc)
            if not call.args:
                items = ir.Expr.build_tuple([], inst.loc)
            inst.value = _marked(items)
            return [made, *self._named(inst, scope)]
        method = self.made[call.func.name][0] if call.func.name in self._methods else None
        if isinstance(method, ir.Expr) and method.op == "getattr" and method.value.name in self.names - waiting:
            if method.attr in METHODS and not call.kws:
                return self._call_method(inst, method, scope)
            if method.attr in METHODS:
                raise located(CuteError(f"x.{method.attr}(…) of a list takes no named arguments in a kernel"), inst.loc)
        before = self._handed_on(inst, scope, waiting)
        return [*before, inst] if before else None

    def _call_method(self, inst: Any, method: Any, scope: Any) -> list[Any]:
        lst, loc = method.value, inst.loc
        if method.attr == "append" and len(inst.value.args) == 1:
            one = scope.redefine("$numba_cute_one", loc)
            before, (item,) = self._items([inst.value.args[0]], scope, loc)
            return [
                *before,
                ir.Assign(ir.Expr.build_tuple([item], loc), one, loc),
                ir.Assign(_marked(ir.Expr.binop(operator.add, lst, one, loc)), lst, loc),
                ir.Assign(ir.Const(None, loc), inst.target, loc),
            ]
        if method.attr == "copy":
            return [ir.Assign(_marked(ir.Expr.cast(lst, loc)), inst.target, loc)]
        given = list(inst.value.args)
        before, given = ([], given) if method.attr == "extend" else self._items(given, scope, loc)
        made, pair = self._call_of(method_of(method.attr), [lst, *given], scope, loc)
        made = [*before, *made]
        items, result = (ir.Expr.static_getitem(pair, i, None, loc) for i in (0, 1))
        if method.attr in CHANGING:
            made.append(ir.Assign(_marked(items), lst, loc))
        return [*made, ir.Assign(result, inst.target, loc)]

    def _items(self, given: list[Any], scope: Any, loc: Any) -> tuple[list[Any], list[Any]]:
        """Hand on those of some variables that are lists, to be items or what is compared with them: return the
        statements, and the variables."""
        before: list[Any] = []
        items: list[Any] = []
        for var in given:
            made, new = self._call_of(as_list, [var], scope, loc) if var.name in self.names else ([], var)
            before += made
            items.append(new)
        return before, items

    def _change(self, inst: Any, lst: Any, scope: Any) -> list[Any]:
        """Rewrite `x[i] = y`, `del x[i]` and `x += y`."""
        loc = inst.loc
        if isinstance(inst, (ir.SetItem, ir.StaticSetItem)):
            before, (value,) = self._items([inst.value], scope, loc)
            made, new = self._call_of(set_item, [lst, _index(inst), value], scope, loc)
            made = [*before, *made]
        elif isinstance(inst, ir.DelItem):
            made, new = self._call_of(delete_item, [lst, inst.index], scope, loc)
        else:
            return self._grown(inst, lst, scope)
        return [*made, ir.Assign(new, lst, loc)]

    def _grown(self, inst: Any, lst: Any, scope: Any) -> list[Any]:
        loc, method = inst.loc, "extend" if inst.value.immutable_fn is operator.add else "__imul__"
        made, pair = self._call_of(method_of(method), [lst, inst.value.rhs], scope, loc)
        made.append(ir.Assign(_marked(ir.Expr.static_getitem(pair, 0, None, loc)), lst, loc))
        return [*made, ir.Assign(lst, inst.target, loc)]

    def _call_of(self, fn: Any, args: list[Any], scope: Any, loc: Any) -> tuple[list[Any], Any]:
        """Return the statements that call a function of this file, and the variable of what it gives."""
        function, result = (scope.redefine("$numba_cute_list", loc) for _ in range(2))
        called = ir.Assign(ir.Global(fn.__name__, fn, loc), function, loc)
        return [called, ir.Assign(ir.Expr.call(function, args, (), loc), result, loc)], result

    def _handed_on(self, inst: Any, scope: Any, waiting: set[str]) -> list[Any]:
        """Hand on lists as lists; return the statements that make them so."""
        before: list[Any] = []
        replaced: dict[str, Any] = {}
        for var in self.holds(inst):
            if var.name not in waiting and var.name not in replaced:
                made, new = self._call_of(as_list, [var], scope, inst.loc)
                before += made
                replaced[var.name] = new
        if replaced:
            put_in_place(inst, replaced)
        return before

    def _operate(self, inst: Any, scope: Any) -> list[Any]:
        """Rewrite an operator of a list: `is` is decided by the names; beside anything else than such a list, and where
        it is looked for, a list is handed on, for a list is not a tuple."""
        value, loc = inst.value, inst.loc
        sides = [v.name in self.names for v in (value.lhs, value.rhs)]
        if value.fn in (operator.is_, operator.is_not):
            same = value.lhs.name == value.rhs.name
            inst.value = ir.Const(same is (value.fn is operator.is_), loc)
        elif value.fn is operator.mul:
            items, count = (value.lhs, value.rhs) if sides[0] else (value.rhs, value.lhs)
            made, new = self._call_of(repeated, [items, count], scope, loc)
            return [*made, ir.Assign(_marked(ir.Expr.cast(new, loc)), inst.target, loc)]
        elif value.fn is operator.contains or not all(sides):
            places = ("rhs",) if value.fn is operator.contains else ("lhs", "rhs")
            before, new = self._items([getattr(value, side) for side in places], scope, loc)
            value._kws.update(zip(places, new))
            return [*before, inst]
        return [inst]


_UNKNOWN = object()
_WRITTEN = frozenset((ir.Global, ir.FreeVar, ir.Const))
_OPERATORS = frozenset(("static_getitem", "inplace_binop", "binop"))
"""Expressions that give a list of one."""


def _marked(expr: Any) -> Any:
    """Note that an expression is a list that this function makes."""
    expr._kws["cute_list"] = True
    return expr


def _index(inst: Any) -> Any:
    return inst.index_var if isinstance(inst, ir.StaticSetItem) else inst.index


def _second(name: str, inst: Any) -> str:
    shown = "the list" if name.startswith("$") else name
    return (
        f"{shown} changes after line {inst.loc.line} has handed it on: a kernel would see two lists where Python has "
        f"one; hand it on when it is whole, or a tuple of it, tuple({shown})"
    )
