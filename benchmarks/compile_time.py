# SPDX-License-Identifier: Apache-2.0
"""How long kernels take to compile cold in a warm process, and where the time goes. Needs no GPU.

Each round is a new process: everything is imported and one trivial kernel compiled, then the kernel is compiled for the
first time, and once more for arguments of other static types. Seconds are of the processor, of this process and of the
assembler's; what one part does in another (garbage collected while types are inferred) counts for itself alone.

    python -m benchmarks compile_time --rounds 5
    python -m benchmarks compile_time --kernels hopper_gemm elementwise --baseline /tmp/older_tree
    python -m benchmarks compile_time --calls --baseline /tmp/older_tree
"""

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
TREE = os.environ.get("COMPILE_TIME_TREE") or str(ROOT)
sys.path[:0] = [TREE, f"{TREE}/examples", *([] if str(ROOT) == TREE else [str(ROOT)])]
PASSES = {
    "nopython_type_inference": "typing",
    "numba_cute_type_inference": "typing",
    "cuda_native_lowering": "lowering",
    "numba_cute_lowering": "lowering",
    "numba_cute_keep_constants": "constants and unrolling",
}


class Clock:
    """Processor seconds by part, each without the parts that run inside it."""

    def __init__(self):
        self.spent, self._open = {}, []

    def begin(self):
        self._open.append([time.process_time(), 0.0])

    def end(self, part):
        start, inside = self._open.pop()
        took = time.process_time() - start
        self.spent[part] = self.spent.get(part, 0.0) + took - inside
        if self._open:
            self._open[-1][1] += took

    def timed(self, part, fn):
        """A function that counts for a part."""

        def call(*args, **named):
            self.begin()
            try:
                return fn(*args, **named)
            finally:
                self.end(part)

        return call


@contextmanager
def watching(clock):
    """Count what a compilation is made of."""
    import numba.cuda.cudadrv.nvvm as nvvm
    from numba.cuda.codegen import CUDACodeLibrary
    from numba.cuda.core import event

    class Passes(event.Listener):
        def on_start(self, e):
            clock.begin()

        def on_end(self, e):
            clock.end(PASSES.get(e.data["name"].split(" ")[0], "other passes"))

    def collecting(phase, info):
        if phase == "start":
            clock.begin()
        else:
            clock.end("garbage collection")

    unit, printed = nvvm.CompilationUnit, CUDACodeLibrary.llvm_strs
    before = unit.verify, unit.compile, nvvm.llvm_replace
    unit.verify, unit.compile = clock.timed("libNVVM, verifying", unit.verify), clock.timed("libNVVM", unit.compile)
    nvvm.llvm_replace = clock.timed("printing the IR", nvvm.llvm_replace)
    CUDACodeLibrary.llvm_strs = property(clock.timed("printing the IR", printed.fget))
    gc.callbacks.append(collecting)
    try:
        with event.install_listener("numba-cuda:run_pass", Passes()):
            yield
    finally:
        gc.callbacks.remove(collecting)
        unit.verify, unit.compile, nvvm.llvm_replace = before
        CUDACodeLibrary.llvm_strs = printed


def _children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _hopper_gemm(small):
    import numba_cute as cute

    import hopper_gemm

    dtype = cute.Float16 if small else cute.BFloat16
    args, _ = hopper_gemm.arguments(*hopper_gemm.problem(256, 512, 128, dtype), dtype, 1)
    return hopper_gemm.gemm, args, "sm_90a"


def _elementwise(small):
    import elementwise

    rows = 96 if small else 128
    return elementwise.add, elementwise.arguments(*np.zeros((3, rows, 512), np.float32))[0], "sm_90a"


def _ampere_gemm(small):
    import ampere_gemm

    a, b, c = np.zeros((256, 128), np.float16), np.zeros((256, 128), np.float16), np.zeros((256, 256), np.float16)
    kind = next(k for k in ampere_gemm.KINDS if k.startswith("f16") or k.startswith("fp16") or k.startswith("float16"))
    if small:
        a, c = a[:128], c[:128]
    return ampere_gemm.gemm, ampere_gemm.arguments(a, b, c, kind)[0], "sm_80"


def _blackwell_attention(small):
    import blackwell_attention as attention

    p = attention.problem(256, 256, 1, 1, 64 if small else 128, attention.DTYPES["bf16"])
    kernel, args, _ = attention.arguments(p, False)
    return kernel, args, "sm_100a"


KERNELS = {
    "hopper_gemm": _hopper_gemm,
    "elementwise": _elementwise,
    "ampere_gemm": _ampere_gemm,
    "blackwell_attention": _blackwell_attention,
}
"""What gives a kernel of the examples, arguments and the target; or `small`, of other static types."""


