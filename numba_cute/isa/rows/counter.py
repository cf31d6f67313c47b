# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The counter that a dynamic schedule draws its work from."""

from __future__ import annotations

import numpy as np

from ..form.instr import gmem, instr, out, u32
from ..form.machine import Machine


@instr("atom.relaxed.gpu.global.add.u32 $old, [$addr], $value;", target="sm_70",
       ref="parallel-synchronization-and-communication-instructions-atom")  # fmt: skip
def counter_add(m: Machine, addr: gmem, value: u32, old: out(u32)) -> int:
    """Add `value` to the 32-bit word at `addr` (a multiple of 4) of global memory, atomically for the whole GPU, and
    give what was there. Any thread; it orders no other memory access."""
    before = m.atomic(addr, 4, lambda b: (b.view(np.uint32) + np.uint32(value)).view(np.uint8), shared=False)
    return int(before.view(np.uint32)[0])
