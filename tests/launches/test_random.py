# SPDX-License-Identifier: Apache-2.0
"""Random arguments at one site: the bytes that the driver is given are those of the slow way."""

from __future__ import annotations

import enum
import functools
import random

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import config
from numba_cute.runtime import from_dlpack, remembered

from .cases import Holds, HoldsMore, Plain, _closing, _gives, tensor
from .gpu import a_gpu
from .of_arrays import array
from .slow import casts
from .test_changes import launched, slowly

pytestmark = pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaPerformanceWarning")
INTS = (0, 1, -1, 2, 127, 128, 255, -128, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32)
INTS += ((1 << 63) - 1, -(1 << 63), 1 << 63, (1 << 64) - 1)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.1, 1e300, 5e-324, float("inf"), float("nan"))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def number(r):
    """A number of any kind."""
    whole, real = r.choice(INTS), r.choice(FLOATS)
    kind = r.choice((np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64))
    dtype = r.choice((cute.Int8, cute.Uint8, cute.Int32, cute.Uint32, cute.Int64, cute.Uint64, cute.Boolean))
    with np.errstate(all="ignore"):
        return r.choice((
            lambda: whole, lambda: real, lambda: r.choice((True, False)),
            lambda: np.array(whole & 127).astype(kind)[()],
            lambda: np.float32(real), lambda: np.float64(real), lambda: np.float16(1.5), lambda: np.bool_(whole & 1),
            lambda: dtype(whole), lambda: cute.Float32(real), lambda: cute.Float64(real), lambda: complex(real, 1.0),
            lambda: cute.Int32(8 * (whole & 15)).assumed(8), lambda: None,
        ))()  # fmt: skip


def static_number(r):
    found = number(r)
    return found if isinstance(found, (int, float, cute.dtypes.Scalar)) else r.choice(INTS)


LAYOUTS = [cute.make_layout((4, 8)), cute.make_layout((8, 4)), cute.make_layout(16)]
FUNCTIONS = [_closing(1), _closing(True), _closing(cute.Int32(1)), functools.partial(_gives, n=1), len, _gives]
OBJECTS = [Plain(1), Plain((1, 2.5)), Plain(Plain(cute.Int32(1)))]


@remembered
def made_of(x, n):
    return from_dlpack(x), cute.Int32(x.shape[0]), Holds(n)


def argument(r, kind):
    """An argument of a kind, and with it what may have changed."""
    if kind < 4:
        return number(r)
    if kind == 4:
        return tuple(number(r) for _ in range(r.randrange(1, 4)))
    if kind == 5:
        return tensor(0x1000 * r.randrange(1, 5), (r.choice((4, 8)),), r.choice((cute.Float32, cute.Int32)))
    if kind == 6:
        return cute.make_layout((r.choice((4, 8)), r.choice((4, cute.Int32(r.randrange(9)), cute.Int64(3)))))
    if kind == 7:
        return r.choice((Holds, functools.partial(HoldsMore, 1)))(static_number(r))
    if kind == 8:
        obj = r.choice(OBJECTS)
        obj.x = static_number(r)
        return obj
    if kind == 9:
        fn = r.choice(FUNCTIONS)
        if getattr(fn, "__closure__", None):
            fn.__closure__[0].cell_contents = static_number(r)
        elif isinstance(fn, functools.partial):
            fn.keywords["n"] = static_number(r)
        return fn
    if kind == 10:
        return from_dlpack(array(0x10000 * r.randrange(1, 9), (r.choice((32, 64)), 64)))
    return r.choice(LAYOUTS)


class Of:
    """What `slowly` takes."""

    def __init__(self, function, args):
        self.function, self.args = function, args


def function(a, b, c=3, d=(1, 2.5)):
    cute.arch.thread_idx()


def compare(seed, count):
    r = random.Random(seed)
    with a_gpu() as gpu, casts():
        site, tried = cute.kernel(function)[1, 32], 0
        forms = [tuple(r.choices(range(1, 12), k=r.randrange(2, 5))) for _ in range(6)]
        for _ in range(count):
            given = tuple(argument(r, kind) for kind in r.choice(forms))
            if r.random() < 0.1:
                function.__defaults__ = (static_number(r), argument(r, r.randrange(12)))
            for _ in range(r.choice((1, 1, 4))):
                now = launched(gpu, site, lambda given=given: given)
                assert now == slowly(gpu, Of(function, lambda given=given: given)), given
                tried += type(now) is tuple
        by_plans = sum(p.launched for p in site._site.plans)
    assert tried > 0.8 * count and by_plans > 0.1 * count, "few were launched, or in machine code"


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 10))])
def test_random_arguments_at_one_site_are_packed_as_the_slow_way_packs_them(seed):
    compare(seed, 250 if seed else 100)


@pytest.mark.parametrize("seed", range(2))
def test_launches_that_are_checked_find_no_fault(seed):
    with config.override(check_launches=True):
        compare(seed + 100, 60)
