# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The shared memory of the CTAs of a cluster. Ranks and sizes of clusters are special registers: `sreg_cluster`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.instr import MBARRIER, Kind, cluster_smem, f32, instr, out, u32, u64
from ..form.machine import Machine

_MOVE = "data-movement-and-conversion-instructions"
_NUMPY = {u32: np.uint32, u64: np.uint64, f32: np.float32}


def _load(m: Machine, address: int, kind: Kind) -> Any:
    cta, at = m.owner(address)
    dtype = np.dtype(_NUMPY[kind])
    return m.read(at, dtype.itemsize, cta=cta).view(dtype)[0].item()


def _bytes(value: Any, kind: Kind) -> Any:
    return np.array([value], _NUMPY[kind]).view(np.uint8)


def _store(m: Machine, address: int, value: Any, kind: Kind) -> None:
    cta, at = m.owner(address)
    m.write(at, _bytes(value, kind), cta=cta)


def _store_later(m: Machine, addr: int, words: Any, bar: int) -> None:
    m.need_cluster("st.async")
    cta, at = m.owner(addr)
    bar_cta, bar_at = m.owner(bar)
    data = words.view(np.uint8)
    m.later(lambda: m.write(at, data, cta=cta), bars=[(m.mbar(bar_at, bar_cta), data.size)], writes=[(addr, data.size)])


@instr("mapa.shared::cluster.u32 $peer, $addr, $rank;", target="sm_90", ref=f"{_MOVE}-mapa", pure=True)
def mapa(m: Machine, addr: u32, rank: u32, peer: out(u32)) -> int:
    """The shared::cluster address of what lies at shared::cta address `addr` in the CTA of `rank` in the cluster.
    Any thread; reads no memory."""
    return m.mapa(addr, rank)


@instr("getctarank.shared::cluster.u32 $rank, $addr;", target="sm_90", ref=f"{_MOVE}-getctarank", pure=True)
def getctarank(m: Machine, addr: u32, rank: out(u32)) -> int:
    """The rank of the CTA that owns shared::cluster address `addr`. Any thread; reads no memory."""
    return m.owner(addr)[0]


@instr("ld.shared::cluster.b32 $value, [$addr];", target="sm_90", ref=f"{_MOVE}-ld")
def ld_shared_cluster_b32(m: Machine, addr: cluster_smem, value: out(u32)) -> int:
    """Load 4 bytes from shared memory of any CTA of the cluster, which must not have exited. Any thread."""
    return _load(m, addr, u32)  # type: ignore[no-any-return]


@instr("ld.shared::cluster.b64 $value, [$addr];", target="sm_90", ref=f"{_MOVE}-ld")
def ld_shared_cluster_b64(m: Machine, addr: cluster_smem, value: out(u64)) -> int:
    """The same for 8 bytes."""
    return _load(m, addr, u64)  # type: ignore[no-any-return]


@instr("ld.shared::cluster.f32 $value, [$addr];", target="sm_90", ref=f"{_MOVE}-ld")
def ld_shared_cluster_f32(m: Machine, addr: cluster_smem, value: out(f32)) -> float:
    """The same for a float."""
    return _load(m, addr, f32)  # type: ignore[no-any-return]


@instr("st.shared::cluster.b32 [$addr], $value;", target="sm_90", ref=f"{_MOVE}-st")
def st_shared_cluster_b32(m: Machine, addr: cluster_smem, value: u32) -> None:
    """Store 4 bytes to shared memory of any CTA of the cluster, which must not have exited. Any thread."""
    _store(m, addr, value, u32)


@instr("st.shared::cluster.b64 [$addr], $value;", target="sm_90", ref=f"{_MOVE}-st")
def st_shared_cluster_b64(m: Machine, addr: cluster_smem, value: u64) -> None:
    """The same for 8 bytes."""
    _store(m, addr, value, u64)


@instr("st.shared::cluster.f32 [$addr], $value;", target="sm_90", ref=f"{_MOVE}-st")
def st_shared_cluster_f32(m: Machine, addr: cluster_smem, value: f32) -> None:
    """The same for a float."""
    _store(m, addr, value, f32)


@instr(
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$addr], $value, [$bar];",
    target="sm_90",
    done_by=MBARRIER,
    ref=f"{_MOVE}-st-async",
)
def st_async_b32(m: Machine, addr: cluster_smem, value: u32, bar: cluster_smem) -> None:
    """Store 4 bytes to shared memory of any CTA of the cluster some time later, and then complete 4 bytes on `bar`,
    a barrier of that same CTA. Any thread of a launch that names a cluster; whoever waits for `bar` sees the value."""
    _store_later(m, addr, np.array([value], np.uint32), bar)


@instr(
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$addr], $values, [$bar];",
    target="sm_90",
    done_by=MBARRIER,
    ref=f"{_MOVE}-st-async",
)
def st_async_v2_b32(m: Machine, addr: cluster_smem, values: u32[2], bar: cluster_smem) -> None:
    """`st_async_b32` of 8 bytes at once; addr: a multiple of 8."""
    _store_later(m, addr, np.array(values, np.uint32), bar)


@instr(
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [$addr], $values, [$bar];",
    target="sm_90",
    done_by=MBARRIER,
    ref=f"{_MOVE}-st-async",
)
def st_async_v4_b32(m: Machine, addr: cluster_smem, values: u32[4], bar: cluster_smem) -> None:
    """`st_async_b32` of 16 bytes at once; addr: a multiple of 16."""
    _store_later(m, addr, np.array(values, np.uint32), bar)
