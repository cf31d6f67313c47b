# SPDX-License-Identifier: Apache-2.0
"""Kernels of this library that Numba compiles by itself, as by `cuda.compile_ptx`."""

import re

import numba
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.ground.within import Within

N = 4


class Plain:
    def __init__(self, n):
        self.n = n


@cuda.jit(device=True)
def first(x, y):
    return x


def shape():
    return cute.make_layout(N)


def of_a_global(out, n):
    out[0] = cute.size(shape())


def keeps_the_first(out, n):
    best = Plain(n)
    for i in range(n):
        best = first(best, Plain(i))
    out[0] = best.n + cute.size(cute.make_layout(1))


def ptx(kernel):
    with compiling_for("sm_90a"):
        return cuda.compile_ptx(kernel, (numba.int64[::1], numba.int64), cc=(9, 0))[0]


def test_each_reads_globals_anew(monkeypatch):
    for n in (1000003, 1000033):
        monkeypatch.setitem(globals(), "N", n)
        assert re.findall(r"\b10000\d\d\b", ptx(of_a_global)) == [str(n)]


def test_what_its_device_functions_do_with_objects_is_known():
    assert "st.global" in ptx(keeps_the_first)


def test_what_runs_is_known_to_any_depth_and_after_an_error():
    inside = Within()
    assert not inside
    with inside:
        with pytest.raises(ValueError), inside:
            raise ValueError
        assert inside
    assert not inside
