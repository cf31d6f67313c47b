# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Moving registers between warpgroups."""

from __future__ import annotations

from ..form.instr import WARPGROUP, instr
from ..form.machine import Machine

_COUNTS = [{"count": c} for c in range(24, 257, 8)]
_REF = "miscellaneous-instructions-setmaxnreg"


@instr("setmaxnreg.inc.sync.aligned.u32 {count};", target="sm_90a", issuer=WARPGROUP, ref=_REF, over=_COUNTS)
def setmaxnreg_inc(m: Machine, *, count: int) -> None:
    """Raise the registers of each of the warpgroup's threads to `count` (24 to 256, a multiple of 8), waiting until
    the CTA's pool has them. All threads of the warpgroup; not again before a setmaxnreg of another warpgroup is
    synchronised with. The compiler ignores it unless the kernel's register count is bounded."""
    m.set_registers(count)


@instr("setmaxnreg.dec.sync.aligned.u32 {count};", target="sm_90a", issuer=WARPGROUP, ref=_REF, over=_COUNTS)
def setmaxnreg_dec(m: Machine, *, count: int) -> None:
    """Lower the registers of each of the warpgroup's threads to `count` (24 to 256, a multiple of 8), giving the rest
    to the CTA's pool. All threads of the warpgroup."""
    m.set_registers(count)
