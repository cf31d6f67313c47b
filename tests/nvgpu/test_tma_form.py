# SPDX-License-Identifier: Apache-2.0
"""A TMA atom copies to and from the shared memory that it was made for, and no other: both engines refuse the rest."""

from __future__ import annotations

import functools
import inspect
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import utils
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import traced
from numba_cute.tilelang import cpasync as tilelang
from numba_cute.utils import block_copy

from ..api import names
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


# ------------------------------------------------------------------ each function that takes an atom and memory


def by_copy(atom, smem, tile, bar):
    """Partitioned by no function: the modes as they are."""
    if cute.const_expr(atom.op.writes):
        cute.copy(atom, one_mode(smem), one_mode(tile))
    elif cute.const_expr(atom.op.multicast):
        cute.copy(atom, one_mode(tile), one_mode(smem), tma_bar_ptr=bar, mcast_mask=cute.Uint16(1))
    else:
        cute.copy(atom, one_mode(tile), one_mode(smem), tma_bar_ptr=bar)


def by_one_call(atom, smem, tile, bar):
    cute.copy_atom_call(atom, one_mode(smem), one_mode(tile))


def by_partition(atom, smem, tile, bar):
    inside, outside = cpasync.tma_partition(atom, 0, cute.make_layout(1), one_mode(smem), one_mode(tile))
    cute.copy(atom, outside, inside, tma_bar_ptr=bar)


def by_block(atom, smem, tile, bar):
    if cute.const_expr(atom.op.writes):
        block_copy(atom, smem, tile)
    else:
        block_copy(atom, tile, smem, tma_bar_ptr=bar)


def by_tilelang_load(atom, smem, tile, bar):
    tilelang.tma_load(atom, bar, smem, (0, 0))


def by_tilelang_store(atom, smem, tile, bar):
    tilelang.tma_store(atom, smem, (0, 0))


def by_tilelang_reduction(atom, smem, tile, bar):
    tilelang.tma_reduce(atom, smem, (0, 0))


CALLS = {
    "copy": (by_copy, "load", "multicast", "store", "reduction"), "copy_atom_call": (by_one_call, "store"),
    "cpasync.tma_partition": (by_partition, "load"), "utils.block_copy": (by_block, "load", "store"),
    "tilelang.tma_load": (by_tilelang_load, "load"), "tilelang.tma_store": (by_tilelang_store, "store"),
    "tilelang.tma_reduce": (by_tilelang_reduction, "reduction"),
}  # fmt: skip
"""By public name: a call of it, and the operations whose atoms it is tried with."""
ELSEWHERE = {
    "utils.gemm.sm100.epilogue_tma_store": "makes its parts by tma_partition and cute.copy",
    "utils.epilogue_tma_store": "the same function",
    "utils.scale_tma_partition": "is tma_partition",
    "experimental.copy": "of other atoms; it is cute.copy",
    "nvgpu.tcgen05.get_s2t_smem_desc_tensor": "of other atoms: tests/nvgpu/test_s2t_copies.py",
}
KNOWN = {"type", "swizzle", "order", "box", "alignment"}
UNKNOWN = {
    by_tilelang_load: {"order", "alignment"}, by_tilelang_store: {"order", "alignment"},
    by_tilelang_reduction: {"order", "alignment"},
}  # fmt: skip
"""What a call does not see: tilelang's take coordinates and no part of the tensor, and addresses that only run time
knows (the simulator refuses those that are not aligned)."""


def takes_an_atom_and_memory(function):
    given = set(inspect.signature(function).parameters)
    atom = any(re.search(r"(^|_)atom(_[a-z])?$|^tma_desc$", name) for name in given)
    return atom and ({"src", "dst"} <= given or bool(given & {"smem_tensor", "smem_ptr", "sC", "tCsS"}))


def test_no_function_that_takes_an_atom_and_memory_is_left_out():
    found = set()
    for module, name, value in names():
        if inspect.isfunction(inspect.unwrap(value)) and takes_an_atom_and_memory(value):
            short = module.removeprefix("numba_cute").removeprefix(".").replace("nvgpu.cpasync", "cpasync")
            found.add(f"{short.replace('tilelang.cpasync', 'tilelang')}.{name}".removeprefix("."))
    assert found == CALLS.keys() | ELSEWHERE.keys()


@functools.cache
def kernel_of(call, dtype, lay, bits, at, align):
    swizzle = None if bits is None else swizzled(bits)
    call, lay = traced(call), lay()

    @cuda.jit
    def kernel(atom, coords):
        smem = utils.SmemAllocator()
        bar = smem.allocate_array(cute.Int64, 2)
        if cute.const_expr(at):
            smem.allocate(at)
        s = smem.allocate_tensor(dtype, lay, align, swizzle)
        call(atom, s, cute.local_tile(coords, (64, 64), (0, 0)), bar)

    return kernel


