# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute.testing`: errors of tests, and times, which a simulated run has none of."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...testing import (
    JitArguments,
    autotune_jit as autotune_jit,
    benchmark as _benchmark,
    get_workspace_count as _workspaces,
    tune as _tune,
)  # fmt: skip
from ...testing.tuned import first_that_works
from ..runs import RUN

__all__ = [
    "CantImplementError", "add_tensor_init_args", "autotune_jit", "benchmark", "get_workspace_count", "tune",
    "validate_tensor_init_args",
]  # fmt: skip


class CantImplementError(Exception):
    """A configuration that a kernel does not have: what files raise."""


def benchmark(callable: Any, **named: Any) -> float:
    """Time a function that launches, as `numba_cute.testing.benchmark`. In a simulated run, where a time says nothing,
    return NaN; the function is called once, if nothing was launched before."""
    run = RUN.get()
    if run is None:
        return _benchmark(callable, **named)
    if run.simulates and not run.launched:
        given = named.get("kernel_arguments") or JitArguments()
        given = named["workspace_generator"]() if named.get("workspace_generator") else given
        callable(*given.args, **given.kwargs)
    return math.nan


def tune(
    func: Callable[..., Callable[[], Any]], params_dict: Mapping[str, Sequence[Any]],
    kernel_arguments: JitArguments | None = None, **named: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the fastest combination of parameters, as `numba_cute.testing.tune`; in a simulated run the first one that
    can be made, which is run once."""
    if RUN.get() is None:
        return dict(_tune(func, params_dict, kernel_arguments, **named))
    given, names = kernel_arguments or JitArguments(), list(params_dict)
    choices = (dict(zip(names, values)) for values in itertools.product(*params_dict.values()))
    made = first_that_works(func.__name__, choices, lambda choice: func(*given.args, **given.kwargs, **choice)())
    return dict(made[0])


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """Return how many sets of buffers `benchmark` needs, as `numba_cute.testing.get_workspace_count`; 1 in a simulated
    run."""
    if RUN.get() is not None:
        return 1
    return _workspaces(one_workspace_bytes, warmup_iterations, iterations)


def add_tensor_init_args(parser: argparse.ArgumentParser, supports_int_dtypes: bool = False) -> None:
    """Add the options that say how tensors are filled: `--init_normal`, `--normal_mean`, `--normal_std`.

    parser: they are added to it. supports_int_dtypes: whether the help says that integers are uniform at all times.
    """
    but = "; integers are uniform at all times" if supports_int_dtypes else ""
    parser.add_argument("--init_normal", action="store_true", help=f"fill tensors with normal numbers{but}")
    parser.add_argument("--normal_mean", type=float, default=0.0, help="their mean")
    parser.add_argument("--normal_std", type=float, default=1.0, help="their standard deviation")


def validate_tensor_init_args(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Judge what was given for the options of `add_tensor_init_args`, and end the program by `parser.error` if it is
    wrong. args: what `parser` read."""
    if args.normal_std < 0 or not math.isfinite(args.normal_std) or not math.isfinite(args.normal_mean):
        parser.error("--normal_mean and --normal_std are finite, and --normal_std is not negative")
