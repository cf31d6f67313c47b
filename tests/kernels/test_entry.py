# SPDX-License-Identifier: Apache-2.0
"""What entries of kernels share: checks in words, launches that are remembered, operators of torch's."""

import math
import sys

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import kernels
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels import carried, entry
from numba_cute.kernels.gemm import Epilogue, amax, bias, entry as matmul_entry, gelu
from numba_cute.kernels.gemm.cuts import Warps
from numba_cute.kernels.gemm.hook import Hook
from numba_cute.seam.marks.launches import launching

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@cuda.jit
def scaling(x, weight, y, factor):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i] * factor if weight is None else x[i] * factor * weight[i]


def plan(x, weight, y, factor):
    return entry.Work(scaling, -(-x.shape[0] // 32), 32, static=(np.float32(factor),))


def scaled(x: "torch.Tensor", weight: "torch.Tensor | None", factor: float):
    entry.check("scale", "x", x, dtypes=("float32",), rank=1)
    entry.check("scale", "weight", weight, dtypes=("float32",), shape=x.shape, like=x, optional=True)
    return x.new_empty(x.shape)


def test_work_is_simulated_and_compiled():
    x, w, y = np.arange(40, dtype=np.float32), np.full(40, 3, np.float32), np.zeros(40, np.float32)
    plan(x, w, y, 2.0).simulate(x, w, y)
    assert (y == 6 * x).all()
    plan(x, None, y, 2.0).simulate(x, None, y)
    assert (y == 2 * x).all()
    assert "scaling" in plan(x, w, y, 2.0).compile(x, w, y).ptx


@pytest.mark.parametrize(
    "given, rule, words",
    [
        (3, {}, "add: x is int 3; give a tensor of torch's on the GPU"),
        (None, {"optional": False}, "add: x is None; give a tensor"),
        (np.zeros(3, np.int32), {"dtypes": entry.FLOATS}, "int32 of shape (3,) and strides (1,)"),
        (np.zeros(3, np.int32), {"dtypes": entry.FLOATS}, "must be bfloat16, float16 or float32: convert it with x.to"),
        (np.zeros((3, 4), np.float32), {"rank": 1}, "it must have 1 modes"),
        (np.zeros(3, np.float32), {"least_rank": 2}, "it must have 2 modes or more"),
        (np.zeros((3, 4), np.float32), {"shape": (None, 5)}, "its shape must be (any, 5)"),
        (np.zeros((3, 4), np.float32).T, {}, "its last mode must be contiguous: give x.contiguous()"),
    ],
    ids=["number", "none", "type", "remedy", "rank", "least_rank", "shape", "stride"],
)
def test_a_check_says_what_was_given_and_the_rule(given, rule, words):
    with pytest.raises(cute.CuteError) as e:
        entry.check("add", "x", given, **rule)
    assert words in str(e.value)


def test_what_suits_passes():
    entry.check("add", "x", None, optional=True)
    entry.check("add", "x", np.zeros((3, 4), ml_dtypes.bfloat16), dtypes=entry.FLOATS, rank=2, shape=(None, 4))
    assert entry.element_type(np.zeros(3, ml_dtypes.bfloat16)) is cute.BFloat16
    with pytest.raises(cute.CuteError, match="complex64 are none of"):
        entry.element_type(np.zeros(3, np.complex64))


@needs_torch
def test_launches_are_remembered_by_types_shapes_strides_and_alignment():
    planned, launched = [], []

    def noted(*args):
        planned.append(args)
        return lambda *tensors: launched.append(tensors)

    launch = entry.Planned(noted)
    with cute.simulation():
        remembered(launch, planned, launched)
    again = len(planned)
    with cute.simulation(sms=3):  # another GPU
        launch((torch.zeros(8), None), (1.0,))
    assert len(planned) == again + 1


def remembered(launch, planned, launched):
    x, y = torch.zeros(8, requires_grad=True), torch.zeros(8)
    launch((x, None), (1.0,))
    launch((y, None), (1.0,))  # as the first
    assert len(planned) == 1 and len(launched) == 2 and not launched[0][0].requires_grad
    for tensors, static in [((y, y), (1.0,)), ((y, None), (2.0,)), ((y[:4], None), (1.0,)), ((y[::2], None), (1.0,)),
                            ((y[1:5], None), (1.0,)), ((y.double(), None), (1.0,))]:  # fmt: skip
        launch(tensors, static)
    assert len(planned) == 7


@needs_torch
def test_tensors_of_the_host_are_refused():
    x = torch.zeros(8)
    said = r"scale: a tensor is float32 of shape \(8,\) and strides \(1,\) on cpu; give .*`with cute.simulation\(\):`"
    with pytest.raises(cute.CuteError, match=said):
        entry.Planned(plan, "scale")((x, None, x), (2.0,))
    with cute.simulation():
        entry.Planned(plan, "scale")((x, None, x), (2.0,))


HOW = {
    "softmax": lambda: kernels.softmax(bf16(2, 8)),
    "matmul": lambda: kernels.matmul(bf16(8, 8), bf16(8, 8)),
    "conv2d": lambda: kernels.conv2d(images(1, 8, 4, 4), images(8, 8, 1, 1)),
    "flash_attention": lambda: kernels.flash_attention(*[bf16(1, 8, 1, 64)] * 3),
    "latent_attention": lambda: kernels.latent_attention(bf16(1, 1, 1, 576), bf16(1, 8, 576), scale=1.0),
}


@needs_torch
@pytest.mark.parametrize("name", HOW)
def test_each_entry_says_how_tensors_of_the_host_are_taken(name):
    with pytest.raises(cute.CuteError, match=rf"{name}: .*call it in `with cute.simulation\(\):`"):
        HOW[name]()


@needs_torch
def test_derivatives_that_there_are_not_are_refused():
    x, w = torch.zeros(8), torch.zeros(8, requires_grad=True)
    entry.refuse_gradients("add", [x, None, 3])
    with pytest.raises(cute.CuteError, match=r"add: float32 of shape \(8,\).* requires a gradient, .*torch.no_grad"):
        entry.refuse_gradients("add", [x, None, w])
    with torch.no_grad():
        entry.refuse_gradients("add", [w])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        entry.refuse_tangents("add", [x, None, 3])
        for refuse in (entry.refuse_tangents, entry.refuse_gradients):
            with pytest.raises(cute.CuteError, match="has a tangent, and there is no forward-mode"):
                refuse("add", [dual])
        with pytest.raises(cute.CuteError, match="entry_scale: .* has a tangent"):
            SCALE(dual, None, 2.0)


@needs_torch
def test_gradients_of_tensors_that_have_none_are_refused():
    x, w = torch.zeros(8), torch.zeros(8, requires_grad=True)
    for call in (lambda: CONSTANT(x, w, 2.0), lambda: SCALE(x, None, 2.0, into=(w,))):
        with pytest.raises(cute.CuteError, match="requires a gradient, and there is none"):
            call()


def bf16(*shape, grad=False):
    return torch.zeros(shape, dtype=torch.bfloat16, requires_grad=grad)


def images(*shape):
    return bf16(*shape).to(memory_format=torch.channels_last)


GRADIENTLESS = {
    "matmul, what it finds beside": lambda: kernels.matmul(
        bf16(8, 8), bf16(8, 8), epilogue=amax(torch.zeros(1, requires_grad=True))
    ),
    "matmul, what it writes to": lambda: kernels.matmul(bf16(8, 8), bf16(8, 8), out=bf16(8, 8, grad=True)),
    "flash_attention, of a function": lambda: kernels.flash_attention(
        *[bf16(1, 8, 1, 64)] * 3, score=lambda s, *_: s, aux=(torch.zeros(1, requires_grad=True),)
    ),
    "flash_attention, of a mask": lambda: kernels.flash_attention(
        *[bf16(1, 8, 1, 64)] * 3, mask=lambda *_: True, mask_aux=(torch.zeros(1, requires_grad=True),)
    ),
    "attention_with_cache": lambda: kernels.attention_with_cache(
        bf16(1, 1, 1, 64), *[bf16(1, 8, 1, 64)] * 2, *[bf16(1, 1, 1, 64, grad=True)] * 2, torch.zeros(1).int()
    ),
    "rotary, its cosines": lambda: kernels.rotary(bf16(8, 1, 64), bf16(8, 32, grad=True), bf16(8, 32)),
    "int4_weights": lambda: kernels.int4_weights(torch.zeros(8, 16).char(), bf16(8, 1, grad=True)),
}


@needs_torch
@pytest.mark.parametrize("call", GRADIENTLESS)
def test_no_entry_drops_a_gradient(call):
    with pytest.raises(cute.CuteError, match="a gradient"):
        GRADIENTLESS[call]()


if torch is not None:

    def gradient(ctx, g):
        x, w = ctx.saved_tensors
        return SCALE(g.contiguous(), w, ctx.given["factor"]), None, None

    SCALE = entry.Operator("numba_cute_tests::entry_scale", plan, scaled, backward=gradient)
    CONSTANT = entry.Operator("numba_cute_tests::entry_constant", plan, scaled, backward=gradient, constant=("weight",))


@needs_torch
@pytest.mark.slow
@cute.simulation()
def test_an_operator_gives_results_and_takes_them():
    x, w = torch.arange(8.0), torch.full((8,), 3.0)
    assert torch.equal(SCALE(x, w, 2.0), 6 * x) and torch.equal(SCALE(x, None, 2.0), 2 * x)
    out = torch.zeros(8)
    assert SCALE(x, w, 2.0, into=(out,)) is out and torch.equal(out, 6 * x)
    with pytest.raises(cute.CuteError, match=r"entry_scale: out\[0\] is float32 of shape \(4,\)"):
        SCALE(x, w, 2.0, into=(out[:4],))
    with pytest.raises(cute.CuteError, match="scale: weight is float32 of shape"):
        SCALE(x, w[:4], 2.0)


@needs_torch
@pytest.mark.slow
@cute.simulation()
def test_an_operator_has_gradients_and_is_traced():
    x, w = torch.arange(8.0, requires_grad=True), torch.full((8,), 3.0)
    y = SCALE(x, w, 2.0)
    y.sum().backward()
    assert torch.equal(y, 6 * x) and torch.equal(x.grad, torch.full((8,), 6.0))
    with pytest.raises(cute.CuteError, match="out is given, and a gradient is asked for"):
        SCALE(x, w, 2.0, into=(torch.zeros(8),))
    with torch.no_grad():
        SCALE(x, w, 2.0, into=(torch.zeros(8),))
    torch.library.opcheck(SCALE.made, (x, w, 2.0))
    traced = torch.compile(lambda x: SCALE(x, w, 2.0) + 1, backend="eager", fullgraph=True)
    assert torch.equal(traced(x.detach()), 6 * x + 1)


CONSTANTS = (
    0.0,
    -0.0,
    0,
    False,
    1,
    1.0,
    True,
    0j,
    complex(-0.0, 0),
    "1",
    None,
    math.nan,
    (0.0,),
    (-0.0,),
    ((1,), 1),
    ((1,), 1.0),
)
CONSTANTS += (np.float32(0), np.float32(-0.0), np.float64(0), np.int32(0), entry.Work(None, 1, 1))


def test_constants_that_python_takes_for_the_same_are_told_apart():
    """By what all entries remember their launches by, and by the names of operators' arguments."""
    keys = [carried.exact((x,)) for x in CONSTANTS]
    assert len(set(keys)) == len(CONSTANTS) and keys == [carried.exact((x,)) for x in CONSTANTS]
    names = [carried.name_of((x, "of this test")) for x in CONSTANTS]
    assert len(set(names)) == len(names) and names == [carried.name_of((x, "of this test")) for x in CONSTANTS]


def times(x, factor):
    return x * factor


@needs_torch
@pytest.mark.parametrize("traced", [False, True])
def test_an_epilogue_of_minus_zero_is_none_of_zero(traced):
    a, b = (torch.ones(16, 16).bfloat16().requires_grad_(traced) for _ in range(2))
    factors = []

    def note(kernel, args, launch):
        (hook,) = (x for x in args if isinstance(x, Hook))
        factors.append(str(hook.steps[0].inputs[0].value.value))

    with answering_for("sm_80", 4), launching(note):
        for factor in (0.0, -0.0, 0.0):
            kernels.matmul(a, b, epilogue=Epilogue(times, factor))
    assert factors == ["0.0", "-0.0", "0.0"]


@needs_torch
def test_a_cut_is_told_from_what_python_takes_for_the_same():
    """As all that `matmul` remembers its launches by: by the one function that does so."""
    a, b, known = bf16(16, 16), bf16(16, 16), matmul_entry._known
    known.clear()
    with answering_for("sm_80", 4), launching(lambda *_: None):
        for ctas in (1, True, 1):
            kernels.matmul(a, b, cut=Warps((128, 128), (2, 2), ctas=ctas))
    assert len(known) == 2


@needs_torch
@pytest.mark.parametrize(("fused", "most"), [(False, 22), (True, 34)])
def test_a_later_call_of_matmul_calls_few_functions(monkeypatch, fused, most):
    """Each of them is time of the host; the launch is not counted."""
    a, b, v, calls = bf16(16, 16), bf16(16, 16), bf16(16), []
    monkeypatch.setattr(matmul_entry, "_known", {})
    monkeypatch.setattr(matmul_entry, "_prepared", lambda *_: (lambda *tensors: None, lambda: a))
    for _ in range(2):
        calls.clear()
        sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
        kernels.matmul(a, b, epilogue=bias(v) | gelu() if fused else None)
        sys.setprofile(None)
    assert len(calls) <= most, calls
