# SPDX-License-Identifier: Apache-2.0
"""printf and print_tensor: what the simulator prints, what compiles, and what is refused."""

import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.runtime import from_dlpack
from numba_cute.seam.hooks.driver import DRIVER


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


@pytest.mark.parametrize("call, message", [
    ('"%d %d", n', "takes 2 values, but got 1"),
    ('"%d", n, n', "takes 1 values, but got 2"),
    ('"{} {}", n', r"has more \{\} than the 1 values"),
    ('"{}", n, n', r"has no \{\} for the last 1 of the 2 values"),
    ('"%f", 1', "%f takes a float, and value 1 of '%f.n' is an integer; write %d, %u or %x"),
    ('"%d %e", n, n', "%e takes a float, and value 2 of '%d %e.n' is an integer"),
    ('"%d", 1.5', "%d takes an integer, and value 1 of '%d.n' is a float; write %f, %e or %g"),
    ('"%x", a[0]', "%x takes an integer, and value 1 of '%x.n' is a float"),
    ('"%llu", a', r"%llu takes an integer, and value 1 of '%llu.n' is a Tensor; write \{\}"),
    ('"%s", 7', "%s takes values that are known at compile time, and value 1 of '%s.n' is an integer; write %d"),
    ('"%c", "ab"', "%c takes an integer, and value 1 of '%c.n' is text; write %s"),
    ('"%p", a[0]', "%p takes a pointer or an address, and value 1 of '%p.n' is a float"),
    ('"%p", t.iterator', "%p takes a pointer or an address, and value 1 of '%p.n' is a Pointer"),
    ('"%n", n', "'%n' in '%n.n' is not a conversion of a kernel's printf"),
    ('"%k", n', "'%k' in '%k.n' is not a conversion"),
    ('"%a", a[0]', "'%a' in '%a.n' is not a conversion"),
    ('"%d: 100%", n', "'%' in '%d: 100%.n' is not a conversion .* write %% for the sign"),
    ('"%*d", 5, n', "takes 1 values, but got 2"),
    ('"%*d", n', r"%\*d: a width or precision is a number in the format, not value 1"),
    ('"{0}", n', r"\{0\} in '\{0\}.n': values are printed in their order"),
    ('"{n}", n', r"\{n\} in '\{n\}.n': values are printed in their order"),
    ('"{:.3f}", n', r"\{:.3f\} is not a format of an integer"),
    ('"{:d}", a[0]', r"\{:d\} is not a format of a float"),
])  # fmt: skip
def test_a_format_that_does_not_fit_its_values_is_refused_in_the_same_words(call, message):
    kernel = printing(f"cute.printf({call})")
    args = (from_dlpack(np.ones(2, np.float32)), 7)
    with pytest.raises(cute.CuteError, match=message) as simulated:
        cute.simulate(kernel)[1, 1](*args)
    with pytest.raises(cute.CuteError, match=message) as compiled:
        cute.compile(kernel, args)
    assert str(simulated.value).splitlines()[0] == str(compiled.value).splitlines()[0]


def printing(line):
    """A kernel of a tensor of Float32 and an integer that does this."""
    space = {"cute": cute}
    exec(f"def kernel(a, n):\n    t = cute.make_rmem_tensor(40, cute.Int16)\n    t.fill(-1)\n    {line}\n", space)
    return space["kernel"]


def texts_of(ptx):
    """The zero-terminated texts among a kernel's constants."""
    found = re.findall(r"\.b8 \S+\[\d+\] = \{([\d, ]+)\}", ptx)
    return [bytes(map(int, numbers.split(","))).rstrip(b"\0").decode() for numbers in found]


@pytest.mark.parametrize("call, given, printed", [
    ('"{}", 1 << 40', "%lld", "1099511627776"),
    ('"{}", 5', "%d", "5"),
    ('"%d", 1 << 40', "%lld", "1099511627776"),
    ('"%d", n', "%lld", "255"),
    ('"%5d|%-5d|%05d", n, 7, cute.Int16(-3)', "%5lld|%-5d|%05d", "  255|7    |-0003"),
    ('"%i %u", cute.Uint32(4294967295), cute.Uint8(200)', "%lld %u", "4294967295 200"),
    ('"%d", cute.Uint64(1 << 63)', "%llu", "9223372036854775808"),
    ('"%x %X %o", cute.Int32(255), cute.Int64(255), 8', "%x %llX %o", "ff FF 10"),
    ('"%hhd %hu %ld", 300, 65537, cute.Int32(-1)', "%d %u %lld", "44 1 -1"),
    ('"%.2f %e %lf %F", a[0], a[1], 0.5, cute.Float16(2)', "%.2f %e %f %f", "1.50 2.500000e-01 0.500000 2.000000"),
    ('"%s|%6s|%-4s|", "100%", cute.Int8, True', "100%%|  Int8|True|", "100%|  Int8|True|"),
    ('"%c%c", 65, "B"', "%cB", "AB"),
    ('"%p", cute.Uint64(255)', "0x%llx", "0xff"),
    ('"{} {}", n > 3, n > 300', "%s %s", "True False"),
    ('"%d", n > 3', "%d", "1"),
    ('"{:d} {}", True, True', "%d True", "1 True"),
    ('"{} {}", (1, (n, 0.5)), cute.make_layout(4)', "(%d,(%lld,%f)) 4:1", "(1,(255,0.500000)) 4:1"),
    ('"{} is 100% of {}", n, n', "%lld is 100%% of %lld", "255 is 100% of 255"),
    ('"100% of {{}}"', "100%% of {}", "100% of {}"),
])  # fmt: skip
def test_values_are_printed_whole_by_both_engines(call, given, printed, capsys):
    kernel = printing(f"cute.printf({call})")
    args = (from_dlpack(np.array([1.5, 0.25], np.float32)), np.int64(255))
    cute.simulate(kernel)[1, 1](*args)
    assert capsys.readouterr().out == printed + "\n"
    assert given + "\n" in texts_of(cute.compile(kernel, args).ptx)


def test_more_values_than_vprintf_takes_are_printed_in_pieces(capsys):
    kernel = printing('cute.printf("{}!", t.load())')
    args = (from_dlpack(np.ones(2, np.float32)), 1)
    cute.simulate(kernel)[1, 1](*args)
    assert capsys.readouterr().out == f"({','.join(['-1'] * 40)})!\n"
    pieces = [text for text in texts_of(cute.compile(kernel, args).ptx) if "%" in text]
    assert [text.count("%d") for text in pieces] == [32, 8]


def test_print_tensor_needs_a_tensor():
    with pytest.raises(cute.CuteError, match="print_tensor: 3 is not a tensor"):
        cute.print_tensor(3)


class OnDevice:
    """An array that says that it lies on a GPU."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


def test_a_tensor_on_a_gpu_is_copied_to_be_printed(capsys, monkeypatch):
    asked = []

    def read(address, nbytes):
        asked.append((address, nbytes))
        return np.frombuffer(a.tobytes(), np.uint8)

    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    monkeypatch.setattr(DRIVER, "read", read)
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

    with pytest.raises(cute.CuteError, match="is not a format of an integer"):
        cute.simulate(kernel)[1, 1](3)
