# SPDX-License-Identifier: Apache-2.0
"""Taking over clusters of the grid that have not started (PTX ISA, "clusterlaunchcontrol"), sm_100."""

from __future__ import annotations

from typing import Any

from .. import isa
from ..dtypes import Int32
from ..seam import CuteError, Int, traced
from ..seam.guards.messages import how_static
from ..tensor.pointer import Pointer, shared_address

__all__ = ["clc_response", "issue_clc_query"]


@traced
def issue_clc_query(mbar_ptr: Pointer | Int, clc_response_ptr: Pointer | Int, multicast: bool = True) -> None:
    """Request a cluster that has not started, in order to do its work; it never will start then. One thread of the
    cluster, and not again after a response that says that none was left.

    mbar_ptr: the barrier on which the 16 bytes of the response complete. clc_response_ptr: where it is written, 16
    bytes of shared memory, 16-byte aligned. multicast: write it at the same places of every block of the cluster
    (sm_100f), as by default. PTX clusterlaunchcontrol.try_cancel, sm_100.

    >>> def kernel(out):
    ...     bar, place = arch.alloc_smem(cute.Int64, 1), arch.alloc_smem(cute.Int32, 4, alignment=16)
    ...     arch.mbarrier_init(bar, 1)
    ...     arch.mbarrier_init_fence()
    ...     arch.mbarrier_arrive_and_expect_tx(bar, 16)
    ...     arch.issue_clc_query(bar, place, multicast=False)
    ...     arch.mbarrier_wait(bar, 0)
    ...     out[0] = arch.clc_response(place)[3]
    >>> out = np.ones(1, np.int32)
    >>> cute.simulate(kernel, arch="sm_100a")[1, 1](out)
    >>> out
    array([0], dtype=int32)
    """
    if not isinstance(multicast, bool):
        raise CuteError(
            f"issue_clc_query: multicast {multicast!r} must be static: True or False{how_static(multicast)}"
        )
    what = "issue_clc_query"
    response, bar = (shared_address(p, what) for p in (clc_response_ptr, mbar_ptr))
    isa.clc_try_cancel(response, bar, multicast=multicast)


@traced
def clc_response(result_addr: Any) -> tuple[Any, Any, Any, Any]:
    """Decode the response at `result_addr`: (x, y, z) of the first block of the cluster taken over, and 1; four zeros
    if none was left (Int32).

    Any thread, after waiting for the response's barrier; `fence_proxy("async.shared", space="cta")` must follow before
    the next response is written there. PTX clusterlaunchcontrol.query_cancel, sm_100.

    See the example of `issue_clc_query`.
    """
    x, y, z, valid = isa.clc_query(shared_address(result_addr, "clc_response"))
    return Int32(x), Int32(y), Int32(z), Int32(valid)
