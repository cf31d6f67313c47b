# SPDX-License-Identifier: Apache-2.0
"""Shorten the error of a failed launch: the user's frames alone, and without a GPU, how to go on; where an earlier
kernel ended as another rank did not come, that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as bindings

from ...seam import CuteError
from ...seam.ground.folding import folded
from ...seam.hooks import watch
from ..ground.numba import CudaAPIError, CudaSupportError
from ..ground.ownership import owns

_NO_DEVICE = int(bindings.CUresult.CUDA_ERROR_NO_DEVICE)


class NoGPU(CuteError, CudaSupportError):
    """There is no GPU to launch a kernel on. What catches Numba's error of it catches this one too."""


NoGPU.__name__ = NoGPU.__qualname__ = CuteError.__name__  # to users it is one
NoGPU.__module__ = CuteError.__module__


def no_gpu(e: BaseException) -> str:
    """Return why there is no GPU, in a few words, if an exception says that there is none; else ""."""
    if isinstance(e, NoGPU):
        return ""
    if isinstance(e, CudaSupportError):
        said = [line.strip(" :") for line in str(e).splitlines()]
        return next((line.rstrip(".") for line in said if line and "Error at driver init" not in line), "no driver")
    if isinstance(e, CudaAPIError) and e.code == _NO_DEVICE:
        return "the driver finds none"
    return ""


HOW_ON = (
    "cute.simulate({0})[grid, block](…) runs it on the CPU, `with cute.simulation():` a whole program, and "
    "cute.compile({0}, …) compiles it for any GPU"
)
"""Advice for going on without a GPU. {0}: the kernel."""


def _is_ours(e: Exception, py_func: Any) -> bool:
    return isinstance(e, CuteError) or owns(py_func, ())


def _error_of(e: Exception, py_func: Any) -> Exception:
    """Return the error that a launch raises for an exception: that another rank did not come, if a kernel said so
    before it ended; of a kernel of this library where there is no GPU, its own; else the exception."""
    late = watch.found() if isinstance(e, CudaAPIError) else None
    if late is not None:
        late.__cause__ = e
        return late
    why = no_gpu(e) if _is_ours(e, py_func) else ""
    if not why:
        return e
    name = getattr(py_func, "__name__", "kernel")
    return NoGPU(f"kernel {name}: there is no GPU to launch it on ({why}): {HOW_ON.format(name)}")


class _Folding:
    """Fold an error that a launch raises, in the frame that does so; a plain kernel's loses that frame alone, which
    stands in the traceback twice: where it was caught, and where it is raised."""

    def __init__(self, py_func: Any) -> None:
        self.py_func = py_func

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if _is_ours(error, self.py_func):
            folded(error)
        elif trace is not None and trace.tb_next is not None:
            error.__traceback__ = trace.tb_next.tb_next


def folding_launches(of: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make of a call that launches a kernel one whose errors are folded, and that says how to go on without a GPU. of:
    gives the kernel's function, of the object that is called."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn, assigned=("__name__", "__qualname__", "__doc__"))
        def call(self: Any, *args: Any, **named: Any) -> Any:
            try:
                return fn(self, *args, **named)
            except Exception as e:
                with _Folding(of(self)):
                    raise _error_of(e, of(self))  # noqa: B904 - it is `e`, or stands for it

        del call.__wrapped__  # a patch is known by the source that stands in its place
        return call

    return decorate


def launching(_: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the call of Numba's launch configurations one that does so; it does what Numba's does, in no more
    time."""

    def __call__(self: Any, *args: Any) -> Any:
        try:
            return self.dispatcher.call(args, self)
        except Exception as e:
            with _Folding(self.dispatcher.py_func):
                raise _error_of(e, self.dispatcher.py_func)  # noqa: B904

    return __call__
