# SPDX-License-Identifier: Apache-2.0
"""Element types count as classes: `issubclass` says of what kind they are, on the host and in kernels."""

import numpy as np
import pytest

import numba_cute as cute
from tests.native import Native

ASKED = {
    cute.Float32: (True, True, False), cute.BFloat16: (True, True, False), cute.Int8: (True, False, True),
    cute.Uint64: (True, False, True), cute.Boolean: (True, False, False), cute.Layout: (False, False, False),
    int: (False, False, False),
}  # fmt: skip
KINDS = (cute.Numeric, cute.Float, cute.Integer)


@pytest.mark.parametrize("dtype", ASKED, ids=lambda d: getattr(d, "__name__", str(d)))
def test_an_element_type_is_a_subclass_of_its_kind(dtype):
    assert tuple(issubclass(dtype, kind) for kind in KINDS) == ASKED[dtype]
    asked = isinstance(dtype, cute.DType)
    assert not asked or tuple(isinstance(dtype, kind) for kind in KINDS) == ASKED[dtype]


class Asking:
    """A kernel that asks it of a type of its object's."""

    def __init__(self, dtype):
        self.dtype = dtype

    @cute.jit
    def number(self, dtype, kind: cute.Constexpr):
        if cute.const_expr(not issubclass(dtype, kind)):
            raise TypeError(f"no such kind: {dtype}")
        return 1

    @cute.kernel
    def kernel(self, out):
        if cute.const_expr(issubclass(self.dtype, cute.Float)):
            out[0] = self.number(self.dtype, cute.Numeric)
        elif cute.const_expr(issubclass(self.dtype, cute.Integer)):
            out[0] = 2
        else:
            out[0] = 3


@pytest.mark.parametrize("dtype, number", [(cute.Float16, 1), (cute.Uint8, 2), (cute.Boolean, 3)], ids=str)
def test_a_kernel_asks_it(dtype, number):
    from numba_cute.seam.marks.host_objects import snapshot

    out, own = np.zeros(1, np.int64), Asking(dtype)
    cute.simulate(own.kernel)[1, 1](out)
    assert out[0] == number
    out[:] = 0
    Native(Asking.kernel, (snapshot(own), out)).run(1, snapshot(own), out)
    assert out[0] == number
