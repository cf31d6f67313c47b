# SPDX-License-Identifier: Apache-2.0
"""A kernel's lines run by Python itself, in the simulator, and compiled for this processor."""

import hashlib
import linecache

import numpy as np

import numba_cute as cute
from tests.native import Native


def kernel_of(head, lines):
    """The kernel(o, n, m) of these lines, after a module's head."""
    text = head + "\ndef kernel(o, n, m):\n" + "".join(f"    {line}\n" for line in lines.strip("\n").split("\n"))
    name = f"<three ways {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "three_ways"}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space["kernel"]


def results(head, lines, n=5, m=3):
    """What each of the three writes: (Python, simulator, compiled)."""
    outs = [np.full(12, -77, np.int64) for _ in range(3)]
    kernel_of(head, lines)(outs[0], n, m)
    cute.simulate(cute.kernel(kernel_of(head, lines)))[1, 1](outs[1], n, m)
    Native(cute.kernel(kernel_of(head, lines)), (outs[2], n, m)).run(1, outs[2], n, m)
    return [out[out != -77].tolist() for out in outs]


def compiled(head, lines):
    """Compile the kernel of these lines."""
    return Native(cute.kernel(kernel_of(head, lines)), (np.zeros(12, np.int64), 5, 3))
