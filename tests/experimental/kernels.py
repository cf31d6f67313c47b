# SPDX-License-Identifier: Apache-2.0
"""Kernels of plain tensors that tests share, and their arguments."""

from __future__ import annotations

import math

import numpy as np

import numba_cute as cute
from numba_cute import arch, experimental as ext
from numba_cute.runtime import from_dlpack

SMEM, RMEM, TMEM = cute.AddressSpace.smem, cute.AddressSpace.rmem, cute.AddressSpace.tmem


def aligned(shape, dtype=np.float16, order="C"):
    """Distinct small numbers at a multiple of 128 bytes."""
    count = math.prod(shape)
    raw = np.zeros(count * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -raw.ctypes.data % 128
    out = raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)
    out[...] = (np.arange(count) % 251).astype(dtype)
    return out.reshape(shape, order=order)


def tensor(array, dynamic=True):
    """An argument: the array where the kernel runs, with run-time extents or static ones."""

    def place(of):
        t = from_dlpack(of(array), assumed_align=16)
        return t.mark_layout_dynamic(leading_dim=cute.leading_dim(t.shape, t.stride)) if dynamic else t

    return place


def swizzled(tile, bits, dtype, major):
    """Shared memory for a tile that is contiguous along mode `major`, in runs as wide as the swizzle."""
    width = max(16, 16 << bits) * 8 // dtype.width
    shape = (8, width) if major == 1 else (width, 8)
    atom = cute.make_composed_layout(
        cute.make_swizzle(bits, 4, 3), 0, cute.make_ordered_layout(shape, (1, 0) if major == 1 else (0, 1))
    )
    return cute.tile_to_shape(atom, tile, (0, 1))


def through_shared_memory(dtype, tile, layout):
    """A kernel that loads tiles of `src`, one for each block, and stores them to `dst`."""

    @ext.kernel
    def copied(src, dst):
        bx, by, _ = arch.block_idx()
        s = ext.allocate(dtype, SMEM, layout, alignment=1024, name="s")
        pipe = ext.TMAToAsyncPipeline.create(num_stages=1, consumer_arv_count=32)
        g, d = cute.zipped_divide(src, tile), cute.zipped_divide(dst, tile)
        stage, _ = pipe.producer_acquire_and_get_stage()
        ext.tma_load(g[(None, None), (bx, by)], s, ext.get_mbarrier(stage))
        pipe.producer_commit()
        pipe.consumer_wait()
        ext.tma_store(s, d[(None, None), (bx, by)])
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    return copied
