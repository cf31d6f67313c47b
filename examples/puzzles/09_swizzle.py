# SPDX-License-Identifier: Apache-2.0
"""Puzzle 9. A swizzle.

The same without padding: S<b,m,s> XORs b bits of a number, from bit m + s on, into those from bit m on. The number
is 32 * row + column. Choose (b, m, s) so that each column has 32 banks.
"""

import numpy as np

import numba_cute as cute

swizzled = cute.make_composed_layout(cute.make_swizzle(*___), 0, cute.make_layout((32, 32), stride=(32, 1)))

assert np.unique([swizzled(i) for i in range(1024)]).size == 1024
for column in range(32):
    banks = {swizzled((row, column)) % 32 for row in range(32)}
    assert len(banks) == 32, f"column {column} has {len(banks)} banks"

print("right")
