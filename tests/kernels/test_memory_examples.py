# SPDX-License-Identifier: Apache-2.0
"""The examples that move memory: right on whole and ragged shapes, with accesses of 16 bytes on both sides."""

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import numba_cute as cute

from ..conftest import assert_close

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import elementwise  # noqa: E402
import reduce  # noqa: E402
import transpose  # noqa: E402


def shapes(whole, ragged, least):
    """The whole tiles, which a ragged shape holds too, are slow."""
    return [pytest.param(whole, marks=pytest.mark.slow), ragged, least]


DTYPES = [np.float32, ml_dtypes.bfloat16]


def placed(arguments, arrays):
    """The example's kernel arguments with the arrays placed where the kernel runs; made at the first one's call."""
    made = {}

    def all_of(place):
        if not made:
            made["args"] = arguments(*map(place, arrays))[0]
        return made["args"]

    count = len(arguments(*arrays)[0])
    return [lambda place, i=i: all_of(place)[i] for i in range(count)]


@pytest.mark.parametrize("shape", shapes((64, 128), (50, 131), (1, 1)), ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_elementwise_adds(run, rng, shape, dtype):
    a, b = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    c = np.zeros(shape, dtype)
    want = (a.astype(np.float32) + b.astype(np.float32)).astype(dtype)
    run(elementwise.add, elementwise.arguments(a, b, c)[1], elementwise.THREADS,
        placed(elementwise.arguments, (a, b, c)), outputs=[c], check=lambda: assert_close(c, want))  # fmt: skip


@pytest.mark.parametrize("shape", shapes((128, 128), (130, 70), (1, 1)), ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_transpose_moves_each_element(run, rng, shape, dtype):
    a = rng.standard_normal(shape).astype(dtype)
    b = np.zeros(shape[::-1], dtype)
    run(transpose.transpose, transpose.arguments(a, b)[1], transpose.THREADS,
        placed(transpose.arguments, (a, b)), outputs=[b], check=lambda: assert_close(b, a.T))  # fmt: skip


@pytest.mark.parametrize("shape", shapes((8, 2048), (9, 2100), (3, 5)), ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
def test_reduce_gives_root_mean_squares(run, rng, shape, dtype):
    a = rng.standard_normal(shape).astype(dtype)
    out = np.zeros(shape[0], np.float32)
    want = np.sqrt((a.astype(np.float64) ** 2).mean(1))
    run(reduce.root_mean_square, reduce.arguments(a, out)[1], reduce.THREADS,
        placed(reduce.arguments, (a, out)), outputs=[out],
        check=lambda: assert_close(out, want, rtol=1e-5))  # fmt: skip


def wide(ptx, access):
    """How many accesses of 16 bytes there are."""
    return len(re.findall(rf"\b{access}\.v4\.(?:f32|u32|b32)|\b{access}\.v2\.(?:u64|b64)", ptx))


@pytest.mark.parametrize("dtype, squares", [(np.float32, 4), (ml_dtypes.bfloat16, 8)], ids=["f32", "bf16"])
def test_whole_tiles_move_16_bytes_at_a_time(dtype, squares):
    a = np.zeros((256, 4096), dtype)
    added = cute.compile(elementwise.add, elementwise.arguments(a, a, a)[0], notes="error").ptx
    assert (wide(added, "ld.global"), wide(added, "st.global")) == (8, 4)
    turned = cute.compile(transpose.transpose, transpose.arguments(a, a.reshape(4096, 256))[0], notes="error").ptx
    assert [wide(turned, x) for x in ("ld.global", "st.shared", "ld.shared", "st.global")] == [squares] * 4
    summed = reduce.arguments(a, np.zeros(256, np.float32))[0]
    summed = cute.compile(reduce.root_mean_square, summed, notes="error").ptx
    assert wide(summed, "ld.global") == 8
