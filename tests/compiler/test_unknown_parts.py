# SPDX-License-Identifier: Apache-2.0
"""Properties of static objects, of whose parts some are known only at run time: what they say of these is found at run
time, or refused; Python, the simulator and compiled code (on this machine's processor) agree."""

import linecache
from typing import Any

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam import frozen, traced

from ..native import Native

SAID = ["self.n == 3", "self.n != 3", "isinstance(self.n, cute.Int32)", "isinstance(self.n, int)", "self.n is None"]
REFUSED = {
    "True if self.n else False": "cannot decide compile-time control flow",
    "self.n in (3, 4)": "cannot decide compile-time control flow",
    "1 < self.n < 5": "cannot decide compile-time control flow",
    "{3: 4}.get(self.n) is None": "cannot be hashed",
    "str(self.n) == '3'": "a text of what is known only at run time",
}


def made(text, n):
    """A kernel that says what a property gives, and the object that has it."""
    source = f"""
@frozen
class Box:
    n: Any = 0
    @property
    def holds(self):
        return {text}

@cuda.jit
def kernel(box, out):
    out[0] = 1 if box.holds else 2
"""
    name = f"<unknown parts: {text}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"frozen": frozen, "Any": Any, "cuda": cuda, "cute": cute, "__name__": __name__}
    exec(compile(source, name, "exec"), names)
    return names["kernel"], names["Box"](cute.Int32(n))


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("text", SAID)
def test_a_property_says_in_a_kernel_what_it_says_in_python(text, n):
    kernel, box = made(text, n)
    simulated, compiled = np.zeros(1, np.int32), np.zeros(1, np.int32)
    cute.simulate(kernel)[1, 1](box, simulated)
    Native(kernel, (box, compiled)).run(1, box, compiled)
    want = 1 if box.holds else 2
    assert (simulated[0], compiled[0]) == (want, want)


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_property_cannot_say_before_the_run_is_refused_by_both(text):
    kernel, box = made(text, 3)
    out = np.zeros(1, np.int32)
    with pytest.raises(cute.CuteError, match=REFUSED[text]):
        cute.simulate(kernel)[1, 1](box, out)
    with pytest.raises(cute.CuteError, match=REFUSED[text]):
        cute.compile(kernel, (box, out), arch="sm_90a")


@traced
def is_int(x):
    return 1 if isinstance(x, int) else 2


@cuda.jit
def asks(n, out):
    out[0], out[1], out[2] = is_int(n), is_int(cuda.threadIdx.x), is_int(cute.Int32(n))
    out[3], out[4] = is_int(n + 1), is_int(4)


@pytest.mark.parametrize("n", [3, np.int32(3), cute.Int32(3)], ids=lambda n: type(n).__name__)
def test_a_number_at_run_time_is_no_int_to_traced_functions(n):
    simulated, compiled = np.zeros(5, np.int32), np.zeros(5, np.int32)
    cute.simulate(asks)[1, 1](n, simulated)
    Native(asks, (n, compiled)).run(1, n, compiled)
    assert simulated.tolist() == compiled.tolist() == [2, 2, 2, 2, 1]
