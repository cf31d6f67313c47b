# SPDX-License-Identifier: Apache-2.0
"""A launch is of now: whatever changes between two of them, the driver is given what the slow way gives it."""

from __future__ import annotations

import pytest

import numba_cute as cute

from . import of_arrays  # noqa: F401 - its cases are among them
from .cases import CASES
from .gpu import a_gpu
from .slow import anew, casts, nothing_cast

pytestmark = pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaPerformanceWarning")
BEFORE = 4
"""Launches before a change: from the third on machine code makes them."""


@pytest.fixture(scope="module")
def gpu():
    with a_gpu() as made, casts():
        yield made


def launched(gpu, function, args):
    """What the driver is given, or the error that says why it is given nothing."""
    gpu.seen.clear()
    try:
        function(*args())
    except (cute.CuteError, TypeError, OverflowError) as e:
        return type(e)
    (seen,) = gpu.seen
    return seen


def slowly(gpu, of):
    """What it is given where nothing was launched before."""
    with nothing_cast():
        try:
            args = of.args()
        except cute.CuteError as e:
            return type(e)
        return launched(gpu, cute.kernel(of.function)[1, 32], lambda: anew(args))


def run(gpu, name):
    """Launch, change, and launch again: gives what differs from the slow way, or did not change."""
    of = CASES[name]()
    kernel = cute.kernel(of.function)[1, 32]
    for _ in range(BEFORE):
        before = launched(gpu, kernel, of.args)
    assert before == slowly(gpu, of), "before any change"
    for i, change in enumerate(of.changes):
        change()
        for n in range(3):
            now = launched(gpu, kernel, of.args)
            assert now == slowly(gpu, of), f"change {i}, launch {n}"
        assert (now == before) == of.silent, f"change {i} changes {'something' if of.silent else 'nothing'}"
        before = now


def some(names, each):
    """Of all kinds the default suite runs each so manyth; `-m slow` the others."""
    return [pytest.param(n, marks=() if i % each == 0 else pytest.mark.slow) for i, n in enumerate(names)]


@pytest.mark.parametrize("name", some(CASES, 10))
def test_a_launch_is_of_now(gpu, name):
    run(gpu, name)
