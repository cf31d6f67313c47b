# SPDX-License-Identifier: Apache-2.0
"""A TMA atom copies to and from the shared memory that it was made for, and no other: both engines refuse the rest."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.utils import block_copy

from .test_tma_modes import aligned
from .tma_kernels import one_mode

TILE = (64, 64)
OPS = {
    "load": cpasync.CopyBulkTensorTileG2SOp(), "multicast": cpasync.CopyBulkTensorTileG2SMulticastOp(),
    "store": cpasync.CopyBulkTensorTileS2GOp(), "reduction": cpasync.CopyReduceBulkTensorTileS2GOp(),
}  # fmt: skip


def rows(*_):
    """The rows one after another."""
    return cute.make_layout(TILE, stride=(64, 1))


def columns(*_):
    return cute.make_layout(TILE, stride=(1, 64))


def halves(*_):
    """Half of each row, and then the other: boxes of half the tile."""
    return cute.make_layout((64, (32, 2)), stride=(32, (1, 2048)))


@cuda.jit
def partitioned(atom, tensor, dtype, layout, swizzle):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(dtype, layout, 1024, swizzle)
    bar = smem.allocate_array(cute.Int64, 1)
    tile = cute.local_tile(tensor, (64, 64), (0, 0))
    inside, outside = cpasync.tma_partition(atom, 0, cute.make_layout(1), one_mode(s), one_mode(tile))
    if cute.const_expr(atom.op.writes):
        cute.copy(atom, inside, outside)
    elif cute.const_expr(atom.op.multicast):
        cute.copy(atom, outside, inside, tma_bar_ptr=bar, mcast_mask=cute.Uint16(1))
    else:
        cute.copy(atom, outside, inside, tma_bar_ptr=bar)


@cuda.jit
def by_block(atom, tensor, dtype, layout, swizzle):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(dtype, layout, 1024, swizzle)
    tile = cute.local_tile(tensor, (64, 64), (0, 0))
    if cute.const_expr(atom.op.writes):
        block_copy(atom, s, tile)
    else:
        block_copy(atom, tile, s, tma_bar_ptr=smem.allocate_array(cute.Int64, 1))


@cuda.jit
def by_hand(atom, tensor, dtype, layout, swizzle):
    """Partitioned by no function: the modes as they are."""
    smem = utils.SmemAllocator()
    s = one_mode(smem.allocate_tensor(dtype, layout, 1024, swizzle))
    tile = one_mode(cute.local_tile(tensor, (64, 64), (0, 0)))
    if cute.const_expr(atom.op.writes):
        cute.copy(atom, s, tile)
    else:
        cute.copy(atom, tile, s, tma_bar_ptr=smem.allocate_array(cute.Int64, 1))


def swizzled(bits):
    return cute.make_swizzle(bits, 4, 3)


MISMATCHES = {  # what the atom is made for, and what the kernel allocates; what is said
    "another type": ((rows, None, np.float16), (rows, None, cute.BFloat16), "holds BFloat16, but .* made for Float16"),
    "a wider type": ((rows, None, np.float16), (rows, None, cute.Float32), "holds Float32, but .* made for Float16"),
    "no swizzle": ((rows, 3, np.float16), (rows, None, cute.Float16), "with no swizzle, but .* swizzle S<3,4,3>"),
    "a swizzle": ((rows, None, np.float16), (rows, 3, cute.Float16), "the swizzle S<3,4,3>, but .* for no swizzle"),
    "another": ((rows, 3, np.float16), (rows, 2, cute.Float16), "the swizzle S<2,4,3>, but .* for the .* S<3,4,3>"),
    "columns for rows": ((rows, None, np.float16), (columns, None, cute.Float16), r"coordinates .* of the tensor, but"),
    "the whole for halves": ((halves, None, np.float16), (rows, None, cute.Float16), "coordinates .*, but|copies 2048"),
    "halves for the whole": ((rows, None, np.float16), (halves, None, cute.Float16), "coordinates .*, but|copies 4096"),
}  # fmt: skip


def arguments(op, made_for, allocated):
    lay, bits, dtype = made_for
    array = aligned((64, 64), dtype)
    held = lay() if bits is None else cute.make_composed_layout(swizzled(bits), 0, lay())
    atom, tensor = cpasync.make_tiled_tma_atom(OPS[op], from_dlpack(array, assumed_align=16), held, TILE)
    lay, bits, dtype = allocated
    return atom, tensor, dtype, lay(), None if bits is None else swizzled(bits)


@pytest.mark.parametrize("mismatch", MISMATCHES)
@pytest.mark.parametrize(
    "kernel, op",
    [(partitioned, op) for op in OPS] + [(kernel, op) for kernel in (by_block, by_hand) for op in ("load", "store")],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_what_an_atom_was_not_made_for_is_refused(kernel, op, mismatch):
    made_for, allocated, says = MISMATCHES[mismatch]
    given = arguments(op, made_for, allocated)
    said = []
    for engine in (lambda: cute.compile(kernel, given, arch="sm_90a"), lambda: cute.simulate(kernel)[1, 32](*given)):
        with pytest.raises(cute.CuteError, match=says) as error:
            engine()
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("form", [(rows, None), (columns, None), (halves, None), (halves, 2), (columns, 3)])
@pytest.mark.parametrize("op", ["load", "store"])
def test_what_it_was_made_for_is_taken(op, form):
    lay, bits = form
    array = aligned((64, 64), np.float16)
    tensor = from_dlpack(array if lay is not columns else array.T, assumed_align=16)
    held = lay() if bits is None else cute.make_composed_layout(swizzled(bits), 0, lay())
    atom, coords = cpasync.make_tiled_tma_atom(OPS[op], tensor, held, TILE)
    given = (atom, coords, cute.Float16, lay(), None if bits is None else swizzled(bits))
    for kernel in (partitioned, by_block):
        assert "cp.async.bulk.tensor" in cute.compile(kernel, given, arch="sm_90a").ptx


@cuda.jit
def reinterpreted(atom, tensor, swizzle):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(cute.BFloat16, cute.make_layout((64, 64), stride=(64, 1)), 1024, None)
    meant = cute.make_tensor(cute.recast_ptr(s.iterator, swizzle, cute.Float16), s.layout)
    bar = smem.allocate_array(cute.Int64, 1)
    block_copy(atom, cute.local_tile(tensor, (64, 64), (0, 0)), meant, tma_bar_ptr=bar)


def test_bits_that_are_meant_are_said():
    atom, tensor, *_ = arguments("load", (rows, 3, np.float16), (rows, 3, cute.Float16))
    assert "cp.async.bulk.tensor" in cute.compile(reinterpreted, (atom, tensor, swizzled(3)), arch="sm_90a").ptx
    with pytest.raises(cute.CuteError, match="with no swizzle"):
        cute.compile(reinterpreted, (atom, tensor, None), arch="sm_90a")
