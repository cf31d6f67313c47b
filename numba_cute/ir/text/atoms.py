# SPDX-License-Identifier: Apache-2.0
"""The atoms of the dialect `cute_nvgpu` as the IR writes them: by types, shape and GPU, and what is set on them.

`cute.make_mma_atom` and `cute.make_copy_atom` are the API's, of an operation; those here say the same without one.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any

from ... import layout, nvgpu
from ...atoms import copy_atom, mma_atom
from ...atoms.copy_atom import CopyAtom, TiledCopy
from ...atoms.mma_atom import MmaAtom, TiledMma
from ...atoms.op import CopyOp, Field, MmaOp
from ...dtypes import DType, Float8E8M0FNU, Uint8
from ...nvgpu.common import CtaGroup, OperandMajorMode, OperandSource
from ...nvgpu.common.by_row import TYPES, cases
from ...nvgpu.cpasync import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp, CopyBulkTensorTileS2GOp
from ...nvgpu.hopper.tma import TmaInfo
from ...nvgpu.hopper.tma_ops import TmaCopyOp
from ...seam import CuteError, frozen, is_frozen_class, known_as, traced
from ...tensor.pointer import AddressSpace, Pointer

__all__ = [
    "ExecTma", "atom_get_value", "atom_set_value", "make_copy_atom", "make_exec_tma_load", "make_exec_tma_store",
    "make_mma_atom", "make_tiled_mma", "make_tma_load", "make_tma_store",
]  # fmt: skip

_PARTS = (nvgpu.warp, nvgpu.warpgroup, nvgpu.tcgen05, nvgpu.cpasync, nvgpu)


@functools.cache
def operations(kind: type) -> tuple[type, ...]:
    """List the operations that the facades show. kind: CopyOp or MmaOp."""
    found: dict[type, None] = {}
    for part in _PARTS:
        for name in part.__all__:
            shown = getattr(part, name)
            if is_frozen_class(shown) and issubclass(shown, kind):
                found.setdefault(shown)
    return tuple(found)


# ------------------------------------------------------------------ matrix instructions


def gpu_of(target: str) -> str:
    """Return the first GPU of a row's target, as CuTe's IR writes it: "SM90" of "sm_90a"."""
    return "SM" + re.sub(r"^sm_|[af]$", "", target.split("|")[0])


def shape_of(op: Any) -> tuple[int, ...]:
    """Return the shape (M, N, K) that an operation is called by."""
    said = getattr(op, "instruction_shape", getattr(op, "shape_mnk", ()))
    return tuple(said if len(said) == 3 else op.traits().shape_mnk)


@known_as("cute_nvgpu")
@traced
def make_mma_atom(
    a_type: DType,
    b_type: DType,
    acc_type: DType,
    shape_mnk: tuple[int, int, int],
    gpu: str = "",
    *,
    sparse: bool = False,
    sf_type: DType | None = None,
    sf_block: int | None = None,
    a_src: OperandSource = OperandSource.SMEM,
    a_major_mode: OperandMajorMode = OperandMajorMode.K,
    b_major_mode: OperandMajorMode = OperandMajorMode.K,
    cta_group: CtaGroup = CtaGroup.ONE,
    saturate: bool | None = None,
    selector: int | None = None,
    bit_op: str | None = None,
) -> MmaAtom:
    """Make the atom of a matrix instruction by what its type says:
    `!numba_cute.nvgpu.mma_atom<f16,f16,f32,[64,64,16],SM90>`.

    a_type, b_type, acc_type: the types of A, B and the accumulator. shape_mnk: its tile (M, N, K) in elements of the
    instruction, of which one of a tensor may hold several (bits). gpu: the first GPUs
    that have it, "SM80" (a warp's), "SM90" (a warpgroup's), "SM100" (the matrix unit's) and the like; "": one thread's
    multiplication. sparse: whether half of A along K is stored. sf_type: the type of the scale factors of a block-
    scaled one; sf_block: how many stored elements of a row share one, where that leaves a choice (SM100). a_src: where
    A lies, of SM90 and SM100. a_major_mode, b_major_mode: theirs. cta_group: of SM100. saturate, selector, bit_op: as
    the operations that have them take them; None: their defaults. Of several operations with these types the first that
    the facades show is meant. Raises CuteError if there is none. PTX: none, any
    target; the instruction's own are those of `gpu`."""
    given = {
        "a": a_type, "b": b_type, "acc": acc_type, "shape": shape_mnk, "sf": sf_type, "block": sf_block,
        "a_src": a_src, "a_major_mode": a_major_mode, "b_major_mode": b_major_mode, "cta_group": cta_group,
        "saturate": saturate, "selector": selector, "bit_op": bit_op,
    }  # fmt: skip
    for name in ("a", "b", "acc"):
        if not isinstance(given[name], DType):
            raise CuteError(f"make_mma_atom: {name}_type {given[name]!r} is not an element type")
    if not isinstance(shape_mnk, tuple) or len(shape_mnk) != 3 or any(type(x) is not int for x in shape_mnk):
        raise CuteError(f"make_mma_atom: shape_mnk {shape_mnk!r} must be three static numbers, (M, N, K)")
    refused: list[str] = []
    for cls in operations(MmaOp):
        op = _made(cls, given, gpu, sparse, refused)
        if op is not None:
            return mma_atom.make_mma_atom(op)
    types = ", ".join(str(given[n]) for n in ("a", "b", "acc"))
    more = "".join((" sparse" if sparse else "", "" if sf_type is None else f" with factors of {sf_type}"))
    why = f": {'; '.join(refused[:3])}" if refused else "; docs/nvgpu.md has the table"
    raise CuteError(f"make_mma_atom: {gpu or 'a thread'} has no{more} instruction of {types}, {list(shape_mnk)}{why}")


_HELD = {
    "ab_dtype": ("a", "b"), "abacc_dtype": ("a", "b", "acc"), "a_dtype": ("a",), "b_dtype": ("b",),
    "acc_dtype": ("acc",), "sf_type": ("sf",), "sf_dtype": ("sf",), "shape_mnk": ("shape",),
    "instruction_shape": ("shape",),
}  # fmt: skip
"""The fields of operations, and what is given for them, which must agree."""


def _made(cls: Any, given: dict[str, Any], gpu: str, sparse: bool, refused: list[str]) -> MmaOp | None:
    """The operation of this class with these types and shape; None, and why in `refused`, if it has none."""
    targets = {gpu_of(t) for row in cls.rows for t in (row.target, *(c.get("target", "") for c in row.spelled)) if t}
    if gpu not in (targets or {""}) or sparse != (getattr(cls, "sparsity", 1) > 1):
        return None
    if cls.rows and (given["a"], given["b"], given["acc"]) not in _types(cls):
        return None
    names = [f.name for f in dataclasses.fields(cls)]
    scaled = Field.SFA in cls.fields
    own = bool({"sf_type", "sf_dtype"} & set(names))
    if scaled != (given["sf"] is not None) or (scaled and not own and given["sf"] != Float8E8M0FNU):
        return None
    fields: dict[str, Any] = {}
    for name in names:
        values = [given[key] for key in _HELD.get(name, (name,)) if key in given]
        if any(v != values[0] for v in values):
            return None
        if values and values[0] is not None:
            fields[name] = values[0]
    if {n for n in ("saturate", "selector", "bit_op") if given[n] is not None} - set(names):
        return None
    try:
        op: MmaOp = cls(**fields)
    except CuteError as e:
        refused.append(str(e))
        return None
    row = op.row()
    if given["block"] is not None and (row is None or row[1].get("block", given["block"]) != given["block"]):
        return None
    same = (op.a_type, op.b_type, op.accumulator) == (given["a"], given["b"], given["acc"])
    if not same or shape_of(op) != given["shape"] or (row is not None and gpu_of(row[0].target) != gpu):
        return None
    return op


@functools.cache
def _types(cls: Any) -> frozenset[tuple[Any, ...]]:
    """The types of A, B and the accumulator that an operation's rows have. A tensor's element may hold several bits."""
    found = (
        tuple(TYPES.get(case[k]) for k in ("a_type", "b_type", "d_type"))
        for _, case in cases(cls, "a_type", "b_type", "d_type")
    )
    bytes_of_bits = getattr(cls, "elements_in", 1) > 1
    return frozenset((Uint8, Uint8, t[2]) if bytes_of_bits else t for t in found)


@known_as("cute_nvgpu")
@traced
def make_tiled_mma(atom: MmaAtom, atom_layout: Any = (1, 1, 1), tile: Any = None) -> TiledMma:
    """Tile a matrix instruction as `cute.make_tiled_mma` does, where a layout of groups may leave out its last modes.

    atom: of the instruction. atom_layout: how many groups of its threads lie along M, N, K: a shape or a static layout
    of one to three modes; those that it lacks are 1. tile: None, or what is dealt out at once of M, N and K. Raises
    CuteError for other forms. PTX: none, any target; the instruction's own are those of `atom`."""
    groups = atom_layout if isinstance(atom_layout, layout.Layout) else layout.make_layout(atom_layout)
    if layout.rank(groups) < 3:
        groups = layout.append_ones(groups, up_to_rank=3)
    return mma_atom.make_tiled_mma(atom, groups, tile)


# ------------------------------------------------------------------ copies


@known_as("cute_nvgpu")
@traced
def make_copy_atom(
    op: CopyOp | str,
    value_type: DType,
    num_bits: int = 0,
    *,
    num_matrices: int | None = None,
    transpose: bool | None = None,
    unpack_bits: int | None = None,
    cache_mode: Any = None,
    prefetch: Any = None,
    zfill: bool | None = None,
    repeat: Any = None,
    pack: Any = None,
    unpack: Any = None,
    red_op: Any = None,
    abs: bool | None = None,
    nan: bool | None = None,
    cta_group: CtaGroup | None = None,
    reduction_kind: Any = None,
    peer: Any = None,
    memory_order: Any = None,
    memory_scope: Any = None,
    l2_prefetch_size: Any = None,
    l1c_evict_priority: Any = None,
    load_cache_mode: Any = None,
    store_cache_mode: Any = None,
    shared_space: Any = None,
    invariant: bool | None = None,
) -> CopyAtom:
    """Make the atom of a copy by what its type says: `!numba_cute.nvgpu.copy_atom<LdMatrix8x8x16bOp,f16>`.

    op: an operation, or the name of one ("CopyUniversalOp", "CopyG2SOp"). value_type: the elements' type. num_bits: of
    one instruction, for operations that can choose; 0: left to the operation. num_matrices, transpose, unpack_bits,
    cache_mode, prefetch, zfill, repeat, pack, unpack, red_op, abs, nan, cta_group, reduction_kind, peer, memory_order,
    memory_scope, l2_prefetch_size, l1c_evict_priority, load_cache_mode, store_cache_mode, shared_space, invariant: the
    fields of an operation that is named, which says what they mean; None: its defaults. Raises CuteError for
    operations, fields and values that there are not. PTX: none, any target; the instruction's own are the
    operation's."""
    given = {
        "num_matrices": num_matrices, "transpose": transpose, "unpack_bits": unpack_bits, "cache_mode": cache_mode,
        "prefetch": prefetch, "zfill": zfill, "repeat": repeat, "pack": pack, "unpack": unpack, "redOp": red_op,
        "abs": abs, "nan": nan, "cta_group": cta_group, "reduction_kind": reduction_kind, "peer": peer,
        "memory_order": memory_order, "memory_scope": memory_scope, "l2_prefetch_size": l2_prefetch_size,
        "l1c_evict_priority": l1c_evict_priority, "load_cache_mode": load_cache_mode,
        "store_cache_mode": store_cache_mode, "shared_space": shared_space, "invariant": invariant,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(op, str):
        op = _named(op, options)
    elif options:
        raise CuteError(f"make_copy_atom: {next(iter(options))} is for an operation that is named, and op is {op!r}")
    return copy_atom.make_copy_atom(op, value_type, num_bits)


def _named(name: str, options: dict[str, Any]) -> CopyOp:
    cls: Any = next((c for c in operations(CopyOp) if c.__name__ == name), None)
    if cls is None:
        known = ", ".join(c.__name__ for c in operations(CopyOp))
        raise CuteError(f"make_copy_atom: op {name!r} is no copy operation; these are: {known}")
    names = [f.name for f in dataclasses.fields(cls)]
    unknown = [n for n in options if n not in names]
    if unknown:
        raise CuteError(f"make_copy_atom: {name} has no {unknown[0]}; it has: {', '.join(names) or 'no options'}")
    made: CopyOp = cls(**options)
    return made


# ------------------------------------------------------------------ TMA


@known_as("cute_nvgpu")
@traced
def make_tma_load(
    tma: Any,
    value_type: DType | None = None,
    box: tuple[int, ...] | None = None,
    *,
    multicast: bool = False,
    cta_group: CtaGroup = CtaGroup.ONE,
) -> CopyAtom:
    """Make the atom that loads boxes by a tensor map.

    tma: the atom that `cpasync.make_tiled_tma_atom` made on the host (or all that it gave), which is then looked at; or
    a Pointer to a tensor map in global memory. value_type, box: of such a map the elements' type, and how many of them
    a box has along each dimension. multicast, cta_group: of the load by such a map, as of
    `CopyBulkTensorTileG2SMulticastOp`. Raises CuteError for others. PTX: none; its loads are cp.async.bulk.tensor,
    sm_90."""
    if isinstance(tma, Pointer):
        op = (
            CopyBulkTensorTileG2SMulticastOp(cta_group=cta_group)
            if multicast
            else CopyBulkTensorTileG2SOp(cta_group=cta_group)
        )
        return _by_map("make_tma_load", op, tma, value_type, box)
    return _tma(tma, "make_tma_load", False, value_type, box)


@known_as("cute_nvgpu")
@traced
def make_tma_store(tma: Any, value_type: DType | None = None, box: tuple[int, ...] | None = None) -> CopyAtom:
    """Make the atom that stores boxes by a tensor map. tma, value_type, box: as of `make_tma_load`. Raises CuteError
    for others. PTX: none; its stores are cp.async.bulk.tensor, sm_90."""
    if isinstance(tma, Pointer):
        return _by_map("make_tma_store", CopyBulkTensorTileS2GOp(), tma, value_type, box)
    return _tma(tma, "make_tma_store", True, value_type, box)


def _by_map(what: str, op: TmaCopyOp, at: Pointer, value_type: Any, box: Any) -> CopyAtom:
    if at.space not in (AddressSpace.gmem, AddressSpace.generic):
        raise CuteError(f"{what}: tma {at!r} must point to a tensor map in global memory")
    if not isinstance(value_type, DType):
        raise CuteError(f"{what}: value_type {value_type!r} must be the type of the map's elements")
    if not isinstance(box, tuple) or not 1 <= len(box) <= 5 or any(type(n) is not int or n < 1 for n in box):
        raise CuteError(f"{what}: box {box!r} must be the static extents of a box along the map's 1 to 5 dimensions")
    elements = functools.reduce(lambda a, b: a * b, box)
    return CopyAtom(op, value_type, elements * value_type.width, at.address)


def _tma(tma: Any, what: str, writes: bool, value_type: Any, box: Any) -> CopyAtom:
    atom = tma.copy_atom if isinstance(tma, TmaInfo) else tma.atom if isinstance(tma, (TiledCopy, ExecTma)) else tma
    if value_type is not None or box is not None:
        raise CuteError(f"{what}: value_type and box are for a pointer to a tensor map, and tma is {tma!r}")
    if not isinstance(atom, CopyAtom) or not isinstance(atom.op, TmaCopyOp) or atom.op.writes != writes:
        kind = "store" if writes else "load"
        raise CuteError(f"{what}: tma {tma!r} is not an atom of a TMA {kind}, as cpasync.make_tiled_tma_atom makes it")
    return atom


@frozen
class ExecTma:
    """A TMA atom with all that its execution needs, as make_exec_tma_load and make_exec_tma_store make it.

    atom: the atom. bar: the mbarrier that a load completes its bytes on. mask: the blocks of the cluster that receive a
    multicast load, a bit each. policy: an L2 policy word. None: not given."""

    atom: CopyAtom
    bar: Any = None
    mask: Any = None
    policy: Any = None


@known_as("cute_nvgpu")
@traced
def make_exec_tma_load(load: Any, tma_bar: Pointer, mcast_mask: Any = None, cache_policy: Any = None) -> ExecTma:
    """Give a TMA load what its execution needs, for `tma_load_execute`.

    load: the atom, as `make_tma_load` takes it. tma_bar: the mbarrier that its bytes complete on. mcast_mask: of a
    multicast load the blocks that receive it, a bit each. cache_policy: an L2 policy word. Raises CuteError for what is
    no load. PTX: none, sm_90."""
    return ExecTma(_tma(load, "make_exec_tma_load", False, None, None), tma_bar, mcast_mask, cache_policy)


@known_as("cute_nvgpu")
@traced
def make_exec_tma_store(store: Any, cache_policy: Any = None) -> ExecTma:
    """Give a TMA store or reduction what its execution needs, for `tma_store_execute`.

    store: the atom, as `make_tma_store` takes it. cache_policy: an L2 policy word. Raises CuteError for what is no
    store. PTX: none, sm_90."""
    return ExecTma(_tma(store, "make_exec_tma_store", True, None, None), policy=cache_policy)


# ------------------------------------------------------------------ what is set on atoms

_EXEC = {"tma_bar": "bar", "mcast_mask": "mask", "cache_policy": "policy"}


@known_as("cute_nvgpu")
@traced
def atom_get_value(atom: Any, field: Field | str) -> Any:
    """Read what is set on an atom.

    atom: an MmaAtom or a TiledMma, or what `make_exec_tma_load` gave. field: of a matrix instruction a member of
    `nvgpu.warpgroup.Field`, or its value ("accum_c", "neg_a"); of TMA "tma_bar", "mcast_mask" or "cache_policy". Raises
    CuteError for a field that the atom does not have. PTX: none, any target."""
    if isinstance(atom, ExecTma):
        return getattr(atom, _exec_field(field, "atom_get_value"))
    return _mma(atom, "atom_get_value").get(_field(field, "atom_get_value"))


@known_as("cute_nvgpu")
@traced
def atom_set_value(atom: Any, field: Field | str, value: Any) -> Any:
    """Give an atom with something set on it: atoms are immutable.

    atom, field: as of `atom_get_value`. value: what is set. Raises CuteError for a field that the atom does not have.
    PTX: none, any target."""
    if isinstance(atom, ExecTma):
        return dataclasses.replace(atom, **{_exec_field(field, "atom_set_value"): value})
    return _mma(atom, "atom_set_value").set(_field(field, "atom_set_value"), value)


def _mma(atom: Any, what: str) -> Any:
    if not isinstance(atom, (MmaAtom, TiledMma)):
        raise CuteError(f"{what}: atom {atom!r} must be an MmaAtom, a TiledMma or an executable TMA atom")
    return atom


def _exec_field(field: Any, what: str) -> str:
    if not isinstance(field, str) or field not in _EXEC:
        raise CuteError(f"{what}: field {field!r} is none of a TMA atom; these are: {', '.join(_EXEC)}")
    return _EXEC[field]


def _field(field: Any, what: str) -> Field:
    found = next((f for f in Field if field in (f, f.value)), None)
    if found is None:
        raise CuteError(f"{what}: field {field!r} is none of a matrix instruction; these are: {', '.join(_fields())}")
    return found


def _fields() -> Iterator[str]:
    return (str(f.value) for f in Field)
