# SPDX-License-Identifier: Apache-2.0
"""torch without a GPU: what a program puts on "cuda" lies in the host's memory while `on_cpu` lasts, so that a
simulated kernel finds it there."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..isa.form.targets import asked, named
from ..seam.ground.replaced import replaced
from ..seam.hooks.driver import DRIVER
from .runs import RUN
from .scaled import is_block_scaled, scaled_mm

_CPU = torch.device("cpu")


def _is_cuda(value: Any) -> bool:
    if isinstance(value, torch.device):
        return bool(value.type == "cuda")
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


_ON_GPU = "_numba_cute_on_gpu"
"""Set on a tensor that stands for one on the GPU: what is made of it does so too."""
_DEVICE, _IS_CUDA = torch.Tensor.device.__get__, torch.Tensor.is_cuda.__get__


class _OnHost(TorchFunctionMode):  # type: ignore[misc]  # torch need not be there
    """A tensor on a GPU is one of the CPU that is marked; a copy to or from the GPU is a copy."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        if func in (_DEVICE, _IS_CUDA):
            marked = _marked(args[0])
            return marked if func is _IS_CUDA else torch.device("cuda", 0) if marked else func(args[0])
        to_gpu = func is torch.Tensor.cuda or any(map(_is_cuda, (*args, *named.values())))
        if type(named.get("device")) is int:
            to_gpu, named["device"] = True, _CPU
        to_host = not to_gpu and (func is torch.Tensor.cpu or any(map(_is_host, (*args[1:], *named.values()))))
        named = {n: _CPU if _is_cuda(v) else v for n, v in named.items() if n != "pin_memory"}
        args = tuple(_CPU if _is_cuda(a) else a for a in args)
        given = list(_tensors((args, named)))
        came_marked, known = any(map(_marked, given)), {t.untyped_storage()._cdata for t in given}
        if func is torch._scaled_mm and is_block_scaled(args, named):
            func = scaled_mm
        made = args[0] if func is torch.Tensor.cuda else func(*args, **named)
        goes_marked = to_gpu or (came_marked and not to_host)
        if isinstance(made, torch.Tensor) and args and made is args[0] and goes_marked != _marked(made):
            made = made.detach().clone(memory_format=torch.preserve_format).requires_grad_(made.requires_grad)
        for t in _tensors(made):
            setattr(t, _ON_GPU, goes_marked)
            if goes_marked and t.untyped_storage()._cdata not in known:
                _align(t)
            if goes_marked:
                ON_GPU.append(weakref.ref(t))
        if len(ON_GPU) > _MOST_NOTED:
            _forget()
        return made


_MOST_NOTED = 10_000
ON_GPU: list[weakref.ref[torch.Tensor]] = []
"""The tensors whose memory stands for a GPU's."""


def _held() -> Iterator[tuple[int, int, str, Any]]:
    """Yield the memory that stands for a GPU's (see `Driver`): what its tensors span, those that overlap as one."""
    spans = [(t.data_ptr(), _span(t), t) for t in (r() for r in ON_GPU) if t is not None and t.numel()]
    end = 0
    held: tuple[int, int, str, Any] | None = None
    for first, nbytes, t in sorted(spans, key=lambda s: (s[0], -s[1])):
        if held is not None and first < end:
            end = max(end, first + nbytes)
            held = held[0], end - held[0], *held[2:]
            continue
        if held is not None:
            yield held
        end, held = first + nbytes, (first, nbytes, f"a tensor of {tuple(t.shape)} {t.dtype}", t)
    if held is not None:
        yield held


def _span(t: torch.Tensor) -> int:
    """The bytes from a tensor's first element to its last."""
    return int((sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1) * t.itemsize)


def _forget() -> None:
    """Forget tensors that are gone."""
    ON_GPU[:] = [r for r in ON_GPU if r() is not None]


ALIGNMENT = 256
"""Bytes at whose multiples a GPU's allocations begin."""


def _align(t: torch.Tensor) -> None:
    """Move a new tensor's memory to where a GPU's would begin."""
    storage = t.untyped_storage()
    if not storage.nbytes() or storage.data_ptr() % ALIGNMENT == 0 or t.requires_grad:
        return
    wide = torch.empty(storage.nbytes() + ALIGNMENT, dtype=torch.uint8)
    first = -wide.data_ptr() % ALIGNMENT
    held = wide[first : first + storage.nbytes()]
    held.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
    offset = first // t.itemsize + t.storage_offset()
    t.set_(wide.untyped_storage(), offset, t.shape, t.stride())


def _marked(value: Any) -> bool:
    return getattr(value, _ON_GPU, False) is True


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, to any depth."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))


