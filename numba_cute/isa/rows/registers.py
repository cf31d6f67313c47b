# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Moving registers between warpgroups."""

from __future__ import annotations

from ..form.instr import WARPGROUP, instr
from ..form.machine import Machine
from ..form.targets import FEATURES


@instr("setmaxnreg.{action}.sync.aligned.u32 {count};", target=FEATURES["setmaxnreg"], issuer=WARPGROUP,
       over=[{"action": a, "count": c} for a in ("inc", "dec") for c in range(24, 257, 8)],
       ref="miscellaneous-instructions-setmaxnreg")  # fmt: skip
def setmaxnreg(m: Machine, *, action: str, count: int) -> None:
    """Raise (action "inc", waiting until the CTA's pool has them) or lower ("dec", giving the rest to the pool) the
    registers of each of the warpgroup's threads to `count`, 24 to 256, a multiple of 8. All threads of the warpgroup;
    not "inc" again before a setmaxnreg of another warpgroup is synchronised with. The compiler ignores it unless the
    kernel's register count is bounded."""
    m.set_registers(count, grows=action == "inc")
