# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Copies of boxes of a tensor by the TMA unit (PTX ISA, "cp.async.bulk.tensor"). One thread issues each; the async
proxy does it later.

A load completes its bytes on an mbarrier in the CTA that receives them. A store belongs to the issuing thread's bulk
group: `cp_async_bulk_commit_group` closes it, `cp_async_bulk_wait_group` waits. Before a store reads what threads
wrote, each of them needs `fence_proxy_async` of shared memory, and then a barrier.

mode: how the coordinates `at` name what is accessed, "tile" unless it is named; the rank of the map follows from it, or
is a static parameter.

| mode | at (innermost first) | what |
| --- | --- | --- |
| tile | rank elements, the first a multiple of 16 bytes | the box there |
| im2col | channel, W, H, D, image: a filter base | the pixels from there plus `offsets` (W, H, D) on |
| im2col::w, im2col::w::128 | the same | the pixels along W; offsets: pixels of halo, what is added to W |
| tile::gather4, tile::scatter4 | the first column, then four rows | four rows of a matrix |
| im2col_no_offs (stores) | channel, W, H, D, image | the pixels from there on |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...seam import CuteError
from ..form.checks import need_aligned, receivers
from ..form.instr import ASYNC, BULK_GROUP, MBARRIER, instr
from ..form.kinds import cluster_mask, cluster_mbar, cluster_smem, coordinates, offsets, optional, policy, smem, tmap
from ..form.machine import Machine
from ..form.targets import FEATURES

_MOVE = "data-movement-and-conversion-instructions"
_FAMILIES = FEATURES["tma gather4"]
_AT, _OFFSETS = coordinates["coordinates"], offsets["offset_count"]
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _im2col(mode: str, **more: Any) -> list[dict[str, Any]]:
    return [{"mode": mode, "rank": r, "coordinates": r, "offset_count": r - 2, **more} for r in range(3, 6)]


_TILE = [{"mode": "tile", "rank": r, "coordinates": r, "offset_count": 0} for r in range(1, 6)]
_ROWS = {"rank": 2, "coordinates": 5, "offset_count": 0, "target": _FAMILIES}
_MODES = [
    *_TILE, *_im2col("im2col"),
    *({**c, "offset_count": 2} for w in ("im2col::w", "im2col::w::128") for c in _im2col(w, target=_FAMILIES)),
    {"mode": "tile::gather4", **_ROWS},
]  # fmt: skip
_STORE_MODES = [*_TILE, *_im2col("im2col_no_offs"), {"mode": "tile::scatter4", **_ROWS}]
_WIDE = {"im2col::w": "w", "im2col::w::128": "w128"}
_TILES = {"mode": "tile"}
_FOUR_ROWS = ("tile::gather4", "tile::scatter4")


def _coordinates(at: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(c) for c in at)


def _line(address: int) -> int:
    """Return the number of an address's line among eight lines of 128 bytes, after which all swizzles repeat."""
    return address // 128 % 8


@instr(
    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    "<cta_mask:.multicast::cluster><pair:.cta_group::2><policy:.L2::cache_hint> [$dst], [$map, $at], [$bar]"
    "<offsets:, $offsets><cta_mask:, $cta_mask><policy:, $policy>;",
    target="sm_90", proxy=ASYNC, done_by=MBARRIER, ref=f"{_MOVE}-cp-async-bulk-tensor",
    over=[{"pair": False, **c} for c in _MODES] + [{**c, "pair": True, "target": _FAMILIES} for c in _MODES],
    defaults={"pair": False, "mode": "tile"},
)  # fmt: skip
def cp_async_bulk_tensor_g2s(
    m: Machine, dst: cluster_smem, map: tmap, at: _AT, bar: cluster_mbar,
    offsets: _OFFSETS, cta_mask: optional(cluster_mask), policy: optional(policy), *, mode: str,
    pair: bool,
) -> None:  # fmt: skip
    """Copy what `at` names in tensor map `map` to shared memory `dst`, then complete its bytes on `bar`: always the
    whole box's, for elements outside the tensor are filled. dst: a multiple of 128 bytes; a swizzle goes by the bits of
    the address, so a pattern that starts at dst needs it at the pattern's period (1024, 512, 256). cta_mask: copy to
    these offsets of each CTA of the cluster whose rank's bit is set, and complete the bytes there. pair (sm_100f): the
    barrier may be in either CTA of each receiver's pair: the one of the same parity as `bar`'s. policy: an L2 cache
    policy. One thread, which expects the bytes itself."""
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    tensor_map, where = m.tensor_map(map), _coordinates(at)
    rows, wide = mode in _FOUR_ROWS, _WIDE.get(mode)
    need_aligned("TMA load: dst", dst_at, 128)
    if pair and bar_cta // 2 != cta // 2 and cta_mask is None:
        raise CuteError(
            f"TMA load: dst is in CTA {cta} but bar in CTA {bar_cta}, of another pair: with cta_group::2 it must be in "
            "the same CTA pair"
        )
    if not pair and cta_mask is None and bar_cta != cta:
        raise CuteError(f"TMA load: dst is in CTA {cta} but bar in CTA {bar_cta}: the barrier must be beside the data")
    ctas = receivers("TMA load", None if cta_mask is None else int(cta_mask), cta)
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


