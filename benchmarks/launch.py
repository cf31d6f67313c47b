"""What a launch costs the host: microseconds a call of an empty kernel, by number and kind of arguments.

    python benchmarks/launch.py [--short]

numba_cute's plain, bound and prepared launches of torch tensors, CuTe tensors, CuPy and Numba device arrays, mixed with
scalars, layouts and tensor maps; beside numba-cuda, Triton and the driver's own call in machine code. All in one
process, in turn, with the GPU idle before each round and the queue never full: the median of the rounds. Prints a table
and writes benchmarks/results/launch_<gpu>.json.
"""

import argparse
import ctypes
import json
import os
import platform
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from numba import cuda

import numba_cute as cute
from numba_cute import arch
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

LAUNCHES = 400
"""Of a round: fewer than the driver queues before it waits."""
COUNTS = (1, 8)


@cuda.jit
def ours_none():
    arch.thread_idx()


@cuda.jit
def ours_1(a):
    arch.thread_idx()


@cuda.jit
def ours_8(a, b, c, d, e, f, g, h):
    arch.thread_idx()


@cuda.jit
def plain_1(a):
    pass


@cuda.jit
def plain_8(a, b, c, d, e, f, g, h):
    pass


@cute.experimental.kernel
def tensors_1(a):
    arch.thread_idx()


OURS, PLAIN = {1: ours_1, 8: ours_8}, {1: plain_1, 8: plain_8}


def launching(kernel, configuration, args):
    """A launch, with what Python does for it each time."""
    return lambda: kernel[configuration](*args)


def triton_cases(tensors):
    """Triton's launches, if it is there."""
    try:
        import triton
    except ImportError:
        return {}

    @triton.jit
    def one(a):
        pass

    @triton.jit
    def eight(a, b, c, d, e, f, g, h):
        pass

    kernels = {1: one, 8: eight}
    return {("Triton, torch", n): launching(kernels[n], (1,), tensors[:n]) for n in COUNTS}


def atom(tensor):
    layout = cute.make_layout((32, 32), stride=(32, 1))
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, layout, (32, 32))


def kinds():
    """By kind of arguments: eight of them."""
    tensors = [torch.zeros(64, device="cuda") for _ in range(8)]
    source = from_dlpack(torch.zeros((64, 64), device="cuda"), assumed_align=16)
    tma, coordinates = atom(source)
    found = {
        "torch": tensors,
        "CuTe": [from_dlpack(t) for t in tensors],
        "Numba": [cuda.to_device(np.zeros(64, np.float32)) for _ in range(8)],
        "numbers": [1, 2.5, 3, 4.5, True, np.float32(6), cute.Int32(7), 8],
        "mixed": [tma, coordinates, tensors[0], from_dlpack(tensors[1]), 3, 2.5, cute.make_layout((4, 8)), tensors[2]],
    }
    try:
        import cupy
    except ImportError:
        return found
    return {**found, "CuPy": [cupy.zeros(64, np.float32) for _ in range(8)]}


def alternating(call, argument_sets):
    """A launch with other arguments each time."""
    turn = [0]

    def launch():
        turn[0] ^= 1
        call(*argument_sets[turn[0]])

    return launch


def our_cases(args_of):
    out = {}
    for kind, args in args_of.items():
        for n in COUNTS:
            out[f"plain, {kind}", n] = launching(OURS[n], (1, 32), args[:n])
    for kind in ("torch", "CuTe"):
        for n in COUNTS:
            a = args_of[kind]
            bound = cute.launch(OURS[n], grid=1, block=32)
            out[f"bound, {kind}, others each time", n] = alternating(bound, (a[:n], a[::-1][:n]))
            out[f"prepared, {kind}", n] = bound.prepare(*a[:n])
    out["plain", 0] = lambda: ours_none[1, 32]()
    return out


