# SPDX-License-Identifier: Apache-2.0
"""Kernels to the IR, its text, and back: the kernel that is made becomes the PTX of the one that was written."""

from __future__ import annotations

import re

import pytest

import numba_cute as cute

pytest.importorskip("xdsl")

from numba_cute import ir
from numba_cute.ir.lifting import from_kernel

from ..ptx_digests import normalised
from .example_kernels import KERNELS, QUICK


def again(kernel, args, arch):
    """A kernel by way of the text of its module."""
    text = str(from_kernel(kernel, args, arch))
    module = ir.parse(text)
    assert str(module) == text
    return ir.to_kernel(module)


def ptx_of(kernel, args, arch):
    """The instructions of a kernel, whatever it and its registers are called, in any order."""
    compiled = cute.compile(kernel, args, arch=arch)
    ptx = normalised(compiled.ptx.replace(compiled.name, "kernel"))
    return sorted(REGISTER.sub(r"%\1", ptx).splitlines())


REGISTER = re.compile(r"%([a-z]+)\d+\b")
OTHERWISE = ("blackwell_attention", "blackwell_attention_causal")
"""Those that LLVM lays out otherwise: a loop of theirs begins another way."""
USUAL = [n for n in QUICK if n != "hopper_gemm"]  # it takes as long as all others


@pytest.mark.parametrize("name", [n if n in USUAL else pytest.param(n, marks=pytest.mark.slow) for n in KERNELS])
@pytest.mark.filterwarnings("ignore::numba_cute.PerformanceWarning")
def test_the_examples_kernels(name):
    arch, make = KERNELS[name]
    kernel, args = make()
    got, want = ptx_of(again(kernel, args, arch), args, arch), ptx_of(kernel, args, arch)
    assert got == want or name in OTHERWISE and abs(len(got) - len(want)) < 0.01 * len(want)
