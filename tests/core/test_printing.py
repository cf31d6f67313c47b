# SPDX-License-Identifier: Apache-2.0
"""printf and print_tensor: what the simulator prints, what compiles, and what is refused."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


@cuda.jit
def print_values(a):
    i, _, _ = cute.arch.thread_idx()
    if i == 1:
        cute.printf("thread %d has %f", i, a[i])
        cute.printf("{} of {}: {} 100%", i, a.shape, a[None].load())
        cute.printf(i, 7)


@cuda.jit
def print_all(a):
    i, _, _ = cute.arch.thread_idx()
    if i == 0:
        cute.print_tensor(a)


def test_printf_takes_both_kinds_of_format(capsys):
    a = np.array([1.5, 2.5, 3.5], np.float32)
    cute.simulate(print_values)[1, 3](from_dlpack(a))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["thread 1 has 2.500000", "1 of (3): (1.500000,2.500000,3.500000) 100%", "1 7"]


def test_print_tensor_shows_rows(capsys):
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    cute.simulate(print_all)[1, 2](from_dlpack(a))
    in_kernel = capsys.readouterr().out.splitlines()
    cute.print_tensor(from_dlpack(a))
    on_host = capsys.readouterr().out.splitlines()
    assert in_kernel[0].startswith("Tensor(ptr<Int32, gmem") and in_kernel[0] == on_host[0]
    assert [line.split() for line in in_kernel[1:]] == [["0", "1", "2"], ["3", "4", "5"]]
    assert [line.split() for line in on_host[1:]] == [["0", "1", "2"], ["3", "4", "5"]]


def test_print_tensor_shows_coordinates_when_verbose(capsys):
    cute.print_tensor(from_dlpack(np.ones((2, 1), np.float32)), verbose=True)
    assert capsys.readouterr().out.splitlines()[1:] == ["1.0 @(0, 0)", "1.0 @(1, 0)"]


@pytest.mark.parametrize("kernel", [print_values, print_all])
def test_printing_compiles_to_vprintf(kernel):
    ptx = cute.compile(kernel, (from_dlpack(np.zeros(3, np.float32)),)).ptx
    assert "vprintf" in ptx


@pytest.mark.parametrize("args, message", [
    (("%d %d", 1), "takes 2 values, and 1 are given"),
    (("{} {}", 1), r"has more \{\} than the 1 values"),
    (("{}", 1, 2), r"has no \{\} for the last 1 of the 2 values"),
])  # fmt: skip
def test_printf_checks_its_format(args, message):
    @cuda.jit
    def kernel():
        cute.printf(*args)

    with pytest.raises(cute.CuteError, match=message):
        cute.simulate(kernel)[1, 1]()


def test_print_tensor_needs_a_tensor():
    with pytest.raises(cute.CuteError, match="print_tensor: 3 is not a tensor"):
        cute.print_tensor(3)
