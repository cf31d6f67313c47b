# SPDX-License-Identifier: Apache-2.0
"""im2col::w and im2col::w::128 (sm_100): pixels along W of consecutive images, with halo and shift, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import arch, isa, utils
from numba_cute.isa.facts.tensormap import Im2colWide, TensorMapRecord
from numba_cute.isa.facts.tensormap_bits import pack, unpack
from numba_cute.seam import CuteError, frozen, traced
from numba_cute.sim import SimError

from .test_tma_modes import aligned, image, tensor

IMAGES, H, W, C = 9, 3, 7, 64
CHANNELS = 32


@frozen
class Map:
    tensor_map: object
    of: object = None  # the array, kept


def record(address, walk, step=1, swizzle="64B", images=IMAGES):
    strides = (2 * C, 2 * C * W, 2 * C * W * H)
    return TensorMapRecord(
        cute.Float16, address, (C, W, H, images), strides, element_strides=(1, step, 1, 1), swizzle=swizzle, im2col=walk
    )


def pixels(x, walk, at, halo, shift, step):
    """The copy's rows (pixel, channel): `x` is (N, H, W, C); outside of it zeros."""
    lower, last = walk.lower + shift, W - 1 + walk.upper + shift
    channel, w, h, n = at
    w += shift
    parts, each = walk.parts

    def taken(n, w):
        inside = 0 <= w < W and n < len(x)
        return x[n, h, w, channel : channel + walk.channels] if inside else np.zeros(walk.channels, x.dtype)

    rows = []
    for _ in range(parts):
        for _ in range(each):
            if w > last:
                n, w = n + 1, lower
            rows.append(taken(n, w))
            w += step
        rows += [taken(n, w + i * step) for i in range(halo)]
    return np.array(rows)


