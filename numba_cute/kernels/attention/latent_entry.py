# SPDX-License-Identifier: Apache-2.0
"""Attention over a latent cache for PyTorch's tensors: `latent_attention`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numba_cute as cute
from numba_cute.kernels import entry
from numba_cute.seam import CuteError

from ..gemm.operands import counter_of
from . import latent_plan
from .entry import check_for_tma
from .plan import bound, room
from .split import MOST_SPLITS

if TYPE_CHECKING:
    import torch

__all__ = ["latent_attention"]

WHAT = "latent_attention"
LATENT, ROPE = (128, 256, 512), (64,)  # columns of a key that are its value too, and the others
launches = cute.runtime.remembered(latent_plan.launches)


def planned(*given: Any) -> Any:
    """Prepare the launches of a call on such tensors."""
    q, cache, used, pages, out, _, latent, causal, scale, splits = given
    for name, t in (("q", q), ("cache", cache), ("out", out)):
        entry.check_place(WHAT, name, t)
        entry.check_target(WHAT, t)
        check_for_tma(name, t)
    sms = entry.multiprocessors(q)
    if not splits and q.numel() and cache.numel():
        splits = latent_plan.best_splits(q, cache, used, pages, sms)
    splits = splits or 1
    options = latent_plan.Options(scale, latent, causal, splits)

    def launch(q: Any, cache: Any, used: Any, pages: Any, out: Any, lse: Any) -> None:
        if not cache.numel() or pages is not None and not pages.numel():  # nobody sees a key
            out.zero_()
            lse.fill_(-math.inf)
        elif out.numel():
            work = q.new_empty(room(q, out, splits), dtype=entry.pytorch().float32) if splits > 1 else None
            stream = entry.stream_of(q)
            todo = launches(q, cache, out, lse, counter_of(q), sms, options, used, pages, work)
            with entry.on_device_of(q):
                for kernel, args, grid, block in todo:
                    bound(kernel, grid, block, stream)(*args)

    return launch


def checked(
    q: torch.Tensor, cache: torch.Tensor, used: torch.Tensor | None, pages: torch.Tensor | None, latent: int,
    causal: bool, scale: float, splits: int,
) -> Any:  # fmt: skip
    """Refuse tensors that do not fit; gives those for the result and the logs of the sums."""
    entry.check(WHAT, "q", q, dtypes=("bfloat16", "float16"), rank=4)
    batch, queries, heads, d = q.shape
    if latent not in LATENT or d - latent not in ROPE:
        raise CuteError(
            f"{WHAT}: head_dim_v is {latent!r}, and q is {entry.described(q)}; head_dim_v must be {LATENT}, and q's "
            "last mode 64 more: pad them with zeros"
        )
    if not heads:
        raise CuteError(f"{WHAT}: q is {entry.described(q)}; it must have a head")
    own, int32 = {"dtypes": (entry.type_name(q),), "like": q}, {"dtypes": ("int32",), "like": q, "optional": True}
    entry.check(WHAT, "cache", cache, shape=(batch if pages is None else None, None, d), **own)
    entry.check(WHAT, "seqused_k", used, shape=(batch,), **int32)
    entry.check(WHAT, "page_table", pages, shape=(batch, None), **int32)
    if pages is not None and (used is None or not cache.shape[1] or cache.shape[1] % 8):
        raise CuteError(
            f"{WHAT}: page_table is given; it needs seqused_k, and a cache of (pages, keys of a page, {d}), with a "
            f"multiple of 8 keys, and cache is {entry.described(cache)}"
        )
    if not scale > 0:
        raise CuteError(f"{WHAT}: scale {scale} must be positive")
    if not 0 <= splits <= MOST_SPLITS:
        raise CuteError(f"{WHAT}: num_splits is {splits!r}; it must be 1 to {MOST_SPLITS}, or 0 for the best number")
    float32 = entry.pytorch().float32
    return q.new_empty((batch, queries, heads, latent)), q.new_empty((batch, heads, queries), dtype=float32)


OPERATOR = entry.Operator("numba_cute::latent_attention", planned, checked, count=2)


def latent_attention(
    q: Any, cache: Any, *, scale: float, head_dim_v: int = 512, causal: bool = False, seqused_k: Any = None,
    page_table: Any = None, return_lse: bool = False, out: Any = None, num_splits: int = 0,
) -> Any:  # fmt: skip
    """Compute softmax(scale q k^T) v over a latent cache (MLA, DeepSeek's), on Hopper: all heads share a row of each
    key, whose first head_dim_v columns are its value too.

    q: (batch, queries, heads, head_dim_v + 64), bfloat16 or float16: of each head the query times what makes keys of
    latents, and behind it the columns that are turned by positions. cache: (batch, keys, head_dim_v + 64), q's type.
    scale: that of the model, which no shape here tells: of DeepSeek's heads of 128 + 64 it is 192 ** -0.5. head_dim_v:
    128, 256 or 512. causal: whether a query sees no key after its own; the last query's own key is the last key.
    seqused_k: int32, (batch,), the keys that each sequence has, of which it stays so; what lies behind them is not
    seen. page_table: int32, (batch, pages of a sequence): the cache is (pages, keys of a page, head_dim_v + 64), and
    these the pages of each sequence; a page has a multiple of 8 keys, 64 or more are fastest. return_lse: whether to
    give the logs of the sums of exponentials too, float32, (batch, heads, queries). out: where to write the result,
    (batch, queries, heads, head_dim_v). num_splits: as of `flash_attention`. A query that sees no key gives zeros, and
    a log of -inf.

    Several queries of a sequence, new ones of a step, want causal=True. There are no gradients: train with
    `flash_attention`, on heads of 192 and 128. CuteError: tensors of other types and shapes.

    >>> import torch
    >>> q = torch.zeros(1, 1, 64, 128 + 64, dtype=torch.float16)
    >>> cache = torch.ones(1, 64, 128 + 64, dtype=torch.float16)
    >>> with cute.simulation():
    ...     out = cute.kernels.latent_attention(q, cache, scale=192**-0.5, head_dim_v=128)
    >>> out.shape, out[0, 0, 0, 0]
    (torch.Size([1, 1, 64, 128]), tensor(1., dtype=torch.float16))
    """
    for name, x in (("scale", scale), ("head_dim_v", head_dim_v), ("num_splits", num_splits)):
        if type(x) is not int and (name != "scale" or type(x) is not float):
            raise CuteError(f"{WHAT}: {name} is {x!r}; it must be a number")
    entry.refuse_gradients(WHAT, (q, cache, out))
    given = q, cache, seqused_k, page_table, head_dim_v, bool(causal), float(scale), num_splits
    o, lse = OPERATOR(*given, into=None if out is None else (out, None))
    return (o, lse) if return_lse else o
