# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Tensor memory (PTX ISA, "TensorCore 5th Generation", tcgen05); `tcgen05_mma` has the multiplies and
`tcgen05_copy` the copies that write it.

Tensor memory is 128 lanes of 512 32-bit columns for each CTA; an address has the lane in its upper 16 bits and the
column in the lower. One thread issues multiplies and copies, which run in order; `tcgen05_commit` lets an
mbarrier track all those that the thread issued before. Warp w of a warpgroup reaches lanes 32 * (w % 4) to
32 * (w % 4) + 31.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...seam import CuteError
from ..facts.fragment_layouts import elements
from ..facts.reduction import across
from ..facts.tensor_memory import (
    REPETITIONS,
    S16X32BX2,
    S16X64B,
    S16X128B,
    S16X256B,
    S32X32B,
    thread_values,
)
from ..form.checks import receivers
from ..form.choosing import by
from ..form.instr import ASYNC, MBARRIER, TCGEN05_LOADS, TCGEN05_STORES, WARP, instr
from ..form.kinds import cluster_mask, cluster_mbar, number, optional, out, same, smem, tmem, u32
from ..form.machine import Machine
from ..form.targets import FEATURES

_REF = "tensorcore-5th-generation-instructions-tcgen05"
_TARGET = FEATURES["tcgen05"]
_GROUPS = [{"cta_group": g} for g in (1, 2)]
_WORDS = u32["regs"]
SHAPES = {s.name: s for s in (S32X32B, S16X64B, S16X128B, S16X256B, S16X32BX2)}
"""The blocks of lanes and columns that loads and stores move, by their names in PTX."""
Patch = tuple[int, int, int, int]
"""The first lane, lanes, first column and columns of a load or store."""


@instr("tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [$dst], $columns;", target=_TARGET,
       issuer=WARP, ref=f"{_REF}-alloc", over=_GROUPS)  # fmt: skip
def tcgen05_alloc(m: Machine, dst: same(smem), columns: same(number), *, cta_group: int) -> None:
    """Take `columns` columns of tensor memory (a power of two, 32 to 512), waiting until they are free, and write
    their address to shared memory `dst`. One warp, of each CTA of the pair with cta_group 2; all 32 lanes."""
    address = m.tmem.alloc(int(columns))
    m.write(int(dst), np.array([address], np.uint32).view(np.uint8), proxy="generic")


@instr("tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 $taddr, $columns;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-dealloc", over=_GROUPS)  # fmt: skip
def tcgen05_dealloc(m: Machine, taddr: same(tmem), columns: same(number), *, cta_group: int) -> None:
    """Give back what `tcgen05_alloc` gave. One warp, before the kernel ends; all 32 lanes."""
    m.tmem.dealloc(int(taddr), int(columns))


@instr("tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;", target=_TARGET, issuer=WARP,
       ref=f"{_REF}-relinquish-alloc-permit", over=_GROUPS)  # fmt: skip
def tcgen05_relinquish_alloc_permit(m: Machine, *, cta_group: int) -> None:
    """Say that this CTA allocates no more, so that the next CTA on the SM may. One warp; all 32 lanes."""
    m.tmem.relinquish()


