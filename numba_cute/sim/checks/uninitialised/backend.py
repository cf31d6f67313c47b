# SPDX-License-Identifier: Apache-2.0
"""The simulator as traced code asks it where uninitialised reads are checked.

Reading an element of registers that this thread never wrote (`unwritten`) gives what is `undefined`: it may be copied,
converted and computed with. Whatever needs its value is the error: a store, a branch, an address, an instruction with
an effect. What an instruction without one makes of undefined operands is found by doing it with several values in
their place (`spread`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ....dtypes import DType
from ....isa.form.instr import THREAD, WGMMA_GROUP, Instr
from ....isa.form.kinds import Role
from ....seam import Regs
from ...ground.report import Place, SimError, assigned_name, in_library, place_of
from ...hardware.collective import as_elements, issue_alone, issue_together
from ...python.arithmetic.elementwise import bits_as
from ...python.arithmetic.undefined import Made, Partial, Undefined, Why, number_kind, used
from ...python.backend import SimBackend
from .local import local_array
from .spread import alone, may_spread, undefined
from .unwritten import Unwritten, found, undefine, written


class CheckedBackend(SimBackend):
    """`SimBackend` that knows which registers are undefined."""

    def __init__(self, run: Any) -> None:
        super().__init__(run)
        self._sites: dict[Any, tuple[Place, str]] = {}
        self._vectors: dict[str, list[list[str]]] = {}
        self._spreads: dict[str, bool] = {}

    # instructions
    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        self.announce(instr, statics, operands)
        t = self.run.thread
        if instr.issuer != THREAD:
            return self._issue_together(t, instr, statics, operands)
        if t.unwritten and (why := _first(found(v, t) for v in self._regs(instr, operands, True))):
            if not instr.pure:
                raise used(Undefined(why), f"is an operand of {instr.name}")
            return alone(self, instr, statics, operands)
        try:
            out = issue_alone(self.run, instr, statics, operands)
        except SimError as e:
            if not instr.pure or getattr(e, "undefined", None) is None:
                raise
            return alone(self, instr, statics, operands)
        if t.unwritten:
            for v in self._regs(instr, operands, False):
                written(v, t)
        return out

    def issue_defined(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        """`issue` of what one thread issues and has no undefined operand."""
        return issue_alone(self.run, instr, statics, operands)

    def _issue_together(self, t: Any, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        spreads = self._spreads.get(instr.name)
        if spreads is None:
            # an undefined scalar of another row is found where it becomes a number
            spreads = self._spreads[instr.name] = instr.done_by is None and may_spread(instr, {})
        if t.unwritten and instr.done_by == WGMMA_GROUP and not bool(operands[instr.roles[Role.ACCUMULATE]]):
            acc = operands[instr.roles[Role.ACCUMULATOR]]
            if type(acc) is Regs:  # it is not read
                written(acc, t)
        suspect = _MAY_HOLD if t.unwritten else _SCALARS if spreads else ()
        if suspect and not suspect.isdisjoint(map(type, operands.values())):
            operands = self._undefined_operands(t, instr, operands)
        out = issue_together(self.run, instr, statics, operands)
        if t.unwritten:
            for v in self._regs(instr, operands, False):
                written(v, t)
        if t.received:
            received, t.received = t.received, None
            out = _with_undefined(t, instr, statics, operands, out, received)
        return out

    def _undefined_operands(self, t: Any, instr: Instr, operands: dict[str, Any]) -> dict[str, Any]:
        """The operands with numbers where they are undefined, which is noted for who runs the body."""
        reads = {o.name for o in instr.operands if o.reads}
        why = {name: w for name, value in operands.items() if name in reads and (w := _undefined_in(value, t))}
        if not why:
            return operands
        if not may_spread(instr, why):
            raise used(Undefined(_first(why.values())), f"is an operand of {instr.name}")  # type: ignore[arg-type]
        t.undefined = why
        return {k: _numbers(v) for k, v in operands.items()}

    def _regs(self, instr: Instr, operands: dict[str, Any], reads: bool) -> list[Regs]:
        """The spans of registers that an instruction reads, or that it writes and does not read."""
        names = self._vectors.get(instr.name)
        if names is None:
            vectors = [o for o in instr.operands if o.count is not None]
            names = self._vectors[instr.name] = [[o.name for o in vectors if o.reads is r] for r in (False, True)]
        return [v for n in names[reads] if type(v := operands.get(n)) is Regs]

    # memory
    def store(self, dtype: DType, space: str, address: int, values: Sequence[Any], align: int) -> None:
        for v in values:
            if type(v) is Undefined:
                raise used(v, f"is stored to {self._memory(space, address)}")
        super().store(dtype, space, address, values, align)

    def copy_to_regs(self, space: str, address: int, dst: Regs, align: int) -> None:
        super().copy_to_regs(space, address, dst, align)
        if self.run.thread.unwritten:
            written(dst, self.run.thread)

    def copy_from_regs(self, src: Regs, space: str, address: int, align: int) -> None:
        if self.run.thread.unwritten:
            for why in found(src, self.run.thread).values():
                raise used(Undefined(why), f"is stored to {self._memory(space, address)}")
        super().copy_from_regs(src, space, address, align)

    def _memory(self, space: str, address: Any) -> str:
        shared = space in ("smem", "dsmem") or (space == "generic" and self.run.memory.find(int(address)) is None)
        return "shared memory" if shared else "global memory"

    # registers
    def registers(self, dtype: DType, count: int) -> Any:
        file = super().registers(dtype, count)
        self.run.thread.unwritten[id(file)] = Unwritten((1 << count) - 1, self._made(dtype), file)
        return file

    def _made(self, dtype: DType) -> Made:
        """The place in the user's code that asks for registers."""
        layout, frame = None, sys._getframe(2)
        while frame.f_back is not None and in_library(frame.f_code):
            if frame.f_code.co_name == "make_rmem_tensor":
                layout = frame.f_locals.get("lay", layout)  # a facade's own frame of that name has none
            frame = frame.f_back
        back = frame.f_back
        key = (frame.f_code, frame.f_lasti, back and back.f_code, back and back.f_lasti)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = place_of(frame), assigned_name(frame)
        return Made("the registers", site[1], dtype, site[0], layout)

    def read(self, regs: Regs) -> Any:
        value = super().read(regs)
        u = self.run.thread.unwritten
        if u:
            why = found(regs, self.run.thread)
            if why:
                return Undefined(why[0], number_kind(regs.dtype))
        return value

    def write(self, regs: Regs, value: Any) -> None:
        self.fill(regs, value)

    def fill(self, regs: Regs, value: Any) -> None:
        if type(value) is Undefined:
            super().fill(regs, as_elements(regs.file, regs)[0])
            undefine(regs, self.run.thread, dict.fromkeys(range(regs.count), value.why))
            return
        super().fill(regs, value)
        if self.run.thread.unwritten:
            written(regs, self.run.thread)

    def vector(self, regs: Regs) -> Any:
        array = super().vector(regs)
        if self.run.thread.unwritten:
            why = found(regs, self.run.thread)
            if why:
                return Partial(array, why)
        return array

    def unvector(self, vector: Any, regs: Regs) -> None:
        if type(vector) is Partial:
            super().unvector(vector.array, regs)
            undefine(regs, self.run.thread, vector.why)
            return
        super().unvector(vector, regs)
        if self.run.thread.unwritten:
            written(regs, self.run.thread)

    def local_array(self, data: Any) -> Any:
        return local_array(self.run, data, sys._getframe(2))

    # vectors
    def convert(self, vector: Any, src: DType, dst: DType, count: int) -> Any:
        if type(vector) is Partial:
            return Partial(super().convert(vector.array, src, dst, count), vector.why)
        return super().convert(vector, src, dst, count)

    def pack(self, dtype: DType, values: Sequence[Any]) -> Any:
        why = {i: v.why for i, v in enumerate(values) if type(v) is Undefined}
        if why:
            return Partial(super().pack(dtype, [0 if i in why else v for i, v in enumerate(values)]), why)
        return super().pack(dtype, values)

    def lane(self, vector: Any, index: int) -> Any:
        return vector[index] if type(vector) is Partial else super().lane(vector, index)

    def bitcast(self, vector: Any, dtype: DType) -> Any:
        if type(vector) is not Partial:
            return super().bitcast(vector, dtype)
        out = bits_as(vector.array, dtype)
        before, after = len(vector), len(out)
        each = {i: j for j in sorted(vector.why, reverse=True) for i in _overlap(j, before, after)}
        return Partial(out, {i: vector.why[j] for i, j in each.items()})

    def take(self, vector: Any, indices: Sequence[int]) -> Any:
        if type(vector) is not Partial:
            return super().take(vector, indices)
        why = {i: vector.why[j] for i, j in enumerate(indices) if j in vector.why}
        taken = super().take(vector.array, indices)
        return Partial(taken, why) if why else taken

    def elementwise(self, op: Any, dtype: DType, *operands: Any) -> Any:
        if not any(type(x) is Partial or type(x) is Undefined for x in operands):
            return super().elementwise(op, dtype, *operands)
        plain = [x.array if type(x) is Partial else _numbers(x) for x in operands]
        out = super().elementwise(op, dtype, *plain)
        if not isinstance(out, np.ndarray):
            value = _decides(op, operands, 0)
            return out if value is None else Undefined(value, number_kind(np.asarray(out).dtype))
        why = {i: w for i in range(len(out)) if (w := _decides(op, operands, i)) is not None}
        return Partial(out, why) if why else out

    # scalars
    def type_of(self, scalar: Any) -> DType:
        return super().type_of(_LIKE[scalar.kind] if type(scalar) is Undefined else scalar)

    def cast(self, value: Any, dtype: DType) -> Any:
        return Undefined(value.why, number_kind(dtype)) if type(value) is Undefined else super().cast(value, dtype)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        return Undefined(cond.why) if type(cond) is Undefined else super().select(cond, a, b)

    def compare(self, op: str, a: Any, b: Any) -> Any:
        for x in (a, b):
            if type(x) is Undefined:
                return Undefined(x.why, "bool")
        return super().compare(op, a, b)

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        super().printf(fmt, [_numbers(a) for a in args])


