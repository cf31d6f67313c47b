# SPDX-License-Identifier: Apache-2.0
"""torch without a GPU: what a program puts on "cuda" lies in the host's memory while `on_cpu` lasts, so that a simulated
kernel finds it there."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..isa.form.targets import named
from ..seam import CuteError

_CPU = torch.device("cpu")


def _is_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


class _OnHost(TorchFunctionMode):
    """Names of a GPU are those of the CPU; a copy to or from it is a copy."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            return _copied(args[0])
        moved = any(map(_is_cuda, (*args, *kwargs.values()))) or (
            func is torch.Tensor.to and any(_names_host(x) for x in (*args[1:], *kwargs.values()))
        )
        if "device" in kwargs and type(kwargs["device"]) is int:
            kwargs["device"] = _CPU
        args = tuple(_CPU if _is_cuda(a) else a for a in args)
        kwargs = {n: _CPU if _is_cuda(v) else v for n, v in kwargs.items() if n != "pin_memory"}
        made = func(*args, **kwargs)
        if moved and args and made is args[0] and isinstance(made, torch.Tensor):
            return _copied(made)
        return made


def _names_host(value: Any) -> bool:
    return value == "cpu" if isinstance(value, str) else isinstance(value, torch.device) and value.type == "cpu"


def _copied(t: torch.Tensor) -> torch.Tensor:
    """A copy with the strides of a tensor."""
    return t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)


class _Stream:
    """A stream: all that is simulated runs in order."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def synchronize(self) -> None:
        """Do nothing: all is done."""

    def wait_stream(self, _: Any) -> None:
        """Do nothing: all is done."""

    wait_event = record_event = wait_stream

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Event:
    """An event: what came before it is done."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def record(self, stream: Any = None) -> None:
        """Do nothing: all is done."""

    wait = record

    def synchronize(self) -> None:
        """Do nothing: all is done."""

    def query(self) -> bool:
        """Return True: all is done."""
        return True

    def elapsed_time(self, _: Any) -> float:
        """Return NaN: the time of a simulation is no kernel's."""
        return float("nan")


def _no_graph(*_: Any, **__: Any) -> Any:
    raise CuteError("torch.cuda.CUDAGraph: a graph is launched by a GPU, and this run is simulated")


def _replacements(arch: str) -> dict[str, Any]:
    """What stands for the functions of torch.cuda, for a target."""
    target = named(arch)
    digits = target.name.removeprefix("sm_").rstrip("af")
    capability = int(digits[:-1]), int(digits[-1])
    product = target.products[0] if target.products else None

    def properties(_: Any = None) -> Any:
        return types.SimpleNamespace(
            name=product.name if product else target.name, major=capability[0], minor=capability[1],
            multi_processor_count=product.sms if product else 1, total_memory=1 << 36,
            L2_cache_size=product.l2 if product else 0,
        )  # fmt: skip

    stream = _Stream()
    return {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "init": lambda: None,
        "set_device": lambda _: None, "synchronize": lambda _=None: None, "empty_cache": lambda: None,
        "current_stream": lambda _=None: stream, "default_stream": lambda _=None: stream, "Stream": _Stream,
        "ExternalStream": _Stream, "stream": lambda _: nullcontext(), "Event": _Event, "CUDAGraph": _no_graph,
        "graph": _no_graph, "get_device_capability": lambda _=None: capability, "get_device_properties": properties,
        "get_device_name": lambda _=None: properties().name, "manual_seed": torch.manual_seed,
        "manual_seed_all": torch.manual_seed,
    }  # fmt: skip


@contextmanager
def on_cpu(arch: str) -> Iterator[None]:
    """Have torch's "cuda" be the host's memory, and `torch.cuda` answer for a GPU of a target.

    arch: the target, as "sm_90a". A copy to or from the GPU is a copy, and `.device` of what is on it says "cpu".
    """
    instead = _replacements(arch)
    before = {name: getattr(torch.cuda, name) for name in instead}
    default = torch.get_default_device()
    try:
        for name, value in instead.items():
            setattr(torch.cuda, name, value)
        with _OnHost():
            yield
    finally:
        for name, value in before.items():
            setattr(torch.cuda, name, value)
        torch.set_default_device(default)
