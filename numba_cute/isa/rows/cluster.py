# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The shared memory of the CTAs of a cluster. `ld` and `st` reach it with the space
"dsmem". Ranks and sizes of clusters are special registers: `sreg_cluster`."""

from __future__ import annotations

import numpy as np

from ..form.instr import MBARRIER, instr
from ..form.kinds import cluster_mbar, cluster_smem, out, u32
from ..form.machine import Machine

_MOVE = "data-movement-and-conversion-instructions"
_VALUES = u32["count"]
_VALUES = u32["count"]


@instr("mapa.shared::cluster.u32 $peer, $addr, $rank;", target="sm_90", ref=f"{_MOVE}-mapa", pure=True)
def mapa(m: Machine, addr: u32, rank: u32, peer: out(u32)) -> int:
    """The shared::cluster address of what lies at shared::cta address `addr` in the CTA of `rank` in the cluster.
    Any thread; reads no memory."""
    return m.mapa(addr, rank)


@instr("getctarank.shared::cluster.u32 $rank, $addr;", target="sm_90", ref=f"{_MOVE}-getctarank", pure=True)
def getctarank(m: Machine, addr: u32, rank: out(u32)) -> int:
    """The rank of the CTA that owns shared::cluster address `addr`. Any thread; reads no memory."""
    return m.owner(addr)[0]


@instr("st.async.shared::cluster.mbarrier::complete_tx::bytes<several:.v{count}>.b32 [$addr], "
       "<several:$values|$values[0]>, [$bar];", target="sm_90", done_by=MBARRIER,
       over=[{"count": n, "several": n > 1} for n in (1, 2, 4)], defaults={"count": 1},
       ref=f"{_MOVE}-st-async")  # fmt: skip
def st_async(m: Machine, addr: cluster_smem, values: _VALUES, bar: cluster_mbar) -> None:
    """Store `count` (1, 2, 4) words next to each other, at a multiple of all their bytes, to shared memory of any CTA
    of the cluster some time later, and then complete the bytes on `bar`, a barrier of that same CTA. Any thread of a
    launch that names a cluster; whoever waits for `bar` sees the values."""
    m.need_cluster("st.async")
    cta, at = m.owner(addr)
    bar_cta, bar_at = m.owner(bar)
    data = np.array(values, np.uint32).view(np.uint8)
    m.later(lambda: m.write(at, data, cta=cta), bars=[(m.mbar(bar_at, bar_cta), data.size)], writes=[(addr, data.size)])
