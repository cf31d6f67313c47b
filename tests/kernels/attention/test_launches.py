# SPDX-License-Identifier: Apache-2.0
"""Launches of attention: what is made of arrays is made anew in machine code where others lie elsewhere. No GPU."""

import numpy as np
import pytest
from numba import cuda

from numba_cute.kernels.attention import entry, gradients, warps_plan
from numba_cute.kernels.attention.options import capped
from numba_cute.kernels.attention.plan import ALL, Options

from ...compiler.casts import Array, Noting, casts

__all__ = ["casts"]


@cuda.jit
def biased(s, batch, head, query, key, bias):
    return s + bias[key]


@cuda.jit
def unskipped(batch, head, query, key, skipped):
    return skipped[key] == 0


FUNCTIONS = {
    "none": ({}, 0, 0), "score": ({"score": biased}, 1, 0), "mask": ({"mask": unskipped}, 0, 1),
    "both": ({"score": biased, "mask": unskipped}, 1, 1), "softcap": ({"score": capped}, 0, 0),
    "blocks": ({"mask": unskipped, "block": (128, 128)}, 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("by", ["wgmma", "warps"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_launches_at_other_addresses_are_cast_with_the_callers_functions_too(casts, name, by):
    options, own, of_mask = FUNCTIONS[name]
    made = entry.launches if by == "wgmma" else warps_plan.launches

    def run(at):
        q, k, v, o = (
            Array(at + 0x10000 * i, (1, 64, 1, 64), (4096, 64, 64, 1), dtype="torch.bfloat16") for i in range(4)
        )
        lse = Array(at + 0x50000, (1, 1, 64), (64, 64, 1), dtype="torch.float32")
        aux = [Array(at + 0x60000 + 0x1000 * i, (64,), (1,), dtype="torch.float32") for i in range(own + of_mask)]
        said = Options(0.125, **options)
        counter = Array(at + 0x70000, (1,), (1,), dtype="torch.int32")
        lists = [
            Array(at + 0x80000 + 0x1000 * n, (1, 1, 1, 1)[n:], (1, 1, 1, 1)[n:], dtype="torch.int32") for n in (1, 0)
        ]
        lists = lists if "block" in options else [None, None]
        if by == "warps":
            return made(q, k, v, o, lse, *ALL, None, None, *lists, "sm_80", said, own, *aux)
        return made(q, k, v, o, lse, counter, *ALL, *[None] * 6, *lists, 132, said, own, *aux)

    ((kernel, *_),), asked = run(0x1000000), Noting(made.function)
    made.templates._function = asked
    for at in (0x2000000, 0x3000000):
        assert run(at)[0][0] is kernel
    assert not asked.gave


@pytest.mark.parametrize("target", [None, "sm_80", "sm_100a"])
@pytest.mark.parametrize("name", [*FUNCTIONS, "alone"])
def test_launches_of_gradients_at_other_addresses_are_cast(casts, name, target):
    options, own, of_mask = FUNCTIONS.get(name, ({}, 0, 0))
    shape, step = (1, 64, 1, 64), (4096, 64, 64, 1)
    rooms = [(1, 1, 256), (1, 1, 256)]
    rooms = [(1, 1, 128), (1, 1, 128), (1, 1, 1, 128 * 64)] if target == "sm_100a" else rooms
    rooms = [*[(1, 1, 128)] * 2, (1, 1, 1, 128 * 64), (1,)] if name == "alone" and not target else rooms

    def run(at):
        def array(i, shape, dtype="float32"):
            strides = tuple(int(np.prod(shape[n + 1 :])) for n in range(len(shape)))
            return Array(at + 0x40000 * i, shape, strides, dtype=f"torch.{dtype}")

        q, k, v, o, do, dq, dk, dv = (Array(at + 0x40000 * i, shape, step, dtype="torch.bfloat16") for i in range(8))
        work = [array(8 + i, of, "float32" if len(of) > 1 else "int32") for i, of in enumerate(rooms)]
        aux = [array(13 + i, (64,)) for i in range(own + of_mask)]
        lists = [array(16 + i, (1, 1, 1, 1)[i % 2 :], "int32") for i in (1, 0, 3, 2)] if "block" in options else []
        return gradients.found(
            q, k, v, o, do, array(12, (1, 1, 64)), dq, dk, dv, *work, *[None] * (4 - len(work)), *ALL[:3], None,
            *(lists or [None] * 4), 132, Options(0.125, **options), None, target, own, *aux,
        )  # fmt: skip

    first, asked = run(0x1000000), Noting(gradients.found.function)
    gradients.found.templates._function = asked
    for at in (0x2000000, 0x3000000):
        assert [launch[0] for launch in run(at)] == [launch[0] for launch in first]
    assert not asked.gave
