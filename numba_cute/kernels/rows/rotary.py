# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding: pairs of a head's first elements are turned by angles that depend on the token's position.

A pair (a, b) becomes (a cos - b sin, b cos + a sin). Pairs are halves apart (element i and i + R/2) or neighbours (2i
and 2i + 1). A thread has two vectors of 16 bytes that make pairs, of several heads of one token, so that it reads the
token's cosines and sines once. All in Float32; the result may be written over x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

import numba_cute as cute
from numba_cute.kernels import entry, tuning
from numba_cute.seam import CuteError, frozen, traced

if TYPE_CHECKING:
    import torch

__all__ = ["rotary"]

THREADS = 256
"""Of a thread, at most: so many loads are in flight."""


@frozen
class Turning:
    """The static part of a call: elements of a vector, vectors of pairs of a head, heads, those of a thread, whether
    pairs are neighbours, whether to turn back, how many elements beyond the pairs are copied, and at whose multiples of
    bytes x's and y's vectors begin."""

    vector: int
    columns: int
    heads: int
    each: int
    neighbours: bool
    back: bool
    rest: int
    align: int


@traced
def pairs(head: Any, column: Any, t: Turning) -> Any:
    """The two vectors of a head's pairs that stand in a column: what is contiguous first."""
    if t.neighbours:
        layout, step = cute.make_layout((2 * t.vector, 1)), 2 * t.vector
    else:
        layout, step = cute.make_layout((t.vector, 2), stride=(1, t.vector * t.columns)), t.vector
    pointer = cute.make_ptr(head.element_type, head.iterator.toint(), cute.AddressSpace.gmem, t.align)
    return cute.make_tensor(pointer + column * step, layout)


@traced
def vector_at(line: Any, column: Any, t: Turning) -> Any:
    """A vector of cosines or sines, as Float32."""
    size = min(16, t.vector * line.element_type.bytes)
    pointer = cute.make_ptr(line.element_type, line.iterator.toint(), cute.AddressSpace.gmem, size)
    mine = cute.make_tensor(pointer + column * t.vector, cute.make_layout(t.vector))
    regs = cute.make_fragment_like(mine)
    cute.autovec_copy(mine, regs)
    return regs.load().to(cute.Float32)


@traced
def turned(regs: Any, c: Any, s: Any, t: Turning) -> None:
    """Turn the pairs in registers."""
    layout = cute.make_layout((t.vector, 2), stride=(2, 1) if t.neighbours else (1, t.vector))
    both = cute.make_tensor(regs.iterator, layout)
    a, b = both[None, 0].load().to(cute.Float32), both[None, 1].load().to(cute.Float32)
    both[None, 0].store((a * c - b * s).to(regs.element_type))
    both[None, 1].store((b * c + a * s).to(regs.element_type))


