# SPDX-License-Identifier: Apache-2.0
"""What utils does on the host: capacities, LayoutEnum, 8-bit floats, and whole tiles by TMA."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.compiler.host import ptxas
from numba_cute.nvgpu import cpasync
from numba_cute.nvgpu.warpgroup import OperandMajorMode
from numba_cute.runtime import from_dlpack
from numba_cute.utils import hardware_info

E4M3, E5M2 = cute.Float8E4M3FN, cute.Float8E5M2


@pytest.mark.parametrize(
    ("target", "kib"),
    [("sm_80", 163), ("80", 163), ("sm_86", 99), ("sm_89", 99), ("sm_90", 227), ("sm_90a", 227), ("sm_100a", 227),
     ("sm_120a", 99)],
)  # fmt: skip
def test_shared_memory_capacity_of_a_target(target, kib):
    assert utils.get_smem_capacity_in_bytes(target) == kib * 1024


def test_an_unknown_target_is_refused():
    with pytest.raises(cute.CuteError, match="'sm_42': not a known target; use one of sm_80"):
        utils.get_smem_capacity_in_bytes("sm_42")
    with pytest.raises(cute.CuteError, match="is not compiled"):
        utils.get_kernel_smem_size(test_an_unknown_target_is_refused)


def test_a_missing_gpu_is_said_to_be_missing():
    with pytest.raises(cute.CuteError, match="device_id 4096: no such GPU here"):
        utils.HardwareInfo(4096)


@pytest.mark.parametrize("of, on", [("sm_80", "sm_86"), ("sm_90", "sm_90a"), ("sm_90", "sm_100a"), ("sm_90", "sm_120")])
def test_the_kernel_that_is_asked_how_many_clusters_there_are_is_assembled_for_later_gpus(of, on):
    text = hardware_info.probe(of)
    assert text.endswith(b"}\n\0")  # the driver reads up to there
    assert ptxas.assemble(text[:-1].decode(), on, None)[0].startswith(b"\x7fELF")


@pytest.mark.gpu
def test_the_capacity_of_this_gpu_is_the_drivers():
    if not cuda.is_available():
        pytest.skip("needs a GPU to ask")
    major, minor = cuda.get_current_device().compute_capability
    info = utils.HardwareInfo()
    assert utils.get_smem_capacity_in_bytes() == utils.get_smem_capacity_in_bytes(f"sm_{major}{minor}")
    sms = info.get_device_multiprocessor_count()
    assert info.get_max_active_clusters(1) == sms and 0 < info.get_max_active_clusters(2) <= sms // 2
    assert info.get_l2_cache_size_in_bytes() > 1 << 20


def test_layout_enum_says_how_a_matrix_lies():
    rows = from_dlpack(np.zeros((4, 8), np.float32))
    columns = from_dlpack(np.zeros((4, 8), np.float32, order="F"))
    row, column = map(utils.LayoutEnum.from_tensor, (rows, columns))
    assert (row, column) == (utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR)
    assert utils.LayoutEnum.from_tensor(rows.mark_layout_dynamic(1)) is row
    for o in (row, column):
        k_major = o is row
        assert [o.is_k_major_a(), o.is_k_major_b(), o.is_n_major_c()] == [k_major] * 3
        assert [o.is_m_major_a(), o.is_n_major_b(), o.is_m_major_c()] == [not k_major] * 3
        assert o.mma_major_mode() is o.sm90_mma_major_mode()
    assert row.mma_major_mode() is OperandMajorMode.K and column.mma_major_mode() is OperandMajorMode.MN
    with pytest.raises(cute.CuteError, match="neither mode is contiguous"):
        utils.LayoutEnum.from_tensor(from_dlpack(np.zeros((4, 8), np.float32)[:, ::2]))


def test_fp8_dtypes_are_known():
    assert [d for d in (E4M3, E5M2, cute.Float16, cute.Int8, "e4m3") if utils.is_fp8_dtype(d)] == [E4M3, E5M2]


@pytest.mark.parametrize("dtype", [E4M3, E5M2], ids=repr)
@pytest.mark.parametrize("storage", [np.uint8, np.int8])
def test_a_tensor_of_8_bit_floats_over_bytes(dtype, storage, rng):
    bits = np.zeros((8, 16), storage)
    source = rng.standard_normal((8, 16), dtype=np.float32) * 30
    tensor = utils.create_cute_tensor_for_fp8(bits, dtype, 1, source)
    assert tensor.element_type == dtype
    assert tensor.stride[1] == 1 and not cute.is_static(tensor.layout)
    np.testing.assert_array_equal(
        bits.view(dtype.numpy).astype(np.float32), source.astype(dtype.numpy).astype(np.float32)
    )


def test_a_tensor_of_other_types_keeps_them():
    values = np.zeros((4, 4), ml_dtypes.bfloat16)
    tensor = utils.create_cute_tensor_for_fp8(values, cute.BFloat16, 1, np.full((4, 4), 3.0, np.float32))
    assert tensor.element_type == cute.BFloat16 and (values == 3).all()
    with pytest.raises(cute.CuteError, match="of another width than Float8E4M3FN"):
        utils.create_cute_tensor_for_fp8(np.zeros((4, 4), np.float32), E4M3, 1)
    with pytest.raises(cute.CuteError, match=r"shape \(4, 4\), but storage_tensor has \(4, 8\)"):
        utils.create_cute_tensor_for_fp8(np.zeros((4, 8), np.uint8), E4M3, 1, np.zeros((4, 4), np.float32))


@pytest.mark.parametrize(("size", "bound", "want"), [(1, 128, 1), (96, 128, 32), (4096, 128, 128), (4096, 16, 16)])
def test_divisibility_is_the_largest_power_of_two(size, bound, want):
    assert utils.get_divisibility(size, bound) == want


def test_divisibility_needs_positive_sizes():
    with pytest.raises(cute.CuteError, match="contiguous_dim_size 0"):
        utils.get_divisibility(0)
    with pytest.raises(cute.CuteError, match="upper_bound 3"):
        utils.get_divisibility(4, 3)


TILE = (32, 64)
PLACE = cute.make_layout(TILE, stride=(64, 1))


@cuda.jit
def through_smem(load, source, store, target):
    x, y, _ = arch.block_idx()
    smem = utils.SmemAllocator()
    buffer = smem.allocate_tensor(cute.Float16, PLACE, 128)
    bar = smem.allocate(cute.Int64)
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 32 * 64 * 2)
    arch.sync_warp()
    utils.block_copy(load, cute.local_tile(source, TILE, (y, x)), buffer, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    utils.block_copy(store, buffer, cute.local_tile(target, TILE, (y, x)))
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def test_block_copy_moves_whole_tiles_both_ways(run, rng):
    a = rng.standard_normal((80, 160)).astype(np.float16)
    b = np.zeros_like(a)

    def atom(op, array, which):
        return lambda place: cpasync.make_tiled_tma_atom(op, from_dlpack(place(array)), PLACE, TILE)[which]

    load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    args = [atom(load, a, 0), atom(load, a, 1), atom(store, b, 0), atom(store, b, 1)]
    run(through_smem, (3, 3), 32, args, outputs=(b,), check=lambda: np.testing.assert_array_equal(a, b))


PAIR = cute.make_layout(2)


@cute.cluster_shape(2, 1)
@cuda.jit
def shared_by_two(load, source, out):
    x, _, _ = arch.block_idx()
    lane, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    buffer = smem.allocate_tensor(cute.Float16, PLACE, 128)
    bar = smem.allocate(cute.Int64)
    if arch.elect_one():
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 32 * 64 * 2)
    arch.cluster_arrive()
    arch.cluster_wait()
    utils.block_copy(
        load, cute.local_tile(source, TILE, (0, 0)), buffer, tma_bar_ptr=bar, mcast_mask=3,
        cta_coord=arch.block_idx_in_cluster(), cta_layout=PAIR,
    )  # fmt: skip
    arch.mbarrier_wait(bar, 0)
    for i in range(lane, 32 * 64, 32):
        out[x, i % 32, i // 32] = buffer[i % 32, i // 32]
    arch.cluster_arrive()
    arch.cluster_wait()


def test_block_copy_shares_a_tile_by_multicast(run, rng):
    a = rng.standard_normal(TILE).astype(np.float16)
    out = np.zeros((2, *TILE), np.float16)

    def atom(which):
        op = cpasync.CopyBulkTensorTileG2SMulticastOp()
        return lambda place: cpasync.make_tiled_tma_atom(op, from_dlpack(place(a)), PLACE, TILE, 2)[which]

    args = [atom(0), atom(1), lambda place: from_dlpack(place(out))]
    run(shared_by_two, (2, 1), 32, args, outputs=(out,), check=lambda: np.testing.assert_array_equal(out, [a, a]))


def test_block_copy_says_what_it_takes():
    atom, coords = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), from_dlpack(np.zeros((80, 160), np.float16), 16), PLACE, TILE
    )
    with pytest.raises(cute.CuteError, match="one must be in shared memory"):
        utils.block_copy(atom, coords, coords)
    with pytest.raises(cute.CuteError, match="is not a TMA atom"):
        utils.block_copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16), coords, coords)
    with pytest.raises(cute.CuteError, match="dst 3 is not a tensor"):
        utils.block_copy(atom, coords, 3)
