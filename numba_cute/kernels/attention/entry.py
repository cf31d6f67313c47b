# SPDX-License-Identifier: Apache-2.0
"""Attention for PyTorch's tensors: `flash_attention`."""

import functools
import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.seam import CuteError

from .. import entry
from .gradients import DIMS, attention_backward
from .plan import ALL, Lengths, Options, arguments

if TYPE_CHECKING:
    import torch

__all__ = ["flash_attention"]

WHAT = "flash_attention"
HEAD_DIMS = (64, 128, 192, 256)
MOST = 256
"""Launches that are remembered, each with the addresses of its tensors."""


@cute.seam.traced
def capped(s, batch, head, query, key, cap):
    """Bend scores so that none is beyond `cap`."""
    return cap * cute.math.tanh(s / cap, fastmath=True)


class Launches:
    """Launches by their tensors' places, as allocators give the same ones again and again."""

    def __init__(self) -> None:
        self.known: OrderedDict[Any, Any] = OrderedDict()
        self.counters: dict[Any, Any] = {}

    def counter(self, device: Any, stream: int) -> Any:
        """The number of tiles drawn by launches on a stream, one after the other."""
        found = self.counters.get((device, stream))
        if found is None:
            torch = entry.pytorch()
            found = self.counters[device, stream] = torch.zeros(1, dtype=torch.int32, device=device)
        return found

    def __call__(self, q, k, v, o, lse, options, lengths, sink, aux=()):
        torch = entry.pytorch()
        stream = torch.cuda.current_stream(q.device).cuda_stream
        places = [None if t is None else (t.data_ptr(), t.shape, t.stride(), t.dtype) for t in
                  (q, k, v, o, lse, *lengths, sink)]  # fmt: skip
        kept = not any(torch.is_tensor(x) for x in aux)  # a launch would keep the caller's tensors alive
        numbers = tuple((type(x), getattr(x, "dtype", None), getattr(x, "value", x)) for x in aux) if kept else None
        key = (stream, q.device, options, numbers, *places)
        launch = self.known.get(key) if kept else None
        if launch is None:
            counter = self.counter(q.device, stream)
            kernel, args, grid, block = arguments(
                q, k, v, o, lse, counter, entry.multiprocessors(q), options, lengths, sink, aux
            )
            launch = cute.launch(kernel, grid=grid, block=block, stream=stream).prepare(*args)
            while len(self.known) >= MOST:
                self.known.popitem(last=False)
            if kept:
                self.known[key] = launch
        with torch.cuda.device(q.device):
            launch()


LAUNCHES = Launches()


def check_for_tma(name, t):
    """Refuse what TMA cannot reach."""
    if not entry.aligned(t) or any(s * t.dtype.itemsize % 16 for s in entry.strides(t)[:-1]):
        raise CuteError(
            f"{WHAT}: {name} is {entry.described(t)}; TMA wants it, and each of its strides, at multiples of 16 bytes: "
            f"give {name}.contiguous() or {name}.clone()"
        )


