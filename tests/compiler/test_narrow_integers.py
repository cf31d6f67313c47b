# SPDX-License-Identifier: Apache-2.0
"""Integers whose values 32 bits hold are divided in 32 bits, and every result is as in 64; special registers are known
to be small, and read once."""

import itertools
import re

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.emit.ranges import known, narrowed
from numba_cute.sim import simulate
from tests.native import Native

EDGES = [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 3, 2**31 - 1]


@cuda.jit
def divided(a, b, out):
    layout = cute.make_layout(4)
    i = cuda.threadIdx.x
    out[i, 0] = a[i] // b[i]
    out[i, 1] = a[i] % b[i]
    out[i, 2] = (a[i] + cute.size(layout)) // b[i]  # which 32 bits may not hold
    out[i, 3] = (a[i] & 7) * 3 // (b[i] % 5 - 6)
    out[i, 4] = (i * 8 + 3) % (b[i] // 2)
    out[i, 5] = a[i] // 7 + a[i] % 7 * 10
    out[i, 6] = a[i] * b[i] // 1000003
    out[i, 7] = a[i] * b[i] % 1000003
    out[i, 8] = a[i] // 1 + a[i] % 1 - a[i] // -1


def test_every_quotient_is_as_in_64_bits():
    pairs = np.array(list(itertools.product(EDGES, EDGES)), np.int32)
    a, b = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    want = np.zeros((len(a), 9), np.int64)
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist())):
        half = y // 2
        want[i, :3] = (x // y, x % y, (x + 4) // y) if y else (0, 0, 0)
        want[i, 3:5] = (x & 7) * 3 // (y % 5 - 6), (i * 8 + 3) % half if half else 0
        want[i, 5:] = x // 7 + x % 7 * 10, x * y // 1000003, x * y % 1000003, x * 2
    got, simulated = (np.full_like(want, -1) for _ in range(2))
    Native(divided, (a, b, got)).run(len(a), a, b, got)
    simulate(divided)[1, len(a)](a, b, simulated)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(simulated, want)


@cuda.jit
def tiles(x, n):
    b, t = cute.arch.block_idx()[0], cuda.threadIdx.x
    row, column = b // n, (t * 8 + 3) % 32
    x[row * 32 + column] = cute.arch.block_dim()[0] // 4
    cute.arch.sync_threads()
    x[row * 32 + column + 1] = cute.arch.block_dim()[0]


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_no_division_has_64_bits_and_a_register_is_read_once(arch):
    ptx = cute.compile(tiles, np.zeros(64, np.float32), np.int32(3), arch=arch).ptx
    assert not re.search(r"\b(div|rem)\.[su]64", ptx) and ptx.count("%ntid.x") == 1
    assert re.search(r"shr\.u32[^\n]*, 2;", ptx)  # a block has threads, and no negative number of them


def test_what_is_known_of_a_number():
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(32), ir.IntType(64)]), "f")
    b = ir.IRBuilder(function.append_basic_block())
    narrow, wide = function.args
    i64, whole = ir.IntType(64), (-(2**63), 2**63 - 1)
    least, most = -(2**31), 2**31 - 1
    x = b.sext(narrow, i64)
    assert known(x) == (least, most) and known(wide) == whole
    assert known(b.add(x, i64(5))) == (least + 5, most + 5) and known(b.sub(i64(0), x)) == (-most, -least)
    assert known(b.mul(b.and_(wide, i64(7)), i64(-3))) == (-21, 0) and known(b.mul(wide, i64(2))) == whole
    assert known(b.zext(narrow, i64)) == (0, 2**32 - 1) and known(b.add(narrow, narrow.type(1))) == (least, most)
    assert known(b.and_(x, wide)) == whole and known(ir.Constant(i64, 9)) == (9, 9)
    assert known(b.sext(narrow.type(2**32 - 1), i64)) == (least, most)  # -1, written without a sign
    assert narrowed(b, x, 32) is narrow and narrowed(b, b.add(x, i64(5)), 32) is None
    assert narrowed(b, b.and_(wide, i64(7)), 32).opname == "trunc"
