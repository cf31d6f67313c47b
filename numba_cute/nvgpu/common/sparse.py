# SPDX-License-Identifier: Apache-2.0
"""Structured sparse matrices for mma.sp and wgmma.mma_async.sp, made on the host."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...isa.facts import sparse
from ...seam import CuteError

__all__ = ["compress"]


class SparseOp:
    """Base of the operations with a structured sparse A: half of it is stored along K."""

    sparsity: ClassVar[int] = 2
    stored_rows: ClassVar[int]
    """The rows of A that one instruction takes."""
    shape_mnk: Any
    selector: Any

    @property
    def stored_bits(self) -> int:
        """The width of a stored element of A."""
        raise NotImplementedError

    def metadata_places(self) -> tuple[Any, Any, tuple[int, ...]]:
        """Give which of an instruction's words holds the metadata of each chunk, from which bit on, and the shape of
        the words: by default one for each thread."""
        lane, bit = sparse.places(self.stored_rows, self.shape_mnk[2], self.stored_bits, self.selector)
        return lane, bit, (2 * self.stored_rows,)


def compress(op: SparseOp, a: ArrayLike) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Give the stored half of a sparse matrix and its metadata, as the sparse operation `op` takes them. On the host.

    a: a NumPy array (M, K), multiples of the operation's m and k, in which of each 4 elements along K 2 at most are
    other than zero (tf32: 1 of 2; 4-bit integers, one to an array element: 2 of each 4 pairs). Gives the values (M, K
    / 2), and words (M / m, K / k, threads): thread t of the instruction at (i, j) takes words[i, j, t], see
    `thr_mma.partition_E`; of tcgen05.mma (M / m, K / k, CTAs, 128, columns), as they lie in tensor memory. Raises
    CuteError for an operation that is not sparse, another shape, and more elements than can be stored. PTX ISA,
    "Sparse matrix storage".

    >>> op = nvgpu.warp.MmaF16BF16SparseOp(cute.Float16, cute.Float32)
    >>> kept, metadata = nvgpu.compress(op, np.tile([1, 0, 2, 0], (16, 8)).astype(np.float16))
    >>> kept.shape, kept[0, :4]
    ((16, 16), array([1., 2., 1., 2.], dtype=float16))
    """
    if not isinstance(op, SparseOp):
        raise CuteError(f"compress: op {op!r} is not a sparse operation such as warp.MmaF16BF16SparseOp")
    rows, k = op.stored_rows, op.shape_mnk[2]
    a = np.asarray(a)
    if a.ndim != 2 or a.shape[0] % rows or a.shape[1] % k:
        raise CuteError(f"compress: a has shape {a.shape}; it must be (M, K), multiples of ({rows}, {k})")
    word, bit, shape = op.metadata_places()
    kept, words = sparse.compress(a, rows, k, op.stored_bits, (word, bit), int(np.prod(shape)))
    return kept, words.reshape(*words.shape[:2], *shape)
