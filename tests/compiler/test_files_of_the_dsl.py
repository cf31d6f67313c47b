# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's files have in their kernels: each is Python's in the simulator, and compiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from tests.compiler.three_ways import results

HEAD = "import numba_cute as cute\nfrom typing import Tuple, Callable\nSIZE = 64\n"


@pytest.mark.parametrize("lines", [
    "o[0] = 1 if n in {5, 7} else 0\no[1] = 1 if m not in {5, 7} else 0",
    "o[2] = 1 if cute.const_expr(SIZE in {64, 192}) else 0",
    "def f(x: Tuple, g: Callable) -> Tuple[int, int]:\n    return g(x[0]), x[1]\n"
    "def h(y: int) -> int:\n    return y * 3\na, b = f((n, m), h)\no[0] = a\no[1] = b",
])  # fmt: skip
def test_three_ways_agree(lines):
    python, simulated, compiled = results(HEAD, lines)
    assert simulated == python and compiled == python and python


def both(kernel, *args, threads: int = 1) -> None:
    """Simulate a kernel, and compile it."""
    cute.simulate(kernel)[1, threads](*args)
    cute.compile(kernel, *args, arch="sm_90a")


def test_a_set_elsewhere_is_refused():
    @cute.kernel
    def k(x: cute.Tensor):
        s = {1, 2}
        x[0] = 1 if x[1] in s else 0

    x = from_dlpack(np.zeros(2, np.int32))
    for run in (lambda: cute.simulate(k)[1, 1](x), lambda: cute.compile(k, x)):
        with pytest.raises(cute.CuteError, match="a set in a kernel"):
            run()


def test_a_branch_on_a_size_leaves_out_what_is_out_of_bounds():
    @cute.kernel
    def k(x: cute.Tensor, n: cute.Int32):
        t = cute.make_rmem_tensor(cute.make_layout((2, 4)), cute.Float32)
        t.fill(0.0)
        for j in range(n):
            for i in cute.range_constexpr(cute.size(t.shape[1])):
                if i < cute.size(t.shape[1]) - 1:
                    t[None, i + 1].fill(i + j)
                x[i] = t[0, i]

    x = np.zeros(4, np.float32)
    both(k, from_dlpack(x), cute.Int32(2))
    assert x.tolist() == [0, 1, 2, 3]


def test_a_class_and_elect_one_in_one_kernel():
    @cute.kernel
    def k(x: cute.Tensor):
        @cute.struct
        class Storage:
            count = 4
            align = count * 8
            held: cute.struct.Align[cute.struct.MemRange[cute.Float32, count], align]

        held = cute.utils.SmemAllocator().allocate(Storage).held.get_tensor(cute.make_layout(4))
        with cute.arch.elect_one():
            for i in cute.range_constexpr(4):
                held[i] = i + 1.0
        cute.arch.sync_warp()
        t = cute.arch.thread_idx()[0]
        if t < 4:
            x[t] = held[t]

    x = np.zeros(4, np.float32)
    both(k, from_dlpack(x), threads=32)
    assert x.tolist() == [1, 2, 3, 4]


def test_an_atom_of_one_value_copies_a_mode_of_several():
    @cute.kernel
    def k(x: cute.Tensor, y: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=32)
        src = cute.make_tensor(x.iterator, cute.make_layout(8, stride=0))
        cute.copy(atom, src, cute.make_tensor(y.iterator, cute.make_layout(8)))

    x, y = np.float32([3, 4]), np.zeros(8, np.float32)
    both(k, from_dlpack(x), from_dlpack(y))
    assert y.tolist() == [3] * 8


def test_a_vector_under_another_shape():
    @cute.kernel
    def k(x: cute.Tensor, y: cute.Tensor):
        y.store(cute.TensorSSA(x.load(), (2, 4), cute.Float32) + 1.0)

    x, y = np.arange(8, dtype=np.float32), np.zeros((4, 2), np.float32)
    both(k, from_dlpack(x), from_dlpack(y.T))
    assert y.ravel().tolist() == (x + 1).tolist()


def test_consumers_that_each_arrive():
    """A static tidx=0 says that every thread of a single CTA signals: the group is the threads."""

    @cute.kernel
    def k(x: cute.Tensor):
        pipe = cute.pipeline.PipelineTmaAsync.create(
            num_stages=2, producer_group=cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Thread, 1),
            consumer_group=cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Thread, 32), tx_count=16, tidx=0,
        )  # fmt: skip
        t = cute.arch.thread_idx()[0]
        state = cute.pipeline.make_pipeline_state(cute.pipeline.PipelineUserType.Consumer, 2)
        if t >= 32:
            pipe.consumer_release(state)
        else:
            cute.arch.mbarrier_wait(pipe.sync_object_empty.get_barrier(0), 0)
            x[t] = 1

    x = np.zeros(32, np.int32)
    cute.simulate(k)[1, 64](from_dlpack(x))
    cute.compile(k, from_dlpack(x), arch="sm_90a")
    assert x.all()


CHANGES: list[tuple[str, Callable[..., object], object]] = [
    ("mark_layout_dynamic", lambda t: t.mark_layout_dynamic(), None),
    ("mark_compact_shape_dynamic", lambda t: t.mark_compact_shape_dynamic(mode=0), None),
]


@pytest.mark.parametrize("change", [c for _, c, _ in CHANGES], ids=[n for n, _, _ in CHANGES])
def test_a_tensor_of_the_host_is_changed_itself(change):
    t = from_dlpack(np.zeros((4, 8), np.float32))
    assert change(t) is t
    assert not cute.is_static(t.shape[0])


def test_the_element_type_of_a_tensor_is_set():
    t = from_dlpack(np.zeros((4, 8), np.uint8))
    t.element_type = cute.Float8E4M3FN
    assert t.element_type is cute.Float8E4M3FN and t.shape == (4, 8)
    with pytest.raises(cute.CuteError, match="give an element type"):
        t.element_type = int
    with pytest.raises(AttributeError):
        t.layout = cute.make_layout(4)
    with pytest.raises(cute.CuteError, match="coordinates"):
        cute.make_identity_tensor((4,)).element_type = cute.Int32


def test_a_tensor_is_not_changed_in_a_kernel():
    @cute.kernel
    def k(x: cute.Tensor):
        x.mark_layout_dynamic()

    x = from_dlpack(np.zeros((4, 8), np.float32))
    for run in (lambda: cute.simulate(k)[1, 1](x), lambda: cute.compile(k, x)):
        with pytest.raises(cute.CuteError):
            run()


@pytest.mark.parametrize("a, b, same", [
    (cute.Float16, cute.Float8E4M3FN, True), (cute.Int8, cute.Uint32, True), (cute.Float32, cute.Int32, False),
    (cute.Boolean, cute.Int8, False), (cute.Boolean, cute.Boolean, True),
])  # fmt: skip
def test_kinds_of_element_types(a, b, same):
    assert a.is_same_kind(b) is same and b.is_same_kind(a) is same
