# SPDX-License-Identifier: Apache-2.0
"""Find which operations of a function are needed, and which of its values are the same: a tensor that a loop carries
and never changes is the one that it began with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...layout.int_tuple import product
from ..dialect.attributes import CuteType
from . import recasts
from .patterns import Patterns

EFFECTS = {
    "cute.copy", "cute.gemm", "cute.memref.store", "cute.memref.store_vec", "cute.print", "cute.print_view",
    "cute.prefetch", "cf.assert", "cute_nvgpu.prefetch_tma_desc", "cute_nvgpu.copy_tma_desc",
    "cute_nvgpu.update_tma_desc", "cute_nvgpu.arch.sm100.alloc_tmem", "cute_nvgpu.arch.sm100.dealloc_tmem",
    "cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit", "func.return", "func.call",
}  # fmt: skip
"""The operations of these dialects that do something; those of nvvm and cuda do, but for those of `_PURE`."""
_PURE = (
    "nvvm.read.", "nvvm.fmax", "nvvm.fmin", "nvvm.add.packed", "nvvm.mul.packed", "nvvm.fma.packed", "nvvm.rcp",
    "nvvm.mapa", "cuda.cast", "nvvm.clusterlaunchcontrol.query",
)  # fmt: skip
_ENDS = ("scf.yield", "scf.condition", "cuda.return", "gpu.terminator")


def has_effect(op: Operation) -> bool:
    """Say whether an operation without regions does more than give its results."""
    name = op.name
    if name in EFFECTS:
        return True
    if name == "llvm.inline_asm":
        return isinstance(op.properties.get("has_side_effects"), UnitAttr) or not op.results
    return name.startswith(("nvvm.", "cuda.")) and not name.startswith((*_PURE, "cuda.return", "cuda.kernel"))


_STAYS = (
    "cute.memref.", "cute_nvgpu.arch.", "nvvm.", "llvm.", "cuda.", "scf.", "func.", "cf.", "gpu.", "vector.",
    "cute_nvgpu.atom.set_value", "cute_nvgpu.atom.get_value",
)  # fmt: skip


def moves(op: Operation) -> bool:
    """Say whether an operation gives the same result wherever it stands."""
    if op.name == "cute.mma.make_fragment" and "rmem" in str(op.results[0].type):
        return False
    return not op.regions and not has_effect(op) and not op.name.startswith(_STAYS)


def is_static(value: SSAValue) -> bool:
    """Say whether a value's type holds the whole value."""
    return isinstance(value.type, CuteType) and value.type.is_static


def carried(op: Operation) -> list[tuple[Sequence[SSAValue], SSAValue]]:
    """List what a loop carries: for each the names that it has, and its first value."""
    if isinstance(op, scf.ForOp):
        return [((a,), init) for a, init in zip(op.body.block.args[1:], op.iter_args)]
    if isinstance(op, scf.WhileOp):
        return [((a,), init) for a, init in zip(op.before_region.block.args, op.arguments)]
    return []


def yielded(block: Block) -> Sequence[SSAValue]:
    """Return the values that a block gives at its end."""
    last = block.last_op
    if isinstance(last, scf.ConditionOp):
        return last.args
    return last.operands if isinstance(last, scf.YieldOp) else ()


