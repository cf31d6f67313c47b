# SPDX-License-Identifier: Apache-2.0
"""What somebody taught Numba (`@overload` and its like), named tuples, records and masks, in both engines."""

import collections
import typing

import numba
import numba.extending
import numpy as np
import pytest
from numba import cuda
from numba.cuda import extending, types

import numba_cute as cute


def kind_of(x):
    raise NotImplementedError


@extending.overload(kind_of)
def _of_number(x):
    if isinstance(x, types.Integer):
        return lambda x: x + 100
    if isinstance(x, types.Float):
        return lambda x: x + 200
    return None


@extending.overload(kind_of)
def _of_array(x):
    if isinstance(x, types.Array):
        ndim = x.ndim
        return lambda x: x.shape[0] + 1000 * ndim
    return None


def scaled(x, y=1):
    raise NotImplementedError


@numba.extending.overload(scaled)
def _scaled(x, y=1):
    def multiplied(x, y=1):
        return x * 10 + y

    return multiplied


@extending.register_jitable
def plus_five(x):
    return x + 5


@extending.overload_method(types.Array, "cute_test_total")
def _total(array, times=1):
    def total(array, times=1):
        found = 0.0
        for x in array:
            found += x
        return found * times

    return total


@extending.overload_attribute(types.Array, "cute_test_last")
def _last(array):
    return lambda array: array[array.size - 1]


def simulated(kernel, *args, threads=1):
    """Simulate a kernel with checks and without: both give the last argument, changed in place."""
    found = []
    for checks in (True, False):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        cute.simulate(kernel, checks=checks)[1, threads](*given)
        found.append(given[-1])
    np.testing.assert_array_equal(*found)
    assert cute.compile(kernel, args).ptx
    return found[0].tolist()


@pytest.mark.parametrize("library", [pytest.param(False, marks=pytest.mark.slow), True], ids=["alone", "beside cute"])
def test_overloaded_functions(library):
    @cuda.jit
    def kernel(x, out):
        i = cute.arch.lane_idx() if library else cuda.laneid
        out[i] = kind_of(2) + kind_of(3.0)
        out[i + 1] = scaled(2) + scaled(2, y=3)
        out[i + 2] = plus_five(1)
        out[i + 3] = kind_of(x) + kind_of(out)

    assert simulated(kernel, np.zeros((2, 3)), np.zeros(8, np.float32))[:4] == [305, 44, 6, 3010]


def test_members_of_arrays():
    @cuda.jit
    def kernel(x, out):
        out[0] = x.cute_test_total() + x.cute_test_total(2)
        out[1] = x.cute_test_last
        cute.arch.sync_warp()

    assert simulated(kernel, np.arange(4, dtype=np.float32), np.zeros(2, np.float32)) == [18, 3]


def test_an_overloaded_function_is_passed_on():
    @cuda.jit
    def kernel(f, out):
        out[0] = f(2)
        cute.arch.sync_warp()

    assert simulated(kernel, kind_of, np.zeros(1, np.float32)) == [102]


def test_types_that_no_overload_takes():
    @cuda.jit
    def kernel(out):
        out[0] = kind_of((1, 2))

    with pytest.raises(cute.CuteError, match=r"kind_of\(tuple\): kernels have no such function for these types"):
        cute.simulate(kernel)[1, 1](np.zeros(1))


# ------------------------------------------------------------------ named tuples

Point = collections.namedtuple("Point", "x y")
Pair = collections.namedtuple("Pair", "point array")


class Typed(typing.NamedTuple):
    a: int
    b: float


@cuda.jit(device=True)
def beside(a):
    return Point(a, a + 1)


def test_named_tuples():
    @cuda.jit
    def kernel(pair, typed, out):
        i = cute.arch.lane_idx()
        inner = Point(1.5, y=out[7] + 2)
        x, y = inner
        outer = Pair(inner, i)
        layouts = Point(cute.make_layout((4, 2)), 3)
        out[0] = pair.point.x + pair[0].y + pair.array[2]
        out[1] = typed.a + typed[1]
        out[2] = x + outer.point.y + len(inner)
        out[3] = beside(8).y + beside(i).x
        out[4] = cute.size(layouts.x) + layouts.y
        out[5] = y

    pair = Pair(Point(1.5, 2), np.arange(4.0))
    assert simulated(kernel, pair, Typed(8, 2.5), np.zeros(8, np.float32))[:6] == [5.5, 10.5, 5.5, 9, 11, 2]


# ------------------------------------------------------------------ masks


@cuda.jit
def set_by_mask(mask, out):
    out[mask] = 7
    cute.arch.sync_warp()


@cuda.jit
def set_by_index(index, out):
    out[index] = 7


def test_elements_are_set_by_arrays():
    assert simulated(set_by_mask, np.arange(8) % 3 == 0, np.zeros(8)) == [7, 0, 0, 7, 0, 0, 7, 0]
    assert simulated(set_by_index, np.array([5, 2]), np.zeros(8)) == [0, 0, 7, 0, 0, 7, 0, 0]


def test_elements_that_a_mask_chooses_are_the_threads_own():
    def kernel(x, mask, out):
        i = cuda.threadIdx.x
        chosen = x[mask]
        chosen[i] += 1
        out[i] = chosen[i]

    x, mask, out = np.arange(16.0), np.arange(16) % 2 == 0, np.zeros(8)
    for checks in (True, False):
        cute.simulate(kernel, checks=checks)[1, 8](x, mask, out)
        assert out.tolist() == list(range(1, 17, 2)) and x.tolist() == list(range(16))


def test_a_kernel_has_no_memory_for_elements_that_a_mask_chooses():
    @cuda.jit
    def kernel(x, mask, out):
        out[0] = x[mask][0]

    with pytest.raises(cute.CuteError, match=r"makes a new array(.|\n)*out\[0\] = x\[mask\]\[0\]"):
        cute.simulate(kernel)[1, 1](np.zeros(4), np.ones(4, np.bool_), np.zeros(1))


def test_the_same_values_set_by_a_mask_are_warned_of():
    from numba_cute.sim import SimWarning

    with pytest.warns(SimWarning, match="(?s)race: .*out.*the same values"):
        cute.simulate(set_by_mask)[1, 32](np.arange(8) % 3 == 0, np.zeros(8))


# ------------------------------------------------------------------ records

RECORD = np.dtype([("x", np.float32), ("n", np.int32)])


def test_records_in_shared_and_local_arrays():
    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        shared, mine = cuda.shared.array(8, RECORD), cuda.local.array(1, NUMBA_RECORD)
        mine[0].x = i
        mine[0]["n"] = 1
        shared[i] = mine[0]
        cuda.syncthreads()
        out[i] = shared[7 - i].x + shared[7 - i].n

    assert simulated(kernel, np.zeros(8, np.float32), threads=8) == [8, 7, 6, 5, 4, 3, 2, 1]


NUMBA_RECORD = numba.from_dtype(RECORD)


@pytest.mark.slow
def test_half_precision_before_anything_is_compiled(tmp_path):
    """In a process of its own: `cuda.fp16` is there only once it was asked for."""
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom numba import cuda\nimport numba_cute as cute\n\n@cuda.jit\ndef kernel(x, out):\n"
        "    out[0] = cuda.fp16.hfma(x[0], x[1], x[1])\n\nx, out = np.full(2, 2, np.float16), np.zeros(1, np.float16)\n"
        "cute.simulate(kernel)[1, 1](x, out)\nassert out[0] == 6, out\n"
    )
    subprocess.run([sys.executable, script], check=True)
