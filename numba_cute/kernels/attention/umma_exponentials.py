# SPDX-License-Identifier: Apache-2.0
"""Exponentials of attention on Blackwell, whose tensor cores are twice as fast as Hopper's, and its exponentials not:
of some columns 2^x is a polynomial, on the units that add and multiply, in pairs, while the others take `ex2`.

2^x = 2^n 2^f, where n is the integer nearest to x, and f, of at most a half, is what is left. Of the sum of x and a
number whose last bit counts ones, the last bits are n, with the bias of an exponent; f goes through a polynomial of
degree 3, whose relative error is 7.5e-5 at most: P is rounded to 2^-9, or 2^-12 of its own.
"""

from numba import cuda

import numba_cute as cute
from numba_cute import arch

EACH = 5  # of the pairs of a row every so manieth goes through the polynomial: 3 of 16
ROUNDING, BIAS, LEAST = 1.5 * 2.0**23, 127, -127.0
POLYNOMIAL = 0.99992807, 0.69326098, 0.24261112, 0.05517168
"""The polynomial of 2^f, from -0.5 to 0.5, by ascending powers: the greatest relative error is the least that there
is."""


@cuda.jit
def powers(low, high):
    """Give 2^low and 2^high of two Float32, of at most 127, by a polynomial: 0 below 2^-126, NaN for NaN."""
    least = cute.Float32(LEAST)
    x = arch.fmax(low, least, nan=True), arch.fmax(high, least, nan=True)
    up = cute.Float32(ROUNDING + BIAS)
    raised = arch.add_packed_f32x2(x, (up, up))
    whole = arch.sub_packed_f32x2(raised, (up, up))
    f = arch.sub_packed_f32x2(x, whole)
    c0, c1, c2, c3 = (cute.Float32(c) for c in POLYNOMIAL)
    p = arch.fma_packed_f32x2(f, (c3, c3), (c2, c2))
    p = arch.fma_packed_f32x2(f, p, (c1, c1))
    p = arch.fma_packed_f32x2(f, p, (c0, c0))
    words = cute.make_rmem_tensor(2, cute.Float32)
    words[0], words[1] = raised[0], raised[1]
    bits = cute.recast_tensor(words, cute.Uint32)
    bits[0], bits[1] = bits[0] << 23, bits[1] << 23
    return arch.mul_packed_f32x2(p, (words[0], words[1]))


@cuda.jit
def exponentials(scores, highest, total, scale_log2):
    """Replace scores by exp2(scale_log2 * score - highest of the row), and add them to `total`. As of
    `softmax.raise_maxima`."""
    for r in cute.range_constexpr(2):
        by, less = cute.Float32(scale_log2), cute.Float32(-highest[r])
        low, high = cute.Float32(total[r]), cute.Float32(0)
        for i in cute.range_constexpr(cute.size(scores, mode=[1]) // 2):
            x, y = arch.fma_packed_f32x2((scores[r, 2 * i], scores[r, 2 * i + 1]), (by, by), (less, less))
            if cute.const_expr(i % EACH == EACH - 1):
                x, y = powers(x, y)
            else:
                x, y = cute.math.exp2(x, fastmath=True), cute.math.exp2(y, fastmath=True)
            scores[r, 2 * i], scores[r, 2 * i + 1] = x, y
            low, high = arch.add_packed_f32x2((low, high), (x, y))
        total[r] = low + high
