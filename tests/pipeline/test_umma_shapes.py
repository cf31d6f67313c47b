# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma in every kind, shape and place of its operands: where D lies in tensor memory, and what it holds."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, dtypes, isa, pipeline, seam, utils
from numba_cute.isa.facts.bits import encode_address
from numba_cute.isa.rows.tcgen05_cases import decoded
from numba_cute.isa.rows.tcgen05_mma import SWIZZLE_128B_BASE32B, Tcgen05Descriptor, Tcgen05Instruction
from numba_cute.pipeline import Agent, CooperativeGroup, MbarrierArray, PipelineOp

SLOW = pytest.mark.slow
BLOCKS, ROW_WORDS, A_COLUMN = 2, 8, 256
ONE = CooperativeGroup(Agent.Thread)
TYPES = {  # name: (kind, code, NumPy type, bits)
    "f16": ("f16", 0, np.float16, 16),
    "bf16": ("f16", 1, ml_dtypes.bfloat16, 16),
    "tf32": ("tf32", 2, np.float32, 32),
    "e4m3": ("f8f6f4", 0, ml_dtypes.float8_e4m3fn, 8),
    "e5m2": ("f8f6f4", 1, ml_dtypes.float8_e5m2, 8),
    "e2m3": ("f8f6f4", 3, ml_dtypes.float6_e2m3fn, 6),
    "e3m2": ("f8f6f4", 4, ml_dtypes.float6_e3m2fn, 6),
    "e2m1": ("f8f6f4", 5, ml_dtypes.float4_e2m1fn, 4),
    "u8": ("i8", 0, np.uint8, 8),
    "s8": ("i8", 1, np.int8, 8),
}
RESULTS = {"f16": 0, "f32": 1, "s32": 2}


# ---------------------------------------------------------------- operands, as their bytes lie in memory


def elements(rng, name, *shape):
    """Random values that the type holds exactly."""
    _, _, dtype, bits = TYPES[name]
    if np.issubdtype(dtype, np.integer):
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
    values = rng.standard_normal(shape).astype(np.float32)
    return (values.view(np.uint32) & 0xFFFFE000).view(np.float32) if name == "tf32" else values.astype(dtype)


def chunks(matrix, name):
    """(rows, elements) as (rows, chunks, 16) bytes."""
    bits = TYPES[name][3]
    rows = matrix.shape[0]
    if bits >= 8:
        return np.ascontiguousarray(matrix).view(np.uint8).reshape(rows, -1, 16)
    codes = np.unpackbits(matrix.view(np.uint8)[..., None], axis=-1, bitorder="little")[..., :bits]
    packed = np.packbits(codes.reshape(rows, -1, 16 * bits), axis=-1, bitorder="little")
    return np.concatenate([packed, np.full((rows, packed.shape[1], 16 - 2 * bits), 0xEE, np.uint8)], axis=-1)


def k_major(matrix, name):
    """16-byte pieces of K, each of all rows. (bytes, descriptor)"""
    c = chunks(matrix, name)
    return c.transpose(1, 0, 2), Tcgen05Descriptor(leading=len(c) * 16, stride=128)


