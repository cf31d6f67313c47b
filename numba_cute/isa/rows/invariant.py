# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Loads of global memory that nothing writes while the kernel runs (PTX ISA, "ld.global.nc"). Any thread."""

from __future__ import annotations

from typing import Any

from ..form.instr import instr
from ..form.kinds import gmem, optional, out, policy
from ..form.machine import Machine
from .memory import HINTED, WORDS, check_aligned, hints, sizes


@instr("ld.global.nc" + HINTED + " $value, [$addr]<policy:, $policy>;", target="sm_80",
       over=[{**hint, **size} for hint in hints((64, 128, 256)) for size in sizes()],
       defaults={"evict": None, "prefetch": None, "count": 1},
       ref="data-movement-and-conversion-instructions-ld-global-nc")  # fmt: skip
def ld_global_nc(
    m: Machine, addr: gmem, policy: optional(policy), value: out(WORDS), *, width: int, count: int
) -> Any:  # fmt: skip
    """Load `count` elements of `width` bits at a multiple of all their bytes, through the read-only cache: no store may
    change them while the kernel runs. width, count, evict, prefetch, policy: as of `ld`. Any thread."""
    nbytes = width // 8 * count
    check_aligned(addr, nbytes, "ld.global.nc")
    return m.read_constant(addr, nbytes).view(f"u{width // 8}").tolist()
