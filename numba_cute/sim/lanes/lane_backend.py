# SPDX-License-Identifier: Apache-2.0
"""The simulator as traced code asks it where lanes run together (see `convoy`): each question that touches memory or
registers is one step for all lanes, done by NumPy where they do the same at different addresses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...dtypes import Boolean, DType, Float32, Int32, Int64, from_numpy
from ...isa.form.instr import ALONE, ARRAY, SAME, THREAD, WARP, WARPGROUP, WARPS, WGMMA_GROUP, Instr
from ...isa.form.kinds import Operand, Role
from ...isa.form.machine import Bytes
from ...seam import COMPARISONS, Regs
from ..ground.access import Pieces
from ..hardware.collective import REGISTER, issue_alone, issue_together
from ..hardware.machine import Machine
from ..hardware.pieces import read_pieces, write_pieces
from ..hardware.together import NotTogether, let_others_run
from ..python.arithmetic.elementwise import bits_as
from ..python.arithmetic.lanes import LaneFile, Lanes, LaneVector, compared
from ..python.arithmetic.number import Number
from ..python.arithmetic.traced import join, joined
from ..python.numba_stand_in import FULL_MASK
from ..python.values import as_array, cast, type_of
from .convoy import Convoy, Crew, column
from .lane_numbers import elements_of, lanes_cast, numbers_of
from .lane_registers import LaneRegisters
from .operands import as_lanes, lane_results, scalars, vectors


class LaneBackend(LaneRegisters):
    """Each method does what `SimBackend`'s does, for all lanes of the convoy that runs now."""

    def at_exit(self, what: Callable[[], None]) -> None:
        self._convoy.exits.append(what)

    # instructions
    def issue(self, instr: Instr, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        self.check_target(instr, statics, operands)
        f = self._convoy
        if instr.issuer != THREAD:
            return self._issue_by_units(f, instr, statics, operands)
        if instr.pure and instr.least:
            self._reads_operands(f, instr, operands)
            return self._compute(f, instr, statics, operands)
        return f.step(self._issue, f, instr, statics, operands)

    def _issue_by_units(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        """Issue what a warp, or wider, does together: each one that is here in turn, or all at once."""
        if row.issuer not in (WARP, WARPGROUP):
            return f.step(self._issue_together, f, row, case, operands)
        named = None
        if row.mask is not None and row.mask in operands:
            named = int(f.common(operands[row.mask])) & FULL_MASK
        kind = WARP if row.issuer == WARP else row
        of = _warp if kind == WARP else lambda t: t.unit(row.issuer, row.name)
        units = f.units(of, kind, named)
        if len(units) > 1 and row.lanes == SAME:
            return f.step(self._issue, f, row, case, operands)
        if len(units) > 1 and row.lanes == WARPS and len({len(u.threads) for u in units}) == 1:
            return f.step(self._issue_for_warps, f, units, row, case, operands)
        return f.step(f.by_units, units, self._issue_together, f, row, case, operands)

    def _issue_for_warps(
        self, f: Convoy, warps: list[Crew], row: Instr, case: dict[str, Any], operands: dict[str, Any]
    ) -> Any:
        """Run the body once for several warps."""
        self._reads_operands(f, row, operands)
        m = Machine(self.run, row, f.threads, case=case)
        m.units = [w.threads[0].warp for w in warps]
        values = {
            o.name: self._of_lanes(f, row, o, o.size(case), operands[o.name])
            for o in row.operands_in(case)
            if o.reads and o.name in operands
        }
        outs = row.perform(m, case, values)
        if outs is not None:
            outs = lane_results(f, row, case, operands, list(outs) if isinstance(outs, tuple) else [outs])
        self._wrote_operands(f, row, operands)
        let_others_run(self.run.thread, row.name, None)
        return outs

    @staticmethod
    def _of_lanes(f: Convoy, row: Instr, o: Operand, size: int, value: Any) -> Any:
        """An operand as an array of the lanes'; what all lanes of a warp must give alike may be one number."""
        if o.count is not None:
            return vectors(f, o, value, size, row)
        found = scalars(o.kind.name, value)
        same = o.same or o.role is Role.LANES or isinstance(found, np.ndarray)
        return found if same else np.full(len(f.threads), found, REGISTER[o.kind.name])

    def _issue_together(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        if self.run.undefined and row.done_by == WGMMA_GROUP:
            keeps, acc = (operands[row.roles[role]] for role in (Role.ACCUMULATE, Role.ACCUMULATOR))
            if type(keeps) is not Lanes and not bool(keeps) and type(acc) is Regs:  # it is not read
                self._written(f, acc)
        self._reads_operands(f, row, operands)
        out = issue_together(self.run, row, case, operands)
        self._wrote_operands(f, row, operands)
        return out

    def _reads_operands(self, f: Convoy, row: Instr, operands: dict[str, Any]) -> None:
        for o in row.operands if self.run.undefined else ():
            if o.reads and type(v := operands.get(o.name)) is Regs:
                self._defined(f, v)

    def _wrote_operands(self, f: Convoy, row: Instr, operands: dict[str, Any]) -> None:
        for o in row.operands if self.run.undefined else ():
            if o.writes and type(v := operands.get(o.name)) is Regs:
                self._written(f, v)

    def _compute(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        """Compute what has no side effect: that needs no step, for it can be computed again."""
        if not any(map(_varies, operands.values())):
            return issue_alone(self.run, row, case, operands)
        if row.lanes == ARRAY:
            return self._at_once(f, row, case, operands)
        return f.each(partial(issue_alone, self.run, row, case), operands)

    def _at_once(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        """The body takes and gives arrays."""
        values = {}
        for o in row.operands_in(case):
            if o.reads and o.name in operands:
                values[o.name] = scalars(o.kind.name, operands[o.name])
        outs = row.perform(Machine(self.run, row, f.threads, case=case), case, values)
        outputs = [o for o in row.operands_in(case) if o.writes]
        made = [as_lanes(f, o.kind.name, x) for o, x in zip(outputs, outs if len(outputs) > 1 else (outs,))]
        return made[0] if len(made) == 1 else tuple(made)

    def _issue(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        if self.run.clocks and len(f.threads) > 1 and _sums_floats(row, case):
            raise NotTogether("sums of floats depend on the order of the lanes' atomics")
        self._reads_operands(f, row, operands)
        out = self._issued(f, row, case, operands)
        self._wrote_operands(f, row, operands)
        return out

    def _issued(self, f: Convoy, row: Instr, case: dict[str, Any], operands: dict[str, Any]) -> Any:
        if row.lanes == ARRAY:
            return self._special(f, row, case) if row.pure else self._at_once(f, row, case, operands)
        if row.lanes == ALONE:
            f.go_on_apart()  # each waits by itself, for what others of them may have to do
            f.agree([t.index for t in f.threads])
            return f.gathered([issue_alone(self.run, row, case, column(operands, f.threads)[0], f)])
        if row.lanes == SAME:
            f.alike(*operands.values())
            alike = {k: v.values[0] if type(v) is Lanes else v for k, v in operands.items()}
            return issue_alone(self.run, row, case, alike, f)
        return f.each(partial(issue_alone, self.run, row, case), operands)

    def _special(self, f: Convoy, row: Instr, case: dict[str, Any]) -> Any:
        """A special register: most never change."""
        key = row.name, id(case)
        if key not in f.memory or case.get("grows"):
            f.memory[key] = self._at_once(f, row, case, {})
        return f.memory[key]

    # memory
    def _machine(self) -> Machine:
        f = self._convoy
        return super()._machine() if f.by_turns is not None else Machine(self.run, None, f.threads)

    def load(self, dtype: DType, space: str, address: Any, count: int, align: int) -> tuple[Any, ...]:
        f = self._convoy
        return f.step(self._load, f, dtype, space, address, count, align)  # type: ignore[no-any-return]

    def _load(self, f: Convoy, dtype: DType, space: str, address: Any, count: int, align: int) -> Any:
        if type(address) is not Lanes:
            return super().load(dtype, space, address, count, align)
        self._machine().polls(tuple(address.values))
        values = self._pieces(f, space, address, count * dtype.bytes, align).view(dtype.numpy)
        return tuple(f.of_array(dtype, values[:, i]) for i in range(count))

    def store(self, dtype: DType, space: str, address: Any, values: Sequence[Any], align: int) -> None:
        f = self._convoy
        f.step(self._store, f, dtype, space, address, values, align)

    def _store(self, f: Convoy, dtype: DType, space: str, address: Any, values: Any, align: int) -> None:
        if type(address) is not Lanes:  # the lanes write in order
            if len(f.threads) > 1 and self.run.watch.accesses:
                f.each(super().store, dtype, space, address, list(values), align)
                return
            last = [v.numbers[-1] if type(v) is Lanes else v for v in values]
            super().store(dtype, space, address, last, align)
            return
        data = np.empty((len(f.threads), len(values)), dtype.numpy)
        for i, v in enumerate(values):
            data[:, i] = numbers_of(v, dtype)
        self._set_pieces(f, space, address, data.view(np.uint8), align)

    def swizzled(self, swizzle: Any, address: Any, width: int) -> Any:
        found = swizzle(address) if swizzle.bits else address
        for tell in self.run.watch.swizzles:
            tell(self.run.thread, swizzle, found, width)
        return found

    def part_by_swizzle(self, swizzle: Any, addresses: Any, width: int) -> None:
        for tell in self.run.watch.part_by_swizzle:
            of_lanes = zip(*(map(int, self._convoy.lists(a)) for a in addresses))
            for thread, own in zip(self._convoy.threads, of_lanes):
                tell(thread, swizzle, own, width)

    def reinterprets(self, address: Any, width: int, other: int) -> None:
        for tell in self.run.watch.reinterprets:
            tell(self.run.thread, min(map(int, self._convoy.lists(address))), width, other)

    def copy_to_regs(self, space: str, address: Any, dst: Regs, align: int) -> None:
        f = self._convoy
        f.step(self._copy_to_regs, f, space, address, dst, align)

    def _copy_to_regs(self, f: Convoy, space: str, address: Any, dst: Regs, align: int) -> None:
        if self._one_by_one(f, dst) or type(address) is not Lanes:
            f.each(super().copy_to_regs, space, address, dst, align)
            self._written(f, dst)
        else:
            raw = self._pieces(f, space, address, dst.count * dst.dtype.bytes, align)
            self._set(f, dst, raw.view(dst.dtype.numpy))

    def copy_from_regs(self, src: Regs, space: str, address: Any, align: int) -> None:
        f = self._convoy
        f.step(self._copy_from_regs, f, src, space, address, align)

    def _copy_from_regs(self, f: Convoy, src: Regs, space: str, address: Any, align: int) -> None:
        if self._one_by_one(f, src) or type(address) is not Lanes:
            self._defined(f, src)
            f.each(super().copy_from_regs, src, space, address, align)
        else:
            self._set_pieces(f, space, address, np.ascontiguousarray(self._get(f, src)).view(np.uint8), align)

    def _pieces(self, f: Convoy, space: str, address: Lanes, nbytes: int, align: int) -> Bytes:
        """Read the bytes of each lane: shape (lanes, nbytes)."""
        memory, region = self._region(f, space, address, nbytes, align, False)
        return read_pieces(self._machine(), memory, region, swizzles=True)

    def _set_pieces(self, f: Convoy, space: str, address: Lanes, data: Bytes, align: int) -> None:
        memory, region = self._region(f, space, address, data.shape[1], align, True)
        write_pieces(self._machine(), memory, region, data, swizzles=True)

    def _region(
        self, f: Convoy, space: str, address: Lanes, nbytes: int, align: int, write: bool
    ) -> tuple[Any, Pieces]:
        """The memory that the lanes access, and where in it."""
        at = address.array(np.int64)
        low, high = int(at.min()), int(at.max())
        if align > 1 and (at % min(align, 16)).any():
            raise NotTogether("misaligned")
        if space == "smem" or (space == "generic" and not high >> 32 and self.run.memory.find(low) is None):
            smem = self.run.thread.cta.smem
            if high >> 24 or not (smem.holds(low, nbytes) and smem.holds(high, nbytes)):
                raise NotTogether("outside of the CTA's shared memory")
            return smem, Pieces(at, nbytes)
        a = self.run.memory.find(low)
        if a is None or high + nbytes > a.end or write and a.readonly or not a.is_of(self.run.thread.cta.cluster):
            raise NotTogether("outside of one allocation that is as it must be")
        return a, Pieces(at - a.address, nbytes)

    # vectors and scalars: no steps, for they are computed from their operands alone
    def convert(self, vector: Any, src: DType, dst: DType, count: int) -> Any:
        if type(vector) is not LaneVector:
            return super().convert(vector, src, dst, count)
        return LaneVector(vector.convoy, as_array(vector.array, dst))

    def pack(self, dtype: DType, values: Sequence[Any]) -> Any:
        if not any(type(v) is Lanes for v in values):
            return super().pack(dtype, values)
        f = self._convoy
        out = np.empty((len(f.threads), len(values)), dtype.numpy)
        for i, v in enumerate(values):
            out[:, i] = numbers_of(v, dtype)
        return LaneVector(f, out)

    def lane(self, vector: Any, index: int) -> Any:
        if type(vector) is not LaneVector:
            return super().lane(vector, index)
        return vector.convoy.of_array(from_numpy(vector.array.dtype), vector.array[:, index])

    def bitcast(self, vector: Any, dtype: DType) -> Any:
        if type(vector) is not LaneVector:
            return super().bitcast(vector, dtype)
        return LaneVector(vector.convoy, bits_as(np.ascontiguousarray(vector.array), dtype))

    def take(self, vector: Any, indices: Sequence[int]) -> Any:
        if type(vector) is not LaneVector:
            return super().take(vector, indices)
        return LaneVector(vector.convoy, vector.array[:, list(indices)])

    def elementwise(self, op: Any, dtype: DType, *operands: Any) -> Any:
        if not any(map(_varies, operands)):
            return super().elementwise(op, dtype, *operands)
        f = self._convoy
        out = self.computed(op, dtype, operands, elements_of)
        if any(isinstance(x, (np.ndarray, LaneVector)) for x in operands):
            return LaneVector(f, out)
        return f.of_array(Boolean if op in COMPARISONS else dtype, out[:, 0])

    def type_of(self, scalar: Any) -> DType:
        return scalar.dtype or Int64 if type(scalar) is Lanes else type_of(scalar)

    def cast(self, value: Any, dtype: DType) -> Any:
        return lanes_cast(value, dtype) if type(value) is Lanes else super().cast(value, dtype)

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        if not any(type(x) is Lanes for x in (cond, a, b)) or not isinstance(cond, (Lanes, Number)):
            return super().select(cond, a, b)
        f = self._convoy
        if not isinstance(a, (Lanes, Number)) and not isinstance(b, (Lanes, Number)):
            if a == b:
                return a
            a = cast(a, Int32 if isinstance(a, int) else Float32)
        t = _meeting(a, b)
        lists = [f.lists(lanes_cast(x, t) if type(x) is Lanes else cast(x, t)) for x in (a, b)]
        return f.of(t, [x if c else y for c, x, y in zip(f.lists(cond), *lists)])

    def when(self, cond: Any, then: Callable[[], None], *, of_python: bool = False) -> None:
        if type(cond) is Lanes and not of_python:
            self._convoy.when(list(map(bool, cond.values)), then)
        else:
            super().when(cond, then)

    def hold(self, kind: Any, value: Any) -> Any:
        self.changes()
        return super().hold(kind, value)

    def changes(self) -> None:
        self._convoy.go_on_apart()  # the object is all lanes', but what it becomes only of those that change it

    def compare(self, op: str, a: Any, b: Any) -> Any:
        if type(a) is Lanes or type(b) is Lanes:
            return compared(op, _COMPARE[op], a, b)
        return super().compare(op, a, b)

    def local_array(self, data: Any) -> Any:
        return data

    def printf(self, fmt: str, args: Sequence[Any]) -> None:
        f = self._convoy
        f.step(f.each, super().printf, fmt, tuple(args))


_warp = operator.attrgetter("warp")

_COMPARE: dict[str, Any] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _meeting(a: Any, b: Any) -> DType:
    """The type in which two scalars meet, of which one may be lanes."""
    x, y = (v.dtype or Int64 if type(v) is Lanes else getattr(v, "dtype", None) for v in (a, b))
    return join(x, y) if x is not None and y is not None else joined(a, b)


def _sums_floats(row: Instr, case: dict[str, Any]) -> bool:
    """Tell whether an instruction combines floats in memory: it has an operation, and the scope of an atomic."""
    return "op" in case and row.order(case).scope is not None and str(case.get("type", "")).startswith(("f", "bf"))


def _varies(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return any(map(_varies, x))
    return type(x) is Lanes or type(x) is LaneVector or (type(x) is Regs and type(x.file) is LaneFile)