@instr("tcgen05.fence::before_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_before(m: Machine) -> None:
    """Order this thread's earlier tcgen05 operations before its next synchronisation with other threads."""
    m.tmem.fence_before()


@instr("tcgen05.fence::after_thread_sync;", target=_TARGET, ref=f"{_REF}-fence")
def tcgen05_fence_after(m: Machine) -> None:
    """Order this thread's later tcgen05 operations after its last synchronisation with other threads."""
    m.tmem.fence_after()


def _moves(what: str) -> list[dict[str, Any]]:
    """The forms of tcgen05.ld and .st; `what` names the static parameter of 16-bit elements."""
    found = []
    for shape in SHAPES.values():
        for num, packed in product((n for n in REPETITIONS if n <= shape.most), (False, True)):
            form = {"shape": shape.name, "num": num, what: packed, "regs": shape.registers * num}
            halves = shape.halves > 1
            found.append({**form, "split": num << packed if halves else None, "halves": halves})
    return found


_BESIDE = by(
    ("shape", "num", "pack"),
    {(s.name, n, p): n << p for s in SHAPES.values() if s.halves > 1 for n in REPETITIONS for p in (False, True)},
)
"""The place of a shape's second half unless `split` gives another: next to the first."""


@cache
def _held(shape: str, num: int, packed: bool) -> NDArray[np.int64]:
    """Return the elements of the block, lane by lane, that each thread holds in its registers: shape (32, elements)."""
    return elements(thread_values(SHAPES[shape], num, 16 if packed else 32))


def _patches(m: Machine, address: int, shape: str, num: int, packed: bool, split: int | None) -> list[Patch]:
    """The places of a load or store by this warp; its address must be in the warp's own quarter."""
    form, lane, column = SHAPES[shape], address >> 16, address & 0xFFFF
    quarter = 32 * (int(np.asarray(m.sreg("warpid")).ravel()[0]) % 4)
    first = range(quarter, quarter + 32, form.lanes)
    if lane not in first:
        begins = " or ".join(map(str, first))
        raise CuteError(
            f"tcgen05.ld/st: taddr {address:#x} is in lane {lane}, but this warp reaches lanes {quarter} to "
            f"{quarter + 31}, and {shape} begins in lane {begins}: add (warp % 4 * 32) << 16 to the allocation's "
            f"address"
        )
    width = form.columns * num << packed
    starts = (column,) if split is None else (column, column + split)
    return [(lane, form.lanes, at, width) for at in starts]


@instr("tcgen05.ld.sync.aligned.{shape}.x{num}<pack:.pack::16b>.b32 $dst, [$taddr]<halves:, {split}>;", target=_TARGET,
       issuer=WARP, done_by=TCGEN05_LOADS, ref=f"{_REF}-ld", over=_moves("pack"),
       ranges={"split": range(512)}, defaults={"pack": False, "split": _BESIDE})  # fmt: skip
def tcgen05_ld(
    m: Machine, dst: out(_WORDS), taddr: same(tmem), *, shape: str, num: int, pack: bool, split: int | None
) -> Any:
    """Load `num` repetitions (1 to 128, a power of two) of `shape` into registers, which may be read after
    `tcgen05_wait_ld`. All 32 lanes.

    shape: what register r of lane t holds of the lanes and columns from `taddr` on: "32x32b" lane t, column r;
    "16x64b" lane t // 4 + 8 * (t % 2), column 2 * r + t // 2 % 2; "16x128b" (num up to 64) lane t // 4 + 8 * (r % 2),
    column 4 * (r // 2) + t % 4; "16x256b" (num up to 32) lane t // 4 + 8 * (r // 2 % 2), column 8 * (r // 4) +
    2 * (t % 4) + r % 2; "16x32bx2" lane t % 16, column r, for t above 15 `split` columns (0 to 511) further, or next to
    the others if it is not named. pack: each register holds the lower halves of two columns side by side, so that there
    are twice as many columns. Shapes of 16 lanes begin in the first or the 17th of the warp's 32."""
    parts = [m.tmem.read(*patch) for patch in _patches(m, int(taddr), shape, num, pack, split)]
    block = np.concatenate(parts, axis=1)
    if not pack:
        return block.ravel()[_held(shape, num, pack)]
    return np.ascontiguousarray((block & 0xFFFF).astype(np.uint16).ravel()[_held(shape, num, pack)]).view(np.uint32)


_RED_SHAPES = (S32X32B, S16X32BX2)
_RED_TYPES = [{"type": "f32", "abs": a, "nan": n} for a in (False, True) for n in (False, True)]
_RED_TYPES += [{"type": t, "abs": False, "nan": False} for t in ("s32", "u32")]


@instr("tcgen05.ld.red.sync.aligned.{shape}.x{num}.{op}<abs:.abs><nan:.NaN>.{type} $dst, $red, [$taddr]"
       "<halves:, {split}>;",
       target="sm_103f|sm_110f", issuer=WARP, done_by=TCGEN05_LOADS, ref=f"{_REF}-ld",
       over=[{**form, "op": op, **kind} for form in _moves("pack") if not form["pack"] and form["num"] > 1
             and SHAPES[form["shape"]] in _RED_SHAPES for op in ("min", "max") for kind in _RED_TYPES],
       ranges={"split": range(512)}, defaults={"abs": False, "nan": False, "split": _BESIDE})  # fmt: skip
def tcgen05_ld_red(
    m: Machine, dst: out(_WORDS), red: out(u32[1]), taddr: same(tmem), *, shape: str, num: int, op: str, type: str,
    abs: bool, nan: bool, split: int | None,
) -> Any:  # fmt: skip
    """`tcgen05_ld` without packing, of `num` above 1, and the least or greatest of what each thread loads into its
    `red`. All 32 lanes.

    shape, num, split: as there. op: "min" or "max". type: "f32", "s32" or "u32". Of floats, with abs of the magnitudes,
    with nan NaN if any is; without, a NaN counts only where all are (the PTX ISA leaves that, and the order of zeros,
    open: it is redux.sync's in the simulator)."""
    parts = [m.tmem.read(*patch) for patch in _patches(m, int(taddr), shape, num, False, split)]
    words = np.concatenate(parts, axis=1).ravel()[_held(shape, num, False)]
    return words, across(op, words.view(_RED_DTYPES[type]), abs, nan).view(np.uint32)[:, None]


_RED_DTYPES = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}


