# SPDX-License-Identifier: Apache-2.0
"""Launches, from Numba's syntax to the driver's call, on a GPU that is not there: what the driver is given is noted."""

from __future__ import annotations

import gc
import pickle
import struct
import weakref
from types import SimpleNamespace

import pytest
from cuda.bindings.driver import CUevent
from numba import cuda
from numba.cuda import codegen, dispatcher
from numba.cuda.cudadrv import devices
from numba.cuda.cudadrv.driver import CudaAPIError

import numba_cute as cute
from numba_cute import arch, config
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host import functions, launching, tensormap
from numba_cute.compiler.host.configured import Configured
from numba_cute.compiler.host.native import plans
from numba_cute.isa.facts.tensormap import Im2col, Im2colWide, TensorMapRecord

from .noting import GPU, Launched, tensor_at

pytestmark = pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaPerformanceWarning")


@cuda.jit
def numbers(a, n):
    arch.thread_idx()


@cuda.jit
def plain(n):
    pass


@cute.kernel
def annotated(a: cute.Tensor, n: cute.Int32, times: cute.Constexpr):
    arch.thread_idx()


@cute.experimental.kernel
def loads(x):
    s = cute.experimental.allocate(cute.Float32, cute.AddressSpace.smem, cute.make_ordered_layout((32, 32), (1, 0)),
                                   alignment=128)  # fmt: skip
    cute.experimental.tma_store(s, cute.local_tile(x, (32, 32), (0, 0)))


class Object:
    def __init__(self, n):
        self.n = n

    @cute.kernel
    def method(self, a):
        cute.printf("%d", self.n)


@pytest.fixture
def launches(monkeypatch):
    """A driver, and Numba's device, context and functions, none of which is."""
    made = Launched()
    device = SimpleNamespace(id=0, compute_capability=(9, 0), MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=227 * 1024)
    context = SimpleNamespace(handle=GPU, device=device)
    cufunc = SimpleNamespace(handle=1234, name="kernel", attrs=SimpleNamespace(shared=0), module=None)
    monkeypatch.setattr(devices, "get_context", lambda *_: context)
    monkeypatch.setattr(codegen.CUDACodeLibrary, "get_cufunc", lambda self: cufunc)
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda self: None)
    monkeypatch.setattr(functions, "native_driver", lambda: made.driver)
    monkeypatch.setattr(plans, "driver", lambda: made.driver)
    monkeypatch.setattr(plans, "current_context", lambda: GPU)
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: True)
    monkeypatch.setattr(functions.bindings, "cuGetErrorString", lambda error: (0, b"it is refused"))
    with config.override(cache=False), compiling_for("sm_90a"):
        yield made


def given(launches):
    """The addresses and numbers of the last launch, of 8 bytes each."""
    return [struct.unpack_from("<q", v)[0] for v in launches.seen[-1][-1]]


def fresh(kernel):
    return cuda.jit(kernel.py_func)


def test_numbas_syntax_is_in_machine_code_from_the_third_launch_on(launches):
    kernel = fresh(numbers)
    launches.sizes = [8, 8]
    first = kernel[3, 32]
    for k in range(4):
        kernel[3, 32](tensor_at(0x1000 * (k + 1)), k)
        assert given(launches) == [0x1000 * (k + 1), k] and launches.seen[-1][0] == (3, 1, 1)
    assert type(first) is Configured and [p.launched for p in first._cute_site.plans] == [2]
    first(tensor_at(0x1000, (8,)), 2.5)
    assert len(first._cute_site.plans) == 2 and len(launches.seen) == 5
    first(tensor_at(0x2000, (8,)), 3.5)
    assert [p.launched for p in first._cute_site.plans] == [2, 1]


def test_a_bound_launch_and_a_prepared_one(launches):
    launches.sizes = [8, 8]
    bound = cute.launch(fresh(numbers), grid=(2, 3), block=64, smem=128, cluster=2, pdl=True)
    for k in range(3):
        bound(tensor_at(0x1000), k)
        assert given(launches) == [0x1000, k]
        assert launches.seen[-1][:5] == ((2, 3, 1), (64, 1, 1), 128, 0, [(4, (2, 1, 1)), (6, (1, 0, 0))])
    assert bound._site.plans[0].launched == 1
    bound(a=tensor_at(0x3000), n=9)
    assert given(launches) == [0x3000, 9]
    call = bound.prepare(tensor_at(0x2000), 7)
    for _ in range(2):
        call()
        assert given(launches) == [0x2000, 7]


