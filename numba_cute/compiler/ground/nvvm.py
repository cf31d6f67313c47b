# SPDX-License-Identifier: Apache-2.0
"""Stand in for libNVVM while kernels are typed and lowered to be checked, and hear Ctrl-C while it compiles."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from cuda.pathfinder import DynamicLibNotFoundError

from .building import building_kernel, known_block
from .numba_cuda import NvvmSupportError, nvvm
from .tensor_loads import with_waits
from .within import Within


class StandIn:
    """Answer what Numba asks libNVVM when it makes a module: two constants. No libNVVM gets such a module."""

    data_layout: str = nvvm._datalayout

    @staticmethod
    def get_ir_version() -> tuple[int, int, int, int]:
        return 2, 0, 3, 2


_HEARING = 0.2
"""Seconds within which an interrupt is heard."""
LEFT_OUT = Within()
"""While modules are made for the front end alone: libNVVM need not be installed."""


def standing_in(new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make of how Numba finds libNVVM one for which something else stands within `LEFT_OUT`, where it is not
    installed."""

    def found(cls: Any) -> Any:
        if not LEFT_OUT:
            return new(cls)
        try:
            library = new(cls)
            library.get_ir_version()  # what there is of it is loaded
        except (NvvmSupportError, DynamicLibNotFoundError):
            return StandIn
        return library

    return found


def hearing_interrupts(compile: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Make of how Numba has libNVVM compile one that Ctrl-C ends, and whose PTX waits for loads from tensor memory and
    says the shape of a kernel's blocks: the main thread waits for another, which is left to itself then. Python hears
    no signal while it is in a C library."""

    def compiled(self: Any) -> bytes:
        made = _of_one_shape(heard(self)) if building_kernel() else compile(self)
        return with_waits(made.decode()).encode() if b"tcgen05.ld." in made else made

    def heard(self: Any) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            return compile(self)
        result: Future[bytes] = Future()
        threading.Thread(target=_settle, args=(result, compile, self), daemon=True).start()
        while not wait((result,), _HEARING).done:  # the system may give the signal to another thread
            pass
        return result.result()

    return compiled


def _of_one_shape(ptx: bytes) -> bytes:
    """Say in PTX the shape of all of a kernel's blocks, if it is known, in the place of their most threads. libNVVM
    could say it, but computes more again then, as if registers were few: 19 instructions more in a GEMM's loop."""
    block = known_block()
    if block is None:
        return ptx
    return re.sub(rb"^\.maxntid \d+, 1, 1$", b".reqntid %d, %d, %d" % block, ptx, count=1, flags=re.MULTILINE)


def _settle(result: Future[bytes], compile: Callable[[Any], bytes], unit: Any) -> None:
    try:
        result.set_result(compile(unit))
    except BaseException as error:  # raised again by the thread that waits
        result.set_exception(error)
