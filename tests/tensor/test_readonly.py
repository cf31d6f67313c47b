# SPDX-License-Identifier: Apache-2.0
"""Read-only memory is read, and whatever would write it is refused: by the simulator and the compiler in the same
words."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.sim import ReadOnlyError


def frozen(shape, dtype=np.float32):
    """An array that is not writeable, its address a multiple of 128 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 128
    array = raw[start : start + size].view(dtype).reshape(shape)
    array.flags.writeable = False
    return array


WRITES = {
    "an element": "t[0, 0] = 1",
    "an element of a slice": "t[None, 2][1] = 1",
    "a slice from a number": "t[None, 2] = 1",
    "a slice from a vector": "t[None, 2] = r.load()",
    "store": "t[None, 2].store(r.load())",
    "fill": "t.fill(0)",
    "a part": "cute.local_tile(t, (2, 2), (0, 1))[0, 0] = 1",
    "a moved tensor": "cute.domain_offset((1, 1), t)[0, 0] = 1",
    "other elements": "cute.recast_tensor(t, cute.Int32)[0, 0] = 1",
    "a pointer": "t.iterator.store(1.0)",
    "a moved pointer": "(t.iterator + 3).store(1.0)",
    "an aligned pointer": "t.iterator.align(256).store(1.0)",
    "a recast pointer": "cute.recast_ptr(t.iterator, dtype=cute.Uint8).store(1)",
    "a tensor of the pointer": "cute.make_tensor(t.iterator, (4,))[0] = 1",
    "a tensor of an array": "cute.make_tensor(a, (4,))[0] = 1",
    "autovec_copy": "cute.autovec_copy(r, t[None, 2])",
    "basic_copy": "cute.basic_copy(r, t[None, 2])",
    "basic_copy_if": "cute.basic_copy_if(r, r, t[None, 2])",
    "copy": "cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), r, t[None, 2])",
    "copy of R2G": "cute.copy(cute.make_copy_atom(cute.nvgpu.CopyR2GOp(), cute.Float32), r, t[None, 2])",
    "a bulk copy": "cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32, num_bits_per_copy=128), s, c)",
    "a bulk reduction": "cute.copy(cute.make_copy_atom(cpasync.CopyReduceBulkS2GOp(), cute.Float32, "
    "num_bits_per_copy=128), s, c)",
    "arch.store": "cute.arch.store(t.iterator, 1.0)",
    "atomic_add": "cute.arch.atomic_add(t.iterator, 1.0)",
    "atomic_exch": "cute.arch.atomic_exch(t.iterator, 1.0)",
    "atomic_cas": "cute.arch.atomic_cas(t.iterator, 1.0, 2.0)",
    "atomic_fmax": "cute.arch.atomic_fmax(t.iterator, 1.0)",
    "red": "cute.arch.red(t.iterator, 1.0, 'add', 'f32')",
}


WRITES_TO_ARRAYS = ["a[1, 1] = 1", "a[1, 1] += 1", "a[1][1] = 1"]
WRITES_TO_ARRAYS += [f"cuda.atomic.{name}(a, (1, 1), 1)" for name in ("add", "sub", "max", "min")]


def kernel_of(statement):
    space = {"cute": cute, "cuda": cuda, "cpasync": cpasync}
    exec(
        "def kernel(t, a, out):\n"
        "    r = cute.make_rmem_tensor((4,), cute.Float32)\n"
        "    r.fill(1)\n"
        "    c = t[None, 0]\n"
        "    s = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 4, 128), (4,))\n"
        f"    {statement}\n",
        space,
    )
    return space["kernel"]


def said(kernel, args):
    """What the simulator (lanes apart and together) and the compiler say."""
    found = []
    for run in (
        lambda: cute.simulate(kernel)[1, 32](*args),
        lambda: cute.simulate(kernel, checks=False)[1, 32](*args),
        lambda: cute.compile(kernel, args),
    ):
        with pytest.raises(cute.CuteError) as caught:
            run()
        found.append(str(caught.value).splitlines()[0])
    return found


@pytest.mark.parametrize("statement", WRITES.values(), ids=WRITES)
def test_a_write_is_refused_in_the_same_words(statement):
    array = frozen((4, 4)).T  # columns are contiguous
    words = said(kernel_of(statement), (from_dlpack(array, assumed_align=128), array, np.zeros(4, np.float32)))
    assert "points to read-only memory" in words[0] and words[0] == words[1] == words[2]
    assert not array.any()


@pytest.mark.parametrize("statement", WRITES_TO_ARRAYS)
def test_a_write_to_an_array_is_refused_in_the_same_words(statement):
    array = frozen((4, 4))
    words = said(kernel_of(statement), (from_dlpack(array), array, np.zeros(4, np.float32)))
    assert words[0].startswith("the array is read-only, and cannot be written") and words[0] == words[1] == words[2]
    assert not array.any()


def atom_of(op, **how):
    return cpasync.make_tiled_tma_atom(
        op, from_dlpack(frozen((64, 64))), cute.make_layout((8, 8), stride=(8, 1)), (8, 8)
    )


@pytest.mark.parametrize("op", [cpasync.CopyBulkTensorTileS2GOp(), cpasync.CopyReduceBulkTensorTileS2GOp()])
def test_an_atom_that_would_store_is_refused(op):
    with pytest.raises(cute.CuteError, match=f"make_tiled_tma_atom: {type(op).__name__}: .*read-only memory"):
        atom_of(op)