class TorchEvent:
    """As torch has one: its handle is 0 until it is recorded."""

    def __init__(self, handle):
        self.cuda_event = handle


OPTIONS = [
    ({"cooperative": True}, [(2, (1, 0, 0))]),
    ({"cluster": (4, 1), "fallback_cluster": 2}, [(4, (2, 1, 1)), (11, (4, 1, 1))]),
    ({"preferred_smem_carveout": 40}, [(14, (40, 0, 0))]),
    ({"launch_completion_event": CUevent(0x500000007)}, [(12, (7, 5, 0))]),
    ({"launch_completion_event": 9, "launch_completion_event_flags": 1}, [(12, (9, 0, 1))]),
    ({"programmatic_event": TorchEvent(0x300000002), "programmatic_event_trigger_at_block_start": 1, "pdl": True},
     [(6, (1, 0, 0)), (7, (2, 3, 0, 1))]),
]  # fmt: skip


@pytest.mark.parametrize("options, attributes", OPTIONS, ids=lambda x: next(iter(x)) if isinstance(x, dict) else None)
def test_what_a_launch_asks_the_driver_for(launches, options, attributes):
    """By `cute.launch`, by a kernel of the DSL, and in machine code, from the third time on."""
    launches.sizes = [8, 8]
    bound = cute.launch(fresh(numbers), grid=4, block=32, **options)
    kernel = cute.kernel(fresh(numbers).py_func)
    of_dsl = {**{k: v for k, v in options.items() if k != "pdl"}, **({"use_pdl": True} if "pdl" in options else {})}
    for n in range(4):
        bound(tensor_at(0x1000), n)
        assert launches.seen[-1][4] == attributes
        kernel(tensor_at(0x1000), n).launch(grid=4, block=32, **of_dsl)
        assert launches.seen[-1][4] == attributes
    assert bound._site.plans[0].launched == 2
    bound.prepare(tensor_at(0x1000), 7)()
    assert launches.seen[-1][4] == attributes


@pytest.mark.parametrize(
    "options, why",
    [
        ({"cooperative": 1}, "launch: cooperative 1, an int: give True or False"),
        ({"fallback_cluster": 2}, r"fallback_cluster \(2, 1, 1\) without cluster="),
        (
            {"cluster": 3, "fallback_cluster": 2},
            r"cluster \(3, 1, 1\) is not a multiple of fallback_cluster \(2, 1, 1\)",
        ),
        ({"preferred_smem_carveout": 101}, "preferred_smem_carveout 101, an int: give percent, an int from 0 to 100"),
        ({"launch_completion_event": "e"}, "launch_completion_event .*: give an event: CUevent"),
        ({"programmatic_event": TorchEvent(0)}, "it has no handle: torch makes one when the event is first recorded"),
        ({"programmatic_event": 5, "programmatic_event_flags": -1}, "programmatic_event_flags -1, an int: give an int"),
        ({"programmatic_event": 5, "programmatic_event_trigger_at_block_start": 2}, "give 0 or 1"),
        ({"cooperative": True, "graph": True}, "graph=True with cooperative=True"),
    ],
)
def test_options_that_are_none_are_refused_on_every_way(launches, options, why):
    with pytest.raises(cute.CuteError, match=why):
        cute.launch(numbers, grid=6, block=32, **options)
    if "graph" not in options:
        call = cute.kernel(numbers.py_func)(tensor_at(0x1000), 1)
        with pytest.raises(cute.CuteError, match=why):
            call.launch(grid=6, block=32, **options)
        with pytest.raises(cute.CuteError, match=why):
            cute.simulate(cute.jit(lambda: call.launch(grid=6, block=32, **options)))()


def test_a_kernel_of_one_cluster_shape_has_no_fallback(launches):
    @cute.cluster_shape(2)
    @cuda.jit
    def kernel(a, n):
        a[0] = n

    launches.sizes = [8, 8]
    with pytest.raises(cute.CuteError, match=r"fallback_cluster=\(1, 1, 1\): the kernel is compiled for clusters of"):
        cute.launch(kernel, grid=4, block=32, cluster=2, fallback_cluster=1)(tensor_at(0x1000), 1)


def test_kernels_of_the_dsl(launches):
    kernel = cute.kernel(annotated.py_func)
    launches.sizes = [8, 4]
    for k in range(3):
        kernel[1, 32](tensor_at(0x1000 + 256 * k), k, 4)
        assert struct.unpack_from("<i", launches.seen[-1][-1][1])[0] == k
    assert kernel[1, 32]._site.plans[0].launched == 1
    kernel[1, 32](tensor_at(0x1000), 1, times=5)
    kernel[1, 32](tensor_at(0x1000), 1, 5)
    kernel[1, 32](tensor_at(0x1000), 1, 5)
    assert [p.launched for p in kernel[1, 32]._site.plans] == [1, 1]


