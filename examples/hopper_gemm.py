# SPDX-License-Identifier: Apache-2.0
"""A Hopper GEMM at the speed of cuBLAS, in one plain @cuda.jit kernel: C = A @ B.T, with A (M, K) and B (N, K).

Persistent and warp-specialised: of three warpgroups one feeds shared memory by TMA, and two multiply with wgmma and
store by TMA. Two CTAs form a cluster along M and share each tile of B by multicast. Where M and N make few tiles, the
tiles are narrower, CTAs work alone, or K is split, and TMA adds the parts up: see `plan`.

    python examples/hopper_gemm.py                     4096^3 on a Hopper GPU, or a small problem in the simulator
    python examples/hopper_gemm.py --m 1000 --n 1048 --k 1016 --dtype f16 --majors mnn
    python examples/hopper_gemm.py --m 256 --n 512 --k 16384 --dtype e4m3
    python examples/hopper_gemm.py --m 512 --n 512 --k 8192 --tune   what `plan` chooses, beside what is measured
    python examples/hopper_gemm.py --arch sm_90a --compile-only      PTX and cubin into out/, with no GPU
"""

import itertools
import math
import sys
from typing import NamedTuple

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import arch, pipeline, utils
from numba_cute.nvgpu import CopyUniversalOp, cpasync, warp, warpgroup

import gemm_host
from gemm_host import DTYPES, check, cover, operand, problem  # noqa: F401 (check: for those who import this)

TILE_M, TILE_N, ROW = 128, 256, 128  # ROW bytes along K, or of a piece of the output, make a tile: one swizzle
NARROW_N = 128  # the tiles of problems that have few
STAGES = 4
CLUSTER_M = 2
GROUP_M = 16  # tiles along M that are done side by side, so that they share B in L2
STORE_STAGES = 2  # pieces of the output that are in flight
K_BLOCKS = ROW // 32  # a wgmma takes 32 bytes of K
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
# Times for `plan`, in those of a K tile of 256 columns (0.57 us on an H200): of a narrow one, of what a tile takes
# beside, of the second launch that a split K needs, and of adding or reading a million sums.
NARROW, EPILOGUE, FINISH, MILLION_SUMS = 0.56, 4, 14, 2
THREADS, CONSUMER_WARPS = 384, 8


