# SPDX-License-Identifier: Apache-2.0
"""Results are compared by the error that their type and the number of their summands allow."""

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute
from numba_cute.testing import allowed_error, assert_allclose

RNG = np.random.default_rng(0)
TYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_rounding_once_is_allowed_and_an_error_of_one_unit_is_not(dtype):
    want = RNG.standard_normal(1000) * 4
    got = want.astype(dtype)
    assert assert_allclose(got, want) <= float(ml_dtypes.finfo(dtype).eps)
    if dtype is np.float64:
        return
    far = got.astype(np.float64) * (1 + 2 * float(ml_dtypes.finfo(dtype).eps))
    with pytest.raises(AssertionError, match="elements of .* are wrong; the first is at"):
        assert_allclose(far, want, dtype=dtype)


@pytest.mark.parametrize("k", [64, 1024, 8192])
@pytest.mark.parametrize("order", ["forward", "pairs", "blocks"])
def test_sums_in_any_order_are_allowed_and_a_lost_tile_is_not(k, order):
    a, b = RNG.standard_normal((24, k), np.float32), RNG.standard_normal((k, 16), np.float32)
    products = a[:, :, None] * b[None]
    got = {
        "forward": lambda: np.add.accumulate(products, axis=1)[:, -1],
        "pairs": lambda: products.sum(1),
        "blocks": lambda: sum(products[:, i : i + 16].sum(1) for i in range(0, k, 16)),
    }[order]()
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert_allclose(got, want, terms=k)
    assert_allclose(got, want, terms=k, magnitude=np.abs(a).astype(np.float64) @ np.abs(b))
    lost = got.astype(np.float64) - a[:, :16].astype(np.float64) @ b[:16]
    for magnitude in (None, np.abs(a).astype(np.float64) @ np.abs(b)):
        with pytest.raises(AssertionError):
            assert_allclose(lost, want, dtype=np.float32, terms=k, magnitude=magnitude)


def test_sums_that_are_rounded_to_half_are_not_those_added_in_half():
    a, b = RNG.standard_normal((32, 2048)), RNG.standard_normal((2048, 32))
    a, b = a.astype(np.float16), b.astype(np.float16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    assert_allclose((a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16), want, terms=2048)
    in_half = np.add.accumulate(a[:, :, None] * b[None], axis=1)[:, -1]
    with pytest.raises(AssertionError):
        assert_allclose(in_half, want, terms=2048)
    assert_allclose(in_half, want, terms=2048, accumulate=cute.Float16)


def test_operands_may_have_been_rounded():
    a, b = RNG.standard_normal((32, 512), np.float32), RNG.standard_normal((512, 32), np.float32)
    short = lambda x: (x.view(np.uint32) & 0xFFFFE000).view(np.float32)  # noqa: E731 - what tf32 reads
    got, want = short(a) @ short(b), a.astype(np.float64) @ b.astype(np.float64)
    assert_allclose(got, want, terms=512, operands=cute.TFloat32)
    with pytest.raises(AssertionError):
        assert_allclose(got, want, terms=512)


def test_integers_are_exact():
    assert assert_allclose(np.arange(5), np.arange(5)) == 0
    with pytest.raises(AssertionError, match=r"1 of 5 elements of int64 are wrong; the first is at \(3,\)"):
        assert_allclose(np.arange(5), [0, 1, 2, 4, 4])


def test_what_is_not_finite_stands_where_it_should():
    want = np.array([1.0, np.nan, np.inf, -np.inf, 1e6])
    assert_allclose(np.array([1, np.nan, np.inf, -np.inf, np.inf], np.float16), want)
    for at, value in ((0, np.nan), (1, 1.0), (2, 1.0), (2, -np.inf), (4, -np.inf), (0, np.inf)):
        got = np.array([1, np.nan, np.inf, -np.inf, np.inf], np.float16)
        got[at] = value
        with pytest.raises(AssertionError, match=rf"the first is at \({at},\)"):
            assert_allclose(got, want)


def test_the_report_says_where_wrong_elements_lie():
    got = np.ones((64, 96), np.float32)
    got[16:32, 32:64] = 0
    got[20, 40] = 7
    words = r"512 of 6144 .* first is at \(16, 32\).* worst is at \(20, 40\): 7\.0.*within \[16:32, 32:64\]"
    with pytest.raises(AssertionError, match=words):
        assert_allclose(got, np.ones((64, 96)))
    with pytest.raises(AssertionError, match=r"shapes \(2,\) and \(3,\) differ"):
        assert_allclose(np.ones(2), np.ones(3))


def test_small_and_empty_and_scalar_arrays_are_compared():
    assert assert_allclose(np.zeros((0, 3), np.float32), np.zeros((0, 3)), terms=4) == 0
    assert assert_allclose(np.float32(2), 2.0) == 0
    with pytest.raises(AssertionError, match=r"at \(\)"):
        assert_allclose(np.float32(2), 3.0)
    assert_allclose(np.float16(0), 1e-9)


def test_what_is_no_type_or_number_of_terms_is_refused():
    with pytest.raises(cute.CuteError, match="terms 0 must be an int from 1 on"):
        assert_allclose(np.ones(2), np.ones(2), terms=0)
    with pytest.raises(cute.CuteError, match="'fast' is not an element type"):
        allowed_error(np.ones(2), np.float32, terms=2, accumulate="fast")
    with pytest.raises(cute.CuteError, match="complex numbers"):
        assert_allclose(np.ones(2) * 1j, np.ones(2))
