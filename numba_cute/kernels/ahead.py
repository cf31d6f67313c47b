# SPDX-License-Identifier: Apache-2.0
"""`warmup`: compile what calls of the entries will need, before they are made; `judge`: of one call, just before."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute import CuteError, config
from numba_cute.isa.form.targets import answering_for
from numba_cute.kernels import entry
from numba_cute.seam.hooks.engines import COMPILER
from numba_cute.seam.marks.launches import launching

__all__ = ["Warm", "judge", "warmup"]


class Warm(NamedTuple):
    """A kernel that `warmup` has compiled. kernel: its function's name. call: the first call that needs it: its shapes,
    or None where there was a function. calls: how many need it. seconds: that compiling took, next to nothing where the
    disk cache had it. compiled: what `cute.compile` gives: registers, shared memory, PTX, notes."""

    kernel: str
    call: Any
    calls: int
    seconds: float
    compiled: Any


def warmup(
    what: str | Callable[[], Any], shapes: Sequence[Any] = (), *, dtypes: str | Sequence[str] = "bfloat16",
    grad: bool = False, arch: str | None = None, **options: Any,
) -> list[Warm]:  # fmt: skip
    """Compile what calls of an entry will need, to the disk cache, where the first such call of any process finds it.

        kernels.warmup("softmax", [((range(1, 4096, 8), 1000),)], grad=True)
        kernels.warmup("matmul", [((m, 4096), (4096, 4096)) for m in (1, 16, 512)], out_dtype=torch.float32)
        kernels.warmup(lambda: kernels.mixed_gemm(x, weights))

    what: an entry's name, or a function that calls entries. Calls are planned as they will be, with tensors of the CPU;
    nothing is run or written, and no GPU is needed. shapes: of each call a tuple of shapes, one for each of the entry's
    tensors, which are dense. An extent may be a range: each of it is planned, all combinations of several. dtypes: the
    elements' type of all tensors, or one for each. grad: whether gradients of tensors of floats will be asked for too.
    arch: the target; by default that of the current GPU, and without one sm_90a. options: the entry's other arguments,
    by name. Tensors that are not dense may plan otherwise, and so does a GPU of the same target with another number of
    SMs: these compile when they come.

    Gives what was compiled, each kernel once. CuteError: what the entry does not take; an entry without shapes; the
    disk cache is off.

    >>> import torch
    >>> made = cute.kernels.warmup("softmax", [((range(1, 5), 64),)], dtypes="float16", arch="sm_90a")
    >>> [(warm.kernel, warm.calls) for warm in made]
    [('softmax_forward', 4)]
    """
    torch = entry.pytorch()
    if not config.current().cache:
        raise CuteError("warmup: the disk cache is off (NUMBA_CUTE_CACHE=0), so that no call finds what it compiles")
    here = torch.cuda.is_available()
    sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count if here else None
    arch = arch or (entry.target_of(torch.cuda.current_device()) if here else "sm_90a")
    found: dict[str, Warm] = {}
    with answering_for(arch, sms):
        for call, run in _calls(what, shapes, dtypes, grad, options):
            with launching(functools.partial(_compile, found, arch, call)):
                run()
    return list(found.values())


def _compile(
    found: dict[str, Warm], arch: str, call: Any, kernel: Any, args: tuple[Any, ...], launch: dict[str, Any]
) -> None:
    """Compile a kernel in place of its launch, and note it."""
    began = perf_counter()
    made = cute.compile(kernel, args, arch=arch)
    name = getattr(kernel, "py_func", kernel).__name__
    before = found.get(made.ptx) or Warm(name, call, 0, perf_counter() - began, made)
    found[made.ptx] = before._replace(calls=before.calls + 1)


def judge(call: Callable[[], Any]) -> bool:
    """Compile what a call launches, and launch nothing: functions of the caller's are refused so before anything is
    written. In a simulation the front end judges them, as it does at launches. Gives True."""
    held: list[Any] = []
    target = entry.simulated()
    with launching(lambda *launch: held.append(launch)):
        call()
    for kernel, args, launch in held:
        if target is None:
            cute.launch(kernel, **launch).prepare(*args)
        else:
            COMPILER.check(kernel, args, target.name)
    return True


def _calls(what: Any, shapes: Any, dtypes: Any, grad: bool, options: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield what tells of each call, and what makes it."""
    if not isinstance(what, str):
        if shapes or options:
            raise CuteError("warmup: a function is called without arguments: leave out shapes and options")
        yield None, what
        return
    from numba_cute import kernels

    if what not in kernels.__all__ or what == "warmup":
        others = ", ".join(n for n in kernels.__all__ if n != "warmup")
        raise CuteError(f"warmup: there is no entry {what!r}: give one of {others}")
    if not shapes:
        raise CuteError(
            f"warmup: no calls of {what} are named: give shapes, for each call a tuple with the shape of each of its "
            "tensors, as [((4096, 4096), (4096, 512))], or a function that makes the call"
        )
    for given in shapes:
        for some in itertools.product(*(_each(shape) for shape in given)):
            yield some, functools.partial(_call, getattr(kernels, what), some, _types(dtypes, len(some)), grad, options)


def _each(shape: Any) -> Iterator[tuple[int, ...]]:
    """Yield the shapes that one with ranges stands for."""
    if not isinstance(shape, (tuple, list)) or not all(isinstance(n, (int, range)) for n in shape):
        raise CuteError(f"warmup: shape {shape!r} must be a tuple of ints and ranges; a call has one for each tensor")
    yield from itertools.product(*(n if isinstance(n, range) else (n,) for n in shape))


def _types(dtypes: Any, count: int) -> list[Any]:
    """Give the element type of each of `count` tensors."""
    names = [dtypes] * count if not isinstance(dtypes, (tuple, list)) else list(dtypes)
    if len(names) != count:
        raise CuteError(
            f"warmup: {len(names)} dtypes, and a call has {count} tensors: give one for all, or one for each"
        )
    torch = entry.pytorch()
    types = [getattr(torch, str(n).removeprefix("torch."), None) for n in names]
    for name, found in zip(names, types):
        if not isinstance(found, torch.dtype):
            raise CuteError(f'warmup: dtypes: {name!r} is not an element type of torch\'s: give "bfloat16" or its like')
    return types


def _call(function: Any, shapes: Any, types: Any, grad: bool, options: dict[str, Any]) -> None:
    """Call an entry on tensors of which nothing is known but their shapes and types."""
    torch = entry.pytorch()
    tensors = [torch.zeros(s, dtype=t) for s, t in zip(shapes, types)]
    for t in tensors:
        t.requires_grad_(grad and t.is_floating_point())
    made = function(*tensors, **options)
    results = [r for r in (made if isinstance(made, tuple) else (made,)) if r.requires_grad]
    if results and grad:
        torch.autograd.backward(results, [torch.ones_like(r) for r in results])
