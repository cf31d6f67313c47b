# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Copies of boxes of a tensor by the TMA unit (PTX ISA, "cp.async.bulk.tensor"). One thread issues each; the async
proxy does it later.

A load completes its bytes on an mbarrier in the CTA that receives them. A store belongs to the issuing thread's bulk
group: `cp_async_bulk_commit_group` closes it, `cp_async_bulk_wait_group` waits. Before a store reads what threads
wrote, each of them needs `fence_proxy_async_shared_cta`, and then a barrier.

Every mode of a load (tile, im2col, im2col along W, gather4) comes plain, with an L2 cache policy (isa/cache.py;
…_hint), to several CTAs (…_multicast), with both, and each of these for CTA pairs (…_pair, sm_100f): the loops below
make the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...seam import CuteError
from ..form.declare import declare, need_aligned, receivers
from ..form.instr import ASYNC, BULK_GROUP, MBARRIER, Instr, cluster_smem, instr, s32, smem, tmap, u16, u64  # fmt: skip
from ..form.machine import Machine
from .bulk import (  # noqa: F401 - the TMA unit's too
    cp_async_bulk_g2s,
    cp_async_bulk_g2s_multicast,
    cp_async_bulk_s2g,
    cp_async_bulk_s2g_mask,
    cp_async_bulk_s2s,
)

if TYPE_CHECKING:  # the rows that are made below

    def __getattr__(name: str) -> Instr: ...


_MOVE = "data-movement-and-conversion-instructions"
_RANKS = [{"rank": r} for r in range(1, 6)]
_IM2COL_RANKS = [{"rank": r, "spatial": r - 2} for r in range(3, 6)]
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@dataclass(frozen=True)
class Mode:
    """How coordinates name what is accessed. name: of the rows, after the operation; ptx: the load mode's text; at:
    the coordinates; offsets: the im2col offsets or None; over: the cases; target: the least one; says: the coordinates
    in words; wide: of im2col along W, which one."""

    name: str
    ptx: str
    at: Any
    offsets: Any
    over: list[dict[str, Any]]
    target: str
    says: str
    wide: str | None = None


TILE = Mode(
    "",
    "tile",
    s32["rank"],
    None,
    _RANKS,
    "sm_90",
    "the box at element coordinates `at` (innermost first, and that one a multiple of 16 bytes)",
)
IM2COL = Mode(
    "_im2col", "im2col", s32["rank"], u16["spatial"], _IM2COL_RANKS, "sm_90",
    "the pixels from the filter base `at` (channel, W, H, D, image) plus `offsets` (W, H, D) on",
)  # fmt: skip
_WIDE = "the pixels along W from `at` (channel, W, H, D, image) on; offsets: (pixels of halo, what is added to W);"
IM2COL_W, IM2COL_W128 = (
    Mode(f"_im2col_{wide}", ptx, s32["rank"], u16[2], _IM2COL_RANKS, "sm_100f|sm_110f", _WIDE, wide)
    for wide, ptx in (("w", "im2col::w"), ("w128", "im2col::w::128"))
)
GATHER4 = Mode(
    "_gather4", "tile::gather4", s32[5], None, [{"rank": 2}], "sm_100f|sm_110f",
    "four rows of a matrix, `at` the first column and then each row's index,",
)  # fmt: skip


def _coordinates(at: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(c) for c in at)


def _line(address: int) -> int:
    """Which of the eight lines of 128 bytes, after which all swizzles repeat, an address is in."""
    return address // 128 % 8


def _load(
    m: Machine, dst: int, map: int, at: Sequence[int], bar: int, offsets: Sequence[int] | None = None,
    cta_mask: int | None = None, policy: int = 0, *, rows: bool = False, pair: bool = False, wide: str | None = None,
) -> None:  # fmt: skip
    """To the issuer's CTA or, with a mask, to the same offsets in each CTA of it. In pairs, the barrier may be in
    either CTA of each receiver's pair: the one of the same parity as `bar`'s."""
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    tensor_map, where = m.tensor_map(map), _coordinates(at)
    need_aligned("TMA load: dst", dst_at, 128)
    if pair and bar_cta // 2 != cta // 2 and cta_mask is None:
        raise CuteError(
            f"TMA load: dst is in CTA {cta} but bar in CTA {bar_cta}, of another pair: with cta_group::2 it must be in "
            "the same CTA pair"
        )
    if not pair and cta_mask is None and bar_cta != cta:
        raise CuteError(f"TMA load: dst is in CTA {cta} but bar in CTA {bar_cta}: the barrier must be beside the data")
    ctas = receivers(None if cta_mask is None else int(cta_mask), cta)
    gather = tensor_map.gather4 if rows else tensor_map.gather
    args: dict[str, Any] = {"line": _line(dst_at)}
    if offsets is not None:
        args["offsets"] = _coordinates(offsets)
    if wide is not None:
        args["wide"] = wide

    def effect() -> None:
        data = gather(where, **args)
        for c in ctas:
            m.write(dst_at, data, cta=c)

    size, span = tensor_map.box_bytes * (4 if rows else 1), tensor_map.shared_bytes * (4 if rows else 1)
    if wide is not None:
        size, span = tensor_map.wide_bytes(args["offsets"][0])
    told = [(c & ~1) | (bar_cta & 1) if pair else c for c in ctas]
    writes: list[tuple[Any, int]] = [(m.mapa(dst_at, c), span) for c in ctas]
    m.later(effect, bars=[(m.mbar(bar_at, c), size) for c in told], writes=writes)


