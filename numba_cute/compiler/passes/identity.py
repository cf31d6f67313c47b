# SPDX-License-Identifier: Apache-2.0
"""Objects are what they are in Python, or refused: a statement that makes one has one slot in the frame.

Which objects a variable may hold is found for the whole function (of a field, a tuple or a call's result: whatever it
may lead to); which variables are used later, for each statement that makes an object in a loop. If one of them may hold
what that statement made in an earlier round, both would be one object: that is refused. So is a store of an object into
one that outlives the frame.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from ...seam import CuteError
from ..bridge import effects
from ..bridge.effects import NEW, NOTHING, Effects, Sources, kinds
from ..bridge.lasting import is_lasting_function, lasts
from ..bridge.list_types import is_list
from ..bridge.object_types import BoundJitted, BoundTraced, StructRef, Value
from ..ground.errors import located
from ..ground.memory import LASTING, effects_of, memory
from ..ground.numba_cuda import AnalysisPass, ir, register_pass, types
from .copied import Copied, copy_carried, copy_into_fields, sets_field
from .definitions import statements
from .second_rounds import second_rounds


class Site(NamedTuple):
    """A statement that makes an object."""

    label: int
    at: int


Objects = frozenset[Any]
"""The objects that a variable may hold: numbers of arguments, or of an argument and an item of it, for them and all
that they lead to, and sites."""
NONE: Objects = frozenset()


@register_pass(mutates_CFG=False, analysis_only=True)
class Identity(AnalysisPass):
    _name = "numba_cute_identity"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if any(map(kinds, state.typemap.values())):
            found = Held(state.func_ir.blocks, state.typemap, state.calltypes)
            _refuse_escapes(found)
            again = second_rounds(found)
            while again and _copied(found, again):
                found = Held(state.func_ir.blocks, state.typemap, state.calltypes)
                again = second_rounds(found)
            for inst, holders in again:
                raise located(CuteError(_again(found, inst, holders)), inst.loc)
            function, args = state.cute_function, tuple(state.args)
            kept = LASTING if is_lasting_function(function) and all(map(lasts, args)) else memory()
            kept.effects[function, args] = found.effects()
        return False


class Held:
    """The objects that the variables of a function may hold."""

    def __init__(self, blocks: dict[int, Any], typemap: Any, calltypes: Any) -> None:
        self.blocks, self.typemap, self.calltypes = blocks, typemap, calltypes
        self.vars: dict[str, Objects] = defaultdict(lambda: NONE)
        self.items: dict[str, tuple[Objects, ...]] = {}
        self.inside: dict[Site, Objects] = defaultdict(lambda: NONE)
        self.sites: dict[Site, Any] = {}
        self.stored: set[Site] = set()  # whose objects are stored in others: of which kinds is not known
        self.stores: list[tuple[Objects, Objects, Any]] = []
        self._todo = [(p, i) for p, i in statements(blocks) if self._concerns(i)]
        self._changed = True
        while self._changed:
            self._changed, self.stores = False, []
            for place, inst in self._todo:
                self._follow(Site(*place), inst)

    def _concerns(self, inst: Any) -> bool:
        if isinstance(inst, ir.Assign):
            value = inst.value
            called = isinstance(value, ir.Expr) and value.op in ("call", "inplace_binop")
            return called or bool(kinds(self.typemap.get(inst.target.name)))
        return isinstance(inst, (ir.SetAttr, ir.SetItem, ir.StaticSetItem, ir.Return))

    def reach(self, objects: Objects) -> Objects:
        """Return some objects and all that they hold."""
        found, todo = set(objects), list(objects)
        while todo:
            new = self.inside.get(todo.pop(), NONE) - found
            found |= new
            todo += new
        return frozenset(found)

    def _grow(self, known: Any, key: Any, objects: Objects) -> None:
        if not objects <= known[key]:
            known[key] |= objects
            self._changed = True

    def _store(self, into: Objects, what: Objects, inst: Any) -> None:
        """Note that one of `into` holds `what` from now on; all that they hold does, but for a field that is set."""
        self.stores.append((into, what, inst))
        for target in self.owners(inst) if sets_field(inst, self.typemap) else self.reach(into):
            if isinstance(target, Site):
                self._grow(self.inside, target, what)

    def owners(self, inst: Any) -> Objects:
        """Return the objects, one of which a statement sets a field of: not those that they hold."""
        kind = frozenset((self.typemap[inst.target.name]._key,))
        return frozenset(x for x in self.vars[inst.target.name] if self._is_of(x, kind))

    # ------------------------------------------------------------------ statements
    def _follow(self, place: Site, inst: Any) -> None:
        if isinstance(inst, Copied):
            self.sites[place] = inst
            self._grow(self.vars, inst.target.name, frozenset((place,)))
        elif isinstance(inst, ir.Assign):
            found, items = self._value(place, inst)
            wanted = kinds(self.typemap.get(inst.target.name))
            if wanted:
                found = frozenset(x for x in found if self._is_of(x, wanted))
                self._grow(self.vars, inst.target.name, found)
                if items is not None:
                    self.items[inst.target.name] = items
        elif isinstance(inst, ir.SetAttr):
            if self.vars[inst.value.name]:
                self._store(self.vars[inst.target.name], self.vars[inst.value.name], inst)
        elif isinstance(inst, (ir.SetItem, ir.StaticSetItem)) and self.vars[inst.value.name]:
            if isinstance(self.typemap[inst.target.name], StructRef):
                self._store(self.vars[inst.target.name], self.vars[inst.value.name], inst)

    def _is_of(self, x: Any, wanted: frozenset[Any]) -> bool:
        """Say whether a value of these kinds may hold an object, or lead to it."""
        if not isinstance(x, Site) or x in self.stored:
            return True
        return bool(kinds(self.typemap[self.sites[x].target.name]) & wanted)

    def _value(self, place: Site, inst: Any) -> tuple[Objects, tuple[Objects, ...] | None]:
        value = inst.value
        if isinstance(value, ir.Arg):
            ty = self.typemap[inst.target.name]
            split = isinstance(ty, types.BaseTuple) and not is_list(ty)
            each = tuple(frozenset(((value.index, k),)) for k in range(len(ty))) if split else None
            return frozenset((value.index,)), each
        if isinstance(value, ir.Var):
            return self.vars[value.name], self.items.get(value.name)
        if not isinstance(value, ir.Expr):
            return NONE, None
        if value.op in ("cast", "exhaust_iter"):
            return self.vars[value.value.name], self.items.get(value.value.name)
        if value.op in ("build_tuple", "build_list"):
            items = tuple(self.vars[v.name] for v in value.items)
            return NONE.union(*items), items
        if value.op == "static_getitem" and isinstance(value.index, int) and value.value.name in self.items:
            items = self.items[value.value.name]
            return items[value.index] if -len(items) <= value.index < len(items) else NONE, None
        if value.op == "getattr":
            return self._attribute(inst, self.vars[value.value.name], self.typemap[value.value.name]), None
        if value.op == "call":
            return self._call(place, inst, value)
        used = [v.name for v in value.list_vars()]
        held = NONE.union(*(self.vars[v] for v in used))
        if value.op in ("binop", "inplace_binop", "unary", "getitem", "static_getitem") and any(
            isinstance(self.typemap[v], StructRef) for v in used
        ):
            return self._unknown(place, inst, used), None
        return held, None

    def _attribute(self, inst: Any, held: Objects, ty: Any) -> Objects:
        if not isinstance(ty, StructRef) or isinstance(self.typemap[inst.target.name], types.BoundFunction):
            return held
        if inst.value.attr in ty.types:
            inner = NONE.union(*(self.inside[x] if isinstance(x, Site) else frozenset((x,)) for x in held))
            return inner
        return self.reach(held)

    # ------------------------------------------------------------------ calls
    def _call(self, place: Site, inst: Any, call: Any) -> tuple[Objects, tuple[Objects, ...] | None]:
        func, sig = self.typemap[call.func.name], self.calltypes[call]
        makes = bool(kinds(self.typemap[inst.target.name]))
        if not makes and not any(self.vars[v.name] for v in call.list_vars()):
            return NONE, None
        receiver, args = _arguments(call, func, sig)
        names = [n for group in (*receiver, *args) for n in group]
        if not makes and not any(self.vars[n] for n in names):
            return NONE, None
        known = self._effects(func, sig)
        if known is None:
            return self._unknown(place, inst, names), None
        groups = [
            (NONE.union(*(self.vars[n] for n in group)), self.items.get(group[0]) if len(group) == 1 else None)
            for group in (*receiver, *args)
        ]
        return self._done(place, inst, known, groups)

    def _effects(self, func: Any, sig: Any) -> Effects | None:
        own = (sig.recvr,) if sig.recvr is not None else ()
        if isinstance(func, BoundTraced):
            return effects.of((*func.typing_key, (*own, *sig.args)))
        if isinstance(func, Value):
            return effects.of((Value, func.spec, (*own, *sig.args)))
        dispatcher = func.dispatcher if isinstance(func, (BoundJitted, types.Dispatcher)) else None
        function = getattr(dispatcher, "py_func", None)
        found: Effects | None = effects_of((function, (*own, *sig.args)))
        return found

    def _done(
        self, place: Site, inst: Any, known: Effects, groups: list[tuple[Objects, tuple[Objects, ...] | None]]
    ) -> tuple[Objects, tuple[Objects, ...] | None]:
        def objects(sources: Sources) -> Objects:
            made = frozenset((place,)) if NEW in sources else NONE
            return made.union(*(self._given(groups, i) for i in sources if i != NEW))

        if any(NEW in what for _, what in known.stores):
            self.stored.add(place)
        if NEW in known.result or place in self.stored:
            self._make(place, inst, objects(known.inside))
        for into, what in known.stores:
            self._store(objects(into), objects(what), inst)
        items = None if known.items is None else tuple(map(objects, known.items))
        return objects(known.result), items

    def _given(self, groups: list[tuple[Objects, tuple[Objects, ...] | None]], source: Any) -> Objects:
        number, item = source if isinstance(source, tuple) else (source, None)
        if number >= len(groups):
            return NONE.union(*(held for held, _ in groups))
        held, items = groups[number]
        return self.reach(held if item is None or items is None or item >= len(items) else items[item])

    def _unknown(self, place: Site, inst: Any, names: list[str]) -> Objects:
        """Return what a call of which nothing is known may give: a new object, or any of its own of such a type."""
        wanted = kinds(self.typemap[inst.target.name])
        if not wanted:
            return NONE
        held = NONE.union(*(self.vars[n] for n in names if kinds(self.typemap[n]) & wanted))
        self._make(place, inst, self.reach(held))
        return self.reach(held) | {place}

    def _make(self, place: Site, inst: Any, inside: Objects) -> None:
        """Note a statement that makes an object, which holds those of `inside` that its type leads to."""
        self.sites[place] = inst
        if place not in self.stored:
            led_to = kinds(self.typemap[inst.target.name])
            inside = frozenset(x for x in inside if self._is_of(x, led_to))
        self._grow(self.inside, place, inside | {place})

    # ------------------------------------------------------------------ the whole
    def effects(self) -> Effects:
        """Return what a call of the function does."""
        returned = [i.value.name for _, i in self._todo if isinstance(i, ir.Return)]
        lists = [self.items.get(name) for name in returned]
        items = None
        if lists and all(x is not None and len(x) == len(lists[0] or ()) for x in lists):
            items = tuple(_sources(NONE.union(*group)) for group in zip(*lists))
        result = NONE.union(*(self.vars[name] for name in returned))
        inside = _sources(self.reach(result)) if any(isinstance(x, Site) for x in result) else NOTHING
        stores = frozenset((_sources(a) - {NEW}, _sources(b)) for a, b, _ in self.stores)
        return Effects(_sources(result), items, inside, frozenset((a, b) for a, b in stores if a and b))


def _sources(objects: Objects) -> Sources:
    return frozenset(NEW if isinstance(x, Site) else x for x in objects)


def _arguments(call: Any, func: Any, sig: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Return the variables of a call's receiver and of each argument, as its signature has them."""
    receiver = [[call.func.name]] if sig.recvr is not None else []
    if sig.pysig is None or call.vararg is not None:
        names = [v.name for v in (*call.args, *(v for _, v in call.kws))]
        return receiver, [names] if call.vararg is None else [[*names, call.vararg.name]] * len(sig.args)
    try:
        bound = sig.pysig.bind(*call.args, **dict(call.kws)).arguments
    except TypeError:
        return receiver, [[v.name for v in (*call.args, *(v for _, v in call.kws))]] * len(sig.args)
    given = (bound.get(name, ()) for name in sig.pysig.parameters)
    return receiver, [[v.name for v in (x if isinstance(x, tuple) else (x,))] for x in given]


