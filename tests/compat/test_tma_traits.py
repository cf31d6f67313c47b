# SPDX-License-Identifier: Apache-2.0
"""What files reach for in the compiler of the CuTe DSL: its TMA operation, its target."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compat import install, uninstall
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack


@pytest.fixture
def installed():
    install()
    yield
    uninstall()


def test_a_tma_atom_of_the_operation_is_that_of_the_library(installed):
    made_by = importlib.import_module("cutlass._mlir.dialects.cute_nvgpu").atom_make_non_exec_tiled_tma_load
    theirs = importlib.import_module("cutlass.cute")
    trait = importlib.import_module("cutlass.cute.nvgpu.cpasync").CopyBulkTensorTileG2SNonExecTrait
    t, op = from_dlpack(np.zeros((64, 64), np.float16)), cpasync.CopyBulkTensorTileG2SOp()
    smem, tiler = cute.make_layout((16, 32), stride=(32, 1)), (16, 32)
    tile = cute.composition(cute.make_identity_layout(t.shape), tiler)
    atom, coords = made_by(t.value, smem.value, tile, op._to_ir(), num_multicast=1)
    want = cpasync.make_tiled_tma_atom(op, t, smem, tiler)
    assert (atom.form, coords.layout) == (want.atom.form, want.tma_tensor.layout)
    assert theirs.CopyAtom(op, trait(atom)) is atom and isinstance(atom, theirs.CopyAtom)
    with pytest.raises(cute.CuteError, match="CopyAtom: op .* give its trait"):
        theirs.CopyAtom(op)


def test_a_kernel_asks_for_its_target(installed):
    dsl = importlib.import_module("cutlass.base_dsl")

    @cuda.jit
    def kernel(x):
        arch = dsl.BaseDSL._get_dsl().get_arch_enum()
        if cute.const_expr(arch >= dsl.Arch.sm_100 and arch <= dsl.Arch.sm_100f):
            x[0] = 100
        else:
            x[0] = 90

    for arch, says in ("sm_90a", 90), ("sm_100a", 100):
        x = np.zeros(1, np.int32)
        cute.simulate(kernel, arch=arch)[1, 1](x)
        assert x[0] == says
        assert f", {says};" in cute.compile(kernel, x, arch=arch).ptx


def test_a_threads_part_of_a_copy_copies(installed):
    @cuda.jit
    def kernel(x, y):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout(4), cute.make_layout(2))
        mine = copy.get_slice(cuda.threadIdx.x)
        cute.copy(mine, mine.partition_S(x), mine.partition_D(y))

    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    cute.simulate(kernel)[1, 4](from_dlpack(x), from_dlpack(y))
    assert y.tolist() == x.tolist()
    cute.compile(kernel, from_dlpack(x), from_dlpack(y), arch="sm_90a")
