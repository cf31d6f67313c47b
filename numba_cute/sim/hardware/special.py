# SPDX-License-Identifier: Apache-2.0
"""Special registers (PTX ISA, "Special Registers")."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import prod
from typing import Any

from ..ground.report import SimError


def special_register(run: Any, t: Any, name: str) -> int:
    """One special register of one thread (PTX ISA, "Special Registers"), or what its instruction `activemask` gives."""
    name, _, axis = name.partition(".")
    of_axis = _BY_AXIS.get(name)
    if of_axis is not None:
        return int(of_axis(run, t)["xyz".index(axis) if axis in ("x", "y", "z") else 0])
    run.tick()  # time passes
    found = _PLAIN.get(name)
    if found is None:
        raise SimError(f"special register {name!r}: the simulator has {', '.join([*_BY_AXIS, *_PLAIN])}")
    return int(found(run, t))


_PLAIN: dict[str, Callable[[Any, Any], int]] = {
    "laneid": lambda run, t: t.lane,
    "warpid": lambda run, t: t.index // 32,
    "nwarpid": lambda run, t: len(t.cta.warps),
    "smid": lambda run, t: t.cta.rank,
    "nsmid": lambda run, t: t.cta.cluster.size,
    "cluster_ctarank": lambda run, t: t.cta.rank,
    "cluster_nctarank": lambda run, t: prod(t.cta.cluster.shape),
    "dynamic_smem_size": lambda run, t: t.cta.smem.dynamic,
    "total_smem_size": lambda run, t: t.cta.smem.taken,
    "activemask": lambda run, t: 1 << t.lane,
    "lanemask_lt": lambda run, t: (1 << t.lane) - 1,
    "lanemask_eq": lambda run, t: 1 << t.lane,
    "clock": lambda run, t: run.clock & 0xFFFFFFFF,
    "clock64": lambda run, t: run.tick(),
    "globaltimer": lambda run, t: time.time_ns(),
    "gridid": lambda run, t: t.cta.cluster.gpu.serial,
}
_BY_AXIS: dict[str, Callable[[Any, Any], tuple[int, ...]]] = {
    "tid": lambda run, t: t.tid,
    "ntid": lambda run, t: run.block,
    "ctaid": lambda run, t: t.cta.index,
    "nctaid": lambda run, t: run.grid,
    "clusterid": lambda run, t: t.cta.cluster.coord,
    "nclusterid": lambda run, t: tuple(g // c for g, c in zip(run.grid, t.cta.cluster.shape)),
    "cluster_ctaid": lambda run, t: tuple(i % c for i, c in zip(t.cta.index, t.cta.cluster.shape)),
    "cluster_nctaid": lambda run, t: t.cta.cluster.shape,
}
