# SPDX-License-Identifier: Apache-2.0
"""Attention for PyTorch's tensors: `flash_attention`."""

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.seam import CuteError

from .. import entry
from ..gemm.operands import counter_of
from .gradients import DIMS, attention_backward
from .plan import ALL, NO_SCALES, Lengths, Options, arguments, best_splits, joining, room, turning
from .split import MOST_SPLITS
from .values import turned_shape

if TYPE_CHECKING:
    import torch

__all__ = ["flash_attention"]

WHAT = "flash_attention"
HEAD_DIMS = (64, 128, 192, 256)
MOST = 256
"""Calls, and kernels with their grids, that are remembered, of each so many."""


@cute.seam.traced
def capped(s, batch, head, query, key, cap):
    """Bend scores so that none is beyond `cap`."""
    return cap * cute.math.tanh(s / cap, fastmath=True)


@cute.runtime.remembered
def launches(
    q, k, v, o, lse, counter, cu_q, cu_k, used, pages, sink, work, turned, by_q, by_k, by_v, sms, options, *aux
):
    """The launches of a call: of each the kernel, its arguments, grid and block. All as of `arguments`; of `aux`
    numbers are pairs of their type and value."""
    lengths, scales = Lengths(cu_q, cu_k, used, pages), (by_q, by_k, by_v)
    numbers = tuple(x[0](x[1]) if type(x) is tuple else x for x in aux)
    made = arguments(q, k, v, o, lse, counter, sms, options, lengths, sink, numbers, work, scales, turned)
    before = () if turned is None else (turning(v, turned, used),)
    after = () if work is None else (joining(q, v, o, lse, options, lengths, sink, work),)
    return *before, made, *after


@dataclass(eq=False)
class Call:
    """What was checked and decided once for tensors of some types, shapes and strides.

    shape, lse_shape: of the results. options: with a number of splits. aux: what `softcap` gives to the scores'
    function, or None. narrow: whether elements have 8 bits.
    """

    shape: tuple[int, ...]
    lse_shape: tuple[int, ...]
    options: Options
    aux: Any
    narrow: bool

    def __call__(self, q, k, v, o, lse, lengths, sink, aux, scales):
        """Launch on tensors, wherever they lie."""
        torch, splits = entry.pytorch(), self.options.splits or 1
        stream = entry.stream_of(q)
        work = q.new_empty(room(q, v, splits), dtype=torch.float32) if splits > 1 else None
        turned = v.new_empty(turned_shape(v)) if self.narrow else None
        numbers = [(x.dtype, x.value) if isinstance(x, cute.dtypes.Scalar) else x for x in self.aux or aux]
        q, k, v, o = (t.detach() if t.requires_grad else t for t in (q, k, v, o))
        todo = launches(
            q, k, v, o, lse, counter_of(q), *lengths, sink, work, turned, *scales,
            entry.multiprocessors(q), self.options, *numbers,
        )  # fmt: skip
        with entry.on_device_of(q):
            for kernel, args, grid, block in todo:
                bound(kernel, grid, block, stream)(*args)


CALLS: dict[Any, Call] = {}


@functools.lru_cache(MOST)
def bound(kernel, grid, block, stream):
    """What launches a kernel: it may begin while the one before it ends."""
    return cute.launch(kernel, grid=grid, block=block, stream=stream, pdl=True)


def signature(t):
    """What is decided by, of a tensor or None."""
    return None if t is None else (t.dtype, t.shape, t.stride(), t.device, t.data_ptr() & 15)


def decided(tensors, said):
    """The call for tensors, and for the other arguments, as of `decide`: checked and decided, or remembered."""
    try:
        key = (entry.simulated(), *said, *map(signature, tensors))
        found = CALLS.get(key)
    except (AttributeError, TypeError):  # what is no tensor, which is refused, or does not hash
        return decide(tensors, said)
    if found is None:
        found = CALLS[key] = decide(tensors, said)
        while len(CALLS) > MOST:
            CALLS.pop(next(iter(CALLS)), None)
    return found


