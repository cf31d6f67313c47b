# SPDX-License-Identifier: Apache-2.0
"""What files of the CuTe DSL do with objects of their own classes in kernels."""

from __future__ import annotations

import pytest

from .texts import ran

HEAD = """
from dataclasses import dataclass
import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass import Int32
from cutlass.cute.runtime import from_dlpack
"""

TEXTS = """
class Writer:
    def __init__(self, mode, x):
        self.mode = mode
        self.other = "gh"
        self.x = x

    @cute.jit
    def write(self, i):
        if cutlass.const_expr(self.mode == "c"):
            self.x[i] = 3
        elif cutlass.const_expr(self.mode in ("d", "e")):
            self.x[i] = 4
        elif cutlass.const_expr(self.mode != self.other and "f" in self.mode):
            self.x[i] = 5
        else:
            self.undefined_here(i)
        if self.mode == "c":
            self.x[i] = self.x[i] + 10

class Kernels:
    def __init__(self, mode):
        self.mode = mode

    @cute.jit
    def __call__(self, x: cute.Tensor):
        self.kernel(x).launch(grid=1, block=32)

    @cute.kernel
    def kernel(self, x: cute.Tensor):
        Writer(self.mode, x).write(cute.arch.thread_idx()[0])

for mode, want in [("c", 13), ("d", 4), ("e", 4), ("fg", 5)]:
    x = np.zeros(32, np.int32)
    Kernels(mode)(from_dlpack(x))
    assert not SIMULATES or (x == want).all(), (mode, x)
"""

STATIC_FIELDS = """
@dataclass
class By:
    n: Int32

    @cute.jit
    def div(self, x: Int32) -> Int32:
        return Int32(x // self.n) if self.n != 1 else x

@cute.kernel
def kernel(x: cute.Tensor, a: By, b: By):
    t = cute.arch.thread_idx()[0]
    x[t] = a.div(t * 3) * 1000 + b.div(t * 3)

@cute.jit
def launch(x: cute.Tensor, n: Int32):
    kernel(x, By(n), By(1)).launch(grid=1, block=32)

x = np.zeros(32, np.int32)
for n in 4, 1:
    launch(from_dlpack(x), n)
    assert not SIMULATES or x.tolist() == [t * 3 // n * 1000 + t * 3 for t in range(32)], x
"""


@pytest.mark.parametrize("text", [TEXTS, STATIC_FIELDS], ids=["texts", "static fields"])
def test_objects_of_a_kernel(tmp_path, text):
    ran(tmp_path, f"{HEAD}SIMULATES = True\n{text}")
    assert ran(tmp_path, f"{HEAD}SIMULATES = False\n{text}", simulates=False).kernels
