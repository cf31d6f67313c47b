# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: UP031, SIM115
"""Mistakes with Python itself: what kernels do not have of it."""

import math

import numpy as np
from numba import cuda

import numba_cute as cute

from .form import mistake
from .tensors import tensor

NUMBERS = [1, 2, 3]
TABLE = {"a": 1}
COUNT = 0
WAYS = "the simulator follows the way that is run, where the variable has one type; the compiler joins all ways"


class Plain:
    def __init__(self, x):
        self.x = x


@cuda.jit(device=True)
def grows(x):
    if x > 0:
        return (x, grows(x - 1))  # wrong
    return x


@mistake("dict", tensor(8, 4), np.int32(1))
def dict_in_a_kernel(t, n):
    d = {}
    d[n] = 2  # wrong
    t[0, 0] = d[n]


@mistake("dict", tensor(8, 4), np.int32(1))
def dict_of_run_time_numbers(t, n):
    d = {"a": n, "b": 2}
    d["a"] = 3  # wrong
    t[0, 0] = d["a"]


@mistake("set", tensor(8, 4), np.int32(1))
def set_in_a_kernel(t, n):
    s = {1, n}  # wrong
    if n in s:
        t[0, 0] = 1.0


@mistake("f-string", tensor(8, 4), np.int32(1))
def f_string_in_a_kernel(t, n):
    s = f"{n}"  # wrong
    t[0, 0] = len(s)


@mistake("%", tensor(8, 4), np.int32(1))
def text_formatted_by_percent(t, n):
    s = "%d" % n  # wrong
    t[0, 0] = len(s)


@mistake("format", tensor(8, 4), np.int32(1))
def text_formatted_by_its_method(t, n):
    s = f"{n}"  # wrong
    t[0, 0] = len(s)


@mistake("yield", tensor(8, 4))
def generator_in_a_kernel(t):
    yield 1  # wrong
    t[0, 0] = 1.0


@mistake("generator", tensor(8, 4), np.int32(1))
def generator_expression(t, n):
    g = (i * n for i in range(3))  # wrong
    for x in g:
        t[0, 0] = x


@mistake("try", tensor(8, 4))
def try_in_a_kernel(t):
    try:  # wrong
        t[0, 0] = 1.0
    except ValueError:
        t[0, 0] = 2.0


@mistake("try", tensor(8, 4))
def finally_in_a_kernel(t):
    try:  # wrong
        t[0, 0] = 1.0
    finally:
        t[0, 0] = 2.0


@mistake("with", tensor(8, 4))
def with_in_a_kernel(t):
    with open("x"):  # wrong
        t[0, 0] = 1.0


@mistake("global", tensor(8, 4))
def global_that_is_set(t):
    global COUNT
    COUNT = 1  # wrong
    t[0, 0] = 1.0


@mistake("no_such_module", tensor(8, 4))
def import_in_a_kernel(t):
    import no_such_module as m  # wrong

    t[0, 0] = m.pi


@mistake("class", tensor(8, 4))
def class_in_a_kernel(t):
    class Inner:  # wrong
        pass

    t[0, 0] = 1.0


@mistake("async", tensor(8, 4))
async def coroutine_as_a_kernel(t):  # wrong
    t[0, 0] = 1.0


@mistake("is not defined", tensor(8, 4))
def name_that_is_not_there(t):
    t[0, 0] = unknown + 1  # noqa: F821  # wrong


@mistake(
    "has no value here", tensor(8, 4), np.int32(1), only="simulator",
    reason="which way a run takes is known only at run time, and compiled code has a value for each variable",
)  # fmt: skip
def name_that_is_set_in_one_branch(t, n):
    if n > 3:
        x = 1.0
    t[0, 0] = x  # wrong


@mistake("has no attribute", tensor(8, 4))
def attribute_of_a_module_that_is_not_there(t):
    t[0, 0] = math.unknown(1.0)  # wrong


@mistake("it is not a function", tensor(8, 4), np.int32(1))
def number_that_is_called(t, n):
    t[0, 0] = n(3)  # wrong


@mistake("it has no elements; arrays, tensors and tuples have", tensor(8, 4), np.int32(1))
def number_that_is_indexed(t, n):
    t[0, 0] = n[0]  # wrong


