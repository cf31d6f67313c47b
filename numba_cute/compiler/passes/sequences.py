# SPDX-License-Identifier: Apache-2.0
"""Loops and comprehensions over tuples in Numba IR, before SSA.

`for t in (a, b):` is copied, one copy an item, since the items have types of their own, or are static; over numbers of
run time, or many, it is Numba's loop. Every loop in which a list grows is copied too, over a `range` as well, and so
is every comprehension (see `lists`).
"""

from __future__ import annotations

import builtins
from typing import Any

from ... import seam
from ...seam import CuteError
from ..ground.errors import located
from ..ground.numba_cuda import compute_cfg_from_blocks, ir, types
from . import lists
from .at_most_once import runs_once
from .constants import Constants, NotConstant
from .definitions import Place, instructions
from .typed_constants import TypedConstants
from .unroll import Late, indices, unroll

_MAKERS = (enumerate, zip, reversed)
_FEW = 64
"""Loops over at most so many static numbers are copied."""
_NUMBERS = (types.Number, types.Boolean, types.IntegerLiteral, types.BooleanLiteral)


class Sequences:
    """The loops of a function that go over tuples. known, typed: what is known of its variables as it is now."""

    def __init__(self, func_ir: Any, known: Constants, typed: TypedConstants) -> None:
        self._ir, self._known, self._typed = func_ir, known, typed
        self.cfg = compute_cfg_from_blocks(func_ir.blocks)

    def unroll_at(self, place: Place) -> bool:
        """Unroll the loop over what the statement at a place makes an iterator of, if it is to be copied; say whether
        it was."""
        block = self._ir.blocks[place.label]
        begins, loc = block.body[place.index].value, block.body[place.index].loc
        over, follows = begins.value, "cute_follows" in begins._kws
        loop = self._loop(block)
        if loop is None:
            return False
        grows = lists.growth(loop)
        made = _Maker(self, block.scope, loc, follows)
        items: list[Any] | None
        if grows and self._called(over, place)[0] is builtins.range:
            items = self._indices(over, place, made, located(CuteError(lists.GROWS), grows.loc))
        elif not grows and not follows and self._is_plain(over, place):
            return False
        else:
            items = made.items(over, place)
        if items is None:
            if grows or follows:
                raise located(_unknown_length(), loc)
            return False
        block.body[place.index : place.index] = made.statements
        unroll(self._ir, place.label, place.index + len(made.statements), list(map(made.in_its_round, items)))
        _drop_makers(self._ir.blocks)
        return True

    def stays(self, place: Place) -> bool:
        """Say, without asking for types, whether the loop over what the statement at a place makes an iterator of is
        left as it is now: one over a `range` in which no list grows, and which may run more than once; or one over
        `range_constexpr`, which is unrolled by its call."""
        over = self._ir.blocks[place.label].body[place.index].value.value
        function = self._called(over, place)[0]
        if function is seam.range_constexpr:
            return True
        if function is not builtins.range or runs_once(over, place, self._known):
            return False
        return not lists.growth(self._loop(self._ir.blocks[place.label]) or [])

    def _loop(self, block: Any) -> list[Any] | None:
        """Return the blocks of the loop that follows a block; None if none follows."""
        targets = block.terminator.get_targets() if isinstance(block.terminator, ir.Jump) else ()
        loop = self.cfg.loops().get(targets[0]) if targets else None
        return None if loop is None else [self._ir.blocks[b] for b in loop.body]

    def _called(self, var: Any, place: Place) -> tuple[Any, Any]:
        """Return the function and the call that a variable comes from; None twice if it comes from none."""
        made, at = self._known.assignment(var, place) or (None, place)
        if isinstance(made, ir.Expr) and made.op == "call" and made.vararg is None:
            try:
                function = self._known.of(made.func, at)
            except NotConstant:
                return None, None
            if function is enumerate and [n for n, _ in made.kws] == ["start"] and len(made.args) == 1:
                made.args, made.kws = [*made.args, made.kws[0][1]], ()
            return (None, None) if made.kws else (function, (made, at))
        return None, None

    def _indices(self, over: Any, place: Place, made: _Maker, unknown: CuteError) -> list[Any]:
        call, at = self._called(over, place)[1]
        return [ir.Const(i, made.loc) for i in indices(call, at, self._known, self._typed, unknown)]

    def _is_plain(self, over: Any, place: Place) -> bool:
        """Say whether a loop is one of Numba's: over many numbers, or those of run time, or what is not a tuple."""
        function, call = self._called(over, place)
        if function is builtins.range:  # asked first: types take long to find
            return True
        if function in _MAKERS:  # which Numba does not know of tuples
            parts = call[0].args if function is zip else call[0].args[:1]
            return all(self._is_plain(a, call[1]) and not self._is_tuple(a, call[1]) for a in parts)
        if function is not None:
            return function is not tuple and not self._of_tuples(over, place)
        try:
            value = self._known.of(over, place)
        except NotConstant:
            return not self._of_tuples(over, place)
        numbers = isinstance(value, tuple) and all(isinstance(x, (int, float)) for x in value)
        return not isinstance(value, tuple) or (numbers and len(value) > _FEW)

    def _is_tuple(self, over: Any, place: Place) -> bool:
        made = self._called(over, place)[0] in _MAKERS
        return not made and self.length(over, place) is not None

    def _of_tuples(self, over: Any, place: Place) -> bool:
        """Say whether a variable's type is a tuple of anything but numbers of one type."""
        ty = self.type_of(over, place)
        if not isinstance(ty, types.BaseTuple):
            return False
        return len(set(map(types.unliteral, ty))) != 1 or not all(isinstance(t, _NUMBERS) for t in ty)

    def length(self, over: Any, place: Place) -> int | None:
        """Return the length of a tuple; None of anything else."""
        made, _ = self._known.assignment(over, place) or (None, place)
        if isinstance(made, ir.Expr) and made.op == "build_tuple":
            return len(made.items)
        ty = self.type_of(over, place)
        return len(ty) if isinstance(ty, types.BaseTuple) else None

    def type_of(self, over: Any, place: Place) -> Any:
        return self._typed.type_of(over, place)


