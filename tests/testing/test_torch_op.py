# SPDX-License-Identifier: Apache-2.0
"""Launches as operators of PyTorch's: in the simulator on the host's tensors, and on a GPU."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
gpu = pytest.mark.gpu


@cuda.jit
def scaling(x, factor, out):
    i = cuda.grid(1)
    tensor = cute.make_tensor(out.iterator, out.layout)
    if i < cute.size(tensor):
        tensor[i] = x[i] * factor


def run(x, factor, out):
    """Launch on a GPU, or run in the simulator."""
    grid, n = -(-x.numel() // 64), x.numel()
    if x.is_cuda:
        flat = [cute.runtime.from_dlpack(t.detach().view(n)) for t in (x, out)]
        scaling[grid, 64, torch.cuda.current_stream()](flat[0], np.float32(factor), flat[1])
    else:
        flat = [cute.runtime.from_dlpack(t.detach().view(n).numpy()) for t in (x, out)]
        cute.simulate(scaling)[grid, 64](flat[0], np.float32(factor), flat[1])


if torch is not None:

    def gradient(ctx, g):
        (x,) = ctx.saved_tensors
        assert x.shape == g.shape and ctx.given["x"] is None
        return scale(g.contiguous(), ctx.given["factor"]), None

    @cute.torch_op(
        "numba_cute_tests::scale", out=lambda x, factor: torch.empty_like(x), backward=gradient, devices=None
    )
    def scale(x: torch.Tensor, factor: float, result: torch.Tensor) -> None:
        run(x, factor, result)

    @cute.torch_op("numba_cute_tests::scale_", mutates="x", devices=None)
    def scale_(x: torch.Tensor, factor: float) -> None:
        run(x, factor, x)

    @cute.torch_op(
        "numba_cute_tests::two", out=lambda x, n=2: (torch.empty_like(x), x.new_empty(x.shape[0] * n)), devices=None
    )
    def two(x: torch.Tensor, n: "int" = 2, same: torch.Tensor = None, more: torch.Tensor = None) -> None:
        run(x, 1.0, same)
        for i in range(n):
            run(x[:, 0].contiguous(), float(i), more[i * x.shape[0] : (i + 1) * x.shape[0]])


DEVICES = [pytest.param("cpu", marks=needs_torch), pytest.param("cuda", marks=[needs_torch, gpu])]


def quiet(test):
    """Of what inductor says of itself: modules that it imports are deprecated, a graph that it begins with is empty."""
    for said in ("ignore::DeprecationWarning:torch.*", "ignore:The CUDA Graph is empty"):
        test = pytest.mark.filterwarnings(said)(test)
    return test


everywhere = pytest.mark.parametrize("device", DEVICES)


@everywhere
def test_a_call_gives_what_the_kernel_writes(device):
    x = torch.randn(5, 33, device=device)
    assert torch.equal(scale(x, 2.5), 2.5 * x)
    assert torch.equal(torch.ops.numba_cute_tests.scale(x, 2.5), 2.5 * x)
    y = x.clone()
    assert scale_(y, 3.0) is None and torch.equal(y, 3 * x)
    same, more = two(x, 3)
    assert torch.equal(same, x) and torch.equal(more.view(3, 5), x[:, 0] * torch.arange(3, device=device)[:, None])
    assert two(x)[1].shape == (10,)


@everywhere
@pytest.mark.parametrize("name", ["scale", "scale_", "two"])
def test_torchs_own_checks_of_operators_pass(device, name):
    x = torch.randn(4, 16, device=device, requires_grad=name == "scale")
    torch.library.opcheck(globals()[name], (x, 3) if name == "two" else (x, 2.0))


@quiet
@everywhere
def test_a_compiled_function_holds_the_operator_whole(device):
    backend = "inductor" if device == "cuda" else "aot_eager"

    @torch.compile(fullgraph=True, backend=backend)
    def f(x):
        y = scale(x.sin(), 3.0)
        scale_(y, 2.0)
        return two(y)[0] + 1

    for n in (4, 7):
        x = torch.randn(n, 8, device=device)
        torch.testing.assert_close(f(x), 6 * x.sin() + 1)


@everywhere
def test_gradients_flow_through_it_compiled_and_not(device):
    def f(x):
        return scale(x * x, 3.0).sum()

    for g in (f, torch.compile(f, fullgraph=True, backend="aot_eager")):
        x = torch.randn(6, 4, device=device, requires_grad=True)
        g(x).backward()
        torch.testing.assert_close(x.grad, 6 * x)


@everywhere
def test_fake_tensors_have_the_shapes_that_out_says(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(5, 6, device=device)
        assert scale(x, 1.0).shape == (5, 6) and [t.shape for t in two(x, 4)] == [(5, 6), (20,)]
        assert two(x)[1].device.type == device


@pytest.mark.gpu
@needs_torch
def test_a_cuda_graph_captures_it():
    x = torch.ones(1000, device="cuda")
    for _ in range(2):
        scale(x, 2.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = scale(x, 2.0)
        scale_(y, 3.0)
    for value in (1.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert (y == 6 * value).all()


@quiet
@pytest.mark.gpu
@needs_torch
def test_compiled_with_cuda_graphs_it_is_right():
    f = torch.compile(lambda x: scale(x + 1, 2.0) * 2, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        x = torch.randn(512, device="cuda")
        torch.testing.assert_close(f(x), (x + 1) * 4)


@needs_torch
@pytest.mark.parametrize(
    ("given", "function", "words"),
    [
        ({"name": "scale"}, lambda x: None, "name 'scale' must be \"library::operator\""),
        ({}, lambda x: None, "gives nothing: say with out= what it makes"),
        ({"mutates": "y"}, lambda x: None, "mutates 'y' is not a parameter"),
        ({"mutates": "x"}, lambda x: None, "parameter 'x' has no annotation"),
        ({"mutates": "x"}, lambda *x: None, "takes .args or"),
        ({"out": lambda y: y}, lambda x, r: None, r"out takes \(y\), and the function \(x, r\)"),
        ({"out": lambda x: x}, lambda x: None, r"out takes \(x\), and the function \(x\)"),
        ({"mutates": "x", "backward": print}, lambda x: None, "writes x: torch has no backward= for such"),
        ({"out": lambda x: x, "setup_context": print}, lambda x, r: None, "has setup_context= and no backward="),
    ],
    ids=["name", "nothing", "mutates", "annotation", "args", "out", "results", "backward", "setup"],
)
def test_what_can_be_no_operator_is_refused(given, function, words):
    with pytest.raises(cute.CuteError, match=f"torch_op: .*{words}"):
        cute.torch_op(**{"name": "numba_cute_tests::wrong", **given})(function)


@needs_torch
def test_a_type_that_torch_does_not_know_is_refused():
    def wrong(x: dict, out: torch.Tensor) -> None: ...

    with pytest.raises(cute.CuteError, match="torch_op: numba_cute_tests::wrong: .*dict"):
        cute.torch_op("numba_cute_tests::wrong", out=lambda x: x)(wrong)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(cute.CuteError, match="torch_op: PyTorch is not installed: pip install torch"):
        cute.torch_op("a::b", mutates="x")