def test_a_method_reads_its_object_at_each_launch(launches):
    launches.sizes = [8]
    obj = Object(1)
    for n in (1, 2, 3):
        obj.n = n
        obj.method[1, 32](tensor_at(0x1000))
        obj.method(tensor_at(0x2000)).launch(grid=1, block=32)
        assert given(launches) == [0x2000] and len(Object.method.dispatcher.overloads) == n, "it is compiled for each n"


def test_tensor_maps_of_plain_tensors_are_made_once_each(launches, monkeypatch):
    encoded = []

    def encode(record):
        encoded.append(int(record.address))
        return int(record.address).to_bytes(8, "little") * 16

    monkeypatch.setattr(tensormap, "encode", encode)

    def tensor(address):
        pointer = cute.make_ptr(cute.Float32, address, cute.AddressSpace.gmem, assumed_align=128)
        return cute.make_tensor(pointer, cute.make_layout((32, 32), stride=(32, 1)))

    kernel = cute.experimental.kernel(loads.py_func)
    launches.sizes = [8, 128]
    tensors = [tensor(0x1_0000 * (k + 1)) for k in range(3)]
    for _ in range(3):
        for t in tensors:
            kernel[1, 32](t)
            values = launches.seen[-1][-1]
            assert values[1] == int(t.iterator.address).to_bytes(8, "little") * 16
    assert len(encoded) == 3
    assert kernel[1, 32]._site.plans[0].launched == 7


def test_plain_kernels_launch_as_numba_has_it(launches, monkeypatch):
    done = []
    monkeypatch.setattr(dispatcher._Kernel, "launch", lambda self, args, *_: done.append(args))
    kernel = fresh(plain)
    configured = kernel[1, 32]
    for k in range(3):
        configured(k)
    assert done == [(0,), (1,), (2,)] and type(configured) is dispatcher._LaunchConfiguration


def test_errors_are_said_each_time(launches):
    launches.sizes = [8, 8]
    kernel, bound = fresh(numbers), cute.launch(fresh(numbers), grid=1, block=32)
    t = tensor_at(0x1000)
    for launch in (kernel[1, 32], bound):
        launches.result = 0
        launch(t, 1)
        launch(t, 1)
        for _ in range(2):
            with pytest.raises((TypeError, cute.CuteError)):
                launch(t)
            launches.result = 1
            with pytest.raises(CudaAPIError, match=r"CUDA_ERROR_INVALID_VALUE: .*launch of numbers with grid \(1, 1"):
                launch(t, 1)
            launches.result = 0
            launch(t, 1)
    with pytest.raises(cute.CuteError, match="smem=300000: too much shared memory"):
        kernel[1, 32, 0, 300000](t, 1)
    with pytest.raises(cute.CuteError, match="x = 3 is not a multiple of the cluster's 2"):
        cute.launch(kernel, grid=3, block=32, cluster=2)(t, 1)
    with pytest.raises(cute.CuteError, match="give grid, block, and optionally stream and smem"):
        annotated[1]


def test_recompiling_forgets(launches):
    launches.sizes = [8, 8]
    kernel = fresh(numbers)
    configured, bound = kernel[1, 32], cute.launch(kernel, grid=1, block=32)
    for launch in (configured, bound):
        for _ in range(3):
            launch(tensor_at(0x1000), 1)
    kernel.recompile()
    for launch, site in ((configured, configured._cute_site), (bound, bound._site)):
        launch(tensor_at(0x1000), 1)
        launch(tensor_at(0x1000), 1)
        assert [p.launched for p in site.plans] == [1]


def test_callbacks_before_a_launch_are_called(launches):
    launches.sizes = [8, 8]
    configured, told = fresh(numbers)[1, 32], []
    for k in range(3):
        configured(tensor_at(0x1000), k)
    configured.pre_launch_callbacks.append(lambda kernel, of: told.append(of is configured))
    configured(tensor_at(0x1000), 3)
    configured(tensor_at(0x1000), 4)
    assert told == [True, True] and given(launches)[1] == 4


