# SPDX-License-Identifier: Apache-2.0
"""Registers that a module views as elements of another width. Registers have one type here: what is viewed so becomes
two arrays, of which one is written, and the other takes its bits before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ...layout.int_tuple import product
from ..dialect.printed_types import PrintedType
from .patterns import Root, layout_of
from .spelling import element, is_dynamic
from .values import Tree

if TYPE_CHECKING:
    from .writer import Lifter

_READS = {
    "cute.memref.load": (0,), "cute.memref.load_vec": (0,), "cute.copy": (1, 3), "cute.gemm": (2, 3, 4, 5, 6),
    "cute.print_view": (0,), "cute.print": (0,),
}  # fmt: skip
_WRITES = {"cute.memref.store": (0,), "cute.memref.store_vec": (1,), "cute.copy": (2,), "cute.gemm": (1,)}
"""The operands that operations read, and write."""
_MAKE = ("cute.get_iter", "cute.make_view", "cute.slice", "cute.group_modes", "cute.logical_divide", "cute.flat_divide",
         "cute.zipped_divide", "cute.tiled_divide", "cute.local_tile", "cute.tiled.copy.retile", "cute.add_offset",
         "cute.filter_zeros", "cute.coalesce", "cute.select", "cute.composition", "cute.recast_iter",
         "cute.tiled.copy.partition_S", "cute.tiled.copy.partition_D")  # fmt: skip
"""Operations that give the same registers again."""


@dataclass
class Recast:
    """A view of registers. view: the pointer that is recast. begin: which registers they are. read: the operations
    before which they take the others' bits, with whether the view is what they read. why: "" or why there is no such
    pair of arrays."""

    begin: Operation
    view: Operation
    read: dict[Operation, bool]
    why: str = ""

    @property
    def widths(self) -> tuple[int, int]:
        """The bits of an element of the registers, and of the view."""
        return _width(self.begin.results[0].type), _width(self.view.results[0].type)

    @property
    def bits(self) -> int:
        """The bits of all of them."""
        return int(product(layout_of(self.begin.results[0].type).shape)) * self.widths[0]


def _width(t: object) -> int:
    assert isinstance(t, PrintedType)
    return getattr(element(t.data[0]), "width", 0)


def found(function: Operation, root: Root) -> list[Recast]:
    """List the views of registers in another width."""
    views = [op for op in function.walk() if _changes_width(op)]
    if not views:
        return []
    uses = _Uses(function, root)
    return [_recast(op, uses) for op in views]


def _changes_width(op: Operation) -> bool:
    if op.name != "cute.recast_iter":
        return False
    new, old = op.results[0].type, op.operands[0].type
    return isinstance(new, PrintedType) and new.data[1] == "rmem" and _width(new) != _width(old)


class _Uses:
    """The operations that read the values of a function. root: gives the value that a value is the same as."""

    def __init__(self, function: Operation, root: Root) -> None:
        self.root = root
        self._readers: dict[SSAValue, list[Operation]] = {}
        for op in function.walk():
            for v in op.operands:
                self._readers.setdefault(root(v), []).append(op)

    def of(self, values: set[SSAValue]) -> Iterator[Operation]:
        """List the operations that read some values."""
        for v in values:
            yield from self._readers.get(v, ())

    def same(self, value: SSAValue, without: Operation | None = None) -> set[SSAValue]:
        """Collect the values that are some registers. without: an operation that makes others of them."""
        values, new = {value}, {value}
        while new:
            makers = [op for op in self.of(new) if op is not without and op.name in _MAKE]
            new = {self.root(r) for op in makers for r in op.results if _in_registers(r)} - values
            values |= new
        return values

    def takes(self, op: Operation, places: Sequence[int], values: set[SSAValue]) -> bool:
        """Say whether an operation has some of the values at the given places."""
        return any(self.root(op.operands[i]) in values for i in places if i < len(op.operands))


def _recast(view: Operation, uses: _Uses) -> Recast:
    begin = uses.root(view.operands[0]).owner
    if isinstance(begin, Operation) and begin.name == "cute.get_iter":
        begin = uses.root(begin.operands[0]).owner
    made = Recast(begin if isinstance(begin, Operation) else view, view, {})
    if made.begin.name != "cute.memref.alloca":
        made.why = "they are not all of the registers that are allocated at once"
        return made
    if not _lie_together(made.begin.results[0].type) or min(made.widths) < 8 or made.bits % max(made.widths):
        made.why = "they do not lie one after the other"
        return made
    narrow, whole = uses.same(view.results[0]), uses.same(made.begin.results[0], without=view)
    written = [any(uses.takes(op, _WRITES.get(op.name, ()), v) for op in uses.of(v)) for v in (whole, narrow)]
    if all(written) or any(_changes_width(op) and op is not view for op in uses.of(whole | narrow)):
        made.why = "both are written, or there are more views"
        return made
    other = narrow if written[0] else whole
    reading = [op for op in uses.of(other) if uses.takes(op, _READS.get(op.name, ()), other)]
    made.read = dict.fromkeys(reading, other is narrow)
    if _escapes(uses, whole | narrow):
        made.why = "another operation takes them, or a loop or a branch gives others for them"
    return made


def _lie_together(t: PrintedType | object) -> bool:
    layout = layout_of(t)
    modes = list(zip(Tree(layout.shape).flat(), Tree(layout.stride).flat(), strict=True))
    if any(is_dynamic(x) for mode in modes for x in mode):
        return False
    step = 1
    for s, d in modes:
        if s != 1 and d != step:
            return False
        step *= s
    return True


def _in_registers(value: SSAValue) -> bool:
    t = value.type
    return isinstance(t, PrintedType) and t.name in ("cute.memref", "cute.ptr") and t.data[1] == "rmem"


def _escapes(uses: _Uses, values: set[SSAValue]) -> bool:
    """Say whether other operations take the registers, or a loop or a branch gives others for them."""
    names = {*_READS, *_WRITES, *_MAKE, "cute.get_layout", "cute.size"}
    for op in uses.of(values):
        if op.name.startswith("scf."):
            if any(uses.root(a) in values and uses.root(b) not in values for a, b in _given(op)):
                return True
        elif op.name not in names:
            return True
    return False


def _given(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """List what an operation of a loop or a branch takes, each with what it becomes."""
    around = op.parent_op()
    if isinstance(op, scf.ForOp):
        yield from zip(op.iter_args, op.results, strict=True)
    elif isinstance(op, scf.WhileOp):
        yield from zip(op.arguments, op.before_region.block.args, strict=True)
    elif isinstance(op, scf.ConditionOp) and around is not None:
        yield from zip(op.args, around.results, strict=True)
    elif isinstance(op, scf.YieldOp) and isinstance(around, scf.WhileOp):
        yield from zip(op.operands, around.before_region.block.args, strict=True)
    elif isinstance(op, scf.YieldOp) and around is not None:
        yield from zip(op.operands, around.results, strict=True)


def take_bits(w: Lifter, found: Recast, views: bool) -> None:
    """Let one of two arrays take the bits of the other. views: whether the one of the view does."""
    name, source = w.values[found.view] if not views else reversed(w.values[found.view])
    types: list[Any] = [found.begin.results[0].type, found.view.results[0].type]
    (old, new), dtypes = found.widths, [t.data[0] for t in types]
    if not views:
        (old, new), dtypes = (new, old), dtypes[::-1]
    target = w.element(dtypes[1])
    if old < new:
        parts = new // old
        bits = w.temporary("bits")
        raw = f"{source}.load().bitcast(cute.Uint{old}).to(cute.Int{max(new, 32)})"
        w.line(f"{bits} = {raw}.reshape(({parts}, {found.bits // new}))")
        joined = " | ".join(f"{bits}[{i}, None]" + (f" << {old * i}" if i else "") for i in range(parts))
        w.line(f"{name}.store(({joined}).to(cute.Int{new}).bitcast({target}))")
        return
    bits = w.temporary("bits")
    w.line(f"{bits} = {source}.load().bitcast(cute.Uint{old})")
    for i in range(old // new):
        moved = f"({bits} >> {new * i})" if i else bits
        part = f"cute.logical_divide({name}, {old // new})[({i}, None)]"
        w.line(f"{part}.store({moved}.to(cute.Uint{new}).bitcast({target}))")


__all__ = ["Recast", "found", "take_bits"]
