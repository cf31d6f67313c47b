# SPDX-License-Identifier: Apache-2.0
"""Launches: clusters, large shared memory, tensor maps by value, prepared calls, and what is refused before them."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute import arch, utils
from numba_cute.compiler.host.arguments import value_arguments
from numba_cute.compiler.host.facts import required_smem
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

BIG = 100 * 1024


@cute.cluster_shape(2)
@cuda.jit
def ranks(out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = arch.block_idx_in_cluster()


@cuda.jit
def plain_ranks(out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = arch.block_idx_in_cluster()


@cuda.jit
def big(out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    smem.allocate(BIG, 128)
    last = smem.allocate_tensor(cute.Int32, cute.make_layout(32), 128)
    last[tidx] = 31 - tidx
    arch.sync_threads()
    out[tidx] = last[31 - tidx]


@cuda.jit
def tma_tile(tma, source, out):
    tidx, _, _ = arch.thread_idx()
    smem = utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Int32, cute.make_layout((32, 32), stride=(32, 1)), 128)
    bar = smem.allocate_array(cute.Int64, 1)
    if tidx == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(bar, 32 * 32 * 4)
    tiles = cute.local_tile(source, (32, 32), (None, None))
    to_smem, from_gmem = cpasync.tma_partition(
        tma, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(tiles, 0, 2)
    )
    cute.copy(tma, from_gmem[None, 2, 1], to_smem, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for r in range(32):
        out[r, tidx] = tile[r, tidx]


def test_clusters_of_the_kernel(run):
    out = np.zeros(8, np.int32)
    run(ranks, 8, 32, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [0, 1] * 4))


def test_a_kernel_with_a_cluster_makes_another_with_its_own(run):
    fours, out = cute.cluster_shape(4)(ranks), np.zeros(8, np.int32)
    want = [0, 1, 2, 3] * 2
    run(fours, 8, 32, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))
    again = np.zeros(8, np.int32)
    run(ranks, 8, 32, (again,), outputs=[again], check=lambda: np.testing.assert_array_equal(again, [0, 1] * 4))


def test_clusters_of_the_launch(run):
    out = np.zeros(8, np.int32)
    want = [0, 1, 2, 3] * 2
    run(plain_ranks, 8, 32, (out,), outputs=[out], cluster=4, check=lambda: np.testing.assert_array_equal(out, want))


def test_more_than_48_kib_of_shared_memory(run):
    out = np.zeros(32, np.int32)
    want = np.arange(32)
    run(big, 1, 32, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, want))


def test_tensor_map_by_value(run, rng):
    source = rng.integers(0, 1 << 30, (256, 64), np.int32)
    out = np.zeros((32, 32), np.int32)
    made = []

    def atom(place):
        layout = cute.make_layout((32, 32), stride=(32, 1))
        tensor = from_dlpack(place(source), assumed_align=16)
        made[:] = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, layout, (32, 32))
        return made[0]

    def check():
        np.testing.assert_array_equal(out, source[64:96, 32:64])

    run(tma_tile, 1, 32, (atom, lambda place: made[1], out), outputs=[out], check=check)


def test_what_the_allocators_take_is_read_from_the_code():
    compiled = cute.compile(big, (np.zeros(32, np.int32),))
    assert compiled.resources.dynamic_shared == BIG + 128 == required_smem(compiled.ptx)


@cute.struct
class Storage:
    words: cute.struct.MemRange[cute.Int32, 32]


@cuda.jit
def size_of(storage, out):
    if cuda.threadIdx.x == 0:
        out[0] = storage.size_in_bytes()


def test_a_struct_type_is_an_argument(run):
    out = np.zeros(1, np.int32)
    run(size_of, 1, 32, (Storage, out), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [128]))


@cuda.jit
def unless_none(a, nothing, out):
    if arch.thread_idx()[0] == 0:
        out[0] = a if nothing is None else 0


def test_none_is_an_argument_of_a_kernel_of_this_library(run):
    out = np.zeros(1, np.int32)
    run(unless_none, 1, 32, (np.int32(7), None, out), outputs=[out],
        check=lambda: np.testing.assert_array_equal(out, [7]))  # fmt: skip


def test_packing_a_struct_type_leaves_it_alone():
    """A class remembers nothing: it belongs to the user."""
    before = dict(vars(Storage))
    assert value_arguments(typeof(Storage), Storage) == value_arguments(typeof(Storage), Storage) == ()
    assert dict(vars(Storage)) == before


@pytest.mark.parametrize("shape", [(0,), (2, 2, 2, 2), (32,), (4, 8), ("2",)])
def test_cluster_shapes_that_no_gpu_has(shape):
    with pytest.raises(cute.CuteError, match="cluster="):
        cute.cluster_shape(*shape)


@pytest.mark.gpu
class TestOnTheGpu:
    """What only a real launch can refuse, or do."""

    @pytest.fixture(autouse=True)
    def device(self):
        self.torch = pytest.importorskip("torch", reason="device arrays are made with torch")
        if not cuda.is_available():
            pytest.skip("needs a GPU")

    def zeros(self, n):
        return self.torch.zeros(n, dtype=self.torch.int32, device="cuda")

    @pytest.mark.parametrize("kernel", [ranks, big], ids=["cluster", "smem"])
    def test_plain_launch_syntax(self, kernel):
        out = self.zeros(32)
        kernel[2 if kernel is ranks else 1, 32](out)
        self.torch.cuda.synchronize()
        assert out[1] == 1

    def test_a_prepared_call_launches_again_and_again(self):
        out = self.zeros(4)
        call = cute.launch(plain_ranks, grid=4, block=32, cluster=2).prepare(out)
        for _ in range(3):
            out.fill_(-1)
            call()
            self.torch.cuda.synchronize()
            assert out.tolist() == [0, 1, 0, 1]

    def test_torch_streams(self):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            out = self.zeros(32)
            also = self.zeros(32)
        cute.launch(big, grid=1, block=32, stream=stream)(out)
        big[1, 32, stream.cuda_stream](also)
        stream.synchronize()
        assert out.tolist() == also.tolist() == list(range(32))

    def test_refusals(self):
        out = self.zeros(32)
        with pytest.raises(cute.CuteError, match="grid=.3, 1, 1.: x = 3 is not a multiple of the cluster's 2"):
            ranks[3, 32](out)
        with pytest.warns(cute.LaunchWarning, match=f"smem=1000: the kernel's allocations take {BIG + 128} bytes"):
            big[1, 32, 0, 1000](out)
        with pytest.raises(cute.CuteError, match="CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE") as raised:
            cute.launch(big, grid=10000, block=32, cooperative=True)(out)
        assert raised.value.error_code.name == "cudaErrorCooperativeLaunchTooLarge"
        with pytest.raises(cute.CuteError, match="smem=300000: too much shared memory"):
            big[1, 32, 0, 300000](out)
        with pytest.raises(cute.CuteError, match="cluster=.4, 1, 1.: the kernel is compiled for clusters of .2, 1, 1."):
            cute.launch(ranks, grid=4, block=32, cluster=4)(out)
        with pytest.raises(cute.CuteError, match="prepare.. takes device arrays"):
            cute.launch(big, grid=1, block=32).prepare(np.zeros(32, np.int32))
