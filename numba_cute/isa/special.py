# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Special registers (PTX ISA, "Special Registers")."""

from __future__ import annotations

from .instr import instr, out, u32
from .machine import Machine

_XYZ = ("x", "y", "z")
_ALWAYS = [f"{r}.{d}" for r in ("tid", "ntid", "ctaid", "nctaid") for d in _XYZ]
_ALWAYS += ["laneid", "dynamic_smem_size", "total_smem_size"]
_CLUSTER = [f"{r}.{d}" for r in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for d in _XYZ]
_CLUSTER += ["cluster_ctarank", "cluster_nctarank"]


@instr(
    "mov.u32 $value, %{register};",
    target="sm_70",
    ref="special-registers",
    pure=True,
    over=[{"register": r} for r in _ALWAYS],
)
def sreg(m: Machine, value: out(u32), *, register: str) -> int:
    """The special register `register`, which never changes in a thread's life: tid, ntid, ctaid, nctaid (.x, .y, .z;
    threads, CTAs), laneid, dynamic_smem_size and total_smem_size (bytes). Any thread."""
    return m.sreg(register)  # type: ignore[no-any-return]


@instr(
    "mov.u32 $value, %{register};",
    target="sm_90",
    ref="special-registers",
    pure=True,
    over=[{"register": r} for r in _CLUSTER],
)
def sreg_cluster(m: Machine, value: out(u32), *, register: str) -> int:
    """The cluster register `register`: clusterid, nclusterid (clusters of the grid), cluster_ctaid, cluster_nctaid
    (CTAs of the cluster; .x, .y, .z), cluster_ctarank, cluster_nctarank. Without clusters each CTA is a cluster. Any
    thread."""
    return m.sreg(register)  # type: ignore[no-any-return]


@instr(
    "mov.u32 $value, %{register};",
    target="sm_70",
    ref="special-registers-warpid",
    over=[{"register": r} for r in ("warpid", "nwarpid", "smid", "nsmid")],
)
def sreg_volatile(m: Machine, value: out(u32), *, register: str) -> int:
    """The special register `register`, which may differ from one read to the next: warpid, nwarpid, smid, nsmid. For
    diagnosis; a warp's index in its CTA is `tid // 32`. Any thread."""
    return m.sreg(register)  # type: ignore[no-any-return]
