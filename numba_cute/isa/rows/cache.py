# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Cache policies (PTX ISA, "createpolicy"): words that say how L2 keeps what an access with `.L2::cache_hint` touches.
Any thread. They change speed alone, so the simulator gives 0 for each."""

from __future__ import annotations

from ...seam import CuteError
from ..form.instr import instr
from ..form.kinds import f32, gmem, out, u32, u64
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions-createpolicy"
PRIORITIES = ("evict_first", "evict_normal", "evict_last", "evict_unchanged")
SECONDARY = ("evict_unchanged", "evict_first")
"""For what the first priority is not for."""
_BOTH = [{"priority": p, "secondary": s} for p in PRIORITIES for s in SECONDARY]


@instr("createpolicy.fractional.L2::{priority}.b64 $policy, 1.0;", target="sm_80", pure=True, ref=_REF,
       over=[{"priority": p} for p in PRIORITIES])  # fmt: skip
def createpolicy_l2(m: Machine, policy: out(u64), *, priority: str) -> int:
    """One priority for every access: evict_first (read once), evict_normal, evict_last (read again), evict_unchanged.
    Any thread."""
    return 0


@instr("createpolicy.fractional.L2::{priority}.L2::{secondary}.b64 $policy, $fraction;", target="sm_80", pure=True,
       ref=_REF, over=_BOTH, defaults={"secondary": "evict_unchanged"})  # fmt: skip
def createpolicy_fractional(m: Machine, fraction: f32, policy: out(u64)) -> int:
    """`priority` for this fraction (above 0, at most 1) of the accesses, chosen by the hardware, and `secondary` for
    the others. Any thread."""
    if not 0 < fraction <= 1:
        raise CuteError(f"createpolicy.fractional: fraction is {fraction}: it must be above 0 and at most 1")
    return 0


@instr("createpolicy.range.global.L2::{priority}.L2::{secondary}.b64 $policy, [$address], $primary_size, $total_size;",
       target="sm_80", ref=_REF, over=_BOTH, defaults={"secondary": "evict_unchanged"})  # fmt: skip
def createpolicy_range(m: Machine, address: gmem, primary_size: u32, total_size: u32, policy: out(u64)) -> int:
    """`priority` for accesses to the `primary_size` bytes from `address` on, and `secondary` for those to the rest of
    `total_size` bytes. Any thread."""
    if int(primary_size) > int(total_size):
        raise CuteError(
            f"createpolicy.range: primary_size is {primary_size}: it must be at most total_size, {total_size}"
        )
    return 0


@instr("createpolicy.cvt.L2.b64 $policy, $property;", target="sm_80", pure=True, ref=_REF)
def createpolicy_cvt(m: Machine, property: u64, policy: out(u64)) -> int:
    """The policy of an access property, as CUDA's APIs make them. Any thread."""
    return 0
