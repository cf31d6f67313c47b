# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute.arch` by which files of earlier releases call what is called otherwise now."""

from __future__ import annotations

from typing import Any

from ...arch import map_dsmem_ptr
from ...seam import Int, static, traced
from ...tensor.pointer import Pointer

__all__ = ["ProxyKind", "SharedSpace", "mapa"]


@static
class ProxyKind:
    """The kinds of proxies that `fence_proxy` takes: texts today."""

    alias = "alias"
    async_ = "async"
    async_global = "async.global"
    async_shared = "async.shared"


@static
class SharedSpace:
    """The parts of shared memory that `fence_proxy` takes: texts today."""

    shared_cta = "cta"
    shared_cluster = "cluster"


@traced
def mapa(ptr: Pointer, cta_rank_in_cluster: Int = 0, *, loc: Any = None, ip: Any = None) -> Pointer:
    """Call `map_dsmem_ptr(ptr, cta_rank_in_cluster)`: its older name. loc, ip: taken."""
    mapped: Pointer = map_dsmem_ptr(ptr, cta_rank_in_cluster)
    return mapped
