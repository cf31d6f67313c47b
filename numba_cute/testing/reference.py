# SPDX-License-Identifier: Apache-2.0
"""`benchmark` and what goes with it, called as in the CuTe DSL."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..compiler.host.stopwatch import Stopwatch
from ..seam import CuteError

__all__ = ["JitArguments", "benchmark", "get_workspace_count"]

_TIMES_L2 = 3


class JitArguments:
    """The arguments of a call that is timed. args, kwargs: those arguments.

    >>> cute.testing.JitArguments(1, 2).args
    (1, 2)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self._kept: list[Any] = []

    def add_to_scope(self, kept: Any) -> None:
        """Keep objects alive as long as these arguments. kept: those objects, as the arrays that tensors view."""
        self._kept.append(kept)


MOST_CALLS = 1_000_000
"""The most calls that `benchmark` makes: more are a mistake, or take hours."""


def get_workspace_count(
    one_workspace_bytes: int, warmup_iterations: int, iterations: int, *, device: Any = None
) -> int:  # fmt: skip
    """Return how many sets of buffers `benchmark` needs so that a launch finds nothing of its own in the L2 cache: sets
    that fill it three times, and no more than there are launches.

    one_workspace_bytes: of one set. warmup_iterations, iterations: of `benchmark`. device: as of `compare`. CuteError:
    numbers that are not positive (warmup_iterations: negative), no GPU.

    >>> from types import SimpleNamespace
    >>> gpu = SimpleNamespace(l2_bytes=lambda: 50 << 20)  # in the place of the current GPU
    >>> cute.testing.get_workspace_count(16 << 20, 10, 100, device=gpu)
    11
    """
    for name, value, least in (
        ("one_workspace_bytes", one_workspace_bytes, 1),
        ("warmup_iterations", warmup_iterations, 0),
        ("iterations", iterations, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise CuteError(f"get_workspace_count: {name} {value!r} must be an int from {least} on")
    watch = Stopwatch() if device is None else device
    return max(
        1, min(math.ceil(_TIMES_L2 * watch.l2_bytes() / one_workspace_bytes) + 1, warmup_iterations + iterations)
    )


def benchmark(
    callable: Callable[..., Any], *, warmup_iterations: int = 10, iterations: int = 100, stream: Any = None,
    kernel_arguments: JitArguments | None = None, workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1, use_cuda_graphs: bool = False, device: Any = None,
) -> float:  # fmt: skip
    """Time a function that launches: the mean of `iterations` calls back to back, in microseconds.

    callable: a host function (`cute.jit`), what `cute.compile` made of it, or any other. kernel_arguments: those of
    each call. workspace_generator: in their place, a function that makes a call's arguments, called
    `workspace_count` times before; calls take them in turn, see `get_workspace_count`. warmup_iterations: calls before
    those that are timed. stream: the one that it launches on; None for torch's current, or the default one.
    use_cuda_graphs: replay the calls from a graph; `stream` is then not the default one. device: as of `compare`.

    CuteError: both kinds of arguments, what a generator gives that are no JitArguments, counts that are not positive,
    a default stream to capture, no GPU. `do_bench` and `compare` say more about a time.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> @cute.jit
    ... def filled(x, value):
    ...     fill(x, value).launch(grid=1, block=32)
    >>> one = cute.testing.JitArguments(np.zeros(32, np.float32), 1)
    >>> cute.testing.benchmark(filled, warmup_iterations=1, iterations=2, kernel_arguments=one) > 0  # µs
    True
    """
    sets = _arguments(kernel_arguments, workspace_generator, workspace_count)
    for name, value, least in (("warmup_iterations", warmup_iterations, 0), ("iterations", iterations, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_CALLS:
            raise CuteError(f"benchmark: {name} {value!r} must be an int from {least} to {MOST_CALLS}")
    watch = Stopwatch(stream) if device is None else device

    def bound(given: JitArguments) -> Callable[[], Any]:
        return lambda: callable(*given.args, **given.kwargs)

    launches = [bound(s) for s in sets]
    if not use_cuda_graphs:
        if warmup_iterations:
            watch.timed(launches, warmup_iterations)
        return float(watch.timed(launches, iterations)) * 1e6 / iterations
    for launch in launches:  # compiles, which no graph may
        launch()
    watch.synchronize()
    if warmup_iterations:
        watch.timed([watch.graph(launches, warmup_iterations)], 1)
    graph = watch.graph(launches, iterations)
    watch.timed([graph], 1)  # a graph's first launch uploads it
    return float(watch.timed([graph], 1)) * 1e6 / iterations


def _arguments(given: Any, generator: Any, count: Any) -> list[JitArguments]:
    if given is not None and generator is not None:
        raise CuteError("benchmark: give kernel_arguments or workspace_generator, not both")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_CALLS:
        raise CuteError(f"benchmark: workspace_count {count!r} must be an int from 1 to {MOST_CALLS}")
    sets = [given or JitArguments()] if generator is None else [generator() for _ in range(count)]
    for s in sets:
        if not isinstance(s, JitArguments):
            name = "kernel_arguments" if generator is None else "workspace_generator: what it gives,"
            raise CuteError(f"benchmark: {name} {s!r} must be JitArguments(…)")
    return sets
