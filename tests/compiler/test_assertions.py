# SPDX-License-Identifier: Apache-2.0
"""An assertion that is false for all that a kernel may be given is an error when it is compiled, in the words that the
simulator has when a thread comes to it."""

import subprocess
import sys

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.seam.guards.messages import FalseAssertion
from tests.native import Native

from . import asserting


def arguments():
    return cute.runtime.from_dlpack(np.zeros((4, 4), np.float32)), np.int32(2)


@pytest.mark.parametrize("kernel", asserting.FALSE, ids=lambda k: k.__name__)
def test_a_false_assertion_is_refused_in_the_same_words(kernel):
    said = []
    for run in (
        lambda: cute.simulate(kernel)[1, 1](*arguments()),
        lambda: cute.simulate(kernel, checks=False)[1, 32](*arguments()),
        lambda: cute.compile(kernel, arguments()),
    ):
        with pytest.raises(cute.CuteError) as caught:
            run()
        assert isinstance(caught.value, AssertionError)
        assert "asserting.py:" in str(caught.value), "the user's line"
        said.append(str(caught.value).splitlines()[0])
    assert said == [asserting.FALSE[kernel]] * 3


@pytest.mark.parametrize("kernel", asserting.RIGHT, ids=lambda k: k.__name__)
def test_an_assertion_that_may_be_true_is_compiled(kernel):
    cute.simulate(kernel)[1, 1](*arguments())
    cute.compile(kernel, arguments())


def test_a_message_that_only_a_run_knows_is_left_out():
    with pytest.raises(FalseAssertion, match=r"`assert a.shape\[0\] == 31` is false\n"):
        cute.compile(asserting.with_a_message_of_run_time, arguments())


def test_what_is_false_at_run_time_is_said_by_the_simulator():
    with pytest.raises(FalseAssertion, match=r"`assert n > 5` is false: too few\n.*asserting.py"):
        cute.simulate(asserting.wrong_at_run_time)[1, 1](*arguments())
    cute.compile(asserting.wrong_at_run_time, arguments())


def test_a_run_time_condition_around_it_does_not_make_it_true():
    with pytest.raises(FalseAssertion, match="is false.*\n  in kernel guarded_at_run_time, .*asserting.py"):
        cute.compile(asserting.guarded_at_run_time, arguments())


def test_without_its_source_the_line_is_named():
    space = {"cute": cute}
    exec("def kernel(a, n):\n    assert a.shape[0] == 31\n", space)
    for run in (
        lambda: cute.simulate(space["kernel"])[1, 1](*arguments()),
        lambda: cute.compile(space["kernel"], arguments()),
    ):
        with pytest.raises(FalseAssertion, match=r"assert … is false\n.*<string>:2"):
            run()


@pytest.mark.parametrize("name", [n for n in vars(asserting.Raising) if n.islower() and not n.startswith("_")])
def test_a_message_may_hold_what_a_run_knows(name):
    kernel, out = getattr(asserting.Raising, name), np.zeros(1, np.int64)
    kernel = getattr(kernel, "dispatcher", kernel)
    cute.simulate(kernel)[1, 1](out, 5)
    assert out[0] == 5
    native = Native(kernel, (out, 7))
    native.run(1, out, 7)
    assert out[0] == 7
    assert "trap" not in cute.compile(kernel, (out, 5), arch="sm_90a").ptx


IN_DEBUG = """
import numpy as np
import numba_cute as cute
from tests.compiler import asserting
for name, kernel in vars(asserting.Raising).items():
    if name.islower() and not name.startswith("_") and name != "static_and_not":
        plain = getattr(kernel, "dispatcher", kernel).py_func
        cute.compile(cute.kernel(plain, debug=True, opt=False), (np.zeros(1, np.int64), 5), arch="sm_90a")
"""
"""Of a process of its own: libNVVM makes other PTX for sm_100 once it has compiled with debugging."""


def test_a_message_may_hold_it_in_a_kernel_that_is_debugged():
    subprocess.run([sys.executable, "-c", IN_DEBUG], check=True, timeout=300)


@pytest.mark.parametrize("name", ["a_text", "a_number", "several"])
def test_the_simulator_tells_the_whole_message(name):
    with pytest.raises((AssertionError, ValueError), match="-3"):
        cute.simulate(getattr(asserting.Raising, name).dispatcher)[1, 1](np.zeros(1, np.int64), -3)
