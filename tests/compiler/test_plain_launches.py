# SPDX-License-Identifier: Apache-2.0
"""Launches of plain Numba's kernels: with this library imported they do what they do without it, call for call."""

from __future__ import annotations

import subprocess
import sys

import pytest

LAUNCHED = """
import sys, warnings
if sys.argv[1] == "with":
    import numba_cute
from numba import cuda
from numba.cuda import dispatcher, types

class Library:
    class cufunc:
        kernel = None

    def get_cufunc(self):
        return self.cufunc

class Stream:
    handle = 0

warnings.simplefilter("ignore")
dispatcher.driver._to_core_stream = lambda stream: Stream
dispatcher.launch = lambda *args: None
dispatcher.LaunchConfig = lambda **settings: None

@cuda.jit
def kernel(n, x):
    pass

made = dispatcher._Kernel.__new__(dispatcher._Kernel)
made.signature = types.void(types.int64, types.float64)
made.debug, made.extensions, made.cooperative, made._codelibrary = False, [], False, Library()
made.launch_config_sensitive = False
kernel._insert([t._code for t in made.signature.args], made, cuda=True)
launch = kernel[1, 32]
for _ in range(3):
    launch(3, 2.5)
events = []

def noted(frame, event, arg):
    name = frame.f_code.co_name if event in ("call", "return") else getattr(arg, "__qualname__", str(arg))
    if name not in ("__instancecheck__", "_abc_instancecheck"):  # isinstance of types asks Python's own way with ours
        events.append((event, name))

sys.setprofile(noted)
launch(3, 2.5)
kernel[1, 32](3, 2.5)
sys.setprofile(None)
print(sorted(vars(launch)), type(launch).__name__, len(events), events)
"""


@pytest.mark.slow
def test_a_launch_makes_the_same_calls_with_this_library_as_without():
    told = {}
    for side in ("with", "without"):
        done = subprocess.run([sys.executable, "-c", LAUNCHED, side], capture_output=True, text=True, check=True)
        told[side] = done.stdout.splitlines()[-1]
    assert told["with"] == told["without"] and "('call', 'launch')" in told["with"]
