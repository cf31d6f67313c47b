# SPDX-License-Identifier: Apache-2.0
"""What kernels and functions may be given: functions, members of enumerations, keyword-only parameters."""

import enum
import functools
import math
import operator
import warnings

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from tests.compiler import test_native_launch as native
from tests.compiler.noting import kernel_of
from tests.compiler.test_native_launch import packed, planned

launches = native.launches


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 4


class Kind(enum.Enum):
    ROW = "row"
    COLUMN = "column"


class Flag(enum.IntFlag):
    FIRST = 1
    SECOND = 2


@pytest.fixture
def both():
    """Run a kernel of one thread in the simulator, with checks and without, and compile it."""

    def run(kernel, *args, want):
        for checks in (True, False):
            out = np.zeros(16, np.float32)
            cute.simulate(kernel, checks=checks)[1, 1](*args, out)
            assert out[: len(want)].tolist() == want
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Numba's, of functions in a tuple of one type
            assert cute.compile(kernel, (*args, out)).ptx

    return run


# ------------------------------------------------------------------ functions


@cuda.jit(device=True)
def twice(x):
    return 2 * x


@cuda.jit(device=True)
def line(x, a=2, b=3):
    return x * a + b


@cute.jit
def next_one(x, *, step=1):
    return x + step


def halved(x):
    return x / 2


@cuda.jit(device=True)
def apply(f, x):
    return f(x)


@cuda.jit(device=True)
def composed(f, g, x):
    return apply(f, apply(g, x))


@cuda.jit
def calls(f, out):
    out[cute.arch.lane_idx()] = f(4)


GIVEN = {
    "device": (twice, 8), "plain": (halved, 2), "cute.jit": (next_one, 5), "lambda": (lambda x: x + 7, 11),
    "partial": (functools.partial(halved), 2), "partial of device": (functools.partial(line, a=5), 23),
    "operator": (operator.neg, -4), "math": (math.sqrt, 2), "element type": (cute.Int32, 4),
}  # fmt: skip
DEFAULT = ("device", "plain", "math")


@pytest.mark.parametrize(
    "function, want", [pytest.param(*GIVEN[k], marks=() if k in DEFAULT else pytest.mark.slow, id=k) for k in GIVEN]
)
def test_a_kernel_is_given_a_function(both, function, want):
    both(calls, function, want=[want])


def test_functions_are_passed_on_and_in_tuples(both):
    @cuda.jit
    def kernel(f, g, several, out):
        cute.arch.lane_idx()
        out[0] = composed(f, g, 3) + f(1)
        for h in several:
            out[1] += h(6)

    both(kernel, twice, halved, (twice, halved, next_one), want=[5, 22])


@cuda.jit
def plain_kernel(f, out):
    out[0] = f(5)


class Held:
    def __init__(self, k):
        self.k = k


def leaves(x):
    pass


def counts(x):
    x.k = x.k + 1


def adds(by, x):
    x.k = x.k + by


@pytest.mark.parametrize("functions, want", [((leaves, counts), [4.0]), ((leaves, functools.partial(adds, 2)), [5.0])])
def test_functions_that_set_a_field_are_in_tuples(both, functions, want):
    @cuda.jit
    def kernel(functions, out):
        x = Held(3)
        for f in functions:
            f(x)
        out[0] = x.k

    both(kernel, functions, want=want)


def test_a_kernel_of_numbas_is_given_a_function(both):
    both(plain_kernel, lambda x: x + 1, want=[6])


# ------------------------------------------------------------------ defaults and names


def test_defaults_and_names(both):
    @cuda.jit
    def kernel(out):
        cute.arch.lane_idx()
        out[0], out[1], out[2], out[3] = line(3), line(3, b=1), line(b=1, x=2), next_one(4, step=3)

    both(kernel, want=[9, 7, 5, 7])


