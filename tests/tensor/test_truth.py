# SPDX-License-Identifier: Apache-2.0
"""What Python asks of one number, or of a sequence, is no question for vectors and tensors: the simulator, with lanes
apart and together, and the compiler refuse it in the same words."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

QUESTIONS = {
    "if v: out[i] = 1": "truth",
    "if v > 0: out[i] = 1": "truth",
    "if 0.5 < v: out[i] = 1": "truth",
    "while v > 0: out[i] = 1": "truth",
    "assert v > 0": "truth",
    "w = not v": "truth",
    "w = v and u": "truth",
    "w = v or u": "truth",
    "w = bool(v)": "truth",
    "w = 1 if v == u else 2": "truth",
    "w = 0 < v < 1": "truth",
    "w = max(v, u)": "truth",
    "w = min(v, u)": "truth",
    "w = max(v, out[i])": "truth",
    "w = max((v, u))": "truth",
    "w = sorted((v, u))": "truth",
    "w = v in (u, u)": "truth",
    "w = any((v, u))": "truth",
    "w = int(v)": "number",
    "w = float(v)": "number",
    "w = any(v)": "iteration",
    "w = sum(v)": "iteration",
    "for x in v: out[i] = x": "iteration",
    "w = len(v)": "len",
}
OF_VECTORS = {
    "truth": "has no truth value: it holds 4; choose by element with cute.where",
    "number": "is not a number: v[i] is one of its elements",
    "iteration": "cannot be iterated over: its elements are v[i], i in cute.range_constexpr(4)",
    "len": "has no len(): its size is cute.size(v.shape)",
}
OF_TENSORS = {
    "w = v + u": "`t + x`",
    "w = 2 * v": "`x * t`",
    "w = -v": "`-t`",
    "w = abs(v)": "`abs(t)`",
    "w = v > out[i]": "`t > x`",
    "w = v == 0": "`t == x`",
    "w = v != 0": "`t == x`",
    "w = max(v, u)": "`t > x`",
    "if v: out[i] = 1": "has no truth value: load it, and ask cute.any_(t.load())",
    "w = not v": "has no truth value",
    "w = v and u": "has no truth value",
    "w = float(v)": "is not a number: t[i] is one of its elements",
    "for x in v: out[i] = x": "cannot be iterated over: its elements are t[i]",
    "w = len(v)": "has no len(): its size is cute.size(t)",
}
OF_OBJECTS = {
    "if v: out[i] = 1": "has no truth value: write what you mean",
    "w = not v": "has no truth value",
    "w = v or u": "has no truth value",
    "w = v > 0": "has no order",
    "w = max(v, u)": "has no order",
}
VECTORS = """t = cute.make_rmem_tensor((4,), cute.Float32)
    t.fill(1.0)
    v = t.load()
    u = 2 * v"""
TENSORS = """v = cute.make_rmem_tensor((4,), cute.Float32)
    u = cute.make_rmem_tensor((4,), cute.Float32)"""
LAYOUTS = "v = u = cute.make_layout((4, 2))"
POINTERS = """v = cute.make_rmem_tensor((4,), cute.Float32).iterator
    u = v + 1"""
CASES = [(VECTORS, q, OF_VECTORS[what]) for q, what in QUESTIONS.items()]
CASES += [(TENSORS, q, words) for q, words in OF_TENSORS.items()]
CASES += [(made, q, words) for made in (LAYOUTS, POINTERS) for q, words in OF_OBJECTS.items()]
NAMES = {VECTORS: "vector", TENSORS: "tensor", LAYOUTS: "layout", POINTERS: "pointer"}


def kernel_of(made, statement):
    space = {"cute": cute, "cuda": cuda}
    exec(f"def kernel(out):\n    i = cuda.threadIdx.x\n    {made}\n    {statement}\n", space)
    return space["kernel"]


@pytest.mark.parametrize(
    ("made", "statement", "words"), CASES, ids=[f"{NAMES[made]}: {statement}" for made, statement, _ in CASES]
)
def test_the_question_is_refused_in_the_same_words(made, statement, words):
    kernel, out = kernel_of(made, statement), np.zeros(32, np.float32)
    said = []
    for run in (
        lambda: cute.simulate(kernel)[1, 32](out),
        lambda: cute.simulate(kernel, checks=False)[1, 32](out),
        lambda: cute.compile(kernel, (out,)),
    ):
        with pytest.raises(cute.CuteError) as caught:
            run()
        said.append(str(caught.value).splitlines()[0])
    assert words in said[0]
    assert said[0] == said[1] == said[2]
    assert not out.any()


def test_the_mends_that_the_words_name_do_what_was_meant(run):
    def kernel(out):
        t = cute.make_rmem_tensor((4,), cute.Float32)
        for i in cute.range_constexpr(4):
            t[i] = i - 1.5
        v = t.load()
        u = abs(v)
        out[0] = 1 if cute.any_(v > 0) else 2
        out[1] = 1 if cute.all_(v > 0) else 2
        out[2] = cute.where(v > 0, u, 0.0)[1]
        out[3] = cute.max(v, -v)[0]
        out[4] = v.reduce(cute.ReductionOp.MAX, 0.0)

    out = np.zeros(5, np.float32)
    run(kernel, 1, 1, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [1, 2, 0, 1.5, 1.5]))


def test_constants_of_the_library_are_true_and_looked_for_as_in_python(run):
    def kernel(out):
        out[0] = 1 if cute.Float32 in (cute.Float16, cute.Float32) else 2
        out[1] = 1 if cute.Int8 in (cute.Float16, cute.Float32) else 2
        out[2] = 1 if cute.make_layout(4) in (cute.make_layout(3), cute.make_layout(4)) else 2
        out[3] = 1 if cute.Float32 else 2

    out = np.zeros(4, np.float32)
    run(kernel, 1, 1, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [1, 2, 1, 1]))


def test_on_the_host_objects_are_true_as_in_python():
    assert cute.make_layout((4, 2))
    assert cute.make_ptr(cute.Float32, 64)
    with pytest.raises(cute.CuteError, match=r"has no truth value: load it"):
        bool(cute.runtime.from_dlpack(np.zeros(4)))


def test_a_run_time_number_on_the_left_meets_a_vector_on_the_right(run):
    def kernel(out, x):
        t = cute.make_rmem_tensor((4,), cute.Float32)
        for i in cute.range_constexpr(4):
            t[i] = i
        v = t.load()
        out[0] = 1 if (x[0] < v)[3] else 2
        out[1] = 1 if (x[0] >= v)[3] else 2

    out, x = np.zeros(2, np.float32), np.array([2], np.float32)
    run(kernel, 1, 1, (out, x), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [1, 2]))
