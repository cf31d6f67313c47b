# SPDX-License-Identifier: Apache-2.0
"""Every ldmatrix and stmatrix: through the atom's layouts they move a tile as it lies."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.nvgpu import warp
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

U8 = cute.Uint8


def slow(*cases):
    return [pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.slow) for c in cases]


@cuda.jit
def load(tiled, src, dst):
    """dst = src, by way of shared memory and the registers of one load."""
    tidx, _, _ = arch.thread_idx()
    s = utils.SmemAllocator().allocate_tensor(src.element_type, src.layout, 128)
    for i in range(tidx, cute.size(src), 32):
        s[i] = src[i]
    arch.sync_warp()
    mine = tiled.get_slice(tidx)
    there = mine.partition_D(dst)
    r = cute.make_fragment_like(there)
    cute.copy(tiled, mine.partition_S(s), r)
    cute.basic_copy(r, there)


@cuda.jit
def store(tiled, src, dst):
    """The other way."""
    tidx, _, _ = arch.thread_idx()
    s = utils.SmemAllocator().allocate_tensor(src.element_type, src.layout, 128)
    mine = tiled.get_slice(tidx)
    here = mine.partition_S(src)
    r = cute.make_fragment_like(here)
    cute.basic_copy(here, r)
    cute.copy(tiled, r, mine.partition_D(s))
    arch.sync_warp()
    for i in range(tidx, cute.size(src), 32):
        dst[i] = s[i]


def run_matrix(run, rng, kernel, op, dtype, arch, want=lambda a: a):
    atom = cute.make_copy_atom(op, dtype)
    registers = atom.layout_dst_tv if kernel is load else atom.layout_src_tv
    tiled = cute.make_tiled_copy(atom, registers, (cute.size(registers),))
    a = rng.integers(0, 256, cute.size(registers) * dtype.bytes, dtype=np.uint8).view(dtype.numpy)
    b = np.empty_like(a)

    def check():
        np.testing.assert_array_equal(b.view(np.uint8), want(a.view(np.uint8)))

    def of(array):
        return lambda place: cute.recast_tensor(from_dlpack(place(array)), dtype)

    run(kernel, 1, 32, [tiled, of(a), of(b)], outputs=[b], check=check, arch=arch)


PLAIN = [(False, 1), (False, 4), (True, 4), *slow((False, 2), (True, 1), (True, 2))]


@pytest.mark.parametrize("transpose, num", PLAIN)
def test_ldmatrix_of_16_bits(run, rng, transpose, num):
    run_matrix(run, rng, load, warp.LdMatrix8x8x16bOp(transpose, num), cute.Uint16, "sm_80")


@pytest.mark.parametrize("transpose, num", PLAIN)
def test_stmatrix_of_16_bits(run, rng, transpose, num):
    run_matrix(run, rng, store, warp.StMatrix8x8x16bOp(transpose, num), cute.Uint16, "sm_90")


@pytest.mark.parametrize("num", [4, *slow(1, 2)])
@pytest.mark.parametrize("dtype", [U8, cute.Uint32], ids=str)
def test_untransposed_rows_may_be_of_other_types(run, rng, num, dtype):
    run_matrix(run, rng, load, warp.LdMatrix8x8x16bOp(False, num), dtype, "sm_80")
    run_matrix(run, rng, store, warp.StMatrix8x8x16bOp(False, num), dtype, "sm_90")


BYTES = [warp.LdMatrix8x16x8bOp(False, n) for n in (1, 2, 4)]
BYTES += [warp.LdMatrix16x16x8bOp(True, n) for n in (1, 2)]
BYTES += [warp.LdMatrix16x8x8bOp(True, n) for n in (2, 4)]


def name(op):
    return f"{type(op).__name__}_x{op.num_matrices}"


@pytest.mark.parametrize("op", BYTES, ids=name)
@pytest.mark.parametrize("target", ["sm_120a", *slow("sm_100a")])
def test_ldmatrix_of_bytes(run, rng, op, target):
    run_matrix(run, rng, load, op, U8, target)


@pytest.mark.parametrize("num", [4, *slow(1, 2)])
def test_stmatrix_of_bytes(run, rng, num):
    run_matrix(run, rng, store, warp.StMatrix16x8x8bOp(True, num), U8, "sm_120a")


@pytest.mark.parametrize("op", BYTES, ids=name)
@pytest.mark.parametrize("bits", [6, *slow(4)])
def test_packed_elements_are_put_in_bytes(run, rng, op, bits):
    op = type(op)(op.transpose, op.num_matrices, bits)

    def unpacked(data):
        rows = np.unpackbits(data.reshape(-1, 16), axis=1, bitorder="little")[:, : 16 * bits].reshape(-1, 16, bits)
        return (rows << np.arange(bits)).sum(-1).astype(np.uint8).ravel()

    run_matrix(run, rng, load, op, U8, "sm_120a", unpacked)


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: warp.LdMatrix8x8x16bOp(False, 3), "num_matrices 3 must be 1, 2 or 4"),
        (lambda: warp.LdMatrix16x16x8bOp(False, 1), "transpose False must be True"),
        (lambda: warp.LdMatrix8x16x8bOp(True, 1), "transpose True must be False"),
        (lambda: warp.LdMatrix16x8x8bOp(True, 1), "num_matrices 1 must be 2 or 4"),
        (lambda: warp.LdMatrix16x8x8bOp(True, 2, 5), "unpack_bits 5 must be None, 4 or 6"),
        (lambda: warp.StMatrix16x8x8bOp(True, 3), "num_matrices 3 must be 1, 2 or 4"),
    ],
)
def test_what_the_hardware_lacks_is_refused_by_name(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_a_type_that_cannot_be_transposed_is_refused_when_it_is_copied(rng):
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 1), U8)
    tiled = cute.make_tiled_copy(atom, atom.layout_dst_tv, (128,))
    arrays = [from_dlpack(np.zeros(128, np.uint8)) for _ in range(2)]
    with pytest.raises(CuteError, match="moves elements of 16 bits, and the atom's are Uint8"):
        cute.simulate(load, arch="sm_80")[1, 32](tiled, *arrays)


def test_bytes_are_refused_for_a_target_that_lacks_them():
    atom = cute.make_copy_atom(warp.LdMatrix16x16x8bOp(), U8)
    tiled = cute.make_tiled_copy(atom, atom.layout_dst_tv, (256,))
    arrays = [from_dlpack(np.zeros(256, np.uint8)) for _ in range(2)]
    with pytest.raises(CuteError, match="ldmatrix_m16n16_b8 needs sm_100f"):
        cute.compile(load, (tiled, *arrays), arch="sm_90a")