def checked(q, k, v, sink, cu_q, cu_k, used, pages, most_queries):
    """Refuse tensors that do not fit; gives the shapes of O and of the logs of the sums."""
    entry.check(WHAT, "q", q, dtypes=("bfloat16", "float16"), rank=4 if cu_q is None else 3)
    entry.check(WHAT, "k", k, dtypes=(entry.type_name(q),), rank=4 if cu_k is None else 3, like=q)
    entry.check(WHAT, "v", v, dtypes=(entry.type_name(q),), rank=4 if cu_k is None else 3, like=q)
    (heads, d), (kv_heads, dv) = q.shape[-2:], v.shape[-2:]
    if d not in HEAD_DIMS or dv not in HEAD_DIMS:
        raise CuteError(f"{WHAT}: the head dimension is {d} of q and {dv} of v; each must be {HEAD_DIMS}: pad them")
    if tuple(k.shape[:-1]) != tuple(v.shape[:-1]) or k.shape[-1] != d:
        raise CuteError(
            f"{WHAT}: k is {entry.described(k)}, and v is {entry.described(v)}; k must have v's shape but for the last "
            f"mode, which must be q's, {d}"
        )
    if kv_heads < 1 or heads % kv_heads:
        raise CuteError(f"{WHAT}: q has {heads} heads, which is no multiple of the {kv_heads} of k and v")
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    int32 = {"dtypes": ("int32",), "like": q, "optional": True}
    entry.check(WHAT, "cu_seqlens_q", cu_q, rank=1, **int32)
    entry.check(WHAT, "cu_seqlens_k", cu_k, shape=(batch + 1,), **int32)
    entry.check(WHAT, "seqused_k", used, shape=(batch,), **int32)
    entry.check(WHAT, "page_table", pages, shape=(batch, None), **int32)
    entry.check(WHAT, "sink", sink, dtypes=("float32",), shape=(heads,), like=q, optional=True)
    if (cu_q is None) != (most_queries is None):
        raise CuteError(
            f"{WHAT}: max_seqlen_q is {most_queries!r}: it is the length of the longest sequence of cu_seqlens_q, "
            "given with it and without it not"
        )
    if pages is not None and (used is None or cu_k is not None or k.shape[1] % 8):
        raise CuteError(
            f"{WHAT}: page_table is given; it needs seqused_k, no cu_seqlens_k, and k and v of (pages, keys of a page, "
            f"KV heads, d), with a multiple of 8 keys, and k is {entry.described(k)}"
        )
    if cu_k is None and pages is None and k.shape[0] != batch:
        raise CuteError(f"{WHAT}: q has a batch of {batch}, and k is {entry.described(k)}")
    lse = (batch, heads, q.shape[1]) if cu_q is None else (heads, q.shape[0])
    return (*q.shape[:-1], dv), lse


def chosen(causal, window, softcap, score, scale, d):
    """The window's sides, and the scale, as options say; refuses those that do not fit."""
    if causal and window[1] is not None:
        raise CuteError(
            f"{WHAT}: causal is True, and window is {window}: a causal window is (left, 0), or give no window"
        )
    left, right = (window[0], 0) if causal else window
    for side in (left, right):
        if side is not None and (type(side) is not int or side < 0):
            raise CuteError(f"{WHAT}: window {window} must be numbers of keys, 0 or more, or None for all")
    if score is not None and softcap is not None:
        raise CuteError(f"{WHAT}: softcap is {softcap}, and score is given: let the function bend its scores")
    if softcap is not None and not softcap > 0:
        raise CuteError(f"{WHAT}: softcap {softcap} must be positive, or None")
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0:
        raise CuteError(f"{WHAT}: scale {scale} must be positive")
    return left, right, float(scale)


def check_gradients(others, dims):
    """Refuse options, `others`, of which there are no gradients."""
    if any(x is not None for x in others) or dims not in DIMS:
        raise CuteError(
            f"{WHAT}: a gradient is asked for, which there is with causal and scale alone, and d of q and v one of "
            f"{', '.join(map(str, DIMS))}: leave the other options, or call it under torch.no_grad()"
        )