@cuda.jit(launch_bounds=THREADS)
def rotary_kernel(x, cos, sin, positions, y, t):
    """y (tokens, heads, D) = x with pairs turned by row positions[token] of cos and sin (P, R/2); without positions, by
    row token % P."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    xs, ys, cs, ss = cute.make_tensor(x), cute.make_tensor(y), cute.make_tensor(cos), cute.make_tensor(sin)
    item = bidx * THREADS + tidx
    column, group = item % t.columns, item // t.columns
    token, first = group // (t.heads // t.each), group % (t.heads // t.each)
    if token < xs.shape[0]:
        at = token % cs.shape[0]
        if positions is not None:
            at = cute.Int64(cute.make_tensor(positions)[token])
        c, s = vector_at(cs[at, None], column, t), vector_at(ss[at, None], column, t)
        if cute.const_expr(t.back):
            s = s * -1.0
        regs = cute.make_rmem_tensor((2 * t.vector, t.each), xs.element_type)
        for i in cute.range_constexpr(t.each):
            mine = pairs(xs[token, first + i * (t.heads // t.each), None], column, t)
            cute.autovec_copy(mine, cute.make_tensor(regs[None, i].iterator, cute.make_layout(mine.shape)))
        for i in cute.range_constexpr(t.each):
            turned(regs[None, i], c, s, t)
            mine = pairs(ys[token, first + i * (t.heads // t.each), None], column, t)
            cute.autovec_copy(cute.make_tensor(regs[None, i].iterator, cute.make_layout(mine.shape)), mine)
        if cute.const_expr(t.rest > 0):
            begin = 2 * t.vector * t.columns
            for i in cute.range_constexpr(t.each):
                head = first + i * (t.heads // t.each)
                for e in range(begin + column, begin + t.rest, t.columns):
                    ys[token, head, e] = xs[token, head, e]


def rotary_work(x: Any, cos: Any, sin: Any, positions: Any, y: Any, neighbours: bool, back: bool) -> Any:
    """Give the work of `rotary_kernel` for arrays of torch's or NumPy's, x and y (tokens, heads, D)."""
    half = cos.shape[1]
    vector: int = 16 // min(x.itemsize, cos.itemsize)
    side = 2 if neighbours else 1  # vectors of x and y that lie together
    while vector > 1 and not (half % vector == 0 and _suits(side * vector, x, y) and _suits(vector, cos, sin)):
        vector //= 2
    heads = x.shape[1]
    each = next(e for e in range(tuning.numbers("rotary").heads, 0, -1) if heads % e == 0)
    rest = x.shape[2] - 2 * half
    align = min(16, side * vector * x.itemsize) if _suits(side * vector, x, y) else x.itemsize
    turning = Turning(vector, half // vector, heads, each, neighbours, back, rest, align)
    items = x.shape[0] * (heads // each) * turning.columns
    return entry.Work(rotary_kernel, max(1, -(-items // THREADS)), THREADS, static=(turning,))


def _suits(vector: int, *arrays: Any) -> bool:
    """Say whether vectors of so many elements begin at multiples of their bytes, or of 16."""
    for a in arrays:
        access = min(16, vector * a.itemsize)
        if not entry.aligned(a) or any(s * a.itemsize % access for s in entry.strides(a)[:-1]):
            return False
    return True


def _tokens(x: Any, written: bool = False) -> Any:
    """x as (tokens, heads, D): a view, or, where strides allow none, a copy of what is not written."""
    if x.dim() == 3:
        return x
    shape = (-1, x.shape[-2], x.shape[-1])
    try:
        return x.view(shape) if written else x.reshape(shape)
    except RuntimeError:
        raise CuteError(
            f"rotary: out is {entry.described(x)}, whose tokens are not in order: give a dense tensor"
        ) from None


def _plan(x: Any, cos: Any, sin: Any, positions: Any, y: Any, neighbours: bool, back: bool) -> Any:
    def seen(x: Any, cos: Any, sin: Any, positions: Any, y: Any) -> tuple[Any, Any, Any, Any, Any]:
        return _tokens(x), cos, sin, None if positions is None else positions.reshape(-1), _tokens(y, written=True)

    launch = rotary_work(*seen(x, cos, sin, positions, y), neighbours, back).launcher()
    return lambda *tensors: launch(*seen(*tensors))


def _result(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor | None, neighbours: bool, back: bool
) -> Any:
    what = "rotary"
    entry.check(what, "x", x, dtypes=entry.FLOATS, least_rank=3)
    entry.check(what, "cos", cos, dtypes=entry.FLOATS, rank=2, like=x)
    entry.check(what, "sin", sin, dtypes=(entry.type_name(cos),), shape=cos.shape, like=x)
    entry.check(
        what, "positions", positions, dtypes=("int32", "int64"), shape=x.shape[:-2], last=False, like=x, optional=True
    )
    if not 0 < 2 * cos.shape[1] <= x.shape[-1]:
        raise CuteError(
            f"rotary: cos is {entry.described(cos)}: it turns {2 * cos.shape[1]} elements of a head, which has "
            f"{x.shape[-1]}; give columns for half of them at most"
        )
    if positions is None and (cos.shape[0] < x.shape[-3]):
        raise CuteError(
            f"rotary: cos is {entry.described(cos)}: rows for {cos.shape[0]} positions, and there are "
            f"{x.shape[-3]} tokens: give as many rows, or positions"
        )
    return x.new_empty(x.shape)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, cos, sin, positions, ctx.neighbours, ctx.back = inputs
    ctx.save_for_backward(cos, sin, positions)


def _gradients(ctx: Any, dy: Any) -> Any:
    return ROTARY(dy.contiguous(), *ctx.saved_tensors, ctx.neighbours, not ctx.back), *(None,) * 5


ROTARY = entry.Operator(
    "numba_cute::rotary", _plan, _result, backward=_gradients, setup_context=_keep, constant=("cos", "sin")
)


def rotary(
    x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False, inverse: bool = False, out: Any =
    None
) -> Any:  # fmt: skip
    """Turn pairs of the first elements of each head by its token's angles.

    x: (…, tokens, heads, D), a tensor of torch's on the GPU, of bfloat16, float16 or float32, its last mode contiguous.
    cos, sin: (P, R/2), of any of these types, for positions 0 to P - 1, of which R <= D elements are turned.
    positions: (…, tokens), int64 or int32, each less than P, which is not checked; by default a token's place in its
    sequence. interleaved: whether pairs are neighbours, instead of halves of the R elements. inverse: turn back. out:
    where to write the result, where no gradient is asked for; it may be x. CuteError says which argument is not so.
    With gradients for x, and under torch.compile.

    >>> import torch
    >>> x = torch.ones(1, 2, 1, 4)  # of 2 tokens
    >>> angles = torch.tensor([[0.0, 0.0], [torch.pi / 2, torch.pi / 2]])
    >>> with cute.simulation():
    ...     y = cute.kernels.rotary(x, angles.cos(), angles.sin())
    >>> y[0, :, 0].round()
    tensor([[ 1.,  1.,  1.,  1.],
            [-1., -1.,  1.,  1.]])
    """
    if positions is None and x.dim() > 3:  # tokens are counted through all sequences
        cos, sin = cos[: x.shape[-3]], sin[: x.shape[-3]]
    return ROTARY(x, cos, sin, positions, bool(interleaved), bool(inverse), into=None if out is None else (out,))