@mistake("cannot be iterated over; range", tensor(8, 4), np.int32(1))
def number_that_is_iterated_over(t, n):
    for i in n:  # wrong
        t[0, 0] = i


@mistake("has no attribute", tensor(8, 4), np.int32(1))
def attribute_of_a_number(t, n):
    t[0, 0] = n.depth  # wrong


@mistake("kernels have no such operator for these types; convert", tensor(8, 4), np.int32(1))
def text_and_number_added(t, n):
    t[0, 0] = "x" + n  # wrong


@mistake("kernels have no such operator for these types; convert", tensor(8, 4), np.int32(1))
def tuple_and_number_added(t, n):
    t[0, 0] = (1, 2) + n  # wrong


@mistake("one type", tensor(8, 4), np.int32(1), only="compiler", reason=WAYS)
def number_or_tuple(t, n):
    x = 1
    if n > 3:
        x = (1, 2)
    t[0, 0] = x  # wrong


@mistake("one type", tensor(8, 4), np.int32(1), only="compiler", reason=WAYS)
def layout_or_number(t, n):
    x = cute.make_layout(4)
    if n > 3:
        x = 4
    t[0, 0] = cute.size(x)  # wrong


@mistake(
    "returns tuple on one way and int64 on another", tensor(8, 4), np.int32(3), only="compiler", where=grows,
    reason="types of results follow from all ways through a function; the simulator follows the one that is run",
)  # fmt: skip
def recursion_whose_type_grows(t, n):
    t[0, 0] = grows(n)[0]  # wrong


def counts_down(x):
    if x > 0:
        return 1 + counts_down(x - 1)  # wrong
    return 0


@mistake("as often as only run time decides: write a loop", tensor(8, 4), np.int32(3), where=counts_down)
def plain_recursion(t, n):
    t[0, 0] = counts_down(n)


@mistake("names has another number of elements", tensor(8, 4), np.int32(1))
def tuple_unpacked_into_too_few(t, n):
    a, b = (n, 2, 3)  # wrong
    t[0, 0] = a + b


@mistake("tuple index out of range", tensor(8, 4), np.int32(1))
def tuple_indexed_out_of_bounds(t, n):
    a = (n, 2, 3)
    t[0, 0] = a[3]  # wrong


@mistake("of tuple: its elements cannot be set; those of arrays and", tensor(8, 4), np.int32(1))
def element_of_a_tuple_set(t, n):
    a = (n, 2, 3)
    a[0] = 4  # wrong
    t[0, 0] = a[0]


@mistake(
    "a list grows in a loop, or on a way, that only run time decides", tensor(8, 4), np.int32(1), only="compiler",
    reason="a list of the simulator's is Python's: that a loop which grows it is not unrolled cannot be seen in it",
)  # fmt: skip
def list_grown_in_a_run_time_loop(t, n):
    a = [1]
    for i in range(n):
        a.append(i)  # wrong
    t[0, 0] = a[0]


@mistake("cannot be iterated over; range", tensor(8, 4), np.int32(1))
def star_of_a_number(t, n):
    t[0, 0] = max(*n)  # wrong


@mistake("np.random.rand: kernels have no such function; draw the numbers on the host", tensor(8, 4))
def random_number_of_numpy(t):
    t[0, 0] = np.random.rand()  # wrong


@mistake("np.linalg.det: kernels have no such function; call it on the host", tensor(8, 4))
def linear_algebra_of_numpy(t):
    t[0, 0] = np.linalg.det(((1.0, 2.0), (3.0, 4.0)))  # wrong


@mistake(
    "is of the host", tensor(8, 4), only="compiler", other="No such file",
    reason="the simulator runs on the host, where debugging may write a file: docs/simulator.md allows it",
)  # fmt: skip
def file_opened_in_a_kernel(t):
    f = open("x")  # wrong
    t[0, 0] = 1.0
    f.close()


@mistake("elements cannot be deleted in a kernel", tensor(8, 4))
def element_deleted(t):
    del t[0, 0]  # wrong


@mistake("a kernel gives nothing back: write the result to an array", tensor(8, 4), np.int32(1))
def value_given_back_by_a_kernel(t, n):
    t[cuda.threadIdx.x % 8, 0] = 1.0
    return n  # wrong


@mistake("kernels have no such function for these types", tensor(8, 4), np.int32(1))
def text_as_a_number(t, n):
    t[0, 0] = int("12")  # wrong