_LOAD_DOC = """Copy {what} of tensor map `map` to shared memory `dst`{to}, then complete its bytes on `bar`{where}:
always the whole box's, for elements outside the tensor are filled. dst: a multiple of 128 bytes; a swizzle goes by the
bits of the address, so a pattern that starts at dst needs it at the pattern's period (1024, 512, 256).{policy} One
thread, which expects the bytes itself."""


def _variants() -> Iterator[tuple[bool, bool, bool]]:
    """(CTA pair, multicast, cache policy)"""
    for pair in (False, True):
        for multicast in (False, True):
            for hint in (False, True):
                yield pair, multicast, hint


def _declare_loads(mode: Mode) -> None:
    for pair, multicast, hint in _variants():
        text = f"cp.async.bulk.tensor.{{rank}}d.shared::cluster.global.{mode.ptx}.mbarrier::complete_tx::bytes"
        text += ".multicast::cluster" * multicast + ".cta_group::2" * pair + ".L2::cache_hint" * hint
        operands: dict[str, Any] = {"dst": cluster_smem, "map": tmap, "at": mode.at, "bar": cluster_smem}
        text += " [$dst], [$map, $at], [$bar]"
        for name, kind, used in (
            ("offsets", mode.offsets, mode.offsets is not None),
            ("cta_mask", u16, multicast),
            ("policy", u64, hint),
        ):
            if used:
                operands[name] = kind
                text += f", ${name}"
        doc = _LOAD_DOC.format(
            what=mode.says,
            to=" of each CTA of the cluster whose rank's bit is set in `cta_mask`" if multicast else "",
            where=" there, or in its pair's CTA of the parity of `bar`'s (cta_group::2)" if pair else "",
            policy=" policy: an L2 cache policy." if hint else "",
        )
        how = {"rows": mode is GATHER4, "pair": pair, "wide": mode.wide}

        def body(m: Machine, _how: dict[str, Any] = how, **operands: Any) -> None:
            _load(m, **operands, **_how)

        suffix = "_multicast" * multicast + "_pair" * pair + "_hint" * hint
        declare(
            f"cp_async_bulk_tensor_g2s{mode.name}{suffix}", text + ";", operands, doc, body, over=mode.over,
            target="sm_100f|sm_110f" if pair else mode.target, proxy=ASYNC, done_by=MBARRIER,
            ref=f"{_MOVE}-cp-async-bulk-tensor",
        )  # fmt: skip


for _mode in (TILE, IM2COL, IM2COL_W, IM2COL_W128, GATHER4):
    _declare_loads(_mode)


def _store(
    m: Machine, map: int, at: Sequence[int], src: int, policy: int = 0, *, op: str | None = None, rows: bool = False,
    pixels: bool = False,
) -> None:  # fmt: skip
    tensor_map, where = m.tensor_map(map), _coordinates(at)
    need_aligned("TMA store: src", src, 128)
    size = tensor_map.shared_bytes * (4 if rows else 1)
    offsets = (0,) * (len(where) - 2) if pixels else None

    def effect() -> None:
        if rows:
            tensor_map.scatter4(where, m.read(src, size), line=_line(src))
        else:
            tensor_map.scatter(where, m.read(src, size), op, offsets, line=_line(src))

    m.later(effect, reads=[(src, size)])


_STORE_DOC = """Copy shared memory `src` to {what} of tensor map `map`; elements outside the tensor are not written,
but no coordinate is negative. src: a multiple of 128 bytes.{policy} One thread, after the writers' proxy fences and a
barrier; it then commits the group, and waits before `src` is reused."""
_REDUCE_DOC = """Combine shared memory `src` with {what} of tensor map `map`: add, min, max, inc, dec, and, or, xor, as
the map's element type allows. Atomic for each element, in no order. Elements outside the tensor are left alone, but no
coordinate is negative.{policy} One thread, after the writers' proxy fences and a barrier; it then commits the group."""
_PIXELS = "the pixels from `at` (channel, W, H, D, image) on"
_STORES = (
    ("", "tile", s32["rank"], _RANKS, "sm_90", TILE.says),
    ("_im2col", "im2col_no_offs", s32["rank"], _IM2COL_RANKS, "sm_90", _PIXELS),
    ("_scatter4", "tile::scatter4", s32[5], [{"rank": 2}], GATHER4.target, GATHER4.says),
)


