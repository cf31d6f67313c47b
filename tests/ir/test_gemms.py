# SPDX-License-Identifier: Apache-2.0
"""The GEMMs that are written in the IR alone (examples/ir): right in the simulator, assembled, and on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.nvgpu import cpasync, warpgroup
from numba_cute.nvgpu.common import OperandMajorMode
from numba_cute.runtime import from_dlpack
from numba_cute.utils import sm100

from ..conftest import assert_close

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "ir"
F16, F32 = cute.Float16, cute.Float32
LOAD = cpasync.CopyBulkTensorTileG2SOp()


def matrix(array):
    """The tensor of an array, whose shape is known at run time only: multiples of 8."""
    made = from_dlpack(array, assumed_align=16)
    return made.mark_compact_shape_dynamic(mode=0, divisibility=8).mark_compact_shape_dynamic(mode=1, divisibility=8)


def plain(a, b, c):
    return matrix(a), matrix(b), matrix(c)


def by_tma(a, b, c):
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, F16)
    loads = (
        cpasync.make_tiled_tma_atom(LOAD, matrix(x), cute.tile_to_shape(atom, tile, (0, 1)), tile)
        for x, tile in ((a, (64, 64)), (b, (128, 64)))
    )
    return *(part for load in loads for part in load), matrix(c)


def by_umma(a, b, c):
    tile, k_major = (128, 64, 64), OperandMajorMode.K
    mma = sm100.make_trivial_tiled_mma(F16, k_major, k_major, F32, cute.nvgpu.tcgen05.CtaGroup.ONE, tile[:2])
    stage = (None, None, None, 0)
    loads = (
        make(LOAD, matrix(x), cute.slice_(layout(mma, tile, F16, 1), stage), tile, mma)
        for x, make, layout in (
            (a, cute.nvgpu.make_tiled_tma_atom_A, sm100.make_smem_layout_a),
            (b, cute.nvgpu.make_tiled_tma_atom_B, sm100.make_smem_layout_b),
        )
    )
    return *(part for load in loads for part in load), matrix(c)


GEMMS = {
    "gemm_sm80": ("sm_80", (64, 64), plain),
    "gemm_sm90": ("sm_90a", (64, 128), by_tma),
    "gemm_sm100": ("sm_100a", (128, 64), by_umma),
}


@pytest.mark.parametrize("name", GEMMS)
def test_a_gemm_in_the_ir_is_right(run, rng, name):
    arch, (tile_m, tile_n), arguments = GEMMS[name]
    m, n, k = tile_m, tile_n, 128
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    module = ir.parse((FOLDER / f"{name}.mlir").read_text(), f"{name}.mlir")
    assert module.target == arch
    args = [lambda place, i=i: arguments(place(a), place(b), place(c))[i] for i in range(len(arguments(a, b, c)))]
    want = a.astype(np.float64) @ b.astype(np.float64).T
    run(
        ir.to_kernel(module), (m // tile_m, n // tile_n), 128, args, outputs=[c], arch=arch,
        check=lambda: assert_close(c, want, rtol=1e-5, atol=1e-3),
    )  # fmt: skip


@pytest.mark.parametrize("name", GEMMS)
def test_what_a_gemm_in_the_ir_prints_is_the_same_module(name):
    module = ir.parse((FOLDER / f"{name}.mlir").read_text())
    assert str(ir.parse(str(module))) == str(module)


def test_an_error_of_a_kernel_from_the_ir_names_its_line():
    text = (FOLDER / "gemm_sm80.mlir").read_text().replace("      numba_cute.arch.cp_async_wait_group 0\n", "")
    kernel = ir.to_kernel(ir.parse(text, "broken.mlir"))
    a, b, c = np.zeros((64, 32), np.float16), np.zeros((64, 32), np.float16), np.zeros((64, 64), np.float32)
    with pytest.raises(cute.CuteError, match=r"broken\.mlir:\d+") as e:
        cute.simulate(kernel, arch="sm_80")[(1, 1), 128](*plain(a, b, c))
    line = next(n for n, text in enumerate(text.splitlines(), 1) if "numba_cute.copy %s2r_a" in text)
    assert f"broken.mlir:{line}" in str(e.value)