def decide(tensors, said):
    """Check all but a call's `aux`, and decide what is launched. tensors, said: as `flash_attention` gives them."""
    q, k, v, sink, cu_q, cu_k, used, pages, out, *scales = tensors
    causal, window, scale, softcap, score, most_queries, splits = said
    shape, lse_shape = checked(q, k, v, sink, cu_q, cu_k, used, pages, most_queries)
    for name, t in (("q", q), ("k", k), ("v", v)):
        entry.check_place(WHAT, name, t)
        entry.check_target(WHAT, t)
        check_for_tma(name, t)
    left, right, scale = chosen(causal, window, softcap, score, scale, q.shape[-1], splits)
    check_narrow(q, k, v, cu_k, pages, scales)
    if out is not None:
        entry.check(WHAT, "out", out, dtypes=(result_of(q),), shape=shape, like=q)
        check_for_tma("out", out)
    aux = None if softcap is None else (cute.Float32(softcap),)
    options = Options(scale, left, right, capped if aux else score, most_queries, splits=splits or 1)
    if not splits and k.numel() and q.numel():
        lengths = Lengths(cu_q, cu_k, used, pages)
        options = options._replace(splits=best_splits(q, k, v, options, lengths, entry.multiprocessors(q)))
    return Call(shape, lse_shape, options, aux, q.dtype.itemsize == 1)


def check_for_tma(name, t):
    """Refuse what TMA cannot reach."""
    if not entry.aligned(t) or any(s * t.dtype.itemsize % 16 for s in entry.strides(t)[:-1]):
        raise CuteError(
            f"{WHAT}: {name} is {entry.described(t)}; TMA wants it, and each of its strides, at multiples of 16 bytes: "
            f"give {name}.contiguous() or {name}.clone()"
        )


def checked(q, k, v, sink, cu_q, cu_k, used, pages, most_queries):
    """Refuse tensors that do not fit; gives the shapes of O and of the logs of the sums."""
    entry.check(WHAT, "q", q, dtypes=("bfloat16", "float16", "float8_e4m3fn"), rank=4 if cu_q is None else 3)
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
    int32 = {"dtypes": ("int32",), "like": q, "optional": True}
    entry.check(WHAT, "cu_seqlens_q", cu_q, rank=1, **int32)
    if cu_q is not None and not cu_q.shape[0]:
        raise CuteError(f"{WHAT}: cu_seqlens_q is empty; it must have one more element than there are sequences")
    batch = q.shape[0] if cu_q is None else cu_q.shape[0] - 1
    entry.check(WHAT, "cu_seqlens_k", cu_k, shape=(batch + 1,), **int32)
    entry.check(WHAT, "seqused_k", used, shape=(batch,), **int32)
    entry.check(WHAT, "page_table", pages, shape=(batch, None), **int32)
    entry.check(WHAT, "sink", sink, dtypes=("float32",), shape=(heads,), like=q, optional=True)
    if (cu_q is None) != (most_queries is None):
        raise CuteError(
            f"{WHAT}: max_seqlen_q is {most_queries!r}: it is the length of the longest sequence of cu_seqlens_q, "
            "given with it and without it not"
        )
    if most_queries is not None and (type(most_queries) is not int or most_queries < 0):
        raise CuteError(f"{WHAT}: max_seqlen_q is {most_queries!r}; it must be a number of rows, 0 or more")
    if pages is not None and (used is None or cu_k is not None or k.shape[1] % 8):
        raise CuteError(
            f"{WHAT}: page_table is given; it needs seqused_k, no cu_seqlens_k, and k and v of (pages, keys of a page, "
            f"KV heads, d), with a multiple of 8 keys, and k is {entry.described(k)}"
        )
    if cu_k is None and pages is None and k.shape[0] != batch:
        raise CuteError(f"{WHAT}: q has a batch of {batch}, and k is {entry.described(k)}")
    lse = (batch, heads, q.shape[1]) if cu_q is None else (heads, q.shape[0])
    return (*q.shape[:-1], dv), lse


