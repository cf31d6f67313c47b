# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that a kernel changes: one atom, and in each block another tensor."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, utils
from numba_cute.isa.facts.tensormap import TensorMapRecord
from numba_cute.isa.facts.tensormap_bits import pack, replace_field, unpack
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError, traced
from numba_cute.sim import RaceError, SimError
from numba_cute.utils import TensorMapUpdateMode

from .test_tma_modes import LOAD, STORE, aligned, atoms, flipped, tensor
from .tma_kernels import by_tiles, one_mode

TILE = (8, 32)
LAYOUT = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout(TILE, stride=(32, 1)))
GROUPS = [(24, 64), (8, 32), (19, 100), (1, 4)]
"""Shapes of the tensors, one for each block; their rows follow each other in one array."""


@traced
def of_group(base, place, rows, columns):
    """The tensor of a group: (rows, columns) from element `place` of the array on."""
    lay = cute.make_layout((rows, columns), stride=(cute.Int64(columns), 1))
    return cute.make_tensor((base.iterator + place).align(16), lay)


@cuda.jit
def grouped(mode, load, src, store, dst, maps, groups, a, b, layout):
    """Block g copies group g of `a` to `b` with maps that it makes from those of other tensors."""
    g, warp = arch.block_idx()[0], arch.make_warp_uniform(arch.warp_idx())
    place, rows, columns = cute.Int32(groups[g, 0]), cute.Int32(groups[g, 1]), cute.Int32(groups[g, 2])
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(a.element_type, layout.outer, 1024, layout.inner, "s")
    shared = smem.allocate_tensor(cute.Uint8, cute.make_layout((128, 2)), 128, None, "shared maps")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    manager = utils.TensorMapManager(mode, 128)
    in_ptr = manager.get_tensormap_ptr(maps[None, 0, g].iterator)
    out_ptr = manager.get_tensormap_ptr(maps[None, 1, g].iterator)
    shared_in, shared_out = shared[None, 0].iterator, shared[None, 1].iterator
    if mode is TensorMapUpdateMode.SMEM:
        manager.init_tensormap_from_atom(load, shared_in, 0)
        manager.init_tensormap_from_atom(store, shared_out, 0)
    else:
        manager.init_tensormap_from_atom(load, in_ptr, 0)
        manager.init_tensormap_from_atom(store, out_ptr, 0)
    manager.fence_tensormap_initialization()
    real_in, real_out = of_group(a, place, rows, columns), of_group(b, place, rows, columns)
    manager.update_tensormap((real_in, real_out), (load, store), (in_ptr, out_ptr), 0, (shared_in, shared_out))
    one = cute.make_layout(1)
    tiles = cute.local_tile(src, (8, 32), (None, None))
    s_in, g_in = cpasync.tma_partition(load, 0, one, one_mode(s), cute.group_modes(tiles, 0, 2))
    out_tiles = cute.local_tile(dst, (8, 32), (None, None))
    s_out, g_out = cpasync.tma_partition(store, 0, one, one_mode(s), cute.group_modes(out_tiles, 0, 2))
    if warp == 0:
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
        arch.sync_warp()
        manager.fence_tensormap_update(in_ptr)
        manager.fence_tensormap_update(out_ptr)
        phase = 0
        desc_in = manager.get_tensormap_ptr(in_ptr, cute.AddressSpace.generic)
        desc_out = manager.get_tensormap_ptr(out_ptr, cute.AddressSpace.generic)
        for i in range((rows + 7) // 8):
            for j in range((columns + 31) // 32):
                if arch.elect_one():
                    arch.mbarrier_arrive_and_expect_tx(bar, 8 * 32 * 4)
                cute.copy(load, g_in[None, i, j], s_in[None], tma_bar_ptr=bar, tma_desc_ptr=desc_in)
                arch.mbarrier_wait(bar, phase)
                phase ^= 1
                cute.copy(store, s_out[None], g_out[None, i, j], tma_desc_ptr=desc_out)
                arch.cp_async_bulk_commit_group()
                arch.cp_async_bulk_wait_group(0)


@pytest.mark.parametrize("mode", TensorMapUpdateMode, ids=lambda m: m.name)
def test_each_block_copies_its_group_with_a_map_of_its_own(run, mode):
    template_in, template_out = aligned((64, 64), np.float32), aligned((64, 64), np.float32)
    sizes = [r * c for r, c in GROUPS]
    starts = np.cumsum([0, *(-(-n // 4) * 4 for n in sizes)])
    groups = np.array([(s, *g) for s, g in zip(starts, GROUPS)], np.int32)
    a, b = aligned((int(starts[-1]) + 8,), np.float32), aligned((int(starts[-1]) + 8,), np.float32)
    want = np.full_like(b, np.nan)
    for start, n in zip(starts, sizes):
        want[start : start + n] = a[start : start + n]
    maps = aligned((len(GROUPS), 2, 128), np.uint8)

    def check():
        np.testing.assert_array_equal(b, want)

    args = [mode, *atoms(LOAD, template_in, LAYOUT, TILE), *atoms(STORE, template_out, LAYOUT, TILE)]
    args += [lambda place: flipped(place, maps, 128), groups]
    args += [lambda place: tensor(place, a), lambda place: tensor(place, b), LAYOUT]
    run(grouped, len(GROUPS), 64, args, outputs=[b], check=check, arch="sm_90a")


@traced
def halve_rows(ptr):
    isa.tensormap_replace(ptr.toint(), cute.Uint32(2), ord=1, space="gmem", field="element_stride")


@cuda.jit
def changed(steps, load, src, maps, a, layout):
    """Copy a tile with a map in global memory, leaving out what is not in `steps`."""
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(a.element_type, layout, 128, None, "s")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    ptr = maps.iterator
    one = cute.make_layout(1)
    to, source = cpasync.tma_partition(load, 0, one, one_mode(s), by_tiles(src, layout.shape))
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        cpasync.copy_tensormap(load, ptr)
        cpasync.update_tma_descriptor(load, a, ptr)
        if "release" in steps:
            cpasync.fence_tma_desc_release()
    arch.sync_warp()
    if "acquire" in steps:
        cpasync.fence_tma_desc_acquire(ptr)
    if "late" in steps:
        if arch.elect_one():
            halve_rows(ptr)
            cpasync.fence_tma_desc_release()
        arch.sync_warp()
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(bar, cute.size_in_bytes(a.element_type, layout))
    cute.copy(load, source[None, 0], to[None], tma_bar_ptr=bar, tma_desc_ptr=ptr)
    arch.mbarrier_wait(bar, 0)


def simulate_changed(steps):
    lay = cute.make_layout((8, 32), stride=(32, 1))
    a, b = aligned((8, 64), np.float32), aligned((16, 64), np.float32)
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(a, assumed_align=16), lay, (8, 32))
    maps = from_dlpack(aligned((128,), np.uint8), assumed_align=128)
    cute.simulate(changed)[1, 32](steps, atom, coords, maps, from_dlpack(b, assumed_align=16), lay)


def test_a_map_that_is_released_and_acquired_is_used_in_silence():
    simulate_changed(("release", "acquire"))


@pytest.mark.parametrize(
    "steps, why",
    [
        (("release",), "missing tensor-map acquire: .* was never acquired by this block; call cpasync.fence"),
        (("release", "acquire", "late"), "missing tensor-map acquire: .* has changed since it was acquired"),
        (("acquire",), "missing tensor-map release: .* was not released; call cpasync.fence_tma_desc_release"),
    ],
    ids=lambda x: "_".join(x) if isinstance(x, tuple) else "",
)
def test_a_missing_fence_of_the_tensor_map_proxy_is_found(steps, why):
    with pytest.raises(RaceError, match=why):
        simulate_changed(steps)


RECORD = TensorMapRecord(cute.Float16, 1 << 20, (64, 32, 8), (128, 4096), (32, 4, 2), swizzle="64B", oob_fill="nan")
REPLACEMENTS = [
    ("global_address", 0, 1 << 30, {"address": 1 << 30}),
    ("global_dim", 1, 30, {"dims": (64, 30, 8)}),
    ("global_dim", 0, 1 << 32, {"dims": (1 << 32, 32, 8)}),
    ("global_stride", 1, 8192, {"strides_bytes": (128, 8192)}),
    ("box_dim", 2, 3, {"box": (32, 4, 3)}),
    ("element_stride", 1, 2, {"element_strides": (1, 2, 1)}),
    ("elemtype", 0, 10, {"dtype": cute.BFloat16}),
    ("swizzle_mode", 0, 3, {"swizzle": "128B"}),
    ("swizzle_mode", 0, 0, {"swizzle": "none"}),
    ("fill_mode", 0, 0, {"oob_fill": "zero"}),
    ("interleave_layout", 0, 1, {"interleave": "16B"}),
    ("rank", 0, 1, {"dims": (64, 32), "strides_bytes": (128,), "box": (32, 4), "element_strides": (1, 1)}),
]


@pytest.mark.parametrize("field, ord, value, means", REPLACEMENTS, ids=lambda x: x if isinstance(x, str) else "")
def test_replacing_a_field_gives_the_map_with_that_field(field, ord, value, means):
    from dataclasses import replace

    assert unpack(pack(RECORD)) == RECORD
    assert unpack(replace_field(pack(RECORD), field, ord, value)) == replace(RECORD, **means)


def test_atoms_of_swizzles_are_fields_of_their_own():
    wide = TensorMapRecord(cute.Float16, 1 << 20, (64, 32), (128,), (64, 4), swizzle="128B")
    for code, name in ((1, "128B_ATOM_32B"), (2, "128B_ATOM_32B_FLIP_8B"), (3, "128B_ATOM_64B")):
        assert unpack(replace_field(pack(wide), "swizzle_atomicity", 0, code)).swizzle == name


@traced
def replace_all(address, tensor):
    """Every field that can be set, on a map in shared or global memory."""
    isa.tensormap_replace(address, cute.Uint32(1), space="gmem", field="rank")
    isa.tensormap_replace(address, cute.Uint32(16), ord=0, space="gmem", field="box_dim")
    isa.tensormap_replace(address, cute.Uint32(4), ord=1, space="gmem", field="box_dim")
    isa.tensormap_replace(address, cute.Uint32(1), ord=1, space="gmem", field="element_stride")
    isa.tensormap_replace_code(address, value=2, space="gmem", field="elemtype")
    isa.tensormap_replace_code(address, value=0, space="gmem", field="interleave_layout")
    isa.tensormap_replace_code(address, value=2, space="gmem", field="swizzle_mode")
    isa.tensormap_replace_code(address, value=0, space="gmem", field="fill_mode")


@cuda.jit
def rebuilt(load, src, maps, a, out, layout):
    """A map of another type, box and swizzle made from the atom's."""
    smem = utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Uint32, layout.outer, 1024, layout.inner, "s")
    bar = smem.allocate_array(cute.Int64, 1, name="bar")
    ptr = maps.iterator
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        cpasync.copy_tensormap(load, ptr)
        cpasync.update_tma_descriptor(load, a, ptr)
        replace_all(ptr.toint(), a)
        cpasync.fence_tma_desc_release()
        arch.mbarrier_arrive_and_expect_tx(bar, 4 * 16 * 4)
    arch.sync_warp()
    cpasync.fence_tma_desc_acquire(ptr)
    if arch.elect_one():
        issue_raw(s, ptr, bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(arch.lane_idx(), 64, 32):
        out[i] = s[i]


@traced
def issue_raw(s, ptr, bar):
    isa.cp_async_bulk_tensor_g2s(s.iterator.address, ptr.toint(), (16, 2), bar.address, rank=2)


def test_every_field_of_a_map_can_be_changed_in_a_kernel(run):
    a, template, out = aligned((8, 64), np.uint32), aligned((64, 64), np.uint32), np.zeros(64, np.uint32)
    maps = aligned((128,), np.uint8)
    outer = cute.make_layout((4, 16), stride=(16, 1))
    lay = cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0, outer)

    def check():
        np.testing.assert_array_equal(out.reshape(16, 4).T, a[2:6, 16:32])

    args = [*atoms(LOAD, template, LAYOUT, TILE), lambda place: from_dlpack(place(maps), assumed_align=128)]
    args += [lambda place: tensor(place, a), lambda place: tensor(place, out), lay]
    run(rebuilt, 1, 32, args, outputs=[out], check=check, arch="sm_90a")


def test_a_map_that_the_kernel_spoiled_is_explained():
    lay = cute.make_layout((8, 32), stride=(32, 1))
    a, b = aligned((8, 64), np.float32), aligned((16, 63), np.float32)
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(a, assumed_align=16), lay, (8, 32))
    maps = from_dlpack(aligned((128,), np.uint8), assumed_align=128)
    with pytest.raises(SimError, match="stride of dimension 1 is 252 bytes; it must be a multiple of 16"):
        cute.simulate(changed)[1, 32](("release", "acquire"), atom, coords, maps, from_dlpack(b, assumed_align=16), lay)


@pytest.mark.parametrize(
    "target, words",
    [
        ("a tensor", "must be a Pointer to gmem or generic memory"),
        ("unaligned", "must be aligned to 128 bytes"),
    ],
)
def test_a_wrong_place_for_a_map_is_refused(target, words):
    lay = cute.make_layout((8, 32), stride=(32, 1))
    a = aligned((8, 64), np.float32)
    atom, _ = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(a, assumed_align=16), lay, (8, 32))
    where = from_dlpack(a) if target == "a tensor" else from_dlpack(a, assumed_align=16).iterator

    @cuda.jit
    def kernel(where):
        cpasync.fence_tma_desc_acquire(where)

    with pytest.raises(CuteError, match=words):
        cute.simulate(kernel)[1, 32](where)
    with pytest.raises(CuteError, match=words):
        cute.compile(kernel, (where,), arch="sm_90a")


@pytest.mark.parametrize("arch_name", ["sm_100a", "sm_120a"])
def test_maps_are_changed_on_later_families_too(arch_name):
    lay = cute.make_layout((8, 32), stride=(32, 1))
    a = aligned((8, 64), np.float32)
    atom, _ = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(a, assumed_align=16), lay, (8, 32))

    @cuda.jit
    def kernel(load, a, maps):
        cpasync.copy_tensormap(load, maps.iterator)
        cpasync.update_tma_descriptor(load, a, maps.iterator)
        cpasync.fence_tma_desc_release()

    maps = from_dlpack(aligned((128,), np.uint8), assumed_align=128)
    args = (atom, from_dlpack(a, assumed_align=16), maps)
    assert "tensormap.replace.tile.global_stride.global" in cute.compile(kernel, args, arch=arch_name).ptx
    with pytest.raises(CuteError, match="needs sm_90a or sm_100f"):
        cute.compile(kernel, args, arch="sm_90")


@cuda.jit
def strided(load, src, maps, a, stride, layout):
    """Copy a tile of a tensor whose strides only the launch knows, the contiguous mode's too."""
    own = cute.make_tensor(a.iterator, cute.make_layout((8, 64), stride=(64, stride)))
    changed_to(load, src, maps, own, layout)


@cute.jit
def changed_to(load, src, maps, a, layout):
    ptr = maps.iterator
    if arch.elect_one():
        cpasync.copy_tensormap(load, ptr)
        cpasync.update_tma_descriptor(load, a, ptr)
        cpasync.fence_tma_desc_release()


def test_a_contiguous_stride_of_run_time_is_checked_by_the_simulator():
    lay = cute.make_layout((8, 32), stride=(32, 1))
    a = aligned((8, 64), np.float32)
    atom, coords = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(a, assumed_align=16), lay, (8, 32))
    maps = from_dlpack(aligned((128,), np.uint8), assumed_align=128)
    args = (atom, coords, maps, from_dlpack(a, assumed_align=16))
    cute.simulate(strided)[1, 32](*args, 1, lay)
    with pytest.raises(CuteError, match=r"must have the stride 1 in mode 1.*it has 2 there"):
        cute.simulate(strided)[1, 32](*args, 2, lay)
    assert "tensormap.replace.tile.global_dim" in cute.compile(strided, (*args, 1, lay), arch="sm_90a").ptx
