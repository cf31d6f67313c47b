# SPDX-License-Identifier: Apache-2.0
"""How rows are spread: every length, type and number of matrices has a spread that holds it, and no more threads or
shared memory than there are."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels.rows.plan import Habit, limits_at, spread_rows

from .arrays import BF16, F16, F32

LENGTHS = [1, 2, 7, 8, 60, 64, 100, 1000, 1024, 1025, 4096, 5120, 16384, 16392, 20000, 32768, 50008, 65536, 65537,
           131072, 200000, 262136, 262143, 262144, 300000]  # fmt: skip
TARGETS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_110", "sm_120"]
HABITS = {"again": Habit(again=True), "whole": Habit(elements=32, whole=True), "direct": Habit(elements=32)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("dtypes", [(BF16,), (F32,), (F16, F32), (F32, F32)], ids=lambda d: "-".join(map(str, d)))
def test_every_row_is_held_once_or_is_far(habit, dtypes, target):
    of, far = cute.target(target), 0
    for length in LENGTHS:
        arrays = [np.lib.stride_tricks.as_strided(np.zeros(16, d), (3, length), (length * d.itemsize, d.itemsize))
                  for d in dtypes]  # fmt: skip
        with answering_for(target):
            chosen, shared = spread_rows("test", arrays, habit=HABITS[habit]), limits_at(arrays[0]).shared
        s = chosen.spread
        assert s.length == length and s.length % s.vector == 0 and 1 <= s.cluster <= of.cluster_size
        assert chosen.resident * s.block <= of.threads_per_sm and shared < of.smem_per_block
        assert (s.cluster > 1) + s.stages == 0 or "tma" in of.features
        assert s.alone == (chosen.groups * s.teams >= 3) or habit == "whole" and not s.alone
        if s.far:
            far += 1
            assert s.vectors % 2 == 0 and length <= s.vectors * s.vector * s.threads
            continue
        assert s.part * (s.cluster - 1) < length <= s.part * s.cluster
        assert s.block <= 512 and s.block % 32 == 0 and s.threads & (s.threads - 1) == 0
        size = sum(d.itemsize for d in dtypes)
        assert chosen.resident * s.stages * s.part * s.teams * size <= shared
        assert not s.again or s.stages == 1 and chosen.groups * s.teams >= 3


def test_what_no_cluster_holds_is_far():
    assert spread_rows("softmax", [np.zeros((1, 2000000), BF16)], habit=HABITS["again"]).spread.far
    assert not spread_rows("softmax", [np.zeros((1, 1000000), BF16)], habit=HABITS["again"]).spread.far


def test_a_gpu_of_few_sms_has_smaller_clusters():
    torch = pytest.importorskip("torch")
    x = torch.zeros(3, 65536)
    for sms, cluster, far in ((132, 4, False), (4, 4, False), (2, 1, True)):
        with cute.simulation("sm_90a", sms=sms):
            s = spread_rows("softmax", [x], habit=HABITS["again"]).spread
        assert (s.cluster, s.far) == (cluster, far)


def test_lists_of_a_block_s_teams_fit():
    """32 teams of 8 threads, each with a list of 10 KB, of which an sm_86 has no room for."""
    with answering_for("sm_86"):
        s = spread_rows("topk", [np.zeros((64, 256), F32)], habit=Habit(again=True, beside=10240)).spread
    assert s.threads == 8 and s.teams == 8


def test_rows_without_elements_are_refused_in_words():
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
