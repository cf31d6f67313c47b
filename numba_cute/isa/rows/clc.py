# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Taking over clusters of the grid that have not started (PTX ISA, "clusterlaunchcontrol").

A response is 16 bytes of shared memory, written by the async proxy; `clc_query` reads it after waiting for its
barrier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..form.checks import need_aligned
from ..form.instr import ASYNC, MBARRIER, instr
from ..form.kinds import mbar, out, pred, smem, u32
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions-clusterlaunchcontrol"
RESPONSE_BYTES = 16


@instr("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
       "<multicast:.multicast::cluster::all>.b128 [$addr], [$bar];", target="sm_100", proxy=ASYNC, done_by=MBARRIER,
       over=[{"multicast": False}, {"multicast": True, "target": "sm_100f|sm_110f|sm_120f"}],
       defaults={"multicast": False}, ref=f"{_REF}-try-cancel")  # fmt: skip
def clc_try_cancel(m: Machine, addr: smem, bar: mbar, *, multicast: bool) -> None:
    """Ask for a cluster of the grid that has not started, so that it never will; write the response to `addr` (16
    bytes, 16-byte aligned) later, and complete 16 bytes on `bar`; with `multicast` (sm_100f) at the same offsets in
    every CTA of the cluster. One thread, which expects the bytes itself; not again after a response that says none was
    left."""
    need_aligned("clusterlaunchcontrol.try_cancel: addr", addr, RESPONSE_BYTES)
    ctas = list(range(int(m.sreg("cluster_nctarank")))) if multicast else [m.cta_rank]

    def effect() -> None:
        # the simulator's own format: the index of the cluster's first CTA, and whether a cluster was cancelled
        found = m.cancel_cluster()
        words = np.array([0, 0, 0, 0] if found is None else [*found, 1], np.uint32)
        for c in ctas:
            m.write(addr, words.view(np.uint8), cta=c)

    m.later(
        effect,
        bars=[(m.mbar(bar, c), RESPONSE_BYTES) for c in ctas],
        writes=[(m.mapa(addr, c), RESPONSE_BYTES) for c in ctas],
    )


@instr(
    "{ .reg .b128 response; ld.shared::cta.b128 response, [$addr]; mov.b32 $x, 0; mov.b32 $y, 0; mov.b32 $z, 0; "
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 $valid, response; "
    "@$valid clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {$x, $y, $z, _}, response; }",
    target="sm_100",
    ref=f"{_REF}-query-cancel",
)
def clc_query(m: Machine, addr: smem, x: out(u32), y: out(u32), z: out(u32), valid: out(pred)) -> Any:
    """Read whether the response at `addr` took over a cluster, and the (x, y, z) of its first CTA in the grid, or
    zeros. Any thread, after waiting for the response's barrier. Generic proxy: before the next response is written
    there, a proxy fence must follow."""
    need_aligned("clusterlaunchcontrol.query_cancel: addr", addr, RESPONSE_BYTES)
    words = m.read(addr, RESPONSE_BYTES).view(np.uint32)
    return int(words[0]), int(words[1]), int(words[2]), int(words[3])
