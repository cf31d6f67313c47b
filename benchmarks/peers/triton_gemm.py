# SPDX-License-Identifier: Apache-2.0
"""Triton's matmuls, as contenders for gemm.py: C (M, N) = A (M, K) @ B (N, K).T.

One is persistent and uses TMA; one uses cp.async, and mma.sync if the environment has DISABLE_MMA_V3=1.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

GROUP_M = 8
# tile_m, tile_n, tile_k, stages, warps
CONFIGS = [(128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 8), (128, 128, 64, 4, 4), (256, 128, 64, 3, 8)]


@triton.jit
def matmul(
    a_desc, b_desc, c_desc, m, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n, tiles_k = tl.cdiv(m, TILE_M), tl.cdiv(n, TILE_N), tl.cdiv(k, TILE_K)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=True):
        group = tile // (GROUP * tiles_n)
        first = group * GROUP
        width = min(tiles_m - first, GROUP)
        rest = tile % (GROUP * tiles_n)
        row, column = (first + rest % width) * TILE_M, (rest // width) * TILE_N
        acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
        for i in range(tiles_k):
            acc = tl.dot(a_desc.load([row, i * TILE_K]), b_desc.load([column, i * TILE_K]).T, acc)
        c_desc.store([row, column], acc.to(c_desc.dtype))


def launcher(a, b, c, config):
    """A call that computes c with one configuration."""
    tile_m, tile_n, tile_k, stages, warps = config
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    descs = (
        TensorDescriptor.from_tensor(a, [tile_m, tile_k]),
        TensorDescriptor.from_tensor(b, [tile_n, tile_k]),
        TensorDescriptor.from_tensor(c, [tile_m, tile_n]),
    )
    tiles = triton.cdiv(a.shape[0], tile_m) * triton.cdiv(b.shape[0], tile_n)
    grid = (min(programs, tiles),)

    def launch():
        matmul[grid](
            *descs, a.shape[0], b.shape[0], a.shape[1],
            TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP=GROUP_M, PROGRAMS=programs,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    return launch


# tile_m, tile_n, tile_k in bytes, stages, warps
ASYNC_CONFIGS = [
    (128, 256, 128, 3, 8), (128, 256, 64, 3, 8), (128, 256, 64, 4, 8), (128, 128, 64, 4, 4), (128, 128, 128, 3, 4),
    (256, 128, 128, 3, 8), (128, 128, 64, 4, 8), (256, 64, 64, 4, 4), (64, 256, 64, 4, 4),
]  # fmt: skip


@triton.jit
def async_matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, ACC: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile, tiles_n = tl.program_id(0), tl.cdiv(n, TILE_N)
    group = tile // (GROUP * tiles_n)
    first = group * GROUP
    width = min(tl.cdiv(m, TILE_M) - first, GROUP)
    rest = tile % (GROUP * tiles_n)
    rows = (first + rest % width) * TILE_M + tl.arange(0, TILE_M)
    columns = (rest // width) * TILE_N + tl.arange(0, TILE_N)
    depth = tl.arange(0, TILE_K)
    a = a_ptr + (rows % m)[:, None] * k + depth[None, :]
    b = b_ptr + (columns % n)[None, :] * k + depth[:, None]
    acc = tl.zeros((TILE_M, TILE_N), dtype=ACC)
    for i in range(tl.cdiv(k, TILE_K)):
        left = k - i * TILE_K
        acc = tl.dot(
            tl.load(a, mask=depth[None, :] < left, other=0), tl.load(b, mask=depth[:, None] < left, other=0), acc,
            out_dtype=ACC,
        )  # fmt: skip
        a += TILE_K
        b += TILE_K
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def async_launcher(a, b, c, config):
    """A call that computes c by cp.async with one configuration."""
    tile_m, tile_n, bytes_k, stages, warps = config
    grid = (triton.cdiv(a.shape[0], tile_m) * triton.cdiv(b.shape[0], tile_n),)
    acc = tl.int32 if c.dtype == torch.int32 else tl.float32

    def launch():
        async_matmul[grid](
            a, b, c, a.shape[0], b.shape[0], a.shape[1], ACC=acc,
            TILE_M=tile_m, TILE_N=tile_n, TILE_K=bytes_k // a.itemsize, GROUP=GROUP_M,
            num_stages=stages, num_warps=warps,
        )  # fmt: skip

    return launch
