# SPDX-License-Identifier: Apache-2.0
"""Launches of convolutions: what is made of tensors is made anew in machine code where others lie elsewhere. No GPU."""

import numba_cute as cute
from numba_cute.kernels.conv import windows
from numba_cute.kernels.conv.operands import Columns, Image, Lattice, Turned, parts_of
from numba_cute.kernels.conv.tensors import channels_last, operands, pixels_of, placed
from numba_cute.kernels.gemm import Plan
from numba_cute.kernels.gemm.plan import arguments

from ...compiler.casts import Array, Noting, casts
from .test_conv import BF16, walk

__all__ = ["casts"]
HOW = walk((3, 3), 1, 1)


def array(at, shape, dtype="torch.bfloat16"):
    """A tensor (N, C, H, W) of torch's, its channels last."""
    n, c, h, w = shape
    return Array(at, shape, (h * w * c, 1, w * c, c), dtype=dtype)


def forward(x, w, y):
    return (*operands(x, w, HOW, BF16), pixels_of(y))


def plain(x, w, y):
    return (*operands(x, w, walk((1, 1)), BF16), pixels_of(y))


def images(dy, w, dx):
    part = parts_of(HOW, (9, 8), (9, 8))[0]
    a = Image(channels_last(dy), part.walk, 64)
    return a, Turned(channels_last(w), part.walk.taps, part.last, part.step, 64), Lattice(channels_last(dx))


def filters(dy, x, sums):
    return placed(dy, (2, 64, 72), (72 * 64, 1, 64)), Columns(channels_last(x), HOW, 64, 2), sums


def gemm(place, c_dtype):
    return lambda x, y, z: arguments(*place(x, y, z), BF16, 66, Plan(64, 1), None, None, c_dtype)


def by_windows(dy, x, sums):
    own = placed(sums, (2, 64, 9, 64), (64 * 576, 576, 64, 1))
    return windows.arguments(channels_last(x), channels_last(dy), own, HOW, windows.Window(3, 3, 2), BF16)


def cast(place, third, c_dtype, taps=3):
    made = cute.runtime.remembered(place if place is by_windows else gemm(place, c_dtype))

    def run(at):
        one, two = (2, 64, 9, 8), (2, 64, 9, 8) if place in (filters, by_windows) else (64, 64, taps, taps)
        return made(array(at, one), array(at + 0x100000, two), third(at + 0x200000))

    def maps(given):
        return [getattr(x, "tensor_map", None) for x in given]

    first = run(0x1000000)
    first, rest = (first, []) if place is by_windows else (first[0], first[1:])
    asked = Noting(made.function)
    made.templates._function = asked
    for at in (0x2000000, 0x3000000):
        other = run(at)
        other, same = (other, []) if place is by_windows else (other[0], other[1:])
        assert same == rest and len([m for m in maps(first) if m]) == (2 if place is by_windows else 3)
        for one, two in zip(maps(first), maps(other)):
            assert (one is None) == (two is None) and (one is None or two.address - one.address == at - 0x1000000)
    assert not asked.gave


def test_arguments_at_other_addresses_are_cast(casts):
    like_images = lambda at: array(at, (2, 64, 9, 8))  # noqa: E731
    cast(forward, like_images, BF16)
    cast(plain, like_images, BF16, taps=1)
    cast(images, like_images, BF16)
    cast(filters, lambda at: Array(at, (2, 64, 576), (64 * 576, 576, 1)), cute.Float32)
    cast(by_windows, lambda at: Array(at, (2, 64, 576), (64 * 576, 576, 1)), cute.Float32)
