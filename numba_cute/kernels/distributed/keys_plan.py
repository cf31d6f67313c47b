# SPDX-License-Identifier: Apache-2.0
"""Plan attention over a sequence whose parts lie on the GPUs of a group: the kernel of attention, with keys that it
brings."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import numba_cute as cute
from numba_cute import CuteError
from numba_cute.nvgpu import cpasync

from ..attention import plan
from ..attention.form import Form, atoms, layouts
from ..attention.forward import kernel_of
from ..attention.plan import ALL, NO_SCALES, SMEM, Options, form_of, smem_of
from ..attention.schedule import divisor_of, section_of
from .bringing import USUAL, Slots
from .keys import Copies, Keys

KEYS, CAUSAL, REGISTERS, BESIDE = 176, 128, 196, 40
"""Keys of a block, at most, and where a query does not see all. Registers of a thread for scores, P at part of its
size, and results. What a block takes beside its keys, as so many of them, on an H200."""


class KeysRoom(NamedTuple):
    """Memory of a GPU for others' keys and values. k, v: (GPUs, batch, rows, KV heads, d). arrived: (places,), counter,
    of tiles, and ended: (1,), of int32 zeros."""

    k: Any
    v: Any
    arrived: Any
    counter: Any
    ended: Any

    @staticmethod
    def shapes(ranks: int, k: tuple[int, ...], v: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Give the shapes of its parts. k, v: those of a GPU's."""
        places = k[0] * k[2] * (ranks - 1) * 2 * math.ceil(k[1] / 32)  # at most: of blocks of 16 keys, of two chunks
        return (ranks, *k), (ranks, *v), (places,), (1,), (1,)

    @staticmethod
    def numpy(ranks: int, k: tuple[int, ...], v: tuple[int, ...], dtype: Any) -> KeysRoom:
        """Make one of NumPy's arrays."""
        here_k, here_v, *counts = KeysRoom.shapes(ranks, k, v)
        memory = (np.full(shape, np.nan, dtype.numpy) for shape in (here_k, here_v))
        return KeysRoom(*memory, *(np.zeros(n, np.int32) for n in counts))


def ring_form(q: Any, k: Any, v: Any, options: Options, slots: Slots = USUAL) -> tuple[Form, Options]:
    """Give the kernel's form, and the options that it is of. q, k, v: arrays of one GPU, or their like. slots: of what
    is brought. CuteError where shared memory has no room for these."""
    queries = q.shape[1]
    options = options._replace(cluster=1, splits=1)
    if options.tile is None:
        first = form_of(q, k, v, queries, ALL, options._replace(tile=(128, 16)))
        rows = 64 if queries * first.pack <= 64 else 128
        first = first._replace(tile_m=rows, stages=2, q_stages=1)
        room = SMEM - slots.memory
        fit = [
            n for n in range(16, (CAUSAL if first.right else KEYS) + 1, 16)
            if n * 3 // 4 + first.dv // 2 <= REGISTERS and smem_of(first._replace(tile_n=n)) <= room
        ]  # fmt: skip
        tile_n = min(fit, key=lambda n: math.ceil(k.shape[1] / n) * (n + BESIDE))
        options = options._replace(tile=(rows, tile_n), q_stages=1, stages=2)  # with two, tiles are drawn too early
    form = form_of(q, k, v, queries, ALL, options._replace(lazy=False))._replace(ring=True)
    if smem_of(form) + slots.memory > SMEM:
        raise CuteError(f"ring_attention: shared memory has no room for tiles of {options.tile}: take fewer keys")
    return form, options


def heads_together(form: Form, section: int, kv_heads: int, columns: int) -> int:
    """Count the heads of K and V that are brought together, by the query heads whose tiles are done side by side: the
    fewest that fill pieces, of so many columns, and divide all."""
    least = max(1, section // form.group)
    fit = [
        n for n in range(least, kv_heads)
        if kv_heads % n == 0 and n * form.d % columns == 0 and n * form.dv % columns == 0
    ]  # fmt: skip
    return min(fit, default=kv_heads)


def _numbers(shape: Any, stride: Any) -> Any:
    """A layout whose extents are known at run time; the stride that is 1 is static."""
    return cute.make_layout(
        tuple(cute.Int32(n) for n in shape), stride=tuple(1 if s == 1 else cute.Int64(s) for s in stride)
    )


def rows_first(tensor: Any, columns_first: bool = False) -> Any:
    """View (batch, rows, heads, d, GPUs) as (rows, d, heads, batch, GPUs), or (d, rows, …)."""
    shape, stride = (tuple(map(int, x)) for x in (tensor.layout.shape, tensor.layout.stride))
    order = (3, 1, 2, 0, 4) if columns_first else (1, 3, 2, 0, 4)
    stride = *stride[:3], 1, stride[4]
    return cute.make_tensor(tensor.iterator, _numbers([shape[i] for i in order], [stride[i] for i in order]))


def side_by_side(tensor: Any) -> Any:
    """View (batch, rows, heads, d, GPUs), whose heads follow each other, as (rows, heads of d, batch, GPUs)."""
    (batch, rows, heads, d, gpus), (b, r, _, _, g) = (
        tuple(map(int, x)) for x in (tensor.layout.shape, tensor.layout.stride)
    )
    return cute.make_tensor(tensor.iterator, _numbers((rows, heads * d, batch, gpus), (r, 1, b, g)))


def last_mode(array: Any) -> Any:
    """View an array (GPUs, …) as a tensor (…, GPUs)."""
    t = plan.view(array, 16)
    return cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 2, 3, 4, 0]))


