# SPDX-License-Identifier: Apache-2.0
"""Launches in machine code, with a driver that notes what it is given: no GPU is asked."""

from __future__ import annotations

import ctypes
import enum
import gc
import struct
import threading
import weakref

import numpy as np
import pytest
from numba.cuda import types

import numba_cute as cute
from numba_cute.compiler.host.native import plans, sites, words
from numba_cute.compiler.host.native.language import Code, Foreign, python_api
from numba_cute.seam.hooks import recording
from numba_cute.seam.marks.constexpr import Constexpr
from numba_cute.seam.marks.host_objects import as_argument

from .noting import Exporter, array_type, kernel_of, launches, packed, planned, tensor_at

__all__ = ["launches"]


class Colour(enum.Enum):
    RED = 3


NUMBERS = [
    (7, -8, "<q"), (2.5, -1.0, "<d"), (True, False, "?"), (np.int8(3), np.int8(-4), "<b"),
    (np.uint8(3), np.uint8(200), "<B"), (np.int16(3), np.int16(-300), "<h"), (np.uint16(3), np.uint16(60000), "<H"),
    (np.int32(3), np.int32(-(1 << 31)), "<i"), (np.uint32(3), np.uint32(0xFFFFFFFF), "<I"),
    (np.int64(3), np.int64(-(1 << 63)), "<q"), (np.uint64(3), np.uint64((1 << 64) - 1), "<Q"),
    (np.float32(1.5), np.float32(-1), "<f"), (np.float64(1.5), np.float64(0.1), "<d"),
    (np.float16(1.5), np.float16(2), "<e"), (np.bool_(True), np.bool_(False), "?"),
    (cute.Int32(5), cute.Int32(-6), "<i"), (cute.Uint64(5), cute.Uint64((1 << 64) - 1), "<Q"),
    (cute.Int8(5), cute.Int8(-6), "<b"), (cute.Float32(1.5), cute.Float32(0.1), "<f"),
    (cute.Float64(1.5), cute.Float64(-1.0), "<d"), (cute.Boolean(True), cute.Boolean(False), "?"),
    (cute.Int32(8).assumed(4), cute.Int32(12).assumed(4), "<i"), (1 << 63, (1 << 64) - 1, "<Q"),
]  # fmt: skip


@pytest.mark.parametrize("first, second, form", NUMBERS, ids=[f"{type(a).__name__}_{a}" for a, _, _ in NUMBERS])
def test_numbers(launches, first, second, form):
    site = planned(launches, (first,))
    for n in (first, second, first):
        value = n.value if isinstance(n, cute.dtypes.Scalar) else n
        (data,) = packed(launches, site, n)
        assert struct.unpack_from(form, data)[0] == value


def test_a_number_of_another_type_or_size_goes_the_slow_way(launches):
    for first, others in (
        (7, (1 << 63, True, 2.5, np.int64(3), None, "x")), (2.5, (2, np.float64(2.5))), (True, (1, 0)),
        (np.int32(1), (1, np.int64(1))), (cute.Int32(1), (cute.Int64(1), 1, cute.Int32(8).assumed(4))),
        (1 << 63, (-1, 1 << 64)), (np.float16(1), (np.float32(1),)), (1 + 2j, (1.0,)),
    ):  # fmt: skip
        site = planned(launches, (first,))
        for other in others:
            launches.seen.clear()
            site.call(other)
            assert site.slow.calls.pop()[0] == (other,) and not launches.seen
    site.call()
    site.call(1j, 2)
    site.call(x=1j)
    assert site.slow.calls == [((), {}), ((1j, 2), {}), ((), {"x": 1j})]


def test_numbers_that_the_kernel_is_annotated_with(launches):
    site = planned(launches, (3, 0.1), (cute.Int32(3), cute.Float32(0.1)))
    a, b = packed(launches, site, -5, 2.7)
    assert struct.unpack_from("<i", a)[0] == -5 and struct.unpack_from("<f", b)[0] == np.float32(2.7)
    for other in (1 << 31, -(1 << 31) - 1):  # as the slow way converts them
        site.call(other, 0.5)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_complex_numbers_and_members_are_asked(launches):
    site = planned(launches, (1 + 2j, Colour.RED))
    values = b"".join(packed(launches, site, 3 - 4j, Colour.RED))
    assert struct.unpack_from("<dd", values) == (3.0, -4.0)


