# SPDX-License-Identifier: Apache-2.0
"""Taking over clusters of the grid that have not started (PTX ISA, "clusterlaunchcontrol"), sm_100."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Int32
from ..seam import CuteError, traced
from ..tensor.pointer import shared_address


@traced
def issue_clc_query(mbar_ptr: Any, clc_response_ptr: Any, multicast: bool = True) -> None:
    """Ask for a cluster that has not started, so that it never will. The 16-byte response is written to
    `clc_response_ptr` (16-byte aligned, shared) later, and completes 16 bytes on the barrier `mbar_ptr`; with
    `multicast` at the same places in every block of the cluster (sm_100f). One thread of the cluster; not again after a
    response that says none was left. PTX clusterlaunchcontrol.try_cancel, sm_100."""
    if not isinstance(multicast, bool):
        raise CuteError(f"issue_clc_query: multicast {multicast!r} must be static: True or False")
    what = "issue_clc_query"
    response, bar = (shared_address(p, what) for p in (clc_response_ptr, mbar_ptr))
    isa.clc_try_cancel(response, bar, multicast=multicast)


@traced
def clc_response(result_addr: Any) -> tuple[Any, Any, Any, Any]:
    """(x, y, z) of the first block of the cluster that the response at `result_addr` took over, and 1; or four zeros
    (Int32). Any thread, after waiting for the response's barrier; `fence_proxy("async.shared", space="cta")` must
    follow before the next response is written there. PTX clusterlaunchcontrol.query_cancel, sm_100."""
    x, y, z, valid = isa.clc_query(shared_address(result_addr, "clc_response"))
    return Int32(x), Int32(y), Int32(z), Int32(valid)
