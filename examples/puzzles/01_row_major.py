# SPDX-License-Identifier: Apache-2.0
"""Puzzle 1. NumPy's order.

A 4 x 8 matrix lies in memory row by row, as NumPy has it. Which strides does its layout have?
"""

import numpy as np

import numba_cute as cute

layout = cute.make_layout((4, 8), stride=___)

x = np.arange(32).reshape(4, 8)
for i in range(4):
    for j in range(8):
        assert layout((i, j)) == x[i, j], f"({i}, {j}) is at {layout((i, j))}, and should be at {x[i, j]}"

print("right")
