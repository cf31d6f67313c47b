# SPDX-License-Identifier: Apache-2.0
"""Describe a kernel of attention by warps: the constants of its form, the layouts of its tiles, and its multiplies."""

from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync, warp

from ..gemm.plan import smem_layout

VECTOR = 8  # elements of 16 bits that a thread copies at once


class Form(NamedTuple):
    """Hold the constants of a kernel.

    dtype: of Q, K, V and O. d, dv: head dimensions of Q and K, and of V and O. group: query heads that share the keys
    and values of one. tile_m, tile_n: of the tile that a CTA keeps, and of the blocks that pass by it: queries and
    keys, or of the gradients of keys, keys and queries. rows: of the tile that a warp has. ctas: that share an SM.
    left, right: whether a query's window of keys ends on that side. pack: query heads of a group whose rows lie side by
    side in a tile, all, up to a power of two, or 1. page: keys of a page, 0 if keys and values are not paged. score:
    what becomes of a score, or None. mask: says which keys a query sees, or None. block: queries and keys of the blocks
    of which lists say that they are visited, multiples of a tile's, or None. bounded: whether lists may name blocks
    that there are not, or that no window sees.
    """

    dtype: cute.DType
    d: int
    dv: int
    group: int
    tile_m: int
    tile_n: int
    rows: int = 16
    ctas: int = 1
    left: bool = False
    right: bool = False
    pack: int = 1
    page: int = 0
    score: Any = None
    mask: Any = None
    block: tuple[int, int] | None = None
    bounded: bool = False

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return 32 * self.tile_m // self.rows

    @property
    def smem(self) -> int:
        """Bytes of shared memory for the tiles of the forward pass."""
        return 2 * (self.tile_m * self.d + self.tile_n * (self.d + self.dv))


def tile_layout(dtype: Any, rows: int, columns: int, *stages: int) -> Any:
    """Give shared memory's layout of a tile, or of some, whose rows are contiguous, swizzled."""
    return smem_layout(dtype, 1, rows, columns, *stages)


def multiply_of(form: Form) -> Any:
    """Give the tiled MMA of a CTA: a warp has rows that lie together, and all columns."""
    op = warp.MmaF16BF16Op(form.dtype, cute.Float32, (16, 8, 16))
    warps, blocks = form.tile_m // form.rows, form.rows // 16
    rows = cute.make_layout((16, warps, blocks), stride=(1, form.rows, 16))
    return cute.make_tiled_mma(op, (warps, 1, 1), (rows, 16, 16))


def fragment_copies(form: Form, tiled_mma: Any) -> tuple[Any, Any, Any]:
    """Give the tiled copies that take fragments out of shared memory: of A, of B whose rows are contiguous along K, and
    of B whose columns are."""
    along, across = (cute.make_copy_atom(warp.LdMatrix8x8x16bOp(t, 4), form.dtype) for t in (False, True))
    return (
        cute.make_tiled_copy_A(along, tiled_mma), cute.make_tiled_copy_B(along, tiled_mma),
        cute.make_tiled_copy_B(across, tiled_mma),
    )  # fmt: skip


def rows_copy(form: Form, columns: int) -> tuple[Any, int]:
    """Give the tiled copy by which a CTA brings rows of so many elements, and how many rows at once. As many threads as
    divide a row, up to 8, have its vectors, the others are side by side."""
    across = next(n for n in (8, 4, 2, 1) if columns // VECTOR % n == 0)
    down = form.threads // across
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL), form.dtype, 16 * VECTOR)
    threads = cute.make_layout((down, across), stride=(across, 1))
    return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, VECTOR))), down
