# SPDX-License-Identifier: Apache-2.0
"""Kernels to the IR, its text, and back: the kernel that is made becomes the PTX of the one that was written."""

from __future__ import annotations

import re

import numpy as np
import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.ir.from_kernels.module import from_kernel

from ..ptx_digests import normalised
from .example_kernels import BF16, KERNELS, QUICK, blackwell_attention


def again(kernel, args, arch):
    """A kernel by way of the text of its module."""
    lifted = from_kernel(kernel, args, arch)
    text = str(lifted)
    module = ir.parse(text, names=lifted.names)
    assert str(module) == text
    return ir.to_kernel(module)


def ptx_of(kernel, args, arch):
    """The instructions of a kernel, whatever it, its registers and its shared memory are called, in any order."""
    compiled = cute.compile(kernel, args, arch=arch)
    ptx = normalised(compiled.ptx.replace(compiled.name, "kernel"))
    return sorted(line for line in NAMES.sub(r"\1", ptx).splitlines() if not line.startswith(OF_NUMBA))


NAMES = re.compile(r"(%[a-z]+)\d+\b|\b(?<=numba_cute_smem)\$\d+")
OF_NUMBA = ".common .global"
"""What Numba keeps of each device function that it compiled, which no instruction reads."""
OTHERWISE = ("blackwell_attention", "blackwell_attention_causal")
"""Those of which LLVM turns one branch: they are simulated."""
USUAL = [n for n in QUICK if n != "hopper_gemm"]  # it takes as long as all others


@pytest.mark.parametrize("name", [n if n in USUAL else pytest.param(n, marks=pytest.mark.slow) for n in KERNELS])
@pytest.mark.filterwarnings("ignore::numba_cute.PerformanceWarning")
def test_the_examples_kernels(name):
    arch, make = KERNELS[name]
    kernel, args = make()
    got, want = ptx_of(again(kernel, args, arch), args, arch), ptx_of(kernel, args, arch)
    if name not in OTHERWISE:
        assert got == want
    assert abs(len(got) - len(want)) <= 2  # the branch, and its label


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_attention_by_way_of_the_ir_is_right(causal):
    p = blackwell_attention.problem(256, 256, 1, 1, 128, BF16)
    p.o[...], p.lse[...] = 0, np.nan
    kernel, args, grid = blackwell_attention.arguments(p, causal)
    made = again(kernel, args, blackwell_attention.TARGET)
    cute.simulate(made, arch=blackwell_attention.TARGET)[grid, blackwell_attention.THREADS](*args)
    blackwell_attention.check(p, causal)
    by_ir = p.o.copy(), p.lse.copy()
    cute.simulate(kernel, arch=blackwell_attention.TARGET)[grid, blackwell_attention.THREADS](*args)
    for got, want in zip(by_ir, (p.o, p.lse), strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