def test_tuples_of_tuples(launches):
    site = planned(launches, ((1, (2.5, True)), 3))
    a, b, c, d = packed(launches, site, (4, (5.5, False)), 6)
    assert [struct.unpack_from(f, x)[0] for f, x in zip("qd?q", (a, b, c, d))] == [4, 5.5, False, 6]
    for other in ((4, (5.5,)), (4, 5), [4, (5.5, False)], (4, (5, False))):
        site.call(other, 6)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_static_arguments(launches):
    lay = cute.make_layout((4, 8))
    given = (3, True, lay, cute.Float32, None, len)
    args = (
        Constexpr(3),
        Constexpr(True),
        Constexpr(lay),
        Constexpr(cute.Float32),
        None,
        Constexpr(test_tuples_of_tuples),
    )
    site = planned(launches, (*given[:5], test_tuples_of_tuples), args)
    packed(launches, site, 3, True, cute.make_layout((4, 8)), cute.Float32, None, test_tuples_of_tuples)
    good = (*given[:5], test_tuples_of_tuples)
    for i, other in enumerate((4, 1, cute.make_layout((8, 4)), cute.Float64, 0, test_static_arguments)):
        site.call(*good[:i], other, *good[i + 1 :])
        assert len(site.slow.calls) == 1, i
        site.slow.calls.clear()


@pytest.fixture
def any_memory(monkeypatch):
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: True)


def test_tensors_of_this_library_remember_what_they_are(launches, any_memory):
    site = planned(launches, (tensor_at(0x1000), cute.make_layout((4, cute.Int32(3)))))
    for address, extent in ((0x2000, 5), (0x3000, 6)):
        t, lay = tensor_at(address), cute.make_layout((4, cute.Int32(extent)))
        for _ in range(2):
            at, n = packed(launches, site, t, lay)
            assert struct.unpack_from("<q", at)[0] == address and struct.unpack_from("<i", n)[0] == extent
        assert "_cute_launch" in vars(t)
    for other in (tensor_at(0x1000, (8,)), tensor_at(0x1000, dtype=cute.Float16)):
        site.call(other, lay)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_what_an_object_refuses_to_be_is_said_at_each_launch(launches, monkeypatch):
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: True)
    site = planned(launches, (tensor_at(0x1000),))
    monkeypatch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: False)
    for _ in range(2):
        with pytest.raises(cute.CuteError, match="lies in the host's memory"):
            site.call(tensor_at(0x5000))
    assert not site.slow.calls and not launches.seen


def test_tensor_maps_are_128_bytes_at_multiples_of_64(launches, any_memory, monkeypatch):
    from numba_cute.compiler.host import tensormap
    from numba_cute.nvgpu import cpasync

    encoded = []

    def encode(record):
        encoded.append(record)
        return int(record.address).to_bytes(8, "little") * 16

    monkeypatch.setattr(tensormap, "encode", encode)

    def atom(address):
        tensor = cute.make_tensor(
            cute.make_ptr(cute.Float32, address, cute.AddressSpace.gmem, assumed_align=128),
            cute.make_layout((64, 64), stride=(64, 1)),
        )
        lay = cute.make_layout((32, 32), stride=(32, 1))
        return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, lay, (32, 32))[0]

    site = planned(launches, (3, atom(0x100000)))
    launches.sizes[1] = 128
    for address in (0x200000, 0x300000):
        one = atom(address)
        for _ in range(2):
            n, tensor_map = packed(launches, site, 9, one)
            assert tensor_map == address.to_bytes(8, "little") * 16 and launches.aligned
    assert len(encoded) == 3, "a map is encoded once"


def test_clusters_dependent_launches_grid_and_shared_memory(launches):
    site = planned(launches, (3,), cluster=(2, 1, 1), pdl=True)
    packed(launches, site, 3)
    grid, block, smem, stream, attributes, _ = launches.seen[0]
    assert (grid, block, smem, stream) == ((6, 2, 1), (32, 1, 1), 48, 5) and launches.kernel == 1234
    assert attributes == [(4, (2, 1, 1)), (6, (1, 0, 0))]


def test_what_the_driver_refuses_goes_the_slow_way(launches):
    site = planned(launches, (3,))
    launches.result = 1
    site.call(3)
    assert site.slow.calls == [((3,), {})]


def test_prepared_calls(launches):
    x = Exporter(0x1000, (4,), (1,))
    kernel = kernel_of((1, 2), [types.int64] * 2)
    refused = []
    for stream, want in ((None, 0x77), (5, 5)):
        setting = plans.Setting(kernel, 1234, (1, 1, 1), (32, 1, 1), 0, stream)
        made = plans.packed_for_good(setting, [7, bytes(range(128)), True], (x,))
        call = sites.prepared(made, lambda: refused.append(1))
        launches.sizes[:] = [8, 128, 1]
        for _ in range(2):
            launches.seen.clear()
            assert call() is None
            assert launches.seen[0][3:] == (want, [], [(7).to_bytes(8, "little"), bytes(range(128)), b"\1"])
            assert launches.aligned
    launches.result = 1
    call()
    assert refused == [1]
    gone = weakref.ref(x)
    del x
    assert gone() is not None
    del call, made
    gc.collect()
    assert gone() is None