def result_of(q):
    """The element type of the result."""
    name = entry.type_name(q)
    return "bfloat16" if name == "float8_e4m3fn" else name


def check_narrow(q, k, v, cu_k, pages, scales):
    """Refuse what is not for elements of 8 bits, or for them alone."""
    narrow, said = entry.type_name(q) == "float8_e4m3fn", entry.described(q)
    if narrow and (cu_k is not None or pages is not None):
        other = "page_table" if cu_k is None else "cu_seqlens_k"
        raise CuteError(
            f"{WHAT}: q is {said}, and {other} is given; k and v of 8 bits are (batch, keys, KV heads, d): pad them, "
            "and give seqused_k"
        )
    if narrow and 192 in (q.shape[-1], v.shape[-1]):
        raise CuteError(f"{WHAT}: q is {said}; a head dimension of 192 is not for 8 bits: pad it to 256")
    for name, t in zip(("q_descale", "k_descale", "v_descale"), scales):
        if t is not None and not narrow:
            raise CuteError(f"{WHAT}: {name} is given, and q is {said}; it is for float8_e4m3fn alone")
        entry.check(WHAT, name, t, dtypes=("float32",), shape=(k.shape[0], k.shape[-2]), like=q, optional=True)


def chosen(causal, window, softcap, score, scale, d, splits):
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
    if type(splits) is not int or not 0 <= splits <= MOST_SPLITS:
        raise CuteError(f"{WHAT}: num_splits is {splits!r}; it must be 1 to {MOST_SPLITS}, or 0 for what is best")
    scale = 1 / math.sqrt(d) if scale is None else scale
    if not scale > 0:
        raise CuteError(f"{WHAT}: scale {scale} must be positive")
    return left, right, float(scale)


def check_gradients(others, q, v):
    """Refuse options, `others`, of which there are no gradients."""
    if any(x is not None for x in others) or (q.shape[-1], v.shape[-1]) not in DIMS or q.dtype.itemsize == 1:
        raise CuteError(
            f"{WHAT}: a gradient is asked for, which there is with causal and scale alone, of 16 bits, and d of q and "
            f"v one of {', '.join(map(str, DIMS))}: leave the other options, or call it under torch.no_grad()"
        )


