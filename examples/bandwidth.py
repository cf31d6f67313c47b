# SPDX-License-Identifier: Apache-2.0
"""Help the examples that move memory: arrays on the device, their speed beside a plain copy, and the options."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from numba import cuda

import numba_cute as cute

DTYPES = {"f32": cute.Float32, "bf16": cute.BFloat16}
GIB = 1 << 30


def on_gpu(args):
    """Say whether to run on a GPU: there is one of this target, torch to make arrays with, and no --simulate."""
    if args.simulate or not cuda.is_available():
        return False
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def parser(doc):
    """The options that all have."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--m", type=int, help="rows; default: 1 GiB on a GPU, a small number in the simulator")
    p.add_argument("--n", type=int, help="columns")
    p.add_argument("--dtype", choices=sorted(DTYPES), default="f32")
    p.add_argument("--simulate", action="store_true", help="use the simulator even if there is a GPU")
    p.add_argument("--json", type=Path, help="append the figures to this file, a line of JSON each")
    return p


def device_random(m, n, dtype, seed):
    """Normal random numbers, made on the device; its type is the one of `dtype`'s name in torch."""
    import torch

    made = torch.Generator(device="cuda").manual_seed(seed)
    name = {cute.Float32: torch.float32, cute.BFloat16: torch.bfloat16}[dtype]
    return torch.randn((m, n), generator=made, device="cuda", dtype=torch.float32).to(name)


def host_random(m, n, dtype, seed):
    return np.random.default_rng(seed).standard_normal((m, n), np.float32).astype(dtype.numpy)


def seconds_per_call(call, least=0.1):
    """Seconds for each of the back-to-back calls that fill `least` seconds, after as long a warm-up."""
    start, end = cuda.event(), cuda.event()

    def burst(count):
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return cuda.event_elapsed_time(start, end) * 1e-3 / count

    count = max(5, int(least / burst(5)))
    burst(count)
    return burst(count)


def compare_with_copy(call, nbytes, turns=5):
    """(bytes per second of `call`, which moves `nbytes`; of a device copy of 1 GiB; their ratio): medians of turns, in
    which the two alternate, since clocks drift."""
    import torch

    source = torch.randn(GIB // 4, device="cuda")
    target = torch.empty_like(source)

    def copy():
        target.copy_(source)

    times = [(seconds_per_call(call), seconds_per_call(copy)) for _ in range(turns)]
    rates = [(nbytes / ours, 2 * GIB / theirs) for ours, theirs in times]

    def middle(values):
        return sorted(values)[turns // 2]

    return middle(r[0] for r in rates), middle(r[1] for r in rates), middle(r[0] / r[1] for r in rates)


def report(args, name, shape, error, call, nbytes, target):
    """Measure, print and record what was reached."""
    ours, theirs, ratio = compare_with_copy(call, nbytes)
    device = cuda.get_current_device().name
    device = device.decode() if isinstance(device, bytes) else device
    print(f"{name} {shape} {args.dtype} on {device}: check passed, greatest error {error:.2e}")
    print(
        f"{ours * 1e-12:.3f} TB/s; a device copy of 1 GiB {theirs * 1e-12:.3f} TB/s: {ratio:.3f} of it (aim {target})"
    )
    if args.json is not None:
        figures = {
            "example": name, "shape": list(shape), "dtype": args.dtype, "device": device, "bytes": nbytes,
            "tb_per_s": ours * 1e-12, "copy_tb_per_s": theirs * 1e-12, "ratio": ratio, "aim": target,
            "greatest_error": error,
        }  # fmt: skip
        with args.json.open("a") as out:
            out.write(json.dumps(figures) + "\n")


def simulate(kernel, grid, threads, arguments, what):
    """Run a kernel in the simulator and say how long it took."""
    print(f"no GPU is used: {what} runs in the simulator")
    start = time.perf_counter()
    cute.simulate(kernel, progress=sys.stderr.isatty())[grid, threads](*arguments)
    print(f"simulated in {time.perf_counter() - start:.1f} s")


def greatest_error(got, want, tolerance):
    """The greatest error relative to max(1, |want|), of float64 arrays or tensors; an exception if it exceeds
    `tolerance`, or if anything is not a number."""
    error = float((abs(got - want) / abs(want).clip(1)).max())
    if not error <= tolerance:
        raise SystemExit(f"WRONG: an element is off by {error:.2e} relatively; {tolerance:.2e} is allowed")
    return error