def test_a_kernel_has_keyword_only_parameters(both):
    @cute.kernel
    def kernel(out, k=2, *, n: cute.Constexpr = 3, m=1.0):
        registers = cute.make_rmem_tensor((n,), cute.Float32)
        out[0] = cute.size(registers) + k + m

    both(kernel, want=[6])
    out = np.zeros(4, np.float32)
    cute.simulate(kernel)[1, 1](out, m=4.0, n=2)
    assert out[0] == 8


@cuda.jit(device=True)
def of_names(a, b=2, *, c, d=4):
    return 1000 * a + 100 * b + 10 * c + d


@cute.jit
def of_names_too(a, b=2, *, c, d=4):
    if a > 2:
        d = d + 1
    return 1000 * a + 100 * b + 10 * c + d


def test_device_functions_have_keyword_only_parameters(both):
    @cuda.jit
    def kernel(n, out):
        cute.arch.lane_idx()
        out[0], out[1], out[2] = of_names(1, c=3), of_names(a=n, d=7, c=n, b=1), of_names(2, 3, c=4)
        out[3], out[4] = of_names_too(1, c=3), of_names_too(n, b=1, c=5)

    both(kernel, 6, want=[1234, 6167, 2344, 1234, 6155])

    @cuda.jit
    def wrong(out):
        out[cute.arch.lane_idx()] = of_names(1, 2, 3)

    for run in (lambda: cute.simulate(wrong)[1, 1](np.zeros(4)), lambda: cute.compile(wrong, (np.zeros(4),))):
        with pytest.raises(TypeError, match="of_names"):
            run()


# ------------------------------------------------------------------ methods


class Scaled:
    def __init__(self, scale, inner=None):
        self.scale, self.inner = scale, inner

    def of(self, x, offset=0):
        return x * self.scale + offset

    def twice(self, x):
        return self.of(self.of(x))

    def clamped(self, x):
        while x > self.scale:
            x -= self.scale
        if x < 1:
            return x + self.scale
        return x


@cuda.jit(device=True)
def sums(f, x):
    return f(x) + f(x + 1)


@cuda.jit
def calls_method(f, out):
    cute.arch.lane_idx()
    out[0], out[1] = f(7), sums(f, 2)


@pytest.mark.parametrize(
    "method, want",
    [
        (Scaled(3).of, [21, 15]), (Scaled(3).twice, [63, 45]), (Scaled(5).clamped, [2, 5]),
        (Scaled(1, Scaled(2).of).inner, [14, 10]), (cute.make_layout(9, stride=2), [14, 10]),
    ],
    ids=["method", "calls another", "run-time control flow", "field", "callable object"],
)  # fmt: skip
def test_a_kernel_is_given_a_bound_method(both, method, want):
    both(calls_method, method, want=want)


def test_methods_are_in_tuples_and_in_fields(both):
    @cuda.jit
    def kernel(several, holder, out):
        for i, f in enumerate(several):
            out[i] = f(cute.arch.lane_idx() + 4)
        out[2] = holder.inner(5)

    both(kernel, (Scaled(2).of, Scaled(3).clamped), Scaled(1, Scaled(10).of), want=[8, 1, 50])


def test_a_partial_function_has_run_time_control_flow(both):
    def counted(start, x, step=1):
        n = start
        while x > 0:
            x, n = x - step, n + 1
        return n

    both(calls, functools.partial(counted, 10), want=[14])
    both(calls, functools.partial(counted, 10, step=2), want=[12])


def test_a_launch_finds_a_method_as_its_object_is_then():
    thing, packed = Scaled(2), []
    kernel = kernel_of((thing.of,))
    kernel._prepare_args(kernel.argument_types[0], thing.of, 0, [], packed)
    assert packed == []  # the type says all
    setting = native.plans.Setting(kernel, 0, (1, 1, 1), (1, 1, 1), 0, 0)
    assert native.plans.plan(setting, (thing.of,), (thing.of,), {}) is None
    thing.scale = 3
    assert kernel_of((thing.of,)).argument_types != kernel.argument_types


# ------------------------------------------------------------------ members of enumerations


