# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821
"""What the driver's launch of an empty kernel costs the host, from machine code: no launch from Python is below it.

    python -m benchmarks launch_floor

Bursts that the driver's queue holds, each after the GPU is idle, taken in turn: the median of all. It compares
cuLaunchKernelEx with cuLaunchKernel; a kernel of a library (CUkernel) with its function in the context (CUfunction);
parameters by pointers with one packed buffer; streams; a graph of one kernel; and of the same in new processes, modules
loaded lazily or at once, and processes bound to a core.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402

BURST = 200
"""Launches after which the queue is drained: fewer than it holds."""
BUFFER_POINTER, BUFFER_SIZE, NON_BLOCKING, PER_THREAD = 1, 2, 1, 2


def repeat(count, launch, config, kernel, pointers):
    """A function of words (compiler/host/native/language.py): launches by cuLaunchKernelEx."""
    failed = 0
    while count:
        failed += call32(launch, config, kernel, pointers, 0)
        count -= 1
    return failed


def repeat_old(count, launch, stream, kernel, pointers, extra):
    """The same by cuLaunchKernel, of one block of 32 threads."""
    failed = 0
    while count:
        failed += call32(launch, kernel, 1, 1, 1, 32, 1, 1, 0, stream, pointers, extra)
        count -= 1
    return failed


def repeat_graph(count, launch, graph, stream):
    """The same of a graph."""
    failed = 0
    while count:
        failed += call32(launch, graph, stream)
        count -= 1
    return failed


def repeat_with_lock(count, launch, config, kernel, pointers):
    """As `repeat`, giving the interpreter's lock away around each, as a launch does."""
    failed = 0
    while count:
        thread = PyEval_SaveThread()
        failed += call32(launch, config, kernel, pointers, 0)
        PyEval_RestoreThread(thread)
        count -= 1
    return failed


def machine_code():
    """The functions above, as functions of Python that take words."""
    from numba_cute.compiler.host.native.language import Code, Foreign, python_api

    api = {"PyEval_SaveThread": "i64", "PyEval_RestoreThread": "void i64"}
    functions = (repeat, repeat_old, repeat_graph, repeat_with_lock)
    code = Code(functions, {n: Foreign(python_api(n), *kinds.split()) for n, kinds in api.items()})
    found = {}
    for f in functions:
        holds = f is repeat_with_lock
        kind = (ctypes.PYFUNCTYPE if holds else ctypes.CFUNCTYPE)(
            ctypes.c_int64, *[ctypes.c_int64] * f.__code__.co_argcount
        )
        found[f.__name__] = kind(code.address(f.__name__))
    found["kept"] = code
    return found


def address(name, version=12000):
    from cuda.bindings import driver

    error, found, _ = driver.cuGetProcAddress(name.encode(), version, 0)
    assert not int(error), (name, error)
    return int(found)


def check(found):
    assert not int(found[0]), found
    return found[1] if len(found) == 2 else found[1:]


class Kernel:
    """An empty kernel of some tensors, as the driver is given it. count: how many."""

    def __init__(self, count):
        import torch
        from cuda.bindings import driver

        import numba_cute as cute
        from benchmarks.launch import OURS

        args = [torch.zeros(64, device="cuda") for _ in range(count)]
        prepared = cute.launch(OURS[count], grid=1, block=32).prepare(*args)
        plan = prepared.__self__[1]
        self.kept = [args, prepared, plan]
        self.config, self.kernel, self.pointers = plan.words[8], plan.words[9], plan.words[14]
        self.function = int(check(driver.cuKernelGetFunction(driver.CUkernel(self.kernel))))
        self.stream = int(check(driver.cuStreamCreate(NON_BLOCKING)))
        self.size = plan.words[5]
        first = ctypes.c_int64.from_address(self.pointers).value
        held = ctypes.c_int64(self.size)
        extra = (ctypes.c_int64 * 5)(BUFFER_POINTER, first, BUFFER_SIZE, ctypes.addressof(held), 0)
        self.kept += [held, extra]
        self.extra = ctypes.addressof(extra)
        self.streams = {"default stream": 0, "created stream": self.stream, "thread's default stream": PER_THREAD}

    def config_of(self, stream):
        made = ctypes.create_string_buffer(ctypes.string_at(self.config, 56), 56)
        ctypes.c_int64.from_buffer(made, 32).value = stream
        self.kept.append(made)
        return ctypes.addressof(made)

    def graph(self):
        """A graph of this kernel alone, ready to be launched."""
        from cuda.bindings import driver

        stream = driver.CUstream(self.stream)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        check(driver.cuStreamBeginCapture(stream, mode))
        run = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 4)(address("cuLaunchKernelEx"))
        assert not run(self.config_of(self.stream), self.kernel, self.pointers, 0)
        graph = check(driver.cuStreamEndCapture(stream))
        made = check(driver.cuGraphInstantiate(graph, 0))
        self.kept += [graph, made]
        return int(made)


