# SPDX-License-Identifier: Apache-2.0
"""A loop over `range(min(1, n))` runs at most once, and its code is not a loop."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from tests.native import Native


@cuda.jit
def prologue(out, n):
    tiles = cute.const_expr(1)
    count = min(tiles, n)
    for i in range(count):
        out[0] += 10 + i
    for _ in range(min(n, 1)):
        if n == 3:
            continue
        if n == 4:
            break
        out[1] += 1
    else:
        out[2] = 1
    for _ in range(min(0, n)):
        out[3] = 1


@cuda.jit
def loops(out, n):
    cute.arch.thread_idx()
    for _ in range(min(2, n)):
        out[0] += 1
        cute.arch.sync_threads()


@pytest.mark.parametrize("n", [-1, 0, 1, 2, 3, 4])
def test_it_runs_at_most_once(n):
    once = int(n > 0)
    out, compiled = np.zeros(4, np.int32), np.zeros(4, np.int32)
    cute.simulate(prologue)[1, 1](out, n)
    assert out.tolist() == [10 * once, int(once and n not in (3, 4)), int(n != 4), 0]
    Native(prologue, (compiled, n)).run(1, compiled, n)
    assert compiled.tolist() == out.tolist()


def test_its_code_is_no_loop():
    assert not _jumps_back(cute.compile(prologue, np.zeros(4, np.int32), 3).ptx)
    assert _jumps_back(cute.compile(loops, np.zeros(4, np.int32), 3).ptx)


def _jumps_back(ptx):
    seen = set()
    for label, target in re.findall(r"^(\$L\w+):|bra(?:\.uni)?\s+(\$L\w+)", ptx, re.MULTILINE):
        if target in seen:
            return True
        seen |= {label} - {""}
    return False