_SCALARS = frozenset((Undefined, tuple, list))
_MAY_HOLD = _SCALARS | {Regs}
_LIKE: dict[str, Any] = {"bool": False, "int": 0, "float": 0.0}


def _numbers(x: Any) -> Any:
    """An operand with numbers where it is undefined."""
    if type(x) is Undefined:
        return {"bool": True, "int": -1, "float": float("nan")}[x.kind]
    return [_numbers(v) for v in x] if type(x) in (tuple, list) else x


def _first(some: Iterable[dict[int, Why]]) -> Why | None:
    return next((w for each in some for w in each.values()), None)


def _undefined_in(given: Any, t: Any) -> dict[int, Why]:
    """The undefined elements of an operand."""
    kind = type(given)
    if kind is Regs:
        return found(given, t) if t.unwritten else {}
    if kind is tuple or kind is list:
        return {i: x.why for i, x in enumerate(given) if type(x) is Undefined}
    return {0: given.why} if kind is Undefined else {}


def _overlap(i: int, before: int, after: int) -> range:
    """The elements that hold bits of element `i`, of so many before, where the same bits make so many."""
    return range(i * after // before, max(i * after // before + 1, (i + 1) * after // before))


def _why(x: Any, i: int) -> Why | None:
    return x.why.get(i) if type(x) is Partial else x.why if type(x) is Undefined else None


def _decides(op: Any, operands: Sequence[Any], i: int) -> Why | None:
    """Return the reason why element `i` of a result is undefined, or None."""
    if op == "where" and _why(operands[0], i) is None:
        cond = operands[0].array if type(operands[0]) is Partial else operands[0]
        chosen = operands[1 if (cond[i] if isinstance(cond, np.ndarray) else cond) else 2]
        return _why(chosen, i)
    return next((w for x in operands if (w := _why(x, i)) is not None), None)


def _with_undefined(t: Any, row: Instr, case: Any, operands: Any, out: Any, received: dict[str, dict[int, Why]]) -> Any:
    """The results of an instruction with those that are undefined."""
    outs = [o for o in row.operands_in(case) if o.writes and not o.reads]
    values = list(out) if isinstance(out, tuple) else [out]
    at = 0
    for o in outs:
        why, target = received.get(o.name, {}), operands.get(o.name)
        if isinstance(target, Regs):
            undefine(target, t, why)
            continue
        for i in range(o.size(case)):
            if i in why:
                values[at + i] = undefined(o.kind.name, why[i])
        at += o.size(case)
    return tuple(values) if isinstance(out, tuple) else values[0]