@cute.cluster_shape(CLUSTER_M, 1)
@cuda.jit(launch_bounds=(THREADS, 1))
def gemm(
    dtype, c_dtype, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, store, a_layout, b_layout, c_layout, cluster, share,
    schedule,
):  # fmt: skip
    tile_n = tiled_mma.shape_mnk[1]
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
    sC = smem.allocate_tensor(c_dtype, c_layout.outer, 1024, c_layout.inner, "sC")
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES, name="barriers")
    mainloop = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, cute.size(cluster) * CONSUMER_WARPS),
        tx_count=(TILE_M + tile_n) * ROW,
        barrier_storage=barriers,
        cta_layout_vmnk=cluster,
        tidx=tidx,
        mcast_mode_mn=(0, 1),  # B, along M
        name="mainloop",
    )
    producer, consumer = mainloop.make_participants()
    scheduler = utils.StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()

    # What TMA copies: A's tile to this CTA alone; of B's tile this CTA fetches its half, for both.
    tile_k = 8 * ROW // dtype.width
    gA = cute.local_tile(mA, (TILE_M, tile_k), (None, None))
    gB = cute.local_tile(mB, (tile_n, tile_k), (None, None))
    tAsA, tAgA = cpasync.tma_partition(
        tma_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
    )
    tBsB, tBgB = cpasync.tma_partition(
        tma_b, rank, cute.make_layout(cute.size(cluster)), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
    )
    k_tiles = tAgA.shape[2]
    parts = schedule.problem_shape_ntile_mnl[2]  # of K, each the work of another CTA

    if warp_idx < 4:
        arch.setmaxregister_decrease(PRODUCER_REGISTERS)
        if warp_idx == 0:
            while work.is_valid_tile:
                m, n, part = work.tile_idx
                for k in range(part * k_tiles // parts, (part + 1) * k_tiles // parts):
                    cute.range_push("acquire", k)
                    stage = producer.acquire_and_advance()
                    cute.range_pop()
                    cute.range_push("load", k)
                    cute.copy(tma_a, tAgA[None, m, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                    cute.copy(
                        tma_b, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier, mcast_mask=share
                    )
                    stage.commit()
                    cute.range_pop()
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
    else:
        arch.setmaxregister_increase(CONSUMER_REGISTERS)
        group = cute.Int32((warp_idx - 4) // 4)  # which consumer warpgroup: rows 64 * group of the tile
        mma = tiled_mma.get_slice(cute.Int32(group * 128))
        tCrA = tiled_mma.make_fragment_A(mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(mma.partition_B(sB))
        acc = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C((TILE_M, tile_n)))

        # How the accumulators leave, in pieces of 64 x ROW bytes: registers -> shared memory -> (TMA) -> C
        store_n = 8 * ROW // c_dtype.width
        stores_of_tile = tile_n // store_n
        to_smem = cute.make_tiled_copy_S(store, cute.make_tiled_copy_C_atom(store, tiled_mma))
        tRS_sC = to_smem.get_slice(cute.Int32(tidx - 128)).partition_D(sC)
        tRS_rC = cute.make_rmem_tensor(cute.shape(tRS_sC[None, None, None, 0]), c_dtype)
        pieces = cute.make_tensor(acc.iterator, cute.make_layout((64 * store_n // 128, stores_of_tile)))
        gC = cute.local_tile(mC, (64, store_n), (None, None))
        sC_group = cute.local_tile(sC, (64, store_n), (group, 0))
        tCsC, tCgC = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC_group, 0, 2), cute.group_modes(gC, 0, 2)
        )
        stores = pipeline.PipelineTmaStore.create(
            num_stages=STORE_STAGES, producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128)
        )
        together = pipeline.NamedBarrier(1 + group, 128)
        stores_issuer = warp_idx % 4 == 0

        while work.is_valid_tile:
            m, n, part = work.tile_idx
            first_k = part * k_tiles // parts
            previous = consumer.wait()
            for k in range(first_k, (part + 1) * k_tiles // parts):
                cute.range_push("wait", k)
                stage = consumer.wait_and_advance()
                cute.range_pop()
                cute.range_push("multiply", k)
                warpgroup.fence()
                first = tiled_mma.set(warpgroup.Field.ACCUMULATE, k > first_k)
                cute.gemm(first, acc, tCrA[None, None, 0, stage.index], tCrB[None, None, 0, stage.index], acc)
                for kb in cute.range_constexpr(1, K_BLOCKS):
                    cute.gemm(tiled_mma, acc, tCrA[None, None, kb, stage.index], tCrB[None, None, kb, stage.index], acc)
                warpgroup.commit_group()
                warpgroup.wait_group(1)  # the tensor cores may still read this stage, but not the one before
                if k > first_k:
                    previous.release()
                previous = stage
                cute.range_pop()
            cute.range_push("drain")
            warpgroup.wait_group(0)
            previous.release()
            cute.range_pop()

            cute.range_push("epilogue", m)
            for piece in cute.range_constexpr(stores_of_tile):
                tRS_rC.store(pieces[None, piece].load().to(c_dtype))
                if stores_issuer:
                    stores.producer_acquire()  # the buffer has been read by the store before the last
                together.arrive_and_wait()
                cute.copy(to_smem, tRS_rC, tRS_sC[None, None, None, piece % STORE_STAGES])
                arch.fence_proxy("async.shared", space="cta")
                together.arrive_and_wait()
                if stores_issuer:
                    cute.copy(
                        tma_c, tCsC[None, piece % STORE_STAGES], tCgC[None, 2 * m + group, stores_of_tile * n + piece]
                    )
                    stores.producer_commit()
            cute.range_pop()
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        stores.producer_tail()


alone = cute.cluster_shape(1)(gemm)  # the same, with no peer to share with


@cuda.jit
def finish(sums, c):
    """Round the sums of a split K to C's type, and make them zero again for the next launch. Mode 0 is contiguous."""
    x0, y0 = cuda.grid(2)
    step_x, step_y = cuda.gridsize(2)
    for y in range(y0, c.shape[1], step_y):
        for x in range(x0, c.shape[0], step_x):
            c[x, y] = c.element_type(sums[x, y])
            sums[x, y] = 0


def mma_op(dtype, tile_n, a_major, b_major):
    """The wgmma for operands of `dtype`."""
    shape, smem = (64, tile_n, 256 // dtype.width), warpgroup.OperandSource.SMEM
    if dtype in (cute.BFloat16, cute.Float16):
        return warpgroup.MmaF16BF16Op(dtype, cute.Float32, shape, smem, a_major, b_major)
    if dtype == cute.TFloat32:
        return warpgroup.MmaTF32Op(shape, smem, a_major, b_major)
    if dtype == cute.Int8:
        return warpgroup.MmaI8Op(dtype, dtype, cute.Int32, shape, smem, a_major, b_major)
    return warpgroup.MmaF8Op(dtype, dtype, cute.Float32, shape, smem, a_major, b_major)


def smem_layout(dtype, mode, rows, columns, *stages):
    """Shared memory for tiles that are contiguous along `mode`, as wgmma and TMA take them."""
    kind = warpgroup.SmemLayoutAtomKind
    atom = warpgroup.make_smem_layout_atom(kind.K_SW128 if mode == 1 else kind.MN_SW128, dtype)
    order = (0, 1, 2) if mode == 1 else (1, 0, 2)
    return cute.tile_to_shape(atom, (rows, columns, *stages), order[: 2 + len(stages)])


class Plan(NamedTuple):
    """How a problem is cut. tile_n: columns of a tile. cluster_m: CTAs of a cluster, CLUSTER_M for `gemm` and 1 for
    `alone`. parts: into how many K is split; C then holds zeros, of 32 bits each."""

    tile_n: int = TILE_N
    cluster_m: int = CLUSTER_M
    parts: int = 1


USUAL = Plan()


def arguments(a, b, c, dtype, most_clusters, cut=USUAL):
    """The kernel's arguments and grid for arrays of the host (to simulate or compile) or of the device.

    a: (M, K), b: (N, K), c: (M, N), each contiguous along either mode (along K, where dtype has not 16 bits) by
    multiples of 16 bytes. The grid is the fewest clusters that need no more rounds than `most_clusters` would: idle
    SMs leave power to the others.
    """
    tile_n, cluster_m, parts = cut
    tC, c_mode = operand(c, gemm_host.RESULTS[dtype] if parts == 1 else sums_of(dtype))
    if c_mode == 0:  # the same, seen from the other side
        a, b, (tC, _) = b, a, operand(c.T, tC.element_type)
    (tA, a_mode), (tB, b_mode) = operand(a, dtype), operand(b, dtype)
    majors = [warpgroup.OperandMajorMode.K if mode == 1 else warpgroup.OperandMajorMode.MN for mode in (a_mode, b_mode)]
    tiled_mma = cute.make_tiled_mma(mma_op(dtype, tile_n, *majors), (TILE_M // 64, 1, 1))
    tile_k, store_n = 8 * ROW // dtype.width, 8 * ROW // tC.element_type.width
    assert tile_n // store_n % STORE_STAGES == 0, "the next tile's first piece must not take the last one's buffer"
    a_layout = smem_layout(dtype, a_mode, TILE_M, tile_k, STAGES)
    b_layout = smem_layout(dtype, b_mode, tile_n, tile_k, STAGES)
    c_layout = smem_layout(tC.element_type, 1, TILE_M, store_n, STORE_STAGES)
    c_piece = smem_layout(tC.element_type, 1, 64, store_n)
    narrow = tC.element_type.width == 16
    store = (
        cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), tC.element_type)
        if narrow
        else (cute.make_copy_atom(CopyUniversalOp(), tC.element_type, 64))
    )

    load = cpasync.CopyBulkTensorTileG2SOp()
    load_b = load if cluster_m == 1 else cpasync.CopyBulkTensorTileG2SMulticastOp()
    share = None if cluster_m == 1 else (1 << cluster_m) - 1  # multicast to every CTA of the cluster
    cluster = cute.make_layout((1, cluster_m, 1, 1))  # V, M, N, K
    put = cpasync.CopyBulkTensorTileS2GOp() if parts == 1 else cpasync.CopyReduceBulkTensorTileS2GOp()
    stage = (None, None, 0)
    tma_a, mA = cpasync.make_tiled_tma_atom(load, tA, cute.slice_(a_layout, stage), (TILE_M, tile_k))
    tma_b, mB = cpasync.make_tiled_tma_atom(load_b, tB, cute.slice_(b_layout, stage), (tile_n, tile_k), cluster_m)
    tma_c, mC = cpasync.make_tiled_tma_atom(put, tC, c_piece, (64, store_n))

    tiles_m, tiles_n = math.ceil(a.shape[0] / TILE_M), math.ceil(b.shape[0] / tile_n)
    clusters_m = math.ceil(tiles_m / cluster_m)
    rows, columns = clusters_m * cluster_m * TILE_M, tiles_n * tile_n
    mA, mB, mC = cover(mA, rows, a.shape[1]), cover(mB, columns, a.shape[1]), cover(mC, rows, columns)
    tiles = (cute.Int32(tiles_m), cute.Int32(tiles_n), parts)
    schedule = utils.PersistentTileSchedulerParams(tiles, (cluster_m, 1, 1), GROUP_M // cluster_m, False)
    work = clusters_m * tiles_n * parts
    clusters = math.ceil(work / math.ceil(work / most_clusters))
    grid = schedule.get_grid_shape(clusters)
    layouts = (a_layout, b_layout, c_layout, cluster, share)
    return (dtype, tC.element_type, tma_a, mA, tma_b, mB, tma_c, mC, tiled_mma, store, *layouts, schedule), grid


def sums_of(dtype):
    """What the tensor cores sum products of `dtype` in."""
    return cute.Int32 if dtype.is_integer else cute.Float32


def plan(c, k, dtype, sms, parts=None):
    """The cut of a problem that takes the least time on so many SMs, by the model.

    parts: into how many K is split, if that is given.
    """
    return min(cuts(c, k, dtype, parts), key=lambda cut: modelled(cut, c, k, dtype, sms))


def cuts(c, k, dtype, parts=None):
    """The cuts that a problem may have."""
    together = (1,) if rows_first(c)[0] <= TILE_M else (CLUSTER_M,)
    splits = [parts] if parts else range(1, min(k_tiles_of(k, dtype), 64) + 1)
    return [Plan(*p) for p in itertools.product((TILE_N, NARROW_N), together, splits)]


def modelled(cut, c, k, dtype, sms):
    """The time of a cut, in that of a K tile, by a model of four numbers."""
    m, n = rows_first(c)
    tiles = math.ceil(m / (cut.cluster_m * TILE_M)) * cut.cluster_m * math.ceil(n / cut.tile_n)
    rounds = math.ceil(tiles * cut.parts / (sms // cut.cluster_m * cut.cluster_m))
    width = 1 if cut.tile_n == TILE_N else NARROW
    multiply = rounds * (math.ceil(k_tiles_of(k, dtype) / cut.parts) + EPILOGUE) * width
    return multiply + (FINISH + MILLION_SUMS * (cut.parts + 2) * m * n / 1e6 if cut.parts > 1 else 0)


def k_tiles_of(k, dtype):
    return math.ceil(k * dtype.width / (8 * ROW))


def rows_first(c):
    """C's extents, the one that is not contiguous first: the kernel's M and N."""
    mode = gemm_host.contiguous_mode(c)
    return c.shape[1 - mode], c.shape[mode]


def launcher(a, b, c, dtype, parts=None):
    """A launch of the GEMM for arrays of the device, prepared: call it as often as you like.

    parts: into how many K is split; by default, as many as `plan` finds best. Then sums of 32 bits are added up in
    global memory, in the order in which they come, and rounded once.
    """
    return launch_of(a, b, c, dtype, plan(c, a.shape[1], dtype, sms_here(), parts))


def sms_here():
    return utils.HardwareInfo().get_device_multiprocessor_count()


@cute.autotune(
    lambda a, b, c, dtype: cuts(c, a.shape[1], dtype),
    cost=lambda cut, given: modelled(Plan(**cut), given["c"], given["a"].shape[1], given["dtype"], sms_here()),
    makes_launch=True,
)
def tuned(a, b, c, dtype, tile_n=TILE_N, cluster_m=CLUSTER_M, parts=1):
    """The same, cut as measurements find best; `tuned.tune(a, b, c, dtype)` shows them."""
    return launch_of(a, b, c, dtype, Plan(tile_n, cluster_m, parts))


def launch_of(a, b, c, dtype, cut):
    """A launch of the GEMM, cut so."""
    kernel, most = kernel_of(cut), utils.HardwareInfo().get_max_active_clusters(cut.cluster_m)
    if cut.parts == 1:
        args, grid = arguments(a, b, c, dtype, most, cut)
        return cute.launch(kernel, grid=grid, block=THREADS).prepare(*args)
    sums = gemm_host.zeros_like(c, sums_of(dtype))
    args, grid = arguments(a, b, sums, dtype, most, cut)
    multiply = cute.launch(kernel, grid=grid, block=THREADS).prepare(*args)
    add = cute.launch(finish, grid=(16, 128), block=(64, 4)).prepare(*finish_arguments(sums, c, dtype))

    def launch():
        multiply()
        add()

    return launch


def kernel_of(cut):
    return alone if cut.cluster_m == 1 else gemm


def finish_arguments(sums, c, dtype):
    """The sums and C as `finish` takes them."""
    (tS, mode), (tC, _) = operand(sums, sums_of(dtype)), operand(c, gemm_host.RESULTS[dtype])
    order = [mode, 1 - mode]
    return tuple(cute.make_tensor(t.iterator, cute.select(t.layout, mode=order)) for t in (tS, tC))


def simulate(a, b, c, dtype, cut=USUAL, **options):
    """Run the GEMM in the simulator, on one cluster."""
    if cut.parts == 1:
        args, grid = arguments(a, b, c, dtype, 1, cut)
        cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)
        return
    sums = np.zeros_like(c, sums_of(dtype).numpy)
    args, grid = arguments(a, b, sums, dtype, 1, cut)
    cute.simulate(kernel_of(cut), **options)[grid, THREADS](*args)
    cute.simulate(finish, **options)[(2, 2), (32, 2)](*finish_arguments(sums, c, dtype))


def main():
    options = gemm_host.parser(__doc__, tuple(DTYPES), "sm_90a", "256 x 512 x 128")
    options.add_argument("--majors", default="kkn", help="the mode along which A, B and C are contiguous: kkn to mnm")
    options.add_argument("--tune", action="store_true", help="measure what `plan` would choose among")
    options.add_argument("--parts", type=int, help="into how many K is split; default: what `plan` finds best")
    args = options.parse_args()
    dtype = DTYPES[args.dtype]
    if args.majors not in {a + b + c for a in "km" for b in "kn" for c in "nm"}:
        options.error(f"--majors {args.majors}: a letter each for A (k or m), B (k or n) and C (n or m)")
    if dtype.width != 16 and args.majors[:2] != "kk":
        options.error(f"--majors {args.majors}: wgmma takes A and B of {dtype} contiguous along K alone: kkn or kkm")
    gpu = not (args.simulate or args.compile_only) and gemm_host.has_gpu((9, 0), (9, 0))
    small = (256, 512, 128)
    m, n, k = (getattr(args, x) or (4096 if gpu or args.compile_only else d) for x, d in zip("mnk", small, strict=True))
    need(options, "A", args.majors[0], {"m": m, "k": k}, dtype)
    need(options, "B", args.majors[1], {"n": n, "k": k}, dtype)
    need(options, "C", args.majors[2], {"n": n, "m": m}, gemm_host.RESULTS[dtype])
    arrays = problem(m, n, k, dtype, majors=args.majors)
    what = f"{args.dtype}, {args.majors}"
    if args.compile_only:
        gemm_host.compile_only(gemm, arguments(*arrays, dtype, 66)[0], f"hopper_gemm_{args.dtype}", args.arch)
    elif gpu and args.tune:
        on_device = [gemm_host.to_device(x) for x in arrays]
        found = tuned.tune(*on_device, dtype)
        chosen = plan(on_device[2], k, dtype, sms_here())
        print(f"{found}\n`plan` chooses {chosen}: {found.slower(chosen._asdict()):.1%} slower than the best")
    elif gpu:
        gemm_host.run_on_gpu(arrays, lambda a, b, c: launcher(a, b, c, dtype, args.parts), what)
    else:
        cut = Plan(parts=args.parts or 1)
        run = lambda: simulate(*arrays, dtype, cut, progress=sys.stderr.isatty())  # noqa: E731
        gemm_host.simulate(arrays, run, what)


def need(options, name, mode, extents, dtype):
    """TMA's rule: rows of whole 16 bytes."""
    step = 128 // dtype.width
    if extents[mode] % step:
        options.error(f"--{mode} {extents[mode]}: TMA needs rows of {name} of 16-byte multiples: a multiple of {step}")


if __name__ == "__main__":
    main()