def test_while_a_timeline_is_recorded_all_goes_the_slow_way(launches):
    site = planned(launches, (3,))
    with recording.recorded(recording.Recorder(1, 1)):
        site.call(3)
    assert len(site.slow.calls) == 1
    site.slow.calls.clear()
    packed(launches, site, 3)


def test_several_plans_and_what_is_forgotten(launches):
    x = Exporter(0x1000, (4,), (1,))
    site = planned(launches, (3,))
    for args, of in (((2.5,), None), ((x,), [array_type(1)])):
        kernel = kernel_of(args, of)
        for _ in range(2):  # one like it is not added
            site.add(plans.plan(plans.Setting(kernel, 1, (1, 1, 1), (1, 1, 1), 0, 5), args, args, {}))
    assert len(site.plans) == 3
    for a in (3, 2.5, x, 4):
        site.call(a)
    assert not site.slow.calls and [p.launched for p in site.plans] == [2, 1, 1]
    site.forget()
    site.call(3)
    assert len(site.slow.calls) == 1


def test_no_argument_is_kept(launches):
    site = planned(launches, (Exporter(0x1000, (4,), (1,)), (1, 2)), argument_types=[
        array_type(1), types.UniTuple(types.int64, 2)])  # fmt: skip
    import sys

    x, pair = Exporter(0x1000, (4,), (1,)), (3, 1 << 40)
    gone, counts = weakref.ref(x), (sys.getrefcount(x), sys.getrefcount(pair), sys.getrefcount(None))
    for _ in range(100):
        site.call(x, pair)
    assert not site.slow.calls
    assert (sys.getrefcount(x), sys.getrefcount(pair)) == counts[:2] and abs(sys.getrefcount(None) - counts[2]) < 50
    del x
    assert gone() is None


def test_a_site_that_nobody_holds_is_gone(launches):
    site = planned(launches, (3,))
    call, plan, slow = site.call, weakref.ref(site.plans[0]), weakref.ref(site.slow)
    del site
    gc.collect()
    call(3)
    assert plan() is not None
    del call
    gc.collect()
    assert plan() is None and slow() is None


def test_threads_launch_through_one_site(launches):
    site = planned(launches, (3,))
    threads = [threading.Thread(target=lambda k=k: [site.call(1000 * k + i) for i in range(200)]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    got = sorted(struct.unpack_from("<q", values[0])[0] for *_, values in launches.seen)
    assert got == sorted(1000 * k + i for k in range(4) for i in range(200)) and not site.slow.calls


def test_host_arrays_and_unknown_objects_have_no_plan(launches):
    kernel = kernel_of((3,), [array_type(1)])
    for a in (np.zeros(4, np.float32), object()):
        assert plans.plan(plans.Setting(kernel, 1, (1,) * 3, (1,) * 3, 0, 5), (a,), (a,), {}) is None
    debugged = kernel_of((3,))
    type(debugged).debug = True
    assert plans.plan(plans.Setting(debugged, 1, (1,) * 3, (1,) * 3, 0, 5), (3,), (3,), {}) is None


def _words_of_its_own(a, b):
    total = 0
    while a and not (total > 20 or b == 3):
        if a == 2 and b:
            a -= 1
            continue
        total += square(a) - (b << 1) + (a > 3)
        a -= 1
        if total == -7:
            break
    return total


def square(x):
    return x * x


def test_the_language_of_words_is_pythons():
    code = Code([_words_of_its_own, square], {"labs": Foreign(python_api("PyLong_FromLongLong"), "i64", "i64")})
    run = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 3)(code.address("_words_of_its_own"))
    for a in range(8):
        for b in range(-3, 6):
            assert run(a, b) == int(_words_of_its_own(a, b)), (a, b)
    assert words.STEP_SIZE == 8 * words.STEP_WORDS


@pytest.mark.parametrize("static", [False, True])
def test_objects_of_the_users_are_held_anew_by_a_plan(launches, static):
    class Setting:
        def __init__(self, n):
            self.n = n

    def as_launched(obj):
        return Constexpr(as_argument(obj)) if static else as_argument(obj)

    setting = Setting(3)
    site = planned(launches, (setting, 7), (as_launched(setting), 7))
    assert struct.unpack_from("<q", packed(launches, site, setting, 5)[-1])[0] == 5
    assert struct.unpack_from("<q", packed(launches, site, Setting(3), 6)[-1])[0] == 6
    setting.n = 4
    launches.seen.clear()
    site.call(setting, 5)  # another kernel
    assert len(site.slow.calls) == 1 and not launches.seen
