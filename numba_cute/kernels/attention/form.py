# SPDX-License-Identifier: Apache-2.0
"""The form of the attention forward when it is compiled, and by it, how tiles lie and are multiplied."""

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import warpgroup

from . import softmax


class Form(NamedTuple):
    """The static parameters of the kernel.

    dtype: of Q, K, V and O; of e4m3, O is bfloat16, and V lies as `values` has it. d, dv: head dimensions of Q and
    K, and of V and O. group: query heads that share the keys and values of one. tile_m, tile_n: queries and keys of
    a tile. left, right: whether a query's window of keys ends on that side. turns: whether the warpgroups take
    turns in S = Q K^T. draws: whether a CTA that is done draws the next tile from a counter, or takes every so
    manieth. pack: query heads of a group whose rows lie side by side in a tile, all, up to a power of two, or 1.
    page: keys of a page, 0 if keys and values are not paged. score: what becomes of a score, or None. q_stages:
    tiles of Q in shared memory. cluster: CTAs, of neighbouring tiles, that share their keys and values: each
    fetches a part of a block for all. Their queries must see the same blocks. stages: blocks of K, and of V, in
    shared memory. mask: says which keys a query sees, or None. block: queries and keys of the blocks of which lists say
    that they are visited, multiples of a tile's, or None. bounded: whether lists may name blocks of keys that there are
    not, or that no window sees. ring: whether keys are those of several GPUs, which a walk through them brings
    (`kernels/distributed/keys.py`) and says which blocks are visited, in the place of lists. lazy: whether rows' maxima
    are found only in blocks before which a row may have seen no key; in others exponentials are relative to the maximum
    so far, and where they grow too much a warp computes its scores again (`again.py`). Of scores as they are, and of
    BFloat16, whose exponents have room for it.
    """

    dtype: cute.DType
    d: int
    dv: int
    group: int
    tile_m: int
    tile_n: int
    left: bool = False
    right: bool = False
    turns: bool = True
    draws: bool = False
    pack: int = 1
    page: int = 0
    score: Any = None
    q_stages: int = 1
    cluster: int = 1
    stages: int = 2
    mask: Any = None
    block: tuple[int, int] | None = None
    bounded: bool = False
    ring: bool = False
    lazy: bool = False

    @property
    def groups(self):
        return self.tile_m // 64

    @property
    def q_rows(self):
        """Rows of a stage of Q."""
        return 64

    @property
    def threads(self):
        return 128 * (self.groups + 1)

    @property
    def registers(self):
        """Return the registers of a thread of the producer's warpgroup, and of the others."""
        # who reads lists, or many pages, needs more, and who brings keys most
        most = 2 if self.ring else (self.block is not None) + by_lanes(self)
        of_two = ((24, 240), (40, 232), (56, 224))[most]
        return {1: (128, 240), 2: of_two, 3: (32, 160)}[self.groups]

    @property
    def narrow(self):
        """Say whether elements have 8 bits."""
        return self.dtype.width == 8

    @property
    def result(self):
        """The type of O."""
        return cute.BFloat16 if self.narrow else self.dtype

    @property
    def room(self):
        """Return the power of two to which P may grow before its maxima are raised, and the one that it is multiplied
        with from the start: so that more of it is within e4m3's range, or that it has room to grow."""
        if self.narrow:
            return 2.0, 6.0
        return softmax.GROWN, softmax.BELOW if self.lazy else 0.0

    @property
    def chunk(self):
        """Keys that one copy brings."""
        return math.gcd(self.page, self.tile_n) if self.page else self.tile_n


def by_lanes(form):
    """Say whether a block of keys lies in so many pieces that each lane of the warp that copies them finds one: all of
    them fit in no lane's registers. form: one, or an `umma_form.Form`."""
    return form.tile_n // form.chunk > 4


def multiplies(form):
    """The tiled MMAs of S = Q K^T and of O = P V, of one warpgroup."""
    smem, rmem = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
    K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
    scores: Any
    values: Any
    if form.narrow:
        scores = warpgroup.MmaF8Op(form.dtype, form.dtype, cute.Float32, (64, form.tile_n, 32), smem)
        values = warpgroup.MmaF8Op(form.dtype, form.dtype, cute.Float32, (64, form.dv, 32), rmem)
    else:
        scores = warpgroup.MmaF16BF16Op(form.dtype, cute.Float32, (64, form.tile_n, 16), smem, K, K)
        values = warpgroup.MmaF16BF16Op(form.dtype, cute.Float32, (64, form.dv, 16), rmem, K, MN)
    return cute.make_tiled_mma(scores, (1, 1, 1)), cute.make_tiled_mma(values, (1, 1, 1))


def atoms(form):
    """The swizzled pieces of which Q and K, and V, are made up in shared memory: their rows have up to 128 bytes."""
    kind = warpgroup.SmemLayoutAtomKind
    along = {128: kind.K_SW128, 64: kind.K_SW64, 32: kind.K_SW32}
    if not form.narrow:
        of_values = kind.MN_SW128
    else:
        of_values = along[math.gcd(form.tile_n, 128)]
    of_keys = along[math.gcd(form.d * form.dtype.width // 8, 128)]
    return tuple(warpgroup.make_smem_layout_atom(k, form.dtype) for k in (of_keys, of_values))


def layouts(form):
    """The layouts of Q, K and V in shared memory, swizzled. A stage of Q is a warpgroup's."""
    rows, columns = atoms(form)
    q = cute.tile_to_shape(rows, (64, form.d, form.groups * form.q_stages), (0, 1, 2))
    k = cute.tile_to_shape(rows, (form.tile_n, form.d, form.stages), (0, 1, 2))
    v = cute.tile_to_shape(columns, (form.dv, form.tile_n, form.stages), (0, 1, 2) if form.narrow else (1, 0, 2))
    return q, k, v


def order_of_p(form):
    """The layout of S's registers in the order of P's. Of 16 bits it is S's own, None. Of 8 bits a thread has four keys
    side by side in P, which are two and two in S: V's keys lie in S's order."""
    if not form.narrow:
        return None
    return cute.make_layout((((2, 2), 2, 2), 1, form.tile_n // 32), stride=(((1, 4), 2, 8), 0, 16))