def map_cases():
    """Atoms that are made at each launch, and kernels of plain tensors."""
    tensors = [torch.zeros((64, 64), device="cuda") for _ in range(2)]
    turn = [0]

    def new_atom(others):
        def launch():
            turn[0] ^= others
            ours_1[1, 32](atom(from_dlpack(tensors[turn[0]], assumed_align=16))[0])

        return launch

    def new_tensor():
        ours_1[1, 32](from_dlpack(tensors[0]))

    return {
        ("a CuTe tensor made for the launch", 1): new_tensor,
        ("a TMA atom made for the launch, of the same tensor", 1): new_atom(0),
        ("a TMA atom made for the launch, of others", 1): new_atom(1),
        ("from_dlpack alone", 1): lambda: from_dlpack(tensors[0]),
        ("from_dlpack and make_tiled_tma_atom alone", 1): lambda: atom(from_dlpack(tensors[0], assumed_align=16)),
    }


def driver_alone(n):
    """The driver's call in machine code: what no launch from Python can be below."""
    import launch_floor

    from numba_cute.compiler.host.native.driver import driver
    from numba_cute.compiler.host.native.language import Code

    args = [torch.zeros(64, device="cuda") for _ in range(n)]
    prepared = cute.launch(OURS[n], grid=1, block=32).prepare(*args)
    plan = prepared.__self__[1]
    code = Code([launch_floor.repeat], {})
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(code.address("repeat"))
    words = plan.words

    def rounds(count):
        return run(count, driver().words[0], words[8], words[9], words[14])

    rounds.kept = code, prepared
    return rounds


def timed(call, count):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count * 1e6


def timed_many(call, count):
    torch.cuda.synchronize()
    began = time.perf_counter()
    call(count)
    return (time.perf_counter() - began) / count * 1e6


def measure(cases, floors, rounds):
    times = {case: [] for case in (*cases, *floors)}
    slow = set()
    for case, call in cases.items():
        for _ in range(5):
            call()
        if timed(call, 20) > 100:
            slow.add(case)
    order = list(cases)
    for r in range(rounds):
        for case in order[r % len(order) :] + order[: r % len(order)]:
            if case not in slow or r % 5 == 0:
                times[case].append(timed(cases[case], 40 if case in slow else LAUNCHES))
        for case, call in floors.items():
            times[case].append(timed_many(call, LAUNCHES))
    return {case: (statistics.median(t), min(t), max(t)) for case, t in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    rounds = 15 if parser.parse_args().short else 40
    warnings.simplefilter("ignore")
    args_of = kinds()
    cases = our_cases(args_of)
    for kind in ("torch", "Numba"):
        for n in COUNTS:
            cases[f"numba-cuda, {kind}", n] = launching(PLAIN[n], (1, 32), args_of[kind][:n])
    cases |= triton_cases(args_of["torch"])
    cases |= map_cases()
    floors = {("cuLaunchKernelEx alone", n): driver_alone(n) for n in COUNTS}
    found = measure(cases, floors, rounds)
    names = list(dict.fromkeys(name for name, _ in found))
    print(f"{'us a launch':52} " + " ".join(f"{n:>8}" for n in (0, *COUNTS)))
    for name in names:
        cells = [f"{found[name, n][0]:8.2f}" if (name, n) in found else " " * 8 for n in (0, *COUNTS)]
        print(f"{name:52} " + " ".join(cells))
    gpu = torch.cuda.get_device_name()
    result = {
        "gpu": gpu, "python": platform.python_version(), "torch": torch.__version__, "rounds": rounds,
        "launches": LAUNCHES, "unit": "us a launch: median, least, most",
        "cases": {f"{name}; {n}": [round(t, 3) for t in found[name, n]] for name, n in found},
    }  # fmt: skip
    name = "launch_" + gpu.lower().replace(" ", "_") + ".json"
    for folder in filter(None, (os.environ.get("OUT"), Path(__file__).parent / "results")):
        (Path(folder) / name).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
