# SPDX-License-Identifier: Apache-2.0
"""`torch_op`: a launching function as an operator of PyTorch's, which torch.compile, autograd and fake tensors know."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any

from .seam import CuteError
from .seam.marks.constexpr import LAUNCHER

__all__ = ["torch_op"]


def torch_op(
    name: str, *, out: Callable[..., Any] | None = None, mutates: str | Sequence[str] = (),
    backward: Callable[..., Any] | None = None, setup_context: Callable[..., Any] | None = None,
    fake: Callable[..., Any] | None = None, devices: str | Sequence[str] | None = "cuda",
) -> Callable[[Callable[..., Any]], Any]:  # fmt: skip
    """Decorate a function that launches kernels on torch tensors: it becomes an operator, `torch.ops.<name>`, which
    torch.compile takes whole (fullgraph=True), and which works with fake tensors, autograd and CUDA graphs.

    name: "library::operator". The function's parameters are annotated as torch.library asks: torch.Tensor, int, float,
    bool, str, torch.dtype, optionals and lists of them. It launches on torch's current stream
    (`kernel[grid, block, torch.cuda.current_stream()]`), and returns nothing.
    out: makes the results from the operator's arguments, as `lambda x, k: torch.empty_like(x)`, one tensor or a tuple
    of several, or a list, if the function's last parameter is annotated as one (list[torch.Tensor]); the function then
    takes them after its other arguments, in that order, and writes them, and a call of the operator gives them. It is
    all that fake tensors need: the shapes stand there alone. Results are new tensors, which share no memory with
    arguments. mutates: names of the arguments that the function writes.
    backward: `backward(ctx, *gradients)` gives the gradients of the arguments, None for those that have none; its
    `ctx.saved_tensors` are the tensors among the arguments, and `ctx.given` all of them by name, None where a tensor
    stands, unless setup_context, `setup_context(ctx, inputs, output)` as of torch's register_autograd, keeps others.
    fake: what the operator is for fake tensors, in place of `out`. devices: where the function runs; None for anywhere.

    CuteError: no torch, a name without "::", neither out nor mutates, parameters that do not fit, or backward for an
    operator that writes its arguments.

        @cute.torch_op("mine::scale", out=lambda x, factor: torch.empty_like(x))
        def scale(x: torch.Tensor, factor: float, result: torch.Tensor) -> None:
            kernel[grid, block, torch.cuda.current_stream()](x, factor, result)

        y = scale(x, 2.0)

    >>> import torch
    >>> @cute.kernel
    ... def doubled(x, result):
    ...     result[arch.thread_idx()[0]] = 2 * x[arch.thread_idx()[0]]
    >>> @cute.torch_op("docs::double", out=lambda x: torch.empty_like(x), devices=None)
    ... def double(x: torch.Tensor, result: torch.Tensor) -> None:
    ...     doubled[1, 4](x, result)
    >>> with cute.simulation():
    ...     y = double(torch.ones(4))
    >>> y
    tensor([2., 2., 2., 2.])
    """
    torch = _torch()
    if not isinstance(name, str) or not re.fullmatch(r"\w+::\w+", name):
        raise CuteError(f'torch_op: name {name!r} must be "library::operator"')
    written = (mutates,) if isinstance(mutates, str) else tuple(mutates)
    if out is None and not written:
        raise CuteError(
            f"torch_op: {name} gives nothing: say with out= what it makes, or with mutates= what it writes into"
        )
    if backward is None and setup_context is not None:
        raise CuteError(f"torch_op: {name} has setup_context= and no backward=")
    if backward is not None and written:
        raise CuteError(f"torch_op: {name} writes {', '.join(written)}: torch has no backward= for such operators")

    def decorate(function: Callable[..., Any]) -> Any:
        parameters = _inputs(name, function, out, written)
        signature, results = parameters
        operator = _operator(name, function, out, signature)
        schema = _schema(torch, name, function, signature, results, written)
        made = torch.library.custom_op(name, operator, mutates_args=written, device_types=devices, schema=schema)
        made.register_fake(fake or _fake(out))
        if devices is not None and "cpu" not in devices:
            made.register_kernel("cpu")(_simulated(name, operator))
        _spare_dynamo(made)
        if backward is not None:
            made.register_autograd(backward, setup_context=setup_context or _keeping(torch, signature))
        functools.update_wrapper(made, function)
        return made

    return decorate


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as e:
        raise CuteError("torch_op: PyTorch is not installed: pip install torch, 2.4 or newer") from e


def _inputs(name: str, function: Any, out: Any, written: tuple[str, ...]) -> tuple[inspect.Signature, tuple[str, ...]]:
    """The operator's signature, which is the function's without the results that it writes, and the names of these."""
    own = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own):
        raise CuteError(f"torch_op: {name}: the function takes *args or **kwargs, and torch wants each parameter named")
    count = 0
    if out is not None:
        given = list(inspect.signature(out).parameters)
        count = len(own) - len(given)
        if count < 1 or [p.name for p in own[: len(given)]] != given:
            raise CuteError(
                f"torch_op: {name}: out takes ({', '.join(given)}), and the function "
                f"({', '.join(p.name for p in own)}); the function takes the same and then each result"
            )
    inputs = own[: len(own) - count]
    unknown = [w for w in written if w not in [p.name for p in inputs]]
    if unknown:
        raise CuteError(f"torch_op: {name}: mutates {unknown[0]!r} is not a parameter of the function")
    bare = [p.name for p in inputs if p.annotation is p.empty]
    if bare:
        raise CuteError(
            f"torch_op: {name}: parameter {bare[0]!r} has no annotation; torch asks for one, as torch.Tensor"
        )
    return inspect.Signature(inputs), tuple(p.name for p in own[len(inputs) :])


def _operator(name: str, function: Any, out: Any, signature: inspect.Signature) -> Any:
    """Make the function that runs when the operator is called: it makes the results, and launches the function."""

    names = tuple(signature.parameters)

    def operator(*args: Any, **named: Any) -> Any:
        if named or len(args) != len(names):  # torch gives all of them in order
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        args = tuple(map(_detached, args))
        results = None if out is None else out(**dict(zip(names, args)))
        written = () if results is None else results if isinstance(results, tuple) else (results,)
        gave = function(*args, *written)
        if gave is not None:
            raise CuteError(
                f"torch_op: {name}: the function gave {type(gave).__name__}; it writes results, and gives None"
            )
        return results

    functools.update_wrapper(operator, function)
    operator.__signature__ = signature  # type: ignore[attr-defined]
    return operator


def _spare_dynamo(made: Any) -> None:
    """Have an operator's functions run as they are while nobody has loaded torch._dynamo. torch loads it at the first
    call of any operator, to keep torch.compile out of these functions: 1.4 s of a first call with gradients."""
    functions = getattr(made, "_backend_fns", {})
    for device, guarded in functions.items():
        plain = getattr(guarded, "__wrapped__", guarded)
        functions[device] = functools.wraps(plain)(functools.partial(_run, guarded, plain))


def _run(guarded: Any, plain: Any, *args: Any, **named: Any) -> Any:
    return (guarded if "torch._dynamo" in sys.modules else plain)(*args, **named)


def _detached(x: Any) -> Any:
    """An argument without autograd, which kernels know nothing of: backward= has the gradients."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_detached, x))
    return x.detach() if getattr(x, "requires_grad", False) is True else x