class Flow:
    """The values of a function. needed: the operations that are written. uses: how often each value is read. recasts:
    registers that are viewed in another width, by where they are allocated. taking: what reads them after a change."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self._through: set[Any] = {a for op in function.walk() for args, _ in carried(op) for a in args}
        self._settle()
        self.patterns = Patterns(self.root)
        recast = recasts.found(function, self.root)
        self.recasts = {found.begin: found for found in recast}
        self.taking = {op: (found, views) for found in recast for op, views in found.read.items()}
        self.values: set[SSAValue] = set()
        self.needed: set[Operation] = set()
        for op in function.walk():
            if not op.regions and has_effect(op):
                self._effect(op)
        self.uses = self._counted()
        self.homes: dict[Block, list[Operation]] = {}
        self.sunk: set[Operation] = set()
        self._sink()

    @property
    def threads(self) -> int:
        """Count the threads of a block; 0 where the module does not say."""
        found = {**self.function.attributes, **self.function.properties}.get("nvvm.reqntid")
        return product(tuple(found.get_values())) if isinstance(found, DenseArrayBase) else 0

    # ------------------------------------------------------------------ which values are one

    def _settle(self) -> None:
        """Find what loops carry and never change: all is, until something is found to be not."""
        changed = True
        while changed:
            self._roots: dict[SSAValue, SSAValue] = {}
            lost = [a for a in self._through if self.root(self._next(a)) is not self.root(a)]
            self._through -= set(lost)
            changed = bool(lost)
        self._roots = {}

    def _next(self, argument: BlockArgument) -> SSAValue:
        """Return the value that a loop gives to its next round."""
        op = argument.block.parent_op()
        if isinstance(op, scf.ForOp):
            return yielded(op.body.block)[argument.index - 1]
        assert isinstance(op, scf.WhileOp)
        return yielded(op.after_region.block)[argument.index]

    def _first(self, argument: BlockArgument) -> SSAValue:
        op = argument.block.parent_op()
        if isinstance(op, scf.ForOp):
            return op.iter_args[argument.index - 1]
        assert isinstance(op, scf.WhileOp)
        return op.arguments[argument.index]

    def root(self, value: SSAValue) -> SSAValue:
        """Return the value that this one is."""
        found = self._roots.get(value)
        if found is None:
            found = self._roots[value] = self._root(value)
        return found

    def _root(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            parent = owner.parent_op()
            if value in self._through:
                return self.root(self._first(value))
            if isinstance(parent, scf.WhileOp) and owner is parent.after_region.block:
                given = self.root(yielded(parent.before_region.block)[value.index])
                return given if self._outside(given, parent) else value
            return value
        if isinstance(owner, scf.ForOp):
            argument = owner.body.block.args[value.index + 1]  # type: ignore[attr-defined]
            return self.root(argument) if argument in self._through else value
        if isinstance(owner, scf.WhileOp):
            given = self.root(yielded(owner.before_region.block)[value.index])  # type: ignore[attr-defined]
            return given if self._outside(given, owner) else value
        if isinstance(owner, scf.IfOp) and owner.false_region.blocks:
            i = value.index  # type: ignore[attr-defined]
            yes, no = (self.root(yielded(r.block)[i]) for r in (owner.true_region, owner.false_region))
            return yes if yes is no else value
        return value

    @staticmethod
    def _outside(value: SSAValue, op: Operation) -> bool:
        """Say whether a value is made outside an operation's regions."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        while block is not None:
            parent = block.parent_op()
            if parent is op:
                return False
            block = None if parent is None else parent.parent
        return True

    # ------------------------------------------------------------------ what is needed

    def _effect(self, op: Operation) -> None:
        self._mark(op)
        for value in self.patterns.read(op):
            self.need(value)

    def _mark(self, op: Operation) -> None:
        """Let an operation be written, and those around it."""
        at: Operation | None = op
        while at is not None and at is not self.function and at not in self.needed:
            self.needed.add(at)
            if isinstance(at, scf.IfOp):
                self.need(at.cond)
            elif isinstance(at, scf.ForOp):
                for bound in (at.lb, at.ub, at.step):
                    self.need(bound)
            elif isinstance(at, scf.WhileOp):
                condition = at.before_region.block.last_op
                assert isinstance(condition, scf.ConditionOp)
                self.need(condition.condition)
            at = at.parent_op()

    def need(self, value: SSAValue) -> None:
        """Let a value be made."""
        value = self.root(value)
        if is_static(value) or value in self.values:
            return
        self.values.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            self._need_argument(value, owner)
            return
        self._mark(owner)
        if isinstance(owner, scf.IfOp):
            for region in (owner.true_region, owner.false_region):
                self.need(yielded(region.block)[value.index])  # type: ignore[attr-defined]
        elif isinstance(owner, scf.ForOp):
            self.need(owner.body.block.args[value.index + 1])  # type: ignore[attr-defined]
        elif isinstance(owner, scf.WhileOp):
            self.need(yielded(owner.before_region.block)[value.index])  # type: ignore[attr-defined]
        else:
            for operand in self.patterns.read(owner):
                self.need(operand)

    def _need_argument(self, value: Any, block: Block) -> None:
        op = block.parent_op()
        if isinstance(op, scf.WhileOp) and block is op.after_region.block:
            self.need(yielded(op.before_region.block)[value.index])
        elif isinstance(op, scf.WhileOp) or isinstance(op, scf.ForOp) and value.index:
            self._mark(op)
            self.need(self._first(value))
            self.need(self._next(value))

    def _counted(self) -> Counter[SSAValue]:
        found: Counter[SSAValue] = Counter()
        for op in self.function.walk():
            if op in self.needed and op.name not in _ENDS:
                found.update(self.root(v) for v in self.patterns.read(op))
            elif op.name in _ENDS:
                found.update(r for v in op.operands if (r := self.root(v)) in self.values)
        return found

    def walk(self, block: Block) -> Iterator[Operation]:
        """List the operations of a block that are written: first those that are needed there alone."""
        yield from self.homes.get(block, ())
        yield from (op for op in block.ops if op in self.needed and op not in self.sunk)

    # ------------------------------------------------------------------ where it is written

    def _sink(self) -> None:
        """Let what is read in one branch alone be written there: elsewhere it may be what it may not be, such as a part
        of a thread that has none."""
        places: dict[Operation, Block] = {}
        readers: dict[SSAValue, list[Operation]] = {}
        self._places, self._readers = places, readers
        order = [op for op in self.function.walk() if op in self.needed]
        ends = [op for op in self.function.walk() if op.name in _ENDS]
        for op in (*order, *ends):
            for value in self.patterns.read(op) if op.name not in _ENDS else op.operands:
                readers.setdefault(self.root(value), []).append(op)
        for op in reversed(order):
            block = op.parent
            assert block is not None
            places[op] = block
            if not moves(op):
                continue
            home = self._home(block, [self.place(r) for result in op.results for r in self.reading(result)])
            if home is not None and home is not block:
                places[op] = home
                self.sunk.add(op)
                self.homes.setdefault(home, []).insert(0, op)

    def place(self, op: Operation) -> Block | None:
        """The block in which an operation is written."""
        return self._places.get(op) or op.parent

    def reading(self, value: SSAValue) -> list[Operation]:
        """List the operations that read a value."""
        return self._readers.get(self.root(value), [])

    def _home(self, block: Block, reading: Sequence[Block | None]) -> Block | None:
        """The branch of a block within which all blocks lie; None if there is none. A loop is entered by none."""
        if not reading:
            return None
        paths = [self._path(block, b) for b in reading]
        if any(p is None for p in paths):
            return None
        home = block
        for step in zip(*paths):
            if len(set(step)) > 1:
                break
            home = step[0]
        return home

    def _path(self, outer: Block, inner: Block | None) -> list[Block] | None:
        """The branches from a block inwards to another, as far as no loop lies between."""
        found: list[Block] = []
        at = inner
        while at is not None and at is not outer:
            found.insert(0, at)
            parent = at.parent_op()
            if parent is None:
                return None
            if not isinstance(parent, scf.IfOp):
                found = []
            at = parent.parent
        return found if at is outer else None


__all__ = ["EFFECTS", "Flow", "carried", "has_effect", "is_static", "yielded"]
