# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR's names for a thread's part of a copy or product, as functions of the tiled operation."""

from __future__ import annotations

from typing import Any

from ..seam import CuteError, traced
from ..tensor.tensor import Tensor
from .copy_atom import ThrCopy, TiledCopy
from .mma_atom import ThrMma, TiledMma

__all__ = ["mma_make_fragment_a", "mma_make_fragment_b", "mma_make_fragment_c", "partition_d", "partition_s"]


def _mma(mma: Any, what: str) -> Any:
    if not isinstance(mma, (TiledMma, ThrMma)):
        raise CuteError(f"{what}: mma {mma!r} must be a tiled MMA or a thread's slice of one: make_tiled_mma(…)")
    return mma


def _slice(copy: Any, thread: Any, what: str) -> ThrCopy:
    if isinstance(copy, TiledCopy) and thread is not None:
        return copy.get_slice(thread)
    if not isinstance(copy, ThrCopy) or thread is not None:
        raise CuteError(
            f"{what}: copy={copy!r}, thread={thread!r}: give a thread's slice (tiled_copy.get_slice(thread)) alone, or "
            "a tiled copy and the thread"
        )
    return copy


@traced
def mma_make_fragment_a(mma: Any, tensor: Any) -> Tensor:
    """Make the fragment of A that `mma`, a tiled MMA or a thread's slice of one, multiplies: registers, or descriptors
    of shared memory. tensor: the thread's part of A, or its shape. Same as `mma.make_fragment_A(tensor)`. Raises
    CuteError for what is not an MMA. PTX: none, any target.

    >>> tiled = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))
    >>> def kernel():
    ...     print(cute.size(cute.mma_make_fragment_a(tiled, tiled.partition_shape_A((64, 32)))))
    >>> cute.simulate(kernel)[1, 1]()
    32
    """
    return _mma(mma, "mma_make_fragment_a").make_fragment_A(tensor)  # type: ignore[no-any-return]


@traced
def mma_make_fragment_b(mma: Any, tensor: Any) -> Tensor:
    """Make the fragment of B that `mma`, a tiled MMA or a thread's slice of one, multiplies: registers, or descriptors
    of shared memory. tensor: the thread's part of B, or its shape. Same as `mma.make_fragment_B(tensor)`. Raises
    CuteError for what is not an MMA. PTX: none, any target.

    >>> tiled = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))
    >>> def kernel():
    ...     print(cute.mma_make_fragment_b(tiled, tiled.partition_shape_B((64, 32))).shape)
    >>> cute.simulate(kernel)[1, 1]()
    ((2, 2), 4, 2)
    """
    return _mma(mma, "mma_make_fragment_b").make_fragment_B(tensor)  # type: ignore[no-any-return]


@traced
def mma_make_fragment_c(mma: Any, tensor: Any) -> Tensor:
    """Make the accumulator of `mma`, a tiled MMA or a thread's slice of one. tensor: the thread's part of C, or its
    shape. Same as `mma.make_fragment_C(tensor)`. Raises CuteError for what is not an MMA. PTX: none, any target.

    >>> tiled = cute.make_tiled_mma(nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))
    >>> def kernel():
    ...     acc = cute.mma_make_fragment_c(tiled, tiled.partition_shape_C((64, 64)))
    ...     print(acc.shape, acc.element_type)
    >>> cute.simulate(kernel)[1, 1]()
    ((2, 2), 2, 4) Float32
    """
    return _mma(mma, "mma_make_fragment_c").make_fragment_C(tensor)  # type: ignore[no-any-return]


@traced
def partition_s(copy: Any, src: Tensor, thread: Any = None) -> Tensor:
    """Take a thread's part of the source `src` of a tiled copy. copy: the thread's slice of it, or the tiled copy with
    the number `thread`. Same as `copy.get_slice(thread).partition_S(src)`. Raises CuteError for others. PTX: none, any
    target.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    >>> cute.partition_s(tiled, cute.make_identity_tensor(256), 1)
    Tensor(4, ((4,1),2):((1,0),128))
    """
    return _slice(copy, thread, "partition_s").partition_S(src)


@traced
def partition_d(copy: Any, dst: Tensor, thread: Any = None) -> Tensor:
    """Take a thread's part of the destination `dst` of a tiled copy. copy: the thread's slice of it, or the tiled copy
    with the number `thread`. Same as `copy.get_slice(thread).partition_D(dst)`. Raises CuteError for others. PTX: none,
    any target.

    >>> atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    >>> tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(4))
    >>> cute.partition_d(tiled.get_slice(1), cute.make_identity_tensor(256))
    Tensor(4, ((4,1),2):((1,0),128))
    """
    return _slice(copy, thread, "partition_d").partition_D(dst)
