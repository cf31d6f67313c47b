# SPDX-License-Identifier: Apache-2.0
"""Numbers of a type on the host: they compute as kernels do, from either side, and index layouts."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.dtypes import Scalar, converted, number
from numba_cute.seam import CuteError

I32, I64, U8, U32 = cute.Int32, cute.Int64, cute.Uint8, cute.Uint32

INTEGER = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_,
    operator.xor, operator.lshift, operator.rshift,
]  # fmt: skip
COMPARING = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", INTEGER, ids=lambda op: op.__name__)
def test_operators_take_numbers_on_either_side(op):
    for got in (op(I32(13), 3), op(13, I32(3)), op(I32(13), I32(3)), op(U8(13), I32(3))):
        assert isinstance(got, Scalar) and got.dtype is I32 and got.value == op(13, 3)


@pytest.mark.parametrize("op", COMPARING, ids=lambda op: op.__name__)
def test_comparisons_take_numbers_on_either_side(op):
    for a, b in ((3, 4), (4, 3), (3, 3)):
        assert op(I32(a), b) == op(a, I32(b)) == op(I32(a), I32(b)) == op(a, b)


def test_signs_and_bits():
    assert (-I32(5)).value == -5 and (+I32(5)).value == 5 and abs(I32(-5)).value == 5 and (~I32(5)).value == -6
    assert (~U8(5)).value == 250 and (I32(7) / 2).value == 3.5 and (1 / I32(4)).dtype is cute.Float64


@pytest.mark.parametrize(
    ("got", "dtype", "value"),
    [
        (lambda: cute.Int8(100) + cute.Int8(100), cute.Int8, -56),
        (lambda: I32(2**31 - 1) + 1, I32, -(2**31)),
        (lambda: U32(0) - 1, U32, 2**32 - 1),
        (lambda: I32(3) + I64(4), I64, 7),
        (lambda: I32(3) + 2**40, I64, 2**40 + 3),
        (lambda: 1 << I32(40), I32, 0),
        (lambda: I32(3) + 1.5, cute.Float64, 4.5),
        (lambda: cute.Float32(1) / 3, cute.Float32, float(np.float32(1 / 3))),
        (lambda: cute.Float16(1.5) * I32(2), cute.Float16, 3.0),
    ],
)
def test_results_have_the_type_in_which_two_numbers_meet(got, dtype, value):
    found = got()
    assert found.dtype is dtype and found.value == value


def test_what_is_known_to_divide_is_kept():
    n = cute.assume(I32(48), 16)
    known = [n + 32, 32 - n, 3 * n, n // 8, n % 32, n & 24, 8 | n, n << 1, -n]
    assert [cute.get_divisibility(x) for x in known] == [16, 16, 48, 2, 16, 16, 8, 32, 16]
    assert all(x.value % x.divisor == 0 for x in known)


@pytest.mark.parametrize(
    "call",
    [lambda: I32(3) // 0, lambda: 3 % I32(0), lambda: I32(3) / 0, lambda: I32(3) << -1, lambda: cute.Float32(3) & 1],
)
def test_what_has_no_result_is_refused(call):
    with pytest.raises(CuteError):
        call()


def test_layouts_with_run_time_leaves_are_functions_on_the_host():
    hidden = cute.make_layout((I32(3), (2, I32(5))), stride=(I32(10), (1, 2)))
    plain = cute.make_layout((3, (2, 5)), stride=(10, (1, 2)))
    for i in (0, 4, 29):
        assert hidden(i) == plain(i) == hidden(I32(i)) == plain(I32(i))
        assert cute.idx2crd(i, hidden.shape) == cute.idx2crd(i, plain.shape)
        assert cute.crd2idx(i, hidden.shape) == i
    assert hidden((I32(2), (1, 4))) == plain((2, (1, 4)))
    assert cute.increment_coord((2, (1, 0)), hidden.shape) == (0, (0, 1))
    assert cute.ceil_div((I32(100), 7), (32, 2)) == (4, 4) and cute.round_up(100, I32(32)) == 128
    tile, offset = cute.layout.local_tile(cute.make_layout((I32(100), 7)), (32, 2), (I32(1), 2))
    assert offset == 32 + 4 * 100 and tile.shape == (32, 2)


@pytest.mark.parametrize("op", INTEGER, ids=lambda op: op.__name__)
def test_operators_take_a_number_of_the_kernel_on_either_side(op):
    held = {"of the host": I64(13)}  # reached without the kernel's own reading of names

    def kernel(out):
        three = I32(out[0])
        out[0], out[1] = op(held.get("of the host"), three), op(three, held.get("of the host"))

    out = np.full(2, 3, np.int64)
    cute.simulate(kernel)[1, 1](out)
    assert out.tolist() == [op(13, 3), op(3, 13)]


NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 2.0**-14, -(2.0**-15), 5e-8, 65504.0, 65519.0, 65520.0, 7.994140830130689,
           3.4e38, 1e300, float("inf"), float("-inf"), float("nan"), True, False, 0, 7, -7, 300]  # fmt: skip


@pytest.mark.parametrize(
    "dtype", [cute.Float16, cute.BFloat16, cute.Float32, cute.Boolean, cute.Int8, cute.Uint16], ids=str
)
def test_one_number_is_converted_as_an_array_of_it(dtype):
    for x in [*NUMBERS, *np.random.default_rng(0).normal(0, 300, 500).astype(np.float32).tolist()]:
        got, want = number(x, dtype), converted(x, dtype).item()
        assert (type(got), repr(float(got))) == (type(want), repr(float(want))), x
