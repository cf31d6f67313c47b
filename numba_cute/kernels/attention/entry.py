# SPDX-License-Identifier: Apache-2.0
"""Attention for PyTorch's tensors: `flash_attention`."""

import itertools
import math
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.seam import CuteError
from numba_cute.seam.ground.records import dataclass

from .. import entry
from ..carried import exact
from ..gemm.operands import counter_of
from ..memo import remembered
from . import plan
from .blocks import check_for_gradients, check_listed, of_blocks
from .options import DIMS, How, aux_of, chosen, how_of, options_of
from .plan import ALL, NO_SCALES, Lengths, Options, arguments, bound, joining, room, turning
from .values import turned_shape

if TYPE_CHECKING:
    import torch

__all__ = ["flash_attention"]

WHAT = "flash_attention"
HEAD_DIMS = (64, 128, 192, 256)
MOST = 256
"""Calls that are remembered."""


@cute.runtime.remembered
def launches(
    q, k, v, o, lse, counter, cu_q, cu_k, used, pages, sink, work, turned, by_q, by_k, by_v, counts, lists, sms,
    options, own, *aux,
):  # fmt: skip
    """The launches of a call: of each the kernel, its arguments, grid and block. All as of `arguments`; counts, lists:
    as of `visits.of`, or None. aux: what the functions of the scores, its `own` first, and of the mask take; numbers
    are pairs of their type and value."""
    lengths, scales = Lengths(cu_q, cu_k, used, pages), (by_q, by_k, by_v)
    numbers = tuple(x[0](x[1]) if type(x) is tuple else x for x in aux)
    listed = None if counts is None else (counts, lists)
    made = arguments(
        q,
        k,
        v,
        o,
        lse,
        counter,
        sms,
        options,
        lengths,
        sink,
        numbers[:own],
        work,
        scales,
        turned,
        numbers[own:],
        listed,
    )
    before = () if turned is None else (turning(v, turned, used),)
    after = () if work is None else (joining(q, v, o, lse, options, lengths, sink, work),)
    return *before, made, *after


@dataclass(eq=False)
class Call:
    """A call that was checked and decided once for tensors of some types, shapes and strides.

    shape, lse_shape: of the results. options: with a number of splits. narrow: whether elements have 8 bits. family:
    the GPU's. target: its record, where its tensor cores are a warp's.
    """

    shape: tuple[int, ...]
    lse_shape: tuple[int, ...]
    options: Options
    narrow: bool
    family: str
    target: Any = None

    def __call__(self, q, k, v, o, lse, lengths, sink, aux, scales, listed):
        """Launch on tensors, wherever they lie. aux: as `aux_of` gives it."""
        torch, splits = entry.pytorch(), self.options.splits or 1
        stream = entry.stream_of(q)
        work = q.new_empty(room(q, v, splits), dtype=torch.float32) if splits > 1 else None
        turned = v.new_empty(turned_shape(v)) if self.narrow else None
        own, of_mask = aux
        numbers = [(x.dtype, x.value) if isinstance(x, cute.dtypes.Scalar) else x for x in (*own, *of_mask)]
        q, k, v, o = (t.detach() if t.requires_grad else t for t in (q, k, v, o))
        lists = listed or (None, None)
        if self.target is not None:
            of_warps = *lists, self.target.name, self.options, len(own)
            todo = plans_of(self.family).launches(q, k, v, o, lse, *lengths, sink, work, *of_warps, *numbers)
        else:
            rest = entry.multiprocessors(q), self.options, len(own), *numbers
            given = q, k, v, o, lse, counter_of(q), *lengths, sink, work
            if self.family == entry.TENSOR_MEMORY:
                todo = plans_of(self.family).launches(*given, *lists, *rest)
            else:
                todo = launches(*given, turned, *scales, *lists, *rest)
        with entry.on_device_of(q):
            for kernel, args, grid, block in todo:
                bound(kernel, grid, block, stream, self.target is None)(*args)


