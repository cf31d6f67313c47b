# SPDX-License-Identifier: Apache-2.0
"""Special registers (PTX ISA, "Special Registers")."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..ground.report import SimError


def special_register(run: Any, t: Any, name: str) -> int:
    """One special register of one thread (PTX ISA, "Special Registers"), or what its instruction `activemask` gives."""
    name, _, axis = name.partition(".")
    d = "xyz".index(axis) if axis in ("x", "y", "z") else 0
    cta = t.cta
    shape = cta.cluster.shape
    if name in _BY_AXIS:
        return int(_BY_AXIS[name](run, t)[d])
    fixed = {
        "laneid": t.lane, "warpid": t.index // 32, "nwarpid": len(cta.warps), "smid": cta.rank,
        "nsmid": cta.cluster.size,
        "cluster_ctarank": cta.rank, "cluster_nctarank": shape[0] * shape[1] * shape[2],
        "dynamic_smem_size": cta.smem.dynamic, "total_smem_size": cta.smem.taken,
        "activemask": 1 << t.lane,
        "lanemask_lt": (1 << t.lane) - 1, "lanemask_eq": 1 << t.lane, "clock": run.tick() & 0xFFFFFFFF,
    }  # fmt: skip
    if name in fixed:
        return int(fixed[name])
    if name == "clock64":
        return run.tick()  # type: ignore[no-any-return]
    if name == "globaltimer":
        return time.time_ns()
    if name == "gridid":
        return run.serial  # type: ignore[no-any-return]
    raise SimError(f"special register {name!r}: the simulator has {', '.join([*_BY_AXIS, *fixed])}")


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
