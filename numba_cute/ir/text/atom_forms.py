# SPDX-License-Identifier: Apache-2.0
"""The forms of atoms and tiled objects: `!numba_cute.nvgpu.mma_atom<!f16,!f16,!f32,[64,64,16],SM90>` and the like."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any

from ...atoms.copy_atom import CopyAtom, ThrCopy, TiledCopy
from ...atoms.mma_atom import MmaAtom, ThrMma, TiledMma
from ...atoms.op import CopyOp, Field, MmaOp
from ...dtypes import DType, Float8E8M0FNU
from ...nvgpu.common import CopyUniversalOp
from ...nvgpu.common.choices import CtaGroup, OperandMajorMode, OperandSource
from ...nvgpu.hopper.tma_ops import CopyBulkTensorTileG2SOp, CopyBulkTensorTileS2GOp, TmaCopyOp
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Group, Object, TensorMap
from . import atoms, registry
from .fields import Fields, Form, Listed, Thing, Word, add_form, described_value, held, is_constant, is_int
from .forms import dtype_of, dtype_word, exactly

# ------------------------------------------------------------------ MMA atoms

_USUAL = {
    "a_src": OperandSource.SMEM, "a_major_mode": OperandMajorMode.K, "b_major_mode": OperandMajorMode.K,
    "cta_group": None, "sf_type": Float8E8M0FNU, "sf_dtype": Float8E8M0FNU,
}  # fmt: skip
"""The choices of an operation of which nothing is said."""


@functools.cache
def mma_ops() -> dict[str, type]:
    """Return the classes of matrix instructions by their names, as "warpgroup.MmaF16BF16Op", in the order of the
    facades: of several that types and shape may mean the first is meant, as `make_mma_atom` has it."""
    shown = {cls: i for i, cls in enumerate(atoms.operations(MmaOp))}
    return dict(sorted(registry.short_names(MmaOp).items(), key=lambda item: shown.get(item[1], len(shown))))


@functools.cache
def usual_mma(cls: type, a: DType, b: DType, c: DType, shape: tuple[int, ...]) -> Any:
    """Return the operation of this class on elements of A, B and the accumulator, of this shape, with the usual
    choices; None where it has none such."""
    given = {"a_dtype": a, "b_dtype": b, "acc_dtype": c, "shape_mnk": shape, "instruction_shape": shape, **_USUAL}
    given |= {"ab_dtype": a} if a is b else {}
    given |= {"abacc_dtype": a} if a is b is c else {}
    chosen: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name in given:
            chosen[field.name] = given[field.name]
        elif field.default is dataclasses.MISSING:
            return None
    for group in CtaGroup if "cta_group" in chosen else (None,):
        if group is not None:
            chosen["cta_group"] = group  # a pair of CTAs for shapes that one has not
        try:
            op = cls(**chosen)
            if (op.a_type, op.b_type, op.accumulator) == (a, b, c) and atoms.shape_of(op) == shape:
                return op
        except CuteError:
            continue
    return None


def gpu_of(op: Any) -> str | None:
    """Return the first GPUs that have an operation, "SM90"; None where all have it."""
    row = op.row()
    return None if row is None else atoms.gpu_of(row[0].target)


@functools.cache
def mmas_of(a: DType, b: DType, c: DType, shape: tuple[int, ...], gpu: str) -> dict[str, Any]:
    """Return the operations, by the names of their classes, that types, shape and GPU may mean. Those of sparse and of
    block-scaled operands, which take more than A and B, are always named."""
    made = {name: usual_mma(cls, a, b, c, shape) for name, cls in mma_ops().items()}
    more = {Field.METADATA, Field.SFA, Field.SFB}
    return {name: op for name, op in made.items() if op is not None and not more & set(op.fields) and gpu_of(op) == gpu}


def _mma_head(fields: Fields) -> list[Thing] | None:
    d = fields["op"]
    if not isinstance(d, Object) or not issubclass(d.cls, MmaOp) or not is_constant(d):
        return None
    op = held(d)
    name = registry.short(registry.mnemonic_of(d.cls))
    types, shape = (op.a_type, op.b_type, op.accumulator), atoms.shape_of(op)
    cls: type = d.cls
    if mma_ops().get(name) is not cls or usual_mma(cls, *types, shape) is None:
        return None
    gpu = gpu_of(op)
    meant = gpu is not None and next(iter(mmas_of(*types, shape, gpu)), None) == name
    said = Listed(tuple(map(Constant, shape)))
    return [*map(Constant, types), said, Word(gpu if meant and gpu else name)]


_MMA = "!f16,!f16,!f32,[64,64,16],SM90"


def _mma_implied(things: list[Thing]) -> Fields:
    if len(things) != 5 or not isinstance(things[3], Listed) or not isinstance(things[4], Word):
        raise CuteError(f"an MMA atom gives the types of A, B and the accumulator, the shape and the GPU, as in {_MMA}")
    a, b, c = (dtype_of(t).value for t in things[:3])
    shape, who = _numbers(things[3], "the shape"), things[4].name
    said = f"{', '.join(map(registry.element_name, (a, b, c)))} of shape {list(shape)}"
    if re.fullmatch(r"SM\d+", who):
        found = mmas_of(a, b, c, shape, who)
        if not found:
            raise CuteError(f"{who} has no matrix instruction of {said}")
        return _new(next(iter(found.values())))
    if who not in mma_ops():
        raise CuteError(f"{who} is neither a GPU such as SM90 nor an operation; they are {', '.join(mma_ops())}")
    op = usual_mma(mma_ops()[who], a, b, c, shape)
    if op is None:
        raise CuteError(f"{who} has none of {said}")
    return _new(op)


def _new(op: Any) -> Fields:
    """The fields of a new atom of an operation, but for those that all atoms begin with."""
    return {"op": described_value(op), "accumulate": described_value(not op.asynchronous)}


def _numbers(listed: Listed, what: str) -> tuple[int, ...]:
    if not all(is_int(t) for t in listed.things):
        raise CuteError(f"{what} is made of ints")
    return tuple(t.value for t in listed.things)


add_form(Form(MmaAtom, "numba_cute.nvgpu.mma_atom", _mma_head, _mma_implied, within="op", tight=True))

# ------------------------------------------------------------------ TMA atoms


def _moves(writes: bool) -> Any:
    def takes(fields: Fields) -> bool:
        op = fields["op"]
        return isinstance(op, Object) and issubclass(op.cls, TmaCopyOp) and op.cls.writes is writes

    return takes


def _tma_head(usual: type) -> Any:
    def head(fields: Fields) -> list[Thing] | None:
        op, dtype, bits = fields["op"], fields["value_type"], fields["num_bits"]
        assert isinstance(op, Object)
        known = _default_op(op.cls) is not None and isinstance(dtype, Constant) and isinstance(dtype.value, DType)
        if not known or not is_int(bits) or bits.value % dtype.value.width:  # type: ignore[union-attr]
            return None
        box = Listed((Constant(bits.value // dtype.value.width),))  # type: ignore[union-attr]
        who = [] if op.cls is usual else [Word(registry.short(registry.mnemonic_of(op.cls)))]
        return [dtype, box, *who]

    return head


SWIZZLES = ("none", "32B", "64B", "128B")
"""Swizzles of a tensor map for its data in shared memory."""


def _tma_implied(usual: type) -> Any:
    def implied(things: list[Thing]) -> Fields:
        if len(things) < 2 or not isinstance(things[1], Listed):
            raise CuteError('a TMA atom gives its element type and its box, as in !f16,[128,64],"128B"')
        dtype, box, cls = dtype_of(things[0]), _numbers(things[1], "the box"), usual
        for thing in things[2:]:
            if isinstance(thing, Word):
                cls = _op_class(thing.name, TmaCopyOp)
            elif not isinstance(thing, Constant) or thing.value not in SWIZZLES:
                legal = ", ".join(SWIZZLES)
                raise CuteError(f"after a TMA atom's box there may stand its swizzle, one of {legal}, and an operation")
        return {
            "op": _default_op(cls) or Constant(None), "value_type": dtype, "tensor_map": TensorMap(),
            "num_bits": Constant(math.prod(box) * dtype.value.width),
            "tma_modes": Group(tuple(Constant(i) for i in reversed(range(len(box))))),
        }  # fmt: skip

    return implied


@functools.cache
def _default_op(cls: type) -> Description | None:
    """An operation of which nothing else is said; None where something must be."""
    if registry.mnemonic_of(cls) == registry.OBJECT:
        return None
    if any(f.default is dataclasses.MISSING for f in dataclasses.fields(cls)):
        return None
    return described_value(cls())


def _op_class(name: str, base: type) -> type:
    known = registry.short_names(base)
    if name not in known:
        raise CuteError(f"{name} is not an operation; they are {', '.join(known)}")
    return known[name]


for _name, _cls in (("tma_load", CopyBulkTensorTileG2SOp), ("tma_store", CopyBulkTensorTileS2GOp)):
    add_form(
        Form(
            CopyAtom, f"numba_cute.nvgpu.{_name}", _tma_head(_cls), _tma_implied(_cls), _moves(_name == "tma_store"),
            within="op", tight=True,
        )
    )  # fmt: skip

# ------------------------------------------------------------------ other copy atoms


def _universal_head(fields: Fields) -> list[Thing] | None:
    dtype, bits = dtype_word(fields["value_type"]), fields["num_bits"]
    if dtype is None or not is_int(bits):
        return None
    return [dtype] if bits == Constant(0) else [dtype, Word(f"{bits.value} b")]  # type: ignore[union-attr]


def _universal_implied(things: list[Thing]) -> Fields:
    words = [t.name if isinstance(t, Word) else "" for t in things]
    found = re.fullmatch(r"(\d+) b", words[1]) if len(words) == 2 else None
    if len(words) not in (1, 2) or len(words) == 2 and found is None:
        raise CuteError("a universal copy gives its element type and how many bits it copies, as in f32, 128 b")
    bits = Constant(0 if found is None else int(found[1]))
    return {"op": _default_op(CopyUniversalOp) or Constant(None), "value_type": dtype_of(things[0]), "num_bits": bits}


add_form(
    Form(
        CopyAtom, "cute_nvgpu.atom.universal_copy", _universal_head, _universal_implied,
        exactly(CopyAtom, _universal_head, _universal_implied),
    )
)  # fmt: skip


def _copy_head(fields: Fields) -> list[Thing] | None:
    op, dtype = fields["op"], fields["value_type"]
    if not isinstance(op, Object) or not isinstance(dtype, Constant) or _default_op(op.cls) is None:
        return None
    return [Word(registry.short(registry.mnemonic_of(op.cls))), dtype]


def _copy_implied(things: list[Thing]) -> Fields:
    if len(things) != 2 or not isinstance(things[0], Word):
        raise CuteError("a copy atom gives its operation and its element type, as in CopyUniversalOp,!f16")
    cls = _op_class(things[0].name, CopyOp)
    op = _default_op(cls)
    if op is None:
        raise CuteError(f"{things[0].name} has choices that must be made: say op = !{registry.mnemonic_of(cls)}<…>")
    return {"op": op, "value_type": dtype_of(things[1])}


add_form(Form(CopyAtom, "numba_cute.nvgpu.copy_atom", _copy_head, _copy_implied, within="op", tight=True))

# ------------------------------------------------------------------ tiled objects, and a thread's part of them


def _positional(cls: type, *names: str) -> None:
    """Let these fields of a class stand first, without their names: a tuple as [a,b]."""
    name = registry.RENAMED[cls.__name__]

    def head(fields: Fields) -> list[Thing] | None:
        return [_listed(fields[n]) if n == "tiler_mn" else fields[n] for n in names]

    def implied(things: list[Thing]) -> Fields:
        if len(things) != len(names) or any(isinstance(t, Word) for t in things):
            raise CuteError(f"!{name}<…> begins with {', '.join(names)}")
        return {n: Group(t.things) if isinstance(t, Listed) else t for n, t in zip(names, things)}

    add_form(Form(cls, name, head, implied))


def _listed(d: Description) -> Thing:
    return Listed(d.items) if isinstance(d, Group) else d


_positional(TiledMma, "atom", "atom_layout_mnk")
_positional(ThrMma, "tiled_mma", "thr_idx")
_positional(TiledCopy, "atom", "layout_tv_tiled", "tiler_mn")
_positional(ThrCopy, "tiled_copy", "thr_idx")
