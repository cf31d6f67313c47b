# SPDX-License-Identifier: Apache-2.0
"""The host's side that the GEMM examples share: problems, their check, cuBLAS beside them, and the command line.

All compute C = A @ B.T, with A (M, K) and B (N, K).
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute.kernels.gemm.operands import contiguous as contiguous_mode, operand  # noqa: F401 (for the examples)
from numba_cute.kernels.gemm.plan import RESULTS, cover  # noqa: F401

try:
    import torch  # for cuBLAS to compare with
except ImportError:
    torch = None

DTYPES = {
    "bf16": cute.BFloat16,
    "f16": cute.Float16,
    "tf32": cute.TFloat32,
    "e4m3": cute.Float8E4M3FN,
    "e5m2": cute.Float8E5M2,
    "s8": cute.Int8,
}
# What an element may be off by, of |row of A| |row of B|: what the operands' own rounding and the tensor cores' sums
# (in which fp8 keeps 13 bits) may do to it.
OF_SCALE = {"float32": 4e-3, "float8_e4m3fn": 1e-3, "float8_e5m2": 1e-3, "int8": 0.0}


def random(rng, shape, dtype):
    """Normal numbers, or any bytes."""
    if dtype.is_integer:
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype.numpy)


def problem(m, n, k, dtype, seed=0, majors="kkn", a_dtype=None):
    """Random A (M, K) and B (N, K) of `dtype` (A of another, if given), and a poisoned C (M, N).

    majors: the mode along which A ("m" or "k"), B ("n" or "k") and C ("m" or "n") are contiguous.
    """
    rng = np.random.default_rng(seed)
    result = RESULTS[dtype]
    a, b = random(rng, (m, k), a_dtype or dtype), random(rng, (n, k), dtype)
    c = np.full((m, n), -1 if result.is_integer else math.nan, result.numpy)
    turned = (majors[0] == "m", majors[1] == "n", majors[2] == "m")
    return tuple(np.asfortranarray(x) if turn else x for x, turn in zip((a, b, c), turned, strict=True))


def check(a, b, c, sample=256):
    """The relative error of C against float64 in `sample` rows, spread over all; an exception if an element is off.

    Integers must be exact. A float may be off by its own rounding to 16 bits, and by what OF_SCALE allows, or a sum of
    K products in float32.
    """
    rows = np.unique(np.linspace(0, a.shape[0] - 1, sample).astype(int))
    x, y = a[rows].astype(np.float64), b.astype(np.float64)
    want, got = x @ y.T, c[rows].astype(np.float64)
    scale = np.sqrt((x**2).sum(1))[:, None] * np.sqrt((y**2).sum(1))
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(c.dtype.name, 0.0)
    bad = ~(np.abs(got - want) <= unit * np.abs(want) + OF_SCALE.get(b.dtype.name, 1e-5) * scale)
    if bad.any():
        i, j = (int(x) for x in np.argwhere(bad)[0])
        raise SystemExit(
            f"WRONG: {int(bad.sum())} of {bad.size} elements; the first at ({rows[i]}, {j}) is {got[i, j]}, "
            f"and should be {want[i, j]}"
        )
    return np.linalg.norm(got - want) / np.linalg.norm(want)


def to_device(array):
    """A device array of the same bits and order: torch's if it is here, else Numba's, which knows only their size."""
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return to_device(array.T).T
    bits = array.view(f"i{array.itemsize}")
    if torch is None:
        return cuda.to_device(bits)
    return torch.from_numpy(bits).cuda().view(getattr(torch, array.dtype.name))


def to_host(array, like):
    """The same, back."""
    if like.flags.f_contiguous and not like.flags.c_contiguous:
        return to_host(array.T, like.T).T
    ints = {1: "int8", 2: "int16", 4: "int32"}[like.itemsize]
    bits = array.copy_to_host() if torch is None else array.view(getattr(torch, ints)).cpu().numpy()
    return bits.view(like.dtype)


def torch_type(dtype):
    """torch's name for an element type."""
    return getattr(torch, np.dtype(dtype.numpy).name)


