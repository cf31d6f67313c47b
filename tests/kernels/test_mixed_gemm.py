# SPDX-License-Identifier: Apache-2.0
"""The GEMM whose weights have 8 bits: right on ragged shapes in every pair of types, and without spills."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import gemm_host  # noqa: E402
import hopper_mixed_gemm  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("s8*f16", (40, 24, 80)),
        pytest.param("e4m3*bf16", (40, 24, 272), marks=pytest.mark.slow),
        pytest.param("s8*bf16", (136, 264, 144), marks=pytest.mark.slow),
        pytest.param("e4m3*f16", (24, 72, 64), marks=pytest.mark.slow),
        pytest.param("e5m2*bf16", (72, 24, 96), marks=pytest.mark.slow),
        pytest.param("e5m2*f16", (16, 16, 16), marks=pytest.mark.slow),
    ],
)
def test_weights_are_widened_on_their_way(run, kind, shape):
    a_dtype, dtype = (gemm_host.DTYPES[x] for x in kind.split("*"))
    a, b, c = gemm_host.problem(*shape, dtype, a_dtype=a_dtype)
    made = {}

    def all_of(place):
        if not made:
            made["args"] = hopper_mixed_gemm.arguments(place(a), place(b), place(c), 1)[0]
        return made["args"]

    args, grid = hopper_mixed_gemm.arguments(a, b, c, 1)
    at_call = [lambda place, i=i: all_of(place)[i] for i in range(len(args))]
    check = lambda: gemm_host.check(a, b, c)  # noqa: E731
    run(hopper_mixed_gemm.gemm, grid, hopper_mixed_gemm.THREADS, at_call, outputs=[c], check=check)