@cuda.jit(device=True)
def of_device(k, f, out, n=Size.SMALL):
    if k is Size.LARGE:
        out[0] = 1
    if k == 4:
        out[1] = k + 0
    out[2] = k.value + n
    if cute.const_expr(f is Kind.COLUMN):
        out[3] = 1
    out[4] = cute.size(cute.make_rmem_tensor((k, n), cute.Float32))


def of_python(k, out):
    if k is Size.LARGE:
        out[0] = 1
    out[1] = k + 1
    out[2] = cute.size(cute.make_rmem_tensor((k, 2), cute.Float32))


@cuda.jit(device=True)
def relays(k, out):
    of_python(k, out)


def test_functions_know_the_members_that_they_are_given(both):
    @cuda.jit
    def kernel(out):
        of_device(Size.LARGE, f=Kind.COLUMN, out=out, n=Flag.SECOND)

    both(kernel, want=[1, 4, 6, 1, 8])

    @cuda.jit
    def python(out):
        of_python(Size.LARGE, out)

    @cuda.jit
    def relayed(out):
        relays(Size.LARGE, out)

    for k in (python, relayed):
        both(k, want=[1, 5, 8])


SHAPE = (Size.LARGE, 2)


def test_members_are_static_numbers(both):
    @cuda.jit
    def kernel(out):
        i = cute.arch.lane_idx()
        out[0] = cute.size(cute.make_rmem_tensor((Size.LARGE, (2, Size.SMALL), 2), cute.Float32))
        out[1] = cute.size(cute.make_rmem_tensor(SHAPE, cute.Float32))
        n = Size.LARGE
        out[2] = cute.size(cute.make_layout((n, i + 1)))
        out[3] = cute.size(cute.make_rmem_tensor((max(Size.SMALL, Size.LARGE) // 2,), cute.Float32))
        out[4], out[5] = -Size.LARGE, Flag.FIRST | Flag.SECOND

    both(kernel, want=[16, 8, 4, 2, -4, 3])


def test_a_member_known_only_at_run_time_is_a_number(both):
    @cuda.jit
    def kernel(n, out):
        k = Size.SMALL
        if n > 5:
            k = Size.LARGE
        out[cute.arch.lane_idx()] = k + 1

    both(kernel, 7, want=[5])


# ------------------------------------------------------------------ classes that describe memory


def test_any_kernel_may_describe_its_shared_memory(both):
    count = 4

    @cuda.jit
    def kernel(out):
        @cute.struct
        class Storage:
            x: cute.struct.MemRange[cute.Float32, count]
            barriers: cute.struct.MemRange[cute.Int64, 2]

        x = cute.utils.SmemAllocator().allocate(Storage).x.get_tensor(cute.make_layout(count))
        x[1] = 5
        out[0] = x[1]

    both(kernel, want=[5])


def test_a_device_function_may_describe_its_shared_memory(both):
    @cuda.jit(device=True)
    def stored(value):
        @cute.struct
        class Storage:
            x: cute.struct.MemRange[cute.Float32, 4]

        x = cute.utils.SmemAllocator().allocate(Storage).x.get_tensor(cute.make_layout(4))
        x[1] = value
        return x[1]

    @cuda.jit
    def kernel(out):
        out[cute.arch.lane_idx()] = stored(3)

    both(kernel, want=[3])


# ------------------------------------------------------------------ launches


def test_a_launch_is_of_the_functions_that_it_was_compiled_for(launches):
    given = (twice, halved, operator.add)
    site = planned(launches, given)
    packed(launches, site, *given)
    for i, other in enumerate((line, lambda x: x, operator.sub)):
        site.call(*given[:i], other, *given[i + 1 :])
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()


def test_a_partial_function_is_told_by_what_it_holds(launches):
    site = planned(launches, (functools.partial(line, 1),))
    packed(launches, site, functools.partial(line, 1))
    for other in (functools.partial(line, 2), functools.partial(line, b=1), functools.partial(twice, 1)):
        site.call(other)
        assert len(site.slow.calls) == 1
        site.slow.calls.clear()