def _drop_makers(blocks: dict[int, Any]) -> None:
    """Take away the sequences that nothing goes over any more: Numba cannot type all of them."""
    while True:
        found = instructions(blocks)
        read = {v.name for i in found for v in i.list_vars() if v.name != _target(i)}
        made: dict[str, list[Any]] = {}
        for i in found:
            made.setdefault(_target(i), []).append(i.value if isinstance(i, ir.Assign) else None)
        dead = {id(i) for i in found if _target(i) not in ("", *read) and _is_maker(i.value, made)}
        if not dead:
            return
        for block in blocks.values():
            block.body = [i for i in block.body if id(i) not in dead]


def _target(inst: Any) -> str:
    return inst.target.name if isinstance(inst, ir.Assign) else ""


def _is_maker(value: Any, made: dict[str, list[Any]]) -> bool:
    """Say whether a value is one of the builtins that make sequences, or a call of one. made: by each variable, what it
    is given."""
    if isinstance(value, (ir.Global, ir.FreeVar)):
        return any(value.value is f for f in _MAKERS)
    if not isinstance(value, ir.Expr) or value.op != "call":
        return False
    called = made.get(value.func.name, ())
    return len(called) == 1 and isinstance(called[0], (ir.Global, ir.FreeVar)) and _is_maker(called[0], made)


class _Maker:
    """Writes the statements that take the items of a sequence out of it. statements: those before the loop. late:
    those of the round that takes an item, by what they set, if the sequence changes in the loop (follows)."""

    def __init__(self, sequences: Sequences, scope: Any, loc: Any, follows: bool = False) -> None:
        self.sequences, self.scope, self.loc, self.follows = sequences, scope, loc, follows
        self.statements: list[Any] = []
        self.late: dict[str, Any] = {}

    def _assign(self, value: Any) -> Any:
        target = self.scope.redefine("$numba_cute_item", self.loc)
        made = ir.Assign(value, target, self.loc)
        if self.follows:
            self.late[target.name] = made
        else:
            self.statements.append(made)
        return target

    def in_its_round(self, item: Any) -> Any:
        """Return an item as `unroll` takes it."""
        return Late(self._needed(item), item) if self.follows else item

    def _needed(self, var: Any) -> list[Any]:
        """Return the statements by which a round makes a variable."""
        made = self.late.get(var.name)
        if made is None:
            return []
        value = made.value
        used = [] if isinstance(value, ir.Const) else [value] if isinstance(value, ir.Var) else value.list_vars()
        return [*(s for v in used for s in self._needed(v)), made]

    def items(self, over: Any, place: Place) -> list[Any] | None:
        """Return the variables of a sequence's items; None if it is none whose length is known."""
        function, call = self.sequences._called(over, place)
        if function is reversed:
            items = self.items(call[0].args[0], call[1])
            return items and items[::-1]
        if function in (enumerate, zip):
            parts = call[0].args[:1] if function is enumerate else call[0].args
            columns = [self.items(a, call[1]) for a in parts]
            if None in columns:
                return None
            if function is enumerate:
                start = self._start(*call)
                numbers = [self._assign(ir.Const(start + i, self.loc)) for i in range(len(columns[0] or ()))]
                columns.insert(0, numbers)
            return [self._assign(ir.Expr.build_tuple(list(row), self.loc)) for row in zip(*columns)]
        count = self.sequences.length(over, place)
        if count is None:
            return None
        whole = self._assign(over)
        return [self._item(whole, i) for i in range(count)]

    def _start(self, call: Any, at: Place) -> int:
        """Return the first number of `enumerate`."""
        if len(call.args) < 2:
            return 0
        try:
            return self.sequences._known.of(call.args[1], at)  # type: ignore[no-any-return]
        except NotConstant:
            text = "enumerate(x, start): its start must be static; count from 0, and add it"
            raise located(CuteError(text), call.loc) from None

    def _item(self, whole: Any, i: int) -> Any:
        index = self._assign(ir.Const(i, self.loc))
        return self._assign(ir.Expr.static_getitem(whole, i, index, self.loc))


def _unknown_length() -> CuteError:
    return CuteError(
        "a list that grows in a loop: a kernel's lists are tuples, so what the loop goes over must have a static "
        "length: a tuple, or a range of static ints; use a register tensor for what is counted at run time"
    )
