# SPDX-License-Identifier: Apache-2.0
"""A Hopper GEMM at the speed of cuBLAS, in one plain @cuda.jit kernel: C = A @ B.T, with A (M, K) and B (N, K).

Persistent and warp-specialised: of three warpgroups one feeds shared memory by TMA, and two multiply with wgmma and
store by TMA. Two CTAs form a cluster along M and share each tile of B by multicast.

    python examples/hopper_gemm.py                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python examples/hopper_gemm.py --m 1000 --n 1048 --k 1016 --dtype f16
    python examples/hopper_gemm.py --arch sm_90a --compile-only      PTX and cubin into out/, with no GPU
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import cpasync, warp, warpgroup
from numba_cute.runtime import from_dlpack

try:
    import torch  # for cuBLAS to compare with
except ImportError:
    torch = None

TILE_M, TILE_N, TILE_K = 128, 256, 64
STAGES = 4
CLUSTER_M = 2
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2
STORE_N, STORE_STAGES = 64, 2  # the output leaves in pieces of 64 columns, two in flight
K_BLOCKS = TILE_K // 16  # 16: the K of one wgmma
STORES = TILE_N // STORE_N
STORE_VALUES = 64 * STORE_N // 128  # of a piece in each thread
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
THREADS, CONSUMER_WARPS = 384, 8
STAGE_BYTES = (TILE_M + TILE_N) * TILE_K * 2
CLUSTER = cute.make_layout((1, CLUSTER_M, 1, 1))  # V, M, N, K
SHARE_B = (1 << CLUSTER_M) - 1  # multicast to every CTA of the cluster


@cute.cluster_shape(CLUSTER_M, 1)
@cuda.jit(launch_bounds=(THREADS, 1))
def gemm(dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, a_layout, b_layout, c_layout, schedule):
    tidx, _, _ = arch.thread_idx()
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    if warp_idx == 0:
        cpasync.prefetch_descriptor(tma_a)
        cpasync.prefetch_descriptor(tma_b)
        cpasync.prefetch_descriptor(tma_c)

    smem = utils.SmemAllocator()
    sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner, "sA")
    sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner, "sB")
    sC = smem.allocate_tensor(dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES, name="barriers")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, CLUSTER_M * CONSUMER_WARPS),
        tx_count=STAGE_BYTES,
        barrier_storage=barriers,
        cta_layout_vmnk=CLUSTER,
        tidx=tidx,
        mcast_mode_mn=(1, 0),
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()

    # What TMA copies: A's tile to this CTA alone; of B's tile this CTA fetches its half, for both.
    gA = cute.local_tile(mA, (TILE_M, TILE_K), (None, None))
    gB = cute.local_tile(mB, (TILE_N, TILE_K), (None, None))
    tAsA, tAgA = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
    )
    tBsB, tBgB = cpasync.tma_partition(
        tma_b, rank, cute.make_layout(CLUSTER_M), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
    )
    k_tiles = tAgA.shape[2]

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp_idx == 0:
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                for k in range(k_tiles):
                    stage = producer.acquire_and_advance()
                    cute.copy(tma_a, tAgA[None, m, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                    cute.copy(
                        tma_b, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=SHARE_B
                    )
                    stage.commit()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * group of the tile
        mma = tiled_mma.get_slice(cute.Int32(group * 128))
        tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((TILE_M, TILE_N)), cute.Float32)

        # How the accumulators leave: registers -> (stmatrix) -> shared memory -> (TMA) -> C
        to_smem = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), dtype)
        to_smem = cute.make_tiled_copy_S(to_smem, cute.make_tiled_copy_C_atom(to_smem, tiled_mma))
        tRS_sC = to_smem.get_slice(cute.Int32(tidx - 128)).partition_D(sC)
        tRS_rC = cute.make_rmem_tensor(cute.shape(tRS_sC[None, None, None, 0]), dtype)
        pieces = cute.make_tensor(acc.iterator, cute.make_layout((STORE_VALUES, STORES)))
        gC = cute.local_tile(mC, (64, STORE_N), (None, None))
        sC_group = cute.local_tile(sC, (64, STORE_N), (group, 0))
        tCsC, tCgC = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC_group, 0, 2), cute.group_modes(gC, 0, 2)
        )
        stores = pipeline.PipelineTmaStore.create(
            num_stages=STORE_STAGES, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        )
        together = pipeline.NamedBarrier(1 + group, 128)
        stores_issuer = warp_idx % 4 == 0

        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            previous = consumer.wait()
            for k in range(k_tiles):
                stage = consumer.wait_and_advance()
                warpgroup.fence()
                first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > 0)
                cute.gemm(first, acc, tCrA[None, None, 0, stage.index], tCrB[None, None, 0, stage.index], acc)
                for kb in cute.range_constexpr(1, K_BLOCKS):
                    cute.gemm(tiled_mma, acc, tCrA[None, None, kb, stage.index], tCrB[None, None, kb, stage.index], acc)
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
                if k > 0:
                    previous.release()
                previous = stage
            warpgroup.wait_group(0)
            previous.release()

            for piece in cute.range_constexpr(STORES):
                tRS_rC.store(pieces[None, piece].load().to(dtype))
                if stores_issuer:
                    stores.producer_acquire()  # the buffer has been read by the store before the last
                together.arrive_and_wait()
                cute.copy(to_smem, tRS_rC, tRS_sC[None, None, None, piece % STORE_STAGES])
                arch.fence_proxy("async.shared", space="cta")
                together.arrive_and_wait()
                if stores_issuer:
                    cute.copy(tma_c, tCsC[None, piece % STORE_STAGES], tCgC[None, 2 * m + group, STORES * n + piece])
                    stores.producer_commit()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        stores.producer_tail()


def cover(coordinates, *shape):
    """TMA's coordinates over whole tiles of whole clusters: it leaves out what lies beyond the array."""
    shape = tuple(cute.Int32(n) for n in shape)
    return cute.make_tensor(coordinates.iterator, cute.make_layout(shape, stride=coordinates.stride))


