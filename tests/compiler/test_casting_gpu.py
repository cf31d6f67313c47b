# SPDX-License-Identifier: Apache-2.0
"""Tensors and TMA atoms that are made at each launch, on a GPU: maps, results, graphs, threads, streams, lifetimes."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import runtime
from numba_cute.compiler.host import tensormap
from numba_cute.compiler.host.native import known, launcher, packing, templates
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam.hooks.casting import CASTING

from .test_launch import tma_tile

pytestmark = pytest.mark.gpu
LOAD, TILE = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((32, 32), stride=(32, 1))


@pytest.fixture(autouse=True)
def casting():
    """Templates from the beginning, and none from before."""
    known.templates()
    runtime._over.templates.forget()


def torch():
    return pytest.importorskip("torch")


def tensors(count, shape=(256, 64)):
    t = torch()
    return [t.randint(1 << 30, shape, device="cuda", dtype=t.int32) for _ in range(count)]


def was_cast(obj):
    """Whether an object has from the beginning what launches pack of it."""
    return launcher.MARK in vars(obj) and "_cute_launch" in vars(obj)


def made(x, dynamic):
    tensor = from_dlpack(x, assumed_align=16)
    return cpasync.make_tiled_tma_atom(LOAD, tensor.mark_layout_dynamic() if dynamic else tensor, TILE, (32, 32))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_atoms_that_are_made_at_each_launch(dynamic, bound):
    sources, out = tensors(6), tensors(1, (32, 32))[0]
    launch = cute.launch(tma_tile, grid=1, block=32) if bound else tma_tile[1, 32]
    cast = 0
    for i, x in enumerate(sources * 4):
        atom, coordinates = made(x, dynamic)
        cast += was_cast(atom)
        launch(atom, coordinates, out if i % 2 else from_dlpack(out))
        assert (out == x[64:96, 32:64]).all()
    assert cast >= len(sources) * 3, "most were made with no Python"


def test_what_arrays_of_other_shapes_are_made_of_stays_theirs():
    out = tensors(1, (32, 32))[0]
    by_shape = {shape: tensors(3, shape) for shape in ((256, 64), (128, 96), (96, 256), (257, 100))}
    for _ in range(3):
        for k in range(3):
            for shape, held in by_shape.items():
                atom, coordinates = made(held[k], True)
                tma_tile[1, 32](atom, coordinates, out)
                want = held[k][64:96, 32:64]
                assert (out == want).all(), shape


def test_views_of_one_memory():
    x, out = tensors(1, (512, 128))[0], tensors(1, (32, 32))[0]
    views = [x[:256, :64], x[256:, :64], x[128:384, 64:], x[4:260, 32:96], x[256:, 64:]]
    for view in views * 4:
        atom, coordinates = made(view, False)
        tma_tile[1, 32](atom, coordinates, out)
        assert (out == view[64:96, 32:64]).all()


def test_the_driver_s_maps_are_as_it_encodes_them():
    t = torch()
    kinds = [t.float16, t.bfloat16, t.float32, t.int32, t.uint8, t.float64, t.float8_e4m3fn]
    swizzles = [cute.make_swizzle(b, 4, 3) for b in range(4)]
    seen = 0
    for kind, swizzle, dims in itertools.product(kinds, swizzles, (1, 2, 3, 4, 5)):
        inner = (16 << swizzle.bits) // kind.itemsize
        shape = (*range(3, 2 + dims), 4 * inner)
        tiler = (*(1,) * (dims - 1), inner)
        plain = cute.make_ordered_layout(tiler, order=tuple(reversed(range(dims))))
        layout = plain if swizzle.bits == 0 else cute.make_composed_layout(swizzle, 0, plain)
        for _ in range(2):
            x = t.zeros(shape, device="cuda", dtype=kind)
            atom, _ = cpasync.make_tiled_tma_atom(LOAD, from_dlpack(x, assumed_align=16), layout, tiler)
            if "_cute_launch" not in vars(atom):
                data = bytes(packing.HEADER) + tensormap.encode(atom.tensor_map)
                templates.learn(atom, "_cute_launch", data, [atom.tensor_map], [packing.HEADER])
                keep = x
        assert was_cast(atom) and x.data_ptr() != keep.data_ptr()
        assert atom._cute_launch[packing.HEADER :] == tensormap.encode(atom.tensor_map)
        seen += 1
    assert seen == len(kinds) * 4 * 5


def test_a_graph_holds_the_map_that_was_made_for_it():
    t = torch()
    source, out = tensors(1)[0], tensors(1, (32, 32))[0]
    for x in tensors(4):
        tma_tile[1, 32](*made(x, False), out)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        tma_tile[1, 32](*made(source, False), out)
    for x in tensors(4):
        tma_tile[1, 32](*made(x, False), out)
    for _ in range(3):
        source.random_(1 << 30)
        graph.replay()
        assert (out == source[64:96, 32:64]).all()


def test_threads_make_atoms_beside_each_other():
    t = torch()
    wrong = []

    def run():
        stream = t.cuda.Stream()
        with t.cuda.stream(stream):
            sources, out = tensors(3), tensors(1, (32, 32))[0]
            for x in sources * 40:
                tma_tile[1, 32](*made(x, True), out)
                if not (out == x[64:96, 32:64]).all():
                    wrong.append(x)

    tma_tile[1, 32](*made(tensors(1)[0], True), tensors(1, (32, 32))[0])
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_launch_holds_an_array():
    out = tensors(1, (32, 32))[0]
    gone = []
    for _ in range(6):
        (x,) = tensors(1)
        tma_tile[1, 32](*made(x, False), from_dlpack(out))
        gone.append(weakref.ref(x))
        del x
    gc.collect()
    assert not any(r() is not None for r in gone)


def test_an_array_that_is_not_aligned_is_refused_in_words_each_time():
    t = torch()
    x = t.zeros(64 * 64 + 1, device="cuda", dtype=t.int32)
    for _ in range(3):
        made(x[: 64 * 64].view(64, 64), False)
        with pytest.raises(cute.CuteError, match="not a multiple of assumed_align = 16"):
            made(x[1:].view(64, 64), False)


def test_numpy_and_cupy_arrays_are_made_as_ever():
    a = np.zeros((4, 4), np.float32)
    assert from_dlpack(a).iterator.address == a.ctypes.data
    cupy = pytest.importorskip("cupy")
    for _ in range(3):
        x = cupy.zeros((4, 4), np.float32)
        assert from_dlpack(x).iterator.address == x.data.ptr


def test_what_makes_tensors_is_machine_code():
    for function in (CASTING.derived, runtime._over.cast):
        assert type(function).__name__ == "builtin_function_or_method"


@runtime.remembered
def operands(x, out):
    return (*made(x, False), from_dlpack(out).mark_layout_dynamic()), 1


def test_what_a_function_of_several_tensors_makes_at_each_launch():
    outs = tensors(3, (32, 32))
    ran = []
    function = operands.templates._function
    operands.templates._function = lambda *args: ran.append(1) or function(*args)
    try:
        for i, x in enumerate(tensors(5) * 6):
            args, grid = operands(x, outs[i % 3])
            tma_tile[grid, 32](*args)
            assert (outs[i % 3] == x[64:96, 32:64]).all()
    finally:
        operands.templates._function = function
    assert len(ran) == 1


def test_arrays_that_attributes_describe_are_cast():
    cuda = pytest.importorskip("numba.cuda")
    makers = [cuda.to_device]
    try:
        import cupy

        makers.append(cupy.asarray)
    except ImportError:
        pass
    host = np.random.default_rng(0).integers(0, 1 << 30, (256, 64), np.int32)
    out = tensors(1, (32, 32))[0]
    for make in makers:
        cast = 0
        for k in range(6):
            atom, coordinates = made(make(host + k), True)
            cast += was_cast(atom)
            tma_tile[1, 32](atom, coordinates, out)
            assert (out.cpu().numpy() == host[64:96, 32:64] + k).all()
        assert cast >= 3


def test_kernels_that_make_their_own_maps_have_those_of_cast_tensors():
    from ..experimental.test_tma import whole_tile

    t = torch()
    kernel = cute.experimental.kernel(whole_tile)
    cast = 0
    for k in range(24):
        src, dst = (t.randint(-9, 9, (64, 64), device="cuda").half() for _ in range(2))
        args = [from_dlpack(x, assumed_align=16) for x in (src, dst)]
        cast += any(name.startswith("_cute_launch_") for name in vars(args[0]))
        kernel[1, 32](*args)
        assert (dst == src).all(), k
        del args
        if k % 2:
            held = src, dst
    assert held and cast >= 18
