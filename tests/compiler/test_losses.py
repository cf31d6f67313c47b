# SPDX-License-Identifier: Apache-2.0
"""What costs speed is a note of the compiled kernel, with the line, and an error where that is asked for."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

X = np.zeros(32, np.float32)


@cuda.jit(device=True)
def scaled(x, y):
    z = 0.1 if y > 1 else 0.5
    return x * z + y


def sums(o, x, y):
    acc = 0.0
    for i in range(x.shape[0]):
        acc += x[i] * y[i]  # <-
    o[0] = acc


def divides(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    o[i] = x[i] / 3 + y[i]  # <-


def calls(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    o[i] = scaled(x[i], y[i])


def narrow(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    acc = cute.Float32(0.0)
    for j in range(4):
        acc += x[i] * y[j] * cute.Float32(0.1)
    o[i] = acc * 0.5  # LLVM computes that in float32: it is exact


def meant(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    acc = cute.Float64(0.0)
    acc += x[i] * float(y[i])
    o[i] = acc


def spilling(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cute.make_rmem_tensor(96, cute.Float32)
    for j in cute.range_constexpr(96):
        held[j] = x[i + j]
    cute.arch.sync_threads()
    for j in cute.range_constexpr(96):
        o[i + j] = held[95 - j] * y[j]


def indexed(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cuda.local.array(64, np.float32)
    for j in range(y.shape[0]):
        held[j] = x[i + j]
    o[i] = held[i]


def large(o, x, y):
    i, _, _ = cute.arch.thread_idx()
    held = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(114 * 256))
    held[i] = x[i]
    o[i] = held[i]


NOTED = {
    sums: "a float32 meets a Python float or an integer.*acc \\+= x\\[i\\]",
    divides: "a float32 meets.*x\\[i\\] / 3",
    calls: "a float32 meets.*return x \\* z",
    spilling: "registers are spilled: a thread stores",
    indexed: "256 bytes of local memory a thread",
    large: "116736 bytes of shared memory let an SM of sm_90a hold 1 of the kernel's CTAs: 115712 would let it hold 2",
}


def compiled(kernel, **options):
    most = {"max_registers": 32} if kernel is spilling else {}
    return cute.compile(cuda.jit(**most)(kernel), (X, X, X), **options)


@pytest.mark.parametrize("kernel", NOTED, ids=lambda k: k.__name__)
def test_what_costs_speed_is_noted_and_refused_where_asked(kernel):
    (note,) = compiled(kernel).notes
    with pytest.raises(cute.CuteError, match=f"(?s)^lost speed: .*{NOTED[kernel]}") as said:
        compiled(kernel, notes="error")
    assert str(said.value) == note


@pytest.mark.parametrize("kernel", [narrow, meant], ids=lambda k: k.__name__)
def test_what_costs_nothing_or_is_meant_is_not_noted(kernel):
    assert compiled(kernel, notes="error").notes == ()


def test_a_device_function_that_is_taken_again_is_noted_again():
    assert compiled(calls).notes == compiled(calls).notes != ()


def test_notes_are_kept_or_errors():
    with pytest.raises(cute.CuteError, match='notes=True: "keep" or "error"'):
        compiled(narrow, notes=True)