def copies_of(
    form: Form, peers: Any, here: Any, slots: Slots, layout: Any, tile: tuple[int, int], columns_first: bool
) -> Copies:
    """Make the copies of K, or V. peers: of all GPUs, (batch, rows, heads, d, GPUs). here: the array of this GPU's
    memory for it. slots: of pieces. layout: of a stage in shared memory. tile: a block of keys."""
    load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
    piece, of = cute.slice_(slots.layout(form.dtype), (None, None, 0)), slots.tile(form.dtype)
    here = last_mode(here)
    return Copies(
        *cpasync.make_tiled_tma_atom(load, side_by_side(peers), piece, of),
        *cpasync.make_tiled_tma_atom(store, side_by_side(here), piece, of),
        *cpasync.make_tiled_tma_atom(load, rows_first(here, columns_first), layout, tile),
    )


def keys_of(
    form: Form, k: Any, v: Any, room: KeysRoom, rank: int, signals: Any, halves: bool, heads: int, slots: Slots
) -> Keys:  # fmt: skip
    """Make what brings the others' keys. k, v: of all GPUs. halves: whether each GPU has two chunks, of zigzag order,
    and not one. heads: of K and V, that are brought together. slots: of pieces."""
    batch, keys, kv_heads, _, world = map(int, k.shape)
    _, k_layout, v_layout = (cute.slice_(x, (None, None, 0)) for x in layouts(form))
    height, columns = slots.tile(form.dtype)
    near, far = rank if form.right else world - 1, world - 1 - rank if halves else 0
    rows = keys // 2 if halves else keys  # of a chunk
    blocks = math.ceil(rows / form.tile_n)
    # Blocks that are read come whole: keys behind a first chunk weigh nothing, but 0 times NaN is NaN.
    down = blocks * form.tile_n // height if halves else math.ceil(rows / height)
    of_k, of_v = (math.ceil(heads * n / columns) for n in (form.d, form.dv))
    chunks, per, across, each, sets = (
        divisor_of(n)
        for n in (max(1, near + 2 * far), blocks, of_k + of_v, down * (of_k + of_v), kv_heads // heads)
    )  # fmt: skip
    return Keys(
        form.dtype, slots, cute.Int32(rank),
        copies_of(form, k, room.k, slots, k_layout, (form.tile_n, form.d), False),
        copies_of(form, v, room.v, slots, v_layout, (form.dv, form.tile_n), True),
        form.tile_n, cute.Int32(near), cute.Int32(far), cute.Int32(rows), chunks, per, cute.Int32(down),
        cute.Int32(of_k), cute.Int32(of_v), across, each, cute.Int32(heads), sets, cute.Int32(batch),
        plan.view(room.arrived), plan.view(room.ended), signals,
    )  # fmt: skip


def ring_attention(
    q: Any, k: Any, v: Any, o: Any, lse: Any, rank: int, signals: Any, room: KeysRoom, sms: int, options: Options,
    slots: Slots = USUAL, zigzag: bool = False,
) -> tuple[Any, tuple[Any, ...], int, int]:  # fmt: skip
    """Plan this GPU's part of attention: give the kernel, its arguments, grid and block.

    q, o: (batch, rows, heads, d) of this GPU; lse: (batch, heads, rows). k, v: of all, (batch, rows, KV heads, d,
    GPUs), contiguous but for the last mode. signals: with `GATHER_SLOTS` slots. sms: blocks at most, which must all run
    at once. options: scale, and right=0 where no key is seen that comes after the query; tile, if it is not the usual
    one, and section. slots: of what is brought. zigzag: whether this GPU's rows are not those that follow the last
    GPU's, but chunks `rank` and 2 * GPUs - 1 - `rank` of the sequence, which is cut into 2 * GPUs."""
    world = int(k.shape[4])
    own_k, own_v = (x[None, None, None, None, rank] for x in (k, v))
    form, options = ring_form(q, own_k, own_v, options, slots)
    share = form.group if form.pack == 1 else 1
    bytes_each = form.dtype.width // 8
    section = options.section or section_of(int(k.shape[1]) * world, form.d + form.dv, bytes_each, share)
    columns = slots.tile(form.dtype)[1]
    together = heads_together(form, section * (1 if form.pack == 1 else form.group), int(k.shape[2]), columns)
    keys = keys_of(form, k, v, room, rank, signals, zigzag and form.right, together, slots)
    of_smem = plan.copies(form, layouts(form), atoms(form), q, own_k, own_v, None)
    made: tuple[Any, tuple[Any, ...], int, int] = plan.launch_of(
        kernel_of(form), form, of_smem, q, own_k, own_v, o, lse, room.counter, sms, options._replace(section=section),
        ALL, None, (), None, NO_SCALES, (), keys,
    )  # fmt: skip
    return made
