# SPDX-License-Identifier: Apache-2.0
"""How long the example's GEMM takes to compile cold in a warm process, and where the time goes. Needs no GPU.

Each round is a new process: everything is imported and one trivial kernel compiled, then the GEMM is compiled for the
first time.

    python -m benchmarks compile_time --rounds 5
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402


def measure():
    """One cold compilation: seconds for each part, and in all."""
    import numba.cuda.cudadrv.nvvm as nvvm
    import numpy as np
    from numba import cuda
    from numba.cuda.core import event

    import numba_cute as cute
    from numba_cute.compiler.host import ptxas

    import hopper_gemm

    @cuda.jit
    def trivial(out):
        out[0] = cuda.threadIdx.x

    cute.compile(trivial, (np.zeros(1),))
    args, _ = hopper_gemm.arguments(*hopper_gemm.problem(256, 512, 128, cute.BFloat16), cute.BFloat16, 1)
    spent = {}

    def timed(name, fn):
        def call(*a, **k):
            start = time.perf_counter()
            try:
                return fn(*a, **k)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - start

        return call

    class Passes(event.Listener):
        starts = []

        def on_start(self, e):
            self.starts.append(time.perf_counter())

        def on_end(self, e):
            took, name = time.perf_counter() - self.starts.pop(), e.data["name"].split(" ")[0]
            known = {"nopython_type_inference": "typing", "cuda_native_lowering": "lowering"}
            part = known.get(name, "other passes")
            spent[part] = spent.get(part, 0.0) + took

    nvvm.compile_ir = timed("libNVVM", nvvm.compile_ir)
    ptxas.assemble = timed("ptxas", ptxas.assemble)
    with event.install_listener("numba-cuda:run_pass", Passes()):
        start = time.perf_counter()
        cute.compile(hopper_gemm.gemm, args)
        spent["total"] = time.perf_counter() - start
    spent["the rest (printing the IR, reading the PTX)"] = spent["total"] - sum(
        v for k, v in spent.items() if k != "total"
    )
    return spent


def arguments(parser):
    parser.add_argument("--rounds", type=int, default=5)


def run(options):
    """The median of each part, over processes that compile once."""
    rounds = []
    for _ in tqdm(range(options.rounds), desc="compiling cold"):
        done = subprocess.run([sys.executable, __file__, "--one"], capture_output=True, text=True, check=True)
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    names = sorted(rounds[0], key=lambda name: -statistics.median(r[name] for r in rounds))
    figures = {}
    for name in names:
        times = [r[name] for r in rounds]
        figures[name] = Figure(statistics.median(times), "s", interval=(min(times), max(times)))
    return Result(figures, {"rounds": rounds})


ENTRY = Entry("compile_time", "a cold compile of examples/hopper_gemm.py in a warm process, by parts", run, arguments)

if __name__ == "__main__":
    if sys.argv[1:] == ["--one"]:
        print(json.dumps(measure()))
    else:
        harness.main(ENTRY, __doc__)
