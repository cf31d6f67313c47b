# SPDX-License-Identifier: Apache-2.0
"""The GEMM for Hopper, cut as measurements find best: what `matmul(…, tune=True)` asks."""

from __future__ import annotations

from typing import Any

import numba_cute as cute

from . import launches
from .epilogue import Epilogue
from .plan import RESULTS, Plan, cuts, modelled

__all__ = ["tuned"]


def _choices(a: Any, b: Any, c: Any, dtype: Any, epilogue: Any, c_dtype: Any) -> list[dict[str, Any]]:
    """List the cuts that `tuned` may choose from."""
    width = (c_dtype or RESULTS[dtype]).width
    return [cut._asdict() for cut in cuts(c, a.shape[-1], dtype, epilogue, width)]


def _matter(a: Any, b: Any, c: Any, dtype: Any, epilogue: Any, c_dtype: Any) -> Any:
    """Give what a search of `tuned` holds for."""
    return a, b, c, dtype, c_dtype, (epilogue.form, epilogue.tensors) if epilogue else None


def _cost(cut: dict[str, Any], given: Any) -> float:
    """Estimate the microseconds of a cut of `tuned`."""
    spread = given["epilogue"].spread if given["epilogue"] else 1
    return modelled(Plan(**cut), given["c"], given["a"].shape[-1], given["dtype"], launches.sms_here(), spread)


@cute.autotune(_choices, key=_matter, cost=_cost, makes_launch=True, keep=16)
def tuned(a: Any, b: Any, c: Any, dtype: Any, epilogue: Epilogue | None = None, c_dtype: Any = None,
          tile_n: int = 256, sharers: int = 2, parts: int = 1, splits: int = 1, turned: bool = False,
          stages: int = 0, slots: int = 0, tail: bool = False, kept: int = 0) -> Any:  # fmt: skip
    """Prepare a launch, cut as measurements find best; `tuned.tune(a, b, c, dtype)` shows them. a, b, c, dtype,
    epilogue, c_dtype: as of `arguments`. The others: those of a Plan."""
    cut = Plan(tile_n, sharers, parts, splits, turned, stages, slots, tail, kept)
    return launches.launch_of(a, b, c, dtype, cut, epilogue, c_dtype)
