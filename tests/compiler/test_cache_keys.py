# SPDX-License-Identifier: Apache-2.0
"""What a kernel that is kept on disk may reach: annotations that are unions, streams, facts of the target."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.bindings import driver
from numba import cuda
from numba.cuda import types

import numba_cute as cute
from numba_cute import config
from numba_cute.compiler.host import disk_cache
from numba_cute.compiler.host.fingerprint import Unfollowed, fingerprint
from numba_cute.isa.form.targets import answering_for

ARRAY = types.Array(types.float32, 1, "C")


def test_kernels_annotated_by_unions_are_kept():
    """As `cute.Shape` and `cute.Tile` are: what Python has for `int | tuple`."""

    def kernel(x, shape: cute.Shape, tile: cute.Tile, maybe: cute.Layout | None = None):
        x[0] = 1.0

    kernel.__annotations__ |= {"shape": cute.Shape, "tile": cute.Tile, "maybe": cute.Layout | None}
    with config.override(cache=True):
        before = disk_cache.key_of(kernel, (ARRAY,), {}, "sm_90a", "compile")
        assert before.text is not None and not before.notes
        kernel.__annotations__["shape"] = cute.Shape | float
        assert disk_cache.key_of(kernel, (ARRAY,), {}, "sm_90a", "compile").text not in (None, before.text)


def test_a_stream_as_a_default_is_its_number():
    zero, one, other = driver.CUstream(0), driver.CUstream(16), driver.CUstream(0)

    def host(x, stream=zero):
        return stream

    def another(x, stream=one):
        return stream

    another.__name__ = another.__qualname__ = "host"
    again = fingerprint((host, "host"))
    host.__defaults__ = (other,)
    assert fingerprint((host, "host")) == again != fingerprint((another, "host"))

    def address(x, stream=zero):
        return stream.getPtr()

    with pytest.raises(Unfollowed, match="getPtr` reads or does more"):
        fingerprint((address, "address"))


def test_facts_of_the_target_are_read_as_they_are_answered():
    def sms():
        return cute.utils.HardwareInfo().get_device_multiprocessor_count()

    found = []
    for arch, count in (("sm_90a", None), ("sm_90a", 8), ("sm_90a", 8), ("sm_100a", None)):
        with answering_for(arch, count):
            found.append(fingerprint((sms, "sms")))
    assert found[1] == found[2] and len(set(found)) == 3
    with pytest.raises(Unfollowed, match="hardware_info"):  # of a GPU
        fingerprint((sms, "sms"))


@cute.struct
class Held:
    n: cute.Int32


class More(Held):
    def twice(self):
        return 2 * self.n


class Wider(cute.Layout):
    def doubled(self):
        return cute.size(self) * 2


LAYOUT = cute.make_layout((4, 8))
TILES = (cute.make_layout(4), (Wider(4, 1), cute.make_swizzle(1, 2, 3)))


def shaped(shape: cute.Shape, n: cute.Constexpr):
    return cute.size(shape) + n


def test_what_compiling_remembers_of_objects_is_no_part_of_a_key():
    """Another process, which found its other kernels on the disk, asks for this one with objects as they were made."""

    @cute.kernel
    def kernel(x):
        held = More(cute.Int32(3))
        x[0] = cute.size(LAYOUT) + TILES[1][0].doubled() + cute.size(TILES[0]) + held.twice() + shaped((2, 3), 4)

    def key():
        return disk_cache.key_of(kernel.py_func, (ARRAY,), {}, "sm_90a", "kernel").text

    with config.override(cache=True):
        before = key()
        with config.override(cache=False):
            cute.compile(kernel, (ARRAY,), arch="sm_90a")
        assert before == key() is not None


def test_a_tensor_that_no_pickle_has_is_refused_by_the_compilation_and_not_by_the_key():
    held = cute.runtime.from_dlpack(np.zeros(4, np.float32))

    @cuda.jit
    def kernel(x):
        x[0] = held[0]

    with config.override(cache=True):
        found = disk_cache.key_of(kernel.py_func, (), {}, "sm_90a", "kernel")
    assert found.text is None and "held" in found.why
