# SPDX-License-Identifier: Apache-2.0
"""Attention over a cache to which the keys and values of this step are appended: `attention_with_cache`.

A small kernel writes them where each sequence ends, counts them, and turns keys and queries by their positions' angles;
attention, which begins while it ends, reads the cache after it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.kernels import entry
from numba_cute.seam import CuteError

from .entry import check_for_tma, prepared
from .plan import bound, rows_first, view

if TYPE_CHECKING:
    import torch

__all__ = ["attention_with_cache"]

WHAT = "attention_with_cache"
THREADS = 128
BYTES = 16  # that a thread moves at once
OPTIONS = (
    "causal", "window", "scale", "softcap", "score", "aux", "mask", "mask_aux", "sink", "return_lse", "out",
    "num_splits", "q_descale", "k_descale", "v_descale",
)  # fmt: skip
"""Those of `flash_attention` that there are here too."""
FAMILIES = entry.WARPS, entry.WARPGROUPS, entry.TENSOR_MEMORY


@cuda.jit
def load(source, column):
    """Read 16 bytes of a row from `column` on to registers."""
    held = cute.make_rmem_tensor(BYTES * 8 // source.element_type.width, source.element_type)
    words = cute.recast_tensor(held, cute.Uint32)
    found = arch.load(cute.recast_ptr(source.iterator + column, dtype=cute.Uint32), cute.Uint32, count=4)
    for i in cute.range_constexpr(4):
        words[i] = found[i]
    return held


@cuda.jit
def store(held, target, column):
    """Write registers to a row from `column` on."""
    words = cute.recast_tensor(held, cute.Uint32)
    to = cute.recast_ptr(target.iterator + column, dtype=cute.Uint32)
    arch.store(to, (words[0], words[1], words[2], words[3]))


@functools.cache
def make_append(dtype, neighbours, overlaps=True):
    """The kernel that appends. Its grid: (new keys of a sequence, sequences). dtype: of what is moved. neighbours: as
    of `rotary`. overlaps: whether attention's launch begins while it ends (sm_90 on)."""
    vector = BYTES * 8 // dtype.width

    @cuda.jit
    def turn(source, column, own, cos, sin, at):
        """Turn the elements of a row from `column` on, `own`, by the angles of position `at`."""
        half = cute.Int32(cos.shape[1])
        if column < 2 * half:
            other = load(source, column if neighbours else column + half if column < half else column - half)
            first = column < half
            for e in cute.range_constexpr(vector):
                angle = (column + e) // 2 if neighbours else column % half + e
                c, s = cute.Float32(cos[at, angle]), cute.Float32(sin[at, angle])
                y = cute.Float32(other[e ^ 1 if neighbours else e]) * s
                minus = e % 2 == 0 if neighbours else first
                own[e] = (cute.Float32(own[e]) * c + cute.where(minus, -y, y)).to(dtype)

    @cuda.jit
    def move(source, target, token, place, b, of, cos, sin, at):
        """Move all heads of a token; where there are angles, turned."""
        each = cute.Int32(source.shape[1] // vector)
        for item in range(arch.thread_idx()[0], each * source.shape[2], THREADS):
            head, column = item // each, item % each * vector
            row = source[token, None, head, b]
            held = load(row, column)
            if cute.const_expr(cos is not None):
                turn(row, column, held, cos, sin, at)
            store(held, target[place, None, head, of], column)

    @cuda.jit(launch_bounds=(THREADS, 1))  # else the assembler takes fewer registers than it needs
    def append(k, v, k_cache, v_cache, lengths, pages, q, turned, cos, sin, used, room):
        token, b, _ = arch.block_idx()
        if cute.const_expr(overlaps):
            arch.griddepcontrol_launch_dependents()
            arch.griddepcontrol_wait()
        at = cute.Int32(lengths[b] + token)
        place, of = at, cute.Int32(b)
        if cute.const_expr(pages is not None):
            page = cute.Int32(k_cache.shape[0])
            of, place = cute.Int32(pages[b, max(0, min(at, room - 1)) // page]), cute.Int32(at % page)
        if at >= 0 and at < room:
            move(k, k_cache, token, place, b, of, cos, sin, at)
            move(v, v_cache, token, place, b, of, None, None, at)
            if cute.const_expr(q is not None):
                move(q, turned, token, token, b, b, cos, sin, at)
        if token == 0 and arch.thread_idx()[0] == 0:
            used[b] = cute.Int32(min(at + k.shape[0], room))

    return append


@cute.runtime.remembered
def appending(k_cache, v_cache, k_new, v_new, lengths, pages, q, cos, sin, used, turned, interleaved, overlaps=True):
    """The kernel that appends, its arguments, grid and block. overlaps: as of `make_append`."""
    room = k_cache.shape[1] * (1 if pages is None else pages.shape[1])
    arrays = [rows_first(x) for x in (k_new, v_new, k_cache, v_cache)]
    of_q = [None if q is None else rows_first(x) for x in (q, turned)]
    angles = [None if x is None else view(x) for x in (cos, sin)]
    numbers = view(lengths), None if pages is None else view(pages)
    args = *arrays, *numbers, *of_q, *angles, view(used), cute.Int32(room)
    kernel = make_append(entry.element_type(k_new), interleaved, overlaps)
    return kernel, args, (k_new.shape[1], k_new.shape[0], 1), THREADS


def check_reached(k_cache: Any, v_cache: Any, k_new: Any, v_new: Any, q: Any) -> str:
    """Refuse tensors that the kernels cannot take; gives the GPU's family. q: or None, if it does not turn."""
    for name, t in zip(("k_cache", "v_cache", "k_new", "v_new"), (k_cache, v_cache, k_new, v_new)):
        entry.check_place(WHAT, name, t)
        family = entry.check_target(WHAT, t, *FAMILIES)
        check_for_tma(name, t)
    if k_cache.dtype.itemsize == 1 and family != entry.WARPGROUPS:
        raise CuteError(
            f"{WHAT}: k_cache is {entry.described(k_cache)}; {entry.target_at(k_cache).name} has no kernel for float8 "
            "yet: convert it"
        )
    if q is not None:
        check_for_tma("q", q)
    return family


def planned(*given: Any) -> Any:
    """Prepare the launch that appends such tensors, and gives the lengths after."""
    (k_cache, v_cache, k_new, v_new, *_), interleaved = given[:-1], given[-1]
    overlaps = check_reached(k_cache, v_cache, k_new, v_new, given[6]) != entry.WARPS

    def launch(*tensors: Any) -> None:
        if not tensors[2].numel():
            tensors[9].copy_(tensors[4])
            return
        kernel, args, grid, block = appending(*tensors, interleaved, overlaps)
        with entry.on_device_of(tensors[0]):
            bound(kernel, grid, block, entry.stream_of(tensors[0]), overlaps)(*args)

    return launch


def checked(
    k_cache: torch.Tensor, v_cache: torch.Tensor, k_new: torch.Tensor, v_new: torch.Tensor, lengths: torch.Tensor,
    pages: torch.Tensor | None, q: torch.Tensor | None, cos: torch.Tensor | None, sin: torch.Tensor | None,
    interleaved: bool,
) -> Any:  # fmt: skip
    """Refuse tensors that do not fit; gives those for the lengths after, and for the turned queries."""
    kinds = ("bfloat16", "float16", "float8_e4m3fn") if q is None else ("bfloat16", "float16")
    entry.check(WHAT, "k_new", k_new, dtypes=kinds, rank=4)
    batch, new, heads, d = k_new.shape
    own = {"dtypes": (entry.type_name(k_new),), "like": k_new}
    entry.check(WHAT, "v_new", v_new, shape=(batch, new, heads, None), **own)
    outer = (None if pages is not None else batch, None, heads)
    entry.check(WHAT, "k_cache", k_cache, shape=(*outer, d), **own)
    entry.check(WHAT, "v_cache", v_cache, shape=(*k_cache.shape[:3], v_new.shape[-1]), **own)
    entry.check(WHAT, "seqused_k", lengths, dtypes=("int32",), shape=(batch,), like=k_new)
    entry.check(WHAT, "page_table", pages, dtypes=("int32",), shape=(batch, None), like=k_new, optional=True)
    vector = BYTES // k_new.dtype.itemsize
    for name, x in (("k_new", k_new), ("v_new", v_new)):
        if x.shape[-1] % vector:
            raise CuteError(f"{WHAT}: {name} is {entry.described(x)}; its last mode must be a multiple of {vector}")
    if q is not None:
        entry.check(WHAT, "q", q, shape=(batch, new, None, d), **own)
        entry.check(WHAT, "rotary_cos", cos, dtypes=entry.FLOATS, rank=2, like=k_new)
        assert cos is not None
        entry.check(WHAT, "rotary_sin", sin, dtypes=(entry.type_name(cos),), shape=cos.shape, like=k_new)
        step = vector // 2 if interleaved else vector
        if not 0 < 2 * cos.shape[1] <= d or cos.shape[1] % step:
            raise CuteError(
                f"{WHAT}: rotary_cos is {entry.described(cos)}; its columns must be a multiple of {step}, up to "
                f"{d // 2} of them: turn q and k_new by kernels.rotary"
            )
    return lengths.new_empty(lengths.shape), k_new.new_empty((0,)) if q is None else q.new_empty(q.shape)


OPERATOR = entry.Operator(
    "numba_cute::attention_append", planned, checked, count=2, mutates=("k_cache", "v_cache"),
    constant=("k_cache", "v_cache", "k_new", "v_new", "q", "cos", "sin"),
)  # fmt: skip


def attention_with_cache(
    q: Any, k_cache: Any, v_cache: Any, k_new: Any, v_new: Any, seqused_k: Any, *, page_table: Any = None,
    rotary_cos: Any = None, rotary_sin: Any = None, interleaved: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Append new keys and values to a cache, and attend over all of it, on the GPUs of `flash_attention`.

    q: (batch, queries, heads, d). k_cache, v_cache: (batch, keys, KV heads, d), written in place; with page_table,
    int32 (batch, pages of a sequence), (pages, keys of a page, KV heads, d). k_new, v_new: (batch, new, KV heads, d).
    seqused_k: int32, (batch,), the keys that each sequence has before, of which it stays so; the new ones come behind
    them, and must fit: on a GPU, where nobody reads lengths, those that do not are neither written nor seen.
    rotary_cos, rotary_sin: (positions, R/2), as of `rotary`: k_new, and q, of as many tokens, are turned by the angles
    of the positions at which k_new comes to stand, seqused_k and those after it, each less than `positions`, which is
    not checked; q itself stays as it is. interleaved: as of `rotary`. options: causal, window, scale, softcap, score,
    aux, mask, mask_aux, sink, return_lse, out, num_splits and scales, as of `flash_attention`, whose result this is.

    There are no gradients. torch.autocast makes q, k_new and v_new of the type of the caches, which are written and
    stay of theirs, if that is one of 16 bits. CuteError: tensors of other types and shapes, options that there are
    not, and functions that do not compile: nothing is written then. A graph of torch.compile compiles functions
    when it runs, after it has appended.

    >>> import torch
    >>> q, new = torch.ones(1, 1, 1, 64, dtype=torch.float16), torch.ones(1, 1, 1, 64, dtype=torch.float16)
    >>> k_cache, v_cache = [torch.zeros(1, 16, 1, 64, dtype=torch.float16) for _ in range(2)]
    >>> with cute.simulation():
    ...     used = torch.tensor([3], dtype=torch.int32)
    ...     out = cute.kernels.attention_with_cache(q, k_cache, v_cache, new, new, used)
    >>> v_cache[0, :5, 0, 0]
    tensor([0., 0., 0., 1., 0.], dtype=torch.float16)
    """
    others = [name for name in options if name not in OPTIONS]
    if others:
        raise CuteError(f"{WHAT}: there is no {others[0]} here; of flash_attention there are {', '.join(OPTIONS)}")
    q, k_new, v_new = entry.under_autocast(q, k_new, v_new, like=k_cache)
    entry.refuse_gradients(WHAT, (q, k_cache, v_cache, k_new, v_new, rotary_cos, rotary_sin, options.get("sink")))
    if (rotary_cos is None) != (rotary_sin is None):
        raise CuteError(f"{WHAT}: rotary_cos and rotary_sin belong together: give both, or none")
    turns = rotary_cos is not None
    entry.check(WHAT, "q", q, rank=4)
    if not entry.pytorch().compiler.is_compiling() and entry.simulated() is not None:
        check_room(k_cache, k_new, seqused_k, page_table)
    given = (
        k_cache, v_cache, k_new, v_new, seqused_k, page_table, q if turns else None, rotary_cos, rotary_sin,
        bool(interleaved),
    )  # fmt: skip

    def attend(q: Any, used: Any) -> Any:
        return prepared(q, k_cache, v_cache, seqused_k=used, page_table=page_table, functions=True, **options)

    if OPERATOR.watched(given):
        attend(q.new_empty(q.shape) if turns else q, seqused_k)  # what it refuses is not begun
        used, turned = OPERATOR.traced(*given)
        return attend(turned if turns else q, used)()
    used, turned = checked(*given)
    try:
        call = attend(turned if turns else q, used)  # what it refuses is not begun
    except CuteError:
        check_reached(k_cache, v_cache, k_new, v_new, given[6])  # in words of the caches, if it is they
        raise
    OPERATOR(*given, into=(used, turned))
    return call()


def check_room(k_cache: Any, k_new: Any, lengths: Any, pages: Any) -> None:
    """Refuse new keys for which a cache has no room, where lengths may be read: in a simulation."""
    room = k_cache.shape[1] * (1 if pages is None else pages.shape[1])
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= room - k_new.shape[1]:
        raise CuteError(
            f"{WHAT}: seqused_k is from {int(lengths.min())} to {int(lengths.max())}, and k_new has {k_new.shape[1]} "
            f"keys: the cache has room for {room} of a sequence"
        )
