# SPDX-License-Identifier: Apache-2.0
"""Every configuration that the plans of `numba_cute.kernels` can choose, as the plans' own tables and rules have them:
for arrays of NumPy's, which are as large as it takes and hold nothing. `python -m tests.kernels.spills` compiles them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numba_cute as cute
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host.offline import types_of

from . import configurations_beside, configurations_families, configurations_rows
from .configurations_attention import BACKWARD, FORWARD, LATENT
from .configurations_gemm import ARCH, GROUPED, OUTER, WINDOWS, conv_space, matmul_space, mixed_space

SPACES = {
    "matmul": matmul_space, "grouped_gemm": lambda: GROUPED, "grouped_gemm backward": lambda: OUTER,
    "mixed_gemm": mixed_space, "conv": conv_space, "conv by windows": lambda: WINDOWS,
    "flash_attention": lambda: FORWARD, "flash_attention backward": lambda: BACKWARD,
    "latent_attention": lambda: LATENT, **configurations_rows.SPACES, **configurations_families.SPACES,
    **configurations_beside.SPACES,
}  # fmt: skip
"""By what they are of: spaces of configurations, made when they are asked for."""


class Machine:
    """Compiles configurations, each kernel once; the disk cache keeps them."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def __call__(self, kernel: Any, args: Any, target: str = ARCH) -> Any:
        """What the assembler says of a kernel for such arguments."""
        with compiling_for(target):
            types = types_of(kernel, args, target)
        cluster = getattr(kernel.py_func, "__cute_cluster__", None)
        key = kernel.py_func.__code__, repr(sorted(kernel.targetoptions.items())), cluster, target, types
        if key not in self.known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.known[key] = cute.compile(kernel, args, arch=target).resources
        return self.known[key]


def faults(machine: Machine, launches: Any, target: str | None = None) -> list[str]:
    """What is wrong with some kernels, for their arguments: registers that are spilled, by the assembler's figures, or
    that the target does not take them. target: the GPU's; by default an H200's."""
    found = []
    for kernel, args in launches:
        name = kernel.py_func.__name__
        try:
            made = machine(kernel, args, target or ARCH)
        except cute.CuteError as e:
            found.append(f"{name}: {str(e).splitlines()[0]}")
            continue
        if made.spill_stores or made.spill_loads or made.local:
            found.append(f"{name}: {made}")
    return found
