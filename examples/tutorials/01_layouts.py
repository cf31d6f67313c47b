# SPDX-License-Identifier: Apache-2.0
"""Layouts in pictures: the script of docs/tutorials."""

import numba_cute as cute


def show(layout):
    """The number at each coordinate of a layout of two modes."""
    print(layout)
    for i in range(cute.size(layout, mode=[0])):
        print(" ".join(f"{layout((i, j)):3}" for j in range(cute.size(layout, mode=[1]))))


show(cute.make_layout((4, 8)))
show(cute.make_layout((4, 8), stride=(8, 1)))


blocked = cute.make_layout((4, (4, 2)), stride=(4, (1, 16)))
show(blocked)


print(blocked((1, 6)), blocked((1, (2, 1))), blocked(25))


matrix = cute.make_layout((4, 8), stride=(8, 1))
tiles = cute.zipped_divide(matrix, (2, 4))
print(tiles)
for tile in range(4):
    print(f"tile {tile}:", [tiles((place, tile)) for place in range(8)])


thread_value = cute.make_layout((4, 8), stride=(8, 1))  # thread, value -> place in the 4 x 8 matrix, columns first
held = cute.composition(matrix, thread_value)
for thread in range(4):
    print(f"thread {thread}:", [held((thread, value)) for value in range(8)])


transposed = cute.make_layout((8, 4), stride=(1, 8))
assert all(transposed((j, i)) == matrix((i, j)) for i in range(4) for j in range(8))
show(transposed)