def kernel_of(suffix, at, offsets, size):
    @traced
    def issue(map, s, bar):
        how = {"rank": 4, "mode": "im2col::w" if suffix == "w" else "im2col::w::128"}
        isa.cp_async_bulk_tensor_g2s(s, map.tensor_map, at, bar, tuple(cute.Uint16(x) for x in offsets), **how)
        isa.cp_async_bulk_prefetch_tensor(map.tensor_map, at, tuple(cute.Uint16(x) for x in offsets), **how)

    @cuda.jit
    def kernel(map, seen):
        smem = utils.SmemAllocator()
        s = smem.allocate_tensor(cute.Uint16, cute.make_layout(size // 2), 1024, None, "s")
        bar = smem.allocate_array(cute.Int64, 1, name="bar")
        if arch.elect_one():
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            arch.mbarrier_arrive_and_expect_tx(bar, size)
            issue(map, s.iterator.toint(), bar.toint())
        arch.sync_warp()
        arch.mbarrier_wait(bar, 0)
        lying = cute.recast_ptr(s.iterator, reinterpret=True)
        for i in range(arch.lane_idx(), size // 2, 32):
            seen[i] = (lying + i).load()

    return kernel


WALKS = [  # (map, coordinates, halo, shift, step)
    (Im2colWide(0, 0, CHANNELS, 40), (0, 3, 2, 0), 0, 0, 1),
    (Im2colWide(-1, -1, CHANNELS, 24), (32, -1, 1, 2), 2, 1, 1),
    (Im2colWide(-1, 0, CHANNELS, 16), (0, -1, 0, 7), 1, 0, 2),
    (Im2colWide(0, -2, CHANNELS, 8), (0, -3, 0, 1), 0, 2, 3),
    (Im2colWide(-1, 1, CHANNELS, mode="w128"), (0, 0, 1, 1), 0, 0, 1),
    (Im2colWide(0, 0, CHANNELS, mode="w128"), (32, 5, 2, 0), 2, 0, 1),
]


@pytest.mark.parametrize("walk, at, halo, shift, step", WALKS, ids=range(len(WALKS)))
def test_pixels_along_w_are_those_of_the_images(run, walk, at, halo, shift, step):
    images = 30 if walk.mode == "w128" else IMAGES
    x = aligned((images, H, W, C), np.float16)
    want = pixels(x, walk, at, halo, shift, step)
    assert len(want) == walk.pixels_with(halo)
    seen = np.zeros(want.size, np.uint16)
    kernel = kernel_of(walk.mode, at, (halo, shift), want.nbytes)

    def mapped(place):
        of = tensor(place, x)
        return Map(record(int(of.iterator.address), walk, step, images=images), of)

    args = [mapped, seen]
    check = lambda: np.testing.assert_array_equal(seen.view(np.uint8), image(want, "64B"))  # noqa: E731
    run(kernel, 1, 32, args, outputs=[seen], check=check, arch="sm_100a")


def simulated(suffix, at, offsets, walk, swizzle="64B"):
    x = aligned((IMAGES, H, W, C), np.float16)
    size = walk.pixels_with(offsets[0]) * CHANNELS * 2
    kernel = kernel_of(suffix, at, offsets, size)
    cute.simulate(kernel, arch="sm_100a")[1, 32](
        Map(record(x.ctypes.data, walk, swizzle=swizzle)), np.zeros(size // 2, "u2")
    )


W32, W128 = Im2colWide(0, 0, CHANNELS, 32), Im2colWide(0, 0, CHANNELS, mode="w128")


@pytest.mark.parametrize(
    "suffix, at, offsets, walk, why",
    [
        ("w", (0, 7, 0, 0), (0, 0), W32, "W is 7, beyond the last place of the row, 6"),
        ("w", (0, 0, 0, 0), (0, 32), W32, "shift along W 32 must be in 0 to 31"),
        ("w128", (0, 0, 0, 0), (32, 0), W128, "halo 32 must be in 0 to 31"),
        (
            "w",
            (0, 0, 0, 0),
            (0, 0),
            W128,
            "the tensor map is im2col::w128, but cp_async_bulk_.*tensor.* is for im2col::w maps",
        ),
    ],
    ids=["W", "shift", "halo", "mode"],
)
def test_a_copy_along_w_that_cannot_be_is_explained(suffix, at, offsets, walk, why):
    with pytest.raises(SimError, match=why):
        simulated(suffix, at, offsets, walk)


@pytest.mark.parametrize(
    "walk, more, why",
    [
        (W32, dict(swizzle="none"), "swizzle 'none' is none of '64B', '128B', '128B_ATOM_32B', '128B_ATOM_64B'"),
        (W32, dict(swizzle="128B_ATOM_32B_FLIP_8B"), "which im2col along W has"),
        (Im2colWide(0, 0, CHANNELS, 64, "w128"), {}, "pixels is 64; mode 'w128' has 128"),
        (Im2colWide(0, 0, CHANNELS, 64, "w256"), {}, "mode 'w256' is none of 'w', 'w128'"),
        (Im2colWide(-40000, 0, CHANNELS, 64), {}, "lower is -40000; along W it must be in -32768 to 32767"),
        (Im2colWide(0, -7, CHANNELS, 64), {}, "leave no pixel of dims.1. = 7"),
        (Im2colWide(0, 0, CHANNELS, 2000), {}, "pixels is 2000; it must be in 1 to 1024"),
        (Im2colWide(0, 0, 64, 32), {}, "inner box is 128 bytes, more than the 64 of swizzle"),
    ],
    ids=range(8),
)
def test_a_map_along_w_that_cannot_be_is_refused(walk, more, why):
    with pytest.raises(CuteError, match=why):
        record(1 << 20, walk, **more)


@pytest.mark.parametrize("walk", [W32, W128, Im2colWide(-3, 2, 16, 8)], ids=["w", "w128", "corners"])
def test_a_map_along_w_survives_its_bytes(walk):
    there = record(1 << 20, walk)
    assert unpack(pack(there)) == there


@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
@pytest.mark.parametrize("suffix", ["w", "w128"])
def test_other_targets_refuse_copies_along_w(suffix, target):
    kernel = kernel_of(suffix, (0, 0, 0, 0), (0, 0), 64)
    args = (Map(record(1 << 20, W32 if suffix == "w" else W128)), np.zeros(32, np.uint16))
    with pytest.raises(CuteError, match="cp_async_bulk_tensor_g2s with mode='im2col::w.* needs sm_100f"):
        cute.compile(kernel, args, arch=target)
