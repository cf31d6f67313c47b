# SPDX-License-Identifier: Apache-2.0
"""How good the model of examples/hopper_gemm.py is that cuts a problem: its choice, beside the best of those measured.

python -m benchmarks plan
python -m benchmarks plan --sizes 256x512x16384 --dtype f16 --keep 16
"""

import argparse
import dataclasses
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
from benchmarks import harness  # noqa: E402
from benchmarks.harness import Entry, Figure, Result  # noqa: E402
from numba_cute.testing import Autotuned  # noqa: E402

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402

SIZES = ((64, 4096, 4096), (128, 8192, 8192), (256, 512, 16384), (512, 4096, 4096), (1024, 1024, 1024), (3072,) * 3)


def size(text):
    parts = tuple(int(x) for x in text.split("x"))
    if len(parts) != 3:
        raise argparse.ArgumentTypeError(f"{text}: MxNxK")
    return parts


def arguments(parser):
    parser.add_argument("--sizes", type=size, nargs="+", default=SIZES, help="MxNxK")
    parser.add_argument("--dtype", choices=("bf16", "f16"), default="bf16")
    parser.add_argument("--keep", type=int, default=8, help="how many of those that the model finds good are measured")


def run(options):
    dtype = gemm_host.DTYPES[options.dtype]
    kind = gemm_host.torch_type(dtype)
    tuned = Autotuned(hopper_gemm.tuned.function, dataclasses.replace(hopper_gemm.tuned.options, keep=options.keep))
    figures, records = {}, {}
    for m, n, k in options.sizes:
        a, b = (torch.randn(s, device="cuda").to(kind) for s in ((m, k), (n, k)))
        c = torch.empty(m, n, device="cuda", dtype=kind)
        found = tuned.tune(a, b, c, dtype, again=True)
        chosen = hopper_gemm.plan(c, k, dtype, hopper_gemm.sms_here())
        print(f"{found}\n    the model chooses {chosen}")
        what = f"{options.dtype} {m} x {n} x {k}"
        best = found.record["measured"][", ".join(f"{key}={value}" for key, value in found.best.items())]
        figures[f"{what}: the model's choice"] = Figure(best["median_us"] * (1 + found.slower(chosen._asdict())), "us")
        figures[f"{what}: the best"] = Figure(best["median_us"], "us", interval=tuple(best["interval_us"]))
        records[what] = found.record
    return Result(figures, {"records": records})


ENTRY = Entry("plan", "the Hopper GEMM's model beside what is measured to be the best", run, arguments, gpu=True)

if __name__ == "__main__":
    harness.main(ENTRY, __doc__)