def arguments(a, b, c, dtype, most_clusters):
    """The kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), all row-major, K and N multiples of 8. The grid is the fewest clusters that need
    no more rounds than `most_clusters` would: idle SMs leave power to the others.
    """
    tA, tB, tC = (from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (a, b, c))
    tA, tB, tC = (cute.recast_tensor(t, dtype) for t in (tA, tB, tC))  # where Numba's arrays say int16
    k_major = warpgroup.OperandMajorMode.K
    op = warpgroup.MmaF16BF16Op(dtype, cute.Float32, (64, TILE_N, 16), warpgroup.OperandSource.SMEM, k_major, k_major)
    tiled_mma = cute.make_tiled_mma(op, (TILE_M // 64, 1, 1))
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, dtype)
    a_layout = cute.tile_to_shape(atom, (TILE_M, TILE_K, STAGES), (0, 1, 2))
    b_layout = cute.tile_to_shape(atom, (TILE_N, TILE_K, STAGES), (0, 1, 2))
    c_layout = cute.tile_to_shape(atom, (TILE_M, STORE_N, STORE_STAGES), (0, 1, 2))
    c_piece = cute.tile_to_shape(atom, (64, STORE_N), (0, 1))

    load, share, store = (
        cpasync.CopyBulkTensorTileG2SOp(),
        cpasync.CopyBulkTensorTileG2SMulticastOp(),
        cpasync.CopyBulkTensorTileS2GOp(),
    )
    stage = (None, None, 0)
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tA, cute.slice_(a_layout, stage), (TILE_M, TILE_K))
    tma_b, mB = cpasync.make_tiled_tma_atom(share, tB, cute.slice_(b_layout, stage), (TILE_N, TILE_K), CLUSTER_M)
    tma_c, mC = cpasync.make_tiled_tma_atom(store, tC, c_piece, (64, STORE_N))

    tiles_m, tiles_n = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / TILE_N)
    clusters_m = math.ceil(tiles_m / CLUSTER_M)
    rows, columns = clusters_m * CLUSTER_M * TILE_M, tiles_n * TILE_N
    mA, mB, mC = cover(mA, rows, a.shape[1]), cover(mB, columns, a.shape[1]), cover(mC, rows, columns)
    tiles = (cute.Int32(tiles_m), cute.Int32(tiles_n), 1)
    schedule = utils.PersistentTileSchedulerParams(tiles, (CLUSTER_M, 1, 1), GROUP_M // CLUSTER_M, False)
    work = clusters_m * tiles_n
    clusters = math.ceil(work / math.ceil(work / most_clusters))
    grid = schedule.get_grid_shape(clusters)
    return (dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, a_layout, b_layout, c_layout, schedule), grid


def problem(m, n, k, dtype, seed=0):
    """Random normal A (M, K) and B (N, K), and a poisoned C (M, N)."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s, dtype=np.float32).astype(dtype.numpy) for s in ((m, k), (n, k)))
    return a, b, np.full((m, n), np.nan, dtype.numpy)


def check(a, b, c, sample=256):
    """The relative error of C against float64 in `sample` rows, spread over all; an exception if an element is off.

    Each element may be off by its own rounding to 16 bits, and by that of a sum of K products in float32.
    """
    rows = np.unique(np.linspace(0, a.shape[0] - 1, sample).astype(int))
    want = a[rows].astype(np.float64) @ b.astype(np.float64).T
    got = c[rows].astype(np.float64)
    scale = np.sqrt((a[rows].astype(np.float64) ** 2).sum(1))[:, None] * np.sqrt((b.astype(np.float64) ** 2).sum(1))
    unit = 2.0**-8 if c.dtype.name == "bfloat16" else 2.0**-11
    bad = ~(np.abs(got - want) <= unit * np.abs(want) + 1e-5 * scale)
    if bad.any():
        i, j = (int(x) for x in np.argwhere(bad)[0])
        raise SystemExit(
            f"WRONG: {int(bad.sum())} of {bad.size} elements; the first at ({rows[i]}, {j}) is {got[i, j]}, "
            f"and should be {want[i, j]}"
        )
    return np.linalg.norm(got - want) / np.linalg.norm(want)


def simulate(args, dtype):
    m, n, k = args.m or 256, args.n or 512, args.k or 128
    a, b, c = problem(m, n, k, dtype)
    kernel_args, grid = arguments(a, b, c, dtype, most_clusters=1)
    print(f"simulating {m} x {n} x {k} {args.dtype}: {math.prod(grid)} CTAs in clusters of {CLUSTER_M}")
    start = time.perf_counter()
    cute.simulate(gemm, progress=sys.stderr.isatty())[grid, THREADS](*kernel_args)
    seconds = time.perf_counter() - start
    print(f"relative error against float64: {check(a, b, c):.2e}   ({seconds:.1f} s)")


def compile_only(args, dtype):
    arrays = problem(args.m or 4096, args.n or 4096, args.k or 4096, dtype)
    start = time.perf_counter()
    compiled = cute.compile(gemm, arguments(*arrays, dtype, most_clusters=66)[0], arch=args.arch)
    seconds = time.perf_counter() - start
    out = Path(__file__).resolve().parents[1] / "out"
    out.mkdir(exist_ok=True)
    stem = out / f"hopper_gemm_{args.dtype}.{args.arch}"
    stem.with_suffix(f".{args.arch}.ptx").write_text(compiled.ptx)
    stem.with_suffix(f".{args.arch}.cubin").write_bytes(compiled.cubin)
    print(f"compiled for {args.arch} in {seconds:.2f} s: {compiled.resources}")
    print(f"wrote {stem}.ptx and .cubin")
    for note in compiled.notes:
        print(f"the assembler notes: {note}")


def to_device(array):
    """A device array of the same bits: torch's if it is here, else Numba's, which knows only their size."""
    bits = array.view(np.int16)
    if torch is None:
        return cuda.to_device(bits)
    return torch.from_numpy(bits).cuda().view(getattr(torch, array.dtype.name))


def to_host(array, dtype):
    """The same, back."""
    bits = array.copy_to_host() if torch is None else array.view(torch.int16).cpu().numpy()
    return bits.view(dtype.numpy)


def seconds_per_call(call, least=0.3):
    """Seconds for each of the back-to-back calls that fill `least` seconds, after as long a warm-up."""
    start, end = cuda.event(), cuda.event()

    def burst(count):
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return cuda.event_elapsed_time(start, end) * 1e-3 / count

    count = max(10, int(least / burst(10)))
    burst(count)
    return burst(count)


def run_on_gpu(args, dtype):
    m, n, k = args.m or 4096, args.n or 4096, args.k or 4096
    a, b, c = problem(m, n, k, dtype)
    on_device = [to_device(x) for x in (a, b, c)]
    kernel_args, grid = arguments(*on_device, dtype, utils.HardwareInfo().get_max_active_clusters(CLUSTER_M))
    launch = cute.launch(gemm, grid=grid, block=THREADS).prepare(*kernel_args)
    launch()
    cuda.synchronize()
    print(f"{m} x {n} x {k} {args.dtype} on {math.prod(grid)} CTAs")
    print(f"relative error against float64: {check(a, b, to_host(on_device[2], dtype)):.2e}")
    flops = 2 * m * n * k
    if torch is None:
        print(f"{flops / seconds_per_call(launch) * 1e-12:.0f} TFLOP/s; no torch here, so no cuBLAS to compare with")
        return
    dA, dB, dC = on_device
    theirs = torch.empty_like(dC)

    def cublas():
        torch.matmul(dA, dB.T, out=theirs)

    # In turns, since the clock falls as the chip warms up; benchmarks/gemm.py measures with more care.
    turns = [(seconds_per_call(launch), seconds_per_call(cublas)) for _ in range(3)]
    ours, his = (sorted(t[i] for t in turns)[1] for i in (0, 1))
    ratio = sorted(t[1] / t[0] for t in turns)[1]
    print(f"ours {flops / ours * 1e-12:.0f} TFLOP/s, cuBLAS {flops / his * 1e-12:.0f}: {ratio:.3f} of its speed")
    print(f"cuBLAS's relative error: {check(a, b, to_host(theirs, dtype)):.2e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "mnk":
        parser.add_argument(f"--{name}", type=int, help="default 4096 on a GPU; 256 x 512 x 128 in the simulator")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--arch", default="sm_90a", help="the target of --compile-only")
    parser.add_argument("--compile-only", action="store_true", help="write PTX and cubin into out/; needs no GPU")
    parser.add_argument("--simulate", action="store_true", help="use the simulator even if there is a GPU")
    args = parser.parse_args()
    for name in "nk":
        if getattr(args, name) is not None and getattr(args, name) % 8:
            parser.error(f"--{name} {getattr(args, name)}: TMA needs rows of a multiple of 16 bytes: a multiple of 8")
    dtype = {"bf16": cute.BFloat16, "f16": cute.Float16}[args.dtype]
    if args.compile_only:
        compile_only(args, dtype)
    elif not args.simulate and cuda.is_available() and cuda.get_current_device().compute_capability == (9, 0):
        run_on_gpu(args, dtype)
    else:
        print("no GPU of compute capability 9.0 is used: the kernel runs in the simulator")
        simulate(args, dtype)


if __name__ == "__main__":
    main()
