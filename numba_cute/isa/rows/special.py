# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Special registers (PTX ISA, "Special Registers")."""

from __future__ import annotations

from typing import Any

from ..form.instr import ARRAY, instr
from ..form.kinds import out, u32, u64
from ..form.machine import Machine

_XYZ = ("x", "y", "z")
_ALWAYS = [f"{r}.{d}" for r in ("tid", "ntid", "ctaid", "nctaid") for d in _XYZ]
_SIZES = ("dynamic_smem_size", "total_smem_size")
_LANES = ("eq", "le", "lt", "ge", "gt")
_CLUSTER = [f"{r}.{d}" for r in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for d in _XYZ]
_CLUSTER += ["cluster_ctarank", "cluster_nctarank"]
_GRID, _CTA = 2**31 - 1, 1024
_MOST = {"ctaid": _GRID, "nctaid": _GRID + 1, "clusterid": _GRID, "nclusterid": _GRID + 1, "laneid": 32}


def _range(register: str) -> tuple[int, int]:
    """The least value that a register may have, and the one that it does not reach."""
    name = register.partition(".")[0]
    least = int(name.startswith(("n", "cluster_n")))
    return least, _MOST.get(name, _CTA + least)


@instr(
    "mov.u32 $value, %{register};",
    target="sm_70",
    ref="special-registers",
    pure=True,
    lanes=ARRAY,
    over=[
        *({"register": r, "grows": False, "range": _range(r)} for r in (*_ALWAYS, "laneid")),
        *({"register": r, "grows": True} for r in _SIZES),
    ],
)
def sreg(m: Machine, value: out(u32), *, register: str) -> Any:
    """The special register `register`, which never changes in a thread's life: tid, ntid, ctaid, nctaid (.x, .y, .z;
    threads, CTAs), laneid, dynamic_smem_size and total_smem_size (bytes; grows: the simulator learns of allocations as
    the kernel runs). range: what the compiler may take for granted of it, from and up to. Any thread."""
    return m.sreg(register)


@instr(
    "mov.u32 $value, %{register};",
    target="sm_90",
    ref="special-registers",
    pure=True,
    lanes=ARRAY,
    over=[{"register": r, "range": _range(r)} for r in _CLUSTER],
)
def sreg_cluster(m: Machine, value: out(u32), *, register: str) -> Any:
    """The cluster register `register`: clusterid, nclusterid (clusters of the grid), cluster_ctaid, cluster_nctaid
    (CTAs of the cluster; .x, .y, .z), cluster_ctarank, cluster_nctarank. Without clusters each CTA is a cluster. Any
    thread."""
    return m.sreg(register)


@instr(
    "mov.u32 $value, %{register};",
    target="sm_70",
    ref="special-registers-warpid",
    lanes=ARRAY,
    over=[{"register": r} for r in ("warpid", "nwarpid", "smid", "nsmid")],
)
def sreg_volatile(m: Machine, value: out(u32), *, register: str) -> Any:
    """The special register `register`, which may differ from one read to the next: warpid, nwarpid, smid, nsmid. For
    diagnosis; a warp's index in its CTA is `tid // 32`. Any thread."""
    return m.sreg(register)


@instr("mov.u32 $value, %lanemask_{lanes};", target="sm_70", ref="special-registers-lanemask-eq", pure=True,
       over=[{"lanes": n} for n in _LANES])  # fmt: skip
def lanemask(m: Machine, value: out(u32), *, lanes: str) -> Any:
    """A word with the bits of the lanes that are equal to this one ("eq"), at most ("le"), less ("lt"), at least
    ("ge"), greater ("gt"). Any thread."""
    bit = 1 << int(m.sreg("laneid"))
    below = bit - 1
    masks = {"eq": bit, "le": below | bit, "lt": below, "ge": ~below, "gt": ~(below | bit)}
    return masks[lanes] & 0xFFFFFFFF


@instr("mov.u32 $value, WARP_SZ;", target="sm_70", ref="special-registers-warpid", pure=True)
def warp_size(m: Machine, value: out(u32)) -> Any:
    """The number of lanes of a warp: 32 on every target. Any thread."""
    return 32


@instr("mov.u32 $bytes, %aggr_smem_size;", target="sm_90", ref="special-registers-aggr-smem-size", pure=True)
def aggr_smem_size(m: Machine, bytes: out(u32)) -> Any:
    """Bytes of shared memory that the CTA occupies: `total_smem_size` and the KiB that the system reserves. Any
    thread."""
    return int(m.sreg("total_smem_size")) + 1024


@instr("mov.u64 $id, %gridid;", target="sm_70", ref="special-registers-gridid", pure=True)
def gridid(m: Machine, id: out(u64)) -> Any:
    """A number that tells the launches of a process apart. Any thread."""
    return m.sreg("gridid")