def results(q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", causal: bool, scale: float) -> Any:
    """Refuse tensors that do not fit; gives those for O and the logs of the sums."""
    shape, lse_shape = checked(q, k, v, None, None, None, None, None, None)
    return q.new_empty(shape), q.new_empty(lse_shape, dtype=entry.pytorch().float32)


def planned(q, k, v, o, lse, causal, scale):
    """What computes O and the logs of such tensors."""
    for name, t in (("q", q), ("k", k), ("v", v)):
        check_for_tma(name, t)
    return functools.partial(run, options=Options(scale, None, 0 if causal else None))


def run(q, k, v, o, lse, options, lengths=ALL, sink=None, aux=()):
    """Compute O and the logs of the sums, whether there is anything to see or not."""
    if not k.numel():  # nobody sees a key
        o.zero_()
        lse.fill_(-math.inf)
        if sink is not None:
            lse.copy_(sink[:, None].expand(lse.shape))
    elif o.numel():
        LAUNCHES(q, k, v, o, lse, options, lengths, sink, aux)


def keep(ctx, inputs, output):
    """Keep what the gradients need."""
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def gradients(ctx, do, _):
    """The gradients of q, k and v."""
    return *attention_backward(do.contiguous(), *ctx.saved_tensors, causal=ctx.causal, scale=ctx.scale), None, None


OPERATOR = entry.Operator(
    "numba_cute::flash_attention", planned, results, count=2, backward=gradients, setup_context=keep
)


def flash_attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, window: tuple[int | None, int | None] = (None, None),
    scale: float | None = None, softcap: float | None = None, score: Any = None, aux: tuple[Any, ...] = (),
    sink: Any = None, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, max_seqlen_q: int | None = None,
    seqused_k: Any = None, page_table: Any = None, return_lse: bool = False, out: Any = None,
) -> Any:  # fmt: skip
    """Compute softmax(scale q k^T) v of each head on Hopper. With `causal` and `scale` alone, and d that
    `attention_backward` takes, PyTorch knows its gradients, and torch.compile takes it whole.

    q: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d), bfloat16 or float16, d (of v its own) 64, 128, 192
    or 256, contiguous along it; heads is a multiple of the KV heads, each of which serves as many heads in a row.
    causal: whether a query sees no key after its own; the last query's own key is the last key. window: how many keys
    before and after its own a query sees, None for all; a query that sees none gives zeros. scale: 1 / sqrt(d) by
    default. softcap: c bends each score s to c * tanh(s / c). score: `score(s, batch, head, query, key, *aux)`, a
    function that kernels can call, gives what becomes of the scaled score s, a Float32; query and key count in their
    sequence. aux: tensors and numbers for it. sink: of each head, float32, the score of a further key without a value.
    cu_seqlens_q: int32, (sequences + 1,): q is (rows, heads, d), and the rows of sequence i begin at cu_seqlens_q[i];
    max_seqlen_q is the most rows of one. cu_seqlens_k: the same of k and v. seqused_k: int32, (batch,), the keys that
    each sequence has. page_table: int32, (batch, pages of a sequence): k and v are (pages, keys of a page, KV heads,
    d), and these the pages of each sequence. What lies in k and v behind a sequence's last key, as far as its last tile
    reaches, must be finite.
    return_lse: whether to give the logs of the sums of exponentials too, float32, (batch, heads, queries), or (heads,
    rows) of sequences. out: where to write the result.

    Raises CuteError for tensors of other types and shapes, and for options that exclude each other.
    """
    left, right, scale = chosen(causal, window, softcap, score, scale, q.shape[-1])
    torch = entry.pytorch()
    others = (left, right or None, score, softcap, sink, cu_seqlens_q, cu_seqlens_k, seqused_k, page_table, out)
    differentiable = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
    if differentiable:
        check_gradients(others, (q.shape[-1], v.shape[-1]))
    if differentiable or torch.compiler.is_compiling() and all(x is None for x in others):
        o, lse = OPERATOR(q, k, v, right == 0, scale)
        return (o, lse) if return_lse else o
    shape, lse_shape = checked(q, k, v, sink, cu_seqlens_q, cu_seqlens_k, seqused_k, page_table, max_seqlen_q)
    for name, t in (("q", q), ("k", k), ("v", v)):
        check_for_tma(name, t)
    o = q.new_empty(shape) if out is None else out
    entry.check(WHAT, "out", o, dtypes=(entry.type_name(q),), shape=shape, like=q)
    check_for_tma("out", o)
    lse = q.new_empty(lse_shape, dtype=torch.float32)
    if softcap is not None:
        score, aux = capped, (cute.Float32(softcap),)
    options = Options(scale, left, right, score, max_seqlen_q)
    lengths = Lengths(cu_seqlens_q, cu_seqlens_k, seqused_k, page_table)
    run(q, k, v, o, lse, options, lengths, sink, aux)
    return (o, lse) if return_lse else o
