# SPDX-License-Identifier: Apache-2.0
"""Recognise several operations of a printed module that mean one thing: a tensor taken apart and made again is that
tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ..dialect.attributes import CuteType
from ..dialect.printed_types import PrintedType
from ..dialect.spelled import plain_attributes
from .uniform import Uniform

Root = Callable[[SSAValue], SSAValue]


RESPONSES = "nvvm.clusterlaunchcontrol.query_cancel."
"""Begins the names of operations that read a response of cluster launch control."""
_COMMITS = "nvvm.tcgen05.commit"


class Patterns:
    """Finds them. root: which value one is."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.uniform = Uniform(root)

    def read(self, op: Operation) -> Sequence[SSAValue]:
        """List the values that an operation reads, as it is written."""
        if op.name == "cute.copy":
            return [op.operands[0], *map(self.bare, op.operands[1:])]
        if op.name == "cute.prefetch":
            return [self.prefetching(op.operands[0]), *map(self.bare, op.operands[1:])]
        if op.name == "cute.make_view":
            tensor = self.tensor_of(op.operands[0], op.operands[1])
            return op.operands if tensor is None else [tensor]
        if op.name.startswith(RESPONSES):
            found = self.response(op)
            return [] if found is None else [found]
        if op.name == "arith.floordivsi" and self.is_warp_index(op):
            return []
        if op.name == "cute.append_to_rank" and op.operands[0].type == op.results[0].type:
            return op.operands[:1]
        return op.operands

    def made_by(self, value: SSAValue, name: str) -> Any:
        """Return the operation of a name that makes a value; None if it is another."""
        op = self.root(value).owner
        return op if getattr(op, "name", "") == name else None

    # ------------------------------------------------------------------ tensors

    def tensor_of(self, iterator: SSAValue, layout: SSAValue | None) -> SSAValue | None:
        """Return the tensor whose beginning, and whose layout, these are; None if there is none."""
        op = self.made_by(iterator, "cute.get_iter")
        if op is None:
            made = self.made_by(iterator, "cute.make_arith_tuple_iter")
            op = None if made is None else self._coordinates_of(made.operands[0])
        if op is None:
            return None
        tensor = self.root(op.operands[0])
        return tensor if layout is None or self._is_layout_of(layout, tensor) else None

    def _coordinates_of(self, value: SSAValue) -> Any:
        """Return the operation that gave the coordinates that a tuple is made of, all and in their order."""
        op = self.made_by(value, "cute.make_int_tuple")
        if op is None:
            op = self.made_by(value, "cute.deref_arith_tuple_iter")
            return None if op is None else self.made_by(op.operands[0], "cute.get_iter")
        sources = {self.root(v).owner for v in op.operands}
        if len(sources) != 1:
            return None
        source: Any = sources.pop()
        if getattr(source, "name", "") != "cute.get_leaves":
            return None
        dynamic = [r for r in source.results if not r.type.is_static]
        deref = self.made_by(source.operands[0], "cute.deref_arith_tuple_iter")
        same = [self.root(v) for v in op.operands] == dynamic
        if deref is None or not same or deref.results[0].type.data != value.type.data:  # type: ignore[attr-defined]
            return None
        return self.made_by(deref.operands[0], "cute.get_iter")

    def _is_layout_of(self, layout: SSAValue, tensor: SSAValue) -> bool:
        op = self.made_by(layout, "cute.get_layout")
        if op is not None:
            return self.root(op.operands[0]) is tensor
        op = self.made_by(layout, "cute.append_to_rank")
        if op is None or op.operands[0].type != op.results[0].type:
            return False
        return self._is_layout_of(op.operands[0], tensor)

    def bare(self, value: SSAValue) -> SSAValue:
        """Return the tensor that a copy's operand is made of: the DSL gives each of rank one a mode, and groups all
        behind the first; this library's `copy` does so itself."""
        value = self.root(value)
        op = self.made_by(value, "cute.group_modes")
        if op is not None:
            found = plain_attributes(op.properties)
            if found["begin"] == 1 and found["end"] == rank_of(op.operands[0].type):
                value = self.root(op.operands[0])
        op = self.made_by(value, "cute.make_view")
        if op is None:
            return value
        iterator, layout = op.operands
        tensor = self.tensor_of(iterator, None)
        whole = self.tensor_of(iterator, layout)
        if whole is not None:
            return whole
        appended = self.made_by(layout, "cute.append_to_rank")
        if tensor is None or appended is None or not _of_one(appended.operands[1].type):
            return value
        if rank_of(appended.operands[0].type) != 1 or not self._is_layout_of(appended.operands[0], tensor):
            return value
        return tensor

    def prefetching(self, value: SSAValue) -> SSAValue:
        """Return an atom without what a prefetch takes no notice of: it has no barrier, and no blocks to send to."""
        op = self.made_by(value, "cute_nvgpu.atom.set_value")
        if op is None or plain_attributes(op.properties)["field"] not in ("tma_bar", "mcast_mask"):
            return value
        return self.prefetching(op.operands[0])

    def response(self, op: Operation) -> SSAValue | None:
        """Return the pointer to the response of cluster launch control that is read; None where what is read did not
        come from one, in this block, with nothing between that waits or writes."""
        value = op.operands[0]
        loaded: Any = None
        for name in ("vector.extract", "cute.memref.load_vec", "cute.make_view", "cute.recast_iter"):
            made = self.made_by(value, name)
            if made is None:
                return None
            loaded = made if name == "cute.memref.load_vec" else loaded
            value = made.operands[0]
        at = op.prev_op
        while at is not None and at is not loaded:
            if at.regions or at.name.startswith("nvvm.") and not at.name.startswith(RESPONSES):
                return None
            at = at.prev_op
        return None if at is None else value

    # ------------------------------------------------------------------ threads

    def is_warp_index(self, op: Operation) -> bool:
        """Say whether a division is of a thread's index in its block by 32."""
        if self._constant(op.operands[1]) != 32:
            return False
        return self._sum(op.operands[0]) == sorted(
            [("tid.x",), ("ntid.x", "tid.y"), ("ntid.x", "ntid.y", "tid.z")], key=str
        )

    def is_elected(self, op: Operation) -> bool:
        """Say whether a branch is one lane's and only commits: this library's `commit` chooses the lane itself."""
        if not isinstance(op, scf.IfOp) or self.made_by(op.cond, "nvvm.elect.sync") is None or op.results:
            return False
        found = [
            inner.name for inner in op.walk() if inner.name.startswith(("nvvm.", "cute.copy", "cute.gemm", "scf.if"))
        ]
        return all(name.startswith(_COMMITS) or name.startswith("nvvm.mapa") for name in found[1:]) and any(
            name.startswith(_COMMITS) for name in found
        )

    def arrives_for_warp(self, op: scf.IfOp) -> bool:
        """Say whether some lanes of a warp arrive at a barrier in a branch, for all lanes of it."""
        if not self.uniform.varies(op.cond) or not self.uniform.comes(op):
            return False
        return any(map(_arrives, op.true_region.walk()))

    def lacks_cluster(self, fence: Operation) -> bool:
        """Say whether another block may arrive at a barrier before it has begun: no cluster meets between the fence
        and that. All threads come to a fence in the block of a function. One that an earlier fence was for has begun:
        the CuTe DSL begins some again."""
        begun: set[SSAValue] = set()
        at = fence.prev_op
        while at is not None and at.name != "nvvm.cluster.wait":
            begun |= self._beginning(at)
            at = at.prev_op
        fenced, at = False, fence.prev_op
        while at is not None:
            fenced |= at.name == fence.name
            begun -= self._beginning(at) if fenced else set()
            at = at.prev_op
        at = fence.next_op
        while at is not None and not at.name.startswith("nvvm.cluster.") and begun:
            if any(i.name.startswith("nvvm.mapa") and self._barrier(i.operands[0]) in begun for i in at.walk()):
                return not isinstance(fence.parent_op(), (scf.IfOp, scf.ForOp, scf.WhileOp))
            at = at.next_op
        return False

    def _beginning(self, op: Operation) -> set[SSAValue]:
        """Collect the barriers that begin in an operation."""
        return {self._barrier(i.operands[0]) for i in op.walk() if i.name.startswith("nvvm.mbarrier.init")}

    def _barrier(self, value: SSAValue) -> SSAValue:
        """Return the pointer to the first of several barriers, given one to any of them."""
        value = self.root(value)
        op: Any = value.owner
        if getattr(op, "name", "") in ("cute.add_offset", "builtin.unrealized_conversion_cast"):
            return self._barrier(op.operands[0])
        return value

    def _constant(self, value: SSAValue) -> int | None:
        op = self.root(value).owner
        found = op.value if isinstance(op, arith.ConstantOp) else None
        return found.value.data if isinstance(found, IntegerAttr) else None

    def _sum(self, value: SSAValue) -> list[tuple[str, ...]]:
        """A number as a sum of products of registers, in order; with "?" for anything else."""
        op = self.root(value).owner
        if getattr(op, "name", "") == "arith.addi":
            return sorted([t for v in op.operands for t in self._sum(v)], key=str)  # type: ignore[union-attr]
        return [tuple(sorted(self._product(value)))]

    def _product(self, value: SSAValue) -> list[str]:
        op = self.root(value).owner
        name = getattr(op, "name", "")
        if name == "arith.muli":
            return [f for v in op.operands for f in self._product(v)]  # type: ignore[union-attr]
        return [name.removeprefix("nvvm.read.ptx.sreg.") if name.startswith("nvvm.read") else "?"]


def _arrives(op: Operation) -> bool:
    """Say whether an operation arrives at a barrier without announcing bytes."""
    if op.name == "nvvm.mbarrier.txn":
        return getattr({**op.attributes, **op.properties}.get("kind"), "data", "") == "arrive"
    return op.name == "nvvm.mbarrier.arrive"


def _of_one(t: Any) -> bool:
    return isinstance(t, CuteType) and t.is_static and t.data.shape == 1


def layout_of(t: Any) -> Any:
    """Return the layout of a layout's type, or of a tensor's: of a composed one the outer."""
    layout = t.data[-1] if isinstance(t, PrintedType) else t.data
    return getattr(layout, "outer", layout)


def rank_of(t: Any) -> int:
    """Return the number of modes of a layout or a tensor."""
    shape = layout_of(t).shape
    return len(shape) if isinstance(shape, tuple) else 1


__all__ = ["RESPONSES", "Patterns", "layout_of", "rank_of"]
