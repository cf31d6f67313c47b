# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Bulk copies by the TMA unit (PTX ISA, "cp.async.bulk"). One thread issues each; the async proxy does it later.

A load completes its bytes on an mbarrier in the CTA that receives them. A store belongs to the issuing thread's bulk
group: `cp_async_bulk_commit_group` closes it, `cp_async_bulk_wait_group` waits. Before a store reads what threads
wrote, each of them needs `fence_proxy_async_shared_cta`, and then a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..seam import CuteError
from .instr import (
    ASYNC,
    BULK_GROUP,
    MBARRIER,
    cluster_smem,
    gmem,
    instr,
    s32,
    smem,
    tmap,
    u16,
    u32,
    u64,
)  # fmt: skip
from .machine import Machine

_COORDS = s32["rank"]
_MOVE = "data-movement-and-conversion-instructions"
_RANKS = [{"rank": r} for r in range(1, 6)]
_LOAD: dict[str, Any] = {
    "target": "sm_90",
    "proxy": ASYNC,
    "done_by": MBARRIER,
    "ref": f"{_MOVE}-cp-async-bulk-tensor",
    "over": _RANKS,
}
_STORE: dict[str, Any] = {**_LOAD, "done_by": BULK_GROUP}
_G2S = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_S2G = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"


def _need_aligned(what: str, value: int, unit: int) -> None:
    if value % unit:
        raise CuteError(f"{what} is {value:#x}: it must be a multiple of {unit} bytes")


def _load_tile(m: Machine, dst: int, map: int, at: Sequence[int], bar: int, mask: int | None) -> None:
    """One box to the issuer's CTA or, with `mask`, to the same offsets in each CTA of it."""
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    tensor_map, at = m.tensor_map(map), tuple(int(c) for c in at)
    _need_aligned("TMA load: dst", dst_at, tensor_map.align)
    if mask is None and bar_cta != cta:
        raise CuteError(f"TMA load: dst is in CTA {cta} but bar in CTA {bar_cta}: the barrier must be beside the data")
    if mask == 0:
        raise CuteError("TMA load: cta_mask is 0: it must name at least one CTA of the cluster")
    ctas = [cta] if mask is None else [c for c in range(16) if mask >> c & 1]

    def effect() -> None:
        data = tensor_map.gather(at)
        for c in ctas:
            m.write(dst_at, data, cta=c)

    size = tensor_map.box_bytes
    writes: list[tuple[Any, int]] = [(m.mapa(dst_at, c), size) for c in ctas]
    m.later(effect, bars=[(m.mbar(bar_at, c), size) for c in ctas], writes=writes)


@instr(_G2S + " [$dst], [$map, $at], [$bar];", **_LOAD)
def cp_async_bulk_tensor_g2s(m: Machine, dst: cluster_smem, map: tmap, at: _COORDS, bar: cluster_smem) -> None:
    """Copy the box at element coordinates `at` (innermost first) of tensor map `map` to shared memory `dst`, then
    complete its bytes on `bar`: always the whole box's, for elements outside the tensor are filled. dst: a multiple
    of 128 bytes (with a swizzle, of its period: 1024, 512, 256). One thread, which expects the bytes itself."""
    _load_tile(m, dst, map, at, bar, None)


@instr(_G2S + ".L2::cache_hint [$dst], [$map, $at], [$bar], $policy;", **_LOAD)
def cp_async_bulk_tensor_g2s_hint(
    m: Machine, dst: cluster_smem, map: tmap, at: _COORDS, bar: cluster_smem, policy: u64
) -> None:
    """`cp_async_bulk_tensor_g2s` with an L2 cache policy (of `createpolicy_l2`)."""
    _load_tile(m, dst, map, at, bar, None)


@instr(_G2S + ".multicast::cluster [$dst], [$map, $at], [$bar], $cta_mask;", **_LOAD)
def cp_async_bulk_tensor_g2s_multicast(
    m: Machine, dst: cluster_smem, map: tmap, at: _COORDS, bar: cluster_smem, cta_mask: u16
) -> None:
    """`cp_async_bulk_tensor_g2s` to every CTA of the cluster whose rank's bit is set in `cta_mask`, each at the
    offsets of `dst` and `bar` in its own shared memory. Each receiver expects the whole box's bytes."""
    _load_tile(m, dst, map, at, bar, int(cta_mask))


