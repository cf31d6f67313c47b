# SPDX-License-Identifier: Apache-2.0
"""The example's GEMM: right on ragged shapes, in every type, and without spills."""

import sys
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import ampere_gemm  # noqa: E402
import gemm_host  # noqa: E402

SHAPES = {"bf16": (40, 72, 72), "f16": (130, 264, 64), "tf32": (40, 24, 100), "s8": (40, 24, 144)}


def problem(kind):
    return gemm_host.problem(*SHAPES[kind], ampere_gemm.KINDS[kind][0])


def gpu_or_assembler(kind):
    """The arguments in the fixture's form: made where the kernel runs, all at the first one's call."""
    arrays, made = problem(kind), {}

    def all_of(place):
        if not made:
            made["args"] = ampere_gemm.arguments(*map(place, arrays), kind)[0]
        return made["args"]

    count = len(ampere_gemm.arguments(*arrays, kind)[0])
    return arrays, [lambda place, i=i: all_of(place)[i] for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("run", ["assembler", pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.parametrize("kind", ampere_gemm.KINDS)
def test_every_type_is_right_without_spills(run, kind):
    arrays, args = gpu_or_assembler(kind)
    grid = ampere_gemm.arguments(*arrays, kind)[1]
    check = lambda: gemm_host.check(*arrays)  # noqa: E731
    run(ampere_gemm.gemm, grid, ampere_gemm.THREADS, args, outputs=[arrays[2]], check=check, arch="sm_80")


# The other types differ in the atom alone, which has its own tests.
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bf16", "s8"])
def test_a_ragged_product_is_right_in_the_simulator(kind):
    arrays = problem(kind)
    args, grid = ampere_gemm.arguments(*arrays, kind)
    cute.simulate(ampere_gemm.gemm)[grid, ampere_gemm.THREADS](*args)
    assert np.isfinite(gemm_host.check(*arrays))