@instr("tcgen05.st.sync.aligned.{shape}.x{num}<unpack:.unpack::16b>.b32 [$taddr]<halves:, {split}>, $src;",
       target=_TARGET, issuer=WARP, done_by=TCGEN05_STORES, ref=f"{_REF}-st", over=_moves("unpack"),
       ranges={"split": range(512)},
       defaults={"unpack": False, "split": by(("shape", "num", "unpack"), _BESIDE.values)})  # fmt: skip
def tcgen05_st(
    m: Machine, taddr: same(tmem), src: _WORDS, *, shape: str, num: int, unpack: bool, split: int | None
) -> None:
    """`tcgen05_ld` the other way; done after `tcgen05_wait_st`. All 32 lanes.

    shape, num: as there. split: as there; the two halves must not overlap. unpack: each register holds the lower halves
    of two columns side by side; what the upper halves hold then is not specified (zeros in the simulator)."""
    patches = _patches(m, int(taddr), shape, num, unpack, split)
    if split is not None and split < patches[0][3]:
        raise CuteError(
            f"tcgen05.st: split is {split}, but each half of {shape}.x{num} has {patches[0][3]} columns, so that two "
            f"threads would store to the same: it must be at least that"
        )
    words = np.ascontiguousarray(np.asarray(src).astype(np.uint32))
    values = words.view(np.uint16) if unpack else words
    block = np.empty(values.size, np.uint32)
    block[_held(shape, num, unpack)] = values
    for (lane, _, column, _), part in zip(patches, np.split(block.reshape(patches[0][1], -1), len(patches), axis=1)):
        m.tmem.write(lane, column, part)


@instr("tcgen05.wait::ld.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_ld(m: Machine) -> None:
    """Wait until all loads of the calling threads from tensor memory are done. All 32 lanes."""
    m.tmem.wait_loads()


@instr("tcgen05.wait::st.sync.aligned;", target=_TARGET, issuer=WARP, ref=f"{_REF}-wait")
def tcgen05_wait_st(m: Machine) -> None:
    """Wait until all stores of the calling threads to tensor memory are done. All 32 lanes."""
    m.tmem.wait_stores()


@instr("tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster<cta_mask:.multicast::cluster>.b64 "
       "[$bar]<cta_mask:, $cta_mask>;", target=_TARGET, proxy=ASYNC, done_by=MBARRIER, ref=f"{_REF}-commit",
       over=_GROUPS)  # fmt: skip
def tcgen05_commit(m: Machine, bar: cluster_mbar, cta_mask: optional(cluster_mask), *, cta_group: int) -> None:
    """Let `bar` receive one arrival when all the multiplies, copies and shifts that this thread issued are complete;
    with `cta_mask` the barrier at the same offset in every CTA of the cluster whose rank's bit is set. One thread: the
    one that issued them."""
    cta, at = m.owner(bar)
    ctas = receivers("tcgen05.commit", None if cta_mask is None else int(cta_mask), cta)
    m.tmem.commit([m.mbar(at, c) for c in ctas])
