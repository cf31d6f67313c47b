# SPDX-License-Identifier: Apache-2.0
"""A GPU that is none, on which torch's tensors of the CPU lie: entries plan, find or compile their kernels, and launch
as on a real one, up to the driver. (tests/launches/gpu.py has one for kernels that are not compiled.) For a process of
its own: operators stay registered with torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numba.cuda
import pytest
import torch
from numba.cuda import codegen, dispatcher
from numba.cuda.cudadrv import devicearray, devices, driver as cuda_driver

from numba_cute import config, torch_ops, utils
from numba_cute.compiler.host import arguments, functions, tensormap
from numba_cute.compiler.host.native import plans, templates
from numba_cute.seam.hooks.driver import DRIVER

from ..launches import gpu

SMS = 132
DEVICE = torch.device("cuda", 0)


class Gpu(gpu.GPU):
    """What was launched, of kernels that are compiled."""

    def _launch(self, setting, handle, parameters, extra):
        self.seen.append(handle)
        return 0


MAKES = ("arange", "as_tensor", "empty", "empty_strided", "full", "ones", "tensor", "zeros")


def _on_the_cpu(make: Any) -> Any:
    """Make a function of torch's that makes on the CPU what it is to make on the pretended GPU."""

    def made(*args: Any, **named: Any) -> Any:
        return make(*args, **{n: x for n, x in named.items() if n != "device"})

    return made


def _view(array: Any, *_: Any, **__: Any) -> Any:
    """What Numba asks of an array on a GPU."""
    layout = SimpleNamespace(strides_in_bytes=tuple(s * array.element_size() for s in array.stride()))
    said = {"size": array.numel(), "dtype": SimpleNamespace(itemsize=array.element_size()), "_layout": layout}
    return SimpleNamespace(ptr=array.data_ptr(), shape=tuple(array.shape), **said), False


def _code(library: Any) -> Any:
    """What Numba loads of a kernel: it is assembled, or comes from the disk."""
    library.get_cubin()
    return SimpleNamespace(handle=1000, name="kernel", attrs=SimpleNamespace(shared=0), module=None)


@contextlib.contextmanager
def pretended(capability: tuple[int, int] = (9, 0)) -> Iterator[Gpu]:
    """Launch on a GPU that is none, on which all of torch's tensors lie."""
    made = Gpu()
    device = SimpleNamespace(id=0, compute_capability=capability, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=227 * 1024)
    context = SimpleNamespace(handle=gpu.CONTEXT, device=device)
    calls = {n: lambda *_: 0 for n in ("cuCtxGetCurrent", "cuKernelSetAttribute", "cuCtxGetDevice")}
    major, minor = capability
    properties = SimpleNamespace(
        multi_processor_count=SMS, name="NVIDIA H200", L2_cache_size=50 << 20, major=major, minor=minor
    )  # fmt: skip
    of_torch = {
        "get_device_capability": lambda *_: capability, "get_device_properties": lambda *_: properties,
        "current_stream": lambda *_: SimpleNamespace(cuda_stream=0, device=DEVICE), "current_device": lambda: 0,
        "is_available": lambda: True, "is_current_stream_capturing": lambda: False, "is_initialized": lambda: True,
        "device": lambda *_: contextlib.nullcontext(),
    }  # fmt: skip
    cuda_driver._have_nvjitlink()  # which loads what torch's own libraries have loaded with a context
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # what torch does on a GPU takes no processor
    with pytest.MonkeyPatch.context() as patch:
        for holder in (numba.cuda, numba.cuda.api, numba.cuda.compiler, dispatcher):
            patch.setattr(holder, "get_current_device", lambda: device, raising=False)
        patch.setattr(devices, "get_context", lambda *_: context)
        patch.setattr(cuda_driver, "driver", SimpleNamespace(**calls))
        patch.setattr(functions.driver, "driver", cuda_driver.driver)
        patch.setattr(devicearray, "_to_strided_memory_view", _view)
        patch.setattr(codegen.CUDACodeLibrary, "get_cufunc", _code)
        patch.setattr(dispatcher._Kernel, "bind", lambda kernel: kernel._codelibrary.get_cubin())
        patch.setattr(functions, "native_driver", lambda: made.driver)
        patch.setattr(plans, "driver", lambda: made.driver)
        patch.setattr(plans, "current_context", lambda: gpu.CONTEXT)
        patch.setattr(tensormap, "encode", gpu.encode)
        patch.setattr(arguments, "_maps", {})
        patch.setattr(templates, "replacing", lambda: gpu.REPLACING.address)
        patch.setattr(DRIVER, "known", lambda address: True)
        patch.setattr(torch_ops, "_simulated", lambda name, operator: operator)
        patch.setattr(utils.HardwareInfo, "__init__", lambda self, device_id=0: setattr(self, "target", None))
        patch.setattr(utils.HardwareInfo, "get_device_multiprocessor_count", lambda self: SMS)
        patch.setattr(utils.HardwareInfo, "get_max_active_clusters", lambda self, ctas: SMS // ctas)
        patch.setattr(utils.HardwareInfo, "get_l2_cache_size_in_bytes", lambda self: 50 << 20)
        for name in MAKES:
            patch.setattr(torch, name, _on_the_cpu(getattr(torch, name)))
        for name, said in of_torch.items():
            patch.setattr(torch.cuda, name, said)
        patch.setattr(torch.Tensor, "is_cuda", property(lambda t: True))
        patch.setattr(torch.Tensor, "device", property(lambda t: DEVICE))
        with config.override(cache=True):
            yield made
    torch.set_num_threads(threads)
