# SPDX-License-Identifier: Apache-2.0
"""`simulation`: a program's launches in the simulator, as they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from ..isa.form.targets import asked
from ..seam import CuteError
from ..seam.ground.replaced import replaced
from ..seam.marks.launches import LAUNCHES
from .launch import Simulated, simulate
from .trace import Trace

__all__ = ["simulation"]


@contextmanager
def simulation(
    arch: str = "sm_90a", *, checks: Any = True, seed: int | None = None, async_mode: str | None = None,
    sms: int | None = None, compile: bool | str = False, prove: bool = False, trace: Trace | None = None,
    progress: bool | None = None,
) -> Iterator[Simulated]:  # fmt: skip
    """Run each launch of this thread in the simulator, on the CPU's memory, as long as the context lasts.

        with cute.simulation():
            kernel[grid, block](x, y)  # NumPy's arrays, torch's tensors of the CPU
            c = cute.kernels.matmul(a, b)

    `kernel[grid, block](…)`, `kernel.forall(n)`, `cute.launch` with `prepare`, `.launch(…)`, `numba_cute.kernels`,
    operators of `cute.torch_op` (their gradients too) and autotuned functions, which take the first configuration that
    is allowed in place of measuring: nothing of them is written otherwise. What is asked of the GPU (SMs, clusters,
    shared memory) the target answers. The launches follow each other as on one stream (see `simulate.sequence`).

    arch: the target. sms: how many SMs it has (None: as many as its first product). checks, seed, async_mode, compile,
    prove, trace, progress: as for `simulate`, for each launch. What it gives holds these as `simulate` does. A second
    one in the first stands in its place. CuteError: Numba's own simulator is on (NUMBA_ENABLE_CUDASIM=1); a tensor on a
    GPU. The errors of launches are those of `simulate`.

    >>> @cute.kernel
    ... def kernel(x):
    ...     x[0] = 7
    >>> x = np.zeros(1)
    >>> with cute.simulation():
    ...     kernel[1, 1](x)
    >>> x
    array([7.])
    """
    if LAUNCHES.taken is nullcontext:
        raise CuteError(
            "simulation: NUMBA_ENABLE_CUDASIM=1 has Numba's own simulator run launches: unset it, or run the kernel by "
            "cute.simulate(kernel)[grid, block](…)"
        )
    made = simulate(
        _program, arch=arch, checks=checks, seed=seed, async_mode=async_mode, sms=sms, compile=compile, prove=prove,
        trace=trace, progress=progress,
    )  # fmt: skip
    with made._launches(), _of_torch():
        yield made


def _program() -> None:
    """Stand for the program whose launches are simulated."""


class _Stream:
    """The stream of a simulation: all is done as soon as it is launched."""

    cuda_stream = 0

    def synchronize(self) -> None:
        """Do nothing: all is done."""


def _of_torch() -> AbstractContextManager[None]:
    """Have what launching functions ask of `torch.cuda` answered where there is no GPU."""
    torch, target = sys.modules.get("torch"), asked()
    if torch is None or target is None or torch.cuda.is_available():
        return nullcontext()
    stream = _Stream()
    digits = target.name.removeprefix("sm_").rstrip("af")
    major, minor = int(digits[:-1]), int(digits[-1])
    sms = target.products[0].sms if target.products else 1
    properties = SimpleNamespace(name=target.name, major=major, minor=minor, multi_processor_count=sms)
    return replaced(
        torch.cuda,
        {
            "current_stream": lambda device=None: stream, "synchronize": lambda device=None: None,
            "is_current_stream_capturing": lambda: False,
            "get_device_properties": lambda device=None: properties,
            "get_device_capability": lambda device=None: (major, minor),
        },
    )  # fmt: skip
