# SPDX-License-Identifier: Apache-2.0
"""`cute.simulation()`: each way in which a program launches runs in the simulator, as it stands."""

import threading

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import numba_cute as cute

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@cuda.jit
def plain(x, y, factor):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i] * factor


@cuda.jit
def of_cute(x, y, factor):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(y):
        y[i] = x[i] * factor


@cute.kernel
def marked(x: cute.Tensor, y: cute.Tensor, factor: cute.Float32):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(y):
        y[i] = x[i] * factor


def tensors(*arrays):
    return tuple(map(cute.runtime.from_dlpack, arrays))


@cute.jit
def host(x, y):
    marked(*tensors(x, y), 3.0).launch(grid=1, block=32)


WAYS = {
    "kernel[grid, block]": lambda x, y: plain[1, 32](x, y, np.float32(3)),
    "its tensors": lambda x, y: of_cute[1, 32](*tensors(x, y), np.float32(3)),
    "forall": lambda x, y: plain.forall(len(x))(x, y, np.float32(3)),
    "launch": lambda x, y: cute.launch(of_cute, grid=1, block=32, pdl=True)(*tensors(x, y), np.float32(3)),
    "prepare": lambda x, y: cute.launch(plain, grid=1, block=32).prepare(x, y, np.float32(3))(),
    "a cute.kernel": lambda x, y: marked[1, 32](*tensors(x, y), 3.0),
    ".launch": lambda x, y: marked(*tensors(x, y), 3.0).launch(grid=1, block=32),
    "a host function": lambda x, y: host(x, y),
    "simulate": lambda x, y: cute.simulate(plain)[1, 32](x, y, np.float32(3)),
    "simulate of a host function": lambda x, y: cute.simulate(host)(x, y),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_launch_is_simulated(way):
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with cute.simulation():
        WAYS[way](x, y)
    assert (y == 3 * x).all()


def test_a_host_function_that_is_simulated_launches_in_any_way():
    @cute.jit
    def launches(x, y):
        plain[1, 32](x, y, np.float32(2))
        cute.launch(plain, grid=1, block=32)(y, y, np.float32(2))

    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    cute.simulate(launches)(x, y)
    assert (y == 4 * x).all()


def asks(seen):
    seen.append(cute.utils.HardwareInfo().get_device_multiprocessor_count())


def test_the_target_answers_for_the_gpu():
    seen = []
    with cute.simulation("sm_100a", sms=3) as outer:
        asks(seen)
        with cute.simulation() as inner:
            asks(seen)
        asks(seen)
    assert outer.arch == "sm_100a" and inner.arch == "sm_90a"
    assert seen[0] == seen[2] == 3


def test_its_options_are_those_of_simulate():
    x = np.zeros(8, np.float32)
    with cute.simulation(), pytest.raises(cute.sim.RaceError, match="race"):
        racing[1, 64](x)
    with cute.simulation(checks=False):
        racing[1, 64](x)
    with pytest.raises(cute.CuteError, match="none of"), cute.simulation(async_mode="soon"):
        pass
    with pytest.raises(cute.CuteError, match="sm_91"), cute.simulation("sm_91"):
        pass


@cuda.jit
def racing(x):
    x[0] += x[cuda.threadIdx.x % 8] + 1


@pytest.mark.skipif(cuda.is_available(), reason="launches go to the GPU")
def test_it_ends_with_its_context_and_is_of_its_thread():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    failed = []

    def elsewhere():
        with pytest.raises(Exception, match="driver"):
            plain[1, 32](x, y, np.float32(3))
        failed.append(True)

    with cute.simulation():
        prepared = cute.launch(plain, grid=1, block=32).prepare(x, y, np.float32(3))
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert failed
    elsewhere()
    with pytest.raises(cute.CuteError, match="prepared in a simulation, which has ended"):
        prepared()


TUNED = []


@cute.autotune({"block": [2048, 64, 32]}, store=False)
def scaled(x, y, block=32):
    TUNED.append(block)
    plain[1, block](x, y, np.float32(3))


def test_a_tuned_function_takes_the_first_configuration_that_works():
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    TUNED.clear()
    with cute.simulation():
        scaled(x, y)
        assert (y == 3 * x).all() and TUNED == [2048, 64]
        assert scaled.tune(x, y).best == {"block": 64}
        assert scaled(x, y, block=32) is None and TUNED[-1] == 32
        with pytest.raises(cute.CuteError, match="no configuration of .*scaled works: block=2048"):
            scaled(x, y, block=2048)
        with pytest.raises(cute.CuteError, match="their time says nothing"):
            cute.testing.do_bench(lambda: None)


def test_an_array_of_ml_dtypes_is_used_in_place():
    x, y = np.arange(8).astype(ml_dtypes.bfloat16), np.zeros(8, ml_dtypes.bfloat16)
    with cute.simulation():
        of_cute[1, 32](*tensors(x, y), cute.BFloat16(3))
    assert (y.astype(np.float32) == 3 * np.arange(8)).all()


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64"])
def test_tensors_of_the_cpu_are_used_in_place(dtype):
    x = torch.arange(16).to(getattr(torch, dtype))
    y = torch.zeros(2, 8).to(x.dtype)
    with cute.simulation():
        plain[1, 32, torch.cuda.current_stream()](x[::2], y[1], np.float32(3))
    assert torch.equal(y[1], 3 * x[::2]) and not y[0].any()


@needs_torch
def test_what_is_no_memory_of_the_cpu_is_refused():
    x = torch.zeros(8)
    with cute.simulation(), pytest.raises(cute.CuteError, match=r"give x.detach\(\)"):
        plain[1, 32](x, x.clone().requires_grad_(), np.float32(3))
    with cute.simulation(), pytest.raises(cute.CuteError, match="resolve_neg"):
        plain[1, 32](torch._neg_view(x), x, np.float32(3))


@needs_torch
def test_operators_of_torch_run_with_their_gradients():
    @cute.torch_op(
        "numba_cute_tests::simulated", out=lambda x, factor: torch.empty_like(x),
        backward=lambda ctx, g: (tripled(g, ctx.given["factor"]), None),
    )  # fmt: skip
    def tripled(x: torch.Tensor, factor: float, result: torch.Tensor) -> None:
        plain[1, 32, torch.cuda.current_stream()](x, result, np.float32(factor))

    x = torch.arange(8.0, requires_grad=True)
    with pytest.raises(
        cute.CuteError, match=r"numba_cute_tests::simulated is given tensors of the CPU.*cute.simulation"
    ):
        tripled(x, 3.0)
    with cute.simulation():
        y = tripled(x, 3.0)
        y.sum().backward()
    assert torch.equal(y, 3 * x) and torch.equal(x.grad, torch.full((8,), 3.0))