def _simulated(name: str, operator: Any) -> Any:
    """Give the operator for tensors of the CPU, which a simulation takes alone."""

    def simulated(*args: Any, **named: Any) -> Any:
        if LAUNCHER.get() is None:
            raise CuteError(
                f"torch_op: {name} is given tensors of the CPU: give tensors on the GPU (x.cuda()), or call it in "
                "`with cute.simulation():`, which runs its kernels in the simulator"
            )
        return operator(*args, **named)

    return simulated


def _schema(
    torch: Any, name: str, function: Any, signature: inspect.Signature, results: tuple[str, ...],
    written: tuple[str, ...],
) -> str:  # fmt: skip
    """The operator's schema, in torch's language."""
    hints = typing.get_type_hints(function)
    each = tuple(hints.get(r, torch.Tensor) for r in results)
    result = None if not each else each[0] if len(each) == 1 else tuple[each]  # type: ignore[valid-type]

    def prototype() -> None: ...

    parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
    prototype.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    prototype.__annotations__ = {**{p.name: p.annotation for p in parameters}, "return": result}
    try:
        return str(torch.library.infer_schema(prototype, mutates_args=written))
    except ValueError as e:
        raise CuteError(f"torch_op: {name}: {e}") from e


def _fake(out: Any) -> Any:
    return out if out is not None else lambda *_, **__: None


def _keeping(torch: Any, signature: inspect.Signature) -> Any:
    """Make the function that keeps an operator's arguments for its backward."""

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))
        ctx.given = {n: None if isinstance(x, torch.Tensor) else x for n, x in zip(signature.parameters, inputs)}

    return setup
