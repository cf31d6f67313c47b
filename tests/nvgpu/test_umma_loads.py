# SPDX-License-Identifier: Apache-2.0
"""make_tiled_tma_atom_A and _B for tcgen05: products of operands that TMA loads, by CTAs and pairs, multicast."""

from __future__ import annotations

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from numba_cute.runtime import from_dlpack

from . import umma_loads
from .test_umma import results, values

F16, BF16, F32, S8, E4M3 = cute.Float16, cute.BFloat16, cute.Float32, cute.Int8, cute.Float8E4M3FN
K, MN = OperandMajorMode.K, OperandMajorMode.MN
SLOW = pytest.mark.slow


def operand(x, dtype, major):
    """The matrix (MN, K) in memory, contiguous along `major`, at a multiple of 16 bytes."""
    held = np.float32 if dtype is cute.TFloat32 else dtype.numpy
    raw = np.zeros(x.nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 16
    flat = raw[start : start + x.size * np.dtype(held).itemsize].view(held)
    if major is K:
        made = flat.reshape(x.shape)
    else:
        made = flat.reshape(x.shape[::-1]).T
    made[...] = x.astype(held)
    return made


def tensor(array, dtype):
    return lambda place: cute.recast_tensor(from_dlpack(place(array), assumed_align=16), dtype)


CASES = [
    # (operation, types, majors, CTAs, cluster, N)
    (tcgen05.MmaF16BF16Op, (F16, F32), (K, K), 1, (1, 1), 64),
    (tcgen05.MmaF16BF16Op, (F16, F32), (MN, MN), 1, (2, 1), 64),
    pytest.param(tcgen05.MmaF16BF16Op, (BF16, F32), (K, MN), 1, (1, 2), 64, marks=SLOW),
    pytest.param(tcgen05.MmaFP8Op, (E4M3, F32), (MN, K), 1, (2, 2), 64, marks=SLOW),
    (tcgen05.MmaF16BF16Op, (BF16, F32), (K, K), 2, (2, 1), 64),
    pytest.param(tcgen05.MmaF16BF16Op, (F16, F32), (MN, MN), 2, (2, 2), 128, marks=SLOW),
    pytest.param(tcgen05.MmaI8Op, (S8,), (K, K), 2, (4, 1), 64, marks=SLOW),
    pytest.param(tcgen05.MmaF16BF16Op, (F16, F32), (K, MN), 2, (4, 2), 128, marks=SLOW),
    pytest.param(tcgen05.MmaTF32Op, (), (K, K), 2, (4, 1), 32, marks=SLOW),
]


def name_of(value):
    return getattr(value, "__name__", None) or str(value)


@pytest.mark.parametrize(("cls", "types", "majors", "ctas", "cluster", "n"), CASES, ids=name_of)
def test_operands_are_loaded_as_the_multiplies_take_them(run, rng, cls, types, majors, ctas, cluster, n):
    op = cls(*types, (128 * ctas, n), CtaGroup(ctas), OperandSource.SMEM, *majors)
    tile, blocks = (128 * ctas, n, 128 * 8 // op.a_type.width), 3
    groups = cluster[0] // ctas, cluster[1]
    a, b = (
        values(rng, (groups[0] * tile[0], blocks * tile[2]), op.a_type),
        values(rng, (groups[1] * tile[1], blocks * tile[2]), op.b_type),
    )
    in_a, in_b = operand(a, op.a_type, majors[0]), operand(b, op.b_type, majors[1])
    mma, want = cute.make_tiled_mma(op), a @ b.T
    out = np.zeros((*cluster, 128, umma_loads.result_words(op, tile)), np.uint32)

    def check():
        for i in range(groups[0]):
            for j in range(groups[1]):
                got = results(op, out[i * ctas : (i + 1) * ctas, j], tile)
                part = want[i * tile[0] : (i + 1) * tile[0], j * tile[1] : (j + 1) * tile[1]]
                np.testing.assert_array_equal(got, part)

    def made(which):
        def make(place):
            got = [tensor(x, t)(place) for x, t in ((in_a, op.a_type), (in_b, op.b_type))]
            return umma_loads.atoms(mma, tile, cluster, *got)[which]

        return make

    args = [*(made(i) for i in range(4)), out, np.int32(blocks)]
    kernel = umma_loads.gemm(op, tile, cluster)
    run(kernel, cluster, umma_loads.THREADS, args, outputs=[out], check=check, arch="sm_100a")
