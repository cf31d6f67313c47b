# SPDX-License-Identifier: Apache-2.0
"""Copies with order, scope and cache hints: they move what they say, as the instruction that they say."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, nvgpu, utils
from numba_cute.nvgpu import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyR2SOp,
    CopyS2ROp,
    L2PrefetchSize,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    SharedSpace,
    StoreCacheMode,
)
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError

THREADS = 4


@cuda.jit
def through(load, store, to_smem, from_smem, tile, src, dst):
    """dst = src, a row for each thread, through registers and shared memory by the four atoms; `tile`: (one copy,
    repetitions)."""
    tidx, _, _ = arch.thread_idx()
    s = utils.SmemAllocator().allocate_tensor(src.element_type, src.layout, 128)
    mine = cute.composition(src[tidx, None], tile)
    here, there = cute.composition(s[tidx, None], tile), cute.composition(dst[tidx, None], tile)
    r, q = cute.make_fragment_like(mine), cute.make_fragment_like(mine)
    here.fill(0)
    cute.copy(load, mine, r)
    cute.copy(to_smem, r, here)
    cute.copy(from_smem, here, q)
    cute.copy(store, q, there)


def run_through(run, rng, dtype, bits, load=None, store=None, to_smem=None, from_smem=None):
    values = max(1, bits // dtype.width)
    count = max(32 // dtype.bytes, values)
    a = rng.integers(0, 100, (THREADS, count)).astype(dtype.numpy)
    b = np.empty_like(a)

    def check():
        np.testing.assert_array_equal(b.view(np.uint8), a.view(np.uint8))

    def aligned(array):
        return lambda place: cute.recast_tensor(from_dlpack(place(array), assumed_align=16), dtype)

    ops = (load or CopyG2ROp(), store or CopyR2GOp(), to_smem or CopyR2SOp(), from_smem or CopyS2ROp())
    atoms = [cute.make_copy_atom(op, dtype, bits) for op in ops]
    args = [*atoms, cute.make_layout((values, count // values)), aligned(a), aligned(b)]
    run(through, 1, THREADS, args, outputs=[b], check=check)


Order, S, E = MemoryOrder, MemoryScope, CacheEvictionPriority


@pytest.mark.parametrize(
    "load, store",
    [
        (CopyG2ROp(), CopyR2GOp()),
        (CopyG2ROp(invariant=True), CopyR2GOp(l1c_evict_priority=E.NO_ALLOCATE)),
        (CopyG2ROp(Order.CONSTANT, l1c_evict_priority=E.EVICT_LAST), CopyR2GOp(Order.VOLATILE)),
        (CopyG2ROp(Order.ACQUIRE, S.GPU), CopyR2GOp(Order.RELEASE, S.SYS)),
        (CopyG2ROp(Order.RELAXED, S.CLUSTER), CopyR2GOp(Order.RELEASE, S.CLUSTER, E.EVICT_FIRST)),
        (CopyG2ROp(load_cache_mode=LoadCacheMode.GLOBAL), CopyR2GOp(store_cache_mode=StoreCacheMode.STREAMING)),
        (CopyG2ROp(l2_prefetch_size=L2PrefetchSize.SIZE_128B, l1c_evict_priority=E.EVICT_FIRST), CopyR2GOp()),
    ],
    ids=range(7),
)
def test_global_memory_is_copied_with_every_kind_of_hint(run, rng, load, store):
    run_through(run, rng, cute.Float32, 128, load, store)


@pytest.mark.parametrize(
    "to_smem, from_smem",
    [(CopyR2SOp(Order.RELEASE, S.CTA), CopyS2ROp(Order.ACQUIRE, S.CTA)),
     (CopyR2SOp(Order.VOLATILE), CopyS2ROp(Order.RELAXED, S.CTA)),
     (CopyR2SOp(shared_space=SharedSpace.CLUSTER), CopyS2ROp(Order.ACQUIRE, S.CLUSTER, SharedSpace.CLUSTER))],
    ids=range(3),
)  # fmt: skip
def test_shared_memory_is_copied_in_order(run, rng, to_smem, from_smem):
    run_through(run, rng, cute.Float32, 64, None, None, to_smem, from_smem)


TYPES = [cute.Int8, cute.Float8E4M3FN, cute.Float32, cute.Float64]
WIDTHS = [(t, bits) for t in TYPES for bits in (16, 128)]
WIDTHS = [*WIDTHS[::3], *((cute.BFloat16, b) for b in (0, 8, 32, 64, 256))]


@pytest.mark.parametrize("dtype, bits", WIDTHS, ids=str)
def test_every_width_and_type_is_copied(run, rng, dtype, bits):
    hints = CopyG2ROp(l1c_evict_priority=E.EVICT_FIRST), CopyR2GOp(l1c_evict_priority=E.EVICT_LAST)
    run_through(run, rng, dtype, bits, *hints, CopyR2SOp(Order.RELAXED), CopyS2ROp(Order.RELAXED))


@cuda.jit
def loading(atom, t, out):
    tidx, _, _ = arch.thread_idx()
    mine = t[tidx, None]
    r = cute.make_fragment_like(mine)
    cute.copy(atom, mine, r)
    cute.autovec_copy(r, out[tidx, None])


def ptx_of(op):
    arrays = [from_dlpack(np.zeros((4, 4), np.float32), assumed_align=16) for _ in range(2)]
    return cute.compile(loading, (cute.make_copy_atom(op, cute.Float32, 128), *arrays), arch="sm_90a").ptx


@pytest.mark.parametrize(
    "op, text",
    [
        (CopyG2ROp(invariant=True), "ld.global.nc.v4.b32"),
        (CopyG2ROp(Order.ACQUIRE, S.GPU), "ld.acquire.gpu.global.v4.b32"),
        (CopyG2ROp(Order.VOLATILE, l1c_evict_priority=E.NO_ALLOCATE), "ld.relaxed.sys.global.L1::no_allocate.v4.b32"),
        (CopyG2ROp(load_cache_mode=LoadCacheMode.NONE), "ld.global.cv.v4.b32"),
        (CopyG2ROp(l2_prefetch_size=L2PrefetchSize.SIZE_256B), "ld.global.L2::256B.v4.b32"),
    ],
    ids=range(5),
)
def test_the_instruction_says_what_the_operation_says(op, text):
    assert text in ptx_of(op)


def test_options_may_be_given_to_make_copy_atom():
    atom = cute.make_copy_atom(CopyG2ROp(), cute.Float32, 128, l1c_evict_priority=E.EVICT_FIRST, invariant=True)
    assert atom.op == CopyG2ROp(l1c_evict_priority=E.EVICT_FIRST, invariant=True)
    with pytest.raises(CuteError, match=r"CopyUniversalOp\(\) has no option invariant"):
        cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, 128, invariant=True)


@pytest.mark.parametrize(
    "make, why",
    [
        (
            lambda: CopyG2ROp(Order.RELEASE),
            "memory_order .* must be WEAK, RELAXED, ACQUIRE or VOLATILE",
        ),
        (lambda: CopyR2GOp(Order.ACQUIRE), "must be WEAK, RELAXED, RELEASE or VOLATILE for stores"),
        (lambda: CopyG2ROp("weak"), "memory_order 'weak' must be a MemoryOrder"),
        (lambda: CopyG2ROp(Order.ACQUIRE, invariant=True), "excludes memory_order"),
        (
            lambda: CopyG2ROp(Order.RELAXED, load_cache_mode=LoadCacheMode.GLOBAL),
            "load_cache_mode .* is of weak",
        ),
        (
            lambda: CopyR2GOp(l1c_evict_priority=E.EVICT_LAST, store_cache_mode=StoreCacheMode.GLOBAL),
            "store_cache_mode",
        ),
        (lambda: cute.make_copy_atom(CopyS2ROp(), cute.Float32, 48), "num_bits_per_copy 48 must be 8, 16, 32"),
    ],
)
def test_what_makes_no_sense_is_refused(make, why):
    with pytest.raises(CuteError, match=why):
        make()


def test_the_wrong_memory_is_refused():
    atom = cute.make_copy_atom(CopyS2ROp(), cute.Float32, 128)
    arrays = [from_dlpack(np.zeros((4, 4), np.float32)) for _ in range(2)]
    with pytest.raises(CuteError, match="src .* must lie in smem for CopyS2ROp"):
        cute.simulate(loading)[1, 4](atom, *arrays)


def test_fields_have_names():
    fields = nvgpu.warpgroup.Field
    assert nvgpu.normalize_field_to_ir_name(fields.ACCUMULATE, fields) == "accum_c"
    assert nvgpu.normalize_field_to_ir_name("neg_a", fields) == "neg_a"
    with pytest.raises(CuteError, match="field 'x' is none of 'accum_c'"):
        nvgpu.normalize_field_to_ir_name("x", fields)


def test_read_only_loads_exist_for_every_register():
    assert {case["width"] for case in isa.ld_global_nc.cases} == {8, 16, 32, 64}


@cuda.jit
def tiled_through(tiled, src, dst):
    tidx, _, _ = arch.thread_idx()
    mine = tiled.get_slice(tidx)
    cute.copy(tiled, mine.partition_S(src), mine.partition_D(dst))


def test_a_tile_smaller_than_its_atom_has_layouts_but_makes_no_copy():
    atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, 128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(4), cute.make_layout(2))
    assert cute.size(tiled.layout_src_tv_tiled, mode=[1]) == 4
    arrays = [from_dlpack(np.zeros(8, np.float32), assumed_align=16) for _ in range(2)]
    with pytest.raises(CuteError, match="has 2 values a thread, which is not a multiple of the copy atom's 4"):
        cute.simulate(tiled_through)[1, 4](tiled, *arrays)