def warm_up():
    """Import what compiling needs, and compile one kernel."""
    from numba import cuda

    import numba_cute as cute

    if not cute.__file__.startswith(TREE):
        raise SystemExit(f"{cute.__file__} was imported, and not what is in {TREE}")

    @cuda.jit
    def trivial(out):
        out[0] = cuda.threadIdx.x

    cute.compile(trivial, (np.zeros(1),))


def count():
    """The calls of Python that compiling each of ten small kernels takes."""
    warm_up()
    import small_kernels  # beside this file, whatever tree the library is of

    return small_kernels.calls()


def measure(name):
    """A cold compilation, and one for other arguments: seconds for each part, in all, and by the wall."""
    import numba_cute as cute

    warm_up()
    kernel, args, arch = KERNELS[name](False)
    _, again, _ = KERNELS[name](True)
    told = {}
    for which, given in (("cold", args), ("again", again)):
        clock, assembler, wall = Clock(), _children(), time.perf_counter()
        with watching(clock):
            clock.begin()
            made = cute.compile(kernel, given, arch=arch)
            clock.end("the rest")
        wall = time.perf_counter() - wall
        clock.spent["ptxas"] = _children() - assembler
        told[which] = {**clock.spent, "in all": sum(clock.spent.values()), "by the wall": wall, "PTX": len(made.ptx)}
    return told


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=["hopper_gemm"])
    parser.add_argument("--calls", action="store_true", help="count Python's calls for ten small kernels instead")
    parser.add_argument("--baseline", help="the folder of another version, which is measured in turn")


def trees_of(options):
    return {"now": str(ROOT), **({"before": str(Path(options.baseline).resolve())} if options.baseline else {})}


def told_by(tree, *command):
    """What this file tells in a process that imports the library of a tree."""
    path = os.pathsep.join(filter(None, (tree, os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "NUMBA_CUTE_CACHE": "0", "COMPILE_TIME_TREE": tree, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, __file__, *command], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rounds(options):
    """What the processes told: by kernel, "now" and "before", a list."""
    trees = trees_of(options)
    told = {name: {which: [] for which in trees} for name in options.kernels}
    for _ in tqdm(range(options.rounds), desc="compiling cold"):
        for name in options.kernels:
            for which, tree in trees.items():
                told[name][which].append(told_by(tree, "--one", name))
    return told


def parts(made):
    """Medians of all parts of processes' `measure`, the longest first."""
    names = dict.fromkeys(name for r in made for name in r)
    found = {name: statistics.median(r.get(name, 0.0) for r in made) for name in names if name != "PTX"}
    return {name: round(found[name], 4) for name in sorted(found, key=lambda n: -found[n])}


def run(options):
    """The median of each part, over processes that compile once; or the calls of small kernels, which are the same in
    each process."""
    from benchmarks.harness import Figure, Result

    if options.calls:
        told = {which: told_by(tree, "--calls") for which, tree in trees_of(options).items()}
        sums = {which: sum(calls.values()) for which, calls in told.items()}
        figures = {f"calls of Python for ten small kernels, {which}": Figure(n, "") for which, n in sums.items()}
        if "before" in sums:
            figures["of the calls before"] = Figure(round(sums["now"] / sums["before"], 3), "")
        return Result(figures, {"calls": told})
    told, figures, details = rounds(options), {}, {}
    for name, by_tree in told.items():
        for which in ("cold", "again"):
            found = {tree: parts([r[which] for r in made]) for tree, made in by_tree.items()}
            details[f"{name}, {which}"] = found
            title = f"{name}, {which}: " if which == "again" or len(told) > 1 else ""
            for part, seconds in found["now"].items():
                times = [r[which].get(part, 0.0) for r in by_tree["now"]]
                if which == "cold" or part in ("in all", "by the wall"):
                    figures[title + part] = Figure(seconds, "s", interval=(min(times), max(times)))
            if "before" in found:
                ratio = found["now"]["in all"] / found["before"]["in all"]
                figures[f"{name}, {which}: of the time before"] = Figure(round(ratio, 3), "")
    return Result(figures, {"rounds": options.rounds, "seconds": details})


if __name__ == "__main__" and sys.argv[1:2] in (["--one"], ["--calls"]):
    print(json.dumps(measure(sys.argv[2]) if sys.argv[1] == "--one" else count()))
    raise SystemExit

from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry  # noqa: E402

ENTRY = Entry("compile_time", "a cold compile of kernels of the examples in a warm process, by parts", run, arguments)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
