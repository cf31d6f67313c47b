# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy of a linear layer, of whose logits there are never more than those of some rows.

Of a chunk of rows: logits = x @ weight.T by `matmul`, with the bias and the cap in its epilogue; losses by
`cross_entropy`'s kernel; their gradients written over the logits by its backward; then dx = gradients @ weight, and
dweight += gradients.T @ x, in Float32, whose epilogue reads what was there. A sum or mean of the losses has one number
as its gradient, so that the forward computes dx and dweight at once, for the number 1, and the backward multiplies
them. Where each row's loss is given, the backward computes the logits again, for it knows only then what each row
counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.kernels.gemm.entry import matmul
from numba_cute.kernels.gemm.epilogue import Epilogue, bias as bias_of, residual
from numba_cute.kernels.rows.softmax import CROSS_ENTROPY, CROSS_ENTROPY_BACKWARD, checked_options, reduced
from numba_cute.seam import CuteError

if TYPE_CHECKING:
    import torch

__all__ = ["linear_cross_entropy"]

KINDS = ("bfloat16", "float16", "float32")
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


def _capped(x: Any, cap: Any, twice: Any) -> Any:
    """cap * tanh(x / cap), to some 1e-6 of the cap. twice: 2 / cap."""
    return cap - cap * 2.0 / (1.0 + cute.math.exp(x * twice, fastmath=True))


def _of_logits(bias: Any, cap: float) -> Epilogue | None:
    """The epilogue that makes logits of the products. cap: a number, or 0 for none."""
    steps = [*([] if bias is None else [bias_of(bias)]), *([Epilogue(_capped, cap, 2.0 / cap)] if cap else [])]
    return steps[0] | steps[1] if len(steps) == 2 else steps[0] if steps else None


