# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""The course of grids: ending one, and overlapping one with the next (programmatic dependent launch)."""

from __future__ import annotations

from ...seam import CuteError
from ..form.instr import SAME, instr
from ..form.machine import Machine

_REF = "parallel-synchronization-and-communication-instructions-griddepcontrol"


@instr("trap;", target="sm_70", ref="miscellaneous-instructions-trap")
def trap(m: Machine) -> None:
    """Abort the whole launch with an error. Any thread."""
    raise CuteError("the kernel executed trap: a thread gave up")


@instr("griddepcontrol.wait;", target="sm_90", lanes=SAME, ref=_REF)
def griddepcontrol_wait(m: Machine) -> None:
    """Wait until the grids that this one depends on have ended and their memory is visible: before their results are
    read. Any thread. Returns at once if the launch has no such dependency, as always in the simulator, which runs
    one grid after the other (`cute.simulate.sequence()` checks what others could do)."""
    m.depend(launches=False)


@instr("griddepcontrol.launch_dependents;", target="sm_90", lanes=SAME, ref=_REF)
def griddepcontrol_launch_dependents(m: Machine) -> None:
    """Say that dependent grids may start, once each CTA has said so or ended. Any thread. It makes no memory visible:
    they still need `griddepcontrol_wait`."""
    m.depend(launches=True)