@instr(_G2S + ".multicast::cluster.L2::cache_hint [$dst], [$map, $at], [$bar], $cta_mask, $policy;", **_LOAD)
def cp_async_bulk_tensor_g2s_multicast_hint(
    m: Machine, dst: cluster_smem, map: tmap, at: _COORDS, bar: cluster_smem, cta_mask: u16, policy: u64
) -> None:
    """`cp_async_bulk_tensor_g2s_multicast` with an L2 cache policy (of `createpolicy_l2`)."""
    _load_tile(m, dst, map, at, bar, int(cta_mask))


def _store_tile(m: Machine, map: int, at: Sequence[int], src: int, reduce: str | None = None) -> None:
    tensor_map, at = m.tensor_map(map), tuple(int(c) for c in at)
    _need_aligned("TMA store: src", src, tensor_map.align)
    size = tensor_map.box_bytes
    m.later(lambda: tensor_map.scatter(at, m.read(src, size), reduce), reads=[(src, size)])


@instr(_S2G + " [$map, $at], [$src];", **_STORE)
def cp_async_bulk_tensor_s2g(m: Machine, map: tmap, at: _COORDS, src: smem) -> None:
    """Copy shared memory `src` to the box at element coordinates `at` (innermost first) of tensor map `map`; elements
    outside the tensor are not written. src: a multiple of 128 bytes (with a swizzle, of its period). One thread,
    after the writers' proxy fences and a barrier; it then commits the group, and waits before `src` is reused."""
    _store_tile(m, map, at, src)


@instr(_S2G + ".L2::cache_hint [$map, $at], [$src], $policy;", **_STORE)
def cp_async_bulk_tensor_s2g_hint(m: Machine, map: tmap, at: _COORDS, src: smem, policy: u64) -> None:
    """`cp_async_bulk_tensor_s2g` with an L2 cache policy (of `createpolicy_l2`)."""
    _store_tile(m, map, at, src)


_REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


@instr(
    "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group [$map, $at], [$src];",
    target="sm_90",
    proxy=ASYNC,
    done_by=BULK_GROUP,
    ref=f"{_MOVE}-cp-reduce-async-bulk-tensor",
    over=[{"rank": r, "op": op} for op in _REDUCTIONS for r in range(1, 6)],
)
def cp_reduce_async_bulk_tensor_s2g(m: Machine, map: tmap, at: _COORDS, src: smem, *, op: str) -> None:
    """`cp_async_bulk_tensor_s2g` that combines each element with what is there: add, min, max, inc, dec, and, or, xor,
    as the tensor map's element type allows. Atomic for each element, in no order."""
    _store_tile(m, map, at, src, op)


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


@instr("cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [$map, $at];", target="sm_90", proxy=ASYNC,
       ref=f"{_MOVE}-cp-async-bulk-prefetch-tensor", over=_RANKS)  # fmt: skip
def cp_async_bulk_prefetch_tensor(m: Machine, map: tmap, at: _COORDS) -> None:
    """Fetch the box at element coordinates `at` (innermost first) into L2. One thread; nothing waits for it."""
    m.tensor_map(map)


def _copy_in(m: Machine, dst: int, src: int, nbytes: int, bar: int, mask: int | None) -> None:
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    for what, value in (("dst", dst_at), ("src", src), ("nbytes", nbytes)):
        _need_aligned(f"cp.async.bulk: {what}", value, 16)
    ctas = [cta] if mask is None else [c for c in range(16) if mask >> c & 1]

    def effect() -> None:
        data = m.read_global(src, nbytes)
        for c in ctas:
            m.write(dst_at, data, cta=c)

    bars = [(m.mbar(bar_at, bar_cta if mask is None else c), nbytes) for c in ctas]
    m.later(effect, bars=bars, writes=[(m.mapa(dst_at, c), nbytes) for c in ctas])


