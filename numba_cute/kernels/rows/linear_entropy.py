# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy of a linear layer, of whose logits there are never more than those of some rows.

Of a chunk of rows: logits = x @ weight.T by `matmul`; losses by `cross_entropy`'s kernel; their gradients written over
the logits by its backward; then dx = gradients @ weight, and dweight += gradients.T @ x, in Float32, whose epilogue
reads what was there. A sum or mean of the losses has one number as its gradient, so that the forward computes dx and
dweight at once, for the number 1, and the backward multiplies them. Where each row's loss is given, the backward
computes the logits again, for it knows only then what each row counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba_cute.kernels import entry
from numba_cute.kernels.gemm.epilogue import residual
from numba_cute.kernels.gemm.launches import matmul
from numba_cute.kernels.rows.softmax import CROSS_ENTROPY, CROSS_ENTROPY_BACKWARD, checked_options, reduced
from numba_cute.seam import CuteError

if TYPE_CHECKING:
    import torch

__all__ = ["linear_cross_entropy"]

KINDS = ("bfloat16", "float16")
LEAST_ROOM = 1 << 26
"""Bytes of logits that a chunk may have at least."""
ROUNDED = 128
"""Rows of a tile of the products."""


def chunk_of(rows: int, columns: int, depth: int, size: int) -> int:
    """Choose of how many rows the logits are computed together: those that take as much memory as the weight, and all
    chunks about alike. rows, columns, depth: those of the logits, and of x. size: bytes of an element."""
    most = max(depth, LEAST_ROOM // (columns * size))
    each = -(-rows // max(1, -(-rows // most)))
    return max(ROUNDED, -(-each // ROUNDED) * ROUNDED)


def through(
    x: Any, weight: Any, target: Any, rows: int, numbers: tuple[int, float, float], losses: Any, lse: Any, dloss: Any,
    dx: Any, dweight: Any,
) -> None:  # fmt: skip
    """Go through x (M, K) by chunks of `rows`. numbers: the ignored target, label smoothing, z. losses (M,): written
    with lse (M,); or None, where lse is known. dloss (M,): each row's, for the gradients dx and dweight, which may be
    None."""
    torch, (total, columns) = entry.pytorch(), (x.shape[0], weight.shape[0])
    unit = 16 // x.element_size()
    room = x.new_empty((min(rows, total), -(-columns // unit) * unit))  # rows of which TMA can make maps
    if dweight is not None and not total:
        dweight.zero_()
    with torch.no_grad():
        for first in range(0, total, rows):
            part = slice(first, min(first + rows, total))
            here, logits = target[part], room[: part.stop - first, :columns]
            matmul(x[part], weight.mT, out=logits)
            if losses is not None:
                CROSS_ENTROPY.planned((logits, here, losses[part], lse[part]), (*numbers, False))
            if dx is not None or dweight is not None:
                CROSS_ENTROPY_BACKWARD.planned((logits, here, lse[part], dloss[part], logits), numbers)
            if dx is not None:
                matmul(logits, weight, out=dx[part])
            if dweight is not None:
                matmul(logits.mT, x[part], out=dweight, epilogue=residual(dweight) if first else None)


def _rows(x: Any, target: Any) -> tuple[Any, Any]:
    """Give x as a matrix, whose rows begin where TMA reads, and the targets as a line."""
    x = x.reshape(-1, x.shape[-1])
    fits = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0 and x.stride(0) >= x.shape[1]
    return (x if fits else x.clone(memory_format=entry.pytorch().contiguous_format)), target.reshape(-1)


def _check(x: Any, weight: Any, target: Any) -> None:
    """Refuse what the products and the losses do not take."""
    what = "linear_cross_entropy"
    entry.check(what, "x", x, dtypes=KINDS, least_rank=1)
    entry.check(what, "weight", weight, dtypes=(entry.type_name(x),), shape=(None, x.shape[-1]), like=x)
    entry.check(what, "target", target, dtypes=("int64", "int32"), shape=x.shape[:-1], last=False, like=x)
    if 0 in weight.shape:
        raise CuteError(f"{what}: weight is {entry.described(weight)}; it must not be empty: give rows and columns")
    unit = 16 // x.element_size()
    if x.shape[-1] % unit:
        raise CuteError(
            f"{what}: x is {entry.described(x)}; rows must be multiples of {unit} elements: pad x and weight with zeros"
        )
    if weight.shape[0] > 1 and (weight.stride(0) % unit or weight.stride(0) < weight.shape[1]):
        raise CuteError(
            f"{what}: weight is {entry.described(weight)}; its rows must lie apart by multiples of {unit} elements: "
            "give weight.contiguous()"
        )


def _check_plan(x: Any, weight: Any) -> None:
    """Refuse a place and a target that products do not have."""
    entry.check_target("linear_cross_entropy", x)
    if weight.data_ptr() % 16:
        raise CuteError(
            f"linear_cross_entropy: weight is {entry.described(weight)}, and does not begin at a multiple of 16 bytes: "
            "give weight.clone()"
        )


# A sum of losses, whose gradients are computed with it.


def _sum_plan(
    x: Any, weight: Any, target: Any, sum: Any, dx: Any, dweight: Any, ignored: int, smoothing: float, z: float,
    rows: int, of_x: bool, of_weight: bool,
) -> Callable[..., None]:  # fmt: skip
    _check_plan(x, weight)

    def run(x: Any, weight: Any, target: Any, sum: Any, dx: Any, dweight: Any) -> None:
        torch, (x, target) = entry.pytorch(), _rows(x, target)
        losses, lse, ones = (torch.ones(x.shape[0], dtype=torch.float32, device=x.device) for _ in range(3))
        dx = dx.view(x.shape) if of_x else None
        through(x, weight, target, rows, (ignored, smoothing, z), losses, lse, ones, dx, dweight if of_weight else None)
        sum.copy_(losses.sum())

    return run


def _sum(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignored: int, smoothing: float, z: float, rows: int,
    of_x: bool, of_weight: bool,
) -> Any:  # fmt: skip
    """Check the arguments, and make the sum and the gradients, without elements where they are not asked for."""
    _check(x, weight, target)
    float32 = entry.pytorch().float32
    return (
        x.new_empty((), dtype=float32), x.new_empty(x.shape if of_x else (0,)),
        x.new_empty(weight.shape if of_weight else (0,), dtype=float32),
    )  # fmt: skip


def _keep_gradients(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, *_, of_x, of_weight = inputs
    ctx.asked = of_x, of_weight
    ctx.set_materialize_grads(False)  # or autograd makes zeros as large as the weight, for results without gradients
    ctx.save_for_backward(x, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _sum_gradients(ctx: Any, dsum: Any, *_: Any) -> Any:
    x, weight, dx, dweight = ctx.saved_tensors
    made = SCALED(x, weight, dsum, dx, dweight)
    return *(g if asked else None for g, asked in zip(made, ctx.asked)), *(None,) * 7


def _scaled_plan(*given: Any) -> Callable[..., None]:
    def run(x: Any, weight: Any, dsum: Any, dx: Any, dweight: Any, *made: Any) -> None:
        torch = entry.pytorch()
        for gradient, scaled in zip((dx, dweight), made):
            torch.mul(gradient, dsum, out=scaled)

    return run


def _scaled(
    x: torch.Tensor, weight: torch.Tensor, dsum: torch.Tensor, dx: torch.Tensor, dweight: torch.Tensor
) -> Any:  # fmt: skip
    """Make the gradients in their tensors' types. x, weight: of which second derivatives would be."""
    return x.new_empty(dx.shape), x.new_empty(dweight.shape, dtype=weight.dtype)


SCALED = entry.Operator("numba_cute::linear_cross_entropy_backward", _scaled_plan, _scaled, count=2)
SUM = entry.Operator(
    "numba_cute::linear_cross_entropy", _sum_plan, _sum, count=3, backward=_sum_gradients, setup_context=_keep_gradients
)


# Each row's loss, of which the backward computes the logits again.


def _rows_plan(
    x: Any, weight: Any, target: Any, losses: Any, lse: Any, ignored: int, smoothing: float, z: float, rows: int
) -> Callable[..., None]:
    _check_plan(x, weight)

    def run(x: Any, weight: Any, target: Any, losses: Any, lse: Any) -> None:
        numbers = ignored, smoothing, z
        through(*_given(x, weight, target), rows, numbers, losses.view(-1), lse.view(-1), None, None, None)

    return run


def _given(x: Any, weight: Any, target: Any) -> tuple[Any, Any, Any]:
    x, target = _rows(x, target)
    return x, weight, target


def _losses(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignored: int, smoothing: float, z: float, rows: int
) -> Any:
    _check(x, weight, target)
    float32 = entry.pytorch().float32
    return x.new_empty(x.shape[:-1], dtype=float32), x.new_empty(x.shape[:-1], dtype=float32)


def _keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, target, *ctx.options = inputs
    ctx.save_for_backward(x, weight, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _rows_gradients(ctx: Any, dloss: Any, _: Any) -> Any:
    needs = ctx.needs_input_grad[:2]
    made = ROWS_BACKWARD(*ctx.saved_tensors, dloss.float().contiguous(), *ctx.options, *needs)
    return *(g if asked else None for g, asked in zip(made, needs)), *(None,) * 5


def _rows_backward_plan(
    x: Any, weight: Any, target: Any, lse: Any, dloss: Any, dx: Any, dweight: Any, ignored: int, smoothing: float,
    z: float, rows: int, of_x: bool, of_weight: bool,
) -> Callable[..., None]:  # fmt: skip
    def run(x: Any, weight: Any, target: Any, lse: Any, dloss: Any, dx: Any, dweight: Any) -> None:
        x, weight, target = _given(x, weight, target)
        sums = dweight.new_empty(weight.shape, dtype=entry.pytorch().float32) if of_weight else None
        dx = dx.view(x.shape) if of_x else None
        numbers = ignored, smoothing, z
        through(x, weight, target, rows, numbers, None, lse.view(-1), dloss.view(-1), dx, sums)
        if sums is not None:
            dweight.copy_(sums)

    return run


def _rows_backward(
    x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, lse: torch.Tensor, dloss: torch.Tensor, ignored: int,
    smoothing: float, z: float, rows: int, of_x: bool, of_weight: bool,
) -> Any:  # fmt: skip
    return x.new_empty(x.shape if of_x else (0,)), weight.new_empty(weight.shape if of_weight else (0,))


ROWS_BACKWARD = entry.Operator(
    "numba_cute::linear_cross_entropy_rows_backward", _rows_backward_plan, _rows_backward, count=2
)
ROWS = entry.Operator(
    "numba_cute::linear_cross_entropy_rows", _rows_plan, _losses, count=2, backward=_rows_gradients,
    setup_context=_keep_inputs,
)  # fmt: skip


# The entry.


def linear_cross_entropy(
    x: Any, weight: Any, target: Any, *, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, z_loss: float = 0.0, chunk_size: int | None = None,
) -> Any:  # fmt: skip
    """Compute the cross-entropy of the logits x @ weight.T and target columns, on a Hopper GPU, never holding them all.

    x: (…, K), of bfloat16 or float16, its last mode contiguous, K a multiple of 8. weight: (N, K), of the same type.
    target: columns (…), int64 or int32. ignore_index, reduction, label_smoothing, z_loss: as of `cross_entropy`.
    chunk_size: of how many rows the logits are held, in x's type; by default of those whose logits take as much memory
    as weight, or 64 MiB. Of "sum" and "mean" the gradients of x and weight are computed with the loss, and kept until
    backward() multiplies them; of "none" backward() computes the logits again. That of weight is summed over rows in
    float32. CuteError says which argument is not so. With gradients, under torch.compile, and torch.autocast, which
    makes x and weight of its type.
    """
    torch, what = entry.pytorch(), "linear_cross_entropy"
    numbers = checked_options(what, ignore_index, reduction, label_smoothing, z_loss)
    x, weight = entry.under_autocast(x, weight)
    entry.check(what, "x", x, dtypes=KINDS, least_rank=1)
    entry.check(what, "weight", weight, rank=2, like=x)
    if chunk_size is None:
        chunk_size = chunk_of(max(1, x.shape[:-1].numel()), max(1, weight.shape[0]), x.shape[-1], x.element_size())
    elif isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise CuteError(f"{what}: chunk_size {chunk_size!r} must be a positive int, or None")
    if reduction == "none":
        return ROWS(x, weight, target, *numbers, chunk_size)[0]
    grad = torch.is_grad_enabled()
    needs = grad and x.requires_grad, grad and weight.requires_grad
    return reduced(SUM(x, weight, target, *numbers, chunk_size, *needs)[0], target, numbers[0], reduction)
