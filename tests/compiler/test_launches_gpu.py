# SPDX-License-Identifier: Apache-2.0
"""Launches in machine code on a GPU: every kind of argument, streams, graphs, threads, devices, errors, lifetimes."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

import numba_cute as cute
from numba_cute import arch
from numba_cute.runtime import from_dlpack

pytestmark = pytest.mark.gpu


@cuda.jit
def adds(out, a, n, x, flag, shape):
    i = arch.thread_idx()[0]
    if flag:
        out[i] = a[i] + n + x + cute.size(shape)


@cuda.jit
def copies(out, a):
    i = arch.thread_idx()[0]
    out[i, 0] = a[i, 0]
    out[i, 1] = a[i, 1]


@cuda.jit
def increments(out):
    i = arch.thread_idx()[0]
    out[i] += 1


@cuda.jit
def tells(out, numbers, pair):
    if arch.thread_idx()[0] == 0:
        out[0] = numbers
        out[1] = pair[0]
        out[2] = pair[1][0]


@cute.kernel
def annotated(out: cute.Tensor, n: cute.Int32, x: cute.Float32, times: cute.Constexpr):
    for i in cute.range_constexpr(times):
        out[i] = x + n


def torch():
    return pytest.importorskip("torch")


def site(configured):
    return getattr(configured, "_cute_site", None) or configured._site


def makers():
    t = torch()
    found = {
        "torch": (lambda a: t.from_numpy(a.copy()).cuda(), lambda a: a.cpu().numpy()),
        "numba": (cuda.to_device, lambda a: a.copy_to_host()),
    }
    try:
        import cupy
    except ImportError:
        return found
    return {**found, "cupy": (cupy.asarray, cupy.asnumpy)}


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"],
)
def test_tensors_of_every_element_type_are_launched_on_again(dtype):
    t = torch()
    a = t.arange(6, device="cuda").reshape(3, 2).to(getattr(t, dtype))
    for _ in range(3):
        out = t.zeros_like(a)
        copies[1, 3](out, a)
        assert t.equal(out, a)


@pytest.mark.parametrize("kind", ["torch", "numba", "cupy"])
def test_arrays_and_numbers_are_packed_anew_at_each_launch(kind):
    if kind not in makers():
        pytest.skip("no CuPy")
    make, back = makers()[kind]
    configured, shape = adds[1, 32], cute.make_layout(5)
    for k in range(5):
        out, a = make(np.zeros(32, np.float32)), make(np.arange(32, dtype=np.float32) * k)
        configured(out, a, 7 * k, 0.5 * k, True, shape)
        np.testing.assert_array_equal(back(out), np.arange(32) * k + 7.5 * k + 5)
        configured(out, a, 0, 0.0, False, shape)
    assert site(configured).plans[0].launched >= 8
    assert sum(p.launched for p in site(configured).plans) >= 8


@pytest.mark.parametrize("kind", ["torch", "numba", "cupy"])
def test_strides_and_types_choose_their_own_kernel(kind):
    if kind not in makers():
        pytest.skip("no CuPy")
    make, back = makers()[kind]
    configured = copies[1, 32]
    for _ in range(3):
        for dtype in (np.float32, np.int64):
            source = np.arange(32 * 6).reshape(32, 6).astype(dtype)
            views = [make(source)[:, 2:4], make(np.ascontiguousarray(source[:, 2:4]))]
            if kind != "numba":
                views.append(make(np.ascontiguousarray(source.T)).T[:, 2:4])
            for view in views:
                out = make(np.zeros((32, 2), dtype))
                configured(out, view)
                np.testing.assert_array_equal(back(out), source[:, 2:4])
    assert all(p.launched for p in site(configured).plans)


def test_cute_tensors_scalars_tuples_and_numpy_numbers():
    t = torch()
    for numbers in (3, np.int32(4), np.float32(2.5), cute.Int32(6), cute.Float32(1.5), True):
        configured = tells[1, 32]
        for k in range(3):
            out = t.zeros(3, device="cuda")
            configured(from_dlpack(out), numbers, (k, (2 * k, 1)))
            assert out.tolist() == [float(numbers), k, 2 * k]
    assert sum(p.launched for p in site(tells[1, 32]).plans) >= 10


def test_annotations_and_static_arguments():
    t = torch()
    for times in (2, 4, 2, 4):
        for k in range(3):
            out = t.zeros(4, device="cuda")
            annotated[1, 1](from_dlpack(out), k, 0.5, times)
            assert out.tolist() == [k + 0.5] * times + [0] * (4 - times)
    assert sum(p.launched for p in site(annotated[1, 1]).plans) >= 8


def test_a_launch_keeps_no_tensor():
    t = torch()
    for launch in (increments[1, 32], cute.launch(increments, grid=1, block=32)):
        for wrap in (lambda x: x, from_dlpack):
            for _ in range(3):
                x = t.zeros(32, device="cuda")
                gone = weakref.ref(x)
                launch(wrap(x))
                del x
                gc.collect()
                assert gone() is None


def test_threads_launch_at_once():
    t = torch()
    configured = increments[1, 32]
    outs = [t.zeros(32, device="cuda") for _ in range(8)]
    t.cuda.synchronize()
    configured(outs[0])

    def run(out):
        for _ in range(500):
            configured(out)

    threads = [threading.Thread(target=run, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.cuda.synchronize()
    assert [int(out[0]) for out in outs] == [501] + [500] * 7


def test_a_launch_that_names_no_stream_is_in_torchs():
    t = torch()
    stream = t.cuda.Stream()
    for launch in (increments[1, 32], cute.launch(increments, grid=1, block=32)):
        launch(t.zeros(32, device="cuda"))
        for wrap in (lambda x: x, from_dlpack):
            x = t.zeros(32, device="cuda")
            t.cuda.synchronize()
            with t.cuda.stream(stream):
                t.cuda._sleep(20_000_000)
                x.fill_(4)
                if wrap is from_dlpack:
                    cute.launch(increments, grid=1, block=32, stream=stream)(wrap(x))
                else:
                    launch(x)
            stream.synchronize()
            assert x.tolist() == [5] * 32


def test_streams_that_are_named():
    t = torch()
    stream = t.cuda.Stream()

    class Foreign:
        def __cuda_stream__(self):
            return 0, stream.cuda_stream

    named = [stream, stream.cuda_stream, Foreign()]
    try:
        import cupy

        made = getattr(cupy.cuda.Stream, "from_external", None)  # what the older name says is deprecated
        named.append(made(stream) if made else cupy.cuda.ExternalStream(stream.cuda_stream))
    except ImportError:
        pass
    for of in named:
        for launch in (increments[1, 32, of], cute.launch(increments, grid=1, block=32, stream=of)):
            for _ in range(2):
                x = t.zeros(32, device="cuda")
                t.cuda.synchronize()
                with t.cuda.stream(stream):
                    t.cuda._sleep(5_000_000)
                    x.fill_(4)
                launch(x)
                stream.synchronize()
                assert x.tolist() == [5] * 32


def test_cupys_current_stream():
    cupy = pytest.importorskip("cupy")
    configured = increments[1, 32]
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for k in range(3):
            x = cupy.full(32, k, np.float32)
            configured(x)
            stream.synchronize()
            assert x.tolist() == [k + 1] * 32


def test_a_graph_captures_launches():
    t = torch()
    x, y = t.zeros(32, device="cuda"), t.zeros(32, device="cuda")
    configured = increments[1, 32]
    call = cute.launch(increments, grid=1, block=32).prepare(y)
    configured(x)
    call()
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        configured(x)
        configured(x)
        call()
    t.cuda.synchronize()
    assert (x[0].item(), y[0].item()) == (1, 1)
    for _ in range(3):
        graph.replay()
    t.cuda.synchronize()
    assert (x[0].item(), y[0].item()) == (7, 4)


def test_what_the_driver_refuses_is_said_each_time():
    t = torch()
    x = t.zeros(32, device="cuda")
    for launch in (increments[1, 2048], cute.launch(increments, grid=1, block=2048)):
        for _ in range(3):
            with pytest.raises(CudaAPIError, match="increments with grid"):
                launch(x)
    increments[1, 32](x)
    assert x[0].item() == 1


def test_what_was_refused_once_is_refused_again():
    t = torch()
    configured = increments[1, 32]
    good = t.zeros(32, device="cuda")
    for _ in range(2):
        configured(good)
        configured(t.zeros(32, device="cuda", requires_grad=True))  # as plain Numba takes it
        with pytest.raises(cute.CuteError, match="host's memory"):
            configured(from_dlpack(np.zeros(32, np.float32)))
        with pytest.raises(TypeError):
            configured(good, good)


def test_another_thread_that_has_no_context():
    t = torch()
    configured = increments[1, 32]
    x = t.zeros(32, device="cuda")
    configured(x)
    configured(x)
    errors = []

    def run():
        try:
            configured(x)
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    t.cuda.synchronize()
    assert not errors and x[0].item() == 3


def test_recompiled_kernels_are_launched():
    t = torch()
    x = t.zeros(32, device="cuda")
    made = cuda.jit(increments.py_func)
    for _ in range(4):
        made[1, 32](x)
    made.recompile()
    made[1, 32](x)
    made[1, 32](x)
    assert x[0].item() == 6 and [p.launched for p in site(made[1, 32]).plans] == [1]


def test_devices():
    t = torch()
    if t.cuda.device_count() < 2:
        pytest.skip("one GPU")
    configured = increments[1, 32]
    on = [t.zeros(32, device=f"cuda:{d}") for d in range(2)]
    for _ in range(3):
        for x in on:
            configured(x)
            t.cuda.synchronize(x.device)
    assert [x[0].item() for x in on] == [3, 3]
    assert len(site(configured).plans) >= 2
    bound = cute.launch(increments, grid=1, block=32)
    with t.cuda.device(1):
        bound(on[0])
        bound(on[0])
        bound.prepare(on[0])()
        assert t.cuda.current_device() == 1
    t.cuda.synchronize(0)
    assert on[0][0].item() == 6


@cuda.jit
def beside_all(out, seen):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    out[i] = i
    grid.sync()
    seen[i] = out[out.size - 1 - i]


@cuda.jit
def lasting(out, nanoseconds):
    arch.griddepcontrol_launch_dependents()
    begun = arch.globaltimer()
    while arch.globaltimer() - begun < nanoseconds:
        arch.nanosleep(1000)
    out[arch.thread_idx()[0]] = 1


@cuda.jit
def ranks(out):
    if arch.thread_idx()[0] == 0:
        out[arch.block_idx()[0]] = arch.cluster_size()


def test_a_cooperative_launch_runs_all_ctas_at_once():
    t = torch()
    count = 4 * cuda.get_current_device().MULTIPROCESSOR_COUNT * 64
    out, seen = (t.zeros(count, dtype=t.int64, device="cuda") for _ in range(2))
    run = cute.launch(beside_all, grid=count // 64, block=64, cooperative=True)
    for _ in range(4):
        out.zero_()
        run(out, seen)
        np.testing.assert_array_equal(seen.cpu().numpy(), np.arange(count)[::-1])
    too_many = cute.launch(beside_all, grid=count, block=64, cooperative=True)
    with pytest.raises((cute.CuteError, CudaAPIError), match=r"(?i)cooperative"):
        too_many(t.zeros(64 * count, dtype=t.int64, device="cuda"), seen)


@pytest.mark.parametrize(
    "name, more",
    [
        ("launch_completion_event", {}),
        ("programmatic_event", {}),
        ("programmatic_event", {"programmatic_event_trigger_at_block_start": 1}),
    ],
    ids=["launch_completion", "programmatic", "block_start"],
)
def test_an_event_of_a_launch_is_recorded(name, more):
    driver = pytest.importorskip("cuda.bindings.driver")
    out = torch().zeros(32, dtype=torch().int32, device="cuda")
    stream = torch().cuda.Stream()
    _, event = driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
    run = cute.launch(lasting, grid=1, block=32, stream=stream.cuda_stream, **{name: event}, **more)
    run(out, 0)
    torch().cuda.synchronize()
    early = []
    for _ in range(4):
        run(out, 200_000_000)
        assert driver.cuEventSynchronize(event) == (driver.CUresult.CUDA_SUCCESS,)
        early.append(not stream.query())
        torch().cuda.synchronize()
    # The host may see a programmatic event long after it was recorded: CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT. Where
    # other processes use the GPU or the host's cores, it may see any late.
    if name == "launch_completion_event":
        assert any(early), "the event waited for the end of the kernel"
    assert out.tolist() == [1] * 32
    driver.cuEventDestroy(event)


@pytest.mark.parametrize("percent", [0, 50, 100])
def test_a_carveout_is_a_hint(percent):
    out = torch().zeros(32, dtype=torch().int32, device="cuda")
    run = cute.launch(increments, grid=1, block=32, preferred_smem_carveout=percent)
    for _ in range(4):
        run(out)
    assert out.tolist() == [4] * 32


def test_clusters_have_the_shape_or_the_one_to_fall_back_to():
    out = torch().zeros(64, dtype=torch().int32, device="cuda")
    run = cute.launch(ranks, grid=64, block=32, cluster=4, fallback_cluster=2)
    for _ in range(4):
        out.zero_()
        run(out)
        assert set(out.tolist()) <= {2, 4}