def cublas(a, b, c):
    """Return a function that makes C of A and B with cuBLAS (torch arrays on the device)."""
    if a.dtype == torch.int8 == b.dtype:
        return lambda: torch._int_mm(a, b.T, out=c)
    if a.dtype.itemsize == b.dtype.itemsize == 1:
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=c.dtype, use_fast_accum=True, out=c)
    if a.dtype.itemsize == 1:  # mixed input: cuBLAS gets its operands of one type, for nothing
        a = a.to(b.dtype)
    torch.backends.cuda.matmul.allow_tf32 = True
    return lambda: torch.matmul(a, b.T, out=c)


def seconds_per_call(call, least=0.3):
    """Seconds for each of the back-to-back calls that fill `least` seconds, after as long a warm-up."""
    start, end = cuda.event(), cuda.event()

    def burst(count):
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return cuda.event_elapsed_time(start, end) * 1e-3 / count

    count = max(10, int(least / burst(10)))
    burst(count)
    return burst(count)


def compile_only(kernel, args, stem, arch):
    """Write the kernel's PTX and cubin into out/ and print what it takes."""
    start = time.perf_counter()
    compiled = cute.compile(kernel, args, arch=arch)
    seconds = time.perf_counter() - start
    out = Path(__file__).resolve().parents[1] / "out"
    out.mkdir(exist_ok=True)
    for suffix, what in (("ptx", compiled.ptx.encode()), ("cubin", compiled.cubin)):
        (out / f"{stem}.{arch}.{suffix}").write_bytes(what)
    print(f"compiled for {arch} in {seconds:.2f} s: {compiled.resources}")
    print(f"wrote {out / stem}.{arch}.ptx and .cubin")
    for note in compiled.notes:
        print(f"the assembler notes: {note}")


def run_on_gpu(arrays, launcher, what):
    """Launch once and check, then print the speed, beside cuBLAS's if torch is here. launcher(a, b, c): a launch."""
    a, b, c = arrays
    on_device = [to_device(x) for x in arrays]
    launch = launcher(*on_device)
    launch()
    cuda.synchronize()
    (m, k), n = a.shape, b.shape[0]
    print(f"{m} x {n} x {k} {what}: relative error against float64 {check(a, b, to_host(on_device[2], c)):.2e}")
    flops = 2 * m * n * k
    if torch is None:
        print(f"{flops / seconds_per_call(launch) * 1e-12:.0f} TFLOP/s; no torch here, so no cuBLAS to compare with")
        return
    theirs = torch.empty_like(on_device[2])
    peer = cublas(*on_device[:2], theirs)
    # In turns, since the clock falls as the chip warms up; benchmarks/gemm.py measures with more care.
    turns = [(seconds_per_call(launch), seconds_per_call(peer)) for _ in range(3)]
    ours, his = (sorted(t[i] for t in turns)[1] for i in (0, 1))
    ratio = sorted(t[1] / t[0] for t in turns)[1]
    print(f"ours {flops / ours * 1e-12:.0f} TFLOP/s, cuBLAS {flops / his * 1e-12:.0f}: {ratio:.3f} of its speed")
    print(f"cuBLAS's relative error: {check(a, b, to_host(theirs, c)):.2e}")


def simulate(arrays, run, what):
    """Run `run()` in the simulator, with what it did checked and timed."""
    a, b, c = arrays
    print(f"simulating {a.shape[0]} x {b.shape[0]} x {a.shape[1]} {what}")
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    print(f"relative error against float64: {check(a, b, c):.2e}   ({seconds:.1f} s)")


def parser(doc, dtypes, arch, small):
    """The command line that the examples share. small: the simulator's problem."""
    out = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "mnk":
        out.add_argument(f"--{name}", type=int, help=f"default 4096 on a GPU; {small} in the simulator")
    out.add_argument("--dtype", choices=dtypes, default=dtypes[0])
    out.add_argument("--arch", default=arch, help="the target of --compile-only")
    out.add_argument("--compile-only", action="store_true", help="write PTX and cubin into out/; needs no GPU")
    out.add_argument("--simulate", action="store_true", help="use the simulator even if there is a GPU")
    return out


def has_gpu(least, most=(99, 0)):
    """Say whether there is a GPU of such a compute capability, and print it if not."""
    if cuda.is_available() and least <= tuple(cuda.get_current_device().compute_capability) <= most:
        return True
    print(f"no GPU of compute capability {least[0]}.{least[1]} is used: the kernel runs in the simulator")
    return False