def k_major_swizzled(matrix, name):
    """Rows of 32 bytes; the two pieces of rows 4 to 7 of each 8 change places."""
    c = chunks(matrix, name)
    swapped = np.where((np.arange(len(c)) % 8 // 4 == 1)[:, None, None], c[:, ::-1], c)
    return swapped, Tcgen05Descriptor(stride=256, swizzle=32)


def mn_major(matrix, name):
    """Pieces of 16 bytes along the rows' dimension, 8 of them for 8 places of K."""
    c = chunks(np.ascontiguousarray(matrix.T), name)  # (k, pieces, 16)
    k, pieces, _ = c.shape
    out = c.reshape(k // 8, 8, pieces, 16).transpose(0, 2, 1, 3)
    return out, Tcgen05Descriptor(leading=pieces * 128, stride=128)


def mn_major_base32(matrix, name):
    """Rows of 128 bytes for each place of K, 4 of them an atom, whose 32-byte quarters are permuted by their row."""
    c = chunks(np.ascontiguousarray(matrix.T), name)
    k, pieces, _ = c.shape
    quarters = c.reshape(k // 4, 4, pieces // 8, 4, 32)
    out = np.empty_like(quarters)
    for row, q in itertools.product(range(4), range(4)):
        out[:, row, :, q ^ row] = quarters[:, row, :, q]
    atoms = out.transpose(0, 2, 1, 3, 4)  # (k / 4, columns of 128 bytes, 4, 4, 32)
    return atoms, Tcgen05Descriptor(leading=512, stride=512 * (pieces // 8), swizzle=SWIZZLE_128B_BASE32B)


LAYOUTS = {"k": k_major, "k swizzled": k_major_swizzled, "mn": mn_major, "mn 32": mn_major_base32}


def lanes_of(ctas, m):
    """For each CTA: which row of A each of its 128 lanes holds, or -1."""
    lane = np.arange(128)
    if (ctas, m) == (1, 64):
        return np.where(lane % 32 < 16, lane // 32 * 16 + lane % 32, -1)[None]
    if (ctas, m) == (2, 128):
        return np.stack([c * 64 + lane % 64 for c in range(2)])
    return np.stack([c * 128 + lane for c in range(ctas)])


# ---------------------------------------------------------------- the kernel


@seam.traced
def multiply_blocks(slot, shared_a, shared_b, a_step, b_step, a_descriptor, b_descriptor, word, kind, ctas, in_tmem):
    """One elected lane multiplies all blocks; the first overwrites D."""
    d, a, b = slot.load(), shared_a.iterator.address, shared_b.iterator.address

    def issue():
        for i in range(BLOCKS):
            right = dtypes.Uint64(encode_address(b + i * b_step)) + b_descriptor
            if in_tmem:
                left = d + A_COLUMN + i * ROW_WORDS
                row = isa.tcgen05_mma_ts
            else:
                left = dtypes.Uint64(encode_address(a + i * a_step)) + a_descriptor
                row = isa.tcgen05_mma_ss
            row(d, left, right, word, i > 0, cta_group=ctas, kind=kind)

    seam.current().when(isa.elect_sync(), issue)


@seam.traced
def tmem_address(slot, warp, column):
    return slot.load() + ((warp % 4 * 32) << 16) + column


@seam.traced
def store_row(address, fragment):
    regs = seam.Regs(fragment.iterator.address, dtypes.Uint32, 0, ROW_WORDS)
    isa.tcgen05_st(taddr=address, src=regs, shape="32x32b", num=ROW_WORDS)


@seam.traced
def wait_st():
    isa.tcgen05_wait_st()


@seam.traced
def before():
    isa.tcgen05_fence_before()


@seam.traced
def after():
    isa.tcgen05_fence_after()


@seam.traced
def allocate(slot, ctas):
    isa.tcgen05_alloc(slot.address, 512, cta_group=ctas)
    isa.tcgen05_fence_before()


@seam.traced
def free(slot, ctas):
    isa.tcgen05_dealloc(slot.load(), 512, cta_group=ctas)


@seam.traced
def load_row(fragment, address):
    regs = seam.Regs(fragment.iterator.address, dtypes.Uint32, 0, ROW_WORDS)
    isa.tcgen05_ld(dst=regs, taddr=address, shape="32x32b", num=ROW_WORDS)
    isa.tcgen05_wait_ld()


def kernel_of(ctas, columns, a_words, b_words, a_descriptor, b_descriptor, word, kind, in_tmem, lanes):
    """a_words, b_words: of one block in one CTA; with A in tensor memory its words are those of each lane. lanes: of
    each 32 those that hold rows of D."""
    a_bytes, b_bytes = 4 * a_words, 4 * b_words

    @cute.cluster_shape(ctas, 1)
    @cuda.jit
    def kernel(a, b, out):
        tidx, _, _ = arch.thread_idx()
        warp, rank = arch.make_warp_uniform(arch.warp_idx()), arch.block_idx_in_cluster()
        smem = utils.SmemAllocator()
        shared_a = smem.allocate_tensor(cute.Int32, cute.make_layout(a_words * BLOCKS), 1024)
        shared_b = smem.allocate_tensor(cute.Int32, cute.make_layout(b_words * BLOCKS), 1024)
        slot = smem.allocate_array(cute.Int32, 1)
        done = MbarrierArray(smem.allocate_array(cute.Int64, 1), 1, (PipelineOp.TCGen05Mma, ONE))
        fragment = cute.make_rmem_tensor(ROW_WORDS, cute.Uint32)
        pipeline.pipeline_init_arrive((ctas, 1))
        pipeline.pipeline_init_wait((ctas, 1))
        if warp == 0:
            allocate(slot, ctas)
        arch.sync_threads()
        after()
        for w in range(tidx, b_words * BLOCKS, 128):
            shared_b[w] = b[rank, w]
        if in_tmem:
            for i in range(BLOCKS):
                for w in cute.range_constexpr(ROW_WORDS):
                    fragment[w] = cute.Uint32(a[rank, (i * 128 + tidx) * ROW_WORDS + w])
                store_row(tmem_address(slot, warp, A_COLUMN + i * ROW_WORDS), fragment)
            wait_st()
        else:
            for w in range(tidx, a_words * BLOCKS, 128):
                shared_a[w] = a[rank, w]
        arch.fence_proxy("async.shared", space="cta")
        before()
        arch.cluster_arrive()
        arch.cluster_wait()
        if warp == 0 and rank == 0:
            after()
            multiply_blocks(
                slot, shared_a, shared_b, a_bytes, b_bytes, a_descriptor, b_descriptor, word, kind, ctas, in_tmem
            )
            done.arrive(0, (1 << ctas) - 1 if ctas > 1 else None, ctas)
        done.wait(0, 0)
        after()
        for first in range(0, columns, ROW_WORDS):
            load_row(fragment, tmem_address(slot, warp, first))
            if tidx % 32 < lanes:
                for j in cute.range_constexpr(ROW_WORDS):
                    out[rank, tidx, first + j] = fragment[j]
        before()
        arch.cluster_arrive()
        arch.cluster_wait()
        if warp == 0:
            free(slot, ctas)

    return kernel


# ---------------------------------------------------------------- cases


def reference(a, b, result, negate=False, saturate=False):
    """(m, n) for (blocks, rows, K) operands, rounded after each block as D is."""
    total = 0
    for x, y in zip(a, b):
        exact = np.int64 if result == "s32" else np.float64
        total = total + (-1 if negate else 1) * (x.astype(exact) @ y.astype(exact).T)
        if result == "s32":
            wrapped = (total.astype(np.int64) + 2**31) % 2**32 - 2**31
            total = np.clip(total, -(2**31), 2**31 - 1) if saturate else wrapped
        else:
            total = total.astype({"f16": np.float16, "f32": np.float32}[result]).astype(np.float64)
    return total


def check_case(run, rng, ctas, m, n, a_type, b_type, result, a_layout="k", b_layout="k", **flags):
    kind, a_code, _, bits = TYPES[a_type]
    k = 256 // max(bits, 8)
    a, b = elements(rng, a_type, BLOCKS, m, k), elements(rng, b_type, BLOCKS, n, k)
    in_tmem = a_layout == "tmem"
    rows = lanes_of(ctas, m)

    def words(parts):
        return np.stack([np.ascontiguousarray(p).view(np.int32).ravel() for p in parts])

    def shared(matrix, name, layout, count):
        share = count // ctas
        placed = [[LAYOUTS[layout](x[c * share : (c + 1) * share], name) for x in matrix] for c in range(ctas)]
        return words([np.stack([p for p, _ in one]) for one in placed]), placed[0][0][1].encode()

    if in_tmem:
        a_words, a_descriptor = words([np.stack([chunks(x[r], a_type) for x in a]) for r in rows]), 0
    else:
        a_words, a_descriptor = shared(a, a_type, a_layout, m)
    b_words, b_descriptor = shared(b, b_type, b_layout, n)
    word = Tcgen05Instruction(
        d=RESULTS[result], a=a_code, b=TYPES[b_type][1], n=n, m=m, major_a=int(a_layout.startswith("mn")),
        major_b=int(b_layout.startswith("mn")), negate_a=int(flags.get("negate", False)),
        saturate=int(flags.get("saturate", False)),
    ).encode()  # fmt: skip
    halves = 2 if (ctas, m) == (2, 128) else 1
    out = np.zeros((ctas, 128, n // halves), np.uint32)
    want = reference(a, b, result, **flags)

    def check():
        for c in range(ctas):
            for lane in np.flatnonzero(rows[c] >= 0):
                half = lane // 64 if halves == 2 else 0
                got = out[c, lane].view({"s32": np.int32, "f32": np.float32}.get(result, np.uint32))
                if result == "f16":
                    got = (got & 0xFFFF).astype(np.uint16).view(np.float16)
                mine = want[rows[c][lane], half * (n // halves) : (half + 1) * (n // halves)]
                tolerance = {"s32": 0, "f32": 1e-5, "f16": 1e-3}[result]
                np.testing.assert_allclose(got.astype(np.float64), mine, rtol=tolerance, atol=20 * tolerance)

    each = (a_words.shape[1] // BLOCKS, b_words.shape[1] // BLOCKS)
    lanes = 16 if (ctas, m) == (1, 64) else 32
    kernel = kernel_of(ctas, n // halves, *each, a_descriptor, b_descriptor, word, kind, in_tmem, lanes)
    run(kernel, ctas, 128, [a_words, b_words, out], outputs=[out], check=check, arch="sm_100a")


def cases(everything, *quick):
    """All of them, but only `quick` without -m slow."""
    return [pytest.param(*c, marks=() if c in quick else SLOW) for c in dict.fromkeys((*quick, *everything))]


@pytest.mark.parametrize(
    ("ctas", "m", "n", "source"),
    cases(
        ((c, c * h, n, s) for c in (1, 2) for h in (64, 128) for n in (8, 16, 48, 128, 256) for s in ("k", "tmem")
         if n >= 16 or (c == 1 and (h == 64 or s == "k"))),
        (1, 64, 24, "tmem"), (1, 128, 8, "k"), (2, 128, 48, "tmem"), (2, 256, 16, "k"),
    ),
)  # fmt: skip
def test_every_shape_lies_where_the_isa_says(run, rng, ctas, m, n, source):
    check_case(run, rng, ctas, m, n, "bf16", "bf16", "f32", source)


@pytest.mark.parametrize(
    ("a_type", "b_type", "result"),
    cases(
        [*((t, t, "f32") for t in ("f16", "bf16", "tf32", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1")),
         ("f16", "f16", "f16"), ("e4m3", "e5m2", "f16"), ("e5m2", "e4m3", "f32"), ("e2m1", "e4m3", "f32"),
         ("e3m2", "e2m3", "f16"),
         *((a, b, "s32") for a in ("u8", "s8") for b in ("u8", "s8"))],
        ("f16", "f16", "f16"), ("e2m1", "e3m2", "f16"), ("u8", "s8", "s32"),
    ),
)  # fmt: skip
@pytest.mark.parametrize("ctas", [1, pytest.param(2, marks=SLOW)])
def test_every_kind_multiplies_its_types(run, rng, ctas, a_type, b_type, result):
    check_case(run, rng, ctas, 128 * ctas, 32, a_type, b_type, result)


@pytest.mark.parametrize("type", ["s8", *(pytest.param(t, marks=SLOW) for t in ("f16", "tf32", "e4m3"))])
@pytest.mark.parametrize(("ctas", "m"), [(1, 128), pytest.param(1, 64, marks=SLOW), pytest.param(2, 128, marks=SLOW)])
def test_every_kind_takes_a_from_tensor_memory(run, rng, ctas, m, type):
    check_case(run, rng, ctas, m, 32, type, type, "s32" if type == "s8" else "f32", "tmem")


@pytest.mark.parametrize(
    ("type", "a_layout", "b_layout"),
    cases(
        [("f16", "k swizzled", "mn"), ("e4m3", "mn", "k swizzled"), ("s8", "mn", "mn"), ("tf32", "mn 32", "k"),
         ("tf32", "k", "mn 32")],
        ("f16", "k swizzled", "mn"), ("tf32", "mn 32", "k swizzled"),
    ),
)  # fmt: skip
def test_operands_lie_as_their_descriptors_say(run, rng, type, a_layout, b_layout):
    check_case(run, rng, 1, 128, 32, type, type, "s32" if type == "s8" else "f32", a_layout, b_layout)


def test_negation_and_saturation(run, rng):
    check_case(run, rng, 1, 64, 16, "bf16", "bf16", "f32", negate=True)
    check_case(run, rng, 1, 64, 16, "s8", "s8", "s32", saturate=True)


@pytest.mark.parametrize(
    ("ctas", "kind", "form", "says"),
    [
        (1, "f16", {"m": 256}, "m 256 of its instruction descriptor must be 64 or 128 with cta_group 1"),
        (2, "f16", {"m": 64}, "m 64 of its instruction descriptor must be 128 or 256 with cta_group 2"),
        (2, "f16", {"m": 128, "n": 24}, "must be a multiple of 16 of 16 to 256"),
        (1, "i8", {"n": 40, "d": 2}, "must be a multiple of 16 of 8 to 256, or 8, 24"),
        (2, "i8", {"n": 48, "d": 2}, "must be a multiple of 32 of 32 to 256"),
        (1, "f8f6f4", {"n": 24, "major_b": 1}, "trans_b 1 of its instruction descriptor must be 0 with"),
        (1, "f16", {"a": 2}, "a type 2 of its instruction descriptor must be one of 0 (f16), 1 (bf16)"),
        (1, "f16", {"a": 1, "b": 1, "d": 0}, "d_type f16 of its instruction descriptor must be f32 with"),
        (1, "tf32", {"a": 2, "b": 2, "d": 0}, "d_type f16 of its instruction descriptor must be f32"),
        (1, "i8", {"d": 2, "negate_a": 1}, "integers cannot be negated"),
        (1, "f16", {"sparse": 1}, "sparse True of its instruction descriptor must be False"),
    ],
)
def test_a_multiply_that_the_hardware_lacks_is_refused(ctas, kind, form, says):
    with pytest.raises(seam.CuteError) as e:
        word = Tcgen05Instruction(**({"m": 128 * ctas} | form)).encode()
        given = {"cta_group": ctas, "kind": kind, "sparse": False, "a_src": "smem"}
        decoded(isa.tcgen05_mma_ss.cases, word, tuple(given.items()))
    assert says in str(e.value)
