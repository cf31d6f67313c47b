# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none, for kernels that are not compiled: it notes, of each launch, which kernel it is of and the bytes
of its parameters."""

from __future__ import annotations

import ctypes
import hashlib
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from numba.cuda import dispatcher, types
from numba.cuda.cudadrv import devices

from numba_cute import config
from numba_cute.compiler.bridge.object_types import Value
from numba_cute.compiler.ground.target import compiling_for
from numba_cute.compiler.host import arguments, functions, tensormap
from numba_cute.compiler.host.kernel import CuteKernel
from numba_cute.compiler.host.native import driver, packing, plans, templates

CONTEXT = 7
ARRAY = 40
"""Bytes of an array's parameters before its extents and strides."""


def sizes_of(ty):
    """The bytes of each parameter that a kernel takes for an argument of a type."""
    if isinstance(ty, Value):
        return [n for t in ty.leaves for n in sizes_of(t)]
    if isinstance(ty, types.BaseTuple):
        return [n for t in ty for n in sizes_of(t)]
    if isinstance(ty, types.Array):
        return [8] * (5 + 2 * ty.ndim)
    if isinstance(ty, types.Complex):
        return [ty.bitwidth // 16] * 2
    if isinstance(ty, types.EnumMember):
        return sizes_of(ty.dtype)
    if type(ty).__name__ == "TensorMapType":
        return [128]
    if isinstance(ty, types.Literal):
        return [1] if isinstance(ty.literal_value, bool) else [8]
    return [ty.bitwidth // 8] if isinstance(ty, (types.Integer, types.Float)) else [1] if ty == types.boolean else [8]


class GPU:
    """What was launched. seen: of each launch its kernel's types, its setting, and the bytes of its parameters."""

    def __init__(self):
        self.seen, self._kernels, self._of = [], {}, {}
        word, c_int = ctypes.c_void_p, ctypes.c_int
        kinds = [(self._launch, 4), (self._current, 1), (lambda context: 1, 1), (lambda place: 1, 1)]
        self._kept = [ctypes.CFUNCTYPE(c_int, *[word] * n)(f) for f, n in kinds]
        self.driver = driver.Driver(*(ctypes.cast(f, word).value for f in self._kept))

    def function_of(self, kernel):
        """The driver's handle of a kernel: one for all kernels of its types."""
        handle = self._kernels.setdefault(kernel.argument_types, 1000 + len(self._kernels))
        self._of[handle] = kernel.argument_types
        return SimpleNamespace(handle=handle, name="kernel", attrs=SimpleNamespace(shared=0), module=None)

    def _launch(self, setting, handle, parameters, extra):
        found = packing.Config.from_address(setting)
        sizes = [n for t in self._of[handle] for n in sizes_of(t)]
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters) if sizes else ()
        values = [ctypes.string_at(p, n) for p, n in zip(pointers, sizes)]
        attributes = [
            (a.id, tuple(a.value.words[:3]))
            for a in (packing.Attribute * found.count).from_address(found.attributes)
        ]  # fmt: skip
        form = tuple(found.grid), tuple(found.block), found.smem, found.stream or 0, attributes
        self.seen.append((handle, form, values))
        return 0

    def _current(self, place):
        ctypes.c_void_p.from_address(place).value = CONTEXT
        return 0


def compiled(self, sig):
    """In the place of compiling: a kernel as far as a launch reads it."""
    argtypes = tuple(self.typeof_pyval(a) if not isinstance(a, types.Type) else a for a in sig)
    if argtypes in self.overloads:
        return self.overloads[argtypes]
    fields = {
        "argument_types": argtypes, "debug": False, "extensions": [], "cooperative": False, "entry_point": None,
        "entry_name": self.py_func.__name__, "launch_config_sensitive": False,
    }  # fmt: skip
    kernel = CuteKernel.__new__(type("Kernel", (CuteKernel,), fields))
    kernel.py_func, kernel._codelibrary = self.py_func, Library(kernel)
    self._insert([t._code for t in argtypes], kernel, cuda=True)
    self.overloads[argtypes] = kernel
    return kernel


class Library:
    """A kernel's code, of which there is none."""

    def __init__(self, kernel):
        self.kernel = kernel

    def get_asm_str(self):
        return ""

    def get_cufunc(self):
        return GPUS[-1].function_of(self.kernel)


GPUS = []


def encode(record):
    """In the place of the driver's encoding of a tensor map: all that it says."""
    told = hashlib.sha256(repr({n: v for n, v in vars(record).items() if n != "address"}).encode()).digest()
    return int(record.address).to_bytes(8, "little") + told.ljust(120, b" ")


class Replacing:
    """The driver's function that changes a tensor map's address."""

    def __init__(self):
        self._kept = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(self._replace)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value

    def _replace(self, at, address):
        ctypes.c_int64.from_address(at).value = address
        return 0


REPLACING = Replacing()


@contextmanager
def a_gpu():
    """Launch on a GPU that is none."""
    made = GPU()
    device = SimpleNamespace(id=0, compute_capability=(9, 0), MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=227 * 1024)
    context = SimpleNamespace(handle=CONTEXT, device=device)
    GPUS.append(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "get_context", lambda *_: context)
        patch.setattr(dispatcher.CUDADispatcher, "compile", compiled)
        patch.setattr(functions, "native_driver", lambda: made.driver)
        patch.setattr(plans, "driver", lambda: made.driver)
        patch.setattr(plans, "current_context", lambda: CONTEXT)
        patch.setattr(tensormap, "encode", encode)
        patch.setattr(arguments, "_maps", {})
        patch.setattr(templates, "replacing", lambda: REPLACING.address)
        patch.setattr("numba_cute.seam.hooks.driver.DRIVER.known", lambda address: True)
        with config.override(cache=False), compiling_for("sm_90a"):
            yield made
    GPUS.pop()
