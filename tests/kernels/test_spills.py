# SPDX-License-Identifier: Apache-2.0
"""No kernel of `numba_cute.kernels` spills registers in a configuration that its plan can choose.

What plans can choose, `configurations.py` and `configurations_rows.py` list by the plans' own tables and rules. All
480,000 of them would take a week to compile: the slow tests compile those in which any two choices meet, some 2,800
kernels. They need no GPU. `python -m tests.kernels.spills --jobs N` does the same in N processes: both write each
configuration to out/spills.jsonl when it is done, and compile none that is there."""

import itertools

import pytest

import numba_cute as cute
from numba_cute.kernels.gemm import plan as gemm_plan

from . import spills
from .configurations import SPACES, Machine, faults
from .configurations_families import appended, indexed_launches
from .configurations_gemm import ROOMS, matmul_launches, offered
from .configurations_rows import BF16, F16, F32, norm_backward, norm_forward, topk_forward
from .covering import Space, covering

MACHINE = Machine()
CUT = gemm_plan.USUAL._asdict()
PLAIN = {"a_along": -1, "b_along": -1, "order": -1, "batched": False}
WORST = {
    "matmul": lambda: matmul_launches(
        dtype=cute.BFloat16, c_type=cute.BFloat16, epilogue="amax", **PLAIN, **CUT
    ),
    "norm backward": lambda: norm_backward(
        length=131072, dtype=BF16, others=BF16, centred=False, weighted=True, adds=False, offset=0.0,
        packed=False,
    ),
    "norm of an odd length": lambda: norm_forward(
        length=97, dtype=F16, others=BF16, centred=True, weighted=True, adds=True, offset=1.0, packed=False,
    ),
    "norm backward, ragged": lambda: norm_backward(
        length=7172, dtype=F32, others=F32, centred=False, weighted=True, adds=False, offset=1.0, packed=True,
    ),
    "norm backward, long and odd": lambda: norm_backward(
        length=229377, dtype=BF16, others=BF16, centred=True, weighted=True, adds=True, offset=0.0, packed=False,
    ),
    "matmul, the last round's tiles shared": lambda: indexed_launches(
        dtype=cute.Float16, c_type=cute.BFloat16, b_along=-1, rows="any bytes", epilogue="all",
        **CUT | {"tile_n": 256, "sharers": 1, "splits": 4, "tail": True, "stages": 0, "slots": 0},
    ),
    "matmul, K in seven parts": lambda: indexed_launches(
        dtype=cute.Float8E4M3FN, c_type=cute.Float32, b_along=-1, rows="C", epilogue="swiglu and more",
        **CUT | {"tile_n": 128, "sharers": 2, "splits": 7, "tail": False, "stages": 0, "slots": 0},
    ),
    "append": lambda: appended(
        target="sm_80", dtype=BF16, dims=(128, 128), of_angles=BF16, interleaved=False, paged=False
    ),
    "topk": lambda: topk_forward(length=4096, dtype=F32, k=8, weighs=True),
    "topk of an odd length": lambda: topk_forward(length=1023, dtype=F32, k=256, weighs=True),
}  # fmt: skip
"""Of each kernel what spilled once."""


def _marks(name):
    return [pytest.mark.slow] * (name not in ("matmul", "norm backward"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=_marks(n)) for n in WORST])
def test_what_spilled_once_does_so_no_more(name):
    assert not faults(MACHINE, WORST[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_nothing_is_spilled_wherever_two_choices_meet(name):
    """Takes the CPU 1.3 s for a kernel that multiplies and 0.3 s for one of rows: 36 s of attention's gradients, 40 s
    of convolutions, about 100 s of norms, and of matmul, whose 367,104 configurations are listed in 29 s, 200 s."""
    wrong, left = spills.checked([name])
    assert not left and not wrong, "\n".join(f"{name}: {one}" for name, of in wrong.items() for one in of)


def test_every_epilogue_that_is_offered_is_among_them():
    assert offered() <= set(ROOMS) and len(offered()) >= 10


def test_the_chosen_ones_have_every_pair_that_there_is():
    axes = {"a": [1, 2, 3], "b": "xyz", "c": [False, True], "d": range(4)}
    space = Space(axes, lambda a, b, c, d: not (a == 1 and c) and (b != "z" or d < 2), lambda **_: [])
    every, chosen = [space.choice(p) for p in space.places()], covering(space, 2)
    pairs = lambda some: {(m, c[m], n, c[n]) for c in some for m, n in itertools.combinations(axes, 2)}  # noqa: E731
    assert pairs(chosen) == pairs(every) and len(chosen) < len(every) / 2
    assert covering(space, 2) == chosen and all(c in every for c in chosen)