def cases(counts):
    """By name: a function of a number of launches."""
    code = machine_code()
    new, old, graph = (address(n) for n in ("cuLaunchKernelEx", "cuLaunchKernel", "cuGraphLaunch"))
    found = {}

    def add(name, n, function, *args):
        found[f"{name}; {n}"] = lambda count: code[function](count, *args)

    for n in counts:
        k = Kernel(n)
        found[f"kept {n}"] = k
        for stream, handle in k.streams.items():
            add(f"Ex, kernel, {stream}", n, "repeat", new, k.config_of(handle), k.kernel, k.pointers)
            add(f"Ex, function, {stream}", n, "repeat", new, k.config_of(handle), k.function, k.pointers)
        at = k.config_of(0)
        add("Ex, function, default stream, lock given away", n, "repeat_with_lock", new, at, k.function, k.pointers)
        for what, handle in (("kernel", k.kernel), ("function", k.function)):
            add(f"cuLaunchKernel, {what}, default stream", n, "repeat_old", old, 0, handle, k.pointers, 0)
        add("cuLaunchKernel, function, created stream", n, "repeat_old", old, k.stream, k.function, k.pointers, 0)
        add("cuLaunchKernel, function, packed buffer", n, "repeat_old", old, 0, k.function, 0, k.extra)
        made = k.graph()
        add("graph of one kernel, default stream", n, "repeat_graph", graph, made, 0)
        add("graph of one kernel, created stream", n, "repeat_graph", graph, made, k.stream)
    return {n: c for n, c in found.items() if callable(c)}, [code, *found.values()]


def measure(found, rounds, bursts=(BURST,)):
    """Microseconds a launch: for each case and burst the median, least and most."""
    from numba import cuda

    for name, call in found.items():
        assert not call(3), f"{name} was refused"
    cuda.synchronize()
    times = {(name, burst): [] for name in found for burst in bursts}
    order = list(times)
    for r in range(rounds):
        turn = r * 7 % len(order)
        for name, burst in order[turn:] + order[:turn]:
            cuda.synchronize()
            began = time.perf_counter()
            found[name](burst)
            times[name, burst].append((time.perf_counter() - began) / burst * 1e6)
    return {case: (statistics.median(t), min(t), max(t)) for case, t in times.items()}


def bound(found, rounds):
    """The same with this thread bound to a core, for some cores."""
    cores = os.sched_getaffinity(0)
    several = sorted(cores)
    out = {}
    try:
        for core in dict.fromkeys((several[0], several[len(several) // 2], several[-1])):
            os.sched_setaffinity(0, {core})
            out[f"on core {core} alone"] = measure({n: found[n] for n in PLAIN}, rounds)
    finally:
        os.sched_setaffinity(0, cores)
    return out


def loaded_at_once(rounds):
    """The same in a process that loads modules at once, and not where they are first used."""
    command = [sys.executable, __file__, "--here", str(rounds)]
    environment = {**os.environ, "CUDA_MODULE_LOADING": "EAGER"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    times = json.loads(done.stdout.splitlines()[-1])
    return {(name, BURST): t for name, t in times.items()}


PLAIN = ("Ex, kernel, default stream; 1", "Ex, function, default stream; 1")


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=60)


def run(options):
    found, kept = cases((1, 8))
    assert kept
    got = measure(found, options.rounds)
    figures = {name: Figure(m, "us", interval=(low, high), peer=True) for (name, _), (m, low, high) in got.items()}
    several = measure({n: found[n] for n in PLAIN}, options.rounds // 2, (25, 100, 400, 900, 3000))
    settings = bound(found, options.rounds // 2) | {"modules loaded at once": loaded_at_once(options.rounds // 2)}
    more = {f"{n}, bursts of {burst}": t for (n, burst), t in several.items()}
    more |= {f"{n}, {setting}": t for setting, times in settings.items() for (n, _), t in times.items()}
    figures |= {name: Figure(m, "us", interval=(low, high), peer=True) for name, (m, low, high) in more.items()}
    return Result(figures, {"burst": BURST, "rounds": options.rounds})


ENTRY = Entry("launch_floor", "the driver's own cost of a launch, and what changes it", run, arguments, gpu=True)

if __name__ == "__main__":
    if "--here" in sys.argv:
        here, held = cases((1,))
        measured = measure({n: here[n] for n in PLAIN}, int(sys.argv[-1]))
        print(json.dumps({name: t for (name, _), t in measured.items()}))
    else:
        harness.main(ENTRY, __doc__)