def through(
    x: Any, weight: Any, bias: Any, target: Any, rows: int, numbers: tuple[int, float, float, float], losses: Any,
    lse: Any, dloss: Any, dx: Any, dweight: Any, dbias: Any,
) -> None:  # fmt: skip
    """Go through x (M, K) by chunks of `rows`. bias: (N,), or None. numbers: the ignored target, label smoothing, z,
    the cap. losses (M,): written with lse (M,); or None, where lse is known. dloss (M,): each row's, for the gradients
    dx, dweight and dbias, which may be None; the latter two of float32."""
    torch, (total, columns) = entry.pytorch(), (x.shape[0], weight.shape[0])
    unit = 16 // x.element_size()
    room = x.new_empty((min(rows, total), -(-columns // unit) * unit))  # rows of which TMA can make maps
    *of_losses, cap = numbers
    gradients = [g for g in (dx, dweight, dbias) if g is not None]
    if dweight is not None and not total:
        dweight.zero_()
    with torch.no_grad():
        if dbias is not None:
            dbias.zero_()
        for first in range(0, total, rows):
            part = slice(first, min(first + rows, total))
            here, logits = target[part], room[: part.stop - first, :columns]
            matmul(x[part], weight.mT, out=logits, epilogue=_of_logits(bias, cap))
            if losses is not None:
                CROSS_ENTROPY.planned((logits, here, losses[part], lse[part]), (*of_losses, False))
            if gradients:
                CROSS_ENTROPY_BACKWARD.planned((logits, here, lse[part], dloss[part], logits), numbers)
            if dx is not None:
                matmul(logits, weight, out=dx[part])
            if dweight is not None:
                matmul(logits.mT, x[part], out=dweight, epilogue=residual(dweight) if first else None)
            if dbias is not None:
                dbias.add_(logits.sum(0, dtype=torch.float32))


def _rows(x: Any, target: Any) -> tuple[Any, Any]:
    """Give x as a matrix, whose rows begin where TMA reads, and the targets as a line."""
    x = x.reshape(-1, x.shape[-1])
    fits = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0 and x.stride(0) >= x.shape[1]
    return (x if fits else x.clone(memory_format=entry.pytorch().contiguous_format)), target.reshape(-1)


def _check(x: Any, weight: Any, bias: Any, target: Any) -> None:
    """Refuse what the products and the losses do not take."""
    what = "linear_cross_entropy"
    entry.check(
        what, "bias", bias, dtypes=entry.FLOATS, shape=(weight.shape[0],), last=False, like=x, optional=True
    )  # fmt: skip
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
    entry.check_target("linear_cross_entropy", x, entry.WARPGROUPS, entry.TENSOR_MEMORY, entry.WARPS)
    if weight.data_ptr() % 16:
        raise CuteError(
            f"linear_cross_entropy: weight is {entry.described(weight)}, and does not begin at a multiple of 16 bytes: "
            "give weight.clone()"
        )


# A sum of losses, whose gradients are computed with it.


def _sum_plan(
    x: Any, weight: Any, bias: Any, target: Any, sum: Any, dx: Any, dweight: Any, dbias: Any, ignored: int,
    smoothing: float, z: float, cap: float, rows: int, of_x: bool, of_weight: bool, of_bias: bool,
) -> Callable[..., None]:  # fmt: skip
    _check_plan(x, weight)

    def run(x: Any, weight: Any, bias: Any, target: Any, sum: Any, dx: Any, dweight: Any, dbias: Any) -> None:
        torch, (x, target) = entry.pytorch(), _rows(x, target)
        losses, lse, ones = (torch.ones(x.shape[0], dtype=torch.float32, device=x.device) for _ in range(3))
        made = [dx.view(x.shape) if of_x else None, dweight if of_weight else None, dbias if of_bias else None]
        through(x, weight, bias, target, rows, (ignored, smoothing, z, cap), losses, lse, ones, *made)
        sum.copy_(losses.sum())

    return run


def _sum(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, ignored: int,
    smoothing: float, z: float, cap: float, rows: int, of_x: bool, of_weight: bool, of_bias: bool,
) -> Any:  # fmt: skip
    """Check the arguments, and make the sum and the gradients, without elements where they are not asked for."""
    _check(x, weight, bias, target)
    float32 = entry.pytorch().float32
    return (
        x.new_empty((), dtype=float32), x.new_empty(x.shape if of_x else (0,)),
        x.new_empty(weight.shape if of_weight else (0,), dtype=float32),
        x.new_empty((weight.shape[0] if of_bias else 0,), dtype=float32),
    )  # fmt: skip


def _keep_gradients(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, *_, of_x, of_weight, of_bias = inputs
    ctx.asked = of_x, of_weight, of_bias
    ctx.set_materialize_grads(False)  # or autograd makes zeros as large as the weight, for results without gradients
    ctx.save_for_backward(x, weight, bias, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _sum_gradients(ctx: Any, dsum: Any, *_: Any) -> Any:
    x, weight, bias, *made = ctx.saved_tensors
    scaled = SCALED(x, weight, bias, dsum, *made)
    return *(g if asked else None for g, asked in zip(scaled, ctx.asked)), *(None,) * 9


def _scaled_plan(*given: Any) -> Callable[..., None]:
    def run(x: Any, weight: Any, bias: Any, dsum: Any, dx: Any, dweight: Any, dbias: Any, *made: Any) -> None:
        torch = entry.pytorch()
        for gradient, scaled in zip((dx, dweight, dbias), made):
            torch.mul(gradient, dsum, out=scaled)

    return run


def _scaled(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dsum: torch.Tensor, dx: torch.Tensor,
    dweight: torch.Tensor, dbias: torch.Tensor,
) -> Any:  # fmt: skip
    """Make the gradients in their tensors' types. x, weight, bias: of which second derivatives would be."""
    of_bias = dbias.dtype if bias is None else bias.dtype
    return (
        x.new_empty(dx.shape), x.new_empty(dweight.shape, dtype=weight.dtype),
        x.new_empty(dbias.shape, dtype=of_bias),
    )  # fmt: skip


SCALED = entry.Operator("numba_cute::linear_cross_entropy_backward", _scaled_plan, _scaled, count=3)
SUM = entry.Operator(
    "numba_cute::linear_cross_entropy", _sum_plan, _sum, count=4, backward=_sum_gradients, setup_context=_keep_gradients
)


# Each row's loss, of which the backward computes the logits again.


def _rows_plan(
    x: Any, weight: Any, bias: Any, target: Any, losses: Any, lse: Any, ignored: int, smoothing: float, z: float,
    cap: float, rows: int,
) -> Callable[..., None]:  # fmt: skip
    _check_plan(x, weight)

    def run(x: Any, weight: Any, bias: Any, target: Any, losses: Any, lse: Any) -> None:
        (x, target), numbers = _rows(x, target), (ignored, smoothing, z, cap)
        through(x, weight, bias, target, rows, numbers, losses.view(-1), lse.view(-1), None, None, None, None)

    return run


def _losses(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, ignored: int,
    smoothing: float, z: float, cap: float, rows: int,
) -> Any:  # fmt: skip
    _check(x, weight, bias, target)
    float32 = entry.pytorch().float32
    return x.new_empty(x.shape[:-1], dtype=float32), x.new_empty(x.shape[:-1], dtype=float32)


def _keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, target, *ctx.options = inputs
    ctx.save_for_backward(x, weight, bias, target, output[1])
    ctx.mark_non_differentiable(output[1])


def _rows_gradients(ctx: Any, dloss: Any, _: Any) -> Any:
    needs = ctx.needs_input_grad[:3]
    made = ROWS_BACKWARD(*ctx.saved_tensors, dloss.float().contiguous(), *ctx.options, *needs)
    return *(g if asked else None for g, asked in zip(made, needs)), *(None,) * 6


def _rows_backward_plan(
    x: Any, weight: Any, bias: Any, target: Any, lse: Any, dloss: Any, dx: Any, dweight: Any, dbias: Any, ignored: int,
    smoothing: float, z: float, cap: float, rows: int, of_x: bool, of_weight: bool, of_bias: bool,
) -> Callable[..., None]:  # fmt: skip
    def run(
        x: Any, weight: Any, bias: Any, target: Any, lse: Any, dloss: Any, dx: Any, dweight: Any, dbias: Any
    ) -> None:  # fmt: skip
        (x, target), float32 = _rows(x, target), entry.pytorch().float32
        sums = [
            dweight.new_empty(weight.shape, dtype=float32) if of_weight else None,
            dbias.new_empty(weight.shape[:1], dtype=float32) if of_bias else None,
        ]
        dx, numbers = dx.view(x.shape) if of_x else None, (ignored, smoothing, z, cap)
        through(x, weight, bias, target, rows, numbers, None, lse.view(-1), dloss.view(-1), dx, *sums)
        for made, of in zip((dweight, dbias), sums):
            if of is not None:
                made.copy_(of)

    return run


def _rows_backward(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, target: torch.Tensor, lse: torch.Tensor,
    dloss: torch.Tensor, ignored: int, smoothing: float, z: float, cap: float, rows: int, of_x: bool, of_weight: bool,
    of_bias: bool,
) -> Any:  # fmt: skip
    of = weight if bias is None else bias
    return (
        x.new_empty(x.shape if of_x else (0,)), weight.new_empty(weight.shape if of_weight else (0,)),
        of.new_empty((weight.shape[0] if of_bias else 0,)),
    )  # fmt: skip


ROWS_BACKWARD = entry.Operator(
    "numba_cute::linear_cross_entropy_rows_backward", _rows_backward_plan, _rows_backward, count=3
)
ROWS = entry.Operator(
    "numba_cute::linear_cross_entropy_rows", _rows_plan, _losses, count=2, backward=_rows_gradients,
    setup_context=_keep_inputs,
)  # fmt: skip


# The entry.


def linear_cross_entropy(
    x: Any, weight: Any, target: Any, bias: Any = None, *, softcap: float = 0.0, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, z_loss: float = 0.0, chunk_size: int | None = None,
) -> Any:  # fmt: skip
    """Compute the cross-entropy of the logits x @ weight.T + bias and target columns, never holding them all.

    x: (…, K), of bfloat16, float16, or float32, multiplied as TF32; its last mode contiguous, K a multiple of 16 bytes.
    weight: (N, K), of the same type. target: columns (…), int64 or int32. bias: (N,), of any floating type. softcap: of
    logits that are softcap * tanh(logits / softcap) the number; 0 for none. ignore_index, reduction, label_smoothing,
    z_loss: as of `cross_entropy`. chunk_size: of how many rows the logits are held, in x's type; by default of those
    whose logits take as much memory as weight, or 64 MiB. Of "sum" and "mean" the gradients of x, weight and bias are
    computed with the loss, and kept until backward() multiplies them; of "none" backward() computes the logits again.
    Those of weight and bias are summed over rows in float32. CuteError says which argument is not so. With gradients,
    under torch.compile, and torch.autocast, which makes x and weight of its type.

    >>> import torch
    >>> x, weight, target = torch.eye(8, dtype=torch.bfloat16), torch.eye(8, dtype=torch.bfloat16), torch.arange(8)
    >>> with cute.simulation():
    ...     loss = cute.kernels.linear_cross_entropy(x, weight, target)
    >>> torch.allclose(loss.float(), torch.nn.functional.cross_entropy((x @ weight.T).float(), target), atol=1e-2)
    True
    """
    torch, what = entry.pytorch(), "linear_cross_entropy"
    numbers = *checked_options(what, ignore_index, reduction, label_smoothing, z_loss), _checked_cap(softcap)
    x, weight = entry.under_autocast(x, weight)
    entry.check(what, "x", x, dtypes=KINDS, least_rank=1)
    entry.check(what, "weight", weight, rank=2, like=x)
    if chunk_size is None:
        chunk_size = chunk_of(max(1, x.shape[:-1].numel()), max(1, weight.shape[0]), x.shape[-1], x.element_size())
    elif isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise CuteError(f"{what}: chunk_size {chunk_size!r} must be a positive int, or None")
    if reduction == "none":
        return ROWS(x, weight, bias, target, *numbers, chunk_size)[0]
    needs = [torch.is_grad_enabled() and getattr(t, "requires_grad", False) for t in (x, weight, bias)]
    return reduced(SUM(x, weight, bias, target, *numbers, chunk_size, *needs)[0], target, numbers[0], reduction)


def _checked_cap(cap: Any) -> float:
    """Check the number beyond which no logit is, and give it."""
    if isinstance(cap, bool) or not isinstance(cap, (int, float)) or not (cap == 0 or 1e-3 <= cap <= 1e30):
        raise CuteError(f"linear_cross_entropy: softcap {cap!r} must be 0, for none, or a number of 0.001 or more")
    return float(cap)