def test_an_im2col_atom_that_would_store_is_refused():
    lay = cute.make_layout(((8, 2), 16), stride=((16, 128), 1))
    images = cute.make_tensor(from_dlpack(frozen((2, 8, 16), np.float16)).iterator, lay)
    tile, geometry = cute.make_layout((8, 16), stride=(16, 1)), ((0,), (0,), (0,), (0,), (1,), (0,), (1,))
    with pytest.raises(cute.CuteError, match="make_im2col_tma_atom: CopyBulkTensorIm2ColS2GOp: .*read-only memory"):
        cpasync.make_im2col_tma_atom(cpasync.CopyBulkTensorIm2ColS2GOp(), images, tile, (8, 16), *geometry)


def test_an_atom_that_loads_takes_it():
    assert atom_of(cpasync.CopyBulkTensorTileG2SOp()).atom.tensor_map is not None


class Wrapped:
    """An array by DLPack alone, of the newest version or of one that has no versions."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **how):
        if how and not self.versions:
            raise TypeError("no such argument")
        return self.array.__dlpack__(**how)


class Interface:
    """An array by the CUDA array interface alone."""

    def __init__(self, array):
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


@pytest.fixture
def mapped(tmp_path):
    path = tmp_path / "numbers"
    np.arange(8, dtype=np.float32).tofile(path)
    return np.memmap(path, np.float32, "r")


NUMBERS = np.arange(8, dtype=np.float32)


@pytest.mark.parametrize(
    "given",
    [
        np.frombuffer(NUMBERS.tobytes(), np.float32),
        np.broadcast_to(NUMBERS, (8,)),
        np.broadcast_to(NUMBERS, (2, 8))[1],
        Wrapped(np.broadcast_to(NUMBERS, (8,))),
        "mapped",
    ],
    ids=["bytes", "broadcast", "part", "dlpack", "memmap"],
)
def test_read_only_memory_is_read_and_not_written(given, mapped):
    array = mapped if isinstance(given, str) else given
    out = np.zeros(8, np.float32)

    def read(x, y):
        cute.autovec_copy(x, y)

    def write(x, y):
        cute.autovec_copy(y, x)

    tensors = from_dlpack(array), from_dlpack(out)
    cute.simulate(read)[1, 1](*tensors)
    np.testing.assert_array_equal(out, NUMBERS)
    cute.compile(read, tensors)
    for run in (lambda: cute.simulate(write)[1, 1](*tensors), lambda: cute.compile(write, tensors)):
        with pytest.raises(cute.CuteError, match="copy: .*read-only.* points to read-only memory"):
            run()


def test_each_protocol_says_what_is_read_only():
    array = NUMBERS.copy()
    array.flags.writeable = False
    for make in (lambda a: a, Wrapped, Interface):
        assert from_dlpack(make(array)).iterator.readonly
        assert not from_dlpack(make(NUMBERS.copy())).iterator.readonly
    assert not from_dlpack(Wrapped(NUMBERS.copy(), versions=False)).iterator.readonly


def test_the_type_says_so():
    t = from_dlpack(frozen((4,)))
    assert repr(t) == "Tensor(ptr<Float32, gmem, align 4, read-only>, (4):(1))"
    assert t.iterator != from_dlpack(np.zeros(4, np.float32)).iterator


def raw(t):
    p = cute.make_ptr(cute.Float32, t.iterator.toint(), cute.AddressSpace.gmem)
    p.store(1.0)


@pytest.mark.parametrize("checks", [True, False])
def test_the_simulator_also_sees_a_write_through_a_mere_address(checks):
    array = frozen((4,))
    with pytest.raises(ReadOnlyError, match=r"thread 0 .*writes 4 bytes at t \+ 0 bytes .*, which is read-only: pass"):
        cute.simulate(raw, checks=checks)[1, 2](from_dlpack(array))
    assert not array.any()


@pytest.mark.parametrize("read_only_first", [True, False])
def test_memory_that_is_given_twice_is_written_by_what_may(read_only_first):
    array = np.zeros(8, np.float32)
    view = array[2:].view()
    view.flags.writeable = False

    def kernel(x, y):
        t = cute.make_tensor(x, (6,)) if read_only_first else cute.make_tensor(y, (6,))
        u = cute.make_tensor(y, (8,)) if read_only_first else cute.make_tensor(x, (8,))
        u[2] = t[0] + 1

    cute.simulate(kernel)[1, 1](*((view, array) if read_only_first else (array, view)))
    np.testing.assert_array_equal(array, [0, 0, 1, 0, 0, 0, 0, 0])


CONSTANT = np.zeros(4, np.float32)


def test_a_captured_array_is_a_constant_for_both_engines():
    def kernel(out):
        t = cute.make_tensor(CONSTANT, (4,))
        out[0] = CONSTANT[1] + t[2]

    def writes(out):
        CONSTANT[0] = out[0] + cute.size((1,))

    def writes_as_a_tensor(out):
        cute.make_tensor(CONSTANT, (4,))[0] = 1

    out = np.ones(4, np.float32)
    cute.simulate(kernel)[1, 1](out)
    cute.compile(kernel, (out,))
    assert out[0] == 0
    words = said(writes, (out,))
    assert "the array is read-only" in words[0] and words[0] == words[1] == words[2]
    words = said(writes_as_a_tensor, (out,))
    assert "points to read-only memory" in words[0] and words[0] == words[1] == words[2]
    assert not CONSTANT.any()
