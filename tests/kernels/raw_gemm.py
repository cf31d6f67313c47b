# SPDX-License-Identifier: Apache-2.0
"""The example's mainloop with raw instructions: integers, addresses and the instruction table, nothing else.

Every helper is one or two rows of the table; what the example gets from layouts, tensors and pipelines stands here
as arithmetic. C is left out: the accumulators go to `out`, a float for each, which is all that keeps them alive.
"""

from numba import cuda

import numba_cute as cute
from numba_cute import isa
from numba_cute.seam import Regs, current, traced

TILE_M, TILE_N, TILE_K, STAGES, CLUSTER_M = 128, 256, 64, 4, 2
A_BYTES, B_BYTES = TILE_M * TILE_K * 2, TILE_N * TILE_K * 2
B_AT, FULL_AT = STAGES * A_BYTES, STAGES * (A_BYTES + B_BYTES)
EMPTY_AT = FULL_AT + 8 * STAGES
SMEM_BYTES = EMPTY_AT + 8 * STAGES
DESCRIPTOR_HIGH = (1 << 30) | (1024 >> 4)  # SW128, stride offset 1024: the high word of a K-major operand
STEP = 32 >> 4  # one K block of 16 elements, in 16-byte units


@traced
def thread():
    return cute.Int32(isa.sreg(register="tid.x"))


@traced
def warp_index():
    return uniform(thread() // 32)


@traced
def consumer_group(warp):
    return (warp - 4) // 4


@traced
def signals():
    """Whether this lane releases stages: lane i of each warp tells CTA i."""
    return current().compare("<", thread() % 32, CLUSTER_M)


@traced
def lane_index():
    return thread() % 32


@traced
def consumer_thread():
    return thread() - 128


@traced
def uniform(x):
    return cute.Int32(isa.shfl_sync(x, 0, 31, mode="idx"))


@traced
def rank_in_cluster():
    return uniform(cute.Int32(isa.sreg_cluster(register="cluster_ctarank")))


@traced
def cluster_id():
    return cute.Int32(isa.sreg(register="ctaid.z"))


@traced
def clusters():
    return cute.Int32(isa.sreg(register="nctaid.z"))


@traced
def shared_memory():
    current().smem_needs(SMEM_BYTES)
    return current().smem_base()


@traced
def initialise(base):
    for stage in range(STAGES):
        isa.mbarrier_init(base + FULL_AT + 8 * stage, 1)
        isa.mbarrier_init(base + EMPTY_AT + 8 * stage, 8 * CLUSTER_M)
    isa.fence_mbarrier_init()


@traced
def cluster_sync():
    isa.cluster_arrive()
    isa.cluster_wait()


@traced
def set_registers(count, up):
    isa.setmaxnreg(action="inc" if up else "dec", count=count)


@traced
def advance(stage, phase):
    b = current()
    wraps = b.compare("==", stage + 1, STAGES)
    return b.select(wraps, 0, stage + 1), b.select(wraps, phase ^ 1, phase)


@traced
def fill(base, stage, phase, tma_a, tma_b, rank, m, n, k):
    """Wait until a stage is empty; expect its bytes; copy A's tile, and this CTA's half of B's to both CTAs."""
    isa.mbarrier_wait_parity(base + EMPTY_AT + 8 * stage, phase)
    full = base + FULL_AT + 8 * stage
    half = TILE_N // CLUSTER_M

    def issue():
        isa.mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES)
        at_a = (k * TILE_K, m * TILE_M)
        isa.cp_async_bulk_tensor_g2s(base + stage * A_BYTES, tma_a.tensor_map, at_a, full, rank=2)
        to_b = base + B_AT + stage * B_BYTES + rank * (half * TILE_K * 2)
        at_b = (k * TILE_K, n * TILE_N + rank * half)
        isa.cp_async_bulk_tensor_g2s(to_b, tma_b.tensor_map, at_b, full, cta_mask=3, rank=2)

    current().when(isa.elect_sync(), issue)


@traced
def wait_full(base, stage, phase):
    isa.mbarrier_wait_parity(base + FULL_AT + 8 * stage, phase)


@traced
def accumulators():
    return current().registers(cute.Float32, 128)


@traced
def operands(base, group):
    """The start addresses of stage 0 of this warpgroup's rows of A, and of B, in the 16-byte units of descriptors."""
    return tuple(((base + at) & 0x3FFFF) >> 4 for at in (group * (64 * TILE_K * 2), B_AT))


@traced
def multiply(acc, first, stage, dtype, more):
    """One stage: 64 rows of A times all of B, in four steps along K."""
    a, b = first[0] + stage * (A_BYTES >> 4), first[1] + stage * (B_BYTES >> 4)
    registers = Regs(acc, cute.Float32, 0, 128)
    isa.wgmma_fence()
    for step in range(4):
        a_desc, b_desc = (cute.Uint64(cute.Uint32(x + STEP * step)) | (DESCRIPTOR_HIGH << 32) for x in (a, b))
        keep = more if step == 0 else True
        isa.wgmma_ss(registers, a_desc, b_desc, keep, n=TILE_N, ab=dtype.ptx, trans_a=0, trans_b=0)
    isa.wgmma_commit_group()


@traced
def wait_multiplied(pending):
    isa.wgmma_wait_group(n=pending)


@traced
def release(base, stage, lane, signals):
    there = base + EMPTY_AT + 8 * stage
    current().when(signals, lambda: isa.mbarrier_arrive(isa.mapa(there, lane), space="cluster", scope="cta"))


@traced
def accumulator(acc, i):
    return current().read(Regs(acc, cute.Float32, i, 1))


@traced
def tiles_along(k):
    return (k + TILE_K - 1) // TILE_K


@traced
def below(index, tiles_m, tiles_n):
    return current().compare("<", index, tiles_m * tiles_n)


@traced
def split(index, tiles_m, rank):
    return index % tiles_m * CLUSTER_M + rank, index // tiles_m


@cute.cluster_shape(CLUSTER_M, 1)
@cuda.jit(launch_bounds=(384, 1))
def raw_gemm(dtype, tma_a, tma_b, out, cluster_rows, tiles_n, k):
    tid = thread()
    warp = warp_index()
    rank = rank_in_cluster()
    base = shared_memory()
    if tid == 0:
        initialise(base)
    cluster_sync()
    index = cluster_id()
    k_tiles = tiles_along(k)
    if warp < 4:
        set_registers(40, False)
        if warp == 0:
            stage, phase = cute.Int32(0), cute.Int32(1)
            while below(index, cluster_rows, tiles_n):
                m, n = split(index, cluster_rows, rank)
                for at in range(k_tiles):
                    fill(base, stage, phase, tma_a, tma_b, rank, m, n, at)
                    stage, phase = advance(stage, phase)
                index += clusters()
    else:
        set_registers(232, True)
        group = consumer_group(warp)
        lane, signal = lane_index(), signals()
        first = operands(base, group)
        stage, phase = cute.Int32(0), cute.Int32(0)
        acc = accumulators()
        while below(index, cluster_rows, tiles_n):
            m, n = split(index, cluster_rows, rank)
            previous = stage
            for at in range(k_tiles):
                wait_full(base, stage, phase)
                multiply(acc, first, stage, dtype, at > 0)
                wait_multiplied(1)
                if at > 0:
                    release(base, previous, lane, signal)
                previous = stage
                stage, phase = advance(stage, phase)
            wait_multiplied(0)
            release(base, previous, lane, signal)
            for i in cute.range_constexpr(128):
                out[m, n, i, consumer_thread()] = accumulator(acc, i)
            index += clusters()
    cluster_sync()
