# SPDX-License-Identifier: Apache-2.0
"""The form of Blackwell's attention forward when it is compiled, and by it, how tiles lie and are multiplied."""

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import CtaGroup, tcgen05
from numba_cute.nvgpu.tcgen05 import OperandMajorMode, OperandSource
from numba_cute.utils import sm100

ROWS = 128  # of a tile of queries that one warpgroup has: lanes of tensor memory
COLUMNS = 512  # of tensor memory


class Form(NamedTuple):
    """Hold what the kernel knows when it is compiled.

    groups: tiles of 128 queries that a CTA has side by side, 1 or 2, each with a warpgroup for its softmax. stages_k,
    stages_v: blocks of K, and of V, in shared memory. All others as of `form.Form`.
    """

    dtype: cute.DType
    d: int
    dv: int
    group: int
    groups: int
    tile_n: int
    left: bool = False
    right: bool = False
    draws: bool = True
    pack: int = 1
    page: int = 0
    score: Any = None
    q_stages: int = 1
    stages_k: int = 2
    stages_v: int = 2
    mask: Any = None
    block: tuple[int, int] | None = None
    bounded: bool = False

    @property
    def cluster(self) -> int:
        """CTAs that share keys and values."""
        return 1

    @property
    def narrow(self) -> bool:
        """Say whether elements have 8 bits."""
        return False

    @property
    def q_rows(self) -> int:
        """Rows of a stage of Q."""
        return ROWS

    @property
    def tile_m(self) -> int:
        """Rows of the tile that a CTA has."""
        return ROWS * self.groups

    @property
    def threads(self) -> int:
        """Threads of a CTA: a warpgroup for each softmax, one for corrections, and one for all else."""
        return 128 * (self.groups + 2)

    @property
    def registers(self) -> tuple[int, int, int]:
        """Return the registers of a thread: of softmax, of correction, and of the others."""
        return {1: (240, 168, 96), 2: (192, 72, 56)}[self.groups]

    @property
    def chunk(self) -> int:
        """Keys that one copy brings."""
        return math.gcd(self.page, self.tile_n) if self.page else self.tile_n

    @property
    def columns(self) -> int:
        """Columns of tensor memory: S and O of each group. P lies where its S was."""
        return self.groups * (self.tile_n + self.dv)

    @property
    def smem(self) -> int:
        """Bytes of shared memory for tiles."""
        of_keys = self.tile_n * (self.stages_k * self.d + self.stages_v * self.dv)
        return self.dtype.width // 8 * (self.q_stages * self.tile_m * self.d + of_keys)


def multiplies(form: Form) -> tuple[Any, Any]:
    """Give the tiled MMAs of S = Q K^T and of O = P V, whose P is in tensor memory, of one tile of queries."""
    K, MN = OperandMajorMode.K, OperandMajorMode.MN
    one, types = CtaGroup.ONE, (form.dtype, form.dtype, K)
    scores = sm100.make_trivial_tiled_mma(*types, K, cute.Float32, one, (ROWS, form.tile_n))
    values = sm100.make_trivial_tiled_mma(*types, MN, cute.Float32, one, (ROWS, form.dv), OperandSource.TMEM)
    return scores, values


def atoms(form: Form) -> tuple[Any, Any]:
    """Give the swizzled pieces of which Q and K, and V, are made up in shared memory."""
    along, across = (math.gcd(n * form.dtype.width // 8, 128) for n in (form.d, form.dv))
    kinds = tcgen05.SmemLayoutAtomKind
    return (
        tcgen05.make_smem_layout_atom(kinds[f"K_SW{along}"], form.dtype),
        tcgen05.make_smem_layout_atom(kinds[f"MN_SW{across}"], form.dtype),
    )


def lies(form: Form) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Give the layouts of Q, K and V in shared memory, as TMA fills them, a stage of Q for each tile; and the same as
    the matrix unit takes them."""
    (rows, columns), (scores, values) = atoms(form), multiplies(form)
    extents = (ROWS, form.d), (form.tile_n, form.d), (form.dv, form.tile_n)
    shapes = (
        scores.partition_shape_A(extents[0]), scores.partition_shape_B(extents[1]), values.partition_shape_B(extents[2])
    )  # fmt: skip
    stages, of, order = (
        (form.groups * form.q_stages, form.stages_k, form.stages_v), (rows, rows, columns),
        ((0, 1, 2), (0, 1, 2), (1, 0, 2)),
    )  # fmt: skip
    filled = [cute.tile_to_shape(a, (*e, n), o) for a, e, n, o in zip(of, extents, stages, order)]
    taken = [tcgen05.tile_to_mma_shape(a, (*s, n), o) for a, s, n, o in zip(of, shapes, stages, order)]
    return tuple(filled), tuple(taken)


def sums_of(form: Form) -> tuple[Any, Any, Any, Any]:
    """Give the layouts in tensor memory of S, of P as an operand, of P row by row, and of O."""
    scores, values = multiplies(form)
    s = scores.make_fragment_C(scores.partition_shape_C((ROWS, form.tile_n))).layout
    p = values.make_fragment_A(values.partition_shape_A((ROWS, form.tile_n))).layout
    o = values.make_fragment_C(values.partition_shape_C((ROWS, form.dv))).layout
    rows, columns = cute.get(p, mode=[0, 0]), cute.get(p, mode=[0, 1])
    return s, p, cute.make_layout((rows.shape, form.tile_n), stride=(rows.stride, columns.stride)), o
