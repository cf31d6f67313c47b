# SPDX-License-Identifier: Apache-2.0
"""Arrays, templates and a driver's maps that tests of casting have: no GPU is asked."""

from __future__ import annotations

import ctypes

import pytest

import numba_cute as cute
from numba_cute import runtime
from numba_cute.compiler.host import tensormap
from numba_cute.compiler.host.native import casting, known, templates
from numba_cute.nvgpu import cpasync
from numba_cute.seam.hooks import casting as seam_casting

from .noting import Exporter


class Array(Exporter):
    """An array as torch has it. __dlpack_c_exchange_api__: Exporter's."""

    is_cuda = True

    def __init__(self, data, shape=(64, 64), strides=None, dtype="torch.float32", **more):
        strides = (shape[1], 1) if strides is None else strides
        super().__init__(data, shape, strides, **more)
        self.viewed = self.shape, self.strides
        self.shape, self._strides, self._data, self.dtype = shape, strides, data, dtype

    def data_ptr(self):
        return self._data

    def stride(self):
        return self._strides


class Host(Array):
    """An array in the host's memory."""

    is_cuda = False


@pytest.fixture
def casts(monkeypatch):
    """Templates of their own, and what Python was asked to make."""
    before = [(x, dict(vars(x))) for x in (seam_casting.CASTING, *seam_casting.FUNCTIONS)]
    told = list(seam_casting._told)
    monkeypatch.setattr(known, "templates", known.templates.__wrapped__)
    made = known.templates()
    made.asked, made.over = [], runtime._over.templates
    taken = made._derived, made.over._slowly

    def derived(function, of, *args):
        made.asked.append(function)
        return taken[0](function, of, *args)

    def array(*args):
        made.asked.append(len(args))
        return taken[1](*args)

    made.kept = array, derived
    made._state[casting.SLOW_DERIVED // 8] = id(derived)
    made.over.words[casting.SLOW_FUNCTION // 8] = id(array)
    yield made
    for x, held in before:
        vars(x).clear()
        vars(x).update(held)
    seam_casting._told[:] = told


def python_only(f):
    """What a function gives where nothing is cast."""
    held = dict(vars(seam_casting.CASTING)), runtime._over.cast
    vars(seam_casting.CASTING).update(dict.fromkeys(held[0], seam_casting.run))
    runtime._over.cast = runtime._over.function
    try:
        return f()
    finally:
        vars(seam_casting.CASTING).update(held[0])
        runtime._over.cast = held[1]


OP, TILE = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((32, 32), stride=(32, 1))


def atom_of(t, op=OP, tile=TILE, tiler=(32, 32), **more):
    return cpasync.make_tiled_tma_atom(op, t, tile, tiler, **more)


def fields(x):
    """All that an object is made of, as texts and numbers."""
    if hasattr(x, "__dataclass_fields__"):
        return type(x), {n: fields(getattr(x, n)) for n in x.__dataclass_fields__}
    if isinstance(x, cute.dtypes.Scalar):
        more = [fields(getattr(x, n, None)) for n in ("owner", "memory")]
        return type(x), x.dtype, x.value, x.divisor, more
    return id(x) if isinstance(x, Array) else x


class Driver:
    """The driver's function that changes the address of a tensor map; a map's first word is its address."""

    def __init__(self):
        self.calls, self.result = [], 0
        self.kept = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(self.replace)
        self.address = ctypes.cast(self.kept, ctypes.c_void_p).value

    def replace(self, at, address):
        assert at % 64 == 0
        self.calls.append(address)
        if not self.result:
            ctypes.c_int64.from_address(at).value = address
        return self.result


@pytest.fixture
def maps(monkeypatch):
    made = Driver()
    made.encoded = []

    def encode(record):
        made.encoded.append(record)
        return int(record.address).to_bytes(8, "little") + b"m" * 120

    monkeypatch.setattr(tensormap, "encode", encode)
    monkeypatch.setattr(templates, "replacing", lambda: made.address)
    return made


class Noting:
    """A function that notes whether it gave anything."""

    def __init__(self, function):
        self.function, self.gave = function, []

    def __call__(self, *args, **named):
        made = self.function(*args, **named)
        self.gave.append(made is not None)
        return made