def half(*_):
    """Half of the tile, where the other half is not."""
    return cute.make_layout((64, 32), stride=(32, 1))


def swizzled(bits):
    return cute.make_swizzle(bits, 4, 3)


MISMATCHES = {  # its kind; what the atom is made for, and what the kernel allocates; what is said
    "another type": ("type", (rows, None, np.float16), (rows, None, cute.BFloat16), "BFloat16, .* made for Float16"),
    "a wider type": ("type", (rows, None, np.float16), (rows, None, cute.Float32), "Float32, .* made for Float16"),
    "no swizzle": ("swizzle", (rows, 3, np.float16), (rows, None, cute.Float16), "no swizzle, but .* swizzle S<3,4,3>"),
    "a swizzle": ("swizzle", (rows, None, np.float16), (rows, 3, cute.Float16), "S<3,4,3>, but .* for no swizzle"),
    "another": ("swizzle", (rows, 3, np.float16), (rows, 2, cute.Float16), "S<2,4,3>, but .* for the .* S<3,4,3>"),
    "columns for rows": ("order", (rows, None, np.float16), (columns, None, cute.Float16), "coordinates .*, but"),
    "the whole for halves": (
        "order", (halves, None, np.float16), (rows, None, cute.Float16), "coordinates .*, but|copies 2048"
    ),
    "halves for the whole": (
        "order", (rows, None, np.float16), (halves, None, cute.Float16), "coordinates .*, but|copies 4096"
    ),
    "a part": ("box", (rows, None, np.float16), (half, None, cute.Float16), "elements|copies 4096|both be the whole"),
    "16 bytes on": ("alignment", (rows, None, np.float16), (rows, None, cute.Float16), "aligned to 128 bytes"),
}  # fmt: skip


def arguments(op, made_for):
    lay, bits, dtype = made_for
    array = aligned((64, 64), dtype)
    held = lay() if bits is None else cute.make_composed_layout(swizzled(bits), 0, lay())
    return tuple(cpasync.make_tiled_tma_atom(OPS[op], from_dlpack(array, assumed_align=16), held, TILE))


def cases():
    """All mismatches for copy, of which all others are made; for those one of each kind that they know."""
    for call, *ops in CALLS.values():
        seen = set()
        for op in ops:
            for name, (kind, *_) in MISMATCHES.items():
                if kind in UNKNOWN.get(call, ()) or call is not by_copy and (op, kind) in seen:
                    continue
                seen.add((op, kind))
                yield pytest.param(call, op, name, id=f"{call.__name__}-{op}-{name}")


@pytest.mark.parametrize("call, op, mismatch", list(cases()))
def test_what_an_atom_was_not_made_for_is_refused(call, op, mismatch):
    kind, made_for, (lay, bits, dtype), says = MISMATCHES[mismatch]
    kernel = kernel_of(call, dtype, lay, bits, *((16, 16) if kind == "alignment" else (0, 1024)))
    given = arguments(op, made_for)
    said = []
    for engine in (lambda: cute.compile(kernel, given, arch="sm_90a"), lambda: cute.simulate(kernel)[1, 32](*given)):
        with pytest.raises(cute.CuteError, match=says) as error:
            engine()
        said.append(str(error.value).split(" in kernel ")[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("form", [(rows, None), (columns, None), (halves, None), (halves, 2), (columns, 3)])
@pytest.mark.parametrize("op", ["load", "store"])
def test_what_it_was_made_for_is_taken(op, form):
    lay, bits = form
    array = aligned((64, 64), np.float16)
    tensor = from_dlpack(array if lay is not columns else array.T, assumed_align=16)
    held = lay() if bits is None else cute.make_composed_layout(swizzled(bits), 0, lay())
    given = tuple(cpasync.make_tiled_tma_atom(OPS[op], tensor, held, TILE))
    for call in (by_block, by_partition if op == "load" else by_tilelang_store):
        kernel = kernel_of(call, cute.Float16, lay, bits, 0, 1024)
        assert "cp.async.bulk.tensor" in cute.compile(kernel, given, arch="sm_90a").ptx


@cuda.jit
def reinterpreted(atom, tensor, swizzle):
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(cute.BFloat16, cute.make_layout((64, 64), stride=(64, 1)), 1024, None)
    meant = cute.make_tensor(cute.recast_ptr(s.iterator, swizzle, cute.Float16), s.layout)
    bar = smem.allocate_array(cute.Int64, 1)
    block_copy(atom, cute.local_tile(tensor, (64, 64), (0, 0)), meant, tma_bar_ptr=bar)


def test_bits_that_are_meant_are_said():
    atom, tensor = arguments("load", (rows, 3, np.float16))
    assert "cp.async.bulk.tensor" in cute.compile(reinterpreted, (atom, tensor, swizzled(3)), arch="sm_90a").ptx
    with pytest.raises(cute.CuteError, match="with no swizzle"):
        cute.compile(reinterpreted, (atom, tensor, None), arch="sm_90a")
