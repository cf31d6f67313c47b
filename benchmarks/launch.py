# SPDX-License-Identifier: Apache-2.0
"""What a launch costs the host: microseconds a call of an empty kernel, by number and kind of arguments.

    python -m benchmarks launch
    python -m benchmarks launch --rounds 15

numba_cute's plain, bound and prepared launches of torch tensors, CuTe tensors, CuPy and Numba device arrays, mixed with
scalars, layouts and tensor maps, and of CuTe tensors and TMA atoms that are made for the launch; beside numba-cuda,
Triton, apache-tvm-ffi (where they are installed) and the driver's own call in machine code. All in one process, in
turn, each time in a burst that the driver's queue holds, with the GPU idle before: the median of the rounds.
"""

import itertools
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from numba import cuda

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute import arch  # noqa: E402
from numba_cute.nvgpu import cpasync  # noqa: E402
from numba_cute.runtime import from_dlpack  # noqa: E402

LAUNCHES = 200
"""Of a burst: fewer than the driver queues before it waits."""
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


@cuda.jit
def ours_2(a, b):
    arch.thread_idx()


@cute.kernel
def cute_1(a: cute.Tensor):
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


LOAD, TILE = cpasync.CopyBulkTensorTileG2SOp(), cute.make_layout((32, 32), stride=(32, 1))


def atom(tensor):
    return cpasync.make_tiled_tma_atom(LOAD, tensor, TILE, (32, 32))


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
            out[f"prepared as a graph, {kind}", n] = cute.launch(OURS[n], grid=1, block=32, graph=True).prepare(*a[:n])
    out["plain", 0] = lambda: ours_none[1, 32]()
    return out


@cute.torch_op("benchmarks::empty", mutates="a")
def operator(a: torch.Tensor) -> None:
    ours_1[1, 32](a)


def turning(makes):
    """A launch of what is made anew each time, of each of these in turn."""
    turn = [0]

    def launch():
        turn[0] = (turn[0] + 1) % len(makes)
        makes[turn[0]]()

    return launch


def made_cases():
    """What a launch costs whose arguments are made for it, of torch tensors: by what is made, and how many of it."""
    tensors = [torch.zeros((64, 64), device="cuda") for _ in range(64)]

    def placed(t):
        return from_dlpack(t, assumed_align=16)

    def dynamic(t):
        return placed(t).mark_layout_dynamic()

    one, two, eight = ours_1[1, 32], ours_2[1, 32], ours_8[1, 32]
    same, others = tensors[:1], tensors
    makes = {
        ("from_dlpack", 1): lambda t: one(placed(t)),
        ("from_dlpack", 8): lambda t: eight(*[placed(t) for _ in range(8)]),
        ("from_dlpack, mark_layout_dynamic", 1): lambda t: one(dynamic(t)),
        ("a TMA atom and its tensor", 1): lambda t: two(*atom(placed(t))),
        ("a TMA atom and its tensor, dynamic", 1): lambda t: two(*atom(dynamic(t))),
    }

    def gemm(t):
        (a, x), (b, y), (c, z) = atom(placed(t)), atom(placed(t)), atom(placed(t))
        eight(a, x, b, y, c, z, t, t)

    makes["TMA atoms and their tensors, 8 arguments", 3] = gemm
    cases = {}
    for (name, n), make in makes.items():
        for which, chosen in (("the same tensor", same), ("64 in turn", others)):
            cases[f"made at each launch: {name}, {which}", n] = turning([lambda t=t, m=make: m(t) for t in chosen])
    x = tensors[0]
    held = []

    @cute.runtime.remembered
    def remembered(a, b, c):
        return (*atom(placed(a)), *atom(placed(b)), *atom(placed(c)), a.shape[0]), 1

    def gemm_remembered():
        eight(*remembered(*tensors[:3])[0], x)

    cases["made at each launch: all of that by cute.runtime.remembered", 3] = gemm_remembered

    def atom_alone():
        if not held or len(held) < 20:  # the first are made before there are templates
            held.append(placed(x))
        atom(held[-1])

    grids = itertools.cycle(range(128, 528))  # Numba remembers 128, and warns of fewer blocks
    cases["a grid that is new at each launch, torch", 1] = lambda: ours_1[next(grids), 32](x)
    anew = itertools.cycle(range(128, 528))
    cases["a grid that is new at each launch, by cute.launch, torch", 1] = (
        lambda: cute.launch(ours_2, grid=next(anew), block=32)(x, x)
    )  # fmt: skip
    cases["cute.launch at each launch, torch", 1] = lambda: cute.launch(ours_1, grid=1, block=32)(x)
    cases["k(x).launch(…) of cute.kernel, torch", 1] = lambda: cute_1(x).launch(grid=1, block=32)
    cases["alone, no launch: from_dlpack", 1] = lambda: from_dlpack(x, assumed_align=16)
    cases["alone, no launch: make_tiled_tma_atom", 1] = atom_alone
    cases["torch.ops, an operator of one launch", 1] = lambda: operator(x)
    return cases


