# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries, and the streams and devices that they say, in launches in machine code."""

from __future__ import annotations

import numpy as np
import pytest
from numba.cuda import types

from numba_cute.compiler.host.native import arrays, plans

from .noting import GPU, OTHER_GPU, Exporter, array_type, launches, packed, planned, words_of

__all__ = ["launches"]


def test_arrays_of_the_exchange_functions(launches):
    site = planned(launches, (Exporter(0x1000, (2, 3), (3, 1)),), argument_types=[array_type(2)])
    got = words_of(packed(launches, site, Exporter(0x2000, (5, 7), (7, 1))))
    assert got == [0, 0, 35, 4, 0x2000, 5, 7, 28, 4]
    got = words_of(packed(launches, site, Exporter(0x2000, (1, 7), (99, 1))))
    assert got[5:] == [1, 7, 396, 4], "the stride of one row is no matter"
    for other in (
        Exporter(0x1000, (2, 3), (4, 1)), Exporter(0x1000, (2, 3), (1, 2)), Exporter(0x1000, (6,), (1,)),
        Exporter(0x1000, (2, 3), (3, 1), dtype=(2, 64, 1)), Exporter(0x1000, (2, 3), (3, 1), dtype=(0, 32, 1)),
        Exporter(0x1000, (2, 3), (3, 1), device=(2, 1)), Exporter(0x1000, (2, 3), (3, 1), device=(1, 0)),
        Exporter(0x1000, (0, 3), (3, 1)),
    ):  # fmt: skip
        site.call(other)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


@pytest.mark.parametrize(
    "layout, good, bad", [("F", [(1, 2), (1, 99)], [(3, 1), (2, 1)]), ("A", [(4, 1), (2, 12)], [(3, 1), (1, 2)])]
)
def test_layouts_of_arrays(launches, layout, good, bad):
    shapes = {(1, 99): (2, 1)}
    first = Exporter(0x1000, (2, 3), good[0])
    site = planned(launches, (first,), argument_types=[array_type(2, layout)])
    for strides in good[: 1 if layout == "F" else 2]:
        shape = shapes.get(strides, (2, 3))
        assert words_of(packed(launches, site, Exporter(0x1000, shape, strides)))[7:] == [4 * s for s in strides]
    for strides in bad:
        site.call(Exporter(0x1000, (2, 3), strides))
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_an_array_that_wants_gradients_goes_the_slow_way(launches):
    class Grad(Exporter):
        requires_grad = False

    good, bad = Grad(0x1000, (4,), (1,)), Grad(0x1000, (4,), (1,))
    bad.requires_grad = True
    site = planned(launches, (good,), argument_types=[array_type(1)])
    packed(launches, site, good)
    site.call(bad)
    assert len(site.slow.calls) == 1


class Described:
    """An array as CuPy has it."""

    class Data:
        def __init__(self, ptr, device):
            self.ptr, self.device_id = ptr, device

    class Device:
        id = 0

    def __init__(self, data, shape, strides, dtype="f4", device=0):
        self.dtype, self.shape, self.strides = np.dtype(dtype), shape, strides
        self.data, self.device = self.Data(data, device), self.Device()


Described.__module__ = "cupy._core"


def test_arrays_that_attributes_describe(launches, monkeypatch):
    monkeypatch.setattr(arrays, "_of_cupy", lambda: 0x55)
    site = planned(launches, (Described(0x1000, (2, 3), (12, 4)),), argument_types=[array_type(2)], stream=None)
    got = words_of(packed(launches, site, Described(0x2000, (5, 7), (28, 4))))
    assert got == [0, 0, 35, 4, 0x2000, 5, 7, 28, 4] and launches.seen[0][3] == 0x55
    for other in (
        Described(0x1000, (2, 3), (16, 4)), Described(0x1000, (2, 3), (12, 4), "i4"), Described(0x1000, (6,), (4,)),
        Described(0x1000, (2, 3), (12, 4), device=1), Described(0x1000, (2, "3"), (12, 4)),
        Described(None, (2, 3), (12, 4)),
    ):  # fmt: skip
        site.call(other)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_the_stream_is_the_librarys_unless_one_is_named(launches):
    x = Exporter(0x1000, (4,), (1,))
    for stream, want in ((None, 0x77), (5, 5), (0, 0)):
        site = planned(launches, (x,), argument_types=[array_type(1)], stream=stream)
        packed(launches, site, x)
        assert launches.seen[0][3] == want
    site = planned(launches, (3,), stream=None)
    packed(launches, site, 3)
    assert launches.seen[0][3] == 0


def test_libraries_that_use_different_streams_go_the_slow_way(launches, monkeypatch):
    now = [0x77]
    monkeypatch.setattr(arrays, "_of_cupy", lambda: now[0])
    args = Exporter(0x1000, (4,), (1,)), Described(0x1000, (4,), (4,))
    site = planned(launches, args, argument_types=[array_type(1)] * 2, stream=None)
    packed(launches, site, *args)
    now[0] = 0x99
    site.call(*args)
    assert len(site.slow.calls) == 1


def test_the_arguments_device_is_made_current(launches):
    x = Exporter(0x1000, (4,), (1,))
    tied = planned(launches, (x,), argument_types=[array_type(1)])
    launches.current = OTHER_GPU
    packed(launches, tied, x)
    assert launches.calls == [GPU, "pop"] and launches.context == GPU and launches.current == OTHER_GPU
    free = planned(launches, (3,))
    free.call(3)
    assert len(free.slow.calls) == 1, "numbers do not say where: the slow way finds out"


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("boolean", 1), ("int8", 1), ("uint16", 2), ("float16", 2), ("bfloat16", 2), ("float64", 8), ("complex128", 16)],
)
def test_the_size_of_every_element_type_is_known(dtype, size):
    assert plans._itemsize(getattr(types, dtype)) == size
    assert plans._itemsize(types.Record.make_c_struct([("a", types.int32), ("b", types.int8)])) == 8
