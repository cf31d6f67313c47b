# SPDX-License-Identifier: Apache-2.0
"""The gradients of attention, for PyTorch's tensors: the launches of its backward pass."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.seam import CuteError

from . import backward, backward_parts
from .backward import KEYS, Form

L2_BYTES = 40 << 20  # of Q, dO and the sums of dQ that a section of heads may take

HEAD_DIMS = {64: 128, 128: 80}
"""Head dimensions, and the queries of a tile."""


class Launch(NamedTuple):
    """One launch of a backward pass."""

    kernel: Any
    grid: Any
    block: int
    args: tuple[Any, ...]


def tensor(array: Any) -> Any:
    """A tensor (rows, d, heads, batch) over an array (batch, rows, heads, d); extents are known at run time."""
    t = cute.runtime.from_dlpack(array, assumed_align=16).mark_layout_dynamic(leading_dim=3)
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 3, 2, 0]))


def flat(array: Any) -> Any:
    """A tensor of one mode over an array of consecutive elements."""
    return cute.runtime.from_dlpack(array.reshape(-1), assumed_align=16).mark_layout_dynamic(leading_dim=0)


def strides(array: Any) -> tuple[Any, ...]:
    """The strides of (batch, rows, heads) in elements."""
    given = array.stride() if hasattr(array, "stride") else [s // array.itemsize for s in array.strides]
    return tuple(cute.Int64(s) for s in given[:3])


def covering(made: Any, rows: int) -> tuple[Any, Any]:
    """A TMA atom, and its coordinates over whole tiles: TMA leaves out what lies beyond the array."""
    atom, coords = made
    shape = (cute.Int32(rows), *coords.shape[1:])
    return atom, cute.make_tensor(coords.iterator, cute.make_layout(shape, stride=coords.stride))


def room(q: Any) -> list[tuple[int, ...]]:
    """The shapes of the Float32 arrays that a pass works in, for q (batch, queries, heads, d): the logs of the sums of
    exponentials, rowsum(dO * O), the sums of dQ, and the number of tiles drawn (an Int32)."""
    batch, rows, heads, d = q.shape
    queries = HEAD_DIMS[d]
    tiles = math.ceil(rows / queries)
    return [(batch, heads, tiles * queries), (batch, heads, tiles * queries), (batch, heads, tiles, queries * d), (1,)]


def launches(arrays: Any, work: Any, *, causal: bool, scale: float, sms: int) -> list[Launch]:
    """The launches of a pass, for arrays of the host (to simulate or compile) or of the device: q, k, v, o, do and lse,
    and dq, dk and dv, which they write. work: arrays of the shapes that `room` gives."""
    q, k, v, o, do, lse, dq, dk, dv = arrays
    logs, dot, sums, drawn = work
    (batch, rows, heads, d), (_, keys, kv_heads, _) = q.shape, k.shape
    dtype = cute.runtime.from_dlpack(q).element_type
    form = Form(dtype, d, HEAD_DIMS[d], causal)
    queries = form.queries
    query_tiles, key_tiles = math.ceil(rows / queries), math.ceil(keys / KEYS)
    work = query_tiles, heads, batch
    flats = [flat(x) for x in (logs, dot, sums, drawn)]
    begin = Launch(
        backward_parts.make_before(form), work, backward_parts.THREADS,
        (tensor(o), tensor(do), cute.runtime.from_dlpack(lse), *flats, cute.Int32(rows), strides(o), strides(do)),
    )  # fmt: skip
    end = Launch(
        backward_parts.make_after(form), work, backward_parts.THREADS,
        (flat(sums), tensor(dq), cute.Int32(rows), strides(dq), cute.Float32(scale)),
    )  # fmt: skip

    load, put = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    tile_of_q, tile_of_k = backward.rows_of(dtype, queries, d), backward.rows_of(dtype, KEYS, d)
    half_of_k = backward.rows_of(dtype, 64, d)
    maps: list[Any] = []
    for x, op, layout, tile, extent in (
        (q, load, tile_of_q, queries, query_tiles * queries), (k, load, tile_of_k, KEYS, key_tiles * KEYS),
        (v, load, tile_of_k, KEYS, key_tiles * KEYS), (do, load, tile_of_q, queries, query_tiles * queries),
        (dk, put, half_of_k, 64, key_tiles * KEYS), (dv, put, half_of_k, 64, key_tiles * KEYS),
    ):  # fmt: skip
        maps += covering(cpasync.make_tiled_tma_atom(op, tensor(x), layout, (tile, d)), extent)
    tiles = key_tiles * kv_heads * batch
    group = heads // kv_heads
    section = max(1, L2_BYTES // max(1, rows * d * group * 8)) if causal else 1
    numbers = [keys, query_tiles, key_tiles, group, kv_heads, batch, section, keys - rows]
    args = (
        *maps,
        flat(logs),
        flat(dot),
        flat(sums),
        flat(drawn),
        *(cute.Int32(n) for n in numbers),
        cute.Float32(scale),
    )
    return [begin, Launch(backward.make_kernel(form), min(tiles, sms), backward.THREADS, args), end]


def check(name: str, x: Any, shape: tuple[int | None, ...], dtype: Any) -> None:
    """Refuse a tensor that the kernels cannot take."""
    if tuple(x.shape) != shape or x.dtype != dtype:
        raise CuteError(
            f"attention_backward: {name} is {x.dtype} of shape {tuple(x.shape)}; it must be {dtype} of shape {shape}"
        )
    if x.stride()[-1] != 1 or any(s % 8 for s in x.stride()[:-1]) or x.data_ptr() % 16:
        raise CuteError(
            f"attention_backward: {name} has strides {tuple(x.stride())} and begins at {x.data_ptr():#x}; TMA takes "
            f"rows of contiguous elements that begin at multiples of 16 bytes: give {name}.contiguous()"
        )


def attention_backward(
    dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any, Any]:
    """Give the gradients (dq, dk, dv) of attention.

    q, out, dout: (batch, queries, heads, d), bf16 or f16, d 64 or 128. k, v: (batch, keys, KV heads, d); heads is a
    multiple of KV heads, and each of these serves as many that follow one another. lse: (batch, heads, queries), f32,
    what the forward pass gave: the natural logarithm of each row's sum of exponentials, -inf for a row that sees no
    key. causal: whether query i sees only the keys up to i + keys - queries. scale: of the scores; 1 / sqrt(d) if it is
    None. The sums of dq are added up in no order, so that two calls may differ in the last bit. Raises CuteError for
    tensors of other shapes, types and strides.
    """
    torch = __import__("torch")
    if q.ndim != 4 or k.ndim != 4 or q.dtype not in (torch.bfloat16, torch.float16) or q.shape[3] not in HEAD_DIMS:
        raise CuteError(
            f"attention_backward: q is {q.dtype} of shape {tuple(q.shape)}, k of shape {tuple(k.shape)}; they must be "
            f"(batch, rows, heads, d) of bf16 or f16, with d one of {sorted(HEAD_DIMS)}"
        )
    (batch, rows, heads, d), (_, keys, kv_heads, _) = q.shape, k.shape
    if heads % kv_heads:
        raise CuteError(f"attention_backward: q has {heads} heads, which must be a multiple of k's, {kv_heads}")
    for name, x, shape in (
        ("q", q, (batch, rows, heads, d)), ("k", k, (batch, keys, kv_heads, d)), ("v", v, (batch, keys, kv_heads, d)),
        ("out", out, (batch, rows, heads, d)), ("dout", dout, (batch, rows, heads, d)),
    ):  # fmt: skip
        check(name, x, shape, q.dtype)
    if tuple(lse.shape) != (batch, heads, rows) or lse.dtype != torch.float32:
        raise CuteError(
            f"attention_backward: lse is {lse.dtype} of shape {tuple(lse.shape)}; it must be float32 of shape "
            f"{(batch, heads, rows)}"
        )
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    *floats, drawn = room(q)
    work = [torch.empty(s, dtype=torch.float32, device=q.device) for s in floats]
    work.append(torch.empty(drawn, dtype=torch.int32, device=q.device))
    sms = torch.cuda.get_device_properties(q.device).multi_processor_count
    scale = 1 / math.sqrt(d) if scale is None else scale
    given = [x.detach() for x in (q, k, v, out, dout, lse)]
    for launch in launches((*given, dq, dk, dv), work, causal=causal, scale=scale, sms=sms):
        cute.launch(launch.kernel, grid=launch.grid, block=launch.block)(*launch.args)
    return dq, dk, dv