def plans_of(family):
    """The module that plans for a family of GPUs."""
    if family == entry.WARPS:
        from . import warps_plan

        return warps_plan
    if family == entry.TENSOR_MEMORY:
        from . import umma_plan

        return umma_plan
    return plan


CALLS: dict[Any, Call] = {}
JUDGED: dict[Any, bool] = {}


def signature(t):
    """Return the facts of a tensor, or None, that a call is decided by."""
    return None if t is None else (t.dtype, t.shape, t.stride(), t.device, t.data_ptr() & 15)


def decided(tensors, said):
    """The call for tensors, and for the other arguments, as of `decide`: checked and decided, or remembered."""
    try:
        key = (entry.simulated(), exact(said), *map(signature, tensors))
        found = CALLS.get(key)
    except (AttributeError, TypeError):  # what is not a tensor, which is refused, or does not hash
        return decide(tensors, said)
    if found is None:
        found = CALLS[key] = decide(tensors, said)
        while len(CALLS) > MOST:
            CALLS.pop(next(iter(CALLS)), None)
    return found


def decide(tensors, said):
    """Check all but what functions take, and decide what is launched. tensors: of `flash_attention`. said: as of
    `said_of`."""
    q, k, v, sink, cu_q, cu_k, used, pages, out, by_q, by_k, by_v, *listed = tensors
    scales = by_q, by_k, by_v
    shape, lse_shape = checked(q, k, v, sink, cu_q, cu_k, used, pages, said.most_queries)
    for name, t in (("q", q), ("k", k), ("v", v)):
        entry.check_place(WHAT, name, t)
        family = entry.check_target(WHAT, t, entry.WARPGROUPS, entry.WARPS, entry.TENSOR_MEMORY)
        check_for_tma(name, t)
    target = entry.target_at(q) if family == entry.WARPS else None
    if target is not None and q.dtype.itemsize == 1:
        raise CuteError(f"{WHAT}: q is {entry.described(q)}; {target.name} has no kernel for float8 yet: convert it")
    check_listed(WHAT, q, k, Lengths(cu_q, cu_k, used, pages), listed, said)
    options = options_of(WHAT, said, q.shape[-1])
    plans = plans_of(family)
    if target is not None:
        plans.check(options)
    elif family == entry.TENSOR_MEMORY:
        plans.check(options, q.dtype.itemsize == 1)
    check_narrow(q, k, v, cu_k, pages, scales)
    if out is not None:
        entry.check(WHAT, "out", out, dtypes=(result_of(q),), shape=shape, like=q)
        check_for_tma("out", out)
    splits = options.splits or 1
    if not options.splits and k.numel() and q.numel():
        lengths = Lengths(cu_q, cu_k, used, pages)
        given = q, k, v, options._replace(splits=1), lengths, entry.multiprocessors(q)
        splits = plans.best_splits(*given, *(() if target is None else (target,)))
    return Call(shape, lse_shape, options._replace(splits=splits), q.dtype.itemsize == 1, family, target)


def said_of(how):
    """Give the options that a call is decided by: all but numbers of functions, and what gradients want to know."""
    most_keys = None if how.block is None else how.most_keys
    return how._replace(most_keys=most_keys, deterministic=False, numbers=(), mask_numbers=())