def results(q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", causal: bool, scale: float) -> Any:
    """Refuse tensors that do not fit; gives those for O and the logs of the sums."""
    shape, lse_shape = checked(q, k, v, None, None, None, None, None, None)
    torch = entry.pytorch()
    return q.new_empty(shape, dtype=getattr(torch, result_of(q))), q.new_empty(lse_shape, dtype=torch.float32)


def planned(q, k, v, o, lse, causal, scale):
    """What computes O and the logs of such tensors."""
    said = (causal, (None, None), scale, None, None, None, 0)
    return functools.partial(run, decided((q, k, v, *[None] * 9), said))


def run(call, q, k, v, o, lse, lengths=ALL, sink=None, aux=(), scales=NO_SCALES):
    """Compute O and the logs of the sums, whether there is anything to see or not."""
    if not k.numel():  # nobody sees a key
        o.zero_()
        lse.fill_(-math.inf)
        if sink is not None:
            lse.copy_(sink[:, None].expand(lse.shape))
    elif o.numel():
        call(q, k, v, o, lse, lengths, sink, aux, scales)


def keep(ctx, inputs, output):
    """Keep what the gradients need."""
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def gradients(ctx, do, dlse):
    """Give the gradients of q, k and v, which have none; the logs of the sums have no gradient."""
    if dlse is not None:
        raise CuteError(
            f"{WHAT}: a gradient of the logs of the sums is asked for, which there is not: give lse.detach()"
        )
    if do is None:
        return (None,) * 5
    entry.refuse_gradients("attention_backward", (do, *ctx.saved_tensors))
    return *attention_backward(do.contiguous(), *ctx.saved_tensors, causal=ctx.causal, scale=ctx.scale), None, None


OPERATOR = entry.Operator(
    "numba_cute::flash_attention", planned, results, count=2, backward=gradients, setup_context=keep
)


def flash_attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, window: tuple[int | None, int | None] = (None, None),
    scale: float | None = None, softcap: float | None = None, score: Any = None, aux: tuple[Any, ...] = (),
    sink: Any = None, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, max_seqlen_q: int | None = None,
    seqused_k: Any = None, page_table: Any = None, return_lse: bool = False, out: Any = None, num_splits: int = 0,
    q_descale: Any = None, k_descale: Any = None, v_descale: Any = None,
) -> Any:  # fmt: skip
    """Compute softmax(scale q k^T) v of each head on Hopper. With `causal` and `scale` alone, and d that
    `attention_backward` takes, PyTorch knows its gradients, and torch.compile takes it whole.

    q: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d), bfloat16, float16, or float8_e4m3fn, whose result
    is bfloat16; d (of v its own) 64, 128, 192 (not of 8 bits) or 256, contiguous along it; heads is a multiple of the
    KV heads, each of which serves as many heads in a row.
    causal: whether a query sees no key after its own; the last query's own key is the last key. window: how many keys
    before and after its own a query sees, None for all; a query that sees none gives zeros. scale: 1 / sqrt(d) by
    default. softcap: c bends each score s to c * tanh(s / c). score: `score(s, batch, head, query, key, *aux)`, a
    function that kernels can call, gives what becomes of the scaled score s, a Float32; query and key count in their
    sequence. aux: tensors and numbers for it. sink: of each head, float32, the score of a further key without a value.
    cu_seqlens_q: int32, (sequences + 1,): q is (rows, heads, d), and the rows of sequence i begin at cu_seqlens_q[i];
    max_seqlen_q is the most rows of one. cu_seqlens_k: the same of k and v. seqused_k: int32, (batch,), the keys that
    each sequence has. page_table: int32, (batch, pages of a sequence): k and v are (pages, keys of a page, KV heads,
    d), and these the pages of each sequence. What lies in k and v behind a sequence's last key is not seen.
    return_lse: whether to give the logs of the sums of exponentials too, float32, (batch, heads, queries), or (heads,
    rows) of sequences. out: where to write the result. num_splits: CTAs that share the keys of some queries, so that
    few queries over many keys keep the whole GPU busy: 1 for none, up to 256; 0 chooses, by shapes and not by lengths.
    It changes the last bits; with the same number the result is the same each time. q_descale, k_descale, v_descale: of
    float8_e4m3fn what the elements of q, k and v are multiplied with, float32, (batch, KV heads), or None for 1.

    Raises CuteError for tensors of other types and shapes, and for options that exclude each other.
    """
    left, right, factor = chosen(causal, window, softcap, score, scale, q.shape[-1], num_splits)
    torch, lengths = entry.pytorch(), Lengths(cu_seqlens_q, cu_seqlens_k, seqused_k, page_table)
    scales = q_descale, k_descale, v_descale
    given = q, k, v, sink, out, *scales, *aux
    entry.refuse_tangents(WHAT, given)
    differentiable = torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in given)
    if differentiable or torch.compiler.is_compiling():
        others = (left, right or None, softcap, score, sink, *lengths, out, num_splits or None, *scales)
        if differentiable:
            check_gradients((*others, *aux), q, v)
        if all(x is None for x in others):
            o, lse = OPERATOR(q, k, v, right == 0, factor)
            return (o, lse) if return_lse else o
    said = (causal, window, scale, softcap, score, max_seqlen_q, num_splits)
    call = decided((q, k, v, sink, *lengths, out, *scales), said)
    o = q.new_empty(call.shape, dtype=torch.bfloat16 if call.narrow else q.dtype) if out is None else out
    lse = q.new_empty(call.lse_shape, dtype=torch.float32)
    run(call, q, k, v, o, lse, lengths, sink, aux, scales)
    return (o, lse) if return_lse else o
