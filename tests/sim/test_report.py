# SPDX-License-Identifier: Apache-2.0
"""Threads and numbers in words."""

from types import SimpleNamespace

import pytest

from numba_cute.sim.ground.report import ranges, who


@pytest.mark.parametrize(
    ("numbers", "words"), [([], ""), ([3], "3"), ([5, 4, 3, 9], "3-5, 9"), ([0, 2, 4, 5], "0, 2, 4-5")]
)
def test_ranges(numbers, words):
    assert ranges(numbers) == words


def threads(*indices, cta):
    return [SimpleNamespace(index=i, lane=i % 32, cta=cta) for i in indices]


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        (range(128, 256), "warps 4-7 (128 threads)"),
        (range(32), "warp 0 (32 threads)"),
        ([40], "thread 40 (warp 1)"),
        (range(1, 32), "lanes 1-31 of warp 0 (31 threads)"),
        ([0, 32, 64], "lane 0 of warps 0-2 (3 threads)"),
        ([*range(256, 276)], "warp 8 (20 threads)"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_threads_are_named_by_warps_and_lanes(indices, words):
    cta = SimpleNamespace(rank=0, threads=[None] * 276, cluster=SimpleNamespace(size=1))
    assert who(threads(*indices, cta=cta)) == words


def test_threads_of_a_cluster_name_their_cta():
    cluster = SimpleNamespace(size=2)
    a, b = (SimpleNamespace(rank=r, threads=[None] * 64, cluster=cluster) for r in (0, 1))
    some = threads(*range(64), cta=a) + threads(7, cta=b)
    assert who(some) == "warps 0-1 (64 threads) of CTA 0 and thread 7 (warp 0) of CTA 1"