def check_for_tma(name, t):
    """Refuse what TMA, and copies of 16 bytes, cannot reach."""
    if not entry.aligned(t) or any(s * t.dtype.itemsize % 16 for s in entry.strides(t)[:-1]):
        raise CuteError(
            f"{WHAT}: {name} is {entry.described(t)}; copies want it, and each of its strides, at multiples of 16 "
            f"bytes: give {name}.contiguous() or {name}.clone()"
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
        raise CuteError(f"{WHAT}: q has {heads} heads, which is not a multiple of the {kv_heads} of k and v")
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
    narrow, said = entry.type_name(q) == "float8_e4m3fn", lambda: entry.described(q)  # torch.compile traces this
    if narrow and (cu_k is not None or pages is not None):
        other = "page_table" if cu_k is None else "cu_seqlens_k"
        raise CuteError(
            f"{WHAT}: q is {said()}, and {other} is given; k and v of 8 bits are (batch, keys, KV heads, d): pad them, "
            "and give seqused_k"
        )
    if narrow and 192 in (q.shape[-1], v.shape[-1]):
        raise CuteError(f"{WHAT}: q is {said()}; a head dimension of 192 is not for 8 bits: pad it to 256")
    for name, t in zip(("q_descale", "k_descale", "v_descale"), scales):
        if t is not None and not narrow:
            raise CuteError(f"{WHAT}: {name} is given, and q is {said()}; it is for float8_e4m3fn alone")
        if t is not None:
            entry.check(WHAT, name, t, dtypes=("float32",), shape=(k.shape[0], k.shape[-2]), like=q)


def check_gradients(q, others, aux, block):
    """Refuse what has no gradient. others: by their names, options of which there is none. aux: tensors of the
    functions of the scores and of the mask. block: queries and keys of the mask's blocks, or None."""
    given = [name for name, x in others.items() if x is not None]
    if given or q.dtype.itemsize == 1:
        why = f"with {', '.join(given)}" if given else f"and q is {entry.type_name(q)}"
        raise CuteError(
            f"{WHAT}: a gradient is asked for, {why}, of which there is none: leave it out, or call it under "
            "torch.no_grad()"
        )
    check_for_gradients(WHAT, q, block)
    if any(t.requires_grad for t in aux):
        raise CuteError(
            f"{WHAT}: a tensor of aux requires a gradient, and `score` and `mask` have none for what they read: give "
            "x.detach(), or call it under torch.no_grad()"
        )


def results(
    q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", sink: "torch.Tensor | None", cu_q: "torch.Tensor | None",
    cu_k: "torch.Tensor | None", used: "torch.Tensor | None", pages: "torch.Tensor | None",
    by_q: "torch.Tensor | None", by_k: "torch.Tensor | None", by_v: "torch.Tensor | None",
    listed: "list[torch.Tensor]", aux: "list[torch.Tensor]", how: "object",
) -> Any:  # fmt: skip
    """Refuse tensors that do not fit; gives those for O and the logs of the sums."""
    said = How(*how)  # type: ignore[misc]
    shape, lse_shape = checked(q, k, v, sink, cu_q, cu_k, used, pages, said.most_queries)
    check_listed(WHAT, q, k, Lengths(cu_q, cu_k, used, pages), listed, said)
    torch = entry.pytorch()
    return q.new_empty(shape, dtype=getattr(torch, result_of(q))), q.new_empty(lse_shape, dtype=torch.float32)


def planned(q, k, v, sink, cu_q, cu_k, used, pages, by_q, by_k, by_v, listed, aux, o, lse, how):
    """Plan the work that computes O and the logs of such tensors."""
    how = How(*how)
    call = decided((q, k, v, sink, cu_q, cu_k, used, pages, None, by_q, by_k, by_v, *listed[:2]), said_of(how))

    def launch(q, k, v, sink, cu_q, cu_k, used, pages, by_q, by_k, by_v, listed, aux, o, lse):
        lengths = Lengths(cu_q, cu_k, used, pages)
        run(call, q, k, v, o, lse, lengths, sink, aux_of(how, aux), (by_q, by_k, by_v), listed[:2])

    return launch


def run(call, q, k, v, o, lse, lengths=ALL, sink=None, aux=((), ()), scales=NO_SCALES, listed=None):
    """Compute O and the logs of the sums, whether there is anything to see or not. aux: as `aux_of` gives it."""
    if not k.numel():  # nobody sees a key
        o.zero_()
        lse.fill_(-math.inf)
        if sink is not None:
            lse.copy_(sink[:, None].expand(lse.shape))
    elif o.numel():
        call(q, k, v, o, lse, lengths, sink, aux, scales, listed)


def keep(ctx, inputs, output):
    """Keep what the gradients need."""
    q, k, v, sink, cu_q, cu_k, used, _, _, _, _, listed, aux, ctx.how = inputs
    ctx.save_for_backward(q, k, v, sink, cu_q, cu_k, used, *output, *listed, *aux)
    ctx.listed = len(listed)
    ctx.set_materialize_grads(False)


def gradients(ctx, do, dlse):
    """Give the gradients of q, k, v and the sink."""
    from .gradients import OPERATOR as BACKWARD

    q, k, v, sink, cu_q, cu_k, used, o, lse, *aux = ctx.saved_tensors
    listed, aux = aux[: ctx.listed], aux[ctx.listed :]
    rest = (*(None,) * 7, [None] * len(listed), [None] * len(aux), None)
    if do is None and dlse is None:
        return (None, None, None, None, *rest)
    do = entry.pytorch().zeros_like(o) if do is None else do.contiguous()
    if isinstance(dlse, entry.pytorch().Tensor):
        dlse = dlse.contiguous()
    dq, dk, dv, dsink = BACKWARD(do, q, k, v, o, lse, dlse, sink, cu_q, cu_k, used, listed, aux, ctx.how)
    return (dq, dk, dv, None if sink is None else dsink, *rest)


OPERATOR = entry.Operator(
    "numba_cute::flash_attention", planned, results, count=2, backward=gradients, setup_context=keep
)


def dims_of(q, k, v, wanted):
    """The dimensions of heads that q, k and v are filled to, those that there are next: their own, if they are such.
    wanted: whether there must be gradients of them."""
    d, dv = q.shape[-1], v.shape[-1]
    if q.dtype.itemsize == 1 or (d, dv) in DIMS or (not wanted and d in HEAD_DIMS and dv in HEAD_DIMS):
        return d, dv
    pairs = DIMS if wanted else tuple(itertools.product(HEAD_DIMS, HEAD_DIMS))
    fit = [pair for pair in pairs if pair[0] >= d and pair[1] >= dv]
    return min(fit) if fit and k.shape[-1] == d else (d, dv)  # which is refused


def filled(t, d):
    """Give a tensor with zeros behind its heads, of the dimension d then."""
    return t if t.shape[-1] == d else entry.pytorch().nn.functional.pad(t, (0, d - t.shape[-1]))


def flash_attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, window: tuple[int | None, int | None] = (None, None),
    scale: float | None = None, softcap: float | None = None, score: Any = None, aux: tuple[Any, ...] = (),
    mask: Any = None, mask_aux: tuple[Any, ...] = (), blocks: Any = None, sink: Any = None, cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None, max_seqlen_q: int | None = None, seqused_k: Any = None, page_table: Any = None,
    return_lse: bool = False, out: Any = None, num_splits: int = 0, q_descale: Any = None, k_descale: Any = None,
    v_descale: Any = None, max_seqlen_k: int | None = None, deterministic: bool = False,
) -> Any:  # fmt: skip
    """Compute softmax(scale q k^T) v of each head, on Hopper and, not of float8, on sm_100a, sm_103a (not run there
    yet), sm_80 to sm_89, sm_120 and sm_121. PyTorch knows its gradients, of 16 bits and without pages and out, of q, k,
    v, the sink and the logs; torch.compile takes it whole, and torch.autocast makes q, k and v of its type.

    q: (batch, queries, heads, d), k, v: (batch, keys, KV heads, d), bfloat16, float16, or float8_e4m3fn, whose result
    is bfloat16; d (of v its own) 64, 128, 192 (not of 8 bits) or 256, contiguous along it, others of 16 bits up to 256
    are copied to the next of these; heads is a multiple of the KV heads, each of which serves as many heads in a row.
    causal: whether a query sees no key after its own; the last query's own key is the last key. window: how many keys
    before and after its own a query sees, None for all; a query that sees none gives zeros. scale: 1 / sqrt(d) by
    default. softcap: c bends each score s to c * tanh(s / c). score: `score(s, batch, head, query, key, *aux)`, a
    function that kernels can call, gives what becomes of the scaled score s, a Float32; query and key count in their
    sequence. aux: tensors and numbers for it. mask: `mask(batch, head, query, key, *mask_aux)`, such a function too,
    says whether the query sees the key, a boolean; causal and window hide keys beside it. blocks: what `block_mask` or
    `block_mask_from` gives, in the place of mask and mask_aux: other blocks are neither read nor computed. sink: of
    each head, float32, the score of a further key without a value. cu_seqlens_q: int32, (sequences + 1,): q is (rows,
    heads, d), and the rows of sequence i begin at cu_seqlens_q[i]; max_seqlen_q is the most rows of one. cu_seqlens_k:
    the same of k and v; max_seqlen_k, the most of one, spares gradients some work. seqused_k: int32, (batch,), the keys
    that each sequence has. page_table: int32, (batch, pages of a sequence): k and v are (pages, keys of a page, KV
    heads, d), and these the pages of each sequence. What lies in k and v behind a sequence's last key is not seen.
    return_lse: whether to give the logs of the sums of exponentials too, float32, (batch, heads, queries), or (heads,
    rows) of sequences. out: where to write the result. num_splits: CTAs that share the keys of some queries, so that
    few queries over many keys keep the whole GPU busy: 1 for none, up to 256; 0 chooses, by shapes and not by lengths.
    It changes the last bits; with the same number the result is the same each time. q_descale, k_descale, v_descale: of
    float8_e4m3fn what the elements of q, k and v are multiplied with, float32, (batch, KV heads), or None for 1.
    deterministic: whether gradients must be the same each time, as of `attention_backward`; so they are too where
    torch.use_deterministic_algorithms says it.

    Raises CuteError for tensors of other types and shapes, and for options that exclude each other.

    >>> import torch
    >>> q, k, v = [torch.ones(1, 16, 2, 64, dtype=torch.float16) for _ in range(3)]
    >>> with cute.simulation():
    ...     out = cute.kernels.flash_attention(q, k, v, causal=True)
    >>> out.shape, torch.equal(out, v)
    (torch.Size([1, 16, 2, 64]), True)
    """
    return prepared(
        *entry.under_autocast(q, k, v), causal=causal, window=window, scale=scale, softcap=softcap, score=score,
        aux=aux, mask=mask, mask_aux=mask_aux, blocks=blocks, sink=sink, cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k, max_seqlen_q=max_seqlen_q, seqused_k=seqused_k, page_table=page_table,
        return_lse=return_lse, out=out, num_splits=num_splits, q_descale=q_descale, k_descale=k_descale,
        v_descale=v_descale, max_seqlen_k=max_seqlen_k, deterministic=deterministic,
    )()  # fmt: skip


