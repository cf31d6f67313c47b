# SPDX-License-Identifier: Apache-2.0
"""The form of attention's backward kernel on Blackwell when it is compiled, how tiles lie in shared memory and in
tensor memory, and how they are multiplied."""

from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from numba_cute.seam import frozen
from numba_cute.utils import sm100

from .backward_tiles import rows_of
from .plan import Options

TILE = 128  # keys of a CTA, and queries of a tile
HALF = TILE // 2  # queries of a warpgroup that computes
PIECE = 32  # columns of dQ that leave at once
SLOTS = 2  # of such pieces in shared memory
HEAD_DIMS = 64, 128
"""Head dimensions, of all tensors, that the kernel takes."""

KNOWN = {"scale", "left", "right", "score", "mask", "block", "most_queries", "splits"}
"""The options that the kernel has; those of the forward pass alone say how it cuts its problem."""


class Form(NamedTuple):
    """Hold the constants of the kernel.

    dtype: of all tensors. d: the head dimension. left, right: whether a query's window of keys ends on that side.
    score: what becomes of a score, or None. mask: says which keys a query sees, or None. block: queries and keys of the
    blocks of which lists say that they are visited, multiples of a tile's, or None. bounded: whether lists may name
    tiles that there are not, or that no window sees.
    """

    dtype: cute.DType
    d: int
    left: bool = False
    right: bool = False
    score: Any = None
    mask: Any = None
    block: tuple[int, int] | None = None
    bounded: bool = False

    @property
    def stages(self) -> tuple[int, int]:
        """Tiles of Q, and of dO, in shared memory."""
        return 2, 2 if self.d <= 64 else 1

    @property
    def taken(self) -> int:
        """Pieces of dQ that a thread takes from tensor memory at once: all, so that its columns are free the sooner,
        where no function is asked of scores, which would need the registers."""
        return 2 if self.score is not None or self.mask is not None else self.d // PIECE

    @property
    def registers(self) -> tuple[int, int, int]:
        """Return the registers of a thread that loads or multiplies, of one that adds up dQ, and of one that
        computes."""
        return {2: (64, 104, 168), 4: (64, 160, 144)}[self.taken]

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of Q, K, V or dO."""
        return TILE * self.d * self.dtype.width // 8

    @property
    def smem(self) -> int:
        """Bytes of shared memory but for barriers."""
        tiles = (2 + sum(self.stages)) * self.tile_bytes + TILE * TILE * self.dtype.width // 8
        return tiles + 4 * (SLOTS * TILE * PIECE + self.stages[0] * 2 * TILE)


class Columns(NamedTuple):
    """Say where things begin in tensor memory, in columns of 128 words. s: S^T, and P^T in its place. dp: dP^T, and
    dS^T in its place. whole: of all that are allocated."""

    s: int
    dp: int
    dv: int
    dk: int
    dq: int
    whole: int


def columns_of(form: Form) -> Columns:
    """Give dQ columns of its own where there are such; else it has those of dP, of which dS was made."""
    sums = 2 * TILE
    own = sums + 3 * form.d <= 512
    return Columns(0, TILE, sums, sums + form.d, sums + 2 * form.d if own else TILE, 512)


class Multiplies(NamedTuple):
    """Hold the tiled MMAs. scores: of S^T = K Q^T and dP^T = V dO^T. sums: of dV = P^T dO and dK = dS^T Q, whose A is
    in tensor memory. back: of dQ = dS K."""

    scores: Any
    sums: Any
    back: Any


def multiplies(form: Form) -> Multiplies:
    """Give the tiled MMAs of a form."""
    K, MN, one = OperandMajorMode.K, OperandMajorMode.MN, CtaGroup.ONE
    make, shape = sm100.make_trivial_tiled_mma, (TILE, form.d)
    return Multiplies(
        make(form.dtype, K, K, cute.Float32, one, (TILE, TILE)),
        make(form.dtype, K, MN, cute.Float32, one, shape, OperandSource.TMEM),
        make(form.dtype, MN, MN, cute.Float32, one, shape),
    )


@frozen
class Matrices:
    """Describe shared memory. q, do, kv, ds: as TMA, or threads, fill it: (rows, columns, stages), of dS (keys,
    queries). a_rows: K or V as A of the scores. b_q, b_do: Q or dO as B of the scores. t_q, t_do: the same as B of the
    sums. t_k: K as B of dQ. a_ds: dS as A of dQ."""

    q: Any
    do: Any
    kv: Any
    ds: Any
    a_rows: Any
    b_q: Any
    b_do: Any
    t_q: Any
    t_do: Any
    t_k: Any
    a_ds: Any


def matrices(form: Form) -> Matrices:
    """Give the layouts of shared memory. A tile lies the same for all who read it, along d or along rows."""
    dtype, d, (q, do) = form.dtype, form.d, form.stages
    scores, sums, back = multiplies(form)
    of_scores, of_sums = (TILE, TILE, d), (TILE, d, TILE)
    b = sm100.make_smem_layout_b
    return Matrices(
        rows_of(dtype, TILE, d, q), rows_of(dtype, TILE, d, do), rows_of(dtype, TILE, d), rows_of(dtype, TILE, TILE),
        sm100.make_smem_layout_a(scores, of_scores, dtype, 1).outer,
        b(scores, of_scores, dtype, q).outer, b(scores, of_scores, dtype, do).outer,
        b(sums, of_sums, dtype, q).outer, b(sums, of_sums, dtype, do).outer,
        b(back, of_sums, dtype, 1).outer, sm100.make_smem_layout_a(back, of_sums, dtype, 1).outer,
    )  # fmt: skip


def operand_layout(tiled_mma: Any) -> Any:
    """Say how P^T or dS^T, (keys, queries), lies as A in tensor memory: that of a warpgroup's half of the queries where
    its scores were, so that none writes where another still reads."""
    (lanes, inner), _, _ = tiled_mma.make_fragment_A(tiled_mma.partition_shape_A((TILE, TILE))).layout.stride
    return cute.make_layout(((TILE, 16), 1, (HALF // 16, 2)), stride=((lanes, inner), 0, (16, 2 * HALF)))


def sums_layout(d: int) -> Any:
    """Say how a tile of the sums of dQ lies in memory, (d, queries): as threads, which have a query each, hand it on
    by vectors of four."""
    return cute.make_layout(((4, d // 4), TILE), stride=((1, 4 * TILE), 4))


def check(options: Options, dims: tuple[int, int], deterministic: bool) -> None:
    """Refuse what the kernel has not, with CuteError. dims: the head dimensions of q and k, and of v."""
    if dims not in {(d, d) for d in HEAD_DIMS}:
        raise CuteError(
            f"attention_backward: the kernel for Blackwell GPUs has head dimensions of 64 or 128, alike of q, k and v, "
            f"and not yet {dims[0]} and {dims[1]}: use PyTorch's own there"
        )
    for name, given in zip(options._fields, options):
        if given is not None and name not in KNOWN:
            raise CuteError(
                f"attention_backward: {name} is given, which the kernel for Blackwell GPUs does not support "
                "yet: leave it out"
            )
    if deterministic:
        raise CuteError(
            "attention_backward: deterministic is True, and the kernel for Blackwell GPUs adds up the parts of dq in "
            "no order: leave it out"
        )
