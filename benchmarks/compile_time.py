# SPDX-License-Identifier: Apache-2.0
"""How long the example's GEMM takes to compile cold in a warm process, and where the time goes. Needs no GPU.

Each round is a new process: everything is imported and one trivial kernel compiled, then the GEMM is compiled for the
first time. Writes benchmarks/results/compile_time.json.

    python benchmarks/compile_time.py --rounds 5
"""

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]


def measure():
    """One cold compilation: seconds for each part, and in all."""
    sys.path.insert(0, str(ROOT / "examples"))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", action="store_true", help="measure once, in this process, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure()))
        return
    rounds = []
    for _ in tqdm(range(options.rounds), desc="compiling cold"):
        done = subprocess.run([sys.executable, __file__, "--one"], capture_output=True, text=True, check=True)
        rounds.append(json.loads(done.stdout.splitlines()[-1]))
    parts = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    for name, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        print(f"{seconds:7.3f} s  {name}")
    names = ("numba", "numba-cuda", "llvmlite", "nvidia-nvvm", "nvidia-cuda-nvcc")
    out = ROOT / "benchmarks" / "results" / "compile_time.json"
    out.write_text(
        json.dumps(
            {
                "what": "cold compile of examples/hopper_gemm.py in a warm process, sm_90a, median of rounds",
                "date": datetime.date.today().isoformat(),
                "machine": f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
                "versions": {n: version(n) for n in names},
                "rounds": len(rounds),
                "seconds": parts,
                "totals": [r["total"] for r in rounds],
            },
            indent=1,
        )
        + "\n"
    )
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