_BULK: dict[str, Any] = {"target": "sm_90", "proxy": ASYNC, "ref": f"{_MOVE}-cp-async-bulk"}
_BULK_G2S = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


@instr(_BULK_G2S + " [$dst], [$src], $nbytes, [$bar];", **_BULK, done_by=MBARRIER)
def cp_async_bulk_g2s(m: Machine, dst: cluster_smem, src: gmem, nbytes: u32, bar: cluster_smem) -> None:
    """Copy `nbytes` consecutive bytes from global to shared memory, then complete them on `bar`. dst, src and nbytes:
    multiples of 16. One thread, which expects the bytes itself."""
    _copy_in(m, dst, src, nbytes, bar, None)


@instr(_BULK_G2S + ".multicast::cluster [$dst], [$src], $nbytes, [$bar], $cta_mask;", **_BULK, done_by=MBARRIER)
def cp_async_bulk_g2s_multicast(
    m: Machine, dst: cluster_smem, src: gmem, nbytes: u32, bar: cluster_smem, cta_mask: u16
) -> None:
    """`cp_async_bulk_g2s` to every CTA of the cluster whose rank's bit is set in `cta_mask`, each at the offsets of
    `dst` and `bar` in its own shared memory."""
    _copy_in(m, dst, src, nbytes, bar, int(cta_mask))


@instr("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$dst], [$src], $nbytes, [$bar];",
       **_BULK, done_by=MBARRIER)  # fmt: skip
def cp_async_bulk_s2s(m: Machine, dst: cluster_smem, src: smem, nbytes: u32, bar: cluster_smem) -> None:
    """Copy `nbytes` consecutive bytes from this CTA's shared memory to a peer's, then complete them on `bar`, in the
    CTA of `dst`. dst, src and nbytes: multiples of 16. One thread; after a proxy fence if threads wrote `src`."""
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    for what, value in (("dst", dst_at), ("src", src), ("nbytes", nbytes)):
        _need_aligned(f"cp.async.bulk: {what}", value, 16)
    m.later(
        lambda: m.write(dst_at, m.read(src, nbytes), cta=cta),
        bars=[(m.mbar(bar_at, bar_cta), nbytes)],
        reads=[(src, nbytes)],
        writes=[(dst, nbytes)],
    )


@instr("cp.async.bulk.global.shared::cta.bulk_group [$dst], [$src], $nbytes;", **_BULK, done_by=BULK_GROUP)
def cp_async_bulk_s2g(m: Machine, dst: gmem, src: smem, nbytes: u32) -> None:
    """Copy `nbytes` consecutive bytes from shared to global memory. dst, src and nbytes: multiples of 16. One thread,
    after the writers' proxy fences and a barrier; it then commits the group, and waits before `src` is reused."""
    for what, value in (("dst", dst), ("src", src), ("nbytes", nbytes)):
        _need_aligned(f"cp.async.bulk: {what}", value, 16)
    m.later(lambda: m.write_global(dst, m.read(src, nbytes)), reads=[(src, nbytes)])


@instr("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [$dst], [$src], $nbytes, $mask;", target="sm_100",
       proxy=ASYNC, ref=f"{_MOVE}-cp-async-bulk", done_by=BULK_GROUP)  # fmt: skip
def cp_async_bulk_s2g_mask(m: Machine, dst: gmem, src: smem, nbytes: u32, mask: u16) -> None:
    """`cp_async_bulk_s2g` that writes of each 16 bytes those whose bit is set in `mask`, the first byte's lowest."""
    for what, value in (("dst", dst), ("src", src), ("nbytes", nbytes)):
        _need_aligned(f"cp.async.bulk: {what}", value, 16)
    chosen = [i for i in range(nbytes) if mask >> i % 16 & 1]

    def effect() -> None:
        data = m.read(src, nbytes)
        for i in chosen:
            m.write_global(dst + i, data[i : i + 1])

    m.later(effect, reads=[(src, nbytes)])
