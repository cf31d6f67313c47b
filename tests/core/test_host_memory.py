# SPDX-License-Identifier: Apache-2.0
"""Memory of the host in a kernel: the simulator takes it as an argument, a GPU does not, and neither engine as a
captured variable."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.compiler.host import tensormap
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam.hooks.driver import DRIVER

HOST = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
TENSOR = from_dlpack(HOST)
PART = TENSOR[None, 3]
POINTER = TENSOR.iterator + 5
RECAST = cute.recast_tensor(TENSOR, cute.Int16)
DYNAMIC = TENSOR.mark_layout_dynamic()
TENSORS = (TENSOR, TENSOR)


def reads_tensor(out):
    out[0] = TENSOR[0, 0]


def reads_part(out):
    out[0] = PART[0]


def reads_pointer(out):
    out[0] = POINTER.load()


def reads_recast(out):
    out[0] = RECAST[0, 0]


def reads_dynamic(out):
    out[0] = DYNAMIC[0, 0]


def reads_one_of_several(out):
    out[0] = TENSORS[1][0, 0]


def closes_over():
    held = from_dlpack(HOST.T)

    def reads_closure(out):
        out[0] = held[0, 0]

    return reads_closure


CAPTURING = [reads_tensor, reads_part, reads_pointer, reads_recast, reads_dynamic, reads_one_of_several, closes_over()]


@pytest.mark.parametrize("kernel", CAPTURING, ids=lambda k: k.__name__)
def test_captured_host_memory_is_refused_in_the_same_words(kernel):
    out, said = np.zeros(1, np.float32), []
    for run in (
        lambda: cute.simulate(kernel)[1, 1](out),
        lambda: cute.simulate(kernel, checks=False)[1, 32](out),
        lambda: cute.compile(kernel, (out,)),
    ):
        with pytest.raises(cute.CuteError) as caught:
            run()
        said.append(str(caught.value).splitlines()[0])
    assert "a tensor of numpy's ndarray lies in the host's memory, and is captured as a global or closure" in said[0]
    assert "pass the tensor as an argument" in said[0]
    assert said[0] == said[1] == said[2]


def test_a_captured_tma_atom_is_refused_in_the_same_words():
    op, lay = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((8, 8), stride=(8, 1))
    atom = cpasync.make_tiled_tma_atom(op, from_dlpack(aligned()), lay, (8, 8)).atom

    def kernel(out):
        cpasync.prefetch_descriptor(atom)
        out[0] = 1

    out, said = np.zeros(1, np.float32), []
    for run in (lambda: cute.simulate(kernel)[1, 1](out), lambda: cute.compile(kernel, (out,))):
        with pytest.raises(cute.CuteError, match="a TMA atom holds a tensor map") as caught:
            run()
        said.append(str(caught.value).splitlines()[0])
    assert said[0] == said[1]


def aligned():
    raw = np.zeros(64 * 64 * 2 + 16, np.uint8)
    return raw[-raw.ctypes.data % 16 :][: 64 * 64 * 2].view(np.float16).reshape(64, 64)


def test_plain_arrays_are_constants_and_layouts_may_be_captured(run):
    numbers, lay = np.arange(4, dtype=np.float32), cute.make_layout((2, 2), stride=(2, 1))

    def kernel(out):
        for i in range(4):
            out[i] = numbers[lay(i)]

    out = np.zeros(4, np.float32)
    run(kernel, 1, 1, (out,), outputs=[out], check=lambda: np.testing.assert_array_equal(out, [0, 2, 1, 3]))


class OnDevice:
    """An array that says that it lies on a GPU."""

    def __init__(self, array):
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


def double(x, y):
    y[0] = 2 * x[0]


def test_the_simulator_takes_host_memory_and_refuses_a_gpus():
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    cute.simulate(double)[1, 1](from_dlpack(x), from_dlpack(y))
    assert y[0] == 2
    with pytest.raises(cute.CuteError, match="OnDevice lies on a GPU, and the simulator runs on the host: pass a copy"):
        cute.simulate(double)[1, 1](from_dlpack(OnDevice(x)), from_dlpack(y))
    info = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(),
        from_dlpack(OnDevice(aligned())),
        cute.make_layout((8, 8), stride=(8, 1)),
        (8, 8),
    )
    with pytest.raises(cute.CuteError, match="OnDevice lies on a GPU"):
        cute.simulate(lambda atom: None)[1, 1](info.atom)


KNOWN = {"pageable": False, "pinned": True, "no GPU": None}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_a_launch_takes_what_a_gpu_can_reach(known, monkeypatch):
    monkeypatch.setattr(DRIVER, "known", lambda address: known)
    array = np.zeros((4, 4), np.float32)
    t = from_dlpack(array)
    for held in (t.iterator, t[None, 2].iterator, t.iterator + 3, t.mark_layout_dynamic().iterator):
        if known:
            assert held.address.checked() == int(held.address)
        else:
            with pytest.raises(
                cute.CuteError, match="ndarray lies in the host's memory, which a GPU cannot read: copy"
            ):
                held.address.checked()
    assert from_dlpack(OnDevice(array)).iterator.address.checked() == array.ctypes.data
    mere = cute.make_ptr(cute.Float32, array.ctypes.data, cute.AddressSpace.gmem).address
    assert cute.make_ptr(cute.Float32, 0, cute.AddressSpace.gmem).address.checked() == 0
    if known is False:
        with pytest.raises(cute.CuteError, match="what a pointer to 0x.* points at lies in the host's memory"):
            mere.checked()
    else:
        assert mere.checked() == array.ctypes.data


def test_a_tensor_map_of_host_memory_is_not_encoded(monkeypatch):
    monkeypatch.setattr(tensormap, "known_to_cuda", lambda address: False)
    op, lay = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((8, 8), stride=(8, 1))
    atom = cpasync.make_tiled_tma_atom(op, from_dlpack(aligned()), lay, (8, 8)).atom
    with pytest.raises(cute.CuteError, match="the tensor of a TMA atom, at 0x.*, lies in the host's memory"):
        tensormap.encode(atom.tensor_map)


def test_a_tensor_map_of_gpu_memory_may_begin_far_before_it(monkeypatch):
    monkeypatch.setattr(tensormap, "known_to_cuda", lambda address: False)
    held = from_dlpack(OnDevice(aligned()))
    ragged = cute.make_layout((1 << 30, 8, 1 << 30), stride=(8, 1, 8))
    before = cute.make_tensor(held.iterator - (1 << 33), ragged)
    op, lay = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((8, 8, 1), stride=(8, 1, 64))
    record = cpasync.make_tiled_tma_atom(op, before, lay, (8, 8, 1)).atom.tensor_map
    asked = {}
    monkeypatch.setattr(tensormap.bindings, "cuTensorMapEncodeTiled", lambda *of: asked.setdefault("of", of) and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tensormap.encode(record)
    assert asked["of"][2] == record.address


def test_bindings_that_do_not_know_a_tensor_map_are_named(monkeypatch):
    monkeypatch.setattr(tensormap, "known_to_cuda", lambda address: None)
    monkeypatch.setattr(tensormap.bindings, "CUtensorMapDataType", SimpleNamespace(__members__={}))
    op, lay = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((8, 8), stride=(8, 1))
    atom = cpasync.make_tiled_tma_atom(op, from_dlpack(aligned()), lay, (8, 8)).atom
    with pytest.raises(cute.CuteError, match="cannot encode a tensor map with FLOAT16: CUtensorMapDataType has"):
        tensormap.encode(atom.tensor_map)


def test_parts_and_pointers_keep_their_array_alive():
    import gc
    import weakref

    class Owned(np.ndarray):
        pass

    array = np.zeros((4, 4), np.float32).view(Owned)
    held = weakref.ref(array)
    part = from_dlpack(array)[None, 2].iterator + 1
    del array
    assert held() is not None
    del part
    if held() is not None:  # looking through all there is takes seconds
        gc.collect()
    assert held() is None


@pytest.mark.gpu
def test_a_launch_with_host_memory_is_refused():
    if not cuda.is_available():
        pytest.skip("needs a GPU to launch on")
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    with pytest.raises(cute.CuteError, match="lies in the host's memory, which a GPU cannot read"):
        cuda.jit(double)[1, 1](from_dlpack(x), from_dlpack(y))
    managed = cuda.managed_array(4, np.float32)
    managed[:] = 3
    cuda.jit(double)[1, 1](from_dlpack(managed), from_dlpack(managed))
    cuda.synchronize()
    assert managed[0] == 6
