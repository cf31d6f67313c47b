# SPDX-License-Identifier: Apache-2.0
"""Puzzle 4. Tiles.

Cut a row-major 8 x 8 matrix into tiles of 2 rows and 4 columns. Tile 1 is the one below tile 0.
"""

import numba_cute as cute

matrix = cute.make_layout((8, 8), stride=(8, 1))
tiles = cute.zipped_divide(matrix, ___)

first = [tiles((place, 0)) for place in range(8)]
assert first == [0, 8, 1, 9, 2, 10, 3, 11], f"tile 0 has {first}"
assert tiles((0, 1)) == 16 and cute.size(tiles, mode=[1]) == 8

print("right")
