# SPDX-License-Identifier: Apache-2.0
"""Memory that the caller of a compiled function gives for the tensor maps that its kernels make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..compiler.host.map_memory import WORKSPACE, Workspace, needed
from ..compiler.host.mapped import map_bytes
from ..isa.facts.tensormap_bits import BYTES
from ..runtime import from_dlpack
from ..seam import CuteError, trying
from ..seam.ground.naming import shown
from ..seam.marks.constexpr import LAUNCHER, static_arguments
from ..tensor.tensor import Tensor, extent


class QueryDeviceWorkspaceFunc:
    """Names what `compiled.get_aux_func` is asked for: how much memory the caller of a compiled function may give, as
    its last argument, for the tensor maps that its kernels make. Without it each launch takes memory of its own."""


@dataclasses.dataclass(frozen=True)
class DeviceWorkspace:
    """Says how much memory a call of a compiled function needs. size_in_bytes: global memory, 0 if no kernel makes a
    tensor map. alignment: any address will do."""

    size_in_bytes: int
    alignment: int = BYTES


def workspace_of(run: Callable[..., Any], kernel: Any, arch: str) -> Callable[..., DeviceWorkspace]:
    """Return what tells of a call's arguments which workspace it needs. run: calls the host function. kernel: the one
    that is asked about; None for all that it launches. arch: the target."""
    asked = None if kernel is None else _function(kernel)

    def query(*args: Any, **named: Any) -> DeviceWorkspace:
        """Say what a call with these arguments needs."""
        sizes = [0]

        def take(launched: Any, given: Any, options: dict[str, Any]) -> None:
            if asked in (None, _function(launched)):
                sizes.append(launch_needs(launched, given, options["grid"], arch))

        token = LAUNCHER.set(take)
        try:
            with trying():
                run(*args, **named)
        finally:
            LAUNCHER.reset(token)
        return DeviceWorkspace(max(sizes))

    return query


def _function(kernel: Any) -> Any:
    return getattr(kernel, "py_func", kernel)


def launch_needs(kernel: Any, args: Any, grid: Any, arch: str) -> int:
    """Return how many bytes of memory for tensor maps a launch needs."""
    return needed(map_bytes(kernel, static_arguments(kernel, args), arch), grid)


@contextmanager
def giving(value: Any) -> Iterator[None]:
    """Have the launches that run in here take their memory from a caller's tensor or array. CuteError: it is none, it
    is too small, or nothing asks for it."""
    given = from_dlpack(value) if hasattr(value, "__dlpack__") else value
    if not isinstance(given, Tensor):
        raise CuteError(f"workspace {shown(value)}: give a tensor or an array in global memory")
    workspace = Workspace(*extent(given))
    token = WORKSPACE.set(workspace)
    try:
        yield
    finally:
        WORKSPACE.reset(token)
    if not workspace.asked:
        raise CuteError(
            "one argument more is given than the function has parameters, and none of its kernels makes a tensor map, "
            "for which it could be the memory: leave it out"
        )
