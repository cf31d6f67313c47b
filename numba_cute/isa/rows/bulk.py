# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Bulk copies and reductions of consecutive bytes (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk"), without a tensor
map. One thread issues each; the async proxy does it later. Completion is as for `tma`. policy: an L2 cache policy (of
`createpolicy_l2`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..facts.reduction import combine
from ..form.checks import need_aligned, receivers
from ..form.instr import ASYNC, BULK_GROUP, MBARRIER, instr
from ..form.kinds import byte_count, byte_mask, cluster_mask, cluster_mbar, cluster_smem, gmem, optional, policy, smem
from ..form.machine import Bytes, Machine

_MOVE = "data-movement-and-conversion-instructions"
_BULK: dict[str, Any] = {"target": "sm_90", "proxy": ASYNC, "ref": f"{_MOVE}-cp-async-bulk"}


def _need_sixteens(**values: int) -> None:
    for what, value in values.items():
        need_aligned(f"cp.async.bulk: {what}", value, 16)


@instr("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes<cta_mask:.multicast::cluster>"
       "<policy:.L2::cache_hint> [$dst], [$src], $nbytes, [$bar]<cta_mask:, $cta_mask><policy:, $policy>;", **_BULK,
       done_by=MBARRIER)  # fmt: skip
def cp_async_bulk_g2s(
    m: Machine, dst: cluster_smem, src: gmem, nbytes: byte_count, bar: cluster_mbar, cta_mask: optional(cluster_mask),
    policy: optional(policy),
) -> None:  # fmt: skip
    """Copy `nbytes` consecutive bytes from global to shared memory, then complete them on `bar`. dst, src and nbytes:
    multiples of 16. cta_mask: copy to every CTA of the cluster whose rank's bit is set, each at the offsets of `dst`
    and `bar` in its own shared memory. One thread, which expects the bytes itself."""
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    _need_sixteens(dst=dst_at, src=src, nbytes=nbytes)
    ctas = receivers("cp.async.bulk", None if cta_mask is None else int(cta_mask), cta)

    def effect() -> None:
        data = m.read_global(src, nbytes)
        for c in ctas:
            m.write(dst_at, data, cta=c)

    bars = [(m.mbar(bar_at, bar_cta if cta_mask is None else c), nbytes) for c in ctas]
    m.later(effect, bars=bars, writes=[(m.mapa(dst_at, c), nbytes) for c in ctas])


def _to_peer(
    m: Machine, dst: int, src: int, nbytes: int, bar: int, change: Callable[[Bytes, Bytes], Bytes] | None
) -> None:
    cta, dst_at = m.owner(dst)
    bar_cta, bar_at = m.owner(bar)
    _need_sixteens(dst=dst_at, src=src, nbytes=nbytes)

    def effect() -> None:
        data = m.read(src, nbytes)
        m.write(dst_at, data if change is None else change(m.read(dst_at, nbytes, cta=cta), data), cta=cta)

    bars = [(m.mbar(bar_at, bar_cta), nbytes)]
    m.later(effect, bars=bars, reads=[(src, nbytes)], writes=[(dst, nbytes)])


@instr("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$dst], [$src], $nbytes, [$bar];",
       **_BULK, done_by=MBARRIER)  # fmt: skip
def cp_async_bulk_s2s(m: Machine, dst: cluster_smem, src: smem, nbytes: byte_count, bar: cluster_mbar) -> None:
    """Copy `nbytes` consecutive bytes from this CTA's shared memory to a peer's, then complete them on `bar`, in the
    CTA of `dst`. dst, src and nbytes: multiples of 16. One thread; after a proxy fence if threads wrote `src`."""
    _to_peer(m, dst, src, nbytes, bar, None)


@instr("cp.async.bulk.global.shared::cta.bulk_group<policy:.L2::cache_hint><mask:.cp_mask> [$dst], [$src], $nbytes"
       "<policy:, $policy><mask:, $mask>;", **_BULK, done_by=BULK_GROUP)  # fmt: skip
def cp_async_bulk_s2g(
    m: Machine, dst: gmem, src: smem, nbytes: byte_count, mask: optional(byte_mask, target="sm_100"),
    policy: optional(policy),
) -> None:  # fmt: skip
    """Copy `nbytes` consecutive bytes from shared to global memory. dst, src and nbytes: multiples of 16. mask
    (sm_100): of each 16 bytes write those whose bit is set, the first byte's lowest. One thread, after the writers'
    proxy fences and a barrier; it then commits the group, and waits before `src` is reused."""
    _need_sixteens(dst=dst, src=src, nbytes=nbytes)
    chosen = [i for i in range(16) if mask is None or int(mask) >> i & 1]

    def effect() -> None:
        data = m.read(src, nbytes)
        if len(chosen) == 16:
            m.write_global(dst, data)
            return
        for at in range(0, nbytes, 16):
            for i in chosen:
                m.write_global(dst + at + i, data[at + i : at + i + 1])

    m.later(effect, reads=[(src, nbytes)])


@instr("cp.async.bulk.prefetch.L2.global [$src], $nbytes;", target="sm_90", proxy=ASYNC,
       ref=f"{_MOVE}-cp-async-bulk-prefetch")  # fmt: skip
def cp_async_bulk_prefetch(m: Machine, src: gmem, nbytes: byte_count) -> None:
    """Fetch `nbytes` consecutive bytes into L2; both multiples of 16. One thread; nothing waits for it."""
    _need_sixteens(src=src, nbytes=nbytes)


# The valid pairs of operation and element type: PTX ISA, table under "cp.reduce.async.bulk".
_BITS = ("and", "or", "xor")
GLOBAL_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",), **{op: ("b32", "b64") for op in _BITS},
}  # fmt: skip
PEER_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "inc": ("u32",), "dec": ("u32",), **{op: ("b32",) for op in _BITS},
}  # fmt: skip
_NUMPY: dict[str, Any] = {
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def _cases(table: dict[str, tuple[str, ...]]) -> list[dict[str, str]]:
    return [
        {"op": op, "type": t, "kind": f"{op}.noftz.{t}" if op == "add" and t in ("f16", "bf16") else f"{op}.{t}"}
        for op, types in table.items()
        for t in types
    ]


_REDUCE: dict[str, Any] = {"target": "sm_90", "proxy": ASYNC, "ref": f"{_MOVE}-cp-reduce-async-bulk"}


@instr("cp.reduce.async.bulk.global.shared::cta.bulk_group<policy:.L2::cache_hint>.{kind} [$dst], [$src], $nbytes"
       "<policy:, $policy>;", **_REDUCE, done_by=BULK_GROUP, over=_cases(GLOBAL_REDUCTIONS))  # fmt: skip
def cp_reduce_async_bulk_s2g(
    m: Machine, dst: gmem, src: smem, nbytes: byte_count, policy: optional(policy), *, op: str, type: str
) -> None:
    """Combine `nbytes` of elements of `type` in global memory with those in shared memory: add, min, max, inc, dec,
    and, or, xor. Atomic for each element, in no order; f32 sums flush subnormals. dst, src and nbytes: multiples of 16.
    One thread, after the writers' proxy fences and a barrier; it then commits the group."""
    _need_sixteens(dst=dst, src=src, nbytes=nbytes)
    dtype = _NUMPY[type]

    def effect() -> None:
        data = m.read(src, nbytes)
        m.update_global(dst, nbytes, lambda old: combine(op, old.view(dtype), data.view(dtype), True).view(np.uint8))

    m.later(effect, reads=[(src, nbytes)])


@instr("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{kind} "
       "[$dst], [$src], $nbytes, [$bar];", **_REDUCE, done_by=MBARRIER, over=_cases(PEER_REDUCTIONS))  # fmt: skip
def cp_reduce_async_bulk_s2s(
    m: Machine, dst: cluster_smem, src: smem, nbytes: byte_count, bar: cluster_mbar, *, op: str, type: str
) -> None:
    """Combine `nbytes` of elements of `type` in a peer's shared memory with those in this CTA's, then complete them on
    `bar`, in the CTA of `dst`. Atomic for each element. dst, src and nbytes: multiples of 16. One thread; after a
    proxy fence if threads wrote `src`."""
    dtype = _NUMPY[type]
    change = lambda old, new: combine(op, old.view(dtype), new.view(dtype)).view(np.uint8)  # noqa: E731
    _to_peer(m, dst, src, nbytes, bar, change)
