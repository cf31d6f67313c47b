# SPDX-License-Identifier: Apache-2.0
"""printf and print_tensor: what the simulator prints, what compiles, and what is refused."""

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack


@cuda.jit
def print_values(a):
    i, _, _ = cute.arch.thread_idx()
    if i == 1:
        cute.printf("thread %d has %f", i, a[i])
        cute.printf("{} of {}: {} 100%", i, a.shape, a[None].load())
        cute.printf(i, 7)


@cuda.jit
def print_all(a):
    i, _, _ = cute.arch.thread_idx()
    if i == 0:
        cute.print_tensor(a)


def test_printf_takes_both_kinds_of_format(capsys):
    a = np.array([1.5, 2.5, 3.5], np.float32)
    cute.simulate(print_values)[1, 3](from_dlpack(a))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["thread 1 has 2.500000", "1 of (3): (1.500000,2.500000,3.500000) 100%", "1 7"]


def test_print_tensor_shows_rows(capsys):
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    cute.simulate(print_all)[1, 2](from_dlpack(a))
    in_kernel = capsys.readouterr().out.splitlines()
    cute.print_tensor(from_dlpack(a))
    on_host = capsys.readouterr().out.splitlines()
    assert in_kernel[0].startswith("Tensor(ptr<Int32, gmem") and in_kernel[0] == on_host[0]
    assert [line.split() for line in in_kernel[1:]] == [["0", "1", "2"], ["3", "4", "5"]]
    assert [line.split() for line in on_host[1:]] == [["0", "1", "2"], ["3", "4", "5"]]


def test_print_tensor_shows_coordinates_when_verbose(capsys):
    cute.print_tensor(from_dlpack(np.ones((2, 1), np.float32)), verbose=True)
    assert capsys.readouterr().out.splitlines()[1:] == ["1.0 @(0, 0)", "1.0 @(1, 0)"]


@pytest.mark.parametrize("kernel", [print_values, print_all])
def test_printing_compiles_to_vprintf(kernel):
    ptx = cute.compile(kernel, (from_dlpack(np.zeros(3, np.float32)),)).ptx
    assert "vprintf" in ptx


@pytest.mark.parametrize("args, message", [
    (("%d %d", 1), "takes 2 values, and 1 are given"),
    (("{} {}", 1), r"has more \{\} than the 1 values"),
    (("{}", 1, 2), r"has no \{\} for the last 1 of the 2 values"),
])  # fmt: skip
def test_printf_checks_its_format(args, message):
    @cuda.jit
    def kernel():
        cute.printf(*args)

    with pytest.raises(cute.CuteError, match=message):
        cute.simulate(kernel)[1, 1]()


def test_print_tensor_needs_a_tensor():
    with pytest.raises(cute.CuteError, match="print_tensor: 3 is not a tensor"):
        cute.print_tensor(3)


class OnDevice:
    """An array that says that it lies on a GPU."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


def test_a_tensor_on_a_gpu_is_copied_to_be_printed(capsys, monkeypatch):
    from numba_cute.compiler import memory

    asked = []

    def from_device(address, nbytes):
        asked.append((address, nbytes))
        return np.frombuffer(a.tobytes(), np.uint8)

    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    monkeypatch.setattr(memory, "from_device", from_device)
    cute.print_tensor(from_dlpack(OnDevice(a)))
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [["0", "1", "2"], ["3", "4", "5"]]
    assert asked == [(a.ctypes.data, 12)]


@pytest.mark.gpu
def test_a_gpus_memory_is_printed(capsys):
    torch = pytest.importorskip("torch", reason="device arrays are made with torch")
    if not cuda.is_available():
        pytest.skip("needs a GPU")
    cute.print_tensor(from_dlpack(torch.arange(6, device="cuda").reshape(2, 3).T))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["0", "3"], ["1", "4"], ["2", "5"]]


def test_views_narrow_elements_and_coordinates_are_printed_on_the_host(capsys):
    packed = from_dlpack(cute.runtime.pack(np.array([[0.5, -1, 6, 0]], cute.Float4E2M1FN.numpy)))
    cute.print_tensor(cute.recast_tensor(packed, cute.Float4E2M1FN))
    cute.print_tensor(cute.make_identity_tensor((2, 2)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "0.5 -1.0 6.0 0.0" and lines[3:] == ["(0,0) (0,1)", "(1,0) (1,1)"]


@cuda.jit
def formats(a, n):
    cute.printf("{:.3f} {:08x} {:5d}|{} {:e}", a[0], n, n, n, a[1])


def test_braces_take_formats(capsys):
    a = np.array([1.5, 0.25], np.float32)
    cute.simulate(formats)[1, 1](from_dlpack(a), np.int64(255))
    assert capsys.readouterr().out == "1.500 000000ff   255|255 2.500000e-01\n"
    ptx = cute.compile(formats, (from_dlpack(a), np.int64(255))).ptx
    assert "vprintf" in ptx


def test_a_format_must_fit_its_value():
    @cuda.jit
    def kernel(n):
        cute.printf("{:.3f}", n)

    with pytest.raises(cute.CuteError, match="is no format of a Int64"):
        cute.simulate(kernel)[1, 1](3)
