# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a kernel is one CuteError with the user's line."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import isa, seam
from numba_cute.compiler.ground.memory import Memory

from .test_structs import Counter
from .test_values import Kind, code, pair


def bottom(x):
    if x > 3:
        return x
    y = x.nothing
    return y


def _above(f):
    def calls(x):
        if x > 3:
            return f(x) + 1
        return x + f(x)

    return calls


top = _above(_above(_above(_above(bottom))))


@cuda.jit
def deep(out):
    cute.const_expr(True)
    out[0] = top(cuda.threadIdx.x)


@seam.traced
def refuses(x):
    raise cute.CuteError(f"x={x}: it must be 4; pass 4")


@seam.traced
def decides(x):
    return 1 if x > 3 else 2


@seam.traced
def tensor_core():
    isa.wgmma_fence()


@cuda.jit
def refused(out, n):
    refuses(3)


@cuda.jit
def unknown_attribute(out, n):
    out[0] = pair(n).nothing


@cuda.jit
def wrong_arguments(out, n):
    out[0] = code(Kind.A, n)


@cuda.jit
def static_field(out, n):
    c = Counter(1, 3)
    c.limit = n


@cuda.jit
def run_time_decision(out, n):
    out[0] = decides(n)


@cuda.jit
def run_time_unroll(out, n):
    for i in cute.range_constexpr(n):
        out[i] = 0


@cuda.jit
def run_time_registers(out, n):
    cute.make_rmem_tensor(n, cute.Float32)


@cuda.jit
def uses_wgmma(out, n):
    tensor_core()


@seam.traced
def calls_jitted(c):
    return c.bump()


@cuda.jit
def jitted_in_traced(out, n):
    out[0] = calls_jitted(Counter(n, 3))


MESSAGES = {
    jitted_in_traced: ["Counter.bump holds run-time control flow", "not from a traced function", "calls_jitted(C"],
    refused: ["x=3: it must be 4; pass 4", "refuses(3)", "test_errors.py:"],
    unknown_attribute: ["Pair has no attribute 'nothing'", "out[0] = pair(n).nothing"],
    wrong_arguments: ["code(kind)", "too many positional arguments", "code(Kind.A, n)"],
    static_field: ["Counter.limit is static", "annotate the field with a DType"],
    run_time_decision: ["cannot decide compile-time control flow", "decides(n)"],
    run_time_unroll: ["range_constexpr", "range() for a run-time count"],
    run_time_registers: ["static", "make_rmem_tensor(n, cute.Float32)"],
}


@pytest.mark.parametrize("kernel", MESSAGES, ids=lambda k: k.py_func.__name__)
def test_message(kernel):
    with pytest.raises(cute.CuteError) as caught:
        cute.compile(kernel, "void(int32[::1], int32)")
    for part in MESSAGES[kernel]:
        assert part in str(caught.value)
    assert f"in kernel {kernel.py_func.__name__}" in str(caught.value)


def test_an_instruction_that_the_target_lacks_is_named():
    with pytest.raises(cute.CuteError, match=r"wgmma_fence needs sm_90a, and the target is sm_80"):
        cute.compile(uses_wgmma, "void(int32[::1], int32)", arch="sm_80")
    cute.compile(uses_wgmma, "void(int32[::1], int32)", arch="sm_90a")


@pytest.mark.parametrize(
    ("args", "arch", "message"),
    [
        ("void(int32[::1], int32)", "sm_99", "not a known target"),
        ("void(int32[::1], int32)", 90, "not a known target"),
        (np.zeros(3), "sm_90a", r"uses_wgmma\(out, n\) takes 2 arguments, but the launch gives 1"),
    ],
)
def test_compile_checks_its_arguments(args, arch, message):
    with pytest.raises(cute.CuteError, match=message):
        cute.compile(uses_wgmma, args, arch=arch)


def test_a_launch_without_a_static_argument_is_told_which():
    @cute.kernel
    def kernel(out, n: cute.Constexpr):
        out[0] = n

    out = np.zeros(1)
    words = r"takes 2 arguments, but the launch gives 1: there is no value for n \(a Constexpr takes its value at each"
    compiled = cute.compile(kernel, (out, 3), arch="sm_90a")
    for launch in (lambda: compiled(out), lambda: cute.simulate(kernel)[1, 1](out), lambda: kernel[1, 1](out)):
        with pytest.raises(cute.CuteError, match=words):
            launch()


def warps_of(n):
    return n // cuda.warpsize


def lanes():
    return cuda.warpsize


def test_warpsize_needs_no_gpu():
    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x + 70
        out[0], out[1], out[2] = i % cuda.warpsize, warps_of(i), lanes()
        cute.const_expr(True)

    out = np.zeros(3)
    cute.simulate(kernel)[1, 1](out)
    assert out.tolist() == [6, 2, 32]
    cute.compile(kernel, (out,), arch="sm_90a")
    pytest.importorskip("xdsl")
    cute.inspect(kernel, (out,), arch="sm_90a")


def test_two_targets_in_one_process_do_not_mix():
    @cuda.jit
    def kernel(out, n):
        c = Counter(n, 100)
        c.bump()
        out[0] = c.n

    for arch in ("sm_80", "sm_90a", "sm_100a", "sm_80"):
        assert f".target {arch}" in cute.compile(kernel, "void(int32[::1], int32)", arch=arch).ptx


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "simulated"])
def test_a_mistake_below_many_functions_is_met_once(compiled, monkeypatch):
    """Numba types a call that failed once more: with each function on the way three times as often."""
    asked = []
    compile_device = Memory._compile
    monkeypatch.setattr(Memory, "_compile", lambda *given: asked.append(given[1]) or compile_device(*given))
    with pytest.raises(cute.CuteError, match="no attribute 'nothing'") as caught:
        if compiled:
            cute.compile(deep, "void(int64[::1])")
        else:
            cute.simulate(deep)[1, 1](np.zeros(1, np.int64))
    assert "y = x.nothing" in str(caught.value)
    assert len(asked) == len(set(asked)) == 5


def fails(n):
    return n.nothing


def after_a_condition(c, n):
    if n > 3:
        n = n + 1
    return fails(n)


def after_a_loop(c, n):
    for _ in range(n):
        n = n + 1
    return fails(n)


def after_a_jitted_method(c, n):
    c.bump()
    return fails(n)


def after_two_functions(c, n):
    after = c.bump() + c.doubled()
    return after_a_jitted_method(c, n) + after


def after_a_print(c, n):
    print(n)
    return fails(n)


@pytest.mark.parametrize(
    "helper", [after_a_condition, after_a_loop, after_a_jitted_method, after_two_functions, after_a_print]
)
def test_what_ends_tracing_does_not_hide_what_is_wrong(helper):
    """A function that Python cannot follow is compiled: it is refused for what stops that alone."""

    @cuda.jit
    def kernel(out, n):
        out[0] = helper(Counter(n, 3), n)

    with pytest.raises(cute.CuteError, match="nothing") as caught:
        cute.compile(kernel, "void(int32[::1], int32)")
    assert "return n.nothing" in str(caught.value)


def test_a_note_that_means_lost_speed_is_a_warning():
    @cuda.jit  # no launch_bounds: ptxas cannot know the registers, and ignores setmaxnreg
    def kernel(out):
        cute.arch.setmaxregister_decrease(40)
        out[0] = 1

    with pytest.warns(cute.PerformanceWarning, match=r"kernel kernel: .*setmaxnreg"):
        compiled = cute.compile(kernel, (np.zeros(4),))
    assert any("C7508" in note for note in compiled.notes)
