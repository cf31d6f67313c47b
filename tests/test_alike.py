# SPDX-License-Identifier: Apache-2.0
"""Kernels that tests make alike are told from those that differ in anything that they hold."""

from pathlib import Path

import pytest
from numba import cuda

import numba_cute as cute

from .alike import first_alike

FILE = Path(__file__)


def made(held, default=1, cluster=None, **options):
    def helper():
        return held

    @cuda.jit(**options)
    def kernel(x, y=default):
        x[0] = helper()

    return kernel if cluster is None else cute.cluster_shape(cluster)(kernel)


@pytest.mark.parametrize(
    "held",
    [3, (1, 2.5), [1, (2,)], {"a": True}, cute.Float32, cute.make_layout((4, 2)), made, cute.make_swizzle(3, 4, 3)],
)
def test_the_first_kernel_stands_for_those_that_hold_the_same(held):
    first = first_alike(made(held), FILE)
    assert first_alike(made(held), FILE) is first
    assert first_alike(made(held), FILE.parent) is not first


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((3,), (4,)), ((1,), (True,)), ((0.0,), (-0.0,)), (([],), ([],)), ((3, 1), (3, 2)),
        ((cute.Int32,), (cute.Int64,)),
        ((cute.make_layout(4),), (cute.make_layout((4,)),)), ((object(),), (object(),)), ((3, 1, 2), (3, 1, 4)),
    ],
)  # fmt: skip
def test_kernels_that_hold_something_else_are_told_apart(one, other):
    first = first_alike(made(*one), FILE)
    assert first_alike(made(*other), FILE) is not first
    assert first_alike(made(*one, fastmath=True), FILE) is not first