def _store(m: Machine, map: int, at: Sequence[int], src: int, mode: str, op: str | None = None) -> None:
    tensor_map, where = m.tensor_map(map), _coordinates(at)
    need_aligned("TMA store: src", src, 128)
    rows = mode in _FOUR_ROWS
    size = tensor_map.shared_bytes * (4 if rows else 1)
    offsets = (0,) * (len(where) - 2) if mode == "im2col_no_offs" else None

    def effect() -> None:
        if rows:
            tensor_map.scatter4(where, m.read(src, size), line=_line(src))
        else:
            tensor_map.scatter(where, m.read(src, size), op, offsets, line=_line(src))

    m.later(effect, reads=[(src, size)])


_OUT: dict[str, Any] = {"target": "sm_90", "proxy": ASYNC, "done_by": BULK_GROUP}


@instr("cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group<policy:.L2::cache_hint> [$map, $at], [$src]"
       "<policy:, $policy>;", over=_STORE_MODES, defaults=_TILES,
       ref=f"{_MOVE}-cp-async-bulk-tensor", **_OUT)  # fmt: skip
def cp_async_bulk_tensor_s2g(m: Machine, map: tmap, at: _AT, src: smem, policy: optional(policy), *, mode: str) -> None:
    """Copy shared memory `src` to what `at` names in tensor map `map`; elements outside the tensor are not written, but
    no coordinate is negative. src: a multiple of 128 bytes. policy: an L2 cache policy. One thread, after the writers'
    proxy fences and a barrier; it then commits the group, and waits before `src` is reused."""
    _store(m, map, at, src, mode)


@instr("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.{mode}.bulk_group<policy:.L2::cache_hint> "
       "[$map, $at], [$src]<policy:, $policy>;", ref=f"{_MOVE}-cp-reduce-async-bulk-tensor",
       over=[{**c, "op": o} for o in REDUCTIONS for c in _STORE_MODES[:-1]],
       defaults=_TILES, **_OUT)  # fmt: skip
def cp_reduce_async_bulk_tensor_s2g(
    m: Machine, map: tmap, at: _AT, src: smem, policy: optional(policy), *, mode: str, op: str
) -> None:
    """Combine shared memory `src` with what `at` names in tensor map `map` (mode tile, im2col_no_offs): add, min, max,
    inc, dec, and, or, xor, as the map's element type allows. Atomic for each element, in no order. Elements outside the
    tensor are left alone, but no coordinate is negative. policy: an L2 cache policy. One thread, after the writers'
    proxy fences and a barrier; it then commits the group."""
    _store(m, map, at, src, mode, op)


@instr("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}<policy:.L2::cache_hint> [$map, $at]<offsets:, $offsets>"
       "<policy:, $policy>;", target="sm_90", proxy=ASYNC, over=_MODES, defaults=_TILES,
       ref=f"{_MOVE}-cp-async-bulk-prefetch-tensor")  # fmt: skip
def cp_async_bulk_prefetch_tensor(
    m: Machine, map: tmap, at: _AT, offsets: _OFFSETS, policy: optional(policy),
    *, mode: str,
) -> None:  # fmt: skip
    """Fetch what `at` names in tensor map `map` into L2. policy: an L2 cache policy. One thread; nothing waits for
    it."""
    where = _coordinates(at)
    inside = where[:2] if mode in _FOUR_ROWS else where
    m.tensor_map(map).prefetch(inside, None if offsets is None else _coordinates(offsets), _WIDE.get(mode))


@instr("cp.async.bulk.commit_group;", target="sm_90", ref=f"{_MOVE}-cp-async-bulk-commit-group")
def cp_async_bulk_commit_group(m: Machine) -> None:
    """Close the group of all bulk stores that this thread issued since the last one. The thread that issued them."""
    m.commit(BULK_GROUP)


@instr("cp.async.bulk.wait_group<read:.read> {n};", target="sm_90", ref=f"{_MOVE}-cp-async-bulk-wait-group",
       over=[{"read": r, "n": n} for r in (False, True) for n in range(32)],
       defaults={"read": False})  # fmt: skip
def cp_async_bulk_wait_group(m: Machine, *, n: int, read: bool) -> None:
    """Wait until at most the `n` latest groups of this thread are incomplete: the others' writes are done. With `read`,
    until at most those have still to read their sources, which may then be overwritten. The thread that committed
    them."""
    m.wait(BULK_GROUP, n, read=read)


@instr("prefetch.tensormap [$map];", target="sm_90", ref=f"{_MOVE}-prefetch-prefetchu")
def prefetch_tensormap(m: Machine, map: tmap) -> None:
    """Fetch a tensor map ahead of its first use. One thread."""
    m.tensor_map(map)
