# SPDX-License-Identifier: Apache-2.0
"""A peer's memory in the simulator is accessed by all that accesses one's own: against NumPy, for 2, 4 and 8 ranks."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack, from_multicast, from_symmetric
from numba_cute.seam import CuteError
from numba_cute.sim import OutOfBoundsError, PerRank, UninitializedReadError, simulate, symmetric
from numba_cute.utils import SmemAllocator, distributed

from . import signals

N = 32
RANKS = pytest.mark.parametrize("ranks", [2, 4, 8])


def test_symmetric_memory_lies_at_even_distances_and_is_kept_by_any_part_of_it():
    x = symmetric((3, 5), cute.Float16, 4)
    starts = [a.ctypes.data for a in x.arrays]
    assert len(set(np.diff(starts))) == 1 and x.peers.shape == (3, 5, 4)
    x.arrays[2][1, 4] = 7
    assert x.peers[1, 4, 2] == 7 and x.peers[..., 0].ctypes.data == starts[0]
    part = x.arrays[3][1:]
    part[...] = 1
    del x
    assert (part == 1).all()
    out = np.zeros((2, 5), np.float16)
    simulate(lambda part, out, rank: out.__setitem__((0, 0), part[0, 0]) if rank == 0 else None, ranks=4)[1, 1](
        PerRank(*[part] * 4), PerRank(*(out + 0 for _ in range(4))), PerRank(0, 1, 2, 3)
    )


@RANKS
@pytest.mark.parametrize("way", ["elements", "vectors", "atomics"])
def test_stores_to_peers(ranks, way):
    def kernel(peers, sig, rank, out):
        t, to = cuda.threadIdx.x, (rank + 1) % ranks
        theirs = peers[None, to]
        if cute.const_expr(way == "elements"):
            theirs[t] = rank + t
        elif cute.const_expr(way == "vectors"):
            r = cute.make_rmem_tensor(4, cute.Int32)
            for i in range(4):
                r[i] = rank + 4 * t + i
            if t < 8:
                cute.autovec_copy(r, cute.local_tile(theirs, (4,), (t,)))
        else:
            arch.atomic_add(theirs.iterator + t, rank + t, sem="relaxed", scope="sys")
        cuda.syncthreads()
        if t == 0:
            sig.put(to, 0, 1)
            sig.wait((rank + ranks - 1) % ranks, 0, 1)
        cuda.syncthreads()
        out[t] = peers[t, rank]

    x, outs = symmetric(N, cute.Int32, ranks), [np.zeros(N, np.int32) for _ in range(ranks)]
    simulate(kernel, ranks=ranks)[1, N](
        from_symmetric(x, assumed_align=16), signals(ranks), PerRank(*range(ranks)), PerRank(*outs)
    )
    for r in range(ranks):
        np.testing.assert_array_equal(outs[r], (r - 1) % ranks + np.arange(N))


@cuda.jit
def by_tma(put, at, get, at_too, sig, rank, out):
    """Each rank stores a tile to the next, or adds it, and loads the one that the rank before has stored."""
    t, n = cuda.threadIdx.x, sig.world
    smem = SmemAllocator()
    bar = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((4, N), stride=(N, 1)), 128)
    for i in range(4):
        tile[i, t] = 10 * rank + i
    if t == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.fence_proxy("async.shared", space="cta")
    cuda.syncthreads()
    there = cute.local_tile(at, (4, N, 1), (0, 0, (rank + 1) % n))[None, None, 0]
    here = cute.local_tile(at_too, (4, N, 1), (0, 0, rank))[None, None, 0]
    flat = cute.group_modes(tile, 0, 2)
    src, dst = cpasync.tma_partition(put, 0, cute.make_layout(1), flat, cute.group_modes(there, 0, 2))
    to, mine = cpasync.tma_partition(get, 0, cute.make_layout(1), flat, cute.group_modes(here, 0, 2))
    cute.copy(put, src, dst)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
    cuda.syncthreads()
    if t == 0:
        sig.put((rank + 1) % n, 0, 1)
        sig.wait((rank + n - 1) % n, 0, 1)
        arch.fence_proxy("async.global")
        arch.mbarrier_arrive_and_expect_tx(bar, 4 * N * 4)
    cuda.syncthreads()
    cute.copy(get, mine, to, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    for i in range(4):
        out[i, t] = tile[i, t]


STORE, ADD = cpasync.CopyBulkTensorTileS2GOp, cpasync.CopyReduceBulkTensorTileS2GOp


@pytest.mark.parametrize(("ranks", "store"), [(2, ADD), (4, STORE), (8, STORE)])
def test_tma_stores_and_adds_to_peers_and_loads(ranks, store):
    x, outs = symmetric((4, N), cute.Float32, ranks), [np.zeros((4, N), np.float32) for _ in range(ranks)]
    for a in x.arrays:
        a[...] = 1
    tensor, box = from_symmetric(x, assumed_align=16), cute.make_layout((4, N), stride=(N, 1))
    put, at = cpasync.make_tiled_tma_atom(store(), tensor, box, (4, N, 1))
    get, at_too = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, box, (4, N, 1))
    simulate(by_tma, ranks=ranks)[1, N](put, at, get, at_too, signals(ranks), PerRank(*range(ranks)), PerRank(*outs))
    for r in range(ranks):
        want = np.repeat(10 * ((r - 1) % ranks) + np.arange(4.0)[:, None], N, 1)
        np.testing.assert_array_equal(outs[r], want + (store is ADD))


@RANKS
def test_multimem_acts_on_all_ranks_memory(ranks):
    def kernel(everywhere, mine, sig, rank, sums):
        t = cuda.threadIdx.x
        mine[t] = (rank + 1) * (t + 1)
        cuda.syncthreads()
        if t == 0:
            sig.meet(0, 1)
        cuda.syncthreads()
        if t < 8:
            for i, x in enumerate(distributed.multimem_ld_reduce_4xf32(everywhere.iterator + 4 * t)):
                sums[4 * t + i] = x
        cuda.syncthreads()
        if t == 0:
            sig.meet(0, 2)
        cuda.syncthreads()
        if rank == 1 and t < 8:
            distributed.multimem_st(everywhere.iterator + 4 * t, *(cute.Float32(4.0 * t + i) for i in range(4)))

    x, sums = symmetric(N, cute.Float32, ranks), [np.zeros(N, np.float32) for _ in range(ranks)]
    simulate(kernel, ranks=ranks)[1, N](
        from_multicast(x, assumed_align=16), PerRank(*x.arrays), signals(ranks), PerRank(*range(ranks)), PerRank(*sums)
    )
    for r in range(ranks):
        np.testing.assert_array_equal(sums[r], ranks * (ranks + 1) // 2 * (np.arange(N) + 1))
        np.testing.assert_array_equal(x.arrays[r], np.arange(N))


@pytest.mark.parametrize(
    ("dtype", "load", "wide"),
    [
        (cute.BFloat16, distributed.multimem_ld_reduce_8xbf16, np.float32),
        (cute.Float16, distributed.multimem_ld_reduce_8xf16, np.float32),
        (cute.Float8E4M3FN, distributed.multimem_ld_reduce_16xe4m3, np.float16),
    ],
)
def test_multimem_adds_in_the_type_that_it_is_told(dtype, load, wide, rng):
    n = 16 // dtype.bytes

    def kernel(everywhere, rank, out):
        if rank == 0:
            for i, word in enumerate(load(everywhere.iterator)):
                out[i] = word

    x, out = symmetric(n, dtype, 4), [np.zeros(4, np.int32) for _ in range(4)]
    for a in x.arrays:
        a[...] = rng.normal(size=n).astype(a.dtype)
    simulate(kernel, ranks=4, arch="sm_100f")[1, 1](
        from_multicast(x, assumed_align=16), PerRank(*range(4)), PerRank(*out)
    )
    total = x.arrays[0].astype(wide)
    for a in x.arrays[1:]:
        total = total + a.astype(wide)
    np.testing.assert_array_equal(out[0].view(x.arrays[0].dtype), total.astype(x.arrays[0].dtype))


def test_multimem_counts_up_on_all_ranks():
    def kernel(everywhere, own):
        if cuda.threadIdx.x == 0:
            distributed.multimem_red_add1(everywhere.iterator, order="release", scope="sys")
            distributed.spin_lock_ld_lt_relaxed_wait(own.iterator, expected_val=4, scope="sys")

    x = symmetric(1, cute.Int32, 4)
    simulate(kernel, ranks=4)[1, N](from_multicast(x), PerRank(*map(from_dlpack, x.arrays)))
    assert [int(a[0]) for a in x.arrays] == [4] * 4


@pytest.mark.parametrize("checks", [True, False])
def test_memory_made_empty_knows_what_was_written_in_earlier_launches_and_by_the_host(checks):
    def put(peers, rank):
        peers[cuda.threadIdx.x, 1 - rank] = 1.0

    def get(peers, rank, out):
        t = cuda.threadIdx.x
        if peers[t, rank] > 0:
            out[t] = 1

    def read(x):
        simulate(get, ranks=2, checks=checks)[1, N](
            from_symmetric(x), PerRank(0, 1), PerRank(*(np.zeros(N, np.int32) for _ in range(2)))
        )

    x, y = (symmetric(N, cute.Float32, 2, empty=True) for _ in range(2))
    for _ in range(2 if checks else 0):
        with pytest.raises(UninitializedReadError, match="of rank 0 .* but no rank has written it"):
            read(x)
    simulate(put, ranks=2, checks=checks)[1, N](from_symmetric(x), PerRank(0, 1))
    y.peers[...] = 2
    read(x)
    read(y)


# refused


def test_memory_of_two_ranks_is_refused():
    x, y = np.zeros(N, np.int32), np.zeros(N, np.int32)
    kernel = simulate(lambda x: None, ranks=2)[1, 1]
    for given in (x, from_dlpack(x), PerRank(x, x), (x,), PerRank(x, x[1:]), PerRank(from_dlpack(x), x)):
        with pytest.raises(CuteError, match="given to ranks 0 and 1, but no memory is that of two GPUs"):
            kernel(given)
    kernel(PerRank(x, y))
    kernel((PerRank(x, y), 1))


def test_arguments_of_other_launches_are_refused():
    x = symmetric(N, cute.Int32, 4)
    for given, words in (
        (PerRank(0, 1, 2), "has values of 3 ranks, but the launch is of 2"),
        (x, "cannot be an argument itself"),
        (from_symmetric(x), "is symmetric memory of 4 ranks, but the launch is of 2"),
        (x.multicast, "elements of a multicast mapping"),
    ):
        with pytest.raises(CuteError, match=words):
            simulate(lambda x: None, ranks=2)[1, 1](given)
    with pytest.raises(CuteError, match="symmetric memory of 4 ranks, but the launch is of 1"):
        simulate(lambda x: None)[1, 1](from_symmetric(x))
    with pytest.raises(CuteError, match="give the number of GPUs"):
        simulate(lambda x: None, ranks=0)
    with pytest.raises(CuteError, match="give the value of each rank"):
        PerRank()


@pytest.mark.parametrize(
    ("given", "words"),
    [((0, cute.Int32, 2), "shape 0"), ((4, cute.Int4, 2), "narrower than a byte"), ((4, "x", 2), "not an element type"),
     ((4, cute.Int32, 0), "number of GPUs")],
    ids=lambda x: str(x)[:20],
)  # fmt: skip
def test_what_is_no_symmetric_memory(given, words):
    with pytest.raises(CuteError, match=words):
        symmetric(*given)


def test_a_captured_tensor_is_the_memory_of_no_rank():
    held = from_dlpack(np.zeros(N, np.float32))

    def kernel():
        held[0] = 1.0

    with pytest.raises(CuteError, match="holds as a constant is memory of one GPU, but 2 ranks run it"):
        simulate(kernel, ranks=2)[1, 1]()


@pytest.mark.parametrize("together", [True, False])
def test_memory_between_two_parts_is_out_of_bounds(together):
    def kernel(peers, rank):
        if rank == 0:
            cute.make_ptr(
                cute.Int32, peers.iterator.toint() + 4 * (N + cuda.threadIdx.x), cute.AddressSpace.gmem
            ).store(1)

    with pytest.raises(OutOfBoundsError, match="beyond the end of peers of rank 0"):
        simulate(kernel, ranks=2, seed=None if together else 8)[1, N](
            from_symmetric(symmetric(N, cute.Int32, 2)), PerRank(0, 1)
        )


def test_a_rank_that_is_none_is_out_of_bounds():
    def kernel(peers, rank):
        peers[cuda.threadIdx.x, rank + 1] = 1

    with pytest.raises(CuteError, match="coord|beyond the end|multicast"):
        simulate(kernel, ranks=2)[1, N](from_symmetric(symmetric(N, cute.Int32, 2)), PerRank(0, 1))


def test_words_of_one_rank_name_none():
    """What a launch of one rank says is what it said before there were ranks."""

    def kernel(x):
        x[0] = cuda.threadIdx.x

    with pytest.raises(Exception, match="race: global memory x") as caught:
        simulate(kernel)[2, N](np.zeros(1, np.int32))
    assert "of rank" not in str(caught.value)
