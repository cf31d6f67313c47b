# SPDX-License-Identifier: Apache-2.0
"""Tensors of `cuda.shared.array` lie in shared memory: for loads, mbarriers and TMA, however the array came there."""

import re
import types

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types as nb

import numba_cute as cute
from numba_cute import arch, nvgpu, pipeline
from numba_cute.runtime import from_dlpack

from ..native import Native

BACK = np.arange(32)[::-1]
RECORD = np.dtype([("x", np.float32), ("n", np.int32)])
NESTED = np.dtype([("p", RECORD), ("v", np.float32, (2,)), ("b", np.bool_)], align=True)


@cuda.jit(device=True)
def put(array, i):
    cute.make_tensor(array, 32)[i] = i


def got(array, i):
    return cute.make_tensor(array, 32)[31 - i]


@cuda.jit
def whole(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(32, nb.float32)
    t = cute.make_tensor(shared, cute.make_layout(32))
    t[i] = i
    cuda.syncthreads()
    out[i] = t[31 - i]


@cuda.jit(device=True)
def filled(i):
    shared = cuda.shared.array(shape=(32,), dtype=nb.float32)
    shared[i] = i
    return shared


@cuda.jit(device=True)
def one_of_two(second):
    first, other = cuda.shared.array(32, nb.float32), cuda.shared.array(32, nb.float32)
    if second:
        return other
    return first


@cuda.jit(device=True)
def last(array):
    return array[31:]


def plain(i):
    return cuda.shared.array((2, 32), nb.float32)[1]


@cuda.jit
def returned(out):
    i = cuda.threadIdx.x
    t, u, v = cute.make_tensor(filled(i), 32), one_of_two(out.shape[0] > 40), plain(i)
    u[i], v[i] = 100, 1000
    again = filled(i)  # the same memory
    cuda.syncthreads()
    out[i] = t[31 - i] + again[31 - i] - t[31 - i] + (u[31 - i] - 100) + (v[31 - i] - 1000)
    cuda.syncthreads()
    if i == 31:
        last(out)[0] = last(again)[0] - 31


@cuda.jit
def own_shape(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(shape=(4, 8), dtype=nb.float32)
    t = cute.make_tensor(shared)  # 4 by 8, row by row
    registers = cute.make_rmem_tensor_like(t)  # which its static shape allows
    registers.fill(0)
    shared[i // 8, i % 8] = i
    cuda.syncthreads()
    out[i] = t[3 - i // 8, 7 - i % 8]


@cuda.jit
def part(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(64, nb.float32)
    shared[32 + i] = i
    cuda.syncthreads()
    out[i] = cute.make_tensor(shared[32:], 32)[31 - i]


@cuda.jit
def turned(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array((8, 4), nb.float32)
    shared[i // 4, i % 4] = i
    cuda.syncthreads()
    out[i] = cute.make_tensor(shared.T)[3 - i % 4, 7 - i // 4]


@cuda.jit
def column(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array((32, 4), nb.float32)
    shared[i, 2] = i
    cuda.syncthreads()
    out[i] = cute.make_tensor(shared[:, 2])[31 - i]


@cuda.jit
def passed_on(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(32, nb.float32)
    put(shared, i)
    cuda.syncthreads()
    out[i] = got(shared, i)


@cuda.jit
def held(out):
    i = cuda.threadIdx.x
    space = types.SimpleNamespace(shared=cuda.shared.array(32, nb.float32))
    pair = (space.shared, 3)
    cute.make_tensor(pair[0], 32)[i] = i
    cuda.syncthreads()
    out[i] = cute.make_tensor(space.shared, 32)[31 - i]


@cuda.jit
def chosen(out):
    i = cuda.threadIdx.x
    a, b = cuda.shared.array(32, nb.float32), cuda.shared.array(32, nb.float32)
    a[i] = b[i] = i
    cuda.syncthreads()
    shared = a
    if i > 7:
        shared = b
    out[i] = cute.make_tensor(shared, 32)[31 - i]


@cuda.jit
def of_bools(out):
    i = cuda.threadIdx.x
    t = cute.make_tensor(cuda.shared.array(32, nb.boolean), 32)
    t[i] = i % 3 == 0
    cuda.syncthreads()
    out[i] = (31 - i) if t[31 - i] == ((31 - i) % 3 == 0) else -1


@cuda.jit
def of_records(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(32, RECORD)
    x = cute.make_tensor(shared.x)  # a field of all of them
    x[i] = i
    shared[i]["n"] = 1
    cuda.syncthreads()
    out[i] = x[31 - i] + shared[31 - i].n - 1


@cuda.jit
def of_nested_records(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array((4, 8), NESTED)
    mine = shared[i // 8, i % 8]
    mine.p.x = i
    mine.v[1] = 1
    mine.b = True
    cuda.syncthreads()
    other = shared[3 - i // 8, 7 - i % 8]
    out[i] = other.p.x + other.v[1] - other.b
    cute.arch.sync_threads()


@cuda.jit
def of_two_sizes(out):
    i = cuda.threadIdx.x
    long, short = cuda.shared.array(32, nb.float32), cuda.shared.array(16, nb.float32)
    long[i] = 31 - i
    if i < 16:
        short[i] = 31 - i
    cuda.syncthreads()
    array = short if i < 16 else long
    out[i] = cute.make_tensor(array, 32)[i]


ARRAYS = [whole, passed_on, of_records, returned, of_two_sizes] + [
    pytest.param(k, marks=pytest.mark.slow)
    for k in (own_shape, part, turned, column, held, chosen, of_bools, of_nested_records)
]
CHECKS = [True, pytest.param(False, marks=pytest.mark.slow)]


@pytest.mark.parametrize("checks", CHECKS)
@pytest.mark.parametrize("kernel", ARRAYS, ids=lambda k: k.py_func.__name__)
def test_the_simulator_has_arrays_in_shared_memory(kernel, checks):
    out = np.zeros(32, np.float32)
    cute.simulate(kernel, checks=checks)[1, 32](out)
    np.testing.assert_array_equal(out, BACK)


@pytest.mark.parametrize("kernel", ARRAYS, ids=lambda k: k.py_func.__name__)
def test_compiled_code_loads_from_shared_memory(kernel):
    ptx = cute.compile(kernel, np.zeros(32, np.float32)).ptx
    assert "ld.shared" in ptx
    assert "ld.f32" not in ptx and "ld.u8" not in ptx and "ld.b32" not in ptx  # generic ones


@cuda.jit
def either(out):
    i = cuda.threadIdx.x
    shared = cuda.shared.array(32, nb.float32)
    shared[i] = 31 - i
    cuda.syncthreads()
    array = out
    if out[i] == 0:
        array = shared
    out[i] = cute.make_tensor(array, 32)[i]


def test_what_may_be_elsewhere_too_is_anywhere():
    out = np.zeros(32, np.float32)
    cute.simulate(either)[1, 32](out)
    np.testing.assert_array_equal(out, BACK)
    assert "ld.f32" in (ptx := cute.compile(either, out).ptx) or "ld.b32" in ptx


@cuda.jit(device=True)
def of_its_own(i):
    own = cuda.local.array(4, nb.float32)
    own[0] = i
    return own


def test_an_array_in_a_functions_frame_is_gone_when_it_returns():
    @cuda.jit
    def kernel(out):
        out[0] = of_its_own(cute.arch.lane_idx())[0]

    said = r"(?s)of_its_own has cuda.local.array, which is gone when it returns.*return own"
    with pytest.raises(cute.CuteError, match=said):
        cute.compile(kernel, np.zeros(1, np.float32))


@cuda.jit
def dynamic(out):
    i = cuda.threadIdx.x
    t = cute.make_tensor(cuda.shared.array(0, nb.float32), 32)
    t[i] = i
    cuda.syncthreads()
    cuda.atomic.add(t, 0, 31.0)
    cuda.syncthreads()
    out[i] = t[i]


@pytest.mark.parametrize("checks", CHECKS)
def test_dynamic_shared_memory_and_atomics(checks):
    out = np.zeros(32, np.float32)
    cute.simulate(dynamic, checks=checks)[1, 32, 0, 128](out)
    np.testing.assert_array_equal(out, [31 * 32, *range(1, 32)])
    ptx = cute.compile(dynamic, out).ptx
    assert "ld.shared" in ptx and re.search(r"(atom|red)[a-z.]*\.shared\S*\.add\.f32", ptx)


@cuda.jit
def loaded(atom, tile, out):
    i, _, _ = arch.thread_idx()
    shared = cuda.shared.array((64, 64), nb.float16, alignment=128)
    barrier = cute.make_tensor(cuda.shared.array(1, nb.int64), 1).iterator
    there, here = nvgpu.cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(cute.make_tensor(shared), 0, 2), cute.group_modes(tile, 0, 2)
    )
    if i == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
    cuda.syncthreads()
    if i == 0:
        arch.mbarrier_arrive_and_expect_tx(barrier, 64 * 64 * 2)
    cute.copy(atom, here, there, tma_bar_ptr=barrier)
    arch.mbarrier_wait(barrier, 0)
    for row in range(64):
        out[row, i] = shared[row, i]
        out[row, i + 32] = shared[row, i + 32]


def test_tma_and_mbarriers_take_them(run):
    raw = np.zeros(64 * 64 + 64, np.float16)
    x = raw[-(raw.ctypes.data // 2) % 64 :][: 64 * 64].reshape(64, 64)
    x[...] = np.arange(64 * 64).reshape(64, 64) % 1000
    out = np.zeros((64, 64), np.float16)
    atom = []

    def made(place):
        op = nvgpu.cpasync.CopyBulkTensorTileG2SOp()
        layout = cute.make_layout((64, 64), stride=(64, 1))
        atom[:] = nvgpu.cpasync.make_tiled_tma_atom(op, from_dlpack(place(x)), layout, (64, 64))
        return atom[0]

    def check():
        np.testing.assert_array_equal(out, x)

    run(loaded, 1, 32, (made, lambda place: atom[1], out), outputs=[out], check=check)


@cuda.jit
def not_aligned(atom, tile, out):
    shared = cute.make_tensor(cuda.shared.array((64, 64), nb.float16))
    barrier = cute.make_tensor(cuda.shared.array(1, nb.int64), 1).iterator
    there, here = nvgpu.cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(tile, 0, 2)
    )
    cute.copy(atom, here, there, tma_bar_ptr=barrier)


def test_an_array_promises_the_alignment_that_it_was_given_alone():
    x = np.zeros((64, 64), np.float16)
    layout = cute.make_layout((64, 64), stride=(64, 1))
    made = nvgpu.cpasync.make_tiled_tma_atom(nvgpu.cpasync.CopyBulkTensorTileG2SOp(), from_dlpack(x), layout, (64, 64))
    for attempt in (lambda: cute.simulate(not_aligned)[1, 32](*made, x), lambda: cute.compile(not_aligned, *made, x)):
        with pytest.raises(cute.CuteError, match=r"Float16, smem, align 2.*must be aligned to 128 bytes"):
            attempt()


@cuda.jit
def piped(out):
    i = cuda.threadIdx.x
    storage = cute.make_tensor(cuda.shared.array(4, nb.uint64), 4).iterator
    all_of_it = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    producer, consumer = pipeline.PipelineAsync.create(
        num_stages=2, producer_group=all_of_it, consumer_group=all_of_it, barrier_storage=storage
    ).make_participants()
    producer.acquire_and_advance().commit()
    consumer.wait_and_advance().release()
    producer.tail()
    out[i] = 31 - i


def test_pipelines_keep_their_barriers_in_them(run):
    out = np.zeros(32, np.float32)
    run(piped, 1, 32, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, BACK))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_tensor_of_an_array_alone_is_all_of_it(order):
    @cuda.jit
    def kernel(x, out):
        i = cuda.threadIdx.x
        out[i] = cute.make_tensor(x)[i // 8, i % 8]

    x, out = np.asarray(np.arange(32, dtype=np.float32).reshape(4, 8), order=order), np.zeros(32, np.float32)
    cute.simulate(kernel)[1, 32](x, out)
    np.testing.assert_array_equal(out, range(32))
    assert "ld.global" in cute.compile(kernel, x, out).ptx


def test_a_layout_is_needed_for_anything_else():
    with pytest.raises(cute.CuteError, match="make_tensor: layout is missing"):
        cute.make_tensor((0, 0))


def test_the_ir_knows_where_they_lie():
    pytest.importorskip("xdsl")
    from numba_cute import ir

    text = str(cute.inspect(own_shape, (np.zeros(32, np.float32),)))
    assert "!numba.array<!cute.f32, 2, C, shared (4,8)>" in text or "shared (4,8)" in text
    assert str(ir.parse(text)) == text


def fragment(x, at):
    held = cute.make_rmem_tensor(4, cute.Float32)
    cute.autovec_copy(cute.make_tensor(x.iterator + at, cute.make_layout(4)), held)
    return held


of_its_own_frame = cuda.jit(fragment)


@cuda.jit
def same(held):
    return held


def test_a_device_function_gives_back_registers_of_its_own():
    @cuda.jit
    def kernel(x, y):
        a, b = of_its_own_frame(x, 0), of_its_own_frame(x, 4)
        a.store(a.load() * b.load())
        cute.autovec_copy(a, y)

    x = np.arange(8, dtype=np.float32)
    expected = x[:4] * x[4:]
    y = np.zeros(4, np.float32)
    cute.simulate(kernel)[1, 1](from_dlpack(x), from_dlpack(y))
    np.testing.assert_array_equal(y, expected)
    y = np.zeros(4, np.float32)
    given = from_dlpack(x), from_dlpack(y)
    Native(kernel, given).run(1, *given)
    np.testing.assert_array_equal(y, expected)


def test_registers_of_a_plain_function_and_those_that_were_given_come_back():
    @cuda.jit
    def kernel(x, y):
        a, b = same(fragment(x, 0)), fragment(x, 4)
        a.store(a.load() * b.load())
        cute.autovec_copy(a, y)

    x, y = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
    given = (from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    cute.simulate(kernel)[1, 1](*given)
    np.testing.assert_array_equal(y, x[:4] * x[4:])
    assert cute.compile(kernel, given).ptx.count("ld.global.v4") == 2
