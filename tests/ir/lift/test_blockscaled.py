# SPDX-License-Identifier: Apache-2.0
"""Block-scaled GEMMs of Blackwell, as the CuTe DSL prints them: whole modules, written after single lines of one that
it printed: of one block, and of a pair whose scale factors of B each block copies half of for both."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("xdsl")

import numba_cute as cute  # noqa: E402
from numba_cute import ir  # noqa: E402
from numba_cute.utils import blockscaled_layout  # noqa: E402
from tests.ir.lift.test_lifting import launcher  # noqa: E402

HERE = Path(__file__).parent
MODULES = {  # file, element, factor, elements for each factor, greatest element
    "nvf4": ("nvf4_gemm.mlir", cute.Float4E2M1FN, cute.Float8E4M3FN, 16, 6.0),
    "nvf4 pair": ("nvf4_pair_gemm.mlir", cute.Float4E2M1FN, cute.Float8E4M3FN, 16, 6.0),
    "mxf8": ("mxf8_gemm.mlir", cute.Float8E4M3FN, cute.Float8E8M0FNU, 32, 8.0),
}


def module(kind):
    return ir.parse((HERE / MODULES[kind][0]).read_text())


def operand(rng, rows, k, batches, kind):
    """Elements and factors as memory holds them, and the values in float64."""
    _, element, factor, vector, most = MODULES[kind]
    values = rng.uniform(-most, most, (batches, rows, k)).astype(element.numpy)
    scales = np.exp2(rng.integers(-2, 3, (batches, rows, k // vector))).astype(factor.numpy)
    lay = blockscaled_layout.tile_atom_to_shape_SF((rows, k, batches), vector)
    stored = np.zeros(cute.cosize(lay), factor.numpy)
    for batch, row, block in np.ndindex(scales.shape):
        stored[lay((row, block * vector, batch))] = scales[batch, row, block]
    codes = values.view(np.uint8)
    packed = codes[..., ::2] | codes[..., 1::2] << 4 if element.width == 4 else codes
    exact = values.astype(np.float64) * np.repeat(scales.astype(np.float64), vector, axis=-1)
    return pointer(packed, element), pointer(stored, factor), exact


def pointer(array, dtype):
    """A pointer to a copy of an array that lies as the module says."""
    room = np.zeros(array.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    room = room[at : at + array.nbytes]
    room[:] = array.reshape(-1).view(np.uint8)
    return cute.recast_ptr(cute.runtime.from_dlpack(room, assumed_align=32).iterator, dtype=dtype)


def error(kind, m, n, k, batches, calls):
    """Run the host's function of a module in the simulator; gives the relative error against float64."""
    rng = np.random.default_rng(0)
    (a, sfa, left), (b, sfb, right) = (operand(rng, rows, k, batches, kind) for rows in (m, n))
    c = np.full((batches, m, n), np.nan, np.float16)
    out = cute.runtime.from_dlpack(c, assumed_align=16).iterator
    ir.to_host(module(kind))(a, b, sfa, sfb, out, m, n, k, batches, None, launch=launcher(calls, arch="sm_100a"))
    want = np.einsum("lmk,lnk->lmn", left, right)
    return np.abs(c - want).max() / np.abs(want).max()


def test_a_block_scaled_gemm_computes_what_numpy_computes_and_compiles():
    calls = []
    assert error("nvf4", 128, 256, 256, 1, calls) < 5e-4
    kernel, args = calls[0]
    compiled = cute.compile(kernel, *args, arch="sm_100a")
    assert "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale" in compiled.ptx
    assert compiled.resources.local == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "shape"), [("nvf4", (256, 256, 1280, 2)), ("nvf4 pair", (512, 256, 1280, 1)), ("mxf8", (256, 128, 768, 2))]
)
def test_block_scaled_gemms_of_several_tiles(kind, shape):
    assert error(kind, *shape, []) < 5e-4


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_prints_what_it_was_read_from(kind):
    found = module(kind)
    assert str(ir.parse(str(found))) == str(found)
    assert "num_multicast = 1 tma_format = #cute_nvgpu.tma_data_format<U16>}>" in str(found)
    assert ir.to_python(found).count("internal_type=cute.Int16") == 2


def test_factors_may_stand_with_their_scale_factors():
    found = module("mxf8")
    assert re.search(
        r"cute.gemm\(%\w+, %view_\w+, \[%slice_\w+, %view_\w+\], \[%slice_\w+, %view_\w+\], %view_\w+\)", str(found)
    )
    assert re.search(r"\[frg_A\[.*\], view_\d\],\s+\[frg_B\[.*\], view_\d\],", ir.to_python(found))


def test_numbers_of_the_hosts_are_run_time_numbers():
    assert "arg7 = cute.Int32(arg7)" in ir.to_python(module("nvf4"))
