# SPDX-License-Identifier: Apache-2.0
"""A CUDA driver that notes what it is given, and what launches in machine code are tested with: no GPU is asked."""

from __future__ import annotations

import ctypes
import struct

import pytest
from numba.cuda import types

import numba_cute as cute
from numba_cute.compiler.bridge.typeofs import type_of_argument
from numba_cute.compiler.host.kernel import CuteKernel
from numba_cute.compiler.host.native import arrays, driver, packing, plans, sites
from numba_cute.compiler.host.native.options import PROGRAMMATIC_EVENT, Options

GPU, OTHER_GPU = 7, 9
"""Contexts."""


class Launched:
    """The driver's functions, and what they were given. sizes: bytes of each parameter of the kernel."""

    def __init__(self):
        self.seen, self.sizes, self.result = [], [], 0
        self.current, self.calls = GPU, []
        word, c_int = ctypes.c_void_p, ctypes.c_int
        kinds = [(self.launch, 4), (self.get, 1), (self.push, 1), (self.pop, 1)]
        self.kept = [ctypes.CFUNCTYPE(c_int, *[word] * n)(f) for f, n in kinds]
        self.driver = driver.Driver(*(ctypes.cast(f, word).value for f in self.kept))

    def launch(self, config, kernel, parameters, extra):
        found = packing.Config.from_address(config)
        pointers = (ctypes.c_void_p * len(self.sizes)).from_address(parameters)
        values = [ctypes.string_at(p, n) for p, n in zip(pointers, self.sizes)]
        attributes = [
            (a.id, tuple(a.value.words[: 4 if a.id == PROGRAMMATIC_EVENT else 3]))
            for a in (packing.Attribute * found.count).from_address(found.attributes)
        ]  # fmt: skip
        self.seen.append((tuple(found.grid), tuple(found.block), found.smem, found.stream or 0, attributes, values))
        self.aligned = all(p % packing.MAP == 0 for p, n in zip(pointers, self.sizes) if n > packing.MAP)
        self.context, self.kernel = self.current, kernel
        return self.result

    def get(self, place):
        ctypes.c_void_p.from_address(place).value = self.current
        return 0

    def push(self, context):
        self.calls.append(context)
        self.before, self.current = self.current, context
        return 0

    def pop(self, place):
        self.calls.append("pop")
        self.current = self.before
        return 0


@pytest.fixture
def launches(monkeypatch):
    made = Launched()
    monkeypatch.setattr(plans, "driver", lambda: made.driver)
    monkeypatch.setattr(plans, "current_context", lambda: GPU)
    return made


class Slow:
    """What is called where no plan suits."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **named):
        self.calls.append((args, named))


def kernel_of(args, argument_types=None):
    """A compiled kernel, as far as a launch reads it."""
    types_of = tuple(type_of_argument(a) for a in args) if argument_types is None else tuple(argument_types)
    fields = {"argument_types": types_of, "debug": False, "extensions": [], "cooperative": False}
    return CuteKernel.__new__(type("Kernel", (CuteKernel,), fields))


def planned(launches, given, args=None, *, stream=5, cluster=None, pdl=False, argument_types=None, changed=None):
    """A site with a plan of a launch."""
    args = given if args is None else args
    kernel = kernel_of(args, argument_types)
    setting = plans.Setting(kernel, 1234, (6, 2, 1), (32, 1, 1), 48, stream, cluster, Options(pdl=pdl))
    made = plans.plan(setting, given, args, changed or {})
    if made is None:
        return None
    slow = Slow()
    site = sites.Site(slow)
    site.add(made)
    site.slow, site.setting = slow, setting
    begins = list(made._offsets[: made._count])
    ends = [*begins[1:], len(made._template)]
    launches.sizes[:] = [e - b for b, e in zip(begins, ends)]
    return site


def packed(launches, site, *args):
    """The words of the parameters that a launch gives the driver."""
    launches.seen.clear()
    assert site.call(*args) is None
    assert not site.slow.calls, "no plan suited"
    ((*_, values),) = launches.seen
    return values


def tensor_at(address, shape=(4,), dtype=cute.Float32):
    pointer = cute.make_ptr(dtype, address, cute.AddressSpace.gmem)
    return cute.make_tensor(pointer, cute.make_layout(shape))


class Exporter:
    """Arrays of a library with DLPack's exchange functions."""

    def __init__(self, data, shape, strides, device=(2, 0), dtype=(2, 32, 1)):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides)
        self.view = arrays.DLTensor(data, *device, len(shape), *dtype, self.shape, self.strides, 0)

    def __dlpack_device__(self):
        return self.view.device_type, self.view.device_id


STREAM = [0x77]


def _view(obj, out):
    ctypes.memmove(out, ctypes.addressof(obj.view), ctypes.sizeof(arrays.DLTensor))
    return 0


def _stream(kind, device, out):
    ctypes.c_void_p.from_address(out).value = STREAM[0] + device
    return 0


_KEPT = [
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(_view),
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_stream),
]
_FUNCTIONS = [ctypes.cast(f, ctypes.c_void_p).value for f in _KEPT]
_API = arrays._Exchange(1, 3, None, None, None, None, *_FUNCTIONS)
_NAME = b"dlpack_exchange_api"
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Exporter.__dlpack_c_exchange_api__ = _new(ctypes.addressof(_API), _NAME, None)


def array_type(dims, layout="C", dtype=types.float32):
    return types.Array(dtype, dims, layout)


def words_of(values):
    return [struct.unpack_from("<q", v)[0] for v in values]
