# SPDX-License-Identifier: Apache-2.0
"""The PTX of a debugged twin without a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..compiler.ground.asserting import ASSERTS
from ..compiler.ground.target import compiling_for
from ..compiler.host.offline import ptx_of, types_of
from .instrument import CHECKS, Instrumented, instrument


def twin_ptx(kernel: Any, args: Any, arch: str, checks: Iterable[str] = CHECKS) -> Instrumented:
    """Return the PTX of a kernel's debugged twin for arguments and a target."""
    options = {**kernel.targetoptions, "lineinfo": True}
    types = types_of(kernel, args, arch)
    with compiling_for(arch, False) as cc, ASSERTS:
        _, ptx = ptx_of(kernel.py_func, types, options, cc)
    return instrument(ptx, checks)
