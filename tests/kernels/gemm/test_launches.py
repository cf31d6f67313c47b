# SPDX-License-Identifier: Apache-2.0
"""Launches of the GEMM: what is made of arrays is made anew in machine code where others lie elsewhere. No GPU."""

import pytest

import numba_cute as cute
from numba_cute.kernels.gemm import Epilogue, Plan, bias, gelu, residual, scale, total
from numba_cute.kernels.gemm.operands import swapped, view
from numba_cute.kernels.gemm.plan import arguments, scratch_of

from ...compiler.casts import Array, Noting, casts

__all__ = ["casts"]


@pytest.mark.parametrize("cut", [Plan(64, 1), Plan(64, 1, 2, turned=True), Plan(64, 1, splits=2)], ids=str)
def test_arguments_at_other_addresses_are_cast(casts, cut):
    form = (bias("v") | scale("w", "rows") | gelu() | residual("r") | scale(3.0) | total("s")).form

    @cute.runtime.remembered
    def made(a, b, c, sums, counts, *given):
        own = Epilogue.of(form, given)
        return arguments(a, swapped(view(b, 16)), c, cute.BFloat16, 66, cut, own, (sums, counts))

    def run(at):
        def array(i, shape, dtype="torch.bfloat16"):
            return Array(at + 0x10000 * i, shape, (64, 1)[-len(shape) :], dtype=dtype)

        a, b, c, r = (array(i, (64, 64)) for i in range(4))
        sums, counts = (array(4 + i, (n,), "torch.float32") for i, n in enumerate(scratch_of(c, cut)))
        v, w, s = (array(6 + i, (64,), "torch.float32") for i in range(3))
        return made(a, b, c, sums, counts, v, w, r, s)

    (first, grid), asked = run(0x1000000), Noting(made.function)
    made.moulds._function = asked
    for at in (0x2000000, 0x3000000):
        other, same = run(at)
        assert same == grid and len(other) == len(first)
        for i in (2, 4, 6):
            assert other[i].tensor_map.address - first[i].tensor_map.address == at - 0x1000000
    assert not asked.gave


def test_an_epilogue_is_known_by_what_it_does_and_not_by_its_tensors():
    one, other = (bias(v) | gelu() | residual(r, 2.0) | total(s) for v, r, s in ("abc", "def"))
    assert one.form == other.form and hash(one.form) == hash(other.form)
    assert one.tensors == ["a", "b", "c"] and [x.tensor for x in other.given] == ["d", "e", "f"]
    assert one.matrix == "b" and (bias("a") | residual("b")).form != (residual("b") | bias("a")).form
