# SPDX-License-Identifier: Apache-2.0
"""The result of compiling."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

from ...seam.constexpr import with_static
from . import ptxas


class PerformanceWarning(UserWarning):
    """The assembler compiled the kernel, and says that it will be slow."""


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel. name: its symbol. arch: the target. ptx, cubin: the code. resources: what it uses.
    notes: what the assembler remarked."""

    name: str
    arch: str
    ptx: str
    cubin: bytes
    resources: ptxas.Resources
    notes: tuple[str, ...]

    @functools.cached_property
    def sass(self) -> str:
        """The machine code, disassembled (needs nvdisasm)."""
        return ptxas.disassemble(self.cubin)


@dataclass(frozen=True)
class CompiledHost:
    """A host function with its kernels, compiled; called, it runs the function on a GPU.

    host: the function. args: the arguments that it was compiled with. kernels: the code of each kernel that it
    launched, in that order."""

    host: Any
    args: tuple[Any, ...]
    kernels: tuple[Compiled, ...]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the host function on `args` and `named`. Parameters marked `cute.Constexpr` are what they were when it
        was compiled, and are left out of `args`."""
        return self.host(**with_static(self.host, self.args, args, named))


def warn_if_slow(name: str, notes: tuple[str, ...]) -> None:
    """Warn of each note that means lost speed."""
    for note in notes:
        if any(code in note for code in ptxas.SLOW_NOTES):
            warnings.warn(f"kernel {name}: {note}", PerformanceWarning, stacklevel=4)