# ---------------------------------------------------------------- what is refused


def _refuse_escapes(found: Held) -> None:
    """Refuse to store an object of the frame in one that outlives it."""
    for into, what, inst in found.stores:
        if any(not isinstance(x, Site) for x in into) and any(isinstance(x, Site) for x in found.reach(what)):
            raise located(
                CuteError(
                    "an object that is made in this function is stored in one that the caller has, and is gone when "
                    "the function returns: make it in the caller and pass it, or return it"
                ), inst.loc,
            )  # fmt: skip


def _copied(found: Held, again: list[tuple[Any, list[str]]]) -> bool:
    """Let copies stand for objects that are made in each round, where a copy is the object; say whether there was
    one."""
    if copy_carried(found.blocks, found.typemap, {n for _, holders in again for n in holders}):
        return True
    new = {i.target.name for i, _ in again if len(found.vars[i.target.name]) == 1}
    return copy_into_fields(found.blocks, found.typemap, new)


def _again(found: Held, inst: Any, holders: list[str]) -> str:
    named = [n.split(".")[0] for n in holders if not n.startswith("$")]
    by = f"{named[0]} may still be" if named else "a value may still be one"
    return (
        f"this line makes an object in each round of a loop, and {by} that of an earlier round when it is made again: "
        "one line is one object of the kernel's frame. Make two before the loop, or copy"
    )
