# SPDX-License-Identifier: Apache-2.0
"""What NumPy has and kernels do not: the same words whether or not Numba compiled for the CPU before, of which
numba-cuda's typing sees the overloads."""

import heapq
import random

import numpy as np
import pytest
from numba import cuda
from numba.core.registry import cpu_target

import numba_cute as cute

DRAWN = "draw the numbers on the host and pass them, or call numba.cuda.random.xoroshiro128p_uniform_float32(states, i)"
CALLED = "call it on the host and pass the result, or write a loop over the elements"
CASES = {}


def says(words):
    """Give a function of the table the words of its refusal."""
    return lambda function: CASES.setdefault(function.__name__, (function, words))[0]


@says(f"np.random.rand: kernels have no such function; {DRAWN}")
def recurs(x):
    x[0] = np.random.rand()


@says(f"np.random.standard_normal: kernels have no such function; {DRAWN}")
def stops_a_generator(x):
    x[0] = np.random.standard_normal()


@says(f"random.random: kernels have no such function; {DRAWN}")
def of_python(x):
    x[0] = random.random()


@says(f"np.linalg.inv: kernels have no such function; {CALLED}")
def asks_for_scipy(x):
    x[0] = np.linalg.inv(x)[0]


@says(f"np.nanargmax: kernels have no such function; {CALLED}")
def has_an_overload_for_the_cpu(x):
    x[0] = np.nanargmax(x)


@says(f"heapq.heappush: kernels have no such function; {CALLED}")
def of_another_module(x):
    heapq.heappush(x, x[0])


@says(f"np.sort(array): kernels have no such function for these types; {CALLED}")
def has_an_overload_that_fails(x):
    x[0] = np.sort(x)[0]


@says("np.multiply: kernels have no such function of numbers; write x * y")
def is_an_operator(x):
    x[0] = np.multiply(x[0], x[0])


@says("np.remainder: kernels have no such function of numbers; write x % y")
def has_another_name(x):
    x[0] = np.mod(x[0], x[0])


@pytest.fixture(scope="module", autouse=True)
def numba_for_the_cpu():
    cpu_target.target_context.refresh()  # loads its overloads, as the first njit does


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ours", [True, False], ids=["of this library", "plain"])
def test_a_function_of_the_host_is_refused_in_words_of_both_engines(name, ours):
    function, words = CASES[name]
    kernel, x = cuda.jit(_with_ours(function) if ours else function), np.ones(4)
    for run in (lambda: cute.compile(kernel, (x,)), lambda: cute.simulate(kernel)[1, 1](x)):
        with pytest.raises(cute.CuteError) as refused:
            run()
        assert str(refused.value).partition("\n")[0] == words


def _with_ours(function):
    def kernel(x):
        x[0] = cute.size(cute.make_layout(4))
        called(x)

    called = cuda.jit(function)
    return kernel


def test_what_the_cpu_has_besides_is_not_taken_in_kernels_of_this_library():
    def mean_of_a_number(x):
        x[0] = np.mean(x[0])

    with pytest.raises(cute.CuteError, match=r"np.mean\(float64\): kernels have no such function for these types"):
        cute.compile(cuda.jit(_with_ours(mean_of_a_number)), (np.ones(4),))
