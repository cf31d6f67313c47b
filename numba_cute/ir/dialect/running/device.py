# SPDX-License-Identifier: Apache-2.0
"""Launches: the threads of a kernel run one after the other, on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..beside import GpuFunc
from .machine import Frame, Machine, Stopped, runs
from .standard import formatted, path

_AXES = {"x": 0, "y": 1, "z": 2}


def _places(machine: Machine, grid: Sequence[int], block: Sequence[int]) -> Iterator[dict[str, tuple[int, int, int]]]:
    """Go through the threads of a launch, the first dimension fastest."""
    if min(*grid, *block) <= 0:
        raise Stopped(f"a launch of {tuple(grid)} blocks of {tuple(block)} threads: each must be at least 1")
    sizes = {"gpu.grid_dim": (*grid,), "gpu.block_dim": (*block,)}
    for b in _counted(grid):
        for t in _counted(block):
            at = {"gpu.block_id": b, "gpu.thread_id": t}
            machine.place = {**sizes, **at}  # type: ignore[dict-item]
            yield machine.place
    machine.place = {}


def _counted(sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Count through three sizes, the first fastest, one place at a time: there may be more than memory holds."""
    for z in range(sizes[2]):
        for y in range(sizes[1]):
            for x in range(sizes[0]):
                yield x, y, z


def _launched(machine: Machine, grid: Sequence[int], block: Sequence[int], thread: Callable[[], Any]) -> None:
    if machine.place:
        raise Stopped("a kernel launches another: launches are the host's here")
    try:
        for _ in _places(machine, grid, block):
            thread()
    finally:
        machine.place = {}


@runs("gpu.launch_func")
def _launch_func(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    kernel = machine.function(path(op.kernel), op)
    if not isinstance(kernel, GpuFunc) or not kernel.is_kernel:
        raise Stopped(f"{op.kernel} is not a kernel")
    arguments = [frame[v] for v in op.kernelOperands]
    grid, block = [frame[v] for v in op.grid], [frame[v] for v in op.block]
    _launched(machine, grid, block, lambda: machine.call(kernel, arguments))
    return []


@runs("gpu.launch")
def _launch(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    sizes = [frame[v] for v in op.sizes]

    def thread() -> None:
        at = machine.place
        place = [*at["gpu.block_id"], *at["gpu.thread_id"], *sizes]
        machine.region(op.body, place, dict(frame))

    _launched(machine, sizes[:3], sizes[3:], thread)
    return []


@runs("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim")
def _place(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    if not machine.place:
        raise Stopped(f"{op.name} stands on the host, and only a kernel's threads have a place")
    return [machine.place[op.name][_AXES[op.dimension.data.value]]]


@runs("gpu.printf")
def _printf(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    machine.printed(formatted(op.format.data, operands))
    return []


@runs("gpu.barrier")
def _barrier(machine: Machine, op: Any, frame: Frame, operands: list[Any]) -> Sequence[Any]:
    sizes = machine.place.get("gpu.block_dim", (1, 1, 1))
    if sizes != (1, 1, 1):
        raise Stopped("gpu.barrier cannot be run here: threads run one after the other, and cannot wait for each other")
    return []
