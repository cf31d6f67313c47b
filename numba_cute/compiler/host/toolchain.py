# SPDX-License-Identifier: Apache-2.0
"""Find the targets of the installed compiler."""

from __future__ import annotations

import functools

from ...isa.form.targets import TARGETS, Target, listing
from ...seam import CuteError
from ..ground.numba_cuda import nvvm


@functools.cache
def _has(name: str) -> bool:
    """Ask libNVVM whether it compiles for a target."""
    option = f"-arch={name.replace('sm_', 'compute_')}"
    return bool(nvvm.NVVM().check_options([option.encode()]))


def check_toolchain(target: Target) -> None:
    """Raise a CuteError if libNVVM does not compile for a target, with what to do: the assembler says the same of
    itself (`ptxas.assemble`)."""
    if _has(target.name):
        return
    having = listing(filter(_has, TARGETS))
    if target.renamed:
        remedy = f"newer ones call it {target.renamed}: use arch={target.renamed!r}"
    else:
        remedy = f"install one that writes PTX {target.ptx} or newer: numba-cute[cu13]"
    raise CuteError(
        f"arch {target.name!r}: the installed CUDA compiler (libNVVM) has no such target, only {having}; {remedy}"
    )
