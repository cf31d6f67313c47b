# SPDX-License-Identifier: Apache-2.0
"""The layout algebra on the host: microseconds an operation, beside pycute's, and the set-up of a GEMM kernel.

first: with nothing remembered; again: the same call once more, as each thread of the simulator and each use in a
kernel makes it. pycute (BSD-3) is a folder of NVIDIA/cutlass, python/pycute; without --pycute its column is empty.
set-up: what the traced calls that partition tensors and choose instructions in examples/hopper_gemm.py take of the
time that compiling it takes, once for Numba's typing and once for its lowering.

    python -m benchmarks layouts
    python -m benchmarks layouts --pycute cutlass/python
"""

import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
import numba_cute as cute  # noqa: E402
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.compiler.bridge import calls  # noqa: E402
from numba_cute.layout.pure import forget  # noqa: E402

SET_UP = (
    "allocate_tensor", "get_slice", "group_modes", "local_tile", "make_copy_atom", "make_fragment_A", "make_fragment_B",
    "make_layout", "make_rmem_tensor", "make_tensor", "make_tiled_copy_C_atom", "make_tiled_copy_S", "partition_A",
    "partition_B", "partition_D", "partition_shape_C", "shape", "tma_partition",
)  # fmt: skip


def operations(lib):
    """name -> a call, in the names that numba_cute and pycute share; `lib.layout(shape, stride)` makes a layout."""
    row = lib.layout((128, 64), (64, 1))
    nested = lib.layout(((8, 16), (64, 2)), ((64, 512), (1, 8192)))
    tile = lib.layout((8, 8), (8, 1))
    part = lib.layout((16, 4), (4, 1))
    return {
        "make_layout": lambda: lib.layout(((8, 16), (64, 2)), ((64, 512), (1, 8192))),
        "layout(coord)": lambda: nested(((3, 5), (7, 1))),
        "layout(i)": lambda: nested(1234),
        "size": lambda: lib.size(nested),
        "cosize": lambda: lib.cosize(nested),
        "coalesce": lambda: lib.coalesce(nested),
        "composition": lambda: lib.composition(row, lib.layout((16, 8), (8, 128))),
        "complement": lambda: lib.complement(part, 8192),
        "right_inverse": lambda: lib.right_inverse(nested),
        "left_inverse": lambda: lib.left_inverse(nested),
        "logical_divide": lambda: lib.logical_divide(row, (tile, part)),
        "zipped_divide": lambda: lib.zipped_divide(row, (32, 8)),
        "tiled_divide": lambda: lib.tiled_divide(row, (32, 8)),
        "logical_product": lambda: lib.logical_product(tile, part),
        "zipped_product": lambda: lib.zipped_product(tile, part),
        "slice_and_offset": lambda: lib.slice_and_offset(((3, None), None), nested),
    }


class Ours:
    """numba_cute, and what it adds."""

    def __getattr__(self, name):
        return getattr(cute, name)

    @staticmethod
    def layout(shape, stride):
        return cute.make_layout(shape, stride=stride)


class Pycute:
    """pycute, from the folder that holds it."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        try:
            import pycute
        except ImportError as e:
            raise SystemExit(f"--pycute {folder}: there is no package pycute in that folder ({e})") from None
        self.pycute = pycute

    def __getattr__(self, name):
        return getattr(self.pycute, name)

    def layout(self, shape, stride):
        return self.pycute.Layout(shape, stride)


def microseconds(call, before=None, seconds=0.02):
    """The median time of a call; `before` is called, untimed, before each."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        if before is not None:
            before()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6


def gemm_set_up():
    """Compile the example; gives the seconds (of this thread) that it takes, and its set-up in typing and lowering."""
    import hopper_gemm

    arrays = hopper_gemm.problem(512, 512, 256, cute.BFloat16)
    args, _ = hopper_gemm.arguments(*arrays, cute.BFloat16, most_clusters=66)
    spent = defaultdict(float)
    run = calls.run

    def timed(fn, signature, values, tracer):
        start = time.thread_time()
        try:
            return run(fn, signature, values, tracer)
        finally:
            name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", "")
            if name in SET_UP:
                spent["typing" if tracer.builder is None else "lowering"] += time.thread_time() - start

    calls.run = timed
    forget()
    start = time.thread_time()
    try:
        cute.compile(hopper_gemm.gemm, args)
    finally:
        calls.run = run
    return time.thread_time() - start, spent["typing"], spent["lowering"]


def arguments(parser):
    parser.add_argument("--pycute", type=Path, help="the folder that holds the package pycute")
    parser.add_argument("--no-gemm", action="store_true", help="leave out the set-up of the GEMM kernel")


def run(options):
    ours = operations(Ours())
    theirs = operations(Pycute(options.pycute)) if options.pycute else {}
    figures = {}
    for name, call in ours.items():
        figures[f"{name}, first"] = Figure(microseconds(call, forget), "us")
        figures[f"{name}, again"] = Figure(microseconds(call), "us")
        if theirs:
            figures[f"{name}, pycute"] = Figure(microseconds(theirs[name]), "us", peer=True)
    if not options.no_gemm:
        whole, typing, lowering = gemm_set_up()
        figures["hopper_gemm.py: set-up in typing"] = Figure(1e3 * typing, "ms")
        figures["hopper_gemm.py: set-up in lowering"] = Figure(1e3 * lowering, "ms")
        figures["hopper_gemm.py: the whole compilation"] = Figure(1e3 * whole, "ms")
    return Result(figures)


ENTRY = Entry("layouts", "microseconds an operation of the layout algebra on the host", run, arguments)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