def tvm_cases(tensors):
    """Launches through apache-tvm-ffi, if it is there with a C++ compiler."""
    try:
        from benchmarks.launch_floor import address
        from benchmarks.peers import tvm_ffi_launch

        kept = {n: cute.launch(OURS[n], grid=1, block=32).prepare(*tensors[:n]) for n in COUNTS}
        kernel_of = {n: k.__self__[1].words[9] for n, k in kept.items()}
        return tvm_ffi_launch.launches(tensors, kernel_of.get, address("cuLaunchKernel"))
    except (ImportError, OSError) as e:
        print(f"without apache-tvm-ffi: {e}")
        return {}


def driver_alone(n):
    """The driver's call in machine code: what no launch from Python can be below."""
    from benchmarks.launch_floor import machine_code
    from numba_cute.compiler.host.native.driver import driver

    args = [torch.zeros(64, device="cuda") for _ in range(n)]
    prepared = cute.launch(OURS[n], grid=1, block=32).prepare(*args)
    words = prepared.__self__[1].words
    code = machine_code()

    def burst(count):
        return code["repeat"](count, driver().words[0], words[8], words[9], words[14])

    burst.kept = code, prepared
    return burst


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
        for _ in range(150 if " in turn" in case[0] else 5):  # each of what is taken in turn comes twice
            call()
        if timed(call, 20) > 60:
            slow.add(case)
    order = list(cases)
    for r in range(rounds):
        for case in order[r % len(order) :] + order[: r % len(order)]:
            if case not in slow or r % 5 == 0:
                times[case].append(timed(cases[case], 40 if case in slow else LAUNCHES))
        for case, call in floors.items():
            times[case].append(timed_many(call, LAUNCHES))
    return {case: (statistics.median(t), min(t), max(t)) for case, t in times.items()}


def all_cases():
    args_of = kinds()
    cases = our_cases(args_of) | made_cases()
    for kind in ("torch", "Numba"):
        for n in COUNTS:
            cases[f"numba-cuda, {kind}", n] = launching(PLAIN[n], (1, 32), args_of[kind][:n])
    return cases | triton_cases(args_of["torch"]) | tvm_cases(args_of["torch"])


def table(found):
    """The medians, in lines by name and columns by number of arguments."""
    counts = sorted({n for _, n in found})
    lines = [f"{'us a launch, by number of arguments or of what is made':76} " + " ".join(f"{n:>7}" for n in counts)]
    for name in dict.fromkeys(name for name, _ in found):
        cells = [f"{found[name, n][0]:7.2f}" if (name, n) in found else " " * 7 for n in counts]
        lines.append(f"{name:76} " + " ".join(cells))
    return "\n".join(lines)


OTHERS = ("numba-cuda", "Triton", "tvm-ffi", "cuLaunchKernelEx")


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=40)


def run(options):
    """All cases in turn."""
    warnings.simplefilter("ignore")
    floors = {("cuLaunchKernelEx alone, in machine code", n): driver_alone(n) for n in COUNTS}
    found = measure(all_cases(), floors, options.rounds)
    print(table(found))
    figures = {
        f"{name}; {n}": Figure(m, "us", interval=(low, high), peer=name.startswith(OTHERS))
        for (name, n), (m, low, high) in found.items()
    }
    return Result(figures, {"rounds": options.rounds, "launches": LAUNCHES, "torch": torch.__version__})


ENTRY = Entry("launch", "the host's time of a launch, by number and kind of arguments", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