def prepared(
    q, k, v, *, causal=False, window=(None, None), scale=None, softcap=None, score=None, aux=(), mask=None,
    mask_aux=(), blocks=None, sink=None, cu_seqlens_q=None, cu_seqlens_k=None, max_seqlen_q=None, seqused_k=None,
    page_table=None, return_lse=False, out=None, num_splits=0, q_descale=None, k_descale=None, v_descale=None,
    max_seqlen_k=None, deterministic=False, functions=False,
):  # fmt: skip
    """Check a call of `flash_attention`, and give what makes it. What is refused is refused here, before anything is
    launched or q, k and v are read; functions that do not compile where `functions` says so, else at the launch."""
    torch, lengths = entry.pytorch(), Lengths(cu_seqlens_q, cu_seqlens_k, seqused_k, page_table)
    scales = q_descale, k_descale, v_descale
    mask, mask_aux, listed, *block = of_blocks(WHAT, blocks, mask, mask_aux)
    given = q, k, v, sink, out, *scales, *aux, *mask_aux
    differentiable = False
    if not entry.ordinary(given):
        if not torch.compiler.is_compiling():
            entry.refuse_tangents(WHAT, given)
        differentiable = torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in given)
    if max_seqlen_k is not None and (type(max_seqlen_k) is not int or max_seqlen_k < 0):
        raise CuteError(f"{WHAT}: max_seqlen_k is {max_seqlen_k!r}; it must be a number of rows, 0 or more")
    deterministic = deterministic or torch.are_deterministic_algorithms_enabled()
    how, tensors = how_of(
        causal, window, scale, softcap, score, aux, max_seqlen_q, max_seqlen_k, num_splits, deterministic, q.shape[-1],
        mask, mask_aux, *block,
    )  # fmt: skip
    if differentiable:
        named = zip(("page_table", "out", "q_descale", "k_descale", "v_descale"), (page_table, out, *scales))
        check_gradients(q, dict(named), tensors, block[0])
    (d, width), dv = dims_of(q, k, v, differentiable), v.shape[-1]
    there = out if dv == width else None
    if out is not None and there is None:  # it is copied to
        entry.check(WHAT, "out", out, dtypes=(result_of(q),), shape=(*q.shape[:-1], dv), last=False, like=q)
    rest = sink, lengths, scales, listed, tensors, how, there
    call = _call((q, k, v), (d, d, width), *rest)
    compute = lambda: _computed(call, filled(q, d), filled(k, d), filled(v, width), *rest)  # noqa: E731
    if functions and call is not None and (score is not None or mask is not None):
        from ..ahead import judge

        kinds = tuple(x[0] if type(x) is tuple else type(x) for x in (*how.numbers, *how.mask_numbers))
        remembered(JUDGED, [q, k, v, sink, *lengths, *scales, *tensors], (said_of(how), kinds), judge, (compute,))

    def attend():
        o, lse = compute()
        if dv != width:
            o = o[..., :dv] if out is None else out.copy_(o[..., :dv])
        return (o, lse) if return_lse else o

    return attend


