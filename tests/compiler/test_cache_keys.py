# SPDX-License-Identifier: Apache-2.0
"""What a kernel that is kept on disk may reach: annotations that are unions, streams, facts of the target."""

from __future__ import annotations

import pytest
from cuda.bindings import driver
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
