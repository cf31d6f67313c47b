# SPDX-License-Identifier: Apache-2.0
"""Make numbers of 4 bits, packed as `pack.py` does, 16 bits wide, in registers: less their zero points, times their
scales. For a digit d, the bits 0x4300 | d are the bfloat16 128 + d (0x6400 | d the float16 1024 + d), so two digits of
a word take one lop3, one exact subtraction and one multiplication."""

import numba_cute as cute
from numba_cute import arch
from numba_cute.seam import traced

from .pack import BASE

MINUS_ZERO, MASK = 0x80008000, 0x000F000F


@traced
def two_of(word, pair, factors, dtype, mask, subtract):
    """Give two numbers of a word as `dtype`, next to each other along K: those of a pair, as of `pack.words_of`.

    factors: their (zero point + base, scale), each two times in a word. mask: as of `widen`. subtract: of two pairs."""
    multiply_add = arch.fma_packed_bf16x2 if dtype == cute.BFloat16 else arch.fma_packed_f16x2
    zero, scale = factors
    number = (word >> (4 * pair)) & mask | cute.Uint32(BASE[dtype.name] * 0x10001)
    return multiply_add(subtract(number, zero), scale, cute.Uint32(MINUS_ZERO))


@traced
def widen(wide, words, dtype, lower, upper, mask):
    """Write 64 by 64 numbers of four bits as `dtype` to `wide`, wgmma's fragment of this thread.

    words: four, each of a block of 16 of K. lower, upper: of each group of these the (zero point + base, scale), each
    two times in a word, of this thread's row, and of the one 8 below. mask: MASK, which stays in a register where it is
    not known.
    """
    subtract = arch.sub_packed_bf16x2 if dtype == cute.BFloat16 else arch.sub_packed_f16x2
    halves = cute.make_rmem_tensor((2, 16), cute.Uint16)
    for block in range(4):
        word = cute.Uint32(words[block])
        for pair in range(4):
            factors = (upper if pair % 2 else lower)[block * len(lower) // 4]
            made = two_of(word, pair, factors, dtype, mask, subtract)
            halves[0, 4 * block + pair], halves[1, 4 * block + pair] = cute.Uint16(made), cute.Uint16(made >> 16)
    wide.store(halves.load().bitcast(dtype).reshape(wide.shape))


@traced
def twice(x):
    """Put 16 bits into both halves of a word."""
    return cute.Uint32(x) * cute.Uint32(0x10001)


@traced
def factors_of(factors, row, stage, middle, groups, half):
    """Read the (zero point, scale) of each group of a row's half block. factors: (rows, of each group its kinds,
    stages); of one kind, they are scales, and the zero point is `middle`. groups: of a block."""
    kinds, first = cute.size(factors, mode=[1]) // groups, half * groups // 2
    each = range(first, first + max(groups // 2, 1))
    return tuple(factor_of(factors, row, at, stage, middle, kinds) for at in each)


@traced
def factor_of(factors, row, group, stage, middle, kinds):
    """Read the (zero point, scale) of a row's group, each two times in a word. factors, middle: as of `factors_of`."""
    scale = twice(factors[row, group * kinds, stage])
    return cute.Uint32(middle * 0x10001) if kinds == 1 else twice(factors[row, group * kinds + 1, stage]), scale
