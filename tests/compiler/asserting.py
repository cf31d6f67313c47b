# SPDX-License-Identifier: Apache-2.0
"""Kernels with assertions, outside of a test module, whose own pytest rewrites. `a` is a tensor of shape (4, 4).

PYTEST_DONT_REWRITE: the assertions are the kernels'."""

from numba import cuda

import numba_cute as cute

SIXTEEN = 16


def a_shape(a, n):
    assert a.shape[0] == 31


def with_a_message(a, n):
    assert a.shape[0] == 31, "the tile must fit"


def with_a_message_of_run_time(a, n):
    assert a.shape[0] == 31, n


def after_an_early_return(a, n):
    if cute.arch.thread_idx()[0] >= 40:
        return
    assert a.shape[0] == 31


def in_a_loop(a, n):
    for i in range(n):
        a[0, 0] = i
        assert cute.size(a) % 3 == 0


def in_an_unrolled_loop(a, n):
    for i in cute.range_constexpr(4):
        assert i < 3


def in_a_static_branch(a, n):
    if cute.size(a) == 16:
        a[0, 0] = 1
        assert cute.rank(a) == 3


def beside_what_runs(a, n):
    assert n > 0 and a.shape[0] == 31


def over_several_lines(a, n):
    assert (
        cute.size(a)
        == 17
    ), "of another size"  # fmt: skip


def a_tuple(a, n):
    assert a.shape == (4, 5)


def a_negation(a, n):
    assert not a.shape[0] == 4  # noqa: SIM201 - the negation is meant


def a_length(a, n):
    assert len(a.shape) == 3


def a_layout(a, n):
    assert a.layout == cute.make_layout((4, 4))


def a_type(a, n):
    assert a.element_type is cute.Float16


def one_of_several(a, n):
    assert a.element_type in (cute.Float16, cute.BFloat16)


def a_global(a, n):
    assert SIXTEEN == 31
    a[0, 0] = n


@cuda.jit(device=True)
def helper(a):
    assert a.shape[1] == 5
    return a[0, 0]


def in_a_device_function(a, n):
    a[0, 1] = helper(a)


FALSE = {
    a_shape: "`assert a.shape[0] == 31` is false",
    with_a_message: "`assert a.shape[0] == 31` is false: the tile must fit",
    after_an_early_return: "`assert a.shape[0] == 31` is false",
    in_a_loop: "`assert cute.size(a) % 3 == 0` is false",
    in_an_unrolled_loop: "`assert i < 3` is false",
    in_a_static_branch: "`assert cute.rank(a) == 3` is false",
    beside_what_runs: "`assert n > 0 and a.shape[0] == 31` is false",
    over_several_lines: "`assert cute.size(a) == 17` is false: of another size",
    a_tuple: "`assert a.shape == (4, 5)` is false",
    a_negation: "`assert not a.shape[0] == 4` is false",
    a_length: "`assert len(a.shape) == 3` is false",
    a_layout: "`assert a.layout == cute.make_layout((4, 4))` is false",
    a_type: "`assert a.element_type is cute.Float16` is false",
    one_of_several: "`assert a.element_type in (cute.Float16, cute.BFloat16)` is false",
    a_global: "`assert SIXTEEN == 31` is false",
    in_a_device_function: "`assert a.shape[1] == 5` is false",
}
"""What both engines say of each."""


def all_true(a, n):
    assert a.shape == (4, 4) and cute.size(a) == 16
    assert a.shape[0] == 31 or n > 0
    assert n > 0 or a.shape[0] == 31
    assert a.element_type == cute.Float32
    a[0, 0] = n


def left_out_by_a_static_branch(a, n):
    if cute.size(a) == 16:
        a[0, 0] = 1
    else:
        assert cute.size(a) == 32


def never_comes_here(a, n):
    if n > 0:
        a[0, 0] = 1
    elif n > -5:
        assert False  # noqa: B011 - how Python says so
    else:
        raise ValueError


def of_run_time(a, n):
    assert n > 0
    assert a.shape[0] > n
    for i in range(n):
        assert i < n
    a[0, 0] = n


RIGHT = [all_true, left_out_by_a_static_branch, never_comes_here, of_run_time]


def wrong_at_run_time(a, n):
    assert n > 5, "too few"
    a[0, 0] = n


def guarded_at_run_time(a, n):
    if n > 5:
        assert a.shape[0] == 31
    a[0, 0] = n


@cute.jit
def checked(x, n):
    assert n > -100, ("no", n)
    if cute.const_expr(cute.size(x) == 4):
        return n
    raise ValueError(f"a layout of {cute.size(x)} elements, for {n}")


class Raising:
    """Kernels that say what only a run knows, where they raise."""

    LAYOUT = cute.make_layout((2, 2))

    @cute.kernel
    def a_text(out, n):
        assert n > 0, f"n is {n}"
        out[0] = n

    @cute.kernel
    def a_number(out, n):
        assert n > 0, n
        out[0] = n

    @cute.kernel
    def several(out, n):
        if n <= 0:
            raise ValueError("n is", n)
        out[0] = n

    @cute.kernel
    def static_and_not(out, n):
        assert cute.size(Raising.LAYOUT) == 4, f"size {cute.size(Raising.LAYOUT)} {n}"
        out[0] = checked(Raising.LAYOUT, n)
