# SPDX-License-Identifier: Apache-2.0
"""Puzzle 5. Who holds what?

32 elements, 8 threads, 4 values each. Threads take turns: thread t holds the elements t, t + 8, t + 16 and t + 24.
Give the layout from (thread, value) to elements.
"""

import numpy as np

import numba_cute as cute

held = cute.make_layout((8, 4), stride=___)

for t in range(8):
    mine = [held((t, v)) for v in range(4)]
    assert mine == [t, t + 8, t + 16, t + 24], f"thread {t} holds {mine}"
assert np.unique([held(i) for i in range(32)]).size == 32

print("right")
