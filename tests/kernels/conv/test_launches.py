# SPDX-License-Identifier: Apache-2.0
"""Launches of convolutions: what is made of tensors is made anew in machine code where others lie elsewhere. No GPU."""

import numba_cute as cute
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


def cast(place, third, c_dtype, taps=3):
    @cute.runtime.remembered
    def made(x, y, z):
        return arguments(*place(x, y, z), BF16, 66, Plan(64, 1), None, None, c_dtype)

    def run(at):
        one, two = (2, 64, 9, 8), (64, 64, taps, taps) if place is not filters else (2, 64, 9, 8)
        return made(array(at, one), array(at + 0x100000, two), third(at + 0x200000))

    first, grid = run(0x1000000)
    asked = Noting(made.function)
    made.templates._function = asked
    for at in (0x2000000, 0x3000000):
        other, same = run(at)
        assert same == grid
        for i in (2, 4, 6):
            assert other[i].tensor_map.address - first[i].tensor_map.address == at - 0x1000000
    assert not asked.gave


def test_arguments_at_other_addresses_are_cast(casts):
    like_images = lambda at: array(at, (2, 64, 9, 8))  # noqa: E731
    cast(forward, like_images, BF16)
    cast(plain, like_images, BF16, taps=1)
    cast(images, like_images, BF16)
    cast(filters, lambda at: Array(at, (2, 64, 576), (64 * 576, 576, 1)), cute.Float32)
