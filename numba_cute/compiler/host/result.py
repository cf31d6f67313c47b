# SPDX-License-Identifier: Apache-2.0
"""The result of compiling."""

from __future__ import annotations

import functools
import warnings
from dataclasses import field
from typing import Any

from ...seam.ground.drawing import brief
from ...seam.ground.folding import FOLDED
from ...seam.ground.records import dataclass
from ...seam.marks.constexpr import LAUNCHER, static_arguments, with_static
from . import ptxas
from .waits import Wait, waits

LIKELY_WRONG = "likely wrong: "
"""Begins a note of a likely mistake."""


class PerformanceWarning(UserWarning):
    """The assembler compiled the kernel, and says that it will be slow.

    >>> issubclass(cute.PerformanceWarning, UserWarning)
    True
    """


class MistakeWarning(UserWarning):
    """A kernel compiles, and what it does with a pipeline is likely not what is meant: it may hang, or be wrong.

    >>> issubclass(cute.MistakeWarning, UserWarning)
    True
    """


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel, which is launched as the kernel is. name: its symbol. arch: the target. ptx, cubin: the code.
    resources: what it uses. notes: what costs speed, what is likely a mistake, and what else the assembler remarked.
    kernel: what `cuda.jit` or `cute.kernel` made; None of one that was compiled by something else than
    `cute.compile`.

    >>> def kernel(x):
    ...     x[0] = 1
    >>> made = cute.compile(cuda.jit(kernel), (np.zeros(1),), arch="sm_90a")
    >>> made.arch, made.resources.shared, len(made.cubin) > 0
    ('sm_90a', 0, True)
    """

    name: str
    arch: str
    ptx: str
    cubin: bytes
    resources: ptxas.Resources
    notes: tuple[str, ...]
    kernel: Any = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Write what it uses, and its notes, in at most ten lines."""
        used = self.resources
        fn = getattr(self.kernel, "py_func", None)
        groups = f" ({', '.join(map(str, used.group_registers))} of its warpgroups)" if used.group_registers else ""
        return brief("\n".join([
            f"Compiled {fn.__name__ if fn is not None else self.name} for {self.arch}: "
            f"{len(self.ptx.splitlines())} lines of PTX, {len(self.cubin)} bytes of code",
            f"  registers: {used.registers}{groups}; spills: {used.spill_stores} bytes stored, "
            f"{used.spill_loads} loaded; local memory: {used.local} bytes",
            f"  shared memory: {used.shared} bytes static, {used.dynamic_shared} dynamic",
            *(f"  note: {note}" for note in self.notes),
        ]))  # fmt: skip

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Bind arguments to the kernel, `args` in order and `named` by name: `.launch(grid=…, block=…)` of the result
        runs it on a GPU. A kernel of other arguments' types than it was compiled with is compiled for these."""
        if getattr(self.kernel, "__cute_kernel__", False):
            return self.kernel(*args, **named)
        return Bound(self.kernel, args, named)

    def __getitem__(self, configuration: Any) -> Any:
        """`compiled[grid, block, stream, smem](*args)`, as for a kernel of Numba. configuration: those four."""
        return self.kernel[configuration]

    @functools.cached_property
    def sass(self) -> str:
        """The machine code, disassembled (needs nvdisasm)."""
        return ptxas.disassemble(self.cubin)

    @functools.cached_property
    def waits(self) -> tuple[Wait, ...]:
        """The waits for wgmmas in the machine code: for each, the groups that may still run after it (`pending`), and
        the instructions between the last multiply, or wait, and it (`beside`, by name), which run while the multiplies
        do (needs nvdisasm)."""
        return waits(self.sass)


@dataclass(frozen=True)
class Bound:
    """A kernel with its arguments. kernel: what `cuda.jit` made. args, named: the arguments."""

    kernel: Any
    args: tuple[Any, ...]
    named: dict[str, Any]

    def launch(self, *, grid: Any, block: Any, **options: Any) -> None:
        """Run the kernel on a GPU, or as a host function that is simulated or compiled has it run. grid, block,
        options: as for `cute.launch`."""
        launcher = LAUNCHER.get()
        if launcher is not None:
            args = static_arguments(self.kernel, self.args, self.named)
            usual = {"cluster": None, "smem": 0, "cooperative": False, "fallback_cluster": None, "pdl": False}
            known = {name: options.get(name, value) for name, value in usual.items()}
            launcher(self.kernel, args, {"grid": grid, "block": block, **known})
            return
        from .launching import launch  # Numba's own simulator has no launches

        with FOLDED:
            launch(self.kernel, grid=grid, block=block, **options)(*self.args, **self.named)


@dataclass(frozen=True)
class CompiledHost:
    """A host function with its kernels, compiled; called, it runs the function on a GPU.

    host: the function. args: the arguments that it was compiled with. kernels: the code of each kernel that it
    launched, in that order."""

    host: Any
    args: tuple[Any, ...]
    kernels: tuple[Compiled, ...]

    def __repr__(self) -> str:
        """Write the kernels in at most ten lines."""
        name = getattr(self.host, "__name__", "host function")
        return brief("\n".join([f"CompiledHost {name}: {len(self.kernels)} kernels", *map(repr, self.kernels)]))

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the host function on `args` and `named`. Parameters marked `cute.Constexpr` are what they were when it
        was compiled, and are left out of `args`."""
        return self.host(**with_static(self.host, self.args, args, named))


def warn_of(name: str, notes: tuple[str, ...]) -> None:
    """Warn of each note of the assembler that means lost speed, and of each of a likely mistake."""
    for note in notes:
        if note.startswith(LIKELY_WRONG):
            warnings.warn(f"kernel {name}: {note}", MistakeWarning, stacklevel=4)
        if any(code in note for code in ptxas.SLOW_NOTES):
            warnings.warn(f"kernel {name}: {note}", PerformanceWarning, stacklevel=4)
