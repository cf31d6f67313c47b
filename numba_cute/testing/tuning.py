# SPDX-License-Identifier: Apache-2.0
"""`tune` and `autotune_jit`, called as in the CuTe DSL: `autotune` in their words."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .configurations import Configuration
from .reference import JitArguments
from .tuned import Autotuned, autotune

__all__ = ["autotune_jit", "tune"]


def tune(
    func: Callable[..., Callable[[], Any]], params_dict: Mapping[str, Sequence[Any]],
    kernel_arguments: JitArguments | None = None, *, warmup_iterations: int = 10, iterations: int = 100,
    stream: Any = None, device: Any = None,
) -> Configuration:  # fmt: skip
    """Return the fastest combination of parameters. Nothing is kept.

    func: called with the arguments and a combination, by name; it gives a function without arguments that launches, or
    raises where the combination cannot be. params_dict: the choices for each parameter. kernel_arguments: the
    arguments. warmup_iterations, iterations: calls of the reference; here turns last until times have settled, and
    these are not read. stream, device: as of `compare`. CuteError: no combination works.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     for i in range(arch.thread_idx()[0], 64, arch.block_dim()[0]):
    ...         x[i] = value
    >>> def with_threads(x, threads):
    ...     return lambda: fill[1, threads](x, 1)
    >>> given = cute.testing.JitArguments(np.zeros(64, np.float32))
    >>> cute.testing.tune(with_threads, {"threads": [32, 64]}, given)
    {'threads': ...}
    """
    given = kernel_arguments or JitArguments()

    @functools.wraps(func)
    def make(*args: Any, **named: Any) -> Any:
        return func(*args, **named)

    tuned = autotune(
        params_dict, makes_launch=True, store=False, stream=stream, progress=False, device=device
    )(make)  # fmt: skip
    return tuned.tune(*given.args, **given.kwargs).best


def autotune_jit(
    params_dict: Mapping[str, Sequence[Any]] | None = None, *, update_on_change: Sequence[str] | None = None,
    warmup_iterations: int = 10, iterations: int = 100,
    prune_configs: Callable[..., Any] | None = None, device: Any = None, **choices: Sequence[Any],
) -> Callable[[Callable[..., Any]], Autotuned]:  # fmt: skip
    """Decorate a host function (`cute.jit`) with the search for the fastest of its parameters.

    params_dict: the choices for each parameter; or `choices`, by name. update_on_change: names of the arguments whose
    change asks for a new search; all by default. prune_configs: as `prune` of `autotune`. warmup_iterations,
    iterations: as of `tune`. device: as of `compare`.

    >>> @cute.kernel
    ... def fill(x, value):
    ...     x[arch.thread_idx()[0]] = value
    >>> @cute.testing.autotune_jit(threads=[32, 64])
    ... def filled(x, value, threads=32):
    ...     fill[1, threads](x, value)
    >>> x = np.zeros(64, np.int32)
    >>> with cute.simulation():
    ...     filled(x, 7)
    >>> x[[0, 63]]
    array([7, 0], dtype=int32)
    """

    def decorate(function: Callable[..., Any]) -> Autotuned:
        plain: Any = getattr(function, "py_func", None) or getattr(function, "fn", function)

        @functools.wraps(plain)
        def call(*args: Any, **named: Any) -> Any:
            return function(*args, **named)

        call.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
        call.__cute_host_function__ = function  # type: ignore[attr-defined]
        made = autotune(
            {**(params_dict or {}), **choices}, key=update_on_change, prune=prune_configs, progress=False, device=device
        )
        return made(call)

    return decorate
