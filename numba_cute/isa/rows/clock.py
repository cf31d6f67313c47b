# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Clocks, and waiting for time to pass."""

from __future__ import annotations

from ..form.instr import SAME, instr
from ..form.kinds import out, u32, u64
from ..form.machine import Machine


@instr("mov.u64 $ticks, %clock64;", target="sm_70", ref="special-registers-clock64")
def clock64(m: Machine, ticks: out(u64)) -> int:
    """The SM's cycle counter, in clocks. Any thread. Not ordered with memory accesses around it."""
    return m.sreg("clock64")  # type: ignore[no-any-return]


@instr("mov.u64 $ns, %globaltimer;", target="sm_70", ref="special-registers-globaltimer-globaltimer-lo-globaltimer-hi")
def globaltimer(m: Machine, ns: out(u64)) -> int:
    """The GPU's timer, in nanoseconds (its resolution is about a microsecond). Any thread."""
    return m.sreg("globaltimer")  # type: ignore[no-any-return]


@instr("mov.u32 $ticks, %clock;", target="sm_70", ref="special-registers-clock")
def clock32(m: Machine, ticks: out(u32)) -> int:
    """The low word of the SM's cycle counter, in clocks. Any thread. Not ordered with memory accesses around it."""
    return int(m.sreg("clock64")) & 0xFFFFFFFF


@instr("mov.u32 $ns, %globaltimer_lo;", target="sm_70",
       ref="special-registers-globaltimer-globaltimer-lo-globaltimer-hi")  # fmt: skip
def globaltimer_lo(m: Machine, ns: out(u32)) -> int:
    """The low word of the GPU's timer, in nanoseconds. Any thread."""
    return int(m.sreg("globaltimer")) & 0xFFFFFFFF


@instr("nanosleep.u32 $ns;", target="sm_70", lanes=SAME, ref="miscellaneous-instructions-nanosleep")
def nanosleep(m: Machine, ns: u32) -> None:
    """Suspend the thread for up to about 2 * `ns` nanoseconds (at most a millisecond)."""
    m.pause("nanosleep")