def _call(tensors, dims, sink, lengths, scales, listed, aux, how, out):
    """The decided call for q, k and v when they are filled; None where the operator is called, which decides."""
    if OPERATOR.watched((*tensors, sink, *lengths, *scales, listed, aux)):
        if out is not None:
            raise CuteError(f"{WHAT}: out is given, and torch.compile runs, which does not know of it: leave it out")
        q, k, v = tensors
        of_scores = how.causal, how.window, how.softcap, how.score, how.scale
        chosen(WHAT, *of_scores, q.shape[-1], how.splits)  # else when it runs
        check_narrow(q, k, v, lengths.cu_k, lengths.pages, scales)
        return None
    like = (t if t.shape[-1] == d else t.new_empty((*t.shape[:-1], d)) for t, d in zip(tensors, dims))
    return decided((*like, sink, *lengths, out, *scales, *listed[:2]), said_of(how))


def _computed(call, q, k, v, sink, lengths, scales, listed, tensors, how, out):
    """O and the logs of the sums, of heads that the kernels take. call: as of `_call`."""
    if call is None:  # a plain tuple, for torch.compile makes no named one anew
        return OPERATOR.traced(q, k, v, sink, *lengths, *scales, listed, tensors, tuple(how))
    o = q.new_empty(call.shape, dtype=entry.pytorch().bfloat16 if call.narrow else q.dtype) if out is None else out
    lse = q.new_empty(call.lse_shape, dtype=entry.pytorch().float32)
    run(call, q, k, v, o, lse, lengths, sink, aux_of(how, tensors), scales, listed[:2])
    return o, lse
