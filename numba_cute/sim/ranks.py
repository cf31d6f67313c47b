# SPDX-License-Identifier: Apache-2.0
"""Arguments of a launch on several GPUs: those that differ by rank, and memory that all ranks reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import DType
from ..seam import CuteError
from ..seam.ground.naming import described
from .given import integer
from .hardware.symmetric import Symmetric

MOST = 1024
Given = list[tuple[Any, ...]]
"""The arguments of each rank."""
NO_PROOF = (
    "prove: a proof speaks of the clusters of one GPU: what ranks do to each other by flags in memory that they poll "
    "is not part of it; run it with seeds (simulate(kernel, ranks=…, seed=1)), or explore()"
)


class PerRank:
    """An argument that differs by rank, of a launch `simulate(kernel, ranks=n)`: the value of each, rank 0's first.

    values: one for each rank: numbers, arrays (each the memory of that rank alone, or its part of symmetric memory),
    tensors, atoms and tuples of these. CuteError: none is given; and, of a launch, another number of values than ranks.

    >>> def kernel(x, rank):
    ...     x[arch.thread_idx()[0]] = rank
    >>> x, y = np.zeros(2, np.int32), np.zeros(2, np.int32)
    >>> cute.simulate(kernel, ranks=2)[1, 2](cute.sim.PerRank(x, y), cute.sim.PerRank(0, 1))
    >>> x, y
    (array([0, 0], dtype=int32), array([1, 1], dtype=int32))
    """

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        if not values:
            raise CuteError("PerRank: give the value of each rank, rank 0's first")
        self.values = values

    def __repr__(self) -> str:
        return f"PerRank({', '.join(map(described, self.values))})"


def symmetric(shape: int | Sequence[int], dtype: Any, ranks: int, empty: bool = False) -> Symmetric:
    """Make symmetric memory, of zeros: as much on each of `ranks` simulated GPUs, which every rank may access.

    shape: of each rank's part. dtype: an element type of this library's, or NumPy's. empty: fill it with NaNs, which
    kernels are to write: a read of what no rank has written is an UninitializedReadError. CuteError: a shape or a
    number of ranks that is none, and elements narrower than a byte. `.arrays[r]` is rank r's memory as NumPy has it,
    `.peers` all of it, with the rank as the last mode, and `cute.runtime.from_symmetric(x)` its tensor.

    >>> def kernel(mine, peers, rank):
    ...     peers[arch.thread_idx()[0], (rank + 1) % 2] = rank  # the other's memory
    >>> x = cute.sim.symmetric(2, cute.Int32, 2)
    >>> peers = cute.runtime.from_dlpack(x.peers)
    >>> cute.simulate(kernel, ranks=2)[1, 2](cute.sim.PerRank(*x.arrays), peers, cute.sim.PerRank(0, 1))
    >>> x.arrays[0]
    array([1, 1], dtype=int32)
    """
    extents = tuple(map(integer, shape if isinstance(shape, (tuple, list)) else (shape,)))
    if not extents or any(n is None or n < 1 for n in extents):
        raise CuteError(f"symmetric: shape {shape!r} must be one or more positive integers")
    if isinstance(dtype, DType) and dtype.width < 8:
        raise CuteError(f"symmetric: elements of {dtype} are narrower than a byte: make bytes, and tensors of them")
    try:
        element = np.dtype(dtype.numpy if isinstance(dtype, DType) else dtype)
    except TypeError:
        raise CuteError(f"symmetric: dtype {dtype!r} is not an element type") from None
    return Symmetric(extents, element, number_of(ranks, "symmetric"), bool(empty))  # type: ignore[arg-type]


def number_of(ranks: Any, what: str) -> int:
    """Return a number of ranks. CuteError: it is none."""
    found = integer(ranks)
    if found is None or not 1 <= found <= MOST:
        raise CuteError(f"{what}: ranks {ranks!r}: give the number of GPUs, from 1 to {MOST}")
    return found


def of_ranks(args: Sequence[Any], named: dict[str, Any], ranks: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the arguments of each rank: those by place, and by name. CuteError: values for another number of ranks."""
    return [
        (tuple(_of(a, r, ranks) for a in args), {k: _of(a, r, ranks) for k, a in named.items()}) for r in range(ranks)
    ]


def _of(value: Any, rank: int, ranks: int) -> Any:
    """Return what a rank has of an argument."""
    if isinstance(value, PerRank):
        if len(value.values) != ranks:
            raise CuteError(
                f"simulate: {value!r} has values of {len(value.values)} ranks, but the launch is of {ranks}: give "
                f"ranks={len(value.values)}, or as many values"
            )
        return value.values[rank]
    if isinstance(value, Symmetric):
        raise CuteError(
            f"simulate: {value!r} cannot be an argument itself: give cute.runtime.from_symmetric(x), the "
            f"memory of all ranks, or cute.sim.PerRank(*x.arrays), each rank's own"
        )
    if isinstance(value, tuple) and any(isinstance(v, (PerRank, Symmetric, tuple)) for v in value):
        made = [_of(v, rank, ranks) for v in value]
        same = all(a is b for a, b in zip(made, value))
        return value if same else getattr(type(value), "_make", tuple)(made)
    return value
