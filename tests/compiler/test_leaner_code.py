# SPDX-License-Identifier: Apache-2.0
"""Code that does not compute again what it knows: loops over ranges, addresses under predicates, vectors whose
registers lie apart, the shape of all blocks; and lines change nothing of it."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host.offline import ptx_of, taken
from numba_cute.isa.form.limits import BlockBounds
from numba_cute.sim import simulate
from tests.native import Native

LEAST, MOST = -(2**31), 2**31 - 1
RANGES = [
    (start, stop, step)
    for start, stop in ((0, 0), (0, 7), (7, 0), (-3, 4), (MOST - 5, MOST), (LEAST, LEAST + 5), (MOST, MOST - 5))
    for step in (1, 2, 5, 7, 8, -1, -2, -5, MOST, LEAST, 0)  # of a step of 0 the simulator says that there is none
]


@cuda.jit
def ranged(given, out):
    t = cuda.threadIdx.x
    count, sum, last = cute.Int32(0), cute.Int64(0), cute.Int64(-1)
    for i in range(given[t, 0], given[t, 1], given[t, 2]):
        count, sum, last = count + 1, sum + i, cute.Int64(i)
    out[t, 0], out[t, 1], out[t, 2] = count, sum, last


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_range_has_pythons_items_and_no_division(dtype):
    given = np.array(RANGES, dtype)
    items = [list(range(*r)) if r[2] else [] for r in RANGES]
    want = np.array([(len(x), sum(x), x[-1] if x else -1) for x in items])
    got, simulated = (np.zeros_like(want) for _ in range(2))
    Native(ranged, (given, got)).run(len(given), given, got)
    steps = given[:, 2] != 0
    simulate(ranged)[1, int(steps.sum())](given[steps], simulated)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(simulated[: steps.sum()], want[steps])
    assert not re.search(r"\b(div|rem)\.", cute.compile(ranged, given, got).ptx)


@cute.kernel
def guarded(x, y, apart, m, n):
    rows = cute.make_layout((8, 4), stride=(apart, 1))
    t = cuda.threadIdx.x
    mine = [cute.local_tile(cute.make_tensor(a, rows), (4, 4), (t, 0)) for a in (x, y)]
    place = cute.local_tile(cute.make_identity_tensor((8, 4)), (4, 4), (t, 0))
    pred = cute.make_rmem_tensor((4, 4), cute.Boolean)
    for i in cute.range_constexpr(16):
        pred[i] = cute.elem_less(place[i], (m, n))
    cute.basic_copy_if(pred, mine[0], mine[1])


@pytest.mark.parametrize("m, n", [(8, 4), (5, 3), (0, 4), (7, 1)])
def test_guarded_elements_are_copied_and_their_rows_addressed_once(m, n):
    x, y = np.arange(48, dtype=np.float32), np.full(48, -1, np.float32)
    want = y.reshape(8, 6).copy()
    want[:m, :n] = x.reshape(8, 6)[:m, :n]
    args = x, y, 6, m, n
    simulate(guarded)[1, 2](*args)
    np.testing.assert_array_equal(y.reshape(8, 6), want)
    ptx = cute.compile(guarded, args).ptx
    steps = re.findall(r"^\s(?:mul|mad|shl|add)\S*64", ptx[: ptx.rindex("ld.f32")], re.MULTILINE)
    assert ptx.count("ld.f32") == 16 and len(steps) < 20  # 2 or so a row, and not for each element


@cuda.jit
def apart(x, y):
    regs = cute.make_rmem_tensor(cute.make_layout(8, stride=2), cute.Float32)
    cute.autovec_copy(cute.recast_tensor(x, cute.Float32), regs)
    cute.autovec_copy(regs, y)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_registers_that_lie_apart_are_loaded_and_stored_by_vectors(dtype):
    x, y = np.arange(8, dtype=np.float32).view(dtype), np.zeros(8, np.float32)
    wide = [cute.runtime.from_dlpack(a, assumed_align=16) for a in (x, y)]
    simulate(apart)[1, 1](*wide)
    np.testing.assert_array_equal(y.view(dtype), x)
    ptx = cute.compile(apart, *wide).ptx
    widths = re.findall(r"(ld|st)\.global(?:\.v(\d))?", ptx)
    if dtype is np.float32:
        assert widths == [("ld", "4")] * 2 + [("st", "4")] * 2


@cute.kernel
def shaped(out):
    x, y, z = cute.arch.block_dim()
    tx, ty, tz = cute.arch.thread_idx()
    out[tx + x * (ty + y * tz)] = x * 100 + ty * 10 + tz


@cute.jit
def shaped_on_host(out):
    shaped(out).launch(grid=1, block=(4, 2, 1))
    shaped(out).launch(grid=1, block=8, max_number_threads=16)


def test_a_block_of_one_shape_is_known_and_others_are_refused():
    out = np.zeros(8, np.int32)
    first, second = cute.compile(shaped_on_host, out).kernels
    assert ".reqntid 4, 2, 1" in first.ptx and ".maxntid" not in first.ptx
    assert "%ntid" not in first.ptx and "%tid.z" not in first.ptx and "%tid.y" in first.ptx
    assert ".maxntid 16" in second.ptx and ".reqntid" not in second.ptx and "%ntid" in second.ptx
    cute.simulate(shaped_on_host)(out)
    np.testing.assert_array_equal(out, 800)
    alone = shaped._bounded_to(BlockBounds((4, 2, 1)))
    with pytest.raises(cute.CuteError, match=r"block \(8, 1, 1\): the kernel is compiled for blocks of \(4, 2, 1\) al"):
        simulate(alone)[1, 8](out)
    assert alone._bounded_to(BlockBounds((8, 1, 1))).targetoptions["launch_bounds"].block == (8, 1, 1)
    assert BlockBounds((4, 2, 1)) != BlockBounds((8, 1, 1)) != (8,)


@pytest.mark.parametrize("kernel, args", [(ranged, (np.zeros((4, 3), np.int32), np.zeros((4, 3), np.int64)))])
def test_lines_change_no_instruction(kernel, args):
    function, types, options = taken(kernel, args, "sm_90a", "compile")
    with compiling_for("sm_90a") as cc:
        plain, lined = (ptx_of(function, types, {**options, "lineinfo": on}, cc)[1] for on in (False, True))
    of = lambda ptx: re.findall(r"^\t(?!\.)\S.*;", re.sub(r"_ZN\w+_param", "", ptx), re.MULTILINE)  # noqa: E731
    assert ".loc" in lined and of(plain) == of(lined)


@cuda.jit(device=True)
def come(bar, phase):
    cute.arch.mbarrier_wait(bar, phase)


@pytest.mark.parametrize("waits", [cute.arch.mbarrier_wait, come], ids=["at once", "in a function"])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_a_loop_that_waits_stands_once(waits, arch):
    @cuda.jit
    def kernel(n, out):
        bar = cute.utils.SmemAllocator().allocate_array(cute.Int64, 4, 8)
        for i in range(n):
            waits(bar + (i & 3), i & 1)
            out[i] = i

    assert cute.compile(kernel, 8, np.zeros(8, np.int32), arch=arch).ptx.count("mbarrier.try_wait") == 1
