# SPDX-License-Identifier: Apache-2.0
"""`lower-to-nvgpu`: copies and products become slices, and one operation of `cute_nvgpu` for each instruction."""

from __future__ import annotations

import inspect
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

import numba_cute

from ... import layout
from ...atoms import gemm, instructions as parts
from ...atoms.copy_atom import CopyAtom, TiledCopy
from ...atoms.mma_atom import _FIELDS, TiledMma
from ...atoms.op import CopyOp, Field
from ...compiler.inspection import inference
from ...nvgpu import CopyUniversalOp
from ...nvgpu.blackwell.copies_shared import SharedToTensor
from ...nvgpu.hopper.tma_ops import TmaCopyOp
from ...seam import CuteError
from ...tensor.tensor import Tensor
from ..library import instructions
from ..library.operations import ApiOp, GetAttr, LoadElement, SliceOp, target_of
from ..library.types import description_of_value
from .rewriting import Maker, rewrite_each, values_of


class LowerToNvgpu(ModulePass):
    """Make of each `cute.copy` and `cute.gemm` slices, and one operation of `cute_nvgpu` for each instruction.

    So `cute.copy_atom_call` and `cute.mma_atom_call` too. An operation of the user's own, whose instructions this
    library does not know, stays as it is, and so does one that is refused."""

    name = "lower-to-nvgpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite_each(op, _Lower())