def _declare_stores(name: str, mode: str, at: Any, over: list[dict[str, Any]], target: str, says: str) -> None:
    kinds = [("cp_async_bulk_tensor", "cp.async.bulk.tensor", "", _STORE_DOC)]
    if mode != "tile::scatter4":
        kinds.append(("cp_reduce_async_bulk_tensor", "cp.reduce.async.bulk.tensor", ".{op}", _REDUCE_DOC))
    how = {"rows": mode == "tile::scatter4", "pixels": mode == "im2col_no_offs"}
    for row, instruction, op, doc in kinds:
        cases = [{**c, "op": o} for o in REDUCTIONS for c in over] if op else over
        for hint in (False, True):
            text = f"{instruction}.{{rank}}d.global.shared::cta{op}.{mode}.bulk_group" + ".L2::cache_hint" * hint
            operands: dict[str, Any] = {"map": tmap, "at": at, "src": smem}
            text += " [$map, $at], [$src]"
            if hint:
                operands["policy"] = u64
                text += ", $policy"

            def body(m: Machine, _how: dict[str, Any] = how, **given: Any) -> None:
                _store(m, **given, **_how)

            declare(
                f"{row}_s2g{name}{'_hint' * hint}", text + ";", operands,
                doc.format(what=says, policy=" policy: an L2 cache policy." if hint else ""), body, over=cases,
                statics=("op",) if op else (), target=target, proxy=ASYNC, done_by=BULK_GROUP,
                ref=f"{_MOVE}-{row.replace('_', '-')}",
            )  # fmt: skip


for _what in _STORES:
    _declare_stores(*_what)


def _prefetch(
    m: Machine, map: int, at: Sequence[int], offsets: Any = None, policy: int = 0, *, rows: bool = False,
    wide: str | None = None,
) -> None:  # fmt: skip
    where = _coordinates(at)
    m.tensor_map(map).prefetch(where[:2] if rows else where, None if offsets is None else _coordinates(offsets), wide)


_PREFETCH_DOC = "Fetch {what} of tensor map `map` into L2.{policy} One thread; nothing waits for it."


def _declare_prefetches(mode: Mode) -> None:
    for hint in (False, True):
        text = f"cp.async.bulk.prefetch.tensor.{{rank}}d.L2.global.{mode.ptx}" + ".L2::cache_hint" * hint
        operands: dict[str, Any] = {"map": tmap, "at": mode.at}
        text += " [$map, $at]"
        for name, kind in (("offsets", mode.offsets), ("policy", u64 if hint else None)):
            if kind is not None:
                operands[name] = kind
                text += f", ${name}"

        def body(m: Machine, **given: Any) -> None:
            _prefetch(m, **given, rows=mode is GATHER4, wide=mode.wide)

        declare(
            f"cp_async_bulk_prefetch_tensor{mode.name}{'_hint' * hint}", text + ";", operands,
            _PREFETCH_DOC.format(what=mode.says, policy=" policy: an L2 cache policy." if hint else ""), body,
            over=mode.over, target=mode.target, proxy=ASYNC, ref=f"{_MOVE}-cp-async-bulk-prefetch-tensor",
        )  # fmt: skip


for _mode in (TILE, IM2COL, IM2COL_W, IM2COL_W128, GATHER4):
    _declare_prefetches(_mode)


@instr("cp.async.bulk.commit_group;", target="sm_90", ref=f"{_MOVE}-cp-async-bulk-commit-group")
def cp_async_bulk_commit_group(m: Machine) -> None:
    """Close the group of all bulk stores that this thread issued since the last one. The thread that issued them."""
    m.commit(BULK_GROUP)


_PENDING = [{"n": n} for n in range(32)]


@instr("cp.async.bulk.wait_group {n};", target="sm_90", ref=f"{_MOVE}-cp-async-bulk-wait-group", over=_PENDING)
def cp_async_bulk_wait_group(m: Machine, *, n: int) -> None:
    """Wait until at most the `n` latest groups of this thread are incomplete: the others' writes are done. The thread
    that committed them."""
    m.wait(BULK_GROUP, n)


@instr("cp.async.bulk.wait_group.read {n};", target="sm_90", ref=f"{_MOVE}-cp-async-bulk-wait-group", over=_PENDING)
def cp_async_bulk_wait_group_read(m: Machine, *, n: int) -> None:
    """Wait until at most the `n` latest groups of this thread have still to read their sources, which may then be
    overwritten. The thread that committed them."""
    m.wait(BULK_GROUP, n, read=True)


@instr("prefetch.tensormap [$map];", target="sm_90", ref=f"{_MOVE}-prefetch-prefetchu")
def prefetch_tensormap(m: Machine, map: tmap) -> None:
    """Fetch a tensor map ahead of its first use. One thread."""
    m.tensor_map(map)
