# SPDX-License-Identifier: Apache-2.0
"""Permute a tensor's modes, at the speed of memory: `permute(x, order)` is `x.permute(order).contiguous()`.

The layout algebra says what a permutation is: the strides of x, in the order of the result's modes, coalesced. What is
left of it decides how it is done.

- Another mode is innermost in x than in the result, and rows and columns begin at multiples of 16 bytes: tiles are
  transposed in registers and shared memory (turn.py).
- Another mode is innermost, and they begin anywhere: tiles go by way of shared memory, in words of 4 bytes as they lie
  in x, and in vectors of 16 bytes as these lie in the result (skew.py).
- Anything else, a copy, the same innermost mode, short extents, any strides: boxes go by way of shared memory, read
  along x's runs and written along the result's (box.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numba_cute.kernels import entry
from numba_cute.kernels.moves import box, skew, turn
from numba_cute.kernels.moves.places import moved
from numba_cute.seam import CuteError

if TYPE_CHECKING:
    import torch

__all__ = ["permute", "transpose"]


def plan(x: Any, y: Any, order: Sequence[int]) -> Any:
    """Plan y = x.permute(order).

    x: an array of torch's or NumPy's, of any strides. y: the result, contiguous. order: the mode of x that each mode of
    y is.
    """
    if 0 in x.shape:
        return lambda x, y: None
    of = moved(x, y, order)
    return turn.work(of) or skew.work(of) or box.work(of)


def result(x: torch.Tensor, order: list[int]) -> torch.Tensor:
    """Give the tensor that x, permuted, is written to."""
    entry.check("permute", "x", x, least_rank=1, last=False)
    if sorted(order) != list(range(len(x.shape))):
        raise CuteError(
            f"permute: order is {tuple(order)}, and x has {len(x.shape)} modes; "
            f"name each of 0 to {len(x.shape) - 1} once"
        )
    return x.new_empty([x.shape[m] for m in order])


def keep(ctx: Any, inputs: Any, output: Any) -> None:
    """Keep the order."""
    ctx.order = inputs[1]


def gradients(ctx: Any, dy: Any) -> Any:
    """Permute the gradient back."""
    return PERMUTE(dy, tuple(map(ctx.order.index, range(len(ctx.order))))), None


PERMUTE = entry.Operator("numba_cute::permute", plan, result, backward=gradients, setup_context=keep)


def permute(x: torch.Tensor, order: Sequence[int], *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copy x with its modes in another order, contiguous.

    x: a tensor on the GPU, of any strides. order: for each mode of the result, the mode of x that it is. out: where to
    write it. Raises CuteError for an order that is none. With gradients, and under torch.compile.

    >>> import torch
    >>> x = torch.arange(6.0).reshape(1, 2, 3)
    >>> with cute.simulation():
    ...     y = cute.kernels.permute(x, (2, 0, 1))
    >>> y.shape, torch.equal(y, x.permute(2, 0, 1))
    (torch.Size([3, 1, 2]), True)
    """
    modes = len(x.shape)
    return PERMUTE(x, tuple(m + modes if m < 0 else m for m in order), into=(out,))


def transpose(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copy x with its last two modes exchanged, contiguous.

    x: a tensor on the GPU of two modes or more, of any strides. out: where to write it. With gradients.

    >>> import torch
    >>> x = torch.arange(6.0).reshape(2, 3)
    >>> with cute.simulation():
    ...     y = cute.kernels.transpose(x)
    >>> torch.equal(y, x.mT), y.is_contiguous()
    (True, True)
    """
    entry.check("transpose", "x", x, least_rank=2, last=False)
    modes = len(x.shape)
    return permute(x, (*range(modes - 2), modes - 1, modes - 2), out=out)