def _is_host(value: Any) -> bool:
    return value == "cpu" if isinstance(value, str) else isinstance(value, torch.device) and value.type == "cpu"


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

    cuda_event = 1

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
        """Return NaN: the time of a simulation is not a kernel's."""
        return float("nan")


class _Graph:
    """A graph: the launches while it was captured. What torch itself did then was done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.launches: list[Any] = []

    def replay(self) -> None:
        """Launch them."""
        for launch in self.launches:
            launch()

    def reset(self) -> None:
        """Forget them."""
        self.launches = []


class _Profile(torch.profiler.profile):  # type: ignore[misc]  # torch need not be there
    """A profile of what the CPU does: the GPU does nothing."""

    def __init__(self, *args: Any, activities: Any = None, **named: Any) -> None:
        super().__init__(*args, activities=[torch.profiler.ProfilerActivity.CPU], **named)


@contextmanager
def _capturing(graph: _Graph, *_: Any, **__: Any) -> Iterator[None]:
    run = RUN.get()
    assert run is not None
    run.captured = graph.launches
    try:
        yield
    finally:
        run.captured = None


def _replacements(arch: str) -> dict[str, Any]:
    """Return the replacements of torch.cuda's functions, by name, for a target."""
    target = asked() or named(arch)
    digits = target.name.removeprefix("sm_").rstrip("af")
    capability = int(digits[:-1]), int(digits[-1])
    product = target.products[0] if target.products else None

    def properties(_: Any = None) -> Any:
        return types.SimpleNamespace(
            name=product.name if product else target.name, major=capability[0], minor=capability[1],
            multi_processor_count=product.sms if product else 1, total_memory=1 << 36,
            L2_cache_size=product.l2 if product else 0, warp_size=32, is_integrated=0, is_multi_gpu_board=0,
            max_threads_per_multi_processor=target.threads_per_sm, max_threads_per_block=target.threads_per_block,
            regs_per_multiprocessor=target.registers_per_sm, shared_memory_per_block=target.smem_static,
            shared_memory_per_block_optin=target.smem_per_block, shared_memory_per_multiprocessor=target.smem_per_sm,
        )  # fmt: skip

    stream = _Stream()
    return {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "init": lambda: None,
        "set_device": lambda _: None, "synchronize": lambda _=None: None, "empty_cache": lambda: None,
        "current_stream": lambda _=None: stream, "default_stream": lambda _=None: stream, "Stream": _Stream,
        "ExternalStream": _Stream, "stream": lambda _: nullcontext(), "Event": _Event, "CUDAGraph": _Graph,
        "graph": _capturing, "get_device_capability": lambda _=None: capability, "get_device_properties": properties,
        "get_device_name": lambda _=None: properties().name, "manual_seed": lambda _: None,
        "manual_seed_all": lambda _: None,
    }  # fmt: skip


def _compile(model: Any = None, **named: Any) -> Any:
    """Return what `torch.compile` is given: it runs as it is."""
    return model if model is not None else lambda fn: fn


_custom_op = torch.library.custom_op


def _of_any_device(name: str, fn: Any = None, /, **named: Any) -> Any:
    """Define an operation as `torch.library.custom_op`, for tensors of the host too: those stand for a GPU's."""
    named.pop("device_types", None)
    return _custom_op(name, fn, **named)


def _registering(register: Any) -> Any:
    """Return a function of torch's that registers an operation's code for a device, which takes the host's for a
    GPU's."""

    def registered(*given: Any, **named: Any) -> Any:
        return register(*map(_of_host, given), **{n: _of_host(x) for n, x in named.items()})

    return registered


def _of_host(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(map(_of_host, x))
    return {"CUDA": "CPU", "cuda": "cpu"}.get(x, x) if isinstance(x, str) else x


_library = torch.library
_REGISTERING = {name: _registering(getattr(_library, name)) for name in ("impl", "register_kernel")}
_REGISTERING |= {"custom_op": _of_any_device}


@contextmanager
def on_cpu(arch: str) -> Iterator[None]:
    """Have torch's "cuda" be the host's memory, and `torch.cuda` answer for a GPU of a target.

    arch: the target, as "sm_90a". A copy to or from the GPU is a copy, and what is made of a tensor that is on it is
    on it.
    """
    default, drivers = torch.get_default_device(), DRIVER.held

    def held() -> Iterator[tuple[int, int, str, Any]]:
        yield from drivers()
        yield from _held()

    try:
        with (
            replaced(torch.cuda, _replacements(arch)), replaced(torch, {"compile": _compile}),
            replaced(torch.profiler, {"profile": _Profile}),
            replaced(_library, _REGISTERING), replaced(_library.Library, {"impl": _registering(_library.Library.impl)}),
            replaced(DRIVER, {"held": held}), _OnHost(),
        ):  # fmt: skip
            yield
    finally:
        torch.set_default_device(default)
