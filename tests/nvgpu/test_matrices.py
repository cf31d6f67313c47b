# SPDX-License-Identifier: Apache-2.0
"""Rows without an operation of their own, and those of later targets, on the least machine."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from numba_cute import isa
from numba_cute.isa.facts.bits import WgmmaDescriptor
from numba_cute.isa.facts.fragment_layouts import elements, ldmatrix_b16, mma_sync, stmatrix_m16n8_b8, wgmma

from ..isa.fake import Machine


def test_movmatrix_transposes(rng):
    matrix = rng.integers(0, 1 << 16, (8, 8), dtype=np.uint16)
    held = elements(ldmatrix_b16(1, False).dst)
    words = np.ascontiguousarray(matrix.ravel()[held]).view(np.uint32)[:, 0]
    got = Machine(lanes=32).issue(isa.movmatrix, words)
    assert np.array_equal(np.ascontiguousarray(got).view(np.uint16).reshape(32, 2), matrix.T.ravel()[held])


@pytest.mark.parametrize("num", [1, 2])
def test_ldmatrix_of_bytes_gives_four_rows_of_a_column_to_a_register(rng, num):
    m = Machine(lanes=32)
    rows = rng.integers(0, 256, (16 * num, 16), dtype=np.uint8)
    m.write_rows(np.arange(16 * num) * 16, rows)
    addr = np.resize(np.arange(16 * num) * 16, 32)
    got = np.ascontiguousarray(m.issue(isa.ldmatrix_m16n16_b8, addr, num=num)).view(np.uint8).reshape(32, 2 * num, 4)
    for lane in range(32):
        for register in range(2 * num):
            first = 16 * (register // 2) + 4 * (lane % 4)
            assert np.array_equal(got[lane, register], rows[first : first + 4, lane // 4 + 8 * (register % 2)])


@pytest.mark.parametrize("num", [1, 2, 4])
def test_stmatrix_of_bytes_puts_each_register_in_two_rows(rng, num):
    m = Machine(lanes=32)
    words = rng.integers(0, 1 << 32, (32, num), dtype=np.uint32)
    m.issue(isa.stmatrix_m16n8_b8, np.resize(np.arange(8 * num) * 16, 32), words, num=num)
    rows = m.read_rows(np.arange(8 * num) * 16, 16)
    assert np.array_equal(rows.ravel()[elements(stmatrix_m16n8_b8(num).src)], words.view(np.uint8))


@pytest.mark.parametrize("a_in_registers", [False, True])
def test_wgmma_counts_bits_set_in_both(rng, a_in_registers):
    m, n = Machine(lanes=128), 24
    a, b = rng.integers(0, 2, (64, 256), dtype=np.uint8), rng.integers(0, 2, (n, 256), dtype=np.uint8)
    packed = [np.packbits(x, axis=1, bitorder="little") for x in (a, b)]
    descriptors = []
    for at, rows in zip((0, 1 << 14), packed):  # no swizzle: two chunks of 16 bytes a row, 8 rows of each together
        for r, row in enumerate(rows):
            for c in range(2):
                byte = at + r // 8 * 256 + c * 128 + r % 8 * 16
                m.shared[0][byte : byte + 16] = row[16 * c : 16 * c + 16]
        descriptors.append(np.full(128, WgmmaDescriptor(at, 128, 256, 0, 0).encode()))
    acc = np.ones((128, n // 2), np.int32)
    atom = wgmma(n, 256, 1, True)
    if a_in_registers:
        fragment = np.packbits(a.ravel(order="F")[elements(atom.a)], axis=1, bitorder="little").view(np.uint32)
        m.issue(isa.wgmma_b1_rs, acc, fragment, descriptors[1], np.ones(128), n=n)
    else:
        m.issue(isa.wgmma_b1_ss, acc, *descriptors, np.ones(128), n=n)
    want = (a.astype(np.int32) @ b.astype(np.int32).T + 1).ravel(order="F")
    assert np.array_equal(acc, want[elements(atom.c)])


NARROW = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 0),
    "e5m2": (ml_dtypes.float8_e5m2, 0),
    "e2m3": (ml_dtypes.float6_e2m3fn, 0),
    "e3m2": (ml_dtypes.float6_e3m2fn, 0),
    "e2m1": (ml_dtypes.float4_e2m1fn, 2),
}


@pytest.mark.parametrize("a_type", NARROW)
@pytest.mark.parametrize("b_type", NARROW)
def test_narrow_floats_take_a_byte_each(rng, a_type, b_type):
    a, b = (rng.integers(-2, 3, s).astype(NARROW[t][0]) for s, t in (((16, 32), a_type), ((8, 32), b_type)))
    atom = mma_sync(16, 32, 8)
    words = []
    for matrix, layout, kind in ((a, atom.a, a_type), (b, atom.b, b_type)):
        codes = matrix.view(np.uint8) << NARROW[kind][1]
        words.append(np.ascontiguousarray(codes.ravel(order="F")[elements(layout)]).view(np.uint32))
    acc = np.ones((32, 4), np.float32)
    Machine(lanes=32).issue(isa.mma_f32_f8f6f4, acc, *words, k=32, a_type=a_type, b_type=b_type)
    want = (a.astype(np.float64) @ b.astype(np.float64).T + 1).ravel(order="F")
    assert np.array_equal(acc, want[elements(atom.c)])
