# SPDX-License-Identifier: Apache-2.0
"""Floats as static arguments: Python, the simulator and the compiler agree, and the disk cache tells them apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import config
from numba_cute.compiler.host.disk_cache import key_of
from numba_cute.compiler.host.offline import taken


@cute.jit
def doubled(scale):
    return scale * 2


@cute.kernel
def scaled(x, scale: cute.Constexpr):
    filled = cute.make_rmem_tensor((2,), cute.Float32)
    filled.fill(scale)
    x[0] = filled[0] + scale
    x[1] = doubled(scale)
    if scale > 0.25:
        x[2] = scale
    scale = scale + 1.0
    x[3] = scale


def expected(scale):
    return np.float32([2 * scale, 2 * scale, scale if scale > 0.25 else 7, scale + 1])


@pytest.mark.parametrize("scale", [0.5, 0.125, -3.0, math.inf, 1e-3])
def test_a_float_is_a_static_argument_in_the_simulator(scale):
    x = np.full(4, 7, np.float32)
    cute.simulate(scaled)[1, 1](x, scale)
    np.testing.assert_allclose(x, expected(scale), rtol=1e-7)


def test_compiled_code_holds_it_as_a_constant():
    x = np.zeros(4, np.float32)
    made = cute.compile(scaled, x, cute.Constexpr(0.5), arch="sm_90a")
    for number in expected(0.5):
        assert f", {int(number.view(np.int32))};" in made.ptx
    assert made.cubin
    assert "setp" not in made.ptx  # the branch is decided
    assert made.ptx != cute.compile(scaled, x, cute.Constexpr(0.125), arch="sm_90a").ptx


def test_the_disk_cache_tells_floats_apart(tmp_path):
    x = np.zeros(4, np.float32)

    def key(value):
        function, types, options = taken(scaled, (x, cute.Constexpr(value)), "sm_90a", "compile")
        return key_of(function, types, options, "sm_90a", "test").text

    values = (0.5, 0.25, 0.0, -0.0, math.nan, math.inf, 5e-324, 1, True)
    with config.override(cache=True, cache_dir=str(tmp_path)):
        keys = [key(v) for v in values]
        assert keys == [key(v) for v in values]
    assert None not in keys
    assert len(set(keys)) == len(values)


def test_a_host_function_passes_it_on():
    @cute.jit
    def host(x, scale: cute.Constexpr):
        scaled(x, scale).launch(grid=1, block=1)

    x = np.zeros(4, np.float32)
    cute.simulate(host)(x, 0.5)
    np.testing.assert_array_equal(x, expected(0.5))
    assert cute.compile(host, x, 0.5, arch="sm_90a").kernels[0].cubin


@pytest.mark.gpu
def test_a_float_is_a_static_argument_on_a_gpu():
    if not cuda.is_available():
        pytest.skip("needs a GPU")
    for scale in (0.5, 0.125, 0.5):
        x = np.full(4, 7, np.float32)
        scaled(x, scale).launch(grid=1, block=1)
        np.testing.assert_array_equal(x, expected(scale))


@pytest.mark.parametrize("signature", ["void(float32[:])", "(float32[:],)"])
def test_a_signature_with_too_few_arguments_is_refused_in_words(signature):
    @cute.kernel
    def k(out: cute.Tensor, n):
        out[0] = n

    with pytest.raises(cute.CuteError) as refused:
        cute.compile(k, signature)
    assert not isinstance(refused.value, cute.InternalError)
