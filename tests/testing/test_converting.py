# SPDX-License-Identifier: Apache-2.0
"""Tensors are converted element by element; kernels assert what they find."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack, pack
from numba_cute.testing import assert_, converting


def converted(src, dst):
    args = converting.arguments(src, dst)
    cute.simulate(converting.elements)[converting.blocks(args[2]), converting.THREADS](*args)


@pytest.mark.parametrize("dtype", [cute.Float8E4M3FN, cute.BFloat16, cute.Float64, cute.Int32], ids=str)
def test_elements_of_a_tensor_are_converted_in_any_layout(dtype):
    a = (np.random.default_rng(0).standard_normal((17, 5, 30)) * 4).astype(np.float32)
    b = np.zeros((30, 5, 17), dtype.numpy).T
    converted(from_dlpack(a), from_dlpack(b).mark_layout_dynamic(leading_dim=0))
    assert (b == a.astype(dtype.numpy)).all()


@pytest.mark.parametrize("dtype", [cute.Float4E2M1FN, cute.Float6E3M2FN], ids=str)
@pytest.mark.parametrize("mode", [0, 1])
def test_elements_narrower_than_a_byte_are_packed(dtype, mode):
    a = np.random.default_rng(0).standard_normal((12, 20)).astype(np.float32) * 3
    a = a if mode else np.asfortranarray(a)
    want = a.astype(dtype.numpy)
    packed = pack(want if mode else np.ascontiguousarray(want.T))
    got = np.zeros_like(packed)
    tensor = cute.recast_tensor(from_dlpack(got), dtype)
    if not mode:
        tensor = cute.make_tensor(tensor.iterator, cute.select(tensor.layout, mode=[1, 0]))
    converted(from_dlpack(a), tensor)
    assert (got == packed).all()


def test_the_conversion_compiles_for_a_gpu():
    args = converting.arguments(from_dlpack(np.zeros((9, 5), np.float32)), from_dlpack(np.zeros((5, 9), np.float16).T))
    compiled = cute.compile(converting.elements, args)
    assert "st.global.u16" in compiled.ptx and compiled.resources.local == 0


def test_what_cannot_be_converted_is_refused():
    x, y = from_dlpack(np.zeros((4, 6), np.float32)), from_dlpack(np.zeros((6, 4), np.float32))
    narrow = cute.recast_tensor(from_dlpack(np.zeros((8, 3), np.uint8)), cute.Float4E2M1FN)  # (8,6):(6,1)
    odd = cute.make_tensor(narrow.iterator, cute.make_layout((5, 6), stride=(1, 5)))
    for src, dst, words in (
        (np.zeros(3), x, "src .* is not a tensor"),
        (x, y, r"src has shape \(4, 6\) and dst \(6, 4\)"),
        (from_dlpack(np.zeros((5, 6))), odd, "do not fill whole bytes along one mode"),
    ):
        with pytest.raises(cute.CuteError, match=words):
            converting.arguments(src, dst)


@cute.kernel
def positive(x):
    assert_(x[0] > 0, "x must be {positive}, 100% of it")


def test_a_false_assertion_ends_the_kernel_and_says_why(capfd):
    x = np.ones(3, np.float32)
    cute.simulate(positive)[1, 32](x)
    with pytest.raises(cute.CuteError, match="a thread gave up"):
        cute.simulate(positive)[1, 32](-x)
    assert "assertion failed: x must be {positive}, 100% of it" in capfd.readouterr().out
    assert "trap;" in cute.compile(positive, (x,)).ptx


@cute.kernel
def static(n: cute.Constexpr):
    assert_(n % 8 == 0, "n must be a multiple of 8")


def test_what_is_static_is_judged_at_once():
    cute.compile(static, (16,))
    with pytest.raises((cute.CuteError, AssertionError), match="n must be a multiple of 8"):
        cute.compile(static, (12,))
    assert_(True)
    with pytest.raises(AssertionError, match="it rains"):
        assert_(False, "it rains")