def test_a_configuration_is_pickled_as_numbas(launches):
    launches.sizes = [8, 8]
    configured = fresh(numbers)[1, 32]
    for _ in range(3):
        configured(tensor_at(0x1000), 1)
    configured.dispatcher = None  # Numba pickles dispatchers by their bytecode
    made = pickle.loads(pickle.dumps(configured))
    assert type(made) is dispatcher._LaunchConfiguration
    assert (made.griddim, made.blockdim, made.sharedmem) == ((1, 1, 1), (32, 1, 1), 0)


def test_a_launch_keeps_no_tensor(launches):
    launches.sizes = [8, 8]
    for launch in (fresh(numbers)[1, 32], cute.launch(fresh(numbers), grid=1, block=32)):
        for _ in range(3):
            t = tensor_at(0x1000)
            gone = weakref.ref(t)
            launch(t, 1)
            del t
            if gone() is not None:  # looking through all there is takes seconds
                gc.collect()
            assert gone() is None


class Encoder:
    """The driver's functions that encode tensor maps. They note what they are given."""

    def __init__(self, monkeypatch):
        self.calls = []
        for name in ("Tiled", "Im2col", "Im2colWide"):
            monkeypatch.setattr(tensormap.bindings, f"cuTensorMapEncode{name}", self.named(name))

    def named(self, name):
        def encode(*args):
            flat = [[int(x) for x in a] if isinstance(a, list) else getattr(a, "name", a) for a in args]
            self.calls.append((name, *flat))
            return tensormap.bindings.CUresult.CUDA_SUCCESS, tensormap.bindings.CUtensorMap()

        return encode


MAPS = [
    (TensorMapRecord(cute.Float16, 0x1000, (64, 32), (128,), (16, 8), swizzle="32B"),
     ("Tiled", "FLOAT16", 2, 0x1000, [64, 32], [128], [16, 8], [1, 1], "NONE", "32B", "L2_128B", "NONE")),
    (TensorMapRecord(cute.Float32, 0x1000, (64,), (), (16,), oob_fill="nan", l2_promotion="none"),
     ("Tiled", "FLOAT32", 1, 0x1000, [64], [16], [16], [1], "NONE", "NONE", "NONE", "NAN_REQUEST_ZERO_FMA")),
    (TensorMapRecord(cute.Float4E2M1FN, 0x1000, (128, 8), (64,), (128, 8)),
     ("Tiled", "16U4_ALIGN8B", 2, 0x1000, [128, 8], [64], [128, 8], [1, 1], "NONE", "NONE", "L2_128B", "NONE")),
    (TensorMapRecord(cute.Float6E3M2FN, 0x1000, (128, 8), (96,), (128, 8), swizzle="128B"),
     ("Tiled", "16U6_ALIGN16B", 2, 0x1000, [128, 8], [96], [128, 8], [1, 1], "NONE", "128B", "L2_128B", "NONE")),
    (TensorMapRecord(cute.Float16, 0x1000, (8, 6, 5, 4), (16, 96, 480), im2col=Im2col((-1, -1), (-1, -1), 8, 12)),
     ("Im2col", "FLOAT16", 4, 0x1000, [8, 6, 5, 4], [16, 96, 480], [-1, -1], [-1, -1], 8, 12, [1] * 4, "NONE", "NONE",
      "L2_128B", "NONE")),
    (TensorMapRecord(cute.Float16, 0x1000, (32, 6, 5), (64, 384), im2col=Im2colWide(-1, 1, 32, 4), swizzle="64B"),
     ("Im2colWide", "FLOAT16", 3, 0x1000, [32, 6, 5], [64, 384], -1, 1, 32, 4, [1] * 3, "NONE", "W", "64B", "L2_128B",
      "NONE")),
]  # fmt: skip


@pytest.mark.parametrize("record, want", MAPS, ids=[f"{w[0]}_{w[1]}_{w[2]}" for _, w in MAPS])
def test_tensor_maps_are_encoded_by_the_drivers_public_functions(monkeypatch, record, want):
    monkeypatch.setattr(tensormap, "known_to_cuda", lambda address: None)
    encoder = Encoder(monkeypatch)
    assert len(tensormap.encode(record)) == tensormap.BYTES
    (call,) = encoder.calls
    assert len(call) == len(want)
    for got, expected in zip(call, want):
        assert got.endswith(f"_{expected}") or got == expected if isinstance(expected, str) else got == expected