class _Lower(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        lower: Any = _LOWERED.get(op.name)
        if lower is None or not isinstance(op, ApiOp):
            return
        with inference.abstractly(target_of(op)):
            done = lower(_Steps(rewriter, op), *_bound(op))
        if done:
            rewriter.erase(op)


def _bound(op: ApiOp) -> tuple[Any, ...]:
    """The arguments in the order of the function's parameters, None for those that are left out."""
    positional, keywords = values_of(op)
    names = _PARAMETERS[op.name]
    given = dict(zip(names, positional)) | keywords
    return tuple(given.get(name) for name in names)


class _Steps(Maker):
    """Makes the operations of one copy or product. Parts of tensors are taken once."""

    def __init__(self, rewriter: PatternRewriter, op: Operation) -> None:
        super().__init__(rewriter, op)
        self.made: dict[Any, Any] = {}

    def once(self, key: Any, make: Any) -> Any:
        """Give what `make()` made when it was first asked for `key`."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def slice(self, t: SSAValue, coord: Any) -> SSAValue:
        """Take a part of a tensor; None is all of it."""
        if coord is None:
            return t
        return self.once((t, coord), lambda: self.call(SliceOp, (t, coord), hint=t.name_hint or ""))  # type: ignore[no-any-return]

    def path(self, t: SSAValue, path: Any) -> SSAValue:
        """Take a part by slices one after the other, as `instruction_paths` gives them."""
        steps = {"nothing": lambda t: t, "mode 0": self.opened, "elements": self.elements}
        for opened, coord in path:
            t = self.slice(self.once((t, opened), lambda t=t, step=steps[opened]: step(t)), coord)
        return t

    def elements(self, t: SSAValue) -> SSAValue:
        """Give a tensor of one mode with each of its elements by itself."""
        return self.call(numba_cute.zipped_divide, (t, 1))  # type: ignore[no-any-return]

    def opened(self, t: SSAValue) -> SSAValue:
        """Give a tensor of one mode with the modes within that."""
        at, lay = (self.call(GetAttr, (t, name)) for name in ("iterator", "layout"))
        return self.call(numba_cute.make_tensor, (at, self.call(SliceOp, (lay, 0))))  # type: ignore[no-any-return]


def _example(value: Any) -> Any:
    """Return a value as traced code sees it, with leaves that hold no values."""
    return inference.example_of(description_of_value(value))


# ------------------------------------------------------------------ products


def _gemm(s: _Steps, atom: Any, d: Any, a: Any, b: Any, c: Any) -> bool:
    """Make the instructions of `cute.gemm`."""
    kind, of = _kind(atom)
    if kind is None:
        return False
    for field, operand in ((Field.SFA, a), (Field.SFB, b)):
        if isinstance(operand, tuple):
            atom = s.call(instructions.atom_set_value, (atom, field.value, operand[1]), hint="atom")
    a, b = (x[0] if isinstance(x, tuple) else x for x in (a, b))
    if d is not c:
        s.call(instructions.mma_begin, (atom, d, c))
    steps = gemm.gemm_steps(*(_example(t).layout for t in (d, a, b)))
    fields = _tensors_set(atom, of)
    for at_d, at_a, at_b, first in steps:
        with_words = _stepped(s, atom, fields, at_a, at_b, first or of.accumulate is True)
        operands = (s.slice(t, at) for t, at in ((a, at_a), (b, at_b), (d, at_d)))
        s.call(getattr(instructions, kind.name), (*operands, with_words))
    return True


def _mma_atom_call(s: _Steps, atom: Any, d: Any, a: Any, b: Any, c: Any) -> bool:
    """Make the instruction of `cute.mma_atom_call`."""
    kind, _ = _kind(atom)
    if kind is None:
        return False
    if d is not c:
        s.call(instructions.mma_begin, (atom, d, c))
    s.call(getattr(instructions, kind.name), (a, b, d, atom))
    return True


def _kind(atom: Any) -> tuple[Any, Any]:
    """The instruction of an atom, and the atom."""
    of = _example(atom)
    of = of.atom if isinstance(of, (TiledMma, TiledCopy)) else of
    return instructions.instruction_of(of.op), of


def _tensors_set(atom: Any, of: Any) -> list[Field]:
    """The fields that are set to a tensor with a word for each instruction."""
    atom = _example(atom)
    of = atom.atom if isinstance(atom, TiledMma) else atom
    return [f for f in of.op.fields if isinstance(getattr(of, _FIELDS[f]), Tensor)]


def _stepped(s: _Steps, atom: Any, fields: list[Field], at_a: Any, at_b: Any, accumulates: bool) -> Any:
    """The atom for one step: it adds to what the step before gave, and has that step's words."""
    key: Any = (None if accumulates else "adds",)
    if not accumulates:
        atom = s.once(
            key, lambda: s.call(instructions.atom_set_value, (atom, Field.ACCUMULATE.value, True), hint="atom")
        )
    for field in fields:
        at = at_b if field is Field.SFB else at_a
        key = (*key, field, at)
        atom = s.once(key, lambda atom=atom, field=field, at=at: _worded(s, atom, field, at))
    return atom


def _worded(s: _Steps, atom: Any, field: Field, at: Any) -> Any:
    words = s.once(("words", field), lambda: s.call(instructions.atom_get_value, (atom, field.value), hint="words"))
    return s.call(instructions.atom_set_value, (atom, field.value, s.slice(words, at)), hint="atom")


# ------------------------------------------------------------------ copies


def _copy(
    s: _Steps, atom: Any, src: Any, dst: Any, pred: Any, bar: Any, mask: Any, policy: Any, desc: Any, _: Any = None
) -> bool:
    """Make the instructions of `cute.copy` and `cute.copy_atom_call`."""
    kind, of = _kind(atom)
    if kind is None:
        return False
    call = getattr(instructions, kind.name)
    given = dict(_named(pred=pred, tma_bar=bar, mcast_mask=mask, cache_policy=policy))
    tma = isinstance(of.op, TmaCopyOp)
    if not tma and not given.keys() <= inspect.signature(call).parameters.keys():
        return False  # `cute.copy` says why it refuses that, or branches for each thread
    if desc is not None:
        plain = s.call(GetAttr, (atom, "atom"), hint="atom") if isinstance(_example(atom), TiledCopy) else atom
        atom = s.method(CopyAtom, "with_tensor_map", (plain, desc), hint="atom")
    if tma:
        return _tma(s, call, atom, of, src, dst, (pred, bar, mask, policy))
    if isinstance(of.op, CopyUniversalOp) and not of.num_bits and pred is None:
        s.call(call, (atom, src, dst))
        return True
    if kind.name == "tmem_load_reduce":
        reduced, dst = dst[1], dst[0]
        for i, (x, y) in enumerate(_parts(s, of, src, dst)):
            s.call(call, (atom, x, y, _rest(s, reduced, i)))
        return True
    pairs = _parts(s, of, src, dst)
    guards = _guards(s, pred, len(pairs))
    for (x, y), guard in zip(pairs, guards):
        s.call(call, (atom, x, y), _named(pred=guard, tma_bar=bar, mcast_mask=mask, cache_policy=policy))
    return True


def _named(**given: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in given.items() if value is not None)


def _parts(s: _Steps, of: CopyAtom, src: Any, dst: Any) -> list[tuple[Any, Any]]:
    """Source and destination of each instruction."""
    if isinstance(of.op, SharedToTensor):
        count = int(layout.size(layout.shape(_example(src).layout)[1:]))
        return [(_rest(s, src, i), _rest(s, dst, i)) for i in range(count)]
    sides = []
    for t, name, tv in ((src, "src", of.layout_src_tv), (dst, "dst", of.layout_dst_tv)):
        paths = parts.instruction_paths(_example(t).layout, int(layout.size(tv, (1,))), name)
        sides.append([s.path(t, path) for path in paths])
    if len(sides[0]) != len(sides[1]):
        raise CuteError(f"copy: src makes {len(sides[0])} instructions, but dst {len(sides[1])}")
    return list(zip(*sides))


def _rest(s: _Steps, t: Any, i: int) -> Any:
    """The `i`-th instruction's part of a tensor (V, rest…)."""
    rest = layout.shape(_example(t).layout)[1:]
    return s.slice(t, (None, *layout.idx2crd(i, rest))) if rest else t


def _guards(s: _Steps, pred: Any, count: int) -> list[Any]:
    """The predicate of each instruction."""
    if pred is None:
        return [None] * count
    have = int(layout.size(_example(pred).shape))
    if count % have:
        raise CuteError(f"copy: pred has {have} elements, but there are {count} instructions to guard")
    each = count // have
    return [s.once((pred, i // each), lambda i=i: s.call(LoadElement, (pred, i // each))) for i in range(count)]


def _tma(s: _Steps, call: Any, atom: Any, of: CopyAtom, src: Any, dst: Any, given: tuple[Any, ...]) -> bool:
    """Make the boxes of a TMA copy."""
    pred, bar, mask, policy = given
    op: CopyOp = of.op
    if pred is not None or (op.writes and (bar is not None or mask is not None)):  # type: ignore[attr-defined]
        return False  # `cute.copy` says why it refuses that
    if op.writes:  # type: ignore[attr-defined]
        executable = s.call(instructions.make_exec_tma_store, (atom,), _named(cache_policy=policy), hint="exec")
    else:
        more = _named(mcast_mask=mask, cache_policy=policy)
        executable = s.call(instructions.make_exec_tma_load, (atom, bar), more, hint="exec")
    for x, y in _parts(s, of, src, dst):
        s.call(call, (executable, x, y))
    return True


_OF_A_COPY = ("atom", "src", "dst", "pred", "tma_bar_ptr", "mcast_mask", "cache_policy", "tma_desc_ptr")
_PARAMETERS = {
    "numba_cute.gemm": ("atom", "d", "a", "b", "c"),
    "numba_cute.mma_atom_call": ("atom", "d", "a", "b", "c"),
    "numba_cute.copy": (*_OF_A_COPY, "unroll_factor"),
    "numba_cute.copy_atom_call": _OF_A_COPY,
}
_LOWERED = {
    "numba_cute.gemm": _gemm, "numba_cute.mma_atom_call": _mma_atom_call, "numba_cute.copy": _copy,
    "numba_cute.copy_atom_call": _copy,
}  # fmt: skip
