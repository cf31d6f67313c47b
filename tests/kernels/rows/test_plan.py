# SPDX-License-Identifier: Apache-2.0
"""How rows are spread: every length, type and number of matrices has a spread that holds it, and no more threads or
shared memory than there are."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.kernels.rows.plan import MOST_BLOCKS, SHARED, Habit, spread_rows

from .arrays import BF16, F16, F32

LENGTHS = [1, 2, 7, 8, 60, 64, 100, 1000, 1024, 1025, 4096, 5120, 16384, 16392, 20000, 32768, 50008, 65536, 65537,
           131072, 200000, 262136, 262143, 262144]  # fmt: skip
HABITS = {"again": Habit(again=True), "whole": Habit(elements=32, whole=True), "direct": Habit(elements=32)}


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("dtypes", [(BF16,), (F32,), (F16, F32), (F32, F32)], ids=lambda d: "-".join(map(str, d)))
def test_every_row_is_held_once(habit, dtypes):
    for length in LENGTHS:
        if habit != "again" and len(dtypes) * length > 262144:
            continue
        arrays = [np.lib.stride_tricks.as_strided(np.zeros(16, d), (3, length), (length * d.itemsize, d.itemsize))
                  for d in dtypes]  # fmt: skip
        chosen = spread_rows("test", arrays, habit=HABITS[habit])
        s = chosen.spread
        assert s.length == length and s.length % s.vector == 0 and 1 <= s.cluster <= MOST_BLOCKS
        assert s.part * (s.cluster - 1) < length <= s.part * s.cluster
        assert s.block <= 512 and s.block % 32 == 0 and s.threads & (s.threads - 1) == 0
        size = sum(d.itemsize for d in dtypes)
        assert chosen.resident * s.stages * s.part * s.teams * size <= SHARED
        assert not s.again or s.stages == 1 and chosen.groups * s.teams >= 3


def test_what_no_cluster_holds_is_refused_in_words():
    with pytest.raises(
        cute.CuteError, match=r"rows of 2000000 elements are longer than a cluster holds, 1048576: split"
    ):
        spread_rows("softmax", [np.zeros((1, 2000000), BF16)], habit=HABITS["again"])
    with pytest.raises(
        cute.CuteError, match=r"softmax: the rows of bfloat16 of shape \(3, 0\) and .* have no elements"
    ):
        spread_rows("softmax", [np.zeros((3, 0), BF16)], habit=HABITS["again"])


def test_lines_that_are_held_are_counted_for_each_team():
    """Two teams of 256 threads, each with a weight and a bias of float32 of 6,144 elements: 246,048 bytes with the rows
    twice, which no SM has."""
    x, line = np.zeros((512, 6144), BF16), np.zeros(6144, np.float32)
    other = np.zeros((512, 6144), np.float32)
    chosen = spread_rows("norm", [x, other], [line, line, x, other], habit=Habit(again=True, hold=True))
    assert chosen.spread.again and chosen.spread.alone and chosen.spread.teams == 2