def test_a_call_of_the_dsl_is_remembered_with_its_settings(launches):
    kernel = cute.kernel(annotated.py_func)
    launches.sizes = [8, 4]
    for k in range(4):
        for grid in (1, [2, 3]):
            kernel(tensor_at(0x1000), k, 4).launch(grid=grid, block=[32, 1, 1], cluster=None)
            assert launches.seen[-1][0] == ((1, 1, 1) if grid == 1 else (2, 3, 1))
    assert [p.launched for launch in kernel._launches.values() for p in launch._site.plans] == [2, 2]


def test_a_launch_that_is_asked_for_again_is_the_same_one(launches):
    def one(**more):
        return cute.launch(numbers, **{"grid": (2, 1), "block": 32, **more})

    made = one()
    assert one() is made and one(grid=(2, 1, 1)) is not made
    others = [one(grid=3), one(block=64), one(cluster=2), one(smem=1024), one(stream=7), one(pdl=True)]
    others += [one(cooperative=True), one(preferred_smem_carveout=50)]
    assert len({id(x) for x in (made, *others)}) == 9
    assert one(grid=[2, 1]) is not one(grid=[2, 1]), "a list has no hash"
    for wrong in ({"smem": True}, {"grid": "2"}, {"stream": "x"}):
        one(smem=1)
        with pytest.raises(cute.CuteError):
            one(**wrong)
    a = tensor_at(0x1000)
    for n in range(4):
        launches.seen.clear()
        launches.sizes[:] = [8, 8]
        cute.launch(numbers, grid=5, block=32)(a, n)
        (seen,) = launches.seen
        assert struct.unpack_from("<q", seen[-1][1])[0] == n
    assert cute.launch(numbers, grid=5, block=32)._site.plans[0].launched == 2
    held = Object(3)
    assert cute.launch(held.method, grid=1, block=1) is not cute.launch(held.method, grid=1, block=1)


def test_launches_that_are_remembered_keep_no_kernel(launches):
    made = cuda.jit(numbers.py_func)
    cute.launch(made, grid=1, block=32)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("bound", [False, True])
def test_another_grid_is_launched_by_machine_code_from_the_first_time(launches, monkeypatch, bound):
    made = cuda.jit(numbers.py_func)
    launches.sizes[:] = [8, 8]

    def launch(*grid):
        if bound:
            return cute.launch(made, grid=grid, block=32, cluster=2)
        return made[grid, 32]

    a = tensor_at(0x1000)
    for _ in range(2):
        launch(2, 1)(a, 3)
    slowly = []
    monkeypatch.setattr(launching, "_settled", lambda *args: slowly.append(args) or 1 / 0)
    for grid in ((4, 1, 1), (6, 2, 1), (8, 1, 1), (2, 1, 1)):
        launches.seen.clear()
        launch(*grid)(tensor_at(0x2000), 7)
        ((seen_grid, block, *_, values),) = launches.seen
        assert (seen_grid, block) == (grid, (32, 1, 1)) and [struct.unpack_from("<q", v)[0] for v in values] == [
            0x2000,
            7,
        ]
    assert not slowly
    with pytest.raises(ZeroDivisionError):  # of other arguments no plan is known
        launch(4, 1, 1)(a, 2.5)
    made.recompile()
    with pytest.raises(ZeroDivisionError):
        launch(10, 1, 1)(a, 3)
    assert len(slowly) == 2


def test_a_grid_that_is_no_multiple_of_the_cluster_is_refused_where_others_are_known(launches):
    for grid in (2, 4, 6):
        for _ in range(2):
            cute.launch(numbers, grid=grid, block=64, cluster=2)(tensor_at(0x1000), 3)
    with pytest.raises(cute.CuteError, match="not a multiple of the cluster"):
        cute.launch(numbers, grid=3, block=64, cluster=2)(tensor_at(0x1000), 3)


def test_a_launch_of_a_call_that_was_given_the_same_before_is_found_at_once(launches, monkeypatch):
    from numba_cute.compiler.host import kernels

    made = cute.kernel(annotated.py_func)
    launches.sizes[:] = [8, 4]
    for n in range(4):
        launches.seen.clear()
        made(tensor_at(0x1000), n, 2).launch(grid=(2, 1), block=32)
        assert struct.unpack_from("<i", launches.seen[0][-1][1])[0] == n
        if n == 1:
            monkeypatch.setattr(kernels, "checked_extents", None)
    monkeypatch.undo()
    for wrong in ({"grid": "2"}, {"min_blocks_per_mp": 0}, {"max_number_threads": 16}):
        with pytest.raises(cute.CuteError):
            made(tensor_at(0x1000), 3, 2).launch(**{"grid": (2, 1), "block": 32, **wrong})
