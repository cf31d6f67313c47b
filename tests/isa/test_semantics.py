# SPDX-License-Identifier: Apache-2.0
"""What bodies mean, on the least machine; hazards and waiting are the simulator's tests."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from numba_cute import isa
from numba_cute.isa.facts import sparse
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.facts.fragment_layouts import elements, ldmatrix_b16, wgmma_m64k16
from numba_cute.isa.facts.reduction import combine
from numba_cute.seam import CuteError

from .fake import CTA_STRIDE, Machine, TensorMap

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}


def small(rng, shape, dtype):
    """Small integers and halves: exact in every type here, and so are their sums."""
    return (rng.integers(-8, 9, shape) / 2).astype(dtype)


def place(m, at, matrix, swizzle, mn_major):
    """Lay an (mn, 16) operand out as a user would: swizzle atoms of 8 rows, one after the other, the elements of a row
    contiguous. Gives the descriptor. Written from the PTX ISA's figures, one element at a time."""
    mn, k = matrix.shape
    rows, columns = (k, mn) if mn_major else (mn, k)
    width = max(swizzle, 16) // 2  # elements in a row of the atom
    atom = 8 * width * 2
    across = max(columns // width, 1)
    for r in range(rows):
        for c in range(columns):
            byte = at + (r // 8 * across + c // width) * atom + r % 8 * width * 2 + c % width * 2
            if swizzle:
                byte ^= (byte >> 7 & swizzle // 16 - 1) << 4
            m.shared[0][byte : byte + 2] = np.array([matrix.T[r, c] if mn_major else matrix[r, c]]).view(np.uint8)
    next_column, next_row = atom, atom * across
    if mn_major and not swizzle:  # without swizzle the two strides change places
        next_column, next_row = next_row, next_column
    return WgmmaDescriptor(at, next_column, next_row, 0, swizzle).encode()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("n, ab", [(64, "bf16"), (128, "f16")])
def test_wgmma_multiplies_operands_in_every_canonical_layout(rng, swizzle, trans_a, trans_b, n, ab):
    m = Machine(lanes=128)
    a, b = small(rng, (64, 16), TYPES[ab]), small(rng, (n, 16), TYPES[ab])
    da, db = place(m, 0, a, swizzle, trans_a), place(m, 1 << 15, b, swizzle, trans_b)
    c = small(rng, (64, n), np.float32)
    index = elements(wgmma_m64k16(n).c)
    acc = c.ravel(order="F")[index]
    signed = np.full(128, da, np.uint64).view(np.int64)  # a 64-bit word may come as either
    m.issue(isa.wgmma_ss, acc, signed, np.full(128, db), np.ones(128, np.int32),
            n=n, ab=ab, trans_a=trans_a, trans_b=trans_b)  # fmt: skip
    want = a.astype(np.float64) @ b.astype(np.float64).T + c
    assert np.array_equal(acc, want.ravel(order="F")[index])


@pytest.mark.parametrize("n", [8, 24, 256])
@pytest.mark.parametrize("scale_a, scale_b", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
@pytest.mark.parametrize("ab", ["bf16", "f16"])
def test_wgmma_takes_a_from_registers_negates_and_drops_the_old_accumulator(rng, n, scale_a, scale_b, ab):
    m = Machine(lanes=128)
    a, b = small(rng, (64, 16), TYPES[ab]), small(rng, (n, 16), TYPES[ab])
    registers = np.ascontiguousarray(a.ravel(order="F")[elements(wgmma_m64k16(n, True).a)]).view(np.uint32)
    acc = np.full((128, n // 2), np.nan, np.float32)
    m.issue(isa.wgmma_rs, acc, registers, np.full(128, place(m, 0, b, 32, False)), np.zeros(128, np.int32),
            n=n, ab=ab, trans_b=0, scale_a=scale_a, scale_b=scale_b)  # fmt: skip
    want = scale_a * scale_b * (a.astype(np.float64) @ b.astype(np.float64).T)
    assert np.array_equal(acc, want.ravel(order="F")[elements(wgmma_m64k16(n).c)])


@pytest.mark.parametrize("a_in_registers", [False, True])
@pytest.mark.parametrize("use_acc", [0, 1])
def test_wgmma_with_an_f16_accumulator_packs_two_elements_a_register(rng, a_in_registers, use_acc):
    m, n = Machine(lanes=128), 16
    a, b, c = (small(rng, s, np.float16) for s in ((64, 16), (n, 16), (64, n)))
    atom = wgmma_m64k16(n, True)
    acc = np.ascontiguousarray(c.ravel(order="F")[elements(atom.c)]).view(np.uint32)
    db, flag = np.full(128, place(m, 1 << 14, b, 0, True)), np.full(128, use_acc)
    if a_in_registers:
        words = np.ascontiguousarray(a.ravel(order="F")[elements(atom.a)]).view(np.uint32)
        m.issue(isa.wgmma_f16_rs, acc, words, db, flag, n=n, trans_b=1)
    else:
        m.issue(isa.wgmma_f16_ss, acc, np.full(128, place(m, 0, a, 64, False)), db, flag, n=n, trans_a=0, trans_b=1)
    want = (a.astype(np.float64) @ b.astype(np.float64).T + use_acc * c).astype(np.float16)
    assert np.array_equal(acc.view(np.float16), want.ravel(order="F")[elements(atom.c)])


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("selector", [0, 1])
def test_a_sparse_wgmma_takes_b_of_twice_the_k_in_every_canonical_layout(rng, swizzle, trans_b, selector):
    m, n = Machine(lanes=128), 64
    a, b = small(rng, (64, 32), np.float16), small(rng, (n, 32), np.float16)
    a.reshape(64, 8, 4)[..., rng.permutation(4)[:2]] = 0
    kept, e = sparse.compress(a, 64, 32, 16, sparse.places(64, 32, 16, selector), 128)
    words = np.ascontiguousarray(kept.ravel(order="F")[elements(wgmma_m64k16(n, True).a)]).view(np.uint32)
    acc = np.zeros((128, n // 2), np.float32)
    db = np.full(128, place(m, 0, b, swizzle, trans_b))
    m.issue(isa.wgmma_sp_rs, acc, words, db, e[0, 0], np.zeros(128), n=n, ab="f16", trans_b=trans_b, selector=selector)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.array_equal(acc, want.ravel(order="F")[elements(wgmma_m64k16(n).c)])


@pytest.mark.parametrize("scale_a, scale_b", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
@pytest.mark.parametrize("use_acc", [0, 1])
@pytest.mark.parametrize("pair", [(0.0, 0.0), (-0.0, -0.0), (0.5, -0.5)])
def test_a_sum_of_wgmma_that_is_zero_is_positive(scale_a, scale_b, use_acc, pair):
    m, n = Machine(lanes=128), 8
    a, b = np.tile(np.array(pair, np.float16), (64, 8)), np.ones((n, 16), np.float16)
    words = np.ascontiguousarray(a.ravel(order="F")[elements(wgmma_m64k16(n, True).a)]).view(np.uint32)
    acc = np.zeros((128, n // 2), np.float32)
    m.issue(isa.wgmma_rs, acc, words, np.full(128, place(m, 0, b, 32, False)), np.full(128, use_acc),
            n=n, ab="f16", trans_b=0, scale_a=scale_a, scale_b=scale_b)  # fmt: skip
    assert not acc.view(np.uint32).any()


@pytest.mark.parametrize("use_acc, old", [(0, 0.0), (1, 0.0), (1, -0.0)])
def test_a_sum_of_wgmma_that_rounds_to_zero_in_f16_is_positive(use_acc, old):
    m, n = Machine(lanes=128), 8
    a, b = np.zeros((64, 16), np.float16), np.full((n, 16), -(2.0**-24), np.float16)
    a[:] = 2.0**-24
    words = np.ascontiguousarray(a.ravel(order="F")[elements(wgmma_m64k16(n, True).a)]).view(np.uint32)
    acc = np.full((128, n // 2), old, np.float16).view(np.uint32)
    db = np.full(128, place(m, 0, b, 32, False))
    m.issue(isa.wgmma_f16_rs, acc, words, db, np.full(128, use_acc), n=n, trans_b=0)
    assert not acc.any()


@pytest.mark.parametrize("old", [0.0, -0.0])
@pytest.mark.parametrize("row, view", [(isa.mma_f32, np.float32), (isa.mma_f16, np.float16)], ids=["f32", "f16"])
def test_a_sum_of_mma_that_is_or_rounds_to_zero_is_positive(row, view, old):
    small = np.full((32, 8), 2.0**-24, np.float16)
    case = {"a_type": "f16", "b_type": "f16"} if view is np.float32 else {}
    for a, b in ((small, -small[:, :4]), (0 * small, -small[:, :4])):
        if view is np.float32 and a.any():
            continue  # f32 has the product
        acc = np.full((32, 4), old, view)
        words = acc.view(np.uint32) if view is np.float16 else acc
        m = Machine(lanes=32)
        m.issue(row, words, a.view(np.uint32), np.ascontiguousarray(b).view(np.uint32), k=16, **case)
        assert not words.view(np.uint32).any()


@pytest.mark.parametrize("row, lanes_hold", [(isa.mma_f64, (2, 1, 1)), (isa.mma_f64_m16, (4, 2, 1))], ids=["m8", "m16"])
@pytest.mark.parametrize(
    "a, b, old, negative",
    [
        (0.0, -1.0, 0.0, False), (0.0, -1.0, -0.0, True), (-0.0, 1.0, -0.0, True), (0.0, 1.0, -0.0, False),
        (2.0**-1000, -(2.0**-1000), 0.0, True), (2.0**-1000, 2.0**-1000, -0.0, False), (1.0, -1.0, 4.0, False),
    ],
)  # fmt: skip
def test_an_f64_mma_has_the_zeros_of_fused_multiply_adds(row, lanes_hold, a, b, old, negative):
    c_regs, a_regs, b_regs = lanes_hold
    acc = np.full((32, c_regs), old)
    statics = {"k": 4} if row is isa.mma_f64_m16 else {}
    Machine(lanes=32).issue(row, acc, np.full((32, a_regs), a), np.full((32, b_regs), b), **statics)
    assert not acc.any() and (np.signbit(acc) == negative).all()


NAN = float("nan")


@pytest.mark.parametrize(
    "op, old, new, want",
    [
        ("min", -2.0, NAN, -2.0), ("min", NAN, 3.0, 3.0), ("min", 0.0, -0.0, -0.0), ("min", -0.0, 0.0, -0.0),
        ("max", -2.0, NAN, -2.0), ("max", NAN, 3.0, 3.0), ("max", 0.0, -0.0, 0.0), ("max", -0.0, 0.0, 0.0),
        ("max", 1.0, 2.0, 2.0), ("min", float("inf"), -float("inf"), -float("inf")), ("add", 0.0, -0.0, 0.0),
        ("add", -2.0, NAN, NAN), ("add", float("inf"), -float("inf"), NAN),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_a_reduction_gives_the_numbers_and_the_nans_of_the_hardware(dtype, op, old, new, want):
    got = combine(op, np.array([old], dtype), np.array([new], dtype)).view(np.uint16)[0]
    assert got == (0x7FFF if want != want else np.array([want], dtype).view(np.uint16)[0])


def test_a_sum_of_f32_by_a_tensor_map_keeps_subnormals_and_one_in_bulk_does_not():
    old, new = np.array([1e-40, 1.17e-38, np.nan], np.float32), np.array([1e-40, -1.1e-38, 1], np.float32)
    assert combine("add", old, new).view(np.uint32).tolist() == [142724, 499537, 0x7FFFFFFF]
    assert combine("add", old, new, flush=True)[:2].tolist() == [0, 0]


def test_wgmma_passes_infinities_and_nans_on():
    m, n = Machine(lanes=128), 8
    a, b = np.zeros((64, 16), np.float16), np.ones((n, 16), np.float16)
    a[0, 0], a[1, 1] = np.inf, np.nan
    acc = np.full((128, 4), -np.inf, np.float32)
    words = [np.full(128, place(m, at, x, 32, False)) for at, x in ((0, a), (1 << 14, b))]
    m.issue(isa.wgmma_ss, acc, *words, np.ones(128), n=n, ab="f16", trans_a=0, trans_b=0)
    assert np.isnan(acc[:8, :2]).all() and np.isneginf(acc[8:]).all() and np.isneginf(acc[:8, 2:]).all()


@pytest.mark.parametrize("step", range(4))
def test_wgmma_steps_along_k_by_advancing_the_start_within_a_swizzle_row(rng, step):
    m, n = Machine(lanes=128), 8
    a, b = small(rng, (64, 64), np.float16), small(rng, (n, 64), np.float16)
    da, db = (place(m, at, x, 128, False) + 2 * step for at, x in ((0, a), (1 << 14, b)))
    acc = np.empty((128, 4), np.float32)
    m.issue(isa.wgmma_ss, acc, np.full(128, da), np.full(128, db), np.zeros(128), n=n, ab="f16", trans_a=0, trans_b=0)
    k = slice(16 * step, 16 * step + 16)
    want = a[:, k].astype(np.float64) @ b[:, k].astype(np.float64).T
    assert np.array_equal(acc, want.ravel(order="F")[elements(wgmma_m64k16(n).c)])


def test_wgmma_says_which_memory_it_reads():
    m = Machine(lanes=128)
    descriptors = [np.full(128, WgmmaDescriptor(at, 16, 1024, 0, 128).encode()) for at in (0, 1 << 14)]
    m.issue(isa.wgmma_ss, np.zeros((128, 32), np.float32), *descriptors, np.ones(128), n=64, ab="f16", trans_a=0, trans_b=0)  # fmt: skip  # noqa: E501
    (_, _, ((a_at, a_bytes), (b_at, _)), _) = m.log[-1]
    touched = (a_at[:, None] + np.arange(a_bytes)).ravel()
    want = np.arange(64)[:, None] * 128 + ((np.arange(64)[:, None] % 8 * 16) & 96) + np.arange(32)
    assert np.array_equal(np.sort(touched), np.sort(want.ravel()))
    assert a_at.max() < b_at.min()


def test_wgmma_refuses_a_descriptor_whose_pattern_starts_off_its_boundary():
    m = Machine(lanes=128)
    word = np.full(128, WgmmaDescriptor(128, 16, 1024, 1, 128).encode())
    with pytest.raises(CuteError, match="base_offset 1: .* multiple of 1024 bytes"):
        m.issue(isa.wgmma_ss, np.zeros((128, 4), np.float32), word, word, np.ones(128), n=8, ab="f16", trans_a=0, trans_b=0)  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("num", [1, 2, 4])
@pytest.mark.parametrize("trans", [False, True])
def test_stmatrix_writes_what_ldmatrix_reads(rng, num, trans):
    m = Machine(lanes=32)
    addresses = rng.permutation(64)[:32] * 16
    words = rng.integers(0, 1 << 32, (32, num), np.uint32)
    m.issue(isa.stmatrix, addresses, words, num=num, trans=trans)
    assert np.array_equal(m.issue(isa.ldmatrix, addresses, num=num, trans=trans), words)
    rows = np.stack([m.read(a, 16).view(np.uint16) for a in addresses[: 8 * num]])
    assert np.array_equal(rows.ravel()[elements(ldmatrix_b16(num, trans).dst)], words.view(np.uint16))


@pytest.mark.parametrize(
    "mode, offset, clamp, source",
    [
        ("idx", 5, 31, lambda t: 5),
        ("idx", 3, 31 | 24 << 8, lambda t: t // 8 * 8 + 3),
        ("up", 1, 0, lambda t: max(t - 1, 0)),
        ("down", 4, 31, lambda t: t + 4 if t + 4 < 32 else t),
        ("down", 4, 31 | 24 << 8, lambda t: t + 4 if t % 8 < 4 else t),
        ("bfly", 16, 31, lambda t: t ^ 16),
    ],
)
def test_shfl_reads_the_lane_that_the_ptx_isa_says(mode, offset, clamp, source):
    value = np.arange(32, dtype=np.uint32) + 100
    got = Machine(32).issue(isa.shfl_sync, value, np.full(32, offset), np.full(32, clamp), mode=mode)
    assert got.tolist() == [100 + source(t) for t in range(32)]


def test_votes_and_election():
    m, flags = Machine(32), np.arange(32) % 3 == 0
    assert set(m.issue(isa.vote_ballot, flags).tolist()) == {sum(1 << t for t in range(0, 32, 3))}
    assert not m.issue(isa.vote_all, flags).any() and m.issue(isa.vote_any, flags).all()
    assert m.issue(isa.elect_sync).sum() == 1


@pytest.mark.parametrize(
    "op, type, want",
    [("add", "u32", (sum(range(31)) - 1) % 2**32), ("min", "s32", -1 % 2**32), ("min", "u32", 0), ("max", "s32", 30),
     ("max", "u32", 2**32 - 1), ("and", "b32", 0), ("or", "b32", 2**32 - 1), ("xor", "b32", 31 ^ 2**32 - 1)],
)  # fmt: skip
def test_redux_reduces_as_its_type(op, type, want):
    values = np.array([*range(31), 2**32 - 1], np.uint32)
    assert set(Machine(32).issue(isa.redux_sync, values, op=op, type=type).tolist()) == {want}


@pytest.mark.parametrize(
    "type, value, half",
    [
        ("bf16", 1.0, 0x3F80), ("bf16", 1.00390625, 0x3F80), ("bf16", -2.5, 0xC020), ("bf16", float("nan"), 0x7FFF),
        ("bf16", float("inf"), 0x7F80), ("f16", 1.0, 0x3C00), ("f16", 65520.0, 0x7C00), ("f16", 2.0**-24, 1),
        ("f16", float("nan"), 0x7FFF),
    ],
)  # fmt: skip
def test_cvt_packs_low_then_high(type, value, half):
    assert Machine().issue(isa.cvt_halves_f32, value, 0.0, type=type) == half
    assert Machine().issue(isa.cvt_halves_f32, 0.0, value, type=type) == half << 16


def test_tma_load_fills_every_cta_of_the_mask_and_completes_its_own_barrier(rng):
    m = Machine(ctas=4)
    m.maps[1 << 40] = TensorMap(rng.integers(0, 256, 512, np.uint8))
    m.issue(isa.cp_async_bulk_tensor_g2s, 256, 1 << 40, (128,), 64, cta_mask=0b1010, rank=1)
    for cta in range(4):
        hit = cta in (1, 3)
        want = m.maps[1 << 40].data[128:256] if hit else np.zeros(128, np.uint8)
        assert np.array_equal(m.read(256, 128, cta=cta), want)
        assert ((cta, 64) in m.bars) == hit
    assert m.bars[3, 64].calls == [("complete_tx", 128)]
    assert [w[0] for w in m.log[-1][3]] == [256 + CTA_STRIDE, 256 + 3 * CTA_STRIDE]


def test_tma_load_to_a_peer_needs_the_barrier_beside_the_data():
    m = Machine(ctas=2)
    m.maps[0] = TensorMap(np.zeros(256, np.uint8))
    with pytest.raises(CuteError, match="dst is in CTA 1 but bar in CTA 0"):
        m.issue(isa.cp_async_bulk_tensor_g2s, CTA_STRIDE, 0, (0,), 64, rank=1)


@pytest.mark.parametrize(
    "row, operands, statics",
    [
        (isa.cp_async_bulk_tensor_g2s, (64, 0, (0,), 0), {"rank": 1}),
        (isa.cp_async_bulk_tensor_s2g, (0, (0,), 64), {"rank": 1}),
        (isa.cp_async_bulk_g2s, (8, 0, 16, 0), {}),
        (isa.cp_async_bulk_s2g, (0, 0, 24), {}),
    ],
)
def test_bulk_copies_refuse_misaligned_addresses_and_sizes(row, operands, statics):
    m = Machine()
    m.maps[0] = TensorMap(np.zeros(256, np.uint8))
    with pytest.raises(CuteError, match="must be a multiple of"):
        m.issue(row, *operands, **statics)


def test_tma_store_and_reduction(rng):
    m = Machine()
    data = rng.integers(0, 100, 128, np.uint8)
    m.write(128, data)
    m.maps[0] = TensorMap(np.ones(256, np.uint8))
    m.issue(isa.cp_async_bulk_tensor_s2g, 0, (128,), 128, rank=1)
    m.issue(isa.cp_reduce_async_bulk_tensor_s2g, 0, (0,), 128, rank=1, op="add")
    assert np.array_equal(m.maps[0].data, np.concatenate([data + 1, data]))


def test_bulk_copies_move_bytes(rng):
    m = Machine(ctas=2)
    m.memory[:64] = rng.integers(0, 256, 64, np.uint8)
    m.issue(isa.cp_async_bulk_g2s, 0, 0, 64, 512)
    m.issue(isa.cp_async_bulk_s2s, CTA_STRIDE + 64, 0, 64, CTA_STRIDE + 512)
    assert np.array_equal(m.read(64, 64, cta=1), m.memory[:64])
    m.issue(isa.cp_async_bulk_s2g, 1024, 0, 64)
    assert np.array_equal(m.memory[1024:1088], m.memory[:64])
    assert m.bars[0, 512].calls == m.bars[1, 512].calls == [("complete_tx", 64)]


def test_a_barrier_of_a_peer_is_reached_through_mapa():
    m = Machine(ctas=2)
    peer = m.issue(isa.mapa, 8, 1)
    m.issue(isa.mbarrier_arrive_expect_tx, peer, 256, space="cluster")
    assert m.bars == {(1, 8): m.mbar(8, 1)} and m.mbar(8, 1).calls == [("arrive", ("tx", 256))]
    assert m.issue(isa.getctarank, peer) == 1


@pytest.mark.parametrize("width, value", [(8, 0x7F), (32, 0xDEADBEEF), (64, 2**63 + 5)])
def test_loads_give_what_was_stored_in_a_peers_memory(width, value):
    m, how = Machine(ctas=2), {"space": "dsmem", "width": width}
    m.issue(isa.st, CTA_STRIDE + 16, [value], **how)
    assert m.issue(isa.ld, CTA_STRIDE + 16, **how) == [value]
    assert m.issue(isa.ld, 16, **how) == [0]


@pytest.mark.parametrize("row", [isa.mbarrier_test_wait_parity, isa.mbarrier_try_wait_parity])
def test_polling_lets_others_run_only_when_the_phase_is_open(row):
    m = Machine()
    assert m.issue(row, 8, 0) == 0 and m.log[0][0] == "pause"
    m.log.clear()
    m.mbar(8).done = True
    assert m.issue(row, 8, 0) == 1 and m.log == []


def test_waiting_blocks_until_the_phase_is_done():
    m = Machine()
    m.issue(isa.mbarrier_wait_parity, 8, 0)
    (name, ready, _, on) = m.log[0]
    assert name == "block" and on is m.mbar(8) and not ready()
    m.mbar(8).done = True
    assert ready()


def test_trap_ends_the_kernel():
    with pytest.raises(CuteError, match="trap"):
        Machine().issue(isa.trap)
